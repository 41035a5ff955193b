"""The report as JSON and as text; also the texts that its HTML page shares."""

import json
import textwrap

LONGEST = 40                   # characters of a label in a table
MOST_CLASSES = 30              # lines of the table of classes
CLASS_COLUMNS = ("class", "rows", "recall", "precision", "most often taken for")
LABEL_COLUMNS = ("label", "rows", "recall", "precision")
AT_K = {"precision": "P", "ndcg": "nDCG", "propensity-scored precision": "PSP", "propensity-scored ndcg": "PSnDCG"}
ABOUT_LABELS = ("P@k: share of the k best labels that the row has. nDCG@k: the same, early places counting more, over "
                "what the best ranking has. PSP and PSnDCG: rare labels count more, as such are forgotten more often "
                "(Jain et al. 2016). A label is predicted where its score is above 0.")
ABOUT = ("Margin: the score of the right class minus the best score of the others; with two classes, the score of the "
         "right one. A row with a margin above 0 is classified correctly.")


def as_json(facts):
    return json.dumps(facts, indent=2, allow_nan=False)


def as_text(facts):
    pairs, table = summary(facts), [columns(facts), *class_rows(facts)]
    width = max(len(what) for what, _ in pairs)
    widths = [max(len(row[k]) for row in table) for k in range(len(table[0]))]
    listed = "\n".join("  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)).rstrip() for row in table)
    several, n = "labels" if "labels" in facts else "classes", len(_listed(facts))
    more = f"\nThe {MOST_CLASSES} {several} of the lowest recall, of {n}." if n > MOST_CLASSES else ""
    head = "\n".join(f"{what:<{width}}  {value}" for what, value in pairs)
    return f"{heading(facts)}\n{training(facts)}\n\n{head}\n\n{listed}{more}\n\n{textwrap.fill(about(facts), 100)}"


def columns(facts):
    """Return the heads of the table of classes, or of labels where a row may have several."""
    return LABEL_COLUMNS if "labels" in facts else CLASS_COLUMNS


def about(facts):
    """Return what the numbers mean."""
    return ABOUT_LABELS if "labels" in facts else ABOUT


def _listed(facts):
    return facts["labels"] if "labels" in facts else facts["classes"]


def heading(facts):
    """Return a line that names the model and the data."""
    model = facts["model"]
    several = "labels" if "labels" in facts else "classes"
    return (f"{model['class']} ({model['file']}; {model['classes']} {several}, {model['features']:,} features) on "
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
    data, margins = facts["data"], facts["margins"]
    q = margins["quantiles"]
    found = [("rows", f"{data['rows']:,}"),
             ("accuracy", f"{_percent(facts['accuracy'])} (the most frequent class alone: "
                          f"{_percent(facts['most frequent class'])})")]
    if data["labels not known"]:
        found.append(("labels the model does not know", f"{data['labels not known']:,} rows, counted as wrong"))
    if "among the best 5" in facts:
        found.append(("right class among the best 5", _percent(facts["among the best 5"])))
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
    """Return the cells of the table of classes; of many classes, those with the lowest recall."""
    rows = [one for one in _listed(facts) if one["rows"]]
    if len(rows) > MOST_CLASSES:
        rows = sorted(rows, key=lambda one: one["recall"])[:MOST_CLASSES]
    return [[shown(one["label"]), f"{one['rows']:,}", _percent(one["recall"]),
             "-" if one["precision"] is None else _percent(one["precision"]),
             *([] if "labels" in facts else [shown(one["most often taken for"] or "-")])] for one in rows]


def shown(name):
    """Return a label for one line of a table: cut where it is long, without control characters."""
    name = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name)
    return name if len(name) <= LONGEST else f"{name[:LONGEST - 3]}..."


def _percent(share):
    return f"{100 * share:.2f} %"
