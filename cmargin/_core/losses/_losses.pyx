"""The losses of ``_losses.pxd``, array by array, for Python callers: tests, posteriors, diagnostics."""

from libc.math cimport NAN, isfinite, isnan

from cmargin._core.losses._losses cimport N_LOSSES, dual_gain, facts_of, has_dual, point, point_loss
from cmargin._core.losses._point cimport loss_facts, loss_of, loss_t
from cmargin._core.util._shapes cimport must_fit


cdef loss_facts facts(int id, double a=1, double b=1) noexcept nogil:
    cdef loss_t loss = loss_of(id, a, b)
    return facts_of(&loss)


def facts_at(int loss, double a=1.0, double b=1.0):
    """What a loss with these parameters says of itself; `FACTS` has what it says at 1."""
    return facts(loss, a, b)


FACTS = {facts(loss).name.decode(): facts(loss) for loss in range(N_LOSSES)}
LOSS_IDS = {name: loss for loss, name in enumerate(FACTS)}
CALIBRATED = tuple(name for name in FACTS if FACTS[name]["calibrated"])
AT_ZERO, LARGEST_CURVATURE, STEEPEST = (
    {name: facts[fact] for name, facts in FACTS.items() if not isnan(facts[fact])}
    for fact in ("at_zero", "largest_curvature", "steepest"))


cdef loss_t known(int loss, double a, double b) except *:
    if loss < 0 or loss >= N_LOSSES:
        raise ValueError(f"unknown loss id {loss}")
    return loss_of(loss, a, b)


def evaluate(int loss, const double[::1] margins, double[::1] value_out, double[::1] slope_out,
             double[::1] curvature_out, double a=1.0, double b=1.0):
    """Value, slope and curvature of a loss at every margin; all arrays (n,). ``a``, ``b``: see `point_loss`."""
    cdef Py_ssize_t i
    cdef loss_t of = known(loss, a, b)
    cdef point at
    must_fit(margins.shape[0] == value_out.shape[0] == slope_out.shape[0] == curvature_out.shape[0], "evaluate")
    with nogil:
        for i in range(margins.shape[0]):
            at = point_loss(&of, margins[i])
            value_out[i] = at.value
            slope_out[i] = at.slope
            curvature_out[i] = at.curvature


def mean_losses(int loss, const double[:, ::1] margins, const double[::1] weight, double a, const double[::1] b,
                double[::1] mean_out):
    """Mean loss of the margins (n_problems, n) of every problem; NaN where a margin is not finite.

    ``weight``: (n,) or (0,) for ones; ``a``, ``b`` (n_problems,): see `point_loss`.
    """
    cdef Py_ssize_t c, i, n = margins.shape[1]
    cdef double total, weights
    cdef loss_t of = known(loss, a, NAN)
    must_fit(n > 0 and weight.shape[0] in (0, n) and b.shape[0] == mean_out.shape[0] == margins.shape[0],
             "mean_losses")
    with nogil:
        for c in range(margins.shape[0]):
            total = weights = 0
            of.b = b[c]
            for i in range(n):
                if not isfinite(margins[c, i]):
                    total = NAN
                total += (weight[i] if weight.shape[0] > 0 else 1) * point_loss(&of, margins[c, i]).value
                weights += weight[i] if weight.shape[0] > 0 else 1
            mean_out[c] = total / weights


def posterior(int loss, const double[::1] scores, double[::1] posterior_out):
    """f(score) = 1 + F'(score), clipped to [0, 1], of a calibrated loss (BSN eq. 3-4); both arrays (n,)."""
    cdef Py_ssize_t i
    cdef loss_t of = known(loss, NAN, NAN)
    cdef double f
    if not facts_of(&of).calibrated:
        raise ValueError(f"only a calibrated loss has a posterior: {', '.join(CALIBRATED)}")
    must_fit(scores.shape[0] == posterior_out.shape[0], "posterior")
    with nogil:
        for i in range(scores.shape[0]):
            f = 1 + point_loss(&of, scores[i]).slope
            posterior_out[i] = f if 0 <= f <= 1 else (NAN if f != f else (1.0 if f > 1 else 0.0))


def gains(int loss, const double[::1] a, double[::1] gain_out, double parameter=1.0):
    """-F*(-a), what a dual variable adds to the bound (see `dual_gain`); both arrays (n,).

    ``parameter`` is the a of `loss_t`.
    """
    cdef Py_ssize_t i
    cdef loss_t of = known(loss, parameter, NAN)
    must_fit(a.shape[0] == gain_out.shape[0], "gains")
    if not has_dual(&of):
        raise ValueError(f"there is no dual: {list(FACTS)[loss]}")
    with nogil:
        for i in range(a.shape[0]):
            gain_out[i] = dual_gain(&of, a[i])
