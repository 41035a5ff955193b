"""How ranks talk: one asks, all answer; nothing of MPI but four collective methods of the communicator that is given.

Every method here is collective: all ranks call it in the same order. A Ctrl-C in the middle would leave ranks waiting
for each other for ever, so it is held back until they have done.
"""

import pickle
import signal
import threading

import numpy as np

from cmargin._runtime.deferred import Deferred
from cmargin.data.failure import Failure, Interrupted, first_failure

ON_RANKS = ("ranks", "on rank {}")                    # what places are called, and one of them
NEEDED = ("Get_rank", "Get_size", "Bcast", "Gather", "Reduce")


class Ranks:
    """A communicator with mpi4py's buffer methods; rank 0 asks."""

    def __init__(self, comm):
        missing = [name for name in NEEDED if not callable(getattr(comm, name, None))]
        if missing:
            raise TypeError(f"comm must be a communicator with mpi4py's {', '.join(NEEDED)}; "
                            f"{type(comm).__name__} has no {missing[0]}.")
        self.comm, self.rank, self.size = comm, comm.Get_rank(), comm.Get_size()
        self.messages = self.bytes = 0       # collective calls so far, and the length of this rank's buffers in them
        self.interrupts = HeldInterrupts()

    def spread(self, buffer):
        """Make the array ``buffer`` of every rank that of rank 0."""
        self.count(buffer)
        self.comm.Bcast(buffer, root=0)

    def add(self, part, total):
        """``total``, on rank 0: the sum of all ranks' arrays ``part``.

        The order is that of the library. It is the same from run to run wherever MPI's advice to implementors is
        followed, and a sum in the order of the ranks would bring all parts to rank 0: 14 MB an evaluation for 1,000
        ranks and 54 columns, where a message of the tree has 14 kB. All go by rank 0's sum,
        so no two can part ways over it.
        """
        self.count(part)
        self.comm.Reduce(part, total if self.rank == 0 else None, root=0)

    def gather(self, thing):
        """The list of all ranks' things, on rank 0; None on the others."""
        text = np.frombuffer(pickle.dumps(thing, pickle.HIGHEST_PROTOCOL), np.uint8)
        length, lengths = np.array([len(text)]), np.zeros((self.size, 1), np.int64)
        self.collect(length, lengths)
        longest = np.array([lengths.max()])
        self.spread(longest)
        padded = np.zeros(longest[0], np.uint8)
        padded[:len(text)] = text
        every = np.empty((self.size if self.rank == 0 else 0, longest[0]), np.uint8)
        self.collect(padded, every)
        return [pickle.loads(row[:n].tobytes()) for row, (n,) in zip(every, lengths, strict=True)] \
            if self.rank == 0 else None

    def collect(self, part, every):
        self.count(part)
        self.comm.Gather(part, every if self.rank == 0 else None, root=0)

    def share(self, thing=None):
        """Rank 0's thing, on every rank."""
        text = np.frombuffer(pickle.dumps(thing, pickle.HIGHEST_PROTOCOL), np.uint8).copy()
        length = np.array([len(text)])
        self.spread(length)
        text = text if self.rank == 0 else np.empty(length[0], np.uint8)
        self.spread(text)
        return thing if self.rank == 0 else pickle.loads(text.tobytes())

    def settle(self, work, verdict):
        """What ``work`` brings on this rank, and rank 0's verdict on what all say; or the first error, everywhere.

        ``work()``: what it brings, and what is said; ``verdict(said)``, a list by rank.
        """
        own = cause = None
        try:
            own, said = work()
        except Exception as error:
            said, cause = Failure(error), Deferred(error)
        every, found = self.gather(said), None
        if self.rank == 0:
            try:
                found = first_failure(every, ON_RANKS[1]) or verdict(every)
            except Exception as error:
                found = Failure(error)
        found = self.share(found)
        if isinstance(found, Failure):
            raise found.error() from (cause and cause.taken())
        return own, found

    def count(self, buffer):
        self.messages += 1
        self.bytes += buffer.nbytes


class HeldInterrupts:
    """Keeps a Ctrl-C back while ``holding``; one that came goes on with `let_go`. For Python's own handler only."""

    def __init__(self):
        self.holding, self.came, self.here = False, False, False

    def __enter__(self):
        self.here = threading.current_thread() is threading.main_thread() \
            and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if self.here:
            signal.signal(signal.SIGINT, self.note)
        return self

    def __exit__(self, *error):
        self.holding = False
        if self.here:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def note(self, number, frame):
        if not self.holding:
            raise KeyboardInterrupt
        self.came = True

    def let_go(self):
        """From here on a Ctrl-C is not kept back, nor the one that was."""
        self.holding = False
        if self.came:
            self.came = False
            raise KeyboardInterrupt

    def break_off(self):
        """Between two slices of a read."""
        if self.came:
            raise Interrupted
