"""The multinomial optimum with l1, alone or beside l2, or with norms of columns: Newton steps on columns that count.

    P(W, b) = (1/N) sum_i s_i [ln sum_c exp(h_c(x_i)) - h_{y_i}(x_i)] + (l2/2) |W|^2 + l1 Omega(W)

Omega is sum_cj |w_cj|, or sum_j |w_.j|, the norms of each column's weights in all classes. The dual value of
`multinomial.certificate` is E - Omega's and l2's conjugate at V: for every t from 0 to 1

    P >= t E - sum soft(t v, l1)^2 / (2 l2),      without l2: t E, where no t |v| is above l1,

of entries v of V, or of their norms by column, as t of the way from the labels to the probabilities keeps t E of the
entropy, which is concave. A round reads all rows for that and lists columns: those with a weight, and those whose
gradient is above l1 and above half the largest of them. On them alone it makes Newton steps, whose quadratic model is
`_core.rows._column_model`.
"""

import numpy as np

from cmargin._core.penalties._penalties import bound
from cmargin._runtime.checkpoint import NO_CHECKPOINTER, Resumable
from cmargin._runtime.clock import RunClock, TimeUp
from cmargin.data.memory.softmax_rows import SLICE
from cmargin.solvers.history import add_entry
from cmargin.solvers.multinomial.certificate import dual_point
from cmargin.solvers.multinomial.newton import BALANCED, MOST_PRODUCTS, SHARPER, TINY, VAIN, Result

ARMIJO = 1e-4                # Part of the decrease that the slope foresees which a step must bring.
SHORTEST = 1e-6              # Length of a Newton step below which it is given up.
ROUNDING = 1e-14             # Relative error of an objective, which is no increase.
MOST_READS = 200             # Sweeps and products of one quadratic model, at most.
MOST_STEPS = 30              # Newton steps on the columns of one round, at most.


class ColumnRun(Resumable):
    """As `newton.Run`; its state between rounds is a point and what is known of it."""

    made_again = ("settings", "rows", "posed", "part", "clock")

    def __init__(self, source, labels, weight, n_classes, settings):
        self.settings, self.clock = settings, RunClock(settings.deadline)
        self.posed = source, labels, weight, n_classes, settings.fit_intercept, settings.n_threads
        self.rows = source.softmax_pass(*self.posed[1:])
        self.rows.between_slices = self.clock.watch
        self.rows.keep(np.float64)
        self.share = self.rows.shares
        self.V = self.no_weights()
        self.class_sums = self.part = None
        self.reads, self.products, self.lowest, self.dual, self.vain, self.sharper = 0.0, 0, np.inf, 0.0, 0, 1.0
        self.result = self.result_at(self.V)

    def no_weights(self):
        V = np.zeros((self.rows.n_columns, len(self.share)))
        if self.settings.fit_intercept:
            V[-1] = np.log(self.share) - np.log(self.share).mean()
        return V

    def begin_at(self, W, bias):
        self.V[:self.rows.n_features] = W.T
        if self.settings.fit_intercept:
            self.V[-1] = bias - bias.mean()
        self.result = self.result_at(self.V)

    def result_at(self, V):
        n = self.rows.n_features
        return Result(V[:n].T.copy(), V[-1].copy() if self.settings.fit_intercept else np.zeros(V.shape[1]))

    def go(self, on_step, checkpointer=NO_CHECKPOINTER):
        if checkpointer.found is not None:
            self.clock.go_on_from(checkpointer.found.pop("clock"))
            self.go_on_from(checkpointer.found)
        while not self.evaluate(on_step):
            self.reached = np.inf
            try:
                self.round(self.listed())
            except (TimeUp, KeyboardInterrupt):
                self.keep()
                raise
            checkpointer.offer(self.result.reads, lambda: {**self.snapshot(), "clock": self.clock})

    # ------------------------------------------------------------ of all columns

    def penalty(self, W):
        s = self.settings
        sizes = np.sqrt(np.sum(W * W, axis=1)) if s.grouped else np.abs(W)
        return s.l2 / 2 * np.sum(W * W) + s.l1 * sizes.sum()

    def dual_value(self, entropy, gradient, class_sums):
        s = self.settings
        total, v = dual_point(entropy, gradient, class_sums, self.share, s.fit_intercept)
        sizes = np.sqrt(np.sum(v * v, axis=1)) if s.grouped else np.ravel(v)
        return bound(total, np.ascontiguousarray(sizes), s.l2, s.l1)

    def evaluate(self, on_step):
        """Evaluate all rows at the point, with the best intercepts; whether the fit ends here."""
        rows, s, result = self.rows, self.settings, self.result
        before = rows.reads
        self.V, risk, entropy, self.gradient = rows.exact(self.V, BALANCED * min(s.tol, 1e-4))
        if self.class_sums is None:
            self.class_sums = rows.class_sums()
        self.reads += rows.reads - before
        W = self.V[:rows.n_features]
        value = risk + self.penalty(W)
        if not np.isfinite(value):
            raise ValueError("X holds values so large that sums over its rows are not finite; scale the features.")
        if self.lowest == np.inf and np.any(W) and value > np.log(len(self.share)):
            # a start worse than no weights: single precision may see no way from there, as probabilities are 0 or 1
            self.V = self.no_weights()
            return self.evaluate(on_step)
        self.dual = max(self.dual, self.dual_value(entropy, self.gradient, self.class_sums))
        gap_before, fell = result.gap, self.lowest - value > ARMIJO * s.tol * value
        if value <= self.lowest:
            self.lowest = value
            point = self.result_at(self.V)
            result.W, result.bias = point.W, point.bias
        result.objective, result.reads = self.lowest, self.reads
        result.gap = max(0.0, self.lowest - self.dual) / max(self.lowest, TINY)
        add_entry(result.history, (-1, self.reads, self.clock.seconds, self.lowest, result.gap, self.products))
        result.stopped = "tol" if result.gap <= s.tol else "max_newton"
        if result.stopped == "tol":
            return True
        if on_step is not None and self.clock.asked_to_stop(on_step, result):
            result.stopped = "callback"
            return True
        # without l2 a gap says little until the last column is listed, however much each of them gains
        self.vain = 0 if fell or result.gap <= 0.9 * gap_before else self.vain + 1
        if self.vain >= VAIN:
            result.stopped = "rounding"
        return self.vain >= VAIN

    def keep(self):
        """Leave the point that a round had come to when time or an interrupt ended it."""
        result = self.result
        if self.reached < result.objective:
            point = self.result_at(self.V)
            result.W, result.bias, result.objective = point.W, point.bias, self.reached
            result.gap = max(0.0, self.reached - self.dual) / max(self.reached, TINY)

    def listed(self):
        """Columns of the next round, ascending."""
        s, W = self.settings, self.V[:self.rows.n_features]
        used, G = np.any(W != 0, axis=1), self.gradient[:self.rows.n_features]
        steep = np.sqrt(np.sum(G * G, axis=1)) if s.grouped else np.abs(G).max(axis=1)
        steep[used] = 0.0
        more = np.flatnonzero(steep > max(s.l1, steep.max() / 2))
        # where no column is left out, it is the accuracy on those listed that is wanting
        self.sharper = self.sharper * SHARPER if not len(more) and self.vain else 1.0
        if 2 * (len(more) + np.count_nonzero(used)) > len(used):
            return np.arange(len(used))
        return np.union1d(np.flatnonzero(used), more)

    # ------------------------------------------------------------ of listed columns

    def round(self, columns):
        """Newton steps on these columns; V is then where they have led."""
        s, result = self.settings, self.result
        source, *posed = self.posed
        if self.part is None or not np.array_equal(self.part.columns, columns):
            self.part = None
            self.part = source.class_columns(columns, *posed, s.grouped)
            self.part.between_slices = self.clock.watch
        part, share = self.part, len(columns) / self.rows.n_features
        places = np.append(columns, self.rows.n_features) if s.fit_intercept else columns
        V, sums, before = self.V[places], self.class_sums[columns], part.reads
        n = part.n_features
        risk, entropy, gradient = part.look(V)
        value, enough, most = risk + self.penalty(V[:n]), None, MOST_READS
        for _ in range(MOST_STEPS):
            gap = value - self.dual_value(entropy, gradient, sums)
            enough = self.sharper * max(s.tol / 3 * value, SHARPER * gap) if enough is None else enough
            if gap <= enough:
                break
            D = self.direction(part, V, gradient, most)
            t = self.step(part, V, D, value, gradient)
            result.n_newton += 1
            if t == 0 and most == 1:
                break
            if t == 0:
                most = 1                 # a sweep; where the model is flat, more is single precision's rounding
                continue
            V = V + t * D
            risk, entropy, gradient = part.look_after(t)
            value = risk + self.penalty(V[:n])
            self.V[places], self.reached = V, value
        self.reads += share * (part.reads - before)

    def direction(self, part, V, gradient, most):
        s = self.settings
        part.begin_model(V, gradient, s.l2, s.l1, SHARPER, MOST_PRODUCTS)
        while not part.model.go(SLICE, most):
            self.clock.watch()
        self.products += part.model.n_reads
        return part.direction()

    def step(self, part, V, D, value, gradient):
        """How far to go along D by Armijo's rule, where what rounding takes from an objective is no rise; 0: not at
        all."""
        n, rounding = part.n_features, ROUNDING * value
        before = self.penalty(V[:n])
        change = np.sum(gradient * D) + self.penalty(V[:n] + D[:n]) - before
        part.scores_at(D)
        t = 1.0
        while change < rounding and t > SHORTEST:
            risk = part.kernel.line(t, part.scores, part.change)[0]
            if risk + self.penalty(V[:n] + t * D[:n]) <= value + ARMIJO * t * change + rounding:
                return t
            t /= 2
        return 0.0
