"""The format a file is in: what ``--data-format`` says, or the ending of its name, or what its first bytes are."""

import os

from cmargin.data.files.text import opened_text

ENDINGS = {".csv": "csv", ".tsv": "tsv", ".parquet": "parquet", ".feather": "feather", ".arrow": "feather",
           ".arff": "arff", ".svm": "svmlight", ".svmlight": "svmlight", ".libsvm": "svmlight", ".npz": "npz",
           ".npy": "npy", ".mat": "mat", ".h5": "hdf5", ".hdf5": "hdf5", ".h5ad": "h5ad", ".mtx": "mtx"}
TABLES = ("csv", "tsv", "parquet", "feather", "arff", "h5ad")        # their columns have names, one may be the label
COMPRESSED = (".gz", ".bz2", ".xz")      # may follow the endings of text formats
TEXTS = ("csv", "tsv", "svmlight", "arff", "mtx")
FIRST_BYTES = {b"PK\3\4": "npz", b"PAR1": "parquet", b"ARROW1": "feather", b"FEA1": "feather",
               b"\xff\xff\xff\xff": "feather", b"\x93NUMPY": "npy", b"\x89HDF": "hdf5",
               b"MATLAB 5.0": "mat"}
LOOKED_AT = 1 << 16          # bytes of a text
LINES = 50


def kind_of(path, asked=None):
    """The name of a format as in `ENDINGS`, or "folder"; ValueError for a file that is none of these."""
    if asked is not None:
        return asked
    if os.path.isdir(path):
        return "folder"
    stem, ending = os.path.splitext(path.lower())
    if ending in COMPRESSED and ENDINGS.get(os.path.splitext(stem)[1]) in TEXTS:
        ending = os.path.splitext(stem)[1]
    if ending in ENDINGS:
        return ENDINGS[ending]
    kind = _by_contents(path) if os.path.isfile(path) else None
    if kind is None:
        raise ValueError(f"{path} is of no kind that is read: {', '.join(ENDINGS)} (text compressed by gzip, bzip2 or "
                         "xz or not), or a folder from `cmargin convert` or of 10x; --data-format says what it is.")
    return kind


def _by_contents(path):
    with open(path, "rb") as file:
        begin = file.read(16)
    for mark, kind in FIRST_BYTES.items():
        if begin.startswith(mark):
            return kind
    with opened_text(path) as file:
        return _kind_of_text(file.read(LOOKED_AT))


def _kind_of_text(begin):
    """The format of a text that begins so; None for bytes that are no text."""
    if b"\0" in begin or not begin.strip():
        return None
    if begin.startswith(b"%%MatrixMarket"):
        return "mtx"
    lines = begin.splitlines()
    lines = [line for line in (lines[:-1] or lines) if line.strip()][:LINES]       # the last may be cut in two
    told = next((line for line in lines if not line.lstrip().startswith(b"%")), b"")
    if told.lstrip().lower().startswith((b"@relation", b"@attribute")):
        return "arff"
    rows = [row for row in (line.partition(b"#")[0].split() for line in lines) if row]
    if rows and len(rows[0]) == 3 and all(map(bytes.isdigit, rows[0])):          # rows, columns, labels
        rows = rows[1:]
    return "svmlight" if any(len(row) > 1 for row in rows) and all(map(_is_svmlight, rows)) else "csv"


def _is_svmlight(row):
    """Whether the words are a label, several with commas between or none, and entries ``column:value``."""
    labels, *entries = row if b":" not in row[0] else [b"0", *row]
    pairs = [entry.split(b":") for entry in entries]
    if any(len(pair) != 2 for pair in pairs):
        return False
    columns = [pair[0] for pair in pairs if pair[0] != b"qid"]
    try:
        list(map(float, [*labels.split(b","), *(pair[1] for pair in pairs)]))
        list(map(int, columns))
    except ValueError:
        return False
    return True
