"""A path of penalties of multinomial `SLNDClassifier`: what is asked for, how it is fitted, and what is known of it."""

from time import perf_counter

import numpy as np
from sklearn.base import clone

from cmargin._core.util._fp_control import StandardArithmetic
from cmargin._estimators.base import open_data
from cmargin._estimators.labels import code_labels
from cmargin._estimators.progress import say, warn_at_caller, warn_of
from cmargin._estimators.slnd_fit import (
    a_fit,
    optimum_settings,
    refuse_l1,
    refuse_one_class,
    refuse_penalty,
    weights_of,
)
from cmargin._estimators.validation import POSITIVE, given_penalties, is_real
from cmargin._runtime.blas_threads import single_threaded_blas
from cmargin._runtime.clock import TimeUp
from cmargin._runtime.deferred import Deferred
from cmargin.solvers.multinomial.path import MultinomialPath, largest_l2
from cmargin.solvers.path_range import spaced


class SLNDPath:
    """Weights of multinomial `SLNDClassifier` at every penalty of a path, each certified; made by `slnd_path`.

    Parameters
    ----------
    estimator : SLNDClassifier
        Whose parameters the fits had.
    l2s : (n_l2s,) array
        The penalties, falling.
    solver : MultinomialPath
        After the fits.
    classes : array
        The labels.

    Attributes
    ----------
    l2s : (n_l2s,) array
        Weights of the penalty, falling.
    classes_ : array
        As in `SLNDClassifier`.
    coefs : (n_l2s, n_problems, n_features) array
        Weights; n_problems is 1 for two classes. Made anew when it is asked for.
    intercepts : (n_l2s, n_problems) array
        Intercepts of the same points.
    objectives : (n_l2s,) array
        What the objective of these weights is at most.
    gaps : (n_l2s,) array
        Relative duality gap that is proven of them.
    fitted_ : (n_l2s,) array of bool
        Where a fit was made at this very penalty; elsewhere fits at others prove the weights.
    n_fits : int
        Fits made.
    n_passes : float
        Reads of the data.
    """

    def __init__(self, estimator, l2s, solver, classes):
        self.l2s, self.classes_, self.n_fits, self.n_passes = l2s, classes, solver.n_solved, solver.passes
        self._estimator, self._solver = clone(estimator), solver
        self._times = 2 if len(classes) == 2 else 1      # two classes have a row of weights each in the solver
        self._points = [solver.certify(l2 * self._times) for l2 in l2s]
        self.objectives = np.array([point.objective for point in self._points])
        self.gaps = np.array([point.gap for point in self._points])
        self.fitted_ = np.array([point.solved for point in self._points])

    def __repr__(self):
        return (f"SLNDPath({len(self.l2s)} penalties l2={self.l2s[0]:.3g} ... {self.l2s[-1]:.3g}, "
                f"{len(self.classes_)} classes: {self.n_fits} fits, {self.n_passes:.4g} reads, "
                f"gaps <= {self.gaps.max():.1e})")

    def __len__(self):
        return len(self.l2s)

    @property
    def coefs(self):
        return np.array([weights_of(point.W, point.bias)[0] for point in self._points])

    @property
    def intercepts(self):
        return np.array([weights_of(point.W, point.bias)[1] for point in self._points])

    def at(self, l2):
        """The weights at any penalty, as a fitted `SLNDClassifier` that predicts, with what is proven of them.

        Parameters
        ----------
        l2 : float
            Between the least and the largest of ``l2s``; others are answered by the nearest fit, with a larger gap.

        Returns
        -------
        SLNDClassifier
            ``coef_``, ``intercept_``, ``objective_`` and ``duality_gap_`` are those of the weights, by arithmetic from
            the fits that were made. ``duality_gap_`` may be above ``tol`` where ``l2s`` are far apart; give
            ``between=True`` or no ``l2s`` for a path on which it is nowhere.
        """
        if not is_real(l2, POSITIVE):
            raise ValueError(f"l2 must be a positive number; got {l2!r}")
        point = self._solver.certify(float(l2) * self._times)
        model = a_fit(clone(self._estimator).set_params(l2=float(l2)), point.W, point.bias, self.classes_)
        vars(model).update(objective_=point.objective, duality_gap_=point.gap)
        return model


def penalties_of(l2s, Cs, total_weight):
    """(n,) l2s, falling, each once, or None where they are to be chosen."""
    named = given_penalties(l2s, Cs)
    if named is None:
        return None
    name, given = named
    if not ((given > 0) & np.isfinite(given)).all():
        raise ValueError(f"{name} must be finite and positive; got {given[~((given > 0) & np.isfinite(given))][:3]}.")
    with np.errstate(over="ignore", divide="ignore"):
        l2 = given if Cs is None else 1 / (given * total_weight)
    if not ((l2 > 0) & np.isfinite(l2)).all():
        raise ValueError(f"{name} holds values so large or small that l2 = 1 / (C * {total_weight:g}) is no number.")
    falling = np.unique(l2)[::-1]
    if len(falling) < len(l2):
        warn_at_caller(f"{name} holds {len(l2) - len(falling)} of its penalties more than once; each is solved once.")
    if not np.array_equal(l2[np.sort(np.unique(l2, return_index=True)[1])], falling):
        warn_at_caller(f"{name} is not in the order of falling l2; the path is.")
    return falling


def fit_slnd_path(estimator, X, y, sample_weight=None, *, l2s=None, Cs=None, n_l2s=100, l2_min=None, between=False):
    """`SLNDPath`, by a copy of ``estimator``; parameters are those of `cmargin.slnd_path`."""
    if isinstance(n_l2s, bool) or not isinstance(n_l2s, (int, np.integer)) or n_l2s < 2:
        raise ValueError(f"n_l2s must be a whole number, at least 2; got {n_l2s!r}.")
    if l2_min is not None and not is_real(l2_min, POSITIVE):
        raise ValueError(f"l2_min must be a positive number or None; got {l2_min!r}.")
    for name in ("callback", "checkpoint"):
        if getattr(estimator, name) is not None:
            raise ValueError(f"A path takes no {name} yet; its fits are short, and max_time keeps what is done.")
    refuse_l1(estimator, "A path")
    begin, e = perf_counter(), clone(estimator).set_params(l2=1.0, warm_start=False)
    with StandardArithmetic(), open_data(e, X, y, sample_weight) as (source, weight, _):
        if source.agreed is not None or not (source.in_memory or source.storage == "files"):
            source.refuse("A path, which needs the scores of all rows,")
        classes, codes, _ = code_labels(source.y)
        refuse_penalty(e, e._loss_for(classes, codes, source), False)
        weight, total = e._weights(weight, source, classes, codes)
        refuse_one_class(codes, weight)
        l2s = penalties_of(l2s, Cs, total)
        settings = optimum_settings(e, 1.0, len(classes), e._deadline(begin))
        solver = MultinomialPath(source, codes.astype(np.int64, copy=False), weight, len(classes), settings)
        times, interruption = settings.l2, None
        try:
            with single_threaded_blas():
                for found in points_of(solver, l2s, largest_l2(source, weight), l2_min, between, times):
                    say(e, f"l2={found.l2 / times:g}: {'' if found.solved else 'no fit, '}objective "
                           f"{found.objective:.6g}, gap {found.gap:.2g}, {solver.passes:.4g} reads so far")
        except TimeUp:
            if not solver.pairs:
                raise TimeoutError(f"max_time={e.max_time} s was over before the first fit; nothing is known.") \
                    from None
        except KeyboardInterrupt as stop:
            if not solver.pairs:
                raise
            interruption = Deferred(stop)
        solver.let_go()
    ends = [pair.l2 / times for pair in (solver.pairs.pairs[0], solver.pairs.pairs[-1])]
    if l2s is None:
        l2s = spaced(*ends, n_l2s) if ends[0] > ends[1] else ends[:1]
    path = SLNDPath(e, np.asarray(l2s), solver, classes)
    if interruption is not None:
        ended = interruption.taken()
        ended.path = path
        raise ended
    warn_of(shortfall_of(path, solver, e, settings.tol))
    return path


def points_of(solver, l2s, largest, l2_min, between, times):
    """Yield what is `Found`, while the path is fitted."""
    if l2s is None:
        least = None if l2_min is None else l2_min * times
        yield from solver.intervals(max(largest, least or 0.0), least)
    elif between:
        yield from solver.intervals(l2s[0] * times, l2s[-1] * times)
    else:
        yield from (found for _, found in solver.along(l2s * times))


def shortfall_of(path, solver, estimator, tol):
    """A sentence on penalties that fell short of ``tol``, or None."""
    proven = path.gaps <= tol
    if proven.all():
        return None
    why = f"max_time={estimator.max_time} s" if solver.stopped == "max_time" else solver.stopped
    far = "none" if not proven.any() else f"{int(proven.sum())}"
    return (f"The path stopped at {why}: {far} of {len(path)} penalties are proven to tol={tol:g}; the largest gap is "
            f"{path.gaps.max():.1e}. Weights are those of the best fits so far.")
