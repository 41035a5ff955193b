"""The race over losses, sets, penalties and seeds: its cells, the file they are kept in, the page."""

import json
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_wine

from cmargin import SmSVMClassifier

pytest.importorskip("race", reason="the benchmarks are not beside the tests")

from test_race import tiny

from race import data, grid, hinge, losses, main, page, peer, suboptimality, traces

SMOOTH = [(loss, name) for loss in ("squared_hinge", "logistic") for name, of in losses.PEERS[loss].items()
          if peer.RIDGE in of.penalties]


@pytest.mark.parametrize("loss", losses.PEERS)
def test_the_objective_is_the_one_that_is_fitted(loss):
    problem = tiny(0.02)._replace(loss=loss)
    model = SmSVMClassifier(l2=0.02, loss=loss, tol=1e-8, fit_intercept=False).fit(problem.X, problem.y)
    assert suboptimality.objective(model.coef_[0], problem) == pytest.approx(model.objective_[0], rel=1e-12)
    best, gap = grid.optimum(problem, 1)
    assert best == pytest.approx(model.objective_[0], rel=1e-7) and 0 <= gap <= 1e-8


@pytest.mark.parametrize("form", ["dense", "csr, other label first"])
@pytest.mark.parametrize("loss, name", SMOOTH)
def test_every_way_of_every_peer_solves_the_objective(loss, name, form):
    if losses.PEERS[loss][name].absence():
        pytest.skip(f"{name}: {losses.PEERS[loss][name].absence()}")
    problem = tiny(0.01)._replace(loss=loss, seed=3)
    if form != "dense":
        problem = problem._replace(X=sp.csr_matrix(problem.X), y=-problem.y)
        if name == "newton-cholesky":
            problem = problem._replace(X=problem.X.toarray())
    best, _ = grid.optimum(problem, 1)
    for run, _ in losses.PEERS[loss][name].ways:
        with traces.quiet():
            short, long = (suboptimality.objective(run(problem, effort, 1, 100_000).w, problem)
                           for effort in (1, 2000))
        assert best * (1 - 1e-7) <= long <= best * (1 + 1e-4) and long <= short, run


def test_a_way_ends_where_it_arrived_and_the_next_has_time_to_be_repeated(monkeypatch):
    # the next way's alarm once rang after twice the microseconds of this one
    efforts = []

    def way(which, better):
        def run(problem, effort, threads, most):
            efforts.append((which, effort))
            time.sleep(0.002 * (which == "b"))
            return hinge.Run(np.ones(7) / effort * better, "x", effort)
        return run

    other = hinge.Peer(((way("a", 1), 2.0), (way("b", 0.5), 2.0)))
    monkeypatch.setitem(losses.PEERS["hinge"], "other", other)
    problem = tiny(1.0)
    level = suboptimality.objective(np.ones(7) / 4, problem)
    trace = suboptimality.trace_of("other", problem, 10.0, 1, level)
    del efforts[:4]                            # those of the small problem that goes first, two of each way
    assert {way: max(effort for name, effort in efforts if name == way) for way in "ab"} == {"a": 4, "b": 2}
    assert [p.value <= level for p in trace.points] == [False, False, True, False, True]


def test_on_one_thread_nobody_runs_twice():
    other = losses.PEERS["logistic"]["lbfgs"]
    assert len(other.ways_on(2)) == 2 and other.ways_on(1) == other.ways[:1]
    assert losses.PEERS["hinge"]["LinearSVC"].ways_on(1) == losses.PEERS["hinge"]["LinearSVC"].ways


def test_made_rows_depend_on_the_seed_and_stored_ones_keep_together():
    split = data.read("sparse", seed=5)
    assert split.X.shape == (50_000, 300) and set(split.X.data) == {1.0} and 11 < split.X.nnz / 50_000 <= 12
    assert (split.y > 0).mean() == pytest.approx(0.03, abs=1e-3)
    assert (data.read("sparse", seed=6).X != split.X).nnz and not (data.read("sparse", seed=5).X != split.X).nnz
    X, y = load_wine(return_X_y=True)
    (label, seed, rows, code), = grid.orders("wine:1", [9], None, lambda label, seed: True)
    found = {(*row, sign) for row, sign in zip(rows.round(9), code, strict=True)}
    assert (label, seed) == ("wine:1", 9) and not np.array_equal(rows, data.prepare(X))
    assert found == {(*row, sign) for row, sign in zip(data.prepare(X).round(9), np.where(y == 1, 1, -1), strict=True)}
    assert [case[:2] for case in grid.orders("wine", [1, 2], None, lambda label, seed: seed == 2)] == [
        ("wine:0", 2), ("wine:1", 2), ("wine:2", 2)]


QUICK = ["--task", "losses", "--quick", "--threads", "1", "--losses", "hinge", "logistic",
         "--solvers", "cmargin", "lbfgs", "LinearSVC", "skglm"]
CELLS = 2 * 4                                  # seeds; two solvers a loss


@pytest.fixture
def no_skglm(monkeypatch):
    monkeypatch.setattr(peer, "installed", lambda module: module is None)


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_quick_race_makes_a_page_and_goes_on_where_it_was(tmp_path, capsys, no_skglm, monkeypatch):
    assert main([*QUICK, "--out", str(tmp_path)]) == 0
    rows, text = lines_of(tmp_path / "race-quick.jsonl"), (tmp_path / "race-quick.md").read_text()
    assert len(rows) == CELLS and {row["seed"] for row in rows} == {701, 702}
    assert all(row["gap"] <= 1e-8 and row["lowest"] >= -1e-8 for row in rows)
    ours = [row for row in rows if row["solver"] == "cmargin"]
    assert all(0 < row["seconds"] < 20 and row["distance"] <= 1e-4 and row["passes"] > 1 for row in ours)
    assert "python -m cmargin race --task losses --quick" in text and "Load average" in text
    assert "| wine:1, 178 x 14 | 0.01 | skglm | – | left out: not installed |" in text
    assert "## Hinge" in text and "## Logistic" in text and "![" in text
    assert (tmp_path / "race-quick.png").read_bytes().startswith(b"\x89PNG") and not list(tmp_path.glob("*.part"))
    monkeypatch.setattr(grid, "measured", lambda *arguments: pytest.fail("measured again"))
    assert main([*QUICK, "--out", str(tmp_path)]) == 0
    assert lines_of(tmp_path / "race-quick.jsonl") == rows and (tmp_path / "race-quick.md").read_text() == text


def test_an_interrupted_race_keeps_its_rows_and_says_so(tmp_path, capsys, no_skglm, monkeypatch):
    measured, calls = grid.measured, []

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return measured(*arguments)

    monkeypatch.setattr(grid, "measured", interrupted)
    monkeypatch.setattr(page, "find_spec", lambda name: None)      # no matplotlib: the page does without its plots
    path = tmp_path / "race-quick.jsonl"
    assert main([*QUICK, "--out", str(tmp_path)]) == 130
    assert len(lines_of(path)) == 3 and "continues from there" in capsys.readouterr().err
    text = (tmp_path / "race-quick.md").read_text()
    assert "**Not all is here: stopped before its end" in text and "not measured yet" in text and "![" not in text
    with open(path, "a") as file:
        file.write('{"loss": "hinge", "data"')                     # a row that a crash cut short
    assert main([*QUICK, "--out", str(tmp_path)]) == 0
    assert len(calls) == 4 + CELLS - 3 and "Not all" not in (tmp_path / "race-quick.md").read_text()
    assert len(grid.Kept(path).rows) == CELLS


def test_a_missing_set_is_on_the_page(tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("CMARGIN_DATA", raising=False)
    assert main([*QUICK, "--data", "nowhere", "--out", str(tmp_path)]) == 1
    assert "Not all is here: nowhere was left out: 'nowhere' is not bundled" in (tmp_path / "race-quick.md").read_text()


def row(solver, seed, seconds, **more):
    return {"loss": "hinge", "data": "d", "l2": 0.1, "seed": seed, "solver": solver, "seconds": seconds, "limit": 2.0,
            "end": "settled" if seconds else "time limit", "longest": seconds or 1.5, "shape": [10, 3],
            "stored": "dense", "passes": 4.0, "machine": {"cores": 2}} | more


ROWS = [row("cmargin", 1, 0.1), row("cmargin", 2, 0.4), row("cmargin", 3, 0.2),
        row("LinearSVC", 1, 0.4), row("LinearSVC", 2, 0.2), row("LinearSVC", 3, None, distance=3e-3),
        row("liblinear", 1, None, distance=2e-4), row("liblinear", 2, None, distance=0.5), row("liblinear", 3, 9.0)]


def test_profiles_by_hand():
    found, count = page.profiles([*ROWS, row("cmargin", 4, None), row("LinearSVC", 4, None)])
    assert count == 3                                              # nobody finished the fourth
    np.testing.assert_allclose(found["cmargin"], [1, 1, 2])
    np.testing.assert_allclose(found["LinearSVC"], [1, 4, np.inf])
    np.testing.assert_allclose(found["liblinear"], [45, np.inf, np.inf])
    assert page.ranking(ROWS).rows[1] == ["LinearSVC", "1 of 3", "2 of 3", "4", "never"]


def test_lines_of_a_problem_say_medians_worst_and_who_never_came():
    options = type("Options", (), {"solvers": ["cmargin", "LinearSVC", "liblinear"], "time_limit": 2.0})
    lines = list(page.problem_lines("hinge", page.groups(ROWS, "solver"), options))
    assert lines[0] == ["cmargin", "3 of 3", "0.2", "0.4", "0.5", "4"]
    assert lines[1] == ["LinearSVC", "2 of 3", "0.4", "not within 2", "1", "4"]
    assert lines[2][:4] == ["liblinear", "1 of 3", "not within 2 s: distance 5.0e-01", "not within 2"]
    assert lines[2][4] == ">3.8"                                   # it ran for 1.5 s, the best peer's median is 0.4
    alone = [row("cmargin", 1, 0.1), row("LinearSVC", 1, None)]
    assert next(page.problem_lines("hinge", page.groups(alone, "solver"), options))[4] == "<0.067"


def test_who_stands_still_has_no_ratio():
    options = type("Options", (), {"solvers": ["cmargin", "LinearSVC"], "time_limit": 2.0})
    rows = [row("cmargin", 1, 0.1), row("LinearSVC", 1, None, end="settled", longest=0.01, distance=0.5)]
    lines = list(page.problem_lines("hinge", page.groups(rows, "solver"), options))
    assert [line[4] for line in lines] == ["–", "–"] and lines[1][2] == "stands still at distance 5.0e-01"


def test_a_step_that_does_for_many_tolerances_is_no_standstill():
    # one Newton step did for tol = 0.3 to 4e-4, and the solver was said to stand still at 3.5e-4
    def run(problem, effort, threads, most):
        return hinge.Run(np.full(7, 1.0 + (effort < 5000)), "x", 1.0)

    other = hinge.Peer(((run, 3.0),))
    for level, arrives in ((-np.inf, False), (1.0, True)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(losses.PEERS["hinge"], "other", other)
            problem = tiny(1.0)
            found = suboptimality.objective(np.ones(7), problem)
            trace = suboptimality.trace_of("other", problem, 10.0, 1, level * found)
        assert (min(p.value for p in trace.points) <= found) == arrives


def test_an_interrupt_that_a_callback_swallows_is_raised_after_it():
    # LIBLINEAR prints by a callback of ctypes, where a Ctrl-C was lost and the race went on
    hook = sys.unraisablehook
    with pytest.raises(KeyboardInterrupt), traces.quiet():
        sys.unraisablehook(SimpleNamespace(exc_value=KeyboardInterrupt()))
    assert sys.unraisablehook is hook


def test_words_for_what_did_not_arrive():
    assert grid.in_words(row("snapml", 1, None, end="settled", distance=2e-4)) == "stands still at distance 2.0e-04"
    assert grid.in_words(row("x", 1, None, end="failed: no")) == "failed: no"
    assert grid.in_words(row("x", 1, None, end="broken off")) == "not within 2 s: broken off"
    assert grid.in_words({"end": "left out: sparse"}) == "left out: sparse"


def test_a_solver_that_stops_by_itself_is_not_said_to_lack_time(monkeypatch):
    # LIBLINEAR's dual hinge ends after 300 passes, elsewhere each time: it never settles, and takes no longer either
    def run(problem, effort, threads, most):
        return hinge.Run(np.full(7, 1 + 0.1 / effort), "x", 1.0)

    monkeypatch.setitem(losses.PEERS["hinge"], "other", hinge.Peer(((run, 2.0),)))
    monkeypatch.setattr(suboptimality, "settled", lambda values, alike: False)
    problem = tiny(1.0)
    found = grid.measured("other", problem, 1.0, 1, grid.optimum(problem, 1)[0])
    assert found["seconds"] is None and found["longest"] < 0.5
    assert grid.in_words({"limit": 1.0} | found).startswith("stands still at distance")


def test_a_page_that_cannot_be_written_leaves_the_last_one(tmp_path):
    path = tmp_path / "page.md"
    path.write_text("the last one")

    def fails(part):
        part.write_text("half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        page.whole(path, fails)
    assert path.read_text() == "the last one"


@pytest.mark.parametrize("argv", [["--losses", "squared"], ["--seeds", "-1"], ["--solvers", "SLND"], ["--l2", "0"]])
def test_usage_errors(argv, tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--task", "losses", "--out", str(tmp_path), *argv])
    assert ended.value.code == 2 and "usage" in capsys.readouterr().err


def test_a_folder_that_cannot_be_made_is_refused_before_the_race(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemExit) as ended:
        main([*QUICK, "--out", str(tmp_path / "file")])
    assert ended.value.code == 2 and "--out cannot be written: " in capsys.readouterr().err
