"""What is known of a data set before it is read: pure numbers, from which solvers foresee what a fit costs."""

from dataclasses import dataclass


@dataclass(frozen=True)
class DataStats:
    n_rows: int
    n_features: int
    entries: int               # numbers that are stored
    itemsize: int              # bytes of one
    sparse: bool
    place: str                 # "memory", "files", "device", "ranks" or "workers"
    reads_are_shared: bool     # one read answers all problems that wait for one
    contiguous_rows: bool

    @property
    def in_memory(self):
        """Whether compiled code can read single rows, in this process or in those that the rows are divided among."""
        return self.place not in ("files", "device")

    @property
    def here(self):
        """Whether it can do so in this process."""
        return self.place == "memory"

    @property
    def divided(self):
        """Whether several processes have a part of the rows each."""
        return self.place in ("ranks", "workers")

    @property
    def entries_per_row(self):
        """At least 1."""
        return max(1.0, self.entries / max(1, self.n_rows))


class Described:
    """A data source that can say what it is; ``storage`` is set by the class."""

    storage: str               # `DataStats.place`

    def describe(self):
        return DataStats(self.n_rows, self.n_features, self.entries, self.dtype.itemsize, self.sparse, self.storage,
                         self.shares_reads, self.row_is_contiguous)
