"""Files that hold rows and labels, given to `fit` by their path and the name of the labels; numbers of other types."""

import numpy as np
import pytest
import scipy.sparse as sp

from cmargin import SLNDClassifierCV, SmSVMClassifier, SmSVMRegressor
from cmargin.data.files import open_files

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 4)).round(3)
NAMES = np.array(["elm", "ash"])[(X[:, 0] + X[:, 1] > 0).astype(int)]


@pytest.fixture
def parquet(tmp_path):
    """A table of columns of several types, in two row groups."""
    arrow, written = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {"a": X[:, 0], "b": X[:, 1].astype("f"), "n": (10 * X[:, 2]).astype("i2"), "tree": NAMES,
               "flag": X[:, 3] > 0}
    written.write_table(arrow.table(columns), tmp_path / "trees.parquet", row_group_size=70)
    rows = np.column_stack([value for name, value in columns.items() if name != "tree"]).astype(float)
    return str(tmp_path / "trees.parquet"), rows


@pytest.mark.parametrize("in_memory", [True, False])
def test_a_column_of_parquet_has_the_labels(parquet, in_memory):
    path, rows = parquet
    found, labels = open_files(path, in_memory, label="tree")
    np.testing.assert_array_equal(found[0:120], rows)
    assert labels.tolist() == NAMES.tolist()
    model, same = SmSVMClassifier().fit(path, "tree"), SmSVMClassifier().fit(found, labels)
    np.testing.assert_allclose(model.coef_, same.coef_, rtol=1e-9)
    assert model.classes_.tolist() == ["ash", "elm"] and model.score(path, "tree") == same.score(rows, NAMES) > 0.9
    shards = SmSVMClassifier().fit([path, path], "tree")
    assert shards.score(rows, NAMES) > 0.9


@pytest.mark.parametrize("sparse", [False, True])
def test_an_array_of_npz_has_the_labels(tmp_path, sparse):
    path, rows = str(tmp_path / "d.npz"), sp.csr_matrix(X)
    parts = {"data": rows.data, "indices": rows.indices, "indptr": rows.indptr, "shape": rows.shape}
    np.savez(path, y=X[:, 0], kind=NAMES, **(parts if sparse else {"X": X}))
    given = sp.csr_matrix(X) if sparse else X
    np.testing.assert_array_equal(SmSVMClassifier().fit(path, "kind").coef_, SmSVMClassifier().fit(given, NAMES).coef_)
    assert SmSVMRegressor().fit(path, "y").score(X, X[:, 0]) > 0.9
    assert SLNDClassifierCV(l2s=2, cv=2).fit(path, "kind").score(path, "kind") > 0.9


def test_what_has_no_such_labels_is_refused(parquet, tmp_path):
    path, _ = parquet
    np.save(tmp_path / "X.npy", X)
    np.savez(tmp_path / "d.npz", X=X, y=NAMES)
    for given, name, words in (
            (path, "leaf", "has no column 'leaf'; it has a, b, n, tree, flag"), (path, None, "requires y"),
            (path, "a", "column 'tree', holds string, not numbers; where it has the labels, fit\\(path, 'tree'\\)"),
            (tmp_path / "d.npz", "z", "has no labels 'z'; it holds X, y"),
            (tmp_path / "X.npy", "z", "has no labels 'z'; such a name"),
            (tmp_path / "d.npz", NAMES, r"it holds 2 arrays; fit\(path, \"y\"\) takes y for the labels")):
        with pytest.raises(ValueError, match=words):
            SmSVMClassifier().fit(given if name is not None else X, name)


@pytest.mark.parametrize("kind, becomes", [("u1", "f4"), ("i2", "f4"), ("f2", "f4"), ("?", "f4"), ("i4", "f8"),
                                           ("i8", "f8")])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("in_memory", [True, False])
def test_other_numbers_become_floats_that_hold_them(tmp_path, kind, becomes, order, in_memory):
    whole = np.asarray(np.abs(10 * X).astype(kind), order=order)
    np.save(tmp_path / "X.npy", whole)
    found = open_files(tmp_path / "X.npy", in_memory)
    assert found.dtype == np.dtype(becomes)
    np.testing.assert_array_equal(found[30:70], whole[30:70].astype(becomes))
    np.testing.assert_allclose(SmSVMClassifier().fit(found, NAMES).coef_,
                               SmSVMClassifier().fit(whole.astype(becomes), NAMES).coef_, rtol=1e-3, atol=1e-6)
