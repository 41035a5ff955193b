import csv

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

from cmargin import race


def test_rows_are_about_one_objective():
    X, y = load_breast_cancer(return_X_y=True)
    (_, A, code), = race.problems(scale(X), y)
    rows = race.race(A, code, 1e-2, 1.0, 1, ["cmargin", "LinearSVC"])
    ours = next(row for row in rows if row["solver"] == "cmargin")
    assert {row["solver"] for row in rows} == {"cmargin", "LinearSVC"}
    assert min(row["best"] for row in rows) == 0 and ours["best"] < 1e-4 and ours["ratio"] == 1
    assert ours["0.01"] <= ours["0.001"] <= ours["0.0001"] < 1 and "gap" in ours["how"]


def test_command_prints_and_writes_a_table(tmp_path, capsys):
    path = tmp_path / "race.csv"
    assert race.main(["--data", "iris:0", "--l2", "0.01", "--time-limit", "0.3", "--solvers", "cmargin", "SGD",
                      "--n-jobs", "1", "--csv", str(path)]) == 0
    printed = capsys.readouterr().out
    assert "SGD" in printed and "cmargin" in printed
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["solver"] for row in rows] == ["cmargin", "SGD"] and np.isfinite(float(rows[0]["0.01"]))


def test_a_missing_set_is_named():
    with pytest.raises(SystemExit, match="CMARGIN_DATA"):
        race.load("covtype", None)
