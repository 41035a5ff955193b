"""Errors of sums in double."""


cdef extern from *:
    """
    #include <float.h>
    #define ROUNDING_OF_SUMS (8 * DBL_EPSILON)
    """
    const double ROUNDING_OF_SUMS    # of a sum of N terms, beside the root mean square of a term
