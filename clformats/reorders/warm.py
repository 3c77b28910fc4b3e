"""Preparing reorders ahead of time: compilers are done before the first tensor arrives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..errors import InvalidArgument, expect
from ..quantised import QuantisedDesc
from ..runtime import Engine, Memory, Stream
from ..runtime.engine import default_engine
from ..tensors.desc import MemoryDesc
from ..tensors.given import as_any_desc
from ..timing import timed
from .reorder import Reorder

AnyDesc = MemoryDesc | QuantisedDesc
Pair = tuple[MemoryDesc, MemoryDesc]


def warm_up(
    pairs: Iterable[tuple[AnyDesc | str, AnyDesc | str]], engine: Engine | None = None
) -> list[float]:
    """Plan, build and launch the reorder of each ``(src, dst)`` once; returns the seconds of each.

    Pairs are of descriptors, also of quantised tensors, or of what these print. Some drivers
    generate code at the first launch, so every kernel runs once, on memory of its own that is
    released afterwards. A `clformats.Reorder` made on this engine later finds its plan and program
    ready, also for other shapes of the same structure. Built programs are cached on disk as well.
    Raises `InvalidArgument`, `Unsupported` and `DeviceError`.
    """
    expect(engine, Engine | None, "engine")
    wanted = pairs_of(pairs)
    engine = engine or default_engine()
    stream = Stream(engine)
    return [_warmed(src, dst, stream) for src, dst in wanted]


def _warmed(src: AnyDesc, dst: AnyDesc, stream: Stream) -> float:
    memories = Memory(src, stream.engine), Memory(dst, stream.engine)
    return timed(lambda: Reorder(src, dst, stream.engine, wait=True)(stream, *memories).wait())


def pairs_of(pairs: Iterable[Any]) -> list[tuple[AnyDesc, AnyDesc]]:
    """The pairs, checked: two descriptors with all of their sizes. Raises `InvalidArgument`."""
    expect(pairs, Iterable, "pairs")
    result = []
    for pair in pairs:
        if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2:
            raise InvalidArgument(f"got {pair!r:.60}, expected a pair of MemoryDescs (src, dst)")
        src, dst = as_any_desc(pair[0], "src"), as_any_desc(pair[1], "dst")
        for name, desc in (("src", src), ("dst", dst)):
            if desc.has_runtime:
                raise InvalidArgument(
                    f"{name} is {desc}, of sizes known at execution only: give a pair for each "
                    f"shape, or make a Reorder, which has one kernel for all of them"
                )
        result.append((src, dst))
    return result
