"""Mini-batch passes of the multinomial risk in whitened coordinates, all classes at once.

One batch of n rows z_i, with U (n_classes, width) the whitened weights, s_i the weights of the rows and Y their labels
as an indicator:

    M = Z U' + b,   G_i = s_i (softmax(M_i) - Y_i),   U -= step G' Z,   b -= step bias_rate G' 1

which is W -= step G' (X - centre) H*, because z_i = H*^(1/2) (x_i - centre) and w = H*^(1/2) u. CSR rows with a scaled
tail have two parts, as in _class_sgd: H* = I / d_{k+1} - P M P', so that a score is

    <v_c, x_i - centre> / d_{k+1} - <u_c, z_i> + b_c,       v_c = sum of changes a_jc times (x_j - centre)

V keeps the sum of a_jc x_j, and ``shift`` what the centre takes from it, so that no row is centred (notation.md).

Threads meet twice a batch. U is cut into blocks of classes and of columns, a plan of its shape alone. A block's weights
are moved by the batch, and multiply their columns of the next one: one thread does both, while they are in its cache.
In between each row's score is the sum of its blocks in order. Few classes have blocks too small for that: a group of
rows is multiplied with all of U and its softmax taken, then blocks of columns are moved. So the bits do not depend on
the number of threads.

A row whose z_i'z_i is a multiple of the mean would be moved far past what its step is to mend. So G_i is also times

    (1 + step (m + bias_rate) / 4) / (1 + step (z_i'z_i + bias_rate) / 4),     m the mean of z'z,

which is what an implicit step leaves of the row at curvature 1/4 = max p (1 - p), relative to a row of mean length. It
is 1 where all rows have one length, and in the limit of short steps: the minimum sought is that of the risk. Never less
than `LEAST_DAMPING`, or a class of one row far from all others would not be learnt.

After the batches, others are only scored, by the mean of the weights where there is one: a pass and its held-out rows
are one call, which lets other threads of Python in once.
"""

import numpy as np

from cython cimport floating
from libc.math cimport INFINITY, isfinite
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from cmargin._core.linalg._blas cimport NO_TRANS, TRANS, gemm
from cmargin._core.losses._softmax cimport FEW_CLASSES, softmax_rows
from cmargin._core.rows._few_classes cimport few_pay, few_sums, few_times
from cmargin._core.rows._rows cimport Rows, column_of, rows_view
from cmargin._core.util._shapes cimport must_fit
from cmargin._core.util._simd cimport row_axpy, row_dot, row_lerp, row_prefetch
from cmargin._core.util._team cimport share_out

LARGEST_LENGTH = 1e300          # of a whitened row, squared, so that no step of zero times it is NaN
LEAST_DAMPING = 0.25            # of a row far out

cdef enum:
    ROW_GROUP = 16              # rows whose softmax one thread takes at a time, half of them where classes are many
    PIECE = 256                 # rows whose lengths one thread takes at a time
    AHEAD = 4                   # entries of a CSR row ahead of which their weights are asked for


cdef void do_item(void *of, Py_ssize_t item, int thread) noexcept nogil:
    cdef const batch_job *job = <const batch_job *> of
    if job.item_size == sizeof(float):
        job.of_single(job, item, <const float *> job.Z)
    else:
        job.of_double(job, item, <const double *> job.Z)


cdef void share(batch_job *job, single_work of_single, double_work of_double, Py_ssize_t n) noexcept nogil:
    job.of_single, job.of_double = of_single, of_double
    share_out(do_item, job, n, job.n_threads)


# ---------------------------------------------------------------- one block of weights

cdef struct block_at:
    Py_ssize_t class_lo, n_classes, column_lo, n_columns, q     # q: which of the blocks of columns


cdef block_at block_of(const batch_job *job, Py_ssize_t block) noexcept nogil:
    cdef block_at at
    at.q = block % job.n_column_blocks
    at.class_lo, at.column_lo = block // job.n_column_blocks * job.class_block, at.q * job.column_block
    at.n_classes = min(job.class_block, job.n_classes - at.class_lo)
    at.n_columns = min(job.column_block, job.width - at.column_lo)
    return at


cdef void block_scores(const batch_job *job, Py_ssize_t block, const floating *Z) noexcept nogil:
    # this block's share of M (n, n_classes) of the next batch, one part for every block of columns
    cdef const one_batch *batch = &job.next
    cdef Py_ssize_t c, i, k = job.n_classes
    cdef block_at at = block_of(job, block)
    cdef const rows_view *X = job.X
    cdef const int64_t *order = job.order + batch.lo
    cdef int64_t entry, last
    cdef const floating *U = <const floating *> job.weights + at.class_lo * job.width + at.column_lo
    cdef const floating *V = <const floating *> job.V + at.class_lo
    cdef floating *M = <floating *> batch.parts + at.q * job.batch * k + at.class_lo
    cdef const double *shift
    # M = low_sign Z U'   (n, n_classes) = (n, n_columns) (n_columns, n_classes)
    scores_of(job, batch.n, &at, Z + batch.lo * job.width + at.column_lo, U, M)
    if job.tail_inverse == 0:
        return
    for i in range(batch.n):
        for c in range(at.n_classes):
            shift = job.shift + 3 * (at.class_lo + c)
            M[i * k + c] -= <floating> (job.tail_inverse * (shift[0] * job.centre_dot[batch.lo + i] + shift[1]))
        last = X.starts[order[i] + 1]
        for entry in range(X.starts[order[i]], last):
            if entry + AHEAD < last:
                row_prefetch(V + column_of(X, entry + AHEAD) * k, at.n_classes)
            row_axpy(job.tail_inverse * (<const floating *> X.values)[entry], V + column_of(X, entry) * k, M + i * k,
                     at.n_classes)


cdef void scores_of(const batch_job *job, Py_ssize_t n, const block_at *at, const floating *z, const floating *U,
                    floating *M) noexcept nogil:
    cdef Py_ssize_t i, k = job.n_classes
    if few_pay(at.n_classes, at.n_columns, sizeof(floating) == sizeof(float)):
        for i in range(n):
            memset(M + i * k, 0, at.n_classes * sizeof(floating))
        few_times(n, at.n_classes, at.n_columns, <floating> job.low_sign, z, job.width, U, job.width, M, k)
    else:
        gemm(NO_TRANS, TRANS, n, at.n_classes, at.n_columns, job.low_sign, z, job.width, U, job.width, 0, M, k)


cdef void block_update(const batch_job *job, Py_ssize_t block, const floating *Z) noexcept nogil:
    # U -= step G' Z of this block, and its running mean
    cdef block_at at = block_of(job, block)
    cdef const one_batch *batch = &job.now
    cdef Py_ssize_t c, place = at.class_lo * job.width + at.column_lo
    cdef const floating *z = Z + batch.lo * job.width + at.column_lo
    cdef const floating *G = <const floating *> batch.parts + at.class_lo
    cdef floating *U = <floating *> job.U + place
    # U -= step G' Z   (n_classes, n_columns) = (n_classes, n) (n, n_columns), those of the block
    if job.by_rows or few_pay(at.n_classes, at.n_columns, sizeof(floating) == sizeof(float)):
        few_sums(batch.n, at.n_classes, at.n_columns, <floating> -batch.step, z, job.width, G, job.n_classes, U,
                 job.width)
    else:
        gemm(TRANS, NO_TRANS, at.n_classes, at.n_columns, batch.n, -batch.step, G, job.n_classes, z, job.width, 1, U,
             job.width)
    if job.average and batch.sample > 0:
        for c in range(at.n_classes):
            row_lerp(rate_of(batch), U + c * job.width, <floating *> job.U_mean + place + c * job.width, at.n_columns)
    if at.q == 0:                       # the first block of columns looks after the intercepts and the tail
        intercept_update(job, &at, G)
        if job.tail_inverse != 0:
            tail_update(job, &at, G)


cdef void block_work(const batch_job *job, Py_ssize_t block, const floating *Z) noexcept nogil:
    # what is between two softmaxes: the step of one batch, the scores of the next
    if job.now.n > 0:
        block_update(job, block, Z)
    if job.next.n > 0 and not job.by_rows:
        block_scores(job, block, Z)


cdef double rate_of(const one_batch *batch) noexcept nogil:
    return 2.0 / (batch.sample + 1)     # sample s of the mean weighs s: late iterates count more


cdef void intercept_update(const batch_job *job, const block_at *at, const floating *G) noexcept nogil:
    cdef Py_ssize_t c, i
    cdef double total, met
    cdef const one_batch *batch = &job.now
    cdef bint sampled = job.average and batch.sample > 0
    cdef double *bias
    cdef double *shift
    for c in range(at.n_classes):
        total, met, bias = 0, 0, job.bias + 2 * (at.class_lo + c)
        for i in range(batch.n):
            total += G[i * job.n_classes + c]
        bias[0] -= batch.step * job.bias_rate * total
        if sampled:
            bias[1] += rate_of(batch) * (bias[0] - bias[1])
        if job.tail_inverse == 0:
            continue
        shift = job.shift + 3 * (at.class_lo + c)
        for i in range(batch.n):
            met += G[i * job.n_classes + c] * (job.centre_dot[batch.lo + i] - job.centre_square)
        shift[0] -= batch.step * total
        shift[1] -= batch.step * met
        if sampled:
            shift[2] += rate_of(batch) * (shift[0] - shift[2])


cdef void tail_update(const batch_job *job, const block_at *at, const floating *G) noexcept nogil:
    # V -= step X' G of these classes
    cdef const rows_view *X = job.X
    cdef const one_batch *batch = &job.now
    cdef const int64_t *order = job.order + batch.lo
    cdef Py_ssize_t i, place, ahead, k = job.n_classes
    cdef int64_t entry, last
    cdef double change, lag = <double> batch.n_samples * (batch.n_samples + 1) / 2
    cdef floating *V = <floating *> job.V + at.class_lo
    cdef floating *V_lag = <floating *> job.V_lag + at.class_lo
    for i in range(batch.n):
        last = X.starts[order[i] + 1]
        for entry in range(X.starts[order[i]], last):
            if entry + AHEAD < last:
                ahead = column_of(X, entry + AHEAD) * k
                row_prefetch(V + ahead, at.n_classes)
                if job.average:
                    row_prefetch(V_lag + ahead, at.n_classes)
            place, change = column_of(X, entry) * k, -batch.step * (<const floating *> X.values)[entry]
            row_axpy(change, G + i * k, V + place, at.n_classes)
            if job.average:             # samples 1 .. n_samples of the mean do not see this change
                row_axpy(change * lag, G + i * k, V_lag + place, at.n_classes)


# ---------------------------------------------------------------- the softmax of a few rows

cdef void group_gradient(const batch_job *job, Py_ssize_t group, const floating *Z) noexcept nogil:
    # of the next batch the first part of the rows of a group becomes their G; the loss, the error and, unless NULL, the
    # scores of each, before the step
    cdef const one_batch *batch = &job.next
    cdef block_at all_of_it = block_at(0, job.n_classes, 0, job.width, 0)
    cdef double[ROW_GROUP] of_truth, damping
    cdef double[3 * ROW_GROUP] of_rows
    cdef Py_ssize_t i, j, c, q, k = job.n_classes, first = group * job.group, lo = batch.lo + first
    cdef Py_ssize_t n = min(job.group, batch.n - first)
    cdef double s
    cdef floating *h = <floating *> batch.parts + first * k
    if job.by_rows:
        scores_of(job, n, &all_of_it, Z + lo * job.width, <const floating *> job.weights, h)
    for q in range(1, job.n_parts):
        row_axpy(1, h + q * job.batch * k, h, n * k)
    for j in range(n):
        for c in range(k):
            h[j * k + c] += <floating> job.intercepts[2 * c]
    if batch.extra != NULL:
        for j in range(n * k):
            h[j] += <floating> batch.extra[first * k + j]
    if batch.scores != NULL:
        memcpy(<floating *> batch.scores + first * k, h, n * k * sizeof(floating))
    for j in range(n):
        i, s = lo + j, job.weight[lo + j] if job.weight != NULL else 1
        of_truth[j] = h[j * k + job.truth[i]]
        damping[j] = s * max(job.least_damping, (1 + batch.step * (job.mean_length + job.bias_rate) / 4)
                             / (1 + batch.step * (job.length[i] + job.bias_rate) / 4))
    softmax_rows(h, n, k, damping, <floating *> NULL, h, of_rows, ROW_GROUP)
    for j in range(n):
        i, s = lo + j, job.weight[lo + j] if job.weight != NULL else 1
        h[j * k + job.truth[i]] -= <floating> damping[j]
        job.loss_out[i] = s * (of_rows[j] - of_truth[j] + of_rows[ROW_GROUP + j])
        if not isfinite(job.loss_out[i]):               # scores overflowed
            job.loss_out[i] = INFINITY
        job.wrong_out[i] = s * (of_truth[j] < of_rows[j])


# ---------------------------------------------------------------- lengths of rows, and the batches

cdef void piece_lengths(const batch_job *job, Py_ssize_t piece, const floating *Z) noexcept nogil:
    # z_i'z_i, which is (x_i - centre)' H* (x_i - centre)
    cdef Py_ssize_t i
    cdef int64_t entry
    cdef double square
    cdef const floating *values = <const floating *> job.X.values
    for i in range(piece * PIECE, min(job.n_visited, (piece + 1) * PIECE)):
        job.length[i] = job.low_sign * row_dot(Z + i * job.width, Z + i * job.width, job.width)
        if job.tail_inverse > 0:
            square = 0
            for entry in range(job.X.starts[job.order[i]], job.X.starts[job.order[i] + 1]):
                square += <double> values[entry] * values[entry]
            job.length[i] += job.tail_inverse * (square - 2 * job.centre_dot[i] + job.centre_square)
        job.length[i] = min(max(job.length[i], 0), job.most_length)


cdef void look_ahead(batch_job *job, Py_ssize_t lo, Py_ssize_t hi, Py_ssize_t number, double step) noexcept nogil:
    # the next batch has rows lo .. and is number ``number``; it ends at ``hi`` at the latest
    cdef Py_ssize_t n_numbers = job.batch * job.n_classes
    job.next.lo, job.next.n, job.next.step, job.next.scores = lo, min(job.batch, hi - lo), step, NULL
    job.next.extra = job.offset + number * n_numbers if job.offset != NULL else NULL
    job.next.parts = <char *> job.parts + (number % 2) * job.n_parts * n_numbers * job.item_size


cdef void scores_and_gradient(batch_job *job) noexcept nogil:
    # the step of the batch that there is, and G of the next
    if not job.by_rows or job.now.n > 0:
        share(job, block_work[float], block_work[double], job.n_class_blocks * job.n_column_blocks)
    if job.next.n > 0:
        share(job, group_gradient[float], group_gradient[double], (job.next.n + job.group - 1) // job.group)
    job.now, job.next.n = job.next, 0


cdef void train_batches(batch_job *job) noexcept nogil:
    cdef Py_ssize_t k
    cdef int64_t done
    job.weights, job.intercepts, job.now.n = job.U, job.bias, 0
    for k in range(job.n_batches):
        done = job.n_done + k
        look_ahead(job, job.batches[k], job.n_train, k, job.steps[k])
        job.next.sample = (done + 1) // job.stride if (done + 1) % job.stride == 0 else 0
        job.next.n_samples = done // job.stride
        scores_and_gradient(job)
    if job.n_batches:
        scores_and_gradient(job)


cdef void score_batches(batch_job *job) noexcept nogil:
    # their losses, errors and scores, by the mean of the weights where there is one
    cdef Py_ssize_t k, n_bytes = job.batch * job.n_classes * job.item_size
    cdef bint by_mean = job.average and (job.n_done + job.n_batches) // job.stride > 0
    job.weights, job.intercepts = job.U_mean if by_mean else job.U, job.bias + by_mean
    for k in range(job.n_scored):
        job.now.n = 0
        look_ahead(job, job.scored[k], job.n_visited, job.n_batches + k, 0)
        job.next.scores = <char *> job.scores_out + k * n_bytes if job.scores_out != NULL else NULL
        scores_and_gradient(job)


# ---------------------------------------------------------------- Python wrapper

cpdef bint rows_pay(Py_ssize_t n_classes, Py_ssize_t width, bint tail, bint single):
    """Whether classes are so few that rows are multiplied in groups, with all columns."""
    return not tail and few_pay(n_classes, width, single)


cdef class Batches:
    """Rows that passes step through in batches: `whitened` comes once, `weights` before every `run`."""

    def __init__(
        self,
        Rows X not None,                     # read where they are CSR with a scaled tail only
        const int64_t[::1] order,            # IN    (n_visited,), the row of X that each row met is
        const int64_t[::1] truth,            # IN    (n_visited,), class of each
        const double[::1] weight,            # IN    (n_visited,), or (0,) for ones
        const double[::1] centre_dot,        # IN    (n_visited,), <x_i, centre>, where tail_inverse > 0, else (0,)
        double centre_square,                # |centre|^2
        double low_sign,
        double tail_inverse,
        double[::1] loss_out,                # OUT   (n_visited,), weighted loss of every row, before the step, or inf
        double[::1] wrong_out,               # OUT   (n_visited,), weight of every row whose class was not the best
    ):
        cdef batch_job *job = &self.job
        cdef Py_ssize_t i, n = order.shape[0]
        cdef bint tail = tail_inverse > 0
        must_fit(truth.shape[0] == loss_out.shape[0] == wrong_out.shape[0] == n and weight.shape[0] in (0, n)
                 and (not tail or X.sparse and centre_dot.shape[0] == n), "Batches")
        for i in range(n):
            must_fit(0 <= order[i] < X.view.n_rows, "Batches, rows")
        self.rows_kept = [X, order, truth, weight, centre_dot, loss_out, wrong_out]
        job.X, job.n_visited, job.least_damping, job.most_length = &X.view, n, LEAST_DAMPING, LARGEST_LENGTH
        job.centre_square, job.low_sign, job.tail_inverse = centre_square, low_sign, tail_inverse
        job.order, job.truth = &order[0] if n else NULL, &truth[0] if n else NULL
        job.weight, job.centre_dot = &weight[0] if weight.shape[0] else NULL, &centre_dot[0] if n and tail else NULL
        job.loss_out, job.wrong_out = &loss_out[0] if n else NULL, &wrong_out[0] if n else NULL

    def whitened(
        self,
        const floating[:, ::1] Z,            # IN    (n_visited, width), whitened rows
        floating[:, :, :, ::1] parts,        # WORK  (2, 1 by `rows_pay`, else n column blocks, batch, n_classes)
        Py_ssize_t class_block,
        Py_ssize_t column_block,
        double mean_length,
        int n_threads,                       # for the lengths of the rows
    ):
        """The rows in the basis of an inverse; returns z_i'z_i of each, (n_visited,), which `run` goes by."""
        cdef batch_job *job = &self.job
        cdef Py_ssize_t i, n = job.n_visited, k = parts.shape[3]
        cdef double[::1] length
        must_fit(Z.shape[0] == n and class_block > 0 and column_block > 0 and parts.shape[2] > 0
                 and parts.shape[0] == 2, "Batches.whitened")
        job.n_column_blocks = (Z.shape[1] + column_block - 1) // column_block
        job.by_rows = rows_pay(k, Z.shape[1], job.tail_inverse > 0, sizeof(floating) == sizeof(float))
        job.n_parts = 1 if job.by_rows else job.n_column_blocks
        must_fit(parts.shape[1] == job.n_parts and (not job.by_rows or class_block >= k)
                 and (job.tail_inverse == 0 or job.n_column_blocks == 1), "Batches.whitened, blocks")
        for i in range(n):
            must_fit(0 <= job.truth[i] < k, "Batches.whitened, classes")
        lengths = np.empty(n)
        length = lengths
        self.rows_kept += [Z, parts, length]
        job.item_size, job.width, job.batch, job.n_classes = sizeof(floating), Z.shape[1], parts.shape[2], k
        job.class_block, job.n_class_blocks = class_block, (k + class_block - 1) // class_block
        job.column_block = column_block
        job.group = ROW_GROUP // 2 if k >= FEW_CLASSES or job.by_rows and job.n_column_blocks > 1 else ROW_GROUP
        job.mean_length, job.n_threads = mean_length, n_threads
        if n and k:
            job.Z, job.parts, job.length = &Z[0, 0], &parts[0, 0, 0, 0], &length[0]
            with nogil:
                share(job, piece_lengths[float], piece_lengths[double], (n + PIECE - 1) // PIECE)
        return lengths

    def weights(
        self,
        floating[:, ::1] U,                  # INOUT (n_classes, width)
        floating[:, ::1] U_mean,             # INOUT (n_classes, width), or (0, width): no mean is kept
        floating[:, ::1] V,                  # INOUT (n_features, n_classes) where tail_inverse > 0, else (0, 0)
        floating[:, ::1] V_lag,              # INOUT likewise
        double[:, ::1] shift,                # INOUT (n_classes, 3), sum of changes, of changes times what the centre
                                             #       takes from a row, running mean of the first; (0, 3) without V
        double[:, ::1] bias,                 # INOUT (n_classes, 2), b and its running mean
        Py_ssize_t stride,                   # every so many batches the mean takes a sample
        int64_t n_done,                      # batches before those to come
    ):
        """The weights that `run` steps from."""
        cdef batch_job *job = &self.job
        cdef Py_ssize_t k = job.n_classes, d = job.X.n_features
        cdef bint average = U_mean.shape[0] > 0, tail = job.tail_inverse > 0
        must_fit(job.item_size == sizeof(floating) and U.shape[0] == bias.shape[0] == k and bias.shape[1] == 2
                 and U.shape[1] == U_mean.shape[1] == job.width and U_mean.shape[0] in (0, k) and stride > 0,
                 "Batches.weights")
        must_fit(not tail or (V.shape[0] == d and V.shape[1] == k and shift.shape[0] == k and shift.shape[1] == 3
                              and (not average or V_lag.shape[0] == d and V_lag.shape[1] == k)),
                 "Batches.weights, tail")
        self.weights_kept = [U, U_mean, V, V_lag, shift, bias]
        job.average, job.stride, job.n_done = average, stride, n_done
        job.U, job.U_mean = &U[0, 0], &U_mean[0, 0] if average else NULL
        job.V, job.V_lag = &V[0, 0] if tail else NULL, &V_lag[0, 0] if tail and average else NULL
        job.shift, job.bias = &shift[0, 0] if tail else NULL, &bias[0, 0]

    def run(
        self,
        const int64_t[::1] batches,          # IN    (n_batches,), the row of Z where each batch begins
        const int64_t[::1] scored,           # IN    (n_scored,), likewise of batches to be scored afterwards
        Py_ssize_t n_train,                  # no batch of ``batches`` reads Z from this row on; those of ``scored`` do
        const double[:, ::1] offset,         # IN    ((n_batches + n_scored) batch, n_classes), scores to add, or (0, 0)
        const double[::1] step,              # IN    (n_batches,)
        double bias_rate,
        int n_threads,
        floating[:, ::1] scores_out,         # OUT   (n_scored batch, n_classes), their scores, or (0, .)
    ):
        """Step through the batches in their order; call with BLAS held to one thread."""
        cdef batch_job *job = &self.job
        cdef Py_ssize_t i, n_scored = scored.shape[0], n = batches.shape[0] + n_scored
        must_fit(job.item_size == sizeof(floating), "Batches.run")
        must_fit(offset.shape[0] == 0 or (offset.shape[0] >= job.batch * n and offset.shape[1] == job.n_classes),
                 "Batches.run, offset")
        must_fit(scores_out.shape[0] == 0 or (scores_out.shape[0] >= n_scored * job.batch
                                              and scores_out.shape[1] == job.n_classes), "Batches.run, scores")
        # the mean of V is made by the caller
        must_fit(n_scored == 0 or job.tail_inverse == 0 or not job.average, "Batches.run, scored")
        self.set_out(batches, n_train, step, bias_rate)
        for i in range(n_scored):
            if not 0 <= scored[i] < job.n_visited:
                raise ValueError("Batches.run: a batch to look at begins outside the rows")
        if job.n_classes == 0 or n == 0:
            return
        job.n_scored, job.scored = n_scored, &scored[0] if n_scored else NULL
        job.offset = &offset[0, 0] if offset.shape[0] else NULL
        job.scores_out = &scores_out[0, 0] if scores_out.shape[0] else NULL
        job.n_threads = n_threads
        with nogil:
            train_batches(job)
            score_batches(job)
        self.weights_kept = None                 # the mean of weights may be a copy, not to be held on to

    cdef set_out(self, const int64_t[::1] batches, Py_ssize_t n_train, const double[::1] step, double bias_rate):
        """Make ready for steps through ``batches``; no scores are added."""
        cdef batch_job *job = &self.job
        cdef Py_ssize_t i, n_batches = batches.shape[0]
        must_fit(self.weights_kept is not None and step.shape[0] == n_batches and n_train <= job.n_visited,
                 "Batches.run")
        for i in range(n_batches):
            if not 0 <= batches[i] < n_train:
                raise ValueError("Batches.run: a batch begins outside the rows")
        job.n_batches, job.n_train, job.bias_rate, job.offset = n_batches, n_train, bias_rate, NULL
        job.batches, job.steps = &batches[0] if n_batches else NULL, &step[0] if n_batches else NULL
