"""From two descriptors to a plan. Pure: runs and is tested without a device."""

from .plan import FAMILIES, GPU_FAMILIES, Plan, families, make_plan, plan_for
from .problem import Problem
from .refine import problem
from .request import Request
from .traits import Traits

__all__ = [
    "FAMILIES", "GPU_FAMILIES", "Plan", "Problem", "Request", "Traits", "families", "make_plan",
    "plan_for", "problem",
]  # fmt: skip
