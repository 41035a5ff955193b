"""Models from files in which there is no code (`cmargin._estimators.saved`)."""

import os
import warnings
from importlib import import_module
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_outlier_detector, is_regressor
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, OneHotEncoder, StandardScaler

from cmargin._core.rows._structure import check_structure
from cmargin._estimators.identity import InconsistentVersionWarning
from cmargin._estimators.saved import WITHOUT_USE, read
from cmargin._runtime.aligned import aligned
from cmargin._version import __version__

ESTIMATOR, COMMAND = "estimator", "command"      # the kinds of files
OURS = {"SLNDClassifier": "slnd", "BSNClassifier": "slnd", "SLNDClassifierCV": "slnd_cv", "SmSVMClassifier": "smsvm",
        "SmSVMClassifierCV": "smsvm_cv", "SmSVMRegressor": "smsvm_regressor",
        "MarginPursuitClassifier": "pursuit", "PegasosClassifier": "pursuit", "SmSVMOneClass": "one_class"}
SCIKIT_LEARN = {kind.__name__: kind for kind in (StandardScaler, Normalizer, SimpleImputer, OneHotEncoder)}


def load(path: Any) -> Any:
    """The model of a file that ``model.save(path)`` or `cmargin fit` wrote. Nothing in the file is run.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    estimator
        As it was saved, but for what only a further fit needs. Of a file of `cmargin fit`, a pipeline of the scaler and
        the classifier.

    Raises
    ------
    ValueError
        Where it is no such file, is cut short or was altered; and for a file of `cmargin fit` whose features were made
        of columns of texts or with gaps, which only `cmargin predict` can read.

    Warns
    -----
    InconsistentVersionWarning
        Where another version of this package wrote it.
    """
    kind, version, content, arrays = read(os.fspath(path))
    made = Restoring(path, arrays).value(content)
    if version != __version__:
        warnings.warn(InconsistentVersionWarning(type(made).__name__, version), stacklevel=2)
    if kind == ESTIMATOR:
        try_out(path, made)
        return made
    if kind != COMMAND or not isinstance(made, dict) or "classifier" not in made:
        raise ValueError(f"{path} is no model file of cmargin: its kind is {kind!r}.")
    if made.get("encoder") is not None:
        raise ValueError(f"{path} makes its features of columns of texts or with gaps: `cmargin predict` reads it.")
    scaler, classifier = made.get("scaler"), made["classifier"]
    try_out(path, classifier, scaler)
    return classifier if scaler is None else make_pipeline(scaler, classifier)


class Restoring:
    """Turns JSON back into values, with ``arrays`` by their names."""

    def __init__(self, path, arrays):
        self.path, self.arrays = path, arrays

    def value(self, told):
        """What `cmargin._estimators.saved.Saving.told` was given."""
        try:
            return self._value(told)
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError,
                MemoryError) as error:
            raise ValueError(f"{self.path} is no model file of cmargin, or was altered: {error}.") from None

    def _value(self, told):
        if not isinstance(told, dict):
            if isinstance(told, list):
                raise ValueError("a list without a name")
            return told
        (kind, content), = told.items()
        return getattr(self, {"list": "_list", "tuple": "_tuple", "dict": "_dict", "csr": "_csr", "csc": "_csc",
                              "array": "_array", "texts": "_texts", "dtype": "_dtype",
                              "estimator": "_estimator"}[kind])(content)

    def _list(self, content):
        return [self._value(item) for item in content]

    def _tuple(self, content):
        return tuple(self._list(content))

    def _dict(self, content):
        return {self._value(key): self._value(item) for key, item in content}

    def _array(self, name):
        return aligned(self.arrays[name])

    def _texts(self, content):
        shape, texts = content
        if not all(isinstance(text, str) for text in texts):
            raise ValueError("texts that are none")
        return np.array(texts, object).reshape(shape)

    def _dtype(self, name):
        return np.dtype(str(name))

    def _csr(self, content):
        return self._matrix(sp.csr_matrix, content)

    def _csc(self, content):
        return self._matrix(sp.csc_matrix, content)

    def _matrix(self, kind, content):
        *parts, shape = content
        matrix = kind(tuple(self.arrays[part] for part in parts), shape=tuple(map(int, shape)))
        check_structure(matrix)
        return matrix

    def _estimator(self, content):
        name = content["class"]
        kind = SCIKIT_LEARN.get(name) or class_of(name)
        parameters = {key: self._value(item) for key, item in content["parameters"].items()}
        if not parameters.keys().isdisjoint(WITHOUT_USE):        # a further fit writes its checkpoint, and removes it
            raise ValueError(f"no file gives {name} a {' or a '.join(WITHOUT_USE)}")
        model = kind(**parameters)
        fitted = {key: self._value(item) for key, item in content["fitted"].items()}
        strange = [key for key in fitted if hasattr(kind, key) and callable(getattr(kind, key))]
        if strange or any(key.startswith("__") for key in fitted):
            raise ValueError(f"a fit of {name} leaves no {', '.join(strange) or 'such attributes'}")
        vars(model).update(fitted)
        _check(model)
        return model


def class_of(name):
    """The class of this package that has the name; ValueError for any other."""
    if name in OURS:
        return getattr(import_module(f"cmargin.{OURS[name]}"), name)
    baselines = import_module("cmargin.baselines")
    if name in baselines.__all__:
        return getattr(baselines, name)
    raise ValueError(f"there is no class {name!r}")


def try_out(path, model, scaler=None):
    """Raise ValueError where the parts of a model do not fit each other: they are tried on a row of zeros."""
    try:
        if hasattr(getattr(model, "coef_", None), "tocsr"):          # the row would be as long as all columns
            return
        if getattr(model, "refit", True):
            row = np.zeros((1, model.n_features_in_))
            row = row if scaler is None else scaler.transform(row)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")                  # it has no names of columns
                for name in ("predict", "decision_function", "predict_proba", "posterior"):
                    if hasattr(model, name):
                        getattr(model, name)(row)
    except Exception as error:                   # values of other types raise whatever they meet
        raise ValueError(f"{path} is no model file of cmargin, or was altered: {error}.") from None


def _check(model):
    """Raise ValueError where weights do not fit each other: what is computed from them trusts that they do."""
    known = vars(model)
    if "coef_" not in known:
        return
    coef, intercept, n = known["coef_"], known["intercept_"], known["n_features_in_"]
    flat = is_regressor(model) and isinstance(intercept, float)          # of one target, as scikit-learn has them
    if flat:
        coef, intercept = coef.reshape(1, -1), np.array([intercept])
    shape = coef.shape
    if len(shape) != 2 or intercept.shape != shape[:1] or shape[1] != n:
        raise ValueError(f"coef_ of shape {shape} beside intercept_ of {intercept.shape} and {n} features")
    without = is_regressor(model) or is_outlier_detector(model)
    classes = np.arange(shape[0]) if without else known["classes_"]
    of_two = shape[0] == 1 and not without and not known.get("_multilabel")
    if classes.ndim != 1 or len(classes) != (2 if of_two else shape[0]):
        raise ValueError(f"{shape[0]} rows of coef_ for {len(classes)} classes")
    for numbers in (coef.data if hasattr(coef, "tocsr") else coef, intercept):
        if numbers.dtype.kind != "f" or not np.isfinite(numbers).all():
            raise ValueError("weights that are no finite floats")
