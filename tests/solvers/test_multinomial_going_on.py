"""The multinomial form goes on where it was, stops when it is told to, and says what it does meanwhile."""

import itertools
import signal
import threading
import time
import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import blobs
from fits import fit_multinomial as fit
from fits import same
from naive_multinomial import row_losses
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import normalize

from cmargin import SLNDClassifier
from cmargin.margins import expected_calibration_error
from cmargin.solvers.sgd.multinomial import MultinomialRun
from cmargin.solvers.sgd.multinomial_choice import choose
from cmargin.solvers.slnd_plan import TrialStats


def test_partial_fit_meets_a_class_late(digits):
    X, X_test, y, y_test = digits
    model = SLNDClassifier(random_state=5).partial_fit(X[y < 9], y[y < 9], classes=np.arange(10))
    assert np.isfinite(model.predict_proba(X_test)).all() and not (model.predict(X_test) == 9).any()
    for _ in range(10):
        model.partial_fit(X, y)
    assert np.mean(model.predict(X_test)[y_test == 9] == 9) > 0.8
    one = SLNDClassifier(random_state=5).partial_fit(X[:1], y[:1], classes=np.arange(10))
    assert one.predict(X[:1])[0] == y[0]


@pytest.mark.parametrize("tail", ["drop", "scale"])
@pytest.mark.parametrize("sparse", [False, True])
def test_warm_start_goes_on(digits, tail, sparse):
    X, X_test, y, y_test = digits
    X = sp.csr_matrix(X) if sparse else X
    model = fit(X, y, warm_start=True, step_size=1.0, max_passes=3, tail=tail)
    second, basis = model.history_["objective"][1], model.preconditioner_.eigenvectors
    model.fit(X, y)
    assert model.preconditioner_.eigenvectors is basis and model.history_["objective"][0] < second
    steps = model.history_["step"]
    np.testing.assert_allclose(steps[0] / steps[1], (5 / 4)**0.75)
    # another basis: the weights are kept where it cannot hold them
    before = model.score(X_test, y_test)
    model.set_params(rank=3, step_size=1e-9).fit(X, y)
    assert model.preconditioner_.eigenvectors is not basis and abs(model.score(X_test, y_test) - before) < 0.02
    with pytest.raises(ValueError, match="needs the classes of the last fit"):
        model.fit(X[:100], np.arange(100) % 7)


def test_warm_start_with_nothing_new_changes_nothing(digits):
    X, _, y, _ = digits
    for rows in (X, sp.csr_matrix(X)):
        model = fit(rows, y, step_size=1.0, max_passes=2, average=False)
        W, b = model.coef_.copy(), model.intercept_.copy()
        model.set_params(warm_start=True, step_size=1e-12).fit(rows, y)
        np.testing.assert_allclose(model.coef_, W, atol=1e-8 * np.abs(W).max())
        np.testing.assert_allclose(model.intercept_, b, atol=1e-8 * np.abs(b).max())


def test_passes_end_where_the_held_out_loss_does():
    # labels that cannot be learned: more passes only make it worse
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((2000, 200)), rng.integers(0, 4, 2000)
    model = fit(X, y, max_passes=50)
    assert model.n_iter_ < 20 and not fit(X, y, max_passes=50, step_size=4.0).n_iter_ < 50
    assert np.isfinite(model.coef_).all()
    fixed = fit(X, y, max_passes=50, step_size=4.0)
    X_new, y_new = rng.standard_normal((2000, 200)), rng.integers(0, 4, 2000)
    assert (row_losses(model.decision_function(X_new), y_new).mean()
            < row_losses(fixed.decision_function(X_new), y_new).mean() - 0.01)


def test_tol_stops_and_says_when_not(digits):
    X, _, y, _ = digits
    model = fit(X, y, tol=0.01, max_passes=50, step_size=1.0)
    risks = model.history_["objective"]
    assert model.n_iter_ < 50 and risks[-2] - risks[-1] < 0.01 * np.log(10) <= risks[-3] - risks[-2]
    with pytest.warns(ConvergenceWarning, match="after 2 passes the risk still fell"):
        fit(X, y, tol=1e-9, max_passes=2)


def test_history_callback_and_verbose(digits, capsys):
    X, X_test, y, y_test = digits
    seen = []
    model = fit(X, y, max_passes=3, verbose=1, callback=lambda m: seen.append(m.score(X_test, y_test)))
    assert len(seen) == 3 and seen[-1] == model.score(X_test, y_test)
    assert len(capsys.readouterr().out.splitlines()) == 3
    history = model.history_
    assert list(history) == ["pass", "class", "passes", "seconds", "seconds_hessian", "seconds_whiten", "seconds_steps",
                             "objective", "error", "step", "visits"]
    assert np.array_equal(history["pass"], [1, 2, 3]) and np.all(history["visits"] == len(y))
    assert np.all(np.diff(history["seconds"]) > 0) and history["error"][-1] < 0.2
    stopped = fit(X, y, callback=lambda m: m.n_iter_ == 2)
    assert stopped.n_iter_ == 2 and stopped.score(X_test, y_test) > 0.9
    assert same(fit(X, y, max_passes=5), fit(X, y, max_passes=5, callback=lambda m: None))


def test_what_a_callback_sees_is_never_worse_on_held_out_rows(digits):
    # while the passes over all rows go on, the best model so far stays in place
    X, _, y, _ = digits
    seen = []
    model = fit(X, y, callback=lambda m: seen.append(m.coef_.copy()))
    assert model.n_iter_ == len(seen) and any(np.array_equal(a, b) for a, b in itertools.pairwise(seen))


def test_max_time_and_interrupt_leave_the_weights_reached():
    # whoever runs the tests in the background may have Ctrl-C ignored
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    X, y = blobs(n=3000, d=50, k=30)
    with pytest.warns(ConvergenceWarning, match="stopped by max_time"):
        model = fit(X, y, max_passes=10**6, max_time=0.7, step_size=0.5)
    assert model.history_["seconds"][-1] < 2 and model.score(X, y) > 0.3

    model = SLNDClassifier(max_passes=10**6, max_time=30, random_state=1, step_size=0.5)

    def interrupt():
        time.sleep(0.5)
        import _thread
        _thread.interrupt_main()

    threading.Thread(target=interrupt).start()
    begin = time.perf_counter()
    try:
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.perf_counter() - begin < 5 and model.score(X, y) > 0.3


def test_overflow_is_undone_with_half_the_step_and_a_warning():
    X, y = blobs(n=300)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = fit((1e15 * X).astype(np.float32), y, step_size=1e42, max_passes=3)
    assert np.isfinite(model.coef_).all() and np.isfinite(model.intercept_).all()
    assert any("overflowed" in str(w.message) for w in caught)
    with pytest.raises(ValueError, match="holds NaN or infinity"):
        fit(1e300 * X, y)


def test_defaults_reach_the_best_lbfgs_on_mnist(shared_data):
    # 92.33 is what LogisticRegression(lbfgs) has at C = 10 after 60 iterations, the best of C = 1, 10, 100, 1000
    X, y, X_test, y_test = shared_data("mnist")
    X, X_test = normalize(X.astype(np.float32)), normalize(X_test.astype(np.float32))
    model = fit(X, y, loss="auto")
    assert model.score(X_test, y_test) >= 0.9233
    assert expected_calibration_error(model.predict_proba(X_test), y_test) < 0.02


def test_overflow_while_rows_are_held_out_leaves_the_start(digits, monkeypatch):
    # the first pass had no finite loss: it was taken for the end, and no pass over all rows could follow
    monkeypatch.setattr("cmargin.solvers.sgd.multinomial.choose", lambda _, __, inverses, ___: (inverses[0], 1e42))
    X, X_test, y, _ = digits
    with pytest.warns(ConvergenceWarning, match="overflowed"):
        model = fit(X.astype(np.float32), y, max_passes=5)
    assert model.n_iter_ == 5 and np.isfinite(model.coef_).all()
    np.testing.assert_allclose(model.predict_proba(X_test)[0], np.bincount(y) / len(y), rtol=1e-5)
    # where the step is only a little too long, half of it is enough
    steps = iter([1e42])
    monkeypatch.setattr("cmargin.solvers.sgd.multinomial.MultinomialRun._step",
                        lambda self, number: next(steps, 0.05) * 0.5**self.halvings)
    assert fit(X.astype(np.float32), y).score(X, y) > 0.9


def test_the_step_is_doubled_and_halved_by_held_out_losses_and_shrinks_with_more_rows():
    class Bowl:
        """Held-out losses least at a step of 8, over 100 rows of 1,600."""

        n_train, n_all, tried = 100, 1600, ()

        def use(self, inverse):
            assert inverse == "H"

        def losses(self, step):
            self.tried += (step,)
            return np.full(50, abs(np.log2(step / 8.0))) + 1e-3 * np.arange(50)

    bowl = Bowl()
    assert choose(bowl, TrialStats(True, True, 3), ["H"]) == ("H", 8.0 * (100 / 1600)**0.25)
    assert bowl.tried == (2.0, 4.0, 8.0, 16.0, 4.0)


@pytest.mark.parametrize("sparse", [False, True])
def test_passes_hold_four_arrays_of_weights(sparse, monkeypatch):
    # The weights kept after the passes judged by held-out rows had views of the mean that they were taken from, of
    # length 0, and held all of it while new weights passed over all rows; there the old ones still lived, too.
    n, n_classes, n_features = 1500, 100, 3000
    X, y = blobs(n, n_features, n_classes)
    X = X.astype(np.float32)
    X = sp.csr_matrix(X * (np.arange(n_features) % 50 == np.arange(n)[:, None] % 50)) if sparse else X
    held, one_pass = [], MultinomialRun._one_pass

    def watched(run, step):
        tracemalloc.reset_peak()
        sums = one_pass(run, step)
        held.append((run.sweep, tracemalloc.get_traced_memory()[1] - run.Z.nbytes))
        return sums

    monkeypatch.setattr(MultinomialRun, "_one_pass", watched)
    tracemalloc.start()
    try:
        SLNDClassifier(random_state=0, n_jobs=1).fit(X, y)
    finally:
        tracemalloc.stop()
    assert {kind for kind, _ in held} == {"monitored", "all rows", *(["again"] if sparse else [])}
    weights, rows = 4 * n_classes * n_features, 600 * n + 4 * 400 * n_classes        # scores of rows held out, too
    assert max(size for _, size in held) < 4 * weights + rows
