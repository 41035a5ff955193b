"""cmargin for Cython: what ``cmargin.h`` declares, for those who cimport; it says what every function does.

Compile with `cmargin.get_include()` among the include folders. Nothing here needs the GIL, no function raises.
"""

cdef extern from "cmargin.h" nogil:
    ctypedef int int32_t
    ctypedef long long int64_t

    enum: CMARGIN_VERSION

    enum:
        CMARGIN_OK, CMARGIN_BAD_ARGUMENT, CMARGIN_NO_MEMORY, CMARGIN_NOT_FINITE, CMARGIN_NOT_ASKED

    enum:
        CMARGIN_DONE, CMARGIN_LOOK, CMARGIN_ALONG, CMARGIN_PRODUCT, CMARGIN_EVALUATE

    enum:
        CMARGIN_LINE_VALUE, CMARGIN_LINE_SLOPE, CMARGIN_LOSS, CMARGIN_VALUE, CMARGIN_DUAL_POS, CMARGIN_DUAL_NEG
        CMARGIN_CURVED, CMARGIN_CURVATURE, CMARGIN_GAIN_POS, CMARGIN_GAIN_NEG, CMARGIN_SUMS

    enum:
        CMARGIN_WAITING, CMARGIN_RUNNING, CMARGIN_CONVERGED, CMARGIN_DECREMENT, CMARGIN_WIDTH, CMARGIN_STALLED
        CMARGIN_ROUNDED, CMARGIN_STOPPED, CMARGIN_MAX_TIME, CMARGIN_MAX_PASSES

    ctypedef struct cmargin_point:
        double value, slope, curvature

    ctypedef struct cmargin_facts:
        size_t size
        const char *name
        double at_zero, largest_curvature, steepest, dual_largest
        int calibrated

    ctypedef struct cmargin_request:
        size_t size
        int kind, restart, primal, new_active
        Py_ssize_t n_active
        const Py_ssize_t *active
        Py_ssize_t n_columns
        const double *direction
        double step, line_width, width, floor
        int with_block
        const double *x

    ctypedef struct cmargin_rows:
        pass

    ctypedef struct cmargin_matrix:
        size_t size
        Py_ssize_t n_rows, n_features
        int single
        const void *values
        Py_ssize_t row_stride, column_stride
        const int64_t *starts
        const int32_t *columns
        const int64_t *columns_64
        const double *code
        int intercept, loss
        double level, scale
        int n_threads

    ctypedef struct cmargin_newton:
        pass

    ctypedef struct cmargin_settings:
        size_t size
        Py_ssize_t n_features
        int intercept, penalize_intercept
        Py_ssize_t n_rows
        double total_weight
        int loss
        double l2, l1, tol, max_passes, max_time, smoothing, smoothing_decay
        int by_products
        const double *start

    ctypedef struct cmargin_result:
        size_t size
        int status
        double objective, gap, passes
        int64_t n_looks

    ctypedef struct cmargin_line:
        pass

    ctypedef struct cmargin_location:
        double at, lo, hi, last_step
        int done


cdef const char *status_text(int status) noexcept nogil

cdef int loss_named(const char *name) noexcept nogil
cdef int loss_facts(int loss, cmargin_facts *facts) noexcept nogil
cdef cmargin_point loss_at(int loss, double z, double a, double b) noexcept nogil
cdef int losses(int loss, Py_ssize_t n, const double *z, double a, double b, double *value, double *slope,
                double *curvature) noexcept nogil
cdef double dual_gain(int loss, double a) noexcept nogil

cdef int rows_new(const cmargin_matrix *matrix, cmargin_rows **out) noexcept nogil
cdef int rows_answer(cmargin_rows *rows, const cmargin_request *request, double *answer) noexcept nogil
cdef void rows_free(cmargin_rows *rows) noexcept nogil
cdef Py_ssize_t answer_size(const cmargin_request *request) noexcept nogil

cdef Py_ssize_t message_size(Py_ssize_t n_columns) noexcept nogil
cdef int request_to_message(const cmargin_request *request, void *message) noexcept nogil
cdef int request_from_message(const void *message, cmargin_request *request) noexcept nogil

cdef int settings_init(cmargin_settings *settings) noexcept nogil
cdef int newton_new(const cmargin_settings *settings, cmargin_newton **out) noexcept nogil
cdef int newton_ask(cmargin_newton *newton, cmargin_request *request) noexcept nogil
cdef int newton_tell(cmargin_newton *newton, const double *answer, Py_ssize_t size) noexcept nogil
cdef int newton_result(const cmargin_newton *newton, cmargin_result *result, double *w) noexcept nogil
cdef int newton_stop(cmargin_newton *newton) noexcept nogil
cdef void newton_free(cmargin_newton *newton) noexcept nogil

cdef int line_new(Py_ssize_t n, const double *w, const double *d, const double *weight, double s_max, double tol,
                  int max_trials, cmargin_line **out) noexcept nogil
cdef int line_tell(cmargin_line *line, double slope, double curvature) noexcept nogil
cdef double line_step(const cmargin_line *line, Py_ssize_t *hit) noexcept nogil
cdef void line_free(cmargin_line *line) noexcept nogil

cdef int location(Py_ssize_t n, const double *q, double median, double scale, double *at) noexcept nogil
cdef int location_begin(double median, double scale, cmargin_location *search) noexcept nogil
cdef int location_sums(Py_ssize_t n, const double *q, double at, double scale, double *sums) noexcept nogil
cdef int location_tell(cmargin_location *search, const double *sums, double scale) noexcept nogil

cdef double psi(double t, double level, double scale) noexcept nogil
cdef double psi_inverse(double value, double level, double scale) noexcept nogil
