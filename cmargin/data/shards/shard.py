"""Rows in one of several shards, and how they answer what the driver of all shards asks (`shards/row_pass.py`).

A driver's questions about a problem are answered by sums (`shards/request.py`). What is asked a few times a problem are
calls of a shard's methods by name, with every shard's answer for itself.
"""

from functools import cached_property

import numpy as np

from cmargin.data.failure import Failure, Interrupted
from cmargin.data.memory.row_pass import SMALL
from cmargin.data.memory.shared_start import losses_at, some_places, spaced
from cmargin.data.shards.folds import FoldLabels, FoldOfShards
from cmargin.data.shards.request import add_up, n_sums
from cmargin.data.shards.softmax_rows import SoftmaxShard

STATE = 2                      # numbers before the sums: shards that failed, and that were interrupted


class Shard(SoftmaxShard):
    """The rows of one shard, a `MemorySource`, and what it says of them. All methods below `what_failed` are calls.

    ``labels`` has ``signed_weight(c, weights)`` (n_rows,) of every problem, ``sample(rows)``, ``order()``,
    ``columns()``; of a regression ``offset_of(c)`` (n_rows,) and ``losses_at_zero(c)`` besides the first.
    ``weights`` (n_rows,) are of mean 1 over all shards, ``first`` is the place of the first row among
    those of all, and ``where`` what errors say of it: "on rank 1".
    """

    interrupted, break_off = False, None             # whether a Ctrl-C came; called between two slices of an evaluation
    file = None                                      # a rank's, for checkpoints

    def __init__(self, source, labels, weights, first, n_threads, where, number=0):
        self.source, self.labels, self.weights, self.first = source, labels, weights, first
        self.where, self.number = where, number
        self.n_threads = n_threads if source.entries >= SMALL else 1
        self.passes, self.works, self.failure = {}, {}, None

    # ------------------------------------------------------------ answering

    def called(self, method, arguments):
        try:
            return getattr(self, method)(*arguments)
        except Interrupted as interrupted:
            return interrupted
        except Exception as error:
            return Failure(error).at(self.where)

    def reply(self, kind, key, asked):
        """The state, and what a pass sums, which are zeros where there is trouble."""
        rows = self.passes.get(key)
        n_columns = self.source.n_features + 1 if rows is None else rows.n_columns
        return self.part(n_sums(kind, asked, n_columns), lambda out: add_up(kind, asked, rows, out))

    def part_of(self, length, method, *arguments):
        """The state, and the ``length`` numbers that a call brings."""
        def write(out):
            out[:] = getattr(self, method)(*arguments)

        return self.part(length, write)

    def part(self, length, write):
        part = np.zeros(STATE + length)
        try:
            write(part[STATE:])
        except Interrupted:
            part[:] = 0
            part[1] = 1
        except Exception as error:
            self.failure = Failure(error).at(self.where)
            part[:] = 0
            part[0] = 1
        part[1] = part[1] or self.interrupted
        return part

    def what_failed(self):
        return self.failure

    # ------------------------------------------------------------ passes

    def open_pass(self, key, c, intercept):
        offset = self.labels.offset_of(c) if getattr(self.labels, "has_offsets", False) else None
        rows = self.source.row_pass(self.labels.signed_weight(c, self.weights), intercept=intercept,
                                    n_threads=self.n_threads, offset=offset)
        rows.first, rows.between_slices = self.first, self.break_off
        self.passes[key] = rows
        return self.about(key)

    def sample(self, key, of, *arguments):
        rows = self.passes[of]
        self.passes[key], read = rows.gather_sample(*arguments)
        return (*self.about(key), read * rows.n_rows)

    def chosen_rows(self, key, *arguments):
        """The same rows, their signed weights and offsets, to be read elsewhere; and how many were read for it."""
        rows = self.passes[key]
        part, read = rows.gather_sample(*arguments)
        return *self.to_send(part), read * rows.n_rows

    def ask_working_set(self, key, method, *arguments):
        return self.passes[key].ask_working_set(method, *arguments)

    def beside_lines(self, key, of, *arguments):
        self.passes[key], *own = self.passes[of].beside_lines(*arguments)
        return *self.about(key), own

    def rows_beside_lines(self, key, *arguments):
        """The same rows, signed weights and offsets, to be read elsewhere; and their sums."""
        part, *own = self.passes[key].beside_lines(*arguments)
        return *self.to_send(part), own

    def to_send(self, part):
        return self.source.unrepeated().take(part.rows, self.source.dtype), part.signed_weight, part.offset

    def weigh_sides(self, key, positives, negatives):
        self.passes[key].weigh_sides(positives, negatives)
        return self.about(key)

    def about(self, key):
        rows = self.passes[key]
        return rows.n_rows, *rows.sides(), rows.total_weight

    def tell_pass(self, key, method, *arguments):
        getattr(self.passes[key], method)(*arguments)

    def margins(self, key):
        return self.passes[key].margins()

    def sum_of_measures(self, key):
        """Of the rows' measures, each for as many as it stands for."""
        rows = self.passes[key]
        return float(np.abs(rows.signed_weight) @ rows.norms)

    # ------------------------------------------------------------ folds of a search

    def told_labels(self):
        """Places of its labels among the classes, and its weights."""
        return self.labels.label.astype(np.int32), self.weights

    def take_fold(self, marks, factors, positives, is_first):
        """The next of the folds, by which problems are numbered from here on; ``marks`` of the rows of all shards."""
        fold = FoldOfShards(marks, factors, positives).part(self.first, self.source.n_rows)
        before = [] if is_first else self.labels.folds
        self.labels = FoldLabels(self.labels, [*before, fold])

    def products_held_out(self, number, W, intercept):
        """(n, len(W)) scores of the rows that a fold holds out, by weights with the intercept last; of the rows' dtype,
        as everywhere, so that equal ones are equal."""
        rows, m = self.source.take(self.labels.held_out(number), self.source.dtype), self.source.n_features
        with np.errstate(over="ignore"):
            own = W.astype(self.source.dtype)
        own = own if np.isfinite(own).all() else W
        return np.asarray(rows @ own[:, :m].T) + (own[:, m] if intercept else 0)

    # ------------------------------------------------------------ the shared start

    def start_rows(self, size, n_rows):
        """Its part of a sample of ``size`` of all rows: rows, labels, weights."""
        n = self.source.n_rows
        rows = spaced(self.labels.order(), min(n, -(-size * n // max(1, n_rows))))
        return self.source.take(rows, np.float64), self.labels.sample(rows).astype(np.int8), self.weights[rows]

    def some_rows(self, size, n_rows):
        """Its part of ``size`` rows that stand for all ``n_rows``, their labels and weights."""
        rows = some_places(n_rows, size) - self.first
        rows = rows[(rows >= 0) & (rows < self.source.n_rows)]
        return self.source.take(rows, np.float64), self.labels.sample(rows).astype(np.int8), self.weights[rows]

    def in_units(self, columns):
        """Its rows in `Columns` from here on."""
        self.source = self.source.in_units(columns)
        vars(self).pop("blocks", None)

    def start_losses(self, W, first, intercept, loss):
        """Sums of the losses of the problems from ``first`` on at weights W."""
        signs = [self.labels.signed_weight(first + k, 1.0) for k in range(len(W))]
        return losses_at(self.source, signs, self.weights, W, intercept, loss)

    def losses_at_zero(self, c):
        """The sum of the losses of targets c at weights 0, in their units."""
        return float(self.weights @ self.labels.losses_at_zero(c))

    def largest(self):
        return self.source.largest() if self.source.entries else 0.0

    # ------------------------------------------------------------ steps on these rows alone

    def begin_work(self, key, kind, *arguments):
        """Make what a stochastic method keeps here; ``kind(shard, ...)`` is a class that every shard can import."""
        self.works[key] = kind(self, *arguments)

    def positives(self):
        """How many rows, and positives of every problem."""
        Y = self.labels.columns()
        return Y.shape[0], Y.getnnz(axis=0).astype(np.int64)

    def work(self, key, method, *arguments):
        return getattr(self.works[key], method)(*arguments)

    # ------------------------------------------------------------ scores of all problems

    @cached_property
    def blocks(self):
        return self.source.score_blocks(self.labels.columns(), self.weights, self.n_threads)

    def score_sums(self, method, *arguments):
        """What a method of `ScoreBlocks` sums; None without rows."""
        return getattr(self.blocks, method)(*arguments) if self.source.n_rows else None

    def score_margins(self, W, bias):
        """(len(W), n_rows) margins of these problems, which are the first ones."""
        if not self.source.n_rows:
            return np.empty((len(W), 0))
        return np.concatenate([margins for _, margins in self.blocks.margins(W, bias)])

    def score_losses(self, *arguments):
        """Sums of the losses of every problem; 0 without rows, of which there is no mean."""
        if not self.source.n_rows:
            return 0.0
        return np.concatenate([value for _, value in self.blocks.mean_losses(*arguments)]) * self.weights.sum()
