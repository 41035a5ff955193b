"""Multinomial SLND's defaults beside its best settings by hand, and how well its probabilities are calibrated.

    python asv_benches/compare_defaults.py --data FOLDER [--sets digits,mnist,tinyimagenet,sector,covtype]
                                           [--only by-hand,calibration] [--seeds 3] [--passes 15]

FOLDER holds the sets, NAME.npz; rows have length 1, those of forest cover standardised columns; sets without test rows
give a third. By hand: every step_size of 0.25, 0.5, ... 16 with ranks 1, "auto" and 20, all rows, looked at after every
pass on the very test rows, the best mean over the seeds; and the best on every other test row as it does on those
between, both ways, since the best of 315 on the rows that say so is partly luck. Calibration: expected error (15 bins)
and log-loss on the test rows, of the defaults, of one-vs-rest with and without the correction of its prior, and of
LogisticRegression (lbfgs, --cost, 60 iterations).
"""

import argparse
import warnings

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler, normalize

from cmargin import SLNDClassifier
from cmargin.margins import expected_calibration_error
from race.data import read

STEPS, RANKS = 2.0 ** np.arange(-2, 5), (1, "auto", 20)
STANDARDISED = ("covtype", "australian", "colon")


def rows_of(name, folder, seed):
    X, y, X_test, y_test = read(name, folder)
    if X_test is None:
        X, X_test, y, y_test = train_test_split(X, y, test_size=1 / 3, random_state=seed, stratify=y)
    X, X_test = X.astype(np.float32), X_test.astype(np.float32)
    if name in STANDARDISED:
        scaler = StandardScaler().fit(X)
        return scaler.transform(X), y, scaler.transform(X_test), y_test
    return normalize(X), y, normalize(X_test), y_test


def by_pass(rows, rank, step, seed, options):
    """(passes, 2) test accuracies of one setting, on the two halves of the test rows."""
    X, y, X_test, y_test = rows
    found = []
    SLNDClassifier(loss="multinomial", rank=rank, step_size=step, max_passes=options.passes, random_state=seed,
                   n_jobs=options.threads, callback=lambda model: found.append(of_halves(model, X_test, y_test))
                   ).fit(X, y)
    return found + found[-1:] * (options.passes - len(found))


def of_halves(model, X_test, y_test):
    right = 100.0 * (model.predict(X_test) == y_test)
    return right[::2].mean(), right[1::2].mean()


def by_hand(name, options):
    grid, defaults = [], []
    for seed in range(200, 200 + options.seeds):
        rows = rows_of(name, options.data, seed)
        grid.append([[by_pass(rows, rank, float(step), seed, options) for step in STEPS] for rank in RANKS])
        model = SLNDClassifier(loss="multinomial", random_state=seed, n_jobs=options.threads).fit(*rows[:2])
        defaults.append(100 * model.score(*rows[2:]))
    halves = np.mean(grid, axis=0)
    means, default = halves.mean(axis=-1), np.mean(defaults)
    rank, step, passes = np.unravel_index(np.argmax(means), means.shape)
    elsewhere = np.mean([halves[..., 1 - half].flat[np.argmax(halves[..., half])] for half in (0, 1)])
    print(f"{name}, means of {options.seeds} seeds: defaults {default:.2f} ({min(defaults):.2f} to "
          f"{max(defaults):.2f}); by hand {means.max():.2f} (rank {RANKS[rank]}, step {STEPS[step]:g}, "
          f"{passes + 1} passes): {default - means.max():+.2f}; chosen on one half, on the other {elsewhere:.2f}: "
          f"{default - elsewhere:+.2f}", flush=True)


def normalised(odds):
    """Probabilities of one-vs-rest posteriors as they come."""
    return odds / odds.sum(axis=1, keepdims=True)


def calibration(name, options):
    X, y, X_test, y_test = rows_of(name, options.data, 200)
    joint = SLNDClassifier(loss="multinomial", random_state=200, n_jobs=options.threads).fit(X, y)
    apart = SLNDClassifier(loss="logistic", random_state=200, n_jobs=options.threads).fit(X, y)
    lbfgs = LogisticRegression(C=options.cost, max_iter=60).fit(X, y)
    truth = np.searchsorted(joint.classes_, y_test)
    for kind, p in (("multinomial", joint.predict_proba(X_test)),
                    ("one-vs-rest, corrected", apart.predict_proba(X_test)),
                    ("one-vs-rest, as it comes", normalised(apart.posterior(X_test))),
                    (f"LogisticRegression, C = {options.cost:g}", lbfgs.predict_proba(X_test))):
        print(f"{name}, {kind}: calibration error {expected_calibration_error(p, truth):.3f}, log-loss "
              f"{log_loss(truth, p, labels=np.arange(p.shape[1])):.3f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data")
    parser.add_argument("--sets", default="digits,mnist,tinyimagenet,sector,covtype")
    parser.add_argument("--only", default="by-hand,calibration")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--passes", type=int, default=15)
    parser.add_argument("--cost", type=float, default=10.0)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    warnings.simplefilter("ignore")                       # 60 iterations are not lbfgs' end
    for name in options.sets.split(","):
        if "by-hand" in options.only:
            by_hand(name, options)
        if "calibration" in options.only:
            calibration(name, options)


if __name__ == "__main__":
    main()
