"""Which rows are so large that a Newton step treats them exactly (`_core/newton/direction/_high_leverage.pyx`)."""

import numpy as np

# Forest cover, class 2, l2 = 1e-3 / 1e-5 / 1e-7, worst passes of two seeds to a certified 1e-4: 9.7 / 11.7 / 19.7
# without heavy rows, 6.0 / 9.2 / 13.2 with them (doc/lab-notebook)
LARGE = 6.0                              # times the median squared norm, columns weighted by their curvature
MOST = 0.02                              # of the rows


def heavy_limit(n, at):
    """The norm above which a row is heavy, of ``n`` rows; ``at(places)``: norms there in their ascending order."""
    most = int(MOST * n)
    low, high, rare = at([(n - 1) // 2, n // 2, n - most - 1]) if most else (0, 0, 0)
    limit = LARGE * ((low + high) / 2)
    return max(limit, rare) if limit > 0 else np.inf


def heaviest(norms):
    """Places of the rows with the largest ``norms`` (n,), ascending: few, and only those that stand out; or none."""
    return np.flatnonzero(norms > heavy_limit(len(norms), lambda places: np.partition(norms, places)[places]))
