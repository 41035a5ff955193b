import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from api import _line_sums, _losses
from naive import CURVATURE_AT_ZERO, LOSS_SLOPES, LOSS_VALUES, posterior
from scipy.optimize import minimize_scalar

import cmargin
from cmargin import SmSVMClassifier
from cmargin.data import open_rows
from cmargin.data.loss import Loss

PARAMETERS = {
    "smoothed_hinge": [(1.0,), (1e-3,)],
    "huberised_hinge": [(1.0,), (0.3,), (5.0,)],
    "squared_epsilon_insensitive": [(0.0,), (0.7,)],
    "huber": [(0.3,), (2.0,)],
    "margin_pursuit": [(1.0, 1.0), (0.5, 3.0), (2.0, 0.2)],
    "epsilon_insensitive": [(0.0,), (0.7,)],
    "quantile": [(0.2,), (0.9,)],
}
CASES = [(name, p) for name in _losses.LOSS_IDS for p in PARAMETERS.get(name, [()])]


def evaluate(name, z, parameters=()):
    z = np.ascontiguousarray(z, dtype=float)
    out = [np.empty_like(z) for _ in range(3)]
    _losses.evaluate(_losses.LOSS_IDS[name], z, *out, *parameters)
    return out


def away_from_kinks(name, parameters):
    """Margins a stencil's width away from where a derivative of the loss has a corner."""
    z = np.linspace(-6, 6, 241) + 0.0137
    if name in ("hinge", "squared_hinge"):
        z = z[np.abs(z - 1) > 0.02]
    if name in ("epsilon_insensitive", "quantile"):
        z = z[np.abs(np.abs(1 - z) - parameters[0] * (name == "epsilon_insensitive")) > 0.02]
    if name in ("huberised_hinge", "modified_huber", "huber", "squared_epsilon_insensitive"):
        width = parameters[0] if parameters else 2.0
        z = z[(np.abs(z - 1) > 0.02) & (np.abs(np.abs(1 - z) - width) > 0.02)]
    if name == "calibrated_hinge":
        z = z[np.abs(z) > 0.02]
    if name == "margin_pursuit":
        level, scale = parameters            # rho'' bends at |u| = sqrt 2
        z = z[np.abs(np.abs((level - z) / scale) - np.sqrt(2)) > 0.02]
    return z


def scale_of(name, parameters):
    """Length over which the loss bends, to choose the stencil."""
    return {"smoothed_hinge": parameters[:1], "margin_pursuit": parameters[1:]}.get(name, (1.0,))[0]


@pytest.mark.parametrize("name", _losses.AT_ZERO)
def test_facts_of_a_loss_are_those_of_its_function(name):
    z = np.append(np.linspace(-5, 5, 4001), 0.0)
    value, slope, curvature = np.empty((3, len(z)))
    _losses.evaluate(_losses.LOSS_IDS[name], z, value, slope, curvature)
    assert abs(value[-1]) == pytest.approx(_losses.AT_ZERO[name], rel=1e-15)
    if name in _losses.LARGEST_CURVATURE:
        assert curvature.max() == curvature[-1] == _losses.LARGEST_CURVATURE[name]
    facts = _losses.FACTS[name]
    if facts["dual_bend"] >= 0:                            # and the gain of a dual variable is that parabola
        a = np.linspace(0, min(facts["dual_largest"], 4), 33)
        _losses.gains(_losses.LOSS_IDS[name], a, found := np.empty(33))
        np.testing.assert_allclose(found, a - facts["dual_bend"] * a**2 / 2, rtol=1e-15)
    if name in _losses.STEEPEST:
        assert np.all(slope**2 <= _losses.STEEPEST[name] ** 2 * np.maximum(1, value))


@pytest.mark.parametrize("name, parameters", CASES)
def test_values_match_the_formula(name, parameters):
    z = np.linspace(-40, 40, 1001)
    expected = LOSS_VALUES[name](z, *parameters)
    np.testing.assert_allclose(evaluate(name, z, parameters)[0], expected, atol=1e-13, rtol=1e-12)


@pytest.mark.parametrize("name, parameters", CASES)
def test_slope_is_the_five_point_derivative_of_the_value(name, parameters):
    z = away_from_kinks(name, parameters)
    h = 1e-3 * scale_of(name, parameters)
    value = [evaluate(name, z + j * h, parameters)[0] for j in (-2, -1, 1, 2)]
    slope = (value[0] - 8 * value[1] + 8 * value[2] - value[3]) / (12 * h)
    np.testing.assert_allclose(evaluate(name, z, parameters)[1], slope, atol=2e-10 / min(1, h * 1e3), rtol=1e-8)


@pytest.mark.parametrize("name, parameters", CASES)
def test_curvature_is_the_five_point_derivative_of_the_slope(name, parameters):
    z = away_from_kinks(name, parameters)
    h = 1e-3 * scale_of(name, parameters)
    slope = [evaluate(name, z + j * h, parameters)[1] for j in (-2, -1, 1, 2)]
    curvature = (slope[0] - 8 * slope[1] + 8 * slope[2] - slope[3]) / (12 * h)
    np.testing.assert_allclose(evaluate(name, z, parameters)[2], curvature, atol=1e-8 / min(1, h * 1e3), rtol=1e-6)


@pytest.mark.parametrize("name", ["logistic", "calibrated_hinge", "squared"])
def test_calibrated_losses_give_posteriors(name):
    s = np.linspace(-30, 30, 501)
    out = np.empty_like(s)
    _losses.posterior(_losses.LOSS_IDS[name], s, out)
    np.testing.assert_allclose(out, posterior(name, s), atol=1e-15)
    np.testing.assert_allclose(out + out[::-1], 1, atol=1e-14)      # symmetric about (0, 1/2)
    assert np.all(np.diff(out) >= 0) and out.min() >= 0 and out.max() <= 1
    curvature = evaluate(name, s)[2]
    assert curvature.max() == curvature[250] == CURVATURE_AT_ZERO[name]     # F'' <= F''(0)


@pytest.mark.parametrize("delta", [5e-324, 1e-300, 1e-20, 0.4, 1.0, 3.0, 1e20, 1e300])
def test_huberised_hinges_of_any_width_stay_between_their_ends(delta):
    u = np.array([-1e300, -1.0, 0.0, 1e-300, delta / 2, delta, 2.0, 1e300, np.inf])
    value, slope, _ = evaluate("huberised_hinge", 1 - u, (delta,))
    u = 1 - (1 - u)
    with np.errstate(over="ignore"):
        share = np.clip(u / delta, 0, 1)
    assert np.array_equal(-slope, share) and not np.isnan(value).any()
    assert (np.maximum(0, u - delta / 2) <= value * (1 + 1e-15)).all() and (value <= np.maximum(0, u)).all()
    facts = Loss("huberised_hinge", (delta,)).facts
    assert facts["at_zero"] == pytest.approx(evaluate("huberised_hinge", [0.0], (delta,))[0][0], rel=1e-15)
    assert np.isnan(evaluate("huberised_hinge", [np.nan], (delta,))[0][0])
    mine = value[np.isfinite(value)]
    assert (slope[np.isfinite(value)] ** 2 <= facts["steepest"] ** 2 * np.maximum(1, mine) * (1 + 1e-14)).all()


@pytest.mark.parametrize("delta", [0.2, 1.0, 2.0])
def test_the_modified_huber_loss_is_four_huberised_hinges_of_two(delta):
    z = np.linspace(-5, 3, 401)
    for ours, four in zip(evaluate("modified_huber", z), evaluate("huberised_hinge", z, (2.0,)), strict=True):
        np.testing.assert_array_equal(ours, 4 * four)
    a = np.linspace(0, 1, 21)
    _losses.gains(_losses.LOSS_IDS["huberised_hinge"], a, found := np.empty(21), delta)
    lowest = [minimize_scalar(lambda z, b=b: LOSS_VALUES["huberised_hinge"](z, delta) + b * z, bounds=(-9, 9),
                              method="bounded", options={"xatol": 1e-12}).fun for b in a]
    np.testing.assert_allclose(found, lowest, atol=1e-8)


def test_hand_values():
    assert evaluate("modified_huber", [-1.0])[0][0] == 4.0
    assert evaluate("huberised_hinge", [0.5], (1.0,))[0][0] == 0.125
    assert evaluate("logistic", [0.0])[0][0] == pytest.approx(np.log(2))
    assert evaluate("calibrated_hinge", [0.0])[0][0] == pytest.approx(-np.log(2))
    assert evaluate("squared", [-1.0])[0][0] == 1.0
    assert evaluate("hinge", [1.0])[1][0] == 0.0
    assert evaluate("smoothed_hinge", [1.0], (0.5,))[0][0] == 0.25
    assert evaluate("margin_pursuit", [0.0], (1.0, 1.0))[0][0] == pytest.approx(0.5 - 1 / 24)


def test_nothing_overflows_or_cancels_far_out():
    far = np.array([-1e300, -800.0, 800.0, 1e300])
    for name, parameters in CASES:
        for out in evaluate(name, far[1:3], parameters):
            assert np.all(np.isfinite(out)), name
    value, slope, curvature = evaluate("logistic", far)
    assert value[0] == 1e300 and 0 <= value[3] < 1e-300 and slope[0] == -1 and np.all(curvature >= 0)
    assert np.all(np.isnan(evaluate("logistic", [np.nan])))
    # the smoothed hinge decays like width^2 / (4 |u|): the naive formula loses every digit here
    assert evaluate("smoothed_hinge", [1e6 + 1], (1e-3,))[0][0] == pytest.approx(2.5e-13, rel=1e-9)
    assert evaluate("smoothed_hinge", [1e6 + 1], (1e-3,))[1][0] == pytest.approx(-2.5e-19, rel=1e-9)


@pytest.mark.parametrize("width", [5e-324, 1e-300, 1e-160, 1e-151, 1e151, 1e160, 1e300, 8e307])
def test_a_smoothed_hinge_as_sharp_or_as_flat_as_numbers_go(width):
    # The square of the width left the range of doubles: 0/0 at the kink of the sharpest, inf/inf in the flattest
    u = np.array([-1e300, -3.0, 0.0, 1e-300, 1e-9, 3.0, 1e300, width, -width])
    z = 1 - u
    u = 1 - z                                            # what is left of it
    value, slope, curvature = evaluate("smoothed_hinge", z, (width,))
    near = np.abs(u / 2 + np.hypot(u, width) / 2 - value) <= 1e-15 * value + width
    assert np.isfinite(value).all() and near.all()
    with np.errstate(over="ignore", under="ignore"):
        t = np.clip(u / width, -1e30, 1e30)
    expected = (1 + t / np.hypot(1, t)) / 2
    np.testing.assert_allclose(-slope, expected, atol=1e-15)
    assert not np.isnan(curvature).any() and (curvature >= 0).all()


def test_slopes_agree_with_the_twin():
    z = np.linspace(-20, 20, 333)
    for name, slope in LOSS_SLOPES.items():
        np.testing.assert_allclose(evaluate(name, z)[1], slope(z), atol=1e-14)


def test_a_loss_without_posterior_is_refused():
    with pytest.raises(ValueError, match="calibrated"):
        _losses.posterior(_losses.LOSS_IDS["hinge"], np.zeros(1), np.zeros(1))


def test_a_loss_without_dual_is_refused_where_a_bound_is_wanted():
    for name, facts in _losses.FACTS.items():
        if not facts["dual_largest"] > 0:
            with pytest.raises(ValueError, match=name):
                _losses.gains(_losses.LOSS_IDS[name], np.zeros(1), np.zeros(1))
            with pytest.raises(ValueError, match=name):
                open_rows(np.eye(3)).row_pass(np.ones(3), intercept=True, n_threads=1).set_loss(Loss(name))


def test_an_unknown_loss_is_refused():
    for loss in (-1, len(_losses.FACTS)):
        for call in (lambda loss=loss: _losses.evaluate(loss, *np.zeros((4, 1))),
                     lambda loss=loss: _losses.gains(loss, *np.zeros((2, 1))),
                     lambda loss=loss: _losses.posterior(loss, *np.zeros((2, 1)))):
            with pytest.raises(ValueError, match=f"unknown loss id {loss}"):
                call()


def test_a_loss_is_one_value_that_may_be_sent():
    # a loss was its name alone, and a parameter of it would have had to travel beside it to every place of rows
    loss = Loss("margin_pursuit", (0.3, 2.0))
    assert pickle.loads(pickle.dumps(loss)) == loss != Loss("margin_pursuit")
    assert [Loss("smoothed_hinge", p).numbers for p in ((), (0.3,))] == [(1.0, 1.0), (0.3, 1.0)]
    for name, facts in _losses.FACTS.items():
        assert repr(Loss(name).facts) == repr(facts)
        assert Loss(name).id == _losses.LOSS_IDS[name]


def test_a_smooth_loss_is_its_file_a_line_of_the_table_and_an_option():
    # doc/architecture.md, "What to add where": whoever adds a loss does as was done for the squared hinge
    source = Path(cmargin.__file__).parent
    named = {str(path.relative_to(source)) for path in source.rglob("*.p*")
             if path.suffix in (".py", ".pyx", ".pxd") and re.search(r"(?i)\bsquared_hinge\b", path.read_text())}
    peers = {"export/liblinear.py"}             # LIBLINEAR's option of that name
    proofs = {"solvers/left_out/problem.py"}    # bounds that are proven loss by loss; other losses are refused there
    alone = {"solvers/plan.py"}                 # a stage of this loss only: many problems side by side
    assert named - peers - proofs - alone == {"_core/losses/_squared_hinge.pxd", "_core/losses/_losses.pxd",
                                      "data/device/losses.py", "smsvm.py"}
    assert SmSVMClassifier(loss="squared_hinge").fit(np.eye(4), [0, 1, 0, 1]).duality_gap_[0] <= 1e-4


@pytest.mark.parametrize("name, parameters", [("hinge", ()), ("logistic", ()), ("squared_hinge", ()),
                                              ("huberised_hinge", (0.3,)), ("modified_huber", ())])
def test_sums_between_two_points_are_those_of_every_row(name, parameters):
    rng, loss, n = np.random.default_rng(3), Loss(name, parameters), 20_003
    signed_weight, first, second = rng.standard_normal(n), 3 * rng.standard_normal(n), 3 * rng.standard_normal(n)
    a, b = rng.random((2, n))
    for part in (0.0, 0.3, 1.0):
        value, _, _ = evaluate(name, 1 - (part * first + (1 - part) * second), parameters)
        gain = np.empty(n)
        _losses.gains(_losses.LOSS_IDS[name], part * a + (1 - part) * b, gain, *parameters)
        found = {_line_sums.between(loss, False, signed_weight, first, second, part, threads) for threads in (1, 2, 3)}
        assert len(found) == 1
        assert found.pop() == pytest.approx(np.abs(signed_weight) @ value, rel=1e-12)
        if name != "hinge":
            there = _line_sums.between(loss, True, signed_weight, a, b, part, 2)
            assert there == pytest.approx(np.abs(signed_weight) @ gain, rel=1e-12)
    with pytest.raises(ValueError, match="fit"):
        _line_sums.between(loss, False, signed_weight, first[1:], second, 0.5, 1)
    with pytest.raises(ValueError, match="fit"):
        _line_sums.between(Loss("huber", (1.0,)), True, signed_weight, a, b, 0.5, 1)
