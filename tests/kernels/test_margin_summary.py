import numpy as np
import pytest
from api import _catoni, _margin_summary, with_sorted_places
from c_functions import ARRAY, NUMBER, SIZE, c_function
from naive_margins import power_of_two, summary

from cmargin.margins import confidence_scale, location_estimate, margin_summary
from cmargin.margins.summary import summary_of

location_root = c_function(_catoni, "location_root", NUMBER, ARRAY, SIZE, NUMBER, NUMBER)
rng = np.random.default_rng(61)
LARGEST = np.finfo(float).max

SHAPES = {
    "1": np.array([-3.7]), "2": np.array([2.5, -1.0]), "3": np.array([0.1, 0.9, 0.25]),
    "2 equal": np.array([0.1, 0.1]), "zeros": np.array([0.0, -0.0, 0.0]), "one 0": np.array([0.0]),
    "odd": rng.standard_normal(501) + 0.3, "even": rng.standard_normal(500) + 0.3, "digits": rng.standard_normal(1797),
    "negative": -rng.exponential(size=77), "sorted": np.sort(rng.standard_normal(300)),
    "reversed": np.sort(rng.standard_normal(301))[::-1].copy(), "equal": np.full(1000, 0.1),
    "ties": rng.integers(-2, 3, 300).astype(float), "two values": np.r_[np.zeros(90), np.ones(110)],
    "heavy": rng.standard_t(1, 400), "skewed": rng.lognormal(sigma=2, size=333), "far": 1e6 + rng.standard_normal(200),
    "last digits": 1 + rng.integers(0, 4, 50) * np.spacing(1.0), "farther": 1e13 + rng.standard_normal(200),
    "outlier": np.r_[rng.standard_normal(50), 1e15], "hill": np.r_[np.arange(200.0), np.arange(200.0)[::-1]],
    "valley": np.r_[np.arange(200.0)[::-1], np.arange(200.0)], "saw": np.arange(400.0) % 7,
    "blocks": rng.standard_normal(10_001) + 2,
    "huge": rng.standard_normal(60) * 1e300, "hugest": np.array([LARGEST, -LARGEST, LARGEST, 1.0]),
    "large": rng.standard_normal(61) * 1e100, "small": rng.standard_normal(61) * 1e-100,
    "tiny": np.arange(-20, 31) * 1e-310, "least": np.array([0, 5e-324]), "wide": 10.0 ** np.arange(-300, 300, 20),
}
LEVELS = {"trace": [0.05, 0.25, 0.75, 0.95], "ends": [0.0, 1.0], "none": [], "repeated": [0.5, 0.1, 0.5, 0.1, 1.0, 0.0],
          "many": rng.random(200)}


def check(got, expected, q):
    assert list(got) == list(expected)
    for name in ("n_samples", "median", "share_nonpositive"):
        assert got[name] == expected[name], name
    np.testing.assert_array_equal(got["quantiles"], expected["quantiles"])
    size = np.abs(q).max()
    part = q / power_of_two(size)
    off = np.abs(part - part.mean())
    assert got["mean"] == pytest.approx(expected["mean"], rel=1e-12, abs=1e-13 * size)
    assert got["variance"] == pytest.approx(expected["variance"], rel=1e-12)
    spread = np.mean(off**3) / np.mean(off**2)**1.5 if off.any() else 0      # nothing skew is so to rounding only
    assert got["skewness"] == pytest.approx(expected["skewness"], rel=1e-12, abs=1e-12 * spread)
    assert got["scale"] == pytest.approx(expected["scale"], rel=1e-12)
    assert got["location"] == pytest.approx(expected["location"], rel=1e-12, abs=1e-12 * min(got["scale"], size))


@pytest.mark.parametrize("scale", [None, 1e-3, 0.3, 1.0, 100.0])
@pytest.mark.parametrize("name", SHAPES)
def test_the_kernel_says_what_its_slow_twin_says(name, scale):
    q, levels = SHAPES[name], np.array(LEVELS["trace"])
    kept = q.copy()
    if scale is not None:
        scale = max(scale * min(np.abs(q).max(), LARGEST / 100), np.finfo(float).tiny)
    with np.errstate(over="ignore"):
        check(summary_of(q, scale, 0.05, levels), summary(q, scale, 0.05, levels), q)
    np.testing.assert_array_equal(q, kept)


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("name", SHAPES)
def test_quantiles_are_those_of_numpy_to_the_last_bit(name, levels):
    q, levels = SHAPES[name], np.array(LEVELS[levels])
    unit = power_of_two(np.abs(q).max())
    found = summary_of(q, 1.0, 0.05, levels)
    np.testing.assert_array_equal(found["quantiles"], np.quantile(q / unit, levels) * unit)
    assert found["median"] == np.quantile(q / unit, 0.5) * unit


@pytest.mark.parametrize("scale", [1e-300, 1e-3, 1.0, 1e200, 1e300])
@pytest.mark.parametrize("name", SHAPES)
def test_the_location_is_that_of_location_estimate_to_the_last_bit(name, scale):
    q = SHAPES[name]
    assert summary_of(q, scale, 0.05, np.array([]))["location"] == location_estimate(q, scale)


@pytest.mark.parametrize("power", [-900, -300, 300, 500])
@pytest.mark.parametrize("scale", [None, 0.7])
def test_everything_grows_with_its_margins_to_the_last_bit(power, scale):
    q, levels, factor = SHAPES["even"], np.array([0.05, 0.3]), 2.0**power
    one = summary_of(q, scale, 0.05, levels)
    other = summary_of(q * factor, None if scale is None else scale * factor, 0.05, levels)
    for name in ("mean", "median", "location", "scale", "quantiles"):
        np.testing.assert_array_equal(other[name], one[name] * factor)
    assert other["skewness"] == one["skewness"] and other["share_nonpositive"] == one["share_nonpositive"]
    assert other["variance"] == one["variance"] * factor * factor


def test_more_margins_than_the_location_takes_in_one_go():
    q = np.random.default_rng(47).standard_normal((1 << 22) + 12_345)
    got = summary_of(q, 0.7, 0.05, np.array([0.5]))
    assert got["location"] == location_estimate(q, 0.7)
    assert got["location"] == pytest.approx(location_root(q, len(q), got["median"], 0.7), abs=1e-14)
    assert got["mean"] == pytest.approx(q.mean(), abs=1e-15) and got["variance"] == pytest.approx(np.var(q), rel=1e-14)
    far = summary_of(q * 2.0**600, 0.7 * 2.0**600, 0.05, np.array([0.5]))
    assert far["location"] == got["location"] * 2.0**600


def test_a_long_sum_keeps_its_digits():
    # equal squares round the same way again and again: one running sum of so many is off by 1e-12 and more
    found = summary_of(np.tile([-0.3, 0.3], 1_500_000), 1.0, 0.05, np.array([]))
    assert found["variance"] == pytest.approx(0.09, rel=1e-13) and found["mean"] == pytest.approx(0, abs=1e-13)


def test_levels_and_margins_in_any_layout():
    q = SHAPES["odd"]
    levels = np.array([0.9, 0.0, 0.5, 0.1, 0.2])
    expected = np.quantile(q, levels)
    for same in (levels.tolist(), np.repeat(levels, 3)[::3], levels[::-1][::-1], levels.astype(">f8")):
        np.testing.assert_array_equal(margin_summary(q, quantiles=same)["quantiles"], expected)
    fixed = q.copy()
    fixed.flags.writeable = levels.flags.writeable = False
    np.testing.assert_array_equal(margin_summary(fixed, quantiles=levels)["quantiles"], expected)
    assert margin_summary(np.repeat(q, 2)[::2], scale=1.0)["location"] == margin_summary(q, scale=1.0)["location"]
    assert margin_summary(q, quantiles=[])["quantiles"].shape == (0,)
    with pytest.raises(ValueError, match="quantiles must be"):
        margin_summary(q, quantiles=0.5)


def test_the_scale_of_lemma_6_takes_one_number_from_python():
    q = SHAPES["heavy"]
    found = summary_of(q, None, 0.3, np.array([]))
    assert found["scale"] == confidence_scale(len(q), found["variance"], 0.3)
    assert found["location"] == location_estimate(q, found["scale"])


@pytest.mark.parametrize("broken", [np.full(9, np.nan), np.r_[np.nan, np.arange(9.0)], np.r_[np.arange(9.0), np.nan],
                                    np.full(9, np.inf), np.r_[-np.inf, np.arange(9.0), np.inf]])
def test_margins_that_are_no_numbers_end_and_are_seen(broken):
    # the evaluation of a gradient descent that leaves the range comes before it is noticed
    for scale in (1.0, 0.0):
        found = _margin_summary.summarise(broken, np.array([0.0, 0.3, 1.0]), scale, 2.0, np.empty(3))
        assert not np.isfinite(found["mean"])


# ---------------------------------------------------------------- a few places of the order

@pytest.mark.parametrize("rounds", [-1, 0, 1, 4])
@pytest.mark.parametrize("name", SHAPES)
def test_places_hold_what_sorting_puts_there(name, rounds):
    # rounds 0 to 4: the pivots failed, and the heap sort ends it
    q = SHAPES[name]
    ordered, n = np.sort(q), len(q)
    for wanted in (np.arange(n), [0], [n - 1], [n // 2, n // 2], np.sort(rng.integers(0, n, 5))):
        wanted = np.array(wanted)
        found = with_sorted_places(q, wanted.astype(float), rounds)
        np.testing.assert_array_equal(found[wanted], ordered[wanted])
        np.testing.assert_array_equal(np.sort(found), ordered)
    np.testing.assert_array_equal(with_sorted_places(q, np.empty(0)), q)


def test_parts_without_a_wanted_place_are_left_alone():
    q = rng.permutation(10_000).astype(float)
    found = with_sorted_places(q, np.array([5000.0]))
    assert found[5000] == 5000 and found[:5000].max() < 5000 < found[5001:].min()
    assert np.count_nonzero(np.diff(found[6000:]) < 0) > 1000
