"""The Ψ-transform of margin pursuit, its inverse, and the cubic equations behind them (margin pursuit, Lemma 8)."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cmargin._core.util import _catoni
from cmargin._runtime.aligned import contiguous
from cmargin.margins._batches import as_real
from cmargin.margins._checks import positive_array

CHUNK = 1 << 19     # points between two checks for Ctrl-C: 20 ms of transform, 0.3 s of inverse


def psi_transform(a: ArrayLike, margin: ArrayLike = 1.0, scale: ArrayLike = 1.0) -> Any:
    """Ψ_{s,γ}(a): the least excess of margin pursuit's risk that an excess ``a`` of the 0-1 risk can come with.

    Ψ_{s,γ}(R(h) - R*) <= R_φ(h) - R_φ* for φ(z) = s² ρ((γ - z)/s). Convex and increasing on [0, 1], from 0 to
    s² ρ(γ/s); a larger margin level gives a larger Ψ, hence a better bound. Exact to rounding, also relative to
    values near 0.

    Parameters
    ----------
    a : float or array, in [0, 1]
        Excess of the 0-1 risk.
    margin : float or array, default=1.0
        Level γ > 0.
    scale : float or array, default=1.0
        s > 0. The three broadcast against each other.

    Returns
    -------
    psi : float, or array of the broadcast shape
    """
    def refusal(a, margin, scale):
        return f"a is an excess of the 0-1 risk and must lie between 0 and 1, got {a:g}"

    return elementwise(_catoni.psi_transform, as_real(a, "a"), margin, scale, refusal)


def psi_inverse(value: ArrayLike, margin: ArrayLike = 1.0, scale: ArrayLike = 1.0) -> Any:
    """a in [0, 1] with Ψ_{s,γ}(a) = ``value``: the bound on the excess 0-1 risk that an excess surrogate risk buys.

    By safeguarded Newton on ln Ψ against ln a, to rounding also relative to an ``a`` near 0.

    Parameters
    ----------
    value : float or array, in [0, Ψ_{s,γ}(1)] = [0, s² ρ(γ/s)]
        A larger excess surrogate risk says nothing about the 0-1 risk; it is refused, not answered by 1.
    margin, scale : as in `psi_transform`

    Returns
    -------
    a : float, or array of the broadcast shape
    """
    def refusal(value, margin, scale):
        top = psi_transform(1.0, margin, scale)
        return f"value must lie between 0 and s² ρ(γ/s) = {top:g}, the largest of the transform; got {value:g}"

    return elementwise(_catoni.psi_inverse, as_real(value, "value"), margin, scale, refusal)


def elementwise(kernel, x, margin, scale, refusal):
    """A kernel of (x, margin, scale) over all three broadcast; what does not vary is not repeated.

    ``refusal(x, margin, scale)`` is what to say of three numbers whose x the kernel found out of range.
    """
    margin, scale = positive_array(margin, "margin"), positive_array(scale, "scale")
    shape = np.broadcast_shapes(x.shape, margin.shape, scale.shape)
    x = contiguous(np.broadcast_to(x, shape), np.float64).ravel()
    margin, scale = (values.reshape(1) if values.size == 1 else np.broadcast_to(values, shape).ravel()
                     for values in (margin, scale))
    out = np.empty(x.shape)
    for lo in range(0, len(x), CHUNK):
        part = slice(lo, lo + CHUNK)
        arguments = [values if len(values) == 1 else values[part] for values in (x, margin, scale)]
        outside, lost = kernel(*arguments, out[part])
        if outside < len(arguments[0]):
            raise ValueError(refusal(*(float(values[outside if len(values) > 1 else 0]) for values in arguments)))
        if lost < len(arguments[0]):
            raise ValueError("margin and scale differ so much in size that the transform leaves the range of doubles")
    return out.reshape(shape) if shape else float(out[0])


def cubic_roots(a: ArrayLike, b: ArrayLike, c: ArrayLike, d: ArrayLike) -> np.ndarray:
    """Real roots of a u³ + b u² + c u + d = 0, whatever the sign of the discriminant and whichever coefficients are 0.

    A real root by Newton from outside all of them, then the quadratic that is left (Kahan 1986): each root is that of
    a cubic whose coefficients differ from the given ones in the last digits only, however much they differ in size.

    Parameters
    ----------
    a, b, c, d : float or array
        Finite; they broadcast. With a = 0 a quadratic, with a = b = 0 a line. Not all of them 0.

    Returns
    -------
    roots : (m,) array for numbers, m = 0 to 3; (..., 3) array for arrays
        Ascending, a multiple root repeated: a cubic has 1 or 3. For arrays, NaN stands after the last root of each
        equation. Two roots of a cubic, real or complex, nearer each other than about 1e-7 of their size are a double
        root but for the rounding of the coefficients, and given as one.
    """
    given = np.broadcast_arrays(*(as_real(values, name).astype(np.float64)
                                  for values, name in zip((a, b, c, d), "abcd", strict=True)))
    shape = given[0].shape
    if not all(np.isfinite(values).all() for values in given):
        raise ValueError("the coefficients of a cubic must be finite, found NaN or infinity")
    coefficients = [np.ascontiguousarray(values).ravel() for values in given]
    n = len(coefficients[0])
    roots, counts = np.empty((n, 3)), np.empty(n, dtype=np.intc)
    for lo in range(0, n, CHUNK):
        part = slice(lo, lo + CHUNK)
        _catoni.cubic_roots(*(values[part] for values in (*coefficients, roots, counts)))
    if (counts < 0).any():
        raise ValueError("every number solves 0 = 0: at least one coefficient must differ from 0")
    return roots.reshape(*shape, 3) if shape else roots[0, :counts[0]]
