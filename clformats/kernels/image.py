"""Kernels of the image family: pixels read or written through OpenCL's image functions."""

from __future__ import annotations

from ..schedule.generic import LOCAL_SIZE
from ..schedule.image import ImagePlan
from ..schedule.plan import Plan
from ..templates import render
from .generic import common_parts, dst_offset
from .source import Arguments, Launch
from .types import conversion


def launch(plan: Plan, body: ImagePlan) -> Launch:
    """The kernel and its arguments."""
    p = plan.problem
    arguments = Arguments()
    arguments.values["items"] = body.items
    parts = common_parts(p, arguments)
    channels = {}
    for side, desc in (("src", p.src), ("dst", p.dst)):
        shape = desc.image_shape
        channels[side] = shape[2] if shape else 0
        if shape:
            arguments.values[f"{side}_width"] = shape[1]
    parts["dst_offset"] = "" if p.dst.image_shape else dst_offset(p.dst, arguments)
    source = render(
        "image",
        **parts,
        types=conversion(*p.dtypes),
        channels=channels,
        declarations=arguments.declarations,
    )
    rounded = -(-body.items // LOCAL_SIZE) * LOCAL_SIZE
    return Launch(source, tuple(arguments.values.values()), p.is_wide, rounded, LOCAL_SIZE)
