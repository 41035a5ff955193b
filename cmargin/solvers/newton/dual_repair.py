"""A better dual point from a few rows: what keeps the gap of a good point open is often one sum over the rows.

A look tells the dual variable of every row by itself. Where some come out wrong, those of a rare column after a step
too long, say, l2 w = (1/N) sum s a y x is missed in a few columns, and the bound pays its square over 2 l2: with
a small penalty nearly all of the gap, long after the objective has arrived. So some rows, a twentieth and the heaviest,
are given other dual variables, the best there are beside those of all others, which stay. This is the dual of

    (l2/2) |w|^2 - <pull, w> + (1/N) sum over these rows of s max(0, u),      pull = (1/N) sum of the others' s a y x,

a small problem of the same kind, minimised by the same steps. With the others' (1/N) sum s a added, its value at any w
is more than all such bounds: that says early that a repair is in vain.
"""

from contextlib import suppress
from dataclasses import replace

import numpy as np

LOOKS = 10                     # at these rows, at most
SEED = 29                      # of their choice, which changes the gap and nothing else
DEEPER = 0.1                   # tolerance of the small problem, in those of the whole


def repair(newton, shares):
    """Offer ``newton``, whose rows were just looked at, a better dual point if there is one.

    ``shares``: of the positive rows to take, and of the negative ones.
    """
    settings, result, spent = newton.settings, newton.result, 0.0
    some = newton.home.some_apart(*shares, SEED)
    if some is None:
        newton.may_repair = False
        return
    part, *own = some
    newton.store(result)
    vectors, totals = (told - these for told, these in zip(newton.dual_sums_told(), own, strict=True))
    bound = total = v = None
    most = min(LOOKS * part.share, settings.max_passes - newton.reads)
    if most >= 3 * part.share > 0:
        wanted = result.objective * (1 - settings.tol)

        def over():
            small.store(small.result)
            return small.result.dual >= wanted or small.result.objective < wanted

        asked = replace(settings, tol=DEEPER * settings.tol, max_passes=most, width_end=np.finfo(float).tiny, stop=over,
                        tell=None)
        small = type(newton)(part, newton.problem, asked, None, result.width, newton.point)
        small.stand_beside(vectors, totals, newton.home.total_weight)
        with suppress(FloatingPointError):                 # its curvature is of fewer rows
            small.run()
        bound, total, v = small.dual_point()
        spent = small.result.passes + part.share           # and to tell these rows from the others
    newton.offer(bound, total, v, spent)
