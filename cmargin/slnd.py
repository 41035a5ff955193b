"""SLND and BSN: stochastic Newton descent with a low-rank inverse Hessian, for many classes."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from cmargin._core.losses._losses import CALIBRATED
from cmargin._core.util._openmp import effective_n_threads
from cmargin._estimators.by_parts import TrainedByParts, priors
from cmargin._estimators.docs import Callback, CheckpointFile, ClassWeight, RandomState, described_by
from cmargin._estimators.in_units import InUnits, in_units
from cmargin._estimators.labels import (
    encode_labels,
    rows_of_weight,
    signs_met,
    with_constant_classes,
    without_full_columns,
)
from cmargin._estimators.progress import note_of
from cmargin._estimators.slnd_fit import (
    ONE_CLASS,
    automatic_loss,
    check_penalty,
    fit_optimum,
    is_penalised,
    not_invertible,
    refuse_l1_over_places,
    refuse_penalty,
    ridge_if_better,
    run_by_batches,
    run_over_places,
    shortfall,
)
from cmargin._estimators.slnd_path import SLNDPath, fit_slnd_path
from cmargin._estimators.validation import COUNT, INT_MAX, POSITIVE, InvalidParameterError, check_parameter
from cmargin._runtime.blas_threads import single_threaded_blas
from cmargin._runtime.checkpoint import NO_CHECKPOINTER
from cmargin.data.memory.stochastic_rows import NonFiniteCurvature
from cmargin.solvers.per_class import constant_score
from cmargin.solvers.sgd.class_lists import ClassLists
from cmargin.solvers.sgd.low_rank_newton import Settings, Start, train
from cmargin.solvers.sgd.multinomial import MultinomialRun
from cmargin.solvers.slnd_plan import TrialStats, chosen_by_trials


class SLNDClassifier(TrainedByParts):
    """Linear classifier trained by stochastic Newton descent with a low-rank inverse Hessian, for many classes.

    The multinomial loss (not in the papers) minimises ``(1/n) sum_i s_i (ln sum_c exp(h_c(x_i)) - h_{y_i}(x_i))``
    with h_c(x) = <w_c, x> + b_c, by ``W -= eta G' (X - centre) H*`` over random batches, G = s (softmax - indicator).
    The other losses minimise, for every class c against the rest, ``(1/n) sum_i s_i F(y_ic h_c(x_i))`` by
    ``w += eta s_i y_i p_i H* x_i``, p_i = -F'(y_i h(x_i)). H* is the best low-rank inverse of the second moment
    ``H = (1/m') sum_i c_i x_i x_i'`` (SLND eq. 8-11).

    Parameters
    ----------
    loss : {"auto", "multinomial", "logistic", "calibrated_hinge", "squared"}, default="auto"
        "auto": multinomial for three and more classes that exclude each other (and for two with ``l2``), logistic
        otherwise, and where the softmax of thousands of classes would cost too much; ``verbose`` says so. The last
        three are one-vs-rest, as in the papers.
    rank : "auto" or int in [1, n_features], default="auto"
        Eigenpairs that H* inverts. "auto": the knee of the spectrum where the tail is scaled, else the eigenvalues of
        at least 1e-4 of the largest. Multinomial: that or 1, whichever does better on held-out rows.
    tail : {"scale", "drop"}, default="scale"
        H* outside its eigenvectors: "scale" divides by the next eigenvalue, "drop" is zero (the paper).
    hessian_samples : int or None, default=None
        Rows m' behind H. None: 1000, or 20 per rank with ``tail="drop"``.
    curvature : {"loss", "covariance"}, default="loss"
        c_i: the loss's curvature at the weights reached (SLND), or 1 (BSN).
    hessian_refresh : int or None, default=None
        Estimate H anew after so many passes. A pass then costs about ``rank`` times as much.
    negatives_per_positive : float or None, default=9
        Negatives that a class draws in a pass for every positive; the paper takes 1. None: all rows. Not used by the
        multinomial loss.
    step_size : "auto", "theory" or float, default="auto"
        Relative to the curvature in whitened coordinates: eta = step_size / (F''(0) mean(z'z)) / pass; multinomial:
        step_size / (mean(z'z) + 1) / pass. "auto": chosen on held-out rows; multinomial fits also choose their number
        of passes and the scale of the scores so. "theory": SLND eq. (23).
    average : bool, default=True
        Return the mean of the iterates, late ones weighing more, instead of the last. Not used by "theory".
    max_passes : int, default=10
        Passes over the rows at most, not counting those that follow once held-out rows join the training.
    tol : float or None, default=None
        Stop when the risk falls by less than ``tol * |F(0)|`` in a pass. With ``l2``: the relative duality gap to be
        certified; None: 1e-4.
    l2 : float, default=0.0
        Multinomial: add ``l2/2 |coef_|^2`` and go to the certified optimum by Newton steps;
        ``sklearn.linear_model.LogisticRegression`` has ``l2 = 1 / (C n)``. ``rank`` to ``max_passes`` and `partial_fit`
        are not used then, and ``coef_`` is float64.
    fit_intercept : bool, default=True
        Fit an intercept, without penalty. Without one it is 0.
    class_weight : dict, list of dicts, array, "balanced" or None, default=None
        Weight of the rows of each class, in every one-vs-rest problem, as sample weights would have it. "balanced":
        classes weigh alike. For an indicator: {0: ..., 1: ...}, of numbers or of one for each label; a list of such
        dicts; an array (n_labels, 2) of both weights; or "balanced"; each label then has a preconditioner of its own,
        which is not kept.
    warm_start : bool, default=False
        Go on from the last fit's weights and preconditioner.
    max_time : float or None, default=None
        Seconds after which `fit` returns what it has.
    random_state : int, RandomState or None, default=None
        Draws the rows of H, of trials and of every pass. None: other ones in every fit.
    n_jobs : int or None, default=None
        Threads. None: the processors that the process may use; -1: all. The result is the same to the bit.
    verbose : bool or int, default=0
        1: print a line after every pass; 2: also which ranks and steps are tried, what follows the passes, and why.
    callback : callable or None, default=None
        ``callback(self)`` after every pass, fitted attributes set; a true answer stops the fit.
    checkpoint : path, `cmargin.Checkpoint` or None, default=None
        File that keeps the state of `fit`: the same call in another process resumes from it, to the same bits. It is
        removed when a fit ends, and stays where time or an interrupt ended it. `partial_fit` keeps none.
    l1 : float, default=0.0
        Multinomial: add ``l1 sum |coef_|`` and go to the certified optimum, as with ``l2``, which may be 0 then; rows
        in memory (with ``l2`` alone: all but on a device). LogisticRegression has ``l1 = l1_ratio / (C n)`` and ``l2 =
        (1 - l1_ratio) / (C n)``. Of two classes the one row of weights is the difference of two, as there.
    l1_ratio : float or None, default=None
        In place of ``l1``, with an ``l2``, which stays what it is: ``l1 = l2 * l1_ratio / (1 - l1_ratio)``, below 1.
    groups : {"classes"} or None, default=None
        "classes": the weights of a column in all classes are zero together or not at all, by ``l1`` times the sum of
        the columns' norms in place of absolute values, as glmnet with ``type.multinomial="grouped"``.

    Attributes
    ----------
    classes_ : (n_classes,) array
        Labels, ascending; of an indicator, the numbers of its columns.
    loss_ : str
        The loss that "auto" stood for.
    coef_ : (n_problems, n_features) array, C order, dtype of X; one problem for two classes
        Weights in the units of X.
    intercept_ : (n_problems,) array
        Intercepts of the scores.
    eigenvalues_ : (n_values,) array
        The leading eigenvalues of H that were computed, descending.
    preconditioner_ : LowRankInverse
        H*, from which ``warm_start`` and `partial_fit` go on; over its ``columns`` alone where most are empty.
    rank_ : int
        Eigenpairs that H* inverts.
    step_size_ : float or None
        The relative step used.
    class_prior_ : (n_problems,) array
        Share of the positives, by weight.
    sampled_prior_ : (n_problems,) array
        Share of the positives among the rows visited.
    objective_, duality_gap_ : float
        With ``l2`` or ``l1``: the objective, and its certified relative distance from the minimum.
    n_iter_ : int
        Passes done; Newton steps with ``l2`` or ``l1``.
    n_passes_ : float
        Reads of the data, in reads of all of it, H and the whitening included.
    history_ : dict of arrays, one entry a pass
        pass, class (-1: all), passes (reads of the data), seconds, seconds_hessian, seconds_whiten, seconds_steps (all
        cumulative), objective (mean loss before each step), error (share of rows that were wrong then), step, visits.
        With ``l2``, one entry a Newton step: class, passes, seconds, objective, gap (an estimate), products; with
        ``l1`` one each time that all columns are read, its gap certified, products those of the models in between.
    n_features_in_ : int
        Columns of X in the last fit.
    feature_names_in_ : (n_features,) array
        Where X had names of columns.

    Notes
    -----
    One-vs-rest: `scores` and `posterior` hold under the prior of the rows visited; `decision_function` and all
    predictions correct for it. Multinomial: `decision_function` and `scores` are h_c, probabilities are its softmax.

    References
    ----------
    W. Bel Haj Ali, M. Barlaud, R. Nock, "Minimizing calibrated loss using stochastic low-rank Newton descent for large
    scale image classification", 2013 (SLND); the same authors, "Boosting stochastic Newton descent for bigdata large
    scale classification", 2014 (BSN).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from cmargin import SLNDClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> SLNDClassifier(random_state=3).fit(X, y).score(X, y) > 0.94
    True
    """

    def __init__(self, *, loss: str = "auto", rank: int | str = "auto", tail: str = "scale",
                 hessian_samples: int | None = None, curvature: str = "loss", hessian_refresh: int | None = None,
                 negatives_per_positive: float | None = 9, step_size: float | str = "auto", average: bool = True,
                 max_passes: int = 10, tol: float | None = None, l2: float = 0.0, fit_intercept: bool = True,
                 class_weight: ClassWeight = None, warm_start: bool = False, max_time: float | None = None,
                 random_state: RandomState = None, n_jobs: int | None = None, verbose: int = 0,
                 callback: Callback = None, checkpoint: CheckpointFile = None, l1: float = 0.0,
                 l1_ratio: float | None = None, groups: str | None = None) -> None:
        self.loss = loss
        self.rank = rank
        self.tail = tail
        self.hessian_samples = hessian_samples
        self.curvature = curvature
        self.hessian_refresh = hessian_refresh
        self.negatives_per_positive = negatives_per_positive
        self.step_size = step_size
        self.average = average
        self.max_passes = max_passes
        self.tol = tol
        self.l2 = l2
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.max_time = max_time
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback
        self.checkpoint = checkpoint
        self.l1 = l1
        self.l1_ratio = l1_ratio
        self.groups = groups

    _losses = ("auto", "multinomial", *CALIBRATED)
    _joint = MultinomialRun          # what trains all classes at once
    _takes_places = True
    _signs = None                    # of an indicator: which of its labels are constant, as of `signs_of`
    _recipe = _asked_step = _streams = None                      # of the last fit; none where weights were set by hand
    _passes_total = 0
    _penalised = True                # l2 > 0 is a penalty, and the fit goes to the optimum
    _in_units, _columns = True, None     # columns of very different size are made alike inside; by what, the last time

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = self.loss != "multinomial"
        return tags

    @property
    def _last_intercept(self):
        """Without those that say a constant label: from so far out, steps would take long to come back."""
        intercept = super()._last_intercept
        known = self._signs is not None and len(self._signs) == len(intercept)
        return np.where(self._signs, 0.0, intercept) if known else intercept

    @property
    def _keeps_columns(self):
        """Going on needs the columns of the last fit."""
        return self._goes_on and hasattr(self, "n_features_in_")

    def _refuse_over_places(self, how):
        if self.step_size == "theory":
           raise ValueError(f"{type(self).__name__}: step_size='theory' does not go {how} yet.")
        refuse_l1_over_places(self, how)

    def _train_over_places(self, source, begin, checkpointer):
        agreed = source.agreed
        labels = agreed.classes, None if agreed.multilabel else np.empty(0, np.int64), None
        loss = self._loss_for(*labels[:2], source, self._loss_trained if self._goes_on else None)
        if not agreed.multilabel and np.count_nonzero(agreed.class_weights) < 2:
           raise ValueError(ONE_CLASS)
        start = self._go_on(source, labels) if self._goes_on else None
        positive = agreed.class_weights if len(agreed) > 1 or agreed.multilabel else agreed.class_weights[1:]
        self._check_rank(source.n_features)
        shares, run = run_over_places(self, source, loss, positive)
        if agreed.multilabel:
           self._warn_of_constant(agreed.signs)
        about = self._about(shares, None, agreed.classes, agreed.multilabel, loss, signs=agreed.signs)
        if is_penalised(self):
           refuse_penalty(self, loss, False)
           return fit_optimum(self, source, None, None, about, begin, checkpointer)
        units = in_units(self, source, self._deadline(begin), start)
        rows = units.source.stochastic_rows(None)
        return self._run_on(rows, units, shares, None, about, run, begin, start, self.max_passes, False, checkpointer)

    def _train(self, source, sample_weight, begin, checkpointer):
        if source.agreed is not None:
           return self._train_over_places(source, begin, checkpointer)
        labels = encode_labels(source.y)
        start = self._go_on(source, labels) if self._goes_on else None
        return self._train_on(source, labels, sample_weight, begin, start, self.max_passes, checkpointer=checkpointer)

    def path(self, X: Any, y: Any, sample_weight: Any = None, *, l2s: Sequence[float] | None = None,
             Cs: Sequence[float] | None = None, n_l2s: int = 100, l2_min: float | None = None,
             between: bool = False) -> SLNDPath:
        """Weights at every penalty of a path, by this estimator's other parameters; the estimator stays as it is.

        Parameters are those of `cmargin.slnd_path`.

        Returns
        -------
        SLNDPath
        """
        return fit_slnd_path(self, X, y, sample_weight, l2s=l2s, Cs=Cs, n_l2s=n_l2s, l2_min=l2_min, between=between)

    def _check_parameters(self):
        check_parameter(self, "loss", self.loss, options=self._losses)
        check_parameter(self, "rank", self.rank, options=("auto",), integer=(1, INT_MAX, "[1, n_features]"))
        check_parameter(self, "tail", self.tail, options=("drop", "scale"))
        check_parameter(self, "hessian_samples", self.hessian_samples, integer=COUNT, none=True)
        check_parameter(self, "curvature", self.curvature, options=("loss", "covariance"))
        check_parameter(self, "hessian_refresh", self.hessian_refresh, integer=COUNT, none=True)
        check_parameter(self, "negatives_per_positive", self.negatives_per_positive, real=POSITIVE, none=True)
        check_parameter(self, "step_size", self.step_size, options=("auto", "theory"), real=POSITIVE)
        check_parameter(self, "max_passes", self.max_passes, integer=COUNT)
        check_parameter(self, "tol", self.tol, real=POSITIVE, none=True)
        if self._penalised:
           check_penalty(self)
        check_parameter(self, "average", self.average, flag=True)
        self._check_shared()
        if self.step_size == "theory" and self.hessian_refresh is not None:
           raise InvalidParameterError(
                "step_size='theory' cannot be combined with hessian_refresh; use a number or 'auto'.")
        if self.step_size == "theory" and self.loss == "multinomial":
           raise InvalidParameterError(
                "step_size='theory' is one of a calibrated loss; use a number or 'auto' with loss='multinomial'.")

    def _loss_for(self, classes, codes, source=None, before=None):
        """The loss that is trained on the rows of ``source``; None: on as few as it takes.

        ``before``: that of the fit to go on from, which other rows do not change.
        """
        if self.loss == "multinomial" and codes is None:
           raise ValueError("loss='multinomial' takes classes that exclude each other, not a label indicator; use "
                            "loss='logistic' there.")
        if self.loss != "auto":
           return self.loss
        return automatic_loss(self, classes, codes, source, before)

    def _go_on(self, source, labels, decay="pass", joining=False):
        """Start from the weights there are; their preconditioner and step serve on where nothing else is asked for.

        ``joining``: whether there may be new classes among those of ``labels``, beside all of the last fit.
        """
        classes, codes, _ = labels
        more = joining and len(classes) > len(self.classes_)
        self._check_last_fit(source, self.classes_ if more else classes, codes is None, "going on")
        inverse, step = getattr(self, "preconditioner_", None), None
        if more and inverse is not None and (inverse.n_groups > 1 or getattr(inverse, "gain", None) is not None):
           inverse = None                       # one for each of the classes there were
        loss = self._loss_for(classes, codes, source, self._loss_trained)
        if inverse is None or self._recipe != self._recipe_now(loss) or inverse.eigenvectors.dtype != source.dtype:
           inverse = None
        else:
           inverse = replace(inverse.of_all(source.n_features), sparse_rows=source.sparse)
           step = self.step_size_ if self._asked_step == self.step_size else None
        if step is None and decay == "call" and self.step_size == "auto":
           # tried on a batch without the new classes, or from weights set by hand, the smallest step would be best
           _, step = chosen_by_trials(TrialStats(loss == "multinomial", False), ())
        streams = None if self._streams is None or more else self._streams.copy()         # none after an optimum
        coef, intercept = self._last_coef, self._last_intercept
        if more:
           coef, intercept = self._weights_so_far(classes, source.n_rows)
        return Start(coef.astype(source.dtype), intercept, inverse, streams, step, self._passes_total, decay)

    def _recipe_now(self, loss):
        return self.rank, self.tail, self.hessian_samples, self.curvature, loss, self.fit_intercept

    def _train_on(self, source, labels, sample_weight, begin, start, max_passes, in_parts=False,
                  checkpointer=NO_CHECKPOINTER):
        classes, codes, Y = labels
        self._check_rank(source.n_features)
        weight, _ = self._weights(sample_weight, source, classes, codes)
        source, Y, codes, weight = rows_of_weight(source, Y, codes, weight)
        signs = None
        if codes is None and not in_parts:
           signs = signs_met(Y, weight)
           self._warn_of_constant(signs)
           Y = without_full_columns(Y, signs)
        elif not in_parts and ((Y.getnnz(axis=0) == source.n_rows).any() or Y.nnz == 0):
           raise ValueError(ONE_CLASS)
        lists = ClassLists.from_indicator(Y, self.negatives_per_positive)
        loss = self._loss_for(classes, codes, source, None if start is None else self._loss_trained)
        about = self._about(lists, weight, classes, codes is None, loss, in_parts and start is not None, signs)
        if is_penalised(self):
           refuse_penalty(self, loss, in_parts)
           units, result = InUnits(source), fit_optimum(self, source, codes, weight, about, begin, checkpointer)
        else:
           units = in_units(self, source, self._deadline(begin), start)
           if start is None and not in_parts and self._run() is None:
                units = units.without_empty_columns(self, lists.n_classes)
           result = self._run_on_lists(
                units, lists, Y, codes, weight, about, begin, start, max_passes, in_parts, checkpointer)
        if start is None and not in_parts:
           ridge_if_better(self, result[0], result[2], source, Y, weight, units)
        return result

    def _run_on_lists(self, units, lists, Y, codes, weight, about, begin, start, max_passes, in_parts, checkpointer):
        run, loss = self._run(), about["loss_"]
        if loss == "multinomial":
           run = partial(self._joint, truth=codes.astype(np.int64, copy=False), n_classes=len(about["classes_"]))
        rows = units.source.stochastic_rows(effective_n_threads(self.n_jobs))
        if rows.by_batches:
           run = run_by_batches(self, units.source, run, loss, Y)
        return self._run_on(rows, units, lists, weight, about, run, begin, start, max_passes, in_parts, checkpointer)

    def _check_rank(self, n_features):
        if self.rank != "auto" and self.rank > n_features:
           raise InvalidParameterError(
                f"The 'rank' parameter of {type(self).__name__} must be an int in the range "
                f"[1, n_features={n_features}]. Got {self.rank} instead.")

    def _run_on(self, rows, units, lists, weight, about, run, begin, start, max_passes, in_parts, checkpointer):
        """What `_train` returns, by ``run`` on ``rows``, whatever they are."""
        loss = about["loss_"]
        settings = Settings(
            loss, self.rank, self.tail, self.hessian_samples, self.curvature, self.hessian_refresh, self.step_size,
            self.average, max_passes, self.tol, self.fit_intercept, self._deadline(begin), units.interrupted,
            note_of(self))
        start = units.start(start)
        before = start.passes_done if start else 0
        store = partial(self._store, units=units, about=about, before=before, in_parts=in_parts)
        try:
           # a number beyond the range of doubles is reported once, by a warning of ours
           with single_threaded_blas(), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                entropy = self._draw_seed() if checkpointer.found is None else checkpointer.found["entropy"]
                fit, interruption = train(rows, lists, weight, settings, entropy, start,
                                          self._watch(store, self._line), run, checkpointer)
        except NonFiniteCurvature as error:
           raise ValueError(not_invertible(self, error, rows, about)) from error
        return fit, interruption, store, partial(shortfall, self, units.said)

    def _run(self):
        """What makes the `Run` of a fit; None: the low-rank one."""
        return None

    def _about(self, lists, weight, classes, multilabel, loss, add=False, signs=None):
        """What is known of the classes, stored only along with weights.

        ``add``: over all calls of `partial_fit`; ``signs``: of the labels of an indicator, as of `signs_of`.
        """
        counts = np.stack(lists.shares(weight))                    # weight of all rows, of the positives, of the visits
        if add and self._counts is not None:
           counts = counts + self._counts_so_far(classes)
        if signs is not None:
           counts[1:, signs > 0] = counts[0, signs > 0]
        return {"loss_": loss, "classes_": classes, "_multilabel": multilabel, "_counts": counts, "_signs": signs,
                "_nothing_yet": False, **priors(counts, multilabel, loss, signs)}

    def _store(self, fit, units, about, before, in_parts):
        """Everything a fit leaves, at once."""
        for of_an_optimum in ("objective_", "duality_gap_"):           # of an earlier fit with l2
           vars(self).pop(of_an_optimum, None)
        spectrum = {"eigenvalues_": fit.spectrum} if len(fit.spectrum) else {}
        (W, bias), signs = units.weights(fit), about["_signs"]
        if signs is not None:
           W, bias = with_constant_classes(W, bias, signs, constant_score(about["loss_"], (signs + 1) / 2))
        vars(self).update(
            about, **spectrum, _columns=units.columns,
            coef_=np.ascontiguousarray(W), intercept_=bias.astype(W.dtype),
            preconditioner_=units.inverse(fit), rank_=0 if fit.inverse is None else fit.inverse.rank,
            _recipe=self._recipe_now(about["loss_"]), step_size_=fit.step, _asked_step=self.step_size,
            _streams=fit.streams, _passes_total=before + fit.passes,
            n_iter_=before + fit.passes if in_parts else fit.passes, n_passes_=float(fit.reads),
            history_={name: np.asarray(column) for name, column in fit.history.items()},
        )

    def _line(self, last):
        return (f"pass {last['pass']}: risk {last['objective']:.5f}, error {last['error']:.4f}, "
                f"{last['seconds']:.2f} s")


@described_by(SLNDClassifier)
class BSNClassifier(SLNDClassifier):
    """Boosting Stochastic Newton descent: SLND with one preconditioner for all classes, the inverse covariance.

    `SLNDClassifier` with ``curvature="covariance"``, c_i = 1 in H (BSN eq. 15). Until H is estimated anew
    (``hessian_refresh``) both make the same steps. References are there.

    Parameters
    ----------
    curvature : {"covariance", "loss"}, default="covariance"
        c_i: 1 (BSN), or the loss's curvature at the weights reached (SLND).
    loss, rank, tail, hessian_samples, hessian_refresh, negatives_per_positive, step_size, average, max_passes, tol, l2
        As in `SLNDClassifier`.
    fit_intercept, class_weight, warm_start, max_time, random_state, n_jobs, verbose, callback, checkpoint
        As in `SLNDClassifier`.
    l1, l1_ratio, groups
        As in `SLNDClassifier`.

    Attributes
    ----------
    classes_, loss_, coef_, intercept_, eigenvalues_, preconditioner_, rank_, step_size_, class_prior_, sampled_prior_
        As in `SLNDClassifier`.
    objective_, duality_gap_, n_iter_, n_passes_, history_, n_features_in_, feature_names_in_
        As in `SLNDClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from cmargin import BSNClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> BSNClassifier(random_state=3).fit(X, y).score(X, y) > 0.94
    True
    """

    def __init__(self, *, loss: str = "auto", rank: int | str = "auto", tail: str = "scale",
                 hessian_samples: int | None = None, curvature: str = "covariance", hessian_refresh: int | None = None,
                 negatives_per_positive: float | None = 9, step_size: float | str = "auto", average: bool = True,
                 max_passes: int = 10, tol: float | None = None, l2: float = 0.0, fit_intercept: bool = True,
                 class_weight: ClassWeight = None, warm_start: bool = False, max_time: float | None = None,
                 random_state: RandomState = None, n_jobs: int | None = None, verbose: int = 0,
                 callback: Callback = None, checkpoint: CheckpointFile = None, l1: float = 0.0,
                 l1_ratio: float | None = None, groups: str | None = None) -> None:
        super().__init__(
            loss=loss, rank=rank, tail=tail, hessian_samples=hessian_samples, curvature=curvature,
            hessian_refresh=hessian_refresh, negatives_per_positive=negatives_per_positive, step_size=step_size,
            average=average, max_passes=max_passes, tol=tol, l2=l2, fit_intercept=fit_intercept,
            class_weight=class_weight, warm_start=warm_start, max_time=max_time, random_state=random_state,
            n_jobs=n_jobs, verbose=verbose, callback=callback, checkpoint=checkpoint, l1=l1, l1_ratio=l1_ratio,
            groups=groups)
