"""The Newton system known by products alone: conjugate gradients."""

import numpy as np


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
