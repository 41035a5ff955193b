"""Rows in files that are broken, do not fit together, or are asked for what they cannot do."""

import os
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import blobs
from rows_in_files import files_of, write_csr

from cmargin import MarginPursuitClassifier, SLNDClassifier, SmSVMClassifier, SmSVMClassifierCV, baselines
from cmargin.data import open_rows
from cmargin.data.files import RowFiles, open_files, sources
from cmargin.data.files import source as source


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(source, "CHUNK", 2000)


@pytest.fixture
def data():
    X, y = blobs(n=900, d=9, k=2)
    return np.where(np.abs(X) > 0.4, X, 0.0).astype(np.float32), y


# ---------------------------------------------------------------- what is refused

def test_numbers_are_checked_when_they_are_first_read(data, tmp_path):
    X, y = data
    for bad, words in ((np.nan, "Input X contains NaN"), (np.inf, "Input X contains infinity")):
        for row in (0, 450, 899):
            broken = X.copy()
            broken[row, 3] = bad
            for kind in ("npy C", "csr npz"):
                files = files_of(broken, kind, tmp_path)
                for model in (SmSVMClassifier(), MarginPursuitClassifier(), MarginPursuitClassifier(solver="gd")):
                    with pytest.raises(ValueError, match=words):
                        model.fit(files, y)
                    assert not hasattr(model, "n_features_in_")
                with pytest.raises(ValueError, match=words):
                    SmSVMClassifier(l2=1e-2).fit(X, y).predict(files)


def test_every_number_is_checked_once(data, tmp_path):
    seen = []
    files = files_of(data[0], "npy C", tmp_path)
    files = RowFiles(files.parts, lambda X: seen.append(len(X)))
    rows = open_rows(files).row_pass(np.ones(900), intercept=True, n_threads=1)
    for _ in range(3):
        rows.objective(np.zeros(10))
    assert sum(seen) == 900


@pytest.mark.parametrize("estimator", [SLNDClassifier(l1=1e-3),
                                       baselines.SGDQNClassifier(),
                                       MarginPursuitClassifier(solver="sgd"), SmSVMClassifierCV(cv="loo"),
                                       SmSVMClassifier(linear_solver="dual"),
                                       SmSVMClassifier(linear_solver="woodbury")], ids=str)
def test_what_needs_rows_in_memory_says_so(estimator, tmp_path):
    X, y = blobs(n=400, d=6, k=3)
    with pytest.raises(ValueError, match="needs the rows in memory, and these stay in files"):
        estimator.fit(files_of(X, "npy C", tmp_path), y)


def test_files_that_are_broken(data, tmp_path):
    X, y = data
    np.save(tmp_path / "X.npy", X)
    path = tmp_path / "X.npy"
    model = SmSVMClassifier()
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[900, 899\]"):
        model.fit(open_files(path, in_memory=False), y[:-1])
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[900, 899\]"):
        model.fit(path, y[:-1])
    with pytest.raises(ValueError, match="requires y to be passed"):
        model.fit(open_files(path, in_memory=False), None)
    whole = path.read_bytes()
    files = open_files(path, in_memory=False)
    path.write_bytes(whole[:-100])
    words = r"X.npy' is cut short: its array of shape \(900, 9\) takes 32400 bytes, and 32300 are there"
    with pytest.raises(ValueError, match=words):
        model.fit(path, y)
    with pytest.raises(ValueError, match=r"X.npy' was cut short while it was read"):
        model.fit(files, y)
    path.write_bytes(whole[:30])
    with pytest.raises(ValueError, match=r"is no \.npy file, or is cut short within its header"):
        model.fit(path, y)
    with pytest.raises(FileNotFoundError, match=r"There is no file '.*none.npy'"):
        model.fit(tmp_path / "none.npy", y)
    (tmp_path / "X.txt").write_text("1 2 3")
    with pytest.raises(ValueError, match=r"is of no kind that rows are read from: \.npy"):
        model.fit(tmp_path / "X.txt", y)
    np.save(tmp_path / "flat.npy", X[:, 0])
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array in"):
        model.fit(tmp_path / "flat.npy", y)
    np.savez_compressed(tmp_path / "X.npz", X)
    with pytest.raises(ValueError, match="is compressed and cannot be read in parts"):
        model.fit(tmp_path / "X.npz", y)
    np.save(tmp_path / "X.npy", X.astype(complex))
    with pytest.raises(ValueError, match=r"must be float32 or float64 .* holds complex128"):
        model.fit(tmp_path / "X.npy", y)


def test_shards_that_do_not_fit_together(data, tmp_path):
    X, y = data
    for name, part in {"a": X[:300], "narrow": X[300:, :8], "double": X[300:].astype(float)}.items():
        np.save(tmp_path / f"{name}.npy", part)
    sp.save_npz(tmp_path / "sparse.npz", sp.csr_matrix(X[300:]), compressed=False)
    for other, words in (("narrow.npy", "n_features is 9 in .*a.npy' and 8"),
                         ("double.npy", "dtype is float32 in .*a.npy' and float64"),
                         ("sparse.npz", "sparse is False in .*a.npy' and True")):
        with pytest.raises(ValueError, match=f"Files of one data set must agree: {words}"):
            SmSVMClassifier().fit([tmp_path / "a.npy", tmp_path / other], y)
    with pytest.raises(FileNotFoundError, match=r"Shard 2 of 2, '.*b.npy', is missing"):
        SmSVMClassifier().fit([tmp_path / "a.npy", tmp_path / "b.npy"], y)


def test_csr_arrays_that_do_not_fit_together(data, tmp_path):
    X, y = data
    folder = write_csr(tmp_path / "X", X)
    whole = {name: np.load(folder / f"{name}.npy") for name in ("data", "indices", "indptr", "shape")}
    for name, broken, words in (
            ("indptr", whole["indptr"][:-1], "holds no CSR matrix of shape"),
            ("shape", whole["shape"] + np.array([0, 2**55]), "whose weights no memory holds"),
            ("indptr", np.r_[0, whole["indptr"][:0:-1]], "row pointers are not ascending"),
            ("indptr", whole["indptr"] // 2, "row pointers end at"),
            ("indices", whole["indices"] + 5, "indices"), ("data", whole["data"][:-1], "holds no CSR matrix of shape")):
        np.save(folder / f"{name}.npy", broken)
        with pytest.raises(ValueError, match=words):
            SmSVMClassifier().fit(open_files(folder, in_memory=False), y)
        np.save(folder / f"{name}.npy", whole[name])
    os.remove(folder / "data.npy")
    with pytest.raises(ValueError, match="holds no CSR matrix: data is missing"):
        SmSVMClassifier().fit(folder, y)


@pytest.mark.parametrize("name", ["csc", "bsr", "coo", "dia"])
def test_an_npz_of_another_sparse_format_is_converted(data, tmp_path, monkeypatch, name):
    # The three arrays of a CSC matrix were read as those of a CSR matrix: where X was square, fits and predictions were
    # of its transpose. Then such files were refused, though they fit into memory.
    X, y, path = data[0][:9], data[1][:9], tmp_path / "X.npz"
    sp.save_npz(path, sp.csr_array(X).asformat(name), compressed=False)
    expected, model = SmSVMClassifier().fit(sp.csr_array(X), y), SmSVMClassifier().fit(path, y)
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    np.testing.assert_array_equal(model.decision_function(path), expected.decision_function(sp.csr_array(X)))
    np.testing.assert_array_equal(open_files([path, path]).toarray(), np.concatenate([X, X]))
    words = rf"X.npz' holds a matrix in {name.upper()} format.* X.tocsr\(\)"
    with pytest.raises(ValueError, match=words):
        open_files([path], in_memory=False)
    monkeypatch.setattr(sources, "memory_left", lambda: 2.0 * X.nbytes)
    for call in (lambda: model.fit(path, y), lambda: model.predict(path)):
        with pytest.raises(ValueError, match=words):
            call()


@pytest.mark.parametrize("name, fault, words", [
    ("csc", {"indices": [0, 7]}, "The sparse X in CSC format is broken"), ("coo", {"row": [0, 7]}, "7"),
    ("csc", {"shape": [2.0, 2.0]}, "holds no CSC matrix: its indices and shape must be whole numbers"),
    ("csc", {"data": None}, "holds no CSC matrix: data is missing")])
def test_a_broken_matrix_of_another_sparse_format_is_refused(tmp_path, name, fault, words):
    sp.save_npz(tmp_path / "X.npz", sp.csr_array(np.eye(2)).asformat(name), compressed=False)
    arrays = {key: array for key, array in {**np.load(tmp_path / "X.npz"), **fault}.items() if array is not None}
    np.savez(tmp_path / "X.npz", **arrays)
    with pytest.raises(ValueError, match=words):
        SmSVMClassifier().fit(tmp_path / "X.npz", [0, 1])


def test_the_name_of_a_sparse_format_may_be_text(data, tmp_path):
    # SciPy writes bytes, and reads both.
    X, y = data[0][:9], data[1][:9]
    np.savez(tmp_path / "X.npz", format="csr", **csr_arrays(X))
    model = SmSVMClassifier().fit(X, y)
    np.testing.assert_array_equal(model.predict(tmp_path / "X.npz"), model.predict(X))


def test_an_archive_whose_bytes_are_damaged_is_refused_in_words(data, tmp_path):
    # zipfile raised NotImplementedError for the version in the list of contents; only the commands had words for it.
    np.savez(tmp_path / "X.npz", X=data[0])
    whole = (tmp_path / "X.npz").read_bytes()
    at = whole.index(b"PK\x01\x02")
    (tmp_path / "X.npz").write_bytes(whole[:at + 6] + b"\xff" + whole[at + 7:])
    with pytest.raises(ValueError, match=r"X\.npz is damaged: zip file version"):
        SmSVMClassifier().fit(tmp_path / "X.npz", data[1])


def test_parquet_that_is_damaged_is_refused_by_its_name(data, tmp_path):
    # pyarrow's errors of a broken list of contents name no file.
    pytest.importorskip("pyarrow")
    path = tmp_path / "X.parquet"
    for content in (b"PAR1" + bytes(20) + b"\x10\0\0\0PAR1", b"PAR1" * 9):
        path.write_bytes(content)
        with pytest.raises((ValueError, OSError), match=r"X\.parquet' cannot be read: "):
            SmSVMClassifier().fit(path, data[1])


def csr_arrays(X):
    rows = sp.csr_array(X)
    return {"data": rows.data, "indices": rows.indices, "indptr": rows.indptr, "shape": rows.shape}


def test_columns_of_the_last_fit(data, tmp_path):
    X, y = data
    model = SmSVMClassifier(l2=1e-2).fit(X[:, :8], y)
    with pytest.raises(ValueError, match="X has 9 features, but SmSVMClassifier is expecting 8 features"):
        model.predict(files_of(X, "npy C", tmp_path))


def test_nothing_warns(data, tmp_path):
    X, y = data
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SmSVMClassifier(l2=1e-2).fit(files_of(X, "npy C", tmp_path), y).predict(files_of(X, "npy F", tmp_path))


# ---------------------------------------------------------------- memory maps

def test_a_map_that_is_copied_when_written_to_is_not_read_from_its_file(data, tmp_path, monkeypatch):
    X, y = data
    X[:450].tofile(tmp_path / "rows")
    rows = np.memmap(tmp_path / "rows", np.float32, "c", shape=(450, 9))
    rows += 1
    with pytest.raises(ValueError, match="a mode other than 'c'"):
        open_files(rows, in_memory=False)
    monkeypatch.setattr(sources, "memory_left", lambda: 100.0)
    np.testing.assert_array_equal(SmSVMClassifier().fit(rows, y[:450]).coef_,
                                  SmSVMClassifier().fit(X[:450] + 1, y[:450]).coef_)


@pytest.mark.parametrize("dtype, shape, every", [(np.float32, (10, 5, 9), 1), (np.int32, (50, 9), 1),
                                                 (np.float32, (50, 9), 2)])
def test_maps_of_other_shapes_and_dtypes_are_refused_in_words(data, tmp_path, dtype, shape, every):
    data[0][:50].tofile(tmp_path / "rows")
    rows = np.memmap(tmp_path / "rows", dtype, "r", shape=shape)[::every]
    with pytest.raises(ValueError, match="A memory map must have two dimensions, float32 or float64"):
        open_files(rows, in_memory=False)
