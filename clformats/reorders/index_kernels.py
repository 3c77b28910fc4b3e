"""`IndexKernels`: offsets and coordinates of arrays of elements, computed on the device."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidArgument, InvalidDescriptor, expect
from ..formats.digits import place
from ..index.source import index_source
from ..opencl import OnDevice, named_errors, opencl
from ..programs.guard import FirstLaunch
from ..runtime import Engine, Stream
from ..runtime.engine import default_engine
from ..templates import filled
from ..tensors.desc import MemoryDesc
from ..tensors.dtypes import as_array
from ..tensors.given import as_desc

if TYPE_CHECKING:
    import pyopencl.array

LOCAL = 64


class IndexKernels(OnDevice):
    """Offsets of arrays of coordinates, and coordinates of arrays of offsets, on the device.

    They serve tables, and kernels that gather and scatter. Arrays are `pyopencl.array.Array`, of
    ``dtype``: int32, or int64 if the tensor needs it. Numpy arrays of any integers are accepted
    too, and copied to the device. Offsets are in elements (`MemoryDesc.offset`). The result is -1
    for coordinates outside the tensor and for offsets of padding.

    Everything is enqueued on the stream, or on the engine's own queue if there is none; an array
    waits for its values by itself (``get``). All tensors of a dense format share one program. Safe
    to call from several threads. Raises `InvalidDescriptor` if the layout or a size is unknown.
    """

    _travels_as = "send its descriptor, and make another there"

    def __init__(self, desc: MemoryDesc | str, engine: Engine | None = None) -> None:
        desc = as_desc(desc, "desc")
        expect(engine, Engine | None, "engine")
        desc.require_layout()
        if not desc.has_layout:
            raise InvalidDescriptor(f"{desc} has no elements that could lie anywhere")
        self.desc = desc
        self.engine = engine or default_engine()
        wide = desc.span_nbytes * 8 // desc.dtype.bits > np.iinfo(np.int32).max
        self.dtype: np.dtype[Any] = np.dtype(np.int64 if wide else np.int32)
        self.source, self._sizes = _program(desc, wide=wide)

    def __repr__(self) -> str:
        return f"IndexKernels({str(self.desc)!r})"

    def offsets(self, coordinates: Any, stream: Stream | None = None) -> pyopencl.array.Array:
        """The offset at each index; ``coordinates`` of shape (..., ndims), the result (...).

        Raises `InvalidArgument` for another shape or type, `DeviceError`.
        """
        given = self._given(coordinates, "coordinates", stream)
        if not given.shape or given.shape[-1] != self.desc.ndims:
            raise InvalidArgument(
                f"coordinates: got an array of shape {given.shape}, expected (..., "
                f"{self.desc.ndims}) for {', '.join(self.desc.format.dims)}"
            )
        shape = given.shape[:-1]
        return self._run("offsets", [given], shape, prod(shape), stream)

    def coordinates(self, offsets: Any, stream: Stream | None = None) -> pyopencl.array.Array:
        """The index of the element at each offset; the result has one more axis, of ndims.

        Raises `InvalidArgument` for an array of another type, `DeviceError`.
        """
        given = self._given(offsets, "offsets", stream)
        shape = given.shape
        return self._run("coordinates", [given], (*shape, self.desc.ndims), prod(shape), stream)

    def offset_map(self, stream: Stream | None = None) -> pyopencl.array.Array:
        """The offset of every element, of shape ``desc.dims``: `MemoryDesc.offsets` on the device.

        Raises `DeviceError`.
        """
        expect(stream, Stream | None, "stream")
        return self._run("offset_map", [], self.desc.dims, self.desc.nelems, stream)

    def _given(self, values: Any, what: str, stream: Stream | None) -> Any:
        """An array on the device."""
        from pyopencl.array import Array, to_device

        expect(stream, Stream | None, "stream")
        if isinstance(values, Array):
            if values.dtype != self.dtype or not values.flags.c_contiguous:
                raise InvalidArgument(
                    f"{what}: got an array of {values.dtype} on the device, expected "
                    f"{self.dtype}, C-contiguous"
                )
            return values
        array = as_array(values)
        if array.size and array.dtype.kind not in "iu":
            raise InvalidArgument(f"{what}: got an array of {array.dtype}, expected integers")
        limits = np.iinfo(self.dtype)
        # A value beyond the type is outside the tensor as well.
        fitting = np.clip(array, -1, limits.max).astype(self.dtype)
        with named_errors(f"copying {what} to the device"):
            return to_device(self._queue(stream), np.ascontiguousarray(fitting))

    def _queue(self, stream: Stream | None) -> Any:
        return stream.queue if stream else self.engine.queue

    def _run(
        self, name: str, given: list[pyopencl.array.Array], shape: tuple[int, ...], count: int,
        stream: Stream | None,
    ) -> pyopencl.array.Array:  # fmt: skip
        cl = opencl()
        from pyopencl.array import empty

        queue = self._queue(stream)
        with named_errors(f"enqueueing {name} of", self.desc):
            out: pyopencl.array.Array = empty(queue, shape, self.dtype)
            if count == 0:
                return out
            if any(array.offset for array in given):
                raise InvalidArgument(f"{name}: got a view into an array, expected a whole array")
            arrays = [*given, out]
            kernel = self.engine.kernel(self.source, name, self._first_launch(name, len(arrays)))
            arguments = [*(a.base_data for a in arrays), np.uint64(count), *self._sizes]
            waits = [event for array in given for event in array.events]
            threads = -(-count // LOCAL) * LOCAL
            kernel.set_args(*arguments)
            event = cl.enqueue_nd_range_kernel(queue, kernel, (threads,), (LOCAL,), wait_for=waits)
        out.add_event(event)
        return out

    def _first_launch(self, name: str, arrays: int) -> FirstLaunch:
        """One work-group: the first elements, or those at offset 0."""
        nbytes = LOCAL * self.desc.ndims * self.dtype.itemsize
        sizes = (size.tobytes() for size in (np.uint64(LOCAL), *self._sizes))
        return FirstLaunch(name, (LOCAL,), (*[nbytes] * arrays, *sizes))


def _program(desc: MemoryDesc, *, wide: bool) -> tuple[str, list[Any]]:
    """The source, and the sizes that its kernels take: none for strides of the tensor's own."""
    layout, letters = desc.format.structure, desc.format.letters
    dense = place(layout, desc.padded_dims) == desc.placed
    whole = desc.padded_dims == layout.padded(
        [n + a + b for n, (a, b) in zip(desc.dims, desc.padding, strict=True)]
    )
    values: list[Any] = []
    if dense and whole and not desc.offset0:
        padded = "".join(c for c, pads in zip(letters, desc.padding, strict=True) if any(pads))
        source = index_source(
            desc.format, "T", sizes="arguments", padded=padded, wide=wide, vector=""
        )
        size = np.uint64 if wide else np.uint32
        pads = [n for both in desc.padding if any(both) for n in both]
        values = [size(n) for n in (*desc.dims, *pads)]
    else:
        source = index_source(desc, "T", wide=wide, vector="")
    signed, sizes = "long" if wide else "int", "T_PARAMETERS" if values else ""
    return filled("places", source=source, letters=letters, signed=signed, sizes=sizes), values
