"""Sweeps of the dual beside a centre of the common columns, against a NumPy twin."""

import naive_dual
import numpy as np
import pytest
import scipy.sparse as sp
from api import DualSweeps, shuffle

from cmargin import SmSVMClassifier, SmSVMRegressor
from cmargin.data import open_rows
from cmargin.data.loss import Loss
from cmargin.solvers.per_class import class_streams


def zipf_rows(n, m, seed=3, each=8):
    rng = np.random.default_rng(seed)
    entries = rng.standard_normal(each * n)
    X = sp.csr_matrix((entries, rng.zipf(1.4, each * n) % m, np.arange(n + 1) * each), shape=(n, m))
    X.sum_duplicates()
    return X, np.where(rng.random(n) < 0.4, 1.0, -1.0), rng.integers(1, 4, n).astype(float)


def sweep(Z, y, order, box, at, a, w):
    """(rows that stayed at a bound, gap that the rows had in their turn, a, w)"""
    (upper, ridge), seen, a, w, rested = box, 0.0, a.copy(), w.copy(), []
    for i in order:
        u = 1 - y[i] * (Z[i] @ w)
        seen += naive_dual.gap_of(u, a[i], upper[i], ridge[i])
        new = np.clip(a[i] + (u - ridge[i] * a[i]) / at.square[i], 0, upper[i])
        if new == a[i] and new in (0, upper[i]):
            rested.append(i)
        w += at.part * (new - a[i]) * y[i] * Z[i]
        a[i] = new
    return rested, seen, a, w


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("patience, sweeps_made", [(np.inf, 6), (0.0, 24)])
def test_sweeps_beside_a_centre_equal_the_twin(loss, free, patience, sweeps_made):
    # without patience they end at the best point of their last moves, where rows at work have entries enough, once 16
    # sweeps have told a rate
    n, m = 1200, 900
    X, y, weight = zipf_rows(n, m, each=24)
    rows = open_rows(X).dual_rows(True, free, weight, 1 / weight.sum(), Loss(loss)).row_pass(weight * y)
    shared = rows.shared
    Z, box = np.column_stack([X.toarray(), np.full(n, rows.bias)]), (shared.upper, shared.ridge)
    np.testing.assert_allclose(shared.column_costs[:-2], shared.cost @ X.toarray()**2)
    at = naive_dual.Centre(Z, shared.cost, shared.ridge, free)
    mine_a, mine_w, a, w = np.zeros(n), np.zeros(m + 1), np.zeros(n), np.zeros(m + 1)
    stream, nap, wake = class_streams(5, 1)[0], np.zeros(n, int), np.zeros(n, int)
    shuffled = stream.copy()
    sweeps, moves = DualSweeps(rows, mine_a, mine_w, stream, patience, shared.column_costs), []
    for number in range(sweeps_made):
        order = np.flatnonzero(wake <= number)
        shuffle(order, shuffled)
        before, w_before = a, w
        rested, seen, a, w = sweep(Z, y, order, box, at, a, w)
        nap[np.setdiff1d(order, rested)] = 0
        nap[rested] = np.minimum(2 * nap[rested] + 1, 7)
        wake[rested] = number + 1 + nap[rested]
        if number >= 17 > patience and len(order) * X.nnz / n > 3 * (n + m):
            a, w, moves, _ = naive_dual.best_move(Z, y, box, moves, before, w_before, a, w, part=at.part)
        added, w = at.move(seen, naive_dual.gain(a, shared.ridge).sum(), rows.bias * (a @ y), w)
        assert sweeps.run(1, 0.0, np.inf, np.inf)[1] == 1
        sweeps.bounds = -np.inf, np.inf                        # no row leaves
        np.testing.assert_allclose(mine_a, a, atol=1e-8)
        np.testing.assert_allclose(mine_w, w, atol=1e-8)
        np.testing.assert_allclose(sweeps.sum[:-1], Z[:, :-1].T @ (a * y), atol=1e-8)
        assert sweeps.gap == pytest.approx(seen + added, rel=1e-7)
    assert at.weight > 0 and wake.max() > 5 and bool(moves) == (patience == 0)


def test_rows_of_which_much_is_stored_have_no_centre():
    X = sp.random(50, 60, density=0.2, format="csr", random_state=0)
    assert open_rows(X).dual_rows(True, False, None, 1.0, Loss("hinge")).column_costs is None
    assert open_rows(X.toarray()).dual_rows(True, False, None, 1.0, Loss("hinge")).column_costs is None


@pytest.mark.parametrize("model, most", [
    (SmSVMClassifier(C=1000.0, loss="hinge"), 45), (SmSVMRegressor(C=1000.0), 250),
])
def test_columns_of_which_none_is_common_are_not_held(model, most):
    # 64 and 561 reads beside a centre; sweeps that end at the best point of their last moves take 32 and 169
    n, m, rng = 1500, 2000, np.random.default_rng(17)
    X = sp.csr_matrix((np.ones(30 * n), rng.integers(0, m, 30 * n), np.arange(n + 1) * 30), shape=(n, m))
    X.sum_duplicates()
    t = X @ rng.standard_normal(m) + 2 * rng.standard_normal(n)
    model.set_params(linear_solver="dual", n_jobs=1).fit(X, t > 0 if model.loss == "hinge" else t)
    assert model.duality_gap_[0] <= 1e-4 and model.n_passes_ < most
