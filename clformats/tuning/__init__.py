"""The tuner: it searches for plans that are faster than the rules', and records them."""

from .exchange import merge, t4
from .revalidate import revalidate
from .run import Outcome, tune

__all__ = ["Outcome", "merge", "revalidate", "t4", "tune"]
