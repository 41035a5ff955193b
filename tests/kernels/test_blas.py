import numpy as np
import pytest
from api import _blas
from c_functions import ARRAY, FLAG, NUMBER, SIZE, c_function

DTYPES = [np.float32, np.float64]
SIGNATURES = {
    "dot": (NUMBER, SIZE, ARRAY, ARRAY),
    "axpy": (None, SIZE, NUMBER, ARRAY, ARRAY),
    "scal": (None, SIZE, NUMBER, ARRAY),
    "gemv": (None, FLAG, SIZE, SIZE, NUMBER, ARRAY, SIZE, ARRAY, NUMBER, ARRAY),
    "gemm": (None, FLAG, FLAG, SIZE, SIZE, SIZE, NUMBER, ARRAY, SIZE, ARRAY, SIZE, NUMBER, ARRAY, SIZE),
    "syrk": (None, FLAG, SIZE, SIZE, NUMBER, ARRAY, SIZE, NUMBER, ARRAY, SIZE),
}


def blas(name, dtype, *arguments):
    return c_function(_blas, name, *SIGNATURES[name], dtype=dtype)(*arguments)


def draw(dtype, *shape):
    return np.random.default_rng(sum(shape) + 11).standard_normal(shape).astype(dtype)


def close(got, expected, dtype):
    np.testing.assert_allclose(got, expected, rtol=0, atol=20 * np.finfo(dtype).eps * (1 + np.abs(expected).max()))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 1, 7, 130])
def test_vector_kernels(dtype, n):
    x, y = draw(dtype, n), draw(dtype, n)[::-1].copy()
    assert blas("dot", dtype, n, x, y) == pytest.approx(float(x @ y), rel=1e-5, abs=1e-5)
    expected = y + dtype(0.5) * x
    blas("axpy", dtype, n, 0.5, x, y)
    np.testing.assert_array_equal(y, expected)
    blas("scal", dtype, n, -2.0, y)
    np.testing.assert_array_equal(y, -2 * expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("trans", [False, True])
@pytest.mark.parametrize("m, n", [(1, 1), (1, 5), (6, 1), (9, 4)])
def test_gemv(dtype, trans, m, n):
    A = draw(dtype, m, n)
    x, y = draw(dtype, m if trans else n), draw(dtype, n if trans else m)
    expected = 1.5 * (A.T if trans else A) @ x - 0.5 * y
    blas("gemv", dtype, trans, m, n, 1.5, A, n, x, -0.5, y)
    close(y, expected, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("trans_a", [False, True])
@pytest.mark.parametrize("trans_b", [False, True])
@pytest.mark.parametrize("m, n, k", [(1, 1, 1), (3, 5, 2), (4, 1, 7), (17, 9, 12)])
def test_gemm(dtype, trans_a, trans_b, m, n, k):
    A = draw(dtype, *((k, m) if trans_a else (m, k)))
    B = draw(dtype, *((n, k) if trans_b else (k, n)))
    C = draw(dtype, m, n)
    expected = 2.0 * (A.T if trans_a else A) @ (B.T if trans_b else B) + 0.25 * C
    blas("gemm", dtype, trans_a, trans_b, m, n, k, 2.0, A, A.shape[1], B, B.shape[1], 0.25, C, n)
    close(C, expected, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("trans", [False, True])
def test_syrk_writes_the_upper_triangle_only(dtype, trans):
    A, C = draw(dtype, 8, 5), np.full((5, 5) if trans else (8, 8), 3, dtype)
    expected = np.triu((A.T @ A if trans else A @ A.T) + C) + np.tril(C, -1)
    blas("syrk", dtype, trans, len(C), 8 if trans else 5, 1.0, A, 5, 1.0, C, len(C))
    close(C, expected, dtype)


@pytest.mark.parametrize("n", [1, 4, 7, 8, 9, 16, 17, 23, 24, 25, 31, 48, 55, 64, 65, 100, 128, 129, 300])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lanes", [8, 4, 0])
def test_syrk_of_packed_rows_adds_to_the_upper_triangle_only(lanes, dtype, n):
    if lanes > _blas.lanes_here():
        pytest.skip("not on this processor")
    A, C = np.zeros((37, -(-n // 16) * 16), dtype), draw(dtype, n, n)
    A[:, :n] = draw(dtype, 37, n)
    before = C.copy()
    done = _blas.packed_syrk_memview(lanes, A, C)
    assert done == (lanes > 0)
    close(C, before + np.triu(A[:, :n].T @ A[:, :n]) if done else before, dtype)
    assert np.array_equal(np.tril(C, -1), np.tril(before, -1))


@pytest.mark.parametrize(("lanes", "A", "C"), [
    (4, (3, 8), (8, 8)), (4, (3, 16), (17, 17)), (4, (3, 16), (15, 16)), (16, (3, 16), (16, 16))])
def test_syrk_of_packed_rows_refuses_what_does_not_fit(lanes, A, C):
    with pytest.raises(ValueError, match=r"is not padded for C|lanes, not"):
        _blas.packed_syrk_memview(lanes, np.zeros(A), np.zeros(C))
