"""The plan of a fit in words."""

from cmargin.solvers.plan import next_stage, plan

STAGES = {
    "row_lengths": "Measure the lengths of some rows",
    "length_ratio": "Measure the lengths of a few rows beside the penalty",
    "own_part": "Measure what a few rows have in columns of their own",
    "without_margin": "Sweep once over a few rows",
    "penalty_counts": "Look whether any row costs something beside the penalty",
    "class_sizes": "Count the rows of either class",
    "rank": "Trial of {rank}, at a relative step of {step:g}",
    "longer_step": "Trial of a relative step of {step:g}",
    "shorter_step": "Trial of a relative step of {step:g}",
    "together": "Conjugate gradients of all problems side by side",
    "gram": "Dual: all problems by the Gram matrix of their rows",
    "listed": "Dual: all problems by products of the rows that each lists",
    "dual": "Dual: coordinate descent in the dual variables",
    "products": "Newton steps by Hessian-vector products",
    "reduced": "Newton steps in as many unknowns as rows",
    "reduced_again": "Newton steps in as many unknowns as rows again, with all their digits and half of tol",
    "subset": "Newton steps on a tenth of the rows, or fewer",
    "newton": "Newton steps on all rows",
    "published": "Steps of the published Algorithms 1 to 4",
    "pursuit": "Newton steps on all rows",
    "passes": "Stochastic passes",
    "optimum": "Penalised optimum of the multinomial loss, by Newton's method",
    "columns": "Penalised optimum of the multinomial loss, by Newton steps on the columns that count",
    "path": "Penalised optima of the multinomial loss, their strength judged on rows left out",
    "refit": "Passes over all rows",
    "again": "Passes over all rows again, in another order",
    "certify": "Certificate: objective and duality gap evaluated anew",
}
PLACES = {"memory": "in memory", "files": "read from files", "device": "on a device",
          "ranks": "divided among MPI ranks", "workers": "divided among the workers of a cluster"}


def description(stats, problem, count=None):
    """The rows and the problem, in one line; ``count`` says how many problems there are, binary ones if None."""
    kind = "sparse" if stats.sparse else "dense"
    stored = f", {stats.entries_per_row:.3g} entries a row" if stats.sparse else ""
    if count is None:
        count = "1 binary problem" if problem.n_problems == 1 else f"{problem.n_problems} binary problems"
    return (f"{stats.n_rows:,} rows of {stats.n_features:,} columns ({kind} float{8 * stats.itemsize}{stored}, "
            f"{PLACES[stats.place]}), {count}, loss {problem.loss.name!r}, "
            f"{problem.penalty}")


def sentence(stage):
    """What a stage does and why."""
    rank = "the rank at the knee of the spectrum" if stage.rank is None else f"rank {stage.rank}"
    text = f"{STAGES[stage.what or stage.kind].format(rank=rank, step=stage.step)}, as {stage.reason}."
    if stage.start == "warm":
        text += " It begins with the weights of the last fit."
    if stage.working_set:
        text += " Later steps go to the optimum of the rows near the hinge, beside linearised others."
    return f"{text} If it does not end the fit: {stage.otherwise}." if stage.otherwise else text


def explanation(stats, problem, settings, known=(), following=next_stage):
    """Yield the expected stages of a fit, a line each.

    They are those of one binary problem where no stage is given up and every measurement is in favour of the stage that
    it decides about. ``known``: outcomes of probes that were made already; ``following``: `next_stage`, or
    `next_pursuit_stage`.
    """
    for number, stage in enumerate(plan(stats, problem, settings, known, following), 1):
        yield f"{number}. {sentence(stage)}"
