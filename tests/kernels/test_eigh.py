from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from api import _eigh
from c_functions import ARRAY, FLAG, SIZE, c_function

from cmargin._build_config import BLAS_INT_BITS
from cmargin._runtime.blas_threads import single_threaded_blas

FINE, NOT_FINITE = 0, 1                 # of `eigh_status`


def top_eigenpairs(A, k, status=FINE):
    """The k largest eigenvalues, and their eigenvectors as rows; ``A`` is overwritten."""
    n, dtype = len(A), A.dtype
    work, iwork = (c_function(_eigh, f"eigh_{what}_size", SIZE, SIZE)(n) for what in ("work", "iwork"))
    values, vectors = np.empty(n, dtype), np.empty((k, n), dtype)
    top = c_function(_eigh, "eigh_top", FLAG, ARRAY, SIZE, SIZE, ARRAY, ARRAY, ARRAY, ARRAY, dtype=dtype)
    assert top(A, n, k, values, vectors, np.empty(work, dtype), np.empty(iwork, f"i{BLAS_INT_BITS // 8}")) == status
    return values[:k], vectors


def spd(n, dtype, seed=5):
    X = np.random.default_rng(seed).standard_normal((2 * n, n)) * np.linspace(3, 0.1, n)
    return (X.T @ X / len(X)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n, k", [(1, 1), (2, 1), (5, 5), (40, 3), (40, 39), (200, 20)])
def test_residual_and_orthogonality(dtype, n, k):
    A = spd(n, dtype)
    values, vectors = top_eigenpairs(A.copy(), k)
    eps = np.finfo(dtype).eps * n * 10 * values[0]
    assert values.dtype == vectors.dtype == dtype and vectors.shape == (k, n)
    assert np.all(np.diff(values) <= 0)
    assert np.abs(A @ vectors.T - vectors.T * values).max() < eps
    assert np.abs(vectors @ vectors.T - np.eye(k)).max() < np.finfo(dtype).eps * n * 10
    np.testing.assert_allclose(values, np.linalg.eigvalsh(A.astype(float))[::-1][:k], atol=eps)


def test_only_the_upper_triangle_is_read():
    A = spd(12, np.float64)
    values, _ = top_eigenpairs(np.triu(A) + np.tril(np.full((12, 12), 99.0), -1), 4)
    np.testing.assert_allclose(values, top_eigenpairs(A.copy(), 4)[0], rtol=1e-14)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_one_bad_entry_is_refused(bad):
    # syevr returns info = 0, finds nothing and leaves its outputs unwritten: uninitialised memory once
    # came back as a spectrum of plausible numbers.
    A = spd(60, np.float64)
    A[17, 40] = bad
    top_eigenpairs(A, 3, NOT_FINITE)


def test_concurrent_calls_equal_serial_ones_bit_for_bit():
    matrices = [spd(60 + i, np.float64, seed=i) for i in range(24)]
    with single_threaded_blas():
        serial = [top_eigenpairs(A.copy(), 5) for A in matrices]
        with ThreadPoolExecutor(4) as pool:
            parallel = list(pool.map(lambda A: top_eigenpairs(A.copy(), 5), matrices))
    for (w, V), (w2, V2) in zip(serial, parallel, strict=True):
        assert np.array_equal(w, w2) and np.array_equal(V, V2)
