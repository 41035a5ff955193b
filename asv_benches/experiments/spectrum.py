"""Eigenvalues of the second moment that SLND and BSN invert."""

import numpy as np

from cmargin.data.arrays import dense
from experiments._frame import Claim, Table, groups
from experiments._many_classes import DATA, names, rows_of

TITLE = "Spectrum of the second moment"
SOURCE = "SLND, Figure 2"
SETTING = DATA + """

H is the uncentred second moment of the training rows; of 3,000 of them, drawn at random, by their Gram matrix where
there are more columns than that. All its eigenvalues are computed, not the leading ones alone."""
PAPER = """\
Eigenvalues of the covariance matrix on Caltech256, SUN and ImageNet, largest to smallest; no numbers in the text."""
GRAM_ROWS = 3000
ZERO = 1e-7          # eigenvalues below this share of the largest are rounding of float32 rows
STEEP = 2.0          # an end of the curve counts as steep where it falls so many times as fast as the middle


def cells(quick):
    return [{"data": name} for name in names(quick)]


def measure(data):
    X = rows_of(data).X
    if X.shape[1] > GRAM_ROWS:
        kept = np.sort(np.random.default_rng(0).choice(X.shape[0], min(GRAM_ROWS, X.shape[0]), replace=False))
        X = X[kept]
        H = dense(X @ X.T)
    else:
        X = X.astype(np.float64)
        H = X.T @ X
    values = np.linalg.eigvalsh(np.asarray(H, dtype=np.float64))[::-1] / X.shape[0]
    values = values[values > ZERO * values[0]]
    share = np.cumsum(values) / values.sum()
    return [{"eigenvalues": values, "n_positive": len(values), "condition": values[0] / values[-1],
             "for_half": int(np.searchsorted(share, 0.5)) + 1, "for_90": int(np.searchsorted(share, 0.9)) + 1,
             "for_99": int(np.searchsorted(share, 0.99)) + 1, **_slopes(values)}]


def _slopes(values):
    """Fall of log10 per unit of the relative index, in the first and last twentieth and in the middle half."""
    logs, n = np.log10(values), len(values)
    def fall(a, b):
        lo, hi = int(a * (n - 1)), max(int(a * (n - 1)) + 1, int(b * (n - 1)))
        return (logs[lo] - logs[hi]) / ((hi - lo) / max(1, n - 1))
    return {"fall_begin": fall(0, 0.05), "fall_middle": fall(0.25, 0.75), "fall_end": fall(0.95, 1)}


def tables(rows):
    return [Table("Eigenvalues that are not zero, the largest over the smallest of them, and how many of the largest "
                  "make half, 90 % and 99 % of the trace",
                  ("data", "eigenvalues", "condition number", "half", "90 %", "99 %"),
                  [[r["data"], r["n_positive"], r["condition"], r["for_half"], r["for_90"], r["for_99"]]
                   for r in rows])]


def claims(rows):
    both = {r["data"]: (r["fall_begin"] / r["fall_middle"], r["fall_end"] / r["fall_middle"]) for r in rows}
    worst = min(r["condition"] for r in rows)
    return [
        Claim("all curves have the same sigmoid shape: steep at both ends, flat between.",
              all(min(pair) >= STEEP for pair in both.values()),
              "the logarithm falls, at the begin and at the end, so many times as fast as in the middle half: "
              + "; ".join(f"{name} {a:.1f} and {b:.1f}" for name, (a, b) in both.items())
              + f" (counted as steep from {STEEP:g})."),
        Claim("the condition number is very large, the problem ill-conditioned.", worst > 1e3,
              f"at least {worst:.2g} (counted as large above 1000)."),
        Claim("a low rank is enough to get all the significantly large eigenvalues.",
              all(r["for_90"] <= r["n_positive"] / 4 for r in rows),
              "90 % of the trace take " + "; ".join(f"{r['for_90']} of {r['n_positive']} on {r['data']}" for r in rows)
              + " (counted as low up to a quarter)."),
    ]


def draw(rows):
    from experiments._figures import curve, legend, panels

    figure, axes = panels(["against the index", "against the relative index"], 2)
    for order, (name, (row,)) in enumerate(groups(rows, "data").items()):
        values = np.array(row["eigenvalues"]) / row["eigenvalues"][0]
        index = np.arange(1, len(values) + 1)
        curve(axes["against the index"], index, values, name, order, marker="")
        curve(axes["against the relative index"], index / len(values), values, name, order, marker="")
    axes["against the index"].set(xscale="log", yscale="log", xlabel="index", ylabel="eigenvalue / largest")
    axes["against the relative index"].set(yscale="log", xlabel="index / number of eigenvalues")
    return legend(figure, axes)
