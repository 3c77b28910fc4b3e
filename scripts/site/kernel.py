"""The figure of docs/schedules.md: how a small reorder becomes a kernel.

All of it is asked of the library: where tiles lie, which vectors are loaded and stored, what each
shuffle makes of them, and what the kernel calls it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

from shapes import SHADES, box, svg

import clformats as cf
from bench.picture import line, text
from clformats.kernels.scheduled import render_schedule
from clformats.problems.refine import problem
from clformats.schedule.layout import lay_out
from clformats.schedule.nest import counted
from clformats.schedule.runs import strides
from clformats.schedule.schedule import LETTERS, Schedule

SIDES = {"src": cf.MemoryDesc((1, 8, 1, 12), "f32", "bfyx"),
         "dst": cf.MemoryDesc((1, 8, 1, 12), "f32", "byxf")}  # fmt: skip
PROBLEM = problem(*SIDES.values())
ALONG = {side: strides(PROBLEM.nodes, side) for side in SIDES}
SCHEDULE = Schedule.parse("tile a4 b4 of 4 | a* b | ahead 1 | ordinary")
NEST = counted(PROBLEM, SCHEDULE)
STEPS = [range(0, c.size, c.step) for c in NEST.loops]
ROUNDS = len([*product(*STEPS[len(NEST.counts) :])])
SHOWN = (NEST.items - 1) * ROUNDS
"""The last work-item's first tile: in the source on the right, in the destination on the left."""
LAYOUT = lay_out(PROBLEM, SCHEDULE.tile)
LOADED = [v.elements for v in LAYOUT.loads]
PROGRAM = LAYOUT.program(4, 4)
VALUES = replace(PROGRAM, outputs=(*range(PROGRAM.loads + len(PROGRAM.ops)),)).run(LOADED)
"""The elements' numbers in each value: what is loaded, and what each shuffle makes."""
CALLS = re.findall(r" v(\d+) = (\w+)\(", render_schedule(PROBLEM, SCHEDULE).source)
CALLED = {int(value): call for value, call in CALLS}
"""The macro that makes each value in the kernel."""
COUNTS = {"loads": PROGRAM.loads, "shuffles": len(PROGRAM.ops), "stores": len(PROGRAM.outputs)}

CELL, TOP, LEFT, PITCH, RISE = 20, 54, 36, 132, 58
WIDE = LAYOUT.lanes * CELL
FIRST = LEFT + max(ALONG["src"]) * CELL + 46
LAST = FIRST + 3 * PITCH + 36
"""Where the vectors begin, and where the destination does."""
INK, WIRE, PALE = "#222", "#8995a3", "#e9edf1"
Point = tuple[float, float]


def figure() -> str:
    """The figure as SVG."""
    return svg(LAST + max(ALONG["dst"]) * CELL + LEFT, 480, _parts())


def _parts() -> Iterator[str]:
    yield from _memory("src", "source", LOADED)
    yield from _memory("dst", "destination", PROGRAM.run(LOADED))
    yield from _values()
    yield from _legend()
    yield from _schedule(LEFT, 362)
    yield from _loops(FIRST + PITCH, 362)


# ---- memory -------------------------------------------------------------------------------------


def _memory(side: str, role: str, vectors: Sequence[Sequence[int | None]]) -> Iterator[str]:
    """Memory in rows: the elements of the shown tile, and when the other ones are moved."""
    columns = max(ALONG[side])
    x, _ = _cell(side, 0)
    yield text(x, 20, f"{role}, {SIDES[side].format}", "title")
    yield text(x, 38, f"memory, a {_along(side, columns)} in each row", "small")
    beside, anchor = (x - 6, "end") if side == "src" else (x + columns * CELL + 6, "start")
    for offset in range(SIDES[side].nelems):
        x, y = _cell(side, offset)
        yield box(x, y, CELL, CELL, PALE, "#fff")
        if offset % columns == 0:
            yield text(beside, y + 14, str(offset), "small", anchor)
    for vector, place in zip(vectors, _places(side), strict=True):
        yield from _vector(vector, *place)
    for k, begin in enumerate(_begins(side)):
        (x, y), ahead = _cell(side, begin), side == "src" and k == SHOWN + SCHEDULE.ahead
        edge = box(x, y, WIDE, WIDE, "none", INK if ahead or k == SHOWN else WIRE)
        yield edge.replace("/>", ' stroke-dasharray="5 3"/>') if ahead else edge
        words = [f"work-item {k // ROUNDS}", f"round {k % ROUNDS}", *["prefetched"] * ahead]
        for n, word in enumerate(words if k != SHOWN else ()):
            yield text(x + WIDE / 2, y + 14 + CELL * n, word, "small", "middle")


def _begins(side: str) -> list[int]:
    """The first offset of each tile, in the order of the loops."""
    along = [ALONG[side][c.axis] for c in NEST.loops]
    return [sum(n * s for n, s in zip(at, along, strict=True)) for at in product(*STEPS)]


def _places(side: str) -> list[Point]:
    """Where the vectors of the shown tile are drawn in memory."""
    begin = _begins(side)[SHOWN]
    return [_cell(side, begin + place) for place in LAYOUT.places(PROBLEM, side)]


def _cell(side: str, offset: int) -> Point:
    down, right = divmod(offset, max(ALONG[side]))
    return (LEFT if side == "src" else LAST) + right * CELL, TOP + down * CELL


def _along(side: str, stride: int) -> str:
    """What an element so far behind the first one is the next of."""
    at = SIDES[side].coords(stride) or ()
    names = zip(("image", "channel", "row", "column"), at, strict=True)
    return next(name for name, index in names if index)


# ---- the program --------------------------------------------------------------------------------


def _vector(elements: Sequence[int | None], x: float, y: float) -> Iterator[str]:
    """The numbers of elements, in the colours of the vectors in which they are loaded."""
    for lane, n in enumerate(elements):
        colour = next(SHADES[k] for k, load in enumerate(LOADED) if n in load)
        yield box(x + lane * CELL, y, CELL, CELL, colour, "#fff")
        yield text(x + (lane + 0.5) * CELL, y + 14, str(n), "cell", "middle")


def _values() -> Iterator[str]:
    """The program: each value, and the wires from its operands."""
    for value, elements in enumerate(VALUES):
        x, y = _place(value)
        yield text(x, y - 6, f"v{value} = {CALLED[value]}", "mono")
        yield from _vector(elements, x, y)
        if value < PROGRAM.loads:
            yield _wire(_places("src")[value], (x, y))
        else:
            for operand in PROGRAM.ops[value - PROGRAM.loads].operands:
                yield _wire(_place(operand), (x, y))
    for value, place in zip(PROGRAM.outputs, _places("dst"), strict=True):
        yield _wire(_place(value), place)


def _place(value: int) -> Point:
    """Where a value is drawn: one column for each shuffle that is needed before it."""
    stage = _stage(value)
    above = sum(_stage(v) == stage for v in range(value))
    return FIRST + stage * PITCH, TOP + 26 + above * RISE


def _stage(value: int) -> int:
    if value < PROGRAM.loads:
        return 0
    return 1 + max(map(_stage, PROGRAM.ops[value - PROGRAM.loads].operands))


def _wire(begin: Point, end: Point) -> str:
    """A line from behind a vector to the front of another."""
    x, y, x2, y2 = begin[0] + WIDE + 2, begin[1] + CELL / 2, end[0] - 2, end[1] + CELL / 2
    path = f"M{x} {y}C{(x + x2) / 2} {y} {(x + x2) / 2} {y2} {x2} {y2}"
    return f'<path d="{path}" fill="none" stroke="{WIRE}" stroke-width="1.3"/>'


# ---- words --------------------------------------------------------------------------------------


def _legend() -> Iterator[str]:
    """What happens from left to right; what colours, numbers and patterns mean."""
    edges = (FIRST, FIRST + PITCH - 8, FIRST + 2 * PITCH + WIDE, LAST - 10)
    for k, (what, count) in enumerate(COUNTS.items()):
        yield text((edges[k] + edges[k + 1]) / 2, 20, f"{count} {what}", "title", "middle")
        yield line(edges[k] + 4, 30, edges[k + 1] - 4, 30, WIRE)
    for channel, colour in enumerate(SHADES):
        yield box(LEFT + 16 * channel, 234, 16, 16, colour, "#fff")
    yield text(LEFT + 72, 246, "channels 0 to 3", "small")
    item, turn = divmod(SHOWN, ROUNDS)
    yield text(LEFT, 266, f"Coloured: work-item {item}, round {turn}", "small")
    yield text(LEFT, 284, "Numbers: elements of the tile", "small")
    yield text(LEFT, 302, "Beside memory: offsets of rows", "small")
    patterns = {CALLED[v]: op.pattern for v, op in enumerate(PROGRAM.ops, PROGRAM.loads)}
    for k, (name, lanes) in enumerate(patterns.items()):
        words = f"{name}: lanes {', '.join(map(str, lanes))} of two vectors, the upper one first"
        yield text(FIRST, 302 + 18 * k, words, "small")


def _schedule(x: float, y: float) -> Iterator[str]:
    """The line, with the letters of its parts."""
    yield text(x, y, "The schedule", "title")
    for letter, part in zip("abcd", str(SCHEDULE).split(" | "), strict=True):
        wide = 7.5 * len(part) + 14
        yield text(x + wide / 2, y + 24, f"({letter})", "small", "middle")
        yield box(x, y + 30, wide, 26, PALE)
        yield text(x + wide / 2, y + 47, part, "mono", "middle")
        x += wide + 8


def _loops(x: float, y: float) -> Iterator[str]:
    """What the kernel does, each line with its part of the schedule."""
    yield text(x, y, "Its kernel", "title")
    lines = []
    for loop, steps in zip(SCHEDULE.nest, STEPS, strict=True):
        what = f"{_along('src', ALONG['src'][loop.axis])}s, in "
        what += "work-items" if loop.spread else "rounds of a work-item"
        lines.append(("b", f"for {LETTERS[loop.axis]} in {', '.join(map(str, steps))}:", what))
    lines += [("c", f"prefetch the tile {SCHEDULE.ahead} ahead", ""),
              ("a", "{loads} loads, {shuffles} shuffles".format(**COUNTS), ""),
              ("d", f"{COUNTS['stores']} stores, {SCHEDULE.store}", "")]  # fmt: skip
    for k, (letter, words, what) in enumerate(lines):
        at = y + 24 + 20 * k
        yield text(x, at, f"({letter})", "small")
        yield text(x + 28 + 24 * min(k, len(STEPS)), at, words, "mono")
        yield text(x + 210, at, what, "small")
