"""Arrays whose numbers lie at multiples of their size in memory, as compiled loops take for granted.

NumPy makes them so. Columns of structured arrays, maps of files from an odd byte on, and what a message between two
machines was unpacked to in place are not, and a loop that was made to load whole vectors may end the process on them.
"""

from copy import copy

import numpy as np

OUR_OWN = ("cmargin.", "scipy.sparse.")      # packages whose objects are looked into


def aligned(array, dtype=None):
    """``array``, or a copy that is aligned and of ``dtype``."""
    return np.require(array, dtype, "A")


def contiguous(array, dtype=None):
    """The same, in C order and of one dimension at least."""
    return aligned(np.ascontiguousarray(array, dtype))


def aligned_throughout(thing):
    """``thing`` with every array in it aligned: in lists, tuples, dicts, sparse arrays and objects of this package.

    Nothing that is given is written to, and what holds no other array than aligned ones is not copied.
    """
    if isinstance(thing, np.ndarray):
        return thing if thing.flags.aligned else np.array(thing, subok=True)      # masked arrays keep their masks
    if isinstance(thing, (list, tuple)):
        parts = [aligned_throughout(part) for part in thing]
        if all(new is old for new, old in zip(parts, thing, strict=True)):
            return thing
        return type(thing)(*parts) if hasattr(thing, "_fields") else type(thing)(parts)
    if isinstance(thing, dict):
        new = changed(thing)
        return {**thing, **new} if new else thing
    if not type(thing).__module__.startswith(OUR_OWN) or not hasattr(thing, "__dict__"):
        return thing
    new = changed(vars(thing))
    if new:
        thing = copy(thing)
        for name, part in new.items():
            object.__setattr__(thing, name, part)         # a frozen dataclass too
    return thing


def changed(parts):
    """Those values of a dict that are not aligned throughout, as they should be."""
    found = ((name, part, aligned_throughout(part)) for name, part in parts.items())
    return {name: new for name, part, new in found if new is not part}
