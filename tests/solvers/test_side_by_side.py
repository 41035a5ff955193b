"""Many labels of the squared hinge, solved side by side on rows that all of them share."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

from cmargin import SmSVMClassifier
from cmargin._estimators import together
from cmargin.data.memory.source import MemorySource
from cmargin.solvers.newton.label_batches import solve_together
from tests.kernels.api import LANE_COUNT
from tests.twins import side_by_side as twin


def drawn(seed, n=300, m=40, n_labels=50, dtype=np.float64):
    """Sparse rows, and labels of which a few rows have each."""
    rng = np.random.default_rng(seed)
    X = sp.random(n, m, 0.2, "csr", dtype, rng)
    scores = X @ rng.normal(size=(m, n_labels)) + 0.3 * rng.normal(size=(n, n_labels))
    shares = rng.uniform(0.02, 0.4, n_labels)
    return X, sp.csc_matrix((scores > np.quantile(scores, 1 - shares, axis=0).diagonal()).astype(np.int8))


def fitted(X, Y, sample_weight=None, **parameters):
    return SmSVMClassifier(**{"loss": "squared_hinge", "C": 1.0, "tol": 1e-4, **parameters}).fit(X, Y, sample_weight)


def alone(X, Y, c, sample_weight=None, **parameters):
    """Label c by itself, to many digits."""
    return fitted(X, Y[:, [c]], sample_weight, **{**parameters, "tol": 1e-9})


def objective(model, X, signs, c, weight, l2, penalised):
    w, b = model.coef_[c], model.intercept_[c]
    slack = np.maximum(0, 1 - signs * (X @ w + b))
    return l2 / 2 * (w @ w + penalised * b**2) + weight @ slack**2 / weight.sum()


@pytest.mark.parametrize("intercept", ["free", "penalised", "none"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_label_is_within_its_tolerance_of_the_optimum(intercept, dtype):
    for seed in range(4):
        X, Y = drawn(seed, dtype=dtype)
        weight = np.random.default_rng(seed).uniform(0, 2, X.shape[0]) if seed % 2 else None
        parameters = {"fit_intercept": intercept != "none", "penalize_intercept": intercept == "penalised"}
        model = fitted(X, Y, weight, **parameters)
        assert (model.duality_gap_ <= 1e-4).all() and set(model.history_["smoothing"]) == {0.0}
        weight = np.ones(X.shape[0]) if weight is None else weight
        l2, signs = 1 / weight.sum(), 2.0 * Y.toarray() - 1
        for c in (0, 17, 49):
            reached = objective(model, X.astype(float), signs[:, c], c, weight, l2, intercept == "penalised")
            np.testing.assert_allclose(model.objective_[c], reached, rtol=1e-9)
            least = alone(X, Y, c, weight, **parameters).objective_[0]
            assert least * (1 - 1e-9) <= reached <= least / (1 - 1.001e-4)


def test_the_certificate_is_that_of_an_independent_solver():
    X, Y = drawn(7, n_labels=20)
    model, l2 = fitted(X, Y, tol=1e-6), 1 / X.shape[0]

    def value(v, y):
        slack = np.maximum(0, 1 - y * (X @ v[:-1] + v[-1]))
        return l2 / 2 * v[:-1] @ v[:-1] + (slack**2).mean(), \
            np.append(l2 * v[:-1] - X.T @ (2 * slack * y) / len(y), -(2 * slack * y).mean())

    for c in range(0, 20, 5):
        y = 2.0 * Y[:, [c]].toarray().ravel() - 1
        least = minimize(value, np.zeros(X.shape[1] + 1), y, "L-BFGS-B", jac=True,
                         options={"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-12}).fun
        bound = model.objective_[c] * (1 - model.duality_gap_[c])
        assert bound <= least * (1 + 1e-12) and least <= model.objective_[c] * (1 + 1e-9)
        assert model.objective_[c] - least <= 1e-6 * model.objective_[c]


def test_steps_are_those_of_the_twin():
    X, Y = drawn(3)
    n = X.shape[0]
    l2 = 1 / n
    rows = MemorySource(X).lane_rows(None, l2, 0.0, Y.shape[1])
    batches = []
    solve_together(rows.batches(Y, 1e-4, 1000), 1, lambda: None, batches.append)
    found = {batch.lo + at: (batch.proven, at) for batch in batches for at in range(batch.hi - batch.lo)}
    assert sorted(found) == list(range(50))
    inverse = np.diag(rows.scale) if rows.inverse is None else rows.inverse
    for c in range(0, 50, 7):
        w, b, steps = twin.solve(X, 2.0 * Y[:, [c]].toarray().ravel() - 1, np.ones(n), l2, inverse, 0.0, 1e-4, 100)
        proven, at = found[c]
        assert abs(proven.steps[at] - steps) <= 1
        assert np.linalg.norm(proven.w[at] - w) <= 0.02 * np.linalg.norm(w) and abs(proven.b[at] - b) <= 0.02


def test_labels_of_short_rows_at_weak_penalties_end_side_by_side():
    # at most 100 steps side by side, and then alone, took 5 s where LinearSVC takes 1
    rng = np.random.default_rng(0)
    X = sp.random(1500, 300, 0.02, "csr", rng=rng)
    X.data[:] = 1
    scores = X @ rng.normal(size=(300, 32)) + 2 * rng.normal(size=(1500, 32))
    Y = sp.csc_matrix((scores > np.quantile(scores, 0.98, axis=0)).astype(np.int8))
    model = fitted(X, Y, C=10.0, tol=1e-3)
    assert set(model.history_["smoothing"]) == {0.0} and 50 < model.n_passes_per_class_.max() <= 301


def test_labels_that_would_not_end_leave_early():
    X, Y = drawn(4, n_labels=16)
    far = sp.csr_matrix(X.multiply(10.0 ** np.linspace(-1.5, 1.5, X.shape[1])))
    rows, batches, most = MemorySource(far).lane_rows(None, 1e-6, 0.0, 16), [], 90
    solve_together(rows.batches(Y, 1e-3, most), 1, lambda: None, batches.append)
    proven = batches[0].proven
    gap = 1 - proven.dual / proven.objective
    left = gap > 1e-2
    assert left.sum() > 4 and (proven.steps >= most / 3)[left].all() and (proven.steps < 0.6 * most)[left].any()


def test_a_label_reads_the_rows_a_dozen_times():
    for seed in range(20):
        X, Y = drawn(seed, n=1000)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = fitted(X, Y, tol=1e-3)
        assert model.n_passes_ <= 16 * Y.shape[1] and model.n_iter_ <= 30
        assert len(model.history_["passes"]) == Y.shape[1]


@pytest.mark.parametrize("n_labels", [LANE_COUNT, 3 * LANE_COUNT + 1, 300])
def test_equal_bits_for_any_number_of_threads(n_labels):
    X, Y = drawn(5, n=120, n_labels=n_labels)
    one, three = (fitted(X, Y, n_jobs=n_jobs) for n_jobs in (1, 3))
    np.testing.assert_array_equal(one.coef_, three.coef_)
    np.testing.assert_array_equal(one.intercept_, three.intercept_)
    np.testing.assert_array_equal(one.duality_gap_, three.duality_gap_)


def test_exclusive_classes_are_solved_side_by_side_too():
    X, Y = drawn(11, n_labels=20)
    y = np.asarray(Y.argmax(axis=1)).ravel()
    model = fitted(X, y)
    assert (model.duality_gap_ <= 1e-4).all() and model.n_iter_ < 100
    assert model.score(X, y) > 0.4


def test_what_side_by_side_does_not_prove_is_solved_alone():
    X, Y = drawn(2, n_labels=20)
    far = sp.csr_matrix(X.multiply(np.where(np.arange(40) % 2, 1e4, 1.0)))
    model = fitted(far, Y, C=1e3, max_passes=2000)
    one_by_one = fitted(far, Y, C=1e3, max_passes=2000, callback=lambda estimator: False)
    assert (model.duality_gap_ <= 1e-4).all()
    again = model.objective_ == one_by_one.objective_                 # to the bit
    assert again.any() and model.n_passes_ >= one_by_one.n_passes_ + again.sum()


@pytest.mark.parametrize("unit", [1e-25, 1e25, 1e40])
def test_rows_beyond_single_precision_are_solved_alone(unit):
    X, Y = drawn(4, n_labels=20)
    model = fitted(X * unit, Y, l2=unit**2 / X.shape[0], C=None)
    assert (model.duality_gap_ <= 1e-4).all() and np.isfinite(model.coef_).all()


def test_labels_of_one_sign_and_rows_of_no_weight():
    X, Y = drawn(6)
    Y = Y.tolil()
    Y[:, 3], Y[:, 8] = 0, 1
    weight = np.where(np.arange(300) % 3, 1.0, 0.0)
    with pytest.warns(UserWarning, match="Label"):
        model = fitted(X, Y.tocsr(), weight)
    assert (model.duality_gap_ <= 1e-4).all()
    assert not model.coef_[[3, 8]].any() and np.sign(model.intercept_[[3, 8]]).tolist() == [-1, 1]
    kept = weight > 0
    with pytest.warns(UserWarning, match="Label"):
        without = fitted(X[kept], Y.tocsr()[kept])
    np.testing.assert_allclose(model.objective_, without.objective_, rtol=2e-4, atol=1e-12)


def test_entries_that_are_stored_twice_or_out_of_order():
    X, Y = drawn(9)
    coo = X.tocoo()
    twice = sp.csr_matrix((np.tile(coo.data / 2, 2), (np.tile(coo.row, 2), np.tile(coo.col, 2))), shape=X.shape)
    unsummed = sp.csr_matrix((np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr), shape=X.shape)
    for same in (twice, unsummed):
        np.testing.assert_allclose(fitted(same, Y).objective_, fitted(X, Y).objective_, rtol=2e-4)


def test_time_that_is_over_leaves_a_usable_model():
    X, Y = drawn(1)
    with pytest.warns(UserWarning, match="max_time"):
        model = fitted(X, Y, max_time=1e-9)
    assert np.isfinite(model.coef_).all() and model.predict(X).shape == Y.shape


def test_an_interrupt_leaves_what_is_proven(monkeypatch):
    X, Y = drawn(1, n_labels=200)
    told = []

    def hear_one(fit, batch, pruning):
        told.extend(range(batch.lo, batch.hi))
        heard(fit, batch, pruning)
        raise KeyboardInterrupt

    heard = together.hear
    monkeypatch.setattr(together, "hear", hear_one)
    model = SmSVMClassifier(loss="squared_hinge", C=1.0, n_jobs=1)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert 0 < len(told) < 200 and (model.duality_gap_[told] <= 1e-4).all()
    assert np.isfinite(model.coef_).all() and np.isfinite(model.objective_).all()


def test_a_callback_or_a_checkpoint_leaves_each_problem_to_itself(tmp_path):
    X, Y = drawn(0, n_labels=20)
    seen = []
    model = fitted(X, Y, callback=lambda estimator: seen.append(estimator.objective_[0]))
    assert len(seen) > 20
    kept = fitted(X, Y, checkpoint=tmp_path / "kept")
    np.testing.assert_allclose(model.objective_, kept.objective_, rtol=2e-4)


def test_offsets_leave_each_problem_to_itself():
    X, Y = drawn(0, n_labels=20)
    offset = np.random.default_rng(0).normal(size=(300, 20))
    parameters = {"loss": "squared_hinge", "C": 1.0}
    model = SmSVMClassifier(**parameters).fit(X, Y, offset=offset)
    alone = SmSVMClassifier(**parameters, callback=lambda estimator: False).fit(X, Y, offset=offset)
    np.testing.assert_allclose(model.objective_, alone.objective_, rtol=2e-4)
    assert len(model.history_["passes"]) > 20


def test_the_plan_says_so(capsys):
    X, Y = drawn(0, n_labels=20)
    fitted(X, Y, verbose=2)
    assert "Conjugate gradients of all problems side by side" in capsys.readouterr().out
