"""How soon as accurate: from which of fifty places in two photographs does a patch of 5 x 5 pixels come?

Each of the photographs that come with scikit-learn is divided into 5 x 5 places; a patch is 75 numbers. Many classes
that overlap, and columns that are alike, are what a linear probe on embeddings meets too.
"""

import warnings

import numpy as np
from sklearn.datasets import load_sample_images
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from cmargin import BSNClassifier, SLNDClassifier
from cmargin.demo.result import Result, Split, shortest

NAME = "places"
SIZE, SIDE = 5, 5                        # pixels of a patch, and places of a photograph, along each side
PATCHES = 9000
MAKERS = {
    "SLNDClassifier": lambda **more: SLNDClassifier(random_state=0, **more),
    "BSNClassifier": lambda **more: BSNClassifier(random_state=0, **more),
    "LogisticRegression": lambda **more: LogisticRegression(**{"max_iter": 300, **more}),
}
CURVES = {"SLNDClassifier": ("max_passes", (1, 2, 4)), "LogisticRegression": ("max_iter", (10, 30, 100))}
THETA = np.linspace(0, 1, 501)


def load(n_patches=PATCHES):
    """Patches at random from both photographs, and their places, split and standardised."""
    rng, X, y = np.random.default_rng(0), [], []
    for number, image in enumerate(load_sample_images().images):
        windows = np.lib.stride_tricks.sliding_window_view(image, (SIZE, SIZE), axis=(0, 1))
        height, width = windows.shape[:2]
        row, column = rng.integers(height, size=n_patches // 2), rng.integers(width, size=n_patches // 2)
        X.append(windows[row, column].reshape(len(row), -1).astype(float))
        y.append((number * SIDE + row * SIDE // height) * SIDE + column * SIDE // width)
    X, X_test, y, y_test = train_test_split(np.concatenate(X), np.concatenate(y), test_size=1 / 3, random_state=0)
    scaler = StandardScaler().fit(X)
    return Split(NAME, scaler.transform(X), y, scaler.transform(X_test), y_test)


def run(split, fits):
    """A `Result` for each classifier; every point of a curve is a fit of its own, of that many passes or iterations."""
    results = []
    for name, make in MAKERS.items():
        parameter, numbers = CURVES.get(name, (None, ()))
        curve = [timed(make(**{parameter: number}), split, 1) for number in numbers]
        model = make()
        curve.append(timed(model, split, fits))
        of_truth = model.predict_proba(split.X_test)
        ranks = (of_truth > of_truth[np.arange(len(of_truth)), split.y_test][:, None]).sum(axis=1)
        of_truth = np.sort(of_truth[np.arange(len(of_truth)), split.y_test])
        margin_error = THETA, np.searchsorted(of_truth, THETA, side="right") / len(of_truth)
        passes = getattr(model, "n_passes_", float(np.max(model.n_iter_)))
        results.append(Result(NAME, name, curve[-1][1], float(np.mean(ranks < 5)), passes, None, curve[-1][0],
                              accuracy=tuple(np.array(curve).T), margin_error=margin_error))
    return results


def timed(model, split, fits):
    """Seconds of a fit, and its accuracy."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)       # iterations that are too few are the point
        seconds = shortest(lambda: model.fit(split.X, split.y), fits)
    return seconds, model.score(split.X_test, split.y_test)
