"""`python -m tests.campaign.cell_tables`: the tables of cells in doc/reliability.md, made anew, in some ten minutes."""

import sys
from collections import Counter
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

from .cell_part import load
from .cells import CONTAINERS, EQUAL, LABELS, REFUSED, WRONG, cluster_for, verdict_of
from .estimators import ESTIMATORS, SEARCHES
from .file_cells import KINDS, LABELLED, READERS, ROWS, verdict_of_command, verdict_of_rows
from .label_kinds import GROUPS

PAGE = Path(__file__).parents[2] / "doc" / "reliability.md"
BEGIN, END = "<!-- cells: written by python -m tests.campaign.cell_tables -->", "<!-- cells: end -->"
LETTERS = {EQUAL: "=", REFUSED: "r", WRONG: "**w**"}
FAMILIES = {"SLND, BSN": ("SLNDClassifier", "BSNClassifier"), "SmSVM": ("SmSVMClassifier",),
            "search": SEARCHES[:1], "SLND search": SEARCHES[1:], "pursuit": ("MarginPursuitClassifier",)}
FAMILIES["baselines"] = tuple(name for name in ESTIMATORS if name not in chain(*FAMILIES.values()))
TAKE_ALL = [name for name in ESTIMATORS if name not in SEARCHES]       # kinds of labels, indicators included


def estimator_beside(container, labels):
    """The estimator of a cell of the first table: they take turns; beside Dask's collections one that takes them."""
    if "distributed" in (CONTAINERS[container].needs, LABELS[labels].needs):
        return "SmSVMClassifier"
    return TAKE_ALL[(7 * list(CONTAINERS).index(container) + list(LABELS).index(labels)) % len(TAKE_ALL)]


def cells_of_tables():
    """(table, row, column, names, verdict) of every cell to be tried; several may share a row and column."""
    for container in CONTAINERS:
        for labels, kind in LABELS.items():
            for estimator in ESTIMATORS if labels == "int64" else [estimator_beside(container, labels)]:
                yield "containers", container, kind.group, (container, labels, estimator), verdict_of
    for labels in LABELS:
        for family, estimators in FAMILIES.items():
            for estimator in estimators:
                yield "labels", labels, family, ("C order", labels, estimator), verdict_of
    for file in ROWS:
        for reader in READERS:
            for estimator in ESTIMATORS:
                yield "files", file, reader, (file, reader, estimator), verdict_of_rows
    for file in LABELLED:
        for kind in KINDS:
            yield "commands", file, kind, (file, kind), verdict_of_command


COLUMNS = {"containers": ("container", GROUPS), "labels": ("labels", list(FAMILIES)), "files": ("file", list(READERS)),
           "commands": ("file of rows and labels", list(KINDS))}
TITLES = {
    "containers": "Containers and kinds of labels, int64 in every estimator, other labels in one after the other:",
    "labels": "Kinds of labels beside a plain array, every estimator:",
    "files": "Files of rows and readers, every estimator:",
    "commands": "Files of rows and labels, by `cmargin fit`, `predict` and `evaluate` with `--method smsvm`:",
}


def letters(kinds):
    """What a cell of a table says of several verdicts; what is wrong hides the others."""
    if WRONG in kinds:
        return LETTERS[WRONG]
    return "".join(letter for kind, letter in LETTERS.items() if kind in kinds)


def measured():
    """(table, row) -> {column: letters}, and counts of verdicts."""
    found, counts = {}, Counter()
    with cluster_for("Dask array", "int64"):
        for table, row, column, names, verdict in cells_of_tables():
            kind = verdict(*names).kind
            counts[kind] += 1
            found.setdefault((table, row), {}).setdefault(column, set()).add(kind)
    return {key: {column: letters(kinds) for column, kinds in row.items()} for key, row in found.items()}, counts


def listed():
    """(table, row) -> {column: letters}, as the page has them."""
    found, table = {}, None
    heads = {what: name for name, (what, _) in COLUMNS.items()}
    for line in PAGE.read_text().partition(BEGIN)[2].partition(END)[0].splitlines():
        head, *entries = [entry.strip() for entry in line.strip("|").split("|")]
        if head in heads:
            table = heads[head]
        elif line.startswith("| "):
            for row in head.split("; "):
                found[table, row] = dict(zip(COLUMNS[table][1], entries, strict=True))
    return found


def text_of(found):
    """The tables: rows that say the same are one."""
    out = []
    for table, (what, columns) in COLUMNS.items():
        rows = {}
        for (of, row), entries in found.items():
            if of == table:
                rows.setdefault(tuple(entries.get(column, "") for column in columns), []).append(row)
        out += [TITLES[table], "", "| " + " | ".join([what, *columns]) + " |", "|---" * (len(columns) + 1) + "|"]
        out += ["| " + " | ".join(["; ".join(names), *entries]) + " |" for entries, names in rows.items()] + [""]
    return "\n".join(out)


def summary(found, counts):
    """One sentence on all cells."""
    return (f"{sum(map(len, found.values())):,} cells, of {counts.total():,} fits: {counts[EQUAL]:,} equal, "
            f"{counts[REFUSED]:,} refused, {counts[WRONG]:,} wrong.\n")


def main():
    absent = {name for kind in chain(CONTAINERS.values(), LABELS.values()) for name in [kind.needs]
              if find_spec(name) is None}
    if absent:
        sys.exit(f"The tables need {', '.join(sorted(absent))}: install them by pip.")
    load()
    found, counts = measured()
    before, _, after = PAGE.read_text().partition(BEGIN)
    tables = "\n".join([BEGIN, "", summary(found, counts), text_of(found) + END])
    PAGE.write_text(before + tables + after.partition(END)[2])
    print(summary(found, counts))


if __name__ == "__main__":
    main()
