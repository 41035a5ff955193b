"""Model files without code: what is saved comes back to the bit, and what was altered is refused in a sentence."""

import io
import json
import warnings
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import blobs
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold

import cmargin
from cmargin import baselines
from cmargin._estimators.identity import InconsistentVersionWarning
from cmargin.export.saved import class_of

X, Y = blobs(n=200, d=5, k=3, spread=0.7)
INDICATOR = np.eye(3, dtype=int)[Y]
MODELS = [
    cmargin.SLNDClassifier(random_state=0), cmargin.SLNDClassifier(loss="logistic", random_state=0),
    cmargin.SLNDClassifier(l2=1e-3), cmargin.BSNClassifier(random_state=0, class_weight="balanced"),
    cmargin.SmSVMClassifier(), cmargin.SmSVMClassifier(loss="logistic", l1=1e-3), cmargin.MarginPursuitClassifier(),
    cmargin.PegasosClassifier(max_passes=3, random_state=0), baselines.SGDQNClassifier(max_passes=3, random_state=0),
    cmargin.SmSVMClassifierCV(l2s=(1e-3, 1e-2), cv=3), cmargin.SLNDClassifierCV(l2s=(1e-3, 1e-2), cv=2),
]


def fitted(model, y=Y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


def same(one, other):
    assert type(other) is type(one)
    for name in ("predict", "decision_function", "predict_proba", "posterior"):
        if hasattr(one, name):
            np.testing.assert_array_equal(getattr(other, name)(X), getattr(one, name)(X))
    assert other.score(X, Y) == one.score(X, Y)


@pytest.mark.parametrize("model", MODELS, ids=[type(model).__name__ for model in MODELS])
@pytest.mark.parametrize("names", [False, True], ids=["numbers", "texts"])
def test_a_model_comes_back_to_the_bit(tmp_path, model, names):
    y = np.array(["ash", "birch", "elm"])[Y] if names else Y
    model = fitted(model, y)
    model.save(tmp_path / "m")
    other = cmargin.load(tmp_path / "m")
    for name in ("predict", "decision_function", "predict_proba", "posterior"):
        if hasattr(model, name):
            np.testing.assert_array_equal(getattr(other, name)(X), getattr(model, name)(X))
    assert other.classes_.dtype == model.classes_.dtype and other.coef_.dtype == model.coef_.dtype
    assert {name: repr(value) for name, value in other.get_params(deep=False).items()} == \
        {name: repr(value) for name, value in model.get_params(deep=False).items()}
    assert other.n_passes_ == model.n_passes_ and other.n_features_in_ == 5


def test_every_class_that_can_save_can_be_loaded():
    # the search of SLND, new, was saved and then refused as a class that there is not
    kinds = [getattr(module, name) for module in (cmargin, baselines) for name in module.__all__]
    kinds = [kind for kind in kinds if hasattr(kind, "save")]
    assert {type(model) for model in MODELS} <= set(kinds)
    assert [class_of(kind.__name__) for kind in kinds] == kinds


def test_an_indicator_and_labels_of_objects(tmp_path):
    weighted = fitted(cmargin.SmSVMClassifier(class_weight={0: 2.0, 1: 1.0, 2: 1.0}))
    weighted.save(tmp_path / "m")
    assert cmargin.load(tmp_path / "m").class_weight == {0: 2.0, 1: 1.0, 2: 1.0}
    # NumPy's own texts would drop the NUL at the end
    for y in (INDICATOR, np.array(["ash", "birch", "elm"], object)[Y], np.array(["ash\0", "birch", "elm"], object)[Y]):
        model = fitted(cmargin.SmSVMClassifier(), y)
        model.save(tmp_path / "m")
        other = cmargin.load(tmp_path / "m")
        np.testing.assert_array_equal(other.predict(X), model.predict(X))
        assert other.classes_.dtype == model.classes_.dtype


def test_sparse_weights_and_warm_starts(tmp_path):
    model = fitted(cmargin.SmSVMClassifier(l1=1e-2, warm_start=True)).sparsify()
    model.save(tmp_path / "m")
    other = cmargin.load(tmp_path / "m")
    assert sp.issparse(other.coef_)
    np.testing.assert_array_equal(other.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(fitted(other).coef_, fitted(model).coef_)


def test_what_a_process_has_is_left_out(tmp_path):
    model = fitted(cmargin.SmSVMClassifier(callback=lambda model: False, checkpoint=str(tmp_path / "c")))
    model.save(tmp_path / "m")
    other = cmargin.load(tmp_path / "m")
    assert other.callback is None and other.checkpoint is None
    model = fitted(cmargin.SLNDClassifier(random_state=np.random.RandomState(0)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.save(tmp_path / "m")
    same(cmargin.load(tmp_path / "m"), model)
    model = fitted(cmargin.SmSVMClassifierCV(l2s=(1e-3, 1e-2), cv=KFold(3)))
    with pytest.warns(UserWarning, match="the parameter 'cv' is a KFold, which a file without code cannot") as said:
        model.save(tmp_path / "m")
    assert said[0].filename == __file__
    same(cmargin.load(tmp_path / "m"), model)
    with pytest.raises(NotFittedError):
        cmargin.SmSVMClassifier().save(tmp_path / "n")
    assert not (tmp_path / "n").exists()


# ---------------------------------------------------------------- files that are not what they should be


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "m"
    fitted(cmargin.SmSVMClassifier()).save(path)
    return path


def rewritten(path, change, **more):
    """The file with another JSON, and with ``more`` arrays in place of its own."""
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    head = json.loads(arrays["cmargin"].tobytes())
    head = change(head) or head
    np.savez(open(path, "wb"), **{**arrays, "cmargin": np.frombuffer(json.dumps(head).encode(), np.uint8), **more})
    return path


def test_a_file_cut_short_is_refused_wherever(saved):
    content = saved.read_bytes()
    for length in np.linspace(0, len(content) - 1, 60).astype(int):
        saved.write_bytes(content[:length])
        with pytest.raises(ValueError, match="m is no model file of cmargin"):
            cmargin.load(saved)


def test_a_file_with_other_bytes_is_refused_or_the_same(saved):
    content, first, rng = saved.read_bytes(), cmargin.load(saved), np.random.default_rng(0)
    refused = 0
    for _ in range(150):
        damaged = bytearray(content)
        for place in rng.integers(len(content), size=rng.integers(1, 4)):
            damaged[place] ^= int(rng.integers(1, 256))
        saved.write_bytes(damaged)
        try:
            same(first, cmargin.load(saved))                 # bytes that nobody reads, such as dates
        except ValueError as error:
            assert "m is no model file of cmargin" in str(error)
            refused += 1
    assert refused > 50


def fit_of(head):
    return head["content"]["estimator"]["fitted"]


@pytest.mark.parametrize("change", [
    lambda head: head["content"]["estimator"].update({"class": "Popen"}),
    lambda head: head["content"]["estimator"].update({"class": "os.system"}),
    lambda head: fit_of(head).update(predict=1),
    lambda head: fit_of(head).update(__class__=1),
    lambda head: fit_of(head).update(coef_={"array": "none"}),
    lambda head: fit_of(head).update(coef_={"array": fit_of(head)["intercept_"]["array"]}),
    lambda head: fit_of(head).update(n_features_in_=7),
    lambda head: fit_of(head).update(classes_={"list": [1, 2]}),
    lambda head: fit_of(head).update(coef_={"pickle": "cos\nsystem\n"}),
    lambda head: head["content"]["estimator"]["parameters"].update(depth=3),
    lambda head: {"form": 2, **{name: head[name] for name in ("kind", "version", "content")}},
    lambda head: {"kind": "estimator"}, lambda head: {**head, "kind": "other"}, lambda head: [head], lambda head: 5,
    lambda head: {**head, "content": [1]},
    # a further fit would write this file, and remove it
    lambda head: head["content"]["estimator"]["parameters"].update(checkpoint="other"),
    # what would raise errors of all kinds where rows are predicted
    lambda head: fit_of(head).pop("classes_"), lambda head: fit_of(head).pop("coef_"),
    lambda head: fit_of(head).update(coef_={"csr": ["0", "0", "0", [10**30, 5]]}),
], ids=range(20))
def test_an_altered_file_is_refused(saved, change):
    with pytest.raises(ValueError, match="m is no model file of cmargin"):
        cmargin.load(rewritten(saved, change))


@pytest.mark.parametrize("other", [
    lambda coef: coef + 1j, lambda coef: coef.astype(str), lambda coef: coef.astype("M8[s]"),
    lambda coef: coef * np.nan, lambda coef: coef[:1], lambda coef: coef.astype([("a", "f8")]),
], ids=["complex", "texts", "dates", "NaN", "one row of three", "records"])
def test_weights_that_are_none_are_refused(saved, other):
    with np.load(saved) as archive:
        head = json.loads(archive["cmargin"].tobytes())
        coef, intercept = (fit_of(head)[name]["array"] for name in ("coef_", "intercept_"))
        arrays = {coef: other(archive[coef]), intercept: archive[intercept][:len(other(archive[coef]))]}
    with pytest.raises(ValueError, match="m is no model file of cmargin"):
        cmargin.load(rewritten(saved, lambda head: None, **arrays))


def test_one_class_beside_one_row_of_weights_is_none_of_two(tmp_path):
    # predict looked for a second class of such a file
    two = cmargin.SmSVMClassifier().fit([[0.0], [1.0]], [0, 1])
    two.save(tmp_path / "m")
    assert cmargin.load(tmp_path / "m").classes_.tolist() == [0, 1]
    rewritten(tmp_path / "m", lambda head: fit_of(head).update(classes_={"array": "extra"}), extra=np.array([1]))
    with pytest.raises(ValueError, match="m is no model file of cmargin"):
        cmargin.load(tmp_path / "m")


def test_objects_in_the_arrays_are_not_opened(saved):
    rewritten(saved, lambda head: None, **{"0": np.array([{"a": 1}], object)})
    with pytest.raises(ValueError, match="holds Python objects, not numbers"):
        cmargin.load(saved)


def test_lengths_that_are_not_there_and_compression_are_refused(saved):
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": "<f8", "fortran_order": False, "shape": (1 << 40, 5)})
    with zipfile.ZipFile(saved, "w") as archive:
        archive.writestr("cmargin.npy", buffer.getvalue())
    with pytest.raises(ValueError, match="m is no model file of cmargin"):
        cmargin.load(saved)
    np.savez_compressed(open(saved, "wb"), cmargin=np.zeros(1 << 20, np.uint8))
    with pytest.raises(ValueError, match="is compressed"):
        cmargin.load(saved)


def test_another_version_warns_and_loads(saved):
    rewritten(saved, lambda head: head.update(version="0.0.1"))
    with pytest.warns(InconsistentVersionWarning, match=r"SmSVMClassifier from cmargin 0\.0\.1"):
        assert cmargin.load(saved).score(X, Y) > 0.8


def test_a_file_of_the_command_becomes_a_pipeline(tmp_path, monkeypatch):
    from trees import COLUMNS, NAMES, csv_text

    from cmargin.__main__ import main
    from cmargin.cli.model import load

    monkeypatch.chdir(tmp_path)
    (tmp_path / "trees.csv").write_text(csv_text())
    assert main(["fit", "trees.csv", "--model", "m", "--quiet"]) == 0
    pipeline = cmargin.load("m")
    assert len(pipeline) == 2 and set(pipeline.predict(X)) <= set(NAMES) and load("m").columns == COLUMNS
    (tmp_path / "d.csv").write_text("colour,n,tree\n" + "red,1,elm\nblue,2,ash\n" * 20)
    assert main(["fit", "d.csv", "--encode", "onehot", "--model", "m", "--quiet"]) == 0
    with pytest.raises(ValueError, match="`cmargin predict` reads it"):
        cmargin.load("m")
