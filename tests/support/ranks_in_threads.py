"""Ranks that are threads of this process: a communicator with what `cmargin.data.shards.ranks` needs, no more."""

import threading
from contextlib import suppress

import numpy as np

LIMIT = 60                     # seconds after which a rank that waits for another gives up


class Meeting:
    """Where the ranks of one communicator meet."""

    def __init__(self, size):
        self.size, self.barrier, self.brought = size, threading.Barrier(size), [None] * size

    def bring(self, rank, thing, use):
        """``use(things of all ranks)`` while all are here."""
        self.brought[rank] = thing
        self.barrier.wait(LIMIT)
        found = use(self.brought)
        self.barrier.wait(LIMIT)
        return found


class ThreadComm:
    """One rank's side of it. ``calls``: the method and the bytes of this rank's buffer, in order."""

    def __init__(self, meeting, rank):
        self.meeting, self.rank, self.calls = meeting, rank, []

    def Get_rank(self):
        return self.rank

    def Get_size(self):
        return self.meeting.size

    def Bcast(self, buffer, root=0):
        def take(brought):
            assert len({one.nbytes for one in brought}) == 1
            if self.rank != root:
                buffer[...] = brought[root]

        self.calls.append(("Bcast", buffer.nbytes))
        self.meeting.bring(self.rank, buffer, take)

    def Reduce(self, part, total, root=0):
        def add(brought):
            assert len({one.nbytes for one in brought}) == 1
            if self.rank == root:
                total[...] = sum(brought[1:], brought[0].copy())

        assert (total is None) == (self.rank != root)
        self.calls.append(("Reduce", part.nbytes))
        self.meeting.bring(self.rank, part, add)

    def Gather(self, part, every, root=0):
        def stack(brought):
            assert len({one.nbytes for one in brought}) == 1
            if self.rank == root:
                every[...] = np.stack(brought)

        assert (every is None) == (self.rank != root)
        self.calls.append(("Gather", part.nbytes))
        self.meeting.bring(self.rank, part, stack)


def on_ranks(size, work):
    """``work(comm)`` on every rank: what each returns, or raises."""
    meeting, found = Meeting(size), [None] * size
    comms = [ThreadComm(meeting, rank) for rank in range(size)]

    def one(rank):
        try:
            found[rank] = work(comms[rank])
        except BaseException as error:
            found[rank] = error

    threads = [threading.Thread(target=one, args=(rank,), daemon=True) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
        assert not thread.is_alive(), "a rank hangs"
    return found, comms


class OneProblem:
    """Labels of a place whose only problem is ``signed_weight``."""

    def __init__(self, signed_weight):
        self.given = signed_weight

    def signed_weight(self, c, weights):
        return self.given * weights


def pass_over_ranks(X, signed_weight, cuts, intercept):
    """`RankPass` over parts of the rows, each a rank; they serve until nothing was asked for a while."""
    from cmargin.data import open_rows  # here, as `bits.py` has the ranks of builds whose folders have other names

    edges = [0, *cuts, X.shape[0]]
    meeting = Meeting(len(edges) - 1)

    def opened(rank):
        part = slice(*edges[rank:rank + 2])
        return open_rows(X[part], signed_weight[part], comm=ThreadComm(meeting, rank))

    def serve(rank):
        with suppress(threading.BrokenBarrierError):
            opened(rank).serve()

    for rank in range(1, meeting.size):
        threading.Thread(target=serve, args=(rank,), daemon=True).start()
    return opened(0).row_pass(0, intercept=intercept, n_threads=1)
