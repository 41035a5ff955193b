"""The quadratic model of a softmax risk with l1 or norms of columns, over columns at hand (ours).

    min over D of  <G, D> + (1/2N) sum_i s_i d_i' [diag(p_i) - p_i p_i'] d_i + penalty(W + D),     d_i = D' x_i

A sweep takes one column after the other, all of its weights at once. The curvature of a column is at most twice its
diagonal, 2 a_c with a_c = (1/N) sum_i s_i x_ij^2 p_ic (1 - p_ic), as rows of diag(p) - p p' sum to 0. With that in its
place, and b = 2 a o w - slope, the minimum is

    w_c = soft(b_c, l1) / (2 a_c + l2);  with a norm, w_c = b_c / (2 a_c + l2 + l1 / |w|), and 0 where |b| <= l1.

The risk does not feel what all classes' weights of a column have in common, and they go to where the penalty is least.
After a sweep, conjugate gradients in the weights that are not 0, whose signs are held, or the curvature of their norms;
then a step where they lead, to the least of the model with its penalty there.
"""

import numpy as np

from libc.math cimport fabs, sqrt
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset

from cmargin._core.penalties._elastic_net cimport soft_threshold
from cmargin._core.util._clock cimport seconds
from cmargin._core.util._shapes cimport must_fit
from cmargin._core.util._simd cimport row_axpy
from cmargin._core.util._sorting cimport sort_down


cdef extern from "_column_model.h" nogil:
    void column_slope(const float *x, const int32_t *place, Py_ssize_t m, const float *q, Py_ssize_t wide,
                      const float *change, double *total) noexcept
    void column_diagonal(const float *x, const int32_t *place, Py_ssize_t m, const float *s, const float *p,
                         Py_ssize_t wide, double *total) noexcept
    void column_scores(const float *x, const int32_t *place, Py_ssize_t m, Py_ssize_t wide, const float *change,
                       float *d) noexcept
    void column_move(const float *x, const int32_t *place, Py_ssize_t m, const float *s, const float *p,
                     Py_ssize_t wide, const float *change, float *q) noexcept
    void curve_rows(Py_ssize_t n, const float *s, const float *p, Py_ssize_t wide, float *d) noexcept

cdef int FEW = 12                  # classes; rows of more are padded to a multiple of 16
cdef int HALVINGS = 40             # of the interval that holds the least along a step
cdef double AT_ZERO = 1e-10        # of a weight's step
cdef double FLAT = 1e-6            # curvature along a direction over that of single columns: less is single precision's
cdef double ROUNDED = 1e-14        # of the norm of a column, to which it is found


cdef class ColumnModel:
    """``values``: float32, of all columns one after the other, ``starts`` (p + 1,) where they begin; ``places``: the
    row of every value, or None of dense columns. ``weight`` (n,) float32: s_i / N. An intercept is the last column.
    """

    cdef const float[::1] values, weight
    cdef const int64_t[::1] starts
    cdef const int32_t[::1] places
    cdef float[:, ::1] probs, q, d, q_step       # (n, wide)
    cdef float[::1] ones, change
    # (p, n_classes): those of `begin`; D; and of conjugate gradients, curvature above 0 where a weight is free
    cdef double[:, ::1] G, W, D, slope, step, residual, ahead, product, curvature
    cdef double[:, ::1] diagonal                     # (p, wide): a, where it is known
    cdef unsigned char[::1] known
    cdef double[::1] sums, sorted, l1, l2
    cdef Py_ssize_t n, p, k, wide, at, n_products, most_products, most
    cdef bint grouped, intercept, solving, is_flat
    cdef double moved, first, enough, norm, norm_at_first
    cdef readonly Py_ssize_t n_reads             # of the columns in use, about: sweeps and products

    def __init__(self, values, starts, places, weight, Py_ssize_t n_classes, bint intercept, bint grouped):
        self.values, self.starts, self.places, self.weight = values, starts, places, weight
        self.n, self.k, self.p = weight.shape[0], n_classes, starts.shape[0] - 1 + intercept
        self.intercept, self.grouped = intercept, grouped
        self.wide = (n_classes + 3) // 4 * 4 if n_classes <= FEW else (n_classes + 15) // 16 * 16
        must_fit(self.starts[0] == 0 and self.starts[self.starts.shape[0] - 1] == self.values.shape[0] and self.n > 0
                 and (places is None or len(places) == len(values)), "ColumnModel")
        self.probs, self.q, self.d, self.q_step = (np.zeros((self.n, self.wide), np.float32) for _ in range(4))
        self.ones, self.change = np.ones(self.n, np.float32), np.zeros(self.wide, np.float32)
        self.slope, self.step, self.residual, self.ahead, self.product, self.curvature, self.D = np.zeros(
            (7, self.p, self.k))
        self.diagonal, self.known = np.zeros((self.p, self.wide)), np.zeros(self.p, np.uint8)
        self.sums, self.sorted = np.zeros(self.wide), np.zeros(self.wide)

    @property
    def direction(self):
        """(p, n_classes) D."""
        return np.array(self.D)

    def begin(self, const double[:, ::1] probs, double[:, ::1] G, double[:, ::1] W, double[::1] l1, double[::1] l2,
              double enough, Py_ssize_t most):
        """The model at probabilities (n, n_classes), where G (p, n_classes) is the risk's gradient by weights W.

        ``l1`` and ``l2`` (p,) of the columns, 0 of an intercept; ``enough``: of what the first sweep moves, what the
        last one may, and of a residual, what conjugate gradients may leave, with ``most`` products a run.
        """
        cdef Py_ssize_t i, c
        must_fit(probs.shape[0] == self.n and probs.shape[1] == self.k and G.shape[0] == self.p == W.shape[0]
                 and G.shape[1] == self.k == W.shape[1] and l1.shape[0] == self.p == l2.shape[0], "ColumnModel.begin")
        self.G, self.W, self.l1, self.l2, self.enough = G, W, l1, l2, enough
        self.at, self.moved, self.n_reads, self.first, self.solving = 0, 0, 0, -1, False
        self.most_products = self.most = most
        with nogil:
            for i in range(self.n):
                for c in range(self.k):
                    self.probs[i, c] = <float> probs[i, c]
            memset(&self.q[0, 0], 0, self.n * self.wide * sizeof(float))
            memset(&self.D[0, 0], 0, self.p * self.k * sizeof(double))
            memset(&self.known[0], 0, self.p)

    def go(self, double lasting, Py_ssize_t most):
        """Go on for ``lasting`` seconds; whether the model is at its minimum, or ``most`` reads of it were made."""
        cdef double until
        cdef bint ended = False
        with nogil:
            until = seconds() + lasting
            while not ended:
                if self.solving:
                    self.one_product()
                else:
                    self.one_column(self.p - 1 - self.at)        # an intercept first
                    self.at += 1
                    if self.at == self.p:
                        ended = self.end_sweep() or self.n_reads >= most
                if seconds() > until:
                    break
        return ended

    # ------------------------------------------------------------ columns

    cdef const float *column(self, Py_ssize_t j, const int32_t **place, Py_ssize_t *m) noexcept nogil:
        # its values, their rows, or NULL of all, and how many
        place[0], m[0] = NULL, self.n
        if self.is_intercept(j):
            return &self.ones[0]
        m[0] = self.starts[j + 1] - self.starts[j]
        if m[0] == 0:
            return NULL
        if self.places is not None:
            place[0] = &self.places[self.starts[j]]
        return &self.values[self.starts[j]]

    cdef inline bint is_intercept(self, Py_ssize_t j) noexcept nogil:
        return self.intercept and j == self.p - 1

    cdef inline double weight_of(self, Py_ssize_t j, Py_ssize_t c) noexcept nogil:
        return self.W[j, c] + self.D[j, c]

    cdef double norm_at(self, Py_ssize_t j, double t) noexcept nogil:
        # |w + t step| of a column
        cdef double squares = 0, w
        cdef Py_ssize_t c
        for c in range(self.k):
            w = self.weight_of(j, c) + t * self.step[j, c] if t != 0 else self.weight_of(j, c)
            squares += w * w
        return sqrt(squares)

    cdef inline double penalty_slope(self, Py_ssize_t j, double w, double size) noexcept nogil:
        # derivative by a weight that is w, in a column whose norm is ``size``
        if self.grouped:
            return self.l2[j] * w + (self.l1[j] * w / size if size > 0 else 0)
        return self.l2[j] * w + (self.l1[j] if w > 0 else -self.l1[j] if w < 0 else 0)

    # ------------------------------------------------------------ a sweep

    cdef bint end_sweep(self) noexcept nogil:
        # whether the model is at its minimum
        cdef double moved = self.moved
        self.n_reads += 1
        self.at, self.moved = 0, 0
        if self.first < 0:
            self.first = moved
        elif moved <= self.enough * self.first:
            return True
        if moved == 0:
            return True
        self.begin_solving()
        return False

    cdef void one_column(self, Py_ssize_t j) noexcept nogil:
        cdef const int32_t *place
        cdef Py_ssize_t m, c
        cdef const float *x = self.column(j, &place, &m)
        if m == 0:
            return
        column_slope(x, place, m, &self.q[0, 0], self.wide, NULL, &self.sums[0])
        for c in range(self.k):
            self.sums[c] += self.G[j, c]
        if not (self.norm_at(j, 0) > 0 or self.may_leave_zero(j)):
            return
        if not self.known[j]:
            column_diagonal(x, place, m, &self.weight[0], &self.probs[0, 0], self.wide, &self.diagonal[j, 0])
            self.known[j] = True
        if self.grouped:
            self.norm_minimum(j)
        else:
            self.l1_minimum(j)
        if self.take_change(j, self.common_part(j)):
            column_move(x, place, m, &self.weight[0], &self.probs[0, 0], self.wide, &self.change[0], &self.q[0, 0])

    cdef bint may_leave_zero(self, Py_ssize_t j) noexcept nogil:
        cdef double largest = 0, squares = 0
        cdef Py_ssize_t c
        for c in range(self.k):
            largest = max(largest, fabs(self.sums[c]))
            squares += self.sums[c] * self.sums[c]
        return (sqrt(squares) if self.grouped else largest) > self.l1[j]

    cdef void l1_minimum(self, Py_ssize_t j) noexcept nogil:
        # new weights of the column in place of its slopes; where probabilities are 0 or 1 in single precision, and the
        # model is without curvature, the penalty alone may lead to 0
        cdef double curvature, w
        cdef Py_ssize_t c
        for c in range(self.k):
            w, curvature = self.weight_of(j, c), 2 * self.diagonal[j, c]
            if curvature + self.l2[j] > 0:
                self.sums[c] = soft_threshold(curvature * w - self.sums[c], self.l1[j]) / (curvature + self.l2[j])
            else:
                self.sums[c] = 0 if fabs(self.sums[c]) < self.l1[j] else w

    cdef void norm_minimum(self, Py_ssize_t j) noexcept nogil:
        # the same with a norm: |w| = r solves sum_c (b_c / (l1 + (2 a_c + l2) r))^2 = 1, whose left side falls with r
        # and is convex, so that Newton's method comes to it from below
        cdef double r = 0, left, fall, part, below, curved, squares = 0, l1 = self.l1[j]
        cdef Py_ssize_t c
        for c in range(self.k):
            self.sums[c] = 2 * self.diagonal[j, c] * self.weight_of(j, c) - self.sums[c]
            squares += self.sums[c] * self.sums[c]
        while l1 > 0 and squares > l1 * l1:
            left, fall = 0, 0
            for c in range(self.k):
                curved = 2 * self.diagonal[j, c] + self.l2[j]
                part = (self.sums[c] / (l1 + curved * r)) ** 2
                left += part
                fall += 2 * part * curved / (l1 + curved * r)
            if not (fall > 0 and (left - 1) / fall > ROUNDED * r):
                break
            r += (left - 1) / fall
        for c in range(self.k):
            below = 2 * self.diagonal[j, c] + self.l2[j] + (l1 / r if r > 0 else 0.0)
            if squares <= l1 * l1:
                self.sums[c] = 0
            else:
                self.sums[c] = self.sums[c] / below if below > 0 else self.weight_of(j, c)

    cdef double common_part(self, Py_ssize_t j) noexcept nogil:
        # argmin over t of sum l1 |w_c - t| + l2/2 (w_c - t)^2, a median without l2, of the new weights; of norms, and
        # of two classes, which then have half a weight each, the mean
        cdef double mean = 0, l1 = self.l1[j], l2 = self.l2[j], t
        cdef Py_ssize_t c
        for c in range(self.k):
            mean += self.sums[c] / self.k
        if self.grouped or l1 == 0 or self.k == 2:
            return mean
        for c in range(self.k):
            self.sorted[c] = self.sums[c]
        sort_down(self.k, &self.sorted[0])
        for c in range(self.k):
            # the derivative rises with t, and jumps by 2 l1 at a weight; c weights are above the c-th largest
            t = l2 * self.k * (self.sorted[c] - mean)
            if l1 * (self.k - 2 * c) + t > 0 and l1 * (self.k - 2 * c - 2) + t <= 0:
                return self.sorted[c]
            if c + 1 < self.k and l2 > 0:
                t = mean - l1 * (self.k - 2 * c - 2) / (l2 * self.k)
                if self.sorted[c + 1] < t < self.sorted[c]:
                    return t
        return 0

    cdef bint take_change(self, Py_ssize_t j, double common) noexcept nogil:
        # to the new weights but for what they have in common; whether any moves
        cdef bint moves = False
        cdef double change
        cdef Py_ssize_t c
        for c in range(self.k):
            change = self.sums[c] - common - self.weight_of(j, c)
            self.change[c] = <float> change
            self.moved += 2 * self.diagonal[j, c] * change * change
            if change != 0:
                moves = True
                self.D[j, c] = self.sums[c] - common - self.W[j, c]      # W + D is that very number, which may be 0
        return moves

    # ------------------------------------------------------------ conjugate gradients

    cdef void begin_solving(self) noexcept nogil:
        cdef const int32_t *place
        cdef const float *x
        cdef Py_ssize_t j, c, m
        cdef double w, size
        self.norm = self.n_products = 0
        memset(&self.step[0, 0], 0, self.p * self.k * sizeof(double))
        memset(&self.q_step[0, 0], 0, self.n * self.wide * sizeof(float))
        for j in range(self.p):
            size = self.norm_at(j, 0)
            for c in range(self.k):
                self.curvature[j, c] = self.residual[j, c] = self.ahead[j, c] = 0
            x = self.column(j, &place, &m)
            if m == 0 or not self.known[j] or not (size > 0 or self.is_intercept(j)):
                continue
            column_slope(x, place, m, &self.q[0, 0], self.wide, NULL, &self.sums[0])
            for c in range(self.k):
                w = self.weight_of(j, c)
                if w == 0 and not (self.grouped or self.is_intercept(j)):
                    continue
                self.curvature[j, c] = 2 * self.diagonal[j, c] + self.l2[j]
                if self.grouped and size > 0:
                    self.curvature[j, c] += self.l1[j] / size
                if self.curvature[j, c] > 0:
                    self.slope[j, c] = self.sums[c] + self.G[j, c]
                    self.residual[j, c] = -self.slope[j, c] - self.penalty_slope(j, w, size)
                    self.ahead[j, c] = self.residual[j, c] / self.curvature[j, c]
                    self.norm += self.residual[j, c] * self.ahead[j, c]
        self.norm_at_first = self.norm
        self.solving = self.norm > 0

    cdef void one_product(self) noexcept nogil:
        # a step of conjugate gradients; after the last one the model goes along where they lead
        cdef double along, norm = 0, t, diagonal = 0
        cdef Py_ssize_t j, c
        self.scores_ahead()
        along = self.products(&diagonal)
        self.n_products += 1
        self.n_reads += 1
        self.is_flat = not along > FLAT * diagonal
        if self.is_flat and self.n_products == 1:
            t = self.farthest_zero()
            row_axpy(t, &self.d[0, 0], &self.q_step[0, 0], self.n * self.wide)
            for j in range(self.p):
                for c in range(self.k):
                    self.step[j, c] = t * self.ahead[j, c]
        elif not self.is_flat:
            t = self.norm / along
            row_axpy(t, &self.d[0, 0], &self.q_step[0, 0], self.n * self.wide)
            for j in range(self.p):
                for c in range(self.k):
                    if self.curvature[j, c] > 0:
                        self.step[j, c] += t * self.ahead[j, c]
                        self.residual[j, c] -= t * self.product[j, c]
                        norm += self.residual[j, c] * self.residual[j, c] / self.curvature[j, c]
            for j in range(self.p):
                for c in range(self.k):
                    if self.curvature[j, c] > 0:
                        self.ahead[j, c] = self.residual[j, c] / self.curvature[j, c] \
                            + norm / self.norm * self.ahead[j, c]
            self.norm = norm
        if self.is_flat or norm <= self.enough * self.enough * self.norm_at_first \
                or self.n_products >= self.most_products:
            self.go_along()

    cdef bint take_ahead(self, Py_ssize_t j) noexcept nogil:
        cdef bint moves = False
        cdef Py_ssize_t c
        for c in range(self.k):
            self.change[c] = <float> self.ahead[j, c]
            moves = moves or self.ahead[j, c] != 0
        return moves

    cdef bint take_free(self, Py_ssize_t j) noexcept nogil:
        # marks the classes whose weights are free: with hundreds of them, few are
        cdef bint any_is = False
        cdef Py_ssize_t c
        for c in range(self.k):
            self.change[c] = 1 if self.curvature[j, c] > 0 else 0
            any_is = any_is or self.curvature[j, c] > 0
        return any_is

    cdef void scores_ahead(self) noexcept nogil:
        # d = the rows' curvature times what the direction changes their scores by
        cdef const int32_t *place
        cdef const float *x
        cdef Py_ssize_t j, m
        memset(&self.d[0, 0], 0, self.n * self.wide * sizeof(float))
        for j in range(self.p):
            if self.take_ahead(j):
                x = self.column(j, &place, &m)
                column_scores(x, place, m, self.wide, &self.change[0], &self.d[0, 0])
        curve_rows(self.n, &self.weight[0], &self.probs[0, 0], self.wide, &self.d[0, 0])

    cdef double farthest_zero(self) noexcept nogil:
        # the longest way along the direction to where a weight is 0
        cdef double t = 0
        cdef Py_ssize_t j, c
        for j in range(self.p):
            for c in range(self.k):
                if self.ahead[j, c] * self.weight_of(j, c) < 0:
                    t = max(t, -self.weight_of(j, c) / self.ahead[j, c])
        return t

    cdef double products(self, double *diagonal) noexcept nogil:
        # curvature of risk and penalty times the direction, and its product with the direction; the same of what stands
        # for the curvature in a column
        cdef const int32_t *place
        cdef const float *x
        cdef double along = 0, size, inner
        cdef Py_ssize_t j, c, m
        for j in range(self.p):
            if not self.take_free(j):
                continue
            x = self.column(j, &place, &m)
            column_slope(x, place, m, &self.d[0, 0], self.wide, &self.change[0], &self.sums[0])
            size, inner = self.norm_at(j, 0), 0
            for c in range(self.k):
                inner += self.ahead[j, c] * self.weight_of(j, c)
            for c in range(self.k):
                if not self.curvature[j, c] > 0:
                    continue
                self.product[j, c] = self.sums[c] + self.l2[j] * self.ahead[j, c]
                if self.grouped and size > 0:
                    self.product[j, c] += self.l1[j] / size * (
                        self.ahead[j, c] - inner / size * (self.weight_of(j, c) / size))
                along += self.product[j, c] * self.ahead[j, c]
                diagonal[0] += self.curvature[j, c] * self.ahead[j, c] * self.ahead[j, c]
        return along

    cdef void go_along(self) noexcept nogil:
        # to the least of the model along the step, at most all of it
        cdef double straight = 0, curved = 0, low = 0, high = 1, t = 1
        cdef Py_ssize_t j, c
        cdef int _trial
        for j in range(self.p):
            for c in range(self.k):
                if self.curvature[j, c] > 0:
                    straight += self.slope[j, c] * self.step[j, c]
            if not (self.is_flat and self.n_products == 1):
                curved += self.curvature_along(j)
        if self.slope_along(1, straight, curved) > 0:
            for _trial in range(HALVINGS):
                t = (low + high) / 2
                if self.slope_along(t, straight, curved) > 0:
                    high = t
                else:
                    low = t
            t = low
        self.most_products = min(self.most, 2 * self.most_products) if t == 1 else max(2, self.n_products // 4)
        row_axpy(t, &self.q_step[0, 0], &self.q[0, 0], self.n * self.wide)
        for j in range(self.p):
            for c in range(self.k):
                self.D[j, c] += t * self.step[j, c]
                if self.step[j, c] != 0 and fabs(self.weight_of(j, c)) <= AT_ZERO * fabs(t * self.step[j, c]):
                    self.D[j, c] = -self.W[j, c]                    # its zero is what ended the step
        self.solving = False

    cdef double curvature_along(self, Py_ssize_t j) noexcept nogil:
        # a column's part of step' (curvature of the risk) step, which is what residuals have lost less the penalty's
        cdef double total = 0, squares = 0, inner = 0, size = self.norm_at(j, 0), w
        cdef Py_ssize_t c
        for c in range(self.k):
            if self.curvature[j, c] > 0:
                w = self.weight_of(j, c)
                total -= self.step[j, c] * (self.residual[j, c] + self.slope[j, c] + self.penalty_slope(j, w, size))
                squares += self.step[j, c] * self.step[j, c]
                inner += self.step[j, c] * w
        total -= self.l2[j] * squares
        if self.grouped and size > 0:
            total -= self.l1[j] / size * (squares - (inner / size) ** 2)
        return total

    cdef double slope_along(self, double t, double straight, double curved) noexcept nogil:
        # of the model with its penalty, at ``t`` of the step
        cdef double total = straight + t * curved, size
        cdef Py_ssize_t j, c
        for j in range(self.p):
            size = self.norm_at(j, t) if self.grouped else 0
            for c in range(self.k):
                if self.step[j, c] != 0:
                    total += self.step[j, c] * self.penalty_slope(j, self.weight_of(j, c) + t * self.step[j, c], size)
        return total
