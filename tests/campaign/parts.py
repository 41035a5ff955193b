"""The parts of the campaign by name."""

from importlib import import_module

from . import cell_part, certificates, commands, concurrent, convex, faults, fuzz, losses, penalised, problems
from .convex_problems import describe as describe_convex
from .workers import Part


def describe_problem(seed):
    return problems.make_problem(seed).tags


def load():
    for name in ("cmargin.baselines", "cmargin.slnd", "cmargin.smsvm_cv", "scipy.optimize"):
        import_module(name)


PARTS = {
    "certificates": Part("certificates", certificates.check_seed, describe_problem, load, 120.0, certificates.LIMITS),
    "losses": Part("losses", losses.check_seed, losses.describe, load, 120.0, losses.LIMITS),
    "convex": Part("convex", convex.check_seed, describe_convex, load, 120.0, convex.LIMITS),
    "penalised": Part("penalised", penalised.check_seed, penalised.describe, load, 120.0, penalised.LIMITS,
                      len(penalised.CELLS)),
    "faults": Part("faults", faults.check_seed, faults.describe, faults.load, 60.0, {}, prepare=faults.prepare),
    "fuzz": Part("fuzz", fuzz.check_seed, fuzz.describe, fuzz.load, 300.0, {}),
    "commands": Part("commands", commands.check_seed, commands.describe, commands.load, 30.0, {}),
    "cells": Part("cells", cell_part.check_seed, cell_part.describe, cell_part.load, 60.0, {}),
    "concurrent": Part("concurrent", concurrent.check_seed, concurrent.describe, load, 120.0, concurrent.LIMITS,
                       len(concurrent.CASES), timed=True),
}
