/* Losses that are smooth themselves, row by row: value, slope, curvature, and the dual variable that certifies a step.
 * Vectorised for the processor they run on. `_logistic.pxd` and `_squared_hinge.pxd` take the same formulas for one margin.
 */
#ifndef CMARGIN_SMOOTH_ROWS_H
#define CMARGIN_SMOOTH_ROWS_H

#include <math.h>
#include <stddef.h>

#include "_exp.h"
#include "_simd.h"

/* F(z), F'(z) <= 0, F''(z) >= 0 */
typedef struct {
    double value;
    double slope;
    double curvature;
} smooth_point;

/* F(z) = ln(1 + e^-z): SLND eq. (2) */
static inline smooth_point logistic_at(double z) {
    double e = z != z ? z : exp_negative_d(z > 0 ? -z : z), whole = 1 + e, share = 1 / whole;
    /* ln(1 + e): what 1 + e has rounded off is put back */
    smooth_point at = {log_positive(whole) + (e - (whole - 1)) * share + (z > 0 ? 0 : -z),
                       z > 0 ? -e * share : -share, e * share * share};
    return at;
}

/* G(a) = -F*(-a), the entropy of a */
static inline double logistic_gain_at(double a) {
    double b = 1 - a;
    return -a * log_positive(a > 1e-300 ? a : 1e-300) - b * log_positive(b > 1e-300 ? b : 1e-300);
}

/* F(z) = max(0, 1 - z)^2; the curvature at the kink is the left one, 2 */
static inline smooth_point squared_hinge_at(double z) {
    double u = z > 1 ? 0 : 1 - z;
    smooth_point at = {u * u, -2 * u, z <= 1 ? 2 : 0};
    return at;
}

static inline double squared_hinge_gain_at(double a) { return a - a * a / 4; }

/* F(z) = scale H(1 - z), H(u) = 0, u^2 / (2 delta) to u = delta, then u - delta / 2: the hinge that a parabola of width
 * delta rounds off. One curvature for both kinks, that of the parabola */
static inline smooth_point huberised_hinge_at(double z, double delta, double scale) {
    double u = z > 1 ? 0 : 1 - z, share = u / delta;
    share = share > 1 ? 1 : share;
    smooth_point at = {scale * share * (u - delta * share / 2), -scale * share,
                       z <= 1 && u <= delta ? scale / delta : 0};
    return at;
}

static inline double huberised_hinge_gain_at(double a, double delta, double scale) {
    return a - delta / scale * a * a / 2;
}

/* Losses of a residual u = 1 - z, whose dual variables have either sign. max(0, |u| - length)^2; both kinks have the
 * curvature outside */
static inline smooth_point squared_epsilon_insensitive_at(double z, double length) {
    double u = 1 - z, flat = u > length ? length : u, over;
    flat = flat < -length ? -length : flat;
    over = u - flat;
    smooth_point at = {over * over, -2 * over, fabs(u) >= length ? 2 : 0};
    return at;
}

static inline double squared_epsilon_insensitive_gain_at(double a, double length) {
    return a - length * fabs(a) - a * a / 4;
}

/* u^2 / 2 to |u| = length, then length |u| - length^2 / 2 */
static inline smooth_point huber_at(double z, double length) {
    double u = 1 - z, size = fabs(u), inside = size > length ? length : size;
    smooth_point at = {inside * (size - inside / 2), -copysign(inside, u), size <= length ? 1 : 0};
    return at;
}

static inline double huber_gain_at(double a, double length) {
    (void)length;
    return a - a * a / 2;
}

/* what loops over rows take besides, and hand on to the formulas, of a loss with these parameters; NONE has none */
#define NONE
#define DELTA_TAKEN double delta, double scale,
#define DELTA_GIVEN , delta, scale
#define LENGTH_TAKEN double length,
#define LENGTH_GIVEN , length

/* of a dual variable that may be any number; the compiler does not vectorise a bound of 1e300 from below */
#define NO_BOUND a

/* which side of the sums a row's dual variable is on, by the sign of s y a: that of y where a >= 0 */
#define OF_A_MARGIN signed_weight[i] >= 0
#define OF_A_RESIDUAL (signed_weight[i] >= 0) == (a >= 0)

/* What an evaluation asks of n rows at u - step change, no sums yet. For every row: parts[0] s F, [1] -s F' change, [2]
 * s G(a) where s y a >= 0, [3] the same elsewhere, [4] s y a where it is >= 0, [5] the same elsewhere, [6] s h, with the
 * dual variable a that the model before the step predicts after it; r: s y F'; curvature: s h, 0 below the floor. */
#define DEFINE_SMOOTH_ROWS(loss, LEAST, LARGEST, SIDE, TAKEN, GIVEN)                                             \
    CLONES static void loss##_rows(TAKEN double step, double floor, ptrdiff_t n, const double *restrict signed_weight, \
                                   const double *restrict slack, const double *restrict change,                  \
                                   double *restrict dual_next, double *restrict parts, ptrdiff_t ld,             \
                                   double *restrict r, double *restrict curvature) {                             \
        INDEPENDENT                                                                                              \
        for (ptrdiff_t i = 0; i < n; i++) {                                                                      \
            double s = fabs(signed_weight[i]), v = change[i], u = slack[i];                                      \
            smooth_point before = loss##_at(1 - u GIVEN), at = loss##_at(1 - (u - step * v) GIVEN);              \
            double a = -before.slope - before.curvature * v, gain;                                               \
            a = a > LEAST ? a : LEAST;                                                                           \
            a = a > LARGEST ? LARGEST : a;                                                                       \
            gain = s * loss##_gain_at(a GIVEN);                                                                  \
            dual_next[i] = a;                                                                                    \
            parts[i] = s * at.value;                                                                             \
            parts[ld + i] = s * at.slope * v;                                                                    \
            parts[2 * ld + i] = SIDE ? gain : 0;                                                                 \
            parts[3 * ld + i] = SIDE ? 0 : gain;                                                                 \
            parts[4 * ld + i] = SIDE ? s * fabs(a) : 0;                                                          \
            parts[5 * ld + i] = SIDE ? 0 : -s * fabs(a);                                                         \
            parts[6 * ld + i] = s * at.curvature;                                                                \
            r[i] = signed_weight[i] * -at.slope;                                                                 \
            curvature[i] = at.curvature > floor ? s * at.curvature : 0;                                          \
        }                                                                                                        \
    }

DEFINE_SMOOTH_ROWS(logistic, 0, 1.0, OF_A_MARGIN, NONE, NONE)
DEFINE_SMOOTH_ROWS(squared_hinge, 0, 1e300, OF_A_MARGIN, NONE, NONE)
DEFINE_SMOOTH_ROWS(huberised_hinge, 0, scale, OF_A_MARGIN, DELTA_TAKEN, DELTA_GIVEN)
DEFINE_SMOOTH_ROWS(squared_epsilon_insensitive, NO_BOUND, NO_BOUND, OF_A_RESIDUAL, LENGTH_TAKEN, LENGTH_GIVEN)
DEFINE_SMOOTH_ROWS(huber, -length, length, OF_A_RESIDUAL, LENGTH_TAKEN, LENGTH_GIVEN)

/* curvature: s h of every row at u - step change, 0 below the floor */
#define DEFINE_SMOOTH_CURVATURES(loss, TAKEN, GIVEN)                                                             \
    CLONES static void loss##_curvatures(TAKEN double step, double floor, ptrdiff_t n, const double *restrict signed_weight, \
                                         const double *restrict slack, const double *restrict change,            \
                                         double *restrict curvature) {                                           \
        INDEPENDENT                                                                                              \
        for (ptrdiff_t i = 0; i < n; i++) {                                                                      \
            double h = loss##_at(1 - (slack[i] - step * change[i]) GIVEN).curvature;                             \
            curvature[i] = h > floor ? fabs(signed_weight[i]) * h : 0;                                           \
        }                                                                                                        \
    }

DEFINE_SMOOTH_CURVATURES(logistic, NONE, NONE)
DEFINE_SMOOTH_CURVATURES(squared_hinge, NONE, NONE)
DEFINE_SMOOTH_CURVATURES(huberised_hinge, DELTA_TAKEN, DELTA_GIVEN)
DEFINE_SMOOTH_CURVATURES(squared_epsilon_insensitive, LENGTH_TAKEN, LENGTH_GIVEN)
DEFINE_SMOOTH_CURVATURES(huber, LENGTH_TAKEN, LENGTH_GIVEN)

#define AT_A_TIME 256 /* rows whose terms are held before they are summed */

/* out: sum s F(1 - u + t change), its slope and curvature in the step t */
#define DEFINE_SMOOTH_LINE(loss, TAKEN, GIVEN)                                                                   \
    CLONES static void loss##_line(TAKEN ptrdiff_t n, const double *restrict signed_weight, const double *restrict slack, \
                                   const double *restrict change, double step, double *restrict out) {           \
        double value[AT_A_TIME], slope[AT_A_TIME], curvature[AT_A_TIME];                                         \
        out[0] = out[1] = out[2] = 0;                                                                            \
        for (ptrdiff_t first = 0; first < n; first += AT_A_TIME) {                                               \
            ptrdiff_t count = n - first < AT_A_TIME ? n - first : AT_A_TIME;                                     \
            INDEPENDENT                                                                                          \
            for (ptrdiff_t k = 0; k < count; k++) {                                                              \
                double s = fabs(signed_weight[first + k]), v = change[first + k];                                \
                smooth_point at = loss##_at(1 - (slack[first + k] - step * v) GIVEN);                            \
                value[k] = s * at.value;                                                                         \
                slope[k] = s * at.slope * v;                                                                     \
                curvature[k] = s * at.curvature * v * v;                                                         \
            }                                                                                                    \
            out[0] += lane_sum(value, count);                                                                    \
            out[1] += lane_sum(slope, count);                                                                    \
            out[2] += lane_sum(curvature, count);                                                                \
        }                                                                                                        \
    }

DEFINE_SMOOTH_LINE(logistic, NONE, NONE)
DEFINE_SMOOTH_LINE(squared_hinge, NONE, NONE)
DEFINE_SMOOTH_LINE(huberised_hinge, DELTA_TAKEN, DELTA_GIVEN)
DEFINE_SMOOTH_LINE(squared_epsilon_insensitive, LENGTH_TAKEN, LENGTH_GIVEN)
DEFINE_SMOOTH_LINE(huber, LENGTH_TAKEN, LENGTH_GIVEN)

/* sum s G(a), a = part of the first dual variables and the rest of the second */
#define DEFINE_SMOOTH_GAINS(loss, TAKEN, GIVEN)                                                                  \
    CLONES static double loss##_gains(TAKEN ptrdiff_t n, const double *restrict signed_weight,                   \
                                      const double *restrict first_a, const double *restrict second_a, double part) { \
        double gain[AT_A_TIME], total = 0;                                                                       \
        for (ptrdiff_t first = 0; first < n; first += AT_A_TIME) {                                               \
            ptrdiff_t count = n - first < AT_A_TIME ? n - first : AT_A_TIME;                                     \
            INDEPENDENT                                                                                          \
            for (ptrdiff_t k = 0; k < count; k++) {                                                              \
                double a = part * first_a[first + k] + (1 - part) * second_a[first + k];                         \
                gain[k] = fabs(signed_weight[first + k]) * loss##_gain_at(a GIVEN);                              \
            }                                                                                                    \
            total += lane_sum(gain, count);                                                                      \
        }                                                                                                        \
        return total;                                                                                            \
    }

DEFINE_SMOOTH_GAINS(logistic, NONE, NONE)
DEFINE_SMOOTH_GAINS(squared_hinge, NONE, NONE)
DEFINE_SMOOTH_GAINS(huberised_hinge, DELTA_TAKEN, DELTA_GIVEN)

#endif
