"""The data source of rows that stay in files: a read, chunk by chunk, serves all who ask by then."""

import threading
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import scipy.sparse as sp

from cmargin._core.rows._rows import Rows
from cmargin.data.files.formats import Room
from cmargin.data.files.gathered import VisitQuestion
from cmargin.data.files.memory_left import memory_left
from cmargin.data.files.read_ahead import ReadAhead, in_background, outcome, wait_for
from cmargin.data.files.row_pass import FileRowPass
from cmargin.data.files.score_blocks import FileScoreBlocks
from cmargin.data.files.shared_start import FileSharedStart
from cmargin.data.files.softmax_rows import FileSoftmaxPass
from cmargin.data.files.stochastic_rows import FileStochasticRows
from cmargin.data.remote import RowsElsewhere

CHUNK = 1 << 25              # bytes; doc/lab-notebook
STATE = 57                   # bytes kept of a row: signed weight, 2 slacks, change, 2 dual variables, measure, mark
PATIENCE = 0.5               # seconds
GATHERED = 0.25              # of the memory left that gathered rows may take


def refuse_files(what):
    raise ValueError(f"{what} needs the rows in memory, and these stay in files: SmSVMClassifier, its path and "
                     "search, SmSVMRegressor, SmSVMOneClass, MarginPursuitClassifier (solver='newton' or 'gd'), "
                     "SLNDClassifier (l1=0) and BSNClassifier read them chunk by chunk, and partial_fit takes slices "
                     "of open_files(...).")


@dataclass
class Chunk:
    """Rows ``first`` .. in memory, until the next chunk is taken."""

    first: int
    X: object
    rows: Rows


class FileSource(RowsElsewhere):
    """`DataSource` over `RowFiles`, whose ``check`` sees every row when it is first read; ``chunk``: bytes read at a
    time, about."""

    agreed, in_memory, shares_reads, checkpoints, storage = None, False, True, True, "files"

    def __init__(self, files, y=None, chunk=None):
        self.files, self.y, self.check = files, y, files.check
        self.n_rows, self.n_features = files.shape
        self.dtype, self.sparse, self.entries = files.dtype, files.sparse, files.entries
        self.row_is_contiguous = False
        self.chunk = CHUNK if chunk is None else chunk
        self.chunks = files.chunks(self.chunk)
        self.most_rows = max((hi - lo for lo, hi in self.chunks), default=1)
        self.tidy = np.zeros(len(self.chunks), bool)     # chunks known to store no entry in parts
        self.checked = 0                                 # rows below have been shown to ``check``
        self.given_up = threading.Event()
        self.readers, self.being_read = [], None
        self.ahead = self.reader(ReadAhead(len(self.chunks), self.given_up))
        self.waiting, self.reading, self.at = [], [], 0
        self.reads = 0.0                                 # of all rows, by chunks
        self.columns = None
        self.between_chunks = lambda: None               # called while a disk is waited for; may raise

    @property
    def no_rows(self):
        """Rows of the same kind, none of them."""
        none = np.empty((0, self.n_features), self.dtype)
        return Rows(sp.csr_matrix(none) if self.sparse else none)

    # ------------------------------------------------------------ reading

    def reader(self, ahead):
        """A `ReadAhead` that ends with the fit."""
        self.readers.append(ahead)
        return ahead

    def heard(self):
        """While a disk is waited for."""
        self.between_chunks()

    def load(self, k, room):
        """Chunk ``k``; on a thread of its own."""
        lo, hi = self.chunks[k]
        X = self.show(lo, hi, self.files.read_chunk(lo, hi, room))
        rows = Rows(X)                                   # the structure of CSR rows is checked here
        if self.sparse and not self.tidy[k]:
            if X.has_canonical_format:
                self.tidy[k] = True
            else:
                X = X.copy()
                X.sum_duplicates()
                rows = Rows(X)
        return Chunk(lo, X, rows)

    def show(self, lo, hi, X):
        """``X``, rows lo .. hi - 1, seen by ``check``."""
        if self.check is not None and hi > self.checked:
            if self.sparse:
                Rows(X)                                  # whose arrays fit together
            self.check(X)
            if lo <= self.checked:
                self.checked = hi
        return self.translated(X)

    def translated(self, X):
        return X if self.columns is None else self.columns.over(X)

    def in_units(self, columns):
        self.columns = columns
        return self

    def post(self, question):
        self.waiting.append(question)
        return question

    def work(self, until=np.inf):
        """Go on with the read that answers what is asked, to its end or until the clock says ``until``."""
        try:
            while self.reading or self.waiting:
                if not self.reading:
                    self.reading, self.waiting, self.at = self.waiting, [], 0
                    for question in self.reading:
                        question.begin()
                if self.at < len(self.chunks) and not self.read_next(until):
                    return
                if self.at == len(self.chunks):
                    asked, self.reading = self.reading, []
                    for question in asked:
                        question.end()
                if perf_counter() > until:
                    return
        except BaseException:
            self.waiting, self.reading = [], []          # some rows have been summed and others not
            raise

    def read_next(self, until):
        self.reading = [question for question in self.reading if question.wanted]
        if not self.reading:
            return True
        heard = self.between_chunks if until == np.inf else lambda: None       # else the driver is heard, outside
        chunk = self.ahead.take(self.load, self.at, until, heard)
        if chunk is None:
            return False
        for question in self.reading:
            question.over(chunk)
        self.at += 1
        self.reads += (len(self.chunks) > 0) / len(self.chunks)
        return True

    def answer(self, question):
        """The answer, now."""
        self.post(question)
        self.work()
        return question.answer

    def visit(self, see):
        self.answer(VisitQuestion(see))

    # ------------------------------------------------------------ rows

    def take(self, rows, dtype):
        if not isinstance(rows, slice):
            return self.take_listed(np.asarray(rows), dtype)
        lo, hi, step = rows.indices(self.n_rows)
        X = self.wait(lambda: self.show(lo, max(lo, hi), self.read(lo, max(lo, hi))))[::step]
        return X.astype(dtype, copy=False) if self.sparse else np.ascontiguousarray(X, dtype=dtype)

    def take_listed(self, rows, dtype):
        order = np.argsort(rows, kind="stable")
        ascending, found = rows[order], []
        out = None if self.sparse else np.empty((len(rows), self.n_features), dtype)
        done = 0
        for lo, hi, places in self.files.runs(ascending):
            X = self.wait(lambda lo=lo, hi=hi: self.show(lo, hi, self.read(lo, hi)))[places]
            if self.sparse:
                found.append(X.astype(dtype, copy=False))
            else:
                out[order[done:done + len(places)]] = X
            done += len(places)
        if not self.sparse:
            return out
        X = sp.vstack(found, "csr") if found else sp.csr_matrix((0, self.n_features), dtype=dtype)
        return X[np.argsort(order, kind="stable")]

    def read(self, lo, hi):
        return self.files.read(lo, hi, Room(self.given_up))

    def wait(self, read):
        self.being_read = in_background(read)
        wait_for(self.being_read, heard=self.between_chunks)
        return outcome(self.being_read)

    def let_go(self):
        """Read no more: whoever owns the files may write to them again. A disk is waited for half a second at most."""
        self.given_up.set()
        until = perf_counter() + PATIENCE
        for future in (*(ahead.future for ahead in self.readers), self.being_read):
            if future is not None:
                wait_for(future, until)
        for ahead in self.readers:
            ahead.forget()
        self.being_read, self.waiting, self.reading = None, [], []         # which hold what holds this data source,
        self.between_chunks = lambda: None                                 # and so may this

    def room_for_rows(self):
        """So many rows may be gathered, beside those that questions will gather."""
        left = memory_left()
        room = int(GATHERED * left / (self.files.row_bytes + STATE)) if np.isfinite(left) else self.n_rows
        return room - sum(question.expected for question in (*self.waiting, *self.reading))

    def problems_at_once(self, wanted, bytes_each=0):
        """For so many problems there is memory for what is kept of every row, and for ``bytes_each`` besides."""
        room = 0.5 * memory_left() / (STATE * max(1, self.n_rows) + bytes_each)
        return int(max(1, min(wanted, room)))

    def keep(self, rows):
        self.refuse("sample_weight of 0 here")

    def over_columns(self, scale):
        self.refuse("Scaling of columns")

    def largest(self):
        return max((np.abs(part.data if self.sparse else part).max(initial=0.0)
                    for part in (self.take(slice(lo, hi), self.dtype) for lo, hi in self.chunks)), default=0.0)

    # ------------------------------------------------------------ views

    def row_pass(self, signed_weight, *, intercept, n_threads, offset=None):
        return FileRowPass(self, signed_weight, intercept, n_threads, offset)

    def score_blocks(self, Y, weight, n_threads):
        return FileScoreBlocks(self, Y, weight, n_threads)

    def shared_start(self, labels, weights, intercept, l2, loss):
        return FileSharedStart(self, labels, weights, intercept, l2, loss)

    def softmax_pass(self, labels, weight, n_classes, intercept, n_threads):
        return FileSoftmaxPass(self, labels, weight, n_classes, intercept, n_threads)

    def stochastic_rows(self, n_threads):
        return FileStochasticRows(self, n_threads)

    def refuse(self, what):
        refuse_files(what)
