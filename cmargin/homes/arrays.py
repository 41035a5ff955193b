"""What is the same for rows in memory whether they are dense or CSR, in one place."""

import scipy.sparse as sp


def dense(X):
    """The array that ``X`` is, or that a sparse ``X`` stands for."""
    return X.toarray() if sp.issparse(X) else X
