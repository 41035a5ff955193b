"""What the tests of the command are given: a folder with a table, and readers of tables."""

import pytest
from trees import csv_text

from cmargin.data.files import delimited


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder one is in from here on, with trees.csv."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trees.csv").write_text(csv_text())
    return tmp_path


@pytest.fixture(params=["pyarrow", "pandas", "numpy"])
def reader(request, monkeypatch):
    """Tables by pyarrow, by pandas, and as if neither were installed."""
    for name in {"pyarrow": (), "pandas": ("_by_arrow",), "numpy": ("_by_arrow", "_by_pandas")}[request.param]:
        monkeypatch.setattr(delimited, name, lambda *arguments: None)
    if request.param != "numpy":
        pytest.importorskip(request.param)
