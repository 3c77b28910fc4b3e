"""Formats whose memory is an OpenCL image, and the element types that images can have."""

from __future__ import annotations

from math import prod

from .desc import MemoryDesc

LINE, PLANE, STACK = 2, 3, 4
"""The axes of an image1d_buffer, of a 2D image and of an array of these, components counted."""
TYPES = ("f32", "f16", "u8", "s8", "s32")
"""The element types of images; `clformats.runtime.image` has OpenCL's types for them."""
PICTURES = ("image_2d_rgba", "nv12")
"""Formats of pictures, whose elements are u8 where nothing else is said."""


def refusal(desc: MemoryDesc) -> str:
    """Why an image is not supported; empty if it is, or if the memory is a buffer."""
    shape = desc.image_shape
    if shape is None:
        return ""
    if desc.dtype.name not in TYPES:
        return f"pixels are of {', '.join(TYPES)}, not of {desc.dtype}"
    if shape[-1] not in (1, 2, 4):
        return f"a pixel has 1, 2 or 4 components, not {shape[-1]}"
    if desc.span_nbytes > prod(shape) * desc.dtype.nbytes:
        return f"it begins {desc.offset0} elements after the first pixel"
    return ""
