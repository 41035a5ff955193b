"""Baselines: seconds a pass of each method, CG_DESCENT's reads beside L-BFGS-B's, what the passes are worth."""

import warnings

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from .common import digits, gaussian_classes

try:
    from cmargin import SLNDClassifier, baselines
    from cmargin.data import open_rows
    from cmargin.solvers.first_order.conjugate_gradient import CGDescent, SmoothRisk
    from cmargin.solvers.first_order.margin_pursuit import Start
    from cmargin.solvers.problem import PursuitSettings

    baselines.CGDescentClassifier       # noqa: B018  a commit before it existed
except (ImportError, AttributeError):  # asv marks the benchmarks as failed and goes on
    baselines = None

STOCHASTIC = ["SLND", "BalancedSGD", "PreconditionedSGD", "SGDQN"]
GRADIENT = ["CGDescent", "Nesterov", "AdaDelta", "Adam"]


def fitted(name, X, y, **parameters):
    make = SLNDClassifier if name == "SLND" else getattr(baselines, f"{name}Classifier")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return make(n_jobs=2, **parameters).fit(X, y)


class StochasticPass:
    """One pass over balanced lists, dense and CSR, of a hundred classes; SLND's beside it."""

    params = (STOCHASTIC, ["dense", "csr"], ["float32", "float64"])
    param_names = ("method", "rows", "dtype")

    def setup(self, method, rows, dtype):
        X, self.y = gaussian_classes(10000, 300, 100, np.dtype(dtype))
        if rows == "csr":
            X = np.where(np.abs(X) > 0.1, X, 0).astype(dtype)
            X = sp.csr_matrix(X)
        self.X = X

    def track_seconds_per_pass(self, method, rows, dtype):
        history = fitted(method, self.X, self.y, max_passes=8, step_size=0.1, random_state=3).history_
        return float(np.median(np.diff(history["seconds_steps"])))

    track_seconds_per_pass.unit = "s"


class GradientPass:
    """One pass over 40,000 x 100 rows, of two and of twenty classes; the objective is not evaluated in it."""

    params = (GRADIENT, [2, 20], ["float32", "float64"])
    param_names = ("method", "classes", "dtype")

    def setup(self, method, classes, dtype):
        self.X, self.y = gaussian_classes(40000, 100, classes, np.dtype(dtype))

    def track_seconds_per_pass(self, method, classes, dtype):
        """Of all classes."""
        history = fitted(method, self.X, self.y, l2=1e-4, max_passes=8, tol=1e-14).history_
        problems = 1 if classes == 2 else classes
        seconds = history["seconds_steps"][-1] / len(history["pass"])
        return float(seconds * (problems if method == "CGDescent" else 1))

    track_seconds_per_pass.unit = "s"

    def peakmem_fit(self, method, classes, dtype):
        fitted(method, self.X, self.y, l2=1e-4, max_passes=2, tol=1e-14)


class ConjugateGradients:
    """To 1e-6 of the first gradient norm, two overlapping classes."""

    params = (["logistic", "squared", "smoothed_hinge"], [1e-3, 1e-5])
    param_names = ("loss", "l2")

    def setup(self, loss, l2):
        X, y = gaussian_classes(20000, 60, 2, np.float64)
        self.X = X * np.logspace(0, 2, 60)
        self.blocks = open_rows(self.X).score_blocks(sp.csc_matrix((y == 1)[:, None].astype(np.int8)), None, 2)

    def risk(self, loss, l2):
        return SmoothRisk(self.blocks, 0, l2, True, loss, 0.5)

    def reads(self, loss, l2):
        settings = PursuitSettings("", 1.0, 1.0, False, l2, None, 1e-6, 3000, True, None)
        fit, _ = CGDescent(self.blocks, lambda c, width: self.risk(loss, l2), (0.0,), settings, Start(), None).run()
        return fit.reads

    def time_fit(self, loss, l2):
        self.reads(loss, l2)

    def track_reads(self, loss, l2):
        return float(self.reads(loss, l2))

    track_reads.unit = "passes"

    def track_reads_over_lbfgs(self, loss, l2):
        """Target: at most 2."""
        risk, norms = self.risk(loss, l2), []

        def both(v):
            value, gradient = risk(v)
            norms.append(np.linalg.norm(gradient))
            return value, gradient

        minimize(both, np.zeros(61), jac=True, method="L-BFGS-B",
                 options={"gtol": 1e-12, "ftol": 0.0, "maxiter": 3000, "maxfun": 6000})
        evaluations = 1 + next(k for k, norm in enumerate(norms) if norm <= 1e-6 * norms[0])
        return float(self.reads(loss, l2) / evaluations)

    track_reads_over_lbfgs.unit = "times"


class Accuracy:
    """Default parameters on digits, and what they are worth."""

    params = STOCHASTIC + GRADIENT
    param_names = ("method",)

    def setup(self, method):
        self.X, self.X_test, self.y, self.y_test = digits()

    def time_fit(self, method):
        fitted(method, self.X, self.y)

    def track_test_accuracy(self, method):
        return float(fitted(method, self.X, self.y).score(self.X_test, self.y_test))

    track_test_accuracy.unit = "share"
