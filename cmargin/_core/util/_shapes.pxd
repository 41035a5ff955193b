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


cdef inline int check_length(str name, Py_ssize_t got, Py_ssize_t wanted) except -1:
    if got != wanted:
        raise ValueError(f"{name} has {got} entries, expected {wanted}")
    return 0


cdef inline int check_ascending(str name, const Py_ssize_t[::1] index, Py_ssize_t end) except -1:
    cdef Py_ssize_t i, last = -1
    for i in range(index.shape[0]):
        if index[i] <= last or index[i] >= end:
            raise ValueError(f"{name} must be ascending and in [0, {end}); entry {i} is {index[i]}")
        last = index[i]
    return 0
