"""One call of `SmSVMClassifier.fit` with the joint hinge of all classes, multi_class="crammer_singer"."""

from dataclasses import replace

import numpy as np
from sklearn.utils import check_random_state

from cmargin._estimators.progress import say
from cmargin._estimators.smsvm_fit import SmSVMFit, occurring_columns, penalty_of, settings_of
from cmargin._estimators.validation import InvalidParameterError
from cmargin._runtime.blas_threads import single_threaded_blas
from cmargin._runtime.clock import RunClock
from cmargin.solvers.dual.joint_hinge import JointHinge
from cmargin.solvers.history import SMSVM

JOINT = "multi_class='crammer_singer'"
OF_INDICATOR = f"{JOINT} is of classes that exclude each other; a label indicator needs multi_class='ovr'."
JOINT_OF_TWO = 0.5         # of l2, in the binary problem of two classes: w_1 = -w_0, and |w_1 - w_0|^2 is twice |W|^2


def refuse_parameters(estimator):
    """Raise where a parameter does not apply to the joint hinge, or asks for what its solver cannot do."""
    asked = {"loss": ("hinge",), "l1": (0,), "linear_solver": ("auto", "dual"), "line_search": ("exact",),
             "class_weight_on": ("rows",), "checkpoint": (None,), "warm_start": (False,), "groups": (None,),
             "lower": (None,), "upper": (None,), "l1_ratio": (None, 0), "prune": (False,),
             "coef_dtype": ("float64",)}
    if estimator.constraints is not None:
        raise InvalidParameterError(f"{JOINT} needs constraints=None.")
    for name, values in asked.items():
        value = getattr(estimator, name)
        if not any(value is one or (np.ndim(value) == 0 and value == one) for one in values):
            raise InvalidParameterError(f"{JOINT} needs {name}={' or '.join(map(repr, values))}; got {value!r}.")
    if np.ndim(estimator.l2) > 0:
        raise InvalidParameterError(f"{JOINT} needs one l2 for all columns; got {np.size(estimator.l2)} of them.")
    if estimator.C == np.inf or (estimator.C is None and estimator.l2 == 0):
        raise InvalidParameterError(f"{JOINT} needs l2 above 0, as its bound comes from the penalty; got "
                                    f"l2={estimator.l2!r} and C={estimator.C!r}.")


def refuse_rows(source):
    """Raise unless the rows are in memory, with one label each."""
    if not source.in_memory:
        source.refuse(JOINT)
    if np.ndim(source.y) == 2 and source.y.shape[1] > 1:
        raise ValueError(OF_INDICATOR)


def joint_fit(estimator, source, labels, weights, total_weight, started):
    """What `LinearClassifier._leave` takes; the arguments of `SmSVMFit`."""
    if len(labels.classes) == 2:
        return SmSVMFit(estimator, source, labels, weights, total_weight, started, l2_factor=JOINT_OF_TWO).trained()
    with np.errstate(over="ignore", invalid="ignore"):
        try:
            return JointFit(estimator, source, labels, weights, total_weight, started).trained()
        except FloatingPointError:
            raise ValueError("X holds values so large that sums of their squares overflow; scale the features.") \
                from None


class JointFit:
    """Nothing of the estimator is touched before `publish`."""

    def __init__(self, estimator, source, labels, weights, total_weight, started):
        """``weights``: of mean 1, or None; ``total_weight``: their sum as they were given."""
        e, self.n_features = estimator, source.n_features
        penalty = penalty_of(e, total_weight, self.n_features)
        absent = np.flatnonzero(np.bincount(labels.label, weights, len(labels.classes)) == 0)
        if len(absent):
            raise ValueError(f"{JOINT} needs a row of positive weight of every class; there is none of "
                             f"{labels.classes[absent[0]]!r}.")
        self.occurring = occurring_columns(source, penalty)
        if self.occurring is not None:
            source = source.of_columns(self.occurring)
        self.estimator, self.labels, self.interrupted = estimator, labels, False
        self.clock = RunClock(None if e.max_time is None else started + e.max_time)
        settings = replace(settings_of(e, clock=self.clock), stop=self._asked_to_stop if e.callback else None,
                           tell=self._tell if e.verbose else None)
        intercept = bool(e.fit_intercept)
        seed = 0 if e.random_state is None else int(check_random_state(e.random_state).randint(2**31 - 1))
        self.solver = JointHinge(source, labels.label, weights, len(labels.classes), penalty.l2, intercept,
                                 intercept and not e.penalize_intercept, settings, seed)
        self.result = self.solver.result

    def trained(self):
        with single_threaded_blas():
            interruption = self.solver.run()
        self.solver = None                       # and with it the rows
        return self, interruption, JointFit.publish, JointFit.shortfall

    def publish(self):
        """Set the fitted attributes to the best point so far."""
        e, result, m = self.estimator, self.result, self.n_features
        W, occurring = result.w, slice(m) if self.occurring is None else self.occurring
        n_kept = m if self.occurring is None else len(self.occurring)
        coef = np.zeros((len(W), m))
        coef[:, occurring] = W[:, :n_kept]
        columns = np.array(result.history, float).reshape(-1, len(SMSVM)).T
        vars(e).update(
            classes_=self.labels.classes, _multilabel=False, coef_=coef,
            intercept_=W[:, -1].copy() if e.fit_intercept else np.zeros(len(W)),
            duality_gap_=np.array([result.gap]), objective_=np.array([result.objective]), n_iter_=result.n_iter,
            n_passes_=float(result.passes),
            history_={**dict(zip(SMSVM, columns, strict=True)), "class": np.full(len(result.history), -1)},
        )

    def shortfall(self):
        """A sentence where the fit stopped short of the tolerance; None where it did not, or was asked to stop."""
        e, result = self.estimator, self.result
        if result.status in ("converged", "stopped"):
            return None
        limit = f"max_time={e.max_time} s" if result.status == "max_time" else f"max_passes={e.max_passes:g}"
        return (f"{type(e).__name__} stopped at {limit} with a relative duality gap of {result.gap:.1e} where "
                f"tol={e.tol:g} was asked. Try a larger max_passes, max_time or tol, scaled features, or a larger l2.")

    def _asked_to_stop(self):
        self.publish()
        return self.clock.asked_to_stop(self.estimator.callback, self.estimator)

    def _tell(self, result):
        last = dict(zip(SMSVM, result.history[-1], strict=True))
        say(self.estimator, f"{last['passes']:.2f} passes, objective {last['objective']:.6g}, gap {last['gap']:.2g}, "
                            f"{last['seconds']:.2f} s")
