"""Batches of the multinomial risk as kernels share them (see the .pyx)."""

from libc.stdint cimport int64_t

from cmargin._core.rows._rows cimport rows_view


# What threads share out: an item of the job, Z being its whitened rows; one fused function, given in both its types
cdef struct batch_job
ctypedef void (*single_work)(const batch_job *job, Py_ssize_t item, const float *Z) noexcept nogil
ctypedef void (*double_work)(const batch_job *job, Py_ssize_t item, const double *Z) noexcept nogil


cdef struct one_batch:          # n rows of Z from ``lo`` on
    Py_ssize_t lo, n
    const double *extra         # IN    (n, n_classes) scores to add, or NULL
    void *parts                 # WORK  (n_parts, batch, n_classes) shares of their scores; the first becomes G
    void *scores                # OUT   (n, n_classes) their scores, or NULL
    double step
    int64_t sample              # of the mean that the iterate after it is, 0: none
    int64_t n_samples           # of the mean before it


cdef struct batch_job:          # what threads share; void pointers are to floats or doubles, as the rows
    # the rows, and the plan of the blocks
    const rows_view *X          # read of CSR rows with a scaled tail only
    const int64_t *order        # IN    (n_visited,) the row of X that each row of Z is
    const int64_t *truth        # IN    (n_visited,) class of each
    const double *weight        # IN    (n_visited,), or NULL for ones
    const double *centre_dot    # IN    (n_visited,) <x_i, centre>, or NULL without a tail
    double centre_square        # |centre|^2
    double low_sign             # +1, or -1 where CSR rows carry the tail
    double tail_inverse         # 1 / d_{k+1} where CSR rows carry the tail, else 0
    double *loss_out            # OUT   (n_visited,) weighted loss of every row met, before the step, or inf
    double *wrong_out           # OUT   (n_visited,) weight of every row met whose class was not the best
    const void *Z               # IN    (n_visited, width) whitened rows
    double *length              # (n_visited,) z_i'z_i
    double mean_length          # m
    double most_length, least_damping
    void *parts                 # WORK  (2, n_parts, batch, n_classes) of a batch and the next
    Py_ssize_t n_parts          # 1, or one for each block of columns
    bint by_rows                # few classes: rows are multiplied in groups
    Py_ssize_t item_size        # bytes of a number of Z and of the weights
    Py_ssize_t n_visited, width, n_classes, batch
    Py_ssize_t class_block, n_class_blocks      # classes of one block, and how many such blocks there are
    Py_ssize_t column_block, n_column_blocks    # likewise columns
    Py_ssize_t group            # rows whose softmax one thread takes at a time
    # the weights
    void *U                     # INOUT (n_classes, width)
    void *U_mean                # INOUT (n_classes, width) where ``average``
    void *V                     # INOUT (n_features, n_classes), or NULL without a tail
    void *V_lag                 # INOUT (n_features, n_classes) what the mean of V lacks, or NULL
    double *shift               # INOUT (n_classes, 3), or NULL without a tail
    double *bias                # INOUT (n_classes, 2) intercept and its running mean
    bint average
    Py_ssize_t stride           # batches between two samples of the mean
    int64_t n_done              # batches before these
    # the batches
    const int64_t *batches      # IN    (n_batches,) the row of Z where each begins
    const int64_t *scored       # IN    (n_scored,) likewise
    const double *steps         # IN    (n_batches,)
    const double *offset        # IN    ((n_batches + n_scored) batch, n_classes) scores to add, or NULL for none
    void *scores_out            # OUT   (n_scored batch, n_classes) their scores, or NULL
    Py_ssize_t n_batches, n_scored, n_train
    double bias_rate
    int n_threads
    # the batches at work
    const void *weights         # IN    U or its mean, which give scores
    const double *intercepts
    one_batch now, next         # ``next`` has no rows where there is none
    # what threads do of it
    single_work of_single
    double_work of_double


cdef class Batches:
    cdef batch_job job
    cdef list rows_kept, weights_kept
    cdef set_out(self, const int64_t[::1] batches, Py_ssize_t n_train, const double[::1] step, double bias_rate)


cdef void train_batches(batch_job *job) noexcept nogil
