"""What a cost model needs to know of a processor, as numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..problems.traits import STREAMED_MOST, Traits

MEANINGS: Mapping[str, str] = {
    "stream_bytes": "from how many bytes moved on streaming stores gain",
    "streams": "places that a core reads from at once before its prefetcher loses them",
    "far_bytes": "the part of the second cache that a work-item can count on",
    "near_bytes": "the part of the nearest cache that a work-item can count on",
    "jump_bytes": "what could be read in the time that a jump to another place costs",
    "asked_bytes": "the same where the place was prefetched",
    "sent_bytes": "the same where stores that pass the cache go to another place",
    "bank_bytes": "the same where all such places are in few banks of memory, or sets of a cache",
    "hop_bytes": "the same within the caches",
    "byte_ns": "ns for a byte from or to memory",
    "cached": "the share of this that a byte takes within the caches",
    "vector_bytes": "bytes of a register",
    "registers": "how many there are",
    "access_ns": "ns for a load or store of a register",
    "shuffle_ns": "ns for a shuffle of a register",
    "line_ns": "ns for a cache line that a tile touches",
    "edge_ns": "ns for an element of a tile that reaches beyond the elements of a dimension",
    "tile_ns": "ns to go on to the next tile",
    "item_ns": "ns for a work-item",
    "units": "cores",
    "begin_bytes": "the alignment of memory",
}
"""What the numbers of a `Profile` are, for people."""


@dataclass(frozen=True, slots=True)
class Profile:
    """A core and its memory; `MEANINGS` tells what each number is.

    Times are in nanoseconds, sizes in bytes. The defaults were fitted on one processor with
    AVX-512; `clformats.calibrate` measures those of `RANGES`.
    """

    stream_bytes: int = 18 << 20
    streams: int = 16
    far_bytes: int = 256 << 10
    near_bytes: int = 20 << 10
    jump_bytes: int = 192
    asked_bytes: int = 32
    sent_bytes: int = 8
    bank_bytes: int = 280
    hop_bytes: int = 8
    byte_ns: float = 0.1
    cached: float = 0.2
    vector_bytes: int = 32
    registers: int = 16
    access_ns: float = 0.25
    shuffle_ns: float = 1.0
    line_ns: float = 1.5
    edge_ns: float = 12.0
    tile_ns: float = 6.0
    item_ns: float = 100.0
    units: int = 2
    begin_bytes: int = 64


TOLD = ("vector_bytes", "registers", "units", "begin_bytes")
"""The numbers that a device tells of itself."""
RANGES: Mapping[str, tuple[int, int]] = {"stream_bytes": (4 << 20, STREAMED_MOST)}
"""The numbers that are measured, each with the least and the most that can be true."""


def profile_of(traits: Traits) -> Profile:
    """The default numbers, with what a device tells of itself and what was measured of it."""
    wide = traits.vector_bytes >= 64
    return Profile(
        stream_bytes=traits.streams_from, vector_bytes=traits.vector_bytes,
        registers=32 if wide else 16, units=traits.compute_units, begin_bytes=traits.begin_bytes,
    )  # fmt: skip


def with_measured(traits: Traits, numbers: Mapping[str, float]) -> Traits:
    """The traits of a device with what was measured of it; other numbers than `RANGES` are not."""
    if "stream_bytes" not in numbers:
        return traits
    return replace(traits, streamed_bytes=sanely("stream_bytes", numbers["stream_bytes"]))


def sanely(name: str, value: float) -> int:
    """A measured number within its range."""
    least, most = RANGES[name]
    return round(min(max(value, least), most))
