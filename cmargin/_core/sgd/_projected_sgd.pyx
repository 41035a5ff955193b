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
from cmargin._core.losses._point cimport loss_of, loss_t
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


cdef struct projected_pass:     # what threads share; void pointers are to floats or doubles, as the rows
    const rows_view *X
    const double *squares       # IN    (n_rows,) |x_i|^2
    const double *cut           # IN    (n_rows,) table of `_alias`, or NULL for equal weights
    const int64_t *other        # IN    (n_rows,) likewise
    const int64_t *positives    # IN    rows of class c: positives[starts[c]:starts[c + 1]]
    const int64_t *starts       # IN    (n_classes + 1,)
    Py_ssize_t n_classes
    # the rule of a step
    loss_t loss
    const double *scale         # IN    (n_classes,) s, margin pursuit: the loss's parameter b in each
    double l2
    const double *first         # IN    (n_classes,) step at t = 0
    double delay
    bint harmonic               # alpha = first / (1 + delay + t)
    double radius               # infinite: no projection
    bint intercept
    # the steps at work
    Py_ssize_t n_steps
    uint64_t *streams           # INOUT (n_classes, 4)
    Py_ssize_t item_size        # bytes of a number of V
    void *V                     # INOUT (n_classes, n_features)
    double *state               # INOUT (n_classes, 2) b and |w|^2 + b^2
    int64_t *t                  # INOUT (n_classes,) steps taken before
    uint8_t *positive           # WORK  (n_threads, n_rows), zero
    void *work                  # WORK  (n_threads, 2, work_size)
    Py_ssize_t work_size


cdef struct sgd_state:          # of one class, while a thread takes its steps
    double c                    # w = c v, b = c v_b
    double v_b
    double square               # |w|^2 + b^2
    int64_t t                   # steps taken


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
    const projected_pass *by,
    Py_ssize_t class_,
    const uint8_t *positive,    # IN    (n_rows,)
    floating *v,                # INOUT (n_features,)
    floating *row_work,         # WORK  (n_features,), where dense rows are not contiguous
    sgd_state *state,           # INOUT
) noexcept nogil:
    cdef const rows_view *X = by.X
    cdef uint64_t *stream = by.streams + 4 * class_
    cdef Py_ssize_t drawn[DRAWN]
    cdef Py_ssize_t batch, k, n, row, d = X.n_features
    cdef bint dense = X.starts == NULL, direct = dense and X.column_stride == 1
    cdef double score, y, alpha, shrink, shrunk, inverse, change, first = by.first[class_]
    cdef loss_t loss = loss_of(by.loss.id, by.loss.a, by.scale[class_])
    cdef const floating *values = <const floating *> X.values
    cdef const floating *x
    cdef point at
    cdef sgd_state now = state[0]
    for batch in range((by.n_steps + DRAWN - 1) // DRAWN):
        n = min(<Py_ssize_t> DRAWN, by.n_steps - batch * DRAWN)
        for k in range(n):
            if by.cut == NULL:
                drawn[k] = next_below(stream, X.n_rows)
            else:
                drawn[k] = next_weighted(stream, X.n_rows, by.cut, by.other)
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
            alpha = first / (1 + by.delay + now.t) if by.harmonic else first / sqrt(1.0 + now.t)
            shrink = max(1 - alpha * by.l2, 0.0)
            shrunk = now.c * shrink
            inverse = 1 / shrunk if shrunk >= SMALLEST else 1
            score = row_dot(v, x, d) if dense else sparse_dot(X, row, v)
            score = now.c * (score + now.v_b)
            y = 1.0 if positive[row] else -1.0
            at = point_loss(&loss, y * score)
            change = -alpha * y * at.slope
            now.square = shrink * shrink * now.square + change * (
                2 * shrink * score + change * (by.squares[row] + by.intercept))
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
                if by.intercept:
                    now.v_b += change
            if now.square > by.radius * by.radius:
                now.c *= by.radius / sqrt(now.square)
                now.square = by.radius * by.radius
                if now.c < SMALLEST:
                    fold_factor(now.c, v, d, &now)
    state[0] = now


cdef void one_class(const projected_pass *by, Py_ssize_t c, int thread, floating *V) noexcept nogil:
    # Marks the rows of the class, takes the steps on a copy of w in this thread's own cache lines, and leaves w in v
    cdef Py_ssize_t d = by.X.n_features
    cdef sgd_state now
    cdef int64_t k
    cdef floating *v = V + c * d
    cdef floating *v_work = <floating *> by.work + 2 * thread * by.work_size
    cdef double *state = by.state + 2 * c
    cdef uint8_t *positive = by.positive + thread * by.X.n_rows
    now.c, now.v_b, now.square, now.t = 1, state[0], state[1], by.t[c]
    for k in range(by.starts[c], by.starts[c + 1]):
        positive[by.positives[k]] = 1
    memcpy(v_work, v, d * sizeof(floating))
    steps_of_class(by, c, positive, v_work, v_work + by.work_size, &now)
    for k in range(by.starts[c], by.starts[c + 1]):
        positive[by.positives[k]] = 0
    fold_factor(now.c, v_work, d, &now)
    memcpy(v, v_work, d * sizeof(floating))
    state[0], state[1], by.t[c] = now.v_b, now.square, now.t


cdef void do_class(void *of, Py_ssize_t c, int thread) noexcept nogil:
    cdef const projected_pass *by = <const projected_pass *> of
    if by.item_size == sizeof(float):
        one_class(by, c, thread, <float *> by.V)
    else:
        one_class(by, c, thread, <double *> by.V)


cdef class ProjectedPass:
    """Rows that are drawn at random, and the classes they belong to; `rule` comes before `take`."""

    cdef projected_pass at
    cdef list rows_kept, rule_kept

    def __init__(
        self,
        Rows X not None,
        const double[::1] squares,           # IN    (n_rows,), |x_i|^2
        const double[::1] cut,               # IN    (n_rows,) table of `_alias`, or (0,) for equal weights
        const int64_t[::1] other,            # IN    (n_rows,), or (0,)
        const int64_t[::1] positives,        # IN    rows of class c: positives[starts[c]:starts[c + 1]]
        const int64_t[::1] starts,           # IN    (n_classes + 1,)
    ):
        cdef Py_ssize_t n = X.view.n_rows
        must_fit(n > 0 and squares.shape[0] == n and other.shape[0] == cut.shape[0] and cut.shape[0] in (0, n)
                 and within(starts, positives.shape[0]), "ProjectedPass")
        self.rows_kept = [X, squares, cut, other, positives, starts]
        self.at.X, self.at.squares, self.at.starts = &X.view, &squares[0], &starts[0]
        self.at.cut, self.at.other = &cut[0] if cut.shape[0] else NULL, &other[0] if cut.shape[0] else NULL
        self.at.positives, self.at.n_classes = &positives[0] if positives.shape[0] else NULL, starts.shape[0] - 1

    def rule(
        self,
        int loss,
        double level,
        const double[::1] scale,             # IN    (n_classes,)
        double l2,
        const double[::1] first,             # IN    (n_classes,)
        double delay,
        bint harmonic,
        double radius,
        bint intercept,
    ):
        """What a step does, see the top of the file."""
        cdef projected_pass *at = &self.at
        must_fit(scale.shape[0] == first.shape[0] == at.n_classes, "ProjectedPass.rule")
        self.rule_kept = [scale, first]
        at.loss, at.scale, at.l2 = loss_of(loss, level, 1), &scale[0] if at.n_classes else NULL, l2
        at.first, at.delay, at.harmonic = &first[0] if at.n_classes else NULL, delay, harmonic
        at.radius, at.intercept = radius, intercept

    def take(
        self,
        Py_ssize_t n_steps,
        uint64_t[:, ::1] streams,            # INOUT (n_classes, 4)
        floating[:, ::1] V,                  # INOUT (n_classes, n_features), w = c v; on return c = 1
        double[:, ::1] state,                # INOUT (n_classes, 2), b and |w|^2 + b^2
        int64_t[::1] t,                      # INOUT (n_classes,) steps taken before
        uint8_t[:, ::1] positive,            # WORK  (n_threads, n_rows), zero
        floating[:, :, ::1] work,            # WORK  (n_threads, 2, padded n_features)
        int n_threads,
    ):
        """Take ``n_steps`` steps of every class."""
        cdef projected_pass at = self.at
        cdef Py_ssize_t n = at.X.n_rows, d = at.X.n_features, k = at.n_classes
        must_fit(self.rule_kept is not None and V.shape[1] == d and streams.shape[1] == 4 and state.shape[1] == 2
                 and V.shape[0] == streams.shape[0] == state.shape[0] == t.shape[0] == k, "ProjectedPass.take")
        must_fit(positive.shape[0] >= n_threads and positive.shape[1] == n and work.shape[0] >= n_threads
                 and work.shape[1] == 2 and work.shape[2] >= d, "ProjectedPass.take, workspace")
        if k == 0:
            return
        at.n_steps, at.streams, at.item_size, at.V = n_steps, &streams[0, 0], sizeof(floating), &V[0, 0]
        at.state, at.t, at.positive = &state[0, 0], &t[0], &positive[0, 0]
        at.work, at.work_size = &work[0, 0, 0], work.shape[2]
        with nogil:
            share_out(do_class, &at, k, n_threads)
