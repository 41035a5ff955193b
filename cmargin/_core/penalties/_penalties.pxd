"""The table of penalties: a penalty is a file here, and a line in each of these functions and in ``_penalties.pyx``.

A penalty gives its value, its slope along a line with the places of its kinks, which columns it holds at zero, and
its conjugate, which the dual value needs. All have a quadratic part, ``l2_each``, which is on the diagonal of the
curvature; the rest has kinks. The minimum of a block's model is found in ``newton/direction``.
"""

from libc.math cimport INFINITY, fabs

from cmargin._core.penalties._by_column cimport is_at_kink, landed, longest_step, side_left
from cmargin._core.penalties._constraints cimport longest_feasible
from cmargin._core.penalties._elastic_net cimport elastic_net_value, l1_kinks, l1_slope
from cmargin._core.penalties._group_norms cimport (
    group_is_used, group_kinks, group_norms_bend, group_norms_slope, group_norms_value, group_steepness, sum_of_norms,
)
from cmargin._core.penalties._penalty cimport BY_COLUMN, ELASTIC_NET, GROUP_NORMS, RIDGE, linear_constraints, penalty_t
from cmargin._core.penalties._ridge cimport ridge_value


cdef inline bint has_kinks(const penalty_t *penalty) noexcept nogil:
    # whether it is no quadratic, so that columns may stay at zero
    return penalty.kind != RIDGE


# whether there is a dual value: not where a weight may grow for ever without a penalty
cdef bint has_bound(const penalty_t *penalty) noexcept nogil


cdef inline bint has_steps_by_columns(const penalty_t *penalty) noexcept nogil:
    # whether a driver that has no block reads columns for its steps; of any other it asks products
    return penalty.kind == ELASTIC_NET


cdef inline bint has_paths(const penalty_t *penalty) noexcept nogil:
    # whether a larger l2 or l1 for all columns alike may lead to it
    return penalty.kind != BY_COLUMN


cdef inline double penalty_value(const penalty_t *penalty, const double *w) noexcept nogil:
    if penalty.kind == GROUP_NORMS:
        return group_norms_value(penalty, w)
    return ridge_value(penalty, w) if penalty.kind == RIDGE else elastic_net_value(penalty, w)


cdef inline double penalty_slope(const penalty_t *penalty, const double *w, const double *d, double s,
                                 int side) noexcept nogil:
    # derivative along d at w + s d of all but the quadratic part, from the left (side -1) or from the right (side 1)
    if penalty.kind == GROUP_NORMS:
        return group_norms_slope(penalty, w, d, s, side)
    return 0 if penalty.kind == RIDGE else l1_slope(penalty, w, d, s, side)


cdef inline bint is_grouped(const penalty_t *penalty) noexcept nogil:
    # whether columns are held at zero in groups: along a line it bends between its kinks, then
    return penalty.kind == GROUP_NORMS


cdef inline double penalty_bend(const penalty_t *penalty, const double *w, const double *d, double s) noexcept nogil:
    # second derivative along d at w + s d of all but the quadratic part, between kinks
    return group_norms_bend(penalty, w, d, s) if penalty.kind == GROUP_NORMS else 0


cdef inline Py_ssize_t penalty_kinks(const penalty_t *penalty, const double *w, const double *d, double most,
                                     double *steps, Py_ssize_t *index) noexcept nogil:
    # steps in (0, most) where w + s d has a kink, in no order, and which column vanishes there; how many
    if penalty.kind == GROUP_NORMS:
        return group_kinks(penalty, w, d, most, steps, index)
    return 0 if penalty.kind == RIDGE else l1_kinks(penalty, w, d, most, steps, index)


cdef inline bint vanishes_with(const penalty_t *penalty, Py_ssize_t j, Py_ssize_t kink) noexcept nogil:
    # whether column j is at zero on the kink of column ``kink``
    if penalty.kind == GROUP_NORMS and j != penalty.free:
        return penalty.groups.of[j] == penalty.groups.of[kink]
    return j == kink


cdef inline double size_beside_l1(const penalty_t *penalty, const double *w) noexcept nogil:
    # what l1 is the factor of
    cdef double sizes = 0
    cdef Py_ssize_t j
    if penalty.kind == GROUP_NORMS:
        return sum_of_norms(penalty, w)
    for j in range(penalty.n):
        if j != penalty.free:
            sizes += fabs(w[j])
    return sizes


cdef inline double longest_within(const penalty_t *penalty, const double *w, const double *d) noexcept nogil:
    # step along d that leads to the first bound; infinite where none is met
    if penalty.constraints.n > 0:
        return max(1.0, longest_feasible(&penalty.constraints, w, d))
    return longest_step(penalty, w, d) if penalty.kind == BY_COLUMN else INFINITY


cdef inline double place_after(const penalty_t *penalty, Py_ssize_t j, double w, double step) noexcept nogil:
    # w + step in column j, exactly at a bound that rounding misses
    return landed(penalty, j, w + step, step) if penalty.kind == BY_COLUMN else w + step


cdef inline bint is_held(const penalty_t *penalty, Py_ssize_t j, double w) noexcept nogil:
    # whether column j is where it may rest: at 0 with a kink there, or at a bound
    if penalty.kind == BY_COLUMN:
        return is_at_kink(w, penalty.l1_each[j], penalty.lower[j], penalty.upper[j])
    return w == 0


cdef inline Py_ssize_t leader(const penalty_t *penalty, Py_ssize_t j) noexcept nogil:
    # the first of the columns that are held at zero together with column j
    if penalty.kind == GROUP_NORMS and j != penalty.free:
        return penalty.groups.member[penalty.groups.first[penalty.groups.of[j]]]
    return j


cdef inline bint is_used(const penalty_t *penalty, Py_ssize_t j, const double *w) noexcept nogil:
    # whether column j, or another of its group, is not at zero, or not where it may rest
    if penalty.kind == BY_COLUMN:
        return not is_held(penalty, j, w[j])
    if penalty.kind == GROUP_NORMS and j != penalty.free:
        return group_is_used(penalty, j, w)
    return w[j] != 0


cdef inline double steepness(const penalty_t *penalty, Py_ssize_t j, const double *g) noexcept nogil:
    # the l1 up to which a gradient g of the rest of the objective takes column j from zero
    if penalty.kind == GROUP_NORMS and j != penalty.free:
        return group_steepness(penalty, j, g)
    return fabs(g[j])


cdef inline bint rests(const penalty_t *penalty, Py_ssize_t j, const double *w, const double *g,
                       double part) noexcept nogil:
    # whether column j is held and, as the rest of the objective has the gradient g, stays there under that part of the
    # penalty's slope
    if penalty.kind == BY_COLUMN:
        return is_held(penalty, j, w[j]) and side_left(g[j], w[j], penalty.l1_each[j], penalty.lower[j],
                                                       penalty.upper[j], (1 - part) * penalty.l1_each[j]) == 0
    if penalty.kind == GROUP_NORMS and j != penalty.free:
        return not group_is_used(penalty, j, w) and not group_steepness(penalty, j, g) > part * penalty.l1
    return w[j] == 0 and not fabs(g[j]) > part * penalty.l1_each[j]


cdef inline bint is_sharp(const penalty_t *penalty, Py_ssize_t j) noexcept nogil:
    # whether column j can be held
    if penalty.kind == BY_COLUMN and (penalty.lower[j] > -INFINITY or penalty.upper[j] < INFINITY):
        return True
    return penalty.l1_each[j] > 0


# ``penalty`` is a value of `cmargin.solvers.penalty`; n and free are for the caller to set, who keeps it alive.
cdef int take_penalty(penalty_t *to, penalty) except -1

# The dual value: the best of D(t a), 0 <= t <= 1, for S = ``total`` and |v_j| + noise_j, both (n,), of n penalised
# columns; noise may be NULL. Scratch (n,). It is 0, the bound of a = 0, at worst; NaN where there is no penalty.
cdef double penalty_bound(const penalty_t *penalty, double total, Py_ssize_t n, const double *v, const double *noise,
                          double *scratch) noexcept nogil


cdef class LinearConstraints:
    cdef linear_constraints of
    cdef object kept
