"""SLND and BSN with ``l1``, ``l1_ratio`` and ``groups``: the optimum of LogisticRegression with those penalties."""

import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.special import logsumexp
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import scale

from cmargin import BSNClassifier, SLNDClassifier, SLNDClassifierCV, slnd_path

X, y = load_wine(return_X_y=True)
X, n = scale(X), len(y)


def objective(model, X, y, l2, l1, grouped=False, s=None):
    s = np.ones(len(y)) if s is None else s
    scores, W = model.decision_function(X), model.coef_
    at = np.searchsorted(model.classes_, y)
    risk = np.log1p(np.exp(scores)) - at * scores if scores.ndim == 1 else \
        logsumexp(scores, axis=1) - scores[np.arange(len(y)), at]
    sizes = np.sqrt((W**2).sum(axis=0)) if grouped else np.abs(W)
    return s @ risk / s.sum() + l2 / 2 * (W**2).sum() + l1 * sizes.sum()


@pytest.mark.parametrize(("C", "ratio"), [(0.2, 1.0), (0.1, 0.5), (0.3, 0.9)])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("two", [False, True])
def test_the_optimum_of_logistic_regression(C, ratio, weighted, two):
    X, y = load_breast_cancer(return_X_y=True) if two else load_wine(return_X_y=True)
    X = scale(X)
    s = np.random.default_rng(3).random(len(y)) + 0.1 if weighted else np.ones(len(y))
    l1, l2 = ratio / (C * s.sum()), (1 - ratio) / (C * s.sum())
    model = SLNDClassifier(loss="multinomial", l1=l1, l2=l2, tol=1e-8).fit(X, y, s)
    theirs = LogisticRegression(C=C, l1_ratio=ratio, solver="saga", tol=1e-7, max_iter=3000, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs.fit(X, y, s)
    assert model.duality_gap_ <= 1e-8 and model.coef_.shape == theirs.coef_.shape and model.coef_.dtype == np.float64
    assert model.objective_ == pytest.approx(objective(model, X, y, l2, l1, s=s), rel=1e-9)
    theirs.loss_ = None
    assert objective(theirs, X, y, l2, l1, s=s) == pytest.approx(model.objective_, rel=3e-3)
    np.testing.assert_allclose(model.predict_proba(X), theirs.predict_proba(X), atol=0.05)
    assert (model.coef_ == 0).any()


@pytest.mark.parametrize("kind", [SLNDClassifier, BSNClassifier])
def test_a_column_is_held_at_zero_in_all_classes(kind):
    model = kind(l1=0.05, groups="classes", tol=1e-8).fit(X, y)
    assert model.loss_ == "multinomial" and model.duality_gap_ <= 1e-8
    assert model.objective_ == pytest.approx(objective(model, X, y, 0, 0.05, True), rel=1e-9)
    used = np.any(model.coef_ != 0, axis=0)
    assert 0 < used.sum() < X.shape[1] and np.all(model.coef_[:, used] != 0)


def test_groups_of_two_classes_are_single_weights():
    rows, labels = X[y < 2], y[y < 2]
    grouped = SLNDClassifier(l1=0.05, l2=0.01, groups="classes", tol=1e-9).fit(rows, labels)
    plain = SLNDClassifier(l1=0.05, l2=0.01, tol=1e-9).fit(rows, labels)
    np.testing.assert_allclose(grouped.coef_, plain.coef_, atol=1e-6)
    assert grouped.objective_ == pytest.approx(objective(grouped, rows, labels, 0.01, 0.05), rel=1e-9)


def test_l1_ratio_says_which_l1_goes_with_an_l2():
    by_ratio = SLNDClassifier(l2=0.02, l1_ratio=0.6).fit(X, y)
    assert np.array_equal(by_ratio.coef_, SLNDClassifier(l2=0.02, l1=0.02 * (0.6 / (1 - 0.6))).fit(X, y).coef_)
    plain = SLNDClassifier(l2=0.02).fit(X, y)
    assert np.array_equal(SLNDClassifier(l2=0.02, l1_ratio=0.0).fit(X, y).coef_, plain.coef_)


def test_a_strong_penalty_leaves_the_shares_of_the_classes():
    for grouped in (None, "classes"):
        model = SLNDClassifier(l1=1.0, groups=grouped).fit(X, y)
        assert not model.coef_.any() and model.duality_gap_ <= 1e-9
        np.testing.assert_allclose(model.predict_proba(X[:1])[0], np.bincount(y) / n, rtol=1e-9)


def test_csr_rows_single_precision_class_weights_and_names():
    labels, rows = np.array(["a", "b", "c"])[y], sparse.csr_array(np.where(np.abs(X) > 0.4, X, 0).astype(np.float32))
    model = SLNDClassifier(l1=0.01, class_weight="balanced", tol=1e-7).fit(rows, labels)
    s = n / (3 * np.bincount(y)[y])
    same = SLNDClassifier(l1=0.01, tol=1e-7).fit(rows.toarray().astype(float), labels, s)
    np.testing.assert_allclose(model.coef_, same.coef_, atol=1e-5)
    assert set(model.predict(rows)) <= {"a", "b", "c"} and model.score(rows, labels) > 0.9


def test_a_warm_start_ends_at_the_same_optimum_sooner():
    cold = SLNDClassifier(l1=0.01, tol=1e-7).fit(X, y)
    warm = SLNDClassifier(l1=0.011, tol=1e-7, warm_start=True).fit(X, y).set_params(l1=0.01).fit(X, y)
    np.testing.assert_allclose(warm.coef_, cold.coef_, atol=1e-5)
    again = warm.fit(X, y)
    assert again.n_iter_ == 0 and again.duality_gap_ <= 1e-7


def test_rows_without_weight_and_classes_without_rows():
    s = (y > 0).astype(float)
    model = SLNDClassifier(l1=0.01, tol=1e-8).fit(X, y, s)
    assert not model.coef_[0].any() and not (model.predict(X) == 0).any()
    few = SLNDClassifier(l1=0.01, tol=1e-8, loss="multinomial").fit(X[y > 0], y[y > 0])
    np.testing.assert_allclose(model.predict_proba(X)[:, 1:], few.predict_proba(X), atol=1e-3)


def test_what_is_kept_copied_and_exported():
    model = SLNDClassifier(l1=0.02).fit(X, y)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), model.predict_proba(X))
    np.testing.assert_allclose(model.to_sklearn().predict_proba(X), model.predict_proba(X), rtol=1e-10)
    thin = SLNDClassifier(l1=0.02).fit(X, y).sparsify()
    assert sparse.issparse(thin.coef_) and np.array_equal(thin.predict(X), model.predict(X))
    assert set(model.history_) == {"class", "passes", "seconds", "objective", "gap", "products"}
    assert model.history_["gap"][-1] == model.duality_gap_ and np.all(np.diff(model.history_["passes"]) > 0)


def test_time_and_a_callback_leave_the_point_reached():
    rng = np.random.default_rng(0)
    wide = rng.standard_normal((300, 800))
    labels = (wide[:, :5] @ rng.standard_normal((5, 4)) + rng.gumbel(size=(300, 4))).argmax(axis=1)
    model = SLNDClassifier(l1=1e-3, max_time=0.01)
    with pytest.warns(ConvergenceWarning, match="larger l1"):
        model.fit(wide, labels)
    assert model.predict(wide).shape == (300,)
    seen = []
    model = SLNDClassifier(l1=1e-3, callback=lambda m: seen.append(m.duality_gap_) or len(seen) == 2).fit(wide, labels)
    assert len(seen) == 2 and model.duality_gap_ == seen[-1] and np.isfinite(model.objective_)


def test_a_checkpoint_gives_the_same_bits(tmp_path):
    class Stop(Exception):
        pass

    def stop(model):
        if len(model.history_["gap"]) == 3:
            raise Stop

    from cmargin import Checkpoint

    kept = Checkpoint(tmp_path / "state", seconds=None, passes=1e-9)
    whole = SLNDClassifier(l1=1e-3, tol=1e-8).fit(X, y)
    with pytest.raises(Stop):
        SLNDClassifier(l1=1e-3, tol=1e-8, checkpoint=kept, callback=stop).fit(X, y)
    resumed = SLNDClassifier(l1=1e-3, tol=1e-8, checkpoint=kept).fit(X, y)
    assert np.array_equal(resumed.coef_, whole.coef_) and resumed.n_passes_ == whole.n_passes_


@pytest.mark.parametrize(("parameters", "match"), [
    ({"l1": -1.0}, "'l1' parameter of SLNDClassifier must be a float in the range"),
    ({"l1": "much"}, "'l1' parameter of SLNDClassifier must be"), ({"l1": np.nan}, "'l1' parameter"),
    ({"l1": np.inf}, "'l1' parameter"),
    ({"groups": [0, 1]}, "'groups' parameter of SLNDClassifier must be"), ({"groups": "columns"}, "'groups' parameter"),
    ({"l1_ratio": 1.5, "l2": 1.0}, "'l1_ratio' parameter"), ({"l1_ratio": 0.5}, "goes with an l2 above 0"),
    ({"l1_ratio": 1.0, "l2": 1.0}, "goes with an l2 above 0"), ({"l1": 0.1, "l1_ratio": 0.5, "l2": 1.0}, "not both"),
    ({"l1": 0.1, "loss": "logistic"}, "l1=0.1 needs loss='multinomial'"),
])
def test_bad_parameters(parameters, match):
    with pytest.raises(ValueError, match=match):
        SLNDClassifier(**parameters).fit(X, y)


def test_what_knows_no_l1_says_so():
    model = SLNDClassifier(l1=0.1)
    with pytest.raises(ValueError, match="partial_fit takes no l2 and no l1"):
        model.partial_fit(X, y, classes=np.unique(y))
    with pytest.raises(ValueError, match="A path needs l1=0"):
        model.path(X, y)
    with pytest.raises(ValueError, match="SLNDClassifierCV needs l1=0"):
        SLNDClassifierCV(l2s=(1e-2,), estimator=SLNDClassifier(l2=1.0, l1_ratio=0.5)).fit(X, y)
    with pytest.raises(ValueError, match="only one class"):
        model.fit(X, np.zeros(n))
    assert slnd_path(X, y, l2s=[0.1]).gaps[0] <= 1e-4
