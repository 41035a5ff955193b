"""SLND and BSN: seconds a pass (kernel and whole fit), passes to accuracy, peak memory; accuracy beside each."""

from functools import partial

import numpy as np
import scipy.sparse as sp

from .common import digits, gaussian_classes

try:
    from cmargin import BSNClassifier, SLNDClassifier
    from cmargin.data import open_rows
    from cmargin.solvers.per_class import class_streams
    from cmargin.solvers.sgd.class_lists import ClassLists
    from cmargin.solvers.sgd.class_passes import ClassPasses
    from cmargin.solvers.sgd.class_weights import ClassWeights
    from cmargin.solvers.sgd.low_rank import build_inverse
    from cmargin.solvers.sgd.softmax_passes import SoftmaxPasses
    from cmargin.solvers.sgd.softmax_weights import SoftmaxWeights
except ImportError:  # a commit before these existed: asv marks the benchmarks as failed and goes on
    SLNDClassifier = None


def indicator(y):
    return sp.csc_matrix((np.ones(len(y), np.int8), (np.arange(len(y)), y)))


class KernelPass:
    """One balanced pass of 200 classes over whitened rows, and the whitening itself."""

    params = ([20, 200], ["float32", "float64"], [1, 2])
    param_names = ("rank", "dtype", "threads")

    def setup(self, rank, dtype, threads):
        X, y = gaussian_classes(20000, 400, 200, np.dtype(dtype))
        self.source, self.lists = open_rows(X).stochastic_rows(threads), ClassLists.from_indicator(indicator(y), 1)
        self.inverse, _ = build_inverse(self.source, np.arange(2000), np.ones((1, 2000)), rank, "drop")
        self.Z = self.source.whiten(self.inverse)
        self.weights = ClassWeights.start(self.inverse, 200, X.dtype, True)
        self.passes = ClassPasses(self.source, self.lists, None, "logistic", class_streams(3, 200))
        self.step, self.rate = np.full(200, 1e-3), np.ones(1)

    def time_pass(self, rank, dtype, threads):
        self.passes.plain(self.Z, self.inverse, self.weights, self.step, self.rate)

    def time_whiten(self, rank, dtype, threads):
        self.source.whiten(self.inverse)

    def track_nanoseconds_per_step(self, rank, dtype, threads):
        import time

        seconds = []
        for _ in range(15):
            begin = time.perf_counter()
            self.time_pass(rank, dtype, threads)
            seconds.append(time.perf_counter() - begin)
        return 1e9 * float(np.median(seconds)) / int(self.lists.lengths.sum())

    track_nanoseconds_per_step.unit = "ns"


class MultinomialPass:
    """One pass of softmax batches over 20,000 x 1,812 whitened rows, 200 classes, and its share of the sgemm rate."""

    params = ([1, 2],)
    param_names = ("threads",)
    N, D, C, BATCH = 20000, 1812, 200, 128

    def setup(self, threads):
        X, y = gaussian_classes(self.N, self.D, self.C)
        source, centre = open_rows(X).stochastic_rows(threads), X[:1000].mean(axis=0, dtype=float)
        inverse, _ = build_inverse(source, np.arange(1000), np.ones((1, 1000)), 2, "scale", None, centre)
        order = np.random.default_rng(3).permutation(self.N)
        self.passes = SoftmaxPasses(source, inverse, source.whiten(inverse, order), order, y[order].astype(np.int64),
                                    None, self.C, self.BATCH)
        W = np.zeros((self.C, self.D), np.float32)
        self.weights = SoftmaxWeights.start(inverse, W, np.zeros(self.C), True, 4)
        self.batches = np.arange(0, self.N, self.BATCH)
        self.step = np.full(len(self.batches), 1e-3)

    def time_pass(self, threads):
        self.passes.run(self.weights, self.batches, self.step, 1.0, self.N)

    def track_share_of_sgemm(self, threads):
        """Two products of N x D x C a pass, against sgemm of a square of 2,048 on as many threads."""
        from measure.limits import best_of, sgemm_rate

        return 4.0 * self.N * self.D * self.C / best_of(lambda: self.time_pass(threads), 7)[0] / sgemm_rate(threads)

    track_share_of_sgemm.unit = "share"


class OptimumRead:
    """One read of 20,000 x 500 rows for the multinomial optimum, one thread, beside NumPy's two products with them."""

    params = ([4, 10, 64], ["float32", "float64"])
    param_names = ("classes", "dtype")

    def setup(self, n_classes, dtype):
        self.X, y = gaussian_classes(20000, 500, n_classes, np.dtype(dtype))
        self.source = open_rows(self.X).softmax_pass(y.astype(np.int64), None, n_classes, True, 1)
        self.V = np.random.default_rng(4).standard_normal((501, n_classes)) / 500**0.5

    def time_read(self, n_classes, dtype):
        self.source.risk(self.V)

    def track_over_two_products(self, n_classes, dtype):
        from threadpoolctl import threadpool_limits

        from measure.limits import best_of

        W = self.V[:-1].astype(dtype)
        with threadpool_limits(1):
            products = best_of(lambda: self.X.T @ (self.X @ W), 7)[0]
            return best_of(lambda: self.time_read(n_classes, dtype), 7)[0] / products

    track_over_two_products.unit = "ratio"


class WholeFit:
    """A fit with its preprocessing, default parameters but the tail, and what it is worth."""

    params = (["SLND", "BSN", "SLND one-vs-rest"], ["scale", "drop"], ["digits", "hundred classes"])
    param_names = ("classifier", "tail", "data")

    def setup(self, classifier, tail, data):
        if data == "digits":
            self.X, self.X_test, self.y, self.y_test = digits()
        else:
            X, y = gaussian_classes(12000, 300, 100)
            self.X, self.X_test, self.y, self.y_test = X[:9000], X[9000:], y[:9000], y[9000:]
        self.make = {"SLND": SLNDClassifier, "BSN": BSNClassifier,
                     "SLND one-vs-rest": partial(SLNDClassifier, loss="logistic")}[classifier]

    def fit(self, tail, **parameters):
        return self.make(tail=tail, random_state=3, n_jobs=2, **parameters).fit(self.X, self.y)

    def time_fit(self, classifier, tail, data):
        self.fit(tail)

    def peakmem_fit(self, classifier, tail, data):
        self.fit(tail)

    def track_seconds_per_pass(self, classifier, tail, data):
        seconds = self.fit(tail).history_["seconds_steps"]
        return float(np.median(np.diff(seconds)))

    track_seconds_per_pass.unit = "s"

    def track_test_accuracy(self, classifier, tail, data):
        return float(self.fit(tail).score(self.X_test, self.y_test))

    track_test_accuracy.unit = "share"

    def track_passes_to_accuracy(self, classifier, tail, data):
        """Passes until the test accuracy is within 0.01 of that after ten; a worse step rule shows here."""
        curve = []
        self.fit(tail, callback=lambda model: curve.append(model.score(self.X_test, self.y_test)))
        return 1 + int(np.flatnonzero(np.array(curve) >= curve[-1] - 0.01)[0])

    track_passes_to_accuracy.unit = "passes"
