"""Parquet files, by pyarrow."""

import numpy as np

from cmargin.data.containers import LISTS
from cmargin.data.files.arrays_in_files import opened


def open_parquet(path):
    """Return (pyarrow's ParquetFile, positions of its columns without the index that pandas stores among them)."""
    opened(path).close()
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise ImportError(f"{path!r} is read by pyarrow, which is not installed.") from None
    try:
        file = parquet.ParquetFile(path)
    except (ValueError, OSError) as error:                   # pyarrow's messages lack the name of the file.
        raise type(error)(f"{path!r} cannot be read: {error}") from None
    schema = file.schema_arrow
    index = {name for name in (schema.pandas_metadata or {}).get("index_columns", ()) if isinstance(name, str)}
    return file, [j for j, name in enumerate(schema.names) if name not in index]


def refuse_lists(path, fields):
    """Raise ValueError where one of these columns of a Parquet file holds lists, embeddings say."""
    for field in fields:
        if str(field.type).startswith(LISTS):
            raise ValueError(f"{path!r}, column {field.name!r}, holds lists ({field.type}), and rows have one number a "
                             "column; write the array of them to a .npy file, np.array(column.to_pylist()).")


class ParquetRows:
    """Rows of a Parquet file all of whose columns are features; a row group is read at a time."""

    sparse, any_rows = False, False

    def __init__(self, path):
        self.name = path
        self.file, self.columns = open_parquet(path)
        fields = [self.file.schema_arrow.field(j) for j in self.columns]
        refuse_lists(path, fields)
        kinds = {field.type.to_pandas_dtype() for field in fields}
        if len(kinds) != 1:
            raise ValueError(f"{path!r} has columns of several types: rows in files must be float32 or float64.")
        groups = [self.file.metadata.row_group(g).num_rows for g in range(self.file.num_row_groups)]
        self.ends = [0, *np.cumsum(groups).tolist()]
        self.n_rows, self.n_features = self.ends[-1], len(self.columns)
        self.dtype, self.entries = np.dtype(kinds.pop()), self.n_rows * self.n_features

    def edges(self, size):
        return self.ends

    def read(self, lo, hi, room):
        out = room.array("rows", (self.n_features, hi - lo), self.dtype)
        for g, (begin, end) in enumerate(zip(self.ends, self.ends[1:], strict=False)):
            if begin < hi and end > lo:
                table = self.file.read_row_group(g)
                here, there = slice(max(lo, begin) - lo, min(hi, end) - lo), slice(max(lo - begin, 0), hi - begin)
                for k, j in enumerate(self.columns):
                    out[k, here] = table.column(j).to_numpy()[there]
        return out.T
