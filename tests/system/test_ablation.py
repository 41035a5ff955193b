"""The comparison of fits with and without a mechanism, in `asv_benches/ablation.py`."""

import json

import pytest


def fits(reads, capped=False):
    return [{"cell": cell, "seed": seed, "reads": of_cell, "iterations": 9, "gap": float("nan"), "seconds": 1.0,
             "capped": capped} for cell, of_cell in reads.items() for seed in (1, 2)]


@pytest.mark.parametrize("last, mean, own, earns", [(10.4, "1.010", "1.040", "does not earn"),
                                                    (10.6, "1.015", "1.060", "earns")])
def test_a_mechanism_earns_what_its_own_cells_lose(last, mean, own, earns, bench_script, tmp_path):
    for name, reads, capped in (("with", 10.0, False), ("without", last, True)):
        (tmp_path / name).write_text(json.dumps(fits({**dict.fromkeys("abc", 10.0), "d": reads}, capped)))
    printed = bench_script("ablation", "compare", tmp_path / "with", tmp_path / "without")
    assert "8 fits, capped: 0 with, 8 without" in printed
    assert f"reads: geometric mean {mean} of 4 cells, {own} of the 1 that differ; {earns} its lines by this" in printed
    assert "seconds: geometric mean 1.000 of 4 cells, 1.000 of the 1 that differ; does not earn" in printed


def test_a_build_compared_with_itself(bench_script, tmp_path):
    for name in ("once", "twice"):
        bench_script("ablation", "fit", tmp_path / name, "--seeds", 5, 5, "--cells", "60 x 20, logistic")
    printed = bench_script("ablation", "compare", tmp_path / "once", tmp_path / "twice")
    assert "reads: geometric mean 1.000 of 5 cells, nan of the 0 that differ" in printed
