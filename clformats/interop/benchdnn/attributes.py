"""The attributes of a problem as benchdnn writes them: scales, zero points and post-ops."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from .values import BadValue, dims, dims_text, dtype, real, shown, whole

ALL_DIMS = -1
POLICIES = {
    "common": 0,
    "host_scalar": 0,
    "per_dim_0": 1,
    "per_dim_1": 2,
    "per_dim_01": 3,
    "per_ocic": 3,
    "per_dim_2": 4,
    "per_dim_3": 8,
    "per_tensor": ALL_DIMS,
    "mx": ALL_DIMS,
}
"""The mask of dimensions along which values differ; `ALL_DIMS` for all that the problem has."""
GROUPED = ("per_tensor", "per_ocic", "mx")
SIDES = {"src": "src", "src0": "src", "dst": "dst"}


@dataclass(frozen=True, slots=True)
class Quantity:
    """A scale or zero point of one side: its policy, and the value where there is one for all.

    ``groups`` lets neighbours along the last two dimensions share a value.
    """

    side: str
    policy: str
    value: float
    dtype: str
    groups: tuple[int, ...] = ()

    @property
    def has_value(self) -> bool:
        """Whether the value is part of the text."""
        return POLICIES[self.policy] == 0

    def mask(self, ndims: int) -> int:
        """The dimensions along which values differ, one bit for each."""
        mask = POLICIES[self.policy]
        return (1 << ndims) - 1 if mask == ALL_DIMS else mask

    def text(self, usual_dtype: str) -> str:
        """The inverse of reading, where this element type need not be told."""
        parts = [self.side, self.policy]
        if self.has_value:
            parts.append(shown(self.value))
        if self.dtype != usual_dtype or self.groups:
            parts.append(self.dtype)
        if self.groups:
            parts.append(dims_text(self.groups))
        return ":".join(parts)


def _positive(text: str) -> float:
    if (number := real(text)) < 0:
        raise BadValue(f"a scale cannot be negative, got {text!r}")
    return number


def _exact(text: str) -> float:
    if not (number := real(text)).is_integer():
        raise BadValue(f"a zero point is a whole number, got {text!r}")
    return number


@dataclass(frozen=True, slots=True)
class _Kind:
    """What scales and zero points have not in common; ``value`` changes nothing."""

    dtype: str
    read: Callable[[str], float]
    value: float

    def plain(self, side: str) -> str:
        """The text of one that changes nothing."""
        return Quantity(side, "common", self.value, self.dtype).text(self.dtype)


SCALE = _Kind("f32", _positive, 1.0)
ZERO_POINT = _Kind("s32", _exact, 0.0)


def _quantity(text: str, kind: _Kind) -> Quantity:
    """``SIDE:POLICY[:VALUE][:DTYPE[:GROUPS]]``."""
    side, *rest = text.split(":")
    if side not in SIDES:
        raise BadValue(f"a reorder has src and dst, got {side!r} in {text!r}")
    policy = rest.pop(0).lower() if rest else ""
    if policy == "per_oc":
        raise BadValue(f"per_oc is ambiguous for a reorder: say per_dim_0 or per_dim_1 in {text!r}")
    if policy not in POLICIES:
        raise BadValue(f"expected a policy of {', '.join(POLICIES)} in {text!r}")
    value = kind.value
    if rest and (POLICIES[policy] == 0 or re.match(r"[-+.0-9]", rest[0])):
        # Older versions let a value stand with every policy; only a common one ever counted.
        given = kind.read(rest.pop(0))
        value = given if POLICIES[policy] == 0 else value
    element = dtype(rest.pop(0)) if rest else kind.dtype
    groups = dims(rest.pop(0)) if rest else ()
    if rest or (groups and (len(groups) != 2 or policy not in GROUPED)):
        raise BadValue(
            f"cannot read {text!r}: only two groups such as 8x1 may follow the data type, "
            f"with policy {' or '.join(GROUPED)}"
        )
    return Quantity(SIDES[side], policy, value, element, groups)


def _quantities(text: str, kind: _Kind) -> tuple[Quantity, ...]:
    """One for each side, the last one given, the source first; what changes nothing is left out."""
    entries = [_quantity(entry, kind) for entry in text.split("+")] if text else []
    last = {e.side: e for e in entries if e.text(kind.dtype) != kind.plain(e.side)}
    return tuple(last[side] for side in ("src", "dst") if side in last)


@dataclass(frozen=True, slots=True)
class Scales:
    """Scales of source and destination."""

    entries: tuple[Quantity, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Scales:
        """Read ``src:common:2+dst:per_dim_1``; a common scale of 1 is none."""
        # In 1e+20 the plus sign separates nothing.
        return cls(_quantities(re.sub(r"(?<=[0-9.])e\+(?=[0-9])", "e", text), SCALE))

    def __str__(self) -> str:
        return "+".join(e.text(SCALE.dtype) for e in self.entries)


@dataclass(frozen=True, slots=True)
class ZeroPoints:
    """Zero points of source and destination."""

    entries: tuple[Quantity, ...] = ()

    @classmethod
    def parse(cls, text: str) -> ZeroPoints:
        """Read ``src:common:-1+dst:common:2``."""
        return cls(_quantities(text, ZERO_POINT))

    def __str__(self) -> str:
        return "+".join(e.text(ZERO_POINT.dtype) for e in self.entries)


@dataclass(frozen=True, slots=True)
class PostOp:
    """An operation that follows: its kind, and its arguments as they are written."""

    kind: str
    arguments: tuple[str, ...] = ()

    def __str__(self) -> str:
        return ":".join((self.kind, *self.arguments))


ELTWISE = (
    "abs",
    "clip",
    "clip_v2",
    "clip_v2_dst",
    "elu",
    "elu_dst",
    "exp",
    "exp_dst",
    "gelu_erf",
    "gelu_tanh",
    "hardsigmoid",
    "hardswish",
    "linear",
    "log",
    "logistic",
    "logistic_dst",
    "mish",
    "pow",
    "relu",
    "relu_dst",
    "round",
    "sqrt",
    "sqrt_dst",
    "square",
    "soft_relu",
    "swish",
    "tanh",
    "tanh_dst",
)
BINARY = ("add", "div", "eq", "ge", "gt", "le", "lt", "max", "min", "mul", "ne", "select", "sub")
KINDS = ("sum", "dw", "prelu", *ELTWISE, *BINARY)


@dataclass(frozen=True, slots=True)
class PostOps:
    """The operations that follow, in order."""

    entries: tuple[PostOp, ...] = ()

    @classmethod
    def parse(cls, text: str) -> PostOps:
        """Read ``sum:0.5+relu``."""
        return cls(tuple(_post_op(entry) for entry in text.split("+")) if text else ())

    def __str__(self) -> str:
        return "+".join(map(str, self.entries))


def _post_op(text: str) -> PostOp:
    name, *arguments = text.split(":")
    kind = re.sub("^(eltwise|binary)_", "", name.lower())
    if kind not in KINDS:
        raise BadValue(f"unknown post-op {name!r}: expected sum[:SCALE], got {text!r}")
    if "" in arguments:
        raise BadValue(f"nothing stands behind a colon in {text!r}")
    if kind != "sum":
        return PostOp(kind, tuple(arguments))
    readers: tuple[Callable[[str], str], ...] = (
        lambda s: shown(real(s)),
        lambda s: str(whole(s)),
        dtype,
    )
    if len(arguments) > len(readers):
        raise BadValue(f"expected sum[:SCALE[:ZERO_POINT[:DTYPE]]], got {text!r}")
    read = [reader(s) for reader, s in zip(readers, arguments, strict=False)]
    while read and read[-1] == ("1", "0", "")[len(read) - 1]:
        read.pop()  # what is usual is not told
    return PostOp("sum", tuple(read))
