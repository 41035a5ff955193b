"""Fits and predictions compute as they were tested, whatever another library has set for the thread that calls.

A library that was compiled for fast arithmetic may switch the thread that imports it, and all threads started from
there, to results that are 0 where they are subnormal (doc/parallelism.md).
"""

from cmargin._core.util._fp_control cimport FP_STANDARD, fp_get, fp_set, fp_settings, fp_standard


cdef class StandardArithmetic:
    """Context in which this thread rounds to nearest and keeps subnormal numbers; then as before."""

    cdef fp_settings before

    def __enter__(self):
        self.before = fp_standard()

    def __exit__(self, *_):
        fp_set(self.before)


def settings():
    """The calling thread's, as the processor has them."""
    return fp_get()


def is_standard():
    return fp_get() == FP_STANDARD


def set_settings(fp_settings value):
    """For tests."""
    fp_set(value)
