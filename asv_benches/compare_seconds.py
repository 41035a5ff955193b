"""Seconds of SLND's defaults to multinomial lbfgs' best test accuracy less 0.3 points, and SGD's to its own best.

    python asv_benches/compare_seconds.py --data FOLDER [--sets mnist,tinyimagenet] [--solvers SLND,lbfgs,SGD]
        [--sgd 1e-6,1e-5,1e-4,1e-6:mean,1e-5:mean,1e-4:mean] [--limit 60] [--seed 1] [--processor]

FOLDER holds the sets, NAME.npz; rows are float32 and get length 1, the seconds of which are in every figure. Every
model is looked at on the test rows after each pass, epoch or iteration while its clock stands still. Before each of
them two gigabytes are touched: memory that the host of a virtual machine has taken back, as it does where nobody has
used it for a while, takes ten times as long to fill. lbfgs has C = 1, 10, 100, 1000 and 60 iterations, the best on the
very test rows; SGD is `SGDClassifier(loss="log_loss")`, one-vs-rest,
for --limit seconds a setting, `:mean` averaged. Without lbfgs among --solvers its level may be given: --level.
--processor takes the processor's seconds, on one thread with OPENBLAS_NUM_THREADS=1 and --threads 1: on a machine that
does other things too.
"""

import argparse
import time
import warnings

import numpy as np
import sklearn.linear_model._logistic as logistic
from sklearn.linear_model import LogisticRegression

from cmargin.slnd import SLNDClassifier
from race import accuracy, classifiers
from race.accuracy import make_task
from race.classifiers import accuracies, pass_by_pass, sgd
from race.data import read

STRENGTHS, ITERATIONS = (1, 10, 100, 1000), 60
LESS = 0.3
LONG = 1e5                     # seconds: no limit
TOUCHED = 2 << 30              # bytes


def touched():
    """Have memory at hand, as it is on a machine that is no virtual one."""
    np.ones(TOUCHED // 8)


class Linear:
    """What lbfgs has reached."""

    def __init__(self, coef, n_classes, n_features):
        coef = np.reshape(coef, (n_classes, -1), order="F")
        self.W, self.bias = coef[:, :n_features], coef[:, n_features]

    def decision_function(self, X):
        return X @ self.W.T + self.bias


def lbfgs(task, C):
    n_classes, original = int(task.y.max()) + 1, logistic.optimize.minimize

    def fit(after_pass):
        def visit(coef):
            after_pass(Linear(coef, n_classes, task.X.shape[1]))

        logistic.optimize.minimize = lambda *a, **k: original(*a, **{**k, "callback": visit})
        try:
            LogisticRegression(C=C, max_iter=ITERATIONS).fit(task.X, task.y)
        finally:
            logistic.optimize.minimize = original
    touched()
    return pass_by_pass(fit, task, LONG)


def slnd(task, seed, threads):
    def fit(after_pass):
        last = SLNDClassifier(random_state=seed, n_jobs=threads, callback=after_pass).fit(task.X, task.y)
        fit.final = accuracies(last, task)[0]

    touched()
    return pass_by_pass(fit, task, LONG), fit


def sgd_settings(text):
    for setting in text.split(","):
        alpha, _, mean = setting.partition(":")
        yield {"alpha": float(alpha), "average": bool(mean)}


def top(trace):
    return max(point.value[0] for point in trace.points)


def last(trace):
    return trace.points[-1].value[0]


def arrival(trace, level, before):
    found = trace.first(lambda value: value[0] >= level)
    return found and found.seconds + before


def lbfgs_lines(name, task, before):
    """Print what lbfgs reaches; its level, and seconds of the setting that is there first."""
    traces = {C: lbfgs(task, C) for C in STRENGTHS}
    level = max(map(last, traces.values())) - LESS
    there = {C: seconds for C in traces if (seconds := arrival(traces[C], level, before)) is not None}
    quickest = min(there, key=there.get)
    for C, trace in traces.items():
        seconds = trace.longest + before
        print(f"{name}: lbfgs C = {C}: {last(trace):.2f} after {seconds:.1f} s; at best {top(trace):.2f}")
    print(f"  level {level:.2f}: C = {quickest} is there first, in {there[quickest]:.2f} s", flush=True)
    return level, there[quickest]


def compare(name, options):
    split = read(name, options.data)
    touched()
    task, before = make_task(name, split)
    print(f"{name}: rows made ready in {before:.2f} s, which every figure has in it", flush=True)
    slnd(task.small(), 1, options.threads)                                                    # libraries loaded
    solvers, level, quickest = options.solvers.split(","), options.level, None
    if "lbfgs" in solvers:
        level, quickest = lbfgs_lines(name, task, before)
    if "SLND" in solvers:
        trace, fit = slnd(task, options.seed, options.threads)
        ours = arrival(trace, level, before)
        there = "not reached" if ours is None else f"in {ours:.2f} s"
        times = f", {quickest / ours:.1f} times less than lbfgs" if quickest and ours else ""
        print(f"{name}: SLND, seed {options.seed}: level {there}{times}; at its end {fit.final:.2f} after "
              f"{trace.longest + before:.2f} s", flush=True)
    for setting in sgd_settings(options.sgd) if "SGD" in solvers else ():
        touched()
        trace = sgd(task, setting, options.limit, options.threads)
        first = arrival(trace, top(trace), before)
        print(f"{name}: SGD {setting}: its best {top(trace):.2f} after {first:.1f} s of {trace.longest + before:.1f}",
              flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data")
    parser.add_argument("--sets", default="mnist,tinyimagenet")
    parser.add_argument("--solvers", default="SLND,lbfgs,SGD")
    parser.add_argument("--sgd", default="1e-6,1e-5,1e-4,1e-6:mean,1e-5:mean,1e-4:mean")
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--level", type=float, default=100.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--processor", action="store_true")
    options = parser.parse_args()
    if options.processor:
        accuracy.perf_counter = classifiers.perf_counter = time.process_time
    warnings.simplefilter("ignore")                       # 60 iterations are not lbfgs' end
    for name in options.sets.split(","):
        compare(name, options)


if __name__ == "__main__":
    main()
