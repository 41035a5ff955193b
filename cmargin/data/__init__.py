"""Data sources: where the rows of a data set live; `open_rows` makes one of whatever is given."""

from cmargin.data.open import open_rows

__all__ = ["open_rows"]
