"""Damaged files given to `cmargin fit`, `predict` and `evaluate`: an exit code of theirs, words, and no more.

A seed is one file, damaged in one to three places, and three commands on it.
"""

import atexit
import contextlib
import gzip
import io
import os
import tempfile
from importlib import import_module
from importlib.util import find_spec
from shutil import rmtree

import numpy as np
from sklearn.datasets import dump_svmlight_file, load_iris

from .findings import Findings

METHODS = ("slnd", "bsn", "smsvm", "pursuit", "pegasos", "smsvm-regressor")
PIECES = (b",", b"\n", b'"', b"\r", b"\0", b"nan", b"1e999", b"-", b";", b"\t", b" ", b":", b"\xff", b"\xef\xbb\xbf",
          b"#", b"1e308", b"99999999999999999999", b"'", b"\n\n", b"x")
NAMES = ("a.csv", "a.tsv", "a.csv.gz", "a.svm", "a.npz", "a.npy", "a.parquet", "tags.svm")
_good = {}


def load():
    """Trained models and good files, in a folder that commands may write to."""
    for name in ("cmargin.cli.fit", "cmargin.cli.predict", "cmargin.cli.evaluate", "matplotlib.figure"):
        import_module(name)
    folder = tempfile.mkdtemp(prefix="commands", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    atexit.register(rmtree, folder, ignore_errors=True)
    os.chdir(folder)
    iris = load_iris()
    X, y, columns = iris.data[::5], iris.target[::5], ["a", "b", "c", "d", "kind"]
    rows = [columns, *([*x, c] for x, c in zip(X.tolist(), y, strict=True))]
    text = "".join(",".join(map(str, row)) + "\n" for row in rows)
    for name, content in (("a.csv", text.encode()), ("a.tsv", text.replace(",", "\t").encode()),
                          ("a.csv.gz", gzip.compress(text.encode()))):
        with open(name, "wb") as file:
            file.write(content)
    dump_svmlight_file(X, y, "a.svm", zero_based=False)
    several = np.stack([y == 0, y > 0, X[:, 0] > 5.5], axis=1).astype(int)
    dump_svmlight_file(X, several, "tags.svm", zero_based=True, multilabel=True)
    with open("tags.svm", "rb") as file:
        lines = [line for line in file.read().splitlines(keepends=True) if not line.startswith(b"#")]
    with open("tags.svm", "wb") as file:                     # as the extreme classification repository writes it
        file.write(b"".join([b"%d 4 3\n" % len(lines), *lines]))
    np.savez("a.npz", X=X, y=y)
    np.save("a.npy", X)
    np.save("labels.npy", y)
    if find_spec("pyarrow"):
        import pyarrow as arrow
        from pyarrow import parquet

        table = arrow.table({name: column for name, column in zip(columns, [*X.T, y], strict=True)})
        parquet.write_table(table, "a.parquet")
    for name in filter(os.path.exists, NAMES):
        with open(name, "rb") as file:
            _good[name] = file.read()
    # on one thread: two before a fork and two after it hang in libgomp (doc/parallelism.md)
    run("fit", "a.csv", "--model", "names.model", "--quiet", "--threads", "1")
    run("fit", "a.npz", "--model", "numbers.model", "--quiet", "--threads", "1", "--method", "smsvm")
    run("fit", "tags.svm", "--model", "tags.model", "--quiet", "--threads", "1", "--method", "smsvm")


def run(*argv):
    """(exit code, standard output, standard error) of a command."""
    from cmargin.__main__ import main

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main(list(argv))
        except SystemExit as ended:
            status = ended.code
    return status, out.getvalue(), err.getvalue()


def describe(seed):
    return [NAMES[seed % len(NAMES)]]


def damaged(rng, content):
    content = bytearray(content)
    for _ in range(rng.integers(1, 4)):
        at, what = int(rng.integers(len(content) + 1)), rng.integers(6)
        if what == 0:
            content[at:at + 1] = bytes([rng.integers(256)])
        elif what == 1:
            del content[at:at + int(rng.integers(1, 60))]
        elif what == 2:
            content[at:at] = PIECES[rng.integers(len(PIECES))]
        elif what == 3:
            content[at:at] = content[:int(rng.integers(1, 200))]
        elif what == 4:
            del content[at:at + 1]
        elif rng.random() < 0.3:
            del content[at:]
    return bytes(content)


def check_seed(seed):
    name, rng = NAMES[seed % len(NAMES)], np.random.default_rng([seed, 5])
    found = Findings(seed, [name])
    if name not in _good:                  # no pyarrow
        return found
    path = f"harmed-{name}"
    with open(path, "wb") as file:
        file.write(damaged(rng, _good[name]))
    labels = ["--labels", "labels.npy"] if name == "a.npy" else []
    scale, method = (str(rng.choice(what)) for what in (["auto", "columns", "rows", "none"], METHODS))
    model = "names.model" if "csv" in name or "tsv" in name else "tags.model" if name == "tags.svm" else "numbers.model"
    form = str(rng.choice(["text", "json", "html"]))
    for argv in (["fit", path, *labels, "--model", "new.model", "--method", method, "--scale", scale, "--max-time", "2",
                  "--threads", "1", "--set", "max_passes=5"],
                 ["predict", path, "--model", model],
                 ["evaluate", path, *labels, "--model", model, "--format", form]):
        status, out, err = run(*argv)
        found.count("commands", f"{argv[0]} {status}")
        for kind, is_so in (("exit code", status not in (0, 1, 2)), ("traceback", "Traceback" in err),
                            ("unforeseen", "CMARGIN_TRACEBACK" in err),
                            ("no words", bool(status) == ("error:" not in err)),
                            ("NaN", status == 0 and argv[0] == "predict" and "nan" in out)):
            if is_so:
                found.add(kind, f"{' '.join(argv)}: {status}, {err[-300:]!r}")
    return found
