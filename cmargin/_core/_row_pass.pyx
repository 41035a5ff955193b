"""Row-block kernels of the smoothed hinge, dense and CSR.

(a) One pass reads X once. Tile by tile, while the rows are in cache: the change of every margin along a direction,
    the new deficits u, slopes, gradient, the predicted dual variables, and the curvature rows, whose sum of outer
    products is one ``dsyrk`` per packed tile (CSR rows with few active entries are added entry by entry).
(b) Layout and dtype are known to `load_tile` and to the CSR readers only. C-ordered float64 rows are read where
    they lie; others pass through a tile of float64 scratch, so sums are float64 whatever the data.
(c) Rows are cut into a number of blocks that depends on the shape alone. Each block sums for itself and the blocks
    are folded in order: the same bits for any number of threads.
(d) Rows whose curvature h is below ``curvature_floor`` are left out of the curvature block, never of the gradient.
"""

import numpy as np

from cython.parallel cimport prange, threadid
from libc.math cimport fabs, sqrt
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy, memset

from cmargin._core._blas cimport NO_TRANS, TRANS, gemm, gemv, syrk
from cmargin._core._losses cimport catoni_rho, point

cdef Py_ssize_t MAX_BLOCKS = 32
cdef Py_ssize_t TILE_DOUBLES = 16384         # 128 KB: a tile and its packed rows stay in a second-level cache


cdef inline double value_at(row_source *source, Py_ssize_t k) noexcept nogil:
    return (<const float *> source.data)[k] if source.single else (<const double *> source.data)[k]


cdef inline Py_ssize_t column_at(row_source *source, Py_ssize_t k) noexcept nogil:
    return (<const int64_t *> source.indices)[k] if source.wide_index else (<const int32_t *> source.indices)[k]


cdef inline Py_ssize_t row_at(row_source *source, Py_ssize_t i) noexcept nogil:
    return i if source.rows == NULL else source.rows[i]


cdef const double *load_tile(row_source *source, Py_ssize_t first, Py_ssize_t n, double *scratch,
                             Py_ssize_t *ld) noexcept nogil:
    # n dense rows as float64, C order: in place where they are so already, else through scratch (n, n_features)
    cdef Py_ssize_t m = source.n_features, i, j, at
    cdef const double *as_double = <const double *> source.data
    cdef const float *as_single = <const float *> source.data
    if not source.single and source.col_stride == 1 and source.row_stride >= m and source.rows == NULL:
        ld[0] = source.row_stride
        return as_double + first * source.row_stride
    ld[0] = m
    if source.col_stride == 1:
        for i in range(n):
            at = row_at(source, first + i) * source.row_stride
            if source.single:
                for j in range(m):
                    scratch[i * m + j] = as_single[at + j]
            else:
                memcpy(scratch + i * m, as_double + at, m * sizeof(double))
        return scratch
    for j in range(m):                       # columns outside: F order is read along its columns
        for i in range(n):
            at = row_at(source, first + i) * source.row_stride + j * source.col_stride
            scratch[i * m + j] = as_single[at] if source.single else as_double[at]
    return scratch


cdef inline point smoothed_positive(double u, double root, double width) noexcept nogil:
    # F(u) = (u + root) / 2, a(u) = F', h(u) = F'' with root = sqrt(width^2 + u^2); no cancellation for u << 0
    cdef double gap = width * width / (root + fabs(u))
    cdef point at
    if u > 0:
        gap = root + u
    at.value = gap / 2
    at.slope = gap / (2 * root)
    at.curvature = width * width / (2 * root * root * root)
    return at


cdef inline point point_of(pass_job *job, double u, double width) noexcept nogil:
    # the loss of the pass and its derivatives in the deficit u = 1 - z
    cdef point at
    if not job.pursuit:
        return smoothed_positive(u, sqrt(width * width + u * u), width)
    at = catoni_rho((u - 1 + job.level) / job.scale)    # F = s^2 rho((gamma - z) / s)         margin pursuit eq. (5)
    at.value *= job.scale * job.scale
    at.slope *= job.scale
    return at


cdef inline double clip01(double a) noexcept nogil:
    a = 0 if a < 0 else a
    return 1 if a > 1 else a


cdef void row_products(pass_job *job, const double *tile, Py_ssize_t ld, const double *x, Py_ssize_t first,
                       Py_ssize_t n, double *out) noexcept nogil:
    # out = X x + x_intercept;  (n) = (n, n_features) (n_features)
    cdef row_source *source = job.source
    cdef Py_ssize_t m = source.n_features, i, k, row
    cdef double constant = x[m] if job.intercept else 0, total
    if source.sparse:
        for i in range(n):
            row = row_at(source, first + i)
            total = 0
            for k in range(source.indptr[row], source.indptr[row + 1]):
                total = total + value_at(source, k) * x[column_at(source, k)]
            out[i] = total + constant
        return
    for i in range(n):
        out[i] = constant
    if m > 0:
        gemv(NO_TRANS, n, m, 1.0, tile, ld, x, 1.0, out)


cdef void add_gradient(pass_job *job, const double *tile, Py_ssize_t ld, const double *r, Py_ssize_t r_ld,
                       Py_ssize_t k_sums, Py_ssize_t first, Py_ssize_t n, double *gradient) noexcept nogil:
    # gradient += R X;  (k_sums, n_columns) = (k_sums, n) (n, n_columns), the column of ones last
    cdef row_source *source = job.source
    cdef Py_ssize_t m = source.n_features, p = job.n_columns, i, j, k, q, row
    cdef double total, x
    if source.sparse:
        for i in range(n):
            row = row_at(source, first + i)
            for k in range(source.indptr[row], source.indptr[row + 1]):
                x = value_at(source, k)
                j = column_at(source, k)
                for q in range(k_sums):
                    gradient[q * p + j] += r[q * r_ld + i] * x
    elif m > 0:
        gemm(NO_TRANS, NO_TRANS, k_sums, m, n, 1.0, r, r_ld, tile, ld, 1.0, gradient, p)
    if job.intercept:
        for q in range(k_sums):
            total = 0
            for i in range(n):
                total = total + r[q * r_ld + i]
            gradient[q * p + m] += total


cdef void flush(pass_job *job, double *packed, Py_ssize_t n, double *hessian) noexcept nogil:
    # hessian += packed' packed;  (n_active, n_active) = (n_active, n) (n, n_active)
    if n > 0 and job.n_active > 0:
        syrk(TRANS, job.n_active, n, 1.0, packed, job.n_active, 1.0, hessian, job.n_active)


cdef bint add_sparse_row(pass_job *job, Py_ssize_t row, double root, double *packed_row, double *held,
                         double *hessian) noexcept nogil:
    # root^2 x x' on the active columns: entry by entry where that is less work than a row of dsyrk (answer 0),
    # else scattered into packed_row (answer 1). held: scratch of 2 n_active
    cdef row_source *source = job.source
    cdef Py_ssize_t k, i, j, lo, hi, at, count = 0, a = job.n_active
    cdef double x
    for k in range(source.indptr[row], source.indptr[row + 1]):
        at = job.position[column_at(source, k)]
        if at >= 0 and count < a:
            held[2 * count] = <double> at
            held[2 * count + 1] = root * value_at(source, k)
            count += 1
    if job.intercept and job.position[source.n_features] >= 0 and count < a:
        held[2 * count] = <double> job.position[source.n_features]
        held[2 * count + 1] = root
        count += 1
    if 16 * count * count > a * a:           # an entry of dsyrk costs about a sixteenth of a scattered one
        memset(packed_row, 0, a * sizeof(double))
        for i in range(count):
            packed_row[<Py_ssize_t> held[2 * i]] += held[2 * i + 1]
        return True
    for i in range(count):
        lo = <Py_ssize_t> held[2 * i]
        x = held[2 * i + 1]
        for j in range(count):
            hi = <Py_ssize_t> held[2 * j]
            if hi >= lo:
                hessian[lo * a + hi] += x * held[2 * j + 1]
    return False


cdef void pack_dense_row(pass_job *job, const double *x, double root, double *packed_row) noexcept nogil:
    cdef Py_ssize_t m = job.source.n_features, j
    if job.active == NULL:
        for j in range(m):
            packed_row[j] = root * x[j]
        if job.intercept:
            packed_row[m] = root
        return
    for j in range(job.n_active):
        packed_row[j] = root * (x[job.active[j]] if job.active[j] < m else 1.0)


cdef void look_at_rows(pass_job *job, Py_ssize_t first, Py_ssize_t n, double *r, Py_ssize_t r_ld, double *curvature,
                       double *sums) noexcept nogil:
    # values, slopes, dual prediction and curvature of n rows; r (3, r_ld), curvature (n,) are overwritten
    cdef Py_ssize_t i
    cdef double s, y, u0, u1, v, a_hat
    cdef double line_value = 0, line_slope = 0, hinge = 0, value = 0, dual_pos = 0, dual_neg = 0, kink = 0
    cdef double w0 = job.line_width, w1 = job.width, c0 = job.old_curvature_width, c1 = job.curvature_width
    cdef point before, line, now
    for i in range(n):
        s = fabs(job.code[first + i])
        y = 1.0 if job.code[first + i] >= 0 else -1.0
        v = job.change[first + i]
        u0 = job.deficit[first + i]
        u1 = u0 - job.step * v
        before = smoothed_positive(u0, sqrt(w0 * w0 + u0 * u0), w0)
        before.curvature = smoothed_positive(u0, sqrt(c0 * c0 + u0 * u0), c0).curvature
        line = smoothed_positive(u1, sqrt(w0 * w0 + u1 * u1), w0)
        now = smoothed_positive(u1, sqrt(w1 * w1 + u1 * u1), w1)
        now.curvature = smoothed_positive(u1, sqrt(c1 * c1 + u1 * u1), c1).curvature
        a_hat = s * clip01(before.slope - before.curvature * v * job.newton_scale)
        if job.exact != NULL and job.exact[first + i]:
            a_hat = s * line.slope
        line_value += s * line.value
        line_slope -= s * line.slope * v
        hinge += s * (u1 if u1 > 0 else 0.0)
        value += s * now.value
        r[i] = s * y * now.slope
        r[r_ld + i] = a_hat if y > 0 else 0.0
        r[2 * r_ld + i] = -a_hat if y < 0 else 0.0
        dual_pos += r[r_ld + i]
        dual_neg -= r[2 * r_ld + i]
        kink += s * now.curvature
        curvature[i] = s * now.curvature if now.curvature > job.curvature_floor else 0
    sums[LINE_VALUE] += line_value
    sums[LINE_SLOPE] += line_slope
    sums[HINGE] += hinge
    sums[VALUE] += value
    sums[DUAL_POS] += dual_pos
    sums[DUAL_NEG] += dual_neg
    sums[CURVATURE] += kink


cdef void row_norms(pass_job *job, const double *tile, Py_ssize_t ld, Py_ssize_t first, Py_ssize_t n) noexcept nogil:
    # norms_i = sum_j weight_j x_ij^2 over the features
    cdef row_source *source = job.source
    cdef Py_ssize_t i, j, row
    cdef double total
    for i in range(n):
        total = 0
        if source.sparse:
            row = row_at(source, first + i)
            for j in range(source.indptr[row], source.indptr[row + 1]):
                total = total + job.norm_weight[column_at(source, j)] * value_at(source, j) * value_at(source, j)
        else:
            for j in range(source.n_features):
                total = total + job.norm_weight[j] * tile[i * ld + j] * tile[i * ld + j]
        job.norms[first + i] = total


cdef void look_at_pursued_rows(pass_job *job, Py_ssize_t first, Py_ssize_t n, double *r, Py_ssize_t r_ld,
                               double *curvature, double *sums) noexcept nogil:
    # `look_at_rows` for margin pursuit: one width serves the line and the next step, and there is no dual
    cdef Py_ssize_t i
    cdef double s, y, v
    cdef point at
    for i in range(n):
        s = fabs(job.code[first + i])
        y = 1.0 if job.code[first + i] >= 0 else -1.0
        v = job.change[first + i]
        at = point_of(job, job.deficit[first + i] - job.step * v, 0)
        sums[LINE_VALUE] += s * at.value
        sums[LINE_SLOPE] -= s * at.slope * v
        sums[CURVATURE] += s * at.curvature
        r[i] = s * y * at.slope
        r[r_ld + i] = r[2 * r_ld + i] = 0
        curvature[i] = s * at.curvature if at.curvature > job.curvature_floor else 0


cdef void run_block(pass_job *job, Py_ssize_t block, double *scratch) noexcept nogil:
    cdef row_source *source = job.source
    cdef Py_ssize_t m = source.n_features, p = job.n_columns, a = job.n_active, tile_rows = job.tile_rows
    cdef Py_ssize_t lo = block * job.n_rows // job.n_blocks, hi = (block + 1) * job.n_rows // job.n_blocks
    cdef Py_ssize_t index, first, n, i, ld = m, packed = 0
    cdef double *products = scratch                       # (tile_rows,)
    cdef double *curvature = products + tile_rows         # (tile_rows,)
    cdef double *r = curvature + tile_rows                # (3, tile_rows)
    cdef double *pack = r + 3 * tile_rows                 # (pack_rows, n_active)
    cdef double *held = pack + job.pack_rows * a          # (2 n_active,)
    cdef double *tile_scratch = held + 2 * a              # (tile_rows, n_features)
    cdef const double *tile = NULL
    cdef double *sums = job.sums + block * N_SUMS
    cdef double *gradient = job.gradient + block * 3 * p
    cdef double *hessian = NULL
    memset(sums, 0, N_SUMS * sizeof(double))
    memset(gradient, 0, 3 * p * sizeof(double))
    if job.hessian != NULL:
        hessian = job.hessian + block * a * a
        memset(hessian, 0, a * a * sizeof(double))
    for index in range((hi - lo + tile_rows - 1) // tile_rows):
        first = lo + index * tile_rows
        n = min(tile_rows, hi - first)
        if not source.sparse:
            tile = load_tile(source, first, n, tile_scratch, &ld)
        if job.norms != NULL:
            row_norms(job, tile, ld, first, n)
        if job.direction != NULL:
            row_products(job, tile, ld, job.direction, first, n, products)
            for i in range(n):
                job.deficit[first + i] -= job.pending * job.change[first + i]
                job.change[first + i] = products[i] if job.code[first + i] >= 0 else -products[i]
        if job.pursuit:
            look_at_pursued_rows(job, first, n, r, tile_rows, curvature, sums)
        else:
            look_at_rows(job, first, n, r, tile_rows, curvature, sums)
        add_gradient(job, tile, ld, r, tile_rows, 3, first, n, gradient)
        if hessian == NULL:
            continue
        for i in range(n):
            if curvature[i] <= 0:
                continue
            sums[CURVED] += 1
            if source.sparse:
                packed += add_sparse_row(job, row_at(source, first + i), sqrt(curvature[i]), pack + packed * a, held,
                                         hessian)
            else:
                pack_dense_row(job, tile + i * ld, sqrt(curvature[i]), pack + packed * a)
                packed += 1
            if packed == job.pack_rows:
                flush(job, pack, packed, hessian)
                packed = 0
    if hessian != NULL:
        flush(job, pack, packed, hessian)


cdef void along_block(pass_job *job, Py_ssize_t block, double *out) noexcept nogil:
    # value, slope, curvature in the step t of sum s F(u - t change); out (3,)
    cdef Py_ssize_t lo = block * job.n_rows // job.n_blocks, hi = (block + 1) * job.n_rows // job.n_blocks, i
    cdef double value = 0, slope = 0, curvature = 0, s, v, u, w = job.line_width
    cdef point at
    for i in range(lo, hi):
        s = fabs(job.code[i])
        v = job.change[i]
        u = job.deficit[i] - job.step * v
        at = point_of(job, u, w)
        value += s * at.value
        slope -= s * at.slope * v
        curvature += s * at.curvature * v * v
    out[0] = value
    out[1] = slope
    out[2] = curvature


cdef void product_block(pass_job *job, Py_ssize_t block, double *scratch) noexcept nogil:
    # gradient = sum s h(u1) <x, direction> x over the rows of one block, or its diagonal sum s h x^2 if there is no
    # direction; deficit and change stay as they are. CSR rows below the curvature floor are not read.
    cdef row_source *source = job.source
    cdef Py_ssize_t tile_rows = job.tile_rows, p = job.n_columns, m = source.n_features
    cdef Py_ssize_t lo = block * job.n_rows // job.n_blocks, hi = (block + 1) * job.n_rows // job.n_blocks
    cdef Py_ssize_t index, first, n, i, j, k, row, ld = m
    cdef double *products = scratch
    cdef double *tile_scratch = products + 5 * tile_rows + (job.pack_rows + 2) * job.n_active
    cdef const double *tile = NULL
    cdef double *out = job.gradient + block * p
    cdef double *sums = job.sums + block * N_SUMS
    cdef double u, h, total, constant, w = job.width
    memset(out, 0, p * sizeof(double))
    sums[CURVED] = 0
    for index in range((hi - lo + tile_rows - 1) // tile_rows):
        first = lo + index * tile_rows
        n = min(tile_rows, hi - first)
        if not source.sparse:
            tile = load_tile(source, first, n, tile_scratch, &ld)
            if job.direction != NULL:
                row_products(job, tile, ld, job.direction, first, n, products)
        for i in range(n):
            u = job.deficit[first + i] - job.step * job.change[first + i]
            h = point_of(job, u, w).curvature
            if h <= job.curvature_floor or job.code[first + i] == 0:
                products[i] = 0
                continue
            h = h * fabs(job.code[first + i])
            sums[CURVED] += 1
            if not source.sparse and job.direction != NULL:
                products[i] *= h
            elif not source.sparse:
                for j in range(m):
                    out[j] += h * tile[i * ld + j] * tile[i * ld + j]
                if job.intercept:
                    out[m] += h
            else:
                row = row_at(source, first + i)
                constant = 1.0
                if job.direction != NULL:
                    constant = job.direction[m] if job.intercept else 0.0
                    total = constant
                    for k in range(source.indptr[row], source.indptr[row + 1]):
                        total = total + value_at(source, k) * job.direction[column_at(source, k)]
                    for k in range(source.indptr[row], source.indptr[row + 1]):
                        out[column_at(source, k)] += h * total * value_at(source, k)
                    constant = total
                else:
                    for k in range(source.indptr[row], source.indptr[row + 1]):
                        out[column_at(source, k)] += h * value_at(source, k) * value_at(source, k)
                if job.intercept:
                    out[m] += h * constant
        if not source.sparse and job.direction != NULL:
            add_gradient(job, tile, ld, products, tile_rows, 1, first, n, out)


cdef void fold(double *blocks, Py_ssize_t n_blocks, Py_ssize_t size) noexcept nogil:
    # the first block becomes the sum of all, in block order
    cdef Py_ssize_t b, i
    for b in range(1, n_blocks):
        for i in range(size):
            blocks[i] += blocks[b * size + i]


cdef class RowBlocks:
    """Rows in memory, with the per-row state of one binary problem; see `cmargin.passes.base` for the contract.

    Parameters
    ----------
    data : dense (n, m) array of any strides, or the ``data`` of a CSR matrix; float32 or float64
    code : (n_rows,) float64
        s_i y_i: sample weight, with the sign of the class. Rows of weight 0 count as positive and add nothing.
    n_features : int
    intercept : bool
        Append a column of ones.
    n_threads : int
    indices, indptr : CSR structure, or None; indices int32 or int64, indptr intp
    rows : (n_rows,) intp or None
        The subset of rows to read, ascending.
    """

    cdef row_source source
    cdef pass_job job
    cdef tuple keep                          # owners of the memory that the pointers see
    cdef object norms_
    cdef object per_row, position_, scratch_, gradient_, hessian_, sums_
    cdef double[::1] scratch
    cdef Py_ssize_t scratch_size, hessian_order
    cdef readonly int n_threads
    cdef readonly Py_ssize_t n_rows, n_columns, n_features

    def __init__(self, data, const double[::1] code, Py_ssize_t n_features, bint intercept, int n_threads,
                 indices=None, const Py_ssize_t[::1] indptr=None, const Py_ssize_t[::1] rows=None):
        cdef Py_ssize_t n = code.shape[0], room
        cdef double[:, ::1] per_row
        cdef pass_job *job = &self.job
        self.per_row = np.empty((2, n))
        self.keep = (data, code, indices, indptr, rows, None, None)
        self.n_rows, self.n_features = n, n_features
        self.n_columns = n_features + intercept
        self.n_threads = n_threads
        if data.dtype == np.float32:
            self.source.single = True
        elif data.dtype != np.float64:
            raise ValueError(f"float32 or float64 expected, got {data.dtype}")
        self.source.data = <const char *> <Py_ssize_t> data.ctypes.data
        self.source.n_features = n_features
        self.source.sparse = indices is not None
        if self.source.sparse:
            self.source.indices = <const char *> <Py_ssize_t> indices.ctypes.data
            self.source.wide_index = indices.dtype.itemsize == 8
            self.source.indptr = &indptr[0]
        else:
            self.source.row_stride = data.strides[0] // data.itemsize
            self.source.col_stride = data.strides[1] // data.itemsize
            if n_features == 1:
                self.source.col_stride = 1   # NumPy leaves the stride of a single column free
        self.source.rows = &rows[0] if rows is not None and n > 0 else NULL
        job.source = &self.source
        job.intercept = intercept
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
        job.pack_rows = max(1, min(min(512, max(64, 2 * TILE_DOUBLES // room)), n))
        self.sums_ = np.zeros((job.n_blocks, N_SUMS))
        self.gradient_ = np.zeros((job.n_blocks, 3, self.n_columns))
        self.hessian_order = -1
        self.position_ = None
        self.set_active(None)
        self.start()

    @property
    def n_blocks(self):
        return self.job.n_blocks

    def start(self):
        """Forget every step: w = 0, so that u = 1 everywhere."""
        self.per_row[0] = 1.0
        self.per_row[1] = 0.0
        self.job.pending = 0
        self.job.curvature_width = 0

    def pursue(self, double level, double scale):
        """From here on the loss is that of margin pursuit, gamma = ``level``, s = ``scale`` > 0; widths mean nothing.

        Of the sums of a look, line value and slope and the curvature are then filled in, and there is no dual.
        """
        self.job.pursuit, self.job.level, self.job.scale = True, level, scale

    def set_active(self, active):
        """Columns of the curvature block: an ascending intp array, or None for all."""
        cdef Py_ssize_t order = self.n_columns if active is None else active.shape[0]
        cdef const Py_ssize_t[::1] active_view
        cdef Py_ssize_t[::1] position
        self.keep = self.keep[:5] + (active,) + self.keep[6:]
        self.job.active = NULL
        if active is not None and order > 0:
            active_view = active
            self.job.active = &active_view[0]
        if self.source.sparse:
            if active is None:
                position_ = np.arange(self.n_columns)
            else:
                position_ = np.full(self.n_columns, -1, np.intp)
                position_[active] = np.arange(order)
            self.position_ = position_
            position = position_
            if self.n_columns > 0:
                self.job.position = &position[0]
        self.job.n_active = order

    def set_exact(self, const unsigned char[::1] mask):
        """Rows (uint8 mask) whose dual prediction is their slope after the step, not the model's; None: no row."""
        self.keep = self.keep[:6] + (mask,) + self.keep[7:]
        self.job.exact = &mask[0] if mask is not None and mask.shape[0] > 0 else NULL

    def measure_rows(self, const double[::1] weight):
        """Let the next look also sum weight_j x_ij^2 for every row; the array that it will fill."""
        cdef double[::1] norms
        self.norms_ = np.zeros(self.n_rows)
        norms = self.norms_
        self.keep = self.keep[:7] + (weight,)
        if self.n_rows > 0 and weight.shape[0] > 0:
            self.job.norm_weight = &weight[0]
            self.job.norms = &norms[0]
        return self.norms_

    cdef int prepare(self, bint with_hessian) except -1:
        # workspace for the present curvature block; one part per thread, a cache line apart
        cdef pass_job *job = &self.job
        cdef Py_ssize_t a = job.n_active if with_hessian else 0
        cdef Py_ssize_t tile = 0 if self.source.sparse else job.tile_rows * self.n_features
        cdef Py_ssize_t size = 5 * job.tile_rows + (job.pack_rows + 2) * max(a, 0) + tile + 8
        cdef double[:, ::1] sums = self.sums_
        cdef double[:, :, ::1] gradient = self.gradient_, hessian
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

    def look(self, const double[::1] direction, double step, double newton_scale, double line_width, double width,
             double curvature_floor, bint with_hessian=True, double curvature_width=0):
        """One read of the rows at u - step (y X direction); None keeps the direction of the last look.

        Returns
        -------
        sums : (N_SUMS,) array, in the order of ``sum_id``
        gradient : (3, n_columns) array: sum r x for r = s y a, and for the dual prediction, y = +1 and y = -1 apart
        hessian : (n_active, n_active) array, upper triangle, or None

        All three are workspace, overwritten by the next look.
        """
        cdef pass_job *job = &self.job
        cdef Py_ssize_t block, n_blocks = job.n_blocks, a
        cdef int n_threads = <int> min(self.n_threads, n_blocks)
        cdef double *scratch
        cdef Py_ssize_t size
        self.prepare(with_hessian)
        scratch, size = &self.scratch[0], self.scratch_size
        job.direction = &direction[0] if direction is not None and direction.shape[0] > 0 else NULL
        job.step, job.newton_scale = step, newton_scale
        job.line_width, job.width, job.curvature_floor = line_width, width, curvature_floor
        if direction is not None:
            job.old_curvature_width = job.curvature_width if job.curvature_width > 0 else line_width
        job.curvature_width = curvature_width if curvature_width > 0 else width
        a = job.n_active
        if not with_hessian:
            job.n_active = 0
        with nogil:
            if n_threads == 1:
                for block in range(n_blocks):
                    run_block(job, block, scratch)
            else:
                for block in prange(n_blocks, schedule="dynamic", chunksize=1, num_threads=n_threads):
                    run_block(job, block, scratch + threadid() * size)
            job.n_active = a
            fold(job.sums, n_blocks, N_SUMS)
            fold(job.gradient, n_blocks, 3 * job.n_columns)
            if job.hessian != NULL:
                fold(job.hessian, n_blocks, a * a)
        job.pending = step
        job.norms = NULL
        return self.sums_[0], self.gradient_[0], (self.hessian_[0] if job.hessian != NULL else None)

    def along(self, double step, double width):
        """(value, slope, curvature) in the step of sum s F(u - step change); no read of X."""
        cdef double[:, ::1] parts = self.sums_
        cdef pass_job *job = &self.job
        cdef Py_ssize_t block, n_blocks = job.n_blocks
        cdef int n_threads = <int> min(self.n_threads, n_blocks)
        job.sums = &parts[0, 0]
        job.step, job.line_width = step, width
        with nogil:
            if n_threads == 1:
                for block in range(n_blocks):
                    along_block(job, block, job.sums + block * N_SUMS)
            else:
                for block in prange(n_blocks, schedule="static", num_threads=n_threads):
                    along_block(job, block, job.sums + block * N_SUMS)
            fold(job.sums, n_blocks, N_SUMS)
        return parts[0, 0], parts[0, 1], parts[0, 2]

    def hessian_product(self, const double[::1] x, double width, double curvature_floor=0):
        """sum s h x_i <x_i, x> at the deficits last looked at, and the share of the rows that had to be read.

        ``x`` None: the diagonal sum s h x_i^2 instead. A new (n_columns,) array.
        """
        cdef pass_job *job = &self.job
        cdef Py_ssize_t block, n_blocks = job.n_blocks, size
        cdef int n_threads = <int> min(self.n_threads, n_blocks)
        cdef double *scratch
        cdef double[:, ::1] parts = self.sums_
        self.prepare(False)
        scratch, size = &self.scratch[0], self.scratch_size
        cdef Py_ssize_t a = job.n_active
        job.n_active = 0
        job.sums = &parts[0, 0]
        job.direction = &x[0] if x is not None else NULL
        job.step, job.width, job.curvature_floor = job.pending, width, curvature_floor
        with nogil:
            if n_threads == 1:
                for block in range(n_blocks):
                    product_block(job, block, scratch)
            else:
                for block in prange(n_blocks, schedule="dynamic", chunksize=1, num_threads=n_threads):
                    product_block(job, block, scratch + threadid() * size)
            fold(job.gradient, n_blocks, job.n_columns)
        job.n_active = a
        curved = self.sums_[:, CURVED].sum()
        share = curved / max(1, self.n_rows) if self.source.sparse else 1.0
        return self.gradient_.reshape(-1)[:self.n_columns].copy(), share

    def settle(self, double step):
        """The point is now ``step`` along the direction last looked at; no read of X."""
        self.job.pending = step

    def deficits(self):
        """u at the point last looked at, a new array: for tests and for the rows' own diagnostics."""
        return self.per_row[0] - self.job.pending * self.per_row[1]
