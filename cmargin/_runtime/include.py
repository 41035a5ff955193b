"""Where a C or Cython compiler finds ``cmargin.h``."""

from pathlib import Path


def get_include() -> str:
    """The folder of ``cmargin.h``, for a compiler's include path; see doc/embedding.md."""
    return str(Path(__file__).resolve().parents[1] / "include")
