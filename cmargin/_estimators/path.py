"""A path of penalties of `SmSVMClassifier`: what is asked for, how it is fitted, and what is known of it."""

from time import perf_counter

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from cmargin._core.util._fp_control import StandardArithmetic
from cmargin._estimators.apart import check_list, is_indicator, weights_differ
from cmargin._estimators.base import open_data
from cmargin._estimators.by_column import refuse_by_column
from cmargin._estimators.labels import encode_labels
from cmargin._estimators.progress import say, warn_at_caller, warn_of
from cmargin._estimators.pruned import refuse_stored
from cmargin._estimators.smsvm_fit import l1_over_l2, l2_of, occurring_columns, settings_of, threads_of
from cmargin._estimators.validation import NOT_NEGATIVE, POSITIVE, given_penalties, is_real
from cmargin._runtime.blas_threads import single_threaded_blas
from cmargin._runtime.clock import RunClock
from cmargin._runtime.deferred import Deferred
from cmargin.data.arrays import plain
from cmargin.solvers.path import PathSolver
from cmargin.solvers.path_range import find_range, prove_between, spaced
from cmargin.solvers.penalty import ElasticNet


class SmSVMPath:
    """Weights of `SmSVMClassifier` at every penalty of a path, each with its certificate; made by `smsvm_path`.

    Parameters
    ----------
    estimator : SmSVMClassifier
        Whose parameters the fits had.
    l2s, l1s : (n_l2s,) arrays
        The penalties, l2 falling.
    solver : PathSolver
        After the fits.
    labels : Labels
        The classes.
    n_features : int
        Columns of X.
    occurring : (n,) array or None
        Those that the fits had; None: all.

    Attributes
    ----------
    l2s, l1s : (n_l2s,) arrays
        Weights of the quadratic penalty, falling, and of the l1 penalty.
    classes_ : array
        As in `SmSVMClassifier`.
    coefs : (n_l2s, n_problems, n_features) array
        Weights; n_problems is 1 for two classes. Made anew when it is asked for.
    intercepts : (n_l2s, n_problems) array
        Intercepts of the same points.
    objectives : (n_l2s, n_problems) array
        What the objective of these weights is at most.
    gaps : (n_l2s, n_problems) array
        Relative duality gap that is proven of them.
    fitted_ : (n_l2s, n_problems) array of bool
        Where a fit was made at this very penalty; elsewhere fits at others prove the weights.
    n_nonzero : (n_l2s, n_problems) array
        Columns with a weight other than 0.
    n_fits : int
        Fits, of all problems together.
    n_passes : float
        Reads of the data, the same.
    """

    def __init__(self, estimator, l2s, l1s, solver, labels, n_features, occurring=None):
        self.l2s, self.l1s, self.tol = l2s, l1s, estimator.tol
        self.classes_, self._multilabel = labels.classes, labels.multilabel
        self.n_fits, self.n_passes, self.n_features = solver.n_solved, solver.passes, n_features
        self._estimator, self._pairs, self._occurring = clone(estimator), solver.pairs, occurring
        self._intercept = solver.intercept
        self._points = [[self._certified(pairs, l2, l1) for pairs in self._pairs]
                        for l2, l1 in zip(l2s, l1s, strict=True)]
        self.objectives = self._each(lambda point: point.objective)
        self.gaps = self._each(lambda point: point.gap)
        made = [{(one.l2, one.l1 if one.l2 == 0 else 0.0) for one in pairs.pairs} for pairs in self._pairs]
        self.fitted_ = np.array([[(l2, l1 if l2 == 0 else 0.0) in fits for fits in made]
                                 for l2, l1 in zip(l2s, l1s, strict=True)])

    def __repr__(self):
        worst = float(np.max(self.gaps))
        name, of = self.varied
        return (f"SmSVMPath({len(of)} penalties {name}={of[0]:.3g} ... {of[-1]:.3g}, "
                f"{len(self._pairs)} problem{'s' * (len(self._pairs) > 1)}: {self.n_fits} fits, "
                f"{self.n_passes:.4g} reads, gaps <= {worst:.1e})")

    def __len__(self):
        return len(self.l2s)

    @property
    def varied(self):
        """("l2", `l2s`), or ("l1", `l1s`) of a path without l2."""
        return ("l2", self.l2s) if self.l2s.any() else ("l1", self.l1s)

    def _certified(self, pairs, l2, l1):
        """Where that proves as much as is asked, with l1 the columns of one fit, as others have those of two, and else
        weights evenly between two."""
        first = pairs.certify(l2, l1, "alone" if l1 > 0 else "even")
        return first if first.gap <= self.tol else pairs.certify(l2, l1)

    def _each(self, what):
        return np.array([[what(point) for point in row] for row in self._points])

    def _spread(self, w):
        """(n_features,) weights and the intercept of those of the columns that were kept."""
        n = len(w) - self._intercept
        coef = w[:n]
        if self._occurring is not None:
            coef = np.zeros(self.n_features)
            coef[self._occurring] = w[:n]
        return coef, float(w[n]) if self._intercept else 0.0

    @property
    def coefs(self):
        return np.array([[self._spread(point.w)[0] for point in row] for row in self._points])

    @property
    def intercepts(self):
        return self._each(lambda point: self._spread(point.w)[1])

    @property
    def n_nonzero(self):
        return self._each(lambda point: np.count_nonzero(point.w[:len(point.w) - self._intercept]))

    def n_supports(self, X, y):
        """(n_l2s, n_problems): how many of the rows X of labels y are within their margin or wrong, y h(x) < 1.

        These alone have a dual variable other than 0 with the hinge losses; with the logistic loss all have. A read of
        X for every penalty.
        """
        signs = encode_labels(y, None if self._multilabel else self.classes_)[2].toarray() * 2.0 - 1
        found = np.empty((len(self), len(self._pairs)), np.intp)
        for k, (l2, l1) in enumerate(zip(self.l2s, self.l1s, strict=True)):
            scores = np.asarray(self.at(l2, l1).decision_function(X)).reshape(len(signs), -1)
            found[k] = np.count_nonzero(signs * scores < 1, axis=0)
        return found

    def at(self, l2, l1=None):
        """The weights at any penalty, as a fitted `SmSVMClassifier` that predicts, with what is proven of them.

        Parameters
        ----------
        l2 : float
            Between the least and the largest of ``l2s``; others are answered by the nearest fits, with a larger gap.
        l1 : float or None
            None: the l1 of the path, or what goes with this l2 where it varies.

        Returns
        -------
        SmSVMClassifier
            ``coef_``, ``intercept_``, ``objective_`` and ``duality_gap_`` are those of the weights, by arithmetic from
            the fits that were made. ``duality_gap_`` may be above ``tol`` where ``l2s`` are far apart; give
            ``between=True`` or no ``l2s`` for a path on which it is nowhere.
        """
        if not (is_real(l2, POSITIVE) or (is_real(l2, NOT_NEGATIVE) and l2 in self.l2s)):
            raise ValueError(f"l2 must be a positive number; got {l2!r}")
        if l1 is not None and not is_real(l1, NOT_NEGATIVE):         # which would prove nothing
            raise ValueError(f"l1 must be a number of at least 0; got {l1!r}")
        if l1 is None and not self.l2s.any():
            raise ValueError("A path of l1 alone is asked for an l1: path.at(0, l1).")
        l1 = float(np.interp(-l2, -self.l2s, self.l1s)) if l1 is None else float(l1)
        points = [self._certified(pairs, float(l2), l1) for pairs in self._pairs]
        weights = [self._spread(point.w) for point in points]
        model = clone(self._estimator).set_params(l2=float(l2), C=None, l1=l1, l1_ratio=None)
        vars(model).update(
            classes_=self.classes_, _multilabel=self._multilabel, n_features_in_=self.n_features,
            coef_=np.stack([coef for coef, _ in weights]), intercept_=np.array([bias for _, bias in weights]),
            objective_=np.array([point.objective for point in points]),
            duality_gap_=np.array([point.gap for point in points]))
        return model


# ---------------------------------------------------------------- what is asked for

def asked_for(l2s, Cs, l1, l1_ratio, l1s=None):
    """(name, (n,) l2s, Cs or l1s), or None where penalties are to be chosen; and the function that says an l2's l1."""
    if l1_ratio is not None and not (np.isscalar(l1_ratio) and 0 <= l1_ratio < 1):
        raise ValueError(f"l1_ratio must be in the range [0, 1); got {l1_ratio!r}")
    if l1_ratio is not None and l1:
        raise ValueError(f"Give l1 or l1_ratio, not both; got l1={l1!r} and l1_ratio={l1_ratio!r}.")
    times = 0.0 if l1_ratio is None else l1_over_l2(l1_ratio)

    def l1_of(l2):
        return l1 if l1_ratio is None else times * l2

    named = given_penalties(l2s, Cs)
    if l1s is not None:
        if named is not None or l1_ratio is not None or l1:
            raise ValueError("l1s are of a path without l2: give neither l2s nor Cs, l1 or l1_ratio.")
        named = given_penalties(l1s, None, "l1s")
    if named is None:
        return None, l1_of
    name, given = named
    wrong = ~(given >= 0 if name == "l2s" else given > 0) | ((given == np.inf) & (name != "Cs"))
    if wrong.any():
        raise ValueError(f"{name} must be {'finite and at least 0' if name == 'l2s' else 'positive'}; got "
                         f"{given[wrong][:3]}.")
    return (name, given), l1_of


def falling_penalties(asked, total_weight, l1_of):
    """(n,) l2s or l1s, falling, each once, of what was `asked_for`; None for None. Beside an l1_ratio a C says l2 + l1.
    """
    if asked is None:
        return None
    name, given = asked
    times = l1_of(1.0) - l1_of(0.0)              # what an l2 of 1 brings along
    l2 = given if name != "Cs" else np.array([l2_of(C, total_weight) / (1 + times) for C in given])
    if name != "l1s" and not l2.all() and not l1_of(0.0) > 0:
        raise ValueError(f"{name} holds a penalty of 0, for which there is no certificate without l1 > 0; leave it out "
                         "or give l1.")
    falling = np.unique(l2)[::-1]
    if len(falling) < len(l2):
        warn_at_caller(f"{name} holds {len(l2) - len(falling)} of its penalties more than once; each is solved once.")
    if not np.array_equal(l2[np.sort(np.unique(l2, return_index=True)[1])], falling):
        warn_at_caller(f"{name} is not in the order of falling {'l1' if name == 'l1s' else 'l2'}; the path is.")
    return falling


def refuse_what_a_path_has_no_use_for(estimator, source, sample_weight):
    for name in ("callback", "checkpoint"):
        if getattr(estimator, name) is not None:
            raise ValueError(f"A path takes no {name} yet; its fits are short, and max_time keeps what is done.")
    if estimator.multi_class != "ovr":
        raise ValueError(f"A path needs multi_class='ovr'; got {estimator.multi_class!r}.")
    if estimator.line_search != "exact":
        raise ValueError(f"A path needs line_search='exact'; got {estimator.line_search!r}.")
    if getattr(estimator, "groups", None) is not None:
        raise ValueError("A path needs groups=None: what fits prove of other penalties is of single columns.")
    if source.agreed is None:
        check_list(estimator, is_indicator(source.y))
        if weights_differ(estimator, source, sample_weight):
            raise ValueError("A path needs one weight a row for all problems: neither sample_weight by label, nor "
                             "class_weight of an indicator, nor class_weight_on='positives'.")


# ---------------------------------------------------------------- how it is fitted

def fit_path(estimator, X, y, sample_weight=None, *, l2s=None, Cs=None, n_l2s=100, l2_min=None, l1_ratio=None,
             between=False, l1s=None, comm=None):
    """`SmSVMPath`, by a copy of ``estimator``; parameters are those of `cmargin.smsvm_path`."""
    begin, e, asked = perf_counter(), clone(estimator).set_params(l2=None, C=None, warm_start=False), []

    def check():
        if isinstance(n_l2s, bool) or not isinstance(n_l2s, (int, np.integer)) or n_l2s < 2:
            raise ValueError(f"n_l2s must be a whole number, at least 2; got {n_l2s!r}.")
        if l2_min is not None and not is_real(l2_min, POSITIVE):
            raise ValueError(f"l2_min must be a positive number or None; got {l2_min!r}.")
        e._check_parameters()
        refuse_by_column(e, "A path")
        refuse_stored(e, "A path")
        asked.extend(asked_for(l2s, Cs, e.l1, e.l1_ratio if l1_ratio is None else l1_ratio, l1s))
        if between and l1s is not None:
            raise ValueError("between=True needs l2s: fits with l1 alone prove nothing between their penalties.")

    shortfall = None
    with StandardArithmetic(), open_data(e, X, y, sample_weight, comm, check) as (source, weight, _):
        if source is not None:                   # elsewhere than on rank 0 it is None, and the path rank 0's
            refuse_what_a_path_has_no_use_for(e, source, weight)
            e.path_, shortfall = _fitted(e, source, weight, begin, (*asked, n_l2s, l2_min, between))
            e.coef_ = ()                         # by which ranks see that there is something to be shared
    warn_of(shortfall)
    return e.path_


def _fitted(e, source, weight, begin, asked):
    asked, l1_of, n_l2s, l2_min, between = asked
    if source.agreed is None:
        labels, weights, total_weight = e._labels_and_weights(source, weight)
    else:
        labels, weights, total_weight = source.agreed, None, source.agreed.total_weight
    l2s, l1s = falling_penalties(asked, total_weight, l1_of), None
    if asked is not None and asked[0] == "l1s":
        l2s, l1s = np.zeros(len(l2s)), l2s
    n_features, occurring = source.n_features, occurring_columns(source, ElasticNet(1.0, 0.0))
    if occurring is not None:
        source = source.of_columns(occurring)
    clock = RunClock(None if e.max_time is None else begin + e.max_time)
    source.between_chunks = clock.watch
    n_threads = threads_of(e, source, len(labels))
    seeds = None if e.random_state is None else check_random_state(e.random_state).randint(2**31 - 1, size=len(labels))
    least = l2_min if l2s is None else l2s[-1]
    solver = PathSolver(source, labels, weights, loss=e._loss(), intercept=e.fit_intercept,
                        penalize_intercept=e.penalize_intercept,
                        settings=settings_of(e, clock=clock, between=lambda: "max_time" if clock.late else None),
                        n_threads=n_threads, seeds=seeds, one_by_one=len(labels) < max(2, n_threads),
                        l2_min=least or None, keeps_rows=len(labels) == 1, note=_note(e, labels))
    interruption = None
    try:
        with single_threaded_blas():
            if l2s is None:
                largest, least = find_range(solver, l2_min, l1_of)
                prove_between(solver, largest, least, l1_of)
                l2s = spaced(largest, least, n_l2s) if largest > least * (1 + 1e-9) else np.array([least])
            else:
                l1s = np.array([l1_of(l2) for l2 in l2s]) if l1s is None else l1s
                solver.solve_all(l2s, l1s, between)
                if between and len(l2s) > 1:
                    prove_between(solver, l2s[0], l2s[-1], l1_of)
    except FloatingPointError:
        raise ValueError("X holds values so large that sums of their squares overflow; scale the features.") from None
    except KeyboardInterrupt as stop:
        if not all(solver.pairs):
            raise
        interruption = Deferred(stop)
        l2s = spaced(solver.pairs[0].pairs[0].l2, solver.pairs[0].pairs[-1].l2, n_l2s) if l2s is None else l2s
    l1s = np.array([l1_of(l2) for l2 in l2s]) if l1s is None else l1s
    try:
        path, shortfall = _what_is_known(e, l2s, l1s, solver, labels, n_features, occurring)
    except KeyboardInterrupt as stop:            # the rest is arithmetic: it is not lost so late
        interruption = Deferred(stop)
        path, shortfall = _what_is_known(e, l2s, l1s, solver, labels, n_features, occurring)
    if interruption is not None:
        ended = interruption.taken()
        ended.path = path
        raise ended
    return path, shortfall


def _note(e, labels):
    """Prints a line a fit, or None."""
    def note(c, penalty, result):
        name = f"class {plain(labels.classes[labels.of_problem(c)])!r}: " if len(labels) > 1 else ""
        say(e, f"{name}{penalty}: {result.passes:.4g} reads, objective {result.objective:.6g}, gap {result.gap:.2g}")

    return note if e.verbose else None


def _what_is_known(e, l2s, l1s, solver, labels, n_features, occurring):
    """The path, and a sentence on penalties that fell short of tol, or None."""
    if not all(solver.pairs):
        raise TimeoutError(f"max_time={e.max_time} s was over before the first fit of every class; nothing is known.")
    path = SmSVMPath(e, l2s, l1s, solver, labels, n_features, occurring)
    proven = (path.gaps <= e.tol).all(axis=1)
    if proven.all():
        return path, None
    why = f"max_time={e.max_time} s" if solver.stopped else f"max_passes={e.max_passes:g}"
    name, of = path.varied
    far = "none" if not proven.any() else f"{int(proven.sum())}, of {name} down to {of[proven][-1]:.3g},"
    return path, (f"The path stopped at {why}: {far} of {len(l2s)} penalties are proven to tol={e.tol:g}; the largest "
                  f"gap is {path.gaps.max():.1e}. Weights are those of the best fits so far.")
