"""The kernels that move records to other records or planes on GPUs, through local memory.

As for decoding (see `clformats.recoding.records`) a work-group loads whole records of a span of
columns. Each work-item moves the bits of one block from local memory to local memory, where the
result lies as in the destination; the group stores it in words, neighbours by neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import gcd

import numpy as np

from ..problems.thresholds import TILE_BYTES, VECTOR_BYTES
from ..problems.traits import Traits
from ..quantised import QuantisedDesc
from ..quantised.lanes import At, NotInTilesError, Placed, Tile
from ..quantised.values import Tables, source
from .kernel import Kernel
from .moving import BitMover
from .records import DECODING_ITEMS, LEAST_ITEMS, ByteRun, long_row, runs_of

LOCALLY = """#define LOCAL_PUT(v, kind, width, p) vstore##width(v, 0, (local kind *)(p))
static inline void local_ushort(ushort x, local uchar *p) { p[0] = x; p[1] = x >> 8; }
static inline void local_uint(uint x, local uchar *p) {
  local_ushort(x, p);
  local_ushort(x >> 16, p + 2);
}
"""
IN_LOCAL = {"global ": "local ", "PUT(": "LOCAL_PUT(", "STORE_USHORT(": "local_ushort(",
            "STORE_UINT(": "local_uint("}  # fmt: skip
"""What statements over global memory are on local memory."""
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
    block = max((d.step * max(1, f.group[1]) for f in src.fields.values() for p in f.planes
                 for d in p.digits if d.dim == 2), default=1)  # fmt: skip
    record = max(src.nbytes, dst.nbytes) * block // src.nelems
    items = min(DECODING_ITEMS, traits.group_size, SPAN_BYTES // max(1, record))
    if items < LEAST_ITEMS:
        raise NotInTilesError
    mover = BitMover(src, dst, Tile(1, block), list(dst.planes))
    return _kernel(mover, block, 1 << items.bit_length() - 1)


def _kernel(mover: BitMover, block: int, items: int) -> Kernel:
    """The kernel of groups of so many work-items."""
    (e, n, k), span = mover.src.extents, block * items
    reads, writes = (list(runs_of([*planes.values()], k, span))
                     for planes in (mover.read, mover.write))  # fmt: skip
    if not all(run.is_full for run in writes) or any(
        run.block != block for run in (*reads, *writes)
    ):
        raise NotInTilesError
    numbers = [run.nbytes * items for run in (*reads, *writes)]
    word = gcd(VECTOR_BYTES, *mover.symbols.values.values(), *numbers)
    given = {**mover.symbols.values, "columns": k}
    names = "".join(f", const ulong {name}" for name in given)
    lines = [
        LOCALLY,
        f"kernel __attribute__((reqd_work_group_size({items}, 1, 1)))",
        f"void move(global const uchar *w, global uchar *d{names})",
        "{",
        "  const size_t e = get_group_id(2), n = get_group_id(1);",
        f"  const size_t k = get_group_id(0) * {span};",
        f"  const uint count = min((ulong){span}, columns - k), mine = get_local_id(0);",
        *(line for j, run in enumerate(reads) for line in run.loads(f"in{j}", word, items, span)),
        *(run.declared(f"out{j}", span) for j, run in enumerate(writes)),
        "  barrier(CLK_LOCAL_MEM_FENCE);",
        f"  if (mine * {block} < count) {{",
        f"    const uint e = 0, n = 0, k = mine * {block};",
        *_moved(mover, reads, writes),
        "  }",
        "  barrier(CLK_LOCAL_MEM_FENCE);",
        *(
            line
            for j, run in enumerate(writes)
            for line in run.stores(f"out{j}", word, items, span)
        ),
        "}",
    ]
    what = (f"a work-group of {items} moves the bits of {span} elements of a row through local "
            f"memory, by {word} bytes")  # fmt: skip
    arguments = tuple(map(np.uint64, given.values()))
    size = -(-k // span) * items, n, e
    text = source("\n".join(lines), Tables())
    return Kernel(text, "move", size, arguments, what, (items, 1, 1), VECTOR_BYTES)


def _moved(mover: BitMover, reads: list[ByteRun], writes: list[ByteRun]) -> Iterator[str]:
    """The statements by which a work-item moves its block inside local memory."""
    for j, run in enumerate(reads):
        for plane in run.planes:
            yield from map(_locally, _at_zero(plane).pointers(mover.tile, f"in{j}"))
    for j, run in enumerate(writes):
        mover.write = {plane.name: _at_zero(plane) for plane in run.planes}
        yield "  {"
        for line in mover.stores():
            yield _locally(line).replace(" = d + ", f" = out{j} + ")
        yield "  }"


def _at_zero(plane: Placed) -> Placed:
    """A plane in memory that begins with it."""
    return replace(plane, start=At(plane.start.bits))


def _locally(line: str) -> str:
    """A statement over global memory on local memory."""
    for text, own in IN_LOCAL.items():
        line = line.replace(text, own)
    return line
