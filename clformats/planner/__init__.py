"""From two descriptors to a plan. Pure: runs and is tested without a device."""

from .plan import FAMILIES, Plan, make_plan
from .problem import Problem
from .stages import problem
from .traits import Traits

__all__ = ["FAMILIES", "Plan", "Problem", "Traits", "make_plan", "problem"]
