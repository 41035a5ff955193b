import io
import os
import sys

import numpy as np
import pytest

from cmargin.__main__ import main
from cmargin.demo.table import CERTIFIED, DATA_SETS, OURS, PEERS, Trace, load, run, run_ours


@pytest.fixture(scope="module")
def short_run(tmp_path_factory):
    out = tmp_path_factory.mktemp("plots") / "made" / "by the demo"
    text = io.StringIO()
    return run(str(out), max_passes=3, fits=1, file=text), text.getvalue(), out


def test_every_classifier_on_every_data_set_has_a_row(short_run):
    results, text, _ = short_run
    names = [(data_set, name) for data_set in DATA_SETS for name in (*OURS, *CERTIFIED, *PEERS)]
    assert [(r.data_set, r.classifier) for r in results] == names
    rows = text.splitlines()[1 : 1 + len(names)]
    for result, row in zip(results, rows, strict=True):
        assert row.startswith(result.data_set) and result.classifier in row
        assert f"{100 * result.top_1:.1f}" in row and f"{result.seconds:.3f}" in row
        assert (result.top_5 is None) == (result.data_set == "breast_cancer")
        if result.top_5 is not None:
            assert f"{100 * result.top_5:.1f}" in row


def test_numbers_are_sane(short_run):
    for result in short_run[0]:
        assert 0.9 < result.top_1 <= 1 and result.seconds > 0 and result.passes >= 1
        assert result.top_5 is None or max(result.top_1, 0.98) < result.top_5 <= 1
    best = {name: max(r.top_1 for r in short_run[0] if r.data_set == name) for name in DATA_SETS}
    assert all(best[r.data_set] - r.top_1 < 0.04 for r in short_run[0])


def test_curves_end_where_the_table_says(short_run):
    for result in short_run[0]:
        assert (result.trace is not None) == (result.classifier in OURS)
        assert (result.gap is not None) == (result.classifier in CERTIFIED)
        if result.trace is not None:
            passes, seconds, accuracy = result.trace
            assert len(passes) == len(seconds) == len(accuracy) == 3
            assert np.all(np.diff(passes) > 0) and np.all(np.diff(seconds) > 0) and seconds[0] > 0
            assert passes[-1] == result.passes and accuracy[-1] == result.top_1
        if result.margin_error is not None:
            theta, curve = result.margin_error
            assert np.all(np.diff(curve) >= 0) and curve[-1] == 1
            # nothing wrong lies above 1/2; right rows may lie below it, where no class claims them
            assert curve[theta == 0.5] >= 1 - result.top_1 - 0.02
    # margins are those of one-vs-rest posteriors; two classes are one problem for all of ours
    with_margins = {r.classifier for r in short_run[0] if r.margin_error is not None}
    assert with_margins == {*OURS, "SGDClassifier, log_loss"}
    joint = [r for r in short_run[0] if r.classifier == "SLNDClassifier" and r.data_set == "digits"]
    assert len(joint) == 1 and joint[0].margin_error is None


def test_scores_are_those_of_a_fit_without_the_callback():
    split = load("digits")
    result = run_ours("SLNDClassifier", OURS["SLNDClassifier"], split, 2, 1)
    plain = OURS["SLNDClassifier"]().set_params(max_passes=2).fit(split.X, split.y)
    assert plain.score(split.X_test, split.y_test) == result.top_1
    trace = Trace(split)
    trace(plain)
    assert trace.accuracy == [result.top_1] and trace.passes == [result.passes] and trace.own_seconds > 0


def test_split_is_standardised_on_its_training_part():
    for name in DATA_SETS:
        split = load(name)
        varied = split.X.std(axis=0) > 0
        np.testing.assert_allclose(split.X.mean(axis=0), 0, atol=1e-12)
        np.testing.assert_allclose(split.X[:, varied].std(axis=0), 1)
        assert len(split.X_test) == len(split.y_test) == -(-(len(split.X) + len(split.X_test)) // 3)


def test_plots_are_written(short_run):
    pytest.importorskip("matplotlib")
    from matplotlib.image import imread

    _, text, out = short_run
    for name in ("demo_convergence.png", "demo_margin_error.png"):
        assert f"saved {out / name}" in text
        pixels = imread(out / name)[..., :3]
        assert min(pixels.shape[:2]) > 400
        assert 0.02 < np.mean(pixels.min(axis=2) < 0.98)        # not an empty sheet


def test_without_matplotlib_one_line_says_how_to_get_plots(tmp_path, monkeypatch):
    monkeypatch.setattr("cmargin.demo.table.find_spec", lambda name: None)
    monkeypatch.setattr("cmargin.demo.table.DATA_SETS", ("breast_cancer",))
    text = io.StringIO()
    assert len(run(str(tmp_path), max_passes=1, fits=1, file=text)) == len(OURS) + len(CERTIFIED) + len(PEERS)
    last = text.getvalue().splitlines()[-1]
    assert "pip install matplotlib" in last and not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written_to_is_refused_before_training(tmp_path, capsys, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setattr("cmargin.demo.table.run", lambda out: pytest.fail("trained first"))
    for refuse in (str(tmp_path / "file"), str(tmp_path / "file" / "inside")):
        with pytest.raises(SystemExit) as ended:
            main(["demo", "--out", refuse])
        assert ended.value.code == 2 and "cannot save to" in capsys.readouterr().err
    monkeypatch.setattr("os.access", lambda path, mode: False)      # the tests may be run by root, who may do all
    with pytest.raises(SystemExit):
        main(["demo", "--out", str(tmp_path)])
    assert "may not be written" in capsys.readouterr().err


def test_command_line_hands_the_folder_on(tmp_path, monkeypatch):
    heard = []
    monkeypatch.setattr("cmargin.demo.table.run", heard.append)
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--out", str(tmp_path)]) == main(["demo"]) == 0
    assert heard[0] == str(tmp_path) and "cmargin.demo" in sys.modules
    assert os.path.isdir(heard[1]) and not os.listdir(tmp_path)            # not where the command was given
