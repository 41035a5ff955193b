import itertools
import pickle
import signal
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import FORMATS, as_format, blobs
from naive_multinomial import row_losses, softmax
from sklearn.datasets import load_breast_cancer, make_multilabel_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler, normalize
from sklearn.utils.estimator_checks import parametrize_with_checks

from cmargin import BSNClassifier, SLNDClassifier
from cmargin.margins import expected_calibration_error
from cmargin.solvers.low_rank.multinomial_choice import automatic_step, batch_size, split_order

STOCHASTIC = "a random order of batches cannot repeat a row bit for bit; tested in expectation below"


@parametrize_with_checks(
    [SLNDClassifier(loss="multinomial"), BSNClassifier(loss="multinomial", tail="drop")],
    expected_failed_checks=lambda estimator: {
        "check_sample_weight_equivalence_on_dense_data": STOCHASTIC,
        "check_sample_weight_equivalence_on_sparse_data": STOCHASTIC,
    },
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def fit(X, y, sample_weight=None, **parameters):
    parameters = {"random_state": 5, "n_jobs": 2, "loss": "multinomial", **parameters}
    return SLNDClassifier(**parameters).fit(X, y, sample_weight)


def same(a, b):
    return np.array_equal(a.coef_, b.coef_) and np.array_equal(a.intercept_, b.intercept_)


# ---------------------------------------------------------------- what is learned

@pytest.mark.parametrize("parameters", [
    {}, {"curvature": "covariance"}, {"tail": "drop"}, {"rank": 12}, {"rank": 64}, {"hessian_samples": 50},
    {"hessian_refresh": 3}, {"hessian_refresh": 2, "tail": "drop"}, {"hessian_refresh": 2, "curvature": "covariance"},
    {"step_size": 2.0}, {"average": False, "step_size": 1.0}, {"fit_intercept": False}, {"max_passes": 3},
], ids=str)
@pytest.mark.parametrize("sparse", [False, True])
def test_accuracy_is_that_of_a_converged_reference(digits, parameters, sparse):
    X, X_test, y, y_test = digits
    reference = LogisticRegression(C=100, max_iter=500).fit(X, y).score(X_test, y_test)
    models = [fit(sp.csr_matrix(X) if sparse else X, y, random_state=seed, **parameters) for seed in (5, 6, 7)]
    # of twenty seeds the refreshed form with a dropped tail is 0.021 below in the median and 0.027 at worst
    assert np.median([model.score(X_test, y_test) for model in models]) > reference - 0.025
    model = models[0]
    assert model.coef_.shape == (10, 64) and model.coef_.flags.c_contiguous and np.isfinite(model.coef_).all()
    assert model.intercept_.any() != (parameters.get("fit_intercept") is False)


def test_every_parameter_changes_what_it_should(digits):
    X, _, y, _ = digits
    base = fit(X, y)
    changed = {
        "loss": "logistic", "rank": 3, "tail": "drop", "hessian_samples": 100, "hessian_refresh": 2, "step_size": 0.05,
        "average": False, "max_passes": 2, "tol": 0.5, "fit_intercept": False, "class_weight": {0: 5.0},
        "random_state": 6,
    }
    for name, value in changed.items():
        assert not same(base, fit(X, y, **{name: value})), name
    assert same(base, fit(X, y)) and same(base, fit(X, y, max_time=60.0, verbose=0, negatives_per_positive=1))


def test_auto_is_multinomial_for_classes_that_exclude_each_other(digits, monkeypatch):
    X, _, y, _ = digits
    assert same(fit(X, y, loss="auto"), fit(X, y)) and fit(X, y, loss="auto").loss_ == "multinomial"
    two, labels = y < 5, np.eye(10, dtype=int)[y]
    assert same(fit(X, two, loss="auto"), fit(X, two, loss="logistic"))
    assert same(fit(X, labels, loss="auto"), fit(X, labels, loss="logistic"))
    monkeypatch.setattr("cmargin.slnd.MOST_CLASSES", 9)
    assert fit(X, y, loss="auto").loss_ == "logistic"
    monkeypatch.undo()
    theory = {"step_size": "theory", "max_passes": 1}
    assert same(fit(X, y, loss="auto", **theory), fit(X, y, loss="logistic", **theory))


def test_bsn_equals_slnd_until_the_curvature_is_looked_at(digits):
    X, _, y, _ = digits
    assert same(fit(X, y), BSNClassifier(random_state=5).fit(X, y))
    refreshed = fit(X, y, hessian_refresh=1), BSNClassifier(random_state=5, hessian_refresh=1).fit(X, y)
    assert not np.allclose(refreshed[0].coef_, refreshed[1].coef_, rtol=1e-3)


def test_the_refreshed_moment_weighs_rows_by_mean_curvature():
    from cmargin.homes import open_rows
    from cmargin.solvers.low_rank.class_lists import ClassLists
    from cmargin.solvers.low_rank.low_rank_newton import Settings, Start
    from cmargin.solvers.low_rank.multinomial import MultinomialRun
    X, y = blobs()
    rng = np.random.default_rng(3)
    W, b = rng.standard_normal((4, 12)), rng.standard_normal(4)
    settings = Settings("multinomial", 3, "scale", 240, "loss", 1, 1.0, True, 1, None, True, None)
    lists = ClassLists.from_indicator(sp.csc_matrix(np.eye(4)[y]), None)
    run = MultinomialRun(open_rows(X).stochastic_rows(1), lists, None, settings, 1, Start(W, b), y, 4)
    run._invert(None)
    inverse, spectrum = run._invert((W, b)) if run.fit.inverse is not None else run._invert(None)
    run.fit.inverse = inverse
    inverse, spectrum = run._invert((W, b))
    p = softmax(X @ W.T + b)
    c = (p * (1 - p)).mean(axis=1)
    c *= len(X) / c.sum()
    centre = c @ X / len(X)
    H = (X - centre).T * c @ (X - centre) / len(X)
    np.testing.assert_allclose(inverse.centre, centre, rtol=1e-12)
    np.testing.assert_allclose(spectrum, np.linalg.eigvalsh(H)[::-1][:4], rtol=1e-9)


def test_risk_falls_to_the_minimum_where_there_is_one():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((4000, 6)) @ np.diag([5, 2, 1, 1, 0.5, 0.2]) + 1
    scores = (X - 1) @ rng.standard_normal((6, 4)) / 2 + rng.gumbel(size=(4000, 4))
    y = scores.argmax(axis=1)
    reference = LogisticRegression(C=np.inf, max_iter=500, tol=1e-8).fit(X, y)
    model = fit(X, y, max_passes=60, step_size=1.0, rank=5)

    def risk(m):
        return row_losses(X @ m.coef_.T + m.intercept_, y).mean()

    assert risk(model) < risk(reference) + 1e-3
    assert model.history_["objective"][-1] < model.history_["objective"][0]


def test_weights_equal_repetitions():
    # exact where a batch is all rows: one batch a pass, whose sums do not know in how many parts a weight came
    X, y = blobs(n=60)
    X, y = X[:9], np.arange(9) % 3
    weight = np.array([1, 2, 1, 1, 1, 2, 1, 2, 1])
    options = {"step_size": 0.5, "rank": 2, "max_passes": 12, "average": False, "n_jobs": 1}
    assert weight.sum() <= 16
    a = fit(X, y, weight.astype(float), **options)
    b = fit(np.repeat(X, weight, axis=0), np.repeat(y, weight), **options)
    # H's covariance and the mean row agree as well; the sums over a batch are in units of the mean weight
    np.testing.assert_allclose(a.preconditioner_.centre, b.preconditioner_.centre, rtol=1e-12)
    np.testing.assert_allclose(a.eigenvalues_, b.eigenvalues_, rtol=1e-9)
    scale = len(X) / weight.sum()
    options["step_size"] = 0.5 / scale
    c = fit(X, y, weight.astype(float), **options)
    np.testing.assert_allclose(c.coef_, b.coef_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(c.intercept_, b.intercept_, rtol=1e-9, atol=1e-12)


def test_weights_equal_repetitions_in_expectation():
    rng = np.random.default_rng(9)
    X = rng.standard_normal((150, 3))
    y = (X[:, :1] + rng.gumbel(size=(150, 3)) + X).argmax(axis=1)
    weight = rng.integers(1, 4, 150)
    options = {"step_size": 1.0, "rank": 2, "max_passes": 40, "n_jobs": 1}
    weighted = np.array([fit(X, y, weight, random_state=s, **options).coef_.ravel() for s in range(30)])
    repeated = np.array([fit(np.repeat(X, weight, axis=0), np.repeat(y, weight), random_state=s, **options
                             ).coef_.ravel() for s in range(30)])
    gap = np.abs(weighted.mean(axis=0) - repeated.mean(axis=0))
    unweighted = np.mean([fit(X, y, random_state=s, **options).coef_.ravel() for s in range(10)], axis=0)
    assert np.all(gap < 0.05) and np.abs(unweighted - repeated.mean(axis=0)).max() > 2 * gap.max()


def test_weight_zero_is_absence_and_scale_is_nothing(digits):
    X, _, y, _ = digits
    weight = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    kept = weight > 0
    assert same(fit(X, y, weight), fit(X[kept], y[kept], weight[kept]))
    np.testing.assert_allclose(fit(X, y, 1000 * weight).coef_, fit(X, y, weight).coef_, rtol=1e-6, atol=1e-9)
    assert same(fit(X, y, class_weight={3: 2.0}), fit(X, y, np.where(y == 3, 2.0, 1.0)))
    assert same(fit(X, y, class_weight="balanced"), fit(X, y, len(y) / (10 * np.bincount(y))[y]))


@pytest.mark.parametrize("n_classes", [2, 3, 40, 1000])
def test_two_to_a_thousand_classes(n_classes):
    rng = np.random.default_rng(n_classes)
    y = np.repeat(np.arange(n_classes), 4)
    X = rng.standard_normal((n_classes, 60))[y] + 0.2 * rng.standard_normal((len(y), 60))
    model = fit(X.astype(np.float32), y)
    assert model.coef_.shape == ((1 if n_classes == 2 else n_classes), 60) and model.coef_.dtype == np.float32
    assert model.score(X, y) > 0.9


def test_two_classes_are_one_problem():
    X, y = load_breast_cancer(return_X_y=True)
    X, names = StandardScaler().fit_transform(X), np.array(["malignant", "benign"], dtype=object)[y]
    model = fit(X, names)
    assert model.decision_function(X).shape == model.posterior(X).shape == (len(y),)
    assert model.coef_.shape == (1, 30) and model.intercept_.shape == (1,) and model.score(X, names) > 0.96
    proba = model.predict_proba(X)
    np.testing.assert_allclose(proba[:, 1], 1 / (1 + np.exp(-model.decision_function(X))))
    again = fit(X, names, warm_start=True)
    before = again.score(X, names)
    assert again.fit(X, names).score(X, names) >= before - 0.01


@pytest.mark.parametrize("shape", [(3, 1), (3, 5), (30, 1)])
def test_next_to_nothing_to_learn_from(shape):
    X = np.linspace(-1, 1, shape[0])[:, None] * np.ones(shape[1])
    y = np.digitize(X[:, 0], [-0.4, 0.4])
    model = fit(X, y, max_passes=200, step_size=1.0)
    assert np.isfinite(model.coef_).all() and model.score(X, y) > 0.6


def test_columns_that_are_constant_or_zero_and_rows_that_are_zero():
    X, y = blobs()
    X[:, 2], X[:, 5], X[7] = 0.0, 3.0, 0.0
    for parameters in ({}, {"tail": "drop"}, {"rank": 12}):
        model = fit(X, y, **parameters)
        assert np.isfinite(model.coef_).all() and model.score(X, y) > 0.7
    assert np.isfinite(fit(np.zeros((6, 2)), [0, 1, 2, 1, 0, 2]).intercept_).all()


def test_a_class_of_one_row_and_a_batch_larger_than_the_data():
    X, y = blobs(n=400)
    X[0], y = 30.0, np.where(y == 0, 1, y)
    y[0] = 0
    model = fit(X, y)
    assert model.predict(X[:1])[0] == 0
    order, n_held = split_order(y.astype(np.int64), 4, np.random.default_rng(0))
    assert n_held >= 20 and 0 in order[:-n_held] and sorted(order) == list(range(400))
    assert batch_size(9, False) == 16 and fit(X[:9], np.arange(9) % 3).coef_.shape == (3, 12)


def test_held_out_rows_come_from_every_class_that_has_some():
    y = np.repeat(np.arange(50), 20)
    order, n_held = split_order(y, 50, np.random.default_rng(1))
    counts = np.bincount(y[order[-n_held:]], minlength=50)
    assert n_held == 200 and counts.min() == counts.max() == 4
    assert split_order(np.arange(300), 300, np.random.default_rng(1))[1] == 0       # nobody can spare a row


# ---------------------------------------------------------------- formats, threads, bits

@pytest.mark.parametrize("tail", ["scale", "drop"])
def test_dense_formats_give_the_same_bits_and_csr_the_same_numbers(dtype, tail, tmp_path):
    X, y = blobs(n=300)
    X = X.astype(dtype)
    models = {
        (name, jobs): fit(as_format(X, name, tmp_path), y, n_jobs=jobs, tail=tail, rank=4, step_size=0.5)
        for name in FORMATS for jobs in (1, 3)
    }
    for name in FORMATS:
        assert same(models[name, 1], models[name, 3]), name
        assert models[name, 1].coef_.dtype == dtype
    for name in FORMATS[1:5]:
        assert same(models[name, 1], models["C", 1]), name
    assert same(models["csr", 1], models["csr64", 1])
    close = 1e-9 if dtype == np.float64 else 2e-3
    W = models["C", 1].coef_
    np.testing.assert_allclose(models["csr", 1].coef_, W, atol=close * np.abs(W).max())


@pytest.mark.parametrize("parameters", [{}, {"tail": "drop", "rank": 10}, {"hessian_refresh": 1, "max_passes": 3}],
                         ids=str)
@pytest.mark.parametrize("sparse", [False, True])
def test_same_bits_for_any_number_of_threads(digits, parameters, sparse, monkeypatch):
    monkeypatch.setattr("cmargin.solvers.low_rank.softmax_passes.FLOPS_PER_THREAD", 0)
    X, _, y, _ = digits
    X = sp.csr_matrix(X) if sparse else X.astype(np.float32)
    one, two, three = (fit(X, y, n_jobs=jobs, **parameters) for jobs in (1, 2, 3))
    assert same(one, two) and same(one, three)


def test_concurrent_fits_give_the_bits_of_one(digits):
    X, _, y, _ = digits
    alone = fit(X, y)
    with ThreadPoolExecutor(8) as pool:
        others = list(pool.map(lambda _: fit(X, y), range(8)))
    assert all(same(alone, other) for other in others)


def test_wide_sparse_rows_are_not_made_dense():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(5), 20)
    X = sp.random(100, 5000, 0.01, "csr", random_state=1) + sp.csr_matrix(
        (rng.uniform(1, 2, 1000), (np.repeat(np.arange(100), 10), (50 * np.repeat(y, 10) + rng.integers(0, 50, 1000)))),
        (100, 5000))
    for tail in ("scale", "drop"):
        assert fit(X, y, tail=tail).score(X, y) > 0.95


def test_input_is_left_alone(digits):
    X, _, y, _ = digits
    X, before = np.asfortranarray(X), X.copy()
    fit(X, y)
    assert np.array_equal(X, before)


# ---------------------------------------------------------------- predictions

def test_probabilities_are_the_softmax_and_calibrated(digits):
    X, X_test, y, y_test = digits
    model = fit(X, y)
    scores = model.decision_function(X_test)
    np.testing.assert_allclose(model.predict_proba(X_test), softmax(scores), rtol=1e-10)
    np.testing.assert_allclose(model.posterior(X_test), softmax(scores), rtol=1e-10)
    np.testing.assert_allclose(model.predict_log_proba(X_test), np.log(softmax(scores)), rtol=1e-8)
    assert np.array_equal(model.predict(X_test), scores.argmax(axis=1))
    assert np.array_equal(model.predict_top_k(X_test, 3), np.argsort(-scores, axis=1)[:, :3])
    assert expected_calibration_error(model.predict_proba(X_test), y_test) < 0.05


def test_an_indicator_is_no_task_for_it():
    X, Y = make_multilabel_classification(100, 8, n_classes=3, random_state=4)
    with pytest.raises(ValueError, match="loss='multinomial' takes classes that exclude each other"):
        fit(X, Y)
    with pytest.raises(ValueError, match="step_size='theory' is one of a calibrated loss"):
        fit(X, Y[:, 0], step_size="theory")


# ---------------------------------------------------------------- going on, stopping, watching

def test_partial_fit_over_batches_approaches_fit(digits):
    X, X_test, y, y_test = digits
    model = SLNDClassifier(random_state=5)
    for rows in np.array_split(np.random.default_rng(0).permutation(len(y)), 6):
        model.partial_fit(X[rows], y[rows], classes=np.arange(10))
    assert model.loss_ == "multinomial" and model.n_iter_ == 6
    assert model.score(X_test, y_test) > fit(X, y).score(X_test, y_test) - 0.04


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


def test_pickled_it_predicts_the_same(digits):
    X, X_test, y, _ = digits
    model = fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(model.predict_proba(X_test), again.predict_proba(X_test))


def test_an_interrupt_before_the_first_pass_leaves_a_model_too(digits, monkeypatch):
    X, X_test, y, _ = digits

    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("cmargin.solvers.low_rank.multinomial.build_inverse", interrupted)
    model = SLNDClassifier()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.predict(X_test).shape == (len(X_test),)


def test_defaults_reach_the_best_lbfgs_on_mnist(shared_data):
    # 92.33 is what LogisticRegression(lbfgs) has at C = 10 after 60 iterations, the best of C = 1, 10, 100, 1000
    X, y, X_test, y_test = shared_data("mnist")
    X, X_test = normalize(X.astype(np.float32)), normalize(X_test.astype(np.float32))
    model = fit(X, y, loss="auto")
    assert model.score(X_test, y_test) >= 0.9233
    assert expected_calibration_error(model.predict_proba(X_test), y_test) < 0.02


def test_overflow_while_rows_are_held_out_leaves_the_start(digits, monkeypatch):
    # the first pass had no finite loss: it was taken for the end, and no pass over all rows could follow
    monkeypatch.setattr("cmargin.solvers.low_rank.multinomial.automatic_step", lambda *arguments: 1e42)
    X, X_test, y, _ = digits
    with pytest.warns(ConvergenceWarning, match="overflowed"):
        model = fit(X.astype(np.float32), y, max_passes=5)
    assert model.n_iter_ == 5 and np.isfinite(model.coef_).all()
    np.testing.assert_allclose(model.predict_proba(X_test)[0], np.bincount(y) / len(y), rtol=1e-5)
    # where the step is only a little too long, half of it is enough
    steps = iter([1e42])
    monkeypatch.setattr("cmargin.solvers.low_rank.multinomial.MultinomialRun._step",
                        lambda self, number: next(steps, 0.05) * 0.5**self.halvings)
    assert fit(X.astype(np.float32), y).score(X, y) > 0.9


def test_the_step_is_doubled_and_halved_by_held_out_losses_and_shrinks_with_more_rows():
    class Bowl:
        """Held-out losses least at a step of 8, over 100 rows of 1,600."""

        n_train, n_all, tried = 100, 1600, ()

        def losses(self, step):
            self.tried += (step,)
            return np.full(50, abs(np.log2(step / 8.0))) + 1e-3 * np.arange(50)

    bowl = Bowl()
    assert automatic_step(bowl, bowl.losses(2.0)) == 8.0 * (100 / 1600)**0.25
    assert bowl.tried == (2.0, 4.0, 8.0, 16.0, 4.0)
