"""The frame of the experiments, and every experiment on small data; what they find is not the tests' affair."""

import csv
import io
import json
import re

import numpy as np
import pytest

from cmargin.__main__ import main
from cmargin.datasets import DataNotFound, DataSet

pytest.importorskip("experiments", reason="the benchmarks are not beside the tests")

from experiments import NAMES, _frame, _page, find
from experiments._frame import Claim, Progress, Store, Table, collect, run

SECTIONS = ["## Setting", "## The paper's figures", "## Ours", "## Did the paper's claims hold?", "## Machine"]


@pytest.fixture(autouse=True)
def no_data_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("CMARGIN_DATA", raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "nothing"))


# ---------------------------------------------------------------- a small experiment of our own

class Toy:
    """Squares of three numbers; counts how often it measures, and can be told to fail."""

    TITLE, SOURCE, SETTING, PAPER = "Squares", "nowhere", "Numbers.", "None."

    def __init__(self, fail_at=None, error=None):
        self.measured, self.fail_at, self.error = [], fail_at, error

    def cells(self, quick):
        return [{"x": x} for x in ((1,) if quick else (1, 2, 3))]

    def measure(self, x):
        if x == self.fail_at:
            raise self.error
        self.measured.append(x)
        return [{"square": np.int64(x * x), "parts": np.arange(x), "nothing": None}]

    def tables(self, rows):
        return [Table("Squares", ("x", "square"), [[r["x"], r["square"]] for r in rows])]

    def claims(self, rows):
        return [Claim("all are odd.", all(r["square"] % 2 for r in rows), "their squares."),
                Claim("something else.", None, "no figures."), Claim("asks.", "asked", "an answer.")]


def gather(toy, folder, quick=False):
    return collect(toy, Store(folder), quick, Progress("toy", 0, io.StringIO()))


def test_finished_cells_are_not_measured_again(tmp_path):
    first = Toy(fail_at=3, error=KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        gather(first, tmp_path)
    assert first.measured == [1, 2]
    second = Toy()
    outcome = gather(second, tmp_path)
    assert second.measured == [3]
    assert [(r["x"], r["square"], r["parts"]) for r in outcome.rows] == [(1, 1, [0]), (2, 4, [0, 1]), (3, 9, [0, 1, 2])]
    third = Toy()
    assert gather(third, tmp_path).rows == outcome.rows and third.measured == []


def test_a_cell_file_cut_short_is_measured_again_and_a_changed_cell_is_another(tmp_path):
    gather(Toy(), tmp_path)
    store = Store(tmp_path)
    path = store.path({"x": 2})
    path.write_text(path.read_text()[:20])
    again = Toy()
    gather(again, tmp_path)
    assert again.measured == [2]
    assert store.path({"x": 2}) != store.path({"x": 2.0}) != store.path({"x": 2, "y": None})
    assert not list(tmp_path.glob("*.part"))


def test_missing_data_leave_a_cell_out_and_say_so(tmp_path):
    toy = Toy(fail_at=2, error=DataNotFound("two is not here: get it."))
    outcome = gather(toy, tmp_path)
    assert toy.measured == [1, 3] and outcome.missing == ["two is not here: get it."]
    text = _page.page(toy, "toy", outcome, None, False)
    assert "Left out: two is not here: get it." in text
    assert gather(Toy(), tmp_path).missing == []             # it is measured once it can be
    with pytest.raises(DataNotFound, match="one is not here"):
        gather(Toy(fail_at=1, error=DataNotFound("one is not here.")), tmp_path / "other", quick=True)


def test_page_judges_by_the_figures(tmp_path):
    toy = Toy()
    outcome = gather(toy, tmp_path)
    text = _page.page(toy, "toy", outcome, "toy.png", False)
    assert "- **Did not hold here.** The paper: all are odd. Here: their squares." in text
    assert "- **Not measured here.** The paper: something else." in text
    assert "- **A question.** The paper: asks." in text
    assert "| 3 | 9 |" in text and "![Squares](toy.png)" in text
    assert [line for line in text.splitlines() if line.startswith("## ")] == SECTIONS
    quick = gather(toy, tmp_path, quick=True)
    text = _page.page(toy, "toy", quick, None, True)
    assert "**Held here.** The paper: all are odd." in text and "A quick run" in text and "![" not in text


def test_page_names_every_machine_but_no_host_nor_folder(tmp_path):
    import os
    import platform
    toy = Toy()
    outcome = gather(toy, tmp_path)
    text = _page.page(toy, "toy", outcome, None, False)
    assert "Python" in text and "scikit-learn" in text and "threads" in text and text.count("cores") == 1
    assert platform.node() not in text and str(tmp_path) not in text and os.getcwd() not in text
    outcome.cells[0] = {**outcome.cells[0], "machine": {**outcome.cells[0]["machine"], "processor": "Another"}}
    text = _page.page(toy, "toy", outcome, None, False)
    assert "1 of the measurements: Another" in text and "2 of the measurements: " in text


def test_warnings_of_a_measurement_are_on_the_page(tmp_path):
    import warnings

    class Warns(Toy):
        def measure(self, x):
            warnings.warn(f"after {x} passes a gap of {x}.5e-{x:02d}; raise max_passes.", stacklevel=1)
            return super().measure(x)

    toy = Warns()
    text = _page.page(toy, "toy", gather(toy, tmp_path), None, False)
    assert "Warning in 3 of them: after … passes a gap of …." in text


@pytest.mark.parametrize("value, text", [(None, ""), ("a", "a"), (3, "3"), (True, "True"), (0.0, "0"), (2.0, "2"),
                                         (0.12345678, "0.1235"), (1.5e-7, "1.50e-07"), (123456.0, "1.23e+05"),
                                         (float("inf"), "never"), (float("nan"), "–")])
def test_numbers_are_written_to_four_digits(value, text):
    assert _page.number(value) == text


def test_progress_is_one_line_on_a_terminal_and_a_line_a_cell_elsewhere(tmp_path):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    for file, newlines in ((Terminal(), 1), (io.StringIO(), 3)):
        folder = tmp_path / type(file).__name__
        collect(Toy(), Store(folder), False, Progress("toy", 0, file))
        text = file.getvalue()
        assert text.count("\n") == newlines and "3/3" in text and "x=3" in text
        again = type(file)()
        collect(Toy(), Store(folder), False, Progress("toy", 0, again))
        assert again.getvalue().count("kept") == 3


# ---------------------------------------------------------------- the experiments

@pytest.mark.parametrize("name", NAMES)
def test_every_experiment_runs_on_small_data(name, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    from matplotlib.image import imread

    outcome = run(name, tmp_path, quick=True, file=io.StringIO())
    module = find(name)
    text = (tmp_path / f"{name}-quick.md").read_text(encoding="utf-8")
    assert text.startswith(f"# {module.TITLE}\n") and "A quick run" in text
    assert [line for line in text.splitlines() if line.startswith("## ")] == SECTIONS
    assert re.search(r"\*\*(Held here|Did not hold here|Not measured here)\.\*\* The paper: ", text)
    assert "nan" not in text and "None" not in text and str(tmp_path) not in text
    pixels = imread(tmp_path / f"{name}-quick.png")[..., :3]
    assert np.mean(pixels.min(axis=2) < 0.98) > 0.005                 # not an empty sheet
    with open(tmp_path / f"{name}-quick.csv", newline="", encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == len(outcome.rows) >= 1

    def refuse(**cell):
        pytest.fail(f"measured again: {cell}")

    monkeypatch.setattr(module, "measure", refuse)
    again = run(name, tmp_path, quick=True, file=io.StringIO())
    assert json.dumps(again.rows) == json.dumps(outcome.rows)
    assert (tmp_path / f"{name}-quick.md").read_text(encoding="utf-8") == text


@pytest.mark.parametrize("name", NAMES)
def test_full_cells_are_distinct_plain_and_the_arguments_of_measure(name):
    module = find(name)
    for quick in (False, True):
        cells = module.cells(quick)
        assert len({json.dumps(cell, sort_keys=True) for cell in cells}) == len(cells) > 0
        assert all(set(cell) == set(cells[0]) or name == "pursuit-psi" for cell in cells)
    data = {cell.get("data") for cell in module.cells(False)}
    quick = {cell.get("data") for cell in module.cells(True)}
    assert quick <= {"digits", "breast_cancer", "wide", None} and (data == quick == {None} or len(data) > 1)


def test_full_experiments_without_their_data_say_how_to_get_them(tmp_path, capsys):
    assert main(["experiments", "spectrum", "--out", str(tmp_path)]) == 1
    heard = capsys.readouterr()
    assert "CMARGIN_DATA" in heard.err and "tinyimagenet" in heard.err and heard.out == ""
    assert not list(tmp_path.glob("*.md"))


def test_without_matplotlib_there_is_a_page_and_no_picture(tmp_path, monkeypatch):
    monkeypatch.setattr(_frame, "find_spec", lambda name: None)
    run("pursuit-loss", tmp_path, quick=True, file=io.StringIO())
    assert sorted(p.suffix for p in tmp_path.glob("pursuit*")) == [".csv", ".md"]
    assert "![" not in (tmp_path / "pursuit-loss-quick.md").read_text(encoding="utf-8")


# ---------------------------------------------------------------- the command

def test_list_names_every_experiment_with_its_place_in_the_paper(capsys):
    assert main(["experiments", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(NAMES)
    assert all(find(name).SOURCE in line for name, line in zip(NAMES, lines, strict=True))


@pytest.mark.parametrize("argv, words", [([], "NAME"), (["spectral"], "unknown experiment 'spectral'"),
                                         (["rank", "--slow"], "--slow"), (["list", "rank"], "'list'")])
def test_usage_errors(argv, words, capsys, tmp_path):
    with pytest.raises(SystemExit) as ended:
        main(["experiments", *argv, *(["--out", str(tmp_path)] if argv else [])])
    heard = capsys.readouterr()
    assert ended.value.code == 2 and words in heard.err and "usage: cmargin experiments" in heard.err


def test_a_folder_that_cannot_be_made_is_refused(tmp_path, capsys):
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit) as ended:
        main(["experiments", "pursuit-loss", "--out", str(tmp_path / "file" / "in")])
    assert ended.value.code == 2 and "cannot save to" in capsys.readouterr().err


def test_a_stopped_run_says_how_to_go_on(tmp_path, capsys, monkeypatch):
    def stop(**cell):
        raise KeyboardInterrupt

    monkeypatch.setattr(find("rank"), "measure", stop)
    assert main(["experiments", "rank", "--quick", "--out", str(tmp_path)]) == 130
    assert "the same command continues" in capsys.readouterr().err


def test_names_that_python_knows_are_refused_by_find():
    with pytest.raises(ValueError, match="the names are"):
        find("_frame")


# ---------------------------------------------------------------- parts with an answer of their own

def test_colon_components_keep_no_correlated_pair():
    from experiments._hinge import COMPONENTS, colon_components

    rng = np.random.default_rng(3)
    base = rng.standard_normal((62, 40))
    X = np.hstack([base, base[:, :10] + 0.1 * rng.standard_normal((62, 10))])      # ten near copies
    Z, n_left = colon_components(X)
    assert n_left == 40 and Z.shape == (62, COMPONENTS)
    np.testing.assert_allclose(Z.T @ Z, np.diag(np.diag(Z.T @ Z)), atol=1e-8)
    assert np.all(np.diff(np.diag(Z.T @ Z)) < 0)


def test_trials_are_balanced_disjoint_and_repeatable():
    from experiments._trials import trial

    X, y, X_test, y_test = trial("breast_cancer", 5)
    assert y.sum() == 0 and y_test.sum() == 0 and len(y) == 200
    assert not {row.tobytes() for row in X} & {row.tobytes() for row in X_test}
    assert np.array_equal(trial("breast_cancer", 5)[0], X) and not np.array_equal(trial("breast_cancer", 6)[0], X)


def test_curves_are_those_of_the_estimator():
    from experiments._many_classes import make, rows_of, top_1_and_5, train

    model, curve = train("SLND", "digits", max_passes=3)
    split = rows_of("digits")
    assert [row["pass"] for row in curve] == [1, 2, 3] and curve[-1]["top1"] == model.score(split.X_test, split.y_test)
    assert all(row["top1"] < row["top5"] <= 1 for row in curve)
    assert 0 < curve[0]["seconds"] < curve[1]["seconds"] < curve[2]["seconds"]
    again = make("SLND", max_passes=3).fit(split.X, split.y)             # the callback changes nothing
    assert top_1_and_5(again, split.X_test, split.y_test) == (curve[-1]["top1"], curve[-1]["top5"])


def test_plateau_stops_where_accuracy_drops():
    from experiments.rank import plateau

    group = [{"rank": k, "top1": a} for k, a in ((1, 0.90), (2, 0.80), (5, 0.895), (10, 0.9), (20, 0.893), (50, 0.7))]
    lo, hi, best = plateau(group)
    assert (lo, hi, best["rank"]) == (1, 1, 1)                # the first of equal ones; 2 cuts it off from 5
    group[0]["top1"] = 0.5
    assert plateau(group)[:2] == (5, 20)


def test_the_factor_to_equal_accuracy_takes_the_level_that_both_reach():
    from experiments.bsn_table import factor

    ours = {"top1": [0.3, 0.4, 0.5], "seconds": [1.0, 2.0, 3.0]}
    theirs = {"top1": [0.1, 0.4, 0.45], "seconds": [10.0, 20.0, 60.0]}
    slower = {"top1": [0.44, 0.5, 0.6], "seconds": [30.0, 50.0, 90.0]}
    assert factor(ours, [theirs]) == (0.45, 20.0)
    assert factor(theirs, [ours]) == (0.45, 0.05)
    assert factor(ours, [theirs, slower]) == (0.5, 50.0 / 3)


@pytest.mark.filterwarnings("ignore:Liblinear failed to converge")
def test_peers_choose_their_penalty_on_the_inner_folds_and_c_is_that_of_the_mean_loss():
    from sklearn.svm import LinearSVC

    from experiments.smsvm_table import _parameters, _select

    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 30))
    y = np.where(X[:, 0] + rng.standard_normal(300) > 0, 1, -1)
    model = LinearSVC(loss="hinge", random_state=0)
    chosen = _select(model, X, y, np.arange(300), 3, (1e-6, 1.0), (0.0,))
    assert chosen == {"l2": 1.0, "l1": 0.0}                    # noise: the strong penalty wins
    assert _parameters(LinearSVC(), {"l2": 0.01, "l1": 0.0}, 200) == {"C": 0.5}


def test_notes_name_stand_ins(monkeypatch):
    monkeypatch.setitem(_page.datasets.GENERATED, "made-up",
                        lambda seed: DataSet("made-up", None, None, note="generated, stands in for gold"))
    assert list(_page._notes([{"data": "made-up"}, {"data": "digits"}])) == [
        "`made-up`: generated, stands in for gold."]
