"""The classifiers into many classes, each as a trace of (top-1, top-5) on the test rows over seconds of training.

Stochastic ones are looked at after every pass of one long fit, the clock stopped meanwhile; the others are trained
from the start with ever more iterations (traces.py).
"""

from time import perf_counter
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from cmargin.slnd import BSNClassifier, SLNDClassifier
from cmargin.smsvm import SmSVMClassifier
from cmargin.solvers.sgd.multinomial import MultinomialRun
from cmargin.solvers.sgd.plain_sgd import identity
from race.traces import Point, TimeUp, Trace, quiet, trace, within


class PlainBatches(MultinomialRun):
    """SGD on the multinomial risk: SLND's batches, step rule and mean, with H* = I and rows as they are."""

    in_one_memory = False      # SGD has no Newton steps at its end

    def _invert(self, scores_from):
        inverse, spectrum = super()._invert(scores_from)
        plain = identity(self.source, self.subset, self.subset_weight)
        plain.centre = self._centre(inverse)
        plain.mean_square = self.source.mean_square(plain, self.subset, self.subset_weight)
        return plain, spectrum

    def _centre(self, inverse):
        return np.zeros(self.source.n_features)


class CentredBatches(PlainBatches):
    """The same with the mean row taken from every row."""

    def _centre(self, inverse):
        return inverse.centre


class SoftmaxSGD(SLNDClassifier):
    """SLND's multinomial passes without the inverse Hessian: what that buys shows beside it."""

    _joint = PlainBatches


class CentredSoftmaxSGD(SLNDClassifier):
    """The same on centred rows."""

    _joint = CentredBatches


EPOCHS = 200                   # of the stochastic ones, if the time lasts
TOO_WIDE = 5000                # columns; a Newton step there takes a matrix of 200 MB for every class


class Task(NamedTuple):
    """Rows of unit length; labels 0 .. n_classes - 1."""
    X: object
    y: np.ndarray
    X_test: object
    y_test: np.ndarray

    def small(self):
        """Some 500 of the rows, to load libraries and start threads on."""
        rows = slice(None, None, max(1, len(self.y) // 500))
        y = np.unique(self.y[rows], return_inverse=True)[1]
        return Task(self.X[rows], y, self.X[rows], y)


def accuracies(model, task):
    """(top-1, top-5) in percent."""
    if hasattr(model, "predict_top_k"):
        labels = model.predict_top_k(task.X_test, min(5, len(model.classes_)))
        hits = labels == task.y_test[:, None]
        return 100 * float(hits[:, 0].mean()), 100 * float(hits.any(axis=1).mean())
    scores = model.decision_function(task.X_test)
    of_truth = scores[np.arange(len(scores)), task.y_test]
    rank = (scores > of_truth[:, None]).sum(axis=1)
    return 100 * float((rank == 0).mean()), 100 * float((rank < 5).mean())


def pass_by_pass(fit, task, limit):
    """The trace of ``fit(after_pass)``, which calls after_pass(model) after every pass and stops where it says so."""
    points, start, paused, end = [], perf_counter(), 0.0, "passes done"

    def after_pass(model):
        nonlocal paused, end
        now = perf_counter()
        points.append(Point(now - start - paused, accuracies(model, task), len(points) + 1))
        paused += perf_counter() - now
        if points[-1].seconds > limit:
            end = "time limit"
        return points[-1].seconds > limit

    try:
        with quiet(), within(4 * limit):       # the alarm's clock is not stopped while accuracies are taken
            fit(after_pass)
    except TimeUp:
        end = "broken off"
    except Exception as error:
        end = f"failed: {error}".split("\n")[0]
    return Trace(points, perf_counter() - start - paused, end)


def low_rank(estimator):
    def run(task, parameters, limit, threads):
        def fit(after_pass):
            estimator(random_state=1, n_jobs=threads, callback=after_pass, **parameters).fit(task.X, task.y)
        return pass_by_pass(fit, task, limit)
    return run


def sgd(task, parameters, limit, threads):
    model = SGDClassifier(loss="log_loss", random_state=1, n_jobs=threads, **parameters)
    classes = np.unique(task.y)

    def fit(after_pass):
        for _ in range(EPOCHS):
            model.partial_fit(task.X, task.y, classes=classes)
            if after_pass(model):
                return
    return pass_by_pass(fit, task, limit)


def longer_runs(make, growth=2.0):
    """A trace of whole fits; ``make(parameters, effort, threads, n_rows)`` gives the estimator."""
    def run(task, parameters, limit, threads):
        def settled(values):
            return len(values) > 5 and len(set(values[-3:])) == 1

        return trace(lambda effort: (make(parameters, effort, threads, len(task.y)).fit(task.X, task.y), effort),
                     lambda fitted: (accuracies(fitted[0], task), fitted[1]), limit, settled, growth)
    return run


def smsvm(parameters, effort, threads, n_rows):
    return SmSVMClassifier(l2=1 / (parameters["C"] * n_rows), tol=0.3 / effort, n_jobs=threads, random_state=0)


def linear_svc(parameters, effort, threads, n_rows):
    return LinearSVC(max_iter=int(effort), random_state=0, **parameters)


def lbfgs(parameters, effort, threads, n_rows):
    return LogisticRegression(max_iter=int(effort), **parameters)


def newton_cholesky(parameters, effort, threads, n_rows):
    return OneVsRestClassifier(LogisticRegression(solver="newton-cholesky", max_iter=int(effort), **parameters))


def contenders(costs):
    """{name: (run, settings)}: those of SLND's kind as they come, the rest with a few values of what matters most.

    SLND and BSN, which make the same steps until H is estimated anew, are multinomial; the papers' form is one-vs-rest.
    """
    regularised = [{"C": C} for C in costs]
    steps = [{"alpha": alpha, "average": average} for average in (False, True) for alpha in (1e-6, 1e-5, 1e-4)]
    return {"SLND": (low_rank(SLNDClassifier), [{}]), "BSN": (low_rank(BSNClassifier), [{}]),
            "SLND one-vs-rest": (low_rank(SLNDClassifier), [{"loss": "logistic"}]),
            "softmax SGD": (low_rank(SoftmaxSGD), [{}]), "softmax SGD, centred": (low_rank(CentredSoftmaxSGD), [{}]),
            "SmSVM": (longer_runs(smsvm, 3.0), regularised), "SGD": (sgd, steps),
            "LinearSVC": (longer_runs(linear_svc), regularised), "lbfgs": (longer_runs(lbfgs), regularised),
            "newton-cholesky": (longer_runs(newton_cholesky), regularised)}


def unfit(name, X):
    """Why a contender cannot take part on this data, or None."""
    if name == "newton-cholesky" and (sp.issparse(X) or X.shape[1] > TOO_WIDE):
        return f"left out: sparse, or more than {TOO_WIDE} columns"
    return None
