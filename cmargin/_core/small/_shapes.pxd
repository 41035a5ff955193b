"""What a wrapper looks at before a kernel reads and writes without looking: a few comparisons of lengths."""

from libc.stdint cimport int64_t


cdef inline int must_fit(bint fits, str where) except -1:
    if not fits:
        raise ValueError(f"{where}: shapes do not fit")
    return 0


cdef inline bint within(const int64_t[::1] offsets, Py_ssize_t most) noexcept:
    # 0 <= offsets[0] <= offsets[1] <= ... <= most, one entry at least
    cdef Py_ssize_t i, n = offsets.shape[0]
    cdef int64_t last = 0
    for i in range(n):
        if offsets[i] < last:
            return False
        last = offsets[i]
    return n > 0 and last <= most
