"""The softmax risk of all classes over fixed blocks of rows: value and gradient, products with its Hessian, a line.

    risk       (1/N) sum_i s_i [ln sum_c exp(h_ic) - h_iy],   h_i = V' (x_i, 1)
    gradient   (1/N) sum_i s_i (x_i, 1) (p_i - e_y)'                             p_i = softmax(h_i), e_y one-hot
    Hessian    (1/N) sum_i s_i (x_i, 1) [p_i o (t_i - <p_i, t_i>)]'              t_i = D' (x_i, 1), D a direction

A tile of rows is multiplied with the weights, turned into residuals and multiplied back while it is in cache: one read
of X. Products are of the type asked for (float32 rows may be summed in float64), sums over tiles are float64. A
block has its own sums and is one thread's; they are folded in block order: the same bits for any number of threads.
"""

import numpy as np

from cython cimport floating
from cython.parallel cimport prange, threadid
from libc.math cimport log
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from cmargin._core.linalg._blas cimport NO_TRANS, TRANS, gemm
from cmargin._core.rows._rows cimport Rows, rows_view
from cmargin._core.small._simd cimport row_axpy
from cmargin._core.stochastic._softmax cimport softmax_row

cdef enum task:
    RISK = 0            # scores from V, probabilities, gradient
    RISK_OF_SCORES = 1  # the same from scores that are there already
    CURVATURE = 2       # Hessian times V, at the probabilities that are there
    PRODUCTS = 3        # scores from V, nothing else
    INTERCEPTS = 4      # from scores that are there: probabilities, and the gradient's last row only

cdef enum:
    N_SUMS = 2          # risk, entropy of the probabilities
    FOLD_ROWS = 1024    # rows after which sums of the type of the products go into the float64 ones
    TILE_NUMBERS = 1 << 18


cdef struct pass_plan:
    rows_view X
    bint single                 # values of X are float32
    bint intercept
    Py_ssize_t n_classes
    Py_ssize_t tile             # rows
    const int64_t *labels       # IN    (n_rows,)
    const double *weight        # IN    (n_rows,), mean 1


# ---------------------------------------------------------------- kernels

cdef inline double value_at(const pass_plan *plan, int64_t at) noexcept nogil:
    return (<const float *> plan.X.values)[at] if plan.single else (<const double *> plan.X.values)[at]


cdef inline int64_t column_of(const rows_view *X, int64_t entry) noexcept nogil:
    return X.columns[entry] if X.columns != NULL else X.columns_64[entry]


cdef const floating *dense_tile(const pass_plan *plan, Py_ssize_t first, Py_ssize_t n, floating *copy,
                                Py_ssize_t *stride) noexcept nogil:
    # rows as they lie where their type and order allow it, else a copy
    cdef const rows_view *X = &plan.X
    cdef Py_ssize_t i, j, m = X.n_features
    if (X.column_stride == 1 or m == 1) and X.row_stride >= m and plan.single == (sizeof(floating) == sizeof(float)):
        stride[0] = X.row_stride
        return <const floating *> X.values + first * X.row_stride
    stride[0] = m
    for i in range(n):
        for j in range(m):
            copy[i * m + j] = <floating> value_at(plan, (first + i) * X.row_stride + j * X.column_stride)
    return copy


cdef void tile_scores(const pass_plan *plan, Py_ssize_t first, Py_ssize_t n, const floating *V, const floating *tile,
                      Py_ssize_t stride, floating *out) noexcept nogil:
    cdef Py_ssize_t i, k = plan.n_classes, m = plan.X.n_features
    cdef int64_t entry
    for i in range(n):
        if plan.intercept:
            memcpy(out + i * k, V + m * k, k * sizeof(floating))
        else:
            memset(out + i * k, 0, k * sizeof(floating))
    if plan.X.starts == NULL:
        # out += tile V   (n, k) = (n, m) (m, k)
        gemm(NO_TRANS, NO_TRANS, n, k, m, 1, tile, stride, V, k, 1, out, k)
        return
    for i in range(n):
        for entry in range(plan.X.starts[first + i], plan.X.starts[first + i + 1]):
            row_axpy(value_at(plan, entry), V + column_of(&plan.X, entry) * k, out + i * k, k)


cdef inline void intercept_sums(const pass_plan *plan, Py_ssize_t n, const floating *residual,
                                floating *sums) noexcept nogil:
    cdef Py_ssize_t i, k = plan.n_classes
    if plan.intercept:
        for i in range(n):
            row_axpy(1, residual + i * k, sums + plan.X.n_features * k, k)


cdef void tile_sums(const pass_plan *plan, Py_ssize_t first, Py_ssize_t n, const floating *residual,
                    const floating *tile, Py_ssize_t stride, floating *sums) noexcept nogil:
    cdef Py_ssize_t i, k = plan.n_classes, m = plan.X.n_features
    cdef int64_t entry
    if plan.X.starts == NULL:
        # sums += tile' residual   (m, k) = (m, n) (n, k)
        gemm(TRANS, NO_TRANS, m, k, n, 1, tile, stride, residual, k, 1, sums, k)
    else:
        for i in range(n):
            for entry in range(plan.X.starts[first + i], plan.X.starts[first + i + 1]):
                row_axpy(value_at(plan, entry), residual + i * k, sums + column_of(&plan.X, entry) * k, k)
    intercept_sums(plan, n, residual, sums)


cdef inline double log_sum(const floating *scores, Py_ssize_t n, floating *probs) noexcept nogil:
    # ln sum exp(scores), and the softmax of the scores
    cdef double top, total
    memcpy(probs, scores, n * sizeof(floating))
    total = softmax_row(probs, n, &top)
    return top + log(total)


cdef void risk_residuals(const pass_plan *plan, Py_ssize_t first, Py_ssize_t n, const floating *scores, floating *probs,
                         floating *residual, double *sums) noexcept nogil:
    # ln sum exp(h) - <p, h> is the entropy of p: both sums cost one log a row
    cdef Py_ssize_t i, c, k = plan.n_classes
    cdef double weight, total, mean
    for i in range(n):
        weight = plan.weight[first + i]
        total = log_sum(scores + i * k, k, probs + i * k)
        mean = 0
        for c in range(k):
            mean += <double> probs[i * k + c] * scores[i * k + c]
            residual[i * k + c] = <floating> weight * probs[i * k + c]
        residual[i * k + plan.labels[first + i]] -= <floating> weight
        sums[0] += weight * (total - scores[i * k + plan.labels[first + i]])
        sums[1] += weight * (total - mean)


cdef void curvature_residuals(const pass_plan *plan, Py_ssize_t first, Py_ssize_t n, const floating *probs,
                              floating *residual) noexcept nogil:
    cdef Py_ssize_t i, c, k = plan.n_classes
    cdef floating mean, weight
    for i in range(n):
        weight = <floating> plan.weight[first + i]
        mean = 0
        for c in range(k):
            mean += probs[i * k + c] * residual[i * k + c]
        for c in range(k):
            residual[i * k + c] = weight * probs[i * k + c] * (residual[i * k + c] - mean)


cdef void block_pass(
    const pass_plan *plan,
    int what,
    Py_ssize_t lo,
    Py_ssize_t hi,
    const floating *V,          # IN    (n_features + intercept, n_classes)
    floating *scores,           # INOUT (n_rows, n_classes)
    floating *probs,            # INOUT (n_rows, n_classes)
    floating *copy,             # WORK  (tile, n_features), unused for CSR
    floating *residual,         # WORK  (tile, n_classes)
    floating *partial,          # WORK  (n_features + intercept, n_classes), zeros between calls
    double *gradient,           # OUT   (n_features + intercept, n_classes), added to
    double *sums,               # OUT   (N_SUMS,), added to
    bint keeps,                 # scores and probs are kept for all rows; else they are one tile each
) noexcept nogil:
    cdef Py_ssize_t at = lo, n, k = plan.n_classes, j, size = (plan.X.n_features + plan.intercept) * k, since = 0
    cdef Py_ssize_t stride = 0
    cdef const floating *tile = NULL
    cdef floating *row_scores
    cdef floating *row_probs
    while at < hi:
        n = min(plan.tile, hi - at)
        row_scores = scores + at * k if keeps else scores
        row_probs = probs + at * k if keeps else probs
        if plan.X.starts == NULL and what != INTERCEPTS:
            tile = dense_tile(plan, at, n, copy, &stride)
        if what == RISK or what == PRODUCTS:
            tile_scores(plan, at, n, V, tile, stride, row_scores)
        if what == CURVATURE:
            tile_scores(plan, at, n, V, tile, stride, residual)
            curvature_residuals(plan, at, n, row_probs, residual)
        elif what != PRODUCTS:
            risk_residuals(plan, at, n, row_scores, row_probs, residual, sums)
        at += n
        if what == PRODUCTS:
            continue
        if what == INTERCEPTS:
            intercept_sums(plan, n, residual, partial)
        else:
            tile_sums(plan, at - n, n, residual, tile, stride, partial)
        since += n
        if since >= FOLD_ROWS or at == hi:
            for j in range(size):
                gradient[j] += partial[j]
            memset(partial, 0, size * sizeof(floating))
            since = 0


cdef void line_block(const pass_plan *plan, Py_ssize_t lo, Py_ssize_t hi, double step, const floating *scores,
                     const floating *change, floating *moved, double *out) noexcept nogil:
    # risk, slope and curvature of the risk at scores + step change, summed over rows; moved (2, n_classes) is work
    cdef Py_ssize_t i, c, k = plan.n_classes, y
    cdef const floating *t
    cdef double total, mean, square, weight
    for i in range(lo, hi):
        t = change + i * k
        y = plan.labels[i]
        for c in range(k):
            moved[c] = scores[i * k + c] + <floating> step * t[c]
        total = log_sum(moved, k, moved + k)
        mean = square = 0
        for c in range(k):
            mean += <double> moved[k + c] * t[c]
        for c in range(k):
            square += <double> moved[k + c] * (t[c] - mean) * (t[c] - mean)
        weight = plan.weight[i]
        out[0] += weight * (total - moved[y])
        out[1] += weight * (mean - t[y])
        out[2] += weight * square


# ---------------------------------------------------------------- Python wrapper

cdef class SoftmaxRows:
    """Rows, their classes and weights, ready for passes; gradients and sums of every block are kept here.

    Parameters
    ----------
    rows : Rows
    labels : (n_rows,) int64 array of 0 .. n_classes - 1
    weight : (n_rows,) float64 array
    n_classes : int
    intercept : bool
        A column of ones follows the features.
    n_blocks, n_threads : int
        The bits depend on the first and not on the second.
    """

    cdef pass_plan plan
    cdef readonly Rows rows
    cdef readonly Py_ssize_t n_blocks, n_columns
    cdef readonly int n_threads
    cdef readonly object bounds, gradients, sums
    cdef object _labels, _weight, _work

    def __cinit__(self, Rows rows, const int64_t[::1] labels, const double[::1] weight, Py_ssize_t n_classes,
                  bint intercept, Py_ssize_t n_blocks, int n_threads):
        cdef Py_ssize_t n = rows.view.n_rows, m = rows.view.n_features
        if labels.shape[0] != n or weight.shape[0] != n or n_classes < 1 or n < 1 or m < 1:
            raise ValueError("SoftmaxRows: shapes do not fit")
        if np.min(labels) < 0 or np.max(labels) >= n_classes:
            raise ValueError("SoftmaxRows: a label lies outside the classes")
        self.rows, self._labels, self._weight = rows, labels, weight
        self.n_blocks, self.n_threads, self.n_columns = max(1, min(n_blocks, n)), n_threads, m + intercept
        self.plan.X, self.plan.single, self.plan.intercept = rows.view, rows.dtype == np.float32, intercept
        self.plan.n_classes, self.plan.labels, self.plan.weight = n_classes, &labels[0], &weight[0]
        self.plan.tile = max(16, min(512, TILE_NUMBERS // (m + n_classes)))
        if rows.sparse:
            self.plan.tile = 256
        self.bounds = np.linspace(0, n, self.n_blocks + 1).astype(np.int64)
        self.gradients = np.zeros((self.n_blocks, self.n_columns * n_classes))
        self.sums = np.zeros((self.n_blocks, 8))             # a cache line each
        self._work = {}

    def work(self, dtype):
        """Workspace of every thread for products of ``dtype``: tile, residuals, sums, scores, probabilities."""
        cdef Py_ssize_t k = self.plan.n_classes, m = 0 if self.rows.sparse else self.plan.X.n_features
        if dtype not in self._work:
            line, threads, tile = 64, self.n_threads, self.plan.tile
            copies = not self.rows.sparse and (
                dtype != self.rows.dtype or (self.plan.X.column_stride != 1 and m != 1) or self.plan.X.row_stride < m)
            self._work = {dtype: (np.empty((threads, tile * m if copies else 1), dtype),
                                  np.empty((threads, tile * k + line), dtype),
                                  np.zeros((threads, self.n_columns * k + line), dtype),
                                  np.empty((threads, tile * k + line), dtype),
                                  np.empty((threads, tile * k + line), dtype))}
        return self._work[dtype]

    def check_kept(self, kept, needed):
        if kept.shape != (self.plan.X.n_rows, self.plan.n_classes) and (needed or kept.shape[0]):
            raise ValueError("SoftmaxRows: scores or probabilities of all rows are not there, or do not fit")

    def run(self, int what, const floating[:, ::1] V, floating[:, ::1] scores, floating[:, ::1] probs,
            Py_ssize_t first, Py_ssize_t last):
        """One ``task`` over blocks ``first .. last - 1``, into their sums; the caller sets those to zero before.

        ``scores`` and ``probs`` are (n_rows, n_classes), or (0, 0) where they need not be kept.
        """
        cdef Py_ssize_t b, k = self.plan.n_classes
        cdef bint keeps = scores.shape[0] > 0 or probs.shape[0] > 0
        cdef int t
        if what < RISK or what > INTERCEPTS or V.shape[0] != self.n_columns or V.shape[1] != k:
            raise ValueError("SoftmaxRows.run: shapes do not fit")
        if first < 0 or last > self.n_blocks:
            raise ValueError("SoftmaxRows.run: no such blocks")
        if keeps or what != RISK:
            self.check_kept(np.asarray(scores), what != CURVATURE)
            self.check_kept(np.asarray(probs), what != PRODUCTS)
        dtype = np.dtype(np.float32 if floating is float else np.float64)
        cdef floating[:, ::1] copy, residual, partial, tile_scores_, tile_probs
        copy, residual, partial, tile_scores_, tile_probs = self.work(dtype)
        cdef const int64_t[::1] bounds = self.bounds
        cdef double[:, ::1] gradients = self.gradients, sums = self.sums
        cdef floating *kept_scores = &scores[0, 0] if scores.shape[0] else NULL
        cdef floating *kept_probs = &probs[0, 0] if probs.shape[0] else NULL
        for b in prange(first, last, nogil=True, num_threads=self.n_threads, schedule="static", chunksize=1):
            t = threadid()
            block_pass(&self.plan, what, bounds[b], bounds[b + 1], &V[0, 0],
                       kept_scores if keeps else &tile_scores_[t, 0], kept_probs if keeps else &tile_probs[t, 0],
                       &copy[t, 0], &residual[t, 0], &partial[t, 0], &gradients[b, 0], &sums[b, 0], keeps)

    def line(self, double step, const floating[:, ::1] scores, const floating[:, ::1] change):
        """Sums over rows of risk, slope and curvature at ``scores + step change``, folded in block order: (3,)."""
        cdef Py_ssize_t b, k = self.plan.n_classes
        if scores.shape[0] != self.plan.X.n_rows or change.shape[0] != scores.shape[0] or \
                scores.shape[1] != k or change.shape[1] != k:
            raise ValueError("SoftmaxRows.line: shapes do not fit")
        cdef floating[:, ::1] moved = np.empty((self.n_threads, 2 * k + 32),
                                               np.float32 if floating is float else np.float64)
        cdef const int64_t[::1] bounds = self.bounds
        cdef double[:, ::1] out = np.zeros((self.n_blocks, 8))
        for b in prange(self.n_blocks, nogil=True, num_threads=self.n_threads, schedule="static", chunksize=1):
            line_block(&self.plan, bounds[b], bounds[b + 1], step, &scores[0, 0], &change[0, 0], &moved[threadid(), 0],
                       &out[b, 0])
        return np.asarray(out)[:, :3].sum(axis=0)
