"""What the kinds of files have in common: tensors, the records of packed ones, and the protocol."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import Error, InvalidDescriptor, InvalidFormat
from ..formats import Format
from ..host import packing as host
from ..tensors.desc import MemoryDesc
from ..tensors.dtypes import DType

KEY = "clformats"
"""The key of a record, by itself or before a tensor's name."""
_JOINT = " from "
_LONGEST = 400
"""The most characters of a name that a message shows."""
_LONGEST_RECORD = 4000
"""The most characters that a record can have: the longest of a format, and of 12 dims, twice."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor as it stands in a file; ``dtype`` is None where clformats has no such type."""

    name: str
    type_name: str
    dtype: DType | None
    shape: tuple[int, ...]
    nbytes: int

    def __str__(self) -> str:
        return f"{self.type_name} {'x'.join(map(str, self.shape)) or 'scalar'}"


@dataclass(frozen=True, slots=True)
class Record:
    """How a packed tensor lies in the file, and what it was made from.

    Printed as ``f32:OIhw16i16o:64x3x7x7 from f32:hwio:64x3x7x7``: two descriptors, each with its
    dims in logical order. The second one is dense, its axes lie in the order of its name.
    """

    packed: MemoryDesc
    source: MemoryDesc

    def __str__(self) -> str:
        return f"{self.packed}{_JOINT}{self.source}"

    @classmethod
    def parse(cls, text: str) -> Record:
        """The record that ``str`` printed. Raises `InvalidDescriptor` for any other text."""
        if len(text) > _LONGEST_RECORD:
            raise InvalidDescriptor(
                f"expected DESCRIPTOR from DESCRIPTOR, got {len(text)} characters: {shown(text)}"
            )
        packed, joint, source = text.partition(_JOINT)
        record = cls(MemoryDesc.parse(packed), MemoryDesc.parse(source)) if joint else None
        if record is None or str(record) != text:
            raise InvalidDescriptor(f"expected DESCRIPTOR from DESCRIPTOR, got {shown(text)}")
        # What pack writes has no strides and no padding; strides of 0 would make a few bytes huge.
        for desc in (record.packed, record.source):
            if not isinstance(desc, MemoryDesc):
                raise InvalidDescriptor(f"expected elements of one type, got {desc}")
            if desc != MemoryDesc(desc.dims, desc.dtype, desc.format):
                raise InvalidDescriptor(f"expected a format without options, got {desc}")
        if record.packed.dims != record.source.dims:
            raise InvalidDescriptor(f"expected two descriptors of the same dims, got {shown(text)}")
        record.packed.require_layout()
        axes_of(record.source.format)
        return record


@dataclass(frozen=True, slots=True)
class Change:
    """What stands in a tensor's place in the file that is written.

    ``make`` computes the elements when their turn comes, once. ``dtype`` is the type that the file
    names: that of bytes for packed elements which share them.
    """

    dtype: DType
    shape: tuple[int, ...]
    record: Record | None
    make: Callable[[], NDArray[Any]]

    @property
    def nbytes(self) -> int:
        """The bytes that `make`'s array has."""
        return int(np.prod(self.shape, dtype=object)) * self.dtype.nbytes


class Container(ABC):
    """An open file of tensors. Opening checks all of the file's structure, or raises `Error`.

    ``what`` is the kind of file in words, ``types`` the element types that it can name,
    ``companions`` the suffixes of files that may be written beside one, ``inputs`` the files that
    are read. ``records`` has the text for each packed tensor by its name, unread: a bad one must
    not keep the others from being used.
    """

    what: ClassVar[str]
    types: ClassVar[tuple[str, ...]]
    companions: ClassVar[tuple[str, ...]] = ()
    path: Path
    inputs: tuple[Path, ...]
    tensors: dict[str, Tensor]
    records: dict[str, str]

    @abstractmethod
    def read(self, name: str) -> NDArray[Any]:
        """The elements of a tensor whose `Tensor.dtype` is known, in the shape of the file."""

    @abstractmethod
    def raw(self, name: str) -> NDArray[np.uint8]:
        """The bytes of any tensor, for comparing."""

    @abstractmethod
    def write(self, path: Path, changes: Mapping[str, Change]) -> None:
        """Write a copy with the changes to ``path``, and to files beside it that start alike."""


class Mover(Protocol):
    """Who packs and unpacks: the module `clformats.host`, or a device."""

    def pack(self, array: Any, desc: MemoryDesc) -> NDArray[Any]:
        """As `clformats.pack`."""

    def unpack(self, flat: Any, desc: MemoryDesc) -> NDArray[Any]:
        """As `clformats.unpack`."""


class Watch:
    """Told how a job goes; this one does not listen. ``nbytes`` are those that a step reads."""

    def planned(self, nbytes: int) -> None:
        """The job has begun: that many bytes are to be moved and then to be checked."""

    def moved(self, tensor: Tensor, before: MemoryDesc, after: MemoryDesc) -> None:
        """A tensor was packed or unpacked: how it lay before, and how it does now."""

    def saturated(self, tensor: Tensor, count: int, dtype: DType) -> None:
        """How many of its elements lie beyond the type that they become."""

    def checked(self, tensor: Tensor) -> None:
        """It was read back, and is right."""

    def untouched(self, tensor: Tensor, reason: str) -> None:
        """The tensor is the same in both files."""


@dataclass(frozen=True, slots=True)
class Options:
    """What holds for packing and unpacking.

    ``dtype`` converts to this element type; ``match`` is a regular expression, and only tensors in
    whose name it is found are moved; ``force`` replaces a target that exists.
    """

    dtype: object = None
    match: str | None = None
    force: bool = False
    mover: Mover = host
    watch: Watch = field(default_factory=Watch)


def axes_of(fmt: Format) -> tuple[int, ...]:
    """Which logical dimension each axis of an array in a plain format is: (2, 3, 1, 0) for hwio.

    Raises `InvalidFormat` for a format that splits, rounds up, fuses or turns a dimension.
    """
    digits, layout = fmt.digits, fmt.layout
    plain = fmt.kind == "blocked" and layout is not None and layout.tail is None
    if (
        not plain
        or any(d.size is not None or d.flip or len(d.dims) > 1 for d in digits)
        or (layout is not None and any(n != 1 for n in layout.align))
    ):
        raise InvalidFormat(
            f"{fmt} is no order of axes that an array can have: expected a plain format such as "
            f"oiyx, hwio, nchw or nhwc"
        )
    return tuple(d.dims[0] for d in digits)


def shown(text: str) -> str:
    """A name from a file or a user as it can stand in a line: as it is, or quoted and escaped.

    The middle of a long one is left out.
    """
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST // 2]} ... {text[-_LONGEST // 2 :]}"
    return text if text.isprintable() and text and text == text.strip() else ascii(text)


def library(name: str, what: str) -> Any:
    """Import an optional library, or raise an `Error` with the command that installs it."""
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise Error(
            f"the library {package}, which reads {what}, is missing: pip install {package}"
        ) from error


@contextmanager
def reading(path: Path, what: str, *errors: type[Exception]) -> Iterator[None]:
    """What goes wrong while a file is read as an `Error` that names the file."""
    foreign: tuple[type[Exception], ...] = (
        *(ValueError, TypeError, LookupError, ArithmeticError, RuntimeError, SyntaxError),
        *errors,
    )
    try:
        yield
    except OSError as error:
        raise Error(f"cannot read {shown(str(path))}: {error.strerror or error}") from error
    except foreign as error:
        if isinstance(error, Error):
            raise
        reason = " ".join(str(error).split()) or type(error).__name__
        raise Error(f"{shown(str(path))} is no {what} that can be read: {reason}") from error


@contextmanager
def about(path: Path, name: str) -> Iterator[None]:
    """What is wrong with a tensor as an `Error` that names it and the file."""
    try:
        yield
    except Error as error:
        raise Error(f"{shown(str(path))}, tensor {shown(name)}: {error}") from error


def write_array(file: BinaryIO, array: NDArray[Any]) -> None:
    """Append the bytes of an array, in C order."""
    file.write(as_bytes(array).data)


def as_bytes(array: NDArray[Any]) -> NDArray[np.uint8]:
    """The bytes of an array in C order, without a copy where it is contiguous."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
