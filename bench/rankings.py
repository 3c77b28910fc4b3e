"""The record of experiments: which of two schedules was faster, and by how much.

`rankings.tsv` has one line for each comparison: the problem, the two schedules, their shares of a
plain copy (or the ratio A to B where only that is known), the machine, and a note. A rule that
chooses schedules can be checked against it: does it prefer the faster one?

A problem is two descriptors that `MemoryDesc.parse` reads. ``*`` stands for a size that the
experiment did not record or that took several values; the note says which. Unless the note says
otherwise, the tensors were larger than the last-level cache. A share such as ``0.9..1.0`` is the
range over those values and over repeated runs.

A schedule names only the decisions that A and B differ in, as ``name=value`` from `DECISIONS`; all
others were left to the rules of the day.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import clformats as cf

FILE = Path(__file__).with_name("rankings.tsv")
COLUMNS = ("problem", "a", "b", "share_a", "share_b", "ratio", "machine", "note")

SWITCH = ("on", "off")
DECISIONS: Mapping[str, tuple[str, ...]] = {
    # The family of kernels, of a time when tiles and put-together rows were two.
    "family": ("tile", "gather"),
    # Cache blocking: over the many rows that tiles read, or over several loops.
    "blocking": ("rows", "loops", "off"),
    # The bytes of each row in such a block.
    "block_run_bytes": ("256", "1024"),
    # The loop order follows addresses of the source or of the destination.
    "order": ("source", "destination"),
    # How much of a row is read before the next row: a line, or as many bytes as are written.
    "read_run": ("as-written", "line"),
    # Prefetch of the next block: spread over the tiles of the current one, all at once, or none.
    # What a tile prefetches follows from the last block of a row, a shorter one, or a full one.
    "prefetch": ("spread", "at-once", "off", "last-block", "full-block"),
    # Which cache is prefetched into.
    "cache": ("L1", "L2"),
    # Where in a tile the prefetches stand.
    "prefetch_at": ("stores", "loads", "shuffles", "after-stores"),
    # A line is stored as soon as its registers are ready, or after the whole tile is shuffled.
    "emission": ("lines", "tile"),
    # Ordinary stores; streaming (non-temporal) stores of aligned parts of vectors; or streaming
    # stores of whole lines, with an ordinary store of the part of a line at each end of a row.
    "stores": ("streaming-parts", "ordinary", "split"),
    # The stores of tiles at an edge, where a block is not full.
    "edge_stores": ("streaming", "ordinary"),
    # Realignment: the end of a line is carried in a register from tile to tile.
    "carry": ("on",),
    # Row stitching: a line that two rows share is completed by the second one.
    "stitch": SWITCH,
    # Software write combining: one line for each row waits in private memory for its next tile.
    "line_buffer": SWITCH,
    # Software write combining: a block of rows is collected in private memory, then sent as lines.
    "staging": SWITCH,
    # Tiles that read one line of each of so many rows.
    "line_rows": ("16", "off"),
    # Overlapping vectors cover a run of the source that no vector divides.
    "overlap": SWITCH,
    # Elements of 1 and 2 bytes are moved as words of 4, then their bytes are chosen.
    "subword": SWITCH,
    # One vector load fills several padded blocks; or half a vector for each block.
    "wide_load": ("on", "half", "off"),
    # Blocks of the source that hold only padding are read, or skipped.
    "missing_blocks": ("skipped", "read"),
    # Lines are assembled from several registers, where the innermost loop is no power of two.
    "line_assembly": SWITCH,
    # A short innermost loop is interleaved or de-interleaved by shuffles.
    "interleave": SWITCH,
    # The halves of a line are stored one after the other, or far apart in time.
    "half_lines": ("together", "apart"),
    # A line of 8-bit elements is put together and stored at once, or in two or four parts.
    "byte_lines": ("whole", "parts"),
}
"""The decisions of a schedule, each with the values that occur."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """One comparison. Shares are (least, most); both are None where only the ratio was recorded."""

    src: cf.MemoryDesc
    dst: cf.MemoryDesc
    a: Mapping[str, str]
    b: Mapping[str, str]
    share_a: tuple[float, float] | None
    share_b: tuple[float, float] | None
    ratio: tuple[float, float]
    machine: str
    note: str


def rankings(path: Path = FILE) -> list[Ranking]:
    """Every comparison of the record. Raises ValueError for a line that is not whole."""
    with path.open(encoding="utf-8", newline="") as file:
        header, *lines = csv.reader(file, delimiter="\t")
    if tuple(header) != COLUMNS:
        raise ValueError(f"got the columns {header}, expected {COLUMNS}")
    return [_ranking(line) for line in lines]


def _ranking(line: list[str]) -> Ranking:
    problem, a, b, share_a, share_b, ratio, machine, note = line
    src, arrow, dst = problem.partition(" -> ")
    if not arrow or bool(ratio) == bool(share_a and share_b) or not machine:
        raise ValueError(f"expected SRC -> DST, a machine, and two shares or a ratio, got {line}")
    first, second = (_range(text) if text else None for text in (share_a, share_b))
    measured = _divided(first, second) if first and second else _range(ratio)
    descs = cf.MemoryDesc.parse(src), cf.MemoryDesc.parse(dst)
    return Ranking(*descs, _schedule(a), _schedule(b), first, second, measured, machine, note)


def _schedule(text: str) -> dict[str, str]:
    """The decisions of ``"stitch=on, blocking=rows"``."""
    decisions = dict(part.split("=") for part in text.split(", "))
    for name, value in decisions.items():
        if value not in DECISIONS.get(name, ()):
            raise ValueError(f"got the decision {name}={value}, expected one of {DECISIONS}")
    return decisions


def _range(text: str) -> tuple[float, float]:
    """The bounds of ``"0.9..1.0"``, or twice the number of ``"0.9"``."""
    low, _, high = text.partition("..")
    bounds = float(low), float(high or low)
    if not 0 < bounds[0] <= bounds[1]:
        raise ValueError(
            f"got {text!r}, expected a positive number or a range of two, such as 0.9..1.0"
        )
    return bounds


def _divided(a: tuple[float, float], b: tuple[float, float]) -> tuple[float, float]:
    return a[0] / b[1], a[1] / b[0]
