"""Walkers side by side against the literal steps of each and their mean; threads and slices change no bit."""

import numpy as np
import pytest
from api import _softmax_walkers
from naive_multinomial import literal_batches
from test_softmax_passes import BATCH, STRIDE, Setting, close

from cmargin import SLNDClassifier
from cmargin.solvers import cost
from cmargin.solvers.sgd import multinomial_choice, softmax_passes

EACH, R = 3, 4                        # batches of a walker between two means, and walkers


@pytest.fixture(autouse=True)
def rounds(monkeypatch):
    monkeypatch.setattr(cost, "WALKER_SIZES", (16, BATCH, EACH))


def walked(s, weights, n_batches=29, eta=0.004, rate=1.0):
    passes = s.passes()
    passes.walk(weights, s.batches[:n_batches].copy(), eta, rate, s.n_train, R)
    return passes


def literal(s, n_batches=29, eta=0.004, rate=1.0):
    """(W, b) of the last round's mean, its running mean, and how many batches a walker has taken."""
    W, b, done = np.zeros((s.k, s.X.shape[1])), np.zeros(s.k), 0
    at, mean = (W, b), (W, b)
    rows = [s.order[lo:min(lo + BATCH, s.n_train)] for lo in s.batches[:n_batches].tolist()]
    for first in range(0, n_batches, R * EACH):
        part = rows[first:first + R * EACH]
        ends, means = [], []
        for r in range(R):
            mine = part[len(part) * r // R:len(part) * (r + 1) // R]
            iterates, _ = literal_batches(s.X, s.y, mine, R * eta, s.H_star, s.centre, s.inverse.mean_square[0], rate,
                                          s.weight, *at)
            own = mean
            for number, iterate in enumerate(iterates[1:], done + 1):
                if number % STRIDE == 0:
                    own = [m + 2 / (number // STRIDE + 1) * (now - m) for m, now in zip(own, iterate, strict=True)]
            ends.append(iterates[-1])
            means.append(own)
        at, mean = ([sum(parts) / R for parts in zip(*every, strict=True)] for every in (ends, means))
        done += -(-len(part) // R)
    return at, mean, done


@pytest.mark.parametrize("d", [12, 43])                           # products by a BLAS, and by rows in groups
@pytest.mark.parametrize("n_batches", [24, 29, 2])                # whole rounds, one that is not, fewer than walkers
def test_walkers_take_the_literal_steps_and_their_mean(d, n_batches):
    s = Setting(d=d)
    last, mean, done = literal(s, n_batches)
    for average, (W, b) in ((False, last), (True, mean if done >= STRIDE else last)):
        weights = s.weights(average)
        walked(s, weights, n_batches)
        assert weights.n_done == done
        close(weights.linear(s.inverse)[0], W, 1e-9)
        close(weights.linear(s.inverse)[1], b, 1e-9)


def test_rows_are_met_once_and_their_losses_kept():
    s = Setting()
    n_batches = len(s.batches) // 30                              # of one pass
    loss, _, weight = walked(s, s.weights(), n_batches, eta=0.0).met(s.n_train)
    assert loss == pytest.approx(np.log(4) * weight)


@pytest.mark.parametrize("d", [12, 43])
def test_threads_and_slices_change_no_bit_of_walkers(d, dtype, monkeypatch):
    results = []
    for threads, flops in ((1, 2e9), (2, 2e9), (3, 1.0), (16, 2e9)):
        monkeypatch.setattr(softmax_passes, "SLICE_FLOPS", flops)
        s = Setting(dtype=dtype, d=d, threads=threads)
        weights = s.weights(True)
        walked(s, weights, 200)
        results.append(weights.linear(s.inverse))
    for W, b in results[1:]:
        assert np.array_equal(W, results[0][0]) and np.array_equal(b, results[0][1])


def test_a_fit_by_walkers_is_that_of_any_number_of_threads(monkeypatch):
    # few threads would be as well served by batches one after the other; the way is chosen by the data alone
    monkeypatch.setattr(cost, "WALKERS", {900: 8, 400: 4})
    assert [multinomial_choice.walkers(n, 4, False) for n in (399, 400, 900)] == [1, 4, 8]
    assert multinomial_choice.walkers(900, 17, False) == multinomial_choice.walkers(900, 4, True) == 1
    walks = []
    known = _softmax_walkers.walk
    monkeypatch.setattr(_softmax_walkers, "walk", lambda *given: walks.append(1) or known(*given))
    s = Setting(d=20)
    fits = [SLNDClassifier(max_passes=5, n_jobs=n, random_state=0).fit(s.X, s.y) for n in (1, 3)]
    assert walks and np.array_equal(fits[0].coef_, fits[1].coef_)
    assert fits[0].score(s.X, s.y) > 0.9


def test_what_does_not_fit_is_refused():
    s = Setting()
    passes, weights = s.passes(), s.weights()
    passes.parts_size -= 1
    with pytest.raises(ValueError, match="walk, workspace"):
        passes.walk(weights, s.batches[:8].copy(), 0.1, 1.0, s.n_train, R)
    with pytest.raises(ValueError, match="walk: shapes"):
        passes.walk(weights, s.batches[:8].copy(), 0.1, 1.0, s.n_train, 17)
    with pytest.raises(ValueError, match="outside the rows"):
        s.passes().walk(weights, np.array([s.n_train]), 0.1, 1.0, s.n_train, R)
