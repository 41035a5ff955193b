"""Steps to the optimum of the rows near the hinge, beside straight lines for all others.

Far from the hinge the loss of a row is a straight line, s a u with a = 0 or 1, and near the optimum hardly any row
crosses the hinge any more. So an eighth of the rows, those that would cross first (`data/working_set.py`), is enough to
find the rest of the way:

    (l2/2) |w|^2 - <linear, w> + (1/N) sum over these rows of s max(0, u) + (1/N) sum of the others' s a,
    linear = (1/N) sum of the others' s a y x,

a small problem of the same kind, minimised by the same Newton steps, whose evaluations cost an eighth of a read. It
lies below the true one, so that its bound is a true bound; and where no other row crosses the hinge its minimum is the
true one. One evaluation over all rows says whether that is so, and where the lines touch next. Rows that did cross
belong to it from then on, which makes the next small problem true beyond where this one was; the lines stay where they
are until a lower point is found.

Where the objective is higher at that minimum than before, as too many did cross, the line there is searched.

A small problem can lie too low to say anything: all rows that hold some direction are far, on lines that lead down for
ever. Its minimum is then below the bound that is known already, and is not evaluated over all rows. The first time this
happens, a sample of the far rows, each weighted for those it stands for, enters by the hinge too. That gives no bound,
but leads to a point near which the next small problem gives one; until then its minimum, once it is found, says how far
from the end that point is.
"""

import numpy as np

SHARE = 0.115                  # part of the rows that are in the working set
MOST = 0.3                     # the same with the rows that crossed, at most
SEED = 29                      # of the sample of far rows that enter by the hinge, where the working set leads nowhere
MOST_READS = 30                # reads of the working set for one step, at most
DEEPER = 0.3                   # tolerance of the small problem over that of the whole
NARROWER = 0.3                 # first smoothing width over the mean distance of the working set from the hinge
BETTER = 0.5                   # part of objective less bound: a step that leaves more of it has failed
FAILURES = 2                   # failed steps, one after the other, after which there is none
ROUGHLY = 0.001                # least tolerance of a small problem with a sample of far rows
UNSURE = 0.003                 # part of the objective by which the minimum of such a problem may be off


class WorkingSetSteps:
    """The steps of one problem, whose driver asks for them.

    ``sides``: the part of the positive rows and of the negative ones that a sample of the far rows is to hold.
    """

    def __init__(self, sides):
        self.sides = sides
        self.first, self.bends = True, False     # first small problem; a sample of far rows is asked for
        self.failures, self.gap, self.objective, self.distance = 0, np.inf, np.inf, np.inf
        self.anchor = self.lines = None          # where the straight lines touch, and the sums of their dual variables
        self.posted = self.small = None          # the request for the working set, and the solver at work on it,
        self.reads = 0.0                         # and what it took to find it
        # the last minimum; what a sample that bends leaves of the objective
        self.last_minimum, self.open = None, np.inf

    def step(self, newton):
        """Propose a step to ``newton``, whose rows were just evaluated, or end these steps; False: ask again later."""
        if self.small is not None:
            if self.small.asks is not None:
                self.small.attend()
            if self.small.asks is not None:
                return False
            w, may_bend, self.first = self.minimum(newton), self.first, False
            if w is not None:
                newton.propose(w)
                return True
            self.posted = self.rows(newton, False, (*self.sides, SEED)) if may_bend else None
        elif self.posted is None:
            newton.store(newton.result)
            self.posted = self.next_rows(newton)
        if self.posted is None:
            newton.source.forget_working_set()
            newton.end_working_set(self.open)
            return True
        if self.posted.answer is not None:
            self.begin_small(newton, *self.posted.answer)
        return False

    def kept(self):
        """Between two steps."""
        return {name: value for name, value in vars(self).items() if name not in ("posted", "small")}

    def take_back(self, kept):
        vars(self).update(kept)

    def next_rows(self, newton):
        """The request for the working set; None where steps have failed, or where no read is left for one."""
        result, source = newton.result, newton.source
        moved, gap = result.objective < self.objective, result.objective - result.dual
        if not self.bends:                       # which says nothing of the bound
            self.failures = 0 if gap <= BETTER * self.gap else self.failures + 1
        elif self.last_minimum is not None:
            self.open = max(abs(result.objective - self.last_minimum), UNSURE * result.objective)
        self.gap, self.objective = min(self.gap, gap), result.objective
        if self.failures == FAILURES or newton.reads + (1 + SHARE) * source.share > newton.settings.max_passes:
            return None
        if moved:
            self.anchor, self.lines = newton.point, newton.last_dual_sums()
        return self.rows(newton, moved)

    def rows(self, newton, moved, sample=None):
        self.bends, self.last_minimum = sample is not None, None
        return newton.source.gather_working_set(SHARE, MOST, moved, newton.width, sample)

    def begin_small(self, newton, part, vectors, totals, distance, reads):
        """Let a solver begin with the small problem."""
        settings, result = newton.settings, newton.result
        most = min(MOST_READS * part.share, settings.max_passes - newton.reads - newton.source.share - reads)
        self.distance = min(self.distance, distance)
        tol = max(DEEPER * settings.tol, ROUGHLY if self.bends else 0.0)
        asked = settings.for_working_set(tol, most)
        small = type(newton)(part, newton.problem, asked, None, NARROWER * self.distance, self.anchor)
        small.linearise_others(self.lines[0] - vectors, self.lines[1] - totals, newton.source.total_weight,
                               np.nan if self.bends else result.dual,
                               result.objective * (1 - DEEPER * settings.tol))
        small.begin()
        self.small, self.reads, self.posted = small, reads, None

    def minimum(self, newton):
        """Of the small problem, (n_columns,), if it says something."""
        small, self.small = self.small, None
        small.store(small.result)
        newton.offer(*((None, None, None) if self.bends else small.dual_point()), small.result.passes + self.reads)
        found = small.result
        self.last_minimum = found.objective if found.status == "converged" else None
        says_something = found.objective > newton.result.dual and (self.bends or found.status != "left")
        return found.w if says_something else None
