"""The rules that make codes of blocks of numbers, in OpenCL C: those that look at one block.

Each is that of `clformats.quantised.rules` with the same name, over vectors: of 16 values of a
block, or of one number of each of 16 blocks. Every step is rounded to f32 as on the host, so that
the bytes are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from string import Formatter

import numpy as np

from ..quantised.types import QuantisedType
from ..tensors.dtypes import DType
from .vectors import LANES

Of = Callable[[str], str]
"""What C of a number of one block is, by its name."""


@dataclass(frozen=True, slots=True)
class BlockKey:
    """A number of each block, ``name``: the greatest that ``text`` makes of its vectors' lanes.

    ``text`` is C as of `filled_in`, over earlier keys of the block; ``{place}`` is twice the number
    of places after each lane.
    """

    name: str
    kind: str
    text: str


Passes = Sequence[Sequence[BlockKey]]
Parameters = Callable[[QuantisedType], Iterator[str]]


@dataclass(frozen=True, slots=True)
class Plain:
    """What serves blocks of finite values, which need no limits: almost all blocks.

    ``condition`` is C over vectors ``all_<name>``, and ``code`` that of codes as ``kind``.
    """

    condition: str
    code: str
    kind: str = "int"


@dataclass(frozen=True, slots=True)
class Rule:
    """How blocks become codes.

    ``keys`` are made in passes over the values. ``parameters`` are statements over vectors
    ``all_<key>``, a block in each lane, that keep fields and whatever ``code`` asks for: C of the
    codes of a vector, as of `filled_in`. ``plain``: how blocks are done where that is possible for
    all of a work-item's.
    """

    keys: Passes
    parameters: Parameters
    code: str
    plain: Plain | None = None


def filled_in(text: str, kind: QuantisedType, of: Of, **known: object) -> str:
    """C of a vector: names in braces are ``known``, numbers of the type's codes, or of the block.

    ``q`` is what the codes are. Unsigned ones go from 0 to ``top``, signed ones from ``-half`` to
    ``most``.
    """
    q = kind.fields["q"].dtype
    half = 1 << q.bits - 1
    known |= {"q": q, "top": 2 * half - 1, "half": half, "most": half - 1}
    names = {name.split(".")[0] for _, name, _, _ in Formatter().parse(text) if name}
    return text.format(**known, **{name: of(name) for name in names - {*known}})


def most_of(texts: Sequence[str]) -> str:
    """The greatest of all, lane by lane."""
    first, *others = texts
    for other in others:
        first = f"MOST({first}, {other})"
    return first


def places(first: int, block: int) -> str:
    """Twice the number of places in a block after each lane of a vector."""
    return f"(uint16)({', '.join(str(2 * (block - 1 - first - j)) for j in range(LANES))})"


MAGNITUDE: Passes = [[BlockKey("a", "uint", "as_uint16(magnitude({x}))")]]
"""The largest magnitude, as bits: those of NaN are the largest."""
FIRST: Passes = [*MAGNITUDE, [BlockKey("key", "uint", "first_of({x}, {a}, {place})")]]
"""The same, and as the lowest bit the sign of the first value that has it."""
FIRST_HALF: Passes = [
    [BlockKey("key", "uint", "(as_uint16(magnitude({x})) | {place} | as_uint16({x}) >> 31)")],
]
"""The same of values that were f16, whose bits leave 13 of an f32's free."""
EXTREMES: Passes = [
    [BlockKey("low", "int", "~ordered({x})"), BlockKey("high", "int", "ordered({x})")],
]
"""Least and most, as integers in the order of the values."""
WITH_ZEROS: Passes = [[*EXTREMES[0], BlockKey("zero", "uint", "first_of({x}, 0u, {place})")]]
"""The same, and the sign of the first zero."""
EXTREME_HALVES: Passes = [[
    BlockKey("least", "ushort", "(ushort16)~ordered_half(h{x})"),
    BlockKey("most", "ushort", "ordered_half(h{x})"),
]]  # fmt: skip
"""Least and most of values that were f16, as integers in their order."""
HALF: Passes = [[BlockKey("h", "ushort", "(h{x} & (ushort)0x7fff)")]]
"""The largest magnitude of values that were f16, by their bits: 16 in 32 bytes."""
EXTREME_VALUES = ("const float16 least = limit(~all_low, all_low, all_high), "
          "most = limit(all_high, all_low, all_high);")  # fmt: skip
"""The extremes as values: NaN where one is."""


def _kept(name: str, kind: str, text: str) -> str:
    """The statement that keeps a number of each block."""
    return f"const lanes_{kind} of_{name} = {{{text}}};"


def _scaled(text: str) -> Iterator[str]:
    """A scale d as f16, and its inverse."""
    yield f"const float16 all_d = {text};"
    yield _kept("d", "ushort", "half_bits(all_d)")
    yield "const float16 all_id = all_d == 0.0f ? (float16)0 : 1.0f / all_d;"
    yield _kept("id", "float", "all_id")


SCALED = "magnitude(all_d) < INFINITY & magnitude(all_id) < INFINITY"
"""Of `_scaled`: whether the product with the inverse of the largest value is finite."""
HALVES = "all_a < 0x7f800000u"
"""Whether a block has no infinity and no NaN."""


def _spread(kind: QuantisedType, text: str, levels: str) -> Iterator[str]:
    """A scale s of so many levels, by AutoAWQ's rule."""
    made = "bf16_bits" if kind.fields["s"].dtype.name == "bf16" else "half_bits"
    yield f"const float16 all_t = MOST((float16){np.float32(1e-5)!s}f, {text}) / {levels};"
    yield _kept("t", "float", "all_t")
    yield _kept("s", "ushort", f"{made}(all_t)")


def _bits(kind: QuantisedType) -> int:
    return kind.fields["q"].dtype.bits


def _top(kind: QuantisedType) -> str:
    """The largest unsigned code as a float."""
    return f"{(1 << _bits(kind)) - 1}.0f"


def _signed(kind: QuantisedType, magnitude: str = "all_a") -> Iterator[str]:
    return _scaled(f"as_float16({magnitude} | all_key << 31) / -{1 << _bits(kind) - 1}.0f")


def _range(kind: QuantisedType) -> Iterator[str]:
    yield EXTREME_VALUES
    yield from _scaled(f"(most - least + 0.0f) / {_top(kind)}")
    zero = "convert_ushort16(all_zero << 15)"
    yield _kept("m", "ushort", f"convert_short16(least == 0.0f) ? {zero} : half_bits(least)")
    yield _kept("least", "float", "least")


def _mxfp4(_: QuantisedType) -> Iterator[str]:
    yield "const int16 none = all_a == 0 | all_a >= 0x7f800000u;"
    yield "const uint16 all_e = none ? (uint16)0 : as_uint16(log2_of(all_a) + 125) & 255;"
    yield _kept("e", "uchar", "convert_uchar16(all_e)")
    # 2 ** (128 - e) as two factors, of which each is a normal number, or 0
    yield _kept("up", "float", "all_e < 2 ? (float16)4 : (float16)1")
    yield _kept("id", "float", "as_float16((all_e < 2 ? 253 - all_e : 255 - all_e) << 23)")


def _with_zero(parameters: Parameters) -> Parameters:
    """Also what a quarter is by the scale, of values that were f16."""

    def made(kind: QuantisedType) -> Iterator[str]:
        yield from parameters(kind)
        yield _kept("zero", "ushort", "(all_h & (ushort)0x7c00) - (ushort)0x1000")

    return made


def _nvfp4(_: QuantisedType) -> Iterator[str]:
    yield "const uint16 all_d = ue4m3_bits(as_float16(all_a) / 6.0f);"
    yield _kept("d", "uchar", "convert_uchar16(all_d)")
    yield "const float16 all_t = all_d == 0 ? (float16)INFINITY : ue4m3_halves(all_d);"
    yield _kept("t", "float", "all_t")
    yield _kept("it", "float", "1.0f / all_t")


def _mx(kind: QuantisedType) -> Iterator[str]:
    highest = kind.fields["q"].dtype.floating.highest
    yield f"const int16 all_e = MOST((int16)0, as_int16(all_a >> 23) - {highest});"
    yield _kept("e", "uchar", "convert_uchar16(all_a > 0x7f800000u ? (int16)255 : all_e)")
    yield _kept("ip", "float", "as_float16((254 - MOST((int16)1, all_e)) << 23)")


def _zero_point(kind: QuantisedType) -> Iterator[str]:
    yield EXTREME_VALUES
    yield from _spread(kind, "most - least", _top(kind))
    yield f"const float16 zero = within(-near(least / all_t), 0.0f, {_top(kind)});"
    yield _kept("zero", "float", "zero")
    yield _kept("z", "uchar", "convert_uchar16(convert_int16(zero))")
    yield _kept("base", "int", "convert_int16(zero)")


def _zero_point_halves(kind: QuantisedType) -> Iterator[str]:
    yield "const int16 all_low = ~ordered_of(~all_least), all_high = ordered_of(all_most);"
    yield from _zero_point(kind)


def _absolute(kind: QuantisedType) -> Iterator[str]:
    return _spread(kind, "as_float16(all_a)", f"{(1 << _bits(kind) - 1) - 1}.0f")


SMALL_QUOTIENTS = " & ".join(f"magnitude({x} / all_t) < 4194304.0f" for x in ("least", "most"))
"""Of `_zero_point`: whether `nearest` serves all quotients."""


BLOCK_RULES: Mapping[str, Rule] = {
    "signed": Rule(
        FIRST, _signed, "cut({x} * {id} + {half}.5f, {top}.0f)",
        Plain(SCALED, "convert_int16(LEAST({x} * {id} + {half}.5f, (float16){top}.0f))"),
    ),
    "range": Rule(
        WITH_ZEROS, _range, "cut(({x} - {least}) * {id} + 0.5f, {top}.0f)",
        Plain(SCALED, "convert_int16(({x} - {least}) * {id} + 0.5f)"),
    ),
    "symmetric": Rule(
        MAGNITUDE, lambda _: _scaled("as_float16(all_a) / 127.0f"),
        "as_uchar16(away({x} * {id}, -128))",
        Plain(SCALED, "convert_int16(moved_away({x} * {id}))"),
    ),
    "amax": Rule(
        MAGNITUDE, lambda _: _scaled("as_float16(all_a)"),
        "cut(convert_float16(away({x} * {id}, -1)) + 1.0f, 3.0f)",
        Plain(SCALED, "convert_int16(moved_away({x} * {id})) + 1"),
    ),
    "mxfp4": Rule(MAGNITUDE, _mxfp4, "doubled_codes({x}, magnitude({x}) * {up} * {id})"),
    "nvfp4": Rule(MAGNITUDE, _nvfp4, "doubled_codes({x}, magnitude({x}) / {t})"),
    "mx": Rule(
        MAGNITUDE, _mx, "narrowed({x} * {ip}, {q.floating.largest!r}f, {q.floating.mantissa}, "
        "{q.floating.bias}, {q.floating.bits})",
    ),
    "zero_point": Rule(
        EXTREMES, _zero_point, "cut(near({x} / {t}) + {zero}, {top}.0f)",
        Plain(SMALL_QUOTIENTS, "nearest({x} / {t}, {base}, 0, {top})"),
    ),
    "absolute": Rule(
        MAGNITUDE, _absolute,
        "as_uchar16(whole({x} / {t}, -{half}.0f, {most}.0f)) & (uchar){top}",
        Plain(HALVES, "nearest({x} / {t}, 0, -{half}, {most}) & {top}"),
    ),
}  # fmt: skip


def _of_halves(rule: Rule, plain: Plain | None = None) -> Rule:
    """A rule that asks for magnitudes, of values that were f16."""

    def parameters(kind: QuantisedType) -> Iterator[str]:
        yield "const uint16 all_a = as_uint16(halves_of(all_h));"
        yield from rule.parameters(kind)

    return replace(rule, keys=HALF, parameters=parameters, plain=plain or rule.plain)


def _e2m1_of_halves(name: str, codes: str) -> Rule:
    """A rule whose scale is a power of two: codes of values that were f16, by integers."""
    rule = BLOCK_RULES[name]
    return _of_halves(replace(rule, parameters=_with_zero(rule.parameters)), Plain(
        "convert_int16(all_h >= (ushort)0x1400 & all_h < (ushort)0x7c00 | all_h == (ushort)0)",
        codes, "ushort",
    ))  # fmt: skip


OF_HALVES: Mapping[str, Rule] = {
    "signed": replace(
        BLOCK_RULES["signed"], keys=FIRST_HALF,
        parameters=lambda kind: _signed(kind, "(all_key & 0xffffe000u)"),
    ),
    **{name: _of_halves(rule) for name, rule in BLOCK_RULES.items() if rule.keys is MAGNITUDE},
    "zero_point": replace(
        BLOCK_RULES["zero_point"], keys=EXTREME_HALVES, parameters=_zero_point_halves
    ),
    "mxfp4": _e2m1_of_halves("mxfp4", "e2m1_halves(h{x}, {zero})"),
    "mx f4_e2m1": _e2m1_of_halves("mx", "e2m1_even(h{x}, {zero})"),
    "nvfp4": _of_halves(
        BLOCK_RULES["nvfp4"], Plain(HALVES, "doubled_halves({x}, magnitude({x}) * {it})")
    ),
}  # fmt: skip
"""The rules that are others where the values were f16."""


def block_rule(kind: QuantisedType, source: DType) -> Rule:
    """The rule of a type for values of another type."""
    names = f"{kind.rule} {kind.fields['q'].dtype.name}", kind.rule
    found = (OF_HALVES[name] for name in names if name in OF_HALVES)
    return next(found, BLOCK_RULES[kind.rule]) if source.name == "f16" else BLOCK_RULES[kind.rule]


@cache
def for_template() -> Mapping[str, object]:
    """What the template needs for rules: from which bits on numpy's log2 gives -149, .. 128.

    In f32 it rounds to an integer what lies just below a power of two.
    """
    powers = np.arange(-149, 128)
    at = np.where(powers < -126, 1 << np.maximum(powers + 149, 0), (powers + 127) << 23)
    tried = at[:, None] - np.arange(256)
    with np.errstate(all="ignore"):
        found = np.log2(np.maximum(tried, 1).astype(np.uint32).view(np.float32))
    inside = (np.floor(found) == powers[:, None]) & (tried > 0)
    begins = at - (inside.cumprod(1).sum(1) - 1)
    numbers = [f"{n:#x}u" for n in [*begins, 0xFFFFFFFF]]
    lines = [", ".join(numbers[k : k + 8]) for k in range(0, len(numbers), 8)]
    return {"log2_begins": lines}
