"""A smooth loss with l1 and as many columns as rows or more: Newton steps on a path of penalties from w = 0."""

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

SMOOTH = ("squared_hinge", "logistic")


def wide(seed=0, n=120, m=400):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, m))
    score = X @ (rng.standard_normal(m) * (rng.random(m) < 0.1))
    return X, np.where(score + 0.5 * score.std() * rng.standard_normal(n) > 0, 1.0, -1.0)


def fitted(X, y, C=10.0, **chosen):
    chosen = {"loss": "squared_hinge", "l2": 0.0, "l1": 1 / (C * len(y)), "tol": 1e-4, "max_passes": 300} | chosen
    return SmSVMClassifier(**chosen).fit(X, y)


def objective_of(model, X, y, l1):
    w = np.append(model.coef_[0], model.intercept_)
    return objective(model.loss, np.c_[X, np.ones(len(y))], y, np.ones(len(y)), w, 0.0, l1, X.shape[1])


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("C", [1.0, 30.0])
@pytest.mark.parametrize("seed", range(3))
def test_a_certificate_comes_in_a_bounded_number_of_passes(seed, C, loss):
    X, y = wide(seed)
    model = fitted(X, y, C, loss=loss)
    assert model.duality_gap_[0] <= 1e-4
    assert model.objective_[0] == pytest.approx(objective_of(model, X, y, 1 / (C * 120)), rel=1e-9)
    assert model.history_["passes"][-1] <= 60
    assert (model.coef_ != 0).sum() <= 121


def test_columns_in_use_come_one_after_the_other():
    # with the user's l1 from the start three times as many as there are rows were, and most had to go back to zero
    X, y = wide()
    assert fitted(X, y).history_["active_features"].max() <= 150


@pytest.mark.parametrize("loss", SMOOTH)
def test_an_easy_way_takes_few_weights(loss):
    # sixteen, each two thirds of the one before, where much l2 makes every step end at its minimum: 21 and 19 steps
    X, y = wide()
    assert fitted(X, y, loss=loss, l2=2.0, l1=1e-4).n_iter_ <= 12


@pytest.mark.parametrize("passes", [4, 9, 14])
def test_a_stop_on_the_path_reports_for_the_penalty_asked_for(passes):
    X, y = wide()
    with pytest.warns(UserWarning, match="max_passes"):
        model = fitted(X, y, max_passes=passes)
    assert model.objective_[0] == pytest.approx(objective_of(model, X, y, 1 / 1200), rel=1e-9)
    assert model.objective_[0] == pytest.approx(model.history_["objective"].min(), rel=1e-9)
    best = fitted(X, y).objective_[0]
    assert model.objective_[0] * (1 - model.duality_gap_[0]) <= best * (1 + 1e-9) <= model.objective_[0] * (1 + 2e-9)


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
def test_rows_elsewhere_go_the_same_way(container, loss):
    X, y = wide(m=90, n=120)
    X = container(X)
    problem, settings = Problem(ElasticNet(0.0, 1e-3), 90, Loss(loss)), Settings(tol=1e-4, max_passes=1e3)
    with single_threaded_blas():
        here = ContinuationNewton(open_rows(X).row_pass(y, intercept=True, n_threads=1), problem, settings).run()
        there = ContinuationNewton(Elsewhere.of(X, y, [30, 80], True), problem, settings).run()
    assert here.status == there.status == "converged" and there.n_iter == here.n_iter
    assert there.objective == pytest.approx(here.objective, rel=1e-9)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("passes", [3, 6, 8])
def test_a_checkpoint_on_the_path_goes_on_to_the_same_bits(passes, container, tmp_path):
    X, y = wide(n=80, m=300)
    X = container(X)
    whole = fitted(X, y)
    assert len(whole.history_["passes"]) > passes
    with pytest.raises(KeyboardInterrupt):
        fitted(X, y, checkpoint=Checkpoint(tmp_path / "fit", **OFTEN), callback=StopAt(passes))
    again = fitted(X, y, checkpoint=Checkpoint(tmp_path / "fit", **OFTEN))
    assert np.array_equal(again.coef_, whole.coef_) and np.array_equal(again.intercept_, whole.intercept_)
    assert np.array_equal(again.history_["objective"], whole.history_["objective"])


def test_a_warm_start_is_not_led_away():
    X, y = wide()
    model = fitted(X, y, warm_start=True)
    there = model.objective_[0]
    model.fit(X, y)
    assert len(model.history_["passes"]) <= 3
    assert model.history_["objective"].max() <= there * (1 + 1e-3)


def test_rows_in_plenty_take_no_path():
    X, y = wide(n=600, m=60)
    assert fitted(X, y).history_["passes"][-1] <= 10
