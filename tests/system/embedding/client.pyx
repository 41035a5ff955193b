"""A Cython client with rows of its own: it answers SmSVM's driver by the formulas of doc/embedding.md, row by row."""

import numpy as np

from libc.math cimport fabs
from libc.string cimport memcpy, memset

from cmargin.api cimport (
    CMARGIN_ALONG, CMARGIN_CURVATURE, CMARGIN_CURVED, CMARGIN_DONE, CMARGIN_DUAL_NEG, CMARGIN_DUAL_POS,
    CMARGIN_EVALUATE, CMARGIN_GAIN_NEG, CMARGIN_GAIN_POS, CMARGIN_LINE_SLOPE, CMARGIN_LINE_VALUE, CMARGIN_LOOK,
    CMARGIN_LOSS, CMARGIN_OK, CMARGIN_PRODUCT, CMARGIN_SUMS, CMARGIN_VALUE, answer_size, cmargin_facts, cmargin_line,
    cmargin_location, cmargin_matrix, cmargin_newton, cmargin_point, cmargin_request, cmargin_result, cmargin_rows,
    cmargin_settings, dual_gain, line_free, line_new, line_step, line_tell, location, location_begin, location_sums,
    location_tell, loss_at, loss_facts, loss_named, losses, newton_ask, newton_free, newton_new, newton_result,
    newton_stop, newton_tell, psi, psi_inverse, rows_answer, rows_free, rows_new, settings_init, status_text,
)


cdef struct own_rows:
    Py_ssize_t n, p                      # the last column is the intercept's
    const double *X                      # (n, p - 1)
    const double *code
    int loss
    double largest
    double pending
    double *u                            # (n,) 1 - z, before the pending step
    double *v                            # (n,) change of z along the direction


cdef double product(const own_rows *rows, Py_ssize_t i, const double *w) noexcept nogil:
    cdef double total = w[rows.p - 1]
    cdef Py_ssize_t j
    for j in range(rows.p - 1):
        total += rows.X[i * (rows.p - 1) + j] * w[j]
    return total


cdef void add_row(const own_rows *rows, Py_ssize_t i, double c, double *total) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(rows.p - 1):
        total[j] += c * rows.X[i * (rows.p - 1) + j]
    total[rows.p - 1] += c


cdef double column(const own_rows *rows, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
    return rows.X[i * (rows.p - 1) + j] if j < rows.p - 1 else 1


cdef void evaluate(own_rows *rows, const cmargin_request *asked, double *answer) noexcept nogil:
    cdef double *gradient = answer + CMARGIN_SUMS
    cdef double *block = gradient + 3 * rows.p
    cdef Py_ssize_t i, j, k, m = 0 if not asked.with_block else rows.p if asked.n_active < 0 else asked.n_active
    cdef Py_ssize_t first, second
    cdef double s, y, u, a
    cdef cmargin_point at, before
    for i in range(rows.n):
        s, y = fabs(rows.code[i]), 1 if rows.code[i] >= 0 else -1
        if asked.restart:
            rows.u[i], rows.v[i] = 1, 0
        if asked.direction != NULL:
            rows.u[i] -= 0 if asked.restart else rows.pending * rows.v[i]
            rows.v[i] = y * product(rows, i, asked.direction)
        u = rows.u[i] - asked.step * rows.v[i]
        at, before = loss_at(rows.loss, 1 - u, 1, 1), loss_at(rows.loss, 1 - rows.u[i], 1, 1)
        a = min(max(-before.slope - before.curvature * rows.v[i], 0), rows.largest)
        answer[CMARGIN_LINE_VALUE] += s * at.value
        answer[CMARGIN_LOSS] += s * at.value
        answer[CMARGIN_VALUE] += s * at.value
        answer[CMARGIN_LINE_SLOPE] += s * at.slope * rows.v[i]
        answer[CMARGIN_CURVATURE] += s * at.curvature
        answer[CMARGIN_DUAL_POS if y > 0 else CMARGIN_DUAL_NEG] += s * a
        answer[CMARGIN_GAIN_POS if y > 0 else CMARGIN_GAIN_NEG] += s * dual_gain(rows.loss, a)
        add_row(rows, i, -s * y * at.slope, gradient)
        add_row(rows, i, s * y * a, gradient + (rows.p if y > 0 else 2 * rows.p))
        if at.curvature > asked.floor and m > 0:
            answer[CMARGIN_CURVED] += 1
            for j in range(m):
                first = j if asked.n_active < 0 else asked.active[j]
                for k in range(j, m):
                    second = k if asked.n_active < 0 else asked.active[k]
                    block[j * m + k] += s * at.curvature * column(rows, i, first) * column(rows, i, second)
    rows.pending = asked.step


cdef void answer_one(own_rows *rows, const cmargin_request *asked, double *answer) noexcept nogil:
    cdef Py_ssize_t i, j
    cdef double s, y, v
    cdef cmargin_point at
    if asked.kind == CMARGIN_LOOK:
        evaluate(rows, asked, answer)
        return
    for i in range(rows.n):
        s, y, v = fabs(rows.code[i]), 1 if rows.code[i] >= 0 else -1, rows.v[i]
        if asked.kind == CMARGIN_ALONG:
            at = loss_at(rows.loss, 1 - rows.u[i] + asked.step * v, 1, 1)
            answer[0] += s * at.value
            answer[1] += s * at.slope * v
            answer[2] += s * at.curvature * v * v
        elif asked.kind == CMARGIN_EVALUATE:
            answer[0] += s * loss_at(rows.loss, y * product(rows, i, asked.x), 1, 1).value
            for j in range(rows.p):
                answer[1 + j] += s * column(rows, i, j) ** 2
        else:
            at = loss_at(rows.loss, 1 - rows.u[i] + rows.pending * v, 1, 1)
            answer[0] += 1
            if asked.x != NULL:
                add_row(rows, i, s * at.curvature * product(rows, i, asked.x), answer + 1)
            else:
                for j in range(rows.p):
                    answer[1 + j] += s * at.curvature * column(rows, i, j) ** 2


def train(const double[:, ::1] X, const double[::1] code, str loss, double l2, double l1=0, bint by_products=False,
          int most=1000):
    """status, objective, gap, weights; without the GIL from the first question to the last."""
    cdef cmargin_settings settings
    cdef cmargin_facts facts
    cdef cmargin_result result
    cdef cmargin_request asked
    cdef cmargin_newton *newton
    cdef own_rows rows
    cdef Py_ssize_t p = X.shape[1] + 1, i, size
    cdef double[::1] u = np.empty(len(X)), v = np.empty(len(X)), w = np.empty(p), answer
    cdef int status
    settings.size, facts.size = sizeof(cmargin_settings), sizeof(cmargin_facts)
    result.size, asked.size = sizeof(cmargin_result), sizeof(cmargin_request)
    answer = np.empty(CMARGIN_SUMS + 3 * p + p * p)
    settings_init(&settings)
    rows.n, rows.p, rows.X, rows.code, rows.u, rows.v = X.shape[0], p, &X[0, 0], &code[0], &u[0], &v[0]
    rows.loss = settings.loss = loss_named(loss.encode())
    loss_facts(rows.loss, &facts)
    rows.largest = facts.dual_largest
    settings.n_features, settings.n_rows, settings.total_weight = p - 1, rows.n, np.abs(code).sum()
    settings.l2, settings.l1, settings.by_products = l2, l1, by_products
    status = newton_new(&settings, &newton)
    if status != CMARGIN_OK:
        raise ValueError(status_text(status).decode())
    with nogil:
        while True:
            status = newton_ask(newton, &asked)
            if status != CMARGIN_OK or asked.kind == CMARGIN_DONE:
                break
            size = answer_size(&asked)
            for i in range(size):
                answer[i] = 0
            answer_one(&rows, &asked, &answer[0])
            status = newton_tell(newton, &answer[0], size)
            most -= 1
            if most == 0:
                newton_stop(newton)
        newton_result(newton, &result, &w[0])
        newton_free(newton)
    if status != CMARGIN_OK:
        raise ValueError(status_text(status).decode())
    return result.status, result.objective, result.gap, np.asarray(w)


cdef int point_at(cmargin_matrix *matrix, X, const double[::1] code, str loss, int n_threads) except -1:
    cdef Py_ssize_t address
    matrix.size, matrix.n_rows, matrix.n_features = sizeof(cmargin_matrix), X.shape[0], X.shape[1]
    matrix.single, matrix.intercept, matrix.n_threads = X.dtype == np.float32, True, n_threads
    matrix.loss, matrix.code, matrix.level, matrix.scale = loss_named(loss.encode()), &code[0], 1, 1
    matrix.starts, matrix.columns, matrix.columns_64 = NULL, NULL, NULL
    address = (X if isinstance(X, np.ndarray) else X.data).ctypes.data
    matrix.values = <const void *> address
    if isinstance(X, np.ndarray):
        matrix.row_stride, matrix.column_stride = X.strides[0] // X.itemsize, X.strides[1] // X.itemsize
        return 0
    address = X.indptr.ctypes.data
    memcpy(&matrix.starts, &address, sizeof(address))
    address = X.indices.ctypes.data
    memcpy(&matrix.columns if X.indices.dtype == np.int32 else <void *> &matrix.columns_64, &address, sizeof(address))
    return 0


def train_in_memory(X, const double[::1] code, str loss, double l2, double l1=0, int n_threads=1):
    """Weights, by rows in memory, a dense array of any strides or CSR with 64-bit starts; or the status."""
    cdef cmargin_matrix matrix
    cdef cmargin_settings settings
    cdef cmargin_request asked
    cdef cmargin_rows *rows
    cdef cmargin_newton *newton
    cdef double[::1] answer, w
    cdef int status
    point_at(&matrix, X, code, loss, n_threads)
    status = rows_new(&matrix, &rows)
    if status != CMARGIN_OK:
        return status
    settings.size, asked.size = sizeof(cmargin_settings), sizeof(cmargin_request)
    settings_init(&settings)
    settings.n_features, settings.n_rows, settings.total_weight = X.shape[1], X.shape[0], np.abs(code).sum()
    settings.loss, settings.l2, settings.l1 = matrix.loss, l2, l1
    newton_new(&settings, &newton)
    w = np.empty(X.shape[1] + 1)
    answer = np.empty(CMARGIN_SUMS + 3 * len(w) + len(w) * len(w))
    with nogil:
        while True:
            status = newton_ask(newton, &asked)
            if status != CMARGIN_OK or asked.kind == CMARGIN_DONE:
                break
            status = rows_answer(rows, &asked, &answer[0])
            if status == CMARGIN_OK:
                status = newton_tell(newton, &answer[0], answer_size(&asked))
            if status != CMARGIN_OK:
                break
        newton_copy_of_weights(newton, &w[0])
        newton_free(newton)
        rows_free(rows)
    return np.asarray(w) if status == CMARGIN_OK else status


cdef void newton_copy_of_weights(cmargin_newton *newton, double *w) noexcept nogil:
    cdef cmargin_result result
    result.size = sizeof(cmargin_result)
    newton_result(newton, &result, w)


def questions_to_rows(X, const double[::1] code):
    """What rows in memory say to questions that cannot be."""
    cdef cmargin_matrix matrix
    cdef cmargin_request asked
    cdef cmargin_rows *rows
    cdef double[::1] w = np.zeros(X.shape[1] + 1), answer = np.empty(1000)
    cdef Py_ssize_t[::1] active = np.array([2, 1])
    point_at(&matrix, X, code, "hinge", 1)
    rows_new(&matrix, &rows)
    memset(&asked, 0, sizeof(asked))
    asked.size, asked.n_columns, asked.n_active = sizeof(cmargin_request), X.shape[1] + 1, -1
    asked.width = asked.line_width = asked.step = 1
    found = {}
    for name, kind in (("nothing", CMARGIN_DONE), ("line before an evaluation", CMARGIN_ALONG),
                       ("hessp before an evaluation", CMARGIN_PRODUCT), ("no direction", CMARGIN_LOOK),
                       ("no weights", CMARGIN_EVALUATE)):
        asked.kind = kind
        found[name] = rows_answer(rows, &asked, &answer[0])
    asked.kind, asked.direction, asked.n_columns = CMARGIN_LOOK, &w[0], X.shape[1]
    found["other columns"] = rows_answer(rows, &asked, &answer[0])
    asked.n_columns, asked.new_active, asked.n_active, asked.active = X.shape[1] + 1, True, 2, &active[0]
    found["not ascending"] = rows_answer(rows, &asked, &answer[0])
    asked.active = NULL
    found["no columns"] = rows_answer(rows, &asked, &answer[0])
    asked.n_active = -1
    found["sound"] = rows_answer(rows, &asked, &answer[0])
    rows_free(rows)
    return found


def refusals():
    """Status of what the driver is told that cannot be."""
    cdef cmargin_settings settings
    cdef cmargin_newton *newton
    cdef cmargin_request asked
    cdef double[::1] answer = np.full(CMARGIN_SUMS + 3 + 1, np.nan)
    settings.size = 3
    found = {"no size": settings_init(&settings)}
    settings.size, asked.size = sizeof(cmargin_settings), sizeof(cmargin_request)
    settings_init(&settings)
    found["no rows"] = newton_new(&settings, &newton)
    settings.n_rows, settings.total_weight, settings.loss = 3, 3, loss_named(b"squared")
    found["no dual"] = newton_new(&settings, &newton)
    settings.loss, settings.l2 = loss_named(b"hinge"), -1
    found["negative l2"] = newton_new(&settings, &newton)
    found["made nothing"] = newton == NULL
    settings.l2 = 1
    found["sound"] = newton_new(&settings, &newton)
    newton_ask(newton, &asked)
    found["too short"] = newton_tell(newton, &answer[0], answer_size(&asked) - 1)
    found["nan"] = newton_tell(newton, &answer[0], answer_size(&asked))
    found["kind"] = asked.kind == CMARGIN_LOOK
    newton_stop(newton)
    newton_free(newton)
    found["no loss"] = loss_named(b"no such loss")
    return found


def losses_of(str loss, const double[::1] z, double a, double b):
    cdef double[:, ::1] out = np.empty((3, len(z)))
    status = losses(loss_named(loss.encode()), len(z), &z[0], a, b, &out[0, 0], &out[1, 0], &out[2, 0])
    return status, np.asarray(out)


def least_on_a_line(const double[::1] w, const double[::1] d, const double[::1] weight, double centre):
    """argmin over s >= 0 of (s - centre)^2 / 2 + sum weight_j |w_j + s d_j|, and the component that vanishes there."""
    cdef cmargin_line *line
    cdef Py_ssize_t hit
    cdef double s
    if line_new(len(w), &w[0], &d[0], &weight[0], np.inf, 1e-10, 100, &line) != CMARGIN_OK:
        raise MemoryError
    while line_tell(line, line_step(line, NULL) - centre, 1) == 1:
        pass
    s = line_step(line, &hit)
    line_free(line)
    return s, hit


def locations(const double[::1] q, double median, double scale):
    """In one call, and by sums of two halves."""
    cdef cmargin_location search
    cdef double[:, ::1] sums = np.empty((2, 3))
    cdef double at
    cdef Py_ssize_t half = len(q) // 2
    location(len(q), &q[0], median, scale, &at)
    location_begin(median, scale, &search)
    while not search.done:
        location_sums(half, &q[0], search.at, scale, &sums[0, 0])
        location_sums(len(q) - half, &q[half], search.at, scale, &sums[1, 0])
        total = np.sum(sums, axis=0)
        sums[0, 0], sums[0, 1], sums[0, 2] = total
        location_tell(&search, &sums[0, 0], scale)
    return at, search.at


def psi_there_and_back(double t, double level, double scale):
    return psi(t, level, scale), psi_inverse(psi(t, level, scale), level, scale)
