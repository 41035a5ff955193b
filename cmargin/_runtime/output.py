"""Output files that are complete, or are not there."""

import os
import sys
from contextlib import contextmanager

OPEN_FILES = ("/dev/std", "/dev/fd/", "/proc/")      # Some process has these open and would not see a new file.


def check_writable(path):
    """Raise OSError unless the file can be written: a fit should not fail at its end."""
    folder = os.path.dirname(os.path.realpath(path))
    if os.path.isdir(path):
        raise IsADirectoryError(21, "Is a directory", path)
    if _is_written_in_place(path):
        if not os.access(path, os.W_OK):
            raise PermissionError(13, "It may not be written to", path)
        return
    if not os.path.isdir(folder):
        raise FileNotFoundError(2, "No such folder", folder)
    if not os.access(folder, os.W_OK):
        raise PermissionError(13, "The folder may not be written to", folder)


def _is_written_in_place(path):
    """Return whether it is a pipe or a device, which no new file may replace, or open in some process."""
    return os.path.exists(path) and (not os.path.isfile(path) or path.startswith(OPEN_FILES))


@contextmanager
def output_file(path, mode, newline=None):
    """An open file that gets the name ``path`` once it is complete; standard output for None.

    The target of a link is replaced, not the link; pipes and devices are written to directly.
    ``newline`` is that of `open`.
    """
    if path is None:
        yield sys.stdout
        return
    encoding = None if "b" in mode else "utf-8"
    if _is_written_in_place(path):
        with open(path, mode, encoding=encoding, newline=newline) as file:
            yield file
        return
    path = os.path.realpath(path)
    part = f"{path}.part"
    try:
        with open(part, mode, encoding=encoding, newline=newline) as file:
            yield file
        os.replace(part, path)
    finally:
        if os.path.exists(part):
            os.remove(part)
