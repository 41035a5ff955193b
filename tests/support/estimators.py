"""Every public estimator, for the tests that hold of all of them."""

import warnings

from sklearn.exceptions import ConvergenceWarning

import cmargin
from cmargin import baselines


def quietly(model, *data, **more):
    """The model, fitted without a word on how far it got."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(*data, **more)


def quick_estimators():
    """One of each, with settings under which a small fit takes milliseconds."""
    classes = [cmargin.SLNDClassifier, cmargin.BSNClassifier, *(getattr(baselines, name) for name in baselines.__all__)]
    few = {"max_passes": 3, "random_state": 0}
    return [
        *(kind().set_params(**{name: few[name] for name in few if name in kind().get_params()}) for kind in classes),
        *(cmargin.MarginPursuitClassifier(solver=solver, **few) for solver in ("newton", "gd", "sgd")),
        *(cmargin.SmSVMClassifier(loss=loss) for loss in ("hinge", "squared_hinge", "logistic", "huberised_hinge",
                                                          "modified_huber")),
        cmargin.SmSVMClassifierCV(l2s=(1e-2,), cv=2),
        cmargin.SLNDClassifierCV(l2s=(1e-2,), cv=2),
    ]
