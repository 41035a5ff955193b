"""How many threads a fit may use."""

from functools import lru_cache

from cython.parallel cimport parallel

from cmargin._core.util._openmp cimport (
    CMARGIN_HAS_OPENMP, omp_get_max_threads, omp_get_num_procs, omp_get_num_threads, omp_get_thread_num,
)


def effective_n_threads(n_jobs=None):
    """Turn the user's ``n_jobs`` into a number of threads, at least 1.

    None: as many as OpenMP offers, which honours ``OMP_NUM_THREADS`` and the processors this process may run on, and
    no more than a container's quota of processor time. A positive number: that many. -1: every processor that this
    process may use, by its quota too; -2: all but one, and so on. A build without OpenMP always answers 1.
    """
    if n_jobs == 0:
        raise ValueError("n_jobs == 0 has no meaning; use None, a positive number, or -1 for all processors.")
    if not CMARGIN_HAS_OPENMP:
        return 1
    if n_jobs is None:
        return max(1, min(omp_get_max_threads(), processors(omp_get_num_procs())))
    if n_jobs < 0:
        return max(1, processors(omp_get_num_procs()) + 1 + n_jobs)
    return n_jobs


@lru_cache
def processors(n_allowed):
    """Processors whose time this process may use.

    Of the ``n_allowed`` that it may run on, what cgroups, version 1 or 2, leave it, or the environment's
    ``LOKY_MAX_CPU_COUNT``. Asked once, as it takes longer than a small fit should.
    """
    try:
        from joblib import cpu_count             # comes with scikit-learn, without which the core does
    except ImportError:
        return n_allowed
    return min(n_allowed, cpu_count())


def threads_seen(int n_threads):
    """Number of threads that a parallel region asking for ``n_threads`` really gets."""
    cdef int seen = 1
    cdef int *seen_out = &seen           # through a pointer: a plain name would be private to each thread
    with nogil, parallel(num_threads=n_threads):
        if omp_get_thread_num() == 0:
            seen_out[0] = omp_get_num_threads()
    return seen
