/* The smoothed hinge, row by row: value, slope, curvature, and the dual variable that certifies a step. SmSVM.
 * Vectorised for the processor they run on; orders of addition are written down (see _simd.h).
 */
#ifndef CMARGIN_HINGE_ROWS_H
#define CMARGIN_HINGE_ROWS_H

#include <math.h>
#include <stddef.h>

#include "_simd.h"

/* loops with constants of their callers, which are CLONES: left to itself the compiler makes one function of them, for
 * the baseline processor */
#if defined(__GNUC__)
#define IN_CLONES __attribute__((always_inline)) static inline
#else
#define IN_CLONES static inline
#endif

/* written out: the compiler vectorises these, and not fmax and fmin */
static inline double positive(double x) { return x > 0 ? x : 0; }
static inline double at_most_1(double x) { return x > 1 ? 1 : x; }

/* Smoothed hinge in the slack u = 1 - z:   F = (u + root) / 2, a = F', root = sqrt(width^2 + u^2)    SmSVM eq. (6)
 * All that is asked of it comes from two quotients. (root - |u|) / 2 is written width^2 / (2 (root + |u|)): no
 * cancellation far from the hinge. */
typedef struct {
    double u;
    double inverse;      /* 1 / root */
    double above;        /* (root - |u|) / 2 = F - max(0, u) */
} hinge_point;

static inline hinge_point hinge_at(double u, double width) {
    double root = sqrt(width * width + u * u);
    hinge_point at = {u, 1 / root, width * width / (2 * (root + fabs(u)))};
    return at;
}

static inline double hinge_value(hinge_point at) { return positive(at.u) + at.above; }

static inline double hinge_slope(hinge_point at) {
    double tail = at.above * at.inverse;
    return at.u > 0 ? 1 - tail : tail;
}

static inline double primal_curvature(hinge_point at, double width) {
    double share = width * at.inverse;
    return share * share * at.inverse / 2;
}

/* Curvature with the dual variable a of the row as an unknown of its own: 2 a root = root + u, linearised in a and u,
 * gives h = (1 - (2a - 1) u / root) / (2 root), which is >= 0 for 0 <= a <= 1, and F''(u) at a = F'(u). A Newton step
 * stays good over a change of u many widths long. (Chan, Golub, Mulet 1999 did so for total variation.) */
static inline double dual_curvature(double a, hinge_point at) {
    return positive(1 - (2 * a - 1) * at.u * at.inverse) * at.inverse / 2;
}

typedef struct {
    double step;         /* of the Newton step: rows are evaluated at slack - step * change */
    double line_width;   /* width of the step, before and along the line */
    double width;        /* width of the next Newton step */
    double floor;        /* smaller curvature counts as 0 */
    int primal;          /* forget the dual variables: a = F'(u) */
    int tangents;        /* and a_hat = F'(next): no step was predicted */
} hinge_step;

/* What an evaluation asks of n rows, no sums yet. For every row: parts[0] s F(line), [1] -s F'(line) change, [2] s
 * max(0, u), [3] s F(next), [4] s a_hat for y = +1, [5] -s a_hat for y = -1, [6] s h; r: s y F'(next); curvature: s h,
 * 0 below the floor. */
IN_CLONES void hinge_rows_by(const int primal, const int tangents, const hinge_step *at, ptrdiff_t n,
                             const double *restrict signed_weight,
                             const double *restrict slack, const double *restrict change,
                             const double *restrict dual, double *restrict dual_next, double *restrict parts,
                             ptrdiff_t ld, double *restrict r, double *restrict curvature) {
    const double step = at->step, w0 = at->line_width, w1 = at->width, floor = at->floor;
    const double keep = at_most_1(step); /* the dual variable goes as far as the primal one */
    INDEPENDENT
    for (ptrdiff_t i = 0; i < n; i++) {
        double s = fabs(signed_weight[i]), v = change[i], u0 = slack[i], u1 = u0 - step * v;
        hinge_point before = hinge_at(u0, w0), line = hinge_at(u1, w0), next = hinge_at(u1, w1);
        double slope0 = hinge_slope(before), slope1 = hinge_slope(next);
        double a0 = primal ? slope0 : dual[i];
        double a_hat = tangents ? slope1 : at_most_1(positive(slope0 - dual_curvature(a0, before) * v));
        double a1 = primal ? slope1 : a0 + keep * (a_hat - a0);
        double h = primal ? primal_curvature(next, w1) : dual_curvature(a1, next);
        dual_next[i] = a1;
        parts[i] = s * hinge_value(line);
        parts[ld + i] = -s * hinge_slope(line) * v;
        parts[2 * ld + i] = s * positive(u1);
        parts[3 * ld + i] = s * hinge_value(next);
        parts[4 * ld + i] = positive(signed_weight[i]) * a_hat;
        parts[5 * ld + i] = -positive(-signed_weight[i]) * a_hat;
        parts[6 * ld + i] = s * h;
        r[i] = signed_weight[i] * slope1;
        curvature[i] = h > floor ? s * h : 0;
    }
}

CLONES static void hinge_rows(const hinge_step *at, ptrdiff_t n, const double *signed_weight, const double *slack,
                              const double *change, const double *dual, double *dual_next, double *parts,
                              ptrdiff_t ld, double *r, double *curvature) {
    if (at->tangents)
        hinge_rows_by(1, 1, at, n, signed_weight, slack, change, dual, dual_next, parts, ld, r, curvature);
    else if (at->primal)
        hinge_rows_by(1, 0, at, n, signed_weight, slack, change, dual, dual_next, parts, ld, r, curvature);
    else
        hinge_rows_by(0, 0, at, n, signed_weight, slack, change, dual, dual_next, parts, ld, r, curvature);
}

/* out: sum s F(u - t change), its slope and curvature in the step t */
CLONES static void hinge_line(ptrdiff_t n, const double *restrict signed_weight, const double *restrict slack,
                              const double *restrict change, double step, double width, double *restrict out) {
    double value[LANES] = {0}, slope[LANES] = {0}, curvature[LANES] = {0};
    ptrdiff_t i = 0;
    for (; i < n; i += LANES) {
        int count = n - i < LANES ? (int)(n - i) : LANES;
        for (int l = 0; l < count; l++) {
            double s = fabs(signed_weight[i + l]), v = change[i + l];
            hinge_point at = hinge_at(slack[i + l] - step * v, width);
            value[l] += s * hinge_value(at);
            slope[l] -= s * hinge_slope(at) * v;
            curvature[l] += s * primal_curvature(at, width) * v * v;
        }
    }
    out[0] = fold_lanes(value);
    out[1] = fold_lanes(slope);
    out[2] = fold_lanes(curvature);
}


#endif
