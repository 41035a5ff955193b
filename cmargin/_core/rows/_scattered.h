/* The outer product of a sparse row with itself, added entry by entry to the upper triangle of a block.
 *
 * Four rows of the block at a time: they share what is read of the row, and there are fewer loops, whose ends a
 * processor foresees badly (doc/lab-notebook, "One-hot rows"). A number of the block has one addend of a row, so the
 * bits are those of any order.
 */
#ifndef CMARGIN_SCATTERED_H
#define CMARGIN_SCATTERED_H

#include <stddef.h>

#define VALUE_PRODUCT(i, j) values[i] * values[j]
#define SAME_PRODUCT(i, j) product

/* out[place_i][place_j] += PRODUCT(i, j) for i <= j < n; places ascend, none twice; `order`: of the block */
#define DEFINE_OUTER(name, argument, PRODUCT)                                                                    \
    static inline void name(argument, const ptrdiff_t *places, ptrdiff_t n, ptrdiff_t order, double *out) {      \
        ptrdiff_t i = 0, j;                                                                                      \
        for (; i + 4 <= n; i += 4) {                                                                             \
            double *r0 = out + places[i] * order, *r1 = out + places[i + 1] * order;                             \
            double *r2 = out + places[i + 2] * order, *r3 = out + places[i + 3] * order;                         \
            r0[places[i]] += PRODUCT(i, i);                                                                      \
            r0[places[i + 1]] += PRODUCT(i, i + 1);                                                              \
            r0[places[i + 2]] += PRODUCT(i, i + 2);                                                              \
            r1[places[i + 1]] += PRODUCT(i + 1, i + 1);                                                          \
            r1[places[i + 2]] += PRODUCT(i + 1, i + 2);                                                          \
            r2[places[i + 2]] += PRODUCT(i + 2, i + 2);                                                          \
            for (j = i + 3; j < n; j++) {                                                                        \
                const ptrdiff_t at = places[j];                                                                  \
                r0[at] += PRODUCT(i, j);                                                                         \
                r1[at] += PRODUCT(i + 1, j);                                                                     \
                r2[at] += PRODUCT(i + 2, j);                                                                     \
                r3[at] += PRODUCT(i + 3, j);                                                                     \
            }                                                                                                    \
        }                                                                                                        \
        for (; i < n; i++) {                                                                                     \
            double *row = out + places[i] * order;                                                               \
            for (j = i; j < n; j++) row[places[j]] += PRODUCT(i, j);                                             \
        }                                                                                                        \
    }

DEFINE_OUTER(add_outer, const double *values, VALUE_PRODUCT)
/* of a row whose values all are the root of `product` */
DEFINE_OUTER(add_outer_of_equals, const double product, SAME_PRODUCT)

#endif
