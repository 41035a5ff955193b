"""SmSVMRegressor by losses that need no smoothing: kernels and certificate against formulas and independent solvers."""

import warnings

import numpy as np
import pytest
from api import LOSS_IDS, gains
from naive_regression import SMOOTH, smooth_residual_evaluation
from naive_smsvm import with_ones
from scipy import sparse
from scipy.optimize import minimize, minimize_scalar
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge
from sklearn.preprocessing import scale
from sklearn.svm import LinearSVR

from cmargin import SmSVMRegressor
from cmargin.data import open_rows
from cmargin.data.loss import Loss

PARAMETER = {"squared_epsilon_insensitive": "epsilon", "huber": "delta"}
CASES = [("squared_epsilon_insensitive", 0.0), ("squared_epsilon_insensitive", 0.4), ("huber", 0.05), ("huber", 1.3)]
each_case = pytest.mark.parametrize("loss, parameter", CASES)


def model(loss, parameter, **more):
    return SmSVMRegressor(loss, **{PARAMETER[loss]: parameter}, **more)


def objective(X, t, s, w, b, loss, parameter, l2, l1):
    return np.average(SMOOTH[loss][0](t - X @ w - b, parameter)[0], weights=s) + l2 / 2 * w @ w + l1 * np.abs(w).sum()


@each_case
def test_the_gain_of_a_dual_variable_is_the_least_of_loss_and_line(loss, parameter):
    a = np.linspace(-1, 1, 21) * min(4.0, SMOOTH[loss][2](parameter))
    gains(LOSS_IDS[loss], a, found := np.empty(len(a)), parameter)
    least = [minimize_scalar(lambda z, b=b: SMOOTH[loss][0](1 - z, parameter)[0] + b * z, bounds=(-30, 30),
                             method="bounded", options={"xatol": 1e-12}).fun for b in a]
    np.testing.assert_allclose(found, least, atol=1e-8)


@pytest.mark.parametrize("fmt", ["C", "F", "csr"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@each_case
def test_an_evaluation_equals_the_formulas(loss, parameter, dtype, fmt):
    rng = np.random.default_rng(3)
    X, s, t = rng.standard_normal((300, 7)).astype(dtype), rng.integers(0, 3, 300).astype(float), rng.normal(size=300)
    A, w, e = with_ones(X, True), *rng.standard_normal((2, 8))
    bits = set()
    for n_threads in (1, 2):
        form = {"C": X, "F": np.asfortranarray(X), "csr": sparse.csr_matrix(X)}[fmt]
        rows = open_rows(form).row_pass(s, intercept=True, n_threads=n_threads, offset=t)
        rows.set_loss(Loss(loss, (parameter,)))
        rows.evaluate(w, 1.0, 1.0, 1.0, 0.0)
        sums, gradient, hessian = rows.evaluate(e, 0.5, 1.0, 1.0, 0.0)
        bits.add((sums.tobytes(), gradient.tobytes(), hessian.tobytes()))
    assert len(bits) == 1
    wanted, vectors, block = smooth_residual_evaluation(A, s, t, w, e, 0.5, loss, parameter)
    np.testing.assert_allclose(sums[[0, 1, 8, 9, 4, 5, 7]], wanted, rtol=1e-10)
    np.testing.assert_allclose(gradient, vectors, atol=1e-9)
    np.testing.assert_allclose(np.triu(hessian), np.triu(block), atol=1e-9)
    value, slope, h = SMOOTH[loss][0](t - A @ (w + 0.3 * e), parameter)
    np.testing.assert_allclose(rows.line(0.3, 1.0), [s @ value, -(s * slope) @ (A @ e), (s * h) @ (A @ e) ** 2],
                               rtol=1e-11, atol=1e-12)
    assert rows.objective(w)[0] == pytest.approx(s @ SMOOTH[loss][0](t - A @ w, parameter)[0], rel=1e-12)


def random_problem(rng):
    n, m = int(rng.integers(1, 40)), int(rng.integers(1, 8))
    X = rng.standard_normal((n, m)) + rng.integers(0, 3)
    t = X @ rng.standard_normal(m) * rng.integers(0, 2) + rng.standard_t(2, n) + 3 * rng.integers(0, 2)
    s = rng.integers(1, 4, n).astype(float) if rng.random() < 0.5 else np.ones(n)
    loss = list(SMOOTH)[rng.integers(2)]
    return X, t * 10.0 ** rng.integers(-2, 3), s, loss, float(np.abs(t).mean() * 10.0 ** rng.uniform(-2, 1))


@pytest.mark.parametrize("seed", range(300))
def test_random_problems_are_certified(seed):
    rng = np.random.default_rng([61, seed])
    X, t, s, loss, parameter = random_problem(rng)
    unit = np.abs(t).max()
    t, parameter, m = t / unit, parameter / unit, X.shape[1]
    l2, l1 = 10.0 ** rng.uniform(-4, 0, 2) * ((1, 0), (1, 1), (0, 1))[rng.integers(3)]
    fit_intercept, penalised = bool(rng.integers(2)), bool(rng.integers(2))
    solver = "auto" if l1 > 0 else str(rng.choice(["auto", "cholesky", "cg", "woodbury"]))
    found = model(loss, parameter, l2=l2, l1=l1, fit_intercept=fit_intercept, penalize_intercept=penalised, tol=1e-7,
                  linear_solver=solver).fit(X, t, s)
    A = with_ones(X, fit_intercept)
    weighs = np.append(np.ones(m), np.full(A.shape[1] - m, float(penalised)))

    def value(v):                                      # of w+, w-, both at least 0
        w, share = v[:A.shape[1]] - v[A.shape[1]:], s / s.sum()
        F, slope, _ = SMOOTH[loss][0](t - A @ w, parameter)
        g = -A.T @ (share * slope) + l2 * weighs * w
        return share @ F + l2 / 2 * w @ (weighs * w) + l1 * np.tile(weighs, 2) @ v, \
            np.concatenate([g + l1 * weighs, l1 * weighs - g])

    w = np.append(found.coef_, found.intercept_)[:A.shape[1]]
    split = np.concatenate([np.maximum(w, 0), np.maximum(-w, 0)])
    best = min(minimize(value, start, jac=True, method="L-BFGS-B", bounds=[(0, None)] * len(split),
                        options={"maxiter": 5000, "maxfun": 10000, "ftol": 1e-15, "gtol": 1e-11}).fun
               for start in (split, 0 * split))
    ours = value(split)[0]
    assert found.objective_[0] == pytest.approx(ours, rel=1e-9, abs=1e-14)
    assert ours - best <= found.duality_gap_[0] * ours + 1e-13 and best <= ours + 1e-13
    assert found.duality_gap_[0] <= 1e-7 or ours <= 1e-14


def test_least_squares_are_those_of_ridge():
    X, y = load_diabetes(return_X_y=True)
    X = scale(X)
    found = SmSVMRegressor("squared_epsilon_insensitive", epsilon=0.0, l2=2e-2, tol=1e-10).fit(X, y)
    ridge = Ridge(alpha=len(y) * 1e-2).fit(X, y)       # mean of squares + l2/2 |w|^2
    np.testing.assert_allclose(found.coef_, ridge.coef_, rtol=1e-4)
    assert found.n_passes_ < 5


def test_the_optimum_of_linear_svr():
    X, y = load_diabetes(return_X_y=True)
    X, y = scale(X), y / 100
    theirs = LinearSVR(C=1.0, epsilon=0.2, loss="squared_epsilon_insensitive", dual=False, tol=1e-10).fit(X, y)
    found = SmSVMRegressor("squared_epsilon_insensitive", epsilon=0.2, C=1.0, penalize_intercept=True, tol=1e-10)
    found.fit(X, y)
    np.testing.assert_allclose(found.coef_, theirs.coef_, atol=1e-4)
    assert found.intercept_ == pytest.approx(theirs.intercept_[0], abs=1e-4)


@each_case
def test_units_weights_several_targets_and_formats(loss, parameter, tmp_path):
    X, y = load_diabetes(return_X_y=True)
    X, y = scale(X), scale(y)
    more = {"l2": 1e-3, "tol": 1e-9}
    found = model(loss, parameter, **more).fit(X, y)
    for unit in (1e-6, 1e5):                           # targets in other units, and what goes with them
        other = model(loss, parameter * unit, **more).fit(X, y * unit)
        np.testing.assert_allclose(other.coef_ / unit, found.coef_, rtol=1e-4, atol=1e-5)
        assert other.objective_[0] / unit**2 == pytest.approx(found.objective_[0], rel=1e-8)
    both = model(loss, parameter, **more).fit(X, np.c_[y, y[::-1]])
    np.testing.assert_allclose(both.coef_[0], found.coef_, rtol=1e-6, atol=1e-7)
    twice = np.r_[0:len(y), 0:50]
    s = np.ones(len(y))
    s[:50] = 2
    repeated, weighted = model(loss, parameter, **more).fit(X[twice], y[twice]), model(loss, parameter, **more)
    np.testing.assert_allclose(weighted.fit(X, y, s).coef_, repeated.coef_, rtol=1e-3, atol=1e-4)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    for rows, targets in ((sparse.csr_matrix(X), y), (X.astype(np.float32), y), (np.asfortranarray(X), y),
                          (tmp_path / "X.npy", tmp_path / "y.npy")):
        there = model(loss, parameter, **more).fit(rows, targets)
        assert there.duality_gap_[0] <= 1e-9
        np.testing.assert_allclose(there.coef_, found.coef_, rtol=1e-3, atol=1e-4)
    bits = {model(loss, parameter, n_jobs=n, **more).fit(X, y).coef_.tobytes() for n in (1, 2, 3)}
    assert len(bits) == 1


@each_case
def test_many_rows_and_wide_ones(loss, parameter):
    rng = np.random.default_rng(4)
    X = rng.standard_normal((30_000, 8))
    y = X @ rng.standard_normal(8) + rng.standard_t(3, 30_000)
    found = model(loss, parameter).fit(X, y)
    assert found.duality_gap_[0] <= 1e-4 and found.n_passes_ < 8
    X = rng.standard_normal((60, 700))
    found = model(loss, parameter, l2=1e-2).fit(X, X[:, 0] + 0.1 * rng.standard_normal(60))
    assert found.duality_gap_[0] <= 1e-4


def test_bad_parameters():
    X, y = np.eye(4), np.arange(4.0)
    for bad in (0, -1.0, np.inf, np.nan, "a", None):
        with pytest.raises(ValueError, match="'delta' parameter"):
            SmSVMRegressor("huber", delta=bad).fit(X, y)
    with pytest.raises(ValueError, match="linear_solver='dual' needs loss="):
        SmSVMRegressor("huber", linear_solver="dual").fit(X, y)


def test_without_a_penalty_there_is_no_gap_but_an_end():
    X, y = load_diabetes(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = SmSVMRegressor("squared_epsilon_insensitive", epsilon=0.0, l2=0.0, tol=1e-8).fit(scale(X), y)
    assert np.isnan(found.duality_gap_[0])
    np.testing.assert_allclose(found.coef_, np.linalg.lstsq(with_ones(scale(X), True), y)[0][:-1], rtol=1e-3, atol=0.1)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_steps_by_the_huber_loss_go_without_a_path_of_penalties(seed):
    # the path that the squared hinge has after a short step took 14 reads where 5 are enough: by this loss rows pull
    # the same where they have no curvature, and steps of the user's l2 are full
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((2000, 50))
    y = X[:, :10].sum(1) + 0.05 * rng.standard_normal(2000)
    found = SmSVMRegressor("huber", delta=1.0, l2=1e-7).fit(X, y)
    assert found.duality_gap_[0] <= 1e-4 and found.n_passes_ <= 7


@pytest.mark.parametrize("seed", range(5))
def test_a_narrow_bend_is_come_to_where_no_row_has_curvature(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((12, 3)) + 5
    y = 100 * rng.standard_normal(12)
    found = SmSVMRegressor("huber", delta=1e-2, l2=0.0, l1=1e-6).fit(X, y)
    assert found.duality_gap_[0] <= 1e-4


@pytest.mark.parametrize("size", [1e6, 1e12, 1e15, 1e17])
def test_targets_far_beyond_the_length_of_the_huber_loss_are_certified(size):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 4))
    t, l2 = size * (X @ np.ones(4) + rng.standard_normal(150)), 1e-12
    model = SmSVMRegressor("huber", l2=l2, tol=1e-6).fit(X, t)
    far = t - np.median(t)
    w = np.sign(far) @ X / len(X) / l2                       # the optimum, of weights that are short beside the targets
    at_w = np.abs(far - X @ w).mean() + l2 / 2 * w @ w
    assert model.duality_gap_[0] <= 1e-6 and model.objective_[0] * (1 - model.duality_gap_[0]) <= at_w


@pytest.mark.parametrize("delta", [5e-324, 1e-300, 1e-150, 1e-40, 1e40, 1e300, 1.7e308])
def test_any_length_of_the_huber_loss_ends_in_numbers(delta):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    t = X @ np.ones(3) + rng.standard_normal(60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SmSVMRegressor("huber", delta=delta, l2=1e-4).fit(X, t)
    assert np.isfinite(model.coef_).all() and np.isfinite(model.objective_[0]) and model.duality_gap_[0] <= 1
    if delta > 1:
        squares = SmSVMRegressor("huber", delta=1e6, l2=1e-4).fit(X, t)
        np.testing.assert_array_equal(model.coef_, squares.coef_)
