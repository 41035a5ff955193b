"""Rows below the floor of curvature are left out of a look where every column has others; else they count.

A column of which all rows are far from the hinge has no curvature but theirs: steps along it went astray without it.
"""

import pickle
from itertools import pairwise

import numpy as np
import pytest
from elsewhere import Elsewhere
from naive_smsvm import thin_columns

from cmargin._runtime.blas_threads import single_threaded_blas
from cmargin.homes import open_rows
from cmargin.solvers.newton.continuation_newton import ContinuationNewton, Problem, Settings

L2 = 1e-7
L2_EACH = np.append(np.full(8, L2), 0)
LOSSES = ["hinge", "squared_hinge", "logistic"]


def rows_of(rare, n=6000):
    """Gaussian columns, and the last one alone in a few rows that are far on their side."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((n, 8))
    y = np.where(X[:, 0] + 0.3 * X[:, 1] + 0.2 * rng.standard_normal(n) > 0, 1.0, -1.0)
    if rare:
        X[:, 7] = 0
        X[:rare, 7], y[:rare] = 1e3, 1.0
        X[:rare, 0] = 3.0
    return X, y


class Recorded(Elsewhere):
    """With every look: the floor, what was told, the point there and the direction that led to it."""

    def look(self, direction, step, **asked):
        told = Elsewhere.look(self, direction=direction, step=step, **asked)
        if direction is not None:
            self.base, self.direction = self.at, direction.copy()
        self.at = self.base + step * self.direction
        self.looks.append((asked["curvature_floor"], *(None if part is None else part.copy() for part in told),
                           self.at, self.direction))
        return told


def looks_of(loss, rare, w=None):
    X, y = rows_of(rare)
    home = Recorded.of(X, y, [], True)
    home.looks, home.at = [], np.zeros(9)
    chosen = Settings(tol=1e-6, linear_solver="cholesky")
    with single_threaded_blas():
        result = ContinuationNewton(home, Problem(L2, 0.0, 8, loss), chosen, w=w).run()
    assert result.status == "converged"
    return np.hstack([X, np.ones((len(X), 1))]), [look for look in home.looks if look[3] is not None]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("rare", [0, 5])
def test_the_next_look_has_what_thin_columns_want(loss, rare):
    A, looks = looks_of(loss, rare)
    asked = set()
    for (floor, sums, _, block, *_), (following, *_) in pairwise(looks):
        _, thin = thin_columns(np.diag(block) / len(A) + L2_EACH, (A**2).mean(axis=0), floor, 1e-6 * sums[7] / len(A))
        assert (following > 0) == thin
        asked.add(np.sign(following))
    assert asked == ({-1.0, 1.0} if rare and loss != "logistic" else {-1.0})      # where its curvature never ends


def test_a_column_that_has_become_thin_is_taken_to_have_all_that_it_can():
    A, looks = looks_of("squared_hinge", 5)
    changed = []
    for (floor, _, gradient, block, w, _), (*_, direction) in pairwise(looks):
        diagonal = np.diag(block) / len(A) + L2_EACH
        own, _ = thin_columns(diagonal, (A**2).mean(axis=0), floor, 0)
        H = np.triu(block, 1) / len(A)
        H = H + H.T + np.diag(own)
        g = L2_EACH * w - gradient[0] / len(A)
        np.testing.assert_allclose(H @ direction, -g, atol=1e-9 * np.abs(g).max())
        changed.append(np.flatnonzero(own != diagonal).tolist())
    assert changed == [[], [7], []]


def test_where_the_columns_sizes_are_not_known_all_may_be_thin():
    _, looks = looks_of("squared_hinge", 0, w=np.linspace(0, 0.1, 9))
    assert len(looks) > 2 and all(floor >= 0 for floor, *_ in looks) and looks[-1][0] > 0


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("rare", [0, 5])
def test_what_goes_on_from_a_checkpoint_is_the_same(rare, loss):
    X, y = rows_of(rare)
    kept = []

    def driver(stop):
        home = open_rows(X).row_pass(y, intercept=True, n_threads=1)
        return ContinuationNewton(home, Problem(L2, 0.0, 8, loss), Settings(1e-6, linear_solver="cholesky", stop=stop))

    with single_threaded_blas():
        one = driver(lambda: bool(kept.append(pickle.dumps(one.state()))))
        result = one.run()
        for state in kept[:-1]:
            other = driver(lambda: False)
            other.go_on_from(pickle.loads(state))
            other.finish()
            assert other.result.w.tobytes() == result.w.tobytes() and other.result.passes == result.passes
    assert len(kept) > 2
