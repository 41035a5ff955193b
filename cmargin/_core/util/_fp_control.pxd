"""How a thread rounds and what it does with subnormal numbers, see ``_fp_control.h``."""

from libc.stdint cimport uint64_t

cdef extern from "_fp_control.h":
    ctypedef uint64_t fp_settings
    fp_settings FP_STANDARD
    fp_settings fp_get() noexcept nogil
    void fp_set(fp_settings settings) noexcept nogil
    fp_settings fp_standard() noexcept nogil            # set what kernels are tested with; what was set before
