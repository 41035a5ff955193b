"""Fits that run at once, in the environment as it is (OPENBLAS_NUM_THREADS unset): wall time and processor time."""

import os
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

from sklearn.exceptions import ConvergenceWarning

from .common import digits, gaussian_classes

try:
    from cmargin import MarginPursuitClassifier, SLNDClassifier, SmSVMClassifier
    from cmargin.baselines import CGDescentClassifier, NesterovClassifier

    KINDS = {
        "smsvm": lambda: SmSVMClassifier(n_jobs=1),
        "smsvm_l1": lambda: SmSVMClassifier(l1=1e-3, n_jobs=1),
        "slnd": lambda: SLNDClassifier(random_state=0, n_jobs=1),
        "slnd_refreshed": lambda: SLNDClassifier(random_state=0, hessian_refresh=1, n_jobs=1),
        "newton": lambda: MarginPursuitClassifier(solver="newton", l2=1e-3, n_jobs=1),
        "gd": lambda: MarginPursuitClassifier(solver="gd", l2=1e-3, max_passes=30, n_jobs=1),
        "sgd": lambda: MarginPursuitClassifier(solver="sgd", l2=1e-3, random_state=0, n_jobs=1),
        "cg": lambda: CGDescentClassifier(max_passes=30, n_jobs=1),
        "nesterov": lambda: NesterovClassifier(max_passes=30, n_jobs=1),
    }
except ImportError:  # a commit before these existed: asv marks the benchmarks as failed and goes on
    KINDS = dict.fromkeys(["smsvm"])

N_FITS, N_THREADS = 16, 8


def cores():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


class Concurrent:
    """16 fits in 8 threads over 16 one by one; each fit on one thread."""

    params = (list(KINDS), ["digits", "20000x100"])
    param_names = ("kind", "data")
    timeout = 300

    def setup(self, kind, data):
        if data == "digits":
            self.X, _, self.y, _ = digits()
        else:
            self.X, self.y = gaussian_classes(20000, 100, 5)
        self.fit(kind)

    def fit(self, kind):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            KINDS[kind]().fit(self.X, self.y)

    def measured(self, kind, clock):
        """Time of 16 fits one by one, and in 8 threads."""
        begin = clock()
        for _ in range(N_FITS):
            self.fit(kind)
        between = clock()
        with ThreadPoolExecutor(N_THREADS) as pool:
            list(pool.map(self.fit, [kind] * N_FITS))
        return between - begin, clock() - between

    def track_wall_over_share(self, kind, data):
        """Wall time in threads, over that one by one divided by the cores: 1 is perfect, the cores are a lock."""
        alone, together = self.measured(kind, time.perf_counter)
        return together * cores() / alone

    track_wall_over_share.unit = "times"

    def track_work_over_alone(self, kind, data):
        """Processor time in threads over that one by one: above 1 something spins. Holds on a busy machine too."""
        alone, together = self.measured(kind, time.process_time)
        return together / alone

    track_work_over_alone.unit = "times"
