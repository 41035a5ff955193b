"""The two plots of the demo. Figures are drawn without pyplot: no window, no state left behind."""

import os

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

# Okabe and Ito's colours, told apart by the colour-blind too; markers and dashes say the same without colour
STYLES = [("#0072B2", "o", "-"), ("#D55E00", "s", "--"), ("#009E73", "^", "-."), ("#CC79A7", "D", ":"),
          ("#E69F00", "v", (0, (5, 1))), ("#56B4E9", "P", (0, (1, 1))), ("#000000", "X", (0, (3, 1, 1, 1)))]


def by_data_set(results):
    groups = {}
    for result in results:
        groups.setdefault(result.data_set, []).append(result)
    return groups


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


def convergence(results):
    """Test accuracy against time and against passes; a classifier that shows no passes is one point, its end."""
    groups, styles = by_data_set(results), styles_of(results)
    figure = Figure(figsize=(9, 3.4 * len(groups) + 0.6), layout="constrained")
    grid = figure.subplots(len(groups), 2, squeeze=False)
    for row, (name, group) in zip(grid, groups.items(), strict=True):
        for result in group:
            color, marker, dashes = styles[result.classifier]
            ends = (result.seconds, result.passes)
            for axes, number in zip(row, (1, 0), strict=True):
                if result.trace is None:
                    axes.plot(ends[1 - number], 100 * result.top_1, color=color, marker=marker, markersize=9,
                              linestyle="none", label=result.classifier)
                else:
                    axes.plot(result.trace[number], 100 * result.trace[2], color=color, marker=marker, markersize=4,
                              linestyle=dashes, label=result.classifier)
        for axes, label in zip(row, ("training time (s)", "passes (scikit-learn: iterations)"), strict=True):
            lowest = min([100 * min(r.trace[2]) for r in group if r.trace] + [100 * r.top_1 for r in group])
            axes.set(xscale="log", xlabel=label, ylabel="test accuracy (%)", title=name,
                     ylim=(min(90, np.floor(lowest - 1)), 100))     # one row more or less should not look like much
            plain_log_axis(axes.xaxis)
            axes.grid(which="major", color="0.88")
            axes.set_axisbelow(True)
    legend_below(figure, grid[0, 0])
    return figure


def margin_errors(results):
    """Share of test rows whose margin is at most theta (BSN eq. 7).

    At 1/2: the wrong predictions, and the right ones of rows that every class disclaims.
    """
    groups, styles = by_data_set(results), styles_of(results)
    figure = Figure(figsize=(9, 4.4), layout="constrained")
    row = figure.subplots(1, len(groups), squeeze=False)[0]
    for axes, (name, group) in zip(row, groups.items(), strict=True):
        for result in group:
            if result.margin_error is not None:
                color, _, dashes = styles[result.classifier]
                theta, error = result.margin_error
                axes.plot(theta, 100 * error, color=color, linestyle=dashes, linewidth=2, label=result.classifier)
        axes.axvline(0.5, color="0.6", linewidth=1)
        axes.set(xlabel=r"margin threshold $\theta$ (posterior, 0 to 1)", xlim=(0, 1), title=name,
                 ylabel=r"margin error $\varepsilon_\mu(\theta)$ (% of test rows)", ylim=(0, 102))
        axes.grid(color="0.88")
        axes.set_axisbelow(True)
    legend_below(figure, row[0])
    return figure


def save_plots(results, out):
    """Write the plots as PNG files into folder ``out``; returns their paths."""
    figures = {"demo_convergence.png": convergence(results), "demo_margin_error.png": margin_errors(results)}
    paths = [os.path.join(out, name) for name in figures]
    for path, figure in zip(paths, figures.values(), strict=True):
        figure.savefig(path, dpi=130)
    return paths
