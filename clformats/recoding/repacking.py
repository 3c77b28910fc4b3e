"""The kernels that move records to other records or planes on GPUs, through local memory.

As for decoding (see `clformats.recoding.records`) a work-group loads whole records of a span of
columns. Each work-item moves the bits of one block from local memory to local memory, where the
result lies as in the destination; the group stores it in words, neighbours by neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..problems.thresholds import TILE_BYTES, VECTOR_BYTES
from ..problems.traits import Traits
from ..quantised import QuantisedDesc
from ..quantised.lanes import NotInTilesError, Tile
from .grouped import WritingGroup, at_zero, locally
from .kernel import Kernel
from .moving import BitMover
from .records import DECODING_ITEMS, LEAST_ITEMS, columns_of_records, long_row, runs_of

SPAN_BYTES = TILE_BYTES // 2
"""Of a span, on each side."""


def repacking(src: QuantisedDesc, dst: QuantisedDesc, traits: Traits) -> Kernel:
    """The kernel between two layouts of a type in which rows are runs of whole bytes.

    Raises `NotInTilesError` for others.
    """
    if traits.local_bytes < 2 * TILE_BYTES or traits.begin_bytes < VECTOR_BYTES:
        raise NotInTilesError
    rows = long_row(src), long_row(dst)
    src, dst = (rows[0] or src, rows[1] or dst) if all(rows) else (src, dst)
    block = columns_of_records(src)
    record = max(src.nbytes, dst.nbytes) * block // src.nelems
    items = min(DECODING_ITEMS, traits.group_size, SPAN_BYTES // max(1, record))
    if items < LEAST_ITEMS:
        raise NotInTilesError
    mover = BitMover(src, dst, Tile(1, block), list(dst.planes))
    return _kernel(mover, block, 1 << items.bit_length() - 1)


def _kernel(mover: BitMover, block: int, items: int) -> Kernel:
    """The kernel of groups of so many work-items."""
    k, span = mover.src.extents[2], block * items
    reads, writes = (list(runs_of([*planes.values()], k, span))
                     for planes in (mover.read, mover.write))  # fmt: skip
    group = WritingGroup(mover, items, block, writes, reads)
    what = (f"a work-group of {items} moves the bits of {span} elements of a row through local "
            f"memory, by {group.word} bytes")  # fmt: skip
    return group.kernel("move", _moved(group), what)


def _moved(group: WritingGroup) -> Iterator[str]:
    """The statements by which a work-item moves its block inside local memory."""
    yield f"    const uint e = 0, n = 0, k = mine * {group.block};"
    for j, run in enumerate(group.reads):
        for plane in run.planes:
            yield from map(locally, at_zero(plane).pointers(group.writer.tile, f"in{j}"))
    yield from group.stores()
