"""Test accuracy against the rank of the inverse."""

from experiments._frame import Claim, Table, groups
from experiments._many_classes import DATA, names, percent, train

TITLE = "Accuracy against the rank of the inverse Hessian"
SOURCE = "SLND, Figure 3"
SETTING = DATA + """

SLND, logistic loss, 5 passes, otherwise default parameters; both tails: dropped, as in the paper, and scaled by the
next eigenvalue. The last also with the multinomial loss, at most 5 passes and as many over all rows again."""
PAPER = """\
Accuracy on Caltech256, SUN and ImageNet against the rank; no numbers in the text."""
RANKS = (1, 2, 5, 10, 20, 50, 100, 200, 400)
FORMS = {"drop": "tail dropped", "scale": "tail scaled", "multinomial": "multinomial"}
PASSES = 5
NEAR = 0.01          # ranks whose accuracy is so near the best make the plateau
LARGE = 4            # a plateau is large if its ranks span such a factor


def cells(quick):
    ranks, passes = ((1, 5, 20, 60), 2) if quick else (RANKS, PASSES)
    return [{"data": name, "tail": tail, "rank": rank, "passes": passes}
            for name in names(quick) for tail in FORMS for rank in ranks]


def measure(data, tail, rank, passes):
    own = {"tail": "scale", "loss": "multinomial"} if tail == "multinomial" else {"tail": tail}
    _, trace = train("SLND", data, rank=rank, max_passes=passes, **own)
    return [{key: trace[-1][key] for key in ("seconds", "top1", "top5")}]


def plateau(group):
    """(lowest, highest rank of the plateau around the best rank, best row)."""
    group = sorted(group, key=lambda r: r["rank"])
    best = max(range(len(group)), key=lambda i: group[i]["top1"])
    lo = hi = best
    near = [r["top1"] >= group[best]["top1"] - NEAR for r in group]
    while lo and near[lo - 1]:
        lo -= 1
    while hi + 1 < len(group) and near[hi + 1]:
        hi += 1
    return group[lo]["rank"], group[hi]["rank"], group[best]


def tables(rows):
    ranks = sorted({r["rank"] for r in rows})
    out = []
    for tail, part in groups(rows, "tail").items():
        body = [[name] + [next((percent(r["top1"]) for r in group if r["rank"] == k), None) for k in ranks]
                for name, group in groups(part, "data").items()]
        out.append(Table(f"Top-1 on the test rows in %, {FORMS[tail]}, by rank",
                         ("data", *map(str, ranks)), body))
    best = [[name, *(cell for tail in FORMS for cell in _best(groups(part, "tail")[tail]))]
            for name, part in groups(rows, "data").items()]
    return [*out, Table("The best rank of each form; the last two are not in the paper",
                        ("data", "dropped: rank", "top-1 %", "scaled: rank", "top-1 %", "multinomial: rank",
                         "top-1 %"), best)]


def _best(group):
    _, _, row = plateau(group)
    return row["rank"], percent(row["top1"])


def claims(rows):
    found = {key: plateau(group) for key, group in groups(rows, "data", "tail").items()}

    def words(tail):
        return "; ".join(f"{name} {lo} to {hi} (best {percent(best['top1'])} % at {best['rank']})"
                         for (name, at), (lo, hi, best) in found.items() if at == tail)

    dropped = [value for (_, tail), value in found.items() if tail == "drop"]
    lowest, highest = max(lo for lo, _, _ in dropped), min(hi for _, hi, _ in dropped)
    return [
        Claim("accuracy has its maximum in a plateau of many ranks.",
              all(hi >= LARGE * lo for lo, hi, _ in dropped),
              f"ranks within {100 * NEAR:g} point of the best, tail dropped: {words('drop')}; scaled: "
              f"{words('scale')}; multinomial: {words('multinomial')} (counted as many where they span a factor "
              f"of {LARGE})."),
        Claim("the plateau is similar regardless of the domain.", None if len(dropped) < 2 else lowest <= highest,
              "one data set only." if len(dropped) < 2 else f"the plateaus with a dropped tail share the ranks "
              f"{lowest} to {highest}." if lowest <= highest else "the plateaus with a dropped tail share no rank."),
    ]


def draw(rows):
    from experiments._figures import curve, legend, panels

    figure, axes = panels(groups(rows, "data"))
    for name, part in groups(rows, "data").items():
        for order, (tail, group) in enumerate(groups(part, "tail").items()):
            curve(axes[name], [r["rank"] for r in group], [100 * r["top1"] for r in group],
                  FORMS[tail] + " (the paper)" * (tail == "drop"), order)
        axes[name].set(xscale="log", xlabel="rank", ylabel="top-1 (%)")
    return legend(figure, axes)
