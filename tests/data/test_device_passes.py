"""Multinomial passes on a device, batch by batch."""

import copy
import warnings

import numpy as np
import pytest
from conftest import blobs
from tensors import LIBRARIES, SINGLE, strict

from cmargin import MarginPursuitClassifier, SLNDClassifier, SmSVMClassifier
from cmargin.data.device.softmax_passes import DevicePasses


@pytest.mark.parametrize("library", LIBRARIES)
def test_batches_have_steps_of_their_own_and_may_be_met_again(monkeypatch, library):
    # how much rows count is found for all batches at once, in the order in which they are met
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


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_small_tensor_ends_as_rows_in_memory_do(library, weighted, dtype):
    # 30 passes and 0.975 of 120 rows, where rows in memory had 300 and all of them: the penalised end was theirs alone
    X, y = blobs(n=120, d=20, k=4, seed=11)
    X, weight = X.astype(dtype), 0.5 + np.arange(120) % 3 if weighted else None
    here, there = (SLNDClassifier(random_state=0).fit(rows, y, weight) for rows in (X, LIBRARIES[library](X)))
    assert here.history_["step"][-1] == there.history_["step"][-1] == 0
    assert here.n_passes_ == there.n_passes_ and here.n_iter_ == there.n_iter_
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-3 if dtype == np.float32 else 1e-9)


@pytest.mark.skipif(strict is None, reason="array-api-strict is not installed")
def test_double_precision_is_not_asked_for_where_the_library_says_it_has_none(monkeypatch):
    # JAX 0.10 without jax_enable_x64 warned in every fit that what was asked for was truncated to float32
    zeros, asked = strict.zeros, []

    def watched(*shape, dtype=None, **more):
        asked.append(dtype)
        return zeros(*shape, dtype=dtype, **more)

    X, y = blobs(n=200, d=6, k=3)
    X = X.astype(np.float32)
    monkeypatch.setattr(strict, "zeros", watched)
    for model in (SmSVMClassifier(), MarginPursuitClassifier(), SLNDClassifier(random_state=0, max_passes=2)):
        model.fit(SINGLE(X), y).predict(SINGLE(X))
    assert strict.float64 not in asked


def test_jax_without_double_precision():
    jnp = pytest.importorskip("jax.numpy")
    X, y = blobs(n=200, d=6, k=3)
    X = X.astype(np.float32)
    for model in (SmSVMClassifier(), MarginPursuitClassifier(), SLNDClassifier(random_state=0, max_passes=2)):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            there = model.fit(jnp.asarray(X), jnp.asarray(y)).score(jnp.asarray(X), y)
        assert not [one for one in said if "dtype" in str(one.message)]
        assert there > model.fit(X, y).score(X, y) - 0.01
