/* Numbers of LANE_COUNT binary problems side by side, so that one vector instruction serves all of them.
 *
 * Rows of X are shared, and what a problem has of a row or of a column stands at [row or column][lane]. Sums run over
 * rows in their order, in single precision within SHORT rows and in double across them; no lane's number enters
 * another's.
 */
#ifndef CMARGIN_LANES_H
#define CMARGIN_LANES_H

#include <stddef.h>
#include <stdint.h>

#include "../util/_simd.h"

#define LANE_COUNT 16
#define SHORT 64

/* before a loop over lanes: GCC else writes it out number by number, and then finds no vectors in it (7.0 ns an entry
 * for 0.5) */
#if defined(__GNUC__) && !defined(__clang__)
#define AS_VECTORS _Pragma("GCC unroll 1")
#else
#define AS_VECTORS
#endif

/* out = X W for rows of a CSR matrix in single precision; W (n_features, LANE_COUNT), out (n, LANE_COUNT) */
CLONES static void lane_products(const int64_t *starts, const int32_t *columns, const float *values, ptrdiff_t n,
                                 const float *W, float *restrict out) {
    for (ptrdiff_t i = 0; i < n; i++, out += LANE_COUNT) {
        float even[LANE_COUNT] = {0}, odd[LANE_COUNT] = {0};
        int64_t at = starts[i];
        const int64_t end = starts[i + 1];
        for (; at + 1 < end; at += 2) {
            const float x = values[at], z = values[at + 1];
            const float *v = W + (ptrdiff_t)columns[at] * LANE_COUNT, *w = W + (ptrdiff_t)columns[at + 1] * LANE_COUNT;
            AS_VECTORS
            for (int l = 0; l < LANE_COUNT; l++) even[l] += x * v[l];
            AS_VECTORS
            for (int l = 0; l < LANE_COUNT; l++) odd[l] += z * w[l];
        }
        if (at < end) {
            const float x = values[at], *v = W + (ptrdiff_t)columns[at] * LANE_COUNT;
            AS_VECTORS
            for (int l = 0; l < LANE_COUNT; l++) even[l] += x * v[l];
        }
        for (int l = 0; l < LANE_COUNT; l++) out[l] = even[l] + odd[l];
    }
}

/* Along scores T + t Q + b of the squared hinge, u = 1 - y (T + t Q + b), over the rows where u > 0:
 * sums (6, LANE_COUNT) of s u y, s u y Q, s, s Q, s Q^2, s u^2 */
CLONES static void lane_line(ptrdiff_t n, const float *T, const float *Q, const float *Y,
                             const float *s, const float *t, const float *b, double *sums) {
    for (int l = 0; l < 6 * LANE_COUNT; l++) sums[l] = 0;
    for (ptrdiff_t lo = 0; lo < n; lo += SHORT) {
        const ptrdiff_t hi = lo + SHORT < n ? lo + SHORT : n;
        float part[6][LANE_COUNT] = {{0}};
        for (ptrdiff_t i = lo; i < hi; i++, T += LANE_COUNT, Q += LANE_COUNT, Y += LANE_COUNT) {
            const float weight = s[i];
            for (int l = 0; l < LANE_COUNT; l++) {
                const float q = Q[l], y = Y[l], u = 1 - y * (T[l] + t[l] * q + b[l]);
                const float a = u > 0 ? weight : 0, au = a * u, auy = au * y, aq = a * q;
                part[0][l] += auy;
                part[1][l] += auy * q;
                part[2][l] += a;
                part[3][l] += aq;
                part[4][l] += aq * q;
                part[5][l] += au * u;
            }
        }
        for (int j = 0; j < 6; j++)
            for (int l = 0; l < LANE_COUNT; l++) sums[j * LANE_COUNT + l] += part[j][l];
    }
}

/* T += t Q, and R = 2 s u+ y: what multiplies the rows in the gradient */
CLONES static void lane_slopes(ptrdiff_t n, float *T, const float *Q, const float *Y, const float *s,
                               const float *t, const float *b, float *R) {
    for (ptrdiff_t i = 0; i < n; i++, T += LANE_COUNT, Q += LANE_COUNT, Y += LANE_COUNT, R += LANE_COUNT) {
        const float weight = 2 * s[i];
        for (int l = 0; l < LANE_COUNT; l++) {
            const float score = T[l] + t[l] * Q[l], y = Y[l], u = 1 - y * (score + b[l]);
            T[l] = score;
            R[l] = u > 0 ? weight * u * y : 0;
        }
    }
}

/* W += t D, G = l2 W - share G */
CLONES static void lane_gradient(ptrdiff_t m, const float *t, const float *D, float l2, float share,
                                 float *W, float *G) {
    for (ptrdiff_t j = 0; j < m; j++, D += LANE_COUNT, W += LANE_COUNT, G += LANE_COUNT)
        for (int l = 0; l < LANE_COUNT; l++) {
            W[l] += t[l] * D[l];
            G[l] = l2 * W[l] - share * G[l];
        }
}

/* sums (LANE_COUNT,) of A B */
CLONES static void lane_dots(ptrdiff_t m, const float *A, const float *B, double *sums) {
    for (int l = 0; l < LANE_COUNT; l++) sums[l] = 0;
    for (ptrdiff_t lo = 0; lo < m; lo += SHORT) {
        const ptrdiff_t hi = lo + SHORT < m ? lo + SHORT : m;
        float part[LANE_COUNT] = {0};
        for (ptrdiff_t j = lo; j < hi; j++, A += LANE_COUNT, B += LANE_COUNT)
            for (int l = 0; l < LANE_COUNT; l++) part[l] += A[l] * B[l];
        for (int l = 0; l < LANE_COUNT; l++) sums[l] += part[l];
    }
}

/* D = beta D - Z */
CLONES static void lane_turn(ptrdiff_t m, const float *beta, const float *Z, float *D) {
    for (ptrdiff_t j = 0; j < m; j++, Z += LANE_COUNT, D += LANE_COUNT)
        for (int l = 0; l < LANE_COUNT; l++) D[l] = beta[l] * D[l] - Z[l];
}

/* A = M A */
CLONES static void lane_mask(ptrdiff_t m, const float *M, float *A) {
    for (ptrdiff_t at = 0; at < m * LANE_COUNT; at++) A[at] *= M[at];
}

/* A = 0 in lanes where keep is 0, whatever stands there */
CLONES static void lane_keep(ptrdiff_t n, const float *keep, float *A) {
    for (ptrdiff_t i = 0; i < n; i++, A += LANE_COUNT)
        for (int l = 0; l < LANE_COUNT; l++) A[l] = keep[l] != 0 ? A[l] : 0;
}

/* Z = scale_j G_j */
CLONES static void lane_scale(ptrdiff_t m, const float *scale, const float *G, float *Z) {
    for (ptrdiff_t j = 0; j < m; j++, G += LANE_COUNT, Z += LANE_COUNT)
        for (int l = 0; l < LANE_COUNT; l++) Z[l] = scale[j] * G[l];
}

/* ---------------------------------------------------------------- what is certified, in double precision */

#define PROVEN_COUNT 8 /* problems side by side */

/* sums (4, PROVEN_COUNT), at scores T + b: of s u y and s where u > 0; of 2 s u+ of rows with y = 1, and of the others */
CLONES static void proven_line(ptrdiff_t n, const double *T, const float *Y, const double *s, const double *b,
                               double *sums) {
    for (int l = 0; l < 4 * PROVEN_COUNT; l++) sums[l] = 0;
    for (ptrdiff_t lo = 0; lo < n; lo += SHORT) {
        const ptrdiff_t hi = lo + SHORT < n ? lo + SHORT : n;
        double part[4][PROVEN_COUNT] = {{0}};
        for (ptrdiff_t i = lo; i < hi; i++, T += PROVEN_COUNT, Y += PROVEN_COUNT)
            for (int l = 0; l < PROVEN_COUNT; l++) {
                const double y = Y[l], u = 1 - y * (T[l] + b[l]), weight = u > 0 ? s[i] : 0, a = 2 * weight * u;
                part[0][l] += weight * u * y;
                part[1][l] += weight;
                part[2][l] += y > 0 ? a : 0;
                part[3][l] += y > 0 ? 0 : a;
            }
        for (int j = 0; j < 4; j++)
            for (int l = 0; l < PROVEN_COUNT; l++) sums[j * PROVEN_COUNT + l] += part[j][l];
    }
}

/* T = s a y of the dual variables a = 2 u+ times what is kept of a row's side (2, PROVEN_COUNT: y = 1, others);
 * sums (3, PROVEN_COUNT) of s u+^2, s a, s a^2 / 4 */
CLONES static void proven_slopes(ptrdiff_t n, double *T, const float *Y, const double *s, const double *b,
                                 const double *kept, double *sums) {
    for (int l = 0; l < 3 * PROVEN_COUNT; l++) sums[l] = 0;
    for (ptrdiff_t lo = 0; lo < n; lo += SHORT) {
        const ptrdiff_t hi = lo + SHORT < n ? lo + SHORT : n;
        double part[3][PROVEN_COUNT] = {{0}};
        for (ptrdiff_t i = lo; i < hi; i++, T += PROVEN_COUNT, Y += PROVEN_COUNT)
            for (int l = 0; l < PROVEN_COUNT; l++) {
                const double y = Y[l], slack = 1 - y * (T[l] + b[l]), u = slack > 0 ? slack : 0;
                const double a = 2 * u * (y > 0 ? kept[l] : kept[PROVEN_COUNT + l]);
                part[0][l] += s[i] * u * u;
                part[1][l] += s[i] * a;
                part[2][l] += s[i] * a * a / 4;
                T[l] = s[i] * a * y;
            }
        for (int j = 0; j < 3; j++)
            for (int l = 0; l < PROVEN_COUNT; l++) sums[j * PROVEN_COUNT + l] += part[j][l];
    }
}

#endif
