"""The BLAS libraries that this process has loaded, as threadpoolctl finds them."""

from functools import cache

from threadpoolctl import ThreadpoolController

# kernels that have shorter registers than AVX-512's, as OpenBLAS and BLIS call them
WITHOUT_AVX512 = {"bulldozer", "core2", "excavator", "generic", "haswell", "nehalem", "piledriver", "prescott",
                  "sandybridge", "steamroller", "zen", "zen2", "zen3"}


@cache
def blas_libraries():
    """NumPy's, SciPy's and any other, looked for once: it takes a quarter of a millisecond."""
    import scipy.linalg.cython_blas  # noqa: F401   what is not loaded is not found

    return [found for found in ThreadpoolController().lib_controllers if found.user_api == "blas"]


def blas_trails():
    """Whether the BLAS libraries are known to use no AVX-512: one that does not know a processor takes it for an older.

    OpenBLAS 0.3.31 takes AMD's family 26 for a Haswell, and does half of what that can (doc/lab-notebook).
    """
    found = {(getattr(library, "architecture", None) or "").lower() for library in blas_libraries()}
    return bool(found) and found <= WITHOUT_AVX512
