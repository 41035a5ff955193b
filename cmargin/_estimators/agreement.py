"""What places whose rows are trained on together must agree on first: cards, and what all of them come to.

Every place checks its own rows and says what they are. Where the driver is, what they say is compared: the union of the
classes, one factor for all weights, the place of each one's rows among all; or a sentence on what does not fit.
"""

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import _check_sample_weight, _num_samples, validate_data

from cmargin._estimators.apart import refuse_apart
from cmargin._estimators.identity import of_rows
from cmargin._estimators.labels import Labels
from cmargin._estimators.one_sign import signs_of
from cmargin._estimators.validation import (
    LARGEST,
    balanced_weights,
    check_class_weights,
    check_targets,
    code_labels,
    in_range,
    positives_of,
    rows_wanted,
)
from cmargin.data.containers import weight_array
from cmargin.data.failure import agreed_on
from cmargin.data.open import open_rows

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
    kind: str = ""                                   # of y: "numbers", "strings", "objects", "an indicator"
    classes: np.ndarray | None = None
    counts: np.ndarray | None = None                 # rows of every class; of an indicator, positives of every column
    shares: np.ndarray | None = None                 # weight of every class's rows beside `heaviest`, for "balanced"
    sums: dict = field(default_factory=dict)         # over rows, labels and weights, where there is a checkpoint


@dataclass
class Agreed:
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

    def __len__(self):
        """Problems."""
        return len(self.classes) if self.multilabel or len(self.classes) > 2 else 1

    def of_problem(self, c):
        """The class that is +1 in problem c."""
        return c if len(self) > 1 or self.multilabel else 1

    def code(self, c, weights):
        """The number of the problem: every place knows its codes by that."""
        return c


# ---------------------------------------------------------------- what every place does, and what is made of it

def checked(estimator, X, y, sample_weight):
    """A place's rows as a home, their weights, and the card."""
    parameters = {name: value for name, value in estimator.get_params(deep=False).items()
                  if name not in DRIVER_DECIDES and isinstance(value, (str, int, float, dict, type(None)))}
    if _num_samples(X) == 0:                              # scikit-learn's checks are of at least one row
        home, heaviest = open_rows(validate_data(estimator, X, ensure_min_samples=0, **rows_wanted(X))), None
        kind = classes = counts = shares = None
    else:
        X, y = estimator._check_data(X, y)
        home, (kind, classes, counts) = open_rows(X, y), _targets(y)
        shares = counts
        if sample_weight is not None:
            sample_weight = _check_sample_weight(weight_array(sample_weight), y, dtype=np.float64,
                                                 ensure_non_negative=True, allow_all_zero_weights=True)
            if kind != "an indicator":
                codes = np.searchsorted(classes, np.asarray(y).ravel())
                shares = np.bincount(codes, in_range(sample_weight), minlength=len(classes))
        heaviest = None if sample_weight is None else sample_weight.max()
    sums = of_rows(home, sample_weight) if estimator.checkpoint is not None and home.n_rows else {}
    names = list(getattr(estimator, "feature_names_in_", ())) or None
    card = Card(type(estimator).__name__, parameters, home.n_rows, home.n_features, str(home.dtype),
                "CSR" if home.sparse else "dense", names, heaviest, home.entries, kind, classes, counts, shares, sums)
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
    if some.kind == "an indicator":
        multilabel, classes = True, some.classes
        must_agree("the number of labels", {place: len(card.classes) for place, card in there.items()})
        counts = sum(card.counts for card in there.values())
    else:
        classes = np.unique(np.concatenate([card.classes for card in there.values()]))
        code_labels(classes)                              # at least two
        counts = np.zeros(len(classes), np.int64)
        for card in there.values():
            counts[np.searchsorted(classes, card.classes)] += card.counts
    refuse_apart(estimator, multilabel, len(classes), f"over {places[0]} yet")
    if not multilabel:
        shares = _shares(classes, there.values(), heaviest)
    return Agreed(classes, counts, multilabel, some.dtype, some.layout, heaviest,
                  sum(card.n_rows for card in cards), sum(card.entries for card in cards),
                  shares=shares, sums=[card.sums for card in cards])


def _shares(classes, cards, heaviest):
    """(n_classes,) what the rows of every class weigh, beside the power of 2 above the heaviest."""
    shares = np.zeros(len(classes))
    for card in cards:
        power = 0 if heaviest is None else int(np.frexp(card.heaviest)[1] - np.frexp(heaviest)[1])
        shares[np.searchsorted(classes, card.classes)] += np.ldexp(card.shares, power)
    return shares


def weighed(estimator, home, sample_weight, agreed, leave_out):
    """A place's rows, labels and weights, these up to a factor that is to be the same everywhere; and their sums.

    ``leave_out``: whether rows of weight 0 go.
    """
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
    if leave_out and not weight.all():
        kept = np.flatnonzero(weight)
        home, weight = home.keep(kept), weight[kept]
        codes, positives = (codes[kept], None) if codes is not None else (None, positives[kept])
    indicator = 2.0 * positives.toarray().T - 1.0 if agreed.multilabel else None
    by_class = np.bincount(codes, weight, len(agreed.classes)) if codes is not None else weight @ positives
    met = None if codes is not None else ((weight > 0).astype(float) @ positives, np.count_nonzero(weight))
    return (home, Labels(agreed.classes, codes, indicator), weight), (home.n_rows, by_class, weight.sum(), power, met)


def _class_weights(estimator, agreed):
    if estimator.class_weight == "balanced":
        return balanced_weights(agreed.shares)
    return estimator._class_weights(agreed.classes, np.arange(len(agreed.classes)))


def balanced(agreed, sums):
    """The same with sizes and totals of all places."""
    sizes, by_class, totals, powers, met = zip(*sums, strict=True)
    total = sum(totals)
    if not total > 0:
        raise ValueError("sample_weight and class_weight leave every sample with weight 0.")
    agreed.n_rows, agreed.first = sum(sizes), [sum(sizes[:place]) for place in range(len(sizes))]
    agreed.factor = agreed.n_rows / total
    if agreed.multilabel:
        n_positives, n_weighing = zip(*met, strict=True)
        agreed.signs = signs_of(sum(n_positives), sum(n_weighing))
    agreed.class_weights = agreed.factor * sum(by_class)
    with np.errstate(over="ignore"):
        agreed.total_weight = min(float(np.ldexp(total, max(powers))), LARGEST)
    return agreed
