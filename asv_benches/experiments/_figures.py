"""Panels, one for each data set, in the style of the demo's plots; no pyplot, so no state is left behind."""

import numpy as np
from matplotlib.figure import Figure

from cmargin.demo.plots import STYLES, legend_below


def panels(names, columns=3, width=4.2, height=3.4):
    """(figure, {name: axes}) with a titled panel for each name."""
    names = list(names)
    columns = min(columns, len(names))
    rows = -(-len(names) // columns)
    figure = Figure(figsize=(max(5.0, width * columns), height * rows + 0.6), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for spare in axes[len(names):]:
        spare.set_visible(False)
    for name, ax in zip(names, axes, strict=False):
        ax.set_title(name)
        ax.grid(which="major", color="0.88")
        ax.set_axisbelow(True)
    return figure, dict(zip(names, axes, strict=False))


def curve(ax, x, y, label, order, **style):
    """One line in the style of its number."""
    color = STYLES[order % len(STYLES)][0]
    _, marker, dashes = STYLES[(order + order // len(STYLES)) % len(STYLES)]      # after one round, another pairing
    style = {"color": color, "marker": marker, "markersize": 4, "linestyle": dashes, **style}
    return ax.plot(np.asarray(x, float), np.asarray(y, float), label=label, **style)[0]


def legend(figure, axes):
    """One legend below all panels, of the panel with most entries."""
    legend_below(figure, max(axes.values(), key=lambda ax: len(ax.get_legend_handles_labels()[0])))
    return figure
