"""The multinomial objective over rows in shards: the driver's sums, and what every shard does with its own rows.

Scores of the rows stay with them. What is asked is a method of `SoftmaxRowPass` by name; what it returns is added up.
"""

import uuid

import numpy as np
import scipy.sparse as sp

from cmargin._core.rows._rows import Rows
from cmargin._core.rows._softmax_rows import SoftmaxRows
from cmargin.data.arrays import dense
from cmargin.data.memory.row_pass import SMALL
from cmargin.data.softmax_sums import SoftmaxSums


class ShardedSoftmaxPass(SoftmaxSums):
    """`SoftmaxPass` over all shards of a `ShardedSource` that has `total`; scores of rows stay with the shards.

    ``met``: of the classes that labels are places in, those that have rows; ``shares`` of these.
    """

    per_call = 1

    def __init__(self, source, met, shares, intercept):
        self.source, self.shares, self.intercept, self.n_classes = source, shares, intercept, len(met)
        self.n_rows, self.n_features, self.sparse = source.n_rows, source.n_features, source.sparse
        self.n_columns, self.entries = self.n_features + intercept, source.entries
        self.single = source.dtype == np.float32
        self.n_threads = source.n_threads if source.entries * self.n_classes >= SMALL else 1
        self.reads, self.key = 0.0, source.new_key()
        self.between_slices = lambda: None               # called between two questions; may raise
        source.call("open_softmax", self.key, met, intercept)
        none = np.empty((0, self.n_features), source.dtype)
        self.kernel = SoftmaxRows(Rows(sp.csr_matrix(none) if self.sparse else none), np.empty(0, np.int64),
                                  np.empty(0), self.n_classes, bool(intercept), 1, self.n_threads, self.n_rows)
        self.set_dtype(source.dtype)

    def __del__(self):
        self.source.gone.append(self.key)

    def set_dtype(self, dtype):
        self.dtype = np.dtype(dtype)
        self.scores = self.probs = self.change = np.empty((0, 0), self.dtype)

    def keep(self, dtype):
        self.set_dtype(dtype)
        self.total(0, "keep", self.dtype)

    @property
    def precise(self):
        return self.dtype == np.float64

    def total(self, length, method, *arguments):
        self.between_slices()
        return self.source.total(length, "softmax_sums", self.key, length, method, *arguments)

    # ---- a checkpoint

    def kept(self):
        """The name that every rank keeps its rows' scores by, and their type."""
        name = uuid.uuid4().hex
        self.source.call("keep_pass", self.key, name)
        return {"name": name, "dtype": self.dtype}

    def take_back(self, kept):
        self.set_dtype(kept["dtype"])
        self.source.call("take_back_pass", self.key, kept["name"])

    # ---- for preconditioners

    def some(self, subset, what):
        """``what`` of the rows ``subset``, ascending places among all."""
        return [part for part in self.source.call("softmax_rows", self.key, subset, what) if part is not None]

    def weight_of(self, subset):
        return np.concatenate(self.some(subset, "weight"))

    def probs_of(self, subset):
        return np.concatenate(self.some(subset, "probs"))

    def copy_of(self, subset):
        parts = self.some(subset, "rows")
        return sp.vstack(parts, "csr") if self.sparse else np.concatenate(parts)

    def dense_copy_of(self, subset):
        return dense(self.copy_of(subset))

    def in_single_precision(self):
        return self.dense_copy_of(np.arange(self.n_rows))


class SoftmaxShard:
    """The rows of a `Shard`, as the driver's `ShardedSoftmaxPass` asks for them by calls."""

    def open_softmax(self, key, met, intercept):
        if self.source.n_rows:
            place = np.zeros(met[-1] + 1, np.int64)
            place[met] = np.arange(len(met))
            label = place[np.minimum(self.labels.label, met[-1])]    # rows of a class that weighs nothing do not either
            rows = self.source.softmax_pass(label, self.weights, len(met), intercept, self.n_threads)
            rows.between_slices = self.break_off or rows.between_slices
            self.passes[key] = rows

    def softmax_sums(self, key, length, method, *arguments):
        """Sums over its rows of a method of `SoftmaxRowPass`."""
        found = getattr(self.passes[key], method)(*arguments) if self.source.n_rows else None
        return np.zeros(length) if found is None or length == 0 else found

    def softmax_rows(self, key, subset, what):
        """Its part of the rows ``subset`` of all, or their weights or probabilities; None: it has none of them."""
        own = subset[(subset >= self.first) & (subset < self.first + self.source.n_rows)] - self.first
        if not len(own):
            return None
        rows = self.passes[key]
        return {"rows": rows.copy_of, "weight": rows.weight_of, "probs": rows.probs_of}[what](own)
