"""One read of the rows of a data matrix: everything a Newton step on the smoothed hinge asks of them."""

from cmargin._core._hinge_rows cimport hinge_step
from cmargin._core._tiles cimport curvature_block, row_source

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


cdef struct pass_job:
    row_source source
    bint pursuit                 # margin pursuit instead of the smoothed hinge; widths then mean nothing
    bint totals                  # margin pursuit: sum s y x too, for which gradient[1] is free there
    double level                 # gamma and s of margin pursuit
    double scale
    hinge_step at                # step, widths, curvature floor of the look
    const double *code           # IN    (n_rows,) s_i y_i
    double *deficit              # INOUT (n_rows,) u = 1 - y <w, x>
    double *change               # INOUT (n_rows,) y <e, x>
    double *dual                 # IN    (n_rows,) a at the point before the step
    double *dual_next            # OUT   (n_rows,) a after it
    const unsigned char *exact   # IN    (n_rows,) rows that the model of a step treats exactly, or NULL
    const double *norm_weight    # IN    (n_columns,), read with `norms`
    double *norms                # OUT   (n_rows,) sum of weight x^2, or NULL
    const double *direction      # IN    (n_columns,) e, or NULL: keep `change`
    double pending               # step along the old change that deficit still lacks
    curvature_block block        # active columns; its scratch belongs to a thread, its output to a block of rows
    Py_ssize_t n_rows
    Py_ssize_t n_columns
    Py_ssize_t n_blocks
    Py_ssize_t tile_rows
    double *sums                 # OUT   (n_blocks, N_SUMS)
    double *gradient             # OUT   (n_blocks, 3, n_columns) sum r x for r = s y a1, s a_hat [y=1], -s a_hat [y=-1]
    double *hessian              # OUT   (n_blocks, n_active, n_active) upper triangle, or NULL
