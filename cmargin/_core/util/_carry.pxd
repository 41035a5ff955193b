"""Numbers of a struct into bytes and back again, by one list of them for both ways; arrays that C code owns."""

from libc.stdlib cimport malloc
from libc.string cimport memcpy


cdef struct carrier:
    char *place                  # of the next number among the bytes
    bint back                    # from there into the struct


cdef inline void carry(carrier *by, void *number, size_t size) noexcept nogil:
    if by.back:
        memcpy(number, by.place, size)
    else:
        memcpy(by.place, number, size)
    by.place += size


cdef inline double *copied(const double[::1] numbers) except NULL:
    # in memory of its own, to be freed
    cdef double *own = <double *> malloc((numbers.shape[0] + 1) * sizeof(double))
    if own == NULL:
        raise MemoryError
    if numbers.shape[0] > 0:
        memcpy(own, &numbers[0], numbers.shape[0] * sizeof(double))
    return own
