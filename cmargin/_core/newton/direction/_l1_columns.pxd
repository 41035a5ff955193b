"""Directions for l1 from the model of a step, minimised by rows that have columns."""

from cmargin._core.newton._state cimport newton_state


# a question, after which the direction is found
cdef void start_model(newton_state *at) noexcept nogil
cdef void told_model(void *driver) noexcept nogil
