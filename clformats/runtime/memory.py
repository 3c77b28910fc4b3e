"""`Memory`: a buffer or image with a descriptor, and its mapping to the host.

Commands that go through this library wait for each other as they must, on whatever stream they are
(see `usage`). Commands that you enqueue yourself on ``stream.queue`` are not known to it: wait for
them before you map, or use the same in-order stream.
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from .. import images
from ..desc import MemoryDesc
from ..dtypes import as_array, as_dtype
from ..errors import (
    DeviceError,
    InvalidArgument,
    InvalidDescriptor,
    MappedError,
    Unsupported,
    expect,
)
from ..host import flat_size, pack, storage_size, unpack
from . import image
from .engine import Engine, default_engine
from .opencl import named_errors, opencl
from .stream import Stream
from .usage import LOCK, Usage, events_before, usage_of

if TYPE_CHECKING:
    import pyopencl

Mode = Literal["r", "w", "rw"]


class _Allocate:
    """The default of ``Memory(buffer=)``: allocate. None means no buffer."""


ALLOCATE = _Allocate()


class Memory:
    """A tensor on a device: ``desc`` says how it lies in ``buffer``.

    ``Memory(desc, engine)`` allocates what the descriptor needs and fills it with zeros;
    ``buffer=`` wraps a pyopencl buffer, which must be large enough; ``buffer=None`` has none until
    `set_buffer`. A descriptor without elements has no buffer. For the image formats of weights, in
    f32 and f16, and of pictures, in u8, ``buffer`` is a pyopencl image of `MemoryDesc.image_shape`.
    A picture in nv12 is two of them: luma, dims (n, h, w, 1), and chroma, (n, h/2, w/2, 2).

    Raises `InvalidDescriptor` for ``any``, `Unsupported` (code IMAGE) for other images,
    `DeviceError` where allocation fails, the buffer does not fit or the device has no images.
    """

    def __init__(
        self,
        desc: MemoryDesc,
        engine: Engine | None = None,
        *,
        buffer: pyopencl.Buffer | pyopencl.Image | _Allocate | None = ALLOCATE,
    ) -> None:
        expect(desc, MemoryDesc, "desc")
        expect(engine, Engine | None, "engine")
        if desc.format_kind == "any":
            raise InvalidDescriptor(f"{desc} has no layout yet: choose a concrete format")
        if desc.has_runtime:
            raise InvalidDescriptor(f"{desc} has sizes known at execution only: give the dims")
        if reason := images.refusal(desc):
            raise Unsupported(
                "IMAGE",
                f"{desc} is an image of shape {desc.image_shape}, and {reason}: write what cf.pack "
                f"gives, reshaped so, to an image of your own",
            )
        self.desc = desc
        self.engine = engine or default_engine()
        self.context: pyopencl.Context = self.engine.context
        self.usage = Usage()
        self.sound: MemoryDesc | None = None
        self.buffer: pyopencl.Buffer | pyopencl.Image | None = None
        if isinstance(buffer, _Allocate):
            self.set_buffer(self._allocated())
        else:
            self.set_buffer(buffer)

    @property
    def nbytes(self) -> int:
        """The bytes the buffer has at the least."""
        return flat_size(self.desc) * self.desc.dtype.bits // 8

    def _allocated(self) -> pyopencl.Buffer | pyopencl.Image | None:
        if not self.nbytes:
            return None
        if self.desc.format.image:
            return image.allocated(self.engine, self.desc)
        cl = opencl()
        with named_errors(f"allocating {self.nbytes} bytes for", self.desc):
            buffer = cl.Buffer(self.engine.context, cl.mem_flags.READ_WRITE, self.nbytes)
            cl.enqueue_fill_buffer(
                self.engine.queue, buffer, np.zeros(1, np.uint8), 0, self.nbytes
            ).wait()
        return buffer  # type: ignore[no-any-return]

    def set_buffer(self, buffer: pyopencl.Buffer | pyopencl.Image | None) -> None:
        """Put another buffer or image under the memory object, or none; its contents stay."""
        self.check_unmapped("give it another buffer")
        if buffer is not None:
            if self.desc.format.image:
                image.check(buffer, self.desc)
            else:
                self._check_size(buffer)
            if buffer.context != self.engine.context:
                raise DeviceError("the buffer belongs to another OpenCL context than the engine")
        self.buffer = buffer
        self.usage = usage_of(buffer)
        # Set where there is a buffer and it fits: calls then look no further.
        self.sound = self.desc if buffer is not None else None

    def _check_size(self, buffer: pyopencl.Buffer | pyopencl.Image) -> None:
        expect(buffer, opencl().Buffer, "buffer")
        if buffer.size < self.nbytes:
            raise DeviceError(
                f"the buffer has {buffer.size} bytes, {self.desc} needs {self.nbytes}"
            )

    # --- mapping ----------------------------------------------------------------------------------

    def map(self, mode: Mode = "rw", *, stream: Stream | None = None) -> Mapping:
        """Map the buffer to the host: ``with m.map("rw") as a:`` gives its physical elements.

        ``a`` is a 1-D array over every element, padding too. It dies with the block: what it points
        to is not yours any more. The mapping is exclusive for the whole buffer: a second one, and
        any command on the buffer, raises `MappedError`. With ``"r"`` the array is read-only; with
        ``"w"`` the old contents are not read: write every element.

        An image is read, whatever the mode, into an array of its own, row by row without a pitch,
        and with ``"w"`` or ``"rw"`` written back when the block ends.
        """
        expect(mode, str, "mode")
        if mode not in ("r", "w", "rw"):
            raise InvalidArgument(f"got mode {mode!r}, expected 'r', 'w' or 'rw'")
        expect(stream, Stream | None, "stream")
        self.check_unmapped("map it")
        if stream is not None and stream.queue.context != self.engine.context:
            raise DeviceError(f"the stream belongs to another OpenCL context than {self!r}")
        return Mapping(self, mode, stream.queue if stream else self.engine.queue)

    def check_unmapped(self, wish: str) -> None:
        """Raise `MappedError` where the buffer is mapped; ``wish`` is what was to be done."""
        mapping = self.usage.mapping
        if mapping is not None:
            raise MappedError(
                f"{mapping.memory!r} is mapped with mode {mapping.mode!r}, cannot {wish}: leave "
                f"its `with memory.map(...)` block first"
            )

    def __repr__(self) -> str:
        state = "" if self.buffer is not None else ", no buffer"
        return f"Memory({str(self.desc)!r}{state})"


class Mapping:
    """A buffer mapped to the host; a context manager, to be entered once. Made by `Memory.map`."""

    def __init__(self, memory: Memory, mode: Mode, queue: pyopencl.CommandQueue) -> None:
        self.memory, self.mode = memory, mode
        self._queue = queue
        self._usage = memory.usage
        self._array: NDArray[Any] | None = None
        self._entered = False

    def __enter__(self) -> NDArray[Any]:
        memory = self.memory
        with LOCK:
            if self._entered:
                raise MappedError("a mapping is entered once: call memory.map() again")
            memory.check_unmapped("map it")
            self._entered = True
            self._usage.mapping = self
        try:
            if memory.nbytes:
                self._array = self._map(memory)
        except BaseException:
            self._usage.mapping = None
            raise
        raw = np.zeros(0, memory.desc.dtype.raw) if self._array is None else self._array
        array = raw.view(memory.desc.dtype.storage)
        array.flags.writeable = "w" in self.mode
        return array

    def _map(self, memory: Memory) -> NDArray[Any]:
        if memory.buffer is None:
            raise DeviceError(f"{memory!r} cannot be mapped: give it one by set_buffer()")
        with LOCK:
            writes = self._usage if "w" in self.mode else None
            waits = events_before([self._usage], writes, object())
        if memory.desc.format.image:
            with named_errors("reading", memory):
                return image.read(self._queue, memory.buffer, memory.desc, waits)
        cl = opencl()
        flags = {
            "r": cl.map_flags.READ,
            "w": cl.map_flags.WRITE_INVALIDATE_REGION,
            "rw": cl.map_flags.READ | cl.map_flags.WRITE,
        }[self.mode]
        shape, dtype = (storage_size(memory.desc),), memory.desc.dtype.raw
        with named_errors("mapping", memory):
            array, _ = cl.enqueue_map_buffer(
                self._queue, memory.buffer, flags, 0, shape, dtype, wait_for=waits
            )
        return array  # type: ignore[no-any-return]

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if self._array is not None:
                with named_errors("unmapping", self.memory):
                    self._unmap(self._array)
        finally:
            self._array = None
            self._usage.mapping = None

    def _unmap(self, array: NDArray[Any]) -> None:
        memory = self.memory
        if not memory.desc.format.image:
            array.base.release(self._queue).wait()  # type: ignore[union-attr]
        elif "w" in self.mode:
            image.write(self._queue, memory.buffer, memory.desc, array)


def from_numpy(
    array: Any,
    engine: Engine | None = None,
    *,
    format: Any = None,  # the field's word for it
    dtype: object = None,
    stream: Stream | None = None,
) -> Memory:
    """A memory object with the elements of ``array``, packed on the host.

    ``format`` defaults to dense row-major, ``dtype`` to the array's; ``array.shape`` is the logical
    dims. Raises `InvalidDescriptor` and `DeviceError`.
    """
    array = as_array(array)
    if array.ndim == 0:
        raise InvalidDescriptor(f"got the single value {array!r}, expected an array")
    desc = MemoryDesc(array.shape, as_dtype(array.dtype if dtype is None else dtype), format)
    memory = Memory(desc, engine)
    with memory.map("w", stream=stream) as flat:
        flat[:] = pack(array, desc)
    return memory


def to_numpy(memory: Memory, *, stream: Stream | None = None) -> NDArray[Any]:
    """The logical tensor of a memory object, of shape ``desc.dims``, unpacked on the host."""
    expect(memory, Memory, "memory")
    with memory.map("r", stream=stream) as flat:
        return np.array(unpack(flat, memory.desc))
