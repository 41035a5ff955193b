/* Numbers of rows and of columns around a step along the last moves (`_dual_moves.pyx`), vectorised (CLONES of _simd.h). */
#ifndef CMARGIN_DUAL_MOVES_H
#define CMARGIN_DUAL_MOVES_H

#include <stddef.h>

#include "_simd.h"

/* out = (now - before) / part; part NULL: ones, without divisions */
CLONES static void moves_change(ptrdiff_t n, const double *restrict now, const double *restrict before,
                                const double *restrict part, double *restrict out) {
    if (part)
        for (ptrdiff_t j = 0; j < n; j++) out[j] = (now[j] - before[j]) / part[j];
    else
        for (ptrdiff_t j = 0; j < n; j++) out[j] = now[j] - before[j];
}

/* w += part o change */
CLONES static void moves_seen(ptrdiff_t n, const double *restrict part, const double *restrict change,
                              double *restrict w) {
    if (part)
        for (ptrdiff_t j = 0; j < n; j++) w[j] += part[j] * change[j];
    else
        for (ptrdiff_t j = 0; j < n; j++) w[j] += change[j];
}

/* slopes of what a adds to the bound, target - ridge a; target NULL: ones */
CLONES static void moves_slope(ptrdiff_t n, const double *restrict target, const double *restrict ridge,
                               const double *restrict a, double *restrict out) {
    if (target)
        for (ptrdiff_t i = 0; i < n; i++) out[i] = target[i] - ridge[i] * a[i];
    else
        for (ptrdiff_t i = 0; i < n; i++) out[i] = 1 - ridge[i] * a[i];
}

/* some numbers, LANES at most, for each of which there is a sum of gain and one of turned */
static inline void moves_clip_lanes(const int has_target, const ptrdiff_t some, const double *restrict signed_weight,
                                    const double *restrict target, const double *restrict upper,
                                    const double *restrict ridge, const double *restrict a, double *restrict before,
                                    double *restrict move, double *restrict beyond, double *restrict gain,
                                    double *restrict turned) {
    for (ptrdiff_t l = 0; l < some; l++) {
        const double trial = before[l] + move[l], above = trial > 0 ? trial : 0;
        const double to = above < upper[l] ? above : upper[l], step = to - a[l];
        beyond[l] = trial - to;
        move[l] = beyond[l] != 0 ? to - before[l] : move[l];
        gain[l] += step * ((has_target ? target[l] : 1) - ridge[l] * (to + a[l]) / 2);
        turned[l] += signed_weight[l] >= 0 ? step : -step;
        before[l] = to;
    }
}

static inline double moves_clip_by(const int has_target, ptrdiff_t n, const double *signed_weight,
                                   const double *target, const double *upper, const double *ridge, const double *a,
                                   double *before, double *move, double *beyond, double *balance) {
    double gain[LANES] = {0}, turned[LANES] = {0};
    for (ptrdiff_t i = 0; i < n; i += LANES) {
        const double *of = has_target ? target + i : upper + i;
        if (i + LANES <= n)
            moves_clip_lanes(has_target, LANES, signed_weight + i, of, upper + i, ridge + i, a + i, before + i,
                             move + i, beyond + i, gain, turned);
        else
            moves_clip_lanes(has_target, n - i, signed_weight + i, of, upper + i, ridge + i, a + i, before + i,
                             move + i, beyond + i, gain, turned);
    }
    *balance += fold_lanes(turned);
    return fold_lanes(gain);
}

/* before: to where the move leads, in the box; the move itself with it. beyond: by how much it would have left the box.
 * Returns what the step from a adds to the bound, and adds to the balance what it adds to sum a y. target NULL: ones,
 * in a loop of its own, as vectors under a mask load from the address 0 at the price of a fault */
CLONES static double moves_clip(ptrdiff_t n, const double *signed_weight, const double *target, const double *upper,
                                const double *ridge, const double *a, double *before, double *move, double *beyond,
                                double *balance) {
    return target ? moves_clip_by(1, n, signed_weight, target, upper, ridge, a, before, move, beyond, balance)
                  : moves_clip_by(0, n, signed_weight, target, upper, ridge, a, before, move, beyond, balance);
}

#endif
