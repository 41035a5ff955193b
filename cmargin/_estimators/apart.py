"""One-vs-rest problems whose weights differ: trained one after the other, each with weights of its own.

Where every row has one weight, all problems share it and are trained together. Weights of (n, n_labels), class weights
of the labels of an indicator, and class weights that count for positives alone make a row weigh as much as its problem
says; then each problem is a fit of a copy of the estimator, to rows that are opened and checked once.
"""

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_array, check_non_negative

from cmargin._estimators.one_sign import signs_met, warn_of_constant
from cmargin._estimators.progress import say
from cmargin._estimators.validation import balanced_weights, check_class_weights, encode_labels, in_range
from cmargin._runtime.checkpoint import NO_KEEPER
from cmargin._runtime.deferred import Deferred

BY_PROBLEM = ("coef_", "intercept_", "duality_gap_", "objective_", "gradient_norm_", "scale_", "class_prior_",
              "sampled_prior_")
SO_FAR = ("_passes_total", "_steps_taken")
LARGEST_OF_ALL = ("n_iter_", "rank_", *SO_FAR)
ALIKE = ("loss_",)
OF_EACH = ("preconditioner_", "step_size_", "_counts", "_streams", "_recipe")         # and not kept
NOT_BEGUN = {"coef_": 0.0, "intercept_": 0.0}            # of a problem that an interrupt left; all else is NaN


def is_indicator(y):
    return np.ndim(y) == 2 and y.shape[1] > 1


def weights_differ(estimator, home, sample_weight):
    """Whether the problems of a fit want weights of their own."""
    if is_indicator(home.y):
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
    """Raise for a class_weight that is a list, which is one of labels, beside targets that are none."""
    if isinstance(estimator.class_weight, list) and not multilabel:
        raise ValueError("class_weight is a list of one dict for each label of an indicator; for classes that exclude "
                         "each other give one dict.")


def train(estimator, home, sample_weight, begin):
    """What `LinearClassifier._train` returns, or None for two classes: theirs is one problem, and rows weigh alike."""
    classes, codes, Y = encode_labels(home.y)
    if codes is not None and len(classes) == 2:
        return None
    if estimator.checkpoint is not None:
        raise ValueError("checkpoint= is for weights that are the same in all problems; these differ from label to "
                         "label.")
    if hasattr(estimator, "_loss_for"):
        estimator._loss_for(classes, codes)              # raises for what takes no indicator
    if estimator._goes_on:
        estimator._check_last_fit(home, classes, codes is None)
    weights = ProblemWeights(estimator, home, classes, codes, Y, sample_weight)
    if codes is None:
        warn_of_constant(np.array([signs_met(Y[:, [c]], weights.of(c))[0] for c in range(Y.shape[1])]))
    fit = FitApart(estimator, classes, Y, codes is None, weights)
    return fit, fit.run(home, begin), FitApart.publish, FitApart.shortfall


class ProblemWeights:
    """(n,) weights of the rows in every problem."""

    def __init__(self, estimator, home, classes, codes, Y, sample_weight, may_be_0=False):
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
        every = class_weight if isinstance(class_weight, list) else [class_weight] * n_labels
        if len(every) != n_labels or not all(set(one) <= {0, 1} for one in every):
            raise ValueError("class_weight of a label indicator is a dict {0: ..., 1: ...} for the rows without and "
                             f"with a label, a list of {n_labels} of these, or 'balanced'; got {class_weight}.")
        return np.array([[one.get(0, 1.0), one.get(1, 1.0)] for one in every], float)

    def _balanced(self, c):
        there, weight = self.Y[:, [c]].toarray().ravel(), self.given(c)
        return balanced_weights(np.bincount(there, None if weight is None else in_range(weight), minlength=2))


class FitApart:
    """One call of `fit` whose problems are trained one after the other."""

    def __init__(self, estimator, classes, Y, multilabel, weights):
        self.estimator, self.Y, self.weights = estimator, Y, weights
        self.about = {"classes_": classes, "_multilabel": multilabel}
        self.parts, self.shortfalls, self.stopped = [], [], False

    def run(self, home, begin):
        """Train every problem; the interrupt that ended the run, `Deferred`, or None."""
        y = home.y
        try:
            for c in range(self.Y.shape[1]):
                say(self.estimator, f"problem {c + 1} of {self.Y.shape[1]}, class {self.about['classes_'][c]!s}")
                part = self._copy(c)
                self.parts.append(part)
                home.y = sp.csc_matrix(self.Y[:, [c]])                   # an indicator of one label
                fit, interruption, store, shortfall = part._train(home, self.weights.of(c), begin, NO_KEEPER)
                store(fit)
                if interruption is not None:
                    return interruption
                self.shortfalls.append(shortfall(fit))
                if self.stopped:
                    return None
        except KeyboardInterrupt as interruption:        # between two problems, or before a first step
            return Deferred(interruption)
        finally:
            home.y = y
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
                rest = np.full((missing, d) if name == "coef_" else missing, NOT_BEGUN.get(name, np.nan))
                parts = [one[name] for one in found] + [rest.astype(found[0][name].dtype)]
                of_all[name] = np.concatenate(parts)
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
        vars(e).update(of_all, n_passes_=float(sum(one["n_passes_"] for one in found)),
                       history_={name: np.concatenate(column) for name, column in columns.items() if column})

    def shortfall(self):
        short = [c for c, text in enumerate(self.shortfalls) if text is not None]
        if not short:
            return None
        name = self.about["classes_"][short[0]]
        return f"{self.shortfalls[short[0]]} (problem {name!s}; {len(short)} of {self.Y.shape[1]} fell short)"
