import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import FORMATS, as_format, blobs
from naive import low_rank_inverse

from cmargin import SLNDClassifier
from cmargin.data import open_rows
from cmargin.data.memory.stochastic_rows import NonFiniteCurvature
from cmargin.solvers.sgd.low_rank import (
    automatic_rank,
    build_inverse,
    default_samples,
    knee,
    lower_rank_will_do,
)


def tolerance(dtype):
    return 1e-9 if dtype == np.float64 else 2e-3


@pytest.mark.parametrize("tail", ["drop", "scale"])
@pytest.mark.parametrize("m", [8, 40])          # 8 < 12 features: by the Gram matrix
def test_inverse_is_that_of_the_definition(any_format, dtype, tail, m, tmp_path):
    X = blobs()[0].astype(dtype)
    rng = np.random.default_rng(3)
    subset, c = np.sort(rng.choice(len(X), m, replace=False)), rng.uniform(0.1, 1, (2, m))
    inverse, spectrum = build_inverse(open_rows(any_format(X)).stochastic_rows(2), subset, c, 3, tail)
    assert inverse.n_groups == 2 and inverse.rank == 3 and len(spectrum) == 4
    for g in range(2):
        H = (X[subset].T * c[g]) @ X[subset].astype(float) / m
        expected = low_rank_inverse(H, 3, tail)
        expected_rows = X @ expected
        close = tolerance(dtype) * np.abs(expected_rows).max()
        np.testing.assert_allclose(inverse.apply(X, g), expected_rows, atol=close)
        mean_square = np.einsum("ij,ij->", X[subset] @ expected, X[subset]) / m
        assert inverse.mean_square[g] == pytest.approx(mean_square, rel=1e-3)


@pytest.mark.parametrize("tail", ["drop", "scale"])
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("threads", [1, 3])
def test_whitened_rows_have_the_metric_of_the_inverse(name, dtype, tail, threads, tmp_path):
    X = blobs(n=150)[0].astype(dtype)
    source = open_rows(as_format(X, name, tmp_path)).stochastic_rows(threads)
    inverse, _ = build_inverse(source, np.arange(150), np.ones((1, 150)), 3, tail)
    Z = source.whiten(inverse).astype(float)
    assert Z.shape == (150, inverse.width) and inverse.width == (12 if inverse.full_width else 3)
    product = inverse.low_sign * Z @ Z.T + inverse.tail_inverse[0] * X.astype(float) @ X.T
    expected = inverse.apply(X.astype(float)) @ X.T
    np.testing.assert_allclose(product, expected, atol=tolerance(dtype) * np.abs(expected).max())


@pytest.mark.parametrize("tail", ["drop", "scale"])
@pytest.mark.parametrize("sparse", [False, True])
def test_weights_survive_the_way_to_whitened_coordinates_and_back(tail, sparse):
    X = blobs()[0]
    source = open_rows(sp.csr_matrix(X) if sparse else X).stochastic_rows(1)
    inverse, _ = build_inverse(source, np.arange(60), np.ones((1, 60)), 4, tail)
    W = np.random.default_rng(5).standard_normal((3, 12))
    if tail == "drop":
        W = W @ inverse.eigenvectors[0] @ inverse.eigenvectors[0].T
        assert not inverse.spans(W + 0.1)
    assert inverse.spans(W)
    np.testing.assert_allclose(inverse.weights(*inverse.whitened(W)), W, atol=1e-12)


@pytest.mark.parametrize("m", [8, 40])
@pytest.mark.parametrize("centred", [False, True])
def test_eigenvectors_may_be_chosen_by_the_eigenvalues(any_format, dtype, m, centred):
    X, asked = blobs()[0].astype(dtype), []
    source = open_rows(any_format(X)).stochastic_rows(1)
    subset, c = np.arange(m), np.random.default_rng(3).uniform(0.1, 1, (1, m))
    centre = source.mean_row(subset, c[0]) if centred else None

    def three(values, trace):
        asked.append((values.tolist(), trace))
        return 3

    chosen, known = (source.leading_pairs(subset, c, k, 6, centre) for k in (three, 3))
    assert asked == [(known[0][0].tolist(), known[1][0])]
    for a, b in zip(chosen, known, strict=True):
        assert np.array_equal(a, b)


def test_many_columns_take_the_memory_of_their_weights():
    # of 101 eigenvectors one was kept: 2^20 hashed columns and 8 classes took 898 MiB, and their weights are 64
    n, d, k = 3000, 1 << 17, 8
    rng = np.random.default_rng(0)
    y = np.arange(n) % k
    columns = np.sort(np.hstack([y[:, None], rng.integers(k, d, (n, 19))]), axis=1)
    X = sp.csr_matrix((np.ones(columns.size), columns.ravel(), np.arange(0, columns.size + 1, 20)), shape=(n, d))
    X.sum_duplicates()
    weights, peaks = 8 * k * d, {}
    for loss in ("multinomial", "logistic"):
        tracemalloc.start()
        try:
            model = SLNDClassifier(loss=loss, max_passes=3, random_state=0, n_jobs=1).fit(X, y)
            peaks[loss] = tracemalloc.get_traced_memory()[1] / weights
        finally:
            tracemalloc.stop()
        assert model.score(X, y) > 0.95
    assert peaks["multinomial"] < 7 and peaks["logistic"] < 10, peaks


def test_same_bits_for_any_number_of_threads_and_groups(dtype):
    X = blobs(n=400, d=30)[0].astype(dtype)
    c = np.random.default_rng(9).uniform(0.1, 1, (5, 100))
    subset = np.arange(100)
    answers = [open_rows(X).stochastic_rows(t).leading_pairs(subset, c, 4, 5) for t in (1, 2, 3)]
    for other in answers[1:]:
        for a, b in zip(answers[0], other, strict=True):
            assert np.array_equal(a, b)
    inverse, _ = build_inverse(open_rows(X).stochastic_rows(1), subset, c[:1], 4, "scale")
    whitened = [open_rows(X).stochastic_rows(t).whiten(inverse) for t in (1, 2, 3)]
    assert np.array_equal(whitened[0], whitened[1]) and np.array_equal(whitened[0], whitened[2])


@pytest.mark.parametrize("m", [450, 200])                         # 300 columns; by the Gram matrix, of two tiles a side
def test_the_one_second_moment_of_a_fit_is_shared_out_in_the_same_bits(dtype, m):
    # it was one thread's work, beside fifteen that waited
    X = np.random.default_rng(2).standard_normal((500, 300)).astype(dtype) * np.linspace(2, 0.1, 300, dtype=dtype)
    subset, centre, found = np.arange(m), X[:m].mean(axis=0, dtype=float), []
    for threads in (1, 2, 5):
        rows = open_rows(X).stochastic_rows(threads)
        found.append(rows.leading_pairs(subset, np.ones((1, m)), 4, 6, centre))
    for values, trace, vectors in found[1:]:
        assert np.array_equal(values, found[0][0]) and np.array_equal(trace, found[0][1])
        assert np.array_equal(vectors, found[0][2])
    Z = X[:m] - centre
    np.testing.assert_allclose(found[0][0][0], np.linalg.svd(Z.astype(float), compute_uv=False)[:6]**2 / m,
                               rtol=1e-9 if dtype == np.float64 else 2e-5)


def test_rank_beyond_the_data_is_cut_where_the_eigenvalues_end():
    # four rows span four directions; inverting a rounding error would blow the weights up
    X = np.random.default_rng(1).standard_normal((4, 9))
    rows = open_rows(np.vstack([X, X, X])).stochastic_rows(1)
    inverse, _ = build_inverse(rows, np.arange(12), np.ones((1, 12)), 7, "drop")
    assert np.sum(inverse.eigenvalues > 0) == 4
    assert np.all(np.isfinite(inverse.factor)) and inverse.mean_square[0] == pytest.approx(4)


def test_constant_and_zero_columns():
    X = np.random.default_rng(2).standard_normal((50, 5))
    X[:, 1], X[:, 3] = 0.0, 2.5
    inverse, _ = build_inverse(open_rows(X).stochastic_rows(1), np.arange(50), np.ones((1, 50)), "auto", "scale")
    assert np.all(np.isfinite(inverse.apply(X))) and np.abs(inverse.apply(X)[:, 1]).max() < 1e-14


@pytest.mark.parametrize("tail", ["drop", "scale"])
def test_rows_of_nothing_but_zeros(tail):
    rows = open_rows(np.zeros((6, 4))).stochastic_rows(1)
    inverse, _ = build_inverse(rows, np.arange(6), np.ones((1, 6)), "auto", tail)
    assert np.all(inverse.factor == 0) and np.all(inverse.mean_square == 0)


def test_non_finite_curvature_is_named():
    c = np.ones((2, 10))
    c[1, 4] = np.nan
    with pytest.raises(NonFiniteCurvature, match="group 1"):
        open_rows(blobs()[0]).stochastic_rows(1).leading_pairs(np.arange(10), c, 2, 3)


def test_knee_and_automatic_rank():
    plateau = np.array([100.0, 60, 5, 4.9, 4.8, 4.7, 4.6, 4.5])
    assert knee(plateau) == 2
    assert automatic_rank(plateau, plateau.sum(), "scale", 1000) == 2
    assert automatic_rank(plateau, plateau.sum(), "drop", 1000) == 8
    assert automatic_rank(plateau, plateau.sum(), "drop", 12) == 3         # a quarter of the rows
    # columns of very different scale: after the knee one direction still holds nearly all that is left
    steep = 10.0 ** -np.arange(0, 12, 2)
    assert automatic_rank(steep, steep.sum(), "scale", 1000) == 5
    assert knee([1.0]) == knee([2.0, 1.0]) == knee([1.0, 1.0, 1.0]) == 1


def test_default_samples():
    assert default_samples(500, 2000, "auto", "scale") == 500
    assert default_samples(10**6, 2000, "auto", "scale") == 1000
    assert default_samples(10**6, 2000, "auto", "drop") == 4000
    assert default_samples(10**6, 2000, 100, "drop") == 2000


def test_a_lower_rank_will_do_where_no_other_direction_holds_half_of_what_is_left():
    assert lower_rank_will_do(np.array([9.0, 1, 1, 1]), 1) and lower_rank_will_do(np.array([9.0, 2, 1, 1]), 1)
    assert not lower_rank_will_do(np.array([9.0, 3, 1, 1]), 1) and not lower_rank_will_do(np.array([9.0]), 1)
