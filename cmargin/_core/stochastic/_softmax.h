/* Softmax of one row of scores, its largest entry and its normaliser: the one place where the formula stands.
 *
 *     p_c = exp(h_c - top) / sum_k exp(h_k - top),     top = max_k h_k,     ln sum_k exp(h_k) = top + ln(sum)
 *
 * Vectorised for the processor they run on; orders of addition are written down (see _simd.h).
 */
#ifndef CMARGIN_SOFTMAX_H
#define CMARGIN_SOFTMAX_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "_simd.h"

/* exp(x) for x <= 0, because libm's is one call a number: x = n ln 2 + r with |r| <= ln(2) / 2, the Taylor series of
 * exp(r) to the term that is below rounding (r^8/8! = 5e-9, r^14/14! = 4e-18), times 2^n by the bits of the exponent.
 * Below FLOOR it stays at exp(FLOOR), which no normal number times it can tell from zero. ln 2 is split so that n times
 * its first part is exact; adding and taking away ROUND leaves the nearest whole number. */
#define EXP_BODY(real, integer, BIAS, SHIFT, FLOOR, ROUND, LN2_HIGH, LN2_LOW)                                    \
    real clipped = x > (real)(FLOOR) ? x : (real)(FLOOR);                                                        \
    real whole = (clipped * (real)1.44269504088896340736 + (real)(ROUND)) - (real)(ROUND);                       \
    real r = (clipped - whole * (real)(LN2_HIGH)) - whole * (real)(LN2_LOW);                                     \
    integer bits = ((integer)whole + (BIAS)) << (SHIFT);                                                         \
    real power;                                                                                                  \
    memcpy(&power, &bits, sizeof power);

static inline float exp_negative_f(float x) {
    EXP_BODY(float, int32_t, 127, 23, -87.0f, 12582912.0f, 0.693359375f, -2.12194440054690583e-4f)
    float s = 1 / 5040.0f;
    s = s * r + 1 / 720.0f, s = s * r + 1 / 120.0f, s = s * r + 1 / 24.0f, s = s * r + 1 / 6.0f, s = s * r + 0.5f;
    return ((s * r + 1) * r + 1) * power;
}

static inline double exp_negative_d(double x) {
    EXP_BODY(double, int64_t, 1023, 52, -708.0, 6755399441055744.0, 0.693145751953125, 1.42860682030941723212e-6)
    double s = 1 / 6227020800.0;
    s = s * r + 1 / 479001600.0, s = s * r + 1 / 39916800.0, s = s * r + 1 / 3628800.0, s = s * r + 1 / 362880.0;
    s = s * r + 1 / 40320.0, s = s * r + 1 / 5040.0, s = s * r + 1 / 720.0, s = s * r + 1 / 120.0;
    s = s * r + 1 / 24.0, s = s * r + 1 / 6.0, s = s * r + 0.5;
    return ((s * r + 1) * r + 1) * power;
}

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
