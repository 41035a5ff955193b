"""Rows on a device with the state of one binary problem: `RowPass` in operations on arrays, one transfer an evaluation.

The state of the rows is kept block by block on the device and never written to: an evaluation makes the next one, which
is there only when the evaluation has ended. What is summed is what `_core/rows/_row_blocks.pyx` sums.

Each operation costs the host a launch, ten microseconds or more, whatever the rows: what can be is done to several
arrays (n,) at once, as rows of one, and what is said of sums, signs and borders, is said of them in memory.
"""

from dataclasses import dataclass, replace

import numpy as np

from cmargin._core.rows._row_blocks import ON_DIAGONAL
from cmargin._core.rows._row_pass import ROUNDING
from cmargin.data.device.arrays import to_host
from cmargin.data.device.gathered import beside_lines, sample_of
from cmargin.data.device.losses import (
    GAINS,
    LOSSES,
    SmoothedHinge,
    SmoothedKinks,
    clipped,
    dual_curvature,
    positive,
)
from cmargin.data.moves import COMMIT_AND_MOVE, SAME_LINE, move_of
from cmargin.data.source import SINGLE_BLOCK, TANGENTS
from cmargin.data.working_set import Answered, ChoosesWorkingSet

N_SUMS = 16                    # of an evaluation, in the order of ``sum_id``
SINGLE_ROUNDING = float(np.finfo(np.float32).eps)      # of sums in pieces, where there is no double precision


@dataclass
class RowState:
    """What is kept of the rows of a block; arrays (n,) in the precision of sums."""

    signed_weight: object      # s y
    weight: object             # s
    up: object                 # whether y = +1
    slack: object = None     # u = 1 - y <w, x> before the last step,
    change: object = None      # y <e, x>, and how far along it the last evaluation was
    dual: object = None        # a before the last step,
    dual_next: object = None   # and after it
    norm: object = None        # sum of weight x^2
    offset: object = None      # t of slacks t - y <w, x>; None: 1

    @classmethod
    def of(cls, xp, signed_weight, offset=None):
        return cls(signed_weight, xp.abs(signed_weight), signed_weight >= 0, offset=offset)

    def begun(self, xp):
        slack = xp.ones_like(self.signed_weight) if self.offset is None else self.offset
        return replace(self, slack=slack, change=xp.zeros_like(self.signed_weight),
                       dual=None, dual_next=None)


@dataclass
class Asked:
    """Of an evaluation."""

    direction: object
    step: float
    widths: object             # of the step's line at both its ends, and the next step's: one, or (3, 1) on the device;
    #                            of a loss with two kinks the line's and the next step's
    floor: float
    with_hessian: bool
    pending: float
    primal: bool
    first: bool
    tangents: bool


class DeviceRowPass(ChoosesWorkingSet):
    """`RowPass` over `DeviceRows` of the `DeviceSource` ``place``; ``signed_weight`` (n,) is on the device, in the
    precision of sums, and so is ``offset``, or None; ``given``: the offset in memory, float64, or None."""

    def __init__(self, rows, signed_weight, intercept, place, offset=None, given=None):
        self.rows, self.intercept, self.place, self.xp = rows, bool(intercept), place, rows.xp
        self.n_rows, self.n_features = rows.shape
        self.n_columns = self.n_features + self.intercept
        self.share = self.n_rows / max(1, place.n_rows)
        self.rounding = ROUNDING if rows.at.exact else SINGLE_ROUNDING
        self.blocks = rows.blocks
        self.loss, self.parameters, self.largest = "smoothed_hinge", (), 1.0
        self.kinks, self.smallest, self.offset, self.given = None, 0.0, offset, given
        self.active = self.norm_weight = None
        self.state = [RowState.of(self.xp, signed_weight[block], None if offset is None else offset[block])
                      for block in self.blocks]
        self.total_weight = sum(self.sides()[1])
        self.start()

    # ------------------------------------------------------------ what the sums are of

    def start(self, primal=False):
        self.state = [state.begun(self.xp) for state in self.state]
        self.forgets, self.fresh, self.begun, self.pending, self.primal = bool(primal), True, False, 0.0, True

    def set_loss(self, loss):
        if loss.name not in GAINS and loss.sides is None:
            raise ValueError(f"a loss without a dual has no certificate: {loss.name}")
        if loss.name == "hinge" and self.offset is not None:         # whose bound would lack what offsets add
            self.place.refuse("A hinge whose rows have offsets")
        self.loss, self.parameters = "smoothed_hinge" if loss.name == "hinge" else loss.name, loss.parameters
        self.largest, self.smallest, self.kinks = loss.facts["dual_largest"], loss.facts["dual_smallest"], loss.sides

    def pursue(self, level, scale):
        self.loss, self.parameters, self.largest = "margin_pursuit", (level, scale), 0.0

    def set_active(self, active):
        self.active = None if active is None else np.array(active)

    def measure_rows(self, weight):
        self.norm_weight = np.array(weight)

    @property
    def kind(self):
        if self.kinks is not None:
            return KinksEvaluation
        return HingeEvaluation if self.loss == "smoothed_hinge" else SmoothEvaluation

    def at(self, u, width):
        """The loss at slacks u, smoothed by ``width`` where it has kinks."""
        if self.kinks is not None:
            return SmoothedKinks(self.xp, u, width, self.kinks)
        return SmoothedHinge(self.xp, u, width) if self.loss == "smoothed_hinge" else self.point(u)

    def point(self, u):
        """A loss that needs no smoothing at slacks u: value, slope in u, curvature."""
        at = LOSSES[self.loss](self.xp, 1 - u, *self.parameters)
        return at._replace(slope=-at.slope)

    # ------------------------------------------------------------ an evaluation

    def evaluate(self, direction, step, line_width, width, curvature_floor, with_hessian=True, move=None):
        move, tangents = move_of(direction, self.begun) if move is None else move, with_hessian == TANGENTS
        moves, swap = move != SAME_LINE, move == COMMIT_AND_MOVE
        asked = Asked(self.rows.of_columns(direction) if moves else None, step, self.widths_of(line_width, width),
                      curvature_floor, with_hessian in (True, SINGLE_BLOCK) and self.order > 0, self.pending,
                      self.forgets or (self.fresh and not swap) or tangents, not self.begun, tangents)
        after, curved = [], []

        def sums():
            for block, state in zip(self.blocks, self.state, strict=True):
                state, found, n_curved = self.evaluate_block(block, state, asked, swap)
                after.append(state)
                curved.append(n_curved)
                yield found

        totals = self.rows.folded_by_name(sums())
        self.state, self.pending, self.line_width = after, step, line_width
        self.primal, self.begun = asked.primal, True
        self.fresh, self.norm_weight = self.fresh and not swap, None
        return (*self.unpacked(totals, sum(curved)), self.block_of(totals) if asked.with_hessian else None)

    def widths_of(self, line_width, width):
        if self.kinks is not None:
            return float(line_width), float(width)
        if self.loss != "smoothed_hinge" or line_width == width:
            return float(line_width)
        return self.rows.at.put(np.array([line_width, line_width, width], float)[:, None])

    @property
    def order(self):
        """Of the curvature block."""
        return self.n_columns if self.active is None else len(self.active)

    @property
    def active_columns(self):
        """Those of X in the curvature block, and whether the column of ones is, which is its last then."""
        if self.active is None:
            return np.arange(self.n_features), self.intercept
        columns = self.active[self.active < self.n_features]
        return columns, len(columns) < len(self.active)

    def evaluate_block(self, block, state, asked, swap):
        """The state after the evaluation, its sums, and how many rows have curvature."""
        rows, xp = self.rows, self.xp
        X = rows.wide(block)
        state = self.moved(X, state, asked)
        if swap:
            state = replace(state, dual=state.dual_next)
        found = self.kind(self, state, asked)
        columns, (sums, curved) = found.columns, ({}, 0)
        if asked.with_hessian:
            sums, curved = self.curvature_of(X, block, found.curvature, found.left_out)
            columns = [*columns, found.curvature]            # rows summed by it are the block's border
        R = xp.stack(columns, axis=1)
        return found.state, {"parts": xp.sum(found.parts, axis=1), "ones": xp.sum(R, axis=0),
                             "rows": rows.sums_of(X, R), **sums}, curved

    def moved(self, X, state, asked):
        """The state of rows X when the last step has been taken and the next is known."""
        rows, xp = self.rows, self.xp
        if self.norm_weight is not None:
            state = replace(state, norm=(X * X) @ rows.of_columns(self.norm_weight)[0])
        if asked.direction is None:
            return state
        product = X @ asked.direction[0]
        if self.intercept:
            product = product + asked.direction[1]
        return replace(state, slack=state.slack - asked.pending * state.change,
                       change=xp.where(state.up, product, -product))

    def unpacked(self, totals, curved):
        """(N_SUMS,) in the order of ``sum_id``, and (3, n_columns)."""
        m, sums, gradient = self.n_features, np.zeros(N_SUMS), np.zeros((3, self.n_columns))
        sums[6] = curved
        if not totals:
            return sums, gradient
        sums[list(self.kind.PLACES[:len(totals["parts"])])] = totals["parts"]
        sums[1] = -sums[1]                                   # of the derivative in u, not yet in the step
        k = len(totals["ones"]) - ("block" in totals)        # the last ones are the block's border
        gradient[:k, :m], gradient[:k, m:] = totals["rows"][:k], totals["ones"][:k, None]
        if self.largest:                                     # there is a dual
            sums[4], sums[5] = totals["ones"][1:3]
            gradient[2] = -gradient[2]
            if self.kind is SmoothEvaluation:                # one value
                sums[2] = sums[3] = sums[0]
        return sums, gradient

    def curvature_of(self, X, block, h, left_out):
        """The sums of a block's curvature but for its border, and how many rows have any.

        sum h x x' over the active columns is the one product in the precision of the rows as they were given: a step
        needs no more digits of it. Of rows left out of it sums of squares alone, for its diagonal.
        """
        xp, at = self.xp, self.rows.at
        there, given, kept = xp.nonzero(h)[0], self.rows.X[block, :], h
        if there.shape[0] < h.shape[0]:
            given, kept = xp.take(given, there, axis=0), xp.take(h, there, axis=0)
        if self.active is not None:
            given = xp.take(given, at.put(self.active_columns[0].astype(np.int64)), axis=1)
        scaled = given * at.narrowed(xp.sqrt(kept))[:, None]
        sums = {"block": at.widened(scaled.T @ scaled)}
        if left_out is not None:
            sums |= {"squares": left_out @ (X * X), "left_out": xp.reshape(xp.sum(left_out), (1,))}
        return sums, there.shape[0]

    def block_of(self, totals):
        """(order, order): sum h x x' over the active columns, the column of ones among them."""
        columns, ones = self.active_columns
        k, block = len(columns), np.zeros((self.order, self.order))
        if totals:
            block[:k, :k] = totals["block"]
            if ones:
                block[k, :k] = block[:k, k] = totals["rows"][-1, columns]
                block[k, k] = totals["ones"][-1]
            if "squares" in totals:
                squares = np.append(totals["squares"][columns], totals["left_out"][:int(ones)])
                block[np.diag_indices(self.order)] += squares
        return block

    # ------------------------------------------------------------ other sums

    def line(self, step, width):
        xp = self.xp

        def packs():
            for state in self.state:
                v, u = state.change, state.slack - step * state.change
                at = self.at(u, width)
                yield xp.sum(xp.stack([at.value, at.slope * v, at.curvature * v * v]) * state.weight, axis=1)

        totals = self.rows.folded(packs())
        return tuple(np.zeros(3) if totals is None else totals * (1, -1, 1))

    def curvature_at(self, state, width):
        """h of rows at the last evaluation."""
        u = state.slack - self.pending * state.change
        at = self.at(u, width)
        if self.kind is SmoothEvaluation:            # which keeps no curvature of a dual variable's own
            return at.curvature
        return at.curvature if self.primal else at.dual_curvature(state.dual_next)

    def hessp(self, x, width, curvature_floor=0.0):
        xp, rows = self.xp, self.rows
        w = None if x is None else rows.of_columns(x)

        def packs():
            for block, state in zip(self.blocks, self.state, strict=True):
                h = self.curvature_at(state, width)
                weight = xp.where(h > curvature_floor, h * state.weight, xp.zeros_like(h))
                X = rows.wide(block)
                if w is None:
                    X = X * X
                else:
                    weight = weight * (X @ w[0] + w[1])
                yield {"rows": rows.sums_of(X, weight[:, None])[0, :], "ones": xp.reshape(xp.sum(weight), (1,))}

        totals = rows.folded_by_name(packs())
        return self.with_ones(totals["rows"], totals["ones"]) if totals else np.zeros(self.n_columns), 1.0

    def with_ones(self, sums, of_ones):
        """Sums (..., m) of rows, in memory, with those (..., 1) of their column of ones, where there is one."""
        return np.concatenate([sums, of_ones], axis=-1) if self.intercept else sums

    def objective(self, w, squares=False):
        """In float64 whatever the rows: in memory, block by block, where the device has none."""
        rows, m = self.rows, self.n_features

        def packs():
            for block, state in zip(self.blocks, self.state, strict=True):
                X, xp = rows.exactly(block)
                signed_weight, v = state.signed_weight, w[:m]
                signed_weight, v = (signed_weight, rows.at.put(v)) if xp is self.xp else (to_host(signed_weight), v)
                s, z = xp.abs(signed_weight), X @ v + (float(w[m]) if self.intercept else 0.0)
                loss = s * self.losses(xp, block, state, xp.where(signed_weight < 0, -z, z))
                pack = [xp.reshape(xp.sum(xp.where(s == 0, xp.zeros_like(loss), loss)), (1,))]  # no weight, no loss
                if squares:
                    pack += [xp.astype(s, X.dtype) @ (X * X), xp.reshape(xp.sum(s), (1,))]
                yield xp.concat(pack)

        totals = rows.folded(packs())
        totals = np.zeros(2 + m) if totals is None else totals
        return float(totals[0]), totals[1:1 + self.n_columns] if squares else None

    def losses(self, xp, block, state, z):
        """F, not smoothed, of rows with y <w, x> = z, where these are: on the device or in memory."""
        name = "hinge" if self.loss == "smoothed_hinge" else self.loss
        if state.offset is None:
            return LOSSES[name](xp, z, *self.parameters).value
        there = xp is self.xp
        u = (state.offset if there else to_host(state.offset) if self.given is None else self.given[block]) - z
        if self.kinks is None:
            return LOSSES[name](xp, 1 - u, *self.parameters).value
        up, down, e = self.kinks
        return up * positive(xp, u - e) + down * positive(xp, -u - e)

    def margins(self):
        parts = [to_host(1 - (state.slack - self.pending * state.change)) for state in self.state]
        return np.concatenate(parts).astype(float) if parts else np.empty(0)

    def sides(self):
        xp = self.xp
        totals = self.rows.folded(
            xp.stack([xp.sum(self.rows.at.widened(state.signed_weight > 0)),
                      xp.sum(self.rows.at.widened(state.signed_weight < 0)), xp.sum(positive(xp, state.signed_weight)),
                      xp.sum(positive(xp, -state.signed_weight))]) for state in self.state)
        a, b, c, d = (0, 0, 0.0, 0.0) if totals is None else totals
        return (int(a), int(b)), (float(c), float(d))

    # ------------------------------------------------------------ a few rows

    @property
    def signed_weight(self):
        return self.xp.concat([state.signed_weight for state in self.state])

    def gather_sample(self, positives, negatives, seed, column_weight=None):
        """A pass over rows that stay on the device."""
        rows, signed_weight, offset = sample_of(self.rows, self.signed_weight, positives, negatives, seed,
                                                column_weight, self.offset)
        reads = len(rows) / max(1, self.n_rows) if column_weight is None else 1.0
        return DeviceRowPass(rows, signed_weight, self.intercept, self.place, offset), self.share * reads

    def take_measures(self):
        """In memory, where the working set is chosen."""
        return np.concatenate([to_host(state.norm) for state in self.state]).astype(float)

    def gather_working_set(self, share, most, moved, width, sample=None):
        """On the device too."""
        if self.offset is not None:                  # straight lines are summed without offsets
            return None
        others, n_members, distance = self.choose_working_set(share, most, moved)
        if not n_members or not (others or sample):
            return None
        rows, signed_weight, a = beside_lines(self, width, sample)
        part = DeviceRowPass(rows, signed_weight, self.intercept, self.place)
        return Answered((part, *part.sums_by_side(a), distance, part.share))

    def sums_by_side(self, a):
        """(2, n_columns) sums of s a y x over positive and over negative rows, and 2 of s a."""
        xp, rows = self.xp, self.rows

        def packs():
            for block, state in zip(self.blocks, self.state, strict=True):
                c = a[block] * state.signed_weight
                R = xp.stack([positive(xp, c), -positive(xp, -c)], axis=1)
                yield {"rows": rows.sums_of(rows.wide(block), R), "ones": xp.sum(R, axis=0)}

        totals = rows.folded_by_name(packs())
        if not totals:
            return np.zeros((2, self.n_columns)), np.zeros(2)
        return self.with_ones(totals["rows"], totals["ones"][:, None]), np.abs(totals["ones"])

    def weigh_sides(self, positives, negatives):
        xp, up, down = self.xp, float(positives), float(negatives)
        self.state = [replace(state, signed_weight=xp.where(state.up, up * state.signed_weight,
                                                            down * state.signed_weight),
                              weight=xp.where(state.up, up * state.weight, down * state.weight))
                      for state in self.state]
        self.total_weight = sum(self.sides()[1])

    def mean_measure(self):
        xp = self.xp
        return float(xp.sum(xp.concat([state.weight * state.norm for state in self.state]))) / self.total_weight


def above_and_below(xp, h, weighted, floor, zeros):
    """Curvature s h of the rows above a floor, and of those whose diagonal alone counts, or None: `_row_blocks`."""
    above = xp.where(h > floor, weighted, zeros)
    return above, None if floor <= 0 else xp.where(h > ON_DIAGONAL * floor, weighted, zeros) - above


class HingeEvaluation:
    """What an evaluation asks of the rows of a block at the smoothed hinge: `hinge_rows` of ``_smoothed_hinge.h``."""

    PLACES = 0, 3, 2, 1, 7

    def __init__(self, source, state, asked):
        xp, v, u0 = source.xp, state.change, state.slack
        u1, zeros = u0 - asked.step * v, xp.zeros_like(v)
        ends = [u0, u1] if isinstance(asked.widths, float) else [u0, u1, u1]     # of the line, and the next begins
        at = SmoothedHinge(xp, xp.stack(ends), asked.widths)
        slope, inverse = at.slope, at.inverse
        slope0, slope_line, slope1 = slope[0, :], slope[1, :], slope[-1, :]
        a0 = slope0 if asked.primal else state.dual
        a_hat = slope1 if asked.tangents else clipped(xp, slope0 - dual_curvature(xp, a0, u0, inverse[0, :]) * v, 1.0)
        a1 = slope1 if asked.primal else a0 + min(1.0, asked.step) * (a_hat - a0)
        h = at.curvature[-1, :] if asked.primal else dual_curvature(xp, a1, u1, inverse[-1, :])
        beyond = xp.maximum(u1, zeros)
        # (k, n) what is summed over the rows, for the places `PLACES` of the sums
        self.parts = state.weight * xp.stack([beyond + at.above[1, :], beyond + at.above[-1, :], beyond,
                                              slope_line * v, h])
        self.state = replace(state, dual_next=a1)
        if asked.with_hessian:
            # (n,) curvature, 0 below the floor, and what is on the diagonal alone, or None
            self.curvature, self.left_out = above_and_below(xp, h, self.parts[-1, :], asked.floor, zeros)
        dual_part = state.weight * a_hat        # rows are summed by s y F' and by s a_hat of either side
        self.columns = [state.signed_weight * slope1, xp.where(state.up, dual_part, zeros),
                        xp.where(state.up, zeros, dual_part)]


class KinksEvaluation:
    """The same at a loss of residuals with two kinks: `two_kinks_rows` of ``_two_kinks.h``; rows have offsets."""

    PLACES = 0, 3, 2, 1, 7, 8, 9

    def __init__(self, source, state, asked):
        xp, v, u0, (line_width, width) = source.xp, state.change, state.slack, asked.widths
        u1, zeros = u0 - asked.step * v, xp.zeros_like(v)
        before, line = source.at(u0, line_width), source.at(u1, line_width)
        after = line if width == line_width else source.at(u1, width)
        slope1 = after.slope
        a0 = before.slope if asked.primal else state.dual
        a_hat = slope1 if asked.tangents else before.predicted(None if asked.primal else a0, v)
        a1 = slope1 if asked.primal else a0 + min(1.0, asked.step) * (a_hat - a0)
        h = after.curvature if asked.primal else after.dual_curvature(a1)
        gain, up = state.offset * a_hat - source.kinks[2] * xp.abs(a_hat), state.up == (a_hat >= 0)
        self.parts = state.weight * xp.stack([line.value, after.value, after.exact, line.slope * v, h,
                                              xp.where(up, gain, zeros), xp.where(up, zeros, gain)])
        self.state = replace(state, dual_next=a1)
        if asked.with_hessian:
            self.curvature, self.left_out = above_and_below(xp, h, self.parts[4, :], asked.floor, zeros)
        size = state.weight * xp.abs(a_hat)
        self.columns = [state.signed_weight * slope1, xp.where(up, size, zeros), xp.where(up, zeros, size)]


class SmoothEvaluation:
    """The same for a loss that is smooth itself: one value serves the line, the next step and the objective."""

    PLACES = 0, 1, 7, 8, 9

    def __init__(self, source, state, asked):
        if asked.first and source.largest:       # no model before it predicts its dual variables
            state = replace(state, slack=state.slack - asked.step * state.change,
                            change=source.xp.zeros_like(state.change))
        xp, v, u0, largest = source.xp, state.change, state.slack, source.largest
        u1, zeros = u0 - asked.step * v, xp.zeros_like(v)
        at = source.point(xp.stack([u0, u1] if largest else [u1]))
        slope, h = at.slope[-1, :], at.curvature[-1, :]
        parts, self.columns, self.state = [at.value[-1, :], slope * v, h], [state.signed_weight * slope], state
        if largest:                              # a after the step, as the model before it predicts it
            a = clipped(xp, at.slope[0, :] - at.curvature[0, :] * v, largest, source.smallest)
            gain, dual_part = GAINS[source.loss](xp, a, *source.parameters), state.weight * a
            if state.offset is not None:
                gain = gain + (state.offset - 1) * a
            up = state.up
            if source.smallest < 0:              # the sign is that of s y a, whatever that of a
                up, dual_part = up == (a >= 0), xp.abs(dual_part)
            parts += [xp.where(up, gain, zeros), xp.where(up, zeros, gain)]
            self.columns += [xp.where(up, dual_part, zeros), xp.where(up, zeros, dual_part)]
            self.state = replace(state, dual_next=a)
        elif asked.first:
            self.columns.append(state.signed_weight)
        self.parts = state.weight * xp.stack(parts)
        if asked.with_hessian:
            self.curvature, self.left_out = above_and_below(xp, h, self.parts[2, :], asked.floor, zeros)
