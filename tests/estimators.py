"""Every public estimator, for the tests that hold of all of them."""

import cmargin
from cmargin import baselines


def quick_estimators():
    """One of each, with settings under which a small fit takes milliseconds."""
    few = {"max_passes": 3}
    return [
        cmargin.SLNDClassifier(random_state=0, **few),
        cmargin.BSNClassifier(random_state=0, **few),
        cmargin.SmSVMClassifierCV(l2s=(1e-2,), cv=2),
        cmargin.MarginPursuitClassifier(**few),
        cmargin.MarginPursuitClassifier(solver="gd", **few),
        cmargin.MarginPursuitClassifier(solver="sgd", random_state=0, **few),
        *(getattr(baselines, name)(**few) for name in baselines.__all__),
    ]
