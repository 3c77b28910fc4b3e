"""Kernel source for plans: one module for each template, loaded when it is rendered first.

A process that finds its kernels on disk loads none.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

from ..schedule.plan import Plan
from ..templates import RenderError
from . import sums
from .source import Launch

__all__ = ["Launch", "RenderError", "render"]


def render(plan: Plan) -> Launch | None:
    """The kernel that carries out a plan; None where there is nothing to do."""
    if plan.body is None:
        return None
    # What a module of the schedules' room plans, that of the same name here renders.
    name = type(plan.body).__module__.rpartition(".")[2]
    made: Launch = import_module(f".{name}", __name__).render(plan, plan.body)
    return replace(made, then=sums.render(plan.sums)) if plan.sums else made
