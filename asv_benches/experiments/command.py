"""``python -m cmargin experiments NAME ... [--quick] [--out DIR]``, and ``list``."""

import argparse
import os
import sys

from cmargin.datasets import DataNotFound
from experiments import NAMES, find


def build_parser():
    parser = argparse.ArgumentParser(
        prog="cmargin experiments", description="Make a table or figure of the papers again: CSV, PNG and a page.",
        epilog="A run that was stopped goes on where it was: what is measured is kept under DIR/cells.")
    parser.add_argument("names", nargs="+", metavar="NAME", help="'list' for the names, 'all' for every one of them")
    parser.add_argument("--quick", action="store_true", help="small bundled data, a few seconds each")
    parser.add_argument("--out", metavar="DIR", default="results", help="folder for what is made (default: results)")
    return parser


def print_list(file):
    width = max(map(len, NAMES))
    for name in NAMES:
        module = find(name)
        print(f"{name:<{width}}  {module.TITLE} ({module.SOURCE})", file=file)


def main(argv=None):
    """Exit status 0; 1 where data are missing; 2 for usage errors, as argparse has it; 130 after a Ctrl-C."""
    parser = build_parser()
    options = parser.parse_args(argv)
    if options.names == ["list"]:
        print_list(sys.stdout)
        return 0
    names = list(NAMES) if options.names == ["all"] else options.names
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        parser.error(f"unknown experiment {unknown[0]!r}; 'python -m cmargin experiments list' names them")
    try:
        os.makedirs(options.out, exist_ok=True)
    except OSError as error:
        parser.error(f"cannot save to {options.out!r}: {error}")
    from experiments._frame import run

    status = 0
    for name in names:
        try:
            run(name, options.out, quick=options.quick)
        except DataNotFound as error:
            print(f"\ncmargin experiments: {name} has no data to run on. {error}", file=sys.stderr)
            status = 1
            continue
        except KeyboardInterrupt:
            print(f"\nstopped in {name}; the same command continues from there.", file=sys.stderr)
            return 130
        print(os.path.join(options.out, f"{name}-quick.md" if options.quick else f"{name}.md"))
    return status
