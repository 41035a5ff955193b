"""Many problems of the squared hinge on the same rows, in batches whose problems go side by side in every read."""

from time import perf_counter

from cmargin._core.newton._asking import advance_all
from cmargin._runtime.fit_slots import give_way
from cmargin.solvers import cost
from cmargin.solvers.newton.slices import SLICE


def most_steps(max_passes):
    """Of a problem side by side with others."""
    return int(cost.TRIAL_SHARE * max_passes)


def solve_together(batches, n_threads, between, hear):
    """Bring all problems to their ends; ``batches``: [() -> `Batch`].

    ``between()`` is asked between two slices, and an answer ends the work. ``hear(batch)``: the problems of that
    `Batch` are at their ends; what follows of them, another one or None.
    """
    at_work, waiting = [], iter(batches)
    while True:
        while len(at_work) < n_threads and (make := next(waiting, None)) is not None:
            at_work.append(make())
        if not at_work or between():
            return
        advance_all([batch.worker for batch in at_work], perf_counter() + SLICE, n_threads)
        following = [hear(batch) if batch.worker.ended else batch for batch in at_work]
        at_work = [batch for batch in following if batch is not None]
        give_way()
