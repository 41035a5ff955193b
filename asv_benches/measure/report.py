"""What the comparisons on the command line share: the machine's figures, tables, growth, peak memory of one call."""

import gc
import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np

from cmargin._runtime.workspace import give_back
from measure.limits import dsyrk_rate, memory_rate
from measure.machine import machine


def table(title, columns, rows):
    """Title and rows as Markdown, columns aligned; cells are texts or numbers."""
    cells = [[f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in line] for line in (columns, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["| " + " | ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)) + " |"
             for line in cells]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join([title, "", *lines, ""])


def heading(threads):
    """Processor, versions, what the machine can do on so many threads, and how busy it is with other work."""
    known = {**machine(), "threads": threads}
    lines = [", ".join(f"{name} {value}" for name, value in known.items()),
             f"memory {memory_rate(threads) / 1e9:.1f} GB/s, dsyrk {dsyrk_rate(threads) / 1e9:.0f} GFLOP/s on "
             f"{threads} threads; load average before {os.getloadavg()[0]:.1f}: seconds are worth reading below 1 only",
             ""]
    return "\n".join(lines)


def exponent(sizes, seconds):
    """p of the fit seconds ~ size**p."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def _memory(name):
    """Bytes of a line of /proc/self/status; VmHWM begins afresh in a new process, where getrusage's peak may not."""
    with open("/proc/self/status", encoding="ascii") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith(name + ":"))


def _peak_here(prepare, work):
    data = prepare()
    gc.collect()
    give_back()                                # else what `work` needs first may be what `prepare` let go of
    filler = np.ones(max(0, _memory("VmHWM") - _memory("VmRSS")) // 8)     # up to the peak there has been
    before = _memory("VmHWM")
    work(*data)
    del filler
    return _memory("VmHWM") - before


def peak_beyond(prepare, work):
    """Bytes by which ``work(*prepare())`` raises the peak of a fresh process above what ``prepare`` leaves.

    Both must be picklable; ``prepare`` had better call ``work`` on something small, so that libraries are loaded.
    """
    if not os.path.exists("/proc/self/status"):
        raise NotImplementedError("peak memory is read from /proc/self/status, which only Linux has.")
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(_peak_here, prepare, work).result()
