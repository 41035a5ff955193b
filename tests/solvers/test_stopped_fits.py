"""A fit that was stopped classifies: classes that were not reached keep the ridge regression they all start with."""

import time
import warnings
from unittest.mock import patch

import numpy as np
import pytest
from killed_fits import StopAt
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import balanced_accuracy_score

from cmargin import MarginPursuitClassifier, PegasosClassifier, SLNDClassifier, SmSVMClassifier, baselines
from cmargin._runtime import clock
from cmargin.data import open_rows
from cmargin.data.files import open_files
from cmargin.data.loss import Loss
from cmargin.data.memory.shared_start import ridge, sample_rows
from cmargin.solvers.dual.dual_newton import DualNewton
from cmargin.solvers.multinomial import newton as multinomial_newton
from cmargin.solvers.newton import stages
from cmargin.solvers.sgd import low_rank_newton

X, y = load_digits(return_X_y=True)
ESTIMATORS = [SmSVMClassifier, MarginPursuitClassifier]


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("Estimator", ESTIMATORS)
def test_a_fit_stopped_in_its_first_class_still_classifies(Estimator, container):
    # classes not begun scored 0 and won over solved ones at -1: accuracy 0.01 with a hundred classes
    model = Estimator(callback=StopAt(3, None)).fit(container(X), y)
    assert model.score(container(X), y) > 0.9
    assert np.isfinite(model.objective_).all()


@pytest.mark.parametrize("Estimator", ESTIMATORS)
def test_a_callback_sees_a_model_that_classifies(Estimator):
    seen = []
    Estimator(callback=lambda model: seen.append(model.score(X, y)) or len(seen) == 4).fit(X, y)
    assert min(seen) > 0.9


@pytest.mark.parametrize("Estimator", ESTIMATORS)
def test_a_keyboard_interrupt_leaves_a_model_that_classifies(Estimator):
    model = Estimator(callback=StopAt(2))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.score(X, y) > 0.9 and np.isfinite(model.objective_).all()


@pytest.mark.parametrize("Estimator", ESTIMATORS)
def test_a_time_limit_is_kept_and_the_classes_left_out_are_named(Estimator):
    # 100 classes: 15 % of the time gave 0.01 to 0.23 of the accuracy. The bound on seconds is a guard, not a figure
    rng = np.random.default_rng(0)
    label = rng.integers(0, 100, 5000)
    rows = (0.35 * rng.standard_normal((100, 100))[label] + 0.5 * rng.standard_normal((5000, 100))).astype("f")
    begun = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match=r"\d+ classes were not trained .* start with: \d+, "):
        model = Estimator(max_time=0.05).fit(rows, label)       # whole fits take 0.35 s and more
    assert time.perf_counter() - begun < 5 and model.score(rows, label) > 0.95


def test_time_that_is_over_before_the_first_class():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SmSVMClassifier(max_time=1e-9).fit(X, y)
    assert model.score(X, y) > 0.9 and model.n_iter_ == 0 and (model.duality_gap_ > 0.5).all()
    assert np.isinf(model.objective_).all()                # not evaluated, and not said to be anything


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("model", [
    SmSVMClassifier(), SmSVMClassifier(loss="logistic"), SmSVMClassifier(fit_intercept=False),
    SmSVMClassifier(l1=1e-3), SmSVMClassifier(linear_solver="dual"), MarginPursuitClassifier(),
    baselines.ODMClassifier(), baselines.CatoniHingeClassifier(), baselines.CGDescentClassifier(),
    baselines.ProjectionProfileClassifier()], ids=str)
@pytest.mark.parametrize("few", [2, 10])
def test_two_classes_without_time_are_told_apart(model, few, container):
    # weights of 0 called every row the same: 0.5 of the rows where ridge regression has 0.99
    rows, labels = container(X[y < few] / 16), y[y < few]
    with pytest.warns(ConvergenceWarning, match="max_time=1e-09"):
        model.set_params(max_time=1e-9).fit(rows, labels)
    assert model.score(rows, labels) > 0.9 and np.isin(np.unique(labels), model.predict(rows)).all()


@pytest.mark.parametrize("few", [2, 3])
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_rows_in_files_too(loss, few, tmp_path):
    # the start's objective is not evaluated there, and what is not known was not below that of w = 0
    np.save(tmp_path / "X.npy", X[y < few] / 16)
    files, labels = open_files(tmp_path / "X.npy", in_memory=False), y[y < few]
    model = SmSVMClassifier(loss=loss, callback=StopAt(1, None)).fit(files, labels)
    assert model.score(X[y < few] / 16, labels) > 0.9


def test_an_optimum_stopped_between_its_first_evaluation_and_its_first_step_classifies(monkeypatch):
    # a first entry of its history, at weights of 0, was taken for weights
    record = multinomial_newton.Run.renew_inverse

    def late(self):
        self.clock.deadline = 0.0
        record(self)
        self.clock.watch()

    monkeypatch.setattr(multinomial_newton.Run, "renew_inverse", late)
    with pytest.warns(ConvergenceWarning, match="ridge"):
        model = SLNDClassifier(l2=1e-3, max_time=100.0).fit(X, y)
    assert model.score(X, y) > 0.9 and np.isinf(model.objective_) and model.n_iter_ == 0


def test_what_is_reported_of_a_stopped_fit_is_true():
    model = SmSVMClassifier(callback=StopAt(14, None)).fit(X, y)
    scores = X @ model.coef_.T + model.intercept_
    code = np.where(y[:, None] == model.classes_, 1.0, -1.0)
    value = np.maximum(0, 1 - code * scores).mean(axis=0) + 1e-4 / 2 * (model.coef_**2).sum(axis=1)
    np.testing.assert_allclose(model.objective_, value, rtol=1e-9)


def test_the_limit_changes_nothing_where_it_is_not_reached():
    plain, limited = SmSVMClassifier().fit(X, y), SmSVMClassifier(max_time=1e3).fit(X, y)
    assert plain.coef_.tobytes() == limited.coef_.tobytes()


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
@pytest.mark.parametrize("unreached", [{"max_time": 1e3}, {"callback": lambda model: False}], ids=list)
def test_nor_where_the_intercept_is_penalised(unreached, loss):
    # the start's objective lacked the intercept's penalty, and took the place of certified weights under their gap
    flowers = load_iris(return_X_y=True)
    plain = SmSVMClassifier(C=1e-3, loss=loss, penalize_intercept=True).fit(*flowers)
    limited = clone(plain).set_params(**unreached).fit(*flowers)
    np.testing.assert_array_equal(limited.intercept_, plain.intercept_)
    np.testing.assert_array_equal(limited.objective_, plain.objective_)


@pytest.mark.parametrize("l1", [0.0, 0.1])
def test_the_objective_of_a_start_has_the_penalty_of_its_intercept(l1):
    model = SmSVMClassifier(callback=StopAt(2, None), l2=0.1, l1=l1, penalize_intercept=True).fit(X, y)
    code = np.where(y[:, None] == model.classes_, 1.0, -1.0)
    value = np.maximum(0, 1 - code * (X @ model.coef_.T + model.intercept_)).mean(axis=0)
    weights = np.column_stack([model.coef_, model.intercept_])
    value += 0.1 / 2 * (weights**2).sum(axis=1) + l1 * abs(weights).sum(axis=1)
    np.testing.assert_allclose(model.objective_, value, rtol=1e-9)


@pytest.mark.parametrize("few, parameters", [
    (few, parameters) for few in (10, 2) for parameters in (
        {}, {"loss": "logistic"}, {"loss": "squared"}, {"l2": 1e-3}, {"loss": "multinomial", "l2": 1e-3},
        {"loss": "logistic", "fit_intercept": False})], ids=str)
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
def test_slnd_without_time_for_a_pass_classifies(parameters, container, few):
    # it was at chance, with weights of 0
    rows, labels = X[y < few] / 16, y[y < few]
    with pytest.warns(ConvergenceWarning, match="max_time=1e-09.* ridge regression of all classes"):
        model = SLNDClassifier(max_time=1e-9, random_state=0, **parameters).fit(container(rows), labels)
    assert model.score(container(rows), labels) > 0.85
    assert "l2" not in parameters or (np.isinf(model.duality_gap_) and np.isinf(model.objective_))


def test_weights_of_the_rows_say_which_of_the_two_is_better():
    # with 3 % positives, weights of 0 are right about more rows, and about half of their weight
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((2000, 5))
    label = (rows[:, 0] + 0.5 * rng.standard_normal(2000) > 2.1).astype(int)
    for loss in ("multinomial", "logistic"):
        with pytest.warns(ConvergenceWarning, match="ridge"):
            model = SLNDClassifier(loss=loss, class_weight="balanced", max_time=1e-9, random_state=0).fit(rows, label)
        assert balanced_accuracy_score(label, model.predict(rows)) > 0.7


def test_slnd_without_time_keeps_weights_that_it_goes_on_from():
    model = SLNDClassifier(random_state=0, warm_start=True).fit(X / 16, y)
    before = model.coef_.copy()
    with pytest.warns(ConvergenceWarning, match="weights reached are kept"):
        model.set_params(max_time=1e-9).fit(X / 16, y)
    np.testing.assert_allclose(model.coef_, before, atol=1e-6 * np.abs(before).max())


@pytest.mark.parametrize("shape", [(60, 5), (20, 50)])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
def test_ridge_in_columns_and_in_rows(shape, container):
    rng = np.random.default_rng(1)
    A, Y, s = rng.standard_normal(shape) + 2, np.sign(rng.standard_normal((3, shape[0]))), rng.random(shape[0])
    W = ridge(container(A), Y, s, True, 0.1)
    p = s / s.sum()
    Z = A - p @ A
    direct = np.linalg.solve(Z.T @ (Z * p[:, None]) + 0.1 * np.eye(shape[1]), Z.T @ (p[:, None] * (Y.T - Y @ p))).T
    np.testing.assert_allclose(W[:, :-1], direct, atol=1e-9)
    np.testing.assert_allclose(W[:, -1], Y @ p - direct @ (p @ A), atol=1e-8)


def test_the_sample_of_rows_is_small_and_has_every_class():
    labels = np.repeat(np.arange(50), 4000)
    rows = sample_rows(open_rows(np.empty((200_000, 40))), np.argsort(labels, kind="stable"), 50)
    assert len(rows) == 2000 and np.all(np.diff(rows) > 0) and set(labels[rows]) == set(range(50))


def test_evaluation_of_the_start_ends_with_the_time():
    from cmargin._estimators.labels import Labels
    start = open_rows(X).shared_start(Labels(np.arange(10), y), np.ones(len(y)), True, 1e-4, Loss("hinge"))
    start.evaluate(lambda: True)
    assert np.isinf(start.risk).all()
    start.evaluate(lambda: False)
    assert (start.risk < 1).all()


def test_an_interrupt_in_the_middle_of_a_record_leaves_whole_entries(monkeypatch):
    record = low_rank_newton.Run._record

    def torn(self, sums, step):
        record(self, sums, step)
        if self.fit.passes == 3:
            for column in list(self.fit.history.values())[2:]:
                column.pop()
            raise KeyboardInterrupt

    monkeypatch.setattr(low_rank_newton.Run, "_record", torn)
    model = SLNDClassifier(loss="logistic", max_passes=5)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*load_digits(return_X_y=True))
    assert model.n_iter_ == 2 and {len(column) for column in model.history_.values()} == {2}


@pytest.mark.parametrize("model", [
    baselines.ODMClassifier(), baselines.CatoniHingeClassifier(), baselines.CGDescentClassifier(),
    baselines.NesterovClassifier(), baselines.AdamClassifier(), PegasosClassifier(),
    MarginPursuitClassifier(solver="gd"), MarginPursuitClassifier(solver="sgd")], ids=str)
def test_the_time_of_a_callback_is_nobodys(model, monkeypatch):
    ahead, real = [0.0], time.perf_counter
    monkeypatch.setattr(clock, "perf_counter", lambda: real() + ahead[0])

    def sleep_long(model):
        ahead[0] += 1e6

    model.set_params(callback=sleep_long, max_time=1e5, max_passes=4, tol=1e-12)
    with warnings.catch_warnings(record=True) as received:
        warnings.simplefilter("always", ConvergenceWarning)
        model.fit(X[:300], y[:300] > 4)
    assert model.n_iter_ == 4 and not any("max_time" in str(warning.message) for warning in received)
    assert model.history_["seconds"][-1] < 1e5


def test_nor_is_it_that_of_a_penalised_multinomial_fit(monkeypatch):
    ahead, real = [0.0], time.perf_counter
    monkeypatch.setattr(clock, "perf_counter", lambda: real() + ahead[0])

    def sleep_long(model):
        ahead[0] += 1e6

    model = SLNDClassifier(l2=1e-3, max_time=1e5, callback=sleep_long).fit(X, y)
    assert model.duality_gap_ <= 1e-4 and model.n_iter_ > 2 and model.history_["seconds"][-1] < 1e5


@pytest.mark.parametrize("solver, tol", [("cholesky", 1e-4), ("dual", 1e-8)])
@pytest.mark.parametrize("classes", [2, 3])
def test_nor_is_it_that_of_newton_steps_or_of_the_dual(classes, solver, tol):
    # it was 98 % of the seconds in the history, and max_time ended a fit that slept
    rows, labels, evaluations = X[y < classes], y[y < classes], []

    def sleep(model):
        evaluations.append(len(model.history_["seconds"]))
        time.sleep(0.2 if len(evaluations) < 7 else 0)

    model = SmSVMClassifier(tol=tol, linear_solver=solver, max_time=0.8, n_jobs=1, callback=sleep).fit(rows, labels)
    assert (model.duality_gap_ <= tol).all() and len(evaluations) >= 5
    assert model.history_["seconds"].max() < 0.8


def test_classes_of_the_dual_advance_together():
    # two of six had all the time, and the others were left at w = 0: half of the rows were wrong
    rng = np.random.default_rng(0)
    X = sparse.random(20_000, 4000, 0.01, "csr", random_state=np.random.default_rng(0))
    y = np.asarray(X @ rng.standard_normal((4000, 6))).argmax(axis=1)
    drivers = []

    class Watched(DualNewton):
        def attend(self):
            drivers.append(self.way[0])
            super().attend()

    with patch.object(stages, "DualNewton", Watched), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SmSVMClassifier(l2=1e-5, tol=1e-9, n_jobs=2, max_time=4.0, linear_solver="dual",
                                random_state=0).fit(X, y)
    assert set(drivers) == set(range(6))
    assert (np.abs(model.coef_).sum(axis=1) > 0).all() and model.score(X, y) > 0.9
