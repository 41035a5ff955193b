"""The figure of a path of penalties, for `cmargin.plots`."""

from typing import Any, Self

import numpy as np

from cmargin._figures import MARK, OKABE_ITO, _axes, _finish

LABELS = {"coef": "weight", "gap": "relative duality gap", "objective": "objective (mean loss + penalty), at most",
          "n_nonzero": "columns with a weight"}
NAMES = {"coef": "coefs", "gap": "gaps", "objective": "objectives", "n_nonzero": "n_nonzero"}     # of the path
MOST_LINES = 30                # weights that are drawn; of more columns those that are largest somewhere


class PathDisplay:
    """What a path of penalties has at each of them: weights, gaps, objectives or numbers of columns.

    Parameters
    ----------
    path : SmSVMPath or SLNDPath
        What `cmargin.smsvm_path` or `cmargin.slnd_path` returns.
    name : str or None
        What the legend calls it.

    Attributes
    ----------
    lines_ : list of Line2D
        A line a column for weights, else one.
    fits_ : PathCollection or None
        Where fits were made; not with weights.
    ax_, figure_

    Examples
    --------
    >>> import matplotlib; matplotlib.use("agg")
    >>> from sklearn.datasets import load_breast_cancer
    >>> from cmargin import smsvm_path
    >>> from cmargin.plots import PathDisplay
    >>> path = smsvm_path(*load_breast_cancer(return_X_y=True), Cs=[0.01, 0.1, 1], loss="logistic", tol=1e-2)
    >>> len(PathDisplay.from_path(path).lines_)
    30
    """

    def __init__(self, *, path: Any, name: str | None = None) -> None:
        self.path, self.name = path, name

    @classmethod
    def from_path(cls, path: Any, *, name: str | None = None, **plot: Any) -> Self:
        """Of what `smsvm_path`, `slnd_path` or the method ``path`` of an estimator has returned."""
        return cls(path=path, name=name).plot(**plot)

    def plot(self, ax: Any = None, *, y: str = "coef", problem: int = 0, **style: Any) -> Self:
        """Draw ``y``, "coef", "gap", "objective" or "n_nonzero", of one problem against the penalty; ``style`` is
        matplotlib's, of a line. The classes of an `SLNDPath` share one gap and objective; it has no "n_nonzero"."""
        if y not in LABELS:
            raise ValueError(f"y must be one of {', '.join(map(repr, LABELS))}, got {y!r}")
        path = self.path
        values = getattr(path, NAMES[y], None)
        if values is None:
            raise ValueError(f"{type(path).__name__} has no {NAMES[y]} to draw for y={y!r}")
        ax, of_problem = _axes(ax), (slice(None), problem) if values.ndim > 1 else slice(None)
        values = values[of_problem]
        self.fits_ = None
        if y == "coef":
            columns = np.argsort(-np.abs(values).max(axis=0), kind="stable")[:MOST_LINES]
            self.lines_ = [ax.plot(path.l2s, values[:, j], gid=MARK, linewidth=1,
                                   **{"color": OKABE_ITO[k % len(OKABE_ITO)], **style})[0]
                           for k, j in enumerate(columns)]
        else:
            color = OKABE_ITO[sum(artist.get_gid() == MARK for artist in ax.lines) % len(OKABE_ITO)]
            self.lines_ = ax.plot(path.l2s, values, gid=MARK, **{"color": color, "label": self.name, **style})
            fitted = path.fitted_[of_problem]
            self.fits_ = ax.scatter(path.l2s[fitted], values[fitted], s=14, color=color, zorder=3)
        ax.set_xscale("log" if path.l2s[-1] > 0 else "symlog")
        if not ax.xaxis_inverted():
            ax.invert_xaxis()
        return _finish(self, ax, "l2 (weight of the quadratic penalty)", LABELS[y], self.name and y != "coef")
