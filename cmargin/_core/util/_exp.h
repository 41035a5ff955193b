/* exp and log that a compiler vectorises, where libm's are one call a number. */
#ifndef CMARGIN_EXP_H
#define CMARGIN_EXP_H

#include <stdint.h>
#include <string.h>

/* exp(x) for x <= 0: x = n ln 2 + r with |r| <= ln(2) / 2, the Taylor series of
 * exp(r) to the term that is below rounding (r^8/8! = 5e-9, r^14/14! = 4e-18), times 2^n by the bits of the exponent.
 * Below FLOOR it stays at exp(FLOOR), which no normal number times it can tell from zero. ln 2 is split so that n times
 * its first part is exact. ROUND is 1.5 times the power of two from which on a number has no digits behind the point:
 * adding it leaves the nearest whole number n in the last bits, where integers read it. (Processors without AVX-512
 * have no instruction that converts several doubles to integers of 64 bits: with one, loops are not vectorised.) */
#define EXP_BODY(real, integer, BIAS, SHIFT, FLOOR, ROUND, LN2_HIGH, LN2_LOW)                                    \
    real clipped = x > (real)(FLOOR) ? x : (real)(FLOOR);                                                        \
    real shifted = clipped * (real)1.44269504088896340736 + (real)(ROUND), nothing = (real)(ROUND), power;       \
    real whole = shifted - nothing;                                                                              \
    real r = (clipped - whole * (real)(LN2_HIGH)) - whole * (real)(LN2_LOW);                                     \
    integer bits, bits_of_round;                                                                                 \
    memcpy(&bits, &shifted, sizeof bits);                                                                        \
    memcpy(&bits_of_round, &nothing, sizeof bits);                                                               \
    bits = (bits - bits_of_round + (BIAS)) << (SHIFT);                                                           \
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

/* ln(x) for normal x > 0, to the last digits relative to it: x = 2^n m, 0.7 <= m <= 1.41, and with s = (m - 1) / (m + 1)
 * ln m = 2 (s + s^3/3 + s^5/5 + ...), |s| <= 0.1716, to the term that is below rounding (0.1716^22 / 23 = 7e-19). The
 * bits of 0.7071 taken away leave n in the exponent whatever side of a power of two x is on; n + 1023 is positive, for a
 * shift that AVX2 has, and becomes a double as the last bits of one, as in exp. */
static inline double log_positive(double x) {
    const uint64_t middle = 0x3fe6a09e667f3bcd, bias = 1023, one = bias << 52;
    const double round = 6755399441055744.0;
    uint64_t bits, bits_of_round, biased;
    double m, n, s, q, sum;
    memcpy(&bits, &x, sizeof bits);
    memcpy(&bits_of_round, &round, sizeof bits_of_round);
    biased = (bits - middle + one) >> 52;
    bits -= (biased << 52) - one;
    memcpy(&m, &bits, sizeof m);
    biased += bits_of_round - bias;
    memcpy(&n, &biased, sizeof n);
    n -= round;
    s = (m - 1) / (m + 1), q = s * s;
    sum = 1 / 21.0;
    sum = sum * q + 1 / 19.0, sum = sum * q + 1 / 17.0, sum = sum * q + 1 / 15.0, sum = sum * q + 1 / 13.0;
    sum = sum * q + 1 / 11.0, sum = sum * q + 1 / 9.0, sum = sum * q + 1 / 7.0, sum = sum * q + 1 / 5.0;
    sum = sum * q + 1 / 3.0;
    sum = 2 * s + 2 * s * q * sum;
    return n * 0.693145751953125 + (n * 1.42860682030941723212e-6 + sum);
}

#endif
