"""A path of penalties of which every one between two ends is proven, and ends that the certificates choose.

From above, problems of the hinges begin alike: beside a heavy penalty every row is within its margin, no dual variable
moves, and w = v / l2 has one direction, that of the difference of the classes' means where classes weigh alike. The
path begins where that ceases to be optimal to the tolerance. It ends where a tenth of the penalty lowers the mean loss
by no more than the tolerance, of the mean loss at w = 0, or at an ``l2_min``.
"""

from itertools import pairwise

import numpy as np

from cmargin.solvers.penalty import ElasticNet

BEYOND = 1e3                   # times the mean square of a row: beside such an l2 w is 0, about, and margins are 0
LEAST = 1e-12                  # of the same: no path goes further by itself
TENTH = 0.1                    # an l2 over the one before, on the way down
LOOKS = 8                      # parts of the interval between two fits, at whose ends gaps are evaluated
NEAREST = 1.0001               # an l2 over the next between which no fit is made
SPAN = 1e-6                    # the weakest of penalties that are chosen, over the strongest
HALVINGS = 40                  # of a logarithmic interval, in which a first penalty is looked for


def spaced(largest, least, n):
    """(n,) from the largest to the least, evenly in their logarithms, ends exact."""
    l2s = np.geomspace(largest, least, n)
    l2s[0], l2s[-1] = largest, least
    return l2s


def prove_between(solver, largest, least, l1_of):
    """Let `PathSolver` fit until every penalty between the two is proven to its tolerance."""
    ends = [l2 for l2 in (largest, least) if l2 > 0]
    solver.solve_all(ends, [l1_of(l2) for l2 in ends], between=True)
    while solver.stopped is None:
        asked = []
        for c in range(len(solver.pairs)):
            found = sorted(least_proven(solver, c, largest, least, l1_of), reverse=True)
            asked += [(c, l2) for _, l2 in (found if solver.source.shares_reads else found[:1])]
        if not asked:
            return
        solver.fit_at([(c, ElasticNet(l2, l1_of(l2))) for c, l2 in asked])


def least_proven(solver, c, largest, least, l1_of):
    """Of the penalties at which gaps are evaluated between any two fits of problem c the one of the largest gap, as
    pairs of gap and l2; none where all are small enough, less what a peak between two looks may rise above both."""
    pairs = solver.pairs[c]
    fits = [largest, *(pair.l2 for pair in pairs.pairs if largest > pair.l2 > least), least]
    for above, below in pairwise(fits):
        ends = max(pairs.certify(l2, l1_of(l2)).gap for l2 in (above, below))
        if not (below > 0 and above / below > NEAREST) or ends > solver.settings.tol:       # a fit fell short there
            continue
        gap, l2 = max((pairs.certify(l2, l1_of(l2)).gap, l2) for l2 in spaced(above, below, LOOKS + 1)[1:-1])
        if gap > (1 - 1 / LOOKS) * solver.settings.tol:
            yield gap, l2


def find_range(solver, l2_min, l1_of):
    """Fit from a penalty beside which w is nothing downwards; the first and the last of the path, see above.

    ``l2_min``: the last, or None; ``l1_of(l2)``: the l1 that goes with an l2.
    """
    size = solver.mean_square()
    size = size if np.isfinite(size) and size > 0 else 1.0
    top = max(BEYOND * size, 0.0 if l2_min is None else l2_min / TENTH)
    found = solver.solve(top, l1_of(top))
    if None in found:                            # stopped before that
        return top, top
    at_zero = [one.objective for one in found]
    l2, last = size, at_zero
    while solver.stopped is None:
        l2 = l2 if l2_min is None else max(l2, l2_min)
        risks = [risk_of(found) for found in solver.solve(l2, l1_of(l2))]
        falls = any(before - now > solver.settings.tol * zero
                    for before, now, zero in zip(last, risks, at_zero, strict=True))
        if l2 == l2_min or l2 <= LEAST * size \
                or (l2_min is None and not falls and not first_still_prove(solver, l2, l1_of)):
            break
        last, l2 = risks, TENTH * l2
    return first_penalty(solver, top, l2, l1_of), l2


def risk_of(certified):
    """The mean loss of the weights, or more."""
    return sum(part * pair.risk for part, pair in certified.primal_parts)


def first_penalty(solver, top, least, l1_of):
    """The least l2 at which the dual variables of ``top`` still prove the weights that are known, for every problem."""
    low, high = np.log(least), np.log(top)
    if not first_still_prove(solver, top, l1_of):
        return top
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if first_still_prove(solver, np.exp(middle), l1_of) else (middle, high)
    return float(np.exp(high))


def first_still_prove(solver, l2, l1_of):
    """Whether the dual variables of every problem's first fit from above prove the weights that are known at ``l2``."""
    return all(known.objective - pairs.pairs[0].dual(l2, l1_of(l2)) <= solver.settings.tol * known.objective
               for known, pairs in zip(solver.certify(l2, l1_of(l2)), solver.pairs, strict=True))
