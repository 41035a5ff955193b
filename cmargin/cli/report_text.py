"""The report as JSON and as text; also the texts that its HTML page shares."""

import json
import textwrap

LONGEST = 40                   # characters of a label in a table
MOST_CLASSES = 30              # lines of the table of classes
MOST_LINES = 10                # classes whose confusion matrix the text has
CLASS_COLUMNS = ("class", "rows", "recall", "precision", "F1", "AUC", "most often taken for")
LABEL_COLUMNS = ("label", "rows", "recall", "precision")
TARGET_COLUMNS = ("R2", "mean absolute error", "root mean square error")
QUANTILE_COLUMNS = ("pinball loss", "share of it explained", "targets at or below", "mean absolute error")
AT_K = {"precision": "P", "ndcg": "nDCG", "propensity-scored precision": "PSP", "propensity-scored ndcg": "PSnDCG"}
ABOUT_LABELS = ("P@k: share of the k best labels that the row has. nDCG@k: the same, early places counting more, over "
                "what the best ranking has. PSP and PSnDCG: rare labels count more, as such are forgotten more often "
                "(Jain et al. 2016). A label is predicted where its score is above 0.")
ABOUT_TARGETS = "Residual: target minus prediction. R2: share of the variance that is explained; the mean alone has 0."
ABOUT_QUANTILES = ("Pinball loss of the q-th quantile: the mean of q r for residuals r above 0, of (q - 1) r below. "
                   "What is explained of it is relative to the best constant. About a share q of the targets should be "
                   "at or below the predictions.")
ABOUT = ("Margin: the score of the right class minus the best score of the others; with two classes, the score of the "
         "right one. A row with a margin above 0 is classified correctly. F1: 2 x recall x precision / (recall + "
         "precision). AUC: area under the ROC curve of a class against all others.")


def as_json(facts):
    return json.dumps(facts, indent=2, allow_nan=False)


def as_text(facts):
    pairs = summary(facts)
    width = max(len(what) for what, _ in pairs)
    listed = _in_columns([columns(facts), *class_rows(facts)]) + _confusion_matrix(facts)
    several, n = kind_of(facts), len(_listed(facts))
    more = f"\nThe {MOST_CLASSES} {several} of the lowest recall, of {n}." if n > MOST_CLASSES else ""
    head = "\n".join(f"{what:<{width}}  {value}" for what, value in pairs)
    return f"{heading(facts)}\n{training(facts)}\n\n{head}\n\n{listed}{more}\n\n{textwrap.fill(about(facts), 100)}"


def kind_of(facts):
    """Return what is listed: "classes", "labels" where a row may have several, "targets" of a regression."""
    return next(kind for kind in ("labels", "targets", "classes") if kind in facts)


def _in_columns(table):
    """Lines of the rows of cells."""
    widths = [max(len(row[k]) for row in table) for k in range(len(table[0]))]
    return "\n".join("  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)).rstrip() for row in table)


def _confusion_matrix(facts):
    """Its lines with a heading, of few classes; nothing of more."""
    counts = facts.get("confusion matrix", ())
    if not 0 < len(counts) <= MOST_LINES:
        return ""
    names = [shown(one["label"]) for one in facts["classes"]]
    lines = [[name, *map("{:,}".format, row)] for name, row in zip(names, counts, strict=True)]
    return f"\n\nConfusion matrix (lines: right class, columns: predicted)\n{_in_columns([['', *names], *lines])}"


def columns(facts):
    """Return the heads of the table of what is listed."""
    if kind_of(facts) == "targets":
        called = next(iter(facts["targets"][0]))         # target or quantile
        return called, *(QUANTILE_COLUMNS if _are_quantiles(facts) else TARGET_COLUMNS)
    return LABEL_COLUMNS if "labels" in facts else CLASS_COLUMNS


def about(facts):
    """Return what the numbers mean."""
    if kind_of(facts) == "targets":
        return ABOUT_QUANTILES if _are_quantiles(facts) else ABOUT_TARGETS
    return ABOUT_LABELS if "labels" in facts else ABOUT


def _are_quantiles(facts):
    return "pinball loss" in facts["targets"][0]


def _listed(facts):
    return facts[kind_of(facts)]


def heading(facts):
    """Return a line that names the model and the data."""
    model = facts["model"]
    counted = model["predicts"] if "targets" in facts else f"{model['classes']} {kind_of(facts)}"
    return (f"{model['class']} ({model['file']}; {counted}, {model['features']:,} features) on "
            f"{facts['data']['file']}")


def training(facts):
    """Return a sentence on how the model was trained."""
    model = facts["model"]
    scaled = {"no": "as they were", "StandardScaler": "columns scaled", "Normalizer": "rows scaled to length 1"}
    gap = f", certified to {model['largest duality gap']:.1e}" if "largest duality gap" in model else ""
    return (f"Trained by {model['method']} on {model['rows']:,} rows, {scaled[model['scaled']]}, in "
            f"{model['seconds']:.3g} s and {model['passes']:.3g} reads of them{gap}"
            f"{'; interrupted' if model['interrupted'] else ''}.")


def summary(facts):
    """Return (what, value) pairs of texts: the numbers that concern all classes."""
    if "labels" in facts:
        return _of_labels(facts)
    if "targets" in facts:
        q = facts["residuals"]["quantiles"]
        return [("rows", f"{facts['data']['rows']:,}"), ("residual, median", f"{q['0.5']:.4g}"),
                ("residual, 5 % to 95 %", f"{q['0.05']:.4g} to {q['0.95']:.4g}")]
    data, margins = facts["data"], facts["margins"]
    q = margins["quantiles"]
    found = [("rows", f"{data['rows']:,}"),
             ("accuracy", f"{_percent(facts['accuracy'])} (the most frequent class alone: "
                          f"{_percent(facts['most frequent class'])})")]
    if data["labels not known"]:
        found.append(("labels the model does not know", f"{data['labels not known']:,} rows, counted as wrong"))
    if "among the best 5" in facts:
        found.append(("right class among the best 5", _percent(facts["among the best 5"])))
    found += [(f"{what}, mean of the classes", form(facts[f"mean {what}"]))
              for what, form in (("F1", _percent), ("AUC", "{:.4f}".format)) if f"mean {what}" in facts]
    if "log-loss" in facts:
        found += [("calibration error", f"{facts['calibration error']:.4f}"), ("log-loss", f"{facts['log-loss']:.4f}")]
    return [*found, ("margin, median", f"{margins['median']:.4g}"), ("margin, mean", f"{margins['mean']:.4g}"),
            ("margin, location estimate", f"{margins['location']:.4g}"),
            ("margin, 5 % to 95 %", f"{q['0.05']:.4g} to {q['0.95']:.4g}"),
            ("share of margins at most 0", _percent(margins["share at most 0"]))]


def _of_labels(facts):
    data = facts["data"]
    found = [("rows", f"{data['rows']:,}"), ("labels a row", f"{data['labels a row']:.3g}")]
    if data["labels not known"]:
        found.append(("labels the model does not know", f"{data['labels not known']:,}, counted as missed"))
    found += [(f"{AT_K[name]}@{k}", _percent(value)) for name in AT_K for k, value in facts.get(name, {}).items()]
    return [*found, *((f"F1{name[2:]}", _percent(facts[name])) for name in facts if name.startswith("f1,"))]


def class_rows(facts):
    """Return the cells of the table of classes or targets; of many classes, those with the lowest recall."""
    if kind_of(facts) == "targets":
        return [[_target_cell(name, one[name]) for name in columns(facts)] for one in facts["targets"]]
    rows = [one for one in _listed(facts) if one["rows"]]
    if len(rows) > MOST_CLASSES:
        rows = sorted(rows, key=lambda one: one["recall"])[:MOST_CLASSES]
    return [[shown(one["label"]), f"{one['rows']:,}", _percent(one["recall"]),
             "-" if one["precision"] is None else _percent(one["precision"]),
             *([] if "labels" in facts else _of_one_label(one))] for one in rows]


def _of_one_label(one):
    return ["-" if one["F1"] is None else _percent(one["F1"]), "-" if one["AUC"] is None else f"{one['AUC']:.4f}",
            shown(one["most often taken for"] or "-")]


def _target_cell(name, value):
    if value is None or isinstance(value, str):
        return value or "-"
    return _percent(value) if name in ("targets at or below", "share of it explained") else f"{value:.4g}"


def shown(name):
    """Return a label for one line of a table: cut where it is long, without control characters."""
    name = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name)
    return name if len(name) <= LONGEST else f"{name[:LONGEST - 3]}..."


def _percent(share):
    return f"{100 * share:.2f} %"
