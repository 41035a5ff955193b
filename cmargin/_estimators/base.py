"""One base of all linear models: parameters, `fit`, weights, warm start, callback, interrupt, warning."""

import time
from contextlib import contextmanager
from functools import wraps
from typing import Any, Self, cast

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import _check_feature_names, _check_sample_weight

from cmargin._core.util._fp_control import StandardArithmetic
from cmargin._estimators.apart import check_list, is_indicator, weights_differ
from cmargin._estimators.apart import train as train_apart
from cmargin._estimators.docs import Method
from cmargin._estimators.identity import VersionInPickle, check_checkpoint, checkpointer_of
from cmargin._estimators.labels import (
    balanced_weights,
    check_class_weights,
    in_range,
    product_in_range,
    warn_of_constant,
)
from cmargin._estimators.predict import LinearPredictions
from cmargin._estimators.progress import say, warn_of
from cmargin._estimators.validation import (
    INT_MAX,
    POSITIVE,
    check_parameter,
    check_seed,
    check_set_by_hand,
    check_verbose,
    open_checked,
)
from cmargin._runtime.fit_slots import FitSlot
from cmargin.data.places import on_workers, place_of

NONE_YET = np.empty(0)


def keeps_last_fit(method: Method) -> Method:
    """Decorator of `fit` and `partial_fit`: where the call raises before there are new weights, undo what it set.

    A refusal comes after scikit-learn has set ``n_features_in_`` and ``feature_names_in_``, and often after the labels
    are known: the last model would be left with another's columns or classes, an estimator never fitted would look as
    if it were. Everything in ``__dict__`` is put back, parameters included.

    There are new weights where ``coef_`` is another object than before, and new scores of a search where ``scores_``
    is. Such a call, stopped by an interrupt or by an
    error in a callback, keeps what it stored; so whatever belongs to ``coef_`` is stored along with it, by one
    ``vars(self).update``, which no interrupt cuts in two.

        @keeps_last_fit
        def fit(self, X, y, sample_weight=None):

    is all that an estimator needs; weights of which `sparsify` made a matrix are an array again where the fit goes on
    from them. Within it the
    processor computes by its standard settings, whatever another library has made of them.
    """
    @wraps(method)
    def call(self, *args, **kwargs):
        before = dict(vars(self))
        goes_on = before.get("warm_start", True) or method.__name__ != "fit"
        if goes_on and not isinstance(before.get("coef_", NONE_YET), np.ndarray):
            self.densify()
        started = vars(self).get("coef_"), vars(self).get("scores_")
        try:
            with StandardArithmetic():
                return method(self, *args, **kwargs)
        except BaseException:
            if vars(self).get("coef_") is started[0] and vars(self).get("scores_") is started[1]:
                for name in vars(self).keys() - before.keys():
                    delattr(self, name)
                vars(self).update(before)
            raise

    return cast(Method, call)


IN_MEMORY_OF_RANKS = "Rows in files or on a device do not take comm= yet; read those of each rank into memory."


class LinearModel(VersionInPickle, BaseEstimator):
    """Base of linear classifiers and regressors: how a fit begins, is watched and ends.

    A subclass gives `_check_parameters`, and ``_train(source, sample_weight, begin, checkpointer)``, which returns the
    arguments of `_leave`; ``source.y`` is y, ``checkpointer`` what writes checkpoints and has what the last one left.
    """

    n_features_in_: int
    n_iter_: int
    n_passes_: float
    history_: dict[str, np.ndarray]

    def _fit(self, X, y, sample_weight, comm=None):
        """What `fit` does."""
        begin, shortfall = time.perf_counter(), None
        with open_data(self, X, y, sample_weight, comm) as (source, weight, checkpointer):
            if source is not None:
                shortfall = self._leave(*self._trained(source, weight, begin, checkpointer))
                checkpointer.close()
        self._warn_of(shortfall)
        return self

    def _trained(self, source, sample_weight, begin, checkpointer):
        return self._train(source, sample_weight, begin, checkpointer)

    _warn_of = staticmethod(warn_of)         # of a fit that stopped short; a search collects what is said
    _takes_places = False            # whether `fit` takes comm= and Dask collections
    _leaves_out_weightless = True    # rows of weight 0

    def _refuse_over_places(self, how):
        """Raise ValueError for parameters that rows in several places cannot go with; ``how``: "with comm=", say."""

    def _check_for(self, places):
        """Raise unless parameters are in order for rows in ``places``: "comm=", "Dask collections" or None, here."""
        if places and not self._takes_places:
            others = "" if places == "comm=" else (", as SmSVMClassifier, SmSVMRegressor, MarginPursuitClassifier, "
                                                   "SLNDClassifier and BSNClassifier do; give X.compute()")
            raise ValueError(f"{type(self).__name__} does not take {places} yet{others}.")
        self._check_parameters()
        if places:
            self._refuse_over_places(f"with {places}")

    def _check_shared(self):
        """Parameters that every subclass has."""
        check_parameter(self, "max_time", self.max_time, real=POSITIVE, none=True)
        check_parameter(self, "n_jobs", self.n_jobs, integer=(-INT_MAX, INT_MAX, "(-inf, inf)"), none=True)
        check_verbose(self)
        check_seed(self)
        check_parameter(self, "callback", self.callback, none=True, call=True)
        check_checkpoint(self, self.checkpoint)
        for name in ("fit_intercept", "warm_start"):
            check_parameter(self, name, getattr(self, name), flag=True)

    @property
    def _goes_on(self):
        """Whether a fit starts from the last one's weights."""
        return self.warm_start and hasattr(self, "coef_")

    _keeps_columns = False           # whether X must have the columns of the last fit, by their names too

    @property
    def _last_coef(self):
        """The weights to go on from, in C order."""
        return np.ascontiguousarray(self.coef_, None if self.coef_.dtype.kind == "f" else float)

    @property
    def _last_intercept(self):
        """That of the weights to go on from: 0 where none is fitted any more."""
        return np.asarray(self.intercept_, float) * bool(self.fit_intercept)

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

    def _leave(self, fit, interruption, store, shortfall):
        """Store the fit; then let the interrupt go on, or say how far it got.

        ``fit``, which is complete also where it was stopped, is stored by ``store(fit)``. ``interruption``, `Deferred`
        or None, is what ended the run. Returns what ``shortfall(fit)`` says: a sentence on how far the fit got and what
        to try, or None where it went to its end.
        """
        store(fit)
        if interruption is not None:
            raise interruption.taken()
        return shortfall(fit)


class LinearClassifier(LinearPredictions, ClassifierMixin, LinearModel):
    """Base of estimators with ``coef_``, ``intercept_`` and ``classes_``.

    These three are all that predictions and warm starts need: they may be set by hand, as in scikit-learn. Whatever
    else a fit leaves has a default here or in the subclass.
    """

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
            Whole numbers, booleans or texts; or paths of .npy files, or the name of a column or array of labels in the
            files of X, ``fit("trees.parquet", "tree")``; Dask collections and tensors where X is one.
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
        return self._fit(X, y, sample_weight, comm)

    def _trained(self, source, sample_weight, begin, checkpointer):
        apart = None
        if source.agreed is None:
            check_list(self, is_indicator(source.y))
            if weights_differ(self, source, sample_weight):
                apart = train_apart(self, source, sample_weight, begin)
        return self._train(source, sample_weight, begin, checkpointer) if apart is None else apart

    _own_fit = staticmethod(fit)     # this package's, which a subclass of users may have replaced by its own
    class_weight_on = "rows"         # or "positives", where an estimator has the parameter
    _names_constants = True          # whether a fit warns of labels of one sign
    _on_class = None                 # of SmSVM: called with the gap of every class when it ends, or None

    def _check_shared(self):
        super()._check_shared()
        # what it holds is checked where it is used
        check_parameter(self, "class_weight", self.class_weight, mapping=True, options=("balanced",), none=True)

    def _check_last_fit(self, source, classes, multilabel, what="warm_start"):
        """Raise unless columns and classes are those of the weights that ``what`` goes on from, which are finite."""
        check_set_by_hand(self, what, ("coef_", "intercept_", "classes_"))
        if source.n_features != self.coef_.shape[1]:
            raise ValueError(f"X has {source.n_features} features, but the fit to go on from has {self.coef_.shape[1]}")
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

    def _weights(self, sample_weight, source, classes, codes):
        """Row weights times class weights, (n,), the largest about 1, or None where all rows weigh 1; and their sum as
        they were given, at most the largest double."""
        if sample_weight is None and self.class_weight is None:
            return None, float(source.n_rows)
        sample_weight = _check_sample_weight(sample_weight, source.y, dtype=np.float64, ensure_non_negative=True)
        factors = [sample_weight]
        if self.class_weight is not None:
            by_class = self._class_weights(classes, codes, sample_weight)
            check_class_weights(by_class)
            factors.append(by_class[codes])
        return product_in_range(factors)

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


def open_data(estimator, X, y, sample_weight, comm=None, check=lambda: None):
    """What a fit trains on, checked: a context with the data source of rows and labels, weights, and a `Checkpointer`.

    The data source is None on a rank other than 0, where all has been done by then. Of rows in several places, what is
    said of labels and weights is ``source.agreed``. What ``check()`` raises on one rank all ranks hear of.
    """
    def rows():
        check()
        return _rows(estimator, X, y, sample_weight, comm)

    if comm is None and not on_workers(X):
        return _in_this_process(estimator, rows)
    from cmargin._estimators import shards  # which few need

    return shards.over_workers(estimator, rows) if comm is None else shards.over_ranks(estimator, rows, comm)


def _rows(estimator, X, y, sample_weight, comm):
    """Rows and labels as a data source, those of this process or of workers, and weights, once parameters and all are
    checked.
    """
    if comm is not None or not on_workers(X):
        estimator._check_for(None if comm is None else "comm=")
        source, sample_weight = open_checked(estimator, X, y, sample_weight, may_be_empty=comm is not None)
        if comm is not None and not source.in_memory:
            raise ValueError(IN_MEMORY_OF_RANKS)
        return source, sample_weight
    place = place_of(X)
    estimator._check_for(f"{place.name} collections")
    if estimator.checkpoint is not None:
        raise ValueError(f"checkpoint= does not go with {place.name} collections yet; a worker that dies loses nothing "
                         "there.")
    if y is None:
        raise ValueError(f"This {type(estimator).__name__} estimator requires y to be passed, but the target y is "
                         "None.")
    _check_feature_names(estimator, getattr(X, "_meta", None), reset=True)
    source = place.open(X, y, None, sample_weight)
    estimator.n_features_in_ = source.n_features
    return source, None


@contextmanager
def _in_this_process(estimator, rows):
    with FitSlot(waits=estimator.max_time is None):
        source, sample_weight = rows()
        try:
            yield source, sample_weight, checkpointer_of(estimator, source, sample_weight)
        finally:
            source.let_go()


def untrained(classes, problems, n_problems):
    """A sentence on problems that time did not reach, or no words for none."""
    if len(problems) == 0:
        return ""
    if n_problems == 1:
        return " No step was taken; the weights are those of a ridge regression."
    names = ", ".join(str(classes[c]) for c in problems[:5]) + ", ..." * (len(problems) > 5)
    return (f" {len(problems)} classes were not trained and keep the ridge regression that all classes start with: "
            f"{names}.")
