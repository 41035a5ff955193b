"""Hold BLAS to one thread while our own threads, or a promise of equal bits, need it.

The limit is a setting of the whole process, so concurrent fits share it: the first one in sets it, the last one
out puts back what was there. One controller, made at first use, because making one looks through every loaded
library (a quarter of a millisecond) and using it does not.
"""

import threading
from contextlib import contextmanager

from threadpoolctl import ThreadpoolController

_lock = threading.Lock()
_controller = None
_limit = None
_users = 0


@contextmanager
def single_threaded_blas():
    """Context in which every BLAS call of the process runs on one thread."""
    global _controller, _limit, _users
    with _lock:
        _users += 1
        if _users == 1:
            if _controller is None:
                _controller = ThreadpoolController()
            _limit = _controller.limit(limits=1, user_api="blas")
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _limit.restore_original_limits()
