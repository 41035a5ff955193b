"""``cmargin explain`` and ``verbose=2``: which stages a fit of SmSVM goes through, and why."""

import numpy as np
import pytest
import scipy.sparse as sp

from cmargin import SLNDClassifier, SmSVMClassifier
from cmargin.__main__ import main


def explained(capsys, *options):
    assert main(["explain", *options]) == 0
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("options, stages", [
    (["--rows", "100000", "--columns", "30"], ["Count", "Newton steps on a tenth", "Newton steps on all rows"]),
    (["--rows", "100000", "--columns", "30", "--set", "line_search=quadratic"], ["Steps of the published"]),
    (["--rows", "5000", "--columns", "400"], ["Dual"]),
    (["--rows", "5000", "--columns", "400", "--set", "linear_solver=woodbury"],
     ["Newton steps in as many", "Certificate"]),
    (["--rows", "300", "--columns", "5000", "--density", "0.01", "--set", "loss=logistic"],
     ["Newton steps by Hessian-vector"]),
    (["--rows", "1000000", "--columns", "5000", "--place", "files", "--classes", "7"], ["Newton steps on all rows"]),
    (["--method", "pursuit", "--rows", "100000", "--columns", "30"],
     ["Count", "Newton steps on a tenth", "Newton steps on all rows"]),
    (["--method", "pursuit", "--rows", "60", "--columns", "300"],
     ["Newton steps in as many", "Newton steps on all rows"]),
    (["--method", "pursuit", "--rows", "100000", "--columns", "3000"], ["Newton steps on all rows"]),
    (["--method", "pursuit", "--rows", "100000", "--columns", "30", "--set", "scale=one-shot", "--set", "l2=0.1"],
     ["Newton steps on all rows"]),
    (["--method", "pursuit", "--rows", "100000", "--columns", "30", "--set", "solver=gd"], ["Gradient descent"]),
    (["--method", "slnd", "--rows", "60000", "--columns", "784", "--classes", "10"],
     ["Trial of rank 1,", "Trial of the rank at the knee", "Trial of a relative step of 4",
      "Trial of a relative step of 1", "Stochastic passes"]),
    (["--method", "slnd", "--rows", "1000", "--columns", "50", "--classes", "10", "--set", "rank=5"],
     ["Trial of rank 5, at a relative step of 2,", "Trial of a relative step of 4", "Trial of a relative step of 1",
      "Stochastic passes", "Penalised optima"]),
    (["--method", "slnd", "--rows", "60000", "--columns", "50", "--classes", "10", "--set", "step_size=0.5"],
     ["Trial of rank 1, at a relative step of 0.5,", "Trial of the rank", "Stochastic passes"]),
    (["--method", "slnd", "--rows", "1000", "--columns", "50", "--set", "step_size=0.5"], ["Stochastic passes"]),
    (["--method", "slnd", "--rows", "60", "--columns", "50", "--classes", "3"], ["Penalised optim"]),
    (["--method", "slnd", "--rows", "1000", "--columns", "50"],
     ["Trial of the rank at the knee of the spectrum, at a relative step of 0.1", "Trial of a relative step of 0.2",
      "Trial of a relative step of 0.05", "Stochastic passes"]),
    (["--method", "slnd", "--rows", "1000", "--columns", "50", "--classes", "3", "--set", "l2=1e-3"],
     ["Penalised optimum"]),
])
def test_the_stages_of_a_shape_are_named_in_their_order(options, stages, capsys):
    first, *lines = explained(capsys, *options)
    assert "rows of" in first and len(lines) == len(stages)
    for number, (line, stage) in enumerate(zip(lines, stages, strict=True), 1):
        assert line.startswith(f"{number}. {stage}") and ", as " in line


def test_the_rows_of_a_file_say_what_they_are(tmp_path, capsys):
    X = sp.random(40, 300, 0.1, format="csr", random_state=0)
    sp.save_npz(tmp_path / "X.npz", X)
    np.save(tmp_path / "y.npy", np.arange(40) % 3)
    first, *_ = explained(capsys, str(tmp_path / "X.npz"), "--labels", str(tmp_path / "y.npy"), "--set", "C=2.0")
    assert first.startswith("40 rows of 300 columns (sparse float64, 30 entries a row, in memory), 3 binary problems")
    assert f"l2={1 / 80:.3g}" in first


def test_the_joint_hinge_names_its_own_penalty_and_refuses_an_indicator(tmp_path, capsys):
    joint = "--set", "multi_class=crammer_singer", "--set", "l2=0.25"
    for classes, l2 in ((2, "l2=0.125,"), (5, "l2=0.25,")):
        assert l2 in explained(capsys, "--rows", "100", "--columns", "5", "--classes", str(classes), *joint)[0]
    (tmp_path / "several").write_text("1,2 1:0.5\n3 2:1\n1 1:2\n")
    assert main(["explain", str(tmp_path / "several"), *joint]) == 2
    assert "a label indicator needs multi_class='ovr'" in capsys.readouterr().err


@pytest.mark.parametrize("options, wanted", [
    (["--rows", "10"], "DATA, or --rows and --columns"),
    (["--rows", "10", "--columns", "3", "--set", "loss=none"], "loss"),
    (["--rows", "10", "--columns", "3", "--set", "linear_solver=cg", "--set", "l1=1"], "needs l1=0"),
])
def test_what_no_fit_would_take_is_refused(options, wanted, capsys):
    assert main(["explain", *options]) > 0
    assert wanted in capsys.readouterr().err


def test_verbose_2_prints_the_plan_and_every_stage_that_begins(capsys):
    X = np.random.default_rng(0).standard_normal((200, 5))
    SmSVMClassifier(verbose=2).fit(X, X[:, 0] > 0)
    lines = capsys.readouterr().out.splitlines()
    plans = [line for line in lines if line.startswith("SmSVMClassifier plan: ")]
    assert len(plans) == 2 and "200 rows of 5 columns (dense float64, in memory)" in plans[0]
    assert plans[1].endswith("by a Cholesky factor of 6 unknowns.")
    assert any(line == "SmSVMClassifier " + plans[1].split("1. ")[1] for line in lines)
    SmSVMClassifier(verbose=1).fit(X, X[:, 0] > 0)
    assert "plan" not in capsys.readouterr().out


def test_verbose_2_prints_the_trials_of_slnd_and_what_follows(capsys):
    X = np.random.default_rng(0).standard_normal((300, 5))
    for y, trials in ((X[:, :3].argmax(axis=1), 3), (X[:, 0] > 0, 2)):
        SLNDClassifier(verbose=2, random_state=0, max_passes=5).fit(X, y)
        lines = capsys.readouterr().out.splitlines()
        assert sum(line.startswith("SLNDClassifier Trial of ") for line in lines) >= trials
        assert any(line.startswith("SLNDClassifier pass 1: ") for line in lines)
        SLNDClassifier(verbose=1, random_state=0, max_passes=5).fit(X, y)
        assert "Trial" not in capsys.readouterr().out


def test_the_joint_hinge_is_explained_with_its_penalty(capsys):
    # it was said to have l2=0, which it refuses
    given = ["--set", "multi_class=crammer_singer", "--set", "C=1"]
    lines = explained(capsys, "--rows", "100", "--columns", "5", "--classes", "3", *given)
    assert "3 classes together" in lines[0] and "l2=0.01," in lines[0] and "joint hinge" in lines[1]


def test_l1_of_the_multinomial_form_is_explained(capsys):
    lines = explained(capsys, "--method", "slnd", "--rows", "900", "--columns", "50", "--classes", "5",
                      "--set", "l1=0.1")
    assert "l1=0.1" in lines[0] and "columns that count, as l1 is above 0" in lines[1]
