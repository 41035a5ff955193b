"""Margin pursuit: seconds a pass of each solver, reads and seconds to accuracy, a step beside one of SLND."""

import time
import warnings

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from .common import digits, gaussian_classes

try:
    from cmargin import MarginPursuitClassifier, PegasosClassifier
    from cmargin.data import open_rows
    from cmargin.solvers.first_order.margin_pursuit import ProjectedSGD, Start
    from cmargin.solvers.per_class import class_streams
    from cmargin.solvers.problem import PursuitSettings
    from cmargin.solvers.sgd.class_lists import ClassLists
    from cmargin.solvers.sgd.class_passes import ClassPasses
    from cmargin.solvers.sgd.class_weights import ClassWeights
    from cmargin.solvers.sgd.low_rank import build_inverse
except ImportError:  # a commit before these existed: asv marks the benchmarks as failed and goes on
    MarginPursuitClassifier = None


def fitted(X, y, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return MarginPursuitClassifier(random_state=3, n_jobs=2, **parameters).fit(X, y)


class Pass:
    """One pass over 40,000 x 100 rows of two and of twenty classes."""

    params = (["newton", "gd", "sgd"], [2, 20], ["float32", "float64"])
    param_names = ("solver", "classes", "dtype")

    def setup(self, solver, classes, dtype):
        self.X, self.y = gaussian_classes(40000, 100, classes, np.dtype(dtype))

    def track_seconds_per_pass(self, solver, classes, dtype):
        """Of all classes, on the clock of the wall; without the trace."""
        history = fitted(self.X, self.y, solver=solver, l2=1e-3, trace=False, max_passes=6, tol=1e-14).history_
        problems = classes if solver == "newton" and classes > 2 else 1
        return float(history["seconds"].max() / len(history["pass"]) * problems)

    track_seconds_per_pass.unit = "s"

    def track_trace_over_pass(self, solver, classes, dtype):
        """Seconds of the trace for one of the pass."""
        history = fitted(self.X, self.y, solver=solver, l2=1e-3, max_passes=6, tol=1e-14).history_
        return float(history["seconds_trace"][-1] / history["seconds_steps"][-1])

    track_trace_over_pass.unit = "times"

    def peakmem_fit(self, solver, classes, dtype):
        fitted(self.X, self.y, solver=solver, l2=1e-3, max_passes=3)


class Newton:
    """To 1e-8 of the first gradient norm; the accuracy on unseen rows beside it."""

    params = ([1e-2, 1e-6], [0.2, 1.0])
    param_names = ("l2", "scale")

    def setup(self, l2, scale):
        self.X, self.X_test, self.y, self.y_test = digits()

    def time_fit(self, l2, scale):
        fitted(self.X, self.y, l2=l2, scale=scale, tol=1e-8, trace=False)

    def track_reads(self, l2, scale):
        """Target: at most 30."""
        return fitted(self.X, self.y, l2=l2, scale=scale, tol=1e-8, trace=False).n_passes_

    track_reads.unit = "passes"

    def track_test_accuracy(self, l2, scale):
        return float(fitted(self.X, self.y, l2=l2, scale=scale, tol=1e-8).score(self.X_test, self.y_test))

    track_test_accuracy.unit = "share"


class ProjectedStep:
    """A step of the projected solver, and one of SLND on rows of the same width, taken in turns."""

    params = ([50, 200], ["float32", "float64"])
    param_names = ("width", "dtype")

    def setup(self, width, dtype):
        X, y = gaussian_classes(20000, width, 20, np.dtype(dtype))
        Y = sp.csc_matrix((np.ones(len(y), np.int8), (np.arange(len(y)), y)))
        source = open_rows(X).stochastic_rows(2)
        settings = PursuitSettings("margin_pursuit", 1.0, 1.0, False, 1e-3, None, 1e-6, 1, True, None)
        self.run = ProjectedSGD(open_rows(X).score_blocks(Y, None, 2), settings, Start(), None, source, 3)
        self.run.prepare()
        inverse, _ = build_inverse(source, np.arange(2000), np.ones((1, 2000)), 20, "scale")
        self.slnd = (source.whiten(inverse), inverse, ClassWeights.start(inverse, 20, X.dtype, True), np.full(20, 1e-3),
                     np.ones(1))
        self.passes = ClassPasses(source, ClassLists.from_indicator(Y, None), None, "logistic", class_streams(3, 20))
        self.n_steps = 20 * len(y)

    def seconds(self, repeats=9):
        pairs = []
        for _ in range(repeats):
            begin = time.perf_counter()
            self.run.one_pass()
            middle = time.perf_counter()
            self.passes.plain(*self.slnd)
            pairs.append((middle - begin, time.perf_counter() - middle))
        return np.array(pairs)

    def track_nanoseconds(self, width, dtype):
        return 1e9 * float(np.median(self.seconds()[:, 0])) / self.n_steps

    track_nanoseconds.unit = "ns"

    def track_over_slnd(self, width, dtype):
        """Target: under 1.5."""
        pairs = self.seconds()
        return float(np.median(pairs[:, 0] / pairs[:, 1]))

    track_over_slnd.unit = "times"


class Accuracy:
    """Thirty passes of the stochastic solvers, and what they are worth."""

    params = ["pursuit", "pegasos"]
    param_names = ("method",)

    def setup(self, method):
        self.X, self.X_test, self.y, self.y_test = digits()

    def fit(self, method):
        if method == "pursuit":
            return fitted(self.X, self.y, solver="sgd", l2=1e-2, max_passes=30, trace=False)
        return PegasosClassifier(l2=1e-4, max_passes=30, trace=False, random_state=3, n_jobs=2).fit(self.X, self.y)

    def time_fit(self, method):
        self.fit(method)

    def track_test_accuracy(self, method):
        return float(self.fit(method).score(self.X_test, self.y_test))

    track_test_accuracy.unit = "share"
