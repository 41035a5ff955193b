"""`fit(X_local, y_local, comm=comm)`: what ranks must agree on before they train, and what all of them end with.

Every rank comes here with rows of its own and checks them. Rank 0 compares what they say; whatever is wrong anywhere is
one sentence, raised everywhere. Then rank 0 trains on the `RankHome`, the others serve, and all leave with rank 0's
fitted attributes, or with its error.
"""

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import _check_sample_weight, _num_samples, validate_data

from cmargin._core.small._openmp import effective_n_threads
from cmargin._estimators.base import LARGEST
from cmargin._estimators.identity import keeper_of_ranks, of_rows
from cmargin._estimators.smsvm_fit import Labels
from cmargin._estimators.validation import (
    ROWS,
    check_both_signs,
    check_class_weights,
    check_targets,
    code_labels,
    in_range,
    positives_of,
)
from cmargin._runtime.blas_threads import single_threaded_blas
from cmargin.homes.mpi import RankHome
from cmargin.homes.open import open_rows
from cmargin.homes.places import Place
from cmargin.homes.ranks import Failure, Ranks

RANK_0_DECIDES = ("callback", "verbose", "n_jobs", "max_time")      # need not be alike


@dataclass
class Card:
    """What a rank says of itself and its rows."""

    estimator: str
    parameters: dict
    n_rows: int
    n_features: int
    dtype: str
    layout: str
    names: list | None
    heaviest: float | None                           # the largest sample weight; None: no weights were given
    entries: int
    kind: str = ""                                   # of y: "numbers", "strings", "objects", "an indicator"
    classes: np.ndarray | None = None
    counts: np.ndarray | None = None                 # rows of every class; of an indicator, positives of every column
    sums: dict = field(default_factory=dict)         # over rows, labels and weights, where there is a checkpoint


@dataclass
class Agreed:
    """What all ranks know of the rows and problems; on rank 0 it is there instead of labels and weights."""

    classes: np.ndarray
    counts: np.ndarray
    multilabel: bool
    dtype: str
    layout: str
    heaviest: float | None
    n_rows: int
    entries: int
    total_weight: float = 0.0
    first: list = field(default_factory=list)        # of every rank's rows, its place among all
    factor: float = 1.0                              # of the weights, for a mean of 1
    class_weights: np.ndarray | None = None          # of the rows of every class or label
    sums: list = field(default_factory=list)         # of every rank's card

    def __len__(self):
        """Problems."""
        return len(self.classes) if self.multilabel or len(self.classes) > 2 else 1

    def of_problem(self, c):
        """The class that is +1 in problem c."""
        return c if len(self) > 1 or self.multilabel else 1

    def code(self, c, weights):
        """The number of the problem: every rank knows its codes by that."""
        return c


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
    ranks, error, shortfall = Ranks(comm), None, None
    with ranks.interrupts, single_threaded_blas():
        ranks.interrupts.holding = True
        place, agreed = _placed(ranks, estimator, X, y, sample_weight)
        if ranks.rank == 0:
            ending, error, shortfall = _drive(RankHome(ranks, place, agreed), estimator, begin)
        else:
            ending = place.serve()
        ending = ranks.share(ending)
    if ranks.rank != 0:
        vars(estimator).update(ending.attributes)
    if ending.interrupted or ranks.interrupts.came:
        raise error if isinstance(error, KeyboardInterrupt) else KeyboardInterrupt
    if ending.failure is not None:
        raise error or ending.failure.error()
    return shortfall


def _drive(home, estimator, begin):
    """Rank 0: train, let the others go. The ending, the exception of it, and a sentence where the fit fell short."""
    error, shortfall, before = None, None, vars(estimator).get("coef_")
    try:
        keeper = keeper_of_ranks(estimator, home, home.agreed.sums)
        fit, error, store, shortfall_of = estimator._train(home, None, begin, keeper)
        store(fit)
        shortfall = shortfall_of(fit) if error is None else None
        keeper.close()
    except BaseException as raised:
        error = raised
    home.end()
    attributes = {}
    if vars(estimator).get("coef_") is not before:
        parameters = estimator.get_params(deep=False)
        attributes = {name: value for name, value in vars(estimator).items()
                      if name not in parameters and (name.endswith("_") or name.startswith("_"))}
    interrupted = isinstance(error, KeyboardInterrupt)
    failure = None if error is None or interrupted else Failure(error)
    return Ending(attributes, interrupted, failure), error, shortfall


# ---------------------------------------------------------------- agreement

def _settled(ranks, work, verdict):
    """What ``work`` brings on this rank, and rank 0's verdict on what all ranks say; or the first error, everywhere.

    ``work()``: what it brings, and what is said; ``verdict(said)``, a list by rank.
    """
    own = cause = None
    try:
        own, said = work()
    except Exception as error:
        said, cause = Failure(error), error
    every, found = ranks.gather(said), None
    if ranks.rank == 0:
        try:
            found = _first_failure(every) or verdict(every)
        except Exception as error:
            found = Failure(error)
    found = ranks.share(found)
    if isinstance(found, Failure):
        raise found.error() from cause
    return own, found


def _first_failure(every):
    """None where there is none; it says on which rank unless all ranks say the same."""
    failed = [(rank, one) for rank, one in enumerate(every) if isinstance(one, Failure)]
    if not failed:
        return None
    rank, first = failed[0]
    alike = len(failed) == len(every) and all(one.text == first.text for _, one in failed)
    return first if alike else first.on(rank)


def _placed(ranks, estimator, X, y, sample_weight):
    """This rank's `Place`, and what all ranks have agreed on."""
    (home, sample_weight), agreed = _settled(ranks, lambda: _checked(estimator, X, y, sample_weight),
                                             lambda cards: _compared(estimator, cards))
    (home, labels, weight), agreed = _settled(ranks, lambda: _weighed(estimator, home, sample_weight, agreed),
                                              lambda sums: _balanced(agreed, sums))
    first = agreed.first[ranks.rank]
    return Place(ranks, home, labels, weight * agreed.factor, first, effective_n_threads(estimator.n_jobs)), agreed


def _checked(estimator, X, y, sample_weight):
    """This rank's rows as a home, its weights, and the card."""
    if not estimator._takes_comm:
        raise ValueError(f"{type(estimator).__name__} does not take comm= yet.")
    estimator._check_parameters()
    estimator._refuse_over_ranks()
    parameters = {name: value for name, value in estimator.get_params(deep=False).items()
                  if name not in RANK_0_DECIDES and isinstance(value, (str, int, float, dict, type(None)))}
    if _num_samples(X) == 0:                              # scikit-learn's checks are of at least one row
        home, heaviest = open_rows(validate_data(estimator, X, ensure_min_samples=0, **ROWS)), None
        kind = classes = counts = None
    else:
        X, y = estimator._check_data(X, y)
        home, (kind, classes, counts) = open_rows(X, y), _targets(y)
        if not home.in_memory:
            raise ValueError("Rows in files do not take comm= yet; read those of each rank into memory.")
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, y, dtype=np.float64, ensure_non_negative=True,
                                                 allow_all_zero_weights=True)
        heaviest = None if sample_weight is None else sample_weight.max()
    sums = of_rows(home, sample_weight) if estimator.checkpoint is not None and home.n_rows else {}
    names = list(getattr(estimator, "feature_names_in_", ())) or None
    card = Card(type(estimator).__name__, parameters, home.n_rows, home.n_features, str(home.dtype),
                "CSR" if home.sparse else "dense", names, heaviest, home.entries, kind, classes, counts, sums)
    return (home, sample_weight), card


def _targets(y):
    """What kind of labels they are, which there are, and how many of each."""
    check_targets(y)
    if y.ndim == 2 and y.shape[1] > 1:
        positives = positives_of(y)
        return "an indicator", np.arange(positives.shape[1]), positives.getnnz(axis=0)
    labels = np.asarray(y).ravel()
    kind = "numbers" if labels.dtype.kind in "biuf" else "strings" if labels.dtype.kind in "US" else "objects"
    return kind, *np.unique(labels, return_counts=True)


def _compared(estimator, cards):
    """What the cards come to; ValueError where they do not fit together."""
    there = {rank: card for rank, card in enumerate(cards) if card.n_rows}
    every = dict(enumerate(cards))
    _must_agree("the estimator", {rank: card.estimator for rank, card in every.items()})
    for name in cards[0].parameters | cards[-1].parameters:
        _must_agree(f"the parameter {name}", {rank: card.parameters.get(name) for rank, card in every.items()})
    _must_agree("the number of columns of X", {rank: card.n_features for rank, card in every.items()})
    for what, name in (("the dtype of X", "dtype"), ("how X is stored", "layout"),
                       ("the names of the columns", "names"), ("what y is", "kind")):
        _must_agree(what, {rank: getattr(card, name) for rank, card in there.items()})
    _must_agree("sample_weight", {rank: "none" if card.heaviest is None else "one" for rank, card in there.items()})
    if not there:
        raise ValueError("Found array with 0 sample(s) on all ranks while a minimum of 1 is required.")
    some, multilabel = next(iter(there.values())), False
    if some.kind == "an indicator":
        multilabel, classes = True, some.classes
        _must_agree("the number of labels", {rank: len(card.classes) for rank, card in there.items()})
        counts = sum(card.counts for card in there.values())
        if estimator._wants_both_signs:
            check_both_signs(counts, sum(card.n_rows for card in cards))
    else:
        classes = np.unique(np.concatenate([card.classes for card in there.values()]))
        code_labels(classes)                              # at least two
        counts = np.zeros(len(classes), np.int64)
        for card in there.values():
            counts[np.searchsorted(classes, card.classes)] += card.counts
    if estimator.class_weight is not None and multilabel:
        raise ValueError("class_weight is not defined for a label indicator; give sample_weight instead.")
    heaviest = None if some.heaviest is None else max(card.heaviest for card in there.values())
    return Agreed(classes, counts, multilabel, some.dtype, some.layout, heaviest,
                  sum(card.n_rows for card in cards), sum(card.entries for card in cards),
                  sums=[card.sums for card in cards])


def _must_agree(what, said):
    """ValueError that names two ranks and what they say, unless all say the same."""
    (first, value), *others = said.items() or [(0, None)]
    for rank, other in others:
        if other != value:
            raise ValueError(f"The ranks disagree on {what}: {value!r} on rank {first}, {other!r} on rank {rank}.")


def _weighed(estimator, home, sample_weight, agreed):
    """This rank's rows, labels and weights, these up to a factor that is to be the same everywhere; and their sums."""
    if home.n_rows == 0:
        kind = sp.csr_matrix if agreed.layout == "CSR" else np.empty
        home = open_rows(kind((0, home.n_features), dtype=agreed.dtype))
        codes = None if agreed.multilabel else np.empty(0, np.intp)
        positives = sp.csc_matrix((0, len(agreed.classes)), dtype=np.int8)
    elif agreed.multilabel:
        codes, positives = None, positives_of(home.y)
    else:
        codes = np.searchsorted(agreed.classes, np.asarray(home.y).ravel())
    weight, power = np.ones(home.n_rows), 0
    if agreed.heaviest is not None:
        power = int(np.frexp(agreed.heaviest)[1])
        weight = np.ldexp(sample_weight, -power) if home.n_rows else weight
    if estimator.class_weight is not None:
        by_class = _class_weights(estimator, agreed)
        check_class_weights(by_class)
        weight, power = weight * in_range(by_class)[codes], power + int(np.frexp(by_class.max())[1])
    if estimator._leaves_out_weightless and not weight.all():
        kept = np.flatnonzero(weight)
        home, weight = home.keep(kept), weight[kept]
        codes, positives = (codes[kept], None) if codes is not None else (None, positives[kept])
    indicator = 2.0 * positives.toarray().T - 1.0 if agreed.multilabel else None
    by_class = np.bincount(codes, weight, len(agreed.classes)) if codes is not None else weight @ positives
    return (home, Labels(agreed.classes, codes, indicator), weight), (home.n_rows, by_class, weight.sum(), power)


def _class_weights(estimator, agreed):
    if estimator.class_weight == "balanced":
        return agreed.counts.sum() / (len(agreed.counts) * agreed.counts)        # as scikit-learn has it
    return estimator._class_weights(agreed.classes, np.arange(len(agreed.classes)))


def _balanced(agreed, sums):
    """The same with places and totals of all ranks."""
    sizes, by_class, totals, powers = zip(*sums, strict=True)
    total = sum(totals)
    if not total > 0:
        raise ValueError("sample_weight and class_weight leave every sample with weight 0.")
    agreed.n_rows, agreed.first = sum(sizes), [sum(sizes[:rank]) for rank in range(len(sizes))]
    agreed.factor = agreed.n_rows / total
    agreed.class_weights = agreed.factor * sum(by_class)
    with np.errstate(over="ignore"):
        agreed.total_weight = min(float(np.ldexp(total, max(powers))), LARGEST)
    return agreed
