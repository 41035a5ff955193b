"""The numbers that ``cmargin evaluate`` reports: accuracy, AUC, F1, margins, calibration, and each class."""

import numpy as np
from sklearn.metrics import roc_auc_score

from cmargin.margins import expected_calibration_error, margin_error, margin_summary

BINS = 15                      # of the calibration plot
MOST_COUNTED = 2000            # classes for which a confusion matrix is kept
MOST_SHOWN = 30                # classes of which the report has the whole confusion matrix
MOST_SCORES = 1 << 25          # scores, rows x classes, that are kept for the areas under ROC curves: 268 MB
LEAST = np.finfo(float).min    # in place of the logarithm of a probability that is rounded to 0
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
THETA = np.linspace(0, 1, 201)


def report(model, table, name):
    """Return (facts, a dict of numbers and texts; curves, a dict of the arrays that plots are drawn from).

    ``name`` is the name of the file of the `Table`, which must have one label a row.
    """
    classes = model.classifier.classes_
    y = np.asarray(table.y)
    if y.ndim != 1:
        raise ValueError("evaluate takes one label a row, not a label indicator.")
    codes = _codes(y, classes)
    known = codes >= 0
    if not known.any():
        few = ", ".join(map(str, classes[:5])) + ", ..." * (len(classes) > 5)
        raise ValueError(f"none of the labels of {name} is one of those the model knows, {few}; --label names the "
                         "column of labels.")
    scores = Scores(model, table.X, codes)
    right = scores.predicted == codes
    facts = {"data": {"file": name, "rows": len(y), "labels not known": int((~known).sum())},
             "accuracy": float(right.mean()),
             "most frequent class": float(np.bincount(codes[known]).max() / len(y))}
    if scores.in_top_5 is not None:
        facts["among the best 5"] = float(scores.in_top_5.mean())
    confusion = scores.confusion(len(classes))
    by_class = _by_class(confusion, list(map(str, classes)), scores.areas(known))
    facts |= {f"mean {what}": float(np.mean(found)) for what in ("F1", "AUC")
              if (found := [one[what] for one in by_class if one[what] is not None])}
    margins = scores.margin[known]
    summary = margin_summary(margins, quantiles=LEVELS)
    facts["margins"] = {**{key: float(summary[key]) for key in ("mean", "median", "location", "variance")},
                        "share at most 0": float(summary["share_nonpositive"]),
                        "quantiles": dict(zip(map(str, LEVELS), summary["quantiles"].tolist(), strict=True))}
    curves = {"margins": margins, "confusion": confusion, "classes": list(map(str, classes))}
    if scores.confidence is not None:
        facts["calibration error"] = expected_calibration_error(scores.confidence, right.astype(int), BINS)
        facts["log-loss"] = float(-scores.log_probability[known].mean())
        curves |= {"theta": THETA, "margin error": margin_error(np.exp(scores.log_probability[known]), THETA),
                   "reliability": _reliability(scores.confidence, right)}
    if confusion is not None and len(classes) <= MOST_SHOWN:
        facts["confusion matrix"] = confusion.tolist()       # a line for each class, a column for each prediction
    facts["classes"] = by_class
    return facts, curves


def _codes(y, classes):
    """Return the places of labels among the classes, -1 for labels that are not among them."""
    if y.dtype.kind != classes.dtype.kind and "U" in (y.dtype.kind, classes.dtype.kind):
        y, classes = y.astype(str), classes.astype(str)
    order = np.argsort(classes)
    codes = order[np.searchsorted(classes, y, sorter=order).clip(0, len(classes) - 1)]
    return np.where(classes[codes] == y, codes, -1)


class Scores:
    """What is kept of the scores of every row, in arrays of shape (n,).

    ``margin`` is the score of the right class minus the best other one, ``in_top_5`` None for five classes and fewer.
    Without probabilities, ``confidence`` (of the predicted class) and ``log_probability`` (of the right one) are None.
    ``all`` has what the classes are ranked by: scores (n,) of two classes, and of more (n, n_classes) logarithms of
    probabilities, or scores where there are none; it is None where they are too many.
    """

    def __init__(self, model, X, codes):
        classifier, n = model.classifier, len(codes)
        self.codes, self.predicted, self.margin = codes, np.empty(n, np.int64), np.empty(n)
        self.in_top_5 = np.empty(n, bool) if len(classifier.classes_) > 5 else None
        k = len(classifier.classes_)
        self.all = np.empty(n if k == 2 else (n, k)) if n * k <= MOST_SCORES else None
        has_probabilities = hasattr(classifier, "predict_proba")
        self.confidence, self.log_probability = (np.empty(n) if has_probabilities else None for _ in range(2))
        for part, rows in model.batches(X):
            scores = np.asarray(classifier.decision_function(rows), float)
            logs = classifier.predict_log_proba(rows) if has_probabilities else None
            if self.all is not None:         # scores of a softmax are told apart by their differences alone
                self.all[part] = scores if logs is None or scores.ndim == 1 else np.maximum(logs, LEAST)
            self._add(part, scores)
            if has_probabilities:
                at = np.arange(len(logs))
                self.confidence[part] = np.exp(np.minimum(logs[at, self.predicted[part]], 0))
                self.log_probability[part] = np.minimum(logs[at, codes[part]], 0)

    def _add(self, part, scores):
        if scores.ndim == 1:
            self.predicted[part] = scores > 0
            self.margin[part] = np.where(self.codes[part] == 1, scores, -scores)
            return
        at, codes = np.arange(len(scores)), self.codes[part]
        self.predicted[part] = scores.argmax(axis=1)
        own = scores[at, codes]
        if self.in_top_5 is not None:
            self.in_top_5[part] = ((scores > own[:, None]).sum(axis=1) < 5) & (codes >= 0)
        scores[at, codes] = -np.inf
        self.margin[part] = own - scores.max(axis=1)

    def areas(self, known):
        """Return a dict of the area under the ROC curve of every class against the others, among rows ``known``.

        It has no entry for a class that none or all of these rows are of; it is empty where ``all`` is None.
        """
        if self.all is None:
            return {}
        codes = self.codes[known]
        columns = (-self.all[known], self.all[known]) if self.all.ndim == 1 else self.all[known].T
        return {c: float(roc_auc_score(codes == c, column)) for c, column in enumerate(columns)
                if 0 < np.count_nonzero(codes == c) < len(codes)}

    def confusion(self, n_classes):
        """Return (n_classes, n_classes) counts, rows by the right class; None where there are too many classes."""
        if n_classes > MOST_COUNTED:
            return None
        known = self.codes >= 0
        pairs = np.bincount(self.codes[known] * n_classes + self.predicted[known], minlength=n_classes**2)
        return pairs.reshape(n_classes, n_classes)


def _reliability(confidence, right):
    """Return (mean confidence, share of right predictions, rows) of the bins that have rows."""
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    n = np.bincount(bins, minlength=BINS)
    filled = n > 0
    means = (np.bincount(bins, weights=what, minlength=BINS)[filled] / n[filled] for what in (confidence, right))
    return *means, n[filled]


def _by_class(confusion, names, areas):
    """Return a dict for every class, in the order of the labels; none where there is no confusion matrix.

    The F1 of a class that no row is of and none is predicted as is None.
    """
    if confusion is None:
        return []
    rows, predicted, hits = confusion.sum(axis=1), confusion.sum(axis=0), np.diag(confusion)
    wrong = confusion - np.diag(hits)
    found = []
    for c, name in enumerate(names):
        other = int(wrong[c].argmax()) if wrong[c].any() else None
        found.append({"label": name, "rows": int(rows[c]), "recall": float(hits[c] / rows[c]) if rows[c] else None,
                      "precision": float(hits[c] / predicted[c]) if predicted[c] else None,
                      "F1": float(2 * hits[c] / (rows[c] + predicted[c])) if rows[c] + predicted[c] else None,
                      "AUC": areas.get(c), "most often taken for": None if other is None else names[other]})
    return found
