"""Walkers side by side over rows in memory: each steps through batches of its own, and the mean joins their weights.

In a round every one of R walkers begins at the weights there are and takes as many batches. What they have moved by is
then averaged, with steps R times as long as one walker's alone would be:

    U += (1/R) sum_r (U_r - U),     and so the mean of the iterates and the intercepts

A walker is one thread's work, a block of the mean too. How many there are does not depend on threads, nor do the bits.
"""

from cython cimport floating
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from cmargin._core.sgd._softmax_sgd cimport Batches, batch_job, train_batches
from cmargin._core.util._shapes cimport must_fit
from cmargin._core.util._team cimport share_out

cdef enum:
    MOST = 16                   # walkers
    PIECE = 256                 # numbers whose mean one thread takes at a time


cdef struct round_of_walkers:   # what threads share; void pointers are to floats or doubles, as the rows
    batch_job *all              # whose weights are those that a round begins and ends with
    batch_job[MOST] walker
    Py_ssize_t n_walkers, n_numbers             # numbers of U
    Py_ssize_t n_pieces         # of U, and of its mean


cdef void walk_alone(void *of, Py_ssize_t r, int thread) noexcept nogil:
    cdef round_of_walkers *at = <round_of_walkers *> of
    cdef batch_job *job = &at.walker[r]
    memcpy(job.U, at.all.U, at.n_numbers * job.item_size)
    if job.average:
        memcpy(job.U_mean, at.all.U_mean, at.n_numbers * job.item_size)
    memcpy(job.bias, at.all.bias, 2 * job.n_classes * sizeof(double))
    train_batches(job)


cdef void mean_of_numbers(const round_of_walkers *at, bint of_mean, Py_ssize_t lo, Py_ssize_t n, floating *out) \
        noexcept nogil:
    cdef double[PIECE] total
    cdef const floating *one
    cdef Py_ssize_t i, r
    for i in range(n):
        total[i] = 0
    for r in range(at.n_walkers):
        one = <const floating *> (at.walker[r].U_mean if of_mean else at.walker[r].U) + lo
        for i in range(n):
            total[i] += one[i]
    for i in range(n):
        out[lo + i] = <floating> (total[i] / at.n_walkers)


cdef void mean_of_intercepts(const round_of_walkers *at) noexcept nogil:
    cdef Py_ssize_t c, r
    cdef double total
    for c in range(2 * at.all.n_classes):
        total = 0
        for r in range(at.n_walkers):
            total += at.walker[r].bias[c]
        at.all.bias[c] = total / at.n_walkers


cdef void join(void *of, Py_ssize_t piece, int thread) noexcept nogil:
    cdef const round_of_walkers *at = <const round_of_walkers *> of
    cdef bint of_mean = piece >= at.n_pieces
    cdef Py_ssize_t lo = (piece - of_mean * at.n_pieces) * PIECE
    cdef Py_ssize_t n = min(<Py_ssize_t> PIECE, at.n_numbers - lo)
    cdef void *out = at.all.U_mean if of_mean else at.all.U
    if at.all.item_size == sizeof(float):
        mean_of_numbers(at, of_mean, lo, n, <float *> out)
    else:
        mean_of_numbers(at, of_mean, lo, n, <double *> out)
    if piece == 0:
        mean_of_intercepts(at)


cdef void walk_rounds(round_of_walkers *at, Py_ssize_t n_batches, Py_ssize_t n_round, int n_threads) noexcept nogil:
    # rounds of ``n_round`` batches a walker; of the last one batches are dealt out as evenly as can be
    cdef Py_ssize_t r, left, first = 0, R = at.n_walkers
    cdef batch_job *job
    while first < n_batches:
        left = min(n_round * R, n_batches - first)
        for r in range(R):
            job = &at.walker[r]
            job.batches, job.steps = at.all.batches + first + left * r // R, at.all.steps + first + left * r // R
            job.n_batches = left * (r + 1) // R - left * r // R
            job.n_done = at.all.n_done
        share_out(walk_alone, at, R, n_threads)
        share_out(join, at, (1 + at.all.average) * at.n_pieces, n_threads)
        first += left
        at.all.n_done += (left + R - 1) // R


def walk(
    Batches of not None,                     # of dense rows, with the `weights` that the first round begins with
    const int64_t[::1] batches,              # IN    (n_batches,), as of `Batches.run`
    Py_ssize_t n_train,
    const double[::1] step,                  # IN    (n_batches,), of a walker
    double bias_rate,
    Py_ssize_t n_round,                      # batches of a walker between two means
    floating[:, :, ::1] homes,               # WORK  (n_walkers, 2, n_classes width), weights and their running mean
    double[:, ::1] intercepts,               # WORK  (n_walkers, 2 n_classes)
    floating[:, ::1] parts,                  # WORK  (n_walkers, size of the parts that ``of`` was given)
    int n_threads,
):
    """Step through the batches, those of a round by all walkers at once; call with BLAS held to one thread.

    Returns the number of batches that a walker has taken.
    """
    cdef round_of_walkers at
    cdef batch_job *job = &of.job
    cdef Py_ssize_t r, R = homes.shape[0], k = job.n_classes
    cdef int64_t before = job.n_done
    must_fit(job.tail_inverse == 0 and job.item_size == sizeof(floating) and 0 < R <= MOST and n_round > 0, "walk")
    must_fit(homes.shape[1] == 2 and homes.shape[2] == k * job.width > 0 and intercepts.shape[0] == R
             and intercepts.shape[1] == 2 * k and parts.shape[0] == R
             and parts.shape[1] == 2 * job.n_parts * job.batch * k, "walk, workspace")
    of.set_out(batches, n_train, step, bias_rate)
    at.all, at.n_walkers, at.n_numbers = job, R, k * job.width
    at.n_pieces = (at.n_numbers + PIECE - 1) // PIECE
    for r in range(R):
        at.walker[r] = job[0]
        at.walker[r].U, at.walker[r].U_mean = &homes[r, 0, 0], &homes[r, 1, 0] if job.average else NULL
        at.walker[r].bias, at.walker[r].parts, at.walker[r].n_threads = &intercepts[r, 0], &parts[r, 0], 1
    with nogil:
        walk_rounds(&at, batches.shape[0], n_round, n_threads)
    of.weights_kept = None
    return job.n_done - before
