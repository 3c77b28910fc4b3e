"""`Staging`: a buffer on a device and one that the host sees, between which pieces are copied.

The host's one is allocated by the driver (``CL_MEM_ALLOC_HOST_PTR``) and stays mapped: from such
memory GPUs copy by themselves, while kernels run, where from an array of numpy's they would copy
twice and make the host wait.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from ..host.packing import storage_size
from ..opencl import named_errors, opencl
from ..tensors.desc import MemoryDesc
from .engine import Engine
from .order import usage_of
from .storage import map_bytes
from .stream import Stream

if TYPE_CHECKING:
    import pyopencl


class Staging:
    """Room for ``nbytes`` bytes on both sides, used by the commands of one in-order stream.

    Raises `DeviceError` where there is not so much memory. `close` it.
    """

    def __init__(self, stream: Stream, nbytes: int) -> None:
        cl = opencl()
        self.engine: Engine = stream.engine
        self._queue = stream.tracked_queue
        self._events: list[pyopencl.Event] = []
        flags = cl.mem_flags
        with named_errors(f"allocating {nbytes} bytes for a piece on", self.engine):
            self.buffer: pyopencl.Buffer = cl.Buffer(self.engine.context, flags.READ_WRITE, nbytes)
            usage_of(self.buffer)  # no user has it
            self._pinned: pyopencl.Buffer = cl.Buffer(
                self.engine.context, flags.READ_WRITE | flags.ALLOC_HOST_PTR, nbytes
            )
            access = cl.map_flags.READ | cl.map_flags.WRITE
            self._host, _ = map_bytes(self._queue, self._pinned, access, slice(0, nbytes))

    def host(self, desc: MemoryDesc) -> NDArray[Any]:
        """The host's side as unsigned integers of the width of elements, to hold ``desc``."""
        item = desc.dtype.storage.itemsize
        return self._host[: storage_size(desc) * item].view(f"u{item}")  # type: ignore[no-any-return]

    def upload(self, nbytes: int) -> None:
        """Enqueue the copy to the device."""
        self._copy(self.buffer, self._host[:nbytes])

    def download(self, nbytes: int) -> None:
        """Enqueue the copy to the host."""
        self._copy(self._host[:nbytes], self.buffer)

    def _copy(self, to: Any, source: Any) -> None:
        with named_errors("copying a piece"):
            event = opencl().enqueue_copy(self._queue, to, source, is_blocking=False)
        # An event that is dropped makes pyopencl wait for the copy.
        self._events.append(event)

    def wait(self) -> None:
        """Wait for the copies enqueued so far. Raises `DeviceError`."""
        events, self._events = self._events, []
        with named_errors("copying a piece"):
            for event in events:
                event.wait()

    def close(self) -> None:
        """Give the memory back; nothing that uses it may still be running."""
        self._events = []
        host, self._host = self._host, None
        try:
            with named_errors("releasing a piece"):
                host.base.release(self._queue).wait()
        finally:
            self._pinned.release()
            self.buffer.release()
