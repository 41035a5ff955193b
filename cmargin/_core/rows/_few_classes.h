/* Dense rows times the weights of a few classes, and back, rows read where they lie.
 *
 *     out += scale X V'          V (k, m), out (n, k)
 *     sums += scale R' X         R (n, k), sums (k, m)
 *
 * Why not gemm: it copies the rows into the order it likes best, which for ten classes takes longer than the products
 * (doc/lab-notebook, "Dense rows times a few classes, without gemm"). Vectors run along the columns, so no class waits
 * for others to fill one; four rows and up to three classes stay in registers. What a row gets does not depend on the
 * rows beside it, and rows are added in their order. Rows fill a vector at least; the last columns that fill none are
 * taken with some before them, which then count as zeros.
 */
#ifndef CMARGIN_FEW_CLASSES_H
#define CMARGIN_FEW_CLASSES_H

#include <stddef.h>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(CMARGIN_NO_CLONES)

/* CLONES of _simd.h would not do: what they call has vectors of the baseline processor, even where it is inlined */
#define FEW_CALL __attribute__((target("avx2,fma"), unused)) static
#define FEW_CASE __attribute__((target("avx2,fma"), always_inline)) static inline
#define UNROLL _Pragma("GCC unroll 4")
#define FOLD_f(s) ((((s)[0] + (s)[4]) + ((s)[2] + (s)[6])) + (((s)[1] + (s)[5]) + ((s)[3] + (s)[7])))
#define FOLD_d(s) (((s)[0] + (s)[2]) + ((s)[1] + (s)[3]))

#define DEFINE_FEW_CLASSES(real, suffix, WIDE)                                                                   \
    typedef real few_##suffix __attribute__((vector_size(32)));                                                  \
    typedef real loose_few_##suffix __attribute__((vector_size(32), aligned(sizeof(real)), may_alias));          \
    /* of the last WIDE columns those that are in no vector before */                                            \
    FEW_CASE few_##suffix few_fresh_##suffix(ptrdiff_t m) {                                                      \
        few_##suffix fresh = {0};                                                                                \
        for (ptrdiff_t l = WIDE - m % WIDE; l < WIDE; l++) fresh[l] = 1;                                         \
        return fresh;                                                                                            \
    }                                                                                                            \
    /* sum += columns j .. of X times those of V, which are first taken times `fresh` if that is not NULL */     \
    FEW_CASE void few_multiply_##suffix(const real *X, ptrdiff_t ldx, const real *V, ptrdiff_t ldv,              \
                                        const int n_rows, const int n_classes, const few_##suffix *fresh,        \
                                        few_##suffix sum[4][3]) {                                                \
        few_##suffix v[3];                                                                                       \
        UNROLL for (int c = 0; c < n_classes; c++) {                                                             \
            v[c] = *(const loose_few_##suffix *)(V + c * ldv);                                                   \
            if (fresh) v[c] *= *fresh;                                                                           \
        }                                                                                                        \
        UNROLL for (int i = 0; i < n_rows; i++) {                                                                \
            const few_##suffix x = *(const loose_few_##suffix *)(X + i * ldx);                                   \
            UNROLL for (int c = 0; c < n_classes; c++) sum[i][c] += x * v[c];                                    \
        }                                                                                                        \
    }                                                                                                            \
    FEW_CASE void few_dots_##suffix(ptrdiff_t m, const real *X, ptrdiff_t ldx, const real *V, ptrdiff_t ldv,     \
                                    const few_##suffix *fresh, const int n_rows, const int n_classes,            \
                                    real scale, real *out, ptrdiff_t ldo) {                                      \
        const few_##suffix zero = {0};                                                                           \
        few_##suffix sum[4][3];                                                                                  \
        ptrdiff_t j = 0;                                                                                         \
        UNROLL for (int i = 0; i < n_rows; i++)                                                                  \
            UNROLL for (int c = 0; c < n_classes; c++) sum[i][c] = zero;                                         \
        for (; j + WIDE <= m; j += WIDE)                                                                         \
            few_multiply_##suffix(X + j, ldx, V + j, ldv, n_rows, n_classes, NULL, sum);                         \
        if (j < m)                                                                                               \
            few_multiply_##suffix(X + m - WIDE, ldx, V + m - WIDE, ldv, n_rows, n_classes, fresh, sum);          \
        UNROLL for (int i = 0; i < n_rows; i++)                                                                  \
            UNROLL for (int c = 0; c < n_classes; c++) {                                                         \
                const few_##suffix s = sum[i][c];                                                                \
                out[i * ldo + c] += scale * FOLD_##suffix(s);                                                    \
            }                                                                                                    \
    }                                                                                                            \
    FEW_CASE void few_dots_all_##suffix(ptrdiff_t k, ptrdiff_t m, const real *X, ptrdiff_t ldx, const real *V,   \
                                        ptrdiff_t ldv, const few_##suffix *fresh, const int n_rows, real scale,  \
                                        real *out, ptrdiff_t ldo) {                                              \
        ptrdiff_t c = 0;                                                                                         \
        for (; c + 3 <= k; c += 3)                                                                               \
            few_dots_##suffix(m, X, ldx, V + c * ldv, ldv, fresh, n_rows, 3, scale, out + c, ldo);               \
        if (c + 2 == k) few_dots_##suffix(m, X, ldx, V + c * ldv, ldv, fresh, n_rows, 2, scale, out + c, ldo);   \
        if (c + 1 == k) few_dots_##suffix(m, X, ldx, V + c * ldv, ldv, fresh, n_rows, 1, scale, out + c, ldo);   \
    }                                                                                                            \
    FEW_CALL void few_times_##suffix(ptrdiff_t n, ptrdiff_t k, ptrdiff_t m, real scale, const real *X,           \
                                     ptrdiff_t ldx, const real *V, ptrdiff_t ldv, real *out, ptrdiff_t ldo) {    \
        const few_##suffix fresh = few_fresh_##suffix(m);                                                        \
        ptrdiff_t i = 0;                                                                                         \
        for (; i + 4 <= n; i += 4)                                                                               \
            few_dots_all_##suffix(k, m, X + i * ldx, ldx, V, ldv, &fresh, 4, scale, out + i * ldo, ldo);         \
        for (; i < n; i++)                                                                                       \
            few_dots_all_##suffix(k, m, X + i * ldx, ldx, V, ldv, &fresh, 1, scale, out + i * ldo, ldo);         \
    }                                                                                                            \
    FEW_CASE void few_add_##suffix(const real *X, ptrdiff_t ldx, few_##suffix r[4][2], const int n_rows,         \
                                   const int n_classes, const few_##suffix *fresh, real *sums, ptrdiff_t lds) {  \
        few_##suffix x[4];                                                                                       \
        UNROLL for (int i = 0; i < n_rows; i++) {                                                                \
            x[i] = *(const loose_few_##suffix *)(X + i * ldx);                                                   \
            if (fresh) x[i] *= *fresh;                                                                           \
        }                                                                                                        \
        UNROLL for (int c = 0; c < n_classes; c++) {                                                             \
            few_##suffix s = *(const loose_few_##suffix *)(sums + c * lds);                                      \
            UNROLL for (int i = 0; i < n_rows; i++) s += r[i][c] * x[i];                                         \
            *(loose_few_##suffix *)(sums + c * lds) = s;                                                         \
        }                                                                                                        \
    }                                                                                                            \
    FEW_CASE void few_adds_##suffix(ptrdiff_t m, const real *X, ptrdiff_t ldx, const real *R, ptrdiff_t ldr,     \
                                    const few_##suffix *fresh, const int n_rows, const int n_classes,            \
                                    real scale, real *sums, ptrdiff_t lds) {                                     \
        const few_##suffix zero = {0};                                                                           \
        few_##suffix r[4][2];                                                                                    \
        ptrdiff_t j = 0;                                                                                         \
        UNROLL for (int i = 0; i < n_rows; i++)                                                                  \
            UNROLL for (int c = 0; c < n_classes; c++) r[i][c] = scale * R[i * ldr + c] - zero;                  \
        for (; j + WIDE <= m; j += WIDE)                                                                         \
            few_add_##suffix(X + j, ldx, r, n_rows, n_classes, NULL, sums + j, lds);                             \
        if (j < m) few_add_##suffix(X + m - WIDE, ldx, r, n_rows, n_classes, fresh, sums + m - WIDE, lds);       \
    }                                                                                                            \
    FEW_CASE void few_adds_all_##suffix(ptrdiff_t k, ptrdiff_t m, const real *X, ptrdiff_t ldx, const real *R,   \
                                        ptrdiff_t ldr, const few_##suffix *fresh, const int n_rows, real scale,  \
                                        real *sums, ptrdiff_t lds) {                                             \
        ptrdiff_t c = 0;                                                                                         \
        for (; c + 2 <= k; c += 2)                                                                               \
            few_adds_##suffix(m, X, ldx, R + c, ldr, fresh, n_rows, 2, scale, sums + c * lds, lds);              \
        if (c < k) few_adds_##suffix(m, X, ldx, R + c, ldr, fresh, n_rows, 1, scale, sums + c * lds, lds);       \
    }                                                                                                            \
    FEW_CALL void few_sums_##suffix(ptrdiff_t n, ptrdiff_t k, ptrdiff_t m, real scale, const real *X,            \
                                    ptrdiff_t ldx, const real *R, ptrdiff_t ldr, real *sums, ptrdiff_t lds) {    \
        const few_##suffix fresh = few_fresh_##suffix(m);                                                        \
        ptrdiff_t i = 0;                                                                                         \
        for (; i + 4 <= n; i += 4)                                                                               \
            few_adds_all_##suffix(k, m, X + i * ldx, ldx, R + i * ldr, ldr, &fresh, 4, scale, sums, lds);        \
        for (; i < n; i++)                                                                                       \
            few_adds_all_##suffix(k, m, X + i * ldx, ldx, R + i * ldr, ldr, &fresh, 1, scale, sums, lds);        \
    }

DEFINE_FEW_CLASSES(float, f, 8)
DEFINE_FEW_CLASSES(double, d, 4)

static inline int few_supported(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

#else
#define few_supported() 0
#define few_times_f(...) ((void)0)
#define few_times_d(...) ((void)0)
#define few_sums_f(...) ((void)0)
#define few_sums_d(...) ((void)0)
#endif

#endif
