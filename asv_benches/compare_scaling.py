"""The cost model of doc/scaling.md: its constants measured, fits over 1 to 3 ranks beside it, and drawn to 1,000 ranks.

    python asv_benches/compare_scaling.py [--ranks 1,2,3] [--quick] [--figure scaling.png] [--latency S] [--rate B]

Ranks are processes of one core each under mpiexec; all measure the constants of the rows at the same time, so that they
are those of a machine whose ranks are all at work. ``--latency`` and ``--rate``, seconds and bytes a second between
machines, are assumed, not measured. Needs mpi4py, mpiexec in PATH, and matplotlib for the figure.
"""

import argparse
import json
import os
import pickle
import subprocess
import sys
import warnings
from dataclasses import replace
from time import perf_counter

import numpy as np
from benchmarks.common import gaussian_classes, noisy_plane
from scipy.optimize import nnls
from sklearn.exceptions import ConvergenceWarning

from cmargin import MarginPursuitClassifier, SLNDClassifier, SmSVMClassifier
from cmargin.data import open_rows
from cmargin.data.loss import Loss
from cmargin.data.shards import mpi
from cmargin.data.shards import row_pass as sharded
from cmargin.data.source import SINGLE_BLOCK
from measure import scaling
from measure.report import heading, table
from measure.scaling import Fit, Machine

CURVED = 6                     # its place among the sums of an evaluation
# by which the constants are found: rows and columns, 40 to 60 MB each, as rows of a fit do not stay in caches
SHAPES = ((640_000, 15), (400_000, 31), (240_000, 63), (100_000, 127), (40_000, 255))
WIDE = 10.0                                      # a width of the hinge at which every row has curvature
N_ROWS, N_FEATURES = 400_000, 54                 # of the fits that the model is held to,
SLND_SHAPE = (40_000, 64, 50)                    # and of SLND's: rows, columns, classes
SIZES = (25_000, 100_000, 400_000, 1_600_000)    # rows of the fits whose questions are counted
QUICK = 20                                       # by which --quick divides rows
PINGS = (128, 16_384, 1_048_576)                 # bytes
FITS = {"SmSVM": (SmSVMClassifier, {"l2": 1e-4}), "SmSVM, logistic": (SmSVMClassifier, {"loss": "logistic"}),
        "margin pursuit": (MarginPursuitClassifier, {"l2": 1e-3, "trace": False})}


# ---------------------------------------------------------------- on every rank


def least(work, repeats=12):
    seconds = []
    for _ in range(repeats):
        begun = perf_counter()
        work()
        seconds.append(perf_counter() - begun)
    return min(seconds)


def row_constants(barrier, scale):
    """Those of `Machine` that rows have, by evaluations of all ranks at several widths; and how well they fit."""
    terms, line = [], []
    for n, m in SHAPES:
        X, y = noisy_plane(n // scale, m, np.float32)
        direction = np.full(m + 1, 1e-6)
        for loss, curved in (("hinge", False), ("hinge", True), ("logistic", False)):
            rows = open_rows(X).row_pass(y, intercept=True, n_threads=1)
            rows.set_loss(Loss(loss))
            rows.start()
            barrier()
            spent = least(lambda rows=rows, d=direction, c=curved: rows.evaluate(d, 1.0, WIDE, WIDE, 0.0, c)) / len(y)
            # divided by the seconds, so that errors are shares of them
            terms.append(np.array([1, m + 1, curved * scaling.triangle(m + 1), loss == "logistic"]) / spent)
        line.append(least(lambda rows=rows: rows.line(0.5, WIDE)) / len(y))
    terms = np.array(terms)
    found = nnls(terms, np.ones(len(terms)))[0]
    return {**dict(zip(("row", "column", "square", "logistic"), found, strict=True)), "line": float(np.median(line)),
            "off": [float(np.min(terms @ found)), float(np.max(terms @ found))]}


def softmax_constant(scale):
    """By another shape than that of the fit it is to predict."""
    n, width, n_classes = 20_000 // scale, 128, 20
    X, y = gaussian_classes(n, width, n_classes)
    model = SLNDClassifier(step_size=1.0, rank=1, max_passes=5, random_state=3, n_jobs=1).fit(X, y)
    return float(np.diff(model.history_["seconds_steps"]).min()) / (n * width * n_classes)


def ping(comm):
    """Seconds of a Bcast and a Reduce together, by their bytes."""
    found = {}
    for n_bytes in PINGS:
        buffer, total, seconds = np.zeros(n_bytes // 8), np.zeros(n_bytes // 8), []
        for _ in range(30):
            comm.Barrier()
            begun = perf_counter()
            comm.Bcast(buffer, root=0)
            comm.Reduce(buffer, total if comm.rank == 0 else None, root=0)
            seconds.append(perf_counter() - begun)
        found[n_bytes] = float(np.median(seconds))
    return found


class Counted:
    """What rank 0 asks during a fit: kinds, rows, curvature, seconds."""

    def __init__(self):
        self.counts = dict.fromkeys(("curved", "reads", "line", "evaluations", "blocks", "lines", "products", "calls"),
                                    0)
        self.seconds = 0.0
        self.real, self.call = mpi.RankSource.ask, mpi.RankSource.call

    def __enter__(self):
        counted = self

        def ask(source, kind, key, asked, n_columns):
            begun = perf_counter()
            received = counted.real(source, kind, key, asked, n_columns)
            counted.seconds += perf_counter() - begun
            counted.note(kind, source.shares.get(key, 1.0), asked.get("with_hessian"), received, source.n_rows)
            return received

        real_learn = self.learn = sharded.ShardedPass.learn

        def learn(rows, abouts):
            real_learn(rows, abouts)
            vars(rows.source).setdefault("shares", {})[rows.key] = rows.share

        def call(source, *arguments):
            counted.counts["calls"] += 1
            return counted.call(source, *arguments)

        mpi.RankSource.ask, mpi.RankSource.call, sharded.ShardedPass.learn = ask, call, learn
        return self

    def __exit__(self, *error):
        mpi.RankSource.ask, mpi.RankSource.call, sharded.ShardedPass.learn = self.real, self.call, self.learn

    def note(self, kind, share, block, received, n_rows):
        found = self.counts
        if kind == "line":
            found["line"] += share
            found["lines"] += 1
            return
        found["reads"] += share
        found["evaluations" if kind == "evaluate" else "products"] += 1
        if block in (True, SINGLE_BLOCK):
            found["blocks"] += 1
            found["curved"] += received[CURVED] / n_rows


def main_of_rank(task):
    from mpi4py import MPI
    comm, scale = MPI.COMM_WORLD, task["scale"]
    rank, size = comm.Get_rank(), comm.Get_size()
    warnings.simplefilter("ignore", ConvergenceWarning)
    received = {"rows": row_constants(comm.Barrier, scale), "ping": ping(comm), "fits": {}}
    comm.Barrier()
    received["softmax"] = softmax_constant(scale)
    X, y = noisy_plane(N_ROWS // scale, N_FEATURES, np.float32)
    mine = np.array_split(np.arange(len(y)), size)[rank]
    X, y = np.ascontiguousarray(X[mine]), y[mine]
    for name, (kind, settings) in FITS.items():
        runs = []
        for _ in range(12):
            found = Counted()
            comm.Barrier()
            begun = perf_counter()
            with found:
                kind(n_jobs=1, **settings).fit(X, y, comm=comm)
            runs.append((perf_counter() - begun, found.seconds))
        seconds, asked = np.min(runs, axis=0)
        received["fits"][name] = {"seconds": seconds, "asked": asked, "counts": found.counts}
    few = SmSVMClassifier(n_jobs=1)
    with Counted() as found:
        few.fit(X[:20], y[:20], comm=comm)                         # next to no rows: what a question costs besides
    questions = sum(found.counts[name] for name in ("evaluations", "lines", "products"))
    text = pickle.dumps(np.arange(765))                              # counts below the pivots, the longest answers
    received["answer"] = least(lambda: [pickle.loads(text) for _ in range(1000)]) / 1000
    received["question"] = found.seconds / max(1, questions)
    X, y = gaussian_classes(SLND_SHAPE[0] // scale, *SLND_SHAPE[1:])
    mine = np.array_split(np.arange(len(y)), size)[rank]
    model = SLNDClassifier(step_size=1.0, rank=1, max_passes=12, random_state=3, n_jobs=1)
    model.fit(X[mine], y[mine], comm=comm)
    received["slnd"] = float(np.diff(model.history_["seconds"])[1:].min())
    if rank == 0:
        print(json.dumps(received), flush=True)


# ---------------------------------------------------------------- here


class Alone:
    """A communicator of one rank."""

    def Get_rank(self):
        return 0

    def Get_size(self):
        return 1

    def Bcast(self, buffer, root=0):
        pass

    def Reduce(self, part, total, root=0):
        total[...] = part

    def Gather(self, part, every, root=0):
        every[...] = part


def counts_by_rows(sizes):
    """What fits of more and more rows ask for: whether counts grow with the rows."""
    rows, last = [], {}
    for name, (kind, settings) in FITS.items():
        for n in sizes:
            X, y = noisy_plane(n, N_FEATURES, np.float32)
            with Counted() as found:
                kind(**settings).fit(X, y, comm=Alone())
            last[name] = found.counts
            rows.append([name, n, *(float(value) for value in found.counts.values())])
    return rows, last


def measured(size, scale):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = ["mpiexec", "-n", str(size), sys.executable, __file__, "--rank", json.dumps({"scale": scale})]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    return json.loads(done.stdout.splitlines()[-1])


def machine_of(received, size):
    """The `Machine` that ranks measured; messages by the pings of the smallest and the largest."""
    hops = 2 * max(1.0, float(scaling.depth(size)))
    small, large = received["ping"][str(PINGS[0])], received["ping"][str(PINGS[-1])]
    rows = received["rows"]
    return Machine(rows["row"], rows["column"], rows["square"], rows["line"], received["softmax"], received["question"],
                   received["answer"], small / hops, (large - small) / hops / PINGS[-1])


def beside_the_model(received, n_rows):
    """Rows of the table of predicted and measured seconds; received: by the number of ranks."""
    rows = []
    for size, found in received.items():
        machine = machine_of(found, size)
        for name, fit in found["fits"].items():
            own = replace(machine, row=machine.row + found["rows"]["logistic"] * ("logistic" in name))
            terms = scaling.sums_fit(own, Fit(**fit["counts"]), n_rows, N_FEATURES, size)
            rows.append([name, size, terms.rows, terms.alone, terms.latency + terms.bytes, terms.total, fit["asked"],
                         terms.total / fit["asked"], fit["seconds"]])
        terms = scaling.slnd_pass(machine, n_rows * SLND_SHAPE[0] // N_ROWS, SLND_SHAPE[2], SLND_SHAPE[1], size)
        rows.append(["SLND, a pass", size, terms.rows, terms.alone, terms.latency + terms.bytes, terms.total,
                     found["slnd"], terms.total / found["slnd"], found["slnd"]])
    return rows


# ---------------------------------------------------------------- on paper

RANKS = tuple(2**k for k in range(11))
ROWS = 10**9


def on_paper(machine, counts):
    """{what: `Terms` by RANKS} of ROWS rows, on one core a rank."""
    smsvm, pursuit = Fit(**counts["SmSVM"]), Fit(**counts["margin pursuit"])
    fits = {
        "SmSVM, 54 columns": (smsvm, N_FEATURES, 1), "SmSVM, 100 classes": (smsvm, N_FEATURES, 100),
        "SmSVM, 2,000 columns": (smsvm, 2000, 1), "margin pursuit, 54 columns": (pursuit, N_FEATURES, 1),
    }
    found = {name: [scaling.sums_fit(machine, fit, ROWS, m, size, problems) for size in RANKS]
             for name, (fit, m, problems) in fits.items()}
    found["SLND, multinomial: a pass, 1,000 classes x 512"] = [
        scaling.slnd_pass(machine, ROWS, 1000, 512, size) for size in RANKS]
    found["the same, averaged after every batch"] = [
        scaling.slnd_pass(machine, ROWS, 1000, 512, size, ROWS / size / 128) for size in RANKS]
    found["SLND, one-vs-rest: a pass, if classes were divided"] = [
        scaling.one_vs_rest_pass(machine, ROWS, 1000, 512, size) for size in RANKS]
    return found


def table_on_paper(found):
    rows = []
    for name, terms in found.items():
        for size in (1, 16, 128, 1024):
            at = terms[RANKS.index(size)]
            rows.append([name, size, *(f"{value:.3g}" for value in (at.rows, at.alone, at.latency, at.bytes, at.total)),
                         f"{terms[0].total / at.total:.0f}", scaling.speed_up_ends(terms, RANKS) or "beyond 512"])
    return table(f"On paper: seconds of {ROWS:g} rows", ("what", "ranks", "rows", "rank 0 alone", "latency", "bytes",
                                                         "all", "times quicker", "ends at"), rows)


def draw(found, path):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    figure, axes = plt.subplots(2, 4, figsize=(15, 7), sharex=True, layout="constrained")
    axes[1, 3].remove()                          # seven panels
    for axis, (name, terms) in zip(axes.flat[:len(found)], found.items(), strict=True):
        for part, label, colour in (("total", "all", "black"), ("rows", "rows", "tab:blue"), ("alone", "rank 0 alone",
                                    "tab:red"), ("latency", "latency", "tab:orange"), ("bytes", "bytes", "tab:green")):
            values = np.array([getattr(term, part) for term in terms])
            axis.loglog(RANKS, np.where(values > 0, values, np.nan), label=label, color=colour,
                        linewidth=2.5 if part == "total" else 1.3, zorder=1 if part == "total" else 2)
        axis.set_title(name.replace(": a pass, ", ":\na pass, "), fontsize=10)
        axis.set_ylim(bottom=max(1e-4, axis.get_ylim()[0]))
        axis.grid(alpha=0.3)
        axis.minorticks_off()                    # drawn twice, they took most of the script's time
    for axis in axes[1, :3]:
        axis.set_xlabel("ranks")
    for axis in axes[:, 0]:
        axis.set_ylabel("seconds")
    axes[0, 0].legend(fontsize=9)
    figure.suptitle(f"{ROWS:,} rows over ranks, by the cost model of doc/scaling.md")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def print_what_was_measured(received, machines, n_rows):
    rows = [[size, *(f"{value:.2e}" for value in vars(machine).values()),
             "{:.2f} to {:.2f}".format(*received[size]["rows"]["off"])] for size, machine in machines.items()]
    print(table("Constants, seconds, all ranks at work, and what the model has of the evaluations they are from",
                ("ranks", *vars(next(iter(machines.values()))), "of an evaluation"), rows))
    rows = [[size, *(1e6 * seconds for seconds in found["ping"].values())] for size, found in received.items()]
    print(table("A Bcast and a Reduce, microseconds", ("ranks", *(f"{n} bytes" for n in PINGS)), rows))
    columns = ("fit", "ranks", "rows", "rank 0 alone", "messages", "all", "measured", "ratio", "seconds of the fit")
    print(table("Questions of a fit: the model's seconds and those measured", columns,
                beside_the_model(received, n_rows)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", default="1,2,3")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--figure", metavar="PNG")
    parser.add_argument("--latency", type=float, default=2e-6)
    parser.add_argument("--rate", type=float, default=12.5e9)
    parser.add_argument("--rank", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.rank:
        main_of_rank(json.loads(args.rank))
        return
    scale = QUICK if args.quick else 1
    warnings.simplefilter("ignore", ConvergenceWarning)
    print(heading(1))
    received = {size: measured(size, scale) for size in map(int, args.ranks.split(","))}
    machines = {size: machine_of(found, size) for size, found in received.items()}
    print_what_was_measured(received, machines, N_ROWS // scale)
    rows, counts = counts_by_rows([n // scale for n in SIZES])
    print(table("What a fit asks for, by its rows", ("fit", "rows", *next(iter(counts.values()))), rows))
    network = scaling.in_network(machines[max(size for size in received if size <= 2)], args.latency, args.rate)
    found = on_paper(network, counts)
    print(f"Messages on paper: {args.latency:g} s and {args.rate:g} bytes/s, assumed.\n")
    print(table_on_paper(found))
    if args.figure:
        draw(found, args.figure)


if __name__ == "__main__":
    main()
