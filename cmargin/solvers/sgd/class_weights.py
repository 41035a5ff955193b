"""The weights of every class while they are trained, in whitened coordinates, with their running mean."""

from dataclasses import dataclass

import numpy as np

from cmargin._core.sgd._class_sgd import mean_stride
from cmargin._runtime.blas_threads import single_threaded_blas


@dataclass
class ClassWeights:
    """Iterates of all classes (doc/methods/slnd.md, "Whitened coordinates")."""

    U: np.ndarray                      # (n_classes, width) whitened weights
    U_mean: np.ndarray                 # mean of U over every eighth step, late ones weighing more; no rows: none kept
    V: np.ndarray                      # (n_classes, n_features) sum of changes times rows where CSR rows carry the tail
    V_lag: np.ndarray                  # ``V_lag / samples`` is what the mean of V falls short; (0, 0) as V without tail
    bias: np.ndarray                   # (n_classes, 2) intercept and its mean
    n_steps: np.ndarray                # (n_classes,) int64
    base: np.ndarray | None = None     # (n_classes, n_features) weights that U starts from after a refresh of H

    @classmethod
    @single_threaded_blas()
    def start(cls, inverse, n_classes, dtype, average, W=None, bias=None, keep_base=False):
        """From zero, or from weights ``W``: exactly, or as ``base`` where the new basis may not span them."""
        d = inverse.eigenvectors.shape[1]
        V = np.zeros((n_classes, d), dtype) if inverse.low_sign < 0 else np.zeros((0, 0), dtype)
        U = np.zeros((n_classes, inverse.width), dtype)
        if W is not None and not keep_base:
            U, exact = inverse.whitened(W)
            V = V if exact is None else exact
        b = np.zeros((n_classes, 2))
        if bias is not None:
            b[:] = np.asarray(bias)[:, None]
        U_mean = U.copy() if average else np.zeros((0, inverse.width), dtype)
        V_lag = np.zeros(V.shape, dtype) if average else np.zeros((0, 0), dtype)
        return cls(U, U_mean, V, V_lag, b, np.zeros(n_classes, np.int64), W if keep_base else None)

    def as_weights_of(self, class_pass, inverse, bias_rate):
        """``class_pass``, told to take its steps on these weights."""
        return class_pass.whitened(self.U, self.U_mean, self.V, self.V_lag, self.bias, self.n_steps, bias_rate,
                                   inverse.tail_inverse, inverse.low_sign)

    def copy(self):
        arrays = (self.U, self.U_mean, self.V, self.V_lag, self.bias, self.n_steps)
        return ClassWeights(*(a.copy() for a in arrays), self.base)

    def finite(self):
        """(n_classes,) whether every number of a class is finite."""
        ok = np.isfinite(self.U).all(axis=1) & np.isfinite(self.bias).all(axis=1)
        return ok & np.isfinite(self.V).all(axis=1) if len(self.V) else ok

    def put_back(self, classes, earlier):
        """Give ``classes`` (a mask) the values they had in ``earlier``."""
        for name in ("U", "U_mean", "V", "V_lag", "bias", "n_steps"):
            mine, theirs = getattr(self, name), getattr(earlier, name)
            if len(mine):
                mine[classes] = theirs[classes]

    # ---- the mean of the weights of several places

    def _arrays(self):
        return self.U, self.U_mean, self.V, self.bias, self.n_steps[:, None], self.V_lag

    def _lag(self):
        """(n_classes, 1) what `linear` takes ``V_lag`` times."""
        samples = (self.n_steps // mean_stride).astype(float)[:, None]
        return np.divide(2.0, samples * (samples + 1), out=np.zeros(samples.shape), where=samples > 0)

    def packed(self, share):
        """The part (n_classes,) of these weights in a mean, in one array; ``V_lag`` as what it takes from ``V``."""
        parts = [share[:, None] * (part if part is not self.V_lag else self._lag() * part)
                 for part in self._arrays() if len(part)]
        return np.concatenate([part.ravel() for part in parts])

    def take(self, mean):
        """Become what `packed` parts add up to."""
        at = 0
        for part in self._arrays():
            if not len(part):
                continue
            found = mean[at:at + part.size].reshape(part.shape)
            if part.dtype == np.int64:
                found = np.rint(found)
            elif part is self.V_lag:
                lag = self._lag()
                found = np.divide(found, lag, out=np.zeros_like(found), where=lag > 0)
            part[...] = found
            at += part.size

    @single_threaded_blas()
    def linear(self, inverse):
        """(W, bias): the mean iterate where one is kept and has a sample, else the last."""
        U, V, bias = self.U, self.V if len(self.V) else None, self.bias[:, 0]
        if len(self.U_mean):
            sampled = self.n_steps >= mean_stride
            U = np.where(sampled[:, None], self.U_mean, self.U)
            bias = np.where(sampled, self.bias[:, 1], bias)
            if V is not None:
                lags = zip(self._lag().astype(V.dtype), self.V_lag, strict=True)
                V = (v - lag * behind for v, (lag, behind) in zip(self.V, lags, strict=True))
        W = inverse.weights(U, V)
        return (W if self.base is None else self.base + W), bias.copy()
