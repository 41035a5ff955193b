"""What y and the weights say: classes, one-vs-rest problems, labels that are constant, what every row weighs."""

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import LabelEncoder
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import column_or_1d

from cmargin._core.util._labels import count_codes, rows_by_class
from cmargin._estimators.progress import warn_at_caller
from cmargin._estimators.validation import LARGEST
from cmargin._runtime.aligned import contiguous
from cmargin.data.containers import positives_of


class Problems:
    """Binary problems of ``classes``, those of labels where ``multilabel``: one a class, or one of two classes."""

    def __len__(self):
        return len(self.classes) if self.multilabel or len(self.classes) > 2 else 1

    def of_problem(self, c):
        """The class that is +1 in problem c."""
        return c if len(self) > 1 or self.multilabel else 1


class Labels(Problems):
    """What y says: the classes, and a column of +1 and -1 for every binary problem, made when asked for."""

    def __init__(self, classes, label=None, positives=None):
        """``label``: (n,) places in ``classes``; ``positives``: the CSC indicator (n, n_labels) of `positives_of`
        instead, of which one label at a time is an array."""
        self.classes, self.label, self.positives = classes, label, positives
        self.multilabel = positives is not None

    def __getitem__(self, c):
        if self.multilabel:
            signs, starts = np.full(self.positives.shape[0], -1.0), self.positives.indptr
            signs[self.positives.indices[starts[c]:starts[c + 1]]] = 1.0
            return signs
        return np.where(self.label == self.of_problem(c), 1.0, -1.0)

    def signed_weight(self, c, weights):
        """Weights, None for ones, with the signs of problem c."""
        signed_weight = self[c]
        if weights is not None:
            signed_weight *= weights
        return signed_weight

    def sample(self, rows):
        """(n_problems, len(rows))."""
        if self.multilabel:
            return 2.0 * self.positives[rows].toarray().T - 1.0
        wanted = np.array([self.of_problem(c) for c in range(len(self))])
        return np.where(self.label[rows] == wanted[:, None], 1.0, -1.0)

    def take(self, rows):
        return Labels(self.classes, *(None if said is None else said[rows] for said in (self.label, self.positives)))

    @staticmethod
    def joined(parts):
        """Of rows one behind the other."""
        if parts[0].multilabel:
            return Labels(parts[0].classes, None, sp.vstack([one.positives for one in parts], format="csc"))
        return Labels(parts[0].classes, np.concatenate([one.label for one in parts]))

    def columns(self):
        """(n, n_problems) CSC indicator of the positives."""
        return self.positives if self.multilabel else indicator_of(self.label, len(self.classes))

    def order(self):
        """Rows, those of a class together."""
        if self.multilabel:
            return np.arange(self.positives.shape[0])
        return np.argsort(self.label, kind="stable")


# ---------------------------------------------------------------- labels that no row has, or every row

def signs_of(n_positives, n_rows):
    """(n_labels,) of -1 where no row has the label, 1 where every row has it, 0 where there are rows of both signs."""
    n_positives = np.asarray(n_positives)
    return np.where(n_positives == 0, -1, np.where(n_positives == n_rows, 1, 0)).astype(np.int8)


def signs_met(Y, weight):
    """`signs_of` the columns of the sparse indicator ``Y``, by the rows of positive weight; None: all."""
    counted = np.ones(Y.shape[0]) if weight is None else (weight > 0).astype(float)
    return signs_of(counted @ Y, counted.sum())


def without_full_columns(Y, signs):
    """The sparse indicator ``Y`` without positives where ``signs`` is 1: such a problem has no rows to visit then."""
    if not (signs > 0).any():
        return Y
    Y = Y.multiply(signs < 1).tocsc()
    Y.eliminate_zeros()
    return Y


def with_constant_classes(W, bias, signs, scores):
    """Weights and intercepts of which those with a sign other than 0 are zero, and (n_labels,) ``scores``."""
    constant = signs != 0
    if not constant.any():
        return W, bias
    return np.where(constant[:, None], 0, W).astype(W.dtype), np.where(constant, scores, bias)


def warn_of_constant(signs):
    """One warning that names the labels whose prediction is constant, if there are any."""
    parts = [f"{_named(np.flatnonzero(signs == sign))} {where} training examples"
             for sign, where in ((-1, "absent from all"), (1, "present in all")) if (signs == sign).any()]
    if parts:
        warn_at_caller(f"{' and '.join(parts)}: there is nothing to learn.")


def warn_of_folds(Y, folds, of_all=False):
    """One warning of labels of the sparse indicator ``Y`` that are constant in training rows of a fold, but not in all;
    in all too where ``of_all``.

    ``folds``: pairs of training and test rows.
    """
    whole = 0 if of_all else signs_met(Y, None)
    constant = {number: found for number, (train, _) in enumerate(folds, 1)
                if len(found := np.flatnonzero(signs_met(Y[train], None) != whole))}
    if constant:
        labels = np.unique(np.concatenate(list(constant.values())))
        warn_at_caller(f"{_named(labels)} absent from, or present in, all training examples of some folds, numbers "
                       f"{', '.join(map(str, constant))} of {len(folds)}: there is nothing to learn.")


def _named(labels):
    several = len(labels) > 1
    return (f"Label{'s' * several} {', '.join(map(str, labels[:5]))}{', ...' * (len(labels) > 5)} "
            f"{'are' if several else 'is'}")


# ---------------------------------------------------------------- from y to problems

def check_targets(y):
    """Raise for targets that are no labels. Those that plainly are pass without scikit-learn's own, slower check."""
    if not plain_labels(y):
        check_classification_targets(y)


def plain_labels(y):
    """Whether ``y`` is an array of whole numbers or strings, one a row."""
    if not isinstance(y, np.ndarray) or y.ndim != 1:
        return False
    return y.dtype.kind in "biuUS" or (y.dtype.kind == "f" and bool((y == np.rint(y)).all()))


def code_labels(y, classes=None):
    """Classes, ascending, and for labels ``y`` (n,) the place of each row's among them (n,), and None.

    For an indicator (n, n_labels), dense or sparse, the classes ``0 .. n_labels - 1``, None, and the positives as a CSC
    indicator. ``classes``: all of them where ``y`` holds labels, None: those that it holds. Raises ValueError for
    continuous targets, fewer than two classes, and labels outside ``classes``.
    """
    if sp.issparse(y) and y.shape[1] == 1:               # an indicator of one label; scikit-learn knows none
        return np.arange(1), None, positives_of(y)
    check_targets(y)
    if not plain_labels(y) and type_of_target(y, input_name="y") in ("multilabel-indicator", "multiclass-multioutput"):
        positives = positives_of(y)
        return np.arange(positives.shape[1]), None, positives
    return *_class_codes(y if plain_labels(y) else column_or_1d(y, warn=True), classes), None


def encode_labels(y, classes=None):
    """As `code_labels`, with the positives of one-vs-rest problems in any case, one column for two classes, else one a
    class."""
    classes, codes, Y = code_labels(y, classes)
    return classes, codes, indicator_of(codes, len(classes)) if Y is None else Y


def indicator_of(codes, n_classes):
    """CSC indicator of labels: one column for two classes, of the second, else one a class."""
    index = np.int32 if len(codes) <= np.iinfo(np.int32).max else np.int64
    rows, starts = np.empty(len(codes), index), np.empty(n_classes + 1, index)
    rows_by_class(np.ascontiguousarray(codes, np.int64), rows, starts)
    if n_classes == 2:
        rows, starts = rows[starts[1]:], starts[1:] - starts[1]
    return sp.csc_matrix((np.ones(len(rows), np.int8), rows, starts), shape=(len(codes), len(starts) - 1))


def _class_codes(y, classes):
    """All classes, ascending, and the place of every label among them."""
    plain = classes is None and plain_labels(y)          # one search for the distinct labels, not three
    counted = count_codes(contiguous(y, np.int64)) if plain and y.dtype.kind in "bi" else None
    encoder = None if plain else LabelEncoder().fit(y if classes is None else np.asarray(classes))
    if counted is not None:
        found = counted[0].astype(y.dtype)
    else:
        found = np.unique(y) if plain else encoder.classes_
    if len(found) < 2:
        raise ValueError(
            "This solver needs samples of at least 2 classes in the data, but the data contains "
            f"{f'only one class: {found.tolist()[0]!r}' if len(found) else 'none'}"
        )
    if counted is not None:
        return found, counted[1]
    return found, np.searchsorted(found, y) if plain else encoder.transform(y)


# ---------------------------------------------------------------- weights

def in_range(weight):
    """Finite weights (n,) >= 0 times a power of 2, exactly, so that the largest is about 1 and sums are finite.

    Weights 2^-1074 times the largest, and smaller ones, become 0.
    """
    largest = weight.max(initial=0.0)
    return np.ldexp(weight, -np.frexp(largest)[1])


def balanced_weights(shares):
    """(n_classes,) class weights that make classes weigh alike; ``shares``: what their rows weigh so far.

    The "balanced" of scikit-learn's `compute_class_weight`; a class whose rows weigh nothing has 1.
    """
    return np.divide(shares.sum(), len(shares) * shares, out=np.ones(len(shares)), where=shares > 0)


def check_class_weights(weights):
    """Raise unless the (n_classes,) weights that a class_weight stands for are finite and not negative."""
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError(f"class_weight must be finite and not negative; got weights {weights}.")


def product_in_range(factors):
    """The product of weights (n,) times a power of 2, the largest about 1; its sum without that power.

    No factor, product or sum leaves the range of doubles on the way.
    """
    weight, power = 1.0, 0
    for factor in factors:
        weight = weight * in_range(factor)
        power += int(np.frexp(factor.max())[1])
    if not weight.any():
        raise ValueError("sample_weight and class_weight leave every sample with weight 0.")
    with np.errstate(over="ignore"):
        total = float(np.ldexp(weight.sum(), power))
    return in_range(weight), min(total, LARGEST)


def of_mean_1(weight):
    """Weights (n,) times what makes their mean 1."""
    return weight * (len(weight) / weight.sum())


def rows_of_weight(source, Y, codes, weight):
    """Rows, labels and weights without rows of weight 0, the weights of mean 1; None where they are or all are 1."""
    if weight is None:
        return source, Y, codes, None
    if not weight.all() and not source.shares_reads:  # in files they stay, and count nothing
        kept = np.flatnonzero(weight)               # the only copy of X
        source, Y, codes, weight = source.keep(kept), Y[kept], None if codes is None else codes[kept], weight[kept]
    return source, Y, codes, of_mean_1(weight)
