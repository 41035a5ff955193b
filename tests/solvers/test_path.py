"""Paths of penalties: what pairs of points prove, and how few fits that leaves to be made."""

import numpy as np
import pytest
import scipy.sparse as sp
from api import _penalties
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import scale

from cmargin._estimators.labels import Labels
from cmargin._runtime.blas_threads import single_threaded_blas
from cmargin._runtime.clock import RunClock
from cmargin.data.loss import Loss
from cmargin.data.open_here import source_of
from cmargin.solvers.certified import Bracket, Pair, Pairs, dual_value
from cmargin.solvers.path import PathSolver
from cmargin.solvers.penalty import ElasticNet
from cmargin.solvers.problem import Settings
from cmargin.solvers.result import Result

LOSSES = {"hinge": lambda z: np.maximum(0, 1 - z), "squared_hinge": lambda z: np.maximum(0, 1 - z)**2,
          "logistic": lambda z: np.logaddexp(0, -z)}


def rows(kind):
    if kind == "cells":
        X, y = load_breast_cancer(return_X_y=True)
        return scale(X)[::2], y[::2]
    if kind == "wide":
        rng = np.random.default_rng(0)
        X = rng.standard_normal((60, 300))
        return X, (X[:, :3].sum(1) + rng.standard_normal(60) > 0).astype(int)
    X = sp.random(400, 900, 0.02, format="csr", random_state=1)
    return X, (np.asarray(X[:, :90].sum(1)).ravel() > 0.5).astype(int)


def solver_of(X, y, loss="hinge", weights=None, tol=1e-3, **more):
    labels = Labels(np.unique(y), np.searchsorted(np.unique(y), y).astype(np.int8))
    given = {"settings": Settings(tol=tol, max_passes=1000), **more}
    return PathSolver(source_of(X, y), labels, weights, loss=Loss(loss), **given)


def objective(X, signs, w, loss, l2, l1=0.0, weights=None, free=True):
    penalised = w[:-1] if free else w
    losses = LOSSES[loss](signs * (X @ w[:-1] + w[-1]))
    return np.average(losses, weights=weights) + l2 / 2 * penalised @ penalised + l1 * np.abs(penalised).sum()


@pytest.mark.parametrize("l1, ratio", [(0.0, 0.0), (2e-3, 0.0), (0.0, 0.5)])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", ["cells", "wide", "text"])
def test_what_two_fits_prove_between_them_holds(kind, loss, l1, ratio):
    # Objective and bound at other penalties come from sums of the two fits alone; here they meet the rows.
    X, y = rows(kind)
    rng = np.random.default_rng(2)
    with single_threaded_blas():
        solver = solver_of(X, y, loss)
        exact = solver_of(X, y, loss, tol=1e-6 / 0.3)
        l2s = np.geomspace(3e-1, 3e-4, 4)
        for l2 in l2s:
            solver.solve(l2, l1 + ratio * l2)
        for l2 in [*np.exp(rng.uniform(np.log(3e-4), np.log(3e-1), 4)), 1.0]:
            known, = solver.certify(l2, l1 + ratio * l2)
            there = objective(X, 2.0 * y - 1, known.w, loss, l2, l1 + ratio * l2)
            best = exact.solve(l2, l1 + ratio * l2)[0]
            assert there <= known.objective * (1 + 1e-10)
            assert known.dual <= best.objective * (1 + 1e-10)
            assert (there - best.dual) / there <= known.gap + 1e-5


def test_dual_values_with_l1_are_those_of_the_compiled_bound():
    rng = np.random.default_rng(4)
    for _ in range(200):
        v, l2, l1, noise = rng.standard_normal(30) * 10.0**rng.uniform(-2, 2), *10.0**rng.uniform(-3, 0, 2), 1e-12
        total = float(10.0**rng.uniform(-2, 1))
        known, there = _penalties.bound(total, v, l2, l1, noise), dual_value(total, v, float(v @ v), noise, l2, l1)
        assert there <= known * (1 + 1e-12) and there >= known * (1 - 1e-3)


def pair_of(l2, w, risk, total, v):
    penalty = ElasticNet(l2)
    result = Result(np.array(w), risk + penalty.value(np.array(w)), total=total, v=np.array(v))
    return Pair(result, penalty, None)


def test_where_w_stays_two_pairs_prove_every_penalty_between_them():
    # w = 1, S = 0.5 + l2, v = l2: exact for every l2. One pair proves little at a tenth of its penalty.
    one, other = (pair_of(l2, [1.0], 0.5, 0.5 + l2, [l2]) for l2 in (0.1, 0.001))
    assert Bracket(one, one).certify(0.01).gap > 0.05
    for l2 in np.geomspace(0.001, 0.1, 9):
        assert abs(Bracket(one, other).certify(l2).gap) < 1e-12


def test_weights_evenly_between_two_fits_are_nearer_to_the_minimum():
    # The least proven objective is often that of one fit, for many penalties in a row: a path in steps.
    X, y = rows("cells")
    with single_threaded_blas():
        solver, exact = solver_of(X, y, "logistic"), solver_of(X, y, "logistic", tol=1e-7)
        for l2 in (1e-1, 5e-2):
            solver.solve(l2)
        best = exact.solve(7e-2)[0].dual
    found = {}
    for weights in ("alone", "best", "even"):
        known = solver.pairs[0].certify(7e-2, 0.0, weights)
        found[weights] = objective(X, 2.0 * y - 1, known.w, "logistic", 7e-2)
        assert best <= found[weights] * (1 + 1e-10) and found[weights] <= known.objective * (1 + 1e-10)
    assert found["even"] - best < 0.3 * (found["best"] - best)


def test_a_pair_in_place_of_one_of_the_same_penalty_leaves_no_old_proof():
    pairs = Pairs()
    for l2 in (0.1, 0.001):
        pairs.add(pair_of(l2, [1.0], 0.5, 0.5 + l2, [l2]))
    before = pairs.certify(0.01)
    pairs.add(pair_of(0.1, [1.0], 0.6, 0.5, [0.1]))
    assert len(pairs) == 2 and pairs.certify(0.01).gap > before.gap


def test_most_penalties_of_a_grid_need_no_fit():
    # 100 penalties were 100 fits. Half of these rows weigh 0, as a fold's held-out rows do.
    X, y = load_digits(return_X_y=True)
    X, y, weights = X / 16.0, y % 2, np.arange(len(y)) % 2.0
    l2s = np.geomspace(1e-1, 1e-6, 100)
    with single_threaded_blas():
        solver = solver_of(X, y, "hinge", weights)
        solver.solve_all(l2s)
        assert solver.n_solved <= 60
        assert all(known.gap <= 1e-3 for l2 in l2s for known in solver.certify(l2))
        fits, passes = solver.n_solved, solver.passes
        known = [solver.solve(l2)[0] for l2 in l2s]
        assert (solver.n_solved, solver.passes) == (fits, passes)
        apart = solver_of(X[1::2], y[1::2], "hinge")
    for l2, one in list(zip(l2s, known, strict=True))[::25]:
        there = objective(X, 2.0 * y - 1, one.w, "hinge", l2, weights=weights)
        with single_threaded_blas():
            assert there <= apart.solve(l2)[0].objective * (1 + 2e-3)


def test_later_fits_of_a_smooth_loss_take_two_reads():
    # A third went to the sizes of the columns, which the first fit knows.
    X, y = rows("cells")
    reads = []
    with single_threaded_blas():
        solver = solver_of(X, y, "logistic", note=lambda c, penalty, result: reads.append(result.passes))
        for l2 in (1e-1, 8e-2, 6e-2):
            solver.solve(l2)
    assert reads[1:] == [2.0, 2.0]


def test_fits_by_the_dual_begin_at_dual_variables_between_two_others():
    X, y = rows("text")
    totals = []
    for kept in (True, False):
        with single_threaded_blas():
            solver = solver_of(X, y, "hinge")
            if not kept:
                solver.note = lambda c, penalty, result, solver=solver: [
                    setattr(pair, "a", None) for pairs in solver.pairs for pair in pairs.pairs]
            solver.solve_all(np.geomspace(1, 1e-4, 60))
        totals.append(solver.passes / solver.n_solved)
    assert totals[0] < 0.9 * totals[1]


def test_a_path_that_is_late_keeps_what_is_proven():
    X, y = rows("cells")
    with single_threaded_blas():
        solver = solver_of(X, y, "logistic")
        solver.solve(1e-1)
        solver.settings = Settings(tol=1e-3, clock=RunClock(0.0))
        solver.solve_all(np.geomspace(1e-1, 1e-4, 10))
    assert solver.stopped == "max_time" and solver.n_solved == 1
    assert solver.certify(1e-1)[0].gap <= 1e-3 < solver.certify(1e-4)[0].gap


def test_models_of_fits_foresee_the_minimum_exactly_where_the_loss_is_a_parabola():
    # all margins are below 1 beside a large l2, where the squared hinge has one curvature for all rows
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 5))
    y = (X[:, 0] + 0.3 + rng.standard_normal(3000) > 0).astype(int)
    with single_threaded_blas():
        solver = solver_of(X, y, "squared_hinge", tol=1e-9)
        solver.solve(9.0)
        for l2 in (12.0, 30.0):
            w, curvature = solver.pairs[0].foreseen(l2)
            (exact,) = solver_of(X, y, "squared_hinge", tol=1e-12).solve(l2)
            np.testing.assert_allclose(w, exact.w, atol=1e-6)
            A = np.column_stack([X, np.ones(3000)])
            np.testing.assert_allclose(curvature, 2 * A.T @ A / 3000 + np.diag([l2] * 5 + [0]), atol=1e-8)


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
@pytest.mark.parametrize("seed", range(3))
def test_fits_of_a_path_of_a_smooth_loss_take_little_more_than_a_read_each(loss, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((20_000, 8)) * np.geomspace(1, 30, 8)
    y = (X @ rng.standard_normal(8) + 20 * rng.standard_normal(20_000) > 0).astype(int)
    reads = []
    with single_threaded_blas():
        solver = solver_of(X, y, loss, note=lambda c, penalty, result: reads.append(result.passes))
        l2s = np.geomspace(1e3, 1e-2, 40)
        solver.solve_all(l2s)
        signs = np.where(y == 1, 1.0, -1.0)
        for l2 in l2s:
            (known,) = solver.certify(l2)
            assert known.gap <= 1e-3
            np.testing.assert_array_less(objective(X, signs, known.w, loss, l2), known.objective * (1 + 1e-12))
    inner = reads[2:]
    assert 2 <= len(inner) <= 12 and np.sum(inner) <= 20 and np.max(inner) <= 4, reads


def tall_rows(seed, n=30_000, p=5):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + 0.3 * rng.standard_normal(p)
    return X, (X @ rng.standard_normal(p) + rng.standard_normal(n) + 0.4 > 0).astype(int)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("loss", LOSSES)
def test_what_rows_of_two_fits_say_between_them_holds_and_is_far_more(loss, seed):
    X, y = tall_rows(seed, 60_000)
    weights = np.random.default_rng(seed).choice([0.0, 1.0, 2.5], len(y))
    with single_threaded_blas():
        solver, exact = (solver_of(X, y, loss, weights / weights.mean(), tol=tol) for tol in (1e-4, 1e-8))
        for l2 in (0.1, 0.01):
            solver.solve(l2)
        (pairs,), middle = solver.pairs, np.sqrt(0.1 * 0.01)
        bracket = pairs.bracket(ElasticNet(middle, 0.0))
        before = pairs.certify(middle)
        assert bracket.knows_rows
        for _ in range(3):
            bracket.refine(middle)
        assert pairs.certify(middle).gap <= before.gap / (5 if loss != "hinge" else 1.2)
        for l2 in (0.09, 0.05, middle, 0.02):
            known = pairs.certify(l2)
            (best,) = exact.solve(l2)
            there = objective(X, 2.0 * y - 1, known.w, loss, l2, weights=weights)
            assert there <= known.objective * (1 + 1e-10)
            assert known.dual <= best.objective * (1 + 1e-10)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_path_of_nearly_the_same_rows_takes_fewer_reads_from_another_and_proves_as_much(loss):
    X, y = tall_rows(0, 60_000, 12)
    l2s, fold = np.geomspace(1e-1, 1e-6, 40), np.arange(len(y)) % 5
    reads, beside = [], None
    with single_threaded_blas():
        for left_out in range(2):
            weights = (fold != left_out) * 1.25
            solver = solver_of(X, y, loss, weights, beside=beside)
            solver.solve_all(l2s)
            solver.let_go()
            assert all(pair.rows is None for pair in solver.pairs[0].pairs)
            exact = solver_of(X, y, loss, weights, tol=1e-5)
            for l2 in l2s[::9]:
                (known,), (best,) = solver.certify(l2), exact.solve(l2)
                there = objective(X, 2.0 * y - 1, known.w, loss, l2, weights=weights)
                assert known.gap <= 1e-3 and there <= known.objective * (1 + 1e-10)
                assert known.dual <= best.objective * (1 + 1e-10)
            reads.append(solver.passes)
            beside = solver.pairs
    assert reads[1] <= 0.9 * reads[0], reads


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_fits_do_not_go_on_beside_a_fold_that_is_unlike(loss, monkeypatch):
    # sorted rows of forest cover took 258 reads for 159
    X, y = tall_rows(0)
    rng = np.random.default_rng(1)
    other = (X @ rng.standard_normal(5) + rng.standard_normal(len(X)) > 0).astype(int)
    with single_threaded_blas():
        def solved(labels, beside=None):
            solver = solver_of(X, labels, loss, beside=beside)
            solver.solve_all(np.geomspace(1e-1, 1e-6, 40))
            assert solver.stopped is None and all(one.gap <= 1e-3 for l2 in (1e-1, 1e-3) for one in solver.certify(l2))
            return solver

        first = solved(y)
        beside = solved(other, first.pairs)
        assert first.pairs[0].alone is None and not first.pairs[0].helps(beside.pairs[0])
        assert beside.pairs[0].alone == pytest.approx(first.passes / first.n_solved)
        monkeypatch.setattr(Pairs, "helps", lambda one, own: True)
        assert beside.passes < solved(other, first.pairs).passes


def test_a_path_takes_no_other_that_is_of_other_problems_or_has_no_fit():
    X, y = tall_rows(0)
    for beside in ([], [Pairs()], [Pairs(), Pairs()]):
        assert solver_of(X, y, beside=beside).beside is None
