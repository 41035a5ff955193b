"""Smooth losses: rows many at a time, evaluations without curvature, and what a subset hands over."""

import pickle

import numpy as np
import pytest
from scipy.special import expit

from cmargin import SmSVMClassifier
from cmargin.data.loss import Loss
from cmargin.data.open import open_rows
from cmargin.solvers.newton.continuation import ContinuationNewton
from cmargin.solvers.penalty import ElasticNet
from cmargin.solvers.problem import Problem, Settings

ROW_SUMS = {"logistic": lambda z: (np.logaddexp(0, -z), expit(-z), expit(z) * expit(-z)),
            "squared_hinge": lambda z: (np.maximum(0, 1 - z) ** 2, 2 * np.maximum(0, 1 - z), 2.0 * (z <= 1))}
GAIN = {"logistic": lambda a: -a * np.log(a) - (1 - a) * np.log1p(-a), "squared_hinge": lambda a: a - a * a / 4}


@pytest.mark.parametrize("loss", ROW_SUMS)
@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1.0, 20.0, 300.0])
def test_sums_of_an_evaluation_are_those_of_the_formulas(loss, scale):
    rng = np.random.default_rng(3)
    X, signed_weight = scale * rng.standard_normal((203, 1)), rng.uniform(0.5, 2, 203) * np.where(rng.random(203) < 0.4,
                                                                                                  1, -1)
    rows = open_rows(X).row_pass(signed_weight, intercept=False, n_threads=1)
    rows.set_loss(Loss(loss))
    s, y, w = np.abs(signed_weight), np.sign(signed_weight), np.ones(1)
    rows.start()
    rows.evaluate(w, 1.0, 1.0, 1.0, 0.0)
    sums, gradient, block = rows.evaluate(-0.5 * w, 1.0, 1.0, 1.0, 0.0)
    z, change = y * X[:, 0], -0.5 * y * X[:, 0]
    z0, z1 = 1 - (1 - z), 1 - (1 - z - change)                   # as slacks hold them
    value, slope, curvature = ROW_SUMS[loss](z1)
    _, slope0, curvature0 = ROW_SUMS[loss](z0)
    a = np.clip(slope0 - curvature0 * change, 0, 1 if loss == "logistic" else None)
    with np.errstate(divide="ignore", invalid="ignore"):
        gains = np.where((a > 0) & (a < 1), GAIN[loss](a), 0) if loss == "logistic" else GAIN[loss](a)
    assert sums[0] == pytest.approx(s @ value, rel=1e-13) and sums[1] == pytest.approx(-s @ (slope * change), rel=1e-12)
    assert sums[7] == pytest.approx(s @ curvature, rel=1e-13)
    for side, total, gain in ((y > 0, sums[4], sums[8]), (y < 0, sums[5], sums[9])):
        assert total == pytest.approx(s[side] @ a[side], rel=1e-13)
        assert gain == pytest.approx(s[side] @ gains[side], rel=1e-11, abs=1e-13)
    np.testing.assert_allclose(gradient[0], X.T @ (signed_weight * slope), rtol=1e-12, atol=1e-13 * scale)
    np.testing.assert_allclose(block, X.T @ ((s * curvature)[:, None] * X), rtol=1e-12)


@pytest.mark.parametrize("loss", ROW_SUMS)
@pytest.mark.parametrize("dtype", ["f", "d"])
def test_hessp_is_that_of_the_formula_at_the_end_of_the_last_step(loss, dtype):
    rng = np.random.default_rng(5)
    X, signed_weight = rng.standard_normal((203, 9)).astype(dtype), rng.uniform(0.5, 2, 203) * rng.choice([-1, 1], 203)
    rows = open_rows(X).row_pass(signed_weight, intercept=False, n_threads=1)
    rows.set_loss(Loss(loss))
    w, d, x = rng.standard_normal((3, 9))
    rows.start()
    rows.evaluate(w, 1.0, 1.0, 1.0, 0.0)
    rows.evaluate(d, 0.5, 1.0, 1.0, 0.0)
    z = np.sign(signed_weight) * (X.astype(float) @ (w + 0.5 * d))
    curvature = ROW_SUMS[loss](z)[2]
    for floor in (0.0, np.median(curvature)):
        weight = np.abs(signed_weight) * np.where(curvature > floor, curvature, 0)
        product, _ = rows.hessp(x, 1.0, floor)
        np.testing.assert_allclose(product, X.astype(float).T @ (weight * (X.astype(float) @ x)), rtol=1e-9, atol=1e-10)
        diagonal, _ = rows.hessp(None, 1.0, floor)
        np.testing.assert_allclose(diagonal, weight @ X.astype(float)**2, rtol=1e-10)


def fitted(X, y, **parameters):
    return SmSVMClassifier(**parameters).fit(X, y)


def noisy_plane(n, m, seed=0, noise=0.5):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, m))
    return X, X @ rng.standard_normal(m) / np.sqrt(m) + noise * rng.logistic(size=n) > 0


@pytest.mark.parametrize("loss", ROW_SUMS)
def test_the_first_step_is_as_long_as_it_is_best(loss):
    # margin 0 is where rows have the most curvature: steps of length 1 took 17 evaluations with curvature, and 19
    curved = 0
    for l2 in (1e-2, 1e-3, 1e-5):
        X, y = noisy_plane(3000, 20, 5, noise=0.1)
        model = fitted(X, y, loss=loss, l2=l2, tol=1e-3)
        steps = model.history_["step"]
        assert model.duality_gap_[0] <= 1e-3 and steps[1] > 2
        curved += np.count_nonzero(model.history_["active_rows"])
    assert curved <= 11


@pytest.mark.parametrize("solver", ["cholesky", "cg"])
@pytest.mark.parametrize("loss", ROW_SUMS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_fit_of_a_few_reads_keeps_the_end_of_its_first_step(loss, solver):
    # with no read left for a better length it ended at w = 0, with half of the rows wrong
    rng = np.random.default_rng(0)
    y = np.where(rng.random(2000) < 0.5, 1.0, -1.0)
    X = rng.standard_normal((2000, 20)) + 0.25 * y[:, None]
    products = 2 * (solver == "cg")                                   # a diagonal and one product, reads as well
    ends = [fitted(X, y, loss=loss, l2=0.1, tol=1e-9, max_passes=most, linear_solver=solver)
            for most in (2, 3 + products, 4 + products, 5 + products)]
    objectives = [model.objective_[0] for model in ends]
    assert objectives == sorted(objectives, reverse=True) and objectives[1] < 0.9 * objectives[0]
    assert min(model.score(X, y) for model in ends[1:]) > 0.75


def test_an_evaluation_that_certifies_is_the_last():
    for loss, l2 in (("logistic", 0.01), ("squared_hinge", 0.1)):
        X, y = noisy_plane(2000, 20, noise=0.05)
        model = fitted(X, y, loss=loss, l2=l2, tol=0.7)
        assert model.duality_gap_[0] <= 0.7 and model.n_passes_ == 2
        assert fitted(X, y, loss=loss, l2=l2, tol=0.1).history_["step"][1] > 1.5


def test_a_rare_class_that_is_hard_to_tell_has_unit_steps():
    # most of what a step explains there is the intercept's: an evaluation to find the length was one too many
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 10))
    y = X[:, 0] + 3 * rng.standard_normal(4000) > 4.5
    for loss in ROW_SUMS:
        assert np.all(fitted(X, y, loss=loss, l2=1e-3, tol=1e-3).history_["step"] == 1)


def test_many_fits_end_with_an_evaluation_that_sums_no_curvature():
    foreseen = 0
    for seed in range(10):
        X, y = noisy_plane(3000, 20, seed)
        for tol in (1e-3, 1e-6):
            model = fitted(X, y, loss="logistic", l2=1e-3, tol=tol)
            curved = model.history_["active_rows"]
            assert model.duality_gap_[0] <= tol and np.all(curved[:-1] == 3000)
            foreseen += curved[-1] == 0
        best = fitted(X, y, loss="logistic", l2=1e-3, tol=1e-10)
        assert best.objective_[0] <= model.objective_[0] * (1 + 1e-12) <= best.objective_[0] * (1 + 2e-6)
    assert foreseen >= 7


def test_an_evaluation_taken_for_the_last_that_was_not_is_followed_by_a_step_all_the_same():
    # rows of very different weight: the gap after a step is larger than its square
    ended = []
    for seed in range(30):
        X, y = noisy_plane(300, 15, seed)
        X *= np.exp(2 * np.random.default_rng(seed).standard_normal((300, 1)))
        model = fitted(X, y, loss="logistic", l2=1e-4, tol=1e-4)
        assert model.duality_gap_[0] <= 1e-4
        ended.append(np.count_nonzero(model.history_["active_rows"] == 0))
    assert max(ended) > 1


def test_the_first_evaluation_over_all_rows_goes_by_the_curvature_of_the_subset():
    X, y = noisy_plane(20_000, 120)
    fits = [fitted(X, y, loss="logistic", l2=1e-3, random_state=0, n_jobs=n) for n in (1, 2)]
    curved, whole = fits[0].history_["active_rows"], ~np.isnan(fits[0].history_["gap"])
    assert list(curved[whole][:2]) == [0, 20_000] and fits[0].duality_gap_[0] <= 1e-4
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
    alone = fitted(X, y, loss="logistic", l2=1e-3, subset_growth=None)
    assert fits[0].objective_[0] == pytest.approx(alone.objective_[0], rel=1e-4)


def test_two_clouds_of_few_columns_go_by_the_dual_and_a_noisy_plane_does_not():
    rng = np.random.default_rng(5)
    y = np.arange(6000) % 2
    X = np.where(y, 0.7, -0.7)[:, None] + rng.standard_normal((6000, 50))
    model = SmSVMClassifier(l2=1e-3, random_state=0).fit(X, y)
    newton = SmSVMClassifier(l2=1e-3, random_state=0, linear_solver="cholesky").fit(X, y)
    assert model.duality_gap_[0] <= 1e-4 and model.n_passes_ < newton.n_passes_ - 3
    assert model.objective_[0] == pytest.approx(newton.objective_[0], rel=2e-4)
    X, y = noisy_plane(6000, 50)
    model, newton = (SmSVMClassifier(l2=1e-5, random_state=0, linear_solver=solver).fit(X, y)
                     for solver in ("auto", "cholesky"))
    assert model.duality_gap_[0] <= 1e-4 and model.n_passes_ < newton.n_passes_ + 5


def test_wide_rows_far_from_dependent_are_not_copied():
    rng = np.random.default_rng(0)
    X, w = rng.standard_normal((40, 300)), rng.standard_normal(300)
    wide = open_rows(X).reduced()
    assert wide.basis is X
    np.testing.assert_allclose(wide.L @ wide.into(w, False), X @ w, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(X @ wide.out_of(wide.into(w, False), False), X @ w, rtol=1e-11, atol=1e-11)
    X[1] = X[0] + 1e-4 * X[1]
    reduced = open_rows(X).reduced()
    assert reduced.basis is not X
    np.testing.assert_allclose(X @ reduced.out_of(reduced.into(w, False), False), X @ w, rtol=1e-10, atol=1e-10)


def test_a_fit_that_goes_on_sums_its_next_curvature_as_it_would_have():
    # before a step without new curvature the precision of the next block is that of the factor in use: it was forgotten
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1200, 150)) * np.exp(2.0 * rng.standard_normal((1200, 1)))
    y = np.where(X @ rng.standard_normal(150) / np.sqrt(150) + 0.5 * rng.logistic(size=1200) > 0, 1.0, -1.0)
    kept = []

    def driver(stop):
        rows = open_rows(X).row_pass(y, intercept=True, n_threads=1)
        return ContinuationNewton(rows, Problem(ElasticNet(1e-2), 150, Loss("logistic")),
                                  Settings(tol=1e-5, max_passes=100.0, stop=stop))

    def stop():
        kept.append(pickle.dumps(one.state()))
        return False

    one = driver(stop)
    one.run()
    assert one.status == "converged" and len(kept) > 3
    for state in kept[:-1]:
        other = driver(lambda: False)
        other.go_on_from(pickle.loads(state))
        other.finish()
        np.testing.assert_array_equal(other.result.w, one.result.w)
        assert other.result.dual == one.result.dual


@pytest.mark.parametrize("most", [1, 3])
def test_the_dual_is_not_tried_where_few_reads_are_allowed(most):
    X, y = noisy_plane(9000, 60)
    with pytest.warns(UserWarning, match="max_passes"):
        assert SmSVMClassifier(l2=1e-5, random_state=0, max_passes=most).fit(X, y).n_passes_ <= most
