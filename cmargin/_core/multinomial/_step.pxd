"""One truncated Newton step of the penalised multinomial objective (see the .pyx)."""

from cmargin._core.multinomial._inverse cimport Inverse
from cmargin._core.rows._softmax_rows cimport SoftmaxRows, softmax_plan

cdef enum phase:
    SYSTEM, CHANGE, LINE, GRADIENT, DONE


cdef struct newton_step:
    softmax_plan *rows
    Py_ssize_t k, p, m, n_chunks
    double l2
    bint double_products        # of the rows, else single precision
    void *scores                # INOUT (n_rows, k) of the type of the products, as the next two
    void *probs                 # INOUT
    void *change                # WORK
    void *searched              # WORK  (p, k) P or D in that type
    const double *V             # IN    (p, k)
    double *G                   # INOUT (p, k) of the objective; at the end that of the risk, ahead
    double *D                   # OUT   (p, k)
    double *R                   # WORK  residual
    double *Z                   # WORK  M^-1 R
    double *P                   # WORK  conjugate directions
    double *Q                   # WORK  (Hessian + l2) P
    double *parts               # WORK  (n_chunks, 8) sums of the chunks of rows of these
    const double *mean          # IN    (m,) of the rows, or NULL without intercept
    phase at
    Py_ssize_t block, per_call, count, most, trials
    double norm, first, enough, gap
    double solved               # of the preconditioned squared residual: then a system is
    double value                # of the objective at V
    double slope, square, product, before, t, risk
    double low, low_value, low_slope, high, high_value, high_slope, width   # the bracket of the line


cdef double SOLVED              # of the preconditioned squared residual: then a system is solved


# G = gradient + l2 W, its mean taken off; l2 / 2 |W|^2 and |gradient of W|^2 / (2 l2), as `penalised` says
cdef (double, double) add_penalty(const double *V, const double *gradient, double l2, Py_ssize_t p, Py_ssize_t k,
                                  Py_ssize_t m, const double *mean, double *G) noexcept nogil


cdef class MultinomialStep:
    cdef newton_step at
    cdef SoftmaxRows rows
    cdef Inverse inverse
    cdef object kept
    cdef readonly object direction, gradient, room

    cdef bint taken(self) noexcept nogil            # whether the step has ended
    cdef void begin_system(self) noexcept nogil     # from V, G and the probabilities there are
    cdef void next_blocks(self) noexcept nogil      # the next group of blocks of rows, and what follows from it
    cdef void end_pass(self) noexcept nogil         # what follows from all blocks
    cdef void on_hessp(self) noexcept nogil
