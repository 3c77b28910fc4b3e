"""Formats as networks name them: a name of this library's, or any other (opaque) name.

Two names mean one format where they say one structure: ``nchw`` and ``bfyx`` need no reorder. A
name that is none of clDNN's or oneDNN's is opaque: a format all the same, equal to itself only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..errors import InvalidArgument, InvalidFormat, InvalidNetwork, shown
from ..formats import Format
from ..formats.tags import is_meta

Key = Format | str
"""What makes two names one format: the structure, or the opaque name itself."""

ANY = (None, "any")


@lru_cache(maxsize=16384)
def key_of(name: str, rank: int) -> Key:
    """What the name means for a tensor of this rank. Raises `InvalidNetwork` for a wrong rank."""
    try:
        fmt = Format(name, ndims=rank) if is_meta(name) else Format(name)
    except InvalidFormat:
        return name
    if fmt.layout is None:
        raise InvalidNetwork(f"the format {name!r} is no concrete one")
    if fmt.ndims != rank:
        raise InvalidNetwork(
            f"the format {name!r} has {fmt.ndims} dimensions ({' '.join(fmt.dims)}), "
            f"the tensor has {rank}"
        )
    return fmt


def why_opaque(name: str) -> str:
    """Why a name is none of this library's formats, with names that are like it."""
    try:
        Format(name)
    except InvalidFormat as error:
        return str(error)
    return "it is a concrete format"


def fits(name: str, rank: int) -> bool:
    """Whether the name can be a format of a tensor of this rank."""
    try:
        key_of(name, rank)
    except InvalidNetwork:
        return False
    return True


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


def text_of(name: object, what: str) -> str:
    """The name as text; refuses what names no format."""
    if isinstance(name, Format):
        return str(name)
    if not isinstance(name, str) or not name.strip():
        raise InvalidNetwork(f"{what}: got the format {name!r}, expected a name or a cf.Format")
    return name
