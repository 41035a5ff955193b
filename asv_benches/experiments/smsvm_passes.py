"""Passes over the data against the width of the smoothed hinge."""

import numpy as np

from cmargin import SmSVMClassifier
from experiments._frame import Claim, Table, groups
from experiments._hinge import problem, standardised

TITLE = "Passes over the data against the smoothing width α"
SOURCE = "SmSVM, sections 3.5 and 5"
SETTING = """\
SmSVM-l2 on all rows, standardised, l2 = 1e-3, from w = 0 and α = 1. "Published": Algorithms 1 to 4, α reduced by β
= 0.1, 0.3, 0.5 or 0.7, down to 1e-6. "cmargin": the path that adapts its own pace, the line searched on the true
function, rows skipped and subsets grown, with the same l2. Both may stop where a dual value certifies a relative
gap of 1e-4. A pass is a read of all rows; the published line search pays one for every trial. A Newton step of the
published form may stay at its α."""
PAPER = """\
No table or figure. The text: in each regime of α "only one step of the standard Newton method is typically
sufficient to replace α with βα", so that the passes are O(log(α_0/α_min)); the algorithm needs "a modest number of
passes"; "how does the number of passes over the data change [if] we make β small? Is there a near optimal value of
β that is independent of the dataset?\""""
FULL, QUICK = ("australian", "colon", "tall", "wide", "covtype"), ("breast_cancer",)
L2, TOL, MAX_PASSES = 1e-3, 1e-4, 400
DECAYS = (0.1, 0.3, 0.5, 0.7)
ADAPTIVE = "cmargin"
EVEN = 2.0           # halves of the way that differ by no more count as equal


def cells(quick):
    return [{"data": name, "form": form, "decay": decay}
            for name in (QUICK if quick else FULL)
            for form, decay in [*(("published", decay) for decay in DECAYS), (ADAPTIVE, None)]]


def measure(data, form, decay):
    X, y = problem(data)
    X, = standardised(X)
    own = {} if form == ADAPTIVE else {"line_search": "quadratic", "smoothing_decay": decay, "subset_growth": None}
    model = SmSVMClassifier(l2=L2, tol=TOL, max_passes=MAX_PASSES, random_state=0, **own).fit(X, y)
    history = {name: np.asarray(model.history_[name]) for name in ("passes", "smoothing", "gap", "objective")}
    return [{"n_passes": model.n_passes_, "n_steps": int(model.n_iter_), "gap": float(model.duality_gap_[0]),
             "seconds": float(model.history_["seconds"][-1]), "n_widths": len(np.unique(history["smoothing"])),
             **{f"at_{name}": column for name, column in history.items()}}]


def label(row):
    return row["form"] if row["decay"] is None else f"published, β = {row['decay']:g}"


def tables(rows):
    body = []
    for r in rows:
        pace = None if r["form"] == ADAPTIVE else r["n_steps"] / r["n_widths"]       # its steps on subsets not counted
        body.append([r["data"], label(r), r["n_passes"], r["n_steps"], r["n_widths"], pace, r["at_smoothing"][-1],
                     r["gap"], r["seconds"]])
    return [Table(f"Until a certified gap of {TOL:g} or {MAX_PASSES} passes",
                  ("data", "form", "passes", "Newton steps", "widths α", "steps a width", "last α", "gap", "seconds"),
                  body)]


def _late(row):
    """Passes over the second half of the decades that α went through, relative to the first half."""
    decades, passes = -np.log10(row["at_smoothing"]), np.asarray(row["at_passes"], float)
    first = passes[decades <= decades[-1] / 2][-1]
    return (passes[-1] - first) / first


def claims(rows):
    published = [r for r in rows if r["form"] == "published"]
    pace = {name: max(r["n_steps"] / r["n_widths"] for r in group) for name, group in groups(published, "data").items()}
    late = {name: max(_late(r) for r in group) for name, group in groups(published, "data").items()}
    best = {name: min((r for r in group if r["gap"] <= TOL), key=lambda r: r["n_passes"], default=None)
            for name, group in groups(published, "data").items()}
    passes = {name: {r["decay"]: r["n_passes"] for r in group} for name, group in groups(published, "data").items()}
    words = {name: ", ".join(f"{r['n_passes']:.4g}{'' if r['gap'] <= TOL else '*'}" for r in group)
             for name, group in groups(published, "data").items()}
    adaptive = {r["data"]: r["n_passes"] for r in rows if r["form"] == ADAPTIVE}
    ahead = {name: min(passes[name].values()) / adaptive[name] for name in adaptive if name in passes}
    return [
        Claim("about one Newton step for each α.", all(value <= 2 for value in pace.values()),
              "Newton steps for each α, at the β that takes most: "
              + ", ".join(f"{value:.3g} on {name}" for name, value in pace.items())
              + " (up to 2 counts as about one)."),
        Claim("the number of passes is O(log(α_0/α_min)): each factor of α costs the same.",
              all(value <= EVEN for value in late.values()),
              "passes over the second half of the decades of α, over those of the first, at the β where it is most: "
              + ", ".join(f"{value:.3g} on {name}" for name, value in late.items())
              + f" (counted as the same up to {EVEN:g})."),
        Claim("asks how the number of passes changes with β.", "asked",
              "passes for β = " + ", ".join(f"{decay:g}" for decay in DECAYS) + ": "
              + "; ".join(f"{name} {text}" for name, text in words.items()) + " (*: without the certificate)."),
        Claim("asks whether one β is near the best on every data set.",
              "asked",
              "fewest passes with β = " + ", ".join(f"{r['decay']:g} on {name}" if r else f"none certified on {name}"
                                                    for name, r in best.items()) + "."),
        Claim("the algorithm needs a modest number of passes.",
              all(r["gap"] <= TOL and r["n_passes"] <= 100 for r in published),
              f"{min(r['n_passes'] for r in published):.4g} to {max(r['n_passes'] for r in published):.4g} passes, the "
              f"gap certified in {sum(r['gap'] <= TOL for r in published)} of {len(published)} cases (up to 100 passes "
              "count as modest); the adaptive path takes, against the fewest of them, "
              + ", ".join(f"{value:.3g} times less on {name}" for name, value in ahead.items()) + "."),
    ]


def draw(rows):
    from experiments._figures import curve, legend, panels

    figure, axes = panels(groups(rows, "data"))
    for name, group in groups(rows, "data").items():
        for order, row in enumerate(group):
            curve(axes[name], row["at_smoothing"], row["at_passes"], label(row), order, markersize=3)
        axes[name].set(xscale="log", xlabel="width α", ylabel="passes so far")
        axes[name].invert_xaxis()
    return legend(figure, axes)
