"""Run stochastic passes over all classes in slices short enough that a Ctrl-C or a deadline is soon seen."""

import numpy as np

from cmargin._core.losses._losses import LOSS_IDS
from cmargin._core.sgd import _class_pass, _class_sgd, _refreshed_sgd, _theory_sgd
from cmargin._runtime.blas_threads import single_threaded_blas
from cmargin._runtime.workspace import aligned_rows
from cmargin.solvers.per_class import SLICE_NUMBERS, STEP_OVERHEAD, worthwhile_threads

LIST_ENTRIES = 1 << 21  # visits drawn at a time: 16 MB
SLICE_BLOCK = 64  # steps that a slice is a multiple of


class ClassPasses:
    """Passes of every class over its list.

    ``row_weight``: (n_rows,) float64 array, or None; ``streams``: (n_classes, 4) uint64 array, the state of every
    class's random stream, which goes on from pass to pass.
    """

    def __init__(self, source, lists, row_weight, loss, streams):
        self.source, self.lists, self.streams = source, lists, streams
        self.row_weight = np.zeros(0) if row_weight is None else row_weight
        self.loss = LOSS_IDS[loss]
        self.threads = self.most_threads = min(source.n_threads, max(1, lists.n_classes))
        self.taken = np.zeros((self.most_threads, source.n_rows), np.uint8)

    def _batches(self):
        """Yield (first class, offsets): runs of classes whose lists fit into LIST_ENTRIES, one class at least."""
        ends = np.concatenate([[0], np.cumsum(self.lists.lengths)])
        lo = 0
        while lo < self.lists.n_classes:
            hi = max(lo + 1, int(np.searchsorted(ends, ends[lo] + LIST_ENTRIES, side="right")) - 1)
            yield lo, ends[lo : hi + 1] - ends[lo]
            lo = hi

    def run(self, take_steps, numbers_per_step, lists=None):
        """One pass: draw every list, then ``take_steps(visits, first, last)`` slice by slice, of `Visits`."""
        if lists is not None:
            self._wake(lists[0][-1] * numbers_per_step)
            self._in_slices(take_steps, numbers_per_step, 0, *lists)
            return
        self._wake(self.lists.lengths.sum() * numbers_per_step)
        for class_lo, offsets in self._batches():
            self._in_slices(take_steps, numbers_per_step, class_lo, offsets, self.drawn(class_lo, offsets))

    def pass_into(self, sums):
        """The `ClassPass` whose ``sums`` (n_classes, 3) of loss, errors and weight are added to."""
        return _class_pass.ClassPass(self.source.rows, self.row_weight, self.loss, sums)

    def _wake(self, numbers):
        """Use as many threads as gain time where so many numbers are read."""
        self.threads = worthwhile_threads(self.most_threads, numbers)

    def drawn(self, class_lo, offsets):
        """The visits of classes from ``class_lo`` on, whose lists begin at ``offsets``."""
        lists, visits = self.lists, np.empty(max(int(offsets[-1]), 1), np.int64)
        _class_sgd.draw_lists(lists.positives, lists.starts, lists.n_negatives, self.streams, self.taken, class_lo,
                              offsets, visits, self.threads)
        return visits

    def _in_slices(self, take_steps, numbers_per_step, class_lo, offsets, visits):
        n_drawn, longest = len(offsets) - 1, int(np.diff(offsets).max())
        # Whole blocks, and never from the thread count: where a slice ends shows in the bits of a refreshed pass (rows
        # whitened together) and of a theory pass (scores of the subset summed up anew)
        per_slice = max(1, int(SLICE_NUMBERS / numbers_per_step / n_drawn / SLICE_BLOCK)) * SLICE_BLOCK
        visits = _class_pass.Visits(class_lo, offsets, visits)
        for first in range(0, longest, per_slice):
            take_steps(visits, first, min(first + per_slice, longest))
            self.source.between_chunks()

    def plain(self, Z, inverse, weights, step, bias_rate, lists=None):
        """Pass over whitened rows; returns sums (n_classes, 3): loss, errors, weight.

        ``lists``: offsets and visits of all classes, drawn before; None: those of a pass, drawn now.
        """
        sums = np.zeros((self.lists.n_classes, 3))
        work = aligned_rows((self.most_threads, 2, Z.shape[1]), Z.dtype)
        by = weights.as_weights_of(self.pass_into(sums), inverse, bias_rate)

        def take_steps(visits, first, last):
            _class_sgd.run_steps(by, visits, first, last, step, Z, work, self.threads)

        self.run(take_steps, Z.shape[1] + STEP_OVERHEAD, lists)
        return sums

    def refreshed(self, inverse, weights, step, bias_rate, lists=None):
        """Pass with an inverse per class, or a new shared one: rows are whitened when visited; as `plain`."""
        sums, d, k = np.zeros((self.lists.n_classes, 3)), self.source.n_features, inverse.rank
        by = weights.as_weights_of(self.pass_into(sums), inverse, bias_rate)
        factor = inverse.factor.astype(self.source.dtype)
        work = np.empty((self.most_threads, _refreshed_sgd.work_size(d, k, inverse.width)), self.source.dtype)

        def take_steps(visits, first, last):
            with single_threaded_blas():
                _refreshed_sgd.run_refreshed_steps(by, visits, first, last, step, inverse.eigenvectors, factor,
                                                   inverse.tail_root, weights.base, work, self.threads)

        self.run(take_steps, d * (k + 1) / 4 + STEP_OVERHEAD, lists)
        return sums

    def theory(self, Z, inverse, weights, subset_offsets, subset, curvature, bias_rate):
        """Pass with the step of SLND theorem 2; ``subset``: visits that its sums run over, class by class."""
        sums, longest = np.zeros((self.lists.n_classes, 3)), max(1, int(np.diff(subset_offsets).max()))
        by = weights.as_weights_of(self.pass_into(sums), inverse, bias_rate)
        work = aligned_rows((self.most_threads, 2, longest), float)
        dense = np.empty((self.most_threads, self.source.n_features if inverse.low_sign < 0 else 0), Z.dtype)

        def take_steps(visits, first, last):
            _theory_sgd.run_theory_steps(by, visits, first, last, curvature, Z, subset_offsets, subset, dense, work,
                                         self.threads)

        self.run(take_steps, (Z.shape[1] + 10) * (longest + 1) + STEP_OVERHEAD)
        return sums
