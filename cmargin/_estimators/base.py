"""One base of all linear classifiers: parameters, weights, warm start, callback, interrupt, warning, predictions."""

import time
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from cmargin._core.util._openmp import effective_n_threads
from cmargin._estimators.apart import check_list, is_indicator, weights_differ
from cmargin._estimators.apart import train as train_apart
from cmargin._estimators.at_caller import warn_at_caller
from cmargin._estimators.by_blocks import lazy_on_workers
from cmargin._estimators.identity import check_checkpoint, keeper_of
from cmargin._estimators.one_sign import warn_of_constant
from cmargin._estimators.progress import check_verbose, say
from cmargin._estimators.refusal import keeps_last_fit
from cmargin._estimators.scores import as_given, linear_scores
from cmargin._estimators.validation import (
    INT_MAX,
    LARGEST,
    POSITIVE,
    accuracy_of,
    balanced_weights,
    check_class_weight,
    check_class_weights,
    check_columns,
    check_flag,
    check_parameter,
    check_rows,
    check_seed,
    in_range,
)
from cmargin._estimators.versions import VersionInPickle
from cmargin._runtime.turns import Turn
from cmargin.data.arrays import dense
from cmargin.data.containers import computed
from cmargin.data.converted import batches
from cmargin.data.device.arrays import namespace_of, to_host
from cmargin.data.open import on_workers, open_rows
from cmargin.data.open_here import labels_beside, weights_beside

SCORE_ENTRIES = 1 << 22  # scores held at a time by predict: 32 MB


class LinearClassifier(ClassifierMixin, VersionInPickle, BaseEstimator):
    """Base of estimators with ``coef_``, ``intercept_`` and ``classes_``.

    These three are all that predictions and warm starts need: they may be set by hand, as in scikit-learn. Whatever
    else a fit leaves has a default here or in the subclass.

    A subclass gives `_check_parameters`, and ``_train(home, sample_weight, begin, keeper)``, which returns the
    arguments of `_finish`; ``home.y`` is y, ``keeper`` what writes checkpoints and has what the last one left.
    """

    coef_: np.ndarray
    intercept_: np.ndarray
    classes_: np.ndarray
    n_features_in_: int
    n_iter_: int
    n_passes_: float
    history_: dict[str, np.ndarray]
    _multilabel = False              # whether the classes are the labels of an indicator

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        return tags

    # ---------------------------------------------------------------- training

    @keeps_last_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None, comm: Any = None) -> Self:
        """Train from zero, or from the last weights with ``warm_start``.

        Ctrl-C stores the best weights so far before it goes on; a fit that is refused leaves the last one as it was.

        Parameters
        ----------
        X : (n_samples, n_features) array or sparse matrix
            float32 and float64, C or F order, memory-mapped, CSR: without a copy. Other numbers become float64. Or
            paths of files (`cmargin.data.files.open_files`); a Dask array or frame, whose partitions stay on their
            workers; a torch, CuPy or other array of the array API standard, which stays on its device.
        y : (n_samples,) labels, or (n_samples, n_labels) indicator
            Whole numbers, booleans or texts; or paths of .npy files; Dask collections and tensors where X is one.
        sample_weight : (n_samples,) array or None
            For an indicator also (n_samples, n_labels): what a row weighs in the problem of each label, whose problems
            are then trained one after the other.
        comm : communicator with mpi4py's buffer methods, or None
            Every rank calls `fit` with its own rows, which stay where they are, and ends with the same weights. A rank
            may have no rows. Callback, progress and time limit are rank 0's.

        Returns
        -------
        self

        Raises
        ------
        TypeError
            For containers that NumPy makes no array of, with what to call for one.
        ValueError
            For parameters, shapes, NaN, infinities, masked or missing values, labels of several types, a single class.

        Warns
        -----
        UserWarning
            Where a label of an indicator has no rows or all of them: its prediction is then constant.
        """
        begin = time.perf_counter()
        if comm is not None:
            from cmargin._estimators import over_ranks  # which few need

            warn_of(over_ranks.fit(self, X, y, sample_weight, comm, begin))
            return self
        if on_workers(X):
            from cmargin._estimators import over_workers

            return self._finish(*over_workers.train(self, X, y, sample_weight, begin))
        self._check_parameters()
        with Turn(waits=self.max_time is None):
            sample_weight = weights_beside(X, sample_weight)
            home = open_rows(*self._check_data(X, y))
            try:
                keeper = keeper_of(self, home, sample_weight)
                self._finish(*self._trained(home, sample_weight, begin, keeper))
                keeper.close()
                return self
            finally:
                home.let_go()

    def _trained(self, home, sample_weight, begin, keeper):
        check_list(self, is_indicator(home.y))
        apart = train_apart(self, home, sample_weight, begin) if weights_differ(self, home, sample_weight) else None
        return self._train(home, sample_weight, begin, keeper) if apart is None else apart

    class_weight_on = "rows"         # or "positives", where an estimator has the parameter
    _names_constants = True          # whether a fit warns of labels of one sign
    _takes_comm = False              # whether `fit` does,
    _takes_workers = False           # and Dask collections
    _leaves_out_weightless = True    # rows of weight 0

    def _refuse_over_places(self, how):
        """Raise ValueError for parameters that rows in several places cannot go with; ``how``: "with comm=", say."""

    def _check_shared(self):
        """Parameters that every subclass has."""
        check_parameter(self, "max_time", self.max_time, real=POSITIVE, none=True)
        check_parameter(self, "n_jobs", self.n_jobs, integer=(-INT_MAX, INT_MAX, "(-inf, inf)"), none=True)
        check_verbose(self)
        check_class_weight(self, self.class_weight)
        check_seed(self)
        check_parameter(self, "callback", self.callback, none=True, call=True)
        check_checkpoint(self, self.checkpoint)
        for name in ("fit_intercept", "warm_start"):
            check_flag(self, name, getattr(self, name))

    def _check_data(self, X, y):
        """X and y as `check_rows` leaves them."""
        return check_rows(self, X, y, n_threads=effective_n_threads(self.n_jobs))

    @property
    def _goes_on(self):
        """Whether a fit starts from the last one's weights."""
        return self.warm_start and hasattr(self, "coef_")

    @property
    def _last_coef(self):
        """The weights to go on from, in C order."""
        return np.ascontiguousarray(self.coef_, None if self.coef_.dtype.kind == "f" else float)

    @property
    def _last_intercept(self):
        """That of the weights to go on from: 0 where none is fitted any more."""
        return np.asarray(self.intercept_, float) * bool(self.fit_intercept)

    def _check_last_fit(self, home, classes, multilabel, what="warm_start"):
        """Raise unless columns and classes are those of the weights that ``what`` goes on from, which are finite."""
        if home.n_features != self.coef_.shape[1]:
            raise ValueError(f"X has {home.n_features} features, but the fit to go on from has {self.coef_.shape[1]}")
        if multilabel != self._multilabel or not np.array_equal(classes, self.classes_):
            raise ValueError(f"{what} needs the classes of the last fit, {self.classes_}"
                             f"{' as an indicator' if self._multilabel else ''}; got {classes}"
                             f"{' as an indicator' if multilabel else ''}")
        n_problems = len(classes) if multilabel or len(classes) > 2 else 1
        if self.coef_.shape[0] != n_problems or np.shape(self.intercept_) != (n_problems,):
            raise ValueError(f"{what} needs coef_ and intercept_ of {n_problems} row(s) for {len(classes)} classes; "
                             f"got shapes {self.coef_.shape} and {np.shape(self.intercept_)}.")
        if not (np.isfinite(self.coef_).all() and np.isfinite(self.intercept_).all()):
            raise ValueError(f"{what} needs finite weights, but coef_ or intercept_ of the last fit contains NaN or "
                             "infinity; fit another estimator, or without a warm start.")

    def _weights(self, sample_weight, home, classes, codes):
        """Row weights times class weights.

        Returns
        -------
        weight : (n,) array, the largest about 1, or None where all rows weigh 1
        total : float, the sum of the weights as given, at most the largest double
        """
        if sample_weight is None and self.class_weight is None:
            return None, float(home.n_rows)
        sample_weight = _check_sample_weight(sample_weight, home.y, dtype=np.float64, ensure_non_negative=True)
        factors = [sample_weight]
        if self.class_weight is not None:
            by_class = self._class_weights(classes, codes, sample_weight)
            check_class_weights(by_class)
            factors.append(by_class[codes])
        return _product_in_range(factors)

    def _class_weights(self, classes, codes, sample_weight=None):
        """(n_classes,) array."""
        if isinstance(self.class_weight, str):
            weight = None if sample_weight is None else in_range(sample_weight)
            return balanced_weights(np.bincount(codes, weight, minlength=len(classes)))
        return compute_class_weight(self.class_weight, classes=classes, y=classes)

    def _warn_of_constant(self, signs):
        """Of labels of one sign, unless this is the fit of a single problem."""
        if self._names_constants:
            warn_of_constant(signs)

    def _deadline(self, begin):
        return None if self.max_time is None else begin + self.max_time

    def _draw_seed(self):
        return int(check_random_state(self.random_state).randint(1 << 31))

    def _watch(self, store, line):
        """What to do with the fit after a pass: ``store(fit)``, a line of text, the callback.

        ``line`` makes the text of the last entries of ``history_``. Returns a function of the fit that says whether to
        stop; None if there is nothing to do.
        """
        def after_pass(fit):
            store(fit)
            say(self, line({name: column[-1] for name, column in self.history_.items()}))
            return bool(self.callback(self)) if self.callback is not None else False

        return after_pass if self.callback is not None or self.verbose else None

    def _finish(self, fit, interruption, store, shortfall):
        """Store the fit; then let the interrupt go on, or warn, once at the most.

        Parameters
        ----------
        fit : what was trained, complete also where it was stopped
        interruption : Deferred or None
            The KeyboardInterrupt that ended the run.
        store : function of ``fit`` that sets the fitted attributes
        shortfall : function of ``fit``: a sentence on how far it got and what to try, None where it went to its end
        """
        store(fit)
        if interruption is not None:
            raise interruption.taken()
        warn_of(shortfall(fit))
        return self

    # ---------------------------------------------------------------- prediction

    @lazy_on_workers
    def decision_function(self, X: Any) -> np.ndarray:
        """Scores h_c(x) = <w_c, x> + b_c.

        Returns
        -------
        (n_samples,) array for two classes (positive: ``classes_[1]``), else (n_samples, n_problems)
            Finite; a tensor where X is one.
        """
        X = self._check_rows(X)
        scores = as_given(X, self._decisions(X))
        return scores[:, 0] if self._binary else scores

    @lazy_on_workers
    def predict(self, X: Any) -> np.ndarray:
        """Label of the largest `decision_function`; for an indicator, the labels where it is positive.

        Rows are scored in batches. Returns a NumPy array, as ``classes_`` is, whatever X is.
        """
        X = self._check_rows(X)
        return np.concatenate([self._decide(self._decisions(X[rows])) for rows in self._batches(X)])

    def to_sklearn(self) -> Any:
        """The same classifier as a fitted object of scikit-learn, which predicts without this package.

        `LinearSVC` for losses without probabilities, `LogisticRegression` for the multinomial and the binary logistic
        loss, `OneVsRestClassifier` of these otherwise. Predictions and probabilities are equal; the parameters are
        scikit-learn's defaults. ``skl2onnx.to_onnx`` takes it.

        Raises
        ------
        ValueError
            Where predictions are no linear function of X: one-vs-rest SLND with drawn negatives and a loss other than
            the logistic.
        """
        from cmargin._estimators.scikit_learn_twin import scikit_learn_twin  # which few need

        check_is_fitted(self)
        return scikit_learn_twin(self, self)

    def sparsify(self):
        """Keep ``coef_`` as a CSR matrix, for less memory and quicker predictions where most of it is 0.

        Training and `densify` bring the array back. Returns self.
        """
        check_is_fitted(self)
        self.coef_ = sp.csr_matrix(self.coef_)
        return self

    def densify(self):
        """Keep ``coef_`` as an array again, after `sparsify`. Returns self."""
        check_is_fitted(self)
        self.coef_ = dense(self.coef_)
        return self

    def _linear_form(self):
        """Weights and intercepts whose scores `predict` goes by, and what makes probabilities of these scores.

        Returns
        -------
        coef : (n_problems, n_features) array
        intercept : (n_problems,) array
        posterior : "logistic", "softmax" or None
        """
        return dense(self.coef_), self.intercept_, "logistic" if getattr(self, "loss", None) == "logistic" else None

    def _decisions(self, X):
        """What `predict` takes the largest of, or the sign: (n, n_problems)."""
        return self._scores(X)

    def _decide(self, decisions):
        if self._multilabel:
            return to_host(decisions > 0).astype(int)
        if self._binary:
            return self.classes_[to_host(decisions[:, 0] > 0).astype(int)]
        return self.classes_[to_host(namespace_of(decisions).argmax(decisions, axis=1))]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy on ``X`` and ``y``; of an indicator, the share of rows whose labels are all right."""
        return accuracy_of(labels_beside(X, y), computed(self.predict(X)), weights_beside(X, sample_weight))

    @property
    def _binary(self):
        return self.coef_.shape[0] == 1

    def _check_rows(self, X):
        check_is_fitted(self)
        X = check_rows(self, X, reset=False)
        check_columns(self, X)
        return X

    def _batches(self, X):
        return batches(X, max(1, SCORE_ENTRIES // self.coef_.shape[0]))

    def _scores(self, X):
        return linear_scores(X, self.coef_, self.intercept_)


def warn_of(shortfall):
    """A ConvergenceWarning of this sentence, unless it is None."""
    if shortfall is not None:
        warn_at_caller(shortfall, ConvergenceWarning)


def _product_in_range(factors):
    """The product of weights (n,) times a power of 2, the largest about 1; its sum without that power.

    No factor, product or sum leaves the range of doubles on the way.
    """
    weight, power = 1.0, 0
    for factor in factors:
        weight = weight * in_range(factor)
        power += int(np.frexp(factor.max())[1])
    if not weight.any():
        raise ValueError("sample_weight and class_weight leave every sample with weight 0.")
    with np.errstate(over="ignore"):
        total = float(np.ldexp(weight.sum(), power))
    return in_range(weight), min(total, LARGEST)


def of_mean_1(weight):
    """Weights (n,) times what makes their mean 1."""
    return weight * (len(weight) / weight.sum())


def rows_of_weight(home, Y, codes, weight):
    """Rows, labels and weights without rows of weight 0, the weights of mean 1; None where they are or all are 1."""
    if weight is None:
        return home, Y, codes, None
    if not weight.all() and not home.shares_reads:  # in files they stay, and count nothing
        kept = np.flatnonzero(weight)               # the only copy of X
        home, Y, codes, weight = home.keep(kept), Y[kept], None if codes is None else codes[kept], weight[kept]
    return home, Y, codes, of_mean_1(weight)


def untrained(classes, problems, n_problems):
    """A sentence on problems that time did not reach, or no words for none."""
    if len(problems) == 0:
        return ""
    if n_problems == 1:
        return " No step was taken; the weights are those of a ridge regression."
    names = ", ".join(str(classes[c]) for c in problems[:5]) + ", ..." * (len(problems) > 5)
    return (f" {len(problems)} classes were not trained and keep the ridge regression that all classes start with: "
            f"{names}.")
