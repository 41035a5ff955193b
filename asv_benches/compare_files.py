"""Rows in files: evaluations beside those in memory, sizes of a chunk, and a file trained on with little memory.

    python asv_benches/compare_files.py [--part evaluations|chunks|fits|working_set|searches|large] [--rows N]
                                        [--folder FOLDER] [--data FOLDER] [--seeds N]

``working_set`` counts passes over class 2 of covtype, which --data FOLDER holds, with and without steps of the rows
near the hinge, every second seed in another order of the rows. ``searches`` counts reads of a file of 100,000 of its
rows by paths of 100 penalties and by searches of these in five folds, beside what their fits count in memory.
``evaluations``, ``chunks`` and ``fits`` read a file of 432 MB that is in the page cache. ``large``, only when asked
for, makes 20,000,000 x 54 float32 rows (4.3 GB; ``--rows`` makes it another number) in a temporary folder, under FOLDER
if given, trains on them to a certified 1e-4, and lets scikit-learn's SGDClassifier.partial_fit go over the same file to
the same objective, each in a process of its own.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from unittest.mock import patch

import numpy as np
from sklearn.preprocessing import scale

from cmargin import MarginPursuitClassifier, SmSVMClassifier, SmSVMClassifierCV, smsvm_path
from cmargin._runtime.blas_threads import single_threaded_blas
from cmargin.data import open_rows
from cmargin.data.files import open_files
from cmargin.data.files import source as file_source
from cmargin.data.files.source import FileSource
from cmargin.datasets import load
from cmargin.solvers import cost
from measure.limits import best_of
from measure.report import heading, table

COLUMNS, ROWS, LARGE = 54, 2_000_000, 20_000_000
L2, EPOCHS, REPEATS = 1e-4, 6, 7
BATCH = 200_000                          # rows that are made, or given to partial_fit, at a time


def make(folder, n):
    """X.npy and y.npy of ``n`` rows: columns that depend on each other, labels from a noisy plane and a rare class."""
    mix = np.linalg.qr(np.random.default_rng(1).standard_normal((COLUMNS, COLUMNS)))[0].astype(np.float32)
    mix *= np.geomspace(1, 0.1, COLUMNS, dtype=np.float32)[:, None]
    plane = np.random.default_rng(2).standard_normal(COLUMNS).astype(np.float32)
    X = np.lib.format.open_memmap(folder / "X.npy", "w+", np.float32, (n, COLUMNS))
    y = np.empty(n, np.int8)
    for lo in range(0, n, BATCH):
        rng, hi = np.random.default_rng([3, lo]), min(lo + BATCH, n)
        rows = rng.standard_normal((hi - lo, COLUMNS), dtype=np.float32) @ mix
        rows /= rows.std(axis=0)
        y[lo:hi] = rows @ plane + 8 * rng.standard_normal(hi - lo, dtype=np.float32) > 2
        X[lo:hi] = rows
    X.flush()
    np.save(folder / "y.npy", y)


def codes_of(folder):
    return np.where(np.load(folder / "y.npy") == 1, 1.0, -1.0)


def questions(rows, n_columns):
    """What one read is asked for, by name."""
    w = np.linspace(-0.1, 0.1, n_columns)
    asked = {"step": 1.0, "line_width": 0.1, "width": 0.1, "curvature_floor": 0.0}

    def begun():
        rows.start()
        rows.set_active(None)
        return rows

    return {"evaluation with curvature": lambda: begun().evaluate(w, **asked),
            "evaluation without": lambda: begun().evaluate(w, **asked, with_hessian=False),
            "objective": lambda: rows.objective(w)}


def ratios(folder, threads, kinds):
    """Seconds of every question in memory, over a memory map that is used as it is, and over the file by chunks, taken
    in turn: the best, and the median ratios of the last two to the first."""
    X, signed_weight = np.load(folder / "X.npy"), codes_of(folder)
    sources = [open_rows(X), open_rows(np.load(folder / "X.npy", mmap_mode="r")),
               open_rows(open_files(folder / "X.npy", in_memory=False))]
    places = [source.row_pass(signed_weight, intercept=True, n_threads=threads) for source in sources]
    asked = [questions(rows, COLUMNS + 1) for rows in places]
    with single_threaded_blas():
        for name in kinds:
            for ask in asked[1:]:
                ask[name]()
            found = np.array([[best_of(ask[name], 1)[0] for ask in asked] for _ in range(REPEATS)])
            yield name, *found.min(axis=0), *np.median(found[:, 1:] / found[:, :1], axis=0)


def evaluations(folder, _):
    rows = [[name, threads, *figures] for threads in (1, 2)
            for name, *figures in ratios(folder, threads, ("evaluation with curvature", "evaluation without",
                                                           "objective"))]
    yield table(f"{ROWS:,} x {COLUMNS} float32, page cache warm",
                ["question", "threads", "memory, s", "map, s", "file, s", "map / memory", "file / memory"], rows)


def chunks(folder, _):
    rows, usual = [], file_source.CHUNK
    for power in range(19, 27):
        file_source.CHUNK = 1 << power
        _, memory, _, file, _, ratio = next(ratios(folder, 2, ("evaluation with curvature",)))
        rows.append([f"{2**power / 2**20:g}", memory, file, ratio])
    file_source.CHUNK = usual
    yield table("Evaluation with curvature on two threads by the size of a chunk",
                ["MB", "memory, s", "file, s", "median ratio"], rows)


def fits(folder, _):
    X, y = np.load(folder / "X.npy"), np.load(folder / "y.npy")
    many = (X[:, 0] > 0).astype(int) + 2 * (X[:, 1] > 0) + 4 * y
    files, rows = open_files(folder / "X.npy", in_memory=False), []
    for name, model, labels in (
            ("SmSVM", SmSVMClassifier(l2=L2, random_state=0), y),
            ("SmSVM, logistic", SmSVMClassifier(l2=L2, loss="logistic", random_state=0), y),
            ("SmSVM, 8 classes", SmSVMClassifier(l2=L2, tol=1e-3, random_state=0), many),
            ("margin pursuit", MarginPursuitClassifier(l2=L2, trace=False), y)):
        line = [name]
        for given in (X, files):
            start = perf_counter()
            model.fit(given, labels)
            line += [perf_counter() - start, model.n_passes_]
        rows.append(line)
    yield table(f"Whole fits of {ROWS:,} x {COLUMNS}", ["fit", "memory, s", "passes", "file, s", "passes"], rows)


def working_set(folder, options):
    data, rows = load("covtype", folder=options.data), []
    X, path = scale(data.X.astype(np.float32)), folder / "covtype.npy"
    y = data.y == np.unique(data.y)[1]
    for l2 in (1e-3, 1e-5, 1e-7):
        passes = []
        for seed in range(options.seeds):
            order = np.random.default_rng(4000 + seed).permutation(len(X)) if seed % 2 else slice(None)
            np.save(path, X[order])
            model = SmSVMClassifier(l2=l2, random_state=4000 + seed, max_passes=60)
            found = []
            for given in (X[order], open_files(path, in_memory=False)):
                with patch.object(cost, "WORKING_SET_FROM_ROWS", np.inf):
                    found.append(model.fit(given, y[order]).n_passes_)
                found.append(model.fit(given, y[order]).n_passes_)
            passes.append(found)
        rows += [[l2, name, *of(passes, axis=0)] for name, of in (("median", np.median), ("worst", np.max))]
    yield table("Covtype, class 2, passes to a certified 1e-4",
                ["l2", "", "memory, none", "memory, working set", "file, none", "file, working set"], rows)


# ---------------------------------------------------------------- a large file, in processes of their own

def searches(folder, options):
    data, rows, grid, tol = load("covtype", folder=options.data), [], np.geomspace(1e-1, 1e-6, 100), 1e-3
    y = data.y == np.unique(data.y)[1]
    for loss in ("hinge", "squared_hinge", "logistic"):
        counted = []
        for seed in range(options.seeds):
            some = np.random.default_rng(seed).permutation(len(y))[:100_000]
            here = scale(data.X[some].astype(float)).astype(np.float32)
            np.save(folder / "some.npy", here)
            there, reads = open_files(folder / "some.npy", in_memory=False), []
            with patch.object(FileSource, "let_go", lambda source, reads=reads: reads.append(source.reads)):
                smsvm_path(there, y[some], l2s=grid, loss=loss, tol=tol)
            search = SmSVMClassifierCV(grid, estimator=SmSVMClassifier(loss=loss, tol=tol))
            counted.append([smsvm_path(here, y[some], l2s=grid, loss=loss, tol=tol).n_passes, sum(reads),
                            search.fit(here, y[some]).n_passes_, search.fit(there, y[some]).n_passes_])
        rows += [[loss, name, *of(counted, axis=0)] for name, of in (("median", np.median), ("worst", np.max))]
    yield table("100,000 rows of covtype, class 2, 100 penalties: reads",
                ["loss", "", "path, memory", "path, file", "search, memory", "search, file"], rows)


def peak():
    """The most memory that this process has had resident, in bytes."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return 1024 * int(line.split()[1])


def train(folder, _):
    start = perf_counter()
    model = SmSVMClassifier(l2=L2, random_state=0)
    model.fit(open_files(folder / "X.npy", in_memory=False), np.load(folder / "y.npy"))
    return {"seconds": perf_counter() - start, "objective": model.objective_[0], "gap": model.duality_gap_[0],
            "passes": model.n_passes_, "resident": peak()}


def descend(folder, goal):
    """Epochs of partial_fit until the objective is within 1e-4 of ``goal``; looking at it is not in the seconds."""
    from sklearn.linear_model import SGDClassifier

    X, y = np.load(folder / "X.npy", mmap_mode="r"), np.load(folder / "y.npy")
    model = SGDClassifier(loss="hinge", alpha=L2, average=True, random_state=0)
    seconds, best, epochs = 0.0, np.inf, 0
    while epochs < EPOCHS and best > goal * (1 + 1e-4):
        start = perf_counter()
        for lo in range(0, len(X), BATCH):
            model.partial_fit(X[lo:lo + BATCH], y[lo:lo + BATCH], classes=[0, 1])
        seconds += perf_counter() - start
        epochs += 1
        w, b = model.coef_[0].astype(np.float32), np.float32(model.intercept_[0])
        loss = sum(float(np.maximum(1 - (2 * y[lo:lo + BATCH] - 1) * (X[lo:lo + BATCH] @ w + b), 0).sum(dtype=float))
                   for lo in range(0, len(X), BATCH))
        best = min(best, L2 / 2 * float(w @ w) + loss / len(X))
    return {"seconds": seconds, "objective": best, "epochs": epochs, "resident": peak()}


def in_a_process(work, folder, goal=0.0):
    done = subprocess.run([sys.executable, __file__, "--child", work, "--folder", str(folder), "--goal", repr(goal)],
                          capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def large(options):
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder, start = Path(name), perf_counter()
        make(folder, options.rows)
        size = (folder / "X.npy").stat().st_size / 1e9
        title = f"{options.rows:,} x {COLUMNS} float32, {size:.1f} GB, made in {perf_counter() - start:.0f} s"
        ours = in_a_process("train", folder)
        theirs = in_a_process("descend", folder, ours["objective"])
        over = theirs["objective"] / ours["objective"] - 1
        yield table(title, ["method", "s", "objective", "gap", "reads", "resident GB"], [
            ["SmSVMClassifier", ours["seconds"], f"{ours['objective']:.7f}", f"{ours['gap']:.1e} certified",
             ours["passes"], ours["resident"] / 1e9],
            ["SGDClassifier.partial_fit", theirs["seconds"], f"{theirs['objective']:.7f}", f"{over:.1e} above",
             theirs["epochs"], theirs["resident"] / 1e9]])


PARTS = {"evaluations": evaluations, "chunks": chunks, "fits": fits, "working_set": working_set,
         "searches": searches, "large": large}


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=PARTS, action="append")
    parser.add_argument("--rows", type=int, default=LARGE)
    parser.add_argument("--folder")
    parser.add_argument("--data")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--child", choices=("train", "descend"), help=argparse.SUPPRESS)
    parser.add_argument("--goal", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        print(json.dumps({"train": train, "descend": descend}[options.child](Path(options.folder), options.goal)))
        return
    print(heading(2))
    parts = options.part or ["evaluations", "chunks", "fits"]
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        if {"evaluations", "chunks", "fits"} & set(parts):
            make(Path(name), ROWS)
        for part in parts:
            for text in PARTS[part](options) if part == "large" else PARTS[part](Path(name), options):
                print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
