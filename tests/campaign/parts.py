"""The parts of the campaign by name."""

from . import certificates, problems
from .workers import Part

PARTS = {
    "certificates": Part("certificates", certificates.check_seed, lambda seed: problems.make_problem(seed).tags, 120.0,
                         certificates.LIMITS),
}
