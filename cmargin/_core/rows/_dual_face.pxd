"""A Newton step on the face of the dual; what is behind it stands in ``_dual_face.pyx``."""

from cmargin._core.rows._dual_rows cimport dual_rows


cdef enum face_stage:                # what the next rows are read for
    DEFICITS, GRADIENT, ITERATION, NOTHING


cdef struct face_step:
    dual_rows *rows
    double *all_a                    # (rows.n,) dual variables,
    double *w                        # (m + 1,) sum a y x
    double target                    # gap of these rows below which it ends
    double limit                     # reads after which no iteration begins
    face_stage stage
    Py_ssize_t at                    # the next row to be read
    Py_ssize_t n
    Py_ssize_t *face                 # (n,) its rows, ascending
    double *a                        # (n,) of these rows, and so on
    double *upper
    double *square
    double *r                        # slopes: slacks less ridge a
    double *z                        # r / square
    double *p                        # direction in a
    unsigned char *hit               # where the last step ended at a bound
    double *total                    # (m + 1,) sum z y x
    double *direction                # (m + 1,) sum p y x
    double rz                        # <r, z>
    double step
    bint met                         # a bound
    double gap
    double seen                      # of it, and of sum z y, so far
    double signed_sum
    int left
    int restarts
    void *memory


# False: no memory. Then `face_part` until it answers that nothing is left, or `face_end`: a is where w is
cdef bint face_begin(face_step *at, dual_rows *rows, double *a, double *w, const Py_ssize_t *active, Py_ssize_t n,
                     double target, double limit) noexcept nogil
cdef bint face_part(face_step *at, Py_ssize_t most) noexcept nogil
cdef void face_end(face_step *at) noexcept nogil
