"""What a step to the multinomial optimum is made of: passes over the rows, and the step itself."""

import naive_softmax as naive
import numpy as np
import pytest
from api import ASTRAY, NEAR, ONWARD, SLICE_OVER, STANDS, MultinomialNewton, MultinomialStep
from multinomial_problems import (
    LAYOUTS,
    K,
    M,
    N,
    curvature_times,
    kronecker,
    laid_out,
    point,
    problem,
    solve,
    task,
)

from cmargin.data import open_rows
from cmargin.data.memory.softmax_rows import SoftmaxRowPass
from cmargin.data.softmax_sums import PRODUCTS, RISK_OF_SCORES
from cmargin.solvers.multinomial.inverse import ClassInverse, without_mean
from cmargin.solvers.multinomial.newton import Run, Settings

# ---------------------------------------------------------------- kernel

@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("intercept", [False, True])
def test_passes_equal_the_twin(layout, dtype, intercept):
    X, labels, weight = problem(dtype=dtype)
    X = laid_out(X, layout)
    source = open_rows(X).softmax_pass(labels, weight, K, intercept, 2)
    V, D = point(intercept), point(intercept, seed=4)
    value, _, gradient = naive.risk(X, labels, weight, V, intercept)
    tolerance = 1e-12 if dtype == np.float64 else 3e-6
    got_value, got = source.risk(V)
    assert got_value == pytest.approx(value, rel=tolerance)
    np.testing.assert_allclose(got, gradient, atol=tolerance)
    np.testing.assert_allclose(curvature_times(source, D), naive.curvature(X, weight, V, D, intercept),
                               atol=3 * tolerance)
    task(source, PRODUCTS, D, scores=source.change)
    for step in (0.0, 0.7):
        ahead = naive.risk(X, labels, weight, V + step * D, intercept)
        got_value, slope, curvature = source.kernel.line(step, source.scores, source.change)
        assert got_value == pytest.approx(ahead[0], rel=3 * tolerance)
        assert slope == pytest.approx(np.sum(ahead[2] * D), rel=3 * tolerance, abs=3 * tolerance)
        assert curvature == pytest.approx(
            np.sum(D * naive.curvature(X, weight, V + step * D, D, intercept)), rel=10 * tolerance)
    source.scores += source.dtype.type(0.7) * source.change
    got = task(source, RISK_OF_SCORES, V, source.scores, source.probs)
    assert source.kernel.sums[:, 0].sum() / N == pytest.approx(ahead[0], rel=3 * tolerance)
    np.testing.assert_allclose(got, ahead[2], atol=3 * tolerance)


def test_gradient_and_curvature_are_derivatives():
    X, labels, weight = problem()
    source = open_rows(X).softmax_pass(labels, weight, K, True, 1)
    V, D, h = point(True), point(True, seed=4), 1e-4
    ahead, behind = source.risk(V + h * D), source.risk(V - h * D)
    _, gradient = source.risk(V)
    assert (ahead[0] - behind[0]) / (2 * h) == pytest.approx(np.sum(gradient * D), rel=1e-7)
    np.testing.assert_allclose((ahead[1] - behind[1]) / (2 * h), curvature_times(source, D), atol=1e-7)


@pytest.mark.parametrize("layout", ["C", "F", "csr"])
def test_float32_rows_in_float64(layout):
    X, labels, weight = problem(dtype=np.float32)
    X = laid_out(X, layout)
    source = open_rows(X).softmax_pass(labels, weight, K, True, 1)
    V, risk, entropy, gradient = source.exact(point(True), n_corrections=3)
    value, want_entropy, want = naive.risk(X, labels, weight, V, True)
    assert (risk, entropy) == pytest.approx((value, want_entropy), rel=1e-13)
    np.testing.assert_allclose(gradient, want, atol=1e-14)


def test_scores_beyond_the_range_of_exp():
    X, labels, weight = problem(dtype=np.float32)
    source = open_rows(X * 1e4).softmax_pass(labels, weight, K, True, 1)
    value, gradient = source.risk(point(True))
    assert np.isfinite(value) and np.all(np.isfinite(gradient))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_same_bits_for_any_number_of_threads(dtype, sparse):
    X, labels, weight = problem(n=3001, m=31, k=7, dtype=dtype)
    X = laid_out(X, "csr" if sparse else "C")
    fits = [solve(X, labels, weight, 7, Settings(1e-3, 1e-6, n_threads=threads))[0] for threads in (1, 2, 3, 5)]
    for fit in fits[1:]:
        assert fit.objective == fits[0].objective and fit.gap == fits[0].gap
        np.testing.assert_array_equal(fit.W, fits[0].W)
        np.testing.assert_array_equal(fit.bias, fits[0].bias)


def test_few_numbers_are_read_by_one_thread():
    X, labels, weight = problem(n=3001, m=31, k=7)
    assert open_rows(X).softmax_pass(labels, weight, 7, True, 2).n_threads == 2
    assert open_rows(X[:1000]).softmax_pass(labels[:1000], weight[:1000], 7, True, 2).n_threads == 1


def test_bad_shapes_are_refused():
    X, labels, weight = problem()
    with pytest.raises(ValueError, match="label"):
        open_rows(X).softmax_pass(labels + 1, weight, K, True, 1)
    source = open_rows(X).softmax_pass(labels, weight, K, True, 1)
    with pytest.raises(ValueError, match="shapes"):
        source.risk(point(False))


# ---------------------------------------------------------------- a Newton step

@pytest.mark.parametrize("enough", [0.0, 1e-3, 1e-1])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("blocks", [False, True])
def test_a_step_equals_the_twin_wherever_it_is_left(enough, intercept, blocks):
    X, labels, weight = problem()
    l2, every = 1e-2, np.arange(N)
    source = open_rows(X).softmax_pass(labels, weight, K, intercept, 1)
    V = without_mean(point(intercept))
    risk, gradient = source.risk(V)
    G = without_mean(gradient)
    G[:M] += l2 * V[:M]
    if blocks:
        inverse = ClassInverse(source, X.astype(np.float32), every, l2)
    else:
        inverse = kronecker(source, l2)
        inverse.update(source.class_curvature())
    mean = weight @ X / N if intercept else None
    value = risk + l2 / 2 * np.sum(V[:M] ** 2)
    want, t, count = naive.newton_step(X, labels, weight, V, G, value, l2, inverse, intercept, mean, enough, 12)
    step = MultinomialStep(source.kernel, l2, 12, 1)
    step.begin(inverse, mean, V, G, value, enough, source.scores, source.probs, source.change)
    calls = 1
    while not step.go(1e-9):                 # left and taken up again all the time
        calls += 1
    assert calls > 1 and step.products == count
    np.testing.assert_allclose(step.direction, want, atol=1e-6 * np.abs(want).max())
    assert step.step == pytest.approx(t, rel=1e-6)
    ahead = naive.risk(X, labels, weight, V + step.step * step.direction, intercept)
    assert step.risk == pytest.approx(ahead[0], rel=1e-12) and step.risk < risk
    np.testing.assert_allclose(step.gradient, ahead[2], atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n, stride", [(N, 1), (N, 3), (1, 5), (700, 2)])
def test_curvature_of_the_classes(n, stride, dtype):
    rng = np.random.default_rng(2)
    probs, weight = rng.dirichlet(np.ones(K), n).astype(dtype), rng.random(n) + 0.1
    source = SoftmaxRowPass(open_rows(rng.standard_normal((n, M))), np.zeros(n, np.int64), weight, K, True, 1)
    source.keep(dtype)
    source.probs[:] = probs
    got = source.class_curvature(stride)
    np.testing.assert_allclose(got, naive.class_curvature(probs[::stride], weight[::stride]), atol=1e-15)
    np.testing.assert_array_equal(got, got.T)
    *sums, total = source.curvature_sums(stride, False)
    np.testing.assert_allclose(np.reshape(sums, (K, K)) / total, got, atol=1e-15)


@pytest.mark.parametrize("intercept", [False, True])
def test_steps_that_nobody_looks_at_equal_the_twin(intercept):
    X, labels, weight = problem(5)
    source, l2 = open_rows(X).softmax_pass(labels, weight, K, intercept, 1), 1e-4
    inverse = kronecker(source, l2)
    mean = weight @ X / N if intercept else None
    V = np.zeros((M + intercept, K))
    risk, gradient = source.risk(V)
    G = naive.penalised(V, gradient, l2, M, mean)[1]
    inverse.update(source.class_curvature())
    newton = MultinomialNewton(MultinomialStep(source.kernel, l2, 12, 1), 1e-9, 1, 40)
    assert newton.judged(V, risk, np.inf) == ONWARD
    newton.begin(inverse, mean, V, G, risk, source.scores, source.probs, source.change, 1 << 60)
    found = SLICE_OVER
    while found == SLICE_OVER:                               # left and taken up again all the time
        found = newton.go(0.0, 4)
    assert found == ONWARD and newton.n_taken == 4 and newton.n_noted == 3
    value, products, twin = risk, 0, kronecker(source, l2)
    for k in range(4):
        probs = naive.probabilities(X, V, intercept)
        twin.update(naive.class_curvature(probs, weight))
        D, t, count = naive.newton_step(X, labels, weight, V, G, value, l2, twin, intercept, mean, 0.25e-9 * value, 12)
        V, products = V + t * D, products + count
        ahead = naive.risk(X, labels, weight, V, intercept)
        penalty, G, gap = naive.penalised(V, ahead[2], l2, M, mean)
        value = ahead[0] + penalty
        if k < 3:
            np.testing.assert_allclose(newton.noted[k, :4], [value, gap, products + k + 1, products], rtol=1e-5)
    np.testing.assert_allclose(newton.V, V, atol=1e-6)
    with pytest.raises(ValueError, match="no step is under way"):
        newton.go(0.0, 4)
    assert newton.low == pytest.approx(value, rel=1e-9) and newton.products == products


def test_what_a_point_is():
    X, labels, weight = problem()
    source, V = open_rows(X).softmax_pass(labels, weight, K, True, 1), point(True)
    newton = MultinomialNewton(MultinomialStep(source.kernel, 1e-2, 5, 1), 1e-3, 1, 40)
    assert newton.judged(V, 1.0, 0.5) == ONWARD
    assert newton.judged(2 * V, 1.0, 0.5e-3) == NEAR                        # half of tol
    assert newton.judged(3 * V, 2.002, 0.5) == newton.judged(V, np.nan, 0.0) == ASTRAY
    np.testing.assert_array_equal(newton.low_V, V)
    assert [newton.judged(V, 1.0, 0.5) for _ in range(10)] == [ONWARD] * 9 + [STANDS]
    assert newton.judged(V, 0.9, 0.5) == ONWARD and newton.low == 0.9
    other = MultinomialNewton(MultinomialStep(source.kernel, 1e-2, 5, 1), 1e-3, 1, 40)
    other.standing = newton.standing
    assert other.judged(V, 1.9, 0.5) == newton.judged(V, 1.9, 0.5) == ASTRAY and other.low == 0.9
    assert newton.may_be(1.8) and not newton.may_be(1.9) and not newton.may_be(np.inf)
    with pytest.raises(ValueError, match="shapes"):
        newton.judged(V[:-1], 1.0, 0.5)
    with pytest.raises(ValueError, match="no step is under way"):
        newton.go(0.1, 1)


def test_there_is_the_start_to_turn_back_to():
    X, labels, weight = problem()
    run = Run(open_rows(X), labels, weight, K, Settings(0.1))
    assert np.any(run.V[-1]) and np.array_equal(run.newton.low_V, run.V)


def test_a_step_checks_shapes():
    X, labels, weight = problem()
    source = open_rows(X).softmax_pass(labels, weight, K, True, 1)
    inverse = kronecker(source, 1e-2)
    step, V = MultinomialStep(source.kernel, 1e-2, 5, 1), np.zeros((M + 1, K))
    with pytest.raises(ValueError, match="shapes"):
        step.begin(inverse, inverse.mean, V[:-1], V, 1.0, 0.0, source.scores, source.probs, source.change)
    with pytest.raises(ValueError, match="shapes"):
        step.begin(inverse, inverse.mean[:-1], V, V, 1.0, 0.0, source.scores, source.probs, source.change)
    with pytest.raises(ValueError, match="shapes"):
        inverse(V[:-1])


def test_a_block_beyond_single_precision_is_told():
    X, labels, weight = problem()
    source = open_rows(X).softmax_pass(labels, weight, K, True, 1)
    source.risk(np.zeros((M + 1, K)))
    assert ClassInverse(source, X.astype(np.float32), np.arange(N), 1e-3).sound
    assert not ClassInverse(source, np.full((N, M), np.inf, np.float32), np.arange(N), 1e-3).sound
