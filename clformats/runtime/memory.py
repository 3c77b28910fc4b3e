"""`Memory`: a buffer with a descriptor, and its mapping to the host.

A memory object remembers the last command that writes to it and those that read it since, so that
commands on other streams and maps wait for what they must, and for nothing else.
"""

from __future__ import annotations

import threading
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..desc import MemoryDesc
from ..dtypes import as_dtype
from ..errors import DeviceError, InvalidDescriptor, MappedError, Unsupported
from ..host import flat_size, pack, storage_size, unpack
from .engine import Engine
from .opencl import named_errors, opencl
from .stream import Stream

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
    `set_buffer`. A descriptor without elements has no buffer. Raises `InvalidDescriptor` for
    ``any``, `Unsupported` (code IMAGE) for an image, `DeviceError` where allocation fails or the
    buffer does not fit.
    """

    def __init__(
        self,
        desc: MemoryDesc,
        engine: Engine | None = None,
        *,
        buffer: pyopencl.Buffer | _Allocate | None = ALLOCATE,
    ) -> None:
        if desc.format_kind == "any":
            raise InvalidDescriptor(f"{desc} has no layout yet: choose a concrete format")
        if desc.format.image:
            raise Unsupported(
                "IMAGE",
                f"{desc} is an image of shape {desc.image_shape} and fits into no buffer: write "
                f"what cf.pack gives, reshaped so, to an image of your own",
            )
        self.desc = desc
        self.engine = engine or Engine()
        self.lock = threading.Lock()
        self.buffer: pyopencl.Buffer | None = None
        self._mapping: Mapping | None = None
        self._writer: tuple[Stream | None, pyopencl.Event] | None = None
        self._readers: list[tuple[Stream | None, pyopencl.Event]] = []
        if isinstance(buffer, _Allocate):
            self.buffer = self._allocated()
        else:
            self.set_buffer(buffer)

    @property
    def nbytes(self) -> int:
        """The bytes the buffer has at the least."""
        return flat_size(self.desc) * self.desc.dtype.bits // 8

    def _allocated(self) -> pyopencl.Buffer | None:
        if not self.nbytes:
            return None
        cl = opencl()
        with named_errors(f"allocating {self.nbytes} bytes for", self.desc):
            buffer = cl.Buffer(self.engine.context, cl.mem_flags.READ_WRITE, self.nbytes)
            cl.enqueue_fill_buffer(
                self.engine.queue, buffer, np.zeros(1, np.uint8), 0, self.nbytes
            ).wait()
        return buffer  # type: ignore[no-any-return]

    def set_buffer(self, buffer: pyopencl.Buffer | None) -> None:
        """Put another buffer under the memory object, or none. Its contents are left alone."""
        self.check_unmapped("give it another buffer")
        if buffer is not None:
            if buffer.size < self.nbytes:
                raise DeviceError(
                    f"the buffer has {buffer.size} bytes, {self.desc} needs {self.nbytes}"
                )
            if buffer.context != self.engine.context:
                raise DeviceError("the buffer belongs to another OpenCL context than the engine")
        self.buffer = buffer
        self._writer, self._readers = None, []

    # --- mapping ----------------------------------------------------------------------------------

    def map(self, mode: Mode = "rw", *, stream: Stream | None = None) -> Mapping:
        """Map the buffer to the host: ``with m.map("rw") as a:`` gives its physical elements.

        ``a`` is a 1-D array over every element, padding too, valid inside the block only. The
        mapping is exclusive: a second one, and any command on the memory, raises `MappedError`.
        With ``"w"`` the old contents are not read: write every element.
        """
        if mode not in ("r", "w", "rw"):
            raise ValueError(f"got mode {mode!r}, expected 'r', 'w' or 'rw'")
        with self.lock:
            self.check_unmapped("map it")
            mapping = Mapping(self, mode, stream.queue if stream else self.engine.queue)
            self._mapping = mapping
        return mapping

    def check_unmapped(self, wish: str) -> None:
        """Raise `MappedError` where the memory is mapped; ``wish`` is what was to be done."""
        if self._mapping is not None:
            raise MappedError(
                f"{self!r} is mapped with mode {self._mapping.mode!r}, cannot {wish}: leave its "
                f"`with memory.map(...)` block first"
            )

    def released(self, mapping: Mapping) -> None:
        """Called by the mapping when it ends."""
        if self._mapping is mapping:
            self._mapping = None

    # --- order of commands ------------------------------------------------------------------------

    def to_wait_for(self, stream: Stream | None, *, writing: bool) -> list[pyopencl.Event]:
        """The events that a command on ``stream`` must wait for before it uses the buffer."""
        before = [self._writer] if self._writer else []
        if writing:
            before += self._readers
        ordered = stream is not None and stream.in_order
        return [event for other, event in before if not (ordered and other is stream)]

    def used(self, stream: Stream | None, event: pyopencl.Event, *, writing: bool) -> None:
        """Remember a command that uses the buffer."""
        if writing:
            self._writer, self._readers = (stream, event), []
        else:
            self._readers = [
                r for r in self._readers if r[0] is not stream or not stream or not stream.in_order
            ]
            self._readers.append((stream, event))

    def __repr__(self) -> str:
        state = "" if self.buffer is not None else ", no buffer"
        return f"Memory({str(self.desc)!r}{state})"


class Mapping:
    """A buffer mapped to the host; a context manager that unmaps once. Made by `Memory.map`."""

    def __init__(self, memory: Memory, mode: Mode, queue: pyopencl.CommandQueue) -> None:
        self.memory, self.mode = memory, mode
        self._queue = queue
        self._array: NDArray[Any] | None = None

    def __enter__(self) -> NDArray[Any]:
        memory = self.memory
        try:
            if memory.nbytes:
                self._array = self._map(memory)
        except BaseException:
            memory.released(self)
            raise
        raw = np.zeros(0, memory.desc.dtype.raw) if self._array is None else self._array
        return raw.view(memory.desc.dtype.storage)

    def _map(self, memory: Memory) -> NDArray[Any]:
        if memory.buffer is None:
            raise DeviceError(f"{memory!r} cannot be mapped: give it one by set_buffer()")
        cl = opencl()
        flags = {
            "r": cl.map_flags.READ,
            "w": cl.map_flags.WRITE_INVALIDATE_REGION,
            "rw": cl.map_flags.READ | cl.map_flags.WRITE,
        }[self.mode]
        waits = memory.to_wait_for(None, writing="w" in self.mode)
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
                    self._array.base.release(self._queue).wait()  # type: ignore[union-attr]
        finally:
            self._array = None
            self.memory.released(self)


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
    array = np.asarray(array)
    desc = MemoryDesc(array.shape, as_dtype(array.dtype if dtype is None else dtype), format)
    memory = Memory(desc, engine)
    with memory.map("w", stream=stream) as flat:
        flat[:] = pack(array, desc)
    return memory


def to_numpy(memory: Memory, *, stream: Stream | None = None) -> NDArray[Any]:
    """The logical tensor of a memory object, of shape ``desc.dims``, unpacked on the host."""
    with memory.map("r", stream=stream) as flat:
        return np.array(unpack(flat, memory.desc))
