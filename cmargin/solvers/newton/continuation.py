"""Newton's method on the smoothed hinge while the smoothing width goes to zero (SmSVM): what Python does of it.

The steps are compiled (``_core/newton/_driver.pyx``); here is what happens between two slices of a tenth
of a second: a callback is called, the clock is read.
"""

import numpy as np

from cmargin._core.newton._bound import feasible
from cmargin._core.newton._memory import Newton
from cmargin.solvers import cost
from cmargin.solvers.newton.slices import InSlices
from cmargin.solvers.newton.working_set import WorkingSetSteps
from cmargin.solvers.one_class import row_sum
from cmargin.solvers.prices import too_wide
from cmargin.solvers.result import Result


def limits():
    """Where compiled steps go another way, by the names of `newton_limits` in ``_core/newton/_state.pxd``."""
    rows, rows_discontinuous = cost.L1_PATH_UP_TO_ROWS_PER_COLUMN
    return {"l1_block_columns": cost.L1_BLOCK_UP_TO_COLUMNS, "most_products": cost.MOST_PRODUCTS,
            "trial_steps": cost.TRIAL_STEPS, "trial_share": cost.TRIAL_SHARE,
            "l2_path_step": cost.L2_PATH_FROM_STEP, "l2_path_gap": cost.L2_PATH_GAP,
            "l1_path_rows": rows, "l1_path_rows_discontinuous": rows_discontinuous}


class ContinuationNewton(InSlices, Newton):
    """One binary problem on its way; `run` does the work, `result` is complete whenever it is left."""

    working_set = None                     # `WorkingSetSteps`, if any

    def __init__(self, rows, problem, settings, result=None, width=None, w=None, before=None, products=0,
                 or_leave=False, sampled=None, scale=None, near=None):
        """``before``: the solver of a subset, or of the dual, whose time and reads count and whose w this one got.
        ``products``: in a step, that are tried in place of a factor, see `Newton`; 0: none.
        ``sampled``: a `Sampled`, for products in place of these or after them. ``scale``: (n_columns,) curvature of
        the columns about where it begins, where ``before`` does not know it. ``near``: (n_columns, n_columns) curvature
        with l2 that is about that of w, where a fit with another penalty has left it; or None.
        """
        w = np.zeros(rows.n_columns) if w is None else w
        self.problem, self.settings = problem, settings
        self.result = Result(np.array(w, float)) if result is None else result
        rows.set_loss(problem.loss)
        given = {"decay": settings.smoothing_decay, **({} if before is None else before.hand_over())}
        if np.size(given.get("column_scale")) != rows.n_columns:
            given["column_scale"], given["curvature"] = scale, None       # of other columns, or none
        if near is not None:
            given |= {"column_scale": np.diag(near), "curvature": near, "is_near": True}
        by_cg = settings.linear_solver == "cg" or products > 0 or sampled is not None
        if settings.linear_solver not in ("cg", "cholesky"):
            by_cg = by_cg or (not problem.penalty.has_kinks and too_wide(rows.n_rows, rows.n_columns))
        super().__init__(rows, problem, settings, self.result, w, settings.smoothing if width is None else width,
                         limits=limits(), by_cg=by_cg, products_limit=products, or_leave=or_leave,
                         sampled=sampled, **given)
        if problem.one_class is not None:
            self.take_one_class(*problem.one_class.numbers, row_sum(rows))

    def attend(self):
        if self.asks == "measure":
            self.take_mean(self.source.mean_measure())
        elif self.asks == "working_set" and not self.left:
            if not self.uses_working_set:        # the next evaluation is the first of these
                self.begin_working_set()
                self.go_on()
            elif self.working_set.step(self):
                self.go_on()
            else:
                self.posted = self.working_set.posted
            if self.asks == "pause":             # a checkpoint may be due there
                return
        super().attend()                         # there may be no read left after that one

    def let_use_working_set(self, sides, now):
        """Steps to the optimum of the working set: from the first evaluation, or once Newton steps have come close."""
        self.working_set = WorkingSetSteps(sides)
        self.may_use_working_set = True
        if now:
            self.begin_working_set()

    def begin_working_set(self):
        self.source.foresee_working_set()
        if self.asks == "working_set":
            self.source.measure_rows(1 / np.maximum(self.curvature_of_columns, 1e-300))
        super().begin_working_set()

    def state(self):
        uses_working_set = {"working_set": self.working_set.kept()} if self.uses_working_set else {}
        return {**super().state(), **uses_working_set}

    def go_on_from(self, kept):
        super().go_on_from(kept)
        if self.uses_working_set:
            self.working_set.take_back(kept["working_set"])

    @property
    def worker(self):
        """The solver of the working set while it is at work."""
        small = None if self.working_set is None else self.working_set.small
        return self if small is None else small

    def advance(self, until):
        if self.worker is not self:
            self.worker.advance(until)
        else:
            super().advance(until)

    def take_answer(self):
        """Of rows elsewhere; the working set is for `attend`."""
        if self.asks != "working_set":
            super().take_answer()
        elif self.posted.answer is not None:
            self.posted = None

    def certify_with(self, status, a):
        """`certify` with dual variables ``a`` (n_rows,) found elsewhere, or None, before these rows are evaluated."""
        problem = self.problem
        if a is None or not problem.penalty.has_bound:
            self.certify(status)
            return
        if problem.one_class is not None:
            self.certify(status, 0.0, problem.one_class.dual_vector(self.source, a), self.source.share)
            return
        n = self.source.total_weight
        vectors, totals, gain = self.source.dual_sums(a, problem.loss, problem.free is not None)
        bound = feasible(vectors / n, totals[0] / n, totals[1] / n, problem.free, [part / n for part in gain])
        self.certify(status, *bound, reads=self.source.share)
