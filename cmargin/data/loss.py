"""A loss as it goes from the estimator to the rows, wherever they are: its name and its parameters, as one value."""

from dataclasses import dataclass, replace
from math import ceil, log

from cmargin._core.losses._losses import LOSS_IDS, facts_at

TWO_KINKS = ("epsilon_insensitive", "quantile")


@dataclass(frozen=True)
class Loss:
    """``parameters``: a, or a and b, of `loss_t`, where the loss has them."""

    name: str
    parameters: tuple[float, ...] = ()

    @property
    def id(self):
        return LOSS_IDS[self.name]

    @property
    def numbers(self):
        """a and b of `loss_t`, 1 where the loss has none."""
        return (*self.parameters, 1.0, 1.0)[:2]

    @property
    def facts(self):
        """What compiled code says of the loss at these parameters: the fields of `loss_facts`."""
        return facts_at(self.id, *self.numbers)

    def widened(self):
        """Losses of this kind from one whose bend is 1 or wider to this one, each a quarter as wide as that before.

        One alone where this one's bend is as wide, or where it has none.
        """
        if self.name not in ("huberised_hinge", "huber"):
            return (self,)
        width, = self.parameters
        n = max(0, ceil(log(1 / width, 4)))
        return tuple(replace(self, parameters=(width * 4.0**k,)) for k in range(n, -1, -1))

    @property
    def sides(self):
        """(up, down, e) of a loss of residuals u with two kinks, up max(0, u - e) + down max(0, -u - e); else None."""
        if self.name not in TWO_KINKS:
            return None
        facts, flat = self.facts, self.parameters[0] if self.name == "epsilon_insensitive" else 0.0
        return facts["dual_largest"], -facts["dual_smallest"], flat


HINGE = Loss("hinge")
