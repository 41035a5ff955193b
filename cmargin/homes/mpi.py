"""Rows that live with the ranks of an MPI communicator: rank 0 drives, the others serve.

Every rank has a `Place`, its own rows as a home in memory. Rank 0 has the `RankHome` besides, whose views ask all
places, its own among them, and fold what they say. Subsets of the rows stay where they are, as passes of their own;
only the heaviest rows come to rank 0.
"""

import uuid

import numpy as np

from cmargin._core.newton._heavy_rows import heavy_limit
from cmargin.homes.arrays import joined
from cmargin.homes.open import open_rows
from cmargin.homes.order import order_statistics
from cmargin.homes.places import (
    ALONG,
    AVERAGE,
    CALL,
    END,
    EVALUATE,
    HESSIAN,
    LOOK,
    N_SUMS,
    PRIMAL,
    PRODUCT,
    RESTART,
    SQUARES,
    STATE,
    Request,
)
from cmargin.homes.ranks import Failure, Interrupted
from cmargin.homes.row_pass import SMALL
from cmargin.homes.score_blocks import ScoreBlocks
from cmargin.homes.shared_start import ridge, sample_size


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

    row_is_contiguous = in_memory = True                   # each rank's are
    y = None

    def __init__(self, ranks, place, agreed):
        home = place.home
        self.ranks, self.place, self.agreed = ranks, place, agreed
        self.n_rows, self.n_features, self.entries = agreed.n_rows, home.n_features, agreed.entries
        self.dtype, self.sparse = home.dtype, home.sparse
        self.sizes = np.diff([*agreed.first, agreed.n_rows])
        self.request, self.keys, self.gone = Request(home.n_features), 0, []

    def largest(self):
        return max(self.call("largest"))

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
        self.ranks.interrupts.came |= any(isinstance(answer, Interrupted) for answer in answers)
        failures = [answer for answer in answers if isinstance(answer, Failure)]
        if failures:
            raise failures[0].error()
        self.ranks.interrupts.let_go()
        return answers

    def average(self, key, *how):
        """Let every rank's work ``key`` go on from the mean of all weights."""
        self.ranks.interrupts.holding = True
        self.send(AVERAGE, key=key)
        self.ranks.share(how)
        self.place.averaged(key, *how)
        self.ranks.interrupts.let_go()

    def send(self, op, **parts):
        """The request; with it goes word of a pass that nobody asks for any more."""
        gone = self.gone.pop() if self.gone else -1
        self.place.passes.pop(gone, None)
        self.request.write(op, gone=gone, **parts)
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

    def score_blocks(self, Y, weight, n_threads):
        return RankBlocks(self)

    def stochastic_rows(self, n_threads):
        return RankRows(self)


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
        return self.brought(rows, codes), sum(totals) / self.total_weight

    def brought(self, rows, codes):
        """A pass, on rank 0, over rows that all ranks have brought; None for none."""
        code = np.concatenate(codes)
        if not len(code):
            return None
        n_threads = self.home.place.n_threads if len(code) * self.n_columns >= SMALL else 1
        return open_rows(joined(rows)).row_pass(code, intercept=self.intercept, n_threads=n_threads)

    # ------------------------------------------------------------ a checkpoint

    def kept(self):
        """The name that every rank keeps its rows' state by, for its own file."""
        name = uuid.uuid4().hex
        self.call("keep_pass", name)
        return {"name": name}

    def take_back(self, kept):
        return self.brought(*zip(*self.call("take_back_pass", kept["name"]), strict=True))


def ridge_of_all(home, n_problems, intercept, l2):
    """One ridge regression of all problems, from a sample of every rank's rows."""
    size = sample_size(home, n_problems)
    rows, codes, weights = zip(*home.call("start_rows", size, home.n_rows), strict=True)
    return ridge(joined(rows), np.hstack(codes), np.concatenate(weights), intercept, l2)


class RankStart:
    """`SharedStart` over all ranks."""

    def __init__(self, home, n_problems, intercept, l2, loss):
        self.home, self.intercept, self.l2, self.loss = home, intercept, l2, loss
        self.W = ridge_of_all(home, n_problems, intercept, l2)
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


class RankRows:
    """What a stochastic method over all ranks begins with; its steps are `Place.work`, where the rows are."""

    def __init__(self, home):
        self.home = home


class RankBlocks:
    """`ScoreBlocks` over all ranks."""

    n_threads = 1                  # of rank 0: others have their own
    weight = None                  # known to the places

    def __init__(self, home):
        self.home, self.n_rows, self.n_features, self.n_problems = home, home.n_rows, home.n_features, len(home.agreed)

    def reduce(self):
        return 0.0

    def row_pass(self, c, intercept, n_threads, w=None):
        rows = self.home.row_pass(c, intercept=intercept, n_threads=n_threads)
        return rows, (w[:rows.n_columns] if w is not None else None)

    def out_of(self, w, intercept):
        return w

    def ridge_start(self, intercept, l2):
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            W = ridge_of_all(self.home, self.n_problems, intercept, l2)
        return W[:, :self.n_features], (W[:, -1] if intercept else np.zeros(len(W)))

    def sums(self, W, bias, loss):
        there = [sums for sums in self.home.call("score_sums", "sums", W, bias, loss) if sums is not None]
        return [sum(parts) for parts in zip(*there, strict=True)]

    def moment_product(self, v, intercept):
        return sum(sums for sums in self.home.call("score_sums", "moment_product", v, intercept) if sums is not None)

    largest_curvature = ScoreBlocks.largest_curvature

    def margins(self, W, bias):
        """All problems in one group: their margins come to rank 0, 8 bytes a row and problem."""
        yield slice(0, len(W)), np.concatenate(self.home.call("score_margins", W, bias), axis=1)

    def mean_losses(self, W, bias, loss, level, scale):
        yield slice(0, len(W)), sum(self.home.call("score_losses", W, bias, loss, level, scale)) / self.n_rows
