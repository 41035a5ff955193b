/* Loops over a tile of rows, vectorised for the processor they run on (CLONES of _simd.h): products with the rows,
 * sums of rows, scaled copies.
 *
 * Why not BLAS: the rows of a tile may be float32, strided or a subset, and BLAS wants one float64 block. Reading them
 * where they lie costs less than making that block (doc/lab-notebook, "A pass reads rows where they lie"). The
 * curvature block, where the arithmetic is, goes through dsyrk.
 *
 * Orders of addition are written down: fixed lanes folded in order, groups of four rows. Row i of a tile starts at
 * data + (rows ? rows[i] : i) * stride.
 */
#ifndef CMARGIN_TILES_H
#define CMARGIN_TILES_H

#include <stddef.h>

#include "_simd.h"
#include "_storage.h"

/* rows asked for before they are needed: 581,012 x 54 in 21.7 ms on one thread, 27.7 without; short ones by so many bytes,
 * and so many of a list (doc/lab-notebook, "Short rows, and rows of a list, are asked for in time") */
#define AHEAD 8
#define SOON 8192
#define LISTED 16
/* while four rows are summed, those that lie `ahead` numbers on are asked for, a line at a time; 0: none
 * (doc/lab-notebook, "The next tile is asked for while this one is summed") */
#define ASK_AHEAD(real, at)                                                                                      \
    if (ahead && (at) % (64 / (ptrdiff_t)sizeof(real)) == 0) {                                                   \
        PREFETCH_FAR(x0 + ahead + (at));                                                                         \
        PREFETCH_FAR(x1 + ahead + (at));                                                                         \
        PREFETCH_FAR(x2 + ahead + (at));                                                                         \
        PREFETCH_FAR(x3 + ahead + (at));                                                                         \
    }
/* ADD for every four columns from j on of four rows, which are y0 .. y3 there; the last columns, and all of a compiler
 * without vectors, are left to the loop that follows (doc/lab-notebook, "Vectors of four numbers") */
#if defined(__GNUC__)
#define BY_QUADS(real, suffix, ADD)                                                                              \
    for (; j + QUADS <= m; j += QUADS) {                                                                         \
        quad y0 = QUAD_##suffix(x0 + j), y1 = QUAD_##suffix(x1 + j);                                             \
        quad y2 = QUAD_##suffix(x2 + j), y3 = QUAD_##suffix(x3 + j);                                             \
        ASK_AHEAD(real, j)                                                                                       \
        ADD                                                                                                      \
    }
#define ADD_FOUR(sum, c)                                                                                         \
    *(loose_quad *)((sum) + j) = (((QUAD_d((sum) + j) + c##0 * y0) + c##1 * y1) + c##2 * y2) + c##3 * y3;
/* c = 0 makes nothing of a square that overflows */
#define ADD_SQUARES(sum, c)                                                                                      \
    *(loose_quad *)((sum) + j) =                                                                                 \
        (((QUAD_d((sum) + j) + c##0 * y0 * y0) + c##1 * y1 * y1) + c##2 * y2 * y2) + c##3 * y3 * y3;
#else
#define BY_QUADS(real, suffix, ADD)
#endif
#define ROW(k) (data + (rows ? rows[i + (k)] : i + (k)) * stride)

#define DEFINE_TILE_KERNELS(real, suffix)                                                                        \
    /* out_i = constant + <x_i, w> */                                                                            \
    CLONES static void tile_products_##suffix(const real *data, ptrdiff_t stride, const ptrdiff_t *rows,         \
                                              ptrdiff_t n, ptrdiff_t m, const double *w, double constant,        \
                                              double *out) {                                                     \
        const ptrdiff_t soon = stride >= 0 && AHEAD * stride * (ptrdiff_t)sizeof(real) < SOON                    \
                                   ? SOON / (ptrdiff_t)sizeof(real) : AHEAD * stride;                            \
        ptrdiff_t i = 0, j;                                                                                      \
        for (; i + 4 <= n; i += 4) {                                                                             \
            const real *x0 = ROW(0), *x1 = ROW(1), *x2 = ROW(2), *x3 = ROW(3);                                   \
            const real *p0 = x0 + soon, *p1 = x1 + soon, *p2 = x2 + soon, *p3 = x3 + soon;                       \
            lanes a0 = {0}, a1 = {0}, a2 = {0}, a3 = {0};                                                        \
            double s0 = constant, s1 = constant, s2 = constant, s3 = constant;                                   \
            if (rows) {                                                                                          \
                const ptrdiff_t k = i + LISTED + 4 <= n ? LISTED : 0;                                            \
                p0 = ROW(k), p1 = ROW(k + 1), p2 = ROW(k + 2), p3 = ROW(k + 3);                                  \
            }                                                                                                    \
            for (j = 0; j + LANES <= m; j += LANES) {                                                            \
                PREFETCH(p0 + j);                                                                                \
                PREFETCH(p1 + j);                                                                                \
                PREFETCH(p2 + j);                                                                                \
                PREFETCH(p3 + j);                                                                                \
                ADD_PRODUCT_##suffix(a0, x0 + j, w + j);                                                         \
                ADD_PRODUCT_##suffix(a1, x1 + j, w + j);                                                         \
                ADD_PRODUCT_##suffix(a2, x2 + j, w + j);                                                         \
                ADD_PRODUCT_##suffix(a3, x3 + j, w + j);                                                         \
            }                                                                                                    \
            for (; j < m; j++) {                                                                                 \
                s0 += x0[j] * w[j];                                                                              \
                s1 += x1[j] * w[j];                                                                              \
                s2 += x2[j] * w[j];                                                                              \
                s3 += x3[j] * w[j];                                                                              \
            }                                                                                                    \
            out[i] = s0 + FOLD(a0);                                                                              \
            out[i + 1] = s1 + FOLD(a1);                                                                          \
            out[i + 2] = s2 + FOLD(a2);                                                                          \
            out[i + 3] = s3 + FOLD(a3);                                                                          \
        }                                                                                                        \
        for (; i < n; i++) {                                                                                     \
            const real *x0 = ROW(0);                                                                             \
            lanes a0 = {0};                                                                                      \
            double s0 = constant;                                                                                \
            for (j = 0; j + LANES <= m; j += LANES) ADD_PRODUCT_##suffix(a0, x0 + j, w + j);                     \
            for (; j < m; j++) s0 += x0[j] * w[j];                                                               \
            out[i] = s0 + FOLD(a0);                                                                              \
        }                                                                                                        \
    }                                                                                                            \
    /* sum += sum_i c_i x_i; groups of rows with c = 0 throughout are not read */                                \
    CLONES static void tile_add_rows_##suffix(const real *data, ptrdiff_t stride, const ptrdiff_t *rows,         \
                                              ptrdiff_t n, ptrdiff_t m, ptrdiff_t ahead, const double *c,        \
                                              double *restrict sum) {                                            \
        ptrdiff_t i = 0, j;                                                                                      \
        for (; i + 4 <= n; i += 4) {                                                                             \
            const real *x0 = ROW(0), *x1 = ROW(1), *x2 = ROW(2), *x3 = ROW(3);                                   \
            double c0 = c[i], c1 = c[i + 1], c2 = c[i + 2], c3 = c[i + 3];                                       \
            if (c0 == 0 && c1 == 0 && c2 == 0 && c3 == 0) {                                                      \
                for (j = 0; j < m; j += 64 / (ptrdiff_t)sizeof(real)) ASK_AHEAD(real, j)                         \
                continue;                                                                                        \
            }                                                                                                    \
            j = 0;                                                                                               \
            BY_QUADS(real, suffix, ADD_FOUR(sum, c))                                                             \
            for (; j < m; j++) sum[j] += (c0 * x0[j] + c1 * x1[j]) + (c2 * x2[j] + c3 * x3[j]);                  \
        }                                                                                                        \
        for (; i < n; i++) {                                                                                     \
            const real *x0 = ROW(0);                                                                             \
            double c0 = c[i];                                                                                    \
            for (j = 0; j < m; j++) sum[j] += c0 * x0[j];                                                        \
        }                                                                                                        \
    }                                                                                                            \
    /* three such sums in one reading */                                                                         \
    CLONES static void tile_add_rows_3_##suffix(const real *data, ptrdiff_t stride, const ptrdiff_t *rows,       \
                                                ptrdiff_t n, ptrdiff_t m, ptrdiff_t ahead, const double *a,      \
                                                const double *b, const double *c, double *restrict sum_a,        \
                                                double *restrict sum_b, double *restrict sum_c) {                \
        ptrdiff_t i = 0, j;                                                                                      \
        for (; i + 4 <= n; i += 4) {                                                                             \
            const real *x0 = ROW(0), *x1 = ROW(1), *x2 = ROW(2), *x3 = ROW(3);                                   \
            double a0 = a[i], a1 = a[i + 1], a2 = a[i + 2], a3 = a[i + 3];                                       \
            double b0 = b[i], b1 = b[i + 1], b2 = b[i + 2], b3 = b[i + 3];                                       \
            double c0 = c[i], c1 = c[i + 1], c2 = c[i + 2], c3 = c[i + 3];                                       \
            j = 0;                                                                                               \
            BY_QUADS(real, suffix, ADD_FOUR(sum_a, a) ADD_FOUR(sum_b, b) ADD_FOUR(sum_c, c))                     \
            for (; j < m; j++) {                                                                                 \
                double y0 = x0[j], y1 = x1[j], y2 = x2[j], y3 = x3[j];                                           \
                sum_a[j] += (a0 * y0 + a1 * y1) + (a2 * y2 + a3 * y3);                                           \
                sum_b[j] += (b0 * y0 + b1 * y1) + (b2 * y2 + b3 * y3);                                           \
                sum_c[j] += (c0 * y0 + c1 * y1) + (c2 * y2 + c3 * y3);                                           \
            }                                                                                                    \
        }                                                                                                        \
        for (; i < n; i++) {                                                                                     \
            const real *x0 = ROW(0);                                                                             \
            for (j = 0; j < m; j++) {                                                                            \
                sum_a[j] += a[i] * x0[j];                                                                        \
                sum_b[j] += b[i] * x0[j];                                                                        \
                sum_c[j] += c[i] * x0[j];                                                                        \
            }                                                                                                    \
        }                                                                                                        \
    }                                                                                                            \
    /* sum_j += sum_i c_i x_ij^2; groups of rows with c = 0 throughout are not read */                           \
    CLONES static void tile_add_squares_##suffix(const real *data, ptrdiff_t stride, const ptrdiff_t *rows,      \
                                                 ptrdiff_t n, ptrdiff_t m, const double *c,                      \
                                                 double *restrict sum) {                                         \
        const ptrdiff_t ahead = 0;                                                                               \
        ptrdiff_t i = 0, j;                                                                                      \
        for (; i + 4 <= n; i += 4) {                                                                             \
            const real *x0 = ROW(0), *x1 = ROW(1), *x2 = ROW(2), *x3 = ROW(3);                                   \
            double c0 = c[i], c1 = c[i + 1], c2 = c[i + 2], c3 = c[i + 3];                                       \
            if (c0 == 0 && c1 == 0 && c2 == 0 && c3 == 0) continue;                                              \
            j = 0;                                                                                               \
            BY_QUADS(real, suffix, ADD_SQUARES(sum, c))                                                          \
            for (; j < m; j++) {                                                                                 \
                double y0 = x0[j], y1 = x1[j], y2 = x2[j], y3 = x3[j];                                           \
                sum[j] += (c0 * y0 * y0 + c1 * y1 * y1) + (c2 * y2 * y2 + c3 * y3 * y3);                         \
            }                                                                                                    \
        }                                                                                                        \
        for (; i < n; i++) {                                                                                     \
            const real *x0 = ROW(0);                                                                             \
            if (c[i] != 0)                                                                                       \
                for (j = 0; j < m; j++) sum[j] += c[i] * (double)x0[j] * (double)x0[j];                          \
        }                                                                                                        \
    }                                                                                                            \
    /* out_i = sum_j w_j x_ij^2 */                                                                               \
    CLONES static void tile_row_squares_##suffix(const real *data, ptrdiff_t stride, const ptrdiff_t *rows,      \
                                                 ptrdiff_t n, ptrdiff_t m, const double *w, double *out) {       \
        for (ptrdiff_t i = 0, j; i < n; i++) {                                                                   \
            const real *x0 = ROW(0);                                                                             \
            double a0[LANES] = {0}, s0 = 0;                                                                      \
            for (j = 0; j + LANES <= m; j += LANES)                                                              \
                for (int l = 0; l < LANES; l++) a0[l] += w[j + l] * (double)x0[j + l] * (double)x0[j + l];       \
            for (; j < m; j++) s0 += w[j] * (double)x0[j] * (double)x0[j];                                       \
            out[i] = s0 + fold_lanes(a0);                                                                        \
        }                                                                                                        \
    }                                                                                                            \
    /* the sums of weight x and of weight x^2, and sum_j += scale weight_j x_j */                                 \
    CLONES static void row_moments_##suffix(const real *x, const double *weight, ptrdiff_t m, double *first,     \
                                            double *second) {                                                    \
        double a0[LANES] = {0}, a1[LANES] = {0}, s0 = 0, s1 = 0;                                                 \
        ptrdiff_t j = 0;                                                                                         \
        for (; j + LANES <= m; j += LANES)                                                                       \
            for (int l = 0; l < LANES; l++) {                                                                    \
                double part = weight[j + l] * x[j + l];                                                          \
                a0[l] += part;                                                                                   \
                a1[l] += part * x[j + l];                                                                        \
            }                                                                                                    \
        for (; j < m; j++) {                                                                                     \
            s0 += weight[j] * x[j];                                                                              \
            s1 += weight[j] * x[j] * x[j];                                                                       \
        }                                                                                                        \
        *first = s0 + fold_lanes(a0);                                                                            \
        *second = s1 + fold_lanes(a1);                                                                           \
    }                                                                                                            \
    CLONES static void row_axpy_weighted_##suffix(const real *x, double scale, const double *weight, ptrdiff_t m, \
                                                  double *restrict sum) {                                        \
        for (ptrdiff_t j = 0; j < m; j++) sum[j] += scale * weight[j] * x[j];                                    \
    }                                                                                                            \
    /* out (n, m) from a matrix whose rows do not lie side by side: row i of column j is number                  \
     * i * stride + j * column_stride of data. Columns that do are read by eights, the last ones twice; the lines that\
     * are wanted next are asked for */                                                                          \
    CLONES static void tile_by_rows_##suffix(const real *data, ptrdiff_t stride, ptrdiff_t column_stride,        \
                                             ptrdiff_t n, ptrdiff_t m, double *restrict out) {                   \
        const int by_eights = stride == 1 && m >= LANES;                                                         \
        ptrdiff_t i, j, k, l;                                                                                    \
        for (j = 0; by_eights && j < m; j += LANES) {                                                            \
            const ptrdiff_t at = j + LANES <= m ? j : m - LANES;                                                 \
            const real *x = data + at * column_stride;                                                           \
            for (i = 0; i + 4 <= n; i += 4) {                                                                    \
                for (l = 0; l < LANES && i % (64 / (ptrdiff_t)sizeof(real)) == 0; l++)                           \
                    PREFETCH_FAR(x + l * column_stride + i + n);                                                 \
                for (k = 0; k < 4; k++)                                                                          \
                    for (l = 0; l < LANES; l++) out[(i + k) * m + at + l] = x[l * column_stride + i + k];        \
            }                                                                                                    \
            for (; i < n; i++)                                                                                   \
                for (l = 0; l < LANES; l++) out[i * m + at + l] = x[l * column_stride + i];                      \
        }                                                                                                        \
        for (; j < m; j++) {                                                                                     \
            const real *x = data + j * column_stride, *soon = j + 2 < m ? x + 2 * column_stride : x;             \
            for (i = 0; i < n; i++) {                                                                            \
                PREFETCH(soon + i * stride);                                                                     \
                out[i * m + j] = x[i * stride];                                                                  \
            }                                                                                                    \
        }                                                                                                        \
    }                                                                                                            \
    /* out_j = scale x_j */                                                                                      \
    CLONES static void row_scaled_##suffix(const real *x, double scale, ptrdiff_t m, double *restrict out) {     \
        for (ptrdiff_t j = 0; j < m; j++) out[j] = scale * x[j];                                                 \
    }                                                                                                            \
    CLONES static void row_scaled_to_single_##suffix(const real *x, double scale, ptrdiff_t m,                   \
                                                     float *restrict out) {                                      \
        for (ptrdiff_t j = 0; j < m; j++) out[j] = (float)(scale * x[j]);                                        \
    }

DEFINE_TILE_KERNELS(float, f)
DEFINE_TILE_KERNELS(double, d)

/* the same of rows stored in any way, from an untyped `data` or `x` on */
#define tile_products_of(storage, ...) BY_STORAGE(storage, tile_products, __VA_ARGS__)
#define tile_add_rows_of(storage, ...) BY_STORAGE(storage, tile_add_rows, __VA_ARGS__)
#define tile_add_rows_3_of(storage, ...) BY_STORAGE(storage, tile_add_rows_3, __VA_ARGS__)
#define tile_add_squares_of(storage, ...) BY_STORAGE(storage, tile_add_squares, __VA_ARGS__)
#define tile_row_squares_of(storage, ...) BY_STORAGE(storage, tile_row_squares, __VA_ARGS__)
#define tile_by_rows_of(storage, ...) BY_STORAGE(storage, tile_by_rows, __VA_ARGS__)
#define row_scaled_of(storage, ...) BY_STORAGE(storage, row_scaled, __VA_ARGS__)
#define row_scaled_to_single_of(storage, ...) BY_STORAGE(storage, row_scaled_to_single, __VA_ARGS__)
#define row_moments_of(storage, ...) BY_STORAGE(storage, row_moments, __VA_ARGS__)
#define row_axpy_weighted_of(storage, ...) BY_STORAGE(storage, row_axpy_weighted, __VA_ARGS__)
#define row_dot_of(storage, ...) BY_STORAGE(storage, mixed_dot, __VA_ARGS__)
#define row_axpy_of(storage, ...) BY_STORAGE(storage, mixed_axpy, __VA_ARGS__)
#define row_prefetch_of(storage, ...) BY_STORAGE(storage, row_prefetch, __VA_ARGS__)

#undef ROW
#undef ASK_AHEAD

#endif
