"""Fits over two Dask workers of one thread each, beside one process of two threads; and dask-ml's logistic regression.

    python asv_benches/compare_dask.py [--rows N] [--partitions P] [--fits N] [--seconds S] [--quick]
    python asv_benches/compare_dask.py --slnd mnist --data FOLDER

Generated rows of 54 columns, made on the workers and kept there; the same rows in memory. Fits take turns after one
each that is not counted. Printed: the least and the median seconds of a fit, what an evaluation took over workers, and
of dask-ml, where it is installed, the seconds of one pass by solvers of its LogisticRegression, in fits of at least
--seconds: a gradient counts as a pass, with what else is read for it. ``--quick`` takes few rows, to see that it runs.
``--slnd``: instead, seconds of three passes of SLND over 4 and 20 partitions of that set, in a random order and by
class. Needs dask and distributed.
"""

import argparse
import logging
import os
import warnings
from time import perf_counter

import dask
import dask.array as da
import numpy as np
from compare_ranks import split_of
from distributed import Client, LocalCluster, wait

from cmargin import MarginPursuitClassifier, SLNDClassifier, SmSVMClassifier
from cmargin.data.shards.workers.source import WorkerSource
from measure.report import heading, table

COLUMNS = 54
MODELS = {"SmSVM, hinge": lambda: SmSVMClassifier(random_state=3),
          "SmSVM, logistic": lambda: SmSVMClassifier(loss="logistic", random_state=3),
          "margin pursuit": lambda: MarginPursuitClassifier(l2=1e-3, trace=False)}
SOLVERS = ("newton", "lbfgs", "gradient_descent")       # "admm" reads as often as it likes within a task


def part(k, n):
    """Rows of partition k, columns of uneven scale, and noisy labels."""
    rng = np.random.default_rng([7, k])
    X = rng.standard_normal((n, COLUMNS)) * np.linspace(2, 0.3, COLUMNS)
    w = np.random.default_rng(7).standard_normal(COLUMNS)
    return X, np.where(X @ w + 5 * rng.standard_normal(n) > 0, 1, -1)


def collections(n_rows, n_parts):
    """Dask arrays of rows and labels, a block a partition."""
    n = n_rows // n_parts
    parts = [dask.delayed(part, nout=2)(k, n) for k in range(n_parts)]
    return [da.concatenate([da.from_delayed(one[which], (n, COLUMNS)[:2 - which], (float, int)[which])
                            for one in parts]) for which in (0, 1)]


def seconds_of(make, X, y):
    begun = perf_counter()
    model = make().fit(X, y)
    return perf_counter() - begun, model


def fits(X, y, there, labels, n_fits):
    rows, evaluations = [], []
    real = WorkerSource.send

    def send(self):
        real(self)
        evaluations.append(any(question.name == "evaluate" for question in self.asked))

    WorkerSource.send = send
    for name, make in MODELS.items():
        here, over = [], []
        for _ in range(n_fits + 1):
            here.append(seconds_of(make, X, y))
            evaluations.clear()
            over.append(seconds_of(make, there, labels))
        one, other = (np.array([seconds for seconds, _ in found[1:]]) for found in (here, over))
        differ = np.abs(here[-1][1].coef_ - over[-1][1].coef_).max()
        rows.append([name, *(f"{found.min():.2f} / {np.median(found):.2f}" for found in (one, other)),
                     f"{other.min() / one.min():.2f}", f"{np.median(other) / np.median(one):.2f}",
                     f"{here[-1][1].n_passes_:.2f}", f"{over[-1][1].n_passes_:.2f}", len(evaluations), sum(evaluations),
                     f"{differ:.0e}"])
    WorkerSource.send = real
    return rows


def reads_of_dask_ml(there, labels, limit):
    """Seconds of a pass by each solver of dask-ml; or why there are none."""
    try:
        from dask_glm.families import Logistic
        from dask_ml.linear_model import LogisticRegression
    except ImportError as error:
        return None, f"dask-ml is not installed: {error}"
    rows, y, gradient = [], (labels > 0).astype(int).persist(), Logistic.gradient
    wait(y)
    for solver in SOLVERS:
        calls = []

        def counted(*arguments, calls=calls):
            calls.append(1)
            return gradient(*arguments)

        Logistic.gradient = staticmethod(counted)
        begun, iterations = perf_counter(), 1
        try:
            while perf_counter() - begun < limit:
                LogisticRegression(solver=solver, max_iter=iterations, fit_intercept=False).fit(there, y)
                iterations *= 2
            seconds = perf_counter() - begun
            rows.append([solver, len(calls), f"{seconds:.1f}", f"{seconds / len(calls):.2f}"])
        except Exception as error:
            rows.append([solver, len(calls), "-", f"fails: {type(error).__name__}: {str(error)[:60]}"])
    Logistic.gradient = staticmethod(gradient)
    return rows, None


def pass_seconds(there, labels):
    """Seconds of a pass of the logistic loss here, all counted: a fit without a subset over its evaluations."""
    seconds, model = min((seconds_of(lambda: SmSVMClassifier(loss="logistic", subset_growth=None), there, labels)
                          for _ in range(3)), key=lambda found: found[0])
    return seconds / model.n_passes_


def slnd(client, name, folder):
    """Seconds of SLND's fits by partitions, and how rows lie."""
    X, _, y, _ = split_of(name, folder)
    rows, mixed = [], np.random.default_rng(0).permutation(len(y))
    for how, order in (("random", mixed), ("by class", mixed[np.argsort(y[mixed], kind="stable")])):
        for n_parts in (4, 20):
            chunks = tuple(len(part) for part in np.array_split(order, n_parts))
            there, labels = (client.persist(da.from_array(one[order], chunks=(chunks, *one.shape[1:])))
                             for one in (X, y))
            wait([there, labels])
            for loss in ("multinomial", "logistic"):
                seconds = [seconds_of(lambda loss=loss: SLNDClassifier(loss=loss, max_passes=3, random_state=0), there,
                                      labels)[0] for _ in range(2)]
                rows.append([how, n_parts, loss, f"{min(seconds):.1f}"])
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--partitions", type=int, default=8)
    parser.add_argument("--fits", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--slnd", metavar="SET")
    parser.add_argument("--data", metavar="FOLDER", default=os.environ.get("CMARGIN_DATA"))
    args = parser.parse_args()
    if args.quick:
        args.rows, args.fits, args.seconds = 8000, 1, 0.01
    warnings.simplefilter("ignore")
    logging.getLogger("distributed").setLevel(logging.ERROR)
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0")
    with cluster, Client(cluster) as client:
        if args.slnd:
            print(heading(2))
            print(table(f"Seconds of three passes of SLND over {args.slnd}, the less of two fits",
                        ("rows", "partitions", "loss", "s"), slnd(client, args.slnd, args.data)))
            return
        there, labels = client.persist(collections(args.rows, args.partitions))
        wait([there, labels])
        made = [part(k, args.rows // args.partitions) for k in range(args.partitions)]
        X, y = (np.concatenate(parts) for parts in zip(*made, strict=True))
        del made
        print(heading(2))
        print(table(f"Seconds of a fit, {len(y)} x {COLUMNS}, {args.partitions} partitions",
                    ("", "2 threads: least / median", "2 workers", "ratio of least", "of medians", "passes",
                     "passes of workers", "rounds", "with evaluations", "coef_ differ by"),
                    fits(X, y, there, labels, args.fits)))
        del X, y
        rows, missing = reads_of_dask_ml(there, labels, args.seconds)
        if missing:
            print(missing)
            return
        print(table(f"dask-ml's LogisticRegression; a pass of SmSVM's here, of a whole fit: "
                    f"{pass_seconds(there, labels):.2f} s", ("solver", "passes", "seconds", "seconds a pass"), rows))


if __name__ == "__main__":
    main()
