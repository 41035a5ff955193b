"""What the races print and store. On the screen a time that was not enough reads >4.1; in the file it is inf, and the
column `longest` has the 4.1."""

import csv
import sys

import numpy as np


def seconds(value, longest=np.nan):
    """Three digits of seconds; >longest where the target was not reached, - where there is nothing to say."""
    if np.isnan(value):
        return "-"
    return f"{value:.3g}" if np.isfinite(value) else f">{longest:.2g}"


def factor(row):
    """The ratio with the sign of its bound: 12, >100, or - where neither arrived."""
    return "-" if np.isnan(row["ratio"]) else f"{row['bound']}{row['ratio']:.3g}"


def number(value, form):
    return "-" if isinstance(value, float) and np.isnan(value) else format(value, form)


class Table:
    """Columns of one race: their names in rows, headings, widths and how to write a cell."""

    def __init__(self, columns, targets):
        self.columns = columns                                  # [(key, width, form)] before and after the targets
        self.targets = targets

    def cells(self):
        before, after = self.columns
        return [*before, *((key, 11, None) for key in self.targets), *after]

    def heading(self):
        return " ".join(f"{key:>{width}}" if width > 0 else f"{key:<{-width}}" for key, width, _ in self.cells())

    def line(self, row):
        parts = []
        for key, width, form in self.cells():
            if key in self.targets:
                text = seconds(row[key], row["longest"])
            elif key == "ratio":
                text = factor(row)
            else:
                text = number(row[key], form)
            parts.append(f"{text:>{width}}" if width > 0 else f"{text:<{-width}}")
        return " ".join(parts)


def objective_table(targets):
    return Table(([("data", -13, "s"), ("class", 5, "s"), ("loss", -13, "s"), ("l2", 6, "g"), ("l1", 6, "g"),
                   ("solver", -20, "s")],
                  [("ratio", 8, None), ("best", 8, ".0e"), ("passes", 7, ".4g"), ("nonzeros", 8, ""), ("how", -46, "s"),
                   ("gap", 7, ".0e")]), targets)


def accuracy_table(targets):
    return Table(([("data", -13, "s"), ("solver", -21, "s")],
                  [("ratio", 8, None), ("best top-1", 10, ".2f"), ("best top-5", 10, ".2f"), ("how", -37, "s")]),
                 targets)


class Results:
    """Rows of the races, in the file ``path`` as soon as they are known: all of them, with all their columns.

    ``common`` are the columns that every row has. Where the file cannot be written any more, that is said once and the
    races go on.
    """

    def __init__(self, path=None, common=None):
        self.path, self.common, self.rows, self.failed = path, common or {}, [], False

    def add(self, row):
        self.rows.append(self.common | row)
        if self.path is None or self.failed:
            return
        try:
            self.write()
        except OSError as error:
            self.failed = True
            print(f"race: {error}; what follows is printed only", file=sys.stderr)

    def write(self):
        head = list(dict.fromkeys(key for row in self.rows for key in row))
        with open(self.path, "w", newline="") as file:
            writer = csv.DictWriter(file, head, restval="")
            writer.writeheader()
            writer.writerows(self.rows)
