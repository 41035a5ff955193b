"""What trains SLND and BSN on rows that are not here: in files, on a device, over ranks or workers."""

from functools import partial

from cmargin.solvers.sgd.class_lists import ClassShares
from cmargin.solvers.sgd.classes_over_files import ClassesOverFiles
from cmargin.solvers.sgd.classes_over_places import PlaceShares
from cmargin.solvers.sgd.classes_over_ranks import ClassesOverRanks
from cmargin.solvers.sgd.classes_over_workers import ClassesOverWorkers
from cmargin.solvers.sgd.multinomial import MultinomialRun
from cmargin.solvers.sgd.on_device import MultinomialOnDevice
from cmargin.solvers.sgd.over_files import MultinomialOverFiles
from cmargin.solvers.sgd.over_places import PlaceCounts
from cmargin.solvers.sgd.over_ranks import MultinomialOverRanks
from cmargin.solvers.sgd.over_workers import MultinomialOverWorkers


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
        kind = MultinomialOverWorkers if home.shares_reads else MultinomialOverRanks
        return ClassShares(positive, agreed.n_rows), partial(kind, n_classes=len(agreed.classes))
    kind, negatives = ClassesOverWorkers if home.shares_reads else ClassesOverRanks, estimator.negatives_per_positive
    shares = PlaceShares(PlaceCounts(home), positive, agreed.n_rows, negatives)
    return shares, partial(kind, negatives_per_positive=negatives)
