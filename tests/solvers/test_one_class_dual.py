"""One class by sweeps of its dual: kernels against the twin, certificates beside a solver of quadratic programs."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from api import DualSweeps, shuffle
from conftest import FORMATS, as_format
from naive_one_class import bound, feasible, objective
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from test_dual_newton import run, swept_by_the_twin
from test_one_class import gap_is_true, quiet_fit, random_problem

from cmargin import SmSVMOneClass
from cmargin.data import open_rows
from cmargin.data.loss import HINGE
from cmargin.solvers import cost
from cmargin.solvers.penalty import ElasticNet
from cmargin.solvers.per_class import class_streams
from cmargin.solvers.plan import ProblemStats, next_stage
from cmargin.solvers.problem import Settings


@pytest.fixture
def by_dual(monkeypatch):
    monkeypatch.setattr(cost, "SMOOTH_DUAL_FROM_COLUMNS", 1)


def made_up(n=200, m=60, seed=1):
    rng = np.random.default_rng(seed)
    X = (0.6 + rng.standard_normal((n, m))) * np.exp(0.3 * rng.standard_normal((n, 1)))
    return X * (rng.random((n, m)) < 0.5), rng.integers(0, 3, n).astype(float)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sweeps_equal_the_twin(name, dtype, tmp_path):
    X, s = made_up()
    X = X.astype(dtype).astype(float)
    source = open_rows(as_format(X.astype(dtype), name, tmp_path))
    rows = source.one_class_rows(s, 0.3, 1e-9)
    mean, n, held = X.mean(axis=0), len(X), 0.3 * s.sum()
    Z = np.column_stack([X - mean, np.full(n, rows.bias)])
    target = -held * ((X - mean) @ mean)
    np.testing.assert_allclose(rows.target, target, atol=1e-9)
    a = np.clip(np.random.default_rng(2).standard_normal(n), 0, s)
    w = Z.T @ a
    w[-1] = 3.0
    stream, active = class_streams(5, 1)[0], np.arange(n)
    shuffled, nap, wake, box = stream.copy(), np.zeros(n, int), np.zeros(n, int), (s, np.zeros(n))
    mine_a, mine_w, low, high, moves, rest = a.copy(), w.copy(), -np.inf, np.inf, [], [0, 0]
    sweeps = DualSweeps(rows, mine_a, mine_w, stream, np.inf)
    for number in range(5):
        order = active[wake[active] <= number]
        shuffle(order, shuffled)
        left, rested, moves, a, w, expected = swept_by_the_twin(Z, np.ones(n), order, low, high, box, moves, rest, a, w,
                                                                target, held)
        nap[np.setdiff1d(order, left + rested)] = 0
        nap[rested] = np.minimum(2 * nap[rested] + 1, 7)
        wake[rested] = number + 1 + nap[rested]
        active = np.setdiff1d(active, left)
        assert run(sweeps, 1)[1] == 1
        low, high, *_ = expected
        np.testing.assert_allclose((*sweeps.bounds, sweeps.gap), expected[:3], rtol=1e-7)
        np.testing.assert_allclose(mine_a, a, atol=1e-8)
        np.testing.assert_allclose(mine_w, w, atol=1e-8)


def test_dual_variables_are_balanced_and_scores_are_of_the_rows():
    X, s = made_up(80, 7)
    held, rng = 0.25 * s.sum(), np.random.default_rng(3)
    rows = open_rows(sp.csr_matrix(X)).one_class_rows(s, 0.25, 1e-9)
    for scale in (0.0, 0.05, 0.3, 1.0):
        a = np.clip(scale * s * rng.integers(0, 3, len(s)) / 2, 0, s)
        b = rows.balanced(a)
        assert b.sum() == pytest.approx(held, rel=1e-13) and (b >= 0).all() and (b <= s).all()
        between = (a > 0) & (a < s)
        needed, room = held - a.sum(), np.where(held > a.sum(), s - a, a)[between].sum()
        assert abs(needed) > room or np.array_equal(b[~between], a[~between])
        w = rows.sum_of(b)
        np.testing.assert_allclose(rows.whole(w), X.T @ b, atol=1e-11)
        np.testing.assert_allclose(rows.scores(w), X @ (X.T @ b), atol=1e-9)
    scores = X @ rng.standard_normal(7)
    values = [-rho + s @ np.maximum(0, rho - scores) / held for rho in scores]
    rho = rows.plane(scores)
    assert -rho + s @ np.maximum(0, rho - scores) / held == pytest.approx(min(values), abs=1e-12)
    lowest = rows.lowest(scores)
    assert lowest.sum() == pytest.approx(held, rel=1e-13)
    assert lowest @ scores == pytest.approx(held * -min(values), abs=1e-10)


@pytest.mark.parametrize("part", range(6))
def test_certificates_hold_beside_a_solver_of_quadratic_programs(part, by_dual):
    for seed in range(1000 + 25 * part, 1025 + 25 * part):
        X, nu, weights, tol = random_problem(seed)
        X, weights = X[:30], None if weights is None else weights[:30]
        if weights is not None and not weights.any():
            continue
        s = np.ones(len(X)) if weights is None else weights
        with warnings.catch_warnings():
            warnings.simplefilter("error", ConvergenceWarning)
            model = quiet_fit(SmSVMOneClass(nu=nu, tol=tol), sp.csr_matrix(X) if seed % 3 == 0 else X,
                              sample_weight=weights)
        upper, size = s / (nu * s.sum()), np.abs(X).max() or 1.0
        K = X @ X.T / size**2
        found = minimize(lambda b, K=K: (b @ K @ b / 2, K @ b), np.full(len(X), 1.0) * s / s.sum(), jac=True,
                         bounds=[(0, most) for most in upper], method="SLSQP", options={"ftol": 1e-14, "maxiter": 200},
                         constraints={"type": "eq", "fun": lambda b: b.sum() - 1, "jac": np.ones_like})
        a = feasible(s, nu, np.divide(np.clip(found.x, 0, upper), upper, out=np.zeros(len(X)), where=upper > 0))
        w = X.T @ (a * s) / (nu * s.sum())
        gap_is_true(model, X, s, min(objective(X, s, nu, w, rho) for rho in [*(X @ w), 0.0]), bound(X, s, nu, a), tol)


def first_stage(X, warm=False):
    stats = open_rows(X).describe()
    about = ProblemStats(HINGE, ElasticNet(1.0), stats.n_features + 1, warm=warm, has_dual=False, fixed_sum=True)
    return next_stage(stats, about, Settings(max_passes=1000), [])


def test_many_columns_begin_with_the_dual():
    rng = np.random.default_rng(0)
    assert first_stage(rng.random((100, 20))).kind == "newton"
    dense = first_stage(rng.random((100, 60)))
    assert dense.kind == "dual" and dense.reads == cost.DUAL_SHARE * cost.SPARSE_NEWTON_READS and dense.start == "zero"
    sparse = first_stage(sp.random(9000, 5000, 0.001, format="csr"), warm=True)
    assert sparse.reads == 500 and sparse.start == "warm"


@pytest.mark.parametrize("shape", [(3000, 300), (60, 2000)])
def test_of_any_format_the_same_optimum_in_few_reads(shape):
    rng = np.random.default_rng(7)
    X = (0.3 + rng.standard_normal(shape)) * (rng.random(shape) < 0.2)
    one = SmSVMOneClass(nu=0.2, tol=1e-6).fit(X)
    assert one.n_passes_ < 60
    for other in (X.astype(np.float32), np.asfortranarray(X), sp.csr_matrix(X)):
        model = SmSVMOneClass(nu=0.2, tol=1e-6, n_jobs=2).fit(other)
        np.testing.assert_allclose(model.objective_, one.objective_, rtol=3e-6)
    repeated = SmSVMOneClass(nu=0.2, tol=1e-6).fit(X, sample_weight=np.where(np.arange(len(X)) < 20, 2.0, 1.0))
    written = SmSVMOneClass(nu=0.2, tol=1e-6).fit(np.vstack([X, X[:20]]))
    np.testing.assert_allclose(repeated.objective_, written.objective_, rtol=3e-6)


def test_newton_goes_on_where_sweeps_are_slow():
    rng = np.random.default_rng(0)                       # the origin is in their middle, and most of them in a plane
    X = rng.standard_normal((2000, 16)) @ rng.standard_normal((16, 128)) + 0.1 * rng.standard_normal((2000, 128))
    with pytest.warns(UserWarning, match="surround"):
        model = SmSVMOneClass(nu=0.05).fit(X)
    assert model.duality_gap_[0] <= 1e-4
    assert model.history_["smoothing"][0] == 0 < model.history_["smoothing"].max()


def test_the_best_multiple_of_the_weights_saves_reads():
    # 4.4, and 17 to 18 with the sum of the rows as it is, whose length is right long after its direction
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((1500, 200)) + 0.5 * rng.standard_normal(200)
        assert SmSVMOneClass(nu=0.1, tol=1e-3).fit(X).n_passes_ <= 9


def test_warm_start_time_and_passes():
    X = 0.3 + np.random.default_rng(2).standard_normal((2000, 200))
    model = SmSVMOneClass(nu=0.1, tol=1e-6, warm_start=True).fit(X)
    reads, objective_before = model.n_passes_, model.objective_[0]
    assert model.fit(X).n_passes_ <= reads + 3
    assert model.objective_[0] == pytest.approx(objective_before, rel=2e-6)
    assert np.all(np.diff(model.history_["passes"]) > 0)
    for short in (SmSVMOneClass(nu=0.1, tol=1e-9, max_passes=3), SmSVMOneClass(nu=0.1, max_time=1e-9)):
        with pytest.warns(ConvergenceWarning, match="relative duality gap"):
            short.fit(X)
        assert np.isfinite(short.duality_gap_[0]) and np.isfinite(short.coef_).all()
