"""Walkers over the ranks of a communicator: each steps through its own rows, and one `Reduce` joins their weights."""

import copy
import uuid


class RankWalkers:
    """`Walkers` on a `RankSource`, one of every rank, which keeps the ``work(shard, *about)`` of its `RankShard`."""

    def __init__(self, source, work, about):
        self.source, self.rows, self.of_shard = source, list(source.sizes), list(range(len(source.sizes)))
        self.key = source.new_key()
        source.call("begin_work", self.key, work, *about)

    def ask(self, method, *arguments):
        return self.source.call("work", self.key, method, *arguments)

    def share_out(self, shares, parts):
        self.ask("share_out_all", list(zip(shares, parts, strict=True)))

    def begin(self, inverse, weights):
        self.ask("begin", inverse, weights)

    def start(self, inverse, weights):
        self.ask("start", weights)

    def begin_pass(self, number):
        """Nothing: ranks draw as they go on."""

    def walk(self, weights, steps):
        met = sum(self.ask("walk", steps))
        self.source.average(self.key)
        return copy.deepcopy(self.source.shard.works[self.key].weights), met

    def keep(self):
        """The name that every rank keeps the state of its streams by."""
        name = uuid.uuid4().hex
        self.ask("keep", name)
        return name

    def restore(self, kept):
        self.ask("restore", kept)
