import time
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from api import Rows, chosen
from api import _bound as certificate
from api import _penalties as penalties
from naive_smsvm import dual_value, objective, paper, with_ones
from plans import drivers_of
from scipy import sparse
from scipy.optimize import linprog
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, make_multilabel_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale
from sklearn.svm import SVC

from cmargin._runtime.blas_threads import single_threaded_blas
from cmargin.data import open_rows
from cmargin.smsvm import SmSVMClassifier
from cmargin.solvers import cost
from cmargin.solvers.history import SMSVM
from cmargin.solvers.newton import published as paper_newton
from cmargin.solvers.newton import subset
from cmargin.solvers.penalty import ElasticNet
from cmargin.solvers.problem import Problem, Settings
from cmargin.solvers.result import Result

X_bc, y_bc = load_breast_cancer(return_X_y=True)
X_bc = scale(X_bc)


def value_of(model, X, y, l2, l1, s=None, penalised=False):
    """P of a binary model, from the data: nothing the estimator says is trusted."""
    A = with_ones(X, True)
    w = np.append(model.coef_[0], model.intercept_[0])
    s = np.ones(len(y)) if s is None else s * len(y) / s.sum()
    return objective(A, np.where(y == model.classes_[1], 1, -1), s, w, l2, l1, None if penalised else A.shape[1] - 1)


@pytest.mark.parametrize("l2, l1", [(1e-1, 0), (1e-3, 0), (1e-5, 0), (1e-3, 1e-3), (1e-4, 3e-2), (0, 1e-2)])
@pytest.mark.parametrize("weighted", [False, True])
def test_certificate_holds(l2, l1, weighted):
    s = np.random.default_rng(3).integers(0, 4, len(y_bc)).astype(float) if weighted else None
    loose = SmSVMClassifier(l2=l2, l1=l1, tol=1e-2).fit(X_bc, y_bc, s)
    fine = SmSVMClassifier(l2=l2, l1=l1, tol=1e-7, max_passes=1000).fit(X_bc, y_bc, s)
    for model in (loose, fine):
        P = value_of(model, X_bc, y_bc, l2, l1, s)
        assert model.objective_[0] == pytest.approx(P, rel=1e-9)
        assert 0 <= model.duality_gap_[0] <= model.tol
    bound = loose.objective_[0] * (1 - loose.duality_gap_[0])
    assert bound <= fine.objective_[0] <= loose.objective_[0]


@pytest.mark.parametrize("l2", [1e-1, 1e-2, 1e-4])
def test_same_optimum_as_libsvm(l2):
    # the kernel machine with a linear kernel has the intercept we have: free
    reference = SVC(kernel="linear", C=1 / (l2 * len(y_bc)), tol=1e-8).fit(X_bc, y_bc)
    ours = SmSVMClassifier(l2=l2, tol=1e-8, max_passes=1000).fit(X_bc, y_bc)
    best = value_of(reference, X_bc, y_bc, l2, 0)
    assert best * (1 - 1e-4) <= ours.objective_[0] <= best * (1 + 2e-7)       # libsvm's own tolerance shows at 1e-4
    np.testing.assert_allclose(ours.coef_, reference.coef_, atol=2e-3 * np.abs(reference.coef_).max())


def test_same_optimum_as_a_linear_program():
    l1, (n, m) = 0.02, X_bc.shape                  # l2 = 0: min mean(xi) + l1 sum(p + q), an LP
    y = np.where(y_bc == 1, 1.0, -1.0)
    cost = np.r_[np.full(2 * m, l1), 0, 0, np.full(n, 1 / n)]
    A = -y[:, None] * np.hstack([X_bc, -X_bc, np.ones((n, 1)), -np.ones((n, 1))])
    best = linprog(cost, A_ub=np.hstack([A, -np.eye(n)]), b_ub=-np.ones(n)).fun
    ours = SmSVMClassifier(l2=0, l1=l1, tol=1e-7, max_passes=1000).fit(X_bc, y_bc)
    assert ours.objective_[0] == pytest.approx(best, rel=2e-7)
    assert 0 < np.count_nonzero(ours.coef_) < m and not np.any(np.abs(ours.coef_[ours.coef_ != 0]) < 1e-9)


@pytest.mark.parametrize("l1", [0.0, 1e-2])
def test_penalised_intercept_is_a_column_of_ones(l1):
    ours = SmSVMClassifier(l2=1e-2, l1=l1, penalize_intercept=True, tol=1e-7, max_passes=500).fit(X_bc, y_bc)
    column = SmSVMClassifier(l2=1e-2, l1=l1, fit_intercept=False, tol=1e-7, max_passes=500)
    column.fit(with_ones(X_bc, True), y_bc)
    assert ours.objective_[0] == pytest.approx(column.objective_[0], rel=1e-6)
    np.testing.assert_allclose(np.append(ours.coef_, ours.intercept_), column.coef_[0], atol=2e-3)


def test_dual_value_is_the_dual_at_its_own_variables():
    rng = np.random.default_rng(0)
    X, y, s, a = rng.standard_normal((50, 4)), np.where(rng.random(50) < 0.3, 1, -1), np.ones(50), rng.random(50)
    parts = np.stack([X.T @ (a * y * (y == side)) for side in (1, -1)]) / 50
    sums = [a[y == side].sum() / 50 for side in (1, -1)]
    got = penalties.bound(*certificate.feasible(parts, *sums, None), 0.5, 0.1)
    assert got == pytest.approx(max(0, dual_value(X, y, s, a, 0.5, 0.1)))
    # free intercept: the heavier side shrunk until the classes balance
    heavy = 1 if sums[0] > sums[1] else -1
    b = np.where(y == heavy, a * min(sums) / max(sums), a)
    assert abs(b @ y) < 1e-12
    with_column = np.hstack([parts, np.zeros((2, 1))])
    got = penalties.bound(*certificate.feasible(with_column, *sums, 4), 0.5, 0.1)
    assert got == pytest.approx(max(0, dual_value(X, y, s, b, 0.5, 0.1)))


# ---------------------------------------------------------------- shapes of data

def fit_quietly(X, y, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return SmSVMClassifier(**parameters).fit(X, y)


@pytest.mark.parametrize("fmt", [np.asarray, np.asfortranarray, sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("l1", [0.0, 1e-2])
def test_formats_agree(fmt, dtype, l1):
    reference = fit_quietly(X_bc, y_bc, l2=1e-3, l1=l1, tol=1e-6, max_passes=500)
    X = fmt(X_bc.astype(dtype))
    for n_jobs in (1, 3):
        model = fit_quietly(X, y_bc, l2=1e-3, l1=l1, tol=1e-6, max_passes=500, n_jobs=n_jobs)
        assert model.objective_[0] == pytest.approx(reference.objective_[0], rel=1e-5)
        scores = X @ model.coef_[0] + model.intercept_
        np.testing.assert_allclose(model.decision_function(X), scores, rtol=1e-4, atol=1e-5)


def test_same_bits_for_any_number_of_threads():
    X, y = load_digits(return_X_y=True)
    big = np.random.default_rng(1).standard_normal((24000, 12))
    label = (big @ np.linspace(-1, 1, 12) + np.random.default_rng(2).standard_normal(24000) > 0).astype(int)
    for data, target in ((X, y), (big, label)):
        bits = set()
        for n_jobs in (1, 2, 3):
            model = fit_quietly(data, target, n_jobs=n_jobs, random_state=5, l1=1e-4, max_passes=1000)
            bits.add((model.coef_.tobytes(), model.intercept_.tobytes(), model.duality_gap_.tobytes()))
        assert len(bits) == 1


def test_no_seed_is_a_seed_too():
    # from 20,000 rows on a subset is chosen, which was another one every time
    big = np.random.default_rng(1).standard_normal((24000, 12))
    label = big @ np.linspace(-1, 1, 12) > np.random.default_rng(2).standard_normal(24000)
    first, second = (SmSVMClassifier().fit(big, label) for _ in range(2))
    assert first.coef_.tobytes() == second.coef_.tobytes() and first.n_passes_ == second.n_passes_



@pytest.mark.parametrize("n, m, l1", [(40, 300, 0.0), (40, 900, 1e-3), (60, 400, 3e-2)])
def test_wide_data(n, m, l1):
    rng = np.random.default_rng(n + m)
    X, y = rng.standard_normal((n, m)), rng.random(n) < 0.5
    model = fit_quietly(X, y, l2=1e-3, l1=l1, linear_solver="auto" if l1 > 0 else "woodbury")
    assert model.objective_[0] == pytest.approx(value_of(model, X, y, 1e-3, l1), rel=1e-6)
    if l1 == 0:
        other = fit_quietly(X, y, l2=1e-3, linear_solver="cholesky")
        assert model.objective_[0] == pytest.approx(other.objective_[0], rel=2e-4)
        assert model.n_passes_ < other.n_passes_ / 3
    else:
        assert np.count_nonzero(model.coef_) < m / 4


def test_the_woodbury_form_of_rows_of_zeros_is_silent(capfd):
    # LAPACK wrote a line about a matrix of no rows to standard error
    model = fit_quietly(np.zeros((4, 6)), np.array([0, 1, 1, 1]), linear_solver="woodbury")
    assert model.objective_[0] == pytest.approx(0.5, rel=1e-3) and capfd.readouterr() == ("", "")


def test_the_woodbury_form_takes_float32_and_sparse_data():
    X, y = np.random.default_rng(8).standard_normal((30, 200)), np.arange(30) % 2
    models = [fit_quietly(A, y, l2=1e-2, tol=1e-6) for A in (X, X.astype(np.float32), sparse.csr_matrix(X))]
    for model in models[1:]:
        np.testing.assert_allclose(model.coef_, models[0].coef_, atol=1e-3 * np.abs(models[0].coef_).max())


def test_conjugate_gradients_reach_the_same_certificate():
    X = sparse.random(400, 900, 0.02, "csr", rng=np.random.default_rng(4))
    y = np.asarray(X.sum(1)).ravel() > 9
    cg = fit_quietly(X, y, l2=1e-3, linear_solver="cg")
    cholesky = fit_quietly(X, y, l2=1e-3, linear_solver="cholesky")
    assert cg.objective_[0] == pytest.approx(cholesky.objective_[0], rel=2e-4)


def test_constant_duplicate_and_empty_columns():
    X = np.hstack([X_bc, X_bc[:, :3], np.zeros((len(X_bc), 2)), np.ones((len(X_bc), 1))])
    plain = fit_quietly(X_bc, y_bc, l2=0, l1=1e-2)
    for l2, l1 in ((0, 1e-2), (1e-4, 0), (1e-4, 1e-3)):
        model = fit_quietly(X, y_bc, l2=l2, l1=l1)
        assert np.isfinite(model.coef_).all() and np.all(model.coef_[0, 33:35] == 0)
        if l2 == 0:
            assert model.objective_[0] == pytest.approx(plain.objective_[0], rel=2e-4)


def test_no_penalty_separable_and_not():
    X, y = load_iris(return_X_y=True)
    separable = fit_quietly(X, y == 0, l2=0)
    assert separable.objective_[0] == 0 and separable.duality_gap_[0] == 0 and separable.score(X, y == 0) == 1
    overlapping = fit_quietly(X, y == 1, l2=0)
    assert np.isnan(overlapping.duality_gap_[0])             # no certificate exists; the Newton decrement stops it
    best = SVC(kernel="linear", C=1e4, tol=1e-6).fit(X, y == 1)
    assert overlapping.objective_[0] <= value_of(best, X, y == 1, 0, 0) * (1 + 1e-4)


@pytest.mark.parametrize("l2", [1e-4, 1e-7])
def test_separable_data_with_little_penalty(l2):
    X, y = load_iris(return_X_y=True)
    model = fit_quietly(scale(X), y == 0, l2=l2)
    assert model.duality_gap_[0] <= 1e-4 and model.score(scale(X), y == 0) == 1


def test_nothing_to_separate_is_zero_to_rounding():
    # rows of one class have no weight: the objective is 5e-28, and no bound is within 1e-4 of that
    X, y = np.random.default_rng(0).random((10, 10)), np.arange(10) % 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = SmSVMClassifier().fit(X, y, y.astype(float))
    assert 0 <= model.duality_gap_[0] < 1e-15 and model.n_passes_ < 5 and np.all(model.predict(X) == 1)


def test_one_row_of_each_class():
    model = fit_quietly(np.array([[0.0, 1.0], [0.0, -1.0]]), [0, 1], l2=1e-3)
    np.testing.assert_allclose(model.coef_, [[0, -1]], atol=1e-3)


def test_multilabel_is_one_problem_a_label():
    X, Y = make_multilabel_classification(200, 8, n_classes=4, random_state=3)
    model = fit_quietly(X, Y)
    for c in range(4):
        one = fit_quietly(X, Y[:, c])
        np.testing.assert_array_equal(model.coef_[c], one.coef_[0])
    assert model.predict(X).shape == Y.shape and (model.predict(X) == Y).mean() > 0.75


def test_multiclass_scores_and_weights():
    X, y = load_iris(return_X_y=True)
    model = fit_quietly(X, y, class_weight="balanced")
    assert model.coef_.shape == (3, 4) and model.coef_.flags.c_contiguous and model.score(X, y) > 0.9
    doubled = SmSVMClassifier(class_weight={0: 2.0}).fit(X, y)
    by_rows = SmSVMClassifier().fit(X, y, np.where(y == 0, 2.0, 1.0))
    np.testing.assert_allclose(doubled.coef_, by_rows.coef_, rtol=1e-9)


# ---------------------------------------------------------------- the way there

def growing_problem(n=30000, m=12):
    rng = np.random.default_rng(6)
    X = rng.standard_normal((n, m))
    return X, X @ rng.standard_normal(m) + 2 * rng.standard_normal(n) > 2


def test_growing_subsets_save_passes_and_end_at_the_same_place():
    X, y = growing_problem()
    whole, grown = (fit_quietly(X, y, l2=1e-3, subset_growth=g, random_state=0) for g in (None, "auto"))
    assert grown.n_passes_ < whole.n_passes_
    assert grown.objective_[0] == pytest.approx(whole.objective_[0], rel=1e-4)
    share = np.diff(grown.history_["passes"])
    assert share[0] == pytest.approx(0.1, rel=0.05) and share[-1] >= 1
    assert np.all(np.diff(grown.history_["seconds"]) > 0)


def test_a_rare_class_gets_its_share_of_the_subset():
    code = np.where(np.arange(50000) < 200, 1.0, -1.0)
    rows, reads = subset.subset_of(open_rows(np.ones((50000, 1))).row_pass(code, intercept=False, n_threads=1), 0)
    assert (rows.signed_weight > 0).sum() == 200 and abs(rows.n_rows - 5000) < 250
    assert rows.signed_weight[rows.signed_weight > 0].sum() == pytest.approx(200)
    assert rows.total_weight == pytest.approx(50000)
    assert 0.25 < reads < 0.35                   # of those that could be chosen, were they long


def test_a_subset_that_chance_left_empty_is_no_subset(monkeypatch):
    # of 20 rows two are expected, and none is chosen for one seed in eight: their mean was not a number
    monkeypatch.setattr(cost, "SUBSET_FROM_ROWS", 10)
    monkeypatch.setattr(cost, "SUBSET_ROWS_PER_COLUMN", 0.01)
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 3)), np.arange(20) % 2
    source = open_rows(X)
    rows = source.row_pass(2.0 * y - 1, intercept=True, n_threads=1)
    empty = [seed for seed in range(60) if subset.subset_of(rows, seed)[0] is None]
    assert 0 < len(empty) < 30
    problem, settings = Problem(ElasticNet(1e-2), 3), Settings()
    with single_threaded_blas():
        drivers = [driver.finish() for driver in drivers_of(source, rows, problem, settings, empty[0])]
    assert len(drivers) == 1 and drivers[0].gap <= 1e-4


def test_a_label_that_no_row_has_grows_too():
    X = np.random.default_rng(0).standard_normal((25_000, 3))
    Y = np.column_stack([X[:, 0] > 0, np.zeros(25_000), X[:, 1] > 0]).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "Label 1 is absent from all")
        model = SmSVMClassifier(l2=1e-2, random_state=0).fit(X, Y)
    assert model.duality_gap_.max() <= 1e-4 and not model.predict(X)[:, 1].any()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("of", [np.ascontiguousarray, np.asfortranarray, sp.csr_matrix])
def test_rows_are_chosen_by_their_own_number(weighted, of):
    # not by where they lie or who reads them: in parts, with the place of the first, the choice is that of the whole
    rng = np.random.default_rng(0)
    code, X = rng.choice([-2.0, 0.0, 1.0], 40_000), rng.standard_normal((40_000, 3)) * [1, 10, 0.1]
    X, weight, sparse = of(X), np.array([1, 0.01, 100]) / 3 if weighted else None, of is sp.csr_matrix

    def draw(part, seed=7, n_threads=1):
        return chosen(Rows(X[part]), code[part], 0.3, 0.05, seed, part.start, weight, n_threads)

    whole, chance, n_read = draw(slice(0, 40_000))
    for n_threads in (2, 8):
        for one, other in zip(draw(slice(0, 40_000), n_threads=n_threads), (whole, chance, n_read), strict=True):
            np.testing.assert_array_equal(one, other)
    parts = [draw(slice(lo, min(lo + 9_000, 40_000))) for lo in range(0, 40_000, 9_000)]
    np.testing.assert_array_equal(np.concatenate([rows + 9_000 * k for k, (rows, _, _) in enumerate(parts)]), whole)
    np.testing.assert_array_equal(np.concatenate([part[1] for part in parts]), chance)
    assert sum(part[2] for part in parts) == n_read and (n_read > len(whole) if weighted else n_read == 0)
    assert np.all(code[whole] != 0) and not np.array_equal(draw(slice(0, 40_000), 8)[0], whole)
    squares = np.asarray(X.power(2) @ weight if sparse else X**2 @ weight) if weighted else 1.0
    expected = np.where(code > 0, 0.3, np.where(code < 0, 0.05, 0)) * (0.1 + 0.9 * np.minimum(squares, 3))
    np.testing.assert_allclose(chance, expected[whole], rtol=1e-12)
    for side in (code > 0, code < 0):
        n = expected[side].sum()
        assert abs(side[whole].sum() - n) < 5 * np.sqrt(n)


def test_neighbours_know_nothing_of_each_other_and_what_is_certain_is_chosen():
    ones = Rows(np.ones((100_000, 1)))
    gaps = np.diff(chosen(ones, np.ones(100_000), 0.1, 0.0, 3)[0])
    assert abs((gaps == 1).mean() - 0.1) < 0.02 and abs(gaps.mean() - 10) < 0.5
    counts = np.array([np.bincount(chosen(ones, np.ones(100_000), 0.1, 0.0, seed)[0] // 64, minlength=1563)[:1562]
                       for seed in range(50)])
    assert counts.var() == pytest.approx(64 * 0.1 * 0.9, rel=0.05)         # of 64 rows, as many as chance has it,
    taken = np.zeros(100_000)
    for seed in range(200):
        taken[chosen(ones, np.ones(100_000), 0.1, 0.0, seed)[0]] += 1
    assert abs(taken.var() / (200 * 0.1 * 0.9) - 1) < 0.05   # and every row is chosen one time in ten
    for positives, n in ((1.0, 100_000), (0.0, 0)):
        assert len(chosen(ones, np.ones(100_000), positives, 1.0, 0)[0]) == n
    rows, chance, _ = chosen(ones, np.ones(100_000), 0.5, 0.0, 0, 0, np.array([10.0]))
    assert len(rows) == 100_000 and np.all(chance == 1)
    for weight in (np.inf, np.nan):                          # of rows beyond the range of doubles: long ones
        assert chosen(ones, np.ones(100_000), 0.1, 0.0, 0, 0, np.array([weight]))[1] == pytest.approx(0.28)
    with pytest.raises(ValueError, match="chosen"):
        chosen(ones, np.ones(100), 0.1, 0.0, 0)
    with pytest.raises(ValueError, match="chosen"):
        chosen(ones, np.ones(100_000), 0.1, 0.0, 0, 0, np.ones(2))


@pytest.mark.parametrize("l2, l1", [(1e-2, 0.0), (1e-2, 1e-2), (1e-1, 5e-2)])
def test_published_algorithm_step_for_step(l2, l1, monkeypatch):
    y = np.where(y_bc == 1, 1.0, -1.0)
    # at the published 1e-6 rounding decides on steps: far from its limit Newton's method doubles it with every step,
    # and at 1e-5 the same steps are taken on one processor and not on another
    monkeypatch.setattr(paper_newton, "WIDTH_MIN", 1e-3)
    w, actives, _ = paper(X_bc, y, l2, l1, width_min=1e-3)
    rows = open_rows(X_bc).row_pass(y, intercept=False, n_threads=1)
    settings = Settings(tol=1e-300, max_passes=1e9, smoothing_decay=0.1)
    result = Result(np.zeros(30))
    settings.tell, seen = lambda _: seen.update([newton.active_set]), {}
    newton = paper_newton.PaperNewton(rows, Problem(ElasticNet(l2, l1)), settings, 0.1, result)
    with single_threaded_blas():
        newton.run()
    seen.pop(0)                                    # before the first direction
    assert list(seen) == list(range(1, len(actives) + 1))
    assert all(np.array_equal(one, other) for one, other in zip(seen.values(), actives, strict=True))
    np.testing.assert_allclose(newton.point, w, atol=1e-8)


def test_warm_start_helps_and_ends_at_the_same_place():
    model = SmSVMClassifier(l2=1e-3, warm_start=True, subset_growth=None).fit(X_bc, y_bc)
    model.set_params(l2=9e-4).fit(X_bc, y_bc)
    cold = SmSVMClassifier(l2=9e-4).fit(X_bc, y_bc)
    assert model.n_passes_ < cold.n_passes_ and model.objective_[0] == pytest.approx(cold.objective_[0], rel=2e-4)


def test_history_is_a_dict_of_columns():
    model = fit_quietly(X_bc, y_bc, l1=1e-3)
    length = {len(column) for column in model.history_.values()}
    assert len(length) == 1 and set(SMSVM) < set(model.history_)
    assert np.all(np.diff(model.history_["passes"]) > 0) and np.all(np.diff(model.history_["seconds"]) > 0)
    assert model.history_["gap"][-1] == model.duality_gap_[0] and model.history_["passes"][-1] == model.n_passes_
    assert isinstance(model.n_iter_, int) and isinstance(model.n_passes_, float)


def test_too_few_passes_are_said_with_the_gap():
    with pytest.warns(ConvergenceWarning, match=r"max_passes=5 with a relative duality gap of \d\.\de[-+]\d\d") as seen:
        model = SmSVMClassifier(max_passes=5).fit(X_bc, y_bc)
    assert len(seen) == 1 and model.n_passes_ <= 5 and model.score(X_bc, y_bc) > 0.9


def test_time_limit_is_kept():
    X, y = growing_problem(200_000, 40)
    start = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = SmSVMClassifier(tol=1e-15, l2=1e-7, max_time=0.05, max_passes=1e6).fit(X, y)
    assert time.perf_counter() - start < 30 and 0 < model.objective_[0] <= 1 and np.isfinite(model.coef_).all()


def test_callback_sees_a_usable_estimator_and_can_stop_it():
    seen = []

    def callback(estimator):
        seen.append(estimator.objective_[0])
        return len(seen) == 4

    model = SmSVMClassifier(callback=callback).fit(X_bc, y_bc)
    assert len(seen) == 4 and model.score(X_bc, y_bc) > 0.9 and np.all(np.diff(seen) <= 0)


def test_interrupt_leaves_the_best_point():
    def callback(estimator):
        if len(estimator.history_["step"]) >= 4:
            raise KeyboardInterrupt

    model = SmSVMClassifier(callback=callback)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X_bc, y_bc)
    assert model.score(X_bc, y_bc) > 0.9


def test_interrupt_on_the_subset_leaves_its_point():
    X, y = growing_problem()

    def callback(estimator):
        if np.any(estimator.coef_):
            raise KeyboardInterrupt

    model = SmSVMClassifier(callback=callback)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.score(X, y) > 0.7 and model.n_iter_ == len(model.history_["step"]) > 0 and 0 < model.n_passes_ < 1
    assert np.isnan(model.history_["objective"]).all()         # the subset's is not the whole problem's


def rare_indicators(n=30000):
    """Standardised indicators of a few rows each: as in the real forest data."""
    rng = np.random.default_rng(12)
    X = rng.standard_normal((n, 14))
    for j, count in enumerate((4, 20, 60, 150)):
        X[:, j] = 0
        X[rng.choice(n, count, replace=False), j] = 1
    y = X[:, 4:] @ rng.standard_normal(10) + X[:, :4] @ [3.0, -3.0, 3.0, -3.0] + rng.standard_normal(n) > 0
    return scale(X), y


def test_rare_indicators_do_not_cost_passes():
    X, y = rare_indicators()
    models = [fit_quietly(X, y, l2=1e-4, random_state=seed) for seed in range(5)]
    plain = fit_quietly(X, y, l2=1e-4, subset_growth=None)
    assert np.median([model.n_passes_ for model in models]) < 1.25 * plain.n_passes_
    assert all(model.objective_[0] == pytest.approx(plain.objective_[0], rel=1e-4) for model in models)
