"""Rows in files with the state of one binary problem: `RowPass` whose questions wait for a read of the files.

What is kept of every row is in memory, and one `RowWindows` holds it; the rows come window by window. Sums over the
windows are added up in their order.
"""

import numpy as np

from cmargin._core.rows._row_pass import ROUNDING
from cmargin._core.rows._row_sample import chosen, sides_of
from cmargin._core.rows._row_state import kept_of_rows, take_back_rows
from cmargin._core.rows._row_windows import RowWindows
from cmargin.data.files.gathered import ListedQuestion, SampleQuestion
from cmargin.data.memory.row_pass import MemoryRowPass
from cmargin.data.memory.source import MemorySource
from cmargin.data.moves import RESTART
from cmargin.data.working_set import BEYOND, ChoosesNearest


class Question:
    """What a problem asks of the next read, summed up as chunks come; ``answer`` is there after the last."""

    wanted, answer = True, None          # a question whose driver has left is no longer wanted
    expected = 0                         # rows that it gathers

    def __init__(self, blocks, **asked):
        self.blocks, self.asked, self.sums = blocks, asked, None

    def begin(self):
        pass

    def over(self, chunk):
        self.blocks.see(chunk.rows, chunk.first)
        found = self.part()
        self.blocks.see_all()                    # the chunk is let go before the next but one is read
        if self.sums is None:
            self.sums = [None if part is None else np.array(part) for part in found]
            return
        for total, part in zip(self.sums, found, strict=True):
            if total is not None:
                total += part

    def end(self):
        self.answer = self.sums


class LookQuestion(Question):
    def begin(self):
        primal = self.asked.pop("primal")
        if self.asked["move"] == RESTART:
            self.blocks.start(primal)
        self.blocks.set_active(self.asked.pop("active"))
        self.blocks.begin_look(**self.asked)

    def part(self):
        return self.blocks.look_on()

    def end(self):
        self.blocks.end_look()
        super().end()


class ProductQuestion(Question):
    def over(self, chunk):
        self.n = chunk.rows.shape[0]
        super().over(chunk)

    def part(self):
        product, share = self.blocks.hessp(**self.asked)
        return product, share * self.n

    def end(self):
        super().end()
        self.answer = self.sums[0], float(self.sums[1]) / max(1, self.blocks.n_rows)


class EvaluateQuestion(Question):
    def part(self):
        return self.blocks.evaluate(self.asked["w"], self.asked["squares"])


class FileRowPass(ChoosesNearest):
    """`RowPass` over a `FileSource`.

    Parameters
    ----------
    source : FileSource
    code : (n_rows,) array
        Sample weight with the sign of the class.
    intercept : bool
    n_threads : int
        On one chunk.
    offset : (n_rows,) array, optional
        Of the slacks, see `RowPass`.
    """

    share, rounding = 1.0, ROUNDING
    posts, not_when_late = ("look", "product", "evaluate"), ("evaluate",)

    def __init__(self, source, code, intercept, n_threads, offset=None):
        self.place, self.intercept = source, intercept
        self.code = np.ascontiguousarray(code, float)
        self.offset = None if offset is None else np.ascontiguousarray(offset, float)
        self.blocks = RowWindows(source.no_rows, self.code, intercept, n_threads, source.most_rows, self.offset)
        self.n_rows, self.n_features, self.n_columns = source.n_rows, source.n_features, self.blocks.n_columns
        self.n_threads = n_threads
        self.both = sides_of(self.code)          # once: it takes the memory of another code
        self.total_weight = float(np.abs(self.code).sum())
        self.active, self.primal = None, False

    def start(self, primal=False):
        self.primal = primal
        self.blocks.start(primal)

    def set_loss(self, loss):
        self.blocks.set_loss(loss)

    def pursue(self, level, scale):
        self.blocks.pursue(level, scale)

    def set_active(self, active):
        self.active = active

    def along(self, step, width):
        return self.blocks.along(step, width)

    def margins(self):
        return self.blocks.margins()

    def sides(self):
        return self.both

    def measure_rows(self, weight):
        self.blocks.measure_rows(weight)

    # ------------------------------------------------------------ sums, each a read of the files

    def post(self, kind, asked):
        """Ask for the next read to answer; `work` reads, and ``answer`` of what is returned is then there."""
        if kind == "evaluate":
            return self.place.post(EvaluateQuestion(self.blocks, w=asked["x"], squares=True))
        return self.place.post((LookQuestion if kind == "look" else ProductQuestion)(self.blocks, **asked))

    def work(self, until):
        """Read on until the clock says ``until``, for all who have asked."""
        self.place.work(until)

    def look(self, direction, step, line_width, width, curvature_floor, with_hessian=True, move=None):
        return self.place.answer(LookQuestion(
            self.blocks, move=move, primal=self.primal, active=self.active, direction=direction, step=step,
            line_width=line_width, width=width, curvature_floor=curvature_floor, with_hessian=with_hessian))

    def hessp(self, x, width, curvature_floor=0.0):
        return self.place.answer(ProductQuestion(self.blocks, x=x, width=width, curvature_floor=curvature_floor))

    def evaluate(self, w, squares=False):
        loss, sums = self.place.answer(EvaluateQuestion(self.blocks, w=w, squares=squares))
        return float(loss), sums

    # ------------------------------------------------------------ a few rows, in memory

    def gathered(self, X, rows, weights):
        part = MemoryRowPass(MemorySource(X).rows, self.code[rows] * weights, intercept=self.intercept,
                             n_threads=self.n_threads, offset=None if self.offset is None else self.offset[rows])
        part.share = len(rows) / max(1, self.n_rows)
        return part

    def gather_sample(self, positives, negatives, seed, column_weight=None):
        """Of rows whose lengths matter, all are read, once; and no more are chosen than memory has room for."""
        counts = self.sides()[0]
        wanted = positives * counts[0] + negatives * counts[1]
        less = min(1.0, self.place.room_for_rows() / max(1.0, wanted))
        positives, negatives = positives * less, negatives * less
        if column_weight is None:
            rows, chance, _ = chosen(None, self.code, positives, negatives, seed)
            X = self.place.take(rows, self.place.dtype)
            return self.gathered(X, rows, 1 / chance), len(rows) / max(1, self.n_rows)
        X, rows, chance = self.place.answer(
            SampleQuestion(self.place, self.code, positives, negatives, seed, column_weight))
        return self.gathered(X, rows, 1 / chance), 1.0

    def nearest_apart(self, share, most, moved, width, sample=None):
        """One read for all problems that ask for rows at the same time; fewer rows where memory has room for fewer."""
        if self.offset is not None:
            return None
        room = self.place.room_for_rows()
        share, most = (min(part, room / BEYOND / max(1, self.n_rows)) for part in (share, most))
        others, near, distance = self.choose_nearest(share, most, moved)
        if not near or not (others or sample):
            return None
        index, weights = self.nearest.beside(None if sample is None else chosen(None, self.code, *sample)[:2])
        if len(index) > room:
            return None

        def answer(X):
            part = self.gathered(X, index, weights)
            self.blocks.see_all()
            return part, *part.lines(self.nearest.u[index], width), distance, self.share + part.share

        return self.place.post(ListedQuestion(self.place, index, answer))

    # ------------------------------------------------------------ a checkpoint

    def kept(self):
        self.blocks.see_all()
        return {**kept_of_rows(self.blocks, self.measures_are_wanted), "nearest": self.kept_nearest()}

    def take_back(self, kept):
        take_back_rows(self.blocks, kept)
        self.take_back_nearest(kept["nearest"])
