"""Run mini-batch passes of the multinomial risk in slices short enough that a Ctrl-C or a deadline is soon seen."""

import numpy as np

from cmargin._core.sgd import _softmax_sgd, _softmax_walkers
from cmargin._core.util._arrays import total
from cmargin._runtime.blas_threads import single_threaded_blas
from cmargin.solvers import cost

SLICE_FLOPS = 2e9          # between two checks for Ctrl-C: a tenth of a second on one slow core
CLASS_BLOCK, COLUMN_BLOCK = 128, 256
COLUMN_SLICE, MOST_SLICES = 48, 16       # of few classes: columns that one thread moves at least, and how many slices
SPARSE_CLASS_BLOCK = 64    # of CSR rows with a scaled tail, whose columns are one block: two threads for a hundred
SPARSE_COST = 4            # flops that cost as much as one of an entry of a CSR row, which are not a BLAS's
OFFSET_ENTRIES = 1 << 20   # scores of weights outside the basis held at a time: 8 MB
FLOPS_PER_THREAD = 1.5e6   # of a batch: with less, two threads gain a tenth at most, and wait beside busy programs
LARGE = 1 << 20            # numbers of whitened rows: with fewer, their lengths are one thread's work
NONE, NO_STEPS, NO_OFFSET = np.empty(0, np.int64), np.empty(0), np.empty((0, 0))


def even_blocks(total, most):
    """Size of the fewest blocks of at most ``most`` that are as even as can be."""
    count = -(-total // most)
    return -(-total // count)


class SoftmaxPasses:
    """Passes over whitened rows ``Z`` (n, width) of an ``inverse`` that has a centre.

    Of each row ``order`` (n,) int64 has the row of X, ``truth`` (n,) int64 the class, ``weight`` (n,) float64 or None.
    """

    def __init__(self, source, inverse, Z, order, truth, weight, n_classes, batch):
        self.source, self.inverse, self.Z, self.order, self.truth = source, inverse, Z, order, truth
        self.weight = np.zeros(0) if weight is None else weight
        self.batch, self.n_classes = batch, n_classes
        tail_inverse = float(inverse.tail_inverse[0])
        tail = tail_inverse > 0
        self.flops = 4.0 * batch * n_classes * Z.shape[1]
        if tail:
            self.flops += SPARSE_COST * 4.0 * batch * n_classes * source.row_numbers(1)
        self.n_threads = source.n_threads if self.flops > FLOPS_PER_THREAD else 1
        by_rows = _softmax_sgd.rows_pay(n_classes, Z.shape[1], tail, Z.dtype == np.float32)
        self.class_block, self.column_block = self._blocks(by_rows, tail)
        self.mean_length = min(float(inverse.mean_square[0]), _softmax_sgd.LARGEST_LENGTH)
        self.loss, self.wrong = np.empty(len(Z)), np.empty(len(Z))       # of rows met
        centre_dot = source.scores(inverse.centre[None, :], 0.0, order).ravel() if tail else np.zeros(0)
        self.kernel = _softmax_sgd.Batches(source.rows, order, truth, self.weight, centre_dot,
                                           float(inverse.centre @ inverse.centre), inverse.low_sign, tail_inverse,
                                           self.loss, self.wrong)
        n_parts = 1 if by_rows else -(-Z.shape[1] // self.column_block)
        parts = np.empty((2, n_parts, batch, n_classes), Z.dtype)
        self.parts_size = parts.size
        self.length = self.kernel.whitened(Z, parts, self.class_block, self.column_block, self.mean_length,
                                           source.n_threads if Z.size > LARGE else 1)
        self.looked = None, 0                    # weights whose scores are there, and how many batches they knew
        self.seen = None                         # those scores

    def _blocks(self, by_rows, tail):
        """Classes and columns of a block; where rows are multiplied in groups columns are only moved in blocks, and
        the bits are the same in any."""
        width = self.Z.shape[1]
        if by_rows:
            return self.n_classes, -(-width // max(1, min(width // COLUMN_SLICE, MOST_SLICES * (self.n_threads > 1))))
        class_block = even_blocks(self.n_classes, SPARSE_CLASS_BLOCK if tail else CLASS_BLOCK)
        return class_block, width if tail else even_blocks(width, COLUMN_BLOCK)

    def run(self, weights, batches, step, bias_rate, n_train, held=NONE):
        """Step through ``batches`` (their first rows) with steps ``step`` (n_batches,).

        Then the batches ``held`` are scored by the mean of the weights, so that `scores` needs no call of its own.
        """
        per_slice = max(1, int(SLICE_FLOPS / self.flops))
        if weights.base is not None:
            per_slice = max(1, min(per_slice, OFFSET_ENTRIES // (self.batch * self.n_classes)))
        k, self.looked = 0, (None, 0)
        while k < len(batches):
            last = min(len(batches), k + per_slice)
            scored = held if last == len(batches) and self._in_one_call(weights) else NONE
            self.seen = self._room(scored)
            self._slice(weights, batches[k:last], scored, step[k:last], bias_rate, n_train, self.seen)
            weights.n_done += last - k
            k = last
            if len(scored):
                self.looked = weights, weights.n_done
            self.source.between_chunks()

    def walk(self, weights, batches, step, bias_rate, n_train, n):
        """Step through ``batches`` by n walkers side by side, with n times the ``step``, see `_softmax_walkers`.

        No row carries a tail, and no weights are outside the basis.
        """
        dtype, (_, _, each) = self.Z.dtype, cost.WALKER_SIZES
        homes, intercepts = np.empty((n, 2, weights.U.size), dtype), np.empty((n, weights.bias.size))
        parts = np.empty((n, self.parts_size), dtype)
        per_slice = n * each * max(1, int(SLICE_FLOPS / (self.flops * n * each)))
        steps = np.full(min(per_slice, len(batches)), n * step)
        self.looked = None, 0
        for k in range(0, len(batches), per_slice):
            part, w = batches[k:k + per_slice], weights
            self.kernel.weights(w.U, w.U_mean, w.V, w.V_lag, w.shift, w.bias, w.stride, w.n_done)
            with single_threaded_blas():
                w.n_done += _softmax_walkers.walk(self.kernel, part, n_train, steps[:len(part)], bias_rate,
                                                  each, homes, intercepts, parts,
                                                  self.source.n_threads)
            self.source.between_chunks()

    def _in_one_call(self, weights):
        return weights.base is None and len(weights.shift) == 0

    def met(self, n):
        """Sums over the first n rows, each as it was when its batch was last met: weighted loss, error, weight."""
        return total(self.loss[:n]), total(self.wrong[:n]), self.weight_of(0, n)

    def weight_of(self, first, last):
        return total(self.weight[first:last]) if len(self.weight) else float(last - first)

    def scores(self, weights, held, last, mean=None):
        """(n, n_classes) scores of the rows of ``held`` to the last by the mean of ``weights``."""
        if self.looked[0] is not weights or self.looked[1] != weights.n_done:
            mean, self.seen = weights.mean(self.inverse, copy=False) if mean is None else mean, self._room(held)
            self._slice(mean, NONE, held, NO_STEPS, 0.0, held[0], self.seen)
        seen, self.seen, self.looked = self.seen[:last - held[0]], None, (None, 0)           # not to be held on to
        return seen

    def _room(self, scored):
        return np.empty((len(scored) * self.batch, self.n_classes), self.Z.dtype)

    def _slice(self, weights, batches, scored, step, bias_rate, n_train, scores_out):
        w, offset = weights, NO_OFFSET
        if w.base is not None:
            offset = self._offset(w.base, np.concatenate([batches, scored]), len(self.Z))
        self.kernel.weights(w.U, w.U_mean, w.V, w.V_lag, w.shift, w.bias, w.stride, w.n_done)
        with single_threaded_blas():
            self.kernel.run(batches, scored, n_train, offset, step, bias_rate, self.n_threads, scores_out)

    def _offset(self, base, batches, n):
        """Scores of ``base`` for the rows of the batches before row ``n``, less its score of the centre."""
        out = np.zeros((len(batches) * self.batch, self.n_classes))
        for k, lo in enumerate(batches):
            rows = self.order[lo:min(lo + self.batch, n)]
            out[k * self.batch:k * self.batch + len(rows)] = self.source.scores(base, -base @ self.inverse.centre, rows)
        return out
