"""Dual values without the interpreter; formulas and their reasons in ``_bound.pyx``."""

from cmargin._core.penalties._penalties cimport penalty_bound
from cmargin._core.penalties._penalty cimport penalty_t


cdef struct dual_point:          # S and v of feasible dual variables
    double total
    Py_ssize_t n                 # penalised columns, those of v; a free one is the last and is left out
    double *v                    # (n,)


# (P - D) / P, NaN without a certificate
cdef double relative_gap(double objective, double dual) noexcept nogil

cdef inline (double, double) sides(double dual_pos, double dual_neg, bint free) noexcept nogil:
    # what dual variables of positive and of negative rows are multiplied by: a free intercept needs sum s a y = 0, so
    # the heavier side is shrunk
    if free and dual_pos > dual_neg:
        return dual_neg / dual_pos, 1.0
    if free and dual_neg > 0:
        return 1.0, dual_pos / dual_neg
    return 1.0, 1.0


# of sums over positive and negative rows: gradient (2, ld), sums of s a, sums of s G(a); v is written
cdef void make_feasible(dual_point *at, const double *gradient, Py_ssize_t ld, double dual_pos, double dual_neg,
                        double gain_pos, double gain_neg, bint free) noexcept nogil


cdef inline double dual_bound(const dual_point *at, const penalty_t *penalty, const double *noise,
                              double *scratch) noexcept nogil:
    # max over 0 <= t <= 1 of D(t a) with |v_j| + noise_j, noise (n,) or NULL; scratch (n,). NaN without a bound
    return penalty_bound(penalty, at.total, at.n, at.v, noise, scratch)
