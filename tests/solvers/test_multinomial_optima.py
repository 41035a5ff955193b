"""Multinomial optima of one set of rows at one penalty after another."""

import numpy as np
import pytest
from multinomial_problems import K, M, problem, solve

from cmargin.data import open_rows
from cmargin.data.memory import softmax_rows
from cmargin.solvers.multinomial.newton import Optima, Settings


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_penalties_in_turn_have_the_optima_of_each_alone(dtype):
    X, labels, weight = problem(5, 600, dtype=dtype)
    weight[labels == 1] = 0                                                   # a class without rows is spread out again
    for certified, tol in ((True, 1e-6), (False, 1e-2)):
        optima = Optima(open_rows(X), labels, weight, K, Settings(1e-1, tol, certified=certified))
        found = [optima.found()[0], *(optima.at(l2)[0] for l2 in (1e-3, 1e-1))]
        for l2, result in zip((1e-1, 1e-3, 1e-1), found, strict=True):
            alone, _ = solve(X, labels, weight, K, Settings(l2, 1e-8))
            assert result.stopped == "tol" and result.W.shape == (K, M) and 0 <= result.reads < 100
            assert np.isfinite(result.gap) == certified
            assert alone.objective * (1 - 1e-6) <= result.objective <= alone.objective * (1 + 2 * tol)


def test_what_one_penalty_has_spent_is_not_the_next_ones():
    X, labels, weight = problem(6, 600)
    optima = Optima(open_rows(X), labels, weight, K, Settings(1e-3, 1e-6))
    first, again = optima.found()[0], optima.at(1e-3)[0]
    assert again.reads <= 3 and again.reads < first.reads and len(again.history["passes"]) <= 1
    assert first.stopped == again.stopped == "tol" and again.objective <= first.objective * (1 + 1e-6)


@pytest.mark.parametrize("certified", [True, False])
def test_no_penalty_is_measured_by_the_objective_of_another(certified):
    # the lowest objective so far and the steps without a lower one are those of this penalty
    X = np.random.default_rng(0).standard_normal((300, 5))
    labels = X[:, :3].argmax(axis=1)
    optima = Optima(open_rows(X), labels, None, 3, Settings(1e-6, 1e-4, certified=certified))
    for result, l2 in ((optima.found()[0], 1e-6), *((optima.at(l2)[0], l2) for l2 in (1.0, 1e-6, 1e-2))):
        alone, _ = solve(X, labels, None, 3, Settings(l2, 1e-6))
        assert result.stopped == "tol" and result.objective <= alone.objective * (1 + 1e-3)


@pytest.mark.parametrize("nth", [2, 7, 12])
def test_after_an_interrupt_scores_are_those_of_the_point(monkeypatch, nth):
    X, labels, weight = problem(7, 600)
    optima = Optima(open_rows(X), labels, weight, K, Settings(1e-2, 1e-6, certified=False))
    run, watched = optima.run, []

    def interrupted():
        watched.append(1)
        if len(watched) == nth:
            raise KeyboardInterrupt

    monkeypatch.setattr(softmax_rows, "SLICE", 0.0)          # after every group of blocks, in the midst of a step
    monkeypatch.setattr(run.clock, "watch", interrupted)
    result, interruption = optima.found()
    assert isinstance(interruption.taken(), KeyboardInterrupt) and result.stopped == "interrupted"
    assert len(result.history["objective"]) == result.n_newton + 1       # the start, and every step that ended
    assert result.objective == result.history["objective"][-1]
    np.testing.assert_array_equal(result.W, run.V[:M].T)
    result, _ = optima.at(1e-3)
    assert result.objective <= solve(X, labels, weight, K, Settings(1e-3, 1e-8))[0].objective * (1 + 1e-5)
