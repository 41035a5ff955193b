"""Rows in files for methods that go by batches: windows of them in a random order; few rows are copied to memory."""

from cmargin.data.files.formats import Room
from cmargin.data.files.walkers import FileWalkers
from cmargin.data.memory.source import MemorySource
from cmargin.data.remote import FewInMemory


class FileStochasticRows(FewInMemory):
    """`StochasticRows` over a `FileSource`, without its single rows."""

    def __init__(self, source, n_threads):
        self.source, self.n_threads, self.dtype, self.sparse = source, n_threads, source.dtype, source.sparse
        self.n_rows, self.n_features, self.room = source.n_rows, source.n_features, Room()

    @property
    def between_chunks(self):
        """Called between two batches, and while a disk is waited for; may raise."""
        return self.source.between_chunks

    @between_chunks.setter
    def between_chunks(self, heard):
        self.source.between_chunks = heard

    def walkers(self, kinds, n_kinds, seed, work):
        return FileWalkers(self, kinds, n_kinds, seed, work)

    def window(self, X):
        """`StochasticRows` in memory over the rows of a window."""
        rows = MemorySource(X).stochastic_rows(self.n_threads)
        rows.between_chunks = self.between_chunks
        return rows

    def whitened(self, window, inverse, order=None):
        """The rows of a window, those of ``order`` if given, where the last window's were."""
        n = window.n_rows if order is None else len(order)
        return window.whiten(inverse, order, self.room.array("whitened", (n, inverse.width), self.dtype))

    def whiten(self, inverse, order=None, out=None):
        """Of few rows."""
        return self.few(order).whiten(inverse, None, out)

    def row_numbers(self, entry_cost):
        return max(1.0, (entry_cost if self.sparse else 1) * self.source.entries / self.n_rows)
