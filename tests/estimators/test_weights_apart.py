"""Weights that differ between one-vs-rest problems: of labels, of rows and labels, of classes as LinearSVC has them."""

import gc
import warnings
import weakref

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import blobs
from estimators import quick_estimators
from ranks_in_threads import on_ranks
from rows_in_files import files_of
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC
from tensors import LIBRARIES

from cmargin import BSNClassifier, MarginPursuitClassifier, SLNDClassifier, SmSVMClassifier
from cmargin._estimators import apart

ALL = [one for one in quick_estimators() if not hasattr(one, "cv")]
X, CLASSES = blobs(n=300, d=6, k=4)
RNG = np.random.default_rng(4)
Y = np.column_stack([X[:, 0] > 0, X[:, 1] > 1.5, X[:, 2] + RNG.standard_normal(300) > 0]).astype(int)
S = RNG.choice([0.0, 0.5, 1.0, 3.0], Y.shape)
OF_CLASSES = [{0: 5.0, 1: 0.3, 3: 2.0}, "balanced"]


def quietly(model, *given, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return clone(model).fit(*given, **more)


def one_by_one(model, weight=None, class_weight=None):
    """Coefficients and intercepts of a fit of its own for each label."""
    class_weight = class_weight if isinstance(class_weight, list) else [class_weight] * Y.shape[1]
    found = [quietly(clone(model).set_params(class_weight=class_weight[c]), X, Y[:, c],
                     weight[:, c] if np.ndim(weight) == 2 else weight) for c in range(Y.shape[1])]
    return np.concatenate([one.coef_ for one in found]), np.concatenate([one.intercept_ for one in found])


# ---------------------------------------------------------------- labels

@pytest.mark.parametrize("model", ALL, ids=str)
@pytest.mark.parametrize("class_weight, weight", [
    ("balanced", None), ({1: 4.0}, None), ([{0: 1.0, 1: 3.0}, {1: 20.0}, {0: 0.5}], S[:, 0]), (None, S),
    ("balanced", S)], ids=["balanced", "dict", "list", "weights", "both"])
def test_every_label_is_trained_by_its_own_weights(model, class_weight, weight):
    # "class_weight is not defined for a label indicator"; "Sample weights must be 1D array or scalar"
    found = quietly(clone(model).set_params(class_weight=class_weight), X, Y, weight)
    assert found.predict(X).shape == Y.shape and found.score(X, Y) >= 0 and found.n_passes_ > 0
    assert len({len(column) for column in found.history_.values()}) == 1
    if not isinstance(model, SmSVMClassifier):
        return                                   # stochastic ones draw other rows for the second label of a model
    coef, intercept = one_by_one(model, weight, class_weight)
    np.testing.assert_allclose(found.coef_, coef, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.intercept_, intercept, rtol=1e-9, atol=1e-9)
    assert (found.duality_gap_ <= found.tol).all() and set(found.history_["class"]) == {0, 1, 2}


def test_they_are_those_of_scikit_learns_one_vs_rest():
    for class_weight in ("balanced", {0: 1.0, 1: 7.0}):
        theirs = OneVsRestClassifier(LogisticRegression(C=2.0, class_weight=class_weight, tol=1e-10, max_iter=10000))
        ours = SmSVMClassifier(C=2.0, loss="logistic", class_weight=class_weight, tol=1e-10).fit(X, Y)
        for c, one in enumerate(theirs.fit(X, Y).estimators_):
            np.testing.assert_allclose(ours.coef_[c], one.coef_[0], rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("model", [SmSVMClassifier(), SLNDClassifier(random_state=0)], ids=str)
def test_weights_of_labels_in_a_dict_of_lists_or_an_array(model):
    expected = quietly(clone(model).set_params(class_weight=[{0: 2.0, 1: 3.0}, {0: 2.0, 1: 20.0}, {0: 2.0}]), X, Y)
    pairs = np.array([[2.0, 3.0], [2.0, 20.0], [2.0, 1.0]])
    for given in ({0: 2.0, 1: [3.0, 20.0, 1.0]}, {0: np.full(3, 2.0), 1: (3, 20, 1)}, pairs, pairs.astype(int)):
        np.testing.assert_array_equal(quietly(clone(model).set_params(class_weight=given), X, Y).coef_, expected.coef_)
    for given in ({1: [1.0, 2.0, 3.0, 4.0]}, pairs):
        with pytest.raises(ValueError, match="classes that exclude each other give one dict of numbers"):
            clone(model).set_params(class_weight=given).fit(X, CLASSES)


def test_stochastic_fits_follow_them():
    for model in (SLNDClassifier(random_state=0), BSNClassifier(random_state=0, loss="squared")):
        shares = [clone(model).set_params(class_weight={1: w}).fit(X, Y).predict(X).mean(axis=0) for w in (0.1, 10.0)]
        assert (shares[1] > shares[0] + 0.02).all()
    whole = SLNDClassifier(random_state=0).fit(X, Y, S)
    np.testing.assert_allclose(whole.class_prior_, (S * Y).sum(axis=0) / S.sum(axis=0))
    assert (whole.predict_top_k(X, 3).shape, whole.predict_proba(X).shape) == ((300, 3), (300, 3))
    np.testing.assert_array_equal(whole.to_sklearn().predict(X), whole.predict(X))


@pytest.mark.parametrize("model", ALL, ids=str)
def test_a_constant_label_among_them(model):
    labels = np.column_stack([Y, np.zeros(300, int), np.ones(300, int)])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = clone(model).set_params(class_weight={0: 2.0}).fit(X, labels)
    said = [one for one in said if not issubclass(one.category, ConvergenceWarning)]
    assert len(said) == 1 and said[0].filename == __file__
    assert str(said[0].message).startswith("Label 3 is absent from all training examples and Label 4 is present in")
    assert (found.predict(X)[:, 3:] == [0, 1]).all()


@pytest.mark.parametrize("model", [SmSVMClassifier(), SLNDClassifier(random_state=0), MarginPursuitClassifier()],
                         ids=str)
@pytest.mark.parametrize("where", ["sparse", "npy C", "csr npz", *LIBRARIES])
def test_wherever_the_rows_are(model, where, tmp_path):
    if where in LIBRARIES and isinstance(model, SLNDClassifier):
        pytest.skip("one-vs-rest passes are of rows in memory and in files")
    tensor = LIBRARIES.get(where, np.asarray)
    rows = {"sparse": sp.csr_array}.get(where, tensor)(X)
    rows = files_of(X, where, tmp_path) if where in ("npy C", "csr npz") else rows
    there, here = (quietly(clone(model).set_params(class_weight="balanced"), one, labels, weight)
                   for one, labels, weight in ((rows, tensor(Y), tensor(S)), (X, Y, S)))
    close = 0.95 if isinstance(model, SLNDClassifier) else 0.99
    assert (there.predict(X) == here.predict(X)).mean() > close


def test_a_warm_start_a_callback_and_the_end_of_the_time():
    model = SmSVMClassifier(class_weight="balanced", warm_start=True).fit(X, Y)
    n_first = model.n_iter_
    assert model.fit(X, Y).n_iter_ < n_first
    seen = []
    SmSVMClassifier(class_weight="balanced", callback=lambda e: seen.append(e.coef_.shape)).fit(X, Y)
    assert set(seen) == {(3, 6)}
    stopped = SmSVMClassifier(class_weight="balanced", callback=lambda e: True).fit(X, Y)
    assert stopped.coef_.shape == (3, 6) and not stopped.coef_[1:].any() and np.isfinite(stopped.predict(X)).all()
    for kind in (SmSVMClassifier, SLNDClassifier):
        late = quietly(kind(class_weight="balanced", max_time=1e-9), X, Y)
        assert late.coef_.shape == (3, 6) and np.isfinite(late.coef_).all()
    with pytest.warns(ConvergenceWarning, match=r"problem 0; 3 of 3 fell short") as said:
        SmSVMClassifier(class_weight="balanced", max_passes=1e-9).fit(X, Y)
    assert len(said) == 1


def test_a_ctrl_c_leaves_what_was_reached():
    def interrupt(estimator):
        if estimator.history_["class"].max() == 1:
            raise KeyboardInterrupt

    model = SmSVMClassifier(class_weight="balanced", callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert model.coef_.shape == (3, 6) and model.coef_[0].any() and not model.coef_[2].any()
    whole = SmSVMClassifier(class_weight="balanced").fit(X, Y)
    np.testing.assert_array_equal(model.coef_[0], whole.coef_[0])


def test_a_ctrl_c_between_two_problems(monkeypatch):
    begun, copy = [], apart.FitApart._copy

    def interrupted(self, c):
        begun.append(c)
        if c == 2:
            raise KeyboardInterrupt
        return copy(self, c)

    monkeypatch.setattr(apart.FitApart, "_copy", interrupted)
    model = SLNDClassifier(class_weight="balanced", random_state=0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert begun == [0, 1, 2] and model.coef_[:2].any(axis=1).all() and not model.coef_[2].any()
    assert model.predict(X).shape == Y.shape


def test_a_number_is_the_weight_of_every_row(capsys):
    a, b = (SmSVMClassifier(class_weight="balanced", verbose=1).fit(X, Y, weight) for weight in (2.0, None))
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-12, atol=1e-12)
    assert "problem 3 of 3, class 2" in capsys.readouterr().out


@pytest.mark.parametrize("change, text", [
    ({"class_weight": {2: 1.0}}, r"class_weight of a label indicator is a dict {0: ..., 1: ...}.*got {2: 1.0}"),
    ({"class_weight": [{0: 1.0}]}, "a list of 3 dicts"), ({"class_weight": {1: [1.0, 2.0]}}, "or of 3 for the labels"),
    ({"class_weight": np.ones((2, 2))}, r"an array of shape \(3, 2\)"),
    ({"class_weight": np.ones(3)}, "must be a dict"),
    ({"class_weight": np.full((3, 2), np.nan)}, "finite"), ({"class_weight": {1: ["a", "b", "c"]}}, "of a label indic"),
    ({"class_weight": {1: -1.0}}, "not negative"),
    ({"class_weight": [{0: 1.0}] * 2 + ["balanced"]}, "'class_weight' parameter of SmSVMClassifier must be"),
    ({"class_weight": {0: 0.0, 1: 0.0}}, "leave every sample with weight 0 in problem 0"),
    ({"sample_weight": S[:, :2]}, r"sample_weight.shape == \(300, 2\), expected \(300,\) or \(300, 3\)"),
    ({"sample_weight": -S}, "Negative values"), ({"sample_weight": np.where(S > 1, np.nan, S)}, "contains NaN"),
    ({"class_weight": "balanced", "checkpoint": "x"}, "checkpoint= is for weights that are the same"),
], ids=str)
def test_what_is_refused(change, text):
    weight = change.pop("sample_weight", None) if "sample_weight" in change else None
    with pytest.raises(ValueError, match=text):
        SmSVMClassifier(**change).fit(X, Y, weight)


def test_what_is_refused_elsewhere_says_so():
    with pytest.raises(ValueError, match="class_weight is of the labels of an indicator"):
        SmSVMClassifier(class_weight=[{0: 1.0}]).fit(X, CLASSES)
    with pytest.raises(ValueError, match="class_weight is of the labels of an indicator"):
        SLNDClassifier(class_weight=[{0: 1.0}]).partial_fit(X, CLASSES, classes=range(4))
    with pytest.raises(ValueError, match="loss='multinomial' takes classes that exclude each other"):
        SLNDClassifier(loss="multinomial", class_weight={1: 2.0}).fit(X, Y)
    for model, labels, text in ((SLNDClassifier(class_weight={1: 2.0}), Y, "class_weight of a label indicator"),
                                (SmSVMClassifier(class_weight={1: np.ones(3)}), Y, "class_weight of a label indicator"),
                                (SmSVMClassifier(class_weight={1: 2.0}, class_weight_on="positives"), CLASSES,
                                 "class_weight_on='positives' does not go over ranks yet")):
        def work(comm, model=model, labels=labels):
            clone(model).fit(X[comm.rank::2], labels[comm.rank::2], comm=comm)

        for one in on_ranks(2, work)[0]:
            with pytest.raises(ValueError, match=text):
                raise one


BY_PARTS = [one for one in ALL if hasattr(one, "partial_fit")]


@pytest.mark.parametrize("model", BY_PARTS, ids=str)
def test_batches_whose_labels_are_not_all_known(model):
    # weights of 0 where nobody said whether a row has a label
    model, known, seen = clone(model), (np.random.default_rng(5).random(Y.shape) < 0.6).astype(float), []
    known[:100, 1] = 0                                         # one label is unknown in the whole first batch
    model.set_params(callback=lambda estimator: seen.append(estimator.coef_.shape))
    for rows in np.array_split(np.arange(300), 3):
        model.partial_fit(X[rows], Y[rows], sample_weight=known[rows])
        if rows[0] == 0:
            assert model.coef_[[0, 2]].any(axis=1).all() and not model.coef_[1].any()
            assert not model.predict(X)[:, 1].any() and np.isfinite(model.predict_proba(X)).all()
    for rows in np.array_split(np.arange(300), 3) * 3:
        model.partial_fit(X[rows], Y[rows], sample_weight=known[rows])
    assert (model.predict(X) == Y).mean(axis=0).min() > 0.75 and set(seen) == {(3, 6)} and model.n_iter_ == 12
    times = np.where(known[:, 1] > 0)[0]
    np.testing.assert_allclose(model.class_prior_[1], Y[times, 1].mean(), atol=0.1)
    before = model.coef_.copy()
    model.partial_fit(X, Y, sample_weight=np.zeros(Y.shape))
    np.testing.assert_array_equal(model.coef_, before)


def test_class_weights_of_labels_in_batches():
    shares = []
    for weight in (0.1, 10.0):
        model = SLNDClassifier(random_state=0, class_weight={1: weight})
        for rows in np.array_split(np.arange(300), 3) * 2:
            model.partial_fit(X[rows], Y[rows])
        shares.append(model.predict(X).mean(axis=0))
    assert (shares[1] > shares[0] + 0.02).all()
    more = np.column_stack([Y, X[:, 3] > 0]).astype(int)
    for rows in np.array_split(np.arange(300), 3) * 4:
        model.partial_fit(X[rows], more[rows], classes=np.arange(4))
    assert model.predict(X).shape == more.shape and (model.predict(X) == more)[:, 3].mean() > 0.6
    with pytest.raises(ValueError, match="class_weight 'balanced' is not supported for partial_fit"):
        SLNDClassifier(class_weight="balanced").partial_fit(X, Y)
    plain = SLNDClassifier(random_state=0).partial_fit(X, Y, sample_weight=np.ones(Y.shape))
    np.testing.assert_allclose(plain.class_prior_, Y.mean(axis=0))


@pytest.mark.parametrize("callback", [None, lambda estimator: None])
@pytest.mark.parametrize("model", [SLNDClassifier(max_passes=2), MarginPursuitClassifier(solver="gd", max_passes=2)],
                         ids=str)
def test_the_rows_are_let_go(model, callback):
    # the copies call back by a method of what holds them: a cycle, which would keep X until the collector runs
    rows = X.copy()
    alive = weakref.ref(rows)
    gc.collect()
    gc.disable()
    try:
        fitted = quietly(clone(model).set_params(class_weight="balanced", callback=callback), rows, Y)
        del rows
        assert alive() is None and fitted.callback is callback
    finally:
        gc.enable()


def test_a_random_state_is_drawn_from_and_not_copied():
    state = np.random.RandomState(0)
    SLNDClassifier(class_weight="balanced", random_state=state).fit(X, Y)
    once = np.random.RandomState(0)
    once.randint(1 << 31, size=3)
    assert state.randint(1 << 31) == once.randint(1 << 31)


# ---------------------------------------------------------------- classes that exclude each other

@pytest.mark.parametrize("class_weight", OF_CLASSES, ids=str)
@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_class_weights_of_positives_are_linear_svcs(class_weight, loss):
    # Coefficients were 0.13 and more apart, and one row in six had another label on four classes.
    theirs = LinearSVC(C=1.0, loss=loss, class_weight=class_weight, tol=1e-9, max_iter=2_000_000,
                       dual=loss == "hinge", random_state=0).fit(X, CLASSES)
    ours = SmSVMClassifier(C=1.0, loss=loss, penalize_intercept=True, class_weight=class_weight, tol=1e-9,
                           class_weight_on="positives").fit(X, CLASSES)
    close = 1e-6 if loss == "squared_hinge" else 1e-3
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=close)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=close)
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    rows = SmSVMClassifier(C=1.0, loss=loss, penalize_intercept=True, class_weight=class_weight).fit(X, CLASSES)
    assert np.abs(rows.coef_ - theirs.coef_).max() > 0.1
    assert ours.score(X, CLASSES) == theirs.score(X, CLASSES) and not ours._multilabel


def test_class_weights_of_rows_are_sample_weights():
    by_class = np.array([5.0, 0.3, 1.0, 2.0])
    one = SmSVMClassifier(class_weight=dict(enumerate(by_class))).fit(X, CLASSES)
    np.testing.assert_array_equal(one.coef_, SmSVMClassifier().fit(X, CLASSES, by_class[CLASSES]).coef_)


def test_sample_weights_go_along():
    weight = S[:, 0]
    theirs = LinearSVC(C=1.0, class_weight=OF_CLASSES[0], tol=1e-10, max_iter=200000, dual=False)
    ours = SmSVMClassifier(C=1.0, loss="squared_hinge", penalize_intercept=True, class_weight=OF_CLASSES[0], tol=1e-9,
                           class_weight_on="positives").fit(X, CLASSES, weight)
    np.testing.assert_allclose(ours.coef_, theirs.fit(X, CLASSES, weight).coef_, atol=1e-6)


def test_two_classes_are_one_problem():
    y = CLASSES > 1
    a, b = (SmSVMClassifier(class_weight={False: 3.0}, class_weight_on=on).fit(X, y) for on in ("rows", "positives"))
    np.testing.assert_array_equal(a.coef_, b.coef_)
    with pytest.raises(ValueError, match=r"'class_weight_on' parameter .* must be a str among {'rows', 'positives'}"):
        SmSVMClassifier(class_weight_on="classes").fit(X, y)


# ---------------------------------------------------------------- C

def test_an_infinite_c_is_no_penalty():
    # scikit-learn's spelling since 1.8; "must be a float in the range (0.0, inf)"
    y = CLASSES % 2
    model = SmSVMClassifier(C=np.inf, loss="logistic", tol=1e-8).fit(X, y)
    none = SmSVMClassifier(l2=0.0, loss="logistic", tol=1e-8).fit(X, y)
    np.testing.assert_array_equal(model.coef_, none.coef_)
    theirs = LogisticRegression(C=1e12, tol=1e-10, max_iter=10000).fit(X, y)
    np.testing.assert_allclose(model.coef_, theirs.coef_, rtol=1e-4)
    for bad in (0.0, -1.0, np.nan, -np.inf):
        with pytest.raises(ValueError, match=r"'C' parameter of .* must be a float in the range \(0.0, inf\]"):
            SmSVMClassifier(C=bad).fit(X, y)
