"""Kernel source for plans: one module for each template."""

from __future__ import annotations

from ..planner.copy import CopyPlan
from ..planner.generic import GenericPlan
from ..planner.image import ImagePlan
from ..planner.nibbles import NibblesPlan
from ..planner.plan import Plan
from ..planner.tile import TilePlan
from . import copy, generic, image, nibbles, tile
from .source import Launch, RenderError

__all__ = ["Launch", "RenderError", "launch"]


def launch(plan: Plan) -> Launch | None:
    """The kernel that carries out a plan; None where there is nothing to do."""
    body = plan.body
    if isinstance(body, CopyPlan):
        return copy.launch(plan, body)
    if isinstance(body, TilePlan):
        return tile.launch(plan, body)
    if isinstance(body, GenericPlan):
        return generic.launch(plan, body)
    if isinstance(body, ImagePlan):
        return image.launch(plan, body)
    if isinstance(body, NibblesPlan):
        return nibbles.launch(plan, body)
    return None
