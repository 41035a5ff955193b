"""Regression by sweeps of the dual: two hinges a row; kernels against the twin, fits against other solvers."""

import pickle
import warnings

import numpy as np
import pytest
from api import DualSweeps, shuffle
from conftest import FORMATS, as_format
from naive_regression import dual_value, kinks_of, objective
from plans import begins_with_dual
from rows_in_files import files_of
from scipy import sparse
from scipy.optimize import linprog, minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVR
from test_dual_newton import run, swept_by_the_twin, text

from cmargin import Checkpoint, SmSVMRegressor
from cmargin.data import open_rows
from cmargin.data.loss import Loss
from cmargin.solvers.dual.dual_newton import DualNewton
from cmargin.solvers.penalty import ElasticNet
from cmargin.solvers.per_class import class_streams
from cmargin.solvers.problem import Problem, Settings
from cmargin.solvers.result import Result

LOSSES = [("epsilon_insensitive", 0.3), ("epsilon_insensitive", 0.0), ("quantile", 0.5), ("quantile", 0.1)]


def model(loss, parameter, **more):
    name = "epsilon" if loss == "epsilon_insensitive" else "quantile"
    return SmSVMRegressor(**{"loss": loss, name: parameter, "linear_solver": "dual", **more})


def fit(X, t, loss, parameter, s=None, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        return model(loss, parameter, max_passes=10**5, **more).fit(X, t, s)


def made_up(n=300, m=500, seed=3):
    X, _ = text(n, m, seed)
    rng = np.random.default_rng(seed)
    return X, X @ rng.standard_normal(m) + 0.3 * rng.standard_t(3, n) + 2


def pairs_of(X, t, s, loss, parameter, l2, free=True):
    """Rows of the dual, and what it is of: every row twice, of y = 1 and of y = -1, in their boxes."""
    up, down, e = kinks_of(loss, parameter)
    shared = open_rows(X).dual_rows(True, free, s, l2, Loss(loss, (parameter,)))
    rows = shared.row_pass(s, t)
    Z = np.asarray(X.todense() if sparse.issparse(X) else X, float)
    Z = np.column_stack([Z - (0.0 if shared.mean is None else shared.mean), np.full(len(t), rows.bias)])
    y, cost = np.where(rows.signed_weight >= 0, 1.0, -1.0), s / (l2 * s.sum())
    upper = np.concatenate([up * cost, down * cost])
    np.testing.assert_allclose(shared.upper, upper, rtol=1e-14)
    return rows, np.vstack([Z, Z]), y, (upper, np.zeros(2 * len(t))), np.concatenate([t - e, -t - e])


@pytest.mark.parametrize("loss, parameter", LOSSES)
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sweeps_equal_the_twin(loss, parameter, name, dtype, tmp_path):
    X, t = made_up()
    X = as_format(X.toarray().astype(dtype), name, tmp_path)
    rng = np.random.default_rng(8)
    s = rng.integers(0, 3, len(t)).astype(float)
    rows, Z, y, box, target = pairs_of(X, t, s, loss, parameter, 1 / s.sum())
    a = np.clip(rng.standard_normal(len(y)) + 0.5, 0, box[0])
    w = Z.T @ (a * y)
    stream, active = class_streams(5, 1)[0], np.arange(len(y))
    shuffled, nap, wake = stream.copy(), np.zeros(len(y), int), np.zeros(len(y), int)
    mine_a, mine_w, low, high, reads, moves, rest = a.copy(), w.copy(), -np.inf, np.inf, 0, [], [0, 0]
    sweeps = DualSweeps(rows, mine_a, mine_w, stream, np.inf)
    for number in range(4 if kinks_of(loss, parameter)[2] > 0 else 1):     # e = 0: rounding says who rests
        order = active[wake[active] <= number]
        shuffle(order, shuffled)
        left, rested, moves, a, w, expected = swept_by_the_twin(Z, y, order, low, high, box, moves, rest, a, w, target)
        nap[np.setdiff1d(order, left + rested)] = 0
        nap[rested] = np.minimum(2 * nap[rested] + 1, 7)
        wake[rested] = number + 1 + nap[rested]
        active = np.setdiff1d(active, left)
        assert run(sweeps, 1)[1] == 1
        low, high, *_ = expected
        reads += sweeps.rows_read
        np.testing.assert_array_equal(sweeps.active, active)
        np.testing.assert_allclose((*sweeps.bounds, sweeps.gap), expected[:3], rtol=1e-7)
        np.testing.assert_allclose(mine_a, a, atol=1e-9)
        np.testing.assert_allclose(mine_w, w, atol=1e-9)
        assert rows.reads == pytest.approx(reads / 300)                  # of the rows as they are stored
    listed = np.sort(rng.permutation(600)[:90])
    np.testing.assert_allclose(rows.products(listed, w), y[listed] * (Z[listed] @ w), atol=1e-11)


# ---------------------------------------------------------------- the optimum

def random_problem(rng, n_most, m_most):
    n, m = int(rng.integers(1, n_most)), int(rng.integers(1, m_most))
    X = rng.standard_normal((n, m)) * (rng.random((n, m)) < rng.choice([0.05, 0.3, 1.0]))
    X[rng.integers(n)] *= rng.integers(2)
    t = X @ rng.standard_normal(m) * rng.integers(0, 2) + rng.standard_t(2, n) * 10.0 ** rng.integers(-1, 2) + 3
    s = rng.integers(0, 4, n).astype(float) if rng.random() < 0.5 else np.ones(n)
    s[0] += not s.any()
    loss, parameter = LOSSES[rng.integers(len(LOSSES))]
    if loss == "epsilon_insensitive" and parameter > 0:
        parameter = float(10.0 ** rng.uniform(-3, 1))
    intercept = ({"fit_intercept": False}, {"penalize_intercept": True}, {})[rng.integers(3)]
    return X, t, s, loss, parameter, intercept


@pytest.mark.parametrize("seed", range(120))
def test_newton_finds_nothing_better(seed):
    rng = np.random.default_rng([61, seed])
    X, t, s, loss, parameter, intercept = random_problem(rng, 80, 40)
    l2 = float(10.0 ** rng.uniform(-2, 3))
    other = model(loss, parameter, l2=l2, tol=1e-6, linear_solver="cholesky", **intercept).fit(X, t, s)
    rows = (sparse.csr_matrix(X) if seed % 2 else X).astype((np.float64, np.float32)[seed % 4 // 2])
    found = fit(rows, t, loss, parameter, s, l2=l2, tol=1e-5, **intercept)
    b, kinks = found.intercept_, kinks_of(loss, parameter)
    value = objective(np.asarray(rows.todense() if seed % 2 else rows, float), t, found.coef_, b, kinks, l2, 0, s) \
        + l2 / 2 * b**2 * intercept.get("penalize_intercept", 0)
    assert found.objective_[0] == pytest.approx(value, rel=1e-9, abs=1e-12 * np.abs(t).max())
    assert found.duality_gap_[0] <= 1e-5
    accuracy = 1e-5 if rows.dtype == np.float64 else 1e-4
    assert value <= other.objective_[0] * (1 + accuracy) + 1e-12 * np.abs(t).max()
    assert other.objective_[0] <= value * (1 + accuracy) + 1e-12 * np.abs(t).max()


@pytest.mark.parametrize("seed", range(40))
def test_quadratic_and_linear_programs_are_certified(seed):
    # SLSQP; and HiGHS, whose optimum without l2 is at most l2/2 |w*|^2 below
    rng = np.random.default_rng([62, seed])
    X, t, s, loss, parameter, intercept = random_problem(rng, 20, 5)
    t, kinks, l2 = t / np.abs(t).max(), kinks_of(loss, parameter), float(10.0 ** rng.uniform(-2, 0))
    (n, m), (up, down, e), free = X.shape, kinks, float(not intercept)
    A = np.column_stack([X, np.full(n, free)])
    rows = np.block([[-A, -np.eye(n), np.zeros((n, n))], [A, np.zeros((n, n)), -np.eye(n)]])
    costs = np.concatenate([np.zeros(m + 1), up * s / s.sum(), down * s / s.sum()])
    bounds, most = [(None, None)] * (m + 1) + [(0, None)] * (2 * n), np.concatenate([e - t, e + t])
    penalised = np.r_[np.ones(m), np.zeros(2 * n + 1)]
    if "penalize_intercept" in intercept:
        return
    best = minimize(lambda v: (costs @ v + l2 / 2 * v[:m] @ v[:m], costs + l2 * penalised * v),
                    np.r_[np.zeros(m + 1), np.maximum(t - e, 0), np.maximum(-t - e, 0)], jac=True, method="SLSQP",
                    bounds=bounds, options={"ftol": 1e-13, "maxiter": 1000},
                    constraints={"type": "ineq", "fun": lambda v: most - rows @ v, "jac": lambda v: -rows})
    found = fit(X, t, loss, parameter, s, l2=l2, tol=1e-6, **intercept)
    value = found.objective_[0]
    if best.success:
        assert value <= best.fun + 1e-6 * value + 1e-7 and best.fun <= value + 1e-6
    linear = linprog(costs, rows, most, bounds=bounds, method="highs")
    w = linear.x[:m]
    assert linear.fun - 1e-9 <= value * (1 + 1e-6)
    assert value * (1 - found.duality_gap_[0]) <= linear.fun + l2 / 2 * w @ w + 1e-9        # a lower bound of any point


@pytest.mark.parametrize("loss, parameter", LOSSES)
@pytest.mark.parametrize("free", [True, False])
def test_the_bound_is_that_of_the_dual_variables(loss, parameter, free):
    X, t = made_up()
    s, l2 = np.random.default_rng(2).integers(0, 3, 300).astype(float), 1e-2
    rows, *_ = pairs_of(X, t, s, loss, parameter, l2, free)
    problem = Problem(ElasticNet(l2), X.shape[1] if free else None, Loss(loss, (parameter,)))
    driver = DualNewton(rows, problem, Settings(tol=1e-9, max_passes=1e4), Result(np.zeros(X.shape[1] + 1)))
    driver.run()
    a, kinks = driver.dual_variables(), kinks_of(loss, parameter)
    assert np.all(a <= kinks[0] + 1e-12) and np.all(a >= -kinks[1] - 1e-12)
    Z = X.toarray() if free else np.column_stack([X.toarray(), np.ones(300)])
    assert abs(s @ a) < 1e-9 or not free
    assert dual_value(Z, t, s, a, kinks, l2, 0) == pytest.approx(driver.result.dual, rel=1e-8)
    assert driver.result.status == "converged"


def test_the_optimum_is_that_of_linear_svr():
    X, t = made_up()
    theirs = LinearSVR(epsilon=0.1, C=1.0, tol=1e-9, max_iter=10**6, random_state=0).fit(X, t)
    ours = fit(X, t, "epsilon_insensitive", 0.1, C=1.0, penalize_intercept=True, tol=1e-9)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)
    assert ours.intercept_ == pytest.approx(float(theirs.intercept_[0]), abs=1e-3)


# ---------------------------------------------------------------- the fit

def begins(X, l2, **more):
    return begins_with_dual(X, l2, loss="quantile", **more)


def test_chosen_for_sparse_rows_of_many_columns():
    X, t = made_up(900, 5000)
    assert begins(X, 1e-4) and begins(X.toarray(), 1e-4, linear_solver="dual")
    for rows, l2, more in ((X.toarray(), 1e-4, {}), (X[:, :15], 1e-4, {}), (X, 1e-3, {"l1": 1e-3}), (X, 0.0, {}),
                           (X, 1e-4, {"linear_solver": "cholesky"})):
        assert not begins(rows, l2, **more)
    found, other = (fit(X, t, "quantile", 0.3, linear_solver=way) for way in ("auto", "dual"))
    np.testing.assert_array_equal(found.coef_, other.coef_)


@pytest.mark.parametrize("loss, parameter", LOSSES)
def test_threads_and_targets_beside_change_no_bit_and_a_scale_not_the_way(loss, parameter):
    X, t = made_up()
    T = np.column_stack([t, t**2, np.sign(t)])
    one, three = (fit(X, T, loss, parameter, l2=1e-3, n_jobs=jobs) for jobs in (1, 3))
    assert one.coef_.tobytes() == three.coef_.tobytes() and one.intercept_.tobytes() == three.intercept_.tobytes()
    alone = fit(X, t, loss, parameter, l2=1e-3)
    k = 2.0**20
    scaled = fit(X, k * t, loss, parameter * k if loss == "epsilon_insensitive" else parameter, l2=1e-3 / k)
    np.testing.assert_array_equal(scaled.coef_, k * alone.coef_)
    assert np.array_equal(alone.coef_, one.coef_[0]) and scaled.n_passes_ == alone.n_passes_


def test_a_warm_start_a_checkpoint_and_sweeps_that_are_left(tmp_path):
    X, t = made_up(600)
    found = model("quantile", [0.2, 0.7], warm_start=True).fit(X, t)
    coef, first = found.coef_, found.n_passes_
    assert found.fit(X, t).n_passes_ < first and (found.duality_gap_ <= 1e-4).all()
    calls, checkpoint = [], Checkpoint(tmp_path / "state", passes=1e-3, seconds=0.0)

    def stop(model):
        calls.append(model.objective_[0])
        if len(calls) == 2:
            raise KeyboardInterrupt
        return False

    given = {"checkpoint": checkpoint, "tol": 1e-7}
    whole = model("quantile", [0.2, 0.7], tol=1e-7).fit(X, t)
    with pytest.raises(KeyboardInterrupt):
        model("quantile", [0.2, 0.7], callback=stop, **given).fit(X, t)
    assert (tmp_path / "state").exists()
    np.testing.assert_array_equal(model("quantile", [0.2, 0.7], **given).fit(X, t).coef_, whole.coef_)
    np.testing.assert_allclose(whole.coef_, coef, atol=0.1)
    again = pickle.loads(pickle.dumps(whole))
    np.testing.assert_array_equal(again.predict(X), whole.predict(X))
    with pytest.warns(ConvergenceWarning, match="max_passes=6"):
        left = model("quantile", 0.2, max_passes=6).fit(X, t)
    assert left.n_passes_ <= 7 and 1e-4 < left.duality_gap_[0] <= 1


def test_newton_goes_on_where_sweeps_are_slow(monkeypatch):
    X, t = made_up(900, 5000)
    monkeypatch.setattr("cmargin.solvers.plan.prices.reads_of_newton", lambda *_: 41.0)
    for tol in (1e-4, 1e-6):
        found = fit(X, t, "quantile", 0.3, l2=1e-6, tol=tol, linear_solver="auto")
        sure = fit(X, t, "quantile", 0.3, l2=1e-6, tol=tol)
        assert found.duality_gap_[0] <= tol and found.objective_[0] == pytest.approx(sure.objective_[0], rel=2 * tol)
    assert found.n_passes_ != sure.n_passes_


@pytest.mark.parametrize("t", [np.full(30, 7.0), np.linspace(6.9, 7.1, 30)])
def test_targets_that_a_constant_meets_cost_nothing(t):
    X = sparse.csr_matrix(np.random.default_rng(0).standard_normal((30, 4)))
    found = fit(X, t, "epsilon_insensitive", 0.2)
    assert found.objective_[0] == 0 == found.duality_gap_[0] and not found.coef_.any()
    assert found.intercept_ == pytest.approx(7)


def test_what_the_sweeps_do_not_know_is_refused(tmp_path):
    X, t = made_up()
    for given, said in (({"loss": "huber"}, "needs loss='epsilon_insensitive' or 'quantile'"),
                        ({"l1": 1e-3}, "needs l1=0, l2>0"), ({"l2": 0.0}, "needs l1=0, l2>0"),
                        ({"lower": 0.0}, "linear_solver='auto' or 'cholesky'")):
        with pytest.raises(ValueError, match=said):
            model(**{"loss": "quantile", "parameter": 0.5, **given}).fit(X, t)
    with pytest.raises(ValueError, match="linear_solver='dual'"):
        model("quantile", 0.5).fit(files_of(X.toarray(), "shards", tmp_path), t)
