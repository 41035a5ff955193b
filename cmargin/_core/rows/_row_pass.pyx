"""Rows in memory with the state of one binary problem: what a Newton solver may ask of them.

(a) What a block of rows sums is in `_row_blocks`; here the blocks are planned, run and folded.
(b) Rows are cut into a number of blocks that depends on the shape alone. Each block sums for itself and the blocks
    are folded in order: the same bits for any number of threads.
(c) A long look is cut into slices, by the shape too, between which Python is heard.
(d) Rows that come window by window are a subclass, `_row_windows`; here is what it needs of a look.
"""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from libc.string cimport memcpy

from cmargin._core.losses._losses cimport MARGIN_PURSUIT, SMOOTHED_HINGE, has_dual, in_newton_steps
from cmargin._core.rows._row_blocks cimport (
    CURVED, DUAL_NEG, DUAL_POS, HINGE, N_PARTS, N_SUMS, along_block, block_question, combine_block, evaluate_block,
    fold, fold_curvature, lines_block, pass_job, product_block, run_block, weigh_by_curvature,
)
from cmargin._core.rows._curved_rows cimport curved_begin, curved_part
from cmargin._core.linalg._packed_syrk cimport packed_syrk_lanes, packed_syrk_single_from, packed_syrk_widest
from cmargin._core.rows._over_blocks cimport over_blocks
from cmargin._core.rows._rows cimport Rows
from cmargin._core.rows._tiles cimport curvature_block, curvature_scratch, source_of
from cmargin._core.small._shapes cimport check_ascending, check_length, must_fit

from cmargin._core.losses._losses import LOSS_IDS
from cmargin._runtime.blas_threads import blas_trails

cdef Py_ssize_t MAX_BLOCKS = 32
cdef Py_ssize_t TILE_DOUBLES = 16384         # 128 KB: a tile and its packed rows stay in a second-level cache
cdef bint BLAS_TRAILS = blas_trails()        # its registers are shorter than AVX-512's
cdef Py_ssize_t LATER_FROM = 128             # columns from which curvature is summed after the pass: `_curved_rows`
cdef Py_ssize_t LATER_ROOM = 256             # rows of a dsyrk then,
cdef Py_ssize_t FEWEST_GROUPS = 8            # and groups that there is room for on several threads
cdef double SLICE_FLOPS = 4e9                # of a look between two moments at which Python is heard: about 0.1 s


# ---------------------------------------------------------------- as compiled code asks

cdef void pass_start(row_pass *rows, bint primal) noexcept nogil:
    cdef double *deficit = rows.job.deficit - rows.first
    cdef double *change = rows.job.change - rows.first
    cdef Py_ssize_t i
    for i in range(rows.n_all):
        deficit[i], change[i] = 1, 0
    rows.job.pending = 0
    rows.begun, rows.fresh, rows.forgets = False, True, primal


cdef void pass_plan(row_pass *rows) noexcept nogil:
    # a twentieth of the data at most goes into the blocks' curvature where they sum it, and few rows need no blocks; as
    # many for each of 2, 4 or 8 threads
    cdef pass_job *job = &rows.job
    cdef Py_ssize_t n = job.n_rows, room = max(1, job.n_columns)
    cdef Py_ssize_t blocks = n // (20 * room)
    rows.sums_later = blocks < MAX_BLOCKS and room >= LATER_FROM and job.source.X.starts == NULL
    blocks = max(1, min(MAX_BLOCKS if rows.sums_later else min(MAX_BLOCKS, max(2, blocks)), n // 256))
    job.n_blocks = blocks // 8 * 8 if blocks > 8 else 4 if blocks > 4 else blocks // 2 * 2 if blocks > 2 else blocks
    job.tile_rows = max(1, min(min(512, max(16, TILE_DOUBLES // room // 4 * 4)), n))       # rows are summed by fours
    job.block.lanes = packed_syrk_lanes()
    job.curvature = NULL
    rows.hessian_order = -1
    rows.most_rows = rows.n_all = n
    rows.first, rows.windowed, rows.helpers = 0, False, NULL


cdef void pass_set_active(row_pass *rows, Py_ssize_t n_active, const Py_ssize_t *active) noexcept nogil:
    cdef pass_job *job = &rows.job
    cdef Py_ssize_t j
    if active == NULL:
        job.block.active, job.block.n_active = NULL, job.n_columns
    else:
        memcpy(rows.active, active, n_active * sizeof(Py_ssize_t))
        job.block.active, job.block.n_active = rows.active, n_active
    if rows.position == NULL:
        return
    for j in range(job.n_columns):
        rows.position[j] = j if active == NULL else -1
    if active != NULL:
        for j in range(n_active):
            rows.position[active[j]] = j
    job.block.position = rows.position


cdef bint sums_later(const row_pass *rows, Py_ssize_t order) noexcept nogil:
    return rows.sums_later and order >= LATER_FROM


cdef Py_ssize_t packed_room(const row_pass *rows, Py_ssize_t order) noexcept nogil:
    # rows that wait for a dsyrk
    cdef Py_ssize_t room = max(64, 2 * TILE_DOUBLES // max(1, rows.job.n_columns))
    return max(1, min(LATER_ROOM if sums_later(rows, order) else min(512, room), rows.most_rows))


cdef Py_ssize_t scratch_wanted(const row_pass *rows, Py_ssize_t order) noexcept nogil:
    cdef const pass_job *job = &rows.job
    cdef bint copies = job.source.X.starts == NULL and job.source.X.column_stride != 1
    cdef Py_ssize_t tile = job.tile_rows * job.source.X.n_features if copies else 0
    cdef curvature_block block = job.block
    block.n_active, block.room = order, packed_room(rows, order)
    return (2 + N_PARTS) * job.tile_rows + curvature_scratch(&block) + tile


cdef Py_ssize_t hessians_wanted(const row_pass *rows, Py_ssize_t order) noexcept nogil:
    # of groups: their sum, and one for each thread; a few more, as threads wait for each other when these are full
    if not sums_later(rows, order):
        return rows.job.n_blocks
    return 1 + (1 if rows.n_threads == 1 else min(max(rows.n_threads, FEWEST_GROUPS), MOST_GROUPS))


cdef bint has_room(row_pass *rows, Py_ssize_t order) noexcept nogil:
    # workspace for a curvature block of that order; only what is not there yet is asked for
    cdef bint has_block = order == 0 or (
        order == rows.hessian_order and rows.n_hessians >= hessians_wanted(rows, order)
        and (rows.curved.memory != NULL or not sums_later(rows, order) or rows.most_rows == 0))
    if scratch_wanted(rows, order) <= rows.scratch_size and has_block \
            and (rows.job.dual != NULL or not has_dual(rows.job.loss) or rows.n_all == 0):
        return True
    return rows.make_room(rows, order)


cdef bint ask_python_for_room(row_pass *rows, Py_ssize_t order) noexcept with gil:
    try:
        (<RowBlocks> rows.owner).make_room(order)
    except MemoryError:
        return False
    return True


cdef bint pass_begin_look(row_pass *rows, const look_request *request) noexcept nogil:
    cdef pass_job *job = &rows.job
    cdef Py_ssize_t order = job.block.n_active if has_block(request.with_hessian) else 0
    job.block.single = request.with_hessian == ROUGH_BLOCK and job.source.X.starts == NULL and \
        order >= packed_syrk_single_from(job.block.lanes, rows.n_all)
    job.block.room = packed_room(rows, order)
    job.block.widest = packed_syrk_widest(job.block.lanes, BLAS_TRAILS, job.block.single)
    if not has_room(rows, order):
        return False
    rows.summed = order > 0
    job.hessian = rows.all_hessian if rows.summed else NULL
    job.curvature = rows.curved.memory if rows.summed and sums_later(rows, order) else NULL
    job.direction = request.direction
    job.at.step, job.at.line_width, job.at.width = request.step, request.line_width, request.width
    job.at.floor = request.floor
    if request.direction != NULL and rows.begun:
        job.dual, job.dual_next = job.dual_next, job.dual        # the last look was the step taken
        rows.fresh = False
    job.totals = not rows.begun
    rows.begun = True
    job.at.tangents = request.with_hessian == TANGENTS
    job.at.primal = rows.forgets or rows.fresh or job.at.tangents
    pass_begin_window(rows)
    return True


cdef void pass_begin_window(row_pass *rows) noexcept nogil:
    cdef Py_ssize_t order = rows.job.block.n_active if rows.summed and rows.job.curvature == NULL else 0
    rows.part, rows.n_parts = 0, slices(&rows.job, order)


cdef Py_ssize_t slices(const pass_job *job, Py_ssize_t order) noexcept nogil:
    # parts of a look; from the shape alone, as the order of addition depends on it
    cdef double work = <double> job.n_rows * (8.0 * job.n_columns + <double> order * order)
    cdef Py_ssize_t tiles = max(1, job.n_rows // (job.n_blocks * job.tile_rows))
    return min(1 + <Py_ssize_t> (work / SLICE_FLOPS), tiles)


cdef bint pass_look_part(row_pass *rows) noexcept nogil:
    cdef pass_job *job = &rows.job
    cdef bint later = job.curvature != NULL
    if rows.part < rows.n_parts:
        pass_read_part(rows)
        if rows.part < rows.n_parts or later:
            return True
    elif later and curved_part(rows):
        return True
    if rows.summed:
        pass_add_diagonal(job)
    if not rows.windowed:
        pass_end_look(rows)
    return False


cdef void pass_read_part(row_pass *rows) noexcept nogil:
    # with the last one, sums are folded
    cdef pass_job *job = &rows.job
    cdef Py_ssize_t n_blocks = job.n_blocks, order = job.block.n_active
    cdef block_question asked
    asked.part, asked.n_parts = rows.part, rows.n_parts
    if not rows.summed:
        job.block.n_active = 0
    over_blocks(rows, run_block, &asked)
    job.block.n_active = order
    rows.part += 1
    if rows.part < rows.n_parts:
        return
    fold(job.sums, n_blocks, N_SUMS)
    fold(job.gradient, n_blocks, 3 * job.n_columns)
    fold(job.diagonal, n_blocks, job.n_columns)
    if job.curvature != NULL:
        curved_begin(rows)
    elif rows.summed:
        asked.n_summed = asked.n_folding = n_blocks
        over_blocks(rows, fold_curvature, &asked)


cdef void pass_add_diagonal(pass_job *job) noexcept nogil:
    cdef Py_ssize_t a = job.block.n_active, i
    for i in range(a):
        job.hessian[i * (a + 1)] += job.diagonal[i if job.block.active == NULL else job.block.active[i]]


cdef void pass_end_look(row_pass *rows) noexcept nogil:
    rows.job.pending = rows.job.at.step
    rows.job.norms = NULL
    rows.windowed = False


cdef void pass_along(row_pass *rows, double step, double width) noexcept nogil:
    cdef block_question asked
    asked.step, asked.width = step, width
    over_blocks(rows, along_block, &asked)
    fold(rows.job.sums, rows.job.n_blocks, N_SUMS)


cdef void pass_margins(const row_pass *rows, double *out) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(rows.job.n_rows):
        out[i] = 1 - (rows.job.deficit[i] - rows.job.pending * rows.job.change[i])


cdef double pass_product(row_pass *rows, const double *x, double width, double floor) noexcept nogil:
    cdef pass_job *job = &rows.job
    cdef block_question asked
    cdef Py_ssize_t block
    cdef double read = 0
    if not has_room(rows, 0):
        return -1
    asked.x, asked.width, asked.floor = x, width, floor
    over_blocks(rows, product_block, &asked)
    fold(job.gradient, job.n_blocks, job.n_columns)
    if job.source.X.starts == NULL:
        return 1
    for block in range(job.n_blocks):
        read += job.sums[block * N_SUMS + CURVED]
    return read / max(1, job.n_rows)


cdef void pass_weigh(row_pass *rows, double n, double width, double floor) noexcept nogil:
    cdef block_question asked
    cdef Py_ssize_t i
    asked.width, asked.floor = width, floor
    weigh_by_curvature(&rows.job, 0, rows.job.n_rows, &asked, rows.columns.weight)
    for i in range(rows.job.n_rows):
        rows.columns.weight[i] /= n


cdef bint pass_evaluate(row_pass *rows, const double *w, bint squares) noexcept nogil:
    cdef block_question asked
    if not has_room(rows, 0):
        return False
    asked.x, asked.squares = w, squares
    over_blocks(rows, evaluate_block, &asked)
    fold(rows.job.sums, rows.job.n_blocks, N_SUMS)
    fold(rows.job.gradient, rows.job.n_blocks, rows.job.n_columns)
    return True


cdef bint pass_combine(row_pass *rows, const double *c) noexcept nogil:
    cdef block_question asked
    if not has_room(rows, 0):
        return False
    asked.x = c
    over_blocks(rows, combine_block, &asked)
    fold(rows.job.gradient, rows.job.n_blocks, rows.job.n_columns)
    return True


cdef bint pass_lines(row_pass *rows, const double *deficits, double width) noexcept nogil:
    cdef block_question asked
    if not has_room(rows, 0):
        return False
    asked.x, asked.width = deficits, width
    over_blocks(rows, lines_block, &asked)
    fold(rows.job.sums, rows.job.n_blocks, N_SUMS)
    fold(rows.job.gradient, rows.job.n_blocks, 2 * rows.job.n_columns)
    return True


# ---------------------------------------------------------------- as Python asks

cdef class RowBlocks:
    """Rows in memory, with the per-row state of one binary problem; see `cmargin.homes.base` for the contract.

    Parameters
    ----------
    X : Rows
    code : (n_rows,) float64
        s_i y_i: sample weight, with the sign of the class. Rows of weight 0 count as positive and add nothing.
    intercept : bool
        Append a column of ones.
    n_threads : int
    rows : (n_rows,) intp or None
        The subset of rows to read, ascending.
    window : int
        Rows that are here at a time, at most, where ``X`` has none (`_row_windows`); 0: all are here.
    """

    def __init__(self, Rows X, const double[::1] code, bint intercept, int n_threads,
                 const Py_ssize_t[::1] rows=None, Py_ssize_t window=0):
        cdef Py_ssize_t n = code.shape[0]
        cdef double[:, ::1] per_row, sums, diagonal
        cdef double[:, :, ::1] gradient
        cdef Py_ssize_t[::1] active
        cdef pass_job *job = &self.rows.job
        if window == 0:
            check_length("code", n, X.shape[0] if rows is None else rows.shape[0])
        if rows is not None:
            check_ascending("rows", rows, X.shape[0])
        job.loss = SMOOTHED_HINGE
        self.per_row = np.empty((2, n))
        self.keep = (X, code, rows, None, None)
        self.n_rows, self.n_features = n, X.view.n_features
        self.n_columns = X.view.n_features + intercept
        self.n_threads = self.rows.n_threads = n_threads
        self.rows.owner, self.rows.make_room = <void *> self, ask_python_for_room
        job.source.X = X.view
        job.source.single = X.dtype == np.float32
        job.source.intercept = intercept
        job.source.rows = &rows[0] if rows is not None and n > 0 else NULL
        per_row = self.per_row
        if n > 0:
            job.code = &code[0]
            job.deficit = &per_row[0, 0]
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
        if self.duals is None and has_dual(rows.job.loss) and self.n_rows > 0:
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
        """From the next question on, or the next part of a look; sums do not depend on it. Whether that helps."""
        cdef double[::1] scratch
        if n_threads == self.n_threads:
            return True
        self.n_threads = self.rows.n_threads = n_threads
        if self.rows.scratch_size > 0:
            scratch = self.scratch_ = np.empty(self.rows.scratch_size * n_threads)
            self.rows.scratch = &scratch[0]
        return True

    def start(self, bint primal=False):
        """Forget every step: w = 0, so that u = 1 everywhere. ``primal``: never carry dual variables."""
        pass_start(&self.rows, primal)

    def pursue(self, double level, double scale):
        """From here on the loss is that of margin pursuit, gamma = ``level``, s = ``scale`` > 0; widths mean nothing.

        Of the sums of a look, line value and slope and the curvature are then filled in, and there is no dual. The
        gradient's second row holds sum s_i y_i x_i in the first look after `start`.
        """
        cdef pass_job *job = &self.rows.job
        job.loss, job.level, job.scale = MARGIN_PURSUIT, level, scale

    def set_loss(self, name):
        """From here on the loss is one with a dual: "hinge", smoothed as before, or one that needs no width."""
        cdef int loss = LOSS_IDS[name]
        if not has_dual(loss):
            raise ValueError(f"a loss without a dual has no certificate: {name}")
        self.rows.job.loss = in_newton_steps(loss)

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
                 self.rows.job.source.single == (columns.dtype == np.float32), "take_columns")
        self.columns_, self.per_column_ = columns, per_row
        of.source = source_of(columns)
        of.weight, of.product, of.other = &per_row[0, 0], &per_row[1, 0], &per_row[2, 0]

    def set_exact(self, const unsigned char[::1] mask):
        """Rows (uint8 mask) that stay out of the curvature and whose dual variable is their slope after the step."""
        if mask is not None:
            check_length("mask", mask.shape[0], self.n_rows)
        self.keep = self.keep[:3] + (mask,) + self.keep[4:]
        self.rows.job.exact = &mask[0] + self.rows.first if mask is not None and mask.shape[0] > 0 else NULL

    @property
    def exact(self):
        """The mask that `set_exact` was given, or None."""
        return None if self.keep[3] is None else np.asarray(self.keep[3])

    @property
    def norms(self):
        """(n_rows,) what `measure_rows` let the look sum."""
        return self.norms_

    def forget_measures(self):
        """Give their memory back, after the look."""
        self.norms_ = None

    def measure_rows(self, const double[::1] weight):
        """Let the next look also sum weight_j x_ij^2 for every row; the array that it will fill."""
        cdef double[::1] norms
        if weight.shape[0] < self.n_features:
            check_length("weight", weight.shape[0], self.n_features)
        norms = self.norms_ = np.zeros(self.n_rows)
        self.keep = self.keep[:4] + (weight,)
        if self.n_rows > 0 and weight.shape[0] > 0:
            self.rows.job.norm_weight = &weight[0]
            self.rows.job.norms = &norms[0] + self.rows.first
        return self.norms_

    def look(self, const double[::1] direction, double step, double line_width, double width, double curvature_floor,
             int with_hessian=True):
        """One read of the rows at u - step (y X direction); None keeps the direction of the last look.

        Returns
        -------
        sums : (N_SUMS,) array, in the order of ``sum_id``
        gradient : (3, n_columns) array: sum r x for r = s y a, and for the dual prediction, y = +1 and y = -1 apart
        hessian : (n_active, n_active) array, upper triangle, or None

        All three are workspace, overwritten by the next look. A look that was left by an exception (a Ctrl-C, or what
        ``between_slices`` raised) has moved some rows and others not: `start` before the next.
        """
        self.ask_for(direction, step, line_width, width, curvature_floor, with_hessian)
        return self.look_through()

    cdef int ask_for(self, const double[::1] direction, double step, double line_width, double width, double floor,
                     int with_hessian) except -1:
        cdef look_request request
        if direction is not None:
            check_length("direction", direction.shape[0], self.n_columns)
        request.direction = NULL
        if direction is not None:
            request.direction = &direction[0] if direction.shape[0] > 0 else self.rows.job.gradient
        request.step, request.line_width, request.width, request.floor = step, line_width, width, floor
        request.with_hessian = with_hessian
        return self.must_have(pass_begin_look(&self.rows, &request))

    cdef object look_through(self):
        cdef bint more
        while True:
            with nogil:
                more = pass_look_part(&self.rows)
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

    def evaluate(self, const double[::1] w, bint squares=False):
        """sum s F(y <w, x>) at ``w``, F not smoothed, and sum s x^2 (n_columns,) or None; the rows stay as they are.

        From the rows as given, in float64: what a certificate may rest on, where sums followed step by step may not.
        """
        cdef bint done
        check_length("w", w.shape[0], self.n_columns)
        with nogil:
            done = pass_evaluate(&self.rows, &w[0] if w.shape[0] > 0 else NULL, squares)
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

    def lines(self, const double[::1] deficits, double width):
        """Straight lines that touch the smoothed hinge where the rows are at ``deficits`` (n_rows,), a read.

        Returns
        -------
        vectors : (2, n_columns) array, sums of s a y x over positive and over negative rows, a the slope there
        totals : (2,) array, sums of s a
        """
        cdef bint done
        cdef Py_ssize_t p = self.n_columns
        check_length("deficits", deficits.shape[0], self.n_rows)
        with nogil:
            done = pass_lines(&self.rows, &deficits[0] if deficits.shape[0] > 0 else NULL, width)
        self.must_have(done)
        return (self.gradient_.reshape(-1)[:2 * p].reshape(2, p).copy(),
                self.sums_[0, DUAL_POS:DUAL_NEG + 1].copy())

    cdef object first_sum(self):
        return self.gradient_.reshape(-1)[:self.n_columns].copy()

    def dual_variables(self):
        """a >= 0 that the last look predicted, a new (n_rows,) array."""
        cdef double[:, ::1] duals = self.duals
        return self.duals[0 if self.rows.job.dual_next == &duals[0, 0] else 1].copy()

    def along(self, double step, double width):
        """(value, slope, curvature) in the step of sum s F(u - step change); no read of X."""
        with nogil:
            pass_along(&self.rows, step, width)
        return self.rows.job.sums[0], self.rows.job.sums[1], self.rows.job.sums[2]

    def hessian_product(self, const double[::1] x, double width, double curvature_floor=0):
        """sum s h x_i <x_i, x> at the deficits last looked at, and the share of the rows that have curvature.

        ``x`` None: the diagonal sum s h x_i^2 instead. A new (n_columns,) array.
        """
        cdef double share
        if x is not None:
            check_length("x", x.shape[0], self.n_columns)
        with nogil:
            share = pass_product(&self.rows, &x[0] if x is not None and x.shape[0] > 0 else NULL, width,
                                 curvature_floor)
        self.must_have(share >= 0)
        return self.first_sum(), share

    def margins(self):
        """y <w, x> at the point last looked at, a new array; no read of X."""
        cdef double[::1] out = np.empty(self.n_rows)
        if self.n_rows > 0:
            with nogil:
                pass_margins(&self.rows, &out[0])
        return np.asarray(out)
