"""Predictions of many classes beside scikit-learn's LogisticRegression of the same weights, and the machine's limit.

    python asv_benches/compare_predictions.py [--shape 100000 384 1000] [--repeat 5]

Seconds on all threads, medians of calls by turns, and processor time beside them; the limit is one product of the rows
and the weights at the rate that sgemm has here. ``peak``: megabytes of arrays made meanwhile, with what is returned.
"""

import argparse
import time
import tracemalloc

import numpy as np
from sklearn.linear_model import LogisticRegression

from cmargin import SLNDClassifier
from cmargin._core.util._openmp import effective_n_threads
from measure.limits import sgemm_rate


def models(n_features, n_classes, rng):
    """Ours and scikit-learn's, of the same weights."""
    coef = rng.standard_normal((n_classes, n_features), np.float32)
    intercept = rng.standard_normal(n_classes, np.float32)
    ours, theirs = SLNDClassifier(), LogisticRegression()
    for model in (ours, theirs):
        model.coef_, model.intercept_, model.classes_ = coef, intercept, np.arange(n_classes)
        model.n_features_in_ = n_features
    ours.loss_ = "multinomial"
    return {"ours": ours, "scikit-learn": theirs}


def megabytes(call):
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", nargs=3, type=int, default=[100_000, 384, 1000], help="rows, columns, classes")
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    n, m, k = options.shape
    rng = np.random.default_rng(0)
    X, pair = rng.standard_normal((n, m), np.float32), models(m, k, rng)
    limit = 2 * n * m * k / sgemm_rate(effective_n_threads(None))
    print(f"{n:,} x {m}, {k:,} classes, float32: product at the rate of sgemm {limit:.3f} s")
    for method in ("predict", "predict_proba"):
        calls = {name: getattr(model, method) for name, model in pair.items()}
        wall, busy = {name: [] for name in calls}, {name: [] for name in calls}
        for _ in range(options.repeat):
            for name, call in calls.items():
                begin, used = time.perf_counter(), time.process_time()
                call(X)
                wall[name].append(time.perf_counter() - begin)
                busy[name].append(time.process_time() - used)
                time.sleep(0.05)                    # threads that wait by spinning are asleep before the next call
        for name, call in calls.items():
            print(f"{method:>14} {name:>13}: {np.median(wall[name]):.3f} s, {np.median(wall[name]) / limit:.2f} of the "
                  f"limit, processors {np.median(busy[name]):.3f} s, peak {megabytes(lambda: call(X)):,.0f} MB")  # noqa: B023
        print(f"{method:>14} ratio: {np.median(wall['ours']) / np.median(wall['scikit-learn']):.2f}")


if __name__ == "__main__":
    main()
