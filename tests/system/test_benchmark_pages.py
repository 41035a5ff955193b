"""Recorded benchmarks: read as asv writes them, compared by share and amount, and a page with the machine's limits."""

import json
from pathlib import Path

import pytest

pytest.importorskip("asv_benches", reason="the benchmarks are not beside the tests")

from asv_benches import limits
from asv_benches.page import main as make_page
from asv_benches.page import page, shown
from asv_benches.recorded import newest, read
from asv_benches.regress import compare, is_worse, main

UNITS = {"smsvm.Pass.time_look": "seconds", "smsvm.Fit.track_passes": "passes",
         "slnd.WholeFit.track_test_accuracy": "share", "slnd.WholeFit.peakmem_fit": "bytes"}


def record(folder, name, evaluation=(0.1, 0.2), passes=9.0, accuracy=0.97, memory=1e8):
    """A file of results as asv 0.6 writes them."""
    (folder / "box").mkdir(exist_ok=True)
    (folder / "benchmarks.json").write_text(json.dumps(
        {"version": 2, **{key: {"name": key, "unit": unit} for key, unit in UNITS.items()}}))
    rows = {"smsvm.Pass.time_look": [list(evaluation), [["'tall'", "'small'"]], "v"],
            "smsvm.Fit.track_passes": [[passes], [], "v"],
            "slnd.WholeFit.track_test_accuracy": [[accuracy], [["'SLND'"]], "v"],
            "slnd.WholeFit.peakmem_fit": [[memory], [["'SLND'"]]],
            "gone.Since.time_it": [[1.0], []]}
    path = folder / "box" / f"{name}.json"
    path.write_text(json.dumps({"commit_hash": "0123456789abcdef",
                                "result_columns": ["result", "params", "version"], "results": rows}))
    return path


def test_what_asv_wrote_is_read(tmp_path):
    values = read(record(tmp_path, "one", evaluation=(0.25, None)))
    assert len(values) == 5
    evaluation = values["smsvm.Pass.time_look", ("tall",)]
    assert (evaluation.value, evaluation.unit) == (0.25, "seconds")
    assert values["smsvm.Pass.time_look", ("small",)].value is None
    assert values["smsvm.Fit.track_passes", ()].value == 9.0


@pytest.mark.parametrize("old, new, unit, name, worse", [
    (0.1, 0.2, "seconds", "time_fit", True), (0.1, 0.12, "seconds", "time_fit", False),
    (1e-5, 5e-5, "seconds", "time_fit", False),                  # five times as long, and nobody would notice
    (10.0, 11.0, "seconds", "time_fit", False),                  # a second more, and a tenth
    (0.2, 0.1, "seconds", "time_fit", False), (1e8, 2e8, "bytes", "peakmem_fit", True),
    (1e6, 2e6, "bytes", "peakmem_fit", False), (0.97, 0.9, "share", "track_test_accuracy", True),
    (0.97, 0.965, "share", "track_test_accuracy", False), (0.9, 0.97, "share", "track_test_accuracy", False),
    (0.8, 0.4, "of the limit", "track_share_of_the_binding_limit", True),
    (0.4, 0.8, "of the limit", "track_share_of_the_binding_limit", False),
    (1e-5, 1e-4, "of the objective", "track_gap", True),
])
def test_worse_is_by_share_and_by_amount(old, new, unit, name, worse):
    assert is_worse(old, new, unit, name) is worse


def test_two_runs_are_compared(tmp_path, capsys):
    old = record(tmp_path, "old")
    assert main([str(old), str(old)]) == 0 and "0 of 5 are worse" in capsys.readouterr().out
    new = record(tmp_path, "new", evaluation=(0.5, None), accuracy=0.5)
    lines, count = compare(read(old), read(new))
    assert count == 5 and len(lines) == 3 and any("tall: 0.1 -> 0.5 seconds" in line for line in lines)
    assert any("small: failed" in line for line in lines)
    assert main([str(old), str(new)]) == 1 and main([str(old), str(new), "--share", "100"]) == 1
    # it failed before
    assert main([str(new), str(record(tmp_path, "third", evaluation=(0.5, 0.2), accuracy=0.5))]) == 0


def test_the_page_has_a_limit_beside_a_kernel(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "_rates", {"memory": lambda threads: 1e10, "sgemm": lambda threads: 1e11,
                                           "dsyrk": lambda threads: 1e11})
    assert limits.seconds("smsvm.Fit.track_passes", ()) is None
    least, binding = limits.seconds("smsvm.Pass.time_look", ("square",))
    assert binding == "dsyrk" and least == pytest.approx(100_000 * 512 * 513 / 1e11)
    assert limits.seconds("smsvm.Pass.time_along", ("tall",)) == (16 * 581_012 / 1e10, "memory")
    path = record(tmp_path, "one")
    text = page(read(path), "0123456789abcdef")
    assert "of commit 01234567:" in text
    assert "## smsvm: Pass" in text and "25.1 ms (memory)" in text and "0.25" in text and "| 9 passes" in text
    assert make_page([str(path), "--out", str(tmp_path / "page.md")]) == 0
    assert (tmp_path / "page.md").read_text() == text
    assert newest(tmp_path) == path


def test_figures_are_short():
    assert shown(None, "s") == "failed" and shown(2.345, "s") == "2.35 s" and shown(2.5e-5, "seconds") == "25 µs"
    assert shown(3e8, "bytes") == "300 MB" and shown(0.5, "unit") == "0.5" and shown(0.5, "share") == "0.5 share"


def test_every_limit_is_of_a_benchmark_that_there_is():
    folder = Path(__file__).resolve().parents[2] / "asv_benches" / "benchmarks"
    for name in limits.WORK:
        file, kind, method = name.split(".")
        text = (folder / f"{file}.py").read_text()
        assert f"class {kind}" in text and f"def {method}(" in text, name
