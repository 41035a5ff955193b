"""The table of functions that a C program gets, as ``cmargin.h`` has it; `cmargin.api` fills it."""

from cmargin.api cimport (
    cmargin_facts, cmargin_line, cmargin_location, cmargin_matrix, cmargin_newton, cmargin_point, cmargin_request,
    cmargin_result, cmargin_rows, cmargin_settings,
)


cdef extern from "cmargin.h" nogil:
    ctypedef struct cmargin_table:
        int version
        size_t size
        const char *(*status_text)(int) noexcept
        int (*loss_named)(const char *) noexcept
        int (*loss_facts)(int, cmargin_facts *) noexcept
        cmargin_point (*loss_at)(int, double, double, double) noexcept
        int (*losses)(int, Py_ssize_t, const double *, double, double, double *, double *, double *) noexcept
        double (*dual_gain)(int, double) noexcept
        int (*rows_new)(const cmargin_matrix *, cmargin_rows **) noexcept
        int (*rows_answer)(cmargin_rows *, const cmargin_request *, double *) noexcept
        void (*rows_free)(cmargin_rows *) noexcept
        Py_ssize_t (*answer_size)(const cmargin_request *) noexcept
        Py_ssize_t (*message_size)(Py_ssize_t) noexcept
        int (*request_to_message)(const cmargin_request *, void *) noexcept
        int (*request_from_message)(const void *, cmargin_request *) noexcept
        int (*settings_init)(cmargin_settings *) noexcept
        int (*newton_new)(const cmargin_settings *, cmargin_newton **) noexcept
        int (*newton_ask)(cmargin_newton *, cmargin_request *) noexcept
        int (*newton_tell)(cmargin_newton *, const double *, Py_ssize_t) noexcept
        int (*newton_result)(const cmargin_newton *, cmargin_result *, double *) noexcept
        int (*newton_stop)(cmargin_newton *) noexcept
        void (*newton_free)(cmargin_newton *) noexcept
        int (*line_new)(Py_ssize_t, const double *, const double *, const double *, double, double, int,
                        cmargin_line **) noexcept
        int (*line_tell)(cmargin_line *, double, double) noexcept
        double (*line_step)(const cmargin_line *, Py_ssize_t *) noexcept
        void (*line_free)(cmargin_line *) noexcept
        int (*location)(Py_ssize_t, const double *, double, double, double *) noexcept
        int (*location_begin)(double, double, cmargin_location *) noexcept
        int (*location_sums)(Py_ssize_t, const double *, double, double, double *) noexcept
        int (*location_tell)(cmargin_location *, const double *, double) noexcept
        double (*psi)(double, double, double) noexcept
        double (*psi_inverse)(double, double, double) noexcept
