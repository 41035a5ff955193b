"""What the experiments of SLND and BSN share: their data sets, their methods, accuracy after every pass."""

import time
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import normalize

from cmargin import BSNClassifier, SLNDClassifier, baselines, datasets

FULL = ("tinyimagenet", "mnist", "sector")
QUICK = ("digits",)
DATA = """\
The papers use Fisher vectors of Caltech256, SUN and ImageNet, which are not to be had here. In their place:
`tinyimagenet` (200 classes, 20,000 x 1,812, oriented gradients and colours), `mnist` (10 classes, 60,000 x 784) and
`sector` (105 classes of texts, 6,412 x 55,197, sparse), with the original test rows. Rows are l2-normalised,
float32."""
# The papers draw one negative per positive and take no mean of the iterates; SLND and BSN drop the tail
AS_PUBLISHED: dict[str, dict[str, object]] = {"SGD": {"negatives_per_positive": 1, "average": False}}
AS_PUBLISHED["SLND"] = AS_PUBLISHED["BSN"] = {**AS_PUBLISHED["SGD"], "tail": "drop"}
PUBLISHED_TEXT = """\
"As published": one negative per positive, the last iterate instead of a mean, and a dropped tail where there is
one; the step is found automatically and falls as one over the pass in all forms."""
# The baselines by the names of their papers: classes of cmargin.baselines
STOCHASTIC = {"SGD": "BalancedSGDClassifier", "SGD-P": "PreconditionedSGDClassifier", "SGD-QN": "SGDQNClassifier"}


@dataclass
class Split:
    X: object
    y: np.ndarray
    X_test: object
    y_test: np.ndarray


def names(quick):
    return QUICK if quick else FULL


@lru_cache(maxsize=1)
def rows_of(name):
    """Normalised rows with a split: the original one, or a third for testing."""
    data = datasets.load(name, dtype=np.float32)
    if not data.has_split:
        data.X, data.X_test, data.y, data.y_test = train_test_split(data.X, data.y, test_size=1 / 3, random_state=0,
                                                                    stratify=data.y)
    return Split(normalize(data.X), data.y, normalize(data.X_test), data.y_test)


def stochastic():
    """Names of the stochastic baselines that this version of the library has."""
    return [name for name, attribute in STOCHASTIC.items() if hasattr(baselines, attribute)]


def make(method, **parameters):
    """An estimator by its name in the papers: SLND, BSN, or one of `STOCHASTIC`."""
    if method in STOCHASTIC:
        return getattr(baselines, STOCHASTIC[method])(random_state=0, **parameters)
    estimator = {"SLND": SLNDClassifier, "BSN": BSNClassifier}[method]
    return estimator(random_state=0, **{"loss": "logistic", **parameters})       # the papers' form, not the default


def top_1_and_5(model, X, y):
    """Shares of rows whose class is the most probable one, and among the five most probable, after prior correction."""
    right = model.predict_top_k(X, min(5, len(model.classes_))) == y[:, None]
    return float(right[:, 0].mean()), float(right.any(axis=1).mean())


class Trace:
    """Accuracy on the test rows after every pass, and the seconds of training alone; an estimator's callback."""

    def __init__(self, split):
        self.split, self.rows, self.own = split, [], 0.0
        self.begin = time.perf_counter()

    def __call__(self, model):
        now = time.perf_counter()
        top_1, top_5 = top_1_and_5(model, self.split.X_test, self.split.y_test)
        self.rows.append({"pass": len(self.rows) + 1, "seconds": now - self.begin - self.own, "top1": top_1,
                          "top5": top_5})
        self.own += time.perf_counter() - now


def train(method, data, **parameters):
    """(fitted estimator, rows of `Trace`, one a pass)."""
    split = rows_of(data)
    trace = Trace(split)
    model = make(method, callback=trace, **parameters)
    if method == "SGD-P" and hasattr(split.X, "indptr"):
        model.set_params(preconditioner="diagonal")     # whitened, 55,197 columns would be as many dense ones
    trace.begin = time.perf_counter()
    model.fit(split.X, split.y)
    return model, trace.rows


def percent(share):
    return f"{100 * share:.2f}"


def first_at(curve, column, level, of="top1"):
    """Entry of ``column`` where a curve first reaches ``level``; inf if it never does."""
    return next((x for x, value in zip(curve[column], curve[of], strict=True) if value >= level), np.inf)
