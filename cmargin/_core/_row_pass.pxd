"""One read of the rows of a data matrix: everything a Newton step on the smoothed hinge asks of them."""

cdef enum:                       # sum_id: what one block of rows adds up, in this order
    LINE_VALUE = 0               # sum s F(u1), width of the line search
    LINE_SLOPE = 1               # its derivative in the step
    HINGE = 2                    # sum s max(0, u1)
    VALUE = 3                    # sum s F(u1), width of the next Newton step
    DUAL_POS = 4                 # sum s a_hat over y = +1
    DUAL_NEG = 5                 # sum s a_hat over y = -1
    CURVED = 6                   # number of rows that entered the curvature block
    CURVATURE = 7                # sum s h over all rows
    N_SUMS = 8                   # a cache line


cdef struct row_source:          # where a row lies; nothing is copied
    const char *data             # values, float32 or float64
    bint single                  # float32
    bint sparse                  # CSR
    Py_ssize_t row_stride        # dense: in elements
    Py_ssize_t col_stride
    const char *indices          # CSR: int32 or int64
    bint wide_index
    const Py_ssize_t *indptr
    const Py_ssize_t *rows       # subset of rows, NULL for all of them
    Py_ssize_t n_features


cdef struct pass_job:
    row_source *source
    bint intercept               # a column of ones follows the features
    bint pursuit                 # margin pursuit instead of the smoothed hinge; widths then mean nothing
    double level                 # gamma and s of margin pursuit
    double scale
    const double *code           # IN    (n_rows,) s_i y_i
    double *deficit              # INOUT (n_rows,) u = 1 - y <w, x>
    double *change               # INOUT (n_rows,) y <e, x>
    const double *direction      # IN    (n_columns,) e, or NULL: keep `change`
    double pending               # step along the old change that deficit still lacks
    double step                  # the pass looks at u1 = u - step change
    double newton_scale          # change * newton_scale belongs to the full Newton step
    double line_width
    double width
    double curvature_floor
    double curvature_width
    double old_curvature_width
    const unsigned char *exact   # IN    (n_rows,) rows whose dual prediction is their slope after the step, or NULL
    const double *norm_weight    # IN    (n_columns,), read with `norms`
    double *norms                # OUT   (n_rows,) sum of weight x^2, or NULL
    const Py_ssize_t *active     # IN    (n_active,) ascending columns of the curvature block, NULL for all
    const Py_ssize_t *position   # IN    (n_columns,) their place in the block or -1; CSR only
    Py_ssize_t n_active
    Py_ssize_t n_rows
    Py_ssize_t n_columns
    Py_ssize_t n_blocks
    Py_ssize_t tile_rows
    Py_ssize_t pack_rows
    double *sums                 # OUT   (n_blocks, N_SUMS)
    double *gradient             # OUT   (n_blocks, 3, n_columns) sum r x for r = s y a1, s a_hat [y=1], -s a_hat [y=-1]
    double *hessian              # OUT   (n_blocks, n_active, n_active) upper triangle, or NULL
