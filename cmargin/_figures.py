"""What all figures of this package share: colours, line styles, axes, and which artists carry data."""

OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
LINE_STYLES = ("-", "--", "-.", ":")
GREY = "#666666"
MARK = "cmargin"  # group id of the artists that carry data: how many there are says which colour comes next


def _axes(ax):
    """``ax``, or a new one of a legible size."""
    if ax is None:
        import matplotlib.pyplot as plt

        _, ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
    return ax


def _style(ax):
    """Colour and line style of the next data artist on ``ax``."""
    used = sum(artist.get_gid() == MARK for artist in ax.get_children())
    return {"color": OKABE_ITO[used % len(OKABE_ITO)], "linestyle": LINE_STYLES[used % len(LINE_STYLES)]}


def _finish(display, ax, x_label, y_label, legend):
    ax.set_xlabel(x_label)
    ax.set_ylabel(y_label)
    ax.grid(True, color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)
    if legend:
        ax.legend(frameon=True, framealpha=0.9, fontsize="small")
    display.ax_, display.figure_ = ax, ax.figure
    return display


def _reference_line(ax, place, **keywords):
    """A grey line that is drawn once, however many displays share the axes."""
    if not any(line.get_gid() == MARK + " reference" for line in ax.lines):
        draw = ax.axvline if keywords.pop("vertical", True) else ax.axhline
        draw(place, color=GREY, linewidth=1, gid=MARK + " reference", **keywords)


def _name(estimator, name):
    return type(estimator).__name__ if name is None else name
