"""Files that are damaged, or nearly what they should be: one sentence, never the end of the process."""

import contextlib
import gzip
import io

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from trees import NAMES, X, Y, failed

from cmargin.__main__ import main
from cmargin.cli.model import load
from cmargin.data.files import matrices

FIT = ("--model", "m", "--quiet")
N = len(Y)
WORDS = NAMES[Y]


def matlab_73(path, **arrays):
    """A file of MATLAB 7.3, whose arrays are turned over."""
    import h5py

    with h5py.File(path, "w", userblock_size=512) as file:
        for name, value in arrays.items():
            file[name] = value
    content = bytearray(path.read_bytes())
    content[:128] = b"MATLAB 7.3 MAT-file".ljust(116) + bytes(8) + b"\0\2IM"
    path.write_bytes(content)


def test_sparse_indices_that_point_elsewhere(folder, capsys):
    # the conversion to CSR followed them, and ended the process
    h5py = pytest.importorskip("h5py")
    matlab_73(folder / "d.mat", y=Y[None].astype(float))
    S = sp.csc_matrix(X)
    with h5py.File(folder / "d.mat", "a") as file:
        group = file.create_group("X")
        group["data"], group["ir"], group["jc"] = S.data, S.indices + 10**9, S.indptr
        group.attrs["MATLAB_sparse"] = N
    assert "d.mat: The sparse X in CSC format is broken" in failed(capsys, "fit", "d.mat", *FIT)


def test_matrix_market_that_cannot_be_read_to_its_end(folder, capsys):
    # SciPy's parser ends the process where a seek of its last moments raises
    np.save("y.npy", Y)
    (folder / "d.mtx").write_text("%%MatrixMarket matrix coordinate real general\n3 4 999999999999\n1 1 1\n")
    assert "d.mtx cannot be read as Matrix Market" in failed(capsys, "fit", "d.mtx", "--labels", "y.npy", *FIT)
    scipy.io.mmwrite("e.mtx", sp.csr_matrix(X))
    packed = gzip.compress((folder / "e.mtx").read_bytes())
    for seed in range(20):
        content, rng = bytearray(packed), np.random.default_rng(seed)
        for place in rng.integers(len(content), size=3):
            content[place] = rng.integers(256)
        (folder / "e.mtx.gz").write_bytes(content)
        main(["fit", "e.mtx.gz", "--labels", "y.npy", *FIT])
        assert "shows where" not in capsys.readouterr().err


def test_arrow_whose_offsets_point_elsewhere(folder, capsys):
    # texts were read from wherever they pointed
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import feather

    feather.write_feather(arrow.table({"a": [1.0, 2.0], "tree": ["x" * 1000, "y" * 777]}), "d.arrow", "uncompressed")
    ends, others = (np.array([0, *ends], np.int32).tobytes() for ends in ((1000, 1777), (1 << 28, 1 << 29)))
    content = (folder / "d.arrow").read_bytes()
    assert content.count(ends) == 1
    (folder / "d.arrow").write_bytes(content.replace(ends, others))
    assert "d.arrow is damaged" in failed(capsys, "fit", "d.arrow", *FIT)
    feather.write_feather(arrow.table({}), "none.feather")
    assert "none.feather has no columns" in failed(capsys, "fit", "none.feather", *FIT)
    (folder / "old").write_bytes(b"FEA1" + bytes(40))
    assert "Feather of version 1" in failed(capsys, "fit", "old", *FIT)


def test_arff_that_is_none(folder, capsys):
    pytest.importorskip("arff")
    head = "@relation r\n@attribute a numeric\n"
    for text in (head, head + "@attribute class {}\n@data\n1,a\n", head + "@attribute b numeric\n@data\n{0 1, 1 2\n",
                 "\0"):
        (folder / "d.arff").write_text(text)
        assert "d.arff cannot be read as ARFF" in failed(capsys, "fit", "d.arff", *FIT)


def test_tables_of_text_that_cannot_be_filled(folder, capsys):
    rows = "".join(f"{i},{i % 3},{'elm' if i % 2 else 'ash'}\n" for i in range(20))
    how = ("--encode", "onehot", "--impute", "mean")
    (folder / "d.csv").write_text("a,b,tree\n" + rows + "1,inf,elm\n")
    assert "d.csv, row 21, column 'b': infinite" in failed(capsys, "fit", "d.csv", *how, *FIT)
    (folder / "d.csv").write_text("a,b,tree\n" + rows + f"1,{'9' * 200_000},elm\n")
    assert "d.csv cannot be read as a table of text" in failed(capsys, "fit", "d.csv", *how, *FIT)
    (folder / "d.csv").write_text("a,b,tree\n" + rows)
    assert main(["fit", "d.csv", *how, *FIT]) == 0
    (folder / "d.csv").write_text("a,b,tree\n")
    assert "d.csv has no rows" in failed(capsys, "predict", "d.csv", "--model", "m")


# ---------------------------------------------------------------- what is right, and was not read so

def test_texts_in_cells_of_matlab(folder):
    cells = np.empty((N, 1), object)
    cells[:, 0] = WORDS
    scipy.io.savemat("d.mat", {"X": X, "y": cells})
    assert main(["fit", "d.mat", *FIT]) == 0
    assert load("m").classifier.classes_.tolist() == sorted(set(WORDS.tolist()))


@pytest.mark.parametrize("kind", ["cell", "char"])
def test_texts_of_matlab_73(folder, kind):
    h5py = pytest.importorskip("h5py")
    matlab_73(folder / "d.mat", X=X.T)
    with h5py.File(folder / "d.mat", "a") as file:
        if kind == "cell":
            places = []
            for number, word in enumerate(WORDS.tolist()):
                file[f"#refs#/c{number}"] = np.array([*map(ord, word)], np.uint16)[:, None]
                places.append(file[f"#refs#/c{number}"].ref)
            file.create_dataset("y", (1, N), h5py.ref_dtype)[0] = places
        else:
            file["y"] = np.array([[*map(ord, word.ljust(5))] for word in WORDS.tolist()], np.uint16).T
        file["y"].attrs["MATLAB_class"] = np.bytes_(kind)
    assert main(["fit", "d.mat", *FIT]) == 0
    assert load("m").classifier.classes_.tolist() == sorted(set(WORDS.tolist()))


def test_nulls_decimals_and_numbers_of_a_dictionary_are_numbers(folder, capsys):
    arrow = pytest.importorskip("pyarrow")
    from decimal import Decimal

    from pyarrow import feather

    table = {"a": X[:, 0], "none": arrow.nulls(N), "price": [Decimal("1.5"), None] * (N // 2),
             "few": arrow.array([1, 2] * (N // 2)).dictionary_encode(), "tree": WORDS.tolist()}
    feather.write_feather(arrow.table(table), "d.feather")
    assert "column 'none': empty" in failed(capsys, "fit", "d.feather", *FIT)
    assert main(["fit", "d.feather", "--impute", "mean", *FIT]) == 0
    assert load("m").n_features == 4


def test_genes_in_another_order_are_known_by_their_names(folder, capsys):
    # they were taken by their places
    anndata, pandas = pytest.importorskip("anndata"), pytest.importorskip("pandas")
    obs = pandas.DataFrame({"kind": WORDS}, index=[*map(str, range(N))])
    data = anndata.AnnData(X, obs, pandas.DataFrame(index=[f"g{j}" for j in range(X.shape[1])]))
    data.write_h5ad("d.h5ad")
    data[:, ::-1].copy().write_h5ad("turned.h5ad")
    data[:, :2].copy().write_h5ad("less.h5ad")
    assert main(["fit", "d.h5ad", "--label", "kind", *FIT]) == 0
    said = []
    for name in ("d.h5ad", "turned.h5ad"):
        assert main(["predict", name, "--model", "m"]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]
    assert "less.h5ad has no column 'g2'" in failed(capsys, "predict", "less.h5ad", "--model", "m")


def test_an_interrupt_at_the_end_of_matrix_market_is_one(tmp_path, monkeypatch):
    # the matrix was whole by then, and Ctrl-C was lost
    class Interrupted(io.BytesIO):
        def read(self, n=-1):
            found = super().read(n)
            if not found:
                raise KeyboardInterrupt
            return found

    text = b"%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n2 2 2\n"
    monkeypatch.setattr(matrices, "opened_text", lambda path: contextlib.nullcontext(Interrupted(text)))
    with pytest.raises(KeyboardInterrupt):
        matrices.read_mtx("d.mtx", None)
