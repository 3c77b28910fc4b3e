"""Tensors whose bytes lie in several buffers: checking these, and mapping them as one."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidArgument, InvalidDescriptor, MappedError, expect
from ..tensors.desc import MemoryDesc
from ..tensors.described import is_described
from .event import Event
from .mapping import Mode
from .stream import Stream
from .tracked import Tracked

Given = dict[str, tuple[int, Any]]


def checked(desc: Any, buffers: Mapping[str, Any] | None, *, alone: bool) -> Given:
    """For each buffer of a quantised tensor its bytes, and the storage given for it.

    Raises `InvalidArgument` for other tensors, and together with ``buffer=`` or ``allocator=``, and
    `InvalidDescriptor` where names are missing or unknown, and for a matrix of other rows.
    """
    expect(buffers, Mapping | None, "buffers")
    if buffers is None:
        return {}
    if not is_described(desc) or not alone:
        raise InvalidArgument(
            f"buffers: got {', '.join(map(str, buffers))} for {desc}, expected them for a "
            f"quantised tensor, without buffer= and allocator="
        )
    sizes = {b.first: b.nbytes for b in desc.buffers}
    if sorted(buffers) != sorted(sizes):
        raise InvalidDescriptor(
            f"got the buffers {sorted(buffers)}, expected {list(sizes)} of {desc}"
        )
    for number, name in enumerate(sizes):
        held = getattr(buffers[name], "desc", None)
        dense = isinstance(held, MemoryDesc) and held == MemoryDesc(held.dims, held.dtype)
        if held is not None and dense and held.nbytes == sizes[name]:
            desc.check_rows(number, held.dims, held.dtype, held.nbytes)
    own = {n: b.tracked_buffer if isinstance(b, Tracked) else b for n, b in buffers.items()}
    return {name: (nbytes, own[name]) for name, nbytes in sizes.items()}


def set_none(parts: Mapping[str, Any], buffer: object) -> None:
    """Take the buffers from a tensor in several. Raises `InvalidArgument` for one of all."""
    if buffer is not None:
        raise InvalidArgument(
            f"got one buffer for a tensor in several, {', '.join(parts)}: set those of memory.parts"
        )
    for part in parts.values():
        part.set_buffer(None)


class JoinedMapping:
    """The bytes of a tensor in several buffers as one array: a copy, written back at the end.

    `Memory.map` makes it, as it makes a `Mapping`. All buffers are mapped from its beginning on.
    """

    def __init__(
        self, desc: Any, parts: Mapping[str, Any], mode: Mode, stream: Stream | None
    ) -> None:
        self.desc, self.parts, self.mode = desc, parts, mode
        self._stream, self._stack = stream, ExitStack()
        self._flats: dict[str, NDArray[Any]] = {}

    def start(self) -> JoinedMapping:
        """Map the buffers. Raises as `Mapping` does."""
        if self._flats:
            raise MappedError("a mapping is made once: call memory.map() again")
        with ExitStack() as stack:
            for name, part in self.parts.items():
                own = part.map(self.mode, stream=self._stream)
                self._flats[name] = stack.enter_context(own)
            self._stack = stack.pop_all()
        return self

    @property
    def event(self) -> Event | None:
        """None: the buffers are mapped when `start` returns."""
        return None

    def __enter__(self) -> NDArray[Any]:
        if not self._flats:
            self.start()
        whole = np.zeros(self.desc.nbytes, np.uint8)
        if "r" in self.mode:
            for name, part in self.desc.split(whole).items():
                part[:] = self._flats[name]
        if "w" in self.mode:
            self._stack.callback(self._write_back, whole)
        whole.flags.writeable = "w" in self.mode
        return whole

    def _write_back(self, whole: NDArray[np.uint8]) -> None:
        for name, part in self.desc.split(whole).items():
            self._flats[name][:] = part

    def release(self) -> None:
        """Write the copy back, where it may be written, and unmap. Raises `DeviceError`."""
        self._stack.close()

    def __exit__(self, *_: object) -> None:
        self.release()

    def __repr__(self) -> str:
        return f"JoinedMapping({self.desc}, {self.mode!r})"
