"""Sweeps over the dual variables of the joint hinge, row by row, and what an evaluation over all rows asks for.

A row's dual variables go to their best point together, one pass over its entries and another where they change. A row
that stays at a corner of its simplex is left out of the next 1, 3, 7 sweeps, until one of them moves it. A sweep ends
at the best point along its change and the moves before it (``_joint_moves``). All of it is one thread's.
"""

import numpy as np

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, uint64_t

from cmargin._core.rows._dual_moves cimport MOVES
from cmargin._core.rows._dual_rows cimport AHEAD
from cmargin._core.rows._dual_sweeps cimport LONGEST_NAP
from cmargin._core.rows._joint_moves cimport begin_move, end_move, joint_moves, touch
from cmargin._core.rows._joint_rows cimport (
    LANES_OF_CLASSES, add_change, joint_rows, open_weights, scores_of, settle_weights, threshold, to_simplex,
)
from cmargin._core.rows._rows cimport Rows
from cmargin._core.rows._tiles cimport fetch_row, row_source, source_of
from cmargin._core.util._clock cimport seconds
from cmargin._core.util._random cimport shuffle_places
from cmargin._core.util._shapes cimport must_fit


cdef class JointSweeps:
    """The dual of one joint hinge in units of 1/l2, begun at W = 0 and on its way.

    ``labels`` (n,) int32; ``upper`` (n,) C_i >= 0; ``square`` (n,) |x_i|^2 + bias^2, positive; ``bias``: of a column of
    constants, 0 for none, whose weights are ``free``, not penalised, or not; ``stream``: (4,) uint64, of the order;
    ``mean`` (n_features,) that rows are seen from, and ``x_dot_mean`` (n,) their products with it, or None.
    ``a`` (n, n_classes) and ``W`` (n_features + 1, n_classes and zeros behind) belong to the caller between two calls.
    """

    cdef joint_rows rows
    cdef joint_moves moves
    cdef Rows X
    cdef row_source source
    cdef readonly object a, W
    cdef readonly double gap             # what the last sweep saw of it, in units of 1/l2; infinite before
    cdef readonly Py_ssize_t n_sweeps, last_active
    cdef object arrays
    cdef double[::1] t
    cdef Py_ssize_t[::1] order, queue
    cdef int[::1] nap, wake
    cdef uint64_t[::1] stream
    cdef Py_ssize_t n_queued, at
    cdef bint free, under_way
    cdef double seen

    def __init__(self, Rows X, const int32_t[::1] labels, const double[::1] upper, const double[::1] square,
                 Py_ssize_t n_classes, double bias, bint free, uint64_t[::1] stream, const double[::1] mean,
                 const double[::1] x_dot_mean):
        cdef joint_rows *rows = &self.rows
        cdef Py_ssize_t n = X.view.n_rows, m = X.view.n_features
        must_fit(labels.shape[0] == n and upper.shape[0] == n and square.shape[0] == n and n > 0 and n_classes > 1
                 and stream.shape[0] == 4 and (X.sparse or X.view.column_stride == 1 or m < 2), "JointSweeps")
        must_fit(np.min(labels) >= 0 and np.max(labels) < n_classes, "JointSweeps: labels")
        rows.X, rows.n, rows.m, rows.k, rows.bias = X.view, n, m, n_classes, bias
        rows.width = (n_classes + LANES_OF_CLASSES - 1) // LANES_OF_CLASSES * LANES_OF_CLASSES
        self.source = source_of(X)
        self.X, self.free, self.stream, self.gap = X, free, stream, INFINITY
        self.a, self.W = np.zeros((n, n_classes)), np.zeros((m + 1, rows.width))
        self.a[np.arange(n), labels] = upper
        self.order = np.flatnonzero(upper)
        self.queue, self.nap, self.wake = np.empty(n, np.intp), np.zeros(n, np.int32), np.zeros(n, np.int32)
        self.t = np.zeros(n_classes)
        self.point_at(labels, upper, square)
        rows.mean = NULL
        if mean is not None and m > 0:
            must_fit(mean.shape[0] == m and x_dot_mean.shape[0] == n, "JointSweeps: mean")
            rows.mean, rows.x_dot_mean, rows.mean_square = &mean[0], &x_dot_mean[0], np.dot(mean, mean)
            self.arrays += [mean, x_dot_mean]

    cdef int point_at(self, const int32_t[::1] labels, const double[::1] upper, const double[::1] square) except -1:
        cdef joint_rows *rows = &self.rows
        cdef joint_moves *moves = &self.moves
        cdef double[:, ::1] a = self.a, W = self.W, of_a
        cdef double[::1] change = np.zeros(rows.width), z = np.zeros(rows.width), held = np.zeros(rows.width)
        cdef double[::1] constant = np.zeros(rows.width)
        cdef int[::1] moved = np.zeros(rows.k, np.int32), touched = np.zeros(rows.n, np.int32)
        cdef int p
        rows.labels, rows.upper, rows.square = &labels[0], &upper[0], &square[0]
        rows.change, rows.z, rows.moved = &change[0], &z[0], &moved[0]
        rows.held, rows.constant = &held[0], &constant[0]
        moves.a, moves.W, moves.touched = &a[0, 0], &W[0, 0], &touched[0]
        moves.begun = moves.resting = 1          # the first sweep's change, stretched, leads rows out of their simplex
        self.arrays = [labels, upper, square, change, z, moved, touched, held, constant]
        for p in range(MOVES + 1):
            of_a, of_W = np.zeros(self.a.shape), np.zeros(self.W.shape)
            self.arrays += [of_a, of_W]
            if p == MOVES:
                moves.before, moves.W_before = &of_a[0, 0], address(of_W)
            else:
                moves.last[p], moves.W_last[p] = &of_a[0, 0], address(of_W)
        return 0

    @property
    def n_read(self):
        """Rows read so far."""
        return self.rows.n_read

    def sweep(self, double lasting, Py_ssize_t at_once):
        """Go on for ``lasting`` seconds, ``at_once`` rows at least, or to the end of a sweep; whether it is that."""
        cdef double until
        with nogil:
            until = seconds() + lasting
            if not self.under_way:
                self.begin()
            while self.under_way:
                self.go_on(at_once)
                if seconds() > until:
                    break
        return not self.under_way

    # ---- an evaluation, in parts of rows

    def add(self, Py_ssize_t lo, Py_ssize_t hi, double[:, ::1] W):
        """W += sum (x_i, bias) (C_i e_y - a_i)' over some rows."""
        cdef Py_ssize_t i, c, n_moved
        cdef double change
        self.must_be(lo, hi, W)
        with nogil:
            open_weights(&self.rows, &W[0, 0])
            for i in range(lo, hi):
                n_moved = 0
                for c in range(self.rows.k):
                    change = -self.moves.a[i * self.rows.k + c]
                    if c == self.rows.labels[i]:
                        change += self.rows.upper[i]
                    self.rows.change[c] = change
                    if change != 0:
                        self.rows.moved[n_moved] = <int> c
                        n_moved += 1
                if n_moved > 0:
                    add_change(&self.rows, i, n_moved, &W[0, 0])
            settle_weights(&self.rows, &W[0, 0])
            self.rows.n_read += 0.5 * (hi - lo)

    def hinges(self, Py_ssize_t lo, Py_ssize_t hi):
        """sum C_i max_c (1[c != y_i] + <w_c - w_y, x_i>) over some rows; those that can move are at work again."""
        cdef Py_ssize_t i, c, k = self.rows.k
        cdef double top, total = 0
        cdef double *z = self.rows.z
        cdef const double *a
        self.must_be(lo, hi, self.W)
        with nogil:
            open_weights(&self.rows, self.moves.W)
            for i in range(lo, hi):
                scores_of(&self.rows, i, self.moves.W)
                a = self.moves.a + i * k
                top = z[0]
                for c in range(1, k):
                    top = max(top, z[c])
                for c in range(k):
                    if a[c] > 0 and z[c] < top:
                        self.nap[i] = self.wake[i] = 0
                total += self.rows.upper[i] * (top - z[self.rows.labels[i]])
            self.rows.n_read += 0.5 * (hi - lo)
        return total

    def balance(self, Py_ssize_t lo, Py_ssize_t hi, double[:, ::1] W, double[::1] r):
        """Move dual variables of some rows, within the classes between which they are, so that r comes nearer to 0.

        r (n_classes,) is sum_i C_i e_y - a_i, W what belongs to it; both are renewed, ``a`` stays. Returns what is
        gained.
        """
        cdef Py_ssize_t i, c, j, n_between, n_moved, k = self.rows.k
        cdef double gained = 0, theta, new
        cdef double *t = self.rows.z
        cdef const double *a
        self.must_be(lo, hi, W)
        must_fit(r.shape[0] == k, "balance")
        with nogil:
            open_weights(&self.rows, &W[0, 0])
            for i in range(lo, hi):
                a, n_between = self.moves.a + i * k, 0
                for c in range(k):
                    if a[c] > 0:
                        t[n_between] = a[c] + r[c]
                        n_between += 1
                if n_between < 2:
                    continue
                theta, j, n_moved = threshold(t, n_between, self.rows.upper[i]), 0, 0
                for c in range(k):
                    self.rows.change[c] = 0
                    if a[c] > 0:
                        new = max(t[j] - theta, 0.0)
                        j += 1
                        self.rows.change[c] = a[c] - new
                        if new != a[c]:
                            self.rows.moved[n_moved] = <int> c
                            n_moved += 1
                if n_moved == 0:
                    continue
                for j in range(n_moved):
                    c = self.rows.moved[j]
                    r[c] += self.rows.change[c]
                gained += self.rows.change[self.rows.labels[i]]
                add_change(&self.rows, i, n_moved, &W[0, 0])
                self.rows.n_read += 0.5
            settle_weights(&self.rows, &W[0, 0])
        return gained

    # ---- without the interpreter

    cdef int must_be(self, Py_ssize_t lo, Py_ssize_t hi, double[:, ::1] W) except -1:
        must_fit(0 <= lo <= hi <= self.rows.n and W.shape[0] == self.rows.m + 1 and W.shape[1] == self.rows.width,
                 "JointSweeps")
        return 0

    cdef void begin(self) noexcept nogil:
        cdef Py_ssize_t k, n = 0
        self.moves.now += 1
        for k in range(self.order.shape[0]):
            self.queue[n] = self.order[k]
            n += self.wake[self.order[k]] <= self.moves.now
        if n > 0:
            shuffle_places(&self.queue[0], n, &self.stream[0])
        begin_move(&self.moves, &self.rows)
        open_weights(&self.rows, self.moves.W)
        self.n_queued, self.at, self.under_way, self.seen = n, 0, True, 0
        self.last_active = n

    cdef void go_on(self, Py_ssize_t at_once) noexcept nogil:
        cdef Py_ssize_t end = min(self.at + at_once, self.n_queued)
        while self.at < end:
            if self.at + AHEAD <= self.n_queued:
                fetch_row(&self.source, self.queue[self.at + AHEAD - 1])
            self.step(self.queue[self.at])
            self.at += 1
        if self.at == self.n_queued:
            self.end()

    cdef void step(self, Py_ssize_t i) noexcept nogil:
        # the dual variables of a row to their best
        cdef joint_rows *rows = &self.rows
        cdef Py_ssize_t c, k = rows.k, n_moved, n_between = 0
        cdef double *a = self.moves.a + i * k
        cdef double top = -INFINITY, held = 0
        scores_of(rows, i, self.moves.W)
        rows.n_read += 1
        for c in range(k):
            top = max(top, rows.z[c])
            held += a[c] * rows.z[c]
            n_between += a[c] > 0
        for c in range(k):                       # from the top: 1 / |x|^2 of a short row leaves no digit of ``a``
            self.t[c] = a[c] + (rows.z[c] - top) / rows.square[i]
        self.seen += rows.upper[i] * top - held
        n_moved = to_simplex(rows, i, &self.t[0], a)
        if n_moved > 0:
            touch(&self.moves, rows, i)
            add_change(rows, i, n_moved, self.moves.W)
            self.nap[i] = 0
        elif n_between == 1:
            self.nap[i] = min(2 * self.nap[i] + 1, LONGEST_NAP)
            self.wake[i] = self.moves.now + 1 + self.nap[i]

    cdef void end(self) noexcept nogil:
        cdef joint_moves *moves = &self.moves
        cdef double unbalanced = 0, part
        cdef double *last = moves.W + self.rows.m * self.rows.width
        cdef Py_ssize_t i, c
        settle_weights(&self.rows, moves.W)
        if moves.resting > 0:                    # the last steps led nowhere
            moves.resting -= 1
            moves.kept, moves.begun = 0, moves.now + 1
        else:
            end_move(moves, &self.rows, &self.t[0])
        if self.free:                            # a step of the multipliers, once the problem is solved for it
            for c in range(self.rows.k):
                self.t[c] = 0
            for i in range(self.rows.n):
                self.t[self.rows.labels[i]] += self.rows.upper[i]
                for c in range(self.rows.k):
                    self.t[c] -= moves.a[i * self.rows.k + c]
            for c in range(self.rows.k):
                part = self.rows.bias * self.t[c]
                unbalanced += part * part
            if self.seen <= unbalanced:
                for c in range(self.rows.k):
                    last[c] += self.rows.bias * self.t[c]
        self.gap = self.seen + unbalanced
        self.n_sweeps += 1
        self.under_way = False


cdef double *address(double[:, ::1] a):
    return &a[0, 0]
