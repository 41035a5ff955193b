"""OpenMP, or its serial stand-in when the build has none: kernels compile unchanged either way."""

cdef extern from *:
    """
    #ifdef _OPENMP
    #include <omp.h>
    #define CMARGIN_HAS_OPENMP 1
    #else
    #define CMARGIN_HAS_OPENMP 0
    static int omp_get_max_threads(void) { return 1; }
    static int omp_get_num_procs(void) { return 1; }
    static int omp_get_num_threads(void) { return 1; }
    static int omp_get_thread_num(void) { return 0; }
    static int omp_in_parallel(void) { return 0; }
    #endif
    """
    const bint CMARGIN_HAS_OPENMP
    int omp_get_max_threads() noexcept nogil
    int omp_get_num_procs() noexcept nogil
    int omp_get_num_threads() noexcept nogil
    int omp_get_thread_num() noexcept nogil
    int omp_in_parallel() noexcept nogil
