"""The penalties that a search tries, and the order in which a path visits them."""

from dataclasses import dataclass
from numbers import Integral

import numpy as np

from cmargin._estimators.validation import InvalidParameterError
from cmargin.solvers.path_range import SPAN

DEFAULT_L2S = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
ROWS_OF_SCORES = 1 << 16         # times problems, that are scored at a time


@dataclass(frozen=True)
class Step:
    """One fit of a path: its penalties, and the places of the grid that have them."""

    parameters: dict             # of `SmSVMClassifier.set_params`
    place: tuple                 # (rows, columns) of the grid, for np.ix_
    l1: float
    begins: bool                 # whether it is the first fit of a path in l2, which nothing goes before
    name: str

    def put(self, table, value):
        """Write ``value`` to the step's places of an array of the grid's shape."""
        table[np.ix_(*self.place)] = value

    def of(self, table):
        """What it has put there."""
        return table[self.place[0][0], self.place[1][0]]


class Grid:
    """Penalties ``values`` of l2, or of C where ``name`` is "C", each with every one of ``l1s``, in any order."""

    def __init__(self, name, values, l1s):
        self.name, self.values, self.l1s = name, np.asarray(values, float), np.asarray(l1s, float)
        with np.errstate(divide="ignore"):
            self.strengths = self.values if name == "l2" else 1 / self.values

    @property
    def shape(self):
        return len(self.values), len(self.l1s)

    def parameters(self, i, k):
        """What `SmSVMClassifier.set_params` takes for place (i, k)."""
        return {"l2": None, "C": None, self.name: float(self.values[i]), "l1": float(self.l1s[k])}

    def named(self, i, k):
        """The penalties of place (i, k) by their names."""
        return {self.name: float(self.values[i]), "l1": float(self.l1s[k])}

    def steps(self):
        """Fits along the paths: for every l1 once from the strongest l2 down; a penalty given twice is fitted once."""
        order = np.unique(self.strengths)[::-1]
        for l1 in dict.fromkeys(self.l1s.tolist()):
            columns = np.flatnonzero(self.l1s == l1)
            for number, strength in enumerate(order):
                rows = np.flatnonzero(self.strengths == strength)
                yield Step(self.parameters(rows[0], columns[0]), (rows, columns), l1, number == 0,
                           f"{self.name}={self.values[rows[0]]:g}, l1={l1:g}")

    def strongest(self, places):
        """The place, of those given as pairs, of the strongest l1, and of equal ones of the strongest l2."""
        return max(places, key=lambda at: (self.l1s[at[1]], self.strengths[at[0]]))


def grid_of(search, largest_l2):
    """The `Grid` of a search with ``l2s`` or ``Cs``, and ``l1s``; ``largest_l2()`` is asked for the strongest penalty
    where ``l2s`` is a number of penalties to choose."""
    l1s = numbers_of(search, "l1s", np.isfinite, "[0.0, inf)")
    if search.Cs is not None:
        if search.l2s is not None:
            raise InvalidParameterError(f"Give l2s or Cs, not both; got l2s={search.l2s!r} and Cs={search.Cs!r}.")
        return Grid("C", numbers_of(search, "Cs", lambda a: a > 0, "(0.0, inf]"), l1s)
    if search.l2s is None:
        return Grid("l2", DEFAULT_L2S, l1s)
    if isinstance(search.l2s, Integral):
        top = largest_l2()
        return Grid("l2", chosen_l2s(top, search.l2s), l1s)
    return Grid("l2", numbers_of(search, "l2s", np.isfinite, "[0.0, inf)"), l1s)


def numbers_of(search, name, allowed, interval):
    """A parameter that is a sequence of floats in an interval, as an array."""
    given = getattr(search, name)
    try:
        values = np.asarray(given, float)
    except (TypeError, ValueError):
        values = np.empty(0)
    with np.errstate(invalid="ignore"):
        if values.ndim == 1 and len(values) and np.all(values >= 0) and np.all(allowed(values)):
            return values
    raise InvalidParameterError(f"The '{name}' parameter of {type(search).__name__} must be a sequence of floats in "
                                f"the range {interval}. Got {given!r} instead.")


@np.errstate(over="ignore", invalid="ignore")           # of rows that fits refuse, with a sentence
def largest_l2(source, labels, weights):
    """An l2 from which on the hinge's weights are little more than the direction between the means of the classes.

    That is where such weights, sum s y x / (N l2) about the mean of the rows, reach no row's hinge. ``labels``:
    `Labels`; ``weights`` (n,) or None. Two reads.
    """
    n, m, k = source.n_rows, source.n_features, len(labels)
    weights = np.full(n, 1 / n) if weights is None else weights / weights.sum()
    centre, directions, largest = np.zeros(m), np.zeros((m, k)), 0.0
    rows_at_once = max(1, ROWS_OF_SCORES // k)

    def add_up(first, X):
        rows = slice(first, first + X.shape[0])
        centre[:] += np.asarray(weights[rows] @ X, float).ravel()
        for c in range(k):
            sign = labels[c]
            directions[:, c] += np.asarray(((sign - sign @ weights) * weights)[rows] @ X, float).ravel()

    def compare(_, X):
        nonlocal largest
        for lo in range(0, X.shape[0], rows_at_once):
            largest = max(largest, np.abs(X[lo:lo + rows_at_once] @ directions - centre @ directions).max())

    with np.errstate(over="ignore", invalid="ignore"):  # of rows that fits refuse, with a sentence
        source.visit(add_up)
        source.visit(compare)
    return float(largest) if 0 < largest < np.inf else 1.0


def chosen_l2s(top, n):
    """(n,) penalties up to ``top``, evenly in their logarithms."""
    return np.geomspace(SPAN * top, top, int(n)) if n > 1 else np.array([top])
