"""Multinomial passes on a device, batch by batch."""

import copy

import numpy as np
import pytest
from conftest import blobs
from tensors import LIBRARIES

from cmargin import SLNDClassifier
from cmargin.homes.device.softmax_passes import DevicePasses


@pytest.mark.parametrize("library", LIBRARIES)
def test_batches_have_steps_of_their_own_and_may_be_met_again(monkeypatch, library):
    # what rows are worth is found for all batches at once, in the order in which they are met
    X, y = blobs(n=700, d=6, k=3)
    weight = np.random.default_rng(2).choice([0.0, 0.5, 2.0], len(y))
    run, seen = DevicePasses.run, []

    def both(self, weights, batches, step, *given):
        batches = np.append(batches, batches[:1])
        step = step[0] / np.arange(1, len(batches) + 1)
        together = copy.deepcopy(weights)
        run(self, together, batches, step, *given)
        loss, sums = self.met(1)[:2], np.zeros(2)
        for k in range(len(batches)):
            run(self, weights, batches[k:k + 1], step[k:k + 1], *given)
            sums += self.met(1)[:2]
        np.testing.assert_allclose(together.U, weights.U, rtol=1e-10, atol=1e-13)
        np.testing.assert_allclose(together.bias, weights.bias, rtol=1e-10, atol=1e-13)
        np.testing.assert_allclose(loss, sums, rtol=1e-12)
        seen.append(len(batches))

    monkeypatch.setattr(DevicePasses, "run", both)
    SLNDClassifier(random_state=0, max_passes=2).fit(LIBRARIES[library](X), y, weight)
    assert seen and min(seen) > 2
