"""How near to the optimum, how soon: from which of two photographs does a patch of 3 x 3 pixels come?

The photographs come with scikit-learn; every second pixel of every second line begins a patch, whose 27 numbers are the
columns. No classifier has an intercept here, so that all three minimise the same l2/2 |w|² + mean hinge.
"""

import warnings

import numpy as np
from sklearn.datasets import load_sample_images
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from cmargin import SmSVMClassifier
from cmargin.demo.result import Result, Split, shortest

NAME = "photographs"
L2 = 1e-4
ITERATIONS = {"LinearSVC, hinge": (1, 3, 10, 30, 100, 300), "SGDClassifier, hinge": (1, 3, 10, 30)}


def load(stride=2):
    """Patches of the two photographs, split and standardised."""
    patches = [np.lib.stride_tricks.sliding_window_view(image, (3, 3), axis=(0, 1))[::stride, ::stride].reshape(-1, 27)
               for image in load_sample_images().images]
    X = np.concatenate(patches).astype(np.float64)
    y = np.repeat([-1, 1], [len(part) for part in patches])
    X, X_test, y, y_test = train_test_split(X, y, test_size=1 / 3, random_state=0, stratify=y)
    scaler = StandardScaler().fit(X)
    return Split(NAME, scaler.transform(X), y, scaler.transform(X_test), y_test)


def objective(w, split):
    return L2 / 2 * w @ w + np.maximum(0, 1 - split.y * (split.X @ w)).mean()


def peer(name, iterations, n_rows):
    if name.startswith("LinearSVC"):
        return LinearSVC(loss="hinge", C=1 / (L2 * n_rows), fit_intercept=False, tol=1e-10, max_iter=iterations,
                         random_state=0)
    return SGDClassifier(alpha=L2, fit_intercept=False, tol=None, max_iter=iterations, random_state=0)


def run(split, fits):
    """A `Result` for each classifier; a curve of scikit-learn's has a fit for each number of iterations."""
    model = SmSVMClassifier(l2=L2, fit_intercept=False, random_state=0)
    seconds = shortest(lambda: fit(model, split), fits)
    history, gap = model.history_, float(model.duality_gap_[0])
    least = model.objective_[0] * (1 - gap)                       # no weights have a lower objective: this is proven
    shown = np.isfinite(history["gap"])
    # the clock of the last fit, in units of the shortest
    times = history["seconds"] * (seconds / history["seconds"][-1])
    curve = times[shown], np.minimum.accumulate(history["gap"][shown])
    results = [Result(NAME, "SmSVMClassifier", model.score(split.X_test, split.y_test), None, model.n_passes_, gap,
                      seconds, distance=curve)]
    for name, numbers in ITERATIONS.items():
        curve = []
        for iterations in numbers:
            other = peer(name, iterations, len(split.y))
            seconds = shortest(lambda other=other: fit(other, split), fits)
            curve.append((seconds, (objective(other.coef_[0], split) - least) / least))
        results.append(Result(NAME, name, other.score(split.X_test, split.y_test), None, float(other.n_iter_),
                              curve[-1][1], seconds, distance=tuple(np.array(curve).T)))
    return results


def fit(model, split):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)       # fewer iterations than it wants are the point
        model.fit(split.X, split.y)
