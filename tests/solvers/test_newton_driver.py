"""The compiled Newton driver: the same steps whoever answers, in slices of any length; what does not fit is refused."""

import time
from itertools import pairwise

import numpy as np
import pytest
from api import _sorting, advance_all, now, widths
from c_functions import ARRAY, SIZE, c_function
from correlated_columns import correlated_columns
from elsewhere import Elsewhere
from scipy import sparse
from side_by_side import finish_together
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.preprocessing import scale

from cmargin import SmSVMClassifier
from cmargin._runtime.blas_threads import single_threaded_blas
from cmargin._runtime.clock import RunClock
from cmargin.data import open_rows
from cmargin.data.loss import Loss
from cmargin.solvers.newton import slices
from cmargin.solvers.newton.continuation import ContinuationNewton
from cmargin.solvers.newton.published import PaperNewton
from cmargin.solvers.penalty import ElasticNet
from cmargin.solvers.problem import Problem, Settings

X_bc, y_bc = load_breast_cancer(return_X_y=True)
X_bc, y_bc = scale(X_bc), np.where(y_bc == 1, 1.0, -1.0)
RNG = np.random.default_rng(0)
X_wide = np.where(RNG.random((300, 400)) < 0.1, RNG.standard_normal((300, 400)), 0.0)
y_wide = np.where(X_wide[:, :5].sum(axis=1) + 0.1 * RNG.standard_normal(300) > 0, 1.0, -1.0)
PROBLEMS = {
    "ridge": (X_bc, y_bc, Problem(ElasticNet(1e-3), 30), {}),
    "l1": (X_bc, y_bc, Problem(ElasticNet(1e-4, 1e-2), 30), {}),
    "l1 alone": (X_bc, y_bc, Problem(ElasticNet(0.0, 1e-2), 30), {}),
    "logistic": (X_bc, y_bc, Problem(ElasticNet(1e-3), 30, Loss("logistic")), {}),
    "squared hinge, l1": (X_bc, y_bc, Problem(ElasticNet(1e-3, 1e-3), 30, Loss("squared_hinge")), {}),
    "products": (X_bc, y_bc, Problem(ElasticNet(1e-2), 30), {"linear_solver": "cg"}),
    "no penalty": (X_bc, y_bc, Problem(ElasticNet(0.0), 30, Loss("logistic")), {"max_passes": 8.0}),
    "columns in use": (X_wide, y_wide, Problem(ElasticNet(1e-3, 1e-2), None), {}),
    "columns in use, CSR": (sparse.csr_matrix(X_wide), y_wide, Problem(ElasticNet(1e-3, 1e-2), 400), {}),
}


def weighted(y):
    return y * np.random.default_rng(1).choice([0.0, 0.5, 2.0], len(y))


def in_memory(X, signed_weight, intercept, n_threads=1):
    return open_rows(X).row_pass(signed_weight, intercept=intercept, n_threads=n_threads)


def test_an_evaluation_after_the_end_sums_no_curvature():
    # the block of thousands of columns takes seconds, for a step that is never taken
    rows = in_memory(X_bc, y_bc, True)
    with single_threaded_blas():
        on_time = ContinuationNewton(rows, PROBLEMS["ridge"][2], Settings()).run()
        late = ContinuationNewton(rows, PROBLEMS["ridge"][2], Settings(clock=RunClock(time.perf_counter() - 1))).run()
    assert late.status == "max_time" and len(late.history) == 1 and np.isfinite(late.objective)
    assert on_time.history[0][10] > 0 == late.history[0][10]                  # rows with curvature


@pytest.mark.parametrize("name", PROBLEMS)
def test_rows_elsewhere_take_the_same_steps(name):
    X, y, problem, chosen = PROBLEMS[name]
    signed_weight, intercept = weighted(y), problem.free is not None
    with single_threaded_blas():
        here = ContinuationNewton(in_memory(X, signed_weight, intercept), problem, Settings(**chosen)).run()
        there = ContinuationNewton(Elsewhere.of(X, signed_weight, [17, 200], intercept), problem,
                                   Settings(**chosen)).run()
    assert there.status == here.status
    if name == "products":                         # conjugate gradients make much of rounding
        assert there.objective == pytest.approx(here.objective, rel=1e-4)
        return
    assert (there.n_iter, there.passes) == (here.n_iter, pytest.approx(here.passes))
    assert there.objective == pytest.approx(here.objective, rel=1e-9)
    np.testing.assert_allclose(there.w, here.w, atol=1e-5 * np.abs(here.w).max())


def test_a_length_that_wins_little_is_not_read_for():
    # Where the line was searched, its minimum was always read for, though it lay at 1.01 of the step just looked at:
    # 178 reads for these ten fits, 155 where the full step is kept unless the minimum wins a fifth of the first slope
    reads = []
    for seed in range(10):
        X, y = make_classification(150, 20, n_informative=10, flip_y=0.05, class_sep=0.5, weights=[0.8],
                                   random_state=seed)
        model = SmSVMClassifier(l2=1e-6, random_state=0, n_jobs=1).fit(X, y)
        reads.append(model.n_passes_)
        assert model.duality_gap_[0] <= model.tol
    assert sum(reads) < 167


@pytest.mark.parametrize("l1, solver", [(1e-3, "auto"), (0.0, "cg")])
def test_published_steps_have_the_whole_block(l1, solver):
    # more columns than a block of SmSVM's own l1 steps holds at first, or directions by conjugate gradients: a crash
    settings = Settings(tol=1e-2, linear_solver=solver, smoothing_decay=0.1, max_passes=1e3)
    with single_threaded_blas():
        result = PaperNewton(in_memory(X_wide, y_wide, False), Problem(ElasticNet(1e-3, l1)), settings, 0.1, None).run()
    assert result.status == "converged" and result.gap <= 1e-2


def test_published_steps_elsewhere():
    problem, settings = Problem(ElasticNet(1e-2, 1e-2)), Settings(tol=1e-3, max_passes=1e3, smoothing_decay=0.1)
    with single_threaded_blas():
        here = PaperNewton(in_memory(X_bc, y_bc, False), problem, settings, 0.1, None).run()
        there = PaperNewton(Elsewhere.of(X_bc, y_bc, [300], False), problem, settings, 0.1, None).run()
    assert here.status == there.status == "converged" and here.n_iter == there.n_iter
    np.testing.assert_allclose(there.w, here.w, atol=1e-9)


@pytest.mark.parametrize("name", PROBLEMS)
def test_slices_change_nothing(name):
    X, y, problem, chosen = PROBLEMS[name]
    rows = [in_memory(X, y, problem.free is not None) for _ in range(2)]
    with single_threaded_blas():
        whole = ContinuationNewton(rows[0], problem, Settings(**chosen)).run()
        newton, slices = ContinuationNewton(rows[1], problem, Settings(**chosen)), 0
        newton.begin()
        while newton.asks is not None:
            newton.advance(time.perf_counter() + 1e-5)
            newton.attend()
            slices += 1
    assert slices > 1
    assert newton.result.w.tobytes() == whole.w.tobytes() and newton.result.n_iter == whole.n_iter


def test_the_clock_is_that_of_python():
    before = time.perf_counter()
    assert before - 1e-6 <= now() <= time.perf_counter() + 1e-6


def test_a_slice_that_is_over_asks_nothing_of_the_rows():
    newton = ContinuationNewton(in_memory(X_bc, y_bc, True), Problem(ElasticNet(1e-3), 30), Settings())
    newton.begin()
    newton.advance(-np.inf)
    assert newton.asks == "evaluate" and newton.result.n_iter == 0


def test_a_long_evaluation_is_left_between_its_parts():
    X = RNG.standard_normal((20_000, 500), dtype=np.float32)
    rows = in_memory(X, np.sign(X[:, 0]).astype(float), False)
    newton = ContinuationNewton(rows, Problem(ElasticNet(1e-3)), Settings())
    newton.begin()
    with single_threaded_blas():
        newton.advance(time.perf_counter() + 1e-4)
    newton.store(newton.result)
    assert newton.asks == "evaluate" and newton.result.n_iter == 0
    newton.leave("max_time")
    assert newton.finish().objective == pytest.approx(1.0, rel=1e-6)               # that of w = 0, evaluated


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_classes_side_by_side_are_those_alone(n_threads):
    rng = np.random.default_rng(3)
    codes = [np.where(rng.random(len(y_bc)) < 0.3, -y_bc, y_bc) for _ in range(7)]
    problem = Problem(ElasticNet(1e-3), 30)
    with single_threaded_blas():
        alone = [ContinuationNewton(in_memory(X_bc, signed_weight, True), problem, Settings()).run()
                 for signed_weight in codes]
        drivers = [ContinuationNewton(in_memory(X_bc, signed_weight, True), problem, Settings())
                   for signed_weight in codes]
        finish_together(drivers, n_threads)
    assert [driver.result.w.tobytes() for driver in drivers] == [result.w.tobytes() for result in alone]


def test_more_problems_are_begun_where_they_end_within_a_slice(monkeypatch):
    at_work, real = [], slices.advance_all

    def noted(drivers, until, n_threads):
        at_work.append(len(drivers))
        real(drivers, until, n_threads)

    def way():
        driver = ContinuationNewton(in_memory(X_bc, y_bc, True), Problem(ElasticNet(1e-1), 30), Settings(tol=0.1))
        driver.begin()
        yield driver

    monkeypatch.setattr(slices, "advance_all", noted)
    monkeypatch.setattr(slices, "SLICE", 600.0)
    slices.side_by_side((way() for _ in range(25)), 1, "stopped")
    assert at_work == [4, 16, 5]
    at_work.clear()
    monkeypatch.setattr(slices, "SLICE", -1.0)                        # over before they begin: all stay at work
    with pytest.raises(StopIteration):
        monkeypatch.setattr(slices, "advance_all", lambda drivers, *given: at_work.append(len(drivers)) or next(steps))
        steps = iter(range(3))
        slices.side_by_side((way() for _ in range(25)), 1, "stopped")
    assert at_work == [4] * 4


def test_the_last_problem_has_all_threads(monkeypatch):
    # seven classes of forest cover on two threads: a seventh of the time one thread waited for the last class
    X = RNG.standard_normal((6000, 60))
    codes = [np.where(X[:, j] > 0, 1.0, -1.0) for j in range(3)]
    seen, drivers = [], []

    def way(signed_weight):
        driver = ContinuationNewton(in_memory(X, signed_weight, False), Problem(ElasticNet(1e-3)), Settings())
        driver.begin()
        drivers.append(driver)
        yield driver

    def all_but_the_last(workers, until, n_threads):
        seen.append(len(workers))
        for worker in workers:
            if worker is not drivers[2] or len(workers) == 1:
                worker.advance(np.inf)

    def run(n_threads):
        drivers.clear()
        with single_threaded_blas():
            slices.side_by_side(map(way, codes), n_threads, "stopped")
        return [driver.result.w.tobytes() for driver in drivers]

    alone = run(1)
    monkeypatch.setattr(slices, "advance_all", all_but_the_last)
    assert run(2) == alone
    assert seen and min(seen) > 1
    assert [driver.source.n_threads for driver in drivers] == [1, 1, 2]


@pytest.mark.parametrize("moment", [0, 1, 5])
def test_leaving_keeps_the_best_point(moment):
    newton = ContinuationNewton(in_memory(X_bc, y_bc, True), Problem(ElasticNet(1e-3), 30),
                                Settings(stop=lambda: False))
    newton.begin()
    for _ in range(moment):
        newton.advance(np.inf)
        newton.attend()
    newton.leave("stopped")
    result = newton.finish()
    assert result.status == "stopped" and result.n_iter == moment
    loss = np.maximum(0, 1 - y_bc * (X_bc @ result.w[:30] + result.w[30])).mean()
    assert result.objective == pytest.approx(loss + 5e-4 * result.w[:30] @ result.w[:30], rel=1e-12)


def test_answers_of_the_wrong_length_are_refused():
    def at_first_evaluation(**chosen):
        newton = ContinuationNewton(Elsewhere.of(X_bc, y_bc, [], True), Problem(ElasticNet(1e-3), 30),
                                    Settings(**chosen))
        newton.begin()
        assert newton.asks == "evaluate"
        return newton

    sums, gradient, block = np.zeros(16), np.zeros((3, 31)), np.zeros((31, 31))
    wrong = [(sums[1:], gradient, block), (sums, gradient[1:], block), (sums, gradient[:, 1:], block),
             (sums, gradient, block[1:, 1:]), (sums, gradient, block[1:]), (sums, gradient, None)]
    for answer in wrong:
        with pytest.raises(ValueError, match="shapes do not fit"):
            at_first_evaluation().tell(*answer)
    newton = at_first_evaluation(linear_solver="cg")
    with pytest.raises(ValueError, match="shapes do not fit"):
        newton.tell(sums, gradient, block)                       # no block was asked for
    newton.tell(*newton.source.evaluate(direction=np.zeros(31), step=1.0, line_width=1.0, width=1.0,
                                        curvature_floor=0.0, with_hessian=False))
    assert newton.asks == "hessp"
    with pytest.raises(ValueError, match="shapes do not fit"):
        newton.tell(np.zeros(30), 1.0)
    with pytest.raises(ValueError, match="elsewhere"):
        advance_all([newton], np.inf, 1)
    with pytest.raises(ValueError, match="shapes do not fit"):
        ContinuationNewton(in_memory(X_bc, y_bc, True), Problem(ElasticNet(1e-3), 30), Settings(), w=np.zeros(30))


def test_a_curvature_that_is_not_finite_ends_in_an_error():
    newton = ContinuationNewton(Elsewhere.of(X_bc, y_bc, [], False), Problem(ElasticNet(1e-3)), Settings())
    newton.begin()
    sums, gradient, block = newton.source.evaluate(direction=np.zeros(30), step=1.0, line_width=1.0, width=1.0,
                                                   curvature_floor=0.0)
    block[3, 4] = np.nan
    with pytest.raises(FloatingPointError, match="not finite"):
        newton.tell(sums, gradient, block)


def test_the_block_of_many_columns_holds_the_steepest():
    rng = np.random.default_rng(5)
    X, signed_weight = rng.standard_normal((60, 1000)), np.where(rng.random(60) < 0.5, 1.0, -1.0)
    newton = ContinuationNewton(Elsewhere.of(X, signed_weight, [], False), Problem(ElasticNet(1e-3, 1e-6)), Settings())
    newton.begin()
    newton.tell(*newton.source.evaluate(direction=np.zeros(1000), step=1.0, line_width=1.0, width=1.0,
                                        curvature_floor=0.0, with_hessian=False))
    steepest = np.argsort(-np.abs(X.T @ signed_weight))[:400]
    np.testing.assert_array_equal(newton.ask()["active"], np.sort(steepest))


@pytest.mark.parametrize("mean", [0.0, 1e7])
def test_what_is_reported_is_evaluated_where_rounding_may_have_gathered(mean):
    X = X_bc[:, :5] + mean
    source = Elsewhere.of(X, y_bc, [], True)
    with single_threaded_blas():
        result = ContinuationNewton(source, Problem(ElasticNet(1e-2), 5), Settings(tol=1e-2)).run()
    assert ("objective" in source.asked) == (mean > 0)
    loss = np.maximum(0, 1 - y_bc * (X @ result.w[:5] + result.w[5])).mean()     # which rounds a margin by 1e-9 too
    assert result.objective == pytest.approx(loss + 5e-3 * result.w[:5] @ result.w[:5], rel=1e-8)


class Uncertain(Elsewhere):
    """Rows whose dual variables say nothing."""

    def evaluate(self, **asked):
        sums, gradient, hessian = super().evaluate(**asked)
        sums[4:6], gradient[1:] = 0.0, 0.0
        return sums, gradient, hessian


@pytest.mark.parametrize("width_end", [0.0, 1e-6])
def test_a_subset_whose_gap_does_not_fall_is_left_where_all_rows_would_widen(width_end):
    # covtype, class 7, l2 = 1e-7: fifty times through the same widths, 45 reads of the whole data on a tenth of it
    newton = ContinuationNewton(Uncertain.of(X_bc, y_bc, [], False), Problem(ElasticNet(1e-3)),
                                Settings(width_end=width_end, max_passes=60.0))
    with single_threaded_blas():
        result = newton.run()
    widths = np.array(result.history)[:, 8]
    widened = (np.diff(widths) > 0).sum()
    if width_end:
        assert result.status == "width" and result.n_iter < 25 and result.width == widths[-1] and widened == 0
    else:
        assert result.status == "max_passes" and widened > 0


# ---------------------------------------------------------------- the width rule, alone

def test_full_steps_shrink_the_width_ever_faster():
    got = np.array(widths([1.0] * 6, [1.0] * 6, 0.9 * 0.5 ** np.arange(6)))
    by = got / np.append(1.0, got[:-1])
    assert by[0] == pytest.approx(0.4) and np.all(np.diff(by) <= 1e-15) and by.min() == 0.25


def test_short_steps_hold_the_width_and_very_short_ones_widen_it():
    assert widths([0.4], [1.0], [0.9], width=0.1) == [0.1]
    assert widths([0.6], [1.0], [0.9], width=0.1, decay=0.5) == [pytest.approx(0.1 * 0.5**0.5)]
    assert widths([0.1], [1.0], [0.9], width=0.1) == [0.2] and widths([0.1], [1.0], [0.9], width=0.9) == [1.0]


def test_long_steps_slow_the_width_down_until_the_gap_stays():
    falling = widths([3.0, 3.0, 3.0], [1.0] * 3, [0.9, 0.4, 0.1], width=0.1)
    stuck = widths([3.0, 3.0, 3.0], [1.0] * 3, [0.9, 0.9, 0.9], width=0.1)
    assert falling[2] == pytest.approx(0.5**0.125 * falling[1]) and stuck[2] < 0.7 * stuck[1]


def test_the_width_waits_where_it_is_not_what_keeps_the_gap_open():
    gaps = [0.4, 0.39, 0.38]
    held, going = widths([1.0] * 3, [1.0, 1.0, 0.01], gaps), widths([1.0] * 3, [1.0, 1.0, 0.38], gaps)
    assert held[2] == held[1] and going[2] < going[1]
    # wide gaps, as those of the first evaluations are, do not make it wait, unless they stay
    got = widths([1.0] * 6, [0.01] * 6, [0.9] * 6)
    assert got[3] < got[2] < got[1] and got[5] == got[4] == got[3]


def test_the_width_shrinks_no_further_than_the_tolerance_needs():
    # half a tolerance of smoothing error is enough: there it stays, until the gap has not fallen for three evaluations
    assert widths([1.0], [0.5e-4], [0.9], width=1e-3) == [1e-3]
    assert widths([1.0], [2e-4], [0.9], width=1e-3) == [pytest.approx(5e-4)]
    assert widths([1.0] * 5, [0.5e-4] * 5, [1.5e-4] * 5, width=1e-3)[4] < 1e-3


def test_a_gap_that_stays_for_long_widens():
    got = widths([0.4] * 9, [1.0] * 9, [0.3] * 9, width=0.01)
    assert got[7] == 0.01 and got[8] == 0.02


def test_the_width_goes_up_for_a_while_only():
    # what keeps the gap open is not the width: full steps take it to its end
    got = np.array(widths([1.0] * 800, [1e-3] * 800, [0.3] * 800, width=1e-3, tol=1e-9))
    assert 0 < (np.diff(got) > 0).sum() <= 50 and got[-1] == 1e-10


class Recorded(Elsewhere):
    """Notes where the rows are begun anew, and the widths of every evaluation: before the step, and after."""

    def everywhere(self, method, *args, **kwargs):
        if method == "start":
            self.asked.append("anew")
        elif method == "evaluate":
            self.asked.append((kwargs["line_width"], kwargs["width"]))
        return [getattr(part, method)(*args, **kwargs) for part in self.parts]


@pytest.mark.parametrize("widest", [1.0, 1e-7])
def test_a_width_that_goes_up_begins_anew(widest):
    # a step by the gradient at one width, its line searched at another, often had length 0; and where the width was the
    # widest already, the rows were begun anew at the same one
    X, y = correlated_columns(160, 4)
    rows = Recorded.of(X, y, [70], True)
    settings = Settings(tol=1e-9, max_passes=150, smoothing=widest)
    with single_threaded_blas():
        ContinuationNewton(rows, Problem(ElasticNet(0.0, 1 / 1600), 48), settings, width=widest).run()
    begun = [i for i, one in enumerate(rows.asked) if one == "anew"]
    assert begun[0] == 0 and len(begun) > 2
    for i in begun[1:]:
        before, after = rows.asked[i - 1][1], rows.asked[i + 1]
        assert before < after[0] == after[1] in (2 * before, widest)
    assert all(two[0] in one for one, two in pairwise(rows.asked) if "anew" not in (one, two))


def test_equal_values_are_sorted_by_place():
    sort = c_function(_sorting, "sort_with_index", None, SIZE, ARRAY, ARRAY)
    for values in ([3.0, 1.0, 2.0, 1.0, 1.0, -1.0], RNG.integers(0, 20, 300), []):
        values, places = np.array(values, float), np.arange(len(values))
        expected = np.argsort(values, kind="stable")
        sort(len(values), values, places)
        np.testing.assert_array_equal(places, expected)
