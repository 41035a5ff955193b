/* Softmax of one row of scores, its largest entry and its normaliser: the one place where the formula stands.
 *
 *     p_c = exp(h_c - top) / sum_k exp(h_k - top),     top = max_k h_k,     ln sum_k exp(h_k) = top + ln(sum)
 *
 * Vectorised for the processor they run on; orders of addition are written down (see _simd.h).
 */
#ifndef CMARGIN_SOFTMAX_H
#define CMARGIN_SOFTMAX_H

#include <stddef.h>

#include "_exp.h"
#include "_simd.h"

#define DEFINE_SOFTMAX(real, suffix, WIDE)                                                                       \
    /* h: IN scores, OUT probabilities; top_out the largest score; returns the sum of exp(h - top), in double */ \
    CLONES static double softmax_row_##suffix(real *h, ptrdiff_t n, double *top_out) {                           \
        real lane[WIDE], sum[WIDE] = {0}, top = h[0], rest = 0;                                                  \
        ptrdiff_t c = 0;                                                                                         \
        for (int l = 0; l < WIDE; l++) lane[l] = h[0];                                                           \
        for (; c + WIDE <= n; c += WIDE)                                                                         \
            for (int l = 0; l < WIDE; l++) lane[l] = h[c + l] > lane[l] ? h[c + l] : lane[l];                    \
        for (int l = 0; l < WIDE; l++) top = lane[l] > top ? lane[l] : top;                                      \
        for (; c < n; c++) top = h[c] > top ? h[c] : top;                                                        \
        for (c = 0; c + WIDE <= n; c += WIDE)                                                                    \
            for (int l = 0; l < WIDE; l++) {                                                                     \
                real e = exp_negative_##suffix(h[c + l] - top);                                                  \
                h[c + l] = e;                                                                                    \
                sum[l] += e;                                                                                     \
            }                                                                                                    \
        for (; c < n; c++) {                                                                                     \
            h[c] = exp_negative_##suffix(h[c] - top);                                                            \
            rest += h[c];                                                                                        \
        }                                                                                                        \
        for (int w = WIDE / 2; w > 0; w /= 2)                                                                    \
            for (int l = 0; l < w; l++) sum[l] += sum[l + w];                                                    \
        double total = (double)sum[0] + (double)rest;                                                            \
        real share = (real)(1 / total);                                                                          \
        for (c = 0; c < n; c++) h[c] *= share;                                                                   \
        *top_out = top;                                                                                          \
        return total;                                                                                            \
    }

DEFINE_SOFTMAX(float, f, 16)
DEFINE_SOFTMAX(double, d, 8)

#endif
