"""The reference has every public name, and what looks over the built site sees its faults. Sphinx is not needed."""

import inspect
import re
import shutil
from pathlib import Path

import pytest

import cmargin
from cmargin import baselines, data, datasets, export, margins, plots

REFERENCE = Path(__file__).resolve().parents[2] / "doc" / "api.rst"


def public_names():
    listed = {name for module in (cmargin, baselines, data, export, margins) for name in module.__all__}
    made_there = {name for module in (datasets, plots) for name, value in vars(module).items()    # without __all__
                  if inspect.isclass(value) and value.__module__ == module.__name__}
    return (listed | made_there | {"load", "available", "read_npz"}) - {"__version__"}


def test_every_public_name_is_in_the_reference():
    if not REFERENCE.exists():
        pytest.skip("the documentation is not beside the tests")
    text = REFERENCE.read_text()
    assert {name for name in public_names() if not re.search(rf"[\s.]{name}\s", text)} == set()


def in_one_line(text):
    """Without ends of lines and the marks that comments begin them with."""
    return re.sub(r"\s+", " ", re.sub(r"\n\s*(?:\*|#|/\*)?\s", " ", text))


def test_entries_of_the_lab_notebook_that_the_source_names_exist():
    root = REFERENCE.parents[1]
    if not (root / "doc" / "lab-notebook").is_dir():
        pytest.skip("the documentation is not beside the tests")
    entries = {in_one_line(title).rstrip(".,:") for page in (root / "doc" / "lab-notebook").glob("*.md")
               for title in re.findall(r"(?m)^\*\*((?:[^*]|\*(?!\*))+?)\*\*", page.read_text())}
    named = {title for kind in ("py", "pyx", "pxd", "h") for source in (root / "cmargin").rglob(f"*.{kind}")
             for title in re.findall(r'doc/lab-notebook, "([^"]+)"', in_one_line(source.read_text()))}
    assert len(entries) > 100 and named and named <= entries


PAGE = """<html><body><h1 id="top-of-it">A page</h1><a href="{link}">there</a>
<p style="width: {width}px">wide</p><img src="{figure}">
<div class="formula" style="overflow-x: auto; height: {height}px">
<math><mfrac><mi>{top}</mi><mn>2</mn></mfrac></math></div></body></html>"""
DOT = ('<svg xmlns="http://www.w3.org/2000/svg" width="4" height="4"><circle r="2"/></svg>')


def site(folder, link="guide/#place", width=100, figure="dot.svg", picture=DOT, height=90, top="x"):
    (folder / "guide").mkdir()
    (folder / "_static").mkdir()
    (folder / "_static" / "macro.html").write_text('<a href="{{ no page }}">')
    (folder / "guide" / "index.html").write_text('<p id="place"></p><a href="../index.html#top-of-it">up</a>')
    (folder / "index.html").write_text(PAGE.format(link=link, width=width, figure=figure, height=height,
                                                           top=top))
    (folder / "dot.svg").write_text(picture)
    return str(folder)


@pytest.mark.parametrize("fault, words", [
    ({}, []), ({"link": "https://elsewhere.example/none"}, []), ({"link": "gone.html"}, ["leads nowhere: gone.html"]),
    ({"link": "#gone"}, ["no such place: #gone"]), ({"link": "guide/#gone"}, ["no such place: guide/#gone"]),
    ({"link": "../outside.html"}, ["leads nowhere"]), ({"figure": "gone.png"}, ["leads nowhere: gone.png"]),
    ({"picture": ""}, ["an empty figure: dot.svg"])])
def test_links_and_figures_that_lead_nowhere_are_named(tmp_path, capsys, fault, words):
    check_site = pytest.importorskip("build_tools.check_site", reason="not in a checkout")
    (tmp_path / "outside.html").write_text("not of the site")
    (tmp_path / "site").mkdir()
    assert check_site.main([site(tmp_path / "site", **fault), "--browser", "none"]) == bool(words)
    said = capsys.readouterr().out.splitlines()
    assert len(said) == len(words) + 1 and said[-1] == f"2 pages, {len(words)} faults"
    assert all(word in line and line.startswith("index.html: ") for word, line in zip(words, said[:-1], strict=True))


@pytest.mark.skipif(not shutil.which("chromium"), reason="there is no browser")
@pytest.mark.parametrize("fault, words", [
    ({}, []), ({"width": 600}, ["in a window of 390: 608 wide"]), ({"picture": "no picture"}, ["no picture"]),
    ({"height": 9}, ["in a window of 390: cut off: x2", "in a window of 1280: cut off: x2"]),
    ({"top": "x" * 80}, ["in a window of 390: cut off: xxx"])])
def test_a_browser_sees_wide_pages_broken_figures_and_formulas_that_are_cut_off(tmp_path, capsys, fault, words):
    check_site = pytest.importorskip("build_tools.check_site", reason="not in a checkout")
    assert check_site.main([site(tmp_path, **fault), "--browser", "chromium", "--seconds", "60"]) == bool(words)
    said = capsys.readouterr().out.splitlines()
    assert len(said) == len(words) + 1 and all(word in line for word, line in zip(words, said[:-1], strict=True))


def test_without_a_browser_a_sentence_says_so(tmp_path, capsys, monkeypatch):
    check_site = pytest.importorskip("build_tools.check_site", reason="not in a checkout")
    monkeypatch.setattr(check_site.shutil, "which", lambda name: None)
    assert check_site.main([site(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("There is no browser (chromium, ")
