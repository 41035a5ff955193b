"""Rows in one of several places, and how they answer what the driver of all places asks (`shards/row_pass.py`).

A question of a driver is a `Request`, and its answer an array of packed sums; over ranks of a communicator one `Bcast`
of a buffer, of one size for all questions, and one `Reduce`:

    request   8 numbers, a vector of n_features + 1, a mask of as many bits for the columns of the curvature block
    sums      2 numbers (ranks that failed, ranks that were interrupted), then of a look 16, 3 n_columns and the upper
              triangle of the block; 3 along the line; n_columns + 1 of a product or an evaluation

What is asked a few times a problem are calls of a place's methods by name, with every rank's answer for itself.
"""

from functools import cached_property

import numpy as np

from cmargin.data.failure import Failure, Interrupted
from cmargin.data.memory.row_pass import SMALL
from cmargin.data.memory.shared_start import losses_at, some_places, spaced
from cmargin.data.order import places_of
from cmargin.data.source import ROUGH_BLOCK, TANGENTS

END, CALL, AVERAGE, LOOK, ALONG, PRODUCT, EVALUATE = range(7)
OP, KEY, FLAGS, STEP, LINE_WIDTH, WIDTH, FLOOR, GONE, N_NUMBERS = range(9)
RESTART, PRIMAL, HESSIAN, ROUGH, LINES, VECTOR, ACTIVE, SQUARES = (1 << bit for bit in range(8))
STATE = 2                      # numbers before the sums
N_SUMS = 16                    # of a look


class Request:
    """What rank 0 asks, as a buffer of one size, and its parts."""

    def __init__(self, n_features):
        self.n_columns = n_features + 1
        n_bytes = 8 * (N_NUMBERS + self.n_columns)
        self.buffer = np.zeros(n_bytes + -(-self.n_columns // 8), np.uint8)
        self.numbers = self.buffer[:8 * N_NUMBERS].view(float)
        self.vector = self.buffer[8 * N_NUMBERS:n_bytes].view(float)
        self.mask = self.buffer[n_bytes:]

    def write(self, op, key, flags=0, step=0.0, line_width=0.0, width=0.0, floor=0.0, gone=-1, vector=None,
              active=None):
        if vector is not None:
            self.vector[:len(vector)], flags = vector, flags | VECTOR
        if active is not None:
            used = np.zeros(self.n_columns, bool)
            used[active] = True
            self.mask[:], flags = np.packbits(used), flags | ACTIVE
        self.numbers[:] = op, key, flags, step, line_width, width, floor, gone

    def __getitem__(self, which):
        return self.numbers[which]

    def asks(self, flag):
        return bool(int(self.numbers[FLAGS]) & flag)

    def vector_of(self, n):
        return self.vector[:n].copy() if self.asks(VECTOR) else None

    @property
    def active(self):
        return np.flatnonzero(np.unpackbits(self.mask, count=self.n_columns)) if self.asks(ACTIVE) else None

    def reply_size(self, n_columns):
        """Numbers of the reply to this, of a pass over so many columns."""
        op = self.numbers[OP]
        if op == LOOK:
            block = n_columns if not self.asks(ACTIVE) else len(self.active)
            return STATE + N_SUMS + 3 * n_columns + (block * (block + 1) // 2 if self.asks(HESSIAN) else 0)
        return STATE + (3 if op == ALONG else n_columns + 1)


class Place:
    """The rows of one place, and what it says of them. All methods below `what_failed` are calls.

    Parameters
    ----------
    home : MemoryHome
    labels : object
        ``labels.code(c, weights)`` (n_rows,) of every problem, ``sample(rows)``, ``order()``, ``columns()``.
    weights : (n_rows,) array
        Of mean 1 over all places.
    first : int
        The place of the first row among those of all places.
    where : str
        What errors say of it: "on rank 1".
    number : int
        Of the place.
    """

    interrupted, break_off = False, None             # whether a Ctrl-C came; called between two slices of a look
    file = None                                      # a rank's, for checkpoints

    def __init__(self, home, labels, weights, first, n_threads, where, number=0):
        self.home, self.labels, self.weights, self.first = home, labels, weights, first
        self.where, self.number = where, number
        self.n_threads = n_threads if home.entries >= SMALL else 1
        self.passes, self.works, self.sorted, self.failure = {}, {}, {}, None

    # ------------------------------------------------------------ answering

    def called(self, method, arguments):
        try:
            return getattr(self, method)(*arguments)
        except Interrupted as interrupted:
            return interrupted
        except Exception as error:
            return Failure(error).at(self.where)

    def reply(self, request):
        """Sums; of zeros, but for the state before them, where there is trouble."""
        rows = self.passes.get(request[KEY])
        n_columns = request.n_columns if rows is None else rows.n_columns
        part = np.zeros(request.reply_size(n_columns))
        try:
            {LOOK: _look, ALONG: _along, PRODUCT: _product, EVALUATE: _evaluate}[int(request[OP])](
                rows, request, part[STATE:])
        except Interrupted:
            part[:] = 0
            part[1] = 1
        except Exception as error:
            self.failure = Failure(error).at(self.where)
            part[:] = 0
            part[0] = 1
        part[1] = part[1] or self.interrupted
        return part

    def what_failed(self):
        return self.failure

    # ------------------------------------------------------------ passes

    def open_pass(self, key, c, intercept):
        rows = self.home.row_pass(self.labels.code(c, self.weights), intercept=intercept, n_threads=self.n_threads)
        rows.first, rows.between_slices = self.first, self.break_off
        self.passes[key] = rows
        return self.about(key)

    def sample(self, key, of, *arguments):
        rows = self.passes[of]
        self.passes[key], read = rows.gather_sample(*arguments)
        return (*self.about(key), read * rows.n_rows)

    def chosen_rows(self, key, *arguments):
        """The same rows and their code, to be read elsewhere; and how many were read for it."""
        rows = self.passes[key]
        part, read = rows.gather_sample(*arguments)
        return *self.to_send(part), read * rows.n_rows

    def ask_nearest(self, key, method, *arguments):
        return self.passes[key].ask_nearest(method, *arguments)

    def beside_lines(self, key, of, *arguments):
        self.passes[key], *own = self.passes[of].beside_lines(*arguments)
        return *self.about(key), own

    def rows_beside_lines(self, key, *arguments):
        """The same rows and their code, to be read elsewhere; and their sums."""
        part, *own = self.passes[key].beside_lines(*arguments)
        return *self.to_send(part), own

    def to_send(self, part):
        return self.home.unrepeated().take(part.rows, self.home.dtype), part.code

    def weigh_sides(self, key, positives, negatives):
        self.passes[key].weigh_sides(positives, negatives)
        return self.about(key)

    def about(self, key):
        rows = self.passes[key]
        return rows.n_rows, *rows.sides(), rows.total_weight

    def tell_pass(self, key, method, *arguments):
        getattr(self.passes[key], method)(*arguments)

    def margins(self, key):
        return self.passes[key].margins()

    # ------------------------------------------------------------ the heaviest rows

    def extent(self, key):
        """Of the rows' measures that in the middle, the largest, and their sum; None without rows."""
        rows = self.passes[key]
        if not rows.n_rows:
            return None
        middle = (rows.n_rows - 1) // 2
        return np.partition(rows.norms, middle)[middle], rows.norms.max(), float(np.abs(rows.code) @ rows.norms)

    def below(self, key, pivots):
        """How many of the rows' measures are below each pivot."""
        if self.sorted.get("key") != key:
            self.sorted = {"key": key, "places": np.sort(places_of(self.passes[key].norms))}
        return np.searchsorted(self.sorted["places"], pivots)

    def heavy(self, key, limit):
        """The rows above the limit, which stay out of the curvature from here on."""
        rows, self.sorted = self.passes[key], {}
        index = np.flatnonzero(rows.norms > limit)
        mask = np.zeros(rows.n_rows, np.uint8)
        mask[index] = 1
        rows.set_exact(mask)
        rows.let_measures_go()
        return self.home.unrepeated().take(index, self.home.dtype), rows.code[index]

    # ------------------------------------------------------------ the shared start

    def start_rows(self, size, n_rows):
        """Its part of a sample of ``size`` of all rows: rows, codes, weights."""
        n = self.home.n_rows
        rows = spaced(self.labels.order(), min(n, -(-size * n // max(1, n_rows))))
        return self.home.take(rows, np.float64), self.labels.sample(rows).astype(np.int8), self.weights[rows]

    def some_rows(self, size, n_rows):
        """Its part of ``size`` rows that stand for all ``n_rows``, their codes and weights."""
        rows = some_places(n_rows, size) - self.first
        rows = rows[(rows >= 0) & (rows < self.home.n_rows)]
        return self.home.take(rows, np.float64), self.labels.sample(rows).astype(np.int8), self.weights[rows]

    def in_units(self, columns):
        """Its rows in `Columns` from here on."""
        self.home = self.home.in_units(columns)
        vars(self).pop("blocks", None)

    def start_losses(self, W, first, intercept, loss):
        """Sums of the losses of the problems from ``first`` on at weights W."""
        codes = [self.labels.code(first + k, 1.0) for k in range(len(W))]
        return losses_at(self.home, codes, self.weights, W, intercept, loss)

    def largest(self):
        return self.home.largest() if self.home.entries else 0.0

    # ------------------------------------------------------------ steps on these rows alone

    def begin_work(self, key, kind, *arguments):
        """Make what a stochastic method keeps here; ``kind(place, ...)`` is a class that every place can import."""
        self.works[key] = kind(self, *arguments)

    def positives(self):
        """How many rows, and positives of every problem."""
        Y = self.labels.columns()
        return Y.shape[0], Y.getnnz(axis=0).astype(np.int64)

    def work(self, key, method, *arguments):
        return getattr(self.works[key], method)(*arguments)

    # ------------------------------------------------------------ scores of all problems

    @cached_property
    def blocks(self):
        return self.home.score_blocks(self.labels.columns(), self.weights, self.n_threads)

    def score_sums(self, method, *arguments):
        """What a method of `ScoreBlocks` sums; None without rows."""
        return getattr(self.blocks, method)(*arguments) if self.home.n_rows else None

    def score_margins(self, W, bias):
        """(len(W), n_rows) margins of these problems, which are the first ones."""
        if not self.home.n_rows:
            return np.empty((len(W), 0))
        return np.concatenate([margins for _, margins in self.blocks.margins(W, bias)])

    def score_losses(self, *arguments):
        """Sums of the losses of every problem; 0 without rows, of which there is no mean."""
        if not self.home.n_rows:
            return 0.0
        return np.concatenate([value for _, value in self.blocks.mean_losses(*arguments)]) * self.weights.sum()


def _look(rows, request, out):
    if request.asks(RESTART):
        rows.start(request.asks(PRIMAL))
    rows.set_active(request.active)
    p = rows.n_columns
    wanted = TANGENTS if request.asks(LINES) else ROUGH_BLOCK if request.asks(ROUGH) else request.asks(HESSIAN)
    sums, gradient, block = rows.look(request.vector_of(p), request[STEP], request[LINE_WIDTH], request[WIDTH],
                                      request[FLOOR], wanted)
    out[:N_SUMS], out[N_SUMS:N_SUMS + 3 * p] = sums, gradient.reshape(-1)
    if block is not None:
        at = N_SUMS + 3 * p
        for i, row in enumerate(block):
            out[at:at + len(row) - i] = row[i:]
            at += len(row) - i


def _along(rows, request, out):
    out[:] = rows.along(request[STEP], request[WIDTH])


def _product(rows, request, out):
    out[:-1], share = rows.hessian_product(request.vector_of(rows.n_columns), request[WIDTH], request[FLOOR])
    out[-1] = share * rows.n_rows


def _evaluate(rows, request, out):
    out[-1], squares = rows.evaluate(request.vector_of(rows.n_columns), request.asks(SQUARES))
    out[:-1] = 0.0 if squares is None else squares
