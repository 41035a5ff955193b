"""What holds of every estimator and every way of training it: conventions, formats, weights, labels, how a fit ends."""

import sys
import textwrap
import time

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import FORMATS, as_format, blobs, named
from estimators import quick_estimators, quietly
from fits import same
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, make_multilabel_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale
from sklearn.utils.estimator_checks import (
    check_sample_weight_equivalence_on_dense_data,
    check_sample_weight_equivalence_on_sparse_data,
    parametrize_with_checks,
)
from started import python

from cmargin import (
    BSNClassifier,
    MarginPursuitClassifier,
    PegasosClassifier,
    SLNDClassifier,
    SLNDClassifierCV,
    SmSVMClassifier,
    SmSVMClassifierCV,
    SmSVMRegressor,
)
from cmargin.baselines import (
    AdaDeltaClassifier,
    AdamClassifier,
    BalancedSGDClassifier,
    CatoniHingeClassifier,
    CGDescentClassifier,
    NesterovClassifier,
    ODMClassifier,
    PreconditionedSGDClassifier,
    ProjectionProfileClassifier,
    SGDQNClassifier,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
X_bc, y_bc = load_breast_cancer(return_X_y=True)
X_bc = scale(X_bc)
ALL = quick_estimators()
BY_STEPS = [BalancedSGDClassifier(), PreconditionedSGDClassifier(),
            PreconditionedSGDClassifier(preconditioner="diagonal"), SGDQNClassifier()]
BY_GRADIENTS = [CGDescentClassifier(), NesterovClassifier(), AdaDeltaClassifier(), AdamClassifier()]
STOCHASTIC = "no stochastic order of visits repeats a row bit for bit; in expectation rows of weight 2 are two"


def excuse(estimator):
    """Why a row twice need not be a row of weight 2 to 1e-7, or None."""
    if isinstance(estimator, MarginPursuitClassifier):
        if estimator.l2 == "auto":
            return "l2 is chosen by leaving rows out one by one, of repeated ones one copy"
        return STOCHASTIC if "sgd" in estimator.solver or estimator.scale == "one-shot" else None
    if isinstance(estimator, CGDescentClassifier) and estimator.tol == 1e-6:
        return "1e-6 leaves up to 1e-3 in scores of weakly penalised classes that can be told apart"
    return STOCHASTIC if isinstance(estimator, (SLNDClassifier, PegasosClassifier)) else None


@parametrize_with_checks(
    [SLNDClassifier(), SLNDClassifier(loss="multinomial"), BSNClassifier(loss="logistic"),
     BSNClassifier(loss="multinomial", tail="drop"), *BY_STEPS, SmSVMClassifier(),
     SmSVMClassifier(loss="logistic", l1=1e-3), SmSVMClassifier(loss="squared_hinge", C=1.0, tol=1e-8),
     SmSVMClassifierCV(l2s=(1e-3, 1e-1), cv=3, estimator=SmSVMClassifier(max_passes=1000)),
     SLNDClassifierCV(l2s=(1e-3, 1e-1), cv=3, estimator=SLNDClassifier(tol=1e-10)),
     MarginPursuitClassifier(), MarginPursuitClassifier(l2=0.0), MarginPursuitClassifier(solver="sgd", l2=1e-2),
     MarginPursuitClassifier(solver="gd", l2=1e-2, max_passes=1000), MarginPursuitClassifier(l2=1e-2, scale="one-shot"),
     PegasosClassifier(), CGDescentClassifier(), CGDescentClassifier(l2=1e-2, tol=1e-13), NesterovClassifier(),
     NesterovClassifier(l2=1e-2, tol=1e-11, max_passes=5000), AdaDeltaClassifier(), AdamClassifier(),
     ODMClassifier(tol=1e-12, smoothing=0.5), ProjectionProfileClassifier(max_passes=100),
     # nearly the mean loss: at a small scale the problem has many minima, and rounding chooses
     CatoniHingeClassifier(scale=10, tol=1e-12, smoothing=0.5),
     SmSVMRegressor(), SmSVMRegressor("quantile", quantile=0.2), SmSVMRegressor("quantile", l2=0.0, l1=1e-3)],
    expected_failed_checks=lambda estimator: {} if excuse(estimator) is None else dict.fromkeys(
        ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"),
        excuse(estimator)))
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.mark.parametrize("check", [check_sample_weight_equivalence_on_dense_data,
                                   check_sample_weight_equivalence_on_sparse_data])
def test_weights_are_repeated_rows_without_a_penalty_too(check):
    check("CGDescentClassifier", CGDescentClassifier(tol=1e-13))


# ---------------------------------------------------------------- formats and threads

SLND = {"random_state": 5, "rank": 4}
ANY_ORDER = [                       # those whose sums know nothing of how dense rows lie
    *(SLNDClassifier(loss="logistic", tail=tail, step_size=0.1, **SLND) for tail in ("scale", "drop")),
    *(SLNDClassifier(loss="multinomial", tail=tail, step_size=0.5, **SLND) for tail in ("scale", "drop")),
    *(clone(one).set_params(step_size=0.1, max_passes=3, random_state=5) for one in BY_STEPS),
    *(clone(one).set_params(max_passes=5, random_state=3) for one in BY_GRADIENTS[1:]),
    CGDescentClassifier(max_passes=5), MarginPursuitClassifier(solver="sgd", l2=0.05, max_passes=5, random_state=5)]
OTHER_SUMS = [MarginPursuitClassifier(solver=solver, l2=0.05, max_passes=5) for solver in ("newton", "gd")]


@pytest.mark.parametrize("model", ANY_ORDER + OTHER_SUMS, ids=named)
def test_dense_formats_and_threads_give_the_same_bits_and_csr_the_same_numbers(model, dtype, tmp_path):
    X, y = blobs(n=700)
    X = X.astype(dtype)
    fits = {(name, jobs): quietly(clone(model).set_params(n_jobs=jobs), as_format(X, name, tmp_path), y)
            for name in FORMATS for jobs in (1, 3)}
    plain, close = fits["C", 1], 1e-8 if dtype == np.float64 else 5e-4 if "SGD" in str(model) else 2e-4
    for name in FORMATS:
        assert same(fits[name, 1], fits[name, 3]), name
        assert fits[name, 1].coef_.dtype == dtype and fits[name, 1].coef_.flags.c_contiguous
        assert same(fits[name, 1], plain) or "csr" in name or model in OTHER_SUMS, name
        np.testing.assert_allclose(fits[name, 1].coef_, plain.coef_, atol=close)
    assert same(fits["csr", 1], fits["csr64", 1])


def unsorted(X):
    for lo, hi in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        X.indices[lo:hi], X.data[lo:hi] = X.indices[lo:hi][::-1].copy(), X.data[lo:hi][::-1].copy()
    X.has_sorted_indices = False
    return X


def in_halves(X):
    return sp.csr_array((np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr), shape=X.shape)


@pytest.mark.parametrize("stored, close", [(unsorted, 1e-3), (in_halves, 1e-9)])
@pytest.mark.parametrize("model", [*ALL, SmSVMClassifier(linear_solver="dual", tol=1e-6)], ids=named)
def test_csr_rows_out_of_order_or_in_parts_are_the_rows_that_they_say(model, stored, close):
    # lengths of rows were those of the parts: rows far out moved the weights more
    X, y = blobs(n=150, k=3)
    plain = sp.csr_array(np.where(np.abs(X) < 0.3, 0, X))
    given = stored(plain.copy())
    before = given.data.copy()
    scores = quietly(clone(model), plain, y).decision_function(plain)
    found = quietly(clone(model), given, y).decision_function(given)
    np.testing.assert_allclose(found, scores, atol=close * np.ptp(scores))
    np.testing.assert_array_equal(given.data, before)              # the caller's matrix is as it was


@pytest.mark.parametrize("model", [
    *ALL, *(MarginPursuitClassifier(solver=solver, l2=0.0) for solver in ("newton", "gd")),
    *(SLNDClassifier(loss=loss, random_state=5, **more) for loss in ("logistic", "multinomial")
      for more in ({"tail": "drop"}, {"rank": 12}))], ids=named)
def test_columns_that_are_constant_zero_or_there_twice_and_rows_that_are_zero(model):
    X, y = blobs()
    X[:, 2], X[:, 5], X[:, 4], X[7:12] = 0.0, 3.0, X[:, 1], 0.0
    found = quietly(clone(model), X, y)
    assert np.isfinite(found.coef_).all() and found.score(X, y) > (0.4 if "Ada" in str(model) else 0.6)
    if "solver='sgd'" not in str(model) and not isinstance(model, PegasosClassifier):     # which begin at random
        assert np.all(np.abs(found.coef_[:, 2]) < 1e-9)
    if getattr(model, "rank", None) != 12:
        found = quietly(clone(model), np.zeros((6, 2)), [0, 1, 0, 1, 0, 1])
        assert np.isfinite(found.coef_).all() and np.isfinite(found.intercept_).all()


# ---------------------------------------------------------------- weights and labels

@pytest.mark.parametrize("model", [one for one in ALL if not hasattr(one, "cv")], ids=named)
def test_weights_of_classes_are_weights_of_rows_and_weight_zero_is_absence(model):
    X, y = blobs(n=300)
    if "class_weight" in model.get_params():
        for given, rows in (({3: 2.0}, np.where(y == 3, 2.0, 1.0)), ("balanced", len(y) / (4 * np.bincount(y))[y])):
            by_class = quietly(clone(model).set_params(class_weight=given), X, y)
            by_rows = quietly(clone(model), X, y, rows)
            np.testing.assert_allclose(by_class.coef_, by_rows.coef_, rtol=1e-9, atol=1e-12)
            assert same(by_class, by_rows) or not isinstance(model, SLNDClassifier)
            assert not same(by_class, quietly(clone(model), X, y))
    weight = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    kept = weight > 0
    there, gone = quietly(clone(model), X, y, weight), quietly(clone(model), X[kept], y[kept], weight[kept])
    np.testing.assert_allclose(there.coef_, gone.coef_, rtol=1e-9, atol=1e-12)
    assert same(there, gone) or not isinstance(model, SLNDClassifier)
    np.testing.assert_allclose(quietly(clone(model), X, y, 1000 * weight).coef_, there.coef_, rtol=1e-6, atol=1e-9)


ONE_BY_ONE = [*(clone(one).set_params(l2=0.01, tol=1e-9) for one in BY_GRADIENTS), SmSVMClassifier(),
              *(MarginPursuitClassifier(solver=solver, l2=0.01, max_passes=30) for solver in ("newton", "gd"))]


@pytest.mark.parametrize("model, draws", [
    *((one, False) for one in ONE_BY_ONE),              # others draw other rows for the second label of a model
    *((one, True) for one in (*BY_STEPS, MarginPursuitClassifier(solver="sgd", l2=0.01)))], ids=named)
def test_multilabel_is_one_problem_a_column(model, draws):
    X, Y = make_multilabel_classification(n_samples=200, n_classes=3, random_state=5)
    X = scale(X)
    model = clone(model).set_params(**({"random_state": 5} if "random_state" in model.get_params() else {}))
    found = quietly(clone(model), X, Y)
    assert found.predict(X).shape == found.decision_function(X).shape == Y.shape
    assert np.mean(found.predict(X) == Y) > 0.7
    if not draws:
        np.testing.assert_allclose(found.coef_[1], quietly(clone(model), X, Y[:, 1]).coef_[0], atol=1e-9)


# ---------------------------------------------------------------- how a fit ends

PASSES = [*BY_GRADIENTS, *BY_STEPS, SLNDClassifier(loss="logistic"), SLNDClassifier(step_size=1.0),
          ODMClassifier(), ProjectionProfileClassifier(), CatoniHingeClassifier(), PegasosClassifier(),
          *(MarginPursuitClassifier(solver=solver, l2=1e-2) for solver in ("newton", "gd", "sgd"))]


@pytest.mark.parametrize("model", PASSES, ids=named)
def test_a_callback_an_interrupt_and_the_time_end_a_fit_that_can_be_used(model):
    assert quietly(clone(model).set_params(callback=lambda model: model.n_iter_ >= 2), X_bc, y_bc).n_iter_ == 2

    def press(model):
        if model.n_iter_ == 2:
            raise KeyboardInterrupt

    stopped = clone(model).set_params(callback=press)
    with pytest.raises(KeyboardInterrupt):
        stopped.fit(X_bc, y_bc)
    assert stopped.n_iter_ == len(np.unique(stopped.history_["pass"])) == 2 and stopped.score(X_bc, y_bc) > 0.6
    if model in BY_GRADIENTS:
        assert stopped.objective_[0] <= quietly(clone(model).set_params(max_passes=1), X_bc, y_bc).objective_[0]
    X, y = np.tile(X_bc, (40, 4)), np.tile(y_bc, 40)
    begin = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match="stopped by max_time"):
        late = clone(model).set_params(max_time=0.02, max_passes=10**6, tol=1e-300).fit(X, y)
    assert time.perf_counter() - begin < 5 and np.isfinite(late.coef_).all()


PRESSED = textwrap.dedent("""
    import os, signal, sys, threading, time
    import numpy as np
    from cmargin import MarginPursuitClassifier, SmSVMClassifier
    from cmargin.baselines import AdamClassifier, CGDescentClassifier, NesterovClassifier
    rng = np.random.default_rng(3)
    X, sent = rng.standard_normal((60000, 60)), []
    def press():
        sent.append(time.perf_counter()); os.kill(os.getpid(), signal.SIGINT)
    for text in sys.argv[1:]:
        y, model = rng.integers(0, 400 if "newton" in text or "SmSVM" in text else 5, 60000), eval(text)
        timer = threading.Timer(0.5 if "newton" in text else 1.0, press)
        timer.start()
        try:
            model.set_params(max_passes=10**6, tol=1e-15 if "SmSVM" in text else 1e-300).fit(X, y)
            timer.cancel()
        except KeyboardInterrupt:
            assert time.perf_counter() - sent[-1] < 3.0 and np.isfinite(model.coef_).all(), "late"
            print(text)
""")


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_is_answered_within_a_second():
    asked = [*(f"MarginPursuitClassifier(solver={solver!r},l2=1e-6,trace=False,n_jobs=2)"
               for solver in ("newton", "gd", "sgd")), "SmSVMClassifier(n_jobs=2)",
             *(f"{name}(l2=1e-6)" for name in ("AdamClassifier", "NesterovClassifier", "CGDescentClassifier"))]
    # at rest to within rounding, conjugate gradients end by themselves before the key is pressed
    assert python("-c", PRESSED, *asked).split() in (asked, asked[:-1])


# ---------------------------------------------------------------- what is refused

BAD = {
    CGDescentClassifier: [({"loss": "hinge"}, "'loss' parameter of CGDescentClassifier must be a str among"),
                          ({"l2": -1.0}, "'l2' parameter")],
    AdamClassifier: [({"beta_2": 1.0}, r"'beta_2' parameter of AdamClassifier must be a float in the range \(0.0, 1"),
                     ({"batch_size": 0}, "'batch_size' parameter")],
    AdaDeltaClassifier: [({"decay": 0.0}, "'decay' parameter"), ({"epsilon": 0.0}, "'epsilon' parameter")],
    NesterovClassifier: [({"momentum": 1.5}, "'momentum' parameter of NesterovClassifier must be .*'auto'"),
                         ({"step_size": "theory"}, "'step_size' parameter"),
                         ({"smoothing": 0.0}, "'smoothing' parameter")],
    BalancedSGDClassifier: [({"loss": "hinge"}, "'loss' parameter of BalancedSGDClassifier must be a str among"),
                            ({"step_size": "theory"}, "'step_size' parameter of BalancedSGDClassifier")],
    PreconditionedSGDClassifier: [({"preconditioner": "pca"}, r"'preconditioner' parameter .*\{'whiten', 'diagonal'")],
    SGDQNClassifier: [({"l2": 0.0}, "'l2' parameter of SGDQNClassifier must be a float in the range"),
                      ({"skip": 0}, "'skip' parameter")],
    CatoniHingeClassifier: [({"scale": 0}, "'scale' parameter of CatoniHingeClassifier must be a float in the range")],
    ODMClassifier: [({"variance_weight": -1.0}, "'variance_weight' parameter")],
    MarginPursuitClassifier: [
        ({"margin": 0}, "'margin' parameter of MarginPursuitClassifier must be a float in the range"),
        ({"margin": -1.0}, "Got -1.0 instead"), ({"scale": 0.0}, "'scale' parameter"),
        ({"scale": "data"}, "a str among {'auto', 'one-shot'} or a float"), ({"scale": np.nan}, "'scale' parameter"),
        ({"l2": -1e-9}, "'l2' parameter"), ({"l2": np.inf}, "'l2' parameter"),
        ({"solver": "lbfgs"}, "a str among {'newton', 'gd', 'sgd'}"), ({"step_size": 0}, "'step_size' parameter"),
        ({"max_passes": 0}, "'max_passes' parameter"), ({"trace": "yes"}, "'trace' parameter"),
        ({"l2": "most"}, "a str among {'auto'} or a float"), ({"scale": "one-shot", "l2": 0.0}, "divides by l2"),
        ({"scale": "one-shot", "solver": "sgd"}, "divides by l2")],
    SmSVMClassifier: [({name: value}, rf"The '{name}' parameter of SmSVMClassifier must be .* Got {value!r}")
                      for name, value in {
        "l1": -1, "l2": -1, "tol": 0, "max_passes": 0, "smoothing_decay": 1, "line_search": "armijo",
        "linear_solver": "lu", "subset_growth": "yes", "max_time": 0, "n_jobs": "two", "callback": 3,
        "smoothing": 0}.items()],
    SLNDClassifier: [
        ({"loss": "hinge"}, "'loss' parameter of SLNDClassifier must be a str among .*'squared'}. Got 'hinge' instead"),
        ({"rank": 0}, r"'rank' parameter of SLNDClassifier must be .* \[1, n_features\]. Got 0 instead"),
        ({"rank": 31}, r"\[1, n_features=30\]. Got 31 instead"), ({"rank": 2.5}, "'rank' parameter"),
        ({"tail": "keep"}, "'tail' parameter"), ({"curvature": None}, "'curvature' parameter"),
        ({"hessian_samples": -3}, "'hessian_samples' parameter.* Got -3 instead"),
        ({"hessian_refresh": 0}, "'hessian_refresh' parameter"),
        ({"negatives_per_positive": -1}, "'negatives_per_positive' parameter.* or None. Got -1 instead"),
        ({"step_size": -0.1}, "'step_size' parameter.*'theory'.* Got -0.1 instead"),
        ({"step_size": np.nan}, "'step_size' parameter"),
        ({"step_size": "theory", "hessian_refresh": 1, "loss": "logistic"}, "cannot be combined"),
        ({"max_passes": 0}, "'max_passes' parameter"), ({"tol": 0.0}, "'tol' parameter"),
        ({"max_time": -1.0}, "'max_time' parameter"), ({"average": "yes"}, "'average' parameter.*'bool'"),
        ({"fit_intercept": 2}, "'fit_intercept' parameter"), ({"callback": 3}, "'callback' parameter.*callable"),
        ({"verbose": -1}, "'verbose' parameter"), ({"n_jobs": 0}, "n_jobs == 0 has no meaning"),
        ({"n_jobs": 1.5}, "'n_jobs' parameter")],
}


@pytest.mark.parametrize("make, parameters, message", [(make, *bad) for make in BAD for bad in BAD[make]], ids=named)
def test_bad_parameters_get_one_clear_sentence(make, parameters, message):
    with pytest.raises(ValueError, match=message):
        make(**parameters).fit(X_bc, y_bc)
