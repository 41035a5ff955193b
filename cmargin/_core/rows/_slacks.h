/* What products with the rows do to their slacks u = t - y <w, x>, row by row, vectorised (CLONES of _simd.h). */
#ifndef CMARGIN_SLACKS_H
#define CMARGIN_SLACKS_H

#include <math.h>
#include <stddef.h>

#include "_simd.h"

/* the part of the last step that is pending is taken, and `change` becomes y <e, x> */
CLONES static void slacks_move(ptrdiff_t n, const double *restrict signed_weight, double pending,
                               const double *restrict product, double *restrict slack, double *restrict change) {
    INDEPENDENT
    for (ptrdiff_t i = 0; i < n; i++) {
        slack[i] -= pending * change[i];
        change[i] = signed_weight[i] >= 0 ? product[i] : -product[i];
    }
}

/* the line begins where that step leads */
CLONES static void slacks_settle(ptrdiff_t n, double step, double *restrict slack, double *restrict change) {
    for (ptrdiff_t i = 0; i < n; i++) {
        slack[i] -= step * change[i];
        change[i] = 0;
    }
}

/* loss_i: s max(0, t - y product_i), weight_i: s. No weight, no loss, even where a margin overflowed; NaN stays */
static inline void hinge_losses_by(const int has_offset, ptrdiff_t n, const double *restrict signed_weight,
                                   const double *restrict offset, const double *restrict product,
                                   double *restrict loss, double *restrict weight) {
    INDEPENDENT
    for (ptrdiff_t i = 0; i < n; i++) {
        double t = has_offset ? offset[i] : 1;
        double s = fabs(signed_weight[i]), u = signed_weight[i] >= 0 ? t - product[i] : t + product[i];
        weight[i] = s;
        loss[i] = s == 0 || u <= 0 ? 0 : s * u;
    }
}

/* offset NULL: t = 1 */
CLONES static void hinge_losses(ptrdiff_t n, const double *signed_weight, const double *offset, const double *product,
                                double *loss, double *weight) {
    if (offset)
        hinge_losses_by(1, n, signed_weight, offset, product, loss, weight);
    else
        hinge_losses_by(0, n, signed_weight, offset, product, loss, weight);
}

#endif
