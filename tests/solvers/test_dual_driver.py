"""The compiled loop of SmSVM's dual: slices, classes side by side, leaving and going on leave no trace in the bits."""

import pickle
from time import perf_counter

import numpy as np
import pytest
from naive import LOSS_VALUES
from scipy import sparse
from side_by_side import finish_together
from test_dual_newton import nearly_repeated

from cmargin import SmSVMClassifier
from cmargin._runtime.clock import RunClock
from cmargin.data import open_rows
from cmargin.data.loss import Loss
from cmargin.solvers.dual import dual_newton
from cmargin.solvers.newton import slices
from cmargin.solvers.penalty import ElasticNet
from cmargin.solvers.prices import BY_DUAL
from cmargin.solvers.problem import Problem, Settings
from cmargin.solvers.result import Result

BOTH = pytest.mark.parametrize("loss", BY_DUAL)


def drivers(n=4, m=900, loss="hinge", **chosen):
    """A driver for each of some problems on the same rows, evaluations at 0.4 of the tolerance."""
    X, y = nearly_repeated(m=m)
    signed_weight = [np.where(np.random.default_rng(seed).random(len(y)) < 0.1, -y, y) for seed in range(n)]
    shared = open_rows(X).dual_rows(True, True, None, 1e-5, Loss(loss))
    settings = Settings(**{"tol": 1e-6, "max_passes": 400.0, **chosen})
    problem = Problem(ElasticNet(1e-5), m, Loss(loss))
    return [dual_newton.DualNewton(shared.row_pass(one), problem, settings, Result(np.zeros(m + 1)))
            for one in signed_weight]


def bits(driver):
    result = driver.result
    return result.w.tobytes(), result.objective, result.dual, result.passes, result.n_iter, result.status


@BOTH
def test_slices_of_the_loop_change_nothing(loss):
    whole, cut = drivers(1, loss=loss)[0], drivers(1, loss=loss)[0]
    whole.run()
    cut.begin()
    n_slices = 0
    while cut.asks is not None:
        cut.advance(perf_counter() + 1e-5)
        cut.attend()
        n_slices += 1
    assert n_slices > 20 and whole.result.status == "converged"
    assert bits(cut) == bits(whole)


@BOTH
@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_classes_side_by_side_are_those_alone(n_threads, loss):
    alone, together = drivers(loss=loss), drivers(loss=loss)
    for driver in alone:
        driver.run()
    finish_together(together, n_threads)
    assert [bits(driver) for driver in together] == [bits(driver) for driver in alone]


def test_fewer_classes_than_threads_are_side_by_side_too(monkeypatch):
    # one after the other each has the use of one thread: ten classes took five times as long on sixteen as on eight
    X, y = nearly_repeated(m=900)
    y, at_work, advance = np.where(np.arange(len(y)) % 5, y, 2), [], slices.advance_all

    def counted(drivers, *given):
        at_work.append(len(drivers))
        advance(drivers, *given)

    monkeypatch.setattr(slices, "advance_all", counted)
    model = SmSVMClassifier(l2=1e-4, linear_solver="dual", random_state=0)
    alone = model.set_params(n_jobs=1).fit(X, y).coef_.tobytes()
    assert not at_work
    assert model.set_params(n_jobs=8).fit(X, y).coef_.tobytes() == alone and max(at_work) == len(model.classes_) == 3


@BOTH
def test_w_stays_the_sum_of_its_rows_once_moves_are_rounding(loss):
    # few directions: all was solved after some sweeps, steps along rounding errors took w 0.03 away, and the gap was 0
    rng = np.random.default_rng(1)
    X = sparse.csr_matrix(rng.standard_normal((200, 5)) @ rng.standard_normal((5, 400)))
    y = np.where(rng.random(200) < 0.5, 1.0, -1.0)
    rows = open_rows(X).dual_rows(True, False, None, 1e-4, Loss(loss)).row_pass(y)
    settings = Settings(tol=1e-14, max_passes=200.0)
    driver = dual_newton.DualNewton(rows, Problem(ElasticNet(1e-4), None, Loss(loss)), settings, Result(np.zeros(401)))
    driver.run()
    w = np.zeros(401)
    rows.add(np.arange(200), driver.a.copy(), w)
    np.testing.assert_allclose(driver.sweeps.sum, w, rtol=0, atol=1e-10 * np.abs(w).max())


def test_a_slice_that_is_over_reads_nothing():
    driver = drivers(1)[0]
    driver.begin()
    driver.advance(-np.inf)
    assert driver.asks == "rows" and driver.reads == 0


@BOTH
@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("moment", [0, 1, 40])
def test_who_leaves_evaluates_once_more_and_keeps_the_best_point(moment, warm, loss):
    driver = drivers(1, loss=loss, tol=1e-12)[0]
    if warm:
        driver.warm = np.random.default_rng(0).standard_normal(901)
    driver.begin()
    for _ in range(moment):
        driver.advance(perf_counter() + 1e-5)
        driver.attend()
    while moment and not driver.reads:                        # on a busy machine a slice may be over before it began
        driver.advance(perf_counter() + 1e-5)
        driver.attend()
    driver.leave("stopped")
    result = driver.finish()
    assert result.status == "stopped"
    if moment == 0 and not warm:                              # w = 0 is no model
        assert result.history == [] and result.objective == np.inf
        return
    assert len(result.history) > 0
    X, y = nearly_repeated()
    signed_weight = np.where(np.random.default_rng(0).random(len(y)) < 0.1, -y, y)
    mean = LOSS_VALUES[loss](signed_weight * (X @ result.w[:-1] + result.w[-1])).mean()
    assert result.objective == pytest.approx(mean + 5e-6 * result.w[:-1] @ result.w[:-1], rel=1e-12)
    assert result.dual <= result.objective


@pytest.mark.parametrize("seed", [302, 1103])
def test_a_fit_without_a_row_at_work_evaluates_all_of_them(seed):
    # weights of 1e-8 to 1e8: all rows came to rest beside an intercept that was not right yet, and nothing was read
    rng = np.random.default_rng(seed)
    X, y = sparse.csr_matrix(rng.standard_t(1.5, (74, 8))), np.where(rng.random(74) < 0.8, 1, 0)
    model = SmSVMClassifier(l2=1e3, linear_solver="dual", tol=1e-3, max_passes=300, max_time=30, random_state=0)
    model.fit(X, y, 10 ** rng.uniform(-8, 8, 74))
    assert model.duality_gap_[0] <= 1e-3 and model.n_passes_ < 50


def test_the_time_limit_is_heard_within_a_slice():
    driver = drivers(1, tol=1e-14, clock=RunClock(perf_counter()))[0]
    driver.warm = np.random.default_rng(0).standard_normal(901)
    driver.begin()
    driver.advance(np.inf)
    driver.attend()
    assert driver.asks is None and driver.result.status == "max_time" and len(driver.result.history) > 0


@BOTH
def test_a_driver_goes_on_from_what_another_kept(loss):
    whole, first, second = (drivers(1, loss=loss)[0] for _ in range(3))
    whole.run()
    first.pauses = True
    first.begin()
    for _ in range(2):
        first.advance(np.inf)
        assert first.asks == "pause"
        first.go_on()
    first.advance(np.inf)
    second.begin_or_go_on(pickle.loads(pickle.dumps(first.state())))
    second.finish()
    assert bits(second) == bits(whole) and len(second.result.history) == len(whole.result.history) > 3
