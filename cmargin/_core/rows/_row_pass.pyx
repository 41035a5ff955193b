"""Rows in memory with the state of one binary problem, as a Python object: what a Newton solver may ask of them.

Compiled code asks the same by `_evaluate`. Rows that come window by window are a subclass, `_row_windows`.
"""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport uint64_t

from cmargin._core.losses._losses cimport (
    MARGIN_PURSUIT, SMOOTHED_HINGE, facts_of, has_dual, has_two_kinks, in_newton_steps,
)
from cmargin._core.losses._point cimport loss_facts, loss_of, loss_t
from cmargin._core.rows._evaluate cimport (
    COMMIT_AND_MOVE, RESTART, SAME_LINE, SAMPLED_BLOCK, hessians_wanted, evaluation_request,
    pass_line, pass_begin_evaluation, pass_combine, pass_objective, pass_linearised, pass_evaluate_part, pass_margins,
    pass_plan, pass_hessp, pass_set_active, pass_start, scratch_wanted, sums_later,
)
from cmargin._core.rows._pass_state cimport PANEL, TILE, columns_view, row_pass, row_unknowns
from cmargin._core.rows._row_blocks cimport DUAL_NEG, DUAL_POS, HINGE, N_SUMS, pass_job
from cmargin._core.rows._rows cimport Rows, lies_by_columns
from cmargin._core.rows._tiles cimport source_of
from cmargin._core.util._rounding cimport ROUNDING_OF_SUMS
from cmargin._core.util._shapes cimport check_ascending, check_length, must_fit

ROUNDING = ROUNDING_OF_SUMS              # the same for Python


cdef bint ask_python_for_room(row_pass *rows, Py_ssize_t order) noexcept with gil:
    try:
        (<RowBlocks> rows.owner).make_room(order)
    except MemoryError:
        return False
    return True


cdef class RowBlocks:
    """Rows in memory, with the per-row state of one binary problem; see `cmargin.data.source` for the contract.

    Rows of weight 0 count as positive and add nothing. ``rows``: the subset to read, (n_rows,) intp, ascending; None:
    all. Of a matrix that lies column by column they are copied, once. ``window``: rows that are here at a time, at
    most, where ``X`` has none (`_row_windows`); 0: all are here.
    """

    def __init__(self, Rows X, const double[::1] signed_weight, bint intercept, int n_threads,
                 const Py_ssize_t[::1] rows=None, Py_ssize_t window=0, const double[::1] offset=None):
        cdef Py_ssize_t n = signed_weight.shape[0]
        cdef double[:, ::1] per_row, sums, diagonal
        cdef double[:, :, ::1] gradient
        cdef Py_ssize_t[::1] active
        cdef pass_job *job = &self.rows.job
        if window == 0:
            check_length("signed_weight", n, X.shape[0] if rows is None else rows.shape[0])
        if rows is not None:
            check_ascending("rows", rows, X.shape[0])
            if lies_by_columns(&X.view):
                # a list of them touches nearly as many cache lines as all rows do, at every read
                X, rows = X.gathered(rows, n_threads), None
        if offset is not None:
            check_length("offset", offset.shape[0], n)
        job.loss = loss_of(SMOOTHED_HINGE, 1, 1)
        self.per_row = np.empty((2, n))
        self.keep = (X, signed_weight, rows, None, offset)
        self.n_rows, self.n_features = n, X.view.n_features
        self.n_columns = X.view.n_features + intercept
        self.n_threads = self.rows.n_threads = n_threads
        self.rows.owner, self.rows.make_room = <void *> self, ask_python_for_room
        job.source.X = X.view
        job.source.intercept = intercept
        job.source.rows = &rows[0] if rows is not None and n > 0 else NULL
        per_row = self.per_row
        if n > 0:
            job.signed_weight = &signed_weight[0]
            job.offset = &offset[0] if offset is not None else NULL
            job.slack = &per_row[0, 0]
            job.change = &per_row[1, 0]
        job.n_rows, job.n_columns = window if window > 0 else n, self.n_columns
        pass_plan(&self.rows)
        job.n_rows = self.rows.n_all = n
        sums = self.sums_ = np.zeros((job.n_blocks, N_SUMS))
        gradient = self.gradient_ = np.zeros((job.n_blocks, 3, max(1, self.n_columns)))
        diagonal = self.diagonal_ = np.zeros((job.n_blocks, max(1, self.n_columns)))
        job.sums, job.gradient, job.diagonal = &sums[0, 0], &gradient[0, 0, 0], &diagonal[0, 0]
        active = self.active_ = np.empty(max(1, self.n_columns), np.intp)
        self.rows.active = &active[0]
        if job.source.X.starts != NULL:
            active = self.position_ = np.empty(max(1, self.n_columns), np.intp)
            self.rows.position = &active[0]
        pass_set_active(&self.rows, self.n_columns, NULL)
        pass_start(&self.rows, False)

    cdef int make_room(self, Py_ssize_t order) except -1:
        # one part per thread, a cache line apart
        cdef row_pass *rows = &self.rows
        cdef Py_ssize_t size = scratch_wanted(rows, order)
        cdef double[::1] scratch, curvature
        cdef double[:, ::1] duals
        cdef double[:, :, ::1] hessian
        cdef Py_ssize_t n_hessians = hessians_wanted(rows, order)
        if self.duals is None and has_dual(&rows.job.loss) and self.n_rows > 0:
            duals = self.duals = np.empty((2, self.n_rows))
            rows.job.dual, rows.job.dual_next = &duals[0, 0] + rows.first, &duals[1, 0] + rows.first
        if size > rows.scratch_size:
            scratch = self.scratch_ = np.empty(size * self.n_threads)
            rows.scratch, rows.scratch_size = &scratch[0], size
        if order > 0 and (order != rows.hessian_order or rows.n_hessians < n_hessians):
            self.hessian_, rows.hessian_order = None, -1         # give the old one back first
            hessian = self.hessian_ = np.zeros((n_hessians, order, order))      # below the diagonal they stay so
            rows.all_hessian, rows.hessian_order, rows.n_hessians = &hessian[0, 0, 0], order, n_hessians
        if sums_later(rows, order) and self.curvature_ is None and rows.most_rows > 0:
            curvature = self.curvature_ = np.empty(rows.most_rows)
            rows.curved.memory = &curvature[0]
        return 0

    @property
    def n_blocks(self):
        return self.rows.job.n_blocks

    def use_threads(self, int n_threads):
        """From the next request or part of an evaluation on; sums do not depend on it. Whether that helps."""
        cdef double[::1] scratch
        if n_threads == self.n_threads:
            return True
        self.n_threads = self.rows.n_threads = n_threads
        if self.rows.scratch_size > 0:
            scratch = self.scratch_ = np.empty(self.rows.scratch_size * n_threads)
            self.rows.scratch = &scratch[0]
        return True

    def start(self, bint primal=False):
        """Forget every step: w = 0, so that u = 1, or the row's offset. ``primal``: never carry dual variables."""
        pass_start(&self.rows, primal)

    def pursue(self, double level, double scale):
        """From here on the loss is that of margin pursuit, gamma = ``level``, s = ``scale`` > 0; widths mean nothing.

        Of the sums of an evaluation, line value and slope and the curvature are then filled in, and there is no dual.
        The gradient's second row holds sum s_i y_i x_i in the first evaluation after `start`.
        """
        cdef pass_job *job = &self.rows.job
        job.loss = loss_of(MARGIN_PURSUIT, level, scale)

    def set_loss(self, of):
        """From here on the loss is a `Loss` with a dual: the hinge, smoothed as before, or one that needs no width."""
        cdef loss_t loss = loss_of(of.id, of.numbers[0], of.numbers[1])
        if not has_dual(&loss):
            raise ValueError(f"a loss without a dual has no certificate: {of.name}")
        self.rows.job.loss = loss_of(in_newton_steps(loss.id), loss.a, loss.b)

    def set_active(self, const Py_ssize_t[::1] active):
        """Columns of the curvature block: an ascending intp array, or None for all."""
        if active is None:
            pass_set_active(&self.rows, self.n_columns, NULL)
            return
        check_ascending("active", active, self.n_columns)
        pass_set_active(&self.rows, active.shape[0], &active[0] if active.shape[0] > 0 else self.rows.active)

    @property
    def has_columns(self):
        """Whether `take_columns` was called."""
        return self.rows.columns.source.X.starts != NULL

    def take_columns(self, Rows columns):
        """X', CSR, for models of a step by columns of all rows."""
        cdef double[:, ::1] per_row = np.zeros((3, self.n_rows + 1))
        cdef columns_view *of = &self.rows.columns
        must_fit(columns.sparse and columns.shape == (self.n_features, self.n_rows) and self.keep[2] is None and
                 self.rows.job.source.X.storage == columns.view.storage, "take_columns")
        self.columns_, self.per_column_ = columns, per_row
        of.source = source_of(columns)
        of.weight, of.product, of.other = &per_row[0, 0], &per_row[1, 0], &per_row[2, 0]

    @property
    def has_unknowns(self):
        """Whether `take_unknowns` was called."""
        return self.rows.unknowns.weight != NULL

    def take_unknowns(self):
        """Memory for models of a step in as many unknowns as there are rows, of dense rows."""
        cdef row_unknowns *of = &self.rows.unknowns
        cdef Py_ssize_t n = self.n_rows, p = self.n_columns
        cdef double[::1] each
        cdef double[:, ::1] square
        cdef Py_ssize_t[::1] places
        cdef char[::1] used
        must_fit(not self.keep[0].sparse and self.keep[2] is None and n > 0 and p > 0, "take_unknowns")
        each = np.zeros(7 * n + 2 * p + TILE * p + PANEL * n)
        square, places, used = np.zeros((2 * n, n)), np.zeros(n + p, np.intp), np.zeros(p, np.int8)
        self.unknowns_ = (each.base, square.base, places.base, used.base)
        of.weight, of.multiplier, of.product, of.residual = &each[0], &each[n], &each[2 * n], &each[3 * n]
        of.step, of.solution, of.panel = &each[4 * n], &each[5 * n], &each[7 * n]
        of.slope = of.panel + PANEL * n
        of.change, of.tile = of.slope + p, of.slope + 2 * p
        of.gram, of.factor = &square[0, 0], &square[n, 0]
        of.curved, of.moved, of.used = &places[0], &places[n], &used[0]
        of.n_used = 0

    @property
    def norms(self):
        """(n_rows,) what `measure_rows` let the evaluation sum."""
        return self.norms_

    def forget_measures(self):
        """Give their memory back, after the evaluation."""
        self.norms_ = None

    def measure_rows(self, const double[::1] weight):
        """Let the next evaluation also sum weight_j x_ij^2 for every row; the array that it will fill."""
        cdef double[::1] norms
        if weight.shape[0] < self.n_features:
            check_length("weight", weight.shape[0], self.n_features)
        norms = self.norms_ = np.zeros(self.n_rows)
        self.keep = (*self.keep[:3], weight, self.keep[4])
        if self.n_rows > 0 and weight.shape[0] > 0:
            self.rows.job.norm_weight = &weight[0]
            self.rows.job.norms = &norms[0] + self.rows.first
        return self.norms_

    def let_sample(self):
        """Room for what the length of a row says of its chance to be in a sample; before the first SAMPLED_BLOCK."""
        cdef double[::1] leverage = np.ones(self.n_rows)
        self.leverage_ = leverage.base
        if self.n_rows > 0:
            self.rows.job.leverage = &leverage[0]

    def evaluate(self, const double[::1] direction, double step, double line_width, double width,
                 double curvature_floor, int with_hessian=True, move=None):
        """One read of the rows at u - step (y X direction); None keeps the direction of the last evaluation.

        Sums are in the order of ``sum_id``. They, the gradients and the Hessian are workspace, overwritten by the next
        evaluation. An evaluation that was left by an exception (a Ctrl-C, or what ``between_slices`` raised) has moved
        some rows and others not: `start` before the next.
        """
        self.ask_for(direction, step, line_width, width, curvature_floor, with_hessian, move)
        return self.run_parts()

    def evaluate_sample(self, const double[::1] direction, double step, double line_width, double width,
                        double stands_for, uint64_t seed=0, const double[::1] column_weight=None):
        """The same with the curvature block of a sample of the rows, as Newton's driver asks for it.

        A row of curvature s h is in it with probability s h (0.1 + 0.9 r) / ``stands_for``, r the sum of
        ``column_weight`` x^2, or 1 if no evaluation since `let_sample` was given one, and weighs the inverse more.
        """
        cdef evaluation_request request = self.request_of(direction, step, line_width, width, 0.0, SAMPLED_BLOCK, None)
        request.stands_for, request.seed = stands_for, seed
        if column_weight is not None:
            check_length("column_weight", column_weight.shape[0], self.n_features)
            request.measure.leverage = &column_weight[0] if self.n_features > 0 else NULL
        self.must_have(pass_begin_evaluation(&self.rows, &request))
        return self.run_parts()

    cdef int ask_for(self, const double[::1] direction, double step, double line_width, double width, double floor,
                     int with_hessian, move) except -1:
        cdef evaluation_request request = self.request_of(direction, step, line_width, width, floor, with_hessian, move)
        return self.must_have(pass_begin_evaluation(&self.rows, &request))

    cdef evaluation_request request_of(self, const double[::1] direction, double step, double line_width, double width,
                                       double floor, int with_hessian, move) except *:
        cdef evaluation_request request
        if direction is not None:
            check_length("direction", direction.shape[0], self.n_columns)
        request.direction, request.move = NULL, SAME_LINE
        if direction is not None:
            request.move = COMMIT_AND_MOVE if self.rows.begun else RESTART
            request.direction = &direction[0] if direction.shape[0] > 0 else self.rows.job.gradient
        must_fit(move is None or request.move == move, "the move of an evaluation")
        request.step, request.line_width, request.width = step, line_width, width
        request.floor = floor
        request.with_hessian, request.stands_for, request.seed = with_hessian, 0, 0
        request.measure.norm = request.measure.leverage = NULL
        return request

    cdef object run_parts(self):
        cdef bint more
        while True:
            with nogil:
                more = pass_evaluate_part(&self.rows)
            if not more:
                return (self.sums_[0], self.gradient_[0, :, :self.n_columns],
                        self.hessian_[0] if self.rows.summed else None)
            self.listen()

    cdef int must_have(self, bint memory) except -1:
        if not memory:
            raise MemoryError("no memory for the workspace of a read of the rows")
        return 0

    cdef int listen(self) except -1:
        if self.between_slices is not None:
            self.between_slices()
        PyErr_CheckSignals()
        return 0

    def objective(self, const double[::1] w, bint squares=False):
        """sum s F(y <w, x>) at ``w``, F not smoothed, and sum s x^2 (n_columns,) or None; the rows stay as they are.

        From the rows as given, in float64: what a certificate may rest on, where sums followed step by step may not.
        """
        cdef bint done
        check_length("w", w.shape[0], self.n_columns)
        with nogil:
            done = pass_objective(&self.rows, &w[0] if w.shape[0] > 0 else NULL, squares)
        self.must_have(done)
        return self.sums_[0, HINGE], (self.first_sum() if squares else None)

    def combine(self, const double[::1] c):
        """sum c_i x_i, a new (n_columns,) array."""
        cdef bint done
        check_length("c", c.shape[0], self.n_rows)
        with nogil:
            done = pass_combine(&self.rows, &c[0] if c.shape[0] > 0 else NULL)
        self.must_have(done)
        return self.first_sum()

    def lines(self, const double[::1] slacks, double width):
        """Straight lines that touch the smoothed hinge where the rows are at ``slacks`` (n_rows,), a read.

        Returns sums of s a y x over positive and over negative rows, (2, n_columns), a the slope there, and of s a.
        """
        cdef bint done
        cdef Py_ssize_t p = self.n_columns
        check_length("slacks", slacks.shape[0], self.n_rows)
        with nogil:
            done = pass_linearised(&self.rows, &slacks[0] if slacks.shape[0] > 0 else NULL, width)
        self.must_have(done)
        return (self.gradient_.reshape(-1)[:2 * p].reshape(2, p).copy(),
                self.sums_[0, DUAL_POS:DUAL_NEG + 1].copy())

    cdef object first_sum(self):
        return self.gradient_.reshape(-1)[:self.n_columns].copy()

    def dual_variables(self):
        """a that the last evaluation predicted, and that its bound is of; a new (n_rows,) array."""
        cdef double[:, ::1] duals = self.duals
        cdef pass_job *job = &self.rows.job
        cdef loss_facts facts = facts_of(&job.loss)
        cdef bint carried = job.loss.id == SMOOTHED_HINGE or has_two_kinks(&job.loss)
        cdef int after = 0 if job.dual_next == &duals[0, 0] else 1
        a = self.duals[after].copy()
        if carried and not job.at.primal and 0 < job.at.step < 1:
            # of a shorter step rows keep what lies as far on the way as it does
            before = self.duals[1 - after]
            a = np.clip(before + (a - before) / job.at.step, facts.dual_smallest, facts.dual_largest)
        return a

    def line(self, double step, double width):
        """(value, slope, curvature) in the step of sum s F(u - step change); no read of X."""
        with nogil:
            pass_line(&self.rows, step, width)
        return self.rows.job.sums[0], self.rows.job.sums[1], self.rows.job.sums[2]

    def hessp(self, const double[::1] x, double width, double curvature_floor=0):
        """sum s h x_i <x_i, x> at the last evaluation, and the share of the rows that have curvature.

        ``x`` None: the diagonal sum s h x_i^2 instead. A new (n_columns,) array.
        """
        cdef double share
        if x is not None:
            check_length("x", x.shape[0], self.n_columns)
        with nogil:
            share = pass_hessp(&self.rows, &x[0] if x is not None and x.shape[0] > 0 else NULL, width,
                               curvature_floor)
        self.must_have(share >= 0)
        return self.first_sum(), share

    def margins(self):
        """y <w, x> at the last evaluation, a new array; no read of X."""
        cdef double[::1] out = np.empty(self.n_rows)
        if self.n_rows > 0:
            with nogil:
                pass_margins(&self.rows, &out[0])
        return np.asarray(out)
