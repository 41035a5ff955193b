"""The state of the Newton driver: structs alone, so that whoever needs them imports no function.

A component holds what one idea needs. Its plain numbers come first, and where it has any, "pointers from here on" says
where they end: `_serialise.pxd` puts the numbers of a component into a checkpoint, and a new number of it with them.
The memory behind the pointers belongs to `Newton`, or to the C program, and is laid out in `_vectors.pxd`.
"""

from libc.stdint cimport uint64_t

from cmargin._core.losses._point cimport loss_facts, loss_t
from cmargin._core.newton._asking cimport request
from cmargin._core.newton._bound cimport dual_point
from cmargin._core.newton._column_units cimport column_units
from cmargin._core.newton._line cimport line_search
from cmargin._core.newton._smoothing cimport width_rule
from cmargin._core.newton.direction._bfgs cimport bfgs_hessian
from cmargin._core.newton.direction._conjugate_gradients cimport conjugate_gradients
from cmargin._core.newton.direction._l1_model cimport step_model
from cmargin._core.newton.direction._l1_row_model cimport row_model
from cmargin._core.penalties._penalty cimport penalty_t
from cmargin._core.util._stop cimport stop_rule


cdef enum status_id:             # names in `STATUS`
    WAITING, RUNNING, CONVERGED, DECREMENT, WIDTH, STALLED, ROUNDED, STOPPED, MAX_TIME, MAX_PASSES,
    LEFT,                        # products cost more than a factor
    DIVERGED,                    # a number is not finite
    CALLBACK, INTERRUPTED        # as whoever leaves it may say


cdef enum phase_id:              # what was asked for
    MEASURING, FIRST_EVALUATION, FRESH_EVALUATION, FULL_STEP, SEARCH, SHORTER_STEP, SETTLING,
    OWN                          # by a driver that has this one's state, and phases of its own


cdef enum action_id:             # what a direction answers; the driver alone asks
    FOUND,                       # it is in `point.d`
    ASK_HESSP,                   # the Hessian-vector product with `pcg.asked`
    ASK_MODEL,                   # the minimum of `l1_columns.model`
    ASK_ROW_MODEL,               # that of `l1_block.model`
    ASK_EVALUATE,                # the point once more, with the curvature that is now wanted
    ASK_AFRESH,                  # the same with the rows' numbers afresh: they are of no use
    GIVE_UP,                     # the fit is left to another driver
    FAILED                       # no memory, or a curvature that is not finite: `ask` says which


cdef enum:
    HISTORY_COLUMNS = 11


cdef struct newton_state


cdef struct newton_problem:      # (1/n) sum s F(y <w, x>) and the penalty
    Py_ssize_t n_rows
    Py_ssize_t n_features
    double n                     # sum of s
    double share                 # cost of an evaluation in reads of the whole data
    loss_t loss
    loss_facts facts             # of the loss
    bint has_offsets             # slacks begin at numbers of their own, and not at 1
    double rounding              # of a sum over the rows, beside the root mean square of a term


cdef struct newton_penalty:
    bint path_begun              # of l2, see `_penalty_path`
    double l1_decay              # on a path of l1, one over the next
    penalty_t step               # that of the steps, which a path may make larger than the user's; with its columns
    penalty_t user               # that of objective, bound and history


cdef struct linearised_rows:     # rows beside the problem's own, whose dual variables stay as they are
    double constant[2]           # sums of s a over the positive and the negative ones, over n
    double known                 # a bound on the objective of all rows; NaN: it ends nothing
    double wanted                # the bound on the objective of all rows at which the small problem is solved
    # ---- pointers from here on
    double *linear               # (p,) mean s a y x over them, or NULL: there are none
    double *sums                 # (2, p) sums of s a y x over the positive and the negative ones
    double *sums_of_all          # (2, p) `sums` and those of the problem's own rows


cdef struct one_class_problem:   # see `_one_class`
    double nu                    # 0: it is none
    double least                 # a size of the objective below which gaps are relative to this one
    # ---- pointers from here on
    double *row_sum              # (p,) sum of s x over all rows


cdef struct newton_limits:       # where another way is taken: numbers and reasons are those of `cmargin.solvers.cost`
    Py_ssize_t l1_block_columns
    int most_products
    int trial_steps
    double trial_share
    double l2_path_step
    double l2_path_gap
    double l1_path_rows
    double l1_path_rows_discontinuous


cdef struct newton_point:        # where the steps are, and the step from there
    double value                 # of the smoothed objective at w
    double slope                 # of it at w along d
    double predicted             # decrease of the step, of the model; 0: none is left
    double step                  # length of the last one, in d
    double sums[10]              # of the last evaluation, as _row_blocks.pxd has them, the first six per weight
    bint unreliable              # `predicted` means nothing: squares beyond the range of doubles
    bint columns_wait            # it is 0, but columns that the block left out are steep
    # ---- pointers from here on
    double *w                    # (p,)
    double *d                    # (p,) direction
    double *taken                # (p,) the step taken along it
    double *g                    # (p,) gradient of the smoothed objective without l1
    double *scratch              # (p,)
    double *zero                 # (p,)


cdef struct newton_line:         # the line of a step; nothing of it outlives the step
    double slope                 # at w along d, of the penalty but its kinks; in `_published` of the whole model
    double curvature             # the same
    bint leaves_zero             # w = 0, by a step whose length is to be found
    line_search search


cdef struct newton_bound:        # the best point and the best bound, and what rounding may have done to them
    double objective             # at best_w, not smoothed
    double dual                  # of the last evaluation
    double best_dual
    double drift                 # what rounding may have done to the objective since the start
    bint has_best                # there is a dual point behind best_dual
    bint knows_rms
    bint only_settles            # no step follows the evaluation at the end
    int resumed                  # times that a fit went on because its certificate, evaluated anew, fell short
    double gradient_norm         # in a fit without a bound: at best_w, over `norm_at_zero`
    double norm_at_zero          # norm of the gradient at w = 0
    # ---- pointers from here on
    dual_point last              # S and v of the dual variables of the last evaluation
    double *dual_sums            # (2, max(1, p)) their sums of s a y x over the positive and the negative rows
    dual_point best              # S and v behind best_dual
    double *best_w               # (p,)
    double *rms                  # (p,) root mean square of every column, or more


cdef struct newton_curvature:    # shared by the directions: the block that was summed last, and a factor
    double mean                  # curvature of a row at the last evaluation
    Py_ssize_t order             # of the block
    Py_ssize_t n_active          # columns of the next block, so many of `active`; -1: all
    bint has_scale
    bint has_block
    bint has_factor              # in `work`, behind 4 p numbers: of a sample's curvature, or of one kept, see `_chord`
    bint is_near                 # that it is where a fit with nearly the same penalty has ended
    # ---- pointers from here on
    double *block                # (order, order) upper triangle; scaled in place
    Py_ssize_t *active           # (p,) columns of the next block
    double *column_scale         # (p,) curvature of the columns, where it is known from a subset of the rows
    double *work                 # block_work_size(order) doubles
    Py_ssize_t work_order        # for which there is memory
    bint (*make_room)(newton_state *at, Py_ssize_t order) noexcept nogil     # for `work`; False: there is none
    void *owner                  # whose memory `work` is


cdef struct cholesky_state:      # what the last factor says of the next block
    bint single_ok               # it may be summed in single precision, see `allows_rounding`
    bint every_row               # no row is skipped, however small its curvature


cdef struct pcg_state:           # directions by conjugate gradients, or with l1 by columns
    double tried                 # reads of products on trial so far
    double mean_then             # mean curvature where the diagonal was summed; 0: nowhere
    bint in_use                  # these are the directions
    bint or_leave                # where products cost more than a factor, the driver ends with LEFT
    int products_limit           # products of a step beyond which a factor is cheaper; 0: no limit
    # ---- pointers from here on
    const double *asked          # (p,) whose product with the Hessian is wanted, or NULL: its diagonal
    conjugate_gradients cg
    double *diagonal             # (p,) of the curvature


cdef struct sampled_state:       # products that the curvature of a sample of the rows preconditions
    uint64_t seed
    double filled                # rows in samples over rows wanted, so far: few where long rows have little curvature
    Py_ssize_t rows              # of a sample; 0: none
    int products_limit           # the same of products that are so preconditioned
    bint in_use                  # products are preconditioned, and evaluations sum the curvature of such a sample
    bint measured                # there are column weights, and rows know their lengths
    bint forgotten               # of a driver from a checkpoint: rows do not know their lengths
    # ---- pointers from here on
    double *column_weight        # (p,) of squares in a row's length


cdef struct l1_block_state:
    bint wide                    # the curvature block holds the columns in use only
    bint rows_serve              # with more columns in use than rows, steps have the rows' unknowns,
    bint in_rows                 # as the next one has: no block is summed for it
    # ---- pointers from here on
    row_model model              # of such a step
    Py_ssize_t *index            # (3 p,) scratch
    double *keys                 # (p,) scratch


cdef struct l1_columns_state:
    bint flat                    # in this fit there was a system without a solution
    # ---- pointers from here on
    step_model model


cdef struct lagged_state:        # the Hessian of an earlier point, corrected by BFGS pairs
    double fall                  # of the gradient in a step with it
    Py_ssize_t n_steps           # with it
    bint in_use
    bfgs_hessian kept            # its pointers, and others, from here on
    double *change               # (p,) of the gradient in a step; before it is known, the gradient before


cdef struct working_set_state:   # steps to the optimum of the rows near the hinge: `solvers/newton/working_set.py`
    double width_then            # largest smoothing width of the steps of all rows once these are over
    double open_then             # by how much the objective is then believed to be too high, at most
    bint allowed                 # WORKING_SET may be asked: the rows are many
    bint in_use
    bint proposed                # the next step is in `d`


cdef struct newton_counts:
    double passes                # reads of the data
    double of_columns            # of these, reads of columns, in place of a factor: `max_passes` does not limit them
    double started
    double clock                 # when the present phase began
    double seconds_look
    double seconds_system
    double seconds_search
    double seconds_trace         # of the margins
    Py_ssize_t n_iter            # evaluations, of a fit by the gradient those that end a step


cdef struct newton_history:
    double *table                # (n_rows, `history_columns`)
    Py_ssize_t n_rows
    Py_ssize_t room


cdef struct newton_state:
    Py_ssize_t p                 # columns
    status_id status
    phase_id phase
    request ask
    newton_problem problem
    newton_penalty penalty
    column_units units           # all vectors are of columns in units
    linearised_rows linearised
    one_class_problem one_class
    stop_rule stop
    newton_limits limits
    newton_point point
    newton_line line
    width_rule smoothing
    newton_bound bound
    newton_curvature curvature
    cholesky_state cholesky
    pcg_state pcg
    sampled_state sampled
    l1_block_state l1_block
    l1_columns_state l1_columns
    lagged_state lagged
    working_set_state working_set
    newton_counts counts
    newton_history history
