"""A `fit` that is refused, or stopped before it trained, leaves the last model as it was, or none if there was none."""

import contextlib
import warnings

import broken_rows
import numpy as np
import pytest
from conftest import blobs
from estimators import quick_estimators
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils import validation

import cmargin
from cmargin import SLNDClassifier, SLNDClassifierCV, SmSVMClassifier, SmSVMClassifierCV, slnd, smsvm_cv
from cmargin._estimators import one_vs_rest
from cmargin._estimators import validation as checks

X, Y = broken_rows.sound_rows()
HOLE = np.where(np.arange(X.size).reshape(X.shape) == 7, np.nan, X)
WORDS = np.array(["a", "b"])[Y]
WIDER = np.hstack([X, X])

REFUSALS = {                           # name -> (parameters, data, words)
    "a bad parameter": ({"max_passes": 0, "l2s": (-1.0,)}, (X, WORDS), "'max_passes' parameter|l2s"),
    "no threads": ({"n_jobs": 0}, (WIDER, WORDS), "n_jobs == 0 has no meaning"),
    "no number": ({}, (HOLE, WORDS), "Input X contains NaN"),
    "no finite number": ({}, (np.where(np.isnan(HOLE), np.inf, X), WORDS), "Input X contains infinity"),
    "no rows": ({}, (X[:0], WORDS[:0]), "0 sample"), "no columns": ({}, (X[:, :0], WORDS), "0 feature"),
    "a vector": ({}, (X[0], WORDS), "Expected 2D array"),
    "one class and other columns": ({}, (WIDER, np.zeros(len(X))), "only one class"),
    "targets that are no labels": ({}, (WIDER, np.linspace(0, 1, len(X))), "Unknown label type"),
    "too few labels": ({}, (WIDER, Y[:-1]), "inconsistent numbers of samples"),
    "a bad class weight": ({"class_weight": {"a": -1.0}}, (WIDER, WORDS), "class_weight must be .* not negative"),
    "an unknown class weight": ({"class_weight": "even"}, (WIDER, WORDS), "class_weight"),
    "broken rows": ({}, (broken_rows.broken(WIDER, "csr", "a huge inner indptr"), WORDS), "is broken"),
    "weights of other rows": ({}, (WIDER, WORDS, np.ones(3)), r"sample_weight.shape == \(3,\), expected"),
    "a negative weight": ({}, (WIDER, WORDS, np.arange(len(X)) - 1.0), "Negative values in data"),
    "a weight that is none": ({}, (WIDER, WORDS, np.full(len(X), np.nan)), "sample_weight contains NaN"),
    "a complex weight": ({}, (WIDER, WORDS, np.ones(len(X)) + 1j), "Complex data not supported"),
    "no weight": ({}, (WIDER, WORDS, np.zeros(len(X))), "at least one non-zero"),
    "a rank above the columns": ({"rank": 99}, (WIDER, WORDS), "n_features=12"),
    "a start of other classes": ({"warm_start": True}, (X, WORDS), "needs the classes of the last fit"),
    "a start of other columns": ({"warm_start": True}, (WIDER, Y), "has 12 features, but"),
    "a start of an indicator": ({"warm_start": True}, (X, np.column_stack([Y, 1 - Y])), "last fit"),
}


def settings(estimator, parameters):
    return {name: value for name, value in parameters.items() if name in estimator.get_params()}


def cases():
    for fitted in (True, False):
        for estimator in quick_estimators():
            for refusal, (parameters, *_) in REFUSALS.items():
                fits = not parameters or settings(estimator, parameters)
                starts = "warm_start" in parameters
                if fits and (fitted or not starts) and not (starts and refusal.endswith("indicator")
                                                            and hasattr(estimator, "cv")):
                    yield pytest.param(fitted, estimator, refusal, id=f"{type(estimator).__name__}-{refusal}-{fitted}")


def same_state(before, after):
    return before.keys() == after.keys() and all(before[name] is after[name] for name in before)


@pytest.mark.parametrize("fitted, estimator, refusal", list(cases()))
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_refused_fit_changes_nothing(fitted, estimator, refusal):
    # n_features_in_ was the refused matrix's, so that predict refused the model's own columns; where nothing was fitted
    # scikit-learn took it for the sign of a fit, and predict raised AttributeError.
    parameters, data, words = REFUSALS[refusal]
    model = clone(estimator)
    answer = model.fit(X, Y).predict(X) if fitted else None
    model.set_params(**settings(model, parameters))
    before = dict(vars(model))
    with pytest.raises(ValueError, match=words):
        model.fit(*data)
    assert same_state(before, vars(model))
    if fitted:
        assert np.array_equal(model.predict(X), answer)
    else:
        with pytest.raises(NotFittedError):
            model.predict(X)


@pytest.mark.parametrize("estimator", quick_estimators(), ids=lambda e: type(e).__name__)
def test_no_parameter_takes_what_no_parameter_means(estimator):
    for name, default in estimator.get_params(deep=False).items():
        is_number = default is None or isinstance(default, (int, float))
        for value in (*([] if name == "checkpoint" else ["no such", ""]), b"x", 1j, *([np.nan] if is_number else [])):
            model = clone(estimator).set_params(**{name: value})
            with pytest.raises((ValueError, TypeError), match=r"\w+ \w+ \w+"):
                model.fit(X, Y)
            with pytest.raises(NotFittedError):
                model.predict(X)


@pytest.mark.parametrize("estimator", [e for e in quick_estimators() if hasattr(e, "partial_fit")],
                         ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("fitted", [False, True])
def test_a_refused_partial_fit_changes_nothing(estimator, fitted):
    model = clone(estimator)
    if fitted:
        model.partial_fit(X, Y, classes=[0, 1])
    before = dict(vars(model))
    for data in ((HOLE, Y), (X, np.arange(len(X)) % 3), (X, Y, [0, 1], -np.ones(len(X))), (WIDER, WORDS, ["b", "c"])):
        with pytest.raises(ValueError):
            model.partial_fit(*data)
        assert same_state(before, vars(model))


class Table(np.ndarray):
    """Rows with column names, standing in for a data frame."""


def table(rows, names):
    rows = rows.view(Table)
    rows.names = np.array(list(names), dtype=object)
    return rows


@pytest.mark.parametrize("estimator", quick_estimators(), ids=lambda e: type(e).__name__)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_column_names_are_the_last_good_fits(monkeypatch, estimator):
    monkeypatch.setattr(validation, "_get_feature_names", lambda X: getattr(X, "names", None))
    model = clone(estimator).fit(table(X, "abcdef"), Y)
    for bad in (table(X, "uvwxyz"), X):
        with pytest.raises(ValueError, match="one class"):
            model.fit(bad, np.ones(len(X)))
        assert model.feature_names_in_.tolist() == list("abcdef")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)      # the model inside the search was fitted without names
        model.predict(table(X, "abcdef"))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(table(X, "uvwxyz"))


@pytest.mark.parametrize("fitted", [False, True])
@pytest.mark.parametrize("model, module, step", [
    (SLNDClassifier(), slnd, "encode_labels"),
    (cmargin.MarginPursuitClassifier(), one_vs_rest, "encode_labels"),
    (SmSVMClassifierCV(l2s=(1e-2,), cv=2), smsvm_cv, "splits"),
])
def test_an_interrupt_before_training_changes_nothing(monkeypatch, fitted, model, module, step):
    # An interrupted search had no estimator, but columns: predict raised AttributeError.
    model = clone(model)
    if fitted:
        model.fit(X, Y)
    before = dict(vars(model))

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, step, interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(WIDER, WORDS)
    assert same_state(before, vars(model))


def test_an_interrupt_in_the_last_fit_of_a_search_keeps_its_scores_and_nothing_of_the_fit_before(monkeypatch):
    model = SmSVMClassifierCV(l2s=(1e-2,), cv=2).fit(X, Y)
    fit, calls = SmSVMClassifier.fit, []

    def interrupted(self, *data):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return fit(self, *data)

    monkeypatch.setattr(SmSVMClassifier, "fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(WIDER, WORDS)
    assert model.scores_.shape == (2, 1, 1) and np.isfinite(model.scores_).all()
    assert not {"coef_", "l2_"} & set(vars(model)) and model.n_features_in_ == WIDER.shape[1]
    with pytest.raises(AttributeError) as refused:
        model.predict(WIDER)
    assert "interrupted before its fit to all rows" in str(refused.value.__cause__)


@pytest.mark.parametrize("model", [SLNDClassifier(max_passes=5), cmargin.MarginPursuitClassifier(max_passes=5),
                                   cmargin.PegasosClassifier(max_passes=5)], ids=lambda e: type(e).__name__)
def test_an_interrupt_in_training_keeps_what_was_trained(model):
    def interrupt(_):
        raise KeyboardInterrupt

    model = clone(model).fit(X, Y).set_params(callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(WIDER, WORDS)
    assert model.n_features_in_ == 12 and model.classes_.tolist() == ["a", "b"]
    assert set(model.predict(WIDER)) <= {"a", "b"}


@pytest.mark.parametrize("solver", ["newton", "gd", "sgd"])
def test_a_callback_sees_everything_a_fit_leaves(solver):
    # scale_ was stored when all was over, and after an interrupt in a callback it was the last fit's.
    seen = []

    def visit(model):
        seen.append(model.scale_)
        raise KeyboardInterrupt

    model = cmargin.MarginPursuitClassifier(solver=solver, margin=2.0, max_passes=3, callback=visit)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert seen[0].tolist() == model.scale_.tolist() == [2.0]


@pytest.mark.parametrize("seed", ["a", -1, 2**40, 1.5, np.random.default_rng(0)], ids=str)
@pytest.mark.parametrize("model", [SmSVMClassifier(), SLNDClassifier(), SLNDClassifier(l2=0.1),
                                   cmargin.MarginPursuitClassifier()], ids=str)
def test_a_seed_is_checked_where_nothing_is_drawn_too(model, seed):
    X, y = blobs(n=40, d=3, k=2)
    with pytest.raises(ValueError, match=r"The 'random_state' parameter of .* must be an int in the range"):
        clone(model).set_params(random_state=seed).fit(X, y)


def test_warnings_point_at_the_caller():
    for model in (SLNDClassifier(tol=1e-9, max_passes=2, random_state=0),
                  cmargin.MarginPursuitClassifier(solver="gd", max_passes=1)):
        with pytest.warns(ConvergenceWarning) as caught:
            model.fit(X, Y)
        assert [warning.filename for warning in caught] == [__file__]


# ---------------------------------------------------------------- rows that scikit-learn's checks leave as they are

def looked_at(monkeypatch):
    """How often scikit-learn's checks of X are called from here on."""
    calls = []
    real = checks.validate_data
    monkeypatch.setattr(checks, "validate_data", lambda *args, **kwargs: calls.append(1) or real(*args, **kwargs))
    return calls


@pytest.mark.parametrize("make", [
    lambda X: X, np.asfortranarray, lambda X: X.astype("f"), lambda X: X[:1], sparse.csr_matrix,
    lambda X: sparse.csr_array(X.astype("f"))], ids=["C", "F", "single", "one row", "CSR", "CSR array"])
def test_clean_rows_skip_checks_and_are_the_same_rows(make, monkeypatch):
    model, Z = SmSVMClassifier().fit(X, WORDS), make(X)
    calls = looked_at(monkeypatch)
    assert checks.check_rows(model, Z) is Z and not calls
    for y in (WORDS, Y, Y.astype(float)):
        assert checks.check_data(model, Z, y[:Z.shape[0]])[1].dtype == y.dtype and not calls
    assert model.n_features_in_ == X.shape[1]


@pytest.mark.parametrize(("given", "words"), [
    (HOLE, "contains NaN"), (sparse.csr_matrix(HOLE), "contains NaN"), (sparse.csr_matrix(X[:, 1:]), "is expecting"),
    (sparse.csr_matrix(X[:0]), "0 sample"), (sparse.csr_matrix(X[:, :0]), "0 feature"),
    (np.where(HOLE == HOLE, X, np.inf), "contains infinity"),
    (np.array(X[:, 1:]), "is expecting"), (X[:0], "0 sample"), (X[:, :0], "0 feature"), (X[0], "Expected 2D array")])
def test_other_rows_are_refused_in_scikit_learns_words(given, words):
    model = SmSVMClassifier().fit(X, WORDS)
    with pytest.raises(ValueError, match=words):
        model.predict(given)


@pytest.mark.parametrize("given", [
    X.astype(int), X.astype(">f8"), X[:, ::2], X.tolist(), sparse.csr_matrix(X.astype(int)), sparse.csc_matrix(X)],
    ids=["int", "byte order", "strided", "list", "CSR of int", "CSC"])
def test_rows_that_are_not_clean_go_the_long_way(given, monkeypatch):
    calls = looked_at(monkeypatch)
    checks.check_data(SmSVMClassifier(), given, WORDS)
    assert calls == [1]


@pytest.mark.parametrize("y", [
    "abc", WORDS.astype(object), np.where(Y, 1.0, np.inf), np.stack([Y, 1 - Y], 1), WORDS[1:]],
    ids=["str", "object", "infinite", "indicator", "short"])
def test_labels_that_are_not_clean_go_the_long_way(y, monkeypatch):
    calls = looked_at(monkeypatch)
    with contextlib.suppress(ValueError, TypeError):
        checks.check_data(SmSVMClassifier(), X, y)
    assert calls == [1]


def test_names_of_columns_are_forgotten_or_missed():
    model = SmSVMClassifier().fit(X, WORDS)
    model.feature_names_in_ = np.array([f"column {j}" for j in range(X.shape[1])], object)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        model.predict(X)
    assert not hasattr(model.fit(X, WORDS), "feature_names_in_")


@pytest.mark.parametrize("estimator", quick_estimators(), ids=str)
def test_weights_that_leave_one_class(estimator):
    weight = (WORDS == "a").astype(float)
    slnd_s = isinstance(estimator, (SLNDClassifier, SLNDClassifierCV))
    if slnd_s or hasattr(estimator, "negatives_per_positive"):
        with pytest.raises(ValueError, match="rows of positive weight are of only one class"):
            estimator.fit(X, WORDS, weight)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            predicted = estimator.fit(X, WORDS, weight).predict(X[weight > 0])
        assert (predicted == "a").all()
