"""Accuracy of every class against the binary entropy of its posteriors."""

import numpy as np

from cmargin.margins import binary_entropy
from experiments._frame import Claim, Table, groups
from experiments._many_classes import AS_PUBLISHED, DATA, PUBLISHED_TEXT, names, rows_of, train

TITLE = "Accuracy of a class against its binary entropy"
SOURCE = "BSN, Figure 3"
SETTING = DATA + """

BSN, 10 passes, both losses: as published and with default parameters. The entropy of a class is the mean, over all
test rows, of the entropy of its raw posterior (BSN eq. 5), in bits; its accuracy is the share of its own test rows
that are predicted as it.

""" + PUBLISHED_TEXT
PAPER = """\
One point a class of ImageNet, entropies from 0.4 to 1 (so in bits), accuracies from 0 to 0.9; "accuracy is highly
correlated to binary entropy", no coefficient given."""
HIGH = 0.7           # |correlation| from which on it counts as high
LOSSES = ("logistic", "calibrated_hinge")
FORMS = {"as published": AS_PUBLISHED["BSN"], "default": {}}


def cells(quick):
    return [{"data": name, "form": form, "loss": loss, "passes": 3 if quick else 10}
            for name in names(quick) for form in FORMS for loss in LOSSES]


def measure(data, form, loss, passes):
    model, _ = train("BSN", data, loss=loss, max_passes=passes, **FORMS[form])
    split = rows_of(data)
    entropy = binary_entropy(model.posterior(split.X_test)) / np.log(2)
    right = model.predict(split.X_test) == split.y_test
    return [{"class": int(c), "entropy": entropy[k], "accuracy": float(right[split.y_test == c].mean()),
             "test_rows": int((split.y_test == c).sum())}
            for k, c in enumerate(model.classes_) if (split.y_test == c).any()]


def correlation(group):
    """(Pearson's, Spearman's) coefficient of entropy and accuracy over the classes."""
    from scipy.stats import rankdata

    pairs = np.array([(r["entropy"], r["accuracy"]) for r in group]).T
    if np.ptp(pairs, axis=1).min() == 0:
        return np.nan, np.nan
    return float(np.corrcoef(pairs)[0, 1]), float(np.corrcoef([rankdata(values) for values in pairs])[0, 1])


def tables(rows):
    body = []
    for (name, form, loss), group in groups(rows, "data", "form", "loss").items():
        entropies = [r["entropy"] for r in group]
        body.append([name, form, loss, len(group), min(entropies), max(entropies), *correlation(group)])
    return [Table("Coefficients of correlation over the classes",
                  ("data", "BSN", "loss", "classes", "least entropy", "largest", "Pearson", "Spearman"), body)]


def claims(rows):
    out = []
    for form in FORMS:
        found = {(name, loss): correlation(group)[0]
                 for (name, at, loss), group in groups(rows, "data", "form", "loss").items() if at == form}
        out.append(Claim("accuracy is highly correlated to binary entropy, which so tells hard classes from easy ones.",
                         all(value <= -HIGH for value in found.values()),
                         f"BSN {form}: " + ", ".join(f"{value:+.2f} on {name} ({loss.replace('_', ' ')})"
                                                     for (name, loss), value in found.items())
                         + f" (Pearson; counted as high from -{HIGH:g} down, low entropy going with high accuracy)."))
    return out


def draw(rows):
    from experiments._figures import curve, legend, panels

    figure, axes = panels([f"{name}, {form}" for name, form in groups(rows, "data", "form")], 2)
    for (name, form), part in groups(rows, "data", "form").items():
        ax = axes[f"{name}, {form}"]
        for order, (loss, group) in enumerate(groups(part, "loss").items()):
            curve(ax, [r["entropy"] for r in group], [r["accuracy"] for r in group], loss.replace("_", " "), order,
                  linestyle="none", alpha=0.7)
        ax.set(xlabel="binary entropy (bits)", ylabel="accuracy of the class", ylim=(-0.02, 1.02))
    return legend(figure, axes)
