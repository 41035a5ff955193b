"""SLND and BSN against the machine's limits: seconds of a pass, how they grow, peak memory; prints ratios.

    python asv_benches/compare_slnd.py --data FOLDER [--threads 2] [--only pass,softmax,scaling,memory]

FOLDER holds `load.py` and the set `tinyimagenet`. The race against SGD and others, preparation of the rows included, is

    CMARGIN_DATA=FOLDER python -m cmargin race --task accuracy --data tinyimagenet mnist --time-limit 60
"""

import argparse
import resource
import sys
from functools import partial

import numpy as np
from sklearn.preprocessing import normalize

from cmargin import SLNDClassifier
from cmargin.data import open_rows
from cmargin.solvers.per_class import class_streams
from cmargin.solvers.sgd.class_lists import ClassLists
from cmargin.solvers.sgd.class_passes import ClassPasses
from cmargin.solvers.sgd.class_weights import ClassWeights
from cmargin.solvers.sgd.low_rank import build_inverse
from cmargin.solvers.sgd.multinomial_choice import batch_size
from cmargin.solvers.sgd.softmax_passes import SoftmaxPasses
from cmargin.solvers.sgd.softmax_weights import SoftmaxWeights
from measure.limits import best_of, memory_rate, sgemm_rate
from measure.report import exponent, peak_beyond


def read_set(name, folder, dtype=np.float32):
    sys.path.insert(0, folder)
    from load import load

    X, y, X_test, y_test = load(name)
    return normalize(X.astype(dtype)), y.astype(int), normalize(X_test.astype(dtype)), y_test.astype(int)


def indicator(y):
    import scipy.sparse as sp

    return sp.csc_matrix((np.ones(len(y), np.int8), (np.arange(len(y)), y)))


def one_pass(Z, source, inverse, lists, threads):
    """Median and best seconds of a warm pass."""
    source.n_threads = threads
    weights = ClassWeights.start(inverse, lists.n_classes, Z.dtype, True)
    runner = ClassPasses(source, lists, None, "logistic", class_streams(3, lists.n_classes))
    step, rate = np.full(lists.n_classes, 1e-3), np.ones(1)
    return best_of(lambda: runner.plain(Z, inverse, weights, step, rate), 15)


def passes(folder, threads):
    X, y, *_ = read_set("tinyimagenet", folder)
    source, lists = open_rows(X).stochastic_rows(threads), ClassLists.from_indicator(indicator(y), 1)
    inverse, _ = build_inverse(source, np.arange(4000), np.ones((1, 4000)), 200, "drop")
    Z = source.whiten(inverse)
    n_bytes = int(lists.lengths.sum()) * Z.shape[1] * Z.itemsize
    rate = memory_rate(threads)
    single, _ = one_pass(Z, source, inverse, lists, 1)
    several, median = one_pass(Z, source, inverse, lists, threads)
    steps = lists.lengths.sum()
    print(f"balanced pass, 200 classes, rank 200, float32: {steps} steps, {n_bytes / 1e6:.0f} MB of rows")
    print(f"  memory rate on {threads} threads {rate / 1e9:.1f} GB/s: streaming those rows takes "
          f"{n_bytes / rate * 1e3:.2f} ms")
    print(f"  pass on 1 thread {single * 1e3:.2f} ms, on {threads} threads {several * 1e3:.2f} ms "
          f"(median {median * 1e3:.2f}), {several / steps * 1e9:.0f} ns a step")
    print(f"  ratio to streaming {several * rate / n_bytes:.2f} (at most 2), "
          f"threads gain {single / several:.2f} (at least 1.7)")


def softmax(folder, threads):
    """A multinomial pass over tinyimagenet against the machine's sgemm."""
    X, y, *_ = read_set("tinyimagenet", folder)
    n, n_classes, batch = len(X), 200, batch_size(len(X), False)
    order, seconds = np.random.default_rng(3).permutation(n), {}
    source = open_rows(X).stochastic_rows(threads)
    centre = X[:1000].mean(axis=0, dtype=float)
    inverse, _ = build_inverse(source, np.arange(1000), np.ones((1, 1000)), 2, "scale", None, centre)
    Z, starts = source.whiten(inverse, order), np.arange(0, n, batch)
    for t in (1, threads):
        runner = SoftmaxPasses(source, inverse, Z, order, y[order].astype(np.int64), None, n_classes, batch)
        runner.n_threads = t
        W, bias = np.zeros((n_classes, X.shape[1]), X.dtype), np.zeros(n_classes)
        weights = SoftmaxWeights.start(inverse, W, bias, True, 4)
        step = np.full(len(starts), 1e-4)
        seconds[t], _ = best_of(partial(runner.run, weights, starts, step, 1.0, n), 7)
    flops = 4.0 * n * n_classes * X.shape[1]
    print(f"multinomial pass, {n} x {X.shape[1]}, {n_classes} classes, batches of {batch}, float32:")
    for t in (1, threads):
        rate = sgemm_rate(t)
        print(f"  {t} threads: {seconds[t] * 1e3:.0f} ms, {flops / seconds[t] / 1e9:.0f} Gflop/s, "
              f"{flops / seconds[t] / rate:.0%} of sgemm's {rate / 1e9:.0f} (at least 50 %)")
    print(f"  threads gain {seconds[1] / seconds[threads]:.2f} (at least 1.7)")


def scaling(threads):
    rng = np.random.default_rng(0)

    def seconds(n, classes, rank):
        Z = rng.standard_normal((n, 2 * rank)).astype(np.float32)
        source = open_rows(Z).stochastic_rows(threads)
        lists = ClassLists.from_indicator(indicator(np.arange(n) % classes), None)
        inverse, _ = build_inverse(source, np.arange(min(n, 1000)), np.ones((1, min(n, 1000))), rank, "drop")
        return one_pass(source.whiten(inverse), source, inverse, lists, threads)[1]

    samples, classes, ranks = [5000, 10000, 20000, 40000], [10, 20, 40, 80], [64, 128, 256, 512]
    print("fitted exponents of seconds per pass over all rows (at most 1.1):")
    print(f"  in samples {exponent(samples, [seconds(n, 20, 100) for n in samples]):.2f}, "
          f"classes {exponent(classes, [seconds(10000, c, 100) for c in classes]):.2f}, "
          f"rank {exponent(ranks, [seconds(5000, 20, r) for r in ranks]):.2f}")


def tinyimagenet(folder):
    X, y, *_ = read_set("tinyimagenet", folder)
    slnd({"max_passes": 1, "rank": 5}, X[:400, :50].copy(), y[:400] % 3)     # libraries loaded
    return X, y


def slnd(parameters, X, y):
    SLNDClassifier(random_state=1, **parameters).fit(X, y)


def memory(folder):
    dropped = {"max_passes": 3, "tail": "drop", "rank": 200}
    for parameters, width in (({}, 1812), ({"max_passes": 3}, 1812), (dropped, 200)):
        peak = peak_beyond(partial(tinyimagenet, folder), partial(slnd, parameters))
        whitened, weights = 20000 * width * 4, 4 * 200 * 1812 * 4
        print(f"peak memory beyond X, tinyimagenet {parameters}: {peak / 1e6:.1f} MB = {peak / whitened:.2f} of "
              f"the whitened matrix's {whitened / 1e6:.0f} MB (at most 1.2); with 4 n_classes n_features numbers "
              f"{(whitened + weights) / 1e6:.1f} MB")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", default="pass,softmax,scaling,memory")
    options = parser.parse_args()
    only = options.only.split(",")
    if "pass" in only:
        passes(options.data, options.threads)
    if "softmax" in only:
        softmax(options.data, options.threads)
    if "scaling" in only:
        scaling(options.threads)
    if "memory" in only:
        memory(options.data)
    print(f"peak memory of this run {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.1f} GB")


if __name__ == "__main__":
    main()
