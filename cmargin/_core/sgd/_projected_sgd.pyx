"""Projected stochastic gradient steps of one-vs-rest classes, shared out by class: margin pursuit and Pegasos.

One step of one class on a row i drawn at random, as often as its weight says, with score h = <w, x_i> + b:

    alpha = first / (1 + delay + t)   or   first / sqrt(1 + t)
    w <- (1 - alpha l2) w - alpha F'(y h) y x_i,   then onto the ball |(w, b)| <= radius

which is Algorithm 1 of margin pursuit as its experiments run it (section 4; first = 1 / (s sqrt(l2)), delay 0, radius
1 / sqrt(l2)) and Pegasos (first = 1 / l2). The intercept is the weight of a column of ones, shrunk and projected with
the others: steps of size 1 / l2 would throw a free one about.

w is kept as c v, so that shrinking and projecting touch one number and a step costs one dot and one axpy of a row.
Everything a class writes belongs to it alone: the bits do not depend on the thread count.
"""

from cython cimport floating
from libc.math cimport sqrt
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

from cmargin._core.losses._losses cimport point, point_loss
from cmargin._core.util._random cimport next_below, next_weighted
from cmargin._core.rows._rows cimport Rows, gather_row, rows_view, sparse_axpy, sparse_dot
from cmargin._core.util._shapes cimport must_fit, within
from cmargin._core.util._simd cimport row_axpy, row_dot, row_prefetch
from cmargin._core.util._team cimport share_out

cdef enum:
    DRAWN = 64              # rows drawn, and asked for, ahead of their steps
    PREFETCH_AHEAD = 4
    EXACT_EVERY = 1024      # steps after which |w|^2 is summed anew
cdef double SMALLEST = 1e-4                     # c below which it is multiplied into v


cdef struct sgd_rule:
    int loss
    double level            # gamma, margin pursuit
    double scale            # s, margin pursuit
    double l2
    double first
    double delay
    bint harmonic           # alpha = first / (1 + delay + t)
    double radius           # infinite: no projection
    bint intercept


cdef struct sgd_state:
    double c                # w = c v, b = c v_b
    double v_b
    double square           # |w|^2 + b^2
    int64_t t


cdef void fold_factor(double c, floating *v, Py_ssize_t d, sgd_state *now) noexcept nogil:
    # v <- c v, c <- 1
    cdef Py_ssize_t j
    for j in range(d):
        v[j] = <floating> (c * v[j])
    now.v_b *= c
    now.c = 1


cdef void exact_square(const floating *v, Py_ssize_t d, sgd_state *now) noexcept nogil:
    cdef Py_ssize_t j
    cdef double total = now.v_b * now.v_b
    for j in range(d):
        total += <double> v[j] * v[j]
    now.square = now.c * now.c * total


cdef void steps_of_class(
    const rows_view *X,
    const sgd_rule *rule,
    const double *squares,      # IN    (n_rows,) |x_i|^2
    const double *cut,          # IN    (n_rows,) table of `_alias`, or NULL for equal weights
    const int64_t *other,       # IN    (n_rows,)
    const uint8_t *positive,    # IN    (n_rows,)
    Py_ssize_t n_steps,
    uint64_t *stream,           # INOUT (4,)
    floating *v,                # INOUT (n_features,)
    floating *row_work,         # WORK  (n_features,), where dense rows are not contiguous
    sgd_state *state,           # INOUT
) noexcept nogil:
    cdef Py_ssize_t drawn[DRAWN]
    cdef Py_ssize_t batch, k, n, row, d = X.n_features
    cdef bint dense = X.starts == NULL, direct = dense and X.column_stride == 1
    cdef double score, y, alpha, shrink, shrunk, inverse, change
    cdef const floating *values = <const floating *> X.values
    cdef const floating *x
    cdef point at
    cdef sgd_state now = state[0]
    for batch in range((n_steps + DRAWN - 1) // DRAWN):
        n = min(<Py_ssize_t> DRAWN, n_steps - batch * DRAWN)
        for k in range(n):
            if cut == NULL:
                drawn[k] = next_below(stream, X.n_rows)
            else:
                drawn[k] = next_weighted(stream, X.n_rows, cut, other)
        for k in range(n):
            if now.t % EXACT_EVERY == 0:
                exact_square(v, d, &now)
            if direct and k + PREFETCH_AHEAD < n:
                row_prefetch(values + drawn[k + PREFETCH_AHEAD] * X.row_stride, d)
            row = drawn[k]
            x = values + row * X.row_stride if direct else row_work
            if dense and not direct:
                gather_row(X, row, row_work)
            # what does not need the score comes first: its division then runs beside the products
            alpha = rule.first / (1 + rule.delay + now.t) if rule.harmonic else rule.first / sqrt(1.0 + now.t)
            shrink = max(1 - alpha * rule.l2, 0.0)
            shrunk = now.c * shrink
            inverse = 1 / shrunk if shrunk >= SMALLEST else 1
            score = row_dot(v, x, d) if dense else sparse_dot(X, row, v)
            score = now.c * (score + now.v_b)
            y = 1.0 if positive[row] else -1.0
            at = point_loss(rule.loss, y * score, rule.level, rule.scale)
            change = -alpha * y * at.slope
            now.square = shrink * shrink * now.square + change * (
                2 * shrink * score + change * (squares[row] + rule.intercept))
            now.t += 1
            now.c = shrunk
            if shrunk < SMALLEST:
                fold_factor(shrunk, v, d, &now)
            if change != 0:
                change *= inverse
                if dense:
                    row_axpy(change, x, v, d)
                else:
                    sparse_axpy(change, X, row, v)
                if rule.intercept:
                    now.v_b += change
            if now.square > rule.radius * rule.radius:
                now.c *= rule.radius / sqrt(now.square)
                now.square = rule.radius * rule.radius
                if now.c < SMALLEST:
                    fold_factor(now.c, v, d, &now)
    state[0] = now


cdef struct projected_work:         # what threads share; void pointers are to floats where ``single``, else to doubles
    const rows_view *X
    const double *squares
    const double *cut
    const int64_t *other
    const int64_t *positives
    const int64_t *starts
    sgd_rule rule                   # of all classes, but for scale and first step
    const double *scale             # (n_classes,)
    const double *first             # (n_classes,)
    uint64_t *streams               # (n_classes, 4)
    void *V                         # (n_classes, n_features)
    double *state                   # (n_classes, 2)
    int64_t *t
    uint8_t *positive               # (n_threads, n_rows)
    void *work                      # (n_threads, 2, work_size)
    Py_ssize_t n_steps, work_size
    bint single


cdef void one_class(const projected_work *by, Py_ssize_t c, int thread, floating *V) noexcept nogil:
    # Marks the rows of the class, takes the steps on a copy of w in this thread's own cache lines, and leaves w in v
    cdef Py_ssize_t d = by.X.n_features
    cdef sgd_rule rule = by.rule
    cdef sgd_state now
    cdef int64_t k
    cdef floating *v = V + c * d
    cdef floating *v_work = <floating *> by.work + 2 * thread * by.work_size
    cdef double *state = by.state + 2 * c
    cdef uint8_t *positive = by.positive + thread * by.X.n_rows
    rule.scale, rule.first = by.scale[c], by.first[c]
    now.c, now.v_b, now.square, now.t = 1, state[0], state[1], by.t[c]
    for k in range(by.starts[c], by.starts[c + 1]):
        positive[by.positives[k]] = 1
    memcpy(v_work, v, d * sizeof(floating))
    steps_of_class(by.X, &rule, by.squares, by.cut, by.other, positive, by.n_steps, by.streams + 4 * c, v_work,
                   v_work + by.work_size, &now)
    for k in range(by.starts[c], by.starts[c + 1]):
        positive[by.positives[k]] = 0
    fold_factor(now.c, v_work, d, &now)
    memcpy(v, v_work, d * sizeof(floating))
    state[0], state[1], by.t[c] = now.v_b, now.square, now.t


cdef void do_class(void *of, Py_ssize_t c, int thread) noexcept nogil:
    if (<projected_work *> of).single:
        one_class(<projected_work *> of, c, thread, <float *> (<projected_work *> of).V)
    else:
        one_class(<projected_work *> of, c, thread, <double *> (<projected_work *> of).V)


def projected_steps(
    Rows X,
    const double[::1] squares,           # IN    (n_rows,)
    const double[::1] cut,               # IN    (n_rows,) table of `_alias`, or (0,) for equal weights
    const int64_t[::1] other,            # IN    (n_rows,), or (0,)
    const int64_t[::1] positives,        # IN    rows of class c: positives[starts[c]:starts[c + 1]]
    const int64_t[::1] starts,           # IN    (n_classes + 1,)
    Py_ssize_t n_steps,
    int loss,
    double level,
    const double[::1] scale,             # IN    (n_classes,)
    double l2,
    const double[::1] first,             # IN    (n_classes,)
    double delay,
    bint harmonic,
    double radius,
    bint intercept,
    uint64_t[:, ::1] streams,            # INOUT (n_classes, 4)
    floating[:, ::1] V,                  # INOUT (n_classes, n_features), w = c v; on return c = 1
    double[:, ::1] state,                # INOUT (n_classes, 2), b and |w|^2 + b^2
    int64_t[::1] t,                      # INOUT (n_classes,) steps taken before
    uint8_t[:, ::1] positive,            # WORK  (n_threads, n_rows), zero
    floating[:, :, ::1] work,            # WORK  (n_threads, 2, padded n_features)
    int n_threads,
):
    """Take ``n_steps`` steps of every class."""
    cdef projected_work shared
    cdef bint drawn_by_weight = cut.shape[0] > 0
    cdef Py_ssize_t n = X.view.n_rows, d = X.view.n_features, n_classes = V.shape[0]
    must_fit(n > 0 and squares.shape[0] == n and other.shape[0] == cut.shape[0] and cut.shape[0] in (0, n)
             and V.shape[1] == d and starts.shape[0] == n_classes + 1 and within(starts, positives.shape[0])
             and scale.shape[0] == first.shape[0] == streams.shape[0] == state.shape[0] == t.shape[0] == n_classes
             and streams.shape[1] == 4 and state.shape[1] == 2, "projected_steps")
    must_fit(positive.shape[0] >= n_threads and positive.shape[1] == n and work.shape[0] >= n_threads
             and work.shape[1] == 2 and work.shape[2] >= d, "projected_steps, workspace")
    if n_classes == 0:
        return
    shared.X, shared.squares, shared.n_steps = &X.view, &squares[0], n_steps
    shared.cut, shared.other = &cut[0] if drawn_by_weight else NULL, &other[0] if drawn_by_weight else NULL
    shared.positives, shared.starts = &positives[0] if positives.shape[0] else NULL, &starts[0]
    shared.rule.loss, shared.rule.level, shared.rule.l2, shared.rule.delay = loss, level, l2, delay
    shared.rule.harmonic, shared.rule.radius, shared.rule.intercept = harmonic, radius, intercept
    shared.scale, shared.first, shared.streams = &scale[0], &first[0], &streams[0, 0]
    shared.V, shared.state, shared.t, shared.positive = &V[0, 0], &state[0, 0], &t[0], &positive[0, 0]
    shared.work, shared.work_size, shared.single = &work[0, 0, 0], work.shape[2], floating is float
    with nogil:
        share_out(do_class, &shared, n_classes, n_threads)
