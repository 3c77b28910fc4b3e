"""The rules that make codes of blocks of numbers, in OpenCL C: those that look at one block.

Each is that of `clformats.quantised.rules` with the same name, over vectors: of 16 values of a
block, or of one number of each of 16 blocks. Every step is rounded to f32 as on the host, so that
the bytes are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from ..quantised.types import QuantisedType
from ..tensors.dtypes import DType
from .vectors import LANES

Of = Callable[[str], str]
"""What C of a number of one block is, by its name."""


@dataclass(frozen=True, slots=True)
class BlockKey:
    """A number of each block, ``name``: the greatest that ``text`` makes of its vectors' lanes.

    ``text`` is C of a vector, of the place of its first lane, and of earlier keys of the block.
    """

    name: str
    kind: str
    text: Callable[[str, int, Of], str]


Passes = Sequence[Sequence[BlockKey]]
Parameters = Callable[[QuantisedType], Iterator[str]]
Code = Callable[[QuantisedType, str, Of], str]
"""C of the codes of a vector of values."""


@dataclass(frozen=True, slots=True)
class Plain:
    """What serves blocks of finite values, which need no limits: almost all blocks.

    ``condition`` is C over vectors ``all_<name>``, and ``code`` that of codes as ``kind``.
    """

    condition: str
    code: Code
    kind: str = "int"


@dataclass(frozen=True, slots=True)
class Rule:
    """How blocks become codes.

    ``keys``: for a block's length, keys in passes over the values. ``parameters`` are statements
    over vectors ``all_<key>``, a block in each lane, that keep fields and whatever ``code`` asks
    for; ``plain``: how blocks are done where that is possible for all of a work-item's.
    """

    keys: Callable[[int], Passes]
    parameters: Parameters
    code: Code
    plain: Plain | None = None


def most_of(texts: Sequence[str]) -> str:
    """The greatest of all, lane by lane."""
    first, *others = texts
    for other in others:
        first = f"MOST({first}, {other})"
    return first


def _magnitude(block: int) -> Passes:
    """The largest magnitude, as bits: those of NaN are the largest."""
    del block
    return [[BlockKey("a", "uint", lambda x, *_: f"as_uint16(magnitude({x}))")]]


def _first(block: int) -> Passes:
    """The same, and as the lowest bit the sign of the first value that has it."""
    return [*_magnitude(block), [_sign("key", lambda of: of("a"), block)]]


def _first_half(block: int) -> Passes:
    """The same of values that were f16, whose bits leave 13 of an f32's free."""
    return [[BlockKey("key", "uint", lambda x, first, _: f"(as_uint16(magnitude({x})) "
                 f"| {_place(first, block)} | as_uint16({x}) >> 31)")]]  # fmt: skip


def _place(first: int, block: int) -> str:
    """Twice the number of places after each lane."""
    return f"(uint16)({', '.join(str(2 * (block - 1 - first - j)) for j in range(LANES))})"


def _sign(name: str, magnitude: Callable[[Of], str], block: int) -> BlockKey:
    """As its lowest bit the sign of the first value that has some magnitude."""
    return BlockKey(name, "uint", lambda x, first, of:
               f"first_of({x}, {magnitude(of)}, {_place(first, block)})")  # fmt: skip


def _extremes(block: int) -> Passes:
    """Least and most, as integers in the order of the values."""
    del block
    low = BlockKey("low", "int", lambda x, *_: f"~ordered({x})")
    return [[low, BlockKey("high", "int", lambda x, *_: f"ordered({x})")]]


def _with_zeros(block: int) -> Passes:
    """The same, and the sign of the first zero."""
    return [[*_extremes(block)[0], _sign("zero", lambda _: "0u", block)]]


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


def _code_signed(kind: QuantisedType, x: str, of: Of) -> str:
    return f"cut({x} * {of('id')} + {1 << _bits(kind) - 1}.5f, {_top(kind)})"


def _plain_signed(kind: QuantisedType, x: str, of: Of) -> str:
    top = f"{(1 << _bits(kind)) - 1}.0f"
    return f"convert_int16(LEAST({x} * {of('id')} + {1 << _bits(kind) - 1}.5f, (float16){top}))"


def _range(kind: QuantisedType) -> Iterator[str]:
    yield EXTREME_VALUES
    yield from _scaled(f"(most - least + 0.0f) / {_top(kind)}")
    zero = "convert_ushort16(all_zero << 15)"
    yield _kept("m", "ushort", f"convert_short16(least == 0.0f) ? {zero} : half_bits(least)")
    yield _kept("least", "float", "least")


def _code_range(kind: QuantisedType, x: str, of: Of) -> str:
    return f"cut(({x} - {of('least')}) * {of('id')} + 0.5f, {_top(kind)})"


def _plain_range(kind: QuantisedType, x: str, of: Of) -> str:
    del kind
    return f"convert_int16(({x} - {of('least')}) * {of('id')} + 0.5f)"


def _mxfp4(kind: QuantisedType) -> Iterator[str]:
    del kind
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


def _nvfp4(kind: QuantisedType) -> Iterator[str]:
    del kind
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


def _code_mx(kind: QuantisedType, x: str, of: Of) -> str:
    row = kind.fields["q"].dtype.floating
    numbers = f"{row.largest!r}f, {row.mantissa}, {row.bias}, {row.bits}"
    return f"narrowed({x} * {of('ip')}, {numbers})"


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


def _extreme_halves(block: int) -> Passes:
    """Least and most of values that were f16, as integers in their order."""
    del block
    low = BlockKey("least", "ushort", lambda x, *_: f"(ushort16)~ordered_half(h{x})")
    return [[low, BlockKey("most", "ushort", lambda x, *_: f"ordered_half(h{x})")]]


def _plain_zero_point(kind: QuantisedType, x: str, of: Of) -> str:
    return f"nearest({x} / {of('t')}, {of('base')}, 0, {(1 << _bits(kind)) - 1})"


def _code_zero_point(kind: QuantisedType, x: str, of: Of) -> str:
    return f"cut(near({x} / {of('t')}) + {of('zero')}, {_top(kind)})"


def _absolute(kind: QuantisedType) -> Iterator[str]:
    return _spread(kind, "as_float16(all_a)", f"{(1 << _bits(kind) - 1) - 1}.0f")


def _code_absolute(kind: QuantisedType, x: str, of: Of) -> str:
    bits = _bits(kind)
    most = (1 << bits - 1) - 1
    q = f"as_uchar16(whole({x} / {of('t')}, {-most - 1}.0f, {most}.0f))"
    return f"{q} & (uchar){(1 << bits) - 1}"


def _plain_absolute(kind: QuantisedType, x: str, of: Of) -> str:
    most = (1 << _bits(kind) - 1) - 1
    return f"nearest({x} / {of('t')}, 0, {-most - 1}, {most}) & {2 * most + 1}"


SMALL_QUOTIENTS = " & ".join(f"magnitude({x} / all_t) < 4194304.0f" for x in ("least", "most"))
"""Of `_zero_point`: whether `nearest` serves all quotients."""


BLOCK_RULES: Mapping[str, Rule] = {
    "signed": Rule(_first, _signed, _code_signed, Plain(SCALED, _plain_signed)),
    "range": Rule(_with_zeros, _range, _code_range, Plain(SCALED, _plain_range)),
    "symmetric": Rule(
        _magnitude,
        lambda *_: _scaled("as_float16(all_a) / 127.0f"),
        lambda _, x, of: f"as_uchar16(away({x} * {of('id')}, -128))",
        Plain(SCALED, lambda _, x, of: f"convert_int16(moved_away({x} * {of('id')}))"),
    ),
    "amax": Rule(
        _magnitude,
        lambda *_: _scaled("as_float16(all_a)"),
        lambda _, x, of: f"cut(convert_float16(away({x} * {of('id')}, -1)) + 1.0f, 3.0f)",
        Plain(SCALED, lambda _, x, of: f"convert_int16(moved_away({x} * {of('id')})) + 1"),
    ),
    "mxfp4": Rule(
        _magnitude, _mxfp4,
        lambda _, x, of: f"doubled_codes({x}, magnitude({x}) * {of('up')} * {of('id')})",
    ),
    "nvfp4": Rule(
        _magnitude, _nvfp4, lambda _, x, of: f"doubled_codes({x}, magnitude({x}) / {of('t')})"
    ),
    "mx": Rule(_magnitude, _mx, _code_mx),
    "zero_point": Rule(
        _extremes, _zero_point, _code_zero_point, Plain(SMALL_QUOTIENTS, _plain_zero_point)
    ),
    "absolute": Rule(_magnitude, _absolute, _code_absolute, Plain(HALVES, _plain_absolute)),
}  # fmt: skip


def _of_halves(rule: Rule, plain: Plain | None = None) -> Rule:
    """A rule that asks for magnitudes, of values that were f16: of their bits, 16 in 32 bytes."""
    key = BlockKey("h", "ushort", lambda x, *_: f"(h{x} & (ushort)0x7fff)")

    def parameters(kind: QuantisedType) -> Iterator[str]:
        yield "const uint16 all_a = as_uint16(halves_of(all_h));"
        yield from rule.parameters(kind)

    return replace(rule, keys=lambda _: [[key]], parameters=parameters, plain=plain or rule.plain)


def _e2m1_of_halves(name: str, codes: str) -> Rule:
    """A rule whose scale is a power of two: codes of values that were f16, by integers."""
    rule = BLOCK_RULES[name]
    return _of_halves(replace(rule, parameters=_with_zero(rule.parameters)), Plain(
        "convert_int16(all_h >= (ushort)0x1400 & all_h < (ushort)0x7c00 | all_h == (ushort)0)",
        lambda _, x, of: f"{codes}(h{x}, {of('zero')})", "ushort",
    ))  # fmt: skip


OF_HALVES: Mapping[str, Rule] = {
    "signed": Rule(
        _first_half, lambda kind: _signed(kind, "(all_key & 0xffffe000u)"), _code_signed,
        Plain(SCALED, _plain_signed),
    ),
    **{name: _of_halves(rule) for name, rule in BLOCK_RULES.items() if rule.keys is _magnitude},
    "zero_point": replace(
        BLOCK_RULES["zero_point"], keys=_extreme_halves, parameters=_zero_point_halves
    ),
    "mxfp4": _e2m1_of_halves("mxfp4", "e2m1_halves"),
    "mx f4_e2m1": _e2m1_of_halves("mx", "e2m1_even"),
    "nvfp4": _of_halves(BLOCK_RULES["nvfp4"], Plain(
        HALVES, lambda _, x, of: f"doubled_halves({x}, magnitude({x}) * {of('it')})",
    )),
}  # fmt: skip
"""The rules that are others where the values were f16."""


def block_rule(kind: QuantisedType, source: DType) -> Rule:
    """The rule of a type for values of another type."""
    names = f"{kind.rule} {kind.fields['q'].dtype.name}", kind.rule
    found = (OF_HALVES[name] for name in names if name in OF_HALVES)
    return next(found, BLOCK_RULES[kind.rule]) if source.name == "f16" else BLOCK_RULES[kind.rule]


def for_template() -> Mapping[str, object]:
    """What the template needs for rules."""
    return {"log2_begins": log2_begins()}


@cache
def log2_begins() -> list[str]:
    """From which bits on numpy's log2 in f32 gives -149, -148, .. 128, as lines of C.

    It rounds to an integer what lies just below a power of two.
    """
    powers = np.arange(-149, 128)
    at = np.where(powers < -126, 1 << np.maximum(powers + 149, 0), (powers + 127) << 23)
    tried = at[:, None] - np.arange(256)
    with np.errstate(all="ignore"):
        found = np.log2(np.maximum(tried, 1).astype(np.uint32).view(np.float32))
    inside = (np.floor(found) == powers[:, None]) & (tried > 0)
    begins = at - (inside.cumprod(1).sum(1) - 1)
    numbers = [f"{n:#x}u" for n in [*begins, 0xFFFFFFFF]]
    return [", ".join(numbers[k : k + 8]) for k in range(0, len(numbers), 8)]
