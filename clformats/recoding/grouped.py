"""A work-group on GPUs that makes records in local memory and stores them in words.

Each work-item makes the codes of one *block* of columns, where they lie as in the destination; then
the group stores whole runs of bytes, neighbours by neighbours, whatever the length of a record is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd

import numpy as np

from ..problems.thresholds import VECTOR_BYTES
from ..quantised.lanes import At, NotInTilesError, Placed
from ..quantised.values import Tables, source
from .kernel import Kernel
from .records import ByteRun
from .writing import Writer

LOCALLY = """#define LOCAL_PUT(v, kind, width, p) vstore##width(v, 0, (local kind *)(p))
static inline void local_ushort(ushort x, local uchar *p) { p[0] = x; p[1] = x >> 8; }
static inline void local_uint(uint x, local uchar *p) {
  local_ushort(x, p);
  local_ushort(x >> 16, p + 2);
}
"""
"""What statements over local memory use."""
_IN_LOCAL = {"global ": "local ", "PUT(": "LOCAL_PUT(", "STORE_USHORT(": "local_ushort(",
             "STORE_UINT(": "local_uint("}  # fmt: skip
"""What statements over global memory are on local memory."""


@dataclass(frozen=True, slots=True)
class WritingGroup:
    """``items`` work-items that write one block of ``block`` columns each, in the runs ``writes``.

    ``reads`` are runs of the source that the group loads into local memory ``in0`` .. first. Raises
    `NotInTilesError` for runs with bits that are no code's, or of other blocks.
    """

    writer: Writer
    items: int
    block: int
    writes: Sequence[ByteRun]
    reads: Sequence[ByteRun] = ()

    def __post_init__(self) -> None:
        """Raise `NotInTilesError` for runs that are not written whole."""
        whole = all(run.is_full for run in self.writes)
        if not whole or any(run.block != self.block for run in (*self.reads, *self.writes)):
            raise NotInTilesError

    @property
    def span(self) -> int:
        """The columns of a group."""
        return self.block * self.items

    @property
    def word(self) -> int:
        """The bytes of the longest words that all runs, and their places, are multiples of."""
        numbers = (run.nbytes * self.items for run in (*self.reads, *self.writes))
        return gcd(VECTOR_BYTES, *self.writer.symbols.values.values(), *numbers)

    def kernel(
        self, name: str, body: Iterable[str], what: str, rules: Mapping[str, object] | None = None
    ) -> Kernel:
        """The kernel; ``body`` are the statements of work-item ``mine``, from `stores` at the end.

        In them ``k`` is the first column of the group; ``rules`` is as in `TileCode`.
        """
        e, n, k = self.writer.dst.extents
        given: Mapping[str, int] = {**self.writer.symbols.values, "columns": k}
        lines = "\n".join(self._lines(name, body, given))
        text = source(LOCALLY + lines, Tables(), more=rules)
        size = -(-k // self.span) * self.items, n, e
        arguments = tuple(map(np.uint64, given.values()))
        return Kernel(text, name, size, arguments, what, (self.items, 1, 1), VECTOR_BYTES)

    def _lines(self, name: str, body: Iterable[str], given: Iterable[str]) -> Iterator[str]:
        sizes = self.word, self.items, self.span
        names = "".join(f", const ulong {name}" for name in given)
        yield f"kernel __attribute__((reqd_work_group_size({self.items}, 1, 1)))"
        yield f"void {name}(global const uchar *w, global uchar *d{names})"
        yield "{"
        yield "  const size_t e = get_group_id(2), n = get_group_id(1);"
        yield f"  const size_t k = get_group_id(0) * {self.span};"
        yield f"  const uint count = min((ulong){self.span}, columns - k), mine = get_local_id(0);"
        for j, run in enumerate(self.reads):
            yield from run.loads(f"in{j}", *sizes)
        yield from (run.declared(f"out{j}", self.span) for j, run in enumerate(self.writes))
        if self.reads:
            yield "  barrier(CLK_LOCAL_MEM_FENCE);"
        yield f"  if (mine * {self.block} < count) {{"
        yield from body
        yield "  }"
        yield "  barrier(CLK_LOCAL_MEM_FENCE);"
        for j, run in enumerate(self.writes):
            yield from run.stores(f"out{j}", *sizes)
        yield "}"

    def stores(self) -> Iterator[str]:
        """The statements by which a work-item writes its block to local memory ``out0`` .."""
        yield from into_local(self.writer, self.writes, self.block)


def into_local(writer: Writer, runs: Iterable[ByteRun], step: int) -> Iterator[str]:
    """The statements by which work-item ``mine`` writes ``step`` columns to the runs.

    These lie in local memory ``out0`` .. .
    """
    yield f"    {{ const uint e = 0, n = 0, k = mine * {step};"
    for j, run in enumerate(runs):
        writer.write = {p.name: at_zero(p) for p in run.planes if p.name in writer.lows}
        if writer.write:
            yield "  {"
            for line in writer.stores():
                yield locally(line).replace(" = d + ", f" = out{j} + ")
            yield "  }"
    yield "    }"


def at_zero(plane: Placed) -> Placed:
    """A plane in memory that begins with it."""
    return replace(plane, start=At(plane.start.bits))


def locally(line: str) -> str:
    """A statement over global memory on local memory."""
    for text, own in _IN_LOCAL.items():
        line = line.replace(text, own)
    return line
