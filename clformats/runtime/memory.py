"""`Memory`: a buffer or image with a descriptor, and its mapping to the host.

Commands that go through this library wait for each other as they must, on whatever stream they are
(see `usage`), and kernels of yours too, by `Stream.run`. For those that you enqueue yourself there
are `Memory.written_by` and `Memory.read_by`, and what `strangers` says.
"""

from __future__ import annotations

import _thread
import threading
from collections.abc import Iterable
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import (
    DeviceError,
    InvalidArgument,
    InvalidDescriptor,
    MappedError,
    Unsupported,
    expect,
    shown,
)
from ..host.memory import places
from ..host.packing import flat_size, unpack, zero_padding
from ..schedule.traits import LINE_BYTES
from ..tensors import images
from ..tensors.desc import MemoryDesc
from ..tensors.geometry import moved_by
from ..tensors.given import as_desc
from . import image, storage
from .arraylike import ArrayLike
from .engine import Engine, default_engine
from .mapping import Mapping, Mode
from .opencl import OnDevice, named_errors
from .stream import Event, Stream
from .usage import LOCK, Usage, events_before, is_known, usage_of

if TYPE_CHECKING:
    import pyopencl


class _Allocate:
    """The default of ``Memory(buffer=)``: allocate. None means no buffer."""


ALLOCATE = _Allocate()


class Memory(ArrayLike, OnDevice):
    """A tensor on a device: ``desc`` says how it lies in ``buffer``.

    ``Memory(desc, engine)`` allocates what the descriptor needs and fills it with zeros, by
    ``allocator=`` where one is given: a pyopencl ``MemoryPool``, ``SVMPool`` or anything else that
    makes storage of a number of bytes. ``buffer=`` wraps what there is and is large enough: a
    pyopencl buffer, an ``SVMAllocation`` or the start of a ``pyopencl.array.Array``;
    ``buffer=None`` has none until `set_buffer`. A descriptor without elements has no buffer. For
    the image formats of weights, in f32 and f16, and of pictures, in u8, ``buffer`` is a pyopencl
    image of `MemoryDesc.image_shape`. A picture in nv12 is two of them: luma, dims (n, h, w, 1),
    and chroma, (n, h/2, w/2, 2). Large tensors are written more slowly to memory of the host's that
    begins at no multiple of 64 bytes, as numpy's arrays do.

    A driver keeps a buffer until the commands on it are done, whoever drops it. Memory of a pool,
    shared virtual memory and host memory it does not: dropping the memory object then waits.

    Raises `InvalidDescriptor` for ``any``, `Unsupported` (code IMAGE) for other images,
    `DeviceError` where allocation fails, the buffer does not fit or the device has no images.
    """

    _travels_as = "send memory.numpy(), and make another by from_numpy() there; reorder() copies it"

    def __init__(
        self,
        desc: MemoryDesc | str,
        engine: Engine | None = None,
        *,
        buffer: Any = ALLOCATE,
        allocator: storage.Allocator | None = None,
    ) -> None:
        self.tracked_buffer: Any = None
        desc = as_desc(desc, "desc")
        expect(engine, Engine | None, "engine")
        _check_desc(desc)
        _check_allocator(allocator, buffer)
        self.desc = desc
        self.engine = engine or default_engine()
        self.context: pyopencl.Context = self.engine.context
        self.usage = Usage()
        self.sound: MemoryDesc | None = None
        self.begins_at = LINE_BYTES
        self.is_read_only = False
        self._is_view = False
        self.set_buffer(self._allocated(allocator) if buffer is ALLOCATE else buffer)

    @property
    def nbytes(self) -> int:
        """The bytes the buffer has at the least."""
        return flat_size(self.desc) * self.desc.dtype.bits // 8

    @classmethod
    def unfilled(
        cls, desc: MemoryDesc, engine: Engine | None, allocator: storage.Allocator | None = None
    ) -> Memory:
        """As ``Memory(desc, engine)`` for whoever writes every byte: what it holds is not known."""
        _check_allocator(allocator, ALLOCATE)
        memory = cls(desc, engine, buffer=None)
        memory.set_buffer(memory._allocated(allocator, fill=False))
        return memory

    def _allocated(self, allocator: storage.Allocator | None, *, fill: bool = True) -> Any:
        if not self.nbytes:
            return None
        if self.desc.format.image:
            made: Any = image.allocated(self.engine, self.desc)
        else:
            made = storage.allocated(self.engine, self.nbytes, allocator, self.desc, fill=fill)
        usage_of(made)  # nobody else has it
        return made

    @property
    def buffer(self) -> Any:
        """The pyopencl buffer or image, for commands of your own; None where there is none.

        Give the memory object itself to `Stream.run`, or tell of your commands by `written_by` and
        `read_by`. Else later commands on it wait for all that is on the queues of the library's
        (``stream.queue``, ``engine.queue``, those that streams were made of) in its context.
        """
        self.usage.taken = True
        return self.tracked_buffer

    @property
    def events(self) -> list[pyopencl.Event]:
        """What a command of yours that writes must wait for: ``wait_for=memory.events``."""
        with LOCK:
            return events_before([], self.usage, object())

    def written_by(self, event: Event | pyopencl.Event) -> None:
        """Let later commands on this memory wait for one of yours that writes it.

        ``event`` is what pyopencl gave for it. Raises `InvalidArgument` and `DeviceError`.
        """
        from .commands import told

        told(self, event, writes=True)

    def read_by(self, event: Event | pyopencl.Event) -> None:
        """Let later commands that write this memory wait for one of yours that reads it."""
        from .commands import told

        told(self, event, writes=False)

    def set_buffer(self, buffer: Any, *, clear_padding: bool = False) -> None:
        """Put another buffer or image under the memory object, or none; its contents stay.

        Nothing that went through the memory object uses the one before when this returns, where a
        driver does not keep it (see `Memory`). With ``clear_padding`` the padding becomes zero, as
        by `clear_padding`. Raises `DeviceError` where the buffer is too small or of another
        context; also where commands on the one before failed, and then the new one is there.
        """
        self.check_unmapped("give it another buffer")
        buffer = storage.unwrapped(buffer)
        begins_at = LINE_BYTES
        if buffer is not None and self.desc.format.image:
            image.check(buffer, self.desc)
            storage.check_context(buffer, self.engine)
        elif buffer is not None:
            storage.expect_storage(buffer)
            storage.check(buffer, self.nbytes, self.engine, self.desc)
            begins_at = storage.begins_at(buffer)
        is_users = buffer is not None and not is_known(buffer)
        usage, read_only = usage_of(buffer), storage.is_read_only(buffer)
        usage.taken = usage.taken or is_users
        with LOCK:  # a call in another thread uses the one or the other
            self.check_unmapped("give it another buffer")
            before, events = self.tracked_buffer, self._pending()
            self.tracked_buffer, self.usage, self.is_read_only = buffer, usage, read_only
            self.begins_at = begins_at
            # Set where there is a buffer that fits any use: calls then look no further.
            fits = buffer is not None and not read_only and begins_at == LINE_BYTES
            self.sound = self.desc if fits else None
        self._settle(events)
        del before  # not sooner: nobody else may keep it
        if clear_padding:
            self.clear_padding()

    def _pending(self) -> list[pyopencl.Event]:
        """The commands on memory that no driver keeps for them."""
        if self.tracked_buffer is None or storage.is_kept_by_driver(self.tracked_buffer):
            return []
        with LOCK:
            return events_before([], self.usage, object())

    def _settle(self, events: list[pyopencl.Event]) -> None:
        """Wait for all of them, though one failed or Control-C came; that is raised at the end."""
        left = list(events)
        raised: BaseException | None = None
        while left:
            try:
                with named_errors("waiting for what uses", self):
                    left[-1].wait()
                left.pop()
            except DeviceError as error:
                left.pop()
                raised = raised or error
            except KeyboardInterrupt as error:
                raised = error
        if raised is not None:
            raise raised

    def __del__(self) -> None:
        if getattr(self, "tracked_buffer", None) is None:
            return
        try:
            self._settle(self._pending())
        except DeviceError:
            self.tracked_buffer = None  # the commands failed: nothing uses it any more
        except KeyboardInterrupt:
            # Python drops what is raised here: be interrupted behind it.
            threading.Timer(0.01, _thread.interrupt_main).start()

    def clear_padding(self, *, stream: Stream | None = None) -> None:
        """Make every element of the padding zero, on the host; what is no padding stays.

        Reorders keep padding zero by themselves: this is for a buffer that was filled elsewhere.
        """
        with self.map("rw", stream=stream) as flat:
            zero_padding(flat, self.mapped)

    # --- views ------------------------------------------------------------------------------------

    def submemory(self, dims: Iterable[int], offsets: Iterable[int]) -> Memory:
        """The region of ``dims`` at ``offsets`` of this tensor, in the same buffer.

        What is written there is written here: concatenation in place. Mapping it maps the bytes
        from its first element to its last alone, see `mapped`, though nothing else in the buffer
        may be used meanwhile. Raises `InvalidDescriptor` as `MemoryDesc.submemory` does.
        """
        view = Memory(self.desc.submemory(dims, offsets), self.engine, buffer=None)
        view._is_view = True
        view.set_buffer(self.tracked_buffer)
        return view

    @property
    def mapped(self) -> MemoryDesc:
        """How the elements lie in the array that `map` gives.

        That is ``desc``, but for a view made by `submemory` and for memory of `from_host`, whose
        array begins where they do.
        """
        first = self.mapped_bytes.start * 8 // self.desc.dtype.bits
        return MemoryDesc.of(moved_by(self.desc.geometry, -first), self.desc.dtype) if first else (
            self.desc
        )  # fmt: skip

    @property
    def mapped_bytes(self) -> slice:
        """The bytes of the buffer that `map` gives."""
        if self._is_view:
            return slice(self.desc.offset0 * self.desc.dtype.bits // 8, self.desc.span_nbytes)
        part = storage.host_part(self.tracked_buffer)
        # What lies before the user's array is not the user's.
        return slice(part.front if part else 0, self.nbytes)

    @property
    def is_dense(self) -> bool:
        """Whether no bytes of others lie between those that `map` gives."""
        desc = self.desc
        if not self._is_view:
            return True
        where = self.mapped_bytes
        bits: int = 8 * (where.stop - where.start)
        return bits == prod(p.size for p in desc.placed) * desc.dtype.bits

    # --- mapping ----------------------------------------------------------------------------------

    def map(self, mode: Mode = "rw", *, stream: Stream | None = None) -> Mapping:
        """Map the buffer to the host: ``with m.map("rw") as a:`` gives its physical elements.

        ``a`` is a 1-D array over every element, padding too. It dies with the block: what it points
        to is not yours any more. The mapping is exclusive for the whole buffer: a second one, and
        any command on the buffer, raises `MappedError`, which says who holds it. With ``"r"`` the
        array is read-only; with ``"w"`` the old contents are not read: write every element. Of a
        view between whose elements others lie, those are read, and stay.

        Commands that were enqueued before are waited for, on whatever stream. To do something else
        meanwhile, take ``m.map("r").start()``, and enter that later.

        An image is read, whatever the mode, into an array of its own, row by row without a pitch,
        and with ``"w"`` or ``"rw"`` written back when the block ends.
        """
        expect(mode, str, "mode")
        if mode not in ("r", "w", "rw"):
            raise InvalidArgument(f"got mode {mode!r}, expected 'r', 'w' or 'rw'")
        expect(stream, Stream | None, "stream")
        self.check_unmapped("map it")
        if "w" in mode:
            self.check_writable()
        if stream is not None and stream.context != self.context:
            raise DeviceError(f"the stream belongs to another OpenCL context than {self!r}")
        return Mapping(self, mode, stream.tracked_queue if stream else self.engine.tracked_queue)

    def check_unmapped(self, wish: str) -> None:
        """Raise `MappedError` where the buffer is mapped; ``wish`` is what was to be done."""
        mapping = self.usage.mapping
        if mapping is not None:
            raise MappedError(
                f"{mapping}, cannot {wish}: leave its `with memory.map(...)` block first"
            )

    def check_writable(self) -> None:
        """Raise `DeviceError` where the buffer, or the array that it lies over, is read-only."""
        if self.is_read_only:
            raise DeviceError(f"{self!r} is read-only: give another destination, or a copy of it")

    # --- copies on the host -----------------------------------------------------------------------

    def numpy(self, *, stream: Stream | None = None) -> NDArray[Any]:
        """The logical tensor, of shape ``desc.dims``, unpacked on the host: a copy."""
        with self.map("r", stream=stream) as flat:
            return unpack(flat, self.mapped)

    def physical(self, *, stream: Stream | None = None) -> NDArray[Any]:
        """The elements as they lie, padding too: a copy with one axis for each digit.

        ``b_fs_yx_fsv16`` has five of them: b, blocks of f, y, x, and the 16 of a block. Elements
        that share bytes come as these bytes, and an image as its rows of pixels.
        """
        shape = self.desc.image_shape
        with self.map("r", stream=stream) as flat:
            if not flat.size:
                return np.array(flat)
            return np.array(flat.reshape(shape) if shape else places(flat, self.mapped))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:  # noqa: FBT001  # numpy's
        if copy is False:
            raise ValueError(f"{self!r} is on a device: its elements come to the host by a copy")
        return self.numpy().astype(dtype or self.desc.dtype.numpy, copy=False)

    def __dlpack__(self, **wishes: Any) -> Any:
        """The logical tensor as a DLPack capsule of host memory: a copy, as `numpy` makes."""
        if wishes.get("copy") is False:
            raise BufferError(f"{self!r} is on a device: its elements come to the host by a copy")
        return self.numpy().__dlpack__(**wishes)

    def __dlpack_device__(self) -> tuple[int, int]:
        return np.empty(0).__dlpack_device__()

    def __repr__(self) -> str:
        state = "" if self.tracked_buffer is not None else ", no buffer"
        return f"Memory({str(self.desc)!r}{state})"


def _check_allocator(allocator: object, buffer: object) -> None:
    if allocator is not None and not (callable(allocator) and buffer is ALLOCATE):
        also = "" if buffer is ALLOCATE else f" and buffer={shown(buffer)}"
        raise InvalidArgument(
            f"allocator: got {shown(allocator)}{also}, expected a function of the number of bytes, "
            f"and no buffer"
        )


def _check_desc(desc: MemoryDesc) -> None:
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
