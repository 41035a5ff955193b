"""What trains SLND and BSN on rows that lie in several places: over ranks or workers, all classes at once or apart."""

from functools import partial

from cmargin.solvers.low_rank.class_lists import ClassShares
from cmargin.solvers.low_rank.classes_over_ranks import ClassesOverRanks, RankShares
from cmargin.solvers.low_rank.over_ranks import MultinomialOverRanks
from cmargin.solvers.low_rank.over_workers import MultinomialOverWorkers


def run_over_places(estimator, home, loss, positive):
    """Shares of the classes, whose positives weigh ``positive`` in all places, and what makes the run."""
    agreed = home.agreed
    if loss == "multinomial":
        kind = MultinomialOverWorkers if home.shares_reads else MultinomialOverRanks
        return ClassShares(positive, agreed.n_rows), partial(kind, n_classes=len(agreed.classes))
    if home.shares_reads:
        raise ValueError(f"{type(estimator).__name__}: one-vs-rest losses, which two classes, an indicator and many "
                         "classes have by default, do not go with Dask collections yet; exclusive classes do with "
                         "loss='multinomial'.")
    if estimator.hessian_refresh is not None:
        raise ValueError(f"{type(estimator).__name__}: hessian_refresh does not go with comm= yet, with a one-vs-rest "
                         "loss, which two classes, an indicator and many classes have by default.")
    negatives = estimator.negatives_per_positive
    return RankShares(home, positive, negatives), partial(ClassesOverRanks, negatives_per_positive=negatives)
