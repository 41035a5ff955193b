"""Binary problems of the squared hinge that share their rows, side by side in the lanes of vectors.

    minimise over w, b   l2/2 |w|^2 + (1/N) sum_i s_i max(0, 1 - y_i (<w, x_i> + b))^2,     y_i of every problem its own

by nonlinear conjugate gradients in w, preconditioned by the curvature that all problems share at w = 0 (all rows), with
t and b exact along every line:

(a) A step reads X twice for all problems of a batch, once by rows, once by columns, in single precision. What stands at
    [row][lane] is the problem's own: y, the scores T = X w, their change Q, and slopes.
(b) A problem that has come to its end hands its lane to the next of the batch. A batch is the work of one thread, and
    which problems it has does not depend on how many threads there are.
(c) At a point with the best b the slopes a = 2 u+ are dual variables whose bound is |gradient|^2 / (2 l2) below the
    objective. A problem is at its end when that is within its tolerance.
(d) What is reported is evaluated in double precision on the rows as they were given, at the numbers that are
    stored: scores, the best b, slopes shrunk on the heavier side until they balance, and their bound.
"""

from copy import copy

import numpy as np

from libc.float cimport FLT_EPSILON
from libc.math cimport INFINITY, fabs, isfinite, pow
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy, memset

from cmargin._core.linalg._blas cimport NO_TRANS, gemm
from cmargin._core.newton._asking cimport Worker
from cmargin._core.rows._csr_classes cimport csr_sums, csr_times
from cmargin._core.rows._rows cimport Rows
from cmargin._core.util._clock cimport seconds
from cmargin._core.util._shapes cimport must_fit

cdef enum:
    TRIALS = 16                      # of a line search at most: three to five where rounding lets it end

cdef double ROUNDING = 1e-12         # relative change of b that is none

LANE_COUNT = LANES


# ---------------------------------------------------------------- products

cdef void times(lane_batch *at, const float *W, float *out) noexcept nogil:
    # out = X W; (n, LANES) = (n, m) (m, LANES)
    lane_products(at.rows.starts, at.rows.columns, at.rows.values, at.rows.n, W, out)


cdef void back(lane_batch *at, const float *R, float *out) noexcept nogil:
    # out = X' R; (m, LANES) = (m, n) (n, LANES)
    lane_products(at.rows.column_starts, at.rows.column_rows, at.rows.column_values, at.rows.m, R, out)


# ---------------------------------------------------------------- lanes

cdef void open_lane(lane_batch *at, Py_ssize_t lane) noexcept nogil:
    # the next problem from w = 0, its first direction the weights to start from, or nothing: rows are negative then;
    # its numbers of rows and columns are 0 (`clear_lanes`)
    cdef Py_ssize_t label = at.next if at.next < at.last else -1, i
    at.label[lane], at.steps[lane], at.fresh[lane], at.given[lane] = label, 0, True, False
    at.t[lane] = at.b[lane] = at.beta[lane] = 0
    if label < 0:
        return
    at.next += 1
    put_signs(at, lane, 1)
    if at.start != NULL:
        at.given[lane] = True
        for i in range(at.rows.m):
            at.D[i * LANES + lane] = at.start[label * at.rows.m + i]
            at.M[i * LANES + lane] = at.D[i * LANES + lane] != 0


cdef void put_signs(lane_batch *at, Py_ssize_t lane, float y) noexcept nogil:
    # of the rows that have the lane's label
    cdef int64_t place
    for place in range(at.positive_starts[at.label[lane]], at.positive_starts[at.label[lane] + 1]):
        at.Y[at.positives[place] * LANES + lane] = y


cdef void clear_lanes(lane_batch *at, const float *keep) noexcept nogil:
    # lanes that have 0 in ``keep``, else 1, for the next problems
    lane_keep(at.rows.n, keep, at.T)
    lane_keep(at.rows.m, keep, at.W)
    lane_keep(at.rows.m, keep, at.D)


cdef void close_lane(lane_batch *at, Py_ssize_t lane) noexcept nogil:
    # the problem's numbers are what is reported of it, where they can be proven
    cdef Py_ssize_t label = at.label[lane], j
    cdef float *w = at.w_of + label * at.rows.m
    for j in range(at.rows.m):
        w[j] = at.W[j * LANES + lane]
    at.b_of[label] = at.b[lane]
    at.steps_of[label] = at.steps[lane]
    put_signs(at, lane, -1)


# ---------------------------------------------------------------- a step

cdef void search(lane_batch *at) noexcept nogil:
    # t and b of all lines, each to its own minimum: Newton's method in two unknowns, halved where it goes too far
    cdef double sums[6 * LANES]
    cdef double wd[LANES]
    cdef double dd[LANES]
    cdef double best[LANES]
    cdef float t[LANES]
    cdef float b[LANES]
    cdef bint settled[LANES]
    cdef Py_ssize_t lane, n_trials = 0, n_open = 0
    lane_dots(at.rows.m, at.W, at.D, wd)
    lane_dots(at.rows.m, at.D, at.D, dd)
    for lane in range(LANES):
        settled[lane], best[lane] = at.label[lane] < 0, INFINITY
        t[lane], b[lane] = 0, at.b[lane]
        n_open += not settled[lane]
    while n_open > 0 and n_trials < TRIALS:
        n_trials += 1
        lane_line(at.rows.n, at.T, at.Q, at.Y, at.s_single, t, b, sums)
        for lane in range(LANES):
            if not settled[lane]:
                settled[lane] = next_trial(at, lane, &sums[lane], wd[lane], dd[lane], &best[lane], &t[lane], &b[lane])
                n_open -= settled[lane]


cdef bint next_trial(lane_batch *at, Py_ssize_t lane, const double *sums, double wd, double dd, double *best, float *t,
                     float *b) noexcept nogil:
    # the next trial t and b from the sums at these; True: single precision has no better point
    cdef double value = at.l2 * t[0] * (wd + t[0] * dd / 2) + at.l2_bias * b[0] * b[0] / 2 \
        + sums[5 * LANES] / at.rows.n
    cdef double least = best[0]
    if value < least:
        best[0], at.loss[lane], at.t[lane], at.b[lane] = value, sums[5 * LANES], t[0], b[0]
        if newton(at, sums, wd, dd, t, b) > FLT_EPSILON * fabs(value):
            return False
        at.t[lane], at.b[lane] = t[0], b[0]                  # the gradient notices what the objective does not
        return True
    t[0], b[0] = (t[0] + at.t[lane]) / 2, (b[0] + at.b[lane]) / 2
    return not value - least > FLT_EPSILON * fabs(value)


cdef double newton(lane_batch *at, const double *sums, double wd, double dd, float *t, float *b) noexcept nogil:
    # one step of t and b; what the model of it gains
    cdef double scale = 2.0 / at.rows.n
    cdef double slope_t = at.l2 * (wd + t[0] * dd) - scale * sums[LANES]
    cdef double slope_b = at.l2_bias * b[0] - scale * sums[0]
    cdef double tt = at.l2 * dd + scale * sums[4 * LANES], tb = scale * sums[3 * LANES]
    cdef double bb = at.l2_bias + scale * sums[2 * LANES], minor, step_t = 0, step_b = 0
    if not at.intercept or not bb > 0:
        step_t = -slope_t / tt if tt > 0 else 0
    else:
        minor = tt - tb * tb / bb                            # tt > 0 wherever there is a direction
        if minor > FLT_EPSILON * tt:
            step_t = -(slope_t - tb * slope_b / bb) / minor
        step_b = -(slope_b + tb * step_t) / bb
    t[0] += <float> step_t
    b[0] += <float> step_b
    return -(slope_t * step_t + slope_b * step_b) / 2 if at.intercept else -slope_t * step_t / 2


cdef bint is_over(lane_batch *at, Py_ssize_t lane, double square, double norm) noexcept nogil:
    # of a problem whose gradient and weights have these squares
    cdef double value = at.l2 * norm / 2 + at.l2_bias * at.b[lane] * at.b[lane] / 2 + at.loss[lane] / at.rows.n
    cdef double gap = square / (2 * at.l2 * value) if square > 0 else 0
    cdef bint stuck = at.steps[lane] > 1 and at.fresh[lane] and at.t[lane] == 0
    cdef bint late = 3 * at.steps[lane] >= at.most and gap > pow(at.tol, <double> at.steps[lane] / at.most)
    return stuck or gap <= at.tol or not isfinite(gap) or late or at.steps[lane] >= at.most


cdef void turn(lane_batch *at) noexcept nogil:
    # the next directions, of Polak and Ribiere; steepest descent where that would not descend
    cdef double gz[LANES]
    cdef double before[LANES]
    cdef double gd[LANES]
    cdef Py_ssize_t m = at.rows.m, lane
    cdef double beta
    lane_dots(m, at.Z, at.G, gz)
    lane_dots(m, at.Z, at.before, before)
    lane_dots(m, at.D, at.G, gd)
    for lane in range(LANES):
        beta = 0
        if at.t[lane] != 0 and at.length[lane] > 0:
            beta = max(0.0, (gz[lane] - before[lane]) / at.length[lane])
            if not beta * gd[lane] < gz[lane] or not isfinite(beta):
                beta = 0
        at.fresh[lane] = beta == 0
        if at.given[lane]:                                   # it keeps the direction that it has
            beta, at.given[lane] = 1, False
        at.beta[lane], at.length[lane] = <float> beta, gz[lane]
    lane_turn(m, at.beta, at.Z, at.D)


cdef void next_directions(lane_batch *at) noexcept nogil:
    cdef Py_ssize_t m = at.rows.m
    if at.inverse == NULL:
        lane_scale(m, at.scale, at.G, at.Z)
    else:
        gemm(NO_TRANS, NO_TRANS, m, LANES, m, 1.0, at.inverse, m, at.G, LANES, 0.0, at.Z, LANES)
    if at.start != NULL:
        lane_mask(m, at.M, at.Z)
    turn(at)
    memcpy(at.before, at.G, m * LANES * sizeof(float))
    times(at, at.D, at.Q)


cdef void step(lane_batch *at) noexcept nogil:
    # along the lines, and where to go next; lanes whose problems are over have others, and no direction yet
    cdef double square[LANES]
    cdef double norm[LANES]
    cdef float keep[LANES]
    cdef bint over[LANES]
    cdef Py_ssize_t m = at.rows.m, n = at.rows.n, lane, n_over = 0
    cdef bint at_work = False, unknown = False
    search(at)
    lane_slopes(n, at.T, at.Q, at.Y, at.s_single, at.t, at.b, at.R)
    back(at, at.R, at.G)
    lane_gradient(m, at.t, at.D, <float> at.l2, <float> (1.0 / n), at.W, at.G)
    if at.start != NULL:
        lane_mask(m, at.M, at.G)
    lane_dots(m, at.G, at.G, square)
    lane_dots(m, at.W, at.W, norm)
    for lane in range(LANES):
        keep[lane], over[lane] = 1, False
        if at.label[lane] < 0:
            continue
        at.steps[lane] += 1
        at_work = True
        over[lane] = not at.given[lane] and is_over(at, lane, square[lane], norm[lane])
        if over[lane]:
            close_lane(at, lane)
            n_over += 1
        if at.given[lane] or over[lane]:
            keep[lane], unknown = 0, True
    if unknown:
        lane_keep(m, keep, at.G)                             # it stays where it is until its slopes are known
    if n_over > 0:
        for lane in range(LANES):
            keep[lane] = not over[lane]
        clear_lanes(at, keep)
        for lane in range(LANES):
            if over[lane]:
                open_lane(at, lane)
    if at_work:
        next_directions(at)
    else:
        at.stage = PROOFS if at.proven else ENDED


# ---------------------------------------------------------------- what is proven

cdef void best_intercepts(lane_batch *at, const float *Y, double *b, double *kept) noexcept nogil:
    # b (PROVEN,) at scores P, and what is kept of the dual variables of either side (2, PROVEN) for them to balance
    cdef double sums[4 * PROVEN]
    cdef Py_ssize_t lane
    cdef double curvature, lighter, change
    cdef bint moved = True
    for _ in range(TRIALS):                             # two, as a rule
        proven_line(at.rows.n, at.P, Y, at.s, b, sums)
        if not at.intercept or not moved:
            break
        moved = False
        for lane in range(PROVEN):
            curvature = at.l2_bias * at.rows.n / 2 + sums[PROVEN + lane]
            if curvature > 0:
                change = (sums[lane] - at.l2_bias * at.rows.n / 2 * b[lane]) / curvature
                b[lane] += change
                moved = moved or fabs(change) > ROUNDING * fabs(b[lane])
    for lane in range(PROVEN):
        kept[lane] = kept[PROVEN + lane] = 1
        if at.intercept and at.l2_bias == 0:
            lighter = min(sums[2 * PROVEN + lane], sums[3 * PROVEN + lane])
            if lighter > 0:
                kept[lane], kept[PROVEN + lane] = lighter / sums[2 * PROVEN + lane], lighter / sums[3 * PROVEN + lane]
            else:
                kept[lane] = kept[PROVEN + lane] = 0


cdef void prove(lane_batch *at) noexcept nogil:
    # objective and bound of the next problems
    cdef double b[PROVEN]
    cdef double kept[2 * PROVEN]
    cdef double sums[3 * PROVEN]
    cdef double norm[PROVEN]
    cdef Py_ssize_t n = at.rows.n, m = at.rows.m, first = at.proving, here = min(PROVEN, at.last - first)
    cdef Py_ssize_t lane, i, j, active
    cdef float *Y = at.Y
    cdef int64_t place
    cdef double value, square, side
    memset(at.V, 0, m * PROVEN * sizeof(double))
    for i in range(n * PROVEN):
        Y[i] = -1
    for lane in range(PROVEN):
        b[lane] = norm[lane] = 0
        if lane >= here:
            continue
        for place in range(at.positive_starts[first + lane], at.positive_starts[first + lane + 1]):
            Y[at.positives[place] * PROVEN + lane] = 1
        b[lane] = at.b_of[first + lane]
        for j in range(m):
            value = at.w_of[(first + lane) * m + j]
            at.V[j * PROVEN + lane] = value
            norm[lane] += value * value
    memset(at.P, 0, n * PROVEN * sizeof(double))
    csr_times(at.X, 0, n, at.V, PROVEN, at.P)
    best_intercepts(at, Y, b, kept)
    proven_slopes(n, at.P, Y, at.s, b, kept, sums)
    memset(at.V, 0, m * PROVEN * sizeof(double))
    csr_sums(at.X, 0, n, at.P, PROVEN, at.V)
    for lane in range(here):
        square = side = 0
        for j in range(m):
            value = at.V[j * PROVEN + lane] / n
            square += value * value / at.l2
        active = 0
        for i in range(n):
            side += at.P[i * PROVEN + lane]
            active += at.P[i * PROVEN + lane] != 0
        at.active_of[first + lane] = active
        if at.l2_bias > 0:
            square += side / n * side / n / at.l2_bias
        write_proof(at, first + lane, b[lane], norm[lane], square, &sums[lane])
    at.proving += here
    if at.proving >= at.last:
        at.stage = ENDED


cdef void write_proof(lane_batch *at, Py_ssize_t label, double b, double norm, double square,
                      const double *sums) noexcept nogil:
    # of the best multiple of the dual variables; ``square``: |v|^2 / l2
    cdef double n = at.rows.n, gain = sums[PROVEN] / n, bend = sums[2 * PROVEN] / n + square / 2
    at.b_of[label] = b
    at.objective_of[label] = at.l2 * norm / 2 + at.l2_bias * b * b / 2 + sums[0] / n
    at.dual_of[label] = gain * gain / (4 * bend) if bend > 0 else 0


# ---------------------------------------------------------------- a batch

cdef void batch_work(void *of, double until) noexcept nogil:
    cdef lane_batch *at = <lane_batch *> of
    while at.stage != ENDED:
        if at.stage == STEPS:
            step(at)
        else:
            prove(at)
        if seconds() > until:
            return


cdef class SingleRows:
    """Sparse rows in single precision.

    ``by_rows`` and ``by_columns`` are starts (int64), places (int32) and values (float32) each.
    """

    cdef single_rows rows
    cdef tuple keep

    def __init__(self, Py_ssize_t n, Py_ssize_t m, by_rows, by_columns):
        cdef single_rows *at = &self.rows
        cdef const int64_t[::1] starts, column_starts
        cdef const int32_t[::1] columns, column_rows
        cdef const float[::1] values, column_values
        starts, columns, values = by_rows
        column_starts, column_rows, column_values = by_columns
        must_fit(n > 0 and m > 0 and starts.shape[0] == n + 1 and column_starts.shape[0] == m + 1
                 and columns.shape[0] == values.shape[0] == column_rows.shape[0] == column_values.shape[0]
                 and 0 < columns.shape[0] == starts[n] == column_starts[m], "SingleRows")
        at.n, at.m = n, m
        at.starts, at.columns, at.values = &starts[0], &columns[0], &values[0]
        at.column_starts, at.column_rows, at.column_values = &column_starts[0], &column_rows[0], &column_values[0]
        self.keep = by_rows, by_columns

    def times(self, const float[:, ::1] W, float[:, ::1] out):
        """out = X W; W (m, `LANE_COUNT`)."""
        must_fit(W.shape[0] == self.rows.m and out.shape[0] == self.rows.n and W.shape[1] == out.shape[1] == LANES,
                 "SingleRows.times")
        with nogil:
            lane_products(self.rows.starts, self.rows.columns, self.rows.values, self.rows.n, &W[0, 0], &out[0, 0])

    def back(self, const float[:, ::1] R, float[:, ::1] out):
        """out = X' R; R (n, `LANE_COUNT`)."""
        must_fit(R.shape[0] == self.rows.n and out.shape[0] == self.rows.m and R.shape[1] == out.shape[1] == LANES,
                 "SingleRows.back")
        with nogil:
            lane_products(self.rows.column_starts, self.rows.column_rows, self.rows.column_values, self.rows.m,
                          &R[0, 0], &out[0, 0])


def squared_hinges(const float[:, ::1] T, const float[:, ::1] Y, const float[::1] s, const float[::1] b,
                   double[::1] sums_out):
    """Sums over the rows of s max(0, 1 - Y (T + b))^2, (LANE_COUNT,); T, Y (n, LANE_COUNT), s (n,), b (LANE_COUNT,)."""
    cdef float t[LANES]
    cdef double sums[6 * LANES]
    cdef Py_ssize_t lane
    must_fit(T.shape[0] == Y.shape[0] == s.shape[0] > 0
             and T.shape[1] == Y.shape[1] == b.shape[0] == sums_out.shape[0] == LANES, "squared_hinges")
    for lane in range(LANES):
        t[lane] = 0
    with nogil:
        lane_line(T.shape[0], &T[0, 0], &T[0, 0], &Y[0, 0], &s[0], t, &b[0], sums)
    for lane in range(LANES):
        sums_out[lane] = sums[5 * LANES + lane]


class Proven:
    """What is known of problems: ``w`` (n_labels, m) float32, ``b``, ``steps``, ``objective``, ``dual``, and how many
    rows are ``active``."""

    def __init__(self, n_labels, m):
        self.w, self.b = np.zeros((n_labels, m), np.float32), np.zeros(n_labels)
        self.steps, self.active = np.zeros(n_labels, np.intp), np.zeros(n_labels, np.intp)
        self.objective, self.dual = np.full(n_labels, np.inf), np.zeros(n_labels)

    def of(self, some):
        """That of some of the problems."""
        found = copy(self)
        vars(found).update({name: values[some] for name, values in vars(self).items()})
        return found


cdef class LaneBatch(Worker):
    """Problems whose rows are in ``positives``, CSC; what is found of them goes into ``out``, `Proven`.

    ``s`` (n,): weights of mean 1; ``inverse`` (m, m) or ``scale`` (m,): of the curvature; ``l2_bias``: None without an
    intercept, 0 where it is free; ``most``: steps of a problem. ``start`` (n_labels, m), or None: the first direction,
    from w = 0; weights that are 0 in it stay 0, and ``tol`` is then of the problem of the others.
    Without ``prove`` objectives and bounds stay unknown.
    """

    cdef lane_batch at
    cdef list keep

    def __init__(self, SingleRows rows, Rows X, const double[::1] s, const float[::1] s_single,
                 const int64_t[::1] positive_starts, const int64_t[::1] positives, const float[:, ::1] inverse,
                 const float[::1] scale, double l2, l2_bias, double tol, Py_ssize_t most, out,
                 const float[:, ::1] start=None, bint prove=True):
        cdef lane_batch *at = &self.at
        cdef Py_ssize_t n = rows.rows.n, m = rows.rows.m, lane, i
        cdef float[::1] single = np.zeros((5 * m + 4 * n + (m if start is not None else 0)) * LANES, np.float32)
        cdef double[::1] double_ = np.zeros((m + n) * PROVEN)
        cdef float[:, ::1] w = out.w
        cdef double[::1] b = out.b, objective = out.objective, dual = out.dual
        cdef Py_ssize_t[::1] steps = out.steps, active = out.active
        must_fit(X.sparse and X.view.n_rows == n and X.view.n_features == m and s.shape[0] == s_single.shape[0] == n
                 and 0 < w.shape[0] == positive_starts.shape[0] - 1 and w.shape[1] == m
                 and (inverse is not None or scale.shape[0] == m)
                 and (start is None or (start.shape[0] == w.shape[0] and start.shape[1] == m))
                 and (inverse is None or inverse.shape[0] == inverse.shape[1] == m), "LaneBatch")
        self.keep = [rows, X, s, s_single, positive_starts, positives, inverse, scale, single, double_, w, b, objective,
                     dual, steps, active, start]
        at.rows, at.X, at.s, at.s_single = &rows.rows, &X.view, &s[0], &s_single[0]
        at.positive_starts = &positive_starts[0]
        at.positives = &positives[0] if positives.shape[0] > 0 else NULL
        at.inverse = &inverse[0, 0] if inverse is not None else NULL
        at.scale = &scale[0] if inverse is None else NULL
        at.l2, at.intercept, at.l2_bias = l2, l2_bias is not None, 0.0 if l2_bias is None else l2_bias
        at.tol, at.most, at.last, at.next, at.proving = tol, most, w.shape[0], 0, 0
        at.W = &single[0]
        at.D, at.G = at.W + m * LANES, at.W + 2 * m * LANES
        at.before, at.Z = at.W + 3 * m * LANES, at.W + 4 * m * LANES
        at.T = at.W + 5 * m * LANES
        at.Q, at.Y, at.R = at.T + n * LANES, at.T + 2 * n * LANES, at.T + 3 * n * LANES
        at.M, at.start = at.R + n * LANES, &start[0, 0] if start is not None else NULL
        at.V, at.P = &double_[0], &double_[m * PROVEN]
        at.w_of, at.b_of, at.steps_of, at.active_of = &w[0, 0], &b[0], &steps[0], &active[0]
        at.objective_of, at.dual_of, at.proven, at.stage = &objective[0], &dual[0], prove, STEPS
        for i in range(n * LANES):
            at.Y[i] = -1
        for lane in range(LANES):
            open_lane(at, lane)
        self.task.of, self.task.work = at, batch_work

    @property
    def ended(self):
        return self.at.stage == ENDED
