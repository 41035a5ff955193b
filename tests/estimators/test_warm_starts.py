"""What a warm start takes over from the last fit, and what it refuses: the same of every estimator that has one."""

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

from cmargin import MarginPursuitClassifier, PegasosClassifier, SLNDClassifier, SmSVMClassifier, baselines

X, y = load_wine(return_X_y=True)
X = scale(X)
MODELS = [SLNDClassifier(random_state=0), SLNDClassifier(loss="logistic", random_state=0), SLNDClassifier(l2=1e-2),
          SmSVMClassifier(), SmSVMClassifier(linear_solver="dual"), MarginPursuitClassifier(l2=1e-2),
          PegasosClassifier(random_state=0), baselines.CGDescentClassifier(l2=1e-2)]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_an_intercept_that_is_wanted_no_more_is_0(model):
    # SLND and Pegasos went on with the last fit's
    model.set_params(warm_start=True).fit(X, y).set_params(fit_intercept=False).fit(X, y)
    assert not model.intercept_.any() and model.score(X, y) > 0.9


@pytest.mark.parametrize("what", [np.nan, np.inf])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_weights_that_are_no_numbers_are_refused(model, what):
    # the dual went on without end from NaN, others to a model at chance
    model.set_params(warm_start=True, fit_intercept=True).fit(X, y).coef_[0, 2] = what
    with pytest.raises(ValueError, match="needs finite weights, but coef_ or intercept_ of the last fit contains NaN"):
        model.fit(X, y)
    assert model.set_params(warm_start=False).fit(X, y).score(X, y) > 0.9
