"""Files as people have them: under any name, of MATLAB, HDF5, AnnData, 10x, ARFF, Arrow; with texts and gaps."""

import bz2
import gzip
import json

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file
from trees import NAMES, X, Y, failed

from cmargin.__main__ import main
from cmargin.cli import kinds, options
from cmargin.cli.model import load

FIT = ("--model", "m", "--quiet")
S = sp.csr_matrix(np.where(X > np.median(X), X, 0.0))
WORDS = NAMES[Y]


def svmlight(path, pack=bytes, zero_based=False):
    dump_svmlight_file(S, Y, "rows", zero_based=zero_based)
    path.write_bytes(pack((path.parent / "rows").read_bytes()))
    return ()


def arff(path, sparse=False):
    attributes = [f"@ATTRIBUTE c{j} NUMERIC" for j in range(X.shape[1])] + ["@attribute class {ash,birch,elm}"]
    if sparse:      # what a sparse row leaves out is the first value
        rows = [", ".join([f"{j} {v!r}" for j, v in enumerate(row.tolist()) if v]
                          + ([] if word == "ash" else [f"{X.shape[1]} {word}"])) for row, word in
                zip(S.toarray(), WORDS, strict=True)]
        rows = [f"{{{row}}}" for row in rows]
    else:
        rows = [",".join([*map(repr, row), word]) for row, word in zip(X.tolist(), WORDS, strict=True)]
    path.write_text("\n".join(["% of trees", "@RELATION trees", *attributes, "@DATA", *rows, ""]))
    return ()


def feather(path, stream=False):
    import pyarrow
    from pyarrow import feather as written

    table = pyarrow.table({**{f"c{j}": X[:, j] for j in range(X.shape[1])},
                           "tree": pyarrow.array(WORDS.tolist()).dictionary_encode()})
    if stream:
        with pyarrow.OSFile(str(path), "wb") as file, pyarrow.ipc.new_stream(file, table.schema) as writer:
            writer.write_table(table)
    else:
        written.write_feather(table, str(path))
    return ()


def parquet(path):
    import pyarrow
    from pyarrow import parquet as written

    columns = [X[:, 0].astype("f"), (100 * X[:, 1]).astype("i2"), X[:, 2] > 0, X[:, 3], X[:, 4]]
    written.write_table(pyarrow.table({**{f"c{j}": c for j, c in enumerate(columns)}, "tree": WORDS}), str(path))
    return ()


def hdf5(path, where="X", more=()):
    import h5py

    with h5py.File(path, "w") as file:
        file[where], file["labels"] = X.astype("f"), WORDS.astype("S")
        for name, value in more:
            file[name] = value
    return ()


def ten_x(path):
    import h5py

    with h5py.File(path, "w") as file:
        group = file.create_group("matrix")
        by_columns = sp.csc_matrix(S.T)          # features x barcodes
        for name in ("data", "indices", "indptr"):
            group[name] = getattr(by_columns, name)
        group["shape"], group["barcodes"] = by_columns.shape, np.arange(len(Y)).astype("S")
    np.save("y.npy", Y)
    return "--labels", "y.npy"


def matlab_73(path):
    import h5py

    with h5py.File(path, "w", userblock_size=512) as file:       # arrays are turned over there
        file["fea"], file["gnd"] = X.T, Y[None].astype(float)
    content = bytearray(path.read_bytes())
    content[:128] = b"MATLAB 7.3 MAT-file".ljust(116) + bytes(8) + b"\0\2IM"
    path.write_bytes(content)
    return ()


def ten_x_folder(path):
    path.mkdir()
    scipy.io.mmwrite(path / "matrix.mtx", sp.csc_matrix(S.T))
    (path / "y.txt").write_text("\n".join(WORDS))
    return "--labels", str(path / "y.txt")


def h5ad(path):
    import anndata
    import pandas

    obs = pandas.DataFrame({"kind": pandas.Categorical(WORDS)}, index=[*map(str, range(len(Y)))])
    anndata.AnnData(S.astype("f"), obs).write_h5ad(path)
    return "--label", "kind"


def market(path):
    scipy.io.mmwrite(path, S)
    (path.parent / "y.txt").write_text("\n".join(map(str, Y)) + "\n")
    return "--labels", "y.txt"


def save_npz(path):
    sp.save_npz(path, S)
    np.save("y.npy", Y)
    return "--labels", "y.npy"


def npy(path, dtype):
    np.save(path, (10 * X + 100).astype(dtype))
    np.save("y.npy", Y)
    return "--labels", "y.npy"


FILES = [
    ("a9a", svmlight, {}, []), ("a9a.t", svmlight, {}, []),
    ("train.binary.bz2", svmlight, {"pack": bz2.compress}, []), ("rows.gz", svmlight, {"pack": gzip.compress}, []),
    ("d.arff", arff, {}, ["arff"]), ("d.data", arff, {}, ["arff"]), ("s.arff", arff, {"sparse": True}, ["arff"]),
    ("d.feather", feather, {}, ["pyarrow"]), ("d.arrow", feather, {"stream": True}, ["pyarrow"]),
    ("d.parquet", parquet, {}, ["pyarrow"]), ("part-0", parquet, {}, ["pyarrow"]),
    ("d.mat", lambda path: scipy.io.savemat(path, {"X": S, "y": Y}) or (), {}, []),
    ("v73.mat", matlab_73, {}, ["h5py"]), ("d.h5", hdf5, {}, ["h5py"]),
    ("deep.h5", hdf5, {"where": "train/X"}, ["h5py"]), ("cells.h5", ten_x, {}, ["h5py"]),
    ("cells", ten_x_folder, {}, []), ("d.h5ad", h5ad, {}, ["anndata"]), ("d.mtx", market, {}, []),
    ("d.npz", save_npz, {}, []), ("u.npy", npy, {"dtype": np.uint8}, []), ("h.npy", npy, {"dtype": np.float16}, []),
]


@pytest.mark.parametrize("name, write, how, needs", FILES, ids=[file[0] for file in FILES])
def test_a_file_is_trained_from_and_predicted(folder, capsys, name, write, how, needs):
    for module in needs:
        pytest.importorskip(module)
    more = write(folder / name, **how)
    assert main(["fit", name, *more, *FIT]) == 0
    model = load("m")
    assert model.n_features == X.shape[1] and len(model.classifier.classes_) == 3
    assert main(["evaluate", name, *more, "--model", "m", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] > 0.8
    assert main(["predict", name, *more, "--model", "m"]) == 0
    lines = capsys.readouterr().out.split()
    assert len(lines) == len(Y)
    words = set(WORDS) if set(lines) <= set(WORDS) else set(map(str, range(3)))
    assert set(lines) == words


def test_every_format_has_a_name():
    assert set(options.FORMATS) == set(kinds.ENDINGS.values())


def test_columns_from_0_are_told(folder, capsys):
    svmlight(folder / "a9a", zero_based=True)
    assert "--zero-based" in failed(capsys, "fit", "a9a", *FIT)
    assert main(["fit", "a9a", "--zero-based", *FIT]) == 0 and load("m").n_features == X.shape[1]


def test_a_format_can_be_forced(folder, capsys):
    svmlight(folder / "rows.csv")
    assert "rows.csv" in failed(capsys, "fit", "rows.csv", *FIT)
    assert main(["fit", "rows.csv", "--format", "svmlight", *FIT]) == 0
    assert main(["evaluate", "rows.csv", "--data-format", "svmlight", "--model", "m"]) == 0


def test_of_several_arrays_one_must_be_named(folder, capsys):
    pytest.importorskip("h5py")
    hdf5(folder / "d.h5", where="a", more=[("b", X[:, :3]), ("codes", Y)])
    assert "d.h5: the features can be a, b; --features-key says which" in failed(capsys, "fit", "d.h5", *FIT)
    for argv in (["d.h5", "--features-key", "/b"], ["d.h5:/b"]):
        assert main(["fit", *argv, "--labels-key", "codes", *FIT]) == 0
        assert load("m").n_features == 3 and load("m").classifier.classes_.tolist() == [0, 1, 2]
    assert "has no features 'c'; what they can be is a, b" in failed(capsys, "fit", "d.h5:/c", *FIT)
    scipy.io.savemat("d.mat", {"words": "none"})
    assert "d.mat holds no matrix of numbers; it holds words" in failed(capsys, "fit", "d.mat", *FIT)


def test_files_cut_short_are_refused_by_name(folder, capsys):
    scipy.io.savemat("d.mat", {"X": X, "y": Y})
    scipy.io.mmwrite("d.mtx", S)
    names = ["d.mat", "d.mtx"]
    for module, write, name in (("h5py", hdf5, "d.h5"), ("pyarrow", feather, "d.feather"), ("arff", arff, "d.arff")):
        if pytest.importorskip(module):
            write(folder / name)
            names.append(name)
    for name in names:
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[:len(content) // 2 + 3])
        assert name in failed(capsys, "fit", name, *FIT)


def test_a_missing_library_is_named(folder, capsys, monkeypatch):
    for module, name in (("arff", "d.arff"), ("h5py", "d.h5"), ("anndata", "d.h5ad")):
        monkeypatch.setitem(__import__("sys").modules, module, None)
        (folder / name).write_text("x")
        wanted = {"arff": "liac-arff"}.get(module, module)
        assert f"pip install {wanted}" in failed(capsys, "fit", name, *FIT)


MIXED = "age,colour,size,tree\n" + "".join(
    f"{'' if i % 7 == 0 else i % 5},{'red' if i % 2 else 'blue'},{i % 3 + 0.5},{'elm' if i % 2 else 'ash'}\n"
    for i in range(60))


def test_texts_and_gaps_are_made_numbers_and_stored(folder, capsys):
    (folder / "d.csv").write_text(MIXED)
    said = failed(capsys, "fit", "d.csv", *FIT)
    assert "'red'" in said or "'blue'" in said
    assert "--encode onehot" in said
    said = failed(capsys, "fit", "d.csv", "--encode", "onehot", *FIT)
    assert "15 % of this column); fill them (--impute mean)" in said
    assert main(["fit", "d.csv", "--encode", "onehot", "--impute", "median", *FIT]) == 0
    model = load("m")
    assert model.columns == ["age", "colour", "size"] and model.n_features == 4
    assert model.encoder.imputer.statistics_.tolist() == [2.0, 1.5]
    (folder / "new.csv").write_text("tree,size,colour,age\nelm,1.5,red,\nash,0.5,green,3\n")      # green is new
    assert main(["predict", "new.csv", "--model", "m"]) == 0
    assert capsys.readouterr().out.split()[0] == "elm"
    (folder / "bad.csv").write_text("age,colour,size\n1,red,tall\n")
    said = failed(capsys, "predict", "bad.csv", "--model", "m")
    assert "column 'size' holds 'tall'; in training it held numbers" in said
    (folder / "less.csv").write_text("age,size,tree\n1,2,elm\n")
    assert "has no column 'colour'" in failed(capsys, "predict", "less.csv", "--model", "m")


@pytest.mark.parametrize("header", [True, False], ids=["names", "numbers"])
def test_columns_that_are_kept_or_dropped(folder, capsys, header):
    text = MIXED if header else MIXED.partition("\n")[2]
    (folder / "d.csv").write_text(text)
    assert main(["fit", "d.csv", "--drop", "colour,age" if header else "0,1", *FIT]) == 0
    dropped = load("m")
    assert main(["fit", "d.csv", "--keep", "size" if header else "2", *FIT]) == 0
    kept = load("m")
    assert dropped.columns == kept.columns == (["size"] if header else ["2"]) and kept.n_features == 1
    np.testing.assert_array_equal(dropped.classifier.coef_, kept.classifier.coef_)
    assert main(["predict", "d.csv", "--model", "m"]) == 0
    assert len(capsys.readouterr().out.split()) == 60
    assert "has no column 'height', which --drop names" in failed(capsys, "fit", "d.csv", "--drop", "height", *FIT)


def test_columns_of_what_is_no_table_cannot_be_chosen(folder, capsys):
    svmlight(folder / "a9a")
    assert "--drop is for columns of tables" in failed(capsys, "fit", "a9a", "--drop", "3", *FIT, status=2)


def test_encoded_columns_of_parquet(folder, capsys):
    arrow, written = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {"flag": [True, None] * 20, "colour": ["red", "blue"] * 20, "n": [*range(40)],
               "tree": arrow.array(["elm", "ash"] * 20).dictionary_encode()}
    written.write_table(arrow.table(columns), "d.parquet")
    assert main(["fit", "d.parquet", "--encode", "onehot", "--impute", "mean", *FIT]) == 0
    assert load("m").n_features == 4
    assert main(["evaluate", "d.parquet", "--model", "m", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] == 1.0
