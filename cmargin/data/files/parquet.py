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


def column_of_parquet(path, name):
    """The column as an array: of numbers, or of texts and whatever else."""
    file, columns = open_parquet(path)
    names = [file.schema_arrow.names[j] for j in columns]
    if name not in names:
        raise ValueError(f"{path!r} has no column {name!r}; it has {', '.join(names)}.")
    return np.asarray(file.read([name]).column(0).to_pandas())


class ParquetRows:
    """Rows of a Parquet file all of whose columns, but for that of labels, are features; a row group is read at a time.

    Columns of several types, whole numbers and booleans become float64; those of float32 alone stay that.
    """

    sparse, any_rows = False, False

    def __init__(self, path, label=None):
        import pyarrow

        self.name = path
        self.file, columns = open_parquet(path)
        fields = {j: self.file.schema_arrow.field(j) for j in columns if self.file.schema_arrow.names[j] != label}
        refuse_lists(path, fields.values())
        for field in fields.values():
            if not (pyarrow.types.is_floating(field.type) or pyarrow.types.is_integer(field.type)
                    or pyarrow.types.is_boolean(field.type)):
                raise ValueError(f"{path!r}, column {field.name!r}, holds {field.type}, not numbers; where it has the "
                                 f"labels, fit(path, {field.name!r}) says so.")
        self.columns = list(fields)
        groups = [self.file.metadata.row_group(g).num_rows for g in range(self.file.num_row_groups)]
        self.ends = [0, *np.cumsum(groups).tolist()]
        self.n_rows, self.n_features = self.ends[-1], len(self.columns)
        single = all(field.type in (pyarrow.float16(), pyarrow.float32()) for field in fields.values())
        self.kind = pyarrow.float32() if single else pyarrow.float64()
        self.dtype, self.entries = np.dtype(self.kind.to_pandas_dtype()), self.n_rows * self.n_features

    def edges(self, size):
        return self.ends

    def read(self, lo, hi, room):
        out = room.array("rows", (self.n_features, hi - lo), self.dtype)
        for g, (begin, end) in enumerate(zip(self.ends, self.ends[1:], strict=False)):
            if begin < hi and end > lo:
                table = self.file.read_row_group(g)
                here, there = slice(max(lo, begin) - lo, min(hi, end) - lo), slice(max(lo - begin, 0), hi - begin)
                for k, j in enumerate(self.columns):
                    out[k, here] = table.column(j).cast(self.kind, safe=False).to_numpy()[there]
        return out.T
