"""`fit` over ranks and over Dask workers: what shards agree on first, and how each of them ends.

Every place checks its own rows and says what they are. Where the driver is, on rank 0 or on Dask's client, what they
say is compared: the union of the classes, one factor for all weights, the place of each one's rows among all; or a
sentence on what does not fit, raised everywhere. From there on the driver trains as on rows in memory.
"""

from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone, is_regressor
from sklearn.utils.validation import _check_sample_weight

from cmargin._core.util._openmp import effective_n_threads
from cmargin._estimators.apart import refuse_apart
from cmargin._estimators.identity import checkpointer_of_ranks, of_rows
from cmargin._estimators.labels import (
    Labels,
    Problems,
    balanced_weights,
    check_class_weights,
    check_targets,
    code_labels,
    in_range,
    signs_of,
)
from cmargin._estimators.shard_targets import Told, agreed_targets, told_of
from cmargin._estimators.validation import LARGEST, open_checked
from cmargin._runtime.blas_threads import single_threaded_blas
from cmargin._runtime.checkpoint import NO_CHECKPOINTER
from cmargin._runtime.deferred import Deferred
from cmargin.data.containers import positives_of
from cmargin.data.failure import Failure, agreed_on, first_failure
from cmargin.data.open_here import open_here, source_of
from cmargin.data.shards.mpi import RankShard, RankSource
from cmargin.data.shards.ranks import ON_RANKS, Ranks
from cmargin.data.shards.workers.tasks import Labelled, Several, says_failure

NOTHING_WEIGHS = "sample_weight and class_weight leave every sample with weight 0."
DRIVER_DECIDES = ("callback", "verbose", "n_jobs", "max_time")      # need not be alike
IN_PARTITIONS = ("partitions", "in partition {}")     # as `ON_RANKS` of `cmargin.data.shards.ranks`


@dataclass
class Card:
    """What a place says of itself and its rows."""

    estimator: str
    parameters: dict
    n_rows: int
    n_features: int
    dtype: str
    layout: str
    names: list | None
    heaviest: float | None                           # the largest sample weight; None: no weights were given
    entries: int
    kind: str = ""                                   # of y: "numbers", "strings", "objects", "an indicator", or more
    classes: np.ndarray | None = None
    counts: np.ndarray | None = None                 # rows of every class; of an indicator, positives of every column
    shares: np.ndarray | None = None                 # weight of every class's rows beside `heaviest`, for "balanced"
    sums: dict = field(default_factory=dict)         # over rows, labels and weights, where there is a checkpoint
    told: Told | None = None                         # of targets, of a regression


@dataclass
class Agreed(Problems):
    """What all places know of the rows and problems; where the driver is, it is there instead of labels and weights."""

    classes: np.ndarray
    counts: np.ndarray
    multilabel: bool
    dtype: str
    layout: str
    heaviest: float | None
    n_rows: int
    entries: int
    total_weight: float = 0.0
    first: list = field(default_factory=list)        # of every place's rows, the place of its first among all
    factor: float = 1.0                              # of the weights, for a mean of 1
    class_weights: np.ndarray | None = None          # of the rows of every class or label
    shares: np.ndarray | None = None                 # what the rows of every class weigh, for "balanced"
    sums: list = field(default_factory=list)         # of every place's card
    signs: np.ndarray | None = None                  # of every label of an indicator, as of `signs_of`

    def signed_weight(self, c, weights):
        """The number of the problem: every place knows its signed weights by that."""
        return c

    def labels_here(self, y):
        """`Labels` of a place; ``y`` None: it has no rows."""
        if self.multilabel:
            none = sp.csc_matrix((0, len(self.classes)), dtype=np.int8)
            return Labels(self.classes, None, none if y is None else positives_of(y))
        return Labels(self.classes, np.empty(0, np.intp) if y is None else
                      np.searchsorted(self.classes, np.asarray(y).ravel()))

    def sums_of(self, labels, weight):
        """A place's sums of weights by class, and of an indicator the numbers of positives and rows that weigh
        something."""
        if not self.multilabel:
            return np.bincount(labels.label, weight, len(self.classes)), None
        return weight @ labels.positives, ((weight > 0).astype(float) @ labels.positives, np.count_nonzero(weight))

    def learn(self, sums, total):
        """``sums``: of all places; ``total``: what all rows weigh."""
        by_class, met = zip(*sums, strict=True)
        if self.multilabel:
            n_positives, n_weighing = zip(*met, strict=True)
            self.signs = signs_of(sum(n_positives), sum(n_weighing))
        self.class_weights = self.factor * sum(by_class)

    def labels_there(self, labels):
        """Those of a place, once all is agreed on."""
        return labels


# ---------------------------------------------------------------- what every place does, and what is made of it

def card_of(estimator, source, sample_weight):
    """A place's card, and its weights."""
    parameters = {name: value for name, value in estimator.get_params(deep=False).items()
                  if name not in DRIVER_DECIDES and isinstance(value, (str, int, float, dict, type(None)))
                  and not (isinstance(value, dict) and any(map(np.ndim, value.values())))}       # refused later on
    kind = classes = counts = shares = told = None
    if source.n_rows:
        if not is_regressor(estimator):
            kind, classes, counts = _targets(source.y)
        shares = counts
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, source.y, dtype=np.float64, ensure_non_negative=True,
                                                 allow_all_zero_weights=True)
            if classes is not None and kind != "an indicator":
                codes = np.searchsorted(classes, np.asarray(source.y).ravel())
                shares = np.bincount(codes, in_range(sample_weight), minlength=len(classes))
        if is_regressor(estimator):
            kind, told = told_of(source.y, sample_weight)
    heaviest = None if sample_weight is None else sample_weight.max()
    sums = of_rows(source, sample_weight) if estimator.checkpoint is not None and source.n_rows else {}
    names = list(getattr(estimator, "feature_names_in_", ())) or None
    card = Card(type(estimator).__name__, parameters, source.n_rows, source.n_features, str(source.dtype),
                "CSR" if source.sparse else "dense", names, heaviest, source.entries, kind, classes, counts, shares,
                sums, told)
    return card, sample_weight


def _targets(y):
    """What kind of labels they are, which there are, and how many of each."""
    check_targets(y)
    if y.ndim == 2 and y.shape[1] > 1:
        positives = positives_of(y)
        return "an indicator", np.arange(positives.shape[1]), positives.getnnz(axis=0)
    labels = np.asarray(y).ravel()
    kind = "numbers" if labels.dtype.kind in "biuf" else "strings" if labels.dtype.kind in "US" else "objects"
    return kind, *np.unique(labels, return_counts=True)


def compared(estimator, cards, places):
    """What the cards come to; ValueError where they do not fit together. ``places``: `ON_RANKS`, say."""
    there = {place: card for place, card in enumerate(cards) if card.n_rows}
    every = dict(enumerate(cards))

    def must_agree(what, said):
        agreed_on(what, said, *places)

    must_agree("the estimator", {place: card.estimator for place, card in every.items()})
    for name in cards[0].parameters | cards[-1].parameters:
        must_agree(f"the parameter {name}", {place: card.parameters.get(name) for place, card in every.items()})
    must_agree("the number of columns of X", {place: card.n_features for place, card in every.items()})
    for what, name in (("the dtype of X", "dtype"), ("how X is stored", "layout"),
                       ("the names of the columns", "names"), ("what y is", "kind")):
        must_agree(what, {place: getattr(card, name) for place, card in there.items()})
    must_agree("sample_weight", {place: "none" if card.heaviest is None else "one" for place, card in there.items()})
    if not there:
        raise ValueError(f"Found array with 0 sample(s) in all {places[0]} while a minimum of 1 is required.")
    some, multilabel, shares = next(iter(there.values())), False, None
    heaviest = None if some.heaviest is None else max(card.heaviest for card in there.values())
    common = {"dtype": some.dtype, "layout": some.layout, "n_rows": sum(card.n_rows for card in cards),
              "entries": sum(card.entries for card in cards), "sums": [card.sums for card in cards]}
    if some.told is not None:
        return agreed_targets(estimator, list(there.values()), heaviest, **common)
    if some.kind == "an indicator":
        multilabel, classes = True, some.classes
        must_agree("the number of labels", {place: len(card.classes) for place, card in there.items()})
        counts = sum(card.counts for card in there.values())
    else:
        classes = np.unique(np.concatenate([card.classes for card in there.values()]))
        classes = getattr(estimator, "_all_classes", classes)         # of rows without labels, which are all of one
        code_labels(classes)                              # at least two
        counts = np.zeros(len(classes), np.int64)
        for card in there.values():
            counts[np.searchsorted(classes, card.classes)] += card.counts
    refuse_apart(estimator, multilabel, len(classes), f"over {places[0]} yet")
    if not multilabel:
        shares = _shares(classes, there.values(), heaviest)
    return Agreed(classes, counts, multilabel, heaviest=heaviest, shares=shares, **common)


def _shares(classes, cards, heaviest):
    """(n_classes,) what the rows of every class weigh, beside the power of 2 above the heaviest."""
    shares = np.zeros(len(classes))
    for card in cards:
        power = 0 if heaviest is None else int(np.frexp(card.heaviest)[1] - np.frexp(heaviest)[1])
        shares[np.searchsorted(classes, card.classes)] += np.ldexp(card.shares, power)
    return shares


def weighed(estimator, source, sample_weight, agreed, leave_out):
    """A place's rows, labels and weights, these up to a factor that is to be the same everywhere; and their sums.

    ``leave_out``: whether rows of weight 0 go.
    """
    labels = agreed.labels_here(source.y if source.n_rows else None)
    if source.n_rows == 0:
        kind = sp.csr_matrix if agreed.layout == "CSR" else np.empty
        source = source_of(kind((0, source.n_features), dtype=agreed.dtype))
    weight, power = np.ones(source.n_rows), 0
    if agreed.heaviest is not None:
        power = int(np.frexp(agreed.heaviest)[1])
        weight = np.ldexp(sample_weight, -power) if source.n_rows else weight
    if getattr(estimator, "class_weight", None) is not None:
        by_class = _class_weights(estimator, agreed)
        check_class_weights(by_class)
        weight, power = weight * in_range(by_class)[labels.label], power + int(np.frexp(by_class.max())[1])
    if leave_out and not weight.all():
        kept = np.flatnonzero(weight)
        source, weight, labels = source.keep(kept), weight[kept], labels.take(kept)
    return (source, labels, weight), (source.n_rows, weight.sum(), power, agreed.sums_of(labels, weight))


def _class_weights(estimator, agreed):
    if estimator.class_weight == "balanced":
        return balanced_weights(agreed.shares)
    return estimator._class_weights(agreed.classes, np.arange(len(agreed.classes)))


def balanced(agreed, sums):
    """The same with sizes and totals of all places."""
    sizes, totals, powers, of_labels = zip(*sums, strict=True)
    total = sum(totals)
    if not total > 0:
        raise ValueError(NOTHING_WEIGHS)
    agreed.n_rows, agreed.first = sum(sizes), [sum(sizes[:place]) for place in range(len(sizes))]
    agreed.factor = agreed.n_rows / total
    agreed.learn(of_labels, total)
    with np.errstate(over="ignore"):
        agreed.total_weight = min(float(np.ldexp(total, max(powers))), LARGEST)
    return agreed


# ---------------------------------------------------------------- ranks

@dataclass
class Ending:
    """How the fit ended on rank 0, as the other ranks receive it."""

    attributes: dict
    interrupted: bool
    failure: Failure | None


@contextmanager
def over_ranks(estimator, rows, comm):
    """`open_data` of all ranks' rows together, called on every rank; ``rows()``: this rank's, as a data source, and
    weights.

    Rank 0 trains on a `RankSource`. The others serve until it has done, and end with its fitted attributes or its
    error.
    """
    ranks, ending, deferred = Ranks(comm), None, None
    with ranks.interrupts, single_threaded_blas():
        ranks.interrupts.holding = True
        shard, agreed = _placed(ranks, estimator, rows)
        if ranks.rank == 0:
            source, before = RankSource(ranks, shard, agreed), vars(estimator).get("coef_")
            try:
                yield source, None, checkpointer_of_ranks(estimator, source, agreed.sums)
            except BaseException as error:
                deferred = Deferred(error)
            source.end()
            ending = _ending(estimator, before, deferred)
        else:
            shard.serve()
        ending = ranks.share(ending)
    if ranks.rank != 0:
        vars(estimator).update(ending.attributes)
    if ending.interrupted or ranks.interrupts.came:
        raise deferred.taken() if ending.interrupted and deferred is not None else KeyboardInterrupt
    if ending.failure is not None:
        raise ending.failure.error() if deferred is None else deferred.taken()
    if ranks.rank != 0:
        yield None, None, None


def _ending(estimator, before, deferred):
    """``before``: its weights before the fit, which ``deferred`` ended, if that is not None."""
    attributes = {}
    if vars(estimator).get("coef_") is not before:
        parameters = estimator.get_params(deep=False)
        attributes = {name: value for name, value in vars(estimator).items()
                      if name not in parameters and (name.endswith("_") or name.startswith("_"))}
    interrupted = deferred is not None and isinstance(deferred.error, KeyboardInterrupt)
    return Ending(attributes, interrupted, None if deferred is None or interrupted else Failure(deferred.error))


def _placed(ranks, estimator, rows):
    """This rank's `RankShard`, and what all ranks have agreed on."""
    def checked():
        source, weight = rows()
        card, weight = card_of(estimator, source, weight)
        return (source, weight), card

    (source, sample_weight), agreed = ranks.settle(checked, lambda cards: compared(estimator, cards, ON_RANKS))
    leave_out = estimator._leaves_out_weightless
    (source, labels, weight), agreed = ranks.settle(
        lambda: weighed(estimator, source, sample_weight, agreed, leave_out), lambda sums: balanced(agreed, sums))
    first, n_threads = agreed.first[ranks.rank], effective_n_threads(estimator.n_jobs)
    labels = agreed.labels_there(labels)
    return RankShard(ranks, source, labels, weight * agreed.factor, first, n_threads), agreed


# ---------------------------------------------------------------- workers

@contextmanager
def over_workers(estimator, rows):
    """`open_data` of Dask collections: estimator and driver are here, workers see a copy to check their rows by."""
    source, _ = rows()
    try:
        agree(estimator, source)
        yield source, None, NO_CHECKPOINTER
    finally:
        source.let_go()


def agree(estimator, source):
    """Let ``source`` know what its partitions say of labels and weights."""
    parameters = estimator.get_params(deep=False).items()
    there = type(estimator)(**{name: None if name in DRIVER_DECIDES else value for name, value in parameters})
    cluster = source.cluster

    def results(futures):
        every = source.by_place(cluster.results(futures))
        cluster.forget(futures)
        failure = first_failure(every, IN_PARTITIONS[1])
        if failure is not None:
            raise failure.error()
        return every

    def in_groups(name, task, *columns):
        return results(cluster.everywhere(name, Several(task), *source.in_groups(*columns)))

    read = source.is_read
    source.form_groups()
    agreed = compared(there, in_groups("check", check, *source.beside(source.weights, there)), IN_PARTITIONS)
    if not read:                                     # rows were nowhere until then
        source.form_groups(anew=True)
    weighed_there = cluster.everywhere("weigh", weigh, *source.beside(source.weights, there, agreed))
    source.agreed = balanced(agreed, in_groups("sums-of-weigh", sums_of, weighed_there))
    source.labelled = cluster.everywhere("label", label, weighed_there, *source.beside(source.agreed)[2:],
                                         list(range(source.n_places)))
    source.n_jobs, source.n_threads = estimator.n_jobs, effective_n_threads(estimator.n_jobs)
    cluster.forget(weighed_there)                    # once the labels are made of them


@says_failure
def check(X, y, sample_weight, estimator):
    """A `Card` of rows that are read as they are from now on."""
    estimator = clone(estimator)
    card, _ = card_of(estimator, *open_checked(estimator, X, y, sample_weight, may_be_empty=True))
    open_here(X)
    return card


@says_failure
def weigh(X, y, sample_weight, estimator, agreed):
    """Labels, weights up to a factor, and their sums."""
    (_, labels, weight), sums = weighed(estimator, open_here(X, y), sample_weight, agreed, False)
    return labels, weight, sums


@says_failure
def sums_of(weighed_there):
    return weighed_there if isinstance(weighed_there, Failure) else weighed_there[2]


def label(weighed_there, agreed, place):
    labels, weight, _ = weighed_there
    return Labelled(agreed.labels_there(labels), weight * agreed.factor, agreed.first[place], place)
