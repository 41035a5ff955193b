"""Rows that live with the ranks of an MPI communicator: rank 0 drives, the others serve.

Every rank has a `RankShard`, its own rows as a data source in memory. Rank 0 has the `RankSource` besides, whose views
ask all shards, its own among them, and fold what they say.
"""

import uuid

import numpy as np

from cmargin.data.failure import Failure, Interrupted
from cmargin.data.shards.rank_files import RankFile
from cmargin.data.shards.request import Request, n_sums
from cmargin.data.shards.row_pass import ShardedPass, ShardedSource
from cmargin.data.shards.shard import STATE, Shard
from cmargin.data.shards.walkers import RankWalkers


class RankShard(Shard):
    """One rank's rows, and its part in what is asked."""

    def __init__(self, ranks, source, labels, weights, first, n_threads):
        super().__init__(source, labels, weights, first, n_threads, f"on rank {ranks.rank}", ranks.rank)
        self.ranks, self.break_off, self.file = ranks, ranks.interrupts.break_off, RankFile(ranks.rank)

    @property
    def interrupted(self):
        return self.ranks.interrupts.came

    def serve(self):
        """Answer until rank 0 says that it has done."""
        request = Request(self.source.n_features)
        while True:
            self.ranks.spread(request.buffer)
            if request.kind == "end":
                return
            self.answer(request)

    def answer(self, request, total=None):
        """This rank's part in one request; what a call brought, on rank 0."""
        kind, key, gone, asked = request.read()
        self.passes.pop(gone, None)
        if kind == "call":
            return self.ranks.gather(self.called(*self.ranks.share()))
        if kind == "average":
            return self.averaged(key)
        if kind == "total":
            return self.ranks.add(self.part_of(*self.ranks.share()), None)
        self.ranks.add(self.reply(kind, key, asked), total)
        return None

    def averaged(self, key):
        """Every rank's weights become the mean of all."""
        work = self.works[key]
        own = work.packed()
        total = np.zeros_like(own)
        self.ranks.add(own, total)
        self.ranks.spread(total)                                # rank 0's
        work.take(total)

    # ------------------------------------------------------------ a checkpoint

    def keep_pass(self, key, name):
        if key in self.passes:                               # without rows there may be none
            self.file.kept[name] = self.passes[key].kept()

    def take_back_pass(self, key, name):
        if name in self.file.found:
            self.passes[key].take_back(self.file.found.pop(name))

    def open_file(self, *of):
        self.file.open(*of)

    def write_file(self, *of):
        return self.file.write(*of)

    def forget_files(self, path):
        self.file.forget(path)


class RankPass(ShardedPass):
    """`ShardedPass` whose rows' state every rank can keep in a file of its own."""

    def kept(self):
        """The name that every rank keeps its rows' state by."""
        name = uuid.uuid4().hex
        self.call("keep_pass", name)
        return {"name": name}

    def take_back(self, kept):
        self.call("take_back_pass", kept["name"])


class RankSource(ShardedSource):
    """`ShardedSource` on rank 0, whose own `RankShard` is ``shard``."""

    pass_kind, storage = RankPass, "ranks"

    def __init__(self, ranks, shard, agreed):
        source = shard.source
        super().__init__(source.n_features, source.dtype, source.sparse, agreed)
        self.ranks, self.shard, self.n_threads = ranks, shard, shard.n_threads
        self.sizes = np.diff([*agreed.first, agreed.n_rows])
        self.request = Request(source.n_features)

    def ask(self, kind, key, asked, n_columns):
        self.ranks.interrupts.holding = True
        self.send(kind, key, asked)
        total = np.empty(STATE + n_sums(kind, asked, n_columns))
        self.shard.answer(self.request, total)
        return self.sums_of(total)

    def total(self, length, method, *arguments):
        """The sum over all ranks of the ``length`` numbers that a call of their shards brings."""
        self.ranks.interrupts.holding = True
        self.send("total")
        self.ranks.share((length, method, *arguments))
        total = np.empty(STATE + length)
        self.ranks.add(self.shard.part_of(length, method, *arguments), total)
        return self.sums_of(total)

    def sums_of(self, total):
        """What follows the state; the first failure is raised, and a Ctrl-C that came meanwhile."""
        if total[0]:
            self.call("what_failed")
        self.ranks.interrupts.came |= bool(total[1])
        self.ranks.interrupts.let_go()
        return total[STATE:]

    def call(self, method, *arguments):
        """Every rank's answer; the first failure among them is raised."""
        self.ranks.interrupts.holding = True
        self.send("call")
        self.ranks.share((method, arguments))
        answers = self.ranks.gather(self.shard.called(method, arguments))
        self.ranks.interrupts.came |= any(isinstance(answer, Interrupted) for answer in answers)
        failures = [answer for answer in answers if isinstance(answer, Failure)]
        if failures:
            raise failures[0].error()
        self.ranks.interrupts.let_go()
        return answers

    def walkers(self, most, enough, work, *about):
        return RankWalkers(self, work, about)

    def average(self, key):
        """Let every rank's work ``key`` go on from the mean of all weights."""
        self.ranks.interrupts.holding = True
        self.send("average", key)
        self.shard.averaged(key)
        self.ranks.interrupts.let_go()

    def send(self, kind, key=-1, asked=None):
        """The request; with it goes word of a pass that nobody asks for any more."""
        gone = self.gone.pop() if self.gone else -1
        self.shard.passes.pop(gone, None)
        self.request.write(kind, key, gone, asked)
        self.ranks.spread(self.request.buffer)

    def end(self):
        """Let the others go."""
        self.ranks.interrupts.holding = True
        self.send("end")
