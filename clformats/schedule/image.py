"""The image family: what reads or writes the pixels of an OpenCL image.

As in the generic family the digits of the destination give the logical index, and the offset
formula of the source where to read. An image is written pixel by pixel, all channels at once; the
offset in one that is read is taken apart into row, column and channel.

Values pass through float, which holds all of f32 and f16; what is narrower is rounded before it is
written, because image functions may round in their own way. They may also flush f32 subnormals.
Values of u8 are seen by image functions as fractions of 255, and come back exactly: they may err by
0.6 of a step where they round, and by far less where they read.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from .problem import Problem
from .request import Request


@dataclass(frozen=True, slots=True)
class ImagePlan:
    """``items`` work-items, one for each pixel, or each place of a buffer, of the destination."""

    problem: Problem
    items: int

    def __str__(self) -> str:
        unit = "pixels" if self.problem.dst.format.image else "places"
        return f"one work-item for each of {self.items} {unit}"


def refusal(p: Problem) -> str:
    """Why the family does not take the problem; empty if it does."""
    if not p.has_image:
        return "neither side is an image"
    return "" if p.moves_only else p.why


def plan(request: Request) -> ImagePlan:
    """The plan for a problem that `refusal` accepts."""
    p = request.problem
    shape = p.dst.image_shape
    return ImagePlan(p, prod(shape[:2] if shape else (d.size for d in p.dst.placed)))
