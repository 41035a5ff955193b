"""Steps by conjugate gradients that the curvature of a sample of the rows preconditions: many wide dense rows."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from api import conjugate_gradients_of, numbers
from naive_smsvm import evaluate, sampled_curvature, smoothed, with_ones
from plans import problem_of
from scipy.linalg import cholesky
from test_row_pass import problem

from cmargin import SmSVMClassifier
from cmargin.data import open_rows
from cmargin.data.loss import Loss
from cmargin.data.memory.row_pass import MemoryRowPass
from cmargin.data.stats import DataStats
from cmargin.solvers import cost
from cmargin.solvers.newton.continuation import ContinuationNewton
from cmargin.solvers.penalty import ElasticNet
from cmargin.solvers.prices import (
    Sampled,
    price_of_evaluation,
    price_of_step,
    products_limit,
    sample_for_products,
    sampled_reads,
)
from cmargin.solvers.problem import Problem, Settings

LOSSES = ["hinge", "squared_hinge", "logistic"]


def rare(n, m, seed=0, dtype=np.float32):
    """Columns few rows have anything in, standardised, beside such as all rows have."""
    rng = np.random.default_rng(seed)
    often = np.exp(rng.uniform(np.log(0.003), 0, m))
    X = np.where(rng.random((n, m)) < often, rng.gamma(2, 1, (n, m)), 0)
    X = (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-12)
    scores = X @ rng.standard_normal(m)
    return X.astype(dtype), scores + 0.3 * scores.std() * rng.standard_normal(n) > np.quantile(scores, 0.6)


@pytest.fixture
def small(monkeypatch):
    """A few hundred rows are sampled, of few columns; no subset, no dual."""
    monkeypatch.setattr(cost, "CHEAP_HESSIAN_COLUMNS", 4)
    monkeypatch.setattr(cost, "HESSIAN_READS_PER_COLUMN", 20.0)


def driver(X, y, l2, loss, *, products_limit=30, products=0, w=None, n_threads=1, seed=3, tol=1e-6, rows=None,
           **settings):
    source = open_rows(X).row_pass(np.where(y, 1.0, -1.0), intercept=True, n_threads=n_threads)
    m = X.shape[1]
    settings = Settings(tol, **{"max_passes": 1e3} | settings)
    return ContinuationNewton(source, Problem(ElasticNet(l2), m, Loss(loss)), settings, w=w, products=products,
                              sampled=Sampled(rows or 10 * m, products_limit, seed))


def whole(X, y, l2, loss, tol=1e-6):
    source = open_rows(X).row_pass(np.where(y, 1.0, -1.0), intercept=True, n_threads=1)
    return ContinuationNewton(source, Problem(ElasticNet(l2), X.shape[1], Loss(loss)),
                              Settings(tol, max_passes=1e3)).run()


# ---------------------------------------------------------------- the block

@pytest.mark.parametrize("measured", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("fmt", ["C", "F", "csr32"])
def test_the_block_of_a_sample_equals_the_twin(fmt, dtype, measured):
    X, y, s, signed_weight = problem(fmt, dtype, True)
    A = with_ones(X, True)
    w = np.random.default_rng(5).standard_normal(12) * 0.4
    rows = open_rows(X).row_pass(signed_weight, intercept=True, n_threads=2)
    rows.let_sample()
    weight = np.random.default_rng(6).random(11)
    squares = A[:, :11]**2 @ weight if measured else 1.0
    sums, gradient, block = rows.evaluate_sample(w, 1.0, 1.0, 0.7, 2.0, 9, weight if measured else None)
    of_all = evaluate(A, y, s, 0 * w, w, 1.0, 0.7)
    h = smoothed(1 - y * (A @ w), 0.7)[2]
    expected = sampled_curvature(A, s, h, 2.0, numbers(9, len(y)), squares)
    np.testing.assert_allclose(sums[:6], of_all[0], rtol=1e-12)
    np.testing.assert_allclose(gradient, of_all[1], atol=1e-10)
    np.testing.assert_allclose(np.triu(block), np.triu(expected), atol=1e-4 * np.abs(expected).max())
    assert 0 < sums[6] < 0.7 * (s > 0).sum()
    again = rows.evaluate_sample(None, 1.0, 1.0, 0.7, 2.0, 9)[2]       # lengths are known from here on
    np.testing.assert_array_equal(np.triu(again), np.triu(block))


def test_on_average_it_is_that_of_all_rows():
    X, y, s, signed_weight = problem("C", np.float64, True)
    A, w = with_ones(X, True), np.linspace(-0.5, 0.5, 12)
    rows = open_rows(X).row_pass(signed_weight, intercept=True, n_threads=1)
    rows.let_sample()
    weight = np.full(11, 1 / 11)
    rows.evaluate_sample(w, 1.0, 1.0, 0.7, 2.0, 0, weight)
    blocks = [rows.evaluate_sample(None, 1.0, 1.0, 0.7, 2.0, seed)[2].copy() for seed in range(400)]
    expected = (A.T * (s * smoothed(1 - y * (A @ w), 0.7)[2])) @ A
    spread = np.std(blocks, axis=0) / 20
    assert (np.abs(np.triu(np.mean(blocks, axis=0) - expected)) <= 5 * np.triu(spread) + 1e-9).all()
    assert np.triu(spread)[0, 0] > 1e-3 * expected[0, 0]


# ---------------------------------------------------------------- products

def test_products_preconditioned_by_the_matrix_itself_are_one():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((60, 20)) * 10**rng.uniform(-2, 2, 20)
    H, b = A.T @ A + 1e-3 * np.eye(20), rng.standard_normal(20)
    own = np.diag(H).copy()
    x, count = conjugate_gradients_of(lambda v: H @ v, b, own, 1e-18, 100, cholesky(H))
    assert count <= 2
    np.testing.assert_allclose(x, np.linalg.solve(H, b), rtol=1e-6)
    B = A[:45]
    near, products = conjugate_gradients_of(lambda v: H @ v, b, own, 1e-18, 100,
                                            cholesky(B.T @ B / 45 * 60 + 1e-3 * np.eye(20)))
    np.testing.assert_allclose(near, x, rtol=1e-6, atol=1e-8)
    assert products < conjugate_gradients_of(lambda v: H @ v, b, own, 1e-18, 100)[1]


# ---------------------------------------------------------------- fits

@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_same_optimum_from_hardly_any_curvature(loss, dtype, order):
    X, y = rare(2000, 30, 1, dtype)
    X = np.asarray(X, order=order)
    there = whole(X, y, 1e-4, loss)
    newton = driver(X, y, 1e-4, loss)
    here = newton.run()
    assert here.status == "converged" and newton.preconditioned and here.gap <= 1e-6
    assert abs(here.objective / there.objective - 1) <= 2e-6
    curved = np.array([row[10] for row in here.history])
    assert 0 < curved.max() < 0.4 * len(y)                         # never the curvature of all
    assert here.passes < 12 * here.n_iter


class Forgetful(MemoryRowPass):
    def let_sample(self):
        """No room for the rows' lengths."""


@pytest.mark.parametrize("loss", LOSSES)
def test_long_rows_are_likelier_in_it(loss):
    # of columns that few rows have anything in a sample had none: mnist, standardised, took four times as long
    X, y = rare(6000, 40, 2)
    rows = Forgetful(open_rows(X).rows, np.where(y, 1.0, -1.0), intercept=True, n_threads=1)
    equal = ContinuationNewton(rows, Problem(ElasticNet(1e-5), 40, Loss(loss)), Settings(1e-4, max_passes=1e3),
                               sampled=Sampled(400, 100, 3)).run()
    assert driver(X, y, 1e-5, loss, products_limit=100, tol=1e-4).run().passes < 0.8 * equal.passes


@pytest.mark.parametrize("loss", LOSSES)
def test_the_same_bits_on_any_number_of_threads(loss):
    X, y = rare(3000, 130, 3)
    results = [driver(X, y, 1e-4, loss, n_threads=n, tol=1e-4).run() for n in (1, 2, 5)]
    assert all(np.array_equal(results[0].w, other.w) for other in results[1:])
    other = driver(X, y, 1e-4, loss, seed=4, tol=1e-4).run()
    assert not np.array_equal(results[0].w, other.w) and other.status == results[0].status == "converged"


@pytest.mark.parametrize("loss", LOSSES)
def test_a_sample_that_is_too_small_gives_way_to_the_block_of_all(loss):
    X, y = rare(2000, 60, 4)
    newton = driver(X, y, 1e-7, loss, products_limit=1, rows=60)
    here = newton.run()
    assert not newton.preconditioned and here.status == "converged"
    assert max(row[10] for row in here.history) > 0.3 * len(y)
    assert abs(here.objective / whole(X, y, 1e-7, loss).objective - 1) <= 2e-6


def test_after_products_that_the_diagonal_scales():
    rng = np.random.default_rng(0)
    X = np.cos(rng.standard_normal((1500, 5)) @ rng.standard_normal((5, 60)) + rng.uniform(0, 6, 60))
    y = X @ rng.standard_normal(60) + 0.1 * rng.standard_normal(1500) > 0
    newton = driver(X, y, 1e-5, "logistic", products=4)
    here = newton.run()
    assert newton.preconditioned and here.status == "converged"
    assert here.history[0][10] == 0 and 0 < max(row[10] for row in here.history) < 0.6 * len(y)
    assert here.passes < 0.7 * driver(X, y, 1e-5, "logistic", products=100, tol=1e-6).run().passes


@pytest.mark.parametrize("loss", LOSSES)
def test_from_a_point_of_the_users(loss):
    # how much curvature there is is not known there
    X, y = rare(2000, 30, 5)
    optimum = driver(X, y, 1e-4, loss).run()
    again = driver(X, y, 1e-4, loss, w=optimum.w, tol=1e-4).run()
    far = driver(X, y, 1e-4, loss, w=50 * np.random.default_rng(0).standard_normal(31)).run()
    assert again.status == far.status == "converged" and again.passes < 0.6 * optimum.passes
    assert abs(far.objective / optimum.objective - 1) <= 2e-6


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_no_curvature_at_all_at_the_start(loss):
    X, y = rare(1000, 30, 6)
    w = np.zeros(31)
    w[-1] = 1e6
    here = driver(X, y, 1e-2, loss, w=w).run()
    assert here.status == "converged" and here.gap <= 1e-6


@pytest.mark.parametrize("scale", [1e-22, 1e22])
def test_curvature_beyond_single_precision(scale):
    X, y = rare(1000, 30, 7, np.float64)
    X *= scale
    here = driver(X, y, 1e-3 * scale**2, "logistic").run()
    assert here.status == "converged" and here.gap <= 1e-6


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("most", [3, 10, 25])
def test_reads_are_limited(loss, most):
    X, y = rare(2000, 40, 8)
    result = driver(X, y, 1e-7, loss, products_limit=4, tol=1e-12, max_passes=float(most)).run()
    assert result.status == "max_passes" and result.passes <= most + 4 + 1       # a step's products, and its end
    assert np.isfinite(result.objective) and 0 <= result.gap <= 1


@pytest.mark.parametrize("loss", LOSSES)
def test_what_goes_on_from_a_checkpoint_is_the_same(loss):
    X, y = rare(2000, 40, 11)
    kept = []

    def stop():
        kept.append((one.preconditioned, pickle.dumps(one.state())))
        return False

    one = driver(X, y, 1e-6, loss, products=3 * (loss == "logistic"), tol=1e-5, stop=stop)
    one.run()
    assert one.status == "converged" and sum(after for after, _ in kept[:-1]) > 2
    for _, state in kept[:-1]:
        source = open_rows(X).row_pass(np.where(y, 1.0, -1.0), intercept=True, n_threads=1)
        other = ContinuationNewton(source, Problem(ElasticNet(1e-6), 40, Loss(loss)),
                                   Settings(1e-5, max_passes=1e3, stop=lambda: False))
        other.go_on_from(pickle.loads(state))
        other.finish()
        assert np.array_equal(other.result.w, one.result.w) and other.result.dual == one.result.dual
        assert other.result.passes == one.result.passes


def test_a_start_of_the_users_is_sampled_as_w_0_is():
    # where products scaled by the diagonal had told the columns' sizes away from 0, rows had no length, and a sample a
    # tenth of those that it should have
    X, y = rare(6000, 40, 12)
    here = driver(X, y, 1e-5, "logistic", products=1, tol=1e-4).run()
    there = driver(X, y, 1e-5, "logistic", products=1, tol=1e-4, w=np.full(41, 1e-12)).run()
    assert here.status == there.status == "converged" and there.passes <= 1.5 * here.passes
    first = [next(row[10] for row in result.history if row[10] > 0) for result in (here, there)]
    assert 0.7 < first[0] / first[1] < 1.4


def test_a_column_of_next_to_nothing_changes_no_sample():
    X, y = rare(1500, 30, 13, np.float64)
    X[:, 7] *= 1e-158
    result = driver(X, y, 1e-3, "hinge").run()
    assert result.status == "converged" and max(row[10] for row in result.history) < 0.6 * len(y)


# ---------------------------------------------------------------- what users see

@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_fits_of_users_are_certified(loss, n_classes, small):
    X, _ = rare(900, 12, 9, np.float64)
    rng = np.random.default_rng(0)
    y = (X[:, :n_classes] + 0.5 * rng.standard_normal((900, n_classes))).argmax(axis=1)
    s = rng.integers(0, 3, 900).astype(float)
    model = SmSVMClassifier(loss=loss, l2=1e-4, tol=1e-6).fit(X, y, s)
    block = SmSVMClassifier(loss=loss, l2=1e-4, tol=1e-6, linear_solver="cholesky").fit(X, y, s)
    assert (model.duality_gap_ <= 1e-6).all()
    np.testing.assert_allclose(model.objective_, block.objective_, rtol=3e-6)
    assert model.history_["active_rows"].max() < block.history_["active_rows"].max()
    assert model.n_passes_ > block.n_passes_


def test_the_sample_is_the_seeds(small):
    X, y = rare(900, 12, 10, np.float64)
    fits = [SmSVMClassifier(loss="squared_hinge", l2=1e-4, random_state=seed).fit(X, y).coef_ for seed in (0, 0, 1)]
    assert np.array_equal(fits[0], fits[1]) and not np.array_equal(fits[0], fits[2])


# ---------------------------------------------------------------- when

@pytest.mark.parametrize("shape, dtype, problem, settings, expected", [
    ((20480, 256), "f", {}, {}, Sampled(2048, 11, 8)),
    ((20480, 256), "f", {"loss": Loss("hinge")}, {}, Sampled(2048, 11, 8)),
    ((20480, 256), "f", {"loss": Loss("squared_hinge")}, {}, Sampled(2048, 11, 8)),
    ((20480, 256), "d", {}, {}, Sampled(2048, 5, 8)),
    ((20480, 256), "f", {}, {"max_passes": 100.0}, Sampled(2048, 10, 8)),
    ((20480, 256), "f", {}, {"max_passes": 39.0}, None),           # three products are too few
    ((2900, 256), "f", {}, {}, None),                              # most of the rows save too little
    ((20480, 127), "f", {}, {}, None),
    ((20480, 128), "d", {}, {}, None),
    ((20480, 256), "f", {"l1": 1e-3}, {}, None),
    ((20480, 256), "f", {"l2": 0.0}, {}, None),
    ((20480, 256), "f", {}, {"linear_solver": "cholesky"}, None),
    ((20480, 256), "f", {}, {"linear_solver": "cg"}, None),
])
def test_when_a_sample_is_taken(shape, dtype, problem, settings, expected):
    problem = problem_of(**{"l2": 1e-3, "l1": 0.0, "loss": Loss("logistic")} | problem)
    settings = Settings(**{"max_passes": 1000.0} | settings)
    stats = open_rows(np.zeros(shape, dtype)).describe()
    assert sample_for_products(stats, problem, settings) == expected


def test_what_it_changes_of_other_choices():
    many, few = (open_rows(np.zeros((n, 512), "f")).describe() for n in (40_000, 4_000))
    assert price_of_step(few, False) == price_of_evaluation(few, False) > 3 * price_of_step(many, False)
    logistic = Problem(ElasticNet(1e-3), None, Loss("logistic")), Settings(max_passes=1000.0)
    assert products_limit(few, *logistic) == 23 and products_limit(many, *logistic) == 6


@pytest.mark.parametrize("change, there", [
    ({}, True), ({"place": "files"}, False), ({"place": "ranks"}, False), ({"sparse": True}, False),
    ({"n_features": 5000}, False),                                 # no factor is made of so many
    ({"n_features": 3900}, True),
])
def test_of_which_rows_there_are_samples(change, there):
    stats = DataStats(400_000, 512, 400_000 * 512, 4, False, "memory", False, True)
    assert (sampled_reads(replace(stats, **change))[0] > 0) == there
