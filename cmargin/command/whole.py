"""Files that are there whole or not at all."""

import os
import sys
from contextlib import contextmanager

OPEN_FILES = ("/dev/std", "/dev/fd/", "/proc/")      # whoever has them open would not see a file put in their place


def writable(path):
    """Raise OSError unless a file can be made there: before the work, not after it."""
    folder = os.path.dirname(os.path.realpath(path))
    if os.path.isdir(path):
        raise IsADirectoryError(21, "Is a directory", path)
    if _is_there_already(path):
        if not os.access(path, os.W_OK):
            raise PermissionError(13, "It may not be written to", path)
        return
    if not os.path.isdir(folder):
        raise FileNotFoundError(2, "No such folder", folder)
    if not os.access(folder, os.W_OK):
        raise PermissionError(13, "The folder may not be written to", folder)


def _is_there_already(path):
    """Whether it is a pipe or a device, which nothing may take the place of, or a file that some process has open."""
    return os.path.exists(path) and (not os.path.isfile(path) or path.startswith(OPEN_FILES))


@contextmanager
def whole_file(path, mode):
    """An open file that is called ``path`` once it is written to its end; standard output for None.

    A link stays one, to the new file; pipes and devices are written to as they are.
    """
    if path is None:
        yield sys.stdout
        return
    encoding = None if "b" in mode else "utf-8"
    if _is_there_already(path):
        with open(path, mode, encoding=encoding) as file:
            yield file
        return
    path = os.path.realpath(path)
    part = f"{path}.part"
    try:
        with open(part, mode, encoding=encoding) as file:
            yield file
        os.replace(part, path)
    finally:
        if os.path.exists(part):
            os.remove(part)
