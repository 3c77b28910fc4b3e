"""Formats whose memory is an OpenCL image, and the element types that images can have."""

from __future__ import annotations

from math import prod

from .desc import MemoryDesc

TYPES = ("f32", "f16", "u8")
"""The element types of images: components of type FLOAT, HALF_FLOAT and UNORM_INT8."""
PICTURES = ("image_2d_rgba", "nv12")
"""Formats of pictures, whose elements are u8 where nothing else is said."""


def refusal(desc: MemoryDesc) -> str:
    """Why an image is not supported; empty if it is, or if the memory is a buffer."""
    shape = desc.image_shape
    if shape is None:
        return ""
    if len(shape) != 3:
        return "images on devices have rows, columns and components: two bars"
    if desc.dtype.name not in TYPES:
        return f"pixels are of {', '.join(TYPES)}, not of {desc.dtype}"
    if shape[-1] not in (1, 2, 4):
        return f"a pixel has 1, 2 or 4 components, not {shape[-1]}"
    if desc.span_nbytes > prod(shape) * desc.dtype.nbytes:
        return f"it begins {desc.offset0} elements after the first pixel"
    return ""
