"""Losses of rows on a device: values, slopes, curvatures and dual gains as they are compiled."""

import naive_smsvm as naive
import numpy as np
import pytest
from api import _losses
from tensors import strict

from cmargin.data.device import losses

if strict is None:
    pytest.skip("array-api-strict is not installed", allow_module_level=True)
PARAMETERS = {"smoothed_hinge": [(1.0,), (1e-3,)], "margin_pursuit": [(1.0, 1.0), (0.5, 3.0)],
              "huberised_hinge": [(1.0,), (0.4,), (3.0,)], "squared_epsilon_insensitive": [(0.0,), (0.7,)],
              "huber": [(1.0,), (0.4,)]}
CASES = [(name, p) for name in losses.LOSSES for p in PARAMETERS.get(name, [()])]
WITH_TWO_KINKS = {"epsilon_insensitive", "quantile"}               # `SmoothedKinks`


@pytest.mark.parametrize("name, parameters", CASES)
def test_losses_are_those_that_are_compiled(name, parameters):
    z = np.concatenate([np.linspace(-4, 4, 401), [1.0, 0.0, -700.0, 700.0]])
    wanted = np.empty((3, len(z)))
    _losses.evaluate(_losses.LOSS_IDS[name], z, *wanted, *parameters)
    for xp, at in ((np, z), (strict, strict.asarray(z))):
        for found, known in zip(losses.LOSSES[name](xp, at, *parameters), wanted, strict=True):
            np.testing.assert_allclose(np.asarray(found), known, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("name, parameters", [case for case in CASES if case[0] in losses.GAINS])
def test_dual_gains_equal_the_kernel(name, parameters):
    a = np.linspace(0, 1, 101)
    wanted = np.empty(len(a))
    _losses.gains(_losses.LOSS_IDS[name], a, wanted, *parameters)
    found = losses.GAINS[name](strict, strict.asarray(a), *parameters)
    np.testing.assert_allclose(np.asarray(found), wanted, atol=1e-15)
    with_dual = {name for name, facts in _losses.FACTS.items() if facts["dual_largest"] > 0}
    assert set(losses.GAINS) == with_dual - WITH_TWO_KINKS - {"smoothed_hinge"}


def test_dual_curvature_is_the_twin_s():
    u, a = np.linspace(-3, 3, 61), np.linspace(0, 1, 61)
    np.testing.assert_allclose(losses.SmoothedHinge(np, u, 0.3).dual_curvature(a), naive.dual_curvature(a, u, 0.3))
