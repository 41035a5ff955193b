/* C += A' A for an A whose rows are packed and padded, upper triangle, vectorised for the processor it runs on.
 *
 * Why not dsyrk: it is made for hundreds of columns, and for the processors that its library knows. At 55 columns it does
 * 20 to 24 Gflop/s on a Xeon, at 15 6.5; blocks of C that stay in registers while all rows of A go by do 43 and 21, and are
 * level at 200. Where the library has AVX2 alone and the processor AVX-512, they are ahead at any number of columns, in
 * single precision too (doc/lab-notebook). Where there is no such processor or compiler, `packed_syrk_d` says so and
 * dsyrk it is.
 *
 * Rows of A are padded with zeros to a multiple of PACKED_PAD. The order of additions is that of the rows.
 */
#ifndef CMARGIN_PACKED_SYRK_H
#define CMARGIN_PACKED_SYRK_H

#include <stddef.h>
#include <stdint.h>

#define PACKED_PAD 16

#if defined(__x86_64__) && defined(__GNUC__) && !defined(CMARGIN_NO_CLONES)

/* a block of C, `tall` rows by `wide` <= WIDE vectors of LANES columns, in registers; then added to C */
#define DEFINE_PACKED_SYRK(name, real, features, LANES_, TALL, WIDE)                                                 \
    typedef real name##_in_memory                                                                                    \
        __attribute__((vector_size(sizeof(real) * LANES_), aligned(sizeof(real)), may_alias));                       \
    typedef real name##_vector __attribute__((vector_size(sizeof(real) * LANES_)));                                  \
    __attribute__((target(features), always_inline)) static inline void name##_block(                                \
        ptrdiff_t n, ptrdiff_t k, const real *A, ptrdiff_t lda, real *C, ptrdiff_t ldc, ptrdiff_t row,               \
        ptrdiff_t column, const int wide) {                                                                          \
        name##_vector sum[TALL][WIDE];                                                                               \
        const name##_vector zero = {0};                                                                              \
        _Pragma("GCC unroll 8") for (int a = 0; a < TALL; a++)                                                       \
            _Pragma("GCC unroll 4") for (int v = 0; v < wide; v++) sum[a][v] = zero;                                 \
        for (ptrdiff_t i = 0; i < k; i++) {                                                                          \
            const real *x = A + i * lda;                                                                             \
            _Pragma("GCC unroll 8") for (int a = 0; a < TALL; a++) {                                                 \
                const name##_vector factor = x[row + a] - zero;                                                      \
                _Pragma("GCC unroll 4") for (int v = 0; v < wide; v++)                                               \
                    sum[a][v] += factor * *(const name##_in_memory *)(x + column + v * LANES_);                      \
            }                                                                                                        \
        }                                                                                                            \
        _Pragma("GCC unroll 8") for (int a = 0; a < TALL; a++) {                                                     \
            _Pragma("GCC unroll 4") for (int v = 0; v < wide; v++) {                                                 \
                const ptrdiff_t first = column + v * LANES_;                                                         \
                real *out = C + (row + a) * ldc + first;                                                             \
                if (row + a < n && first >= row + a && first + LANES_ <= n)                                          \
                    *(name##_in_memory *)out += sum[a][v];                                                           \
                else if (row + a < n)                                                                                \
                    for (ptrdiff_t l = 0; l < LANES_; l++)                                                           \
                        if (first + l >= row + a && first + l < n) out[l] += sum[a][v][l];                           \
            }                                                                                                        \
        }                                                                                                            \
    }                                                                                                                \
    __attribute__((target(features), unused)) static void name(ptrdiff_t n, ptrdiff_t k, const real *A,              \
                                                               ptrdiff_t lda, real *C, ptrdiff_t ldc) {              \
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

DEFINE_PACKED_SYRK(packed_syrk_512_d, double, "avx512f", 8, 8, 3)       /* 24 of 32 registers are sums */
DEFINE_PACKED_SYRK(packed_syrk_512_f, float, "avx512f", 16, 8, 3)
DEFINE_PACKED_SYRK(packed_syrk_256_d, double, "avx2,fma", 4, 4, 3)      /* 12 of 16 */
DEFINE_PACKED_SYRK(packed_syrk_256_f, float, "avx2,fma", 8, 4, 3)

static inline int packed_syrk_lanes(void) {
    if (__builtin_cpu_supports("avx512f")) return 8;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? 4 : 0;
}

#else
#define packed_syrk_512_d(...) ((void)0)
#define packed_syrk_512_f(...) ((void)0)
#define packed_syrk_256_d(...) ((void)0)
#define packed_syrk_256_f(...) ((void)0)
static inline int packed_syrk_lanes(void) { return 0; }
#endif

/* width up to which they are quicker than BLAS by registers of so many doubles; `trails`: BLAS has shorter ones than 8 */
static inline ptrdiff_t packed_syrk_widest(int lanes, int trails, int single) {
    if (lanes == 8) return trails ? PTRDIFF_MAX : 128;
    return lanes == 4 ? single ? 256 : 96 : 0;
}

/* width from which a sum over so many rows is to be in single precision, which wider registers pad more: where it is 1.4
 * times as quick at least; where it is no matter of time, doubles (doc/lab-notebook, "Narrow curvature in single
 * precision") */
static inline ptrdiff_t packed_syrk_single_from(int lanes, ptrdiff_t rows) {
    return lanes > 0 && rows >= 10000 ? lanes == 4 ? 24 : 31 : 129;
}

/* C (n, n) += A' A for A (k, n), by registers of so many doubles; 0: not done, as there are none */
static inline int packed_syrk_d(int lanes, ptrdiff_t n, ptrdiff_t k, const double *A, ptrdiff_t lda, double *C,
                                ptrdiff_t ldc) {
    if (lanes == 8)
        packed_syrk_512_d(n, k, A, lda, C, ldc);
    else if (lanes == 4)
        packed_syrk_256_d(n, k, A, lda, C, ldc);
    return lanes > 0;
}

static inline int packed_syrk_f(int lanes, ptrdiff_t n, ptrdiff_t k, const float *A, ptrdiff_t lda, float *C,
                                ptrdiff_t ldc) {
    if (lanes == 8)
        packed_syrk_512_f(n, k, A, lda, C, ldc);
    else if (lanes == 4)
        packed_syrk_256_f(n, k, A, lda, C, ldc);
    return lanes > 0;
}

#endif
