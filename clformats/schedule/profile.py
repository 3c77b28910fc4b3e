"""What a cost model needs to know of a processor, as numbers."""

from __future__ import annotations

from dataclasses import dataclass

from .traits import Traits


@dataclass(frozen=True, slots=True)
class Profile:
    """A core and its memory. Times are in nanoseconds, sizes in bytes.

    ``stream_bytes``: from how many bytes moved on streaming stores gain. ``streams``: how many
    places a core reads from at once before its prefetcher loses them. ``far_bytes``: the part of
    the second cache that a work-item can count on. ``jump_bytes``: what could be read in the time
    that a jump to another place costs, ``asked_bytes`` the same where the place was prefetched,
    ``sent_bytes`` where stores that pass the cache go to another place, ``hop_bytes`` within the
    caches. ``byte_ns``: a byte from or to memory; ``cached``: the share of this that a byte takes
    within the caches. ``line_ns``: a line of the caches that a tile touches. ``vector_bytes`` of a
    register, of which there are ``registers``. ``access_ns`` of a load or store of one register,
    ``shuffle_ns`` of a shuffle of one, ``narrow_ns`` where its elements are bytes or shorts.
    ``tile_ns``: to go on to the next tile. ``item_ns``: a work-item.
    """

    stream_bytes: int = 18 << 20
    streams: int = 16
    far_bytes: int = 256 << 10
    jump_bytes: int = 256
    asked_bytes: int = 64
    sent_bytes: int = 28
    hop_bytes: int = 8
    byte_ns: float = 0.1
    cached: float = 0.2
    vector_bytes: int = 32
    registers: int = 16
    access_ns: float = 0.25
    shuffle_ns: float = 0.4
    narrow_ns: float = 1.0
    line_ns: float = 1.5
    tile_ns: float = 6.0
    item_ns: float = 100.0
    units: int = 2
    begin_bytes: int = 64


def profile_of(traits: Traits) -> Profile:
    """The default numbers, with what a device tells of itself."""
    wide = traits.vector_bytes >= 64
    return Profile(
        stream_bytes=traits.streams_from, vector_bytes=traits.vector_bytes,
        registers=32 if wide else 16, units=traits.compute_units, begin_bytes=traits.begin_bytes,
    )  # fmt: skip
