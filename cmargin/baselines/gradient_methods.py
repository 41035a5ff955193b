"""Gradient methods on a smooth objective: CG_DESCENT, Nesterov's acceleration, AdaDelta, Adam."""

from cmargin._estimators.docs import Callback, CheckpointFile, ClassWeight, RandomState, described_by, example
from cmargin._estimators.one_vs_rest import LinearOneVsRest
from cmargin._estimators.validation import COUNT, NOT_NEGATIVE, POSITIVE, check_parameter
from cmargin.baselines._full_batch import FullBatchClassifier
from cmargin.pursuit import MarginPursuitClassifier
from cmargin.solvers.first_order import accelerated
from cmargin.solvers.first_order.accelerated import RuledDescent, best_constant
from cmargin.solvers.first_order.conjugate_gradient import CGDescent, SmoothRisk
from cmargin.solvers.first_order.margin_pursuit import Start
from cmargin.solvers.problem import PursuitSettings

SMOOTH = ("logistic", "calibrated_hinge", "squared", "smoothed_hinge")
SHARE = (0.0, 1 - 1e-16, "(0.0, 1.0)")

OBJECTIVE = """``(1/n) sum_i s_i F(z_i) + (l2/2) |w|² + l1 |w|₁`` for every one-vs-rest problem,
    ``z_i = y_i (<w, x_i> + b)``; b is not penalised."""

LOSS = """loss : {"logistic", "calibrated_hinge", "squared", "smoothed_hinge"}, default="logistic"
        The loss F. With "calibrated_hinge" and l2=0 separable data have no minimum.
    l2 : float >= 0, default=1e-4
        Weight of the quadratic penalty.
    l1 : float >= 0, default=0.0
        ``|w|`` is taken as √(w² + 10⁻⁶) - 10⁻³, so that there is a gradient; no weight becomes exactly 0.
    smoothing : float > 0, default=0.5
        Width of the smoothed hinge; others ignore it."""

BATCHES = """step_size : float > 0, default={step}
        Factor of every move.
    batch_size : int or None, default=64
        Rows of a step; batch j of B holds the rows j, j + B, j + 2 B, ..., and the order of the batches is drawn anew
        for every pass. None: all rows."""

COMMON = """tol : float, default=1e-6
        Stop where the gradient norm of every problem is ``tol`` times that at w = 0, after any pass.
    max_passes : int, default={passes}
        Passes over the data.
    trace : bool, default=False
        Record the margin distribution after every pass, as `MarginPursuitClassifier` does: one more read.
    random_state : int, RandomState or None, default=None
        Order of the mini-batches.
    fit_intercept, class_weight, warm_start, max_time, n_jobs, verbose, callback, checkpoint
        As in `MarginPursuitClassifier`.

    Attributes
    ----------
    n_iter_ : int
        Passes.
    n_passes_ : float
        Reads of the data, those that looked for the iterate of the smallest objective too: with mini-batches one a
        pass for the steps, one for the objective and its gradient, whose time is in ``seconds_trace``.
    coef_, intercept_, classes_, objective_, gradient_norm_, history_, n_features_in_, feature_names_in_
        As in `MarginPursuitClassifier`."""


class _RuledClassifier(LinearOneVsRest):
    """What the three share; a subclass gives ``_rule(V)``."""

    _from_constant = False       # begin at the best intercept for w = 0: steps of a set length would take long to it

    def _check_parameters(self):
        check_parameter(self, "loss", self.loss, options=SMOOTH)
        check_parameter(self, "l2", self.l2, real=NOT_NEGATIVE)
        check_parameter(self, "l1", self.l1, real=NOT_NEGATIVE)
        check_parameter(self, "smoothing", self.smoothing, real=POSITIVE)
        check_parameter(self, "batch_size", self.batch_size, integer=COUNT, none=True)
        super()._check_parameters()

    @property
    def _wants_tol(self):
        return self.batch_size is None       # a fixed step on batches never comes to rest

    def _run(self, blocks, start, deadline):
        step = None if self.step_size == "auto" else float(self.step_size)
        settings = PursuitSettings(self.loss, float(self.smoothing), 1.0, False, float(self.l2), step, self.tol,
                                   self.max_passes, self.fit_intercept, deadline, float(self.l1))
        if self._from_constant and self.fit_intercept and not self._goes_on:
            start = None, best_constant(self.loss, blocks)
        return RuledDescent(blocks, settings, Start(*start), self._margin_trace(), self._rule, self.batch_size,
                            self._draw_seed())


@described_by(MarginPursuitClassifier)
class NesterovClassifier(_RuledClassifier):
    __doc__ = f"""Nesterov's accelerated gradient.

    {OBJECTIVE}

    v ← w + ρ (w - w_before), w ← v - η g(v); the gradient g is taken ahead of the weights.

    Parameters
    ----------
    {LOSS}
    step_size : "auto" or float > 0, default="auto"
        η. "auto": one over a bound of the largest curvature, from eight power iterations. The SmSVM paper's is 1e-3.
    momentum : "auto" or float in (0, 1), default="auto"
        ρ. "auto": Nesterov's growing sequence, begun anew where it leads uphill; 0.9 with mini-batches. The SmSVM
        paper's is 0.9.
    batch_size : int or None, default=None
        Rows of a step, as in `AdamClassifier`. None: all rows.
    {COMMON.format(passes=200)}

    {example("NesterovClassifier", "tol=1e-3")}

    References
    ----------
    Y. Nesterov, "A method of solving a convex programming problem with convergence rate O(1/k²)", 1983; B. O'Donoghue
    and E. Candès, "Adaptive restart for accelerated gradient schemes", 2015.
    """

    def __init__(self, *, loss: str = "logistic", l2: float = 1e-4, l1: float = 0.0, smoothing: float = 0.5,
                 step_size: float | str = "auto", momentum: float | str = "auto", batch_size: int | None = None,
                 tol: float = 1e-6, max_passes: int = 200, trace: bool = False, fit_intercept: bool = True,
                 class_weight: ClassWeight = None, warm_start: bool = False, max_time: float | None = None,
                 random_state: RandomState = None, n_jobs: int | None = None, verbose: int = 0,
                 callback: Callback = None, checkpoint: CheckpointFile = None) -> None:
        super().__init__(tol=tol, max_passes=max_passes, trace=trace, fit_intercept=fit_intercept,
                         class_weight=class_weight, warm_start=warm_start, max_time=max_time, n_jobs=n_jobs,
                         verbose=verbose, callback=callback, checkpoint=checkpoint)
        self.loss = loss
        self.l2 = l2
        self.l1 = l1
        self.smoothing = smoothing
        self.step_size = step_size
        self.momentum = momentum
        self.batch_size = batch_size
        self.random_state = random_state

    def _check_parameters(self):
        check_parameter(self, "step_size", self.step_size, options=("auto",), real=POSITIVE)
        check_parameter(self, "momentum", self.momentum, options=("auto",), real=SHARE)
        super()._check_parameters()

    def _rule(self, V):
        automatic = None if self.batch_size is None else 0.9
        return accelerated.Nesterov(V, automatic if self.momentum == "auto" else self.momentum)


@described_by(MarginPursuitClassifier)
class AdaDeltaClassifier(_RuledClassifier):
    _from_constant = True
    __doc__ = f"""AdaDelta: a step for every weight, from decaying means of squared gradients and squared moves.

    {OBJECTIVE} Begins at w = 0 and the b that is best there.

    Parameters
    ----------
    {LOSS}
    decay : float in (0, 1), default=0.9
        Decay ρ of both means.
    epsilon : float > 0, default=1e-8
        ε; the first moves have about its root for a length.
    {BATCHES.format(step=1.0)}
    {COMMON.format(passes=50)}

    {example("AdaDeltaClassifier", "max_passes=100, random_state=0")}

    References
    ----------
    Matthew Zeiler, "ADADELTA: an adaptive learning rate method", 2012. Defaults are the SmSVM paper's.
    """

    def __init__(self, *, loss: str = "logistic", l2: float = 1e-4, l1: float = 0.0, smoothing: float = 0.5,
                 decay: float = 0.9, epsilon: float = 1e-8, step_size: float = 1.0, batch_size: int | None = 64,
                 tol: float = 1e-6, max_passes: int = 50, trace: bool = False, fit_intercept: bool = True,
                 class_weight: ClassWeight = None, warm_start: bool = False, max_time: float | None = None,
                 random_state: RandomState = None, n_jobs: int | None = None, verbose: int = 0,
                 callback: Callback = None, checkpoint: CheckpointFile = None) -> None:
        super().__init__(tol=tol, max_passes=max_passes, trace=trace, fit_intercept=fit_intercept,
                         class_weight=class_weight, warm_start=warm_start, max_time=max_time, n_jobs=n_jobs,
                         verbose=verbose, callback=callback, checkpoint=checkpoint)
        self.loss = loss
        self.l2 = l2
        self.l1 = l1
        self.smoothing = smoothing
        self.decay = decay
        self.epsilon = epsilon
        self.step_size = step_size
        self.batch_size = batch_size
        self.random_state = random_state

    def _check_parameters(self):
        check_parameter(self, "step_size", self.step_size, real=POSITIVE)
        check_parameter(self, "decay", self.decay, real=SHARE)
        check_parameter(self, "epsilon", self.epsilon, real=POSITIVE)
        super()._check_parameters()

    def _rule(self, V):
        return accelerated.AdaDelta(V, self.decay, self.epsilon)


@described_by(MarginPursuitClassifier)
class AdamClassifier(_RuledClassifier):
    _from_constant = True
    __doc__ = f"""Adam: steps along the mean gradient, for every weight over the root of its mean square.

    {OBJECTIVE} Begins at w = 0 and the b that is best there.

    Parameters
    ----------
    {LOSS}
    beta_1 : float in (0, 1), default=0.9
        Decay of the mean gradient; the SmSVM paper's is 0.9 too.
    beta_2 : float in (0, 1), default=0.999
        Decay of the mean square; the SmSVM paper's is 0.8.
    epsilon : float > 0, default=1e-8
        Added to the root of the mean square.
    {BATCHES.format(step=1e-3)}
    {COMMON.format(passes=50)}

    {example("AdamClassifier", "random_state=0")}

    References
    ----------
    Diederik Kingma and Jimmy Ba, "Adam: a method for stochastic optimization", 2015.
    """

    def __init__(self, *, loss: str = "logistic", l2: float = 1e-4, l1: float = 0.0, smoothing: float = 0.5,
                 beta_1: float = 0.9, beta_2: float = 0.999, epsilon: float = 1e-8, step_size: float = 1e-3,
                 batch_size: int | None = 64, tol: float = 1e-6, max_passes: int = 50, trace: bool = False,
                 fit_intercept: bool = True, class_weight: ClassWeight = None, warm_start: bool = False,
                 max_time: float | None = None, random_state: RandomState = None, n_jobs: int | None = None,
                 verbose: int = 0, callback: Callback = None, checkpoint: CheckpointFile = None) -> None:
        super().__init__(tol=tol, max_passes=max_passes, trace=trace, fit_intercept=fit_intercept,
                         class_weight=class_weight, warm_start=warm_start, max_time=max_time, n_jobs=n_jobs,
                         verbose=verbose, callback=callback, checkpoint=checkpoint)
        self.loss = loss
        self.l2 = l2
        self.l1 = l1
        self.smoothing = smoothing
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.step_size = step_size
        self.batch_size = batch_size
        self.random_state = random_state

    def _check_parameters(self):
        check_parameter(self, "step_size", self.step_size, real=POSITIVE)
        for name in ("beta_1", "beta_2"):
            check_parameter(self, name, getattr(self, name), real=SHARE)
        check_parameter(self, "epsilon", self.epsilon, real=POSITIVE)
        super()._check_parameters()

    def _rule(self, V):
        return accelerated.Adam(V, self.beta_1, self.beta_2, self.epsilon)


@described_by(MarginPursuitClassifier)
class CGDescentClassifier(FullBatchClassifier):
    __doc__ = f"""CG_DESCENT: nonlinear conjugate gradients with the approximate Wolfe line search.

    {OBJECTIVE}

    Margins and their change along the direction are kept per row, so that an iteration costs one read of X (half for
    the change, half for the gradient), however many steps the line search tries.

    Parameters
    ----------
    {LOSS}
    tol : float, default=1e-6
        Stop where the gradient norm is ``tol`` times that at w = 0.
    max_passes : int, default=1000
        Iterations, of each class.
    trace : bool, default=False
        Record the margin distribution after every iteration, as `MarginPursuitClassifier` does.
    fit_intercept, class_weight, warm_start, max_time, n_jobs, verbose, callback, checkpoint
        As in `MarginPursuitClassifier`.

    Attributes
    ----------
    n_iter_ : int
        Iterations of the class that took most.
    coef_, intercept_, classes_, objective_, gradient_norm_, n_passes_, history_, n_features_in_, feature_names_in_
        As in `MarginPursuitClassifier`.

    {example("CGDescentClassifier")}

    References
    ----------
    W. Hager and H. Zhang, "A new conjugate gradient method with guaranteed descent and an efficient line search",
    2005; "Algorithm 851: CG_DESCENT", 2006.
    """

    _solver = CGDescent
    _intervals = {"l2": NOT_NEGATIVE, "l1": NOT_NEGATIVE, "smoothing": POSITIVE}

    def __init__(self, *, loss: str = "logistic", l2: float = 1e-4, l1: float = 0.0, smoothing: float = 0.5,
                 tol: float = 1e-6, max_passes: int = 1000, trace: bool = False, fit_intercept: bool = True,
                 class_weight: ClassWeight = None, warm_start: bool = False, max_time: float | None = None,
                 n_jobs: int | None = None, verbose: int = 0, callback: Callback = None,
                 checkpoint: CheckpointFile = None) -> None:
        super().__init__(tol=tol, max_passes=max_passes, trace=trace, fit_intercept=fit_intercept,
                         class_weight=class_weight, warm_start=warm_start, max_time=max_time, n_jobs=n_jobs,
                         verbose=verbose, callback=callback, checkpoint=checkpoint)
        self.loss = loss
        self.l2 = l2
        self.l1 = l1
        self.smoothing = smoothing

    def _check_parameters(self):
        check_parameter(self, "loss", self.loss, options=SMOOTH)
        super()._check_parameters()

    def _objective(self, blocks, c, width):
        return SmoothRisk(blocks, c, float(self.l2), self.fit_intercept, self.loss, self.smoothing, float(self.l1))
