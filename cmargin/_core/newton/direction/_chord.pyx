"""Evaluations without curvature, for a smooth loss: the last one, and after a subset the first and the second.

Curvature costs an evaluation as much again and more, three times as much where rows are short and sparse. The
evaluation that ends a fit makes no use of it, and which one that will be is foreseen: Newton's method squares the gap
from step to step. If it was not the last after all, one step more is taken by the factor that is there (a chord step),
of nearly the same curvature. The first evaluation over all rows is at the optimum of a subset, whose own curvature,
handed over, is good enough for a step; the curvature of all rows is summed where that step leads, nearer to the end.

Of a path of penalties, the first evaluation is where the fits before foresee the minimum, and often the only one; the
step that may follow takes the curvature of the nearest fit, and its end is not the last where that promises too much.

The first step from w = 0 is longer than Newton's: all rows have the curvature of margin 0 there, far more than where it
leads. The second evaluation finds out how long it is best, 1 to 16 times Newton's, and curvature is summed there.
"""

from libc.string cimport memcpy

from cmargin._core.linalg._blas cimport potrs
from cmargin._core.losses._losses cimport point, point_loss
from cmargin._core.penalties._penalties cimport has_kinks

# part of the objective that the step's model promises, d: with a curvature that is smooth itself the gap after it is
# 0.3 to 3 d^2 as a rule, 33 d^2 on forest cover at l2 = 1e-5; with a discontinuous one up to 250 d (doc/lab-notebook)
cdef double SQUARED = 50.0
cdef double DISCONTINUOUS = 1.0
# columns over rows of a subset, r: its optimum is off by a part r to 2 r of the objective, which one step by the
# curvature of all rows takes to some r^2; where that is the tolerance there is nothing to save
cdef double ALREADY = 0.5
# share of the variance of the labels that the first step explains: with less, length 1 is nearly the best
cdef double FEWEST = 0.3
# share of their squares: with more, all margins are about 1, beyond which the squared hinge has no curvature
cdef double MOST = 0.8


cdef void chord_direction(newton_state *at) noexcept nogil:
    cdef Py_ssize_t j
    memcpy(at.point.d, at.point.g, at.p * sizeof(double))
    potrs(at.p, 1, at.curvature.work + 4 * at.p, at.point.d)
    for j in range(at.p):
        at.point.d[j] = -at.point.d[j]


cdef bint may_be_the_last(const newton_state *at) noexcept nogil:
    # never twice in turn; a subset's last curvature is handed over
    cdef double promised = at.point.predicted / at.bound.objective if at.bound.objective > 0 else 0
    if not at.problem.facts.smooth or not at.curvature.has_factor:
        return False
    if not at.curvature.has_block:
        return at.curvature.is_near and at.counts.n_iter == 1 and promised <= at.stop.tol
    if at.stop.width_end > 0 or at.penalty.step.l2 > at.penalty.user.l2:
        return False
    if at.problem.facts.discontinuous:
        return DISCONTINUOUS * promised <= at.stop.tol
    return SQUARED * promised * promised <= at.stop.tol


cdef bint leaves_zero(const newton_state *at) noexcept nogil:
    cdef double explained, mean = 0              # share of the labels' squares, mean label that an intercept takes
    cdef point zero = point_loss(&at.problem.loss, 0)
    cdef Py_ssize_t j
    if not at.problem.facts.smooth or at.problem.has_offsets or at.penalty.user.l1 > 0 \
            or not at.point.predicted > 0:
        return False                             # with offsets rows have no margin, nor curvature, in common
    explained = at.point.predicted * zero.curvature / (zero.slope * zero.slope)
    if at.p > at.problem.n_features:
        mean = at.point.g[at.problem.n_features] / zero.slope
    if explained - mean * mean < FEWEST * (1 - mean * mean) or (at.problem.facts.discontinuous and explained > MOST):
        return False
    for j in range(at.p):
        if at.point.w[j] != 0:
            return False
    return True


cdef bint serves_all_rows(const newton_state *at) noexcept nogil:
    cdef double off = <double> at.p / max(1, at.problem.n_rows)
    return at.problem.facts.smooth and not at.problem.facts.discontinuous and not has_kinks(&at.penalty.user) \
        and off * off > ALREADY * at.stop.tol
