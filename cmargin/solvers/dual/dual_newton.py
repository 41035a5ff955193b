"""Newton's method on the face of the dual, for rows whose curvature over all columns costs much, without l1.

The dual of the hinge with C_i = s_i / (l2 N), in units of 1/l2, is a quadratic in a box,

    max over 0 <= a_i <= C_i of   sum a - |w|^2 / 2,     w = sum a_i y_i x_i,

whose slope in a_i is the deficit u_i = 1 - y_i <w, x_i>. Rows at a bound are settled; the others, the *face*, solve the
linear system K_FF d = u_F with K_FF = (y_i y_j <x_i, x_j>). Few rows are free, so both stages read few rows:

1. **Sweeps** find the face: one dual variable after the other goes to its own minimum, a Newton step in one unknown
   (Hsieh et al., ICML 2008), and settled rows are left out until the next look. The change of a whole sweep is then
   taken as one direction, with the exact step along it.
2. **Newton steps on the face**, where sweeps converge slowly and rows no longer change sides: conjugate gradients,
   scaled by |x_i|^2, one read of the face's rows an iteration. An iterate that meets a bound stops there, that row
   leaves the face and the gradients start again (Polyak 1969). Sweeps let rows back in.

Every row's part of the duality gap, C_i max(0, u_i) - a_i u_i >= 0, is known when it is read; a look at all rows
certifies when the sum is small enough. A free intercept b is the multiplier of sum a y = 0 (method of multipliers): it
moves as if it were penalised, lightly, around the last b: as the coefficient of a column of small constants.
"""

from time import perf_counter

import numpy as np

from cmargin._core.newton._certificate import ROUNDING, dual_value
from cmargin._core.rows._dual_looks import best_scale, best_shift, hinge, margins
from cmargin._core.rows._dual_sweeps import WISHES
from cmargin.solvers.low_rank.class_passes import class_streams
from cmargin.solvers.newton.parts import NO_PARTS

NEWTON_ENOUGH = 0.4            # of the gap wanted, or a tenth of the gap before: where a Newton step ends
SWEEPS_PER_LOOK = 12           # sweeps and Newton steps without a look at all rows, at least,
READS_PER_LOOK = 1.0           # reads, or the part of the last look's gap that the sweeps' has to fall to
FALLEN = 0.1
AGAIN = 0.5                    # of the gap wanted of the sweeps, after a look at it that did not certify
SLOW = 40                      # sweeps still needed at their rate from which on a Newton step is tried
HOPELESS = 4.0                 # times the reads it may take: it gives up where the sweeps' rate says that it needs more
TRIAL = 0.07                   # of these reads, after which a look on trial asks for a rate that is good enough
LARGEST_SCALE = 2.0            # of w at a look: a larger one would make rounding, in a w that should be 0, a solution
CG_ITERATIONS = 100            # of one Newton step,
RESTARTS = 20                  # and bounds met in it


class DualNewton:
    """One binary problem; `run` does the work, ``result`` can be looked at whenever it is left.

    Parameters
    ----------
    rows : DualRowPass
    problem : Problem
        l1 = 0, l2 > 0.
    settings : Settings
    result : Result
        ``w`` (m,), or (m + 1,) with an intercept, is overwritten.
    seed : int
        Of the order of the sweeps.
    w : array like ``result.w``, optional
        A warm start.
    enough_reads : float, optional
        Reads after which the status is "left": Newton's method on all columns had better go on.
    on_trial : bool, optional
        Leave far sooner where the gap does not fall fast enough.
    parts, way : Parts, tuple
        Of a checkpoint, and what it names this problem by.
    """

    def __init__(self, rows, problem, settings, result, seed=0, w=None, enough_reads=np.inf, on_trial=False,
                 parts=NO_PARTS, way=()):
        shared = rows.shared
        self.rows, self.settings, self.result = rows, settings, result
        self.gives_up, self.on_trial = enough_reads < settings.max_passes, on_trial
        self.limit, self.decay = enough_reads if self.gives_up else settings.max_passes, settings.smoothing_decay
        self.l2, self.bias = problem.l2, shared.bias
        self.free = problem.free is not None               # intercept without a penalty
        weight = np.abs(rows.code)
        self.upper = weight / (self.l2 * weight.sum())
        self.a = np.zeros(shared.n_rows)
        self.w = np.zeros(shared.n_features + 1)           # the last entry times `bias` is the intercept
        self.sweeps = rows.sweeps(self.upper, self.a, self.w, class_streams(seed, 1)[0], SLOW)
        self.on_face = 0
        self.parts, self.way = parts, way
        self.started = perf_counter()
        self.seconds = dict.fromkeys(("look", "system", "search"), 0.0)
        if w is not None:
            self.start_at(w)
        self.since = 0, self.spent, np.inf                 # sweeps since a look; reads and gap at it

    def start_at(self, w):
        """Dual variables from a primal point: the bounds that its deficits point to, times the best common factor."""
        self.w[:len(w)] = w
        if self.bias:
            self.w[-1] = self.rows.shared.multiplier(self.w, self.w[-1])
        u = self.rows.deficits(self.rows.shared.all_rows, self.w)
        self.keep_best(u, self.w, as_it_is=True)
        self.a[:] = np.where(u > 0, self.upper, 0.0)
        bias = self.w[-1]
        self.w[:] = 0.0
        self.rows.add(self.rows.shared.all_rows, self.a, self.w)
        square = self.w @ self.w
        shrink = min(1.0, self.a.sum() / square) if square > 0 else 1.0
        self.a *= shrink
        self.w *= shrink
        if self.free:
            self.w[-1] += bias

    # ------------------------------------------------------------ the loop

    def run(self):
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):      # numbers too large end as a gap of inf
            while self.result.status == "running":
                if self.parts.wants(self.way, self.spent):
                    self.parts.take(self.way, self.kept())
                since, read, gap = self.since
                wish, n_sweeps = self.sweep(SWEEPS_PER_LOOK - since % SWEEPS_PER_LOOK)
                since += n_sweeps
                if wish == WISHES["to give up"]:
                    self.limit = self.spent                # as far as it goes
                elif wish == WISHES["a Newton step"]:
                    self.newton_step(max(NEWTON_ENOUGH * self.sweeps.part * self.sweeps.enough,
                                         0.1 * self.sweeps.gap))
                worth_it = self.spent - read >= READS_PER_LOOK or self.sweeps.gap < FALLEN * gap
                if wish == WISHES["a look"] or (worth_it and since >= SWEEPS_PER_LOOK) or self.no_read_left() \
                        or self.late() or self.interrupted():
                    self.look()
                    self.sweeps.part *= AGAIN if wish == WISHES["a look"] else 1.0
                    since, read, gap = 0, self.spent, self.sweeps.gap
                self.since = since, read, gap
        return self.result

    def kept(self):
        """What it is between two sweeps, a dictionary; its arrays are those that it goes on with."""
        return {"result": self.result, "sweeps": self.sweeps.kept(), "reads": self.rows.reads, "limit": self.limit,
                "since": self.since, "on_face": self.on_face, "seconds": self.seconds,
                "elapsed": perf_counter() - self.started}

    def go_on_from(self, kept):
        """Where another, of the same problem on the same rows, was `kept`."""
        vars(self.result).update(vars(kept["result"]))
        self.sweeps.take_back(kept["sweeps"])              # a and w too
        self.rows.reads, self.limit, self.since = kept["reads"], kept["limit"], kept["since"]
        self.on_face, self.seconds = kept["on_face"], kept["seconds"]
        self.started = perf_counter() - kept["elapsed"]

    def hand_over(self):
        """What Newton's method on all columns may go on with."""
        return dict(decay=self.decay, started=self.started, spent=self.spent,
                    spent_seconds=tuple(self.seconds.values()))

    def certain(self):
        """Whether rounding, added up over the sweeps, is nothing beside the objective and the tolerance."""
        size = self.rows.shared.length * np.linalg.norm(self.w)
        return ROUNDING * size <= 1e-10 and ROUNDING * size * self.result.n_iter <= 0.01 * self.settings.tol

    def dual_variables(self):
        """0 <= a <= 1, balanced where the intercept is free."""
        a = self.rows.balanced(self.sweeps)[0] if self.free else self.a
        return a / np.where(self.upper > 0, self.upper, 1.0)

    def late(self):
        return perf_counter() > self.settings.deadline

    @property
    def spent(self):
        return self.rows.reads

    def reads_left(self):
        """Before another sweep and the look after it."""
        return self.limit - self.spent - self.sweeps.n_active / max(1, self.rows.shared.n_rows) - 1

    def no_read_left(self):
        return self.reads_left() < 0

    def too_slow(self):
        """Whether the tolerance costs too many reads at the rate at which the gap came down from 1."""
        return self.spent > TRIAL * self.limit \
            and self.spent * np.log(self.settings.tol) < self.limit * np.log(min(1.0, self.result.gap))

    # ------------------------------------------------------------ sweeps

    def sweep(self, at_most):
        """Sweeps for a tenth of a second or until something else is better; (one of WISHES, sweeps that ended)."""
        start = perf_counter()
        # CSR rows: reads from which on it is hopeless. Dense ones get more reads, and gaps that rise mislead
        hopeless = HOPELESS * self.limit if self.gives_up and not self.rows.shared.dense else np.inf
        answer = self.rows.sweep(self.sweeps, at_most, self.settings.tol, self.limit - self.spent - 1, hopeless)
        self.result.n_iter += answer[1]
        self.seconds["search"] += perf_counter() - start
        return answer

    # ------------------------------------------------------------ Newton steps

    def newton_step(self, target):
        """Conjugate gradients on the face until its rows' part of the gap is below ``target``."""
        start = perf_counter()
        face = np.sort(self.sweeps.active)
        u = self.rows.deficits(face, self.w)
        a, upper = self.a[face], self.upper[face]
        free = ((a > 0) | (u > 0)) & ((a < upper) | (u < 0))
        self.sweeps.after_step(self.solve_on(face[free], u[free], target))
        self.result.n_iter += 1
        self.seconds["system"] += perf_counter() - start

    def solve_on(self, face, r, target):
        """From the deficits r of the rows ``face``; leaves a and w at the point reached, returns its gap."""
        a, upper, square = self.a[face], self.upper[face], self.rows.shared.square[face]
        z, total, restarts = np.empty(len(face)), np.empty_like(self.w), 0
        rz, gap = self.rows.cg_pass(face, upper, a, square, 0.0, self.w, r, z, total)
        p, t = z.copy(), total.copy()                      # direction in a, and sum p y x
        left = CG_ITERATIONS
        while left > 0 and gap > target and rz > 0 and not self.late() and not self.no_read_left():
            hit = np.zeros(len(face), np.uint8)
            done, rz, gap, met = self.rows.cg_steps(face, upper, a, square, self.w, p, t, r, z, total, hit, target, rz,
                                                    allowed=self.reads_left(), at_most=left)
            left -= done
            if not met:
                continue
            stay = hit == 0
            hit = ~stay
            self.rows.add(face[hit], -z[hit], total)       # these rows leave, and the directions begin anew
            self.a[face] = a
            face, r, z, a, upper, square = (x[stay] for x in (face, r, z, a, upper, square))
            p, t, rz = z.copy(), total.copy(), r @ z
            restarts += 1
            if restarts > RESTARTS:
                break
        self.a[face] = a
        return gap

    # ------------------------------------------------------------ what a look at all rows gives

    def look(self):
        start = perf_counter()
        u = self.rows.deficits(self.rows.shared.all_rows, self.w)
        self.keep_best(u, self.w)
        self.keep_bound()
        self.on_face = self.sweeps.choose(u)
        self.seconds["look"] += perf_counter() - start
        self.record()
        self.judge()

    def keep_best(self, u, w, as_it_is=False):
        """The objective at the best multiple of w, with the best intercept where that is free; keeps the best point.

        Where a plane divides the data and l2 is small, C_i is so large that what w lacks in length costs more than |w|.
        """
        shift = best_shift(self.rows.code, u) if self.free else 0.0
        penalised = w[:-1] if self.free else w
        square, z = penalised @ penalised, margins(self.rows.code, u, shift)
        scale = 1.0 if as_it_is else min(LARGEST_SCALE, best_scale(self.upper, z, square))
        objective = self.l2 * (scale**2 * square / 2 + hinge(self.upper, z, scale))
        result = self.result
        if objective < result.objective:
            result.objective = objective
            result.w = scale * w[:len(result.w)]
            if self.bias:
                result.w[-1] = scale * (self.rows.shared.intercept(w) + shift)

    def keep_bound(self):
        """The dual value at a, with a free intercept at a balanced a near it."""
        a, w = self.a, self.w
        if self.free:
            a, w = self.rows.balanced(self.sweeps)
        v = self.l2 * w[None]
        self.result.dual = max(self.result.dual, dual_value(np.vstack([v, 0 * v]), self.l2 * a.sum(), 0.0, self.l2, 0.0,
                                                            None))

    def record(self):
        result, seconds = self.result, self.seconds
        result.width = 0.0
        result.passes = self.rows.reads
        result.history.append([result.passes, perf_counter() - self.started, seconds["look"], seconds["system"],
                               seconds["search"], result.objective, result.gap, 1.0, 0.0,
                               int(np.count_nonzero(result.w)), self.on_face])
        if self.settings.tell is not None:
            self.settings.tell(result)

    def interrupted(self):
        return self.settings.between is not None and self.settings.between() == "stopped"

    def asked_to_stop(self):
        return (self.settings.stop is not None and self.settings.stop()) or self.interrupted()

    def judge(self):
        result, settings = self.result, self.settings
        if result.gap <= settings.tol:
            result.status = "converged"
        elif self.asked_to_stop():
            result.status = "stopped"
        elif self.late():
            result.status = "max_time"
        elif self.on_trial and self.too_slow():
            result.status = "left"
        elif self.no_read_left():
            result.status = "left" if self.gives_up else "max_passes"
