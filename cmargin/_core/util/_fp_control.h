/* How this thread rounds and what it does with the smallest numbers: settings of the processor that any library may
 * change, in a thread of ours too. Kernels are tested with those that a program begins with: to nearest, subnormal
 * numbers kept, nothing trapped.
 */
#ifndef CMARGIN_FP_CONTROL_H
#define CMARGIN_FP_CONTROL_H

#include <stdint.h>

typedef uint64_t fp_settings;

#if defined(__x86_64__) || defined(_M_X64)

#include <xmmintrin.h>

enum { FP_STANDARD = 0x1f80, FP_FLAGS = 0x3f };      /* flags are what happened, no setting */

static inline fp_settings fp_get(void) { return _mm_getcsr() & ~(fp_settings)FP_FLAGS; }
static inline void fp_set(fp_settings settings) { _mm_setcsr((_mm_getcsr() & FP_FLAGS) | (uint32_t)settings); }

#elif defined(__aarch64__) && defined(__GNUC__)

enum { FP_STANDARD = 0 };

static inline fp_settings fp_get(void) {
    fp_settings settings;
    __asm__ __volatile__("mrs %0, fpcr" : "=r"(settings));
    return settings;
}
static inline void fp_set(fp_settings settings) { __asm__ __volatile__("msr fpcr, %0" : : "r"(settings)); }

#else                                /* left as they are */

enum { FP_STANDARD = 0 };
static inline fp_settings fp_get(void) { return FP_STANDARD; }
static inline void fp_set(fp_settings settings) { (void)settings; }

#endif

/* Set what kernels are tested with; returns what was set before, for `fp_set`. */
static inline fp_settings fp_standard(void) {
    fp_settings before = fp_get();
    if (before != FP_STANDARD)
        fp_set(FP_STANDARD);
    return before;
}
#endif
