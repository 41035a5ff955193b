"""Stochastic passes of one-vs-rest classes in whitened coordinates, shared out by class (SLND eq. 11).

One step of one class, at row i of its list, with u the whitened weights and z_i the whitened row:

    score = <u, z_i> + b,   p = -F'(y score),   u += eta s_i y p z_i,   b += eta s_i y p beta

which is the paper's w += eta y p H* x_i, because w = H*^(1/2) u. Where the tail is scaled and the rows are CSR, z_i has
two parts, the low one counted negative: H* = I / d_{k+1} - P M P' (doc/methods/slnd.md, "Whitened coordinates").

Everything a class writes (its weights, its stream, its sums) belongs to that class alone, so the bits do not depend
on the thread count.
"""

from cython cimport floating
from libc.math cimport INFINITY, isfinite
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

from cmargin._core.losses._losses cimport point, point_loss
from cmargin._core.util._random cimport next_below, shuffle_places
from cmargin._core.rows._rows cimport Rows, row_times, rows_view, sparse_axpy, sparse_dot
from cmargin._core.util._shapes cimport must_fit, within
from cmargin._core.util._simd cimport row_axpy, row_dot, row_lerp, row_prefetch
from cmargin._core.util._team cimport share_out

# Rows asked for ahead of time, and steps between two samples of the running mean (doc/lab-notebook)
cdef enum:
    PREFETCH_AHEAD = 4
    MEAN_STRIDE = 8

mean_stride = MEAN_STRIDE


# ---------------------------------------------------------------- which rows a class visits

cdef void draw_list(
    const int64_t *positives,   # IN    (n_positives,), rows of the class
    Py_ssize_t n_positives,
    Py_ssize_t n_rows,
    Py_ssize_t n_negatives,     # wanted; n_rows - n_positives takes them all
    uint64_t *stream,           # INOUT (4,)
    uint8_t *taken,             # INOUT (n_rows,), zero on entry and on exit
    int64_t *visits,            # OUT   (n_positives + n_negatives,), row, or -1-row for a negative
) noexcept nogil:
    # Every positive once and n_negatives distinct negatives, shuffled together (SLND section 3.2)
    cdef Py_ssize_t t, row, n_visits = n_positives
    for t in range(n_positives):
        taken[positives[t]] = 1
        visits[t] = positives[t]
    if n_negatives >= n_rows - n_positives:
        for row in range(n_rows):
            if not taken[row]:
                visits[n_visits] = -1 - row
                n_visits += 1
    else:
        while n_visits < n_positives + n_negatives:
            row = next_below(stream, n_rows)
            if not taken[row]:
                taken[row] = 1
                visits[n_visits] = -1 - row
                n_visits += 1
    for t in range(n_visits):
        taken[visits[t] if visits[t] >= 0 else -1 - visits[t]] = 0
    shuffle_places(visits, n_visits, stream)


cdef struct lists_work:             # what threads share: `draw_list` of class ``class_lo`` and those after it
    const int64_t *positives
    const int64_t *starts
    const int64_t *n_negatives
    const int64_t *offsets
    uint64_t *streams               # (n_classes, 4)
    uint8_t *taken                  # (n_threads, n_rows)
    int64_t *visits
    Py_ssize_t class_lo, n_rows


cdef void do_list(void *of, Py_ssize_t o, int thread) noexcept nogil:
    cdef const lists_work *by = <lists_work *> of
    cdef Py_ssize_t c = by.class_lo + o
    draw_list(by.positives + by.starts[c], by.starts[c + 1] - by.starts[c], by.n_rows, by.n_negatives[c],
              by.streams + 4 * c, by.taken + thread * by.n_rows, by.visits + by.offsets[o])


def draw_lists(
    const int64_t[::1] positives,        # IN    rows of class c: positives[starts[c]:starts[c + 1]]
    const int64_t[::1] starts,           # IN    (n_classes + 1,)
    const int64_t[::1] n_negatives,      # IN    (n_classes,), negatives per pass
    uint64_t[:, ::1] streams,            # INOUT (n_classes, 4)
    uint8_t[:, ::1] taken,               # INOUT (n_threads, n_rows), zero
    Py_ssize_t class_lo,
    const int64_t[::1] offsets,          # IN    (n_drawn + 1,), where each list begins in visits
    int64_t[::1] visits,                 # OUT   (offsets[-1],)
    int n_threads,
):
    """Draw this pass's list of every class from ``class_lo`` on, as many as ``offsets`` has room for."""
    cdef lists_work work
    cdef Py_ssize_t o, c, k, n_rows = taken.shape[1]
    must_fit(within(offsets, visits.shape[0]) and within(starts, positives.shape[0]) and class_lo >= 0
             and class_lo + offsets.shape[0] <= min(starts.shape[0], n_negatives.shape[0] + 1, streams.shape[0] + 1)
             and streams.shape[1] == 4 and taken.shape[0] >= n_threads, "draw_lists")
    for o in range(offsets.shape[0] - 1):
        c = class_lo + o
        must_fit(offsets[o + 1] - offsets[o] >= starts[c + 1] - starts[c] + n_negatives[c], "draw_lists, lists")
        for k in range(starts[c], starts[c + 1]):
            must_fit(0 <= positives[k] < n_rows, "draw_lists, positives")
    if offsets.shape[0] < 2:
        return
    work.positives = &positives[0] if positives.shape[0] else NULL          # a class may have none
    work.visits = &visits[0] if visits.shape[0] else NULL
    work.taken = &taken[0, 0] if taken.shape[0] and n_rows else NULL        # nor a rank any rows
    work.starts, work.n_negatives, work.offsets, work.streams = &starts[0], &n_negatives[0], &offsets[0], &streams[0, 0]
    work.class_lo, work.n_rows = class_lo, n_rows
    with nogil:
        share_out(do_list, &work, offsets.shape[0] - 1, n_threads)


# ---------------------------------------------------------------- steps

cdef void class_steps(const step_rule *rule, const floating *Z, Py_ssize_t width, bint by_position,
                      const rows_view *X, const double *row_weight, const double *base, const int64_t *visits,
                      Py_ssize_t n_visits, floating *u, floating *u_mean, floating *v, floating *v_lag,
                      class_state *state, pass_sums *sums) noexcept nogil:
    cdef Py_ssize_t t, row, ahead
    cdef double y, score, weight, change, rate, n_samples
    cdef const floating *z
    cdef point at
    # On the stack and written back once: neighbouring classes share cache lines (doc/lab-notebook)
    cdef class_state now = state[0]
    cdef pass_sums total = sums[0]
    for t in range(n_visits):
        if not by_position and t + PREFETCH_AHEAD < n_visits:
            ahead = visits[t + PREFETCH_AHEAD]
            row_prefetch(Z + (ahead if ahead >= 0 else -1 - ahead) * width, width)
        row = visits[t]
        y = 1
        if row < 0:
            row = -1 - row
            y = -1
        z = Z + (t if by_position else row) * width
        score = rule.low_sign * row_dot(u, z, width) + now.bias
        if rule.tail_inverse > 0:
            score += rule.tail_inverse * sparse_dot(X, row, v)
        if base != NULL:
            score += base[t]
        at = point_loss(rule.loss, y * score, 0, 0)
        weight = row_weight[row] if row_weight != NULL else 1
        change = -rule.step * weight * y * at.slope
        row_axpy(change, z, u, width)
        if rule.tail_inverse > 0:
            sparse_axpy(change, X, row, v)
            if v_lag != NULL:           # samples 1 .. s of the mean, weights 1 .. s, do not see this change
                n_samples = <double> (now.n_steps // MEAN_STRIDE)
                sparse_axpy(change * n_samples * (n_samples + 1) / 2, X, row, v_lag)
        now.bias += change * rule.bias_rate
        now.n_steps += 1
        if u_mean != NULL and now.n_steps % MEAN_STRIDE == 0:
            rate = 2 / (<double> (now.n_steps // MEAN_STRIDE) + 1)      # sample s weighs s: late iterates count more
            row_lerp(rate, u, u_mean, width)
            now.bias_mean += rate * (now.bias - now.bias_mean)
        total.loss += weight * at.value
        total.errors += weight * (y * score <= 0)
        total.weight += weight
    state[0] = now
    sums[0] = total


cdef struct steps_work:             # what threads share; void pointers are to floats where ``single``, else to doubles
    const rows_view *X
    const void *Z                   # (n_rows, width)
    const double *row_weight
    const int64_t *visits
    const int64_t *offsets
    const double *step              # (n_classes,)
    step_rule rule                  # of all classes, but for the step
    void *U                         # (n_classes, width)
    void *U_mean
    void *V                         # (n_classes, n_features)
    void *V_lag
    double *bias                    # (n_classes, 2)
    int64_t *n_steps
    double *sums                    # (n_classes, 3)
    void *work                      # (n_threads, 2, work_size)
    Py_ssize_t class_lo, first, last, width, work_size, n_features
    bint average, single


cdef void one_class(const steps_work *by, Py_ssize_t o, int thread, const floating *Z) noexcept nogil:
    # Copies of the weights into this thread's own cache lines, the steps, and back
    cdef Py_ssize_t c = by.class_lo + o, first = by.first, last = min(by.last, by.offsets[o + 1] - by.offsets[o])
    cdef step_rule rule = by.rule
    cdef class_state state
    cdef pass_sums total
    cdef size_t n_bytes = by.width * sizeof(floating)
    cdef floating *u = <floating *> by.U + c * by.width
    cdef floating *u_mean = <floating *> by.U_mean + c * by.width if by.average else NULL
    cdef floating *v = <floating *> by.V + c * by.n_features if by.V != NULL else NULL
    cdef floating *v_lag = <floating *> by.V_lag + c * by.n_features if by.V_lag != NULL else NULL
    cdef floating *u_work = <floating *> by.work + 2 * thread * by.work_size
    cdef floating *mean_work = u_work + by.work_size
    cdef double *bias = by.bias + 2 * c
    cdef double *sums = by.sums + 3 * c
    if last <= first:
        return
    rule.step = by.step[c]
    state.bias, state.bias_mean, state.n_steps = bias[0], bias[1], by.n_steps[c]
    total.loss, total.errors, total.weight = sums[0], sums[1], sums[2]
    memcpy(u_work, u, n_bytes)
    if by.average:
        memcpy(mean_work, u_mean, n_bytes)
    class_steps(&rule, Z, by.width, False, by.X, by.row_weight, NULL, by.visits + by.offsets[o] + first, last - first,
                u_work, mean_work if by.average else NULL, v, v_lag, &state, &total)
    memcpy(u, u_work, n_bytes)
    if by.average:
        memcpy(u_mean, mean_work, n_bytes)
    bias[0], bias[1], by.n_steps[c] = state.bias, state.bias_mean, state.n_steps
    sums[0], sums[1], sums[2] = total.loss, total.errors, total.weight


cdef void do_class(void *of, Py_ssize_t o, int thread) noexcept nogil:
    if (<steps_work *> of).single:
        one_class(<steps_work *> of, o, thread, <const float *> (<steps_work *> of).Z)
    else:
        one_class(<steps_work *> of, o, thread, <const double *> (<steps_work *> of).Z)


def run_steps(
    Rows X,
    const floating[:, ::1] Z,            # IN    (n_rows, width)
    const double[::1] row_weight,        # IN    (n_rows,), or (0,) for ones
    Py_ssize_t class_lo,
    const int64_t[::1] offsets,          # IN    (n_drawn + 1,)
    const int64_t[::1] visits,           # IN    (offsets[-1],)
    Py_ssize_t first,
    Py_ssize_t last,
    int loss,
    const double[::1] step,              # IN    (n_classes,)
    double bias_rate,
    double low_sign,
    double tail_inverse,
    floating[:, ::1] U,                  # INOUT (n_classes, width)
    floating[:, ::1] U_mean,             # INOUT (n_classes, width), or (0, width): no mean is kept
    floating[:, ::1] V,                  # INOUT (n_classes, n_features) where tail_inverse > 0, else (0, 0)
    floating[:, ::1] V_lag,              # INOUT (n_classes, n_features) likewise, or (0, 0)
    double[:, ::1] bias,                 # INOUT (n_classes, 2), b and its running mean
    int64_t[::1] n_steps,                # INOUT (n_classes,)
    double[:, ::1] sums,                 # INOUT (n_classes, 3), loss, errors, weight: added to
    floating[:, :, ::1] work,            # WORK  (n_threads, 2, padded width)
    int n_threads,
):
    """Take steps ``first .. last - 1`` of the lists of every class from ``class_lo`` on."""
    cdef steps_work shared
    cdef bint average = U_mean.shape[0] > 0, tail = tail_inverse > 0
    cdef Py_ssize_t n_classes = U.shape[0], width = Z.shape[1], d = X.view.n_features
    must_fit(Z.shape[0] == X.view.n_rows and row_weight.shape[0] in (0, X.view.n_rows) and first >= 0
             and within(offsets, visits.shape[0]) and class_lo >= 0 and class_lo + offsets.shape[0] - 1 <= n_classes
             and step.shape[0] == bias.shape[0] == n_steps.shape[0] == sums.shape[0] == n_classes, "run_steps")
    must_fit(U.shape[1] == width and bias.shape[1] == 2 and sums.shape[1] == 3 and U_mean.shape[0] in (0, n_classes)
             and (U_mean.shape[1] == width or not average)
             and (not tail or (V.shape[0] == n_classes and V.shape[1] == d))
             and (not (tail and average) or (V_lag.shape[0] == n_classes and V_lag.shape[1] == d)),
             "run_steps, weights")
    must_fit(work.shape[0] >= n_threads and work.shape[1] == 2 and work.shape[2] >= width, "run_steps, workspace")
    if offsets.shape[0] < 2:
        return
    shared.X, shared.Z = &X.view, &Z[0, 0] if Z.shape[0] and width else NULL
    shared.row_weight = &row_weight[0] if row_weight.shape[0] else NULL
    shared.visits = &visits[0] if visits.shape[0] else NULL                         # a class may have none
    shared.offsets, shared.class_lo, shared.first, shared.last = &offsets[0], class_lo, first, last
    shared.step, shared.rule.loss, shared.rule.bias_rate = &step[0], loss, bias_rate
    shared.rule.low_sign, shared.rule.tail_inverse = low_sign, tail_inverse
    shared.U, shared.U_mean = &U[0, 0] if width else NULL, &U_mean[0, 0] if average and width else NULL
    shared.V, shared.V_lag = &V[0, 0] if tail else NULL, &V_lag[0, 0] if tail and average else NULL
    shared.bias, shared.n_steps, shared.sums = &bias[0, 0], &n_steps[0], &sums[0, 0]
    shared.work, shared.work_size, shared.width = &work[0, 0, 0], work.shape[2], width
    shared.n_features, shared.average, shared.single = d, average, floating is float
    with nogil:
        share_out(do_class, &shared, offsets.shape[0] - 1, n_threads)


def visit_losses(
    Rows X,
    const floating[:, ::1] W,            # IN    (n_classes, n_features)
    const double[::1] bias,              # IN    (n_classes,)
    const int64_t[::1] offsets,          # IN    (n_classes + 1,)
    const int64_t[::1] visits,           # IN    (offsets[-1],)
    const double[::1] row_weight,        # IN    (n_rows,), or (0,) for ones
    int loss,
    floating[::1] row_work,              # WORK  (n_features,)
    double[::1] loss_out,                # OUT   (offsets[-1],), weighted, inf on overflow
):
    """Loss of every visit of every class at its weights, w and b as they are, not whitened."""
    cdef Py_ssize_t c, k, row, n_rows = X.view.n_rows
    cdef double score
    must_fit(W.shape[1] == row_work.shape[0] == X.view.n_features and bias.shape[0] == W.shape[0]
             and offsets.shape[0] == W.shape[0] + 1 and within(offsets, visits.shape[0])
             and loss_out.shape[0] == visits.shape[0] and row_weight.shape[0] in (0, n_rows), "visit_losses")
    for k in range(visits.shape[0]):
        must_fit(-n_rows <= visits[k] < n_rows, "visit_losses, visits")
    with nogil:
        for c in range(W.shape[0]):
            for k in range(offsets[c], offsets[c + 1]):
                row = visits[k] if visits[k] >= 0 else -1 - visits[k]
                score = row_times(&X.view, row, &W[c, 0], &row_work[0]) + bias[c]
                loss_out[k] = point_loss(loss, score if visits[k] >= 0 else -score, 0, 0).value
                loss_out[k] *= row_weight[row] if row_weight.shape[0] > 0 else 1
                if not isfinite(loss_out[k]):
                    loss_out[k] = INFINITY
