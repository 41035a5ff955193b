"""Rows that compiled code cannot reach: a data source made of data sources, answering through Python what `RowPass`
asks.
"""

from functools import partial
from itertools import pairwise

import numpy as np

from cmargin.data import open_rows
from cmargin.data.working_set import Answered, choose


class Elsewhere:
    """Parts of the rows, each a pass of its own; their answers are added up in order."""

    def __init__(self, parts):
        self.parts = parts
        self.n_rows = sum(part.n_rows for part in parts)
        self.n_columns, self.n_features, self.rounding = parts[0].n_columns, parts[0].n_features, parts[0].rounding
        self.total_weight, self.share = sum(part.total_weight for part in parts), 1.0
        self.offset = parts[0].offset
        self.asked = []

    @classmethod
    def of(cls, X, signed_weight, cuts, intercept):
        edges = [0, *cuts, X.shape[0]]
        source = cls([open_rows(X[lo:hi]).row_pass(signed_weight[lo:hi], intercept=intercept, n_threads=1)
                      for lo, hi in pairwise(edges)])
        for part, first in zip(source.parts, edges, strict=False):
            part.first = first
        return source

    def everywhere(self, method, *args, **kwargs):
        self.asked.append(method)
        return [getattr(part, method)(*args, **kwargs) for part in self.parts]

    def set_loss(self, loss):
        self.everywhere("set_loss", loss)

    def pursue(self, level, scale):
        self.everywhere("pursue", level, scale)

    def margins(self):
        return np.concatenate(self.everywhere("margins"))

    def start(self, primal=False):
        self.everywhere("start", primal)

    def set_active(self, active):
        self.everywhere("set_active", active)

    def evaluate(self, **asked):
        sums, gradients, hessians = zip(*self.everywhere("evaluate", **asked), strict=True)
        return sum(sums), sum(gradients), None if hessians[0] is None else sum(hessians)

    def line(self, step, width):
        return np.sum(self.everywhere("line", step, width), axis=0)

    def hessp(self, x, width, curvature_floor=0.0):
        products, shares = zip(*self.everywhere("hessp", x, width, curvature_floor), strict=True)
        return sum(products), np.average(shares, weights=[part.n_rows for part in self.parts])

    def sides(self):
        counts, weights = zip(*self.everywhere("sides"), strict=True)
        return tuple(map(sum, zip(*counts, strict=True))), tuple(map(sum, zip(*weights, strict=True)))

    def measure_rows(self, weight):
        self.everywhere("measure_rows", weight)

    def foresee_working_set(self):
        self.everywhere("foresee_working_set")

    def forget_working_set(self):
        self.everywhere("forget_working_set")

    def gather_working_set(self, share, most, moved, width, sample=None):
        others, n_members, distance = choose(partial(self.everywhere, "ask_working_set"), self.n_rows, share, most,
                                             moved)
        if not n_members or not (others or sample):
            return None
        parts, vectors, totals = zip(*self.everywhere("beside_lines", width, sample), strict=True)
        some = Elsewhere(parts)
        some.share = some.n_rows / self.n_rows
        return Answered((some, sum(vectors), sum(totals), distance, some.share))

    def objective(self, w, squares=False):
        losses, squares = zip(*self.everywhere("objective", w, squares), strict=True)
        return sum(losses), sum(squares)
