"""Codes of planes in vectors: which words hold them, how lanes get their words, and the shifts.

A vector of codes has one element of a tensor in each lane. Its plane is read in words of 8, 16 or
32 bits, as many neighbours in a load as there are; shuffles bring to each lane the word that holds
its code, and a shift and a mask leave the code. So words change places while they are still packed,
and a word that several vectors need is brought to its lane once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby

from ..quantised.lanes import KINDS, At, Multiples, NotInTilesError, Placed, Tile
from ..shuffles.program import ShuffleProgram
from ..shuffles.synthesis import synthesise

LANES = 16
Cell = tuple[int, int]
Lanes = tuple[Cell, ...]
Word = tuple[Multiples, int]
"""The symbols of a place, and the first byte of the word."""


def distinct(items: Sequence[object]) -> bool:
    """Whether there is more than one."""
    return any(x != items[0] for x in items[1:])


@dataclass
class Words:
    """A plane in words of ``bits``, for the vectors of codes that a tile needs.

    A word begins at the first byte with codes that no word before it has. The last ones may be
    shorter: what is after the codes may be no memory. Raises `NotInTilesError` where a code lies in
    two words.
    """

    plane: Placed
    tile: Tile
    bits: int
    wanted: list[Lanes] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Look where the codes lie."""
        self.phase = self.plane.phase(self.tile)
        if self.phase and self.bits != 8:
            raise NotInTilesError
        at = {cell: self.plane.place(self.tile, *cell) for lanes in self.wanted for cell in lanes}
        words = self._words(at.values())
        placed = {cell: self._place(place, words) for cell, place in at.items()}
        self.places = [[placed[cell] for cell in lanes] for lanes in self.wanted]

    def _words(self, places: Iterable[At]) -> dict[Word, Word]:
        """The word that each byte with codes lies in. Keeps how many bytes short words have."""
        nbytes, found = self.bits // 8, {}
        self.short: dict[Word, int] = {}
        held = {(at.symbols, byte) for at in places
                for byte in range(at.bits // 8, (at.bits + self.plane.bits + 7) // 8)}  # fmt: skip
        last = dict(sorted(held))
        word: Word | None = None
        for at in sorted(held):
            if word is None or word[0] != at[0] or at[1] >= word[1] + nbytes:
                word = at
                if last[at[0]] < at[1] + nbytes - 1:
                    self.short[word] = last[at[0]] - at[1] + 1
            found[at] = word
        return found

    def _place(self, at: At, words: Mapping[Word, Word]) -> tuple[Word, int]:
        """The word of a place, and the bit in it."""
        word = words[at.symbols, at.bits // 8]
        shift = at.bits - 8 * word[1]
        if shift + self.plane.bits > self.bits:
            raise NotInTilesError
        return word, shift

    @cached_property
    def vectors(self) -> list[tuple[Word, ...]]:
        """The words in the lanes of the vectors that are shifted, each once."""
        return list(dict.fromkeys(tuple(word for word, _ in lanes) for lanes in self.places))

    @cached_property
    def runs(self) -> list[tuple[Word, ...]]:
        """Words that follow each other in memory, in runs of up to 16."""
        words = {word for lanes in self.vectors for word in lanes}
        runs: list[tuple[Word, ...]] = [(w,) for w in sorted(words & self.short.keys())]
        words, step = words - self.short.keys(), self.bits // 8
        for _, run in groupby(enumerate(sorted(words)), lambda x: (x[1][0], x[1][1] - step * x[0])):
            own = [word for _, word in run]
            while own:
                width = 1 << min(4, len(own).bit_length() - 1)
                runs.append(tuple(own[:width]))
                own = own[width:]
        return runs

    @cached_property
    def loads(self) -> list[list[tuple[Word, ...]]]:
        """Vectors of 16 words as loaded, each of as many runs as it takes."""
        found: list[list[tuple[Word, ...]]] = []
        for run in sorted(self.runs, key=lambda r: -len(r)):
            last = found[-1] if found else None
            if last and len(last[0]) == len(run) and sum(map(len, last)) < LANES:
                last.append(run)
            else:
                found.append([run])
        return found

    @property
    def is_gathered(self) -> bool:
        """Whether words are loaded one by one, straight into their lanes."""
        return all(len(run) == 1 for run in self.runs)

    @cached_property
    def program(self) -> ShuffleProgram:
        """The shuffles from what is loaded to the vectors."""
        number = {w: k for k, w in enumerate(w for v in self.loads for run in v for w in run)}
        loads = [tuple(number[w] for run in v for w in run) for v in self.loads]
        stores = [tuple(number[w] for w in lanes) for lanes in self.vectors]
        return synthesise(loads, stores, nbytes=self.bits // 8)

    @property
    def cost(self) -> float:
        """About how many instructions it takes."""
        if self.is_gathered:
            return 1.5 * sum(len(set(lanes)) for lanes in self.vectors)
        narrow = 1 if self.bits == 32 else 2
        codes = len({tuple(lanes) for lanes in self.places})
        return 2 * codes + len(self.runs) + narrow * len(self.program.ops)

    @property
    def name(self) -> str:
        """What its variables begin with."""
        return f"w_{self.plane.name}_"

    def lines(self) -> Iterator[str]:
        """The statements that load and shuffle."""
        kind, pointer = KINDS[self.bits], f"p_{self.plane.name}"
        if self.is_gathered:
            for k, lanes in enumerate(self.vectors):
                if len(set(lanes)) == 1:
                    yield f"const {kind}{LANES} {self.name}{k} = {self._load(lanes[:1], pointer)};"
                    continue
                texts = ", ".join(self._load((w,), pointer) for w in lanes)
                yield f"const {kind}{LANES} {self.name}{k} = ({kind}{LANES})({texts});"
            return
        values = []
        for k, runs in enumerate(self.loads):
            parts = [self._load(run, pointer) for run in runs]
            parts += ["0"] * (LANES - sum(map(len, runs)))
            text = parts[0] if len(parts) == 1 else f"({kind}{LANES})({', '.join(parts)})"
            values.append(f"l_{self.name}{k}")
            yield f"const {kind}{LANES} {values[-1]} = {text};"
        for k, op in enumerate(self.program.ops):
            a, b, pattern = values[op.a], values[op.b], [n or 0 for n in op.pattern]
            chosen = [f"{a}.s{n:x}" if n < LANES else f"{b}.s{n - LANES:x}" for n in pattern]
            given = f"({', '.join(chosen)}), {a}, {b}, {', '.join(map(str, pattern))}"
            values.append(f"x_{self.name}{k}")
            yield f"const {kind}{LANES} {values[-1]} = SHUFFLE({kind}{LANES}, {given});"
        for k, output in enumerate(self.program.outputs):
            yield f"const {kind}{LANES} {self.name}{k} = {values[output]};"

    def _load(self, run: Sequence[Word], pointer: str) -> str:
        """C of words that follow each other."""
        symbols, first = run[0]
        at = f"{pointer} + {At(8 * first, symbols).byte}"
        kind = KINDS[self.bits]
        if len(run) > 1:
            return f"GET({kind}, {len(run)}, {at})"
        if run[0] in self.short:
            shifts = (f" << {8 * k}" if k else "" for k in range(self.short[run[0]]))
            parts = (f"({kind}){pointer}[{At(8 * (first + k), symbols).byte}]{shift}"
                     for k, shift in enumerate(shifts))  # fmt: skip
            return f"({kind})({' | '.join(parts)})"
        return f"*({at})" if self.bits == 8 else f"LOAD_{kind.upper()}({at})"

    def held(self, lanes: Lanes) -> tuple[str, list[int]]:
        """The vector that holds the codes of one of the wanted ones, and at which bits."""
        places = self.places[self.wanted.index(lanes)]
        vector = f"{self.name}{self.vectors.index(tuple(word for word, _ in places))}"
        return vector, [shift for _, shift in places]

    @property
    def shift_alike(self) -> bool:
        """Whether the codes of a vector are at the same bits of their words, in every tile."""
        return not self.phase and not any(distinct(self.held(x)[1]) for x in self.wanted)

    def signed(self, lanes: Lanes) -> str | None:
        """C of codes in two's complement as floats; None across lanes.

        In words of 32 bits short codes are put under the exponent of 2**23, sign bits turned: where
        compilers know how short one is, they make its product with an f16 in f16, by conversions.
        Shifts to the top and back take no more than those that leave an unsigned code.
        """
        vector, shifts = self.held(lanes)
        if distinct(shifts) or self.phase:
            return None
        kind, code, unused = KINDS[self.bits], self.plane.bits, self.bits - self.plane.bits
        if self.bits == 32 and code < 8:
            signs = sum(1 << at for at in range(shifts[0] % code + code - 1, 32, code))
            turned = f"(({vector} ^ {signs:#x}u) >> {shifts[0]}u & {(1 << code) - 1}u)"
            return f"(as_float{LANES}({turned} | 0x4b000000u) - {(1 << 23) + (1 << code - 1)}.0f)"
        up = unused - shifts[0]
        top = f"as_{kind[1:]}{LANES}({f'{vector} << ({kind}){up}' if up else vector})"
        found = f"({top} >> ({kind[1:]}){unused})" if unused else top
        return f"convert_float{LANES}(convert_int{LANES}({found}))"

    def codes(self, lanes: Lanes) -> str:
        """C of the codes of one of the wanted vectors, in lanes of ``bits``."""
        vector, shifts = self.held(lanes)
        kind, most = KINDS[self.bits], max(shifts)
        wide, by = kind, str(most)
        if distinct(shifts):
            wide, by = f"{kind}{LANES}", ", ".join(map(str, shifts))
        if self.phase:
            vector = f"({vector} >> (({wide})({by}) + ({kind})b_{self.plane.name}))"
        elif most:
            vector = f"({vector} >> ({wide})({by}))"
        if self.plane.bits == self.bits or (not distinct(shifts) and not self.phase
                                            and most + self.plane.bits == self.bits):  # fmt: skip
            return vector
        return f"({vector} & ({kind}){(1 << self.plane.bits) - 1})"


def words_of(plane: Placed, tile: Tile, wanted: Iterable[Lanes], *, alike: bool = False) -> Words:
    """The plane in the words that take the fewest instructions, if need be with `shift_alike`.

    Raises `NotInTilesError`.
    """
    found = []
    for bits in (b for b in KINDS if b >= plane.bits):
        with suppress(NotInTilesError):
            words = Words(plane, tile, bits, list(wanted))
            if not alike or words.shift_alike:
                found.append(words)
    if not found:
        raise NotInTilesError
    return min(found, key=lambda words: words.cost)
