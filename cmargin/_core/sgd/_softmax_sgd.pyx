"""Mini-batch passes of the multinomial risk in whitened coordinates, all classes at once.

One batch of n rows z_i, with U (n_classes, width) the whitened weights, s_i the weights of the rows and Y their labels
as an indicator:

    M = Z U' + b,   G_i = s_i (softmax(M_i) - Y_i),   U -= step G' Z,   b -= step bias_rate G' 1

which is W -= step G' (X - centre) H*, because z_i = H*^(1/2) (x_i - centre) and w = H*^(1/2) u. CSR rows with a scaled
tail have two parts, as in _class_sgd: H* = I / d_{k+1} - P M P', so that a score is

    <v_c, x_i - centre> / d_{k+1} - <u_c, z_i> + b_c,       v_c = sum of changes a_jc times (x_j - centre)

V keeps the sum of a_jc x_j, and ``shift`` what the centre takes from it, so that no row is centred (notation.md).

U is cut into blocks of classes and of columns, a plan of its shape alone. A block multiplies its columns of the batch
with its weights, and moves them: one thread does both, so that a block's weights stay in its cache. In between, each
row's score is the sum of its blocks in order. So the bits do not depend on the number of threads.

A row whose z_i'z_i is a multiple of the mean would be moved far past what its step is to mend. So G_i is also times

    (1 + step (m + bias_rate) / 4) / (1 + step (z_i'z_i + bias_rate) / 4),     m the mean of z'z,

which is what an implicit step leaves of the row at curvature 1/4 = max p (1 - p), relative to a row of mean length. It
is 1 where all rows have one length, and in the limit of short steps: the minimum sought is that of the risk. Never less
than `LEAST_WORTH`, or a class of one row far from all others would not be learnt.

After the batches, others are only looked at, by the mean of the weights where there is one: passes judged by held-out
rows are one call, which lets other threads of Python in once.
"""

import numpy as np

from cython cimport floating
from libc.math cimport INFINITY, isfinite
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from cmargin._core.linalg._blas cimport NO_TRANS, TRANS, gemm
from cmargin._core.losses._softmax cimport FEW_CLASSES, softmax_rows
from cmargin._core.rows._dense_tile cimport column_of
from cmargin._core.rows._few_classes cimport few_pay, few_sums, few_times
from cmargin._core.rows._rows cimport Rows, rows_view
from cmargin._core.util._shapes cimport must_fit
from cmargin._core.util._simd cimport row_axpy, row_dot, row_lerp, row_prefetch
from cmargin._core.util._team cimport share_out

LARGEST_LENGTH = 1e300          # of a whitened row, squared, so that no step of zero times it is NaN
LEAST_WORTH = 0.25              # of a row far out

cdef enum:
    ROW_GROUP = 16              # rows whose softmax one thread takes at a time, half of them where classes are many
    PIECE = 256                 # rows whose lengths one thread takes at a time
    AHEAD = 4                   # entries of a CSR row ahead of which their weights are asked for


cdef struct block_plan:
    Py_ssize_t n_classes
    Py_ssize_t width
    Py_ssize_t class_block      # classes of one block
    Py_ssize_t column_block     # columns of one block
    Py_ssize_t n_class_blocks
    Py_ssize_t n_column_blocks
    double bias_rate
    double low_sign
    double tail_inverse
    double centre_square
    double least_worth


# ---------------------------------------------------------------- one block of weights

cdef void block_scores(const block_plan *at, Py_ssize_t block, const rows_view *X, const int64_t *order,
                       const double *centre_dot, Py_ssize_t n, const floating *Z, const floating *U, const floating *V,
                       const double *shift, floating *parts, Py_ssize_t part_size) noexcept nogil:
    # this block's share of M (n, n_classes), one part for every block of columns
    cdef Py_ssize_t c, i, q = block % at.n_column_blocks
    cdef Py_ssize_t class_lo = block // at.n_column_blocks * at.class_block, column_lo = q * at.column_block
    cdef Py_ssize_t n_here = min(at.class_block, at.n_classes - class_lo)
    cdef Py_ssize_t n_columns = min(at.column_block, at.width - column_lo)
    cdef int64_t entry, last
    cdef floating *M = parts + q * part_size + class_lo
    # M = low_sign Z U'   (n, n_here) = (n, n_columns) (n_columns, n_here)
    if few_pay(n_here, n_columns, sizeof(floating) == sizeof(float)):
        for i in range(n):
            memset(M + i * at.n_classes, 0, n_here * sizeof(floating))
        few_times(n, n_here, n_columns, <floating> at.low_sign, Z + column_lo, at.width,
                  U + class_lo * at.width + column_lo, at.width, M, at.n_classes)
    else:
        gemm(NO_TRANS, TRANS, n, n_here, n_columns, at.low_sign, Z + column_lo, at.width,
             U + class_lo * at.width + column_lo, at.width, 0, M, at.n_classes)
    if at.tail_inverse == 0:
        return
    for i in range(n):
        for c in range(n_here):
            M[i * at.n_classes + c] -= <floating> (
                at.tail_inverse * (shift[3 * (class_lo + c)] * centre_dot[i] + shift[3 * (class_lo + c) + 1]))
        last = X.starts[order[i] + 1]
        for entry in range(X.starts[order[i]], last):
            if entry + AHEAD < last:
                row_prefetch(V + column_of(X, entry + AHEAD) * at.n_classes + class_lo, n_here)
            row_axpy(at.tail_inverse * (<const floating *> X.values)[entry],
                     V + column_of(X, entry) * at.n_classes + class_lo, M + i * at.n_classes, n_here)


cdef void block_update(const block_plan *at, Py_ssize_t block, const rows_view *X, const int64_t *order,
                       const double *centre_dot, Py_ssize_t n, const floating *Z, const floating *G, double step,
                       int64_t sample, int64_t n_samples, bint average, floating *U, floating *U_mean, floating *V,
                       floating *V_lag, double *shift, double *bias) noexcept nogil:
    # U -= step G' Z of this block, and the mean where this iterate is sample ``sample`` > 0 of it
    cdef Py_ssize_t c, i, q = block % at.n_column_blocks
    cdef Py_ssize_t class_lo = block // at.n_column_blocks * at.class_block, column_lo = q * at.column_block
    cdef Py_ssize_t n_here = min(at.class_block, at.n_classes - class_lo)
    cdef Py_ssize_t n_columns = min(at.column_block, at.width - column_lo), place
    cdef int64_t entry, last
    cdef double total, met, change, lag = <double> n_samples * (n_samples + 1) / 2
    cdef double rate = 2.0 / (sample + 1)               # sample s weighs s: late iterates count more
    # U -= step G' Z   (n_here, n_columns) = (n_here, n) (n, n_columns)
    if few_pay(n_here, n_columns, sizeof(floating) == sizeof(float)):
        few_sums(n, n_here, n_columns, <floating> -step, Z + column_lo, at.width, G + class_lo, at.n_classes,
                 U + class_lo * at.width + column_lo, at.width)
    else:
        gemm(TRANS, NO_TRANS, n_here, n_columns, n, -step, G + class_lo, at.n_classes, Z + column_lo, at.width, 1,
             U + class_lo * at.width + column_lo, at.width)
    if average and sample > 0:
        for c in range(class_lo, class_lo + n_here):
            row_lerp(rate, U + c * at.width + column_lo, U_mean + c * at.width + column_lo, n_columns)
    if q > 0:
        return
    for c in range(class_lo, class_lo + n_here):        # the first block of columns looks after the intercepts
        total = 0
        met = 0
        for i in range(n):
            total += G[i * at.n_classes + c]
        bias[2 * c] -= step * at.bias_rate * total
        if average and sample > 0:
            bias[2 * c + 1] += rate * (bias[2 * c] - bias[2 * c + 1])
        if at.tail_inverse == 0:
            continue
        for i in range(n):
            met += G[i * at.n_classes + c] * (centre_dot[i] - at.centre_square)
        shift[3 * c] -= step * total
        shift[3 * c + 1] -= step * met
        if average and sample > 0:
            shift[3 * c + 2] += rate * (shift[3 * c] - shift[3 * c + 2])
    if at.tail_inverse == 0:
        return
    for i in range(n):
        last = X.starts[order[i] + 1]
        for entry in range(X.starts[order[i]], last):
            if entry + AHEAD < last:
                row_prefetch(V + column_of(X, entry + AHEAD) * at.n_classes + class_lo, n_here)
                if average:
                    row_prefetch(V_lag + column_of(X, entry + AHEAD) * at.n_classes + class_lo, n_here)
            place = column_of(X, entry) * at.n_classes + class_lo
            change = -step * (<const floating *> X.values)[entry]
            row_axpy(change, G + i * at.n_classes + class_lo, V + place, n_here)
            if average:                 # samples 1 .. n_samples of the mean do not see this change
                row_axpy(change * lag, G + i * at.n_classes + class_lo, V_lag + place, n_here)


cdef double square_of_row(const rows_view *X, Py_ssize_t row, const floating *values) noexcept nogil:
    # of a CSR row
    cdef double out = 0
    cdef int64_t entry
    for entry in range(X.starts[row], X.starts[row + 1]):
        out += <double> values[entry] * values[entry]
    return out


# ---------------------------------------------------------------- the softmax of a few rows

cdef void group_gradient(const block_plan *at, Py_ssize_t first, Py_ssize_t last, Py_ssize_t part_size,
                         const int64_t *truth, const double *weight, const double *length, double mean_length,
                         double step, const double *offset, const double *bias, floating *parts, double *loss_out,
                         double *wrong_out, floating *scores_out) noexcept nogil:
    # the first part of rows first .. last - 1 becomes their G; the loss, the error and, unless NULL, the scores of
    # each, before the step
    cdef double[ROW_GROUP] of_truth, worth
    cdef double[3 * ROW_GROUP] of_rows
    cdef Py_ssize_t i, j, c, q, n = last - first
    cdef double s
    cdef floating *h = parts + first * at.n_classes
    for q in range(1, at.n_column_blocks):
        row_axpy(1, h + q * part_size, h, n * at.n_classes)
    for j in range(n):
        for c in range(at.n_classes):
            h[j * at.n_classes + c] += <floating> bias[2 * c]
    if offset != NULL:
        for j in range(n * at.n_classes):
            h[j] += <floating> offset[first * at.n_classes + j]
    if scores_out != NULL:
        memcpy(scores_out + first * at.n_classes, h, n * at.n_classes * sizeof(floating))
    for j in range(n):
        i, s = first + j, weight[first + j] if weight != NULL else 1
        of_truth[j] = h[j * at.n_classes + truth[i]]
        worth[j] = s * max(at.least_worth, (1 + step * (mean_length + at.bias_rate) / 4)
                           / (1 + step * (length[i] + at.bias_rate) / 4))
    softmax_rows(h, n, at.n_classes, worth, <floating *> NULL, h, of_rows, ROW_GROUP)
    for j in range(n):
        i, s = first + j, weight[first + j] if weight != NULL else 1
        h[j * at.n_classes + truth[i]] -= <floating> worth[j]
        loss_out[i] = s * (of_rows[j] - of_truth[j] + of_rows[ROW_GROUP + j])
        if not isfinite(loss_out[i]):                   # scores overflowed
            loss_out[i] = INFINITY
        wrong_out[i] = s * (of_truth[j] < of_rows[j])


# ---------------------------------------------------------------- the batches

cdef struct batch_job:          # what threads share; void pointers are to floats where ``single``, else to doubles
    block_plan plan
    const rows_view *X
    const int64_t *order
    const int64_t *truth
    const int64_t *batches
    const double *centre_dot    # NULL without a tail
    const double *weight        # NULL for ones
    const double *length
    const double *offset        # NULL for none
    const double *steps
    double *shift
    double *bias
    double *loss_out
    double *wrong_out
    const void *Z
    void *U
    void *U_mean
    void *V
    void *V_lag
    void *parts
    Py_ssize_t batch
    Py_ssize_t n_train
    Py_ssize_t n_visited
    Py_ssize_t n_batches
    Py_ssize_t stride
    int64_t n_done
    double mean_length
    bint average
    bint single
    int n_threads
    # the batch at work
    const void *weights         # that its scores are by: U or its mean
    const double *intercepts
    const double *extra         # scores to add, NULL for none
    Py_ssize_t lo
    Py_ssize_t n
    Py_ssize_t group            # rows of a group
    void *scores                # (n, n_classes) its scores, told where this is not NULL
    double step
    int64_t sample              # of the mean that the iterate after it is, 0: none
    int64_t n_samples


cdef void one_block_scores(const batch_job *job, Py_ssize_t block, const floating *Z) noexcept nogil:
    block_scores(&job.plan, block, job.X, job.order + job.lo,
                 job.centre_dot + job.lo if job.centre_dot != NULL else NULL, job.n, Z + job.lo * job.plan.width,
                 <const floating *> job.weights, <const floating *> job.V, job.shift, <floating *> job.parts,
                 job.batch * job.plan.n_classes)


cdef void one_group_gradient(const batch_job *job, Py_ssize_t group, const floating *Z) noexcept nogil:
    cdef Py_ssize_t lo = job.lo, first = group * job.group
    group_gradient(&job.plan, first, min(first + job.group, job.n), job.batch * job.plan.n_classes, job.truth + lo,
                   job.weight + lo if job.weight != NULL else NULL, job.length + lo, job.mean_length, job.step,
                   job.extra, job.intercepts, <floating *> job.parts, job.loss_out + lo, job.wrong_out + lo,
                   <floating *> job.scores)


cdef void one_block_update(const batch_job *job, Py_ssize_t block, const floating *Z) noexcept nogil:
    block_update(&job.plan, block, job.X, job.order + job.lo,
                 job.centre_dot + job.lo if job.centre_dot != NULL else NULL, job.n, Z + job.lo * job.plan.width,
                 <const floating *> job.parts, job.step, job.sample, job.n_samples, job.average, <floating *> job.U,
                 <floating *> job.U_mean, <floating *> job.V, <floating *> job.V_lag, job.shift, job.bias)


cdef void do_block_scores(void *of, Py_ssize_t block, int thread) noexcept nogil:
    if (<batch_job *> of).single:
        one_block_scores(<batch_job *> of, block, <const float *> (<batch_job *> of).Z)
    else:
        one_block_scores(<batch_job *> of, block, <const double *> (<batch_job *> of).Z)


cdef void do_group_gradient(void *of, Py_ssize_t group, int thread) noexcept nogil:
    if (<batch_job *> of).single:
        one_group_gradient(<batch_job *> of, group, <const float *> (<batch_job *> of).Z)
    else:
        one_group_gradient(<batch_job *> of, group, <const double *> (<batch_job *> of).Z)


cdef void do_block_update(void *of, Py_ssize_t block, int thread) noexcept nogil:
    if (<batch_job *> of).single:
        one_block_update(<batch_job *> of, block, <const float *> (<batch_job *> of).Z)
    else:
        one_block_update(<batch_job *> of, block, <const double *> (<batch_job *> of).Z)


cdef void scores_and_gradient(batch_job *job, Py_ssize_t lo, Py_ssize_t hi, Py_ssize_t number, double step) \
        noexcept nogil:
    # of rows lo .. of batch ``number``, which ends at ``hi`` at the latest
    cdef const block_plan *plan = &job.plan
    job.lo, job.n, job.step = lo, min(job.batch, hi - lo), step
    job.extra = job.offset + number * job.batch * plan.n_classes if job.offset != NULL else NULL
    share_out(do_block_scores, job, plan.n_class_blocks * plan.n_column_blocks, job.n_threads)
    share_out(do_group_gradient, job, (job.n + job.group - 1) // job.group, job.n_threads)


cdef void train_batches(batch_job *job) noexcept nogil:
    cdef Py_ssize_t k
    cdef int64_t done
    job.weights, job.intercepts, job.scores = job.U, job.bias, NULL
    for k in range(job.n_batches):
        done = job.n_done + k
        job.sample = (done + 1) // job.stride if (done + 1) % job.stride == 0 else 0
        job.n_samples = done // job.stride
        scores_and_gradient(job, job.batches[k], job.n_train, k, job.steps[k])
        share_out(do_block_update, job, job.plan.n_class_blocks * job.plan.n_column_blocks, job.n_threads)


cdef void look_at(batch_job *job, const int64_t *looks, Py_ssize_t n_looks, bint by_mean, floating *scores_out) \
        noexcept nogil:
    # their losses, errors and scores, by the mean of the weights where there is one
    cdef Py_ssize_t k
    job.weights, job.intercepts = job.U_mean if by_mean else job.U, job.bias + by_mean
    for k in range(n_looks):
        job.scores = scores_out + k * job.batch * job.plan.n_classes if scores_out != NULL else <floating *> NULL
        scores_and_gradient(job, looks[k], job.n_visited, job.n_batches + k, 0)


cdef struct lengths_work:           # what threads share; Z is of floats where ``single``, else of doubles
    const rows_view *X
    const void *Z
    const int64_t *order
    const double *centre_dot
    double *length
    double low_sign, tail_inverse, centre_square, most
    Py_ssize_t n, width
    bint single


cdef void some_lengths(const lengths_work *by, Py_ssize_t lo, Py_ssize_t hi, const floating *Z) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(lo, hi):
        by.length[i] = by.low_sign * row_dot(Z + i * by.width, Z + i * by.width, by.width)
        if by.tail_inverse > 0:
            by.length[i] += by.tail_inverse * (square_of_row(by.X, by.order[i], <const floating *> by.X.values)
                                               - 2 * by.centre_dot[i] + by.centre_square)
        by.length[i] = min(max(by.length[i], 0), by.most)


cdef void do_lengths(void *of, Py_ssize_t piece, int thread) noexcept nogil:
    cdef const lengths_work *by = <lengths_work *> of
    cdef Py_ssize_t lo = piece * PIECE, hi = min(by.n, lo + PIECE)
    if by.single:
        some_lengths(by, lo, hi, <const float *> by.Z)
    else:
        some_lengths(by, lo, hi, <const double *> by.Z)


def row_lengths(
    Rows X,                              # CSR with a scaled tail only, else whatever
    const floating[:, ::1] Z,            # IN    (n, width), whitened rows
    const int64_t[::1] order,            # IN    (n,), the row of X that each is
    const double[::1] centre_dot,        # IN    (n,), <x_i, centre>, where tail_inverse > 0, else (0,)
    double low_sign,
    double tail_inverse,
    double centre_square,                # |centre|^2
    int n_threads,
):
    """(n,) z_i'z_i, which is (x_i - centre)' H* (x_i - centre); `LARGEST_LENGTH` at most."""
    cdef Py_ssize_t i, n = Z.shape[0]
    cdef lengths_work work
    cdef bint tail = tail_inverse > 0
    must_fit(order.shape[0] == n and (not tail or X.sparse and centre_dot.shape[0] == n), "row_lengths")
    for i in range(n):
        must_fit(0 <= order[i] < X.view.n_rows, "row_lengths")
    out = np.empty(n)
    cdef double[::1] length = out
    if n == 0:
        return out
    work.X, work.Z, work.order, work.length, work.single = &X.view, &Z[0, 0], &order[0], &length[0], floating is float
    work.centre_dot = &centre_dot[0] if tail else NULL
    work.low_sign, work.tail_inverse, work.centre_square = low_sign, tail_inverse, centre_square
    work.n, work.width, work.most = n, Z.shape[1], LARGEST_LENGTH
    with nogil:
        share_out(do_lengths, &work, (n + PIECE - 1) // PIECE, n_threads)
    return out


def run_batches(
    Rows X,                              # CSR with a scaled tail only, else whatever
    const floating[:, ::1] Z,            # IN    (n_visited, width), whitened rows
    const int64_t[::1] order,            # IN    (n_visited,), the row of X that each is
    const double[::1] centre_dot,        # IN    (n_visited,), <x_i, centre>, where tail_inverse > 0, else (0,)
    const int64_t[::1] truth,            # IN    (n_visited,), class of each
    const double[::1] weight,            # IN    (n_visited,), or (0,) for ones
    const double[::1] length,            # IN    (n_visited,), z_i'z_i, see `row_lengths`
    double mean_length,
    const int64_t[::1] batches,          # IN    (n_batches,), the row of Z where each batch begins
    const int64_t[::1] looks,            # IN    (n_looks,), likewise of batches that are looked at afterwards
    Py_ssize_t batch,                    # rows of a batch
    Py_ssize_t n_train,                  # no batch reads Z from this row on; those looked at do
    const double[:, ::1] offset,         # IN    ((n_batches + n_looks) batch, n_classes), scores to add, or (0, 0)
    const double[::1] step,              # IN    (n_batches,)
    double bias_rate,
    double low_sign,
    double tail_inverse,
    double centre_square,                # |centre|^2
    Py_ssize_t class_block,
    Py_ssize_t column_block,
    Py_ssize_t stride,                   # every so many batches the mean takes a sample
    int64_t n_done,                      # batches before these
    floating[:, ::1] U,                  # INOUT (n_classes, width)
    floating[:, ::1] U_mean,             # INOUT (n_classes, width), or (0, width): no mean is kept
    floating[:, ::1] V,                  # INOUT (n_features, n_classes) where tail_inverse > 0, else (0, 0)
    floating[:, ::1] V_lag,              # INOUT likewise
    double[:, ::1] shift,                # INOUT (n_classes, 3), sum of changes, of changes times what the centre takes
                                         #       from a row, running mean of the first; (0, 3) without V
    double[:, ::1] bias,                 # INOUT (n_classes, 2), b and its running mean
    floating[:, :, ::1] parts,           # WORK  (n column blocks, batch, n_classes)
    double[::1] loss_out,                # OUT   (n_visited,), weighted loss of every row met, before the step, or inf
    double[::1] wrong_out,               # OUT   (n_visited,), weight of every row met whose class was not the best
    int n_threads,
    floating[:, ::1] scores_out=None,    # OUT   (n_looks batch, n_classes), scores of the rows looked at, or None
):
    """Step through the batches in their order; call with BLAS held to one thread."""
    cdef Py_ssize_t n_batches = batches.shape[0], n_looks = looks.shape[0]
    cdef bint average = U_mean.shape[0] > 0, tail = tail_inverse > 0
    cdef int64_t n_samples = (n_done + n_batches) // stride
    cdef batch_job job
    cdef block_plan *plan = &job.plan
    if U.shape[0] == 0 or n_batches + n_looks == 0:
        return
    plan.n_classes, plan.width, plan.class_block, plan.column_block = U.shape[0], U.shape[1], class_block, column_block
    plan.n_class_blocks = (U.shape[0] + class_block - 1) // class_block
    plan.n_column_blocks = (U.shape[1] + column_block - 1) // column_block
    plan.bias_rate, plan.low_sign, plan.tail_inverse = bias_rate, low_sign, tail_inverse
    plan.centre_square, plan.least_worth = centre_square, LEAST_WORTH
    check_shapes(plan, X, Z, order, centre_dot, truth, weight, length, batches, looks, step, batch, n_train, offset,
                 U_mean, V, V_lag, shift, bias, parts)
    if scores_out is not None:
        must_fit(scores_out.shape[0] >= n_looks * batch and scores_out.shape[1] == U.shape[0], "run_batches")
    job.X, job.batch, job.n_train, job.n_visited = &X.view, batch, n_train, Z.shape[0]
    job.n_batches, job.stride, job.n_done, job.average = n_batches, stride, n_done, average
    job.order, job.truth = &order[0], &truth[0]
    job.weight = &weight[0] if weight.shape[0] else NULL
    job.length, job.mean_length = &length[0], mean_length
    job.centre_dot = &centre_dot[0] if tail else NULL
    job.offset = &offset[0, 0] if offset.shape[0] else NULL
    job.steps, job.batches = &step[0] if n_batches else NULL, &batches[0] if n_batches else NULL
    job.shift, job.bias = &shift[0, 0] if tail else NULL, &bias[0, 0]
    job.loss_out, job.wrong_out = &loss_out[0], &wrong_out[0]
    job.Z, job.parts, job.U, job.U_mean = &Z[0, 0], &parts[0, 0, 0], &U[0, 0], &U_mean[0, 0] if average else NULL
    job.V, job.V_lag = &V[0, 0] if tail else NULL, &V_lag[0, 0] if tail and average else NULL
    job.single, job.n_threads = floating is float, n_threads
    job.group = ROW_GROUP if plan.n_classes < FEW_CLASSES else ROW_GROUP // 2
    with nogil:
        train_batches(&job)
        if n_looks:
            look_at(&job, &looks[0], n_looks, average and n_samples > 0,
                    &scores_out[0, 0] if scores_out is not None else NULL)


cdef check_shapes(const block_plan *at, Rows X, const floating[:, ::1] Z, const int64_t[::1] order,
                  const double[::1] centre_dot, const int64_t[::1] truth, const double[::1] weight,
                  const double[::1] length, const int64_t[::1] batches, const int64_t[::1] looks,
                  const double[::1] step, Py_ssize_t batch, Py_ssize_t n_train, const double[:, ::1] offset,
                  floating[:, ::1] U_mean, floating[:, ::1] V, floating[:, ::1] V_lag, double[:, ::1] shift,
                  double[:, ::1] bias, floating[:, :, ::1] parts):
    cdef Py_ssize_t i, n = Z.shape[0], d = X.view.n_features
    cdef bint tail = at.tail_inverse > 0
    fits = (Z.shape[1] == at.width and order.shape[0] == truth.shape[0] == n and weight.shape[0] in (0, n)
            and length.shape[0] == n
            and n_train <= n and batch >= 1 and step.shape[0] == batches.shape[0]
            and bias.shape[0] == at.n_classes and bias.shape[1] == 2
            and U_mean.shape[0] in (0, at.n_classes) and U_mean.shape[1] == at.width
            and parts.shape[0] >= at.n_column_blocks and parts.shape[1] >= batch and parts.shape[2] == at.n_classes)
    if tail:                            # the mean of V is made by the caller
        fits = (fits and (looks.shape[0] == 0 or U_mean.shape[0] == 0)
                and X.sparse and at.n_column_blocks == 1 and centre_dot.shape[0] == n
                and V.shape[0] == d and V.shape[1] == at.n_classes and shift.shape[0] == at.n_classes
                and (U_mean.shape[0] == 0 or V_lag.shape[0] == d and V_lag.shape[1] == at.n_classes))
    if offset.shape[0]:
        fits = (fits and offset.shape[0] >= batch * (batches.shape[0] + looks.shape[0])
                and offset.shape[1] == at.n_classes)
    if not fits:
        raise ValueError("run_batches: shapes do not fit")
    for i in range(batches.shape[0]):
        if batches[i] < 0 or batches[i] >= n_train:
            raise ValueError("run_batches: a batch begins outside the rows")
    for i in range(looks.shape[0]):
        if looks[i] < 0 or looks[i] >= n:
            raise ValueError("run_batches: a batch to look at begins outside the rows")
    for i in range(n):
        if not 0 <= truth[i] < at.n_classes or not 0 <= order[i] < X.view.n_rows:
            raise ValueError("run_batches: a label or a row is out of range")
