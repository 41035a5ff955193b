"""Labels in every container: classes are what was given, and what is missing is no class."""

import numpy as np
import pytest
import scipy.sparse as sp
from campaign.label_kinds import LABELS
from estimators import quick_estimators

from cmargin import SLNDClassifier, SmSVMClassifier, SmSVMClassifierCV
from cmargin.data.containers import label_array
from cmargin.margins import margin_summary, top_k_accuracy

RNG = np.random.default_rng(11)
X = RNG.standard_normal((90, 4))
CODES = np.argmax(X[:, :3], axis=1)
IDS = 2**53 + np.array([0, 1, 3])[CODES]                 # the first two are one float64
FLAGS = X[:, 0] > 0
WORDS = np.array(["ash", "beech", "elm"])[CODES]


def pandas_series(kind, values):
    pandas = pytest.importorskip("pandas")
    if "pyarrow" in kind:
        pytest.importorskip("pyarrow")
    return pandas.Series(values).astype(kind)


def arrow(values):
    return pytest.importorskip("pyarrow").array(values)


def polars_series(values):
    return pytest.importorskip("polars").Series(values)


# beside those of the campaign's table of labels, each of which test_cells.py gives to an estimator
NUMBERS = {"Int64": lambda: pandas_series("Int64", IDS), "categories": lambda: pandas_series("category", IDS),
           "index": lambda: pytest.importorskip("pandas").Index(IDS, dtype="Int64"),
           "frame": lambda: pandas_series("Int64", IDS).to_frame()}


@pytest.mark.filterwarnings("ignore:A column-vector y was passed")
@pytest.mark.parametrize("kind", NUMBERS)
def test_whole_numbers_are_classes_as_they_are(kind):
    # scikit-learn's checks make floats of pandas' Int64, which merged two of these three classes.
    y = NUMBERS[kind]()
    model = SmSVMClassifier(l2=1e-4).fit(X, y)
    assert model.classes_.dtype == np.int64 and model.classes_.tolist() == np.unique(IDS).tolist()
    assert model.score(X, y) == np.mean(model.predict(X) == IDS) > 0.95


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", quick_estimators(), ids=str)
@pytest.mark.parametrize("kind", ["Int64", "boolean"])
def test_every_estimator_has_the_classes_of_a_nullable_column(estimator, kind):
    given = IDS if kind == "Int64" else FLAGS
    y = pandas_series(kind, given)
    model = estimator.fit(X, y)
    assert model.classes_.dtype == given.dtype and model.classes_.tolist() == np.unique(given).tolist()
    assert model.score(X, y) == model.score(X, given)


@pytest.mark.parametrize("unsigned", ["UInt8", "uint64"])
def test_unsigned_numbers_keep_their_type(unsigned):
    y = pandas_series(unsigned, CODES)
    assert SmSVMClassifier().fit(X, y).classes_.dtype == unsigned.lower()
    large = [2**63 + int(code) for code in CODES]         # NumPy makes floats of this list
    assert SmSVMClassifier().fit(X, large).classes_.tolist() == [2**63, 2**63 + 1, 2**63 + 2]
    assert label_array([0, 1.0, 2]).dtype == float


def test_first_classes_of_partial_fit():
    y = NUMBERS["Int64"]()
    model = SLNDClassifier(random_state=0).partial_fit(X, y, classes=y.unique())
    assert model.classes_.dtype == np.int64 and len(model.classes_) == 3
    assert model.partial_fit(X, y, classes=np.unique(IDS)).score(X, y) > 0.9


def with_hole(values):
    return [None, *list(values)[1:]]


MISSING = {
    **{name: lambda kind=kind: pytest.importorskip(kind.needs) and kind.make(CODES % len(kind.values))
       for name, kind in LABELS.items() if kind.missing and "masked" not in name},
    **{kind: lambda kind=kind: pandas_series(kind, with_hole(WORDS if kind == "str" else CODES))
       for kind in ("str", "Float64")},
    "list of texts": lambda: with_hole(WORDS), "list with NaN": lambda: [np.nan, *WORDS[1:].tolist()],
    "list of flags": lambda: with_hole(FLAGS.tolist()),
    "dates": lambda: np.where(np.arange(90) == 0, np.datetime64("NaT"), np.datetime64("2020-01-01") + CODES),
    "indicator": lambda: np.where(np.arange(90)[:, None] == 0, np.nan, X > 0),
}


@pytest.mark.parametrize("kind", MISSING)
def test_missing_labels_are_refused_by_row(kind):
    # "'<' not supported between instances of 'NoneType' and 'str'", "boolean value of NA is ambiguous" and "Unknown
    # label type: unknown" were said; a list of texts with NaN among them had the class 'nan'.
    y = MISSING[kind]()
    for call in (SmSVMClassifier().fit, SLNDClassifier().fit, SmSVMClassifierCV().fit,
                 SmSVMClassifier().fit(X, CODES).score):
        with pytest.raises(ValueError, match=r"Input y contains NaN: y\[0\] is missing; leave such rows out"):
            call(X, y)


def test_how_many_labels_are_missing_is_said():
    with pytest.raises(ValueError, match=r"y\[1\] and those of 2 more rows are missing"):
        label_array(["a", None, "b", np.nan, None])


@pytest.mark.parametrize("y, words", [
    ([1, "a"], "labels of type int, str; classes are of one type"),
    ([b"a", "b"], "labels of type bytes, str"), ([2**70, 2**70 + 1], "beyond 64 bits; give them as texts"),
    ([(1, 2), (3,)], "legacy multi-label data representation"),
    (np.zeros(2, [("kind", int), ("size", float)]), r"a structured array, of fields kind, size; .* y\['kind'\]")],
    ids=str)
def test_labels_that_are_none_are_refused_in_words(y, words):
    with pytest.raises(ValueError, match=words):
        SmSVMClassifier().fit(X[:2], y)


@pytest.mark.parametrize("name", ["csr", "csc", "coo", "bsr", "dia", "dok", "lil"])
@pytest.mark.parametrize("kind", ["array", "matrix"])
def test_indicators_of_every_sparse_format_train_and_score(name, kind):
    # "'dok_array' object has no attribute 'data'" was said, by score for both and by fit for one
    positives = X[:, :3] > 0
    y = getattr(sp, f"{name}_{kind}")(positives.astype(int))
    model = SmSVMClassifier(l2=1e-3).fit(X, y)
    assert model.score(X, y) == model.score(X, positives.astype(int)) > 0.9


class OfBytes:
    """A container that has `__array__` and nothing else that labels are asked for, as zarr's arrays of texts."""

    def __array__(self, dtype=None, copy=None):
        return WORDS.astype(np.dtypes.StringDType() if hasattr(np.dtypes, "StringDType") else object)


def test_a_container_with_nothing_but_an_array_trains():
    # "'Array' object has no attribute 'astype'" was said of zarr's texts
    model = SmSVMClassifier().fit(X, OfBytes())
    assert model.classes_.tolist() == ["ash", "beech", "elm"] and model.score(X, OfBytes()) > 0.9


def test_labels_of_a_float_that_numpy_lacks_train():
    small = pytest.importorskip("ml_dtypes").bfloat16
    y = CODES.astype(small)
    assert SmSVMClassifier().fit(X, y).classes_.tolist() == [0.0, 1.0, 2.0]


# ---------------------------------------------------------------- masks

HIDDEN = np.arange(90) == 3


def masked(values):
    return np.ma.masked_array(values, mask=np.broadcast_to(HIDDEN.reshape(90, *[1] * (np.ndim(values) - 1)),
                                                           np.shape(values)))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", quick_estimators(), ids=str)
def test_what_is_masked_is_not_trained_on(estimator):
    # Masks were dropped in silence: -9999 under one was a number, -1 a class, a weight under one weighed.
    given = {"X": np.where(HIDDEN[:, None], -9999.0, X), "y": np.where(HIDDEN, -1, CODES),
             "sample_weight": HIDDEN + 1.0}
    for name, hidden in given.items():
        arguments = {"X": X, "y": CODES} | {name: masked(hidden)}
        with pytest.raises(ValueError, match=f"{name} is a masked array, .* masked; leave such rows out"):
            estimator.fit(**arguments)
    model = estimator.fit(X, CODES)
    with pytest.raises(ValueError, match="X is a masked array, 4 of whose entries are masked"):
        model.predict(masked(X))
    for arguments in ((X, masked(CODES)), (X, CODES, masked(HIDDEN + 1.0))):
        with pytest.raises(ValueError, match="is a masked array, 1 of whose entries is masked"):
            model.score(*arguments)


@pytest.mark.parametrize("make", [list, lambda values: pandas_series("Float64", values), arrow, polars_series],
                         ids=["list", "pandas", "arrow", "polars"])
def test_a_missing_weight_is_refused(make):
    with pytest.raises((ValueError, TypeError), match=r"\w+ \w+ \w+"):
        SmSVMClassifier().fit(X, CODES, make([None, *[1.0] * 89]))


def test_an_array_of_which_nothing_is_masked_is_any_array():
    plain = SmSVMClassifier().fit(X, CODES, HIDDEN + 1.0)
    model = SmSVMClassifier().fit(*(np.ma.masked_array(a) for a in (X, CODES, HIDDEN + 1.0)))
    np.testing.assert_array_equal(model.coef_, plain.coef_)


def test_margins_of_masked_scores_are_refused():
    for call in (lambda: margin_summary(masked(X[:, 0])), lambda: top_k_accuracy(X[:, :3], masked(CODES), 2)):
        with pytest.raises(ValueError, match="is a masked array"):
            call()
