"""Fits on one and on two threads, alone and beside other busy programs: what threads that wait cost, and the bits.

    python asv_benches/compare_neighbours.py [--busy N] [--repeat 7] [--fits NAME ...] [--data FOLDER]

N programs that never sleep, by default as many as this process may use processors, run beside the second half of the
fits. Seconds are medians. A fit on two threads beside others is to take at most half as long again as on one.
--data FOLDER adds class 2 of covtype and 20,000 digits of mnist to fits of made-up rows.
"""

import argparse
import subprocess
import sys
import warnings
from contextlib import contextmanager
from time import perf_counter

import numpy as np
from sklearn.preprocessing import normalize, scale

from cmargin import MarginPursuitClassifier, SLNDClassifier, SmSVMClassifier
from cmargin._runtime.fit_slots import cores
from cmargin.datasets import load
from measure.report import table

THREADS = 1, 2


def made_up(n, m, n_classes, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, m), dtype=np.float32)
    scores = X @ rng.standard_normal((m, n_classes)) + 0.7 * m ** 0.5 * rng.standard_normal((n, n_classes))
    return X, scores.argmax(axis=1)


def fits(folder):
    """Name, estimator, X, y."""
    X, y = made_up(200_000, 18, 2, 0)
    yield "SmSVM, hinge, 200,000 x 18", SmSVMClassifier(), X, y
    yield "SmSVM, logistic, 200,000 x 18", SmSVMClassifier(loss="logistic"), X, y
    yield "SmSVM, squared hinge, 200,000 x 18", SmSVMClassifier(loss="squared_hinge"), X, y
    yield "margin pursuit, 200,000 x 18", MarginPursuitClassifier(l2=1e-4, trace=False), X, y
    X, y = made_up(20_000, 200, 10, 1)
    yield "SmSVM, ten classes, 20,000 x 200", SmSVMClassifier(tol=1e-3), X, y
    yield "SLND, ten classes, 20,000 x 200", SLNDClassifier(random_state=0), X, y
    yield "SLND with l2, ten classes, 20,000 x 200", SLNDClassifier(l2=1e-4), X, y
    yield "SLND, one-vs-rest, 20,000 x 200", SLNDClassifier(loss="logistic", max_passes=10, random_state=0), X, y
    X, y = made_up(1_000, 20, 3, 2)
    yield "SmSVM, three classes, 1,000 x 20", SmSVMClassifier(), X, y
    if folder:
        data = load("covtype", folder=folder)
        yield ("SmSVM, hinge, covtype, 100,000 rows", SmSVMClassifier(), scale(data.X[:100_000].astype(np.float32)),
               data.y[:100_000] == np.unique(data.y)[1])
        data = load("mnist", folder=folder)
        yield ("SLND, mnist, 20,000 rows", SLNDClassifier(random_state=0),
               normalize(data.X[:20_000].astype(np.float32)), data.y[:20_000])


@contextmanager
def busy_programs(n):
    programs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(n)]
    try:
        yield
    finally:
        for program in programs:
            program.kill()
            program.wait()


def median_seconds(model, X, y, repeat):
    """By number of threads; and whether the weights were the same to the bit. The fits take turns."""
    seconds, coefs = {n: [] for n in THREADS}, []
    for number in range(repeat + 1):                   # the first is not counted
        for n in THREADS:
            start = perf_counter()
            model.set_params(n_jobs=n).fit(X, y)
            if number:
                seconds[n].append(perf_counter() - start)
            coefs.append(model.coef_)
    return [float(np.median(seconds[n])) for n in THREADS], all(np.array_equal(coefs[0], coef) for coef in coefs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--busy", type=int, default=cores())
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--fits", nargs="+", default=[""], help="names begin with one of these")
    parser.add_argument("--data")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for name, model, X, y in fits(options.data):
        if not name.startswith(tuple(options.fits)):
            continue
        alone, same = median_seconds(model, X, y, options.repeat)
        with busy_programs(options.busy):
            beside, same_too = median_seconds(model, X, y, options.repeat)
        rows.append([name, *alone, *beside, beside[1] / beside[0], "yes" if same and same_too else "NO"])
    print(table(f"Seconds alone, and beside {options.busy} busy programs",
                ["fit", "1 thread", "2 threads", "beside: 1", "beside: 2", "2 / 1", "same bits"], rows))


if __name__ == "__main__":
    main()
