"""Steps by conjugate gradients that the curvature of a sample preconditions, beside steps by the block of all rows.

    python asv_benches/compare_samples.py [--seeds 84000 84020] [--repeat 2] [--numbers 2e7]

Every seed is a problem of its own: kind of columns, shape (128 to 1,200 columns, 32 to 300 rows each), dtype, loss and
C are drawn. Those of which no sample is taken are left out. Seconds on all threads to a certified 1e-4, the least of
some fits each, taken in turn: ``linear_solver="auto"``, a dual or a subset before it included, and "cholesky".
"""

import argparse
import warnings

import numpy as np
from compare_products import KINDS, seconds

from cmargin import SmSVMClassifier
from cmargin.data.loss import Loss
from cmargin.data.open import open_rows
from cmargin.solvers.penalty import ElasticNet
from cmargin.solvers.prices import sample_for_products
from cmargin.solvers.problem import Problem, Settings

DENSE = [kind for kind in KINDS if kind not in ("table", "text")]


def drawn(seed, numbers):
    """(name, X, y, loss, C)"""
    rng = np.random.default_rng(seed)
    kind, m = rng.choice(DENSE), int(np.exp(rng.uniform(np.log(128), np.log(1200))))
    n = int(min(m * np.exp(rng.uniform(np.log(32), np.log(300))), max(32 * m, numbers / m)))
    X = KINDS[kind](rng, n, m)
    X = ((X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)).astype(rng.choice(["f", "d"]))
    score = X @ rng.standard_normal(m)
    y = score + rng.uniform(0, 0.6) * score.std() * rng.standard_normal(n) > np.quantile(score, rng.uniform(0.3, 0.9))
    loss, C = rng.choice(["hinge", "squared_hinge", "logistic"]), 10 ** rng.uniform(-2, 2) / m
    return f"seed {seed}, {kind} {n:,} x {m} {X.dtype} {loss} C={C:.2g}", X, y, str(loss), C


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", nargs=2, type=int, default=[84000, 84020], help="the first, and one after the last")
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--numbers", type=float, default=2e7, help="of X, at most, where 32 rows a column are no more")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    ratios = []
    for seed in range(*options.seeds):
        name, X, y, loss, C = drawn(seed, options.numbers)
        problem = Problem(ElasticNet(1 / (C * len(y))), None, Loss(loss))
        if sample_for_products(open_rows(X).describe(), problem, Settings(max_passes=1000.0)) is None:
            continue
        took, reads = {}, {}
        for _ in range(options.repeat):
            for way in ("auto", "cholesky"):
                model = SmSVMClassifier(loss=loss, C=C, linear_solver=way, random_state=seed)
                one, model = seconds(lambda: model.fit(X, y), 1)                # noqa: B023
                took[way], reads[way] = min(took.get(way, np.inf), one), model.n_passes_
        ratios.append(took["auto"] / took["cholesky"])
        print(f"{name}: {took['auto']:.3f} s, {reads['auto']:.0f} reads; cholesky {took['cholesky']:.3f} s, "
              f"{reads['cholesky']:.0f} reads; {ratios[-1]:.2f}", flush=True)
    if ratios:
        print(f"{len(ratios)} fits: of the time by the block of all rows {min(ratios):.2f} to {max(ratios):.2f}, "
              f"median {np.median(ratios):.2f}, geometric mean {np.exp(np.mean(np.log(ratios))):.2f}")


if __name__ == "__main__":
    main()
