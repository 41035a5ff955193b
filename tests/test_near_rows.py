"""Dual variables of some rows chosen anew beside those of all others: a true bound, fewer reads to a certificate."""

import numpy as np
import pytest
from rare_columns import rows_with_rare_columns
from scipy import sparse
from scipy.optimize import minimize

from cmargin import SmSVMClassifier
from cmargin._runtime.blas_threads import single_threaded_blas
from cmargin.homes import open_rows
from cmargin.solvers.newton import continuation_newton, growing
from cmargin.solvers.newton.continuation_newton import ContinuationNewton, Problem, Settings

X_rare, y_rare = rows_with_rare_columns()


def looked_at(X, y, intercept=True, l2=1e-4):
    """Rows after a few Newton steps, the last a full one, and the driver that took them."""
    rows = open_rows(X).row_pass(y, intercept=intercept, n_threads=1)
    problem = Problem(l2, 0.0, X.shape[1] if intercept else None)
    newton = ContinuationNewton(rows, problem, Settings(max_passes=5.0, tol=1e-9))
    newton.run()
    return rows, newton


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("positives, negatives", [(1.0, 1.0), (0.1, 0.3), (0.0, 0.0)])
def test_sums_of_some_rows(form, positives, negatives):
    X, y = X_rare[:3000], y_rare[:3000] * np.random.default_rng(1).choice([0.5, 2.0], 3000)
    rows, newton = looked_at(form(X), y)
    part, vectors, totals = rows.some_apart(positives, negatives, 3)
    a = rows.dual_variables_told(np.arange(3000))
    assert a.min() >= 0 and a.max() <= 1 and part.n_rows == round(part.share * 3000)
    inside = np.isin(np.arange(3000), part.rows)
    ones = np.hstack([X, np.ones((3000, 1))])
    of_all, all_totals = newton.dual_sums_told()
    for side, sign in enumerate((y > 0, y < 0)):
        c = np.where(sign, a * y, 0.0)
        np.testing.assert_allclose(of_all[side], c @ ones, atol=1e-9 * np.abs(y).sum())
        np.testing.assert_allclose(vectors[side], (c * inside) @ ones, atol=1e-9 * np.abs(y).sum())
        assert all_totals[side] == pytest.approx(np.abs(c).sum(), abs=1e-9 * np.abs(y).sum())
        assert totals[side] == pytest.approx(np.abs(c * inside).sum(), abs=1e-9 * np.abs(y).sum())


def test_rows_treated_exactly_are_always_among_them():
    rows, _ = looked_at(X_rare[:3000], y_rare[:3000])
    mask = np.zeros(3000, np.uint8)
    mask[[5, 2000]] = 1
    rows.set_exact(mask)
    rows.look(None, 1.0, 0.3, 0.3, 0.0)
    part, vectors, _ = rows.some_apart(0.0, 0.0, 3)
    assert part.rows.tolist() == [5, 2000]
    a = rows.dual_variables_told(np.array([5, 2000]))
    u = 1 - rows.margins()[[5, 2000]]
    np.testing.assert_allclose(a, (1 + u / np.hypot(0.3, u)) / 2, rtol=1e-9)            # slopes where the look was
    ones = np.append(X_rare[[5, 2000]], np.ones((2, 1)), axis=1)
    np.testing.assert_allclose(vectors.sum(axis=0), (a * y_rare[[5, 2000]]) @ ones, atol=1e-9)


@pytest.mark.parametrize("intercept", [True, False])
def test_the_small_problem_is_that_of_the_rows_beside_straight_lines(intercept):
    # its minimum, found by SciPy in a smoothed form of its own, and its bound meet
    X, y, l2 = X_rare[:400], y_rare[:400], 1e-2
    rows, newton = looked_at(X, y, intercept, l2)
    part, *own = rows.some_apart(0.3, 0.2, 3)
    vectors, totals = (told - some for told, some in zip(newton.dual_sums_told(), own, strict=True))
    ones = np.hstack([X, np.ones((400, 1))]) if intercept else X
    ones, signs = ones[part.rows], y[part.rows]
    small = ContinuationNewton(part, newton.problem, Settings(tol=1e-7, max_passes=100.0, width_end=1e-300))
    small.stand_beside(vectors, totals, 400.0)
    with single_threaded_blas():
        result = small.run()
    free = np.append(np.ones(X.shape[1]), 0.0)[:ones.shape[1]]
    pull = vectors.sum(axis=0) / 400

    def value(w, width):
        u = 1 - signs * (ones @ w)
        root = np.hypot(width, u)
        smooth = (u + root).sum() / 2
        slope = l2 * free * w - pull - ((1 + u / root) / 2 * signs) @ ones / 400
        return l2 / 2 * (free * w) @ w - pull @ w + (totals.sum() + smooth) / 400, slope

    w = np.zeros(ones.shape[1])
    for width in np.logspace(0, -7, 15):
        w = minimize(value, w, (width,), jac=True, method="BFGS", options={"gtol": 1e-9}).x
    best = value(w, 1e-12)[0]
    assert result.status == "converged"
    assert result.objective == pytest.approx(best, rel=1e-5)
    assert best * (1 - 1e-6) <= result.objective and result.dual <= best * (1 + 1e-6)
    bound, total, v = small.dual_point()
    assert bound == result.dual == pytest.approx(total - v @ v / (2 * l2), rel=1e-6)


def test_a_dual_point_that_is_no_better_is_not_taken():
    _, newton = looked_at(X_rare[:500], y_rare[:500])
    before, reads = newton.dual_point(), newton.reads
    newton.offer(before[0] / 2, 1.0, np.ones(18), 0.25)
    newton.offer(None, None, None, 0.5)
    assert newton.dual_point()[0] == before[0] and newton.reads == reads + 0.75
    with pytest.raises(ValueError):
        newton.offer(2 * before[0], 1.0, np.ones(4), 0.0)
    with pytest.raises(ValueError):
        newton.stand_beside(np.ones((2, 5)), [1.0, 1.0], 7.0)


def fit(seed, **parameters):
    X, y = rows_with_rare_columns(seed=seed)
    return SmSVMClassifier(**{"l2": 1e-6, "tol": 1e-4, "random_state": 0, **parameters}).fit(X, y)


def test_it_saves_reads(monkeypatch):
    # seeds 10 to 21: 88 reads in all without, 76 with
    parameters = {"l2": 1e-5, "tol": 1e-3}
    repaired = [fit(seed, **parameters).n_passes_ for seed in range(6)]
    monkeypatch.setattr(growing, "may_repair", lambda newton: None)
    plain = [fit(seed, **parameters).n_passes_ for seed in range(6)]
    assert sum(repaired) < 0.95 * sum(plain)


def test_its_certificate_is_true(monkeypatch):
    taken, offer = [], ContinuationNewton.offer

    def watch(newton, bound, total, v, reads):
        before = newton.dual_point()[0]
        offer(newton, bound, total, v, reads)
        taken.append(newton.dual_point()[0] > before)

    monkeypatch.setattr(ContinuationNewton, "offer", watch)
    ours, best = fit(1), fit(1, tol=1e-8, max_passes=1e3)
    assert any(taken)
    assert ours.objective_[0] - best.objective_[0] <= ours.duality_gap_[0] * ours.objective_[0] <= 1e-4


def test_the_bits_of_any_number_of_threads():
    one, two = (fit(2, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert np.array_equal(one.coef_, two.coef_) and one.duality_gap_[0] == two.duality_gap_[0]
    assert one.n_passes_ == two.n_passes_


def test_reads_are_limited(monkeypatch):
    most, real = [], continuation_newton.repair

    def watch(newton, shares):
        real(newton, shares)
        most.append(newton.reads)

    monkeypatch.setattr(continuation_newton, "repair", watch)
    free = fit(3)
    assert most
    first = most[0]
    with pytest.warns(UserWarning, match="max_passes"):
        limited = fit(3, max_passes=first - 0.1)
    assert limited.n_passes_ <= first - 0.1 < free.n_passes_
