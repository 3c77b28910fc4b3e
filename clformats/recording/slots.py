"""The buffers of a recording: who reads and writes them, and which are temporary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from ..errors import InvalidArgument, Unsupported
from ..host.packing import is_gapless
from ..opencl import opencl
from ..problems.thresholds import LINE_BYTES
from ..runtime import Memory, storage
from ..runtime.order import Usage
from ..tensors.dtypes import as_dtype
from .arena import Piece, placed
from .program import ARENA_ALIGNMENT, CONSTANT, INPUT, OUTPUT, TEMPORARY, Buffer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..tensors.desc import MemoryDesc


@dataclass(slots=True)
class Slot:
    """One buffer. ``held`` keeps it alive, so that no other one gets its address.

    ``covered``: how many bytes from the start on its first command writes, where nothing was read
    before; None before any command. ``unset`` is the command that read it before it was written.
    ``scratch``: what it holds when a run begins does not matter.
    """

    number: int
    name: str
    role: str
    held: Any
    nbytes: int = 0
    alignment: int = 1
    desc: str = ""
    content: bytes = b""
    covered: int | None = None
    unset: str = ""
    written_by: str = ""
    scratch: bool = False

    def read(self, memory: Memory, nbytes: int, alignment: int, about: str) -> None:
        """Remember that a command reads it."""
        self._use(memory, nbytes, alignment)
        if self.covered is None:
            self.unset = self.unset or about
            self.covered = 0

    def write(
        self, memory: Memory, nbytes: int, alignment: int, about: str, *, covers: int
    ) -> None:
        """Remember that a command writes it, the first ``covers`` bytes in any case."""
        if self.role in (INPUT, CONSTANT):
            what = "an output, too" if self.role == INPUT else "no constant"
            raise InvalidArgument(
                f"{about} writes {self.name}, which is recorded as {_article(self.role)}: make it "
                f"{what}"
            )
        self._use(memory, nbytes, alignment)
        self.written_by = self.written_by or about
        if self.covered is None:
            self.covered = covers

    def become_constant(self, content: bytes, desc: str) -> None:
        """Let it hold ``content`` in every run. Raises `InvalidArgument`."""
        if self.role not in (CONSTANT, TEMPORARY):
            raise InvalidArgument(f"{self.name} is {_article(self.role)}: it is no constant")
        if self.written_by:
            raise InvalidArgument(f"{self.written_by} writes {desc}: it is no constant")
        if self.nbytes > len(content):
            raise InvalidArgument(f"{desc} is used beyond its {len(content)} bytes")
        self.role, self.unset, self.desc = CONSTANT, "", desc
        self.content, self.nbytes = content, len(content)

    def _use(self, memory: Memory, nbytes: int, alignment: int) -> None:
        self.nbytes = max(self.nbytes, nbytes)
        self.alignment = max(self.alignment, alignment)
        if self.role == TEMPORARY and not self.desc:
            self.desc = str(memory.desc)

    @property
    def wants_zeros(self) -> bool:
        """Whether it must be filled with zeros first: commands may meet bytes not written."""
        partly = self.covered is not None and self.covered < self.nbytes
        return self.role == TEMPORARY and partly and not self.scratch


def _article(role: str) -> str:
    return f"{'an' if role in (INPUT, OUTPUT) else 'a'} {role}"


class Slots:
    """The buffers of a recording, by the use of their storage: regions of one share a slot."""

    def __init__(self) -> None:
        self._by_usage: dict[Usage, Slot] = {}

    def __iter__(self) -> Iterator[Slot]:
        return iter(list(self._by_usage.values()))

    def of(self, memory: Memory) -> Slot:
        """The slot of a memory object; a new temporary for one not met before."""
        check_storage(memory)
        found = self._by_usage.get(memory.usage)
        if found is None:
            found = self._add(memory, f"temporary{len(self._by_usage)}", TEMPORARY)
        return found

    def name(self, memory: Memory, name: str, role: str) -> None:
        """A slot for an input or output. Raises `InvalidArgument` where it has one already."""
        check_storage(memory)
        found = self._by_usage.get(memory.usage)
        if found is not None and memory.tracked_buffer is not None:
            raise InvalidArgument(
                f"{name} lies in the buffer of {found.name}: name the whole buffer once"
            )
        slot = self._add(memory, name, role)
        slot.nbytes, slot.desc, slot.covered = memory.nbytes, str(memory.desc), 0

    def constant(self, numbers: NDArray[Any]) -> Slot:
        """A slot for numbers that are on the host."""
        found = Slot(len(self._by_usage), f"constant{len(self._by_usage)}", CONSTANT, None)
        self._by_usage[Usage()] = found
        desc = f"{as_dtype(numbers.dtype)}:a:{numbers.size}"
        found.become_constant(bytes(numbers.tobytes()), desc)
        return found

    def _add(self, memory: Memory, name: str, role: str) -> Slot:
        slot = Slot(len(self._by_usage), name, role, memory.tracked_buffer)
        self._by_usage[memory.usage] = slot
        return slot


def image_is_not(desc: MemoryDesc) -> str:
    """Why an image cannot be recorded, and what to do: the end of a sentence."""
    return (
        f"an image: only buffers can be recorded, such as {desc.buffer_twin}, which has the same "
        f"bytes. For a program of yours that makes images, cf.pack and cf.index_source give bytes "
        f"and macros"
    )


def check_storage(memory: Memory) -> None:
    """Raise `Unsupported` (code RECORDING) unless it is a plain buffer on the device."""
    buffer = memory.tracked_buffer
    if memory.desc.format.image:
        raise Unsupported("RECORDING", f"{memory!r} is {image_is_not(memory.desc)}")
    if memory.parts:
        raise Unsupported(
            "RECORDING",
            f"{memory!r} has its fields in buffers of their own: record it in one buffer",
        )
    if buffer is None:
        return
    if storage.is_svm(buffer):
        raise Unsupported(
            "RECORDING", f"{memory!r} is shared virtual memory: record it in a buffer"
        )
    if buffer.flags & opencl().mem_flags.USE_HOST_PTR:
        raise Unsupported(
            "RECORDING",
            f"{memory!r} is host memory: record it in a buffer, cf.from_numpy makes one",
        )


def covers(memory: Memory, *, reads_old: bool) -> int:
    """How many bytes from the start of its buffer on a reorder into it writes in any case."""
    desc = memory.desc
    whole = is_gapless(desc) and not desc.offset0 and not reads_old
    return memory.nbytes if whole else 0


def arranged(
    slots: Sequence[Slot], lives: dict[int, tuple[int, int]]
) -> tuple[list[Buffer], dict[int, int], int]:
    """The buffers of a program, their numbers by those of the slots, and the bytes of the arena.

    ``lives`` has the first and the last step of each slot that is used.
    """
    kept = [s for s in slots if s.number in lives or s.role not in (CONSTANT, TEMPORARY)]
    pieces = {s.number: Piece(s.nbytes, *lives[s.number]) for s in kept if s.role == TEMPORARY}
    arena = placed(list(pieces.values()), ARENA_ALIGNMENT)
    buffers = [
        Buffer(
            s.name, s.role, s.nbytes, LINE_BYTES if s.role == CONSTANT else s.alignment, s.desc,
            s.content, pieces[s.number].offset if s.role == TEMPORARY else 0,
        )
        for s in kept
    ]  # fmt: skip
    return buffers, {s.number: k for k, s in enumerate(kept)}, arena
