"""Rows like those of texts: few common columns, many rare ones."""

import numpy as np
import scipy.sparse as sp


def texts(n, m, seed=0, words=30):
    """CSR rows of unit length, Zipf columns, labels of a plane with noise."""
    rng = np.random.default_rng(seed)
    X = sp.csr_matrix((np.ones(n * words), (rng.zipf(1.3, n * words) % m), np.arange(n + 1) * words), shape=(n, m))
    X.sum_duplicates()
    X.data /= np.sqrt(np.repeat(np.asarray(X.multiply(X).sum(axis=1))[:, 0], np.diff(X.indptr)))
    score = X @ rng.standard_normal(m)
    return X, score + 0.1 * score.std() * rng.standard_normal(n) > np.median(score)
