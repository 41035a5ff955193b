"""SmSVMRegressor against independent solvers: HiGHS for linear programs, SLSQP for small quadratic ones."""


import pickle
import warnings

import numpy as np
import pytest
from conftest import FORMATS, as_format
from naive_regression import dual_value, kinks_of, objective
from rows_in_files import files_of
from scipy.optimize import linprog, minimize
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import QuantileRegressor
from sklearn.metrics import r2_score
from sklearn.svm import LinearSVR

from cmargin import Checkpoint, SmSVMRegressor, load

LOSSES = [("epsilon_insensitive", 0.3), ("epsilon_insensitive", 0.0), ("quantile", 0.5), ("quantile", 0.1)]


def model(loss, parameter, **more):
    return SmSVMRegressor(loss, **{"epsilon" if loss == "epsilon_insensitive" else "quantile": parameter}, **more)


def random_problem(rng):
    n, m = int(rng.integers(1, 25)), int(rng.integers(1, 6))
    X = rng.standard_normal((n, m)) * 10.0 ** rng.integers(-1, 2, m)
    t = X @ rng.standard_normal(m) * rng.integers(0, 2) + rng.standard_t(2, n) * 10.0 ** rng.integers(-1, 2) + 3
    s = rng.integers(1, 4, n).astype(float) if rng.random() < 0.5 else np.ones(n)
    loss, parameter = LOSSES[rng.integers(len(LOSSES))]
    if loss == "epsilon_insensitive" and parameter > 0:
        parameter = float(10.0 ** rng.uniform(-3, 1))
    return X, t, s, loss, parameter


def as_program(X, t, s, kinks, l1, fit_intercept):
    """Linear program of w+, w-, b and the losses above and below: costs, inequalities, bounds."""
    (n, m), (up, down, e) = X.shape, kinks
    costs = np.concatenate([np.full(2 * m, l1), [0.0], up * s / s.sum(), down * s / s.sum()])
    b = np.full((n, 1), float(fit_intercept))
    above = np.hstack([-X, X, -b, -np.eye(n), np.zeros((n, n))])           # t - w x - b - e <= above
    below = np.hstack([X, -X, b, np.zeros((n, n)), -np.eye(n)])
    bounds = [(0, None)] * (2 * m) + [(None, None)] + [(0, None)] * (2 * n)
    return costs, np.vstack([above, below]), np.concatenate([e - t, e + t]), bounds


def check(found, X, t, s, kinks, l2, l1, best):
    """The objective is that of the weights; the gap that is told covers the distance to the ``best``, found apart."""
    value = objective(X, t, found.coef_, found.intercept_, kinks, l2, l1, s)
    assert found.objective_[0] == pytest.approx(value, rel=1e-9, abs=1e-12 * np.abs(t).max())
    slack = 1e-8 * np.abs(t).max() + 1e-7 * best
    assert value >= best - slack
    assert value - best <= found.duality_gap_[0] * max(value, 0) + slack
    assert found.duality_gap_[0] <= found.tol or value <= 1e-12 * np.abs(t).max()


@pytest.mark.parametrize("seed", range(150))
def test_linear_programs_are_certified(seed):
    rng = np.random.default_rng([59, seed])
    X, t, s, loss, parameter = random_problem(rng)
    l1, fit_intercept, kinks = float(10.0 ** rng.uniform(-3, 0)), bool(rng.integers(2)), kinks_of(loss, parameter)
    costs, A, b, bounds = as_program(X, t, s, kinks, l1, fit_intercept)
    best = linprog(costs, A, b, bounds=bounds, method="highs").fun
    found = model(loss, parameter, l2=0.0, l1=l1, fit_intercept=fit_intercept, tol=1e-6).fit(X, t, s)
    check(found, X, t, s, kinks, 0.0, l1, best)


@pytest.mark.parametrize("seed", range(60))
def test_quadratic_programs_are_certified(seed):
    rng = np.random.default_rng([60, seed])
    X, t, s, loss, parameter = random_problem(rng)
    X, unit = X / np.abs(X).max(), np.abs(t).max()
    t, kinks = t / unit, kinks_of(loss, parameter)
    l2, l1 = float(10.0 ** rng.uniform(-3, 0)), float(10.0 ** rng.uniform(-3, 0)) * rng.integers(2)
    costs, A, b, bounds = as_program(X, t, s, kinks, l1, True)
    m = X.shape[1]

    def value(v):
        w = v[:m] - v[m:2 * m]
        return costs @ v + l2 / 2 * w @ w, costs + l2 * np.concatenate([w, -w, np.zeros(len(v) - 2 * m)])

    start = np.concatenate([np.zeros(2 * m + 1), np.maximum(t - kinks[2], 0), np.maximum(-t - kinks[2], 0)])
    best = minimize(value, start, jac=True, method="SLSQP", bounds=bounds, options={"ftol": 1e-13, "maxiter": 1000},
                    constraints={"type": "ineq", "fun": lambda v: b - A @ v, "jac": lambda v: -A})
    found = model(loss, parameter, l2=l2, l1=l1, tol=1e-6).fit(X, t, s)
    if best.success:
        check(found, X, t, s, kinks, l2, l1, min(best.fun, found.objective_[0]))
    assert found.duality_gap_[0] <= 1e-6


def test_a_dual_value_of_the_twin_proves_what_is_told():
    rng = np.random.default_rng(4)
    X, t = rng.standard_normal((60, 4)), rng.standard_t(3, 60)
    for loss, parameter in LOSSES:
        kinks, l2 = kinks_of(loss, parameter), 0.05
        found = model(loss, parameter, l2=l2, fit_intercept=False, tol=1e-9).fit(X, t)
        # rows beyond the kinks are at a bound, those within cost nothing, the others lie on a kink
        u = t - X @ found.coef_
        near = np.abs(np.abs(u) - kinks[2]) < 1e-6
        a = np.where(u > kinks[2], kinks[0], np.where(u < -kinks[2], -kinks[1], 0.0))
        if near.any():                           # these make w = v / l2
            rest = l2 * len(t) * found.coef_ - X[~near].T @ a[~near]
            a[near] = np.linalg.lstsq(X[near].T, rest, rcond=None)[0]
        assert np.all((a <= kinks[0] + 1e-6) & (a >= -kinks[1] - 1e-6))
        assert dual_value(X, t, np.ones(60), a, kinks, l2, 0.0) == pytest.approx(found.objective_[0], rel=1e-6)


# ---------------------------------------------------------------- the same as others, and as itself

def made_up(n=400, m=7, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, m))
    return X, X @ rng.standard_normal(m) + rng.standard_t(3, n) + 5


def test_the_optimum_is_that_of_linear_svr():
    X, t = made_up()
    theirs = LinearSVR(epsilon=0.5, C=0.1, tol=1e-10, max_iter=10**6, random_state=0).fit(X, t)
    ours = SmSVMRegressor(epsilon=0.5, C=0.1, penalize_intercept=True, tol=1e-9).fit(X, t)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    assert ours.intercept_ == pytest.approx(float(theirs.intercept_[0]), abs=1e-4)
    assert isinstance(ours.intercept_, float) and ours.coef_.shape == (7,)


def test_the_optimum_is_that_of_quantile_regressor():
    X, t = made_up()
    for q in (0.1, 0.5, 0.8):
        theirs = QuantileRegressor(quantile=q, alpha=0.01, solver="highs").fit(X, t)
        ours = SmSVMRegressor("quantile", quantile=q, l2=0.0, l1=0.01, tol=1e-7).fit(X, t)
        their_value, our_value = (objective(X, t, found.coef_, found.intercept_, (q, 1 - q, 0), 0, 0.01)
                                  for found in (theirs, ours))
        assert our_value == pytest.approx(their_value, rel=1e-6)
        assert np.mean(t <= ours.predict(X)) == pytest.approx(q, abs=0.03)


@pytest.mark.parametrize("loss, parameter", LOSSES)
def test_formats_places_and_threads_give_the_same_optimum(loss, parameter, tmp_path):
    X, t = made_up(900)
    plain = model(loss, parameter, n_jobs=1, tol=1e-6).fit(X, t)
    for name in FORMATS:
        fits = [model(loss, parameter, n_jobs=jobs, tol=1e-6).fit(as_format(X, name, tmp_path), t) for jobs in (1, 3)]
        assert np.array_equal(fits[0].coef_, fits[1].coef_) and fits[0].intercept_ == fits[1].intercept_
        np.testing.assert_allclose(fits[0].coef_, plain.coef_, atol=1e-7)
    files = model(loss, parameter, tol=1e-6).fit(files_of(X, "shards", tmp_path), t)
    assert files.objective_[0] == pytest.approx(plain.objective_[0], rel=1e-6) and files.duality_gap_[0] <= 1e-6
    single = model(loss, parameter, tol=1e-6).fit(X.astype(np.float32), t.astype(np.float32))
    np.testing.assert_allclose(single.coef_, plain.coef_, atol=1e-3)


@pytest.mark.parametrize("loss, parameter", LOSSES)
@pytest.mark.parametrize("power", [-400, -20, 20, 400])
def test_no_scale_of_the_targets_changes_the_way(loss, parameter, power):
    X, t = made_up()
    plain = model(loss, parameter, l2=1e-3).fit(X, t)
    k = 2.0**power
    other = model(loss, parameter * k if loss == "epsilon_insensitive" else parameter, l2=1e-3 / k).fit(X, t * k)
    assert np.array_equal(other.coef_, plain.coef_ * k) and other.intercept_ == plain.intercept_ * k
    assert other.n_passes_ == plain.n_passes_ and other.objective_[0] == plain.objective_[0] * k
    assert np.array_equal(other.history_["objective"], plain.history_["objective"] * k)
    assert np.array_equal(other.history_["smoothing"], plain.history_["smoothing"] * k)


def test_a_constant_beside_the_targets_is_the_intercepts():
    X, t = made_up()
    for loss, parameter in LOSSES:
        plain, far = (model(loss, parameter, tol=1e-6).fit(X, t + shift) for shift in (0, 1e6))
        assert far.intercept_ - plain.intercept_ == pytest.approx(1e6, abs=1e-3)
        assert far.n_passes_ <= plain.n_passes_ + 3


@pytest.mark.parametrize("t", [np.zeros(40), np.full(40, 7.3), np.full(40, 1e300), 3 + 0.1 * np.cos(np.arange(40.0))])
def test_targets_that_a_constant_meets_cost_nothing_and_the_gap_is_0(t):
    X = np.random.default_rng(0).standard_normal((40, 3))
    for parameters in ({}, {"l2": 0.0, "l1": 0.1}, {"l2": 0.0}):
        found = SmSVMRegressor(epsilon=0.1, **parameters).fit(X, t)
        assert found.objective_[0] == found.duality_gap_[0] == 0 and not found.coef_.any() and found.n_passes_ <= 2
    if np.ptp(t) == 0:
        assert SmSVMRegressor("quantile", quantile=0.9).fit(X, t).intercept_ == t[0]


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (6, 1), (2, 40), (30, 200)])
@pytest.mark.parametrize("parameters", [{}, {"l1": 1e-2}, {"l2": 0.0, "l1": 1e-2}, {"fit_intercept": False},
                                        {"penalize_intercept": True}])
def test_every_shape_is_certified(shape, parameters):
    rng = np.random.default_rng(shape)
    X, t = rng.standard_normal(shape), rng.standard_normal(shape[0]) + 3
    for loss, parameter in LOSSES:
        found = model(loss, parameter, **parameters).fit(X, t)
        assert found.duality_gap_[0] <= 1e-4
        kinks, l2, l1 = kinks_of(loss, parameter), parameters.get("l2", 1e-4), parameters.get("l1", 0)
        value = objective(X, t, found.coef_, found.intercept_, kinks, l2, l1)
        value += l2 / 2 * found.intercept_**2 * ("penalize_intercept" in parameters)
        assert found.objective_[0] == pytest.approx(value, rel=1e-9, abs=1e-12)


def test_several_targets_and_several_quantiles_are_fits_of_each():
    X, t = made_up()
    T = np.column_stack([t, -1e3 * t**2, np.full(len(t), 2.0)])
    together = SmSVMRegressor().fit(X, T)
    assert together.coef_.shape == (3, 7) and together.intercept_.shape == together.duality_gap_.shape == (3,)
    for k in range(3):
        alone = SmSVMRegressor().fit(X, T[:, k])
        assert np.array_equal(together.coef_[k], alone.coef_) and together.intercept_[k] == alone.intercept_
        np.testing.assert_allclose(together.predict(X)[:, k], alone.predict(X), rtol=1e-12)
    assert set(together.history_["target"]) == {0, 1, 2}
    assert together.score(X, T) == pytest.approx(r2_score(T, together.predict(X)))
    levels = [0.1, 0.5, 0.9]
    together = SmSVMRegressor("quantile", quantile=levels).fit(X, t)
    assert together.predict(X).shape == (len(t), 3)
    for k, q in enumerate(levels):
        assert np.array_equal(together.coef_[k], SmSVMRegressor("quantile", quantile=q).fit(X, t).coef_)
    assert SmSVMRegressor("quantile", quantile=[0.3]).fit(X, t).coef_.shape == (1, 7)
    with pytest.raises(ValueError, match="mean_pinball_loss"):
        together.score(X, t)
    with pytest.raises(ValueError, match="one target; y has 2"):
        together.fit(X, T[:, :2])


def test_weights_are_rows_repeated():
    X, t = made_up()
    s = np.random.default_rng(0).integers(0, 4, len(t))
    for loss, parameter in LOSSES:
        weighted = model(loss, parameter, tol=1e-7).fit(X, t, sample_weight=s)
        repeated = model(loss, parameter, tol=1e-7).fit(np.repeat(X, s, axis=0), np.repeat(t, s))
        np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-8)
        assert weighted.objective_[0] == pytest.approx(repeated.objective_[0], rel=1e-9)


# ---------------------------------------------------------------- what a fit leaves, and goes on from

def test_models_are_kept_sent_and_made_sparse(tmp_path):
    X, t = made_up()
    for targets in (t, np.column_stack([t, -t])):
        found = SmSVMRegressor(l1=0.3).fit(X, targets)
        found.save(tmp_path / "model")
        for other in (load(tmp_path / "model"), pickle.loads(pickle.dumps(found)), found.to_sklearn(),
                      clone(found).fit(X, targets).sparsify(), clone(found).fit(X, targets).sparsify().densify()):
            np.testing.assert_allclose(other.predict(X), found.predict(X), rtol=1e-12)
        assert np.array_equal(found.sparsify().fit(X, targets).coef_, load(tmp_path / "model").coef_)


def test_a_warm_start_and_a_checkpoint_go_on(tmp_path):
    X, t = made_up(3000)
    T = np.column_stack([t, t**2])
    found = SmSVMRegressor(warm_start=True).fit(X, T)
    first = found.n_passes_
    assert found.fit(X, T).n_passes_ < first and (found.duality_gap_ <= 1e-4).all()
    with pytest.raises(ValueError, match=r"needs coef_ and intercept_ of 1 row"):
        found.fit(X, t)
    with pytest.raises(ValueError, match="2 features, but the fit"):
        found.fit(X[:, :2], T)
    whole, calls = SmSVMRegressor("quantile", quantile=[0.2, 0.7]).fit(X, t), []

    def stop(model):
        calls.append(model.objective_[0])
        if len(calls) == 5:
            raise KeyboardInterrupt
        return False

    checkpoint = Checkpoint(tmp_path / "state", passes=1e-3, seconds=0.0)
    with pytest.raises(KeyboardInterrupt):
        clone(whole).set_params(checkpoint=checkpoint, callback=stop).fit(X, t)
    assert (tmp_path / "state").exists()
    again = clone(whole).set_params(checkpoint=checkpoint).fit(X, t)
    assert np.array_equal(again.coef_, whole.coef_) and not (tmp_path / "state").exists()


def test_it_works_with_what_scikit_learn_has_for_regressors():
    X, t = made_up()
    wrapped = TransformedTargetRegressor(SmSVMRegressor(), func=np.log1p, inverse_func=np.expm1)
    shifted = t - t.min()
    assert wrapped.fit(X, shifted).score(X, shifted) > 0.3
    found = SmSVMRegressor().fit(X, t)
    assert found.score(X, t) == pytest.approx(r2_score(t, found.predict(X)))


def test_one_warning_says_how_far_a_fit_came():
    X, t = made_up()
    with pytest.warns(ConvergenceWarning, match=r"SmSVMRegressor stopped at max_passes=2 .* \(2 of 2 targets\)"):
        found = SmSVMRegressor(max_passes=2).fit(X, np.column_stack([t, t]))
    assert (found.duality_gap_ > 1e-4).all()
    with pytest.warns(ConvergenceWarning, match="max_time"):
        found = SmSVMRegressor(max_time=1e-9).fit(X, np.column_stack([t, t]))
    expected = [objective(X, t, w, b, (1, 1, 0.1), 1e-4, 0) for w, b in zip(found.coef_, found.intercept_, strict=True)]
    np.testing.assert_allclose(found.objective_, expected, rtol=1e-12)


def test_quantiles_in_order_cost_no_more_on_any_row():
    rng = np.random.default_rng(5)
    X, t = made_up()
    levels = [0.9, 0.4, 0.5, 0.6, 0.1]                       # in any order
    plain = SmSVMRegressor("quantile", quantile=levels, l2=1e-3).fit(X, t)
    ordered = SmSVMRegressor("quantile", quantile=levels, l2=1e-3, non_crossing=True).fit(X, t)
    assert np.array_equal(plain.coef_, ordered.coef_) and np.array_equal(plain.objective_, ordered.objective_)
    far = 30 * rng.standard_normal((200, X.shape[1]))
    before, after = plain.predict(far), ordered.predict(far)
    rising = np.argsort(levels)
    assert np.any(np.diff(before[:, rising]) < 0) and np.all(np.diff(after[:, rising]) >= 0)
    assert np.array_equal(np.sort(before), np.sort(after))
    for target in (0.0, before[:, 0], 100 * rng.standard_normal(200)):
        def loss(found, target=target):
            r = np.reshape(target, (-1, 1)) - found
            return np.maximum(np.multiply(levels, r), (np.array(levels) - 1) * r).sum(axis=1)

        assert np.all(loss(after) <= loss(before) * (1 + 1e-12) + 1e-9)
    with pytest.raises(ValueError, match="to_sklearn needs non_crossing=False"):
        ordered.to_sklearn()
    one = SmSVMRegressor("quantile", quantile=0.3, non_crossing=True).fit(X, t)
    assert one.predict(X).shape == (len(t),) and np.allclose(one.to_sklearn().predict(X), one.predict(X))
    del ordered.non_crossing                                  # a model saved before
    assert np.array_equal(ordered.predict(far), before)


# ---------------------------------------------------------------- bad input

@pytest.mark.parametrize("parameters, said", [
    ({"loss": "hinge"}, "'loss' parameter"), ({"epsilon": -0.1}, "'epsilon' parameter"),
    ({"epsilon": np.nan}, "'epsilon' parameter"), ({"loss": "quantile", "quantile": 1.0}, "'quantile' parameter"),
    ({"quantile": [0.5, 0.0]}, "'quantile' parameter"), ({"quantile": []}, "'quantile' parameter"),
    ({"quantile": "0.5"}, "'quantile' parameter"), ({"non_crossing": "yes"}, "'non_crossing' parameter"),
    ({"linear_solver": "qr"}, "'linear_solver' parameter"),
    ({"l2": 1.0, "C": 1.0}, "Give l2 or C"), ({"linear_solver": "cg", "l1": 1.0}, "needs l1=0")])
def test_bad_parameters_are_refused(parameters, said):
    with pytest.raises(ValueError, match=said):
        SmSVMRegressor(**parameters).fit(*made_up())


@pytest.mark.parametrize("spoil, said", [
    (lambda t: np.where(t == t.max(), np.nan, t), "NaN"), (lambda t: np.where(t == t.max(), np.inf, t), "infinity"),
    (lambda t: t.astype(str), "must hold numbers"),
    (lambda t: np.array([str(v) for v in t], object), "must hold numbers"),
    (lambda t: t[:5], "inconsistent numbers of samples"), (lambda t: np.sign(t) * 1.7e308, "so large")])
def test_bad_targets_are_refused(spoil, said):
    X, t = made_up()
    with pytest.raises(ValueError, match=said):
        SmSVMRegressor(fit_intercept=False).fit(X, spoil(t))


def test_weights_that_are_none_are_refused():
    X, t = made_up()
    for weights, said in ((np.zeros(len(t)), "non-zero|weight 0"), (-np.ones(len(t)), "Negative values")):
        with pytest.raises(ValueError, match=said):
            SmSVMRegressor().fit(X, t, weights)


def test_rows_on_workers_are_predicted_there():
    X, t = made_up(20)
    dask = pytest.importorskip("dask.array")
    found = SmSVMRegressor().fit(X, t)
    np.testing.assert_allclose(found.predict(dask.from_array(X, chunks=(7, 7))).compute(), found.predict(X), rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e-90, 1e90, 1e150, 1e300])
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "quantile", "squared_epsilon_insensitive", "huber"])
def test_targets_at_the_ends_of_the_range_end_as_numbers_or_are_refused(loss, scale):
    # a unit of 2^1000, squared, was an OverflowError; a penalty times a small one was none any more
    X, t = made_up()
    for l2, l1 in ((1e-4, 0.0), (1e300, 0.0), (1e-300, 0.0), (1e-4, 1e-3)):
        found = SmSVMRegressor(loss, l2=l2, l1=l1)
        if scale > 1e153 and loss in ("squared_epsilon_insensitive", "huber"):
            with pytest.raises(ValueError, match="y holds values so large"):
                found.fit(X, t * scale)
        else:
            with warnings.catch_warnings(record=True) as said:           # that a penalty so small proves nothing
                warnings.simplefilter("always")
                found.fit(X, t * scale)
            assert np.isfinite(found.coef_).all() and np.isfinite(found.objective_[0])
            assert found.duality_gap_[0] <= (1 if said else 1e-4)
