/* dot and axpy of one short row, vectorised for the processor they run on.
 *
 * Why not BLAS: a stochastic step is one dot and one axpy of a few hundred numbers. A BLAS call costs as much as
 * the arithmetic there (doc/decisions.md, "Inlined row kernels"). Longer products go through _blas.
 *
 * The sums run in fixed partial sums, folded in lane order: the order of additions is written down here and
 * not left to the compiler, so that -ffast-math is never needed and the bits never depend on the thread count.
 * CLONES asks the compiler for several versions of a function and the loader for the best one; where that is not
 * supported, there is one version for the baseline processor.
 */
#ifndef CMARGIN_SIMD_H
#define CMARGIN_SIMD_H

#include <stddef.h>

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(CMARGIN_NO_CLONES)
#if !defined(__clang__) || __clang_major__ >= 17
#define CLONES __attribute__((target_clones("avx512f", "avx2,fma", "default")))
#endif
#endif
#ifndef CLONES
#define CLONES
#endif

#if defined(__GNUC__)
#define PREFETCH(address) __builtin_prefetch(address)
#else
#define PREFETCH(address) ((void)(address))
#endif

/* WIDE lanes hide the latency of the additions; the rest of a row goes through NARROW ones. Every inner loop has a
 * constant length, so that the lanes stay in registers (13 ns less for 200 numbers than with one ragged loop). */
#define DEFINE_ROW_KERNELS(real, suffix, WIDE, NARROW)                                                           \
    /* sum_j a_j b_j */                                                                                          \
    CLONES static real row_dot_##suffix(const real *a, const real *b, ptrdiff_t n) {                             \
        real wide[WIDE] = {0}, narrow[NARROW] = {0}, sum = 0;                                                    \
        ptrdiff_t j = 0;                                                                                         \
        for (; j + WIDE <= n; j += WIDE)                                                                         \
            for (int l = 0; l < WIDE; l++) wide[l] += a[j + l] * b[j + l];                                       \
        for (int w = WIDE / 2; w >= NARROW; w /= 2)                                                              \
            for (int l = 0; l < w; l++) wide[l] += wide[l + w];                                                  \
        for (; j + NARROW <= n; j += NARROW)                                                                     \
            for (int l = 0; l < NARROW; l++) narrow[l] += a[j + l] * b[j + l];                                   \
        for (int l = 0; l < NARROW; l++) narrow[l] += wide[l];                                                   \
        for (int w = NARROW / 2; w > 0; w /= 2)                                                                  \
            for (int l = 0; l < w; l++) narrow[l] += narrow[l + w];                                              \
        for (; j < n; j++) sum += a[j] * b[j];                                                                   \
        return narrow[0] + sum;                                                                                  \
    }                                                                                                            \
    /* y += scale x */                                                                                           \
    CLONES static void row_axpy_##suffix(real scale, const real *x, real *y, ptrdiff_t n) {                      \
        for (ptrdiff_t j = 0; j < n; j++) y[j] += scale * x[j];                                                  \
    }                                                                                                            \
    /* y += scale (g o x) */                                                                                     \
    CLONES static void row_scaled_axpy_##suffix(real scale, const real *g, const real *x, real *y, ptrdiff_t n) {\
        for (ptrdiff_t j = 0; j < n; j++) y[j] += scale * g[j] * x[j];                                           \
    }                                                                                                            \
    /* mean += rate (value - mean) */                                                                            \
    CLONES static void row_lerp_##suffix(real rate, const real *value, real *mean, ptrdiff_t n) {                \
        for (ptrdiff_t j = 0; j < n; j++) mean[j] += rate * (value[j] - mean[j]);                                \
    }                                                                                                            \
    /* ask for a row that will be needed soon */                                                                 \
    static inline void row_prefetch_##suffix(const real *x, ptrdiff_t n) {                                       \
        for (ptrdiff_t j = 0; j < n; j += 64 / (ptrdiff_t)sizeof(real)) PREFETCH(x + j);                         \
    }

DEFINE_ROW_KERNELS(float, f, 64, 8)
DEFINE_ROW_KERNELS(double, d, 32, 4)

#endif
