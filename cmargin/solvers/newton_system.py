"""The Newton system: from the curvature block by Cholesky, or from products alone by conjugate gradients."""

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from cmargin._core._l1_model import descend


def curvature_lost(diagonal, gradient):
    """Whether the squares of a column are beyond the range of doubles, where its gradient is not."""
    return not np.isfinite(diagonal).all() or bool(((diagonal < np.finfo(float).tiny) & (gradient != 0)).any())


def cholesky_solve(upper, rhs):
    """Solve H x = rhs, (n,) or (n, k), from the upper triangle of H (row-major); a ridge only where the factor fails.

    Returns x and the ridge, as a multiple of every diagonal entry: columns may be of very different scale. Where
    rounding has left a matrix that even its own diagonal cannot mend, x is rhs over that diagonal and the ridge inf.
    """
    if rhs.shape[0] == 0:
        return rhs.copy(), 0.0
    ridge = 0.0
    matrix = upper.T                          # column-major lower triangle: LAPACK's own order, no copy to get there
    while True:
        factor, info = dpotrf(matrix, lower=1, clean=0, overwrite_a=0)
        if info == 0:
            x, info = dpotrs(factor, rhs, lower=1)
            if info == 0 and np.isfinite(x).all():
                return x, ridge
        diagonal = np.diag(upper)
        largest = diagonal.max()
        if not np.isfinite(upper[np.triu_indices(len(rhs))]).all():
            raise FloatingPointError("the curvature is not finite")
        own = np.where(diagonal > 0, diagonal, largest if largest > 0 else 1.0)
        if ridge > 1.0:
            return (rhs.T / own).T, np.inf
        ridge = 1e-13 if ridge == 0 else ridge * 100
        matrix = upper.copy().T
        matrix[np.diag_indices(len(rhs))] = diagonal + ridge * own


def l1_model_minimum(upper, g, w, l1, rounds=20, tol=1e-3):
    """argmin over d of g'd + d'Hd/2 + sum l1_j |w_j + d_j|; components that vanish satisfy w + d = 0 exactly.

    H is given by its upper triangle. Columns without l1 (an intercept) are minimised out first, so that columns which
    all lean on it, as those with a large mean do, meet in coordinate descent as if they were centred.
    """
    H = np.triu(upper)
    H += np.triu(upper, 1).T
    free, held = np.flatnonzero(l1 == 0), np.flatnonzero(l1)
    if not len(free) or not len(held):
        return l1_held_minimum(H, g, w, l1, rounds, tol)
    own = np.ascontiguousarray(H[np.ix_(free, free)])
    across = H[np.ix_(free, held)]
    # d_free = -own^-1 (g_free + across d_held)
    lean = cholesky_solve(own, np.column_stack([g[free], across]))[0]
    d = np.empty_like(w)
    rest = H[np.ix_(held, held)] - across.T @ lean[:, 1:]
    # what the difference cannot know, being the rounding of what it was taken from
    rest[np.diag_indices(len(held))] += np.finfo(float).eps * np.diag(H)[held]
    d[held] = l1_held_minimum(rest, g[held] - across.T @ lean[:, 0], w[held], l1[held], rounds, tol)
    d[free] = -lean[:, 0] - lean[:, 1:] @ d[held]
    return d


def l1_held_minimum(H, g, w, l1, rounds, tol):
    """The same with both triangles of H: coordinate descent finds the signs, Newton the values.

    No data are read: the block is small, so the model is solved, not just improved, before the rows are looked at
    again.
    """
    x, gx, best = w.copy(), g.copy(), None    # gx = g + H (x - w)
    for _ in range(rounds):
        descend(H, gx, x, l1, 8, 1e-6)
        sign = np.where(x != 0, np.sign(x), -np.sign(gx) * (np.abs(gx) > l1))
        free = (sign != 0) | (l1 == 0)
        slope = np.where(free, gx + l1 * sign, 0.0)
        index = np.flatnonzero(free)
        step = np.zeros_like(x)
        step[index] = -cholesky_solve(np.ascontiguousarray(H[np.ix_(index, index)]), slope[index])[0]
        predicted = -(slope @ step)
        best = max(predicted, best or 0.0)
        if not predicted > tol * tol * best:
            break
        step = model_step(H, gx, x, step, l1, sign)
        gx += H @ step
        x += step
    return x - w


def model_step(H, g, x, step, l1, sign):
    """The projected step with the smallest model value among halvings of ``step``: components that change sign stop."""
    best, best_value = np.zeros_like(x), 0.0
    t = 1.0
    for _ in range(12):
        new = x + t * step
        new[(sign * new <= 0) & (l1 > 0)] = 0.0
        move = new - x
        value = g @ move + move @ H @ move / 2 + l1 @ (np.abs(new) - np.abs(x))
        if value < best_value:
            best, best_value = move, value
        elif best_value < 0:
            break
        t /= 2
    return best


def conjugate_gradients(product, rhs, diagonal, enough, max_products):
    """Solve H x = rhs with H known by products, scaled by its diagonal, until |residual|^2 <= ``enough``.

    Returns x and the number of products.
    """
    x = np.zeros_like(rhs)
    r = rhs.copy()
    z = r / diagonal
    p = z.copy()
    rz = r @ z
    for count in range(max_products):
        if r @ r <= enough:
            return x, count
        q = product(p)
        curvature = p @ q
        if not curvature > 0:
            return (x if count else z), count + 1
        step = rz / curvature
        x += step * p
        r -= step * q
        z = r / diagonal
        rz, before = r @ z, rz
        p = z + (rz / before) * p
    return x, max_products
