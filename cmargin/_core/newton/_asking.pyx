"""Newton drivers over rows in memory, classes side by side; and the same drivers for whoever asks from Python."""

import numpy as np

from libc.stdlib cimport free, malloc

from cmargin._core.newton.direction._l1_model cimport model_begin, model_part
from cmargin._core.newton.direction._l1_row_model cimport row_model_begin, row_model_part
from cmargin._core.rows._row_blocks cimport HINGE, N_SUMS
from cmargin._core.rows._evaluate cimport (
    RESTART, SAME_LINE, has_block, evaluation_request, pass_line, pass_begin_evaluation, pass_objective,
    pass_evaluate_part, pass_margins, pass_hessp, pass_set_active, pass_start, pass_weigh,
)
from cmargin._core.rows._pass_state cimport row_pass
from cmargin._core.rows._row_pass cimport RowBlocks
from cmargin._core.util._catoni cimport CHUNK
from cmargin._core.util._clock cimport seconds
from cmargin._core.util._margin_summary cimport N_TRACED, trace_margins
from cmargin._core.util._shapes cimport must_fit
from cmargin._core.util._team cimport share_out

ASKS = {EVALUATE: "evaluate", LINE: "line", HESSP: "hessp", MODEL: "model", ROW_MODEL: "model",
        OBJECTIVE: "objective", MARGINS: "margins", MEASURE: "measure", WORKING_SET: "working_set", PAUSE: "pause",
        DONE: None}


def now():
    """Seconds on the drivers' clock: that of `time.perf_counter`, on which they are told when to stop."""
    return seconds()


cdef bint begin_asked_evaluation(const request *ask, row_pass *rows) noexcept nogil:
    if ask.evaluation.move == RESTART:
        pass_start(rows, ask.primal)
    if ask.new_active:
        pass_set_active(rows, ask.n_active if ask.active != NULL else ask.n_columns, ask.active)
    return pass_begin_evaluation(rows, &ask.evaluation)


cdef bint answer_margins(const request *ask, row_pass *rows) noexcept nogil:
    cdef Py_ssize_t n = rows.job.n_rows
    cdef double *room = <double *> malloc((2 * n + 2 * ask.n_levels + 2) * sizeof(double))
    if room == NULL:
        return False
    pass_margins(rows, room)
    trace_margins(n, room, ask.scale, ask.n_levels, ask.levels, ask.traced, room + n)
    free(room)
    return True


cdef bint answer_one(request *ask, row_pass *rows, bint *under_way, double until) noexcept nogil:
    # one question; False: it is left to Python, or to another time
    cdef double share
    if ask.kind == EVALUATE:
        if not under_way[0] and not begin_asked_evaluation(ask, rows):
            ask.out_of_memory = True
            return False
        under_way[0] = True
        while pass_evaluate_part(rows):
            if seconds() > until:
                return False
        under_way[0] = False
        ask.on_evaluation(ask.driver, rows.job.sums, rows.job.gradient, rows.job.hessian)
    elif ask.kind == LINE:
        pass_line(rows, ask.step, ask.evaluation.width)
        ask.on_line(ask.driver, rows.job.sums[1], rows.job.sums[2])
    elif ask.kind == HESSP:
        share = pass_hessp(rows, ask.x, ask.evaluation.width, ask.evaluation.floor)
        ask.out_of_memory = share < 0
        if not ask.out_of_memory:
            ask.on_hessp(ask.driver, rows.job.gradient, share)
    elif ask.kind == MODEL:
        if not under_way[0]:
            pass_weigh(rows, ask.model.n, ask.evaluation.width, ask.evaluation.floor, rows.columns.weight)
            model_begin(ask.model, &rows.columns)
        under_way[0] = True
        while model_part(ask.model, &rows.columns):
            if seconds() > until:
                return False
        under_way[0] = False
        ask.on_model(ask.driver)
    elif ask.kind == ROW_MODEL:
        if not under_way[0]:
            pass_weigh(rows, ask.row_model.n, ask.evaluation.width, ask.evaluation.floor, rows.unknowns.weight)
            row_model_begin(ask.row_model, &rows.unknowns, &rows.job.source)
        under_way[0] = True
        while row_model_part(ask.row_model, &rows.unknowns, &rows.job.source):
            if seconds() > until:
                return False
        under_way[0] = False
        ask.on_model(ask.driver)
    elif ask.kind == OBJECTIVE:
        ask.out_of_memory = not pass_objective(rows, ask.x, True)
        if not ask.out_of_memory:
            ask.on_objective(ask.driver, rows.job.sums[HINGE], rows.job.gradient)
    elif ask.kind == MARGINS and rows.job.n_rows <= CHUNK:       # more: Python hears Ctrl-C meanwhile
        ask.out_of_memory = not answer_margins(ask, rows)
        if not ask.out_of_memory:
            ask.on_margins(ask.driver)
    else:
        return False
    return not ask.out_of_memory


cdef void answer(void *of, double until) noexcept nogil:
    # the driver's questions until one is for Python, or the time is over; an evaluation may stay under way
    cdef answering *by = <answering *> of
    by.question.away += seconds() - by.question.left
    while until > seconds() and answer_one(by.question, by.rows, &by.under_way, until):
        pass
    by.question.left = seconds()


cdef class Worker:
    """What is brought to its end in slices, by compiled code where its rows are here."""

    @property
    def source_is_here(self):
        """Whether compiled code reads the rows."""
        return self.task.work != NULL

    def use_threads(self, int n_threads):
        """Let so many work at the rows from here on; False where that helps nobody."""
        return False

    def advance(self, double until):
        """Go on until something is for Python, or the clock says ``until``."""
        must_fit(self.task.work != NULL, "advance: the rows are elsewhere")
        with nogil:
            self.task.work(self.task.of, until)
        self.look_for_trouble()

    cdef int look_for_trouble(self) except -1:
        return 0


cdef class Driver(Worker):
    """One binary problem on its way, by compiled steps; subclasses say which.

    ``source`` is what holds the rows: ``n_rows``, ``n_features``, ``n_columns``, ``total_weight``, ``share``, and a
    `RowBlocks` where they are to be read here.
    """

    cdef int asks_of(self, object source, request *question, void *driver) except -1:
        # question: of the driver, whose lifetime is this object's;
        # who receives its results is for the caller to fill in
        self.source = source
        if isinstance(source, RowBlocks):
            self.here.question, self.here.rows = question, &(<RowBlocks> source).rows
            self.task.of, self.task.work = &self.here, answer
        self.question = question
        question.left = seconds()
        question.driver, question.n_columns, question.kind = driver, source.n_columns, DONE
        return 0

    def use_threads(self, int n_threads):
        return isinstance(self.source, RowBlocks) and self.source.use_threads(n_threads)

    @property
    def asks(self):
        """What is asked next, None at the end."""
        return ASKS[self.question.kind]

    @property
    def pauses(self):
        """Whether it pauses after every pass, or evaluation."""
        return self.question.pauses

    @pauses.setter
    def pauses(self, bint pauses):
        self.question.pauses = pauses

    cdef int look_for_trouble(self) except -1:
        if self.question.out_of_memory:
            raise MemoryError("no memory for the curvature of so many columns")
        if self.question.not_finite:
            raise FloatingPointError("the curvature is not finite")
        return 0

    # ------------------------------------------------------------ from elsewhere

    def ask(self):
        """The question, as a dictionary; its arrays are views that the next answer overwrites."""
        cdef request *ask = self.question
        cdef evaluation_request *evaluation = &ask.evaluation
        cdef Py_ssize_t p = ask.n_columns
        if ask.kind == EVALUATE:
            direction = active = None
            if evaluation.move != SAME_LINE:
                direction = np.asarray(<double[:p]> <double *> evaluation.direction)
            if ask.n_active == 0:
                active = np.empty(0, np.intp)
            elif ask.n_active > 0:
                active = np.asarray(<Py_ssize_t[:ask.n_active]> <Py_ssize_t *> ask.active)
            return dict(move=<int> evaluation.move, primal=evaluation.move == RESTART and ask.primal, active=active,
                        direction=direction, step=evaluation.step, line_width=evaluation.line_width,
                        width=evaluation.width, curvature_floor=evaluation.floor, with_hessian=evaluation.with_hessian)
        if ask.kind == LINE:
            return dict(step=ask.step, width=evaluation.width)
        if ask.kind in (HESSP, OBJECTIVE):
            x = None if ask.x == NULL else np.asarray(<double[:p]> <double *> ask.x)
            return dict(x=x, width=evaluation.width, curvature_floor=evaluation.floor)
        if ask.kind == MARGINS:
            return dict(levels=np.asarray(<double[:ask.n_levels]> <double *> ask.levels), scale=ask.scale)
        return {}

    def tell(self, *answer):
        """The answer: of an evaluation (sums, gradient, hessian or None), along the line (slope, curvature), of hessp
        (product, share of the rows read), of an objective (sum of losses, sums of squares), of margins (numbers)."""
        cdef request *ask = self.question
        cdef double[::1] numbers
        cdef Py_ssize_t i
        if ask.kind == EVALUATE:
            self.tell_evaluation(*answer)
        elif ask.kind == LINE:
            ask.on_line(ask.driver, answer[0], answer[1])
        elif ask.kind == MARGINS:
            numbers = np.ascontiguousarray(answer[0], float)
            must_fit(numbers.shape[0] == N_TRACED + ask.n_levels, "tell")
            for i in range(numbers.shape[0]):
                ask.traced[i] = numbers[i]
            ask.on_margins(ask.driver)
        elif ask.kind in (HESSP, OBJECTIVE):
            numbers = np.ascontiguousarray(answer[0 if ask.kind == HESSP else 1], float)
            must_fit(numbers.shape[0] == ask.n_columns, "tell")
            if ask.kind == HESSP:
                ask.on_hessp(ask.driver, &numbers[0], answer[1])
            else:
                ask.on_objective(ask.driver, answer[0], &numbers[0])
        self.look_for_trouble()

    def tell_evaluation(self, sums, gradient, hessian):
        cdef request *ask = self.question
        cdef Py_ssize_t p = ask.n_columns, order = p if ask.n_active < 0 else ask.n_active
        cdef double[::1] own = np.array(sums, float)
        cdef double[:, ::1] slopes = np.ascontiguousarray(gradient, float), block
        must_fit(own.shape[0] == N_SUMS and slopes.shape[0] == 3 and slopes.shape[1] == p, "tell")
        block = self.last_block = None if hessian is None else np.array(hessian, float)
        must_fit(block is None or block.shape[0] == block.shape[1] == order, "tell")
        must_fit((block is None) != bool(has_block(ask.evaluation.with_hessian) and order > 0), "tell")
        ask.on_evaluation(ask.driver, &own[0], &slopes[0, 0], NULL if block is None else &block[0, 0])


cdef struct tasks_work:
    const task *tasks
    double until


cdef void do_task(void *of, Py_ssize_t i, int thread) noexcept nogil:
    cdef const tasks_work *by = <tasks_work *> of
    by.tasks[i].work(by.tasks[i].of, by.until)


def advance_all(workers, double until, int n_threads):
    """`Worker.advance` of several problems, side by side; a thread takes the next of the list when it has done one."""
    cdef Py_ssize_t n = len(workers), i
    cdef Worker worker
    cdef tasks_work at_work
    cdef task *tasks = <task *> malloc((n + 1) * sizeof(task))
    try:
        if tasks == NULL:
            raise MemoryError
        for i in range(n):
            worker = workers[i]
            must_fit(worker.task.work != NULL, "advance_all: the rows are elsewhere")
            tasks[i] = worker.task
        at_work.tasks, at_work.until = tasks, until
        with nogil:
            share_out(do_task, &at_work, n, n_threads)
    finally:
        free(tasks)
    for worker in workers:
        worker.look_for_trouble()
