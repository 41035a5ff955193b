"""Rows in memory, their classes and weights: what a solver of the multinomial objective may ask of them.

All answers are float64, and the same bits for any number of threads.
"""

from dataclasses import dataclass

import numpy as np

from cmargin._core.rows._softmax_rows import SoftmaxRows, class_curvature
from cmargin._runtime.aligned import contiguous
from cmargin.data.arrays import dense
from cmargin.data.memory.row_pass import SMALL
from cmargin.data.softmax_sums import (
    CURVATURE,
    INTERCEPTS,
    NO_GRADIENT,
    NO_SUMS,
    PRODUCTS,
    RISK,
    RISK_OF_SCORES,
    SoftmaxSums,
)

SUM_NUMBERS = 1 << 22        # float64 numbers in the gradients of all blocks: 32 MB
BLOCK_ROWS = 32              # of a block at least, where there are more than four: sums of all its columns are folded
SLICE = 0.1                  # seconds of compiled steps between two such checks
SLICE_FLOPS = 1e10           # between two checks for Ctrl-C and of the clock: about a tenth of a second on two cores
COPY_ROWS = 1024             # rows of a subset or of the probabilities copied at a time


class SoftmaxRowPass(SoftmaxSums):
    """Rows with a multinomial problem posed on them, and their scores at one point.

    ``labels`` (n_rows,) int64 of 0 .. n_classes - 1; ``weight`` (n_rows,) float64, of mean 1 over all rows that there
    are, or None for ones. Half a read is one product of the two that a gradient takes.
    """

    def __init__(self, source, labels, weight, n_classes, intercept, n_threads):
        self.source, self.n_classes, self.intercept = source, n_classes, intercept
        self.labels = contiguous(labels, np.int64)
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
        self.kernel = SoftmaxRows(self.rows_of_kernel(), self.labels, self.weight, n_classes, bool(intercept), blocks,
                                  n_threads)
        slices = max(1, int(4.0 * source.entries * n_classes / SLICE_FLOPS))
        self.per_call = max(1, -(-self.kernel.n_blocks // slices) // n_threads) * n_threads
        self.keep(source.dtype)

    def rows_of_kernel(self):
        return self.source.rows

    def keep(self, dtype):
        """Room for scores of ``dtype``, the type products are made in from now on."""
        self.dtype = np.dtype(dtype)
        shape = (self.n_rows, self.n_classes)
        self.scores, self.probs, self.change = (np.empty(shape, self.dtype) for _ in range(3))
        self.in_double = None                    # scores and probabilities of an `exact`, where these are not precise

    @property
    def precise(self):
        return self.dtype == np.float64

    @property
    def shares(self):
        return np.bincount(self.labels, self.weight, self.n_classes) / self.n_rows

    def total(self, length, method, *arguments):
        return getattr(self, method)(*arguments)

    # ---- sums over the rows

    def run(self, what, V, scores, probs):
        """A task of the kernel; float64 sums of risk, entropy and gradient, none of PRODUCTS."""
        kernel, dtype = self.kernel, scores.dtype if scores.size else probs.dtype
        V = np.ascontiguousarray(V, dtype=dtype)
        for lo in range(0, kernel.n_blocks, self.per_call):
            self.between_slices()
            kernel.run(what, V, scores, probs, lo, min(lo + self.per_call, kernel.n_blocks))
        if what == PRODUCTS:
            return NO_SUMS
        of_blocks = kernel.gradients[:, self.n_features * self.n_classes:] if what == INTERCEPTS else kernel.gradients
        return np.concatenate([kernel.sums[:, :2].sum(axis=0), of_blocks.sum(axis=0)])

    def no_weights(self):
        return np.zeros((self.n_columns, self.n_classes))

    def sums_at(self, V):
        what = RISK
        if not np.any(V[:self.n_features]):
            self.scores[:] = V[-1] if self.intercept else 0.0
            what = RISK_OF_SCORES
        return self.run(what, V, self.scores, self.probs)

    def sums_after(self, step):
        """Those after a ``step`` along the change of the scores."""
        self.scores += self.dtype.type(step) * self.change
        return self.run(RISK_OF_SCORES, self.no_weights(), self.scores, self.probs)

    def curved(self, D):
        return self.run(CURVATURE, D, self.scores, self.probs)[2:]

    def begin_line(self, D):
        return self.run(PRODUCTS, D, self.change, NO_GRADIENT.astype(self.dtype))

    def line_sums(self, step):
        """Risk, slope and curvature."""
        return self.n_rows * np.array(self.kernel.line(step, self.scores, self.change))

    def begin_exact(self, V):
        if not self.precise:
            self.in_double = tuple(np.empty(self.scores.shape) for _ in range(2))
        return self.run(PRODUCTS, V, self.exact_ones[0], NO_GRADIENT)

    @property
    def exact_ones(self):
        return self.in_double or (self.scores, self.probs)

    def intercept_slopes(self):
        return self.run(INTERCEPTS, self.no_weights(), *self.exact_ones)[2:]

    def shift_exact(self, step):
        self.exact_ones[0][...] += step
        return NO_SUMS

    def end_exact(self):
        found = self.run(RISK_OF_SCORES, self.no_weights(), *self.exact_ones)
        if not self.precise:
            self.scores[:], self.probs[:] = self.exact_ones
        self.in_double = None
        return found

    def class_curvature(self, stride=1, exact=False):
        return class_curvature(self.exact_ones[1] if exact else self.probs, self.weight, stride)

    def curvature_sums(self, stride, exact):
        weight = self.weight[::stride].sum()
        return np.append(weight * self.class_curvature(stride, exact).ravel(), weight)

    def sums_by_class(self):
        total = np.zeros((self.n_features, self.n_classes))
        for lo in range(0, self.n_rows, COPY_ROWS):
            self.between_slices()
            part = slice(lo, lo + COPY_ROWS)
            total += self.rows_at(part).T @ self.indicator(part)
        return total.ravel()

    def rows_at(self, part):
        return self.source.X[part]

    def indicator(self, part):
        """Weights of rows in the columns of their classes."""
        own = np.zeros((len(self.labels[part]), self.n_classes), self.source.dtype)
        own[np.arange(len(own)), self.labels[part]] = self.weight[part]
        return own

    def scores_at(self, V):
        """(n_rows, n_classes) scores at V in place of ``change``; half a read."""
        self.reads += 0.5
        self.begin_line(V)
        return self.change

    # ---- Newton steps without the interpreter

    def go(self, step):
        return step.go(SLICE)

    def go_on(self, newton, most):
        return newton.go(SLICE, most)

    # ---- a checkpoint

    def kept(self):
        return {"scores": self.scores, "probs": self.probs}

    def take_back(self, kept):
        self.keep(kept["scores"].dtype)
        self.scores[:], self.probs[:] = kept["scores"], kept["probs"]

    def state(self):
        return SoftmaxState(self.labels, self.weight, self.n_classes, self.intercept,
                            (self.scores, self.probs, self.change), self.in_double or ())

    # ---- for preconditioners

    def weight_of(self, subset):
        return self.weight[subset]

    def probs_of(self, subset):
        return self.probs[subset].astype(np.float32, copy=False)

    def copy_of(self, subset):
        """float32 copy of the rows of ``subset``, CSR or dense in C order."""
        return self.source.take(subset, np.float32)

    def dense_copy_of(self, subset):
        return dense(self.copy_of(subset))

    def in_single_precision(self):
        """All rows, dense: themselves where they are float32 in C order, else a copy."""
        X = self.source.X.astype(np.float32) if self.sparse else self.source.X    # no dense float64 copy on the way
        return np.ascontiguousarray(dense(X), dtype=np.float32)


@dataclass
class SoftmaxState:
    """What a `SoftmaxRowPass` is but for its rows."""

    labels: np.ndarray
    weight: np.ndarray
    n_classes: int
    intercept: bool
    kept: tuple                  # scores, probabilities and change of the scores
    in_double: tuple             # scores and probabilities, within an `exact` of rows in float32

    @property
    def nbytes(self):
        return sum(array.nbytes for array in (self.labels, self.weight, *self.kept, *self.in_double))

    def opened(self, source, n_threads, reads_only):
        """A `SoftmaxRowPass` over its rows; unless it only reads, with copies of what it may write to."""
        rows = SoftmaxRowPass(source, self.labels, self.weight, self.n_classes, self.intercept, n_threads)
        shared = reads_only and self.kept[0].flags.writeable         # as the kernels take no others
        rows.dtype = self.kept[0].dtype
        rows.scores, rows.probs, rows.change = self.kept if shared else map(np.array, self.kept)
        rows.in_double = (self.in_double if shared else tuple(map(np.array, self.in_double))) or None
        return rows
