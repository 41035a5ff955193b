"""What is said of a model on some rows: accuracy, margins, calibration, classes; as a dict, as text, as JSON."""

import json
import textwrap

import numpy as np

from cmargin.margins import expected_calibration_error, margin_error, margin_summary

BATCH = 1 << 22                # scores held together
BINS = 15
LONGEST = 40                   # characters of a label in a table
MOST_CLASSES = 30              # that a table has a line each for
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
THETA = np.linspace(0, 1, 201)


def report(model, table, name):
    """What there is to say, of numbers and texts; and the arrays that plots are drawn from."""
    classes = model.classifier.classes_
    y = np.asarray(table.y)
    if y.ndim != 1:
        raise ValueError("evaluate takes one label a row, not a label indicator.")
    if y.dtype.kind != classes.dtype.kind and "U" in (y.dtype.kind, classes.dtype.kind):
        y, classes = y.astype(str), classes.astype(str)
    order = np.argsort(classes)
    codes = order[np.searchsorted(classes, y, sorter=order).clip(0, len(classes) - 1)]
    known = classes[codes] == y
    if not known.any():
        few = ", ".join(map(str, classes[:5])) + ", ..." * (len(classes) > 5)
        raise ValueError(f"none of the labels of {name} is one of those the model knows, {few}; --label names the "
                         "column of labels.")
    rows = Rows(model, table.X, np.where(known, codes, -1))
    right = rows.predicted == rows.codes
    told = {"data": {"file": name, "rows": len(y), "labels not known": int((~known).sum())},
            "accuracy": float(right.mean()),
            "most frequent class": float(np.bincount(codes[known]).max() / len(y))}
    if rows.top is not None:
        told["among the best 5"] = float(rows.top.mean())
    lead = rows.lead[known]
    summary = margin_summary(lead, quantiles=LEVELS)
    told["margins"] = {**{key: float(summary[key]) for key in ("mean", "median", "location", "variance")},
                       "share at most 0": float(summary["share_nonpositive"]),
                       "quantiles": dict(zip(map(str, LEVELS), summary["quantiles"].tolist(), strict=True))}
    curves = {"margins": lead, "confusion": rows.confusion(len(classes)), "classes": list(map(str, classes))}
    if rows.sure is not None:
        true = rows.true[known]
        told["calibration error"] = expected_calibration_error(rows.sure, right.astype(int), BINS)
        told["log-loss"] = float(-rows.true_log[known].mean())
        curves |= {"theta": THETA, "margin error": margin_error(true, THETA),
                   "reliability": _reliable(rows.sure, right)}
    told["classes"] = _by_class(curves["confusion"], curves["classes"])
    return told, curves


class Rows:
    """What is kept of every row: the class predicted, the lead of the right one, and the probabilities of both."""

    def __init__(self, model, X, codes):
        classifier, n = model.classifier, len(codes)
        n_classes = len(classifier.classes_)
        self.codes, self.predicted, self.lead = codes, np.empty(n, np.int64), np.empty(n)
        self.top = np.empty(n, bool) if n_classes > 5 else None
        chances = hasattr(classifier, "predict_proba")
        self.sure, self.true, self.true_log = (np.empty(n) if chances else None for _ in range(3))
        size = max(1, BATCH // n_classes)
        for lo in range(0, n, size):
            part, here = slice(lo, lo + size), model.scaled(X[lo:lo + size])
            self._scores(part, classifier.decision_function(here))
            if chances:
                logs = classifier.predict_log_proba(here)
                at = np.arange(len(logs))
                self.sure[part] = np.exp(np.minimum(logs[at, self.predicted[part]], 0))
                self.true_log[part] = np.minimum(logs[at, self.codes[part]], 0)
                self.true[part] = np.exp(self.true_log[part])

    def _scores(self, part, scores):
        scores = np.asarray(scores, float)
        if scores.ndim == 1:
            self.predicted[part] = scores > 0
            self.lead[part] = np.where(self.codes[part] == 1, scores, -scores)
            return
        at, codes = np.arange(len(scores)), self.codes[part]
        self.predicted[part] = scores.argmax(axis=1)
        own = scores[at, codes]
        if self.top is not None:
            self.top[part] = ((scores > own[:, None]).sum(axis=1) < 5) & (codes >= 0)
        scores[at, codes] = -np.inf
        self.lead[part] = own - scores.max(axis=1)

    def confusion(self, n_classes):
        """(n_classes, n_classes) rows of a class that were taken for another; None where there are too many."""
        if n_classes > 2000:
            return None
        known = self.codes >= 0
        pairs = np.bincount(self.codes[known] * n_classes + self.predicted[known], minlength=n_classes**2)
        return pairs.reshape(n_classes, n_classes)


def _reliable(sure, right):
    """(mean promise, share that was right, rows) of the bins that have rows."""
    bins = np.minimum((sure * BINS).astype(int), BINS - 1)
    n = np.bincount(bins, minlength=BINS)
    there = n > 0
    promise, kept = (np.bincount(bins, weights=what, minlength=BINS)[there] / n[there] for what in (sure, right))
    return promise, kept, n[there]


def _by_class(confusion, names):
    """A dict for every class, in the order of the labels."""
    if confusion is None:
        return []
    rows, said, hit = confusion.sum(axis=1), confusion.sum(axis=0), np.diag(confusion)
    wrong = confusion - np.diag(hit)
    told = []
    for c, name in enumerate(names):
        other = int(wrong[c].argmax()) if wrong[c].any() else None
        told.append({"label": name, "rows": int(rows[c]), "recall": float(hit[c] / rows[c]) if rows[c] else None,
                     "precision": float(hit[c] / said[c]) if said[c] else None,
                     "most often taken for": None if other is None else names[other]})
    return told


def as_json(told):
    return json.dumps(told, indent=2, allow_nan=False)


def lines(told):
    """(what, value) pairs of the whole, as texts."""
    q = told["margins"]["quantiles"]
    found = [("rows", f"{told['data']['rows']:,}"),
             ("accuracy", f"{_percent(told['accuracy'])} (the most frequent class alone: "
                          f"{_percent(told['most frequent class'])})")]
    if told["data"]["labels not known"]:
        found.append(("labels the model does not know", f"{told['data']['labels not known']:,} rows, counted as wrong"))
    if "among the best 5" in told:
        found.append(("right class among the best 5", _percent(told["among the best 5"])))
    if "log-loss" in told:
        found += [("calibration error", f"{told['calibration error']:.4f}"), ("log-loss", f"{told['log-loss']:.4f}")]
    margins = told["margins"]
    return [*found, ("margin, median", f"{margins['median']:.4g}"), ("margin, mean", f"{margins['mean']:.4g}"),
            ("margin, location estimate", f"{margins['location']:.4g}"),
            ("margin, 5 % to 95 %", f"{q['0.05']:.4g} to {q['0.95']:.4g}"),
            ("share of margins at most 0", _percent(margins["share at most 0"]))]


def class_lines(told):
    """Cells of the table of classes: those of the lowest recall where there are many."""
    rows = [one for one in told["classes"] if one["rows"]]
    if len(rows) > MOST_CLASSES:
        rows = sorted(rows, key=lambda one: one["recall"])[:MOST_CLASSES]
    return [[shown(one["label"]), f"{one['rows']:,}", _percent(one["recall"]),
             "-" if one["precision"] is None else _percent(one["precision"]),
             shown(one["most often taken for"] or "-")] for one in rows]


def shown(name):
    """A label on one line of a table: cut where it is long, without what a terminal would obey."""
    name = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name)
    return name if len(name) <= LONGEST else f"{name[:LONGEST - 3]}..."


CLASS_COLUMNS = ("class", "rows", "recall", "precision", "most often taken for")
ABOUT = ("Margin: the score of the right class minus the best score of the others; with two classes, the score of the "
         "right one. A row with a margin above 0 is classified correctly.")


def heading(told):
    model = told["model"]
    return (f"{model['class']} ({model['file']}; {model['classes']} classes, {model['features']:,} features) on "
            f"{told['data']['file']}")


def trained(told):
    """A sentence on how the model came about."""
    model = told["model"]
    scaled = {"no": "as they were", "StandardScaler": "columns scaled", "Normalizer": "rows scaled to length 1"}
    gap = f", certified to {model['largest duality gap']:.1e}" if "largest duality gap" in model else ""
    return (f"Trained by {model['method']} on {model['rows']:,} rows, {scaled[model['scaled']]}, in "
            f"{model['seconds']:.3g} s and {model['passes']:.3g} reads of them{gap}"
            f"{'; interrupted' if model['interrupted'] else ''}.")


def as_text(told):
    pairs, table = lines(told), [CLASS_COLUMNS, *class_lines(told)]
    width = max(len(what) for what, _ in pairs)
    widths = [max(len(row[k]) for row in table) for k in range(len(CLASS_COLUMNS))]
    listed = "\n".join("  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)).rstrip() for row in table)
    more = f"\nThe {MOST_CLASSES} classes of the lowest recall, of {len(told['classes'])}." \
        if len(told["classes"]) > MOST_CLASSES else ""
    head = "\n".join(f"{what:<{width}}  {value}" for what, value in pairs)
    return f"{heading(told)}\n{trained(told)}\n\n{head}\n\n{listed}{more}\n\n{textwrap.fill(ABOUT, 100)}"


def _percent(share):
    return f"{100 * share:.2f} %"
