"""Tables that are not what they seem: names twice, indices of rows, commas of two kinds; and where results go."""

import os
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from cmargin.command import data
from cmargin.command.tables import NO_LABEL, read_csv, read_parquet
from cmargin.command.whole import whole_file, writable
from cmargin.homes.files import formats, open_files
from cmargin.homes.files.formats import open_one


def written(path, text):
    path.write_text(text)
    return str(path)


def test_names_that_two_columns_have_are_refused(tmp_path):
    path = written(tmp_path / "a.csv", "height,age,height,kind\n1,2,3,0\n4,5,6,1\n")
    with pytest.raises(ValueError, match="more than one column 'height'"):
        read_csv(path, header="auto", label=None)


def test_commas_in_numbers_beside_semicolons_are_refused(tmp_path):
    with pytest.raises(ValueError, match="commas and semicolons in its first line"):
        read_csv(written(tmp_path / "a.csv", "1,5;2,5;0\n2,5;1,0;1\n"), header="no", label=None)
    table = read_csv(written(tmp_path / "b.csv", '"height, m";kind\n1.5;0\n2.5;1\n'), header="auto", label=None)
    assert table.columns == ["height, m"] and table.X.tolist() == [[1.5], [2.5]] and table.y.tolist() == [0, 1]


@pytest.mark.parametrize("name", [None, "person"])
def test_the_index_of_a_frame_is_no_feature(tmp_path, name):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    X = np.random.default_rng(0).standard_normal((6, 3))
    frame = pandas.DataFrame(X, columns=list("abc"), index=pandas.Index([5.0, 3.0, 9.0, 1.0, 0.0, 2.0], name=name))
    frame.to_parquet(tmp_path / "X.parquet")
    np.testing.assert_array_equal(open_files(tmp_path / "X.parquet"), X)
    table = read_parquet(str(tmp_path / "X.parquet"), label=NO_LABEL)
    assert table.columns == ["a", "b", "c"]
    frame.assign(kind=[0, 1, 0, 1, 0, 1]).to_parquet(tmp_path / "d.parquet")
    table = read_parquet(str(tmp_path / "d.parquet"), label=None)
    assert table.label == "kind" and table.y.tolist() == [0, 1, 0, 1, 0, 1]
    np.testing.assert_array_equal(table.X, X)


@pytest.mark.parametrize("name", ["csr", "csc", "bsr", "coo", "dia"])
def test_the_commands_read_every_sparse_format_that_npz_may_hold(tmp_path, name):
    # a square CSC matrix was read as its transpose
    X = np.random.default_rng(3).standard_normal((6, 6)) * (np.arange(6) < 3)
    path = str(tmp_path / "X.npz")
    sp.save_npz(path, sp.csr_array(X).asformat(name))
    options = SimpleNamespace(label=None, labels=None)
    np.testing.assert_array_equal(data.read(path, options).X.toarray(), X)


@pytest.mark.parametrize("piece", [1, 2, 3, 7, 1 << 20])
def test_chunks_of_csr_rows_do_not_depend_on_how_pointers_are_read(tmp_path, monkeypatch, piece):
    monkeypatch.setattr(formats, "PIECE", piece)
    lengths = np.random.default_rng(1).integers(0, 5, 100)
    lengths[40] = 30                                                     # more than a chunk
    indptr, size = np.concatenate([[0], np.cumsum(lengths)]), 10 * (8 + 4)
    for name, array in (("data", np.ones(indptr[-1])), ("indices", np.zeros(indptr[-1], np.int32)),
                        ("indptr", indptr), ("shape", np.array([100, 3]))):
        np.save(tmp_path / f"{name}.npy", array)
    expected = [0]
    for row in range(1, 101):
        if indptr[row] - indptr[expected[-1]] > 10:
            expected.append(max(row - 1, expected[-1] + 1))
    assert open_one(str(tmp_path)).edges(size) == [*expected, *([100] if expected[-1] < 100 else [])]


def test_a_link_stays_a_link_and_a_pipe_a_pipe(tmp_path):
    target, link, pipe = tmp_path / "target", tmp_path / "link", str(tmp_path / "pipe")
    target.write_text("old")
    link.symlink_to(target)
    writable(str(link))
    with whole_file(str(link), "w") as file:
        file.write("new")
    assert link.is_symlink() and target.read_text() == "new" and os.listdir(tmp_path).count("target.part") == 0
    if not hasattr(os, "mkfifo"):
        return
    os.mkfifo(pipe)
    told = []
    reader = threading.Thread(target=lambda: told.append(Path(pipe).read_text()), daemon=True)
    reader.start()
    writable(pipe)
    with whole_file(pipe, "w") as file:
        file.write("through")
    reader.join(30)
    assert told == ["through"] and not os.path.isfile(pipe)
