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
from cmargin.data.working_set import BEYOND, ChoosesWorkingSet


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


class EvaluationQuestion(Question):
    def begin(self):
        primal = self.asked.pop("primal")
        if self.asked["move"] == RESTART:
            self.blocks.start(primal)
        self.blocks.set_active(self.asked.pop("active"))
        self.blocks.begin_evaluation(**self.asked)

    def part(self):
        return self.blocks.evaluate_window()

    def end(self):
        self.blocks.end_evaluation()
        super().end()


class HesspQuestion(Question):
    def over(self, chunk):
        self.n = chunk.rows.shape[0]
        super().over(chunk)

    def part(self):
        product, share = self.blocks.hessp(**self.asked)
        return product, share * self.n

    def end(self):
        super().end()
        self.answer = self.sums[0], float(self.sums[1]) / max(1, self.blocks.n_rows)


class ObjectiveQuestion(Question):
    def part(self):
        return self.blocks.objective(self.asked["w"], self.asked["squares"])


class FileRowPass(ChoosesWorkingSet):
    """`RowPass` over a `FileSource`; ``n_threads``: on one chunk."""

    share, rounding = 1.0, ROUNDING
    posts, not_when_late = ("evaluate", "hessp", "objective"), ("objective",)

    def __init__(self, source, signed_weight, intercept, n_threads, offset=None):
        self.place, self.intercept = source, intercept
        self.signed_weight = np.ascontiguousarray(signed_weight, float)
        self.offset = None if offset is None else np.ascontiguousarray(offset, float)
        self.blocks = RowWindows(source.no_rows, self.signed_weight, intercept, n_threads, source.most_rows,
                                 self.offset)
        self.n_rows, self.n_features, self.n_columns = source.n_rows, source.n_features, self.blocks.n_columns
        self.n_threads = n_threads
        self.both = sides_of(self.signed_weight)  # once: it takes the memory of another array of them
        self.total_weight = float(np.abs(self.signed_weight).sum())
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

    def line(self, step, width):
        return self.blocks.line(step, width)

    def margins(self):
        return self.blocks.margins()

    def sides(self):
        return self.both

    def measure_rows(self, weight):
        self.blocks.measure_rows(weight)

    # ------------------------------------------------------------ sums, each a read of the files

    def post(self, kind, asked):
        """Ask for the next read to answer; `work` reads, and ``answer`` of what is returned is then there."""
        if kind == "objective":
            return self.place.post(ObjectiveQuestion(self.blocks, w=asked["x"], squares=True))
        return self.place.post((EvaluationQuestion if kind == "evaluate" else HesspQuestion)(self.blocks, **asked))

    def work(self, until):
        """Read on until the clock says ``until``, for all who have asked."""
        self.place.work(until)

    def evaluate(self, direction, step, line_width, width, curvature_floor, with_hessian=True, move=None):
        return self.place.answer(EvaluationQuestion(
            self.blocks, move=move, primal=self.primal, active=self.active, direction=direction, step=step,
            line_width=line_width, width=width, curvature_floor=curvature_floor, with_hessian=with_hessian))

    def hessp(self, x, width, curvature_floor=0.0):
        return self.place.answer(HesspQuestion(self.blocks, x=x, width=width, curvature_floor=curvature_floor))

    def objective(self, w, squares=False):
        loss, sums = self.place.answer(ObjectiveQuestion(self.blocks, w=w, squares=squares))
        return float(loss), sums

    # ------------------------------------------------------------ a few rows, in memory

    def gathered(self, X, rows, weights):
        part = MemoryRowPass(MemorySource(X).rows, self.signed_weight[rows] * weights, intercept=self.intercept,
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
            rows, chance, _ = chosen(None, self.signed_weight, positives, negatives, seed)
            X = self.place.take(rows, self.place.dtype)
            return self.gathered(X, rows, 1 / chance), len(rows) / max(1, self.n_rows)
        X, rows, chance = self.place.answer(
            SampleQuestion(self.place, self.signed_weight, positives, negatives, seed, column_weight))
        return self.gathered(X, rows, 1 / chance), 1.0

    def gather_working_set(self, share, most, moved, width, sample=None):
        """One read for all problems that ask for rows at the same time; fewer rows where memory has room for fewer."""
        if self.offset is not None:
            return None
        room = self.place.room_for_rows()
        share, most = (min(part, room / BEYOND / max(1, self.n_rows)) for part in (share, most))
        others, n_members, distance = self.choose_working_set(share, most, moved)
        if not n_members or not (others or sample):
            return None
        index, weights = self.working_set.beside(None if sample is None
                                                 else chosen(None, self.signed_weight, *sample)[:2])
        if len(index) > room:
            return None

        def answer(X):
            part = self.gathered(X, index, weights)
            self.blocks.see_all()
            return part, *part.lines(self.working_set.u[index], width), distance, self.share + part.share

        return self.place.post(ListedQuestion(self.place, index, answer))

    # ------------------------------------------------------------ a checkpoint

    def kept(self):
        self.blocks.see_all()
        return {**kept_of_rows(self.blocks, self.measures_are_wanted), "working_set": self.kept_working_set()}

    def take_back(self, kept):
        take_back_rows(self.blocks, kept)
        self.take_back_working_set(kept["working_set"])
