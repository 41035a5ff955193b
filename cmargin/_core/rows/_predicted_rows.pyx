"""Scores h = X V' + b of a linear model, and what a prediction makes of them while they are in cache.

A tile of rows is one thread's, and where it begins depends on the sizes alone: the same bits for any number of threads.
Everything is of the type of the weights, to which rows of another are converted tile by tile.
"""

import numpy as np

from cython cimport floating
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcpy

from cmargin._core.linalg._blas cimport NO_TRANS, TRANS, gemm, gemv
from cmargin._core.losses._softmax cimport softmax_rows
from cmargin._core.rows._csr_classes cimport csr_times
from cmargin._core.rows._dense_tile cimport dense_tile
from cmargin._core.rows._few_classes cimport few_pay, few_times
from cmargin._core.rows._rows cimport Rows, column_of, rows_view, sparse_dot, stored_as, value_at
from cmargin._core.rows._score_rows cimport best_of_row, finite_row, top_of_row
from cmargin._core.util._shapes cimport must_fit
from cmargin._core.util._team cimport share_out

cdef enum prediction:
    SCORES = 0          # h
    BEST = 1            # the class of the largest score
    TOP = 2             # the classes of the largest few, largest first
    SOFTMAX = 3         # exp(h_c) / sum_k exp(h_k)

cdef enum:
    TILE_NUMBERS = 1 << 18      # of a tile's rows or scores, whichever are more: 1 MB of floats
    MOST_ROWS = 512             # of a tile
    LEAST_ROWS = 16


cdef struct prediction_plan:
    rows_view X
    Py_ssize_t first            # row, and how many of them
    Py_ssize_t n_rows
    int what
    Py_ssize_t n_classes
    Py_ssize_t n_top
    Py_ssize_t tile             # rows
    bint few                    # classes, of dense rows: their products go without gemm
    bint by_columns             # dense rows that lie column by column
    Py_ssize_t copy_size        # of one thread's,
    Py_ssize_t room_size
    const void *weights         # IN    (n_classes, n_features), or NULL where those that are 0 are not stored:
    const int64_t *stored       # IN    (n_features + 1,) where the weights of a feature begin,
    const int32_t *of_class     # IN    whose each is,
    const void *stored_values   # IN    and what it is
    const void *by_feature      # IN    the same (n_features, n_classes), or NULL
    const void *bias            # IN    (n_classes,)
    void *numbers               # OUT   (n_rows, n_classes) scores or shares, or NULL; as all OUT, from `first` on
    int64_t *classes            # OUT   (n_rows, n_top), or NULL
    uint8_t *lost               # OUT   (n_rows,) whether a score is no finite number
    void *copy                  # WORK  of every thread, (tile, n_features)
    void *room                  # WORK  of every thread, (tile, n_classes) where it is needed


# ---------------------------------------------------------------- one tile

cdef void add_sparse_scores(const prediction_plan *plan, Py_ssize_t first, Py_ssize_t n, const floating *weights,
                            const floating *by_feature, floating *out) noexcept nogil:
    cdef Py_ssize_t i, c, k = plan.n_classes, m = plan.X.n_features
    cdef int64_t entry
    cdef const floating *of_column
    cdef floating value
    if k == 1 and stored_as(&plan.X, weights):
        for i in range(n):
            out[i] += <floating> sparse_dot(&plan.X, first + i, weights)
    elif by_feature != NULL:
        csr_times(&plan.X, first, n, by_feature, k, out)
    else:
        for i in range(n):
            for entry in range(plan.X.starts[first + i], plan.X.starts[first + i + 1]):
                value, of_column = <floating> value_at(&plan.X, entry), weights + column_of(&plan.X, entry)
                for c in range(k):
                    out[i * k + c] += value * of_column[c * m]


cdef void add_stored(const prediction_plan *plan, Py_ssize_t feature, floating x, floating *out) noexcept nogil:
    # out (n_classes,) += x times the weights of the feature
    cdef const floating *values = <const floating *> plan.stored_values
    cdef int64_t at
    for at in range(plan.stored[feature], plan.stored[feature + 1]):
        out[plan.of_class[at]] += x * values[at]


cdef void add_scores_of_stored(const prediction_plan *plan, Py_ssize_t first, Py_ssize_t n, floating *copy,
                               floating *out) noexcept nogil:
    # out (n, n_classes) += X V' of weights of which those that are 0 are not stored
    cdef const rows_view *X = &plan.X
    cdef Py_ssize_t k = plan.n_classes, m = X.n_features, i, j, stride = 0
    cdef const floating *tile
    cdef int64_t entry
    if X.starts != NULL:
        for i in range(n):
            for entry in range(X.starts[first + i], X.starts[first + i + 1]):
                add_stored(plan, column_of(X, entry), <floating> value_at(X, entry), out + i * k)
        return
    tile = dense_tile(X, first, 1, n, copy, &stride)
    for i in range(n):
        for j in range(m):
            if tile[i * stride + j] != 0:
                add_stored(plan, j, tile[i * stride + j], out + i * k)


cdef void tile_scores(const prediction_plan *plan, Py_ssize_t first, Py_ssize_t n, floating *copy,
                      floating *out) noexcept nogil:
    # out (n, k) = b + X V'
    cdef const rows_view *X = &plan.X
    cdef const floating *weights = <const floating *> plan.weights
    cdef const floating *tile = <const floating *> X.values + first
    cdef Py_ssize_t k = plan.n_classes, m = X.n_features, filled = 1, stride = X.column_stride
    memcpy(out, plan.bias, k * sizeof(floating))
    while filled < n:                   # twice as many with every call, as one a row takes longer than a few classes do
        memcpy(out + filled * k, out, min(filled, n - filled) * k * sizeof(floating))
        filled *= 2
    if weights == NULL:
        add_scores_of_stored(plan, first, n, copy, out)
        return
    if X.starts != NULL:
        add_sparse_scores(plan, first, n, weights, <const floating *> plan.by_feature, out)
        return
    if not plan.by_columns:
        tile = dense_tile(X, first, 1, n, copy, &stride)
    if plan.few:
        few_times(n, k, m, <floating> 1, tile, stride, weights, m, out, k)
    elif k == 1:
        if plan.by_columns:
            gemv(TRANS, m, n, 1, tile, stride, weights, 1, out)
        else:
            gemv(NO_TRANS, n, m, 1, tile, stride, weights, 1, out)
    else:
        # out += tile V'   (n, k) = (n, m) (m, k)
        gemm(TRANS if plan.by_columns else NO_TRANS, TRANS, n, k, m, 1, tile, stride, weights, m, 1, out, k)


cdef void predict_tile(const prediction_plan *plan, Py_ssize_t at, int thread, const floating *like) noexcept nogil:
    cdef Py_ssize_t k = plan.n_classes, first = at * plan.tile, i
    cdef Py_ssize_t n = min(plan.tile, plan.n_rows - first)
    cdef floating *copy = <floating *> plan.copy + thread * plan.copy_size
    cdef floating *scores
    cdef double[3 * MOST_ROWS] of_rows
    if plan.numbers != NULL:
        scores = <floating *> plan.numbers + first * k
    else:
        scores = <floating *> plan.room + thread * plan.room_size
    tile_scores(plan, plan.first + first, n, copy, scores)
    for i in range(n):
        plan.lost[first + i] = not finite_row(scores + i * k, k)
        if plan.what == BEST:
            plan.classes[first + i] = best_of_row(scores + i * k, k)
        elif plan.what == TOP and not plan.lost[first + i]:
            top_of_row(scores + i * k, k, plan.n_top, plan.classes + (first + i) * plan.n_top)
    if plan.what == SOFTMAX:
        softmax_rows(scores, n, k, NULL, scores, <floating *> NULL, of_rows, MOST_ROWS)


cdef void do_single(void *of, Py_ssize_t at, int thread) noexcept nogil:
    predict_tile(<const prediction_plan *> of, at, thread, <const float *> NULL)


cdef void do_double(void *of, Py_ssize_t at, int thread) noexcept nogil:
    predict_tile(<const prediction_plan *> of, at, thread, <const double *> NULL)


# ---------------------------------------------------------------- Python wrapper

def predict_rows(Rows rows, Py_ssize_t first, Py_ssize_t n, const floating[:, ::1] weights, by_feature,
                 const floating[::1] bias, int what, int n_threads, floating[:, ::1] numbers, int64_t[:, ::1] classes,
                 uint8_t[::1] lost, stored=None):
    """One `prediction` of rows first .. first + n - 1; in ``lost`` (n,) which have a score that is no finite number.

    ``numbers`` (n, n_classes) receives scores or shares, ``classes`` (n, how many are asked for) the classes of the
    largest; the other one has no rows. ``weights`` (n_classes, n_features); ``by_feature``: their transpose, or None,
    which a few CSR rows do without. ``stored``: starts, classes and values of a CSC matrix (n_classes, n_features) in
    place of ``weights``, which has no rows then. What rows that are lost receive has no meaning.
    """
    cdef prediction_plan plan
    cdef Py_ssize_t m = rows.view.n_features, k = bias.shape[0], n_tiles
    cdef const int64_t[::1] starts
    cdef const int32_t[::1] of_class
    cdef const floating[::1] values
    cdef const floating[:, ::1] transposed = by_feature
    cdef const floating *like = NULL
    cdef floating[::1] copy, room
    cdef bint of_classes = what == BEST or what == TOP
    must_fit(k >= 1 and m >= 1 and weights.shape[1] == m and weights.shape[0] == (k if stored is None else 0)
             and SCORES <= what <= SOFTMAX and 0 <= first <= first + n <= rows.view.n_rows and lost.shape[0] == n
             and n_threads >= 1, "predict_rows")
    must_fit(by_feature is None or (transposed.shape[0] == m and transposed.shape[1] == k), "predict_rows, by_feature")
    if of_classes:
        must_fit(classes.shape[0] == n and 1 <= classes.shape[1] <= (1 if what == BEST else k), "predict_rows, classes")
    else:
        must_fit(numbers.shape[0] == n and numbers.shape[1] == k, "predict_rows, numbers")
    if n == 0:
        return
    plan.X, plan.first, plan.n_rows = rows.view, first, n
    plan.what, plan.n_classes, plan.n_top = what, k, classes.shape[1]
    plan.by_columns = (not rows.sparse and stored is None and plan.X.row_stride == 1
                       and plan.X.column_stride >= rows.view.n_rows and m > 1 and stored_as(&plan.X, like))
    plan.few = not rows.sparse and stored is None and not plan.by_columns and few_pay(k, m, floating is float)
    plan.tile = max(LEAST_ROWS, min(MOST_ROWS, TILE_NUMBERS // max(k, 1 if rows.sparse else m)))
    n_tiles = (n + plan.tile - 1) // plan.tile
    n_threads = <int> min(n_threads, n_tiles)
    plan.copy_size = 1 if rows.sparse or plan.by_columns else min(plan.tile, n) * m
    plan.room_size = min(plan.tile, n) * k if of_classes else 1
    dtype = np.float32 if floating is float else np.float64
    copy, room = np.empty(n_threads * plan.copy_size, dtype), np.empty(n_threads * plan.room_size, dtype)
    plan.weights, plan.bias, plan.by_feature = &weights[0, 0] if stored is None else NULL, &bias[0], NULL
    plan.stored, plan.of_class, plan.stored_values = NULL, NULL, NULL
    if stored is not None:
        starts, of_class, values = stored
        must_fit(starts.shape[0] == m + 1 and of_class.shape[0] == values.shape[0] == starts[m], "predict_rows, stored")
        plan.stored = &starts[0]
        if values.shape[0] > 0:
            plan.of_class, plan.stored_values = &of_class[0], &values[0]
    plan.copy, plan.room, plan.lost, plan.numbers, plan.classes = &copy[0], &room[0], &lost[0], NULL, NULL
    if by_feature is not None:
        plan.by_feature = &transposed[0, 0]
    if of_classes:
        plan.classes = &classes[0, 0]
    else:
        plan.numbers = &numbers[0, 0]
    with nogil:
        if floating is float:
            share_out(do_single, &plan, n_tiles, n_threads)
        else:
            share_out(do_double, &plan, n_tiles, n_threads)
