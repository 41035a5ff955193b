"""Rows on a device: evaluations and fits beside those of rows in memory, and beside the device's own limits.

    python asv_benches/compare_device.py [--part limits|evaluations|fits|batches|large] [--data FOLDER]
                                         [--sets covtype,mnist] [--device cuda] [--threads 2] [--rows N]

Needs torch, and takes its first CUDA device, else Apple's, else the processor, and says which. ``limits`` measures
what the device can do at best: bytes read in a second, multiplications of float32 and float64 matrices, and how long
an empty answer takes. ``evaluations`` and ``fits`` take covtype, mnist and tinyimagenet from FOLDER, which holds
`load.py`; beside them cuML's LinearSVC and LogisticRegression where it is installed. ``batches`` says what
larger batches of multinomial passes cost. ``large``, only when asked for, makes N x 512 float32 rows on the device
(10,000,000; 100,000 on a processor) and trains on them to a certified 1e-4.

An evaluation is said as a part of the limits: of the time in which the device would read X as often as it does, at its
full rate, and make the products of the curvature rows at its full rate, one after the other.
"""

import argparse
import sys
import warnings
from functools import partial
from time import perf_counter

import numpy as np
from sklearn.model_selection import train_test_split

from cmargin import MarginPursuitClassifier, SLNDClassifier, SmSVMClassifier
from cmargin._runtime.blas_threads import single_threaded_blas
from cmargin.data import open_rows
from cmargin.solvers import cost
from measure.limits import best_of
from measure.report import heading, table

try:
    import torch
except ImportError:
    torch = None
try:
    import cuml
except ImportError:
    cuml = None

L2, TOL, REPEATS = 1e-5, 1e-4, 3
COLUMNS, LARGE, LARGE_ON_CPU = 512, 10_000_000, 100_000
MADE_AT_ONCE = 1 << 20                   # rows
SETS = "covtype,mnist,tinyimagenet"


def first_device():
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def named(device):
    if device.startswith("cuda"):
        return torch.cuda.get_device_name(device)
    return "Apple's GPU" if device == "mps" else "no device: torch on the processor"


def waited(device, work):
    """``work``, to its end."""
    def done():
        work()
        if device.startswith("cuda"):
            torch.cuda.synchronize()
        elif device == "mps":
            torch.mps.synchronize()

    return done


# ---------------------------------------------------------------- what the device can do

def measured_limits(device):
    """Bytes a second, float32 and float64 operations a second, seconds of an empty answer."""
    small = device == "cpu"
    x = torch.ones(1 << (26 if small else 30), dtype=torch.float32, device=device)
    rate = 4 * len(x) / best_of(waited(device, lambda: x.sum()), REPEATS)[0]
    products, n = [], 1024 if small else 8192
    for dtype in (torch.float32, torch.float64):
        try:
            A = torch.ones((n, n), dtype=dtype, device=device)
            products.append(2.0 * n**3 / best_of(waited(device, lambda A=A: A @ A), REPEATS)[0])
        except TypeError:                # no double precision there
            products.append(np.nan)
    one = torch.ones(1, device=device)
    return rate, *products, best_of(lambda: (one + 1).cpu(), 50)[1]


def limits(device, options):
    rate, single, double, empty = measured_limits(device)
    yield table(f"Limits of {named(device)}", ["GB/s read", "float32 TFLOP/s", "float64 TFLOP/s", "empty answer, µs"],
                [[rate / 1e9, single / 1e12, double / 1e12, empty * 1e6]])


# ---------------------------------------------------------------- evaluations

def read_set(folder, name):
    """Training rows and labels: float32, columns of covtype standardised, rows of the others of length 1."""
    sys.path.insert(0, folder)
    from load import load

    X, y = load(name)[:2]
    X = np.asarray(X, np.float32)
    if name == "covtype":
        X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)
    else:
        X = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-9)
    return X, y.astype(int)


def sets_of(options):
    if options.data is None:
        rng = np.random.default_rng(0)
        X = rng.standard_normal((200_000, 54), dtype=np.float32)
        yield "200,000 x 54, made up", X, (X @ rng.standard_normal((54, 5), dtype=np.float32)).argmax(axis=1)
        return
    for name in options.sets.split(","):
        yield name, *read_set(options.data, name)


def evaluation_seconds(X, signed_weight, device, threads):
    """Best seconds of an evaluation with curvature, one without, and a line; the share of rows with curvature."""
    rows = open_rows(X).row_pass(signed_weight, intercept=True, n_threads=threads)
    w = np.linspace(-0.1, 0.1, rows.n_columns)
    asked = {"direction": w, "step": 1.0, "line_width": 0.1, "width": 0.1, "curvature_floor": 1e-5}
    rows.start()
    rows.set_active(None)
    share = rows.evaluate(**asked)[0][6] / rows.n_rows
    kinds = [lambda: rows.evaluate(**asked), lambda: rows.evaluate(**asked, with_hessian=False),
             lambda: rows.line(0.5, 0.1)]
    with single_threaded_blas():
        return [best_of(waited(device, kind), REPEATS)[0] for kind in kinds], share


def least_seconds(shape, share, limits_there):
    """Of an evaluation with curvature and of one without: X read twice, and the block's products."""
    (n, m), (rate, single, _, _) = shape, limits_there
    reading = 2 * 4 * n * m / rate
    return reading + 2 * share * n * m * m / single, reading


def evaluations(device, options):
    there, rows = measured_limits(device), []
    for name, X, y in sets_of(options):
        signed_weight = np.where(y == np.bincount(y).argmax(), 1.0, -1.0)
        (full, plain, line), share = evaluation_seconds(torch.asarray(X).to(device), signed_weight, device,
                                                        options.threads)
        memory, _ = evaluation_seconds(X, signed_weight, "cpu", options.threads)
        least = least_seconds(X.shape, share, there)
        rows.append([name, full, least[0] / full, plain, least[1] / plain, line, *memory])
    yield table(f"An evaluation on {named(device)} and in memory on {options.threads} threads",
                ["set", "curvature, s", "of limits", "without, s", "of limits", "line, s", "memory: curvature, s",
                 "without, s", "line, s"], rows)


# ---------------------------------------------------------------- fits

def timed(fit, device):
    start = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        waited(device, fit)()
    return perf_counter() - start


def ours(n_classes, threads):
    both = {"n_jobs": threads, "random_state": 0}
    yield "SmSVM, hinge", SmSVMClassifier(l2=L2, tol=TOL, **both), True
    yield "SmSVM, logistic", SmSVMClassifier(l2=L2, tol=TOL, loss="logistic", **both), True
    yield "margin pursuit", MarginPursuitClassifier(l2=L2, trace=False, **both), False
    if n_classes > 2:
        yield "SLND, multinomial", SLNDClassifier(max_passes=5, **both), False


def fits(device, options):
    for name, X, y in sets_of(options):
        two = (y == np.bincount(y).argmax()).astype(int)
        T, rows = torch.asarray(X).to(device), []
        for kind, model, certified in ours(len(np.unique(y)), options.threads):
            labels = y if "multinomial" in kind else two
            model.fit(T[:5000], labels[:5000])                            # whatever is loaded at first
            line = [kind]
            for given, where in ((T, device), (X, "cpu")):
                line += [timed(partial(model.fit, given, labels), where), model.n_passes_]
            rows.append([*line, f"{model.duality_gap_.max():.1e}" if certified else ""])
        yield table(f"{name}: whole fits on {named(device)} and in memory",
                    ["fit", "device, s", "passes", "memory, s", "passes", "gap"], rows)
        yield from neighbours(name, T, X, two, device)


def neighbours(name, T, X, two, device):
    """cuML's classifiers on the same rows; their objective beside our certified one."""
    if cuml is None or not device.startswith("cuda"):
        yield f"{name}: cuML is not here\n"
        return
    import cupy

    rows, given, C = [], cupy.from_dlpack(T), 1 / (L2 * len(X))
    labels = cupy.asarray(two)
    for kind, model, loss in (
            ("LinearSVC", cuml.svm.LinearSVC(loss="hinge", C=C, tol=TOL, penalized_intercept=False), "hinge"),
            ("LogisticRegression", cuml.LogisticRegression(C=C, tol=TOL), "logistic")):
        model.fit(given[:5000], labels[:5000])
        seconds = timed(partial(model.fit, given, labels), device)
        w, b = (np.asarray(cupy.asnumpy(cupy.asarray(part)), float).ravel() for part in (model.coef_, model.intercept_))
        z = (2 * two - 1) * (X.astype(float) @ w + b)
        at = np.maximum(0, 1 - z) if loss == "hinge" else np.logaddexp(0, -z)
        best = SmSVMClassifier(l2=L2, tol=TOL, loss=loss, random_state=0)
        ours_seconds = timed(partial(best.fit, T, two), device)
        objective = L2 / 2 * w @ w + at.mean()
        rows.append([kind, seconds, f"{objective / best.objective_[0] - 1:.1e}", ours_seconds,
                     f"{best.duality_gap_[0]:.1e}"])
    yield table(f"{name}: cuML {cuml.__version__}", ["model", "cuML, s", "above ours by", "ours, s", "our gap"], rows)


# ---------------------------------------------------------------- batches of multinomial passes

def batches(device, options):
    """What is lost where a device takes larger batches than rows in memory do: those it takes, or ``--batch`` rows."""
    rows = []
    if options.batch:
        cost.DEVICE_BATCH = options.batch, 1
    for name, X, y in sets_of(options):
        for seed in range(options.seed, options.seed + 5):
            A, B, a, b = train_test_split(X, y, random_state=seed, test_size=0.2)
            for where, given in (("memory", A), (device, torch.asarray(A).to(device))):
                model = SLNDClassifier(loss="multinomial", random_state=seed, n_jobs=options.threads)
                seconds = timed(partial(model.fit, given, a), where)
                shares = model.predict_proba(B)[np.arange(len(b)), np.searchsorted(model.classes_, b)]
                rows.append([name, seed, where, f"{100 * model.score(B, b):.2f}",
                             f"{-np.log(np.maximum(shares, 1e-12)).mean():.4f}", model.n_iter_, seconds])
    yield table("SLND, multinomial, on a fifth of the rows held out", ["set", "seed", "rows", "accuracy, %", "log-loss",
                                                                       "passes", "s"], rows)


# ---------------------------------------------------------------- rows made on the device

def made_there(n, device):
    """(n, COLUMNS) float32 rows on the device, and labels from a noisy plane, in memory."""
    draw = torch.Generator(device=device).manual_seed(1)
    X = torch.empty((n, COLUMNS), dtype=torch.float32, device=device)
    plane, y = torch.randn(COLUMNS, generator=draw, device=device) / COLUMNS**0.5, np.empty(n, np.int8)
    for lo in range(0, n, MADE_AT_ONCE):
        rows = X[lo:lo + MADE_AT_ONCE]
        rows.normal_(generator=draw)
        noise = torch.randn(len(rows), generator=draw, device=device)
        y[lo:lo + len(rows)] = (rows @ plane + noise > 0).cpu().numpy()
    return X, y


def large(device, options):
    n = options.rows or (LARGE_ON_CPU if device == "cpu" else LARGE)
    there = measured_limits(device)
    X, y = made_there(n, device)
    (full, plain, line), share = evaluation_seconds(X, np.where(y == 1, 1.0, -1.0), device, 1)
    least = least_seconds(X.shape, share, there)
    yield table(f"{n:,} x {COLUMNS} float32 on {named(device)}: an evaluation, {share:.0%} of the rows curved",
                ["curvature, s", "of limits", "without, s", "of limits", "line, s"],
                [[full, least[0] / full, plain, least[1] / plain, line]])
    rows = []
    for kind, model, certified in ours(2, options.threads):
        seconds = timed(partial(model.fit, X, y), device)
        rows.append([kind, seconds, model.n_passes_, f"{model.duality_gap_[0]:.1e}" if certified else ""])
    yield table("Whole fits", ["fit", "s", "passes", "gap"], rows)


PARTS = {"limits": limits, "evaluations": evaluations, "fits": fits, "batches": batches, "large": large}


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=PARTS, action="append")
    parser.add_argument("--data")
    parser.add_argument("--sets", default=SETS)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--batch", type=int, help="of --part batches: rows of one, a power of two")
    parser.add_argument("--seed", type=int, default=21, help="of --part batches: the first of five splits")
    parser.add_argument("--device")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args(arguments)
    if torch is None:
        parser.exit(1, "torch is not installed: pip install torch array-api-compat\n")
    device = options.device or first_device()
    torch.set_num_threads(options.threads)
    print(heading(options.threads))
    print(f"device: {named(device)}; torch {torch.__version__}\n")
    for part in options.part or ["limits", "evaluations", "fits"]:
        for text in PARTS[part](device, options):
            print(text, flush=True)


if __name__ == "__main__":
    main()
