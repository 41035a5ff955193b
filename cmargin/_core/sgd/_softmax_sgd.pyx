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


# What threads share out: an item of the job, Z being its whitened rows; one fused function, given in both its types
cdef struct batch_job
ctypedef void (*single_work)(const batch_job *job, Py_ssize_t item, const float *Z) noexcept nogil
ctypedef void (*double_work)(const batch_job *job, Py_ssize_t item, const double *Z) noexcept nogil


cdef struct batch_job:          # what threads share; void pointers are to floats or doubles, as the rows
    # the rows, and the plan of the blocks
    const rows_view *X          # read of CSR rows with a scaled tail only
    const int64_t *order        # IN    (n_visited,) the row of X that each row of Z is
    const int64_t *truth        # IN    (n_visited,) class of each
    const double *weight        # IN    (n_visited,), or NULL for ones
    const double *centre_dot    # IN    (n_visited,) <x_i, centre>, or NULL without a tail
    double centre_square        # |centre|^2
    double low_sign             # +1, or -1 where CSR rows carry the tail
    double tail_inverse         # 1 / d_{k+1} where CSR rows carry the tail, else 0
    double *loss_out            # OUT   (n_visited,) weighted loss of every row met, before the step, or inf
    double *wrong_out           # OUT   (n_visited,) weight of every row met whose class was not the best
    const void *Z               # IN    (n_visited, width) whitened rows
    double *length              # (n_visited,) z_i'z_i
    double mean_length          # m
    double most_length, least_damping
    void *parts                 # WORK  (n_column_blocks, batch, n_classes)
    Py_ssize_t item_size        # bytes of a number of Z and of the weights
    Py_ssize_t n_visited, width, n_classes, batch
    Py_ssize_t class_block, n_class_blocks      # classes of one block, and how many such blocks there are
    Py_ssize_t column_block, n_column_blocks    # likewise columns
    Py_ssize_t group            # rows whose softmax one thread takes at a time
    # the weights
    void *U                     # INOUT (n_classes, width)
    void *U_mean                # INOUT (n_classes, width) where ``average``
    void *V                     # INOUT (n_features, n_classes), or NULL without a tail
    void *V_lag                 # INOUT (n_features, n_classes) what the mean of V lacks, or NULL
    double *shift               # INOUT (n_classes, 3), or NULL without a tail
    double *bias                # INOUT (n_classes, 2) intercept and its running mean
    bint average
    Py_ssize_t stride           # batches between two samples of the mean
    int64_t n_done              # batches before these
    # the batches
    const int64_t *batches      # IN    (n_batches,) the row of Z where each begins
    const int64_t *scored       # IN    (n_scored,) likewise
    const double *steps         # IN    (n_batches,)
    const double *offset        # IN    ((n_batches + n_scored) batch, n_classes) scores to add, or NULL for none
    void *scores_out            # OUT   (n_scored batch, n_classes) their scores, or NULL
    Py_ssize_t n_batches, n_scored, n_train
    double bias_rate
    int n_threads
    # the batch at work, n rows of Z from ``lo`` on
    Py_ssize_t lo, n
    const void *weights         # IN    U or its mean, which give its scores
    const double *intercepts
    const double *extra         # IN    (n, n_classes) scores to add, or NULL
    void *scores                # OUT   (n, n_classes) its scores, or NULL
    double step
    int64_t sample              # of the mean that the iterate after it is, 0: none
    int64_t n_samples           # of the mean before it
    # what threads do of it
    single_work of_single
    double_work of_double


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
    # this block's share of M (n, n_classes), one part for every block of columns
    cdef Py_ssize_t c, i, k = job.n_classes
    cdef block_at at = block_of(job, block)
    cdef const rows_view *X = job.X
    cdef const int64_t *order = job.order + job.lo
    cdef int64_t entry, last
    cdef const floating *z = Z + job.lo * job.width + at.column_lo
    cdef const floating *U = <const floating *> job.weights + at.class_lo * job.width + at.column_lo
    cdef const floating *V = <const floating *> job.V + at.class_lo
    cdef floating *M = <floating *> job.parts + at.q * job.batch * k + at.class_lo
    cdef const double *shift
    # M = low_sign Z U'   (n, n_classes) = (n, n_columns) (n_columns, n_classes)
    if few_pay(at.n_classes, at.n_columns, sizeof(floating) == sizeof(float)):
        for i in range(job.n):
            memset(M + i * k, 0, at.n_classes * sizeof(floating))
        few_times(job.n, at.n_classes, at.n_columns, <floating> job.low_sign, z, job.width, U, job.width, M, k)
    else:
        gemm(NO_TRANS, TRANS, job.n, at.n_classes, at.n_columns, job.low_sign, z, job.width, U, job.width, 0, M, k)
    if job.tail_inverse == 0:
        return
    for i in range(job.n):
        for c in range(at.n_classes):
            shift = job.shift + 3 * (at.class_lo + c)
            M[i * k + c] -= <floating> (job.tail_inverse * (shift[0] * job.centre_dot[job.lo + i] + shift[1]))
        last = X.starts[order[i] + 1]
        for entry in range(X.starts[order[i]], last):
            if entry + AHEAD < last:
                row_prefetch(V + column_of(X, entry + AHEAD) * k, at.n_classes)
            row_axpy(job.tail_inverse * (<const floating *> X.values)[entry], V + column_of(X, entry) * k, M + i * k,
                     at.n_classes)


cdef void block_update(const batch_job *job, Py_ssize_t block, const floating *Z) noexcept nogil:
    # U -= step G' Z of this block, and its running mean
    cdef block_at at = block_of(job, block)
    cdef Py_ssize_t c, place = at.class_lo * job.width + at.column_lo
    cdef const floating *z = Z + job.lo * job.width + at.column_lo
    cdef const floating *G = <const floating *> job.parts + at.class_lo
    cdef floating *U = <floating *> job.U + place
    # U -= step G' Z   (n_classes, n_columns) = (n_classes, n) (n, n_columns), those of the block
    if few_pay(at.n_classes, at.n_columns, sizeof(floating) == sizeof(float)):
        few_sums(job.n, at.n_classes, at.n_columns, <floating> -job.step, z, job.width, G, job.n_classes, U, job.width)
    else:
        gemm(TRANS, NO_TRANS, at.n_classes, at.n_columns, job.n, -job.step, G, job.n_classes, z, job.width, 1, U,
             job.width)
    if job.average and job.sample > 0:
        for c in range(at.n_classes):
            row_lerp(rate_of(job), U + c * job.width, <floating *> job.U_mean + place + c * job.width, at.n_columns)
    if at.q == 0:                       # the first block of columns looks after the intercepts and the tail
        intercept_update(job, &at, G)
        if job.tail_inverse != 0:
            tail_update(job, &at, G)


cdef double rate_of(const batch_job *job) noexcept nogil:
    return 2.0 / (job.sample + 1)       # sample s of the mean weighs s: late iterates count more


cdef void intercept_update(const batch_job *job, const block_at *at, const floating *G) noexcept nogil:
    cdef Py_ssize_t c, i
    cdef double total, met
    cdef bint sampled = job.average and job.sample > 0
    cdef double *bias
    cdef double *shift
    for c in range(at.n_classes):
        total, met, bias = 0, 0, job.bias + 2 * (at.class_lo + c)
        for i in range(job.n):
            total += G[i * job.n_classes + c]
        bias[0] -= job.step * job.bias_rate * total
        if sampled:
            bias[1] += rate_of(job) * (bias[0] - bias[1])
        if job.tail_inverse == 0:
            continue
        shift = job.shift + 3 * (at.class_lo + c)
        for i in range(job.n):
            met += G[i * job.n_classes + c] * (job.centre_dot[job.lo + i] - job.centre_square)
        shift[0] -= job.step * total
        shift[1] -= job.step * met
        if sampled:
            shift[2] += rate_of(job) * (shift[0] - shift[2])


cdef void tail_update(const batch_job *job, const block_at *at, const floating *G) noexcept nogil:
    # V -= step X' G of these classes
    cdef const rows_view *X = job.X
    cdef const int64_t *order = job.order + job.lo
    cdef Py_ssize_t i, place, ahead, k = job.n_classes
    cdef int64_t entry, last
    cdef double change, lag = <double> job.n_samples * (job.n_samples + 1) / 2
    cdef floating *V = <floating *> job.V + at.class_lo
    cdef floating *V_lag = <floating *> job.V_lag + at.class_lo
    for i in range(job.n):
        last = X.starts[order[i] + 1]
        for entry in range(X.starts[order[i]], last):
            if entry + AHEAD < last:
                ahead = column_of(X, entry + AHEAD) * k
                row_prefetch(V + ahead, at.n_classes)
                if job.average:
                    row_prefetch(V_lag + ahead, at.n_classes)
            place, change = column_of(X, entry) * k, -job.step * (<const floating *> X.values)[entry]
            row_axpy(change, G + i * k, V + place, at.n_classes)
            if job.average:             # samples 1 .. n_samples of the mean do not see this change
                row_axpy(change * lag, G + i * k, V_lag + place, at.n_classes)


# ---------------------------------------------------------------- the softmax of a few rows

cdef void group_gradient(const batch_job *job, Py_ssize_t group, const floating *Z) noexcept nogil:
    # the first part of the rows of a group becomes their G; the loss, the error and, unless NULL, the scores of each,
    # before the step
    cdef double[ROW_GROUP] of_truth, damping
    cdef double[3 * ROW_GROUP] of_rows
    cdef Py_ssize_t i, j, c, q, k = job.n_classes, first = group * job.group, lo = job.lo + first
    cdef Py_ssize_t n = min(job.group, job.n - first)
    cdef double s
    cdef floating *h = <floating *> job.parts + first * k
    for q in range(1, job.n_column_blocks):
        row_axpy(1, h + q * job.batch * k, h, n * k)
    for j in range(n):
        for c in range(k):
            h[j * k + c] += <floating> job.intercepts[2 * c]
    if job.extra != NULL:
        for j in range(n * k):
            h[j] += <floating> job.extra[first * k + j]
    if job.scores != NULL:
        memcpy(<floating *> job.scores + first * k, h, n * k * sizeof(floating))
    for j in range(n):
        i, s = lo + j, job.weight[lo + j] if job.weight != NULL else 1
        of_truth[j] = h[j * k + job.truth[i]]
        damping[j] = s * max(job.least_damping, (1 + job.step * (job.mean_length + job.bias_rate) / 4)
                             / (1 + job.step * (job.length[i] + job.bias_rate) / 4))
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


cdef void scores_and_gradient(batch_job *job, Py_ssize_t lo, Py_ssize_t hi, Py_ssize_t number, double step) \
        noexcept nogil:
    # of rows lo .. of batch ``number``, which ends at ``hi`` at the latest
    job.lo, job.n, job.step = lo, min(job.batch, hi - lo), step
    job.extra = job.offset + number * job.batch * job.n_classes if job.offset != NULL else NULL
    share(job, block_scores[float], block_scores[double], job.n_class_blocks * job.n_column_blocks)
    share(job, group_gradient[float], group_gradient[double], (job.n + job.group - 1) // job.group)


cdef void train_batches(batch_job *job) noexcept nogil:
    cdef Py_ssize_t k
    cdef int64_t done
    job.weights, job.intercepts, job.scores = job.U, job.bias, NULL
    for k in range(job.n_batches):
        done = job.n_done + k
        job.sample = (done + 1) // job.stride if (done + 1) % job.stride == 0 else 0
        job.n_samples = done // job.stride
        scores_and_gradient(job, job.batches[k], job.n_train, k, job.steps[k])
        share(job, block_update[float], block_update[double], job.n_class_blocks * job.n_column_blocks)


cdef void score_batches(batch_job *job) noexcept nogil:
    # their losses, errors and scores, by the mean of the weights where there is one
    cdef Py_ssize_t k, n_bytes = job.batch * job.n_classes * job.item_size
    cdef bint by_mean = job.average and (job.n_done + job.n_batches) // job.stride > 0
    job.weights, job.intercepts = job.U_mean if by_mean else job.U, job.bias + by_mean
    for k in range(job.n_scored):
        job.scores = <char *> job.scores_out + k * n_bytes if job.scores_out != NULL else NULL
        scores_and_gradient(job, job.scored[k], job.n_visited, job.n_batches + k, 0)


# ---------------------------------------------------------------- Python wrapper

cdef class Batches:
    """Rows that passes step through in batches: `whitened` comes once, `weights` before every `run`."""

    cdef batch_job job
    cdef list rows_kept, weights_kept

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
        floating[:, :, ::1] parts,           # WORK  (n column blocks, batch, n_classes)
        Py_ssize_t class_block,
        Py_ssize_t column_block,
        double mean_length,
        int n_threads,                       # for the lengths of the rows
    ):
        """The rows in the basis of an inverse; returns z_i'z_i of each, (n_visited,), which `run` goes by."""
        cdef batch_job *job = &self.job
        cdef Py_ssize_t i, n = job.n_visited, k = parts.shape[2]
        cdef double[::1] length
        must_fit(Z.shape[0] == n and class_block > 0 and column_block > 0 and parts.shape[1] > 0
                 and parts.shape[0] == (Z.shape[1] + column_block - 1) // column_block
                 and (job.tail_inverse == 0 or parts.shape[0] == 1), "Batches.whitened")
        for i in range(n):
            must_fit(0 <= job.truth[i] < k, "Batches.whitened, classes")
        lengths = np.empty(n)
        length = lengths
        self.rows_kept += [Z, parts, length]
        job.item_size, job.width, job.batch, job.n_classes = sizeof(floating), Z.shape[1], parts.shape[1], k
        job.class_block, job.n_class_blocks = class_block, (k + class_block - 1) // class_block
        job.column_block, job.n_column_blocks = column_block, parts.shape[0]
        job.group = ROW_GROUP if k < FEW_CLASSES else ROW_GROUP // 2
        job.mean_length, job.n_threads = mean_length, n_threads
        if n and k:
            job.Z, job.parts, job.length = &Z[0, 0], &parts[0, 0, 0], &length[0]
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
        cdef Py_ssize_t i, n_batches = batches.shape[0], n_scored = scored.shape[0], k = job.n_classes
        must_fit(self.weights_kept is not None and step.shape[0] == n_batches and n_train <= job.n_visited
                 and job.item_size == sizeof(floating), "Batches.run")
        must_fit(offset.shape[0] == 0 or (offset.shape[0] >= job.batch * (n_batches + n_scored)
                                          and offset.shape[1] == k), "Batches.run, offset")
        must_fit(scores_out.shape[0] == 0 or (scores_out.shape[0] >= n_scored * job.batch
                                              and scores_out.shape[1] == k), "Batches.run, scores")
        # the mean of V is made by the caller
        must_fit(n_scored == 0 or job.tail_inverse == 0 or not job.average, "Batches.run, scored")
        for i in range(n_batches):
            if not 0 <= batches[i] < n_train:
                raise ValueError("Batches.run: a batch begins outside the rows")
        for i in range(n_scored):
            if not 0 <= scored[i] < job.n_visited:
                raise ValueError("Batches.run: a batch to look at begins outside the rows")
        if k == 0 or n_batches + n_scored == 0:
            return
        job.n_batches, job.n_scored, job.n_train = n_batches, n_scored, n_train
        job.batches, job.steps = &batches[0] if n_batches else NULL, &step[0] if n_batches else NULL
        job.scored = &scored[0] if n_scored else NULL
        job.offset = &offset[0, 0] if offset.shape[0] else NULL
        job.scores_out = &scores_out[0, 0] if scores_out.shape[0] else NULL
        job.bias_rate, job.n_threads = bias_rate, n_threads
        with nogil:
            train_batches(job)
            score_batches(job)
        self.weights_kept = None                 # the mean of weights may be a copy, not to be held on to
