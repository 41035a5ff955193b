"""What the machine can do at best, measured in the same run: no pass over the data is quicker than these allow."""

from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

import numpy as np
from scipy.linalg.blas import dsyrk
from threadpoolctl import threadpool_limits


def best_of(work, repeats=7):
    """(best, median) seconds of repeated calls."""
    seconds = []
    for _ in range(repeats):
        start = perf_counter()
        work()
        seconds.append(perf_counter() - start)
    return float(np.min(seconds)), float(np.median(seconds))


def memory_rate(threads, repeats=5):
    """Bytes per second of reading an array larger than any cache, on so many threads."""
    parts = np.array_split(np.ones(1 << 26, np.float32), threads)       # 256 MB
    with ThreadPoolExecutor(threads) as pool:
        best, _ = best_of(lambda: list(pool.map(np.add.reduce, parts)), repeats)
    return sum(p.nbytes for p in parts) / best


def sgemm_rate(threads, repeats=5, n=2048):
    """Floating-point operations per second of a float32 product of squares, by BLAS on so many threads."""
    A = np.random.default_rng(0).standard_normal((n, n), dtype=np.float32)
    with threadpool_limits(threads):
        best, _ = best_of(lambda: A @ A, repeats)
    return 2.0 * n**3 / best


def dsyrk_rate(threads, repeats=3, n=4096, m=512):
    """Floating-point operations per second of X'X, one half of it, by BLAS on so many threads."""
    X = np.asfortranarray(np.random.default_rng(0).standard_normal((m, n)))
    with threadpool_limits(threads):
        best, _ = best_of(lambda: dsyrk(1.0, X), repeats)
    return n * m * (m + 1) / best
