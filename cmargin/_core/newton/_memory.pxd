"""The Newton driver with its memory, to be extended; see ``_memory.pyx``."""

from cmargin._core.newton._asking cimport Driver
from cmargin._core.newton._state cimport newton_state


cdef class Newton(Driver):
    cdef newton_state at
    cdef list earlier                    # rows of the history of what was done before
    cdef object vectors, places, room_, of_others, row_sum_, own, penalty, constraints
    cdef know_the_origin(self)
    cdef int must_have_columns(self) except -1
    cdef int take_columns_of(self, penalty) except -1
    cdef take_memory(self)
    cdef int make_room(self, Py_ssize_t order) except -1
    cdef int take_factor(self, const double[:, ::1] upper) except -1
