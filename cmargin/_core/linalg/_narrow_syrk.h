/* C += A' A for an A of few columns, upper triangle, vectorised for the processor it runs on.
 *
 * Why not dsyrk: it is made for hundreds of columns. At 55 it does 20 to 24 Gflop/s here, at 15 6.5; blocks of C that
 * stay in registers while all rows of A go by do 43 and 21, and are level at 200 (doc/decisions.md). Where there is no
 * such processor or compiler, `narrow_syrk` says so and dsyrk it is.
 *
 * Rows of A are padded with zeros to a multiple of NARROW_PAD. The order of additions is that of the rows.
 */
#ifndef CMARGIN_NARROW_SYRK_H
#define CMARGIN_NARROW_SYRK_H

#include <stddef.h>

#define NARROW_PAD 8

#if defined(__x86_64__) && defined(__GNUC__) && !defined(CMARGIN_NO_CLONES)

/* a block of C, `tall` rows by `wide` <= WIDE vectors of LANES columns, in registers; then added to C */
#define DEFINE_NARROW_SYRK(name, features, LANES_, TALL, WIDE)                                                       \
    typedef double name##_in_memory __attribute__((vector_size(8 * LANES_), aligned(8), may_alias));                 \
    typedef double name##_vector __attribute__((vector_size(8 * LANES_)));                                           \
    __attribute__((target(features), always_inline)) static inline void name##_block(                                \
        ptrdiff_t n, ptrdiff_t k, const double *A, ptrdiff_t lda, double *C, ptrdiff_t ldc, ptrdiff_t row,           \
        ptrdiff_t column, const int wide) {                                                                          \
        name##_vector sum[TALL][WIDE];                                                                               \
        const name##_vector zero = {0};                                                                              \
        _Pragma("GCC unroll 8") for (int a = 0; a < TALL; a++)                                                       \
            _Pragma("GCC unroll 4") for (int v = 0; v < wide; v++) sum[a][v] = zero;                                 \
        for (ptrdiff_t i = 0; i < k; i++) {                                                                          \
            const double *x = A + i * lda;                                                                           \
            _Pragma("GCC unroll 8") for (int a = 0; a < TALL; a++) {                                                 \
                const name##_vector factor = x[row + a] - zero;                                                      \
                _Pragma("GCC unroll 4") for (int v = 0; v < wide; v++)                                               \
                    sum[a][v] += factor * *(const name##_in_memory *)(x + column + v * LANES_);                      \
            }                                                                                                        \
        }                                                                                                            \
        _Pragma("GCC unroll 8") for (int a = 0; a < TALL; a++) {                                                     \
            _Pragma("GCC unroll 4") for (int v = 0; v < wide; v++) {                                                 \
                const ptrdiff_t first = column + v * LANES_;                                                         \
                double *out = C + (row + a) * ldc + first;                                                           \
                if (row + a < n && first >= row + a && first + LANES_ <= n)                                          \
                    *(name##_in_memory *)out += sum[a][v];                                                           \
                else if (row + a < n)                                                                                \
                    for (ptrdiff_t l = 0; l < LANES_; l++)                                                           \
                        if (first + l >= row + a && first + l < n) out[l] += sum[a][v][l];                           \
            }                                                                                                        \
        }                                                                                                            \
    }                                                                                                                \
    __attribute__((target(features), unused)) static void name(ptrdiff_t n, ptrdiff_t k, const double *A,            \
                                                               ptrdiff_t lda, double *C, ptrdiff_t ldc) {            \
        for (ptrdiff_t row = 0; row < n; row += TALL) {                                                              \
            ptrdiff_t column = row / LANES_ * LANES_;                                                                \
            for (; column + 2 * LANES_ < n; column += 3 * LANES_)                                                    \
                name##_block(n, k, A, lda, C, ldc, row, column, 3);                                                  \
            if (column + LANES_ < n)                                                                                 \
                name##_block(n, k, A, lda, C, ldc, row, column, 2);                                                  \
            else if (column < n)                                                                                     \
                name##_block(n, k, A, lda, C, ldc, row, column, 1);                                                  \
        }                                                                                                            \
    }

DEFINE_NARROW_SYRK(narrow_syrk_512, "avx512f", 8, 8, 3)      /* 24 of 32 registers are sums */
DEFINE_NARROW_SYRK(narrow_syrk_256, "avx2,fma", 4, 4, 3)     /* 12 of 16 */

/* widths up to which they are quicker than dsyrk */
#define NARROW_512 128
#define NARROW_256 64

static inline int narrow_syrk_lanes(void) {
    if (__builtin_cpu_supports("avx512f")) return 8;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? 4 : 0;
}

#else
#define NARROW_512 0
#define NARROW_256 0
#define narrow_syrk_512(...) ((void)0)
#define narrow_syrk_256(...) ((void)0)
static inline int narrow_syrk_lanes(void) { return 0; }
#endif

/* C (n, n) += A' A for A (k, n), by registers of so many lanes; 0: not done, as there are none or n is too large */
static inline int narrow_syrk(int lanes, ptrdiff_t n, ptrdiff_t k, const double *A, ptrdiff_t lda, double *C,
                              ptrdiff_t ldc) {
    if (lanes == 8 && n <= NARROW_512) {
        narrow_syrk_512(n, k, A, lda, C, ldc);
        return 1;
    }
    if (lanes == 4 && n <= NARROW_256) {
        narrow_syrk_256(n, k, A, lda, C, ldc);
        return 1;
    }
    return 0;
}

#endif
