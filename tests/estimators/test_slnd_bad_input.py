"""SLND and BSN on input that no one should give them, and on the odd cases that once went wrong."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import blobs
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from test_slnd import fit, same

from cmargin import SLNDClassifier
from cmargin.data.memory.stochastic_rows import NonFiniteCurvature, StochasticRows


def test_going_on_with_other_labels_is_refused_not_crashed_into():
    # The weights of one problem once met the lists of fifty: the kernels wrote past them and the interpreter died.
    X, y = blobs(k=3)
    model = SLNDClassifier(loss="logistic", random_state=1).partial_fit(X, (y > 0).astype(int), classes=[0, 1])
    with pytest.raises(ValueError, match="going on needs the classes"):
        model.partial_fit(X, np.eye(50, dtype=int)[np.arange(len(y)) % 50])
    three = SLNDClassifier(loss="logistic", random_state=1).partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="as an indicator"):
        three.partial_fit(X, np.eye(3, dtype=int)[y])
    assert three.partial_fit(X, y).score(X, y) > 0.7


def test_a_fit_that_fails_leaves_the_last_one_whole():
    # The classes of a failed fit once stood beside the weights of the one before; the next call died on it.
    X, y = blobs(k=3)
    model = fit(X[:100], y[:100])
    before = model.predict(X)
    for attempt in (
        lambda: model.fit(X, np.arange(len(y)) % 40, -np.ones(len(y))),
        lambda: model.set_params(n_jobs=0).fit(X, np.arange(len(y)) % 40),
        lambda: model.set_params(n_jobs=0).partial_fit(X, y),
        lambda: model.set_params(n_jobs=1, rank=99).fit(X, np.arange(len(y)) % 40),
    ):
        counts = model._counts.copy()
        with pytest.raises(ValueError):
            attempt()
        assert np.array_equal(model.classes_, [0, 1, 2]) and np.array_equal(model._counts, counts)
        assert np.array_equal(model.predict(X), before)
    model.set_params(rank="auto").partial_fit(X, y)
    assert model.score(X, y) > 0.7


def test_a_ratio_beyond_every_integer_takes_all_rows():
    # 1e20 negatives per positive turned into a negative count, and lists began before their memory.
    X, y = blobs()
    assert same(fit(X, y, negatives_per_positive=1e20, step_size=0.3),
                fit(X, y, negatives_per_positive=None, step_size=0.3))


@pytest.mark.parametrize("loss", ["logistic", "calibrated_hinge"])
def test_a_class_missing_from_the_first_batch_is_learned_from_the_second(loss):
    # Its intercept started at f^-1(0), -1e9 for the calibrated hinge, and never came back.
    X, y = blobs(n=600, k=3)
    model = SLNDClassifier(loss=loss, random_state=1)
    model.partial_fit(X[y < 2], y[y < 2], classes=[0, 1, 2])
    assert not np.any(model.predict(X) == 2) and np.abs(model.intercept_).max() < 100
    for _ in range(20):
        model.partial_fit(X, y)
    assert np.mean(model.predict(X)[y == 2] == 2) > 0.7


def test_a_scaled_tail_stays_one_where_the_next_eigenvalue_is_lost():
    # In float32 the small eigenvalues of unscaled columns are rounding; the tail was then dropped without a word.
    X, y = load_breast_cancer(return_X_y=True)
    single = fit(X.astype(np.float32), y)
    assert single.preconditioner_.scales_tail and single.score(X.astype(np.float32), y) > 0.93
    few = fit(X, y, rank=20, hessian_samples=20)
    assert few.preconditioner_.scales_tail


def test_theory_step_is_bounded_where_rows_are_orthogonal():
    # Every sum over the subset was rounding there, and their quotient 1e16.
    rng = np.random.default_rng(3)
    X = rng.standard_normal((200, 300))
    y = (X[:, 0] > 0).astype(int)
    model = fit(X, y, step_size="theory", tail="drop", rank=200, hessian_samples=200, fit_intercept=False, max_passes=2)
    assert np.abs(model.coef_).max() < 100 and model.history_["objective"][-1] <= np.log(2)


def test_a_changed_step_counts_and_passes_add_up_when_going_on():
    X, y = blobs()
    model = fit(X, y, warm_start=True, step_size=0.5, max_passes=1)
    steps = [model.history_["step"][-1]]
    for _ in range(3):
        steps.append(model.fit(X, y).history_["step"][-1])
    np.testing.assert_allclose(steps, steps[0] / np.arange(1, 5))
    before = model.coef_.copy()
    model.set_params(step_size=1e-9).fit(X, y)
    assert model.step_size_ == 1e-9 and np.abs(model.coef_ - before).max() < 1e-6 * np.abs(before).max()


def test_class_weights_that_are_no_weights():
    X, y = blobs(k=3)
    for weights, message in (({0: np.inf}, "finite"), ({0: -1.0}, "not negative"),
                             ({7: 1.0}, "are not in class_weight")):
        with pytest.raises(ValueError, match=message):
            fit(X, y, class_weight=weights)
    # weights of all classes, some of which a fold of cross-validation lacks, are not refused, as in LogisticRegression
    np.testing.assert_array_equal(fit(X, y, class_weight={0: 1.0, 1: 2.0, 2: 3.0, 7: 9.0}).coef_,
                                  fit(X, y, class_weight={0: 1.0, 1: 2.0, 2: 3.0}).coef_)
    model = SLNDClassifier(loss="logistic", class_weight={1: 5.0}).partial_fit(X[y != 1], y[y != 1], classes=[0, 1, 2])
    assert np.isfinite(model.predict_proba(X)).all()
    with pytest.raises(ValueError, match="only one class"):
        fit(X, y, (y == 1).astype(float))


def test_partial_fit_knows_no_balanced_weights():
    # The first batch's frequencies were taken for everybody's, then the next one's, in silence.
    X, y = blobs(k=3)
    model = SLNDClassifier(class_weight="balanced")
    with pytest.raises(ValueError, match="class_weight 'balanced' is not supported for partial_fit"):
        model.partial_fit(X, y, classes=[0, 1, 2])
    assert not hasattr(model, "coef_")
    model.fit(X, y)
    with pytest.raises(ValueError, match=r"compute_class_weight\('balanced', classes=classes, y=y\)"):
        model.partial_fit(X, y)
    with pytest.raises(ValueError, match=r"'class_weight' parameter of SLNDClassifier must be .* Got 'even'"):
        fit(X, y, class_weight="even")


@pytest.mark.parametrize("targets, whose", [(lambda y: np.array(["ant", "bee", "cat"])[y], "class 'cat'"),
                                            (lambda y: np.eye(3, dtype=int)[y], "label column 2")])
def test_a_second_moment_that_cannot_be_inverted_is_somebodys(monkeypatch, targets, whose):
    # "The second moment of group 2 cannot be inverted": no one knows what group 2 is.
    X, y = blobs(k=3)

    whole = StochasticRows.leading_pairs

    def failing(self, subset, curvature, k, n_values, centre=None):
        if len(curvature) > 1:
            raise NonFiniteCurvature(2, len(curvature))
        return whole(self, subset, curvature, k, n_values, centre)

    monkeypatch.setattr(StochasticRows, "leading_pairs", failing)
    with pytest.raises(ValueError, match=rf"at the weights of {whose} holds NaN .* lower step_size"):
        fit(X, targets(y), loss="logistic", hessian_refresh=1, max_passes=3)


def test_huge_values_do_not_leave_as_nan():
    X, y = blobs()
    for rows in (1e300 * X, sp.csr_matrix(1e300 * X)):           # finite, but its second moment is not
        with pytest.raises(ValueError, match=r"second moment of the rows holds NaN .* largest entry is \d\.\de\+30"):
            fit(rows, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = fit((1e15 * X).astype(np.float32), y)
    assert np.isfinite(model.coef_).all() and model.score(1e15 * X, y) > 0.5
