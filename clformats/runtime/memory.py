"""`Memory`: a buffer or image with a descriptor, and its mapping to the host.

Commands that go through this library wait for each other as they must, on whatever stream they are
(see `order`), and kernels of yours too, by `Stream.run`. For those that you enqueue yourself there
are `Memory.written_by` and `Memory.read_by`, and what `external` says.
"""

from __future__ import annotations

from collections import abc
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import (
    DeviceError,
    InvalidArgument,
    InvalidDescriptor,
    Unsupported,
    expect,
    shown,
)
from ..host.memory import places
from ..host.packing import unpack, zero_padding
from ..opencl import named_errors
from ..problems.thresholds import LINE_BYTES
from ..tensors import images
from ..tensors.arraylike import ArrayLike
from ..tensors.desc import MemoryDesc
from ..tensors.described import Described
from ..tensors.dlpack import capsule_of
from ..tensors.geometry import check_size
from ..tensors.given import as_any_desc, canonical
from . import image, joined, storage, views
from .engine import Engine, default_engine
from .mapping import Mapping, Mode
from .order import LOCK, Usage, interrupt_later, is_known, usage_of
from .stream import Stream
from .tracked import Tracked

if TYPE_CHECKING:
    import pyopencl


class _Allocate:
    """The default of ``Memory(buffer=)``: allocate. None means no buffer."""

    def __repr__(self) -> str:
        return "allocate"


ZEROS, UNFILLED = _Allocate(), _Allocate()
"""A new buffer: with zeros, or with anything."""


class Memory(ArrayLike, Tracked):
    """A tensor on a device: ``desc`` says how it lies in ``buffer``.

    ``Memory(desc, engine)`` allocates a buffer and fills it with zeros. ``allocator=`` allocates
    instead of OpenCL: a pyopencl ``MemoryPool`` or ``SVMPool``, or any other function from a number
    of bytes to storage. ``buffer=`` wraps storage of yours that is large enough: a pyopencl buffer,
    an ``SVMAllocation`` or the start of a ``pyopencl.array.Array``. With ``buffer=None`` there is
    no buffer until `set_buffer`. A descriptor without elements never has one.

    The buffer of an image format is a pyopencl image of shape `MemoryDesc.image_shape`, of f32,
    f16, s32, u8 or s8: new ones of 8 bits have integers, of pictures (image_2d_rgba, nv12) UNORM.
    ``buffer=`` takes both, a 3D image where there are layers, or a buffer to make an image over.
    Where the device cannot, `copied_because` says why, and kernels of yours get a copy as an image.
    nv12 is two memory objects: luma, dims (n, h, w, 1), chroma, dims (n, h/2, w/2, 2).

    Reorders of large tensors are slower to host memory whose address is no multiple of 64 bytes;
    numpy's arrays often begin so.

    A driver keeps a buffer until the commands on it are done, even if you drop it. This does not
    hold for memory of a pool, shared virtual memory and host memory: there, dropping the memory
    object waits for its commands.

    ``buffers=`` takes the fields of a quantised tensor in storage of their own, by the names of
    `QuantisedDesc.split`: ``parts`` are memory objects of their bytes, ``buffer`` is None. Reorders
    copy them together first, or apart at the end, on the device; mapping copies on the host.

    Raises `InvalidDescriptor` for ``any``, `Unsupported` (code IMAGE) for other images,
    `DeviceError` where allocation fails, the buffer does not fit or the device has no images.
    """

    _travels_as = "send memory.numpy(), and make another by from_numpy() there; reorder() copies it"

    def __init__(
        self,
        desc: MemoryDesc | Described | str,
        engine: Engine | None = None,
        *,
        buffer: Any = ZEROS,
        allocator: storage.Allocator | None = None,
        buffers: abc.Mapping[str, Any] | None = None,
    ) -> None:
        self.parts = dict[str, Memory]()
        self.desc = as_any_desc(desc, "desc")
        expect(engine, Engine | None, "engine")
        _check_desc(self.desc)
        _check_allocator(allocator, buffer)
        is_new = isinstance(buffer, _Allocate)
        given = joined.checked(self.desc, buffers, alone=is_new and allocator is None)
        _, first = next(iter(given.values()), (0, buffer))
        self.engine = engine or storage.engine_of(first) or default_engine()
        self.context = self.engine.context
        self.usage = Usage()
        if not given:
            fill = buffer is ZEROS
            self.set_buffer(self._allocated(allocator, fill=fill) if is_new else buffer)
        self.parts = {name: Memory(MemoryDesc((n,), "u8"), self.engine, buffer=own)
                      for name, (n, own) in given.items()}  # fmt: skip

    @classmethod
    def unfilled(
        cls, desc: MemoryDesc, engine: Engine | None, allocator: storage.Allocator | None = None
    ) -> Memory:
        """As ``Memory(desc, engine)`` where the caller writes every byte; nothing is filled."""
        return cls(desc, engine, buffer=UNFILLED, allocator=allocator)

    def _allocated(self, allocator: storage.Allocator | None, *, fill: bool) -> Any:
        if not self.nbytes:
            return None
        if self.desc.format.image:
            image.check_fits(self.engine, self.desc)
            allocator = None
        if self.desc.format.image and not images.is_over_buffer(self.desc):
            made: Any = image.allocated(self.engine, self.desc)
        else:
            made = storage.allocated(self.engine, self.nbytes, allocator, self.desc, fill=fill)
        usage_of(made)  # no user has it
        return made

    def set_buffer(self, buffer: Any, *, clear_padding: bool = False) -> None:
        """Replace the buffer or image by another one, or by none; the contents are not copied.

        Where the driver does not keep the old buffer (see `Memory`), this waits for the commands
        on it. ``clear_padding`` writes zeros to the padding of the new one. Raises `DeviceError` if
        the buffer is too small or belongs to another context. It also raises if a command on the
        old buffer failed; the new one is in place then.
        """
        if self.parts:
            joined.set_none(self.parts, buffer)
            return
        self.check_unmapped("give it another buffer")
        buffer = storage.unwrapped(buffer)
        given = under = buffer
        lent: views.Lent | None = None
        if buffer is not None and self.desc.format.image:
            buffer, lent = views.taken(self.engine, self.desc, buffer)
            under = views.under(buffer, self.desc)
        elif buffer is not None:
            storage.expect_storage(buffer)
            storage.check(buffer, self.nbytes, self.engine, self.desc)
        begins_at = LINE_BYTES if under is None else storage.begins_at(under)
        is_users = given is not None and not is_known(given)
        # An image over a buffer is used where the buffer is.
        usage = usage_of(given if under is None or is_known(given) else under)
        read_only = storage.is_read_only(given)
        usage.exposed = usage.exposed or is_users
        with LOCK:  # a call in another thread uses the one or the other
            self.check_unmapped("give it another buffer")
            before, events = self.tracked_buffer, self._pending()
            self.tracked_buffer, self.usage, self.is_read_only = buffer, usage, read_only
            self.begins_at, self.lent, self.under = begins_at, lent, under
            # Set where there is a buffer that fits any use: calls then look no further.
            fits = buffer is not None and not read_only and begins_at == LINE_BYTES
            fits = fits and not self.is_reached_as_twin
            self.sound = canonical(self.desc) if fits else None
        self._settle(events)
        del before  # not sooner: this may be the only reference
        if clear_padding:
            self.clear_padding()

    def _pending(self) -> list[pyopencl.Event]:
        """The commands on memory that no driver keeps for them."""
        if self.tracked_buffer is None or storage.is_kept_by_driver(self.tracked_buffer):
            return []
        return self.events

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
        if self.tracked_buffer is None:
            return
        try:
            self._settle(self._pending())
        except DeviceError:
            self.tracked_buffer = self.under = None  # the commands failed: nothing uses it any more
        except KeyboardInterrupt:
            interrupt_later()
            self.__del__()  # it may have come before all was waited for

    def clear_padding(self, *, stream: Stream | None = None) -> None:
        """Write zeros to all padding, on the host; the elements stay.

        Reorders do so by themselves: this is for a buffer that something else has filled.
        """
        with self.map("rw", stream=stream) as flat:
            zero_padding(flat, self.mapped)

    def release(self) -> None:
        """Give the buffer up, after the commands on it; leaving a ``with`` block does so too."""
        self.set_buffer(None)

    def __enter__(self) -> Memory:  # noqa: PYI034  # Self is of Python 3.11
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    # --- views ------------------------------------------------------------------------------------

    def submemory(self, dims: Iterable[int], offsets: Iterable[int]) -> Memory:
        """The region of ``dims`` at ``offsets`` of this tensor, in the same buffer.

        What is written to the region is in this tensor: this concatenates in place. Mapping the
        region maps only the bytes from its first element to its last (see `mapped`), but no other
        part of the buffer may be used meanwhile. Raises `InvalidDescriptor` as
        `MemoryDesc.submemory` does.
        """
        view = Memory(self.desc.submemory(dims, offsets), self.engine, buffer=None)
        view._is_view = True
        view.set_buffer(self.tracked_buffer)
        return view

    # --- mapping ----------------------------------------------------------------------------------

    def map(
        self, mode: Mode = "rw", *, stream: Stream | None = None
    ) -> Mapping | joined.JoinedMapping:
        """Map the buffer to the host: ``with m.map("rw") as a:`` gives its physical elements.

        ``a`` is a 1-D array of every element, padding included. Do not use it after the block: its
        memory may be gone. The mapping is exclusive for the whole buffer: a second
        mapping, or any command on the buffer, raises `MappedError`, which names the holder.
        With ``"r"`` the array is read-only. With ``"w"`` the old contents are not read: write every
        element. (A view whose elements are not contiguous is read even so, and the bytes in
        between keep their values.)

        Mapping waits for all commands enqueued on the buffer before, on whatever stream. To work
        meanwhile, call ``mapping = m.map("r").start()`` and enter ``mapping`` later.

        An image that is not over a buffer is always read, into an array of its own; with ``"w"``
        or ``"rw"`` it is written back when the block ends.
        """
        expect(mode, str, "mode")
        if mode not in ("r", "w", "rw"):
            raise InvalidArgument(f"got mode {mode!r}, expected 'r', 'w' or 'rw'")
        expect(stream, Stream | None, "stream")
        if self.parts:
            return joined.JoinedMapping(self.desc, self.parts, mode, stream)
        self.check_unmapped("map it")
        if "w" in mode:
            self.check_writable()
        if stream is not None:
            storage.check_same_context("the stream", stream.context, self, self.context)
        return Mapping(self, mode, stream.tracked_queue if stream else self.engine.tracked_queue)

    # --- copies on the host -----------------------------------------------------------------------

    def numpy(self, *, stream: Stream | None = None) -> NDArray[Any]:
        """A copy of the logical tensor, of shape ``desc.dims``, unpacked on the host."""
        with self.map("r", stream=stream) as flat:
            return unpack(flat, self.mapped)

    def physical(self, *, stream: Stream | None = None) -> NDArray[Any]:
        """A copy of the physical elements, padding included, with one axis for each digit.

        ``b_fs_yx_fsv16`` has five digits: b, blocks of f, y, x, and the 16 features of a block. Of
        elements that share bytes the array holds the bytes, of an image its rows of pixels.
        """
        shape = self.desc.image_shape
        with self.map("r", stream=stream) as flat:
            if not flat.size:
                return np.array(flat)
            found = np.array(places(flat, self.mapped))
            return found.reshape(shape) if shape else found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:  # noqa: FBT001  # numpy's
        if copy is False:
            raise ValueError(f"{self!r} is on a device: its elements come to the host by a copy")
        return self.numpy().astype(dtype or self.desc.dtype.numpy, copy=False)

    def __dlpack__(self, **wishes: Any) -> Any:
        """The logical tensor as a DLPack capsule of host memory: a copy, as `numpy` makes."""
        if wishes.get("copy") is False:
            raise BufferError(f"{self!r} is on a device: its elements come to the host by a copy")
        return capsule_of(self.numpy(), **wishes)

    def __dlpack_device__(self) -> tuple[int, int]:
        return np.empty(0).__dlpack_device__()

    def __repr__(self) -> str:
        state = "" if self.tracked_buffer is not None else ", no buffer"
        state = f", buffers {', '.join(self.parts)}" if self.parts else state
        state += f", an image by a copy: {self.copied_because}" if self.lent else ""
        return f"Memory({str(self.desc)!r}{state})"


def _check_allocator(allocator: object, buffer: object) -> None:
    is_new = isinstance(buffer, _Allocate)
    if allocator is not None and not (callable(allocator) and is_new):
        also = "" if is_new else f" and buffer={shown(buffer)}"
        raise InvalidArgument(
            f"allocator: got {shown(allocator)}{also}, expected a function of the number of bytes, "
            f"and no buffer"
        )


def _check_desc(desc: MemoryDesc) -> None:
    if desc.format_kind == "any":
        raise InvalidDescriptor(f"{desc} has no layout yet: choose a concrete format")
    if desc.has_runtime:
        raise InvalidDescriptor(f"{desc} has sizes known at execution only: give the dims")
    if isinstance(desc, MemoryDesc):
        check_size(desc.geometry, desc.dtype.bits)
    if reason := images.refusal(desc):
        raise Unsupported(
            "IMAGE",
            f"{desc} is an image of shape {desc.image_shape}, and {reason}: write what cf.pack "
            f"gives, reshaped to that shape, to an image of your own",
        )
