"""Squared hinge with a small penalty and few rows within the margin: Newton steps on a path of penalties."""

import numpy as np
import pytest
from elsewhere import Elsewhere
from killed_fits import OFTEN, StopAt
from scipy import sparse
from test_smsvm_losses import objective

from cmargin import Checkpoint, SmSVMClassifier
from cmargin._runtime.blas_threads import single_threaded_blas
from cmargin.data import open_rows
from cmargin.data.loss import Loss
from cmargin.solvers.newton.continuation import ContinuationNewton
from cmargin.solvers.penalty import ElasticNet
from cmargin.solvers.problem import Problem, Settings


def nearly_separable(seed=0, n=1000, m=240):
    # a hyperplane and little noise: about as many rows as columns end within the margin
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, m))
    return X, np.where(X @ rng.standard_normal(m) + 2 * rng.standard_normal(n) > 0, 1.0, -1.0)


def fitted(X, y, **chosen):
    chosen = {"loss": "squared_hinge", "l2": 1e-5, "tol": 1e-5, "linear_solver": "cholesky"} | chosen
    return SmSVMClassifier(**chosen).fit(X, y)


@pytest.mark.parametrize("l1", [0.0, 1e-5])
@pytest.mark.parametrize("seed", range(4))
def test_a_certificate_comes_in_a_bounded_number_of_passes(seed, l1):
    # 48 to 63 passes, with l1 81 to 120; without the path 200 to 293, with l1 151 to 256
    X, y = nearly_separable(seed)
    model = fitted(X, y, l1=l1)
    w = np.append(model.coef_[0], model.intercept_)
    assert model.duality_gap_[0] <= 1e-5
    assert model.objective_[0] == pytest.approx(objective("squared_hinge", np.c_[X, np.ones(len(X))], y,
                                                          np.ones(len(X)), w, 1e-5, l1, 240), rel=1e-9)
    assert model.history_["passes"][-1] <= (140 if l1 else 80)


@pytest.mark.parametrize("solver", ["cg", "auto"])
@pytest.mark.parametrize("seed", range(3))
def test_steps_by_conjugate_gradients_take_the_path_too(seed, solver):
    # steps of a thousandth of their length: 23 to 94 evaluations and 2,200 to 7,700 passes, most of them products
    X, y = nearly_separable(seed, 650, 800)
    model = fitted(X, y, l2=None, C=30.0, tol=1e-3, linear_solver=solver, max_passes=1000)
    assert model.duality_gap_[0] <= 1e-3
    assert len(model.history_["passes"]) <= 20 and model.n_passes_ <= 900


def test_the_logistic_loss_takes_no_path():
    # its curvature is nowhere nothing: with a path these fits took 313 passes each, without 263 and 302
    passes = 0
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X = rng.standard_t(1.5, (1000, 300))
        y = np.where(X @ rng.standard_normal(300) + 2 * rng.standard_normal(1000) > 0, 1.0, -1.0)
        passes += fitted(X, y, loss="logistic", tol=1e-4, linear_solver="cg").n_passes_
    assert passes <= 600


@pytest.mark.parametrize("passes", [12, 20, 30])
def test_a_stop_on_the_path_reports_for_the_penalty_asked_for(passes):
    X, y = nearly_separable()
    with pytest.warns(UserWarning, match="max_passes"):
        model = fitted(X, y, max_passes=passes)
    w = np.append(model.coef_[0], model.intercept_)
    at_w = objective("squared_hinge", np.c_[X, np.ones(len(X))], y, np.ones(len(X)), w, 1e-5, 0.0, 240)
    assert model.objective_[0] == pytest.approx(at_w, rel=1e-9)
    assert model.objective_[0] == pytest.approx(model.history_["objective"].min(), rel=1e-9)
    best = fitted(X, y).objective_[0]
    assert model.objective_[0] * (1 - model.duality_gap_[0]) <= best * (1 + 1e-9) <= model.objective_[0] * (1 + 2e-9)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
def test_rows_elsewhere_go_the_same_way(container):
    X, y = nearly_separable(n=400, m=90)
    X = container(X)
    problem, settings = Problem(ElasticNet(1e-5), 90, Loss("squared_hinge")), Settings(tol=1e-4, max_passes=1e3)
    with single_threaded_blas():
        here = ContinuationNewton(open_rows(X).row_pass(y, intercept=True, n_threads=1), problem, settings).run()
        there = ContinuationNewton(Elsewhere.of(X, y, [100, 250], True), problem, settings).run()
    assert here.status == there.status == "converged" and there.n_iter == here.n_iter
    assert there.objective == pytest.approx(here.objective, rel=1e-9)


@pytest.mark.parametrize("passes", [8, 15, 25])
def test_a_checkpoint_on_the_path_goes_on_to_the_same_bits(passes, tmp_path):
    X, y = nearly_separable(n=400, m=90)
    whole = fitted(X, y)
    assert len(whole.history_["passes"]) > passes
    with pytest.raises(KeyboardInterrupt):
        fitted(X, y, checkpoint=Checkpoint(tmp_path / "fit", **OFTEN), callback=StopAt(passes))
    again = fitted(X, y, checkpoint=Checkpoint(tmp_path / "fit", **OFTEN))
    assert np.array_equal(again.coef_, whole.coef_) and np.array_equal(again.intercept_, whole.intercept_)
    assert np.array_equal(again.history_["objective"], whole.history_["objective"])
