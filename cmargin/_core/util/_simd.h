/* dot and axpy of one short row, vectorised for the processor they run on.
 *
 * Why not BLAS: a stochastic step is one dot and one axpy of a few hundred numbers. A BLAS call costs as much as
 * the arithmetic there (doc/lab-notebook, "Inlined row kernels"). Longer products go through _blas.
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
#if __clang_major__ >= 17 || (!defined(__clang__) && __GNUC__ >= 12) /* levels: each switches on all it includes */
#define CLONES __attribute__((unused, target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#elif !defined(__clang__)
#define CLONES __attribute__((unused, target_clones("avx512f", "avx2", "default")))
#endif
#endif
#ifndef CLONES
#define CLONES
#endif

/* before a loop: its iterations do not depend on each other, which too many pointers keep a compiler from seeing */
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define INDEPENDENT _Pragma("GCC ivdep")
#else
#define INDEPENDENT
#endif

#if defined(__GNUC__)
#define PREFETCH(address) __builtin_prefetch(address)
#define PREFETCH_FAR(address) __builtin_prefetch(address, 0, 2) /* into the second-level cache */
/* of functions that do nothing else: to GCC they have no effect, and it drops their calls unless they are inlined */
#define PREFETCHING __attribute__((always_inline)) static inline
#else
#define PREFETCHING static inline
#define PREFETCH(address) ((void)(address))
#define PREFETCH_FAR(address) ((void)(address))
#endif

/* number i of each of six arrays will be needed soon */
PREFETCHING void prefetch_of_six(ptrdiff_t i, const double *a, const double *b, const double *c, const double *d,
                                 const double *e, const double *f) {
    PREFETCH(a + i);
    PREFETCH(b + i);
    PREFETCH(c + i);
    PREFETCH(d + i);
    PREFETCH(e + i);
    PREFETCH(f + i);
}

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
    /* y += the sum of n rows of k numbers */                                                                    \
    CLONES static void rows_sum_##suffix(const real *x, ptrdiff_t n, ptrdiff_t k, real *restrict y) {            \
        for (ptrdiff_t i = 0; i < n; i++)                                                                        \
            for (ptrdiff_t c = 0; c < k; c++) y[c] += x[i * k + c];                                              \
    }                                                                                                            \
    /* ask for a row that will be needed soon */                                                                 \
    static inline void row_prefetch_##suffix(const real *x, ptrdiff_t n) {                                       \
        for (ptrdiff_t j = 0; j < n; j += 64 / (ptrdiff_t)sizeof(real)) PREFETCH(x + j);                         \
    }

DEFINE_ROW_KERNELS(float, f, 64, 8)
DEFINE_ROW_KERNELS(double, d, 32, 4)

#define LANES 8

/* (lane 0 + lane 4) + ..: the same order whatever the width of the registers */
static inline double fold_lanes(const double *lane) {
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

/* A sum in LANES parts that stays in registers; with several of them in one loop a compiler needs to be told. In vectors
 * of four, for one of eight goes to memory and back at every addition where registers hold four (doc/lab-notebook,
 * "Vectors of four numbers"). */
#if defined(__GNUC__)
#define QUADS 4
typedef double quad __attribute__((vector_size(32)));
typedef double loose_quad __attribute__((vector_size(32), aligned(8), may_alias));
typedef struct {
    quad low, high;
} lanes;
#define QUAD_d(x) (*(const loose_quad *)(x))
/* written out, as __builtin_convertvector takes the floats apart (doc/lab-notebook, "Steps of a smooth loss begin by
 * products") */
#define QUAD_f(x) ((quad){(x)[0], (x)[1], (x)[2], (x)[3]})
#define ADD_PRODUCT_d(sum, x, w) ADD_QUADS(d, sum, x, w)
#define ADD_PRODUCT_f(sum, x, w) ADD_QUADS(f, sum, x, w)
#define ADD_QUADS(suffix, sum, x, w)                                                                             \
    ((sum).low += QUAD_##suffix(x) * QUAD_d(w), (sum).high += QUAD_##suffix((x) + QUADS) * QUAD_d((w) + QUADS))
#define ADD_LANES(sum, more) ((sum).low += (more).low, (sum).high += (more).high)
#define FOLD(sum)                                                                                                \
    __extension__({                                                                                              \
        quad both = (sum).low + (sum).high;                                                                      \
        (both[0] + both[2]) + (both[1] + both[3]);                                                               \
    })
#else
typedef struct {
    double at[LANES];
} lanes;
#define ADD_PRODUCT_d(sum, x, w) for (int l = 0; l < LANES; l++) (sum).at[l] += (x)[l] * (w)[l]
#define ADD_PRODUCT_f(sum, x, w) ADD_PRODUCT_d(sum, x, w)
#define ADD_LANES(sum, more) for (int l = 0; l < LANES; l++) (sum).at[l] += (more).at[l]
#define FOLD(sum) fold_lanes((sum).at)
#endif

/* The same for a row of either type and a vector of doubles; four sums, as one would wait for its own additions */
#define DEFINE_MIXED_KERNELS(real, suffix)                                                                       \
    /* <x, w> */                                                                                                 \
    CLONES static double mixed_dot_##suffix(const real *x, const double *w, ptrdiff_t n) {                       \
        lanes a0 = {0}, a1 = {0}, a2 = {0}, a3 = {0};                                                            \
        double rest = 0;                                                                                         \
        ptrdiff_t j = 0;                                                                                         \
        for (; j + 4 * LANES <= n; j += 4 * LANES) {                                                             \
            ADD_PRODUCT_##suffix(a0, x + j, w + j);                                                              \
            ADD_PRODUCT_##suffix(a1, x + j + LANES, w + j + LANES);                                              \
            ADD_PRODUCT_##suffix(a2, x + j + 2 * LANES, w + j + 2 * LANES);                                      \
            ADD_PRODUCT_##suffix(a3, x + j + 3 * LANES, w + j + 3 * LANES);                                      \
        }                                                                                                        \
        for (; j + LANES <= n; j += LANES) ADD_PRODUCT_##suffix(a0, x + j, w + j);                               \
        for (; j < n; j++) rest += x[j] * w[j];                                                                  \
        ADD_LANES(a0, a1);                                                                                       \
        ADD_LANES(a2, a3);                                                                                       \
        ADD_LANES(a0, a2);                                                                                       \
        return rest + FOLD(a0);                                                                                  \
    }                                                                                                            \
    /* v += scale x */                                                                                           \
    CLONES static void mixed_axpy_##suffix(double scale, const real *x, double *restrict v, ptrdiff_t n) {       \
        for (ptrdiff_t j = 0; j < n; j++) v[j] += scale * x[j];                                                  \
    }

DEFINE_MIXED_KERNELS(float, f)
DEFINE_MIXED_KERNELS(double, d)

/* sum_i x_i */
CLONES static double lane_sum(const double *x, ptrdiff_t n) {
    double lane[LANES] = {0}, rest = 0;
    ptrdiff_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++) lane[l] += x[i + l];
    for (; i < n; i++) rest += x[i];
    return rest + fold_lanes(lane);
}

#endif
