"""Tiles of rows, dense or CSR, float32 or float64, whole or a subset: what a pass does with a few hundred rows at once.

Products and sums are float64 whatever the data. Dense loops are in ``_tiles.h``, sparse ones in ``_tiles.pyx``; the
caller does not see the difference.
"""

from cmargin._core.linalg._packed_syrk cimport PACKED_PAD
from cmargin._core.rows._rows cimport Rows, rows_view, storage_t


cdef struct row_source:          # rows of a matrix, or the chosen ones among them; nothing is copied
    rows_view X
    bint intercept               # a column of ones follows the features
    const Py_ssize_t *rows       # the chosen rows, ascending; NULL for all of them


cdef struct row_tile:
    const row_source *source
    Py_ssize_t first             # place of its first row, in the subset where there is one
    Py_ssize_t n
    const void *data             # dense: row i starts at data + (rows ? rows[i] : i) * stride, its columns side by side
    storage_t storage
    Py_ssize_t stride
    const Py_ssize_t *rows
    Py_ssize_t ahead             # numbers from a row to its like in the next tile, which sums ask for; 0: they do not


cdef struct curvature_block:     # sum of outer products over the active columns
    const Py_ssize_t *active     # IN    (n_active,) ascending columns, NULL for all
    const Py_ssize_t *position   # IN    (n_columns,) their place in the block or -1; CSR only
    Py_ssize_t n_active
    int lanes                    # of the processor, and columns up to which they do the sums: `packed_syrk_lanes`,
    Py_ssize_t widest            # `packed_syrk_widest`
    bint single                  # summed in single precision, SINGLE_ROWS rows at a time; dense rows only
    Py_ssize_t room              # rows that fit into `packed`
    Py_ssize_t n_packed          # rows that wait there
    double *packed               # INOUT (room, packed_width(n_active)), a row padded with zeros; single: floats
    Py_ssize_t n_partial         # rows in ``partial``
    float *partial               # INOUT (n_active, n_active) their sum, upper triangle; single only
    double *held                 # scratch (2 n_active,); CSR only
    double *out                  # INOUT (n_active, n_active), upper triangle


# all rows, without an intercept; X must live as long
cdef row_source source_of(Rows X)

# <w, x_row>, total += scale x_row, and a request for a row that will be read soon, in whatever order rows are wanted;
# the columns of a dense row lie side by side
cdef double row_product(const row_source *source, Py_ssize_t row, const double *w) noexcept nogil
cdef void add_row(double scale, const row_source *source, Py_ssize_t row, double *total) noexcept nogil
cdef void fetch_row(const row_source *source, Py_ssize_t row) noexcept nogil

# of a row, as above: the sums of weight x and of weight x^2, and total += scale weight x
cdef void row_moments(const row_source *source, Py_ssize_t row, const double *weight, double *first,
                      double *second) noexcept nogil
cdef void add_weighted_row(double scale, const row_source *source, Py_ssize_t row, const double *weight,
                           double *total) noexcept nogil

# scratch (n, n_features) float64 is used where the columns of X do not lie side by side
cdef row_tile open_tile(const row_source *source, Py_ssize_t first, Py_ssize_t n, double *scratch) noexcept nogil

# out = X w, the column of ones included;  (n,) = (n, n_columns) (n_columns,)
cdef void tile_products(const row_tile *tile, const double *w, double *out) noexcept nogil

# weight_i *= <x_i, w>; sparse rows of weight 0 are not read. scratch (n,)
cdef void tile_weighted_products(const row_tile *tile, const double *w, double *scratch, double *weight) noexcept nogil

# total += X' c;  (n_columns,) = (n_columns, n) (n,)
cdef void tile_add_rows(const row_tile *tile, const double *c, double *total) noexcept nogil

# the same for three coefficients in one reading;  totals (3, n_columns)
cdef void tile_add_rows_3(const row_tile *tile, const double *a, const double *b, const double *c,
                          double *totals) noexcept nogil

# out_i = sum_j w_j x_ij^2 over the features;  (n,) = (n, n_features) (n_features,)
cdef void tile_row_squares(const row_tile *tile, const double *w, double *out) noexcept nogil

# total_j += sum_i c_i x_ij^2
cdef void tile_add_squares(const row_tile *tile, const double *c, double *total) noexcept nogil

# of a row of `packed`, as `packed_syrk_d` wants it
cdef inline Py_ssize_t packed_width(Py_ssize_t n_active) noexcept nogil:
    return (n_active + PACKED_PAD - 1) // PACKED_PAD * PACKED_PAD


# doubles of `partial`
cdef inline Py_ssize_t partial_size(const curvature_block *block) noexcept nogil:
    return (block.n_active * block.n_active + 1) // 2 if block.single else 0


# doubles of scratch that `begin_curvature` wants, two cache lines more: packed rows begin at one
cdef inline Py_ssize_t curvature_scratch(const curvature_block *block) noexcept nogil:
    return block.room * packed_width(block.n_active) + 2 * block.n_active + partial_size(block) + 16


# out = 0, if it is to be cleared, and memory for the rows that wait; what is left of the scratch
cdef double *begin_curvature(curvature_block *block, double *out, bint clears, double *scratch) noexcept nogil

# out += sum_i c_i x_i x_i' over rows with c_i > 0; the last rows wait for `finish_curvature`. Rows taken
cdef Py_ssize_t tile_add_curvature(const row_tile *tile, const double *c, curvature_block *block) noexcept nogil
cdef void finish_curvature(curvature_block *block) noexcept nogil
