"""Curvature summed in single precision: close enough where it is asked for, and asked for only where that is enough."""

import numpy as np
import pytest
from api import lanes_here
from elsewhere import Elsewhere
from scipy import sparse

from cmargin import SmSVMClassifier
from cmargin._runtime.blas_threads import single_threaded_blas
from cmargin.data import open_rows
from cmargin.data.source import SINGLE_BLOCK
from cmargin.solvers.newton.continuation import ContinuationNewton
from cmargin.solvers.penalty import ElasticNet
from cmargin.solvers.problem import Problem, Settings


def data(n=3000, m=150, dtype=np.float32, scale=1.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, m)) * scale
    y = np.where(X @ rng.standard_normal(m) + 5 * np.median(np.abs(X)) * rng.standard_normal(n) > 0, 1.0, -1.0)
    return X.astype(dtype), y


def looked(X, y, kind, n_threads=1, active=None):
    rows = open_rows(X).row_pass(y, intercept=True, n_threads=n_threads)
    rows.set_active(active)
    with single_threaded_blas():
        rows.evaluate(np.full(X.shape[1] + 1, 0.01), 1.0, 1.0, 0.7, 0.0, False)
        return [part.copy() for part in rows.evaluate(np.full(X.shape[1] + 1, -0.02), 1.0, 0.7, 0.3, 0.0, kind)]


def same(one, other):
    return np.array_equal(np.triu(one), np.triu(other)) if one.ndim == 2 else np.array_equal(one, other)


@pytest.mark.parametrize("active", [None, np.arange(1, 151)])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_entry_is_within_rounding_of_single_precision(dtype, order, active):
    X, y = data(dtype=dtype)
    X = np.asarray(X, order=order)
    sums, gradient, block = looked(X, y, True, active=active)
    single = [looked(X, y, SINGLE_BLOCK, n_threads, active) for n_threads in (1, 3)]
    assert all(same(*pair) for pair in zip(*single, strict=True))
    assert np.array_equal(single[0][0], sums) and np.array_equal(single[0][1], gradient)
    size = np.sqrt(np.diag(block))
    error = np.abs(np.triu(single[0][2] - block)) / np.outer(size, size)
    assert 0 < error.max() < 1e-6


@pytest.mark.parametrize("X", [data(m=100)[0], "CSR"])
def test_few_columns_and_sparse_rows_stay_in_double(X):
    X, y = (sparse.csr_matrix(data()[0]) if isinstance(X, str) else X), data()[1]
    for exact, single in zip(looked(X, y, True), looked(X, y, SINGLE_BLOCK), strict=True):
        assert same(exact, single)


@pytest.mark.parametrize(("n", "m", "lanes"), [
    (10_000, 23, {4}), (10_000, 22, set()), (10_000, 30, {4, 8}), (10_000, 29, {4}), (9_999, 60, set())])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_narrow_sums_are_in_single_precision_where_that_is_quicker_and_time_matters(dtype, n, m, lanes):
    X, y = data(n, m, dtype)
    exact, single = looked(X, y, True)[2], looked(X, y, SINGLE_BLOCK)[2]
    size = np.sqrt(np.diag(exact))
    error = np.abs(np.triu(single - exact)) / np.outer(size, size)
    assert 0 < error.max() < 1e-6 if lanes_here() in lanes else same(exact, single)


class Recorded(Elsewhere):
    def evaluate(self, *args, **asked):
        self.kinds = [*getattr(self, "kinds", []), int(asked["with_hessian"])]
        return super().evaluate(*args, **asked)


def kinds_asked(X, y, problem, **settings):
    source = Recorded.of(X, y, [1000], problem.free is not None)
    with single_threaded_blas():
        result = ContinuationNewton(source, problem, Settings(**settings)).run()
    assert result.status == "converged"
    return source.kinds


def test_the_first_block_says_whether_the_next_may_be_single():
    X, y = data(dtype=float)
    kinds = kinds_asked(X, y, Problem(ElasticNet(1e-3), 150), tol=1e-3)
    assert kinds[0] == 1 and set(kinds[1:]) == {SINGLE_BLOCK}


@pytest.mark.parametrize("name", ["nearly dependent", "tiny numbers", "huge numbers", "l1"])
def test_nothing_is_rounded_where_it_matters(name):
    X, y = data(dtype=float)
    l2, l1 = 1e-9, 0.0
    if name == "nearly dependent":
        X[:, 100:] = X[:, :50] + 1e-4 * X[:, 100:]
    elif name == "tiny numbers":
        X, l2 = X * 1e-20, 1e-49
    elif name == "huge numbers":
        X, l2 = X * 1e20, 1e31
    else:
        l2, l1 = 1e-3, 1e-3
    assert set(kinds_asked(X, y, Problem(ElasticNet(l2, l1), 150), tol=1e-2, max_passes=1e3)) == {1}


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
@pytest.mark.parametrize("spread", [0, 3, 5])
def test_columns_of_any_spread_are_certified_in_as_many_passes(loss, spread):
    X, y = data(n=4000, m=200, dtype=float, seed=3)
    Q = np.linalg.qr(np.random.default_rng(1).standard_normal((200, 200)))[0]
    X = ((X * np.logspace(0, -spread, 200)) @ Q).astype(np.float32)
    for l2 in (1e-3, 1e-9):
        model = SmSVMClassifier(loss=loss, l2=l2, tol=1e-4, linear_solver="cholesky").fit(X, y)
        assert model.duality_gap_ <= 1e-4 and model.n_iter_ <= 25
