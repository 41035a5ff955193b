"""Every kind of file with every reader: the answer for the same numbers in memory, or a refusal in words.

Verdicts are those of `cells`. Readers are ways from files to a fit: paths given to the estimators, `open_files` in
memory and kept in the file, and the commands ``cmargin fit``, ``predict`` and ``evaluate``, of which the last must
print the accuracy of what the second has printed.
"""

import gzip
import json
from functools import partial

import numpy as np
import scipy.sparse as sp

from .cells import EQUAL, REFUSED, WRONG, Refusal, Verdict, answer_of, estimator_of, judge, numbers, plain
from .commands import run
from .containers import as_csr, as_given, in_file, single
from .label_kinds import IDS, TRUTH, WHOLE, WORDS, LabelKind, taking

INTEGERS = LabelKind(np.array, WHOLE, "files")


# ------------------------------------------------------------ files of rows

def saved(name, X):
    np.save(in_file(name), X)
    return in_file(name)


def archive(name, save=np.savez, **arrays):
    save(in_file(name), **arrays)
    return in_file(name)


def sparse_archive(name, X, compressed=False):
    sp.save_npz(in_file(name), X, compressed=compressed)
    return in_file(name)


def parquet(name, X, first=None, **more):
    import pyarrow
    from pyarrow import parquet

    columns = {f"c{j}": column for j, column in enumerate(X.T)}
    columns |= {} if first is None else {"c0": first}
    parquet.write_table(pyarrow.table({**columns, **more}), in_file(name))
    return in_file(name)


def shards(X):
    half = len(X) // 2
    return [saved("part0.npy", X[:half]), saved("part1.npy", X[half:])]


def holed(X, value=np.nan):
    X = X.copy()
    X[1, 0] = value
    return X


def text(name, content, opened=open):
    with opened(in_file(name), "wb") as file:
        file.write(content.encode())
    return in_file(name)


def lines(separator, rows):
    return "".join(separator.join(row) + "\n" for row in rows)


def numbers_text(separator, X):
    """A line of names, and the rows."""
    return lines(separator, [[f"c{j}" for j in range(X.shape[1])], *([f"{x:g}" for x in row] for row in X)])


def svmlight_text(X, labels):
    return "".join(f"{label} {' '.join(f'{j + 1}:{x:g}' for j, x in enumerate(row) if x)}\n"
                   for row, label in zip(X, labels, strict=True))


def converted(X, codes):
    from cmargin.cli.convert import convert

    convert(text("rows.svm", svmlight_text(X, codes)), in_file("folder"), dtype=np.float64,
            n_features=X.shape[1])
    return in_file("folder")


# name -> (function of X that writes the file and gives its path, the twins in memory; none where it has to be refused)
ROWS = {
    ".npy": (lambda X: saved("rows.npy", X), (as_given,)),
    ".npy, F order": (lambda X: saved("rows.npy", np.asfortranarray(X)), (as_given,)),
    ".npy, float32": (lambda X: saved("rows.npy", single(X)), (single,)),
    ".npy, int8": (lambda X: saved("rows.npy", X.astype(np.int8)), (single,)),
    ".npy, bool": (lambda X: saved("rows.npy", X > 2), (lambda X: single(X > 2),)),
    ".npy, other byte order": (lambda X: saved("rows.npy", X.astype(X.dtype.newbyteorder())), (as_given,)),
    ".npy, NaN": (lambda X: saved("rows.npy", holed(X)), ()),
    ".npy, objects": (lambda X: saved("rows.npy", X.astype(object)), (as_given,)),
    ".npy, two shards": (shards, (as_given,)),
    ".npz": (lambda X: archive("rows.npz", X=X), (as_given,)),
    ".npz, compressed": (lambda X: archive("rows.npz", np.savez_compressed, X=X), (as_given,)),
    ".npz, CSR": (lambda X: sparse_archive("rows.npz", sp.csr_array(X)), (as_csr,)),
    ".npz, CSR matrix": (lambda X: sparse_archive("rows.npz", sp.csr_matrix(X)), (as_csr,)),
    ".npz, CSR, compressed": (lambda X: sparse_archive("rows.npz", sp.csr_array(X), True), (as_csr,)),
    ".npz, CSC": (lambda X: sparse_archive("rows.npz", sp.csc_array(X)), (as_csr,)),
    ".npz, CSC, compressed": (lambda X: sparse_archive("rows.npz", sp.csc_array(X), True), (as_csr,)),
    ".npz, BSR": (lambda X: sparse_archive("rows.npz", sp.bsr_array(X)), (lambda X: sp.bsr_array(X).tocsr(),)),
    ".npz, COO": (lambda X: sparse_archive("rows.npz", sp.coo_array(X)), (as_csr,)),
    ".npz, DIA": (lambda X: sparse_archive("rows.npz", sp.dia_array(X)), (as_csr,)),
    ".parquet": (lambda X: parquet("rows.parquet", X), (as_given,)),
    ".parquet, float32": (lambda X: parquet("rows.parquet", single(X)), (single,)),
    ".parquet, int8": (lambda X: parquet("rows.parquet", X.astype(np.int8)), (as_given,)),
    ".parquet, a null": (lambda X: parquet("rows.parquet", X, [None, *X[1:, 0].tolist()]), ()),
    ".parquet, a column of dates": (lambda X: parquet(
        "rows.parquet", X, X[:, 0].astype("datetime64[D]").astype("datetime64[us]")), ()),
    ".csv": (lambda X: text("rows.csv", numbers_text(",", X)), (as_given,)),
    ".csv.gz": (lambda X: text("rows.csv.gz", numbers_text(",", X), gzip.open), (as_given,)),
    ".tsv": (lambda X: text("rows.tsv", numbers_text("\t", X)), (as_given,)),
    ".svm": (lambda X: text("rows.svm", svmlight_text(X, np.zeros(len(X), int))), (as_csr,)),
    "folder of cmargin convert": (lambda X: converted(X, np.zeros(len(X), int)), (as_csr,)),
}


# ------------------------------------------------------------ readers of rows

def by_open_files(path, y, in_memory):
    from cmargin.data.files import open_files

    return open_files(path, in_memory), y


# name -> (function of the path and the labels that gives X and y, whether coefficients have the bits of rows in memory)
READERS = {
    "path": (lambda path, y: (path, y), True),
    "path, path of labels": (lambda path, y: (path, saved("labels.npy", y)), True),
    "open_files": (partial(by_open_files, in_memory=True), True),
    "kept in the file": (partial(by_open_files, in_memory=False), False),
}


def fit_from(write, reader, X, codes, estimator):
    """The `Answer` of a fit on a file; what opening it raises counts as said by `fit`."""
    path = write(X)
    try:
        rows, labels = reader(path, codes)
    except Exception as error:
        raise Refusal("fit", error) from None
    return answer_of(estimator_of(estimator), rows, labels)


def verdict_of_rows(file, reader, estimator, seed=0):
    """The `Verdict` of a file of rows, by names in `ROWS` and `READERS`."""
    (write, twins), (read, bits) = ROWS[file], READERS[reader]
    X, codes = numbers(seed, 3, True)
    twins = [partial(plain, estimator, seed, 3, False, twin, True) for twin in twins]
    return judge(lambda: fit_from(write, read, X, codes, estimator), twins, INTEGERS, bits)


# ------------------------------------------------------------ files of rows and labels, by the commands

def table(name, separator, X, labels, opened=open):
    rows = [[f"c{j}" for j in range(X.shape[1])] + ["label"]]
    rows += [[f"{x:g}" for x in row] + [str(label)] for row, label in zip(X, labels, strict=True)]
    return [text(name, lines(separator, rows), opened)]


def arrays_of(X):
    """The members that `scipy.sparse.save_npz` writes."""
    with np.load(sparse_archive("members.npz", X)) as members:
        return {name: members[name] for name in members.files}


def with_labels(write):
    return lambda X, labels: [write(X), "--labels", saved("labels.npy", np.array(labels))]


# name -> function of X and a list of labels that writes the file and gives the arguments that name it
LABELLED = {
    ".csv": partial(table, "table.csv", ","), ".csv.gz": partial(table, "table.csv.gz", ",", opened=gzip.open),
    ".tsv": partial(table, "table.tsv", "\t"),
    ".parquet": lambda X, labels: [parquet("table.parquet", X, label=labels)],
    ".svm": lambda X, labels: [text("table.svm", svmlight_text(X, labels))],
    ".svm.gz": lambda X, labels: [text("table.svm.gz", svmlight_text(X, labels), gzip.open)],
    ".npz": lambda X, labels: [archive("table.npz", X=X, y=np.array(labels))],
    ".npz, CSR": lambda X, labels: [archive("table.npz", **arrays_of(sp.csr_array(X)), y=np.array(labels))],
    ".npz, CSC": lambda X, labels: [archive("table.npz", **arrays_of(sp.csc_array(X)), y=np.array(labels))],
    ".npy --labels": with_labels(lambda X: saved("rows.npy", X)),
    ".npz --labels": with_labels(lambda X: archive("rows.npz", X=X)),
    ".npz of CSC --labels": with_labels(lambda X: sparse_archive("rows.npz", sp.csc_array(X))),
    ".parquet --labels": with_labels(lambda X: parquet("rows.parquet", X)),
    "folder of cmargin convert": lambda X, labels: [converted(X, labels)],
}
KINDS = {
    "int": LabelKind(taking(WHOLE, list), WHOLE, "files"), "negative": LabelKind(taking([-5, -1, 3], list), [-5, -1, 3],
                                                                                 "files"),
    "whole floats": LabelKind(taking([0.0, 1.0, 2.0], list), [0.0, 1.0, 2.0], "files"),
    "beyond 2^53": LabelKind(taking(IDS, list), IDS, "files"), "bool": LabelKind(taking(TRUTH, list), TRUTH, "files"),
    "str": LabelKind(taking(WORDS, list), WORDS, "files"),
    "int, one missing": LabelKind(lambda codes: [None, *codes[1:].tolist()], WHOLE, "files", True),
    "str, one missing": LabelKind(lambda codes: [None, *taking(WORDS, list)(codes[1:])], WORDS, "files", True),
}


def missing_as(file, labels):
    """Labels with None among them as this kind of file has them: an empty cell, NaN, or None itself."""
    if None not in labels or file == ".parquet":
        return labels
    if file.startswith((".csv", ".tsv")):
        return ["" if label is None else label for label in labels]
    return [np.nan if label is None else label for label in labels] if isinstance(labels[1], int) else np.array(
        labels, object)


def verdict_of_command(file, kind, seed=0):
    """The `Verdict` of a file of rows and labels, by names in `LABELLED` and `KINDS`, trained on by the command."""
    labels = KINDS[kind]
    X, codes = numbers(seed, len(labels.values), True)
    twin = as_csr if any(word in file for word in (".svm", "CSR", "CSC", "folder")) else as_given
    expected = plain("SmSVMClassifier", seed, len(labels.values), False, twin, True)
    try:
        given = LABELLED[file](X, missing_as(file, labels.make(codes)))
    except (ValueError, TypeError) as error:         # of NumPy or pyarrow: no file holds such labels
        return Verdict(REFUSED, f"no such file: {error}")
    model = in_file("command.model")
    status, _, err = run("fit", *given, "--model", model, "--method", "smsvm", "--scale", "none", "--quiet",
                         "--threads", "1", "--set", "max_passes=20")
    if status:
        in_words = status in (1, 2) and "error:" in err and "Traceback" not in err and "CMARGIN_TRACEBACK" not in err
        return Verdict(REFUSED if in_words else WRONG, err.strip())
    if labels.missing:
        return Verdict(WRONG, "answers though a label is missing")
    return commands_agree(given, model, labels, expected)


def commands_agree(given, model, labels, expected):
    """The `Verdict` of what ``predict`` and ``evaluate`` print beside the answer in memory."""
    status, out, err = run("predict", *given, "--model", model)
    if status:
        return Verdict(WRONG, f"fit answers, then predict: {err.strip()}")
    predictions, number = [str(labels.values[code]) for code in expected.predictions], type(labels.values[0]) is float
    if [str(float(label)) if number else label for label in out.split()] != predictions:
        return Verdict(WRONG, f"predicts {', '.join(dict.fromkeys(out.split()))}, not "
                              f"{', '.join(dict.fromkeys(predictions))}, or in other rows")
    status, out, err = run("evaluate", *given, "--model", model, "--format", "json")
    if status or abs(json.loads(out)["accuracy"] - expected.score) > 1e-12:
        return Verdict(WRONG, f"evaluate: {(err or out).strip()}")
    return Verdict(EQUAL)
