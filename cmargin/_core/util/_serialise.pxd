"""Plain numbers of structs as the bytes of a checkpoint, and back; arrays that C code owns.

A struct names the spans of memory that hold its numbers, one list for both ways. Bytes go to the same build on the same
kind of machine; `MAGIC` of `cmargin._runtime.checkpoint` has another number wherever a span changes.
"""

from libc.stdlib cimport malloc
from libc.string cimport memcpy

from cmargin._core.util._shapes cimport must_fit


cdef struct span:
    char *start
    size_t size


cdef inline span numbers_between(void *first, void *end) noexcept nogil:
    cdef span found
    found.start, found.size = <char *> first, <char *> end - <char *> first
    return found


cdef inline bytes serialised(const span *spans, int n):
    cdef int k
    return b"".join([spans[k].start[:spans[k].size] for k in range(n)])


cdef inline int restore(const span *spans, int n, bytes numbers) except -1:
    cdef const char *place = numbers
    cdef size_t size = 0
    cdef int k
    for k in range(n):
        size += spans[k].size
    must_fit(<size_t> len(numbers) == size, "restore")
    for k in range(n):
        memcpy(spans[k].start, place, spans[k].size)
        place += spans[k].size
    return 0


cdef inline double *copied(const double[::1] numbers) except NULL:
    # in memory of its own, to be freed
    cdef double *own = <double *> malloc((numbers.shape[0] + 1) * sizeof(double))
    if own == NULL:
        raise MemoryError
    if numbers.shape[0] > 0:
        memcpy(own, &numbers[0], numbers.shape[0] * sizeof(double))
    return own
