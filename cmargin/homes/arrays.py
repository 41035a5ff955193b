"""What is the same for rows in memory whether they are dense or CSR, in one place."""

import numpy as np
import scipy.sparse as sp


def joined(parts):
    """Rows of several arrays or CSR matrices, one below the other."""
    return sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)


def dense(X):
    """The array that ``X`` is, or that a sparse ``X`` stands for."""
    return X.toarray() if sp.issparse(X) else X
