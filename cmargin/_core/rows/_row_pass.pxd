"""Rows in memory with the state of one binary problem, as Python asks them; see `cmargin.data.source`."""

from cmargin._core.rows._evaluate cimport evaluation_request
from cmargin._core.rows._pass_state cimport row_pass


cdef class RowBlocks:
    cdef row_pass rows
    cdef tuple keep                          # owners of the memory that the pointers see
    cdef object norms_, leverage_
    cdef object columns_, per_column_, unknowns_
    cdef object per_row, duals, active_, position_, scratch_, gradient_, diagonal_, hessian_, curvature_, sums_
    # called between two slices of a long evaluation; what it raises ends the evaluation
    cdef public object between_slices
    cdef readonly int n_threads
    cdef readonly Py_ssize_t n_rows, n_columns, n_features
    cdef int make_room(self, Py_ssize_t order) except -1
    cdef int ask_for(self, const double[::1] direction, double step, double line_width, double width, double floor,
                     int with_hessian, move) except -1
    cdef evaluation_request request_of(self, const double[::1] direction, double step, double line_width, double width,
                                       double floor, int with_hessian, move) except *
    cdef object run_parts(self)
    cdef int must_have(self, bint memory) except -1
    cdef int listen(self) except -1
    cdef object first_sum(self)
