"""Rows that live in several shards under one driver: what there is to ask, and how what the shards say is folded.

A `Shard` answers for its rows. Where shards are, and how they are asked, is for a subclass of `ShardedSource`: ranks of
a communicator (`cmargin.data.shards.mpi`), partitions on the workers of a cluster (`cmargin.data.shards.workers`).
Subsets of the rows stay where they are, as passes of their own.
"""

from functools import partial

import numpy as np

from cmargin._core.rows._row_pass import ROUNDING
from cmargin.data.arrays import joined
from cmargin.data.memory.row_pass import SMALL
from cmargin.data.memory.score_blocks import ScoreBlocks
from cmargin.data.memory.shared_start import ridge, sample_size
from cmargin.data.moves import move_of
from cmargin.data.open_here import open_here
from cmargin.data.shards.request import answer_of
from cmargin.data.shards.softmax_rows import ShardedSoftmaxPass
from cmargin.data.stats import Described
from cmargin.data.working_set import Answered, choose


class ShardedSource(Described):
    """`DataSource` of the driver over all shards; of the views, those that sums over all rows can answer.

    A subclass has `ask`, the sum of all shards' answers to a question (`shards/request.py`), `call`, the list of their
    answers to a call by name, and `total`, their sum; the first failure among them is raised; ``sizes``, rows of every
    shard, and `walkers`. ``agreed`` has ``n_rows`` and ``entries`` of all.
    """

    row_is_contiguous = in_memory = True                   # each shard's are
    shares_reads, checkpoints, redistribute, reads = False, True, None, 0.0
    pass_kind: type                                        # `ShardedPass` where a subclass has none of its own
    y = None
    n_threads = 1                                          # of the driver, for rows that were brought to it

    @staticmethod
    def between_chunks():
        """Put here by a solver; called while shards are at work where they can be left, and may raise."""

    def __init__(self, n_features, dtype, sparse, agreed):
        self.n_features, self.dtype, self.sparse, self.agreed = n_features, dtype, sparse, agreed
        self.keys, self.gone = 0, []                       # keys of passes that nobody asks for any more

    @property
    def n_rows(self):
        return self.agreed.n_rows

    @property
    def entries(self):
        return self.agreed.entries

    def largest(self):
        return max(self.call("largest"))

    def some_rows(self, size):
        return self.score_blocks(None, None, None).some_rows(size)

    def in_units(self, columns):
        self.order("in_units", columns)
        return self

    def take_folds(self, folds):
        """Let shards know a list of `FoldOfShards`: problems are numbered fold after fold from here on."""
        for number, fold in enumerate(folds):
            self.call("take_fold", fold.marks, fold.factors, fold.positives, number == 0)

    def products_held_out(self, number, W, intercept):
        """(n, len(W)) scores of the rows that a fold holds out, in the order of their places."""
        return np.concatenate(self.call("products_held_out", number, W, intercept))

    def let_go(self):
        """Nothing: shards are let go by whoever made them."""

    def order(self, method, *arguments):
        """A call that nobody waits for an answer of."""
        self.call(method, *arguments)

    def new_key(self):
        self.keys += 1
        return self.keys

    # ------------------------------------------------------------ views

    def row_pass(self, problem, *, intercept, n_threads, offset=None):
        """``problem``: its number, by which all shards know it, its offsets included."""
        if offset is not None:
            raise ValueError("Offsets of rows over ranks or workers are with their labels, not with the driver.")
        key = self.new_key()
        return self.pass_kind(self, key, intercept, self.call("open_pass", key, problem, intercept))

    def shared_start(self, labels, weights, intercept, l2, loss):
        return ShardedStart(self, len(labels), intercept, l2, loss)

    def softmax_pass(self, labels, weight, n_classes, intercept, n_threads):
        """``labels``: the classes that have rows, as places among all; shards know the labels and weights of rows."""
        return ShardedSoftmaxPass(self, labels, self.agreed.class_weights[labels] / self.n_rows, intercept)

    def score_blocks(self, Y, weight, n_threads):
        return ShardedBlocks(self)

    def stochastic_rows(self, n_threads):
        return ShardedRows(self)


class ShardedPass:
    """`RowPass` over all shards, which read the rows."""

    rounding = ROUNDING

    def __init__(self, source, key, intercept, abouts):
        self.source, self.key, self.intercept = source, key, intercept
        self.n_features, self.n_columns = source.n_features, source.n_features + intercept
        self.begun = self.primal = False
        self.active, self.block = None, None
        # the driver asks whether there are any: another sum than that of dual variables is the bound's gain then
        self.offset = "in the shards" if getattr(source.agreed, "has_offsets", False) else None
        self.learn(abouts)

    def __del__(self):
        self.source.gone.append(self.key)

    def learn(self, abouts):
        sizes, counts, weights, totals = zip(*(about[:4] for about in abouts), strict=True)
        self.n_rows, self.total_weight = sum(sizes), float(sum(totals))
        self.both = tuple(np.sum(counts, axis=0).tolist()), tuple(np.sum(weights, axis=0).tolist())
        self.share = self.n_rows / max(1, self.source.n_rows)

    def call(self, method, *arguments):
        return self.source.call(method, self.key, *arguments)

    # ------------------------------------------------------------ sums

    def set_loss(self, loss):
        self.source.order("tell_pass", self.key, "set_loss", loss)

    def pursue(self, level, scale):
        self.source.order("tell_pass", self.key, "pursue", level, scale)

    def start(self, primal=False):
        self.begun, self.primal = False, primal

    def set_active(self, active):
        self.active = active

    def ask(self, kind, **asked):
        return answer_of(kind, asked, self.source.ask(kind, self.key, asked, self.n_columns), self)

    def evaluate(self, direction, step, line_width, width, curvature_floor, with_hessian=True, move=None):
        move, self.begun = move_of(direction, self.begun) if move is None else move, True
        return self.ask("evaluate", move=move, primal=self.primal, active=self.active, direction=direction, step=step,
                        line_width=line_width, width=width, curvature_floor=curvature_floor, with_hessian=with_hessian)

    def line(self, step, width):
        return self.ask("line", step=step, width=width)

    def hessp(self, x, width, curvature_floor=0.0):
        return self.ask("hessp", x=x, width=width, curvature_floor=curvature_floor)

    def objective(self, w, squares=False):
        return self.ask("objective", x=w, squares=squares)

    def margins(self):
        return np.concatenate(self.call("margins"))

    def sides(self):
        return self.both

    # ------------------------------------------------------------ a few rows

    def gather_sample(self, positives, negatives, seed, column_weight=None):
        """A pass over rows that stay where they are, so that all shards read them; the share that was read."""
        key = self.source.new_key()
        abouts = self.source.call("sample", key, self.key, positives, negatives, seed, column_weight)
        read = sum(about[4] for about in abouts) / self.source.n_rows
        return type(self)(self.source, key, self.intercept, abouts), read

    def foresee_working_set(self):
        self.source.order("tell_pass", self.key, "foresee_working_set")

    def forget_working_set(self):
        self.source.order("tell_pass", self.key, "forget_working_set")

    def gather_working_set(self, share, most, moved, width, sample=None):
        if self.offset is not None:                  # straight lines are summed without offsets
            return None
        others, n_members, distance = choose(partial(self.call, "ask_working_set"), self.n_rows, share, most, moved)
        if not n_members or not (others or sample):
            return None
        part, *own = self.beside_lines(n_members, width, sample)
        return Answered((part, *own, distance, part.share))

    def beside_lines(self, n_members, width, sample):
        """A pass over the working set, whose rows stay where they are too, and their sums."""
        key = self.source.new_key()
        said = self.source.call("beside_lines", key, self.key, width, sample)
        return type(self)(self.source, key, self.intercept, said), *sums_of(own for *_, own in said)

    def weigh_sides(self, positives, negatives):
        self.learn(self.call("weigh_sides", positives, negatives))

    def measure_rows(self, weight):
        self.source.order("tell_pass", self.key, "measure_rows", np.array(weight))

    def mean_measure(self):
        return sum(self.call("sum_of_measures")) / self.total_weight

    def brought(self, rows, signed_weights, offsets):
        """A pass here, over rows that shards have sent; ``offsets``: arrays, or None of each."""
        signed_weight = np.concatenate(signed_weights)
        offset = None if offsets[0] is None else np.concatenate(offsets)
        n_threads = self.source.n_threads if len(signed_weight) * self.n_columns >= SMALL else 1
        return open_here(joined(rows)).row_pass(signed_weight, intercept=self.intercept, n_threads=n_threads,
                                               offset=offset)


ShardedSource.pass_kind = ShardedPass


def sums_of(said):
    """Of what every shard says, several arrays each, added up in the order of the shards."""
    return [sum(parts) for parts in zip(*said, strict=True)]


def ridge_of_all(source, n_problems, intercept, l2):
    """One ridge regression of all problems, from a sample of every shard's rows."""
    size = sample_size(source, n_problems)
    rows, labels, weights = zip(*source.call("start_rows", size, source.n_rows), strict=True)
    return ridge(joined(rows), np.hstack(labels), np.concatenate(weights), intercept, l2)


class ShardedStart:
    """`SharedStart` over all shards."""

    def __init__(self, source, n_problems, intercept, l2, loss):
        self.source, self.intercept, self.loss = source, intercept, loss
        self.W = ridge_of_all(source, n_problems, intercept, l2)
        self.risk = np.full(n_problems, np.inf)

    def evaluate(self, out_of_time):
        at_once = 8
        for lo in range(0, len(self.W), at_once):
            if out_of_time():
                return
            W = self.W[lo:lo + at_once]
            losses = sum(self.source.call("start_losses", W, lo, self.intercept, self.loss))
            self.risk[lo:lo + at_once] = losses / self.source.n_rows


class ShardedBlocks:
    """`ScoreBlocks` over all shards."""

    n_threads = 1                  # of the driver: shards have their own
    weight = None                  # known to the shards

    def __init__(self, source):
        self.source, self.n_problems = source, len(source.agreed)
        self.n_rows, self.n_features = source.n_rows, source.n_features

    def reduce(self, columns=False):
        return 0.0

    def row_pass(self, c, intercept, n_threads, w=None):
        rows = self.source.row_pass(c, intercept=intercept, n_threads=n_threads)
        return rows, (w[:rows.n_columns] if w is not None else None)

    def out_of(self, w, intercept):
        return w

    def units(self, columns, intercept):
        return columns

    def ridge_start(self, intercept, l2):
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            W = ridge_of_all(self.source, self.n_problems, intercept, l2)
        return W[:, :self.n_features], (W[:, -1] if intercept else np.zeros(len(W)))

    def some_rows(self, size):
        rows, labels, weights = zip(*self.source.call("some_rows", size, self.n_rows), strict=True)
        return joined(rows), np.hstack(labels).astype(float), np.concatenate(weights)

    def sums(self, W, bias, loss):
        there = [sums for sums in self.source.call("score_sums", "sums", W, bias, loss) if sums is not None]
        return sums_of(there)

    def moment_product(self, v, intercept):
        return sum(sums for sums in self.source.call("score_sums", "moment_product", v, intercept) if sums is not None)

    largest_curvature = ScoreBlocks.largest_curvature

    def margins(self, W, bias):
        """All problems in one group: their margins come to the driver, 8 bytes a row and problem."""
        yield slice(0, len(W)), np.concatenate(self.source.call("score_margins", W, bias), axis=1)

    def mean_losses(self, W, bias, loss, level, scale):
        yield slice(0, len(W)), sum(self.source.call("score_losses", W, bias, loss, level, scale)) / self.n_rows


class ShardedRows:
    """What a stochastic method over all shards begins with; its steps are taken where the rows are."""

    by_batches = False

    def __init__(self, source):
        self.source = source

    def brought(self, parts):
        """`StochasticRows`, here, of a few rows that shards have sent."""
        return open_here(joined(parts)).stochastic_rows(self.source.n_threads)
