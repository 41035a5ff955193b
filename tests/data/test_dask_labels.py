"""Labels and weights beside rows on Dask's workers: of every kind, in the order of the rows, and scored."""

import signal
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from started import ROOT, surroundings

from cmargin import SLNDClassifier, SmSVMClassifier, SmSVMClassifierCV

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pandas = pytest.importorskip("pandas")
pytest.importorskip("distributed")
if not hasattr(signal, "SIGALRM"):
    pytest.skip("no time limits here", allow_module_level=True)

from test_dask import client, time_limit  # noqa: E402, F401

pytestmark = pytest.mark.usefixtures("client")
N = 240
X = np.random.default_rng(3).standard_normal((N, 4))
CODES = np.argmax(X[:, :3], axis=1)
IDS = 2**53 + np.array([0, 1, 3])[CODES]
WORDS = np.array(["ash", "beech", "elm"])[CODES]
FRAME = pandas.DataFrame(X, columns=list("abcd"))
SHUFFLED = np.random.default_rng(4).permutation(N)
MODEL = SmSVMClassifier(l2=1e-3)
HIDDEN = np.arange(N) == 100


def rows_there():
    return da.from_array(X, chunks=(80, 4))


def frame_there(frame=FRAME):
    return dd.from_pandas(frame, npartitions=3)


KINDS = {
    "objects": lambda: WORDS.astype(object), "list": WORDS.tolist, "StringDType": lambda: strings(),
    "category": lambda: pandas.Series(WORDS, dtype="category"), "Categorical": lambda: pandas.Categorical(WORDS),
    "Int64": lambda: pandas.Series(IDS, dtype="Int64"), "boolean": lambda: pandas.Series(X[:, 0] > 0, dtype="boolean"),
    "indicator": lambda: (X[:, :3] > 0).astype(int), "sparse": lambda: sp.csr_array((X[:, :3] > 0).astype(int)),
}


def strings():
    return WORDS.astype(np.dtypes.StringDType()) if hasattr(np.dtypes, "StringDType") else pytest.skip("no StringDType")


@pytest.mark.parametrize("kind", KINDS)
def test_labels_in_memory_beside_a_dask_array(kind):
    # "Can not use auto rechunking with object dtype" was said of texts
    y = KINDS[kind]()
    one, model = SmSVMClassifier(l2=1e-3).fit(X, y), MODEL.fit(rows_there(), y)
    np.testing.assert_allclose(model.coef_, one.coef_, rtol=1e-6, atol=1e-6)
    assert model.classes_.dtype == one.classes_.dtype and model.classes_.tolist() == one.classes_.tolist()
    assert model.score(rows_there(), y) == one.score(X, y)


@pytest.mark.filterwarnings("error::UserWarning")
@pytest.mark.parametrize("kind", ["Int64", "int64[pyarrow]", "boolean", "bool[pyarrow]", "string", "str", "category"])
def test_a_column_of_labels(kind):
    # scikit-learn's checks refused the objects that Dask makes of such columns, or made floats of them
    if "pyarrow" in kind:
        pytest.importorskip("pyarrow")
    given = IDS if "nt64" in kind else X[:, 0] > 0 if "bool" in kind else WORDS
    frame = FRAME.assign(y=pandas.Series(given).astype(kind))
    there = frame_there(frame)
    model = MODEL.fit(there[list("abcd")], there["y"])
    assert model.classes_.tolist() == np.unique(given).tolist()
    assert model.classes_.dtype == (object if given is WORDS else given.dtype)
    assert model.score(there[list("abcd")], there["y"]) > 0.9
    frame.loc[100, "y"] = None
    there = frame_there(frame)
    with pytest.raises(ValueError, match=r"Input y contains NaN: y\[20\] is missing; .* \(in partition 1\)"):
        model.fit(there[list("abcd")], there["y"])


def test_rows_in_another_order_are_refused():
    # from_pandas sorts rows by their index, labels in memory have their own order: they were paired by their places.
    frame, y = FRAME.iloc[SHUFFLED], pandas.Series(CODES).iloc[SHUFFLED]
    weight = pandas.Series(np.ones(N)).iloc[SHUFFLED]
    there, same = frame_there(frame), dd.from_pandas(y, npartitions=2)
    model = MODEL.fit(there, same)
    for call, name in ((lambda: model.fit(there, y), "y"), (lambda: model.fit(there, same, weight), "sample_weight"),
                       (lambda: model.fit(frame, same), "y"), (lambda: model.score(there, y), "y"),
                       (lambda: model.score(there, same, weight), "sample_weight"),
                       (lambda: SLNDClassifier().partial_fit(frame, same, classes=[0, 1, 2]), "y")):
        with pytest.raises(ValueError, match=f"X and {name} have different indexes, and rows are paired by"):
            call()


def test_labels_are_missed():
    with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
        MODEL.fit(rows_there(), None)


def test_rows_in_the_same_order_are_paired():
    one, y = SmSVMClassifier(l2=1e-3).fit(FRAME, CODES), pandas.Series(CODES)
    for rows, labels in ((frame_there(), y), (frame_there(), CODES), (rows_there(), y.iloc[::1]),
                         (frame_there(FRAME.iloc[SHUFFLED]), dd.from_pandas(y.iloc[SHUFFLED], npartitions=2)),
                         (FRAME, dd.from_pandas(y, npartitions=2))):
        np.testing.assert_allclose(MODEL.fit(rows, labels).coef_, one.coef_, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("search", [False, True])
def test_scores_of_dask_collections(search):
    # "Cannot call len() on object with unknown chunk size" was said of every frame
    model = SmSVMClassifierCV([1e-3], cv=2) if search else SmSVMClassifier()
    weight, y = 1.0 + HIDDEN, pandas.Series(WORDS)
    model.fit(X, WORDS)
    alone, weighed = model.score(X, WORDS), model.score(X, WORDS, weight)
    model.fit(FRAME, WORDS)
    for rows in (frame_there(), FRAME):
        for labels in (y, dd.from_pandas(y, npartitions=2), WORDS, WORDS.tolist(), da.from_array(WORDS, chunks=70)):
            assert model.score(rows, labels) == alone
        assert model.score(rows, y, da.from_array(weight, chunks=70)) == model.score(rows, y, weight) == weighed


def masked_there(values, chunk):
    mask = da.from_array(np.broadcast_to(HIDDEN.reshape(N, *[1] * (values.ndim - 1)), values.shape), chunks=chunk)
    return da.ma.masked_array(da.from_array(values, chunks=chunk), mask=mask)


def test_masks_of_dask_are_heeded():
    # -9999 under one was trained on
    y, weight = da.from_array(CODES, chunks=80), da.ones(N, chunks=80)
    hidden = {"X": masked_there(np.where(HIDDEN[:, None], -9999.0, X), (80, 4)), "y": masked_there(CODES, 80),
              "sample_weight": masked_there(np.ones(N), 80)}
    for name, given in hidden.items():
        arguments = {"X": rows_there(), "y": y, "sample_weight": weight} | {name: given}
        with pytest.raises(ValueError, match=rf"{name} is a masked array, .* masked; .*\(in partition 1\)"):
            MODEL.fit(**arguments)
    model = MODEL.fit(rows_there(), y)
    with pytest.raises(ValueError, match="X is a masked array"):
        model.predict(hidden["X"]).compute()
    with pytest.raises(ValueError, match="y is a masked array"):
        model.score(X, hidden["y"])
    with pytest.raises(ValueError, match="y is a masked array"):
        model.fit(X, hidden["y"])


@pytest.mark.filterwarnings("ignore:X has feature names")
def test_dates_on_workers_are_refused():
    # a frame of nothing but dates, and an array of them, became numbers
    days = pandas.to_datetime(CODES, unit="D")
    dates = [frame_there(FRAME.assign(d=days)), frame_there(pandas.DataFrame({"d": days, "e": days})),
             da.from_array(np.stack([days.to_numpy()] * 4, axis=1), chunks=(80, 4))]
    model = SmSVMClassifier().fit(X, CODES)
    for there in dates:
        for call in (lambda there=there: model.fit(there, CODES), lambda there=there: model.predict(there)):
            with pytest.raises(ValueError, match=r"(Column 'd' of )?X holds datetime64.*, and rows are numbers"):
                call()


def test_the_example_of_the_guide_warns_of_nothing():
    # Workers logged "Sizeof calculation for object of type 'list' failed" and, at the end, where the client was left
    # open, "caused the cluster to lose already computed task(s)": pages of both.
    guide = ROOT / "doc" / "guide" / "scale_out.md"
    if not guide.exists():
        pytest.skip("the tests are alone")
    text = guide.read_text()
    example = text[text.index("import dask.array as da"):].partition("```")[0]
    for large, small in (("1_000_000", "20_000"), ("125_000", "2_500"),
                         ("Client()", "Client(n_workers=1, threads_per_worker=1, dashboard_address='127.0.0.1:0')")):
        assert example.count(large) == 1
        example = example.replace(large, small)
    signal.alarm(0)                                          # a worker of its own takes long to start
    done = subprocess.run([sys.executable, "-c", example], env=surroundings(), capture_output=True, text=True,
                          timeout=300)
    assert done.returncode == 0 and done.stdout.startswith("["), done.stderr[-2000:]
    assert "sizeof" not in done.stderr and "to lose" not in done.stderr and "UserWarning" not in done.stderr
