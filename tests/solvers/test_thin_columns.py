"""Rows below the floor of curvature are left out of a look where every column has far more than theirs.

A column of which all rows are far from the hinge has no curvature but theirs: steps along it went astray without it.
"""

import pickle
from itertools import pairwise

import numpy as np
import pytest
from elsewhere import Elsewhere
from naive_smsvm import has_thin_column, with_rows_left_out

from cmargin._runtime.blas_threads import single_threaded_blas
from cmargin.data import open_rows
from cmargin.solvers.newton.continuation import ContinuationNewton
from cmargin.solvers.problem import Problem, Settings

L2 = 1e-7
L2_EACH = np.append(np.full(8, L2), 0)
LOSSES = ["hinge", "squared_hinge", "logistic"]


def rows_of(last="common", n=6000):
    """Gaussian columns, weights with signs; the last nearly the one before, or alone in five rows far on a side."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((n, 8))
    y = np.where(X[:, 0] + 0.3 * X[:, 1] + 0.2 * rng.standard_normal(n) > 0, 1.0, -1.0)
    if last == "copy":
        X[:, 7] = X[:, 6] + 0.1 * X[:, 7]
    if last == "rare":
        X[:, 7] = 0
        X[:5, 7], y[:5], X[:5, 0] = 1e3, 1.0, 3.0
    return X, y * rng.choice([0.5, 2.0], n)


class Recorded(Elsewhere):
    """With every look that has a block: the floor, what was told, the point there and the direction that led to it."""

    @classmethod
    def of(cls, X, code):
        home = super().of(X, code, [], True)
        home.looks, home.n = [], np.abs(code).sum()
        home.mean_square = np.append(np.abs(code) @ X**2 / home.n, 1.0)
        return home

    def start(self, primal=False):
        super().start(primal)
        self.at = np.zeros(self.n_columns)

    def look(self, direction, step, **asked):
        told = super().look(direction=direction, step=step, **asked)
        if direction is not None:
            self.base, self.direction = self.at, direction.copy()
        self.at = self.base + step * self.direction
        if told[2] is not None:
            self.looks.append((asked["curvature_floor"], *(part.copy() for part in told), self.at, self.direction))
        return told

    def curvature(self, floor, block):
        return with_rows_left_out(block / self.n, self.mean_square, floor) + np.diag(L2_EACH)

    def steps(self):
        """The looks that led to a step, each with the floor of the next look and the direction there."""
        for look, (following, *_, direction) in pairwise(self.looks):
            if direction is not look[-1]:            # else that step was too long, and the next look is at a part of it
                yield look, following, direction


def solved(home, loss, w=None):
    chosen = Settings(tol=1e-6, linear_solver="cholesky")
    with single_threaded_blas():
        result = ContinuationNewton(home, Problem(L2, 0.0, 8, loss), chosen, w=w).run()
    assert result.status == "converged"
    return result


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("last", ["common", "copy", "rare"])
def test_the_next_look_has_what_thin_columns_want(loss, last):
    home, asked = Recorded.of(*rows_of(last)), set()
    solved(home, loss)
    for (floor, sums, _, block, *_), following, _ in home.steps():
        thin = has_thin_column(home.curvature(floor, block), home.mean_square, 1e-6 * sums[7] / home.n)
        assert (following > 0) == (thin or loss == "squared_hinge")           # whose rows below the floor have none
        asked.add(np.sign(following))
    if loss == "squared_hinge" or last == "copy":
        assert asked == {1}
    else:
        assert asked == ({-1} if loss == "logistic" and last == "common" else {-1, 1})


def test_a_column_that_has_become_thin_has_all_that_it_can_once():
    class Emptied(Recorded):
        def look(self, **asked):
            sums, gradient, hessian = super().look(**asked)
            if hessian is not None and len(self.looks) == 4:
                assert asked["curvature_floor"] < 0
                hessian[7] = hessian[:, 7] = self.looks[-1][3][7] = self.looks[-1][3][:, 7] = 0
            return sums, gradient, hessian

    home, changed = Emptied.of(*rows_of()), []
    solved(home, "hinge")
    for (floor, _, gradient, block, w, _), following, direction in home.steps():
        H, g = home.curvature(floor, block), L2_EACH * w - gradient[0] / home.n
        np.testing.assert_allclose(H @ direction, -g, atol=1e-9 * np.abs(g).max())
        changed.append(np.flatnonzero(np.diag(H) > np.diag(block) / home.n + 1.01 * L2_EACH).tolist())
        assert not changed[-1] or following > 0
    assert sorted(changed) == [[]] * (len(changed) - 1) + [[7]]


def test_where_the_columns_sizes_are_not_known_all_may_be_thin():
    home = Recorded.of(*rows_of())
    solved(home, "logistic", w=np.linspace(0, 0.1, 9))
    floors = [floor for floor, *_ in home.looks]
    assert len(floors) > 2 and min(floors) >= 0 and floors[-1] > 0


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("last", ["common", "rare"])
def test_what_goes_on_from_a_checkpoint_is_the_same(last, loss):
    X, code = rows_of(last)
    kept = []

    def driver(stop):
        home = open_rows(X).row_pass(code, intercept=True, n_threads=1)
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
