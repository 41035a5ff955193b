"""Every container of rows with every kind of labels in every estimator: the plain NumPy answer, or a refusal in words.

A cell is a container, a kind of labels and an estimator. It is

* **equal** where `fit`, `predict` and `score` answer as they do for the same numbers in a plain array: the same labels,
  in classes_ too, and coefficients of the same bits where the container has a twin in memory (`containers.Container`);
* **refused** where `fit` raises a TypeError or ValueError that cmargin or scikit-learn wrote for the purpose;
* **wrong** otherwise: another answer, an answer where a number or a label is missing, an error of another kind or of a
  library below, or rows that can be trained on and then cannot be predicted or scored.
"""

import linecache
import re
import warnings
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec

import numpy as np
import scipy.sparse as sp

from .containers import CONTAINERS
from .estimators import make
from .label_kinds import LABELS

EQUAL, REFUSED, WRONG = "equal", "refused", "wrong"
QUICK = {"max_passes": 20, "cv": 2, "l2s": (1e-2,), "n_jobs": 1}
NEAR = 1e-9                    # relative: of coefficients that sums in another order have moved, not another answer
SPEAKERS = ("cmargin", "sklearn")      # packages whose errors are written for the user of an estimator
# what such an error says where a check has met what it was not made for, and where nothing follows for the user
EMPTY_WORDS = re.compile(r"Unknown label type: unknown|scalar array|not supported between|ambiguous|has no attribute"
                         r"|could not convert|must be a string or a real number|Cannot call|passed for y, but dense")


@dataclass(frozen=True)
class Verdict:
    kind: str
    words: str = ""


@dataclass
class Answer:
    classes: list
    predictions: np.ndarray
    score: float
    weights: list              # coef_ and intercept_


class Refusal(Exception):
    """A step of the cell that raised: its name and the error."""

    def __init__(self, step, error):
        super().__init__(step, error)
        self.step, self.error = step, error


def missing(container, labels):
    """The modules that a cell needs and that are not installed."""
    return [name for name in {CONTAINERS[container].needs, LABELS[labels].needs} if find_spec(name) is None]


def step(name, call):
    try:
        return call()
    except Exception as error:
        raise Refusal(name, error) from None


def answer_of(estimator, X, y):
    """What a user sees of a fit: an `Answer`, or a `Refusal`."""
    step("fit", lambda: estimator.fit(X, y))
    predictions = step("predict", lambda: in_memory(estimator.predict(X)))
    score = step("score", lambda: float(estimator.score(X, y)))
    weights = [np.array(getattr(estimator, name)) for name in ("coef_", "intercept_")]
    return Answer(np.asarray(estimator.classes_).tolist(), predictions, score, weights)


def in_memory(predictions):
    predictions = predictions.compute() if hasattr(predictions, "compute") else predictions
    return predictions.toarray() if sp.issparse(predictions) else np.asarray(predictions)


def estimator_of(name):
    return make(name, **QUICK)


def numbers(seed, n_classes, square=False):
    """X (36, 4) of whole numbers from 0 to 6, and class indices; every class is higher in a column of its own.

    ``square``: with 32 columns of zeros more, so that the transpose has as many rows, and nothing to learn from.
    """
    rng = np.random.default_rng([seed, n_classes, 54])
    codes = rng.permutation(np.arange(36) % n_classes)
    X = np.where(codes[:, None] == np.arange(4), 4.0, 2.0) + rng.integers(-2, 3, (36, 4))
    return (np.hstack([X, np.zeros((36, 32))]) if square else X), codes


@cache
def plain(estimator, seed, n_classes, indicator, twin, square=False):
    """The answer for plain arrays, or the `Refusal`."""
    X, codes = numbers(seed, n_classes, square)
    y = LABELS["indicator"].make(codes) if indicator else codes
    try:
        return answer_of(estimator_of(estimator), twin(X), y)
    except Refusal as refused:
        return refused


def verdict_of(container, labels, estimator, seed=0):
    """The `Verdict` of a cell, by the names in the three tables."""
    rows, kind = CONTAINERS[container], LABELS[labels]
    X, codes = numbers(seed, len(kind.values))
    twins = [partial(plain, estimator, seed, len(kind.values), kind.indicator, twin) for twin in rows.twins]
    return judge(lambda: answer_of(estimator_of(estimator), rows.make(X), kind.make(codes)), twins, kind, rows.bits)


def judge(call, twins, kind, bits=True):
    """The `Verdict` of what ``call`` answers.

    Parameters
    ----------
    call : () -> `Answer`
    twins : list of () -> `Answer` or `Refusal`, of plain arrays; none where ``call`` has to be refused
    kind : `LabelKind`
    bits : bool, as in `Container`
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        twins = [twin() for twin in twins]
        try:
            found = call()
        except Refusal as refused:
            return judge_refusal(refused)
    if kind.missing or not twins:
        return Verdict(WRONG, "answers though a number or a label is missing")
    refused = next((twin for twin in twins if isinstance(twin, Refusal)), None)
    if refused:
        return Verdict(WRONG, f"answers where a plain array is refused ({refused.error})")
    faults = [difference(found, twin, kind, bits) for twin in twins]
    return Verdict(EQUAL) if "" in faults else Verdict(WRONG, faults[0])


def difference(found, twin, kind, bits):
    """What is not as in the plain answer, or ""."""
    if [(type(label), label) for label in found.classes] != [(type(label), label) for label in kind.values]:
        return f"classes_ are {found.classes!r}, not {kind.values!r}"
    weights = list(zip(found.weights, twin.weights, strict=True))
    if bits and any(a.dtype != b.dtype or a.tobytes() != b.tobytes() for a, b in weights):
        return "coefficients of other bits"
    expected = twin.predictions if kind.indicator else [kind.values[code] for code in twin.predictions]
    if found.predictions.tolist() != np.asarray(expected).tolist():
        tied = not bits and all(a.shape == b.shape and np.abs(a - b).max() < NEAR * np.abs(b).max() for a, b in weights)
        return "" if tied else "other predictions"
    return "" if found.score == twin.score else f"a score of {found.score}, not {twin.score}"


def judge_refusal(refused):
    """Whether a refusal came at once and in words."""
    error, words = refused.error, f"{refused.step}: {type(refused.error).__name__}: {refused.error}"
    if refused.step != "fit":
        return Verdict(WRONG, f"fit answers, then {words}")
    if not isinstance(error, (TypeError, ValueError)):
        return Verdict(WRONG, words)
    if EMPTY_WORDS.search(str(error)) or len(str(error).split()) < 4 or not meant(error):
        return Verdict(WRONG, f"not in words for the user: {words}")
    return Verdict(REFUSED, words)


def meant(error):
    """Whether a statement of `SPEAKERS` raised the error itself, not something below that it had called."""
    trace = error.__traceback__
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    package = trace.tb_frame.f_globals.get("__name__", "").partition(".")[0]
    line = linecache.getline(code.co_filename, trace.tb_lineno).strip()
    return package in SPEAKERS and (line.startswith("raise") or code.co_filename.endswith(".pyx"))


def cluster_for(container, labels):
    """A context in which Dask's collections have workers, where the cell has such collections."""
    if "distributed" not in (CONTAINERS[container].needs, LABELS[labels].needs):
        return nullcontext()
    from distributed import Client

    return Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0")
