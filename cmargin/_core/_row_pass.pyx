"""Rows in memory with the state of one binary problem: what a Newton solver may ask of them.

(a) What a block of rows sums is in `_row_blocks`; here the blocks are planned, run and folded.
(b) Rows are cut into a number of blocks that depends on the shape alone. Each block sums for itself and the blocks
    are folded in order: the same bits for any number of threads.
(c) A long look is cut into slices, by the shape too, between which Python is heard.
"""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange, threadid

from cmargin._core._losses cimport LOGISTIC, MARGIN_PURSUIT, SMOOTHED_HINGE, SQUARED_HINGE
from cmargin._core._row_blocks cimport (
    CURVED, HINGE, N_PARTS, N_SUMS, along_block, combine_block, evaluate_block, fold, pass_job, product_block,
    run_block,
)
from cmargin._core._rows cimport Rows

cdef Py_ssize_t MAX_BLOCKS = 32
cdef Py_ssize_t TILE_DOUBLES = 16384         # 128 KB: a tile and its packed rows stay in a second-level cache
cdef double SLICE_FLOPS = 4e9                # of a look between two moments at which Python is heard: about 0.1 s


cdef int check_length(str name, Py_ssize_t got, Py_ssize_t wanted) except -1:
    if got != wanted:
        raise ValueError(f"{name} has {got} entries, expected {wanted}")
    return 0


cdef int check_ascending(str name, const Py_ssize_t[::1] index, Py_ssize_t end) except -1:
    cdef Py_ssize_t i, last = -1
    for i in range(index.shape[0]):
        if index[i] <= last or index[i] >= end:
            raise ValueError(f"{name} must be ascending and in [0, {end}); entry {i} is {index[i]}")
        last = index[i]
    return 0


cdef class RowBlocks:
    """Rows in memory, with the per-row state of one binary problem; see `cmargin.passes.base` for the contract.

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
    """

    cdef pass_job job
    cdef tuple keep                          # owners of the memory that the pointers see
    cdef object norms_
    cdef object per_row, duals, position_, scratch_, gradient_, hessian_, sums_
    cdef double[::1] scratch
    cdef Py_ssize_t scratch_size, hessian_order
    cdef bint begun, fresh, forgets
    cdef public object between_slices        # called between two slices of a long look; what it raises ends the look
    cdef readonly int n_threads
    cdef readonly Py_ssize_t n_rows, n_columns, n_features

    def __init__(self, Rows X, const double[::1] code, bint intercept, int n_threads,
                 const Py_ssize_t[::1] rows=None):
        cdef Py_ssize_t n = code.shape[0], room
        cdef double[:, ::1] per_row
        cdef pass_job *job = &self.job
        check_length("code", n, X.shape[0] if rows is None else rows.shape[0])
        if rows is not None:
            check_ascending("rows", rows, X.shape[0])
        job.loss = SMOOTHED_HINGE
        self.per_row = np.empty((2, n))
        self.keep = (X, code, rows, None, None, None)
        self.n_rows, self.n_features = n, X.view.n_features
        self.n_columns = X.view.n_features + intercept
        self.n_threads = n_threads
        job.source.X = X.view
        job.source.single = X.dtype == np.float32
        job.source.intercept = intercept
        job.source.rows = &rows[0] if rows is not None and n > 0 else NULL
        per_row = self.per_row
        if n > 0:
            job.code = &code[0]
            job.deficit = &per_row[0, 0]
            job.change = &per_row[1, 0]
        job.n_rows, job.n_columns = n, self.n_columns
        # a twentieth of the data at most goes into the blocks' curvature, and few rows need no blocks
        job.n_blocks = max(1, min(min(MAX_BLOCKS, max(2, n // (20 * max(1, self.n_columns)))), n // 256))
        room = max(1, self.n_columns)
        job.tile_rows = max(1, min(min(512, max(16, TILE_DOUBLES // room)), n))
        job.block.room = max(1, min(min(512, max(64, 2 * TILE_DOUBLES // room)), n))
        self.sums_ = np.zeros((job.n_blocks, N_SUMS))
        self.gradient_ = np.zeros((job.n_blocks, 3, self.n_columns))
        self.hessian_order = -1
        self.set_active(None)
        self.start()

    @property
    def n_blocks(self):
        return self.job.n_blocks

    def start(self, bint primal=False):
        """Forget every step: w = 0, so that u = 1 everywhere. ``primal``: never carry dual variables."""
        self.per_row[0] = 1.0
        self.per_row[1] = 0.0
        self.job.pending = 0
        self.begun, self.fresh, self.forgets = False, True, primal

    def pursue(self, double level, double scale):
        """From here on the loss is that of margin pursuit, gamma = ``level``, s = ``scale`` > 0; widths mean nothing.

        Of the sums of a look, line value and slope and the curvature are then filled in, and there is no dual. The
        gradient's second row holds sum s_i y_i x_i in the first look after `start`.
        """
        self.job.loss, self.job.level, self.job.scale = MARGIN_PURSUIT, level, scale

    def set_loss(self, str name):
        """From here on the loss is "hinge", smoothed as before, "squared_hinge" or "logistic": no width, but a dual."""
        self.job.loss = {"hinge": SMOOTHED_HINGE, "squared_hinge": SQUARED_HINGE, "logistic": LOGISTIC}[name]

    def set_active(self, const Py_ssize_t[::1] active):
        """Columns of the curvature block: an ascending intp array, or None for all."""
        cdef Py_ssize_t order = self.n_columns if active is None else active.shape[0]
        cdef Py_ssize_t[::1] position
        if active is not None:
            check_ascending("active", active, self.n_columns)
        self.keep = self.keep[:3] + (active,) + self.keep[4:]
        self.job.block.active = &active[0] if active is not None and order > 0 else NULL
        if self.job.source.X.starts != NULL:
            if active is None:
                position_ = np.arange(self.n_columns)
            else:
                position_ = np.full(self.n_columns, -1, np.intp)
                position_[np.asarray(active)] = np.arange(order)
            self.position_ = position_
            position = position_
            if self.n_columns > 0:
                self.job.block.position = &position[0]
        self.job.block.n_active = order

    def set_exact(self, const unsigned char[::1] mask):
        """Rows (uint8 mask) that stay out of the curvature and whose dual variable is their slope after the step."""
        if mask is not None:
            check_length("mask", mask.shape[0], self.n_rows)
        self.keep = self.keep[:4] + (mask,) + self.keep[5:]
        self.job.exact = &mask[0] if mask is not None and mask.shape[0] > 0 else NULL

    def measure_rows(self, const double[::1] weight):
        """Let the next look also sum weight_j x_ij^2 for every row; the array that it will fill."""
        cdef double[::1] norms
        if weight.shape[0] < self.n_features:
            check_length("weight", weight.shape[0], self.n_features)
        self.norms_ = np.zeros(self.n_rows)
        norms = self.norms_
        self.keep = self.keep[:5] + (weight,)
        if self.n_rows > 0 and weight.shape[0] > 0:
            self.job.norm_weight = &weight[0]
            self.job.norms = &norms[0]
        return self.norms_

    cdef int prepare(self, bint with_hessian) except -1:
        # workspace for the present curvature block; one part per thread, a cache line apart
        cdef pass_job *job = &self.job
        cdef Py_ssize_t a = job.block.n_active if with_hessian else 0
        cdef bint copies = job.source.X.starts == NULL and job.source.X.column_stride != 1
        cdef Py_ssize_t tile = job.tile_rows * self.n_features if copies else 0
        cdef Py_ssize_t size = (2 + N_PARTS) * job.tile_rows + (job.block.room + 2) * a + tile + 8
        cdef double[:, ::1] sums = self.sums_, duals
        cdef double[:, :, ::1] gradient = self.gradient_, hessian
        if self.duals is None and job.loss != MARGIN_PURSUIT and self.n_rows > 0:
            self.duals = np.empty((2, self.n_rows))
            duals = self.duals
            job.dual, job.dual_next = &duals[0, 0], &duals[1, 0]
        if self.scratch_ is None or size > self.scratch_size:
            self.scratch_ = np.empty(size * self.n_threads)
            self.scratch = self.scratch_
            self.scratch_size = size
        job.sums = &sums[0, 0]
        job.gradient = &gradient[0, 0, 0] if self.n_columns > 0 else NULL
        job.hessian = NULL
        if with_hessian and a > 0:
            if self.hessian_order != a:
                self.hessian_ = None         # give the old one back first
                self.hessian_ = np.empty((job.n_blocks, a, a))
                self.hessian_order = a
            hessian = self.hessian_
            job.hessian = &hessian[0, 0, 0]
        return 0

    def look(self, const double[::1] direction, double step, double line_width, double width, double curvature_floor,
             bint with_hessian=True):
        """One read of the rows at u - step (y X direction); None keeps the direction of the last look.

        Returns
        -------
        sums : (N_SUMS,) array, in the order of ``sum_id``
        gradient : (3, n_columns) array: sum r x for r = s y a, and for the dual prediction, y = +1 and y = -1 apart
        hessian : (n_active, n_active) array, upper triangle, or None

        All three are workspace, overwritten by the next look. A look that was left by an exception (a Ctrl-C, or what
        ``between_slices`` raised) has moved some rows and others not: `start` before the next.
        """
        cdef pass_job *job = &self.job
        cdef Py_ssize_t block, n_blocks = job.n_blocks, a = job.block.n_active, size, part, n_parts
        cdef int n_threads = <int> min(self.n_threads, n_blocks)
        cdef double *scratch
        if direction is not None:
            check_length("direction", direction.shape[0], self.n_columns)
        self.prepare(with_hessian)
        n_parts = self.slices(with_hessian)
        scratch, size = &self.scratch[0], self.scratch_size
        job.direction = &direction[0] if direction is not None and direction.shape[0] > 0 else NULL
        job.at.step, job.at.line_width, job.at.width, job.at.floor = step, line_width, width, curvature_floor
        if direction is not None and self.begun:
            job.dual, job.dual_next = job.dual_next, job.dual        # the last look was the step taken
            self.fresh = False
        job.totals = not self.begun
        self.begun = True
        job.at.primal = self.forgets or self.fresh
        if not with_hessian:
            job.block.n_active = 0
        try:
            for part in range(n_parts):
                if part > 0:
                    self.listen()
                with nogil:
                    if n_threads == 1:
                        for block in range(n_blocks):
                            run_block(job, block, part, n_parts, scratch)
                    else:
                        for block in prange(n_blocks, schedule="dynamic", chunksize=1, num_threads=n_threads):
                            run_block(job, block, part, n_parts, scratch + threadid() * size)
        finally:
            job.block.n_active = a
        with nogil:
            fold(job.sums, n_blocks, N_SUMS)
            fold(job.gradient, n_blocks, 3 * job.n_columns)
            if job.hessian != NULL:
                fold(job.hessian, n_blocks, a * a)
        job.pending = step
        job.norms = NULL
        return self.sums_[0], self.gradient_[0], (self.hessian_[0] if job.hessian != NULL else None)

    cdef Py_ssize_t slices(self, bint with_hessian):
        # parts of a look; from the shape alone, as the order of addition depends on it
        cdef double a = self.job.block.n_active if with_hessian else 0
        cdef double work = <double> self.n_rows * (8.0 * self.n_columns + a * a)
        cdef Py_ssize_t tiles = max(1, self.n_rows // (self.job.n_blocks * self.job.tile_rows))
        return min(1 + <Py_ssize_t> (work / SLICE_FLOPS), tiles)

    cdef int listen(self) except -1:
        if self.between_slices is not None:
            self.between_slices()
        PyErr_CheckSignals()
        return 0

    def evaluate(self, const double[::1] w, bint squares=False):
        """sum s F(y <w, x>) at ``w``, F not smoothed, and sum s x^2 (n_columns,) or None; the rows stay as they are.

        From the rows as given, in float64: what a certificate may rest on, where sums followed step by step may not.
        """
        cdef pass_job *job = &self.job
        cdef Py_ssize_t block, n_blocks = job.n_blocks, size
        cdef int n_threads = <int> min(self.n_threads, n_blocks)
        cdef double *scratch
        cdef const double *at
        check_length("w", w.shape[0], self.n_columns)
        self.prepare(False)
        scratch, size, at = &self.scratch[0], self.scratch_size, &w[0] if self.n_columns > 0 else NULL
        with nogil:
            if n_threads == 1:
                for block in range(n_blocks):
                    evaluate_block(job, block, at, squares, scratch)
            else:
                for block in prange(n_blocks, schedule="static", num_threads=n_threads):
                    evaluate_block(job, block, at, squares, scratch + threadid() * size)
            fold(job.sums, n_blocks, N_SUMS)
            fold(job.gradient, n_blocks, job.n_columns)
        return self.sums_[0, HINGE], (self.gradient_.reshape(-1)[:self.n_columns].copy() if squares else None)

    def combine(self, const double[::1] c):
        """sum c_i x_i, a new (n_columns,) array."""
        cdef pass_job *job = &self.job
        cdef Py_ssize_t block, n_blocks = job.n_blocks, size
        cdef int n_threads = <int> min(self.n_threads, n_blocks)
        cdef double *scratch
        cdef const double *factors
        check_length("c", c.shape[0], self.n_rows)
        self.prepare(False)
        scratch, size, factors = &self.scratch[0], self.scratch_size, &c[0] if self.n_rows > 0 else NULL
        with nogil:
            if n_threads == 1:
                for block in range(n_blocks):
                    combine_block(job, block, factors, scratch)
            else:
                for block in prange(n_blocks, schedule="static", num_threads=n_threads):
                    combine_block(job, block, factors, scratch + threadid() * size)
            fold(job.gradient, n_blocks, job.n_columns)
        return self.gradient_.reshape(-1)[:self.n_columns].copy()

    def dual_variables(self):
        """a >= 0 that the last look predicted, a new (n_rows,) array."""
        cdef double[:, ::1] duals = self.duals
        return self.duals[0 if self.job.dual_next == &duals[0, 0] else 1].copy()

    def along(self, double step, double width):
        """(value, slope, curvature) in the step of sum s F(u - step change); no read of X."""
        cdef double[:, ::1] parts = self.sums_
        cdef pass_job *job = &self.job
        cdef Py_ssize_t block, n_blocks = job.n_blocks
        cdef int n_threads = <int> min(self.n_threads, n_blocks)
        job.sums = &parts[0, 0]
        with nogil:
            if n_threads == 1:
                for block in range(n_blocks):
                    along_block(job, block, step, width, job.sums + block * N_SUMS)
            else:
                for block in prange(n_blocks, schedule="static", num_threads=n_threads):
                    along_block(job, block, step, width, job.sums + block * N_SUMS)
            fold(job.sums, n_blocks, N_SUMS)
        return parts[0, 0], parts[0, 1], parts[0, 2]

    def hessian_product(self, const double[::1] x, double width, double curvature_floor=0):
        """sum s h x_i <x_i, x> at the deficits last looked at, and the share of the rows that have curvature.

        ``x`` None: the diagonal sum s h x_i^2 instead. A new (n_columns,) array.
        """
        cdef pass_job *job = &self.job
        cdef Py_ssize_t block, n_blocks = job.n_blocks, size
        cdef int n_threads = <int> min(self.n_threads, n_blocks)
        cdef double *scratch
        if x is not None:
            check_length("x", x.shape[0], self.n_columns)
        self.prepare(False)
        scratch, size = &self.scratch[0], self.scratch_size
        job.direction = &x[0] if x is not None and self.n_columns > 0 else NULL
        with nogil:
            if n_threads == 1:
                for block in range(n_blocks):
                    product_block(job, block, width, curvature_floor, scratch)
            else:
                for block in prange(n_blocks, schedule="dynamic", chunksize=1, num_threads=n_threads):
                    product_block(job, block, width, curvature_floor, scratch + threadid() * size)
            fold(job.gradient, n_blocks, job.n_columns)
        share = self.sums_[:, CURVED].sum() / max(1, self.n_rows) if self.job.source.X.starts != NULL else 1.0
        return self.gradient_.reshape(-1)[:self.n_columns].copy(), share

    def deficits(self):
        """u at the point last looked at, a new array: for tests and for the rows' own diagnostics."""
        return self.per_row[0] - self.job.pending * self.per_row[1]
