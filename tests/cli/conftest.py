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


@pytest.fixture(params=["pandas", "numpy"])
def reader(request, monkeypatch):
    """Tables by pandas, and as if it were not installed."""
    if request.param == "numpy":
        monkeypatch.setattr(delimited, "_by_pandas", lambda *arguments: None)
    else:
        pytest.importorskip("pandas")
