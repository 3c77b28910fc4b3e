"""Formats whose memory is an OpenCL image: which of them a device can be given."""

from __future__ import annotations

from math import prod

from .desc import MemoryDesc

TYPES = ("f32", "f16")
"""The element types of images: channels of type FLOAT and HALF_FLOAT."""


def refusal(desc: MemoryDesc) -> str:
    """Why neither memory nor a kernel takes an image; empty if they do, or if it is a buffer."""
    shape = desc.image_shape
    if shape is None:
        return ""
    if desc.format.role != "weights":
        return "only images of weights have memory here"
    if desc.dtype.name not in TYPES:
        return f"pixels of weights are of {' or '.join(TYPES)}, not of {desc.dtype}"
    if desc.span_nbytes > prod(shape) * desc.dtype.nbytes:
        return f"it begins {desc.offset0} elements behind the first pixel"
    return ""
