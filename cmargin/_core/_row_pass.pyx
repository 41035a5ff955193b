"""Row-block kernels of the smoothed hinge, dense and CSR.

(a) One pass reads X once. Tile by tile, while the rows are in cache: the change of every margin along a direction,
    the new deficits u, slopes, gradient, the predicted dual variables, and the curvature rows, whose sum of outer
    products is one ``dsyrk`` per packed tile (CSR rows with few active entries are added entry by entry).
(b) Where the rows lie and in which format is known to `_tiles` only; the sums are float64 whatever the data.
(c) Rows are cut into a number of blocks that depends on the shape alone. Each block sums for itself and the blocks
    are folded in order: the same bits for any number of threads.
(d) Rows whose curvature h is below a floor are left out of the curvature block, never of the gradient.
(e) The curvature of a row comes from its dual variable, which is carried from look to look (`dual_curvature` in
    ``_hinge_rows.h``), and from the primal point alone at the first look after a start.
"""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange, threadid
from libc.math cimport fabs
from libc.string cimport memset

from cmargin._core._hinge_rows cimport (
    dual_curvature, hinge_along, hinge_at, hinge_point, hinge_rows, hinge_slope, primal_curvature,
)
from cmargin._core._losses cimport catoni_rho, point
from cmargin._core._rows cimport Rows
from cmargin._core._simd cimport lane_sum
from cmargin._core._tiles cimport (
    flush_curvature, open_tile, row_tile, tile_add_curvature, tile_add_rows, tile_add_rows_3, tile_add_squares,
    tile_products, tile_row_squares, tile_weighted_products,
)

cdef Py_ssize_t MAX_BLOCKS = 32
cdef Py_ssize_t TILE_DOUBLES = 16384         # 128 KB: a tile and its packed rows stay in a second-level cache
cdef Py_ssize_t N_PARTS = 7                  # numbers per row that `hinge_rows` leaves for the sums
cdef double SLICE_FLOPS = 4e9                # of a look between two moments at which Python is heard: about 0.1 s


cdef inline point pursued(pass_job *job, double u) noexcept nogil:
    # margin pursuit and its derivatives in the deficit: F = s^2 rho((gamma - z) / s)          margin pursuit eq. (5)
    cdef point at = catoni_rho((u - 1 + job.level) / job.scale)
    at.value *= job.scale * job.scale
    at.slope *= job.scale
    return at


cdef inline double curvature_at(pass_job *job, Py_ssize_t i, double width) noexcept nogil:
    # h of row i where the last look was taken
    cdef double u = job.deficit[i] - job.pending * job.change[i]
    cdef hinge_point at
    if job.pursuit:
        return pursued(job, u).curvature
    at = hinge_at(u, width)
    return primal_curvature(at, width) if job.at.primal else dual_curvature(job.dual_next[i], at)


cdef void look_at_hinge_rows(pass_job *job, Py_ssize_t first, Py_ssize_t n, double *parts, double *r,
                             double *curvature, double *sums) noexcept nogil:
    # parts (N_PARTS, tile_rows), r and curvature (n,) are overwritten
    cdef Py_ssize_t ld = job.tile_rows
    hinge_rows(&job.at, n, job.code + first, job.deficit + first, job.change + first, job.dual + first,
               job.dual_next + first, parts, ld, r, curvature)
    if job.exact != NULL:
        treat_exactly(job, first, n, parts, curvature)
    sums[LINE_VALUE] += lane_sum(parts, n)
    sums[LINE_SLOPE] += lane_sum(parts + ld, n)
    sums[HINGE] += lane_sum(parts + 2 * ld, n)
    sums[VALUE] += lane_sum(parts + 3 * ld, n)
    sums[DUAL_POS] += lane_sum(parts + 4 * ld, n)
    sums[DUAL_NEG] -= lane_sum(parts + 5 * ld, n)
    sums[CURVATURE] += lane_sum(parts + 6 * ld, n)


cdef void treat_exactly(pass_job *job, Py_ssize_t first, Py_ssize_t n, double *parts, double *curvature) noexcept nogil:
    # rows of `exact`: no curvature, and their dual variable is their slope after the step, not the model's
    cdef Py_ssize_t ld = job.tile_rows, i
    cdef double u, a, width = job.at.line_width
    for i in range(n):
        if job.exact[first + i]:
            u = job.deficit[first + i] - job.at.step * job.change[first + i]
            a = hinge_slope(hinge_at(u, width))
            parts[4 * ld + i] = a * job.code[first + i] if job.code[first + i] >= 0 else 0
            parts[5 * ld + i] = a * job.code[first + i] if job.code[first + i] < 0 else 0
            curvature[i] = 0


cdef void look_at_pursued_rows(pass_job *job, Py_ssize_t first, Py_ssize_t n, double *r, double *curvature,
                               double *sums) noexcept nogil:
    # the same for margin pursuit: one width serves the line and the next step, and there is no dual
    cdef Py_ssize_t i
    cdef double s, v
    cdef point at
    for i in range(n):
        s = fabs(job.code[first + i])
        v = job.change[first + i]
        at = pursued(job, job.deficit[first + i] - job.at.step * v)
        sums[LINE_VALUE] += s * at.value
        sums[LINE_SLOPE] -= s * at.slope * v
        sums[CURVATURE] += s * at.curvature
        r[i] = job.code[first + i] * at.slope
        curvature[i] = s * at.curvature if at.curvature > job.at.floor else 0


cdef void run_block(pass_job *job, Py_ssize_t block, Py_ssize_t part, Py_ssize_t n_parts,
                    double *scratch) noexcept nogil:
    # tiles of one part of the block; its sums go on from the parts before
    cdef Py_ssize_t p = job.n_columns, a = job.block.n_active, tile_rows = job.tile_rows
    cdef Py_ssize_t lo = block * job.n_rows // job.n_blocks, hi = (block + 1) * job.n_rows // job.n_blocks
    cdef Py_ssize_t index, first, n, i, n_tiles = (hi - lo + tile_rows - 1) // tile_rows
    cdef double *curvature = scratch                      # (tile_rows,)
    cdef double *r = curvature + tile_rows                # (tile_rows,)
    cdef double *parts = r + tile_rows                    # (N_PARTS, tile_rows)
    cdef curvature_block sum_of_outer = job.block
    cdef row_tile tile
    cdef double *sums = job.sums + block * N_SUMS
    cdef double *gradient = job.gradient + block * 3 * p
    sum_of_outer.packed = parts + N_PARTS * tile_rows
    sum_of_outer.held = sum_of_outer.packed + job.block.room * a
    sum_of_outer.n_packed = 0
    if job.hessian != NULL:
        sum_of_outer.out = job.hessian + block * a * a
    if part == 0:
        memset(sums, 0, N_SUMS * sizeof(double))
        memset(gradient, 0, 3 * p * sizeof(double))
        if job.hessian != NULL:
            memset(sum_of_outer.out, 0, a * a * sizeof(double))
    for index in range(part * n_tiles // n_parts, (part + 1) * n_tiles // n_parts):
        first = lo + index * tile_rows
        n = min(tile_rows, hi - first)
        tile = open_tile(&job.source, first, n, sum_of_outer.held + 2 * a)
        if job.norms != NULL:
            tile_row_squares(&tile, job.norm_weight, job.norms + first)
        if job.direction != NULL:
            tile_products(&tile, job.direction, r)
            for i in range(n):
                job.deficit[first + i] -= job.pending * job.change[first + i]
                job.change[first + i] = r[i] if job.code[first + i] >= 0 else -r[i]
        if job.pursuit:
            look_at_pursued_rows(job, first, n, r, curvature, sums)
            tile_add_rows(&tile, r, gradient)
            if job.totals:
                tile_add_rows(&tile, job.code + first, gradient + p)
        else:
            look_at_hinge_rows(job, first, n, parts, r, curvature, sums)
            tile_add_rows_3(&tile, r, parts + 4 * tile_rows, parts + 5 * tile_rows, gradient)
        if job.hessian != NULL:
            sums[CURVED] += tile_add_curvature(&tile, curvature, &sum_of_outer)
    if job.hessian != NULL:
        flush_curvature(&sum_of_outer)


cdef void along_block(pass_job *job, Py_ssize_t block, double step, double width, double *out) noexcept nogil:
    # value, slope, curvature in the step t of sum s F(u - t change); out (3,)
    cdef Py_ssize_t lo = block * job.n_rows // job.n_blocks, hi = (block + 1) * job.n_rows // job.n_blocks, i
    cdef double s, v
    cdef point at
    if not job.pursuit:
        hinge_along(hi - lo, job.code + lo, job.deficit + lo, job.change + lo, step, width, out)
        return
    out[0] = out[1] = out[2] = 0
    for i in range(lo, hi):
        s = fabs(job.code[i])
        v = job.change[i]
        at = pursued(job, job.deficit[i] - step * v)
        out[0] += s * at.value
        out[1] -= s * at.slope * v
        out[2] += s * at.curvature * v * v


cdef void product_block(pass_job *job, Py_ssize_t block, double width, double floor, double *scratch) noexcept nogil:
    # gradient = sum s h <x, direction> x over the rows of one block, or the diagonal sum s h x^2 if there is no
    # direction; deficit and change stay as they are. Rows below the curvature floor are not summed.
    cdef Py_ssize_t tile_rows = job.tile_rows, p = job.n_columns
    cdef Py_ssize_t lo = block * job.n_rows // job.n_blocks, hi = (block + 1) * job.n_rows // job.n_blocks
    cdef Py_ssize_t index, first, n, i
    cdef double *weight = scratch                         # (tile_rows,)
    cdef double *product = weight + tile_rows             # (tile_rows,)
    cdef double *out = job.gradient + block * p
    cdef double *sums = job.sums + block * N_SUMS
    cdef row_tile tile
    cdef double h
    memset(out, 0, p * sizeof(double))
    sums[CURVED] = 0
    for index in range((hi - lo + tile_rows - 1) // tile_rows):
        first = lo + index * tile_rows
        n = min(tile_rows, hi - first)
        tile = open_tile(&job.source, first, n, product + tile_rows)
        for i in range(n):
            h = curvature_at(job, first + i, width)
            weight[i] = h * fabs(job.code[first + i]) if h > floor else 0
            sums[CURVED] += weight[i] > 0
        if job.direction == NULL:
            tile_add_squares(&tile, weight, out)
        else:
            tile_weighted_products(&tile, job.direction, product, weight)
            tile_add_rows(&tile, weight, out)


cdef void evaluate_block(pass_job *job, Py_ssize_t block, const double *w, bint squares,
                         double *scratch) noexcept nogil:
    # sum s max(0, 1 - y <w, x>) and, if asked for, sum s x^2: from the rows alone, whatever was looked at before
    cdef Py_ssize_t tile_rows = job.tile_rows, p = job.n_columns
    cdef Py_ssize_t lo = block * job.n_rows // job.n_blocks, hi = (block + 1) * job.n_rows // job.n_blocks
    cdef Py_ssize_t index, first, n, i
    cdef double *loss = scratch                           # (tile_rows,)
    cdef double *weight = loss + tile_rows                # (tile_rows,)
    cdef double *out = job.gradient + block * p
    cdef double *sums = job.sums + block * N_SUMS
    cdef row_tile tile
    memset(out, 0, p * sizeof(double))
    sums[HINGE] = 0
    for index in range((hi - lo + tile_rows - 1) // tile_rows):
        first = lo + index * tile_rows
        n = min(tile_rows, hi - first)
        tile = open_tile(&job.source, first, n, weight + tile_rows)
        tile_products(&tile, w, loss)
        for i in range(n):
            weight[i] = fabs(job.code[first + i])
            loss[i] = 1 - loss[i] if job.code[first + i] >= 0 else 1 + loss[i]
            # no weight, no loss, even where a margin overflowed; NaN stays
            loss[i] = 0 if loss[i] <= 0 or weight[i] == 0 else weight[i] * loss[i]
        sums[HINGE] += lane_sum(loss, n)
        if squares:
            tile_add_squares(&tile, weight, out)


cdef void combine_block(pass_job *job, Py_ssize_t block, const double *c, double *scratch) noexcept nogil:
    # gradient = sum c x over the rows of one block
    cdef Py_ssize_t tile_rows = job.tile_rows, p = job.n_columns
    cdef Py_ssize_t lo = block * job.n_rows // job.n_blocks, hi = (block + 1) * job.n_rows // job.n_blocks
    cdef Py_ssize_t index, first, n
    cdef double *out = job.gradient + block * p
    cdef row_tile tile
    memset(out, 0, p * sizeof(double))
    for index in range((hi - lo + tile_rows - 1) // tile_rows):
        first = lo + index * tile_rows
        n = min(tile_rows, hi - first)
        tile = open_tile(&job.source, first, n, scratch)
        tile_add_rows(&tile, c + first, out)


cdef void fold(double *blocks, Py_ssize_t n_blocks, Py_ssize_t size) noexcept nogil:
    # the first block becomes the sum of all, in block order
    cdef Py_ssize_t b, i
    for b in range(1, n_blocks):
        for i in range(size):
            blocks[i] += blocks[b * size + i]


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
        self.job.pursuit, self.job.level, self.job.scale = True, level, scale

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
        if self.duals is None and not job.pursuit and self.n_rows > 0:
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
        """sum s max(0, 1 - y <w, x>) at ``w``, and sum s x^2 (n_columns,) or None; the rows stay as they are.

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
        """0 <= a <= 1 that the last look predicted, a new (n_rows,) array."""
        return self.duals[0 if self.job.dual_next == self.first_dual() else 1].copy()

    cdef double *first_dual(self):
        cdef double[:, ::1] duals = self.duals
        return &duals[0, 0]

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
