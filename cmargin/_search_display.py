"""The figure of a search for penalties, for `cmargin.plots`."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from cmargin._figures import MARK, _axes, _finish, _name, _style


class SearchDisplay:
    """The cross-validated score along a path of penalties, its standard error as a band, what was chosen marked.

    Parameters
    ----------
    penalties : (n,) array
        Values of l2, of C or of l1.
    scores : (n_folds, n) array
        Score of every fold; NaN where there is none.
    chosen : float or None, default=None
        The value that was chosen.
    parameter : str, default="l2"
        What the values are of, for the axis.
    score_name : str, default="score"
    name : str or None

    Attributes
    ----------
    line_ : Line2D
        Mean score of the folds.
    band_ : PolyCollection or None
        One standard error of the mean on either side; None for a single fold.
    fold_lines_ : list of Line2D
        The folds, where they are drawn.
    chosen_line_ : Line2D or None
    ax_, figure_
    """

    def __init__(self, *, penalties: ArrayLike, scores: ArrayLike, chosen: float | None = None, parameter: str = "l2",
                 score_name: str = "score", name: str | None = None) -> None:
        self.penalties, self.scores = np.asarray(penalties, float), np.atleast_2d(np.asarray(scores, float))
        if self.penalties.ndim != 1 or self.scores.shape[1:] != self.penalties.shape:
            raise ValueError(f"scores must have a column for every penalty; got shapes {self.scores.shape} and "
                             f"{self.penalties.shape}.")
        self.chosen, self.parameter, self.score_name, self.name = chosen, parameter, score_name, name

    @classmethod
    def from_estimator(cls, estimator: Any, *, parameter: str | None = None, name: str | None = None,
                       **plot: Any) -> Self:
        """Of a fitted `SmSVMClassifierCV` or `SLNDClassifierCV`, alone or at the end of a Pipeline.

        ``parameter``: "l2" or "C", as the search tried them, at the l1 chosen; or "l1", at the l2 or C chosen. None: l2
        or C.
        """
        check_is_fitted(estimator)
        if isinstance(estimator, Pipeline):
            return cls.from_estimator(estimator[-1], parameter=parameter, name=name, **plot)
        if not hasattr(estimator, "cv_results_"):
            raise ValueError(f"{type(estimator).__name__} has no scores of a search; an estimator is needed that has, "
                             "such as SmSVMClassifierCV")
        first = "C" if "param_C" in estimator.cv_results_ else "l2"
        parameter = first if parameter is None else parameter
        table, chosen = estimator.cv_results_, estimator.best_params_
        if parameter not in chosen:
            raise ValueError(f"parameter must be {' or '.join(map(repr, chosen))} for this search, got {parameter!r}.")
        same = [np.asarray(table[f"param_{other}"]) == chosen[other] for other in chosen if other != parameter]
        there = np.flatnonzero(np.logical_and.reduce(same)) if same else np.arange(len(table["params"]))
        scores = [np.asarray(table[f"split{k}_test_score"])[there] for k in range(estimator.n_splits_)]
        return cls(penalties=np.asarray(table[f"param_{parameter}"])[there], scores=scores, chosen=chosen[parameter],
                   parameter=parameter, score_name=scored_by(estimator), name=_name(estimator, name)).plot(**plot)

    @classmethod
    def from_scores(cls, penalties: ArrayLike, scores: ArrayLike, *, name: str | None = None,
                    chosen: float | None = None, parameter: str = "l2", score_name: str = "score",
                    **plot: Any) -> Self:
        """Of penalties (n,) and scores (n_folds, n)."""
        return cls(penalties=penalties, scores=scores, chosen=chosen, parameter=parameter, score_name=score_name,
                   name=name).plot(**plot)

    def plot(self, ax: Any = None, *, folds: bool = False, **style: Any) -> Self:
        """Draw the mean score with its band against the penalty; ``folds``: every fold as a thin line too.

        A penalty of 0 has no place on the logarithmic axis, which is linear below the smallest other one then.
        """
        order = np.argsort(self.penalties, kind="stable")
        at, scores = self.penalties[order], self.scores[:, order]
        n = np.maximum(np.isfinite(scores).sum(axis=0), 1)
        mean = np.where(np.isfinite(scores).any(axis=0), np.nansum(scores, axis=0) / n, np.nan)
        error = np.sqrt(np.nansum((scores - mean) ** 2, axis=0) / np.maximum(n - 1, 1) / n)
        ax = _axes(ax)
        style = {**_style(ax), "label": self.name, "marker": "o", "markersize": 3, **style}
        self.fold_lines_ = ax.plot(at, scores.T, color=style["color"], linewidth=0.6, alpha=0.4) if folds else []
        (self.line_,) = ax.plot(at, mean, gid=MARK, **style)
        self.band_ = None
        if len(scores) > 1:
            self.band_ = ax.fill_between(at, mean - error, mean + error, color=style["color"], alpha=0.15, linewidth=0)
        positive = at[at > 0]
        if len(positive):
            ax.set_xscale("log") if len(positive) == len(at) else ax.set_xscale("symlog", linthresh=positive[0])
        self.chosen_line_ = None
        if self.chosen is not None:
            self.chosen_line_ = ax.axvline(self.chosen, color=style["color"], linestyle=":", linewidth=1,
                                           label=f"chosen: {self.chosen:.3g}")
        return _finish(self, ax, f"{self.parameter} (penalty)" if self.parameter != "C" else "C (1 / penalty)",
                      f"{self.score_name} of rows held out", self.name or self.chosen is not None)


def scored_by(search):
    """The name of a search's score."""
    scoring = getattr(search, "scoring", None)
    return "accuracy" if scoring is None else scoring if isinstance(scoring, str) else \
        getattr(scoring, "__name__", "score")
