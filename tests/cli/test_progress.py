"""What the command shows of its progress: bytes that are read, passes, classes; nothing where nobody looks."""

import gzip
import importlib.util
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file
from trees import X, Y

from cmargin import SmSVMClassifier
from cmargin.__main__ import main
from cmargin.cli import estimators, progress
from cmargin.cli.model import load
from cmargin.data.files import text as text_module


class Terminal(list):
    def isatty(self):
        return True

    def write(self, text):
        self.append(text)

    def flush(self):
        pass


@pytest.mark.parametrize("method", ["slnd", "pursuit", "smsvm"])
@pytest.mark.parametrize("tqdm", [False, True])
def test_a_line_on_a_terminal(method, tqdm, folder, monkeypatch):
    if tqdm and importlib.util.find_spec("tqdm") is None:
        pytest.skip("no tqdm")
    if not tqdm:
        monkeypatch.setitem(sys.modules, "tqdm", None)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    np.savez("two.npz", X=X, y=Y > 0)
    assert main(["fit", "two.npz", "--model", "m", "--method", method]) == 0
    text = "".join(terminal)
    assert text.count("\r") > 2 and ("objective" in text or tqdm) and "\n" not in text.strip("\n\r ")
    assert not tqdm or "pass" in text
    terminal.clear()
    assert main(["fit", "two.npz", "--model", "m", "--method", method, "--quiet"]) == 0
    assert not terminal


@pytest.mark.parametrize("more", [[], ["--set", "class_weight_on=positives", "--set", "class_weight=balanced"]])
def test_classes_of_smsvm_are_counted_and_no_number_is_nan(more, folder, monkeypatch):
    # nothing was said until all classes were trained, as a callback would have them trained one after the other
    monkeypatch.setitem(sys.modules, "tqdm", None)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert main(["fit", "trees.csv", "--model", "m", "--method", "smsvm", *more]) == 0
    text = "".join(terminal)
    assert "class 1 of 3, gap " in text and "class 3 of 3, gap " in text
    assert not hasattr(load("m").classifier, "_on_class") or load("m").classifier._on_class is None
    terminal.clear()
    assert main(["fit", "trees.csv", "--model", "m", "--method", "pegasos", "--set", "max_passes=3"]) == 0
    text = "".join(terminal)
    assert "pass 3 of 3, objective" in text and "nan" not in text


@pytest.mark.parametrize("name", ["trees.csv", "trees.csv.gz", "trees.svm"])
def test_reading_is_shown_from_the_first_byte_on(name, folder, monkeypatch, reader):
    # of 22 seconds 19 had passed before there was a bar
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setattr(progress, "EVERY", -1.0)
    content = (folder / "trees.csv").read_bytes()
    if name.endswith(".gz"):
        content = gzip.compress(content)
    elif name.endswith(".svm"):
        dump_svmlight_file(X, Y, name, zero_based=False)
        content = (folder / name).read_bytes()
    (folder / name).write_bytes(content)
    terminal, heard, at = Terminal(), [], progress.Line.at
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress.Line, "at", lambda line, n: (heard.append((n, line.total)), at(line, n)))
    assert main(["fit", name, "--model", "m", "--method", "smsvm"]) == 0
    assert heard[0] == (0, len(content)) and heard[-1] == (len(content), len(content))
    text = "".join(terminal)
    assert text.index("read 0.0 of 0.0 MB") < text.index("class 1 of 3")
    terminal.clear()
    assert main(["fit", name, "--model", "m", "--method", "smsvm", "--quiet"]) == 0
    assert not terminal and not text_module._watchers


@pytest.mark.parametrize("size", [-1, 100, 1 << 22])
def test_a_watched_text_is_the_text(size, tmp_path):
    content = bytes(range(32, 127)) * 30_000
    (tmp_path / "a").write_bytes(content)
    heard = []
    with text_module.watched(heard.append), text_module.opened_text(tmp_path / "a") as file:
        found = file.read(size) + b"".join(iter(lambda: file.read(1 << 16), b""))
    assert found == content and heard[-1] == len(content) and heard == sorted(heard)


def test_nothing_elsewhere():
    assert isinstance(progress.progress(10, "pass", False), progress.Silence)


def test_many_classes_of_smsvm_are_not_watched():
    for n_problems, there in ((3, False), (1, True)):
        estimator = SmSVMClassifier()
        estimators.report_passes(estimator, n_problems, SimpleNamespace(step=len))
        assert (estimator.callback is not None) == there and (estimator._on_class is None) == there
