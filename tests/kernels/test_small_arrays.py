"""What is said of small arrays without NumPy, and random orders, against NumPy."""

import numpy as np
import pytest
from api import (
    all_finite,
    any_nonzero,
    copied,
    count_codes,
    difference_moments,
    held_last,
    lines_finite,
    marked,
    rows_by_class,
    shuffle,
    square_sum,
    total,
    transposed,
    zeros,
)


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 1000, 70_000])
def test_one_number_that_is_not_finite_is_seen_wherever_it_is(n, dtype):
    a = np.full(n, np.finfo(dtype).max, dtype)
    assert all_finite(a)
    for place in {0, n // 2, n - 1} if n else ():
        for value in (np.nan, np.inf, -np.inf):
            b = a.copy()
            b[place] = value
            assert not all_finite(b)


def test_several_threads_see_every_number_of_many(dtype):
    n = 3 * 2**20 + 5                                                # three chunks, none of a power of two
    a = np.full(n, np.finfo(dtype).max, dtype)
    assert all_finite(a, 2) and all_finite(a, 8)
    for place in (0, n // 3 - 1, n // 3, 2 * n // 3 - 1, 2 * n // 3, n - 1):
        a[place] = np.nan
        assert not all_finite(a, 2) and not all_finite(a, 8)
        a[place] = 0


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1), (7, 9), (200, 600)])
def test_lines_of_any_strides(shape, dtype):
    a = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    wide = np.zeros((shape[0], shape[1] + 2), dtype)
    wide[:, :-2] = a
    for given in (a, np.asfortranarray(a), wide[:, :-2], wide[::-1, :-2][::-1]):
        given.setflags(write=False)
        b = transposed(given)
        assert b.dtype == dtype and np.array_equal(b, a.T) and b.flags.c_contiguous and not np.shares_memory(b, given)
        assert lines_finite(given)
    for place in {0, a.size // 2, a.size - 1} if a.size else ():
        for value in (np.nan, np.inf, -np.inf):
            b = a.copy()
            b.flat[place] = value
            assert not lines_finite(b) and not lines_finite(np.asfortranarray(b))
    wide[:, -1] = np.nan
    assert lines_finite(wide[:, :-2])


def test_differences_are_those_of_numpy():
    a, b = np.random.default_rng(4).standard_normal((2, 300)) + 1e3
    for n in (1, 2, 300):
        found = difference_moments(a[:n], b[:n])
        np.testing.assert_allclose(found, [np.mean(a[:n] - b[:n]), np.std(a[:n] - b[:n])], rtol=1e-12, atol=1e-15)
    b[7] = np.inf
    assert np.isnan(difference_moments(a, b)[1])
    for broken in ((a[1:], b), (a[:0], b[:0])):
        with pytest.raises(ValueError, match="difference_moments"):
            difference_moments(*broken)


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


@pytest.mark.parametrize("shape", [(0,), (3, 5), (200, 300), (0, 4)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int8])
def test_zeros_and_copies_are_those_of_numpy(shape, dtype):
    made = zeros(shape, dtype)
    assert made.shape == shape and made.dtype == dtype and not made.any() and made.flags.c_contiguous
    given = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    for a in (given, np.asfortranarray(given), given[::2]):
        a.setflags(write=False)
        b = copied(a)
        assert b.dtype == dtype and np.array_equal(a, b) and b.flags.c_contiguous and not np.shares_memory(a, b)
        b[...] = 1


def test_the_sum_of_squares_is_weighted():
    rng = np.random.default_rng(3)
    for dtype in (np.float32, np.float64):
        Z, s = rng.standard_normal((40, 7)).astype(dtype), rng.random(40)
        assert square_sum(Z, s) == pytest.approx(s @ (Z.astype(float)**2).sum(axis=1), rel=1e-12)
    with pytest.raises(ValueError, match="square_sum"):
        square_sum(Z, s[1:])


@pytest.mark.parametrize("labels", [[3, 1, 1, 7, 3], [0, 0], [-5, 4, -5], list(range(40)) * 3])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_classes_are_counted_as_numpy_sorts_them(labels, index):
    y = np.array(labels)
    found, codes = count_codes(y)
    expected, places = np.unique(y, return_inverse=True)
    assert np.array_equal(found, expected) and np.array_equal(codes, places)
    rows, starts = np.empty(len(y), index), np.empty(len(found) + 1, index)
    rows_by_class(codes, rows, starts)
    assert np.array_equal(rows, np.argsort(codes, kind="stable"))
    assert np.array_equal(starts, np.concatenate([[0], np.cumsum(np.bincount(codes))]))
    with pytest.raises(ValueError, match="rows_by_class"):
        rows_by_class(codes + 1, rows, starts)
    with pytest.raises(ValueError, match="rows_by_class"):
        rows_by_class(codes, rows[1:].copy(), starts)


def test_labels_far_apart_are_not_counted():
    extremes = np.iinfo(np.int64)
    for labels in ([extremes.min, extremes.max], [0, 1 << 40, 5], []):
        assert count_codes(np.array(labels, np.int64)) is None


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_the_numbers_that_occur_are_marked(index):
    places = np.random.default_rng(5).integers(0, 40, 25).astype(index)
    found = marked(places, 40)
    assert found.dtype == bool
    np.testing.assert_array_equal(np.flatnonzero(found), np.unique(places))
    assert not marked(places[:0], 3).any()
    for outside in (-1, 40):
        places[7] = outside
        with pytest.raises(ValueError):
            marked(places, 40)
