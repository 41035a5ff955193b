"""Many problems of the squared hinge on the same rows, in batches whose problems go side by side in every read."""

from time import perf_counter

from cmargin._core.newton._asking import advance_all
from cmargin._runtime.fit_slots import give_way
from cmargin.solvers import cost
from cmargin.solvers.newton.slices import SLICE


def solve_together(rows, positives, tol, max_passes, n_threads, between=lambda: None, hear=lambda proven, lo, hi: None):
    """`Proven` of all problems; ``rows``: a data source's `lane_rows`; ``positives``: (n, n_problems) CSC.

    ``between()`` is asked between two slices, and an answer ends the work. ``hear(proven, lo, hi)``: problems lo ..
    hi - 1 are at their end; of others the objective is infinite.
    """
    most = int(min(cost.MOST_PRODUCTS, cost.TRIAL_SHARE * max_passes))
    proven, waiting = rows.batches(positives, tol, most)
    at_work, waiting = [], iter(waiting)
    while True:
        while len(at_work) < n_threads and (make := next(waiting, None)) is not None:
            at_work.append(make())
        if not at_work or between():
            return proven
        advance_all(at_work, perf_counter() + SLICE, n_threads)
        for batch in at_work:
            if batch.ended:
                hear(proven, *batch.problems)
        at_work = [batch for batch in at_work if not batch.ended]
        give_way()
