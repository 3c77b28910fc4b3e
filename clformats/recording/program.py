"""A recorded program as plain data: buffers, scalars, and the commands of each variant.

It knows no device and no memory object: this is what an export holds, and what a replay binds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from ..errors import InvalidArgument
from ..kernels.source import without_comments

INPUT, OUTPUT, CONSTANT, TEMPORARY = "input", "output", "constant", "temporary"
ROLES = (INPUT, OUTPUT, CONSTANT, TEMPORARY)
ARENA_ALIGNMENT = 512
"""Bytes: `CL_DEVICE_MEM_BASE_ADDR_ALIGN` of every device known is at most 4,096 bits, or so large
that the runner gives each temporary a buffer of its own."""
ANYWHERE, ROUNDED, SAME = "anywhere", "rounded", "same device"
"""Where a command gives the bytes that it gave where it was recorded: on every device, on those
that round divisions and roots correctly, on the same device with the same driver."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """A buffer of a program; ``desc`` is the text of the tensor in it, empty for several.

    ``nbytes`` is the least size, ``alignment`` what its address must be a multiple of. A constant
    has its ``content``, a temporary its place ``at`` in the arena.
    """

    name: str
    role: str
    nbytes: int
    alignment: int = 1
    desc: str = ""
    content: bytes = b""
    at: int = 0


@dataclass(frozen=True, slots=True)
class Given:
    """A scalar that is given by name when the program runs."""

    name: str
    dtype: str


@dataclass(frozen=True, slots=True)
class OfBuffer:
    """An argument: the buffer of this number."""

    number: int


@dataclass(frozen=True, slots=True)
class OfScalar:
    """An argument: the scalar of this number, of so many bytes."""

    number: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class Local:
    """An argument: so many bytes of local memory."""

    nbytes: int


Argument = OfBuffer | OfScalar | Local | bytes
"""An argument of a kernel; bytes are passed as they are."""


@dataclass(frozen=True, slots=True)
class Source:
    """OpenCL C and its options; ``rounds``: divisions are rounded correctly where a device can."""

    text: str
    options: str = ""
    rounds: bool = True

    @property
    def extensions(self) -> set[str]:
        """The extensions that it switches on whatever the device: not those between #if and #endif.

        A kernel that asks for an extension before it switches it on also runs without.
        """
        found, depth = set(), 0
        for line in without_comments(self.text).splitlines():
            directive = re.match(r"\s*#\s*(if|endif|pragma\s+OPENCL\s+EXTENSION)", line)
            word = directive[1] if directive else ""
            depth += {"if": 1, "endif": -1}.get(word, 0)
            enabled = re.search(r"(\w+)\s*:\s*enable", line)
            if word.startswith("pragma") and enabled and not depth:
                found.add(enabled[1])
        return found

    @property
    def version(self) -> int:
        """The version of OpenCL C that it is written in, times 100."""
        found = re.search(r"-cl-std=CL(\d)\.(\d)", self.options)
        return int(found[1]) * 100 + int(found[2]) * 10 if found else 120


@dataclass(frozen=True, slots=True)
class Kernel:
    """A command: a kernel over work-items. Without ``local`` the device chooses the work-groups."""

    source: Source
    name: str
    arguments: tuple[Argument, ...]
    work: tuple[int, ...]
    local: tuple[int, ...] = ()
    exact: str = SAME

    @property
    def parameter_bytes(self) -> int:
        """The bytes of its arguments, as `CL_DEVICE_MAX_PARAMETER_SIZE` counts them."""
        return sum(map(argument_bytes, self.arguments))


def argument_bytes(argument: Argument) -> int:
    """The bytes that an argument takes among those of its kernel; a pointer takes 8."""
    if isinstance(argument, bytes):
        return len(argument)
    return argument.nbytes if isinstance(argument, OfScalar) else 8


@dataclass(frozen=True, slots=True)
class Fill:
    """A command: ``nbytes`` of a buffer from ``first`` on become the byte ``value``."""

    buffer: int
    value: int
    first: int
    nbytes: int


Command = Kernel | Fill


@dataclass(frozen=True, slots=True)
class Device:
    """The device that a variant was tuned for, as OpenCL names it."""

    device: str
    platform: str
    driver: str


@dataclass(frozen=True, slots=True)
class Requires:
    """What a device must have, lest bytes be wrong or nothing runs."""

    extensions: tuple[str, ...] = ()
    opencl_c: int = 120
    work_group: int = 1
    largest_buffer: int = 0
    parameter_bytes: int = 0
    rounded_division: bool = False


@dataclass(frozen=True, slots=True)
class Variant:
    """The commands, planned for one device, for a kind of device, or for any.

    ``tuned_for`` is the device; ``like``, "cpu" or "gpu", the kind that a profile stood for.
    """

    name: str
    commands: tuple[Command, ...]
    tuned_for: Device | None = None
    like: str = ""

    @property
    def kernels(self) -> list[Kernel]:
        """The commands that are kernels."""
        return [c for c in self.commands if isinstance(c, Kernel)]

    @property
    def sources(self) -> list[Source]:
        """Each source once, in the order of first use."""
        return list(dict.fromkeys(k.source for k in self.kernels))

    @property
    def exact(self) -> str:
        """Where all commands give the bytes that were recorded: the least of theirs."""
        found = {k.exact for k in self.kernels}
        return next((e for e in (SAME, ROUNDED) if e in found), ANYWHERE)

    def requires(self, buffers: Sequence[Buffer], arena_bytes: int) -> Requires:
        """What a device must have for it."""
        kernels = self.kernels
        extensions = {e for s in self.sources for e in s.extensions}
        sizes = [b.nbytes for b in buffers if b.role != TEMPORARY]
        return Requires(
            extensions=tuple(sorted(extensions)),
            opencl_c=max((s.version for s in self.sources), default=120),
            work_group=max((prod(k.local) for k in kernels), default=1),
            largest_buffer=max([*sizes, arena_bytes]),
            parameter_bytes=max((k.parameter_bytes for k in kernels), default=0),
            rounded_division=any(k.exact == ROUNDED for k in kernels),
        )


@dataclass(frozen=True, slots=True)
class Program:
    """A recording as data. ``made_by`` is the version of clformats."""

    name: str
    buffers: tuple[Buffer, ...]
    scalars: tuple[Given, ...]
    arena_bytes: int
    variants: tuple[Variant, ...]
    made_by: str = ""

    @property
    def named(self) -> tuple[Buffer, ...]:
        """The inputs and outputs."""
        return tuple(b for b in self.buffers if b.role in (INPUT, OUTPUT))

    def variant(self, name: str) -> Variant:
        """The variant of a name. Raises `InvalidArgument`."""
        for found in self.variants:
            if found.name == name:
                return found
        known = ", ".join(v.name for v in self.variants)
        raise InvalidArgument(f"variant: got {name!r}, expected one of {known}")


def check_name(name: object, what: str) -> str:
    """The name, which becomes one of C and Python. Raises `InvalidArgument`."""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z]\w{0,63}", name, re.ASCII):
        raise InvalidArgument(
            f"{what}: got {name!r}, expected a letter, then at most 63 letters, digits and _"
        )
    if name in ("stream", "self"):
        raise InvalidArgument(f"{what}: {name} is an argument of every replay, take another name")
    return name
