"""SGD-QN, corrected (Bordes, Bottou, Gallinari 2009; erratum 2010), one-vs-rest classes shared out to threads.

One step of one class at row i, B a diagonal of gains, one for every weight and one for the intercept:

    w <- w - s_i y F'(y h(x_i)) B x_i,     and every ``skip`` steps  w <- w - skip l2 B w

and in the step after that, with the change of the gradient over the change of the weight, seen on this row alone,

    r_j = [g(w_new) - g(w_old)]_j / [w_new - w_old]_j,  clipped to [l2, 100 l2];   B_j <- B_j / (1 + skip B_j r_j)

so that 1/B_j grows by the curvature met along j. A weight that the step does not move (x_ij = 0) takes r_j = l2. The
erratum folds the step 1/(t + t0) into B: gains of rare features, as published first, fell too early.
"""

from cython cimport floating
from libc.string cimport memcpy

from cmargin._core.losses._losses cimport point, point_loss
from cmargin._core.rows._rows cimport gather_row, sparse_dot, sparse_scaled_axpy
from cmargin._core.sgd._class_pass cimport ClassPass, Visits, class_pass, class_state, row_of, take_steps
from cmargin._core.util._shapes cimport must_fit
from cmargin._core.util._simd cimport row_dot, row_prefetch, row_scaled_axpy

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


cdef struct qn_pass:                # void pointers as those of `class_pass`, whose U is W here
    double l2
    Py_ssize_t skip                 # steps between two penalties
    void *gain                      # INOUT (n_classes, n_features) B
    double *state                   # INOUT (n_classes, N_STATE)
    void *work                      # WORK  (n_threads, 3, work_size) a row, copies of w and of its gains
    Py_ssize_t work_size


cdef void qn_steps(const class_pass *by, class_state *now, double *state, floating *w, floating *gain,
                   floating *dense) noexcept nogil:
    cdef const qn_pass *own = <const qn_pass *> by.own
    cdef Py_ssize_t t, row, d = by.width
    cdef bint sparse = by.X.starts != NULL, direct = not sparse and by.X.column_stride == 1
    cdef const floating *values = <const floating *> by.X.values
    cdef const floating *x
    cdef double y, score, weight, change, rise
    cdef point at
    for t in range(now.n_visits):
        if direct and t + PREFETCH_AHEAD < now.n_visits:
            row_prefetch(values + row_of(now.visits[t + PREFETCH_AHEAD]) * by.X.row_stride, d)
        row, y = row_of(now.visits[t]), 1 if now.visits[t] >= 0 else -1
        x = values + row * by.X.row_stride if direct else dense
        if not direct and (not sparse or state[LEARN] > 0):
            gather_row(by.X, row, dense)
        score = (sparse_dot(by.X, row, w) if sparse else row_dot(w, x, d)) + state[BIAS]
        weight = by.row_weight[row] if by.row_weight != NULL else 1
        at = point_loss(&by.loss, y * score)
        now.loss += weight * at.value
        now.errors += weight * (y * score <= 0)
        now.weight += weight
        change = -weight * y * at.slope
        if sparse:
            sparse_scaled_axpy(change, by.X, row, gain, w)
        else:
            row_scaled_axpy(change, gain, x, w, d)
        state[BIAS] += change * state[BIAS_GAIN]
        if state[LEARN] > 0:
            score = (sparse_dot(by.X, row, w) if sparse else row_dot(w, x, d)) + state[BIAS]
            rise = weight * y * (point_loss(&by.loss, y * score).slope - at.slope)
            learn_gains(x, d, rise / change if change != 0 else 0, own.l2, own.skip, gain, state)
            state[LEARN] = 0
        state[COUNT] -= 1
        if state[COUNT] <= 0:
            shrink_weights(d, own.skip * own.l2, gain, w)
            state[COUNT], state[LEARN] = own.skip, 1


cdef void qn_class(const class_pass *by, class_state *now, int thread, floating *w) noexcept nogil:
    # The steps on copies in this thread's own cache lines: neighbouring classes share some (doc/lab-notebook)
    cdef const qn_pass *own = <const qn_pass *> by.own
    cdef double[N_STATE] state
    cdef size_t n_bytes = by.width * sizeof(floating)
    cdef floating *gain = <floating *> own.gain + now.c * by.width
    cdef floating *dense = <floating *> own.work + 3 * thread * own.work_size
    cdef floating *w_work = dense + own.work_size
    cdef floating *gain_work = w_work + own.work_size
    memcpy(w_work, w, n_bytes)
    memcpy(gain_work, gain, n_bytes)
    memcpy(state, own.state + N_STATE * now.c, N_STATE * sizeof(double))
    qn_steps(by, now, state, w_work, gain_work, dense)
    memcpy(w, w_work, n_bytes)
    memcpy(gain, gain_work, n_bytes)
    memcpy(own.state + N_STATE * now.c, state, N_STATE * sizeof(double))


def run_qn_steps(
    ClassPass by not None,
    Visits visits not None,
    Py_ssize_t first,
    Py_ssize_t last,
    double l2,
    Py_ssize_t skip,
    floating[:, ::1] W,                  # INOUT (n_classes, n_features)
    floating[:, ::1] gain,               # INOUT (n_classes, n_features)
    double[:, ::1] state,                # INOUT (n_classes, state_size)
    floating[:, :, ::1] work,            # WORK  (n_threads, 3, padded n_features)
    int n_threads,
):
    """Take steps ``first .. last - 1`` of the visits of every class."""
    cdef qn_pass own
    cdef class_pass at = by.part(visits, first, last, &own)
    cdef Py_ssize_t n_classes = at.n_classes, d = at.X.n_features
    must_fit(W.shape[1] == gain.shape[1] == d and W.shape[0] == gain.shape[0] == state.shape[0] == n_classes
             and state.shape[1] == N_STATE, "run_qn_steps")
    must_fit(work.shape[0] >= n_threads and work.shape[1] == 3 and work.shape[2] >= d, "run_qn_steps, workspace")
    if at.n_lists == 0:
        return
    at.U, at.width, at.item_size = &W[0, 0], d, sizeof(floating)
    own.l2, own.skip, own.gain, own.state = l2, skip, &gain[0, 0], &state[0, 0]
    own.work, own.work_size = &work[0, 0, 0], work.shape[2]
    with nogil:
        take_steps(&at, qn_class[float], qn_class[double], n_threads)
