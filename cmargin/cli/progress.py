"""Progress of a fit on a terminal or in a notebook: tqdm's bar, or one line that is overwritten; nothing elsewhere."""

import os
import sys
import warnings
from contextlib import contextmanager
from shutil import get_terminal_size
from time import perf_counter

from cmargin.data.files.text import watched

EVERY = 0.1                # seconds between two updates of a bar that counts bytes


class Silence:
    """Prints nothing."""

    def step(self, text):
        pass

    def end(self):
        pass


class Line:
    """One line on a terminal, without tqdm."""

    def __init__(self, total, unit):
        self.total, self.unit, self.done, self.longest, self.begun = total, unit, 0, 0, perf_counter()

    def step(self, text):
        self.done += 1
        of = f" of {self.total}" if self.total else ""
        self.show(f"{self.unit} {self.done}{of}{', ' * bool(text)}{text}")

    def at(self, n_bytes):
        """Of a file, so many bytes of ``total`` are read."""
        of = f" of {self.total / 1e6:.1f}" if self.total else ""
        self.show(f"read {n_bytes / 1e6:.1f}{of} MB")

    def show(self, text):
        line = f"{text}, {perf_counter() - self.begun:.1f} s"
        line = line[:get_terminal_size().columns - 1]            # A wrapped line could not be overwritten.
        self.longest = max(self.longest, len(line))
        print(f"\r{line:<{self.longest}}", end="", file=sys.stderr, flush=True)

    def end(self):
        if self.longest:
            print(f"\r{'':<{self.longest}}\r", end="", file=sys.stderr, flush=True)


class Bar:
    """tqdm's bar."""

    def __init__(self, tqdm, total, unit):
        self.bar = tqdm(total=total, unit=unit, unit_scale=unit == "B", leave=False, file=sys.stderr)

    def step(self, text):
        self.bar.set_postfix_str(text, refresh=False)
        self.bar.update()

    def at(self, n_bytes):
        self.bar.n = n_bytes
        self.bar.refresh()

    def end(self):
        self.bar.close()


def progress(total, unit, quiet):
    """Return an object with ``step(text)`` and ``end()``; ``total`` is the largest number of steps, or None."""
    notebook = _in_notebook()
    if quiet or not (notebook or sys.stderr.isatty()):
        return Silence()
    try:
        if not notebook:
            from tqdm import tqdm
        else:                                    # Without widgets tqdm shows text, and warns.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                from tqdm.auto import tqdm
    except ImportError:
        return Line(total, unit)
    return Bar(tqdm, total, unit)


@contextmanager
def reading(path, quiet):
    """Show, from the first byte on, how much of the file at ``path`` is read; of a text as it goes on."""
    bar = progress(os.path.getsize(path) if os.path.isfile(path) else None, "B", quiet)
    if isinstance(bar, Silence):
        yield
        return
    last = perf_counter()
    bar.at(0)

    def report(n_bytes):
        nonlocal last
        if perf_counter() - last >= EVERY:
            last = perf_counter()
            bar.at(n_bytes)

    try:
        with watched(report):
            yield
    finally:
        bar.end()


def _in_notebook():
    """Return whether a notebook runs this, by ``%run -m cmargin fit ...`` or `main`, and shows what is printed."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None
