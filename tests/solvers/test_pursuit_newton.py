"""The compiled driver of margin pursuit: the twin's steps whoever answers, in slices of any length; its tenth of the
rows; what does not fit is refused."""

import itertools
import time
import warnings

import numpy as np
import pytest
from api import advance_all
from elsewhere import Elsewhere
from naive_pursuit import newton_steps, objective
from scipy import sparse
from side_by_side import finish_together
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale

from cmargin import MarginPursuitClassifier
from cmargin._estimators.one_vs_rest import MarginTrace
from cmargin._runtime.blas_threads import single_threaded_blas
from cmargin.data import open_rows
from cmargin.solvers import cost
from cmargin.solvers.newton import pursuit_newton
from cmargin.solvers.newton.pursuit_newton import OnSubset, PursuitNewton
from cmargin.solvers.problem import PursuitSettings

X_bc, y_bc = load_breast_cancer(return_X_y=True)
X_bc, y_bc = scale(X_bc), np.where(y_bc == 1, 1.0, -1.0)
RNG = np.random.default_rng(0)
X_60 = RNG.standard_normal((700, 60))
y_60 = np.where(X_60[:, 0] + RNG.standard_normal(700) > 0, 1.0, -1.0)
X_csr = sparse.random(400, 30, 0.2, format="csr", random_state=1)
y_csr = np.where(X_csr[:, :3].sum(axis=1).A1 + 0.3 * RNG.standard_normal(400) > 0.3, 1.0, -1.0)
PROBLEMS = {
    "few columns": (X_bc[:, :3], y_bc, {"l2": 1e-3}), "breast cancer": (X_bc, y_bc, {"l2": 1e-3}),
    "narrow": (X_bc, y_bc, {"l2": 1e-3, "scale": 0.2}), "level": (X_bc, y_bc, {"l2": 1e-2, "level": 2.0}),
    "60 columns": (X_60, y_60, {}), "60 columns, narrow": (X_60, y_60, {"scale": 0.3}),
    "CSR": (X_csr, y_csr, {"l2": 1e-4}), "no intercept": (X_60, y_60, {"fit_intercept": False, "scale": 0.5}),
}


def settings(level=1.0, scale=1.0, one_shot=False, l2=0.0, tol=1e-8, max_passes=100, fit_intercept=True,
             deadline=None):
    return PursuitSettings("margin_pursuit", level, scale, one_shot, l2, None, tol, max_passes, fit_intercept, deadline)


def weighted(y):
    return y * np.random.default_rng(1).choice([0.5, 1.0, 2.0], len(y))


def in_memory(X, signed_weight, chosen, n_threads=1):
    return open_rows(X).row_pass(signed_weight, intercept=chosen.fit_intercept, n_threads=n_threads)


class Recording(Elsewhere):
    """Rows elsewhere that remember which evaluations summed curvature."""

    def evaluate(self, **asked):
        self.curved = [*getattr(self, "curved", []), asked["with_hessian"]]
        return super().evaluate(**asked)


class Overflowing(Elsewhere):
    """Rows elsewhere whose losses grow beyond the range of doubles."""

    value = 0.0

    def evaluate(self, **asked):
        sums, gradient, block = super().evaluate(**asked)
        return sums + np.where(np.arange(len(sums)) == 0, self.value, 0.0), gradient, block


class Points:
    """Called after every pass: keeps the points."""

    def __init__(self, stop=False):
        self.seen, self.stop = [], stop

    def __call__(self, driver):
        self.seen.append(driver.result.w)
        return self.stop


def same(a, b):
    return a.coef_.tobytes() == b.coef_.tobytes() and a.intercept_.tobytes() == b.intercept_.tobytes()


def fit(X, y, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return MarginPursuitClassifier(**{"l2": 1e-3, "n_jobs": 2, **parameters}).fit(X, y)


# ---------------------------------------------------------------- whoever answers

@pytest.mark.parametrize("name", PROBLEMS)
def test_the_steps_are_those_of_the_twin(name):
    X, y, parameters = PROBLEMS[name]
    chosen, signed_weight = settings(**parameters), weighted(y)
    dense = X.toarray() if sparse.issparse(X) else X
    A = np.column_stack([dense, np.ones(len(y))]) if chosen.fit_intercept else dense
    l2 = np.full(A.shape[1], chosen.l2)
    l2[X.shape[1]:] = 0
    points, curved = newton_steps(A, signed_weight, chosen.level, chosen.scale, l2, chosen.tol, np.zeros(A.shape[1]))
    sources = in_memory(X, signed_weight, chosen), Recording.of(X, signed_weight, [17, 200], chosen.fit_intercept)
    for source in sources:
        after = Points()
        with single_threaded_blas():
            result = PursuitNewton(source, chosen, after_pass=after, trace=MarginTrace()).run()
        assert result.status == "tol" and result.passes == len(points) - 1 and result.reads == len(curved)
        for w, expected in zip(after.seen, points[1:], strict=True):
            np.testing.assert_allclose(w, expected, atol=1e-9 * np.abs(points[-1]).max())
        w, last = result.w, np.array(result.history[-1])
        value, g = objective(A[:, :X.shape[1]], y, w[:X.shape[1]], w[X.shape[1]:].sum(), chosen.level, chosen.scale,
                             chosen.l2, np.abs(signed_weight))
        assert last[1] == result.reads and last[5] == result.objective == pytest.approx(value, rel=1e-10)
        first = np.linalg.norm(A.T @ signed_weight / len(y)) * chosen.level
        assert np.linalg.norm(g[:A.shape[1]]) <= 2 * chosen.tol * first
        traced = MarginTrace.of((y * (A @ w))[None], [chosen.scale])[0]
        np.testing.assert_allclose(last[9:], traced, rtol=1e-9, atol=1e-12)
    assert sources[1].curved == curved


@pytest.mark.parametrize("parameters", [{"scale": 1.0}, {"scale": 0.5, "one_shot": True}], ids=["products", "one shot"])
def test_rows_elsewhere_take_the_same_steps(parameters, monkeypatch):
    chosen = settings(l2=1e-2, **parameters)
    if not chosen.one_shot:
        monkeypatch.setattr(cost, "PURSUIT_FACTOR_UP_TO_COLUMNS", 20)
    with single_threaded_blas():
        here = PursuitNewton(in_memory(X_bc, y_bc, chosen), chosen).run()
        there = PursuitNewton(Elsewhere.of(X_bc, y_bc, [40], True), chosen).run()
    assert here.status == there.status == "tol"
    # a product of conjugate gradients more or less is rounding's
    assert (there.passes, there.reads, there.scale) == (here.passes, pytest.approx(here.reads, abs=2),
                                                        pytest.approx(here.scale))
    assert chosen.one_shot == (here.scale != chosen.scale)
    np.testing.assert_allclose(there.w, here.w, atol=1e-9)


@pytest.mark.parametrize("name", PROBLEMS)
def test_slices_change_nothing(name):
    X, y, parameters = PROBLEMS[name]
    chosen = settings(**parameters)
    with single_threaded_blas():
        whole = PursuitNewton(in_memory(X, y, chosen), chosen, trace=MarginTrace()).run()
        newton, slices = PursuitNewton(in_memory(X, y, chosen), chosen, trace=MarginTrace()), 0
        newton.begin()
        while newton.asks is not None:
            newton.advance(time.perf_counter() + 1e-5)
            newton.attend()
            slices += 1
    assert slices > 1 and newton.result.w.tobytes() == whole.w.tobytes()
    numbers = [0, 1, *range(5, 9 + len(MarginTrace.names))]                                  # all but seconds
    np.testing.assert_array_equal(np.array(newton.result.history)[:, numbers], np.array(whole.history)[:, numbers])


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_classes_side_by_side_are_those_alone(n_threads):
    rng, chosen = np.random.default_rng(3), settings(l2=1e-3)
    codes = [np.where(rng.random(len(y_bc)) < 0.3, -y_bc, y_bc) for _ in range(7)]
    with single_threaded_blas():
        alone = [PursuitNewton(in_memory(X_bc, signed_weight, chosen), chosen).run() for signed_weight in codes]
        drivers = [PursuitNewton(in_memory(X_bc, signed_weight, chosen), chosen) for signed_weight in codes]
        finish_together(drivers, n_threads)
    assert [driver.result.w.tobytes() for driver in drivers] == [result.w.tobytes() for result in alone]


@pytest.mark.parametrize("n_rows", [1797, 400])
def test_who_looks_in_changes_no_bits(n_rows):
    # after every pass: one class after the other, threads for blocks of rows; else side by side
    X, y = load_digits(return_X_y=True)
    X, y = X[:n_rows], y[:n_rows]
    models = [fit(X, y, n_jobs=n, callback=callback) for n in (1, 2, 3) for callback in (None, lambda model: False)]
    assert all(same(model, models[0]) for model in models)
    for name, column in models[0].history_.items():
        if "seconds" not in name:
            assert all(np.array_equal(model.history_[name], column) for model in models), name
    assert {model.n_passes_ for model in models} == {models[0].n_passes_}
    assert np.all(np.diff(models[0].history_["class"]) >= 0)


def test_answers_of_the_wrong_length_are_refused():
    def at_first_evaluation(chosen=None, **more):
        chosen = chosen or settings()
        newton = PursuitNewton(Elsewhere.of(X_bc, y_bc, [], True), chosen, **more)
        newton.begin()
        assert newton.asks == "evaluate"
        return newton

    sums, gradient, block = np.zeros(16), np.zeros((3, 31)), np.zeros((31, 31))
    for answer in [(sums[1:], gradient, block), (sums, gradient[1:], block), (sums, gradient[:, 1:], block),
                   (sums, gradient, block[1:, 1:]), (sums, gradient, None)]:
        with pytest.raises(ValueError, match="shapes do not fit"):
            at_first_evaluation().tell(*answer)
    newton = at_first_evaluation(trace=MarginTrace())
    while newton.asks != "margins":
        newton.advance(np.inf)
    with pytest.raises(ValueError, match="shapes do not fit"):
        newton.tell(np.zeros(9))
    with pytest.raises(ValueError, match="elsewhere"):
        advance_all([newton], np.inf, 1)
    with pytest.raises(ValueError, match="shapes do not fit"):
        PursuitNewton(in_memory(X_bc, y_bc, settings()), settings(), np.zeros(30))


def test_a_curvature_that_is_not_finite_ends_the_fit():
    newton = PursuitNewton(Elsewhere.of(X_bc, y_bc, [], True), settings())
    newton.begin()
    newton.source.start()
    sums, gradient, block = newton.source.evaluate(direction=np.zeros(31), step=1.0, line_width=1.0, width=1.0,
                                                   curvature_floor=0.0)
    block[3, 4] = np.inf
    newton.tell(sums, gradient, block)
    assert newton.asks is None and newton.status == "diverged" and not newton.finish().w.any()


def test_a_step_to_no_finite_value_leaves_the_point_before_it():
    # the step counts, but nobody looks in after it, no margins are asked and it is not in the history
    after = Points()
    newton = PursuitNewton(Overflowing.of(X_bc, y_bc, [], True), settings(), trace=MarginTrace(), after_pass=after)
    newton.begin()
    while len(after.seen) < 2:
        newton.advance(np.inf)
        newton.attend()
    newton.source.value = np.inf
    result = newton.finish()
    assert (result.status, result.passes, len(result.history), len(after.seen)) == ("diverged", 3, 2, 2)
    assert result.w.tobytes() == after.seen[-1].tobytes() and result.objective == result.history[-1][5]


@pytest.mark.parametrize("moment", [0, 1, 3])
def test_leaving_keeps_the_point(moment):
    chosen, after = settings(l2=1e-3), Points()
    newton = PursuitNewton(in_memory(X_bc, y_bc, chosen), chosen, after_pass=after)
    newton.begin()
    while len(after.seen) < moment:
        newton.advance(np.inf)
        newton.attend()
    newton.leave("interrupted")
    result = newton.finish()
    assert result.status == "interrupted" and result.passes == len(result.history) == moment
    if not moment:
        assert not result.w.any() and np.isinf(result.objective)
        return
    assert result.w.tobytes() == after.seen[-1].tobytes()
    value = objective(X_bc, y_bc, result.w[:30], result.w[30], 1.0, 1.0, 1e-3)[0]
    assert result.objective == pytest.approx(value, rel=1e-10)


def test_an_interrupt_side_by_side_leaves_what_every_class_has(monkeypatch):
    X, y = load_digits(return_X_y=True)
    attend, calls = PursuitNewton.attend, itertools.count()

    def pressed(self):
        attend(self)
        if next(calls) == 1:                # of the first few classes
            raise KeyboardInterrupt

    monkeypatch.setattr(PursuitNewton, "attend", pressed)
    model = MarginPursuitClassifier(n_jobs=1, l2=1e-3)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.score(X, y) > 0.9 and np.isfinite(model.objective_).all()
    assert len(np.unique(model.history_["class"])) < 10


def test_a_class_begun_and_not_looked_at_keeps_the_ridge_regression(monkeypatch):
    X, y = load_digits(return_X_y=True)

    def pressed(ways, n_threads, status, at_once, parts):
        for _, way in zip(range(4), ways, strict=False):
            assert next(way).asks == "evaluate"
        raise KeyboardInterrupt

    monkeypatch.setattr(pursuit_newton, "side_by_side", pressed)
    model = MarginPursuitClassifier()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    # Of a fit that ended before its first pass had, history_ had no columns: KeyError for who looks
    assert len(model.history_["class"]) == len(model.history_["margin_mean"]) == 0
    assert model.score(X, y) > 0.9 and model.coef_.any(axis=1).all() and np.isfinite(model.objective_).all()


# ---------------------------------------------------------------- curvature kept, a tenth of the rows

def test_curvature_is_kept_where_it_is_dear():
    # 60 columns: an evaluation with curvature costs five without
    rng = np.random.default_rng(9)
    X = rng.standard_normal((3000, 60))
    y = np.where(X[:, 0] + rng.standard_normal(3000) > 0, 1.0, -1.0)

    def looked(X, **parameters):
        source = Recording.of(X, y, [], True)
        with single_threaded_blas():
            result = PursuitNewton(source, settings(l2=1e-3, **parameters)).run()
        return source.curved, result

    curved, result = looked(X)
    assert curved.count(True) <= 3 < len(curved) and result.status == "tol"
    # 18 steps where the pairs are not used
    curved, result = looked(X, tol=1e-10, scale=0.3)
    assert result.passes <= 13 and result.gradient_norm < 1e-9
    assert all(looked(X[:, :3])[0][:4])


def forest_like(n=40000):
    """Columns with a few rows each beside dense ones: what a tenth of the rows says nothing about."""
    rng = np.random.default_rng(8)
    X = rng.standard_normal((n, 8))
    for j in range(4, 8):
        X[:, j] = 0
        X[rng.choice(n, 5 * j, replace=False), j] = np.sqrt(n / (5 * j))
    return X, np.where(X @ rng.standard_normal(8) + rng.logistic(size=n) > 0.5, 1, 0)


def test_many_rows_are_begun_on_a_tenth_of_them(monkeypatch):
    X, y = forest_like()
    sign = 2.0 * y - 1
    begun = fit(X, y, tol=1e-8, l2=1e-6)
    assert 1.2 + begun.n_iter_ < begun.n_passes_ < 1.8 + begun.n_iter_
    monkeypatch.setattr(cost, "SUBSET_FROM_ROWS", np.inf)
    whole = fit(X, y, tol=1e-8, l2=1e-6)
    assert whole.n_passes_ == 1 + whole.n_iter_ and begun.history_["objective"][0] < whole.history_["objective"][1]
    assert len(begun.history_["pass"]) == begun.n_iter_
    value, gradient = objective(X, sign, begun.coef_[0], begun.intercept_[0], 1.0, 1.0, 1e-6)
    _, at_zero = objective(X, sign, np.zeros(8), 0, 1.0, 1.0, 1e-6)
    assert np.linalg.norm(gradient) <= 2e-8 * np.linalg.norm(at_zero)
    assert begun.objective_[0] == pytest.approx(value, rel=1e-10)
    np.testing.assert_allclose(begun.coef_, whole.coef_, atol=1e-6)


def test_time_may_run_out_on_the_tenth(monkeypatch):
    X, y = forest_like()
    attend = OnSubset.attend

    def late(self):
        attend(self)
        time.sleep(1.05)

    monkeypatch.setattr(OnSubset, "attend", late)
    with pytest.warns(ConvergenceWarning, match="stopped by max_time"):
        model = MarginPursuitClassifier(l2=1e-6, tol=1e-12, max_time=1.0).fit(X, y)
    assert model.n_iter_ == 0 and model.score(X, y) > fit(X, y).score(X, y) - 0.01
    value = objective(X, 2.0 * y - 1, model.coef_[0], model.intercept_[0], 1.0, 1.0, 1e-6)[0]
    assert model.objective_[0] == pytest.approx(value)


def test_an_interrupt_on_the_tenth_leaves_its_weights_and_their_objective(monkeypatch):
    X, y = forest_like()

    def pressed(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(OnSubset, "attend", pressed)
    model = MarginPursuitClassifier(l2=1e-6)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.score(X, y) > 0.7 and model.n_iter_ == 0
    value = objective(X, 2.0 * y - 1, model.coef_[0], model.intercept_[0], 1.0, 1.0, 1e-6)[0]
    assert model.objective_[0] == pytest.approx(value, rel=1e-9)


def test_the_time_of_a_callback_is_nobodys():
    begun = time.perf_counter()
    model = fit(X_bc, y_bc, max_time=2.0, tol=1e-9, callback=lambda model: time.sleep(1.0))
    assert model.gradient_norm_[0] <= 1e-9 and model.n_iter_ > 2
    assert model.history_["seconds"][-1] < 2.0 < time.perf_counter() - begun


def test_classes_that_were_not_begun_are_waiting():
    X, y = load_digits(return_X_y=True)
    with pytest.warns(ConvergenceWarning, match="10 classes were not trained"):
        model = MarginPursuitClassifier(max_time=1e-9).fit(X, y)
    assert model.n_iter_ == 0 and model.score(X, y) > 0.9 and np.isinf(model.objective_).all()
