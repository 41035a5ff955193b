cdef enum:
    AHEAD = 2                        # rows asked for before they are needed
