"""A multinomial fit of few numbers ends at a penalised optimum where rows held out prefer it to the passes."""

import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from fits import fit_multinomial as fit
from fits import same
from naive_multinomial import row_losses
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from cmargin._runtime.clock import TimeUp
from cmargin.solvers import cost
from cmargin.solvers.multinomial.newton import Run
from cmargin.solvers.sgd import penalised_end
from cmargin.solvers.sgd.multinomial import MultinomialRun
from cmargin.solvers.sgd.penalised_end import (
    NO_PART,
    Problem,
    Rest,
    Strength,
    best_strength,
    parts_left_out,
    strength_beside_passes,
    strength_of,
)
from cmargin.solvers.slnd_plan import SoftmaxStats, path_will_do


def table(n=1500, seed=0):
    """Correlated columns, classes along the narrow directions; rows to test by behind those to train on."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n + 2000, 12)) @ np.diag(np.geomspace(1, 0.03, 12)) @ rng.standard_normal((12, 12))
    narrow = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][6:]
    scores = (X @ narrow.T) / (X @ narrow.T).std(axis=0) @ rng.standard_normal((6, 4)) * 2
    y = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    return X[:n], y[:n], X[n:], y[n:]


def log_loss(model, X, y):
    return row_losses(model.decision_function(X), y).mean()


def problem(n=400, weighted=False, dtype=np.float64):
    rng = np.random.default_rng(3)
    Z, truth = rng.standard_normal((n, 6)).astype(dtype), rng.integers(0, 3, n)
    Z[:, 0] += truth
    weight = rng.uniform(0.5, 2, n) if weighted else np.zeros(0)
    return Problem(Z, truth, weight, 3, float((Z**2).sum(axis=1).mean()), True, 4, None)


# ---------------------------------------------------------------- what it is for

def test_narrow_directions_are_learnt(monkeypatch):
    X, y, X_test, y_test = table()
    model = fit(X, y)
    monkeypatch.setattr(MultinomialRun, "in_one_memory", False)
    passes = fit(X, y)
    assert model.history_["step"][-1] == 0 and passes.history_["step"].min() > 0
    assert len(model.history_["step"]) == model.n_iter_ and model.n_passes_ > passes.n_passes_
    best = min(log_loss(LogisticRegression(C=C, max_iter=2000).fit(X, y), X_test, y_test) for C in (1, 10, 100, 1000))
    # 0.92, 1.10 and 0.92 for these rows
    assert log_loss(model, X_test, y_test) < best + 0.02 < log_loss(passes, X_test, y_test) - 0.05
    assert model.score(X_test, y_test) > passes.score(X_test, y_test) + 0.03


def square(seed=5):
    """As many rows as columns, most of which are narrow, and twenty classes; rows to test by behind."""
    rng = np.random.default_rng(seed)
    widths = np.geomspace(1, 1e-3, 300)
    X = rng.standard_normal((2300, 300)) * widths
    centres, y = rng.standard_normal((20, 300)) * widths / 2, rng.integers(0, 20, 2300)
    X = (X + centres[y]) @ np.linalg.qr(rng.standard_normal((300, 300)))[0]
    return X[:300], y[:300], X[300:], y[300:]


@pytest.mark.parametrize("dear", [False, True])
def test_few_rows_of_many_columns_end_at_an_optimum(dear, monkeypatch):
    # there was no path for them, nor where products are dear: passes alone were up to four points behind
    X, y, X_test, y_test = square()
    monkeypatch.setattr(cost, "PATH_FLOPS", (0.0 if dear else 3e7, 1e9))
    model = fit(X, y)
    monkeypatch.setattr(MultinomialRun, "in_one_memory", False)
    passes = fit(X, y)
    assert model.history_["step"][-1] == 0 and passes.history_["step"].min() > 0
    assert model.n_passes_ < (110 if dear else 240)                            # 92 and 217
    assert model.score(X_test, y_test) > passes.score(X_test, y_test) + 0.008  # 0.907 and 0.889
    assert log_loss(model, X_test, y_test) < log_loss(passes, X_test, y_test)


def test_passes_stay_where_they_do_better(monkeypatch):
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((1000, 30)), rng.integers(0, 3, 1000)          # nothing to learn
    X[:, 0] += 2 * y
    nothing = (np.zeros((3, 30)), np.zeros(3)), 1.0                            # as optima that are none do worse
    monkeypatch.setattr(Rest, "optimum", lambda self, C: nothing)
    tried = fit(X, y)
    monkeypatch.setattr(MultinomialRun, "in_one_memory", False)
    alone = fit(X, y)
    assert same(tried, alone) and tried.n_passes_ > alone.n_passes_
    np.testing.assert_array_equal(tried.history_["step"], alone.history_["step"])


def test_where_it_is_not_tried():
    few = SoftmaxStats(1000, 10, 20, False, 200, True)
    assert path_will_do(few) and path_will_do(replace(few, width=2000)) and path_will_do(replace(few, n_rows=30_000))
    assert not path_will_do(replace(few, has_tail=True)) and not path_will_do(replace(few, has_all=False))
    assert path_will_do(replace(few, n_rows=9999, width=1000)) and not path_will_do(replace(few, width=50_000))
    assert not path_will_do(replace(few, n_rows=10_000, width=1000)) and not path_will_do(replace(few, n_rows=60_000))


def test_a_step_of_ones_own_or_few_passes_have_none():
    X, y, *_ = table(800)
    for options in ({"step_size": 1.0}, {"max_passes": 3}, {"tol": 0.9}):
        assert fit(X, y, **options).history_["step"].min() > 0
    assert fit(X, y).history_["step"][-1] == 0


# ---------------------------------------------------------------- how it is found

@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_an_optimum_is_that_of_logistic_regression(weighted, C):
    of = problem(weighted=weighted)
    weight = of.weight if weighted else np.ones(len(of.Z))
    rest = of.without((300, 400))
    (U, b), reads = rest.optimum(C)
    assert reads == rest.optima.run.result.reads * 300 / 400
    scale = np.sqrt(of.mean_square / 6)                    # rows whose entries have mean square 1
    s = weight[:300] / weight[:300].mean()
    reference = LogisticRegression(C=C, max_iter=1000, tol=1e-10).fit(of.Z[:300] / scale, of.truth[:300], s)

    def objective(U, b):
        losses = row_losses(of.Z[:300] @ U.T + b, of.truth[:300])
        return s @ losses / 300 + scale**2 / (2 * C * 300) * np.sum(U**2)

    least = objective(reference.coef_ / scale, reference.intercept_)
    assert least * (1 - 1e-6) <= objective(U, b) <= least * (1 + penalised_end.LOOSE_GAP) and 0 < reads < 100
    again, fewer = of.without((300, 400), (U, b)).optimum(C)
    assert fewer <= (reads + 1 if C < 1 else reads / 2) and objective(*again) <= objective(U, b) * (1 + 1e-9)
    assert rest.optimum(C)[1] == 0                                             # it is there
    rest.optimum(100 * C)                                                      # and back from another strength
    assert least * (1 - 1e-6) <= objective(*rest.optimum(C)[0]) <= least * (1 + penalised_end.LOOSE_GAP)


def test_an_optimum_of_all_rows_has_the_best_intercepts():
    of = problem()
    (U, b), _ = of.without(NO_PART).optimum(1.0)
    p = softmax(of.Z @ U.T + b, axis=1)
    np.testing.assert_allclose(p.mean(axis=0), np.bincount(of.truth) / len(of.truth), rtol=1e-9)


def test_the_clock_is_looked_at_at_every_strength():
    # it was not where no step takes a tenth of a second: a path went on to its end
    of = replace(problem(), deadline=time.perf_counter() + 1000)
    rest = of.without((300, 400))
    rest.optimum(0.1)
    rest.optima.run.clock.deadline = 0.0
    with pytest.raises(TimeUp):
        rest.optimum(10.0)


def test_an_interrupt_is_passed_on(monkeypatch):
    def interrupted(self, on_step, checkpointer):
        raise KeyboardInterrupt

    monkeypatch.setattr(Run, "go", interrupted)
    with pytest.raises(KeyboardInterrupt):
        problem().without((300, 400)).optimum(1.0)


@pytest.mark.parametrize(("n", "n_held", "count"), [(100, 20, 5), (3000, 600, 4), (10_000, 2000, 1), (90, 40, 2)])
def test_rows_are_left_out_in_turn_until_there_are_enough(n, n_held, count):
    parts = parts_left_out(n, n_held)
    assert len(parts) == count and parts[0] == (n - n_held, n)
    left_out = np.concatenate([np.arange(*part) for part in parts])
    assert len(set(left_out)) == len(left_out) == count * n_held and left_out.min() >= 0
    of = problem(n, weighted=True)
    for lo, hi in [*parts, NO_PART, (0, n_held)]:
        for rows, found in zip((of.Z, of.truth, of.weight), of.but((lo, hi)), strict=True):
            np.testing.assert_array_equal(found, np.concatenate([rows[hi:], rows[:lo]]))
            assert hi in (0, n_held, n) or found.base is not None
        assert len(problem(n).but((lo, hi))[2]) == 0                           # no weights


MOST = 5
STRENGTHS = 0.1 * penalised_end.RATIO ** np.arange(MOST)


def chosen(losses, errors, spread=1e-6, n_parts=2, first=0):
    """What is taken of such means at one strength after the other, and what was asked for; rows differ by chance.

    Two classes, the first of every row: a loss, less 5, is that of the difference of two scores, nearly.
    """
    asked, noise = [], spread * np.random.default_rng(0).standard_normal((MOST, n_parts, 50))
    noise -= noise.mean(axis=(1, 2), keepdims=True)

    def without(left_out):
        def optimum(C):
            asked.append((C, left_out))
            return (C, left_out[0]), 1.5

        return SimpleNamespace(optimum=optimum)

    def strength(problem, parts, C, points):
        k = int(np.flatnonzero(np.isclose(STRENGTHS, C))[0])
        assert list(points) == [(C, part[0]) for part in parts]
        of_rows = np.concatenate([losses[k] + noise[k, lo // 50] for lo, _ in parts])
        return Strength(C, points[0], of_rows, np.full(len(of_rows), errors[k]), 1.0, of_rows[:50])

    parts = [(50 * k, 50 * k + 50) for k in range(n_parts)][::-1]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(penalised_end, "strength_of", strength)
        patched.setattr(penalised_end, "C_LIMITS", (STRENGTHS[0] * 0.99, STRENGTHS[-1] * 1.01))
        best, reads = best_strength(None, parts, [without(part) for part in parts], STRENGTHS[first])
    return best.C, best.point, best.losses, reads, asked


def test_all_parts_judge_a_strength_before_the_next():
    C, point, losses, reads, asked = chosen([1.0, 0.9, 0.8, 0.81, 0.1], np.zeros(MOST))
    assert C == STRENGTHS[2] and point == (C, 50) and losses.mean() == pytest.approx(0.8, abs=1e-5)
    assert reads == 1.5 * len(asked) and len(asked) == 8                      # none beyond the first rise
    assert [C for C, *_ in asked] == pytest.approx(np.repeat(STRENGTHS[:4], 2))
    assert [part for _, part in asked] == [(50, 100), (0, 50)] * 4


@pytest.mark.parametrize(("losses", "first", "ks"), [
    ([1.0, 0.9, 0.8, 0.7, 0.71], 1, [1, 2, 3, 4]),            # to weaker penalties
    ([1.0, 0.6, 0.7, 0.8, 0.71], 2, [2, 3, 1, 0]),            # to stronger ones where weaker ones do not better
    ([1.0, 0.9, 0.8, 0.795, 0.5], 2, [2, 3, 1]),              # a hundredth less is not better
    ([1.0, 0.9, 0.8, 0.7, 0.6], 3, [3, 4]),                   # there is an end on both sides
    ([0.5, 0.6, 0.8, 0.7, 0.6], 1, [1, 2, 0]),
])
def test_the_path_goes_on_while_the_loss_falls(losses, first, ks):
    asked = chosen(losses, np.zeros(MOST), first=first)[-1]
    assert [C for C, _ in asked[::2]] == pytest.approx(STRENGTHS[ks])


def test_errors_choose_between_strengths_that_losses_do_not_tell_apart():
    means, errors = [1.1, 1.0, 0.89, 0.9, 2.0], [0.0, 0.1, 0.3, 0.2, 0.0]    # 0.5: a standard error of 0.07
    assert chosen(means, errors)[0] == STRENGTHS[2]
    assert chosen(means, errors, 0.5)[0] == pytest.approx(STRENGTHS[1])
    assert chosen(means, errors, 0.3)[0] == pytest.approx(STRENGTHS[3])       # the second is three of them above
    assert chosen(means, [0.2] * 5, 0.5)[0] == pytest.approx(STRENGTHS[2])    # of equal ones, the least loss
    assert chosen([1.0, 1.1], [0, 0])[0] == STRENGTHS[0]
    with np.errstate(invalid="ignore"):
        assert chosen([np.inf] * MOST, np.zeros(MOST))[0] == STRENGTHS[0]     # passes are then surely better


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_an_optimum_tells_its_strength(C, monkeypatch):
    monkeypatch.setattr(penalised_end, "LOOSE_GAP", 1e-10)
    of = problem()
    start, _ = of.without((300, 400)).optimum(C)
    assert of.without((300, 400)).begin_at(start) == pytest.approx(C, rel=0.2)
    assert of.without((300, 400)).begin_at((0 * start[0], start[1])) == np.inf           # nothing was learnt
    assert of.without((300, 400)).begin_at((-start[0], start[1])) == np.inf              # nor is this an optimum


def test_the_first_optimum_says_whether_there_are_others(monkeypatch):
    monkeypatch.setattr(penalised_end, "LOOSE_GAP", 1e-6)
    of, parts = problem(), parts_left_out(400, 80)
    rest = of.without(parts[0])
    start, _ = rest.optimum(0.1)
    first = strength_of(of, parts[:1], 0.1, [start]).first
    asked, optimum = [], Rest.optimum

    def counted(self, C):
        asked.append((len(self.rows), C))
        return optimum(self, C)

    monkeypatch.setattr(Rest, "optimum", counted)

    def outcome(losses, start=start):
        asked.clear()
        best, reads = strength_beside_passes(of, parts, start, losses)
        assert reads >= 1
        return best is not None, len(asked)

    better, worse = first - 0.05, first + 0.05
    noise = np.random.default_rng(0).standard_normal(80)
    noise -= noise.mean()
    taken, n_asked = outcome(worse)
    assert taken and n_asked > 10                                              # by five parts
    assert outcome(first - 0.05 + noise)[0]                                    # passes are not surely better
    taken, n_asked = outcome(better)
    assert not taken and n_asked > 10
    assert outcome(worse, (-start[0], start[1]))[0] and asked[0][1] == 1.0     # of no penalty at all
    monkeypatch.setattr(cost, "PATH_FLOPS", (1.0, 1e9))                        # a read is dear
    taken, n_asked = outcome(worse)
    assert taken and n_asked < 10 and {n for n, _ in asked} == {320}           # by one part
    assert outcome(first - 0.05 + noise) == (False, 1)
    assert outcome(worse, (-start[0], start[1])) == (False, 0)


def test_rows_of_a_class_that_has_no_others_do_not_judge():
    of = problem(100)
    of.truth[:] = np.arange(100) % 2
    of.truth[[3, 95]] = 2
    assert of.learnt((90, 100)).all() and of.learnt((0, 10)).all()
    of.truth[3] = 1
    np.testing.assert_array_equal(of.learnt((90, 100)), np.arange(90, 100) != 95)


# ---------------------------------------------------------------- as any other end

@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_same_bits_for_any_number_of_threads(dtype):
    X, y, *_ = table(900)
    X, weight = X.astype(dtype), np.random.default_rng(0).uniform(0.5, 2, 900)
    one = fit(X, y, weight, n_jobs=1)
    assert one.history_["step"][-1] == 0 and same(one, fit(X, y, weight, n_jobs=2))
    assert one.coef_.dtype == dtype


def test_the_callback_sees_the_end():
    X, y, *_ = table(900)
    seen = []
    model = fit(X, y, callback=lambda model: seen.append(model.coef_.copy()))
    assert len(seen) == model.n_iter_ and np.array_equal(seen[-1], model.coef_)
    assert not np.array_equal(seen[-2], model.coef_)


@pytest.mark.parametrize("kind", [TimeUp, KeyboardInterrupt])
@pytest.mark.parametrize("nth", [1, 3, -1])
def test_cut_short_it_leaves_the_weights_of_the_passes(kind, nth, monkeypatch):
    X, y, *_ = table(900)
    calls, optimum = [], Rest.optimum

    def counted(self, C):
        calls.append(C)
        if len(calls) == nth or (nth < 0 and len(self.rows) == len(self.problem.Z)):
            raise kind
        return optimum(self, C)

    monkeypatch.setattr(Rest, "optimum", counted)
    kept = []
    try:
        model = fit(X, y, callback=lambda model: kept.append(model))
    except KeyboardInterrupt:
        model = kept[-1]
    monkeypatch.setattr(MultinomialRun, "in_one_memory", False)
    passes = fit(X, y)
    assert len(calls) >= abs(nth) and model.history_["step"].min() > 0
    assert abs(model.score(X, y) - passes.score(X, y)) < 0.1 and np.isfinite(model.coef_).all()
