"""Memory for what one thread writes over and over, and memory that malloc keeps for nobody."""

import ctypes
import sys

import numpy as np

LINE = 64    # bytes of a cache line


def aligned_rows(shape, dtype):
    """Empty C-contiguous array of ``shape``, padded along its last axis, each row beginning at a cache line.

    A row is padded by a line at least, so that no two threads write to one (doc/lab-notebook).
    """
    size = np.dtype(dtype).itemsize
    padded = (-(-shape[-1] * size // LINE) + 1) * LINE
    n_bytes = int(np.prod(shape[:-1])) * padded
    memory = np.empty(n_bytes + LINE, np.uint8)
    start = -memory.ctypes.data % LINE
    return memory[start:start + n_bytes].view(dtype).reshape(*shape[:-1], padded // size)


def give_back():
    """Have glibc's malloc give pages to the system that hold nothing: after large arrays were freed it keeps megabytes
    of them, which would stand beside what is made next (doc/lab-notebook). A millisecond; elsewhere nothing happens."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
