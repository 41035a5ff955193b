"""Rows in containers of other libraries: read as what they are, or refused with what to call."""

import numpy as np
import pytest
from estimators import quick_estimators

from cmargin import SLNDClassifier, SmSVMClassifier, SmSVMClassifierCV
from cmargin.data import open_rows

RNG = np.random.default_rng(5)
X = RNG.standard_normal((60, 3))
Y = np.argmax(X, axis=1)
DAYS = np.datetime64("2026-01-01") + np.arange(60)


class Lazy:
    """As a LazyFrame of polars."""

    def collect(self):
        return X


class AnnData:
    """As that of the library anndata, in memory or in its file."""

    obs, X = None, X

    def __init__(self, isbacked=False):
        self.isbacked = isbacked

    def to_memory(self):
        return AnnData()


class InFile:
    """As a sparse matrix of an AnnData that is in its file."""

    def to_memory(self):
        return X


class COO:
    """As an array of the library sparse, which says that it has `__array__` and raises."""

    nnz = 1

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("Cannot convert a sparse array to dense automatically.")

    def to_scipy_sparse(self):
        return X


class DOK:
    nnz = 1

    def to_coo(self):
        return COO()


class BCOO:
    """As a sparse array of JAX."""

    nse = 1

    def todense(self):
        return X


CALLS = [(Lazy, r"X\.collect\(\)"), (AnnData, r"X\.X"), (lambda: AnnData(True), r"X\.to_memory\(\)\.X"),
         (InFile, r"X\.to_memory\(\)"), (COO, r"X\.to_scipy_sparse\(\)"),
         (DOK, r"X\.to_coo\(\)\.to_scipy_sparse\(\)"), (BCOO, r"X\.todense\(\)")]


@pytest.mark.parametrize(("make", "call"), CALLS)
def test_what_numpy_makes_no_array_of_is_refused_with_what_to_call(make, call):
    # "Expected 2D array, got scalar array", "setting an array element with a sequence" and the like were said.
    model = SmSVMClassifier().fit(X, Y)
    words = f"is an? {type(make()).__name__}, of which NumPy makes no array; give {call}"
    for refused in (lambda: model.fit(make(), Y), lambda: model.predict(make()), lambda: model.score(make(), Y),
                    lambda: SLNDClassifier().partial_fit(make(), Y, classes=[0, 1, 2]), lambda: open_rows(make()),
                    lambda: SmSVMClassifierCV().fit(make(), Y)):
        with pytest.raises(TypeError, match=words):
            refused()
    for name, refused in (("y", lambda: model.fit(X, make())), ("y", lambda: model.score(X, make())),
                          ("sample_weight", lambda: model.fit(X, Y, make()))):
        with pytest.raises(TypeError, match=words.replace(r"X\.", rf"{name}\.", 1)):
            refused()


def frames_of(columns):
    """The same columns as frames of every library that is there."""
    for name, make in (("pandas", "DataFrame"), ("pyarrow", "table"), ("polars", "DataFrame")):
        try:
            library = __import__(name)
        except ImportError:
            continue
        yield getattr(library, make)(columns)


DATES = {"dates": {"size": X[:, 0], "day": DAYS.astype("datetime64[us]")},
         "durations": {"day": (DAYS - DAYS[0]).astype("timedelta64[us]"), "size": X[:, 0]},
         "all dates": {"day": DAYS.astype("datetime64[us]"), "end": DAYS.astype("datetime64[us]")}}


@pytest.mark.parametrize("columns", DATES.values(), ids=DATES)
def test_dates_are_no_features(columns):
    # Frames of polars, of Arrow and, where all columns were dates, of pandas became numbers of about 1.6e15.
    model = SmSVMClassifier().fit(X[:, :2], Y)
    found = list(frames_of(columns))
    for frame in found:
        for call in (lambda frame=frame: model.fit(frame, Y), lambda frame=frame: model.predict(frame)):
            with pytest.raises(ValueError, match=r"Column 'day' of X holds .*, and rows are numbers; make days"):
                call()
    assert found or pytest.skip("no library with frames")


@pytest.mark.parametrize("kind", ["datetime64[D]", "datetime64[ns]"])
def test_arrays_of_dates_are_refused(kind):
    with pytest.raises(ValueError, match=r"X holds datetime64\[.*\], and rows are numbers"):
        SmSVMClassifier().fit(np.stack([DAYS, DAYS], axis=1).astype(kind), Y)
    with pytest.raises(ValueError, match=r"X holds timedelta64"):
        SmSVMClassifier().fit(np.stack([DAYS, DAYS], axis=1) - DAYS[0], Y)


def lists_of_pandas():
    return pytest.importorskip("pandas").DataFrame({"id": range(60), "embedding": list(X)})


def lists_of_arrow(fixed):
    arrow = pytest.importorskip("pyarrow")
    return arrow.FixedSizeListArray.from_arrays(arrow.array(X.ravel()), 3) if fixed else arrow.array(X.tolist())


def lists_of_polars(kind):
    polars = pytest.importorskip("polars")
    return polars.DataFrame({"embedding": X if kind == "array" else X.tolist()})


LISTS = {
    "pandas": (lists_of_pandas, r"Column 'embedding' of X", r"X\['embedding'\]\.to_list\(\)"),
    "series": (lambda: lists_of_pandas()["embedding"], "X", r"X\.to_list\(\)"),
    "arrow": (lambda: lists_of_arrow(False), "X", r"X\.to_pylist\(\)"),
    "arrow, fixed": (lambda: lists_of_arrow(True), "X", r"X\.to_pylist\(\)"),
    "arrow table": (lambda: pytest.importorskip("pyarrow").table({"embedding": lists_of_arrow(True)}),
                    "Column 'embedding' of X", r"X\['embedding'\]\.to_pylist\(\)"),
    "polars": (lambda: lists_of_polars("list"), "Column 'embedding' of X", r"X\['embedding'\]\.to_list\(\)"),
    "polars, fixed": (lambda: lists_of_polars("array"), "Column 'embedding' of X", r"X\['embedding'\]\.to_list\(\)"),
}


@pytest.mark.parametrize("kind", LISTS)
def test_a_column_of_lists_is_refused_with_what_to_call(kind):
    make, what, call = LISTS[kind]
    frame = make()
    words = rf"{what} holds lists, and rows have one number a column; give np.array\({call}"
    with pytest.raises(ValueError, match=words):
        SmSVMClassifier().fit(frame, Y)
    called = frame["embedding"] if what.startswith("Column") else frame
    np.testing.assert_array_equal(np.array(called.to_pylist() if "pylist" in call else called.to_list()), X)


class Series:
    """A container of one shape that gives rows of numbers, as a Series of polars whose values are arrays."""

    shape = (60,)

    def __len__(self):
        return 60

    def __array__(self, dtype=None, copy=None):
        return X.astype(dtype or X.dtype)


def series_of_polars():
    return pytest.importorskip("polars").Series(X)


@pytest.mark.parametrize("make", [Series, series_of_polars])
@pytest.mark.parametrize("estimator", quick_estimators()[-4:], ids=str)
def test_a_series_of_rows_trains_and_predicts(make, estimator):
    # `fit` took it, and `predict` said that X had no features.
    model, plain = estimator.fit(make(), Y), estimator.fit(X, Y)
    np.testing.assert_array_equal(model.predict(make()), plain.predict(X))
    assert model.score(make(), Y) == plain.score(X, Y)


def documents():
    texts = [f"the cat number {i} sat/ran on the mat, and left" for i in range(60)]
    given = {"list": texts, "tuple": tuple(texts), "array": np.array(texts), "objects": np.array(texts, object)}
    if hasattr(np.dtypes, "StringDType"):
        given["StringDType"] = np.array(texts, np.dtypes.StringDType())
    return given


@pytest.mark.parametrize("texts", documents().values(), ids=documents())
def test_raw_documents_are_said_to_lack_a_vectoriser(texts):
    # "Shard 1 of 60, 'the cat ...', is missing" was said of a list, and "could not convert string to float" of others.
    words = r"X holds 60 texts, 'the cat number 0 .*\.\.\.' the first, .* a vectoriser is missing"
    model = SmSVMClassifier().fit(X, Y)
    for call in (lambda: model.fit(texts, Y), lambda: model.predict(texts)):
        with pytest.raises(ValueError, match=words):
            call()


def test_a_series_of_documents_is_said_to_lack_a_vectoriser():
    texts = documents()["list"]
    for library, make in (("pandas", "Series"), ("pyarrow", "array")):
        with pytest.raises(ValueError, match="a vectoriser is missing"):
            SmSVMClassifier().fit(getattr(pytest.importorskip(library), make)(texts), Y)


def test_paths_that_name_no_files_are_still_paths(tmp_path):
    for paths in ([tmp_path / "a", tmp_path / "b"], ["a.npy", "b.npy"]):
        with pytest.raises(FileNotFoundError, match=r"Shard 1 of 2, .*, is missing"):
            SmSVMClassifier().fit(paths, Y)
    with pytest.raises(FileNotFoundError, match="There is no file 'somewhere'"):
        SmSVMClassifier().fit("somewhere", Y)


def test_what_is_wrong_is_said_of_rows_first_then_of_labels_then_of_weights():
    # Weights were looked at before the rows that they are weights of, and labels in between.
    whole, hidden = (X, Y, np.ones(60)), [np.ma.masked_array(a, a == a.flat[7]) for a in (X, Y, np.ones(60))]
    for n, name in enumerate(("X", "y", "sample_weight")):
        for fit in (SmSVMClassifier().fit, SmSVMClassifierCV(cv=3).fit):
            with pytest.raises(ValueError, match=f"^{name} is a masked array"):
                fit(*whole[:n], *hidden[n:])
