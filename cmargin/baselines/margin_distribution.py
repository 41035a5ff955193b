"""Other methods that look at the whole margin distribution, to compare margin pursuit with: full-batch, by L-BFGS."""

from cmargin._estimators.docs import Callback, CheckpointFile, ClassWeight, described_by, example
from cmargin._estimators.validation import NOT_NEGATIVE, POSITIVE
from cmargin.baselines._full_batch import FullBatchClassifier
from cmargin.pursuit import MarginPursuitClassifier
from cmargin.solvers.first_order.full_batch import CatoniRisk, MarginMoments, ProjectionProfile

COMMON = """tol : float, default=1e-6
        Stop where the gradient norm is ``tol`` times that at w = 0.
    max_passes : int, default=500
        Iterations of L-BFGS, of each class.
    trace : bool, default=True
        Record the margin distribution after every iteration, as `MarginPursuitClassifier` does.
    fit_intercept : bool, default=True
        The intercept is not penalised.
    class_weight, warm_start, max_time, n_jobs, verbose, callback, checkpoint
        As in `MarginPursuitClassifier`.

    Attributes
    ----------
    n_iter_ : int
        Iterations of the class that took most.
    coef_, intercept_, classes_, objective_, gradient_norm_, n_passes_, history_, n_features_in_, feature_names_in_
        As in `MarginPursuitClassifier`."""


@described_by(MarginPursuitClassifier)
class ODMClassifier(FullBatchClassifier):
    __doc__ = f"""Optimal margin distribution machine (Zhang and Zhou; margin pursuit, section 2.1).

    ``(l2/2) |w|² + λ1 v - λ2 m + λ3 (1/n) sum_i max(0, 1 - z_i)``, m and v the mean and the variance of the
    margins z_i. The hinge is smoothed to a width of ``smoothing``, which adds at most λ3 smoothing / 2.

    Parameters
    ----------
    variance_weight, mean_weight, hinge_weight : float >= 0, default=1.0
        λ1, λ2, λ3.
    l2 : float > 0, default=1.0
        The paper's is 1, the other weights being relative to it.
    smoothing : float > 0, default=1e-3
        Width of the smoothed hinge at the end.
    {COMMON}

    {example("ODMClassifier")}
    """

    _intervals = {"variance_weight": NOT_NEGATIVE, "mean_weight": NOT_NEGATIVE, "hinge_weight": NOT_NEGATIVE,
                  "l2": POSITIVE, "smoothing": POSITIVE}

    def __init__(self, *, variance_weight: float = 1.0, mean_weight: float = 1.0, hinge_weight: float = 1.0,
                 l2: float = 1.0, smoothing: float = 1e-3, tol: float = 1e-6, max_passes: int = 500, trace: bool = True,
                 fit_intercept: bool = True, class_weight: ClassWeight = None, warm_start: bool = False,
                 max_time: float | None = None, n_jobs: int | None = None, verbose: int = 0, callback: Callback = None,
                 checkpoint: CheckpointFile = None) -> None:
        super().__init__(tol=tol, max_passes=max_passes, trace=trace, fit_intercept=fit_intercept,
                         class_weight=class_weight, warm_start=warm_start, max_time=max_time, n_jobs=n_jobs,
                         verbose=verbose, callback=callback, checkpoint=checkpoint)
        self.variance_weight = variance_weight
        self.mean_weight = mean_weight
        self.hinge_weight = hinge_weight
        self.l2 = l2
        self.smoothing = smoothing

    @property
    def _widths(self):
        return _path(self.smoothing)

    def _objective(self, blocks, c, width):
        return MarginMoments(blocks, c, float(self.l2), self.fit_intercept, float(self.variance_weight),
                             float(self.mean_weight), float(self.hinge_weight), width)


@described_by(MarginPursuitClassifier)
class ProjectionProfileClassifier(FullBatchClassifier):
    __doc__ = f"""Projection-profile loss of Garg and Roth (margin pursuit, section 2.1).

    ``(1/n) sum_i l(z_i) + (l2/2) |w|²`` with l(z) = exp(-α z²) for z > 0 and exp(-β z) else: a bound on how often a
    random projection changes the prediction where it is right, an exponential loss where it is wrong. Neither convex
    nor smooth at z = 0: a minimum found is a local one, and L-BFGS may stop short of ``tol`` at a kink.

    Parameters
    ----------
    alpha, beta : float > 0, default=1.0
        α, of margins above 0, and β, of those below.
    l2 : float >= 0, default=1e-3
        Weight of the penalty.
    {COMMON}

    {example("ProjectionProfileClassifier", "tol=0.01")}
    """

    _intervals = {"alpha": POSITIVE, "beta": POSITIVE, "l2": NOT_NEGATIVE}

    def __init__(self, *, alpha: float = 1.0, beta: float = 1.0, l2: float = 1e-3, tol: float = 1e-6,
                 max_passes: int = 500, trace: bool = True, fit_intercept: bool = True,
                 class_weight: ClassWeight = None, warm_start: bool = False, max_time: float | None = None,
                 n_jobs: int | None = None, verbose: int = 0, callback: Callback = None,
                 checkpoint: CheckpointFile = None) -> None:
        super().__init__(tol=tol, max_passes=max_passes, trace=trace, fit_intercept=fit_intercept,
                         class_weight=class_weight, warm_start=warm_start, max_time=max_time, n_jobs=n_jobs,
                         verbose=verbose, callback=callback, checkpoint=checkpoint)
        self.alpha = alpha
        self.beta = beta
        self.l2 = l2

    def _objective(self, blocks, c, width):
        return ProjectionProfile(blocks, c, float(self.l2), self.fit_intercept, float(self.alpha), float(self.beta))


@described_by(MarginPursuitClassifier)
class CatoniHingeClassifier(FullBatchClassifier):
    __doc__ = f"""Robust hinge risk of Brownlees, Joly and Lugosi (margin pursuit, section 2.1).

    ``γ̂(w) + (l2/2) |w|²`` with γ̂ Catoni's estimate of location of the hinge losses at scale s: the root of
    sum_i s_i ψ((γ̂ - max(0, 1 - z_i))/s) = 0, with weights s_i of the rows. Nearly the mean loss for large s, the
    median loss for small s. Not convex: a minimum found is a local one. The hinge is smoothed to a width of
    ``smoothing``.

    Parameters
    ----------
    scale : float > 0, default=1.0
        The scale s.
    l2 : float >= 0, default=1e-3
        Weight of the penalty.
    smoothing : float > 0, default=1e-3
        Width of the smoothed hinge at the end.
    {COMMON}

    {example("CatoniHingeClassifier")}
    """

    _intervals = {"scale": POSITIVE, "l2": NOT_NEGATIVE, "smoothing": POSITIVE}

    def __init__(self, *, scale: float = 1.0, l2: float = 1e-3, smoothing: float = 1e-3, tol: float = 1e-6,
                 max_passes: int = 500, trace: bool = True, fit_intercept: bool = True,
                 class_weight: ClassWeight = None, warm_start: bool = False, max_time: float | None = None,
                 n_jobs: int | None = None, verbose: int = 0, callback: Callback = None,
                 checkpoint: CheckpointFile = None) -> None:
        super().__init__(tol=tol, max_passes=max_passes, trace=trace, fit_intercept=fit_intercept,
                         class_weight=class_weight, warm_start=warm_start, max_time=max_time, n_jobs=n_jobs,
                         verbose=verbose, callback=callback, checkpoint=checkpoint)
        self.scale = scale
        self.l2 = l2
        self.smoothing = smoothing

    @property
    def _widths(self):
        return _path(self.smoothing)

    @property
    def _scale(self):
        return self.scale

    def _objective(self, blocks, c, width):
        return CatoniRisk(blocks, c, float(self.l2), self.fit_intercept, float(self.scale), width)


def _path(smoothing):
    """Widths 1, 0.1, 0.01, ... down to ``smoothing``."""
    widths = [10.0**-k for k in range(20) if 10.0**-k > 1.01 * smoothing]
    return (*widths, float(smoothing))
