"""Cells of `cells` and `file_cells` at random, as a part of the campaign: every seed has other numbers too."""

from functools import partial
from importlib import import_module

import numpy as np

from .cells import CONTAINERS, LABELS, WRONG, cluster_for, missing, verdict_of
from .estimators import ESTIMATORS
from .file_cells import KINDS, LABELLED, READERS, ROWS, verdict_of_command, verdict_of_rows
from .findings import Findings

# what a seed is of -> its share of the seeds, the tables that a name is drawn from, and the verdict of such names
WHAT = {"container": (0.7, (CONTAINERS, LABELS, ESTIMATORS), verdict_of),
        "file": (0.2, (ROWS, READERS, ESTIMATORS), verdict_of_rows),
        "command": (0.1, (LABELLED, KINDS), verdict_of_command)}


def load():
    for name in ("cmargin.baselines", "cmargin.slnd", "cmargin.smsvm_cv", "cmargin.cli.fit", "cmargin.cli.evaluate"):
        import_module(name)


def cell_of(seed):
    """(what, names, verdict) of a seed."""
    rng = np.random.default_rng([seed, 541])
    what = str(rng.choice(list(WHAT), p=[share for share, _, _ in WHAT.values()]))
    _, tables, verdict = WHAT[what]
    return what, tuple(str(rng.choice(list(table))) for table in tables), verdict


def describe(seed):
    what, names, _ = cell_of(seed)
    return [what, *names]


def check_seed(seed):
    what, names, verdict = cell_of(seed)
    found, call = Findings(seed, [what, *names]), partial(verdict, *names, seed=seed)
    if what == "container" and missing(*names[:2]):
        found.count("not installed")
        return found
    if what == "container":
        with cluster_for(*names[:2]):
            verdict = call()
    else:
        verdict = call()
    found.count(verdict.kind)
    if verdict.kind == WRONG:
        found.add("wrong", verdict.words[:300])
    return found
