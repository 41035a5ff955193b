"""How far a fit is: tqdm's bar, or one line that is written over, on a terminal and in a notebook; else nothing."""

import sys
import warnings
from shutil import get_terminal_size
from time import perf_counter


class Silence:
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
        line = f"{self.unit} {self.done}{of}, {text}, {perf_counter() - self.begun:.1f} s"
        line = line[:get_terminal_size().columns - 1]            # one that is wrapped could not be written over
        self.longest = max(self.longest, len(line))
        print(f"\r{line:<{self.longest}}", end="", file=sys.stderr, flush=True)

    def end(self):
        if self.done:
            print(f"\r{'':<{self.longest}}\r", end="", file=sys.stderr, flush=True)


class Bar:
    """tqdm's."""

    def __init__(self, tqdm, total, unit):
        self.bar = tqdm(total=total, unit=unit, leave=False, file=sys.stderr)

    def step(self, text):
        self.bar.set_postfix_str(text, refresh=False)
        self.bar.update()

    def end(self):
        self.bar.close()


def progress(total, unit, quiet):
    """Something with ``step(text)`` and ``end()``; ``total``: steps at most, or None."""
    notebook = _in_notebook()
    if quiet or not (notebook or sys.stderr.isatty()):
        return Silence()
    try:
        if not notebook:
            from tqdm import tqdm
        else:                                    # a widget, or text, and a warning of it, where there are none
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                from tqdm.auto import tqdm
    except ImportError:
        return Line(total, unit)
    return Bar(tqdm, total, unit)


def _in_notebook():
    """Whether a kernel of IPython runs this, by ``%run -m cmargin fit ...`` or `main`: what it prints is shown."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None
