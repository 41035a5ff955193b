"""One-hot rows: nanoseconds that an entry takes a kernel, beside what this machine needs to read it, in one run.

    python asv_benches/compare_one_hot.py [--data FOLDER] [--seed 0] [--repeat 9]

Factors of Zipf levels are drawn, 5 to 30 of them; with ``--data``, one-hot flights and the words of bibtex too, if they
are in the folder. Processor time of one thread, the least of some calls: an evaluation without and with curvature of
all rows, a Hessian-vector product, and five sweeps of the dual over the rows that they visit, at l2 = 1e-4. "stored":
of the same rows with values that are read, all but the last of them one. The limit is the time for the bytes of an
entry, 2 of ones in up to 65,536 columns, at the rate of reading an array larger than any cache in the same run.
"""

import argparse
import sys
from pathlib import Path
from time import process_time

import numpy as np
import scipy.sparse as sp

from cmargin._core.rows._dual_sweeps import DualSweeps
from cmargin._runtime.blas_threads import single_threaded_blas
from cmargin.data import open_rows
from cmargin.data.loss import Loss
from measure.report import table

FACTORS = {"5 factors of 60 levels": (100_000, 5, 60), "9 of 800": (100_000, 9, 800), "12 of 25": (50_000, 12, 25),
           "25 of 12": (50_000, 25, 12), "30 of 10": (50_000, 30, 10)}
MOST_WITH_CURVATURE = 2000       # columns


def one_hot(n, n_factors, n_levels, seed):
    """X, CSR, a one for every factor in every row, and y, which depends on all levels."""
    rng = np.random.default_rng(seed)
    chance = np.arange(1, n_levels + 1) ** -0.7
    levels = rng.choice(n_levels, (n, n_factors), p=chance / chance.sum())
    columns = (levels + n_levels * np.arange(n_factors)).astype(np.int32)
    X = sp.csr_matrix((np.ones(columns.size), columns.ravel(), np.arange(n + 1) * n_factors),
                      shape=(n, n_factors * n_levels))
    score = X @ rng.standard_normal(X.shape[1])
    return X, np.where(score + score.std() * rng.standard_normal(n) > np.median(score), 1.0, -1.0)


def from_folder(folder, seed):
    """One-hot flights, 100,000 of them, and the texts of bibtex with their most frequent label; what is there."""
    sys.path.insert(0, str(folder))
    from load import load, names

    if "hflights" in names():
        X, y = load("hflights", dtype=float)
        some = np.random.default_rng(seed).permutation(X.shape[0])[:100_000]
        yield "flights", X[some], y[some].astype(float)
    if "bibtex" in names():
        X, Y = load("bibtex", dtype=float)[:2]
        label = Y[:, int(np.asarray(Y.sum(axis=0)).argmax())].toarray().ravel()
        yield "bibtex", X.tocsr(), np.where(label > 0, 1.0, -1.0)


def least(call, repeat):
    times = []
    for _ in range(repeat):
        start = process_time()
        call()
        times.append(process_time() - start)
    return min(times)


def memory_rate(repeat):
    """Bytes a second, by processor time as all the rest."""
    x = np.ones(1 << 25)                                   # 256 MB
    return x.nbytes / least(lambda: np.add.reduce(x), repeat)


def sweep(X, y):
    """Seconds for an entry of a row that is visited."""
    rows = open_rows(X).dual_rows(True, False, None, 1e-4, Loss("hinge")).row_pass(y)
    sweeps = DualSweeps(rows, np.zeros(len(y)), np.zeros(X.shape[1] + 1), np.arange(4, dtype=np.uint64) + 1, np.inf)
    start = process_time()
    sweeps.run(5, 1e-12, 1e15, 1e15)
    return (process_time() - start) / (sweeps.rows_read * X.nnz / len(y))


def measured(X, y, repeat):
    """Bytes of an entry, and seconds an entry of the four kernels; None for curvature of too many columns."""
    source = open_rows(X)
    rows = source.row_pass(y / len(y), intercept=True, n_threads=1)
    w = 1e-2 * np.random.default_rng(0).standard_normal(X.shape[1] + 1)
    with single_threaded_blas():
        calls = [lambda: rows.evaluate(w, 1.0, 1.0, 1.0, 0.0, False), lambda: rows.evaluate(w, 1.0, 1.0, 1.0, 0.0),
                 lambda: rows.hessp(w, 1.0)]
        times = [None if k == 1 and X.shape[1] > MOST_WITH_CURVATURE else least(call, repeat) / X.nnz
                 for k, call in enumerate(calls)]
    return source.rows.entry_bytes, *times, min(sweep(X, y) for _ in range(3))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with load.py and the sets")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--repeat", type=int, default=9)
    options = parser.parse_args()
    rate = memory_rate(options.repeat)
    sets = [(name, *one_hot(*shape, options.seed)) for name, shape in FACTORS.items()]
    if options.data:
        sets += from_folder(options.data, options.seed)
    lines = []
    for name, X, y in sets:
        stored = X.copy()
        stored.data[-1] = 2.0                              # so that no value is known without a look
        for kind, A in (("ones", X), ("stored", stored)):
            size, *times = measured(A, y, options.repeat)
            limit = size / rate
            lines.append([f"{name}, {kind}", size, round(1e9 * limit, 2),
                          *("" if t is None else f"{1e9 * t:.2f} ({t / limit:.0f})" for t in times)])
    print(table(f"ns an entry (times the limit), memory read at {rate / 1e9:.1f} GB/s by one thread",
                ["rows", "bytes", "limit", "evaluation", "with curvature", "product", "sweep of the dual"], lines))


if __name__ == "__main__":
    main()
