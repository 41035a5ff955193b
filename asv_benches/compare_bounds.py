"""Non-negative weights: ours beside SciPy's L-BFGS-B and, where it is installed, ReHLine.

    python asv_benches/compare_bounds.py [--loss logistic squared_hinge hinge] [--seeds 6000 6020] [--repeat 3]
                                         [--limit 10]

A seed is a set and a penalty of ``compare_products.py``, its ``drawn``. Processor seconds of one thread, the median of
some fits each, taken in turn, without an intercept: ours to a certified 1e-4; theirs until the objective is as near to
the minimum as that, or inf where ``--limit`` seconds did not do. L-BFGS-B, which needs a loss with a slope, is timed
to its first such point, ReHLine, which has no logistic loss, at its largest such tolerance. The minimum is ours at
1e-8.
"""

import argparse
import warnings
from importlib import import_module
from importlib.util import find_spec
from time import process_time

import numpy as np
from compare_products import drawn
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from cmargin import SmSVMClassifier

NEAR = 1e-4
TOLERANCES = 10.0 ** -np.arange(1, 8)
REHLINE = {"hinge": "svm", "squared_hinge": "squared svm"}


class Enough(Exception):
    """The objective is near its minimum, or time is over."""


def losses(loss, z):
    """Mean loss at margins z, and its slope by every margin over the number of rows."""
    if loss == "logistic":
        return np.logaddexp(0, -z).mean(), -1 / (1 + np.exp(np.minimum(z, 700))) / len(z)
    short = np.maximum(0, 1 - z)
    return (short.mean(), None) if loss == "hinge" else ((short * short).mean(), -2 * short / len(z))


def objective(X, sign, w, l2, loss):
    return losses(loss, sign * (X @ w))[0] + l2 / 2 * w @ w


def by_lbfgs(X, sign, l2, loss, target, limit):
    """Seconds until the objective is at most ``target``."""
    begin = process_time()

    def value(w):
        mean, slope = losses(loss, sign * (X @ w))
        found = mean + l2 / 2 * w @ w
        if found <= target or process_time() - begin > limit:
            raise Enough(found <= target)
        return found, X.T @ (slope * sign) + l2 * w

    m = X.shape[1]
    try:
        minimize(value, np.zeros(m), jac=True, method="L-BFGS-B", bounds=[(0, None)] * m,
                 options={"maxiter": 10**6, "maxfun": 10**7, "ftol": 0, "gtol": 0})
    except Enough as end:
        return process_time() - begin if end.args[0] else np.inf
    return np.inf


def by_rehline(X, sign, l2, loss, target, limit, tol=None):
    """Seconds at the largest tolerance at which the objective is at most ``target``, and that tolerance."""
    package, C = import_module("rehline"), 1 / (l2 * len(sign))
    X = np.asarray(X.todense() if hasattr(X, "todense") else X, np.float64)
    for one in TOLERANCES if tol is None else [tol]:
        begin = process_time()
        model = package.plqERM_Ridge(loss={"name": REHLINE[loss]}, constraint=[{"name": "nonnegative"}], C=C, tol=one,
                                     max_iter=10**6)
        model.fit(X, sign)
        took = process_time() - begin
        w = np.maximum(model.coef_, 0)           # which it may leave by its tolerance
        if objective(X, sign, w, l2, loss) <= target:
            return took, one
        if took > limit:
            break
    return np.inf, None


def compare(seed, loss, options):
    """Name of the set, seconds of ours, of L-BFGS-B and of ReHLine, medians, and the part of the weights at 0."""
    name, X, y, (C, _) = drawn(seed)
    sign, l2 = np.where(y, 1.0, -1.0), 1 / (C * len(y))
    given = {"l2": l2, "loss": loss, "lower": 0, "fit_intercept": False, "n_jobs": 1}
    best = SmSVMClassifier(tol=1e-8, **given).fit(X, y)
    target, took, tol = best.objective_[0] * (1 + NEAR), {"ours": [], "L-BFGS-B": [], "ReHLine": []}, None
    for turn in range(options.repeat):
        begin = process_time()
        model = SmSVMClassifier(tol=NEAR, **given).fit(X, y)
        took["ours"].append(process_time() - begin)
        if objective(X, sign, model.coef_[0], l2, loss) > target * (1 + 1e-12):
            name += " ours is short"
        if loss != "hinge":
            took["L-BFGS-B"].append(by_lbfgs(X, sign, l2, loss, target, options.limit))
        if loss in REHLINE and find_spec("rehline") and (turn == 0 or tol is not None):
            seconds, tol = by_rehline(X, sign, l2, loss, target, options.limit, tol)
            took["ReHLine"].append(seconds)
    held = float((best.coef_ == 0).mean())
    return f"{name}, C={C:g}", [float(np.median(seconds)) if seconds else np.nan for seconds in took.values()], held, \
        model.n_passes_


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loss", nargs="+", default=["logistic", "squared_hinge", "hinge"])
    parser.add_argument("--seeds", nargs=2, type=int, default=[6000, 6020])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--limit", type=float, default=10)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        for loss in options.loss:
            ratios = []
            for seed in range(*options.seeds):
                name, (ours, lbfgs, rehline), held, reads = compare(seed, loss, options)
                ratios.append((lbfgs / ours, rehline / ours))
                print(f"{loss} {seed} {name}: {held:.0%} at 0, ours {ours:.4f} s, {reads:.0f} reads; L-BFGS-B "
                      f"{lbfgs:.4f}, {lbfgs / ours:.1f} times that; ReHLine {rehline:.4f}, {rehline / ours:.1f}",
                      flush=True)
            for who, each in zip(("L-BFGS-B", "ReHLine"), np.array(ratios).T, strict=True):
                each = each[~np.isnan(each)]
                if len(each):
                    print(f"{loss}: {who} took {np.median(each):.1f} times ours in the median of {len(each)}, "
                          f"{each.min():.2f} at least; {int((each >= 5).sum())} sets at 5 or more")


if __name__ == "__main__":
    main()
