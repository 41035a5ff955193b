"""``cmargin evaluate``: what is said of a model, as numbers, as text and as a page."""

import json
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from conftest import blobs
from sklearn.metrics import confusion_matrix, f1_score, roc_auc_score
from sklearn.preprocessing import StandardScaler
from trees import NAMES, X, Y, csv_text

from cmargin import SLNDClassifier
from cmargin.__main__ import main
from cmargin.cli import report


@pytest.fixture
def evaluated(folder, capsys):
    main(["fit", "trees.csv", "--model", "m", "--quiet", "--seed", "5"])

    def reported(*argv, data="trees.csv"):
        assert main(["evaluate", data, "--model", "m", *argv]) == 0
        return capsys.readouterr().out

    return reported


def test_numbers_are_the_librarys(evaluated):
    report = json.loads(evaluated("--format", "json"))
    rows = StandardScaler().fit_transform(X)
    model = SLNDClassifier(random_state=5).fit(rows, NAMES[Y])
    scores, shares = model.decision_function(rows), model.predict_proba(rows)
    at = np.arange(len(Y))
    others = np.where(np.arange(3) == Y[:, None], -np.inf, scores)
    lead = scores[at, Y] - others.max(axis=1)
    assert report["accuracy"] == pytest.approx(model.score(rows, NAMES[Y])) == np.mean(lead > 0)
    assert report["margins"]["median"] == pytest.approx(np.median(lead))
    assert report["margins"]["share at most 0"] == pytest.approx(np.mean(lead <= 0))
    assert report["log-loss"] == pytest.approx(-np.mean(np.log(shares[at, Y])))
    assert report["most frequent class"] == pytest.approx(np.bincount(Y).max() / len(Y))
    assert [one["rows"] for one in report["classes"]] == np.bincount(Y).tolist()
    assert report["classes"][0]["recall"] == pytest.approx(np.mean(model.predict(rows)[Y == 0] == "ash"))
    assert report["confusion matrix"] == confusion_matrix(NAMES[Y], model.predict(rows)).tolist()
    f1 = f1_score(NAMES[Y], model.predict(rows), average=None)
    assert [one["F1"] for one in report["classes"]] == pytest.approx(f1)
    assert report["mean F1"] == pytest.approx(f1.mean())
    # scores of a softmax are known but for what all of a row have in common: areas go by probabilities
    areas = [roc_auc_score(Y == c, shares[:, c]) for c in range(3)]
    assert [one["AUC"] for one in report["classes"]] == pytest.approx(areas, abs=1e-6)
    assert report["mean AUC"] == pytest.approx(np.mean(areas), abs=1e-6)


@pytest.mark.parametrize("method", ["slnd", "smsvm"])
def test_areas_of_two_classes_and_of_scores(folder, capsys, monkeypatch, method):
    np.savez("d.npz", X=X, y=Y > 0)
    main(["fit", "d.npz", "--model", "m", "--quiet", "--method", method])
    main(["evaluate", "d.npz", "--model", "m", "--format", "json"])
    found = json.loads(capsys.readouterr().out)["classes"]
    assert main(["predict", "d.npz", "--model", "m", "--what", "scores"]) == 0
    area = roc_auc_score(Y > 0, [*map(float, capsys.readouterr().out.split())])
    assert [one["AUC"] for one in found] == pytest.approx([area, area])
    monkeypatch.setattr(report, "MOST_SCORES", 10)
    main(["evaluate", "d.npz", "--model", "m"])
    assert "AUC, mean" not in capsys.readouterr().out


def test_the_text_has_the_confusion_matrix_of_few_classes(evaluated):
    lines = evaluated().splitlines()
    at = lines.index("Confusion matrix (lines: right class, columns: predicted)")
    assert lines[at + 1].split() == ["ash", "birch", "elm"] and lines[at + 2].split()[0] == "ash"
    assert [sum(map(int, line.split()[1:])) for line in lines[at + 2:at + 5]] == np.bincount(Y).tolist()


def test_labels_that_are_not_known_count_as_wrong(evaluated, folder):
    (folder / "new.csv").write_text(csv_text(labels=np.where(np.arange(300) < 30, "oak", NAMES[Y])))
    report = json.loads(evaluated("--format", "json", data="new.csv"))
    assert report["data"]["labels not known"] == 30 and 0.7 < report["accuracy"] <= 0.9
    assert sum(one["rows"] for one in report["classes"]) == 270
    assert "30 rows, counted as wrong" in evaluated(data="new.csv")


class Page(HTMLParser):
    """Tags, and whatever points outside."""

    def __init__(self, text):
        super().__init__()
        self.open, self.outside, self.tags = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.outside += [value for name, value in attributes if name in ("src", "href", "xlink:href")
                         and not value.startswith(("#", "data:"))]
        if tag not in ("meta", "br", "link"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_stands_alone(evaluated, folder):
    pytest.importorskip("matplotlib")
    assert evaluated("--format", "html", "--out", "page.html") == ""
    text = (folder / "page.html").read_text()
    page = Page(text)
    assert page.open == [] and page.outside == [] and page.tags.count("svg") == page.tags.count("figcaption") == 4
    assert all(words in text for words in ("Confusion matrix: ", "Calibration plot: ", "AUC, mean of", "F1, mean of"))
    assert "script" not in page.tags and "<title>SLNDClassifier (m; 3 classes" in text and "birch" in text


def test_the_page_without_matplotlib(evaluated, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    page = evaluated("--format", "html")
    assert "matplotlib, which is not installed" in page and Page(page).tags.count("svg") == 0


def test_the_page_escapes_names(folder, capsys):
    np.savez("d.npz", X=X, y=np.array(["<b>&", "a", "c"])[Y])
    main(["fit", "d.npz", "--model", "m", "--quiet"])
    assert main(["evaluate", "d.npz", "--model", "m", "--format", "html"]) == 0
    page = capsys.readouterr().out
    assert "<b>" not in page and "&lt;b&gt;&amp;" in page


def test_many_classes(folder, capsys):
    rows, y = blobs(n=900, d=12, k=40)
    np.savez("d.npz", X=rows, y=y)
    main(["fit", "d.npz", "--model", "m", "--quiet"])
    main(["evaluate", "d.npz", "--model", "m"])
    text = capsys.readouterr().out
    assert "Confusion matrix" not in text
    assert "right class among the best 5" in text and "The 30 classes of the lowest recall, of 40." in text
    main(["evaluate", "d.npz", "--model", "m", "--format", "html"])
    assert "the worst first" not in capsys.readouterr().err
