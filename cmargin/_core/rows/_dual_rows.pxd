cdef enum:
    AHEAD = 2                        # rows asked for before they are needed


cdef class Centre:
    cdef const double[::1] mean, along
    cdef double square
    cdef double product(self, const double[::1] v) noexcept nogil
    cdef void take(self, double times, double[::1] v) noexcept nogil
    cdef bint fits(self, Py_ssize_t n, Py_ssize_t m) noexcept nogil
