"""`python -m tests.campaign --minutes 60`: look for a promise of the library that is not kept."""

import argparse
import itertools
import json
import os
import sys
import time
from contextlib import suppress

from .findings import Totals
from .parts import PARTS
from .workers import run_part

# of the minutes left, in this order
SHARES = {"concurrent": 0.1, "faults": 0.1, "commands": 0.1, "cells": 0.1, "fuzz": 0.5, "penalised": 0.2, "convex": 0.3,
          "losses": 0.5, "certificates": 1.0}


def parser():
    out = argparse.ArgumentParser(prog="python -m tests.campaign", description=__doc__)
    out.add_argument("--minutes", type=float, default=2.0)
    out.add_argument("--part", choices=[*PARTS, "all"], default="all")
    out.add_argument("--seed", type=int, default=0, help="first seed; the others follow")
    out.add_argument("--problems", type=int, help="seeds of each part, at most")
    out.add_argument("--only", type=int, metavar="SEED", help="this seed of --part alone, in this process")
    out.add_argument("--workers", type=int, default=min(2, os.cpu_count() or 1))
    out.add_argument("--json", metavar="FILE", help="every fault and figure goes there")
    return out


def repeat(part, seed):
    """One seed in this process, where a debugger can follow."""
    part.load()
    print(f"{part.name} {seed}: {', '.join(part.describe(seed))}")
    found = part.check(seed)
    print("\n".join(found.lines()) or "no fault", *(f"{name}: {value:.6g}" for name, value in found.figures.items()),
          sep="\n")
    return bool(found.faults)


def run(part, first, problems, until, n_workers):
    seeds = itertools.count(first) if part.n_seeds is None else range(part.n_seeds)
    totals = Totals(part.name, part.limits)
    with suppress(KeyboardInterrupt):                        # who has seen enough gets the totals too
        for found in run_part(part, itertools.islice(seeds, problems), 1 if part.timed else n_workers,
                              lambda: time.monotonic() < until):
            totals.take(found)
            for line in found.lines():
                print(line, flush=True)
    print(totals.text(), flush=True)
    return totals


def main(arguments=None):
    asked = parser().parse_args(arguments)
    if asked.only is not None:
        if asked.part == "all":
            parser().error("--only needs --part")
        return int(repeat(PARTS[asked.part], asked.only))
    end, results = time.monotonic() + 60 * asked.minutes, []
    for name, share in SHARES.items():
        if asked.part in (name, "all"):
            now = time.monotonic()
            until = now + (end - now) * (share if asked.part == "all" else 1.0)
            results.append(run(PARTS[name], asked.seed, asked.problems, until, asked.workers))
    if asked.json:
        with open(asked.json, "w") as file:
            json.dump({totals.part: totals.as_dict() for totals in results}, file, indent=1)
    return int(any(totals.n_faulty for totals in results))


if __name__ == "__main__":
    sys.exit(main())
