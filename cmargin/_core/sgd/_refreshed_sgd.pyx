"""Stochastic passes where each class has an inverse Hessian of its own: rows are whitened as they are visited.

After a refresh of H a class goes on from the weights w it has: the score of a visited row is <w, x> + <u, z>, z in
the new basis and u from zero (doc/methods/slnd.md, "Estimating H anew"). The step is `class_steps`, the same as in
the plain pass.
"""

from cython cimport floating
from libc.stdint cimport int64_t

from cmargin._core.rows._rows cimport row_times
from cmargin._core.sgd._class_pass cimport ClassPass, Visits, class_pass, class_state, row_of, take_steps
from cmargin._core.sgd._class_sgd cimport class_steps
from cmargin._core.sgd._whiten cimport whiten_block, whitening
from cmargin._core.util._shapes cimport must_fit

cdef enum:
    BLOCK = 64                  # visits whitened at a time


def work_size(Py_ssize_t n_features, Py_ssize_t k, Py_ssize_t width):
    """Numbers of workspace that `run_refreshed_steps` takes for one thread."""
    return BLOCK * (n_features + k + width)


cdef struct refreshed_pass:         # void pointers as those of `class_pass`
    const double *step              # IN    (n_classes,) eta
    const void *W                   # IN    (n_classes, n_features) weights that u starts from
    const void *P                   # IN    (n_classes or 1, n_features, k) eigenvectors
    const void *factor              # IN    (n_classes or 1, k)
    const double *tail_root         # IN    (n_classes or 1,), 0: rows are not of full width
    Py_ssize_t k
    void *work                      # WORK  (n_threads, work_size) of rows, their low part, and whitened
    Py_ssize_t work_size


cdef void refreshed_class(const class_pass *by, class_state *now, int thread, floating *u) noexcept nogil:
    cdef const refreshed_pass *own = <const refreshed_pass *> by.own
    cdef Py_ssize_t group = now.c * by.inverse_stride, d = by.X.n_features, b, n, i
    cdef const floating *w = <const floating *> own.W + now.c * d
    cdef floating *dense = <floating *> own.work + thread * own.work_size
    cdef floating *low = dense + BLOCK * d
    cdef floating *out = low + BLOCK * own.k
    cdef const int64_t *visits
    cdef double[BLOCK] base
    cdef int64_t[BLOCK] rows
    cdef whitening inverse
    inverse.P = <const floating *> own.P + group * d * own.k
    inverse.factor = <const floating *> own.factor + group * own.k
    inverse.k, inverse.tail_root, inverse.centre, inverse.centre_low = own.k, own.tail_root[group], NULL, NULL
    now.step = own.step[now.c]
    for b in range((now.n_visits + BLOCK - 1) // BLOCK):
        visits, n = now.visits + b * BLOCK, min(BLOCK, now.n_visits - b * BLOCK)
        for i in range(n):
            rows[i] = row_of(visits[i])
            base[i] = row_times(by.X, rows[i], w, dense)
        whiten_block(by.X, &inverse, rows, 0, n, dense, low, out)
        class_steps(by, now, <const floating *> out, base, visits, n)


def run_refreshed_steps(
    ClassPass by not None,               # with the weights of `ClassPass.whitened`
    Visits visits not None,
    Py_ssize_t first,
    Py_ssize_t last,
    const double[::1] step,              # IN    (n_classes,), eta
    const floating[:, :, ::1] P,         # IN    (n_classes or 1, n_features, k)
    const floating[:, ::1] factor,       # IN    (n_classes or 1, k)
    const double[::1] tail_root,         # IN    (n_classes or 1,), 0: no full-width rows
    const floating[:, ::1] W,            # IN    (n_classes, n_features), the weights u starts from
    floating[:, ::1] work,               # WORK  (n_threads, `work_size`)
    int n_threads,
):
    """Take steps ``first .. last - 1`` of the visits of every class."""
    cdef refreshed_pass own
    cdef class_pass at = by.part(visits, first, last, &own)
    cdef Py_ssize_t d = at.X.n_features, k = P.shape[2], groups = at.n_classes if at.inverse_stride else 1
    must_fit(at.bias != NULL and at.item_size == sizeof(floating) and step.shape[0] == at.n_classes
             and P.shape[0] == groups and P.shape[1] == d and factor.shape[0] == groups and factor.shape[1] == k
             and tail_root.shape[0] == groups and W.shape[0] == at.n_classes and W.shape[1] == d
             and at.width in (k, d), "run_refreshed_steps")
    must_fit(work.shape[0] >= n_threads and work.shape[1] >= work_size(d, k, at.width),
             "run_refreshed_steps, workspace")
    if at.n_lists == 0:
        return
    own.step, own.W, own.P, own.factor, own.tail_root = &step[0], &W[0, 0], &P[0, 0, 0], &factor[0, 0], &tail_root[0]
    own.k, own.work, own.work_size = k, &work[0, 0], work.shape[1]
    with nogil:
        take_steps(&at, refreshed_class[float], refreshed_class[double], n_threads)
