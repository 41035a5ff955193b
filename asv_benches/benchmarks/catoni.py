"""Kernels of the margin toolkit: Ψ per million points, location per million margins, each beside the NumPy call that
its target is stated in. Every time is tracked next to a number that says whether the answer was still right.
"""

import time

import numpy as np


def margins_module():
    """The package under test, or a skip on commits that do not have it yet."""
    try:
        from cmargin import margins
    except ImportError as missing:
        raise NotImplementedError from missing
    if not hasattr(margins, "psi_transform"):
        raise NotImplementedError
    return margins


def median_seconds(call, repeats=7):
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds))


def ratio(call, yardstick, repeats=7):
    """Seconds of ``call`` over seconds of ``yardstick``, taken in turns so that both meet the same machine."""
    pairs = [(median_seconds(call, 1), median_seconds(yardstick, 1)) for _ in range(repeats)]
    return float(np.median([mine / other for mine, other in pairs]))


class PsiTransform:
    """One level from each of the three cases of the transform."""

    params = [[0.5, 1.0, 2.0], [10**5, 10**6]]
    param_names = ["margin", "n_points"]

    def setup(self, margin, n_points):
        self.margins = margins_module()
        self.a = np.random.default_rng(5).random(n_points)
        self.value = self.margins.psi_transform(self.a, margin)

    def time_psi_transform(self, margin, n_points):
        self.margins.psi_transform(self.a, margin)

    def time_psi_inverse(self, margin, n_points):
        self.margins.psi_inverse(self.value, margin)

    def peakmem_psi_transform(self, margin, n_points):
        self.margins.psi_transform(self.a, margin)

    def track_over_sqrt(self, margin, n_points):
        """Target: under 50."""
        return ratio(lambda: self.margins.psi_transform(self.a, margin), lambda: np.sqrt(self.a))

    track_over_sqrt.unit = "times"

    def track_round_trip_error(self, margin, n_points):
        """Target: 1e-10."""
        return float(np.abs(self.margins.psi_inverse(self.value, margin) - self.a).max())


class LocationEstimate:
    """A small scale looks at few margins, a large one is nearly the mean."""

    params = [["normal", "student 2", "sorted"], [0.1, 1.0, 10.0], [10**5, 10**6]]
    param_names = ["margins", "scale", "n_margins"]

    def setup(self, margins, scale, n_margins):
        self.margins = margins_module()
        rng = np.random.default_rng(5)
        self.q = rng.standard_t(2, n_margins) if margins == "student 2" else rng.standard_normal(n_margins)
        if margins == "sorted":
            self.q.sort()

    def time_location_estimate(self, margins, scale, n_margins):
        self.margins.location_estimate(self.q, scale)

    def time_margin_summary(self, margins, scale, n_margins):
        self.margins.margin_summary(self.q, scale=scale)

    def track_over_median(self, margins, scale, n_margins):
        """Target: under 5, for margins in no particular order."""
        return ratio(lambda: self.margins.location_estimate(self.q, scale), lambda: np.median(self.q))

    track_over_median.unit = "times"

    def track_residual(self, margins, scale, n_margins):
        """|Σ ψ((γ̂ - q_i)/s)| / n at the estimate."""
        u = np.clip((self.margins.location_estimate(self.q, scale) - self.q) / scale, -np.sqrt(2), np.sqrt(2))
        return float(abs((u - u**3 / 6).mean()))


class CubicRoots:
    """Random cubics, a quarter of them with three real roots."""

    params = [10**5, 10**6]
    param_names = ["n_cubics"]

    def setup(self, n_cubics):
        self.margins = margins_module()
        self.coefficients = np.random.default_rng(5).standard_normal((4, n_cubics))

    def time_cubic_roots(self, n_cubics):
        self.margins.cubic_roots(*self.coefficients)

    def track_residual(self, n_cubics):
        """Largest |P(u)| against the size of its terms."""
        a, b, c, d = self.coefficients[:, :, None]
        u = self.margins.cubic_roots(*self.coefficients)
        terms = np.array([a * u**3, b * u**2, c * u, d + 0 * u])
        return float(np.nanmax(np.abs(terms.sum(axis=0)) / np.abs(terms).sum(axis=0)))


class ScoreMetrics:
    """200 classes, float32 scores, as 10,000 test images of Tiny ImageNet give them; accuracy beside the time."""

    params = [10_000]
    param_names = ["n_samples"]

    def setup(self, n_samples):
        self.margins = margins_module()
        rng = np.random.default_rng(5)
        self.scores = rng.standard_normal((n_samples, 200), dtype=np.float32)
        self.y = rng.integers(200, size=n_samples)
        self.posteriors = 1 / (1 + np.exp(-self.scores))

    def time_margin(self, n_samples):
        self.margins.margin(self.scores, self.y)

    def time_top_5_accuracy(self, n_samples):
        self.margins.top_k_accuracy(self.scores, self.y, 5)

    def time_binary_entropy(self, n_samples):
        self.margins.binary_entropy(self.posteriors)

    def time_expected_calibration_error(self, n_samples):
        self.margins.expected_calibration_error(self.posteriors, self.y)

    def peakmem_top_5_accuracy(self, n_samples):
        self.margins.top_k_accuracy(self.scores, self.y, 5)

    def track_top_5_accuracy(self, n_samples):
        return self.margins.top_k_accuracy(self.scores, self.y, 5)
