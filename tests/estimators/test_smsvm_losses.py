"""SmSVM with losses that need no smoothing: the optima of other packages, the certificate, every shape of data."""

import warnings

import numpy as np
import pytest
from api import LOSS_IDS, gains
from naive_smsvm import with_ones
from plans import drivers_of
from scipy import sparse
from scipy.optimize import minimize
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import scale
from sklearn.svm import LinearSVC

from cmargin import SmSVMClassifier
from cmargin._runtime.blas_threads import single_threaded_blas
from cmargin.data import open_rows
from cmargin.data.loss import Loss
from cmargin.solvers import cost
from cmargin.solvers.penalty import ElasticNet
from cmargin.solvers.problem import Problem, Settings

X_bc, y_bc = load_breast_cancer(return_X_y=True)
X_bc = scale(X_bc)
SMOOTH = ("squared_hinge", "logistic", "huberised_hinge", "modified_huber")
LARGEST = {"squared_hinge": np.inf, "modified_huber": 4.0}          # dual variable; 1 of the others


def loss_of(name, z):
    """F, F', F'' by the formulas; of the Huberised hinge with delta = 1."""
    if name in ("huberised_hinge", "modified_huber"):
        delta, scale = (1, 1) if name == "huberised_hinge" else (2, 4)
        u = np.clip(1 - z, 0, delta)
        return scale * (u**2 / (2 * delta) + np.maximum(1 - z - delta, 0)), -scale * u / delta, \
            scale / delta * ((z <= 1) & (1 - z <= delta))
    if name == "squared_hinge":
        return np.maximum(1 - z, 0) ** 2, -2 * np.maximum(1 - z, 0), 2.0 * (z <= 1)
    return np.logaddexp(0, -z), -1 / (1 + np.exp(z)), 1 / (2 + np.exp(z) + np.exp(-z))


def objective(name, A, signed_weight, s, w, l2, l1, free):
    beta = np.delete(w, free) if free is not None else w
    return s @ loss_of(name, signed_weight * (A @ w))[0] / s.sum() + l2 / 2 * beta @ beta + l1 * np.abs(beta).sum()


@pytest.mark.parametrize("name, largest", [("hinge", 1.0), ("squared_hinge", 4.0), ("logistic", 1.0),
                                           ("huberised_hinge", 1.0), ("modified_huber", 4.0)])
def test_the_gain_of_a_dual_variable_is_the_least_of_loss_and_line(name, largest):
    a, z = np.linspace(0, largest, 41), np.linspace(-30, 30, 240_001)
    value = np.maximum(0, 1 - z) if name == "hinge" else loss_of(name, z)[0]
    found = np.empty(41)
    gains(LOSS_IDS[name], a, found)
    np.testing.assert_allclose(found, [(value + b * z).min() for b in a], atol=2e-7)


@pytest.mark.parametrize("fmt", ["C", "F", "csr"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", SMOOTH)
def test_an_evaluation_equals_the_formulas(name, dtype, fmt):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((300, 7)).astype(dtype)
    y, s = np.where(rng.random(300) < 0.4, 1.0, -1.0), rng.integers(0, 3, 300).astype(float)
    signed_weight = np.where(s > 0, s, 1.0) * y * (s > 0)
    A, w, e = with_ones(X, True), *rng.standard_normal((2, 8))
    bits = set()
    for n_threads in (1, 2):
        rows = open_rows({"C": X, "F": np.asfortranarray(X), "csr": sparse.csr_matrix(X)}[fmt]).row_pass(signed_weight,
                             intercept=True, n_threads=n_threads)
        rows.set_loss(Loss(name))
        rows.evaluate(w, 1.0, 1.0, 1.0, 0.0)
        sums, gradient, hessian = rows.evaluate(e, 0.5, 1.0, 1.0, 0.0)
        bits.add((sums.tobytes(), gradient.tobytes(), hessian.tobytes()))
    assert len(bits) == 1
    z0, v = y * (A @ w), y * (A @ e)
    (value, slope, curvature), (_, slope0, curvature0) = loss_of(name, z0 + 0.5 * v), loss_of(name, z0)
    a = np.clip(-slope0 - curvature0 * v, 0, LARGEST.get(name, 1.0))
    G = np.empty(300)
    gains(LOSS_IDS[name], a, G)
    pos, neg = s * (y > 0), s * (y < 0)
    np.testing.assert_allclose(sums[[0, 1, 2, 3, 4, 5, 8, 9]], [s @ value, s @ (slope * v), s @ value, s @ value,
                                                                pos @ a, neg @ a, pos @ G, neg @ G], rtol=1e-10)
    np.testing.assert_allclose(gradient, [A.T @ (-s * y * slope), A.T @ (pos * a), -(A.T @ (neg * a))], atol=1e-9)
    np.testing.assert_allclose(np.triu(hessian), np.triu((A.T * (s * curvature)) @ A), atol=1e-9)
    assert rows.objective(w)[0] == pytest.approx(s @ loss_of(name, z0)[0], rel=1e-12)
    value, slope, curvature = loss_of(name, z0 + 0.3 * v)
    np.testing.assert_allclose(rows.line(0.3, 1.0), [s @ value, s @ (slope * v), s @ (curvature * v * v)], rtol=1e-12)


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_the_optimum_of_linear_svc(C):
    model = SmSVMClassifier(C=C, loss="squared_hinge", penalize_intercept=True, tol=1e-8).fit(X_bc, y_bc)
    theirs = LinearSVC(C=C, tol=1e-10, dual=False, max_iter=100_000).fit(X_bc, y_bc)
    np.testing.assert_allclose(model.coef_, theirs.coef_, atol=2e-4 * np.abs(theirs.coef_).max())
    assert model.duality_gap_[0] <= 1e-8


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_the_optimum_of_logistic_regression(C, weighted):
    s = np.random.default_rng(2).random(len(y_bc)) * 3 if weighted else None
    model = SmSVMClassifier(C=C, loss="logistic", tol=1e-9).fit(X_bc, y_bc, s)
    theirs = LogisticRegression(C=C, tol=1e-12, solver="newton-cholesky", max_iter=1000).fit(X_bc, y_bc, s)
    np.testing.assert_allclose(model.coef_, theirs.coef_, atol=2e-4 * np.abs(theirs.coef_).max())
    np.testing.assert_allclose(model.intercept_, theirs.intercept_, atol=1e-3 * np.abs(theirs.coef_).max())


@pytest.mark.parametrize("solver", ["auto", "cholesky", "cg", "woodbury"])
@pytest.mark.parametrize("shape", [(200, 8), (40, 120)])
@pytest.mark.parametrize("name", SMOOTH)
def test_certificates_hold_in_every_shape(name, shape, solver):
    rng = np.random.default_rng(5)
    cases = (1e-1, np.asarray, True), (1e-3, sparse.csr_matrix, False), (1e-5, np.asarray, False)
    for l2, container, penalised in cases:
        X = rng.standard_normal(shape) + 1
        y = np.where(X[:, 0] + rng.standard_normal(shape[0]) > 1, 1, -1)
        model = SmSVMClassifier(l2=l2, loss=name, linear_solver=solver, penalize_intercept=penalised)
        model.fit(container(X), y)
        A, w = with_ones(X, True), np.append(model.coef_[0], model.intercept_[0])
        free = None if penalised else shape[1]
        value = objective(name, A, y, np.ones(len(y)), w, l2, 0, free)

        def f(w, A=A, y=y, l2=l2, free=free):
            mask = np.arange(len(w)) != (-1 if free is None else free)
            z = y * (A @ w)
            return (objective(name, A, y, np.ones(len(y)), w, l2, 0, free),
                    A.T @ (y * loss_of(name, z)[1]) / len(y) + l2 * w * mask)

        best = minimize(f, w, jac=True, method="L-BFGS-B", options={"maxiter": 2000, "ftol": 1e-15, "gtol": 1e-10}).fun
        assert model.objective_[0] == pytest.approx(value, rel=1e-9)
        assert model.duality_gap_[0] <= 1e-4 and value - best <= 1e-4 * value


@pytest.mark.parametrize("name", SMOOTH)
def test_l1_gives_exact_zeros_and_a_certificate(name):
    model = SmSVMClassifier(l2=1e-4, l1=0.02, loss=name).fit(X_bc, y_bc)
    w, A = np.append(model.coef_[0], model.intercept_[0]), with_ones(X_bc, True)
    signed_weight = np.where(y_bc == 1, 1.0, -1.0)
    slope = A.T @ (signed_weight * loss_of(name, signed_weight * (A @ w))[1]) / len(A) + 1e-4 * w * (np.arange(31) < 30)
    off = np.where(w[:30] != 0, np.abs(slope[:30] + 0.02 * np.sign(w[:30])), np.maximum(np.abs(slope[:30]) - 0.02, 0))
    assert model.duality_gap_[0] <= 1e-4 and off.max() < 1e-2 and 0 < np.count_nonzero(w[:30]) < 20
    assert model.objective_[0] == pytest.approx(objective(name, A, signed_weight, np.ones(569), w, 1e-4, 0.02, 30),
                                                rel=1e-9)


@pytest.mark.parametrize("name", SMOOTH)
def test_many_rows_begin_on_a_tenth_of_them(name, monkeypatch):
    monkeypatch.setattr(cost, "SUBSET_FROM_ROWS", 1000)
    rng = np.random.default_rng(6)
    X = rng.standard_normal((6000, 10))
    y = np.where(X[:, 0] + rng.standard_normal(6000) > 0, 1, -1)
    model = SmSVMClassifier(loss=name).fit(X, y)
    whole = SmSVMClassifier(loss=name, subset_growth=None).fit(X, y)
    assert model.duality_gap_[0] <= 1e-4 and model.n_passes_ < whole.n_passes_ + 1     # easy rows gain nothing
    assert model.objective_[0] == pytest.approx(whole.objective_[0], rel=1e-4)


@pytest.mark.parametrize("name", SMOOTH)
def test_classes_weights_threads_and_warm_starts(name):
    X, y = load_iris(return_X_y=True)
    models = [SmSVMClassifier(C=1.0, loss=name, class_weight="balanced", n_jobs=n).fit(scale(X), y) for n in (1, 2, 3)]
    assert len({m.coef_.tobytes() for m in models}) == 1 and models[0].score(scale(X), y) > 0.9
    model = SmSVMClassifier(l2=1e-3, loss=name, warm_start=True).fit(X_bc, y_bc)
    cold = model.n_passes_
    assert model.set_params(l2=9e-4).fit(X_bc, y_bc).n_passes_ < cold


@pytest.mark.parametrize("name", SMOOTH)
def test_separable_data_without_a_penalty_end_with_the_passes(name):
    X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SmSVMClassifier(l2=0.0, loss=name, max_passes=50).fit(X, [0, 0, 1, 1])
    assert np.isfinite(model.coef_).all() and model.objective_[0] < 1e-3


def test_l2_or_C():
    by_C = SmSVMClassifier(C=0.5).fit(X_bc, y_bc)
    by_l2 = SmSVMClassifier(l2=1 / (0.5 * len(y_bc))).fit(X_bc, y_bc)
    assert by_C.coef_.tobytes() == by_l2.coef_.tobytes()
    default = SmSVMClassifier().fit(X_bc, y_bc)
    assert default.coef_.tobytes() == SmSVMClassifier(l2=1e-4).fit(X_bc, y_bc).coef_.tobytes()
    doubled = SmSVMClassifier(C=0.25).fit(X_bc, y_bc, np.full(len(y_bc), 2.0))
    assert doubled.objective_[0] == pytest.approx(by_C.objective_[0], rel=1e-9)
    # weights whose sum is beyond the range of doubles, their products with those of the classes being 1
    by_both = SmSVMClassifier(C=0.5, class_weight={0: 1e-307, 1: 1e-307}).fit(X_bc, y_bc, np.full(len(y_bc), 1e307))
    np.testing.assert_allclose(by_both.objective_, by_C.objective_, rtol=1e-9)
    with pytest.raises(ValueError, match="Give l2 or C, not both"):
        SmSVMClassifier(l2=1e-3, C=1.0).fit(X_bc, y_bc)


@pytest.mark.parametrize("parameters, wanted", [({"linear_solver": "dual"}, "needs loss='hinge' or 'squared_hinge'"),
                                                ({"line_search": "quadratic"}, "needs loss='hinge'")])
def test_what_other_losses_have_is_refused(parameters, wanted):
    with pytest.raises(ValueError, match=wanted):
        SmSVMClassifier(loss="logistic", **parameters).fit(sparse.csr_matrix(X_bc), y_bc)


@pytest.mark.parametrize("name", SMOOTH)
def test_rows_far_larger_than_others_stay_in_the_curvature(name, monkeypatch):
    # the model that treats them exactly is the smoothed hinge's: forest cover took 21 reads with it, 4.4 without
    monkeypatch.setattr(cost, "SUBSET_FROM_ROWS", 1000)
    rng = np.random.default_rng(10)
    X = rng.standard_normal((20_000, 6))
    X[:, 4], X[:, 5] = scale((rng.random((20_000, 2)) < (1.5e-3, 5e-4)).astype(float)).T
    y = np.where(X[:, 0] + 0.1 * X[:, 5] - 0.05 * X[:, 4] + rng.standard_normal(20_000) > 0, 1, -1)
    model = SmSVMClassifier(loss=name, l2=1e-5).fit(X, y)
    assert model.duality_gap_[0] <= 1e-4 and model.n_passes_ < 8


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("loss", SMOOTH)
def test_a_subset_is_left_where_its_end_cannot_be_seen_in_the_gaps_of_the_whole(loss, seed):
    # left at a gap of 3e-2, it cost an evaluation over all rows
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40_000, 20))
    signed_weight = np.where(X @ rng.standard_normal(20) + 2 * rng.standard_normal(40_000) > 0, 1.0, -1.0)
    source = open_rows(X)
    rows = source.row_pass(signed_weight, intercept=False, n_threads=1)
    with single_threaded_blas():
        first = next(drivers_of(source, rows, Problem(ElasticNet(1e-3), None, Loss(loss)), Settings(), seed))
        assert first.finish().gap <= 3e-4


@pytest.mark.parametrize("name", SMOOTH)
def test_the_first_evaluation_over_all_rows_measures_the_columns(name):
    # so that rounding in the sums of the last evaluation is known,
    # and the objective need not be evaluated by another read
    rng = np.random.default_rng(0)
    X = rng.standard_normal((21_000, 6)) * [1e3, 1, 1, 1, 1, 1e-3]
    y = np.where(X @ [1e-3, 1, -1, 0, 1, 1e3] + 2 * rng.standard_normal(21_000) > 0, 1, -1)
    model = SmSVMClassifier(loss=name, l2=1e-3, random_state=0).fit(X, y)
    assert np.diff(model.history_["passes"])[-1] == pytest.approx(1)
    w = np.append(model.coef_, model.intercept_)
    assert model.objective_[0] == pytest.approx(objective(name, with_ones(X, True), y, np.ones(len(y)), w, 1e-3, 0, 6),
                                                rel=1e-12)
    assert 0 <= model.duality_gap_[0] <= 1e-4


@pytest.mark.parametrize("seed", [0, 3, 5])
def test_columns_that_the_block_left_out_have_their_turn(seed):
    # 300 columns are chosen by the gradient of the step before: a block may gain nothing where others would
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((500, 300))
    y = (X[:, 0] + 3 * rng.standard_normal(500) > 0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = SmSVMClassifier(loss="squared_hinge", l1=0.08, l2=1e-5).fit(X, y)
    assert model.duality_gap_ <= 1e-4 and 0 < np.count_nonzero(model.coef_) < 100


def test_a_stop_at_rounding_is_reported_in_words_of_the_loss():
    X, y = scale(load_breast_cancer().data), load_breast_cancer().target
    for loss, words in (("squared_hinge", "no step gains"), ("hinge", "width is at its smallest")):
        with pytest.warns(ConvergenceWarning, match=f"rounding: .*{words}"):
            SmSVMClassifier(loss=loss, l2=1e-3, tol=1e-300).fit(X, y)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_a_loss_named_by_numpy(loss):
    X, y = load_breast_cancer(return_X_y=True)
    expected = SmSVMClassifier(loss=loss).fit(X, y)
    np.testing.assert_array_equal(SmSVMClassifier(loss=np.str_(loss)).fit(X, y).coef_, expected.coef_)


NARROW = [{"l1": 1e-3, "l2": 0.0}, {"l1": 1e-2, "l2": 0.0, "groups": np.arange(6) // 2},
          {"l2": 1e-3, "linear_solver": "cg"}, {"l2": 1e-5, "lower": 0.0}]


@pytest.mark.parametrize("more", NARROW, ids=["l1", "groups", "cg", "bounds"])
@pytest.mark.parametrize("delta", [0.3, 0.03, 1e-3])
def test_a_narrow_bend_is_come_to_where_no_row_has_curvature(delta, more):
    # no row has curvature at w = 0: the first step was as long as rounding had it, and fits ended there
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((40, 6))
        y = np.where(X[:, 0] + rng.standard_normal(40) > 0, 1, -1)
        found = SmSVMClassifier(loss="huberised_hinge", delta=delta, **more).fit(X, y)
        assert found.duality_gap_[0] <= 1e-4
        u = np.maximum(1 - y * found.decision_function(X), 0)
        value = np.where(u <= delta, u**2 / (2 * delta), u - delta / 2).mean()
        assert value < 0.8 and value <= found.objective_[0]
