/* A row times the weights of all classes, in double, and back into them: what a sweep of the joint hinge's dual does.
 *
 *     z += x W             W (n_features, width), z (width,)
 *     W += x z
 *
 * ``width`` is a multiple of four, as many lanes as fit at a time stay in registers. Zeros of dense rows are skipped two
 * at a time. Orders of addition are written down: entries of even and of odd place apart.
 */
#ifndef CMARGIN_JOINT_ROWS_H
#define CMARGIN_JOINT_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "_simd.h"

#define LANES_OF_CLASSES 4
#define ENTRIES_AHEAD 8 /* weights of text rows lie anywhere: asked for so many entries before (doc/lab-notebook) */

#define OF_LIST(e) ((ptrdiff_t)columns[e])
#define OF_PLACE(e) (e)

#define DEFINE_SCORES(real, index, name, AT, DENSE, L)                                                           \
    static inline void scores_##name##_##L(const real *x, const index *columns, ptrdiff_t n, const double *W,    \
                                           ptrdiff_t width, double *z) {                                         \
        double even[L] = {0}, odd[L] = {0};                                                                      \
        ptrdiff_t e = 0;                                                                                         \
        (void)columns;                                                                                           \
        for (; e + 2 <= n; e += 2) {                                                                             \
            const double x0 = x[e], x1 = x[e + 1];                                                               \
            const double *w0 = W + AT(e) * width, *w1 = W + AT(e + 1) * width;                                   \
            if (DENSE && x0 == 0 && x1 == 0) continue;                                                           \
            if (!DENSE && L == 32 && e + ENTRIES_AHEAD + 2 <= n)                                                 \
                for (int l = 0; l < L; l += 8) {                                                                 \
                    PREFETCH(W + AT(e + ENTRIES_AHEAD) * width + l);                                             \
                    PREFETCH(W + AT(e + ENTRIES_AHEAD + 1) * width + l);                                         \
                }                                                                                                \
            for (int l = 0; l < L; l++) even[l] += x0 * w0[l];                                                   \
            for (int l = 0; l < L; l++) odd[l] += x1 * w1[l];                                                    \
        }                                                                                                        \
        if (e < n)                                                                                               \
            for (int l = 0; l < L; l++) even[l] += x[e] * W[AT(e) * width + l];                                  \
        for (int l = 0; l < L; l++) z[l] += even[l] + odd[l];                                                    \
    }

#define DEFINE_JOINT_ROWS(real, index, name, AT, DENSE)                                                          \
    DEFINE_SCORES(real, index, name, AT, DENSE, 32)                                                              \
    DEFINE_SCORES(real, index, name, AT, DENSE, 16)                                                              \
    DEFINE_SCORES(real, index, name, AT, DENSE, 12)                                                              \
    DEFINE_SCORES(real, index, name, AT, DENSE, 8)                                                               \
    DEFINE_SCORES(real, index, name, AT, DENSE, 4)                                                               \
    CLONES static void row_scores_##name(const real *x, const index *columns, ptrdiff_t n, const double *W,      \
                                         ptrdiff_t width, double *z) {                                           \
        ptrdiff_t c = 0;                                                                                         \
        for (; width - c >= 32; c += 32) scores_##name##_32(x, columns, n, W + c, width, z + c);                 \
        for (; width - c >= 16; c += 16) scores_##name##_16(x, columns, n, W + c, width, z + c);                 \
        if (width - c == 12) scores_##name##_12(x, columns, n, W + c, width, z + c);                             \
        if (width - c == 8) scores_##name##_8(x, columns, n, W + c, width, z + c);                               \
        if (width - c == 4) scores_##name##_4(x, columns, n, W + c, width, z + c);                               \
    }                                                                                                            \
    /* change (width,): of all classes; where only ``n_moved`` of them, ``moved``, change, these alone */        \
    CLONES static void add_row_##name(const real *x, const index *columns, ptrdiff_t n, const double *change,    \
                                      const int *moved, ptrdiff_t n_moved, ptrdiff_t width, double *W) {         \
        (void)columns;                                                                                           \
        for (ptrdiff_t e = 0; e < n; e++) {                                                                      \
            const double value = x[e];                                                                           \
            double *w = W + AT(e) * width;                                                                       \
            if (value == 0) continue;                                                                            \
            if (3 * n_moved < width) {                                                                           \
                for (ptrdiff_t j = 0; j < n_moved; j++) w[moved[j]] += value * change[moved[j]];                 \
                continue;                                                                                        \
            }                                                                                                    \
            INDEPENDENT                                                                                          \
            for (ptrdiff_t c = 0; c < width; c++) w[c] += value * change[c];                                     \
        }                                                                                                        \
    }

DEFINE_JOINT_ROWS(double, int32_t, dense_d, OF_PLACE, 1)
DEFINE_JOINT_ROWS(float, int32_t, dense_f, OF_PLACE, 1)
DEFINE_JOINT_ROWS(double, int32_t, csr_d, OF_LIST, 0)
DEFINE_JOINT_ROWS(float, int32_t, csr_f, OF_LIST, 0)
DEFINE_JOINT_ROWS(double, int64_t, csr_d_64, OF_LIST, 0)
DEFINE_JOINT_ROWS(float, int64_t, csr_f_64, OF_LIST, 0)

#endif
