"""Races against other packages: ``python -m cmargin race``. How to read them: doc/race.md.

    limits        what the machine can do at best
    data          bundled sets, generated ones, and files
    traces        ever longer runs of one solver, each timed from its start
    peer          what the races know of a package
    hinge         who solves one hinge problem: the packages' parameters in terms of one objective
    rehline, sparse_logistic   packages that have a file of their own
    losses        who takes the other losses
    suboptimality seconds until an objective is reached
    classifiers   who classifies into many classes
    accuracy      seconds until a test accuracy is reached
    grid          all losses, sets, penalties and seeds: what is measured and kept
    page          the page and plots of that
    tables        what is printed and stored
"""

from race.command_line import main

__all__ = ["main"]
