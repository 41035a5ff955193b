/* Softmax of rows of scores, and what its curvature makes of a direction: the one place where the formulas stand.
 *
 *     p_c = exp(h_c - top) / sum_k exp(h_k - top),     top = max_k h_k,     ln sum_k exp(h_k) = top + ln(sum)
 *     q_c = p_c (t_c - <p, t>)                         that is [diag(p) - p p'] t
 *
 * Vectorised for the processor they run on; orders of addition are written down (see _simd.h). A row of many classes is
 * vectorised by itself. Of few classes, as many rows as a vector has lanes are laid side by side, class by class: ten
 * numbers fill no vector, and a maximum, two sums and a logarithm a row would take longer than the exponentials
 * (doc/lab-notebook, "Rows of few classes side by side"). What a row gets does not depend on the rows beside it.
 */
#ifndef CMARGIN_SOFTMAX_H
#define CMARGIN_SOFTMAX_H

#include <stddef.h>

#include "_exp.h"
#include "_simd.h"

#define FEW_CLASSES 32 /* fewer are few */

#define DEFINE_SOFTMAX(real, suffix, WIDE)                                                                       \
    /* at (k, WIDE): rows of k numbers side by side; past the m that there are, the first one again */           \
    static inline void lay_out_##suffix(const real *rows, ptrdiff_t m, ptrdiff_t k, real *restrict at) {         \
        const real *row[WIDE];                                                                                   \
        for (int l = 0; l < WIDE; l++) row[l] = rows + (l < m ? l : 0) * k;                                      \
        for (ptrdiff_t c = 0; c < k; c++)                                                                        \
            for (int l = 0; l < WIDE; l++) at[c * WIDE + l] = row[l][c];                                         \
    }                                                                                                            \
    static inline void take_back_##suffix(const real *restrict at, ptrdiff_t m, ptrdiff_t k, real *rows) {       \
        for (int l = 0; l < m; l++)                                                                              \
            for (ptrdiff_t c = 0; c < k; c++) rows[l * k + c] = at[c * WIDE + l];                                \
    }                                                                                                            \
    CLONES static void softmax_few_##suffix(const real *scores, ptrdiff_t n, ptrdiff_t k, const double *weight,  \
                                            real *probs, real *weighted, double *of_rows, ptrdiff_t ld) {        \
        real at[FEW_CLASSES * WIDE], top[WIDE], sum[WIDE], mean[WIDE], share[WIDE];                              \
        double ln[WIDE];                                                                                         \
        for (ptrdiff_t first = 0; first < n; first += WIDE) {                                                    \
            ptrdiff_t m = n - first < WIDE ? n - first : WIDE;                                                   \
            lay_out_##suffix(scores + first * k, m, k, at);                                                      \
            for (int l = 0; l < WIDE; l++) top[l] = at[l], sum[l] = mean[l] = 0;                                 \
            for (ptrdiff_t c = 1; c < k; c++)                                                                    \
                for (int l = 0; l < WIDE; l++) top[l] = at[c * WIDE + l] > top[l] ? at[c * WIDE + l] : top[l];   \
            for (ptrdiff_t c = 0; c < k; c++)                                                                    \
                for (int l = 0; l < WIDE; l++) {                                                                 \
                    real below = at[c * WIDE + l] - top[l], e = exp_negative_##suffix(below);                    \
                    at[c * WIDE + l] = e;                                                                        \
                    sum[l] += e;                                                                                 \
                    mean[l] += e * below;                                                                        \
                }                                                                                                \
            for (int l = 0; l < WIDE; l++) ln[l] = log_positive(sum[l]), share[l] = 1 / sum[l];                  \
            for (int l = 0; l < m; l++) {                                                                        \
                of_rows[first + l] = top[l], of_rows[ld + first + l] = ln[l];                                    \
                of_rows[2 * ld + first + l] = mean[l] * share[l];                                                \
            }                                                                                                    \
            for (ptrdiff_t c = 0; c < k; c++)                                                                    \
                for (int l = 0; l < WIDE; l++) at[c * WIDE + l] *= share[l];                                     \
            if (probs) take_back_##suffix(at, m, k, probs + first * k);                                          \
            if (!weighted) continue;                                                                             \
            for (int l = 0; l < WIDE; l++) share[l] = (real)weight[first + (l < m ? l : 0)];                     \
            for (ptrdiff_t c = 0; c < k; c++)                                                                    \
                for (int l = 0; l < WIDE; l++) at[c * WIDE + l] *= share[l];                                     \
            take_back_##suffix(at, m, k, weighted + first * k);                                                  \
        }                                                                                                        \
    }                                                                                                            \
    CLONES static void softmax_many_##suffix(const real *scores, ptrdiff_t n, ptrdiff_t k, const double *weight, \
                                             real *probs, real *weighted, double *of_rows, ptrdiff_t ld) {       \
        for (ptrdiff_t i = 0; i < n; i++, scores += k) {                                                         \
            real lane[WIDE], sum[WIDE] = {0}, mean[WIDE] = {0}, top = scores[0], rest = 0, rest_mean = 0;        \
            real *p = probs ? probs + i * k : weighted + i * k;                                                  \
            ptrdiff_t c = 0;                                                                                     \
            for (int l = 0; l < WIDE; l++) lane[l] = top;                                                        \
            for (; c + WIDE <= k; c += WIDE)                                                                     \
                for (int l = 0; l < WIDE; l++) lane[l] = scores[c + l] > lane[l] ? scores[c + l] : lane[l];      \
            for (int l = 0; l < WIDE; l++) top = lane[l] > top ? lane[l] : top;                                  \
            for (; c < k; c++) top = scores[c] > top ? scores[c] : top;                                          \
            for (c = 0; c + WIDE <= k; c += WIDE) {                                                              \
                INDEPENDENT /* p may be the scores */                                                            \
                for (int l = 0; l < WIDE; l++) {                                                                 \
                    real below = scores[c + l] - top, e = exp_negative_##suffix(below);                          \
                    p[c + l] = e;                                                                                \
                    sum[l] += e;                                                                                 \
                    mean[l] += e * below;                                                                        \
                }                                                                                                \
            }                                                                                                    \
            for (; c < k; c++) {                                                                                 \
                real below = scores[c] - top, e = exp_negative_##suffix(below);                                  \
                p[c] = e;                                                                                        \
                rest += e;                                                                                       \
                rest_mean += e * below;                                                                          \
            }                                                                                                    \
            for (int w = WIDE / 2; w > 0; w /= 2)                                                                \
                for (int l = 0; l < w; l++) sum[l] += sum[l + w], mean[l] += mean[l + w];                        \
            double total = (double)sum[0] + (double)rest;                                                        \
            of_rows[i] = top, of_rows[ld + i] = log_positive(total);                                             \
            of_rows[2 * ld + i] = ((double)mean[0] + (double)rest_mean) / total;                                 \
            real share = (real)(1 / total), s = weighted ? (real)weight[i] : 1;                                  \
            for (c = 0; c < k; c++) p[c] *= share;                                                               \
            if (weighted) {                                                                                      \
                INDEPENDENT                                                                                      \
                for (c = 0; c < k; c++) weighted[i * k + c] = s * p[c];                                          \
            }                                                                                                    \
        }                                                                                                        \
    }                                                                                                            \
    static inline real mean_of_##suffix(const real *p, const real *t, ptrdiff_t k) {                             \
        real lane[WIDE / 2] = {0}, rest = 0;                                                                     \
        ptrdiff_t c = 0;                                                                                         \
        for (; c + WIDE / 2 <= k; c += WIDE / 2)                                                                 \
            for (int l = 0; l < WIDE / 2; l++) lane[l] += p[c + l] * t[c + l];                                   \
        for (; c < k; c++) rest += p[c] * t[c];                                                                  \
        for (int w = WIDE / 4; w > 0; w /= 2)                                                                    \
            for (int l = 0; l < w; l++) lane[l] += lane[l + w];                                                  \
        return lane[0] + rest;                                                                                   \
    }                                                                                                            \
    /* t: INOUT (n, k), becomes q times the row's weight */                                                      \
    CLONES static void curved_rows_##suffix(const real *p, real *t, ptrdiff_t n, ptrdiff_t k, const double *weight) { \
        for (ptrdiff_t i = 0; i < n; i++, p += k, t += k) {                                                      \
            real mean = mean_of_##suffix(p, t, k), s = (real)weight[i];                                          \
            INDEPENDENT                                                                                          \
            for (ptrdiff_t c = 0; c < k; c++) t[c] = s * (p[c] * (t[c] - mean));                                 \
        }                                                                                                        \
    }                                                                                                            \
    /* of_rows: OUT (2, ld): <p, t>, <p, (t - <p, t>)^2>. off: WORK (k,) */                                      \
    CLONES static void spread_rows_##suffix(const real *p, const real *t, ptrdiff_t n, ptrdiff_t k, real *off,   \
                                            double *of_rows, ptrdiff_t ld) {                                     \
        for (ptrdiff_t i = 0; i < n; i++, p += k, t += k) {                                                      \
            real mean = mean_of_##suffix(p, t, k);                                                               \
            INDEPENDENT                                                                                          \
            for (ptrdiff_t c = 0; c < k; c++) off[c] = (t[c] - mean) * (t[c] - mean);                            \
            of_rows[i] = mean, of_rows[ld + i] = mean_of_##suffix(p, off, k);                                    \
        }                                                                                                        \
    }                                                                                                            \
    /* scores: IN (n, k). OUT: probs (n, k), or NULL; weighted (n, k), p times the row's weight, or NULL; one of \
     * them may be scores. of_rows (3, ld): top, ln sum exp(h - top), <p, h - top> */                            \
    static inline void softmax_rows_##suffix(const real *scores, ptrdiff_t n, ptrdiff_t k, const double *weight, \
                                             real *probs, real *weighted, double *of_rows, ptrdiff_t ld) {       \
        if (k < FEW_CLASSES)                                                                                     \
            softmax_few_##suffix(scores, n, k, weight, probs, weighted, of_rows, ld);                            \
        else                                                                                                     \
            softmax_many_##suffix(scores, n, k, weight, probs, weighted, of_rows, ld);                           \
    }

DEFINE_SOFTMAX(float, f, 16)
DEFINE_SOFTMAX(double, d, 8)

#endif
