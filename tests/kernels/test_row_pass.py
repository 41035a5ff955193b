import numpy as np
import pytest
from naive_smsvm import curvature_above, evaluate, smoothed, with_ones
from scipy import sparse

from cmargin._runtime.blas_threads import single_threaded_blas
from cmargin.data import open_rows
from cmargin.data.loss import Loss

FORMATS = ["C", "F", "strided", "reversed", "csr32", "csr64"]


def make(fmt, dtype, n=613, m=11, seed=7):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, m)) * (rng.random((n, m)) < 0.6)
    X[:, 3] = 0
    X = X.astype(dtype)
    if fmt == "F":
        return np.asfortranarray(X)
    if fmt == "strided":
        wide = np.zeros((2 * n, 3 * m), dtype)
        wide[::2, ::3] = X
        return wide[::2, ::3]
    if fmt == "reversed":
        return np.ascontiguousarray(X[::-1])[::-1]          # negative row stride
    if fmt.startswith("csr"):
        A = sparse.csr_matrix(X)
        if fmt == "csr64":
            A.indices, A.indptr = A.indices.astype(np.int64), A.indptr.astype(np.int64)
        return A
    return X


def problem(fmt, dtype, weighted, n=613, m=11):
    X = make(fmt, dtype, n, m)
    rng = np.random.default_rng(19)
    y = np.where(rng.random(n) < 0.3, 1.0, -1.0)
    s = rng.integers(0, 4, n).astype(float) if weighted else np.ones(n)
    return X, y, s, np.where(s > 0, s, 1.0) * y * (s > 0)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("fmt", FORMATS)
def test_one_evaluation_equals_the_twin_and_is_the_same_for_any_thread_count(fmt, dtype, intercept, weighted):
    X, y, s, signed_weight = problem(fmt, dtype, weighted)
    A = with_ones(X, intercept)
    rng = np.random.default_rng(5)
    w, e = rng.standard_normal((2, A.shape[1])) * 0.4
    before = evaluate(A, y, s, 0 * w, w, 1.0, 0.7)
    expected = evaluate(A, y, s, w, e, 0.7, 0.3, 1.0, before[3])
    results = []
    for n_threads in (1, 3):
        rows = open_rows(X).row_pass(signed_weight, intercept=intercept, n_threads=n_threads)
        with single_threaded_blas():
            rows.evaluate(w, 1.0, 1.0, 0.7, 0.0, False)
            sums, gradient, hessian = rows.evaluate(e, 1.0, 0.7, 0.3, 0.0)
        results.append((sums.copy(), gradient.copy(), np.triu(hessian)))
        keep = s > 0
        np.testing.assert_allclose(rows.margins()[keep], (y * (A @ (w + e)))[keep], atol=1e-13)
    sums, gradient, hessian = results[0]
    for one, other in zip(*results, strict=True):
        assert np.array_equal(one, other)
    np.testing.assert_allclose(sums[:6], expected[0], rtol=1e-12)
    np.testing.assert_allclose(gradient, expected[1], rtol=1e-11, atol=1e-10)
    np.testing.assert_allclose(hessian, np.triu(expected[2]), rtol=1e-11, atol=1e-10)
    assert sums[6] == (s > 0).sum()


@pytest.mark.parametrize("fmt", ["C", "csr32"])
def test_many_blocks_fold_in_order(fmt):
    X, _, _, signed_weight = problem(fmt, np.float64, True, n=20000, m=9)
    bits = set()
    for n_threads in (1, 2, 3, 7):
        rows = open_rows(X).row_pass(signed_weight, intercept=True, n_threads=n_threads)
        assert rows.n_blocks == 32
        w = np.linspace(-1, 1, 10)
        with single_threaded_blas():
            parts = rows.evaluate(w, 1.0, 1.0, 0.5, 1e-6)
            bits.add(b"".join(np.triu(p).tobytes() if p.ndim == 2 else p.tobytes() for p in parts))
            bits.add(np.array(rows.line(0.5, 0.5)).tobytes())
            bits.add(rows.hessp(w, 0.5)[0].tobytes())
    assert len(bits) == 3


@pytest.mark.parametrize("width", [0.3, 0.01])
@pytest.mark.parametrize("chosen", [False, True])
@pytest.mark.parametrize("fmt", ["C", "F", "csr32", "csr64"])
def test_active_columns_and_curvature_floor(fmt, chosen, width):
    # rows below the floor were left out of everything: of class 7 of forest cover a column had no others, and steps
    # along it went astray for twenty reads
    X, y, s, signed_weight = problem(fmt, np.float64, True)
    A = with_ones(X, True)
    w = np.linspace(-0.5, 0.5, 12)
    active = np.array([0, 2, 3, 7, 11]) if chosen else np.arange(12)
    rows = open_rows(X).row_pass(signed_weight, intercept=True, n_threads=2)
    rows.set_active(active if chosen else None)
    sums, _, hessian = rows.evaluate(w, 1.0, 1.0, width, 0.4)
    h = smoothed(1 - y * (A @ w), width)[2]
    expected = curvature_above(A, s, h, 0.4)
    np.testing.assert_allclose(np.triu(hessian), np.triu(expected[np.ix_(active, active)]), atol=1e-11)
    assert 0 < sums[6] == ((h > 0.4) & (s > 0)).sum() < len(y)
    assert (h < 0.4e-3).any() == (width == 0.01)


def test_sides_are_those_of_the_weights_as_they_are_now():
    signed_weight = np.array([1.0, -2.0, 0.0, 3.0, -0.5])
    rows = open_rows(np.ones((5, 2))).row_pass(signed_weight, intercept=True, n_threads=1)
    assert rows.sides() == ((2, 2), (4.0, 2.5)) and rows.total_weight == 6.5
    rows.weigh_sides(0.5, 2.0)
    assert rows.sides() == ((2, 2), (2.0, 5.0)) and rows.total_weight == 7.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 4, 11, 70])
def test_sums_of_squares_and_a_row_without_weight_whose_own_overflow(n, dtype):
    X = np.random.default_rng(n).standard_normal((n, 9)).astype(dtype)
    s = np.random.default_rng(n + 1).choice([0.0, 1.0, 2.5], n)
    X[0], s[0] = np.finfo(dtype).max / 10, 0.0
    _, squares = open_rows(X).row_pass(s, intercept=True, n_threads=1).objective(np.zeros(10), True)
    np.testing.assert_allclose(squares, s[1:] @ with_ones(X[1:], True)**2, rtol=1e-13, atol=1e-300)


@pytest.mark.parametrize("fmt", FORMATS)
def test_hessp_equals_the_twin(fmt):
    X, y, s, signed_weight = problem(fmt, np.float64, True)
    A = with_ones(X, True)
    w, x = np.linspace(-0.5, 0.5, 12), np.cos(np.arange(12.0))
    rows = open_rows(X).row_pass(signed_weight, intercept=True, n_threads=2)
    rows.evaluate(w, 1.0, 1.0, 0.3, 0.0, False)
    H = evaluate(A, y, s, w, 0 * w, 0.3, 0.3)[2]
    np.testing.assert_allclose(rows.hessp(x, 0.3)[0], H @ x, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(rows.hessp(None, 0.3)[0], np.diag(H), rtol=1e-11, atol=1e-11)
    h = smoothed(1 - y * (A @ w), 0.3)[2]
    _, share = rows.hessp(x, 0.3, 0.4)
    assert share == pytest.approx(((h > 0.4) & (s > 0)).mean() if fmt.startswith("csr") else 1.0)


@pytest.mark.parametrize("primal", [False, True])
def test_products_have_the_curvature_of_the_last_evaluation(primal):
    X, y, s, signed_weight = problem("C", np.float64, True)
    w, e, x = np.random.default_rng(4).standard_normal((3, 11)) * 0.4
    rows = open_rows(X).row_pass(signed_weight, intercept=False, n_threads=2)
    rows.start(primal=primal)
    rows.evaluate(w, 1.0, 1.0, 0.7, 0.0, False)
    upper = np.triu(rows.evaluate(e, 0.6, 0.7, 0.3, 0.0)[2])
    H = upper + np.triu(upper, 1).T
    np.testing.assert_allclose(rows.hessp(x, 0.3)[0], H @ x, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(rows.hessp(None, 0.3)[0], np.diag(H), rtol=1e-11, atol=1e-11)
    before = evaluate(X, y, s, 0 * w, w, 1.0, 0.7)[3]
    expected = evaluate(X, y, s, w, e, 0.7, 0.3, 0.6, None if primal else before)[2]
    np.testing.assert_allclose(H, expected, rtol=1e-11, atol=1e-11)


def test_a_refused_step_is_looked_at_again_without_a_direction():
    X, y, s, signed_weight = problem("C", np.float64, True)
    w, e, f = np.random.default_rng(2).standard_normal((3, 11))
    rows = open_rows(X).row_pass(signed_weight, intercept=False, n_threads=1)
    rows.evaluate(w, 1.0, 1.0, 0.7, 0.0, False)
    rows.evaluate(e, 1.0, 0.7, 0.3, 0.0)
    value, slope, curvature = rows.line(0.25, 0.7)
    u, change = 1 - y * (X @ (w + 0.25 * e)), y * (X @ e)
    F, a, h = smoothed(u, 0.7)
    np.testing.assert_allclose([value, slope, curvature], [s @ F, -(s * a) @ change, (s * h) @ change**2], rtol=1e-12)
    sums, gradient, _ = rows.evaluate(None, 0.25, 0.7, 0.3, 0.0)
    np.testing.assert_allclose(gradient[0], evaluate(X, y, s, w, 0.25 * e, 0.7, 0.3)[1][0], atol=1e-10)
    assert sums[0] == pytest.approx(value) and sums[1] == pytest.approx(slope)
    sums, gradient, hessian = rows.evaluate(f, 1.0, 0.3, 0.3, 0.0)      # the shorter step is what stays
    dual = evaluate(X, y, s, w, e, 0.7, 0.3, 0.25, evaluate(X, y, s, 0 * w, w, 1.0, 0.7)[3])[3]
    expected = evaluate(X, y, s, w + 0.25 * e, f, 0.3, 0.3, 1.0, dual)
    np.testing.assert_allclose(gradient, expected[1], atol=1e-10)
    np.testing.assert_allclose(np.triu(hessian), np.triu(expected[2]), atol=1e-10)


@pytest.mark.parametrize("fmt", FORMATS)
def test_a_subset_reads_its_rows_only(fmt):
    X, y, s, signed_weight = problem(fmt, np.float32, True)
    chosen = np.arange(3, 600, 7)
    rows = open_rows(X).row_pass(signed_weight, intercept=True, n_threads=1).subset(chosen, np.full(len(chosen), 2.0))
    w = np.linspace(-0.5, 0.5, 12)
    _, gradient, _ = rows.evaluate(w, 1.0, 1.0, 0.3, 0.0)
    A = with_ones(X, True)[chosen]
    expected = evaluate(A, y[chosen], 2 * s[chosen], 0 * w, w, 1.0, 0.3)[1]
    np.testing.assert_allclose(gradient, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n, m", [(1, 1), (1, 4), (5, 1), (3, 0), (0, 2)])
@pytest.mark.parametrize("fmt", ["C", "F", "csr32"])
def test_few_rows_and_columns(fmt, n, m):
    X = np.arange(float(n * m)).reshape(n, m)
    X = sparse.csr_matrix(X) if fmt == "csr32" else np.asarray(X, order=fmt)
    rows = open_rows(X).row_pass(np.ones(n), intercept=True, n_threads=2)
    w = np.full(m + 1, 0.1)
    _, gradient, hessian = rows.evaluate(w, 1.0, 1.0, 0.5, 0.0)
    expected = evaluate(with_ones(X, True), np.ones(n), np.ones(n), 0 * w, w, 1.0, 0.5)
    np.testing.assert_allclose(gradient, expected[1], atol=1e-12)
    np.testing.assert_allclose(np.triu(hessian), np.triu(expected[2]), atol=1e-12)


def test_read_only_memory_map_is_read_where_it_lies(tmp_path):
    X, _, _, signed_weight = problem("C", np.float32, False)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    w = np.linspace(-1, 1, 11)
    passes = [open_rows(A).row_pass(signed_weight, intercept=False, n_threads=1) for A in (X, mapped)]
    found = [rows.evaluate(w, 1.0, 1.0, 0.5, 0.0)[1] for rows in passes]
    assert np.array_equal(*found)


def test_integers_are_refused():
    with pytest.raises(TypeError, match="float32 or float64"):
        open_rows(np.ones((3, 2), int)).row_pass(np.ones(3), intercept=True, n_threads=1)


@pytest.mark.parametrize("fmt", FORMATS)
def test_row_norms_come_with_one_evaluation_only(fmt):
    X, _, _, signed_weight = problem(fmt, np.float64, False)
    weight = np.linspace(0.5, 2, 12)
    rows = open_rows(X).row_pass(signed_weight, intercept=True, n_threads=2)
    norms = rows.measure_rows(weight)
    rows.evaluate(np.zeros(12), 1.0, 1.0, 0.5, 0.0)
    np.testing.assert_allclose(norms, with_ones(X, False) ** 2 @ weight[:11], rtol=1e-13)
    assert rows.mean_measure() == pytest.approx(np.abs(signed_weight) @ norms / np.abs(signed_weight).sum())
    norms[:] = -1
    rows.evaluate(np.zeros(12), 1.0, 1.0, 0.5, 0.0)
    assert np.all(norms == -1)


@pytest.mark.parametrize("subset", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("fmt", FORMATS)
def test_evaluation_and_sums_of_rows_leave_the_rows_as_they_are(fmt, dtype, subset):
    X, y, s, signed_weight = problem(fmt, dtype, True)
    A, chosen = with_ones(X, True), np.arange(613)
    w = np.linspace(-1, 1, 12)
    rows = open_rows(X).row_pass(signed_weight, intercept=True, n_threads=2)
    if subset:
        chosen = np.arange(1, 613, 3)
        rows = rows.subset(chosen, 1.0)
    rows.evaluate(w / 3, 1.0, 1.0, 0.5, 0.0)
    before = rows.margins()
    hinge, squares = rows.objective(w, True)
    u = 1 - y * (A @ w)
    assert hinge == pytest.approx((s * np.maximum(u, 0))[chosen].sum(), rel=1e-13)
    np.testing.assert_allclose(squares, (s[:, None] * A * A)[chosen].sum(axis=0), rtol=1e-12)
    assert rows.objective(w) == (hinge, None)
    c = np.cos(np.arange(len(chosen)))
    np.testing.assert_allclose(rows.combine(c), A[chosen].T @ c, rtol=1e-12, atol=1e-12)
    assert np.array_equal(rows.margins(), before)


def test_evaluation_has_the_same_bits_for_any_number_of_threads():
    X, _, _, signed_weight = problem("C", np.float32, True, n=20000, m=9)
    found = set()
    for n_threads in (1, 2, 5):
        rows = open_rows(X).row_pass(signed_weight, intercept=True, n_threads=n_threads)
        hinge, squares = rows.objective(np.linspace(-1, 1, 10), True)
        found.add((hinge, squares.tobytes(), rows.combine(signed_weight).tobytes()))
    assert len(found) == 1


def test_a_long_evaluation_is_interruptible_and_sums_the_same():
    # the curvature of 80,000 x 300 is 7.2e9 operations in 32 groups of rows, of which 8 are summed side by side
    X = np.random.default_rng(3).standard_normal((80_000, 300), dtype="f")
    signed_weight = np.where(X[:, 0] > 0, 1.0, -1.0)
    rows, heard = open_rows(X).row_pass(signed_weight, intercept=False, n_threads=2), []
    rows.between_slices = lambda: heard.append(1)
    w = np.linspace(-0.1, 0.1, 300)
    with single_threaded_blas():
        sums, gradient, hessian = rows.evaluate(w, 1.0, 1.0, 0.5, 0.0)
    assert len(heard) == 4
    u = 1 - signed_weight * (X.astype(float) @ w)
    value, a, h = smoothed(u, 0.5)
    assert sums[3] == pytest.approx(value.sum(), rel=1e-12)
    np.testing.assert_allclose(gradient[0], X.T.astype(float) @ (signed_weight * a), rtol=1e-9, atol=1e-8)
    few = slice(0, 300, 60)
    np.testing.assert_allclose(np.triu(hessian)[few, few], np.triu((X[:, few].T.astype(float) * h) @ X[:, few]),
                               rtol=1e-9, atol=1e-8)

    def stop():
        raise TimeoutError

    rows.between_slices = stop
    with pytest.raises(TimeoutError), single_threaded_blas():
        rows.evaluate(w, 1.0, 1.0, 0.5, 0.0)
    rows.start()
    rows.between_slices = None
    with single_threaded_blas():
        assert np.array_equal(rows.evaluate(w, 1.0, 1.0, 0.5, 0.0)[0], sums)


def test_arrays_of_the_wrong_length_are_refused():
    X, _, _, signed_weight = problem("C", np.float64, False)
    rows, short = open_rows(X).row_pass(signed_weight, intercept=True, n_threads=1), np.zeros(11)
    for call in (
        lambda: rows.evaluate(short, 1.0, 1.0, 1.0, 0.0), lambda: rows.objective(short), lambda: rows.combine(short),
        lambda: rows.hessp(short, 1.0), lambda: rows.measure_rows(short[:10]),
        lambda: rows.set_active(np.array([0, 12])),
        lambda: rows.set_active(np.array([3, 3])), lambda: rows.subset(np.array([-1, 2]), 1.0),
        lambda: rows.subset(np.array([2, 613]), 1.0),
        lambda: open_rows(X).row_pass(signed_weight[1:], intercept=True, n_threads=1),
    ):
        with pytest.raises((ValueError, IndexError)):
            call()


@pytest.mark.parametrize("step", [1.0, 0.3])
def test_dual_variables_are_those_of_the_last_bound_also_where_its_step_was_shortened(step):
    # what rows keep after a part of a step lies that part of the way towards them: a wide problem that was certified in
    # as many unknowns as rows lost its certificate on the rows themselves, and began anew for up to 43,000 reads
    X, _, _, signed_weight = problem("C", np.float64, True)
    w, e = np.random.default_rng(4).standard_normal((2, 12)) * 0.4
    rows = open_rows(X).row_pass(signed_weight, intercept=True, n_threads=1)
    rows.evaluate(w, 1.0, 1.0, 0.7, 0.0, False)
    gradient = rows.evaluate(e, 1.0, 0.7, 0.3, 0.0, False)[1]
    if step < 1:
        gradient = rows.evaluate(None, step, 0.7, 0.3, 0.0, False)[1]
    a = rows.dual_variables()
    assert a.min() >= 0 and a.max() <= 1
    np.testing.assert_allclose(gradient[1:].sum(axis=0), with_ones(X, True).T @ (a * signed_weight), rtol=1e-9,
                               atol=1e-9)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
@pytest.mark.parametrize("intercept", [False, True])
def test_the_first_evaluation_of_a_smooth_loss_has_the_dual_variables_of_its_own_point(loss, intercept):
    # no step led there, whose model could predict any: they are the slopes, and their sums of rows the gradient
    X, _, s, signed_weight = problem("C", np.float64, True)
    w = np.random.default_rng(3).standard_normal(X.shape[1] + intercept) * 0.4
    rows = open_rows(X).row_pass(signed_weight, intercept=intercept, n_threads=1)
    rows.set_loss(Loss(loss))
    sums, gradient, _ = rows.evaluate(w, 1.0, 1.0, 1.0, 0.0, False)
    np.testing.assert_allclose(gradient[1] + gradient[2], gradient[0], atol=1e-10)
    u = 1 - np.where(signed_weight >= 0, 1, -1) * (with_ones(X, intercept) @ w)
    value = np.logaddexp(0, u - 1) if loss == "logistic" else np.maximum(0, u)**2
    np.testing.assert_allclose(sums[2], s @ value, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("m", [1, 5, 8, 13, 16, 27])
def test_columns_side_by_side_or_apart_are_read_as_rows_side_by_side(m, dtype):
    rng = np.random.default_rng(m)
    X, signed_weight = rng.standard_normal((1001, m)).astype(dtype), np.where(rng.random(1001) < 0.5, 1.0, -1.0)
    w, chosen, found = rng.standard_normal(m + 1), np.flatnonzero(rng.random(1001) < 0.3), []
    strided = np.zeros((3003, 2 * m), dtype)
    strided[::3, ::2] = X
    for A in (X, np.asfortranarray(X), strided[::3, ::2]):
        whole = open_rows(A).row_pass(signed_weight, intercept=True, n_threads=1)
        for rows in (whole, whole.subset(chosen, np.ones(len(chosen)))):
            found.append([np.copy(part) for part in rows.evaluate(w, 1.0, 1.0, 0.3, 0.0)[:2]])
    for one, other in zip(found[:2] * 2, found[2:], strict=True):
        for a, b in zip(one, other, strict=True):
            if dtype == np.float64:
                assert np.array_equal(a, b)
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-10)
