"""The report as one HTML page that holds its plots, drawn by matplotlib where it is installed."""

import io
from html import escape

import numpy as np

from cmargin.cli.report_text import (
    MOST_CLASSES,
    about,
    class_rows,
    columns,
    heading,
    kind_of,
    summary,
    training,
)

MOST_POINTS = 5000             # of a plot of predictions beside targets

STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; margin-bottom: .2rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
p.about, figcaption, footer { color: #555; font-size: .9rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .2rem 1.2rem .2rem 0; border-bottom: 1px solid #ddd; white-space: nowrap; }
table.facts td { white-space: normal; }
table.numbers td:nth-child(n+2):nth-child(-n+6), table.numbers th:nth-child(n+2):nth-child(-n+6) { text-align: right; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(26rem, 100%), 1fr)); gap: 1rem; }
figure { margin: 0; } svg { width: 100%; height: auto; }
"""


def as_html(facts, curves):
    """Return a self-contained page: it has no script and refers to no other file or address."""
    figures = "".join(f"<figure>{svg}<figcaption>{escape(words)}</figcaption></figure>" for svg, words in plots(curves))
    figures = figures or "<p>The plots are drawn by matplotlib, which is not installed.</p>"
    drawn = f'<h2>Plots</h2>\n<div class="plots">{figures}</div>' if curves else ""
    pairs = "".join(f"<tr><th scope='row'>{escape(what)}</th><td>{escape(value)}</td></tr>"
                    for what, value in summary(facts))
    head = "".join(f"<th>{column}</th>" for column in columns(facts))
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in class_rows(facts))
    several = kind_of(facts)
    n_classes = len(facts[several])
    is_cut = n_classes > MOST_CLASSES and several != "targets"
    many = f" (the {MOST_CLASSES} of the lowest recall, of {n_classes})" if is_cut else ""
    title = escape(heading(facts))
    return f"""<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>{STYLE}</style></head>
<body>
<h1>{title}</h1>
<p class="about">{escape(about(facts))}</p>
<div class="wide"><table class="facts">{pairs}</table></div>
{drawn}
<h2>{several.capitalize()}{many}</h2>
<div class="wide"><table class="numbers"><tr>{head}</tr>{body}</table></div>
<footer><p>{escape(training(facts))}</p></footer>
</body>
</html>"""


def plots(curves):
    """Yield (SVG, caption) of every plot that there are numbers for; nothing without matplotlib."""
    if not curves:
        return
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        return
    if "residuals" in curves:
        draw = [(_residuals, "Targets minus predictions, of all rows."),
                (_errors, "Predictions beside targets; on the line both agree.")]
    else:
        draw = [(_margins, "How far the right class is ahead of the best other one; mistakes are left of 0.")]
    if "margin error" in curves:
        draw += [(_margin_error, "Share of rows whose right class is given at most this probability."),
                 (_reliability, "Calibration plot: probability of the predicted class and share of right predictions, "
                                "by bins. On the line both agree.")]
    if curves.get("confusion") is not None and len(curves["classes"]) <= MOST_CLASSES:
        draw.append((_confusion, "Confusion matrix: what the rows of each class (a line) were classified as, in per "
                                 "cent of them."))
    elif curves.get("confusion") is not None:
        draw.append((_recalls, "Recall of every class, from the worst to the best."))
    for number, (work, words) in enumerate(draw):
        figure = Figure(figsize=(6.0, 4.2), layout="constrained")
        work(figure.subplots(), curves)
        out = io.StringIO()
        with rc_context({"svg.hashsalt": f"cmargin {number}"}):       # Ids must differ between plots of one page.
            figure.savefig(out, format="svg", metadata={"Date": None})
        yield out.getvalue()[out.getvalue().index("<svg"):], words


def _residuals(axis, curves):
    residuals = curves["residuals"].ravel()
    axis.hist(residuals, bins=int(np.clip(4 * len(residuals) ** (1 / 3), 20, 80)), color="#0072B2", alpha=0.8)
    axis.axvline(0, color="0.4", linewidth=1)
    axis.set(xlabel="residual (unit of the targets)", ylabel="rows")


def _errors(axis, curves):
    targets, predicted = curves["targets"], curves["predicted"]
    few = np.linspace(0, len(targets) - 1, min(len(targets), MOST_POINTS)).astype(int)
    for k in range(targets.shape[1]):
        axis.scatter(targets[few, k], predicted[few, k], s=8, alpha=0.4, linewidth=0)
    ends = [targets.min(), targets.max()]
    axis.plot(ends, ends, color="0.4", linewidth=1)
    axis.set(xlabel="target", ylabel="prediction")


def _margins(axis, curves):
    from cmargin.plots import MarginDistributionDisplay

    bins = int(np.clip(4 * len(curves["margins"]) ** (1 / 3), 20, 80))
    MarginDistributionDisplay(margins=curves["margins"]).plot(ax=axis, bins=bins)
    axis.set_xlabel("margin (score units; vertical: location estimate)")


def _margin_error(axis, curves):
    from cmargin.plots import MarginErrorDisplay

    MarginErrorDisplay(theta=curves["theta"], error=curves["margin error"]).plot(ax=axis)
    axis.set_xlabel("probability θ of the right class")
    axis.set_ylabel("share of rows at or below θ")


def _reliability(axis, curves):
    confidence, right, n = curves["reliability"]
    axis.plot([0, 1], [0, 1], color="0.6", linewidth=1)
    axis.plot(confidence, right, color="#0072B2", linewidth=1, alpha=0.4)
    axis.scatter(confidence, right, s=20 + 180 * n / n.max(), color="#0072B2", alpha=0.8, linewidth=0, zorder=3)
    axis.set(xlabel="probability of the predicted class (dot size: rows)", xlim=(0, 1.02), ylim=(0, 1.02),
             ylabel="share of predictions that were right")
    axis.grid(color="#dddddd", linewidth=0.6)
    axis.set_axisbelow(True)


def _confusion(axis, curves):
    counts, names = curves["confusion"], [name[:14] for name in curves["classes"]]
    shares = 100 * counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    axis.imshow(np.sqrt(shares), cmap="Blues", vmin=0, vmax=10, aspect="auto")       # The root shows rare mistakes.
    small = max(5, 10 - len(names) // 4)
    axis.set_xticks(range(len(names)), names, rotation=90 if max(map(len, names)) > 3 else 0, fontsize=small)
    axis.set_yticks(range(len(names)), names, fontsize=small)
    axis.set(xlabel="predicted class", ylabel="class")
    if len(names) <= 20:
        for i, j in np.argwhere(counts > 0):
            axis.text(j, i, f"{shares[i, j]:.3g}" if shares[i, j] < 99.95 else "100", ha="center", va="center",
                      fontsize=small - 1, color="white" if shares[i, j] > 36 else "#222")


def _recalls(axis, curves):
    counts = curves["confusion"]
    rows = counts.sum(axis=1)
    recalls = np.sort(np.diag(counts)[rows > 0] / rows[rows > 0])
    axis.plot(np.arange(1, len(recalls) + 1), 100 * recalls, color="#0072B2", drawstyle="steps-mid")
    axis.set(xlabel="classes, the worst first", ylabel="recall (% of the rows of the class)", ylim=(0, 102))
    axis.grid(color="#dddddd", linewidth=0.6)
