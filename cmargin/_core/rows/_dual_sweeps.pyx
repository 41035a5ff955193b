"""Sweeps over the dual variables of one binary problem, as many in a call as need no check in between.

With a few hundred rows at work a sweep takes less time than the NumPy calls that would surround it. So all that belongs
to a sweep is here: order, last moves, intercept, and whether another sweep is the best thing to do. A call
that has read enough rows ends in the middle of a sweep, and the next one goes on there; it may be made in parts of any
length: where it was cut leaves no trace.

A row that stays at its bound is left out of the next 1, 3, 7 sweeps, until one of them moves it; one that is far inside
its bound leaves until the next evaluation.
"""

import numpy as np

from libc.math cimport INFINITY, log, pow
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

from cmargin._core.rows._dual_centre cimport begin_centre, move_centre, numbers_of_centre, sum_behind
from cmargin._core.rows._dual_evaluate cimport balance_part, balancing, begin_balancing
from cmargin._core.rows._dual_moves cimport MOVES, begin_move, end_move, move_gain, rests
from cmargin._core.rows._dual_rows cimport (
    AHEAD, FAR_AHEAD, DualBlocks, dual_rows, gain_of, gap_at, mean_product, row_of, take_mean, target_of,
)
from cmargin._core.rows._tiles cimport add_row, add_weighted_row, fetch_row, row_product
from cmargin._core.util._random cimport shuffle_places
from cmargin._core.util._serialise cimport numbers_between, restore, serialised, span
from cmargin._core.util._shapes cimport must_fit
from cmargin._core.util._simd cimport PREFETCH, prefetch_of_six

cdef enum:
    NEVER = 2147483647

cdef double ENOUGH = 0.7             # part of the tolerance: a sweep's gap at which a first evaluation pays off

SWEEPS = SWEEPS_PER_EVALUATION
# what a call ends with
WISHES = {"another sweep": ANOTHER_SWEEP, "an evaluation": AN_EVALUATION}


cdef class DualSweeps:
    """The sweeps of one problem; ``a`` and ``w`` belong to the caller, who may change them between two calls.

    ``a`` (n_rows,): dual variables; ``w`` (m + 1,): sum a y (x - mean), whose last entry times the bias is the
    intercept. ``stream``: (4,) uint64, of the order; ``patience``: sweeps still needed from which on the best point
    along the last moves is taken whatever vectors of columns cost. ``column`` (m + 2,), sums of C x^2 and of C: CSR
    rows that are not seen from a mean are swept beside a centre of the common columns, if any, without such moves.
    """

    def __init__(self, DualBlocks blocks, double[::1] a, double[::1] w, uint64_t[::1] stream, double patience,
                 const double[::1] column=None):
        cdef dual_sweeps *at = &self.at
        cdef Py_ssize_t n = blocks.rows.n
        cdef double[::1] before = np.zeros(n), w_before = np.zeros(w.shape[0])
        cdef double[::1] last = np.zeros(MOVES * n), w_last = np.zeros(MOVES * w.shape[0])
        cdef double[::1] centre = np.zeros(w.shape[0]), part = np.ones(w.shape[0]), square = np.zeros(n)
        cdef double[::1] move = np.zeros(w.shape[0])
        cdef Py_ssize_t[::1] held = np.zeros(w.shape[0], np.intp)
        cdef double[::1] apart = np.zeros(w.shape[0]) if blocks.rows.mean != NULL else w
        cdef Py_ssize_t[::1] order = np.arange(n, dtype=np.intp), queue = np.empty(n, np.intp)
        cdef int[::1] nap = np.zeros(n, np.int32), wake = np.zeros(n, np.int32)
        must_fit(a.shape[0] == n and w.shape[0] == blocks.rows.m + 1 and stream.shape[0] == 4, "DualSweeps")
        self.blocks, at.rows = blocks, &blocks.rows
        self.order = order.base
        self.arrays = [a.base, w.base, before.base, w_before.base, last.base, w_last.base, apart.base, order.base,
                       queue.base, nap.base, wake.base, stream.base, centre.base, move.base, held.base,
                       part.base, square.base]
        at.a, at.w, at.apart = &a[0], &w[0], &apart[0]
        at.moves.a, at.moves.w, at.moves.before, at.moves.w_before = at.a, at.w, &before[0], &w_before[0]
        at.moves.last, at.moves.w_last = &last[0], &w_last[0]
        at.order, at.queue, at.nap, at.wake, at.stream = &order[0], &queue[0], &nap[0], &wake[0], &stream[0]
        at.n_active, at.low, at.high, at.patience = n, -INFINITY, INFINITY, patience
        at.gap = INFINITY
        at.part = ENOUGH
        at.centre.centre, at.centre.move, at.centre.held = &centre[0], &move[0], &held[0]
        at.centre.part, at.centre.square = &part[0], &square[0]
        if column is not None:
            must_fit(column.shape[0] == w.shape[0] + 1 and blocks.rows.source.X.starts != NULL
                     and blocks.rows.mean == NULL, "columns of DualSweeps")
            self.column = column
            at.centre.column = &column[0]
            begin_centre(&at.centre, at.rows)

    # ------------------------------------------------------------ what a call has found, and a call alone

    @property
    def active(self):
        """The rows at work, those that are left out of the next sweeps included."""
        return self.order[:self.at.n_active].copy()

    @property
    def n_active(self):
        return self.at.n_active

    @property
    def gap(self):
        return self.at.gap

    @property
    def rows_read(self):
        """By the last call."""
        return self.at.rows_read

    @property
    def bounds(self):
        """low, high: a row at 0 of a smaller slope leaves the list, and one at its upper bound of a larger one."""
        return self.at.low, self.at.high

    @bounds.setter
    def bounds(self, bounds):
        self.at.low, self.at.high = bounds

    def run(self, Py_ssize_t at_most, double tol, double slice_rows, double allowed):
        """Sweep until something else is wished for: one of WISHES, and the sweeps ended, at most ``at_most``.

        The call ends after ``slice_rows`` rows, in the middle of a sweep where it is. ``allowed``: rows that may be
        read; a call's first sweep is made all the same.
        """
        with nogil:
            begin_call(&self.at, at_most, tol, slice_rows, allowed)
            while call_part(&self.at, self.at.rows.n):
                pass
        return self.at.wish, self.at.done

    def choose(self, const double[::1] u):
        """From all slacks: the rows to be at work from now on. Returns how many are on the face."""
        must_fit(u.shape[0] == self.at.rows.n, "choose")
        choose_rows(&self.at, &u[0])
        return self.at.on_face

    @property
    def sum(self):
        """(m + 1,) sum a y (x - mean), which w is beside a centre once that is where w is."""
        cdef double[::1] out = np.empty(self.at.rows.m + 1)
        sum_behind(&self.at.centre, self.at.rows.m, self.at.w, &out[0])
        return out.base

    def balanced(self):
        """a with sum a y = 0, and its w: rows on the face give way, of both classes, then others of the heavier."""
        cdef double[::1] a = self.arrays[0].copy(), w = self.arrays[1].copy()
        cdef balancing by
        by.a, by.w = &a[0], &w[0]
        sum_behind(&self.at.centre, self.at.rows.m, &w[0], &w[0])
        with nogil:
            take_sums(&self.at)
            begin_balancing(&by, self.at.rows, self.at.balance)
            while balance_part(&by, self.at.rows, self.at.rows.n):
                pass
        return a.base, w.base

    # ------------------------------------------------------------ a checkpoint, between two calls

    cdef void spans_of(self, span *out) noexcept nogil:
        # out (3,)
        out[2] = numbers_of_centre(&self.at.centre)
        out[0] = numbers_between(&self.at.total, &self.at.at_most)
        out[1] = numbers_between(&self.at.moves.kept, &self.at.moves.newest + 1)

    def kept(self):
        """A dictionary; its arrays are those that it goes on with."""
        cdef span spans[3]
        self.spans_of(spans)
        return dict(numbers=serialised(spans, 3), arrays=self.arrays)

    def take_back(self, dict kept):
        """What others of the same problem had `kept`."""
        cdef span spans[3]
        self.spans_of(spans)
        restore(spans, 3, kept["numbers"])
        for own, saved in zip(self.arrays, kept["arrays"], strict=True):
            own[...] = saved


# ---------------------------------------------------------------- a call

cdef void begin_call(dual_sweeps *at, Py_ssize_t at_most, double tol, double slice_rows, double allowed) noexcept nogil:
    at.at_most, at.tol, at.slice_rows, at.allowed = at_most, tol, slice_rows, allowed
    at.rows_read = at.worked = at.done = 0
    at.wish = ANOTHER_SWEEP
    if not at.under_way:                                         # anew, so that rounding does not add up
        take_sums(at)


cdef bint call_part(dual_sweeps *at, Py_ssize_t most) noexcept nogil:
    # the next rows, so many at most or the end of a sweep; False: the call has ended
    if at.wish != ANOTHER_SWEEP or at.done >= at.at_most:
        return False
    if not at.under_way:
        if at.done > 0 and (at.rows_read + at.n_active > at.allowed or at.worked >= at.slice_rows):
            return False
        begin_sweep(at)
    go_on(at, min(at.slice_rows, <double> at.worked + most))
    if at.under_way:
        return at.worked < at.slice_rows
    end_sweep(at)
    at.done += 1
    at.wish = wish_after_sweep(at)
    return True


cdef void choose_rows(dual_sweeps *at, const double *u) noexcept nogil:
    # from all slacks: the rows to be at work from now on
    cdef const double *upper = at.rows.upper
    cdef Py_ssize_t n = 0, i
    cdef double slope
    at.under_way = False
    at.on_face = 0
    for i in range(at.rows.n):
        slope = u[i] - at.rows.ridge[i] * at.a[i]
        if (at.a[i] > 0 or slope > at.low) and (at.a[i] < upper[i] or slope < at.high):
            at.order[n] = i
            n += 1
            if (at.a[i] > 0 or slope > 0) and (at.a[i] < upper[i] or slope < 0):
                at.nap[i] = at.wake[i] = 0                       # it has somewhere to go
            elif at.wake[i] == NEVER:
                at.wake[i] = at.now
        at.on_face += at.a[i] > 0 and at.a[i] < upper[i]
    at.n_active = n


# ---------------------------------------------------------------- one sweep


cdef void take_sums(dual_sweeps *at) noexcept nogil:
    cdef Py_ssize_t i
    at.total, at.balance = 0, -at.rows.sum
    for i in range(at.rows.n):
        at.total += gain_of(at.rows, i, at.a[i])
        at.balance += at.a[i] if at.rows.signed_weight[i] >= 0 else -at.a[i]


cdef bint pays_off(const dual_sweeps *at, double entries) noexcept nogil:
    # the best point along the last moves, after a sweep of so many entries: it goes over vectors of rows and of columns
    if at.centre.weight > 0:                                     # a step reads some three numbers for each of theirs
        return at.slow and entries > 3 * (at.rows.n + at.rows.m)
    # before the first sweep no one knows whether there will be a centre
    return at.slow or (entries > at.rows.m and (at.centre.column == NULL or at.now > 1))


cdef void begin_sweep(dual_sweeps *at) noexcept nogil:
    cdef Py_ssize_t n = 0, k
    at.now += 1
    for k in range(at.n_active):
        at.queue[n] = at.order[k]
        n += at.wake[at.order[k]] <= at.now
    at.stretches = pays_off(at, n * at.rows.density * at.rows.m) and not rests(&at.moves)
    if n > 0:
        shuffle_places(at.queue, n, at.stream)
    if at.stretches:
        begin_move(&at.moves, at.rows)
    if at.rows.mean != NULL:
        memcpy(at.apart, at.w, (at.rows.m + 1) * sizeof(double))
    at.held, at.constant = 0, -mean_product(at.rows, at.w)
    at.n_queued, at.at, at.under_way = n, 0, True
    at.smallest = at.largest = at.seen = 0
    at.rows_read += n
    at.rows.n_read += n


cdef void go_on(dual_sweeps *at, double until) noexcept nogil:
    # one dual variable after the other to the best place along it, clip(a_i + slope_i / square_i, 0, upper_i).
    # <w, x - mean> is constant + <apart, x> - held <x, mean>
    cdef dual_rows *rows = at.rows
    cdef const double *upper = rows.upper
    cdef double *a = at.a
    cdef double *w = at.apart
    cdef const double *x_dot_mean = rows.x_dot_mean
    cdef const double *seen_part = NULL if at.centre.weight == 0 else at.centre.part
    cdef const double *square = rows.square if seen_part == NULL else at.centre.square
    cdef Py_ssize_t *queue = at.queue
    cdef Py_ssize_t k = at.at, n = at.n_queued, m = rows.m, i, row, soon
    cdef const int64_t *starts = rows.source.X.starts
    cdef double u, slope, ridge, sign, old, new, change
    while k < n and at.worked < until:
        i = queue[k]
        k += 1
        at.worked += 1
        if k + FAR_AHEAD <= n:                               # the next rows lie anywhere, what is kept of them too
            soon = queue[k + FAR_AHEAD - 1]
            prefetch_of_six(soon, a, upper, rows.signed_weight, rows.ridge, square, x_dot_mean)
            PREFETCH(at.nap + soon)
            if starts != NULL:
                PREFETCH(starts + row_of(rows, soon))
        if k + AHEAD <= n:
            fetch_row(&rows.source, row_of(rows, queue[k + AHEAD - 1]))
        sign = 1 if rows.signed_weight[i] >= 0 else -1
        row = row_of(rows, i)
        u = target_of(rows, i) - sign * (rows.bias * w[m] + at.constant - at.held * x_dot_mean[i]
                                         + row_product(&rows.source, row, w))
        old, ridge = a[i], rows.ridge[i]
        slope = u - ridge * old
        if (old == 0 and slope < at.low) or (old == upper[i] and slope > at.high):
            at.wake[i] = NEVER
            continue
        at.seen += gap_at(u, old, upper[i], ridge)
        new = min(max(old + slope / square[i], 0.0), upper[i])
        change = new - old
        if change == 0 and (old == 0 or old == upper[i]):
            at.nap[i] = min(2 * at.nap[i] + 1, LONGEST_NAP)
            at.wake[i] = at.now + 1 + at.nap[i]
            continue
        at.nap[i] = 0
        if change == 0:
            continue
        at.smallest, at.largest = min(at.smallest, slope), max(at.largest, slope)
        a[i] = new
        at.total += gain_of(rows, i, new) - gain_of(rows, i, old)
        change *= sign
        at.balance += change
        at.held += change
        at.constant -= change * (x_dot_mean[i] - rows.mean_square)
        if seen_part == NULL:
            w[m] += rows.bias * change
            add_row(change, &rows.source, row, w)
        else:
            w[m] += rows.bias * change * seen_part[m]
            add_weighted_row(change, &rows.source, row, seen_part, w)
    at.at, at.under_way = k, k < n
    if rows.mean != NULL:
        memcpy(at.w, at.apart, (m + 1) * sizeof(double))
        take_mean(rows, at.held, at.w)


cdef void end_sweep(dual_sweeps *at) noexcept nogil:
    cdef Py_ssize_t n = 0, k
    if at.stretches:
        stretch(at)
    for k in range(at.n_active):
        at.order[n] = at.order[k]
        n += at.wake[at.order[k]] != NEVER
    at.n_active = n
    at.low = at.smallest if at.smallest < 0 else -INFINITY
    at.high = at.largest if at.largest > 0 else INFINITY
    if at.centre.column != NULL:
        at.gap = at.seen + move_centre(&at.centre, at.rows, at.seen, at.total, at.rows.bias * at.balance, at.w)
    else:
        at.gap = at.seen + move_bias(at, at.seen)
    at.gaps[at.n_gaps % KEPT] = at.gap
    at.n_gaps += 1


cdef void stretch(dual_sweeps *at) noexcept nogil:
    cdef move_gain gain
    at.moves.part = at.centre.part if at.centre.weight > 0 else NULL
    gain = end_move(&at.moves, at.rows)
    at.total += gain.total
    at.balance += gain.balance
    at.rows_read += gain.n_read
    at.worked += gain.n_read


cdef double move_bias(dual_sweeps *at, double gap) noexcept nogil:
    # Multiplier step of a free intercept, once the problem around the last one is solved well enough for it.
    # Returns (bias sum a y)^2, what the intercept that is not yet right adds to the gap of that problem
    cdef double unbalanced = at.rows.bias * at.balance
    if not at.rows.free:
        return 0
    if gap <= unbalanced * unbalanced:
        at.w[at.rows.m] += unbalanced
    return unbalanced * unbalanced


# ---------------------------------------------------------------- what comes next


cdef wish_id wish_after_sweep(dual_sweeps *at) noexcept nogil:
    at.enough = at.tol * gap_is_relative_to(at)
    at.slow = sweeps_needed(at) > at.patience
    return AN_EVALUATION if at.gap <= at.part * at.enough else ANOTHER_SWEEP


cdef double gap_is_relative_to(dual_sweeps *at) noexcept nogil:
    if at.rows.sum > 0:
        return max(at.rows.beyond - dual_sum(at), at.rows.least)
    return max(dual_sum(at), 0.0)


cdef double dual_sum(dual_sweeps *at) noexcept nogil:
    # the dual value over l2; with a free intercept the sum a y that is not 0 yet counts as if it were
    cdef Py_ssize_t j
    cdef double square = 0
    if at.centre.column != NULL:
        return at.total - at.centre.of_sum / 2
    for j in range(at.rows.m + 1 - at.rows.free):
        square += at.w[j] * at.w[j]
    return at.total - square / 2


cdef double sweeps_needed(dual_sweeps *at) noexcept nogil:
    # at their present rate; 0 before that is known
    cdef double last, first
    if at.n_gaps <= RATE_OVER:
        return 0
    last, first = at.gaps[(at.n_gaps - 1) % KEPT], at.gaps[(at.n_gaps - KEPT) % KEPT]
    if not (last > 0 and first > 0):
        return 0
    return max(0.0, log(max(at.part * at.enough, 1e-300) / last)
               / log(min(pow(last / first, 1.0 / RATE_OVER), 0.999)))
