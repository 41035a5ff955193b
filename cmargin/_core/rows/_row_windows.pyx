"""Rows that do not fit into memory, with the state of one binary problem: a row pass that sees them window by window.

What is kept of every row stays, for all rows, in one place; the pointers of the job are moved to where a window begins,
and the sums of a window are for whoever adds them up.
"""

from cmargin._core.rows._evaluate cimport pass_begin_window, pass_end_evaluation
from cmargin._core.rows._row_blocks cimport pass_job
from cmargin._core.rows._row_pass cimport RowBlocks
from cmargin._core.rows._rows cimport Rows


cdef class RowWindows(RowBlocks):
    """`RowBlocks` whose rows `see` brings; until then, and after `see_all`, there are none to read.

    Products and objectives are summed over the rows that are here; `line` and `margins`, which read none, are of all.
    ``none``: `Rows` of the same kind as all, but none of them. ``window`` > 0: rows of a window, at most.
    """

    cdef Rows none
    cdef object window                       # owner of the rows that the pointers see

    def __init__(self, Rows none, const double[::1] signed_weight, bint intercept, int n_threads, Py_ssize_t window,
                 const double[::1] offset=None):
        super().__init__(none, signed_weight, intercept, n_threads, None, window, offset)
        self.none = none

    cdef int move_to(self, Py_ssize_t first, Rows X, Py_ssize_t n_rows) except -1:
        cdef pass_job *job = &self.rows.job
        cdef Py_ssize_t by = first - self.rows.first
        self.rows.first, job.n_rows, job.source.X = first, n_rows, X.view
        if self.n_rows == 0:
            return 0
        job.signed_weight, job.slack, job.change = job.signed_weight + by, job.slack + by, job.change + by
        if job.offset != NULL:
            job.offset = job.offset + by
        if job.dual != NULL:
            job.dual, job.dual_next = job.dual + by, job.dual_next + by
        if job.norms != NULL:
            job.norms = job.norms + by
        return 0

    def see(self, Rows X, Py_ssize_t first):
        """From here on ``X``, rows ``first`` .. of the data, is what is read and summed over."""
        if X.dtype != self.none.dtype or X.view.n_features != self.n_features or X.sparse != self.none.sparse \
                or first < 0 or first + X.view.n_rows > self.n_rows:
            raise ValueError("a window of other rows")
        self.move_to(first, X, X.view.n_rows)
        self.window = X

    def see_all(self):
        """What is kept of the rows is once more that of all; the window is let go."""
        self.move_to(0, self.none, self.n_rows)
        self.window = None

    def evaluate(self, direction, step, line_width, width, curvature_floor, with_hessian=True, move=None):
        raise TypeError("rows that come window by window: begin_evaluation, evaluate_window, end_evaluation")

    def begin_evaluation(self, const double[::1] direction, double step, double line_width, double width,
                         double curvature_floor, int with_hessian=True, move=None):
        """An evaluation in windows: `see` and `evaluate_window` for each, in any order, then `end_evaluation`."""
        self.see_all()
        self.rows.windowed = True
        self.ask_for(direction, step, line_width, width, curvature_floor, with_hessian, move)

    def evaluate_window(self):
        """What `RowBlocks.evaluate` returns, summed over the rows that are here."""
        pass_begin_window(&self.rows)
        return self.run_parts()

    def end_evaluation(self):
        self.see_all()
        pass_end_evaluation(&self.rows)

    def line(self, step, width):
        self.see_all()
        return RowBlocks.line(self, step, width)

    def margins(self):
        self.see_all()
        return RowBlocks.margins(self)

    def dual_variables(self):
        self.see_all()
        return RowBlocks.dual_variables(self)
