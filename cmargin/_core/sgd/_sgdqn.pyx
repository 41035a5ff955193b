"""SGD-QN, corrected (Bordes, Bottou, Gallinari 2009; erratum 2010), one-vs-rest classes shared out to threads.

One step of one class at row i, B a diagonal of gains, one for every weight and one for the intercept:

    w <- w - s_i y F'(y h(x_i)) B x_i,     and every ``skip`` steps  w <- w - skip l2 B w

and in the step after that, with the change of the gradient over the change of the weight, seen on this row alone,

    r_j = [g(w_new) - g(w_old)]_j / [w_new - w_old]_j,  clipped to [l2, 100 l2];   B_j <- B_j / (1 + skip B_j r_j)

so that 1/B_j grows by the curvature met along j. A weight that the step does not move (x_ij = 0) takes r_j = l2. The
erratum folds the step 1/(t + t0) into B: gains of rare features, as published first, fell too early.

Everything a class writes belongs to that class alone: the bits do not depend on the thread count.
"""

from cython cimport floating
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from cmargin._core.losses._losses cimport point_loss
from cmargin._core.rows._rows cimport Rows, gather_row, rows_view, sparse_dot, sparse_scaled_axpy
from cmargin._core.util._shapes cimport must_fit, within
from cmargin._core.util._simd cimport row_dot, row_prefetch, row_scaled_axpy
from cmargin._core.util._team cimport share_out

cdef enum:
    PREFETCH_AHEAD = 4
    LARGEST_RATIO = 100     # of r_j to l2

# columns of ``state``
cdef enum:
    BIAS = 0
    BIAS_GAIN = 1
    COUNT = 2               # steps until the penalty is due
    LEARN = 3               # 1: this step updates the gains
    N_STATE = 4

state_size = N_STATE


cdef inline floating slower(floating gain, floating bend, floating l2, floating skip) noexcept nogil:
    # B / (1 + skip B r), B r = l2 B + bend clipped to [l2 B, 100 l2 B]
    cdef floating least = l2 * gain
    cdef floating met = least + bend
    cdef floating most = LARGEST_RATIO * least
    met = met if met < most else most
    return gain / (1 + skip * (met if met > least else least))


cdef void learn_gains(const floating *x, Py_ssize_t d, double bend, double l2, double skip, floating *gain,
                      double *state) noexcept nogil:
    # ``bend``: by how much the step raised the coefficient of x in the gradient, over its length along B x, so that
    # r_j = [g_new - g_old]_j / [w_new - w_old]_j = l2 + bend / B_j where x_j is not 0
    cdef Py_ssize_t j
    cdef floating there = <floating> bend, l2_ = <floating> l2, skip_ = <floating> skip
    for j in range(d):
        gain[j] = slower(gain[j], there if x[j] != 0 else 0, l2_, skip_)
    state[BIAS_GAIN] = slower(state[BIAS_GAIN], bend, l2, skip)


cdef void shrink_weights(Py_ssize_t d, double amount, const floating *gain, floating *w) noexcept nogil:
    # w <- w - amount B w, never past zero
    cdef Py_ssize_t j
    for j in range(d):
        w[j] *= <floating> max(1 - amount * gain[j], 0.0)


cdef void class_steps(
    const rows_view *X,
    const double *row_weight,   # IN    (n_rows,) or NULL for ones
    const int64_t *visits,      # IN    (n_visits,) row, or -1-row for a negative
    Py_ssize_t n_visits,
    int loss,
    double l2,
    Py_ssize_t skip,
    floating *w,                # INOUT (n_features,)
    floating *gain,             # INOUT (n_features,) B
    double *state,              # INOUT (N_STATE,)
    double *sums,               # INOUT (3,) loss, errors, weight: added to
    floating *dense,            # WORK  (n_features,)
) noexcept nogil:
    cdef Py_ssize_t t, row, ahead, d = X.n_features
    cdef bint sparse = X.starts != NULL, direct = not sparse and X.column_stride == 1
    cdef const floating *values = <const floating *> X.values
    cdef const floating *x
    cdef double y, score, weight, change, slope, rise
    for t in range(n_visits):
        if direct and t + PREFETCH_AHEAD < n_visits:
            ahead = visits[t + PREFETCH_AHEAD]
            row_prefetch(values + (ahead if ahead >= 0 else -1 - ahead) * X.row_stride, d)
        row = visits[t]
        y = 1
        if row < 0:
            row = -1 - row
            y = -1
        x = values + row * X.row_stride if direct else dense
        if not direct and (not sparse or state[LEARN] > 0):
            gather_row(X, row, dense)
        score = (sparse_dot(X, row, w) if sparse else row_dot(w, x, d)) + state[BIAS]
        weight = row_weight[row] if row_weight != NULL else 1
        slope = point_loss(loss, y * score, 0, 0).slope
        sums[0] += weight * point_loss(loss, y * score, 0, 0).value
        sums[1] += weight * (y * score <= 0)
        sums[2] += weight
        change = -weight * y * slope
        if sparse:
            sparse_scaled_axpy(change, X, row, gain, w)
        else:
            row_scaled_axpy(change, gain, x, w, d)
        state[BIAS] += change * state[BIAS_GAIN]
        if state[LEARN] > 0:
            score = (sparse_dot(X, row, w) if sparse else row_dot(w, x, d)) + state[BIAS]
            rise = weight * y * (point_loss(loss, y * score, 0, 0).slope - slope)
            learn_gains(x, d, rise / change if change != 0 else 0, l2, skip, gain, state)
            state[LEARN] = 0
        state[COUNT] -= 1
        if state[COUNT] <= 0:
            shrink_weights(d, skip * l2, gain, w)
            state[COUNT], state[LEARN] = skip, 1


cdef struct qn_work:                # what threads share; void pointers are to floats where ``single``, else to doubles
    const rows_view *X
    const double *row_weight
    const int64_t *visits
    const int64_t *offsets
    void *W                         # (n_classes, n_features)
    void *gain                      # (n_classes, n_features)
    double *state                   # (n_classes, N_STATE)
    double *sums                    # (n_classes, 3)
    void *work                      # (n_threads, 3, work_size)
    double l2
    Py_ssize_t class_lo, first, last, skip, work_size
    int loss
    bint single


cdef void one_class(const qn_work *by, Py_ssize_t o, int thread, floating *W) noexcept nogil:
    # The steps on copies in this thread's own cache lines: neighbouring classes share some (doc/lab-notebook)
    cdef Py_ssize_t c = by.class_lo + o, d = by.X.n_features
    cdef Py_ssize_t n_visits = min(by.last, by.offsets[o + 1] - by.offsets[o]) - by.first
    cdef double now[N_STATE]
    cdef double total[3]
    cdef size_t n_bytes = d * sizeof(floating)
    cdef floating *w = W + c * d
    cdef floating *gain = <floating *> by.gain + c * d
    cdef floating *dense = <floating *> by.work + 3 * thread * by.work_size
    cdef floating *w_work = dense + by.work_size
    cdef floating *gain_work = w_work + by.work_size
    cdef double *state = by.state + N_STATE * c
    cdef double *sums = by.sums + 3 * c
    if n_visits <= 0:
        return
    memcpy(w_work, w, n_bytes)
    memcpy(gain_work, gain, n_bytes)
    memcpy(now, state, N_STATE * sizeof(double))
    memcpy(total, sums, 3 * sizeof(double))
    class_steps(by.X, by.row_weight, by.visits + by.offsets[o] + by.first, n_visits, by.loss, by.l2, by.skip, w_work,
                gain_work, now, total, dense)
    memcpy(w, w_work, n_bytes)
    memcpy(gain, gain_work, n_bytes)
    memcpy(state, now, N_STATE * sizeof(double))
    memcpy(sums, total, 3 * sizeof(double))


cdef void do_class(void *of, Py_ssize_t o, int thread) noexcept nogil:
    if (<qn_work *> of).single:
        one_class(<qn_work *> of, o, thread, <float *> (<qn_work *> of).W)
    else:
        one_class(<qn_work *> of, o, thread, <double *> (<qn_work *> of).W)


def run_qn_steps(
    Rows X,
    const double[::1] row_weight,        # IN    (n_rows,), or (0,) for ones
    Py_ssize_t class_lo,
    const int64_t[::1] offsets,          # IN    (n_drawn + 1,)
    const int64_t[::1] visits,           # IN    (offsets[-1],)
    Py_ssize_t first,
    Py_ssize_t last,
    int loss,
    double l2,
    Py_ssize_t skip,
    floating[:, ::1] W,                  # INOUT (n_classes, n_features)
    floating[:, ::1] gain,               # INOUT (n_classes, n_features)
    double[:, ::1] state,                # INOUT (n_classes, state_size)
    double[:, ::1] sums,                 # INOUT (n_classes, 3), loss, errors, weight: added to
    floating[:, :, ::1] work,            # WORK  (n_threads, 3, padded n_features)
    int n_threads,
):
    """Take steps ``first .. last - 1`` of the lists of every class from ``class_lo`` on."""
    cdef qn_work shared
    cdef Py_ssize_t n_classes = W.shape[0], d = X.view.n_features
    must_fit(row_weight.shape[0] in (0, X.view.n_rows) and within(offsets, visits.shape[0]) and class_lo >= 0
             and first >= 0 and class_lo + offsets.shape[0] - 1 <= n_classes and W.shape[1] == gain.shape[1] == d
             and gain.shape[0] == state.shape[0] == sums.shape[0] == n_classes and state.shape[1] == N_STATE
             and sums.shape[1] == 3, "run_qn_steps")
    must_fit(work.shape[0] >= n_threads and work.shape[1] == 3 and work.shape[2] >= d, "run_qn_steps, workspace")
    if offsets.shape[0] < 2:
        return
    shared.X, shared.row_weight = &X.view, &row_weight[0] if row_weight.shape[0] else NULL
    shared.visits, shared.offsets = &visits[0] if visits.shape[0] else NULL, &offsets[0]      # a class may have none
    shared.class_lo, shared.first, shared.last = class_lo, first, last
    shared.loss, shared.l2, shared.skip = loss, l2, skip
    shared.W, shared.gain, shared.state, shared.sums = &W[0, 0], &gain[0, 0], &state[0, 0], &sums[0, 0]
    shared.work, shared.work_size, shared.single = &work[0, 0, 0], work.shape[2], floating is float
    with nogil:
        share_out(do_class, &shared, offsets.shape[0] - 1, n_threads)
