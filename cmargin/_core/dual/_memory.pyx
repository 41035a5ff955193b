"""SmSVM's dual driver as a Python object: it owns the memory, begins and leaves, gives results and checkpoints."""

import numpy as np

from libc.math cimport INFINITY, sqrt
from libc.stdint cimport uint64_t
from libc.stdlib cimport free

from cmargin._core.linalg._blas cimport dot
from cmargin._core.newton._asking cimport Worker
from cmargin._core.dual._driver cimport (
    ENDED, PAUSED, RUNNING, WAITING, begin_at_intercept, dual_begin, dual_leave, dual_resume, dual_state, dual_status,
    dual_work,
)
from cmargin._core.newton._state cimport HISTORY_COLUMNS
from cmargin._core.rows._dual_rows cimport DualBlocks, reads_of
from cmargin._core.rows._dual_sweeps cimport DualSweeps
from cmargin._core.util._serialise cimport copied, numbers_between, restore, serialised, span
from cmargin._core.util._clock cimport seconds
from cmargin._core.util._shapes cimport must_fit
from cmargin._core.util._stop cimport take_rule

# names of `dual_status`; "left": Newton's method on all columns had better go on
STATUS = ("running", "converged", "stopped", "max_time", "max_passes", "left")


cdef class DualDriver(Worker):
    """One binary problem, l1 = 0 and l2 > 0, by the dual. `cmargin.solvers.dual.dual_newton` puts it to use.

    ``n_result``: numbers of the w that is wanted; ``stream``: (4,) uint64, of the order of the sweeps; ``patience``:
    as of `DualSweeps`. The other arguments are fields of `dual_state`.
    """

    cdef dual_state at
    cdef readonly DualBlocks source
    cdef readonly DualSweeps sweeps
    cdef readonly object a, w
    cdef object best_w, best_v

    def __init__(self, DualBlocks rows, problem, settings, Py_ssize_t n_result, uint64_t[::1] stream, double limit,
                 bint gives_up, double trial, double first_evaluation, double hopeless_from,
                 double patience, double largest, column=None):
        cdef dual_state *at = &self.at
        cdef double[::1] best_w = np.zeros(n_result), best_v = np.zeros(rows.rows.m + 1)
        self.a, self.w = np.zeros(rows.rows.n), np.zeros(rows.rows.m + 1)
        self.best_w, self.best_v, at.best_v = best_w.base, best_v.base, &best_v[0]
        must_fit(n_result == rows.rows.m + (rows.rows.bias > 0) and n_result > 0, "DualDriver")
        self.source, self.sweeps = rows, DualSweeps(rows, self.a, self.w, stream, patience, column)
        at.rows, at.sweeps, at.l2, at.n_result = &rows.rows, &self.sweeps.at, problem.penalty.l2, n_result
        take_rule(&at.stop, settings)
        at.pauses = settings.pauses
        at.limit, at.gives_up, at.trial, at.largest = limit, gives_up, trial, largest
        at.first_evaluation, at.hopeless_from = first_evaluation, hopeless_from
        at.best_w, at.objective, at.best_dual, at.gap = &best_w[0], INFINITY, 0, INFINITY
        at.status, at.leaving, at.stage, at.started = RUNNING, RUNNING, WAITING, seconds()
        self.task.of, self.task.work = at, dual_work

    def __dealloc__(self):
        free(self.at.history)
        free(self.at.room)

    cdef int look_for_trouble(self) except -1:
        if self.at.out_of_memory:
            raise MemoryError("no memory for the dual of so many rows")
        return 0

    # ------------------------------------------------------------ the way

    def begin(self, w=None, a=None, bint at_intercept=False):
        """From 0, or from the point ``w`` (m + 1,) as rows seen from their mean have it; with ``a`` (n,), from these
        dual variables, of which w needs to have the intercept alone; ``at_intercept``: from the best intercept alone.
        """
        if w is not None:
            self.w[:] = w
        if a is not None:
            self.a[:] = a
        if at_intercept:
            begin_at_intercept(&self.at)
            self.look_for_trouble()
        dual_begin(&self.at, w is not None, a is not None)
        self.look_for_trouble()

    @property
    def asks(self):
        """"rows", which are read here, "pause", or None at the end."""
        return None if self.at.stage == ENDED else "pause" if self.at.stage == PAUSED else "rows"

    @property
    def pauses(self):
        """Whether it pauses after every evaluation."""
        return self.at.pauses

    @pauses.setter
    def pauses(self, bint pauses):
        self.at.pauses = pauses

    @property
    def reads(self):
        return reads_of(self.at.rows)

    @property
    def status(self):
        return STATUS[self.at.status]

    @property
    def size(self):
        """|w|"""
        return sqrt(dot(self.at.rows.m + 1, self.at.sweeps.w, self.at.sweeps.w))

    def go_on(self):
        """After a pause."""
        dual_resume(&self.at)

    def end_with(self, status):
        """At a pause: no sweep more."""
        self.at.status = <dual_status> <int> STATUS.index(status)

    def leave(self, status):
        """End after an evaluation at the point as it is, or at once where there has just been one."""
        if self.at.stage in (WAITING, PAUSED):
            self.end_with(status)
            self.at.stage = ENDED
        else:
            dual_leave(&self.at, <dual_status> <int> STATUS.index(status))

    def store(self, result):
        """What is known of the best point, and how it was found, into a `Result`."""
        cdef dual_state *at = &self.at
        result.objective, result.dual, result.width = at.objective, at.best_dual, 0.0
        result.passes, result.n_iter, result.status = reads_of(at.rows), at.n_iter, STATUS[at.status]
        result.history = self.history()
        if at.objective < INFINITY:
            result.w = self.best_w.copy()
        if at.best_dual > 0:
            result.total, result.v = at.best_total, self.best_v[:at.n_result - at.rows.free].copy()

    def history(self):
        """A list of ``HISTORY_COLUMNS`` numbers for every evaluation."""
        cdef Py_ssize_t i, j
        return [[self.at.history[i * HISTORY_COLUMNS + j] for j in range(HISTORY_COLUMNS)]
                for i in range(self.at.history_rows)]

    def pass_over(self, double pause):
        """Seconds that do not count: those of a callback, and of what is computed for it."""
        self.at.started += pause
        self.at.stop.deadline += pause

    def hand_over(self):
        """What Newton's method on all columns may go on with."""
        cdef dual_state *at = &self.at
        return dict(started=at.started,
                    spent_seconds=(at.seconds[0], at.seconds[1], at.seconds[2]))

    # ------------------------------------------------------------ a checkpoint, at a pause

    cdef void spans_of(self, span *out) noexcept nogil:
        # out (2,)
        out[0] = numbers_between(&self.at, &self.at.rows)
        out[1] = numbers_between(&self.at.rows.n_read, &self.at.rows.n_read + 1)

    def kept(self):
        """What it is at a pause, a dictionary; its arrays are those that it goes on with."""
        cdef span spans[2]
        self.spans_of(spans)
        return dict(numbers=serialised(spans, 2), sweeps=self.sweeps.kept(), w=self.best_w, v=self.best_v,
                    history=self.history(), seconds=seconds() - self.at.started)

    def take_back(self, dict kept):
        """At the pause where another, of the same problem on the same rows, was `kept`."""
        cdef dual_state *at = &self.at
        cdef span spans[2]
        self.spans_of(spans)
        restore(spans, 2, kept["numbers"])
        self.sweeps.take_back(kept["sweeps"])                        # a and w too
        self.best_w[:], self.best_v[:] = kept["w"], kept["v"]
        at.started = seconds() - kept["seconds"]
        free(at.history)
        at.history = NULL
        at.history_rows = at.history_room = 0
        at.history = copied(np.array(kept["history"], float).reshape(-1))
        at.history_rows = at.history_room = len(kept["history"])
        at.stage = PAUSED
