"""A trained model as an object of scikit-learn, which predicts the same without this package."""

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import LabelBinarizer
from sklearn.svm import LinearSVC


def scikit_learn_twin(model, columns):
    """What `LinearClassifier.to_sklearn` returns; ``columns``: the estimator that knows number and names of columns."""
    coef, intercept, posterior = model._linear_form()
    kind = LinearSVC if posterior is None else LogisticRegression
    # the softmax of a LogisticRegression would give other probabilities for one-vs-rest problems, and no label sets
    apart = model._multilabel or (posterior == "logistic" and len(coef) > 1)
    if not apart:
        return _linear(kind, coef, intercept, model.classes_, columns)
    twin = OneVsRestClassifier(kind())
    twin.label_binarizer_ = LabelBinarizer(sparse_output=True).fit(
        [[0] * len(coef), [1] * len(coef)] if model._multilabel else model.classes_)
    twin.classes_ = twin.label_binarizer_.classes_
    twin.estimators_ = [_linear(kind, coef[c:c + 1], intercept[c:c + 1], [0, 1], columns) for c in range(len(coef))]
    _name_columns(twin, columns)
    return twin


def _linear(kind, coef, intercept, classes, columns):
    """A fitted ``kind`` with these weights; they are copied, so that a later fit does not change them."""
    twin = kind()
    twin.coef_, twin.intercept_, twin.classes_ = coef.copy(), intercept.copy(), np.array(classes)
    twin.n_iter_ = 0 if kind is LinearSVC else np.zeros(1, np.int32)
    _name_columns(twin, columns)
    return twin


def _name_columns(twin, columns):
    twin.n_features_in_ = columns.coef_.shape[1]
    if hasattr(columns, "feature_names_in_"):
        twin.feature_names_in_ = columns.feature_names_in_.copy()
