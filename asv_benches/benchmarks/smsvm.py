"""SmSVM: seconds of one pass by phase and against the machine's own limits, passes to a certified gap, peak memory."""

import warnings
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from .common import noisy_plane

try:
    from cmargin._runtime.blas_threads import single_threaded_blas
    from cmargin.data import open_rows
    from cmargin.data.source import SINGLE_BLOCK
    from cmargin.smsvm import SmSVMClassifier
except ImportError:                            # an older revision without them
    open_rows = SmSVMClassifier = None

THREADS = 2
SHAPES = {"tall": (581_012, 54, np.float64), "square": (100_000, 512, np.float32), "small": (5_000, 50, np.float64)}


def make(shape):
    return noisy_plane(*SHAPES[shape])


def interleaved_best(calls, times=7):
    """Least seconds of each of several calls, made in turns: what else the machine does then slows all of them."""
    best = [np.inf] * len(calls)
    for _ in range(times):
        for k, call in enumerate(calls):
            start = perf_counter()
            call()
            best[k] = min(best[k], perf_counter() - start)
    return best


class Evaluation(NamedTuple):
    """Seconds of an evaluation: as fits from w = 0 on all rows take it where columns are not dependent, curvature in
    single precision; the dearest, in double precision; the two limits. And the share of the rows in the block."""

    seconds: float
    dearest: float
    memory: float
    dsyrk: float
    curved: float

    @property
    def share_of_the_limit(self):
        """The larger limit over the evaluation."""
        return max(self.memory, self.dsyrk) / self.seconds


class Pass:
    """One evaluation over all rows: every row in the curvature block, or none of them."""

    threads = THREADS
    params = [list(SHAPES)]
    param_names = ["shape"]
    timeout = 300

    def setup(self, shape):
        if open_rows is None:
            raise NotImplementedError
        self.start(*make(shape))

    def start(self, X, y):
        self.X, self.y = X, y
        self.rows = open_rows(self.X).row_pass(self.y, intercept=True, n_threads=self.threads)
        self.w = np.full(self.X.shape[1] + 1, 1e-3)

    def evaluate(self, with_hessian, floor=0.0):
        with single_threaded_blas():
            return self.rows.evaluate(self.w, 1.0, 1.0, 1.0, floor, with_hessian)

    def time_look(self, shape):
        self.evaluate(True)

    def time_look_with_rough_curvature(self, shape):
        self.evaluate(SINGLE_BLOCK)

    def time_look_with_curvature_of_a_sample(self, shape):
        n, m = self.X.shape
        with single_threaded_blas():                   # at w = 0, where every row has the same: 8 rows a column
            self.rows.evaluate_sample(np.zeros(m + 1), 1.0, 1.0, 1.0, 2**-2.5 * n / (8 * m))

    def time_look_without_curvature(self, shape):
        self.evaluate(False)

    def time_along(self, shape):
        self.rows.line(0.5, 0.1)

    def against_the_limits(self, curved):
        """Seconds of an evaluation with this share of the rows curved, and of what none can beat: reading X, dsyrk."""
        n, m = self.X.shape
        self.rows.start(primal=True)
        self.w[:] = 0.1
        self.evaluate(False)
        floor = 0.0 if curved == 1 else np.quantile((1 + (1 - self.rows.margins()) ** 2) ** -1.5 / 2, 1 - curved)  # F''
        self.w[:] = 0.0                                # the same place again at every further evaluation
        taken = self.evaluate(True, floor)[0][6] / n
        part = np.ascontiguousarray(self.X[: max(1, 2**24 // m)], dtype=float)
        with threadpool_limits(self.threads):          # by itself, as its threads stay awake for a while
            [dsyrk] = interleaved_best([lambda: part.T @ part], 5)
        parts = np.array_split(self.X.reshape(-1), self.threads)
        with ThreadPoolExecutor(self.threads) as pool:
            evaluate, dearest, memory = interleaved_best([lambda: self.evaluate(SINGLE_BLOCK, floor),
                                                          lambda: self.evaluate(True, floor),
                                                          lambda: list(pool.map(np.max, parts))], 20)
        return Evaluation(evaluate, dearest, memory, dsyrk * taken * n / len(part), taken)

    def share_of_the_limit(self, curved):
        return self.against_the_limits(curved).share_of_the_limit

    def track_share_of_the_binding_limit(self, shape):
        return self.share_of_the_limit(1.0)

    def track_share_of_the_binding_limit_one_row_in_twenty_curved(self, shape):
        return self.share_of_the_limit(0.05)

    track_share_of_the_binding_limit.unit = "of the limit"
    track_share_of_the_binding_limit_one_row_in_twenty_curved.unit = "of the limit"


class Fit:
    """Passes and seconds to a certified gap, never one without the other."""

    params = [["tall", "small"], [1e-3, 1e-5], [1e-3, 1e-4, 1e-6]]
    param_names = ["shape", "l2", "tol"]
    timeout = 600

    def setup(self, shape, l2, tol):
        if SmSVMClassifier is None:
            raise NotImplementedError
        self.X, self.y = make(shape)

    def fit(self, l2, tol):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return SmSVMClassifier(l2=l2, tol=tol, n_jobs=THREADS, random_state=0).fit(self.X, self.y)

    def time_fit(self, shape, l2, tol):
        self.fit(l2, tol)

    def peakmem_fit(self, shape, l2, tol):
        self.fit(l2, tol)

    def track_passes(self, shape, l2, tol):
        return self.fit(l2, tol).n_passes_

    def track_gap(self, shape, l2, tol):
        return float(self.fit(l2, tol).duality_gap_[0])

    def track_seconds_in_looks(self, shape, l2, tol):
        return float(self.fit(l2, tol).history_["seconds_look"][-1])

    track_passes.unit, track_gap.unit, track_seconds_in_looks.unit = "passes", "of the objective", "s"


def make_text(n, m=50_000, entries=70):
    """Rows of unit length with about ``entries`` Zipf columns, weighted by rarity; labels of a noisy sparse model."""
    rng = np.random.default_rng(17)
    share = 1 / (np.arange(m) + 10.0)
    sizes = np.maximum(5, rng.lognormal(np.log(entries), 0.5, n)).astype(int)
    columns = np.minimum(np.searchsorted(np.cumsum(share) / share.sum(), rng.random(sizes.sum())), m - 1)
    X = sp.csr_matrix((np.ones(len(columns)), columns, np.append(0, np.cumsum(sizes))), shape=(n, m))
    X.sum_duplicates()
    X.data = (1 + np.log(X.data)) * (1 + np.log(n / (1 + np.bincount(X.indices, minlength=m))))[X.indices]
    X = sp.csr_matrix(sp.diags(1 / np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())) @ X)
    score = X @ (rng.standard_normal(m) * (rng.random(m) < 0.1))
    score += 0.5 * score.std() * rng.standard_normal(n)
    return X.astype(np.float32), np.where(score > np.median(score), 1.0, -1.0)


class Sparse:
    """Text-like rows: seconds and reads to a certified 1e-4, with an intercept and without."""

    params = [[20_000, 100_000], [0.1, 1.0, 10.0], [False, True]]
    param_names = ["rows", "C", "intercept"]
    timeout = 600

    def setup(self, n, C, intercept):
        if SmSVMClassifier is None:
            raise NotImplementedError
        self.X, self.y = make_text(n)

    def fit(self, n, C, intercept):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return SmSVMClassifier(l2=1 / (C * n), fit_intercept=intercept, max_passes=1000).fit(self.X, self.y)

    def time_fit(self, n, C, intercept):
        self.fit(n, C, intercept)

    def peakmem_fit(self, n, C, intercept):
        self.fit(n, C, intercept)

    def track_passes(self, n, C, intercept):
        return self.fit(n, C, intercept).n_passes_

    def track_gap(self, n, C, intercept):
        return float(self.fit(n, C, intercept).duality_gap_[0])

    track_passes.unit, track_gap.unit = "passes", "of the objective"


class Products:
    """Smooth losses where Hessian-vector products cost less than curvature: few texts, 400 dense columns; to 1e-3."""

    params = [["texts", "plane"], ["logistic", "squared_hinge"]]
    param_names = ["rows", "loss"]

    def setup(self, rows, loss):
        if SmSVMClassifier is None:
            raise NotImplementedError
        self.X, self.y = make_text(1_500, 3_300) if rows == "texts" else noisy_plane(5_000, 400, np.float64)

    def fit(self, rows, loss):
        return SmSVMClassifier(loss=loss, C=1.0, tol=1e-3).fit(self.X, self.y)

    def time_fit(self, rows, loss):
        self.fit(rows, loss)

    def track_passes(self, rows, loss):
        return self.fit(rows, loss).n_passes_

    track_passes.unit = "passes"
