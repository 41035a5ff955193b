"""A checkpoint over ranks: a file of rank 0, as of any fit, and one of every rank, for what it keeps of its rows.

No rank can replace its file at the moment when rank 0 does. So each has two, written in turn: rank 0's names the one
that belongs to it, and the other stays until the next but one.
"""

import os
import uuid
from contextlib import suppress

from cmargin._runtime import checkpoint
from cmargin._runtime.checkpoint import Checkpointer


class RankCheckpointer(Checkpointer):
    """Rank 0's, of a `RankSource`."""

    def __init__(self, source, *arguments):
        super().__init__(*arguments)
        self.source, self.slot = source, 0
        if self.found is not None:
            self.slot, token = self.found.pop("slot"), self.found.pop("token")
            source.call("open_file", self.path, self.slot, token)

    def put(self, state):
        slot, token = 1 - self.slot, uuid.uuid4().hex
        failed = [error for error in self.source.call("write_file", self.path, slot, token) if error is not None]
        if failed:
            raise OSError(*failed[0])
        super().put({**state, "slot": slot, "token": token})
        self.slot = slot

    def close(self):
        super().close()
        if self.active and self.ended:
            self.source.call("forget_files", self.path)


class RankFile:
    """A rank's: states of its passes by name, those kept for the next checkpoint and those found."""

    def __init__(self, rank):
        self.rank, self.kept, self.found = rank, {}, {}

    def name(self, path, slot):
        return f"{path}.rank{self.rank}.{slot}"

    def open(self, path, slot, token):
        self.found = checkpoint.read(self.name(path, slot), {"the checkpoint": token})

    def write(self, path, slot, token):
        """None, or what an OSError is made of."""
        name = self.name(path, slot)
        try:
            checkpoint.write(name, f"{name}.part", {"the checkpoint": token}, {**self.found, **self.kept})
        except OSError as error:
            with suppress(OSError):
                os.remove(f"{name}.part")
            return error.errno, f"{error.strerror} (on rank {self.rank})"
        finally:
            self.kept = {}
        return None

    def forget(self, path):
        for slot in range(2):
            with suppress(FileNotFoundError):
                os.remove(self.name(path, slot))
