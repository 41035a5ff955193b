"""The dual value D, from the conjugate of the penalty at the best multiple of the dual variables.

For dual variables a with v = (1/N) sum s a y x and S = (1/N) sum s G(a), D(a) = S - sum phi_j*(v_j). G is concave and
G(0) = 0, so that a part t of the dual variables adds t S at least: D(t a) >= t S - sum phi_j*(t v_j).
"""

import numpy as np

from libc.math cimport INFINITY, NAN, fabs, isfinite

from cmargin._core.penalties._by_column cimport by_column_bound
from cmargin._core.penalties._constraints cimport constrained_bound, multipliers
from cmargin._core.penalties._elastic_net cimport elastic_net_conjugate, elastic_net_multiple
from cmargin._core.penalties._group_norms cimport group_norms_conjugate, group_norms_multiple
from cmargin._core.penalties._penalty cimport column_groups, penalty_of
from cmargin._core.penalties._ridge cimport ridge_conjugate, ridge_multiple
from cmargin._core.util._shapes cimport must_fit


cdef int take_penalty(penalty_t *to, penalty) except -1:
    to[0] = penalty_of(penalty.l2, penalty.l1)
    if penalty.groups is not None:
        to.kind = GROUP_NORMS
        take_groups(&to.groups, penalty.groups)
    if penalty.by_column:
        to.kind = BY_COLUMN
    return 0


cdef int take_groups(column_groups *to, groups) except -1:
    cdef const Py_ssize_t[::1] of = groups.of, member = groups.member, first = groups.first
    cdef const double[::1] weight = groups.weight
    to.n, to.of, to.member, to.first, to.weight = weight.shape[0], &of[0], &member[0], &first[0], &weight[0]
    return 0


cdef bint has_bound(const penalty_t *penalty) noexcept nogil:
    cdef Py_ssize_t j
    if penalty.kind != BY_COLUMN:
        return has_kinks(penalty) or penalty.l2 > 0
    for j in range(penalty.n):
        if j != penalty.free and penalty.l2_each[j] == 0 and penalty.l1_each[j] == 0 \
                and (penalty.lower[j] == -INFINITY or penalty.upper[j] == INFINITY):
            return False
    return True


cdef double best_multiple_of(const penalty_t *penalty, double total, Py_ssize_t n, double *size) noexcept nogil:
    # argmax over 0 <= t <= 1 of t S - sum phi_j*(t |v_j|); size (n,) may be sorted, or become that of groups
    if penalty.kind == GROUP_NORMS:
        return group_norms_multiple(penalty, total, size)
    if penalty.kind == RIDGE:
        return ridge_multiple(penalty.l2, total, n, size)
    return elastic_net_multiple(penalty.l2, penalty.l1, total, n, size)


cdef double conjugate(const penalty_t *penalty, double t, Py_ssize_t n, const double *size) noexcept nogil:
    # sum phi_j*(t |v_j|) for the t that `best_multiple_of` returns
    if penalty.kind == GROUP_NORMS:
        return group_norms_conjugate(penalty, t, size)
    if penalty.kind == RIDGE:
        return ridge_conjugate(penalty.l2, t, n, size)
    return elastic_net_conjugate(penalty.l2, penalty.l1, t, n, size)


cdef double penalty_bound(const penalty_t *penalty, double total, Py_ssize_t n, const double *v, const double *noise,
                          double *scratch) noexcept nogil:
    cdef double largest = 0, t, bound
    cdef Py_ssize_t j
    if not has_bound(penalty):
        return NAN
    if penalty.constraints.n > 0:
        return constrained_bound(penalty, total, n, v, noise)
    if penalty.kind == BY_COLUMN:
        return by_column_bound(penalty, total, n, v, noise)
    for j in range(n):
        scratch[j] = fabs(v[j]) + (noise[j] if noise != NULL else 0)
        if not scratch[j] <= largest:          # NaN too
            largest = scratch[j]
    if not (isfinite(total) and largest < INFINITY and total > 0):
        return 0
    t = best_multiple_of(penalty, total, n, scratch)
    bound = t * total - conjugate(penalty, t, n, scratch)
    return bound if bound > 0 else 0


cdef class LinearConstraints:
    """A w + b >= 0 for the compiled solver, A (q, n_columns), b (q,), in arrays that live as long as this."""

    def __init__(self, A, b):
        cdef linear_constraints *of = &self.of
        cdef double[:, ::1] rows = np.array(A, float, order="C"), gram = np.asarray(rows) @ np.asarray(rows).T
        cdef double[::1] beyond = np.array(b, float), work
        cdef Py_ssize_t[::1] index
        cdef Py_ssize_t q = rows.shape[0], p = rows.shape[1]
        must_fit(q > 0 and p > 0 and beyond.shape[0] == q, "LinearConstraints")
        work, index = np.empty((q + 6) * q + p), np.empty(q, np.intp)
        self.kept = rows, beyond, gram, work, index
        of.n, of.n_columns, of.A, of.b, of.gram = q, p, &rows[0, 0], &beyond[0], &gram[0, 0]
        of.work, of.moved, of.index = &work[0], &work[(q + 6) * q], &index[0]

    def nearest(self, double tol):
        """The multipliers mu (q,) of the w of least length that meets them, A'mu, up to ``tol`` of the sizes of sums;
        and whether there is none: then A'mu = 0 and b'mu < 0."""
        cdef linear_constraints *of = &self.of
        cdef double[::1] r = -np.asarray(self.kept[1]), size = np.abs(self.kept[1]), mu = np.empty(of.n)
        cdef bint contradicts = False
        multipliers(of.n, of.gram, &r[0], &size[0], tol, &mu[0], of.work, of.index, &contradicts)
        return np.asarray(mu), bool(contradicts)


# ---------------------------------------------------------------- the same for those who have arrays

def bound(double total, const double[::1] v, double l2, double l1, noise=0.0):
    """The best of D(t a), 0 <= t <= 1: a lower bound of the objective; 0, the bound of a = 0, at worst.

    ``total`` is S; ``noise``, (p,) or 0, what rounding may have taken from |v|. NaN: there is none (l1 = l2 = 0).
    """
    cdef penalty_t penalty = penalty_of(l2, l1)
    cdef double[::1] held = np.append(np.asarray(v), 0.0), scratch = np.empty(len(v) + 1)
    cdef double[::1] errors = np.zeros(len(v) + 1)
    np.asarray(errors)[:len(v)] = noise
    return penalty_bound(&penalty, total, v.shape[0], &held[0], &errors[0], &scratch[0])


def bound_in_columns(double total, const double[::1] v, double[:, ::1] own, noise=0.0):
    """The same of a penalty by column: ``own`` (4, p), l2, l1, lower and upper bounds."""
    cdef penalty_t penalty = penalty_of(0, 0)
    cdef double[::1] errors = np.broadcast_to(noise, v.shape[0]).astype(float)
    must_fit(own.shape[0] == 4 and own.shape[1] == v.shape[0] > 0, "bound_in_columns")
    penalty.kind, penalty.n = BY_COLUMN, v.shape[0]
    penalty.l2_each, penalty.l1_each, penalty.lower, penalty.upper = &own[0, 0], &own[1, 0], &own[2, 0], &own[3, 0]
    return penalty_bound(&penalty, total, v.shape[0], &v[0], &errors[0], NULL)


def bound_within(double total, const double[::1] v, double l2, LinearConstraints constraints, noise=0.0):
    """The same of an l2 penalty within linear constraints of the columns of v."""
    cdef penalty_t penalty = penalty_of(l2, 0)
    cdef double[::1] errors = np.broadcast_to(noise, v.shape[0]).astype(float)
    must_fit(v.shape[0] == constraints.of.n_columns, "bound_within")
    penalty.constraints = constraints.of
    return penalty_bound(&penalty, total, v.shape[0], &v[0], &errors[0], NULL)
