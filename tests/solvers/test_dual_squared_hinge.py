"""The dual of SmSVM with the squared hinge: every shape of data against Newton's method, and what is reported."""

import warnings

import naive_dual
import numpy as np
import pytest
from api import DualBlocks, smooth_minimum
from naive_smsvm import with_ones
from plans import begins_with_dual, foreseen
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from test_dense_dual import HARD_ROWS, INTERCEPTS, hard_rows, noisy
from test_dual_newton import nearly_repeated, text

from cmargin import SmSVMClassifier
from cmargin.data import open_rows
from cmargin.solvers import cost
from cmargin.solvers.dual import sample
from cmargin.solvers.prices import price_of_evaluation, reads_of_newton

LONG = np.longdouble


def fit(X, y, weights=None, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = SmSVMClassifier(**{"loss": "squared_hinge", "linear_solver": "dual", "max_passes": 5000, **parameters})
        return model.fit(X, y, weights)


def objective(X, y, weights, l2, intercept, model, c=0):
    """In extended precision, at the numbers that are there."""
    A = with_ones(X.toarray() if sparse.issparse(X) else X, intercept != "none").astype(LONG)
    w = np.append(model.coef_[c], model.intercept_[c:c + 1] if intercept != "none" else []).astype(LONG)
    penalised = w[:-1] if intercept == "free" else w
    loss = np.maximum(0, 1 - y * (A @ w)) ** 2
    return float(LONG(l2) / 2 * penalised @ penalised + weights.astype(LONG) @ loss / weights.astype(LONG).sum())


def is_certified(X, y, weights, l2, intercept, given=None, **parameters):
    """What is reported is true, held against Newton's method far below the tolerance."""
    parameters |= {"l2": l2, **INTERCEPTS[intercept]}
    given = weights if given is None else given
    model = fit(X, y, given, **parameters)
    best = fit(X, y, given, **(parameters | {"linear_solver": "cholesky", "tol": 1e-9})).objective_[0]
    value = objective(X, y, weights, l2, intercept, model)
    assert value == pytest.approx(model.objective_[0], rel=1e-10)
    assert -1e-12 <= model.duality_gap_[0] <= 1e-4
    assert best * (1 - 2e-9) <= value <= best / (1 - model.duality_gap_[0]) * (1 + 1e-9)
    return model


@pytest.mark.parametrize("stored", ["dense", "csr"])
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("l2", [1.0, 1e-2, 1e-4])
@pytest.mark.parametrize("m", [1, 23, 150])
def test_certificate_holds(l2, m, intercept, stored, dtype):
    X, y = noisy(m=m, dtype=dtype)
    if stored == "csr":
        X = sparse.csr_matrix(X * (np.random.default_rng(2).random(X.shape) < 0.3))
    weights = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    is_certified(X, y, weights, l2, intercept)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("class_weight", ["balanced", {1: 3.0, -1: 0.5}])
def test_weights_of_classes(class_weight, intercept):
    X, y = noisy(seed=5)
    y = np.where(np.arange(len(y)) % 3 == 0, 1, np.where(np.arange(len(y)) % 5 == 0, y, -1))
    of_class = {c: len(y) / (2 * (y == c).sum()) for c in (1, -1)} if class_weight == "balanced" else class_weight
    weights = np.where(y > 0, of_class[1], of_class[-1])
    is_certified(X, y, weights, 1e-2, intercept, np.ones(len(y)), class_weight=class_weight)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("kind", [*HARD_ROWS, "one row counts", "uneven weights"])
def test_hard_rows(kind, intercept):
    X, y = hard_rows("two rows" if kind == "one row counts" else kind)
    weights = np.ones(len(y))
    if kind == "one row counts":
        weights[1] = 0
    elif kind == "uneven weights":
        weights = 10.0 ** np.random.default_rng(0).integers(-9, 3, len(y))
    if kind == "one row counts" and intercept == "free":                 # the intercept alone does it: nothing is left
        model = fit(X, y, weights, l2=1e-2, **INTERCEPTS[intercept])
        assert model.objective_[0] <= 1e-15 and objective(X, y, weights, 1e-2, intercept, model) <= 1e-15
        return
    is_certified(X, y, weights, 1e-2, intercept)


def test_the_last_moves_finish_what_sweeps_cannot():
    X, y = nearly_repeated()
    is_certified(X, y, np.ones(len(y)), 1 / (1000 * len(y)), "none", max_passes=300)


def test_numbers_beyond_the_range_of_doubles_leave_finite_weights():
    X, y = noisy()
    for l2 in (1e-300, 1e300):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = SmSVMClassifier(loss="squared_hinge", linear_solver="dual", l2=l2, max_passes=30).fit(X, y)
        assert np.isfinite(model.coef_).all() and np.isfinite(model.objective_[0]) and model.duality_gap_[0] <= 1
    rare = fit(X, y, np.where(np.arange(120) < 60, 1.0, 1e-310), l2=1e-2)       # costs nothing beside the others
    alone = fit(X[:60], y[:60], l2=1e-2)
    assert rare.objective_[0] == pytest.approx(alone.objective_[0], rel=2e-4)


def test_smooth_minimum_is_no_worse_than_its_neighbours():
    rng = np.random.default_rng(0)
    for number in range(200):
        n, bounded = int(rng.integers(1, 12)), number % 2
        start, direction = rng.standard_normal((2, n)).round(1)
        ridge = 10.0 ** rng.integers(-3, 3, n)
        upper, square = (rng.random(n) if bounded else np.full(n, np.inf)), 10.0 ** rng.integers(-3, 3)
        blocks = DualBlocks(open_rows(np.zeros((n, 1))).rows, np.ones(n), upper, ridge, np.ones(n), 0.0, False, 1.0,
                            np.zeros(n))

        def value(t, start=start, direction=direction, box=(upper, ridge), square=square):
            u = start - t * direction
            return t**2 * square / 2 + naive_dual.gap_of(u, np.zeros(len(u)), *box).sum()
        found = smooth_minimum(blocks, start, direction, square, 1.0)
        assert all(value(found) <= (1 + 1e-12) * value(found + t) for t in (1e-5, -1e-5, 1e-2, -1e-2, 1.0, -1.0))


# ------------------------------------------------------------ what "auto" takes


def apart(n, m, seed=0):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    return rng.standard_normal((n, m)) + 3.6 / np.sqrt(m) * y[:, None], y


def bits_of(X, y, linear_solver, **parameters):
    model = fit(X, y, linear_solver=linear_solver, **parameters)
    return model.coef_.tobytes() + model.intercept_.tobytes()


@pytest.mark.parametrize("l2", [1e-1, 1e-3, 1e-6])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_auto_goes_by_the_dual_where_few_rows_are_not_far_inside_their_margin(l2, fit_intercept):
    X, y = apart(6000, 100)
    given = {"l2": l2, "fit_intercept": fit_intercept}
    assert bits_of(X, y, "auto", **given) == bits_of(X, y, "dual", **given)


def test_auto_goes_by_newton_where_many_are_and_the_penalty_is_small():
    X, y = noisy(6000, 100)
    assert bits_of(X, y, "auto", l2=1e-3) == bits_of(X, y, "cholesky", l2=1e-3) != bits_of(X, y, "dual", l2=1e-3)
    assert bits_of(X, y, "auto", l2=1.0) == bits_of(X, y, "dual", l2=1.0)


def test_every_class_is_looked_at_by_itself():
    X, y = apart(6000, 100)
    label = np.where(y > 0, 2, np.random.default_rng(1).integers(0, 2, len(y)))          # 0 and 1 lie on each other
    reads = [foreseen(X, np.where(label == c, 1.0, -1.0), 1e-4) for c in range(3)]
    assert reads[0] == reads[1] == 0 < reads[2]
    assert fit(X, label, l2=1e-4, linear_solver="auto").duality_gap_.max() <= 1e-4


@pytest.mark.parametrize("moved, reads", [(0.15, cost.SHORT_TRIAL_READS), (0.3, 0)])
def test_few_rows_without_a_margin_are_a_short_trial(moved, reads, monkeypatch):
    # mnist, class 3 at l2 = 1e-5, took 150 reads of the dual before Newton's method, which alone takes 13 evaluations
    X, y = noisy(2300, 300)                      # fewer rows than a sample has that preconditions products
    before = fit(X, y, l2=1e-6, linear_solver="cholesky").n_passes_
    monkeypatch.setattr(sample, "part_moved", lambda rows: moved)
    assert foreseen(X, y.astype(float), 1e-6) == reads
    model = fit(X, y, l2=1e-6, linear_solver="auto")
    assert model.duality_gap_[0] <= 1e-4
    assert reads <= model.n_passes_ <= before + reads + 3


def test_many_rows_a_column_are_a_subset_to_newtons_method():
    # whose evaluations cost less than the seven reads that the dual takes
    X, y = noisy(20_000, 125)
    l2 = 20 * (X**2).sum(axis=1).mean() / len(X)
    received = [foreseen(rows, y[:len(rows)].astype(float), l2 * len(X) / len(rows))
                for rows in (X, X[:19_000])]
    assert received == [0, np.inf]
    sparse_rows = open_rows(sparse.csr_matrix(np.where(X > 1, X, 0))).describe()  # sparse rows are priced as they were
    assert reads_of_newton(sparse_rows, True) == 4 * price_of_evaluation(sparse_rows, True)


@pytest.mark.parametrize("weights", [None, "some", "tiny"])
def test_the_sample_has_the_weights_of_its_rows(weights):
    X, y = apart(6000, 100)
    code = y * {None: 1.0, "some": np.arange(6000) % 4, "tiny": 1e-290}[weights]
    assert (foreseen(X, code, 1e-3) > 0) == (weights != "tiny")
    assert not foreseen(X, 0 * code, 1e-3)
    assert not foreseen(1e200 * X, y, 1e-3)


def test_sparse_rows_go_by_the_dual_where_the_penalty_is_large_beside_them():
    X, y = text(5000, 2000)
    chosen = [begins_with_dual(rows, 1e-2, loss="squared_hinge")
              for rows in (X, X[:, :40], X[:600, :300])]
    assert chosen == [True, False, True]
    # at 1e-7 a factor took 103 reads and 640 ms, and the dual, which was not tried, takes 50 and 28
    assert [foreseen(X, y, l2) for l2 in (1e-2, 1e-6, 1e-7)] == [120, 120, 120]
    assert foreseen(sparse.csr_matrix((3000, 60_000)), y, 1e-7)
    assert foreseen(X[:4000], y[:4000], 1e-7)       # two rows a column
    assert bits_of(X, y, "auto", l2=1e-2) == bits_of(X, y, "dual", l2=1e-2)


@pytest.mark.parametrize("shift", [0, 10])
@pytest.mark.parametrize("n, m, l2", [(400, 300, 1e-2), (100, 80, 1e-2), (1000, 800, 1e-5), (120, 300, 1e-6)])
def test_few_sparse_rows_that_the_dual_does_not_solve(n, m, l2, shift):
    # columns of uneven size: it was not given up, and 1,000 reads ended at a gap of 0.6 to 1
    rng = np.random.default_rng(0)
    stored = rng.random((n, m)) < 0.1
    X = sparse.csr_matrix((rng.standard_normal((n, m)) + shift) * stored * 10**rng.uniform(-2, 2, m))
    y = rng.random(n) < 0.5
    model = SmSVMClassifier(loss="squared_hinge", l2=l2).fit(X, y)
    by_factors = SmSVMClassifier(loss="squared_hinge", l2=l2, linear_solver="cholesky").fit(X, y)
    assert model.duality_gap_[0] <= 1e-4 and model.n_passes_ < 600
    assert model.objective_[0] == pytest.approx(by_factors.objective_[0], rel=2e-4)


@pytest.mark.parametrize("l2", [1e-3, 1e-5])
def test_few_sparse_rows_begin_with_the_dual_whatever_the_penalty(l2):
    # 560 x 13,820 at C = 100 took 223 ms by products and the reduced problem, 5 by the dual
    X, y = text(300, 400)
    assert bits_of(X, y, "auto", l2=l2) == bits_of(X, y, "dual", l2=l2)
    reduced = SmSVMClassifier(loss="squared_hinge", l2=l2, linear_solver="cholesky", tol=1e-6).fit(X, y)
    model = SmSVMClassifier(loss="squared_hinge", l2=l2).fit(X, y)
    assert model.duality_gap_[0] <= 1e-4
    assert model.objective_[0] == pytest.approx(reduced.objective_[0], rel=2e-4)


@pytest.mark.parametrize("penalised", [False, True])
def test_a_penalty_beside_which_no_row_counts(penalised):
    # from l2 = 1e198 on all rows were left out: objective and gap were 0, and the loss is about 1
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 5))
    y = np.where(X[:, 0] + rng.standard_normal(200) > 0.5, 1, -1)
    for l2 in (1e190, 1e200, 1e250):
        model = SmSVMClassifier(loss="squared_hinge", linear_solver="dual", l2=l2, penalize_intercept=penalised)
        model.fit(X, y)
        loss = (np.maximum(0, 1 - y * model.decision_function(X))**2).mean()
        assert model.objective_[0] == pytest.approx(loss, rel=1e-6) and model.duality_gap_[0] <= 1e-4


def test_the_dual_is_given_up_on_wide_sparse_rows_that_it_does_not_solve():
    # noise on more rows than columns: it read all rows a thousand times, and was 0.33 away
    rng = np.random.default_rng(0)
    X = sparse.random(20_000, 4500, 0.004, "csr", random_state=np.random.default_rng(1))
    X.data[:] = 1
    y = X @ rng.standard_normal(4500) + 4 * rng.standard_normal(20_000) > 0
    model = SmSVMClassifier(loss="squared_hinge", l2=1e-6).fit(X, y)
    assert model.duality_gap_[0] <= 1e-4 and model.n_passes_ < 300


@pytest.mark.parametrize("seed, C", [(0, 1), (1, 10)])
def test_counts_of_words_that_rows_share_stay_with_the_dual(seed, C):
    # it was left after a dozen reads for products, which took 271 and 396 where it ends after 51 and 42
    rng, n, m, each = np.random.default_rng(seed), 2100, 6000, 60
    X = sparse.csr_matrix((np.ones(n * each), rng.zipf(1.2, n * each) % m, np.arange(n + 1) * each), shape=(n, m))
    X.sum_duplicates()
    score = X @ (rng.standard_normal(m) * (rng.random(m) < 0.2))
    model = fit(X, score > np.quantile(score, 0.9), C=C, linear_solver="auto")
    assert model.duality_gap_[0] <= 1e-4 and model.n_passes_ < 120


@pytest.mark.parametrize("shape, first", [((200, 800), True), ((60, 2000), False), ((90, 120), False)])
def test_few_dense_rows_try_the_dual_where_as_many_unknowns_cost_more(shape, first):
    # 200 x 800 took 3 to 8 ms in as many unknowns as rows, 1 by the dual, and LinearSVC 2: they stored too few numbers
    assert begins_with_dual(np.zeros(shape), 1e-3, loss="squared_hinge") == first
