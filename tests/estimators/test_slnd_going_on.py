"""SLND goes on where it was, stops when it is told to, and says what it does meanwhile."""

import signal
import textwrap
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from fits import fit, same
from sklearn.exceptions import ConvergenceWarning
from started import python

from cmargin import SLNDClassifier
from cmargin._runtime.clock import RunClock
from cmargin.baselines import SGDQNClassifier
from cmargin.solvers.sgd.step_size import Trial, automatic_step


@pytest.mark.parametrize("loss, n_passes, below", [("logistic", 4, 0.03), ("auto", 1, 0.04)])
def test_partial_fit_over_batches_approaches_fit(digits, loss, n_passes, below):
    X, X_test, y, y_test = digits
    model = SLNDClassifier(loss=loss, random_state=5)
    for _ in range(n_passes):
        for rows in np.array_split(np.random.default_rng(2).permutation(len(y)), 6):
            model.partial_fit(X[rows], y[rows], classes=np.arange(10))
    assert model.n_iter_ == 6 * n_passes and model.loss_ == ("multinomial" if loss == "auto" else loss)
    assert model.score(X_test, y_test) > fit(X, y, loss=loss).score(X_test, y_test) - below
    np.testing.assert_allclose(model.class_prior_, np.bincount(y) / len(y))


def test_partial_fit_with_a_class_missing_and_after_fit(digits):
    X, X_test, y, y_test = digits
    model = SLNDClassifier(loss="logistic", random_state=5, tail="drop")
    model.partial_fit(X[y < 9], y[y < 9], classes=np.arange(10))
    assert np.isfinite(model.coef_).all() and model.coef_.shape == (10, 64)
    model = fit(X, y)
    before = model.score(X_test, y_test)
    assert model.partial_fit(X, y).score(X_test, y_test) > before - 0.02
    with pytest.raises(ValueError, match="same as on last call"):
        model.partial_fit(X, y, classes=np.arange(9))
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        SLNDClassifier().partial_fit(X, y)


@pytest.mark.parametrize("parameters", [{}, {"tail": "drop", "rank": 20}, {"hessian_refresh": 2}], ids=str)
@pytest.mark.parametrize("sparse", [False, True])
def test_warm_start_goes_on_from_where_it_was(digits, parameters, sparse):
    X, _, y, _ = digits
    X = sp.csr_matrix(X) if sparse else X
    model = fit(X, y, warm_start=True, max_passes=3, **parameters)
    cold = model.history_["objective"][0]
    model.set_params(max_passes=1).fit(X, y)
    assert model.history_["objective"][0] < 0.75 * cold
    with pytest.raises(ValueError, match="going on needs the classes of the last fit"):
        model.fit(X[y > 0], y[y > 0])


def test_history_has_a_row_a_pass(digits):
    X, _, y, _ = digits
    model = fit(X, y, max_passes=4)
    assert {len(column) for column in model.history_.values()} == {4} and model.n_iter_ == 4
    assert np.array_equal(model.history_["pass"], [1, 2, 3, 4])
    assert np.all(np.diff(model.history_["seconds"]) > 0) and np.all(np.diff(model.history_["step"]) < 0)
    visits = (model.history_["visits"] / (10 * len(y))).sum()
    assert model.n_passes_ == pytest.approx(2000 / 2 / len(y) + 1 + visits)      # H, whitening, visits
    phases = sum(model.history_[f"seconds_{name}"][-1] for name in ("hessian", "whiten", "steps"))
    assert phases <= model.history_["seconds"][-1]


def test_callback_sees_a_usable_model_and_may_stop(digits, capsys):
    X, X_test, y, y_test = digits
    seen = []

    def watch(model):
        seen.append(model.score(X_test, y_test))
        return len(seen) == 3

    model = fit(X, y, callback=watch, verbose=1)
    assert len(seen) == 3 == model.n_iter_ and seen[-1] > 0.9
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 and lines[0].startswith("SLNDClassifier pass 1: risk ")
    assert same(model, fit(X, y, max_passes=3))


def test_tol_stops_early_or_says_how_far_off(digits):
    X, _, y, _ = digits
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        early = fit(X, y, tol=0.02, max_passes=50)
    assert 2 <= early.n_iter_ < 50
    with pytest.warns(ConvergenceWarning, match="after 3 passes the risk still fell by .*raise max_passes") as caught:
        fit(X, y, tol=1e-9, max_passes=3)
    assert len(caught) == 1


def test_separable_calibrated_hinge_is_never_called_settled():
    # its risk runs away to minus infinity, ever more slowly: small progress is no convergence
    X = np.array([[1.0], [2.0], [-1.0], [-2.0]] * 20)
    y = (X[:, 0] > 0).astype(int)
    with pytest.warns(ConvergenceWarning):
        model = fit(X, y, loss="calibrated_hinge", tol=0.9, max_passes=6)
    assert model.n_iter_ == 6


def test_max_time_leaves_a_usable_model(digits):
    X, X_test, y, y_test = digits
    with pytest.warns(ConvergenceWarning, match="stopped by max_time=1 after"):
        model = fit(X, y, max_passes=10**6, max_time=1)       # a busy machine needs a while for its first pass
    assert model.score(X_test, y_test) > 0.8
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = fit(X, y, max_time=1e-9)
    assert np.isfinite(model.coef_).all() and model.n_iter_ <= 1


@pytest.mark.parametrize(("trials", "chosen", "tried"), [
    (1, 0.1, [0.1]), (2, 0.2, [0.1, 0.2]), (99, 0.2, [0.1, 0.2, 0.4, 0.1])])
def test_no_further_step_is_tried_when_time_is_over(trials, chosen, tried):
    class Bowl:
        """Held-out losses least at a step of 0.2."""

        n_classes, tried = 1, ()

        def losses(self, step):
            self.tried += (step,)
            return np.full(50, abs(np.log2(step / 0.2))) + 1e-3 * np.arange(50)

    bowl = Bowl()
    assert automatic_step(bowl, lambda: len(bowl.tried) >= trials) == chosen
    assert list(bowl.tried) == tried


@pytest.mark.parametrize("estimator", [SLNDClassifier(loss="logistic", max_passes=2), SGDQNClassifier(max_passes=2)],
                         ids=str)
def test_a_fit_whose_time_is_over_tries_one_step(estimator, digits, monkeypatch):
    tried, losses = [], Trial.losses
    monkeypatch.setattr(Trial, "losses", lambda self, step: tried.append(step) or losses(self, step))
    monkeypatch.setattr(RunClock, "late", property(lambda self: bool(tried)))
    with pytest.warns(ConvergenceWarning, match="stopped by max_time"):
        estimator.fit(digits[0], digits[2])
    assert len(tried) == 1


def test_ctrl_c_leaves_the_weights_reached(digits):
    X, X_test, y, y_test = digits
    model = SLNDClassifier(loss="logistic", max_passes=10**6, random_state=1, n_jobs=1)

    def interrupt(signum, frame):
        raise KeyboardInterrupt

    old = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert 0 < model.n_iter_ < 10**6 and model.score(X_test, y_test) > 0.9
    assert len(model.history_["pass"]) == model.n_iter_


@pytest.mark.parametrize("loss, module", [("logistic", "low_rank_newton"), ("multinomial", "multinomial")])
def test_an_interrupt_before_the_first_pass_leaves_a_model_too(digits, monkeypatch, loss, module):
    X, X_test, y, _ = digits

    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(f"cmargin.solvers.sgd.{module}.build_inverse", interrupted)
    model = SLNDClassifier(loss=loss)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.predict(X_test).shape == (len(X_test),) and model.n_iter_ == 0
    monkeypatch.undo()
    assert model.fit(X, y).score(X, y) > 0.95


def test_fit_after_fork_on_one_thread():
    code = textwrap.dedent("""
        import os, numpy as np
        from cmargin import SLNDClassifier
        X = np.random.default_rng(0).standard_normal((50, 4)); y = np.arange(50) % 3
        SLNDClassifier(n_jobs=1).fit(X, y)
        child = os.fork()
        if child == 0:
            SLNDClassifier(n_jobs=1).fit(X, y)
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    """)
    assert python("-c", code) == ""
