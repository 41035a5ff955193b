"""Steps to the optimum of the rows near the hinge: which rows, a true bound, fewer reads; where they lead nowhere."""

import copy
from types import SimpleNamespace

import numpy as np
import pytest
from api import are_below, count, count_distances, crossings, sum_of_members, with_nearest
from elsewhere import Elsewhere
from killed_fits import OFTEN, StopAt, same, stopped
from naive_smsvm import bin_of, distances, smoothed
from naive_smsvm import counted as slowly_counted
from rare_columns import rows_with_rare_columns
from scipy import sparse
from scipy.optimize import minimize
from sklearn.base import clone

from cmargin import Checkpoint, SmSVMClassifier
from cmargin._runtime.blas_threads import single_threaded_blas
from cmargin.data import open_rows
from cmargin.data.moves import evaluate_as_asked
from cmargin.data.source import TANGENTS
from cmargin.data.working_set import NOTHING, WorkingSet, choose, limit_of
from cmargin.solvers import cost
from cmargin.solvers.newton import working_set
from cmargin.solvers.newton.continuation import ContinuationNewton
from cmargin.solvers.penalty import ElasticNet
from cmargin.solvers.problem import Problem, Settings

X_rare, y_rare = rows_with_rare_columns()
rng = np.random.default_rng(0)
W = rng.standard_normal(19) / 10


def looked_at(X, y, w=W, width=1e-2, sizes=None):
    """Rows after an evaluation with straight lines at w, measured by ``sizes``."""
    rows = open_rows(X).row_pass(y, intercept=True, n_threads=1)
    rows.foresee_working_set()
    rows.measure_rows(np.ones(19) if sizes is None else sizes)
    received = rows.evaluate(w, 1.0, width, width, 0.0, TANGENTS)
    return rows, [np.array(part) for part in received[:2]]


def by_sides(X, y, a, chosen):
    """(2, 19) sums of s a y x over the chosen positive rows and the negative ones, and two of s a: the slow way."""
    ones, c = np.hstack([X, np.ones((len(X), 1))]), a * y * chosen
    return np.array([np.where(side, c, 0.0) @ ones for side in (y > 0, y < 0)]), [
        np.abs(c[side]).sum() for side in (y > 0, y < 0)]


# ---------------------------------------------------------------- the rows

def test_numbers_are_counted_in_sixteenths_of_powers_of_two():
    numbers = np.array([0.0, 5e-300, 1.0, 1.0624, 1.0626, 2.0, 3.9, np.inf])
    there, counts = count(numbers)
    assert dict(zip(there.tolist(), counts.tolist(), strict=True)) == slowly_counted(numbers)
    assert bin_of(1.0) == bin_of(1.0624) < bin_of(1.0626)
    last, _ = count(np.array([np.nan]))
    assert last[0] > there.max()


def test_distances_are_counted_and_marked_in_one_pass():
    rng = np.random.default_rng(8)
    u, norms, members = rng.standard_normal(500), rng.exponential(size=500) ** 3, rng.random(500) < 0.1
    u[:3], norms[2:5] = 0.0, [0.0, 0.0, np.inf]
    slow = distances(u, norms)
    assert count_distances(u, norms)[1].sum() == 500
    # those are in bins of their own
    u, norms, members, slow = (of[~np.isnan(slow)] for of in (u, norms, members, slow))
    there, counts = count_distances(u, norms)
    assert dict(zip(there.tolist(), counts.tolist(), strict=True)) == slowly_counted(slow)
    limit = there[len(there) // 3]
    marked = with_nearest(members, u, norms, limit)
    bins = np.array([bin_of(number) for number in slow])
    np.testing.assert_array_equal(marked, members | (bins < limit))
    assert marked.dtype == bool and with_nearest(members, u, norms, 0).tolist() == members.tolist()
    found, total = sum_of_members(u, marked)
    assert found == marked.sum() and total == pytest.approx(np.abs(u[marked]).sum(), rel=1e-14)
    with pytest.raises(ValueError, match="with_nearest"):
        with_nearest(members[1:], u, norms, limit)


def test_rows_that_crossed_and_when():
    rng = np.random.default_rng(9)
    before, now, members = *rng.standard_normal((2, 300)), rng.random(300) < 0.2
    before[:2], now[2:4], now[4] = 0.0, 0.0, np.nan
    places, when = crossings(before, now, members)
    slow = np.flatnonzero(~members & ((before > 0) != (now > 0)))
    np.testing.assert_array_equal(places, slow)
    np.testing.assert_array_equal(when, before[slow] / (before[slow] - now[slow]))
    np.testing.assert_array_equal(are_below(when, bin_of(0.5)), [bin_of(at) < bin_of(0.5) for at in when])


@pytest.mark.parametrize("wanted", [0, 1, 7, 100, 999, 5000])
def test_about_so_many_of_the_smallest_numbers_are_below_a_limit(wanted):
    numbers = np.exp(3 * np.random.default_rng(wanted).standard_normal(1000))
    parts = np.split(numbers, [0, 10, 600])                              # of which one has none
    limit = limit_of([count(part) for part in parts], wanted)
    below = numbers[are_below(numbers, limit)]
    assert limit == limit_of([count(numbers)], wanted)
    assert min(wanted, 1000) * 0.5 <= len(below) <= 1.5 * wanted
    assert len(below) == 0 or below.max() <= np.sort(numbers)[len(below) - 1]


def test_of_numbers_that_are_all_the_same_all_are_taken_or_none():
    same = [count(np.full(100, 0.3))]
    assert limit_of(same, 80) > bin_of(0.3) and limit_of(same, 20) <= bin_of(0.3)
    assert limit_of([NOTHING], 10) == 0


@pytest.mark.parametrize("cuts", [[], [100, 1700]])
def test_the_nearest_rows_by_slack_over_size_and_those_that_cross_first(cuts):
    rng = np.random.default_rng(3)
    n, norms, u, now = 2000, rng.exponential(size=2000), rng.standard_normal(2000), None
    parts = [WorkingSet() for _ in range(len(cuts) + 1)]
    for part, of in zip(parts, np.split(norms, cuts), strict=True):
        part.norms = of

    def ask(method, *arguments):
        if method == "begin":
            return [part.begin(of, *arguments) for part, of in zip(parts, np.split(now, cuts), strict=True)]
        return [getattr(part, method)(*arguments) for part in parts]

    now = u
    others, count, distance = choose(ask, n, 0.1, 0.3, True)
    members = np.concatenate([part.members for part in parts])
    assert others and count == members.sum() and 0.07 * n <= count <= 0.15 * n
    assert (u**2 / norms)[members].max() <= (u**2 / norms)[~members].min()
    assert distance == pytest.approx(np.abs(u[members]).mean())
    now = u - 0.8 * rng.standard_normal(n)                               # lines stay where they were
    others, count, _ = choose(ask, n, 0.1, 0.3, False)
    after = np.concatenate([part.members for part in parts])
    crossed = ((u > 0) != (now > 0)) & ~members
    when = u / (u - now)
    assert others and (after & ~members).sum() <= 0.15 * n < crossed.sum() and (after[members]).all()
    assert when[after & ~members].max() <= when[crossed & ~after].min() and not (after & ~members & ~crossed).any()
    assert choose(ask, n, 0.0, 0.3, False)[0] is False                   # nothing new
    np.testing.assert_array_equal(np.concatenate([part.u for part in parts]), u)


def test_rows_without_size_or_number_are_not_in_the_working_set():
    part = WorkingSet()
    part.norms = np.array([0.0, 0.0, 1.0, np.nan, np.inf])
    with np.errstate(all="raise"):
        part.begin(np.array([0.0, 1.0, 0.5, 0.5, 1.0]), True)
        assert part.keep_below(limit_of([count_distances(part.u, part.norms)], 2))[0] == 3
        assert part.members.tolist() == [False, True, True, False, True]  # of a row without size any change is large
        assert part.keep_crossed(0)[:2] == (0, 3)


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, np.float32, sparse.csr_matrix])
def test_straight_lines_that_touch_the_hinge_row_by_row(form, n_threads):
    X, u = form(X_rare[:700]), np.random.default_rng(4).standard_normal(700)
    signed_weight = y_rare[:700] * np.random.default_rng(5).choice([0.0, 1.0, 3.0], 700)
    rows = open_rows(X).row_pass(signed_weight, intercept=True, n_threads=n_threads)
    vectors, totals = rows.lines(u, 0.1)
    slow, slow_totals = by_sides(X_rare[:700], signed_weight, smoothed(u, 0.1)[1], np.ones(700))
    np.testing.assert_allclose(vectors, slow, rtol=0, atol=1e-5 if form is np.float32 else 1e-10)
    np.testing.assert_allclose(totals, slow_totals, rtol=1e-12)
    again = open_rows(X).row_pass(signed_weight, intercept=True, n_threads=2).lines(u, 0.1)
    assert [part.tobytes() for part in again] == [vectors.tobytes(), totals.tobytes()]
    with pytest.raises(ValueError, match="slacks"):
        rows.lines(u[1:], 0.1)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("sample", [None, (0.3, 0.1, 7)])
def test_sums_of_the_lines(form, sample):
    n = 3000
    X, y = X_rare[:n], y_rare[:n] * np.random.default_rng(1).choice([0.0, 0.5, 2.0], n)
    sizes = 1 / np.append((X**2).mean(axis=0), 1.0)
    rows, (sums, gradient) = looked_at(form(X), y, sizes=sizes)
    u = 1 - np.where(y < 0, -1, 1) * (X @ W[:18] + W[18])
    a = (1 + u / np.hypot(1e-2, u)) / 2
    vectors, totals = by_sides(X, y, a, np.ones(n))
    np.testing.assert_allclose(gradient[1:], vectors, atol=1e-9 * n)
    np.testing.assert_allclose(sums[4:6], totals, rtol=1e-9)
    part, own, own_totals, distance, reads = rows.gather_working_set(0.12, 0.3, True, 1e-2, sample).answer
    norms = X**2 @ sizes[:18]
    members = u**2 / norms < np.sort(u**2 / norms)[int(0.12 * n)] * (1 - 1 / 16)
    assert members[part.rows].sum() == members.sum() > 0.08 * n and reads == part.share == part.n_rows / n
    weight = np.zeros(n)
    weight[part.rows] = np.abs(part.signed_weight) / np.where(y == 0, 1, np.abs(y))[part.rows]
    assert (weight[members & (y != 0)] == 1).all() and (np.max(weight) > 3) == (sample is not None)
    vectors, totals = by_sides(X, y, a, weight)
    np.testing.assert_allclose(own, vectors, atol=1e-9 * n)
    np.testing.assert_allclose(own_totals, totals, rtol=1e-9)
    assert 0 < distance < np.abs(u).mean()
    assert rows.gather_working_set(0.12, 0.3, False, 1e-2) is None       # the same rows again


def test_the_small_problem_is_that_of_the_rows_beside_straight_lines():
    # its minimum, found by SciPy in a smoothed form of its own, and its bound meet, below the true minimum
    X, y, l2 = X_rare[:400], y_rare[:400], 1e-2
    with single_threaded_blas():
        whole = ContinuationNewton(open_rows(X).row_pass(y, intercept=True, n_threads=1), Problem(ElasticNet(l2), 18),
                                   Settings(tol=1e-7)).run()
    rows, (sums, gradient) = looked_at(X, y, 0.9 * whole.w, 1e-4)
    part, vectors, totals, *_ = rows.gather_working_set(0.5, 0.6, True, 1e-4).answer
    linear = (gradient[1:] - vectors).sum(axis=0) / 400
    ones, signs = np.hstack([X, np.ones((400, 1))])[part.rows], y[part.rows]
    small = ContinuationNewton(part, Problem(ElasticNet(l2), 18),
                               Settings(tol=1e-7, max_passes=100.0, width_end=1e-300))
    small.linearise_others(gradient[1:] - vectors, sums[4:6] - totals, 400.0)
    with single_threaded_blas():
        result = small.run()
    free = np.append(np.ones(18), 0.0)

    def value(w, width):
        u = 1 - signs * (ones @ w)
        root = np.hypot(width, u)
        slope = l2 * free * w - linear - ((1 + u / root) / 2 * signs) @ ones / 400
        return l2 / 2 * (free * w) @ w - linear @ w + ((sums[4:6] - totals).sum() + (u + root).sum() / 2) / 400, slope

    w = np.zeros(19)
    for width in np.logspace(0, -7, 15):
        w = minimize(value, w, (width,), jac=True, method="BFGS", options={"gtol": 1e-9}).x
    best = value(w, 1e-12)[0]
    assert result.status == "converged"
    assert result.objective == pytest.approx(best, rel=1e-5)
    assert best * (1 - 1e-6) <= result.objective and result.dual <= best * (1 + 1e-6)
    bound, total, v = small.dual_point()
    assert bound == result.dual == pytest.approx(total - v @ v / (2 * l2), rel=1e-6)
    assert result.dual <= whole.objective


def small_problem(*received):
    part = open_rows(X_rare[:400]).row_pass(y_rare[:400], intercept=True, n_threads=1)
    small = ContinuationNewton(part, Problem(ElasticNet(1e-2), 18),
                               Settings(tol=1e-7, max_passes=100.0, width_end=1e-300))
    small.linearise_others(np.zeros((2, 19)), [0.0, 0.0], 400.0, *received)
    with single_threaded_blas():
        return small.run()


@pytest.mark.parametrize("known, wanted, status", [(np.nan, 1e-3, "converged"), (1e9, np.inf, "left")])
def test_a_small_problem_ends_where_it_has_said_enough(known, wanted, status):
    result = small_problem(known, wanted)
    assert result.status == status and result.n_iter < 5 and result.gap > 1e-6


def test_a_small_problem_without_a_finite_curvature_ends_quietly():
    # whoever begins it alone is told
    source = Elsewhere.of(X_rare[:400], y_rare[:400], [], True)
    for beside in (True, False):
        small = ContinuationNewton(source, Problem(ElasticNet(1e-2), 18), Settings(width_end=1e-300))
        if beside:
            small.linearise_others(np.zeros((2, 19)), [0.0, 0.0], 400.0)
        small.begin()
        sums, gradient, hessian = evaluate_as_asked(source, **small.ask())
        received = sums, gradient, hessian * np.nan
        if beside:
            small.tell(*received)
            assert small.asks is None and small.status == "left"
        else:
            with pytest.raises(FloatingPointError, match="not finite"):
                small.tell(*received)


def test_a_step_that_brings_no_bound_has_not_failed():
    steps, newton = working_set.WorkingSetSteps((0.1, 0.1)), SimpleNamespace()
    newton.settings, newton.source, newton.reads, newton.width = Settings(), SimpleNamespace(share=1.0), 2.0, 1e-4
    newton.source.gather_working_set = lambda share, most, moved, *_: moved
    newton.point, newton.last_dual_sums = np.ones(2), lambda: None
    newton.result = SimpleNamespace()
    asked = []
    for dual, objective, bends in ((0.1, 1.0, False), (0.1, 0.9, True), (0.2, 0.9, False), (0.3, 0.9, False)):
        newton.result.dual, newton.result.objective, steps.bends, steps.last_minimum = dual, objective, bends, 0.89
        asked.append(steps.next_rows(newton))
    assert asked == [True, True, False, None]                            # where moved; two in turn that failed
    assert steps.open == pytest.approx(0.01)                             # by the one that bent
    steps.failures, steps.bends, steps.last_minimum, newton.result.objective = 0, True, None, 0.5
    assert steps.next_rows(newton) and steps.open == pytest.approx(0.01)                # the minimum was not found
    steps.bends, steps.last_minimum = True, 0.5
    assert steps.next_rows(newton) is False and steps.open == pytest.approx(working_set.UNSURE * 0.5)


@pytest.mark.parametrize("status, known", [("converged", True), ("max_passes", False)])
def test_only_a_small_problem_that_was_solved_says_what_is_left(status, known):
    # a sample of far rows that bent, stopped half way, was believed: all rows began at a hundredth of the width
    steps = working_set.WorkingSetSteps((0.1, 0.1))
    found = SimpleNamespace(objective=0.5, passes=1.0, status=status, w=np.ones(2))
    steps.bends = True
    steps.small = SimpleNamespace(store=lambda result: None, result=found)
    newton = SimpleNamespace(offer=lambda *given: None, result=SimpleNamespace(dual=0.1))
    assert steps.minimum(newton) is found.w and steps.last_minimum == (0.5 if known else None)


def test_a_dual_point_that_is_no_better_is_not_taken():
    rows = open_rows(X_rare[:500]).row_pass(y_rare[:500], intercept=True, n_threads=1)
    newton = ContinuationNewton(rows, Problem(ElasticNet(1e-4), 18), Settings(max_passes=5.0, tol=1e-9))
    newton.run()
    before, reads = newton.dual_point(), newton.reads
    newton.offer(before[0] / 2, 1.0, np.ones(18), 0.25)
    newton.offer(None, None, None, 0.5)
    assert newton.dual_point()[0] == before[0] and newton.reads == reads + 0.75
    with pytest.raises(ValueError):
        newton.offer(2 * before[0], 1.0, np.ones(4), 0.0)
    with pytest.raises(ValueError):
        newton.linearise_others(np.ones((2, 5)), [1.0, 1.0], 7.0)
    with pytest.raises(ValueError):
        newton.propose(np.ones(4))


# ---------------------------------------------------------------- fits

def fit(seed, **parameters):
    X, y = rows_with_rare_columns(48_000, seed)
    return SmSVMClassifier(**{"l2": 1e-6, "tol": 1e-4, "random_state": 0, **parameters}).fit(X, y)


@pytest.fixture
def steps(monkeypatch):
    """What was made of every small problem: None, or a point."""
    made, minimum = [], working_set.WorkingSetSteps.minimum
    monkeypatch.setattr(working_set.WorkingSetSteps, "minimum",
                        lambda self, *given: made.append(minimum(self, *given)) or made[-1])
    return made


def noise(n=40_000, seed=70):
    """Labels that no column tells anything of: at the optimum most rows are at the hinge."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 20)), rng.choice([-1, 1], n, p=[0.6, 0.4])


def test_it_saves_reads(monkeypatch):
    X, y = rows_with_rare_columns(100_000, 4)
    fits = [SmSVMClassifier(l2=l2, random_state=0).fit(X, y) for l2 in (1e-3, 1e-5)]
    monkeypatch.setattr(cost, "WORKING_SET_FROM_ROWS", np.inf)
    plain = [SmSVMClassifier(l2=l2, random_state=0).fit(X, y) for l2 in (1e-3, 1e-5)]
    for ours, theirs in zip(fits, plain, strict=True):
        assert ours.n_passes_ < 0.9 * theirs.n_passes_
        assert ours.objective_[0] == pytest.approx(theirs.objective_[0], rel=2e-4)


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
def test_separable_rows_take_few_reads_whatever_the_penalty(share):
    # The subset leaves such a fit at ten times the optimum. A small problem whose minimum was far below that was given
    # up as too low to be true, and Newton steps of all rows took 22 to 51 reads: one penalty in a grid for another's 4.
    X = np.random.default_rng(1).standard_normal((50_000, 12))
    z = X @ np.random.default_rng(2).standard_normal(12)
    y = np.where(z > np.quantile(z, share), 1, -1)
    for l2 in (1e-3, 1e-5, 1e-7):
        model = SmSVMClassifier(l2=l2, random_state=0).fit(X, y)
        assert model.n_passes_ <= 10 and model.duality_gap_[0] <= 1e-4


def test_its_certificate_is_true(steps):
    ours, best = fit(1), fit(1, tol=1e-8, max_passes=1e3)
    assert steps
    assert ours.objective_[0] - best.objective_[0] <= ours.duality_gap_[0] * ours.objective_[0] <= 1e-4


def test_far_rows_bend_where_the_working_set_leads_nowhere(steps):
    X, y = noise()
    model = SmSVMClassifier(l2=1e-4, random_state=3).fit(X, y)
    assert steps[0] is None and steps[1] is not None                     # a minimum too low to be true; with a sample
    best = SmSVMClassifier(l2=1e-4, tol=1e-8, subset_growth=None, max_passes=1e3).fit(X, y)
    assert model.objective_[0] - best.objective_[0] <= model.duality_gap_[0] * model.objective_[0] <= 1e-4


def test_the_line_is_searched_where_too_many_rows_crossed():
    # few are positive, and what tells them is weak: the optimum has most of the others at the hinge
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40_000, 20))
    z = X[:, :3].sum(axis=1) + 3 * rng.standard_normal(40_000)
    searched = 0
    for seed in range(8):
        history = SmSVMClassifier(l2=1e-5, random_state=seed).fit(X, np.where(z > np.quantile(z, 0.97), 1, -1)).history_
        members = np.flatnonzero((history["active_rows"] == 0) & (np.asarray(history["step"]) < 1))
        searched += len(members)
        assert all(history["objective"][members] < history["objective"][members - 1])
    assert searched


def test_the_others_go_on_at_a_width_that_what_is_left_calls_for(monkeypatch):
    # nothing bounds the objective from below where a sample of the far rows bent: its minimum says what is left
    X, y = noise()
    monkeypatch.setattr(working_set, "FAILURES", 0)
    widths = []
    for open_gap in (1e-3, 1e-4):
        monkeypatch.setattr(working_set.WorkingSetSteps, "open",
                            property(lambda _, left=open_gap: left, lambda *_: None), raising=False)
        history = SmSVMClassifier(l2=1e-4, random_state=3).fit(X, y).history_
        curved = np.flatnonzero(history["active_rows"])
        widths.append(history["smoothing"][curved[curved > np.flatnonzero(history["active_rows"] == 0)[-1]][0]])
    assert widths[1] < widths[0] / 2


def test_where_they_lead_nowhere_all_rows_go_on(steps, monkeypatch):
    # one row in a thousand says nothing of the others
    monkeypatch.setattr(working_set, "SHARE", 0.001)
    monkeypatch.setattr(working_set, "MOST", 0.002)
    monkeypatch.setattr(working_set, "FAILURES", 1)
    model = fit(4)
    assert len(steps) <= 4 and model.duality_gap_[0] <= 1e-4
    assert model.history_["active_rows"][-1] > 0                         # curvature was summed at the end


@pytest.fixture
def few_rows(monkeypatch):
    """Some hundred rows are enough for these steps."""
    for name, value in {"SUBSET_FROM_ROWS": 40, "WORKING_SET_FROM_ROWS": 0, "SUBSET_ROWS_PER_COLUMN": 0.2,
                        "PILOT_ROWS": 30}.items():
        monkeypatch.setattr(cost, name, value)


def test_newton_steps_go_on_where_a_certificate_falls_short_when_evaluated(steps, few_rows):
    # sums of step after step called it certified; the evaluation at the end did not, and there is no curvature here
    rng = np.random.default_rng(0)
    X = 4e5 * rng.standard_normal((200, 1)) * (rng.random((200, 1)) < 0.35)
    y = np.where(rng.random(200) < 0.14, 1, -1)
    model = SmSVMClassifier(l2=4e-13, tol=5e-8, fit_intercept=False, class_weight="balanced", max_passes=200)
    model.fit(X, y)
    assert steps and model.history_["active_rows"][-1] > 0 and model.duality_gap_[0] <= 1e-5


@pytest.mark.parametrize("seed", [5, 83])
def test_a_step_that_was_proposed_when_its_bound_ended_the_fit_is_not_taken_later(seed, steps, few_rows):
    # the bound was enough until it was evaluated; the step then had no curvature at its end
    rng = np.random.default_rng(seed)
    n = int(rng.integers(80, 500))
    X = rng.standard_t(2, (n, 1)) * (rng.random((n, 1)) < rng.uniform(0.2, 1))
    rng.standard_normal(n)
    y = np.where(rng.random(n) < 0.5, 1, -1)
    model = SmSVMClassifier(l2=1e-6, fit_intercept=False, random_state=0).fit((X * 4e24).astype(np.float32), y)
    assert steps and model.history_["active_rows"][-1] > 0 and np.isfinite(model.objective_[0])


def test_a_warm_start_steps_once_newton_steps_came_close(steps, monkeypatch):
    X, y = rows_with_rare_columns(48_000, 2)
    model = SmSVMClassifier(l2=1e-3, random_state=0, warm_start=True).fit(X, y)
    steps.clear()
    warm = model.set_params(l2=1e-5).fit(X, y)
    assert any(step is not None for step in steps) and warm.duality_gap_[0] <= 1e-4
    best = SmSVMClassifier(l2=1e-5, tol=1e-8, max_passes=1e3).fit(X, y)
    assert warm.objective_[0] - best.objective_[0] <= 1e-4 * warm.objective_[0]


def test_the_bits_of_any_number_of_threads():
    one, two = (fit(2, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert np.array_equal(one.coef_, two.coef_) and one.duality_gap_[0] == two.duality_gap_[0]
    assert one.n_passes_ == two.n_passes_


def test_reads_are_limited(steps):
    free = fit(3)
    assert steps
    for most in np.linspace(2.0, free.n_passes_ - 1, 7):
        with pytest.warns(UserWarning, match="max_passes"):
            limited = fit(3, max_passes=most)
        assert limited.n_passes_ <= most and np.isfinite(limited.objective_[0])


@pytest.mark.parametrize("rows, l2", [(noise, 1e-4), (lambda: rows_with_rare_columns(40_000, 0), 1e-3)])
def test_a_fit_goes_on_from_a_checkpoint_between_two_steps(rows, l2, tmp_path):
    # far rows have bent; a step has led to a higher point, so that the lines are those of the point before
    X, y = rows()
    model, passes = SmSVMClassifier(l2=l2, random_state=3 if rows is noise else 0), []
    whole = clone(model).set_params(callback=lambda model: passes.append(model.n_passes_)).fit(X, y)
    for n in range(len(passes) - 3, len(passes)):
        assert same(stopped(model, tmp_path / "state", n, X, y).fit(X, y), whole)


def test_a_warm_start_goes_on_from_a_checkpoint(tmp_path, steps):
    X, y = rows_with_rare_columns(48_000, 2)
    first, seen = SmSVMClassifier(l2=1e-3, random_state=0, warm_start=True).fit(X, y), []

    def again(**parameters):
        return copy.deepcopy(first).set_params(l2=1e-5, **parameters)

    steps.clear()
    whole = again(callback=lambda model: seen.append(0)).fit(X, y)
    assert steps
    for n in range(1, len(seen) + 1):           # the last one before the rows are measured
        kept = Checkpoint(tmp_path / f"state {n}", **OFTEN)
        with pytest.raises(KeyboardInterrupt):
            again(checkpoint=kept, callback=StopAt(n)).fit(X, y)
        went_on = again(checkpoint=kept).fit(X, y)
        assert went_on.n_passes_ == whole.n_passes_
        np.testing.assert_array_equal(went_on.coef_, whole.coef_)
