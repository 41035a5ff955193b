/* Products with the entries of CSR rows, and sums of them, in float64 whatever the rows: one place for all passes.
 *
 * Kernels are defined once for all types of values and of column indices. Rows of which every value is one have no
 * values to be read, and their bits are those of stored ones, as a product with 1.0 is none.
 *
 * Steps of stochastic methods, whose weights have the type of the rows, go through `sparse_dot` of _rows.
 */
#ifndef CMARGIN_CSR_H
#define CMARGIN_CSR_H

#include <stdint.h>

#include "_simd.h"
#include "_storage.h"

/* entries of rows, as they are stored; ones: the values are not looked at */
typedef struct {
    storage_t storage;
    index_t index;
    int ones;
    const void *values;
    const void *columns;
} csr_rows;

/* a row: the same from its first entry on */
typedef struct {
    csr_rows of;
    ptrdiff_t n;
} csr_row;

static inline csr_row csr_row_of(csr_rows X, const int64_t *starts, ptrdiff_t row) {
    const int64_t start = starts[row];
    csr_row x = {X, starts[row + 1] - start};
    x.of.values = (const char *)X.values + start * storage_width(X.storage);
    x.of.columns = (const char *)X.columns + start * X.index;
    return x;
}

#define STORED(k) values[k]
#define ONE(k) 1.0

/* VALUE: of entry k of a row. Of several rows, row i begins at starts[r], r = rows ? rows[i] : i */
#define DEFINE_CSR_KERNELS(real, index, VALUE, suffix)                                                           \
    /* <x, w>; four sums hide the latency of the additions */                                                    \
    static inline double dot_##suffix(const real *values, const index *columns, ptrdiff_t n, const double *w) {  \
        double a = 0, b = 0, c = 0, d = 0;                                                                       \
        ptrdiff_t k = 0;                                                                                         \
        (void)values;                                                                                            \
        for (; k + 4 <= n; k += 4) {                                                                             \
            a += VALUE(k) * w[columns[k]];                                                                       \
            b += VALUE(k + 1) * w[columns[k + 1]];                                                               \
            c += VALUE(k + 2) * w[columns[k + 2]];                                                               \
            d += VALUE(k + 3) * w[columns[k + 3]];                                                               \
        }                                                                                                        \
        for (; k < n; k++) a += VALUE(k) * w[columns[k]];                                                        \
        return (a + b) + (c + d);                                                                                \
    }                                                                                                            \
    /* w += scale x */                                                                                           \
    static inline void axpy_##suffix(const real *values, const index *columns, ptrdiff_t n, double scale,        \
                                     double *w) {                                                                \
        (void)values;                                                                                            \
        for (ptrdiff_t k = 0; k < n; k++) w[columns[k]] += scale * VALUE(k);                                     \
    }                                                                                                            \
    /* w += scale weight o x */                                                                                  \
    static inline void axpy_weighted_##suffix(const real *values, const index *columns, ptrdiff_t n,             \
                                              double scale, const double *weight, double *w) {                   \
        (void)values;                                                                                            \
        for (ptrdiff_t k = 0; k < n; k++) w[columns[k]] += scale * VALUE(k) * weight[columns[k]];                \
    }                                                                                                            \
    /* w += scale x^2 */                                                                                         \
    static inline void axpy_squares_##suffix(const real *values, const index *columns, ptrdiff_t n, double scale,\
                                             double *w) {                                                        \
        (void)values;                                                                                            \
        for (ptrdiff_t k = 0; k < n; k++) w[columns[k]] += scale * VALUE(k) * VALUE(k);                          \
    }                                                                                                            \
    /* <weight, x> and <weight, x^2> */                                                                          \
    static inline void moments_##suffix(const real *values, const index *columns, ptrdiff_t n,                   \
                                        const double *weight, double *first, double *second) {                   \
        double sum = 0, squares = 0;                                                                             \
        (void)values;                                                                                            \
        for (ptrdiff_t k = 0; k < n; k++) {                                                                      \
            const double part = weight[columns[k]] * VALUE(k);                                                   \
            sum += part;                                                                                         \
            squares += part * VALUE(k);                                                                          \
        }                                                                                                        \
        *first = sum, *second = squares;                                                                         \
    }                                                                                                            \
    /* root times the entries in columns that have a place, at most `room`, and their places; how many. in_order:\
     * whether places ascend, none twice */                                                                      \
    static inline ptrdiff_t placed_##suffix(const real *values, const index *columns, ptrdiff_t n, double root,  \
                                            const ptrdiff_t *place, ptrdiff_t room, double *held,                \
                                            ptrdiff_t *places, int *in_order) {                                  \
        ptrdiff_t count = 0, last = -1;                                                                          \
        int ascend = 1;                                                                                          \
        (void)values;                                                                                            \
        for (ptrdiff_t k = 0; k < n; k++) {                                                                      \
            const ptrdiff_t at = place[columns[k]];                                                              \
            if (at < 0 || count == room) continue;                                                               \
            ascend &= at > last;                                                                                 \
            held[count] = root * VALUE(k), places[count] = last = at;                                            \
            count++;                                                                                             \
        }                                                                                                        \
        *in_order = ascend;                                                                                      \
        return count;                                                                                            \
    }                                                                                                            \
    /* out_i = constant + <x_i, w> */                                                                            \
    static inline void products_##suffix(const real *values, const index *columns, const int64_t *starts,        \
                                         const ptrdiff_t *rows, ptrdiff_t n, const double *w, double constant,   \
                                         double *out) {                                                          \
        for (ptrdiff_t i = 0; i < n; i++) {                                                                      \
            const ptrdiff_t r = rows ? rows[i] : i;                                                              \
            const int64_t at = starts[r];                                                                        \
            out[i] = constant + dot_##suffix(values + at, columns + at, starts[r + 1] - at, w);                  \
        }                                                                                                        \
    }                                                                                                            \
    /* sum += sum_i c_i x_i; rows with c = 0 are not read */                                                     \
    static inline void sums_##suffix(const real *values, const index *columns, const int64_t *starts,            \
                                     const ptrdiff_t *rows, ptrdiff_t n, const double *c, double *sum) {         \
        for (ptrdiff_t i = 0; i < n; i++) {                                                                      \
            const ptrdiff_t r = rows ? rows[i] : i;                                                              \
            const int64_t at = starts[r];                                                                        \
            if (c[i] != 0) axpy_##suffix(values + at, columns + at, starts[r + 1] - at, c[i], sum);              \
        }                                                                                                        \
    }                                                                                                            \
    /* the same for three coefficients, of which a row has the first and one of the others as a rule: these two in\
     * one reading of the row */                                                                                 \
    static inline void sums_3_##suffix(const real *all, const index *columns, const int64_t *starts,             \
                                       const ptrdiff_t *rows, ptrdiff_t n, const double *a, const double *b,     \
                                       const double *c, double *sum_a, double *sum_b, double *sum_c) {           \
        for (ptrdiff_t i = 0; i < n; i++) {                                                                      \
            const ptrdiff_t r = rows ? rows[i] : i;                                                              \
            const int64_t at = starts[r];                                                                        \
            const ptrdiff_t length = starts[r + 1] - at;                                                         \
            const real *values = all + at;                                                                       \
            const index *x = columns + at;                                                                       \
            const double first = a[i], second = b[i] != 0 ? b[i] : c[i];                                         \
            double *other = b[i] != 0 ? sum_b : sum_c;                                                           \
            (void)values;                                                                                        \
            if (first != 0 && second != 0)                                                                       \
                for (ptrdiff_t k = 0; k < length; k++) {                                                         \
                    sum_a[x[k]] += first * VALUE(k);                                                             \
                    other[x[k]] += second * VALUE(k);                                                            \
                }                                                                                                \
            else if (first != 0)                                                                                 \
                axpy_##suffix(values, x, length, first, sum_a);                                                  \
            else if (second != 0)                                                                                \
                axpy_##suffix(values, x, length, second, other);                                                 \
            if (b[i] != 0 && c[i] != 0) axpy_##suffix(values, x, length, c[i], sum_c);                           \
        }                                                                                                        \
    }

#define DEFINE_CSR_KERNELS_OF(index, suffix)                                                                     \
    DEFINE_CSR_KERNELS(float, index, STORED, suffix##_f)                                                         \
    DEFINE_CSR_KERNELS(double, index, STORED, suffix##_d)                                                        \
    DEFINE_CSR_KERNELS(double, index, ONE, suffix##_ones)

DEFINE_CSR_KERNELS_OF(uint16_t, 16)
DEFINE_CSR_KERNELS_OF(int32_t, 32)
DEFINE_CSR_KERNELS_OF(int64_t, 64)

#define BY_VALUES(X, kernel, ...)                                                                                \
    ((X).ones ? kernel##_ones((X).values, (X).columns, __VA_ARGS__)                                              \
              : BY_STORAGE((X).storage, kernel, (X).values, (X).columns, __VA_ARGS__))
#define BY_ENTRIES(X, kernel, ...)                                                                               \
    ((X).index == INDEX16   ? BY_VALUES(X, kernel##_16, __VA_ARGS__)                                             \
     : (X).index == INDEX32 ? BY_VALUES(X, kernel##_32, __VA_ARGS__)                                             \
                            : BY_VALUES(X, kernel##_64, __VA_ARGS__))

/* of one row */
static inline double csr_dot(csr_row x, const double *w) { return BY_ENTRIES(x.of, dot, x.n, w); }
static inline void csr_axpy(csr_row x, double scale, double *w) { BY_ENTRIES(x.of, axpy, x.n, scale, w); }
static inline void csr_axpy_weighted(csr_row x, double scale, const double *weight, double *w) {
    BY_ENTRIES(x.of, axpy_weighted, x.n, scale, weight, w);
}
static inline void csr_axpy_squares(csr_row x, double scale, double *w) {
    BY_ENTRIES(x.of, axpy_squares, x.n, scale, w);
}
static inline void csr_moments(csr_row x, const double *weight, double *first, double *second) {
    BY_ENTRIES(x.of, moments, x.n, weight, first, second);
}
static inline ptrdiff_t csr_placed(csr_row x, double root, const ptrdiff_t *place, ptrdiff_t room, double *held,
                                   ptrdiff_t *places, int *in_order) {
    return BY_ENTRIES(x.of, placed, x.n, root, place, room, held, places, in_order);
}
PREFETCHING void prefetch_bytes(const char *from, ptrdiff_t n) {
    for (ptrdiff_t at = 0; at < n; at += 64) PREFETCH(from + at);
    if (n > 0) PREFETCH(from + n - 1);
}
/* ask for its first entries, which will be needed soon; of a longer row the processor sees that it is read on */
PREFETCHING void csr_prefetch(csr_row x) {
    const ptrdiff_t n = x.n < 64 ? x.n : 64;
    prefetch_bytes((const char *)x.of.columns, n * (ptrdiff_t)x.of.index);
    if (!x.of.ones) prefetch_bytes((const char *)x.of.values, n * storage_width(x.of.storage));
}

/* of several */
static inline void csr_products(csr_rows X, const int64_t *starts, const ptrdiff_t *rows, ptrdiff_t n, const double *w,
                                double constant, double *out) {
    BY_ENTRIES(X, products, starts, rows, n, w, constant, out);
}
static inline void csr_sums(csr_rows X, const int64_t *starts, const ptrdiff_t *rows, ptrdiff_t n, const double *c,
                            double *sum) {
    BY_ENTRIES(X, sums, starts, rows, n, c, sum);
}
static inline void csr_sums_3(csr_rows X, const int64_t *starts, const ptrdiff_t *rows, ptrdiff_t n, const double *a,
                              const double *b, const double *c, double *sum_a, double *sum_b, double *sum_c) {
    BY_ENTRIES(X, sums_3, starts, rows, n, a, b, c, sum_a, sum_b, sum_c);
}

#endif
