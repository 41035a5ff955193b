/* A loss of a residual u with a kink on either side of 0, as two smoothed hinges (_smoothed_hinge.h), row by row:
 *
 *     F(u) = up h(u - e) + down h(-u - e),     h(u) = max(0, u), up + down > 0, e >= 0
 *
 * A row with target t has one dual variable, a = up a_up - down a_down, -down <= a <= up, and adds t a - e |a| to the
 * dual value.
 */
#ifndef CMARGIN_TWO_KINKS_H
#define CMARGIN_TWO_KINKS_H

#include "_smoothed_hinge.h"

typedef struct {
    double up;
    double down;
    double e;
} two_kinks;

typedef struct {
    hinge_point up;      /* at u - e */
    hinge_point down;    /* at -u - e */
} kinks_point;

/* ``mirrored``: e = 0, and one root serves both */
static inline kinks_point kinks_at(const int mirrored, double e, double u, double width) {
    kinks_point at;
    at.up = hinge_at(u - e, width);
    if (mirrored) {
        at.down = at.up;
        at.down.u = -u;
    } else
        at.down = hinge_at(-u - e, width);
    return at;
}

static inline double kinks_value(const two_kinks *of, kinks_point at) {
    return of->up * hinge_value(at.up) + of->down * hinge_value(at.down);
}

static inline double kinks_slope(const two_kinks *of, kinks_point at) {
    return of->up * hinge_slope(at.up) - of->down * hinge_slope(at.down);
}

static inline double kinks_primal_curvature(const two_kinks *of, kinks_point at, double width) {
    return of->up * primal_curvature(at.up, width) + of->down * primal_curvature(at.down, width);
}

/* a_up and a_down of a row's one dual variable a. Both hinges have a part in it where the width is no smaller than e:
 *
 *     a_up   = a+ / up   + 2 m down / (up + down) rest,       rest = 1 - a+ / up - a- / down
 *     a_down = a- / down + 2 m up   / (up + down) rest,       m = (1 - e / sqrt(width^2 + e^2)) / 2
 *
 * which is exact for e = 0, for widths much smaller than e, and at u = 0 if up = down. */
typedef struct {
    double by_up;        /* 1 / up, 0 without that hinge */
    double by_down;
    double with_up;      /* 2 m down / (up + down) */
    double with_down;
} kinks_shares;

static inline kinks_shares shares_at(const two_kinks *of, double width) {
    double both = (1 - of->e / sqrt(width * width + of->e * of->e)) / (of->up + of->down);
    kinks_shares shares = {of->up > 0 ? 1 / of->up : 0, of->down > 0 ? 1 / of->down : 0,
                           both * of->down, both * of->up};
    return shares;
}

static inline double share_up(const kinks_shares *of, double a) {
    double up = positive(a) * of->by_up, down = positive(-a) * of->by_down;
    return at_most_1(up + of->with_up * positive(1 - up - down));
}

static inline double share_down(const kinks_shares *of, double a) {
    double up = positive(a) * of->by_up, down = positive(-a) * of->by_down;
    return at_most_1(down + of->with_down * positive(1 - up - down));
}

static inline double kinks_dual_curvature(const two_kinks *of, const kinks_shares *shares, double a, kinks_point at) {
    return of->up * dual_curvature(share_up(shares, a), at.up)
         + of->down * dual_curvature(share_down(shares, a), at.down);
}

/* As `hinge_rows_by`. parts[2] is s F(u) without smoothing; parts[4] and [5] are the positive and the negative s y
 * a_hat: with y = 1 they tell the signs of a_hat. */
IN_CLONES void two_kinks_rows_by(const int primal, const int mirrored, const hinge_step *at, const two_kinks *of,
                                 ptrdiff_t n, const double *restrict signed_weight, const double *restrict slack,
                                 const double *restrict change, const double *restrict dual,
                                 double *restrict dual_next, double *restrict parts, ptrdiff_t ld,
                                 double *restrict r, double *restrict curvature) {
    const double step = at->step, w0 = at->line_width, w1 = at->width, floor = at->floor;
    const double keep = at_most_1(step);
    const two_kinks kinks = *of;
    const kinks_shares shares0 = shares_at(of, w0), shares1 = shares_at(of, w1);
    INDEPENDENT
    for (ptrdiff_t i = 0; i < n; i++) {
        double s = fabs(signed_weight[i]), v = change[i], u0 = slack[i], u1 = u0 - step * v;
        kinks_point before = kinks_at(mirrored, kinks.e, u0, w0), line = kinks_at(mirrored, kinks.e, u1, w0);
        kinks_point next = kinks_at(mirrored, kinks.e, u1, w1);
        double up0 = hinge_slope(before.up), down0 = hinge_slope(before.down), slope1 = kinks_slope(&kinks, next);
        double a0 = primal ? kinks.up * up0 - kinks.down * down0 : dual[i];
        double h_up = dual_curvature(primal ? up0 : share_up(&shares0, a0), before.up);
        double h_down = dual_curvature(primal ? down0 : share_down(&shares0, a0), before.down);
        double a_hat = kinks.up * at_most_1(positive(up0 - h_up * v))
                     - kinks.down * at_most_1(positive(down0 + h_down * v));
        double a1 = primal ? slope1 : a0 + keep * (a_hat - a0);
        double h = primal ? kinks_primal_curvature(&kinks, next, w1)
                          : kinks_dual_curvature(&kinks, &shares1, a1, next);
        dual_next[i] = a1;
        parts[i] = s * kinks_value(&kinks, line);
        parts[ld + i] = -s * kinks_slope(&kinks, line) * v;
        parts[2 * ld + i] = s * (kinks.up * positive(u1 - kinks.e) + kinks.down * positive(-u1 - kinks.e));
        parts[3 * ld + i] = s * kinks_value(&kinks, next);
        parts[4 * ld + i] = positive(signed_weight[i] * a_hat);
        parts[5 * ld + i] = -positive(-signed_weight[i] * a_hat);
        parts[6 * ld + i] = s * h;
        r[i] = signed_weight[i] * slope1;
        curvature[i] = h > floor ? s * h : 0;
    }
}

CLONES static void two_kinks_rows(const hinge_step *at, const two_kinks *of, ptrdiff_t n, const double *signed_weight,
                                  const double *slack, const double *change, const double *dual, double *dual_next,
                                  double *parts, ptrdiff_t ld, double *r, double *curvature) {
    if (at->primal && of->e == 0)
        two_kinks_rows_by(1, 1, at, of, n, signed_weight, slack, change, dual, dual_next, parts, ld, r, curvature);
    else if (at->primal)
        two_kinks_rows_by(1, 0, at, of, n, signed_weight, slack, change, dual, dual_next, parts, ld, r, curvature);
    else if (of->e == 0)
        two_kinks_rows_by(0, 1, at, of, n, signed_weight, slack, change, dual, dual_next, parts, ld, r, curvature);
    else
        two_kinks_rows_by(0, 0, at, of, n, signed_weight, slack, change, dual, dual_next, parts, ld, r, curvature);
}

/* weight: s h at u = slack - pending change, as the evaluations sum it, 0 below the floor. ``dual`` NULL: from the
 * primal point alone. */
IN_CLONES void two_kinks_curvatures_by(const int primal, const int mirrored, const two_kinks *of, double width,
                                       double pending, double floor, ptrdiff_t n,
                                       const double *restrict signed_weight, const double *restrict slack,
                                       const double *restrict change, const double *restrict dual,
                                       double *restrict weight) {
    const two_kinks kinks = *of;
    const kinks_shares shares = shares_at(of, width);
    INDEPENDENT
    for (ptrdiff_t i = 0; i < n; i++) {
        kinks_point at = kinks_at(mirrored, kinks.e, slack[i] - pending * change[i], width);
        double h = primal ? kinks_primal_curvature(&kinks, at, width)
                          : kinks_dual_curvature(&kinks, &shares, dual[i], at);
        weight[i] = h > floor ? h * fabs(signed_weight[i]) : 0;
    }
}

CLONES static void two_kinks_curvatures(const two_kinks *of, double width, double pending, double floor, ptrdiff_t n,
                                        const double *signed_weight, const double *slack, const double *change,
                                        const double *dual, double *weight) {
    if (!dual && of->e == 0)
        two_kinks_curvatures_by(1, 1, of, width, pending, floor, n, signed_weight, slack, change, dual, weight);
    else if (!dual)
        two_kinks_curvatures_by(1, 0, of, width, pending, floor, n, signed_weight, slack, change, dual, weight);
    else if (of->e == 0)
        two_kinks_curvatures_by(0, 1, of, width, pending, floor, n, signed_weight, slack, change, dual, weight);
    else
        two_kinks_curvatures_by(0, 0, of, width, pending, floor, n, signed_weight, slack, change, dual, weight);
}

/* out: sum s F(u - t change), its slope and curvature in the step t */
IN_CLONES void two_kinks_line_by(const int mirrored, const two_kinks *of, ptrdiff_t n,
                                 const double *restrict signed_weight, const double *restrict slack,
                                 const double *restrict change, double step, double width, double *restrict out) {
    double value[LANES] = {0}, slope[LANES] = {0}, curvature[LANES] = {0};
    const two_kinks kinks = *of;
    ptrdiff_t i = 0;
    for (; i < n; i += LANES) {
        int count = n - i < LANES ? (int)(n - i) : LANES;
        for (int l = 0; l < count; l++) {
            double s = fabs(signed_weight[i + l]), v = change[i + l];
            kinks_point at = kinks_at(mirrored, kinks.e, slack[i + l] - step * v, width);
            value[l] += s * kinks_value(&kinks, at);
            slope[l] -= s * kinks_slope(&kinks, at) * v;
            curvature[l] += s * kinks_primal_curvature(&kinks, at, width) * v * v;
        }
    }
    out[0] = fold_lanes(value);
    out[1] = fold_lanes(slope);
    out[2] = fold_lanes(curvature);
}

CLONES static void two_kinks_line(const two_kinks *of, ptrdiff_t n, const double *signed_weight, const double *slack,
                                  const double *change, double step, double width, double *out) {
    if (of->e == 0)
        two_kinks_line_by(1, of, n, signed_weight, slack, change, step, width, out);
    else
        two_kinks_line_by(0, of, n, signed_weight, slack, change, step, width, out);
}

#endif
