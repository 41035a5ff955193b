/* What predictions ask of one row of scores h (k,): whether all are numbers, the largest, the largest few.
 *
 * Vectorised for the processor they run on (see _simd.h). Of equal scores the first one is taken.
 */
#ifndef CMARGIN_SCORE_ROWS_H
#define CMARGIN_SCORE_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "_simd.h"

#define DEFINE_SCORE_ROWS(real, suffix, WIDE)                                                                    \
    /* 0 times an infinity or no number is no number, and so is every sum with it */                             \
    CLONES static int finite_row_##suffix(const real *h, ptrdiff_t k) {                                          \
        real lane[WIDE] = {0}, sum = 0;                                                                          \
        ptrdiff_t c = 0;                                                                                         \
        for (; c + WIDE <= k; c += WIDE)                                                                         \
            for (int l = 0; l < WIDE; l++) lane[l] += h[c + l] * 0;                                              \
        for (; c < k; c++) sum += h[c] * 0;                                                                      \
        for (int l = 0; l < WIDE; l++) sum += lane[l];                                                           \
        return sum == 0;                                                                                         \
    }                                                                                                            \
    CLONES static ptrdiff_t best_of_row_##suffix(const real *h, ptrdiff_t k) {                                   \
        real lane[WIDE], top = h[0];                                                                             \
        ptrdiff_t c = 0;                                                                                         \
        for (int l = 0; l < WIDE; l++) lane[l] = h[0];                                                           \
        for (; c + WIDE <= k; c += WIDE)                                                                         \
            for (int l = 0; l < WIDE; l++) lane[l] = h[c + l] > lane[l] ? h[c + l] : lane[l];                    \
        for (; c < k; c++) top = h[c] > top ? h[c] : top;                                                        \
        for (int l = 0; l < WIDE; l++) top = lane[l] > top ? lane[l] : top;                                      \
        for (c = 0; c + WIDE <= k; c += WIDE) {                                                                  \
            int found = 0;                                                                                       \
            for (int l = 0; l < WIDE; l++) found |= h[c + l] == top;                                             \
            if (found) break;                                                                                    \
        }                                                                                                        \
        while (c < k && h[c] != top) c++;                                                                        \
        return c < k ? c : 0; /* without numbers there is no largest */                                          \
    }                                                                                                            \
    /* whether class a comes after class b */                                                                    \
    static inline int after_##suffix(const real *h, int64_t a, int64_t b) {                                      \
        return h[a] < h[b] || (h[a] == h[b] && a > b);                                                           \
    }                                                                                                            \
    /* heap: the last of n classes at 0; what stands at 0 goes down to where it belongs */                       \
    static inline void settle_##suffix(const real *h, int64_t *heap, ptrdiff_t n) {                              \
        ptrdiff_t at = 0, child;                                                                                 \
        while ((child = 2 * at + 1) < n) {                                                                       \
            const int64_t moved = heap[at];                                                                      \
            if (child + 1 < n && after_##suffix(h, heap[child + 1], heap[child])) child++;                       \
            if (!after_##suffix(h, heap[child], moved)) return;                                                  \
            heap[at] = heap[child], heap[child] = moved;                                                         \
            at = child;                                                                                          \
        }                                                                                                        \
    }                                                                                                            \
    /* top (n,): the n classes of the largest scores, largest first */                                           \
    static inline void top_of_row_##suffix(const real *h, ptrdiff_t k, ptrdiff_t n, int64_t *top) {              \
        for (ptrdiff_t c = 0; c < n; c++) { /* those of the first n, as a heap */                                \
            ptrdiff_t at = c;                                                                                    \
            while (at && after_##suffix(h, c, top[(at - 1) / 2])) top[at] = top[(at - 1) / 2], at = (at - 1) / 2;\
            top[at] = c;                                                                                         \
        }                                                                                                        \
        for (ptrdiff_t c = n; c < k; c++)                                                                        \
            if (h[c] > h[top[0]]) {                                                                              \
                top[0] = c;                                                                                      \
                settle_##suffix(h, top, n);                                                                      \
            }                                                                                                    \
        for (ptrdiff_t left = n - 1; left > 0; left--) { /* the last of those that are left goes to their end */ \
            const int64_t last = top[0];                                                                         \
            top[0] = top[left], top[left] = last;                                                                \
            settle_##suffix(h, top, left);                                                                       \
        }                                                                                                        \
    }

DEFINE_SCORE_ROWS(float, f, 32)
DEFINE_SCORE_ROWS(double, d, 16)

#endif
