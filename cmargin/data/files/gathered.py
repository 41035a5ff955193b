"""A few rows on their way out of a read, into memory: chosen by hash, or listed."""

import numpy as np
import scipy.sparse as sp

from cmargin._core.rows._row_sample import chosen


class Growing:
    """An array that grows without a second copy of it, for C's realloc moves pages, not numbers."""

    def __init__(self, shape, dtype):
        self.array = np.empty((0, *shape), dtype)

    def add(self, more):
        n = len(self.array)
        self.array.resize((n + len(more), *self.array.shape[1:]), refcheck=False)
        self.array[n:] = more


class GatheredRows:
    """Copies of rows, dense in C order or CSR."""

    def __init__(self, source):
        self.sparse, self.shape = source.sparse, (source.n_features,)
        self.numbers = Growing(() if source.sparse else self.shape, source.dtype)
        self.columns, self.lengths = None, [np.zeros(1, np.int64)]

    def add(self, X, rows):
        """Rows ``rows`` of ``X``."""
        if not self.sparse:
            self.numbers.add(X[rows])
            return
        X = X[rows]
        if self.columns is None:
            self.columns = Growing((), X.indices.dtype)
        self.numbers.add(X.data)
        self.columns.add(X.indices)
        self.lengths.append(np.diff(X.indptr).astype(np.int64))

    def matrix(self):
        if not self.sparse:
            return self.numbers.array
        starts = np.cumsum(np.concatenate(self.lengths))
        columns = np.empty(0, np.int32) if self.columns is None else self.columns.array
        return sp.csr_matrix((self.numbers.array, columns, starts), shape=(len(starts) - 1, *self.shape))


class SampleQuestion:
    """Rows chosen with these probabilities, as `RowPass.gather_sample` has it, out of one read."""

    wanted, answer, expected = True, None, 0

    def __init__(self, source, signed_weight, positives, negatives, seed, column_weight):
        self.signed_weight, self.asked = signed_weight, (positives, negatives, seed)
        self.weight, self.rows = column_weight, GatheredRows(source)
        self.places, self.chances = [np.empty(0, np.intp)], [np.empty(0)]

    def begin(self):
        pass

    def over(self, chunk):
        signed_weight = self.signed_weight[chunk.first:chunk.first + chunk.X.shape[0]]
        places, chance, _ = chosen(chunk.rows, signed_weight, *self.asked, chunk.first, self.weight)
        self.rows.add(chunk.X, places)
        self.places.append(places + chunk.first)
        self.chances.append(chance)

    def end(self):
        self.answer = self.rows.matrix(), np.concatenate(self.places), np.concatenate(self.chances)


class ListedQuestion:
    """Rows of these places, ascending, out of one read; the answer is what ``made`` makes of them."""

    wanted, answer = True, None

    def __init__(self, source, places, made):
        self.places, self.made, self.expected, self.rows = places, made, len(places), GatheredRows(source)

    def begin(self):
        pass

    def over(self, chunk):
        lo, hi = np.searchsorted(self.places, [chunk.first, chunk.first + chunk.X.shape[0]])
        self.rows.add(chunk.X, self.places[lo:hi] - chunk.first)

    def end(self):
        self.answer = self.made(self.rows.matrix())


class VisitQuestion:
    """Shows every chunk of a read to ``see(first row, rows)``."""

    wanted, answer, expected = True, None, 0

    def __init__(self, see):
        self.see = see

    def begin(self):
        pass

    def over(self, chunk):
        self.see(chunk.first, chunk.X)

    def end(self):
        pass
