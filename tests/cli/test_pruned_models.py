"""Weights of which zeros are left out, in the command, in files, in searches and in others' objects."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

import cmargin
from cmargin import SmSVMClassifier, SmSVMClassifierCV
from cmargin.__main__ import main
from cmargin.export import load_liblinear, save_liblinear
from cmargin.margins import precision_at_k

PRUNED = [True, 0.05]


def drawn(n_labels=24, n=200, m=40):
    rng = np.random.default_rng(5)
    X = sp.random(n, m, 0.2, "csr", rng=rng)
    scores = X @ rng.normal(size=(m, n_labels)) + 0.3 * rng.normal(size=(n, n_labels))
    return X, sp.csr_matrix((scores > np.quantile(scores, 0.8, axis=0)).astype(np.int8))


def model_of(prune, **more):
    return SmSVMClassifier(loss="squared_hinge", C=1.0, tol=1e-3, prune=prune, **more)


@pytest.fixture(scope="module", params=PRUNED)
def fitted(request):
    X, Y = drawn()
    return X, Y, model_of(request.param, coef_dtype="float32").fit(X, Y)


# ---------------------------------------------------------------- the command

@pytest.mark.parametrize("prune, said", [("True", "Then all but 15% of the weights of all problems go"),
                                         ("0.03", "Then weights go within a relative gap of 0.03"), ("False", None)])
def test_explain_says_what_becomes_of_weights(capsys, prune, said):
    shape = ["--rows", "1000", "--columns", "500", "--classes", "30", "--density", "0.1"]
    assert main(["explain", *shape, "--set", f"prune={prune}", "--set", "loss=squared_hinge"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].startswith(said) if said else not any("Then" in line for line in lines)


@pytest.mark.parametrize("prune", PRUNED)
def test_a_fit_says_so_too(capsys, prune):
    model_of(prune, verbose=2).fit(*drawn())
    out = capsys.readouterr()
    assert "plan: Then" in out.out + out.err


@pytest.mark.parametrize("prune", PRUNED)
def test_the_command_fits_predicts_and_evaluates(tmp_path, monkeypatch, capsys, prune):
    X, Y = drawn()
    monkeypatch.chdir(tmp_path)
    dump_svmlight_file(X, Y, "tags.svm", zero_based=False, multilabel=True)
    given = ["--set", "loss=squared_hinge", "--set", "C=1", "--set", f"prune={prune}", "--set", "coef_dtype=float32"]
    assert main(["fit", "tags.svm", "--method", "smsvm", "--scale", "none", "--model", "tags.cmargin", *given]) == 0
    assert main(["predict", "tags.svm", "--model", "tags.cmargin", "--what", "scores", "--out", "scores.npy"]) == 0
    capsys.readouterr()
    assert main(["evaluate", "tags.svm", "--model", "tags.cmargin", "--top", "5", "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    model = cmargin.load("tags.cmargin")
    scores = np.load("scores.npy")
    assert scores.shape == Y.shape
    assert f'"precision": {{"1": {precision_at_k(scores, Y, 1):.4g},' in json.dumps(report)
    weights = [part.coef_ for part in vars(model).values() if hasattr(part, "coef_")] or [model.coef_]
    assert all(W.format == "csc" and W.dtype == np.float32 for W in weights)


# ---------------------------------------------------------------- files and copies

def test_files_keep_the_matrix_what_it_took_and_every_prediction(fitted, tmp_path):
    X, _, model = fitted
    model.save(tmp_path / "model.cmargin")
    copy = cmargin.load(tmp_path / "model.cmargin")
    assert copy.prune == model.prune and type(copy.prune) is type(model.prune)
    assert copy.coef_.format == "csc" and copy.coef_.dtype == np.float32 and (copy.coef_ != model.coef_).nnz == 0
    for rows in (X, X.toarray()):
        np.testing.assert_array_equal(copy.decision_function(rows), model.decision_function(rows))
        np.testing.assert_array_equal(copy.predict_top_k(rows, 3), model.predict_top_k(rows, 3))
    np.testing.assert_array_equal(copy.duality_gap_, model.duality_gap_)
    again = clone(copy).fit(*drawn())
    assert (again.coef_ != model.coef_).nnz == 0


@pytest.mark.parametrize("prune", PRUNED)
def test_a_file_of_liblinear_has_them(tmp_path, prune):
    X, _ = drawn()
    y = np.arange(200) % 3
    model = model_of(prune).fit(X, y)
    save_liblinear(model, tmp_path / "model")
    np.testing.assert_array_equal(load_liblinear(tmp_path / "model").predict(X), model.predict(X))


# ---------------------------------------------------------------- others' objects

def test_scikit_learn_gets_an_array(fitted):
    X, _, model = fitted
    np.testing.assert_array_equal(model.to_sklearn().predict(X), model.predict(X))
    assert model.coef_.format == "csc"


@pytest.mark.parametrize("prune", PRUNED)
def test_onnx_gets_it_through_scikit_learn(prune):
    skl2onnx, runtime = pytest.importorskip("skl2onnx"), pytest.importorskip("onnxruntime")
    X, _ = drawn()
    y, rows = np.arange(200) % 3, X.toarray().astype(np.float32)
    model = model_of(prune).fit(rows, y)
    session = runtime.InferenceSession(skl2onnx.to_onnx(model.to_sklearn(), rows[:1]).SerializeToString())
    np.testing.assert_array_equal(session.run(None, {"X": rows})[0], model.predict(rows))


# ---------------------------------------------------------------- searches

@pytest.mark.parametrize("prune", PRUNED)
def test_our_search_refuses_it_and_theirs_takes_it(prune):
    X, Y = drawn()
    with pytest.raises(ValueError, match=f"A search needs prune=False and .*; got prune={prune}"):
        SmSVMClassifierCV(Cs=[0.1, 1.0], cv=3, estimator=model_of(prune)).fit(X, Y)
    search = GridSearchCV(make_pipeline(MaxAbsScaler(), model_of(prune)), {"smsvmclassifier__prune": [prune, False]},
                          cv=3, scoring=lambda model, X, Y: precision_at_k(model.decision_function(X), Y, 1))
    search.fit(X, Y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
