"""Sweeps over the dual variables of one binary problem, as many in a call as nobody has to look in between.

With a few hundred rows at work a sweep takes less time than the NumPy calls that would surround it, each of which would
hand the interpreter's lock to another class's thread and wait for it. So all that belongs to a sweep is here: order,
step along its change, intercept, and whether another sweep is the best thing to do. A call that has read enough rows
ends in the middle of a sweep, and the next one goes on there: where it was cut leaves no trace.

A row that stays at its bound is left out of the next 1, 3, 7 sweeps, until one of them moves it; one that is far inside
its bound leaves until the next look.
"""

import numpy as np

from libc.math cimport INFINITY, fabs, log, pow
from libc.stdint cimport uint64_t

from cmargin._core.rows._dual_rows cimport AHEAD, Centre
from cmargin._core.rows._rows cimport Rows
from cmargin._core.rows._tiles cimport add_row, fetch_row, row_product, row_source, source_of
from cmargin._core.small._carry cimport carrier, carry
from cmargin._core.small._random cimport shuffle_places
from cmargin._core.small._shapes cimport must_fit

cdef enum:
    LONGEST_NAP = 7                  # sweeps that a row at its bound may be left out of, until the next look
    NEVER = 2147483647
    RATE_OVER = 16                   # sweeps over which their rate of convergence is measured
    KEPT = RATE_OVER + 1
    CARRIED = 1024                   # bytes of its numbers, and more than there are

cdef enum wish_id:
    ANOTHER_SWEEP, A_LOOK, A_STEP, TO_GIVE_UP

cdef double ENOUGH = 0.7             # of the tolerance: gap seen by a sweep at which a first look is worth its read
cdef double STRETCH = 4.0            # entries of rows swept, over columns, from which on vectors of columns cost little
cdef double LONGEST = 1000.0         # sweeps' changes that the step along one may be long
cdef double HELPFUL = 0.3            # a Newton step after which the gap is a larger part of that before:
cdef double PATIENCE = 3             # the next needs so many times the slowness
cdef Py_ssize_t FEW_MOVED = 3        # a Newton step is tried if no more rows than 3,
cdef Py_ssize_t FACE_MOVED = 5000    # or one in 5,000 of the face, came to a bound or left one

# what `DualSweeps.run` ends with
WISHES = {"another sweep": ANOTHER_SWEEP, "a look": A_LOOK, "a Newton step": A_STEP, "to give up": TO_GIVE_UP}


cdef class DualSweeps:
    """The sweeps of one problem; what they read and write belongs to the caller, who may change it between two calls.

    Parameters
    ----------
    X : Rows
    centre : Centre
    code : (n_rows,) array
        Only its sign is read; 0 counts as positive.
    upper, square : (n_rows,) arrays
        Largest dual variables; |x|^2 + bias^2, positive.
    a : (n_rows,) array
        Dual variables.
    w : (m + 1,) array
        sum a y (x - mean); the last entry times ``bias`` is the intercept.
    bias, free : float, bool
        The column of constants, and whether its weight is free.
    density : float
        Part of the entries that is stored.
    stream : (4,) uint64 array
        Random stream of the order.
    patience : float
        Sweeps still needed from which on a Newton step is wished for.

    Attributes
    ----------
    low, high : float
        A row at 0 with a smaller deficit leaves the list, and one at its upper bound with a larger one.
    gap : float
        sum upper max(0, u) - a u, the part of the duality gap that the last sweep saw, each row as it was when its
        turn came; with a free intercept, and what that adds.
    enough : float
        The gap that the tolerance allows,
    part : float
        and the part of it at which a look is wished for.
    moved : int
        Rows that came to a bound or left one.
    """

    cdef Rows X
    cdef Centre centre
    cdef row_source source
    cdef const double[::1] code, upper, square
    cdef double[::1] a, w, before, w_before
    cdef double[::1] apart           # w without `held` times the mean, which a sweep takes off at its end
    cdef Py_ssize_t[::1] order
    cdef Py_ssize_t[::1] turn        # the rows of a sweep, in its order
    cdef int[::1] nap, wake          # sweeps that a row was left out of last; the sweep that it comes back in
    cdef uint64_t[::1] stream
    cdef double bias, density, total, balance, smallest, largest, seen, gap_before, held, constant
    cdef double[KEPT] gaps
    cdef bint free, under_way, stretches
    cdef Py_ssize_t n_turns, n_gaps, on_face, at, worked
    cdef int now
    cdef readonly Py_ssize_t n_active, moved, rows_read
    cdef public double low, high, part
    cdef readonly double gap, enough, patience

    def __init__(self, Rows X, Centre centre, const double[::1] code, const double[::1] upper,
                 const double[::1] square, double[::1] a, double[::1] w, double bias, bint free, double density,
                 uint64_t[::1] stream, double patience):
        cdef Py_ssize_t n = code.shape[0]
        must_fit(n == X.view.n_rows and upper.shape[0] == n and square.shape[0] == n and a.shape[0] == n
                 and stream.shape[0] == 4 and w.shape[0] == X.view.n_features + 1
                 and centre.fits(n, X.view.n_features), "DualSweeps")
        self.X, self.source, self.centre = X, source_of(X), centre
        self.code, self.upper, self.square, self.a, self.w = code, upper, square, a, w
        self.bias, self.free, self.density, self.stream, self.patience = bias, free, density, stream, patience
        self.before, self.w_before, self.order = np.zeros(n), np.zeros(w.shape[0]), np.arange(n, dtype=np.intp)
        self.apart = np.zeros(w.shape[0]) if centre.mean.shape[0] else w
        self.turn, self.nap, self.wake = np.empty(n, np.intp), np.zeros(n, np.int32), np.zeros(n, np.int32)
        self.n_active, self.low, self.high = n, -np.inf, np.inf
        self.gap, self.gap_before, self.part = np.inf, np.inf, ENOUGH

    @property
    def active(self):
        """The rows at work, those that are left out of the next sweeps included."""
        return np.array(self.order[:self.n_active])

    def run(self, Py_ssize_t at_most, double tol, double slice_rows, double allowed, double hopeless):
        """Sweep until something else is wished for.

        Parameters
        ----------
        at_most : int
            Sweeps.
        tol : float
        slice_rows : float
            Rows after which the call ends, in the middle of a sweep where it is.
        allowed : float
            Rows that may be read; a call's first sweep is made all the same.
        hopeless : float
            Rows to read from which on it wishes to give up.

        Returns
        -------
        (one of WISHES, sweeps ended); ``rows_read`` counts what they read.
        """
        cdef Py_ssize_t done = 0
        cdef int wish = ANOTHER_SWEEP
        with nogil:
            self.rows_read = self.worked = 0
            if not self.under_way:                               # anew, so that rounding does not add up
                self.take_sums()
            while wish == ANOTHER_SWEEP and done < at_most:
                if not self.under_way:
                    if done > 0 and (self.rows_read + self.n_active > allowed or self.worked >= slice_rows):
                        break
                    self.begin()
                self.go_on(slice_rows)
                if self.under_way:
                    break
                self.end()
                done += 1
                wish = self.wish(tol, hopeless)
        return wish, done

    def choose(self, const double[::1] u):
        """From all deficits: the rows to be at work from now on. Returns how many are on the face."""
        cdef Py_ssize_t n = 0, i
        must_fit(u.shape[0] == self.a.shape[0], "choose")
        with nogil:
            self.under_way = False
            self.on_face = 0
            for i in range(u.shape[0]):
                if (self.a[i] > 0 or u[i] > self.low) and (self.a[i] < self.upper[i] or u[i] < self.high):
                    self.order[n] = i
                    n += 1
                    if (self.a[i] > 0 or u[i] > 0) and (self.a[i] < self.upper[i] or u[i] < 0):
                        self.nap[i] = self.wake[i] = 0           # it has somewhere to go
                    elif self.wake[i] == NEVER:
                        self.wake[i] = self.now
                self.on_face += self.a[i] > 0 and self.a[i] < self.upper[i]
            self.n_active = n
        return self.on_face

    def after_step(self, double gap):
        """A Newton step on the face left this gap there: the intercept follows, and rates are measured anew."""
        self.take_sums()
        self.move_bias(gap)
        self.gap_before, self.n_gaps = self.gap, 0

    def balanced(self):
        """a with sum a y = 0, its w, rows read: rows of the heavier class give way, those on the face first.

        There the deficits are near 0, so the bound loses only the square of what was missing.
        """
        cdef double[::1] a = np.array(self.a), w = np.array(self.w)
        cdef double missing, there, part, taken, removed = 0
        cdef Py_ssize_t i, n_columns = w.shape[0]
        cdef int among
        cdef bint heavier
        with nogil:
            self.take_sums()
            self.rows_read = 0
            missing, heavier = fabs(self.balance), self.balance > 0
            for among in range(2):                               # the face, then what has anything to give
                there = taken = 0
                for i in range(a.shape[0]):
                    if (self.code[i] >= 0) == heavier and a[i] > 0 and (among == 1 or a[i] < self.upper[i]):
                        there += a[i]
                if not there > 0:
                    continue
                for i in range(a.shape[0]):
                    if (self.code[i] >= 0) == heavier and a[i] > 0 and (among == 1 or a[i] < self.upper[i]):
                        part = a[i] * min(1.0, missing / there)
                        a[i] -= part
                        if part > 0:
                            taken += part
                            removed += part if heavier else -part
                            self.rows_read += 1
                            add_row(-part if heavier else part, &self.source, i, &w[0])
                missing -= taken
                if not missing > 1e-15 * there:
                    break
            self.centre.take(-removed, w)
            w[n_columns - 1] = 0
        return np.asarray(a), np.asarray(w), self.rows_read

    # ------------------------------------------------------------ a checkpoint, between two calls of `run`

    cdef Py_ssize_t carry_numbers(self, char *place, bint back) noexcept nogil:
        cdef carrier by
        by.place, by.back = place, back
        carry(&by, &self.total, sizeof(self.total))
        carry(&by, &self.balance, sizeof(self.balance))
        carry(&by, &self.smallest, sizeof(self.smallest))
        carry(&by, &self.largest, sizeof(self.largest))
        carry(&by, &self.seen, sizeof(self.seen))
        carry(&by, &self.gap_before, sizeof(self.gap_before))
        carry(&by, &self.held, sizeof(self.held))
        carry(&by, &self.constant, sizeof(self.constant))
        carry(&by, self.gaps, sizeof(self.gaps))
        carry(&by, &self.under_way, sizeof(self.under_way))
        carry(&by, &self.stretches, sizeof(self.stretches))
        carry(&by, &self.n_turns, sizeof(self.n_turns))
        carry(&by, &self.n_gaps, sizeof(self.n_gaps))
        carry(&by, &self.on_face, sizeof(self.on_face))
        carry(&by, &self.at, sizeof(self.at))
        carry(&by, &self.now, sizeof(self.now))
        carry(&by, &self.n_active, sizeof(self.n_active))
        carry(&by, &self.moved, sizeof(self.moved))
        carry(&by, &self.low, sizeof(self.low))
        carry(&by, &self.high, sizeof(self.high))
        carry(&by, &self.part, sizeof(self.part))
        carry(&by, &self.gap, sizeof(self.gap))
        carry(&by, &self.enough, sizeof(self.enough))
        carry(&by, &self.patience, sizeof(self.patience))
        return by.place - place

    def arrays(self):
        cdef object own = np.asarray
        return [own(self.a), own(self.w), own(self.before), own(self.w_before), own(self.apart), own(self.order),
                own(self.turn), own(self.nap), own(self.wake), own(self.stream)]

    def kept(self):
        """A dictionary; its arrays are those that it goes on with."""
        cdef char room[CARRIED]
        cdef Py_ssize_t size = self.carry_numbers(room, False)
        return dict(numbers=room[:size], arrays=self.arrays())

    def take_back(self, dict kept):
        """What others of the same problem had `kept`."""
        cdef char room[CARRIED]
        cdef bytes numbers = kept["numbers"]
        must_fit(len(numbers) == self.carry_numbers(room, False), "take_back")
        self.carry_numbers(numbers, True)
        for own, saved in zip(self.arrays(), kept["arrays"], strict=True):
            own[...] = saved

    # ------------------------------------------------------------ one sweep

    cdef void take_sums(self) noexcept nogil:
        cdef Py_ssize_t i
        self.total = self.balance = 0
        for i in range(self.a.shape[0]):
            self.total += self.a[i]
            self.balance += self.a[i] if self.code[i] >= 0 else -self.a[i]

    cdef void begin(self) noexcept nogil:
        cdef Py_ssize_t n = 0, i, k
        self.now += 1
        for k in range(self.n_active):
            self.turn[n] = self.order[k]
            n += self.wake[self.order[k]] <= self.now
        self.stretches = n * self.density > STRETCH
        if n > 0:
            shuffle_places(&self.turn[0], n, &self.stream[0])
        if self.stretches:
            for k in range(n):
                i = self.turn[k]
                self.before[i] = self.a[i]
            self.w_before[:] = self.w
        if self.centre.mean.shape[0]:
            self.apart[:] = self.w
        self.held, self.constant = 0, -self.centre.product(self.w)
        self.n_turns, self.at, self.under_way = n, 0, True
        self.smallest = self.largest = self.seen = 0
        self.moved = 0
        self.rows_read += n

    cdef void go_on(self, double slice_rows) noexcept nogil:
        # one dual variable after the other to the minimum along it, a_i = clip(a_i + u_i / square_i, 0, upper_i).
        # <w, x - mean> is constant + <apart, x> - held <x, mean>
        cdef const double *upper = &self.upper[0]
        cdef double *a = &self.a[0]
        cdef double *w = &self.apart[0]
        cdef const double *along = &self.centre.along[0]
        cdef Py_ssize_t *turn = &self.turn[0]
        cdef Py_ssize_t k = self.at, n = self.n_turns, m = self.w.shape[0] - 1, i
        cdef double u, sign, old, new, change
        while k < n and self.worked < slice_rows:
            i = turn[k]
            k += 1
            self.worked += 1
            if k + AHEAD <= n:                                   # the next rows lie anywhere
                fetch_row(&self.source, turn[k + AHEAD - 1])
            sign = 1 if self.code[i] >= 0 else -1
            u = 1 - sign * (self.bias * w[m] + self.constant - self.held * along[i] + row_product(&self.source, i, w))
            old = a[i]
            if (old == 0 and u < self.low) or (old == upper[i] and u > self.high):
                self.wake[i] = NEVER
                continue
            self.seen += upper[i] * max(u, 0.0) - old * u
            new = min(max(old + u / self.square[i], 0.0), upper[i])
            change = new - old
            if change == 0 and (old == 0 or old == upper[i]):
                self.nap[i] = min(2 * self.nap[i] + 1, LONGEST_NAP)
                self.wake[i] = self.now + 1 + self.nap[i]
                continue
            self.nap[i] = 0
            if change == 0:
                continue
            self.smallest, self.largest = min(self.smallest, u), max(self.largest, u)
            self.moved += (old == 0 or old == upper[i]) != (new == 0 or new == upper[i])
            a[i] = new
            self.total += change
            change *= sign
            self.balance += change
            self.held += change
            self.constant -= change * (along[i] - self.centre.square)
            w[m] += self.bias * change
            add_row(change, &self.source, i, w)
        self.at, self.under_way = k, k < n
        if self.centre.mean.shape[0]:
            self.w[:] = self.apart
            self.centre.take(self.held, self.w)

    cdef void end(self) noexcept nogil:
        cdef Py_ssize_t n = 0, k
        if self.stretches:
            self.stretch()
        for k in range(self.n_active):
            self.order[n] = self.order[k]
            n += self.wake[self.order[k]] != NEVER
        self.n_active = n
        self.low = self.smallest if self.smallest < 0 else -INFINITY
        self.high = self.largest if self.largest > 0 else INFINITY
        self.gap = self.seen + self.move_bias(self.seen)
        if self.n_gaps == 0 and self.gap > HELPFUL * self.gap_before:
            self.patience *= PATIENCE
        self.gaps[self.n_gaps % KEPT] = self.gap
        self.n_gaps += 1

    cdef void stretch(self) noexcept nogil:
        # from the end of a sweep on to the best point of the line through its start and end, clipped to the box
        cdef Py_ssize_t n_columns = self.w.shape[0], j, k, i
        cdef double square = 0, along = 0, gained = 0, beyond, change, trial, new, sign, gain = 0, balance = 0, d
        cdef double clipped = 0
        for j in range(n_columns):
            d = self.w[j] - self.w_before[j]
            square += d * d
            along += self.w_before[j] * d
        if not square > 0:
            return
        for k in range(self.n_turns):
            gained += self.a[self.turn[k]] - self.before[self.turn[k]]
        beyond = (gained - along) / square - 1
        # where a sweep changes little but rounding, d is no longer sum p y x, and a long step would spoil w for good
        if not 0.05 <= fabs(beyond) <= LONGEST:
            return
        for j in range(n_columns):
            self.w_before[j] = self.w[j] + beyond * (self.w[j] - self.w_before[j])
        for k in range(self.n_turns):
            i = self.turn[k]
            sign = 1 if self.code[i] >= 0 else -1
            trial = self.a[i] + beyond * (self.a[i] - self.before[i])
            new = min(max(trial, 0.0), self.upper[i])
            change = new - self.a[i]
            gain += change
            balance += sign * change
            self.before[i] = new
            if new != trial:
                self.rows_read += 1
                self.worked += 1
                self.w_before[n_columns - 1] += self.bias * sign * (new - trial)
                clipped += sign * (new - trial)
                add_row(sign * (new - trial), &self.source, i, &self.w_before[0])
        self.centre.take(clipped, self.w_before)
        square = 0
        for j in range(n_columns):
            square += self.w_before[j] * self.w_before[j] - self.w[j] * self.w[j]
        if gain - square / 2 > 0:
            for k in range(self.n_turns):
                self.a[self.turn[k]] = self.before[self.turn[k]]
            self.w[:] = self.w_before
            self.total += gain
            self.balance += balance

    cdef double move_bias(self, double gap) noexcept nogil:
        # Multiplier step of a free intercept, once the problem around the last one is solved well enough for it.
        # Returns (bias sum a y)^2, what the intercept that is not yet right adds to the gap of that problem
        cdef double unbalanced = self.bias * self.balance
        if not self.free:
            return 0
        if gap <= unbalanced * unbalanced:
            self.w[self.w.shape[0] - 1] += unbalanced
        return unbalanced * unbalanced

    # ------------------------------------------------------------ what comes next

    cdef int wish(self, double tol, double hopeless) noexcept nogil:
        cdef double needed
        self.enough = tol * max(self.dual_sum(), 0.0)
        needed = self.sweeps_needed()
        if needed * self.n_active > hopeless:
            return TO_GIVE_UP
        if self.gap > self.enough and needed > self.patience and self.moved <= max(FEW_MOVED,
                                                                                   self.on_face // FACE_MOVED):
            return A_STEP
        return A_LOOK if self.gap <= self.part * self.enough else ANOTHER_SWEEP

    cdef double dual_sum(self) noexcept nogil:
        # the dual value over l2; with a free intercept the sum a y that is not 0 yet counts as if it were
        cdef Py_ssize_t j
        cdef double square = 0
        for j in range(self.w.shape[0] - self.free):
            square += self.w[j] * self.w[j]
        return self.total - square / 2

    cdef double sweeps_needed(self) noexcept nogil:
        # at their present rate; 0 before that is known
        cdef double last, first
        if self.n_gaps <= RATE_OVER:
            return 0
        last, first = self.gaps[(self.n_gaps - 1) % KEPT], self.gaps[(self.n_gaps - KEPT) % KEPT]
        if not (last > 0 and first > 0):
            return 0
        return max(0.0, log(max(self.part * self.enough, 1e-300) / last)
                   / log(min(pow(last / first, 1.0 / RATE_OVER), 0.999)))
