"""Peers of the race that are not always there, and those that take an l1 penalty."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.linear_model import LogisticRegression

pytest.importorskip("race", reason="the benchmarks are not beside the tests")

from test_race import tiny

from race import data, hinge, losses, main, suboptimality, traces
from race.peer import ELASTIC_NET, LASSO, RIDGE, Peer

PENALTIES = {RIDGE: (0.0, 0.02), LASSO: (0.02, 0.0), ELASTIC_NET: (0.02, 0.02)}
WITH_L1 = [(loss, name, penalty) for loss, peers in losses.PEERS.items() for name, peer in peers.items()
           for penalty in peer.penalties if penalty != RIDGE and name not in losses.OURS and name != "SGD"]


def with_penalty(loss, penalty):
    l1, l2 = PENALTIES[penalty]
    return tiny(l2, l1)._replace(loss=loss)


def optimum(problem):
    run = hinge.cmargin(problem, 0.3e9, 1, 1)
    assert run.gap < 1e-8
    return suboptimality.objective(run.w, problem)


def test_a_problem_in_terms_of_the_packages():
    ridge, lasso, both = (with_penalty("logistic", penalty) for penalty in PENALTIES)
    assert [problem.penalty for problem in (ridge, lasso, both)] == list(PENALTIES)
    assert [problem.l1_ratio for problem in (ridge, lasso, both)] == [0.0, 1.0, 0.5]
    assert [problem.C * len(problem.y) for problem in (ridge, lasso, both)] == pytest.approx([50, 50, 25])


@pytest.mark.parametrize("stored", ["dense", "csr"])
@pytest.mark.parametrize("loss, name, penalty", WITH_L1)
def test_every_way_with_l1_solves_the_objective(loss, name, penalty, stored):
    peer = losses.PEERS[loss][name]
    if peer.absence():
        pytest.skip(f"{name}: {peer.absence()}")
    problem = with_penalty(loss, penalty)
    if stored == "csr":
        problem = problem._replace(X=sp.csr_matrix(problem.X))
    best = optimum(problem)
    for run, _ in peer.ways:
        with traces.quiet():
            short, long = (suboptimality.objective(run(problem, effort, 1, 1).w, problem) for effort in (1, 3000))
        assert best * (1 - 1e-7) <= long <= best * (1 + 1e-4) and long <= short * (1 + 1e-7), run


def stand_in(gap):
    """A module whose models are w = 0, with a dual value of 1 - ``gap`` of their objective, C N."""
    calls = []

    class Model:
        def __init__(self, **given):
            calls.append(given)
            self.C = given["C"]

        def fit(self, X, y):
            self.coef_, self.n_iter_, self.objective_ = np.zeros(X.shape[1]), 7, self.C * len(y)
            self.dual_gap_ = gap * self.objective_

    return SimpleNamespace(plqERM_Ridge=Model, plqERM_ElasticNet=Model, calls=calls)


def test_the_gap_told_of_rehline_is_over_its_objective(monkeypatch):
    # its dual_gap_ is a difference of objectives that are 1/l2 times ours: 50 times as much as what is told of cmargin
    problem = with_penalty("hinge", RIDGE)
    module = stand_in(0.25)
    monkeypatch.setitem(sys.modules, "rehline", module)
    run = hinge.rehline(problem, 3.0, 1, 1)
    assert run.gap == pytest.approx(0.25) and run.passes == 7 and module.calls[0]["tol"] == pytest.approx(0.1)
    assert module.calls[0]["C"] == pytest.approx(1 / (0.02 * 120)) and "l1_ratio" not in module.calls[0]
    hinge.rehline(with_penalty("hinge", ELASTIC_NET), 1.0, 1, 1)
    assert module.calls[1]["C"] == pytest.approx(1 / (0.04 * 120)) and module.calls[1]["l1_ratio"] == 0.5


def test_the_gap_told_of_rehline_holds():
    pytest.importorskip("rehline")
    for loss in ("hinge", "squared_hinge"):
        for l2 in (1e-3, 3.0):
            problem = tiny(l2)._replace(loss=loss)
            run, best = hinge.rehline(problem, 30.0, 1, 1), optimum(problem)
            objective = suboptimality.objective(run.w, problem)
            assert objective * (1 - run.gap) <= best * (1 + 1e-9) and objective <= best * (1 + run.gap + 1e-9)


def test_why_a_peer_is_absent():
    assert Peer((), "no_such_package").absence() == "not installed" and Peer(()).absence() == ""
    assert losses.without("lbfgs") == ""
    assert losses.without("newton-on-mars") == f"scikit-learn {sklearn.__version__} does not have it"
    newton_cd = losses.PEERS["logistic"]["newton-cd"]
    try:
        LogisticRegression(solver="newton-cd").fit(*data.read("iris")[:2])
    except ValueError:
        assert newton_cd.absence()
    else:
        assert not newton_cd.absence()


def test_a_race_says_who_is_not_in_it_and_why(monkeypatch, capsys):
    # those that are absent were named, those that do not take the penalty were not
    monkeypatch.setitem(losses.PEERS["logistic"], "celer", Peer((), "no_such_package", penalties=(LASSO,)))
    argv = ["--data", "wine:1", "--l2", "0", "--l1", "0.05", "--losses", "logistic", "--time-limit", "0.05",
            "--threads", "1", "--solvers", "cmargin", "celer", "newton-cholesky", "sklearn-liblinear-l1"]
    assert main(argv) == 0
    said = capsys.readouterr().out
    assert "# logistic: not in the race: celer (not installed)\n" in said
    assert "# newton-cholesky does not take l1\n" in said
    rows = [line.split() for line in said.splitlines() if line.startswith("wine ")]
    assert [row[1:6] for row in rows] == [["1", "logistic", "0", "0.05", name]
                                          for name in ("cmargin", "sklearn-liblinear-l1")]


def test_sparse_rows_are_not_for_newton_cholesky():
    problem = with_penalty("logistic", RIDGE)
    assert suboptimality.left_out("newton-cholesky", problem) == ""
    assert "sparse" in suboptimality.left_out("newton-cholesky", problem._replace(X=sp.csr_matrix(problem.X)))
    assert suboptimality.left_out("celer", problem) == "does not take l2"
