"""The weights of all classes while the multinomial risk is minimised, in whitened coordinates, with their mean."""

import math
from dataclasses import dataclass

import numpy as np

from cmargin._core.util._arrays import all_finite, any_nonzero, copied, total, zeros
from cmargin._runtime.blas_threads import single_threaded_blas


@dataclass
class SoftmaxWeights:
    """Iterates of `_core/sgd/_softmax_sgd.pyx`, and the way from and to ``W``."""

    U: np.ndarray                      # (n_classes, width) whitened weights
    U_mean: np.ndarray                 # mean of U over every ``stride``-th batch, sample s weighing s, or no rows
    # (n_features, n_classes) sum of changes times rows where CSR rows carry the tail, else (0, 0). Classes lie beside
    # each other, because a batch touches the columns of its rows only
    V: np.ndarray
    V_lag: np.ndarray                  # ``V_lag / samples`` is what the mean of V falls short; (0, 0) as V without tail
    # (n_classes, 3) sum of the changes, sum of changes times what the centre takes from a row, and the mean of the
    # first; (0, 3) where no row carries the tail
    shift: np.ndarray
    bias: np.ndarray                   # (n_classes, 2) score of the centre, b + <w, centre>, and its mean
    stride: int
    n_done: int = 0                    # batches behind U
    base: np.ndarray | None = None     # (n_classes, n_features) weights that U starts from where the basis lacks them

    @classmethod
    @single_threaded_blas()
    def start(cls, inverse, W, bias, average, stride):
        """From ``W`` (n_classes, n_features) and ``bias`` (n_classes,); as ``base`` where the basis lacks them."""
        n, d = W.shape
        dtype, tail, begun = W.dtype, inverse.low_sign < 0, any_nonzero(W.reshape(-1))
        base = None if not begun or inverse.spans(W) else W
        U = zeros((n, inverse.width), dtype)
        V = zeros((d, n), dtype) if tail else np.empty((0, 0), dtype)
        shift = zeros((n if tail else 0, 3))
        if base is None and begun:
            U, exact = inverse.whitened(W)
            if tail:
                V = np.ascontiguousarray(exact.T)
                shift[:, 1] = exact @ inverse.centre
        b = np.repeat((bias + W @ inverse.centre if begun else bias)[:, None], 2, axis=1)
        U_mean = copied(U) if average else np.empty((0, inverse.width), dtype)
        V_lag = zeros(V.shape, dtype) if average else np.empty((0, 0), dtype)
        return cls(np.ascontiguousarray(U), U_mean, V, V_lag, shift, b, stride, base=base)

    @property
    def n_samples(self):
        return self.n_done // self.stride

    def finite(self):
        return all([all_finite(a.reshape(-1)) for a in (self.U, self.bias, self.V, self.shift) if len(a)])

    @single_threaded_blas()
    def mean(self, inverse, copy=True):
        """The mean iterate where one is kept and has a sample, else the last; ``copy``: one that no step moves."""
        mean, n = len(self.U_mean) > 0 and self.n_samples > 0, self.n_samples
        U, V, shift = self.U_mean if mean else self.U, self.V, self.shift
        if mean and len(shift):
            V = self.V_lag * V.dtype.type(-2 / (n * (n + 1)))
            V += self.V
            shift = copied(shift)
            shift[:, 0] = shift[:, 2]
            shift[:, 1] = inverse.centre @ V - shift[:, 0] * (inverse.centre @ inverse.centre)
        bias = np.repeat(self.bias[:, int(mean)][:, None], 2, axis=1)
        nothing = np.empty((0, U.shape[1]), U.dtype), np.empty((0, 0), U.dtype)      # no views, which would keep all
        found = SoftmaxWeights(U, nothing[0], V, nothing[1], shift, bias, self.stride, base=self.base)
        return found.apart_from(self) if copy else found

    def apart_from(self, other):
        """These weights without arrays that are ``other``'s too, and that its steps move."""
        theirs = {id(a) for a in (other.U, other.U_mean, other.V, other.shift, other.bias)}
        U, V, shift, bias = (copied(a) if id(a) in theirs else a for a in (self.U, self.V, self.shift, self.bias))
        return SoftmaxWeights(U, self.U_mean, V, self.V_lag, shift, bias, self.stride, self.n_done, self.base)

    def times(self, factor):
        """Weights whose scores are these times a number; no step moves them."""
        def scaled(a):
            return a * a.dtype.type(factor)

        base = None if self.base is None else scaled(self.base)
        return SoftmaxWeights(scaled(self.U), scaled(self.U_mean), scaled(self.V), scaled(self.V_lag),
                              scaled(self.shift), scaled(self.bias), self.stride, self.n_done, base)

    def size(self, inverse):
        """Norm of the weights over the columns of X."""
        return math.sqrt(sum(total(np.square(w, dtype=np.float64)) for w in self.linear(inverse)[0]))

    def join(self, other, factor, share):
        """Become the mean of ``other`` and of ``factor`` times these, which count as ``share`` of the whole."""
        for mine, theirs in zip(self._known(), other._known(), strict=True):
            mine *= mine.dtype.type(factor * share)
            mine += theirs * theirs.dtype.type(1 - share)

    def _known(self):
        """The arrays that make scores."""
        return [self.U, self.V, self.shift, self.bias, *([] if self.base is None else [self.base])]

    # ------------------------------------------------------------ the mean of the weights of several walkers

    def _moved(self):
        """The arrays that steps write to."""
        return self.U, self.U_mean, self.V, self.V_lag, self.shift, self.bias

    def packed(self, part):
        """These weights ``part`` times, a float, in one float64 array, which ends with ``part``."""
        return np.concatenate([part * np.ravel(array).astype(float) for array in self._moved()] + [[part]])

    def take(self, total):
        """Become the mean of the weights whose `packed` arrays add up to ``total``."""
        mean, at = total / total[-1], 0
        for array in self._moved():
            array[...] = mean[at:at + array.size].reshape(array.shape)
            at += array.size

    @single_threaded_blas()
    def linear(self, inverse):
        """(W, bias) of the mean iterate where one is kept and has a sample, else of the last."""
        at = self.mean(inverse, copy=False) if len(self.U_mean) else self
        V = None
        if len(at.shift):
            V = np.outer(at.shift[:, 0], inverse.centre).astype(at.V.dtype, copy=False)
            np.subtract(at.V.T, V, out=V)
        W = inverse.weights(at.U, V)
        W = W if self.base is None else self.base + W
        return W, at.bias[:, 0] - W @ inverse.centre
