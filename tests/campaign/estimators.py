"""Every public estimator, made by name, and the settings that lead it down its different ways."""

from importlib import import_module

ESTIMATORS = ("SLNDClassifier", "BSNClassifier", "SmSVMClassifier", "SmSVMClassifierCV", "SLNDClassifierCV",
              "MarginPursuitClassifier", "PegasosClassifier", "AdaDeltaClassifier", "AdamClassifier",
              "BalancedSGDClassifier",
              "CGDescentClassifier", "CatoniHingeClassifier", "NesterovClassifier", "ODMClassifier",
              "PreconditionedSGDClassifier", "ProjectionProfileClassifier", "SGDQNClassifier")
WITHOUT_LABELS = ("SmSVMRegressor", "SmSVMOneClass")     # y is numbers, or not asked for
SEARCHES = ("SmSVMClassifierCV", "SLNDClassifierCV")     # take cv= and an estimator
WAYS = {
    "SLNDClassifier": [{}, {"loss": "squared"}, {"tail": "drop", "hessian_refresh": 2}, {"step_size": "theory"},
                       {"negatives_per_positive": None}, {"loss": "multinomial"},
                       {"loss": "multinomial", "rank": 2, "step_size": 0.5}, {"loss": "multinomial", "l2": 1e-2}],
    "BSNClassifier": [{}, {"loss": "calibrated_hinge"}, {"loss": "multinomial"}],
    "SmSVMClassifier": [{}, {"l1": 1e-2}, {"linear_solver": "cg"}, {"linear_solver": "woodbury"},
                        {"linear_solver": "dual"}, {"l2": 0.0}, {"line_search": "quadratic"},
                        {"loss": "squared_hinge"}, {"loss": "logistic"}, {"loss": "squared_hinge", "l1": 1e-2},
                        {"loss": "logistic", "linear_solver": "cg"}, {"C": 1.0}],
    "SmSVMRegressor": [{}, {"loss": "quantile", "quantile": [0.1, 0.9]}, {"loss": "huber"}, {"l1": 1e-2}],
    "MarginPursuitClassifier": [{}, {"solver": "gd"}, {"solver": "sgd"}, {"solver": "sgd", "l2": 0.1},
                                {"scale": "one-shot", "l2": 0.1}],
    "NesterovClassifier": [{}, {"batch_size": 4}, {"loss": "smoothed_hinge", "l1": 1e-3}],
    "PreconditionedSGDClassifier": [{}, {"preconditioner": "diagonal"}],
}


def make(name, **settings):
    """The estimator of a name; its random numbers fixed where it draws any."""
    source = import_module("cmargin")
    estimator = getattr(source, name) if name in source.__all__ else getattr(import_module("cmargin.baselines"), name)
    known = estimator().get_params()
    if "random_state" in known:
        settings = {"random_state": 0, **settings}
    return estimator(**{key: value for key, value in settings.items() if key in known})


def public():
    """Names of all classes with ``fit`` that the package exports: what `ESTIMATORS` and `WITHOUT_LABELS` must be."""
    sources = [import_module("cmargin"), import_module("cmargin.baselines")]
    return {name for source in sources for name in source.__all__ if hasattr(getattr(source, name), "fit")}
