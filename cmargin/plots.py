"""Figures of margins and of training, in scikit-learn's Display convention; matplotlib is imported when one is drawn.

Every class holds plain arrays, is made by `from_estimator` (of a Pipeline or a search: of the classifier in it) or by a
constructor from arrays, labels first, and draws with ``plot(ax=...)``, which sets ``ax_``, ``figure_`` and the artists.
Several displays may share one axes: each takes the next of the Okabe-Ito colours, which colour-blind readers can tell
apart, and the next line style.
"""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from cmargin._estimators.predict import raw_scores
from cmargin._figures import MARK, OKABE_ITO, _axes, _finish, _name, _reference_line, _style
from cmargin._path_display import PathDisplay as PathDisplay
from cmargin._search_display import SearchDisplay as SearchDisplay
from cmargin.margins import binary_entropy, location_estimate, margin, margin_error, psi_inverse, psi_transform
from cmargin.margins.posterior_margins import CALIBRATED

CURVE_POINTS = 401

LABELS = {
    "pass": "passes over the data",
    "passes": "reads of the data",
    "seconds": "time (s)",
    "seconds_hessian": "time in the second moment (s)",
    "seconds_whiten": "time in whitening (s)",
    "seconds_steps": "time in steps (s)",
    "seconds_look": "time reading the data (s)",
    "seconds_system": "time in the Newton system (s)",
    "seconds_search": "time in the line search (s)",
    "objective": "objective (mean loss + penalty)",
    "gap": "relative duality gap",
    "gradient_norm": "gradient norm relative to the start",
    "error": "share of margins ≤ 0",
    "margin_share_negative": "share of margins ≤ 0",
    "margin_mean": "mean margin (score units)",
    "margin_median": "median margin (score units)",
    "margin_location": "location estimate of the margins (score units)",
    "margin_variance": "variance of the margins (score units²)",
    "margin_skewness": "skewness of the margins",
    "step": "step",
    "smoothing": "smoothing width (margin units)",
}


# ---------------------------------------------------------------- shared by all

def _coded(estimator, y):
    """Labels as `cmargin.margins` wants them beside the estimator's scores."""
    y = np.asarray(y.todense() if hasattr(y, "todense") else y)
    if y.ndim == 2 and y.shape[1] > 1:
        return y
    y, classes = y.ravel(), estimator.classes_
    unknown = np.setdiff1d(y, classes)
    if len(unknown):
        raise ValueError(f"y holds labels the estimator has not been trained on: {unknown[:5]}")
    codes = np.searchsorted(classes, y)
    return np.where(codes == 1, 1, -1) if len(classes) == 2 else codes


def _innermost(estimator, X=None):
    """The fitted classifier at the end of pipelines and searches, and X as it gets to it."""
    check_is_fitted(estimator)
    if isinstance(estimator, Pipeline):
        if X is not None and len(estimator) > 1:
            X = estimator[:-1].transform(X)
        return _innermost(estimator[-1], X)
    if hasattr(estimator, "best_estimator_") and not hasattr(estimator, "coef_"):
        return _innermost(estimator.best_estimator_, X)
    return estimator, X


def _must_have(estimator, attribute, such_as):
    """Raise for a fitted estimator without what is to be drawn; one not fitted has been refused before."""
    if not hasattr(estimator, attribute):
        raise ValueError(f"{type(estimator).__name__} has no {attribute} here; an estimator is needed that has, "
                         f"such as {such_as}")


def _labels_first(y_true, values, what):
    """Labels as an array; refuses the other order, in which some arguments give a figure too."""
    y = np.asarray(y_true)
    fractions = y.dtype.kind == "f" and not (y == np.rint(y)).all()
    if fractions or (y.ndim == 2 and np.ndim(values) == 1):
        raise ValueError(f"y_true comes first and {what} second: the first argument holds "
                         f"{'fractions' if fractions else 'several numbers a sample, the second one'}, not labels")
    return y


def _decision(estimator, X):
    scores = np.asarray(raw_scores(estimator, X), dtype=np.float64)
    return scores.ravel() if scores.ndim == 2 and scores.shape[1] == 1 else scores


def _one_of(value, name, options):
    if value not in options:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, options))}, got {value!r}")


# ---------------------------------------------------------------- margins

class MarginDistributionDisplay:
    """Distribution of the raw margins y h(x), as a histogram or as a cumulative curve.

    Parameters
    ----------
    margins : (n,) array
    name : str or None
        What the legend calls them.

    Attributes
    ----------
    line_ : Line2D
        The outline of the histogram or the cumulative curve.
    location_line_ : Line2D
        Where the robust location estimate of the margins lies (margin pursuit, eq. 2).
    ax_, figure_

    Examples
    --------
    >>> import matplotlib; matplotlib.use("agg")
    >>> from cmargin.plots import MarginDistributionDisplay
    >>> display = MarginDistributionDisplay.from_predictions([1, 1, 0], [0.5, -0.2, 1.4], kind="cumulative")
    >>> display.line_.get_ydata()[-1]
    np.float64(1.0)
    """

    def __init__(self, *, margins: ArrayLike, name: str | None = None) -> None:
        self.margins, self.name = np.asarray(margins, dtype=np.float64), name

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, name: str | None = None, **plot: Any) -> Self:
        """Margins of an estimator's scores; of its predicted class where it has several (BSN eq. 6)."""
        estimator, X = _innermost(estimator, X)
        return cls.from_predictions(_coded(estimator, y), _decision(estimator, X), name=_name(estimator, name), **plot)

    @classmethod
    def from_predictions(cls, y_true: Any, scores: Any, *, name: str | None = None, **plot: Any) -> Self:
        """From labels, and scores (n,) or (n, K), as `cmargin.margins.margin` takes them."""
        return cls(margins=margin(scores, _labels_first(y_true, scores, "scores"), loss=None), name=name).plot(**plot)

    def plot(self, ax: Any = None, *, kind: str = "histogram", bins: Any = None, **style: Any) -> Self:
        """Draw; ``kind`` is "histogram" (a density, ``bins`` as numpy.histogram) or "cumulative"."""
        _one_of(kind, "kind", ("histogram", "cumulative"))
        ax = _axes(ax)
        style = {**_style(ax), "label": self.name, **style}
        _reference_line(ax, 0.0, linestyle=":")
        if kind == "histogram":
            bins = min(100, max(10, int(2 * len(self.margins) ** (1 / 3)))) if bins is None else bins
            density, edges = np.histogram(self.margins, bins, density=True)
            ax.stairs(density, edges, fill=True, alpha=0.18, color=style["color"])
            (self.line_,) = ax.plot(np.repeat(edges, 2)[1:-1], np.repeat(density, 2), gid=MARK, **style)
        else:
            x = np.sort(self.margins)
            (self.line_,) = ax.plot(np.r_[x[0], x], np.arange(len(x) + 1) / len(x), drawstyle="steps-post", gid=MARK,
                                    **style)
        self.location_line_ = ax.axvline(location_estimate(self.margins), color=style["color"], linewidth=1,
                                         linestyle=style["linestyle"])
        label = "density (1 / score unit)" if kind == "histogram" else "share of samples with a margin ≤ x"
        if kind == "cumulative":
            ax.set_ylim(0, 1.02)
        return _finish(self, ax, "margin y h(x) (score units; vertical: location estimate)", label, self.name)


class MarginErrorDisplay:
    """Margin error ε_μ(θ), the share of margins μ at or below θ (BSN eq. 7).

    Parameters
    ----------
    theta, error : (m,) arrays
        Thresholds, and the share of rows whose margin is at most each.
    name : str or None

    Attributes
    ----------
    line_ : Line2D
    ax_, figure_
    """

    def __init__(self, *, theta: ArrayLike, error: ArrayLike, name: str | None = None) -> None:
        self.theta, self.error, self.name = np.asarray(theta), np.asarray(error), name

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, loss: str | None = "auto", name: str | None = None,
                       **plot: Any) -> Self:
        """``loss``: whose posterior turns scores into margins; "auto" asks the estimator.

        Of the multinomial loss the posteriors are the estimator's own: the margin is that of the predicted class if it
        is right, and 1 minus it if not, as of any posterior f with f(-h) = 1 - f(h).
        """
        estimator, X = _innermost(estimator, X)
        labels, name = _coded(estimator, y), _name(estimator, name)
        if loss == "auto":
            loss = getattr(estimator, "loss_", getattr(estimator, "loss", None))
            if loss == "multinomial":        # the squared loss has f(h) = (1 + h)/2, which gives posteriors as they are
                return cls.from_predictions(labels, 2 * np.asarray(estimator.posterior(X), float) - 1, loss="squared",
                                            name=name, **plot)
            if loss not in CALIBRATED:
                raise ValueError(f"{type(estimator).__name__} has no calibrated loss; name one of "
                                 f"{', '.join(CALIBRATED)} as loss")
        return cls.from_predictions(labels, _decision(estimator, X), loss=loss, name=name, **plot)

    @classmethod
    def from_predictions(cls, y_true: Any, scores: Any, *, loss: str | None = "logistic", name: str | None = None,
                         **plot: Any) -> Self:
        """From labels, and scores (n,) or (n, K), as `cmargin.margins.margin` takes them."""
        theta = np.linspace(0, 1, CURVE_POINTS)
        margins = margin(scores, _labels_first(y_true, scores, "scores"), loss)
        return cls(theta=theta, error=margin_error(margins, theta), name=name).plot(**plot)

    def plot(self, ax: Any = None, **style: Any) -> Self:
        """Draw the curve in a theta of 0 to 1; ``style`` is matplotlib's, of a line."""
        ax = _axes(ax)
        _reference_line(ax, 0.5, linestyle=":")
        (self.line_,) = ax.plot(self.theta, self.error, drawstyle="steps-post", gid=MARK,
                                **{**_style(ax), "label": self.name, **style})
        ax.set_xlim(0, 1)
        ax.set_ylim(0, 1.02)
        return _finish(self, ax, "margin θ (posterior, 0 to 1)", "margin error ε(θ) (share of samples)", self.name)


class EntropyAccuracyDisplay:
    """Accuracy of every class against the binary entropy of its posteriors (BSN section 5).

    Parameters
    ----------
    entropy : (n_classes,) array, nats
        Mean binary entropy of the posteriors of each class, from `cmargin.margins.binary_entropy`.
    accuracy : (n_classes,) array
        Share of the samples of each class whose largest posterior is that of their class; NaN for a class without
        samples, which is not drawn.
    name : str or None

    Attributes
    ----------
    points_ : PathCollection
    ax_, figure_
    """

    def __init__(self, *, entropy: ArrayLike, accuracy: ArrayLike, name: str | None = None) -> None:
        self.entropy, self.accuracy, self.name = np.asarray(entropy), np.asarray(accuracy), name

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, name: str | None = None, **plot: Any) -> Self:
        """For estimators with ``posterior``, else ``predict_proba``."""
        estimator, X = _innermost(estimator, X)
        if not hasattr(estimator, "posterior") and not hasattr(estimator, "predict_proba"):
            raise ValueError(f"{type(estimator).__name__} gives no posteriors")
        posteriors = estimator.posterior(X) if hasattr(estimator, "posterior") else estimator.predict_proba(X)
        labels = _coded(estimator, y)
        if np.ndim(posteriors) == 2 and posteriors.shape[1] == 2:
            posteriors = posteriors[:, 1]
        return cls.from_predictions(labels, posteriors, name=_name(estimator, name), **plot)

    @classmethod
    def from_predictions(cls, y_true: Any, posteriors: Any, *, name: str | None = None, **plot: Any) -> Self:
        """From class indices and posteriors (n, K), or labels of -1/+1 or 0/1 and (n,), the first class being 1 - f."""
        y, f = _labels_first(y_true, posteriors, "posteriors"), np.asarray(posteriors, dtype=np.float64)
        if y.ndim != 1 or y.dtype.kind not in "biuf":
            raise ValueError("y_true must hold one number per sample, the index of its class")
        if not ((f >= 0) & (f <= 1)).all():
            raise ValueError("posteriors must lie between 0 and 1; y_true comes first, posteriors second")
        if len(y) != len(f):
            raise ValueError(f"there are {len(y)} labels for {len(f)} rows of posteriors")
        if f.ndim == 1:
            f, y = np.column_stack([1 - f, f]), (y > 0).astype(int)
        if y.min() < 0 or y.max() >= f.shape[1]:
            raise ValueError(f"y_true must hold indices 0 .. {f.shape[1] - 1} of the columns of posteriors")
        y = y.astype(int)
        entropy = binary_entropy(f)
        counts = np.bincount(y, minlength=f.shape[1]).astype(float)
        right = np.bincount(y, weights=f.argmax(axis=1) == y, minlength=f.shape[1])
        accuracy = np.divide(right, counts, out=np.full(len(counts), np.nan), where=counts > 0)
        return cls(entropy=entropy, accuracy=accuracy, name=name).plot(**plot)

    def plot(self, ax: Any = None, **style: Any) -> Self:
        """Draw a point for every class; ``style`` is matplotlib's, of a scatter."""
        ax = _axes(ax)
        order = sum(artist.get_gid() == MARK for artist in ax.get_children())
        style = {"color": OKABE_ITO[order % len(OKABE_ITO)], "marker": "os^Dv"[order % 5], "s": 30, "alpha": 0.8,
                 "edgecolors": "white", "linewidths": 0.5, "label": self.name, **style}
        self.points_ = ax.scatter(self.entropy, self.accuracy, gid=MARK, **style)
        return _finish(self, ax, "binary entropy of the class (nats)", "accuracy of the class (share of its samples)",
                       self.name)


# ---------------------------------------------------------------- training

class ConvergenceDisplay:
    """Any two columns of a ``history_`` against each other.

    Parameters
    ----------
    history : dict of arrays
        Columns of equal length, as an estimator's ``history_``.
    name : str or None

    Attributes
    ----------
    line_ : Line2D
    ax_, figure_
    """

    def __init__(self, *, history: dict[str, np.ndarray], name: str | None = None) -> None:
        self.history, self.name = history, name

    @classmethod
    def from_estimator(cls, estimator: Any, *, name: str | None = None, **plot: Any) -> Self:
        """Of a fitted estimator's ``history_``."""
        estimator, _ = _innermost(estimator)
        _must_have(estimator, "history_", "the classifiers of this package")
        return cls.from_history(estimator.history_, name=_name(estimator, name), **plot)

    @classmethod
    def from_history(cls, history: dict[str, np.ndarray], *, name: str | None = None, **plot: Any) -> Self:
        """Of columns of one length, as ``history_`` has them."""
        return cls(history=history, name=name).plot(**plot)

    def plot(self, ax: Any = None, *, x: str = "seconds", y: str = "objective", problem: Any = None,
             log: bool | str = "auto", best: bool = False, **style: Any) -> Self:
        """Draw column ``y`` against column ``x``.

        Parameters
        ----------
        problem : int or None
            Where one-vs-rest problems were trained one after the other, the one to draw; None: all, not joined.
        log : "auto" or bool
            Logarithmic y axis; "auto" where every value is positive and they span more than two decades.
        best : bool
            Draw the smallest value so far instead of each.
        """
        for column in (x, y):
            if column not in self.history:
                raise ValueError(f"history has no column {column!r}; it has {', '.join(self.history)}")
        across, up = (np.asarray(self.history[column], dtype=np.float64) for column in (x, y))
        if "class" in self.history:
            classes = np.asarray(self.history["class"])
            if problem is not None:
                if problem not in classes:
                    raise ValueError(f"history has no problem {problem!r}; it has {np.unique(classes).tolist()}")
                across, up = across[classes == problem], up[classes == problem]
            else:
                ends = 1 + np.flatnonzero(np.diff(classes))
                across, up = np.insert(across, ends, np.nan), np.insert(up, ends, np.nan)
        up = np.fmin.accumulate(up) if best else up
        ax = _axes(ax)
        few = {"marker": "o", "markersize": 4} if len(across) <= 40 else {}
        (self.line_,) = ax.plot(across, up, gid=MARK, **{**_style(ax), "label": self.name, **few, **style})
        finite = up[np.isfinite(up)]
        if log == "auto":
            log = len(finite) > 0 and finite.min() > 0 and finite.max() > 100 * finite.min()
        if log:
            ax.set_yscale("log")
        return _finish(self, ax, LABELS.get(x, x), LABELS.get(y, y), self.name)


class SpectrumDisplay:
    """Eigenvalues of the second moment H, the rank that was inverted marked (SLND section 5).

    Parameters
    ----------
    eigenvalues : (n_values,) array, descending
    rank : int or None
        Where a vertical line is drawn.
    name : str or None

    Attributes
    ----------
    line_, rank_line_ : Line2D
        ``rank_line_`` is None without a rank.
    ax_, figure_
    """

    def __init__(self, *, eigenvalues: ArrayLike, rank: int | None = None, name: str | None = None) -> None:
        self.eigenvalues, self.rank, self.name = np.asarray(eigenvalues), rank, name
        if rank is not None and not 0 <= rank <= self.eigenvalues.size:
            raise ValueError(f"rank must be in the range [0, {self.eigenvalues.size}], got {rank!r}.")

    @classmethod
    def from_estimator(cls, estimator: Any, *, name: str | None = None, **plot: Any) -> Self:
        """Of the second moment that a fit took its inverse from, with the rank it chose."""
        estimator, _ = _innermost(estimator)
        _must_have(estimator, "eigenvalues_", "SLNDClassifier and BSNClassifier with l2=0")
        return cls.from_eigenvalues(estimator.eigenvalues_, rank=estimator.rank_, name=_name(estimator, name), **plot)

    @classmethod
    def from_eigenvalues(cls, eigenvalues: ArrayLike, *, rank: int | None = None, name: str | None = None,
                         **plot: Any) -> Self:
        """Of eigenvalues (n_values,) in descending order; a line at ``rank``."""
        return cls(eigenvalues=eigenvalues, rank=rank, name=name).plot(**plot)

    def plot(self, ax: Any = None, *, log: bool = True, **style: Any) -> Self:
        """Draw eigenvalues in order; with ``log`` those above 0, on a logarithmic axis."""
        ax = _axes(ax)
        positive = np.where(self.eigenvalues > 0, self.eigenvalues, np.nan) if log else self.eigenvalues
        style = {**_style(ax), "marker": ".", "label": self.name, **style}
        (self.line_,) = ax.plot(np.arange(1, len(positive) + 1), positive, gid=MARK, **style)
        if log:
            ax.set_yscale("log")
        self.rank_line_ = None
        if self.rank is not None:
            # half way between the last eigenvalue inverted and the first of the tail
            self.rank_line_ = ax.axvline(self.rank + 0.5, color=style["color"], linestyle="--", linewidth=1,
                                         label=f"rank {self.rank}")
        return _finish(self, ax, "index of the eigenvalue", "eigenvalue of H (feature units²)",
                       self.name or self.rank is not None)


# ---------------------------------------------------------------- theory

class PsiTransformDisplay:
    """Ψ_{s,γ}, or its inverse, of margin pursuit, one curve for each pair (γ, s) (margin pursuit, Figure 2).

    Parameters
    ----------
    levels : sequence of (margin, scale) pairs
        γ and s, a curve for each.

    Attributes
    ----------
    lines_ : list of Line2D
    ax_, figure_
    """

    def __init__(self, *, levels: Any) -> None:
        self.levels = [(float(level), float(scale)) for level, scale in levels]

    @classmethod
    def from_estimator(cls, estimator: Any, **plot: Any) -> Self:
        """The level and the scale, or scales, a `MarginPursuitClassifier` was trained with."""
        estimator, _ = _innermost(estimator)
        _must_have(estimator, "scale_", "MarginPursuitClassifier")
        scales = np.unique(estimator.scale_)
        return cls(levels=[(estimator.margin, scale) for scale in scales[:: max(1, len(scales) // 5)]]).plot(**plot)

    @classmethod
    def from_levels(cls, margin: ArrayLike = (0.5, 1.0, 2.0), scale: ArrayLike = 1.0, **plot: Any) -> Self:
        """Levels γ and scales s, broadcast against each other."""
        pairs = np.broadcast_arrays(np.atleast_1d(margin), np.atleast_1d(scale))
        return cls(levels=list(zip(*(values.ravel() for values in pairs), strict=True))).plot(**plot)

    def plot(self, ax: Any = None, *, inverse: bool = False, **style: Any) -> Self:
        """Draw Ψ(a) for a in [0, 1], or the bound Ψ⁻¹ on the excess 0-1 risk with ``inverse=True``."""
        ax = _axes(ax)
        self.lines_ = []
        for level, scale in self.levels:
            a = np.linspace(0, 1, CURVE_POINTS)
            if inverse:
                x = np.linspace(0, psi_transform(1.0, level, scale), CURVE_POINTS)
                y = psi_inverse(x, level, scale)
            else:
                x, y = a, psi_transform(a, level, scale)
            label = f"γ = {level:.3g}, s = {scale:.3g}"
            self.lines_ += ax.plot(x, y, gid=MARK, **{**_style(ax), "label": label, **style})
        surrogate, risk = "excess surrogate risk (score units²)", "excess 0-1 risk (share of samples)"
        return _finish(self, ax, surrogate if inverse else risk, f"{risk}, at most" if inverse else f"{surrogate}, at "
                       "least", True)
