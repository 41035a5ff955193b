"""Numbers of a struct into bytes and back again, by one list of them for both ways."""

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
