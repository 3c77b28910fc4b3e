"""Kernels of the tile and rows families: vectors in registers, shuffled between load and store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from math import gcd

from ..formats.expr import Const, Expr, Var, total
from ..schedule.choices import either
from ..schedule.lanes import Bit, Span, steps_of
from ..schedule.plan import Plan
from ..schedule.problem import FAR, Number
from ..schedule.tile import TilePlan
from ..schedule.walk import Carried, Kept
from ..schedule.windows import windows_of
from ..templates import render
from .ahead import Box, Rows, Share, asks_of, box_arguments
from .carry import Carry, Part, carry_of, joined
from .computation import Computed
from .edges import EdgeWriter, Load, lane_part
from .join import joined_accesses
from .loops import Loops
from .offsets import far_side, offset
from .operands import ComputedWriter, tile_operands
from .source import Arguments, Launch, moved
from .stage import staging_of, strides_in
from .types import Conversion
from .weave import woven_words
from .windows import types_in_windows, windowed


def launch(plan: Plan, body: TilePlan) -> Launch:
    """The kernel and its arguments."""
    types = types_in_windows(body)
    writer = _Writer(body, types, Arguments(plan.choices.baked))
    source = render("tile", **writer.values(), wide=plan.problem.is_wide, types=types)
    given, items = writer.arguments.given, body.work_items
    local = gcd(items, either(plan.choices.local_size, 1))
    return Launch(source, given, plan.problem.is_wide, items, local, types.buffers)


class _Writer:
    """Turns a `TilePlan` into the texts that the template arranges."""

    def __init__(self, plan: TilePlan, types: Conversion, arguments: Arguments) -> None:
        self.plan = plan
        self.types = types
        self.arguments = arguments
        self._number = self.arguments.expression
        nodes = plan.nodes
        self.sizes = [self._number(f"size{k}", n.size) for k, n in enumerate(nodes)]
        self.src = [self._stride(f"src_stride{k}", n.src) for k, n in enumerate(nodes)]
        self.dst = [self._stride(f"dst_stride{k}", n.dst) for k, n in enumerate(nodes)]
        self.arguments.values.update(src0=plan.problem.src0, dst0=plan.problem.dst0)
        self.loops = Loops(plan, self.sizes)
        if plan.walk.middle is not None:
            self.arguments.values["chunk"] = plan.walk.chunk
        self.lane_offsets = self._offsets(plan.load, self.src)
        self.edges = EdgeWriter(plan, plan.walk.loops, self._number, self._lane_strides())
        self.computed = self._computed_writer(types)

    def _computed_writer(self, types: Conversion) -> ComputedWriter | None:
        if not isinstance(types, Computed):
            return None

        def offsets(strides: Sequence[Expr]) -> list[list[str]]:
            comb, lanes = self.plan.comb, range(self.plan.lanes)
            if comb is None or not comb.is_woven:
                channel, bits = strides[comb.node] if comb else Const(0), self.plan.store_registers
                return [[str(channel * c + offset(bits, r, strides)
                             + offset(self.plan.store, lane, strides)) for lane in lanes]
                        for c in range(comb.size if comb else 1)
                        for r in range(1 << len(bits))]  # fmt: skip
            channel, along = strides[comb.node], strides[self.plan.store[0].node]
            places = [[len(lanes) * c + lane for lane in lanes] for c in range(comb.size)]
            return [[str(channel * (n % comb.size) + along * (n // comb.size)) for n in row]
                    for row in places]  # fmt: skip

        operands = tile_operands(self.plan, self.plan.walk.loops, self._number, offsets)
        writer = ComputedWriter(self.plan, types, operands, self.edges)
        writer.add_arguments(self.arguments)
        return writer

    def _stride(self, name: str, stride: Number) -> Expr:
        """A stride; 0 for one that `_moved` puts a place for."""
        return Const(0) if stride.value == FAR else self._number(name, stride)

    def _places(self) -> list[tuple[str, str]]:
        """(name, formula) of the macros that tell where step q of a run lies on the other side."""
        unsigned = Var(f"({'ulong' if self.plan.problem.is_wide else 'uint'})(q)")
        places = []
        for k, node in enumerate(self.plan.nodes):
            if node.parts:
                side = far_side(node)
                formula, before = [], 1
                for j, part in enumerate(node.parts):
                    digit = unsigned // before
                    digit = digit if part is node.parts[-1] else digit % part.size.value
                    formula.append(
                        digit * self._number(f"{side}_stride{k}_{j}", getattr(part, side))
                    )
                    before *= part.size.value
                places.append((f"PLACE{k}", str(total(formula))))
        return places

    def values(self) -> dict[str, object]:
        """Everything that ``tile.mako`` uses, beside the types."""
        plan = self.plan
        loops = self.loops
        positions = [str(loops.positions(k)) for k in range(len(plan.nodes))]
        return {
            "title": f"{plan.problem.src.format} -> {plan.problem.dst.format}: {plan.structure}",
            "width": plan.lanes,
            "outer": [loops.along(k) for k in plan.walk.outer],
            "middle": None if plan.walk.middle is None else loops.along(plan.walk.middle),
            "loops": loops.inside("begins", "ends") if plan.walk.stage else loops.inside(),
            "edge_loops": loops.inside(),
            "asks": self._asks(),
            "starts": loops.starts(),
            "src_base": loops.base("src0", self.src),
            "at_once": isinstance(plan.walk.lines, Carried) or plan.span is not None,
            "dst_base": loops.base("dst0", self.dst),
            "piece": plan.store_piece,
            "places": self._places(),
            "steps": plan.steps,
            "mixes": plan.comb.mixes if plan.comb else (),
            "apart": plan.interleaves[0],
            "streams": plan.streams,
            "staging": staging_of(plan, self.arguments, self.sizes, self.dst, positions),
            **dict.fromkeys(
                ("joins", "join_patterns", "gathered_load", "windows", "spreads", "ways"), ()
            ),
            "weaves": plan.weave is not None,
            **self._accesses(),
            **self._edge_values(),
            **self._computed_values(),
            "declarations": self.arguments.declarations + self.types.parameters,
            "constants": self.arguments.constants,
        }

    def _accesses(self) -> dict[str, object]:
        """The loads and stores of the registers, for whole tiles and for those at an edge."""
        types, count = self.types, self.plan.register_count
        loads, stores = self._pieces("load", self.src), self._pieces("store", self.dst)
        stage = self.plan.walk.stage
        kept = self._pieces("store", strides_in(stage, self.dst)) if stage else stores
        order = sorted(range(count), key=self._line_order)
        base = self.loops.base("src0", self.src)
        whole = [self._loaded(pieces, self.plan.load_piece) for pieces in loads]
        if self.plan.span is not None:
            return self._spanned(self.plan.span, whole)
        if self.plan.join is not None:
            rows = self._offsets(self.plan.store_registers, self.dst)
            return joined_accesses(self.plan, self.plan.join, types, whole, rows)
        apart, together = self.plan.interleaves
        singles = self._pieces("load", self.src, singly=True) if apart else loads
        gathered = [self._loaded(s, 1) for s in singles] if apart else whole
        gathers = zip(range(count), gathered, singles, strict=True)
        edge_loads = [self.edges.load(k, text, parts, types, base) for k, text, parts in gathers]
        edge_stores = self._pieces("store", self.dst, singly=True) if together else stores
        windows = windowed(self.plan, types, base, self.src, edge_loads)
        filled = {register for w in windows_of(self.plan) for register, _ in w.spread}
        ways = {self.edges.way(r) for r in range(count) if r not in filled}
        if filled or Load.CHECKED in ways:
            span = self.plan.problem.src.span_nbytes
            self.arguments.values["src_end"] = span // types.src_type.nbytes
        lines = [[*line] for _, line in groupby(order, lambda r: self._line_order(r)[0])]
        return {
            "loads": whole,
            "passes": [(range(count), _each(lines, lambda r: self._stored(r, kept[r])))],
            "carry": self._carry(order, stores),
            "edge_loads": edge_loads,
            "ways": ways,
            **windows,
            "gathered_load": gathered[0],
            "edge_lines": [(line, self.edges.store(line, edge_stores, types)) for line in lines],
        }

    def _spanned(self, span: Span, loads: list[str]) -> dict[str, object]:
        """The loads of all vectors, one after the other, and then the lines; there are no edges."""
        plan, count = self.plan, 1 << len(self.plan.registers)
        holds = {
            steps_of((plan.store_registers, r))[span.node] if r else 0: r for r in range(count)
        }
        names = [f"{self.edges.stored}{v * count + holds[lane]}"
                 for v, lane in map(span.place, range(span.size))]  # fmt: skip
        # All values are computed before the first line is put together.
        passes: list[Part] = [(group, [(tuple(group), [])]) for group in plan.groups]
        passes[-1][1].extend(((), [self._line(names, steps, span.node)]) for steps in span.lines)
        return {"loads": loads, "passes": passes, "carry": None, "edge_loads": [], "edge_lines": []}

    def _line(self, names: Sequence[str], steps: Sequence[int], node: int) -> str:
        """The statement that stores a line of a span; ``names`` are the registers of its steps."""
        plan, types = self.plan, self.types
        at = moved("to", str(self._moved("dst", self.dst, {node: steps[0]})))
        if plan.weave is None:
            value = joined(plan, types, [names[step] for step in steps])
            return f"STORE_STREAM({value}, (__global uint16 *)({at}))"
        bits = plan.problem.dst.dtype.bits
        value = woven_words(plan.weave, steps[0], names, bits)
        store = types.store_nontemporal if plan.nontemporal else types.store
        return store(value, at, plan.lanes)

    def _carry(self, order: Sequence[int], stores: Sequence[Sequence[str]]) -> Carry | None:
        """The lines that are carried on, if any; ``order`` is that of the registers in memory."""
        walk = self.plan.walk
        loop = walk.middle if isinstance(walk.lines, Kept) else walk.innermost
        if loop is None or not walk.carries:
            return None
        if walk.links:
            order = sorted(order, key=self._place_in_run)
        stored = [(r, f"{self.edges.stored}{r}", stores[r][0]) for r in order]
        whole = str(self.sizes[loop] // self.plan.steps_along(loop))
        size = str(self.sizes[loop]) if walk.links else ""
        return carry_of(self.plan, self.types, whole, size, stored)

    def _place_in_run(self, register: int) -> int:
        """How far a register is from the first one, in elements of the destination."""
        steps = steps_of((self.plan.store_registers, register))
        return sum(self.plan.nodes[k].dst.value * n for k, n in steps.items())

    def _computed_values(self) -> dict[str, object]:
        """What is computed from each register, where anything is."""
        writer, registers = self.computed, range(self.plan.register_count)
        if writer is None:
            return dict.fromkeys(
                ("computed", "edge_computed", "masks_computed", "operands", "gathered", "zeroed"),
                (),
            )
        at_edges = registers if self.edges.guards else ()
        return {
            "computed": [writer.whole(r) for r in registers],
            "edge_computed": [writer.edge(r) for r in at_edges],
            "masks_computed": any(writer.is_masked(r) for r in at_edges),
            "operands": writer.operands,
            "gathered": writer.gathered,
            "zeroed": self.edges.zeroed,
        }

    def _edge_values(self) -> dict[str, object]:
        edges = self.edges
        return {
            "widths": self._widths(),
            "lane_offsets": self.lane_offsets,
            "lane_strides": edges.strides,
            "guards": edges.guards,
            "always_edge": edges.always,
            "inside": edges.inside(),
            "masked": edges.masked,
            "counted": edges.counted,
        }

    def _widths(self) -> set[int]:
        """The vector widths that loads and stores use."""
        plan = self.plan
        parts = [w for w in (2, 4, 8) if w < plan.store_piece] if self.edges.counted else []
        operands = [o.piece for o in self.computed.operands] if self.computed else []
        return {1, plan.lanes, plan.load_piece, plan.store_piece, *parts, *operands}

    def _asks(self) -> Share | Rows | Box | None:
        """What a tile asks for ahead of those that read it."""
        asks = asks_of(
            self.plan, self.src, {k: self.loops.positions(k) for k in self.plan.walk.loops}
        )
        if isinstance(asks, Rows):
            self.arguments.values["box"] = self.plan.walk.ahead
        if isinstance(asks, Box):
            self.arguments.values.update(box_arguments(self.plan))
        return asks

    def _line_order(self, register: int) -> tuple[int, int]:
        """Sorts registers so that those in one cache line are stored one after the other.

        Those that are put together before they are stored are side by side too.
        """
        count = 1 << len(self.plan.store_registers)
        times, side_by_side = register // count, self.plan.interleaves[1]
        near, far = (times * self.plan.lanes, 0) if side_by_side else (0, times * count)
        for j, bit in enumerate(self.plan.store_registers):
            if register >> j & 1:
                moved = self.plan.nodes[bit.node].dst.value << bit.place
                if moved < 64:
                    near += moved
                else:
                    far |= 1 << j
        return far, near

    def _pieces(
        self, side: str, strides: Sequence[Expr], *, singly: bool = False
    ) -> list[list[str]]:
        """For each register how far each of its pieces is from the first element of the tile.

        ``singly``: lane by lane, where runs are interleaved.
        """
        plan, here = self.plan, "src" if side == "load" else "dst"
        piece = 1 if singly else plan.load_piece if side == "load" else plan.store_piece
        starts: Sequence[Expr | int] = plan.span.starts if plan.span and side == "load" else (0,)
        if plan.comb is not None:
            joined = plan.comb.joined[side == "store"] and not singly
            step = Const(plan.lanes) if joined else strides[plan.comb.node]
            starts = [step * c for c in range(plan.comb.size)]
            if plan.comb.is_woven:
                return [[str(start)] for start in starts]
        bits = plan.registers if side == "load" else plan.store_registers
        if plan.join is not None:
            along = strides[plan.join.node]
            return [[str(along * step + offset(bits, r, strides))] for step, r in plan.join.loads]
        apart = (plan.load if side == "load" else plan.store)[piece.bit_length() - 1 :]
        return [
            [
                str(self._moved(here, strides, steps_of((bits, r), (apart, lane))) + start)
                for lane in range(1 << len(apart))
            ]
            for start in starts
            for r in range(1 << len(bits))
        ]

    def _moved(self, side: str, strides: Sequence[Expr], steps: Mapping[int, int]) -> Expr:
        """How far so many steps of each node move on a side, from the tile's first element."""
        moved = total([strides[k] * n for k, n in steps.items()])
        for k, node in enumerate(self.plan.nodes):
            if node.parts and far_side(node) == side:
                start = Var(f"x{k}") if k in self.plan.walk.loops else Const(0)
                moved = moved + Var(f"PLACE{k}({start + steps.get(k, 0)})")
        return moved

    def _offsets(self, bits: Sequence[Bit], strides: Sequence[Expr]) -> list[str]:
        """How far each number that the bits make is from 0."""
        return [str(offset(bits, n, strides)) for n in range(1 << len(bits))]

    def _lane_strides(self) -> list[str]:
        """The arguments that these need."""
        moved = {bit.node for bit in self.plan.load}
        return [str(s) for k, s in enumerate(self.src) if k in moved and not isinstance(s, Const)]

    def _loaded(self, pieces: Sequence[str], piece: int) -> str:
        """A whole register from memory, in pieces of so many elements."""
        return self.types.load_pieces([moved("from", p) for p in pieces], piece)

    def _stored(self, register: int, pieces: Sequence[str]) -> list[str]:
        """A whole register to memory, piece by piece."""
        name, width = f"{self.edges.stored}{register}", self.plan.store_piece
        if self.plan.walk.stage:
            value = self.types.value_to_store(name, width)
            return [f"STAGE({value}, {moved('to', pieces[0])})"]
        if self.plan.nontemporal:
            piece = self.plan.streamed_piece
            return [self.types.store_nontemporal(name, moved("to", pieces[0]), width, piece)]
        lanes = range(self.plan.lanes)
        parts = [lane_part(name, len(lanes), lanes[k : k + width]) for k in lanes[::width]]
        return [
            self.types.store(v, moved("to", p), width) for v, p in zip(parts, pieces, strict=True)
        ]


def _each(
    lines: Sequence[Sequence[int]], stores: Callable[[int], list[str]]
) -> list[tuple[Sequence[int], list[str]]]:
    """The registers of each line, and the statements that store it."""
    return [(line, [text for register in line for text in stores(register)]) for line in lines]
