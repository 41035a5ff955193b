"""Tiles of rows: products with them and sums of them, dense through ``_tiles.h`` and dsyrk, sparse here."""

from libc.math cimport sqrt
from libc.stdint cimport int64_t
from libc.string cimport memset

from cmargin._core.linalg._blas cimport TRANS, floating, syrk
from cmargin._core.linalg._packed_syrk cimport packed_syrk_d, packed_syrk_f
from cmargin._core.rows._csr cimport (
    csr_axpy, csr_axpy_squares, csr_axpy_weighted, csr_dot, csr_moments, csr_placed, csr_prefetch, csr_products,
    csr_sums, csr_sums_3, sparse_row, sparse_rows,
)
from cmargin._core.rows._rows cimport (
    FLOAT64, Rows, from_entry, lies_by_columns, rows_view, storage_t, storage_width, stored_number,
)
from cmargin._core.util._simd cimport lane_sum


cdef extern from "_tiles.h" nogil:
    void tile_products_of(storage_t storage, const void *data, Py_ssize_t stride, const Py_ssize_t *rows, Py_ssize_t n,
                          Py_ssize_t m, const double *w, double constant, double *out) noexcept
    void tile_add_rows_of(storage_t storage, const void *data, Py_ssize_t stride, const Py_ssize_t *rows, Py_ssize_t n,
                          Py_ssize_t m, Py_ssize_t ahead, const double *c, double *total) noexcept
    void tile_add_rows_3_of(storage_t storage, const void *data, Py_ssize_t stride, const Py_ssize_t *rows,
                            Py_ssize_t n, Py_ssize_t m, Py_ssize_t ahead, const double *a, const double *b,
                            const double *c, double *sum_a, double *sum_b, double *sum_c) noexcept
    void tile_add_squares_of(storage_t storage, const void *data, Py_ssize_t stride, const Py_ssize_t *rows,
                             Py_ssize_t n, Py_ssize_t m, const double *c, double *total) noexcept
    void tile_row_squares_of(storage_t storage, const void *data, Py_ssize_t stride, const Py_ssize_t *rows,
                             Py_ssize_t n, Py_ssize_t m, const double *w, double *out) noexcept
    void tile_by_rows_of(storage_t storage, const void *data, Py_ssize_t stride, Py_ssize_t column_stride, Py_ssize_t n,
                         Py_ssize_t m, double *out) noexcept
    void row_scaled_of(storage_t storage, const void *x, double scale, Py_ssize_t m, double *out) noexcept
    void row_scaled_to_single_of(storage_t storage, const void *x, double scale, Py_ssize_t m, float *out) noexcept
    void row_moments_of(storage_t storage, const void *x, const double *weight, Py_ssize_t m, double *first,
                        double *second) noexcept
    void row_axpy_weighted_of(storage_t storage, const void *x, double scale, const double *weight, Py_ssize_t m,
                              double *total) noexcept
    double row_dot_of(storage_t storage, const void *x, const double *w, Py_ssize_t m) noexcept
    void row_axpy_of(storage_t storage, double scale, const void *x, double *total, Py_ssize_t m) noexcept
    void row_prefetch_of(storage_t storage, const void *x, Py_ssize_t m) noexcept


cdef extern from "_scattered.h" nogil:
    void add_outer(const double *values, const Py_ssize_t *places, Py_ssize_t n, Py_ssize_t order,
                   double *out) noexcept
    void add_outer_of_equals(double product, const Py_ssize_t *places, Py_ssize_t n, Py_ssize_t order,
                             double *out) noexcept


cdef Py_ssize_t SECOND_LEVEL = 1 << 20       # bytes of all rows that such a cache keeps


cdef row_source source_of(Rows X):
    cdef row_source source
    source.X, source.intercept, source.rows = X.view, False, NULL
    return source


cdef inline Py_ssize_t row_of(const row_source *source, Py_ssize_t i) noexcept nogil:
    return i if source.rows == NULL else source.rows[i]


cdef row_tile open_tile(const row_source *source, Py_ssize_t first, Py_ssize_t n, double *scratch) noexcept nogil:
    cdef row_tile tile
    cdef Py_ssize_t m = source.X.n_features
    cdef bint listed = source.rows != NULL
    tile.source, tile.first, tile.n = source, first, n
    tile.storage, tile.stride = source.X.storage, source.X.row_stride
    tile.data = source.X.values
    tile.rows, tile.ahead = NULL, 0
    if source.X.starts != NULL:
        return tile
    if not lies_by_columns(&source.X):
        if listed:
            tile.rows = source.rows + first
        else:
            tile.data = from_entry(&source.X, first * source.X.row_stride)
            if source.X.n_rows * m * storage_width(source.X.storage) > SECOND_LEVEL:
                tile.ahead = n * tile.stride
        return tile
    # never of a list: `RowBlocks` gathers such rows
    tile_by_rows_of(tile.storage, from_entry(&source.X, first * tile.stride), tile.stride, source.X.column_stride, n, m,
                    scratch)
    tile.data, tile.storage, tile.stride = scratch, FLOAT64, m
    return tile


cdef inline const void *dense_row(const rows_view *X, Py_ssize_t row) noexcept nogil:
    return from_entry(X, row * X.row_stride)


cdef double row_product(const row_source *source, Py_ssize_t row, const double *w) noexcept nogil:
    cdef const rows_view *X = &source.X
    if X.starts != NULL:
        return csr_dot(sparse_row(X, row), w)
    return row_dot_of(X.storage, dense_row(X, row), w, X.n_features)


cdef void add_row(double scale, const row_source *source, Py_ssize_t row, double *total) noexcept nogil:
    cdef const rows_view *X = &source.X
    if X.starts != NULL:
        csr_axpy(sparse_row(X, row), scale, total)
    else:
        row_axpy_of(X.storage, scale, dense_row(X, row), total, X.n_features)


cdef void row_moments(const row_source *source, Py_ssize_t row, const double *weight, double *first,
                      double *second) noexcept nogil:
    cdef const rows_view *X = &source.X
    if X.starts != NULL:
        csr_moments(sparse_row(X, row), weight, first, second)
    else:
        row_moments_of(X.storage, dense_row(X, row), weight, X.n_features, first, second)


cdef void add_weighted_row(double scale, const row_source *source, Py_ssize_t row, const double *weight,
                           double *total) noexcept nogil:
    cdef const rows_view *X = &source.X
    if X.starts != NULL:
        csr_axpy_weighted(sparse_row(X, row), scale, weight, total)
    else:
        row_axpy_weighted_of(X.storage, dense_row(X, row), scale, weight, X.n_features, total)


cdef void fetch_row(const row_source *source, Py_ssize_t row) noexcept nogil:
    cdef const rows_view *X = &source.X
    if X.starts != NULL:
        csr_prefetch(sparse_row(X, row))
    else:
        row_prefetch_of(X.storage, dense_row(X, row), X.n_features)


# CSR: row i of a tile begins at tile_starts[i], or at tile_starts[tile_rows[i]] where rows are chosen

cdef inline const int64_t *tile_starts(const row_tile *tile) noexcept nogil:
    return tile.source.X.starts + (tile.first if tile.source.rows == NULL else 0)


cdef inline const Py_ssize_t *tile_rows(const row_tile *tile) noexcept nogil:
    return NULL if tile.source.rows == NULL else tile.source.rows + tile.first


cdef void tile_products(const row_tile *tile, const double *w, double *out) noexcept nogil:
    cdef const row_source *source = tile.source
    cdef Py_ssize_t m = source.X.n_features
    cdef double constant = w[m] if source.intercept else 0
    if source.X.starts != NULL:
        csr_products(sparse_rows(&source.X), tile_starts(tile), tile_rows(tile), tile.n, w, constant, out)
    else:
        tile_products_of(tile.storage, tile.data, tile.stride, tile.rows, tile.n, m, w, constant, out)


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
    cdef Py_ssize_t m = source.X.n_features
    if source.X.starts != NULL:
        csr_sums(sparse_rows(&source.X), tile_starts(tile), tile_rows(tile), tile.n, c, total)
    else:
        tile_add_rows_of(tile.storage, tile.data, tile.stride, tile.rows, tile.n, m, tile.ahead, c, total)
    if source.intercept:
        total[m] += lane_sum(c, tile.n)


cdef void tile_add_rows_3(const row_tile *tile, const double *a, const double *b, const double *c,
                          double *totals) noexcept nogil:
    cdef const row_source *source = tile.source
    cdef Py_ssize_t m = source.X.n_features, p = m + source.intercept
    cdef double *sum_a = totals
    cdef double *sum_b = totals + p
    cdef double *sum_c = totals + 2 * p
    if source.X.starts != NULL:
        csr_sums_3(sparse_rows(&source.X), tile_starts(tile), tile_rows(tile), tile.n, a, b, c, sum_a, sum_b, sum_c)
    else:
        tile_add_rows_3_of(tile.storage, tile.data, tile.stride, tile.rows, tile.n, m, tile.ahead, a, b, c, sum_a,
                           sum_b, sum_c)
    if source.intercept:
        sum_a[m] += lane_sum(a, tile.n)
        sum_b[m] += lane_sum(b, tile.n)
        sum_c[m] += lane_sum(c, tile.n)


cdef void tile_row_squares(const row_tile *tile, const double *w, double *out) noexcept nogil:
    cdef const row_source *source = tile.source
    cdef Py_ssize_t m = source.X.n_features, i
    cdef double first
    if source.X.starts != NULL:
        for i in range(tile.n):
            csr_moments(sparse_row(&source.X, row_of(source, tile.first + i)), w, &first, &out[i])
    else:
        tile_row_squares_of(tile.storage, tile.data, tile.stride, tile.rows, tile.n, m, w, out)


cdef void tile_add_squares(const row_tile *tile, const double *c, double *total) noexcept nogil:
    cdef const row_source *source = tile.source
    cdef Py_ssize_t m = source.X.n_features, i
    if source.X.starts != NULL:
        for i in range(tile.n):
            if c[i] != 0:
                csr_axpy_squares(sparse_row(&source.X, row_of(source, tile.first + i)), c[i], total)
    else:
        tile_add_squares_of(tile.storage, tile.data, tile.stride, tile.rows, tile.n, m, c, total)
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


cdef bint add_sparse_row(const row_source *source, Py_ssize_t row, double root, curvature_block *block,
                         double *packed_row) noexcept nogil:
    # root^2 x x' on the active columns: entry by entry where that is less work than a row of dsyrk (answer 0),
    # else scattered into packed_row (answer 1)
    cdef Py_ssize_t i, j, a = block.n_active, count
    cdef bint in_order
    cdef double *values = block.held
    cdef Py_ssize_t *places = <Py_ssize_t *> (values + a)
    cdef double *out
    count = csr_placed(sparse_row(&source.X, row), root, block.position, a, values, places, &in_order)
    if source.intercept and block.position[source.X.n_features] >= 0 and count < a:
        values[count], places[count] = root, block.position[source.X.n_features]
        count += 1
    if SCATTERED * count * count > a * a:
        memset(packed_row, 0, packed_width(a) * sizeof(double))
        for i in range(count):
            packed_row[places[i]] += values[i]
        return True
    if in_order and source.X.ones:
        add_outer_of_equals(root * root, places, count, a, block.out)
    elif in_order:
        add_outer(values, places, count, a, block.out)
    else:
        for i in range(count):
            out = block.out + places[i] * a
            for j in range(count):
                if places[j] >= places[i]:
                    out[places[j]] += values[i] * values[j]
    return False


cdef void pack_dense_row(const row_tile *tile, Py_ssize_t i, double root, const curvature_block *block,
                         floating *packed_row) noexcept nogil:
    cdef Py_ssize_t m = tile.source.X.n_features, n = block.n_active, j, column
    cdef Py_ssize_t at = (i if tile.rows == NULL else tile.rows[i]) * tile.stride
    cdef const void *x = <const void *> (<const char *> tile.data + at * storage_width(tile.storage))
    if block.active != NULL:
        for j in range(n):
            column = block.active[j]
            packed_row[j] = <floating> (root * (stored_number(tile.storage, x, column) if column < m else 1.0))
    else:
        if floating is float:
            row_scaled_to_single_of(tile.storage, x, root, m, packed_row)
        else:
            row_scaled_of(tile.storage, x, root, m, packed_row)
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
