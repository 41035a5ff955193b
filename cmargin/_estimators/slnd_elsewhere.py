"""What trains SLND and BSN on rows that are not here: in files, on a device, over ranks or workers."""

from functools import partial

from cmargin.solvers.sgd.class_lists import ClassShares
from cmargin.solvers.sgd.multinomial import MultinomialRun
from cmargin.solvers.sgd.remote_run import ClassesOverFiles, MultinomialOnDevice, MultinomialOverFiles
from cmargin.solvers.sgd.run import ClassesOverShards, MultinomialOverShards
from cmargin.solvers.sgd.shard_shares import ShardCounts, ShardShares


def run_by_batches(estimator, home, run, loss, Y):
    """What makes the run on rows in files or on a device, where ``run`` does in memory; ``Y``: the positives."""
    if getattr(run, "func", None) is MultinomialRun:
        return partial(MultinomialOverFiles if home.shares_reads else MultinomialOnDevice, **run.keywords)
    if run is None and home.shares_reads and estimator.step_size != "theory":
        return partial(ClassesOverFiles, Y=Y)
    what = "step_size='theory'" if estimator.step_size == "theory" else f"loss={loss!r}"
    home.refuse(f"{type(estimator).__name__} with {what}, which reads one row at a time,")


def run_over_places(estimator, home, loss, positive):
    """Shares of the classes, whose positives weigh ``positive`` in all places, and what makes the run."""
    agreed = home.agreed
    if loss == "multinomial":
        return ClassShares(positive, agreed.n_rows), partial(MultinomialOverShards, n_classes=len(agreed.classes))
    negatives = estimator.negatives_per_positive
    shares = ShardShares(ShardCounts(home), positive, agreed.n_rows, negatives)
    return shares, partial(ClassesOverShards, negatives_per_positive=negatives)
