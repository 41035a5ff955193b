"""ρ, ρ' and ρ'' of margin pursuit."""

import numpy as np

from cmargin._core.losses._losses import LOSS_IDS, evaluate
from experiments._frame import Claim, Table

TITLE = "ρ and its derivatives"
SOURCE = "Margin pursuit, Figure 1"
SETTING = """\
ρ(u) = u²/2 - u⁴/24 for |u| up to √2, |u| 2√2/3 - 1/2 beyond; from the kernel that the solvers call, with γ = 0 and
s = 1."""
PAPER = "Graphs only."
REACH, POINTS = 3.0, 601


def cells(quick):
    return [{"reach": REACH, "points": 61 if quick else POINTS}]


def measure(reach, points):
    u = np.linspace(-reach, reach, points)
    value, slope, curvature = (np.empty(points) for _ in range(3))
    # the loss of a margin z is ρ((γ - z)/s), so u = -z and ρ' is minus the slope
    evaluate(LOSS_IDS["margin_pursuit"], np.ascontiguousarray(-u), value, slope, curvature, 0.0, 1.0)
    return [{"u": u, "rho": value, "rho_1": -slope, "rho_2": curvature}]


def tables(rows):
    row = rows[0]
    body = []
    for at in (0.0, 1.0, 2.0, 3.0):
        i = int(np.argmin(np.abs(np.array(row["u"]) - at)))
        body.append([row["u"][i], row["rho"][i], row["rho_1"][i], row["rho_2"][i]])
    return [Table("", ("u", "ρ", "ρ'", "ρ''"), body)]


def claims(rows):
    u, rho, rho_1, rho_2 = (np.array(rows[0][name]) for name in ("u", "rho", "rho_1", "rho_2"))
    bound, step = 2 * np.sqrt(2) / 3, u[1] - u[0]
    differences = max(np.abs(np.diff(rho) / step - (rho_1[1:] + rho_1[:-1]) / 2).max(),
                      np.abs(np.diff(rho_1) / step - (rho_2[1:] + rho_2[:-1]) / 2).max())
    return [
        Claim("ψ = ρ' is bounded, by 2√2/3.", bool(np.abs(rho_1).max() <= bound * (1 + 1e-12)),
              f"its largest value on [-{rows[0]['reach']:g}, {rows[0]['reach']:g}] is {np.abs(rho_1).max():.6f}, "
              f"2√2/3 = {bound:.6f}."),
        Claim("ρ is convex and twice differentiable, ρ'' falls from 1 at 0 to 0 at √2.",
              bool(rho_2.min() >= 0 and rho_2.max() <= 1 and rho_2[np.abs(u) > np.sqrt(2)].max() == 0
                   and differences < step ** 2),
              f"ρ'' lies in [{rho_2.min():g}, {rho_2.max():g}], is 0 beyond √2, and differences of ρ and ρ' agree with "
              f"ρ' and ρ'' to {differences:.1e} on a grid of {step:g}."),
    ]


def draw(rows):
    from experiments._figures import curve, legend, panels

    figure, axes = panels(["near the origin"])
    ax = axes["near the origin"]
    for order, (key, words) in enumerate((("rho", "ρ"), ("rho_1", "ρ'"), ("rho_2", "ρ''"))):
        curve(ax, rows[0]["u"], rows[0][key], words, order, marker="")
    ax.set(xlabel="u")
    return legend(figure, axes)
