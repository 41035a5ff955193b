"""A small table of trees, with labels, as the tests of the command write it."""

import argparse
import re

import numpy as np
from conftest import blobs

from cmargin.__main__ import main
from cmargin.cli import options

X, Y = blobs(n=300, d=5, k=3, spread=0.5)
NAMES = np.array(["ash", "birch", "elm"])
COLUMNS = ["age", "girth", "height", "leaf area", "year"]


def csv_text(rows=X, labels=NAMES[Y], header=True, separator=",", place=5):
    lines = [[*COLUMNS[:place], "tree", *COLUMNS[place:]]] if header else []
    lines += [[*map(repr, row[:place].tolist()), str(label), *map(repr, row[place:].tolist())]
              for row, label in zip(rows, labels, strict=True)]
    return "".join(separator.join(line) + "\n" for line in lines)


def asked(**given):
    """The options about data of a command line that gives none, and those that are ``given``."""
    parser = argparse.ArgumentParser()
    options._data(parser)
    return argparse.Namespace(**{**vars(parser.parse_args(["d"])), **given})


def failed(capsys, *argv, status=1):
    """The sentence on standard error."""
    assert main([*map(str, argv)]) == status
    heard = capsys.readouterr()
    assert heard.out == "" and re.fullmatch(r"(cmargin: warning: .*\n)*cmargin: error: [^\n]+\n", heard.err), heard.err
    return heard.err
