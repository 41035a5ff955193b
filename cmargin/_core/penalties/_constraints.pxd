"""A few linear constraints of the weights, without the interpreter; reasons in ``_constraints.pyx``."""

from cmargin._core.penalties._penalty cimport linear_constraints, penalty_t

cdef double OF_SIZE


# mu = argmax of r'mu - mu'M mu / 2 over mu >= 0, all (q,), M (q, q) positive semidefinite; slopes of ``tol`` times the
# sizes that they are sums of, of r those of ``size`` (q,), count as 0. How many are above 0: the first of ``index``
# (q,), whose factor, as `potrf` leaves it, is then at the beginning of ``work``, (q + 2) q. Where there is no maximum,
# ``contradicts`` becomes true and mu has M mu = 0 and r'mu > 0; NULL: there is one
cdef Py_ssize_t multipliers(Py_ssize_t q, const double *M, const double *r, const double *size, double tol,
                            double *mu, double *work, Py_ssize_t *index, bint *contradicts) noexcept nogil

# r = -(A x + b), x = w + d, or w where d is NULL; size = |A| (|w| + |d|) + |b|, both (n,)
cdef void shortfalls(const linear_constraints *of, const double *w, const double *d, double *r,
                     double *size) noexcept nogil

# the largest s for which w + s d meets the constraints but for rounding; infinite where none is met on the way
cdef double longest_feasible(const linear_constraints *of, const double *w, const double *d) noexcept nogil

# `penalty_bound` where there are constraints
cdef double constrained_bound(const penalty_t *penalty, double total, Py_ssize_t n, const double *v,
                              const double *noise) noexcept nogil
