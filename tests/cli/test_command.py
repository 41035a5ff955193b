"""``cmargin fit``, ``predict``, ``evaluate``: every format, every exit code, one sentence for whatever is wrong."""

import json
import os
import pickle
import re
import signal
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file
from sklearn.preprocessing import StandardScaler
from trees import COLUMNS, NAMES, X, Y, csv_text, failed

from cmargin import Checkpoint, SmSVMClassifier
from cmargin.__main__ import main
from cmargin.cli import estimators, labels
from cmargin.cli.convert import convert
from cmargin.cli.model import load
from cmargin.data.files import sources


def started(*argv):
    """A process of its own."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen([sys.executable, *argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env=environment)


# ---------------------------------------------------------------- formats

def write_csv(path):
    (path / "d.csv").write_text(csv_text())


def write_tsv(path):
    (path / "d.tsv").write_text(csv_text(header=False, separator="\t"))


def write_npz(path):
    np.savez(path / "d.npz", X=X.astype("f"), y=NAMES[Y])


def write_whole_npz(path):
    np.savez(path / "d.npz", X=np.rint(10 * X).astype(np.int16), y=Y)


def write_csr(path):
    rows = sp.csr_matrix(X)
    np.savez(path / "d.npz", data=rows.data, indices=rows.indices, indptr=rows.indptr, shape=rows.shape, labels=Y)


def write_npy(path):
    np.save(path / "d.npy", X)
    np.save(path / "labels.npy", Y)


def write_whole_npy(path):
    np.save(path / "d.npy", np.rint(10 * X).astype(np.int16))
    np.save(path / "labels.npy", Y)


def write_svm(path):
    dump_svmlight_file(X, Y, str(path / "d.svm"), zero_based=False)


def write_folder(path):
    dump_svmlight_file(X, Y, str(path / "text"), zero_based=False)
    convert(str(path / "text"), str(path / "d"))


def write_parquet(path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {name: X[:, j] for j, name in enumerate(COLUMNS)}
    parquet.write_table(arrow.table({**columns, "tree": NAMES[Y]}), path / "d.parquet")


@pytest.mark.parametrize("write, name, more", [
    (write_csv, "d.csv", ()), (write_tsv, "d.tsv", ()), (write_npz, "d.npz", ()), (write_csr, "d.npz", ()),
    (write_whole_npz, "d.npz", ()),
    (write_npy, "d.npy", ("--labels", "labels.npy")), (write_whole_npy, "d.npy", ("--labels", "labels.npy")),
    (write_svm, "d.svm", ()), (write_folder, "d", ()), (write_parquet, "d.parquet", ())])
@pytest.mark.parametrize("method", ["slnd", "smsvm"])
def test_every_format_is_trained_on_and_predicted(write, name, more, method, folder, capsys):
    write(folder)
    assert main(["fit", name, *more, "--method", method, "--model", "m", "--seed", "3"]) == 0
    said = capsys.readouterr()
    assert "300 rows x 5, 3 classes" in said.out and "The model is in m." in said.out and said.err == ""
    assert main(["evaluate", name, *more, "--model", "m", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] > 0.85
    assert main(["predict", name, "--model", "m", "--out", "p.txt"]) == 0
    lines = (folder / "p.txt").read_text().split()
    truth = NAMES[Y] if name in ("d.csv", "d.tsv", "d.parquet") or write is write_npz else Y.astype(str)
    assert len(lines) == 300 and np.mean(np.array(lines) == truth) > 0.85
    assert sorted(path.name for path in folder.glob("*.part")) == []


def test_a_csv_is_what_the_estimator_sees(folder, reader, capsys):
    main(["fit", "trees.csv", "--method", "smsvm", "--set", "l2=1e-3", "--model", "m"])
    ours = SmSVMClassifier(l2=1e-3, random_state=0).fit(StandardScaler().fit_transform(X), NAMES[Y])
    np.testing.assert_array_equal(load("m").classifier.coef_, ours.coef_)
    capsys.readouterr()
    main(["predict", "trees.csv", "--model", "m", "--what", "scores"])
    head, *lines = capsys.readouterr().out.splitlines()
    assert head == "ash,birch,elm"
    scores = ours.decision_function(StandardScaler().fit_transform(X))
    np.testing.assert_allclose([[float(cell) for cell in line.split(",")] for line in lines], scores, rtol=1e-12)


@pytest.mark.parametrize("options, text", [
    (["--label", "tree"], csv_text(place=2)), (["--label", "2"], csv_text(place=2, header=False)),
    (["--label", "-1"], csv_text()), ([], csv_text(separator=";")),
    ([], "\ufeff" + csv_text(header=False)), (["--header", "no"], csv_text(header=False)),
    ([], csv_text().replace("\n", "\n\n").replace("\n\n", "\n", 1)), ([], csv_text().replace(",", " , "))])
def test_where_labels_and_names_are(options, text, folder, reader):
    (folder / "d.csv").write_text(text)
    assert main(["fit", "d.csv", *options, "--model", "m", "--quiet", "--set", "max_passes=2"]) == 0
    found = load("m")
    assert found.classifier.classes_.tolist() == NAMES.tolist() and found.classifier.coef_.shape == (3, 5)
    assert found.columns in (COLUMNS, None) and (found.columns is None) == (text.strip("\ufeff-")[0].isdecimal())


def test_labels_of_a_table_in_a_file_of_their_own(folder, reader, capsys):
    (folder / "alone.csv").write_text("".join(line.rsplit(",", 1)[0] + "\n" for line in csv_text().splitlines()))
    np.save("labels.npy", NAMES[Y])
    assert main(["fit", "alone.csv", "--labels", "labels.npy", "--model", "m", "--quiet"]) == 0
    assert load("m").columns == COLUMNS and load("m").label is None
    assert main(["evaluate", "alone.csv", "--labels", "labels.npy", "--model", "m"]) == 0
    capsys.readouterr()
    assert main(["predict", "alone.csv", "--model", "m"]) == 0
    assert len(capsys.readouterr().out.split()) == 300


def test_columns_are_known_by_their_names(folder, reader, capsys):
    assert main(["fit", "trees.csv", "--model", "m", "--quiet"]) == 0
    main(["predict", "trees.csv", "--model", "m"])
    first = capsys.readouterr().out
    turned = "".join(",".join(line.split(",")[::-1]) + "\n" for line in csv_text().splitlines())
    (folder / "turned.csv").write_text(turned)
    (folder / "alone.csv").write_text("".join(line.rsplit(",", 1)[0] + "\n" for line in csv_text().splitlines()))
    for name in ("turned.csv", "alone.csv"):
        assert main(["predict", name, "--model", "m"]) == 0
        assert capsys.readouterr().out == first
    assert main(["evaluate", "turned.csv", "--model", "m"]) == 0
    assert "accuracy" in capsys.readouterr().out
    (folder / "less.csv").write_text(csv_text().replace("leaf area", "leaves"))
    assert "has no column 'leaf area', which the model was trained on" in failed(
        capsys, "predict", "less.csv", "--model", "m")


def test_labels_are_what_they_look_like():
    assert labels.labels_from(["1", " 2", "1.0"]).tolist() == [1, 2, 1]
    assert labels.labels_from(["1", "x"]).tolist() == ["1", "x"] and labels.labels_from(["0.5"]).tolist() == ["0.5"]
    assert labels.labels_from(["nan", "1"]).tolist() == ["", "1"]        # which is missing
    assert labels.labels_from(["-1", "+1", "0.", "2.000000000000000000e+00"]).tolist() == [-1, 1, 0, 2]


@pytest.mark.parametrize("names", [["00501", "08540"], ["01", "1", "2"], ["1e3", "1000"]])
def test_names_that_look_like_numbers_stay_names(folder, capsys, names):
    # the model predicted 501 for 00501, and took 01 and 1 for one class
    assert labels.labels_from(names).tolist() == names
    rows = [f"{k + offset},{-k},{name}" for k, name in enumerate(names) for offset in (0, 0.1, 0.2)]
    (folder / "codes.csv").write_text("\n".join(["a,b,code", *rows]) + "\n")
    assert main(["fit", "codes.csv", "--method", "smsvm", "--set", "C=1000", "--model", "codes.model"]) == 0
    capsys.readouterr()
    assert main(["predict", "codes.csv", "--model", "codes.model"]) == 0
    assert set(names) == set(capsys.readouterr().out.split())
    assert main(["evaluate", "codes.csv", "--model", "codes.model", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["data"]["labels not known"] == 0


def test_an_infinite_c_is_no_penalty(folder):
    # as the estimators have it; "inf" was a word
    main(["fit", "trees.csv", "--method", "smsvm", "--set", "C=inf", "--set", "loss=logistic", "--model", "m"])
    assert load("m").classifier.C == np.inf


def test_a_list_is_a_parameter_for_each_column(folder):
    # a list was a word, and groups of columns could not be given
    n_columns = len((folder / "trees.csv").read_text().splitlines()[0].split(",")) - 1
    groups = [0, *[1] * (n_columns - 1)]
    main(["fit", "trees.csv", "--method", "smsvm", "--set", f"groups={groups}", "--set", "l1=1e-3", "--model", "m"])
    assert load("m").classifier.groups == groups


def test_labels_are_read_as_the_classes_of_the_model_are(folder, capsys):
    # numbers are known however they are written in the table that is evaluated
    (folder / "ones.csv").write_text("a,y\n1,1\n2,1\n8,12\n9,12\n")
    (folder / "padded.csv").write_text("a,y\n1,01\n2,01\n8,12\n9,1.2e+01\n")
    assert main(["fit", "ones.csv", "--method", "smsvm", "--set", "C=100", "--model", "ones.model"]) == 0
    capsys.readouterr()
    assert main(["evaluate", "padded.csv", "--model", "ones.model", "--format", "json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["accuracy"] == 1 and said["data"]["labels not known"] == 0


def test_a_model_of_dense_rows_takes_sparse_ones(folder, capsys):
    write_npz(folder)
    main(["fit", "d.npz", "--model", "m", "--quiet"])
    main(["predict", "d.npz", "--model", "m"])
    dense = capsys.readouterr().out
    dump_svmlight_file(X.astype("f"), Y, "d.svm", zero_based=False)
    main(["predict", "d.svm", "--model", "m"])
    assert capsys.readouterr().out == dense
    for scale in ("columns", "rows", "none"):
        assert main(["fit", "d.svm", "--model", "m", "--scale", scale, "--quiet"]) == 0


def test_rows_that_stay_in_their_file(folder, capsys, monkeypatch):
    write_npy(folder)
    given = ["d.npy", "--labels", "labels.npy", "--model"]
    main(["fit", *given, "whole", "--method", "smsvm", "--scale", "none", "--quiet"])
    main(["evaluate", *given, "whole", "--format", "json"])
    whole = json.loads(capsys.readouterr().out)
    monkeypatch.setattr(sources, "FITS", 0.0)
    assert main(["fit", *given, "m", "--method", "smsvm", "--quiet"]) == 0
    assert load("m").scaler is None
    main(["evaluate", *given, "m", "--format", "json"])
    said = json.loads(capsys.readouterr().out)
    assert said["accuracy"] == whole["accuracy"]
    assert said["margins"]["median"] == pytest.approx(whole["margins"]["median"], rel=1e-3)
    assert "needs rows that fit into memory; use --scale none" in failed(capsys, "fit", *given, "m", "--scale", "rows")
    assert main(["fit", *given, "m", "--quiet"]) == 0
    assert load("m").scaler is None
    assert "memory" in failed(capsys, "fit", *given, "m", "--method", "slnd", "--set", "l1=0.1")


# ---------------------------------------------------------------- what is wrong

@pytest.mark.parametrize("text, words", [
    ("", "is empty"), ("a,b,tree\n", "has no rows"), ("a,tree\n1,x\nyes,y\n", "row 2, column 1: 'yes' is no number"),
    ("a,tree\n1,x\n,y\n", "row 2, column 'a': empty, NaN or infinite"), ("a,tree\n1,x\ninf,y\n", "column 'a': empty"),
    ("a,tree\n1,x\nNA,y\n", "row 2, column 'a'"), ("a,tree\n1,x\n2,x\n", "only one class"),
    ("1,x\n2, \n", "row 2: the label is empty"),
    ("1,x\n2,y\n\xff,x\n", "d.csv, line 3, is not UTF-8 text (byte 0xFF)"),
    ("a,tree\n1,ch\xeane\n2,y\n", "line 2, is not UTF-8"), ("\xe2ge,tree\n1,x\n2,y\n", "line 1, is not UTF-8"),
    ("a,b,tree\n1,2,x\n1\n", "row"),
    ("a,tree\n1,x\n\n2,y,3\n", "d.csv, row 2, has 3 cells where the first line has fewer."),
    ("a,tree\n1,x,3\n2,y\n", "row 1, has 3 cells"), ("a,tree\n1,x,,3\n2,y,3\n", "row 1, has 4 cells")])
def test_tables_that_are_refused(text, words, folder, reader, capsys):
    (folder / "d.csv").write_bytes(text.encode("latin1"))
    assert words in failed(capsys, "fit", "d.csv", "--model", "m")
    assert not (folder / "m").exists()


@pytest.mark.parametrize("encoding, mark", [("utf-16-le", "FF FE"), ("utf-16-be", "FE FF")])
def test_utf_16_is_named(encoding, mark, folder, reader, capsys):
    (folder / "d.csv").write_bytes(("\ufeff" + csv_text()).encode(encoding))
    said = failed(capsys, "fit", "d.csv", "--model", "m")
    assert f"d.csv is UTF-16 text (it begins with the byte order mark {mark})" in said


def test_labels_in_latin_1_are_refused_in_rows_for_a_model_too(folder, reader, capsys):
    # They were read as labels with U+FFFD in them, which the model does not know.
    text = csv_text().replace(NAMES[0], "ch\xeane")
    (folder / "d.csv").write_text(text, encoding="utf-8")
    assert main(["fit", "d.csv", "--model", "m", "--quiet", "--method", "smsvm"]) == 0
    assert "ch\xeane" in load("m").classifier.classes_
    (folder / "d.csv").write_text(text, encoding="latin1")
    number = next(k for k, line in enumerate(text.splitlines(), 1) if "\xea" in line)
    for command in ("predict", "evaluate"):
        assert f"line {number}, is not UTF-8" in failed(capsys, command, "d.csv", "--model", "m")


def test_cells_too_many_are_refused_in_rows_for_a_model_too(folder, reader, capsys):
    # They were dropped, where pandas is not installed; with it, of the first row.
    main(["fit", "trees.csv", "--model", "m", "--quiet", "--method", "smsvm"])
    lines = csv_text().splitlines()
    (folder / "d.csv").write_text("\n".join([*lines[:2], lines[2] + ",9", *lines[3:]]))
    for command in ("predict", "evaluate"):
        assert "d.csv, row 2, has 7 cells where the first" in failed(capsys, command, "d.csv", "--model", "m")


def test_a_delimiter_at_the_end_of_a_row_is_no_cell(folder, reader, capsys):
    (folder / "d.csv").write_text("a,tree\n1,x\n2,y,\n3,y,,\n4,x\n")
    assert main(["fit", "d.csv", "--model", "m", "--quiet", "--method", "smsvm"]) == 0
    assert main(["predict", "d.csv", "--model", "m"]) == 0
    assert len(capsys.readouterr().out.split()) == 4


def test_files_that_are_refused(folder, capsys):
    np.save("X.npy", X)
    np.save("short.npy", Y[:7])
    np.savez("three.npz", a=X, b=Y, c=Y)
    np.savez("words.npz", X=X.astype(str), y=Y)
    for name in ("three.npz", "X.npy"):
        (folder / f"broken.{name[-3:]}").write_bytes((folder / name).read_bytes()[:700])
    (folder / "text.svm").write_text("1 1:a\n")
    (folder / "d.xls").write_text("")
    for argv, words in (
            (["none.csv"], "none.csv: No such file or folder"), (["d.xls"], "is of no kind that is read"),
            (["X.npy"], "holds no labels; --labels names"), (["three.npz"], "it holds a, b, c"),
            (["words.npz"], "not numbers"), (["broken.npz"], "broken.npz: "), (["broken.npy"], "broken.npy"),
            (["X.npy", "--labels", "short.npy"], "300 rows and 7 labels"),
            (["X.npy", "--labels", "d.xls"], "300 rows and 0 labels"),
            (["text.svm"], "text.svm, line 1: "), (["trees.csv", "--label", "oak"], "has no column 'oak'; it has age")):
        assert words in failed(capsys, "fit", *argv, "--model", "m")
    assert "No such folder" in failed(capsys, "fit", "trees.csv", "--model", "no/m")
    assert "Is a directory" in failed(capsys, "fit", "trees.csv", "--model", folder)


def test_models_that_are_refused(folder, capsys):
    main(["fit", "trees.csv", "--model", "m", "--quiet", "--method", "smsvm"])
    (folder / "other").write_bytes(pickle.dumps({"x": 1}))
    np.savez("wide.npz", X=np.ones((2, 9)), y=[1, 2])
    np.savez("unknown.npz", X=X, y=["oak"] * 300)
    for argv, words in ((["trees.csv", "--model", "trees.csv"], "no model of `cmargin fit`"),
                        (["trees.csv", "--model", "other"], "no model"),
                        (["trees.csv", "--model", "none"], "none: No such"),
                        (["wide.npz", "--model", "m"], "9 features; the model was trained on 5")):
        assert words in failed(capsys, "predict", *argv)
        assert words in failed(capsys, "evaluate", *argv)
    assert "has no probabilities" in failed(capsys, "predict", "trees.csv", "--model", "m", "--what", "probabilities")
    assert "none of the labels of unknown.npz" in failed(capsys, "evaluate", "unknown.npz", "--model", "m")
    assert "No such folder" in failed(capsys, "predict", "trees.csv", "--model", "m", "--out", "no/p.txt")


@pytest.mark.parametrize("argv", [["fit"], ["fit", "trees.csv"], ["evaluate", "trees.csv"], *(
    ["fit", "trees.csv", "--model", "m", *more]
    for more in (["--method", "svm"], ["--set", "l2"], ["--max-time", "-1"]))])
def test_usage_ends_with_status_2(argv, folder, capsys):
    with pytest.raises(SystemExit) as ended:
        main(argv)
    assert ended.value.code == 2 and "usage: cmargin" in capsys.readouterr().err


@pytest.mark.parametrize("given, words", [
    ("rank=x", "'rank' parameter"), ("ranks=3", "takes no 'ranks' by --set; it takes loss, rank"),
    ("n_jobs=2", "takes no"), ("loss=hinge", "'loss' parameter")])
def test_parameters_that_are_refused(given, words, folder, capsys):
    assert words in failed(capsys, "fit", "trees.csv", "--model", "m", "--set", given, status=2)


def test_what_nobody_foresaw_is_a_sentence_too(folder, capsys, monkeypatch):
    def broken(*arguments, **more):
        raise ZeroDivisionError("so it goes")

    monkeypatch.setattr(estimators, "make", broken)
    assert "ZeroDivisionError: so it goes (CMARGIN_TRACEBACK=1" in failed(capsys, "fit", "trees.csv", "--model", "m")
    monkeypatch.setenv("CMARGIN_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        main(["fit", "trees.csv", "--model", "m"])


def test_warnings_are_a_line(folder, capsys):
    assert main(["fit", "trees.csv", "--model", "m", "--method", "smsvm", "--set", "max_passes=2"]) == 0
    err = capsys.readouterr().err
    assert re.fullmatch(r"cmargin: warning: SmSVMClassifier stopped at [^\n]*\n", err)


def test_another_version_warns(folder, capsys):
    main(["fit", "trees.csv", "--model", "m", "--quiet"])
    told = vars(load("m"))
    del told["encoder"]                          # as they were before there was one
    (folder / "m").write_bytes(pickle.dumps({"kind": "cmargin model", "version": "0.0.1", "model": told}))
    assert "--trust-pickle opens it" in failed(capsys, "predict", "trees.csv", "--model", "m")
    assert main(["predict", "trees.csv", "--model", "m", "--trust-pickle"]) == 0
    assert "m was made by cmargin 0.0.1; this is" in capsys.readouterr().err


# ---------------------------------------------------------------- interrupts and progress

def test_an_interrupt_stores_the_best_weights(folder, capsys, monkeypatch):
    def watched(estimator, n_problems, bar):
        def callback(model):
            if model.n_iter_ == 2:
                raise KeyboardInterrupt
        estimator.callback = callback

    monkeypatch.setattr(estimators, "report_passes", watched)
    assert main(["fit", "trees.csv", "--model", "m", "--set", "step_size=1.0"]) == 130
    assert "Interrupted: the best weights so far are in m." in capsys.readouterr().out
    found = load("m")
    assert found.facts["interrupted"] and found.classifier.n_iter_ == 2 and found.classifier.callback is None
    assert main(["evaluate", "trees.csv", "--model", "m"]) == 0
    assert "; interrupted." in capsys.readouterr().out


def test_the_same_command_goes_on_from_a_checkpoint(folder, capsys, monkeypatch):
    command = ["fit", "trees.csv", "--model", "m", "--set", "loss=logistic", "--checkpoint", "kept"]
    with monkeypatch.context() as patch:
        patch.setattr(estimators, "report_passes", lambda estimator, n_problems, bar: estimator.set_params(
            callback=interrupting, checkpoint=Checkpoint("kept", passes=1)))
        assert main(command) == 130 and (folder / "kept").exists()
    assert main(command) == 0 and not (folder / "kept").exists()
    found = load("m").classifier
    main([*command[:-2], "--model", "whole"])
    np.testing.assert_array_equal(found.coef_, load("whole").classifier.coef_)
    assert found.checkpoint is None and found.n_iter_ == 10


def interrupting(model):
    if model.n_iter_ == 3:
        raise KeyboardInterrupt


def test_no_gap_is_no_certificate(folder, capsys):
    # with l2=0 none is known: it was "certified to nan", and JSON refused the number
    main(["fit", "trees.csv", "--model", "m", "--method", "smsvm", "--set", "l2=0", "--set", "max_passes=20"])
    assert "certified" not in capsys.readouterr().out
    assert main(["evaluate", "trees.csv", "--model", "m", "--format", "json"]) == 0
    assert "largest duality gap" not in json.loads(capsys.readouterr().out)["model"]


def test_an_interrupt_before_there_is_anything(folder, capsys, monkeypatch):
    def interrupted(*arguments, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr(estimators, "make", interrupted)
    assert main(["fit", "trees.csv", "--model", "m"]) == 130
    assert capsys.readouterr().err == "cmargin: interrupted.\n" and not (folder / "m").exists()


def test_ctrl_c_in_earnest(folder):
    program = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)          # which a shell in the background ignores
from cmargin.cli import estimators
def watched(estimator, n_problems, bar):
    estimator.callback = lambda model: print("pass", flush=True) if model.n_iter_ == 1 else None
estimators.report_passes = watched
from cmargin.__main__ import main
sys.exit(main(["fit", "trees.csv", "--model", "m", "--set", "max_passes=1000000", "--set", "step_size=1.0"]))
"""
    process = started("-c", program)
    assert process.stdout.readline() == "pass\n"
    process.send_signal(signal.SIGINT)
    try:
        out, err = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 130 and "Interrupted" in out and "Traceback" not in err, (out, err)
    assert load("m").classifier.n_iter_ < 1000000


# ---------------------------------------------------------------- the command itself

def test_the_version_loads_nothing_heavy():
    code = ("import sys; from cmargin.__main__ import main\n"
            "try: main(['--version'])\n"
            "except SystemExit: print({'numpy', 'scipy', 'sklearn', 'matplotlib'} & set(sys.modules))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and re.fullmatch(r"cmargin \S+\nset\(\)\n", done.stdout), done.stderr


def test_whoever_reads_may_stop_early(folder):
    main(["fit", "trees.csv", "--model", "m", "--quiet"])
    (folder / "long.csv").write_text(csv_text().split("\n", 1)[0] + "\n" + csv_text(header=False) * 40)
    process = started("-m", "cmargin", "predict", "long.csv", "--model", "m")
    assert process.stdout.readline().strip() in NAMES
    process.stdout.close()
    assert process.stderr.read() == "" and process.wait(30) == 0
