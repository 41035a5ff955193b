"""What a user's type checker sees; mypy reads it, nothing runs it. Every wrong line must be an error."""

from collections.abc import Iterator
from typing import assert_type

import numpy as np

import cmargin
from cmargin import (
    BSNClassifier,
    Checkpoint,
    MarginPursuitClassifier,
    SLNDClassifier,
    SmSVMClassifier,
    SmSVMClassifierCV,
    margins,
)
from cmargin.baselines import AdamClassifier

X, y = np.zeros((4, 2)), np.array([0, 1, 0, 1])

slnd = SLNDClassifier(loss="multinomial", rank=3, max_passes=5, class_weight={0: 2.0}, random_state=3).fit(X, y)
assert_type(slnd, SLNDClassifier)
assert_type(BSNClassifier().partial_fit(X, y, classes=[0, 1]), BSNClassifier)
assert_type(slnd.predict(X), np.ndarray)
assert_type(slnd.predict_proba(X), np.ndarray)
assert_type(slnd.predict_top_k(X, 2), np.ndarray)
assert_type(slnd.score(X, y), float)
assert_type(slnd.history_, dict[str, np.ndarray])
assert_type(AdamClassifier(l2=1e-3).fit(X, y).coef_, np.ndarray)

svm = SmSVMClassifier(C=1.0, loss="squared_hinge", checkpoint=Checkpoint("fit.checkpoint", seconds=None, passes=5.0))
assert_type(svm.fit(X, y, sample_weight=np.ones(4)).decision_function(X), np.ndarray)
assert_type(SmSVMClassifierCV(l2s=[1e-3, 1e-2], estimator=svm).fit(X, y).l2_, float)
assert_type(MarginPursuitClassifier(scale="one-shot", l2=0.1, callback=lambda model: True).n_passes_, float)


def batches() -> Iterator[np.ndarray]:
    yield slnd.decision_function(X)


assert_type(margins.top_k_accuracy(batches(), y, k=1), float)
assert_type(margins.margin(slnd.decision_function(X), y), np.ndarray)
assert_type(cmargin.get_include(), str)
assert_type(cmargin.datasets.load("iris").note, str)

SLNDClassifier(max_passes="ten")  # type: ignore[arg-type]
SLNDClassifier(passes=10)  # type: ignore[call-arg]
SmSVMClassifier(C="1")  # type: ignore[arg-type]
slnd.fit(X)  # type: ignore[call-arg]
slnd.predict_top_k(X, 2.5)  # type: ignore[arg-type]
margins.margin(X)  # type: ignore[call-arg]
cmargin.datasets.load(3)  # type: ignore[arg-type]
cmargin.SmSVM  # type: ignore[attr-defined]  # noqa: B018
