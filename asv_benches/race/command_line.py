"""``python -m cmargin race``: options, the machine's limits, the races one after the other, the tables."""

import argparse
import os
import shlex
import sys
from itertools import product
from pathlib import Path

from threadpoolctl import threadpool_limits

from measure.limits import dsyrk_rate, memory_rate
from race import accuracy, grid, suboptimality, tables
from race.classifiers import contenders
from race.data import BUNDLED, SYNTHETIC, LeftOut, Problem, codes, prepare, read
from race.losses import PEERS
from race.page import write_page

EVERYDAY = {"objective": ["breast_cancer", "digits", "tall", "wide"], "accuracy": ["digits"],
            "losses": ["breast_cancer", "digits:8", "wine:1", "tall", "wide", "sparse"]}
L2 = {"objective": [1e-3], "accuracy": [], "losses": [1e-2, 1e-4]}
QUICK = {"data": ["wine:1"], "l2": [1e-2], "seeds": [701, 702], "time_limit": 0.2}


EVERYDAY_SEEDS = [701, 702, 703]               # none of those that constants were chosen on


def build_parser():
    parser = argparse.ArgumentParser(
        prog="cmargin race", description="Seconds to a relative suboptimality of one objective, or to a test "
        "accuracy, for cmargin and every other package that is installed. doc/race.md says how to read the tables.")
    parser.add_argument("--task", choices=list(EVERYDAY), default="objective",
                        help="one objective, a test accuracy, or all losses, sets and seeds, with a page")
    parser.add_argument("--data", nargs="+", metavar="NAME", help=f"{', '.join([*BUNDLED, *SYNTHETIC])}, or NAME.npz "
                        "in $CMARGIN_DATA; NAME:CLASS for one class against the rest")
    parser.add_argument("--l2", nargs="+", type=float, help="objective, losses: one race for each")
    parser.add_argument("--l1", nargs="+", type=float, default=[0.0], help="objective: one race for each")
    parser.add_argument("--intercept", choices=["penalized", "none"], default="penalized",
                        help="objective: a penalised column of ones for everybody, or nothing for anybody")
    parser.add_argument("--costs", nargs="+", type=float, default=[0.1, 1.0, 10.0], metavar="C",
                        help="accuracy: the values of C tried for SmSVM, LinearSVC and LogisticRegression")
    parser.add_argument("--time-limit", type=float, metavar="SECONDS", help="of one run (default: 10); "
                        "doubling up to it takes about twice as long, for every solver and way")
    parser.add_argument("--solvers", nargs="+", metavar="NAME", help="default: all that are installed; "
                        + "; ".join(f"{task}: {', '.join(known(task))}" for task in EVERYDAY))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--csv", metavar="FILE", help="objective, accuracy: write the table here too")
    parser.add_argument("--losses", nargs="+", choices=list(PEERS), metavar="LOSS", help="objective, losses: "
                        f"{', '.join(PEERS)} (default: objective hinge, losses all)")
    parser.add_argument("--seeds", nargs="+", type=int, help="losses: orders of the rows, draws of made sets "
                        f"(default: {' '.join(map(str, EVERYDAY_SEEDS))})")
    parser.add_argument("--out", metavar="DIR", default="results", help="losses: folder of the page (default: results)")
    parser.add_argument("--quick", action="store_true", help="losses: one small set, in seconds")
    return parser


def known(task):
    """Names of the solvers of a task."""
    if task == "accuracy":
        return list(contenders([]))
    return list(dict.fromkeys(name for of in PEERS.values() for name in of))


def entrants(loss, options):
    """Names of the solvers that race on one objective, installed ones; those that are absent are named once."""
    names = [name for name in PEERS[loss] if name in (options.solvers or ())
             or (not options.solvers and name != "cmargin-certified")]
    absent = {name: why for name in names if (why := PEERS[loss][name].absence())}
    if absent:
        print(f"# {loss}: not in the race: " + ", ".join(f"{name} ({why})" for name, why in absent.items()))
    return [name for name in names if name not in absent]


def checked(parser, options):
    """Options that argparse cannot check on its own, and what stands for those that were not given."""
    quick = QUICK if options.quick and options.task == "losses" else {}
    everyday = {"data": EVERYDAY[options.task], "l2": L2[options.task], "seeds": EVERYDAY_SEEDS, "time_limit": 10.0,
                "losses": ["hinge"] if options.task == "objective" else list(PEERS)}
    for name, value in (everyday | quick).items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    for name in options.solvers or ():
        if name not in known(options.task):
            parser.error(f"--task {options.task} knows no solver {name!r}; it knows {', '.join(known(options.task))}")
    if options.threads < 1 or options.time_limit <= 0:
        parser.error("--threads and --time-limit must be above 0")
    if min(options.l2, default=1) < 0 or min(options.l1) < 0 or min(options.costs) <= 0:
        parser.error("--l2 and --l1 must be at least 0, --costs above 0")
    if min(options.l2, default=1) == 0 and (min(options.l1) == 0 or options.task == "losses"):
        parser.error("--l2 0 needs an --l1 above 0, and --task objective: the other packages know no unpenalised loss")
    if min(options.seeds) < 0:
        parser.error("--seeds must be at least 0")
    check_writable(parser, options)
    if options.task == "accuracy":
        options.solvers = options.solvers or known(options.task)
    return options


def check_writable(parser, options):
    """Before the hours, not after them."""
    if options.task == "losses":
        try:
            os.makedirs(options.out, exist_ok=True)
        except OSError as error:
            parser.error(f"--out cannot be written: {error}")
        if not os.access(options.out, os.W_OK):
            parser.error(f"--out cannot be written: {options.out}")
    elif options.csv:
        try:
            open(options.csv, "a").close()
        except OSError as error:
            parser.error(f"--csv cannot be written: {error}")


def objective_race(entry, options, machine, folder, results):
    """The races on one data set, for each class, loss, l2 and l1; lines are printed as soon as their race is over."""
    name, _, only = entry.partition(":")
    split = read(name, folder)
    X = prepare(split.X, options.intercept == "penalized")
    stored = X.data if hasattr(X, "indptr") else X
    print(f"# {name}: {X.shape[0]} x {X.shape[1]}, {stored.size} numbers; one read of them takes "
          f"{stored.nbytes / machine[0]:.2g} s or more"
          + ("" if stored is not X else f", X'X {X.size * (X.shape[1] + 1.0) / machine[1]:.2g} s"))
    for (c, y), loss in product(codes(split.y, only or None), options.losses):
        names = options.entrants[loss]
        for l2, l1 in product(options.l2, options.l1):
            problem = Problem(X, y, l2, l1, loss)
            without = {name: why for name in names if (why := suboptimality.left_out(name, problem))}
            if without:
                print("# " + "; ".join(f"{name} {why}" for name, why in without.items()))
            told = {"data": name, "class": c, "loss": loss, "l2": l2, "l1": l1, "intercept": options.intercept}
            print_race(told, suboptimality.race(problem, options.time_limit, options.threads, names), results)


def print_race(told, race, results):
    """Lines of one problem's race, into the results too."""
    found, best, distance = race
    table = tables.objective_table([f"{t:g}" for t in suboptimality.TARGETS])
    for row in found:
        row = told | {"objective": best, "certified": distance} | row
        print(table.line(row))
        results.add(row)
    print(f"# best objective {best:.8g}"
          + (f", certified within {distance:.0e} of the optimum" if distance == distance else ""), flush=True)


def accuracy_race(name, options, machine, folder, results):
    """The race on one data set."""
    table = tables.accuracy_table(accuracy.KEYS)
    task, before = accuracy.make_task(name, read(name, folder))
    print(f"# {name}: {task.X.shape[0]} x {task.X.shape[1]}, {len(task.y_test)} test rows; rows of unit length in "
          f"{before:.3g} s")
    found, wanted = accuracy.race(task, before, options.time_limit, options.threads, options.solvers, options.costs,
                                  lambda line: print(line, flush=True))
    print("# accuracies to reach: "
          + ", ".join(f"{key} = {level:.2f}" for key, level in zip(accuracy.KEYS, wanted, strict=True)))
    print(table.heading())
    for row in found:
        row = {"data": name, "preparation": before, "levels": " ".join(f"{v:.2f}" for v in wanted)} | row
        print(table.line(row), flush=True)
        results.add(row)


def introduce(options):
    """What the columns are."""
    if options.task == "accuracy":
        print("seconds to SGD's best test accuracy less so many points, preparation of the rows included; ratio: to "
              f"SLND\nat {accuracy.KEYS[accuracy.RATIO]}; how: the setting that was the quickest there")
        return
    print("seconds to relative suboptimality; ratio: to cmargin at the last target; best: distance of a solver's best "
          "point;\npasses, nonzeros, how, gap (certified): of the run that met the last target, or else the best one")
    print(tables.objective_table([f"{t:g}" for t in suboptimality.TARGETS]).heading())


def main(argv=None):
    """Tables on standard output, a CSV or a page; the exit status: 1 where something was left out, 130 on a Ctrl-C."""
    argv = sys.argv[1:] if argv is None else list(argv)
    parser = build_parser()
    options = checked(parser, parser.parse_args(argv))
    if options.task == "losses":
        return losses_race(options, shlex.join(["python", "-m", "cmargin", "race", *argv]))
    machine = memory_rate(options.threads), dsyrk_rate(options.threads)
    print(f"machine, {options.threads} threads: memory is read at {machine[0] / 1e9:.1f} GB/s, dsyrk does "
          f"{machine[1] / 1e9:.0f} Gflop/s")
    results = tables.Results(options.csv, {"task": options.task, "threads": options.threads,
                                           "memory_GB_per_s": machine[0] / 1e9,
                                           "dsyrk_Gflop_per_s": machine[1] / 1e9})
    race = objective_race if options.task == "objective" else accuracy_race
    if options.task == "objective":
        options.entrants = {loss: entrants(loss, options) for loss in options.losses}
    introduce(options)
    left_out = each(options, lambda entry, folder: race(entry, options, machine, folder, results))
    return int(bool(left_out) or results.failed)


def each(options, race):
    """``race(entry, folder)`` for every data set; the sentences on those that were left out, which are printed."""
    left_out = []
    with threadpool_limits(options.threads):
        for entry in options.data:
            try:
                race(entry, os.environ.get("CMARGIN_DATA"))
            except LeftOut as reason:
                left_out.append(f"race: {entry} was left out: {reason}")
                print(f"# {left_out[-1]}", flush=True)
    for line in left_out:                   # once more at the end, where it is not lost among the tables
        print(line, file=sys.stderr)
    return left_out


def losses_race(options, command):
    """All that is not measured yet; then, or after a Ctrl-C, the page of what there is."""
    stem = "race-quick" if options.quick else "race"
    kept = grid.Kept(Path(options.out) / f"{stem}.jsonl")
    try:
        open_ends = each(options, lambda entry, folder: grid.race(entry, options, kept, folder,
                                                                  lambda line: print(line, flush=True)))
        status = int(bool(open_ends))
    except KeyboardInterrupt:
        open_ends, status = ["stopped before its end; the same command continues from there."], 130
        print(f"\nrace: {open_ends[0]}", file=sys.stderr)
    print(write_page(options.out, stem, grid.standing(kept, options), open_ends, options, command))
    return status
