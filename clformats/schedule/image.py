"""The image family: reorders from and to OpenCL images on devices with units for pixels.

As in the generic family the digits of the destination give the logical index, and the offset
formula of the source gives the address to read. An image is written pixel by pixel, all channels at
once. The offset in an image that is read is split into row, column and channel.

Values pass through float, which holds all of f32 and f16. Values for narrower types are rounded
before they are written, because image functions may round differently; they may also flush f32
subnormals. Image functions see u8 as fractions of 255. The values come back exactly, because OpenCL
allows an error of 0.6 of a step when it writes, and of far less when it reads.
"""

from __future__ import annotations

from math import prod

from ..problems.problem import Problem
from ..problems.thresholds import GROUP_ITEMS
from ..problems.traits import Traits
from ..tensors.images import is_over_buffer
from .choices import Choices
from .generic import GenericPlan, places


def refusal(p: Problem) -> str:
    """Why the family does not take the problem; empty if it does."""
    if not p.has_image:
        return "neither side is an image"
    if any(d.format.image and is_over_buffer(d) for d in (p.src, p.dst)):
        return "a line of pixels is a buffer, and so are rows apart by a pitch"
    return "" if p.step is None else p.why


def plan(p: Problem, traits: Traits, choices: Choices) -> GenericPlan:
    """The plan for a problem that `refusal` accepts."""
    del traits, choices
    shape = p.dst.image_shape
    return GenericPlan(p, prod(shape[:-1]) if shape else places(p.dst), group=GROUP_ITEMS)
