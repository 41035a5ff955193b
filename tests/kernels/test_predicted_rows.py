"""Scores of rows and what predictions make of them, beside NumPy: every layout, any number of classes and threads."""

import numpy as np
import pytest
import scipy.sparse as sp
from api import Rows, predict_rows
from scipy.special import softmax

from cmargin._estimators.scores import BEST, SCORES, SOFTMAX, TOP

N, M = 1300, 37                    # two tiles and a half; neither fills the lanes of a vector

LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "cut": lambda X: np.repeat(np.repeat(X, 2, 0), 3, 1)[::2, ::3],
    "backwards": lambda X: np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
    "csr": sp.csr_matrix,
    "csr 64": lambda X: with_long_indices(sp.csr_matrix(X)),
}


def with_long_indices(X):
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def problem(k, dtype, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, M)) * (rng.random((N, M)) < 0.5)
    return X.astype(dtype), rng.standard_normal((k, M)), rng.standard_normal(k)


def run(X, V, b, what, dtype=np.float64, n_top=1, n_threads=1, first=0, last=N, transposed=True):
    n, of_classes = last - first, what in (BEST, TOP)
    numbers = np.full((0 if of_classes else n, len(V)), np.nan, dtype)
    classes, lost = np.full((n if of_classes else 0, n_top), -1, np.int64), np.full(n, 9, np.uint8)
    V = np.ascontiguousarray(V, dtype)
    by_feature = np.ascontiguousarray(V.T) if transposed else None
    predict_rows(Rows(X), first, n, V, by_feature, b.astype(dtype), what, n_threads, numbers, classes, lost)
    return classes if of_classes else numbers, lost


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("stored, dtype", [("float32", "float32"), ("float64", "float64"), ("float32", "float64")])
@pytest.mark.parametrize("k", [1, 2, 3, 9, 16, 33, 700])
def test_what_numpy_says(k, stored, dtype, layout):
    dtype = np.dtype(dtype)
    X, V, b = problem(k, stored)
    wanted = X.astype(float) @ V.astype(dtype).astype(float).T + b.astype(dtype)
    X, tolerance = LAYOUTS[layout](X), 1e-12 if dtype == np.float64 else 3e-5
    scores, lost = run(X, V, b, SCORES, dtype)
    assert scores.dtype == dtype and not lost.any()
    np.testing.assert_allclose(scores, wanted, atol=tolerance)
    np.testing.assert_allclose(run(X, V, b, SOFTMAX, dtype)[0], softmax(wanted, axis=1), atol=tolerance)
    np.testing.assert_array_equal(run(X, V, b, BEST, dtype)[0][:, 0], scores.argmax(axis=1))
    for n_top in {1, min(5, k), k}:
        wanted = np.argsort(-scores, axis=1, kind="stable")[:, :n_top]
        np.testing.assert_array_equal(run(X, V, b, TOP, dtype, n_top)[0], wanted)


@pytest.mark.parametrize("layout", ["C", "F", "csr"])
@pytest.mark.parametrize("k", [1, 7, 300])
def test_the_same_bits_for_any_threads_and_any_part(k, layout):
    X, V, b = problem(k, np.float32)
    X = LAYOUTS[layout](X)
    for what in (SCORES, BEST, TOP, SOFTMAX):
        whole, _ = run(X, V, b, what, np.float32)
        assert np.array_equal(whole, run(X, V, b, what, np.float32, n_threads=3)[0])
    part, _ = run(X, V, b, SCORES, np.float32, first=1024, last=1200)
    np.testing.assert_allclose(part, run(X, V, b, SCORES, np.float32)[0][1024:1200], atol=3e-5)


def test_a_few_sparse_rows_do_without_the_transpose():
    X, V, b = problem(6, np.float32)
    for dtype in (np.float32, np.float64):
        got, _ = run(sp.csr_matrix(X), V, b, SCORES, dtype, transposed=False)
        np.testing.assert_allclose(got, run(sp.csr_matrix(X), V, b, SCORES, dtype)[0], atol=3e-5)


@pytest.mark.parametrize("k", [3, 64, 130])
def test_of_equal_scores_the_first(k):
    X = np.ones((3, 2))
    V = np.zeros((k, 2))
    V[k // 2:] = 1
    assert (run(X, V, np.zeros(k), BEST, last=3)[0] == k // 2).all()
    np.testing.assert_array_equal(run(X, V, np.zeros(k), TOP, n_top=k, last=3)[0][0],
                                  [*range(k // 2, k), *range(k // 2)])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("at", [0, 40, 99])
def test_rows_whose_scores_overflow_are_named(dtype, at):
    X, V, b = np.ones((50, 1), dtype), np.ones((100, 1)), np.zeros(100)
    X[7], X[9], V[at] = np.finfo(dtype).max, -np.finfo(dtype).max, 2
    for what in (SCORES, BEST, TOP, SOFTMAX):
        assert np.flatnonzero(run(X, V, b, what, dtype, last=50)[1]).tolist() == [7, 9]


def test_shapes_that_do_not_fit_are_refused():
    X, V, b = problem(4, np.float64)
    for wrong in (dict(V=V[:, 1:]), dict(b=b[1:]), dict(last=N + 1), dict(first=-1), dict(what=9),
                  dict(what=TOP, n_top=5), dict(what=BEST, n_top=2), dict(n_threads=0)):
        with pytest.raises(ValueError, match="shapes do not fit"):
            run(**{"X": X, "V": V, "b": b, "what": SCORES, **wrong})
