from fractions import Fraction

import numpy as np
import pytest
from naive import catoni_rho as rho

from cmargin.margins import cubic_roots, excess_risk_bound, psi_inverse, psi_transform

ROOT2 = np.sqrt(2)
B = 2 * ROOT2 / 3
EPS = np.finfo(float).eps
# the three cases of Lemma 8 with their borders
LEVELS = [0.05, 0.3, ROOT2 / 2, 0.8, 1.0, 1.2, 1.4, 1.414, ROOT2, 1.42, 2.0, 2.8, 40.0]


# ---------------------------------------------------------------- cubic equations

def real_roots_by_discriminant(coefficients):
    a, b, c, d = map(Fraction, coefficients)
    discriminant = 18*a*b*c*d - 4*b**3*d + b*b*c*c - 4*a*c**3 - 27*a*a*d*d        # margin pursuit eq. 15
    return 3 if discriminant > 0 else 1


def residual(coefficients, u):
    """|P(u)| against the size of its terms, in exact arithmetic."""
    powers = [Fraction(float(u))**j for j in (3, 2, 1, 0)]
    terms = [Fraction(float(k)) * p for k, p in zip(coefficients, powers, strict=True)]
    return float(abs(sum(terms)) / sum(map(abs, terms)))


@pytest.mark.parametrize("coefficients, roots", [
    ((1, -6, 11, -6), [1, 2, 3]),               # discriminant > 0
    ((1, 0, 0, -1), [1]),                       # < 0
    ((2, 0, 2, 0), [0]),
    ((1, -4, 5, -2), [1, 1, 2]),                # = 0, a double root
    ((1, -5, 8, -4), [1, 2, 2]),
    ((-1, 3, -3, 1), [1, 1, 1]),                # = 0, a triple root
    ((1, -0.3, 0.03, -0.001), [0.1, 0.1, 0.1]),
    ((1, 0, 0, 0), [0, 0, 0]),
    ((1, 0, -1, 0), [-1, 0, 1]),
    ((0, 1, -3, 2), [1, 2]),                    # no cubic term
    ((0, 1, -2, 1), [1, 1]),
    ((0, 1, 0, 1), []),
    ((0, 0, 2, -4), [2]),                       # nor a square one
    ((0, 0, 0, 3), []),
])
def test_cubics_solved_by_hand(coefficients, roots):
    got = cubic_roots(*coefficients)
    np.testing.assert_allclose(got, roots, atol=1e-15, rtol=1e-15)
    assert not np.signbit(got[got == 0]).any()


@pytest.mark.parametrize("coefficients, roots", [
    ((1e-300, 1, -3, 2), [-1e300, 1, 2]),       # a root far out must not cost the others their digits
    ((1e-320, 1, -3, 2), [1, 2]),               # nor one beyond the range of doubles
    ((1, 1e150, 0, 1e-150), [-1e150]),
    ((1, 0, 0, 1e300), [-1e100]),
    ((1, 0, 0, -1e-300), [1e-100]),
    ((1e300, -6e300, 11e300, -6e300), [1, 2, 3]),
    ((5e-324, 0, 0, 5e-324), [-1]),
    ((1, -1e10 - 1e-10, 1, 0), [0, 1e-10, 1e10]),
    # a naive discriminant is 0 here, and both roots 1.000000014 (Kahan)
    ((0, 94906265.625, -2 * 94906267, 94906268.375), [1, 1.000000028975958]),
])
def test_cubics_of_unequal_sizes(coefficients, roots):
    np.testing.assert_allclose(cubic_roots(*coefficients), roots, rtol=1e-15)


def test_random_cubics_have_the_right_number_of_roots_and_no_residual():
    rng = np.random.default_rng(7)
    coefficients = rng.standard_normal((3000, 4)) * 10.0 ** rng.uniform(-6, 6, (3000, 4))
    found = cubic_roots(*coefficients.T)
    for row, roots in zip(coefficients, found, strict=True):
        roots = roots[~np.isnan(roots)]
        assert len(roots) == real_roots_by_discriminant(row)
        assert np.all(np.diff(roots) >= 0)
        assert max(residual(row, u) for u in roots) < 8 * EPS


@pytest.mark.parametrize("coefficients", [
    (104062.72073585227, -0.00013970831100102297, 554738.4060502582, -1.4274472980376658e-06),
    (-6.920678200321442, -4.021230544473447e-06, -118303.09739456576, -0.00013606485595106288),
])
def test_a_root_much_smaller_than_the_others_keeps_its_digits(coefficients):
    # Newton from outside all roots stops some 100 roundings short of these; one step on the cubic itself mends it
    [root] = cubic_roots(*coefficients)
    assert residual(coefficients, root) < 2 * EPS


def test_cubics_broadcast():
    found = cubic_roots(1.0, [[-6.0], [0.0]], [11.0, 0.0], [-6.0, -1.0])
    assert found.shape == (2, 2, 3)
    np.testing.assert_allclose(found[0, 0], [1, 2, 3])
    np.testing.assert_allclose(found[1, 1], [1, np.nan, np.nan])


@pytest.mark.parametrize("coefficients, message", [
    ((0, 0, 0, 0), "at least one coefficient"),
    ((1, np.nan, 0, 0), "finite"),
    ((np.inf, 1, 0, 0), "finite"),
    (("a", 1, 0, 0), "real numbers"),
])
def test_bad_coefficients(coefficients, message):
    with pytest.raises(ValueError, match=message):
        cubic_roots(*coefficients)


# ---------------------------------------------------------------- Ψ-transform

def minimised(eta, level, scale):
    """H_{s,γ}(η) = min_u η φ(u) + (1-η) φ(-u), φ(z) = s² ρ((γ-z)/s), by golden section on [-γ, γ]."""
    def risk(u):
        return scale**2 * (eta * rho((level - u) / scale) + (1 - eta) * rho((level + u) / scale))

    lo, hi = np.full(eta.shape, -level), np.full(eta.shape, level)
    share = (np.sqrt(5) - 1) / 2
    for _ in range(60):
        left, right = hi - share * (hi - lo), lo + share * (hi - lo)
        go_left = risk(left) < risk(right)
        lo, hi = np.where(go_left, lo, left), np.where(go_left, right, hi)
    return risk((lo + hi) / 2)


@pytest.mark.parametrize("scale", [0.2, 1.0, 7.3])
@pytest.mark.parametrize("level", LEVELS)
def test_psi_is_the_numerical_minimum(level, scale):
    a = np.linspace(0, 1, 201)
    size = scale**2 * rho(level)
    expected = size - minimised((1 + a) / 2, level * scale, scale)
    np.testing.assert_allclose(psi_transform(a, level * scale, scale), expected, rtol=0, atol=1e-14 * size)


def by_cubics(eta, level, printed=False):
    """H_{1,γ}(η), η != 1/2, by the cubics of Lemma 8; ``printed``: with the constant terms as the paper has them."""
    alpha = (eta - 1) / eta
    minus, plus = 6*level + 6*alpha*B - level**3, level**3 - 6*level - 6*B/alpha
    if printed:
        minus, plus = level**3 - 6*level - 6*B/alpha, 6*level + 6*alpha*B - level**3
    delta = abs(ROOT2 - level)

    def psi(u):
        return u - u**3 / 6 if abs(u) <= ROOT2 else np.copysign(B, u)

    bound = alpha if eta > 0.5 else 1 / alpha
    if level >= ROOT2 or (level > ROOT2 / 2 and psi(delta - level) / psi(delta + level) < bound):
        if eta > 0.5:
            roots = cubic_roots(1, -3*level, 3*level**2 - 6, minus)
            inside = (max(delta, -level) < roots) & (roots < level) if level < ROOT2 else np.abs(roots) < level
        else:
            roots = cubic_roots(1, 3*level, 3*level**2 - 6, plus)
            inside = (-level < roots) & (roots < -delta) if level < ROOT2 else np.abs(roots) < level
    else:
        roots = cubic_roots(1 - alpha, -3*level*(1 + alpha), 3*(1 - alpha)*(level**2 - 2),
                            (1 + alpha)*(6*level - level**3))
        inside = np.abs(roots) < level
    if not inside.any():
        return np.inf
    return min(eta * rho(level - u) + (1 - eta) * rho(level + u) for u in roots[inside])


@pytest.mark.parametrize("level", [0.3, 0.6, 0.8, 1.0, 1.2, 1.4, 1.5, 2.0, 2.8])
def test_psi_agrees_with_the_cubics_of_the_lemma(level):
    # (16) and (17) have each other's constant term in the paper: as printed, H is off where a single cube applies
    eta = np.r_[np.linspace(0.02, 0.48, 24), np.linspace(0.52, 0.98, 24)]
    H = np.array([by_cubics(e, level) for e in eta])
    got = rho(level) - psi_transform(np.abs(2 * eta - 1), level)
    np.testing.assert_allclose(got, H, atol=1e-14)
    if level > 1:
        printed = np.array([by_cubics(e, level, printed=True) for e in eta])
        assert np.max(np.abs(printed - got)) > 0.05


@pytest.mark.parametrize("level", LEVELS)
def test_psi_is_convex_and_increasing_between_its_ends(level):
    a = np.linspace(0, 1, 2001)
    psi = psi_transform(a, level)
    assert psi[0] == 0 and psi_transform(0.0, level) == 0
    assert psi[-1] == pytest.approx(rho(level), rel=4 * EPS)
    assert np.all(np.diff(psi) > 0)
    assert np.all(np.diff(psi, 2) > -4 * EPS * rho(level))
    assert np.all(psi_transform(a[1:], level * 1.1) > psi[1:])      # Remark 9: a larger level, a better bound


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 50.0])
def test_inverse_comes_back(level, scale):
    a = np.r_[np.linspace(0, 1, 501), 10.0 ** np.arange(-100, 0)]
    back = psi_inverse(psi_transform(a, level * scale, scale), level * scale, scale)
    np.testing.assert_allclose(back, a, rtol=1e-14, atol=0)         # relative: nothing has cancelled
    value = np.linspace(0, 1, 101) * psi_transform(1.0, level, scale)
    there = psi_transform(psi_inverse(value, level, scale), level, scale)
    np.testing.assert_allclose(there, value, rtol=1e-14, atol=0)


@pytest.mark.parametrize("level", LEVELS)
def test_psi_near_zero(level):
    # below √2 Ψ(a) = a² γ²(6 - γ²)² / (36 (2 - γ²)) + ..., at and beyond it is a B (γ - √2) + O(a^1.5)
    a = 1e-9
    if level < 1.4:
        assert psi_transform(a, level) == pytest.approx(a**2 * level**2 * (6 - level**2)**2 / (36 * (2 - level**2)))
    elif level > 1.415:
        assert psi_transform(a, level) == pytest.approx(a * B * (level - ROOT2), rel=0.02)


def test_psi_is_continuous_across_its_cases():
    for level in (ROOT2 / 2, ROOT2):
        a = np.linspace(0, 1, 101)
        below, above = psi_transform(a, level * (1 - 1e-12)), psi_transform(a, level * (1 + 1e-12))
        np.testing.assert_allclose(below, above, rtol=0, atol=1e-11)


def test_psi_scales_and_broadcasts():
    a = np.linspace(0, 1, 5)
    levels, scales = np.array([[0.5], [1.0], [3.0]]), 2.0
    table = psi_transform(a, levels, scales)
    assert table.shape == (3, 5)
    for row, level in zip(table, levels[:, 0], strict=True):
        np.testing.assert_array_equal(row, psi_transform(a, level, scales))
        np.testing.assert_allclose(row, 4 * psi_transform(a, level / 2), rtol=1e-15)
    np.testing.assert_allclose(psi_inverse(table, levels, scales), np.tile(a, (3, 1)), rtol=1e-14)
    assert isinstance(psi_transform(0.5), float) and isinstance(psi_inverse(0.1), float)
    assert psi_transform(a.astype(np.float32)).dtype == np.float64
    assert psi_transform([]).shape == (0,)


def test_chunks_change_nothing(monkeypatch):
    a = np.linspace(0, 1, 1000)
    whole = psi_transform(a, 1 + a, 2.0), psi_inverse(a / 10, 1.0, 1 + a), cubic_roots(1.0, a, 1.0, -a)
    monkeypatch.setattr("cmargin.margins.psi.CHUNK", 37)
    parts = psi_transform(a, 1 + a, 2.0), psi_inverse(a / 10, 1.0, 1 + a), cubic_roots(1.0, a, 1.0, -a)
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("arguments, message", [
    ((-0.1,), "between 0 and 1"),
    (([0.5, 1.1],), "between 0 and 1"),
    ((np.nan,), "between 0 and 1"),
    ((0.5, 0.0), "margin must be positive"),
    ((0.5, -1.0), "margin must be positive"),
    ((0.5, np.nan), "margin must be positive"),
    ((0.5, 1.0, 0.0), "scale must be positive"),
    ((0.5, 1.0, np.inf), "scale must be positive"),
    ((0.5, 1e300, 1e-300), "range of doubles"),
])
def test_bad_arguments_of_psi(arguments, message):
    with pytest.raises(ValueError, match=message):
        psi_transform(*arguments)


@pytest.mark.parametrize("value, message", [(-1e-9, "got -1e-09"), (0.5, "got 0.5"), (np.nan, "got nan")])
def test_a_value_that_psi_never_takes_is_refused(value, message):
    with pytest.raises(ValueError, match=f"between 0 and .*0.458333.*{message}"):
        psi_inverse([0.1, value])


# ---------------------------------------------------------------- Theorem 11

GIVEN = dict(strong_convexity=0.5, input_variance=2.0)


def test_excess_risk_bound_by_hand():
    kappa, v, n, d, delta, s, gamma, alpha, T = 0.5, 2.0, 10**9, 3, 0.1, 1.5, 2.0, 0.3, 40
    bound = excess_risk_bound(n, d, **GIVEN, margin=gamma, scale=s, n_iter=T, step_size=alpha, initial_distance=2.0,
                              delta=delta, subgaussian=0.7)
    beta = 2 * kappa * v / (kappa + v)
    error = np.sqrt(0.7 * (8 / 9) * v * (d * np.log(3 * np.sqrt(n) / (2 * delta)) + np.log(1 / delta)))
    assert bound.optimisation == pytest.approx((1 - alpha * beta)**T * v * 4)
    assert bound.statistical == pytest.approx(4 * v / (beta**2 * n) * ((1 + delta) * v + 2 * s * error)**2)
    assert bound.surrogate == bound.optimisation + bound.statistical
    assert psi_transform(bound.risk, gamma, s) == pytest.approx(bound.surrogate, rel=1e-12) and 0 < bound.risk < 1


def test_excess_risk_bound_shrinks_with_samples_and_steps():
    risks = [excess_risk_bound(10**k, 5, **GIVEN).risk for k in (2, 6, 8, 10, 12)]
    assert risks[0] == 1 and risks == sorted(risks, reverse=True) and risks[-1] < 1e-3
    by_steps = [excess_risk_bound(10**9, 5, **GIVEN, n_iter=T).surrogate for T in (1, 10, 100, 1000)]
    assert by_steps == sorted(by_steps, reverse=True)
    assert by_steps[-1] == pytest.approx(excess_risk_bound(10**9, 5, **GIVEN).surrogate)
    perfect = excess_risk_bound(10**9, 5, strong_convexity=2.0, input_variance=2.0, n_iter=1, initial_distance=1e6)
    assert perfect.optimisation == 0


@pytest.mark.parametrize("changed, message", [
    (dict(strong_convexity=3.0), "strong_convexity cannot exceed"),
    (dict(strong_convexity=0.0), "strong_convexity must be a positive"),
    (dict(input_variance=np.nan), "input_variance must be a positive"),
    (dict(step_size=1.0), "step_size must be at most"),
    (dict(delta=0.0), "delta must lie strictly between 0 and 1"),
    (dict(delta=1.0), "delta must lie strictly between 0 and 1"),
    (dict(n_iter=0), "n_iter must be a whole number"),
    (dict(margin=-1.0), "margin must be a positive"),
    (dict(scale=0), "scale must be a positive"),
    (dict(initial_distance=-1.0), "initial_distance must be a finite number"),
])
def test_bad_arguments_of_the_bound(changed, message):
    with pytest.raises(ValueError, match=message):
        excess_risk_bound(100, 3, **(GIVEN | changed))
    with pytest.raises(ValueError, match="n_samples"):
        excess_risk_bound(0, 3, **GIVEN)
