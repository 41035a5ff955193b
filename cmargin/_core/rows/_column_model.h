/* A column of the rows beside what every row has for all classes: sums that the quadratic model of a softmax risk needs.
 *
 *     q_i = s_i [diag(p_i) - p_i p_i'] d_i      the curvature of row i times the change d_i of its scores
 *
 * Rows have `wide` numbers, a multiple of 4, zero past the classes; of up to 16 the compiler knows how many. A column is
 * dense, or lists its rows in `place`. Single precision but for sums over more than FOLDED rows: the model is made anew
 * from exact gradients in every step.
 */
#ifndef CMARGIN_COLUMN_MODEL_H
#define CMARGIN_COLUMN_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "_simd.h"

enum { FOLDED = 1024, CHUNK = 16, TILE = 256 };

#define ROW_OF(e) ((ptrdiff_t)(place ? place[e] : (e)))

#define DEFINE_COLUMN_MODEL(WIDE)                                                                                \
    /* sum_e x_e q_row(e), of WIDE classes; rows are `ld` numbers apart */                                       \
    static inline void slope_##WIDE(const float *x, const int32_t *place, ptrdiff_t m, const float *q,           \
                                    ptrdiff_t ld, double *sum) {                                                 \
        for (int l = 0; l < WIDE; l++) sum[l] = 0;                                                               \
        for (ptrdiff_t first = 0; first < m; first += FOLDED) {                                                  \
            ptrdiff_t e = first, end = m - first < FOLDED ? m : first + FOLDED;                                  \
            float even[WIDE] = {0}, odd[WIDE] = {0};                                                             \
            for (; e + 2 <= end; e += 2) {                                                                       \
                const float *a = q + ROW_OF(e) * ld, *b = q + ROW_OF(e + 1) * ld, at_a = x[e], at_b = x[e + 1];  \
                for (int l = 0; l < WIDE; l++) even[l] += at_a * a[l];                                           \
                for (int l = 0; l < WIDE; l++) odd[l] += at_b * b[l];                                            \
            }                                                                                                    \
            if (e < end)                                                                                         \
                for (int l = 0; l < WIDE; l++) even[l] += x[e] * q[ROW_OF(e) * ld + l];                          \
            for (int l = 0; l < WIDE; l++) sum[l] += even[l] + odd[l];                                           \
        }                                                                                                        \
    }                                                                                                            \
    /* sum_e s x_e^2 p (1 - p) */                                                                                \
    static inline void diagonal_##WIDE(const float *x, const int32_t *place, ptrdiff_t m, const float *s,        \
                                   const float *p, ptrdiff_t ld, double *sum) {                                  \
        for (int l = 0; l < WIDE; l++) sum[l] = 0;                                                               \
        for (ptrdiff_t first = 0; first < m; first += FOLDED) {                                                  \
            ptrdiff_t end = m - first < FOLDED ? m : first + FOLDED;                                             \
            float part[WIDE] = {0};                                                                              \
            for (ptrdiff_t e = first; e < end; e++) {                                                            \
                const float *a = p + ROW_OF(e) * ld, by = s[ROW_OF(e)] * x[e] * x[e];                            \
                for (int l = 0; l < WIDE; l++) part[l] += by * a[l] * (1 - a[l]);                                \
            }                                                                                                    \
            for (int l = 0; l < WIDE; l++) sum[l] += part[l];                                                    \
        }                                                                                                        \
    }                                                                                                            \
    /* mean_e (+)= <p, change>: of m rows, at most TILE */                                                       \
    static inline void means_##WIDE(const int32_t *place, ptrdiff_t first, ptrdiff_t m, const float *p,          \
                                    ptrdiff_t ld, const float *change, float *mean) {                            \
        for (ptrdiff_t e = 0; e < m; e++) {                                                                      \
            const float *a = p + ROW_OF(first + e) * ld;                                                         \
            float part[4] = {0};                                                                                 \
            for (int l = 0; l < WIDE; l++) part[l % 4] += a[l] * change[l];                                      \
            mean[e] += (part[0] + part[2]) + (part[1] + part[3]);                                                \
        }                                                                                                        \
    }                                                                                                            \
    /* q += s x (p o change - mean p) */                                                                         \
    static inline void moved_##WIDE(const float *x, const int32_t *place, ptrdiff_t first, ptrdiff_t m,          \
                                    const float *s, const float *p, ptrdiff_t ld, const float *change,           \
                                    const float *mean, float *q) {                                               \
        for (ptrdiff_t e = 0; e < m; e++) {                                                                      \
            ptrdiff_t i = ROW_OF(first + e);                                                                     \
            const float by = s[i] * x[first + e];                                                                \
            for (int l = 0; l < WIDE; l++) q[i * ld + l] += by * p[i * ld + l] * (change[l] - mean[e]);          \
        }                                                                                                        \
    }

#define DEFINE_SCORES(WIDE)                                                                                      \
    /* d_row(e) += x_e change */                                                                                 \
    static inline void scores_##WIDE(const float *x, const int32_t *place, ptrdiff_t m, ptrdiff_t ld,            \
                                     const float *change, float *d) {                                            \
        for (ptrdiff_t e = 0; e < m; e++) {                                                                      \
            float *at = d + ROW_OF(e) * ld, by = x[e];                                                           \
            for (int l = 0; l < WIDE; l++) at[l] += by * change[l];                                              \
        }                                                                                                        \
    }

DEFINE_SCORES(4)
DEFINE_SCORES(8)
DEFINE_SCORES(12)
DEFINE_SCORES(16)
DEFINE_COLUMN_MODEL(4)
DEFINE_COLUMN_MODEL(8)
DEFINE_COLUMN_MODEL(12)
DEFINE_COLUMN_MODEL(16)

/* what stands behind `wide`: 4, 8, 12, or chunks of 16 */
#define OF_WIDTH(name, wide, ...)                                                                                \
    do {                                                                                                         \
        if ((wide) == 4) name##_4(__VA_ARGS__);                                                                  \
        else if ((wide) == 8) name##_8(__VA_ARGS__);                                                             \
        else if ((wide) == 12) name##_12(__VA_ARGS__);                                                           \
        else name##_16(__VA_ARGS__);                                                                             \
    } while (0)

/* rows of one chunk are never left out: who has nothing to change does not call */
static inline int chunk_is_used(const float *change, ptrdiff_t wide) {
    int used = wide <= CHUNK;
    for (ptrdiff_t c = 0; c < CHUNK && wide > CHUNK; c++) used |= change[c] != 0;
    return used;
}

/* `change`, or NULL: chunks of classes in which it is 0 are left out, with what is in `sum` */
CLONES static void column_slope(const float *x, const int32_t *place, ptrdiff_t m, const float *q, ptrdiff_t wide,
                                const float *change, double *sum) {
    for (ptrdiff_t c = 0; c < wide; c += CHUNK)
        if (!change || chunk_is_used(change + c, wide)) OF_WIDTH(slope, wide, x, place, m, q + c, wide, sum + c);
}

CLONES static void column_diagonal(const float *x, const int32_t *place, ptrdiff_t m, const float *s, const float *p,
                               ptrdiff_t wide, double *sum) {
    for (ptrdiff_t c = 0; c < wide; c += CHUNK) OF_WIDTH(diagonal, wide, x, place, m, s, p + c, wide, sum + c);
}

CLONES static void column_scores(const float *x, const int32_t *place, ptrdiff_t m, ptrdiff_t wide,
                                 const float *change, float *d) {
    for (ptrdiff_t c = 0; c < wide; c += CHUNK)
        if (chunk_is_used(change + c, wide)) OF_WIDTH(scores, wide, x, place, m, wide, change + c, d + c);
}

/* d = s [diag(p) - p p'] d, of all n rows */
CLONES static void curve_rows(ptrdiff_t n, const float *s, const float *p, ptrdiff_t wide, float *d) {
    for (ptrdiff_t i = 0; i < n; i++, p += wide, d += wide) {
        float part[4] = {0}, mean;
        for (ptrdiff_t c = 0; c < wide; c += 4)
            for (int l = 0; l < 4; l++) part[l] += p[c + l] * d[c + l];
        mean = (part[0] + part[2]) + (part[1] + part[3]);
        for (ptrdiff_t c = 0; c < wide; c++) d[c] = s[i] * p[c] * (d[c] - mean);
    }
}

CLONES static void column_move(const float *x, const int32_t *place, ptrdiff_t m, const float *s, const float *p,
                               ptrdiff_t wide, const float *change, float *q) {
    for (ptrdiff_t first = 0; first < m; first += TILE) {
        ptrdiff_t n = m - first < TILE ? m - first : TILE;
        float mean[TILE] = {0};
        for (ptrdiff_t c = 0; c < wide; c += CHUNK)
            OF_WIDTH(means, wide, place, first, n, p + c, wide, change + c, mean);
        for (ptrdiff_t c = 0; c < wide; c += CHUNK)
            OF_WIDTH(moved, wide, x, place, first, n, s, p + c, wide, change + c, mean, q + c);
    }
}

#endif
