"""Mini-batch passes of the multinomial risk over whitened rows on a device: twin of `_core/sgd/_softmax_sgd`.

The weights of a pass stay on the device and come back at its end. A batch costs the launches of its operations, so
that what can be is done for all batches at once, before them or after.
"""

import numpy as np

from cmargin._core.sgd._softmax_sgd import LARGEST_LENGTH, LEAST_DAMPING
from cmargin._core.util._arrays import total
from cmargin.data.device.arrays import to_host


class DevicePasses:
    """`SoftmaxPasses` over a tensor ``Z`` of whitened rows; parameters as there, ``source`` a
    `DeviceStochasticRows`.
    """

    def __init__(self, source, inverse, Z, order, truth, weight, n_classes, batch):
        self.source, self.inverse, self.Z, self.batch = source, inverse, Z, batch
        self.rows, self.at, self.xp = source.source.rows, source.source.rows.at, source.source.rows.xp
        self.weight = np.zeros(0) if weight is None else weight
        self.places, self.truth = self.at.put(order), self.at.put(truth)[:, None]
        length = self.at.widened(self.xp.sum(Z * Z, axis=1))
        most = min(LARGEST_LENGTH, float(self.xp.finfo(length.dtype).max))
        self.length = self.xp.where(length < most, length, self.xp.full_like(length, most))
        self.mean_length = min(float(inverse.mean_square[0]), most)
        self.classes, self.sums = self.at.put(np.arange(n_classes))[None, :], (0.0, 0.0)

    def run(self, weights, batches, step, bias_rate, n_train, held=()):
        """Step through ``batches`` (their first rows) with steps ``step`` (n_batches,)."""
        xp, put, dtype = self.xp, self.at.put, self.at.dtype
        U, b, average = put(weights.U, dtype), put(weights.bias[:, 0]), len(weights.U_mean) > 0
        U_mean, b_mean = put(weights.U_mean if average else weights.U, dtype), put(weights.bias[:, 1])
        slices = [slice(lo, min(lo + self.batch, n_train)) for lo in batches.tolist()]
        order = np.concatenate([np.arange(0), *(np.arange(rows.start, rows.stop) for rows in slices)])
        eta = np.repeat(step, [rows.stop - rows.start for rows in slices])
        factor, base, met, first, done = self.factors(order, eta, bias_rate), self.based(weights.base), [], 0, 0
        try:
            for k, rows in enumerate(slices):
                self.source.between_chunks()
                Z, last = self.Z[rows, :], first + rows.stop - rows.start
                truth, shares, *of_loss = self.shares(rows, Z, U, b, base)
                G = (shares - truth) * factor[first:last, :]               # eta s damping (softmax - indicator)
                met.append(of_loss)
                U = U - G.T @ Z
                b = b - bias_rate * xp.sum(G, axis=0, dtype=self.at.wide)
                first, done = last, k + 1
                sample, left = divmod(weights.n_done + done, weights.stride)
                if average and not left:                                   # sample s weighs s: late iterates count more
                    U_mean, b_mean = (mean + 2 / (sample + 1) * (now - mean)
                                      for mean, now in ((U_mean, U), (b_mean, b)))
        finally:                                                           # whatever ends it
            weights.U[...], weights.bias[:, 0], weights.bias[:, 1] = to_host(U), to_host(b), to_host(b_mean)
            if average:
                weights.U_mean[...] = to_host(U_mean)
            weights.n_done += done
            self.sums = self.losses_and_errors(met, order)

    def factors(self, order, eta, bias_rate):
        """(n, 1): step, weight and damping of the rows in the ``order`` in which they are met; one far out counts less.
        """
        xp, at, weight = self.xp, self.at, self.weighted(eta, order)
        eta = at.put(eta)
        length = xp.take(self.length, at.put(order))
        damping = (1 + eta * (self.mean_length + bias_rate) / 4) / (1 + eta * (length + bias_rate) / 4)
        damping = xp.where(damping > LEAST_DAMPING, damping, xp.full_like(damping, LEAST_DAMPING))
        return at.narrowed(damping * at.put(weight))[:, None]

    def weighted(self, a, rows):
        """An array in memory of numbers of ``rows``, times their weights."""
        return a * self.weight[rows] if len(self.weight) else a

    def shares(self, rows, Z, U, b, base):
        """Of the slice ``rows``: indicator and softmax, (n, n_classes), and the logarithms' parts of the losses, (n,):
        the score of a row's class less its largest, and the sum of exp(score - largest)."""
        xp, M = self.xp, self.scores_of(rows, Z, U, b, base)
        truth = xp.astype(self.truth[rows, :] == self.classes, M.dtype)
        M = M - xp.max(M, axis=1, keepdims=True)
        e = xp.exp(M)
        whole = xp.sum(e, axis=1, keepdims=True)
        return truth, e / whole, xp.sum(M * truth, axis=1), whole[:, 0]

    def scores_of(self, rows, Z, U, b, base):
        M = Z @ U.T + self.at.narrowed(b)
        if base is not None:
            M = M + (self.xp.take(self.rows.X, self.places[rows], axis=0) @ base[0].T - base[1])
        return M

    def losses_and_errors(self, met, order):
        """Sums over the rows that were ``met``, the first of ``order``."""
        if not met:
            return 0.0, 0.0
        xp, at = self.xp, self.at
        of_truth, whole = (at.widened(xp.concat(parts)) for parts in zip(*met, strict=True))
        s = at.put(self.weighted(np.ones(of_truth.shape[0]), order[:of_truth.shape[0]]))
        return float(xp.sum(s * (xp.log(whole) - of_truth))), float(xp.sum(s * xp.astype(of_truth < 0, at.wide)))

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

    def scores(self, weights, held, last, mean=None):
        """(n, n_classes) scores of the rows of ``held`` to the last by the mean of ``weights``."""
        mean, rows = weights.mean(self.inverse, copy=False) if mean is None else mean, slice(int(held[0]), last)
        U, b = self.at.put(mean.U, self.at.dtype), self.at.put(mean.bias[:, 0])
        return np.ascontiguousarray(to_host(self.scores_of(rows, self.Z[rows, :], U, b, self.based(mean.base))))
