"""Formats as networks name them: a name of this library's, or any other (opaque) name.

Two names mean one format where they say one structure: ``nchw`` and ``bfyx`` need no reorder. A
name that is none of clDNN's or oneDNN's is opaque: a format all the same, equal to itself only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InvalidArgument, InvalidFormat, InvalidNetwork, shown
from ..formats import Format
from ..formats.names import ABSTRACT
from ..formats.tags import is_meta

if TYPE_CHECKING:
    from typing_extensions import Self

Key = Format | str
"""What makes two names one format: the structure, or the opaque name itself."""

ANY = (None, "any")


class FormatName(str):
    """A format of a network: its name, and what it ``means``, a `Format`.

    None: it is opaque, and the error ``why`` says why it is none of this library's, with names
    like it (which are sought when the error is read).

    It is parsed once, where it enters: see `named`. As texts, names are equal where they are
    written alike; their ``key`` is equal where they mean one format.
    """

    __slots__ = ("means", "why")

    means: Format | None
    why: InvalidFormat | None

    def __new__(cls, text: str, means: Format | None, why: InvalidFormat | None = None) -> Self:
        """The name with its meaning."""
        made = super().__new__(cls, text)
        made.means, made.why = means, why
        return made

    def __getnewargs__(  # type: ignore[override]  # of copies
        self,
    ) -> tuple[str, Format | None, InvalidFormat | None]:
        return str(self), self.means, self.why

    @property
    def key(self) -> Key:
        """What makes two names one format."""
        return str(self) if self.means is None else self.means

    @property
    def canonical(self) -> str:
        """One text for all names of the format."""
        return str(self) if self.means is None else self.means.onednn or self.means.name

    def of_rank(self, rank: int, what: str = "a value") -> FormatName:
        """The format of a tensor of this rank, which meta tags (``aBx16b``) wait for.

        Raises `InvalidNetwork`, beginning with ``what``, for a format of another rank.
        """
        if self.means is None:
            return _parsed(self, rank) if is_meta(self) else self
        if self.means.ndims != rank:
            raise InvalidNetwork(
                f"{what}: the format {str(self)!r} has {self.means.ndims} dimensions "
                f"({' '.join(self.means.dims)}), the tensor has {rank}"
            )
        return self

    def fits(self, rank: int) -> bool:
        """Whether it can be the format of a tensor of this rank."""
        return self.means is None or self.means.ndims == rank


def named(name: object, what: str = "a value") -> FormatName:
    """The format that a text or a `Format` names. Raises `InvalidNetwork`, beginning with ``what``.

    >>> named("nchw").key == named("bfyx").key, named("my own").means
    (True, None)
    """
    if isinstance(name, FormatName):
        return name
    if not isinstance(name, Format | str) or not str(name).strip():
        raise InvalidNetwork(f"{what}: got the format {name!r}, expected a name or a cf.Format")
    found = FormatName(str(name), name) if isinstance(name, Format) else _parsed(name, None)
    if found.means is not None and found.means.layout is None:
        raise InvalidNetwork(f"{what}: the format {str(name)!r} is no concrete one")
    return found


def _parsed(name: str, rank: int | None) -> FormatName:
    try:
        return FormatName(name, Format(name, ndims=rank))
    except InvalidFormat as error:
        error.__context__ = None  # it would keep what the callers hold
        return FormatName(name, None, error.with_traceback(None))


def plain(rank: int) -> FormatName:
    """The plain format of a rank: ``"abcd"``."""
    return named(ABSTRACT[:rank] or "a")


def listed(values: object, what: str) -> tuple[Any, ...]:
    """The values of a list, tuple or generator; a single name is one value."""
    if isinstance(values, str | Format):
        return (values,)
    if not isinstance(values, Iterable) or isinstance(values, bytes | Mapping | AbstractSet):
        raise InvalidArgument(f"{what}: got {shown(values)}, expected a list or tuple")
    return tuple(values)


def path_of(path: object) -> Path:
    """The path of a file. Raises `InvalidArgument`."""
    if not isinstance(path, str | Path):
        raise InvalidArgument(f"path: got {shown(path)}, expected a text or a Path")
    return Path(path)
