"""What is kept of the rows of one binary problem, of an evaluation under way, of its memory: `row_pass`, its parts.

No function is here, so that whoever moves a part of it knows nothing of who moves the others: evaluations are made in
`_evaluate`, their blocks shared out in `_over_blocks`, curvature that is summed after a pass in `_curved_rows`.
"""

from cmargin._core.rows._row_blocks cimport pass_job
from cmargin._core.rows._tiles cimport row_source


cdef struct columns_view:        # of CSR rows, with the state of one problem
    row_source source            # X', a column a row; X.starts NULL: there are none
    double *weight               # (n_rows,) s h / n
    double *product              # (n_rows,) scratch, as the next
    double *other


cdef struct row_unknowns:        # for models of a step in as many unknowns as there are rows, `newton/direction`
    Py_ssize_t n_used            # columns that ``gram`` is the sum of
    # ---- pointers from here on
    double *weight               # (n_rows,) s h / n; NULL: there is no such memory
    double *multiplier           # (n_rows,) as the next
    double *product              # X d
    double *residual
    double *step
    double *solution             # (2 n_rows,)
    Py_ssize_t *curved           # (n_rows,) which rows have curvature
    double *gram                 # (n_rows, n_rows) sum of x_j x_j' over columns in use, upper triangle
    double *factor               # (n_rows, n_rows)
    double *panel                # (PANEL, n_rows) columns side by side
    double *tile                 # (TILE, n_features) scratch
    double *slope                # (n_columns,) as the next
    double *change
    Py_ssize_t *moved            # (n_columns,)
    char *used                   # (n_columns,) whether a column is in ``gram``


cdef enum:
    PANEL = 128
    TILE = 32


cdef enum:
    MOST_GROUPS = 32             # of curved rows, side by side


cdef struct curved_rows:         # those of an evaluation whose curvature is summed after the pass: `_curved_rows`
    double *memory               # (most_rows,) for the curvature of every row, or NULL
    double flops                 # to add up
    Py_ssize_t n                 # of the evaluation under way,
    Py_ssize_t n_groups          # in so many groups,
    Py_ssize_t group             # of which this is the next
    Py_ssize_t row               # and begins here
    Py_ssize_t bounds[MOST_GROUPS + 1]


cdef struct row_pass:
    pass_job job
    int n_threads
    bint begun                   # an evaluation was made since `pass_start`,
    bint fresh                   # none whose dual variables the next may carry on,
    bint forgets                 # and none ever will be
    Py_ssize_t most_rows         # that are read at a time
    Py_ssize_t n_all             # rows of the data, and of the window on them that is read next,
    Py_ssize_t first             # its first one; the job's pointers and number of rows are of the window
    bint windowed                # the evaluation under way goes on with another window
    Py_ssize_t part              # of the evaluation under way,
    Py_ssize_t n_parts           # out of so many
    bint summed                  # the evaluation under way, or the last one, has a curvature block
    double *scratch
    Py_ssize_t scratch_size      # doubles of a thread
    Py_ssize_t hessian_order     # for which there is memory
    Py_ssize_t n_hessians
    bint sums_later              # where few blocks would have room: `pass_plan`
    double *all_hessian          # (n_hessians, hessian_order, hessian_order)
    curved_rows curved
    columns_view columns
    row_unknowns unknowns
    Py_ssize_t *active           # (n_columns,) memory for `pass_set_active`
    Py_ssize_t *position         # (n_columns,), CSR only
    bint (*make_room)(row_pass *rows, Py_ssize_t order) noexcept nogil      # scratch, block, duals; False: no memory
    void *owner                  # whose memory this is
