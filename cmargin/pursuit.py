"""Margin pursuit: a linear classifier that wants every margin near one level, neither below nor far above it."""

from cmargin._estimators.docs import Callback, CheckpointFile, ClassWeight, RandomState, described_by, example
from cmargin._estimators.one_vs_rest import LinearOneVsRest
from cmargin._estimators.validation import NOT_NEGATIVE, POSITIVE, InvalidParameterError, check_parameter
from cmargin.solvers.first_order.margin_pursuit import GradientDescent, ProjectedSGD, Start
from cmargin.solvers.newton.pursuit_newton import NewtonClasses
from cmargin.solvers.problem import PursuitSettings


class MarginPursuitClassifier(LinearOneVsRest):
    """Margin pursuit, one-vs-rest: margins are drawn to a level γ by Catoni's influence function.

    For every class c, with margins ``z_i = y_ic (<w_c, x_i> + b_c)``::

        Q(w) = (1/n) sum_i s_i s² ρ((γ - z_i)/s) + (l2/2) |w|²          (margin pursuit, eq. 5)

    ρ is quadratic near 0 and linear beyond √2: a margin far from the level, on either side, pulls with a bounded
    force. Q is convex; its surrogate risk bounds the 0-1 risk by `cmargin.margins.psi_inverse`.

    Parameters
    ----------
    margin : float, default=1.0
        Level γ.
    scale : "auto", "one-shot" or float, default="auto"
        s, the width of the quadratic part. "auto": s = γ, the s = γ = 1 of the paper's experiments in the units of the
        level; margins from -0.41 γ to 2.41 γ then lie inside √2 s. "one-shot": s = γ for the first pass, then
        s = √(n v / (2 l2 ln 20)), v the 75 % quantile of ``|z_i|``, once and for each class (section 4); needs l2 > 0.
        No rule draws random numbers.
    l2 : "auto" or float, default="auto"
        λ. "auto": chosen by leave-one-out ridge regression on at most 2,000 rows, one for all classes; 0 with "sgd".
        With 0, new rows may be classified little better than at random where rows are about as many as columns.
    solver : {"newton", "gd", "sgd"}, default="newton"
        "newton": Newton's method with an exact line search. "gd": Algorithm 1, all rows in a step. "sgd": one random
        row a step and projection onto the ball of radius 1/√l2, as in the paper's experiments; the intercept is then
        penalised and projected like a weight.
    step_size : float or None, default=None
        "gd": α; None: one over the largest eigenvalue of the second moment, plus l2. "sgd": the step at t = 0; it
        falls as 1/(1 + t), without l2 as 1/√(1 + t); None: 1/(s √l2), without l2
        ``1/mean(|x|²)``. Not used by "newton".
    tol : float, default=1e-6
        "newton", "gd": stop where the gradient norm is ``tol`` times that at w = 0. "sgd" takes ``max_passes``.
    max_passes : int, default=100
        Passes over the data, of each class with "newton"; with more than 2,000 columns ten reads count as a pass.
    trace : bool, default=True
        Record the margin distribution after every pass: one more read with "gd" and "sgd".
    fit_intercept : bool, default=True
        Fit an intercept. Without one it is 0.
    class_weight : dict, list of dicts, array, "balanced" or None, default=None
        Weight of the rows of each class, in every one-vs-rest problem, as sample weights would have it. "balanced":
        classes weigh alike. For an indicator: {0: ..., 1: ...}, of numbers or of one for each label; a list of such
        dicts; an array (n_labels, 2) of both weights; or "balanced".
    warm_start : bool, default=False
        Go on from the last fit's weights.
    max_time : float or None, default=None
        Seconds after which `fit` returns what it has.
    random_state : int, RandomState or None, default=None
        Used by "sgd": the first weights and the rows.
    n_jobs : int or None, default=None
        Threads. None: the processors that the process may use; -1: all. The result is the same to the bit.
    verbose : bool or int, default=0
        True, or a number above 0: print a line after every pass.
    callback : callable or None, default=None
        ``callback(self)`` after every pass, the fitted attributes set; a true answer stops the fit.
    checkpoint : path, `cmargin.Checkpoint` or None, default=None
        File that keeps the state of `fit`: the same call in another process resumes from it, to the same bits. It is
        removed when a fit ends, and stays where time or an interrupt ended it.

    Attributes
    ----------
    classes_ : (n_classes,) array
        Labels, ascending; of an indicator, the numbers of its columns.
    coef_ : (n_problems, n_features) array, C order, dtype of X; one problem for two classes
        The iterate of the smallest objective of each problem.
    intercept_ : (n_problems,) array
        That of the same iterate.
    scale_ : (n_problems,) array
        s in use at the end.
    l2_ : float
        λ in use.
    objective_ : (n_problems,) array
        Q of the weights returned.
    gradient_norm_ : (n_problems,) array
        Relative to w = 0, at the last iterate; NaN with "sgd". Where columns are of very different size, of the
        gradient in units of their own.
    n_iter_ : int
        Passes; of the class that took most with "newton", without those of a start on a tenth of the rows.
    n_passes_ : float
        Reads of the data for training, in full-data equivalents; reads for the trace are not in it.
    history_ : dict of arrays, one entry a pass
        pass, class (-1: mean over all, which advance together; with "newton" one after the other), passes (reads of the
        data), seconds, seconds_steps, seconds_trace (cumulative), objective, gradient_norm, step, scale; with ``trace``
        margin_mean, margin_median, margin_location (Catoni's estimate at s), margin_variance, margin_skewness,
        margin_q05, margin_q25, margin_q75, margin_q95, margin_share_negative of one-vs-rest margins.
    n_features_in_ : int
        Columns of X in the last fit.
    feature_names_in_ : (n_features,) array
        Where X had names of columns.

    Notes
    -----
    Columns need not be scaled for "newton": where some are a thousand times others, its steps and its stopping rule
    are in units of each column's own. "sgd" warns of such columns.

    References
    ----------
    Matthew J. Holland, "Classification using margin pursuit", 2018.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from cmargin import MarginPursuitClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> MarginPursuitClassifier(l2=0.01).fit(scale(X), y).score(scale(X), y) > 0.95
    True
    """

    def __init__(self, *, margin: float = 1.0, scale: float | str = "auto", l2: float | str = "auto",
                 solver: str = "newton", step_size: float | None = None, tol: float = 1e-6, max_passes: int = 100,
                 trace: bool = True,
                 fit_intercept: bool = True, class_weight: ClassWeight = None, warm_start: bool = False,
                 max_time: float | None = None, random_state: RandomState = None, n_jobs: int | None = None,
                 verbose: int = 0, callback: Callback = None, checkpoint: CheckpointFile = None) -> None:
        super().__init__(tol=tol, max_passes=max_passes, trace=trace, fit_intercept=fit_intercept,
                         class_weight=class_weight, warm_start=warm_start, max_time=max_time, n_jobs=n_jobs,
                         verbose=verbose, callback=callback, checkpoint=checkpoint)
        self.margin = margin
        self.scale = scale
        self.l2 = l2
        self.solver = solver
        self.step_size = step_size
        self.random_state = random_state

    def _check_parameters(self):
        check_parameter(self, "margin", self.margin, real=POSITIVE)
        check_parameter(self, "scale", self.scale, options=("auto", "one-shot"), real=POSITIVE)
        check_parameter(self, "l2", self.l2, options=("auto",), real=NOT_NEGATIVE)
        check_parameter(self, "solver", self.solver, options=("newton", "gd", "sgd"))
        check_parameter(self, "step_size", self.step_size, real=POSITIVE, none=True)
        super()._check_parameters()
        if self.scale == "one-shot" and (self.l2 == 0 or (self.l2 == "auto" and self.solver == "sgd")):
            raise InvalidParameterError("scale='one-shot' divides by l2: give l2 > 0, or another scale.")

    _takes_places = True

    def _refuse_over_places(self, how):
        if self.solver == "sgd":
            raise ValueError(f"solver='sgd' takes one row at a time; {how} use 'newton' or 'gd'.")

    def _settings(self, deadline):
        scale = float(self.margin) if isinstance(self.scale, str) else float(self.scale)
        chooses = self.l2 == "auto"
        return PursuitSettings("margin_pursuit", float(self.margin), scale, self.scale == "one-shot",
                               0.0 if chooses else float(self.l2), self.step_size, self.tol, self.max_passes,
                               self.fit_intercept, deadline, chooses_l2=chooses and self.solver != "sgd")

    @property
    def _wants_tol(self):
        return self.solver != "sgd"

    def _run(self, blocks, start, deadline):
        settings = self._settings(deadline)
        if self.solver == "sgd":
            return _projected(self, blocks, settings, start)
        solver = NewtonClasses if self.solver == "newton" else GradientDescent
        return solver(blocks, settings, Start(*start), self._margin_trace())

    def _store(self, fit, dtype):
        super()._store(fit, dtype, scale_=fit.scale.copy(), l2_=fit.l2, _steps_taken=fit.steps_taken)


@described_by(MarginPursuitClassifier)
class PegasosClassifier(LinearOneVsRest):
    __doc__ = f"""Pegasos: the l2-penalised hinge by projected stochastic subgradient steps.

    ``(1/n) sum_i s_i max(0, 1 - z_i) + (l2/2) |(w, b)|²``, one random row a step, drawn as often as its weight says,
    step ``1/(l2 (1 + t) + mean(|x|²))``, projection onto the ball of radius 1/√l2; the yardstick of the margin-pursuit
    experiments, with the same trace and interface. The published step is 1/(l2 (1 + t)): until t is about
    ``mean(|x|²)/l2`` it throws the weights from one end of the ball to the other, and is left for ``step_size``.

    Parameters
    ----------
    l2 : float > 0, default=1e-4
        Weight of the penalty, which the intercept is under too.
    step_size : float or None, default=None
        The step at t = 0, from where it falls as 1/(1 + t): 1/l2 gives the published steps. None: see above.
    tol : float, default=1e-6
        Not used: ``max_passes`` passes of n steps are taken.
    max_passes : int, default=100
        Passes of n steps each.
    trace : bool, default=True
        Record the margin distribution after every pass: one more read.
    random_state : int, RandomState or None, default=None
        The first weights and the rows.
    fit_intercept, class_weight, warm_start, max_time, n_jobs, verbose, callback, checkpoint
        As in `MarginPursuitClassifier`.

    Attributes
    ----------
    coef_, intercept_, classes_, objective_, gradient_norm_, n_iter_, n_passes_, n_features_in_, feature_names_in_
        As in `MarginPursuitClassifier`.
    history_ : dict of arrays, one entry a pass
        As by `MarginPursuitClassifier` with ``solver="sgd"``; ``margin_location`` at scale 1.

    References
    ----------
    S. Shalev-Shwartz, Y. Singer, N. Srebro, A. Cotter, "Pegasos: primal estimated sub-gradient solver for SVM", 2011.

    {example("PegasosClassifier", "random_state=0", "cmargin")}
    """

    def __init__(self, *, l2: float = 1e-4, step_size: float | None = None, tol: float = 1e-6, max_passes: int = 100,
                 trace: bool = True, fit_intercept: bool = True, class_weight: ClassWeight = None,
                 warm_start: bool = False, max_time: float | None = None, random_state: RandomState = None,
                 n_jobs: int | None = None, verbose: int = 0, callback: Callback = None,
                 checkpoint: CheckpointFile = None) -> None:
        super().__init__(tol=tol, max_passes=max_passes, trace=trace, fit_intercept=fit_intercept,
                         class_weight=class_weight, warm_start=warm_start, max_time=max_time, n_jobs=n_jobs,
                         verbose=verbose, callback=callback, checkpoint=checkpoint)
        self.l2 = l2
        self.step_size = step_size
        self.random_state = random_state

    def _check_parameters(self):
        check_parameter(self, "l2", self.l2, real=POSITIVE)
        check_parameter(self, "step_size", self.step_size, real=POSITIVE, none=True)
        super()._check_parameters()

    _wants_tol = False

    def _run(self, blocks, start, deadline):
        settings = PursuitSettings("hinge", 1.0, 1.0, False, float(self.l2), self.step_size, self.tol, self.max_passes,
                                   self.fit_intercept, deadline)
        return _projected(self, blocks, settings, start)

    def _store(self, fit, dtype):
        super()._store(fit, dtype, _steps_taken=fit.steps_taken)


def _projected(estimator, blocks, settings, start):
    taken = getattr(estimator, "_steps_taken", 0) if estimator._goes_on else 0
    return ProjectedSGD(blocks, settings, Start(*start, taken), estimator._margin_trace(),
                        blocks.source.stochastic_rows(blocks.n_threads), estimator._draw_seed())
