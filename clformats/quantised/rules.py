"""The rules by which numbers become codes: one function for each, over whole blocks in f32.

The rules of GGUF's types are ggml's (ggml-quants.c), and give its bytes. Those of MX types are of
OCP's specification, section 6.3, and of torchao (``mx``: floor, ceil, even, rceil). NVFP4's, with
two levels of scales, are torchao's. Rules that search for scales (the K and IQ types) are not here.
Every step is rounded to f32. NaN and values without a place get the nearest code, NaN code 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidArgument, Unsupported
from ..tensors.dtypes import as_dtype
from .codes import codes_named
from .types import WHOLE, QuantisedType

Array = NDArray[Any]
F32 = np.float32
Fields = dict[str, Array]
MX_MODES = ("floor", "ceil", "even", "rceil")
MIDPOINTS = (0.5, 1.5, 2.5, 3.5, 5.0, 7.0, 10.0)
"""Between the magnitudes 0 1 2 3 4 6 8 12 of doubled e2m1."""


def quantised(kind: QuantisedType, values: Array, mode: str | None = None) -> Fields:
    """Codes of all fields of a type, for values of (experts, rows, columns) in f32.

    A short last group counts as if its last value were repeated. ``mode`` names the rule for the
    scales of MX types, by default ``floor``. Raises `Unsupported` (code QUANTISE), and
    `InvalidArgument` for an unknown mode.
    """
    check_rule(kind, mode)
    e, n, k = values.shape
    group = block_of(kind, k)
    if k % group:
        values = np.pad(values, ((0, 0), (0, 0), (0, group - k % group)), "edge")
    blocks = np.ascontiguousarray(values).reshape(e, n, -1, group)
    with np.errstate(all="ignore"):
        rule = RULES[kind.rule]
        found = rule(kind, blocks) if kind.rule != "mx" else _mx(kind, blocks, mode or "floor")
    found["q"] = found["q"].reshape(e, n, -1)[:, :, :k]
    return {
        name: codes
        if name == "q" or kind.fields[name].group[0] == WHOLE
        else codes.reshape(e, n, -1)
        for name, codes in found.items()
    }


def block_of(kind: QuantisedType, columns: int) -> int:
    """The columns that a rule looks at together."""
    groups = [f.group for f in kind.fields.values()]
    if (1, WHOLE) in groups:
        return columns
    return max(columns_of for _, columns_of in groups)


def check_rule(kind: QuantisedType, mode: str | None = None) -> None:
    """Raise where a type has no rule, or not this mode of it."""
    if not kind.rule:
        raise Unsupported(
            "QUANTISE",
            f"{kind} has no rule that makes codes of numbers: its scales come from a search, or it "
            f"is a type of yours. Pack a dict of its fields, {', '.join(kind.fields)}",
        )
    if mode is not None and (kind.rule != "mx" or mode not in MX_MODES):
        raise InvalidArgument(f"mode: got {mode!r} for {kind}, expected None, or for MX types one "
                              f"of {', '.join(MX_MODES)}")  # fmt: skip


def _half(x: Array) -> Array:
    return np.asarray(x.astype(np.float16).view(np.uint16))


def _scale(kind: QuantisedType, name: str, x: Array) -> tuple[Array, Array]:
    """The codes of scales in their type, and what they mean."""
    if kind.fields[name].dtype.name == "bf16":
        narrow = x.astype(ml_dtypes.bfloat16)
        return narrow.view(np.uint16), narrow.astype(F32)
    return _half(x), x.astype(np.float16).astype(F32)


def _inverse(d: Array) -> Array:
    return np.asarray(np.where(d == 0, F32(0), F32(1) / d).astype(F32))


def _code(x: Array, most: int) -> Array:
    """Cut off to whole numbers from 0 to ``most``; NaN is 0."""
    return np.asarray(np.trunc(np.fmin(np.fmax(x, F32(0)), F32(most))).astype(np.uint8))


def _away(x: Array) -> Array:
    """To nearest, halves away from zero."""
    a = np.abs(x)
    whole = np.floor(a)
    return np.asarray(np.sign(x) * (whole + np.floor(F32(2) * (a - whole))))


def _magnitude(x: Array) -> Array:
    return np.asarray(np.abs(x).max(-1))


def _signed(kind: QuantisedType, x: Array) -> Fields:
    """d: the first value of largest magnitude, with its sign, is the lowest code."""
    half = 1 << kind.fields["q"].dtype.bits - 1
    at = np.abs(x).argmax(-1)[..., None]
    d = np.take_along_axis(x, at, -1)[..., 0] / F32(-half)
    q = _code(x * _inverse(d)[..., None] + F32(half + 0.5), 2 * half - 1)
    return {"q": q, "d": _half(d)}


def _range(kind: QuantisedType, x: Array) -> Fields:
    """m: the first of the least values, so of -0 and 0 the first, as ggml's loop has it; d >= 0.

    gguf's numpy has one or the other, as the processor's vectors fall.
    """
    most = (1 << kind.fields["q"].dtype.bits) - 1
    least = np.take_along_axis(x, x.argmin(-1)[..., None], -1)[..., 0]
    d = (x.max(-1) - least + F32(0)) / F32(most)
    q = _code((x - least[..., None]) * _inverse(d)[..., None] + F32(0.5), most)
    return {"q": q, "d": _half(d), "m": _half(least)}


def _symmetric(kind: QuantisedType, x: Array) -> Fields:
    del kind
    d = _magnitude(x) / F32(127)
    q = np.fmin(np.fmax(_away(x * _inverse(d)[..., None]), F32(-128)), F32(127))
    return {"q": np.nan_to_num(q).astype(np.int8).view(np.uint8), "d": _half(d)}


def _mean(kind: QuantisedType, x: Array) -> Fields:
    """d: the mean magnitude, summed one after the other; q: whether a value is not negative."""
    del kind
    total = np.cumsum(np.abs(x), -1, dtype=F32)[..., -1]
    return {"q": (x >= 0).astype(np.uint8), "d": _half(total / F32(x.shape[-1]))}


def _amax(kind: QuantisedType, x: Array) -> Fields:
    del kind
    d = _magnitude(x)
    return {"q": _code(_away(x * _inverse(d)[..., None]) + F32(1), 3), "d": _half(d)}


def doubled_e2m1(x: Array, d: Array) -> Array:
    """The codes of doubled e2m1 times ``d`` that are nearest: ties to the smaller, never -0."""
    a = np.abs(x)
    code = np.zeros(x.shape, np.uint8)
    for mid in MIDPOINTS:
        code += a > F32(mid) * d[..., None]
    code[np.broadcast_to(d[..., None] == 0, x.shape)] = 0
    return np.asarray(np.where((x < 0) & (code > 0), code | 8, code).astype(np.uint8))


def _mxfp4(kind: QuantisedType, x: Array) -> Fields:
    amax = _magnitude(x)
    exponent = np.floor(np.log2(np.where(amax > 0, amax, F32(1)))) + F32(125)
    e = np.where(amax > 0, exponent, 0)
    e = (np.nan_to_num(e, nan=0, posinf=0).astype(np.int64) & 255).astype(np.uint8)
    return {"q": doubled_e2m1(x, kind.fields["e"].dtype.table[e]), "e": e}


def ue4m3(x: Array) -> Array:
    """The codes of unsigned e4m3 as ggml makes them: halves up, 0 to 448."""
    x = np.fmin(np.fmax(x, F32(0)), F32(448)).astype(F32)
    bits = x.view(np.uint32).astype(np.int64)
    exponent = (bits >> 23) - 120
    code = (exponent << 3) + (bits >> 20 & 7) + (bits >> 19 & 1)
    low = np.trunc(np.fmin(x * F32(512) + F32(0.5), F32(7))).astype(np.int64)
    code = np.where(exponent <= 0, low, np.where(code >= 0x78, 0x7E, code))
    return np.asarray(np.where(x > 0, code, 0).astype(np.uint8))


def _nvfp4(kind: QuantisedType, x: Array) -> Fields:
    d = ue4m3(_magnitude(x) / F32(6))
    return {"q": doubled_e2m1(x, kind.fields["d"].dtype.table[d]), "d": d}


def _mx(kind: QuantisedType, x: Array, mode: str) -> Fields:
    dtype = kind.fields["q"].dtype
    row, amax = dtype.floating, _magnitude(x)
    bits = amax.view(np.uint32).astype(np.int64)
    if mode == "rceil":
        ratio = (amax / F32(row.largest)).astype(F32).view(np.uint32).astype(np.int64)
        code = np.clip((ratio >> 23) + ((ratio & 0x7FFFFF) > 0), 0, 254)
        factor = np.where(code == 254, F32(2) ** -127, np.exp2(F32(127) - code.astype(F32)))
        factor = np.where(code == 0, F32(1), factor)
        scaled = x * factor.astype(F32)[..., None]
    else:
        bits += 1 << 22 - row.mantissa if mode == "even" else 0
        up = (bits & 0x7FFFFF) > 0 if mode == "ceil" else 0
        code = np.clip((bits >> 23) - row.highest + up, 0, 255)
        power = np.ldexp(F32(1), np.maximum(code - 127, -126)).astype(F32)
        scaled = x / power[..., None]
    code = np.where(np.isnan(amax), 255, code)
    return {"q": narrowed(scaled, dtype.name), "e": code.astype(np.uint8)}


def narrowed(x: Array, name: str) -> Array:
    """Codes of a narrow float: clamped, to nearest, ties to even; NaN is 0."""
    largest = F32(codes_named(name).floating.largest)
    clamped = np.where(np.isnan(x), F32(0), np.clip(x, -largest, largest)).astype(F32)
    return np.asarray(clamped.astype(as_dtype(name).numpy).view(np.uint8))


def _nvfp4_two(kind: QuantisedType, x: Array) -> Fields:
    """A scale of the tensor, which multiplies or divides, and one of e4m3 for each block."""
    amax = _magnitude(x)
    most = amax.max((1, 2), keepdims=True)
    times = kind.rule == "nvfp4_times"
    tensor = most / F32(448 * 6) if times else F32(448 * 6) / most
    tensor = np.where((most == 0) | ~np.isfinite(tensor), F32(1), tensor).astype(F32)
    own = amax / F32(6)
    own = own / tensor if times else own * tensor
    code = narrowed(
        np.clip(np.where(np.isnan(own), F32(448), own), F32(2**-6), F32(448)), "f8_e4m3"
    )
    decoded = code.view(ml_dtypes.float8_e4m3fn).astype(F32)
    inverse = F32(1) / tensor if times else tensor
    q = narrowed(x * (inverse / decoded)[..., None], "f4_e2m1")
    return {"q": q, "d": code, "t": tensor.view(np.uint32)}


def _zero_point(kind: QuantisedType, x: Array) -> Fields:
    """AutoAWQ's: s = (max - min) / most, but max - min 1e-5 at least; z = round(-min / s)."""
    most = F32((1 << kind.fields["q"].dtype.bits) - 1)
    least = x.min(-1)
    s = np.fmax(x.max(-1) - least, F32(1e-5)) / most
    z = np.fmin(np.fmax(-np.rint(least / s), F32(0)), most)
    q = np.fmin(np.fmax(np.rint(x / s[..., None]) + z[..., None], F32(0)), most)
    return {"q": q.astype(np.uint8), "z": z.astype(np.uint8), "s": _scale(kind, "s", s)[0]}


def _absolute(kind: QuantisedType, x: Array) -> Fields:
    """AutoAWQ's without zero points: s = amax / most, q = round(x / s)."""
    bits = kind.fields["q"].dtype.bits
    most = F32((1 << bits - 1) - 1)
    s = np.fmax(_magnitude(x), F32(1e-5)) / most
    q = np.fmin(np.fmax(np.rint(x / s[..., None]), -most - F32(1)), most)
    codes = np.nan_to_num(q).astype(np.int8).view(np.uint8) & np.uint8((1 << bits) - 1)
    return {"q": codes, "s": _scale(kind, "s", s)[0]}


RULES: Mapping[str, Callable[[QuantisedType, Array], Fields]] = {
    "signed": _signed, "range": _range, "symmetric": _symmetric, "mean": _mean, "amax": _amax,
    "mxfp4": _mxfp4, "nvfp4": _nvfp4, "nvfp4_times": _nvfp4_two, "nvfp4_divided": _nvfp4_two,
    "zero_point": _zero_point, "absolute": _absolute,
    "mx": lambda kind, x: _mx(kind, x, "floor"),
}  # fmt: skip
