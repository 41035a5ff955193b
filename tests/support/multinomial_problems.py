"""Rows, labels and points of the tests of the multinomial objective."""

import numpy as np
import scipy.sparse as sp

from cmargin.data import open_rows
from cmargin.data.softmax_sums import CURVATURE
from cmargin.solvers.multinomial import newton as multinomial_newton
from cmargin.solvers.multinomial.inverse import RANK, KroneckerInverse, centred_pairs

N, M, K = 83, 7, 4


def solve(X, *args, **kwargs):
    return multinomial_newton.solve(open_rows(X), *args, **kwargs)


def problem(seed=0, n=N, m=M, k=K, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((n, m)) + 0.3).astype(dtype)
    labels = np.concatenate([np.arange(k), rng.integers(0, k, n - k)])
    weight = rng.uniform(0.2, 2.0, n)
    return X, labels, weight * n / weight.sum()


def laid_out(X, layout):
    if layout == "F":
        return np.asfortranarray(X)
    if layout == "strided":
        return np.repeat(X, 2, axis=1)[:, ::2]
    if layout == "rows apart":
        return np.hstack([X, X])[:, :X.shape[1]]
    if layout == "csr":
        return sp.csr_array(np.where(np.abs(X) > 0.5, X, 0))
    if layout == "csr 64":
        out = sp.csr_array(np.where(np.abs(X) > 0.5, X, 0))
        out.indices, out.indptr = out.indices.astype(np.int64), out.indptr.astype(np.int64)
        return out
    if layout == "read-only":
        X = X.copy()
        X.flags.writeable = False
    return X


LAYOUTS = ("C", "F", "strided", "rows apart", "read-only", "csr", "csr 64")


def point(intercept, k=K, m=M, seed=3):
    return np.random.default_rng(seed).standard_normal((m + intercept, k))


def task(source, what, V, scores=None, probs=None):
    """One task of the kernel over all rows; the mean gradient."""
    kernel, none = source.kernel, np.empty((0, 0), source.dtype)
    V = np.ascontiguousarray(V, source.dtype)
    kernel.run(what, V, none if scores is None else scores, none if probs is None else probs, 0, kernel.n_blocks)
    return kernel.gradients.sum(axis=0).reshape(V.shape) / source.n_rows


def kronecker(source, l2):
    every = np.arange(source.n_rows)
    return KroneckerInverse(source, centred_pairs(source.copy_of(every), source.weight, RANK, source.intercept), l2)


def curvature_times(source, D):
    return task(source, CURVATURE, D, probs=source.probs)
