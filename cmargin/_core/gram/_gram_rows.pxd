"""Binary problems over rows of which all products with each other are in memory; see ``_gram_rows.pyx``."""

from cmargin._core.rows._rows cimport rows_view


cdef struct gram_rows:
    Py_ssize_t n
    const double *K                  # (n, n) products of the rows, with a column of ones where that is penalised; or
    const rows_view *X               # NULL, and dense rows themselves, of which products are summed as they are listed,
    const double *mean               # (m,) seen from here,
    double constant                  # and this added
    bint free                        # whether an intercept is not penalised
    double largest                   # of K, in magnitude
    double offset                    # length of the mean from which rows are seen


cdef struct gram_problem:
    const double *signed_weight      # (n,) sample weights with the sign of the class; 0: not a row of the problem
    double cost                      # one over the sum of the weights
    double *s                        # (n,) signed dual variables a y, in units of 1 / l2
    double *z                        # (n,) K s
    double *v                        # (m,) sum s (x - mean), where there is no K
    double *hint                     # (n,) the larger, the sooner a positive row is left out of the first rounds
    double l2                        # of the last fit; 0: there was none
    double drift                     # what rounding of the sums in z may be,
    bint is_read                     # unless z was summed from the rows themselves
    double scale                     # the weights are scale sum s x, the intercept is
    double b
    double objective                 # not below the objective of these weights; its lower bound
    double dual
    int rounds                       # evaluations of all rows so far
    bint proven                      # to the tolerance asked for
    bint waits                       # s has changed, and there is no K: it goes on once z is read
    double best                      # least gap,
    int idle                         # and rounds in a row that did not fall far below it
