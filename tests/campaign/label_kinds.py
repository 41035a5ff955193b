"""Labels as users have them: the same classes of the same rows, in every kind of array that can hold them."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

BIG = 2**53                    # from here on float64 skips whole numbers


@dataclass(frozen=True)
class LabelKind:
    """A kind of labels.

    Attributes
    ----------
    make : (n,) int array of class indices -> the labels
    values : what classes_ must be, item by item and type by type
    group : the column of the table in doc/reliability.md
    missing : whether a label is missing or masked, so that they have to be refused
    indicator : whether they are several labels a row
    needs : the module without which they cannot be made
    """

    make: Callable
    values: list
    group: str
    missing: bool = False
    indicator: bool = False
    needs: str = "numpy"


def taking(values, array=np.array):
    """Labels that are ``values`` of the class indices, in the given kind of array."""
    return lambda codes: array([values[code] for code in codes])


def pandas_of(dtype, index=None):
    def array(values):
        import pandas

        return pandas.Series(values, dtype=dtype, index=None if index is None else index(len(values)))
    return array


def arrow_of(values):
    import pyarrow

    return pyarrow.chunked_array([pyarrow.array(values)])


def polars_of(values):
    import polars

    return polars.Series("y", values)


def string_dtype(values):
    return np.array(values, np.dtypes.StringDType())


def nullable_strings(values):
    return np.array(values, np.dtypes.StringDType(na_object=np.nan))


def strict_array(values):
    import array_api_strict

    return array_api_strict.asarray(np.array(values))


def dask_array(values):
    import dask.array

    return dask.array.from_array(np.array(values), chunks=len(values) // 2)


def dask_series(dtype):
    def array(values):
        import dask.dataframe

        return dask.dataframe.from_pandas(pandas_of(dtype)(values), npartitions=2)
    return array


def pandas_na():
    import pandas

    return pandas.NA


def one_missing(values, missing, array):
    """The first label is what ``missing`` gives."""
    return lambda codes: array([missing(), *(values[code] for code in codes[1:])])


def masked_labels(codes):
    """-1 in the place of a masked label."""
    labels, mask = codes.copy(), np.zeros(len(codes), bool)
    labels[0], mask[0] = -1, True
    return np.ma.MaskedArray(labels, mask)


def indicator_of(codes):
    """Three labels, several a row."""
    Y = (codes[:, None] == np.arange(3)).astype(int)
    Y[::3, 0] = 1
    return Y


def frame_of(codes):
    import pandas

    return pandas.DataFrame(indicator_of(codes), columns=WORDS)


def sparse_indicator(form):
    return lambda codes: form(indicator_of(codes))


def masked_indicator(codes):
    """A masked entry in every row."""
    Y = indicator_of(codes)
    return np.ma.MaskedArray(Y, codes[:, None] == np.arange(3))


WORDS, WHOLE, TRUTH = ["anna", "ben", "zoë"], [0, 1, 2], [False, True]
IDS = [BIG, BIG + 1, BIG + 2]


def of_numpy():
    kinds = {
        "int64": (WHOLE, np.array), "int8": ([-3, 0, 7], lambda v: np.array(v, np.int8)),
        "uint8": (WHOLE, lambda v: np.array(v, np.uint8)), "negative": ([-5, -1, 3], np.array), "list": (WHOLE, list),
        "-1 and 1": ([-1, 1], np.array), "bool": (TRUTH, np.array), "whole floats": ([0.0, 1.0, 2.0], np.array),
        "whole float32": ([0.0, 1.0, 2.0], lambda v: np.array(v, np.float32)), "beyond 2^53": (IDS, np.array),
        "beyond 2^63": ([2**63, 2**63 + 1, 2**63 + 2], lambda v: np.array(v, np.uint64)),
        "object of int": (WHOLE, lambda v: np.array(v, object)),
        "(n, 1) column": (WHOLE, lambda v: np.array(v)[:, None]),
        "masked array, no mask": (WHOLE, np.ma.MaskedArray), "str": (WORDS, np.array), "list of str": (WORDS, list),
        "object of str": (WORDS, lambda v: np.array(v, object)), "StringDType": (WORDS, string_dtype),
        "bytes": ([b"a", b"b", b"c"], np.array)}
    return {name: LabelKind(taking(values, array), values,
                            "strings" if isinstance(values[0], (str, bytes)) else "numbers")
            for name, (values, array) in kinds.items()}


def of_tables():
    kinds = {}
    for dtype, values in {"int64": WHOLE, "Int64": IDS, "int64[pyarrow]": IDS, "boolean": TRUTH, "bool[pyarrow]": TRUTH,
                          "str": WORDS, "string[python]": WORDS, "string[pyarrow]": WORDS, "object": WORDS}.items():
        kinds[f"pandas {dtype}"] = LabelKind(taking(values, pandas_of(dtype)), values, "pandas",
                                             needs="pyarrow" if "pyarrow" in dtype else "pandas")
    other_index = pandas_of("int64", lambda n: np.arange(n)[::-1] + 1000)
    for name, values, array in (("category of str", WORDS, pandas_of("category")),
                                ("category of int", WHOLE, pandas_of("category")), ("other index", WHOLE, other_index)):
        kinds[f"pandas {name}"] = LabelKind(taking(values, array), values, "pandas", needs="pandas")
    for name, values in {"int": IDS, "str": WORDS, "bool": TRUTH}.items():
        kinds[f"Arrow {name}"] = LabelKind(taking(values, arrow_of), values, "Arrow, polars", needs="pyarrow")
        kinds[f"polars {name}"] = LabelKind(taking(values, polars_of), values, "Arrow, polars", needs="polars")
    return kinds


def of_missing():
    def objects(values):
        return np.array(values, object)

    kinds = {"None among str": (WORDS, lambda: None, objects, "numpy"),
             "NaN among floats": (WHOLE, lambda: np.nan, np.array, "numpy"),
             "NaN among str": (WORDS, lambda: np.nan, objects, "numpy"),
             "NaN in StringDType": (WORDS, lambda: np.nan, nullable_strings, "numpy")}
    for dtype, values in {"Int64": WHOLE, "boolean": TRUTH, "int64[pyarrow]": WHOLE, "bool[pyarrow]": TRUTH,
                          "string": WORDS, "string[pyarrow]": WORDS, "category": WORDS, "object": WORDS}.items():
        kinds[f"NA in {dtype}"] = (values, pandas_na, pandas_of(dtype), "pyarrow" if "pyarrow" in dtype else "pandas")
    for name, values in {"int": WHOLE, "str": WORDS}.items():
        kinds[f"null in Arrow {name}"] = (values, lambda: None, arrow_of, "pyarrow")
        kinds[f"null in polars {name}"] = (values, lambda: None, polars_of, "polars")
    kinds = {name: LabelKind(one_missing(values, missing, array), values, "missing", True, needs=needs)
             for name, (values, missing, array, needs) in kinds.items()}
    return {**kinds, "masked array, masked": LabelKind(masked_labels, WHOLE, "missing", True),
            "indicator, masked": LabelKind(masked_indicator, WHOLE, "missing", True, True)}


def of_indicators():
    kinds = {"indicator": (indicator_of, "indicator"),
             "indicator, bool": (lambda codes: indicator_of(codes).astype(bool), "indicator"),
             "indicator, list": (lambda codes: indicator_of(codes).tolist(), "indicator"),
             "indicator, frame": (frame_of, "indicator"),
             "indicator, -1 and 1": (lambda codes: 2 * indicator_of(codes) - 1, "indicator")}
    for form in ("csr", "csc", "coo", "lil", "dok"):
        for what in ("array", "matrix"):
            kinds[f"indicator, {form}_{what}"] = sparse_indicator(getattr(sp, f"{form}_{what}")), "sparse indicator"
    return {name: LabelKind(make, WHOLE, group, indicator=True, needs="pandas" if make is frame_of else "numpy")
            for name, (make, group) in kinds.items()}


def of_elsewhere():
    kinds = {"array-api-strict": (WHOLE, strict_array), "Dask array": (WHOLE, dask_array),
             "Dask series": (WHOLE, dask_series("int64")), "Dask series of str": (WORDS, dask_series("str")),
             "Dask series of Int64": (IDS, dask_series("Int64")),
             "Dask series of a category": (WORDS, dask_series("category"))}
    return {name: LabelKind(taking(values, array), values, "elsewhere",
                            needs="distributed" if "Dask" in name else "array_api_strict")
            for name, (values, array) in kinds.items()}


LABELS = {**of_numpy(), **of_tables(), **of_indicators(), **of_missing(), **of_elsewhere()}
GROUPS = list(dict.fromkeys(kind.group for kind in LABELS.values()))
