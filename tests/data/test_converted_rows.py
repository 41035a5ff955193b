"""Predictions for rows that are no float arrays: equal to those of their float64 copy, and made without that copy."""

import gc
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import named
from sklearn.base import clone

from cmargin import MarginPursuitClassifier, SLNDClassifier, SmSVMClassifier, SmSVMClassifierCV
from cmargin.data import converted

MODELS = [SmSVMClassifier(), SmSVMClassifier(loss="logistic"), SmSVMClassifierCV(l2s=(1e-2,), cv=2),
          SLNDClassifier(loss="logistic", max_passes=3, random_state=0),
          SLNDClassifier(loss="multinomial", max_passes=3, random_state=0)]
ANSWERS = ("predict", "decision_function", "predict_proba", "predict_log_proba", "scores", "posterior")


def frame(X):
    pd = pytest.importorskip("pandas")
    return pd.DataFrame({f"c{k}": column for k, column in enumerate(X.T)})


def wide(X):
    return np.repeat(X, 2, axis=1)[:, ::2]


KINDS = {
    "int8": lambda X: X, "F": np.asfortranarray, "uint8": lambda X: (X + 100).astype(np.uint8), "bool": lambda X: X > 0,
    "uint16": lambda X: X.astype(np.uint16), "float16": lambda X: X.astype(np.float16),
    "int64": lambda X: X.astype(np.int64), "big-endian": lambda X: X.astype(">f8"), "long": lambda X: X.astype("g"),
    "strided": lambda X: wide(X.astype(float)), "strided float32": lambda X: wide(X.astype(np.float32)),
    "backwards": lambda X: X.astype(float)[::-1], "float64 F": lambda X: np.asfortranarray(X, float),
    "windows": lambda X: np.lib.stride_tricks.sliding_window_view(X[:, 0].astype(float), X.shape[1]),
    "csr": lambda X: sp.csr_array(X), "csr bool": lambda X: sp.csr_array(X > 90),
    "csr float64": lambda X: sp.csr_array(np.where(X > 0, X, 0.0)), "frame": frame}


def rows(n, d=6):
    return np.random.default_rng(1).integers(-100, 100, (n, d), dtype=np.int8)


def as_floats(X):
    """What scikit-learn makes of them as a whole."""
    X = X.to_numpy() if hasattr(X, "columns") else X
    single = X.dtype == np.float32
    return X.astype(np.float32 if single else np.float64) if sp.issparse(X) else \
        np.array(X, np.float32 if single else np.float64, order="C")


@pytest.mark.filterwarnings("ignore")                                   # names of a frame that fit had none of
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("model", MODELS, ids=named)
def test_answers_are_those_of_floats(model, kind, monkeypatch):
    monkeypatch.setattr(converted, "AT_ONCE", 2000)                     # bytes: some forty rows
    X = KINDS[kind](rows(300))
    A = as_floats(X)
    y = np.asarray(A[:, [0]].sum(axis=1) > np.median(A[:, [0]].sum(axis=1))).astype(int).ravel() \
        + np.asarray(A[:, [1]].sum(axis=1) > 0).astype(int).ravel()
    fitted = clone(model).fit(A, y)
    if hasattr(X, "columns"):
        fitted.n_features_in_ = A.shape[1]
    for answer in ANSWERS:
        if hasattr(fitted, answer):
            found = getattr(fitted, answer)(X)
            tolerance = 1e-3 if A.dtype == np.float32 else 1e-9
            np.testing.assert_allclose(found, getattr(fitted, answer)(A), rtol=tolerance, atol=tolerance)
    assert fitted.score(A, y) > 0.6


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
def test_no_copy_of_all_rows(kind, monkeypatch):
    # 11 MiB of bytes took 100 MiB in predict: scikit-learn's check made float64 of all of them
    monkeypatch.setattr(converted, "AT_ONCE", 1 << 19)
    n, d = 50_000, 40
    X = KINDS[kind](rows(n, d))
    A = as_floats(X[:400] if not hasattr(X, "columns") else X.iloc[:400])
    models = [SmSVMClassifier(tol=0.5).fit(A, np.arange(400) % 2),
              SLNDClassifier(loss="multinomial", max_passes=1, random_state=0).fit(A, np.arange(400) % 3)]
    most = n * 8 * 3 * 3 + 4 * converted.AT_ONCE                        # scores of three classes, and what they become
    for model in models:
        for answer in ("predict", "decision_function", "predict_proba", "predict_top_k"):
            if not hasattr(model, answer):
                continue
            more = (1,) if answer == "predict_top_k" else ()
            gc.collect()
            tracemalloc.start()
            try:
                getattr(model, answer)(X, *more)
                peak = tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()
            assert peak < most < 0.4 * n * d * 8, (type(model), answer, peak)


@pytest.mark.parametrize("kind", ["int8", "F", "bool", "float16", "big-endian"])
def test_a_fit_makes_one_copy(kind):
    n, d = 50_000, 40
    X, y = KINDS[kind](rows(n, d)), np.arange(n) % 2
    most = 1.5 + 0.25 * (kind == "F")            # of columns side by side a subset's rows are copied besides
    for model in (SmSVMClassifier(tol=0.5), MarginPursuitClassifier(tol=0.5)):
        gc.collect()
        tracemalloc.start()
        try:
            model.fit(X, y)
            assert tracemalloc.get_traced_memory()[1] < most * n * d * 8
        finally:
            tracemalloc.stop()


def test_what_is_refused_is_refused_in_the_same_words(monkeypatch):
    monkeypatch.setattr(converted, "AT_ONCE", 2000)
    X = rows(300)
    model = SmSVMClassifier().fit(X.astype(float), X[:, 0] > 0)
    half = X.astype(np.float16)
    half[250, 3] = np.nan
    words = r"Input X contains NaN.\nSmSVMClassifier does not accept missing values"
    for broken in (half, half.astype(float)):
        with pytest.raises(ValueError, match=words):
            model.predict(broken)
    for narrow in (X[:, :4], X[:, :4].astype(float)):
        with pytest.raises(ValueError, match="X has 4 features, but SmSVMClassifier is expecting 6 features as input"):
            model.predict(narrow)
    with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\)"):
        model.predict(X[:0])
    named_rows = frame(X)
    named_model = SmSVMClassifier().fit(named_rows, X[:, 0] > 0)
    with pytest.raises(ValueError, match="The feature names should match those that were passed during fit"):
        named_model.predict(named_rows.rename(columns={"c0": "other"}))
    with pytest.raises(ValueError, match="X holds the text 'text', and rows are numbers"):
        named_model.predict(named_rows.astype(object).assign(c0="text"))
    assert (named_model.predict(named_rows) == model.predict(X)).all()


# ---------------------------------------------------------------- frames of single precision

def columns_of(kinds):
    """Four columns of these NumPy dtypes, by name."""
    table = rows(120, 4)
    return {f"c{k}": table[:, k].astype(kind) for k, kind in enumerate(kinds)}


def framed(library, columns):
    if library == "arrow":
        return pytest.importorskip("pyarrow").table(columns)
    made = pytest.importorskip(library.partition(" ")[0]).DataFrame(columns)
    if library == "pandas nullable":
        nullable = {"float32": "Float32", "float64": "Float64", "int8": "Int8", "int32": "Int32", "uint16": "UInt16"}
        return made.astype({name: nullable[str(kind)] for name, kind in made.dtypes.items()})
    return made


@pytest.mark.parametrize("library", ["pandas", "pandas nullable", "polars", "arrow"])
@pytest.mark.parametrize("kinds, expected", [
    (["f4"] * 4, np.float32), (["f4", "f4", "i1", "u2"], np.float32), (["f4", "i4", "f4", "f4"], np.float64),
    (["f4", "f4", "f8", "f4"], np.float64), (["i1"] * 4, np.float64)], ids=str)
def test_frames_promote_as_arrays_do(library, kinds, expected):
    # scikit-learn does not know the dtypes of polars, Arrow and nullable columns, and made float64 of float32
    frame, y = framed(library, columns_of(kinds)), np.arange(120) % 3
    A = np.stack([np.asarray(column, expected) for column in columns_of(kinds).values()], axis=1)
    model, plain = (SLNDClassifier(max_passes=2, random_state=0).fit(X, y) for X in (frame, A))
    assert model.coef_.dtype == plain.coef_.dtype == expected
    assert np.array_equal(model.coef_, plain.coef_) and (model.predict(frame) == plain.predict(A)).all()
    assert list(model.feature_names_in_) == list(columns_of(kinds))
