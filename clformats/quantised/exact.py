"""Which quantised types have the same values, bit for bit, and how codes of one become another's.

Types whose value is ``scale * (q - z)``, z a number or a field, differ in where z stands. ggml's
mxfp4 is OCP's, but for NaN. Everything else would have to be rounded: that is quantising.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import Unsupported
from .types import FieldType, QuantisedType

Codes = Mapping[str, NDArray[Any]]
Change = Callable[[Codes], dict[str, NDArray[Any]]]
_AFFINE = re.compile(r"(?P<scale>\w+) \* (?:q|\(q - (?P<zero>\w+)\))")
_MX = {"mxfp4": "mx_f4_e2m1", "mx_f4_e2m1": "mxfp4"}
"""The same codes in both; 255 is a scale of 2**128 in the one and NaN in the other."""


@dataclass(frozen=True, slots=True)
class _Affine:
    """A value ``scale * (q - zero)``; ``zero`` is a number or the name of a field."""

    kind: QuantisedType
    scale: str
    zero: int | str

    @property
    def q(self) -> FieldType:
        return self.kind.fields["q"]

    @property
    def of_scale(self) -> FieldType:
        return self.kind.fields[self.scale]

    @property
    def least(self) -> int:
        """The smallest code."""
        return -(1 << self.q.dtype.bits - 1) if self.q.dtype.kind == "signed" else 0

    def wide(self, codes: NDArray[Any]) -> NDArray[Any]:
        """Codes as integers."""
        return self.q.dtype.array(codes).astype(np.int16)


def change_of(src: QuantisedType, dst: QuantisedType) -> Change:
    """How unsigned codes of ``src`` become those of ``dst``, with the same values to the bit.

    Raises `Unsupported` (code QUANTISE) with the reason; so does the change itself, where it is the
    codes that have no others.
    """
    if src == dst:
        return dict
    if _MX.get(src.name) == dst.name:
        return _mx(src, dst)
    a, b = _affine(src), _affine(dst)
    if a is None or b is None:
        other = src if a is None else dst
        raise _refused(src, dst, f"a value of {other} is {other.formula_text}, not scale * (q - z)")
    if a.of_scale.dtype != b.of_scale.dtype:
        raise _refused(src, dst, f"scales are {a.of_scale.dtype.name} and {b.of_scale.dtype.name}")
    groups = a.of_scale.group, b.of_scale.group
    if groups[0] != groups[1]:
        raise _refused(src, dst, f"scales stand for {_words(groups[0])} and {_words(groups[1])}")
    return lambda codes: _changed(codes, a, b)


def _affine(kind: QuantisedType) -> _Affine | None:
    found = _AFFINE.fullmatch(kind.formula_text)
    whole = "q" in kind.fields and kind.fields["q"].dtype.kind in ("signed", "unsigned")
    if found is None or not whole or len(kind.fields) != 2 + ((found["zero"] or "0").isalpha()):
        return None
    zero = found["zero"] or "0"
    return _Affine(kind, found["scale"], int(zero) if zero.isdecimal() else zero)


def _changed(codes: Codes, a: _Affine, b: _Affine) -> dict[str, NDArray[Any]]:
    wide = a.wide(codes["q"])
    span = (1 << b.q.dtype.bits) - 1
    result = {b.scale: codes[a.scale]}
    if isinstance(b.zero, str):
        zero = codes[a.zero] if isinstance(a.zero, str) else np.full_like(
            codes[a.scale], a.zero - a.least, np.uint8
        )  # fmt: skip
        result[b.zero] = zero
        shift: Any = -a.least
    elif isinstance(a.zero, str):
        found = np.unique(codes[a.zero])
        if found.size > 1:
            raise _refused(a.kind, b.kind, f"there are {found.size} zero points, not one")
        shift = b.zero - int(found[0])
    else:
        shift = b.zero - a.zero
    moved = wide + np.int16(shift)
    if moved.size and (moved.min() < b.least or moved.max() > b.least + span):
        raise _refused(a.kind, b.kind, f"codes from {moved.min()} to {moved.max()} do not fit")
    result["q"] = (moved & span).astype(f"u{b.q.dtype.nbytes}")
    return result


def _mx(src: QuantisedType, dst: QuantisedType) -> Change:
    def changed(codes: Codes) -> dict[str, NDArray[Any]]:
        if (codes["e"] == 255).any():
            raise _refused(
                src, dst, "the scale code 255 is NaN in one of them, 2**128 in the other"
            )
        return dict(codes)

    return changed


def _words(group: tuple[int, int]) -> str:
    return f"{group[1]} columns" if group[1] else "a row" if group[0] else "the tensor"


def _refused(src: QuantisedType, dst: QuantisedType, why: str) -> Unsupported:
    return Unsupported("QUANTISE", f"{src} has no exact copy as {dst}: {why}. Decode it, by "
                                   f"cf.unpack, and quantise anew, by cf.pack")  # fmt: skip
