"""What workers run: a partition answers for its rows. A task writes to nothing that it is given.

The state of a partition, what its passes keep of every row, is a `PartitionState`, the result of the task before: a
task makes its `Shard` anew, with copies of what its questions change. So whatever a worker held when it died is made
again by the same tasks, to the bit.
"""

from functools import wraps

import numpy as np

from cmargin._core.util._fp_control import StandardArithmetic
from cmargin._core.util._openmp import effective_n_threads
from cmargin._runtime.blas_threads import single_threaded_blas
from cmargin.data.arrays import joined
from cmargin.data.failure import Failure
from cmargin.data.memory.row_pass import MemoryRowPass
from cmargin.data.memory.softmax_rows import SoftmaxState
from cmargin.data.open_here import open_here
from cmargin.data.shards.folds import FoldLabels
from cmargin.data.shards.shard import STATE, Shard

# calls that leave the state of the passes as it is
READS_ONLY = {"chosen_rows", "largest", "losses_at_zero", "margins", "positives", "products_held_out",
              "rows_beside_lines", "some_rows", "start_rows", "start_losses", "score_sums", "score_margins",
              "score_losses", "softmax_rows", "sum_of_measures", "told_labels"}
READING_SUMS = {"curvature_sums", "curved", "line_sums", "sums_by_class"}      # of `SoftmaxRowPass`


class Labelled:
    """Labels and weights of a partition, as a `Shard` has them, and the place of its first row among all."""

    def __init__(self, labels, weights, first, partition):
        self.labels, self.weights, self.first = labels, weights, first
        self.where, self.number = f"in partition {partition}", partition

    def __sizeof__(self):
        label = getattr(self.labels, "label", None)
        return object.__sizeof__(self) + self.weights.nbytes + (0 if label is None else label.nbytes)


class Round:
    """What all partitions are asked at one time: calls, in order; and passes that nobody asks for any more."""

    def __init__(self, calls, gone, n_jobs):
        self.calls, self.gone, self.n_jobs = calls, gone, n_jobs

    @property
    def moved(self):
        """Keys of the passes that move to another point."""
        return {arguments[method == "asked"] for method, arguments in self.calls
                if method in ("asked", "softmax_sums") and not only_reads(method, arguments)}

    @property
    def reads_only(self):
        return all(only_reads(*call) for call in self.calls)


def only_reads(method, arguments):
    """Whether a call leaves what is kept of the rows as it is."""
    if method == "asked":
        return arguments[0] != "evaluate"
    return arguments[2] in READING_SUMS if method == "softmax_sums" else method in READS_ONLY


class PartitionState:
    """What a round leaves with a partition, and what is said to it."""

    def __init__(self, states, answers):
        self.states, self.answers = states, answers

    def __sizeof__(self):
        return object.__sizeof__(self) + sum(state.nbytes for state in self.states.values())


class Passes(dict):
    """Passes of a partition by their keys, made of their states when they are asked for; ``moved``: keys of those that
    will be evaluated, which writes to what is kept of every row."""

    def __init__(self, states, source, n_threads, moved):
        self.states, self.source, self.n_threads, self.moved = states, source, n_threads, moved

    def __missing__(self, key):
        reads_only, state = key not in self.moved, self.states[key]
        if isinstance(state, SoftmaxState):
            self[key] = state.opened(self.source, self.n_threads, reads_only)
        else:
            rows = self.source.unrepeated().rows
            self[key] = MemoryRowPass.from_state(rows, state, self.n_threads, reads_only)
        return self[key]

    def get(self, key, default=None):
        return self[key] if key in self or key in self.states else default


class Partition(Shard):
    """The rows of one partition, for one task."""

    def __init__(self, X, labelled, before, this_round):
        n_threads = 1 if this_round.n_jobs is None else effective_n_threads(this_round.n_jobs)
        super().__init__(open_here(X), labelled.labels, labelled.weights, labelled.first, n_threads, labelled.where,
                         labelled.number)
        states = {} if before is None else {key: state for key, state in before.states.items()
                                            if key not in this_round.gone}
        # The data source and not this object, which would keep itself, and its memory, until the collector comes.
        self.passes = Passes(states, self.source, self.n_threads, this_round.moved)

    def answers(self, calls):
        with single_threaded_blas(), np.errstate(all="ignore"):
            return [self.called(method, arguments) for method, arguments in calls]

    def asked(self, kind, key, asked):
        """The sums that answer a driver's question."""
        reply = self.reply(kind, key, asked)
        return reply[STATE:] if self.failure is None else self.failure

    def weigh_sides(self, key, positives, negatives):
        self.passes.states[key] = self.passes.states[key].with_own_weights()
        return super().weigh_sides(key, positives, negatives)

    def states(self):
        return self.passes.states | {key: rows.state() for key, rows in self.passes.items()}


def piece(X, labelled, number, n_pieces, seed):
    """Rows of a partition at random, one of so many pieces, and what is known of their labels."""
    n = X.shape[0]
    order = np.random.default_rng([seed, labelled.number]).permutation(n)
    rows = np.sort(order[n * number // n_pieces:n * (number + 1) // n_pieces])
    return X[rows], labelled.labels.take(rows), labelled.weights[rows]


def mixed(first, partition, *pieces):
    """The rows of a partition made of ``pieces``, and what is known of their labels."""
    X, labels, weights = zip(*pieces, strict=True)
    return joined(X), Labelled(labels[0].joined(labels), np.concatenate(weights), first, partition)


def with_folds(labelled, folds):
    return Labelled(FoldLabels(labelled.labels, folds), labelled.weights, labelled.first, labelled.number)


def part_of(found, which):
    return found[which]


class Several:
    """A task over some partitions, one after the other: lists by partition of what it is given, and of what it says."""

    def __init__(self, task):
        self.task = task

    def __call__(self, *columns):
        return [self.task(*given) for given in zip(*columns, strict=True)]


def next_state(X, labelled, before, this_round):
    """A round that changes the state."""
    partition = Partition(X, labelled, before, this_round)
    answers = partition.answers(this_round.calls)
    return PartitionState(partition.states(), answers)


def reading(X, labelled, before, this_round):
    """The answers of a round that only reads."""
    return Partition(X, labelled, before, this_round).answers(this_round.calls)


def answers_of(one):
    """The answers of a state, apart from what stays with its worker."""
    return one.answers


def says_failure(task):
    """Decorator of a task that returns its `Failure`: one that raises would be tried again elsewhere."""
    @wraps(task)
    def guarded(*arguments):
        try:
            with single_threaded_blas(), StandardArithmetic():
                return task(*arguments)
        except Exception as error:
            return Failure(error)

    return guarded
