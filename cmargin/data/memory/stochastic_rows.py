"""Rows in memory as stochastic and low-rank solvers read them: scores, second moments, whitened rows."""

import numpy as np

from cmargin._core.sgd import _low_rank, _whiten
from cmargin._core.util._arrays import square_sum, total
from cmargin._runtime.blas_threads import single_threaded_blas
from cmargin._runtime.workspace import give_back
from cmargin.data.arrays import dense

SAMPLE_ROWS, SAMPLE_NUMBERS = 512, 1 << 19  # rows of a subset copied at a time: 512, or as many as hold 4 MB of float64
CHUNK_FLOPS = 2e10  # work between two checks for Ctrl-C: about a quarter of a second
LARGE = 1 << 25  # bytes of whitened rows for which memory that holds nothing is first given back


class NonFiniteCurvature(ValueError):
    """The second moment of ``group``, of so many, cannot be inverted: it holds NaN or infinity, or LAPACK failed."""

    def __init__(self, group, n_groups):
        self.group, self.n_groups = group, n_groups
        super().__init__(f"The second moment of group {group} of {n_groups} holds NaN or infinity, or LAPACK failed.")


class StochasticRows:
    """Rows of a data source for one run, read where they are.

    ``source`` is a `MemorySource` that stores no entry in parts: lengths of rows are sums over what is stored.
    """

    by_batches = False

    def __init__(self, source, n_threads):
        self.source, self.n_threads = source, n_threads
        self._X, self.rows = source.X, source.rows
        self.n_rows, self.n_features = source.n_rows, source.n_features
        self.dtype, self.sparse = source.dtype, source.sparse
        self.between_chunks = lambda: None       # called between two kernel calls; may raise

    def _parts(self, n):
        """Slices of 0 .. n - 1 that are read at a time."""
        step = max(SAMPLE_ROWS, SAMPLE_NUMBERS // max(1, self.n_features))
        return [slice(lo, min(lo + step, n)) for lo in range(0, n, step)]

    def scores(self, W, bias, subset):
        out = np.empty((len(subset), len(W)))
        with single_threaded_blas():
            for part in self._parts(len(subset)):
                out[part] = self._X[subset[part]] @ W.T
        out += bias
        return out

    def mean_row(self, subset, weight):
        sums = np.zeros(self.n_features)
        with single_threaded_blas():
            for part in self._parts(len(subset)):
                rows = self._X[subset[part]]
                if not self.sparse:
                    rows = np.asarray(rows, dtype=float, order="C")          # the bits are not the layout's
                sums += rows.T @ weight[part]
        return sums / weight.sum()

    def leading_pairs(self, subset, curvature, k, n_values, centre=None):
        """Leading eigenpairs of (1/m) sum_i c_i x_i x_i' over ``subset`` (m,), one group of c_i at a time.

        Returns values (n_groups, n_values), descending, 0 below the rounding of the data; traces (n_groups,); and
        vectors (n_groups, n_features, k) of the dtype of the rows. Raises NonFiniteCurvature.
        ``curvature``: (n_groups, m) of c_i >= 0.
        ``k``, ``n_values``: eigenvectors and eigenvalues wanted, k <= n_values <= min(m, n_features). Of one group k
        may be a function of its values and trace, since eigenvectors take memory.
        ``centre``: (n_features,), what is taken from every row, or None.
        """
        m, groups = len(subset), len(curvature)
        wide = m < self.n_features
        order = m if wide else self.n_features
        threads = min(self.n_threads, groups)
        values, trace = np.empty((groups, n_values)), np.empty(groups)
        vectors = np.empty((groups, self.n_features, 0 if callable(k) else k), self.dtype)
        status = np.zeros(groups, np.int32)
        block = 0 if self.sparse and wide else _low_rank.block_size() * self.n_features
        centre = np.zeros(0, self.dtype) if centre is None else np.ascontiguousarray(centre, dtype=self.dtype)
        with single_threaded_blas():
            gram = self._gram(subset, centre) if wide else np.empty((0, 0), self.dtype)
            # Groups in chunks, so that a Ctrl-C finds Python between two calls
            flops = 5.0 * order**3 + 2.0 * m * self.n_features * max(vectors.shape[2], order // 8)
            per_call = max(threads, int(CHUNK_FLOPS / flops))
            for lo in range(0, groups, per_call):
                self.between_chunks()
                part, of_order = slice(lo, lo + per_call), np.empty((threads, n_values, order), self.dtype)
                work = np.empty((threads, _low_rank.work_size(self.rows, m, vectors.shape[2], wide)), self.dtype)
                status[part] = _low_rank.low_rank_classes(
                    self.rows, subset, curvature[part], gram, centre, order * np.finfo(self.dtype).eps,
                    values[part], trace[part], vectors[part], of_order, work, threads, self.n_threads)
        if np.any(status):
            raise NonFiniteCurvature(int(np.flatnonzero(status)[0]), groups)
        if callable(k):
            chosen = k(values[0], trace[0])
            vectors = np.empty((1, self.n_features, chosen), self.dtype)
            with single_threaded_blas():
                _low_rank.chosen_eigenvectors(self.rows, subset, curvature[0], centre, of_order[0], values[0],
                                              vectors[0], np.empty(m * chosen, self.dtype), np.empty(block, self.dtype))
        return values, trace, vectors

    def mean_square(self, inverse, subset, weight=None):
        """(n_groups,) mean of x'H*x over the rows of ``subset``, by ``weight``; of x - centre where there is one."""
        weight = np.ones(len(subset)) if weight is None else weight
        if inverse.n_groups == 1 and not inverse.tail_inverse[0]:        # it is |z|^2, all of it
            squares = sum(square_sum(self.whiten(inverse, subset[part]), weight[part])
                          for part in self._parts(len(subset)))
            return np.array([squares / total(weight)])
        sums = np.zeros(inverse.n_groups)
        with single_threaded_blas():
            for part in self._parts(len(subset)):
                self.between_chunks()
                rows = self._X[subset[part]]
                if inverse.centre is not None and not self.sparse:
                    rows = rows - inverse.centre.astype(self.dtype)
                squares = rows.multiply(rows).sum(axis=1) if self.sparse else (rows * rows).sum(axis=1, dtype=float)
                squares = np.asarray(squares, dtype=float).ravel()
                if inverse.centre is not None and self.sparse:
                    squares += inverse.centre @ inverse.centre - 2 * (rows @ inverse.centre)
                length = weight[part] @ squares
                for g in range(inverse.n_groups):
                    low, tail = inverse.diagonal(g)
                    products = np.asarray(rows @ inverse.eigenvectors[g], dtype=float)
                    if inverse.centre is not None and self.sparse:
                        products -= inverse.centre @ inverse.eigenvectors[g]
                    sums[g] += weight[part] @ (products * products) @ low + tail * length
        return sums / weight.sum()

    def _gram(self, subset, centre):
        """Upper triangle of the Gram matrix of the rows of ``subset``, less ``centre`` if it is not empty."""
        if self.sparse:
            part = self._X[subset]
            gram = dense(part @ part.T)
            if len(centre):
                x_dot_mean = np.asarray(part @ centre.astype(float))
                gram = gram - x_dot_mean - x_dot_mean[:, None] + np.square(centre, dtype=float).sum()
            return np.ascontiguousarray(gram, dtype=self.dtype)
        gram = np.empty((len(subset), len(subset)), self.dtype)
        columns = np.empty((len(subset), _low_rank.block_size()), self.dtype)
        _low_rank.gram_matrix(self.rows, subset, centre, columns, gram, self.n_threads)
        return gram

    def whiten(self, inverse, order=None, out=None):
        """Whitened rows (n_rows, inverse.width), C order, into ``out`` if given; those of ``order``, if given, so."""
        n = self.n_rows if order is None else len(order)
        order = np.zeros(0, np.int64) if order is None else order
        if out is None:
            if n * inverse.width * self.dtype.itemsize > LARGE:
                give_back()
            out = np.empty((n, inverse.width), self.dtype)
        P, factor = inverse.eigenvectors[0], np.ascontiguousarray(inverse.factor[0], dtype=self.dtype)
        centre = np.zeros(0, self.dtype) if inverse.centre is None else inverse.centre.astype(self.dtype)
        with single_threaded_blas():
            centre_low = (centre.astype(float) @ P).astype(self.dtype) if len(centre) else centre
        block = _whiten.block_rows()
        work = np.empty((self.n_threads, _whiten.work_size(self.rows, inverse.rank, inverse.tail_root[0])), self.dtype)
        threads = max(1, min(self.n_threads, n // (4 * block)))
        per_call = max(block, int(CHUNK_FLOPS / (4.0 * self.n_features * (inverse.rank + 4))) // block * block)
        with single_threaded_blas():
            for lo in range(0, n, per_call):
                self.between_chunks()
                _whiten.whiten_rows(self.rows, order, P, factor, centre, centre_low, inverse.tail_root[0], lo,
                                    min(lo + per_call, n), out, work, threads)
        return out

    def as_they_are(self):
        """Rows for steps without whitening, C order, copied only where they are not so; CSR rows carry themselves."""
        return np.zeros((self.n_rows, 1), self.dtype) if self.sparse else np.ascontiguousarray(self._X)

    def row_numbers(self, entry_cost):
        """Numbers read for one row on average, an entry of a CSR row counted ``entry_cost`` times."""
        if self.sparse:
            return max(1.0, entry_cost * self.source.entries / self.n_rows)
        return float(max(1, self.n_features))

    def column_scale(self, weight):
        """(n_features,) root mean square of every column, by ``weight`` (n_rows,) or None; 1 for columns of zeros."""
        sums, weight = np.zeros(self.n_features), np.ones(self.n_rows) if weight is None else weight
        with single_threaded_blas():
            for part in self._parts(self.n_rows):
                self.between_chunks()
                rows = self._X[part]
                if self.sparse:
                    squares = rows.astype(np.float64).power(2)
                else:
                    squares = np.square(rows, dtype=np.float64, order="C")       # the bits are not the layout's
                sums += squares.T @ weight[part]
        return np.where(sums > 0, np.sqrt(sums / weight.sum()), 1.0)

    def over_columns(self, scale):
        return StochasticRows(self.source.over_columns(scale), self.n_threads)
