"""Seconds until each solver is within a relative distance of the best objective anyone found."""

from functools import partial

import numpy as np

from cmargin._runtime.blas_threads import single_threaded_blas
from race.classifiers import unfit
from race.hinge import squared_hinge_l1
from race.losses import PEERS
from race.traces import (
    REPEATS,
    SHORT,
    TimeUp,
    Trace,
    clock_of,
    joined,
    passes_within,
    quiet,
    ratio,
    timed,
    trace,
    within,
)

TARGETS = (1e-2, 1e-3, 1e-4)
WARM_UP = 100                                  # seconds, which compiling the kernels of a peer may take
OTHER_OBJECTIVE = "LinearSVC-l1"


LOSSES = {"hinge": lambda z: np.maximum(0.0, 1.0 - z), "squared_hinge": lambda z: np.maximum(0.0, 1.0 - z) ** 2,
          "logistic": lambda z: np.logaddexp(0.0, -z)}


def objective(w, problem):
    """(l2/2) |w|^2 + l1 |w|_1 + mean loss, in float64."""
    loss = LOSSES[problem.loss](problem.y * (problem.X @ w)).mean()
    return problem.l2 / 2 * float(w @ w) + problem.l1 * float(np.abs(w).sum()) + float(loss)


def settled(values, alike=4):
    """Eight times the effort changed nothing. Mere lack of progress says little: a dual solver's objective may rise."""
    return len(values) > alike + 2 and np.ptp(values[-alike:]) <= 1e-7 * abs(values[-1])


def trace_of(name, problem, limit, threads, level=-np.inf):
    """One peer's trace in all its ways; a small problem goes first, so that imports and compilers are not timed.

    A way ends at the objective ``level``, and no later way is tried for longer than that took. Short of it twelve runs
    alike end it, not four: one Newton step may do for tolerances from 0.3 to 4e-4.
    """
    alike = 4 if np.isneginf(level) else 12
    ways = PEERS[problem.loss][name].ways_on(threads)
    few = min(200, len(problem.y))
    small = problem._replace(X=problem.X[:few], y=np.where(np.arange(few) % 2, 1.0, -1.0))

    def judge(run):
        with single_threaded_blas():           # idle threads of BLAS spin on, into the next solver's time
            value = objective(run.w, problem)
        return value, (run._replace(w=None), int(np.count_nonzero(run.w)))

    try:
        with quiet(), within(WARM_UP):
            for run, _ in ways:
                for effort in (1.0, 100.0):    # skglm compiles what one step does not come to
                    run(small, effort, threads, 1)
    except TimeUp:
        return Trace([], 0.0, "broken off before it began")
    except Exception as error:
        return Trace([], 0.0, f"failed: {error}".split("\n")[0])
    traces, most = [], 1
    for run, growth in ways:
        traces.append(trace(partial(_run, run, problem, threads, most), judge, limit,
                            lambda values: values[-1] <= level or settled(values, alike), growth, clock_of(threads)))
        arrived = traces[-1].first(lambda value: value <= level)
        if arrived:                            # an alarm that rings while short runs are repeated would tell nothing
            limit = min(limit, max(arrived.seconds, SHORT * REPEATS))
        most = passes_within(traces[0].points, limit)
    return joined(traces)


def _run(run, problem, threads, most, effort):
    return run(problem, effort, threads, most)


def reference(traces):
    """(best objective of all, its certified relative distance from the optimum: NaN without a certificate)."""
    best = min((p.value for t in traces.values() for p in t.points), default=np.nan)
    below = [p.value * (1 - p.run[0].gap) for t in traces.values() for p in t.points if np.isfinite(p.run[0].gap)]
    return best, max(0.0, 1 - max(below) / best) if below else np.nan


def row_of(name, trace, best):
    """Seconds to every target (inf where not reached), and the run of the last target, or else the best run."""
    first = {t: trace.first(lambda value, t=t: value <= best * (1 + t)) for t in TARGETS}
    row = {"solver": name, "longest": trace.longest, "end": trace.end}
    row |= {f"{t:g}": first[t].seconds if first[t] else np.inf for t in TARGETS}
    if not trace.points:
        return row | {"best": np.nan, "passes": np.nan, "gap": np.nan, "nonzeros": "", "how": trace.end}
    run, nonzeros = (first[TARGETS[-1]] or min(trace.points, key=lambda p: p.value)).run
    how = run.how if first[TARGETS[-1]] else f"{run.how}, {trace.end}"
    return row | {"best": min(p.value for p in trace.points) / best - 1, "passes": run.passes, "gap": run.gap,
                  "nonzeros": nonzeros, "how": how}


def other_objective(problem, limit, threads):
    """A row for LinearSVC on its own l1 objective: its seconds and nonzeros, nothing else can be compared."""
    row = {"solver": OTHER_OBJECTIVE, "longest": 2 * limit, "best": np.nan, "passes": np.nan, "gap": np.nan,
           "nonzeros": "", "ratio": np.nan, "bound": ""} | {f"{t:g}": np.nan for t in TARGETS}
    try:
        with quiet(), within(2 * limit):
            run, seconds = timed(lambda: squared_hinge_l1(problem), clock_of(threads))
    except TimeUp:
        return row | {"end": "broken off", "how": "squared hinge (another objective): broken off"}
    return row | {"end": "own tolerance", "longest": seconds, "passes": run.passes,
                  "nonzeros": int(np.count_nonzero(run.w)),
                  "how": f"squared hinge (another objective) in {seconds:.3g} s, {run.how}"}


def left_out(name, problem):
    """Why a solver cannot take part in the race on this problem, or an empty string."""
    if problem.penalty not in PEERS[problem.loss][name].penalties:
        return f"does not take {problem.penalty}"
    reason = unfit(name, problem.X)
    return f"is {reason}" if reason else ""


def race(problem, limit, threads, names):
    """(rows, best objective, its certified distance from the optimum) of one binary problem."""
    entrants = [name for name in names if not left_out(name, problem)]
    traces = {name: trace_of(name, problem, limit, threads) for name in entrants}
    best, distance = reference(traces)
    rows = [row_of(name, t, best) for name, t in traces.items()]
    ours = next((row for row in rows if row["solver"] == "cmargin"), None)
    for row in rows:
        row["ratio"], row["bound"] = ratio(row, ours, f"{TARGETS[-1]:g}")
    if problem.l1 and problem.loss == "hinge" and "LinearSVC" in names:
        rows.append(other_objective(problem, limit, threads))
    return rows, best, distance
