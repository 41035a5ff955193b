"""Mini-batch passes of the multinomial risk over whitened rows on a device: twin of `_core/stochastic/_softmax_sgd`.

The weights of a pass stay on the device and come back at its end.
"""

import numpy as np

from cmargin._core.small._arrays import total
from cmargin._core.stochastic._softmax_sgd import LARGEST_LENGTH, LEAST_WORTH
from cmargin.homes.device.arrays import to_host


class DevicePasses:
    """`SoftmaxPasses` over a tensor ``Z`` of whitened rows; parameters as there, ``home`` a `DeviceStochasticRows`."""

    def __init__(self, home, inverse, Z, order, truth, weight, n_classes, batch):
        self.home, self.inverse, self.Z, self.batch = home, inverse, Z, batch
        self.rows, self.at, self.xp = home.home.rows, home.home.rows.at, home.home.rows.xp
        self.weight = np.zeros(0) if weight is None else weight
        self.places, self.truth = self.at.put(order), self.at.put(truth)
        self.row_weight = None if weight is None else self.at.put(weight, self.at.dtype)
        length = self.at.widened(self.xp.sum(Z * Z, axis=1))
        most = min(LARGEST_LENGTH, float(self.xp.finfo(length.dtype).max))
        self.length = self.xp.where(length < most, length, most)
        self.mean_length = min(float(inverse.mean_square[0]), most)
        self.classes, self.sums = self.at.put(np.arange(n_classes)), [0.0, 0.0]

    def run(self, weights, batches, step, bias_rate, n_train, held=()):
        """Step through ``batches`` (their first rows) with steps ``step`` (n_batches,)."""
        xp, put, dtype = self.xp, self.at.put, self.at.dtype
        U, b, average = put(weights.U, dtype), put(weights.bias[:, 0]), len(weights.U_mean) > 0
        U_mean, b_mean = put(weights.U_mean if average else weights.U, dtype), put(weights.bias[:, 1])
        base, met, done = self.based(weights.base), [], 0
        try:
            for k, lo in enumerate(batches.tolist()):
                self.home.between_chunks()
                rows, eta = slice(lo, min(lo + self.batch, n_train)), float(step[k])
                G, loss, wrong = self.gradient(rows, U, b, base)
                worth = (1 + eta * (self.mean_length + bias_rate) / 4) / (1 + eta * (self.length[rows] + bias_rate) / 4)
                G = G * self.at.narrowed(xp.where(worth > LEAST_WORTH, worth, LEAST_WORTH))[:, None]
                met.append((loss, wrong))
                U = U - eta * xp.matmul(G.T, self.Z[rows, :])
                b = b - eta * bias_rate * self.at.widened(xp.sum(G, axis=0))
                done = k + 1
                sample, left = divmod(weights.n_done + done, weights.stride)
                if average and not left:                                   # sample s weighs s: late iterates count more
                    U_mean, b_mean = (mean + 2 / (sample + 1) * (now - mean)
                                      for mean, now in ((U_mean, U), (b_mean, b)))
        finally:                                                           # whatever ends it
            weights.U[...], weights.bias[:, 0], weights.bias[:, 1] = to_host(U), to_host(b), to_host(b_mean)
            if average:
                weights.U_mean[...] = to_host(U_mean)
            weights.n_done += done
            self.sums = [float(xp.sum(self.at.widened(xp.concat(parts)))) for parts in zip(*met, strict=True)] or [0, 0]

    def gradient(self, rows, U, b, base):
        """G = s (softmax - indicator) of a slice of rows, their losses and the weight of those put elsewhere."""
        xp = self.xp
        M = xp.matmul(self.Z[rows, :], U.T) + self.at.narrowed(b)
        if base is not None:
            X = xp.take(self.rows.X, self.places[rows], axis=0)
            M = M + (xp.matmul(X, base[0].T) - base[1])
        there = self.truth[rows][:, None] == self.classes[None, :]
        top = xp.max(M, axis=1, keepdims=True)
        e = xp.exp(M - top)
        whole = xp.sum(e, axis=1, keepdims=True)
        of_truth = xp.sum(xp.where(there, M, 0.0), axis=1, keepdims=True)
        s = 1.0 if self.row_weight is None else self.row_weight[rows][:, None]
        G = s * (e / whole - xp.astype(there, M.dtype))
        return G, s * (top - of_truth + xp.log(whole)), s * xp.astype(of_truth < top, M.dtype)

    def based(self, base):
        """Weights outside the basis, on the device, and their scores of the centre."""
        if base is None:
            return None
        return self.at.put(base, self.at.dtype), self.at.put(base @ self.inverse.centre, self.at.dtype)

    def met(self, n):
        """Sums over the rows of the last `run`, each before its step: weighted loss, error, weight."""
        loss, wrong = self.sums
        return loss if np.isfinite(loss) else np.inf, wrong, self.weight_of(0, n)

    def weight_of(self, first, last):
        return total(self.weight[first:last]) if len(self.weight) else float(last - first)

    def losses(self, weights, held, last, mean=None):
        """Weighted log-loss of the rows of ``held`` to the last by the mean of ``weights``; inf on overflow."""
        mean, first = weights.mean(self.inverse, copy=False) if mean is None else mean, int(held[0])
        if not mean.finite():
            return np.full(last - first, np.inf)
        U, b = self.at.put(mean.U, self.at.dtype), self.at.put(mean.bias[:, 0])
        base, n = self.based(mean.base), max(1, self.batch)
        parts = [self.gradient(slice(lo, min(lo + n, last)), U, b, base)[1][:, 0] for lo in range(first, last, n)]
        return np.array(to_host(self.xp.concat(parts)), float)
