"""Test accuracy against m', the rows behind H."""

from experiments._frame import Claim, Table, groups
from experiments._many_classes import DATA, names, percent, rows_of, train

TITLE = "Accuracy against the rows behind the Hessian"
SOURCE = "SLND, Figure 4"
SETTING = DATA + """

SLND, logistic loss, 5 passes, otherwise default parameters; rank 100 with the tail dropped, automatic rank with the
tail scaled. m' = 0 in the table stands for all rows."""
PAPER = """\
Accuracy on Caltech256, SUN and ImageNet against m'; no numbers in the text."""
SAMPLES = (200, 500, 1000, 2000, 5000, None)
RANK, PASSES = 100, 5
REASONABLE = 1000    # the paper calls some m' reasonable without naming them; these and above count here
SMALL = 0.02         # a range of accuracy that counts as not very large


def cells(quick):
    samples, rank, passes = ((100, 300, None), 20, 2) if quick else (SAMPLES, RANK, PASSES)
    return [{"data": name, "tail": tail, "samples": m, "rank": rank if tail == "drop" else "auto", "passes": passes}
            for name in names(quick) for tail in ("drop", "scale") for m in samples]


def measure(data, tail, samples, rank, passes):
    n_rows = rows_of(data).X.shape[0]
    used = n_rows if samples is None else min(samples, n_rows)
    model, trace = train("SLND", data, tail=tail, rank=rank, hessian_samples=used, max_passes=passes)
    return [{"used": used, "rank_used": int(model.rank_), "seconds_hessian": model.history_["seconds_hessian"][-1],
             **{key: trace[-1][key] for key in ("seconds", "top1", "top5")}}]


def tables(rows):
    return [Table("Top-1 on the test rows in %, and seconds to make and invert H",
                  ("data", "tail", "rows m'", "rank", "top-1 %", "seconds of H"),
                  [[r["data"], r["tail"], r["used"], r["rank_used"], percent(r["top1"]), r["seconds_hessian"]]
                   for r in rows])]


def claims(rows):
    ranges = {}
    for (name, tail), group in groups(rows, "data", "tail").items():
        at = [r["top1"] for r in group if r["used"] >= min(REASONABLE, max(q["used"] for q in group))]
        ranges[name, tail] = max(at) - min(at)
    words = {tail: ", ".join(f"{name} {100 * value:.2f}" for (name, at), value in ranges.items() if at == tail)
             for tail in ("drop", "scale")}
    return [Claim("accuracy varies with m', but the range is not very large for reasonable m'.",
                  all(value <= SMALL for (_, tail), value in ranges.items() if tail == "drop"),
                  f"from m' = {REASONABLE} up the accuracy spans, in points, with the tail dropped {words['drop']}; "
                  f"with the tail scaled {words['scale']} (counted as not very large up to {100 * SMALL:g}).")]


def draw(rows):
    from experiments._figures import curve, legend, panels

    figure, axes = panels(groups(rows, "data"))
    for name, part in groups(rows, "data").items():
        for order, (tail, group) in enumerate(groups(part, "tail").items()):
            curve(axes[name], [r["used"] for r in group], [100 * r["top1"] for r in group],
                  "tail dropped (the paper)" if tail == "drop" else "tail scaled", order)
        axes[name].set(xscale="log", xlabel="rows m' behind H", ylabel="top-1 (%)")
    return legend(figure, axes)
