"""Formats whose memory is an OpenCL image, and the element types that images can have."""

from __future__ import annotations

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
    if desc.offset0:
        return f"it begins {desc.offset0} elements after the first pixel"
    return ""


def row_pitch(desc: MemoryDesc) -> int:
    """Elements from a row of an image to the next; those of a row, unless strides say more."""
    *_, width, channels = desc.image_shape or (0, 0)
    rows = desc.placed[: sum((desc.format.image or ())[:-2])]
    return next((p.stride for p in reversed(rows) if p.size > 1), width * channels)


def is_pitched(desc: MemoryDesc) -> bool:
    """Whether the rows of an image are apart, so that it can only lie over a buffer."""
    *_, width, channels = desc.image_shape or (0, 0)
    return bool(desc.nelems) and row_pitch(desc) > width * channels


def is_over_buffer(desc: MemoryDesc) -> bool:
    """Whether an image always lies over a buffer: a line of pixels, or rows that are apart."""
    return len(desc.format.image or ()) == LINE or is_pitched(desc)
