"""Transfers of quantised tensors: in one piece, reordered on the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import InvalidArgument, InvalidAttr, InvalidDescriptor
from ..host.memory import HostMemory
from ..reorders.reorder import Reorder
from ..runtime import Engine, Memory, Stream
from ..runtime.engine import default_engine
from ..values.attr import Attr
from .ends import Side


def transfer_quantised(  # those of `transfer`
    src: Side, dst: Side, attr: Attr, engine: Engine | None, piece_nbytes: int | None,
    progress: Callable[[int, int], object] | None,
) -> None:  # fmt: skip
    """As `transfer`, where a side is quantised. Bytes that lie alike are copied.

    Raises `InvalidAttr` for attributes, and `InvalidArgument` for a size of pieces.
    """
    if attr.terms or attr.expression:
        raise InvalidAttr("attributes: quantised tensors are moved or decoded as they are; reorder "
                          "the result")  # fmt: skip
    if piece_nbytes is not None:
        raise InvalidArgument(f"piece_nbytes: got {piece_nbytes}, but a quantised tensor goes in "
                              f"one piece: leave it out")  # fmt: skip
    if src.desc.dims != dst.desc.dims:
        raise InvalidDescriptor(f"got {src.desc} and {dst.desc}, expected equal dims")
    total = src.desc.nbytes + dst.desc.nbytes
    report = progress or (lambda _done, _total: None)
    report(0, total)
    if total:
        _moved(src, dst, engine)
    report(total, total)


def _moved(src: Side, dst: Side, engine: Engine | None) -> None:
    if src.desc == dst.desc:
        _copied(src, dst)
        return
    here = dst if isinstance(dst, Memory) else src
    own: Any = here.engine if isinstance(here, Memory) else engine or default_engine()
    if not isinstance(src, Memory) or src.engine.context != own.context:
        there = Memory.unfilled(src.desc, own)
        _copied(src, there)
        src = there
    result = dst if isinstance(dst, Memory) else Memory.unfilled(dst.desc, own)
    stream = Stream(own)
    Reorder(src.desc, result.desc, own)(stream, src, result)
    stream.wait()
    if result is not dst:
        _copied(result, dst)


def _copied(src: Side, dst: Side) -> None:
    """Copy the bytes of a tensor between memory that lies alike."""
    if isinstance(src, Memory):
        with src.map("r") as flat:
            _copied(HostMemory(src.desc, flat), dst)
    elif isinstance(dst, Memory):
        with dst.map("w") as flat:
            flat[: src.array.size] = src.array
    else:
        dst.array[: src.array.size] = src.array
