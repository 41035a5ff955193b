import io
import os
import sys

import numpy as np
import pytest

from cmargin.__main__ import main
from cmargin.demo import photographs, places
from cmargin.demo.table import OURS, PEERS, load, run, run_one


@pytest.fixture(scope="module")
def short_run(tmp_path_factory):
    pytest.importorskip("PIL")
    out = tmp_path_factory.mktemp("plots") / "made" / "by the demo"
    text = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(photographs, "ITERATIONS", {name: (1, 30) for name in photographs.ITERATIONS})
        patch.setattr(places, "CURVES", {name: (which, few[:2]) for name, (which, few) in places.CURVES.items()})
        return run(str(out), fits=1, stride=8, file=text), text.getvalue(), out


def test_every_classifier_on_every_data_set_has_a_row(short_run):
    results, text, _ = short_run
    names = [*(("photographs", name) for name in ("SmSVMClassifier", *photographs.ITERATIONS)),
             *(("places", name) for name in places.MAKERS)]
    assert [(r.data_set, r.classifier) for r in results] == names
    rows = text.splitlines()[1 : 1 + len(names)]
    for result, row in zip(results, rows, strict=True):
        assert row.startswith(result.data_set) and result.classifier in row
        assert f"{100 * result.top_1:.1f}" in row and f"{result.seconds:.3f}" in row
        assert (result.top_5 is None) == (result.data_set == "photographs")
        if result.top_5 is not None:
            assert f"{100 * result.top_5:.1f}" in row


def test_numbers_are_sane(short_run):
    for result in short_run[0]:
        assert (0.6 if result.data_set == "photographs" else 0.2) < result.top_1 <= 1     # a guess: 1/2, 1/50
        assert result.seconds > 0 and result.passes >= 1
        assert result.top_5 is None or 2 * result.top_1 < result.top_5 <= 1
    best = max(r.top_1 for r in short_run[0] if r.data_set == "places")
    assert all(best - r.top_1 < 0.02 for r in short_run[0] if r.data_set == "places")


def test_the_certificate_holds_against_other_solvers(short_run):
    ours, *others = [r for r in short_run[0] if r.distance is not None]
    assert ours.classifier == "SmSVMClassifier" and ours.gap <= 1e-4
    seconds, distance = ours.distance
    assert np.all(np.diff(seconds) > 0) and np.all(np.diff(distance) <= 0) and distance[-1] == ours.gap
    assert seconds[-1] == pytest.approx(ours.seconds)
    for other in others:                       # nobody is below what was proven to be below everybody
        assert min(other.distance[1]) > 0 and other.gap == other.distance[1][-1] < other.distance[1][0]


def test_curves_of_places_end_with_the_row_of_the_table(short_run):
    for result in [r for r in short_run[0] if r.data_set == "places"]:
        seconds, accuracy = result.accuracy
        assert seconds[-1] == result.seconds and accuracy[-1] == result.top_1 and (accuracy[:-1] < accuracy[-1]).all()
        theta, share = result.margin_error
        assert np.all(np.diff(share) >= 0) and share[-1] == 1
        assert share[theta == 0.5] >= 1 - result.top_1      # nothing wrong has more than half of the probability


def test_margins_are_those_of_one_vs_rest_posteriors():
    result = run_one("BSNClassifier, calibrated hinge", OURS["BSNClassifier, calibrated hinge"], load("digits"), 1)
    theta, curve = result.margin_error
    assert np.all(np.diff(curve) >= 0) and curve[-1] == 1
    # nothing wrong lies above 1/2; right rows may lie below it, where no class claims them
    assert curve[theta == 0.5] >= 1 - result.top_1 - 0.02


def test_scores_are_those_of_a_fit():
    split = load("digits")
    result = run_one("SLNDClassifier", OURS["SLNDClassifier"], split, 1)
    plain = OURS["SLNDClassifier"]().fit(split.X, split.y)
    assert plain.score(split.X_test, split.y_test) == result.top_1 and plain.n_passes_ == result.passes


def test_splits_are_standardised_on_their_training_part():
    pytest.importorskip("PIL")
    for split in (load("digits"), places.load(600), photographs.load(stride=16)):
        varied = split.X.std(axis=0) > 0
        np.testing.assert_allclose(split.X.mean(axis=0), 0, atol=1e-12)
        np.testing.assert_allclose(split.X[:, varied].std(axis=0), 1)
        assert len(split.X_test) == len(split.y_test) == -(-(len(split.X) + len(split.X_test)) // 3)
    assert split.X.shape[1] == 27 and set(split.y) == {-1, 1}


def test_plots_are_written(short_run):
    pytest.importorskip("matplotlib")
    from matplotlib.image import imread

    _, text, out = short_run
    for name in ("demo_optimum.png", "demo_accuracy.png", "demo_margin_error.png"):
        assert f"saved {out / name}" in text
        pixels = imread(out / name)[..., :3]
        assert min(pixels.shape[:2]) > 400
        assert 0.02 < np.mean(pixels.min(axis=2) < 0.98)        # not an empty sheet


def test_without_matplotlib_one_line_says_how_to_get_plots(tmp_path, monkeypatch):
    monkeypatch.setattr("cmargin.demo.table.find_spec", lambda name: None)
    text = io.StringIO()
    assert len(run(str(tmp_path), fits=1, file=text)) == len(OURS) + len(PEERS)
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
