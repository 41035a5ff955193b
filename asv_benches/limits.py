"""What no code can beat: of benchmarks whose work is known, the bytes that must be read and the operations of BLAS.

An entry is a function of the benchmark's parameters, as texts, that gives (threads, bytes, operations of sgemm,
operations of dsyrk). The limit is the longest of what each takes on this machine at its best. Where a benchmark is no
kernel (passes to an accuracy, a whole fit, memory) there is no entry: its own figure is what it is compared by.
"""

from functools import cache

from measure.limits import dsyrk_rate, memory_rate, sgemm_rate

SIZES = {"float32": 4, "float64": 8}
SHAPES = {"tall": (581_012, 54, 8), "square": (100_000, 512, 4), "small": (5_000, 50, 8)}


def evaluation(curved):
    def work(shape):
        n, m, size = SHAPES[shape]
        return 2, n * m * size, 0, n * m * (m + 1) if curved else 0
    return work


def rows(n, m):
    """One read of rows, the dtype the last parameter."""
    return lambda *parameters: (2, n * m * SIZES[parameters[-1]], 0, 0)


def two_products(numbers, dtype):
    """Operations at the rate of sgemm, or, of float64, at that of dsyrk."""
    return (4 * numbers, 0) if dtype == "float32" else (0, 4 * numbers)


WORK = {
    "smsvm.Pass.time_look": evaluation(True),
    "smsvm.Pass.time_look_without_curvature": evaluation(False),
    "smsvm.Pass.time_along": lambda shape: (2, 16 * SHAPES[shape][0], 0, 0),        # margins and their change
    "slnd.KernelPass.time_whiten": lambda rank, dtype, threads: (int(threads), 20000 * 400 * SIZES[dtype],
                                                                 2 * 20000 * 400 * int(rank), 0),
    # 200 classes visit their hundred positives, and as many negatives
    "slnd.KernelPass.time_pass": lambda rank, dtype, threads: (int(threads), 40000 * int(rank) * SIZES[dtype], 0, 0),
    "slnd.MultinomialPass.time_pass": lambda threads: (int(threads), 20000 * 1812 * 4, 4 * 20000 * 1812 * 200, 0),
    "slnd.OptimumRead.time_read": lambda classes, dtype: (1, 20000 * 500 * SIZES[dtype],
                                                          *two_products(20000 * 500 * int(classes), dtype)),
    "pursuit.Pass.track_seconds_per_pass": rows(40000, 100),
    "baselines.GradientPass.track_seconds_per_pass": rows(40000, 100),
    "catoni.PsiTransform.time_psi_transform": lambda margin, n: (1, 16 * int(n), 0, 0),
    "catoni.PsiTransform.time_psi_inverse": lambda margin, n: (1, 16 * int(n), 0, 0),
    "catoni.LocationEstimate.time_location_estimate": lambda margins, scale, n: (1, 8 * int(n), 0, 0),
    "catoni.LocationEstimate.time_margin_summary": lambda margins, scale, n: (1, 8 * int(n), 0, 0),
    "catoni.CubicRoots.time_cubic_roots": lambda n: (1, (4 * 8 + 3 * 16) * int(n), 0, 0),
    **{f"catoni.ScoreMetrics.time_{name}": lambda n: (1, 4 * 200 * int(n), 0, 0)
       for name in ("margin", "top_5_accuracy", "binary_entropy", "expected_calibration_error")},
}

_rates = {"memory": cache(memory_rate), "sgemm": cache(sgemm_rate), "dsyrk": cache(dsyrk_rate)}


def seconds(name, parameters):
    """Seconds that the work of a benchmark takes this machine at the least, and what binds; None where nobody knows."""
    if name not in WORK:
        return None
    threads, *work = WORK[name](*parameters)
    least = {what: amount / _rates[what](threads) for what, amount in zip(_rates, work, strict=True) if amount}
    binding = max(least, key=least.get)
    return least[binding], binding
