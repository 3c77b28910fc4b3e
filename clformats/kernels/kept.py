"""How vectors of a tile are stored in local memory, the array ``kept``, and loaded out of it."""

from __future__ import annotations

from collections.abc import Sequence

from ..formats.expr import Expr, as_expr
from ..schedule.banks import BankLayout, Pass
from .digits import Digits
from .source import moved
from .types import as_bits, swizzle


def stores(digits: Digits, banks: BankLayout, p: Pass, work: str) -> list[tuple[str, str]]:
    """(where to, what) of the stores of a vector ``value`` of the C type ``work``."""
    at_once, offsets = banks.lanes(p)
    if offsets is None:
        parts = [
            (f"value.{swizzle(j, at_once)}", _place(digits, banks, p, j))
            for j in range(0, p.width, at_once)
        ]
        if at_once == 1:
            return [(f"kept[{at}]", part) for part, at in parts]
        bits = as_bits(work, at_once)
        return [(f"*(__local {bits} *)({moved('kept', str(at))})", f"as_{bits}({part})")
                for part, at in parts]  # fmt: skip
    at = _place(digits, banks, p)
    if at_once > 1:
        bits = as_bits(work, p.width)
        return [(f"*(__local {bits} *)({moved('kept', str(at))})", f"as_{bits}(value)")]
    lanes = zip(offsets, lanes_of(p.width), strict=True)
    return [(f"kept[{at + o}]", lane) for o, lane in lanes]


def loads(
    digits: Digits, banks: BankLayout, p: Pass, work: str
) -> tuple[list[tuple[str, str, str]], list[list[str]]]:
    """(type, name, value) of what is loaded for a unit; the elements of each of its vectors."""
    (at_once, offsets), first = banks.lanes(p), banks.first
    if offsets is None and at_once > 1:
        kind = f"{work}{at_once}"
        words = [
            (kind, f"w{j}", f"*(__local const {kind} *)({moved('kept', str(at))})")
            for j in range(0, p.width, at_once) for at in [_place(digits, banks, p, j) + first]
        ]  # fmt: skip
        return words, [[f"{name}.s{t:x}" for _, name, _ in words for t in range(at_once)]]
    if offsets is None:
        places = [str(_place(digits, banks, p, j) + first) for j in range(p.width)]
        return [], [[f"kept[{at} + {t}]" if t else f"kept[{at}]" for at in places]
                    for t in range(p.tall)]  # fmt: skip
    at = _place(digits, banks, p) + first
    if p.tall == 1 and at_once > 1:
        kind = f"{work}{p.width}"
        bits = as_bits(work, p.width)
        value = f"as_{kind}(*(__local const {bits} *)({moved('kept', str(at))}))"
        return [(kind, "value", value)], [lanes_of(p.width)]
    if at_once == 1:
        return [], [[f"kept[{at + o + t}]" for o in offsets] for t in range(p.tall)]
    kind = f"{work}{p.tall}"
    words = [
        (kind, f"w{j}", f"*(__local const {kind} *)({moved('kept', str(at + o))})")
        for j, o in enumerate(offsets)
    ]
    return words, [[f"w{j}.s{t:x}" for j in range(p.width)] for t in range(p.tall)]


def elements(digits: Digits, banks: BankLayout, p: Pass, count: int) -> list[str]:
    """As many elements that follow each other in the pass, from any on."""
    return [f"kept[{_place(digits, banks, p, j) + banks.first}]" for j in range(count)]


def _place(digits: Digits, banks: BankLayout, p: Pass, lane: int = 0) -> Expr:
    """Where a unit's first element lies in local memory, or the one ``lane`` further."""
    return digits.sum([(size, as_expr(stride)) for size, stride in banks.digits(p)], lane)


def lanes_of(width: int) -> list[str]:
    """The elements of the vector ``value``."""
    return ["value"] if width == 1 else [f"value.s{j:x}" for j in range(width)]


def vector(name: str, elements: Sequence[str]) -> str:
    """A vector of elements of the C type ``name``; one is itself."""
    return elements[0] if len(elements) == 1 else f"({name}{len(elements)})({', '.join(elements)})"
