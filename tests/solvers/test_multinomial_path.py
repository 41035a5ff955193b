"""Multinomial optima along penalties: what is proven without a fit, and what a fit that others lead to takes."""

import naive_softmax as naive
import numpy as np
import pytest
from multinomial_problems import K, problem, solve
from sklearn.datasets import load_digits, load_wine

from cmargin._runtime.clock import TimeUp
from cmargin.data import open_rows
from cmargin.solvers.multinomial.newton import Optima, Settings
from cmargin.solvers.multinomial.path import MultinomialPath, largest_l2

L2S = np.geomspace(5e-1, 5e-7, 10)


def rows_of(name):
    X, y = {"digits": load_digits, "wine": load_wine}[name](return_X_y=True)
    X = (X - X.mean(0)) / (X.std(0) + 1e-9)
    return X, y.astype(np.int64), len(np.unique(y))


def path_of(X, labels, n_classes, tol=1e-3, weight=None, **settings):
    return MultinomialPath(open_rows(X), labels, weight, n_classes, Settings(1.0, tol, **settings))


def objective(X, labels, weight, W, bias, l2):
    V = np.vstack([W.T, bias])
    return naive.risk(X, labels, weight, V, True)[0] + l2 / 2 * np.sum(W**2)


# ---------------------------------------------------------------- what is proven

@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("intercept", [True, False])
def test_bounds_between_two_fits_hold_the_objective_and_the_optimum(dtype, intercept):
    X, labels, weight = problem(3, 300, dtype=dtype)
    path = path_of(X, labels, K, 1e-6, weight, fit_intercept=intercept)
    path.solve(1e-1), path.solve(2e-2)
    for l2 in np.geomspace(2e-1, 1e-2, 9):
        found = path.certify(l2)
        best, _ = solve(X, labels, weight, K, Settings(l2, 1e-9, intercept))
        own = objective(X, labels, weight, found.W, found.bias, l2)
        assert own <= found.objective * (1 + 1e-9) and found.proven.dual <= best.objective * (1 + 1e-9)
        assert found.gap >= (own - best.objective) / own - 1e-9
    assert len(path.certify(5e-2).proven.primal_parts) == 2
    assert path.certify(1e-1).solved and not path.certify(5e-2).solved


@pytest.mark.parametrize("name, tol", [("wine", 1e-3), ("digits", 1e-2)])
def test_every_penalty_between_those_of_a_chosen_path_is_proven(name, tol):
    X, labels, n_classes = rows_of(name)
    path = path_of(X, labels, n_classes, tol)
    l2s = [found.l2 for found in path.intervals(largest_l2(open_rows(X)), None)]
    assert path.n_solved <= 1.2 * len(l2s) and path.training_error() == 0
    between = np.exp(np.random.default_rng(0).uniform(np.log(l2s[-1]), np.log(l2s[0]), 1000))
    assert max(path.certify(l2).gap for l2 in between) <= tol
    for l2 in between[:3]:
        found, best = path.certify(l2), solve(X, labels, None, n_classes, Settings(l2, 1e-8))[0]
        own = objective(X, labels, np.ones(len(X)), found.W, found.bias, l2)
        assert best.objective * (1 - 1e-8) <= own <= best.objective * (1 + tol)


def test_penalties_that_two_fits_prove_are_not_solved_for():
    X, labels, n_classes = rows_of("wine")
    grid = np.geomspace(1e-1, 1e-3, 200)
    path = path_of(X, labels, n_classes)
    found = dict(path.along(grid))
    assert list(found) == list(range(200)) and max(one.gap for one in found.values()) <= 1e-3
    assert path.n_solved < 60 and sum(one.solved for one in found.values()) == path.n_solved


def test_a_path_goes_down_to_the_penalty_that_is_asked_for():
    X, labels, _ = problem(4, 400)
    l2s = [found.l2 for found in path_of(X, labels, K, 1e-2).intervals(1.0, 1e-3)]
    assert l2s[0] == 1.0 and l2s[-1] == pytest.approx(1e-3) and np.all(np.diff(l2s) < 0)


# ---------------------------------------------------------------- what it takes

@pytest.mark.parametrize("name", ["digits", "wine"])
def test_fits_that_the_last_two_lead_to_take_fewer_reads(name):
    # from the last optimum alone wine took as many reads as from zero: 250 for 209
    X, labels, n_classes = rows_of(name)
    path = path_of(X, labels, n_classes, 1e-4)
    assert all(found.gap <= 1e-4 for _, found in path.along(L2S)) and path.n_solved == len(L2S)
    optima = Optima(open_rows(X), labels, None, n_classes, Settings(L2S[0], 1e-4))
    from_the_last = optima.found()[0].reads + sum(optima.at(l2)[0].reads for l2 in L2S[1:])
    cold = sum(solve(X, labels, None, n_classes, Settings(l2, 1e-4))[0].reads for l2 in L2S)
    assert path.passes < 0.85 * from_the_last and path.passes < 0.8 * cold


def test_the_next_penalty_begins_at_the_certificate_of_the_last_one():
    # its risk and gradient were read once more
    X, labels, weight = problem(6, 600)
    optima = Optima(open_rows(X), labels, weight, K, Settings(1e-3, 1e-6))
    optima.found()
    assert optima.at(1e-3)[0].reads == 1.0                           # the certificate


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_scores_are_those_of_the_weights(dtype):
    X, labels, weight = problem(5, 300, dtype=dtype)
    weight[labels == 2] = 0
    path = path_of(X, labels, K, 1e-6, weight)
    path.solve(1e-1), path.solve(2e-2)
    for found in (path.certify(2e-2), path.certify(5e-2)):
        reads, there = path.passes, [0, 1, 3]
        expected = X @ found.W[there].T + found.bias[there]
        np.testing.assert_allclose(path.scores(found), expected, rtol=1e-4, atol=1e-5)
        assert path.passes - reads == (0 if found.solved else 0.5)


# ---------------------------------------------------------------- how it ends

def test_time_ends_a_path_and_keeps_what_is_known():
    X, labels, _ = problem(7, 400)
    path = path_of(X, labels, K)
    path.solve(1e-1)
    path.optima.run.clock.deadline = 0.0
    with pytest.raises(TimeUp):
        path.solve(1e-4)
    assert path.stopped == "max_time" and path.n_solved == 1 and path.certify(1e-1).gap <= 1e-3


def test_the_largest_l2_is_that_of_the_rows_about_their_mean():
    X, _, weight = problem(8, 2500)
    total = np.cov(X.T, aweights=weight, ddof=0).trace()
    assert largest_l2(open_rows(X), weight) == pytest.approx(total / 2)
    assert largest_l2(open_rows(np.ones((5, 2)))) == 1.0
