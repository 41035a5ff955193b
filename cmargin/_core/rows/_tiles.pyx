"""Tiles of rows: products with them and sums of them, dense through ``_tiles.h`` and dsyrk, sparse here."""

import numpy as np

from libc.math cimport sqrt
from libc.stdint cimport int64_t
from libc.string cimport memset

from cmargin._core.linalg._blas cimport TRANS, floating, syrk
from cmargin._core.linalg._packed_syrk cimport packed_syrk_d, packed_syrk_f
from cmargin._core.rows._csr cimport csr_axpy, csr_axpy_weighted, csr_dot, csr_moments
from cmargin._core.rows._rows cimport Rows, rows_view
from cmargin._core.util._simd cimport (
    lane_sum, mixed_axpy_d, mixed_axpy_f, mixed_dot_d, mixed_dot_f, row_prefetch,
)


cdef extern from "_tiles.h" nogil:
    void tile_products_f(const float *data, Py_ssize_t stride, const Py_ssize_t *rows, Py_ssize_t n, Py_ssize_t m,
                         const double *w, double constant, double *out) noexcept
    void tile_products_d(const double *data, Py_ssize_t stride, const Py_ssize_t *rows, Py_ssize_t n, Py_ssize_t m,
                         const double *w, double constant, double *out) noexcept
    void tile_add_rows_f(const float *data, Py_ssize_t stride, const Py_ssize_t *rows, Py_ssize_t n, Py_ssize_t m,
                         Py_ssize_t ahead, const double *c, double *total) noexcept
    void tile_add_rows_d(const double *data, Py_ssize_t stride, const Py_ssize_t *rows, Py_ssize_t n, Py_ssize_t m,
                         Py_ssize_t ahead, const double *c, double *total) noexcept
    void tile_add_rows_3_f(const float *data, Py_ssize_t stride, const Py_ssize_t *rows, Py_ssize_t n, Py_ssize_t m,
                           Py_ssize_t ahead, const double *a, const double *b, const double *c, double *sum_a,
                           double *sum_b, double *sum_c) noexcept
    void tile_add_rows_3_d(const double *data, Py_ssize_t stride, const Py_ssize_t *rows, Py_ssize_t n, Py_ssize_t m,
                           Py_ssize_t ahead, const double *a, const double *b, const double *c, double *sum_a,
                           double *sum_b, double *sum_c) noexcept
    void tile_add_squares_f(const float *data, Py_ssize_t stride, const Py_ssize_t *rows, Py_ssize_t n, Py_ssize_t m,
                            const double *c, double *total) noexcept
    void tile_add_squares_d(const double *data, Py_ssize_t stride, const Py_ssize_t *rows, Py_ssize_t n, Py_ssize_t m,
                            const double *c, double *total) noexcept
    void tile_row_squares_f(const float *data, Py_ssize_t stride, const Py_ssize_t *rows, Py_ssize_t n, Py_ssize_t m,
                            const double *w, double *out) noexcept
    void tile_row_squares_d(const double *data, Py_ssize_t stride, const Py_ssize_t *rows, Py_ssize_t n, Py_ssize_t m,
                            const double *w, double *out) noexcept
    void row_scaled_f(const float *x, double scale, Py_ssize_t m, double *out) noexcept
    void row_scaled_d(const double *x, double scale, Py_ssize_t m, double *out) noexcept
    void row_scaled_to_single_f(const float *x, double scale, Py_ssize_t m, float *out) noexcept
    void row_scaled_to_single_d(const double *x, double scale, Py_ssize_t m, float *out) noexcept


cdef Py_ssize_t SECOND_LEVEL = 1 << 20       # bytes of all rows that such a cache keeps


cdef row_source source_of(Rows X):
    cdef row_source source
    source.X, source.single = X.view, X.dtype == np.float32
    source.intercept, source.rows = False, NULL
    return source


cdef inline double value_of(const row_source *source, int64_t entry) noexcept nogil:
    return (<const float *> source.X.values)[entry] if source.single else (<const double *> source.X.values)[entry]


cdef inline int64_t column_of(const row_source *source, int64_t entry) noexcept nogil:
    return source.X.columns[entry] if source.X.columns != NULL else source.X.columns_64[entry]


cdef inline Py_ssize_t row_of(const row_source *source, Py_ssize_t i) noexcept nogil:
    return i if source.rows == NULL else source.rows[i]


cdef row_tile open_tile(const row_source *source, Py_ssize_t first, Py_ssize_t n, double *scratch) noexcept nogil:
    cdef row_tile tile
    cdef Py_ssize_t m = source.X.n_features, size = sizeof(float) if source.single else sizeof(double), i, j, at
    tile.source, tile.first, tile.n = source, first, n
    tile.single, tile.stride = source.single, source.X.row_stride
    tile.data = source.X.values
    tile.rows, tile.ahead = NULL, 0
    if source.X.starts != NULL:
        return tile
    if source.X.column_stride == 1 or m == 1:        # NumPy leaves the stride of a single column free
        if source.rows != NULL:
            tile.rows = source.rows + first
        else:
            tile.data = <const void *> (<const char *> source.X.values + first * source.X.row_stride * size)
            if source.X.n_rows * m * size > SECOND_LEVEL:
                tile.ahead = n * tile.stride
        return tile
    tile.data, tile.single, tile.stride = scratch, False, m
    for j in range(m):                               # columns outside: F order is read along its columns
        for i in range(n):
            at = row_of(source, first + i) * source.X.row_stride + j * source.X.column_stride
            scratch[i * m + j] = value_of(source, at)
    return tile


cdef inline const float *single_row(const row_source *source, Py_ssize_t row) noexcept nogil:
    return <const float *> source.X.values + row * source.X.row_stride


cdef inline const double *double_row(const row_source *source, Py_ssize_t row) noexcept nogil:
    return <const double *> source.X.values + row * source.X.row_stride


cdef double row_product(const row_source *source, Py_ssize_t row, const double *w) noexcept nogil:
    cdef const rows_view *X = &source.X
    cdef int64_t start
    cdef Py_ssize_t n = X.n_features
    if X.starts == NULL:
        if source.single:
            return mixed_dot_f(single_row(source, row), w, n)
        return mixed_dot_d(double_row(source, row), w, n)
    start = X.starts[row]
    n = X.starts[row + 1] - start
    if source.single:
        if X.columns != NULL:
            return csr_dot(<const float *> X.values + start, X.columns + start, n, w)
        return csr_dot(<const float *> X.values + start, X.columns_64 + start, n, w)
    if X.columns != NULL:
        return csr_dot(<const double *> X.values + start, X.columns + start, n, w)
    return csr_dot(<const double *> X.values + start, X.columns_64 + start, n, w)


cdef void add_row(double scale, const row_source *source, Py_ssize_t row, double *total) noexcept nogil:
    cdef const rows_view *X = &source.X
    cdef int64_t start
    cdef Py_ssize_t n = X.n_features
    if X.starts == NULL:
        if source.single:
            mixed_axpy_f(scale, single_row(source, row), total, n)
        else:
            mixed_axpy_d(scale, double_row(source, row), total, n)
        return
    start = X.starts[row]
    n = X.starts[row + 1] - start
    if source.single:
        if X.columns != NULL:
            csr_axpy(scale, <const float *> X.values + start, X.columns + start, n, total)
        else:
            csr_axpy(scale, <const float *> X.values + start, X.columns_64 + start, n, total)
    elif X.columns != NULL:
        csr_axpy(scale, <const double *> X.values + start, X.columns + start, n, total)
    else:
        csr_axpy(scale, <const double *> X.values + start, X.columns_64 + start, n, total)


cdef void row_moments(const row_source *source, Py_ssize_t row, const double *weight, double *first,
                      double *second) noexcept nogil:
    cdef const rows_view *X = &source.X
    cdef int64_t start = X.starts[row]
    cdef Py_ssize_t n = X.starts[row + 1] - start
    if source.single:
        if X.columns != NULL:
            csr_moments(<const float *> X.values + start, X.columns + start, n, weight, first, second)
        else:
            csr_moments(<const float *> X.values + start, X.columns_64 + start, n, weight, first, second)
    elif X.columns != NULL:
        csr_moments(<const double *> X.values + start, X.columns + start, n, weight, first, second)
    else:
        csr_moments(<const double *> X.values + start, X.columns_64 + start, n, weight, first, second)


cdef void add_weighted_row(double scale, const row_source *source, Py_ssize_t row, const double *weight,
                           double *total) noexcept nogil:
    cdef const rows_view *X = &source.X
    cdef int64_t start = X.starts[row]
    cdef Py_ssize_t n = X.starts[row + 1] - start
    if source.single:
        if X.columns != NULL:
            csr_axpy_weighted(scale, <const float *> X.values + start, X.columns + start, n, weight, total)
        else:
            csr_axpy_weighted(scale, <const float *> X.values + start, X.columns_64 + start, n, weight, total)
    elif X.columns != NULL:
        csr_axpy_weighted(scale, <const double *> X.values + start, X.columns + start, n, weight, total)
    else:
        csr_axpy_weighted(scale, <const double *> X.values + start, X.columns_64 + start, n, weight, total)


cdef void fetch_row(const row_source *source, Py_ssize_t row) noexcept nogil:
    cdef Py_ssize_t n = source.X.n_features, start = row * source.X.row_stride
    if source.X.starts != NULL:
        start = source.X.starts[row]
        n = min(64, source.X.starts[row + 1] - start)
    if source.single:
        row_prefetch(<const float *> source.X.values + start, n)
    else:
        row_prefetch(<const double *> source.X.values + start, n)


cdef void tile_products(const row_tile *tile, const double *w, double *out) noexcept nogil:
    cdef const row_source *source = tile.source
    cdef Py_ssize_t m = source.X.n_features, i
    cdef double constant = w[m] if source.intercept else 0
    if source.X.starts != NULL:
        for i in range(tile.n):
            out[i] = constant + row_product(source, row_of(source, tile.first + i), w)
    elif tile.single:
        tile_products_f(<const float *> tile.data, tile.stride, tile.rows, tile.n, m, w, constant, out)
    else:
        tile_products_d(<const double *> tile.data, tile.stride, tile.rows, tile.n, m, w, constant, out)


cdef void tile_weighted_products(const row_tile *tile, const double *w, double *scratch, double *weight) noexcept nogil:
    cdef const row_source *source = tile.source
    cdef double constant = w[source.X.n_features] if source.intercept else 0
    cdef Py_ssize_t i
    if source.X.starts == NULL:
        tile_products(tile, w, scratch)
        for i in range(tile.n):
            weight[i] *= scratch[i]
        return
    for i in range(tile.n):
        if weight[i] != 0:
            weight[i] *= constant + row_product(source, row_of(source, tile.first + i), w)


cdef void tile_add_rows(const row_tile *tile, const double *c, double *total) noexcept nogil:
    cdef const row_source *source = tile.source
    cdef Py_ssize_t m = source.X.n_features, i
    if source.X.starts != NULL:
        for i in range(tile.n):
            if c[i] != 0:
                add_row(c[i], source, row_of(source, tile.first + i), total)
    elif tile.single:
        tile_add_rows_f(<const float *> tile.data, tile.stride, tile.rows, tile.n, m, tile.ahead, c, total)
    else:
        tile_add_rows_d(<const double *> tile.data, tile.stride, tile.rows, tile.n, m, tile.ahead, c, total)
    if source.intercept:
        total[m] += lane_sum(c, tile.n)


cdef void tile_add_rows_3(const row_tile *tile, const double *a, const double *b, const double *c,
                          double *totals) noexcept nogil:
    cdef const row_source *source = tile.source
    cdef Py_ssize_t m = source.X.n_features, p = m + source.intercept, i, row
    cdef double *sum_a = totals
    cdef double *sum_b = totals + p
    cdef double *sum_c = totals + 2 * p
    if source.X.starts != NULL:
        for i in range(tile.n):              # the row is in cache from the first sum on
            row = row_of(source, tile.first + i)
            if a[i] != 0:
                add_row(a[i], source, row, sum_a)
            if b[i] != 0:
                add_row(b[i], source, row, sum_b)
            if c[i] != 0:
                add_row(c[i], source, row, sum_c)
    elif tile.single:
        tile_add_rows_3_f(<const float *> tile.data, tile.stride, tile.rows, tile.n, m, tile.ahead, a, b, c, sum_a,
                          sum_b, sum_c)
    else:
        tile_add_rows_3_d(<const double *> tile.data, tile.stride, tile.rows, tile.n, m, tile.ahead, a, b, c, sum_a,
                          sum_b, sum_c)
    if source.intercept:
        sum_a[m] += lane_sum(a, tile.n)
        sum_b[m] += lane_sum(b, tile.n)
        sum_c[m] += lane_sum(c, tile.n)


cdef void tile_row_squares(const row_tile *tile, const double *w, double *out) noexcept nogil:
    cdef const row_source *source = tile.source
    cdef Py_ssize_t m = source.X.n_features, i, row
    cdef int64_t k
    if source.X.starts != NULL:
        for i in range(tile.n):
            row = row_of(source, tile.first + i)
            out[i] = 0
            for k in range(source.X.starts[row], source.X.starts[row + 1]):
                out[i] += w[column_of(source, k)] * value_of(source, k) * value_of(source, k)
    elif tile.single:
        tile_row_squares_f(<const float *> tile.data, tile.stride, tile.rows, tile.n, m, w, out)
    else:
        tile_row_squares_d(<const double *> tile.data, tile.stride, tile.rows, tile.n, m, w, out)


cdef void tile_add_squares(const row_tile *tile, const double *c, double *total) noexcept nogil:
    cdef const row_source *source = tile.source
    cdef Py_ssize_t m = source.X.n_features, i, row
    cdef int64_t k
    if source.X.starts != NULL:
        for i in range(tile.n):
            if c[i] == 0:
                continue
            row = row_of(source, tile.first + i)
            for k in range(source.X.starts[row], source.X.starts[row + 1]):
                total[column_of(source, k)] += c[i] * value_of(source, k) * value_of(source, k)
    elif tile.single:
        tile_add_squares_f(<const float *> tile.data, tile.stride, tile.rows, tile.n, m, c, total)
    else:
        tile_add_squares_d(<const double *> tile.data, tile.stride, tile.rows, tile.n, m, c, total)
    if source.intercept:
        total[m] += lane_sum(c, tile.n)


# ---------------------------------------------------------------- curvature

cdef Py_ssize_t SCATTERED = 16               # entries of dsyrk for one that is scattered
cdef Py_ssize_t SINGLE_ROWS = 512            # of a sum in single precision, before it is added to one in double


cdef inline double *at_cache_line(double *memory) noexcept nogil:
    # the next one at most 7 numbers on
    return memory + (-<Py_ssize_t> memory % 64 + 64) % 64 // 8


cdef double *begin_curvature(curvature_block *block, double *out, bint clears, double *scratch) noexcept nogil:
    cdef Py_ssize_t a = block.n_active, i
    block.out, block.packed = out, at_cache_line(scratch)
    block.held = block.packed + block.room * packed_width(a)
    block.partial = <float *> (block.held + 2 * a)
    block.n_packed = block.n_partial = 0
    scratch = block.held + 2 * a + partial_size(block)
    if block.single:
        block.room *= 2                                   # floats where doubles would be
    if clears:
        for i in range(a):
            memset(out + i * (a + 1), 0, (a - i) * sizeof(double))
    return scratch


cdef inline Py_ssize_t active_entries(const row_source *source, Py_ssize_t row, double root,
                                      const curvature_block *block, double *values, Py_ssize_t *places,
                                      bint *in_order) noexcept nogil:
    # root times the entries in active columns, and their places in the block; `in_order`: ascending, none twice
    cdef Py_ssize_t at, count = 0, last = -1, room = block.n_active
    cdef int64_t k
    in_order[0] = True
    for k in range(source.X.starts[row], source.X.starts[row + 1]):
        at = block.position[column_of(source, k)]
        if at >= 0 and count < room:
            in_order[0] = in_order[0] and at > last
            values[count], places[count], last = root * value_of(source, k), at, at
            count += 1
    if source.intercept and block.position[source.X.n_features] >= 0 and count < room:
        values[count], places[count] = root, block.position[source.X.n_features]
        count += 1
    return count


cdef bint add_sparse_row(const row_source *source, Py_ssize_t row, double root, curvature_block *block,
                         double *packed_row) noexcept nogil:
    # root^2 x x' on the active columns: entry by entry where that is less work than a row of dsyrk (answer 0),
    # else scattered into packed_row (answer 1)
    cdef Py_ssize_t i, j, a = block.n_active, count
    cdef bint in_order
    cdef double *values = block.held
    cdef Py_ssize_t *places = <Py_ssize_t *> (values + a)
    cdef double *out
    count = active_entries(source, row, root, block, values, places, &in_order)
    if SCATTERED * count * count > a * a:
        memset(packed_row, 0, packed_width(a) * sizeof(double))
        for i in range(count):
            packed_row[places[i]] += values[i]
        return True
    for i in range(count):
        out = block.out + places[i] * a
        if in_order:
            for j in range(i, count):
                out[places[j]] += values[i] * values[j]
        else:
            for j in range(count):
                if places[j] >= places[i]:
                    out[places[j]] += values[i] * values[j]
    return False


cdef inline double tile_value(const row_tile *tile, Py_ssize_t at) noexcept nogil:
    return (<const float *> tile.data)[at] if tile.single else (<const double *> tile.data)[at]


cdef void pack_dense_row(const row_tile *tile, Py_ssize_t i, double root, const curvature_block *block,
                         floating *packed_row) noexcept nogil:
    cdef Py_ssize_t m = tile.source.X.n_features, n = block.n_active, j, column
    cdef Py_ssize_t at = (i if tile.rows == NULL else tile.rows[i]) * tile.stride
    if block.active != NULL:
        for j in range(n):
            column = block.active[j]
            packed_row[j] = <floating> (root * (tile_value(tile, at + column) if column < m else 1.0))
    else:
        if floating is float and tile.single:
            row_scaled_to_single_f(<const float *> tile.data + at, root, m, packed_row)
        elif floating is float:
            row_scaled_to_single_d(<const double *> tile.data + at, root, m, packed_row)
        elif tile.single:
            row_scaled_f(<const float *> tile.data + at, root, m, packed_row)
        else:
            row_scaled_d(<const double *> tile.data + at, root, m, packed_row)
        if tile.source.intercept:
            packed_row[m] = <floating> root
    for j in range(n, packed_width(n)):
        packed_row[j] = 0


cdef Py_ssize_t tile_add_curvature(const row_tile *tile, const double *c, curvature_block *block) noexcept nogil:
    cdef Py_ssize_t i, at, taken = 0, width = packed_width(block.n_active)
    for i in range(tile.n):
        if not c[i] > 0:
            continue
        taken += 1
        at = block.n_packed * width
        if tile.source.X.starts != NULL:
            block.n_packed += add_sparse_row(tile.source, row_of(tile.source, tile.first + i), sqrt(c[i]), block,
                                             block.packed + at)
        elif block.single:
            pack_dense_row(tile, i, sqrt(c[i]), block, <float *> block.packed + at)
            block.n_packed += 1
        else:
            pack_dense_row(tile, i, sqrt(c[i]), block, block.packed + at)
            block.n_packed += 1
        if block.n_packed == block.room:
            flush_curvature(block)
    return taken


cdef void flush_curvature(curvature_block *block) noexcept nogil:
    # out or partial += packed' packed;  (n_active, n_active) = (n_active, n_packed) (n_packed, n_active)
    cdef Py_ssize_t n = block.n_active, k = block.n_packed, width = packed_width(n)
    block.n_packed = 0
    if n == 0 or k == 0:
        return
    if block.single:
        if block.n_partial == 0:
            memset(block.partial, 0, n * n * sizeof(float))
        if n > block.widest or not packed_syrk_f(block.lanes, n, k, <float *> block.packed, width, block.partial, n):
            syrk(TRANS, n, k, 1.0, <float *> block.packed, width, 1.0, block.partial, n)
        block.n_partial += k
        if block.n_partial >= SINGLE_ROWS:
            widen_partial(block)
    elif n > block.widest or not packed_syrk_d(block.lanes, n, k, block.packed, width, block.out, n):
        syrk(TRANS, n, k, 1.0, block.packed, width, 1.0, block.out, n)


cdef void widen_partial(curvature_block *block) noexcept nogil:
    # out += partial, which begins anew
    cdef Py_ssize_t n = block.n_active, i, j
    for i in range(n):
        for j in range(i, n):
            block.out[i * n + j] += block.partial[i * n + j]
    block.n_partial = 0


cdef void finish_curvature(curvature_block *block) noexcept nogil:
    flush_curvature(block)
    if block.n_partial > 0:
        widen_partial(block)
