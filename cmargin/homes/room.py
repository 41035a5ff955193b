"""Memory for what is kept of every row, used again by the next task.

The system hands out new pages one by one, each filled with zeros: on workers, whose settings give every large array
back to it at once, copies of the state took a fifth to a half as long as the look that they were for.
"""

import math
import weakref

import numpy as np

LARGE = 1 << 20        # entries, 8 MB: from half of that on NumPy asks for large pages, of which few have to be filled.
ROUNDED = LARGE // 4   # More entries than these are rounded up to it: only what is written to takes memory
MOST = 3               # pieces of a size that wait to be used


class Room:
    """Float64 arrays, in the memory of those of the same size that are gone.

    What is free goes when this object does; it travels without it.
    """

    def __init__(self):
        self.free = {}                           # number of entries -> memory

    def __reduce__(self):
        return Room, ()

    @property
    def nbytes(self):
        """Of what is free."""
        return 8 * sum(size * len(free) for size, free in self.free.items())

    def array(self, shape):
        """An array of that shape, whose entries are whatever was there."""
        size = math.prod(shape)
        free = self.free.setdefault(size, [])
        try:
            memory = free.pop()
        except IndexError:
            memory = memoryview(np.empty(max(size, LARGE) if size > ROUNDED else size))[:size]
        array = np.frombuffer(memory, float)     # every view of it keeps it, and it is what keeps the memory
        weakref.finalize(array, take_back, free, memory).atexit = False
        return array.reshape(shape)


def take_back(free, memory):
    if len(free) < MOST:
        free.append(memory)
