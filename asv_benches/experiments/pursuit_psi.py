"""H, the Ψ-transform and its inverse."""

from itertools import pairwise

import numpy as np

from cmargin.margins import psi_inverse, psi_transform
from experiments._frame import Claim, Table, groups

TITLE = "The Ψ-transform"
SOURCE = "Margin pursuit, Figure 2"
SETTING = """\
H and Ψ for s = 1 and the paper's five levels; Ψ⁻¹(a) for s = 1 against γ; Ψ⁻¹(ε/s) and Ψ⁻¹(ε) for ε = 0.5 against
s. The closed form with the two constant terms of (16) and (17) exchanged (see `pursuit-cubics`); the inverse exact
to rounding, where the paper takes a grid of 2,500 points."""
PAPER = """\
Graphs only, for γ = √2/2, √2 - 0.4, √2 - 0.11, √2 + 0.11, 2√2. The text: Ψ is convex and grows with γ; the same
excess surrogate risk promises more with a larger γ, with an effect that "diminishes quickly"; Ψ⁻¹(ε/s) "bottoms out
quickly at a positive value" for large s."""
ROOT = float(np.sqrt(2))
LEVELS = (ROOT / 2, ROOT - 0.4, ROOT - 0.11, ROOT + 0.11, 2 * ROOT)
EXCESSES = (0.05, 0.1, 0.2)
EPSILON, LEVEL = 0.5, 2 * ROOT
GRID = 2500          # of the paper's inverse


def cells(quick):
    n = 41 if quick else 201
    return ([{"part": "transform", "level": level, "points": n} for level in LEVELS]
            + [{"part": "inverse", "excess": a, "points": n} for a in EXCESSES]
            + [{"part": part, "level": LEVEL, "points": n} for part in ("scale", "fixed")])


def measure(part, points, level=None, excess=None):
    if part == "transform":
        a = np.linspace(0, 1, points)
        psi = psi_transform(a, level)
        # Ψ(a) = s² ρ(γ/s) - H((1 + a)/2), and H is symmetric about 1/2
        H = psi_transform(1.0, level) - psi
        return [{"x": a, "psi": psi, "H_eta": np.concatenate([(1 - a[::-1]) / 2, (1 + a[1:]) / 2]),
                 "H": np.concatenate([H[::-1], H[1:]]), "grid_error": _grid_error(level)}]
    if part == "inverse":
        levels = np.linspace(ROOT / 2, 4 * ROOT, points)
        return [{"x": levels, "inverse": psi_inverse(excess, levels)}]
    scales = np.geomspace(0.5, 100, points)
    top = psi_transform(1.0, level, scales)
    value = EPSILON / scales if part == "scale" else np.full(points, EPSILON)
    inside = value <= top                       # above it an excess says nothing about the 0-1 risk
    return [{"x": scales[inside], "inverse": psi_inverse(value[inside], level, scales[inside])}]


def _grid_error(level):
    """Largest error of the paper's inverse, the last grid point whose Ψ is not above the value."""
    u = np.linspace(0, 1, GRID)
    values = np.linspace(0, float(psi_transform(1.0, level)), 101)
    on_grid = u[np.searchsorted(psi_transform(u, level), values * (1 + 1e-15), side="right") - 1]
    return float(np.abs(on_grid - psi_inverse(values, level)).max())


def _parts(rows):
    return groups(rows, "part")


def tables(rows):
    parts = _parts(rows)
    body = [[r["level"], r["psi"][-1], float(np.interp(0.5, r["x"], r["psi"])), r["grid_error"]]
            for r in parts["transform"]]
    curves = [parts[part][0] for part in ("scale", "fixed")]
    return [Table("", ("γ", "Ψ(1)", "Ψ(1/2)", f"largest error of the inverse on {GRID} points"), body),
            Table(f"At γ = {LEVEL:.4g}", ("s", f"Ψ⁻¹({EPSILON:g}/s)", f"Ψ⁻¹({EPSILON:g})"),
                  [[s, *(float(np.interp(s, r["x"], r["inverse"])) for r in curves)]
                   for s in (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)])]


def claims(rows):
    parts = _parts(rows)
    curves = [np.array(r["psi"]) for r in sorted(parts["transform"], key=lambda r: r["level"])]
    bend = min(float(np.diff(values, 2).min()) for values in curves)
    growth = min(float((b - a)[1:].min()) for a, b in pairwise(curves))
    falls = {r["excess"]: np.array(r["inverse"]) for r in parts["inverse"]}
    early = {a: (v[0] - v[len(v) // 4], v[3 * len(v) // 4] - v[-1]) for a, v in falls.items()}
    late = {part: _late(parts[part][0]) for part in ("scale", "fixed")}
    return [
        Claim("Ψ is convex in a and grows with γ.", bend > -1e-12 and growth > 0,
              f"the least second difference is {bend:.1e}, the least gain from one level to the next {growth:.1e}."),
        Claim("the same excess promises more with a larger γ, with an effect that diminishes quickly.",
              all(np.all(np.diff(v) <= 1e-12) for v in falls.values()) and all(b < a / 4 for a, b in early.values()),
              "over the first and the last quarter of the levels Ψ⁻¹ falls by "
              + ", ".join(f"{a:.3f} and {b:.3f} (excess {excess:g})" for excess, (a, b) in early.items())
              + " (counted as quickly where the last is below a quarter of the first)."),
        Claim("Ψ⁻¹(ε/s) bottoms out quickly at a positive value as s grows.", late["scale"][1] < 0.05,
              "from s = 50 to 100 it changes by {:+.2g} %, to {:.4f}; without the division, Ψ⁻¹(ε) changes by {:+.2g} "
              "%, to {:.4f}. For large s the loss is (γ - z)²/2 and Ψ is γ² a²/2, so that Ψ⁻¹(ε/s) goes to zero as "
              "s^(-1/2) and Ψ⁻¹(ε) to √(2 ε)/γ (counted as bottomed out below 5 %).".format(
                  -100 * late["scale"][1], late["scale"][0], -100 * late["fixed"][1], late["fixed"][0])),
    ]


def _late(row):
    """(value at the largest s, how far it fell since s = 50, relatively)."""
    values = np.array(row["inverse"])
    return values[-1], 1 - values[-1] / float(np.interp(50.0, row["x"], values))


def draw(rows):
    from experiments._figures import curve, panels

    parts = _parts(rows)
    names = ("H", "Ψ", "Ψ⁻¹(a), s = 1", "Ψ⁻¹ of 0.5/s and of 0.5")
    figure, axes = panels(names, 2)
    for order, r in enumerate(parts["transform"]):
        curve(axes["H"], r["H_eta"], r["H"], f"γ = {r['level']:.3g}", order, marker="")
        curve(axes["Ψ"], r["x"], r["psi"], f"γ = {r['level']:.3g}", order, marker="")
    for order, r in enumerate(parts["inverse"]):
        curve(axes[names[2]], r["x"], r["inverse"], f"a = {r['excess']:g}", order, marker="")
    curve(axes[names[3]], parts["scale"][0]["x"], parts["scale"][0]["inverse"], f"ε/s, γ = {LEVEL:.3g}", 0, marker="")
    curve(axes[names[3]], parts["fixed"][0]["x"], parts["fixed"][0]["inverse"], f"ε, γ = {LEVEL:.3g}", 1, marker="")
    axes["H"].set(xlabel="η")
    axes["Ψ"].set(xlabel="excess 0-1 risk a")
    axes[names[2]].set(xlabel="γ")
    axes[names[3]].set(xlabel="s", xscale="log", ylim=(0, None))
    for ax in axes.values():
        ax.legend(frameon=False, fontsize="small")
    return figure
