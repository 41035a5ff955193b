"""Short passes over some rows, each judged on rows held out: the loop that makes what `next_trial` asks for."""

from cmargin.solvers.plan import Outcome
from cmargin.solvers.slnd_plan import next_trial


def trials(problem, losses_of, judges, late=lambda: False, note=None):
    """Make the trials of ``problem``, a `TrialStats`; return their outcomes.

    Parameters
    ----------
    losses_of : callable
        Of a `Stage`: the loss of every row held out, after its passes.
    judges : {what: callable}
        Of the losses of a trial and the best so far: whether its rank or step is taken.
    late : callable
        Whether no trial may follow the first.
    note : callable or None
        Called with every `Stage` that begins.
    """
    outcomes, best = [], None
    while (stage := next_trial(problem, outcomes)) is not None and not (outcomes and late()):
        if note is not None:
            note(stage)
        losses = losses_of(stage)
        taken = best is None or bool(judges[stage.what](losses, best))
        if taken and (best is None or stage.what != "shorter_step" or losses.mean() < best.mean()):
            best = losses                        # a shorter step may be taken that is a little worse
        outcomes.append(Outcome("probe", "taken" if taken else "left", stage.what, numbers=(stage.rank, stage.step)))
    return outcomes
