"""Descriptors of tensors whose values have no element type of their own, and how they are found.

`MemoryDesc` makes them where its element type is one of another room: quantised types, whose values
share parameters. They say themselves how values are packed and unpacked.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from numpy.typing import NDArray

from ..errors import InvalidArgument, Unsupported
from .dtypes import DType


class LayoutName(str):
    """The name of a layout, which has what programs ask a `Format` for first."""

    __slots__ = ()

    image = layout = sums = None


class _Lacks(Unsupported, AttributeError):
    """What only descriptors of one element type have: `hasattr` is false."""


class Described(ABC):
    """What every descriptor says: dims in logical order, bytes, and how values become bytes."""

    __slots__ = ()

    dims: tuple[int, ...]

    def __getattr__(self, name: str) -> Any:
        """Raise `Unsupported` (code QUANTISED) for what only descriptors of one type have."""
        if not any(hasattr(kind, name) for kind in _of_one_type):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        raise _Lacks(
            "QUANTISED",
            f"{name}: got {self}, whose values share parameters. Its planes say where bits lie, "
            f"and offset(..., plane=); for other dims make another descriptor, or unpack it first, "
            f"by cf.unpack or cf.Reorder to f32 or f16",
        )

    @property
    @abstractmethod
    def format(self) -> LayoutName:
        """The name of the layout."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """The bytes of the whole tensor."""

    @abstractmethod
    def pack(self, values: Any) -> NDArray[Any]:
        """As `clformats.pack`."""

    @abstractmethod
    def unpack(self, raw: Any, field: str | None = None) -> NDArray[Any]:
        """As `clformats.unpack`."""


class ElementType:
    """An element type that has descriptors of its own: those that ``maker`` makes."""

    maker: ClassVar[Callable[..., Described]]
    is_float: ClassVar[bool] = False


_finders: list[Callable[[str], ElementType | None]] = []


def register(find: Callable[[str], ElementType | None]) -> None:
    """Let names of element types be found that are no `DType`."""
    _finders.append(find)


def element_type(value: object) -> ElementType | None:
    """The element type of another room that a value is, or names; None for all others."""
    if isinstance(value, ElementType):
        return value
    if not isinstance(value, str):
        return None
    return next((found for find in _finders if (found := find(value)) is not None), None)


def described_by(dims: Iterable[int], dtype: object, layout: Any, **others: Any) -> Any:
    """The descriptor that another room makes of an element type; None where the type is a `DType`.

    Raises `InvalidArgument` for options that only tensors of one element type have.
    """
    if isinstance(dtype, DType):
        return None
    found = element_type(dtype)
    if found is None:
        return None
    given = sorted(name for name, value in others.items() if value is not None)
    if given:
        raise InvalidArgument(
            f"{', '.join(given)}: got it for {found}, whose layouts say where every bit lies: "
            f"leave it out"
        )
    return type(found).maker(dims, found, layout)


_of_one_type: list[type] = []


class Made:
    """Base of `MemoryDesc`, which makes the descriptor of another room for a type of that room."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        _of_one_type.append(cls)

    def __new__(
        cls,
        dims: Iterable[int],
        dtype: object,
        format: Any = None,  # the field's word for it
        **others: Any,
    ) -> Any:
        """The descriptor that another room makes of an element type, or an empty one of ours."""
        made = described_by(dims, dtype, format, **others)
        return object.__new__(cls) if made is None else made


def parsed(text: str) -> Any:
    """The descriptor of a text such as ``q4_0:gguf:64x256``; None where its type is a `DType`."""
    name, _, rest = text.strip().partition(":")
    found = element_type(name)
    if found is None:
        return None
    layout, _, dims = rest.rpartition(":")
    return type(found).maker(dims, found, layout)


def is_described(value: object) -> bool:
    """Whether a value is such a descriptor, or the text of one."""
    if isinstance(value, str):
        return ":" in value and element_type(value.strip().partition(":")[0]) is not None
    return isinstance(value, Described)


def refuse(value: object, what: str) -> None:
    """Raise `Unsupported` (code QUANTISED) for a descriptor that an operation does not take."""
    if isinstance(value, Described):
        raise Unsupported(
            "QUANTISED",
            f"{what}: got {value}, whose values share parameters; this takes descriptors of one "
            f"element type. Unpack it first, by cf.unpack or cf.Reorder to f32 or f16",
        )
