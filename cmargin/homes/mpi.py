"""Rows that live with the ranks of an MPI communicator: rank 0 drives, the others serve.

Every rank has a `Place`, its own rows as a home in memory. Rank 0 has the `RankHome` besides, whose views ask all
places, its own among them, and fold what they say. What is asked at every step is one `Bcast` of a request, of one size
for all questions, and one `Reduce` of a packed sum:

    request   8 numbers, a vector of n_features + 1, a mask of as many bits for the columns of the curvature block
    sums      2 numbers (ranks that failed, ranks that were interrupted), then of a look 16, 3 n_columns and the upper
              triangle of the block; 3 along the line; n_columns + 1 of a product or an evaluation

What is asked a few times a problem are calls of a place's methods by name, with every rank's answer for itself. Subsets
of the rows stay where they are, as passes of their own; only the heaviest rows come to rank 0.
"""

import numpy as np
import scipy.sparse as sp

from cmargin._core.newton._heavy_rows import heavy_limit
from cmargin.homes.open import open_rows
from cmargin.homes.order import order_statistics, places_of
from cmargin.homes.ranks import Failure, Interrupted
from cmargin.homes.row_pass import SMALL
from cmargin.homes.shared_start import losses_at, ridge, sample_size, spaced

END, CALL, LOOK, ALONG, PRODUCT, EVALUATE = range(6)
OP, KEY, FLAGS, STEP, LINE_WIDTH, WIDTH, FLOOR, GONE, N_NUMBERS = range(9)
RESTART, PRIMAL, HESSIAN, VECTOR, ACTIVE, SQUARES = (1 << bit for bit in range(6))
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
    """One rank's rows, and what it says of them. All methods below `what_failed` are calls.

    Parameters
    ----------
    home : MemoryHome
    labels : object
        ``labels.code(c, weights)`` (n_rows,) of every problem, ``sample(rows)``, ``order()``.
    weights : (n_rows,) array
        Of mean 1 over all ranks.
    first : int
        The place of the first row among all ranks' rows.
    """

    def __init__(self, ranks, home, labels, weights, first, n_threads):
        self.ranks, self.home, self.labels, self.weights, self.first = ranks, home, labels, weights, first
        self.n_threads = n_threads if home.entries >= SMALL else 1
        self.passes, self.sorted, self.failure = {}, {}, None

    # ------------------------------------------------------------ serving

    def serve(self):
        """Answer until rank 0 says that it has done."""
        request = Request(self.home.n_features)
        while True:
            self.ranks.spread(request.buffer)
            if request[OP] == END:
                return
            self.answer(request)

    def answer(self, request, total=None):
        """This rank's part in one request; what a call brought, on rank 0."""
        self.passes.pop(request[GONE], None)
        if request[OP] == CALL:
            return self.ranks.gather(self.called(*self.ranks.share()))
        part = self.reply(request)
        self.ranks.add(part, total)
        return None

    def called(self, method, arguments):
        try:
            return getattr(self, method)(*arguments)
        except Exception as error:
            return Failure(error).on(self.ranks.rank)

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
            self.failure = Failure(error).on(self.ranks.rank)
            part[:] = 0
            part[0] = 1
        part[1] = part[1] or self.ranks.interrupts.came
        return part

    def what_failed(self):
        return self.failure

    # ------------------------------------------------------------ passes

    def open_pass(self, key, c, intercept):
        rows = self.home.row_pass(self.labels.code(c, self.weights), intercept=intercept,
                                   n_threads=self.n_threads)
        rows.first, rows.between_slices = self.first, self.ranks.interrupts.break_off
        self.passes[key] = rows
        return self.about(key)

    def sample(self, key, of, *arguments):
        rows = self.passes[of]
        self.passes[key], read = rows.gather_sample(*arguments)
        return (*self.about(key), read * rows.n_rows)

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

    def below(self, key, pivots):
        """How many of the rows' measures are below each pivot."""
        if self.sorted.get("key") != key:
            self.sorted = {"key": key, "places": np.sort(places_of(self.passes[key].norms))}
        return np.searchsorted(self.sorted["places"], pivots)

    def heavy(self, key, limit):
        """The rows above the limit, which stay out of the curvature from here on; and what all measure."""
        rows, self.sorted = self.passes[key], {}
        total = float(np.abs(rows.code) @ rows.norms)
        index = np.flatnonzero(rows.norms > limit)
        mask = np.zeros(rows.n_rows, np.uint8)
        mask[index] = 1
        rows.set_exact(mask)
        return self.home.unrepeated().take(index, self.home.dtype), rows.code[index], total

    # ------------------------------------------------------------ the shared start

    def start_rows(self, size, n_rows):
        """This rank's part of a sample of ``size`` of all rows: rows, codes, weights."""
        n = self.home.n_rows
        rows = spaced(self.labels.order(), min(n, -(-size * n // max(1, n_rows))))
        return self.home.take(rows, np.float64), self.labels.sample(rows).astype(np.int8), self.weights[rows]

    def start_losses(self, W, first, intercept, loss):
        """Sums of the losses of the problems from ``first`` on at weights W."""
        codes = [self.labels.code(first + k, 1.0) for k in range(len(W))]
        return losses_at(self.home, codes, self.weights, W, intercept, loss)


def _look(rows, request, out):
    if request.asks(RESTART):
        rows.start(request.asks(PRIMAL))
    rows.set_active(request.active)
    p = rows.n_columns
    sums, gradient, block = rows.look(request.vector_of(p), request[STEP], request[LINE_WIDTH], request[WIDTH],
                                      request[FLOOR], request.asks(HESSIAN))
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


class RankHome:
    """`Home` on rank 0 over the places of all ranks; of the views, those that sums over all rows can answer.

    Parameters
    ----------
    ranks : Ranks
    place : Place
        Rank 0's own.
    agreed : object
        What all ranks know of labels and weights, instead of ``y``: ``n_rows`` and ``entries`` of all.
    """

    row_is_contiguous = True
    y = None

    def __init__(self, ranks, place, agreed):
        home = place.home
        self.ranks, self.place, self.agreed = ranks, place, agreed
        self.n_rows, self.n_features, self.entries = agreed.n_rows, home.n_features, agreed.entries
        self.dtype, self.sparse = home.dtype, home.sparse
        self.request, self.keys, self.gone = Request(home.n_features), 0, []

    # ------------------------------------------------------------ asking

    def ask(self, op, n_columns, **parts):
        """One request and the sums of all ranks' answers."""
        self.ranks.interrupts.holding = True
        self.send(op, **parts)
        total = np.empty(self.request.reply_size(n_columns))
        self.place.answer(self.request, total)
        if total[0]:
            self.call("what_failed")
        self.ranks.interrupts.came |= bool(total[1])
        self.ranks.interrupts.let_go()
        return total[STATE:]

    def call(self, method, *arguments):
        """Every rank's answer; the first failure among them is raised."""
        self.ranks.interrupts.holding = True
        self.send(CALL, key=-1)
        self.ranks.share((method, arguments))
        answers = self.ranks.gather(self.place.called(method, arguments))
        failures = [answer for answer in answers if isinstance(answer, Failure)]
        if failures:
            raise failures[0].error()
        self.ranks.interrupts.let_go()
        return answers

    def send(self, op, **parts):
        self.request.write(op, gone=self.gone.pop() if self.gone else -1, **parts)
        self.ranks.spread(self.request.buffer)

    def end(self):
        """Let the others go."""
        self.ranks.interrupts.holding = True
        self.send(END, key=-1)

    def new_key(self):
        self.keys += 1
        return self.keys

    # ------------------------------------------------------------ views

    def row_pass(self, code, *, intercept, n_threads):
        """``code``: the number of the problem, by which all ranks know it."""
        key = self.new_key()
        return RankPass(self, key, intercept, self.call("open_pass", key, code, intercept))

    def shared_start(self, codes, weights, intercept, l2, loss):
        return RankStart(self, len(codes), intercept, l2, loss)


class RankPass:
    """`RowPass` over all ranks; its rows are read by their places."""

    def __init__(self, home, key, intercept, abouts):
        self.home, self.key, self.intercept = home, key, intercept
        self.n_features, self.n_columns = home.n_features, home.n_features + intercept
        self.restart = self.primal = False
        self.active, self.block = None, None
        self.learn(abouts)

    def __del__(self):
        self.home.gone.append(self.key)

    def learn(self, abouts):
        sizes, counts, weights, totals = zip(*(about[:4] for about in abouts), strict=True)
        self.n_rows, self.total_weight = sum(sizes), float(sum(totals))
        self.both = tuple(np.sum(counts, axis=0).tolist()), tuple(np.sum(weights, axis=0).tolist())
        self.share = self.n_rows / max(1, self.home.n_rows)

    def call(self, method, *arguments):
        return self.home.call(method, self.key, *arguments)

    # ------------------------------------------------------------ sums

    def set_loss(self, name):
        self.call("tell_pass", "set_loss", name)

    def pursue(self, level, scale):
        self.call("tell_pass", "pursue", level, scale)

    def start(self, primal=False):
        self.restart, self.primal = True, primal

    def set_active(self, active):
        self.active = active

    def look(self, direction, step, line_width, width, curvature_floor, with_hessian=True):
        flags = RESTART * self.restart | PRIMAL * bool(self.primal) | HESSIAN * bool(with_hessian)
        told = self.home.ask(LOOK, self.n_columns, key=self.key, flags=flags, step=step, line_width=line_width,
                             width=width, floor=curvature_floor, vector=direction, active=self.active)
        self.restart = False
        at = N_SUMS + 3 * self.n_columns
        return told[:N_SUMS], told[N_SUMS:at].reshape(3, -1), self.unpacked(told[at:]) if len(told) > at else None

    def unpacked(self, triangle):
        order = self.n_columns if self.active is None else len(self.active)
        if self.block is None or len(self.block) != order:
            self.block = np.zeros((order, order))
        at = 0
        for i in range(order):
            self.block[i, i:] = triangle[at:at + order - i]
            at += order - i
        return self.block

    def along(self, step, width):
        return tuple(self.home.ask(ALONG, self.n_columns, key=self.key, step=step, width=width))

    def hessian_product(self, x, width, curvature_floor=0.0):
        told = self.home.ask(PRODUCT, self.n_columns, key=self.key, width=width, floor=curvature_floor, vector=x)
        return told[:-1], told[-1] / max(1, self.n_rows)

    def evaluate(self, w, squares=False):
        told = self.home.ask(EVALUATE, self.n_columns, key=self.key, flags=SQUARES * bool(squares), vector=w)
        return told[-1], told[:-1] if squares else None

    def margins(self):
        return np.concatenate(self.call("margins"))

    def sides(self):
        return self.both

    # ------------------------------------------------------------ a few rows

    def gather_sample(self, positives, negatives, seed, column_weight=None):
        """A pass over rows that stay with their ranks, so that all read them; the share that was read."""
        key = self.home.new_key()
        abouts = self.home.call("sample", key, self.key, positives, negatives, seed, column_weight)
        return RankPass(self.home, key, self.intercept, abouts), sum(about[4] for about in abouts) / self.home.n_rows

    def weigh_sides(self, positives, negatives):
        self.learn(self.call("weigh_sides", positives, negatives))

    def measure_rows(self, weight):
        self.call("tell_pass", "measure_rows", np.array(weight))

    def gather_heavy(self):
        def below(pivots):
            return sum(self.call("below", pivots))

        limit = heavy_limit(self.n_rows, lambda places: order_statistics(below, places))
        rows, codes, totals = zip(*self.call("heavy", limit), strict=True)
        mean = sum(totals) / self.total_weight
        code = np.concatenate(codes)
        if not len(code):
            return None, mean
        X = sp.vstack(rows, format="csr") if self.home.sparse else np.concatenate(rows)
        n_threads = self.home.place.n_threads if len(code) * self.n_columns >= SMALL else 1
        return open_rows(X).row_pass(code, intercept=self.intercept, n_threads=n_threads), mean


class RankStart:
    """`SharedStart` from a sample of every rank's rows."""

    def __init__(self, home, n_problems, intercept, l2, loss):
        self.home, self.intercept, self.l2, self.loss = home, intercept, l2, loss
        size = sample_size(home, n_problems)
        rows, codes, weights = zip(*home.call("start_rows", size, home.n_rows), strict=True)
        X = sp.vstack(rows, format="csr") if home.sparse else np.concatenate(rows)
        self.W = ridge(X, np.hstack(codes), np.concatenate(weights), intercept, l2)
        self.objective = np.full(n_problems, np.inf)

    def evaluate(self, out_of_time):
        at_once = 8
        for lo in range(0, len(self.W), at_once):
            if out_of_time():
                return
            W = self.W[lo:lo + at_once]
            losses = sum(self.home.call("start_losses", W, lo, self.intercept, self.loss))
            squares = (W[:, :self.home.n_features] ** 2).sum(axis=1)
            self.objective[lo:lo + at_once] = self.l2 / 2 * squares + losses / self.home.n_rows
