"""The minimum of a block's model within a few linear constraints.

    m(d) = g'd + d'Hd/2     with     A (w + d) + b >= 0

By one factor of H: with d_0 = -H^-1 g and Y = H^-1 A', d = d_0 + Y mu, where the multipliers mu solve a quadratic
program in as many unknowns as there are constraints (``penalties/_constraints.pyx``), of the matrix A Y.
"""

import numpy as np

from libc.math cimport fabs

from cmargin._core.linalg._blas cimport axpy, dot, potrs, scal
from cmargin._core.newton.direction._system cimport solve_upper
from cmargin._core.penalties._constraints cimport OF_SIZE, longest_feasible, multipliers, shortfalls
from cmargin._core.penalties._penalties cimport LinearConstraints
from cmargin._core.util._shapes cimport must_fit


cdef Py_ssize_t constrained_work_size(Py_ssize_t n, Py_ssize_t q) noexcept nogil:
    return n * n + 2 * (q + 1) * n + q * q


cdef double constrained_minimum(Py_ssize_t n, const double *upper, const double *g, const double *w,
                                const linear_constraints *of, double *d, double *work) noexcept nogil:
    cdef Py_ssize_t q = of.n, i, k, m
    cdef double *factor = work                   # (n, n)
    cdef double *rhs = factor + n * n            # (q + 1, n)
    cdef double *solved = rhs + (q + 1) * n      # (q + 1, n) d_0, and the columns of Y
    cdef double *M = solved + (q + 1) * n        # (q, q) A Y
    cdef double *r = of.work + (q + 2) * q       # (q,), as the next two
    cdef double *size = r + q
    cdef double *mu = size + q
    cdef double ridge, most
    for i in range(n):
        rhs[i] = -g[i]
        for k in range(q):
            rhs[(k + 1) * n + i] = of.A[k * n + i]
    ridge = solve_upper(n, upper, q + 1, rhs, solved, factor)
    if ridge != ridge:
        return ridge
    for k in range(q):
        for i in range(k, q):
            M[k * q + i] = M[i * q + k] = dot(n, of.A + k * n, solved + (i + 1) * n)
    for i in range(n):
        d[i] = solved[i]
    shortfalls(of, w, d, r, size)
    m = multipliers(q, M, r, size, OF_SIZE, mu, of.work, of.index, NULL)
    for k in range(q):
        axpy(n, mu[k], solved + (k + 1) * n, d)
    shortfalls(of, w, d, r, size)                # what rounding has left of them, once more
    for i in range(m):
        mu[i] = r[of.index[i]]
    potrs(m, 1, of.work, mu)
    for i in range(m):
        axpy(n, mu[i], solved + (of.index[i] + 1) * n, d)
    for i in range(n):                           # a weight that is rounding alone is 0, as at a corner
        if fabs(w[i] + d[i]) <= OF_SIZE * fabs(solved[i]):
            d[i] = -w[i]
    most = longest_feasible(of, w, d)
    if most < 1:
        scal(n, most, d)
    return ridge


# ---------------------------------------------------------------- the same for those who have arrays

def minimum_within(const double[:, ::1] upper, const double[::1] g, const double[::1] w, LinearConstraints constraints):
    """argmin over d of g'd + d'Hd/2 with A (w + d) + b >= 0; H (n, n) by its upper triangle, g and w (n,)."""
    cdef Py_ssize_t n = g.shape[0]
    cdef double[::1] d = np.empty(n), work = np.empty(constrained_work_size(n, constraints.of.n))
    must_fit(0 < n == upper.shape[0] == upper.shape[1] == w.shape[0] == constraints.of.n_columns, "minimum_within")
    constrained_minimum(n, &upper[0, 0], &g[0], &w[0], &constraints.of, &d[0], &work[0])
    return np.asarray(d)
