"""Images over buffers: a view where the device makes one, else an image that is copied.

A line of pixels is a view of its buffer on every device. Of rows a device with
cl_khr_image2d_from_buffer makes views, if it takes their pitch; none has views with layers. Where
there is no view the buffer holds the values: the library's kernels take it, and kernels of users
get a `Lent` image, copied from the buffer before them and back after them.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from ..errors import DeviceError
from ..opencl import named_errors, opencl
from ..tensors.desc import MemoryDesc
from ..tensors.images import LINE, STACK, is_pitched, row_pitch
from . import image, storage
from .engine import Engine

if TYPE_CHECKING:
    import pyopencl

_UNDER = "_clformats_under"
"""The attribute of an image with the buffer under it."""


def taken(engine: Engine, desc: MemoryDesc, given: Any) -> tuple[Any, Lent | None]:
    """The image that a user gave for a descriptor, or one over the buffer that was given.

    Where the device makes none the buffer itself, and what it lends to kernels. Raises
    `DeviceError` and `InvalidArgument`.
    """
    if isinstance(given, opencl().Buffer):
        storage.check(given, desc.nbytes, engine, desc)
        held, reason = _over(engine, desc, given)
        return held, Lent(engine, desc, given, reason) if reason else None
    image.check(given, desc)
    storage.check_context(given, engine)
    if is_pitched(desc) and under(given, desc) is None:
        raise DeviceError(
            f"{desc} has rows {row_pitch(desc)} elements apart, as only an image over a buffer has "
            f"them: give the buffer, or leave the strides out"
        )
    return given, None


def _over(engine: Engine, desc: MemoryDesc, buffer: pyopencl.Buffer) -> tuple[Any, str]:
    """An image of the bytes of a buffer, or the buffer and why the device makes no such image.

    Raises `DeviceError`.
    """
    image.check_fits(engine, desc)
    cl = opencl()
    with named_errors("making an image over a buffer for", desc):
        if reason := _refusal(engine, desc):
            return buffer, reason
        pitch = 0 if image.axes_of(desc) == LINE else row_pitch(desc) * desc.dtype.nbytes
        try:
            made = image.made(engine.context, desc, image.region_of(desc), (buffer, pitch))
        except cl.Error as error:
            if error.code != cl.status_code.INVALID_IMAGE_DESCRIPTOR:
                raise
            # No driver tells pyopencl what rows it takes.
            return buffer, f"{engine.device.name.strip()} takes no rows {pitch} bytes apart"
    # OpenCL lets an image keep its buffer; Intel's runtime drops it with the last other reference.
    setattr(made, _UNDER, buffer)
    return made, ""


def _refusal(engine: Engine, desc: MemoryDesc) -> str:
    """Why a device has no such image over a buffer, as far as it tells; empty where it may have."""
    axes, device = image.axes_of(desc), engine.device
    if axes == STACK:
        return "OpenCL has no images with layers over a buffer"
    if axes == LINE or "cl_khr_image2d_from_buffer" in device.extensions.split():
        return ""
    return f"{device.name.strip()} lacks cl_khr_image2d_from_buffer"


def under(held: Any, desc: MemoryDesc) -> Any:
    """The buffer of an image, whose rows are there as the descriptor says; None without one.

    Of a buffer that stands for an image it is the buffer itself.
    """
    cl = opencl()
    if held is None or not isinstance(held, cl.Image):
        return held
    found = getattr(held, _UNDER, None)
    if image.axes_of(desc) == LINE:
        return held.get_image_info(cl.image_info.BUFFER) if found is None else found
    found = found or held.get_info(cl.mem_info.ASSOCIATED_MEMOBJECT)
    fits = found is not None and held.row_pitch == row_pitch(desc) * desc.dtype.nbytes
    return found if fits else None


class Lent:
    """The image that kernels of users get in place of a buffer, because of ``reason``."""

    def __init__(self, engine: Engine, desc: MemoryDesc, buffer: Any, reason: str) -> None:
        self._engine, self._desc, self._buffer, self.reason = engine, desc, buffer, reason
        self._image: pyopencl.Image | None = None
        self._dense = buffer

    @property
    def image(self) -> pyopencl.Image:
        """The image, which is made when it is first asked for. Raises `DeviceError`."""
        if self._image is None:
            with named_errors("making an image for", self._desc):
                found = image.made(self._engine.context, self._desc, image.region_of(self._desc))
            if is_pitched(self._desc):
                nbytes = prod(self._desc.image_shape or ()) * self._desc.dtype.nbytes
                self._dense = storage.allocated(self._engine, nbytes, None, self._desc, fill=False)
            self._image = found
        return self._image

    def fill(
        self, queue: pyopencl.CommandQueue, waits: list[pyopencl.Event]
    ) -> list[pyopencl.Event]:
        """Enqueue the copy of the buffer to the image; its event."""
        to = self.image
        if self._dense is not self._buffer:
            waits = [self._rows(queue, self._dense, self._buffer, waits)]
        return [image.copied(queue, image.region_of(self._desc), to, self._dense, waits)]

    def bring_back(self, queue: pyopencl.CommandQueue, event: pyopencl.Event) -> pyopencl.Event:
        """Enqueue the copy of the image to the buffer, after what wrote it; its event."""
        region = image.region_of(self._desc)
        event = image.copied(queue, region, self._dense, self.image, [event])
        if self._dense is not self._buffer:
            event = self._rows(queue, self._buffer, self._dense, [event])
        return event

    def _rows(
        self, queue: pyopencl.CommandQueue, to: Any, source: Any, waits: list[pyopencl.Event]
    ) -> pyopencl.Event:
        """Enqueue a copy of rows between the buffer, where they are apart, and the dense one."""
        *outer, width, channels = self._desc.image_shape or (0, 0)
        item = self._desc.dtype.nbytes
        row, pitch = width * channels * item, row_pitch(self._desc) * item
        pitches = [(pitch if b is self._buffer else row,) for b in (to, source)]
        return opencl().enqueue_copy(  # type: ignore[no-any-return]
            queue, to, source, src_origin=(0, 0, 0), dst_origin=(0, 0, 0),
            region=(row, prod(outer), 1), dst_pitches=pitches[0], src_pitches=pitches[1],
            wait_for=waits or None,
        )  # fmt: skip
