"""Rows with offsets: slacks u = t - y <w, x>, t of every row its own, where rows without them have 1."""

import numpy as np
import pytest
from naive_regression import kinks_of, loss_of, two_kinks_evaluation
from naive_smsvm import LARGEST, dual_curvature, evaluate, smooth_evaluation, smoothed, with_ones
from rows_in_files import files_of
from scipy.optimize import minimize
from test_row_pass import FORMATS, make

from cmargin._runtime.blas_threads import single_threaded_blas
from cmargin.data import open_rows
from cmargin.data.loss import Loss
from cmargin.data.shards.row_pass import ShardedSource
from cmargin.solvers.newton.continuation import ContinuationNewton
from cmargin.solvers.penalty import ElasticNet
from cmargin.solvers.problem import Problem, Settings

SUMS_OF_SMOOTH = [0, 1, 8, 9, 4, 5, 7]           # in the order of `smooth_evaluation`


def problem(regression=False, n=613):
    rng = np.random.default_rng(23)
    y = np.ones(n) if regression else np.where(rng.random(n) < 0.3, 1.0, -1.0)
    return y, rng.integers(0, 4, n).astype(float), rng.standard_normal(n) + 0.5, rng.standard_normal((2, 12)) * 0.4


def walk(rows, w, e):
    """An evaluation at w, then one 0.7 of the way along e; what the second says."""
    with single_threaded_blas():
        rows.evaluate(w, 1.0, 1.0, 0.7, 0.0, False)
        return [np.array(part) for part in rows.evaluate(e, 0.7, 0.7, 0.3, 0.0)]


@pytest.mark.parametrize("regression", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("fmt", FORMATS)
def test_slacks_begin_at_the_offsets(fmt, dtype, regression):
    # the 1 of the hinge was written into every row, so that no row could have a target or a base margin of its own
    X, (y, s, t, (w, e)) = make(fmt, dtype), problem(regression)
    A = with_ones(X, True)
    first = evaluate(A, y, s, 0 * w, w, 1.0, 0.7, offset=t)
    sums, gradient, curvature, _ = evaluate(A, y, s, w, e, 0.7, 0.3, 0.7, first[3], t)
    found = []
    for n_threads in (1, 3):
        rows = open_rows(X).row_pass(s * y, intercept=True, n_threads=n_threads, offset=t)
        found.append(walk(rows, w, e))
    for one, other in zip(*found, strict=True):
        assert np.array_equal(one, other)
    u, change = t - y * (A @ w), y * (A @ e)
    a = np.clip(smoothed(u, 0.7)[1] - dual_curvature(first[3], u, 0.7) * change, 0, 1)
    np.testing.assert_allclose(found[0][0][:6], sums, rtol=1e-12)
    np.testing.assert_allclose(found[0][0][8:10], [(s * t * a)[y > 0].sum(), (s * t * a)[y < 0].sum()], rtol=1e-11)
    np.testing.assert_allclose(found[0][1], gradient, rtol=1e-11, atol=1e-10)
    np.testing.assert_allclose(np.triu(found[0][2]), np.triu(curvature), rtol=1e-11, atol=1e-10)
    # along the line, where the weights are, and at other weights
    F, a, h = smoothed(u - 0.4 * change, 0.3)
    np.testing.assert_allclose(rows.line(0.4, 0.3), [s @ F, -(s * a) @ change, (s * h) @ change**2], rtol=1e-11)
    np.testing.assert_allclose(rows.margins()[s > 0], (y * (A @ (w + 0.7 * e)))[s > 0], atol=1e-13)
    assert rows.objective(w)[0] == pytest.approx(s @ np.maximum(u, 0), rel=1e-12)


@pytest.mark.parametrize("loss", LARGEST)
@pytest.mark.parametrize("regression", [False, True])
@pytest.mark.parametrize("fmt", ["C", "csr32"])
def test_smooth_losses_too_and_the_gains_of_their_dual_variables(fmt, regression, loss):
    X, (y, s, t, (w, e)) = make(fmt, np.float64), problem(regression)
    A = with_ones(X, True)
    rows = open_rows(X).row_pass(s * y, intercept=True, n_threads=2, offset=t)
    rows.set_loss(Loss(loss))
    sums, gradient, _ = walk(rows, w, e)
    expected, vectors = smooth_evaluation(A, y, s, w, e, 0.7, t, loss)
    np.testing.assert_allclose(sums[SUMS_OF_SMOOTH], expected, rtol=1e-10)
    np.testing.assert_allclose(gradient, vectors, rtol=1e-10, atol=1e-10)
    assert rows.objective(w + 0.7 * e)[0] == pytest.approx(sums[0], rel=1e-12)


@pytest.mark.parametrize("loss", LARGEST)
def test_at_the_optimum_the_dual_value_is_the_objective(loss):
    # a dual variable a of a row at offset t adds G(a) + (t - 1) a to the bound
    X, (y, s, t, _) = make("C", np.float64), problem()
    rows, l2, n = open_rows(X).row_pass(s * y, intercept=False, n_threads=1, offset=t), 0.5, s.sum()
    rows.set_loss(Loss(loss))

    def objective(w):
        sums, gradient = smooth_evaluation(X, y, s, 0 * w, w, 1.0, t, loss)
        return sums[0] / n + l2 / 2 * w @ w, l2 * w - gradient[0] / n

    w = minimize(objective, np.zeros(11), jac=True, method="BFGS", options={"gtol": 1e-10}).x
    with single_threaded_blas():
        rows.evaluate(w, 1.0, 1.0, 1.0, 0.0, False)
        sums, gradient, _ = rows.evaluate(np.zeros(11), 1.0, 1.0, 1.0, 0.0, False)
        a, v = rows.dual_variables(), (gradient[1] + gradient[2]) / n
        received = (sums[8] + sums[9]) / n - v @ v / (2 * l2)
    vectors, _, gain = rows.dual_sums(a, Loss(loss), False)
    own = sum(gain) / n - vectors[0] @ vectors[0] / n**2 / (2 * l2)
    assert received == pytest.approx(rows.objective(w)[0] / n + l2 / 2 * w @ w, rel=1e-8)
    assert own == pytest.approx(received, rel=1e-12)


def test_ones_are_what_no_offsets_are():
    X, (y, s, _, (w, e)) = make("C", np.float32), problem()
    found = [walk(open_rows(X).row_pass(s * y, intercept=True, n_threads=2, offset=offset), w, e)
             for offset in (None, np.ones(len(y)))]
    for without, ones in zip(*found, strict=True):
        assert np.array_equal(without[..., :8], ones[..., :8])


def test_some_rows_take_their_offsets_with_them(tmp_path):
    X, (y, s, t, (w, e)) = make("C", np.float32), problem()
    there = open_rows(X).row_pass(s * y, intercept=True, n_threads=1, offset=t)
    files = open_rows(files_of(X, "shards", tmp_path)).row_pass(s * y, intercept=True, n_threads=1, offset=t)
    for one, other in zip(walk(there, w, e), walk(files, w, e), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(files.objective(w)[0], there.objective(w)[0], rtol=1e-12)
    np.testing.assert_allclose(files.margins(), there.margins(), rtol=1e-12, atol=1e-12)
    samples = [rows.gather_sample(0.5, 0.3, 7)[0] for rows in (there, files)]
    chosen = samples[0].rows
    u = t[chosen] - y[chosen] * (with_ones(X, True) @ w)[chosen]
    for part in samples:
        assert part.objective(w)[0] == pytest.approx(np.abs(part.signed_weight) @ np.maximum(u, 0), rel=1e-12)
    again = type(there).from_state(there.X, there.state(), 1)
    assert np.array_equal(again.line(0.3, 0.5), there.line(0.3, 0.5)) and again.objective(w) == there.objective(w)


def test_rows_in_shards_have_them_beside_their_labels_and_take_no_others():
    shards, given = object.__new__(ShardedSource), np.ones(3)
    with pytest.raises(ValueError, match="Offsets of rows over ranks"):
        shards.row_pass(given, intercept=True, n_threads=1, offset=given)
    with pytest.raises(ValueError, match="offset"):
        open_rows(np.ones((3, 2))).row_pass(np.ones(3), intercept=True, n_threads=1, offset=np.ones(2))


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("place", ["memory", "files"])
def test_newton_steps_over_rows_with_offsets_are_certified(loss, place, tmp_path):
    # the bound of a hinge took every dual variable for worth itself, and sizes of columns from a curvature that rows
    # with offsets do not share at w = 0
    X, (y, s, t, _) = make("C", np.float64), problem()
    opened = open_rows(files_of(X, "shards", tmp_path) if place == "files" else X)

    def fit(offset, l2):
        rows = opened.row_pass(s * y, intercept=True, n_threads=1, offset=offset)
        with single_threaded_blas():
            return ContinuationNewton(rows, Problem(ElasticNet(l2), 11, Loss(loss)), Settings(tol=1e-7)).run()

    def objective(w, offset, l2):
        slack = np.maximum(offset - y * (with_ones(X, True) @ w), 0)
        return s @ (slack if loss == "hinge" else slack**2) / s.sum() + l2 / 2 * w[:11] @ w[:11]

    found = fit(t, 1e-2)
    assert found.status == "converged" and found.gap <= 1e-7
    assert found.objective == pytest.approx(objective(found.w, t, 1e-2), rel=1e-12)
    rng = np.random.default_rng(3)
    assert all(objective(found.w + 1e-3 * rng.standard_normal(12), t, 1e-2) > found.objective for _ in range(100))
    # slacks that all begin at 3 are those of 1 in another unit
    power = 1 if loss == "hinge" else 2
    tripled, plain = fit(np.full(len(y), 3.0), 1e-2), fit(None, 1e-2 * 3**(2 - power))
    assert tripled.objective == pytest.approx(3**power * plain.objective, rel=2e-7)


@pytest.mark.parametrize("loss", [Loss("epsilon_insensitive", (0.4,)), Loss("epsilon_insensitive", (0.0,)),
                                  Loss("quantile", (0.2,))])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("fmt", FORMATS)
def test_losses_with_two_kinks_are_two_smoothed_hinges(fmt, dtype, loss):
    X, (_, s, t, (w, e)), kinks = make(fmt, dtype), problem(True), kinks_of(loss.name, *loss.parameters)
    A = with_ones(X, True)
    first = two_kinks_evaluation(A, s, t, 0 * w, w, kinks, 1.0, 0.7)
    sums, gain, gradient, curvature, _ = two_kinks_evaluation(A, s, t, w, e, kinks, 0.7, 0.3, 0.7, first[-1])
    found = []
    for n_threads in (1, 3):
        rows = open_rows(X).row_pass(s, intercept=True, n_threads=n_threads, offset=t)
        rows.set_loss(loss)
        found.append(walk(rows, w, e))
    for one, other in zip(*found, strict=True):
        assert np.array_equal(one, other)
    np.testing.assert_allclose(found[0][0][:6], sums, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(found[0][0][8:10], gain, rtol=1e-11)
    np.testing.assert_allclose(found[0][1], gradient, rtol=1e-11, atol=1e-10)
    np.testing.assert_allclose(np.triu(found[0][2]), np.triu(curvature), rtol=1e-11, atol=1e-10)
    # along the line, by products, where the weights are, and as dual variables that are given
    u = t - A @ w
    parts = [two_kinks_evaluation(A, s, t, w + step * e, 0 * e, kinks, 0.3, 0.3) for step in (0.4, 0.4 + 1e-6)]
    np.testing.assert_allclose(rows.line(0.4, 0.3)[:2], [parts[0][0][0], -(parts[0][2][0] @ e)], rtol=1e-10)
    assert rows.line(0.4, 0.3)[2] == pytest.approx(-(parts[1][2][0] - parts[0][2][0]) @ e / 1e-6, rel=1e-4)
    np.testing.assert_allclose(rows.hessp(e, 0.3)[0], curvature @ e, rtol=1e-10, atol=1e-10)
    assert rows.objective(w)[0] == pytest.approx(s @ loss_of(u, *kinks), rel=1e-12)
    a = rows.dual_variables()
    before = two_kinks_evaluation(A, s, t, w, e, kinks, 0.7, 0.3, 1.0, first[-1])[-1]
    np.testing.assert_allclose(a[s > 0], before[s > 0], atol=1e-12)
    vectors, _, gains = rows.dual_sums(a, loss, False)
    np.testing.assert_allclose(sum(gains), sum(gain), rtol=1e-10)
    np.testing.assert_allclose(vectors[0], gradient[1] + gradient[2], rtol=1e-10, atol=1e-9)
    assert abs(rows.dual_sums(a, loss, True)[0][0][-1]) <= 1e-9          # both sides weigh alike
