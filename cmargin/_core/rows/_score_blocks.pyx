"""Blocks of rows and all one-vs-rest problems on them: margins, and sums of losses and gradients.

    z_ic = y_ic (<w_c, x_i> + b_c),   sums over i of  s_i F(z_ic),  s_i y_ic F'(z_ic) x_i,  s_i y_ic F'(z_ic)

Everything is float64 whatever the data. A block is one thread's, with sums of its own; they are folded in the order of
the blocks: the same bits for any number of threads. Within a block rows go by tiles, while which their copy and their
scores are in cache.
"""

from libc.stdint cimport int64_t
from libc.string cimport memset

from cmargin._core.linalg._blas cimport NO_TRANS, TRANS, gemm
from cmargin._core.losses._losses cimport N_LOSSES, point, point_loss
from cmargin._core.losses._point cimport loss_of, loss_t
from cmargin._core.rows._dense_tile cimport dense_tile
from cmargin._core.rows._rows cimport Rows, column_of, rows_view, value_at
from cmargin._core.util._shapes cimport must_fit, within
from cmargin._core.util._simd cimport row_axpy
from cmargin._core.util._team cimport share_out


cdef struct problem_blocks:
    const rows_view *X
    const int64_t *starts       # CSR indicator of the positives
    const int64_t *labels
    const double *weight        # (n_rows,), NULL for ones
    const double *W             # (n_features, n_problems)
    const double *bias
    loss_t loss
    const double *scale         # (n_problems,) the loss's parameter b in each
    Py_ssize_t first            # the problems at work: first .. first + n_problems - 1
    Py_ssize_t n_problems
    Py_ssize_t every            # of a block only rows first, first + every, ...
    Py_ssize_t tile


# ---------------------------------------------------------------- one tile

cdef void tile_margins(const problem_blocks *at, Py_ssize_t first, Py_ssize_t n, const double *tile, Py_ssize_t stride,
                       double *out) noexcept nogil:
    # out (n, n_problems) = y (X W + b)
    cdef const rows_view *X = at.X
    cdef Py_ssize_t i, c, k = at.n_problems, row
    cdef int64_t entry
    if X.starts == NULL:
        # out = tile W   (n, k) = (n, m) (m, k)
        gemm(NO_TRANS, NO_TRANS, n, k, X.n_features, 1, tile, stride, at.W, k, 0, out, k)
    else:
        memset(out, 0, n * k * sizeof(double))
    for i in range(n):
        row = first + i * at.every
        if X.starts != NULL:
            for entry in range(X.starts[row], X.starts[row + 1]):
                row_axpy(value_at(X, entry), at.W + column_of(X, entry) * k, out + i * k, k)
        for c in range(k):
            out[i * k + c] = -(out[i * k + c] + at.bias[c])
        for entry in range(at.starts[row], at.starts[row + 1]):
            c = at.labels[entry] - at.first
            if 0 <= c < k:
                out[i * k + c] = -out[i * k + c]


cdef void tile_slopes(const problem_blocks *at, Py_ssize_t first, Py_ssize_t n, double *margins, double *value,
                      double *slope) noexcept nogil:
    # margins become s y F'(z); their sums and those of the losses
    cdef Py_ssize_t i, c, k = at.n_problems, row
    cdef int64_t entry
    cdef loss_t loss = at.loss
    cdef double s
    cdef point there
    for i in range(n):
        row = first + i * at.every
        s = at.weight[row] if at.weight != NULL else 1
        for c in range(k):
            loss.b = at.scale[c]
            there = point_loss(&loss, margins[i * k + c])
            value[c] += s * there.value
            margins[i * k + c] = -s * there.slope
        for entry in range(at.starts[row], at.starts[row + 1]):
            c = at.labels[entry] - at.first
            if 0 <= c < k:
                margins[i * k + c] = -margins[i * k + c]
        row_axpy(1, margins + i * k, slope, k)


cdef void tile_gradient(const problem_blocks *at, Py_ssize_t first, Py_ssize_t n, const double *tile, Py_ssize_t stride,
                        const double *slopes, double *gradient) noexcept nogil:
    cdef const rows_view *X = at.X
    cdef Py_ssize_t i, k = at.n_problems, row
    cdef int64_t entry
    if X.starts == NULL:
        # gradient += tile' slopes   (m, k) = (m, n) (n, k)
        gemm(TRANS, NO_TRANS, X.n_features, k, n, 1, tile, stride, slopes, k, 1, gradient, k)
        return
    for i in range(n):
        row = first + i * at.every
        for entry in range(X.starts[row], X.starts[row + 1]):
            row_axpy(value_at(X, entry), slopes + i * k, gradient + column_of(X, entry) * k, k)


# ---------------------------------------------------------------- one block

cdef void block_sums(const problem_blocks *at, Py_ssize_t lo, Py_ssize_t hi, double *copy, double *margins,
                     double *sums) noexcept nogil:
    # sums: value (k,), slope (k,), gradient (m, k)
    cdef Py_ssize_t i = lo, n, k = at.n_problems, stride = 0
    cdef const double *tile = NULL
    memset(sums, 0, (2 + at.X.n_features) * k * sizeof(double))
    while i < hi:
        n = min(at.tile, (hi - i + at.every - 1) // at.every)
        if at.X.starts == NULL:
            tile = dense_tile(at.X, i, at.every, n, copy, &stride)
        tile_margins(at, i, n, tile, stride, margins)
        tile_slopes(at, i, n, margins, sums, sums + k)
        tile_gradient(at, i, n, tile, stride, margins, sums + 2 * k)
        i += n * at.every


cdef void block_margins(const problem_blocks *at, Py_ssize_t lo, Py_ssize_t hi, double *copy, double *margins,
                        Py_ssize_t n_rows, double *out) noexcept nogil:
    cdef Py_ssize_t first = lo, n, i, c, k = at.n_problems, stride = 0
    cdef const double *tile = NULL
    while first < hi:
        n = min(at.tile, hi - first)
        if at.X.starts == NULL:
            tile = dense_tile(at.X, first, 1, n, copy, &stride)
        tile_margins(at, first, n, tile, stride, margins)
        for c in range(k):
            for i in range(n):
                out[c * n_rows + first + i] = margins[i * k + c]
        first += n


cdef struct blocks_work:            # what threads share of sums or margins
    const problem_blocks *at
    const int64_t *bounds           # (n_blocks + 1,)
    double *copy
    double *margins
    double *sums
    double *out                     # (n_problems, n_rows) margins
    Py_ssize_t copy_size, margins_size, sums_size


cdef void do_sums(void *of, Py_ssize_t b, int thread) noexcept nogil:
    # every block has sums of its own, and so workspace
    cdef const blocks_work *by = <blocks_work *> of
    block_sums(by.at, by.bounds[b], by.bounds[b + 1], by.copy + b * by.copy_size, by.margins + b * by.margins_size,
               by.sums + b * by.sums_size)


cdef void do_margins(void *of, Py_ssize_t b, int thread) noexcept nogil:
    cdef const blocks_work *by = <blocks_work *> of
    block_margins(by.at, by.bounds[b], by.bounds[b + 1], by.copy + thread * by.copy_size,
                  by.margins + thread * by.margins_size, by.at.X.n_rows, by.out)


# ---------------------------------------------------------------- Python wrapper

cdef class ProblemRows:
    """Rows and the one-vs-rest problems posed on them; workspace of every thread.

    ``starts``, ``labels``: CSR indicator (n_rows, n_problems) of the positives, int64; ``weight``: (n_rows,), or (0,)
    for ones; ``tile``: rows read at a time, on which the bits depend.
    ``copy`` (n_threads, tile n_features or 0), ``margins`` (n_threads, tile n_problems), ``sums`` (n_threads, (2 +
    n_features) n_problems): workspace.
    """

    cdef problem_blocks plan
    cdef Rows rows
    cdef const int64_t[::1] _starts, _labels
    cdef const double[::1] _weight
    cdef double[:, ::1] _copy, _margins, _sums

    def __cinit__(self, Rows rows, const int64_t[::1] starts, const int64_t[::1] labels,
                  const double[::1] weight, Py_ssize_t n_problems, Py_ssize_t tile, double[:, ::1] copy,
                  double[:, ::1] margins, double[:, ::1] sums):
        cdef Py_ssize_t i, n = rows.view.n_rows, m = rows.view.n_features
        must_fit(starts.shape[0] == n + 1 and within(starts, labels.shape[0]) and weight.shape[0] in (0, n)
                 and tile >= 1 and n_problems >= 1, "ProblemRows")
        must_fit(copy.shape[1] >= (0 if rows.sparse else tile * m) and margins.shape[1] >= tile * n_problems
                 and sums.shape[1] >= (2 + m) * n_problems and copy.shape[0] == margins.shape[0] == sums.shape[0]
                 and sums.shape[0] >= 1, "ProblemRows, workspace")
        for i in range(labels.shape[0]):
            must_fit(0 <= labels[i] < n_problems, "ProblemRows, labels")
        self.rows, self._starts, self._labels, self._weight = rows, starts, labels, weight
        self._copy, self._margins, self._sums = copy, margins, sums
        self.plan.X, self.plan.n_problems, self.plan.tile = &rows.view, n_problems, tile
        self.plan.first = 0
        self.plan.starts, self.plan.labels = &starts[0], &labels[0] if labels.shape[0] else NULL
        self.plan.weight = &weight[0] if weight.shape[0] else NULL

    cdef blocks_work work(self, const problem_blocks *at):
        cdef blocks_work work
        work.at, work.bounds, work.out = at, NULL, NULL
        work.copy = &self._copy[0, 0] if self._copy.shape[1] else NULL
        work.margins, work.sums = &self._margins[0, 0], &self._sums[0, 0]
        work.copy_size, work.margins_size = self._copy.shape[1], self._margins.shape[1]
        work.sums_size = self._sums.shape[1]
        return work

    def sums(self, const double[:, ::1] W, const double[::1] bias, int loss, double level, const double[::1] scale,
             const int64_t[::1] bounds, Py_ssize_t every, double[::1] value, double[::1] slope,
             double[:, ::1] gradient):
        """Add the sums over blocks ``bounds[b] .. bounds[b + 1] - 1``, at most as many as threads have workspace.

        Adds to ``value`` and ``slope`` (n_problems,) and ``gradient`` (n_features, n_problems), at W of that shape.
        ``loss``, ``level``: see `loss_t`, of which ``scale`` is the parameter b in each problem. ``every``: of each
        block only rows lo, lo + every, lo + 2 every, ...
        """
        cdef problem_blocks plan = self.plan
        cdef Py_ssize_t b, j, k = plan.n_problems, m = plan.X.n_features, n_blocks = bounds.shape[0] - 1
        cdef double *sums
        cdef blocks_work work = self.work(&plan)
        must_fit(W.shape[0] == m and W.shape[1] == k and bias.shape[0] == scale.shape[0] == k and 0 <= loss < N_LOSSES
                 and every >= 1 and value.shape[0] == slope.shape[0] == k and gradient.shape[0] == m
                 and gradient.shape[1] == k, "ProblemRows.sums")
        must_fit(0 <= n_blocks <= self._sums.shape[0] and within(bounds, plan.X.n_rows), "ProblemRows.sums, blocks")
        plan.W, plan.bias, plan.scale, plan.loss = &W[0, 0], &bias[0], &scale[0], loss_of(loss, level, 1)
        plan.every, work.bounds = every, &bounds[0]
        with nogil:
            share_out(do_sums, &work, n_blocks, <int> n_blocks)
            for b in range(n_blocks):
                sums = &self._sums[b, 0]
                for j in range(k):
                    value[j] += sums[j]
                    slope[j] += sums[k + j]
                row_axpy(1, <const double *> sums + 2 * k, &gradient[0, 0], m * k)

    def margins(self, const double[:, ::1] W, const double[::1] bias, Py_ssize_t first, const int64_t[::1] bounds,
                int n_threads, double[:, ::1] out):
        """Margins of the rows of blocks into their columns of ``out`` (k, n_rows), of problems ``first`` to first + k.

        W : (n_features, k) array; bias : (k,) array.
        """
        cdef problem_blocks plan = self.plan
        cdef Py_ssize_t k = W.shape[1], n_blocks = bounds.shape[0] - 1
        cdef blocks_work work = self.work(&plan)
        must_fit(W.shape[0] == plan.X.n_features and 1 <= k == bias.shape[0] == out.shape[0]
                 and 0 <= first <= plan.n_problems - k and out.shape[1] == plan.X.n_rows
                 and 1 <= n_threads <= self._sums.shape[0], "ProblemRows.margins")
        must_fit(n_blocks >= 0 and within(bounds, plan.X.n_rows), "ProblemRows.margins, blocks")
        plan.W, plan.bias, plan.first, plan.n_problems, plan.every = &W[0, 0], &bias[0], first, k, 1
        work.bounds, work.out = &bounds[0], &out[0, 0]
        with nogil:
            share_out(do_margins, &work, n_blocks, n_threads)
