"""The examples of README and of the guides run as they are pasted, one after the other as on their page."""

import re
import shlex
import sys
import warnings
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

import matplotlib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, load_digits, load_iris
from sklearn.model_selection import train_test_split
from started import python
from tensors import LIBRARIES

import cmargin
from cmargin.__main__ import main

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", *(f"doc/{name}.md" for name in (
    "index", "guide/many_labels", "guide/regression", "guide/saving", "guide/scale_out", "guide/smsvm"))]
PROGRAMS = ("mpi4py", "distributed")           # an example that imports one of these is a program of its own
rng = np.random.default_rng(0)


def blocks(page, kind=""):
    """The code blocks of one language, or of none."""
    if not (ROOT / page).exists():
        pytest.skip("the documentation is not beside the tests")
    fences = re.split(r"(?m)^```(.*)\n", (ROOT / page).read_text())      # text, what a fence says, code, "", text, ...
    return [code for said, code in zip(fences[1::4], fences[2::4], strict=True) if said == kind]


def given(page):
    """What the page takes as given: arrays, files, and the estimators by their names."""
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, _ = train_test_split(X / 16, y, random_state=0)
    names = {**{name: getattr(cmargin, name) for name in cmargin.__all__}, "X": X / 16, "y": y, "X_new": X[:40] / 16,
             "X_train": X_train, "X_test": X_test, "y_train": y_train, "n": len(y), "cmargin": cmargin, "np": np}
    names["PathDisplay"] = cmargin.plots.PathDisplay
    if page.endswith("smsvm.md"):
        names |= {"y": (y > 4).astype(int), "s": (X[:, 20] > 8).astype(float)}
    if page.endswith("regression.md"):
        names |= {"y": X[:, 20], "Y": X[:, 20:22]}
    if page.endswith("many_labels.md"):
        tags = [["abcdef"[j] for j in np.flatnonzero(row)] for row in rng.integers(0, 2, (len(y), 6))]
        names |= {"tags": tags, "Y_new": sp.csr_matrix(rng.integers(0, 2, (40, 6)))}
    if page.endswith("saving.md"):
        model = cmargin.SmSVMClassifier(loss="logistic").fit(X / 16, y)
        names |= {"model": model, "classes": model.classes_, "coef": model.coef_, "intercept": model.intercept_}
    if page == "README.md":
        names |= {"X_local": X / 16, "y_local": y, "comm": None, "groups": [0, 0, 1]}
    return names


def write_files():
    """The files that examples name, in the folder one is in."""
    X, y = load_iris(return_X_y=True)
    X, names = X.astype("f"), np.array(["elm", "ash", "oak"])[y]
    np.save("rows.npy", X)
    np.save("labels.npy", y)
    for k in range(2):
        np.save(f"part{k}.npy", X[k::2])
        np.save(f"labels{k}.npy", y[k::2])
    for name in ("trees", "more_trees", "new_trees"):
        rows = [",".join([*map(str, row), tree]) for row, tree in zip(X.tolist(), names, strict=True)]
        Path(f"{name}.csv").write_text("\n".join(["a,b,c,d,tree", *rows, ""]))
    for name in ("tags", "more", "new"):
        dump_svmlight_file(X, np.column_stack([y == 0, y > 0, X > np.median(X, axis=0)]).astype(int), f"{name}.svm",
                           zero_based=False, multilabel=True)
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        return
    parquet.write_table(pyarrow.table({**{f"c{j}": X[:, j] for j in range(4)}, "tree": names}), "trees.parquet")


def can_run(code, names):
    """Whether there is what an example needs a library for, which is put among ``names``."""
    if "dask_array" in code:
        names["dask_array"] = pytest.importorskip("dask.array").from_array(names["X"], chunks=(600, 64))
    if "(tensor" in code:
        if not LIBRARIES:
            pytest.skip("no library of tensors")
        names["tensor"] = next(iter(LIBRARIES.values()))(names["X"])
    needs = {"skl2onnx": "skl2onnx", "trees.parquet": "pyarrow"}
    return all(find_spec(module) for word, module in needs.items() if word in code)


@contextmanager
def cluster(code):
    """Workers in threads of this process, for an example that takes a cluster as given."""
    if "dask_array" not in code:
        yield
        return
    distributed = pytest.importorskip("distributed")
    with distributed.Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None):
        yield


@pytest.mark.parametrize("page", PAGES)
def test_examples_run_as_pasted(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    matplotlib.use("Agg")
    write_files()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = given(page)
        for code in blocks(page, "python"):
            if not any(word in code for word in PROGRAMS) and can_run(code, names):
                with cluster(code):
                    exec(compile(code, page, "exec"), names)


@pytest.mark.parametrize("page, word", [("doc/guide/scale_out.md", word) for word in PROGRAMS])
def test_programs_run_as_pasted_and_close_what_they_open(page, word, tmp_path):
    pytest.importorskip(word)
    code, = (code for code in blocks(page, "python") if word in code)
    (tmp_path / "train.py").write_text(code)
    assert python(tmp_path / "train.py", limit=240, cwd=tmp_path).strip()
    assert "Client(" not in code or "with Client(" in code


@pytest.mark.parametrize("page", ["README.md", "doc/guide/many_labels.md"])
def test_commands_run_as_pasted(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_files()
    lines = [line for block in blocks(page) for line in block.splitlines() if line.startswith("cmargin ")]
    assert len(lines) > 2
    for line in lines:
        assert main(shlex.split(line, comments=True)[1:]) == 0, line


def test_estimators_of_the_tables_can_be_made():
    # cells of README's table and of the guide for newcomers; what names something else than these is no call
    names = {**{name: getattr(cmargin, name) for name in cmargin.__all__}, "np": np, "n": 100, "C": 1.0, "e": 0.1,
             "q": 0.5, "a": 1e-3, "w": {0: 1, 1: 2}, "Cs": [0.1, 1.0], "scale": 1.0, "scale_": 1.0, "groups": [0, 0, 1]}
    made = 0
    for page in ("README.md", "doc/index.md", "doc/guide/coming_from.md"):
        blocks(page)
        for span in re.findall(r"`([^`\n]+)`", (ROOT / page).read_text()):
            if re.fullmatch(r"(SLND|BSN|SmSVM|MarginPursuit)\w*\(.*\)", span) and "..." not in span:
                with suppress(NameError):
                    getattr(eval(span, names), "_check_parameters", int)()
                    made += 1
    assert made > 50


def test_the_short_example_of_readme_needs_nothing_else():
    code = blocks("README.md", "python")[0]
    assert len(code.splitlines()) <= 6 and sys.modules["cmargin"] is cmargin
