"""Images that kernels reach as buffers: those that always lie over one, and others on CPUs.

An image has the bytes of its `buffer_twin`, row by row, so whatever moves the twin moves the image.
One line of pixels, an image1d_buffer, lies in a buffer, which the kernel takes; so do rows that are
apart by a pitch. Other images are copied from or to a buffer of the library's by OpenCL's copy
commands.

That is a pass more, and still the faster way on CPUs, where a pixel costs a function call. A kernel
that only reads or writes a million pixels takes 2 to 5 ms on two cores with PoCL 3.1, and 1 to 3 ms
with Intel's runtime of 2026. Reorder and copy together take 0.2 to 0.9 ms. GPUs have units for
pixels, and memory is what they wait for: there, kernels read and write such images themselves.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..formats.winograd import method
from ..tensors.desc import MemoryDesc
from ..tensors.images import is_over_buffer
from .problem import Problem
from .refine import problem
from .traits import Traits


def in_buffers(src: MemoryDesc, dst: MemoryDesc, traits: Traits) -> tuple[MemoryDesc, MemoryDesc]:
    """What kernels on a device read and write for two descriptors, of which some are images."""
    a, b = (d.buffer_twin if d.format.image and (traits.is_cpu or is_over_buffer(d)) else d
            for d in (src, dst))  # fmt: skip
    return a, b


def by_buffers(p: Problem, traits: Traits | None = None) -> Problem:
    """The problem of a kernel, with twins in place of images.

    Without the traits of a device all images have twins. A transform writes pixels of the images of
    Winograd formats, which have one for each value.
    """
    if p.step is not None:
        by_pixels = not p.dst.format.image or method(p.dst.format.name)
        return p if by_pixels else replace(p, dst=p.dst.buffer_twin)
    twins = p.src.buffer_twin, p.dst.buffer_twin
    reached = in_buffers(p.src, p.dst, traits) if traits else twins
    if reached == (p.src, p.dst):
        return p
    return problem(*reached, p.computation, transform=False)


def copies(images: Iterable[MemoryDesc | None]) -> bool:
    """Whether an image goes by a copy: one that may have no buffer under it does."""
    return any(not is_over_buffer(d) for d in images if d)


def told(images: Iterable[MemoryDesc | None], twins: Iterable[MemoryDesc]) -> list[str]:
    """Of each image that goes by its twin how it does, for people."""
    lines, verbs = [], (("reads", "of"), ("writes", "to"))
    for image, twin, (verb, way) in zip(images, twins, verbs, strict=True):
        if image:
            why = f"a copy {way} it" if copies([image]) else "its buffer"
            lines.append(f"{image.format}: the kernel {verb} {twin}, {why}")
    return lines
