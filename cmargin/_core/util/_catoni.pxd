"""Catoni's influence function at work: location of a sample, the Ψ-transform of margin pursuit, cubic equations.

ρ and ψ = ρ' are `catoni_rho` of ``_margin_pursuit.pxd``. Below √2 ψ(u) = u - u³/6, beyond it ±B with B = 2√2/3, so
that both ends of the cubic meet with slope 0.
"""

cdef Py_ssize_t CHUNK   # points of one sum between two checks for Ctrl-C


cdef struct psi_point:
    double value        # Ψ_{1,γ}(t)
    double slope        # its derivative in t


cdef struct influence:
    double inside       # Σ ψ((at - q_i) / s) over the points within √2 s
    double beyond       # points beyond, those below less those above: each is worth B
    double slope        # Σ ψ'((at - q_i) / s)


cdef struct location_search:
    double at           # where the sums are wanted next; the estimate once done
    double lo           # the root lies in [lo, hi]
    double hi
    double last_step
    bint done


# Ψ_{1,γ}(t), 0 <= t <= 1, level γ > 0; Ψ_{s,γ} = s² Ψ_{1,γ/s}
cdef psi_point psi_unit(double t, double level) noexcept nogil

# t in [0, 1] with Ψ_{1,γ}(t) = value; 1 for a value beyond Ψ_{1,γ}(1)
cdef double psi_unit_inverse(double value, double level) noexcept nogil

# Σ over q (n,) of ψ and ψ' at one candidate: one read of q
cdef influence influence_sums(
    const double *q,        # IN   (n,)
    Py_ssize_t n, double at, double scale,
) noexcept nogil

# Safeguarded Newton in reverse communication: start, then fetch sums at search.at and advance until search.done
cdef location_search location_start(double median, double scale) noexcept nogil
cdef void location_advance(location_search *search, influence sums, double scale) noexcept nogil

# Root of Σ ψ((γ - q_i) / s) = 0 in γ: the same, all in one call
cdef double location_root(
    const double *q,        # IN   (n,), n >= 1
    Py_ssize_t n, double median, double scale,
) noexcept nogil

# Real roots of a u³ + b u² + c u + d, ascending and with multiplicity: their number, -1 if every coefficient is 0
cdef int cubic_roots_point(
    double a, double b, double c, double d,
    double *roots_out,      # OUT  (3,), the first so many overwritten
) noexcept nogil
