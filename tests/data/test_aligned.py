"""Arrays whose numbers do not lie at multiples of their size: compiled loops never see one."""

import pickle
from collections import namedtuple
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from api import Rows, _catoni, _margin_summary
from conftest import named
from estimators import quick_estimators
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from cmargin import SmSVMClassifier
from cmargin._estimators import labels
from cmargin._runtime.aligned import aligned_throughout, contiguous
from cmargin.data import open_rows
from cmargin.data.files import open_files
from cmargin.data.memory import score_blocks, softmax_rows
from cmargin.data.memory.row_pass import RowState
from cmargin.data.shards.request import Request
from cmargin.margins import location, location_estimate, margin_summary, psi, psi_inverse, psi_transform
from cmargin.margins import summary as summary_module
from cmargin.margins._batches import row_blocks


def off_by_one(array):
    """The same numbers, one byte further on than they should be."""
    array = np.asarray(array)
    memory = np.zeros(array.nbytes + 1, np.uint8)
    found = memory[1:].view(array.dtype).reshape(array.shape)
    found[...] = array
    assert found.size == 0 or not found.flags.aligned
    return found


def in_records(array):
    """The same numbers, a byte of something else after every row."""
    record = np.zeros(len(array), dtype=[("x", array.dtype, array.shape[1:]), ("y", "i1")])
    record["x"] = array
    return record["x"]


def off_by_one_csr(X, make=off_by_one):
    X = sp.csr_matrix(X)
    found = X.copy()
    found.data, found.indices, found.indptr = map(make, (X.data, X.indices, X.indptr))
    return found


def out_of_a_message(model):
    """The model as it is unpickled in place, out of buffers from an odd byte on."""
    buffers = []
    text = pickle.dumps(model, 5, buffer_callback=buffers.append)
    assert buffers
    return pickle.loads(text, buffers=[memoryview(bytearray(b"?" + buffer.raw()))[1:] for buffer in buffers])


def arrays_in(thing):
    if isinstance(thing, np.ndarray):
        return [thing]
    parts = (thing.values() if isinstance(thing, dict) else thing if isinstance(thing, (list, tuple)) else
             vars(thing).values() if hasattr(thing, "__dict__") and not isinstance(thing, type) else [])
    return [array for part in parts for array in arrays_in(part)]


def watched(monkeypatch, module, name):
    """Have every array that a compiled function is given looked at; the list says how often that was."""
    compiled, calls = getattr(module, name), []

    def looked_at(*arguments):
        arrays = [argument for argument in arguments if isinstance(argument, np.ndarray)]
        assert arrays and all(array.flags.aligned for array in arrays)
        calls.append(name)
        return compiled(*arguments)

    monkeypatch.setattr(module, name, looked_at)
    return calls


@pytest.fixture(scope="module")
def data():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X)[:200], y[:200]


NUMBERS = np.linspace(-1, 2, 31)


@pytest.mark.parametrize("function, module, name, numbers", [
    (location_estimate, _catoni, "location", NUMBERS),
    (lambda margins: location_estimate(margins, scale=1.0), _catoni, "location", NUMBERS),
    (lambda margins: margin_summary(margins)["median"], _margin_summary, "summarise", NUMBERS),
    (psi_transform, _catoni, "psi_transform", np.abs(NUMBERS) / 2),
    (psi_inverse, _catoni, "psi_inverse", np.abs(NUMBERS) / 100),
    (lambda margin: psi_transform(0.5, margin), _catoni, "psi_transform", NUMBERS + 2),
], ids=["location", "location-scale", "summary", "psi", "psi-inverse", "psi-margin"])
def test_functions_of_margins(monkeypatch, function, module, name, numbers):
    calls = watched(monkeypatch, module, name)
    np.testing.assert_array_equal(function(off_by_one(numbers)), function(numbers))
    assert len(calls) >= 2
    assert {location._catoni, psi._catoni} == {_catoni} and summary_module._margin_summary is _margin_summary


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("make, other", [(np.asarray, off_by_one), (np.asarray, in_records),
                                         (sp.csr_matrix, off_by_one_csr)], ids=["dense", "records", "csr"])
@pytest.mark.parametrize("estimator", [*quick_estimators(), SmSVMClassifier(linear_solver="dual", l2=0.01)], ids=named)
def test_every_estimator_and_what_is_unpickled_in_place(data, estimator, make, other, dtype):
    X, y, weight = data[0].astype(dtype), data[1].astype(np.int64), np.linspace(0.5, 2, len(data[1]))
    plain = clone(estimator).fit(make(X), y, weight)
    model = out_of_a_message(clone(estimator).fit(other(X), off_by_one(y), off_by_one(weight)))
    assert all(array.flags.aligned for array in arrays_in(model))
    np.testing.assert_array_equal(model.decision_function(other(X)), plain.decision_function(make(X)))
    go_on = "partial_fit" if hasattr(model, "partial_fit") else "fit"
    again = getattr(model, go_on)(other(X), off_by_one(y))
    np.testing.assert_array_equal(again.coef_, getattr(plain, go_on)(make(X), y).coef_)


def test_views_of_a_source_and_blocks_of_margins(monkeypatch, data):
    X, y = data
    source, signed_weights, weight = open_rows(X), off_by_one(2.0 * y - 1), off_by_one(np.linspace(0.5, 2, len(y)))
    assert source.row_pass(signed_weights, intercept=True, n_threads=1).signed_weight.flags.aligned
    calls = [watched(monkeypatch, softmax_rows, "SoftmaxRows"), watched(monkeypatch, score_blocks, "ProblemRows")]
    softmax = source.softmax_pass(off_by_one(y.astype(np.int64)), weight, 2, True, 1)
    blocks = source.score_blocks(sp.csc_matrix(y[:, None] == 1), weight, 1)
    assert softmax.kernel is not blocks.kernel and all(calls)
    assert all(block.flags.aligned for _, block in row_blocks(iter([weight, weight]), "margins"))


def test_labels_are_counted_where_they_are_aligned(monkeypatch, data):
    calls = watched(monkeypatch, labels, "count_codes")
    SmSVMClassifier(max_passes=2, tol=10.0).fit(data[0], off_by_one(data[1].astype(np.int64)))
    assert calls


def test_compiled_rows_take_no_other_dense_ones(data):
    with pytest.raises(ValueError, match="rows must be aligned: an address"):
        Rows(off_by_one(data[0]))


def test_no_rows_and_one_row_may_lie_where_they_do():
    none = np.zeros(1, np.uint8)[1:].view(float).reshape(0, 4)                # a message without numbers
    assert open_rows(none).n_rows == Rows(none).shape[0] == 0
    record = np.zeros(2, dtype=[("x", "<f8", 4), ("y", "i1")])
    one = record["x"][:1]
    assert one.strides[0] % 8
    assert open_rows(one).n_rows == Rows(one).shape[0] == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_map_of_a_file_from_an_odd_byte_on(data, tmp_path, order, dtype):
    X, y = data[0].astype(dtype), data[1]
    with open(tmp_path / "rows", "wb") as file:
        file.write(b"abc" + X.tobytes(order))
    there = np.memmap(tmp_path / "rows", dtype, "r", offset=3, shape=X.shape, order=order)
    assert not there.flags.aligned
    whole = SmSVMClassifier(tol=1e-6).fit(X, y)
    for rows in (there, open_files(there)):
        np.testing.assert_allclose(SmSVMClassifier(tol=1e-6).fit(rows, y).coef_, whole.coef_, rtol=1e-3, atol=1e-4)
    np.testing.assert_array_equal(open_rows(open_files(there)).take(slice(3, 9), dtype), X[3:9])


# ---------------------------------------------------------------- what comes over a network

Pair = namedtuple("Pair", "left right")


def a_message(make):
    numbers = np.arange(5.0)
    state = RowState(make(numbers), True, make(np.arange(3)), 0, None, {"per_row": make(numbers)})
    return [make(numbers), (1, make(np.arange(4))), {"a": make(numbers), 2: "b"}, Pair(make(numbers), None),
            off_by_one_csr(np.eye(3), make), state]


def test_a_message_is_aligned_throughout():
    before, expected = a_message(off_by_one), arrays_in(a_message(np.array))
    found = aligned_throughout(before)
    assert [type(part) for part in found] == [type(part) for part in before]
    assert len(arrays_in(found)) == len(expected) == 10
    for array, wanted in zip(arrays_in(found), expected, strict=True):
        assert array.flags.aligned and array.dtype == wanted.dtype
        np.testing.assert_array_equal(array, wanted)
    assert not any(array.flags.aligned for array in arrays_in(before))        # nothing given is written to
    assert contiguous(off_by_one(np.ones(3))).flags.aligned


def test_what_is_aligned_is_not_copied():
    message = a_message(np.array)
    assert aligned_throughout(message) is message
    request = Request(3)
    assert aligned_throughout(request) is request and aligned_throughout("word") == "word"


def test_tasks_of_workers_get_aligned_arrays():
    pytest.importorskip("distributed")
    from cmargin.data.shards.dask.cluster import Cluster

    def client_map(function, *columns, **_):
        return [function(*arguments) for arguments in zip(*columns, strict=True)]

    cluster = Cluster(SimpleNamespace(map=client_map))
    found = cluster.everywhere("look", lambda X, more: X.flags.aligned and more["w"].flags.aligned,
                               [off_by_one(np.ones(3))] * 2, [{"w": off_by_one(np.ones(4))}] * 2)
    assert found == [True, True]
