/* How the numbers of rows and their columns are stored, apart from the type of weights and sums, and the one place that
 * chooses by the type of numbers.
 *
 * A kernel that reads rows is defined once for every type, with a suffix of the type, and called through BY_STORAGE. A
 * type more is its name and functions here, and a line where kernels are defined (_tiles.h, _csr.h, _simd.h).
 */
#ifndef CMARGIN_STORAGE_H
#define CMARGIN_STORAGE_H

#include <stddef.h>

typedef enum { FLOAT64, FLOAT32 } storage_t;
typedef enum { INDEX16 = 2, INDEX32 = 4, INDEX64 = 8 } index_t; /* of the columns of CSR rows: bytes of one */

#define BY_STORAGE(storage, kernel, ...) ((storage) == FLOAT32 ? kernel##_f(__VA_ARGS__) : kernel##_d(__VA_ARGS__))

static inline double number_f(const float *values, ptrdiff_t at) { return values[at]; }
static inline double number_d(const double *values, ptrdiff_t at) { return values[at]; }
static inline ptrdiff_t width_f(void) { return sizeof(float); }
static inline ptrdiff_t width_d(void) { return sizeof(double); }

/* bytes of a number */
static inline ptrdiff_t storage_width(storage_t storage) { return BY_STORAGE(storage, width); }
/* of numbers of NumPy's kind and so many bytes; -1: kernels do not read them */
static inline int storage_of(char kind, ptrdiff_t width) {
    return kind != 'f' ? -1 : width == 4 ? FLOAT32 : width == 8 ? FLOAT64 : -1;
}
static inline double stored_number(storage_t storage, const void *values, ptrdiff_t at) {
    return BY_STORAGE(storage, number, values, at);
}

#endif
