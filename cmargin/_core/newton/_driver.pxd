"""Newton's method on a smoothed loss as a machine that asks for sums over the rows and is told them.

A driver as ``_asking.pxd`` has it, which `newton_begin` starts. GATHER is asked once, after the first look; after it,
and after a PAUSE, `go_on`.
"""

from libc.stdint cimport uint64_t

from cmargin._core.newton._bound cimport dual_point, relative_gap
from cmargin._core.newton.direction._conjugate_gradients cimport conjugate_gradients
from cmargin._core.newton._asking cimport request
from cmargin._core.newton._line cimport line_search
from cmargin._core.newton.direction._l1_model cimport step_model
from cmargin._core.newton._smoothing cimport next_width, width_rule
from cmargin._core.rows._evaluate cimport row_pass


cdef enum status_id:             # names in `STATUS`
    WAITING, RUNNING, CONVERGED, DECREMENT, WIDTH, STALLED, ROUNDED, STOPPED, MAX_TIME, MAX_PASSES,
    LEFT                         # products are not worth their reads


cdef enum phase_id:              # what was asked for
    MEASURING, FIRST_LOOK, FRESH_LOOK, DIAGONAL, PRODUCTS, FULL_STEP, SEARCH, SHORTER_STEP, SETTLING,
    OWN                          # by a driver that has this one's state, and phases of its own


cdef enum:
    HISTORY_COLUMNS = 11
    FULL_BLOCK = 256             # up to so many columns the block of an l1 problem holds all of them, used or not


cdef struct newton_state:
    # ---- the problem: (l2/2) |w|^2 + (1/n) sum s F(y <w, x>) + l1 |w|_1; column `free` is not penalised, or -1
    Py_ssize_t p
    Py_ssize_t free
    Py_ssize_t n_rows
    Py_ssize_t n_features
    double n                     # sum of s
    double share                 # cost of a look in reads of the whole data
    double l2
    double l1
    double path_l2               # of the steps, where it is not ``l2``, see `_penalty_path`; 0: not yet
    double path_l1               # the same of ``l1``
    int loss
    bint smooth                  # a loss that needs no smoothing,
    bint jumping                 # but whose curvature jumps
    double steepest              # root mean square slope where the objective is 1, at most
    # ---- what the user chose
    double tol
    double max_passes
    double deadline              # on the clock of `seconds`
    double width_end             # leave once the smoothing is below: a subset
    bint by_products             # directions by conjugate gradients; with l1 by columns, see `_newton_columns`
    int worth_products           # until a step takes as many products; 0: always
    bint or_leave                # to leave then, where steps by a factor are for others
    double tried                 # reads of products on trial so far
    Py_ssize_t sample            # rows whose curvature may precondition products; 0: none
    uint64_t sample_seed
    double *column_weight        # (p,) of squares in a row's length
    bint measured                # there are some, and rows know their lengths
    bint forgotten               # but not those of a driver that goes on from a checkpoint
    double filled                # rows in samples so far, in those wanted: few where long rows have little curvature
    int worth_preconditioned     # until a step takes as many of these
    bint preconditioned          # products are, and looks tell the curvature of such a sample
    bint wide_l1                 # the curvature block holds the columns in use only
    bint every_row               # no row is skipped, however small its curvature
    # ---- the point
    double *w                    # (p,)
    double *d                    # (p,) direction
    double *taken                # (p,) the step taken along it
    double *g                    # (p,) gradient of the smoothed objective without l1
    double *l2_each              # (p,)
    double *l1_each              # (p,)
    double *scratch              # (p,)
    double *zero                 # (p,)
    double value                 # of the smoothed objective at w
    double first                 # slope at w along d
    double predicted             # decrease of a step
    double step
    bint blind                   # whether that means nothing: squares beyond the range of doubles
    bint turns                   # that predicts nothing, but columns that its block left out are steep: their turn
    bint leaves                  # w = 0, by a step whose length is to be found
    next_width to
    width_rule rule
    # ---- what the last look told
    double sums[10]              # as _row_blocks.pxd has them, the first six per weight
    double mean_curvature
    double *block                # (order, order) upper triangle of the curvature; scaled in place
    bint rough                   # the next may be summed in single precision, see `allows_rounding`
    bint thin                    # on the diagonal of the next, rows below the floor may count, see `has_thin_column`
    Py_ssize_t order
    bint has_block
    bint has_factor              # in `work`, behind 4 p numbers: of a sample's curvature, or of one kept, see `_chord`
    double dual
    dual_point told              # dual variables of that look,
    double *dual_sums            # (2, max(1, p)) and their sums s a y x over the positive and the negative rows
    # ---- the curvature block
    Py_ssize_t *active           # (p,) columns of the next block
    Py_ssize_t n_active          # so many; -1: all
    double *work                 # work_size(order) doubles
    Py_ssize_t *index            # (3 p,)
    double *keys                 # (p,)
    Py_ssize_t work_order        # for which there is memory
    # ---- the best point and what is known of it
    double *best_w               # (p,)
    double objective             # not smoothed
    double best_dual
    dual_point best              # behind best_dual
    bint has_best
    double *rms                  # (p,) root mean square of every column, or more
    bint knows_rms
    double *column_scale         # (p,) curvature of the columns, where a subset of the rows has told it
    bint has_scale
    bint may_near                # NEAREST may be asked: the rows are many
    bint near                    # steps go to the optimum of the rows near the hinge (`solvers/newton/working_set.py`);
    bint proposed                # the next one is in `d`
    double width_then            # where the other steps go on at most, once these are over,
    double open_then             # and what the objective is then believed to be too high
    double rounding              # of a sum that a look tells, beside the root mean square of a term
    double drift                 # what rounding may have done to the objective since the start
    int resumed
    # ---- counts
    double passes
    double spent                 # looks; products of conjugate gradients are not limited
    Py_ssize_t n_iter
    bint (*make_room)(newton_state *at, Py_ssize_t order) noexcept nogil     # for `work`; False: there is none
    status_id status
    double started
    double clock                 # when the present phase began
    double seconds_look
    double seconds_system
    double seconds_search
    double *history              # (rows, HISTORY_COLUMNS)
    Py_ssize_t history_rows
    Py_ssize_t history_room
    # ---- the machine
    request ask
    phase_id phase
    bint only_settles
    line_search line
    double line_slope            # of the penalty at w along d,
    double line_curvature        # and its change along it
    conjugate_gradients cg
    step_model model             # with l1, in place of products
    double *diagonal             # (p,) of the curvature, for cg,
    double curvature_then        # and the mean curvature where it was summed; 0: nowhere
    row_pass *heavy              # rows that the model of a step treats exactly, in memory here; NULL: none
    bint heavy_in_block          # the look that found them summed their curvature too
    double *heavy_work           # see `_heavy_rows`
    # ---- other rows, whose dual variables stay as they are: see `solvers/newton/working_set.py`
    double *pull                 # (p,) mean s a y x over them, or NULL: there are none
    double *others               # (2, p) sums of s a y x over the positive and the negative ones
    double *both                 # (2, p) the same with the rows looked at
    double of_others[2]          # sums of s a, over n
    double known                 # the objective of all rows,
    double wanted                # and the bound of theirs beyond which nothing more is asked
    void *owner                  # the Newton whose memory this is


cdef inline double slope_of_penalty(const newton_state *at, Py_ssize_t j, double w) noexcept nogil:
    # without l1, in column j
    return at.l2_each[j] * w - (at.pull[j] if at.pull != NULL else 0)


cdef inline bint tells_block(const newton_state *at) noexcept nogil:
    # whether looks are asked for one
    return not at.by_products or at.preconditioned


cdef inline double gap_of(const newton_state *at) noexcept nogil:
    return relative_gap(at.objective, at.best_dual)


cdef inline Py_ssize_t n_kinks(const newton_state *at) noexcept nogil:
    # of |w| along a line, at most
    return at.p if at.l1 > 0 else 0


# ---- for another driver of the same state, `_published`
cdef void take_sums(newton_state *at, const double *sums, const double *gradient, double *block) noexcept nogil
cdef void take_evaluation(newton_state *at, double loss, const double *squares) noexcept nogil
cdef void settled(newton_state *at) noexcept nogil
cdef double penalty_of(const newton_state *at, const double *w) noexcept nogil
cdef double rounding_of(const newton_state *at, const double *e) noexcept nogil
cdef void ask_look(newton_state *at, phase_id phase, const double *direction, double step, double width,
                   bint with_hessian) noexcept nogil
cdef void after_look(newton_state *at, double step) noexcept nogil
cdef void next_step(newton_state *at) noexcept nogil

# ---- for directions by products
cdef double floor_of(const newton_state *at) noexcept nogil
cdef void measure_columns(newton_state *at, const double *curvature, Py_ssize_t stride) noexcept nogil
cdef void direction_found(newton_state *at) noexcept nogil
cdef void ask_first_look(newton_state *at, phase_id phase, bint with_hessian) noexcept nogil

# ---- for whoever asks
cdef void newton_answers_to(newton_state *at) noexcept nogil        # the functions that are told
cdef void newton_begin(newton_state *at) noexcept nogil
cdef void newton_settle(newton_state *at) noexcept nogil
cdef void newton_leave(newton_state *at, status_id status) noexcept nogil
cdef void go_on(newton_state *at) noexcept nogil
