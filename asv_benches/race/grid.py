"""The race over losses, sets, penalties, seeds and solvers: its cells, how one is measured, the file of what was.

A seed is another order of the rows, another draw of a made set, and the solvers' own random numbers.
"""

import json
import os
from itertools import product
from typing import NamedTuple

import numpy as np

from measure.machine import machine
from race import hinge, suboptimality
from race.classifiers import unfit
from race.data import SYNTHETIC, Problem, codes, prepare, read
from race.losses import PEERS
from race.peer import RIDGE
from race.traces import TimeUp, quiet, within

TARGET = 1e-4                  # relative distance from the optimum that everybody is to reach
EXACT = 1e-8                   # certified gap of what is taken for the optimum
PATIENCE = 60                  # seconds for that
ON_REQUEST = ("SGD",)          # by --solvers only: to 1e-4 it takes thousands of passes


class Cell(NamedTuple):
    """What is measured once."""
    loss: str
    data: str
    l2: float
    seed: int
    solver: str
    threads: int
    limit: float


class Kept:
    """Measured cells, a line of JSON each, added as soon as they are known; a line cut short counts for nothing."""

    def __init__(self, path):
        self.path, self.rows = path, {}
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                for line in file:
                    self._take(line)

    def _take(self, line):
        try:
            row = json.loads(line)
            self.rows[Cell(*(row[key] for key in Cell._fields))] = row
        except (ValueError, KeyError, TypeError):
            pass

    def add(self, cell, row):
        row = cell._asdict() | row
        with open(self.path, "a+b") as file:
            if file.tell() and not self._ends_a_line(file):
                file.write(b"\n")
            file.write(json.dumps(row).encode() + b"\n")
        self.rows[cell] = row

    @staticmethod
    def _ends_a_line(file):
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


def solvers_of(loss, options):
    """Those of the options' solvers that minimise this loss with an l2 penalty, installed or not."""
    return [name for name, peer in PEERS[loss].items() if RIDGE in peer.penalties
            and (name in options.solvers if options.solvers else name not in ON_REQUEST)]


def cells_of(label, seed, options):
    """The cells of one set in one order, solver by solver for each problem, so that peers run in the same minutes."""
    return [Cell(loss, label, l2, seed, solver, options.threads, options.time_limit)
            for loss, l2 in product(options.losses, options.l2) for solver in solvers_of(loss, options)]


def orders(entry, seeds, folder, wanted):
    """(name, seed, X, y) of every binary problem of a set in every order; ``wanted(name, seed)`` says which."""
    name, _, only = entry.partition(":")
    stored = X = None
    for seed in seeds:
        if stored is None or name in SYNTHETIC:
            stored = read(name, folder, seed)
            X = prepare(stored.X)
        problems = list(codes(stored.y, only or None))
        labels = [name if len(problems) == 1 and not only else f"{name}:{c}" for c, _ in problems]
        left = [(label, y) for label, (_, y) in zip(labels, problems, strict=True) if wanted(label, seed)]
        if left:
            order = np.random.default_rng(seed).permutation(len(stored.y))
            rows = X[order]
            for label, y in left:
                yield label, seed, rows, y[order]


def standing(kept, options):
    """Rows that are kept of the options' cells, set by set as the options have them."""
    def of(entry, label):
        return label == entry or (":" not in entry and label.startswith(f"{entry}:"))

    return [row for entry in options.data for cell, row in kept.rows.items()
            if of(entry, cell.data) and cell.loss in options.losses and cell.l2 in options.l2
            and cell.seed in options.seeds and cell.solver in solvers_of(cell.loss, options)
            and (cell.threads, cell.limit) == (options.threads, options.time_limit)]


def optimum(problem, threads):
    """(objective, certified gap) of one long fit; NaN where it fails or takes too long."""
    try:
        with quiet(), within(PATIENCE):
            run = hinge.cmargin(problem, 0.3 / EXACT, threads, 1)
    except TimeUp:
        return np.nan, np.nan
    return suboptimality.objective(run.w, problem), run.gap


def measured(solver, problem, limit, threads, best):
    """What is kept of one solver on one problem: seconds to the target, or how near it came in what time."""
    reason = unfit(solver, problem.X)
    if reason:
        return {"end": reason}
    load = os.getloadavg()[0]
    level = best * (1 + TARGET)
    trace = suboptimality.trace_of(solver, problem, limit, threads, level)
    row = {"end": trace.end, "longest": trace.longest, "load": load}
    point = trace.first(lambda value: value <= level)
    nearest = point or min(trace.points, key=lambda p: p.value, default=None)
    if nearest is not None:
        run = nearest.run[0]
        row |= {"distance": max(nearest.value / best - 1, 0.0), "how": run.how,
                "lowest": min(p.value for p in trace.points) / best - 1,
                "passes": run.passes if np.isfinite(run.passes) else None}
    return row | {"seconds": point.seconds if point else None}


def stands_still(row):
    """Whether more time would not have helped."""
    return row.get("seconds") is None and row["end"] in ("settled", "no more to ask for")


def in_words(row):
    """One row's result: seconds, or why there are none."""
    if row.get("seconds") is not None:
        return f"{row['seconds']:.3g} s"
    if "longest" not in row or row["end"].startswith("failed"):
        return row["end"]
    if "distance" not in row:
        return f"not within {row['limit']:g} s: {row['end']}"
    if stands_still(row):
        return f"stands still at distance {row['distance']:.1e}"
    return f"not within {row['limit']:g} s: distance {row['distance']:.1e}"


def race(entry, options, kept, folder, said=print):
    """Measure the cells of one set that are not kept yet."""
    def left(label, seed):
        return [cell for cell in cells_of(label, seed, options)
                if cell not in kept.rows and not PEERS[cell.loss][cell.solver].absence()]

    for label, seed, X, y in orders(entry, options.seeds, folder, left):
        common = {"shape": X.shape, "stored": "sparse" if hasattr(X, "indptr") else "dense", "machine": machine()}
        problem = best = None
        for cell in left(label, seed):
            if problem is None or (problem.loss, problem.l2) != (cell.loss, cell.l2):
                problem = Problem(X, y, cell.l2, loss=cell.loss, seed=seed)
                best, gap = optimum(problem, options.threads)
            if np.isfinite(best):
                row = measured(cell.solver, problem, cell.limit, cell.threads, best)
                kept.add(cell, common | row | {"optimum": best, "gap": gap})
            else:
                kept.add(cell, common | {"end": f"no optimum in {PATIENCE} s"})
            said(f"{cell.loss} {label} l2={cell.l2:g} seed {seed} {cell.solver}: {in_words(kept.rows[cell])}")
