"""Which format each tensor of a network should have: one optimisation problem, solved exactly.

Each node of a network runs in some combinations of formats at some cost; where two formats meet, a
reorder costs. `propagate` finds the assignment of least cost and proves it.
"""

from __future__ import annotations

from ..timing import Race
from .choice import Choice
from .cost import Cost
from .costs import Costs
from .decision import Alternative, Packed, PlannedReorder
from .graph import Network, Node, Value
from .kernels import Kernels
from .plan import FormatPlan, propagate
from .racing import Settled, race, settle

__all__ = [
    "Alternative",
    "Choice",
    "Cost",
    "Costs",
    "FormatPlan",
    "Kernels",
    "Network",
    "Node",
    "Packed",
    "PlannedReorder",
    "Race",
    "Settled",
    "Value",
    "propagate",
    "race",
    "settle",
]
