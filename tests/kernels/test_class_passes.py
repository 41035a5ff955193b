"""The compiled passes against the paper's literal update, sample after sample."""

import numpy as np
import pytest
import scipy.sparse as sp
from api import LOSS_IDS, Rows, _class_sgd
from conftest import blobs
from naive import CURVATURE_AT_ZERO, literal_steps, low_rank_inverse, mean_of_samples, theory_steps

from cmargin._runtime.clock import RunClock, TimeUp
from cmargin.data import open_rows
from cmargin.solvers.per_class import class_streams, constant_score
from cmargin.solvers.sgd.class_lists import ClassLists
from cmargin.solvers.sgd.class_passes import ClassPasses
from cmargin.solvers.sgd.class_weights import ClassWeights
from cmargin.solvers.sgd.low_rank import build_inverse

LOSSES = list(CURVATURE_AT_ZERO)
N_PASSES = 8                    # of about 480 visits a class: thousands of steps


def indicator(y):
    return sp.csc_matrix(y[:, None] == np.arange(y.max() + 1))


class Setting:
    """Rows, lists and an inverse, with the visits of every pass drawn beforehand."""

    def __init__(self, sparse=False, tail="scale", dtype=np.float64, threads=2, negatives=9, weighted=False, rank=3):
        X, self.y = blobs(n=600)
        self.X = X.astype(dtype)
        self.source = open_rows(sp.csr_matrix(self.X) if sparse else self.X).stochastic_rows(threads)
        self.lists = ClassLists.from_indicator(indicator(self.y), negatives)
        self.weight = np.random.default_rng(4).uniform(0.2, 3, 600) if weighted else None
        self.tail, self.rank, self.subset = tail, rank, np.arange(0, 600, 3)
        self.inverse, _ = build_inverse(self.source, self.subset, np.ones((1, 200)), rank, tail)

    def passes(self, loss="logistic", **arguments):
        return ClassPasses(self.source, self.lists, self.weight, loss, class_streams(11, 4), **arguments)

    def visits(self, n_passes):
        """What the classes will visit: the same streams, drawn here."""
        streams, offsets = class_streams(11, 4), np.concatenate([[0], np.cumsum(self.lists.lengths)])
        per_class = [[] for _ in range(4)]
        for _ in range(n_passes):
            visits = np.empty(offsets[-1], np.int64)
            _class_sgd.draw_lists(self.lists.positives, self.lists.starts, self.lists.n_negatives, streams,
                                  np.zeros((1, 600), np.uint8), 0, offsets, visits, 1)
            for c in range(4):
                per_class[c].append(visits[offsets[c]:offsets[c + 1]].copy())
        return per_class

    def weights(self, average=True, **arguments):
        return ClassWeights.start(self.inverse, 4, self.X.dtype, average, **arguments)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("tail", ["drop", "scale"])
@pytest.mark.parametrize("sparse", [False, True])
def test_whitened_steps_are_the_literal_ones(loss, tail, sparse):
    s = Setting(sparse, tail, weighted=True)
    Z, weights, mean = s.source.whiten(s.inverse), s.weights(average=False), s.weights()
    step, beta, runner, runner_mean = np.full(4, 0.02), np.array([0.5]), s.passes(loss), s.passes(loss)
    for _ in range(N_PASSES):
        runner.plain(Z, s.inverse, weights, step, beta)
        runner_mean.plain(Z, s.inverse, mean, step, beta)
    H_star = low_rank_inverse(s.X[s.subset].T @ s.X[s.subset] / 200, s.rank, tail)
    W, bias = weights.linear(s.inverse)
    W_mean, bias_mean = mean.linear(s.inverse)
    for c, passes in enumerate(s.visits(N_PASSES)):
        iterates = literal_steps(s.X, np.concatenate(passes), loss, 0.02, lambda x: H_star @ x, 0.5, s.weight)
        assert len(iterates) > 1500
        w, b = iterates[-1]
        size = np.abs(w).max()
        assert np.abs(W[c] - w).max() < 1e-10 * size and abs(bias[c] - b) < 1e-10 * max(1, abs(b))
        w, b = mean_of_samples(iterates)
        assert np.abs(W_mean[c] - w).max() < 1e-10 * size and abs(bias_mean[c] - b) < 1e-10 * max(1, abs(b))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("tail", ["drop", "scale"])
@pytest.mark.parametrize("sparse", [False, True])
def test_refreshed_steps_are_the_literal_ones(loss, tail, sparse):
    # an inverse of its own for every class, going on from weights outside its span
    s = Setting(sparse, tail)
    rng = np.random.default_rng(8)
    curvature, start = rng.uniform(0.05, 0.25, (4, 200)), 0.3 * rng.standard_normal((4, 12))
    s.inverse, _ = build_inverse(s.source, s.subset, curvature, s.rank, tail)
    weights = s.weights(average=False, W=start, bias=np.full(4, -0.2), keep_base=True)
    runner, beta = s.passes(loss), np.linspace(1, 2, 4)
    for _ in range(N_PASSES):
        runner.refreshed(s.inverse, weights, np.full(4, 0.01), beta)
    W, bias = weights.linear(s.inverse)
    for c, passes in enumerate(s.visits(N_PASSES)):
        H_star = low_rank_inverse((s.X[s.subset].T * curvature[c]) @ s.X[s.subset] / 200, s.rank, tail)
        w, b = literal_steps(s.X, np.concatenate(passes), loss, 0.01, lambda x, H=H_star: H @ x, beta[c], w=start[c],
                             b=-0.2)[-1]
        assert np.abs(W[c] - w).max() < 1e-10 * np.abs(w).max() and abs(bias[c] - b) < 1e-10 * max(1, abs(b))


def test_a_shared_refresh_serves_every_class():
    s = Setting(tail="drop")
    plain, shared = s.weights(), s.weights(W=np.zeros((4, 12)), keep_base=True)
    s.passes().plain(s.source.whiten(s.inverse), s.inverse, plain, np.full(4, 0.02), np.array([1.0]))
    s.passes().refreshed(s.inverse, shared, np.full(4, 0.02), np.array([1.0]))
    np.testing.assert_allclose(plain.linear(s.inverse)[0], shared.linear(s.inverse)[0], atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("tail", ["drop", "scale"])
@pytest.mark.parametrize("sparse", [False, True])
def test_theory_steps_are_those_of_equation_23(loss, tail, sparse):
    s = Setting(sparse, tail, negatives=1)
    weights, subset = s.weights(average=False), np.array([0, 5, 9, -3, -20, -31], np.int64)
    s.passes(loss).theory(s.source.whiten(s.inverse), s.inverse, weights, 6 * np.arange(5), np.tile(subset, 4),
                          CURVATURE_AT_ZERO[loss], np.array([0.7]))
    W, bias = weights.linear(s.inverse)
    H_star = low_rank_inverse(s.X[s.subset].T @ s.X[s.subset] / 200, s.rank, tail)
    for c, passes in enumerate(s.visits(1)):
        w, b = theory_steps(s.X, passes[0], subset, loss, lambda x: H_star @ x, 0.7)
        assert np.abs(W[c] - w).max() < 1e-8 * np.abs(w).max() and abs(bias[c] - b) < 1e-8 * max(1, abs(b))


def test_theory_step_never_raises_the_risk_of_its_subset():
    s = Setting(negatives=None)
    X, y = s.X, np.where(s.y == 2, 1.0, -1.0)
    everything = np.where(y > 0, np.arange(600), -1 - np.arange(600)).astype(np.int64)
    offsets = np.array([0, 0, 0, 600, 600])
    weights, risks = s.weights(average=False), [np.log(2)]
    runner = s.passes()
    for _ in range(3):
        runner.theory(s.source.whiten(s.inverse), s.inverse, weights, offsets, everything, 0.25, np.zeros(1))
        W, _ = weights.linear(s.inverse)
        risks.append(np.mean(np.logaddexp(0, -y * (X @ W[2]))))
    assert np.all(np.diff(risks) < 0)


def test_sums_are_those_met_before_each_step():
    s = Setting(weighted=True)
    sums = s.passes("squared").plain(s.source.whiten(s.inverse), s.inverse, s.weights(), np.zeros(4), np.array([1.0]))
    visited = [np.concatenate(v) for v in s.visits(1)]
    weight = [s.weight[np.where(v >= 0, v, -1 - v)].sum() for v in visited]
    np.testing.assert_allclose(sums[:, 2], weight)
    np.testing.assert_allclose(sums[:, 0], 0.25 * np.array(weight))
    np.testing.assert_allclose(sums[:, 1], weight)


@pytest.mark.parametrize("negatives, expected", [(1, 1), (2.5, 2.5), (None, np.inf)])
def test_lists_hold_every_positive_once_and_distinct_negatives(negatives, expected):
    s = Setting(negatives=negatives)
    first, second = (list(zip(*s.visits(2), strict=True))[i] for i in (0, 1))
    for c in range(4):
        positives = np.flatnonzero(s.y == c)
        for visits in (first[c], second[c]):
            assert np.array_equal(np.sort(visits[visits >= 0]), positives)
            drawn = -1 - visits[visits < 0]
            assert len(np.unique(drawn)) == len(drawn) == min(600 - len(positives), round(expected * len(positives))
                                                              if np.isfinite(expected) else 600)
            assert not np.isin(drawn, positives).any()
        assert not np.array_equal(first[c], second[c])


def test_negatives_are_drawn_evenly_and_order_is_shuffled():
    y = np.r_[np.zeros(5, int), np.ones(45, int)]
    lists = ClassLists.from_indicator(indicator(y), 1)
    streams, offsets = class_streams(3, 2), np.array([0, 10])
    count, place = np.zeros(50), np.zeros(10)
    visits, taken = np.empty(10, np.int64), np.zeros((1, 50), np.uint8)
    for _ in range(4000):
        _class_sgd.draw_lists(lists.positives, lists.starts, lists.n_negatives, streams, taken, 0, offsets, visits, 1)
        count[-1 - visits[visits < 0]] += 1
        place[visits == 3] += 1
    # 4000 * 5 draws over 45 rows and 4000 over 10 places: five standard deviations
    assert np.abs(count[5:] - 4000 / 9).max() < 5 * np.sqrt(4000 * (1 / 9) * (8 / 9))
    assert np.abs(place - 400).max() < 5 * np.sqrt(4000 * 0.1 * 0.9)
    assert not taken.any()


def test_a_stream_does_not_depend_on_the_number_of_classes():
    assert np.array_equal(class_streams(5, 3), class_streams(5, 200)[:3])
    assert len(np.unique(class_streams(5, 1000)[:, 0])) == 1000


def test_slices_and_batches_change_no_bit(monkeypatch):
    s = Setting()
    Z, whole = s.source.whiten(s.inverse), s.weights()
    s.passes().plain(Z, s.inverse, whole, np.full(4, 0.05), np.array([1.0]))
    monkeypatch.setattr("cmargin.solvers.sgd.class_passes.SLICE_NUMBERS", 1.0)       # 64 steps a slice
    monkeypatch.setattr("cmargin.solvers.sgd.class_passes.LIST_ENTRIES", 700)        # a class or two a batch
    sliced = s.weights()
    s.passes().plain(Z, s.inverse, sliced, np.full(4, 0.05), np.array([1.0]))
    for a, b in zip(whole.linear(s.inverse), sliced.linear(s.inverse), strict=True):
        assert np.array_equal(a, b)


def test_a_deadline_stops_between_slices(monkeypatch):
    monkeypatch.setattr("cmargin.solvers.sgd.class_passes.SLICE_NUMBERS", 1.0)
    s, weights = Setting(), None
    weights, Z = s.weights(), s.source.whiten(s.inverse)
    s.source.between_chunks = RunClock(0.0).watch
    with pytest.raises(TimeUp):
        s.passes().plain(Z, s.inverse, weights, np.full(4, 0.05), np.array([1.0]))
    assert 0 < weights.n_steps.max() <= 64


@pytest.mark.parametrize("loss", LOSSES)
def test_constant_score_inverts_the_posterior(loss):
    from naive import posterior
    share = np.linspace(0.01, 0.99, 50)
    np.testing.assert_allclose(posterior(loss, constant_score(loss, share)), share, atol=1e-12)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_losses_of_visits_are_those_of_their_scores(sparse, weighted, dtype):
    rng = np.random.default_rng(4)
    X, W, b = rng.standard_normal((60, 5)).astype(dtype), rng.standard_normal((3, 5)).astype(dtype), rng.random(3)
    weight = rng.random(60) if weighted else np.zeros(0)
    visits = rng.integers(-60, 60, 40)
    offsets = np.array([0, 17, 17, 40])
    losses = np.empty(40)
    rows = Rows(sp.csr_matrix(X) if sparse else X)
    _class_sgd.visit_losses(rows, W, b, offsets, visits, weight, LOSS_IDS["logistic"], np.empty(5, dtype), losses)
    row, of_class = np.where(visits >= 0, visits, -1 - visits), np.repeat([0, 1, 2], np.diff(offsets))
    margins = ((X[row].astype(float) * W[of_class]).sum(axis=1) + b[of_class]) * np.where(visits >= 0, 1, -1)
    expected = np.log1p(np.exp(-margins)) * (weight[row] if weighted else 1)
    np.testing.assert_allclose(losses, expected, rtol=1e-5 if dtype == np.float32 else 1e-12)
    W[2, 0] = np.nan
    _class_sgd.visit_losses(rows, W, b, offsets, visits, weight, LOSS_IDS["logistic"], np.empty(5, dtype), losses)
    assert np.all(losses[17:] == np.inf) and np.all(np.isfinite(losses[:17]))
    with pytest.raises(ValueError, match="visit_losses"):
        _class_sgd.visit_losses(rows, W, b, offsets, visits + 60, weight, 0, np.empty(5, dtype), losses)
