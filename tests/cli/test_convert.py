"""svmlight text made into files that rows are trained from."""

import bz2
import errno
import gzip
import lzma
import os
import re
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import blobs
from sklearn.datasets import dump_svmlight_file

from cmargin import SmSVMClassifier
from cmargin.__main__ import main
from cmargin.cli.convert import convert
from cmargin.data.files import open_files, svmlight
from cmargin.data.files.text import opened_text


@pytest.fixture
def text(tmp_path):
    """X, y and the path of their text."""
    X, y = blobs(n=500, d=8, k=3)
    X = np.where(np.abs(X) > 0.8, X, 0.0).astype(np.float32)
    X[7] = 0                                                             # a line with nothing but a label
    dump_svmlight_file(X, y, str(tmp_path / "X.txt"), zero_based=False)
    return X, y, tmp_path / "X.txt"


@pytest.mark.parametrize("size", [1, 700, 1 << 24])
def test_text_comes_back_as_rows(text, tmp_path, monkeypatch, size):
    X, y, path = text
    monkeypatch.setattr(svmlight, "PIECE", size)
    shape, entries = convert(str(path), tmp_path / "X")
    assert shape == X.shape and entries == np.count_nonzero(X)
    files = open_files(tmp_path / "X", in_memory=False)
    np.testing.assert_allclose(files[:].toarray(), X, rtol=1e-6)
    labels = np.load(tmp_path / "X" / "labels.npy")
    np.testing.assert_array_equal(labels, y)
    assert labels.dtype == np.int64 and files.dtype == np.float32
    model = SmSVMClassifier(l2=1e-2).fit(tmp_path / "X", str(tmp_path / "X" / "labels.npy"))
    assert model.objective_ == pytest.approx(SmSVMClassifier(l2=1e-2).fit(sp.csr_matrix(X), y).objective_, rel=2e-4)
    assert not list((tmp_path / "X").glob("*.part"))


def test_the_command(text, tmp_path, capsys):
    X, _, path = text
    folder = str(tmp_path / "out")
    assert main(["convert", str(path), folder, "--dtype", "float64", "--features", "20"]) == 0
    assert "500 x 20" in capsys.readouterr().out
    files = open_files(folder, in_memory=False)
    assert files.shape == (500, 20) and files.dtype == np.float64
    np.testing.assert_allclose(files[:].toarray()[:, :8], X, rtol=1e-6)


def test_columns_from_zero_and_labels_that_are_no_whole_numbers(tmp_path):
    (tmp_path / "X.txt").write_text("0.5 0:1 2:3\n# a line of words\n-1 1:2 # words\n")
    shape, entries = convert(str(tmp_path / "X.txt"), tmp_path / "X", zero_based=True)
    assert shape == (2, 3) and entries == 3
    np.testing.assert_array_equal(open_files(tmp_path / "X")[:].toarray(), [[1, 0, 3], [0, 2, 0]])
    np.testing.assert_array_equal(np.load(tmp_path / "X" / "labels.npy"), [0.5, -1])


@pytest.mark.parametrize("written, options, words", [
    ("1 0:1\n", [], "has columns 0 to 0 from line 1 on; the first is 1"),
    ("1 3:1\n", ["--features", "2"], "has columns 3 to 3 from line 1 on; the first is 1 .* and there are 2"),
    ("1 1:1\nnothing\n", [], "somewhere from line 1 on"),
    (f"1 {10**30}:1\n", [], "somewhere from line 1 on: Python int too large"),
    ("", [], "holds no rows"),
    (None, [], "No such file"),
], ids=["zero", "features", "words", "beyond 64 bits", "empty", "missing"])
def test_text_that_is_refused(tmp_path, capsys, written, options, words):
    if written is not None:
        (tmp_path / "X.txt").write_text(written)
    assert main(["convert", str(tmp_path / "X.txt"), str(tmp_path / "X"), *options]) == 1
    assert re.search(words, capsys.readouterr().err)
    assert not list((tmp_path / "X").glob("*"))


# ---------------------------------------------------------------- compressed text, and how it may begin

@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["", "mark"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress],
                         ids=["as it is", "gzip", "bzip2", "xz"])
def test_compressed_text_and_a_byte_order_mark(text, tmp_path, pack, mark):
    X, y, path = text
    path.write_bytes(pack(mark + path.read_bytes()))
    assert convert(path, tmp_path / "X")[0] == X.shape
    np.testing.assert_allclose(open_files(tmp_path / "X")[:].toarray(), X, rtol=1e-6)
    np.testing.assert_array_equal(np.load(tmp_path / "X" / "labels.npy"), y)


@pytest.mark.parametrize("ending, pack", [(".svm", bytes), (".svm.gz", gzip.compress), (".TXT.bz2", bz2.compress),
                                          (".libsvm.xz", lzma.compress)])
def test_a_command_reads_it_too(text, tmp_path, capsys, ending, pack):
    path = tmp_path / f"rows{ending}"
    path.write_bytes(pack(b"\xef\xbb\xbf" + text[2].read_bytes()))
    model = str(tmp_path / "model")
    assert main(["fit", str(path), "--model", model, "--method", "smsvm", "--quiet"]) == 0
    assert main(["predict", str(path), "--model", model]) == 0
    found = [line.split(",")[0] for line in capsys.readouterr().out.strip().splitlines()]
    assert len(found) in (500, 501) and np.mean(np.array(found[-500:], float) == text[1]) > 0.9


def test_what_the_disc_says_is_not_damage(text):
    with pytest.raises(OSError, match="Input/output error") as received, opened_text(text[2]):
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    assert received.value.errno == errno.EIO


@pytest.mark.parametrize("damage", [lambda whole: whole[:len(whole) // 2],
                                    lambda whole: whole[:len(whole) // 2] + bytes(40) + whole[len(whole) // 2 + 40:]],
                         ids=["cut", "overwritten"])
@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_damaged_text(text, tmp_path, capsys, pack, damage):
    (tmp_path / "rows.svm.gz").write_bytes(damage(pack(text[2].read_bytes())))
    with pytest.raises(ValueError, match=r"rows\.svm\.gz' is compressed, and damaged: "):
        convert(str(tmp_path / "rows.svm.gz"), tmp_path / "X")
    assert not (tmp_path / "X" / "labels.npy").exists()
    assert main(["fit", str(tmp_path / "rows.svm.gz"), "--model", str(tmp_path / "model")]) == 1
    assert "is compressed, and damaged" in capsys.readouterr().err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["as it is", "gzip"])
def test_text_out_of_a_pipe(text, tmp_path, pack):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(pack(text[2].read_bytes()),))
    writer.start()
    assert convert(str(tmp_path / "pipe"), tmp_path / "X")[0] == text[0].shape
    writer.join()
