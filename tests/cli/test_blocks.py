"""Tables of text in blocks: every way of reading them gives the same, and memory for little more than the table."""

import tracemalloc

import numpy as np
import pytest

from cmargin.cli.columns import numbers_of
from cmargin.cli.fit import _scaled
from cmargin.data.files import delimited

WAYS = ("_by_arrow", "_by_pandas", "_by_csv")
rng = np.random.default_rng(0)
NUMBERS = rng.normal(size=(400, 3)) * 10.0 ** rng.integers(-300, 300, (400, 3))
NAMES = np.array(["elm", "ash", "oak tree"])[rng.integers(0, 3, 400)]


def text(numbers=NUMBERS, names=NAMES, end="\n", separator=","):
    return "".join(separator.join([*map(repr, row), name]) + end
                   for row, name in zip(numbers.tolist(), names, strict=True))


@pytest.fixture(params=WAYS)
def way(request, monkeypatch):
    """One way of reading, by blocks of few rows."""
    pytest.importorskip({"_by_arrow": "pyarrow", "_by_pandas": "pandas"}.get(request.param, "numpy"))
    for name, value in (("BLOCK", 1 << 10), ("PIECE", 1 << 10), ("CELLS", 64)):
        monkeypatch.setattr(delimited, name, value)
    return getattr(delimited, request.param)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n"])
@pytest.mark.parametrize("separator", [",", "\t", ";"])
def test_every_way_reads_every_digit(way, end, separator, tmp_path):
    (tmp_path / "d.csv").write_bytes(text(end=end, separator=separator).encode())
    X, names = way(str(tmp_path / "d.csv"), separator, 4, [0, 1, 2], 3, 0)
    np.testing.assert_array_equal(X, NUMBERS)
    assert names.tolist() == NAMES.tolist() and X.flags.c_contiguous
    X, names = way(str(tmp_path / "d.csv"), separator, 4, [2, 0], None, 1)
    np.testing.assert_array_equal(X, NUMBERS[1:, [2, 0]])
    assert names is None


@pytest.mark.parametrize("cell", ["", " ", "NA", "nan", "+1.5", " 1.5", "1.5 ", '"1.5"', "1e400", "inf", "0x1p3", "1_0",
                                  "\u0661", "1,5", "TRUE", "None"])
@pytest.mark.parametrize("label", ["elm", ' "elm"', '"elm"', " elm", '"two\nlines"', '"a ""b"""', "NA", ""])
def test_ways_agree_on_odd_cells(cell, label, tmp_path, monkeypatch):
    path = str(tmp_path / "d.csv")
    (tmp_path / "d.csv").write_text(f"1,2,elm\n{cell},2,{label}\n3,4,ash\n")

    def by(*off):
        with monkeypatch.context() as within:
            for name in off:
                within.setattr(delimited, name, lambda *given: None)
            try:
                X, names = delimited.read_cells(path, ",", 3, [0, 1], 2, 0)
                return X.tolist(), [name.strip() for name in names.tolist()]
            except ValueError as error:
                return str(error)

    pytest.importorskip("pandas")
    found = by()
    np.testing.assert_equal(by("_by_arrow"), found)          # NaN is NaN
    if cell != "1,5":                                        # a row of another length, of which Python says more
        np.testing.assert_equal(by("_by_arrow", "_by_pandas"), found)


def test_a_table_takes_little_more_memory_than_itself(way, tmp_path, monkeypatch):
    numbers = np.round(rng.normal(size=(5000, 63)), 4)
    (tmp_path / "d.csv").write_text(text(numbers, np.tile(NAMES[:100], 50)))
    for name, value in (("BLOCK", 1 << 14), ("PIECE", 1 << 16), ("CELLS", 1 << 12)):
        monkeypatch.setattr(delimited, name, value)
    tracemalloc.start()
    try:
        X, _ = way(str(tmp_path / "d.csv"), ",", 64, [*range(63)], 63, 0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    np.testing.assert_array_equal(X, numbers)
    assert peak < 2.2 * X.nbytes                 # the second time as pages that are not used while there is the first


def test_columns_of_texts_in_later_blocks_are_texts_from_the_first_row_on(tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "CELLS", 6)
    (tmp_path / "d.csv").write_text("a,b,y\n" + "1,2,x\n" * 9 + "1, red,x\nNA,007,x\n")
    found = delimited.read_columns(str(tmp_path / "d.csv"), ",", 3, 1, [0, 1, 2], [2], numbers_of)
    np.testing.assert_array_equal(found[0], [1.0] * 10 + [np.nan])
    assert found[1].tolist() == ["2"] * 9 + ["red", "007"] and found[2].tolist() == ["x"] * 11


@pytest.mark.parametrize("how", ["columns", "rows"])
def test_rows_are_scaled_where_they_are(how):
    X = NUMBERS[:, :2] % 7
    copy = X.copy()
    scaler, scaled = _scaled(X, how)
    assert np.shares_memory(scaled, X) and scaler.copy
    np.testing.assert_array_equal(scaler.transform(copy), scaled)


def test_lines_of_blanks_are_no_rows(tmp_path, monkeypatch):
    path = str(tmp_path / "d.csv")
    (tmp_path / "d.csv").write_text("1,2,elm\n \n3,4,ash\n\t\n \n")
    for off in ((), ("_by_arrow",), ("_by_arrow", "_by_pandas")):
        with monkeypatch.context() as within:
            for name in off:
                within.setattr(delimited, name, lambda *given: None)
            X, names = delimited.read_cells(path, ",", 3, [0, 1], 2, 0)
        assert (X.tolist(), names.tolist()) == ([[1, 2], [3, 4]], ["elm", "ash"]), off
    found = delimited.read_columns(path, ",", 3, 0, [0, 2], [2], numbers_of)
    assert (found[0].tolist(), found[2].tolist()) == ([1, 3], ["elm", "ash"])
