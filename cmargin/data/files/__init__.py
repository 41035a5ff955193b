"""Rows that stay in files and are read in order, chunk by chunk: `open_files` says what such files may be."""

from cmargin.data.files.sources import RowFiles, open_files

__all__ = ["RowFiles", "open_files"]
