"""Columns of very different units: what a solver takes from each, and divides it by, for its steps to see all of them.

Beside a column of amounts, or of seconds since 1970, sums, factors and stopping rules know the other columns by their
last digits, if at all. Most tables have no such columns; there everything stays as it is, to the bit. Units and centres
are those of a sample: any that are about right will do, since what is found in them is translated back.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

FAR_APART = {"f": 1e2, "d": 1e3}     # largest column over the smallest unit, from where on sums of this kind want units
OFFSET = 10.0                # a column of one sign has a centre where its mean is so many times its spread,
PRESENT = 0.99               # if hardly an entry is 0: no row that has none of it is far from the centre then
TYPICAL = 0.1                # part of the columns that are smaller than a small one that is typical
FEW = 5                      # entries by which no unit is judged
LOST = 8.0                   # spacings of its numbers: a column whose spread is less has lost its digits


@dataclass(frozen=True)
class Columns:
    """``(x - centre) / unit`` in place of x; both (n_features,), units positive."""

    centre: np.ndarray
    unit: np.ndarray

    @property
    def largest(self):
        """The place of the column of the largest entries."""
        return int(np.hypot(self.centre, self.unit).argmax())


    def over(self, X):
        """The rows X in these, of its dtype, a copy; CSR rows are filled where a column with a centre has no entry."""
        if sp.issparse(X):
            return self._over_lists(X)
        inverse, centre = (1 / self.unit).astype(X.dtype), self.centre.astype(X.dtype)
        out = np.subtract(X, centre, order="C")
        out *= inverse
        return out

    def _over_lists(self, X):
        inverse, centre = (1 / self.unit).astype(X.dtype), self.centre.astype(X.dtype)
        out = type(X)(((X.data - centre[X.indices]) * inverse[X.indices], X.indices, X.indptr), shape=X.shape)
        centred = np.flatnonzero(centre)
        there = np.zeros((X.shape[0], len(centred)), bool)
        row, place = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), np.searchsorted(centred, X.indices)
        mine = np.isin(X.indices, centred)
        there[row[mine], place[mine]] = True
        row, place = np.nonzero(~there)
        if not len(row):
            return out
        j = centred[place]
        return (out + sp.csr_matrix((-centre[j] * inverse[j], (row, j)), shape=X.shape)).astype(X.dtype)

    def inner(self, W, bias):
        """Weights (n_problems, n_features) and intercepts that say of rows in these what W and bias say of them as they
        are."""
        return W * self.unit.astype(W.dtype), bias + W @ self.centre

    def outer(self, W, bias):
        """The way back."""
        W = (W / self.unit).astype(W.dtype)
        return W, bias - W.astype(float) @ self.centre


def moments(X):
    """How many entries of every column of X, dense or CSR, are not 0, their mean and spread: three (m,) arrays."""
    if not sp.issparse(X):
        there = X != 0
        size = np.abs(X).max(axis=0, initial=0.0)            # squares beside it stay in the range of doubles
        size[size == 0] = 1
        entries, count = X / size, there.sum(axis=0)
        mean = entries.sum(axis=0) / np.maximum(count, 1)
        spread = np.sqrt((((entries - mean) * there) ** 2).sum(axis=0) / np.maximum(count, 1))
        return count, mean * size, spread * size
    m, column = X.shape[1], X.indices
    size = np.zeros(m)
    np.maximum.at(size, column, np.abs(X.data))
    size[size == 0] = 1
    entries, count = X.data / size[column], np.bincount(column, minlength=m)
    mean = np.bincount(column, entries, m) / np.maximum(count, 1)
    spread = np.sqrt(np.bincount(column, (entries - mean[column]) ** 2, m) / np.maximum(count, 1))
    return count, mean * size, spread * size


def columns_of(X, intercept, dtype, typical=False):
    """Centres and units of the columns of X, or None where these are near enough for sums and factors of ``dtype``.

    ``X`` (n, m) float64 array or CSR matrix: rows that stand for all. Without an ``intercept`` there is nothing that a
    centre could be made good by. ``typical``: columns are compared with a small one that is typical, and those that are
    smaller are left so: rare words of a text are not to count for as much as others. Else with the smallest, the
    intercept's column of ones being one.
    """
    count, mean, spread = moments(X)
    present = count >= PRESENT * X.shape[0]
    size = np.hypot(mean, spread)                # root mean square of the entries that are not 0
    centred = present & (np.abs(mean) > OFFSET * spread) & bool(intercept)
    unit = np.where(centred & (spread > 0), spread, size)
    judged = (count >= FEW) & ~(present & (spread == 0))
    if not judged.any() or not size.max() < np.sqrt(np.finfo(dtype).max):    # else squares are for others to refuse
        return None
    smallest, largest = np.quantile(unit[judged], TYPICAL if typical else 0.0, method="lower"), size.max()
    if typical:
        unit = np.maximum(unit, smallest)
    elif intercept:
        smallest, largest = min(smallest, 1.0), max(largest, 1.0)
    if not largest > FAR_APART[np.dtype(dtype).char] * smallest:
        return None
    unit[unit == 0] = np.exp(np.median(np.log(unit[unit > 0])))          # columns that no row of these has
    # weights are divided by units: of columns near the smallest numbers there are, they would leave the range
    unit = np.maximum(unit, np.finfo(dtype).tiny / np.finfo(dtype).eps)
    # a centre that the rows' own numbers can be, so that what is taken off is what is put back
    return Columns(np.where(centred, mean, 0.0).astype(dtype).astype(float), unit)


def without_digits(X, dtype):
    """Columns of X, float64 rows that were stored as ``dtype``, in which rounding has left no digits but the first."""
    count, mean, spread = moments(X)
    spacing = np.finfo(dtype).eps * np.abs(mean)
    return np.flatnonzero((count >= PRESENT * X.shape[0]) & (spread > 0) & (spread < LOST * spacing))
