"""An array in a file: what its header says, whether the file is whole, and a part of it in memory.

A part is mapped, not copied: copying from the page cache takes as long as an evaluation. Only the part is mapped, so
that the file may be larger than the address space; and its pages are fetched at once, so that whoever looks at it later
does not wait for a disk, deaf to Ctrl-C.
"""

import math
import mmap
import os
from dataclasses import dataclass

import numpy as np

READ_HEADER = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
FETCHED = 1 << 21            # bytes between two moments at which a reader hears that nobody waits


@dataclass(frozen=True)
class ArrayInFile:
    """Where the numbers of an array lie: ``offset`` is the byte of the first one."""

    path: str
    offset: int
    shape: tuple
    dtype: np.dtype
    fortran: bool = False

    @property
    def nbytes(self):
        return math.prod(self.shape) * self.dtype.itemsize

    def check_length(self, end=None):
        """Raise ValueError where the file ends before the array does."""
        there = (os.path.getsize(self.path) if end is None else end) - self.offset
        if there < self.nbytes:
            raise ValueError(f"{self.path!r} is cut short: its array of shape {self.shape} takes {self.nbytes} bytes, "
                             f"and {max(0, there)} are there.")
        return self

    def read(self, first, out):
        """Numbers ``first`` .., in the order of the file, into the contiguous array ``out``."""
        with open(self.path, "rb", buffering=0) as file:
            read_at(file, self.path, self.offset + first * self.dtype.itemsize, out)

    def part(self, first, n, given_up):
        """Numbers ``first`` .. ``first + n - 1``, fetched; read-only where they are mapped.

        Raises `GivenUp` soon after the event ``given_up`` is set.
        """
        begin, size = self.offset + first * self.dtype.itemsize, n * self.dtype.itemsize
        if begin % self.dtype.itemsize == 0 and n > 0:
            with open(self.path, "rb", buffering=0) as file:
                there = os.fstat(file.fileno()).st_size
                if there < begin + size:
                    raise ValueError(f"{self.path!r} was cut short while it was read.")
                skipped = begin % mmap.ALLOCATIONGRANULARITY
                try:
                    if hasattr(os, "posix_fadvise"):
                        os.posix_fadvise(file.fileno(), begin, size, os.POSIX_FADV_WILLNEED)
                    mapped = mmap.mmap(file.fileno(), skipped + size, access=mmap.ACCESS_READ, offset=begin - skipped)
                except OSError:
                    mapped = None                            # a file system that maps nothing
            if mapped is not None:
                fetch(np.frombuffer(mapped, np.uint8), given_up)
                return np.frombuffer(mapped, self.dtype, n, skipped)
        out = np.empty(n, self.dtype)
        self.read(first, out)
        return out

    def load(self):
        """The whole array, in memory."""
        out = np.empty(math.prod(self.shape), self.dtype)
        self.read(0, out)
        return out.reshape(self.shape, order="F" if self.fortran else "C")


class GivenUp(Exception):
    """Nobody waits for these rows any more."""


def fetch(mapped, given_up):
    """Touch every page of mapped bytes, without the interpreter's lock."""
    for at in range(0, len(mapped), FETCHED):
        if given_up.is_set():
            raise GivenUp
        np.add.reduce(mapped[at:at + FETCHED:mmap.PAGESIZE])


def read_at(file, path, at, out):
    """The bytes of ``file`` from ``at`` on into the contiguous array ``out``."""
    left = memoryview(out).cast("B") if out.size else b""
    file.seek(at)
    while len(left):
        n = file.readinto(left)
        if not n:
            raise ValueError(f"{path!r} was cut short while it was read.")
        left = left[n:]


def array_of_npy(path):
    """Return the `ArrayInFile` of a .npy file."""
    with opened(path) as file:
        return array_at(path, file).check_length()


def opened(path):
    """Return the file, open in binary mode; FileNotFoundError and ValueError, with the path, where there is none."""
    try:
        return open(path, "rb")
    except FileNotFoundError:
        raise FileNotFoundError(f"There is no file {path!r}.") from None
    except IsADirectoryError:
        raise ValueError(f"{path!r} is a folder, not a file.") from None


def array_at(path, file):
    """Return the `ArrayInFile` whose .npy header begins where ``file`` stands."""
    try:
        version = np.lib.format.read_magic(file)
        shape, fortran, dtype = READ_HEADER[version](file)
    except OSError:
        raise
    except Exception:                        # NumPy reads a header as Python, whose tokens have errors of their own
        raise ValueError(f"{path!r} is no .npy file, or is cut short within its header.") from None
    if min(shape, default=0) < 0:
        raise ValueError(f"{path!r} holds an array of shape {shape}.")
    if dtype.hasobject:
        raise ValueError(f"{path!r} holds Python objects, not numbers.")
    return ArrayInFile(path, file.tell(), shape, dtype, fortran)
