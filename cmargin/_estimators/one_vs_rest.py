"""Linear classifiers whose one-vs-rest problems are trained on blocks of scores: margin pursuit and its baselines."""

from functools import partial

import numpy as np

from cmargin._core.util._margin_summary import summarise_problems
from cmargin._core.util._openmp import effective_n_threads
from cmargin._estimators.base import LinearClassifier, untrained
from cmargin._estimators.docs import Callback, CheckpointFile, ClassWeight
from cmargin._estimators.labels import encode_labels, rows_of_weight, signs_met, with_constant_classes
from cmargin._estimators.progress import said_of_columns
from cmargin._estimators.validation import COUNT, POSITIVE, check_parameter
from cmargin._runtime.blas_threads import single_threaded_blas
from cmargin.solvers.per_class import constant_score

LEVELS = np.array([0.05, 0.25, 0.75, 0.95])
# in the order of `summarise_problems`
TRACE = ("margin_mean", "margin_median", "margin_location", "margin_variance", "margin_skewness", "margin_q05",
         "margin_q25", "margin_q75", "margin_q95", "margin_share_negative")


class MarginTrace:
    """Statistics of the margins y_ic h_c(x_i) of every problem, rows not weighted, averaged over the problems.

    ``margin_location`` is Catoni's estimate at the scale of the problem, the minimiser of its Q over the level
    (margin pursuit, eq. 2 and 5); ``margin_share_negative`` is the share of margins <= 0.
    """

    names, levels = TRACE, LEVELS

    def __init__(self):
        self.total, self.n_problems = np.zeros(len(TRACE)), 0

    @staticmethod
    def of(margins, scale):
        """Numbers (n_problems, 10) of problems with margins (n_problems, n_rows), C order and finite, and scales."""
        numbers = np.empty((len(margins), len(TRACE)))
        summarise_problems(margins, LEVELS, np.ascontiguousarray(scale, float), numbers)
        return numbers

    def add(self, margins, scale):
        """Margins of more problems, as in `of`."""
        self.total += self.of(margins, scale).sum(axis=0)
        self.n_problems += len(margins)

    def take(self):
        """Means over the problems added since the last call, in the order of `TRACE`."""
        means = self.total / max(1, self.n_problems)
        self.__init__()
        return means.tolist()


class LinearOneVsRest(LinearClassifier):
    """Base of these estimators.

    They give ``_run(blocks, start, deadline)``, the run of a solver from ``start``, a pair of weights and intercepts
    or of None; and check what is their own in `_check_parameters`.
    """

    def __init__(self, *, tol: float, max_passes: int, trace: bool, fit_intercept: bool, class_weight: ClassWeight,
                 warm_start: bool, max_time: float | None, n_jobs: int | None, verbose: int, callback: Callback,
                 checkpoint: CheckpointFile) -> None:
        """Parameters that all of them have."""
        self.tol = tol
        self.max_passes = max_passes
        self.trace = trace
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback
        self.checkpoint = checkpoint

    _wants_tol = True        # whether to warn where a fit ends above ``tol``
    _signs = None            # of an indicator: which of its labels are constant, as of `signs_of`

    def _train(self, source, sample_weight, begin, checkpointer):
        Y = weight = None
        if source.agreed is not None:
            classes, multilabel = source.agreed.classes, source.agreed.multilabel
        else:
            classes, codes, Y = encode_labels(source.y)
            multilabel = codes is None
        if self._goes_on:
            self._check_last_fit(source, classes, multilabel)
        start = (self._last_coef, self._last_intercept) if self._goes_on else (None, None)
        if source.agreed is None:
            weight, _ = self._weights(sample_weight, source, classes, codes)
            source, Y, _, weight = rows_of_weight(source, Y, codes, weight)
        self.classes_, self._multilabel, self._signs = classes, multilabel, None
        if multilabel:
            self._signs = source.agreed.signs if source.agreed is not None else signs_met(Y, weight)
            self._warn_of_constant(self._signs)
        blocks = source.score_blocks(Y, weight, effective_n_threads(self.n_jobs))
        store = partial(self._store, dtype=source.dtype)
        # a number beyond the range of doubles is reported once, by a warning of ours
        with single_threaded_blas(), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            run = self._run(blocks, start, self._deadline(begin))
            fit, interruption = run.run(self._watch(store, self._line), checkpointer)
        return fit, interruption, store, self._shortfall

    def _check_parameters(self):
        check_parameter(self, "tol", self.tol, real=POSITIVE)
        check_parameter(self, "max_passes", self.max_passes, integer=COUNT)
        check_parameter(self, "trace", self.trace, flag=True)
        self._check_shared()

    def _margin_trace(self):
        return MarginTrace() if self.trace else None

    def _store(self, fit, dtype, **more):
        """Everything a fit leaves, at once; ``more`` by subclasses."""
        signs = np.zeros(len(fit.W), np.int8) if self._signs is None else self._signs
        W, bias = with_constant_classes(fit.W, fit.bias, signs, self._constant_scores(signs))
        vars(self).update(
            more,
            coef_=np.ascontiguousarray(W, dtype=dtype),
            intercept_=np.asarray(bias, dtype=dtype).copy(),
            objective_=np.where(signs, 0.0, fit.objective), gradient_norm_=np.where(signs, 0.0, fit.gradient_norm),
            n_iter_=int(fit.passes), n_passes_=float(fit.reads),
            history_={name: np.asarray(column) for name, column in fit.history.items()},
        )

    def _constant_scores(self, signs):
        """(n_labels,) scores of labels that are predicted alike in every row: log-odds, or margins of 1."""
        logistic = getattr(self, "loss", None) == "logistic"
        return constant_score("logistic", (signs + 1) / 2) if logistic else signs.astype(float)

    def _line(self, last):
        alone = f", class {self.classes_[last['class']]}" if last["class"] >= 0 and len(self.coef_) > 1 else ""
        norm = f"gradient norm {last['gradient_norm']:.2g}, " if np.isfinite(last["gradient_norm"]) else ""
        return f"pass {last['pass']:g}{alone}: objective {last['objective']:.6g}, {norm}{last['seconds']:.2f} s"

    def _near(self):
        """Whether every problem is at its optimum: constant labels, which have none, may be what a fit went on for."""
        return self._signs is not None and bool((self.gradient_norm_ <= self.tol).all())

    def _shortfall(self, fit):
        of_columns = said_of_columns(self, fit.lost, fit.far, self.coef_.dtype)
        said = [text for text in (self._how_far(fit), of_columns) if text is not None]
        return f"{type(self).__name__}: {' Also: '.join(said)}" if said else None

    def _how_far(self, fit):
        text = None
        if fit.stopped == "diverged":
            text = "the weights overflowed; those of the best pass are kept. Scale the features or lower step_size."
        elif fit.stopped == "max_time":
            unbegun = untrained(self.classes_, fit.untrained, len(fit.W))
            text = (f"stopped by max_time={self.max_time} after {fit.passes} passes of {self.max_passes}; the best "
                    f"weights are kept.{unbegun} Raise max_time to train longer.")
        elif self._wants_tol and fit.stopped not in ("tol", "callback") and not self._near():
            worst = float(np.max(self.gradient_norm_))
            text = (f"after {fit.passes} passes the gradient norm is {worst:.1e} of that at the start, where "
                    f"tol={self.tol:g} was asked; raise max_passes or tol, scale the features, or raise l2.")
            if not np.isfinite([worst, *self.objective_]).all():
                text = (f"after {fit.passes} passes the objective or its gradient is beyond the range of numbers; "
                        "scale the features.")
        return text
