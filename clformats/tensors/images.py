"""Formats whose memory is an OpenCL image, and the element types that images can have."""

from __future__ import annotations

from math import prod

from .desc import MemoryDesc

TYPES = {"weights": ("f32", "f16"), "data": ("u8",)}
"""The element types of images: channels of type FLOAT and HALF_FLOAT; of pictures UNORM_INT8."""


def refusal(desc: MemoryDesc) -> str:
    """Why an image is not supported; empty if it is, or if the memory is a buffer."""
    shape = desc.image_shape
    if shape is None:
        return ""
    types = TYPES[desc.format.role]
    if desc.dtype.name not in types:
        return f"pixels of {desc.format.role} are of {' or '.join(types)}, not of {desc.dtype}"
    if desc.format.name == "nv12" and shape[2] > 2:
        return f"its dims are n, h, w, c with c = 1 (luma) or 2 (chroma), not c = {shape[2]}"
    if desc.span_nbytes > prod(shape) * desc.dtype.nbytes:
        return f"it begins {desc.offset0} elements after the first pixel"
    return ""
