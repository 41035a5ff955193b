"""Stochastic passes of one-vs-rest classes in whitened coordinates, shared out by class (SLND eq. 11).

One step of one class, at row i of its list, with u the whitened weights and z_i the whitened row:

    score = <u, z_i> + b,   p = -F'(y score),   u += eta s_i y p z_i,   b += eta s_i y p beta

which is the paper's w += eta y p H* x_i, because w = H*^(1/2) u. Where the tail is scaled and the rows are CSR, z_i has
two parts, the low one counted negative: H* = I / d_{k+1} - P M P' (doc/methods/slnd.md, "Whitened coordinates").
"""

from cython cimport floating
from libc.math cimport INFINITY, isfinite
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

from cmargin._core.losses._losses cimport point, point_loss
from cmargin._core.losses._point cimport loss_of, loss_t
from cmargin._core.rows._rows cimport Rows, row_times, rows_view, sparse_axpy, sparse_dot
from cmargin._core.sgd._class_pass cimport ClassPass, Visits, class_pass, class_state, row_of, take_steps
from cmargin._core.util._random cimport next_below, shuffle_places
from cmargin._core.util._shapes cimport must_fit, within
from cmargin._core.util._simd cimport row_axpy, row_dot, row_lerp, row_prefetch
from cmargin._core.util._team cimport share_out

# Rows asked for ahead of time, and steps between two samples of the running mean (doc/lab-notebook)
cdef enum:
    PREFETCH_AHEAD = 4
    MEAN_STRIDE = 8

mean_stride = MEAN_STRIDE


# ---------------------------------------------------------------- which rows a class visits

cdef struct lists_work:             # what threads share
    const int64_t *positives        # IN    rows of class c: positives[starts[c]:starts[c + 1]]
    const int64_t *starts           # IN    (n_classes + 1,)
    const int64_t *n_negatives      # IN    (n_classes,), wanted; n_rows less the positives takes them all
    const int64_t *offsets          # IN    (n_drawn + 1,), where each list begins in visits
    uint64_t *streams               # INOUT (n_classes, 4)
    uint8_t *taken                  # WORK  (n_threads, n_rows), zero on entry and on exit
    int64_t *visits                 # OUT   row, or -1-row for a negative
    Py_ssize_t class_lo, n_rows     # list o is that of class class_lo + o


cdef void draw_list(void *of, Py_ssize_t o, int thread) noexcept nogil:
    # Every positive once and n_negatives distinct negatives, shuffled together (SLND section 3.2)
    cdef const lists_work *by = <const lists_work *> of
    cdef Py_ssize_t t, row, c = by.class_lo + o, n_visits = by.starts[c + 1] - by.starts[c]
    cdef const int64_t *positives = by.positives + by.starts[c]
    cdef Py_ssize_t wanted = n_visits + by.n_negatives[c]
    cdef uint64_t *stream = by.streams + 4 * c
    cdef uint8_t *taken = by.taken + thread * by.n_rows
    cdef int64_t *visits = by.visits + by.offsets[o]
    for t in range(n_visits):
        taken[positives[t]] = 1
        visits[t] = positives[t]
    if wanted >= by.n_rows:
        for row in range(by.n_rows):
            if not taken[row]:
                visits[n_visits] = -1 - row
                n_visits += 1
    else:
        while n_visits < wanted:
            row = next_below(stream, by.n_rows)
            if not taken[row]:
                taken[row] = 1
                visits[n_visits] = -1 - row
                n_visits += 1
    for t in range(n_visits):
        taken[row_of(visits[t])] = 0
    shuffle_places(visits, n_visits, stream)


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
        share_out(draw_list, &work, offsets.shape[0] - 1, n_threads)


# ---------------------------------------------------------------- steps

cdef void class_steps(const class_pass *by, class_state *state, const floating *Z, const double *base,
                      const int64_t *visits, Py_ssize_t n_visits) noexcept nogil:
    cdef Py_ssize_t t, row, width = by.width
    cdef double y, score, weight, change, rate, n_samples
    cdef const floating *z
    cdef point at
    # On the stack and written back once: neighbouring classes share cache lines (doc/lab-notebook). What is read at
    # every step is copied too, for the compiler has to think that a weight written may be a number of ``by``.
    cdef class_state now = state[0]
    cdef const rows_view *X = by.X
    cdef const double *row_weight = by.row_weight
    cdef double low_sign = by.low_sign
    cdef loss_t loss = by.loss
    cdef bint average = by.average
    cdef floating *u = <floating *> now.u
    cdef floating *v = <floating *> now.v
    for t in range(n_visits):
        if base == NULL and t + PREFETCH_AHEAD < n_visits:
            row_prefetch(Z + row_of(visits[t + PREFETCH_AHEAD]) * width, width)
        row, y = row_of(visits[t]), 1 if visits[t] >= 0 else -1
        z = Z + (row if base == NULL else t) * width
        score = low_sign * row_dot(u, z, width) + now.bias
        if now.tail_inverse > 0:
            score += now.tail_inverse * sparse_dot(X, row, <const floating *> v)
        if base != NULL:
            score += base[t]
        at = point_loss(&loss, y * score)
        weight = row_weight[row] if row_weight != NULL else 1
        change = -now.step * weight * y * at.slope
        row_axpy(change, z, u, width)
        if now.tail_inverse > 0:
            sparse_axpy(change, X, row, v)
            if now.v_lag != NULL:       # samples 1 .. s of the mean, weights 1 .. s, do not see this change
                n_samples = <double> (now.n_steps // MEAN_STRIDE)
                sparse_axpy(change * n_samples * (n_samples + 1) / 2, X, row, <floating *> now.v_lag)
        now.bias += change * now.bias_rate
        now.n_steps += 1
        if average and now.n_steps % MEAN_STRIDE == 0:
            rate = 2 / (<double> (now.n_steps // MEAN_STRIDE) + 1)      # sample s weighs s: late iterates count more
            row_lerp(rate, u, <floating *> now.u_mean, width)
            now.bias_mean += rate * (now.bias - now.bias_mean)
        now.loss += weight * at.value
        now.errors += weight * (y * score <= 0)
        now.weight += weight
    state[0] = now


cdef struct plain_pass:             # void pointers as those of `class_pass`
    const void *Z                   # IN    (n_rows, width) whitened rows
    const double *step              # IN    (n_classes,) eta
    void *work                      # WORK  (n_threads, 2, work_size)
    Py_ssize_t work_size


cdef void plain_class(const class_pass *by, class_state *now, int thread, floating *u) noexcept nogil:
    # Copies of the weights into this thread's own cache lines, the steps, and back
    cdef const plain_pass *own = <const plain_pass *> by.own
    cdef size_t n_bytes = by.width * sizeof(floating)
    cdef void *u_mean = now.u_mean
    now.step = own.step[now.c]
    now.u = <floating *> own.work + 2 * thread * own.work_size
    now.u_mean = <floating *> now.u + own.work_size
    memcpy(now.u, u, n_bytes)
    if by.average:
        memcpy(now.u_mean, u_mean, n_bytes)
    class_steps(by, now, <const floating *> own.Z, NULL, now.visits, now.n_visits)
    memcpy(u, now.u, n_bytes)
    if by.average:
        memcpy(u_mean, now.u_mean, n_bytes)


def run_steps(
    ClassPass by not None,               # with the weights of `ClassPass.whitened`
    Visits visits not None,
    Py_ssize_t first,
    Py_ssize_t last,
    const double[::1] step,              # IN    (n_classes,), eta
    const floating[:, ::1] Z,            # IN    (n_rows, width)
    floating[:, :, ::1] work,            # WORK  (n_threads, 2, padded width)
    int n_threads,
):
    """Take steps ``first .. last - 1`` of the visits of every class."""
    cdef plain_pass own
    cdef class_pass at = by.part(visits, first, last, &own)
    must_fit(at.bias != NULL and at.item_size == sizeof(floating) and Z.shape[0] == at.X.n_rows
             and Z.shape[1] == at.width and step.shape[0] == at.n_classes and work.shape[0] >= n_threads
             and work.shape[1] == 2 and work.shape[2] >= at.width, "run_steps")
    if at.n_lists == 0:
        return
    own.Z, own.step = &Z[0, 0] if Z.shape[0] and at.width else NULL, &step[0]
    own.work, own.work_size = &work[0, 0, 0], work.shape[2]
    with nogil:
        take_steps(&at, plain_class[float], plain_class[double], n_threads)


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
    cdef loss_t of = loss_of(loss, 0, 0)
    cdef double score
    must_fit(W.shape[1] == row_work.shape[0] == X.view.n_features and bias.shape[0] == W.shape[0]
             and offsets.shape[0] == W.shape[0] + 1 and within(offsets, visits.shape[0])
             and loss_out.shape[0] == visits.shape[0] and row_weight.shape[0] in (0, n_rows), "visit_losses")
    for k in range(visits.shape[0]):
        must_fit(-n_rows <= visits[k] < n_rows, "visit_losses, visits")
    with nogil:
        for c in range(W.shape[0]):
            for k in range(offsets[c], offsets[c + 1]):
                row = row_of(visits[k])
                score = row_times(&X.view, row, &W[c, 0], &row_work[0]) + bias[c]
                loss_out[k] = point_loss(&of, score if visits[k] >= 0 else -score).value
                loss_out[k] *= row_weight[row] if row_weight.shape[0] > 0 else 1
                if not isfinite(loss_out[k]):
                    loss_out[k] = INFINITY
