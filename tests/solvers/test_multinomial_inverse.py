"""Preconditioners of steps to the multinomial optimum, and runs that choose among them and go on from any step."""

import itertools
import pickle
from types import SimpleNamespace

import naive_softmax as naive
import numpy as np
import pytest
import scipy.sparse as sp
from api import ClassBlocks, penalised, rows_above
from multinomial_problems import K, M, N, curvature_times, kronecker, laid_out, point, problem, solve
from sklearn.datasets import load_iris

from cmargin.data import open_rows
from cmargin.data.memory.softmax_rows import SoftmaxRowPass
from cmargin.data.softmax_sums import INTERCEPTS, PRODUCTS, RISK_OF_SCORES
from cmargin.solvers.multinomial import inverse as multinomial_inverse
from cmargin.solvers.multinomial import newton as multinomial_newton
from cmargin.solvers.multinomial.inverse import (
    ClassInverse,
    centred_pairs,
    class_inverse_cost,
    class_inverse_sample,
    no_pairs,
    pairs_cost,
    pairs_of,
    pairs_pay_off,
    rows_that_count,
    without_mean,
)
from cmargin.solvers.multinomial.newton import Run, Settings


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("n", [N, 4])              # more rows than columns, and fewer
def test_leading_pairs_are_those_of_the_second_moment(n, intercept, sparse):
    X, _, weight = problem(dtype=np.float32)
    X, weight = laid_out(X, "csr" if sparse else "C")[:n], weight[:n]
    mean, values, vectors = centred_pairs(X, weight, 2, intercept)
    rows = naive.dense(X)
    want_mean = weight @ rows / weight.sum() if intercept else np.zeros(M)
    S = (rows - want_mean).T @ ((rows - want_mean) * (weight / weight.sum())[:, None])
    want = np.linalg.eigvalsh(S)[::-1]
    np.testing.assert_allclose(mean, want_mean, atol=1e-6)
    np.testing.assert_allclose(values, want[:3], rtol=1e-5)
    np.testing.assert_allclose(S @ vectors, vectors * values[:-1], atol=1e-5)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(2), atol=1e-5)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("n", [N, 4])
def test_without_pairs_all_directions_have_the_mean_eigenvalue(n, intercept, sparse):
    X, _, weight = problem(dtype=np.float32)
    X, weight = laid_out(X, "csr" if sparse else "C")[:n], weight[:n]
    (mean, values, vectors), total = no_pairs(X, weight, intercept)
    rows, share = naive.dense(X), weight / weight.sum()
    np.testing.assert_allclose(mean, share @ rows if intercept else np.zeros(M), atol=1e-6)
    off = rows - share @ rows if intercept else rows
    assert total == pytest.approx(np.sum(share @ off**2), rel=1e-5)
    assert values == pytest.approx(total / min(n, M)) and vectors.shape == (M, 0)


@pytest.mark.parametrize("intercept", [False, True])
def test_blocks_of_columns_of_unequal_size(intercept):
    # what single precision leaves of the largest column was added to the squares of all, as a penalty on small ones
    X, labels, weight = problem(dtype=np.float32)
    size, l2 = (10.0 ** np.array([-3, 3, -2, 2, 0, 3, -3])).astype(np.float32), 1e-9
    source = open_rows(X * size).softmax_pass(labels, weight, K, intercept, 1)
    V = np.zeros((M + intercept, K))
    source.risk(V)
    blocks = ClassInverse(source, X * size, np.arange(N), l2)
    G = np.random.default_rng(6).standard_normal(V.shape)
    G[:M] *= size[:, None]
    rows = (X - np.average(X, axis=0, weights=weight) if intercept else X) * size.astype(float)
    S = (3 / 16) * rows.T @ (rows * weight[:, None]) / N + l2 * np.eye(M)                    # all p are 1 / K
    centre = np.average(X, axis=0, weights=weight) * size if intercept else np.zeros(M)
    moved = np.linalg.solve(S, G[:M] - (np.outer(centre, G[M]) if intercept else 0))
    np.testing.assert_allclose(size[:, None] * blocks(G)[:M], size[:, None] * without_mean(moved), rtol=1e-2, atol=1e-2)


def test_pairs_are_made_where_they_pay_off():
    X, labels, weight = problem(n=300, m=200, k=9)
    source, A = open_rows(X).softmax_pass(labels, weight, 9, True, 1), np.eye(9) / 9
    assert 5 < pairs_cost(source) < 500
    assert not pairs_pay_off(source, 200.0, A, 100.0) and pairs_pay_off(source, 200.0, A, 1e-4)
    assert pairs_pay_off(source, np.inf, A, 1.0)                          # where it is said what is wrong with the rows
    many = open_rows(np.tile(X, (40, 1))).softmax_pass(np.tile(labels, 40), np.tile(weight, 40), 9, True, 1)
    assert pairs_cost(many) < 0.1 * pairs_cost(source)
    # of rows far from the origin, single precision leaves the rest of a difference
    assert no_pairs(np.full((300, 200), 1e4, np.float32), weight, True)[1] > 0.9e-6 * 200 * 1e8


@pytest.mark.parametrize("layout", ["C", "csr"])
def test_a_large_penalty_is_met_without_pairs(layout, monkeypatch):
    X, labels, weight = problem(n=300, m=200, k=9)
    runs = []
    for rank in (None, True):
        if rank:
            monkeypatch.setattr(multinomial_newton, "pairs_pay_off", lambda *about: True)
        run = Run(open_rows(laid_out(X, layout)), labels, weight, 9, Settings(10.0, 1e-6))
        run.go(None)
        runs.append(run)
    plain, paired = runs
    assert plain.plain and not paired.plain
    assert len(plain.kronecker.pairs[1]) == 1 < len(paired.kronecker.pairs[1])
    assert max(run.result.gap for run in runs) <= 1e-6
    assert plain.result.objective == pytest.approx(paired.result.objective, rel=2e-6)
    assert plain.products <= paired.products + 5


def test_pairs_follow_once_as_much_is_spent_as_they_cost(monkeypatch):
    X, labels, weight = problem(n=300, m=60, k=9)
    monkeypatch.setattr(multinomial_newton, "pairs_pay_off", lambda *about: False)
    monkeypatch.setattr(multinomial_newton, "pairs_cost", lambda source: 3.5)
    run, seen = Run(open_rows(X), labels, weight, 9, Settings(1e-4, 1e-6)), []
    run.go(lambda result: seen.append((run.plain, run.products)))
    assert run.result.gap <= 1e-6
    seen = seen[1:]                                                      # without the start, before any inverse
    assert [plain for plain, products in seen] == sorted((plain for plain, products in seen), reverse=True)
    assert all(plain == (before < 3.5) for (_, before), (plain, _) in itertools.pairwise(seen))
    assert seen[0][0] and not seen[-1][0]
    # and at another penalty it is asked anew
    monkeypatch.setattr(multinomial_newton, "pairs_cost", lambda source: 1e9)
    run = Run(open_rows(X), labels, weight, 9, Settings(10.0, 1e-6))
    run.go(None)
    assert run.plain
    monkeypatch.setattr(multinomial_newton, "pairs_pay_off", lambda *about: True)
    run.pose(1e-3)
    run.go(None)
    assert not run.plain and run.result.gap <= 1e-6


def test_leading_pairs_of_a_large_matrix_are_nearly_the_exact_ones():
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((400, 400)))[0]
    spectrum = 1.0 / np.arange(1, 401) ** 1.5
    S = Q * spectrum @ Q.T
    values, vectors = pairs_of(S.copy(), 20)
    np.testing.assert_allclose(vectors @ vectors.T, np.eye(20), atol=1e-10)
    np.testing.assert_allclose(values, spectrum[:20], rtol=0.02)
    assert np.all(values <= spectrum[:20] * (1 + 1e-10))                 # of a subspace, so never above
    np.testing.assert_allclose(S @ vectors.T, vectors.T * values, atol=0.01)
    again, same = pairs_of(S.copy(), 20)
    np.testing.assert_array_equal(again, values)
    np.testing.assert_array_equal(same, vectors)


@pytest.mark.parametrize("intercept", [False, True])
def test_inverses_invert(intercept, monkeypatch):
    # where all rows have one and the same p, the Hessian is A (x) S, and S has no tail: KroneckerInverse is exact
    X, labels, weight = problem()
    l2, every = 1e-3, np.arange(N)
    source = open_rows(X).softmax_pass(labels, weight, K, intercept, 1)
    V = np.zeros((source.n_columns, K))
    source.risk(V)
    D = without_mean(point(intercept, seed=5))
    HD = curvature_times(source, D)
    HD[:M] += l2 * D[:M]
    inverse = kronecker(source, l2)
    inverse.update(source.class_curvature())
    np.testing.assert_allclose(inverse(HD), D, atol=2e-4)
    # two classes: every class's block is the Hessian but for a factor of two in the mean-free part
    two = open_rows(X).softmax_pass(labels % 2, weight, 2, intercept, 1)
    V = 0.3 * point(intercept, k=2)
    two.risk(V)
    D = without_mean(point(intercept, k=2, seed=5))
    HD = curvature_times(two, D)
    monkeypatch.setattr(multinomial_inverse, "LITTLE", 0.0)
    blocks = ClassInverse(two, X.astype(np.float32), every, 1e-9)
    np.testing.assert_allclose(blocks(HD), 2 * D, atol=2e-3)


@pytest.mark.parametrize("intercept, known", [(True, True), (True, False), (False, False)])
@pytest.mark.parametrize("k", [K, 20_000])                   # beside 20,000 classes other threads are let in
def test_penalty_gradient_and_gap_of_a_point(intercept, known, k):
    V, gradient, mean = point(intercept, k=k), point(intercept, k=k, seed=5), np.linspace(-1, 2, M)
    mean = mean if known else None
    penalty, G, gap = penalised(V, gradient, 0.3, M, mean)
    value, wanted, left = naive.penalised(V, gradient, 0.3, M, mean)
    assert penalty == pytest.approx(value, rel=1e-12) and gap == pytest.approx(left, rel=1e-11)
    np.testing.assert_allclose(G, wanted, atol=1e-14 * np.abs(wanted).max())


def test_the_gap_of_a_step_is_nearly_the_certified_one():
    # 3.7 times as much where the intercepts' slope is not taken off, these rows being far from the origin
    X, labels, weight = problem(1)
    run = Run(open_rows(X + 2.0), labels, weight, K, Settings(0.1, 1e-3, certified=False))
    run.go(None)
    run.V[-1] += 3e-3 * np.array([1, -1, 0, 0])
    value, _, gap = run.looked_at(*run.source.risk(run.V))
    run.certify()
    assert run.result.objective <= value and 0.8 < gap / (run.result.gap * run.result.objective) < 1.25


def test_a_point_of_another_length_is_refused():
    V = point(True)
    for bad in ((V, V[:-1], 1.0, M, None), (V, V[:, 1:].copy(), 1.0, M, None), (V, V, 1.0, M + 2, None),
                (V, V, 1.0, 0, None), (V, V, 1.0, M, np.zeros(M + 1)), (V[:M], V[:M], 1.0, M, np.zeros(M))):
        with pytest.raises(ValueError, match="penalised"):
            penalised(*bad)
    for probs, weight in ((np.ones((3, 2)), np.ones(2)), (np.ones((0, 2)), np.ones(0)), (np.ones((3, 0)), np.ones(3))):
        with pytest.raises(ValueError, match="rows_above"):
            rows_above(probs, weight, 0.1)


def test_rows_of_little_curvature_are_left_out_of_a_block():
    X, labels, weight = problem()
    source = open_rows(X).softmax_pass(labels, weight, K, True, 1)
    source.risk(4 * point(True))
    inverse, share, count = ClassInverse(source, X.astype(np.float32), np.arange(N), 1e-2), weight / weight.sum(), 0
    G = np.zeros((M + 1, K))
    G[:M, 0] = np.random.default_rng(1).standard_normal(M)
    wanted = np.zeros((M, K))
    for c in range(K):
        curvature = share * source.probs[:, c] * (1 - source.probs[:, c])
        curved = curvature > 0.1 * curvature.mean()
        centred = X[curved] - curvature[curved] @ X[curved] / curvature[curved].sum()
        wanted[:, c] = np.linalg.solve((centred.T * curvature[curved]) @ centred + 1e-2 * np.eye(M), G[:M, c])
        count += curved.sum() / K
    assert rows_that_count(source.probs.astype(np.float32), weight) == pytest.approx(count, abs=1)
    assert count == rows_that_count(source.probs, weight) and 0 < count < 0.8 * N
    np.testing.assert_allclose(inverse(G)[:M], without_mean(wanted), atol=1e-4 * np.abs(wanted).max())


@pytest.mark.parametrize("k", [1, 16, 37])          # weights of 16 classes or more are taken out of the rows together
@pytest.mark.parametrize("n_threads, ends", [(1, (0, 37)), (2, (0, 37)), (2, (0, 5, 17, 33, 37)), (18, (0, 36, 37))])
def test_blocks_of_many_classes_are_their_own(k, n_threads, ends):
    rng = np.random.default_rng(k)
    X, weight, G = rng.standard_normal((600, 5)).astype(np.float32), rng.random(600), rng.standard_normal((5, k))
    probs = rng.dirichlet(np.full(k, 0.3), 600).astype(np.float32) if k > 1 else rng.random((600, 1)).astype(np.float32)
    weight /= weight.sum()
    blocks = ClassBlocks(X, probs, weight, 1e-2, False, n_threads, 0.1)
    assert all(blocks.make(min(lo, k), min(hi, k)) for lo, hi in itertools.pairwise(ends))
    wanted = np.empty((5, k))
    for c in range(k):
        curvature = weight * probs[:, c] * (1.0 - probs[:, c].astype(float))
        curvature[curvature <= 0.1 * curvature.mean()] = 0.0
        wanted[:, c] = np.linalg.solve(X.T @ (X * curvature[:, None]) + 1e-2 * np.eye(5), G[:, c])
    np.testing.assert_allclose(blocks(G), without_mean(wanted), atol=2e-5 * np.abs(wanted).max())
    whole = ClassBlocks(X, probs, weight, 1e-2, False, 1, 0.1)
    assert whole.make(0, k) and np.array_equal(whole(G), blocks(G))


def test_as_many_rows_are_behind_the_blocks_as_it_takes_for_plenty_to_count(monkeypatch):
    # of 50,000 rows of 1,000 classes 30 counted at first, so all were taken, and stayed when 20,000 did
    rng = np.random.default_rng(3)
    labels = rng.integers(60, size=12_000)
    X = (rng.standard_normal((60, 32))[labels] + 0.5 * rng.standard_normal((12_000, 32))).astype(np.float32)
    run = Run(open_rows(X), labels, np.ones(12_000), 60, Settings(1 / (100 * 12_000), 1e-4))
    taken, real = [], Run.take_rows

    def take_rows(run, n):
        real(run, n)
        taken.append((n, rows_that_count(run.source.probs[run.class_rows], run.source.weight[run.class_rows])))

    monkeypatch.setattr(Run, "take_rows", take_rows)
    run.go(None)
    rows, count = zip(*taken, strict=True)
    assert run.result.stopped == "tol" and 2000 < min(rows) < 0.7 * max(rows) < 0.7 * 12_000      # 5,176 and 8,926
    np.testing.assert_allclose(count, 32 * 32, rtol=0.1)


@pytest.mark.parametrize("known, count, plenty, rows", [
    (2000, 1000, 1500, 3000), (2000, 1900, 3000, 2000),       # more, which count no more than the sample; too dear
    (2000, 10, 1500, 6000), (2000, 0, 1500, 6000),            # all there are
    (6000, 6000, 600, 2000), (6000, 3000, 1500, 3000)])       # no fewer than the sample; half
def test_rows_that_are_enough(known, count, plenty, rows, monkeypatch):
    X, labels, weight = problem(n=6000, m=6)
    run = Run(open_rows(X), labels, weight, K, Settings(1e-4))
    run.take_rows(known)
    monkeypatch.setattr(multinomial_newton, "class_inverse_cost", lambda source, n: n)
    monkeypatch.setattr(multinomial_newton, "rows_that_count", lambda probs, weight: count)
    monkeypatch.setattr(multinomial_newton, "PLENTY", plenty / 6)
    run.take_enough_rows()
    assert len(run.class_rows) == len(run.class_copy) == rows
    np.testing.assert_array_equal(run.class_rows, np.sort(run.order[:rows]))


@pytest.mark.parametrize("limit", ["MOST_FLOPS", "MOST_NUMBERS"])
def test_no_more_rows_are_taken_than_time_and_memory_allow(limit, monkeypatch):
    X, labels, weight = problem(n=6000, m=6)
    run = Run(open_rows(X), labels, weight, K, Settings(1e-4))
    run.take_rows(2000)
    run.source.probs[:] = 1 / K                          # nothing is evaluated here, and the memory is not cleared
    monkeypatch.setattr(multinomial_newton, "PLENTY", 1e9)
    monkeypatch.setattr(multinomial_newton, limit, 0)
    run.take_enough_rows()
    assert len(run.class_rows) == 2000
    monkeypatch.undo()
    monkeypatch.setattr(multinomial_newton, "PLENTY", 1e9)
    run.take_enough_rows()
    assert len(run.class_rows) == 6000


def test_separable_classes_have_blocks_of_all_rows(monkeypatch):
    # the rows that count are others for every class, and a fifth of all has too few of them
    rng = np.random.default_rng(5)
    X = rng.standard_normal((6000, 60)).astype(np.float32)
    labels, settings = (X @ rng.standard_normal((60, 15))).argmax(axis=1), Settings(1 / (100 * 6000), 1e-4)
    fit, _ = solve(X, labels, None, 15, settings)
    monkeypatch.setattr(multinomial_newton, "PLENTY", 0)
    sampled, _ = solve(X, labels, None, 15, settings)
    assert max(fit.gap, sampled.gap) <= 1e-4 and fit.objective == pytest.approx(sampled.objective, rel=2e-4)
    assert fit.reads < 0.3 * sampled.reads                              # 67 of 443


class Kept:
    """A checkpointer in memory, of the state before every step."""

    path = "here"

    def __init__(self, found=None):
        self.found, self.states = found, []

    def offer(self, reads, snapshot):
        self.states.append(pickle.dumps(snapshot()))


@pytest.mark.parametrize("spread, dtype", [("large penalty", np.float64), ("blocks", np.float32), ("CSR", np.float64),
                                           ("blocks that are not sound", np.float64)])
def test_a_run_goes_on_to_the_same_bits_from_every_step(spread, dtype, monkeypatch):
    # without pairs, and then with; or with blocks of the classes, whose cost was told by what type products are of now
    if spread == "large penalty":
        X, labels, weight = problem(n=300, m=60, k=9)
        settings = Settings(1e-3, 1e-8)
        monkeypatch.setattr(multinomial_newton, "pairs_pay_off", lambda *about: False)
        monkeypatch.setattr(multinomial_newton, "pairs_cost", lambda source: 8)
    elif spread == "blocks":
        X, labels, weight = problem(n=1000, m=40, dtype=dtype)
        settings = Settings(1e-7, 1e-13)
    elif spread == "blocks that are not sound":      # those of all rows: how many there were was not kept
        X, labels, weight = problem(n=2600, m=60)
        settings, real = Settings(1e-4, 1e-12), ClassInverse.make
        monkeypatch.setattr(multinomial_newton, "PLENTY", 1e9)
        monkeypatch.setattr(ClassInverse, "make", lambda blocks, first, last: real(blocks, first, last) and False)
    else:                                            # blocks of a sample, and then of all rows, dense copies both
        X, labels, weight = problem(n=2600, m=12)
        X, settings = sp.csr_array(X), Settings(1e-7, 1e-13)
        monkeypatch.setattr(multinomial_newton, "PLENTY", 1e9)
        copies, real = set(), SoftmaxRowPass.in_single_precision
        monkeypatch.setattr(SoftmaxRowPass, "in_single_precision",
                            lambda source: copies.add(type(real(source))) or real(source))
    kept, run = Kept(), Run(open_rows(X), labels, weight, labels.max() + 1, settings)
    run.go(None, kept)
    states = [pickle.loads(state) for state in kept.states]
    assert len(states) > 4
    if spread == "CSR":
        assert copies == {np.ndarray} and any(state["probs_of_inverse"] is not None for state in states)
    elif spread == "blocks that are not sound":
        assert {state["n_class_rows"] for state in states} == {0, 2000, 2600}
    elif spread == "blocks":
        assert any(state["probs_of_inverse"] is not None and state["of_rows"]["scores"].dtype == np.float64
                   for state in states)
    else:
        assert {state["plain"] for state in states if state["prepared"]} == {True, False}
    for state in states:
        again = Run(open_rows(X), labels, weight, labels.max() + 1, settings)
        again.go(None, Kept(state))
        np.testing.assert_array_equal(again.result.W, run.result.W)
        assert (again.result.n_newton, again.result.reads, again.result.gap) == (
            run.result.n_newton, run.result.reads, run.result.gap)


def test_what_blocks_cost_is_told_by_the_rows_alone():
    # it was told by what type products are of, so that a run that goes on from a checkpoint made others
    X, labels, weight = problem(dtype=np.float32)
    single, double = (open_rows(rows).softmax_pass(labels, weight, K, True, 1) for rows in (X, X.astype(float)))
    before = class_inverse_cost(single, 50)
    single.keep(np.float64)
    assert before == class_inverse_cost(single, 50) == 2 * class_inverse_cost(double, 50)


@pytest.mark.parametrize("n, d, k, entries, rows", [
    (10_000, 1000, 4, None, 8000), (10_000, 1000, 4, 3_900_000, 0), (10_000, 1000, 4, 4_000_000, 8000),   # CSR rows
    (10_000, 2000, 4, None, 0),                          # 4e10 operations a class: nobody would look at the clock,
    (400_000, 2000, 4, None, 16_000),                    # as long as no more than a few reads take
    (10_000, 2049, 1, None, 0), (10_000, 1000, 100, None, 0), (300, 5, 4, None, 300)])
def test_rows_that_blocks_are_made_from(n, d, k, entries, rows):
    source = SimpleNamespace(n_rows=n, n_features=d, n_classes=k, sparse=entries is not None, entries=entries,
                             single=False)
    assert class_inverse_sample(source) == rows


def test_csr_rows_without_zeros_have_blocks_as_dense_ones_have():
    # iris as CSR ended at a gap of 1.5e-4, and said so: without blocks no step brought it down any further
    X, y = load_iris(return_X_y=True)
    for C in (100, 1000):
        for container in (np.asarray, sp.csr_array):
            result, _ = solve(container(X), y.astype(np.int64), None, 3, Settings(1 / (150 * C), 1e-4))
            assert result.stopped == "tol" and result.gap <= 1e-4


def test_rows_without_a_single_entry_have_an_optimum_too():
    X = laid_out(np.zeros((50, 6)), "csr")
    fit, _ = solve(X, np.arange(50) % 3, None, 3, Settings(1e-2, 1e-6), start=(np.ones((3, 6)) * np.arange(3)[:, None],
                                                                               np.zeros(3)))
    assert fit.gap <= 1e-6 and np.abs(fit.W).max() < 1e-3


@pytest.mark.parametrize("shape, k, sparse, blocks", [((1100, 30), 4, False, 32), ((330, 30), 4, False, 8),
                                                      ((30, 30), 4, False, 4), ((300, 20_000), 10, False, 8),
                                                      ((4000, 3000), 10, True, 32), ((400, 3000), 3, True, 4)])
def test_blocks_are_a_power_of_two_and_not_of_too_few_rows(shape, k, sparse, blocks):
    rng = np.random.default_rng(0)
    X = sp.random_array(shape, density=0.05, format="csr", rng=rng) if sparse else rng.standard_normal(shape)
    assert open_rows(X).softmax_pass(np.arange(shape[0]) % k, None, k, True, 1).kernel.n_blocks == blocks


def test_plenty_of_sampled_rows_are_enough(monkeypatch):
    rng = np.random.default_rng(2)
    X, weight = rng.standard_normal((30_000, 6)).astype(np.float32), np.ones(30_000)
    labels = (X @ rng.standard_normal((6, 4)) + 0.3 * rng.gumbel(size=(30_000, 4))).argmax(axis=1)
    run = Run(open_rows(X), labels, weight, 4, Settings(1e-5, 1e-7))
    run.go(None)
    assert isinstance(run.inverse, ClassInverse) and len(run.class_rows) == 2000
    monkeypatch.setattr(multinomial_newton, "PLENTY", 1e9)
    all_rows = Run(open_rows(X), labels, weight, 4, Settings(1e-5, 1e-7))
    all_rows.go(None)
    assert len(all_rows.class_rows) == 30_000 and max(run.result.gap, all_rows.result.gap) <= 1e-7
    assert run.result.reads < 1.2 * all_rows.result.reads               # 37.1 and 35.4


def test_intercepts_are_the_best_to_what_the_certificate_can_bear():
    X, labels, weight = problem(n=4000, m=5)
    for tol, least in ((1e-2, 1e-9), (1e-5, 1e-10)):
        run = Run(open_rows(X + 3.0), labels, weight, K, Settings(1e-4, tol))
        run.go(None)
        run.V[-1] += 1e-4 * np.arange(K)
        run.certify()
        slope = run.source.risk(run.V)[1][-1]
        assert np.max(np.abs(slope) / run.share) <= least and run.result.gap <= tol
    # one evaluation less where the first is enough already
    V, *_ = run.source.exact(run.V)
    calls, kept = [], run.source.run
    run.source.run = lambda *about: calls.append(about[0]) or kept(*about)
    run.source.exact(V, 1e-3)
    assert calls == [PRODUCTS, INTERCEPTS, RISK_OF_SCORES]
