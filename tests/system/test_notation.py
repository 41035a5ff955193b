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


ARCHITECTURE = ROOT / "doc" / "architecture.md"


def table_of(heading):
    """Rows of the table under that heading of the page, each a list of cells."""
    if not ARCHITECTURE.exists():
        return []
    part = ARCHITECTURE.read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


@pytest.mark.parametrize("formula, paper, names, file", table_of("Which file has which formula"),
                         ids=lambda cell: cell[:20])
def test_every_formula_is_in_its_file(formula, paper, names, file):
    text = (ROOT / file.strip("` ")).read_text()
    assert [name for name in re.findall(r"`([^`]+)`", names) if not re.search(rf"\b{name}\b", text)] == []


def test_the_page_has_every_file_of_the_newton_driver_and_no_other():
    if not ARCHITECTURE.exists():
        pytest.skip("the documentation is not beside the tests")
    folder = ROOT / "cmargin" / "_core" / "newton"
    files = {str(path.relative_to(folder).with_suffix("")) for path in folder.rglob("*.p[yx][xd]")}
    assert {cells[0].strip("`") for cells in table_of("The compiled Newton driver")} == files


@pytest.mark.parametrize("page", ["architecture.md", *(f"design-notes/{name}.md" for name in (
    "index", "one_vs_rest", "multinomial", "smsvm", "dual", "margin_pursuit", "data_sources", "threads"))])
def test_files_and_options_of_commands_that_a_page_names_exist(page):
    if not ARCHITECTURE.exists():
        pytest.skip("the documentation is not beside the tests")
    text = (ARCHITECTURE.parent / page).read_text()
    named = re.findall(r"(?:cmargin|asv_benches|tests|_estimators|_runtime|solvers)/[\w/]+\.\w+", text)
    assert [name for name in named if not any((root / name).exists() for root in (ROOT, ROOT / "cmargin"))] == []
    wanted = [(name, option) for name, rest in re.findall(r"`python (asv_benches/\w+\.py)([^`]*)`", text)
              for option in re.findall(r"--[\w-]+", rest)]
    assert [pair for pair in wanted if f'"{pair[1]}"' not in (ROOT / pair[0]).read_text()] == []
