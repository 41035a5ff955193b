"""Command line: ``cmargin COMMAND``, or ``python -m cmargin``. Each command imports what it needs when it runs."""

import argparse
import os
import sys
import tempfile
from importlib import import_module
from pathlib import Path

from cmargin import __version__
from cmargin.cli.errors import exit_status, print_error
from cmargin.cli.options import add_commands

BENCHES = Path(__file__).resolve().parents[1] / "asv_benches"       # where races and experiments are


def demo(arguments, parser):
    if arguments.out is None:              # a first try from a checkout leaves nothing in it
        arguments.out = tempfile.mkdtemp(prefix="cmargin-demo-")
    try:
        os.makedirs(arguments.out, exist_ok=True)
    except OSError as error:
        parser.error(f"cannot save to {arguments.out!r}: {error}")
    if not os.access(arguments.out, os.W_OK):
        parser.error(f"cannot save to {arguments.out!r}: it may not be written to")
    from cmargin.demo.table import run

    run(arguments.out)
    return 0


def show_config(arguments, parser):
    from cmargin._runtime.show_config import show_config

    show_config()
    return 0


def from_the_checkout(command, module, arguments):
    """What stands in asv_benches, beside the package in a checkout and not installed with it."""
    if not BENCHES.is_dir():
        print_error(f"{command} is not installed with the package; it runs from a checkout of the source.")
        return 2
    if str(BENCHES) not in sys.path:
        sys.path.insert(0, str(BENCHES))
    try:
        found = import_module(module)
    except ImportError as error:
        print_error(f"{command} cannot be run here: {error}.")
        return 2
    return found.main(arguments.rest) or 0


def race(arguments, parser):
    return from_the_checkout("race", "race", arguments)


def experiments(arguments, parser):
    return from_the_checkout("experiments", "experiments.command", arguments)


def on_own_data(arguments):
    """Run a command of `cmargin.cli`, ``cmargin fit`` for example; an interrupt of its imports is caught, too."""
    return exit_status(lambda: import_module(f"cmargin.cli.{arguments.run}").run(arguments))


def build_parser():
    parser = argparse.ArgumentParser(prog="cmargin", description="Linear classifiers that care about the margin.")
    parser.add_argument("--version", action="version", version=f"cmargin {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    add_commands(commands)

    command = commands.add_parser("demo", help="train on bundled data, beside scikit-learn's linear classifiers",
                                  description="Train on data that comes with scikit-learn, print a table, save plots.")
    command.add_argument("--out", metavar="DIR", help="folder for the plots (default: a new one for temporary files)")
    command.set_defaults(run=demo)

    command = commands.add_parser("show-config", help="print versions, OpenMP, BLAS and threads",
                                  description="Print versions, OpenMP, BLAS and threads of this build and process.")
    command.set_defaults(run=show_config)

    # Its options are its own: what stands behind the name is handed on, --help included
    command = commands.add_parser("race", help="time against other packages (from a checkout)", add_help=False)
    command.set_defaults(run=race)

    command = commands.add_parser("experiments", help="make the papers' tables again (from a checkout)", add_help=False)
    command.set_defaults(run=experiments)
    return parser


def main(argv=None):
    """Run one command; returns its exit status. Usage errors end in SystemExit(2), as argparse does it."""
    parser = build_parser()
    arguments, arguments_left = parser.parse_known_args(argv)
    if arguments.run in (race, experiments):
        arguments.rest = arguments_left
    elif arguments_left:
        parser.error(f"unrecognized arguments: {' '.join(arguments_left)}")
    try:
        return on_own_data(arguments) if isinstance(arguments.run, str) else arguments.run(arguments, parser)
    except KeyboardInterrupt:            # where a command has nothing to keep
        print_error("interrupted.")
        return 130


if __name__ == "__main__":
    sys.exit(main())
