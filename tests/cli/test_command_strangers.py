"""What a stranger gives to the commands: files that are nearly right, and notebooks."""

import bz2
import gzip
import io
import json
import lzma
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from trees import COLUMNS, NAMES, X, Y, csv_text, failed

from cmargin.__main__ import main
from cmargin.cli import progress, report_text
from cmargin.cli.model import load

FRACTIONS = "a,b,y\n1,2,0.5\n2,3,1\n3,1,2.25\n"
FIT = ("--model", "m", "--quiet")


@pytest.mark.parametrize("ending, pack", [("csv.gz", gzip.compress), ("CSV.bz2", bz2.compress),
                                          ("tsv.xz", lzma.compress)])
def test_compressed_tables(folder, reader, capsys, ending, pack):
    # .svm.gz was read, .csv.gz was of no kind
    text = csv_text().replace(",", "\t" if "tsv" in ending else ",")
    (folder / f"d.{ending}").write_bytes(pack(b"\xef\xbb\xbf" + text.encode()))
    assert main(["fit", f"d.{ending}", *FIT]) == 0
    assert load("m").columns == COLUMNS
    main(["predict", f"d.{ending}", "--model", "m"])
    first = capsys.readouterr().out
    main(["predict", "trees.csv", "--model", "m"])
    assert capsys.readouterr().out == first
    (folder / f"d.{ending}").write_bytes(pack(text.encode())[:200])
    assert "is compressed, and damaged" in failed(capsys, "fit", f"d.{ending}", *FIT)
    (folder / f"d.{ending}").write_bytes(pack(text.replace(NAMES[0], "ch\xeane").encode("latin1")))
    assert "is not UTF-8 text (byte 0xEA)" in failed(capsys, "fit", f"d.{ending}", *FIT)


@pytest.mark.parametrize("name", ["", "Unnamed: 0"])
def test_numbers_of_rows_are_no_feature(folder, reader, capsys, name):
    # as DataFrame.to_csv writes them first; of rows sorted by class they say the class
    lines = csv_text().splitlines()
    (folder / "d.csv").write_text(f"{name},{lines[0]}\n" + "".join(f"{i},{line}\n" for i, line in enumerate(lines[1:])))
    assert main(["fit", "d.csv", *FIT]) == 0
    assert "d.csv: the first column has no name" in capsys.readouterr().err
    assert load("m").columns == COLUMNS
    main(["predict", "d.csv", "--model", "m"])
    first = capsys.readouterr()
    main(["predict", "trees.csv", "--model", "m"])
    assert capsys.readouterr() == first and not first.err


@pytest.mark.parametrize("text, words", [
    (FRACTIONS, "d.csv: what is taken for labels are numbers, 0.5 among them"),
    ('a,y\n1,x\n2,"y\n3,x\n', "row 2: the label goes over several lines"),
    ("y\nx\nz\n", "d.csv has no columns of features"),
    ("a,y\n1,x\n2,x\n", "only one class: 'x'"), ("a,y\n1,3\n2,3\n", "only one class: 3"),
    ("a,y\n1e308,x\n-1e308,y\n1e308,x\n", "too large to be scaled by columns; divide them, or use --scale none")])
def test_tables_that_are_not_what_they_should_be(folder, reader, capsys, text, words):
    (folder / "d.csv").write_text(text)
    said = failed(capsys, "fit", "d.csv", *FIT)
    assert words in said and "warning" not in said and "np." not in said


@pytest.mark.parametrize("text, words", [
    ("1.5 1:2\n0.5 1:3\n", "d.svm: what is taken for labels are numbers, 1.5 among them, not classes; --method smsvm"),
    ("# rows\n1 1:2 # one\n\n2 1:x\n", "d.svm, line 4: could not convert"), ("1 1:2\n1;2 1:3\n", "d.svm, line 2: "),
    ("1 qid:1 1:2\n2 qid:1 1:2 3\n", "d.svm, line 2: ")])
def test_svmlight_text_that_is_not_what_it_should_be(folder, capsys, text, words):
    # the line was not told, and for labels that are fractions --label was advised, which is for tables
    (folder / "d.svm").write_text(text)
    said = failed(capsys, "fit", "d.svm", *FIT)
    assert words in said and "--label" not in said


def test_fractions_beside_their_labels(folder, reader):
    (folder / "d.csv").write_text(FRACTIONS)
    assert main(["fit", "d.csv", "--label", "a", *FIT]) == 0


def test_as_many_classes_as_rows_are_told(folder, capsys):
    (folder / "d.csv").write_text("a,y\n" + "".join(f"{i % 7},{i}\n" for i in range(60)))
    assert main(["fit", "d.csv", *FIT]) == 0
    assert "60 rows are of 60 classes; --label names" in capsys.readouterr().err


def test_files_that_are_nearly_right(folder, capsys):
    np.savez("nan.npz", X=np.where(X > 1, np.nan, X), y=Y)
    np.savez("none.npz", X=X[:0], y=Y[:0])
    np.savez("flat.npz", X=X[:, 0], y=Y)
    np.savez("column.npz", X=X[:, :0], y=Y)
    (folder / "text.npz").write_text("hello")
    np.savez("X.npz", X=X, y=Y)
    whole = (folder / "X.npz").read_bytes()
    at = whole.index(b"PK\x01\x02")          # its list of contents: the version that is needed
    (folder / "version.npz").write_bytes(whole[:at + 6] + b"\xff" + whole[at + 7:])
    (folder / "far.svm").write_text("1 99999999999:2\n2 1:1\n")
    (folder / "none.svm").write_text("")
    for name, words in (("nan.npz", "nan.npz, row 1: NaN or an infinite number"), ("none.npz", "none.npz has no rows"),
                        ("flat.npz", "its shape is (300,)"), ("column.npz", "has no columns of features"),
                        ("version.npz", "version.npz is damaged: zip file version"),
                        ("text.npz", "text.npz: this is no .npz archive"), ("none.svm", "none.svm has no rows"),
                        ("far.svm", "far.svm has a column of a number beyond 2**31 - 1")):
        said = failed(capsys, "fit", name, *FIT)
        assert words in said and "warning" not in said and len(said) < 200


@pytest.mark.parametrize("more, words", [
    (["--threads", "0"], "expected a number of threads, or -1, got '0'"), (["--threads", "two"], "got 'two'"),
    (["--seed", "-1"], "expected a whole number from 0 to"), (["--seed", str(2**32)], "whole number")])
def test_numbers_that_are_usage(folder, capsys, more, words):
    with pytest.raises(SystemExit) as ended:
        main(["fit", "trees.csv", *FIT, *more])
    assert ended.value.code == 2 and words in capsys.readouterr().err
    assert main(["fit", "trees.csv", *FIT, "--threads", "-1", "--seed", str(2**32 - 1)]) == 0


def test_a_column_of_a_file_that_is_no_table(folder, capsys):
    # it was not heard
    np.savez("d.npz", X=X, y=Y)
    assert "d.npz is none" in failed(capsys, "fit", "d.npz", "--label", "2", *FIT, status=2)


def test_long_labels_and_what_terminals_obey(folder, capsys):
    names = np.array(["x" * 300, "red \x1b[31m", "elm"])
    np.savez("d.npz", X=X, y=names[Y])
    main(["fit", "d.npz", *FIT])
    assert main(["evaluate", "d.npz", "--model", "m"]) == 0
    text = capsys.readouterr().out
    assert "\x1b" not in text and max(map(len, text.splitlines())) < 130
    main(["evaluate", "d.npz", "--model", "m", "--format", "json"])
    assert {one["label"] for one in json.loads(capsys.readouterr().out)["classes"]} == set(names)
    assert report_text.shown("x" * 40) == "x" * 40 and len(report_text.shown("x" * 41)) == 40


class Kernel(io.StringIO):
    """Standard error of a notebook: no terminal, but shown."""


def test_a_bar_in_a_notebook(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    monkeypatch.setattr(sys, "stderr", Kernel())
    assert main(["fit", "trees.csv", "--model", "m"]) == 0
    assert sys.stderr.getvalue() == ""                  # a pipe, or a file
    notebook = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=1))
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    assert main(["fit", "trees.csv", "--model", "m"]) == 0
    assert sys.stderr.getvalue().count("\rpass ") > 2
    assert isinstance(progress.progress(1, "pass", True), progress.Silence)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    assert isinstance(progress.progress(1, "pass", False), progress.Silence)
