"""What a checkpoint costs: seconds of a fit that writes one every second, over the same fit alone, and bytes a row.

    python -m asv_benches.benchmarks.checkpoints     prints the table, medians of five fits
"""

import os
import tempfile
from statistics import median
from time import perf_counter

from cmargin import MarginPursuitClassifier, SLNDClassifier, SmSVMClassifier

from .common import noisy_plane

try:
    from cmargin import Checkpoint
    from cmargin._runtime import checkpoint
except ImportError:              # a version without them
    Checkpoint = None

METHODS = {
    "smsvm": SmSVMClassifier(l2=1e-7, random_state=1), "pursuit": MarginPursuitClassifier(tol=1e-9),
    "slnd": SLNDClassifier(loss="logistic", max_passes=20, step_size=0.1, random_state=1),
}
ROWS, COLUMNS = 500_000, 54


class Cost:
    params = [list(METHODS)]
    param_names = ["method"]
    timeout = 120

    def setup(self, method):
        if Checkpoint is None:
            raise NotImplementedError
        self.X, self.y = noisy_plane(ROWS, COLUMNS, "f")
        self.model = METHODS[method]
        self.model.fit(self.X[:1000], self.y[:1000])
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "fit")

    def teardown(self, method):
        self.folder.cleanup()

    def seconds(self, kept):
        begin = perf_counter()
        self.model.set_params(checkpoint=kept).fit(self.X, self.y)
        return perf_counter() - begin

    def track_seconds_over_alone(self, method):
        alone, with_one = zip(*((self.seconds(None), self.seconds(Checkpoint(self.path, seconds=1.0)))
                                for _ in range(5)), strict=True)
        return median(with_one) / median(alone)

    def written(self):
        """(bytes, seconds) of every file that a fit writes which writes whenever it may."""
        found, write = [], checkpoint.write

        def timed(path, *others):
            begin = perf_counter()
            write(path, *others)
            found.append((os.path.getsize(path), perf_counter() - begin))

        checkpoint.write = timed
        try:
            self.seconds(Checkpoint(self.path, seconds=None, passes=1e-9))
        finally:
            checkpoint.write = write
        return found

    def track_bytes_a_row(self, method):
        return max(size for size, _ in self.written()) / ROWS

    def track_milliseconds_a_file(self, method):
        return 1e3 * median(seconds for _, seconds in self.written())

    track_seconds_over_alone.unit, track_bytes_a_row.unit = "times", "bytes a row"
    track_milliseconds_a_file.unit = "ms"


if __name__ == "__main__":
    print(f"{ROWS:,} x {COLUMNS} float32\nmethod     over alone   bytes a row   ms a file")
    for name in METHODS:
        cost = Cost()
        cost.setup(name)
        print(f"{name:10s} {cost.track_seconds_over_alone(name):10.3f} {cost.track_bytes_a_row(name):13.1f} "
              f"{cost.track_milliseconds_a_file(name):11.1f}", flush=True)
        cost.teardown(name)
