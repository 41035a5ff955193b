"""SmSVM's dual as a machine that is taken on part by part; what is behind it stands in ``dual/_driver.pyx``."""

from cmargin._core.rows._dual_evaluate cimport balancing
from cmargin._core.rows._dual_rows cimport dual_rows
from cmargin._core.rows._dual_sweeps cimport dual_sweeps
from cmargin._core.util._stop cimport stop_rule


cdef enum dual_stage:
    WAITING, START, START_ADDING, SWEEPS, EVALUATE, BALANCE, PAUSED, ENDED


cdef enum dual_status:           # names in `STATUS`
    RUNNING, CONVERGED, STOPPED, MAX_TIME, MAX_PASSES, LEFT


cdef struct dual_state:
    # ---- what a checkpoint holds, beside vectors and sweeps; ``rows`` ends it
    double limit                 # reads after which it ends, chosen by the user
    double objective
    double best_dual
    double best_total            # the total behind it, with `best_v`
    double gap                   # of the sweeps at the last evaluation,
    double read                  # reads until then
    int n_iter
    int since                    # and sweeps since then
    dual_status status
    double seconds[3]            # evaluations; 0; sweeps
    # ---- the problem
    dual_rows *rows
    dual_sweeps *sweeps
    balancing balance
    double l2
    Py_ssize_t n_result          # numbers of w that are wanted: m, and 1 with an intercept
    # ---- what the user chose
    stop_rule stop
    bint gives_up                # with "left" rather than "max_passes"
    double trial                 # of the limit, after which it leaves where the gap does not fall fast enough
    double first_evaluation      # reads after which there is an evaluation, if there has been none
    double hopeless_from         # part of `first_evaluation`, before which it is not left as hopeless
    double largest               # multiple of w
    bint pauses                  # after every evaluation
    # ---- the point
    double *best_w               # (n_result,)
    double *best_v               # (m + 1,) v of the dual variables behind best_dual
    dual_status leaving          # what to end with after a last evaluation; RUNNING: nothing
    # ---- the machine
    dual_stage stage
    bint wished                  # the evaluation under way was wished for
    Py_ssize_t at                # the next row of an evaluation
    double held                  # sum of c y of rows added
    double *room                 # (4 n + 2 (m + 1),) while an evaluation is under way
    bint out_of_memory
    double started
    double *history
    Py_ssize_t history_rows
    Py_ssize_t history_room


# a task for a thread: until the clock says so, a pause, or the end
cdef void dual_work(void *of, double until) noexcept nogil

# from w = 0, from the point that lies in sweeps.w, or from the dual variables in sweeps.a too; after a pause; with a
# last evaluation
cdef void begin_at_intercept(dual_state *at) noexcept nogil
cdef void dual_begin(dual_state *at, bint from_w, bint from_a) noexcept nogil
cdef void dual_resume(dual_state *at) noexcept nogil
cdef void dual_leave(dual_state *at, dual_status status) noexcept nogil
