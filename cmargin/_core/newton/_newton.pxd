"""Newton's method on a smoothed loss as a machine that asks for sums over the rows and is told them.

    newton_begin(&at)
    while at.ask.kind is none of PAUSE, GATHER, DONE:
        answer at.ask, and tell: told_look, told_along, told_product, told_evaluation

It never sees a row, so that the rows may be in memory, in files or on other machines; between asking and being told it
may wait for as long as anybody likes. Nothing here needs the interpreter.
"""

from cmargin._core.newton._certificate cimport dual_point
from cmargin._core.newton._conjugate_gradients cimport conjugate_gradients
from cmargin._core.newton._line_search cimport line_search
from cmargin._core.rows._row_pass cimport look_request, row_pass
from cmargin._core.newton._width_rule cimport next_width, width_rule


cdef enum ask_kind:
    LOOK                         # ask.look, after ask.restart and ask.new_active
    ALONG                        # value, slope, curvature at ask.step; no read
    PRODUCT                      # sum s h x_i <x_i, ask.x>, ask.x NULL: the diagonal
    EVALUATE                     # sum s F(y <ask.x, x>), F not smoothed, and sum s x^2
    GATHER                       # once, after the first look: the heaviest rows, see `HeavyRows`; then `go_on`
    PAUSE                        # after a look, where it was wanted; then `go_on`
    DONE


cdef enum status_id:             # names in `STATUS`
    WAITING, RUNNING, CONVERGED, DECREMENT, WIDTH, STALLED, ROUNDED, STOPPED, MAX_TIME, MAX_PASSES


cdef enum phase_id:              # what was asked for
    FIRST_LOOK, FRESH_LOOK, DIAGONAL, PRODUCTS, FULL_STEP, SEARCH, SHORTER_STEP, SETTLING,
    OWN                          # by a strategy, which is told


cdef enum:
    HISTORY_COLUMNS = 11


cdef struct request:
    ask_kind kind
    look_request look
    bint restart                 # w = 0 first; primal: dual variables are never carried on
    bint primal
    bint new_active              # columns of the curvature block: n_active of active, NULL for all
    Py_ssize_t n_active
    const Py_ssize_t *active
    const double *norm_weight    # sum weight_j x_ij^2 for every row too, or NULL
    const double *x              # (p,)
    double step


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
    int loss
    bint smooth                  # a loss that needs no smoothing
    double steepest              # root mean square slope where the objective is 1, at most
    # ---- what the user chose
    double tol
    double max_passes
    double deadline              # on the clock of `seconds`
    double width_end             # leave once the smoothing is below: a subset
    bint by_products             # directions by conjugate gradients
    bint wide_l1                 # the curvature block holds the columns in use only
    bint pauses                  # PAUSE after every look
    bint published               # Algorithms 1 to 4 of the paper, see `_published_newton`
    double newton_tol
    void (*start_step)(newton_state *at) noexcept nogil        # the strategy: what a step asks first,
    void (*told_step)(newton_state *at) noexcept nogil         # and what it does with the looks it asked for
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
    next_width to
    width_rule rule
    # ---- what the last look told
    double sums[10]              # as _row_blocks.pxd has them, the first six per weight
    double mean_curvature
    double *block                # (order, order) upper triangle of the curvature; scaled in place
    Py_ssize_t order
    bint has_block
    double dual
    dual_point told              # dual variables of that look
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
    bint out_of_memory
    bint not_finite              # the curvature is not: nothing can be done
    line_search line
    double line_slope            # of the penalty at w along d,
    double line_curvature        # and its change along it
    conjugate_gradients cg
    double *diagonal             # (p,) of the curvature, for cg
    row_pass *heavy              # rows that the model of a step treats exactly, in memory here; NULL: none
    bint heavy_in_block          # the look that found them summed their curvature too
    double *heavy_work           # see `_heavy_rows`
    # ---- Algorithms 1 to 4
    unsigned char *in_use        # (p,) active set
    unsigned char *gone          # (p,) components that a step takes to 0
    unsigned char *used          # (p,) active set of the last direction
    double *zeroed               # (p,) where a step leads, components that changed sign set to 0
    double narrowest             # the last width but one
    bint adjust                  # columns may still be admitted at this width
    Py_ssize_t directions        # Newton directions so far
    int asked_for                # see `_published_newton`
    void *owner                  # the Newton whose memory this is


# ---- for strategies
cdef double penalty_of(const newton_state *at, const double *w) noexcept nogil
cdef double rounding_of(const newton_state *at, const double *e) noexcept nogil
cdef void ask_look(newton_state *at, phase_id phase, const double *direction, double step, double width,
                   bint with_hessian) noexcept nogil
cdef void after_look(newton_state *at, double step) noexcept nogil
cdef void next_step(newton_state *at) noexcept nogil

# ---- for whoever asks and tells
cdef Py_ssize_t block_work_size(Py_ssize_t order, bint l1) noexcept nogil
cdef void newton_begin(newton_state *at) noexcept nogil
cdef void newton_settle(newton_state *at) noexcept nogil
cdef void newton_leave(newton_state *at, status_id status) noexcept nogil
cdef void go_on(newton_state *at) noexcept nogil
cdef void start_step(newton_state *at) noexcept nogil        # the strategy of SmSVM
# sums (N_SUMS,), gradient (3, p), block (order, order) or NULL: it is kept, and overwritten, until the next look
cdef void told_look(newton_state *at, const double *sums, const double *gradient, double *block) noexcept nogil
cdef void told_along(newton_state *at, double slope, double curvature) noexcept nogil
cdef void told_product(newton_state *at, const double *product, double share) noexcept nogil
cdef void told_evaluation(newton_state *at, double loss, const double *squares) noexcept nogil
