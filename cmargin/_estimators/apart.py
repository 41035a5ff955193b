"""One-vs-rest problems whose weights differ: trained one after the other, each with weights of its own.

Where every row has one weight, all problems share it and are trained together. Weights of (n, n_labels), class weights
of the labels of an indicator, and class weights that count for positives alone make a row weigh as much as its problem
says; then each problem is a fit, or a `partial_fit`, of a copy of the estimator, to rows that are opened and checked
once.
"""

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_array, check_non_negative

from cmargin._estimators.labels import (
    balanced_weights,
    check_class_weights,
    encode_labels,
    in_range,
    signs_met,
    warn_of_constant,
)
from cmargin._estimators.progress import say
from cmargin._runtime.checkpoint import NO_CHECKPOINTER
from cmargin._runtime.deferred import Deferred
from cmargin.data.arrays import is_sparse

BY_PROBLEM = ("coef_", "intercept_", "duality_gap_", "objective_", "gradient_norm_", "scale_", "class_prior_",
              "sampled_prior_", "n_passes_per_class_")
SO_FAR = ("_passes_total", "_steps_taken")
LARGEST_OF_ALL = ("n_iter_", "n_passes_", "rank_", *SO_FAR)
ALIKE = ("loss_",)
OF_EACH = ("preconditioner_", "step_size_", "_counts", "_streams", "_recipe")         # and not kept
NOT_BEGUN = {"coef_": 0.0, "intercept_": 0.0}            # of a problem that an interrupt left; all else is NaN
# of a label's model, after a batch: what is its own, and what labels share
BY_LABEL = ("coef_", "intercept_", "class_prior_", "sampled_prior_")
SHARED = ("loss_", "preconditioner_", "rank_", "step_size_", "_asked_step", "_recipe", "_passes_total", "n_iter_",
          "n_features_in_")


def is_indicator(y):
    return np.ndim(y) == 2 and y.shape[1] > 1


def weights_differ(estimator, source, sample_weight):
    """Whether the problems of a fit want weights of their own."""
    if is_indicator(source.y):
        return estimator.class_weight is not None or np.ndim(sample_weight) == 2
    return estimator.class_weight is not None and estimator.class_weight_on == "positives"


def refuse_apart(estimator, multilabel, n_classes, what):
    """Raise where class weights make the problems' weights differ, and ``what`` wants one weight a row."""
    check_list(estimator, multilabel)
    if estimator.class_weight is None:
        return
    if multilabel:
        raise ValueError(f"class_weight of a label indicator does not go {what}; give sample_weight, one a row.")
    if estimator.class_weight_on == "positives" and n_classes > 2:
        raise ValueError(f"class_weight_on='positives' does not go {what} with more than two classes; use 'rows'.")


def check_list(estimator, multilabel):
    """Raise for a class_weight of several labels beside targets that are none."""
    given = estimator.class_weight
    several = isinstance(given, (list, np.ndarray)) or (isinstance(given, dict) and any(map(np.ndim, given.values())))
    if several and not multilabel:
        raise ValueError("class_weight is of the labels of an indicator, a dict or a pair of weights for each; for "
                         "classes that exclude each other give one dict of numbers.")


def train(estimator, source, sample_weight, begin):
    """What `LinearClassifier._train` returns, or None for two classes: theirs is one problem, and rows weigh alike."""
    classes, codes, Y = encode_labels(source.y)
    if codes is not None and len(classes) == 2:
        return None
    if estimator.checkpoint is not None:
        raise ValueError("checkpoint= is for weights that are the same in all problems; these differ from label to "
                         "label.")
    if hasattr(estimator, "_loss_for"):
        estimator._loss_for(classes, codes)              # raises for what takes no indicator
    if estimator._goes_on:
        estimator._check_last_fit(source, classes, codes is None)
    weights = ProblemWeights(estimator, source, classes, codes, Y, sample_weight)
    if codes is None:
        warn_of_constant(np.array([signs_met(Y[:, [c]], weights.of(c))[0] for c in range(Y.shape[1])]))
    fit = FitApart(estimator, classes, Y, codes is None, weights)
    return fit, fit.run(source, begin), FitApart.publish, FitApart.shortfall


class ProblemWeights:
    """(n,) weights of the rows in every problem."""

    def __init__(self, estimator, source, classes, codes, Y, sample_weight, may_be_0=False):
        """``may_be_0``: whether all rows may have weight 0 in a problem."""
        self.Y, self.sample_weight = Y, sample_weight
        n, n_problems = Y.shape
        if np.ndim(sample_weight) == 0:
            self.sample_weight = None if sample_weight is None else np.full(n, float(sample_weight))
        else:
            self.sample_weight = check_array(sample_weight, dtype=np.float64, ensure_2d=False,
                                             input_name="sample_weight")
            check_non_negative(self.sample_weight, "`sample_weight`")
            if self.sample_weight.shape not in ((n,), (n, n_problems)):
                raise ValueError(f"sample_weight.shape == {self.sample_weight.shape}, expected {(n,)!r} or "
                                 f"{(n, n_problems)!r}!")
        if codes is None:
            self.factors = self._of_labels(estimator.class_weight)
        else:
            on_positives = estimator._class_weights(classes, codes, self.sample_weight)
            self.factors = np.column_stack([np.ones(n_problems), on_positives])
        check_class_weights(self.factors)
        for c in range(n_problems):
            if not may_be_0 and not self.of(c).any():
                raise ValueError(f"sample_weight and class_weight leave every sample with weight 0 in problem {c}.")

    def given(self, c):
        """The sample weights of problem c."""
        return self.sample_weight if np.ndim(self.sample_weight) < 2 else self.sample_weight[:, c]

    def of(self, c):
        """Sample weights times class weights; the fit refuses a product that is infinite."""
        weight, factor = self.given(c), self.factors[c][self.Y[:, [c]].toarray().ravel()]
        with np.errstate(over="ignore"):
            return factor if weight is None else weight * factor

    def _of_labels(self, class_weight):
        """(n_labels, 2) weights of the rows without and with each label."""
        n_labels = self.Y.shape[1]
        if class_weight is None:
            return np.ones((n_labels, 2))
        if isinstance(class_weight, str):
            return np.array([self._balanced(c) for c in range(n_labels)])
        try:
            return label_weights(class_weight, n_labels)
        except (TypeError, ValueError, KeyError):
            raise ValueError("class_weight of a label indicator is a dict {0: ..., 1: ...} for the rows without and "
                             f"with a label, of numbers or of {n_labels} for the labels, a list of {n_labels} dicts, "
                             f"an array of shape ({n_labels}, 2), or 'balanced'; got {class_weight}.") from None

    def _balanced(self, c):
        there, weight = self.Y[:, [c]].toarray().ravel(), self.given(c)
        return balanced_weights(np.bincount(there, None if weight is None else in_range(weight), minlength=2))


def label_weights(class_weight, n_labels):
    """(n_labels, 2) weights of the rows without and with each label; an error for what has no such numbers."""
    if isinstance(class_weight, dict):
        columns = {key: np.broadcast_to(np.asarray(given, float), n_labels) for key, given in class_weight.items()}
    elif isinstance(class_weight, list):
        columns = {key: np.array([one.get(key, 1.0) for one in class_weight], float) for key in (0, 1)}
        if len(class_weight) != n_labels or not all(set(one) <= {0, 1} for one in class_weight):
            raise ValueError
    else:
        columns = dict(enumerate(np.broadcast_to(np.asarray(class_weight, float), (n_labels, 2)).T))
        if np.shape(class_weight) != (n_labels, 2):
            raise ValueError
    if not set(columns) <= {0, 1}:
        raise ValueError
    return np.column_stack([columns.get(key, np.ones(n_labels)) for key in (0, 1)])


class FitApart:
    """One call of `fit` whose problems are trained one after the other."""

    def __init__(self, estimator, classes, Y, multilabel, weights):
        self.estimator, self.Y, self.weights = estimator, Y, weights
        self.about = {"classes_": classes, "_multilabel": multilabel}
        self.parts, self.shortfalls, self.stopped = [], [], False

    def run(self, source, begin):
        """Train every problem; the interrupt that ended the run, `Deferred`, or None."""
        y = source.y
        try:
            for c in range(self.Y.shape[1]):
                say(self.estimator, f"problem {c + 1} of {self.Y.shape[1]}, class {self.about['classes_'][c]!s}")
                part = self._copy(c)
                self.parts.append(part)
                source.y = sp.csc_matrix(self.Y[:, [c]])                   # an indicator of one label
                fit, interruption, store, shortfall = part._train(source, self.weights.of(c), begin, NO_CHECKPOINTER)
                store(fit)
                if interruption is not None:
                    return interruption
                self.shortfalls.append(shortfall(fit))
                if self.estimator._on_class is not None:
                    self.estimator._on_class(float(part.duality_gap_[0]))
                if self.stopped:
                    return None
        except KeyboardInterrupt as interruption:        # between two problems, or before a first step
            return Deferred(interruption)
        finally:
            source.y = y
            for part in self.parts:
                part.callback = None             # a method of this object, which holds the part
        return None

    def _copy(self, c):
        e = self.estimator
        changed = {"class_weight": None, "callback": None if e.callback is None else self._callback}
        part = type(e)(**{**e.get_params(deep=False), **changed})       # no deep copies, of a random state least
        part._names_constants = False
        if e._goes_on:
            vars(part).update(coef_=e.coef_[c:c + 1], intercept_=e.intercept_[c:c + 1], classes_=np.arange(1),
                              _multilabel=True, **{name: vars(e)[name] for name in SO_FAR if name in vars(e)})
            if getattr(e, "_signs", None) is not None:
                part._signs = e._signs[c:c + 1]
        return part

    def _callback(self, part):
        self.publish()
        self.stopped = bool(self.estimator.callback(self.estimator))
        return self.stopped

    def publish(self):
        """Set the fitted attributes, of problems that were not begun to zero weights."""
        e, found = self.estimator, [vars(part) for part in self.parts if hasattr(part, "coef_")]
        if not found:
            return
        missing, d = self.Y.shape[1] - len(found), found[0]["coef_"].shape[1]
        of_all = dict(self.about)
        for name in BY_PROBLEM:
            if name in found[0]:
                like = found[0][name]
                rest = sp.csr_matrix((missing, d), dtype=like.dtype) if is_sparse(like) else np.full(
                    (missing, d) if name == "coef_" else missing, NOT_BEGUN.get(name, np.nan), like.dtype)
                parts = [one[name] for one in found] + [rest]
                of_all[name] = sp.vstack(parts, like.format) if is_sparse(like) else np.concatenate(parts)
        for name in LARGEST_OF_ALL:
            if name in found[0]:
                of_all[name] = max(one[name] for one in found)
        of_all.update({name: found[0][name] for name in ALIKE if name in found[0]})
        if getattr(self.parts[0], "_signs", None) is not None:
            of_all["_signs"] = np.concatenate([*(one["_signs"] for one in found), np.zeros(missing, np.int8)])
        histories = [one["history_"] for one in found]   # of which one may be empty, of a constant label
        columns = {name: [one.get(name, np.empty(0)) for one in histories] for name in max(histories, key=len)}
        columns["class"] = [np.full(len(one), c) for c, one in enumerate(columns.get("class", ()))]
        of_all.update({name: None for name in OF_EACH if name in found[0]})
        if not missing and found[0].get("_counts") is not None:
            of_all["_counts"] = np.concatenate([one["_counts"] for one in found], axis=1)
        vars(e).pop("eigenvalues_", None)                # of an earlier fit
        vars(e).update(of_all, history_={name: np.concatenate(column) for name, column in columns.items() if column})

    def shortfall(self):
        short = [c for c, text in enumerate(self.shortfalls) if text is not None]
        if not short:
            return None
        name = self.about["classes_"][short[0]]
        return f"{self.shortfalls[short[0]]} (problem {name!s}; {len(short)} of {self.Y.shape[1]} fell short)"


# ---------------------------------------------------------------- partial_fit

def fit_part(estimator, source, labels, sample_weight, begin):
    """One pass of every label over the rows, by its own weights; a label whose weights are all 0 keeps its model."""
    classes, _, Y = labels
    weights = ProblemWeights(estimator, source, *labels, sample_weight, may_be_0=True)
    parts = [_model_of(estimator, c) for c in range(len(classes))]
    try:
        for c, part in enumerate(parts):
            part._fit_part(source, (np.arange(1), None, Y[:, [c]]), weights.of(c), begin)
    except KeyboardInterrupt:
        _join(estimator, parts, classes)
        raise
    _join(estimator, parts, classes)
    if estimator.callback is not None:
        estimator.callback(estimator)
    return estimator


def _model_of(estimator, c):
    """An estimator of label c alone, which goes on from what there is of it."""
    part = type(estimator)(**{**estimator.get_params(deep=False), "class_weight": None, "callback": None})
    known = vars(estimator)
    if "coef_" not in known or c >= len(estimator.coef_):
        return part
    counts = known.get("_counts")
    part._nothing_yet = estimator._nothing_yet or (counts is not None and counts[0, c] == 0)
    vars(part).update({name: known[name] for name in SHARED if name in known}, classes_=np.arange(1), _multilabel=True,
                      **{name: known[name][c:c + 1] for name in BY_LABEL if name in known})
    inverse = known.get("preconditioner_")
    if inverse is not None and (inverse.n_groups > 1 or getattr(inverse, "gain", None) is not None):
        part.preconditioner_ = None              # one for each label
    if counts is not None:
        part._counts = counts[:, c:c + 1]
    if known.get("_streams") is not None:
        part._streams = known["_streams"][c:c + 1]
    return part


def _join(estimator, parts, classes):
    """Give ``estimator`` the models of its labels; preconditioner, step and history are those of one of them."""
    found = [vars(part) for part in parts]
    if not all("coef_" in one for one in found):         # ended before every label had one
        return
    nothing = np.array([part._nothing_yet for part in parts])
    missing = {"class_prior_": np.zeros(1), "sampled_prior_": np.full(1, 0.5)}
    of_all = {name: np.concatenate([one.get(name, missing.get(name)) for one in found]) for name in BY_LABEL}
    trained = [one for one in found if "history_" in one] or found[:1]       # in this call
    of_all.update({name: trained[0][name] for name in (*SHARED, "history_") if name in trained[0]})
    for name in ("n_iter_", "_passes_total", "n_passes_"):
        if all(name in one for one in trained):
            of_all[name] = max(one[name] for one in trained)
    counts = [one.get("_counts") for one in found]
    if any(one is not None for one in counts):
        of_all["_counts"] = np.concatenate([np.zeros((3, 1)) if one is None else one for one in counts], axis=1)
    streams = [one.get("_streams") for one in found]
    of_all["_streams"] = None if any(one is None for one in streams) else np.concatenate(streams)
    vars(estimator).update(of_all, classes_=classes, _multilabel=True, _signs=None, _nothing_yet=bool(nothing.all()))
