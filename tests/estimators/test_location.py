import numpy as np
import pytest
from api import _catoni
from c_functions import ARRAY, NUMBER, SIZE, c_function
from naive import catoni_rho as rho
from scipy.optimize import brentq
from scipy.stats import skew

from cmargin.margins import confidence_radius, confidence_scale, location_estimate, margin_summary

location_root = c_function(_catoni, "location_root", NUMBER, ARRAY, SIZE, NUMBER, NUMBER)
ROOT2 = np.sqrt(2)


def psi(u):
    return np.where(np.abs(u) <= ROOT2, u - u**3 / 6, np.copysign(2 * ROOT2 / 3, u))


def samples():
    rng = np.random.default_rng(19)
    return {
        "normal": rng.standard_normal(501) + 0.3,
        "even": rng.standard_normal(500),
        "heavy": rng.standard_t(1.5, size=400),
        "skewed": rng.lognormal(sigma=1.5, size=333),
        "tied": rng.integers(-2, 3, size=300).astype(float),
        "outlier": np.r_[rng.standard_normal(50), 1e15],
        "small": np.array([0.1, 0.25, 0.9]),
        "one": np.array([-3.7]),
        "far": rng.standard_normal(200) + 1e6,
    }


SAMPLES = samples()


# ---------------------------------------------------------------- the estimate

@pytest.mark.parametrize("scale", [1e-3, 0.1, 1.0, 10.0, 1e3])
@pytest.mark.parametrize("name", SAMPLES)
def test_the_estimate_is_the_root(name, scale):
    q = SAMPLES[name]
    got = location_estimate(q, scale)
    tolerance = 1e-12 * scale + 4 * np.spacing(np.abs(got))

    def total(at):
        return psi((at - q) / scale).sum()

    # monotone: a sign on either side of the estimate says how near the root is; a flat stretch of roots will do too
    noise = 1e-15 * len(q)
    assert total(got - tolerance) <= noise and total(got + tolerance) >= -noise
    assert q.min() <= got <= q.max()


@pytest.mark.parametrize("name", ["normal", "even", "heavy", "skewed"])
def test_the_estimate_is_what_a_root_finder_and_a_minimiser_find(name):
    q, scale = SAMPLES[name], 1.3
    got = location_estimate(q, scale)
    root = brentq(lambda at: psi((at - q) / scale).sum(), q.min(), q.max(), xtol=1e-14, rtol=1e-14)
    assert got == pytest.approx(root, abs=1e-12)
    around = got + np.linspace(-1, 1, 201) * 0.01
    objective = [rho((at - q) / scale).sum() for at in around]
    assert np.argmin(objective) == 100


@pytest.mark.parametrize("n", [3, 4, 51, 100, 501])
def test_a_small_scale_gives_the_median(n):
    # Proposition 2.1: exactly, once every other point is beyond √2 s
    q = np.random.default_rng(n).permutation(np.cumsum(1 + np.arange(n) % 3)).astype(float)
    for scale in (0.3, 1e-3, 1e-300):
        assert location_estimate(q, scale) == np.median(q)


@pytest.mark.parametrize("name", ["normal", "skewed", "small"])
def test_a_large_scale_gives_the_mean_with_an_error_of_c_over_scale_squared(name):
    # Proposition 2.2; to leading order c is a sixth of the third central moment
    q = SAMPLES[name]
    off = q - q.mean()
    c = np.mean(off**3) / 6
    for scale in np.abs(off).max() * np.array([30.0, 300.0]):
        assert (q.mean() - location_estimate(q, scale)) * scale**2 == pytest.approx(c, rel=0.02)
    for scale in np.abs(off).max() * np.array([0.5, 1.0, 2.0, 4.0, 8.0]):
        assert abs(q.mean() - location_estimate(q, scale)) * scale**2 <= 6 * abs(c) + 1e-9
    assert location_estimate(q, 1e9) == pytest.approx(q.mean(), abs=1e-14)
    assert location_estimate(q, 1e300) == pytest.approx(q.mean(), abs=1e-14)


def test_shift_scale_and_reflection_go_along():
    q = SAMPLES["skewed"]
    at = location_estimate(q, 0.8)
    assert location_estimate(q + 5, 0.8) == pytest.approx(at + 5, abs=1e-12)
    assert location_estimate(4 * q, 3.2) == pytest.approx(4 * at, abs=1e-12)
    assert location_estimate(-q, 0.8) == pytest.approx(-at, abs=1e-12)


@pytest.mark.parametrize("n", [160, 401])
@pytest.mark.parametrize("scale", [0.5, 1.0, 3.0])
def test_one_corrupted_margin_moves_it_by_little(n, scale):
    # Proposition 4, as its proof has it: at most s √(2/m'), m' >= 24 the margins within s/√2
    rng = np.random.default_rng(29)
    worst = 0.0
    for _ in range(40):
        q = rng.standard_t(3, size=n)
        at = location_estimate(q, scale)
        near = np.count_nonzero(np.abs(at - q) <= scale * ROOT2 / 2)
        assert near >= 24
        for value in (1e12, -1e12, at + scale, at - scale):
            changed = q.copy()
            changed[rng.choice([q.argmin(), q.argmax(), rng.integers(n)])] = value
            moved = abs(location_estimate(changed, scale) - at)
            assert moved <= scale * np.sqrt(2 / near)
            worst = max(worst, moved)
    assert worst > 1e-3 * scale                 # something did happen


DRAWS = {
    # name: (draw, mean, variance)
    "normal": (lambda rng, n: rng.standard_normal(n), 0.0, 1.0),
    "student 2.5": (lambda rng, n: rng.standard_t(2.5, size=n), 0.0, 5.0),
    "lognormal": (lambda rng, n: rng.lognormal(size=n), np.exp(0.5), (np.e - 1) * np.e),
    "pareto 2.2": (lambda rng, n: rng.pareto(2.2, size=n), 1 / 1.2, 2.2 / (1.2**2 * 0.2)),
}


@pytest.mark.parametrize("delta", [0.3, 0.05])
@pytest.mark.parametrize("name", DRAWS)
def test_the_radius_holds_as_often_as_promised(name, delta):
    draw, mean, variance = DRAWS[name]
    rng, n, trials = np.random.default_rng(41), 200, 1000
    scale, radius = confidence_scale(n, variance, delta), confidence_radius(n, variance, delta)
    assert scale**2 == pytest.approx(n * variance / (2 * np.log(2 / delta)))
    assert radius == pytest.approx(np.sqrt(2 * variance * np.log(2 / delta) / n))
    missed = np.mean([abs(location_estimate(draw(rng, n), scale) - mean) > radius for _ in range(trials)])
    assert missed <= delta


def test_the_mean_does_worse_where_tails_are_heavy():
    # what the estimate is for: rare large errors. 99.8 % quantile of the error over the same draws
    draw, mean, variance = DRAWS["student 2.5"]
    rng, n = np.random.default_rng(43), 100
    q = [draw(rng, n) for _ in range(2000)]
    scale = confidence_scale(n, variance, 0.002)
    ours = np.quantile([abs(location_estimate(x, scale) - mean) for x in q], 0.998)
    assert ours < 0.8 * np.quantile([abs(x.mean() - mean) for x in q], 0.998)


def test_default_scale_columns_dtypes_and_streams():
    q = SAMPLES["heavy"]
    assert location_estimate(q) == location_estimate(q, confidence_scale(len(q), np.var(q)))
    assert location_estimate(q, delta=0.3) == location_estimate(q, confidence_scale(len(q), np.var(q), 0.3))
    table = np.c_[q, -q, q + 1]
    np.testing.assert_array_equal(location_estimate(table, 1.0), [location_estimate(c, 1.0) for c in table.T])
    assert location_estimate(iter(np.split(q, [3, 100])), 1.0) == location_estimate(q, 1.0)
    single = q.astype(np.float32)
    single.flags.writeable = False
    assert location_estimate(single, 1.0) == location_estimate(single.astype(float), 1.0)
    assert location_estimate(np.full(7, 0.3)) == 0.3 and location_estimate(np.full(7, 0.3), 2.0) == 0.3
    assert isinstance(location_estimate(q, 1), float)


def test_more_margins_than_one_chunk():
    q = np.random.default_rng(47).standard_normal((1 << 22) + 12_345)
    got = _catoni.location(q, 0.0, 0.7)
    assert got == pytest.approx(location_root(q, len(q), 0.0, 0.7), abs=1e-14)
    assert abs(psi((got - q) / 0.7).sum()) < 1e-9
    assert got == _catoni.location(q, 0.0, 0.7)


def test_points_beyond_reach_leave_no_rounding():
    # a million saturated points cancel exactly; a running sum of their ±B would move the root by 1e-10
    q = np.r_[np.full(499_999, -1e3), np.full(500_000, 1e3), [0.125, 0.75, 0.5]]
    # B + ψ(γ - 0.125) + ψ(γ - 0.5) + ψ(γ - 0.75) = 0 with one point more above than below: -B instead
    root = brentq(lambda at: psi(at - np.array([0.125, 0.5, 0.75])).sum() - 2 * ROOT2 / 3, 0, 2, xtol=1e-15)
    assert location_estimate(q, 1.0) == pytest.approx(root, abs=1e-14)


@pytest.mark.parametrize("margins, keywords, message", [
    ([], {}, "margins is empty"),
    (lambda: iter([]), {}, "margins is empty"),
    ([1.0, np.nan], {}, "margins contains NaN"),
    ([1.0, np.inf], {}, "margins contains NaN or infinity"),
    (np.zeros((2, 2, 2)), {}, "dimensions"),
    (lambda: iter([np.zeros((2, 2))]), {}, "dimensions"),
    (["a"], {}, "real numbers"),
    ([1.0, 2.0], {"scale": 0.0}, "scale must be a positive"),
    ([1.0, 2.0], {"scale": -1.0}, "scale must be a positive"),
    ([1.0, 2.0], {"scale": np.nan}, "scale must be a positive"),
    ([1.0, 2.0], {"scale": np.inf}, "scale must be a positive"),
    ([1.0, 2.0], {"delta": 0.0}, "delta must lie strictly between 0 and 1"),
    ([1.0, 2.0], {"delta": 1.0}, "delta must lie strictly between 0 and 1"),
])
def test_bad_input_is_refused_in_one_sentence(margins, keywords, message):
    for function in (location_estimate, margin_summary):
        with pytest.raises(ValueError, match=message):
            function(margins() if callable(margins) else margins, **keywords)


@pytest.mark.parametrize("arguments", [(0, 1.0), (10, -1.0), (10, np.nan), (10, 1.0, 0.0), (10, 1.0, 2.0), (2.5, 1.0)])
def test_bad_arguments_of_the_radius(arguments):
    for function in (confidence_radius, confidence_scale):
        with pytest.raises(ValueError):
            function(*arguments)


# ---------------------------------------------------------------- the summary

@pytest.mark.parametrize("name", ["normal", "heavy", "skewed", "tied", "small", "far"])
def test_summary_against_numpy_and_scipy(name):
    q = SAMPLES[name]
    levels = (0.0, 0.1, 0.5, 1.0)
    got = margin_summary(q, scale=0.9, quantiles=levels)
    assert got["n_samples"] == len(q) and got["scale"] == 0.9
    assert got["mean"] == pytest.approx(q.mean(), rel=1e-14, abs=1e-15)
    assert got["median"] == np.median(q)
    assert got["location"] == location_estimate(q, 0.9)
    assert got["variance"] == pytest.approx(np.var(q), rel=1e-12)
    assert got["skewness"] == pytest.approx(skew(q), rel=1e-9, abs=1e-12)
    assert got["share_nonpositive"] == np.mean(q <= 0)
    np.testing.assert_array_equal(got["quantiles"], np.quantile(q, levels))


def test_summary_hand_values():
    got = margin_summary([-1.0, 0.0, 0.0, 5.0])
    assert got["mean"] == 1 and got["median"] == 0 and got["variance"] == 5.5 and got["share_nonpositive"] == 0.75
    assert got["skewness"] == pytest.approx((-8 - 1 - 1 + 64) / 4 / 5.5**1.5)
    assert got["scale"] == confidence_scale(4, 5.5)


def test_summary_of_streams_columns_and_blocks(monkeypatch):
    q = SAMPLES["heavy"]
    whole = margin_summary(q)
    streamed = margin_summary(iter(np.split(q, [1, 1, 250])))
    assert {k: np.asarray(v).tolist() for k, v in whole.items()} == {
        k: np.asarray(v).tolist() for k, v in streamed.items()}
    table = margin_summary(np.c_[q, 2 * q])
    assert table["quantiles"].shape == (5, 2) and table["mean"].shape == (2,)
    for key, value in whole.items():
        np.testing.assert_array_equal(table[key][..., 0], value)
    np.testing.assert_allclose(table["skewness"], whole["skewness"], rtol=1e-12)
    monkeypatch.setattr("cmargin.margins._batches.BLOCK_ENTRIES", 64)
    for blocks in (margin_summary(q), margin_summary(iter([q]))):
        for key, value in whole.items():
            np.testing.assert_array_equal(blocks[key], value)


def test_summary_of_equal_margins_has_no_spread_and_no_nan():
    for q in (np.full(1000, 0.1), [2.0]):
        got = margin_summary(q)
        assert got["variance"] == 0 and got["skewness"] == 0 and got["scale"] == 0
        assert got["location"] == got["mean"] == got["median"] == q[0]


def test_summary_refuses_what_it_cannot_say():
    with pytest.raises(ValueError, match="too large for a variance"):
        margin_summary([1e200, -1e200])
    with pytest.raises(ValueError, match="quantiles must be"):
        margin_summary([1.0], quantiles=[0.5, 1.5])
    with pytest.raises(ValueError, match="quantiles must be"):
        margin_summary([1.0], quantiles=[np.nan])
