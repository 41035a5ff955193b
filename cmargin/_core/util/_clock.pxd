"""Seconds on the clock of `time.perf_counter`, read without the interpreter."""

cdef extern from *:
    """
    #include <time.h>
    #if defined(_WIN32)
    #define WIN32_LEAN_AND_MEAN
    #define NOMINMAX
    #include <windows.h>
    static double cmargin_seconds(void) {
        LARGE_INTEGER now, rate;
        QueryPerformanceCounter(&now);
        QueryPerformanceFrequency(&rate);
        return (double) now.QuadPart / (double) rate.QuadPart;
    }
    #else
    #ifdef __APPLE__
    #define CMARGIN_CLOCK CLOCK_UPTIME_RAW
    #else
    #define CMARGIN_CLOCK CLOCK_MONOTONIC
    #endif
    static double cmargin_seconds(void) {
        struct timespec now;
        clock_gettime(CMARGIN_CLOCK, &now);
        return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
    }
    #endif
    """
    double seconds "cmargin_seconds"() noexcept nogil
