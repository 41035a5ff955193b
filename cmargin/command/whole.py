"""Files that are there whole or not at all."""

import os
import sys
from contextlib import contextmanager


def writable(path):
    """Raise OSError unless a file can be made there: before the work, not after it."""
    folder = os.path.dirname(os.path.abspath(path))
    if os.path.isdir(path):
        raise IsADirectoryError(21, "Is a directory", path)
    if not os.path.isdir(folder):
        raise FileNotFoundError(2, "No such folder", folder)
    if not os.access(folder, os.W_OK):
        raise PermissionError(13, "The folder may not be written to", folder)


@contextmanager
def whole_file(path, mode):
    """An open file that is called ``path`` once it is written to its end; standard output for None."""
    if path is None:
        yield sys.stdout
        return
    part = f"{path}.part"
    try:
        with open(part, mode, encoding=None if "b" in mode else "utf-8") as file:
            yield file
        os.replace(part, path)
    finally:
        if os.path.exists(part):
            os.remove(part)
