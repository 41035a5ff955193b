"""A library of clusters is a line in the table of places, and a module that opens and predicts (`another_cluster`)."""

import numpy as np
import pytest
from another_cluster import PLACE, Parts
from conftest import blobs

from cmargin import SLNDClassifier, SmSVMClassifier
from cmargin.data import places


@pytest.fixture(autouse=True)
def listed(monkeypatch):
    monkeypatch.setattr(places, "PLACES", [*places.PLACES, PLACE])


@pytest.mark.parametrize("model", [SmSVMClassifier(tol=1e-6), SLNDClassifier(random_state=0)])
def test_who_opens_and_who_predicts_asks_the_table(model):
    # both knew Dask by its name, in five files
    X, y = blobs(n=300, d=6, k=3)
    weight = np.random.default_rng(0).random(300)
    parts = Parts(np.split(X, [70, 160]))
    model.fit(parts, y, sample_weight=weight)
    scores = model.decision_function(parts)
    assert isinstance(scores, Parts) and np.mean(model.predict(X) == y) > 0.6
    assert np.array_equal(np.concatenate(scores.parts), model.decision_function(X))
    if isinstance(model, SmSVMClassifier):
        alone = SmSVMClassifier(tol=1e-6).fit(X, y, sample_weight=weight)
        np.testing.assert_allclose(model.objective_, alone.objective_, rtol=2e-6)


def test_messages_name_the_library():
    parts = Parts([np.eye(3), np.eye(3)])
    with pytest.raises(TypeError, match="does not take Another collections here"):
        SLNDClassifier().partial_fit(parts, np.arange(6) % 2, classes=[0, 1])
    with pytest.raises(ValueError, match="checkpoint= does not go with Another collections yet"):
        SmSVMClassifier(checkpoint="never_written").fit(parts, np.arange(6) % 2)
