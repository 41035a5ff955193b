"""Scale is judged apart from direction: models by the log-loss of rows held out, each at the factor that suits them."""

import numpy as np
import pytest
from api import scaled_losses
from fits import fit_multinomial as fit
from naive_multinomial import row_losses
from ranks_in_threads import on_ranks
from rows_in_files import files_of
from scipy.optimize import minimize_scalar
from sklearn.linear_model import LogisticRegression
from tensors import LIBRARIES

from cmargin import SLNDClassifier
from cmargin.solvers import cost
from cmargin.solvers.sgd import multinomial
from cmargin.solvers.sgd.held_out import best_factor, sure_factor
from cmargin.solvers.sgd.multinomial import MultinomialRun
from cmargin.solvers.sgd.softmax_weights import SoftmaxWeights


def overlapping(m, n_classes, per, sep=0.4, seed=0):
    """Unit rows around one common direction, shuffled, and 200 a class to test by."""
    rng = np.random.default_rng(seed)
    centres, base = rng.standard_normal((n_classes, m)), rng.standard_normal(m)
    y, t = np.repeat(np.arange(n_classes), per), np.repeat(np.arange(n_classes), 200)

    def draw(k):
        X = base + sep * centres[k] + 1.2 * rng.standard_normal((len(k), m))
        return X / np.linalg.norm(X, axis=1, keepdims=True)

    X, T, order = draw(y), draw(t), rng.permutation(len(y))
    return X[order], y[order], T, t


# ---------------------------------------------------------------- the factor

@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [3, 40])
def test_sums_are_the_derivatives_of_the_losses_in_the_factor(dtype, n_classes, weighted):
    rng = np.random.default_rng(2)
    n, t, h = 37, 0.7, 1e-4
    H, y = rng.standard_normal((n, n_classes)).astype(dtype), rng.integers(0, n_classes, n)
    weight = rng.uniform(0.5, 2, n) if weighted else np.zeros(0)
    s, share = weight if weighted else np.ones(n), np.full(n_classes, 1 / n_classes)

    def losses(t):
        return s * row_losses(t * H.astype(float), y)

    found = np.empty(n)
    slope, curvature, by_share = scaled_losses(H, y, weight, share, t, found)
    exact = 1e-5 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(found, losses(t), rtol=exact, atol=exact)
    up, here, down = (losses(at).sum() for at in (t + h, t, t - h))
    assert slope == pytest.approx((up - down) / (2 * h), abs=1e-3)
    assert curvature == pytest.approx((up - 2 * here + down) / h**2, rel=1e-3)
    own = s @ (H[np.arange(n), y] - H.mean(axis=1))
    assert by_share == pytest.approx(slope + own, abs=1e-3)


def test_the_best_factor_has_the_least_loss_with_one_row_more():
    rng = np.random.default_rng(0)
    n, y = 300, rng.integers(0, 5, 300)
    H = rng.standard_normal((n, 5))
    H[np.arange(n), y] += 2
    share = np.bincount(y) / n
    for scale in (0.01, 1.0, 30.0):
        factor, losses, plain = best_factor(scale * H, y, np.zeros(0))

        def loss(t, scale=scale):
            whole = row_losses(t * scale * H, y) + t * scale * H[np.arange(n), y]
            return row_losses(t * scale * H, y).sum() + (whole - t * scale * H @ share).mean()

        best = minimize_scalar(loss, bounds=(1e-3, 1e3), method="bounded", options={"xatol": 1e-10})
        assert loss(factor) <= best.fun * (1 + 1e-4)
        np.testing.assert_allclose(losses, row_losses(factor * scale * H, y), rtol=1e-10, atol=1e-13)
        np.testing.assert_allclose(plain, row_losses(scale * H, y), rtol=1e-10, atol=1e-13)


def test_rows_that_are_all_right_have_a_finite_factor():
    y = np.arange(30) % 3
    factor, losses, _ = best_factor(np.eye(3)[y], y, np.zeros(0))
    assert 2 < factor < 10 and losses.max() < 0.1           # 29 to 1 or thereabouts
    assert best_factor(np.full((30, 3), np.inf), y, np.zeros(0))[0] == 1
    assert sure_factor(2.0, np.array([1.0, 1.2]), np.array([1.1, 1.15])) == 1.0
    assert sure_factor(2.0, np.array([1.0, 1.1]), np.array([1.5, 1.6])) == 2.0


@pytest.mark.parametrize("sparse", [False, True])
def test_weights_times_a_factor_have_scores_times_it(sparse):
    rng = np.random.default_rng(0)
    few, none = rng.standard_normal((3, 4)), np.empty((0, 4))
    V, shift = (few.T.copy(), rng.standard_normal((3, 3))) if sparse else (np.empty((0, 0)), np.empty((0, 3)))
    weights = SoftmaxWeights(few, none, V, np.empty((0, 0)), shift, np.ones((3, 2)), 4, base=few)
    twice = weights.times(2.0)
    for name in ("U", "V", "shift", "bias", "base"):
        np.testing.assert_array_equal(getattr(twice, name), 2 * getattr(weights, name))


# ---------------------------------------------------------------- what it is for

@pytest.mark.parametrize(("m", "n_classes", "per"), [(256, 30, 12), (128, 20, 25)])
def test_the_automatic_step_is_as_good_as_the_best_on_unit_rows_that_overlap(m, n_classes, per, monkeypatch):
    # log-loss alone rewards scale: the longest step was taken, and nearly twice as many rows were wrong
    monkeypatch.setattr(cost, "PATH_FLOPS", (0.0, 0.0))
    X, y, T, t = overlapping(m, n_classes, per)
    model = fit(X, y)
    best = max(fit(X, y, step_size=step).score(T, t) for step in (0.25, 1.0, 4.0))
    assert model.score(T, t) > best - 0.01
    scores = model.decision_function(T)
    assert row_losses(scores, t).mean() < 1.1 * min(row_losses(k * scores, t).mean() for k in (0.25, 0.5, 2, 4, 8))


def test_the_factor_leaves_predictions_as_they_are(monkeypatch):
    monkeypatch.setattr(cost, "PATH_FLOPS", (0.0, 0.0))                        # a path begins at scores of their scale
    X, y, T, t = overlapping(256, 30, 12)
    model = fit(X, y)
    monkeypatch.setattr(multinomial, "sure_factor", lambda *of_held: 1.0)
    plain = fit(X, y)
    np.testing.assert_array_equal(model.predict(T), plain.predict(T))
    factor = model.coef_ / plain.coef_
    assert factor.min() > 1.5 and np.ptp(factor) < 1e-6 * factor.max()
    assert row_losses(model.decision_function(T), t).mean() < 0.7 * row_losses(plain.decision_function(T), t).mean()


# ---------------------------------------------------------------- rows too few to hold any out

@pytest.mark.parametrize("per", [1, 2, 3])
def test_classes_of_three_rows_and_fewer_end_at_a_penalised_optimum(per):
    # ten passes with a step of 1 and an inverse of as many directions as the knee says lost 3 points
    X, y, T, t = overlapping(384, 60, per, 0.5)
    model = fit(X, y)
    assert model.n_iter_ == 1 and model.history_["step"][-1] == 0 and model.rank_ == 1
    best = max(LogisticRegression(C=C, max_iter=200).fit(X, y).score(T, t) for C in (1, 10, 100))
    assert model.score(T, t) > best - 0.01


def test_an_optimum_does_not_begin_where_a_class_was_left_out_whole():
    # It began at the optimum of rows without a class, whose intercept keeps it from being predicted, and ended there
    X, y, *_ = overlapping(384, 60, 2, 0.5, seed=3)
    assert fit(X, y).score(X, y) == 1


def test_a_dear_path_is_one_strength_and_a_dear_optimum_passes(monkeypatch):
    X, y, T, t = overlapping(384, 60, 3, 0.5)
    path = fit(X, y)
    monkeypatch.setattr(cost, "PATH_FLOPS", (0.0, 0.0))
    one = fit(X, y)
    monkeypatch.setattr(cost, "OPTIMUM_FLOPS", 0.0)
    passes = fit(X, y)
    assert path.n_passes_ > 3 * one.n_passes_ and one.n_iter_ == 1 and passes.n_iter_ == 10
    assert min(one.score(T, t), passes.score(T, t)) > path.score(T, t) - 0.02


@pytest.mark.parametrize("options", [{"step_size": 1.0}, {"max_passes": 3}])
def test_few_rows_with_a_step_of_ones_own_have_passes(options):
    X, y, *_ = overlapping(64, 30, 2)
    assert fit(X, y, **options).history_["step"].min() > 0


@pytest.mark.parametrize("per", [3, 12])
def test_rows_in_files_and_on_a_device_have_the_factor_and_the_optimum_of_rows_in_memory(per, tmp_path):
    X, y, T, t = overlapping(64, 30, per)
    memory = fit(X, y)
    sources = [fit(files_of(X, "npy C", tmp_path), y), *(fit(put(X), y) for put in LIBRARIES.values())]
    for one in sources:
        assert one.n_iter_ == memory.n_iter_ or per > 3
        if per == 3:
            np.testing.assert_allclose(one.coef_, memory.coef_, rtol=1e-6, atol=1e-7 * np.abs(memory.coef_).max())
        scores = T @ np.asarray(one.coef_).T + np.asarray(one.intercept_)
        assert np.mean(scores.argmax(axis=1) == t) > memory.score(T, t) - 0.02
        assert row_losses(scores, t).mean() < 1.1 * row_losses(memory.decision_function(T), t).mean()


def test_same_bits_for_any_number_of_threads(dtype):
    for per in (2, 12):
        X, y, *_ = overlapping(256, 30, per)
        a, b = (fit(X.astype(dtype), y, n_jobs=n) for n in (1, 3))
        np.testing.assert_array_equal(a.coef_, b.coef_)
        np.testing.assert_array_equal(a.intercept_, b.intercept_)


def test_steps_are_tried_on_other_splits_where_few_rows_are_held_out(monkeypatch):
    # thirty rows held out took a step of 8 for one of 2, and lost two points
    tried, trial = [], MultinomialRun._trial
    monkeypatch.setattr(MultinomialRun, "_trial",
                        lambda self, *given: tried.append(trial(self, *given)) or tried[-1])
    for per in (8, 60):
        X, y, *_ = overlapping(64, 30, per)
        fit(X, y)
    few, many = tried
    assert len(few.splits) == 5 and len(many.splits) == 1
    for one in few.splits:
        assert sorted(one.at) == list(range(len(y) * 8 // 60)) and len(one.at) - one.n_train >= 20


def test_few_rows_over_ranks_end_at_a_penalised_optimum():
    X, y, T, t = overlapping(64, 30, 3)
    memory = fit(X, y)
    two = on_ranks(2, lambda comm: SLNDClassifier(loss="multinomial", random_state=5).fit(
        X[comm.rank::2], y[comm.rank::2], comm=comm))[0]
    np.testing.assert_array_equal(two[0].coef_, two[1].coef_)
    assert two[0].n_iter_ == 1 and two[0].history_["step"][-1] == 0
    assert two[0].score(T, t) > memory.score(T, t) - 0.02
