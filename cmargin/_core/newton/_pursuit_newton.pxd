"""Margin pursuit's Newton as a driver (``_asking.pxd``), which `pursuit_begin` starts; `arrive` after a PAUSE."""

from cmargin._core.newton._column_units cimport column_units
from cmargin._core.newton.direction._conjugate_gradients cimport conjugate_gradients
from cmargin._core.newton._asking cimport request
from cmargin._core.newton.direction._lagged cimport kept_curvature
from cmargin._core.newton._line cimport line_search
from cmargin._core.penalties._penalty cimport penalty_t


cdef enum status_id:                     # names in `STATUS`
    WAITING, RUNNING, TOL, STALLED, DIVERGED, MAX_PASSES, MAX_TIME, CALLBACK, INTERRUPTED


cdef enum phase_id:                      # what was asked for
    FIRST_LOOK, OF_ONES, DIAGONAL, PRODUCTS, FULL_STEP, SHORTER_STEP, RESCALED


cdef struct pursuit_state:
    # ---- what a checkpoint holds, beside vectors and the curvature in use; ``p`` ends it
    double scale
    double value
    double before                        # value where the step began
    double first                         # slope there
    double slope                         # of the loss at w along d
    double curvature                     # mean rho''
    double step
    double objective                     # of kept_w
    double gradient_norm                 # relative to w = 0
    double norm_at_zero
    double fall                          # of the gradient in a step with the curvature in use
    Py_ssize_t steps_kept                # steps with it
    status_id status
    Py_ssize_t passes
    double reads
    double seconds_steps
    double seconds_trace
    # ---- the problem: (l2/2) |w|^2 + (1/n) sum s F(y <w, x>), F of `level` and `scale`
    Py_ssize_t p
    double n                             # sum of s
    double share                         # cost of a look in reads of the whole data
    double level
    # ---- what the user chose
    double tol                           # of the gradient norm at w = 0
    double max_passes
    double deadline                      # on the clock of `seconds`
    bint by_products                     # directions by conjugate gradients
    bint one_shot                        # PAUSE after the first pass
    bint records
    column_units units                   # all vectors below are of columns in units
    double *asked                        # (p,) of the rows' own columns
    double *last                         # (p,) 1 for the last column, that of ones where there is a centre
    # ---- the point last looked at, the one kept, and the step between
    double *w                            # (p,) as all vectors
    double *kept_w                       # the last whose value is finite: no step raises Q but by rounding
    double *d
    double *g
    double *change                       # of the gradient in a step; before it is known, the gradient before
    double *l2_each
    double *scratch
    double *zero
    # ---- the curvature in use
    kept_curvature kept
    # ---- counts
    double started
    double clock                         # when the present phase began, as `at_work` counts
    double *history                      # (rows, n_columns_recorded)
    Py_ssize_t history_rows
    Py_ssize_t history_room
    # ---- the machine
    request ask
    phase_id phase
    penalty_t penalty            # without kinks
    line_search line
    double line_slope                    # of the penalty along d where the step began,
    double line_curvature                # and its change along it
    conjugate_gradients cg
    double *diagonal                     # of the curvature, for cg


cdef void pursuit_answers_to(pursuit_state *at) noexcept nogil         # the functions that are told
cdef void pursuit_begin(pursuit_state *at) noexcept nogil
cdef void pursuit_leave(pursuit_state *at, status_id status) noexcept nogil
cdef void arrive(pursuit_state *at) noexcept nogil

# at a pause, instead of `arrive`: with another scale from here on
cdef void rescale(pursuit_state *at, double scale) noexcept nogil

# pass, seconds, seconds_steps, seconds_trace, objective, gradient_norm, step, scale; then those of the trace, if any
cdef Py_ssize_t n_columns_recorded(const pursuit_state *at) noexcept nogil
