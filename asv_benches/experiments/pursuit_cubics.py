"""The cubics behind the closed form of H, and which of their constant terms are right."""

import numpy as np
from scipy.optimize import minimize_scalar

from cmargin._core.losses._losses import LOSS_IDS, evaluate
from cmargin.margins import cubic_roots
from experiments._frame import Claim, Table, groups

TITLE = "The cubics of the Ψ-transform"
SOURCE = "Margin pursuit, Figures 6 and 7"
SETTING = """\
H_{1,γ}(η) is the least value of C(u) = η ρ(γ - u) + (1 - η) ρ(γ + u). Its place u* is a root of a cubic: the double
cube (14) for γ up to √2/2, for γ from √2 on the single cubes, "minus" (16) for η above 1/2 and "plus" (17) below.
Here u* is found by minimising C on a grid and then by a bounded search, by the root of the cubic in (-γ, γ) with
the constant terms of (16) and (17) as printed, and with the two exchanged: "minus" +(6γ + 6αB - γ³), "plus" +(γ³ -
6γ - 6B/α), α = (η - 1)/η, B = 2√2/3."""
PAPER = """\
Graphs of the cubics at γ = √2/2 (Figure 6) and γ = 2√2 + 1/2 (Figure 7), with the root that the formulas give."""
ROOT, B = float(np.sqrt(2)), 2 * float(np.sqrt(2)) / 3
LEVELS = (0.3, ROOT / 2, ROOT, 2.0, 2 * ROOT + 0.5)
SHOWN = (ROOT / 2, 2 * ROOT + 0.5)
ETAS = (0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.95)
AGREES = 1e-9


def cells(quick):
    return [{"level": level, "eta": eta} for level in LEVELS for eta in (ETAS[::3] if quick else ETAS)]


def rho(u):
    u = np.ascontiguousarray(np.atleast_1d(u), dtype=float)
    value, slope, curvature = (np.empty(len(u)) for _ in range(3))
    evaluate(LOSS_IDS["margin_pursuit"], -u, value, slope, curvature, 0.0, 1.0)
    return value


def risk(u, level, eta):
    """C(u)."""
    return eta * rho(level - u) + (1 - eta) * rho(level + u)


def cubics(level, eta):
    """(name, where its root lies, coefficients as printed, with the constant terms of (16) and (17) exchanged)."""
    alpha, delta = (eta - 1) / eta, abs(ROOT - level)
    if level <= ROOT / 2:
        double = (1 - alpha, -3 * level * (1 + alpha), 3 * (1 - alpha) * (level ** 2 - 2),
                  (1 + alpha) * (6 * level - level ** 3))
        return "double cube (14)", (-level, level), double, double
    c16, c17 = -6 * (level + B / alpha - level ** 3 / 6), 6 * (level + alpha * B - level ** 3 / 6)
    rest = (1.0, 3 * level, 3 * level ** 2 - 6)
    if eta < 0.5:
        return "plus (17)", (-level, -delta), (*rest, c17), (*rest, c16)
    rest = (1.0, -3 * level, 3 * level ** 2 - 6)
    return "minus (16)", (delta, level), (*rest, c16), (*rest, c17)


def measure(level, eta):
    grid = np.linspace(-level, level, 2001)
    i = int(np.argmin(risk(grid, level, eta)))
    lo, hi = grid[max(0, i - 1)], grid[min(len(grid) - 1, i + 1)]
    found = minimize_scalar(lambda u: float(risk(u, level, eta)[0]), bounds=(lo, hi), method="bounded",
                            options={"xatol": 1e-12})
    name, place, printed, exchanged = cubics(level, eta)
    row = {"condition": name, "u": float(found.x), "H": float(found.fun), "coefficients": exchanged,
           "coefficients_printed": printed}
    for key, coefficients in (("exchanged", exchanged), ("printed", printed)):
        root = _inside(cubic_roots(*coefficients), *place)
        row[f"root_{key}"] = root
        row[f"error_{key}"] = None if root is None else float(risk(root, level, eta)[0] - found.fun)
    return [row]


def _inside(roots, low, high):
    """The root in [low, high], or None."""
    slack = 1e-12 * (1 + high - low)
    inside = [float(u) for u in roots if low - slack <= u <= high + slack]
    return inside[0] if inside else None


def tables(rows):
    body = []
    for (condition, level), of in groups(rows, "condition", "level").items():
        body.append([condition, level, len(of), *_worst(of, "exchanged"), *_worst(of, "printed")])
    return [Table("For how many η the cubic has a root where it should, and by how much C there exceeds its minimum",
                  ("cubic", "γ", "values of η", "exchanged: roots", "largest excess", "printed: roots",
                   "largest excess"), body)]


def _worst(rows, key):
    errors = [r[f"error_{key}"] for r in rows if r[f"error_{key}"] is not None]
    return len(errors), max(errors) if errors else None


def claims(rows):
    out = []
    for condition, words in (("double cube (14)", "the double cube (14) gives the minimiser."),
                             ("minus (16)", "the minus cubic (16) gives the minimiser."),
                             ("plus (17)", "the plus cubic (17) gives the minimiser.")):
        of = [r for r in rows if r["condition"] == condition]
        (n, excess), (n_exchanged, excess_exchanged) = _worst(of, "printed"), _worst(of, "exchanged")
        text = (f"as printed there is a root where it should be in {n} of {len(of)} cases"
                + ("" if excess is None else f", C exceeding its minimum by up to {excess:.2g}"))
        if condition != "double cube (14)":
            text += (f"; with the constant terms of (16) and (17) exchanged, in {n_exchanged} of {len(of)}, by up to "
                     f"{excess_exchanged:.2g}")
        out.append(Claim(words, n == len(of) and abs(excess) < AGREES, text + "."))
    return out


def draw(rows):
    from experiments._figures import curve, panels

    shown = {(r["condition"], r["level"]): r for r in rows if r["level"] in SHOWN}      # the largest η of each
    figure, axes = panels([f"{condition}, γ = {level:.3g}" for condition, level in shown])
    for (condition, level), r in shown.items():
        ax = axes[f"{condition}, γ = {level:.3g}"]
        u = np.linspace(-1.3 * level, 1.3 * level, 301)
        for order, key in enumerate(("coefficients", "coefficients_printed")):
            label = "constant terms exchanged" if key == "coefficients" else "as printed"
            if order == 0 or r[key] != r["coefficients"]:
                curve(ax, u, np.polyval(r[key], u), label, order, marker="")
        for at in (-level, level):
            ax.axvline(at, color="#0072B2", linewidth=0.8)
        ax.axvline(r["u"], color="#CC79A7", label="minimiser of C")
        ax.axhline(0, color="0.6", linewidth=0.8)
        ax.set(xlabel="u", title=f"{condition}, γ = {level:.3g}, η = {r['eta']:g}")
        ax.legend(frameon=False, fontsize="small")
    return figure
