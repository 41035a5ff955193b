"""Seconds on a clock that never goes back, read without the interpreter; on POSIX that of `time.perf_counter`."""

cdef extern from *:
    """
    #include <time.h>
    #if defined(_WIN32)
    #include <windows.h>
    static double cmargin_seconds(void) {
        LARGE_INTEGER now, rate;
        QueryPerformanceCounter(&now);
        QueryPerformanceFrequency(&rate);
        return (double) now.QuadPart / (double) rate.QuadPart;
    }
    #else
    static double cmargin_seconds(void) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
    }
    #endif
    """
    double seconds "cmargin_seconds"() noexcept nogil
