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
    #endif

    /* All threads of the team wait for each other. A team of one does without: OpenMP's own barrier asks the kernel to
       wake nobody, 0.2 microseconds each time. */
    static inline void meet(int n_threads) {
        if (n_threads > 1) {
    #ifdef _OPENMP
    #pragma omp barrier
    #endif
        }
    }
    """
    const bint CMARGIN_HAS_OPENMP
    int omp_get_max_threads() noexcept nogil
    int omp_get_num_procs() noexcept nogil
    int omp_get_num_threads() noexcept nogil
    int omp_get_thread_num() noexcept nogil
    void meet(int n_threads) noexcept nogil      # orphaned: inside a parallel region, by every thread of it
