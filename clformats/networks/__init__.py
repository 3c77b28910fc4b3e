"""Which format each tensor of a network should have: one optimisation problem, solved exactly.

Each node of a network runs in some combinations of formats at some cost; where two formats meet, a
reorder costs. `propagate` finds the assignment of least cost and proves it.
"""

from __future__ import annotations

from ..timing import Race
from .auditing import Finding, Report, audit
from .choice import Choice
from .cost import Cost
from .costs import Costs
from .graph import Network, Node, Value
from .kernels import Kernels
from .plan import Alternative, FormatPlan, Packed, PlannedReorder, propagate
from .racing import Settled, race, settle

__all__ = [
    "Alternative",
    "Choice",
    "Cost",
    "Costs",
    "Finding",
    "FormatPlan",
    "Kernels",
    "Network",
    "Node",
    "Packed",
    "PlannedReorder",
    "Race",
    "Report",
    "Settled",
    "Value",
    "audit",
    "propagate",
    "race",
    "settle",
]
