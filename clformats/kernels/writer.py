"""The source of a schedule's kernel: each key (`clformats.kernels.key`) is rendered once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from ..problems.thresholds import LINE_BYTES, MOST_LOOPS, PAGE_BYTES, STAGE_BYTES
from ..schedule.layout import TileVector
from ..schedule.line_buffer import LineBuffer
from ..shuffles.pairs import PairedProgram, paired
from ..shuffles.program import ZERO, Shuffle, ShuffleProgram
from ..templates import filled
from . import exchange, tables, zeros
from .ahead import LinesAhead, among
from .computation import Computed
from .key import KernelKey
from .masks import Masks
from .operands import Operands
from .source import moved, under
from .types import KernelConversion, lane_part, mask_type, powers
from .words import PackedConversion, taken, turn, turns

PAIRED = (8, 16)
"""Bytes of vectors that are shuffled in pairs: AVX2 has no registers for longer ones."""
LEAST_JOINED = 32
"""Bytes of vectors that are joined to a line: of shorter ones compilers make slow byte shuffles."""
CLEARED_LANES = 16
"""At most so many lanes of one or two bytes are made zero as `scheduled.mako` says."""
KEPT_SOURCES = 256
"""How many sources are kept, by their keys."""


@lru_cache(maxsize=KEPT_SOURCES)
def source(key: KernelKey, constants: tuple[int, ...] = (), fields: int = 0) -> str:
    """The OpenCL C; ``constants`` replace the argument, ``fields`` counts its short numbers."""
    return _KernelWriter(key).source(constants, fields)


class _KernelWriter:
    """The texts that the template arranges."""

    def __init__(self, key: KernelKey) -> None:
        layout, store = key.layout, key.store
        self.key, self.layout, self.tables = key, layout, tables.Lookups(key.tables, layout)
        self.masks = Masks(key.edges, layout, outside=key.outside, most=self.tables.most)
        self.types: KernelConversion = key.types
        self.lanes = layout.lanes
        self.widths = {1, self.lanes, self.types.target.elements if self.types.target else 1}
        if isinstance(self.types, Computed):
            self.operands = Operands(self.types, layout, key.operands, self.widths, self.masks,
                                     may_follow=key.reads_plainly)  # fmt: skip
            if self.operands.follow_loads:
                self.types = self.types.at_once
        self.computes_first = isinstance(self.types, Computed) and self.types.early
        spread = 2 * len(layout.loads) <= len(layout.stores)  # values widen as they are loaded
        if spread and not (key.inside or isinstance(self.types, Computed)):
            self.types = self.types.at_once
        self.turned = "s" if isinstance(self.types, PackedConversion) else "d"
        self.streams, self.lines, self.staged = store.streams, store.lines, store.staged > 0
        self.nbytes = key.types.dst_type.nbytes
        self.rows = {row: k for k, row in enumerate(dict.fromkeys(v.row for v in layout.stores))}
        self.n = str(self.lanes) if self.lanes > 1 else ""
        self.vector = f"{self.types.work}{self.n}"
        self.narrow = mask_type(self.types.work)
        self.clears = self.lanes <= CLEARED_LANES and self.narrow in ("char", "short")
        self.program: ShuffleProgram = layout.program(self.types.moved.nbytes, self.nbytes)
        self.pairs = self._paired()
        self.shuffled = self.pairs.program if self.pairs else self.program
        self.steps = [*(self.pairs or self.program).steps()]
        self.loaded, self.stored = map(
            exchange.groups, (layout.loads, layout.stores), key.exchanges)  # fmt: skip
        self.edge = False  # whether some of the tile may be no elements
        # What statements call is noted while they are written: the template defines it.
        self.patterns: dict[tuple[int, ...], str] = {}
        self.masked: set[int] = set()
        self.shuffles = [self._op(op) for op in self.shuffled.ops]

    def _paired(self) -> PairedProgram | None:
        """The program in pairs of vectors, where they are short and only moved."""
        nbytes = self.lanes * self.types.moved.nbytes
        return paired(self.program) if not self.key.trades and nbytes in PAIRED else None

    def source(self, constants: Sequence[int], fields: int) -> str:
        """The OpenCL C, see `source`."""
        ahead = LinesAhead(self.key, self.types, self.turned, self._at)
        first, *later = ahead.parts()
        whole, held = among([*self._statements()], later), self.rows if self.lines else ()
        self.edge = True
        edge = [*self._statements()] if self.masks.asks else []
        count = max(1, len(self.rows))
        width = sum(v.width for v in self.layout.stores) // count
        return filled(
            "scheduled", wide=True, types=self.types, lanes=self.lanes, n=self.n,
            vector=self.vector, stored=f"{self.types.stored}{self.n}",
            patterns=[(name, pattern) for pattern, name in self.patterns.items()],
            pairs=bool(self.pairs),
            whole=whole, edge=edge, masks=self.masks, widths=self.widths,
            streams=bool(self.streams or self.lines or self.staged),
            line_buffer=LineBuffer(count, width, self.nbytes),
            held=[self._at(TileVector(row, 0, 1, ()), "d") for row in held],
            staged=self.staged, stage=STAGE_BYTES // self.nbytes, page_bytes=PAGE_BYTES,
            line=LINE_BYTES // self.nbytes,
            first_asked=first, later_asked=later, shared=self.key.lines_shared,
            claims=ahead.claims,
            read_too=self.operands.prefetched() if isinstance(self.types, Computed) else (),
            read_run=self.layout.read_run, loops=MOST_LOOPS + 1,
            axes=range(len(self.layout.axes)), guards=range(len(self.key.edges)),
            operands=range(len(self.key.operands)), constants=constants, fields=fields,
            exchanges=exchange.distances(self.key.exchanges, 8 * self.nbytes),
            swaps=exchange.swaps(self.key.swaps, 8 * self.nbytes),
            cleared=any(text.startswith("CLEARED") for text in self.shuffles),
            narrow=self.narrow, tables=self.tables, masked=self.masked,
        )  # fmt: skip

    def _at(self, vector: TileVector, side: str, lane: int = 0) -> str:
        """How far the element of a vector's lane is from the tile's first."""
        row, looked_up = self.tables.apart(vector.row) if side == "s" else (vector.row, [])
        terms = [f"{steps} * {side}{k}" if steps > 1 else f"{side}{k}"
                 for k, steps in enumerate(row) if steps]  # fmt: skip
        terms += [f"f{k} * {side}{k}" for k, _ in self.layout.rolled if side == self.turned]
        shift = vector.shift + lane
        terms += [*looked_up, *([str(shift)] if shift else [])]
        return " + ".join(terms) or "0"

    def _statements(self) -> Iterator[str]:
        """What is done with a tile, in order."""
        ready: set[int] = set()
        lines: list[tuple[int, ...]] = []
        padding: list[tuple[int, ...]] = []
        if isinstance(self.types, PackedConversion):
            yield from self._packed(self.types)
            ready.update(range(self.program.loads))
        for what, numbers in self.steps:
            for number in numbers:
                if what == "load" and number not in ready:
                    ready.update(self.loaded[number])
                    yield from self._loads(self.loaded[number])
                elif what in ("pair", "op"):
                    yield self._made(what, number)
            if what == "store":
                (padding if self._are_zeros(numbers) else lines).append(numbers)
                if not (self.types.word and self.layout.rolled):
                    yield from self._stores(lines)
        yield from self._zeros(padding)
        if lines:
            lines.sort()  # What waited is stored in the order of places: runs of lines are faster.
            stores = [*self._stores(lines)]
            if isinstance(self.types, Computed):
                yield from self.operands.before
                self.operands.before.clear()
            yield turns(self.layout, stores)

    def _made(self, what: str, number: int) -> str:
        """The statement that makes a value: a pair of two vectors, or what is shuffled."""
        if what == "pair" and self.pairs:
            a, b = self.pairs.loads[number]
            return f"const pair pair{number} = PAIR(v{a}, v{b});"
        declared = "pair pair" if self.pairs else f"{self.vector} v"
        return f"const {declared}{number} = {self.shuffles[number - self.shuffled.loads]};"

    def _packed(self, types: PackedConversion) -> Iterator[str]:
        """All words: each is put together of elements that are loaded one after the other."""
        vector, at = self.vector, turn(self.layout, self.key.inside)
        yield from (f"{vector} v{k} = ({vector})(0);" for k in range(self.program.loads))
        yield turns(
            self.layout,
            (f"v{k} |= {types.put(self._load(k), at, self.n)};"
             for k in range(self.program.loads)),
        )  # fmt: skip

    def _loads(self, group: Sequence[int]) -> Iterator[str]:
        """The statements that load vectors, which exchange elements where they are several."""
        names, early = [f"v{n}" for n in group], self.key.exchanges[0]
        loaded = [f"{name}_loaded" for name in names] if early else names
        for number, name in zip(group, loaded, strict=True):
            first = self.computes_first
            declared, value = self._computed(number) if first else ([], self._load(number))
            yield from declared
            yield f"const {self.vector} {name} = {value};"
        yield from exchange.exchanged(self.vector, early, loaded, names)

    def _stores(self, lines: list[tuple[int, ...]]) -> Iterator[str]:
        """The statements that store lines: all of which wait, where elements are exchanged.

        Takes from the list what it stores.
        """
        late = self.key.exchanges[1]
        if late and sum(map(len, lines)) < len(self.layout.stores):
            return
        if late:
            for group in dict.fromkeys(self.stored.values()):
                values = [self._output(n) for n in group]
                names = [f"e{n}" for n in group]
                yield from exchange.exchanged(self.vector, late, values, names)
        # A line at once; not of elements that share bytes, whose places are no addresses.
        whole = self.streams == LINE_BYTES and not (self.edge or self.types.target)
        joined = whole and self.lanes * self.nbytes >= LEAST_JOINED
        as_is = whole and (self.types.early or self.types.moves_bits)
        for numbers in lines:
            pairs = self.pairs.whole(numbers) if self.pairs and as_is else []
            if pairs:
                to = moved("to", self._at(self.layout.stores[numbers[0]], "d"))
                words = ", ".join(f"WORDS(pair{value})" for value in pairs)
                yield f"STORE_STREAM((uint16)({words}), (__global uint16 *)({to}));"
            elif joined and len(numbers) > 1:
                yield from self._line(numbers)
            else:
                for number in numbers:
                    yield from self._store(number)
        lines.clear()

    def _are_zeros(self, numbers: Sequence[int]) -> bool:
        """Whether stores are past the cache, of zeros that no operand or exchange changes.

        At an edge, stores that ask whether they are in memory are not such.
        """
        changed = isinstance(self.types, Computed) or self.types.word or any(self.key.exchanges)
        if not self.streams or self.pairs or changed or (self.edge and self.masks.spills):
            return False
        return all(self.program.outputs[n] == ZERO for n in numbers)

    def _zeros(self, lines: Sequence[tuple[int, ...]]) -> Iterator[str]:
        """The statements that store lines of zeros: see `zeros`."""
        stored = [[self.layout.stores[n] for n in numbers] for numbers in lines]
        for run in zeros.runs(stored, self.lanes):
            if len(run) < zeros.LEAST_LOOPED:
                yield from self._stores([lines[k] for k in run])
                continue
            first = lines[run.start]
            begin = self.types.begin("to", "dst", zeros.place(self.lanes * len(first)))
            yield zeros.looped([begin, *self._stores([first])], len(run))

    def _output(self, number: int) -> str:
        """The value of a store, before elements are exchanged as it is stored."""
        if self.pairs:
            value, half = self.pairs.output(number)
            return f"{('LOW', 'HIGH')[half]}(pair{value})"
        value = self.program.outputs[number]
        return f"({self.vector})(0)" if value == ZERO else f"v{value}"

    def _load(self, number: int) -> str:
        vector = self.layout.loads[number]
        self.widths.add(vector.width)
        condition, mask = self.masks.of_load(vector) if self.edge else ("", "")
        if mask or (self.edge and vector.last):
            self.masked.add(vector.width)
        value = self._read(vector, mask)
        kept = self.masks.of_words(vector, self.types.loaded, self.types.read_bits, edge=self.edge)
        value = f"({value} & {kept})" if kept else value
        whole = self._widened(value, vector.width)
        return under(condition, whole, f"({self.types.loaded}{self.n})(0)")

    def _computed(self, number: int) -> tuple[list[str], str]:
        """The statements that declare the operands of a load, and what is computed of them."""
        vector = self.layout.loads[number]
        condition, mask = self.masks.of_load(vector) if self.edge else ("", "")
        declared, operands = self.operands.of(vector, edge=self.edge)
        value = self.operands.types.call(self._read(vector, ""), operands, self.lanes)
        if mask:
            self.masked.add(vector.width)
            value = f"masked_{vector.width}({value}, {mask})"
        return declared, under(condition, value, f"({self.vector})(0)")

    def _read(self, vector: TileVector, mask: str) -> str:
        """A vector of memory; at an edge, lanes of elements that there are not are zero."""
        if vector.last:
            return self._crossing(vector, mask)
        at, width = self._at(vector, "s"), vector.width
        if mask and self.key.outside:
            return f"load_edge_{width}(src, {moved('now.src', at)}, {mask}, nest.src_end)"
        value = self.types.load(moved("from", at), width)
        return f"masked_{width}({value}, {mask})" if mask else value

    def _crossing(self, vector: TileVector, mask: str) -> str:
        """A vector of parts in two blocks: of one where it begins, and of one where it ends."""
        width, left = vector.width, self.tables.left_of(vector)
        before = 1 - sum(n is not None for n in vector.elements)
        first = self._at(vector, "s")
        second = moved(self._at(replace(vector, row=vector.last), "s"), before)
        if not self.edge:
            both = [self.types.load(moved("from", at), width) for at in (first, second)]
            return f"crossed_{width}({', '.join(both)}, {left})"
        places = ", ".join(moved("now.src", at) for at in (first, second))
        return f"crossed_edge_{width}(src, {places}, {left}, {mask or -1}, nest.src_end)"

    def _widened(self, value: str, width: int) -> str:
        """A short vector, widened by lanes that are never read."""
        if width == self.lanes:
            return value
        parts = [value]
        while width < self.lanes:
            parts.append(f"({self.types.loaded}{width if width > 1 else ''})(0)")
            width *= 2
        return f"({self.types.loaded}{self.n})({', '.join(parts)})"

    def _op(self, op: Shuffle) -> str:
        if op.b == ZERO:
            return self._with_zeros(op)
        name = "pair" if self.pairs else "v"
        return f"{self._pattern(op.pattern)}({name}{op.a}, {name}{op.b})"

    def _with_zeros(self, op: Shuffle) -> str:
        """A value with some lanes zero: by a mask if the others stay, or kernels clear lanes."""
        zeros = [n is not None and n >= self.lanes for n in op.pattern]
        moved = tuple(None if z else n for z, n in zip(zeros, op.pattern, strict=True))
        stays = all(n is None or n == k for k, n in enumerate(moved))
        if not stays and not self.clears:
            return f"{self._pattern(op.pattern)}(v{op.a}, ({self.vector})(0))"
        mask = f"{self.narrow}{self.n}"
        kept = f"({mask})({', '.join('0' if z else '-1' for z in zeros)})"
        if not self.clears:
            return f"as_{self.vector}(as_{mask}(v{op.a}) & {kept})"
        value = f"v{op.a}" if stays else f"{self._pattern(moved)}(v{op.a}, v{op.a})"
        return f"CLEARED({value}, {kept})"

    def _pattern(self, pattern: Sequence[int | None]) -> str:
        """The name of a shuffle; where a lane may be anything, one stays."""
        lanes = tuple(k if n is None else n for k, n in enumerate(pattern))
        return self.patterns.setdefault(lanes, f"PATTERN{len(self.patterns)}")

    def _store(self, number: int) -> Iterator[str]:
        """The statements that store a vector."""
        vector = self.layout.stores[number]
        at = self._at(vector, "d")
        declared, text = self._stored(number)
        yield from declared
        if (self.lines or self.staged) and not self.edge:
            if self.lines:
                at = moved(f"ROW({self.rows[vector.row]})", vector.shift)
            for part, to, width in self._parts(vector, text, moved("to", at)):
                kept = self.types.value_to_store(part, width)
                yield f"KEEP{width if width > 1 else ''}({kept}, {to});"
            return
        condition, mask = self.masks.of_store(vector) if self.edge else ("", "")
        if mask:
            there = "dst, " if self.types.target else ""
            yield f"store_edge({text}, {mask}, {there}{moved('to', at)});"
            return
        stores = [*self._pieces(vector, text, at)]
        if condition:
            yield f"if ({condition}) {{ {' '.join(stores)} }}"
        else:
            yield from stores

    def _stored(self, number: int) -> tuple[list[str], str]:
        """The statements that make the value of a store, and its name."""
        text = f"e{number}" if self.key.exchanges[1] else self._output(number)
        for k in range(len(self.key.swaps)):
            text = f"SWAP{k}({text})"
        vector = self.layout.stores[number]
        if self.types.word:
            text = taken(self.types, self.layout, self.key.inside, vector, text)
        if not isinstance(self.types, Computed) or self.computes_first:
            given = f"const {self.types.stored}{self.n} w{number} = {text};"
            return ([given], f"w{number}") if self.types.word else ([], text)
        declared, operands = self.operands.of(vector, edge=self.edge)
        result = self.types.call(text, operands, self.lanes)
        mask = self.masks.of_values(vector, mask_type(self.types.dst), edge=self.edge)
        result = f"KEEP_STORED({result}, {mask})" if mask else result  # 0 where no element is
        return [*declared, f"const {self.types.dst}{self.n} w{number} = {result};"], f"w{number}"

    def _line(self, numbers: Sequence[int]) -> Iterator[str]:
        """The statements that store vectors which are a cache line: at once, past the cache."""
        parts = []
        for number in numbers:
            declared, value = self._stored(number)
            yield from declared
            words = self.lanes * self.nbytes // 4
            value = self.types.value_to_store(value, self.lanes)
            parts.append(f"as_uint{words if words > 1 else ''}({value})")
        to = moved("to", self._at(self.layout.stores[numbers[0]], "d"))
        yield f"STORE_STREAM((uint16)({', '.join(parts)}), (__global uint16 *)({to}));"

    def _parts(self, vector: TileVector, value: str, to: str) -> Iterator[tuple[str, str, int]]:
        """A vector in powers of two: the lanes, where they go, and how many they are."""
        first = 0
        for width in powers(vector.width):
            self.widths.add(width)
            part = lane_part(value, self.lanes, range(first, first + width))
            yield part, moved(to, first), width
            first += width

    def _pieces(self, vector: TileVector, value: str, at: str) -> Iterator[str]:
        for part, to, width in self._parts(vector, value, moved("to", at)):
            if self.streams and width == self.lanes:
                piece = min(self.lanes, self.streams // self.nbytes)
                shuffled = bool(self.program.ops)
                store = self.types.store_nontemporal(part, to, width, piece, shuffled=shuffled)
                yield store + ";"
            else:
                yield self.types.store(part, to, width) + ";"
