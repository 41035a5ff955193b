"""The compiled multinomial passes against the literal batch step; what slices, threads and a deadline may change."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import blobs
from naive import low_rank_inverse
from naive_multinomial import gradient, literal_batches, mean_of_samples, row_losses

from cmargin._runtime.clock import TimeUp
from cmargin.data import open_rows
from cmargin.solvers.sgd import softmax_passes
from cmargin.solvers.sgd.low_rank import build_inverse
from cmargin.solvers.sgd.softmax_passes import SoftmaxPasses
from cmargin.solvers.sgd.softmax_weights import SoftmaxWeights

N, STRIDE, BATCH = 600, 4, 17


class Setting:
    """Rows in a random order, an inverse about a centre, and batches of several passes drawn beforehand."""

    def __init__(self, sparse=False, tail="scale", dtype=np.float64, threads=2, weighted=True, k=4, d=12, rank=3,
                 n_subset=200):
        X, self.y = blobs(n=N, d=d, k=k)
        self.X = (X + 3).astype(dtype)
        rng = np.random.default_rng(6)
        self.source = open_rows(sp.csr_matrix(self.X) if sparse else self.X).stochastic_rows(threads)
        self.weight = rng.uniform(0.2, 3, N) if weighted else np.ones(N)
        subset, self.order = np.arange(0, N, N // n_subset)[:n_subset], rng.permutation(N)
        self.subset, self.centre = subset, self.X[subset].mean(axis=0, dtype=float)
        self.inverse, _ = build_inverse(self.source, subset, np.ones((1, n_subset)), rank, tail, None, self.centre)
        self.rank, self.tail, self.k = rank, tail, k
        self.n_train = N - 30
        starts = np.arange(0, self.n_train, BATCH)
        self.batches = np.concatenate([rng.permutation(starts) for _ in range(30)])

    @property
    def H_star(self):
        rows = self.X[self.subset] - self.centre
        return low_rank_inverse(rows.T @ rows / len(self.subset), self.rank, self.tail)

    def passes(self, **other):
        o = self.order
        given = {"order": o, "truth": self.y[o].astype(np.int64), "weight": self.weight[o], "batch": BATCH, **other}
        return SoftmaxPasses(self.source, self.inverse, self.source.whiten(self.inverse, o), n_classes=self.k, **given)

    def weights(self, average=False, W=None, bias=None):
        W = np.zeros((self.k, self.X.shape[1]), self.X.dtype) if W is None else W
        return SoftmaxWeights.start(self.inverse, W, np.zeros(self.k) if bias is None else bias, average, STRIDE)

    def run(self, weights, eta=0.01, rate=1.0, passes=None):
        passes = passes or self.passes()
        passes.run(weights, self.batches, np.full(len(self.batches), eta), rate, self.n_train)
        return passes.met(self.n_train)

    def literal(self, W, b, eta=0.01, rate=1.0):
        rows = [self.order[lo:min(lo + BATCH, self.n_train)] for lo in self.batches]
        return literal_batches(self.X, self.y, rows, eta, self.H_star, self.centre, self.inverse.mean_square[0], rate,
                               self.weight, W, b)


def close(a, b, bound=1e-10):
    assert np.abs(a - b).max() < bound * max(1.0, np.abs(b).max())


@pytest.mark.parametrize("tail", ["drop", "scale"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_whitened_batches_are_the_literal_ones(tail, sparse, weighted):
    s = Setting(sparse, tail, weighted=weighted)
    plain, mean = s.weights(), s.weights(average=True)
    s.run(plain, rate=0.7)
    s.run(mean, rate=0.7)
    iterates, _ = s.literal(np.zeros((4, 12)), np.zeros(4), rate=0.7)
    assert len(iterates) > 1000
    for weights, (W, b) in ((plain, iterates[-1]), (mean, mean_of_samples(iterates, STRIDE))):
        close(weights.linear(s.inverse)[0], W)
        close(weights.linear(s.inverse)[1], b)


@pytest.mark.parametrize("tail", ["drop", "scale"])
@pytest.mark.parametrize("sparse", [False, True])
def test_batches_go_on_from_weights_in_and_outside_the_basis(tail, sparse):
    # a dropped tail cannot hold these weights: they stay as a base whose scores are added
    s, rng = Setting(sparse, tail), np.random.default_rng(8)
    W, b = 0.3 * rng.standard_normal((4, 12)), rng.standard_normal(4)
    plain, mean = s.weights(W=W, bias=b), s.weights(True, W, b)
    assert (plain.base is None) == (tail == "scale")
    close(plain.linear(s.inverse)[0], W)
    close(plain.linear(s.inverse)[1], b)
    s.run(plain)
    s.run(mean)
    iterates, _ = s.literal(W, b)
    for weights, (W, b) in ((plain, iterates[-1]), (mean, mean_of_samples(iterates, STRIDE))):
        close(weights.linear(s.inverse)[0], W)
        close(weights.linear(s.inverse)[1], b)


def test_many_classes_and_columns_fall_into_several_blocks(monkeypatch):
    monkeypatch.setattr(softmax_passes, "CLASS_BLOCK", 5)
    monkeypatch.setattr(softmax_passes, "SPARSE_CLASS_BLOCK", 5)
    monkeypatch.setattr(softmax_passes, "COLUMN_BLOCK", 7)
    for sparse in (False, True):
        s = Setting(sparse, k=17, d=20)
        weights = s.weights()
        passes = s.passes()
        assert passes.class_block == 5 and passes.column_block == (3 if sparse else 7)
        s.run(weights, passes=passes)
        W, b = s.literal(np.zeros((17, 20)), np.zeros(17))[0][-1]
        close(weights.linear(s.inverse)[0], W)
        close(weights.linear(s.inverse)[1], b)


@pytest.mark.parametrize("blocks", [48, 21])                      # 43 columns: one block, or two of 22
@pytest.mark.parametrize("tail, rank", [("scale", 3), ("drop", 19)])
def test_batches_that_fill_vectors_of_columns(tail, rank, blocks, monkeypatch):
    monkeypatch.setattr(softmax_passes, "COLUMN_SLICE", blocks)
    monkeypatch.setattr(softmax_passes, "FLOPS_PER_THREAD", 0)
    received = []
    for threads in (1, 3):
        s = Setting(tail=tail, rank=rank, d=43, k=5, threads=threads)
        weights, passes = s.weights(), s.passes()
        if tail == "scale":
            assert passes.column_block == (22 if blocks == 21 and threads > 1 else 43)
        s.run(weights, passes=passes)
        received.append(weights.linear(s.inverse))
        W, b = s.literal(np.zeros((5, 43)), np.zeros(5))[0][-1]
        close(received[-1][0], W, 1e-9)
        close(received[-1][1], b, 1e-9)
    np.testing.assert_array_equal(received[0][0], received[1][0])


@pytest.mark.parametrize("sparse", [False, True])
def test_low_parts_that_fill_vectors(sparse):
    # CSR rows with a scaled tail take theirs off: 20 numbers a row
    s = Setting(sparse=sparse, rank=20, d=30)
    weights = s.weights()
    s.run(weights)
    W, b = s.literal(np.zeros((4, 30)), np.zeros(4))[0][-1]
    close(weights.linear(s.inverse)[0], W, 1e-9)
    close(weights.linear(s.inverse)[1], b, 1e-9)


def test_the_wide_route_centres_too():
    # fewer rows behind H than columns: pairs come from the Gram matrix of centred rows, dense or CSR
    for sparse in (False, True):
        s = Setting(sparse, d=40, n_subset=20)
        rows = s.X[s.subset] - s.centre
        values = np.linalg.eigvalsh(rows.T @ rows / 20)[::-1][:3]
        np.testing.assert_allclose(s.inverse.eigenvalues[0], values, rtol=1e-9)
        close(s.inverse.apply(np.eye(40)), s.H_star, 1e-8)
        Z = s.source.whiten(s.inverse)
        squares = (Z**2).sum(axis=1) if not sparse else None
        if not sparse:
            np.testing.assert_allclose(squares[s.subset].mean(), s.inverse.mean_square[0], rtol=1e-9)
        literal = np.einsum("ij,jk,ik->i", rows, s.H_star, rows).mean()
        np.testing.assert_allclose(s.inverse.mean_square[0], literal, rtol=1e-9)


def test_the_step_is_along_the_gradient_of_the_risk():
    # central differences of the risk of one batch, at weights that are not zero; its rows all count the same
    s, rng = Setting(), np.random.default_rng(3)
    W, b = 0.2 * rng.standard_normal((4, 12)), rng.standard_normal(4)
    rows = s.order[:BATCH]
    weights, passes = s.weights(W=W, bias=b), s.passes()
    passes.length[:] = passes.mean_length
    passes.run(weights, np.zeros(1, np.int64), np.full(1, 1.0), 0.0, s.n_train)
    moved = (weights.linear(s.inverse)[0] - W) @ np.linalg.inv(s.H_star)
    for c, j in ((0, 0), (1, 5), (3, 11)):
        risks = []
        for sign in (1, -1):
            V, a = W.copy(), b.copy()
            V[c, j] += sign * 1e-5
            a[c] -= sign * 1e-5 * s.centre[j]                 # the centre's score is what stays
            risks.append((s.weight[rows] * row_losses(s.X[rows] @ V.T + a, s.y[rows])).sum())
        np.testing.assert_allclose(-moved[c, j], (risks[0] - risks[1]) / 2e-5, rtol=1e-6, atol=1e-6)
    exact, _ = gradient(s.X[rows] - s.centre, s.y[rows], W, b + W @ s.centre, s.weight[rows])
    close(-moved, exact, 1e-9)


@pytest.mark.parametrize("tail", ["drop", "scale"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("times", "least", "most"), [(3, 0.25, 0.7), (100, 0.25, 0.25)])
def test_a_row_far_out_is_not_moved_far_past_what_its_step_is_to_mend(tail, sparse, times, least, most, dtype):
    # One entry of a standardised column that is rare can make a row 30 times as long as others. By plain steps its own
    # score went 30 times as far as was meant, and the next such row's the other way.
    s = Setting(sparse, tail, dtype, weighted=False)
    far, rows = s.order[0], s.X[s.order].astype(float) - s.centre
    np.testing.assert_allclose(s.passes().length, np.einsum("ij,jk,ik->i", rows, s.H_star, rows), rtol=1e-3)
    s.X[far] = s.centre + times * (s.X[far] - s.centre)
    s.source = open_rows(sp.csr_matrix(s.X) if sparse else s.X).stochastic_rows(2)
    weights, passes = s.weights(), s.passes(batch=1)
    eta, length = 1.0 / (passes.mean_length + 1), passes.length[0] + 1
    passes.run(weights, np.zeros(1, np.int64), np.full(1, eta), 1.0, s.n_train)
    W, b = weights.linear(s.inverse)
    damping = (s.X[far] @ W[s.y[far]] + b[s.y[far]]) / (0.75 * eta * length)   # G of its class is -3/4 at equal scores
    assert damping == pytest.approx(max(0.25, 1.25 / (1 + eta * length / 4)), rel=1e-3)
    assert least - 1e-3 < damping < most + 1e-3


def test_sums_are_those_met_before_each_step():
    s = Setting()
    s.batches = s.batches[:len(s.batches) // 30]              # one pass
    loss, wrong, weight = s.run(s.weights(), eta=0.0)
    visited = s.order[:s.n_train]
    assert weight == pytest.approx(s.weight[visited].sum())
    assert loss == pytest.approx(np.log(4) * weight) and wrong == 0
    b = np.array([0.0, 1.0, 0.0, 0.0])
    loss, wrong, _ = s.run(s.weights(bias=b), eta=0.0)
    assert wrong == pytest.approx(s.weight[visited][s.y[visited] != 1].sum())
    assert loss == pytest.approx((s.weight[visited] * row_losses(np.tile(b, (s.n_train, 1)), s.y[visited])).sum())


@pytest.mark.parametrize("tail", ["drop", "scale"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("based", [False, True])
def test_rows_that_are_only_looked_at_have_the_losses_of_the_mean_iterate(tail, sparse, based):
    s = Setting(sparse, tail)
    W = np.random.default_rng(1).standard_normal((4, 12)) if based else None
    weights, passes = s.weights(True, W=W), s.passes()
    s.run(weights, passes=passes)
    before = {name: np.copy(getattr(weights, name)) for name in ("U", "U_mean", "V", "V_lag", "shift", "bias")}
    held = np.arange(s.n_train, N, BATCH)
    passes.scores(weights, held, N)
    losses = passes.loss[s.n_train:].copy()
    W, b = weights.linear(s.inverse)
    rows = s.order[s.n_train:]
    close(losses, s.weight[rows] * row_losses(s.X[rows] @ W.T + b, s.y[rows]))
    assert all(np.array_equal(getattr(weights, name), values) for name, values in before.items())


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("tail", ["drop", "scale"])
def test_threads_and_slices_change_no_bit(sparse, tail, dtype, monkeypatch):
    monkeypatch.setattr(softmax_passes, "CLASS_BLOCK", 2)
    monkeypatch.setattr(softmax_passes, "COLUMN_BLOCK", 5)
    monkeypatch.setattr(softmax_passes, "FLOPS_PER_THREAD", 0)
    W = 0.1 * np.random.default_rng(1).standard_normal((4, 12)).astype(dtype)
    results = []
    for threads, flops in ((1, 2e9), (2, 2e9), (3, 1.0), (3, 2e9), (2, 3e5)):
        monkeypatch.setattr(softmax_passes, "SLICE_FLOPS", flops)
        s = Setting(sparse, tail, dtype, threads)
        weights = s.weights(True, W=W)
        s.run(weights)
        results.append(weights.linear(s.inverse))
    for W, b in results[1:]:
        assert np.array_equal(W, results[0][0]) and np.array_equal(b, results[0][1])


def test_a_deadline_stops_between_slices(monkeypatch):
    monkeypatch.setattr(softmax_passes, "SLICE_FLOPS", 1.0)
    s = Setting(threads=1)
    weights, passes = s.weights(), s.passes()

    def late():
        raise TimeUp

    s.source.between_chunks = late
    with pytest.raises(TimeUp):
        s.run(weights, passes=passes)
    assert weights.n_done == 1


@pytest.mark.parametrize("value", [0.0, 1e30, -1e30])
def test_softmax_stays_finite_at_scores_out_of_reach(value, dtype):
    s = Setting(dtype=dtype)
    b = np.array([0.0, value, 0.0, 0.0])
    weights = s.weights(bias=b)
    loss, _, _ = s.run(weights, eta=1e-6)
    assert np.isfinite(loss) and weights.finite()


def test_shapes_that_do_not_fit_are_refused():
    s = Setting()
    passes, weights = s.passes(), s.weights()
    for change in ({"truth": passes.truth[1:]}, {"truth": passes.truth + 4}, {"order": passes.order + N},
                   {"weight": np.ones(3)}):
        with pytest.raises(ValueError, match=r"Batches.*fit"):
            s.passes(**change)
    for name, cut in (("U", lambda U: U[1:]), ("U", lambda U: U[:, 1:].copy()), ("U_mean", lambda U: np.zeros((2, 3))),
                      ("bias", lambda b: b[1:])):
        broken = replace(weights, **{name: cut(getattr(weights, name))})
        with pytest.raises(ValueError, match=r"Batches\.weights"):
            passes.run(broken, s.batches[:2], np.ones(2), 1.0, s.n_train)
    with pytest.raises(ValueError, match=r"Batches\.run"):
        passes.run(weights, s.batches[:2], np.ones(1), 1.0, s.n_train)
    with pytest.raises(ValueError, match="outside the rows"):
        passes.run(weights, np.array([s.n_train]), np.ones(1), 1.0, s.n_train)


def test_single_weights_are_refused_by_double_rows_and_the_other_way_round():
    # the kernel was told the type by its arrays all at once; now they come in three calls
    for dtype, other in ((np.float32, np.float64), (np.float64, np.float32)):
        passes, weights = Setting(dtype=dtype).passes(), Setting(dtype=other).weights()
        with pytest.raises(ValueError, match=r"Batches\.weights: shapes do not fit"):
            passes.run(weights, np.zeros(1, np.int64), np.ones(1), 1.0, 10)


@pytest.mark.parametrize("k", [3, 16, 37])
def test_softmax_and_its_loss_are_those_of_numpy_to_the_type_s_rounding(k, dtype):
    # scores from equal to hundreds apart, rows shorter and longer than the vector lanes
    s, rng = Setting(dtype=dtype, k=k), np.random.default_rng(4)
    s.batches = s.batches[:len(s.batches) // 30]
    W, b = (10.0**rng.uniform(-2, 1.5, (k, 1)) * rng.standard_normal((k, 12))).astype(dtype), rng.standard_normal(k)
    passes = s.passes()
    s.run(s.weights(W=W, bias=b), eta=0.0, passes=passes)
    visited = s.order[:s.n_train]
    scores = s.X[visited].astype(float) @ W.T.astype(float) + b
    expected = s.weight[visited] * row_losses(scores, s.y[visited])
    reach = np.abs(scores).max() * np.finfo(dtype).eps * 200
    np.testing.assert_allclose(passes.loss[:s.n_train], expected, rtol=1e-5 if dtype == np.float32 else 1e-12,
                               atol=3 * reach)
    # and the probabilities: the change of the bias in one batch whose rows all count the same
    passes.length[:] = passes.mean_length
    weights = s.weights(W=np.zeros_like(W), bias=b)
    passes.run(weights, np.zeros(1, np.int64), np.ones(1), 1.0, s.n_train)
    rows = s.order[:BATCH]
    _, change = gradient(s.X[rows], s.y[rows], np.zeros((k, 12)), b, s.weight[rows])
    np.testing.assert_allclose(b - weights.bias[:, 0], change, rtol=1e-5 if dtype == np.float32 else 1e-12, atol=1e-5
                               if dtype == np.float32 else 1e-12)
