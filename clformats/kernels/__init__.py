"""Kernel source for plans: one module for each template, loaded when it is rendered first.

A process that finds its kernels on disk loads none.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

from ..schedule.generic import GenericPlan
from ..schedule.image import ImagePlan
from ..schedule.local import GroupPlan
from ..schedule.plan import Plan
from ..schedule.scheduled import ScheduledPlan
from ..schedule.universal import UniversalPlan
from ..schedule.winograd import WinogradPlan
from ..templates import RenderError
from . import sums
from .source import Launch

__all__ = ["Launch", "RenderError", "render"]

_MODULES: dict[type, str] = {
    GroupPlan: "local",
    GenericPlan: "generic",
    ImagePlan: "image",
    WinogradPlan: "winograd",
    ScheduledPlan: "scheduled",
    UniversalPlan: "universal",
}


def render(plan: Plan) -> Launch | None:
    """The kernel that carries out a plan; None where there is nothing to do."""
    if plan.body is None:
        return None
    family = import_module(f".{_MODULES[type(plan.body)]}", __name__)
    made: Launch = family.render(plan, plan.body)
    return replace(made, then=sums.render(plan.sums)) if plan.sums else made
