"""The papers' tables and figures, made again: ``python -m cmargin experiments NAME``.

One module for each, of the same name with underscores. A module gives

    TITLE, SOURCE       what it is, and where in which paper
    SETTING, PAPER      Markdown: how it is set up here and where that departs from the paper; the paper's figures
    cells(quick)        list of dicts, the arguments of one measurement each; small bundled data where ``quick``
    measure(**cell)     that measurement: list of dicts of plain numbers, texts and lists
    tables(rows)        list of `Table`, from the rows of all cells, each {**cell, **row}
    claims(rows)        list of `Claim`: what the paper says and whether the rows bear it out, computed
    draw(rows)          a matplotlib Figure
    notes(rows)         not needed: sentences on what is missing or particular in this run

and `_frame.run` does the rest: finished cells are kept as JSON and not measured again.
"""

NAMES = ("spectrum", "rank", "hessian-samples", "passes", "bsn-table", "entropy", "margin-error", "smsvm-table",
         "smsvm-passes", "pursuit-loss", "pursuit-psi", "pursuit-margins", "pursuit-scale", "pursuit-cubics")


def find(name):
    """The module of an experiment."""
    from importlib import import_module

    if name not in NAMES:
        raise ValueError(f"unknown experiment {name!r}; the names are {', '.join(NAMES)}")
    return import_module(f"experiments.{name.replace('-', '_')}")
