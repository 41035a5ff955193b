"""Many problems on the same dense rows by the Gram matrix of these rows: what is proven, on the rows themselves."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from cmargin import SmSVMClassifier, SmSVMClassifierCV
from cmargin.data.loss import Loss
from cmargin.data.open_here import source_of
from cmargin.solvers import cost
from cmargin.solvers.dual import gram as by_gram
from cmargin.solvers.penalty import ElasticNet
from cmargin.solvers.plan import ProblemStats, goes_by_gram_matrix
from cmargin.solvers.problem import Settings

LOSSES = {"hinge": lambda z: np.maximum(0, 1 - z), "squared_hinge": lambda z: np.maximum(0, 1 - z)**2}
INTERCEPTS = {"free": (True, True), "penalised": (True, False), None: (False, False)}


class Signs:
    """`Labels` of given signs, (n_problems, n)."""

    def __init__(self, signs):
        self.signs = signs

    def __len__(self):
        return len(self.signs)

    def signed_weight(self, c, weights):
        return self.signs[c] * weights


def drawn(seed):
    """Rows, among them copies, empty ones and columns of one value, signs, weights, some 0."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(4, 40)), int(rng.integers(1, 30))
    X = rng.standard_normal((n, m)) * 10.0**(rng.uniform(-1, 1, m) * rng.integers(2))
    X[rng.integers(n, size=n // 4)] = X[rng.integers(n)] * rng.integers(2)
    X[:, rng.integers(m)] = rng.integers(3)
    y = np.where(X @ rng.standard_normal(m) + X.std() * rng.standard_normal(n) > rng.normal(), 1.0, -1.0)
    y[0], y[-1] = 1, -1
    weight = np.where(rng.random(n) < 0.3, 0, rng.random(n)) if seed % 2 else np.ones(n)
    weight[[0, -1]] = 1
    return X, y, weight


def objective(X, y, weight, loss, l2, intercept, w):
    m = X.shape[1]
    z = y * (X @ w[:m] + (w[m] if intercept else 0))
    square = w[:m] @ w[:m] + (w[m]**2 if intercept == "penalised" else 0)
    return weight @ LOSSES[loss](z) / weight.sum() + l2 / 2 * square


def least(X, y, weight, loss, l2, intercept):
    """The minimum by SLSQP, over the weights and every row's slack t >= 0, t >= 1 - y z."""
    n, m = X.shape
    Z = y[:, None] * (np.column_stack([X, np.ones(n)]) if intercept else X)
    p, s = Z.shape[1], weight / weight.sum()
    counts = np.ones(p)
    counts[m:] = intercept == "penalised"
    power = 1 if loss == "hinge" else 2
    A = np.hstack([Z, np.eye(n)])

    def value(x):
        return l2 / 2 * counts @ x[:p]**2 + s @ x[p:]**power

    def slope(x):
        return np.concatenate([l2 * counts * x[:p], s * (1 if power == 1 else 2 * x[p:])])

    found = minimize(value, np.concatenate([np.zeros(p), np.ones(n)]), jac=slope, method="SLSQP",
                     bounds=[(None, None)] * p + [(0, None)] * n, options={"maxiter": 500, "ftol": 1e-12},
                     constraints={"type": "ineq", "fun": lambda x: A @ x - 1, "jac": lambda x: A})
    return min(value(found.x), objective(X, y, weight, loss, l2, intercept, found.x[:p]))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_what_is_proven_holds_on_the_rows(loss, intercept):
    given, free = INTERCEPTS[intercept]
    for seed in range(12):
        X, y, weight = drawn(seed)
        gram = source_of(X, y).gram_matrix(given, free)
        path = by_gram.GramPath(gram, 1.0, Signs(y[None]), weight, Loss(loss), Settings(tol=1e-5), 1, None)
        for l2 in (1.0, 0.1, 1e-3):
            by_gram.solve_side_by_side(gram, path.problems, path.loss, l2, path.settings, 1)
            one = path.problems[0]
            assert one.proven and one.objective - one.dual <= 1e-5 * one.objective
            found = path.certify(l2)[0]
            value = objective(X, y, weight, loss, l2, intercept, found.w)
            assert value == pytest.approx(found.objective, rel=1e-8)
            scores = X @ found.w[:X.shape[1]] + (found.w[-1] if given else 0)
            np.testing.assert_allclose(found.scores, scores, rtol=1e-8, atol=1e-8 * np.abs(scores).max(initial=1))
            minimum = least(X, y, weight, loss, l2, intercept)
            assert found.dual <= minimum * (1 + 1e-7) and minimum <= value * (1 + 1e-6)


def test_scores_read_anew_are_those_of_products():
    X, y, _ = drawn(4)
    for given, free in INTERCEPTS.values():
        gram = source_of(X.astype(np.float32), y).gram_matrix(given, free)
        problems = gram.problems(np.stack([y, -y]))
        by_gram.solve_side_by_side(gram, problems, Loss("hinge"), 0.01, Settings(tol=1e-4), 1)
        before = [one.z.copy() for one in problems]
        gram.read(problems)
        for one, z in zip(problems, before, strict=True):
            np.testing.assert_allclose(one.z, z, rtol=1e-9, atol=1e-9 * np.abs(z).max())


def test_squares_that_overflow():
    X = np.eye(4) * 1e200
    with pytest.raises(FloatingPointError, match="overflow"), np.errstate(over="ignore", invalid="ignore"):
        source_of(X).gram_matrix(True, True)
    X, y = np.tile(np.eye(8) * 1e200, (4, 1)), np.tile(np.arange(8), 4)
    with pytest.warns(ConvergenceWarning):       # by Newton's method
        assert np.isfinite(SmSVMClassifier().fit(X, y).coef_).all()


def clouds(n=400, m=200, n_classes=20, seed=0, noise=1.5):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    return rng.standard_normal((n_classes, m))[y] + noise * rng.standard_normal((n, m)), y


def goes(X, n_problems, n_fits, loss="hinge", **settings):
    stats = source_of(X).describe()
    about = ProblemStats(Loss(loss), ElasticNet(1e-3, 0.0), X.shape[1] + 1, n_problems)
    return goes_by_gram_matrix(stats, about, Settings(**settings), n_fits)


def test_where_it_goes_by_the_gram_matrix():
    X, _ = clouds()
    assert goes(X, 20, 20) and goes(X, 20, 20, "squared_hinge")
    assert goes(X[:, :50], 20, 60) and not goes(X[:, :50], 20, 20)       # one fit each has nothing from others
    assert not goes(X, 20, 5) and not goes(X, 2, 100) and not goes(X[:, :10], 20, 20)
    assert not goes(X, 20, 20, "logistic") and not goes(X, 20, 20, linear_solver="cholesky")


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_fit_of_many_classes(loss, dtype):
    X, y = clouds()
    X, weight = X.astype(dtype), np.random.default_rng(1).random(len(y))
    for more in ({}, {"fit_intercept": False}, {"penalize_intercept": True}):
        model = SmSVMClassifier(l2=1e-3, loss=loss, tol=1e-5, **more).fit(X, y, weight)
        assert (model.n_passes_per_class_ == 2).all() and (model.duality_gap_ <= 1e-5).all()
        other = SmSVMClassifier(l2=1e-3, loss=loss, tol=1e-6, linear_solver="cholesky", **more).fit(X, y, weight)
        np.testing.assert_allclose(model.objective_, other.objective_, rtol=2e-5)
        kind = None if "fit_intercept" in more else "penalised" if more else "free"
        for c in range(len(model.classes_)):
            w = np.append(model.coef_[c], model.intercept_[c])
            value = objective(X.astype(float), np.where(y == c, 1, -1), weight, loss, 1e-3, kind, w)
            assert value == pytest.approx(model.objective_[c], rel=1e-8)


def test_bits_do_not_depend_on_threads_or_order_of_memory():
    X, y = clouds(seed=2)
    fits = [SmSVMClassifier(l2=1e-3, n_jobs=threads).fit(X, y).coef_.tobytes() for threads in (1, 2, 3)]
    assert len(set(fits)) == 1
    searches = [SmSVMClassifierCV(l2s=[1e-2, 1e-3, 1e-4], cv=3, n_jobs=threads).fit(X, y) for threads in (1, 3)]
    assert searches[0].scores_.tobytes() == searches[1].scores_.tobytes()
    assert searches[0].coef_.tobytes() == searches[1].coef_.tobytes()


@pytest.mark.parametrize("loss", LOSSES)
def test_a_search_scores_as_fits_to_copied_rows_do(loss):
    X, y = clouds(seed=3, noise=2.0)
    rows = np.arange(len(y))
    folds = [(rows[rows % 3 != k], rows[rows % 3 == k]) for k in range(3)]
    estimator = SmSVMClassifier(loss=loss, tol=1e-6)
    search = SmSVMClassifierCV(Cs=[0.01, 0.1, 1], cv=folds, estimator=estimator, refit=False).fit(X, y)
    assert search.n_passes_ == 1 and (search.cv_results_["max_duality_gap"] <= 1e-6).all()
    for fold, (train, test) in enumerate(folds):
        for place, C in enumerate(search.penalties_):
            model = SmSVMClassifier(C=C, loss=loss, tol=1e-7, linear_solver="cholesky").fit(X[train], y[train])
            assert search.scores_[fold, place, 0] == pytest.approx(model.score(X[test], y[test]), abs=2 / len(test))


def test_a_scorer_that_asks_for_weights_has_them():
    X, y = clouds(seed=4)
    search = SmSVMClassifierCV(l2s=[1e-2, 1e-3], cv=2, refit=False, scoring=lambda model, X, y: model.score(X, y))
    plain = SmSVMClassifierCV(l2s=[1e-2, 1e-3], cv=2, refit=False)
    assert np.array_equal(search.fit(X, y).scores_, plain.fit(X, y).scores_)


def test_problems_that_it_does_not_prove_are_solved_otherwise(monkeypatch):
    X, y = clouds(seed=5)
    monkeypatch.setattr(by_gram, "MOST_ROUNDS", 1)
    model = SmSVMClassifier(l2=1e-3).fit(X, y)
    assert (model.duality_gap_ <= 1e-4).all() and (model.n_passes_per_class_ != 2).all()
    search = SmSVMClassifierCV(l2s=[1e-2, 1e-3], cv=2, refit=False).fit(X, y)
    assert (search.cv_results_["max_duality_gap"] <= 1e-4).all() and search.n_passes_ > 1


def test_labels_that_are_not_exclusive_and_classes_that_a_fold_lacks():
    X, y = clouds(seed=6)
    Y = np.eye(20, dtype=int)[y]
    Y[:, 1] |= Y[:, 2]
    model = SmSVMClassifier(l2=1e-3).fit(X, Y)
    assert (model.n_passes_per_class_ == 2).all() and (model.duality_gap_ <= 1e-4).all()
    train = np.flatnonzero(y != 7)
    with pytest.warns(UserWarning, match="7"):
        search = SmSVMClassifierCV(l2s=[1e-2], cv=[(train, np.arange(len(y)))], refit=False).fit(X, y)
    assert 0.8 < search.best_score_ <= 0.95


def test_time_that_is_over():
    X, y = clouds(seed=7)
    with pytest.warns(UserWarning, match="max_time"):
        search = SmSVMClassifierCV(l2s=[1e-2, 1e-3], cv=2, max_time=1e-9).fit(X, y)
    assert np.isnan(search.scores_).all()


def test_copies_of_rows_of_other_classes_at_the_weakest_penalties():
    """Factors of such rows are all but singular: steps go no farther than they gain, and nothing overflows."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n, k = int(rng.integers(30, 120)), int(rng.integers(5, 9))
        X = rng.standard_normal((n, n))[rng.integers(n, size=n)]
        y = np.append(np.arange(k), rng.integers(k, size=n - k))
        weight = 10.0**rng.uniform(-3, 3, n)
        gram = source_of(X, y).gram_matrix(False, False)
        signs = np.where(y == np.arange(k)[:, None], 1.0, -1.0)
        path = by_gram.GramPath(gram, 1.0, Signs(signs), weight, Loss("squared_hinge"), Settings(tol=1e-4), 1, None)
        for C in (1e4, 1e7):
            by_gram.solve_side_by_side(gram, path.problems, path.loss, 1 / (C * weight.sum()), path.settings, 1)
            assert all(np.isfinite(one.objective) and np.isfinite(one.z).all() for one in path.problems)


def test_an_overflow_at_one_penalty_is_forgotten_at_the_next():
    X, y = np.random.default_rng(0).standard_normal((40, 8)) * 1e-150, np.arange(40) % 2 * 2 - 1.0
    gram = source_of(X, y).gram_matrix(True, True)
    path = by_gram.GramPath(gram, 1.0, Signs(y[None]), np.ones(40), Loss("squared_hinge"), Settings(tol=1e-4), 1, None)
    for l2 in (1e-307, 1.0):
        by_gram.solve_side_by_side(gram, path.problems, path.loss, l2, path.settings, 1)
    assert path.problems[0].proven and np.isfinite(path.problems[0].s).all()


def test_what_rounding_of_the_intercept_costs_a_heavy_row_is_told():
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((20, 3)) + rng.choice([0, 1e3]), np.where(rng.random(20) < 0.5, 1.0, -1.0)
        y[:2], weight = (1, -1), np.ones(20)
        weight[rng.integers(20)] = 1e12
        gram = source_of(X, y).gram_matrix(True, True)
        path = by_gram.GramPath(gram, 1.0, Signs(y[None]), weight, Loss("hinge"), Settings(tol=1e-3), 1, None)
        for l2 in (1e4, 1e-2):
            by_gram.solve_side_by_side(gram, path.problems, path.loss, l2, path.settings, 1)
            one = path.problems[0]
            w = by_gram.ByGram(l2, one.objective, one.dual, None, (gram, one.scale, one.b, one.s)).w
            value = objective(*(a.astype(np.longdouble) for a in (X, y, weight)), "hinge", l2, "free",
                              w.astype(np.longdouble))
            assert value <= one.objective * (1 + 1e-9)


def test_a_loss_from_a_grid():
    X, y = clouds(seed=8)
    for loss in np.array(list(LOSSES)):
        model = SmSVMClassifier(l2=1e-3, loss=loss).fit(X, y)
        assert (model.n_passes_per_class_ == 2).all()


# ---------------------------------------------------------------- products of the rows that a problem lists

@pytest.fixture
def listed(monkeypatch):
    monkeypatch.setattr(cost, "GRAM_UP_TO_ROWS", 100)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_what_listed_rows_prove_holds_on_the_rows(loss, intercept):
    given, free = INTERCEPTS[intercept]
    proven = 0
    for seed in range(12):
        X, y, weight = drawn(seed)
        products = source_of(X, y).gram_matrix(given, free, whole=False)
        for l2 in (1.0, 1e-3):
            def hear(c, one, w):
                nonlocal proven
                proven += 1
                value = objective(X, y, weight, loss, l2, intercept, w)                           # noqa: B023
                minimum = least(X, y, weight, loss, l2, intercept)                                # noqa: B023
                assert one.objective - one.dual <= 1e-4 * one.objective
                assert value == pytest.approx(one.objective, rel=1e-8)
                assert one.dual <= minimum * (1 + 1e-7) and minimum <= value * (1 + 1e-6)

            by_gram.solve_by_listed_rows(products, Signs(y[None]), weight, Loss(loss), l2, Settings(tol=1e-4), 1, hear)
    assert proven >= 16


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", "CF")
def test_a_fit_by_listed_rows(listed, loss, dtype, order):
    X, y = clouds()
    X, weight = np.asarray(X + 3, dtype, order=order), np.random.default_rng(1).random(len(y))
    X.setflags(write=False)
    for more in ({}, {"fit_intercept": False}, {"penalize_intercept": True}):
        model = SmSVMClassifier(l2=1e-3, loss=loss, tol=1e-4, **more).fit(X, y, weight)
        assert (model.n_passes_per_class_ >= 3).all() and (model.n_passes_per_class_ < 20).all()
        assert (model.duality_gap_ <= 1e-4).all()
        kind = None if "fit_intercept" in more else "penalised" if more else "free"
        other = SmSVMClassifier(l2=1e-3, loss=loss, tol=1e-5, linear_solver="cholesky", **more).fit(X, y, weight)
        np.testing.assert_allclose(model.objective_, other.objective_, rtol=2e-4)
        for c in range(len(model.classes_)):
            w = np.append(model.coef_[c], model.intercept_[c])
            value = objective(X.astype(float), np.where(y == c, 1, -1), weight, loss, 1e-3, kind, w)
            assert value == pytest.approx(model.objective_[c], rel=1e-8)


def test_where_it_goes_by_listed_rows(listed, capsys):
    X, y = clouds(seed=2)
    fits = [SmSVMClassifier(l2=1e-3, tol=1e-3, n_jobs=threads, verbose=2).fit(X, y).coef_.tobytes()
            for threads in (1, 2, 3)]
    assert len(set(fits)) == 1 and "by products of the rows that each lists" in capsys.readouterr().out
    SmSVMClassifier(l2=1e-3, tol=1e-3, verbose=2).fit(X, y < 3)
    SmSVMClassifier(l2=1e-3, tol=1e-3, verbose=2).fit(X[:, :30], y)
    assert "lists" not in capsys.readouterr().out


def test_problems_that_list_too_many_rows_are_solved_otherwise(listed):
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((2000, 210)), rng.integers(0, 2, (2000, 30))
    model = SmSVMClassifier(l2=1e-3, tol=1e-3).fit(X, Y)
    assert (model.duality_gap_ <= 1e-3).all()


@pytest.mark.parametrize(("share", "n_asked", "n_heard"), [(0.5, 14, 0), (0.004, 40, 40)])
def test_no_more_problems_list_rows_where_few_of_the_first_are_proven(monkeypatch, share, n_asked, n_heard):
    rng, asked, heard, solve = np.random.default_rng(3000), set(), [], by_gram.solve_problems
    X, signs = rng.standard_normal((900, 100)), np.where(rng.random((40, 900)) < share, 1.0, -1.0)
    signs[:, 0] = 1

    def counted(rows, problems, *args):
        asked.update(problems)
        solve(rows, problems, *args)

    monkeypatch.setattr(by_gram, "solve_problems", counted)
    products = source_of(X).gram_matrix(True, True, whole=False)
    by_gram.solve_by_listed_rows(products, Signs(signs), np.ones(900), Loss("squared_hinge"), 1e-2, Settings(tol=1e-4),
                                 1, lambda c, *_: heard.append(c))
    assert len(asked) == n_asked and len(heard) == len(set(heard)) == n_heard


def test_squares_of_listed_rows_that_overflow():
    with pytest.raises(FloatingPointError, match="overflow"), np.errstate(over="ignore", invalid="ignore"):
        source_of(np.eye(4) * 1e200).gram_matrix(True, True, whole=False)
