"""One problem of a smooth loss at one pair of l1 and l2 after the other, by reading columns and only those that count.

    P(w) = R(f) + l1 |w|_1 + l2 |w|^2 / 2,    f = X w,  R the mean loss;    v_j = (1/N) sum s a y x_j

What is kept from penalty to penalty: w, f, the dual variables a = -F' of the rows, and columns' slopes v. A fit is
Newton's method (`direction/_l1_model`) on listed columns: those with a weight, and those that the strong rule expects
(|v_j| > 2 l1 - last l1, Tibshirani et al. 2012). Its certificate needs v of all columns. Where a was a' when all were
read last,

    |v_j| <= |v_j'| + |x_j| |s (a - a')|,

so that most are known to be below l1 without being read; the others are read (gap-safe, as Ndiaye et al. 2017).
A free intercept wants sum s a y = 0: the heavier side of a shrinks by a factor c, which moves v_j by at most
(1 - c) |x_j| |s a|, and that is held against the bound.
"""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from libc.float cimport DBL_EPSILON
from libc.math cimport fabs, isfinite, sqrt
from libc.string cimport memcpy, memset

from cmargin._core.linalg._blas cimport dot
from cmargin._core.losses._losses cimport vectorised_rows
from cmargin._core.losses._point cimport loss_of, loss_t
from cmargin._core.newton._bound cimport relative_gap
from cmargin._core.newton._line cimport ARMIJO
from cmargin._core.newton.direction._l1_columns cimport ENOUGH, FORCING, MOST
from cmargin._core.newton.direction._l1_model cimport entries_of, model_begin, model_part, step_model
from cmargin._core.penalties._elastic_net cimport elastic_net_of_one, l1_violation
from cmargin._core.penalties._penalties cimport penalty_bound
from cmargin._core.penalties._penalty cimport penalty_of, penalty_t
from cmargin._core.rows._pass_state cimport columns_view
from cmargin._core.rows._rows cimport Rows
from cmargin._core.rows._tiles cimport add_row, row_moments, row_product, source_of
from cmargin._core.util._rounding cimport ROUNDING_OF_SUMS
from cmargin._core.util._shapes cimport must_fit
from cmargin._core.util._simd cimport lane_sum


cdef class ColumnPath:
    """``columns``: X', a column a row. ``signed_weight`` (n,): s y / sum s. ``loss``: a `Loss` that is smooth.
    ``intercept``: "penalised", "free" or None.
    """

    cdef Rows _columns
    cdef step_model model
    cdef columns_view of
    cdef loss_t loss
    cdef Py_ssize_t n, m, p, n_near
    cdef bint free, penalised, has_reference
    cdef double[:, ::1] per_row, per_column
    cdef Py_ssize_t[:, ::1] places
    cdef unsigned char[::1] is_listed
    cdef const double[::1] signed_weight
    cdef double[::1] l2_each, l1_each    # (p + 1,)
    # (n,) of the rows: signs y, slack 1 - y f, s a y, s a y when all columns were read, f, and f at the end of a step
    cdef double *sign
    cdef double *slack
    cdef double *r
    cdef double *r_then
    cdef double *f
    cdef double *f_next
    # (p,) of the columns
    cdef double *w
    cdef double *v
    cdef double *v_then
    cdef double *length
    cdef double *scratch
    cdef double *w_before                # at the end of the fit before the last
    cdef Py_ssize_t *near                # columns that were read, and are above the level asked for, so many as n_near
    cdef double last_l1, l1_before, risk, total, unsure, longest, entries
    cdef double known                    # what the |v_j| of the other columns are at most
    cdef readonly double reads

    def __init__(self, Rows columns, const double[::1] signed_weight, loss, intercept):
        cdef Py_ssize_t i, j, n = signed_weight.shape[0], m = columns.view.n_rows, p = m + (intercept is not None)
        cdef double across
        must_fit(columns.view.n_features == n and n > 0 and m > 0, "ColumnPath")
        if not loss.facts["smooth"]:
            raise ValueError(f"a path by columns wants a smooth loss, not {loss.name}")
        self._columns, self.signed_weight, self.n, self.m, self.p = columns, signed_weight, n, m, p
        self.free, self.penalised = intercept == "free", intercept == "penalised"
        self.loss = loss_of(loss.id, loss.numbers[0], loss.numbers[1])
        rows, of_columns = np.zeros((18, n + 1)), np.zeros((20, p + 1))
        self.per_row, self.per_column, self.places = rows, of_columns, np.zeros((4, p + 1), np.intp)
        self.is_listed = np.zeros(p + 1, np.uint8)
        self.sign, self.slack, self.r = &self.per_row[0, 0], &self.per_row[1, 0], &self.per_row[2, 0]
        self.r_then, self.f, self.f_next = &self.per_row[3, 0], &self.per_row[4, 0], &self.per_row[5, 0]
        self.of.source = source_of(columns)
        self.of.weight, self.of.product, self.of.other = &self.per_row[6, 0], &self.per_row[7, 0], &self.per_row[8, 0]
        self.w, self.v, self.v_then = &self.per_column[0, 0], &self.per_column[1, 0], &self.per_column[2, 0]
        self.w_before = &self.per_column[19, 0]
        self.length, self.scratch, self.near = &self.per_column[3, 0], &self.per_column[4, 0], &self.places[3, 0]
        for i in range(n):
            self.sign[i] = -1 if signed_weight[i] < 0 else 1
            self.slack[i] = 1
        with nogil:
            for j in range(m):                   # root of the squares, with weights of one: the slacks of w = 0
                row_moments(&self.of.source, j, self.slack, &across, &self.length[j])
                self.length[j] = sqrt(self.length[j])
                self.longest = max(self.longest, self.length[j])
        if self.penalised:
            self.length[m] = sqrt(<double> n)
            self.longest = max(self.longest, self.length[m])
        self.entries = max(1, columns.n_entries)
        self.lay_out_model()

    cdef lay_out_model(self):
        cdef step_model *model = &self.model
        cdef double[:, ::1] at = self.per_column
        memset(model, 0, sizeof(step_model))
        model.p, model.free, model.intercept = self.p, self.free, self.m if self.p > self.m else -1
        model.w, model.g, model.d, model.curvature, model.across = self.w, &at[5, 0], &at[6, 0], &at[7, 0], &at[8, 0]
        model.slope, model.scale, model.signed, model.l1_used = &at[9, 0], &at[10, 0], &at[11, 0], &at[12, 0]
        model.place, model.line.steps, model.cg.product = &at[13, 0], &at[14, 0], &at[15, 0]
        model.cg.x, model.cg.r, model.cg.search = &at[16, 0], &at[17, 0], &at[18, 0]
        self.l2_each, self.l1_each = np.zeros(self.p + 1), np.zeros(self.p + 1)
        model.l2_each, model.l1_each = &self.l2_each[0], &self.l1_each[0]
        model.listed, model.used, model.line.index = &self.places[0, 0], &self.places[1, 0], &self.places[2, 0]
        model.most, model.block_reads = MOST, MOST

    # ------------------------------------------------------------ for Python

    def fit(self, double l2, double l1, double tol, double known, double most, late=lambda: False):
        """Go on to these penalties until the relative gap is ``tol``, for ``most`` steps or until it is ``late()``.

        ``known``: columns are read until all others are known to have |v_j| of no more, or of l1. Returns objective,
        dual value, mean loss, S, and what rounding and a free intercept may have taken from any |v_j|; and whether it
        was at a point from which no step leads on.
        """
        cdef double objective = 0, dual = 0
        cdef double step = 0
        cdef bint ends = False, moves = True, found
        with nogil:
            self.known = min(known, l1)
            self.take_penalties(l2, l1)
            self.multiply()
            self.evaluate(self.f)
            self.foresee(l1)
        while True:
            ends = not moves or step >= most or late()
            with nogil:
                self.take_slopes()
                objective, dual = self.risk + self.penalty_of_weights(), self.bound(l2, l1)
                if ends or relative_gap(objective, dual) <= tol:
                    found = self.screen(l1)
                    dual = self.bound(l2, l1)
                    if ends or not found or relative_gap(objective, dual) <= tol:
                        break
                    self.list_near(l1)
                self.begin_step(l1, tol)
            while self.model_goes_on():
                PyErr_CheckSignals()
                if late():                       # what is known of the model's minimum is a step too
                    break
            with nogil:
                moves = self.take_step(objective)
            moves = moves and not self.model.given_up            # other fits have factors, which cost less
            step += 1
            PyErr_CheckSignals()
        self.l1_before, self.last_l1 = self.last_l1, l1
        return objective, dual, self.risk, self.total, self.unsure * self.longest, not moves

    def weights(self):
        """(p,) a copy."""
        return np.asarray(self.per_column)[0, :self.p].copy()

    def slopes(self):
        """Columns that were read, ascending, and their v_j; an intercept that is penalised is one."""
        at, n_listed = np.asarray(self.places), self.model.n_listed
        columns = np.sort(np.concatenate([at[0, :n_listed], at[3, :self.n_near]]))     # no column is in both
        columns = np.append(columns, self.m) if self.penalised else columns
        return columns, np.asarray(self.per_column)[1, columns]

    @property
    def lengths_are_finite(self):
        """Whether what is known of the columns is a number: else squares overflow."""
        return bool(isfinite(self.longest))

    # ------------------------------------------------------------ a fit

    cdef void take_penalties(self, double l2, double l1) noexcept nogil:
        # and the columns that may come into use
        cdef step_model *model = &self.model
        cdef double expected = min(l1, 2 * l1 - self.last_l1)
        cdef Py_ssize_t j, k, kept = 0, n_listed = model.n_listed
        for j in range(self.p - self.free):
            self.l2_each[j], self.l1_each[j] = l2, l1
        model.l1, model.flat = l1, False
        for k in range(n_listed):
            j = model.listed[k]
            if self.w[j] != 0 or fabs(self.v[j]) > expected:
                model.listed[kept] = j
                kept += 1
            else:
                self.is_listed[j] = 0
        model.n_listed = kept
        for k in range(self.n_near):
            if fabs(self.v[self.near[k]]) > expected:
                self.list_column(self.near[k])
        self.n_near = 0

    cdef void list_column(self, Py_ssize_t j) noexcept nogil:
        if not self.is_listed[j]:
            self.model.listed[self.model.n_listed] = j
            self.model.n_listed += 1
            self.is_listed[j] = 1

    cdef void list_near(self, double l1) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(self.n_near):
            if fabs(self.v[self.near[k]]) > l1:
                self.list_column(self.near[k])
        self.n_near = 0

    cdef void multiply(self) noexcept nogil:
        # f anew, so that no rounding adds up along the path
        cdef Py_ssize_t i, j
        for i in range(self.n):
            self.f[i] = self.w[self.m] if self.p > self.m else 0
        for j in range(self.m):
            if self.w[j] != 0:
                add_row(self.w[j], &self.of.source, j, self.f)

    cdef void foresee(self, double l1) noexcept nogil:
        # the weights go on as from the last fit but one to the last, up to 0 and no further, if that is for the better
        cdef double *d = self.model.d
        cdef double ratio = 0, objective = self.risk + self.penalty_of_weights()
        cdef Py_ssize_t i, j, k
        if self.l1_before != self.last_l1 and self.l1_before > 0 and self.last_l1 > 0:
            ratio = (l1 - self.last_l1) / (self.last_l1 - self.l1_before)
        for k in range(self.model.n_listed):
            j = self.model.listed[k]
            d[j] = ratio * (self.w[j] - self.w_before[j])
            d[j] = d[j] if (self.w[j] + d[j]) * self.w[j] > 0 else -self.w[j]
        if self.p > self.m:
            d[self.m] = ratio * (self.w[self.m] - self.w_before[self.m])
        memcpy(self.w_before, self.w, self.p * sizeof(double))
        if ratio == 0:
            return
        self.multiply_step()
        for i in range(self.n):
            self.f_next[i] = self.f[i] + self.of.other[i]
        self.evaluate(self.f_next)
        if self.risk + self.penalty_after(1) < objective:
            self.move(1)
        else:
            self.evaluate(self.f)

    cdef void evaluate(self, const double *f) noexcept nogil:
        # mean loss, S, r and curvature; what an intercept that is free leaves unsure
        cdef double *parts = &self.per_row[10, 0]
        cdef double above, below, gain_above, gain_below, c = 1
        cdef Py_ssize_t i, ld = self.n + 1
        for i in range(self.n):
            self.slack[i] = 1 - self.sign[i] * f[i]
        vectorised_rows(&self.loss, 0, 0, self.n, &self.signed_weight[0], self.slack, &self.per_row[17, 0],
                        &self.per_row[9, 0], parts, ld, self.r, self.of.weight)
        self.risk = lane_sum(parts, self.n)
        gain_above, gain_below = lane_sum(parts + 2 * ld, self.n), lane_sum(parts + 3 * ld, self.n)
        self.unsure = 0
        if self.free:
            above, below = lane_sum(parts + 4 * ld, self.n), -lane_sum(parts + 5 * ld, self.n)
            c = min(above, below) / max(above, below) if max(above, below) > 0 else 1
            if above > below:
                gain_above *= c
            else:
                gain_below *= c
        self.total = gain_above + gain_below
        self.unsure = (1 - c + ROUNDING_OF_SUMS) * sqrt(dot(self.n, self.r, self.r))

    cdef void take_slopes(self) noexcept nogil:
        cdef Py_ssize_t k, j
        for k in range(self.model.n_listed):
            j = self.model.listed[k]
            self.read_column(j)
        if self.p > self.m:
            self.v[self.m] = lane_sum(self.r, self.n)

    cdef inline void read_column(self, Py_ssize_t j) noexcept nogil:
        self.v[j] = row_product(&self.of.source, j, self.r)
        self.reads += entries_of(&self.of, j) / self.entries

    cdef double penalty_of_weights(self) noexcept nogil:
        cdef double value = 0
        cdef Py_ssize_t k
        for k in range(self.model.n_listed):
            value += self.penalty_at(self.model.listed[k], 0)
        return value + (self.penalty_at(self.m, 0) if self.penalised else 0)

    cdef double penalty_at(self, Py_ssize_t j, double move) noexcept nogil:
        return elastic_net_of_one(self.l2_each[j], self.l1_each[j], self.w[j] + move)

    cdef double bound(self, double l2, double l1) noexcept nogil:
        # D by the columns that were read; all others are below l1, or are yet to be read
        cdef penalty_t penalty = penalty_of(l2, l1)
        cdef Py_ssize_t k, found = 0
        for k in range(self.model.n_listed):
            found = self.take_size(self.model.listed[k], l1, found)
        for k in range(self.n_near):
            found = self.take_size(self.near[k], l1, found)
        if self.penalised:
            found = self.take_size(self.m, l1, found)
        if found == 0:
            return max(self.total, 0.0)
        return penalty_bound(&penalty, self.total, found, self.scratch, NULL, self.scratch)

    cdef Py_ssize_t take_size(self, Py_ssize_t j, double l1, Py_ssize_t found) noexcept nogil:
        cdef double size = fabs(self.v[j]) + self.length[j] * self.unsure
        if size <= l1:
            return found
        self.scratch[found] = size
        return found + 1

    # ------------------------------------------------------------ all columns

    cdef bint screen(self, double l1) noexcept nogil:
        # read the columns that are not known to have |v_j| <= `known`; whether one beside those listed is above l1
        cdef double moved = 0
        cdef Py_ssize_t i, j, k, asked = 0
        cdef bint found = False
        self.n_near = 0
        for i in range(self.n if self.has_reference else 0):
            moved += (self.r[i] - self.r_then[i]) * (self.r[i] - self.r_then[i])
        moved = (1 + ROUNDING_OF_SUMS) * sqrt(moved) + self.unsure
        for j in range(self.m):
            if not self.is_listed[j] and not (self.has_reference and
                                              fabs(self.v_then[j]) + self.length[j] * moved <= self.known):
                self.near[asked] = j
                asked += 1
        if 4 * asked > self.m:                   # the less is known the further the rows have moved
            self.read_all()
            asked = 0
            for j in range(self.m):
                if not self.is_listed[j]:
                    self.near[asked] = j
                    asked += 1
        else:
            for k in range(asked):
                self.read_column(self.near[k])
        for k in range(asked):
            j = self.near[k]
            if fabs(self.v[j]) + self.length[j] * self.unsure > self.known:
                self.near[self.n_near] = j
                self.n_near += 1
                found = found or fabs(self.v[j]) + self.length[j] * self.unsure > l1
        return found

    cdef void read_all(self) noexcept nogil:
        cdef Py_ssize_t j
        for j in range(self.m):
            self.read_column(j)
        memcpy(self.v_then, self.v, self.m * sizeof(double))
        memcpy(self.r_then, self.r, self.n * sizeof(double))
        self.has_reference = True

    # ------------------------------------------------------------ a step

    cdef void begin_step(self, double l1, double tol) noexcept nogil:
        cdef step_model *model = &self.model
        cdef double *g = &self.per_column[5, 0]
        cdef double worst = 0
        cdef Py_ssize_t j, k
        for k in range(model.n_listed):
            j = model.listed[k]
            g[j] = self.l2_each[j] * self.w[j] - self.v[j]
            worst = max(worst, l1_violation(g[j], self.w[j], l1) / l1)
        if self.p > self.m:
            g[self.m] = self.l2_each[self.m] * self.w[self.m] - self.v[self.m]
        model.enough = max(ENOUGH * tol, FORCING * min(worst, 1.0))
        model_begin(model, &self.of)

    cdef bint model_goes_on(self):
        # for about one read of all columns; False: the model is at its end
        cdef step_model *model = &self.model
        cdef double until = model.read + self.entries
        cdef bint goes_on = True
        with nogil:
            while goes_on and model.read < until:
                goes_on = model_part(model, &self.of)
        return goes_on

    cdef bint take_step(self, double objective) noexcept nogil:
        # False: it leads nowhere
        cdef double foreseen = self.foreseen(&self.per_column[5, 0]), t = 1, penalty
        cdef Py_ssize_t i
        self.reads += self.model.reads
        if not foreseen < 0:
            return False
        self.multiply_step()
        while True:
            for i in range(self.n):
                self.f_next[i] = self.f[i] + t * self.of.other[i]
            self.evaluate(self.f_next)
            penalty = self.penalty_after(t)
            if self.risk + penalty <= objective + ARMIJO * t * foreseen + DBL_EPSILON * objective or t < DBL_EPSILON:
                break
            t /= 2
        self.move(t)
        return isfinite(self.risk)

    cdef double foreseen(self, const double *g) noexcept nogil:
        # the change of the objective by a full step, without its curvature
        cdef double change = 0
        cdef Py_ssize_t k, j
        for k in range(self.model.n_listed + (self.p > self.m)):
            j = self.model.listed[k] if k < self.model.n_listed else self.m
            change += g[j] * self.model.d[j] + self.l1_each[j] * (fabs(self.w[j] + self.model.d[j]) - fabs(self.w[j]))
        return change

    cdef void multiply_step(self) noexcept nogil:
        cdef Py_ssize_t i, j, k
        for i in range(self.n):
            self.of.other[i] = self.model.d[self.m] if self.p > self.m else 0
        for k in range(self.model.n_listed):
            j = self.model.listed[k]
            if self.model.d[j] != 0:
                add_row(self.model.d[j], &self.of.source, j, self.of.other)

    cdef double penalty_after(self, double t) noexcept nogil:
        cdef double value = 0
        cdef Py_ssize_t k, j
        for k in range(self.model.n_listed):
            j = self.model.listed[k]
            value += self.penalty_at(j, t * self.model.d[j])
        return value + (self.penalty_at(self.m, t * self.model.d[self.m]) if self.penalised else 0)

    cdef void move(self, double t) noexcept nogil:
        cdef Py_ssize_t k, j
        for k in range(self.model.n_listed):
            j = self.model.listed[k]
            self.w[j] += t * self.model.d[j]
        if self.p > self.m:
            self.w[self.m] += t * self.model.d[self.m]
        memcpy(self.f, self.f_next, self.n * sizeof(double))
