"""The multinomial objective over rows that may be anywhere: what is asked of them all, and what their sums come to.

Rows that are here have scores, their softmax and the scores' change along a direction (`SoftmaxRowPass`); every method
of theirs that is named below returns its sums over these rows as one float64 array, so that sums of places can be
added. Weights V are (n_columns, n_classes): features first, then the intercepts where there are any.
"""

import numpy as np

RISK, RISK_OF_SCORES, CURVATURE, PRODUCTS, INTERCEPTS, LINE, MOVE = range(7)      # tasks of the kernel, in its order
NO_SUMS, NO_GRADIENT = np.empty(0), np.empty((0, 0))


class SoftmaxSums:
    """Means over all rows by weight, as `SoftmaxPass` (`data/source.py`) describes them.

    A subclass has ``n_rows``, ``n_features``, ``n_columns``, ``n_classes``, ``intercept``, ``shares`` (n_classes,) of
    the classes, ``reads``, and `total`.
    """

    def total(self, length, method, *arguments):
        """The sum over all places of the ``length`` numbers that a method of their rows returns."""
        raise NotImplementedError

    def risk(self, V):
        """Risk and (n_columns, n_classes) gradient at V, whose scores are kept; a read, half of V without weights."""
        value, _, gradient = self.look(V)
        return value, gradient

    def look(self, V):
        """Risk, mean entropy of the probabilities and gradient at V; as `risk`."""
        self.reads += 1.0 if np.any(V[:self.n_features]) else 0.5
        return self.means("sums_at", V)

    def look_after(self, step):
        """The same after a ``step`` along the scores' change that is at hand; half a read."""
        self.reads += 0.5
        return self.means("sums_after", step)

    def exact(self, V, least=1e-14, n_corrections=4):
        """Everything in float64, at V with its intercepts moved to where their gradient vanishes; one read.

        Returns that V (n_columns, n_classes), the risk, the entropy of the probabilities, averaged over rows, and the
        gradient. ``least``: part of a class's share that a gradient may be left with. Scores and probabilities of all
        rows are those of that V then, in the type they are kept in.
        """
        V = np.array(V, dtype=np.float64)
        self.total(0, "begin_exact", V)
        inverse = None
        for _ in range(n_corrections if self.intercept else 0):
            slope = self.total(self.n_classes, "intercept_slopes") / self.n_rows
            if np.max(np.abs(slope) / self.shares) < least:
                break
            inverse = np.linalg.pinv(self.class_curvature(1, True), hermitian=True) if inverse is None else inverse
            step = -inverse @ slope
            step -= step.mean()                      # rounding alone: all intercepts together move nothing
            if not np.max(np.abs(step)) < 1.0:       # far from the optimum: the certificate balances by mixing
                break
            V[-1] += step
            self.total(0, "shift_exact", step)
        self.reads += 1.0
        return V, *self.means("end_exact")

    def class_sums(self):
        """(n_features, n_classes) of (1/N) sum_i s_i x_i over the rows of a class; half a read."""
        self.reads += 0.5
        total = self.total(self.n_features * self.n_classes, "sums_by_class")
        return total.reshape(self.n_features, self.n_classes) / self.n_rows

    def class_curvature(self, stride=1, exact=False):
        """(n_classes, n_classes) mean of diag(p) - p p' over every ``stride``-th row of a place, in an `exact` of the
        probabilities that it has."""
        *A, weight = self.total(self.n_classes**2 + 1, "curvature_sums", stride, exact)
        return np.reshape(A, (self.n_classes, self.n_classes)) / weight

    def means(self, method, *arguments):
        """Risk, entropy and gradient, of sums that a method returns in this order."""
        mean = self.total(2 + self.n_columns * self.n_classes, method, *arguments) / self.n_rows
        return mean[0], mean[1], mean[2:].reshape(-1, self.n_classes)

    # ------------------------------------------------------------ a Newton step, pass by pass

    def go(self, step):
        """The next pass of a `MultinomialStep`; whether it is done."""
        return step.told(*self.answer(step))

    def go_on(self, newton, most):
        """The next pass of a `MultinomialNewton`; what its `told` returns."""
        return newton.told(*self.answer(newton.step))

    def answer(self, step):
        """What the rows answer that the step asks: the arguments of its `told`."""
        of_gradient = self.n_columns * self.n_classes
        if step.asks == LINE:
            return self.total(3, "line_sums", step.step), NO_GRADIENT
        if step.asks == PRODUCTS:
            self.total(0, "begin_line", step.searched)
            return NO_SUMS, NO_GRADIENT
        if step.asks == CURVATURE:
            return NO_SUMS, self.total(of_gradient, "curved", step.searched).reshape(-1, self.n_classes)
        total = self.total(2 + of_gradient, "sums_after", step.step)
        return total[:1], total[2:].reshape(-1, self.n_classes)
