"""Directions by products within bounds: a Newton step of the columns that do not rest, projected at its end.

Columns at a kink that would leave it on the far side alone have no part in the system; the others solve it as if there
were no bounds, and each then stops at its first kink (two metrics: Bertsekas 1982). A part of that falls always, as no
column that stops at once would have fallen; how far to go along the line, the search finds.
"""

from libc.float cimport DBL_EPSILON

from cmargin._core.linalg._blas cimport dot
from cmargin._core.newton._line cimport ARMIJO
from cmargin._core.newton._state cimport newton_state
from cmargin._core.penalties._by_column cimport sign_of, stopped
from cmargin._core.penalties._penalty cimport BY_COLUMN


cdef inline int side_of(const newton_state *at, Py_ssize_t j) noexcept nogil:
    # 0: the column rests
    if at.penalty.step.kind != BY_COLUMN:
        return 1
    return sign_of(at.point.g[j], at.point.w[j], at.penalty.step.l1_each[j], at.penalty.step.lower[j],
                   at.penalty.step.upper[j])


cdef inline void slope_of_free(const newton_state *at, double *slope) noexcept nogil:
    # (p,) of the objective, 0 where columns rest
    cdef Py_ssize_t j
    cdef int side
    for j in range(at.p):
        side = side_of(at, j)
        slope[j] = at.point.g[j]
        if at.penalty.step.kind == BY_COLUMN:
            slope[j] = slope[j] + side * at.penalty.step.l1_each[j] if side != 0 else 0


cdef inline void keep_free(const newton_state *at, double *x) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(at.p):
        x[j] = x[j] if side_of(at, j) != 0 else 0


cdef inline void project(newton_state *at, const double *x) noexcept nogil:
    # d = t x up to each column's first kink, t the first of 1, 1/2, 1/4, ... with which it falls
    cdef double *slope = at.point.scratch
    cdef double t = 1, falls, whole
    cdef Py_ssize_t j
    slope_of_free(at, slope)
    whole = dot(at.p, slope, x)
    while True:
        falls = 0
        for j in range(at.p):
            at.point.d[j] = stopped(at.point.w[j] + t * x[j], at.point.w[j], side_of(at, j), at.penalty.step.l1_each[j],
                                    at.penalty.step.lower[j], at.penalty.step.upper[j]) - at.point.w[j]
            falls += slope[j] * at.point.d[j]
        if falls <= ARMIJO * t * whole or t < DBL_EPSILON:
            return
        t /= 2
