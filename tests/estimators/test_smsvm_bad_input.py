"""What SmSVM refuses, and what it makes of input at the edge: one clear sentence, or a finite answer."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale

from cmargin._estimators.validation import NOT_NEGATIVE
from cmargin.smsvm import SmSVMClassifier

X_bc, y_bc = load_breast_cancer(return_X_y=True)
X_bc = scale(X_bc)


@pytest.mark.parametrize("class_weight", [{0: -1, 1: 2}, {0: np.nan, 1: 2}, {0: np.inf, 1: 2}])
def test_bad_class_weights(class_weight):
    with pytest.raises(ValueError, match="class_weight must be finite and not negative"):
        SmSVMClassifier(class_weight=class_weight).fit(X_bc, y_bc)
    with pytest.raises(ValueError, match="every sample with weight 0"):
        SmSVMClassifier(class_weight={0: 0, 1: 0}).fit(X_bc, y_bc)


def test_few_rows_with_weight_among_many():
    X, y = np.random.default_rng(0).standard_normal((20000, 2)), np.arange(20000) % 2
    weights = np.zeros(20000)
    weights[:6] = 1
    some = SmSVMClassifier().fit(X, y, weights)
    np.testing.assert_allclose(some.coef_, SmSVMClassifier().fit(X[:6], y[:6]).coef_, atol=1e-3)
    np.testing.assert_allclose(SmSVMClassifier().fit(X, y, weights * 1e308).coef_, some.coef_)


def test_overflow_is_no_certificate():
    X = np.random.default_rng(0).standard_normal((60, 3)) * 1e160
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)               # one warning, the helpful one
        with pytest.warns(ConvergenceWarning, match="scaled features"):
            model = SmSVMClassifier().fit(X, X[:, 0] > 0)
    assert model.duality_gap_[0] == 1 and not model.coef_.any()


def test_l1_that_holds_every_column_costs_few_reads():
    X, y = np.random.default_rng(2).standard_normal((300, 400)), np.arange(300) % 2
    model = SmSVMClassifier(l1=2.0, fit_intercept=False).fit(X, y)
    assert not model.coef_.any() and model.n_passes_ < 40


def test_zero_is_no_negative_number_where_denormal_numbers_are_off():
    # snapml's kernels switch them off for the whole process: l1=0 was then refused, the bound being a denormal itself
    assert abs(NOT_NEGATIVE[0]) >= np.finfo(float).tiny > 0
    with pytest.raises(ValueError, match="'l1' parameter"):
        SmSVMClassifier(l1=-1e-300).fit(X_bc, y_bc)


@pytest.mark.parametrize("solver", ["woodbury", "cg"])
def test_solvers_without_l1(solver):
    with pytest.raises(ValueError, match=f"linear_solver='{solver}' needs l1=0"):
        SmSVMClassifier(linear_solver=solver, l1=1.0).fit(X_bc, y_bc)


def test_features_far_too_large_end_in_a_finite_answer():
    model = SmSVMClassifier(max_passes=60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X_bc * 1e12, y_bc)
    assert np.isfinite(model.coef_).all() and model.objective_[0] <= 1


def test_an_indicator_holds_zeros_and_ones():
    Y = np.column_stack([y_bc, 1 - y_bc])
    signs = SmSVMClassifier().fit(X_bc, 2 * Y - 1)
    np.testing.assert_array_equal(signs.coef_, SmSVMClassifier().fit(X_bc, Y).coef_)
    with pytest.raises(ValueError, match="must hold 0 and 1, or -1 and 1"):
        SmSVMClassifier().fit(X_bc, Y + 1)


def test_warm_start_with_other_labels_is_refused():
    model = SmSVMClassifier(warm_start=True).fit(X_bc, y_bc)
    with pytest.raises(ValueError, match="warm_start needs the classes of the last fit"):
        model.fit(X_bc, np.where(y_bc == 1, "a", "b"))
    assert model.score(X_bc, y_bc) > 0.9


@pytest.mark.parametrize("max_passes", [1, 3])
def test_a_subset_leaves_the_passes_that_all_rows_need(max_passes):
    X = np.random.default_rng(6).standard_normal((30000, 12))
    with pytest.warns(ConvergenceWarning, match="max_passes"):
        model = SmSVMClassifier(l2=1e-5, max_passes=max_passes, tol=1e-9).fit(X, X[:, 0] > 1)
    assert model.n_passes_ <= max_passes and np.isfinite(model.objective_[0])


def test_a_label_indicator_of_minus_1_and_1_is_scored_like_one_of_0_and_1():
    Y = np.stack([y_bc, 1 - y_bc, X_bc[:, 0] > 0], axis=1).astype(int)
    model = SmSVMClassifier().fit(X_bc, 2 * Y - 1)
    assert model.score(X_bc, 2 * Y - 1) == model.score(X_bc, Y) == model.score(X_bc, (2 * Y - 1).tolist()) > 0.8
    with pytest.raises(ValueError, match="must hold 0 and 1, or -1 and 1"):
        model.score(X_bc, 2 * Y)


def test_what_class_weight_may_be_is_said_whole():
    with pytest.raises(ValueError, match=r"must be a dict, a list of dicts, an array of shape \(n_labels, 2\), "
                                         r"a str among {'balanced'} or None\. Got"):
        SmSVMClassifier(class_weight="even").fit(X_bc, y_bc)
