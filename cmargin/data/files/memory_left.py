"""How much memory a process may still take: the least of what the machine, its group and its own limit leave."""

import os
from pathlib import Path

import numpy as np


def memory_left():
    """Bytes; infinite where nobody says."""
    return min(_of_machine(), _of_group(), _of_address_space())


def _of_machine():
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable"):
                return 1024 * int(line.split()[1])
    except (OSError, ValueError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (OSError, ValueError, AttributeError):
        return np.inf


def _of_group():
    for most, used in (("memory.max", "memory.current"),
                       ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes")):
        try:
            folder = Path("/sys/fs/cgroup")
            return max(0, int((folder / most).read_text()) - int((folder / used).read_text()))
        except (OSError, ValueError):
            continue
    return np.inf


def _of_address_space():
    try:
        import resource

        most = resource.getrlimit(resource.RLIMIT_AS)[0]
        if most == resource.RLIM_INFINITY:
            return np.inf
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        return max(0, most - pages * resource.getpagesize())
    except (ImportError, OSError, ValueError):
        return np.inf
