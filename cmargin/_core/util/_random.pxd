"""One stream of random numbers per class, and one random number per row.

Streams: xoshiro256++ (Blackman and Vigna 2021), four 64-bit words of state.

The words come from ``numpy.random.SeedSequence``; the state lives in an array of the caller, so that a stream
goes on where it stopped and never depends on which thread serves the class.
"""

from libc.stdint cimport int64_t, uint64_t


ctypedef fused place_t:
    int64_t
    Py_ssize_t


cdef inline uint64_t next_word(uint64_t *state) noexcept nogil:
    cdef uint64_t total = state[0] + state[3]
    cdef uint64_t word = ((total << 23) | (total >> 41)) + state[0]
    cdef uint64_t shifted = state[1] << 17
    state[2] ^= state[0]
    state[3] ^= state[1]
    state[1] ^= state[2]
    state[0] ^= state[3]
    state[2] ^= shifted
    state[3] = (state[3] << 45) | (state[3] >> 19)
    return word


cdef inline Py_ssize_t next_below(uint64_t *state, Py_ssize_t bound) noexcept nogil:
    # uniform on 0 .. bound-1; no index is favoured by more than bound / 2^53
    return <Py_ssize_t> (<double> (next_word(state) >> 11) * (1.0 / 9007199254740992.0) * bound)


cdef inline Py_ssize_t next_weighted(uint64_t *state, Py_ssize_t n, const double *cut,
                                     const int64_t *other) noexcept nogil:
    # a row by the table of `_alias`; one word gives the bucket and, by what is left of it, the height in it
    cdef double at = <double> (next_word(state) >> 11) * (1.0 / 9007199254740992.0) * n
    cdef Py_ssize_t bucket = <Py_ssize_t> at
    return bucket if at - bucket < cut[bucket] else other[bucket]


cdef inline void shuffle_places(place_t *a, Py_ssize_t n, uint64_t *state) noexcept nogil:
    # into a random order, every one as likely (Fisher and Yates)
    cdef Py_ssize_t i, j
    cdef place_t held
    for i in range(n - 1, 0, -1):
        j = next_below(state, i + 1)
        held = a[i]
        a[i] = a[j]
        a[j] = held


# ---------------------------------------------------------------- a number that belongs to a row

cdef extern from *:
    """
    #define CMARGIN_GOLDEN 0x9e3779b97f4a7c15ULL
    """
    const uint64_t GOLDEN "CMARGIN_GOLDEN"           # 2^64 over the golden ratio: steps of SplitMix64


cdef inline uint64_t mixed(uint64_t word) noexcept nogil:
    # the finaliser of SplitMix64 (Steele, Lea, Flood 2014): every bit depends on every bit
    word ^= word >> 30
    word *= 0xbf58476d1ce4e5b9ULL
    word ^= word >> 27
    word *= 0x94d049bb133111ebULL
    return word ^ (word >> 31)


cdef inline double number_of(uint64_t seed, uint64_t place) noexcept nogil:
    # uniform on [0, 1); ``seed`` was mixed before
    return <double> (mixed(seed + GOLDEN * (place + 1)) >> 11) * (1.0 / 9007199254740992.0)
