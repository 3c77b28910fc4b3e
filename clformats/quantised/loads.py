"""Reading codes of planes as vectors in C: which bytes hold them, and how they are shifted."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from .lanes import HEX, WIDTHS, At, Placed, Tile, follow, kind_of


def loaded(pointer: str, plane: Placed, tile: Tile, lanes: Sequence[tuple[int, int]]) -> str:
    """C of the codes of some elements in one plane: ``uchar``, ``ushort`` or ``uint``, or vectors.

    ``lanes`` are rows and columns in the tile: one, or 2, 4, 8 or 16.
    """
    places = [plane.place(tile, *lane) for lane in lanes]
    if plane.bits in (16, 32) and not any(p.shift for p in places):
        return _wide(pointer, places, plane)
    if any(p.shift + plane.bits > 8 for p in places):
        scalars = [straddling(pointer, p, plane.bits) for p in places]
        return scalars[0] if len(places) == 1 else vector(kind_of(plane.bits), scalars)
    phase = f"b_{plane.name}" if plane.phase(tile) else ""
    if len(places) == 1:
        return _one(pointer, places[0], plane.bits, phase)
    parts = [[i for i, p in enumerate(places) if p.shift == s]
             for s in sorted({p.shift for p in places})]  # fmt: skip
    texts = []
    for at in parts:
        first = places[at[0]]
        if len(at) == 1:
            texts.append(_one(pointer, first, plane.bits, phase))
        else:
            found = _bytes(pointer, [places[i] for i in at])
            texts.append(vector_masked(found, first.shift, plane.bits, phase))
    return texts[0] if len(parts) == 1 else merged(texts, parts, len(places))


def _one(pointer: str, at: At, bits: int, phase: str) -> str:
    """One code that lies in one byte."""
    return f"(uchar)({masked(f'{pointer}[{at.byte}]', at.shift, bits, phase)})"


def merged(texts: Sequence[str], lanes: Sequence[list[int]], width: int) -> str:
    """Vectors of some lanes as one: a call of a helper where it is even and odd or low and high."""
    if list(lanes) == [list(range(0, width, 2)), list(range(1, width, 2))]:
        return f"ZIP{width}({texts[0]}, {texts[1]})"
    if [i for at in lanes for i in at] == list(range(width)):
        return f"(uchar{width})({', '.join(texts)})"
    named = {
        i: f"({text}){'' if len(at) == 1 else '.s' + HEX[j]}"
        for text, at in zip(texts, lanes, strict=True)
        for j, i in enumerate(at)
    }
    return vector("uchar", [named[i] for i in range(width)])


def _bytes(pointer: str, places: Sequence[At]) -> str:
    """The bytes of places: one load where they follow each other."""
    if len(places) == 1:
        return f"{pointer}[{places[0].byte}]"
    runs = list(_runs(places))
    if len(runs) == 1 and len(places) in WIDTHS:
        return f"vload{len(places)}(0, {pointer} + {places[0].byte})"
    lengths = {len(r) for r in runs}
    if len(lengths) == 1 and lengths <= set(WIDTHS):
        size = lengths.pop()
        loads = [f"vload{size}(0, {pointer} + {r[0].byte})" for r in runs]
        return f"(uchar{len(places)})({', '.join(loads)})"
    return vector("uchar", [f"{pointer}[{p.byte}]" for p in places])


def _runs(places: Sequence[At]) -> list[list[At]]:
    """Places in runs of neighbouring bytes."""
    keyed = groupby(enumerate(places), lambda x: (x[1].bits // 8 - x[0], x[1].symbols))
    return [[p for _, p in run] for _, run in keyed]


def _wide(pointer: str, places: Sequence[At], plane: Placed) -> str:
    """Words at places; as a vector where each begins at a multiple of its size."""
    kind = kind_of(plane.bits)
    if len(places) == 1:
        return f"LOAD_{kind.upper()}({pointer} + {places[0].byte})"
    if plane.aligned_to(plane.bits) and follow(places, plane.bits):
        return f"vload{len(places)}(0, (global const {kind} *)({pointer} + {places[0].byte}))"
    return vector(kind, [f"LOAD_{kind.upper()}({pointer} + {p.byte})" for p in places])


def straddling(pointer: str, at: At, bits: int) -> str:
    """A code that lies in more than one byte; in five, where it has 26 bits and more."""
    count = -(-(at.shift + bits) // 8)
    if count > 4:
        return f"code_at({pointer} + {at.byte}, {at.shift}, {bits})"
    parts = [f"(uint){pointer}[{at.after(8 * b).byte}] << {8 * b}" for b in range(count)]
    return f"(({' | '.join(parts)}) >> {at.shift} & {(1 << bits) - 1}u)"


def masked(text: str, shift: int, bits: int, phase: str) -> str:
    """One byte shifted, by a phase too, and masked."""
    if phase:
        return f"{text} >> ({shift} + {phase}) & {(1 << bits) - 1}"
    shown = f"{text} >> {shift}" if shift else text
    return shown if shift + bits == 8 else f"{shown} & {(1 << bits) - 1}"


def vector_masked(text: str, shift: int, bits: int, phase: str) -> str:
    """A vector of bytes shifted, by a phase too, and masked."""
    if phase:
        return f"(({text} >> (uchar)({shift} + {phase})) & (uchar){(1 << bits) - 1})"
    shown = f"({text} >> (uchar){shift})" if shift else text
    return shown if shift + bits == 8 else f"({shown} & (uchar){(1 << bits) - 1})"


def vector(kind: str, scalars: Sequence[str]) -> str:
    """A vector of scalars."""
    return f"({kind}{len(scalars)})({', '.join(scalars)})"
