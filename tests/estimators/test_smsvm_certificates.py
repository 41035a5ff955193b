"""What `SmSVMClassifier` reports is true of the numbers it returns; each test a case where it was not."""

import warnings

import numpy as np
import pytest
from api import ROUNDING
from api import _penalties as penalties
from correlated_columns import correlated_columns
from elsewhere import Elsewhere
from naive_smsvm import objective, with_ones
from scipy import sparse
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning
from systems import cholesky_solve, l1_model_minimum

from cmargin._runtime.blas_threads import single_threaded_blas
from cmargin.data import open_rows
from cmargin.data.loss import Loss
from cmargin.data.memory.row_pass import MemoryRowPass
from cmargin.smsvm import SmSVMClassifier
from cmargin.solvers.newton import continuation as continuation_newton
from cmargin.solvers.penalty import ElasticNet
from cmargin.solvers.problem import Problem, Settings


def fit_quietly(X, y, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return SmSVMClassifier(**parameters).fit(X, y)


def recomputed(model, X, y):
    """P from the rows and the numbers returned."""
    A, w = with_ones(X, True), np.append(model.coef_[0], model.intercept_[0])
    code = np.where(y == model.classes_[1], 1.0, -1.0)
    l2 = 1e-4 if model.l2 is None else model.l2
    return objective(A, code, np.ones(len(y)), w, l2, model.l1, None if model.penalize_intercept else X.shape[1])


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("solver", ["auto", "woodbury", "cholesky", "cg"])
def test_more_columns_than_rows_with_a_mean(solver, container):
    # The reduced problem's objective, 4.9e-5, was reported; that of the single-precision coef_ was 9.0e-5
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((100, 200)) + 10).astype("f")
    y = np.where(rng.random(100) < 0.5, 1.0, -1.0)
    model = SmSVMClassifier(linear_solver=solver, max_passes=2000).fit(container(X), y)
    assert model.duality_gap_[0] <= 1e-4
    assert model.objective_[0] == pytest.approx(recomputed(model, X, y), rel=1e-9)


@pytest.mark.parametrize("l2", [0.0, 1e-14])
def test_contradictory_copies_of_a_row_are_not_told_apart_by_rounding(l2):
    # A ridge on a singular Gram matrix separated them: objective 0 and gap 0, where 2/3 is the minimum
    X, y = np.array([[1.0, 2, 3, 4], [1, 2, 3, 4], [0, 1, 0, 1]]), np.array([1, -1, 1])
    model = SmSVMClassifier(l2=l2, fit_intercept=False, linear_solver="woodbury").fit(X, y)
    assert model.objective_[0] == pytest.approx(2 / 3, rel=1e-9)


def test_contradictory_rows_of_very_different_columns():
    # float64, default settings: reported 7.8e-6, was 0.8
    rng = np.random.default_rng(3)
    X = rng.standard_normal((20, 60)) * 2.0 ** rng.integers(-20, 20, 60)
    X[10:], y = X[:10], np.repeat([1, -1], 10)
    model = fit_quietly(X, y, l2=1e-3)
    assert model.objective_[0] == pytest.approx(recomputed(model, X, y), rel=1e-9) and model.objective_[0] > 0.99


def contradictory_copies(seed):
    """Five rows of very different columns, one of weight 0, and the others in pairs of copies with either label."""
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((5, 20)) * 2.0 ** rng.integers(-20, 21, 20)).astype(np.float32)
    y, weight = np.array([1, -1, 1, -1, 1]), rng.uniform(0, 2, 5)
    weight[rng.integers(0, 5)] = 0
    X[1] = X[0]
    if seed % 2:
        X[3] = X[2]
    return X, y, weight


def agree_without_penalty(X, y, weight, loss):
    """Every solver's objective is that of its coefficients, and the same."""
    fits = []
    for solver in ("auto", "woodbury", "cholesky"):
        model = SmSVMClassifier(loss=loss, l2=0.0, linear_solver=solver).fit(X, y, weight)
        A, w = with_ones(X, True), np.append(model.coef_[0], model.intercept_[0])
        lead = y * (A @ w)
        lost = {"hinge": np.maximum(0, 1 - lead), "squared_hinge": np.maximum(0, 1 - lead)**2,
                "logistic": np.logaddexp(0, -lead)}[loss]
        assert model.objective_[0] == pytest.approx(lost @ weight / weight.sum(), rel=1e-6)
        fits.append(model.objective_[0])
    assert max(fits) <= 1.01 * min(fits) + 1e-3


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
@pytest.mark.parametrize("seed", [8, 10, 13, 16, 23, 25, 32, 38])
def test_a_row_of_weight_0_has_no_direction_of_its_own(seed, loss):
    # rounding led the copies a little along the direction that only a row of weight 0 has: |w| = 2e12 told them apart,
    # and rows were so far out that 40.5 was reported, 21.5 was true, and 0.5 was to be had
    agree_without_penalty(*contradictory_copies(seed), loss)


@pytest.mark.parametrize("seed", [499, 1531, 1854, 2093])
def test_steps_end_where_rounding_would_decide(seed):
    # the rows left near the hinge did not span the columns, and a step along the slope of the others ended at
    # |w| = 1e12 and margins of 1e18: 0.56 was reported and 0.019 true, 3237 and 1049, where 0.003 and 0.001 are least
    agree_without_penalty(*contradictory_copies(seed), "hinge")


@pytest.mark.parametrize("factor", [1e155, 1e-155])
def test_far_too_large_and_far_too_small_numbers_are_said(factor):
    # gap 0 was reported with coef_ 0, whose objective is that of no model at all
    X = np.random.default_rng(1).standard_normal((60, 5)) * factor
    with pytest.warns(ConvergenceWarning) if factor > 1 else warnings.catch_warnings():
        model = SmSVMClassifier().fit(X, np.sign(X[:, 0]))
    assert model.duality_gap_[0] == pytest.approx(1 - (factor < 1), abs=1e-4)
    assert model.objective_[0] == pytest.approx(recomputed(model, X, np.sign(X[:, 0])), rel=1e-9)


def test_columns_below_the_smallest_float32_normal():
    X = (np.random.default_rng(2).standard_normal((60, 5)) * 1e-40).astype("f")       # NaN with gap 0 once
    y = np.sign(X[:, 0])
    model = SmSVMClassifier(l2=0.0).fit(X, y)
    assert np.isfinite(model.coef_).all() and model.score(X, y) == 1 and model.objective_[0] < 1e-9


def test_a_certificate_that_falls_short_when_evaluated_is_worked_on():
    # the sums followed step by step are taken for better than they are, until the first evaluation
    rng = np.random.default_rng(4)
    X, y = rng.standard_normal((200, 5)), np.where(rng.random(200) < 0.5, 1.0, -1.0)
    starts = []

    class Flattering(Elsewhere):
        def evaluate(self, **asked):
            sums, gradient, hessian = super().evaluate(**asked)
            if "objective" not in self.asked:
                sums[2] = 0.0
            return sums, gradient, hessian

        def start(self, primal):
            starts.append("objective" in self.asked)
            super().start(primal)

    source = Flattering([open_rows(X).row_pass(y, intercept=False, n_threads=1)])
    newton = continuation_newton.ContinuationNewton(source, Problem(ElasticNet(1e-2)), Settings(tol=1e-3),
                                                    w=np.full(5, 0.1))
    with single_threaded_blas():
        result = newton.run()
    assert starts == [False, True]
    assert result.status == "converged" and result.gap <= 1e-3
    assert result.objective == pytest.approx(objective(X, y, np.ones(200), result.w, 1e-2, 0.0), rel=1e-12)


@pytest.mark.parametrize("l1", [0.0, 0.3])
def test_best_multiple_of_dual_variables(l1):
    rng = np.random.default_rng(5)
    for _ in range(50):
        v, l2, total = rng.standard_normal(6), 10.0 ** rng.uniform(-3, 1), rng.random()
        t = np.linspace(0, 1, 20001)[:, None]
        value = t[:, 0] * total - (np.maximum(t * np.abs(v) - l1, 0) ** 2).sum(axis=1) / (2 * l2)
        assert penalties.bound(total, v, l2, l1) == pytest.approx(value.max(), abs=1e-6)
        noisy = penalties.bound(total, v, l2, l1, np.full(6, 0.1))
        assert noisy <= penalties.bound(total, v, l2, l1)


@pytest.mark.parametrize("offset, l1", [(3, 1e-2), (10, 1e-2), (10, 1e-4), (1000, 1e-2)])
def test_l1_on_columns_with_a_mean_takes_the_reads_of_centred_ones(offset, l1):
    # 448 reads and a gap of 1 for an offset of 10, 6 of 6
    for seed in (0, 2):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((100, 60)), np.where(rng.random(100) < 0.5, 1.0, -1.0)
        centred = SmSVMClassifier(l1=l1).fit(X, y)
        model = SmSVMClassifier(l1=l1).fit(X + offset, y)
        assert model.duality_gap_[0] <= 1e-4 and model.n_iter_ <= centred.n_iter_ + 2


@pytest.mark.parametrize("seed", [2, 5, 6, 9, 10])
def test_l1_on_correlated_columns_reaches_the_minimum(seed):
    # the width went to its end while the gap stood at 0.5 to 0.7, objectives 22 to 76 % above the minimum
    X, y = correlated_columns(160, seed)
    model = SmSVMClassifier(l2=0.0, l1=1 / 1600, tol=1e-3, random_state=0).fit(X, y)
    y = y[:, None]
    A = y * X
    best = linprog(np.concatenate([np.full(96, 1 / 1600), [0, 0], np.full(160, 1 / 160)]),
                   -np.hstack([A, -A, y, -y, np.eye(160)]), -np.ones(160)).fun
    assert model.duality_gap_[0] <= 0.05 and best * (1 - 1e-9) <= model.objective_[0] <= best * 1.02


def test_l1_model_with_a_column_that_is_not_penalised():
    rng = np.random.default_rng(6)
    A = rng.standard_normal((40, 6)) + 5
    A[:, 5] = 1
    H, g, w = A.T @ A / 40, rng.standard_normal(6), np.zeros(6)
    l1 = np.array([0.05] * 5 + [0.0])
    d = l1_model_minimum(np.triu(H), g, w, l1)
    slope = g + H @ d
    assert abs(slope[5]) < 1e-9
    assert np.all(np.where(d[:5] != 0, np.abs(slope[:5] + l1[:5] * np.sign(d[:5])), np.abs(slope[:5]) - 0.05) < 1e-6)
    assert np.allclose(l1_model_minimum(np.triu(H), g, w, 0 * l1), cholesky_solve(H, -g)[0])


def test_conjugate_gradients_balance_a_free_intercept():
    # a residual in the intercept costs the bound itself, not its square: with l2=100 the fit stayed at w = 0
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 1))
    y = np.where(X[:, 0] + 0.3 * rng.standard_normal(50) > 0, 1, -1)
    model = SmSVMClassifier(l2=100, linear_solver="cg").fit(X, y)
    assert model.duality_gap_[0] <= 1e-4 and model.n_passes_ < 100


def test_woodbury_with_more_rows_than_columns():
    rng = np.random.default_rng(1)                    # 1e-2 was left after 1,000 passes
    X = rng.standard_normal((300, 2))
    y = np.where(X[:, 0] + 0.3 * rng.standard_normal(300) > 0, 1, -1)
    model = SmSVMClassifier(linear_solver="woodbury").fit(X, y)
    assert model.duality_gap_[0] <= 1e-4 and model.n_iter_ < 30


def test_a_subset_that_knows_some_columns_only():
    # 60,000 x 260 with l1: the subset's curvature of 88 active columns met all 261
    rng = np.random.default_rng(7)
    X = rng.standard_normal((60_000, 260), dtype="f")
    y = np.where(X[:, :3].sum(axis=1) + rng.standard_normal(60_000) > 0, 1, -1)
    model = SmSVMClassifier(l1=1e-2).fit(X, y)
    assert model.duality_gap_[0] <= 1e-4 and 3 <= np.count_nonzero(model.coef_) < 50


def test_a_matrix_that_rounding_has_left_indefinite_is_solved_along_its_diagonal():
    # a difference of columns 1e9 long was called an overflow of X
    H = np.array([[1e-7, 1.0], [1.0, -1e-9]])
    x, ridge = cholesky_solve(H, np.array([1.0, 2.0]))
    assert np.isfinite(x).all() and ridge == np.inf
    scales = np.array([1e-6, 1.0, 1e6])                        # copies of a column: the ridge is relative to each
    x, ridge = cholesky_solve(np.ones((3, 3)) * np.outer(scales, scales), scales)
    np.testing.assert_allclose(x @ scales, 1, rtol=1e-6)
    assert np.isnan(cholesky_solve(np.array([[1.0, np.nan], [0.0, 1.0]]), np.ones(2))[1])


@pytest.mark.parametrize("spread", [0, 4, 9])
def test_both_ways_to_q_and_r(spread):
    # the second is taken from the condition on that a Gram matrix of doubles cannot hold
    rng = np.random.default_rng(8)
    X = rng.standard_normal((30, 80)) * 10.0 ** rng.uniform(-spread, 0, 80)
    X[1] += (spread == 9) * (X[0] * (1 + 1e-11) - X[1])
    X[1, 0] += 1e-11
    wide = open_rows(X).reduced()
    assert (wide.reflectors is None) == (spread < 9)
    t = rng.standard_normal(wide.L.shape[1] + 1)
    w = wide.out_of(t, True)
    size = np.abs(X) @ np.abs(w[:80])
    assert np.abs(X @ w[:80] - wide.L @ t[:-1]).max() < 1e-13 * size.max()
    assert np.linalg.norm(w[:80]) == pytest.approx(np.linalg.norm(t[:-1]), rel=1e-13) and w[80] == t[-1]
    np.testing.assert_allclose(wide.into(w, True), t, atol=1e-12 * np.abs(t).max())


@pytest.mark.parametrize("shape", [(20, 60), (60, 5)])
@pytest.mark.parametrize("factor", [1e155, 1e200, 1e-300])
@pytest.mark.parametrize("parameters", [{}, {"l2": 0.0}, {"l1": 1e-3}, {"linear_solver": "cg"}, {"loss": "logistic"}])
def test_squares_beyond_doubles_end_in_a_certificate_one_warning_or_one_error(parameters, factor, shape):
    # separable rows were called done at 0.7 where neither penalty gives a certificate; overflows warned of themselves
    X = np.random.default_rng(0).standard_normal(shape) * factor
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = SmSVMClassifier(max_passes=100, **parameters).fit(X, np.sign(X[:, 0]))
        except ValueError as error:
            assert "scale the features" in str(error) and factor > 1
            return
    done = model.duality_gap_[0] <= 1e-4
    assert [w.category for w in caught] == ([] if done else [ConvergenceWarning])
    assert np.isfinite(model.coef_).all() and np.isfinite(model.objective_).all()


@pytest.mark.parametrize("apart", [1.0, 1e-3, 1e-6, 5e-8, 3e-8, 1e-8, 1e-9, 0.0])
def test_wide_rows_lose_no_digits_however_nearly_they_depend_on_each_other(apart):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, 90))
    X[20:] = X[:20] + apart * rng.standard_normal((20, 90))
    wide = open_rows(X).reduced()
    assert wide.L.shape == (40, 20 if apart == 0 else 40)        # copies of a row are not told apart by rounding
    assert (wide.reflectors is None) == (apart >= 1e-6 or apart == 0)    # nearly dependent: not by a Gram matrix
    np.testing.assert_allclose(wide.L @ wide.L.T, X @ X.T, atol=1e-12 * 90)
    t = rng.standard_normal(wide.L.shape[1])
    w = wide.out_of(t, False)
    assert np.linalg.norm(w) == pytest.approx(np.linalg.norm(t), rel=1e-12)
    np.testing.assert_allclose(X @ w, wide.L @ t, atol=1e-10)
    np.testing.assert_allclose(wide.into(w, False), t, atol=1e-10)


@pytest.mark.parametrize("condition", [1.0, 1e-4])
@pytest.mark.parametrize("dtype, order", [(np.float64, "C"), (np.float64, "F"), (np.float32, "C")])
def test_rows_that_others_add_up_to_are_left_to_a_gram_matrix(condition, dtype, order):
    # columns of mean 0 have one such row: all went by reflections, three quarters of the time of a fit of 72 x 7,129
    rng = np.random.default_rng(5)
    X = rng.standard_normal((60, 300)) * 10.0 ** rng.uniform(-6, 6, (60, 1))
    X[1] = X[0] + condition * X[1] / np.linalg.norm(X[1]) * np.linalg.norm(X[0])
    X[20:30] = 0                                                 # of which all add up to
    X[30:50] = 2.0 ** rng.integers(-9, 9, (20, 1)) * X[rng.integers(0, 20, 20)]
    X[50] = X[:20].sum(axis=0)
    X = np.asarray(X, dtype, order=order)
    if dtype == np.float32:
        X[50] = 4 * X[19]                                        # a sum of many has rounding of its own there
    wide, A = open_rows(X).reduced(), X.astype(float)
    length = np.linalg.norm(A, axis=1) + (A == 0).all(axis=1)
    assert wide.reflectors is None and wide.L.shape == (60, 29)
    np.testing.assert_allclose(wide.L @ wide.L.T / length / length[:, None], A @ A.T / length / length[:, None],
                               atol=1e-12)
    t = rng.standard_normal(29)
    w = wide.out_of(t, False)
    np.testing.assert_allclose(A @ w / length, wide.L @ t / length, atol=1e-12 * np.linalg.norm(w))
    np.testing.assert_allclose(wide.into(w, False), t, atol=1e-8)


def test_a_little_of_its_own_keeps_a_row_that_a_gram_matrix_would_lose():
    # a direction of 1e-8 is nothing in squares, but without a penalty it is what separates the two copies
    rng = np.random.default_rng(6)
    X = rng.standard_normal((20, 50))
    X[1], X[2:] = X[0], X[2:] - X[2:].mean(axis=0)
    X[1, 0] += 1e-8
    assert open_rows(X).reduced().L.shape == (20, 19)            # without one of those of mean 0
    model = SmSVMClassifier(l2=0.0, linear_solver="woodbury").fit(X, np.where(np.arange(20) % 2 == 0, 1, -1))
    assert model.objective_[0] < 1e-6


def test_a_certificate_that_falls_short_is_made_up_for_in_as_many_unknowns(monkeypatch):
    # a gap within a thousandth of tol sent 61 rows to conjugate gradients on all columns: 1,749 reads for 2.4
    rng = np.random.default_rng(8)
    F = rng.standard_normal((40, 3))
    X = F @ rng.standard_normal((3, 900)) + rng.standard_normal((40, 900))
    y = np.where(F[:, 0] + 0.5 * rng.standard_normal(40) > 0, 1, -1)
    asked, dual_sums = [], MemoryRowPass.dual_sums

    def sums_at_first_a_little_off(rows, a, *rest):
        asked.append(a)
        return dual_sums(rows, a * (0.98 if len(asked) == 1 else 1), *rest)

    monkeypatch.setattr(MemoryRowPass, "dual_sums", sums_at_first_a_little_off)
    model = SmSVMClassifier(l2=1e-2, linear_solver="woodbury").fit(X, y)
    assert len(asked) == 2 and model.duality_gap_[0] <= 1e-4 and 4 < model.n_passes_ < 8


def test_what_single_precision_leaves_of_a_row_beside_others_counts_where_the_penalty_lets_it():
    # columns of mean 0 in double precision have one of some 1e-7 in single, which sent all to reflections
    rng = np.random.default_rng(9)
    X = rng.standard_normal((50, 600))
    X = ((X - X.mean(axis=0)) / X.std(axis=0)).astype(np.float32)
    source = open_rows(X)
    assert source.reduced().reflectors is not None and source.reduced(1e-7).reflectors is not None
    wide = source.reduced(1e-3)
    assert wide.reflectors is None and wide.L.shape == (50, 49)
    np.testing.assert_allclose(wide.L @ wide.L.T, X.astype(float) @ X.T.astype(float), atol=1e-3)
    y = np.where(rng.random(50) < 0.5, 1, -1)
    for l2, loss in ((1e-2, "hinge"), (1e-8, "hinge"), (1e-2, "logistic"), (1e-8, "squared_hinge")):
        models = [SmSVMClassifier(l2=l2, loss=loss, linear_solver="woodbury").fit(A, y) for A in (X, X.astype(float))]
        assert all(model.duality_gap_[0] <= 1e-4 and model.n_passes_ < 10 for model in models)
        assert models[0].objective_[0] == pytest.approx(models[1].objective_[0], rel=2e-4)


def test_dual_variables_of_a_reduced_problem_are_one_read():
    # those of either class were summed apart, as they have to balance
    rng = np.random.default_rng(7)
    rows = open_rows(rng.standard_normal((30, 200))).row_pass(np.where(np.arange(30) < 9, 1.0, -1.0), intercept=True,
                                                              n_threads=1)
    asked, combine = [], rows.combine
    rows.combine = lambda c: asked.append(c) or combine(c)
    a = rng.uniform(0, 1, 30)
    vectors, totals, gain = rows.dual_sums(a, Loss("hinge"), True)
    assert len(asked) == 1 and not vectors[1].any() and totals[0] == totals[1] == pytest.approx(gain[0])
    assert gain[0] == pytest.approx(gain[1]) == pytest.approx(a[:9].sum()) and a[9:].sum() > a[:9].sum()
    np.testing.assert_allclose(vectors[0], rows.combine(asked[0]))
    assert abs(asked[0].sum()) < 1e-12


def test_a_large_free_intercept_costs_the_bound_its_rounding():
    # sum a y is 0 to rounding only, and that much times the intercept is not covered by the bound
    rows = open_rows(np.zeros((4, 1))).row_pass(np.array([1.0, 1, -1, -1]), intercept=True, n_threads=1)
    for intercept, least in ((0.0, 0.0), (1e10, 0.5 * ROUNDING * 1e10)):
        newton = continuation_newton.ContinuationNewton(rows, Problem(ElasticNet(1.0), 1), Settings(),
                                                        w=np.array([0.0, intercept]))
        newton.certify("stopped", 0.5, np.zeros(1))
        result = newton.finish()
        assert 0.5 - result.dual == pytest.approx(least, abs=1e-15)


def test_large_columns_cost_the_bound_the_rounding_of_their_sums():
    rows = open_rows(np.full((4, 1), 1e14)).row_pass(np.array([1.0, 1, -1, -1]), intercept=False, n_threads=1)
    newton = continuation_newton.ContinuationNewton(rows, Problem(ElasticNet(1.0)), Settings())
    newton.certify("stopped", 0.5, np.zeros(1))
    noise = ROUNDING * 1e14
    assert newton.finish().dual == pytest.approx(0.5 - noise**2 / 2, rel=1e-12) and noise > 0.1
