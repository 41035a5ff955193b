from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from cmargin import datasets
from cmargin.datasets import BUNDLED, GENERATED, DataNotFound, available, load


@pytest.fixture(autouse=True)
def nothing_at_home(request, monkeypatch, tmp_path):
    """No folder of the developer's own, no kept downloads, and nobody to fetch from."""
    if "shared_data" in request.fixturenames:
        return
    monkeypatch.delenv("CMARGIN_DATA", raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "home"))

    def refuse(**arguments):
        raise OSError(f"no network: {arguments}")

    monkeypatch.setattr("sklearn.datasets.fetch_covtype", refuse)
    monkeypatch.setattr("sklearn.datasets.fetch_openml", refuse)


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_sets_are_coded_as_promised(name):
    data = load(name, dtype=np.float32)
    assert data.X.dtype == np.float32 and len(data.X) == len(data.y) and not data.has_split and data.note == ""
    classes = np.unique(data.y)
    assert classes.tolist() == ([-1, 1] if len(classes) == 2 else list(range(len(classes))))


def test_dense_and_sparse_files_are_read_from_the_folder(tmp_path, monkeypatch):
    rng = np.random.default_rng(4)
    X, y = rng.integers(0, 255, (12, 5)).astype(np.uint8), rng.integers(0, 3, 12)
    np.savez(tmp_path / "mine.npz", X=X, y=y)
    parts = {}
    for suffix in ("_train", "_test"):
        S = sp.random(7, 9, 0.3, "csr", random_state=5)
        parts |= {f"{name}{suffix}": getattr(S, name) for name in ("data", "indices", "indptr", "shape")}
        parts[f"y{suffix}"] = np.arange(7)
    np.savez(tmp_path / "sector.npz", **parts)
    monkeypatch.setenv("CMARGIN_DATA", str(tmp_path))
    dense, sparse = load("mine"), load("sector", dtype=np.float32)
    assert dense.X.dtype == np.uint8 and np.array_equal(dense.X, X) and np.array_equal(dense.y, y)
    assert sp.issparse(sparse.X_test) and sparse.X.dtype == np.float32 and sparse.has_split
    assert np.allclose(sparse.X.toarray(), S.toarray())
    assert available("mine") and available("sector") and not available("colon")
    assert np.array_equal(load("mine", folder=tmp_path).X, X)


@pytest.mark.parametrize("name", ["covtype", "mnist", "australian", "colon", "sector", "tinyimagenet", "no-such-set"])
def test_a_missing_set_is_answered_by_one_sentence_that_says_how_to_get_it(name):
    with pytest.raises(DataNotFound) as refused:
        load(name)
    text = str(refused.value)
    assert name in text and "CMARGIN_DATA" in text and text.endswith(".") and "\n" not in text
    assert text.count(". ") == 0
    assert ("download=True" in text) == (name in datasets.FETCHERS)
    assert not available(name)


def test_the_sentence_tells_a_missing_folder_from_a_missing_file(tmp_path):
    with pytest.raises(DataNotFound, match="names no folder"):
        load("colon")
    with pytest.raises(DataNotFound, match=r"no colon\.npz in the folder"):
        load("colon", folder=tmp_path)


def test_what_was_downloaded_once_is_found_again(monkeypatch):
    calls = []

    def openml(**arguments):
        calls.append(arguments)
        return np.arange(12.0).reshape(6, 2), np.array(list("101010"))

    monkeypatch.setattr("sklearn.datasets.fetch_openml", openml)
    with pytest.raises(DataNotFound):
        load("australian")
    assert not calls                                  # nothing is fetched unasked
    first = load("australian", download=True)
    again = load("australian")
    assert len(calls) == 1 and calls[0]["return_X_y"]
    assert np.array_equal(first.X, again.X) and again.y.tolist() == [1, -1, 1, -1, 1, -1]


def test_fetched_mnist_is_split_as_published(monkeypatch):
    monkeypatch.setattr(datasets, "MNIST_TRAIN", 4)
    monkeypatch.setattr("sklearn.datasets.fetch_openml",
                        lambda **arguments: (np.arange(12.0).reshape(6, 2), np.array(list("012012"))))
    for data in (load("mnist", download=True), load("mnist")):
        assert len(data.X) == 4 and data.y_test.tolist() == [1, 2] and data.X_test[0, 0] == 8


@pytest.mark.parametrize("name", GENERATED)
def test_generated_sets_depend_on_their_seed_alone(name):
    first, again, other = load(name), load(name), load(name, seed=1)
    assert np.array_equal(first.X, again.X) and np.array_equal(first.y, again.y)
    assert not np.array_equal(first.X, other.X)
    assert set(np.unique(first.y)) == {-1, 1}
    assert ("stand-in" in name) == ("stands in for" in first.note)


def test_synthetic_sets_are_the_papers():
    tall, wide = load("tall"), load("wide")
    assert tall.X.shape == (10_000, 50) and wide.X.shape == (100, 2500)
    for data in (tall, wide):
        assert data.y.sum() == 0                       # classes of equal size
        low, high = (data.X[data.y == c].mean(axis=0) for c in (-1, 1))
        # separable by the paper's 100 %: along the line between the centroids the rows do not overlap
        scores = data.X @ (high - low)
        assert scores[data.y == 1].min() > scores[data.y == -1].max()
        rest = data.X[data.y == 1] - high
        assert abs(rest.std() - 1) < 0.02


def test_stand_ins_have_the_published_shape_and_filling():
    protein, sido = load("protein-stand-in"), load("sido-stand-in")
    assert protein.X.shape[1] == 74 and abs((protein.X != 0).mean() - 0.99) < 0.005
    assert sido.X.shape[1] == 4932 and abs((sido.X != 0).mean() - 0.11) < 0.03 and set(np.unique(sido.X)) == {0, 1}


def test_shared_files(shared_data):
    """The benchmark folder, read by its own loader and by ours."""
    folder = Path(shared_data.__code__.co_filename).parent
    for name in ("australian", "sector"):
        theirs, ours = shared_data(name), load(name, folder=folder)
        arrays = (ours.X, ours.y, ours.X_test, ours.y_test) if ours.has_split else (ours.X, ours.y)
        assert len(arrays) == len(theirs)
        for a, b in zip(arrays, theirs, strict=True):
            assert a.shape == b.shape and a.dtype == b.dtype
            assert (a != b).sum() == 0 if sp.issparse(a) else np.array_equal(a, b)
