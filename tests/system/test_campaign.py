"""The campaign in short, a good minute, and whether its judges can be believed."""

import faulthandler
import os
import signal
import time
from dataclasses import fields

import naive_smsvm as naive
import numpy as np
import pytest
from campaign import commands, convex, convex_problems, losses
from campaign.certificates import check_certificate, check_seed
from campaign.concurrent import CASES, NAMES
from campaign.estimators import ESTIMATORS, WITHOUT_LABELS, public
from campaign.findings import Findings, Totals
from campaign.oracle import Binary, bounds
from campaign.parts import PARTS
from campaign.problems import make_problem
from campaign.quadratic import quadratic_program
from campaign.smooth_oracle import SmoothBinary
from campaign.workers import Part, check_alone, run_part
from scipy.optimize import linprog

# NumPy does not survive every failure of its own malloc; that is for the long form
FAULTS = [seed for seed in range(80) if PARTS["faults"].describe(seed)[0] != "numpy's malloc"]
# every estimator by its defaults, then every fifth of the other ways, dense and CSR in turn
AT_ONCE = [*range(len(NAMES)), *range(len(NAMES), len(CASES), 5)]
# every set and scale, a few penalties of each
PENALISED = range(1, 550, 5)
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="the campaign forks for every seed")


@needs_fork
@pytest.mark.parametrize("name, seeds", [("certificates", range(36)), ("losses", range(16)), ("fuzz", range(4)),
                                         ("convex", range(60)), ("commands", range(32)), ("faults", FAULTS),
                                         ("concurrent", AT_ONCE), ("penalised", PENALISED)])
def test_short_form(name, seeds):
    part = PARTS[name]
    totals = Totals(name, part.limits)
    n_workers = 2 if name == "losses" else 1           # mostly one, as other tests run on the other processors
    for found in run_part(part, seeds, n_workers):
        totals.take(found)
    words = [line for lines in totals.words.values() for line in lines]
    assert not words, f"{totals.text()}\n" + "\n".join(words)
    assert totals.n_tried == len(seeds)


@pytest.mark.parametrize("answer, kind", [
    ((0, "", ""), None), ((1, "", "cmargin: error: so\n"), None), ((3, "", "cmargin: error: so\n"), "exit code"),
    ((1, "", "Traceback (most recent call last)\ncmargin: error: so\n"), "traceback"), ((1, "", ""), "no words"),
    ((1, "", "cmargin: error: KeyError: 3 (CMARGIN_TRACEBACK=1 shows where)\n"), "unforeseen"),
    ((0, "nan\n", ""), "NaN")])
def test_commands_that_break_their_word_are_found(answer, kind, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(commands, "_good", {"a.csv": b"a,b\n1,2\n"})
    monkeypatch.setattr(commands, "run", lambda *argv: answer)
    assert {found for found, _ in commands.check_seed(0).faults} == ({kind} if kind else set())


# ------------------------------------------------------------ the oracle

def problem(seed, l2, l1, intercept, n=40, p=15):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * 2.0**rng.integers(-5, 6, p) + rng.choice([0, 100])
    y = np.where(X[:, 0] + rng.standard_normal(n) > X[:, 0].mean(), 1, -1)
    return Binary(X, y, rng.uniform(0, 2, n) * (rng.random(n) < 0.9), l2, l1, intercept)


def as_columns(binary):
    """Weights that sum to n, X with its column of ones, and where that is."""
    X = naive.with_ones(binary.X, binary.intercept != "none")
    weights = (binary.m * len(X)).astype(float)
    return X, weights, X.shape[1] - 1 if binary.intercept == "free" else None


@pytest.mark.parametrize("intercept", ["free", "penalised", "none"])
@pytest.mark.parametrize("l2, l1", [(1e-3, 0), (1e-9, 0), (0, 1e-2), (1e-2, 1e-3), (1.0, 0)])
@pytest.mark.parametrize("n, p", [(40, 15), (15, 40)])
def test_bounds_meet(intercept, l2, l1, n, p):
    binary = problem(n, l2, l1, intercept, n, p)
    found = bounds(binary)
    assert found.certainty < 1e-8 or found.upper - found.lower < 1e-16           # rounding beside the 1 of w = 0
    X, weights, free = as_columns(binary)
    w = np.append(found.w, found.b)[:X.shape[1]].astype(float)
    value = naive.objective(X, binary.y, weights, w, l2, l1, free)
    np.testing.assert_allclose(value, float(found.upper), rtol=1e-6, atol=1e-14)


@pytest.mark.parametrize("intercept", ["free", "penalised", "none"])
def test_bounds_are_those_of_a_linear_program(intercept):
    binary = problem(3, 0.0, 1e-2, intercept)
    X, weights, free = as_columns(binary)
    n, p = X.shape
    cost = np.full(p, 1e-2)
    if free is not None:
        cost[free] = 0
    A = binary.y[:, None] * X
    solved = linprog(np.concatenate([cost, cost, weights / n]), -np.hstack([A, -A, np.eye(n)]), -np.ones(n))
    np.testing.assert_allclose(float(bounds(binary).upper), solved.fun, rtol=1e-6)


def test_any_multipliers_give_a_bound():
    rng = np.random.default_rng(0)
    for intercept in ("free", "penalised", "none"):
        for l2, l1 in ((1e-2, 0), (0, 1e-2), (1e-2, 1e-2)):
            binary = problem(1, l2, l1, intercept)
            minimum = bounds(binary)
            for _ in range(20):
                assert binary.dual(rng.uniform(-0.5, 1.5, len(binary.y)) * binary.m) <= minimum.upper
                w = minimum.w * rng.uniform(0.5, 1.5, len(minimum.w))
                assert binary.objective(w, minimum.b)[0] >= minimum.lower


def smooth(loss, *asked):
    return SmoothBinary(**{f.name: getattr(problem(*asked), f.name) for f in fields(Binary)}, loss=loss)


@pytest.mark.parametrize("loss, value", [("logistic", lambda z: np.logaddexp(0, -z)),
                                         ("squared_hinge", lambda z: np.maximum(0, 1 - z)**2)])
@pytest.mark.parametrize("intercept", ["free", "penalised", "none"])
@pytest.mark.parametrize("l2, l1", [(1e-3, 0), (1e-6, 0), (0, 1e-2), (1e-2, 1e-3), (1.0, 0)])
@pytest.mark.parametrize("n, p", [(40, 15), (15, 40)])
def test_bounds_of_smooth_losses_meet(loss, value, intercept, l2, l1, n, p):
    binary = smooth(loss, n, l2, l1, intercept, n, p)
    found = bounds(binary)
    assert -1e-12 < found.certainty < 1e-5
    w, b = found.w.astype(float), float(found.b)
    whole = np.append(w, b) if intercept == "penalised" else w
    direct = l2 / 2 * (whole @ whole) + l1 * np.abs(whole).sum() + binary.m.astype(float) @ value(binary.y * (
        binary.X @ w + b))
    np.testing.assert_allclose(direct, float(found.upper), rtol=1e-6, atol=1e-14)
    rng = np.random.default_rng(0)
    for _ in range(20):
        assert binary.dual(rng.uniform(-0.5, 1.5, len(binary.y)) * binary.m) <= found.upper
        assert binary.objective(w * rng.uniform(0.9, 1.1, len(w)), b)[0] >= found.lower


# ------------------------------------------------------------ the judges

@pytest.mark.parametrize("objective, gap, kind", [(1.0, 0.0, None), (1 + 1e-6, 1e-4, "objective"),
                                                  (1.0, -1e-5, "false gap")])
def test_a_wrong_report_is_noticed(objective, gap, kind):
    binary = problem(2, 1e-3, 0.0, "free")
    best = bounds(binary)
    found = Findings(0, [])
    check_certificate(binary, best.w, best.b, float(best.upper) * objective, gap, "", found)
    assert {kind for kind, _ in found.faults} == ({kind} - {None})


def test_a_far_point_with_a_small_gap_is_noticed():
    binary = problem(2, 1e-3, 0.0, "free")
    best, found = bounds(binary), Findings(0, [])
    value, _ = binary.objective(1.1 * best.w, best.b)
    check_certificate(binary, 1.1 * best.w, best.b, float(value), 1e-6, "", found)
    assert [kind for kind, _ in found.faults] == ["false gap"]


def test_a_wrong_report_of_a_smooth_loss_is_noticed():
    binary = smooth("logistic", 2, 1e-3, 0.0, "free")
    best, found = bounds(binary), Findings(0, [])
    check_certificate(binary, best.w, best.b, float(best.upper), 0.0, "", found)
    assert not found.faults
    check_certificate(binary, best.w, best.b, float(best.upper) * (1 + 1e-6), 1e-4, "", found)
    value, _ = binary.objective(1.1 * best.w, best.b)
    check_certificate(binary, 1.1 * best.w, best.b, float(value), 1e-6, "", found)
    assert [kind for kind, _ in found.faults] == ["objective", "false gap"]


@pytest.mark.parametrize("seed", range(6))
def test_a_quadratic_program_is_solved(seed):
    rng = np.random.default_rng(seed)
    n, k = 6, 20
    D, q, G = rng.choice([0.0, 1.0, 1e-3], n), rng.standard_normal(n), rng.standard_normal((k, n))
    G, h = np.vstack([G, np.eye(n), -np.eye(n)]), np.concatenate([rng.uniform(0, 1, k), np.full(2 * n, 3.0)])
    x = quadratic_program(D, q, G, h)
    assert (G @ x <= h + 1e-8).all()
    for _ in range(200):                         # no point within is better
        y = x + 10.0 ** rng.uniform(-4, 0) * rng.standard_normal(n)
        if (G @ y <= h).all():
            assert D @ (y * y) / 2 + q @ y >= D @ (x * x) / 2 + q @ x - 1e-8
    linear = linprog(q, G, h, bounds=(None, None))
    assert q @ quadratic_program(np.zeros(n), q, G, h) == pytest.approx(linear.fun, abs=1e-7)


def test_wrong_reports_of_regressions_and_their_like_are_noticed(monkeypatch):
    from cmargin import SmSVMClassifier, SmSVMOneClass, SmSVMRegressor

    for kind, estimator in (("SmSVMRegressor", SmSVMRegressor), ("SmSVMClassifier", SmSVMClassifier),
                            ("SmSVMOneClass", SmSVMOneClass), ("crammer_singer", SmSVMClassifier)):
        drawn = {seed: convex_problems.draw(seed) for seed in range(400)}
        seed = next(seed for seed, found in drawn.items() if found.kind == kind and found.X.shape[0] > 20
                    and not {"groups", "logistic", "few passes"} & set(found.tags))
        assert not convex.check_seed(seed).faults
        fit = estimator.fit

        def off(self, *given, fit=fit, **more):
            fit(self, *given, **more)
            self.objective_ = self.objective_ + 0.1 * np.abs(self.objective_) + 1e-3
            self.duality_gap_ = np.zeros_like(self.duality_gap_)
            return self

        with monkeypatch.context() as patched:
            patched.setattr(estimator, "fit", off)
            assert {kind for kind, _ in convex.check_seed(seed).faults} >= {"objective", "false gap"}


def test_a_fit_that_ends_where_factors_do_not_is_noticed(monkeypatch):
    from cmargin import SmSVMClassifier

    seed = next(seed for seed in range(400) if {"auto", "logistic"} <= set(losses.describe(seed))
                and not {"few passes", "l2=0", "l1", "warm"} & set(losses.describe(seed)))
    fit = SmSVMClassifier.fit

    def short(self, *given):
        fit(self, *given)
        if self.linear_solver == "auto":
            self.duality_gap_, self.objective_ = np.full_like(self.duality_gap_, 0.5), self.objective_ + 1
        return self

    assert "left short" not in {kind for kind, _ in losses.check_seed(seed).faults}
    monkeypatch.setattr(SmSVMClassifier, "fit", short)
    assert "left short" in {kind for kind, _ in losses.check_seed(seed).faults}


def test_a_seed_is_always_the_same_problem():
    for seed in range(40):
        one, two = make_problem(seed), make_problem(seed)
        np.testing.assert_array_equal(one.dense, two.dense)
        np.testing.assert_array_equal(one.y, two.y)
        assert (one.settings, one.force, one.tags) == (two.settings, two.force, two.tags)
        assert one.dense.dtype in (np.float32, np.float64) and np.isfinite(one.dense).all()


def test_forced_constants_are_reached(monkeypatch):
    from cmargin.solvers.newton import stages

    seen = []
    draw = stages.subset_of
    monkeypatch.setattr(stages, "subset_of", lambda *a: seen.append(1) or draw(*a))
    grown = next(seed for seed in range(400) if {"growing", "l1"} <= set(make_problem(seed).tags)
                 and "quadratic" not in make_problem(seed).tags and "warm" not in make_problem(seed).tags)
    check_seed(grown)
    assert seen


def test_every_public_estimator_is_there():
    assert {*ESTIMATORS, *WITHOUT_LABELS} == public()


# ------------------------------------------------------------ the workers

def die(seed):
    faulthandler.disable()                             # pytest's would print the whole stack
    os.kill(os.getpid(), signal.SIGSEGV)


def hang(seed):
    time.sleep(60)


def stumble(seed):
    raise KeyError("of the check itself")


@needs_fork
@pytest.mark.parametrize("check, kind", [(die, "signal"), (hang, "hang"), (stumble, "campaign")])
def test_an_end_without_an_answer_is_a_fault(check, kind):
    part = Part("ends", check, lambda seed: ["tag"], None, 0.5 if check is hang else 20.0, {})
    found = check_alone(part, 7)
    assert found.seed == 7 and [kind for kind, _ in found.faults] == [kind]
