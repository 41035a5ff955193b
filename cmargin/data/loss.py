"""A loss as it goes from the estimator to the rows, wherever they are: its name and its parameters, as one value."""

from dataclasses import dataclass
from functools import cached_property

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

    @cached_property
    def facts(self):
        """What compiled code says of the loss at these parameters: the fields of `loss_facts`."""
        return facts_at(self.id, *self.numbers)

    @property
    def sides(self):
        """(up, down, e) of a loss of residuals u with two kinks, up max(0, u - e) + down max(0, -u - e); else None."""
        if self.name not in TWO_KINKS:
            return None
        facts, flat = self.facts, self.parameters[0] if self.name == "epsilon_insensitive" else 0.0
        return facts["dual_largest"], -facts["dual_smallest"], flat


HINGE = Loss("hinge")
