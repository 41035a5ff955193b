"""The data source of rows in partitions on workers: a round of tasks answers all questions asked by then.

X, labels and weights stay on the workers, and so does what passes keep of every row: the task of a round takes the
result of the one before. The old one is let go when the new one is there; the scheduler remembers how all of them were
made. A task is for the partitions of one worker's thread, each of which answers for itself; sums are folded here, in
the order of the partitions, and so do not depend on where they are.
"""

from time import perf_counter

import numpy as np

from cmargin._core.util._openmp import effective_n_threads
from cmargin.data.failure import Failure
from cmargin.data.files.memory_left import memory_left
from cmargin.data.files.source import STATE
from cmargin.data.shards.request import answer_of
from cmargin.data.shards.row_pass import ShardedPass, ShardedSource, sums_of
from cmargin.data.shards.workers.tasks import (
    Round,
    Several,
    answers_of,
    mixed,
    next_state,
    part_of,
    piece,
    reading,
    with_folds,
)
from cmargin.data.shards.workers.walkers import WorkerWalkers, groups_of

BROUGHT = 1 << 27              # bytes of all problems' subsets that come here
PIECES = 64                    # of a partition whose rows are dealt out to others, at most
KEPT = 0.2                     # of the workers' memory that states of problems may take


class Question:
    """What is asked of all partitions, and what is made of their answers."""

    wanted, answer = True, None

    def __init__(self, method, arguments, fold):
        self.method, self.arguments, self.fold = method, arguments, fold

    @property
    def name(self):
        return self.arguments[0] if self.method == "asked" else self.method.replace("_", "-")


def folded(parts):
    """The sum of arrays, in their order."""
    total = parts[0].copy()
    for part in parts[1:]:
        total += part
    return total


class WorkerPass(ShardedPass):
    """`ShardedPass` whose questions wait for the next round, so that those of all problems make one."""

    posts = ("evaluate", "line", "hessp", "objective")

    def post(self, kind, asked):
        if kind == "objective":
            asked["squares"] = True
        asked = {name: np.array(part) if isinstance(part, np.ndarray) else part for name, part in asked.items()}

        def fold(replies):
            found = answer_of(kind, asked, folded(replies), self)
            return found[1:] if kind == "line" else found

        return self.source.post(Question("asked", (kind, self.key, asked), fold))

    def work(self, until):
        self.source.work(until)

    def gather_sample(self, positives, negatives, seed, column_weight=None):
        """Few rows come here, where their questions need no rounds."""
        if self.too_many(positives, negatives):
            return super().gather_sample(positives, negatives, seed, column_weight)
        *rows, reads = zip(*self.call("chosen_rows", positives, negatives, seed, column_weight), strict=True)
        return self.part(*rows), sum(reads) / max(1, self.source.n_rows)

    def beside_lines(self, n_members, width, sample):
        counts = self.sides()[0]
        if sample is not None:
            n_members += sample[0] * counts[0] + sample[1] * counts[1]
        if n_members * self.source.row_bytes * len(self.source.agreed) > BROUGHT:
            return super().beside_lines(n_members, width, sample)
        *rows, own = zip(*self.call("rows_beside_lines", width, sample), strict=True)
        return self.part(*rows), *sums_of(own)

    def too_many(self, positives, negatives):
        """To bring so large a part of either side here."""
        counts, source = self.sides()[0], self.source
        return (positives * counts[0] + negatives * counts[1]) * source.row_bytes * len(source.agreed) > BROUGHT

    def part(self, *rows):
        """Rows that came here."""
        rows = self.brought(*rows)
        rows.share = rows.n_rows / max(1, self.source.n_rows)
        return rows


class WorkerSource(ShardedSource):
    """`ShardedSource` over the partitions of a cluster: ``X``, futures of arrays or CSR matrices, ``y``, futures or
    None, and the rows of every partition, ``sizes``."""

    shares_reads, pass_kind, storage = True, WorkerPass, "workers"

    def __init__(self, cluster, X, y, sizes, n_features, dtype, sparse):
        super().__init__(n_features, dtype, sparse, None)
        self.cluster, self.X, self.labels, self.weights, self.sizes = cluster, X, y, None, sizes
        self.labelled = None                                 # futures of `Labelled`, as `_estimators.shards` finds them
        self.n_jobs = None                    # threads of a task; None: 1, as a worker runs a task in each of its own
        self.partition_states, self.n_threads = None, effective_n_threads(None)
        self.groups = None                                   # of partitions, one a task of a round
        self.orders, self.waiting, self.asked, self.underway, self.rounds = [], [], [], None, 0
        self.kept = []                                       # futures of what a stochastic method keeps there

    @property
    def n_rows(self):
        return int(sum(self.sizes))

    @property
    def entries(self):
        return self.n_rows * self.n_features if self.agreed is None else self.agreed.entries

    @property
    def n_places(self):
        return len(self.sizes)

    def at(self, places):
        """Futures of the rows of these partitions, and of what is known of their labels."""
        return [[column[place] for place in places] for column in (self.X, self.labelled)]

    def beside(self, *columns):
        """Futures of the rows and labels, and other columns by partition, or what is the same for all of them."""
        return [self.X, self.labels, *(one if isinstance(one, list) else [one] * self.n_places for one in columns)]

    @property
    def row_bytes(self):
        return self.entries / max(1, self.n_rows) * self.dtype.itemsize

    @property
    def between_chunks(self):
        return self.cluster.heard

    @between_chunks.setter
    def between_chunks(self, heard):
        self.cluster.heard = heard

    def let_go(self):
        """The workers may forget all that is not somebody else's."""
        self.drop_questions()
        for futures in (self.labelled, self.partition_states):
            self.cluster.forget(futures)
        self.keep_there([])
        self.X = self.labels = self.weights = self.labelled = self.partition_states = None

    def redistribute(self, seed):
        """Partitions of rows from all over them, or from PIECES of them, instead: each row moves once."""
        k, cluster = self.n_places, self.cluster
        m = min(k, PIECES)
        cut = np.array([[n * number // m for number in range(m + 1)] for n in self.sizes])
        pieces = [cluster.everywhere("piece", piece, self.X, self.labelled, *([one] * k for one in (number, m, seed)))
                  for number in range(m)]
        # piece j of partition p goes to partition p + j k / m, so that every one has pieces from near and far
        sources = [[(place - number * k // m) % k for place in range(k)] for number in range(m)]
        self.sizes = np.sum([np.diff(cut)[source, number] for number, source in enumerate(sources)], axis=0).tolist()
        first = np.concatenate([[0], np.cumsum(self.sizes)])[:-1].tolist()
        columns = [[of[p] for p in source] for of, source in zip(pieces, sources, strict=True)]
        both = cluster.everywhere("mix", mixed, first, list(range(k)), *columns)
        parts = [cluster.everywhere(f"{name}-of-mix", part_of, both, [which] * k)
                 for which, name in enumerate(("rows", "labels"))]
        for futures in (self.labelled, self.partition_states, *pieces, both):  # once the parts are made of them
            cluster.forget(futures)
        (self.X, self.labelled), self.partition_states, self.groups = parts, None, None
        self.labels = self.weights = None                    # those as given are of the rows before

    def take_folds(self, folds):
        first = np.cumsum([0, *self.sizes])
        parts = [[fold.part(lo, n) for fold in folds] for lo, n in zip(first, self.sizes, strict=False)]
        before = self.labelled
        self.labelled = self.cluster.everywhere("folds", with_folds, before, parts)
        self.cluster.forget(before)

    def walkers(self, most, enough, work, *about):
        return WorkerWalkers(self, groups_of(self.sizes, most, enough), work, about)

    def keep_there(self, futures):
        """Results that stay on the workers, instead of those before that are not among them."""
        there = set(map(id, futures))
        self.cluster.forget([future for future in self.kept if id(future) not in there])
        self.kept = futures

    def problems_at_once(self, wanted, bytes_each=0):
        """For so many problems workers have memory for what is kept of every row, old and new, and the client for
        ``bytes_each``."""
        room = KEPT * self.cluster.memory() / (2 * STATE * max(1, self.n_rows))
        return int(max(1, min(wanted, room, 0.5 * memory_left() / max(1, bytes_each))))

    # ------------------------------------------------------------ rounds

    def ask(self, kind, key, asked, n_columns):
        return self.answered(Question("asked", (kind, key, asked), folded))

    def call(self, method, *arguments):
        return self.answered(Question(method, arguments, list))

    def total(self, length, method, *arguments):
        # copies, as a worker that dies has them sent again, and whoever asks may have gone on
        given = tuple(np.array(one) if isinstance(one, np.ndarray) else one for one in arguments)
        return self.answered(Question(method, given, folded))

    def order(self, method, *arguments):
        self.orders.append((method, arguments))

    def answered(self, question):
        self.post(question)
        self.work()
        return question.answer

    def post(self, question):
        self.waiting.append(question)
        return question

    def work(self, until=np.inf):
        """Go on with the rounds that answer what is asked, to their end or until the clock says ``until``."""
        try:
            while self.asked or self.waiting:
                if not self.asked:
                    self.send()
                if self.asked and not self.take(until):
                    return
                if perf_counter() > until:
                    return
        except BaseException:
            self.drop_questions()
            raise

    def drop_questions(self):
        """The states before the round under way are as they were."""
        for futures in self.underway or ():
            self.cluster.forget(futures)
        self.waiting, self.asked, self.underway = [], [], None

    def send(self):
        """A round for all who wait, and for what was ordered before."""
        self.asked, self.waiting = [question for question in self.waiting if question.wanted], []
        if not self.asked:
            return
        self.form_groups()
        orders, self.orders = self.orders, []
        this_round = Round([*orders, *((question.method, question.arguments) for question in self.asked)], (),
                           self.n_jobs)
        name, after = "+".join(sorted({question.name for question in self.asked})), None
        columns = (*self.in_groups(self.X, self.labelled),
                   self.partition_states or self.in_groups([None] * self.n_places)[0],
                   self.in_groups([this_round] * self.n_places)[0])
        if this_round.reads_only:
            answers = self.cluster.everywhere(name, Several(reading), *columns)
        else:
            this_round.gone, self.gone = tuple(self.gone), []
            after = self.cluster.everywhere(name, Several(next_state), *columns)
            answers = self.cluster.everywhere(f"sums-of-{name}", Several(answers_of), after)
        self.underway, self.rounds = (after, answers), self.rounds + 1

    # ------------------------------------------------------------ groups of partitions

    @property
    def is_read(self):
        """Whether all partitions are somewhere already."""
        return self.cluster.have_done(self.X)

    def form_groups(self, anew=False):
        """By where the partitions are, unless that was known already."""
        if self.groups is None or anew:
            self.groups = self.cluster.groups(self.X)

    def in_groups(self, *columns):
        """Lists by partition as lists by group of lists by its partitions."""
        return [[[one[place] for place in group] for group in self.groups] for one in columns]

    def by_place(self, found):
        """And back."""
        by_place = [None] * self.n_places
        for group, parts in zip(self.groups, found, strict=True):
            for place, part in zip(group, parts, strict=True):
                by_place[place] = part
        return by_place

    def take(self, until):
        """The answers of the round under way; False where the clock says ``until`` first."""
        after, answers = self.underway
        found = self.cluster.results(answers, until)
        if found is None:
            return False
        replies = self.by_place(found)
        for said in replies:
            for answer in said:
                if isinstance(answer, Failure):
                    raise answer.error()
        asked, self.asked, self.underway = self.asked, [], None
        self.cluster.forget(answers)
        if after is not None:
            self.cluster.forget(self.partition_states)
            self.partition_states = after
        for question, *parts in zip(asked, *(said[-len(asked):] for said in replies), strict=True):
            question.answer = question.fold(parts)
        return True
