"""Tables that are not what they seem: names twice, indices of rows, commas of two kinds; and where results go."""

import os
import threading
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from trees import asked

from cmargin import SmSVMClassifier
from cmargin._runtime.output import check_writable, output_file
from cmargin.cli import data
from cmargin.cli.columns import NO_LABEL
from cmargin.cli.convert import convert
from cmargin.cli.labels import labels_from
from cmargin.cli.tables import read_csv, read_parquet
from cmargin.data.files import formats, open_files
from cmargin.data.files.formats import open_one


def written(path, text):
    path.write_text(text)
    return str(path)


def test_names_that_two_columns_have_are_refused(tmp_path):
    path = written(tmp_path / "a.csv", "height,age,height,kind\n1,2,3,0\n4,5,6,1\n")
    with pytest.raises(ValueError, match="more than one column 'height'"):
        read_csv(path, options=asked(header="auto"), label=None)


def test_commas_in_numbers_beside_semicolons_are_refused(tmp_path):
    with pytest.raises(ValueError, match="commas and semicolons in its first line"):
        read_csv(written(tmp_path / "a.csv", "1,5;2,5;0\n2,5;1,0;1\n"), options=asked(header="no"), label=None)
    path = written(tmp_path / "b.csv", '"height, m";kind\n1.5;0\n2.5;1\n')
    table = read_csv(path, options=asked(), label=None)
    assert table.columns == ["height, m"] and table.X.tolist() == [[1.5], [2.5]] and table.y.tolist() == [0, 1]


@pytest.mark.parametrize("name", [None, "person"])
def test_the_index_of_a_frame_is_no_feature(tmp_path, name):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    X = np.random.default_rng(0).standard_normal((6, 3))
    frame = pandas.DataFrame(X, columns=list("abc"), index=pandas.Index([5.0, 3.0, 9.0, 1.0, 0.0, 2.0], name=name))
    frame.to_parquet(tmp_path / "X.parquet")
    np.testing.assert_array_equal(open_files(tmp_path / "X.parquet"), X)
    table = read_parquet(str(tmp_path / "X.parquet"), options=asked(), label=NO_LABEL)
    assert table.columns == ["a", "b", "c"]
    frame.assign(kind=[0, 1, 0, 1, 0, 1]).to_parquet(tmp_path / "d.parquet")
    table = read_parquet(str(tmp_path / "d.parquet"), options=asked(), label=None)
    assert table.label == "kind" and table.y.tolist() == [0, 1, 0, 1, 0, 1]
    np.testing.assert_array_equal(table.X, X)


def files_with_a_hole(folder, labels):
    """Paths of three rows in every kind of file that may hold such labels, the second of which is missing."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    first, _, last = labels
    parquet.write_table(arrow.table({"size": [1.0, 2.0, 3.0], "kind": [first, None, last]}), folder / "d.parquet")
    are_numbers = type(first) is int
    for hole in ("", " ", *(("nan", "NA") if are_numbers else ())):
        written(folder / f"{hole.strip() or len(hole)}.csv", f"size,kind\n1,{first}\n2,{hole}\n3,{last}\n")
    if are_numbers:
        written(folder / "d.svm", f"{first} 1:1\nnan 1:2\n{last} 1:3\n")
        np.savez(folder / "d.npz", X=[[1.0], [2.0], [3.0]], y=[first, np.nan, last])
    return sorted(folder.iterdir())


@pytest.mark.parametrize("labels", [["no", "no", "yes"], [0, 0, 1], [False, False, True]], ids=str)
def test_a_missing_label_is_refused_by_its_row_in_every_file(tmp_path, labels):
    # A null of Parquet was a class, 'None', and NaN among the numbers of a CSV file made classes of texts, 'nan' too.
    options = asked(zero_based="auto")
    paths = files_with_a_hole(tmp_path, labels)
    assert len(paths) == (7 if type(labels[0]) is int else 3)
    for path in paths:
        with pytest.raises(ValueError, match=rf"{path.name}, row 2: the label is empty \(1 such rows\); leave"):
            data.read_labelled(str(path), options)
        table = data.read(str(path), options)                   # `predict` has no use for labels
        assert table.X.shape == (3, 1) and len(table.y) == 3


def test_a_missing_label_in_a_file_of_its_own(tmp_path):
    np.save(tmp_path / "X.npy", np.eye(3))
    np.save(tmp_path / "y.npy", np.array([0.0, np.nan, 1.0]))
    options = asked(labels=str(tmp_path / "y.npy"))
    with pytest.raises(ValueError, match="row 2: the label is empty"):
        data.read_labelled(str(tmp_path / "X.npy"), options)
    with pytest.raises(ValueError, match=r"Input y contains NaN: y\[1\] is missing"):
        SmSVMClassifier().fit(tmp_path / "X.npy", tmp_path / "y.npy")


@pytest.mark.parametrize("texts, labels", [
    (["9007199254740992", "9007199254740993"], [2**53, 2**53 + 1]), (["+7", "-7.0"], [7, -7]),
    (["9223372036854775807", "0"], [2**63 - 1, 0]), (["9223372036854775808", "0"], ["9223372036854775808", "0"]),
    (["1.0e+00", "2.5e+00"], ["1.0e+00", "2.5e+00"]), (["1.", "nan"], ["1.", ""]), (["x", "nan"], ["x", "nan"])],
    ids=str)
def test_whole_numbers_of_text_are_read_to_the_last_digit(texts, labels):
    # 2^53 + 1 was read as 2^53, by way of a float
    assert labels_from(texts).tolist() == labels


def test_labels_of_svmlight_text_that_floats_merge_are_refused(tmp_path):
    path = written(tmp_path / "d.svm", f"{2**53} 1:1\n{2**53 + 1} 1:2\n")
    for call in (lambda: data.read(path, asked(zero_based="auto")),
                 lambda: convert(path, tmp_path / "folder")):
        with pytest.raises(ValueError, match=r"labels of 2\*\*53 and more, .* number the classes from 0 on"):
            call()


@pytest.mark.parametrize("kind", ["list", "fixed"])
def test_columns_of_lists_in_parquet_are_named(tmp_path, kind):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    made = arrow.list_(arrow.float64(), *([2] if kind == "fixed" else []))
    path = str(tmp_path / "d.parquet")
    parquet.write_table(arrow.table({"embedding": arrow.array([[1.0, 2.0], [3.0, 4.0]], made), "kind": [0, 1]}), path)
    for call in (lambda: open_files(path), lambda: read_parquet(path, options=asked(), label=None)):
        with pytest.raises(ValueError, match=r"d.parquet', column 'embedding', holds lists .* np.array\(column"):
            call()


@pytest.mark.parametrize("name", ["csr", "csc", "bsr", "coo", "dia"])
def test_the_commands_read_every_sparse_format_that_npz_may_hold(tmp_path, name):
    # a square CSC matrix was read as its transpose
    X = np.random.default_rng(3).standard_normal((6, 6)) * (np.arange(6) < 3)
    path = str(tmp_path / "X.npz")
    sp.save_npz(path, sp.csr_array(X).asformat(name))
    options = asked()
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
    check_writable(str(link))
    with output_file(str(link), "w") as file:
        file.write("new")
    assert link.is_symlink() and target.read_text() == "new" and os.listdir(tmp_path).count("target.part") == 0
    if not hasattr(os, "mkfifo"):
        return
    os.mkfifo(pipe)
    received = []
    reader = threading.Thread(target=lambda: received.append(Path(pipe).read_text()), daemon=True)
    reader.start()
    check_writable(pipe)
    with output_file(pipe, "w") as file:
        file.write("through")
    reader.join(30)
    assert received == ["through"] and not os.path.isfile(pipe)
