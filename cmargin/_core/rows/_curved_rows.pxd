"""Curvature of wide rows, summed when a pass has found which rows have any."""

from cmargin._core.rows._pass_state cimport row_pass

# after the pass; then `curved_part` until it answers that nothing is left
cdef void curved_begin(row_pass *rows) noexcept nogil
cdef bint curved_part(row_pass *rows) noexcept nogil
