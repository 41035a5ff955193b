"""The losses as expressions of arrays, for rows that compiled code cannot reach.

What `_core/losses` says of one margin at a time is said here of arrays of any library; `tests/data/test_device.py`
holds the two to each other. ``xp`` are the library's functions, z margins, u = 1 - z slacks.

Each function of the library that is called here costs a launch on the device, and a number beside an array in `where`
or `maximum` three: constants are arrays.
"""

from typing import NamedTuple

ROOT_2_3 = 0.94280904158206336587            # 2 sqrt(2) / 3
UNBOUNDED = 1e30                             # dual variables that may be as large have no upper end


class Point(NamedTuple):
    """Of every row."""

    value: object
    slope: object
    curvature: object


def positive(xp, x):
    """NaN stays."""
    return xp.maximum(x, xp.zeros_like(x))


def hinge(xp, z):
    return Point(positive(xp, 1 - z), -xp.astype(z < 1, z.dtype), xp.zeros_like(z))


def squared_hinge(xp, z):
    u = positive(xp, 1 - z)
    return Point(u * u, -2 * u, 2 * xp.astype(z <= 1, z.dtype))


def huberised_hinge(xp, z, delta, scale=1.0):
    u = positive(xp, 1 - z)
    share = xp.minimum(u / delta, xp.ones_like(u))
    inside = xp.astype((z <= 1) & (u <= delta), z.dtype)
    return Point(scale * share * (u - delta / 2 * share), -scale * share, scale / delta * inside)


def modified_huber(xp, z):
    return huberised_hinge(xp, z, 2.0, 4.0)


def logistic(xp, z):
    """F(z) = ln(1 + e^-z), SLND eq. (2)."""
    e = xp.exp(-xp.abs(z))
    share = xp.reciprocal(1 + e)
    tail = e * share
    return Point(xp.log1p(e) + positive(xp, -z), -xp.where(z > 0, tail, share), tail * share)


def calibrated_hinge(xp, z):
    """F(z) = max(0, -z) - ln(2 + |z|), SLND eq. (3)."""
    reach = xp.reciprocal(2 + xp.abs(z))
    return Point(positive(xp, -z) - xp.log(2 + xp.abs(z)), xp.where(z > 0, -reach, reach - 1), reach * reach)


def squared(xp, z):
    return Point((1 - z) * (1 - z) / 4, (z - 1) / 2, xp.full_like(z, 0.5))


def margin_pursuit(xp, z, level, scale):
    """F(z) = scale^2 rho((level - z) / scale); rho, and its slope psi, margin pursuit eq. (3), (4)."""
    u = (level - z) / scale
    square, zeros = u * u, xp.zeros_like(u)
    inside = square <= 2
    square = xp.where(inside, square, zeros)                             # far out its square may overflow
    return Point(scale**2 * xp.where(inside, square / 2 - square * square / 24, ROOT_2_3 * xp.abs(u) - 0.5),
                 -scale * xp.where(inside, u - u * square / 6, ROOT_2_3 * xp.sign(u)),
                 xp.where(inside, 1 - square / 2, zeros))


class SmoothedHinge:
    """(u + root) / 2, root = sqrt(width^2 + u^2), written without cancellation far from the hinge; SmSVM eq. (6).

    ``width`` is a number, or an array (k, 1) where there are k rows of ``u``.
    """

    def __init__(self, xp, u, width):
        self.xp, self.u, self.width = xp, u, width
        square = width * width
        root = xp.sqrt(u * u + square)
        self.inverse = xp.reciprocal(root)
        self.above = square / 2 / (root + xp.abs(u))

    @property
    def value(self):
        return positive(self.xp, self.u) + self.above

    @property
    def slope(self):
        """In u: a dual variable."""
        tail = self.above * self.inverse
        return self.xp.where(self.u > 0, 1 - tail, tail)

    @property
    def curvature(self):
        share = self.width * self.inverse
        return share * share * self.inverse / 2

    def dual_curvature(self, a):
        return dual_curvature(self.xp, a, self.u, self.inverse)


def dual_curvature(xp, a, u, inverse):
    """Of the smoothed hinge, with the dual variable ``a`` as an unknown of its own; see ``_smoothed_hinge.h``."""
    return positive(xp, 0.5 - (a - 0.5) * (u * inverse)) * inverse


class SmoothedKinks:
    """The same of a residual u with a kink on either side of 0: two smoothed hinges, ``_two_kinks.h``.

    ``sides``: (up, down, e), as of `Loss`; ``width`` is a number.
    """

    def __init__(self, xp, u, width, sides):
        self.xp, self.u, self.sides = xp, u, sides
        self.up, self.down = SmoothedHinge(xp, u - sides[2], width), SmoothedHinge(xp, -u - sides[2], width)
        root = (width * width + sides[2] * sides[2]) ** 0.5
        self.both = (1 - sides[2] / root if root > 0 else 1.0) / (sides[0] + sides[1])

    @property
    def exact(self):
        """Not smoothed."""
        up, down, _ = self.sides
        return up * positive(self.xp, self.up.u) + down * positive(self.xp, self.down.u)

    @property
    def value(self):
        return self.sides[0] * self.up.value + self.sides[1] * self.down.value

    @property
    def slope(self):
        return self.sides[0] * self.up.slope - self.sides[1] * self.down.slope

    @property
    def curvature(self):
        return self.sides[0] * self.up.curvature + self.sides[1] * self.down.curvature

    def curvatures(self, a):
        """Of either hinge, with the dual variable ``a`` of the row as an unknown of its own."""
        (up, down, _), xp = self.sides, self.xp
        of_up = positive(xp, a) / up if up > 0 else xp.zeros_like(a)
        of_down = positive(xp, -a) / down if down > 0 else xp.zeros_like(a)
        rest = self.both * positive(xp, 1 - of_up - of_down)
        return (self.up.dual_curvature(clipped(xp, of_up + down * rest, 1.0)),
                self.down.dual_curvature(clipped(xp, of_down + up * rest, 1.0)))

    def dual_curvature(self, a):
        of_up, of_down = self.curvatures(a)
        return self.sides[0] * of_up + self.sides[1] * of_down

    def predicted(self, a, v):
        """The dual variable after a step of which the slack goes down by ``v``; ``a`` None: this is the first."""
        xp, (up, down, _), above, below = self.xp, self.sides, self.up.slope, self.down.slope
        h_up, h_down = (self.up.dual_curvature(above), self.down.dual_curvature(below)) if a is None \
            else self.curvatures(a)
        return up * clipped(xp, above - h_up * v, 1.0) - down * clipped(xp, below + h_down * v, 1.0)


def squared_epsilon_insensitive(xp, z, epsilon):
    u = 1 - z
    over = positive(xp, xp.abs(u) - epsilon)
    return Point(over * over, -2 * xp.sign(u) * over, 2 * xp.astype(xp.abs(u) >= epsilon, z.dtype))


def huber(xp, z, delta):
    u = 1 - z
    size = xp.abs(u)
    inside = clipped(xp, size, delta)
    return Point(inside * (size - inside / 2), -xp.sign(u) * inside, xp.astype(size <= delta, z.dtype))


def smoothed_hinge(xp, z, width):
    at = SmoothedHinge(xp, 1 - z, width)
    return Point(at.value, -at.slope, at.curvature)


def entropy(xp, a):
    def part(x):
        return -x * xp.log(xp.where(x <= 0, xp.ones_like(x), x))

    return part(a) + part(1 - a)


# value, slope and curvature by name; and -F*(-a), what a dual variable adds to the bound, of those that have a dual
LOSSES = {"logistic": logistic, "calibrated_hinge": calibrated_hinge, "squared": squared, "hinge": hinge,
          "smoothed_hinge": smoothed_hinge, "margin_pursuit": margin_pursuit, "squared_hinge": squared_hinge,
          "huberised_hinge": huberised_hinge, "modified_huber": modified_huber,
          "squared_epsilon_insensitive": squared_epsilon_insensitive, "huber": huber}
GAINS = {"hinge": lambda xp, a: a, "squared_hinge": lambda xp, a: a - a * a / 4, "logistic": entropy,
         "huberised_hinge": lambda xp, a, delta: a - delta / 2 * a * a, "modified_huber": lambda xp, a: a - a * a / 4,
         "squared_epsilon_insensitive": lambda xp, a, epsilon: a - epsilon * xp.abs(a) - a * a / 4,
         "huber": lambda xp, a, delta: a - a * a / 2}


def clipped(xp, a, largest, smallest=0.0):
    """Dual variables between ``smallest`` and ``largest``."""
    if smallest == 0:
        a = positive(xp, a)
    elif smallest >= -UNBOUNDED:
        a = xp.maximum(a, xp.full_like(a, smallest))
    return a if largest > UNBOUNDED else xp.minimum(a, xp.full_like(a, largest))
