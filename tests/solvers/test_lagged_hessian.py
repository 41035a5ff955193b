import numpy as np
import pytest
from api import BFGSHessian
from naive import bfgs_inverse


def curved(rng, p, condition):
    q = np.linalg.qr(rng.standard_normal((p, p)))[0]
    return (q * np.geomspace(1, condition, p)) @ q.T


@pytest.mark.parametrize("n_pairs", [0, 1, 5, 17])
def test_the_two_loops_are_the_matrix_formula(n_pairs):
    rng = np.random.default_rng(n_pairs)
    H, now = curved(rng, 7, 50.0), curved(rng, 7, 20.0)
    kept, matrix = BFGSHessian(np.triu(H)), np.linalg.inv(H)
    for _ in range(n_pairs):
        step = rng.standard_normal(7)
        kept.add(step, now @ step)
        matrix = bfgs_inverse(matrix, step, now @ step)
        np.testing.assert_allclose(kept.solve(now @ step), step, rtol=1e-8)          # secant equation
    rhs = rng.standard_normal(7)
    np.testing.assert_allclose(kept.solve(rhs), matrix @ rhs, rtol=1e-9)


def test_a_step_along_a_straight_line_changes_nothing():
    rng = np.random.default_rng(3)
    kept, rhs = BFGSHessian(curved(rng, 4, 3.0)), rng.standard_normal(4)
    before = kept.solve(rhs)
    kept.add(rng.standard_normal(4), np.zeros(4))
    np.testing.assert_array_equal(kept.solve(rhs), before)


def test_what_a_singular_hessian_cannot_reach_is_a_gradient_step():
    H = np.diag([2.0, 8.0, 0.0])
    np.testing.assert_allclose(BFGSHessian(H).solve(np.array([2.0, 8.0, 4.0])), [1.0, 1.0, 0.5])
    np.testing.assert_array_equal(BFGSHessian(np.zeros((2, 2))).solve(np.ones(2)), np.ones(2))


@pytest.mark.parametrize("place", [(0, 0), (1, 2), (3, 3)])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_hessian_that_is_not_finite_is_refused(place, value):
    H = np.eye(4)
    H[place] = value
    with pytest.raises(ValueError, match="not finite"):
        BFGSHessian(H)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="BFGSHessian: shapes do not fit"):
        BFGSHessian(np.zeros((3, 4)))
    kept = BFGSHessian(np.eye(3))
    for call, vectors in ((kept.solve, [np.ones(2)]), (kept.add, [np.ones(2), np.ones(3)]),
                          (kept.add, [np.ones(3), np.ones(4)])):
        with pytest.raises(ValueError, match="shapes do not fit"):
            call(*vectors)
