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
from libc.math cimport sqrt
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from cmargin._core.linalg._blas cimport NO_TRANS, TRANS, gemm, syrk
from cmargin._core.losses._softmax cimport curved_rows, softmax_rows, spread_rows
from cmargin._core.rows._csr_classes cimport csr_sums, csr_times
from cmargin._core.rows._dense_tile cimport dense_tile
from cmargin._core.rows._few_classes cimport few_pay, few_sums, few_times
from cmargin._core.rows._rows cimport Rows
from cmargin._core.util._arrays import zeros
from cmargin._core.util._shapes cimport must_fit
from cmargin._core.util._simd cimport row_axpy, rows_sum
from cmargin._core.util._team cimport share_out

cdef enum:
    FOLD_ROWS = 1024    # rows after which sums of the type of the products go into the float64 ones
    TILE_NUMBERS = 1 << 18
    MOST_ROWS = 512     # of a tile


# ---------------------------------------------------------------- kernels

cdef void tile_scores(const softmax_plan *plan, Py_ssize_t first, Py_ssize_t n, const floating *V,
                      const floating *transposed, const floating *tile, Py_ssize_t stride,
                      floating *out) noexcept nogil:
    cdef Py_ssize_t k = plan.n_classes, m = plan.X.n_features, filled = 1
    if plan.intercept:
        memcpy(out, V + m * k, k * sizeof(floating))
        while filled < n:           # twice as many with every call, as one a row takes longer than a few classes do
            memcpy(out + filled * k, out, min(filled, n - filled) * k * sizeof(floating))
            filled *= 2
    else:
        memset(out, 0, n * k * sizeof(floating))
    if plan.few:
        few_times(n, k, m, <floating> 1, tile, stride, transposed, m, out, k)
    elif plan.X.starts == NULL:
        # out += tile V   (n, k) = (n, m) (m, k)
        gemm(NO_TRANS, NO_TRANS, n, k, m, 1, tile, stride, V, k, 1, out, k)
    else:
        csr_times(&plan.X, first, n, V, k, out)


cdef void tile_sums(const softmax_plan *plan, Py_ssize_t first, Py_ssize_t n, const floating *residual,
                    const floating *tile, Py_ssize_t stride, floating *sums) noexcept nogil:
    cdef Py_ssize_t k = plan.n_classes, m = plan.X.n_features
    if plan.few:
        few_sums(n, k, m, <floating> 1, tile, stride, residual, k, sums, m)
    elif plan.X.starts == NULL:
        # sums += tile' residual   (m, k) = (m, n) (n, k)
        gemm(TRANS, NO_TRANS, m, k, n, 1, tile, stride, residual, k, 1, sums, k)
    else:
        csr_sums(&plan.X, first, n, residual, k, sums)
    if plan.intercept:
        rows_sum(residual, n, k, sums + m * k)


cdef void risk_residuals(const softmax_plan *plan, Py_ssize_t first, Py_ssize_t n, const floating *scores,
                         floating *probs, floating *residual, double *sums) noexcept nogil:
    # ln sum exp(h) - <p, h> is the entropy of p
    cdef double[3 * MOST_ROWS] of_rows
    cdef Py_ssize_t i, own, k = plan.n_classes
    cdef double weight, top, ln_sum, mean
    softmax_rows(scores, n, k, plan.weight + first, probs, residual, of_rows, MOST_ROWS)
    for i in range(n):
        own, weight = i * k + plan.labels[first + i], plan.weight[first + i]
        top, ln_sum, mean = of_rows[i], of_rows[MOST_ROWS + i], of_rows[2 * MOST_ROWS + i]
        residual[own] -= <floating> weight
        sums[0] += weight * (top - scores[own] + ln_sum)     # in this order: a small loss beside large scores
        sums[1] += weight * (ln_sum - mean)


cdef void transpose(const floating *V, Py_ssize_t m, Py_ssize_t k, floating *transposed) noexcept nogil:
    # V (m, k) class by class
    cdef Py_ssize_t f, c
    for c in range(k):
        for f in range(m):
            transposed[c * m + f] = V[f * k + c]


cdef void fold_partial(const softmax_plan *plan, Py_ssize_t first, floating *partial, double *gradient) noexcept nogil:
    # gradient += partial = 0, from number ``first`` on: all, or those of the intercepts
    cdef Py_ssize_t k = plan.n_classes, m = plan.X.n_features, c, f, j, done = first
    if plan.few and first == 0:
        for f in range(m):
            for c in range(k):
                gradient[f * k + c] += partial[c * m + f]
        done = m * k
    for j in range(done, plan.n_columns * k):
        gradient[j] += partial[j]
    memset(partial + first, 0, (plan.n_columns * k - first) * sizeof(floating))


cdef void block_pass(
    const softmax_plan *plan,
    int what,
    Py_ssize_t lo,
    Py_ssize_t hi,
    const floating *V,          # IN    (n_columns, n_classes)
    floating *scores,           # INOUT (n_rows, n_classes)
    floating *probs,            # INOUT (n_rows, n_classes)
    floating *copy,             # WORK  (tile, n_features), unused for CSR
    floating *residual,         # WORK  (tile, n_classes)
    floating *transposed,       # WORK  for few classes
    floating *partial,          # WORK  (n_columns, n_classes), zeros between calls
    double *gradient,           # OUT   (n_columns, n_classes)
    double *sums,               # OUT   (N_SUMS,)
) noexcept nogil:
    cdef Py_ssize_t at = lo, n, k = plan.n_classes, since = 0, stride = 0
    cdef Py_ssize_t start = plan.X.n_features * k if what == INTERCEPTS else 0      # from there on the gradient is
    cdef const floating *tile = NULL
    if what != PRODUCTS:
        memset(gradient + start, 0, (plan.n_columns * k - start) * sizeof(double))
        memset(sums, 0, N_SUMS * sizeof(double))
    if plan.few and (what == RISK or what == PRODUCTS or what == CURVATURE):
        transpose(V, plan.X.n_features, k, transposed)
    while at < hi:
        n = min(plan.tile, hi - at)
        if plan.X.starts == NULL and what != INTERCEPTS:
            tile = dense_tile(&plan.X, at, 1, n, copy, &stride)
        if what == RISK or what == PRODUCTS:
            tile_scores(plan, at, n, V, transposed, tile, stride, scores + at * k)
        if what == CURVATURE:
            tile_scores(plan, at, n, V, transposed, tile, stride, residual)
            curved_rows(probs + at * k, residual, n, k, plan.weight + at)
        elif what != PRODUCTS:
            risk_residuals(plan, at, n, scores + at * k, probs + at * k, residual, sums)
        at += n
        if what == PRODUCTS:
            continue
        if what != INTERCEPTS:
            tile_sums(plan, at - n, n, residual, tile, stride, partial)
        elif plan.intercept:
            rows_sum(residual, n, k, partial + plan.X.n_features * k)
        since += n
        if since >= FOLD_ROWS or at == hi:
            fold_partial(plan, start, partial, gradient)
            since = 0


cdef void line_block(const softmax_plan *plan, Py_ssize_t lo, Py_ssize_t hi, double step, const floating *scores,
                     const floating *change, floating *moved, double *out) noexcept nogil:
    # risk, slope and curvature of the risk at scores + step change, summed; moved (tile + 1, n_classes) is work
    cdef double[3 * MOST_ROWS] of_rows
    cdef double[2 * MOST_ROWS] of_change
    cdef double[MOST_ROWS] of_truth
    cdef Py_ssize_t at = lo, i, n, k = plan.n_classes
    cdef double weight
    memset(out, 0, N_SUMS * sizeof(double))
    while at < hi:
        n = min(plan.tile, hi - at)
        memcpy(moved, scores + at * k, n * k * sizeof(floating))
        row_axpy(step, change + at * k, moved, n * k)
        for i in range(n):
            of_truth[i] = moved[i * k + plan.labels[at + i]]
        softmax_rows(moved, n, k, NULL, moved, <floating *> NULL, of_rows, MOST_ROWS)
        spread_rows(moved, change + at * k, n, k, moved + n * k, of_change, MOST_ROWS)
        for i in range(n):
            weight = plan.weight[at + i]
            out[0] += weight * (of_rows[i] - of_truth[i] + of_rows[MOST_ROWS + i])
            out[1] += weight * (of_change[i] - change[(at + i) * k + plan.labels[at + i]])
            out[2] += weight * of_change[MOST_ROWS + i]
        at += n


cdef inline void move_block(const softmax_plan *plan, Py_ssize_t b, floating step, floating *scores,
                            const floating *change) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(plan.bounds[b] * plan.n_classes, plan.bounds[b + 1] * plan.n_classes):
        scores[j] += step * change[j]


cdef struct blocks_work:            # what threads share, as each task needs it
    const softmax_plan *plan
    Py_ssize_t first                # block
    bint single                     # all pointers are to floats, else to doubles
    int what
    double step
    const void *V
    const void *change
    void *scores
    void *probs


cdef void one_block(const blocks_work *by, Py_ssize_t b, int t, floating *scores) noexcept nogil:
    cdef const softmax_plan *plan = by.plan
    cdef floating *residual = <floating *> plan.residual + t * plan.residual_size
    if by.what == MOVE:
        move_block(plan, b, <floating> by.step, scores, <const floating *> by.change)
    elif by.what == LINE:
        line_block(plan, plan.bounds[b], plan.bounds[b + 1], by.step, scores, <const floating *> by.change, residual,
                   plan.sums + b * N_SUMS)
    else:
        block_pass(plan, by.what, plan.bounds[b], plan.bounds[b + 1], <const floating *> by.V, scores,
                   <floating *> by.probs, <floating *> plan.copy + t * plan.copy_size, residual,
                   <floating *> plan.transposed + t * plan.transposed_size,
                   <floating *> plan.partial + t * plan.partial_size,
                   plan.gradients + b * plan.n_columns * plan.n_classes, plan.sums + b * N_SUMS)


cdef void do_block(void *of, Py_ssize_t item, int t) noexcept nogil:
    cdef const blocks_work *by = <blocks_work *> of
    if by.single:
        one_block(by, by.first + item, t, <float *> by.scores)
    else:
        one_block(by, by.first + item, t, <double *> by.scores)


cdef void softmax_blocks(const softmax_plan *plan, int what, const floating *V, floating *scores, floating *probs,
                         Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    cdef blocks_work work
    work.plan, work.first, work.single, work.what = plan, first, floating is float, what
    work.V, work.scores, work.probs = V, scores, probs
    share_out(do_block, &work, last - first, plan.n_threads)


cdef void along_blocks(const softmax_plan *plan, int what, double step, floating *scores, const floating *change,
                       Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    cdef blocks_work work
    work.plan, work.first, work.single, work.what, work.step = plan, first, floating is float, what, step
    work.scores, work.change = scores, change
    share_out(do_block, &work, last - first, plan.n_threads)


cdef void softmax_line(const softmax_plan *plan, double step, const floating *scores, const floating *change,
                       Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    along_blocks(plan, LINE, step, <floating *> scores, change, first, last)      # which are only read


cdef void softmax_move(const softmax_plan *plan, double step, floating *scores, const floating *change,
                       Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    along_blocks(plan, MOVE, step, scores, change, first, last)


cdef double softmax_mean(const softmax_plan *plan, Py_ssize_t which) noexcept nogil:
    cdef Py_ssize_t b
    cdef double total = 0
    for b in range(plan.n_blocks):
        total += plan.sums[b * N_SUMS + which]
    return total / plan.X.n_rows


cdef void softmax_class_curvature(const floating *probs, const double *weight, Py_ssize_t n, Py_ssize_t k,
                                  Py_ssize_t stride, double *A, double *room) noexcept nogil:
    cdef Py_ssize_t i = 0, j, c, here = 0
    cdef double total = 0, root
    cdef double *diagonal = room
    cdef double *rows = room + k
    memset(A, 0, k * k * sizeof(double))
    memset(diagonal, 0, k * sizeof(double))
    while i < n:
        root = sqrt(weight[i])
        total += weight[i]
        for c in range(k):
            rows[here * k + c] = root * probs[i * k + c]
            diagonal[c] += weight[i] * probs[i * k + c]
        here += 1
        i += stride
        if here == CURVATURE_ROWS or i >= n:
            # A -= rows' rows   (k, k) = (k, here) (here, k), upper triangle
            syrk(TRANS, k, here, -1, rows, k, 1, A, k)
            here = 0
    for c in range(k):
        A[c * k + c] += diagonal[c]
        for j in range(c, k):
            A[c * k + j] /= total


# ---------------------------------------------------------------- Python wrapper

def class_curvature(const floating[:, ::1] probs, const double[::1] weight, Py_ssize_t stride):
    """Mean of diag(p) - p p' by weight over every ``stride``-th row of ``probs``, symmetric (n_classes, n_classes)."""
    cdef Py_ssize_t n = probs.shape[0], k = probs.shape[1]
    must_fit(weight.shape[0] == n > 0 and k > 0 and stride > 0, "class_curvature")
    cdef double[:, ::1] A = np.empty((k, k))
    cdef double[::1] room = np.empty((CURVATURE_ROWS + 1) * k)
    cdef Py_ssize_t c, j
    with nogil:
        softmax_class_curvature(&probs[0, 0], &weight[0], n, k, stride, &A[0, 0], &room[0])
        for c in range(k):
            for j in range(c):
                A[c, j] = A[j, c]
    return np.asarray(A)


cdef class SoftmaxRows:
    """Rows, their classes and weights, ready for passes; gradients and sums of every block are kept here.

    ``labels``: (n_rows,) int64 of 0 .. n_classes - 1. With an ``intercept`` a column of ones follows the features. The
    bits depend on ``n_blocks`` and not on ``n_threads``. Where ``rows`` has no rows these are elsewhere: what needs no
    row is done by labels and weights, if they are here; without them there are ``n_rows`` of them.
    """

    def __cinit__(self, Rows rows, const int64_t[::1] labels, const double[::1] weight, Py_ssize_t n_classes,
                  bint intercept, Py_ssize_t n_blocks, int n_threads, Py_ssize_t n_rows=0):
        cdef Py_ssize_t n = rows.view.n_rows, m = rows.view.n_features
        cdef softmax_plan *plan = &self.plan
        cdef int64_t[::1] bounds
        cdef double[:, ::1] gradients, sums
        self.here, self.labelled = n > 0, labels.shape[0] > 0
        if not self.here:
            n = labels.shape[0] if self.labelled else n_rows
        if (labels.shape[0] != n and self.labelled) or weight.shape[0] != labels.shape[0] or n_classes < 1 or n < 1 \
                or m < 1 or (self.here and not self.labelled):
            raise ValueError("SoftmaxRows: shapes do not fit")
        if self.labelled and (np.min(labels) < 0 or np.max(labels) >= n_classes):
            raise ValueError("SoftmaxRows: a label lies outside the classes")
        self.rows, self._labels, self._weight = rows, labels, weight
        self.n_blocks, self.n_columns = max(1, min(n_blocks, n)), m + intercept
        plan.X, plan.intercept, plan.X.n_rows = rows.view, intercept, n
        plan.n_classes = n_classes
        if self.labelled:
            plan.labels, plan.weight = &labels[0], &weight[0]
        plan.n_columns, plan.n_blocks, plan.n_threads = self.n_columns, self.n_blocks, n_threads
        plan.tile = 256 if rows.sparse else max(16, min(MOST_ROWS, TILE_NUMBERS // (m + n_classes)))
        bounds = self.bounds = np.linspace(0, n, self.n_blocks + 1).astype(np.int64)
        gradients = self.gradients = zeros((self.n_blocks, self.n_columns * n_classes))
        sums = self.sums = zeros((self.n_blocks, N_SUMS))
        plan.bounds, plan.gradients, plan.sums = &bounds[0], &gradients[0, 0], &sums[0, 0]
        self._room = None

    cdef int use_type(self, dtype) except -1:
        """Workspace of every thread for products of ``dtype``."""
        cdef softmax_plan *plan = &self.plan
        cdef Py_ssize_t k = plan.n_classes, m = plan.X.n_features, line = 64, address
        if self._room is not None and dtype == self._room[0]:
            return 0
        if dtype != np.float32 and dtype != np.float64:
            raise TypeError(f"SoftmaxRows: products of type {dtype}")
        copies = not self.rows.sparse and (
            dtype != self.rows.dtype or (plan.X.column_stride != 1 and m != 1) or plan.X.row_stride < m)
        plan.copy_size, plan.residual_size = plan.tile * m if copies else 1, (plan.tile + 1) * k + line
        plan.few = not self.rows.sparse and few_pay(k, m, dtype == np.float32)
        plan.transposed_size, plan.partial_size = m * k + line if plan.few else 1, self.n_columns * k + line
        sizes = (plan.copy_size, plan.residual_size, plan.transposed_size, plan.partial_size)
        self._room = dtype, [zeros(plan.n_threads * size, dtype) for size in sizes]
        addresses = [room.__array_interface__["data"][0] for room in self._room[1]]
        address = addresses[0]
        plan.copy = <void *> address
        address = addresses[1]
        plan.residual = <void *> address
        address = addresses[2]
        plan.transposed = <void *> address
        address = addresses[3]
        plan.partial = <void *> address
        return 0

    @property
    def few(self):
        """Whether the last pass, of dense rows and few classes, went without gemm."""
        return self.plan.few

    def check_kept(self, kept, needed):
        if not self.labelled:
            needed = False
        if kept.shape != (self.plan.X.n_rows, self.plan.n_classes) and (needed or kept.shape[0]):
            raise ValueError("SoftmaxRows: scores or probabilities of all rows are not there, or do not fit")

    def run(self, int what, const floating[:, ::1] V, floating[:, ::1] scores, floating[:, ::1] probs,
            Py_ssize_t first, Py_ssize_t last):
        """One ``task`` over blocks ``first .. last - 1``, into their gradients and sums.

        ``scores`` and ``probs`` are (n_rows, n_classes), or (0, 0) where the task does without.
        """
        if what < RISK or what > INTERCEPTS or V.shape[0] != self.n_columns or V.shape[1] != self.plan.n_classes:
            raise ValueError("SoftmaxRows.run: shapes do not fit")
        if first < 0 or last > self.n_blocks:
            raise ValueError("SoftmaxRows.run: no such blocks")
        if not self.labelled or (not self.here and what != INTERCEPTS):
            raise ValueError("SoftmaxRows.run: the rows are elsewhere")
        self.check_kept(np.asarray(scores), what != CURVATURE)
        self.check_kept(np.asarray(probs), what != PRODUCTS)
        self.use_type(np.dtype(np.float32 if floating is float else np.float64))
        cdef floating *kept_scores = &scores[0, 0] if scores.shape[0] else NULL
        cdef floating *kept_probs = &probs[0, 0] if probs.shape[0] else NULL
        with nogil:
            softmax_blocks(&self.plan, what, &V[0, 0], kept_scores, kept_probs, first, last)

    def line(self, double step, const floating[:, ::1] scores, const floating[:, ::1] change):
        """Means over rows of risk, slope and curvature at ``scores + step change``, folded in block order."""
        if not self.labelled:
            raise ValueError("SoftmaxRows.line: the rows are elsewhere")
        self.check_kept(np.asarray(scores), True)
        self.check_kept(np.asarray(change), True)
        self.use_type(np.dtype(np.float32 if floating is float else np.float64))
        with nogil:
            softmax_line(&self.plan, step, &scores[0, 0], &change[0, 0], 0, self.n_blocks)
        return softmax_mean(&self.plan, 0), softmax_mean(&self.plan, 1), softmax_mean(&self.plan, 2)
