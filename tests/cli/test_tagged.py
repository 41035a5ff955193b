"""Files with several labels a row: svmlight text, also with the counts of the extreme classification repository."""

import gzip
import json

import numpy as np
import pytest
import scipy.sparse as sp
from trees import X, Y, failed

from cmargin.__main__ import main
from cmargin.cli import kinds
from cmargin.cli.model import load
from cmargin.margins import label_propensities, ndcg_at_k, precision_at_k, ps_precision_at_k

S = np.where(X > np.median(X), np.round(X, 3), 0.0)
S[:, 4] = 1.0                                                # a line without labels and columns is no row
S = sp.csr_matrix(S)
NAMES = np.array([1, 5, 7, 40])
TAGS = np.stack([Y == 0, Y > 0, S.toarray()[:, 0] > 0, Y == 2], axis=1).astype(int)
TAGS[::9] = 0                                                # rows without labels
FIT = ("--method", "smsvm", "--model", "m")


def text(names=NAMES, first=1, counts="", rows=slice(None), tags=TAGS):
    """Lines of the rows, whose columns are numbered from ``first``."""
    lines = [counts] if counts else []
    for row, there in zip(S.toarray()[rows], tags[rows], strict=True):
        lines.append(" ".join([",".join(str(names[j]) for j in np.flatnonzero(there)),
                               *(f"{j + first}:{row[j]:g}" for j in np.flatnonzero(row))]))
    return "".join(line + "\n" for line in lines)


def repository(**more):
    """The same as the repository writes it: there are 6 labels, of which no row has the last two."""
    return text(names=np.arange(4), first=0, counts="300 5 6", **more)


@pytest.mark.parametrize("name, pack", [("tags.svm", bytes), ("tags", bytes), ("tags.txt", bytes),
                                        ("tags.svm.gz", gzip.compress)])
@pytest.mark.parametrize("counts", [False, True])
def test_they_are_trained_on_evaluated_and_predicted(name, pack, counts, folder, capsys):
    (folder / name).write_bytes(pack((repository() if counts else text()).encode()))
    assert main(["fit", name, *FIT, "--top", "2"]) == 0
    heard = capsys.readouterr()
    model = load("m")
    scores, y = model.classifier.decision_function(S), TAGS
    if counts:
        assert "Labels 4, 5 are absent from all training examples" in heard.err
        y = np.column_stack([TAGS, np.zeros((300, 2), int)])
    assert model.labels.tolist() == (list(range(6)) if counts else NAMES.tolist())
    np.testing.assert_array_equal(model.positives, y.sum(axis=0))
    at = precision_at_k(scores, y, (1, 2))
    assert f"300 rows x 5, {len(model.labels)} labels: " in heard.out
    assert f"on these rows P@1 {100 * at[0]:.2f} %, P@2 {100 * at[1]:.2f} %." in heard.out

    assert main(["evaluate", name, "--model", "m", "--format", "json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["precision"] == pytest.approx({"1": at[0], "2": at[1]})
    assert facts["ndcg"]["2"] == pytest.approx(ndcg_at_k(scores, y, 2))
    assert facts["propensity-scored precision"]["1"] == pytest.approx(
        ps_precision_at_k(scores, y, label_propensities(y), 1))
    recall = ((scores[:, 1] > 0) & (TAGS[:, 1] > 0)).sum() / TAGS[:, 1].sum()
    assert facts["labels"][1] == {"label": str(model.labels[1]), "rows": int(TAGS[:, 1].sum()),
                                  "recall": pytest.approx(recall), "precision": facts["labels"][1]["precision"]}
    for form in ("text", "html"):
        assert main(["evaluate", name, "--model", "m", "--top", "3", "--format", form]) == 0
        said = capsys.readouterr().out
        assert all(word in said for word in ("P@3", "PSnDCG@1", f"{len(model.labels)} labels", "labels a row"))

    assert main(["predict", name, "--model", "m"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said == [",".join(map(str, model.labels[row > 0])) for row in scores]
    assert main(["predict", name, "--model", "m", "--top", "3"]) == 0
    best = [line.split(",") for line in capsys.readouterr().out.splitlines()]
    np.testing.assert_array_equal(np.array(best, int), model.labels[np.argsort(-scores, axis=1, kind="stable")[:, :3]])
    assert main(["predict", name, "--model", "m", "--top", "3", "--out", "best.npy"]) == 0
    np.testing.assert_array_equal(np.load("best.npy"), np.array(best, int))
    assert main(["predict", name, "--model", "m", "--what", "scores"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == ",".join(map(str, model.labels))


def test_names_that_are_words(folder, capsys):
    words = np.array(["ash", "big", "old oak".replace(" ", "_"), "élan"])
    (folder / "tags.svm").write_text(text(words), encoding="utf-8")
    assert main(["fit", "tags.svm", *FIT, "--quiet"]) == 0
    assert load("m").labels.tolist() == sorted(words.tolist())
    assert main(["predict", "tags.svm", "--model", "m", "--top", "1"]) == 0
    assert set(capsys.readouterr().out.split()) <= set(words.tolist())


def test_rows_without_labels_are_predicted(folder, capsys):
    (folder / "tags.svm").write_text(text())
    (folder / "rows.svm").write_text(text(tags=np.zeros_like(TAGS)))
    (folder / "one.svm").write_text("".join(f"{y}{line}" for y, line in
                                            zip(Y, (folder / "rows.svm").read_text().splitlines(True), strict=True)))
    for trained in ("tags.svm", "one.svm"):
        assert main(["fit", trained, *FIT, "--quiet"]) == 0
        assert main(["predict", "rows.svm", "--model", "m"]) == 0
        assert main(["predict", trained, "--model", "m"]) == 0
        said = capsys.readouterr().out.splitlines()
        assert said[:300] == said[300:] and len(said) == 600
    assert "rows.svm holds no labels" in failed(capsys, "fit", "rows.svm", *FIT)
    assert "rows.svm holds no labels" in failed(capsys, "evaluate", "rows.svm", "--model", "m")


def test_labels_that_the_model_does_not_know_are_missed(folder, capsys):
    (folder / "tags.svm").write_text(text())
    assert main(["fit", "tags.svm", *FIT, "--quiet"]) == 0
    (folder / "more.svm").write_text("8,1 1:1\n9,8 2:1\n 3:1\n7 1:0.5\n")         # the last row alone has one label
    assert main(["evaluate", "more.svm", "--model", "m", "--format", "json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["data"]["labels not known"] == 3 and facts["precision"]["3"] <= 2 / 12
    assert main(["evaluate", "more.svm", "--model", "m"]) == 0
    assert "labels the model does not know  3, counted as missed" in capsys.readouterr().out


def test_the_best_classes_of_one_label_a_row(folder, capsys):
    assert main(["fit", "trees.csv", *FIT, "--top", "2"]) == 0
    assert "right class among the best 2 " in capsys.readouterr().out
    assert main(["predict", "trees.csv", "--model", "m", "--top", "2"]) == 0
    best = [line.split(",") for line in capsys.readouterr().out.splitlines()]
    assert main(["predict", "trees.csv", "--model", "m"]) == 0
    assert [one[0] for one in best] == capsys.readouterr().out.split() and {len(one) for one in best} == {2}
    assert "--top where rows have several labels" in failed(capsys, "evaluate", "trees.csv", "--model", "m", "--top",
                                                            "2", status=2)


@pytest.mark.parametrize("content, words", [
    (repository().replace("300 5 6", "301 5 6"), "tags.svm, line 1: it says that there are 301 rows, and 300 follow"),
    (repository().replace("300 5 6", "299 5 6"), "tags.svm, line 1: it says that there are 299 rows, and 300 follow"),
    ("2 5 3\n0,2 1:1\n1,3 2:1\n", "tags.svm, line 3: the label 3; by the first line there are 3, numbered from 0 to 2"),
    ("2 5 3\n-1 1:1\n1,2 2:1\n", "tags.svm, line 2: the label -1; by the first line there are 3"),
    ("2 5 3\nash 1:1\n1,2 2:1\n", "tags.svm, line 2: the label ash"),
    ("2 5 3\n0 1:1\n1 5:1\n", "tags.svm, line 3: column 5; its first line says 5, numbered from 0 to 4"),
    ("2 5 3\n0 1:1\n1 x:1\n", "tags.svm, line 3: "), ("1,2 1:1\n3 2:1 4\n", "tags.svm, line 2: "),
    ("1,,2 1:1\n3 2:1\n", "tags.svm, line 1: between two commas, or at an end, a label is missing"),
    ("1,2 1:1\n3, 2:1\n", "tags.svm, line 2: between two commas, or at an end, a label is missing"),
    ("1,2 1:1\n3 0:1\n", "tags.svm, line 2: Invalid index 0 in SVMlight/LibSVM data file. Its columns are numbered "
                         "from 0: --zero-based."),
    ("1,2 1:1\nnan 2:1\n", "tags.svm has a label 'nan', which stands for a missing one"),
    ("1,2 1:1\n3 99999999999:1\n", "tags.svm, line 2: a column's number is beyond"),
    ("0 5 3\n", "tags.svm has no rows"), ("1 1:1\n 2:1\n2 1:1\n", "tags.svm, line 2: "),
    ("1,2 1:nan\n", "NaN"), ("2 5 9999999999\n0 1:1\n1 2:1\n", "tags.svm, line 1: ")])
def test_what_is_refused_names_the_line(content, words, folder, capsys):
    (folder / "tags.svm").write_text(content)
    assert words in failed(capsys, "fit", "tags.svm", *FIT)


def test_a_row_of_nothing_is_one_where_the_first_line_counts(folder):
    lines = repository().splitlines(keepends=True)
    lines[0], lines[5] = "301 5 6\n", lines[5] + "\n"
    (folder / "tags.svm").write_text("".join(lines))
    assert main(["fit", "tags.svm", *FIT, "--quiet"]) == 0
    assert load("m").facts["rows"] == 301


def test_more_labels_than_there_are(folder, capsys):
    (folder / "tags.svm").write_text(text())
    assert "--top 5: tags.svm has 4 labels" in failed(capsys, "fit", "tags.svm", *FIT, "--top", "5")
    assert main(["fit", "tags.svm", *FIT, "--quiet"]) == 0
    assert "--top 5: m has 4 labels" in failed(capsys, "predict", "tags.svm", "--model", "m", "--top", "5")
    assert "--top 5: the model has 4 labels" in failed(capsys, "evaluate", "tags.svm", "--model", "m", "--top", "5")
    assert "--top goes with --what labels" in failed(capsys, "predict", "tags.svm", "--model", "m", "--top", "2",
                                                     "--what", "scores", status=2)
    (folder / "wide.svm").write_text("1,5 1:1\n5 9:1\n")
    assert "wide.svm, line 2: column 9; the model was trained on 5, numbered from 1 to 5" in failed(
        capsys, "predict", "wide.svm", "--model", "m")
    assert "trees.csv has one label a row, and the model has several" in failed(capsys, "evaluate", "trees.csv",
                                                                                "--model", "m")


@pytest.mark.parametrize("method, words", [
    ("smsvm", "4 binary problems"), ("slnd", "4 binary problems, loss 'logistic'"), ("pursuit", "4 binary problems")])
def test_labels_are_explained_as_problems_of_their_own(method, words, folder, capsys):
    # SLND's were said to be trained together, by the multinomial loss
    (folder / "tags.svm").write_text(text())
    assert main(["explain", "tags.svm", "--method", method]) == 0
    assert words in capsys.readouterr().out.splitlines()[0]


def test_text_is_known_by_what_is_in_it():
    for begin in (b"3 5 4\n1,2 3:1\n 4:1\n", b"1,2 3:1\n4:1 5:1\n", b"1 3:1\n2 4:1\n"):
        assert kinds._kind_of_text(begin) == "svmlight"
    for begin in (b"3 5 4\n1 2 3\n", b"1,2,3\n4,5,6\n", b"time,a\n12:30,1\n"):
        assert kinds._kind_of_text(begin) == "csv"


@pytest.mark.parametrize("low", [0, -1])
@pytest.mark.parametrize("apart", [False, True])
def test_an_indicator_in_arrays_is_evaluated(folder, capsys, low, apart):
    # what was trained on could not be evaluated
    y = np.where(TAGS > 0, 1, low)
    np.savez("d.npz", X=X) if apart else np.savez("d.npz", X=X, y=y)
    np.save("y.npy", y)
    given = ["d.npz", *["--labels", "y.npy"] * apart]
    assert main(["fit", *given, *FIT, "--quiet"]) == 0
    model = load("m")
    assert model.labels.tolist() == [0, 1, 2, 3] and model.positives.tolist() == TAGS.sum(axis=0).tolist()
    assert main(["evaluate", *given, "--model", "m", "--format", "json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    scores = model.classifier.decision_function(model._scaled(X))
    assert facts["precision"]["1"] == pytest.approx(precision_at_k(scores, TAGS, 1))
    assert main(["predict", *given, "--model", "m"]) == 0
    assert capsys.readouterr().out.splitlines() == [",".join(map(str, np.flatnonzero(row > 0))) for row in scores]
    np.savez("less.npz", X=X, y=y[:, :3])
    assert "less.npz has an indicator of 3 labels; the model was trained on 4" in failed(
        capsys, "evaluate", "less.npz", "--model", "m")
    np.savez("counts.npz", X=X, y=3 * TAGS)
    assert "must then hold 0 and 1, or -1 and 1" in failed(capsys, "fit", "counts.npz", "--model", "n")


def test_labels_in_one_column_are_one_a_row(folder, capsys):
    np.savez("d.npz", X=X, y=Y[:, None])
    assert main(["fit", "d.npz", "--model", "m", "--quiet"]) == 0 and load("m").labels is None
    assert main(["evaluate", "d.npz", "--model", "m"]) == 0
    assert not capsys.readouterr().err
