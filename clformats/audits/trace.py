"""What an engine did: operations in order, with the tensors that they read and wrote."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..networks.named import FormatName

Dims = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TracedTensor:
    """A tensor in memory at one moment: its name, format, dims, element type, and if it is weights.

    Where a log names no tensors, a reader of logs makes names up: what is read has the name of the
    last one written with the same dims, type and format.
    """

    name: str
    fmt: FormatName
    dims: Dims
    dtype: str = "f32"
    is_weight: bool = False


@dataclass(slots=True)
class Operation:
    """One step: where the log tells it, what it was, what it read and wrote, and its seconds."""

    line: int
    name: str
    op: str
    reads: list[TracedTensor]
    writes: list[TracedTensor]
    seconds: float
    is_reorder: bool = False


@dataclass(slots=True)
class Trace:
    """A whole log. ``unit`` is what a line is called: line, layer or entry."""

    kind: str
    operations: list[Operation] = field(default_factory=list)
    unit: str = "line"
    timed: bool = True
