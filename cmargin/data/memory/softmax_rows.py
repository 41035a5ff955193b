"""Rows in memory, their classes and weights: what a solver of the multinomial objective may ask of them.

All answers are means over rows by weight, float64, and the same bits for any number of threads. Weights V are
(n_columns, n_classes): features first, then the intercepts where there are any.
"""

import numpy as np

from cmargin._core.rows._softmax_rows import SoftmaxRows, class_curvature
from cmargin._runtime.aligned import contiguous
from cmargin.data.arrays import dense
from cmargin.data.memory.row_pass import SMALL

RISK, RISK_OF_SCORES, CURVATURE, PRODUCTS, INTERCEPTS = range(5)
SUM_NUMBERS = 1 << 22        # float64 numbers in the gradients of all blocks: 32 MB
BLOCK_ROWS = 32              # of a block at least, where there are more than four: sums of all its columns are folded
SLICE_FLOPS = 1e10           # between two checks for Ctrl-C and of the clock: about a tenth of a second on two cores
COPY_ROWS = 1024             # rows of a subset or of the probabilities copied at a time


class SoftmaxRowPass:
    """Rows with a multinomial problem posed on them, and their scores at one point.

    ``labels`` (n_rows,) int64 of 0 .. n_classes - 1; ``weight`` (n_rows,) float64 of mean 1, or None for ones. Half a
    read is one product of the two that a gradient takes.
    """

    def __init__(self, source, labels, weight, n_classes, intercept, n_threads):
        self.source, self.labels, self.n_classes, self.intercept = source, labels, n_classes, intercept
        self.n_rows, self.n_features, self.sparse = source.n_rows, source.n_features, source.sparse
        self.n_columns, self.entries = self.n_features + intercept, source.entries
        self.single = source.dtype == np.float32
        self.weight = np.ones(self.n_rows) if weight is None else contiguous(weight, np.float64)
        # a Newton step of few numbers is mostly threads that wait for each other, above all on a busy machine
        n_threads = n_threads if source.entries * n_classes >= SMALL else 1
        self.n_threads, self.reads = n_threads, 0.0
        self.between_slices = lambda: None       # called about ten times a second; may raise
        rows = self.entries * (8 if self.sparse else 1) // self.n_columns        # of equal work, were they dense
        most = min(SUM_NUMBERS // (self.n_columns * n_classes), rows // BLOCK_ROWS)
        blocks = int(np.clip(2 ** int(np.log2(max(1, most))), 4, 32))            # so that threads can divide them
        self.kernel = SoftmaxRows(source.rows, contiguous(labels, np.int64), self.weight, n_classes,
                                  bool(intercept), blocks, n_threads)
        slices = max(1, int(4.0 * source.entries * n_classes / SLICE_FLOPS))
        self.per_call = max(1, -(-self.kernel.n_blocks // slices) // n_threads) * n_threads
        self.keep(source.dtype)

    def keep(self, dtype):
        """Room for scores of ``dtype``, the type products are made in from now on."""
        self.dtype = np.dtype(dtype)
        shape = (self.n_rows, self.n_classes)
        self.scores, self.probs, self.change = (np.empty(shape, self.dtype) for _ in range(3))

    @property
    def precise(self):
        return self.dtype == np.float64

    def _run(self, what, V, scores, probs):
        kernel, dtype = self.kernel, scores.dtype if scores.size else probs.dtype
        V = np.ascontiguousarray(V, dtype=dtype)
        for lo in range(0, kernel.n_blocks, self.per_call):
            self.between_slices()
            kernel.run(what, V, scores, probs, lo, min(lo + self.per_call, kernel.n_blocks))
        self.reads += {RISK: 1.0, INTERCEPTS: 0.0}.get(what, 0.5)
        if what == PRODUCTS:
            return None
        of_blocks = kernel.gradients[:, self.n_features * self.n_classes:] if what == INTERCEPTS else kernel.gradients
        gradient = of_blocks.sum(axis=0).reshape(-1, self.n_classes) / self.n_rows
        return kernel.sums[:, 0].sum() / self.n_rows, kernel.sums[:, 1].sum() / self.n_rows, gradient

    def risk(self, V):
        """Scores, probabilities, risk and (n_columns, n_classes) gradient at V; a read, half of V without weights."""
        what = RISK
        if not np.any(V[:self.n_features]):
            self.scores[:] = V[-1] if self.intercept else 0.0
            what = RISK_OF_SCORES
        value, _, gradient = self._run(what, V, self.scores, self.probs)
        return value, gradient

    def look(self, V):
        """Risk, mean entropy of the probabilities and gradient at V, whose scores are kept; a read."""
        return self._run(RISK, V, self.scores, self.probs)

    def look_after(self, step):
        """The same after a ``step`` along the change of the scores that `scores_at` has left; half a read."""
        self.scores += step * self.change
        return self._run(RISK_OF_SCORES, np.zeros((self.n_columns, self.n_classes)), self.scores, self.probs)

    def exact(self, V, least=1e-14, n_corrections=4):
        """Everything in float64, at V with its intercepts moved to where their gradient vanishes; one read.

        Returns that V (n_columns, n_classes), the risk, the entropy of the probabilities, averaged over rows, and the
        gradient. ``least``: part of a class's share that a gradient may be left with. Scores and probabilities of all
        rows are those of that V then, in the type they are kept in.
        """
        V = np.array(V, dtype=np.float64)
        scores, probs = self.scores, self.probs
        if not self.precise:
            scores, probs = (np.empty(self.scores.shape) for _ in range(2))
        none, zeros = np.empty((0, 0)), np.zeros((self.n_columns, self.n_classes))
        self._run(PRODUCTS, V, scores, none)
        if self.intercept:
            share = np.bincount(self.labels, self.weight, self.n_classes) / self.n_rows
            inverse = None
            for _ in range(n_corrections):
                slope = self._run(INTERCEPTS, zeros, scores, probs)[2][-1]
                if np.max(np.abs(slope) / share) < least:
                    break
                inverse = np.linalg.pinv(self.class_curvature(probs), hermitian=True) if inverse is None else inverse
                step = -inverse @ slope
                if not np.max(np.abs(step)) < 1.0:       # far from the optimum: the certificate balances by mixing
                    break
                V[-1] += step
                scores += step
        found = self._run(RISK_OF_SCORES, zeros, scores, probs)
        if not self.precise:
            self.scores[:], self.probs[:] = scores, probs
        return V, *found

    def scores_at(self, V):
        """(n_rows, n_classes) scores at V in place of ``change``; half a read."""
        self._run(PRODUCTS, V, self.change, np.empty((0, 0), self.dtype))
        return self.change

    def class_sums(self):
        total = np.zeros((self.n_features, self.n_classes))
        for lo in range(0, self.n_rows, COPY_ROWS):
            self.between_slices()
            part = slice(lo, lo + COPY_ROWS)
            own = np.zeros((len(self.labels[part]), self.n_classes), self.source.dtype)
            own[np.arange(len(own)), self.labels[part]] = self.weight[part]
            total += self.source.X[part].T @ own
        self.reads += 0.5
        return total / self.n_rows

    # ---- for preconditioners

    def class_curvature(self, probs, stride=1):
        return class_curvature(probs, self.weight, stride)

    def copy_of(self, subset):
        """float32 copy of the rows of ``subset``, CSR or dense in C order."""
        return self.source.take(subset, np.float32)

    def dense_copy_of(self, subset):
        return dense(self.copy_of(subset))

    def in_single_precision(self):
        """All rows, dense: themselves where they are float32 in C order, else a copy."""
        X = self.source.X.astype(np.float32) if self.sparse else self.source.X    # no dense float64 copy on the way
        return np.ascontiguousarray(dense(X), dtype=np.float32)
