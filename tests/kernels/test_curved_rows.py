"""Curvature of wide rows is summed after the pass, group by group of the rows that have any (`_curved_rows.pyx`)."""

import numpy as np
import pytest
from api import Rows, RowWindows
from naive_smsvm import curvature_above, evaluate, smoothed, with_ones
from rows_in_files import files_of

from cmargin import SmSVMClassifier
from cmargin._runtime.blas_threads import single_threaded_blas
from cmargin.data import open_rows

WIDTH, STEP = 0.3, 0.7


def data(order="C", dtype=np.float64, n=1500, m=140):
    rng = np.random.default_rng(3)
    X = (rng.standard_normal((n, m)) / 4).astype(dtype)
    y = np.where(X[:, 0] + rng.standard_normal(n) > 0, 1.0, -1.0)
    return np.asarray(X, order=order), y, rng.integers(0, 3, n).astype(float)


def pass_over(X, signed_weight, n_threads, active=None, intercept=True):
    rows = open_rows(X).row_pass(signed_weight, intercept=intercept, n_threads=n_threads)
    rows.set_active(active)
    return rows


def looked(rows, w, floor):
    with single_threaded_blas():
        return [part.copy() for part in rows.evaluate(w, STEP, 1.0, WIDTH, floor)]


@pytest.mark.parametrize("curved", [0, 1, 40, 400, 1500])
@pytest.mark.parametrize("order, dtype", [("C", np.float64), ("C", np.float32), ("F", np.float32)])
def test_the_sum_is_the_twin_s_whatever_the_number_of_curved_rows(order, dtype, curved):
    X, y, s = data(order, dtype)
    A, w = with_ones(X.astype(float), True), np.linspace(-0.5, 0.5, X.shape[1] + 1)
    h = np.where(s > 0, smoothed(1 - STEP * y * (A @ w), WIDTH)[2], 0)
    sizes = np.append(2 * h.max(), np.sort(h)[::-1])
    floor = sizes[curved:curved + 2].mean() if curved < len(h) else 0.0          # between two, whatever the rounding
    found = looked(pass_over(X, s * y, 1), w, floor)
    wanted = curvature_above(A, s, h, floor)
    np.testing.assert_allclose(np.triu(found[2]), np.triu(wanted), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(found[1], evaluate(A, y, s, 0 * w, w, 1.0, WIDTH, STEP)[1], rtol=1e-10, atol=1e-10)
    assert found[0][6] == (h > floor).sum() == min(curved, (h > 0).sum())


@pytest.mark.parametrize("active", [None, np.arange(2, 141), np.arange(0, 141, 20)], ids=["all", "most", "few"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_the_same_bits_for_any_number_of_threads(order, active):
    X, y, s = data(order, np.float32, n=9000)
    bits = set()
    for n_threads in (1, 2, 3, 9, 40):
        rows = pass_over(X, s * y, n_threads, active)
        for w in (np.full(141, 0.01), np.linspace(-0.1, 0.1, 141)):
            found = looked(rows, w, 1e-2)
        bits.add(b"".join(np.triu(np.atleast_2d(part)).tobytes() for part in found))
    assert len(bits) == 1


def test_threads_may_change_in_the_middle_of_an_evaluation():
    # 12,000 x 300: 32 groups, of which three threads have room for eight and one for one
    X, y, s = data(n=12_000, m=300)
    rows, heard = pass_over(X, s * y, 3), []

    def change():
        heard.append(rows.use_threads([1, 2, 3][len(heard) % 3]))

    w = np.linspace(-0.1, 0.1, 301)
    wanted = looked(pass_over(X, s * y, 1), w, 0.0)
    rows.between_slices = change
    found = looked(rows, w, 0.0)
    assert len(heard) > 1 and all(np.array_equal(np.triu(np.atleast_2d(one)), np.triu(np.atleast_2d(other)))
                                  for one, other in zip(found, wanted, strict=True))


def test_windows_add_up_to_all_rows():
    X, y, s = data(dtype=np.float32, n=2500)
    w = np.linspace(-0.1, 0.1, 141)
    rows, sums = RowWindows(Rows(X[:0]), s * y, True, 2, 900), []
    with single_threaded_blas():
        rows.begin_evaluation(w, STEP, 1.0, WIDTH, 1e-2)
        for first in range(0, len(X), 900):
            rows.see(Rows(X[first:first + 900]), first)
            sums.append([part.copy() for part in rows.evaluate_window()])
        rows.end_evaluation()
    for found, wanted in zip(zip(*sums, strict=True), looked(pass_over(X, s * y, 1), w, 1e-2), strict=True):
        np.testing.assert_allclose(np.triu(np.atleast_2d(sum(found))), np.triu(np.atleast_2d(wanted)), rtol=1e-10,
                                   atol=1e-10)


def test_windows_of_a_file_end_at_the_same_point(tmp_path):
    X, y, _ = data(dtype=np.float32, n=4000)
    fit = SmSVMClassifier(l2=1e-3, tol=1e-6, linear_solver="cholesky").fit
    wanted = fit(X, y).objective_.copy()
    found = fit(files_of(X, "shards", tmp_path), y)
    np.testing.assert_allclose(found.objective_, wanted, rtol=2e-6)
