"""SGD, preconditioned SGD and SGD-QN on balanced lists: what SLND and BSN were compared with."""

from functools import partial

from cmargin._estimators.docs import Callback, CheckpointFile, ClassWeight, RandomState, described_by, example
from cmargin._estimators.validation import COUNT, POSITIVE, check_parameter
from cmargin.slnd import CALIBRATED, SLNDClassifier
from cmargin.solvers.sgd.plain_sgd import DiagonalRun, PlainRun, WhitenRun
from cmargin.solvers.sgd.sgdqn import SGDQNRun

COMMON = """max_passes : int, default=10
        Sweeps over each class's list of rows.
    tol : float or None, default=None
        Stop when the risk falls by less than ``tol * |F(0)|`` in a pass. None: never.
    negatives_per_positive, fit_intercept, class_weight, warm_start
        As in `SLNDClassifier`.
    max_time, random_state, n_jobs, verbose, callback, checkpoint
        As in `SLNDClassifier`.

    Attributes
    ----------
    classes_, loss_, coef_, intercept_, preconditioner_, rank_, step_size_, class_prior_, sampled_prior_
        As in `SLNDClassifier`.
    n_iter_, n_passes_, history_, n_features_in_, feature_names_in_
        As in `SLNDClassifier`."""


@described_by(SLNDClassifier)
class BalancedSGDClassifier(SLNDClassifier):
    __doc__ = f"""Stochastic gradient descent, one-vs-rest, on balanced lists: SLND with H* = I.

    The risk (1/n) sum_i s_i F(y_i h(x_i)) is minimised without a penalty by w ← w + η s_i y_i p_i x_i, p_i = -F'(y_i
    h(x_i)). Lists, step rule, mean of the iterates, intercept and history are SLND's, so that a comparison is one of
    preconditioners. Dense rows that are not in C order are copied.

    Parameters
    ----------
    loss : {{"logistic", "calibrated_hinge", "squared"}}, default="logistic"
        F of the margins, as in `SLNDClassifier`; all are calibrated.
    step_size : "auto" or float, default="auto"
        Relative: ``η = step_size / (F''(0) (mean |x|² + 1)) / pass``. "auto": chosen on held-out rows of a small
        subset.
    average : bool, default=True
        Return the mean of the iterates, late ones weighing more, instead of the last.
    {COMMON}

    {example("BalancedSGDClassifier", "random_state=0")}
    """

    _penalised = _in_units = False
    # the low-rank method's parameters, out of use here
    rank, tail, curvature, hessian_refresh = "auto", "scale", "covariance", None
    hessian_samples: int | None = None
    _losses = CALIBRATED

    def __init__(self, *, loss: str = "logistic", negatives_per_positive: float | None = 9,
                 step_size: float | str = "auto", average: bool = True, max_passes: int = 10, tol: float | None = None,
                 fit_intercept: bool = True, class_weight: ClassWeight = None, warm_start: bool = False,
                 max_time: float | None = None, random_state: RandomState = None, n_jobs: int | None = None,
                 verbose: int = 0, callback: Callback = None, checkpoint: CheckpointFile = None) -> None:
        self.loss = loss
        self.negatives_per_positive = negatives_per_positive
        self.step_size = step_size
        self.average = average
        self.max_passes = max_passes
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.max_time = max_time
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback
        self.checkpoint = checkpoint

    def _check_parameters(self):
        check_parameter(self, "step_size", self.step_size, options=("auto",), real=POSITIVE)
        super()._check_parameters()

    _takes_places = False

    def _run(self):
        return PlainRun


@described_by(SLNDClassifier)
class PreconditionedSGDClassifier(BalancedSGDClassifier):
    __doc__ = f"""SGD on preconditioned rows (SGD-P): the rows are transformed once, and trained on by SGD.

    The paper (BSN, section 5) does not say how it preconditions. Here either every direction of the rows gets the same
    second moment, or every column does; the second moments are about zero, not about the mean. ``coef_`` belongs to
    the rows as they were given.

    Parameters
    ----------
    loss : {{"logistic", "calibrated_hinge", "squared"}}, default="logistic"
        F of the margins, as in `SLNDClassifier`; all are calibrated.
    step_size : "auto" or float, default="auto"
        Relative, as in `BalancedSGDClassifier`, the rows being the preconditioned ones.
    average : bool, default=True
        Return the mean of the iterates, late ones weighing more, instead of the last.
    preconditioner : {{"whiten", "diagonal"}}, default="whiten"
        "whiten": D^(-1/2) P'x over all eigenvalues of at least 1e-4 of the largest, which is BSN with a dropped tail
        at that rank; a dense matrix, also for CSR rows. "diagonal": columns over their root mean square; CSR rows
        stay CSR.
    hessian_samples : int or None, default=None
        Rows behind the second moment that is inverted by "whiten". None: 20 for every feature, 1,000 at least.
    {COMMON}
    eigenvalues_
        As in `SLNDClassifier`.

    {example("PreconditionedSGDClassifier", "random_state=0")}
    """

    def __init__(self, *, loss: str = "logistic", preconditioner: str = "whiten", hessian_samples: int | None = None,
                 negatives_per_positive: float | None = 9, step_size: float | str = "auto", average: bool = True,
                 max_passes: int = 10, tol: float | None = None, fit_intercept: bool = True,
                 class_weight: ClassWeight = None, warm_start: bool = False, max_time: float | None = None,
                 random_state: RandomState = None, n_jobs: int | None = None, verbose: int = 0,
                 callback: Callback = None, checkpoint: CheckpointFile = None) -> None:
        super().__init__(
            loss=loss, negatives_per_positive=negatives_per_positive, step_size=step_size, average=average,
            max_passes=max_passes, tol=tol, fit_intercept=fit_intercept, class_weight=class_weight,
            warm_start=warm_start, max_time=max_time, random_state=random_state, n_jobs=n_jobs, verbose=verbose,
            callback=callback, checkpoint=checkpoint)
        self.preconditioner = preconditioner
        self.hessian_samples = hessian_samples

    def _check_parameters(self):
        check_parameter(self, "preconditioner", self.preconditioner, options=("whiten", "diagonal"))
        super()._check_parameters()

    def _recipe_now(self, loss):
        return (*super()._recipe_now(loss), self.preconditioner)

    def _run(self):
        return WhitenRun if self.preconditioner == "whiten" else DiagonalRun


@described_by(SLNDClassifier)
class SGDQNClassifier(BalancedSGDClassifier):
    __doc__ = f"""SGD-QN, the corrected form: SGD with a gain for every weight, learned from how the gradient changes.

    ``(1/n) sum_i s_i F(y_i h(x_i)) + (l2/2) |w|²`` by w ← w + s_i y_i p_i B x_i, with B diagonal, one for each class;
    every ``skip`` steps the penalty's w ← w - skip l2 B w, and in the step after it B_j ← B_j / (1 + skip B_j r_j), r_j
    the change of the gradient over that of the weight, clipped to [l2, 100 l2]. The intercept has a gain too and is
    not penalised. The last iterate is returned.

    Parameters
    ----------
    loss : {{"logistic", "calibrated_hinge", "squared"}}, default="logistic"
        F of the margins, as in `SLNDClassifier`; all are calibrated.
    l2 : float > 0, default=1e-5
        It sets the pace too: 1/B_j grows by l2 to 100 l2 a step.
    skip : "auto" or int, default="auto"
        "auto": 16, for CSR rows more, as a sweep over all weights costs more than a row.
    step_size : "auto" or float, default="auto"
        The first gain, relative: ``B = step_size / (F''(0) (mean |x|² + 1))``. "auto": chosen on held-out rows of
        a small subset.
    {COMMON}

    References
    ----------
    A. Bordes, L. Bottou, P. Gallinari, "SGD-QN: careful quasi-Newton stochastic gradient descent", 2009; A. Bordes,
    L. Bottou, P. Gallinari, J. Chang, S. A. Smith, "Erratum: SGDQN is less careful than expected", 2010.

    {example("SGDQNClassifier", "random_state=0")}
    """

    average = False          # there is no mean; here for models that were pickled without it

    def __init__(self, *, loss: str = "logistic", l2: float = 1e-5, skip: int | str = "auto",
                 negatives_per_positive: float | None = 9, step_size: float | str = "auto", max_passes: int = 10,
                 tol: float | None = None, fit_intercept: bool = True, class_weight: ClassWeight = None,
                 warm_start: bool = False, max_time: float | None = None, random_state: RandomState = None,
                 n_jobs: int | None = None, verbose: int = 0, callback: Callback = None,
                 checkpoint: CheckpointFile = None) -> None:
        super().__init__(
            loss=loss, negatives_per_positive=negatives_per_positive, step_size=step_size, average=False,
            max_passes=max_passes, tol=tol, fit_intercept=fit_intercept, class_weight=class_weight,
            warm_start=warm_start, max_time=max_time, random_state=random_state, n_jobs=n_jobs, verbose=verbose,
            callback=callback, checkpoint=checkpoint)
        self.l2 = l2
        self.skip = skip

    def _check_parameters(self):
        check_parameter(self, "l2", self.l2, real=POSITIVE)
        check_parameter(self, "skip", self.skip, options=("auto",), integer=COUNT)
        super()._check_parameters()

    def _recipe_now(self, loss):
        return (*super()._recipe_now(loss), self.l2, self.skip, self.step_size)

    def _run(self):
        return partial(SGDQNRun, l2=float(self.l2), skip=self.skip)
