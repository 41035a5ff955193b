"""What the experiments on margin distributions share: four data sets, trials, and statistics after every pass."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from cmargin import MarginPursuitClassifier, PegasosClassifier, datasets

MARGINS = ("mean", "median", "location", "variance", "skewness", "q05", "q25", "q75", "q95", "share_negative")
TEST_ROWS = 4000     # at most, of each trial
L2S = (1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
TRIALS, PASSES = 25, 20
SETS_TEXT = f"""\
In every trial (25 of them, seeds 0 to 24) balanced training rows are drawn without replacement and balanced test
rows from the rest, at most {TEST_ROWS:,} of these. COV: `covtype`, class 1 against the rest, 540 training rows.
DIGIT5: `mnist`, digit 5 against the rest, 5,000. PROTEIN and SIDO are not to be had: `protein-stand-in`, 740 rows
of 74 columns, and `sido-stand-in`, 425 of 4,932, are generated to the shape and filling that the paper gives;
nothing can be concluded from them about the paper's sets, and verdicts rest on the others. Columns are divided by
their largest absolute value (the paper is silent on this). No intercept. One random row a step, {PASSES} passes of
n steps, w_0 random, steps 1/(s √λ (1 + t)) for Algorithm 1 and 1/(λ (1 + t)) for Pegasos, projection on the ball of
radius 1/√λ. The set of λ is read as 10⁰ and 10⁻⁶ to 10⁻¹."""


@dataclass(frozen=True)
class Source:
    """Where a set of the paper comes from: name for `datasets.load`, the class taken as +1, training rows."""

    data: str
    positive: int
    n_train: int


SOURCES = {
    "COV": Source("covtype", 0, 540), "DIGIT5": Source("mnist", 5, 5000),
    "PROTEIN stand-in": Source("protein-stand-in", 1, 740), "SIDO stand-in": Source("sido-stand-in", 1, 425),
    "digits 5": Source("digits", 5, 200), "breast_cancer": Source("breast_cancer", 1, 200),
}
FULL, QUICK = ("COV", "DIGIT5", "PROTEIN stand-in", "SIDO stand-in"), ("digits 5", "breast_cancer")


@lru_cache(maxsize=1)
def pool(name):
    """(X, y): all rows there are, training and test rows of an original split together, columns scaled to [-1, 1]."""
    source = SOURCES[name]
    data = datasets.load(source.data)
    X, y = data.X, data.y
    if data.has_split:
        X, y = np.vstack([X, data.X_test]), np.concatenate([y, data.y_test])
    X = X.astype(np.float64)
    largest = np.abs(X).max(axis=0)
    X /= np.where(largest > 0, largest, 1.0)
    return X, np.where(y == source.positive, 1, -1)


def trial(name, seed):
    """(X, y, X_test, y_test) of one trial, all balanced."""
    X, y = pool(name)
    rng = np.random.default_rng([seed, 4])
    by_class = [rng.permutation(np.flatnonzero(y == c)) for c in (-1, 1)]
    half = SOURCES[name].n_train // 2
    left = min(TEST_ROWS // 2, *(len(rows) - half for rows in by_class))
    train = rng.permutation(np.concatenate([rows[:half] for rows in by_class]))
    test = np.concatenate([rows[half:half + left] for rows in by_class])
    return X[train], y[train], X[test], y[test]


def run_trials(name, method, l2, scale, trials, passes):
    """Means over the trials after every pass: {column: list}, and the deviation of the last test error."""
    columns = {}
    for seed in range(trials):
        X, y, X_test, y_test = trial(name, seed)
        errors = []

        def watch(model, errors=errors, X_test=X_test, y_test=y_test):
            errors.append(float(np.mean(np.where(X_test @ model.coef_[0] > 0, 1, -1) != y_test)))

        common = {"l2": l2, "max_passes": passes, "fit_intercept": False, "random_state": seed, "callback": watch}
        if method == "Pegasos":
            model = PegasosClassifier(step_size=1 / l2, **common)
        else:
            model = MarginPursuitClassifier(solver="sgd", margin=1.0, scale=scale, **common)
        model.fit(X, y)
        found = {"test_error": errors} | {key: model.history_[f"margin_{key}"] for key in MARGINS}
        for key, values in found.items():
            columns.setdefault(key, []).append(np.asarray(values, dtype=float))
    means = {key: np.mean(values, axis=0) for key, values in columns.items()}
    return {"gradients": 2 * (SOURCES[name].n_train // 2) * np.arange(1, passes + 1), **means,
            "last_test_error_deviation": float(np.std([values[-1] for values in columns["test_error"]]))}


def best(rows):
    """The row, one l2 each, of the lowest mean test error met after any pass: the paper's choice of λ."""
    return min(rows, key=lambda r: min(r["test_error"]))


def judged(values):
    """Of {set: value} the values of the paper's own sets: a stand-in tells nothing about a claim of the paper."""
    return [value for name, value in values.items() if "stand-in" not in name]
