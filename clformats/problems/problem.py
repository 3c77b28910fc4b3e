"""The reorder problem: two descriptors as one loop nest.

A reorder is a transposition of digits. Each dimension is split wherever the source or the
destination splits it; each part becomes a loop, a `Node` with its size and its strides on both
sides. Loops that continue each other on both sides are fused. For ``bfyx`` to ``b_fs_yx_fsv16`` of
2 x 32 x 5 x 4 the stages are::

    refine     b(2:640,640) f/16(2:320,320) f%16(16:20,1) y(5:4,64) x(4:1,16)
    normalise  the same, by falling destination stride
    fuse       (4:320,320) (20:1,16) (16:20,1)          as size:source stride,destination stride

The loops run over the *destination*, its elements and its padding, because zeros must be written to
the padding. A dimension with padding has a bounds predicate, a `Guard`. It decides by the physical
index ``p``, counted from the start of the destination's padding:

    lo <= p < hi    an element: read the source
    p < end         padding: write zero
    otherwise       outside the destination (the loops cover whole blocks): skip

Numbers that only the formats decide are ``fixed``: they are constants of the kernel. All
others are its arguments, so that one kernel serves every shape of the same structure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from math import prod
from typing import TYPE_CHECKING, Any, TypeVar

from ..tensors.desc import MemoryDesc
from ..tensors.dtypes import DType
from ..values.attr import OLD
from ..values.transforms import Step
from .computation import Computation
from .thresholds import LINE_BYTES

if TYPE_CHECKING:
    from typing import Concatenate, ParamSpec

    P = ParamSpec("P")
T = TypeVar("T")
Known = dict[tuple[object, ...], Any]


@dataclass(frozen=True, slots=True)
class Number:
    """A size or stride; ``fixed``: a constant of the kernel, otherwise one of its arguments."""

    value: int
    fixed: bool = False

    def __mul__(self, other: Number) -> Number:
        return Number(self.value * other.value, self.fixed and other.fixed)

    def __str__(self) -> str:
        return str(self.value)


def fixed(value: int) -> Number:
    """A number that is part of the structure."""
    return Number(value, fixed=True)


@dataclass(frozen=True, slots=True)
class Split:
    """What makes a loop one of a single side: both sides split the index ``index`` differently.

    Each step of the loop moves by ``steps`` of that index: see `clformats.problems.splits`. The
    destination's loops begin ``first`` of its steps after those of the source.
    """

    side: str
    index: int
    steps: int
    first: int = 0


@dataclass(frozen=True, slots=True)
class Node:
    """One loop: ``size`` steps, ``src`` and ``dst`` elements apart.

    With a guard, each step moves the guarded index by ``unit``. ``operands`` are the strides in the
    other tensors that the kernel reads. ``table``: the number of the `Table` that says where steps
    lie in the source, and by how many of its steps each one moves; ``src`` is then their mean.
    ``split``: only one side has the loop; it has a stride of 0 on the other.
    """

    size: Number
    src: Number
    dst: Number
    guard: int | None = None
    unit: int = 0
    operands: tuple[Number, ...] = ()
    table: tuple[int, int] | None = None
    split: Split | None = None

    def is_of(self, side: str) -> bool:
        """Whether a side has the loop."""
        return self.split is None or self.split.side == side

    def steps_of(self, table: int) -> int:
        """By how many steps of a table each step moves."""
        return self.table[1] if self.table and self.table[0] == table else 0

    def __str__(self) -> str:
        mark = f"?{self.guard}" if self.guard is not None else ""
        others = "".join(f",{n}" for n in self.operands)
        about = "~" if self.table else ""
        src, dst = (str(n) if self.is_of(side) else "-"
                    for side, n in (("src", self.src), ("dst", self.dst)))  # fmt: skip
        return f"({self.size}:{about}{src},{dst}{others}{mark})"


@dataclass(frozen=True, slots=True)
class Guard:
    """The bounds predicate of ``what``, a dimension or a loop: elements have ``lo <= p < hi``.

    Padding ends before ``end``. Each step is a word of the indices ``p`` to ``p + word - 1``; in
    the one that ``hi`` cuts the rest is padding. The source has memory for whole blocks of
    ``block`` indices, wherever it has an element of one.
    """

    what: str
    lo: Number
    hi: Number
    end: Number
    word: int = 1
    block: int = 1

    def __str__(self) -> str:
        words = f" in words of {self.word}" if self.word > 1 else ""
        return f"{self.what}: [{self.lo}, {self.hi}) of {self.end}{words}"


@dataclass(frozen=True, slots=True)
class Table:
    """Where steps of a dimension lie in the source, whose blocks the destination's do not divide.

    Step ``t`` is ``sum(t // every * jump for every, jump in jumps)`` elements after step 0, and the
    loops begin at step ``first``. Blocks of 24 that are read for blocks of 16 are read in steps of
    8: each moves by 8, and every third one by what it takes from block to block beside. ``why``
    tells which splits do not fit.

    >>> [Table(0, ((1, 8), (3, 976)), "").place(t) for t in range(5)]
    [0, 8, 16, 1000, 1008]
    """

    first: int
    jumps: tuple[tuple[int, int], ...]
    why: str

    def place(self, t: int) -> int:
        """How far step ``t`` is from step 0."""
        return sum(t // every * jump for every, jump in self.jumps)

    def mean(self, steps: int) -> int:
        """How far ``steps`` of them are on the average."""
        return sum(steps * jump // every for every, jump in self.jumps)


def remembered(
    function: Callable[Concatenate[Problem, P], T],
) -> Callable[Concatenate[Problem, P], T]:
    """A function whose results are kept with the problem, by itself and its other arguments.

    For arguments that can be hashed and have few values. Callers share what it returns, and must
    not change it.
    """
    name = f"{function.__module__}.{function.__qualname__}"  # a problem can be pickled

    @wraps(function)
    def call(p: Problem, /, *args: P.args, **kwargs: P.kwargs) -> T:
        key = (name, *args, *kwargs.items()) if kwargs else (name, *args)
        try:
            found: T = p.known[key]
        except KeyError:
            found = p.known[key] = function(p, *args, **kwargs)
        return found

    return call


@dataclass(frozen=True, slots=True)
class Problem:
    """A reorder, ready to be planned.

    ``nodes`` are the fused loops by falling destination stride. There are none if a dimension has
    no digits of its own on some side or a side is an image: ``why`` has the reason. ``src0``,
    ``dst0`` and ``operands0`` are the offsets of the first element; what ``tables`` say is added to
    the source's. ``step`` is the transform of the values, if there is one. ``words`` are types that
    stand for several elements of a side; its strides then count words. Where both sides have them
    loops do, too; where one has, ``inside`` are the loops over the elements of a word, with their
    distance in bits. ``exchanges`` are loops of two words that exchange elements, with their
    distance in bits, ``swaps`` the distances of elements that trade places inside a word at the
    end: see `clformats.problems.words`.
    """

    src: MemoryDesc
    dst: MemoryDesc
    nodes: tuple[Node, ...]
    guards: tuple[Guard, ...]
    src0: int
    dst0: int
    why: str = ""
    computation: Computation | None = None
    operands0: tuple[int, ...] = ()
    tables: tuple[Table, ...] = ()
    step: Step | None = None
    words: tuple[DType | None, DType | None] = (None, None)
    inside: tuple[tuple[int, int], ...] = ()
    exchanges: tuple[tuple[int, int], ...] = ()
    swaps: tuple[tuple[int, int], ...] = ()
    known: Known = field(default_factory=dict, init=False, repr=False, compare=False)
    """What was derived from it and is asked for often: see `remembered`."""

    @property
    def dtypes(self) -> tuple[DType, DType]:
        """The types that are loaded and stored: those of the elements, or words."""
        return self.words[0] or self.src.dtype, self.words[1] or self.dst.dtype

    @property
    def word(self) -> DType | None:
        """The type that stands for several elements which are moved together."""
        return None if self.inside else self.words[0]

    @property
    @remembered
    def rolled(self) -> tuple[int, ...]:
        """The loops over a word's elements that a kernel has around all vectors of a tile.

        Not those of elements that one line of the destination gets.
        """
        nodes, line = self.nodes, 0 if self.words[1] else 8 * LINE_BYTES
        bits = self.dst.dtype.bits
        return tuple(k for k, _ in self.inside if nodes[k].dst.value * bits >= line)

    @remembered
    def held(self, side: str) -> int:
        """The elements of a word, on the side that has words where the other has none."""
        inside = self.inside if self.words[side == "dst"] else ()
        return prod(self.nodes[k].size.value for k, _ in inside)

    @property
    def is_split(self) -> bool:
        """Whether some loops are those of one side: see `clformats.problems.splits`."""
        return any(n.split for n in self.nodes)

    @property
    def has_image(self) -> bool:
        """Whether source or destination is an image."""
        return self.src.format.image is not None or self.dst.format.image is not None

    @property
    @remembered
    def nbytes(self) -> int:
        """Bytes of all memory that is read or written, padding counted."""
        operands = self.computation.operands if self.computation else ()
        others = (o.desc for o in operands if o.name != OLD)
        return sum(d.nbytes for d in (self.src, self.dst, *others))

    @property
    @remembered
    def reads_alike(self) -> bool:
        """Whether operands lie as the source does, or have one value along its rows."""
        src = [n.src.value for n in self.nodes]
        every = [[n.operands[j].value for n in self.nodes] for j in range(len(self.operands0))]
        if self.reads_old or src not in every or 1 not in src:
            return False
        return all(strides == src or strides[src.index(1)] == 0 for strides in every)

    @property
    def reads_old(self) -> bool:
        """Whether the kernel reads the destination before it writes it."""
        return self.computation is not None and self.computation.reads_old

    @property
    def operand_descs(self) -> tuple[MemoryDesc, ...]:
        """The other tensors that the kernel reads."""
        return tuple(o.desc for o in self.computation.operands) if self.computation else ()

    @property
    def is_wide(self) -> bool:
        """Whether offsets need 64 bits.

        Offsets count words, if there are any.
        """
        word = self.word.bits if self.word else 0
        most = max(
            d.span_nbytes * 8 // (word or d.dtype.bits)
            for d in (self.src, self.dst, *self.operand_descs)
        )
        return needs_64_bits(most)

    def __str__(self) -> str:
        nodes = " ".join(map(str, self.nodes)) or (self.why or "one element")
        guards = "; ".join(map(str, self.guards))
        return nodes + (f"  guards {guards}" if guards else "")


def needs_64_bits(places: int) -> bool:
    """Whether offsets of these places do; 32 bits leave room to exceed a tensor by one block."""
    return places >= 2**31 - 2**16
