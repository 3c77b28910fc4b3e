"""From two descriptors to a plan. Pure: runs and is tested without a device."""

from ..problems.problem import Problem
from ..problems.refine import problem
from ..problems.traits import Traits
from .plan import FAMILIES, GPU_FAMILIES, Plan, Request, families, make_plan, plan_for

__all__ = [
    "FAMILIES", "GPU_FAMILIES", "Plan", "Problem", "Request", "Traits", "families", "make_plan",
    "plan_for", "problem",
]  # fmt: skip
