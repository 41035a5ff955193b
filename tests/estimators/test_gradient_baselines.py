"""CG_DESCENT, Nesterov, AdaDelta and Adam against their twins, step after step, and on problems with a known answer."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from api import LOSS_IDS, _gradient_rules, _line_sums, evaluate
from conftest import blobs
from estimators import quietly
from naive_baselines import adadelta, adam, cg_descent, hager_zhang, nesterov, risk
from scipy.optimize import minimize, minimize_scalar
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso, LogisticRegression
from sklearn.preprocessing import scale
from sklearn.utils import check_random_state

from cmargin.baselines import AdaDeltaClassifier, AdamClassifier, CGDescentClassifier, NesterovClassifier
from cmargin.data import open_rows
from cmargin.solvers.first_order.accelerated import best_constant
from cmargin.solvers.first_order.conjugate_gradient import Line, SmoothRisk
from cmargin.solvers.first_order.hager_zhang import LineSearch, OutOfTrials, Trial

X_bc, y_bc = load_breast_cancer(return_X_y=True)
X_bc = scale(X_bc)
sign_bc = np.where(y_bc == 1, 1.0, -1.0)
LOSSES = ["logistic", "calibrated_hinge", "squared", "smoothed_hinge"]
ALL = [CGDescentClassifier(), NesterovClassifier(), AdaDeltaClassifier(), AdamClassifier()]
IDS = ["cg", "nesterov", "adadelta", "adam"]




def fit(model, X, y, sample_weight=None, **parameters):
    if isinstance(model, CGDescentClassifier):
        parameters.pop("random_state", None)         # nothing in it is random
    return quietly(clone(model).set_params(**parameters), X, y, sample_weight)


def iterates(model, X, y, sample_weight=None, **parameters):
    """Objectives of the passes, which tell the points apart."""
    return fit(model, X, y, sample_weight, tol=1e-300, **parameters).history_["objective"]


# ---------------------------------------------------------------- the same iterates as the twins

@pytest.mark.parametrize("l1", [0.0, 0.01])
@pytest.mark.parametrize("loss", LOSSES)
def test_cg_descent_takes_the_steps_of_its_twin(loss, l1):
    weight = np.random.default_rng(4).uniform(0.5, 2, len(y_bc))
    value, gradient = risk(X_bc, sign_bc, loss, 0.05, 0.5, weight, l1)
    points = cg_descent(value, gradient, np.zeros(31), 12)
    found = iterates(CGDescentClassifier(l2=0.05, l1=l1, loss=loss), X_bc, y_bc, weight, max_passes=12)
    np.testing.assert_allclose(found, [value(v) for v in points[1:]], rtol=1e-8)         # as rounding grows with steps
    model = fit(CGDescentClassifier(l2=0.05, l1=l1, loss=loss), X_bc, y_bc, weight, max_passes=12)
    np.testing.assert_allclose(np.append(model.coef_[0], model.intercept_[0]), points[-1], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("momentum", ["auto", 0.9])
def test_nesterov_takes_the_steps_of_its_twin(loss, momentum):
    value, gradient = risk(X_bc, sign_bc, loss, 0.05, 0.5)
    points = nesterov(gradient, np.zeros(31), 0.05, 40, None if momentum == "auto" else momentum)
    found = iterates(NesterovClassifier(loss=loss, momentum=momentum, step_size=0.05, l2=0.05), X_bc, y_bc,
                     max_passes=40)
    np.testing.assert_allclose(found, [value(v) for v in points[1:]], rtol=1e-9)


@pytest.mark.parametrize("batch_size", [None, 100])
@pytest.mark.parametrize("rule", ["adam", "adadelta", "nesterov"])
def test_rules_on_batches_take_the_steps_of_their_twins(rule, batch_size):
    weight = np.random.default_rng(4).uniform(0.5, 2, len(y_bc))
    weight *= len(y_bc) / weight.sum()
    value, whole = risk(X_bc, sign_bc, "logistic", 0.05, weight=weight, l1=0.02)
    n_batches, passes = 6 if batch_size else 1, 4
    entropy = int(check_random_state(5).randint(1 << 31))
    order = [j for p in range(passes)
             for j in np.random.default_rng(np.random.SeedSequence([entropy, p])).permutation(n_batches)]
    taken = iter(order)

    def gradient(v):
        rows = slice(next(taken), None, n_batches)
        mean = weight[rows].mean()           # the twin's risk divides by the weights, the batch by its rows
        return mean * risk(X_bc[rows], sign_bc[rows], "logistic", 0.05 / mean, weight=weight[rows],
                           l1=0.02 / mean)[1](v)

    gradient = whole if batch_size is None else gradient
    steps = passes * n_batches
    constant = np.zeros(31)
    share = weight[sign_bc > 0].sum() / weight.sum()
    constant[-1] = np.log(share / (1 - share))       # where the two begin: the best intercept for w = 0
    if rule == "adam":
        points = adam(gradient, constant, steps, 0.01, 0.9, 0.8, 1e-8)
        model = AdamClassifier(step_size=0.01, beta_2=0.8)
    elif rule == "adadelta":
        points = adadelta(gradient, constant, steps, 0.95, 1e-6)
        model = AdaDeltaClassifier(decay=0.95, epsilon=1e-6)
    else:
        points = nesterov(gradient, np.zeros(31), 0.02, steps, 0.9)
        model = NesterovClassifier(step_size=0.02, momentum=0.9)
    found = iterates(model, X_bc, y_bc, weight, l2=0.05, l1=0.02, batch_size=batch_size, max_passes=passes,
                     random_state=5)
    np.testing.assert_allclose(found, [value(v) for v in points[n_batches::n_batches]], rtol=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_steps_of_a_set_length_begin_at_the_best_intercept(loss):
    # Adam's steps of 1e-3 did not get from 0 to the intercept that weights of 1e7 to 1 call for: half the rows wrong
    rng = np.random.default_rng(2)
    X, y = 20 * rng.standard_normal((60, 2)), np.arange(60) % 2
    value = risk(X, 2.0 * y - 1, loss, 0.0, 0.5, np.where(y == 1, 3.0, 1.0))[0]
    rows = open_rows(X).score_blocks(sp.csc_matrix(y[:, None]), np.where(y == 1, 1.5, 0.5), 1)
    found = best_constant(loss, rows)
    best = minimize_scalar(lambda b: value(np.array([0, 0, b])))
    slack = 0.07 if loss == "smoothed_hinge" else 1e-6       # its sharp form's minimum is taken
    assert value(np.array([0, 0, found[0]])) <= best.fun + slack
    for model in (AdaDeltaClassifier(loss=loss), AdamClassifier(loss=loss)):
        heavy = fit(model, X, y, class_weight={0: 1e-4, 1: 1e3})
        assert heavy.predict(X).mean() > 0.9
        assert fit(model, X, y, fit_intercept=False, max_passes=1).intercept_ == 0


# ---------------------------------------------------------------- the line search and its sums

@pytest.mark.parametrize("n", [0, 1, 8192, 20001])
@pytest.mark.parametrize("loss", LOSSES)
def test_sums_along_a_line(n, loss):
    rng = np.random.default_rng(3)
    z, change, weight = rng.standard_normal((3, n)) * [[2], [1], [1]]
    weight = np.abs(weight)
    value, slope, curvature = np.empty((3, n))
    evaluate(LOSS_IDS[loss], z + 0.7 * change, value, slope, curvature, 0.3)
    found = {_line_sums.line(LOSS_IDS[loss], 0.3, weight, z, change, 0.7, threads) for threads in (1, 2, 3)}
    assert len(found) == 1               # the same bits
    np.testing.assert_allclose(found.pop(), (weight @ value, weight @ (slope * change)), rtol=1e-11, atol=1e-12)
    moved, out = z.copy(), np.empty(n)
    _line_sums.move(LOSS_IDS[loss], 0.3, weight, moved, change, 0.7, out, 3)
    np.testing.assert_allclose(moved, z + 0.7 * change, rtol=1e-15)
    np.testing.assert_allclose(out, weight * slope, rtol=1e-12, atol=1e-15)
    with pytest.raises(ValueError, match="shapes do not fit"):
        _line_sums.line(LOSS_IDS[loss], 0.3, weight, z, np.zeros(n + 1), 0.7, 1)


CURVES = {
    "parabola": (lambda a: (a - 3) ** 2, lambda a: 2 * (a - 3)),
    "quartic": (lambda a: (a - 0.02) ** 4 + 1, lambda a: 4 * (a - 0.02) ** 3),
    "bent": (lambda a: np.logaddexp(0, 40 * (a - 1)) - a, lambda a: 40 / (1 + np.exp(-40 * (a - 1))) - 1),
    "wavy": (lambda a: -a / (a * a + 2), lambda a: (a * a - 2) / (a * a + 2) ** 2),
}


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize("first", [1e-4, 1e-2, 1.0, 30.0, 1e4])
def test_line_search_satisfies_its_conditions(name, first):
    value, slope = CURVES[name]
    trials = []

    def phi(a):
        trials.append(a)
        return float(value(a)), float(slope(a))

    with np.errstate(over="ignore", divide="ignore"):
        found = LineSearch(phi, float(value(0.0)), float(slope(0.0))).search(first)
        twin = hager_zhang(value, slope, first)
    assert found.step == pytest.approx(twin, rel=1e-12) and found.step > 0 and len(trials) < 30
    wolfe = found.value - value(0.0) <= 0.1 * found.step * slope(0.0)
    approximate = found.slope <= (2 * 0.1 - 1) * slope(0.0) and found.value <= value(0.0) + 1e-6 * abs(value(0.0))
    assert found.slope >= 0.9 * slope(0.0) and (wolfe or approximate)


def test_line_search_gives_up_where_there_is_no_minimum():
    with pytest.raises(OutOfTrials):
        LineSearch(lambda a: (-a, -1.0), 0.0, -1.0, sigma=0.5).search(1.0)


def test_near_the_minimum_slopes_decide_where_values_cannot():
    # an Armijo test on values alone stalls at a relative gradient of about the root of the rounding, 1e-8
    model = fit(CGDescentClassifier(l2=1e-2, tol=1e-13), X_bc, y_bc)
    assert model.gradient_norm_[0] < 1e-11
    assert np.ptp(model.history_["objective"][-5:]) < 1e-14


def test_a_step_on_a_line_is_the_point_it_says():
    blocks = open_rows(X_bc).score_blocks(sp.csc_matrix(y_bc[:, None].astype(np.int8)), None, 1)
    v, d = np.random.default_rng(2).standard_normal((2, 31)) / 10
    line = Line(SmoothRisk(blocks, 0, 0.1, True, "logistic"), v)
    phi = line.phi(d)
    value, gradient = risk(X_bc, sign_bc, "logistic", 0.1)
    for step in (0.0, 0.3, 2.0):
        assert phi(step) == pytest.approx((value(v + step * d), gradient(v + step * d) @ d), rel=1e-12)
    reads = line.risk.reads
    line.settle(Trial(0.3, *phi(0.3)))
    np.testing.assert_allclose(line.gradient, gradient(v + 0.3 * d), atol=1e-14)
    assert line.risk.reads == reads + 0.5


# ---------------------------------------------------------------- known answers

@pytest.mark.parametrize("make", [
    lambda: CGDescentClassifier(tol=1e-10), lambda: NesterovClassifier(tol=1e-10, max_passes=5000),
    lambda: AdamClassifier(batch_size=None, step_size=0.02, tol=1e-7, max_passes=5000),
], ids=["cg", "nesterov", "adam"])
def test_logistic_regression_is_found(make):
    model = make().set_params(l2=1e-2).fit(X_bc, y_bc)
    reference = LogisticRegression(C=1 / (1e-2 * len(y_bc)), tol=1e-12, max_iter=10000).fit(X_bc, y_bc)
    np.testing.assert_allclose(model.coef_, reference.coef_, atol=2e-5)
    value, gradient = risk(X_bc, sign_bc, "logistic", 1e-2)
    v = np.append(model.coef_[0], model.intercept_[0])
    assert model.objective_[0] == pytest.approx(value(v), rel=1e-12)
    assert np.linalg.norm(gradient(v)) <= model.tol * np.linalg.norm(gradient(np.zeros(31))) * 1.01 + 1e-15


@pytest.mark.parametrize("model", [CGDescentClassifier(tol=1e-9), NesterovClassifier(tol=1e-9, max_passes=5000)],
                         ids=["cg", "nesterov"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_squared_loss_has_a_closed_form(model, fit_intercept):
    # F = (1 - z)^2 / 4: (X'X / 2n + l2 I) w = X'y / 2n
    found = fit(model, X_bc, y_bc, loss="squared", l2=0.1, fit_intercept=fit_intercept)
    n, A = len(y_bc), np.column_stack([X_bc, np.ones(len(y_bc))]) if fit_intercept else X_bc
    ridge = 0.1 * np.eye(A.shape[1])
    ridge[30:] = 0
    exact = np.linalg.solve(A.T @ A / (2 * n) + ridge, A.T @ sign_bc / (2 * n))
    np.testing.assert_allclose(found.coef_[0], exact[:30], atol=1e-8)
    assert found.intercept_[0] == pytest.approx(exact[30] if fit_intercept else 0.0, abs=1e-8)


@pytest.mark.parametrize("model", [CGDescentClassifier(tol=1e-8, max_passes=5000),
                                   NesterovClassifier(tol=1e-6, max_passes=20000)], ids=["cg", "nesterov"])
def test_the_squared_loss_with_l1_is_the_lasso(model):
    # F = (1 - z)^2 / 4 is half of the lasso's (y - h)^2 / 2
    found = fit(model, X_bc, y_bc, loss="squared", l2=0.0, l1=0.02)
    lasso = Lasso(alpha=0.04, tol=1e-10, max_iter=100000).fit(X_bc, sign_bc)
    np.testing.assert_allclose(found.coef_[0], lasso.coef_, atol=6e-3)
    assert (np.abs(found.coef_[0][lasso.coef_ == 0]) < 5e-3).all()
    value, gradient = risk(X_bc, sign_bc, "squared", 0.0, l1=0.02)
    v = np.append(found.coef_[0], found.intercept_[0])
    assert found.objective_[0] == pytest.approx(value(v), rel=1e-12)
    assert np.linalg.norm(gradient(v)) <= 1.01 * model.tol * np.linalg.norm(gradient(np.zeros(31)))


@pytest.mark.parametrize("model", [NesterovClassifier(step_size=0.01), AdaDeltaClassifier(epsilon=1e-6),
                                   AdamClassifier(step_size=0.01)], ids=IDS[1:])
@pytest.mark.parametrize("loss", LOSSES)
def test_batches_come_near_the_minimum(model, loss):
    best = fit(CGDescentClassifier(), X_bc, y_bc, loss=loss, l2=1e-2).objective_[0]
    zero = risk(X_bc, sign_bc, loss, 1e-2, 0.5)[0](np.zeros(31))
    found = fit(model, X_bc, y_bc, loss=loss, l2=1e-2, batch_size=32, max_passes=60, random_state=5)
    assert best - 1e-9 <= found.objective_[0] < best + 0.03 * (zero - best)


def test_cg_descent_takes_at_most_twice_the_reads_of_l_bfgs():
    for loss in LOSSES:
        for l2 in (1e-2, 1e-4):
            model = fit(CGDescentClassifier(loss=loss, l2=l2, tol=1e-6), X_bc, y_bc)
            value, gradient = risk(X_bc, sign_bc, loss, l2, 0.5)
            evaluations, enough = [], 1e-6 * np.linalg.norm(gradient(np.zeros(31)))

            def both(v, value=value, gradient=gradient, evaluations=evaluations):
                evaluations.append(np.linalg.norm(gradient(v)))
                return value(v), gradient(v)

            minimize(both, np.zeros(31), jac=True, method="L-BFGS-B",
                     options={"gtol": 1e-14, "ftol": 0.0, "maxiter": 3000, "maxfun": 5000})
            reads = 1 + next(k for k, norm in enumerate(evaluations) if norm <= enough)
            assert model.gradient_norm_[0] <= 1e-6 and model.n_passes_ <= 2 * reads, (loss, l2)


@pytest.mark.parametrize("l2, every, evaluations", [(1e-3, 1, 73), (1e-5, 10, 162)])
def test_cg_descent_on_forest_cover(shared_data, l2, every, evaluations):
    # evaluations: what L-BFGS-B took to 1e-6 on these rows; 87 and 226 reads were measured here
    X, y = shared_data("covtype", np.float64)
    model = CGDescentClassifier(l2=l2, tol=1e-6).fit(scale(X[::every]), y[::every] == 1)
    assert model.gradient_norm_[0] <= 1e-6 and model.n_passes_ <= 2 * evaluations


# ---------------------------------------------------------------- formats, threads, weights

# ---------------------------------------------------------------- stopping, going on, refusing

@pytest.mark.parametrize("model", ALL, ids=IDS)
def test_history_trace_and_warm_start(model):
    found = fit(model, X_bc, y_bc, max_passes=7, trace=True)
    assert len(found.history_["pass"]) == found.n_iter_ == 7 and "margin_mean" in found.history_
    assert found.objective_[0] == min(found.history_["objective"])
    assert "margin_mean" not in fit(model, X_bc, y_bc, max_passes=2).history_
    assert fit(model, X_bc, y_bc, fit_intercept=False, max_passes=3).intercept_[0] == 0
    on = clone(model).set_params(warm_start=True, max_passes=5)
    before = quietly(on, X_bc, y_bc).objective_[0]
    assert quietly(on, X_bc, y_bc).objective_[0] <= before


def test_warnings_say_how_far_the_fit_got():
    for model in (CGDescentClassifier(max_passes=3), NesterovClassifier(max_passes=3)):
        with pytest.warns(ConvergenceWarning, match=r"after 3 passes the gradient norm is .* where tol=1e-06"):
            model.fit(X_bc, y_bc)
    with pytest.warns(ConvergenceWarning, match="the weights overflowed"):
        NesterovClassifier(loss="squared", step_size=1e6).fit(X_bc, y_bc)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        AdamClassifier(max_passes=2).fit(X_bc, y_bc)
        CGDescentClassifier().fit(X_bc, y_bc)
    # separable, unpenalised, unbounded below: it must come back all the same
    model = fit(CGDescentClassifier(loss="calibrated_hinge", l2=0.0), *blobs(k=2, spread=0.01), max_passes=50)
    assert np.isfinite(model.coef_).all() and model.objective_[0] < -1.5


@pytest.mark.parametrize("l1", [0.0, 0.3])
def test_penalties_are_those_of_the_twin(l1):
    V = np.random.default_rng(0).standard_normal((4, 8))
    none = risk(np.zeros((1, 7)), np.ones(1), "logistic", 0.0)[0]
    for W in (V[:, :-1], V[:1, :-1], V[:0, :-1]):
        found = _gradient_rules.penalties(W, 0.7, l1, 1e-3)
        value = risk(np.zeros((1, 7)), np.ones(1), "logistic", 0.7, l1=l1)[0]
        expected = [value(np.append(w, 0.0)) - none(np.append(w, 0.0)) for w in W]
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_lower_points_are_taken(dtype):
    V, best_W, best_b = np.random.default_rng(1).standard_normal((5, 4)), np.zeros((5, 3), dtype), np.zeros(5)
    W, bias, value = V[:, :-1].astype(dtype), V[:, -1], np.array([1.0, np.nan, 3.0, 2.0, -np.inf])
    best, taken = np.array([2.0, 5, 3, np.inf, 0]), np.array([True, False, False, True, True])
    _gradient_rules.take_lower(W, bias, value, best_W, best_b, best)
    assert np.array_equal(best_W, np.where(taken[:, None], W, 0)) and np.array_equal(best_b, np.where(taken, bias, 0))
    assert best.tolist() == [1.0, 5.0, 3.0, 2.0, -np.inf]


def test_rules_refuse_arrays_that_do_not_fit():
    V, still = np.zeros((3, 5)), np.zeros(3, np.uint8)
    for G, flags in ((V[:2], still), (V[:, :4].copy(), still), (V, still[:2])):
        with pytest.raises(ValueError, match="a gradient rule"):
            _gradient_rules.adam(V, G, V.copy(), V.copy(), 0.9, 0.99, 1e-8, 1, 0.1, flags)
        with pytest.raises(ValueError, match="a gradient rule"):
            _gradient_rules.adadelta(V, G, V.copy(), V.copy(), 0.9, 1e-8, 1.0, flags)
        with pytest.raises(ValueError, match="a gradient rule"):
            _gradient_rules.nesterov(V, G, V.copy(), np.ones(3), 0.5, 0.1, flags)
        with pytest.raises(ValueError, match="a gradient rule"):
            _gradient_rules.descent(V, G, 0.1, flags)
    with pytest.raises(ValueError, match="norms"):
        _gradient_rules.norms(V, np.zeros(2))
    with pytest.raises(ValueError, match="take_lower"):
        _gradient_rules.take_lower(V, V[0], V[0], V[:, 1:].copy(), V[0].copy(), V[0].copy())
    with pytest.raises(ValueError, match="mean_gradient"):
        _gradient_rules.mean_gradient(np.zeros((3, 3)), np.zeros(3), 1.0, V, 0.0, 0.0, 1.0, True, V.copy())
