"""`fit(X_local, y_local, comm=comm)`: what ranks must agree on before they train, and what all of them end with.

Every rank comes here with rows of its own and checks them. Rank 0 compares what they say; whatever is wrong anywhere is
one sentence, raised everywhere. Then rank 0 trains on the `RankHome`, the others serve, and all leave with rank 0's
fitted attributes, or with its error.
"""

from dataclasses import dataclass

from cmargin._core.util._openmp import effective_n_threads
from cmargin._estimators.agreement import balanced, checked, compared, weighed
from cmargin._estimators.identity import keeper_of_ranks
from cmargin._runtime.blas_threads import single_threaded_blas
from cmargin._runtime.deferred import Deferred
from cmargin.data.failure import Failure
from cmargin.data.shards.mpi import RankHome, RankShard
from cmargin.data.shards.ranks import ON_RANKS, Ranks


@dataclass
class Ending:
    """How the fit ended on rank 0, as the others are told."""

    attributes: dict
    interrupted: bool
    failure: Failure | None


def fit(estimator, X, y, sample_weight, comm, begin):
    """`LinearClassifier.fit` of all ranks' rows together; called on every rank.

    Returns
    -------
    shortfall : str or None
        On rank 0, a sentence on how far the fit got, for a warning.
    """
    ranks, deferred, shortfall = Ranks(comm), None, None
    with ranks.interrupts, single_threaded_blas():
        ranks.interrupts.holding = True
        shard, agreed = _placed(ranks, estimator, X, y, sample_weight)
        if ranks.rank == 0:
            ending, deferred, shortfall = _drive(RankHome(ranks, shard, agreed), estimator, begin)
        else:
            ending = shard.serve()
        ending = ranks.share(ending)
    if ranks.rank != 0:
        vars(estimator).update(ending.attributes)
    if ending.interrupted or ranks.interrupts.came:
        raise deferred.taken() if ending.interrupted and deferred is not None else KeyboardInterrupt
    if ending.failure is not None:
        raise ending.failure.error() if deferred is None else deferred.taken()
    return shortfall


def _drive(home, estimator, begin):
    """Rank 0: train, let the others go. The ending, its exception as `Deferred`, and a sentence where it fell short."""
    deferred, shortfall, before = None, None, vars(estimator).get("coef_")
    try:
        keeper = keeper_of_ranks(estimator, home, home.agreed.sums)
        fit, deferred, store, shortfall_of = estimator._train(home, None, begin, keeper)
        store(fit)
        shortfall = shortfall_of(fit) if deferred is None else None
        keeper.close()
    except BaseException as error:
        deferred = Deferred(error)
    home.end()
    attributes = {}
    if vars(estimator).get("coef_") is not before:
        parameters = estimator.get_params(deep=False)
        attributes = {name: value for name, value in vars(estimator).items()
                      if name not in parameters and (name.endswith("_") or name.startswith("_"))}
    interrupted = deferred is not None and isinstance(deferred.error, KeyboardInterrupt)
    failure = None if deferred is None or interrupted else Failure(deferred.error)
    return Ending(attributes, interrupted, failure), deferred, shortfall


# ---------------------------------------------------------------- agreement

def _placed(ranks, estimator, X, y, sample_weight):
    """This rank's `RankShard`, and what all ranks have agreed on."""
    (home, sample_weight), agreed = ranks.settle(lambda: _checked(estimator, X, y, sample_weight),
                                                 lambda cards: compared(estimator, cards, ON_RANKS))
    leave_out = estimator._leaves_out_weightless
    (home, labels, weight), agreed = ranks.settle(
        lambda: weighed(estimator, home, sample_weight, agreed, leave_out), lambda sums: balanced(agreed, sums))
    first, n_threads = agreed.first[ranks.rank], effective_n_threads(estimator.n_jobs)
    return RankShard(ranks, home, labels, weight * agreed.factor, first, n_threads), agreed


def _checked(estimator, X, y, sample_weight):
    if not estimator._takes_comm:
        raise ValueError(f"{type(estimator).__name__} does not take comm= yet.")
    estimator._check_parameters()
    estimator._refuse_over_places("with comm=")
    (home, sample_weight), card = checked(estimator, X, y, sample_weight)
    if not home.in_memory:
        raise ValueError("Rows in files or on a device do not take comm= yet; read those of each rank into memory.")
    return (home, sample_weight), card
