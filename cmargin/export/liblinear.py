"""LIBLINEAR's text models, read and written (the format is that of its `save_model`, version 2.50).

    solver_type L2R_LR
    nr_class 3
    label 0 1 2
    nr_feature 4
    bias 1
    w
    0.5 -1 0.25            one line a feature, one number a class; two classes have one number
    ...
    0.1 0.2 -0.3           where bias >= 0, one line more: its product with the bias is the intercept

Of two classes the one named first has the positive scores. Columns are counted from 1 in LIBLINEAR's data; column 1 is
the first feature here.
"""

import os
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from cmargin._runtime.output import output_file
from cmargin.data.arrays import dense

if TYPE_CHECKING:
    from cmargin.smsvm import SmSVMClassifier

INT = np.iinfo(np.int32)                             # labels are C ints there
LOSS_OF = {
    "L2R_LR": "logistic", "L2R_LR_DUAL": "logistic", "L1R_LR": "logistic",
    "L2R_L2LOSS_SVC": "squared_hinge", "L2R_L2LOSS_SVC_DUAL": "squared_hinge", "L1R_L2LOSS_SVC": "squared_hinge",
    "L2R_L1LOSS_SVC_DUAL": "hinge",
}


def save_liblinear(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a trained classifier as a text model that LIBLINEAR's ``predict`` reads.

    The solver type is L2R_LR where the scores are log-odds, so that ``predict -b 1`` gives the probabilities too;
    L2R_L2LOSS_SVC for the squared hinge; and L2R_L1LOSS_SVC_DUAL, of which only the weights count, for all else.

    Parameters
    ----------
    estimator : a fitted classifier of this package
    path : str or path; a file there is replaced when the new one is whole

    Raises
    ------
    ValueError
        For labels that are no integers of 32 bits, label indicators, and predictions that are no linear function of
        the features (see `to_sklearn`).
    """
    check_is_fitted(estimator)
    model = getattr(estimator, "_best", None) or getattr(estimator, "best_estimator_", estimator)
    if model._multilabel:
        raise ValueError("A LIBLINEAR model gives a row one label; this one was trained on a label indicator.")
    labels = _whole_labels(model.classes_)
    coef, intercept, posterior = model._linear_form()
    coef = dense(coef)                               # as the text has it
    squared = getattr(model, "loss", None) == "squared_hinge"
    solver = "L2R_LR" if posterior == "logistic" else "L2R_L2LOSS_SVC" if squared else "L2R_L1LOSS_SVC_DUAL"
    if len(coef) == 1:
        labels = labels[::-1]
    columns, bias = (np.vstack([coef.T, intercept]), 1) if intercept.any() else (coef.T, -1)
    with output_file(os.fspath(path), "w", newline="\n") as file:
        file.write(f"solver_type {solver}\nnr_class {len(labels)}\nlabel {' '.join(map(str, labels))}\n"
                   f"nr_feature {coef.shape[1]}\nbias {bias}\nw\n")
        file.writelines(" ".join(map(repr, row)) + "\n" for row in columns.astype(float).tolist())


def _whole_labels(classes):
    """The classes as a list of ints, which is all that a LIBLINEAR model names classes by."""
    whole = classes.dtype.kind in "biuf" and bool((classes == np.rint(classes)).all())
    if not whole or not (classes >= INT.min).all() or not (classes <= INT.max).all():
        raise ValueError(f"The labels of a LIBLINEAR model are integers of 32 bits; this one's are {classes}. Number "
                         "the classes (sklearn.preprocessing.LabelEncoder), or use to_sklearn().")
    return [int(label) for label in classes.tolist()]


def load_liblinear(path: str | os.PathLike[str]) -> "SmSVMClassifier":
    """Read a text model that LIBLINEAR, or `save_liblinear`, wrote.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    SmSVMClassifier, fitted: weights in float64, ``loss`` as the solver type says; ``warm_start`` goes on from it

    Raises
    ------
    ValueError
        For what is no such model, with the number of the line; for regression, one-class and Crammer-Singer models, and
        for a single class.
    """
    from cmargin.smsvm import SmSVMClassifier

    with open(path, encoding="ascii", errors="replace") as file:
        lines = _Lines(os.fspath(path), file)
        head = _read_head(lines)
        w = _read_weights(lines, head)
    labels = np.array(head["label"])
    if head["bias"] >= 0:
        coef, intercept = w[:-1].T, head["bias"] * w[-1]
    else:
        coef, intercept = w.T, np.zeros(w.shape[1])
    order = np.argsort(labels)
    if len(labels) == 2:                             # ours has the positive scores for the larger label
        sign = 1.0 if labels[0] > labels[1] else -1.0
        coef, intercept = sign * coef, sign * intercept
    else:
        coef, intercept = coef[order], intercept[order]
    model = SmSVMClassifier(loss=LOSS_OF[head["solver_type"]])
    model.__dict__.update(coef_=np.ascontiguousarray(coef), intercept_=intercept, classes_=labels[order],
                          n_features_in_=coef.shape[1], _multilabel=False)
    return model


class _Lines:
    """The lines of a model, and where they are for whoever finds something wrong with them."""

    def __init__(self, path, file):
        self.path, self.file, self.number = path, file, 0

    def next(self, what):
        """The words of the next line."""
        self.number += 1
        line = self.file.readline()
        if not line:
            raise self.wrong(f"the file ends where {what} should be")
        return line.split()

    def wrong(self, what):
        return ValueError(f"{self.path!r} is no LIBLINEAR model: line {self.number}: {what}.")


def _read_head(lines):
    """{name: value} of the lines before the weights."""
    head, readers = {}, {"solver_type": _solver, "nr_class": _count, "label": _labels, "nr_feature": _count,
                         "bias": _number}
    while (words := lines.next("'w'")) != ["w"]:
        name = words[0] if words else ""
        if name not in readers or name in head:
            raise lines.wrong(f"expected one of {', '.join(n for n in readers if n not in head)} or w, "
                              f"found {' '.join(words)[:60]!r}")
        head[name] = readers[name](lines, words[1:])
    missing = [name for name in readers if name not in head]
    if missing:
        raise lines.wrong(f"there is no {missing[0]} before the weights")
    if not 2 <= head["nr_class"] == len(head["label"]):
        raise lines.wrong(f"nr_class is {head['nr_class']} with {len(head['label'])} labels; a classifier has two or "
                          "more, and a label for each")
    return head


def _solver(lines, words):
    if len(words) != 1 or words[0] not in LOSS_OF:
        raise lines.wrong(f"solver_type {' '.join(words)[:60]!r} is not one of {', '.join(LOSS_OF)}")
    return words[0]


def _count(lines, words):
    if len(words) != 1 or not words[0].isdecimal() or len(words[0]) > 10 or not 1 <= int(words[0]) <= INT.max:
        raise lines.wrong(f"expected a number of 1 to {INT.max}, found {' '.join(words)[:60]!r}")
    return int(words[0])


def _labels(lines, words):
    try:
        labels = [int(word) for word in words]
    except ValueError:
        raise lines.wrong(f"labels are integers, found {' '.join(words)[:60]!r}") from None
    if len(set(labels)) < len(labels):
        raise lines.wrong("a label is named twice")
    return labels


def _number(lines, words):
    return _numbers(lines, words, 1)[0]


def _numbers(lines, words, n):
    try:
        numbers = np.array(words, dtype=float)
    except ValueError:
        raise lines.wrong(f"expected numbers, found {' '.join(words)[:60]!r}") from None
    if len(numbers) != n or not np.isfinite(numbers).all():
        raise lines.wrong(f"expected {n} finite number{'s' * (n > 1)}, found {' '.join(words)[:60]!r}")
    return numbers


def _read_weights(lines, head):
    """(nr_feature, and one more with a bias; number of problems) array."""
    n_problems = 1 if head["nr_class"] == 2 else head["nr_class"]
    n_rows = head["nr_feature"] + (head["bias"] >= 0)
    rows = [_numbers(lines, lines.next(f"line {i + 1} of {n_rows} of the weights"), n_problems) for i in range(n_rows)]
    for words in iter(lines.file.readline, ""):
        lines.number += 1
        if words.strip():
            raise lines.wrong(f"there is more after the {n_rows} lines of weights")
    return np.array(rows)
