/* Products with the entries of one CSR row, and sums of them, in float64 whatever the row: one place for all passes.
 *
 * Steps of stochastic methods, whose weights have the type of the rows, go through `sparse_dot` of _rows.
 */
#ifndef CMARGIN_CSR_H
#define CMARGIN_CSR_H

#include <stdint.h>

#include "_storage.h"

/* the entries of a row; columns have 32 bits, or the other pointer is used */
typedef struct {
    storage_t storage;
    const void *values;
    const int32_t *columns;
    const int64_t *columns_64;
    ptrdiff_t n;
} csr_row;

static inline csr_row csr_row_of(storage_t storage, const void *values, const int32_t *columns,
                                 const int64_t *columns_64, const int64_t *starts, ptrdiff_t row) {
    const int64_t start = starts[row];
    csr_row x = {storage, (const char *)values + start * storage_width(storage), columns ? columns + start : NULL,
                 columns_64 ? columns_64 + start : NULL, starts[row + 1] - start};
    return x;
}

#define DEFINE_CSR_KERNELS(real, index, suffix)                                                                  \
    /* <x, w>; four sums hide the latency of the additions */                                                    \
    static inline double dot_##suffix(const real *values, const index *columns, ptrdiff_t n, const double *w) {  \
        double a = 0, b = 0, c = 0, d = 0;                                                                       \
        ptrdiff_t k = 0;                                                                                         \
        for (; k + 4 <= n; k += 4) {                                                                             \
            a += values[k] * w[columns[k]];                                                                      \
            b += values[k + 1] * w[columns[k + 1]];                                                              \
            c += values[k + 2] * w[columns[k + 2]];                                                              \
            d += values[k + 3] * w[columns[k + 3]];                                                              \
        }                                                                                                        \
        for (; k < n; k++) a += values[k] * w[columns[k]];                                                       \
        return (a + b) + (c + d);                                                                                \
    }                                                                                                            \
    /* w += scale x */                                                                                           \
    static inline void axpy_##suffix(const real *values, const index *columns, ptrdiff_t n, double scale,        \
                                     double *w) {                                                                \
        for (ptrdiff_t k = 0; k < n; k++) w[columns[k]] += scale * values[k];                                    \
    }                                                                                                            \
    /* w += scale weight o x */                                                                                  \
    static inline void axpy_weighted_##suffix(const real *values, const index *columns, ptrdiff_t n,             \
                                              double scale, const double *weight, double *w) {                   \
        for (ptrdiff_t k = 0; k < n; k++) w[columns[k]] += scale * values[k] * weight[columns[k]];               \
    }                                                                                                            \
    /* <weight, x> and <weight, x^2> */                                                                          \
    static inline void moments_##suffix(const real *values, const index *columns, ptrdiff_t n,                   \
                                        const double *weight, double *first, double *second) {                   \
        double sum = 0, squares = 0;                                                                             \
        for (ptrdiff_t k = 0; k < n; k++) {                                                                      \
            const double part = weight[columns[k]] * values[k];                                                  \
            sum += part;                                                                                         \
            squares += part * values[k];                                                                         \
        }                                                                                                        \
        *first = sum, *second = squares;                                                                         \
    }

DEFINE_CSR_KERNELS(float, int32_t, 32_f)
DEFINE_CSR_KERNELS(double, int32_t, 32_d)
DEFINE_CSR_KERNELS(float, int64_t, 64_f)
DEFINE_CSR_KERNELS(double, int64_t, 64_d)

#define BY_ENTRIES(x, kernel, ...)                                                                               \
    ((x).columns ? BY_STORAGE((x).storage, kernel##_32, (x).values, (x).columns, (x).n, __VA_ARGS__)             \
                 : BY_STORAGE((x).storage, kernel##_64, (x).values, (x).columns_64, (x).n, __VA_ARGS__))

static inline double csr_dot(csr_row x, const double *w) { return BY_ENTRIES(x, dot, w); }
static inline void csr_axpy(csr_row x, double scale, double *w) { BY_ENTRIES(x, axpy, scale, w); }
static inline void csr_axpy_weighted(csr_row x, double scale, const double *weight, double *w) {
    BY_ENTRIES(x, axpy_weighted, scale, weight, w);
}
static inline void csr_moments(csr_row x, const double *weight, double *first, double *second) {
    BY_ENTRIES(x, moments, weight, first, second);
}

#endif
