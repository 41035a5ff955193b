"""CSR rows in fewer bytes: no values where all are one, columns in 16 bits (`Rows.in_few_bytes`)."""

import numpy as np
import pytest
from api import DualSweeps, Rows
from naive_smsvm import evaluate, with_ones
from scipy import sparse

from cmargin import SmSVMClassifier
from cmargin._runtime.blas_threads import single_threaded_blas
from cmargin.data import open_rows
from cmargin.data.loss import Loss
from cmargin.data.memory.row_pass import MemoryRowPass

KINDS = ["ones", "values", "a zero", "unsorted", "empty rows", "read-only"]


def make(kind, index=np.int32, dtype=np.float64, n=613, m=90, n_columns=None):
    """0 to 13 entries a row: every remainder of the loops that take four at a time."""
    rng = np.random.default_rng(11)
    rows = [np.sort(rng.choice(m, rng.integers(0, 14), replace=False)) for _ in range(n)]
    if kind == "unsorted":
        rows = [rng.permutation(row) for row in rows]
    if kind == "empty rows":
        rows = [row if k % 3 else row[:0] for k, row in enumerate(rows)]
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    values = np.ones(starts[-1], dtype) if kind != "values" else rng.standard_normal(starts[-1]).astype(dtype)
    if kind == "a zero":
        values[7] = 0
    X = sparse.csr_matrix((values, np.concatenate(rows).astype(index), starts.astype(index)), shape=(n, n_columns or m))
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    if kind == "read-only":
        for part in (X.data, X.indices, X.indptr):
            part.flags.writeable = False
    y = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    return X, y, rng.integers(0, 3, n).astype(float)


def read(rows, signed_weight, w, active=None, listed=None):
    """What an evaluation, products and diagonal of the Hessian, sums of squares and the objective say."""
    blocks = MemoryRowPass(rows, signed_weight, intercept=True, n_threads=2, rows=listed)
    blocks.set_active(active)
    with single_threaded_blas():
        found = [part.copy() for part in blocks.evaluate(w, 1.0, 1.0, 0.5, 0.05)]
        norms = blocks.measure_rows(np.linspace(0.5, 2, rows.shape[1]))
        found += [part.copy() for part in blocks.evaluate(w / 2, 0.7, 0.5, 0.3, 0.0, False)[:2]]
        found += [norms, *(np.array(blocks.hessp(v, 0.3, 0.0)[0]) for v in (w, None)), blocks.margins()]
    return found


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("kind", KINDS)
def test_the_bits_are_those_of_rows_as_they_are_stored(kind, index, dtype):
    X, y, s = make(kind, index, dtype)
    few = Rows(X).in_few_bytes()
    assert few.entry_bytes == 2 + (X.dtype.itemsize if kind in ("values", "a zero") else 0)
    assert Rows(X).entry_bytes == X.indices.itemsize + X.dtype.itemsize
    w = np.linspace(-0.4, 0.6, X.shape[1] + 1)
    some = np.arange(0, X.shape[0], 3)
    for active in (None, np.arange(5, X.shape[1] + 1, 2)):
        for listed in (None, some):
            signed_weight = np.ascontiguousarray((s * y)[slice(None) if listed is None else listed])
            for mine, stored in zip(*(read(rows, signed_weight, w, active, listed) for rows in (few, Rows(X))),
                                    strict=True):
                assert mine.tobytes() == stored.tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_an_evaluation_is_the_twin_s(kind):
    X, y, s = make(kind)
    A, w = with_ones(X, True), np.linspace(-0.4, 0.6, X.shape[1] + 1)
    rows = open_rows(X).row_pass(s * y, intercept=True, n_threads=1)
    with single_threaded_blas():
        sums, gradient, hessian = rows.evaluate(w, 1.0, 1.0, 0.5, 0.0)
    expected = evaluate(A, y, s, 0 * w, w, 1.0, 0.5)
    np.testing.assert_allclose(sums[:6], expected[0], rtol=1e-12)
    np.testing.assert_allclose(gradient, expected[1], rtol=1e-11, atol=1e-10)
    np.testing.assert_allclose(np.triu(hessian), np.triu(expected[2]), rtol=1e-11, atol=1e-10)


def test_rows_of_few_columns_are_read_in_16_bits_and_the_last_such_column_is_one():
    for n_columns, expected in ((1 << 16, 2), ((1 << 16) + 1, 4)):
        X, y, _ = make("ones", n_columns=n_columns)
        X.indices[0] = n_columns - 1
        X.has_sorted_indices = False
        X.sort_indices()
        rows = Rows(X).in_few_bytes()
        assert rows.entry_bytes == expected
        blocks = MemoryRowPass(rows, y, intercept=False, n_threads=1)
        w = np.zeros(n_columns)
        w[-1] = 1.0
        blocks.evaluate(w, 1.0, 1.0, 0.5, 0.0, False)
        assert np.array_equal(blocks.margins(), y * (X @ w)) and np.any(blocks.margins())


def test_columns_in_a_map_of_a_file_are_not_copied(tmp_path):
    # it may be larger than memory; that all values are one is known from looking at them, without a copy
    X, _, _ = make("ones")
    np.save(tmp_path / "columns.npy", X.indices)
    X.indices = np.load(tmp_path / "columns.npy", mmap_mode="r")
    assert Rows(X).in_few_bytes().entry_bytes == 4


def test_an_empty_matrix_and_dense_rows_stay_as_they_are():
    assert Rows(sparse.csr_matrix((3, 5))).in_few_bytes().entry_bytes == 12
    assert Rows(np.ones((3, 5), np.float32)).in_few_bytes().entry_bytes == 4


class AsStored(Rows):
    def in_few_bytes(self):
        return self


@pytest.mark.parametrize("kind", KINDS)
def test_sweeps_of_the_dual_have_the_same_bits(kind):
    X, y, _ = make(kind)
    assert swept(X, y, Rows) == swept(X, y, AsStored)


def swept(X, y, kind):
    source = open_rows(X)
    source.rows = kind(X)
    a, w = np.zeros(len(y)), np.zeros(source.n_features + 1)
    rows = source.dual_rows(True, False, None, 1e-3, Loss("hinge")).row_pass(y)
    DualSweeps(rows, a, w, np.arange(4, dtype=np.uint64) + 3, np.inf).run(5, 1e-9, 1e9, 1e9)
    return a.tobytes(), w.tobytes()


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_a_fit_of_one_hot_rows_is_that_of_the_same_rows_stored_twice(loss):
    # 0.5 + 0.5: rows that store an entry in parts are summed first, and then all are one
    X, y, _ = make("ones", n=400)
    twice = sparse.csr_matrix((np.full(2 * X.nnz, 0.5), np.repeat(X.indices, 2), 2 * X.indptr), shape=X.shape)
    one, other = (SmSVMClassifier(loss=loss, l2=1e-3).fit(A, y) for A in (X, twice))
    assert np.array_equal(one.coef_, other.coef_)
