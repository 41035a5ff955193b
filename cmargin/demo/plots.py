"""The plots of the demo. Figures are drawn without pyplot: no window, no state left behind."""

import os

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

# Okabe and Ito's colours, told apart by the colour-blind too; markers and dashes say the same without colour
STYLES = [("#0072B2", "o", "-"), ("#D55E00", "s", "--"), ("#009E73", "^", "-."), ("#CC79A7", "D", ":"),
          ("#E69F00", "v", (0, (5, 1))), ("#56B4E9", "P", (0, (1, 1))), ("#000000", "X", (0, (3, 1, 1, 1)))]


def styles_of(results):
    names = dict.fromkeys(result.classifier for result in results)
    return {name: STYLES[number % len(STYLES)] for number, name in enumerate(names)}


def legend_below(figure, axes):
    handles, labels = axes.get_legend_handles_labels()
    longest = max(map(len, labels), default=0)         # as many columns as the longest label leaves room for
    columns = max(1, min(3, int(10 * figure.get_size_inches()[0] / (longest + 6))))
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False)


def plain_log_axis(axis):
    """Ticks written as numbers, few enough not to run into each other."""
    low, high = axis.get_view_interval()
    steps = (1, 2, 5) if np.log10(high / low) < 2.2 else (1,)
    axis.set_major_locator(LogLocator(subs=steps))
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_formatter(NullFormatter())


def optimum(results):
    """Distance from the minimum against time; every point of scikit-learn's is a fit of its own."""
    figure = Figure(figsize=(7.5, 5), layout="constrained")
    axes = figure.subplots()
    for (color, marker, dashes), result in zip(STYLES, results, strict=False):
        axes.plot(*result.distance, color=color, marker=marker, linestyle=dashes, linewidth=2, markersize=7,
                  label=result.classifier)
    axes.set(xscale="log", yscale="log", xlabel="training time (s)", ylabel="objective above its minimum, relatively",
             title="From which of two photographs do 3 x 3 pixels come?\nThe same linear SVM, to the same optimum")
    plain_log_axis(axes.xaxis)
    axes.grid(which="major", color="0.88")
    axes.set_axisbelow(True)
    ours = results[0]
    axes.annotate(f"proven: at most {ours.gap:.0e}\nafter {ours.passes:.0f} reads of the data",
                  (ours.distance[0][-1], ours.distance[1][-1]), xytext=(12, 4), textcoords="offset points",
                  color=STYLES[0][0], va="center")
    legend_below(figure, axes)
    return figure


def accuracies(results):
    """Accuracy against time; every point is a fit of its own, of more passes or iterations."""
    figure = Figure(figsize=(7.5, 5), layout="constrained")
    axes = figure.subplots()
    styles = styles_of(results)
    for result in results:
        color, marker, dashes = styles[result.classifier]
        seconds, accuracy = result.accuracy
        axes.plot(seconds, 100 * accuracy, color=color, marker=marker, linestyle=dashes, linewidth=2, markersize=7,
                  label=result.classifier)
    axes.set(xscale="log", xlabel="training time (s)", ylabel="accuracy on rows not trained on (%)",
             title="From which of 50 places in two photographs do 5 x 5 pixels come?")
    plain_log_axis(axes.xaxis)
    axes.grid(which="major", color="0.88")
    axes.set_axisbelow(True)
    legend_below(figure, axes)
    return figure


def margin_errors(results):
    """Share of test rows whose margin is at most theta (BSN eq. 7).

    At 1/2: the wrong predictions, and the right ones of rows that every class disclaims. The axis ends where it can
    still be told apart who is wrong, and how badly.
    """
    figure = Figure(figsize=(7.5, 5), layout="constrained")
    axes = figure.subplots()
    styles, highest = styles_of(results), 0.0
    for result in results:
        color, _, dashes = styles[result.classifier]
        theta, error = result.margin_error
        highest = max(highest, 100 * error[len(theta) // 2])
        axes.plot(theta, 100 * error, color=color, linestyle=dashes, linewidth=2, label=result.classifier)
    axes.axvline(0.5, color="0.6", linewidth=1)
    axes.set(xlabel="probability given to the true class", xlim=(0, 1), ylim=(0, min(105, 2.5 * highest)),
             ylabel="rows whose true class is given at most that (%)",
             title=f"{results[0].data_set}: how sure they are, of rows that they get wrong left of the line")
    axes.grid(color="0.88")
    axes.set_axisbelow(True)
    legend_below(figure, axes)
    return figure


def save_plots(results, out):
    """Write the plots as PNG files into folder ``out``; returns their paths."""
    drawn = {"demo_optimum.png": (optimum, "distance"), "demo_accuracy.png": (accuracies, "accuracy"),
             "demo_margin_error.png": (margin_errors, "margin_error")}
    paths = []
    for name, (draw, curve) in drawn.items():
        shown = [result for result in results if getattr(result, curve) is not None]
        if shown:
            paths.append(os.path.join(out, name))
            draw(shown).savefig(paths[-1], dpi=130)
    return paths
