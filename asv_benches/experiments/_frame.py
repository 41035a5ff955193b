"""Runs an experiment cell by cell, keeps what is measured, and writes CSV, PNG and the Markdown page."""

import csv
import hashlib
import json
import os
import re
import sys
import time
import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from cmargin.datasets import DataNotFound
from experiments import find
from measure.machine import machine

BAR = 20      # characters of the progress bar


@dataclass
class Table:
    """A table of the page; cells are texts or numbers, None an empty one."""

    caption: str
    header: tuple
    rows: list


@dataclass
class Claim:
    """What a paper says (``text``), whether the rows bear it out, and what they show.

    ``held`` is None where it was not measured, "asked" where the paper only asks.
    """

    text: str
    held: bool | str | None
    found: str


def _plain(value):
    """NumPy numbers and arrays for JSON."""
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else str(value)


def _kind(warning):
    """First clause of a warning, its numbers left out: the same trouble in other cells counts as the same."""
    clause = re.split(r"; |\. ", str(warning.message))[0]
    return re.sub(r"-?\d[\d.,]*(e[+-]?\d+)?", "…", clause).rstrip(".")


class Store:
    """Finished cells, one JSON file each, named by what was measured."""

    def __init__(self, folder):
        self.folder = Path(folder)

    def path(self, cell):
        text = json.dumps(cell, sort_keys=True, default=_plain)
        words = "-".join(str(value) for value in cell.values() if isinstance(value, str | int | float))
        readable = "".join(c if c.isalnum() or c in "-." else "_" for c in words)[:60]
        return self.folder / f"{readable}-{hashlib.sha256(text.encode()).hexdigest()[:10]}.json"

    def read(self, cell):
        """What was kept of the cell, or None; a file cut short counts as none."""
        try:
            return json.loads(self.path(cell).read_text(encoding="utf-8"))
        except (FileNotFoundError, json.JSONDecodeError):
            return None

    def write(self, cell, **content):
        self.folder.mkdir(parents=True, exist_ok=True)
        path, kept = self.path(cell), {"cell": cell, **content}
        part = path.with_suffix(".part")
        part.write_text(json.dumps(kept, default=_plain), encoding="utf-8")
        os.replace(part, path)                     # whole or not at all
        return json.loads(path.read_text(encoding="utf-8"))


@dataclass
class Progress:
    """One line on standard error that says how far it is; a line for each cell where that is no terminal."""

    name: str
    total: int
    file: object = None
    measured: int = 0
    spent: float = 0.0

    def __post_init__(self):
        self.file = sys.stderr if self.file is None else self.file
        self.live = getattr(self.file, "isatty", lambda: False)()

    def _line(self, number, words, end):
        done = BAR * number // self.total
        bar = "#" * done + "." * (BAR - done)
        left = ""
        if self.measured and number < self.total:
            left = f", about {self.spent / self.measured * (self.total - number):.0f} s left"
        start, end = ("\r\033[K", end) if self.live else ("", "\n")
        print(f"{start}{self.name} [{bar}] {number}/{self.total}{left}  {words}", end=end, file=self.file, flush=True)

    def begin(self, number, cell):
        if self.live:
            self._line(number, _words(cell), "")

    def end(self, number, cell, seconds):
        """After a cell; ``seconds`` is None where it was there already."""
        if seconds is not None:
            self.measured, self.spent = self.measured + 1, self.spent + seconds
        done = number + 1
        self._line(done, _words(cell) + (": kept" if seconds is None else f": {seconds:.1f} s"),
                   "\n" if done == self.total else "")


def _words(cell):
    return " ".join(f"{key}={value}" for key, value in cell.items() if not isinstance(value, list | tuple | dict))


@dataclass
class Outcome:
    """An experiment that was run: its rows, and what the page has to say of the run itself."""

    rows: list
    cells: list                # as kept
    missing: list              # sentences on data that are not here
    warnings: dict             # text of a warning: how many cells gave it


def collect(module, store, quick, progress):
    """Measure the cells that are not kept yet; the rows of all of them, in the order of the cells."""
    cells, kept_cells, missing = module.cells(quick), [], {}
    progress.total = len(cells)
    for number, cell in enumerate(cells):
        kept, seconds = store.read(cell), None
        if kept is None:
            progress.begin(number, cell)
            begin = time.perf_counter()
            try:
                with warnings.catch_warnings(record=True) as heard:
                    warnings.simplefilter("always")
                    rows = module.measure(**cell)
            except DataNotFound as error:
                missing[str(error)] = None
                continue
            seconds = time.perf_counter() - begin
            kept = store.write(cell, rows=rows, seconds=seconds, machine=machine(),
                               warnings=sorted({_kind(w) for w in heard}))
        progress.end(number, cell, seconds)
        kept_cells.append(kept)
    if not kept_cells:
        raise DataNotFound(" ".join(missing))
    rows = [{**kept["cell"], **row} for kept in kept_cells for row in kept["rows"]]
    counts = {}
    for text in (text for kept in kept_cells for text in kept["warnings"]):
        counts[text] = counts.get(text, 0) + 1
    return Outcome(rows, kept_cells, list(missing), counts)


def write_csv(path, rows):
    """All rows; the columns are those of any of them, lists as JSON."""
    header = list(dict.fromkeys(key for row in rows for key in row))
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, header, lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({key: json.dumps(value) if isinstance(value, list | dict) else value
                             for key, value in row.items()})


def run(name, out, *, quick=False, file=None):
    """Run one experiment into folder ``out``: NAME.csv, NAME.png, NAME.md, and the cells under cells/NAME.

    A quick run goes by NAME-quick, so that it never stands in for a full one. Cells that are there already are not
    measured again; delete their folder to start afresh.

    Returns
    -------
    Outcome
    """
    from experiments._page import page

    module, out = find(name), Path(out)
    stem = f"{name}-quick" if quick else name
    out.mkdir(parents=True, exist_ok=True)
    outcome = collect(module, Store(out / "cells" / stem), quick, Progress(stem, 0, file))
    write_csv(out / f"{stem}.csv", outcome.rows)
    picture = None
    if find_spec("matplotlib") is not None:
        picture = f"{stem}.png"
        module.draw(outcome.rows).savefig(out / picture, dpi=80)
    (out / f"{stem}.md").write_text(page(module, name, outcome, picture, quick), encoding="utf-8")
    return outcome


def groups(rows, *keys):
    """{values of the keys (the bare value where there is one key): rows}, in the order they appear."""
    found = {}
    for row in rows:
        values = tuple(row[key] for key in keys)
        found.setdefault(values[0] if len(keys) == 1 else values, []).append(row)
    return found
