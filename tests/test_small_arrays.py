"""What is said of small arrays without NumPy, and random orders, against NumPy."""

import numpy as np
import pytest
import scipy.sparse as sp

from cmargin._core.small._arrays import all_finite, any_nonzero, margins_of, total
from cmargin._core.small._sampling import held_last, shuffle


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 1000, 70_000])
def test_one_number_that_is_not_finite_is_seen_wherever_it_is(n, dtype):
    a = np.full(n, np.finfo(dtype).max, dtype)
    assert all_finite(a)
    for place in {0, n // 2, n - 1} if n else ():
        for value in (np.nan, np.inf, -np.inf):
            b = a.copy()
            b[place] = value
            assert not all_finite(b)


def test_zeros_and_sums():
    a = np.zeros(100)
    assert not any_nonzero(a) and total(a) == 0 and total(a[:0]) == 0
    a[99] = -2.5
    assert any_nonzero(a) and total(a) == -2.5
    assert any_nonzero(np.array([0, np.nan]))
    b = np.random.default_rng(0).standard_normal(100_000)
    assert total(b) == pytest.approx(b.sum(), rel=1e-12)


def test_every_order_is_as_likely_and_the_stream_goes_on():
    stream = np.random.SeedSequence(3).generate_state(4, np.uint64)
    counts = {}
    for _ in range(6000):
        a = np.arange(3)
        shuffle(a, stream)
        counts[tuple(a)] = counts.get(tuple(a), 0) + 1
    assert len(counts) == 6 and all(900 < n < 1100 for n in counts.values())
    with pytest.raises(ValueError, match="shuffle"):
        shuffle(np.arange(3), stream[:3])


def test_the_first_rows_of_every_class_are_put_last_in_their_order():
    rng = np.random.default_rng(1)
    order, truth, wanted = rng.permutation(500), rng.integers(0, 7, 500), rng.integers(0, 30, 7)
    held = np.zeros(500, bool)
    for c in range(7):
        held[order[truth[order] == c][:wanted[c]]] = True
    found = held_last(order, truth, wanted.copy())
    assert np.array_equal(found, np.concatenate([order[~held[order]], order[held[order]]]))
    for broken in ((order[1:], truth), (order + 1, truth), (order, truth + 1), (order, truth - 1)):
        with pytest.raises(ValueError, match="held_last"):
            held_last(*broken, wanted.copy())


def test_margins_are_scores_with_the_sign_of_their_class():
    rng = np.random.default_rng(2)
    Y = sp.random(50, 6, 0.4, "csr", random_state=0)
    code = np.where(Y.toarray() > 0, 1.0, -1.0)
    starts, classes = Y.indptr.astype(np.int64), Y.indices.astype(np.int64)
    for rows, columns in ((slice(0, 50), slice(0, 6)), (slice(10, 30), slice(2, 5))):
        scores = rng.standard_normal((50, 6))[rows, columns].copy()
        margins = scores.copy()
        margins_of(margins, starts, classes, rows.start, columns.start)
        assert np.array_equal(margins, scores * code[rows, columns])
    with pytest.raises(ValueError, match="margins_of"):
        margins_of(rng.standard_normal((50, 6)), starts, classes, 1, 0)
    with pytest.raises(ValueError, match="margins_of"):
        margins_of(rng.standard_normal((50, 6)), starts, classes[:-1], 0, 0)
