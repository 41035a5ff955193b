"""Rows on a device as one matrix: their blocks, products with them, and what goes to memory and back."""

import math

import numpy as np

from cmargin.data.device.arrays import HALF, Device, beside, brought, on_device, refuse_tensors, to_host

BLOCK_NUMBERS = 1 << 27        # of X that are read at a time; what is made of them on the way is as large
CPU_NUMBERS = 1 << 20          # where they are read by this machine's processor, from its cache the second time
PIECE = 256                    # rows whose products are added up apart where there is no double precision


class DeviceRows:
    """The tensor ``X`` (n, m), of any number of dimensions before it is checked, as what may be given to `fit`."""

    def __init__(self, X):
        refuse_tensors(X, "X")
        self.X, self.at = X, Device(X)
        self.xp, self.shape, self.ndim = self.at.xp, tuple(X.shape), X.ndim

    @property
    def dtype(self):
        """NumPy's; None for a dtype that fits cannot go on with."""
        for name in ("float32", "float64"):
            if self.X.dtype == getattr(self.xp, name):
                return np.dtype(name)
        return None

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, rows):
        lo, hi, _ = rows.indices(len(self))
        return DeviceRows(self.X[lo:hi, ...])

    @property
    def n_features(self):
        return self.shape[1]

    @property
    def blocks(self):
        return self.blocks_of(len(self))

    def blocks_of(self, n):
        """Slices of so many such rows, from the shape alone: sums are made block by block, folded in their order."""
        most = CPU_NUMBERS if self.at.on_cpu else BLOCK_NUMBERS
        size = max(PIECE, most // max(1, self.n_features) // PIECE * PIECE)
        return [slice(lo, min(lo + size, n)) for lo in range(0, n, size)]

    def as_float(self):
        """In a precision to compute with: whole numbers in the widest, half precision in single, which is exact."""
        if self.dtype is not None:
            return self
        xp, kind = self.xp, self.X.dtype
        if str(kind).rpartition(".")[2] in HALF:
            return DeviceRows(xp.astype(self.X, xp.float32))
        if xp.isdtype(kind, ("integral", "bool")):
            return DeviceRows(xp.astype(self.X, self.at.wide))
        raise ValueError(f"Rows on a device must be real numbers, whole or of 16, 32 or 64 bits; X holds {kind}.")

    def checked(self, check):
        """Rows of floats; ``check`` sees, in memory, a number that is none to compute with, if there is any."""
        rows = self.as_float()
        broken = rows.not_finite()
        if broken is not None:
            check(np.array([broken], rows.dtype))
        return rows

    def not_finite(self):
        """NaN or infinity where there is one, NaN first; None where all numbers are finite."""
        xp = self.xp
        if all(bool(xp.all(xp.isfinite(self.X[block, :]))) for block in self.blocks):
            return None
        return np.nan if bool(xp.any(xp.isnan(self.X))) else np.inf

    # ------------------------------------------------------------ products

    def wide(self, block):
        """The rows of a block in the precision of sums."""
        return self.at.widened(self.X[block, :])

    def of_columns(self, w):
        """A vector from memory as what rows are multiplied by: (m,), and the intercept."""
        m = self.n_features
        return self.at.put(w[:m]), float(w[m]) if len(w) > m else 0.0

    def sums_of(self, X, R):
        """sum r_ik x_i, (n_columns of R, m): ``X`` (n, m) rows and ``R`` (n, k) in the precision of sums.

        Where that is single, products are added up over `PIECE` rows and their sums after that: rounding then does not
        grow with the number of rows.
        """
        xp, (n, m), k = self.xp, X.shape, R.shape[1]
        if self.at.exact:
            return R.T @ X
        whole = n // PIECE * PIECE
        pieces = (xp.permute_dims(xp.reshape(R[:whole, :], (-1, PIECE, k)), (0, 2, 1))
                  @ xp.reshape(X[:whole, :], (-1, PIECE, m)))
        return xp.sum(pieces, axis=0) + R[whole:, :].T @ X[whole:, :]

    def folded(self, packs):
        """The sum of the blocks' packed sums, in their order, a float64 array in memory: all that comes back."""
        if self.at.exact:
            total = None
            for pack in packs:
                total = pack if total is None else total + pack
            return None if total is None else np.array(to_host(total))
        total = None
        for pack in packs:                           # a device without double precision: added up here
            pack = to_host(pack).astype(float)
            total = pack if total is None else total + pack
        return total

    def folded_by_name(self, blocks):
        """`folded` of blocks of several sums each: dicts of arrays by name; {} where there is no block."""
        xp, shapes = self.xp, {}

        def packs():
            for sums in blocks:
                shapes.update((name, tuple(a.shape)) for name, a in sums.items())
                yield xp.concat([a if a.ndim == 1 else xp.reshape(a, (-1,)) for a in sums.values()])

        totals, ends = self.folded(packs()), np.cumsum([math.prod(shape) for shape in shapes.values()])
        return {name: totals[end - math.prod(shape):end].reshape(shape)
                for (name, shape), end in zip(shapes.items(), ends, strict=True)}

    # ------------------------------------------------------------ to memory and back

    def take(self, rows):
        """Rows of an ascending array of places, on the device."""
        return DeviceRows(self.xp.take(self.X, self.at.put(np.asarray(rows, np.int64)), axis=0))

    def exactly(self, block):
        """The rows of a block in float64, on the device or, where it has none, in memory; and the functions for it."""
        if self.at.exact:
            return self.wide(block), self.xp
        return np.asarray(to_host(self.X[block, :]), float), np

    @staticmethod
    def like(a):
        """Another tensor of the same library."""
        return DeviceRows(a)

    def in_memory(self):
        """A copy."""
        return np.array(to_host(self.X))

    def back(self, a):
        """An array from memory, where X lives."""
        return self.at.put(a, self.at.dtype)

    def linear_scores(self, coef, intercept):
        """<w_c, x_i> + b_c, (n, n_problems) on the device, in the dtype of the rows."""
        W, b = self.at.put(coef.T, self.at.dtype), self.at.put(intercept, self.at.dtype)
        return self.X @ W + b


def of_tensors(X, y=None, sample_weight=None):
    """`DeviceRows` of a tensor, labels and weights beside it in memory; what are no tensors, as they are."""
    X = brought(X, "X")
    rows = DeviceRows(X) if on_device(X) else X
    x = X.X if isinstance(X, DeviceRows) else X
    return rows, beside(x, y, "y"), beside(x, sample_weight, "sample_weight")
