"""Rows so large that a Newton step moves them across the hinge and far beyond; reasons in ``_high_leverage.pyx``."""

from cmargin._core.newton._state cimport newton_state


# doubles of `heavy_work`
cdef Py_ssize_t heavy_work_size(Py_ssize_t p, bint l1) noexcept nogil

# d = argmin of the model whose block of the other rows is at hand, penalty on the diagonal; False: it is not finite
cdef bint heavy_direction(newton_state *at) noexcept nogil
