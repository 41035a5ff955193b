"""Curvature of one point, in use for some steps more: an evaluation without curvature costs a fraction of one with it.

Its inverse is corrected by the steps taken since: BFGS, its matrix at the start being that inverse. The two loops over
the pairs are those of limited-memory BFGS (Nocedal and Wright, algorithm 7.4).

Where columns depend on each other a factor, or one with a ridge, would let rounding pick one solution among many.
There the eigenvectors are inverted one by one, and what H cannot reach is a plain gradient step.
"""

import numpy as np

from libc.math cimport INFINITY, isnan, sqrt
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy

from cmargin._core.linalg._blas cimport NO_TRANS, TRANS, axpy, dot, gemv, potrf, potrs, scal
from cmargin._core.linalg._eigh cimport EIGH_OK, blas_int, eigh_iwork_size, eigh_top, eigh_work_size
from cmargin._core.util._shapes cimport must_fit

cdef double FLAT = 1e-12             # a step whose change of gradient is less than this part of both lengths is no pair
cdef double DEPENDENT = 1e-10        # squared ratio of pivots below which columns may depend on each other
cdef double NO_EIGENVALUE = 1e-12    # eigenvalues below this share of the largest count as 0


cdef void bfgs_take(bfgs_hessian *kept, const double *upper, double total, const double *ridge) noexcept nogil:
    cdef Py_ssize_t n = kept.n, i, j
    kept.ready, kept.n_pairs = False, 0
    if kept.matrix == NULL:
        kept.matrix, kept.own = <double *> malloc(n * n * sizeof(double)), <double *> malloc(n * sizeof(double))
        kept.out_of_memory = kept.matrix == NULL or kept.own == NULL
    if kept.out_of_memory:
        return
    for i in range(n):
        for j in range(i, n):                # both triangles: the lower one is there when the factor fails
            kept.matrix[i * n + j] = kept.matrix[j * n + i] = upper[i * n + j] / total
        kept.matrix[i * n + i] += ridge[i]
        kept.own[i] = kept.matrix[i * n + i]


cdef bint invert_spectrum(bfgs_hessian *kept) noexcept nogil:
    # the eigenvectors of what the lower triangle and the diagonal still hold
    cdef Py_ssize_t n = kept.n, i, j
    cdef double *vectors = <double *> malloc(n * n * sizeof(double))
    cdef double *work = <double *> malloc(eigh_work_size(n) * sizeof(double))
    cdef blas_int *iwork = <blas_int *> malloc(eigh_iwork_size(n) * sizeof(blas_int))
    cdef bint done = False
    cdef double top
    kept.out_of_memory = vectors == NULL or work == NULL or iwork == NULL
    if not kept.out_of_memory:
        for i in range(n):
            kept.matrix[i * n + i] = kept.own[i]
            for j in range(i):
                kept.matrix[j * n + i] = kept.matrix[i * n + j]
        done = eigh_top(kept.matrix, n, n, kept.own, vectors, work, iwork) == EIGH_OK
    free(work)
    free(iwork)
    if not done:
        free(vectors)
        return False
    free(kept.matrix)
    kept.matrix = vectors
    top = kept.own[0] if kept.own[0] > 0 else 1
    for i in range(n):
        kept.own[i] = 1 / (kept.own[i] if kept.own[i] > NO_EIGENVALUE * top else top)
    return True


cdef bint bfgs_factor(bfgs_hessian *kept) noexcept nogil:
    cdef Py_ssize_t n = kept.n, i
    cdef double low = INFINITY, high = 0
    if kept.out_of_memory:
        return False
    kept.whole = potrf(n, kept.matrix) == 0
    for i in range(n):
        if isnan(kept.matrix[i * n + i]):
            kept.whole = False
        low, high = min(low, kept.matrix[i * n + i]), max(high, kept.matrix[i * n + i])
    kept.whole = kept.whole and low * low > DEPENDENT * high * high
    kept.ready = kept.whole or invert_spectrum(kept)
    return kept.ready


cdef void bfgs_add(bfgs_hessian *kept, const double *step, const double *change) noexcept nogil:
    cdef Py_ssize_t n = kept.n, size = bfgs_row_size(n), room
    cdef double bend = dot(n, step, change)
    cdef double *pair
    if not bend > FLAT * sqrt(dot(n, step, step)) * sqrt(dot(n, change, change)):
        return                                   # a straight line tells nothing
    if kept.n_pairs == kept.room:
        room = 2 * kept.room + 4
        pair = <double *> realloc(kept.pairs, room * size * sizeof(double))
        if pair == NULL:
            kept.out_of_memory = True
            return
        kept.pairs, kept.room = pair, room
    pair = kept.pairs + kept.n_pairs * size
    memcpy(pair, step, n * sizeof(double))
    memcpy(pair + n, change, n * sizeof(double))
    pair[2 * n] = bend
    kept.n_pairs += 1


cdef void solve_start(const bfgs_hessian *kept, double *x, double *scratch) noexcept nogil:
    # x = inverse of H as it was summed, times x
    cdef Py_ssize_t n = kept.n, i
    if kept.whole:
        potrs(n, 1, kept.matrix, x)
        return
    gemv(NO_TRANS, n, n, 1.0, kept.matrix, n, x, 0.0, scratch)
    for i in range(n):
        scratch[i] *= kept.own[i]
    gemv(TRANS, n, n, 1.0, kept.matrix, n, scratch, 0.0, x)


cdef void bfgs_solve(bfgs_hessian *kept, const double *rhs, double factor, double *x, double *scratch) noexcept nogil:
    cdef Py_ssize_t n = kept.n, size = bfgs_row_size(n), k
    cdef double *pair
    memcpy(x, rhs, n * sizeof(double))
    scal(n, factor, x)
    for k in range(kept.n_pairs):
        pair = kept.pairs + (kept.n_pairs - 1 - k) * size
        pair[2 * n + 1] = dot(n, pair, x) / pair[2 * n]
        axpy(n, -pair[2 * n + 1], pair + n, x)
    solve_start(kept, x, scratch)
    for k in range(kept.n_pairs):
        pair = kept.pairs + k * size
        axpy(n, pair[2 * n + 1] - dot(n, pair + n, x) / pair[2 * n], pair, x)


cdef void bfgs_free(bfgs_hessian *kept) noexcept nogil:
    free(kept.matrix)
    free(kept.own)
    free(kept.pairs)


cdef class BFGSHessian:
    """The same for tests; ``upper`` (n, n) holds H's upper triangle, row-major. ValueError where H is not finite."""

    cdef bfgs_hessian kept

    def __init__(self, const double[:, ::1] upper):
        cdef double[::1] none = np.zeros(upper.shape[0])
        must_fit(upper.shape[1] == upper.shape[0] > 0, "BFGSHessian")
        self.kept.n = upper.shape[0]
        bfgs_take(&self.kept, &upper[0, 0], 1, &none[0])
        if not bfgs_factor(&self.kept):
            raise MemoryError if self.kept.out_of_memory else ValueError("the curvature is not finite")

    def __dealloc__(self):
        bfgs_free(&self.kept)

    def add(self, const double[::1] step, const double[::1] change):
        """A step and the change of the gradient along it."""
        must_fit(step.shape[0] == change.shape[0] == self.kept.n, "add")
        bfgs_add(&self.kept, &step[0], &change[0])

    def solve(self, const double[::1] rhs):
        """H^-1 rhs, (n,)."""
        must_fit(rhs.shape[0] == self.kept.n, "solve")
        cdef double[::1] x = np.empty(self.kept.n), scratch = np.empty(self.kept.n)
        bfgs_solve(&self.kept, &rhs[0], 1, &x[0], &scratch[0])
        return np.asarray(x)
