"""Margin-error curves of BSN and SGD."""

import numpy as np

from cmargin._estimators.predict import raw_scores
from cmargin.margins import margin, margin_error
from experiments._frame import Claim, Table, groups
from experiments._many_classes import AS_PUBLISHED, DATA, PUBLISHED_TEXT, make, names, rows_of, stochastic

TITLE = "Margin error"
SOURCE = "BSN, Figure 4"
SETTING = DATA + """

Share of test rows whose margin, the posterior of the predicted class if it is right and one minus it if not (BSN
eq. 6), is at most θ (BSN eq. 7). Logistic loss, raw posteriors. BSN and SGD as published and with default
parameters, after few and many passes. At θ = 1/2 lie the wrong rows that some class claims and the right ones that
none does; wrong rows that no class claims lie above, many where negatives abound, so that the value there is one
minus the accuracy only if every row is claimed.

""" + PUBLISHED_TEXT
PAPER = """\
Curves only; BSN "clearly beats SGD" both in accuracy, the value at θ = 1/2, and in having fewer rows of very low
margin, "even when increasing the number of passes dampens slightly this advantage"."""
THETA = np.linspace(0, 1, 101)
LOW = 0.1            # θ that counts as a very low margin
FORMS = ("as published", "default")
SECONDS = 60


def cells(quick):
    ours, theirs = ((2, 4), (2, 4)) if quick else ((2, 20), (10, 100))
    out = []
    for name in names(quick):
        out += [{"data": name, "method": "BSN", "form": form, "passes": n} for form in FORMS for n in ours]
        if "SGD" in stochastic():
            out += [{"data": name, "method": "SGD", "form": form, "passes": n} for form in FORMS for n in theirs]
    return out


def measure(data, method, form, passes):
    own = AS_PUBLISHED[method] if form == "as published" else {}
    split = rows_of(data)
    model = make(method, max_passes=passes, max_time=SECONDS, **own).fit(split.X, split.y)
    codes = np.searchsorted(model.classes_, split.y_test)
    margins = margin(raw_scores(model, split.X_test), codes, loss="logistic")
    at = {f"error_{theta:g}": float(margin_error(margins, theta)) for theta in (LOW, 0.5, 0.9)}
    return [{"top1": float(model.score(split.X_test, split.y_test)), **at, "curve": margin_error(margins, THETA)}]


def label(row):
    return f"{row['method']}, {row['form']}, {row['passes']} passes"


def tables(rows):
    return [Table("Margin error in % at three θ, and one minus the top-1 accuracy of the prior-corrected predictions",
                  ("data", "method", f"θ = {LOW}", "θ = 0.5", "θ = 0.9", "wrong"),
                  [[r["data"], label(r), *(f"{100 * r[f'error_{theta:g}']:.2f}" for theta in (LOW, 0.5, 0.9)),
                    f"{100 * (1 - r['top1']):.2f}"] for r in rows])]


def claims(rows):
    by = {name: {(r["method"], r["form"], r["passes"]): r for r in group}
          for name, group in groups(rows, "data").items()}
    if not any(r["method"] == "SGD" for r in rows):
        return [Claim("BSN beats SGD in margin error at θ = 1/2 and at low θ.", None, "SGD is not in this version.")]
    out = []
    for key, words in (("error_0.5", "in accuracy (margin error at θ = 1/2)"),
                       (f"error_{LOW:g}", f"in rows of very low margin (θ = {LOW})")):
        gains = {name: [_best(found, "SGD", i, key) - _best(found, "BSN", i, key) for i in (0, -1)]
                 for name, found in by.items()}
        out.append(Claim(f"BSN clearly beats SGD {words}.",
                         all(min(pair) > 0 for pair in gains.values()),
                         "as published, BSN is lower than SGD, after few and after many passes of each, by "
                         + ", ".join(f"{100 * a:+.2f} and {100 * b:+.2f} points on {name}"
                                     for name, (a, b) in gains.items()) + "."))
    return out


def _best(found, method, which, key):
    """Margin error of the published form after the fewest (0) or the most (-1) passes."""
    passes = sorted(n for at, form, n in found if at == method and form == "as published")
    return found[method, "as published", passes[which]][key]


def draw(rows):
    from experiments._figures import curve, legend, panels

    figure, axes = panels(groups(rows, "data"))
    for name, group in groups(rows, "data").items():
        for order, row in enumerate(group):
            curve(axes[name], THETA, row["curve"], label(row), order, marker="")
        axes[name].axvline(0.5, color="0.6", linewidth=1)
        axes[name].set(xlabel="margin θ (posterior)", ylabel="margin error", xlim=(0, 1), ylim=(0, 1.02))
    return legend(figure, axes)
