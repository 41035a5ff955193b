/* CSR rows times the weights of all classes, and back: no call an entry, and a number of classes that the compiler
 * knows where it is small (doc/lab-notebook, "CSR rows times the weights of all classes").
 *
 *     out += X V           V (n_features, k), out (n, k)
 *     sums += X' R         R (n, k), sums (n_features, k)
 *
 * Entries are added in the order in which they are stored.
 */
#ifndef CMARGIN_CSR_CLASSES_H
#define CMARGIN_CSR_CLASSES_H

#include <stddef.h>
#include <stdint.h>

#include "_simd.h"

#if defined(__GNUC__)
#define WITH_CONSTANTS __attribute__((always_inline)) static inline
#else
#define WITH_CONSTANTS static inline
#endif

/* one of the value types, one of the index types */
typedef struct {
    const float *floats;
    const double *doubles;
    const int32_t *columns;
    const int64_t *columns_64;
} csr_entries;

static inline double csr_value(const csr_entries *X, int64_t at) { return X->floats ? X->floats[at] : X->doubles[at]; }
static inline ptrdiff_t csr_column(const csr_entries *X, int64_t at) {
    return X->columns ? (ptrdiff_t)X->columns[at] : (ptrdiff_t)X->columns_64[at];
}

/* cases of a switch; beyond them sums are quicker as a loop that is vectorised */
#define TO_FIVE_CLASSES(call)                                                                                    \
    case 2: call(2) break;                                                                                       \
    case 3: call(3) break;                                                                                       \
    case 4: call(4) break;                                                                                       \
    case 5: call(5) break;
#define TO_TEN_CLASSES(call)                                                                                     \
    TO_FIVE_CLASSES(call)                                                                                        \
    case 6: call(6) break;                                                                                       \
    case 7: call(7) break;                                                                                       \
    case 8: call(8) break;                                                                                       \
    case 9: call(9) break;                                                                                       \
    case 10: call(10) break;

#define DEFINE_CSR_CLASSES(real, suffix)                                                                         \
    WITH_CONSTANTS void csr_times_k_##suffix(const csr_entries *X, const int64_t *starts, ptrdiff_t n,           \
                                             const real *restrict V, const ptrdiff_t k, real *restrict out) {    \
        for (ptrdiff_t i = 0; i < n; i++, out += k)                                                              \
            for (int64_t at = starts[i]; at < starts[i + 1]; at++) {                                             \
                const real value = (real)csr_value(X, at), *v = V + csr_column(X, at) * k;                       \
                for (ptrdiff_t c = 0; c < k; c++) out[c] += value * v[c];                                        \
            }                                                                                                    \
    }                                                                                                            \
    WITH_CONSTANTS void csr_sums_k_##suffix(const csr_entries *X, const int64_t *starts, ptrdiff_t n,            \
                                            const real *restrict R, const ptrdiff_t k, real *restrict sums) {    \
        for (ptrdiff_t i = 0; i < n; i++, R += k)                                                                \
            for (int64_t at = starts[i]; at < starts[i + 1]; at++) {                                             \
                const real value = (real)csr_value(X, at);                                                       \
                real *sum = sums + csr_column(X, at) * k;                                                        \
                INDEPENDENT                                                                                      \
                for (ptrdiff_t c = 0; c < k; c++) sum[c] += value * R[c];                                        \
            }                                                                                                    \
    }                                                                                                            \
    CLONES static void csr_times_##suffix(csr_entries X, const int64_t *starts, ptrdiff_t n, const real *V,      \
                                          ptrdiff_t k, real *out) {                                              \
        switch (k) {                                                                                             \
            TO_TEN_CLASSES(CSR_TIMES_##suffix)                                                                   \
            default: CSR_TIMES_##suffix(k)                                                                       \
        }                                                                                                        \
    }                                                                                                            \
    CLONES static void csr_sums_##suffix(csr_entries X, const int64_t *starts, ptrdiff_t n, const real *R,       \
                                         ptrdiff_t k, real *sums) {                                              \
        switch (k) {                                                                                             \
            TO_FIVE_CLASSES(CSR_SUMS_##suffix)                                                                   \
            default: CSR_SUMS_##suffix(k)                                                                        \
        }                                                                                                        \
    }

#define CSR_TIMES_f(k) csr_times_k_f(&X, starts, n, V, k, out);
#define CSR_TIMES_d(k) csr_times_k_d(&X, starts, n, V, k, out);
#define CSR_SUMS_f(k) csr_sums_k_f(&X, starts, n, R, k, sums);
#define CSR_SUMS_d(k) csr_sums_k_d(&X, starts, n, R, k, sums);

DEFINE_CSR_CLASSES(float, f)
DEFINE_CSR_CLASSES(double, d)

#endif
