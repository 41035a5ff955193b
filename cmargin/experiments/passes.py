"""Test accuracy after every pass: SLND and BSN beside SGD, SGD-P and SGD-QN."""

from cmargin.experiments._frame import Claim, Table, groups
from cmargin.experiments._many_classes import (
    DATA,
    first_at,
    names,
    percent,
    stochastic,
    train,
)

TITLE = "Accuracy against passes"
SOURCE = "SLND, Figures 5 to 7; BSN, Figure 2"
SETTING = DATA + """

SLND and BSN with both losses and both tails, 20 passes, default parameters otherwise (9 negatives per positive,
automatic rank and step). Until H is estimated anew, which the default never does, SLND and BSN take the same steps;
both are shown. SGD, SGD-P (whitening first) and SGD-QN (the corrected one) where this version has them, logistic
loss, the same number of negatives, 50 passes. Seconds are those of training, without scoring the test rows. One
seed."""
PAPER = """\
SLND: curves only; SLND is "a magnitude faster" than SGD, and 10 passes over ImageNet take 1 CPU hour where SGD
takes 20. BSN: top-1 36.23 % and top-5 59.06 % after 10 or 20 passes, above the best of SGD by 4 and 3.5 points and
of SGD-QN by 3.3 and 2.4."""
OURS, THEIRS, SECONDS = 20, 50, 90
NEAR = 0.003         # a curve counts as arrived this far below its best
LOSSES, TAILS = ("logistic", "calibrated_hinge"), ("drop", "scale")


def cells(quick):
    ours, theirs = (3, 5) if quick else (OURS, THEIRS)
    out = []
    for name in names(quick):
        out += [{"data": name, "method": method, "loss": loss, "tail": tail, "passes": ours}
                for method in ("SLND", "BSN") for loss in LOSSES for tail in TAILS]
        out += [{"data": name, "method": method, "loss": "logistic", "tail": None, "passes": theirs}
                for method in stochastic()]
    return out


def measure(data, method, loss, tail, passes):
    own = {} if tail is None else {"tail": tail}
    _, trace = train(method, data, loss=loss, max_passes=passes, max_time=SECONDS, **own)
    return [{key: [row[key] for row in trace] for key in ("pass", "seconds", "top1", "top5")}]


def label(row):
    words = {"drop": ", tail dropped", "scale": ", tail scaled", None: ""}[row["tail"]]
    return f"{row['method']}, {row['loss'].replace('_', ' ')}{words}"


def tables(rows):
    body = []
    for row in rows:
        best = max(range(len(row["top1"])), key=row["top1"].__getitem__)
        body.append([row["data"], label(row), len(row["pass"]), percent(row["top1"][0]), percent(row["top1"][best]),
                     row["pass"][best], percent(row["top1"][-1]), percent(row["top5"][-1]), row["seconds"][-1]])
    return [Table("Test accuracy in %, after the first pass, at its best, and at the end",
                  ("data", "method", "passes", "first", "best", "best at pass", "last", "top-5 last", "seconds"), body)]


def claims(rows):
    by = {name: {(r["method"], r["loss"], r["tail"]): r for r in group}
          for name, group in groups(rows, "data").items()}
    sgd = {name: found.get(("SGD", "logistic", None)) for name, found in by.items()}
    out = [_faster(by, sgd, tail) for tail in TAILS] + [_better(by, sgd, tail) for tail in TAILS]
    apart = {name: abs(max(found["SLND", "logistic", "drop"]["top1"])
                       - max(found["SLND", "calibrated_hinge", "drop"]["top1"])) for name, found in by.items()}
    out.append(Claim("logistic and calibrated hinge loss give very similar accuracy.",
                     all(value <= 0.01 for value in apart.values()),
                     "the best accuracies differ, in points, by "
                     + ", ".join(f"{100 * value:.2f} on {name}" for name, value in apart.items())
                     + " (tail dropped; up to 1 counts as very similar)."))
    pairs = {name: (max(sgd[name]["top1"]), max(found["SGD-QN", "logistic", None]["top1"]))
             for name, found in by.items() if sgd[name] and ("SGD-QN", "logistic", None) in found}
    out.append(Claim("SGD-QN is very close to SGD in accuracy.",
                     all(abs(a - b) <= 0.01 for a, b in pairs.values()) if pairs else None,
                     ", ".join(f"{name} {percent(b)} against {percent(a)} %" for name, (a, b) in pairs.items())
                     + " (up to 1 point counts as very close)." if pairs else "one of the two is not in this version."))
    return out


TAIL_WORDS = {"drop": "tail dropped, as in the paper", "scale": "tail scaled, not the paper's"}


def _faster(by, sgd, tail):
    ratios = {}
    for name, found in by.items():
        if sgd[name]:
            ours, theirs = found["SLND", "logistic", tail], sgd[name]
            level = max(theirs["top1"]) - NEAR
            ratios[name] = first_at(theirs, "pass", level) / first_at(ours, "pass", level)
    words = ", ".join(f"{value:.1f} on {name}" if value else f"SLND never there on {name}"
                      for name, value in ratios.items())
    return Claim("SLND converges an order of magnitude faster than SGD.",
                 all(value >= 10 for value in ratios.values()) if ratios else None,
                 f"passes of SGD over those of SLND, to the best top-1 of SGD less {100 * NEAR:g} points, "
                 f"{TAIL_WORDS[tail]}: {words}."
                 if ratios else "SGD is not in this version.")


def _better(by, sgd, tail):
    gains = {name: max(found["SLND", "logistic", tail]["top1"]) - max(sgd[name]["top1"])
             for name, found in by.items() if sgd[name]}
    return Claim("SLND improves the accuracy of SGD significantly (BSN: by 4 points).",
                 all(gain >= 0.01 for gain in gains.values()) if gains else None,
                 f"its best is above that of SGD, {TAIL_WORDS[tail]}, by "
                 + ", ".join(f"{100 * gain:.2f} points on {name}" for name, gain in gains.items())
                 + " (from 1 point up it counts as significant)." if gains else "SGD is not in this version.")


def draw(rows):
    from cmargin.experiments._figures import curve, legend, panels

    shown = [r for r in rows if r["method"] != "BSN"]       # the same curves as SLND's
    figure, axes = panels([f"{name}: {words}" for name in groups(shown, "data") for words in ("top-1", "top-5")], 2)
    for name, group in groups(shown, "data").items():
        for order, row in enumerate(group):
            for key, words in (("top1", "top-1"), ("top5", "top-5")):
                ax = axes[f"{name}: {words}"]
                curve(ax, row["pass"], [100 * value for value in row[key]], label(row), order, markersize=3)
                ax.set(xscale="log", xlabel="passes", ylabel=f"{words} (%)")
    return legend(figure, axes)
