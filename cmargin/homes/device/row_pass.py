"""Rows on a device with the state of one binary problem: `RowPass` in operations on arrays, one transfer a look.

The state of the rows is kept block by block on the device and never written to: a look makes the next one, which is
there only when the look has ended. What is summed is what `_core/rows/_row_blocks.pyx` sums.
"""

from dataclasses import dataclass, replace

import numpy as np

from cmargin._core.losses._losses import FACTS
from cmargin._core.newton._certificate import ROUNDING
from cmargin._core.rows._row_blocks import ON_DIAGONAL
from cmargin.homes.base import ROUGH_BLOCK, TANGENTS
from cmargin.homes.device.arrays import to_host
from cmargin.homes.device.gathered import beside_lines, heavy_rows, sample_of
from cmargin.homes.device.losses import GAINS, LOSSES, SmoothedHinge, clipped, positive
from cmargin.homes.nearest import Answered, ChoosesNearest

N_SUMS = 16                    # of a look, in the order of ``sum_id``
SINGLE_ROUNDING = float(np.finfo(np.float32).eps)      # of sums in pieces, where there is no double precision


@dataclass
class RowState:
    """What is kept of the rows of a block; arrays (n,) in the precision of sums."""

    code: object               # s y
    deficit: object = None     # u = 1 - y <w, x> before the last step,
    change: object = None      # y <e, x>, and how far along it the last look was
    dual: object = None        # a before the last step,
    dual_next: object = None   # and after it
    norm: object = None        # sum of weight x^2
    exact: object = None       # rows that the model of a step treats exactly

    def begun(self, xp):
        return replace(self, deficit=xp.ones_like(self.code), change=xp.zeros_like(self.code), dual=None,
                       dual_next=None)


@dataclass
class Asked:
    """Of a look."""

    direction: object
    step: float
    line_width: float
    width: float
    floor: float
    with_hessian: bool
    pending: float
    primal: bool
    first: bool
    tangents: bool


class DeviceRowPass(ChoosesNearest):
    """`RowPass` over `DeviceRows`.

    Parameters
    ----------
    rows : DeviceRows
    code : (n,) array on the device, in the precision of sums
        Sample weight with the sign of the class.
    intercept : bool
    place : DeviceHome
    """

    def __init__(self, rows, code, intercept, place):
        self.rows, self.intercept, self.place, self.xp = rows, bool(intercept), place, rows.xp
        self.n_rows, self.n_features = rows.shape
        self.n_columns = self.n_features + self.intercept
        self.share = self.n_rows / max(1, place.n_rows)
        self.rounding = ROUNDING if rows.at.exact else SINGLE_ROUNDING
        self.blocks = rows.blocks
        self.loss, self.parameters, self.largest = "smoothed_hinge", (), 1.0
        self.active = self.norm_weight = None
        self.state = [RowState(code[block]) for block in self.blocks]
        self.total_weight = sum(self.sides()[1])
        self.start()

    # ------------------------------------------------------------ what the sums are of

    def start(self, primal=False):
        self.state = [state.begun(self.xp) for state in self.state]
        self.forgets, self.fresh, self.begun, self.pending, self.primal = bool(primal), True, False, 0.0, True

    def set_loss(self, name):
        if name not in GAINS:
            raise ValueError(f"a loss without a dual has no certificate: {name}")
        self.loss, self.parameters = "smoothed_hinge" if name == "hinge" else name, ()
        self.largest = FACTS[name]["dual_largest"]

    def pursue(self, level, scale):
        self.loss, self.parameters, self.largest = "margin_pursuit", (level, scale), 0.0

    def set_active(self, active):
        self.active = None if active is None else np.array(active)

    def measure_rows(self, weight):
        self.norm_weight = np.array(weight)

    def point(self, u):
        """A loss that needs no smoothing at deficits u: value, slope in u, curvature."""
        at = LOSSES[self.loss](self.xp, 1 - u, *self.parameters)
        return at._replace(slope=-at.slope)

    # ------------------------------------------------------------ a look

    def look(self, direction, step, line_width, width, curvature_floor, with_hessian=True):
        moves, tangents = direction is not None, with_hessian == TANGENTS
        swap = moves and self.begun                          # the last look was the step taken
        asked = Asked(self.rows.of_columns(direction) if moves else None, step, line_width, width, curvature_floor,
                      with_hessian in (True, ROUGH_BLOCK) and self.order > 0, self.pending,
                      self.forgets or (self.fresh and not swap) or tangents, not self.begun, tangents)
        after = []

        def packs():
            for block, state in zip(self.blocks, self.state, strict=True):
                state, pack = self.look_at_block(block, state, asked, swap)
                after.append(state)
                yield pack

        told = self.rows.folded(packs())
        self.state, self.pending, self.line_width = after, step, line_width
        self.primal, self.begun = asked.primal, True
        self.fresh, self.norm_weight = self.fresh and not swap, None
        return self.unpacked(told, asked.with_hessian)

    @property
    def order(self):
        """Of the curvature block."""
        return self.n_columns if self.active is None else len(self.active)

    def unpacked(self, told, with_hessian):
        at = N_SUMS + 3 * self.n_columns
        if told is None:
            told = np.zeros(at + self.order**2)
        block = told[at:at + self.order**2].reshape(self.order, -1) if with_hessian else None
        return told[:N_SUMS], told[N_SUMS:at].reshape(3, -1), block

    def look_at_block(self, block, state, asked, swap):
        """The state after the look, and its sums in one array."""
        rows, xp = self.rows, self.xp
        X = rows.wide(block)
        if self.norm_weight is not None:
            state = replace(state, norm=xp.matmul(X * X, rows.of_columns(self.norm_weight)[0]))
        if asked.direction is not None:
            product = xp.matmul(X, asked.direction[0]) + asked.direction[1]
            state = replace(state, deficit=state.deficit - asked.pending * state.change,
                            change=xp.where(state.code < 0, -product, product))
        if swap:
            state = replace(state, dual=state.dual_next)
        parts = HingeLook if self.loss == "smoothed_hinge" else SmoothLook
        found = parts(self, state, asked)
        R = xp.stack(found.columns, axis=1)
        gradient = self.with_intercept(rows.sums_of(X, R), xp.sum(R, axis=0))
        if R.shape[1] < 3:
            gradient = xp.concat([gradient, xp.zeros((3 - R.shape[1], self.n_columns), dtype=gradient.dtype,
                                                     device=rows.at.device)])
        curved, hessian = self.curvature_of(block, found.curvature, found.left_out) if asked.with_hessian else (0, None)
        sums = self.packed_sums(found.sums, curved)
        pack = [sums, xp.reshape(gradient, (-1,))]
        return found.state, xp.concat(pack if hessian is None else [*pack, xp.reshape(hessian, (-1,))])

    def packed_sums(self, sums, curved):
        """(N_SUMS,) from sums by name of ``sum_id``'s place."""
        xp, at = self.xp, self.rows.at
        zero = xp.zeros((), dtype=at.wide, device=at.device)
        filled = [sums.get(place, zero) for place in range(N_SUMS)]
        filled[6] = zero + float(curved)
        return xp.stack(filled)

    def with_intercept(self, sums, of_ones):
        """Sums (k, m) of rows with their column of ones, where there is one."""
        return self.xp.concat([sums, of_ones[:, None]], axis=1) if self.intercept else sums

    def curvature_of(self, block, h, left_out):
        """How many rows of a block have curvature, and sum h x x' over the active columns; of others the diagonal.

        The one product in the precision of the rows as they were given: a step needs no more digits of it.
        """
        xp, at, m, X = self.xp, self.rows.at, self.n_features, self.rows.X[block, :]
        there = xp.nonzero(h > 0)[0]
        if there.shape[0] < h.shape[0]:
            X, h = xp.take(X, there, axis=0), xp.take(h, there, axis=0)
        ones, columns = self.intercept, None
        if self.active is not None:
            columns = self.active[self.active < m]
            ones = len(columns) < len(self.active)
            X = xp.take(X, at.put(columns.astype(np.int64)), axis=1)
        root = xp.astype(xp.sqrt(h), X.dtype, copy=False)
        scaled = X * root[:, None]
        hessian = at.widened(xp.matmul(scaled.T, scaled))
        if ones:
            border = at.widened(xp.matmul(root[None, :], scaled))
            corner = xp.reshape(xp.sum(h), (1, 1))
            hessian = xp.concat([xp.concat([hessian, border.T], axis=1), xp.concat([border, corner], axis=1)])
        return there.shape[0], (hessian if left_out is None else hessian + self.diagonal_of(block, left_out))

    def diagonal_of(self, block, h):
        """(order, order), sum h x_j^2 of the active columns on its diagonal."""
        xp, at, X = self.xp, self.rows.at, self.rows.wide(block)
        squares = xp.matmul(h, X * X)
        if self.intercept:
            squares = xp.concat([squares, xp.reshape(xp.sum(h), (1,))])
        if self.active is not None:
            squares = xp.take(squares, at.put(self.active.astype(np.int64)))
        return xp.eye(self.order, dtype=squares.dtype, device=at.device) * squares[None, :]

    # ------------------------------------------------------------ other sums

    def along(self, step, width):
        xp = self.xp

        def packs():
            for state in self.state:
                s, v, u = xp.abs(state.code), state.change, state.deficit - step * state.change
                at = SmoothedHinge(xp, u, width) if self.loss == "smoothed_hinge" else self.point(u)
                yield xp.stack([xp.sum(s * at.value), -xp.sum(s * at.slope * v), xp.sum(s * at.curvature * v * v)])

        told = self.rows.folded(packs())
        return tuple(np.zeros(3) if told is None else told)

    def curvature_at(self, state, width):
        """h of rows where the last look was."""
        u = state.deficit - self.pending * state.change
        if self.loss != "smoothed_hinge":
            return self.point(u).curvature
        at = SmoothedHinge(self.xp, u, width)
        return at.curvature if self.primal else at.dual_curvature(state.dual_next)

    def hessian_product(self, x, width, curvature_floor=0.0):
        xp, rows = self.xp, self.rows
        w = None if x is None else rows.of_columns(x)

        def packs():
            for block, state in zip(self.blocks, self.state, strict=True):
                h = self.curvature_at(state, width)
                weight, X = xp.where(h > curvature_floor, h * xp.abs(state.code), 0.0), rows.wide(block)
                if w is None:
                    X = X * X
                else:
                    weight = weight * (xp.matmul(X, w[0]) + w[1])
                R = weight[:, None]
                yield self.with_intercept(rows.sums_of(X, R), xp.sum(R, axis=0))[0, :]

        told = rows.folded(packs())
        return np.zeros(self.n_columns) if told is None else told, 1.0

    def evaluate(self, w, squares=False):
        """In float64 whatever the rows: in memory, block by block, where the device has none."""
        rows, m, name = self.rows, self.n_features, "hinge" if self.loss == "smoothed_hinge" else self.loss

        def packs():
            for block, state in zip(self.blocks, self.state, strict=True):
                X, xp = rows.exactly(block)
                code, v = (state.code, rows.at.put(w[:m])) if xp is self.xp else (to_host(state.code), w[:m])
                s, z = xp.abs(code), xp.matmul(X, v) + (float(w[m]) if self.intercept else 0.0)
                loss = s * LOSSES[name](xp, xp.where(code < 0, -z, z), *self.parameters).value
                pack = [xp.reshape(xp.sum(xp.where(s == 0, 0.0, loss)), (1,))]      # no weight, no loss
                if squares:
                    pack += [xp.matmul(xp.astype(s, X.dtype), X * X), xp.reshape(xp.sum(s), (1,))]
                yield xp.concat(pack)

        told = rows.folded(packs())
        told = np.zeros(2 + m) if told is None else told
        return float(told[0]), told[1:1 + self.n_columns] if squares else None

    def margins(self):
        parts = [to_host(1 - (state.deficit - self.pending * state.change)) for state in self.state]
        return np.concatenate(parts).astype(float) if parts else np.empty(0)

    def sides(self):
        xp = self.xp
        told = self.rows.folded(
            xp.stack([xp.sum(self.rows.at.widened(state.code > 0)), xp.sum(self.rows.at.widened(state.code < 0)),
                      xp.sum(positive(xp, state.code)), xp.sum(positive(xp, -state.code))]) for state in self.state)
        a, b, c, d = (0, 0, 0.0, 0.0) if told is None else told
        return (int(a), int(b)), (float(c), float(d))

    # ------------------------------------------------------------ a few rows

    @property
    def code(self):
        return self.xp.concat([state.code for state in self.state])

    def gather_sample(self, positives, negatives, seed, column_weight=None):
        """A pass over rows that stay on the device."""
        rows, code = sample_of(self.rows, self.code, positives, negatives, seed, column_weight)
        reads = len(rows) / max(1, self.n_rows) if column_weight is None else 1.0
        return DeviceRowPass(rows, code, self.intercept, self.place), self.share * reads

    def take_measures(self):
        """In memory, where the near rows are chosen."""
        return np.concatenate([to_host(state.norm) for state in self.state]).astype(float)

    def nearest_apart(self, share, most, moved, width, sample=None):
        """On the device too."""
        others, near, distance = self.choose_nearest(share, most, moved)
        if not near or not (others or sample):
            return None
        rows, code, a = beside_lines(self, width, sample)
        part = DeviceRowPass(rows, code, self.intercept, self.place)
        return Answered((part, *part.sums_by_side(a), distance, part.share))

    def sums_by_side(self, a):
        """(2, n_columns) sums of s a y x over positive and over negative rows, and 2 of s a."""
        xp, rows = self.xp, self.rows

        def packs():
            for block, state in zip(self.blocks, self.state, strict=True):
                c = a[block] * state.code
                R = xp.stack([xp.where(c > 0, c, 0.0), xp.where(c < 0, c, 0.0)], axis=1)
                sums = self.with_intercept(rows.sums_of(rows.wide(block), R), xp.sum(R, axis=0))
                yield xp.concat([xp.reshape(sums, (-1,)), xp.sum(xp.abs(R), axis=0)])

        told = rows.folded(packs())
        told = np.zeros(2 * self.n_columns + 2) if told is None else told
        return told[:-2].reshape(2, -1), told[-2:]

    def weigh_sides(self, positives, negatives):
        xp, up, down = self.xp, float(positives), float(negatives)
        self.state = [replace(state, code=xp.where(state.code > 0, up * state.code, down * state.code))
                      for state in self.state]
        self.total_weight = sum(self.sides()[1])

    def mean_measure(self):
        xp = self.xp
        return float(xp.sum(xp.abs(self.code) * xp.concat([state.norm for state in self.state]))) / self.total_weight

    def gather_heavy(self):
        """In memory, a few rows."""
        heavy, mean, masks = heavy_rows(self)
        if heavy is not None:
            self.state = [replace(state, exact=mask) for state, mask in zip(self.state, masks, strict=True)]
        return heavy, mean


def above_and_below(xp, h, s, floor):
    """Curvature s h of the rows above a floor, and of those whose diagonal alone counts, or None: `_row_blocks`."""
    above = xp.where(h > floor, s * h, 0.0)
    if floor <= 0:
        return above, None
    return above, xp.where((h > floor) | ~(h > ON_DIAGONAL * floor), 0.0, s * h)


class HingeLook:
    """What a look asks of the rows of a block at the smoothed hinge: `hinge_rows` of ``_smoothed_hinge.h``.

    Attributes
    ----------
    sums : dict of 0-d arrays by their place
    columns : arrays (n,): what rows are summed by
    curvature : (n,) array, 0 below the floor
    left_out : (n,) array of what is on the diagonal alone, or None
    state : RowState
    """

    def __init__(self, home, state, asked):
        xp, v = home.xp, state.change
        s, up = xp.abs(state.code), state.code >= 0
        u0, u1 = state.deficit, state.deficit - asked.step * v
        before, line = SmoothedHinge(xp, u0, asked.line_width), SmoothedHinge(xp, u1, asked.line_width)
        after = line if asked.width == asked.line_width else SmoothedHinge(xp, u1, asked.width)
        slope0, slope1 = before.slope, after.slope
        a0 = slope0 if asked.primal else state.dual
        a_hat = slope1 if asked.tangents else clipped(xp, slope0 - before.dual_curvature(a0) * v, 1.0)
        a1 = slope1 if asked.primal else a0 + min(1.0, asked.step) * (a_hat - a0)
        h = after.curvature if asked.primal else after.dual_curvature(a1)
        curvature, left_out = above_and_below(xp, h, s, asked.floor)
        if state.exact is not None:
            a_hat = xp.where(state.exact, line.slope, a_hat)
            curvature = xp.where(state.exact, 0.0, curvature)
            left_out = None if left_out is None else xp.where(state.exact, 0.0, left_out)
        worth = s * a_hat
        pos, neg = xp.where(up, worth, 0.0), xp.where(up, 0.0, worth)
        self.sums = {0: xp.sum(s * line.value), 1: -xp.sum(s * line.slope * v), 2: xp.sum(s * positive(xp, u1)),
                     3: xp.sum(s * after.value), 4: xp.sum(pos), 5: xp.sum(neg), 7: xp.sum(s * h)}
        self.columns = [state.code * slope1, pos, -neg]
        self.curvature, self.left_out, self.state = curvature, left_out, replace(state, dual_next=a1)


class SmoothLook:
    """The same for a loss that is smooth itself: one value serves the line, the next step and the objective."""

    def __init__(self, home, state, asked):
        xp, v, largest = home.xp, state.change, home.largest
        s, up = xp.abs(state.code), state.code >= 0
        at = home.point(state.deficit - asked.step * v)
        value = xp.sum(s * at.value)
        self.sums = {0: value, 1: -xp.sum(s * at.slope * v), 7: xp.sum(s * at.curvature)}
        self.columns = [state.code * at.slope]
        self.curvature, self.left_out = above_and_below(xp, at.curvature, s, asked.floor)
        self.state = state
        if not largest:                          # there is no dual
            if asked.first:
                self.columns.append(state.code)
            return
        before = home.point(state.deficit)       # a after the step, as the model before it predicts it
        a = clipped(xp, before.slope - before.curvature * v, largest)
        gain, worth = s * GAINS[home.loss](xp, a), s * a
        pos, neg = xp.where(up, worth, 0.0), xp.where(up, 0.0, worth)
        self.sums |= {2: value, 3: value, 4: xp.sum(pos), 5: xp.sum(neg), 8: xp.sum(xp.where(up, gain, 0.0)),
                      9: xp.sum(xp.where(up, 0.0, gain))}
        self.columns += [pos, -neg]
        self.state = replace(state, dual_next=a)
