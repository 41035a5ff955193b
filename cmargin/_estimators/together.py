"""Many problems of a fit of SmSVM solved together, before those that this does not prove are solved alone."""

from dataclasses import replace

import numpy as np

from cmargin._estimators.progress import say
from cmargin._estimators.pruned import BatchPruning
from cmargin.solvers.dual.gram import solve_by_listed_rows, solve_once
from cmargin.solvers.explain import sentence
from cmargin.solvers.newton.label_batches import most_steps, solve_together
from cmargin.solvers.plan import Outcome, next_stage

READS_OF_GRAM = 2.0            # of X: its Gram matrix, and what is proven on the rows themselves; without it those of
                               # which rows are listed first


def solve_all_together(fit):
    """Where `next_stage` says so: results of ``fit``, a `SmSVMFit`, for all problems that come to a certificate."""
    shared, settings = fit.shared, fit.settings
    stage = next_stage(shared.stats, shared.about, settings, shared.known)
    if stage is None or stage.kind not in ("together", "gram", "listed"):
        return
    if fit.estimator.verbose >= 2:
        say(fit.estimator, sentence(stage))
    if stage.kind == "together":
        solve_in_lanes(fit)
    else:
        solve_by_gram_matrix(fit, stage.kind == "gram")
    shared.known.append(Outcome(stage.kind, "left"))
    shared.learn(settings)


def solve_by_gram_matrix(fit, whole):
    """Of dense rows: by the products of all of them, or of those that problems list."""
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            gram = fit.source.gram_matrix(fit.intercept, fit.free is not None, whole)
    except FloatingPointError:                   # squares of rows overflow; Newton's method scales columns
        return
    try:
        solve = solve_once if whole else solve_by_listed_rows
        solve(gram, fit.labels, fit.weights, fit.problem.loss, fit.problem.penalty.l2,
              replace(fit.settings, between=fit._between_slices), fit.n_threads,
              lambda c, problem, w: hear_of_gram(fit, c, problem, w, whole))
    except BaseException:
        fit.interrupted.set()
        raise


def hear_of_gram(fit, c, problem, w, whole):
    """``problem`` c has come to its end, at weights ``w``."""
    result = fit.results[c]
    result.w, result.passes = w, READS_OF_GRAM + (0 if whole else problem.rounds - 1)
    settle(fit, c, problem.objective, problem.dual, problem.rounds, np.count_nonzero(w), np.count_nonzero(problem.s))


def solve_in_lanes(fit):
    """Of sparse rows."""
    settings = fit.settings
    l2 = fit.problem.penalty.l2
    l2_bias = None if not fit.intercept else 0.0 if fit.free is not None else l2
    pruning = None
    try:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            rows = fit.source.lane_rows(fit.weights, l2, l2_bias, len(fit.labels))
            positives, most = fit.labels.columns(), most_steps(settings.max_passes)
            if fit.share is not None:
                fit.share.rows = rows
            elif fit.prune is not None:
                pruning = BatchPruning(rows, positives, fit.prune, most)
            solve_together(rows.batches(positives, settings.tol, most), fit.n_threads, fit._between_slices,
                           lambda batch: hear(fit, batch, pruning))
    except BaseException:
        fit.interrupted.set()
        raise
    finally:                     # weights of before they were trained again, where time or an interrupt ended that
        for batch in [] if pruning is None else pruning.begun():
            hear(fit, batch)


def hear(fit, batch, pruning=None):
    """The problems of a `Batch` have come to their end; the next batch of them, where weights may go, or None."""
    if pruning is not None and (following := pruning.after(batch)) is not None:
        return following
    proven, share = batch.proven, fit.share
    for c, w in enumerate(proven.w, batch.lo):
        at = c - batch.lo
        result = fit.results[c]
        result.passes = float(proven.steps[at] + 1)
        result.objective, result.dual = float(proven.objective[at]), float(proven.dual[at])
        if not result.gap <= max(fit.settings.tol, fit.prune or 0.0):
            fit.in_vain[c] = result.passes                           # it begins anew, alone
            result.objective, result.dual, result.passes = np.inf, 0.0, 0.0
            continue
        if share is None:
            fit.kept.keep(c, w, proven.b[at])
        else:
            share.together.add(c)
        settle(fit, c, result.objective, result.dual, proven.steps[at], np.count_nonzero(w), proven.active[at])
    if share is not None:
        good = np.array([fit.results[c].status == "converged" for c in range(batch.lo, batch.hi)])
        share.hear_together(np.arange(batch.lo, batch.hi)[good], proven.of(good))
    return None


def settle(fit, c, objective, dual, n_iter, used, active):
    """Problem c is proven; ``used`` columns, ``active`` rows."""
    result, tell, seconds = fit.results[c], fit._teller(c), fit.clock.seconds
    result.objective, result.dual, result.n_iter = float(objective), float(dual), int(n_iter)
    result.width, result.status = 0.0, "converged"
    result.history = [[result.passes, seconds, seconds, 0.0, 0.0, result.objective, result.gap, 1.0, 0.0, used, active]]
    if tell is not None:
        tell(result)
