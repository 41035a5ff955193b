"""Rows of any number of classes, beside each other and alone; loops over exp and log stay vectorised."""

import os
import platform
import subprocess
import sysconfig
from pathlib import Path

import naive_softmax as naive
import numpy as np
import pytest
from api import KERNELS
from multinomial_problems import K, laid_out, point, problem

from cmargin.data import open_rows
from cmargin.data.softmax_sums import CURVATURE, INTERCEPTS, PRODUCTS

ROWS, COLUMNS = 37, 5              # neither fills the lanes of a vector


def run(source, what, V, scores=None, probs=None):
    """The mean gradient of one task over all rows."""
    kernel, none = source.kernel, np.empty((0, 0), source.dtype)
    kernel.run(what, np.ascontiguousarray(V, source.dtype), none if scores is None else scores,
               none if probs is None else probs, 0, kernel.n_blocks)
    return kernel.gradients.sum(axis=0).reshape(V.shape) / source.n_rows


@pytest.mark.parametrize("layout", ["C", "csr", "csr 64"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [*range(2, 12), 16, 17, 31, 32, 33, 37])
def test_any_number_of_classes(k, dtype, layout):
    X, labels, weight = problem(n=max(ROWS, k), m=COLUMNS, k=k, dtype=dtype)
    X = laid_out(X, layout)
    V, D = point(True, k, COLUMNS), point(True, k, COLUMNS, seed=4)
    source = open_rows(X).softmax_pass(labels, weight, k, True, 1)
    tolerance = 1e-12 if dtype == np.float64 else 3e-6
    value, entropy, gradient = naive.risk(X, labels, weight, V, True)
    got_value, got = source.risk(V)
    assert got_value == pytest.approx(value, rel=tolerance)
    assert source.kernel.sums[:, 1].sum() / source.n_rows == pytest.approx(entropy, rel=3 * tolerance)
    np.testing.assert_allclose(got, gradient, atol=tolerance)
    np.testing.assert_allclose(source.probs, naive.probabilities(X, V, True), rtol=100 * tolerance, atol=tolerance)
    curved = naive.curvature(X, weight, V, D, True)
    np.testing.assert_allclose(run(source, CURVATURE, D, probs=source.probs), curved, atol=3 * tolerance)
    run(source, PRODUCTS, D, scores=source.change)
    at_v, slope, curvature = source.kernel.line(0.0, source.scores, source.change)
    assert at_v == pytest.approx(value, rel=tolerance)
    assert slope == pytest.approx(np.sum(gradient * D), rel=30 * tolerance, abs=3 * tolerance)
    assert curvature == pytest.approx(np.sum(curved * D), rel=30 * tolerance)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [2, 10, 31, 32, 50])
def test_a_row_does_not_depend_on_those_beside_it(k, dtype):
    X, labels, weight = problem(n=ROWS + k, m=COLUMNS, k=k, dtype=dtype)
    scores = np.random.default_rng(5).normal(0, 5, (len(X), k)).astype(dtype)
    none = np.zeros((COLUMNS + 1, k))
    source = open_rows(X).softmax_pass(labels, weight, k, True, 1)
    run(source, INTERCEPTS, none, scores, source.probs)
    for i in (0, 7, ROWS - 1, len(X) - 1):
        alone = open_rows(X[i:i + 1]).softmax_pass(labels[i:i + 1], weight[i:i + 1], k, True, 1)
        run(alone, INTERCEPTS, none, scores[i:i + 1], alone.probs)
        np.testing.assert_array_equal(alone.probs[0], source.probs[i])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [2, 10, 31, 33, 50])
def test_the_largest_score_is_taken_off_wherever_it_is(k, dtype):
    X, _, weight = problem(n=k, m=COLUMNS, k=k, dtype=dtype)
    source = open_rows(X).softmax_pass(np.arange(k), weight, k, True, 1)
    run(source, INTERCEPTS, np.zeros((COLUMNS + 1, k)), (800 * np.eye(k)).astype(dtype), source.probs)
    np.testing.assert_allclose(source.probs, np.eye(k), atol=1e-30)
    assert source.kernel.sums[:, 0].sum() == pytest.approx(0, abs=1e-30)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", ["C", "F", "rows apart"])
@pytest.mark.parametrize("m", [16, 19, 33, 36, 39, 70])                # columns that fill vectors, and that do not
@pytest.mark.parametrize("k", [2, 3, 5, 16, 17])                       # 17 go through gemm, as do few float32 columns
def test_dense_rows_times_a_few_classes(k, m, layout, dtype):
    X, labels, weight = problem(n=4 * 61 + 3, m=m, k=k, dtype=dtype)
    V, D = point(True, k, m) / m**0.5, point(True, k, m, seed=4)
    source = open_rows(laid_out(X, layout)).softmax_pass(labels, weight, k, True, 1)
    tolerance = 1e-12 if dtype == np.float64 else 3e-6
    value, _, gradient = naive.risk(X, labels, weight, V, True)
    got_value, got = source.risk(V)
    assert got_value == pytest.approx(value, rel=tolerance)
    np.testing.assert_allclose(got, gradient, atol=tolerance)
    np.testing.assert_allclose(run(source, CURVATURE, D, probs=source.probs), naive.curvature(X, weight, V, D, True),
                               atol=10 * tolerance)
    run(source, PRODUCTS, D, scores=source.change)
    np.testing.assert_allclose(source.change, X @ D[:-1] + D[-1], atol=30 * tolerance)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_of_a_few_classes_over_many_rows(dtype):
    # blocks of more rows than are summed in the type of the products
    X, labels, weight = problem(n=9001, m=37, k=5, dtype=dtype)
    V = point(True, 5, 37) / 6
    source = open_rows(X).softmax_pass(labels, weight, 5, True, 1)
    np.testing.assert_allclose(source.risk(V)[1], naive.risk(X, labels, weight, V, True)[2],
                               atol=1e-13 if dtype == np.float64 else 3e-7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("m", [35, 40])
def test_nothing_beyond_a_row_is_looked_at(m, dtype):
    X, labels, weight = problem(n=ROWS, m=m, k=3, dtype=dtype)
    wide = np.full((ROWS, m + 9), np.nan, dtype)
    wide[:, :m] = X
    V = point(True, 3, m) / m**0.5
    received = [open_rows(rows).softmax_pass(labels, weight, 3, True, 1).risk(V) for rows in (X, wide[:, :m])]
    assert received[0][0] == received[1][0]
    np.testing.assert_array_equal(received[0][1], received[1][1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_of_a_few_classes_do_not_depend_on_the_rows_beside(dtype):
    X, labels, weight = problem(n=ROWS, m=45, k=7, dtype=dtype)
    V = point(True, 7, 45)
    source = open_rows(X).softmax_pass(labels, weight, 7, True, 1)
    run(source, PRODUCTS, V, scores=source.change)
    if not source.kernel.few:
        pytest.skip("products are gemm's, which promises no such thing")
    for i in (0, 2, ROWS - 1):
        alone = open_rows(X[i:i + 1]).softmax_pass(labels[i:i + 1], weight[i:i + 1], 7, True, 1)
        run(alone, PRODUCTS, V, scores=alone.change)
        np.testing.assert_array_equal(alone.change[0], source.change[i])


@pytest.mark.parametrize("intercept", [False, True])
def test_a_point_without_weights_is_half_a_read(intercept):
    X, labels, weight = problem(m=33)
    V = np.zeros((33 + intercept, K))
    if intercept:
        V[-1] = np.arange(K)
    source = open_rows(X).softmax_pass(labels, weight, K, intercept, 1)
    value, gradient = source.risk(V)
    want = naive.risk(X, labels, weight, V, intercept)
    assert value == pytest.approx(want[0], rel=1e-13)
    np.testing.assert_allclose(gradient, want[2], atol=1e-14)
    assert source.reads == 0.5
    source.risk(V + 1)
    assert source.reads == 1.5


PROGRAM = """
#include "_smooth_rows.h"
void exponentials(const double *restrict x, double *restrict y, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; i++) y[i] = exp_negative_d(x[i]);
}
void logarithms(const double *restrict x, double *restrict y, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; i++) y[i] = log_positive(x[i]);
}
void *used[] = {(void *)logistic_rows, (void *)logistic_curvatures, (void *)logistic_line,
                (void *)logistic_gains};
"""


@pytest.mark.skipif(os.name == "nt" or platform.machine() not in ("x86_64", "AMD64"), reason="asks for AVX2")
def test_loops_over_exp_and_log_are_vectorised_without_avx_512(tmp_path):
    """They were not, and nothing said so: AVX2 has no conversion of a vector of doubles to integers of 64 bits."""
    compiler = (sysconfig.get_config_var("CC") or "cc").split()
    version = subprocess.run([*compiler, "--version"], capture_output=True, text=True, check=False).stdout
    if "Free Software Foundation" not in version:
        pytest.skip("only gcc is asked what it has vectorised")
    (tmp_path / "loops.c").write_text(PROGRAM)
    report = subprocess.run(
        [*compiler, "-O3", "-march=x86-64-v3", "-fno-math-errno", "-fno-trapping-math", "-DCMARGIN_NO_CLONES",
         "-Wno-psabi", "-fopt-info-vec-optimized", f"-I{KERNELS / 'losses'}", f"-I{KERNELS / 'util'}", "-c", "loops.c",
         "-o", "loops.o"],
        cwd=tmp_path, capture_output=True, text=True, check=True).stderr
    found = {tuple(line.split(":")[:2]) for line in report.splitlines() if "loop vectorized using 32 byte" in line}
    lines = PROGRAM.splitlines()
    for body in ("exp_negative_d(x[i])", "log_positive(x[i])"):
        place = str(next(i for i, line in enumerate(lines, 1) if body in line))
        assert ("loops.c", place) in found, report
    header = KERNELS / "losses" / "_smooth_rows.h"
    for i, line in enumerate(header.read_text().splitlines(), 1):
        if line.startswith("DEFINE_") and "(logistic" in line:
            assert any(Path(file).name == header.name and int(at) == i for file, at in found), (line, report)
