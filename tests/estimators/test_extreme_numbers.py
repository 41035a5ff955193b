"""Numbers near the ends of the range of doubles: no NaN, no hang, one clear error or one warning."""

import signal
import warnings
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from cmargin import (
    BSNClassifier,
    MarginPursuitClassifier,
    PegasosClassifier,
    SLNDClassifier,
    SmSVMClassifier,
    SmSVMClassifierCV,
    baselines,
    margins,
)
from cmargin._estimators.labels import in_range
from cmargin._estimators.scores import predicted
from cmargin._estimators.validation import InvalidParameterError
from cmargin.solvers.first_order.hager_zhang import LineSearch, OutOfTrials

LARGEST = np.finfo(float).max
rng = np.random.default_rng(5)
X = rng.standard_normal((60, 4))
y = (X[:, 0] + 0.3 * rng.standard_normal(60) > 0).astype(int)
y_3 = np.arange(60) % 3


@pytest.fixture(autouse=True)
def no_hang():
    """An error after 30 s, where there are alarms: what is tested here takes milliseconds."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def late(*_):
        raise TimeoutError("hangs")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, 30)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


# ---------------------------------------------------------------- margins

def test_a_third_moment_beyond_the_range_of_doubles():
    # variance ** 1.5 of Python numbers raises OverflowError, out of `margin_summary` and out of every diverging fit
    found = margins.margin_summary(np.array([0, 1e104, 3e104]))
    small = margins.margin_summary(np.array([0, 1, 3.0]))
    assert found["skewness"] == pytest.approx(small["skewness"], rel=1e-12)
    for name in ("mean", "median", "location", "scale", "quantiles"):
        np.testing.assert_allclose(found[name], 1e104 * np.asarray(small[name]), rtol=1e-12)
    with pytest.raises(ValueError, match="too large for a variance"):
        margins.margin_summary(np.array([-1e200, 1e200, 0]))


@pytest.mark.parametrize("power", [-1000, -700, 600, 1020])
@pytest.mark.parametrize("scale", [None, 0.7, 100.0])
def test_the_location_grows_with_its_margins(power, scale):
    q = np.random.default_rng(3).standard_normal(21) + 0.4
    factor = 2.0**power
    found = margins.location_estimate(q * factor, None if scale is None else min(scale * factor, LARGEST))
    if scale is not None and scale * factor > LARGEST:
        scale = LARGEST / factor
    assert found == pytest.approx(margins.location_estimate(q, scale) * factor, rel=1e-12)


@pytest.mark.parametrize("q, scale, expected", [
    ([1e308, 1e308], 1.0, 1e308),                       # the median of two, by their sum, was infinite: no end
    ([1.7e308, 1.7e308, -1.7e308], 1.0, 1.7e308),
    ([1e308, -1e308], 1e-300, 0.0),
    ([1.0, 2.0, 1e300], 2.3e-308, 2.0),
    ([0.0, 5e-324], None, 0.0),
])
def test_locations_at_the_ends_of_the_range(q, scale, expected):
    assert margins.location_estimate(np.array(q), scale) == pytest.approx(expected, rel=1e-12)


def test_other_margins_functions_at_the_ends_of_the_range():
    assert margins.confidence_scale(10, 1e308) == pytest.approx(1e154 * margins.confidence_scale(10, 1.0))
    assert np.isfinite(margins.confidence_radius(10, 1.0, 5e-324))
    assert margins.weak_separability([1e200, 1.0], [1e308, 1e308]) == pytest.approx(5e199)
    assert margins.weak_separability([0.5], [5e-324]) == 0.5
    for kappa, v, distance in ((1e-300, 1e300, 1e300), (1e308, 1e308, 1.0), (2.3e-308, 2.3e-308, 1e308)):
        bound = margins.excess_risk_bound(10**9, 10**9, strong_convexity=kappa, input_variance=v, n_iter=5,
                                          initial_distance=distance, subgaussian=1e308, delta=5e-324)
        assert bound.risk == 1.0 and not np.isnan(bound).any()


# ---------------------------------------------------------------- scores

@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sparse", [False, True])
def test_scores_beyond_the_range_keep_sign_and_order(dtype, sparse):
    # inf - inf: decision_function was NaN for entries of -1e308
    top = np.finfo(dtype).max
    rows = np.array([[top, -top, 0], [-top, top / 4, 1], [1, 2, 3], [0, 0, 0], [top, top, top]], dtype)
    coef = np.array([[2, 2, 1], [0.5, -4, 1], [-2, 2, 0], [1e-30, -1e-30, 1]], dtype)
    b = np.array([1, -1, 0, 2], dtype)
    found = predicted(sp.csr_matrix(rows) if sparse else rows, coef, b)
    assert found.dtype == dtype and np.isfinite(found).all()
    for i, row in enumerate(rows):
        exact = [sum(Fraction(float(w)) * Fraction(float(x)) for w, x in zip(c, row, strict=True)) + Fraction(float(d))
                 for c, d in zip(coef, b, strict=True)]
        over = max(map(abs, exact)) / Fraction(float(top))
        expected = np.array([float(e / max(over, 1)) for e in exact])
        np.testing.assert_allclose(found[i], expected, rtol=1e-5 if dtype == np.float32 else 1e-12,
                                   atol=1e-7 * float(np.abs(expected).max()))


@pytest.mark.filterwarnings("ignore:invalid value encountered in reduce:RuntimeWarning")     # the sum of scikit-learn
@pytest.mark.parametrize("make", [SLNDClassifier, BSNClassifier, PegasosClassifier, baselines.AdamClassifier,
                                  baselines.BalancedSGDClassifier])
def test_predictions_of_rows_at_the_end_of_the_range(make):
    model = make(random_state=0).fit(X, y_3)
    far = np.vstack([X / np.abs(X).max() * 1e308, -1e308 * np.ones((1, 4)), X])
    assert np.isfinite(model.decision_function(far)).all()
    assert set(model.predict(far)) <= {0, 1, 2}
    near = model.decision_function(far[:60] / 1e300) - model.intercept_
    np.testing.assert_array_equal(model.decision_function(far[:60]).argmax(axis=1), near.argmax(axis=1))
    if hasattr(model, "predict_proba"):
        np.testing.assert_allclose(model.predict_proba(far).sum(axis=1), 1)


def test_classes_that_are_all_ruled_out_share_what_is_left():
    model = SLNDClassifier(random_state=0).fit(X, y_3)
    model.coef_ = model.coef_ * 0
    model.intercept_ = np.array([-1e300, -2e300, -800.0])
    np.testing.assert_allclose(model.predict_proba(X[:2]), [[0, 0, 1]] * 2, rtol=0, atol=1e-300)


# ---------------------------------------------------------------- fits

@pytest.mark.parametrize("factor", [2.0**-1000, 2.0**-300, 2.0**1010])
@pytest.mark.parametrize("make", [SLNDClassifier, PegasosClassifier, baselines.AdamClassifier,
                                  baselines.CGDescentClassifier, baselines.BalancedSGDClassifier])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_unit_of_the_weights_does_not_matter(make, factor):
    # All weights 5e-324 gave NaN probabilities, 1e308 an infinite sum
    weight = np.random.default_rng(7).uniform(0.5, 2, 60)
    settings = {} if make is baselines.CGDescentClassifier else {"random_state": 0}
    one, other = (make(**settings).fit(X, y, w) for w in (weight, weight * factor))
    np.testing.assert_array_equal(one.coef_, other.coef_)
    np.testing.assert_array_equal(one.intercept_, other.intercept_)


SEVERAL = [MarginPursuitClassifier(), MarginPursuitClassifier(solver="sgd", random_state=0),
           MarginPursuitClassifier(solver="gd"), PegasosClassifier(random_state=0), baselines.ODMClassifier(),
           baselines.ProjectionProfileClassifier(), baselines.NesterovClassifier(), baselines.AdaDeltaClassifier(),
           baselines.SGDQNClassifier(random_state=0), BSNClassifier(random_state=0), SmSVMClassifier(),
           SmSVMClassifier(loss="squared_hinge"), SmSVMClassifier(loss="logistic"), SmSVMClassifierCV(cv=2)]


@pytest.mark.parametrize("weights", [np.full(60, 5e-324), np.full(60, 1e308),
                                     np.where(np.arange(60) % 7 < 3, 1e308, 1e-308)], ids=["least", "most", "mixed"])
@pytest.mark.parametrize("model", SEVERAL)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_weights_at_the_ends_of_the_range(model, weights):
    # Sums of them were infinite or 0: ZeroDivisionError from Pegasos, NaN in the objective of margin pursuit and ODM
    # and in the intercept of Adam, a warning of NumPy's and no best penalty from SmSVMClassifierCV
    with np.errstate(all="raise", under="ignore"):
        model = clone(model).fit(X, y, weights)
    alike = np.where(weights < 1e-300, 0.0, 1.0) if weights.max() > 1 else None
    other = clone(model).fit(X, y, alike)
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(model.intercept_, other.intercept_, rtol=1e-6, atol=1e-9)
    if hasattr(model, "objective_"):
        np.testing.assert_allclose(model.objective_, other.objective_, rtol=1e-6)


@pytest.mark.parametrize("make, weight", [(PegasosClassifier, 1e5), (SmSVMClassifier, 1e5), (SmSVMClassifier, 5e-324),
                                          (SLNDClassifier, 1e5)])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_weights_of_rows_times_those_of_classes(make, weight):
    # 1e5 times 1e308 was infinite before it was brought into range
    plain = make(random_state=0).fit(X, y)
    both = make(random_state=0, class_weight={0: 1e308, 1: 1e308}).fit(X, y, np.full(60, weight))
    np.testing.assert_allclose(both.coef_, plain.coef_, rtol=1e-9)


@pytest.mark.parametrize("C, weight, l2", [(1e-308, 1e-300, np.inf), (5e-324, 5e-324, np.inf), (1e308, 1e308, 0)])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_penalty_by_C_beyond_the_range(C, weight, l2):
    # ZeroDivisionError where C times the sum of the weights is 0
    model = SmSVMClassifier(C=C).fit(X, y, np.full(60, weight))
    assert np.isfinite(model.coef_).all() and np.isfinite(model.objective_).all()
    assert (np.abs(model.coef_) < 1e-200).all() if l2 else model.objective_ < SmSVMClassifier().fit(X, y).objective_


def test_the_smallest_weights_there_are():
    model = SLNDClassifier(random_state=0).fit(X, y, np.full(60, 5e-324))
    np.testing.assert_array_equal(model.coef_, SLNDClassifier(random_state=0).fit(X, y, np.ones(60)).coef_)
    assert np.isfinite(model.predict_proba(X)).all()
    np.testing.assert_array_equal(in_range(np.array([5e-324, 1e-323])), [0.25, 0.5])
    assert not in_range(np.zeros(3)).any()


HUGE = {"all": X * 1e155, "one column": X * [1, 1e155, 1, 1], "mixed": X * [1e155, 1e-155, 1e80, 1],
        "one entry": np.where(np.arange(240).reshape(60, 4) == 5, -1e308, X)}
FULL = {
    "CG": baselines.CGDescentClassifier(), "CG, squared": baselines.CGDescentClassifier(loss="squared"),
    "CG, hinge": baselines.CGDescentClassifier(loss="smoothed_hinge"), "Catoni": baselines.CatoniHingeClassifier(),
    "ODM": baselines.ODMClassifier(), "profile": baselines.ProjectionProfileClassifier(),
    "Nesterov": baselines.NesterovClassifier(trace=True), "gd": MarginPursuitClassifier(solver="gd"),
    "gd, long steps": MarginPursuitClassifier(solver="gd", step_size=1e10),
    "Pegasos": PegasosClassifier(), "Adam": baselines.AdamClassifier(trace=True),
}


@pytest.mark.parametrize("data", HUGE)
@pytest.mark.parametrize("name", FULL)
def test_fits_of_huge_columns_end_with_numbers_and_one_warning(name, data):
    # CG_DESCENT's line search tried nothing on an interval of NaN, for ever; the trace of a diverging fit raised
    for target in (y, y_3):
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            model = FULL[name].fit(HUGE[data], target)
        assert {w.category for w in heard} <= {ConvergenceWarning} and len(heard) <= 1
        assert np.isfinite(model.coef_).all() and np.isfinite(model.intercept_).all()
        assert not np.isnan(model.objective_).any() and np.isfinite(model.decision_function(HUGE[data])).all()
        if heard:
            assert "nan" not in str(heard[0].message)


@pytest.mark.parametrize("make", [SLNDClassifier, baselines.BalancedSGDClassifier,
                                  baselines.PreconditionedSGDClassifier])
@pytest.mark.parametrize("scale", [1.0, 1e-200, np.float32(1e-44)])
def test_a_step_without_bounds_is_told_of(make, scale):
    # BalancedSGDClassifier(step_size=1e300) gave NaN without a word
    rows = X.astype(np.float32) * scale if isinstance(scale, np.float32) else X * scale
    model = make(step_size=1e300, random_state=0)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        model.fit(rows, y)
    assert {w.category for w in heard} <= {ConvergenceWarning} and len(heard) <= 1
    assert heard or np.isfinite(model.history_["objective"]).all()
    assert not np.isnan(model.history_["objective"]).any()
    assert np.isfinite(model.predict_proba(X)).all()


BEYOND = [("l2", 10**400), ("tol", 10**400), ("max_passes", -10**400), ("max_time", 10**400), ("max_time", -10**400),
          ("tol", Fraction(1, 10**400)), ("n_jobs", np.nan)]


@pytest.mark.parametrize("name, value", BEYOND)
@pytest.mark.parametrize("make", [PegasosClassifier, SmSVMClassifier, SLNDClassifier, MarginPursuitClassifier,
                                  baselines.CGDescentClassifier, baselines.CatoniHingeClassifier])
def test_numbers_beyond_the_range_of_floats_are_refused(make, name, value):
    # OverflowError: int too large to convert to float; and most estimators took any n_jobs
    if name not in make().get_params():
        return
    with pytest.raises(InvalidParameterError, match=rf"The '{name}' parameter of {make.__name__} must be .* Got"):
        make(**{name: value}).fit(X, y)


@pytest.mark.parametrize("call", [
    lambda: margins.location_estimate([0.0, 1.0], 10**400), lambda: margins.confidence_scale(5, 10**400),
    lambda: margins.confidence_radius(5, -10**400), lambda: margins.confidence_radius(5, 10**400),
    lambda: margins.excess_risk_bound(10, 2, strong_convexity=10**400, input_variance=1.0)])
def test_functions_of_margins_refuse_them_too(call):
    with pytest.raises(ValueError, match=r"must be a (positive )?finite number"):
        call()


@pytest.mark.parametrize("smoothing", [5e-324, 1e-300, 1e-160, 1e160, 1e300, 1e308])
@pytest.mark.parametrize("make", [
    baselines.ODMClassifier, baselines.CatoniHingeClassifier,
    partial(baselines.CGDescentClassifier, loss="smoothed_hinge", trace=True),
    partial(baselines.NesterovClassifier, loss="smoothed_hinge"),
    partial(baselines.NesterovClassifier, loss="smoothed_hinge", l1=1e-3, batch_size=5, random_state=0),
    partial(baselines.AdamClassifier, loss="smoothed_hinge", random_state=0), SmSVMClassifier])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_hinge_smoothed_over_a_width_at_the_end_of_the_range(make, smoothing):
    # ODM's objective was NaN: the width enters by its square
    model = make(smoothing=smoothing).fit(X, y_3)
    assert np.isfinite(model.coef_).all() and np.isfinite(model.intercept_).all()
    assert not np.isnan(model.objective_).any()
    if smoothing < 1 and make is baselines.ODMClassifier:
        np.testing.assert_allclose(model.objective_, make(smoothing=1e-9).fit(X, y_3).objective_, rtol=1e-3)


@pytest.mark.parametrize("l2", [1e-100, 1e-300])
def test_a_penalty_too_small_for_a_certificate_ends_at_rounding(l2):
    # All 200 Newton steps were taken, most of them at an objective that stood still
    rows = np.random.default_rng(1).standard_normal((53, 5))
    with pytest.warns(ConvergenceWarning, match="stopped at rounding"):
        model = SLNDClassifier(loss="multinomial", l2=l2).fit(rows, np.arange(53) % 3)
    assert model.n_iter_ < 120
    best = SLNDClassifier(loss="multinomial", l2=1e-9).fit(rows, np.arange(53) % 3)
    assert model.objective_ <= best.objective_ * (1 + 1e-12)


def test_a_line_that_is_nowhere_a_number_gives_up():
    def line(step):
        return (0.0, -1.0) if step < 1 else (np.nan, np.nan)

    with pytest.raises(OutOfTrials):
        LineSearch(lambda step: (np.nan, np.nan), 0.0, -1.0).search(1.0)
    with pytest.raises(OutOfTrials):
        LineSearch(line, 0.0, -1.0).search(1.0)
