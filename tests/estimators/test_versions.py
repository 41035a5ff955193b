"""A pickle of another version warns and can be used; one of this version says nothing."""

import copy
import pickle
import warnings

import joblib
import numpy as np
import pytest
from conftest import blobs
from estimators import quick_estimators
from sklearn.exceptions import InconsistentVersionWarning

import cmargin
from cmargin import SmSVMClassifier
from cmargin.cli.model import Model, load

X, Y = blobs(n=90, d=5, k=3)
OURS = "cmargin._estimators.identity.__version__"


@pytest.fixture
def written_by_0_0_9(monkeypatch):
    """What makes a pickle that version 0.0.9 wrote."""
    def write(model):
        with monkeypatch.context() as patch:
            patch.setattr(OURS, "0.0.9")
            return pickle.dumps(model)

    return write


@pytest.mark.parametrize("model", quick_estimators(), ids=lambda model: repr(model)[:60])
def test_another_version_warns_and_works(model, written_by_0_0_9):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, Y)
    with pytest.warns(InconsistentVersionWarning) as received:
        again = pickle.loads(written_by_0_0_9(model))
    text = str(received[-1].message)
    assert f"{type(model).__name__} from cmargin 0.0.9 when using cmargin {cmargin.__version__}" in text
    assert vars(again).keys() == vars(model).keys() and np.array_equal(again.predict(X), model.predict(X))


def test_the_same_version_says_nothing(tmp_path):
    model = SmSVMClassifier().fit(X, Y)
    joblib.dump(model, tmp_path / "model")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), joblib.load(tmp_path / "model")):
            assert vars(again).keys() == vars(model).keys() and np.array_equal(again.coef_, model.coef_)


def test_a_pickle_without_a_version_warns():
    again = SmSVMClassifier.__new__(SmSVMClassifier)
    with pytest.warns(InconsistentVersionWarning, match="did not write it down"):
        again.__setstate__({"l2": 0.5})
    assert again.l2 == 0.5


@pytest.mark.parametrize("kind", ["without code", "pickle"])
def test_a_model_file_says_it_once(tmp_path, written_by_0_0_9, monkeypatch, capsys, kind):
    model = Model(SmSVMClassifier().fit(X, Y))
    if kind == "pickle":
        bits = written_by_0_0_9({"kind": "cmargin model", "version": "0.0.9", "model": vars(model)})
        (tmp_path / "model").write_bytes(bits)
    else:
        with monkeypatch.context() as patch:
            patch.setattr("cmargin._estimators.saved.__version__", "0.0.9")
            model.save(tmp_path / "model")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = load(tmp_path / "model", trust_pickle=kind == "pickle")
    assert "made by cmargin 0.0.9" in capsys.readouterr().err
    assert np.array_equal(again.classifier.predict(X), model.classifier.predict(X))
