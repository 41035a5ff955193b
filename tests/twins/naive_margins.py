"""Slow, obvious NumPy twin of the summary of a margin distribution."""

import math
from fractions import Fraction

import numpy as np
from naive_pursuit import psi


def power_of_two(size):
    """What numbers of at most ``size`` are divided by, so that nothing made of their cubes leaves the range."""
    return 1.0 if size == 0 or 2.0**-200 < size < 2.0**200 else math.ldexp(1.0, math.frexp(size)[1] - 1)


def location(q, scale):
    """The root of Σ ψ((γ - q_i) / s) nearest the median, by bisection."""
    median = float(np.median(q))
    if scale < np.finfo(float).tiny:
        return median

    def total(at):
        u = (at - q) / scale
        inside = np.abs(u) < np.sqrt(2)
        # those beyond are counted, so that they cancel exactly
        return psi(u[inside]).sum() + psi(2.0) * (np.sign(u[~inside])).sum()

    side = -np.sign(total(median))                   # where the root lies
    near, far = median, median + side * np.sqrt(2) * scale
    for _ in range(200 if side else 0):
        middle = near + (far - near) / 2
        if total(middle) * side < 0:
            near = middle
        else:
            far = middle
    return far if side else median


def summary(q, scale, delta, levels):
    """What ``margin_summary`` says of (n,) margins; ``scale`` None: that of Lemma 6."""
    size = float(np.abs(q).max())
    unit = power_of_two(size)
    part, n = q / unit, len(q)
    mean = float(sum(Fraction(z) for z in part.tolist()) / n)
    variance = math.fsum((part - mean)**2) / n
    skewness = math.fsum((part - mean)**3) / n / variance**1.5 if variance > 0 else 0.0
    if scale is None:
        own = math.sqrt(n * variance / (2 * math.log(2 / delta)))
        at, scale = location(part, own) * unit, own * unit
    else:
        wide = power_of_two(max(size, scale))
        at = location(q / wide, scale / wide) * wide
    return {
        "n_samples": n, "mean": mean * unit, "median": float(np.quantile(part, 0.5)) * unit, "location": at,
        "scale": scale, "variance": variance * unit * unit, "skewness": skewness,
        "share_nonpositive": sum(z <= 0 for z in q.tolist()) / n, "quantiles": np.quantile(part, levels) * unit,
    }


# ---------------------------------------------------------------- rankings of labels

def ranking(scores):
    """Labels of a row of scores, best first; of equal scores the first; of a sparse row those that are stored."""
    entries = scores.items() if isinstance(scores, dict) else enumerate(scores)
    return [label for label, score in sorted(entries, key=lambda entry: (-entry[1], entry[0]))]


def gains(labels, truth, gain, k, discounted):
    """Sum of the gains of the first k labels that the row has, over log2 of their place where ``discounted``."""
    found = 0.0
    for place, label in enumerate(labels[:k], 1):
        if truth[label]:
            found += gain[label] / (math.log2(place + 1) if discounted else 1.0)
    return found


def precision_at_k(rankings, y, k):
    return sum(gains(labels, truth, np.ones(len(truth)), k, False) / k
               for labels, truth in zip(rankings, y, strict=True)) / len(y)


def ndcg_at_k(rankings, y, k):
    total = 0.0
    for labels, truth in zip(rankings, y, strict=True):
        best = gains(ranking(truth), truth, np.ones(len(truth)), k, True)
        total += gains(labels, truth, np.ones(len(truth)), k, True) / best if best > 0 else 0.0
    return total / len(y)


def propensity_scored(rankings, y, propensity, k, discounted, normalized):
    """PSP@k, or PSnDCG@k where ``discounted``."""
    gain = 1 / np.asarray(propensity)
    found = sum(gains(labels, truth, gain, k, discounted) for labels, truth in zip(rankings, y, strict=True))
    best = sum(gains(ranking(truth * gain), truth, gain, k, discounted) for truth in y)
    divisor = sum(1 / math.log2(place + 1) for place in range(1, k + 1)) if discounted else k
    return found / best if normalized else found / len(y) / divisor
