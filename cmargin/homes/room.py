"""Memory for what is kept of every row, used again by the next task.

The system hands out new pages one by one, each filled with zeros: on workers, whose settings give every large array
back to it at once, copies of the state took a fifth to a half as long as the look that they were for.
"""

import weakref

import numpy as np

LARGE = 1 << 20        # entries, 8 MB: from half of that on NumPy asks for large pages, of which few have to be filled


class Room:
    """Float64 arrays, in the memory of those of the same size that are gone.

    What is free goes when this object does; it travels without it.
    """

    def __init__(self):
        self.free = {}                           # number of entries -> memory

    def __reduce__(self):
        return Room, ()

    def array(self, shape):
        """An array of that shape, whose entries are whatever was there."""
        size = int(np.prod(shape))
        free = self.free.setdefault(size, [])
        try:
            memory = free.pop()
        except IndexError:
            memory = memoryview(np.empty(max(size, LARGE) if 4 * size > LARGE else size))[:size]
        array = np.frombuffer(memory, float)     # every view of it keeps it, and it is what keeps the memory
        weakref.finalize(array, free.append, memory).atexit = False
        return array.reshape(shape)
