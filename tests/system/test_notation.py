import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "doc" / "notation.md"


def rows():
    if not TABLE.exists():
        return []
    lines = [line for line in TABLE.read_text().splitlines() if line.startswith("|")][2:]
    return [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines]


@pytest.mark.parametrize("paper, code, shape, file", rows(), ids=lambda cell: cell[:20])
def test_every_name_of_the_table_is_in_its_file(paper, code, shape, file):
    text = (ROOT / file.strip("`")).read_text()
    for name in re.findall(r"`([^`]+)`", code):
        if name in ("coef_", "intercept_"):
            continue                                    # said to be the estimator's
        for part in name.lstrip("-").split("."):
            assert re.search(rf"\b{re.escape(part)}\b", text), f"{part} is not in {file}"


def test_table_was_found():
    if not TABLE.exists():
        pytest.skip("the documentation is not beside the tests")
    assert len(rows()) > 30
