"""What Newton drivers have in common: a request, who receives its result, and rows in memory that answer.

    begin
    while ask.kind is none of PAUSE, MEASURE, WORKING_SET, MARGINS, DONE:
        answer the request, and hand over the result: ask.on_evaluation, ask.on_line, ask.on_hessp, ask.on_objective

A driver never sees a row, so that the rows may be in memory, in files or on other machines; between a request and
its result it may wait for as long as anybody likes. Nothing here needs the interpreter.
"""

from cmargin._core.newton.direction._l1_model cimport step_model
from cmargin._core.newton.direction._l1_row_model cimport row_model
from cmargin._core.rows._evaluate cimport evaluation_request
from cmargin._core.rows._pass_state cimport row_pass


cdef enum ask_kind:
    EVALUATE                     # ask.evaluation, after ask.new_active
    LINE                         # value, slope, curvature at ask.step; no read
    HESSP                        # sum s h x_i <x_i, ask.x>, ask.x NULL: the diagonal
    MODEL                        # the step that minimises ask.model; by rows that have columns only
    ROW_MODEL                    # the step that minimises ask.row_model; by rows that have `row_unknowns` only
    OBJECTIVE                    # sum s F(y <ask.x, x>), F not smoothed, and sum s x^2
    MARGINS                      # `traced` numbers of the margins at the last evaluation, into ask.traced; no read
    MEASURE                      # the mean of what the evaluation measured of every row
    WORKING_SET                  # the optimum of the rows near the hinge beside straight lines for all others
    PAUSE                        # nothing: control goes back to Python for a moment
    DONE


cdef struct request:
    ask_kind kind
    Py_ssize_t n_columns
    evaluation_request evaluation
    bint primal                  # after a RESTART: dual variables are never carried on
    bint new_active              # columns of the curvature block: n_active of active, NULL for all
    Py_ssize_t n_active
    const Py_ssize_t *active
    const double *x              # (n_columns,)
    step_model *model
    row_model *row_model
    double step
    double scale                 # of the margins' location
    Py_ssize_t n_levels
    const double *levels         # of their quantiles
    double *traced               # (N_TRACED + n_levels,) OUT
    bint pauses                  # the driver is to ask for a PAUSE after every pass or evaluation
    bint out_of_memory           # nothing can be done: no memory,
    bint not_finite              # or a curvature that is not finite
    double left                  # when `answer` left the driver,
    double away                  # and how long it was left alone in all
    # ---- the driver, and what receives its results
    void *driver
    # sums (N_SUMS,), gradient (3, p), block (order, order) or NULL: it is kept, and overwritten,
    # until the next evaluation
    void (*on_evaluation)(void *driver, const double *sums, const double *gradient, double *block) noexcept nogil
    void (*on_line)(void *driver, double slope, double curvature) noexcept nogil
    void (*on_hessp)(void *driver, const double *product, double share) noexcept nogil
    void (*on_model)(void *driver) noexcept nogil
    void (*on_objective)(void *driver, double loss, const double *squares) noexcept nogil
    void (*on_margins)(void *driver) noexcept nogil


cdef struct task:                # what a thread takes on without the interpreter
    void *of
    void (*work)(void *of, double until) noexcept nogil        # until the clock says so, or it is for Python; or NULL


cdef class Worker:
    cdef task task
    cdef int look_for_trouble(self) except -1


cdef struct answering:           # a driver's questions, by rows in memory
    request *question
    row_pass *rows
    bint under_way               # an evaluation is, or a model, in parts


cdef class Driver(Worker):
    cdef request *question
    cdef answering here
    cdef readonly object source
    cdef object last_block
    cdef int asks_of(self, object source, request *question, void *driver) except -1
