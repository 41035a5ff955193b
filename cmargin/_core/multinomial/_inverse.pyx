"""Approximate inverses of the multinomial Hessian, made and applied without the interpreter.

`solvers/multinomial/inverse.py` says what they are. They act on gradients G (n_columns, n_classes), features
first, then the intercepts where there are any: with an intercept b = c - <w, mean of the rows>, so w and c hardly
couple. Products are in single precision, of G brought to length 1. Rows of G are taken in chunks, and sums over chunks
in their order: the same bits for any number of threads.
"""

import numpy as np

from cython cimport floating
from libc.math cimport isfinite, sqrt
from libc.string cimport memcpy, memset

from cmargin._core.linalg._blas cimport NO_TRANS, TRANS, dot, gemm, potrf, potrs, syrk
from cmargin._core.linalg._eigh cimport EIGH_OK, blas_int, eigh_iwork_size, eigh_top, eigh_work_size
from cmargin._core.rows._softmax_rows cimport CURVATURE_ROWS, softmax_class_curvature
from cmargin._core.util._arrays import zeros
from cmargin._core.util._shapes cimport must_fit
from cmargin._core.util._team cimport share_out

cdef enum:
    TILE = 256                  # rows that are scaled and multiplied at a time
    GROUP = 16                  # classes whose weights are taken out of the rows together: a cache line of float32

cdef double FLAT = 1e-3         # smallest curvature of an intercept, beside the largest
cdef double LEAST = 1e-12       # smallest eigenvalue of A, beside the largest


cdef double length_to_one(const double *G, Py_ssize_t n) noexcept nogil:
    # what G is multiplied with, so that its squares stay within the range of single precision
    cdef double square = dot(n, G, G)
    return 1 / sqrt(square) if square > 1e-300 and isfinite(square) else 1.0


cdef double largest(const double *v, Py_ssize_t n) noexcept nogil:
    cdef double top = v[0]
    cdef Py_ssize_t j
    for j in range(1, n):
        top = max(top, v[j])
    return top


# ---------------------------------------------------------------- A (x) S

cdef void rotate_chunk(const kronecker *at, Py_ssize_t chunk, const double *G) noexcept nogil:
    # T = (G - mean b') U of the chunk's rows, and their part of vectors' T
    cdef Py_ssize_t k = at.k, lo = chunk_start(at.m, chunk, at.n_chunks), f, c
    cdef Py_ssize_t n = chunk_start(at.m, chunk + 1, at.n_chunks) - lo
    cdef const double *b = G + at.m * k
    for f in range(lo, lo + n):
        for c in range(k):
            at.centred[f * k + c] = <float> (
                at.scale * (G[f * k + c] - (at.mean[f] * b[c] if at.intercept else 0)))
    # T = centred U   (n, k) = (n, k) (k, k)
    gemm(NO_TRANS, NO_TRANS, n, k, k, 1, at.centred + lo * k, k, at.low_U, k, <float> 0, at.rotated + lo * k, k)
    # low = vectors' T   (rank, k) = (rank, n) (n, k)
    gemm(TRANS, NO_TRANS, at.rank, k, n, 1, at.vectors + lo * at.rank, at.rank, at.rotated + lo * k, k, <float> 0,
         at.low + chunk * at.rank * k, k)


cdef void fold_low(const kronecker *at) noexcept nogil:
    # the chunks' sums into the first one's, each pair's share beside the tail's
    cdef Py_ssize_t r, c, chunk, size = at.rank * at.k
    for chunk in range(1, at.n_chunks):
        for r in range(size):
            at.low[r] += at.low[chunk * size + r]
    for r in range(at.rank):
        for c in range(at.k):
            at.low[r * at.k + c] *= <float> (1 / (at.values[r] * at.curvature[c] + at.l2)
                                             - 1 / (at.tail * at.curvature[c] + at.l2))


cdef void rotate_back_chunk(const kronecker *at, Py_ssize_t chunk, double *out) noexcept nogil:
    cdef Py_ssize_t k = at.k, lo = chunk_start(at.m, chunk, at.n_chunks), f, c
    cdef Py_ssize_t n = chunk_start(at.m, chunk + 1, at.n_chunks) - lo
    cdef double *at_mean = at.at_mean + chunk * k
    memset(at_mean, 0, k * sizeof(double))
    for f in range(lo, lo + n):
        for c in range(k):
            at.rotated[f * k + c] *= <float> (1 / (at.tail * at.curvature[c] + at.l2))
    # T += vectors low   (n, k) = (n, rank) (rank, k)
    gemm(NO_TRANS, NO_TRANS, n, k, at.rank, 1, at.vectors + lo * at.rank, at.rank, at.low, k, <float> 1,
         at.rotated + lo * k, k)
    # centred = T U'   (n, k) = (n, k) (k, k)
    gemm(NO_TRANS, TRANS, n, k, k, 1, at.rotated + lo * k, k, at.low_U, k, <float> 0, at.centred + lo * k, k)
    for f in range(lo, lo + n):
        for c in range(k):
            out[f * k + c] = at.centred[f * k + c] / at.scale
        drop_mean(out + f * k, k)
        if at.intercept:
            for c in range(k):
                at_mean[c] += at.mean[f] * out[f * k + c]


cdef void kronecker_intercepts(const kronecker *at, const double *G, double *out) noexcept nogil:
    # U (curvature)^-1 U' b, and what the features move at the mean row taken off
    cdef Py_ssize_t k = at.k, c, j, chunk
    cdef double part, flat = FLAT * largest(at.curvature, k)
    cdef const double *b = G + at.m * k
    cdef double *last = out + at.m * k
    memset(last, 0, k * sizeof(double))
    for c in range(k):
        part = 0
        for j in range(k):
            part += at.U[j * k + c] * b[j]
        part /= max(at.curvature[c], flat)
        for j in range(k):
            last[j] += at.U[j * k + c] * part
    drop_mean(last, k)
    for chunk in range(at.n_chunks):
        for c in range(k):
            last[c] -= at.at_mean[chunk * k + c]


cdef struct kronecker_work:
    kronecker *at
    const double *G
    double *out


cdef void do_rotate(void *of, Py_ssize_t chunk, int thread) noexcept nogil:
    rotate_chunk((<kronecker_work *> of).at, chunk, (<kronecker_work *> of).G)


cdef void do_rotate_back(void *of, Py_ssize_t chunk, int thread) noexcept nogil:
    rotate_back_chunk((<kronecker_work *> of).at, chunk, (<kronecker_work *> of).out)


cdef void kronecker_apply(kronecker *at, int n_threads, const double *G, double *out) noexcept nogil:
    cdef kronecker_work work
    work.at, work.G, work.out = at, G, out
    at.scale = length_to_one(G, (at.m + at.intercept) * at.k)
    share_out(do_rotate, &work, at.n_chunks, n_threads)
    fold_low(at)
    share_out(do_rotate_back, &work, at.n_chunks, n_threads)
    if at.intercept:
        kronecker_intercepts(at, G, out)


cdef void kronecker_renew(kronecker *at) noexcept nogil:
    # the eigenpairs of A, which is lost; those there were before where LAPACK finds none, as of a NaN
    cdef Py_ssize_t k = at.k, c, j
    if eigh_top(at.A, k, k, at.values_of_A, at.rows_of_U, at.work, at.iwork) != EIGH_OK:
        return
    for c in range(k):
        at.curvature[c] = max(at.values_of_A[c], LEAST * at.values_of_A[0])
        for j in range(k):
            at.U[j * k + c] = at.rows_of_U[c * k + j]
            at.low_U[j * k + c] = <float> at.rows_of_U[c * k + j]


cdef void kronecker_update_at(kronecker *at, const floating *probs, const double *weight, Py_ssize_t n,
                              Py_ssize_t stride) noexcept nogil:
    softmax_class_curvature(probs, weight, n, at.k, stride, at.A, at.work)
    kronecker_renew(at)


# ---------------------------------------------------------------- the diagonal block of every class

cdef struct class_blocks:
    Py_ssize_t m, k, n_chunks
    bint intercept
    double little               # of a class's mean weight: rows with no more do not count
    double scale
    double *mean                # (k, m) of the rows by a class's curvature
    double *curvature           # (k,) sum of that
    float *factors              # (k, m, m) Cholesky
    float *solved               # WORK  (k, m)


cdef bint factorise(float *S, Py_ssize_t d, double l2, float *diagonal) noexcept nogil:
    # S = U'U of S + l2, upper triangle; with more where single precision cannot do with so little. What it cannot tell
    # of a column is a part of that column's own square: columns may be of any sizes
    cdef Py_ssize_t i, j
    cdef double part = 1.1920929e-07
    for i in range(d):
        diagonal[i] = S[i * d + i]
        for j in range(i, d):
            if not isfinite(S[i * d + j]):       # a factor of it need not fail
                return False
            S[j * d + i] = S[i * d + j]          # the lower triangle keeps what the factor overwrites
    while part < 1:
        for i in range(d):
            S[i * d + i] = diagonal[i] + <float> max(l2, part * diagonal[i], 1e-30)
        if potrf(d, S) == 0:
            return True
        part *= 10
        for i in range(d):
            for j in range(i + 1, d):
                S[i * d + j] = S[j * d + i]
    return False


cdef inline double class_weight(double weight, double p) noexcept nogil:
    return weight * p * (1 - p)


def rows_above(const floating[:, ::1] probs, const double[::1] weight, double little):
    """How many rows have more than ``little`` of a class's mean weight, weight_i p_ic (1 - p_ic), on average over all.

    ``probs`` (n, n_classes), ``weight`` (n,).
    """
    cdef Py_ssize_t n = probs.shape[0], k = probs.shape[1], i, c, count = 0
    cdef double[::1] total = zeros(k)
    must_fit(weight.shape[0] == n > 0 and k > 0, "rows_above")
    with nogil:
        for i in range(n):
            for c in range(k):
                total[c] += class_weight(weight[i], probs[i, c])
        for i in range(n):
            for c in range(k):
                count += class_weight(weight[i], probs[i, c]) > little * total[c] / n
    return count / <double> k


cdef void transpose_weights(
    const float *probs,         # IN    (n, k)
    const double *weight,       # IN    (n,)
    Py_ssize_t lo,
    Py_ssize_t hi,
    Py_ssize_t n,
    Py_ssize_t k,
    Py_ssize_t first,
    Py_ssize_t n_classes,
    double *transposed,         # OUT   (n_classes, n): weight_i p_ic (1 - p_ic) of classes first, first + 1, ...
) noexcept nogil:
    cdef Py_ssize_t i, c
    for i in range(lo, hi):
        for c in range(n_classes):
            transposed[c * n + i] = class_weight(weight[i], probs[i * k + first + c])


cdef bint class_block(
    const class_blocks *at,
    Py_ssize_t c,
    const float *X,             # IN    (n, m)
    const double *weight,       # IN    (n,): weight_i p_ic (1 - p_ic), weight_i of sum 1
    Py_ssize_t n,
    double l2,
    float *rows,                # WORK  (TILE, m)
    float *diagonal,            # WORK  (m,)
) noexcept nogil:
    # factor of sum_i w_i (x_i - mean)(x_i - mean)' + l2, mean by the same weight, over the rows that count
    cdef Py_ssize_t i, j, m = at.m, here = 0
    cdef double *mean = at.mean + c * m
    cdef double w, least, total = 0, kept = 0
    cdef float root
    cdef float *S = at.factors + c * m * m
    memset(mean, 0, m * sizeof(double))
    for i in range(n):
        total += weight[i]
    at.curvature[c], least = total, at.little * total / n
    if at.intercept:
        for i in range(n):
            w = weight[i]
            if w > least:
                kept += w
                for j in range(m):
                    mean[j] += w * X[i * m + j]
        for j in range(m):
            mean[j] = mean[j] / kept if kept > 0 else 0
    memset(S, 0, m * m * sizeof(float))
    for i in range(n):
        w = weight[i]
        if w > least:
            root = <float> sqrt(w)
            for j in range(m):
                rows[here * m + j] = root * (X[i * m + j] - <float> mean[j])
            here += 1
        if here == TILE or (here > 0 and i == n - 1):
            # S += rows' rows   (m, m) = (m, here) (here, m), upper triangle
            syrk(TRANS, m, here, 1, rows, m, <float> 1, S, m)
            here = 0
    return factorise(S, m, l2, diagonal)


cdef void solve_class(const class_blocks *at, Py_ssize_t c, double flat, const double *G, double *out) noexcept nogil:
    cdef Py_ssize_t f, m = at.m, k = at.k
    cdef double b = G[m * k + c] if at.intercept else 0, moved = 0
    cdef float *x = at.solved + c * m
    cdef const double *mean = at.mean + c * m
    for f in range(m):
        x[f] = <float> (at.scale * (G[f * k + c] - mean[f] * b))
    potrs(m, 1, at.factors + c * m * m, x)
    if at.intercept:
        for f in range(m):
            moved += mean[f] * x[f]
        out[m * k + c] = b / max(at.curvature[c], flat) - moved / at.scale


cdef void transpose_chunk(const class_blocks *at, Py_ssize_t chunk, double *out) noexcept nogil:
    cdef Py_ssize_t f, c, k = at.k
    for f in range(chunk_start(at.m, chunk, at.n_chunks), chunk_start(at.m, chunk + 1, at.n_chunks)):
        for c in range(k):
            out[f * k + c] = at.solved[c * at.m + f] / at.scale
        drop_mean(out + f * k, k)


cdef struct class_work:
    const class_blocks *at
    double flat
    const double *G
    double *out


cdef void do_class(void *of, Py_ssize_t c, int thread) noexcept nogil:
    cdef const class_work *by = <class_work *> of
    solve_class(by.at, c, by.flat, by.G, by.out)


cdef void do_transpose(void *of, Py_ssize_t chunk, int thread) noexcept nogil:
    transpose_chunk((<class_work *> of).at, chunk, (<class_work *> of).out)


cdef void class_apply(class_blocks *at, int n_threads, const double *G, double *out) noexcept nogil:
    cdef class_work work
    work.at, work.flat, work.G, work.out = at, FLAT * largest(at.curvature, at.k), G, out
    at.scale = length_to_one(G, (at.m + at.intercept) * at.k)
    share_out(do_class, &work, at.k, n_threads)
    share_out(do_transpose, &work, at.n_chunks, n_threads)
    if at.intercept:
        drop_mean(out + at.m * at.k, at.k)


cdef struct group_work:             # what threads share of taking out a group's weights, and of making its blocks
    const class_blocks *at
    const float *X
    const float *probs
    const double *weight
    double *transposed
    float *room
    unsigned char *made
    Py_ssize_t n, k, begin, there, first, room_size
    double l2


cdef void do_transpose_weights(void *of, Py_ssize_t chunk, int thread) noexcept nogil:
    cdef const group_work *by = <group_work *> of
    transpose_weights(by.probs, by.weight, chunk * TILE, min(by.n, (chunk + 1) * TILE), by.n, by.k, by.begin, by.there,
                      by.transposed)


cdef void do_class_block(void *of, Py_ssize_t item, int thread) noexcept nogil:
    cdef const group_work *by = <group_work *> of
    cdef Py_ssize_t c = by.first + item
    cdef float *rows = by.room + thread * by.room_size
    by.made[c] = class_block(by.at, c, by.X, by.transposed + (c - by.begin) * by.n, by.n, by.l2, rows,
                             rows + TILE * by.at.m)


# ---------------------------------------------------------------- Python wrappers

cdef class Inverse:
    """An approximate inverse; call it for a gradient from Python."""

    cdef void apply(self, const double *G, double *out) noexcept nogil:
        memcpy(out, G, self.n_columns * self.n_classes * sizeof(double))

    def __call__(self, G):
        cdef const double[:, ::1] given = np.ascontiguousarray(G, dtype=np.float64)
        cdef double[:, ::1] out = np.empty(G.shape)
        must_fit(given.shape[0] == self.n_columns and given.shape[1] == self.n_classes, "Inverse")
        with nogil:
            self.apply(&given[0, 0], &out[0, 0])
        return np.asarray(out)


cdef class Kronecker(Inverse):
    """(A (x) S + l2)^-1; A is 1 until `update` sets it.

    ``mean`` (n_features,) of the rows is not read without intercept; ``values`` (rank + 1,) are eigenvalues of S,
    the last one that of everything else, ``vectors`` (n_features, rank) theirs.
    """

    def __init__(self, const double[::1] mean, const double[::1] values, const float[:, ::1] vectors,
                 Py_ssize_t n_classes, double l2, bint intercept, int n_threads):
        cdef kronecker *at = &self.at
        cdef Py_ssize_t m = mean.shape[0], k = n_classes, rank = values.shape[0] - 1
        must_fit(m > 0 and k > 0 and rank >= 0 and vectors.shape[0] == m and vectors.shape[1] == rank, "Kronecker")
        self.n_features, self.n_classes, self.n_columns = m, k, m + intercept
        self.intercept, self.n_threads = intercept, n_threads
        at.m, at.k, at.rank, at.intercept, at.n_chunks = m, k, rank, intercept, chunks_of(m, k)
        at.l2, at.tail, at.mean, at.values = l2, values[rank], &mean[0], &values[0]
        at.vectors = &vectors[0, 0] if rank > 0 else NULL
        cdef float[:, ::1] room = np.empty((2, m * k), np.float32)
        cdef float[::1] low = zeros(at.n_chunks * rank * k + 1, np.float32)
        cdef double[:, ::1] at_mean = np.empty((at.n_chunks, k))
        at.centred, at.rotated, at.low, at.at_mean = &room[0, 0], &room[1, 0], &low[0], &at_mean[0, 0]
        cdef double[:, ::1] squares = np.tile(np.eye(k).ravel(), (3, 1))
        cdef double[::1] curvature = np.ones(k), values_of_A = np.empty(k)
        cdef double[::1] work = np.empty(max(eigh_work_size(k), (CURVATURE_ROWS + 1) * k))
        cdef float[:, ::1] low_U = np.eye(k, dtype=np.float32)
        cdef blas_int[::1] iwork = np.empty(eigh_iwork_size(k), np.int32 if sizeof(blas_int) == 4 else np.int64)
        at.A, at.U, at.rows_of_U, at.low_U = &squares[0, 0], &squares[1, 0], &squares[2, 0], &low_U[0, 0]
        at.curvature, at.values_of_A, at.work, at.iwork = &curvature[0], &values_of_A[0], &work[0], &iwork[0]
        self._alive = [mean, values, vectors, room, low, at_mean, squares, curvature, values_of_A, work,
                       low_U, iwork]

    def update(self, const double[:, ::1] A):
        """A, (n_classes, n_classes)."""
        must_fit(A.shape[0] == self.n_classes and A.shape[1] == self.n_classes, "Kronecker.update")
        memcpy(self.at.A, &A[0, 0], self.n_classes * self.n_classes * sizeof(double))
        with nogil:
            kronecker_renew(&self.at)

    cdef void apply(self, const double *G, double *out) noexcept nogil:
        kronecker_apply(&self.at, self.n_threads, G, out)


cdef class ClassBlocks(Inverse):
    """The inverse of every class's own block; `make` them all before the first use.

    Of X (n, n_features), ``probs`` (n, n_classes) and ``weight`` (n,) of sum 1. ``little``: part of a class's mean
    weight, weight_i p_ic (1 - p_ic), up to which a row does not count.
    """

    cdef class_blocks at
    cdef const float[:, ::1] X, probs
    cdef const double[::1] weight
    cdef double l2
    cdef float[:, ::1] room
    cdef double[:, ::1] transposed      # weights of the classes of a group, by class; there until all are made
    cdef Py_ssize_t group, group_size   # which one; how many they are, a multiple of the threads

    def __init__(self, const float[:, ::1] X, const float[:, ::1] probs, const double[::1] weight, double l2,
                 bint intercept, int n_threads, double little):
        cdef class_blocks *at = &self.at
        cdef Py_ssize_t m = X.shape[1], k = probs.shape[1]
        must_fit(m > 0 and k > 0 and probs.shape[0] == X.shape[0] and weight.shape[0] == X.shape[0] > 0, "ClassBlocks")
        self.n_features, self.n_classes, self.n_columns = m, k, m + intercept
        self.intercept, self.n_threads = intercept, n_threads
        self.X, self.probs, self.weight, self.l2 = X, probs, weight, l2
        at.m, at.k, at.intercept, at.n_chunks, at.little = m, k, intercept, chunks_of(m, k), little
        cdef double[:, ::1] mean = zeros((k, m))
        cdef double[::1] curvature = zeros(k)
        cdef float[:, :, ::1] factors = np.empty((k, m, m), np.float32)
        cdef float[:, ::1] solved = np.empty((k, m), np.float32)
        self.room = np.empty((n_threads, (TILE + 1) * m + 16), np.float32)
        self.transposed, self.group_size = None, min(k, (GROUP + n_threads - 1) // n_threads * n_threads)
        at.mean, at.curvature, at.factors, at.solved = &mean[0, 0], &curvature[0], &factors[0, 0, 0], &solved[0, 0]
        self._alive = [mean, curvature, factors, solved]

    def make(self, Py_ssize_t first, Py_ssize_t last):
        """Factors of the classes ``first .. last - 1``; False if one is beyond single precision."""
        cdef Py_ssize_t lo = first, group, size = self.group_size
        must_fit(0 <= first <= last <= self.n_classes, "ClassBlocks.make")
        cdef unsigned char[::1] made = np.zeros(self.n_classes, np.uint8)
        if self.transposed is None:
            self.transposed, self.group = np.empty((size, self.X.shape[0])), -1
        while lo < last:
            group = lo // size
            if group != self.group:
                self._transpose(group)
            self._make_of_group(lo, min(last, (group + 1) * size), made)
            lo = min(last, (group + 1) * size)
        if last == self.n_classes:
            self.transposed = None
        return all(made[first:last])

    cdef void _transpose(self, Py_ssize_t group):
        # a class's weights are a cache line each apart in ``probs``: they are taken out for as many as share one
        cdef group_work work
        work.probs, work.weight, work.transposed = &self.probs[0, 0], &self.weight[0], &self.transposed[0, 0]
        work.n, work.k, work.begin = self.X.shape[0], self.n_classes, group * self.group_size
        work.there = min(self.group_size, self.n_classes - work.begin)
        with nogil:
            share_out(do_transpose_weights, &work, (work.n + TILE - 1) // TILE, self.n_threads)
        self.group = group

    cdef void _make_of_group(self, Py_ssize_t first, Py_ssize_t last, unsigned char[::1] made):
        cdef group_work work
        work.at, work.X, work.transposed, work.made = &self.at, &self.X[0, 0], &self.transposed[0, 0], &made[0]
        work.n, work.l2, work.first, work.begin = self.X.shape[0], self.l2, first, self.group * self.group_size
        work.room, work.room_size = &self.room[0, 0], self.room.shape[1]
        with nogil:
            share_out(do_class_block, &work, last - first, self.n_threads)

    cdef void apply(self, const double *G, double *out) noexcept nogil:
        class_apply(&self.at, self.n_threads, G, out)
