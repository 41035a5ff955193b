"""A few rows of a device: those drawn for a subset, and the working set."""

import numpy as np

from cmargin._core.rows._row_sample import CHANCE, chosen, numbers
from cmargin.data.device.arrays import to_host
from cmargin.data.device.losses import SmoothedHinge
from cmargin.data.device.rows import DeviceRows


def sample_of(rows, signed_weight, positives, negatives, seed, column_weight=None, offset=None):
    """Rows drawn on the device as `_core/rows/_row_sample.pyx` draws them, their signed weights over the chances, and
    offsets, or None.

    Where the device has no double precision, a row whose number lies within rounding of its probability may be chosen
    here and not there.
    """
    xp = rows.xp
    chance = of_sides(xp, signed_weight, positives, negatives)
    if column_weight is not None:
        least, longest = CHANCE
        weight = rows.of_columns(column_weight)[0]
        squares = xp.concat([(X * X) @ weight for X in map(rows.wide, rows.blocks)])
        chance = chance * (least + (1 - least) * xp.where(squares < longest, squares, longest))       # NaN is long too
    there = xp.nonzero(are_chosen(rows, seed, chance))[0]
    chance = xp.take(chance, there)
    return (DeviceRows(xp.take(rows.X, there, axis=0)),
            xp.take(signed_weight, there) / xp.where(chance > 1, 1.0, chance),
            None if offset is None else xp.take(offset, there))


def of_sides(xp, signed_weight, positives, negatives):
    """A number for rows of either side, and 0 for those without weight."""
    return (float(positives) * xp.astype(signed_weight > 0, signed_weight.dtype)
            + float(negatives) * xp.astype(signed_weight < 0, signed_weight.dtype))


def are_chosen(rows, seed, chance):
    return rows.at.put(numbers(seed, len(rows))) < chance


def beside_lines(source, width, sample):
    """Rows of the working set and of a sample, their signed weights, and the slopes of their straight lines."""
    xp, at, sampled = source.xp, source.rows.at, None
    if sample is not None:
        signed_weight = np.array(to_host(source.signed_weight)).astype(float)
        sampled = chosen(None, signed_weight, *sample, 0)[:2]
    index, weights = source.working_set.beside(sampled)
    there = at.put(index.astype(np.int64))
    a = at.put(SmoothedHinge(np, source.working_set.u[index], width).slope)
    signed_weight = xp.take(source.signed_weight, there)
    return (DeviceRows(xp.take(source.rows.X, there, axis=0)),
            signed_weight if sampled is None else signed_weight * at.put(weights), a)
