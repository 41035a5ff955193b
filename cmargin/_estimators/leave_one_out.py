"""What `SmSVMClassifier` would predict of every row had it been left out: proven, and the few that are not, solved."""

import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from cmargin._estimators.apart import weights_differ
from cmargin._estimators.by_column import refuse_by_column
from cmargin._estimators.pruned import refuse_stored
from cmargin._estimators.smsvm_fit import penalty_of
from cmargin._estimators.validation import check_data
from cmargin._runtime.blas_threads import single_threaded_blas
from cmargin.data.memory.margin_rows import MarginRows
from cmargin.data.open_here import source_of
from cmargin.solvers.left_out.hinge import SOLVED, HingeLeftOut
from cmargin.solvers.left_out.problem import LOSSES, Problem
from cmargin.solvers.left_out.search import searched_among
from cmargin.solvers.left_out.smooth import SmoothLeftOut

MOST_UNKNOWNS = 5000             # rows or columns, whichever are fewer, of which a square matrix is made
ROUNDING = 1e-6                  # bounds of a score to both sides of 0 within which it counts as 0
OF_A_START = ("coef_", "intercept_", "classes_", "n_features_in_", "_multilabel")


@dataclass(repr=False)
class LeaveOneOut:
    """Left-out predictions of n rows: what each row is predicted as by the model trained on all others.

    Attributes
    ----------
    predictions : (n,) array of labels, or (n, n_labels) indicator
    right : (n,) array of bool
        Whether the prediction is the label, for an indicator all labels.
    proven : (n,) array of bool
        Whether the prediction follows from certified intervals. It does not where the score is 0 up to rounding, which
        then counts as 0, or where the optimum without the row is not unique: the prediction is one optimum's.
    score : float
        Share of right predictions, rows weighing as ``sample_weight`` says.
    decisions : (n,) or (n, n_problems) array
        Left-out scores: exact up to rounding where the row was solved, else an approximation, for the smooth losses by
        one Newton step.
    low, high : arrays of that shape
        Certified interval of each exact left-out score, as narrow as the prediction needed; an end may be infinite.
    n_solved : int
        Problems without a row that were solved anew, each by itself.
    stages : dict
        Number of rows whose prediction was known after each stage and not before.
    """

    predictions: np.ndarray
    right: np.ndarray
    proven: np.ndarray
    score: float
    decisions: np.ndarray
    low: np.ndarray
    high: np.ndarray
    n_solved: int
    stages: dict[str, int]

    def __repr__(self):
        n, n_proven = len(self.right), int(self.proven.sum())
        rest = "" if n_proven == n else f", {n - n_proven} of them not proven"
        return (f"LeaveOneOut(score={self.score:.6g}: {int(self.right.sum())} of {n} rows right{rest}, "
                f"{self.n_solved} problems solved)")


def leave_one_out(estimator, X, y, sample_weight=None):
    """`LeaveOneOut` of a fitted `SmSVMClassifier` on the rows that it was trained on."""
    check_is_fitted(estimator)
    estimator._check_parameters()
    refuse_by_column(estimator, "leave_one_out")
    refuse_stored(estimator, "leave_one_out")
    if estimator.multi_class != "ovr":
        raise ValueError(f"leave_one_out needs multi_class='ovr'; got {estimator.multi_class!r}.")
    X, y, sample_weight = check_data(estimator, X, y, sample_weight, reset=False)
    check_loss(estimator)
    source = source_of(X, y)
    if not source.in_memory:
        source.refuse("leave_one_out")
    if weights_differ(estimator, source, sample_weight):
        raise ValueError("leave_one_out does not take weights that differ between the problems of an indicator or of "
                         "class_weight_on='positives' yet; call it for one problem at a time.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)             # of constant labels, of which the fit has told
        labels, weights, total = estimator._labels_and_weights(source, sample_weight)
    estimator._check_last_fit(source, labels.classes, labels.multilabel, "leave_one_out")
    penalty = penalty_of(estimator, total, source.n_features)
    if penalty.l1 > 0 or not penalty.l2 > 0:
        raise ValueError(f"leave_one_out needs l1=0 and l2 above 0; got l1={penalty.l1:g} and l2={penalty.l2:g}.")
    # sums beyond the range of doubles prove nothing, and say so by the bounds that they leave
    with single_threaded_blas(), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        problems = _problems(estimator, source, labels, weights, penalty.l2, sample_weight)
        found = searched_among(problems, [labels[c] for c in range(len(labels))], labels.multilabel)
    return _result(labels, found, source.y, sample_weight)


def check_loss(estimator):
    """Refuse losses whose left-out scores have no bounds."""
    if estimator.loss not in LOSSES:
        raise ValueError(f"leaving one row out needs loss={' or '.join(map(repr, LOSSES))}; got {estimator.loss!r}.")


def _problems(estimator, source, labels, weights, l2, sample_weight):
    """What bounds each problem's left-out margins, or None of one whose labels have one sign."""
    X, start = source.unrepeated().X, None
    if source.n_features > source.n_rows:
        X = _reduced(source)
    n, intercept = source.n_rows, bool(estimator.fit_intercept)
    n_columns = X.shape[1] + intercept
    if n_columns > MOST_UNKNOWNS:
        raise ValueError(f"leave_one_out makes a square matrix of the fewer of rows and columns, at most "
                         f"{MOST_UNKNOWNS}; got {source.n_rows} rows and {source.n_features} columns.")
    if X.shape[1] == source.n_features:
        start = _start(estimator, source, sample_weight, n_columns)
    weight = (np.ones(n) if weights is None else weights) / n
    penalties = np.full(n_columns, l2)
    if intercept and not estimator.penalize_intercept:
        penalties[-1] = 0.0
    loss, found = LOSSES[estimator.loss], []
    for c in range(len(labels)):
        signs = labels[c]
        counted = signs[weight > 0]
        if counted.min() == counted.max():
            found.append(None)
            continue
        v = np.zeros(n_columns) if start is None else start[c]
        problem = Problem(MarginRows(X, signs, intercept), weight, penalties, l2, loss)
        found.append((SmoothLeftOut if loss.smooth else HingeLeftOut)(problem, v))
    return found


def _reduced(source):
    """Rows in as many coordinates as there are rows at most, with the same products of any two of them."""
    if source.n_rows > MOST_UNKNOWNS:
        return source.X
    if not source.sparse:
        return source.reduced().L
    gram = (source.unrepeated().X.astype(float) @ source.unrepeated().X.T.astype(float)).toarray()
    values, vectors = np.linalg.eigh(gram)
    kept = values > len(values) * np.finfo(float).eps * values.max(initial=0.0)
    return vectors[:, kept] * np.sqrt(values[kept])


def _start(estimator, source, sample_weight, n_columns):
    """(n_problems, n_columns) weights near the optima: the estimator's, or those of a closer fit."""
    # many rows with the hinge: the optimum is sought among those near the kink, which weights near it know
    if estimator.loss == "hinge" and HingeLeftOut.wants_near_start(source.n_rows, n_columns):
        closer = clone(estimator).set_params(tol=min(SOLVED[0], estimator.tol), warm_start=True, verbose=0,
                                             callback=None, checkpoint=None, max_time=None)
        vars(closer).update({name: vars(estimator)[name] for name in OF_A_START if name in vars(estimator)})
        closer._names_constants = False
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)         # of a gap that is left: the search goes on from there
            estimator = closer.fit(source.X, source.y, sample_weight)
    coef, intercept = np.asarray(estimator.coef_, float), np.asarray(estimator.intercept_, float)
    return np.hstack([coef, intercept[:, None]])[:, :n_columns]


def _result(labels, found, y, sample_weight):
    scores = np.where(np.maximum(-found.low, found.high) <= ROUNDING, 0.0, found.decisions)
    alone = len(labels) == 1 and not labels.multilabel
    if labels.multilabel:
        predictions = (scores > 0).astype(int)
        right = ((scores > 0) == (labels.positives.toarray() > 0)).all(axis=1)
    else:
        places = (scores[:, 0] > 0).astype(int) if alone else scores.argmax(axis=1)
        predictions, right = labels.classes[places], places == labels.label
    weight = None if sample_weight is None else _check_sample_weight(sample_weight, y, dtype=float)
    columns = [a[:, 0] if alone else a for a in (scores, found.low, found.high)]
    return LeaveOneOut(predictions, right, found.proven, float(np.average(right, weights=weight)), *columns,
                       found.n_solved, found.stages)
