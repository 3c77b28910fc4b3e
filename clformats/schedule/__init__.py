"""From two descriptors to a plan. Pure: runs and is tested without a device."""

from .plan import FAMILIES, GPU_FAMILIES, Plan, families, make_plan
from .problem import Problem
from .refine import problem
from .traits import Traits

__all__ = [
    "FAMILIES", "GPU_FAMILIES", "Plan", "Problem", "Traits", "families", "make_plan", "problem",
]  # fmt: skip
