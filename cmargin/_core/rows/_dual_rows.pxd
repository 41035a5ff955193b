from cmargin._core.rows._rows cimport Rows
from cmargin._core.rows._tiles cimport row_source


cdef row_source source_of(Rows X)    # all rows; X must live as long
