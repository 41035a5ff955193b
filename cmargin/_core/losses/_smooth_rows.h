/* Losses that are smooth themselves, row by row: value, slope, curvature, and the dual variable that certifies a step.
 * Vectorised for the processor they run on. The losses one margin at a time are `_logistic.pxd` and `_squared_hinge.pxd`.
 */
#ifndef CMARGIN_SMOOTH_ROWS_H
#define CMARGIN_SMOOTH_ROWS_H

#include <math.h>
#include <stddef.h>

#include "_exp.h"
#include "_simd.h"

typedef struct {
    double value;
    double slope;        /* in the deficit u = 1 - z: >= 0 */
    double curvature;
} deficit_point;

static inline deficit_point logistic_at(double u) {
    double z = 1 - u, e = exp_negative_d(z > 0 ? -z : z), whole = 1 + e, share = 1 / whole;
    /* ln(1 + e): what 1 + e has rounded off is put back */
    deficit_point at = {log_positive(whole) + (e - (whole - 1)) * share + (z > 0 ? 0 : -z),
                        z > 0 ? e * share : share, e * share * share};
    return at;
}

static inline double logistic_gain_of(double a) {
    double b = 1 - a;
    return -a * log_positive(a > 1e-300 ? a : 1e-300) - b * log_positive(b > 1e-300 ? b : 1e-300);
}

static inline deficit_point squared_hinge_at(double u) {
    double over = u >= 0 ? u : 0;
    deficit_point at = {u != u ? u : over * over, 2 * over, u >= 0 ? 2 : 0};
    return at;
}

static inline double squared_hinge_gain_of(double a) { return a - a * a / 4; }

/* What a look asks of n rows at u - step change, no sums yet. For every row: parts[0] s F, [1] -s F' change, [2] s G(a)
 * for y = +1, [3] the same for y = -1, [4] s a for y = +1, [5] -s a for y = -1, [6] s h, with the dual variable a that
 * the model before the step predicts after it; r: s y F'; curvature: s h, 0 below the floor. */
#define DEFINE_SMOOTH_ROWS(loss, LARGEST)                                                                        \
    CLONES static void loss##_rows(double step, double floor, ptrdiff_t n, const double *restrict code,          \
                                   const double *restrict deficit, const double *restrict change,                \
                                   double *restrict dual_next, double *restrict parts, ptrdiff_t ld,             \
                                   double *restrict r, double *restrict curvature) {                             \
        INDEPENDENT                                                                                              \
        for (ptrdiff_t i = 0; i < n; i++) {                                                                      \
            double s = fabs(code[i]), v = change[i], u = deficit[i];                                             \
            deficit_point before = loss##_at(u), at = loss##_at(u - step * v);                                   \
            double a = before.slope - before.curvature * v, gain;                                                \
            a = a > 0 ? a : 0;                                                                                   \
            a = a > LARGEST ? LARGEST : a;                                                                       \
            gain = s * loss##_gain_of(a);                                                                        \
            dual_next[i] = a;                                                                                    \
            parts[i] = s * at.value;                                                                             \
            parts[ld + i] = -s * at.slope * v;                                                                   \
            parts[2 * ld + i] = code[i] >= 0 ? gain : 0;                                                         \
            parts[3 * ld + i] = code[i] >= 0 ? 0 : gain;                                                         \
            parts[4 * ld + i] = code[i] >= 0 ? s * a : 0;                                                        \
            parts[5 * ld + i] = code[i] >= 0 ? 0 : -s * a;                                                       \
            parts[6 * ld + i] = s * at.curvature;                                                                \
            r[i] = code[i] * at.slope;                                                                           \
            curvature[i] = at.curvature > floor ? s * at.curvature : 0;                                          \
        }                                                                                                        \
    }

DEFINE_SMOOTH_ROWS(logistic, 1.0)
DEFINE_SMOOTH_ROWS(squared_hinge, 1e300)

#endif
