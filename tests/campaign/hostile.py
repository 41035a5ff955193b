"""Hostile input into every estimator: an answer without NaN, or ValueError or TypeError with words, and nothing else.

A refusal must leave the estimator as it was. Signals and hangs are seen by `workers`.
"""

import warnings
from dataclasses import dataclass, field
from functools import partial

import joblib
import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from .estimators import ESTIMATORS, WAYS, make
from .findings import Findings
from .hostile_input import (
    EITHER,
    LABELS,
    LIES,
    MATRICES,
    REFUSE,
    SAME,
    WEIGHTS,
    lying_csr,
    parameter_value,
)

FINITE = ("coef_", "intercept_")
NUMBERS = ("objective_", "duality_gap_", "scale_", "eigenvalues_", "class_prior_", "sampled_prior_")
ANSWERS = ("predict", "decision_function", "predict_proba", "predict_top_k", "posterior", "scores")
CLOSE = 0.05                   # difference of scores, in the largest one, that SAME allows: a fit that stalls short
                               # of its tol stalls elsewhere after other roundings
PLACES = {"matrix": 6, "csr": 5, "labels": 4, "weights": 3, "parameter": 6, "predict": 4, "predict csr": 3}


@dataclass
class Case:
    estimator: object
    X: np.ndarray
    y: np.ndarray
    place: str                 # what is hostile
    name: str
    expect: str
    by_parts: bool             # by partial_fit
    fitted: bool               # on good input before
    rng: object
    weights: object = None
    hostile: dict = field(default_factory=dict)


def make_case(seed):
    """The case of a seed; estimators take turns."""
    rng = np.random.default_rng([seed, 77])
    name = ESTIMATORS[seed % len(ESTIMATORS)]
    ways = WAYS.get(name, [{}])
    way = ways[rng.integers(len(ways))] if rng.random() < 0.6 else ways[0]
    estimator = make(name, **way, **({"cv": 2} if name == "SmSVMClassifierCV" else {}))
    n, p, n_classes = int(rng.integers(12, 60)), int(rng.integers(2, 12)), int(rng.integers(2, 4))
    y = np.arange(n) % n_classes
    X = rng.standard_normal((n_classes, p))[y] + rng.standard_normal((n, p))
    X[rng.random((n, p)) < 0.3] = 0.0
    X = X.astype(np.float32 if rng.random() < 0.5 else np.float64)
    X = sp.csr_matrix(X) if way.get("linear_solver") == "dual" else X
    shares = np.array(list(PLACES.values()), float)
    place = list(PLACES)[rng.choice(len(PLACES), p=shares / shares.sum())]
    place = "csr" if place == "matrix" and sp.issparse(X) else place
    by_parts = hasattr(estimator, "partial_fit") and rng.random() < 0.4 and "l2" not in way       # one of all rows
    case = Case(estimator, X, y, place, "", EITHER, by_parts, place.startswith("predict") or rng.random() < 0.5, rng)
    spoil(case)
    return case


def spoil(case):
    """Choose what is hostile and make it."""
    rng, hostile = case.rng, case.hostile
    if case.place in ("matrix", "predict"):
        case.name, (change, case.expect) = any_of(rng, MATRICES)
        with np.errstate(all="ignore"):
            hostile["X"] = change(case.X.toarray() if sp.issparse(case.X) else case.X, rng)
        if case.place == "predict" and case.name in ("one row less", "one row"):
            case.expect = EITHER
    elif case.place.endswith("csr"):
        case.name, _ = any_of(rng, LIES)
        case.expect = REFUSE
        hostile["X"] = lying_csr(case.X, case.name, rng)
    elif case.place == "labels":
        case.name, (change, case.expect) = any_of(rng, LABELS)
        hostile["y"] = change(case.y, rng)
        if case.by_parts and case.name == "one class":
            case.expect = EITHER                   # a batch may be of one class
    elif case.place == "weights":
        case.name, (change, case.expect) = any_of(rng, WEIGHTS)
        if case.by_parts and case.name == "zeros":
            case.expect = EITHER                   # such a batch changes nothing
        hostile["sample_weight"] = change(len(case.y), rng)
    else:
        names = [name for name in case.estimator.get_params(deep=False) if name != "random_state"]
        name = names[rng.integers(len(names))]
        value, case.expect = parameter_value(rng, name, getattr(case.estimator, name))
        plain = isinstance(value, (int, float, str, bytes, complex))
        case.name = f"{name}={repr(value) if plain else type(value).__name__}"[:60]
        hostile["parameter"] = (name, value)


def any_of(rng, table):
    return list(table.items())[rng.integers(len(table))]


def describe(seed):
    return tags_of(make_case(seed))


def tags_of(case):
    method = "predict" if case.place.startswith("predict") else "partial_fit" if case.by_parts else "fit"
    return [type(case.estimator).__name__, method, case.place, f"{case.place}: {case.name}"]


# ------------------------------------------------------------ the check

def check_seed(seed):
    case = make_case(seed)
    found = Findings(seed, tags_of(case))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if case.fitted:
            case.estimator.fit(case.X, case.y)
        if case.place.startswith("predict"):
            check_answers(case, case.hostile["X"], found)
        else:
            check_fit(case, found)
    return found


def attempt(found, what, call):
    """(done, answer); an exception other than ValueError or TypeError with words is a fault."""
    try:
        return True, call()
    except (ValueError, TypeError) as error:
        if len(str(error).strip()) < 10:
            found.add("no words", f"{what}: {type(error).__name__}: {str(error)!r}")
    except Exception as error:
        found.add("exception", f"{what}: {type(error).__name__}: {error}"[:200])
    return False, None


def fit_call(case, estimator, X, y, weights):
    more = {} if weights is None else {"sample_weight": weights}
    if not case.by_parts:
        return estimator.fit(X, y, **more)
    return estimator.partial_fit(X, y, classes=np.unique(case.y), **more)


def check_fit(case, found):
    estimator = case.estimator
    if "parameter" in case.hostile:
        estimator.set_params(**dict([case.hostile["parameter"]]))
    before = joblib.hash(fitted_state(estimator))
    X, y = case.hostile.get("X", case.X), case.hostile.get("y", case.y)
    done, _ = attempt(found, "fit", lambda: fit_call(case, estimator, X, y, case.hostile.get("sample_weight")))
    if not done:
        after_refusal(case, before, found)
        if case.expect == SAME:
            found.add("refused", "good input in another form is refused")
        return
    if case.expect == REFUSE:
        found.add("accepted", f"{case.name} is taken without a word")
    check_numbers(estimator, found)
    scores = check_answers(case, case.X, found, good=True)
    if case.expect == SAME and scores is not None and not case.fitted:
        check_same(case, scores, found)


def check_same(case, scores, found):
    """Scores against those of a model of the same numbers in plain dense or CSR rows."""
    sparse = sp.issparse(case.hostile.get("X", case.X)) and not sp.issparse(case.X)
    X = sp.csr_matrix(case.X) if sparse else case.X
    plain = fit_call(case, clone(case.estimator), X, case.y, None)
    expected = plain.decision_function(case.X)
    if np.abs(scores - expected).max() > CLOSE * np.abs(expected).max():
        found.add("differs", "scores are not those of the same numbers in plain rows")


def fitted_state(estimator):
    parameters = estimator.get_params(deep=False)
    return {name: value for name, value in vars(estimator).items() if name not in parameters}


def after_refusal(case, before, found):
    """A model that was there must be as it was; where none was, there must be none."""
    if case.fitted:
        if joblib.hash(fitted_state(case.estimator)) != before:
            found.add("changed", "a refused fit changed the model that was there")
        return
    try:
        check_is_fitted(case.estimator)
        found.add("half fitted", "after a refused first fit the estimator counts as fitted")
    except NotFittedError:
        pass
    try:
        case.estimator.predict(case.X)
        found.add("half fitted", "after a refused first fit the estimator predicts")
    except NotFittedError:
        pass
    except Exception as error:
        found.add("half fitted", f"after a refused first fit predict raises {type(error).__name__}: {error}"[:200])


def check_numbers(estimator, found):
    for name in FINITE + NUMBERS:
        value = getattr(estimator, name, None)
        if value is None or (name == "duality_gap_" and estimator.get_params().get("l2") == 0):
            continue
        value = np.asarray(value, float)
        bad = ~np.isfinite(value) if name in FINITE else np.isnan(value)
        if bad.any():
            found.add("nan", f"{name} holds {value[bad][0]}")


def check_answers(case, X, found, good=False):
    """Every kind of prediction for X; returns the scores where there are some."""
    scores = None
    for method in ANSWERS:
        if not hasattr(case.estimator, method):
            continue
        call = partial(getattr(case.estimator, method), X, **({"k": 1} if method == "predict_top_k" else {}))
        done, answer = attempt(found, method, call)
        if not done:
            if good or case.expect == SAME:
                found.add("refused", f"{method} refuses good rows")
            continue
        if not good and case.expect == REFUSE:
            found.add("accepted", f"{method} takes {case.name} without a word")
        for part in answer if isinstance(answer, tuple) else (answer,):
            part = np.asarray(part)
            if part.dtype.kind == "f" and np.isnan(part).any():
                found.add("nan", f"{method} answers NaN")
        scores = answer if method == "decision_function" else scores
    return scores
