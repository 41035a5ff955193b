"""What Newton's method asks of a block of rows: the job, the sums of an evaluation, the functions that make them."""

from libc.stdint cimport uint64_t

from cmargin._core.losses._point cimport loss_t
from cmargin._core.losses._smoothed_hinge cimport hinge_step
from cmargin._core.rows._tiles cimport curvature_block, row_source

cdef enum:                       # sum_id: what one block of rows adds up, in this order
    LINE_VALUE = 0               # sum s F(u1), width of the line search
    LINE_SLOPE = 1               # its derivative in the step
    HINGE = 2                    # sum s max(0, u1)
    VALUE = 3                    # sum s F(u1), width of the next Newton step
    DUAL_POS = 4                 # sum s a_hat over y = +1
    DUAL_NEG = 5                 # sum s a_hat over y = -1
    CURVED = 6                   # number of rows that entered the curvature block
    CURVATURE = 7                # sum s h over all rows
    GAIN_POS = 8                 # sum s (G(a_hat) + (t - 1) a_hat), y = +1; of the hinge without offsets: DUAL_POS
    GAIN_NEG = 9                 # the same over y = -1, and DUAL_NEG
    N_SUMS = 16                  # two cache lines
    N_PARTS = 7                  # numbers per row that `hinge_rows` leaves for the sums


cdef struct pass_job:
    row_source source
    loss_t loss                  # widths of evaluations mean something for the smoothed hinge alone
    bint totals                  # a loss without a dual: sum s y x too, for which gradient[1] is free there
    hinge_step at                # step, widths, curvature floor of the evaluation
    double stands_for            # of a sample: `take_sample`; 0: the block is of all rows
    uint64_t seed                # mixed
    double *leverage             # INOUT (n_rows,) sum of column_weight x^2, or NULL: all are the same
    const double *column_weight  # IN    (n_columns,) where the evaluation measures it, or NULL
    const double *signed_weight  # IN    (n_rows,) s_i y_i
    const double *offset         # IN    (n_rows,) t_i, or NULL: 1 in every row
    double *slack                # INOUT (n_rows,) u = t - y <w, x>
    double *change               # INOUT (n_rows,) y <e, x>
    double *dual                 # IN    (n_rows,) a at the point before the step
    double *dual_next            # OUT   (n_rows,) a after it
    const double *norm_weight    # IN    (n_columns,), read with `norms`
    double *norms                # OUT   (n_rows,) sum of weight x^2, or NULL
    const double *direction      # IN    (n_columns,) e, or NULL: keep `change`
    double pending               # step along the old change that slack still lacks
    curvature_block block        # active columns; its scratch belongs to a thread, its output to a block of rows
    Py_ssize_t n_rows
    Py_ssize_t n_columns
    Py_ssize_t n_blocks
    Py_ssize_t tile_rows
    double *curvature            # OUT   (n_rows,) s h of the rows in the block, for after the pass; NULL: in the pass
    double *sums                 # OUT   (n_blocks, N_SUMS)
    double *gradient             # OUT   (n_blocks, 3, n_columns) sum r x for r = s y a1, s a_hat [y=1], -s a_hat [y=-1]
    double *diagonal             # OUT   (n_blocks, n_columns) sum s h x^2 of rows that the block leaves out
    double *hessian              # OUT   (blocks or groups, n_active, n_active) upper triangle, or NULL


cdef struct block_question:      # what a block is asked, beside what stands in the job
    Py_ssize_t part              # of an evaluation: tiles of one part,
    Py_ssize_t n_parts           # out of so many; sums go on from part to part
    const Py_ssize_t *bounds     # of groups of rows: group k is rows bounds[k] .. bounds[k + 1]
    Py_ssize_t n_summed          # blocks of curvature, which so many fold:
    Py_ssize_t n_folding
    double step
    double width
    double floor                 # of curvature
    const double *x
    bint squares


# scratch of a thread: as `RowBlocks.make_room` makes it
ctypedef void (*block_kernel)(pass_job *job, Py_ssize_t block, const block_question *asked,
                              double *scratch) noexcept nogil

# part, n_parts: a part of an evaluation
cdef void run_block(pass_job *job, Py_ssize_t block, const block_question *asked, double *scratch) noexcept nogil

# step, width: value, slope, curvature in the step t of sum s F(u - t change);  sums[0:3]
cdef void line_block(pass_job *job, Py_ssize_t block, const block_question *asked, double *scratch) noexcept nogil

# weight (n,) = s h at the last evaluation, of n rows from `first` on; 0 below the floor
cdef void weigh_by_curvature(const pass_job *job, Py_ssize_t first, Py_ssize_t n, const block_question *asked,
                             double *weight) noexcept nogil

# x, width, floor: gradient[block] = sum s h <x_i, x> x_i, or sum s h x_i^2 for x NULL; rows below the floor left out
cdef void hessp_block(pass_job *job, Py_ssize_t block, const block_question *asked, double *scratch) noexcept nogil

# x, squares: sums[HINGE] = sum s F(y <x, x_i>), not smoothed, and gradient[block] = sum s x_i^2: from the rows alone
cdef void objective_block(pass_job *job, Py_ssize_t block, const block_question *asked, double *scratch) noexcept nogil

# x (n_rows,): gradient[block] = sum x_i times row i
cdef void combine_block(pass_job *job, Py_ssize_t block, const block_question *asked, double *scratch) noexcept nogil

# x (n_rows,) slacks, width: of straight lines that touch the smoothed hinge there, gradient[block] (2, n_columns) =
# sums of s a y x over positive rows and over negative ones, and sums[DUAL_POS], sums[DUAL_NEG] those of s a
cdef void linearised_block(pass_job *job, Py_ssize_t block, const block_question *asked, double *scratch) noexcept nogil

# the first block becomes the sum of all, in block order
cdef void fold(double *blocks, Py_ssize_t n_blocks, Py_ssize_t size) noexcept nogil

# the same of the curvature, where every one of those who fold has a part of the work; n_summed, n_folding
cdef void fold_curvature(pass_job *job, Py_ssize_t part, const block_question *asked, double *scratch) noexcept nogil
