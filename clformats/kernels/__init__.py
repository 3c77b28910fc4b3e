"""Kernel source for plans: one module for each template."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..planner.copy import CopyPlan
from ..planner.gather import GatherPlan
from ..planner.generic import GenericPlan
from ..planner.image import ImagePlan
from ..planner.local import LocalPlan
from ..planner.nibbles import NibblesPlan
from ..planner.plan import Plan
from ..planner.subgroup import SubgroupPlan
from ..planner.summed import SummedPlan
from ..planner.tile import TilePlan
from ..planner.winograd import WinogradPlan
from ..rendering import RenderError
from ..schedule.scheduled import ScheduledPlan
from . import copy, gather, generic, image, local, nibbles, scheduled, subgroup, summed, tile, winograd
from .source import Launch

__all__ = ["Launch", "RenderError", "launch"]


_BY_BODY: dict[type, Callable[[Plan, Any], Launch]] = {
    CopyPlan: copy.launch,
    GatherPlan: gather.launch,
    TilePlan: tile.launch,
    LocalPlan: local.launch,
    SubgroupPlan: subgroup.launch,
    GenericPlan: generic.launch,
    ImagePlan: image.launch,
    NibblesPlan: nibbles.launch,
    WinogradPlan: winograd.launch,
    SummedPlan: summed.launch,
    ScheduledPlan: scheduled.launch,
}


def launch(plan: Plan) -> Launch | None:
    """The kernel that carries out a plan; None where there is nothing to do."""
    return None if plan.body is None else _BY_BODY[type(plan.body)](plan, plan.body)
