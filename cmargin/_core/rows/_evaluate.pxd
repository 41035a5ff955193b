"""Evaluations over rows in memory, of one binary problem, as compiled code asks for them; see `cmargin.data.source`.

All functions but `pass_set_active` and `pass_start` sum over blocks of rows and fold them in order. Outputs are in
``job``: sums, gradient and hessian of the first block, until the next call.
"""

from libc.stdint cimport uint64_t

from cmargin._core.rows._pass_state cimport row_pass


cdef enum block_wanted:          # which curvature block an evaluation sums
    NO_BLOCK,                    # none
    BLOCK,                       # that of all rows, in double
    SINGLE_BLOCK,                # that of all rows, perhaps in single precision
    TANGENTS,                    # none; dual variables are the slopes of the smoothed hinge at the end of the step
    SAMPLED_BLOCK                # that of a sample of dense rows (`take_sample`), perhaps in single precision


cdef inline bint has_block(int wanted) noexcept nogil:
    return wanted == BLOCK or wanted == SINGLE_BLOCK or wanted == SAMPLED_BLOCK


cdef enum move_kind:             # from where to where rows move for an evaluation
    SAME_LINE,                   # along the direction of the last evaluation, from where that began
    COMMIT_AND_MOVE,             # along ``direction``, from where the last evaluation was: its step is taken
    RESTART                      # along ``direction``, from w = 0: the rows have forgotten every step


cdef struct measure_request:     # what is measured of every row beside the sums, and stays with the rows
    const double *norm           # (n_columns,): sum weight_j x_ij^2, or NULL
    const double *leverage       # (n_columns,): the same for chances to be in a sample, if there is room, or NULL


cdef struct evaluation_request:  # what an evaluation is asked for; see `RowPass.evaluate`
    move_kind move
    const double *direction      # (n_columns,), not read on the same line
    double step
    double line_width
    double width
    double floor                 # a row of less curvature is on the block's diagonal alone; 0: none is
    double stands_for            # of a sample: see `take_sample`
    uint64_t seed
    measure_request measure
    int with_hessian             # a `block_wanted`


# blocks and tiles, from n_rows and n_columns alone
cdef void pass_plan(row_pass *rows) noexcept nogil

# for a curvature block of that order: doubles of a thread's workspace, blocks that are folded into one, and whether
# every row's curvature is kept until the pass has ended
cdef Py_ssize_t scratch_wanted(const row_pass *rows, Py_ssize_t order) noexcept nogil
cdef Py_ssize_t hessians_wanted(const row_pass *rows, Py_ssize_t order) noexcept nogil
cdef bint sums_later(const row_pass *rows, Py_ssize_t order) noexcept nogil

# w = 0: u = 1 in every row, or its offset
cdef void pass_start(row_pass *rows, bint primal) noexcept nogil

# columns of the curvature block from the next evaluation on, ascending; NULL: all. They are copied
cdef void pass_set_active(row_pass *rows, Py_ssize_t n_active, const Py_ssize_t *active) noexcept nogil

# False: no memory. Then `pass_evaluate_part` until it answers that nothing is left, a tenth of a second each at most
cdef bint pass_begin_evaluation(row_pass *rows, const evaluation_request *request) noexcept nogil
cdef bint pass_evaluate_part(row_pass *rows) noexcept nogil

# of a ``windowed`` evaluation: before the parts of every window but the first, and after the last
cdef void pass_begin_window(row_pass *rows) noexcept nogil
cdef void pass_end_evaluation(row_pass *rows) noexcept nogil

# sums[0:3] = value, slope, curvature along the last direction
cdef void pass_line(row_pass *rows, double step, double width) noexcept nogil

# out (n_rows,) = y <w, x> at the last evaluation
cdef void pass_margins(const row_pass *rows, double *out) noexcept nogil

# gradient = sum s h <x_i, x> x_i, x NULL: the diagonal; the share of rows read, or less than 0: no memory
cdef double pass_hessp(row_pass *rows, const double *x, double width, double floor) noexcept nogil

# weight (n_rows,) = s h / n at the last evaluation
cdef void pass_weigh(row_pass *rows, double n, double width, double floor, double *weight) noexcept nogil

# sums[HINGE] = sum s F, F not smoothed, and if asked for gradient = sum s x^2; False: no memory
cdef bint pass_objective(row_pass *rows, const double *w, bint squares) noexcept nogil

# gradient = sum c_i x_i; False: no memory
cdef bint pass_combine(row_pass *rows, const double *c) noexcept nogil

# gradient (2, n_columns) and sums[DUAL_POS], [DUAL_NEG]: straight lines that touch the smoothed hinge at ``slacks``
cdef bint pass_linearised(row_pass *rows, const double *slacks, double width) noexcept nogil
