"""Kernel source for plans: one module for each template."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..schedule.generic import GenericPlan
from ..schedule.image import ImagePlan
from ..schedule.local import GroupPlan
from ..schedule.plan import Plan
from ..schedule.scheduled import ScheduledPlan
from ..schedule.universal import UniversalPlan
from ..schedule.winograd import WinogradPlan
from ..templates import RenderError
from . import generic, image, local, scheduled, sums, universal, winograd
from .source import Launch

__all__ = ["Launch", "RenderError", "render"]


_BY_BODY: dict[type, Callable[[Plan, Any], Launch]] = {
    GroupPlan: local.render,
    GenericPlan: generic.render,
    ImagePlan: image.render,
    WinogradPlan: winograd.render,
    ScheduledPlan: scheduled.render,
    UniversalPlan: universal.render,
}


def render(plan: Plan) -> Launch | None:
    """The kernel that carries out a plan; None where there is nothing to do."""
    if plan.body is None:
        return None
    made = _BY_BODY[type(plan.body)](plan, plan.body)
    return replace(made, then=sums.render(plan.sums)) if plan.sums else made
