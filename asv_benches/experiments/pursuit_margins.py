"""Errors and margin distributions along the passes: Algorithm 1 and Pegasos."""

import numpy as np

from experiments._frame import Claim, Table, groups
from experiments._trials import FULL, L2S, PASSES, QUICK, SETS_TEXT, SOURCES, TRIALS, best, judged, run_trials

TITLE = "Margin distributions of Algorithm 1 and Pegasos"
SOURCE = "Margin pursuit, Figures 3 and 4"
SETTING = SETS_TEXT + """

Algorithm 1 with γ = s = 1. For every set and method the λ of the lowest mean test error met after any pass is
shown, as in the paper: a choice by the test rows. Margins are those of the training rows at the current weights;
the test error is that of the weights of the least objective so far, which is what the estimator returns."""
PAPER = """\
Curves only. Algorithm 1 is "highly competitive with the best setting of Pegasos"; its margins have "a much more
symmetrical distribution, with smaller variance", and their location goes "up in a monotonic fashion", where that of
Pegasos "peaks early and slowly settles down"."""
METHODS = ("Algorithm 1", "Pegasos")
COMPETITIVE = 0.01


def cells(quick):
    sets, l2s, trials, passes = (QUICK, (1e-1, 1e-3), 3, 6) if quick else (FULL, L2S, TRIALS, PASSES)
    return [{"set": name, "data": SOURCES[name].data, "method": method, "l2": l2, "trials": trials, "passes": passes}
            for name in sets for method in METHODS for l2 in l2s]


def measure(set, data, method, l2, trials, passes):
    return [run_trials(set, method, l2, 1.0, trials, passes)]


def chosen(rows):
    """{set: {method: row of the best λ}}."""
    return {name: {method: best(of) for method, of in groups(part, "method").items()}
            for name, part in groups(rows, "set").items()}


def tables(rows):
    body = []
    for name, methods in chosen(rows).items():
        for method, r in methods.items():
            body.append([name, method, f"{r['l2']:.0e}", f"{100 * min(r['test_error']):.2f}",
                         f"{100 * r['test_error'][-1]:.2f}", f"{100 * r['last_test_error_deviation']:.2f}",
                         f"{100 * r['share_negative'][-1]:.2f}", r["location"][-1], r["variance"][-1],
                         _relative(r), r["skewness"][-1]])
    errors = [[name, method, *(f"{100 * min(r['test_error']):.2f}" for r in of)]
              for (name, method), of in groups(rows, "set", "method").items()]
    return [Table("The best λ: errors in %, and the margins of the training rows after the last pass",
                  ("set", "method", "λ", "least test error", "last", "its deviation over trials", "last train error",
                   "location γ̂", "variance", "variance / mean²", "skewness"), body),
            Table("Least mean test error in % for every λ",
                  ("set", "method", *(f"{l2:.0e}" for l2 in dict.fromkeys(r["l2"] for r in rows))), errors)]


def _relative(row):
    return row["variance"][-1] / row["mean"][-1] ** 2


def claims(rows):
    pairs = {name: (methods["Algorithm 1"], methods["Pegasos"]) for name, methods in chosen(rows).items()}
    loss = {name: min(a["test_error"]) - min(p["test_error"]) for name, (a, p) in pairs.items()}
    skew = {name: (abs(a["skewness"][-1]), abs(p["skewness"][-1])) for name, (a, p) in pairs.items()}
    wide = {name: (a["variance"][-1], p["variance"][-1], _relative(a), _relative(p)) for name, (a, p) in pairs.items()}
    rises = {name: float(np.mean(np.diff(a["location"]) > 0)) for name, (a, _) in pairs.items()}
    peaks = {name: (int(np.argmax(p["location"])) + 1, len(p["location"])) for name, (_, p) in pairs.items()}
    return [
        Claim("Algorithm 1 is highly competitive with the best setting of Pegasos.",
              all(value <= COMPETITIVE for value in judged(loss)),
              "its least test error is above that of Pegasos by "
              + ", ".join(f"{100 * value:+.2f} points on {name}" for name, value in loss.items())
              + f" (up to {100 * COMPETITIVE:g} counts as competitive)."),
        Claim("its margins are distributed much more symmetrically.", all(a < p for a, p in judged(skew)),
              "absolute skewness after the last pass, Algorithm 1 and Pegasos: "
              + ", ".join(f"{a:.2f} and {p:.2f} on {name}" for name, (a, p) in skew.items()) + "."),
        Claim("their variance is smaller.", all(a < p for a, p, _, _ in judged(wide)),
              "variance: " + ", ".join(f"{a:.3g} and {p:.3g} on {name}" for name, (a, p, _, _) in wide.items())
              + "; relative to the squared mean, which a mere scaling of w leaves alone: "
              + ", ".join(f"{a:.3g} and {p:.3g} on {name}" for name, (_, _, a, p) in wide.items()) + "."),
        Claim("the location of the margins goes up monotonically.", all(share >= 0.9 for share in judged(rises)),
              "share of the passes in which it rises: "
              + ", ".join(f"{100 * share:.0f} % on {name}" for name, share in rises.items())
              + " (counted as monotonic from 90 %)."),
        Claim("with Pegasos it peaks early and slowly settles down.",
              all(at <= of / 3 for at, of in judged(peaks)),
              "its peak comes after pass " + ", ".join(f"{at} of {of} on {name}" for name, (at, of) in peaks.items())
              + " (the first third counts as early)."),
    ]


def draw(rows):
    from experiments._figures import curve, legend, panels

    found = chosen(rows)
    kinds = (("errors", "share of rows"), ("location and quartiles", "margin"), ("variance", "margin²"),
             ("skewness", "skewness"))
    figure, axes = panels([f"{name}: {kind}" for name in found for kind, _ in kinds], 4, 3.4, 2.6)
    for name, methods in found.items():
        for order, (method, r) in enumerate(methods.items()):
            x, label = r["gradients"], method
            ax = [axes[f"{name}: {kind}"] for kind, _ in kinds]
            line = curve(ax[0], x, r["test_error"], f"{label}, test", order, marker="")
            curve(ax[0], x, r["share_negative"], f"{label}, training", order, marker="", linewidth=0.8, alpha=0.6)
            curve(ax[1], x, r["location"], label, order, marker="")
            ax[1].fill_between(x, r["q25"], r["q75"], color=line.get_color(), alpha=0.2, linewidth=0)
            curve(ax[2], x, r["variance"], label, order, marker="")
            curve(ax[3], x, r["skewness"], label, order, marker="")
        for (_, words), panel in zip(kinds, ax, strict=True):
            panel.set(xlabel="gradients", ylabel=words)
        ax[2].set_yscale("log")
    return legend(figure, axes)
