"""The compiled sums over blocks of rows, against NumPy on all rows at once."""

import numpy as np
import pytest
import scipy.sparse as sp
from api import LOSS_IDS, evaluate

from cmargin.data.memory import score_blocks
from cmargin.data.open import open_rows

N, P, K = 700, 23, 5


def problem(form, dtype, weighted, monkeypatch, n_threads=2):
    rng = np.random.default_rng(5)
    X = np.where(rng.random((N, P)) < 0.4, rng.standard_normal((N, P)), 0).astype(dtype)
    Y = sp.csr_matrix((rng.random((N, K)) < 0.3).astype(np.int8))
    weight = rng.random(N) * 2 if weighted else None
    given = {"c": X, "f": np.asfortranarray(X), "strided": np.repeat(X, 2, axis=1)[:, ::2], "csr": sp.csr_matrix(X)}
    monkeypatch.setattr(score_blocks, "BLOCK_NUMBERS", 4000)
    monkeypatch.setattr(score_blocks, "TILE_ROWS", 32)
    blocks = open_rows(given[form]).score_blocks(Y, weight, n_threads)
    assert len(blocks.blocks) > 2
    code = np.where(Y.toarray() > 0, 1.0, -1.0)
    W, bias = rng.standard_normal((K, P)), rng.standard_normal(K)
    return blocks, X.astype(float), code, np.ones(N) if weight is None else weight, W, bias


def expected(X, code, weight, W, bias, loss):
    number, level, scale = loss
    value, gradient, slopes = np.empty(K), np.empty((K, P)), np.empty(K)
    for c in range(K):
        z = code[:, c] * (X @ W[c] + bias[c])
        F, slope, curvature = np.empty((3, len(z)))
        evaluate(number, z, F, slope, curvature, level, scale[c])
        r = weight * code[:, c] * slope
        value[c], gradient[c], slopes[c] = weight @ F, X.T @ r, r.sum()
    return value, gradient, slopes


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", ["c", "f", "strided", "csr"])
def test_sums_and_margins_are_those_of_numpy(form, dtype, weighted, monkeypatch):
    blocks, X, code, weight, W, bias = problem(form, dtype, weighted, monkeypatch)
    for name, level in (("logistic", 0.0), ("margin_pursuit", 0.7), ("smoothed_hinge", 0.5)):
        loss = LOSS_IDS[name], level, np.linspace(0.5, 2, K)
        for found, right in zip(blocks.sums(W, bias, loss), expected(X, code, weight, W, bias, loss), strict=True):
            np.testing.assert_allclose(found, right, rtol=1e-11, atol=1e-11)
        part = slice(3, N, 7)
        of_part = expected(X[part], code[part], weight[part], W, bias, loss)
        for found, right in zip(blocks.sums_of(part, W, bias, loss), of_part, strict=True):
            np.testing.assert_allclose(found, right, rtol=1e-11, atol=1e-11)
    monkeypatch.setattr(score_blocks, "GROUP_SCORES", 2 * N)
    groups = list(blocks.margins(W, bias))
    assert [group.stop - group.start for group, _ in groups] == [2, 2, 1]
    np.testing.assert_allclose(np.concatenate([z for _, z in groups]), code.T * (W @ X.T + bias[:, None]), rtol=1e-11,
                               atol=1e-11)


@pytest.mark.parametrize("form", ["c", "csr"])
def test_the_bits_are_the_same_for_any_number_of_threads(form, monkeypatch):
    loss, bits = (LOSS_IDS["logistic"], 0.0, np.ones(K)), set()
    for n_threads in (1, 2, 3):
        blocks, _, _, _, W, bias = problem(form, np.float64, True, monkeypatch, n_threads)
        (_, margins), = blocks.margins(W, bias)
        bits.add(b"".join(np.ascontiguousarray(a).tobytes() for a in (*blocks.sums(W, bias, loss), margins)))
    assert len(bits) == 1


def test_what_does_not_fit_is_refused(monkeypatch):
    blocks, _, _, _, W, bias = problem("c", np.float64, False, monkeypatch)
    kernel, whole, out = blocks.kernel, np.array([0, N]), np.empty((K, N))
    sums = np.zeros(K), np.zeros(K), np.zeros((P, K))
    W = np.ascontiguousarray(W.T)
    for bounds, every, loss, scale in (([0, N + 1], 1, 0, K), ([5, 3], 1, 0, K), ([0, 1, 2, 3], 1, 0, K),
                                       ([0, N], 0, 0, K), ([0, N], 1, 99, K), ([0, N], 1, 0, K - 1)):
        with pytest.raises(ValueError, match=r"ProblemRows\.sums"):
            kernel.sums(W, bias, loss, 0.0, np.ones(scale), np.array(bounds), every, *sums)
    for columns, first, threads in ((W[1:], 0, 1), (W, 1, 1), (W, -1, 1), (W, 0, 9)):
        with pytest.raises(ValueError, match=r"ProblemRows\.margins"):
            kernel.margins(columns, bias, first, whole, threads, out)
