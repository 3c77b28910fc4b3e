"""Which value a bit belongs to: to one at most, exactly, from digits alone, whatever the sizes.

The bits of a plane are its first one plus a sum of terms, each a multiple of a stride. Two bits are
the same where the difference of two such sums is 0: an equation in whole numbers between bounds, of
which the largest strides decide nearly everything.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import combinations
from math import gcd, prod

import numpy as np

from ..errors import InvalidFormat
from ..formats.expr import Var
from .planes import Plane, PlaneDigit

Terms = tuple[tuple[int, int], ...]
"""Strides and sizes."""
_STEPS = 100_000
"""So many steps a search may take: texts that need more are refused."""
_MOST_BITS = 1 << 22
"""Planes of indices that no rule knows are looked at bit by bit, up to so many bits."""


def check_apart(planes: Sequence[Plane], outer: int = 0) -> None:
    """Raise `InvalidFormat` where two bits of planes of one buffer are the same one.

    The ``outer`` first digits of each plane are those of records, and are not looked at: whoever
    calls has seen that all else lies inside a record.
    """
    if not all(p.is_plain for p in planes):
        planes, rest = _fused(planes)
        if rest:
            _check_each([*planes, *rest])
            return
    runs = [(p.first_bit, _terms(p, outer)) for p in planes]
    for plane, (_, terms) in zip(planes, runs, strict=True):
        if _meets_itself(terms):
            raise _shared(plane, plane)
    for (a, (at, one)), (b, (of, other)) in combinations(zip(planes, runs, strict=True), 2):
        if _meet(of - at, one, other):
            raise _shared(a, b)


def _shared(a: Plane, b: Plane) -> InvalidFormat:
    what = f"{b.name} has bits that are another value's" + (f", of {a.name}" if a != b else "")
    return InvalidFormat(f"{what}: give other first bits or strides")


def _terms(plane: Plane, outer: int) -> Terms:
    """Strides and sizes of a plane's digits and of the bits of a value."""
    own = [(d.stride, d.size) for d in plane.digits[outer:] if d.size > 1]
    return (*sorted(own, reverse=True), (1, plane.bits))


@lru_cache(maxsize=4096)
def _meets_itself(terms: Terms) -> bool:
    """Whether two choices of the terms have one sum: if 0 is one of differences that are not 0."""
    strides = [s for s, _ in terms]
    if 0 in strides:
        return True
    bounds = sorted(((s, 1 - n, n - 1) for s, n in terms), reverse=True)
    return any(
        _reaches(-c * s, tuple(bounds[i + 1 :]))
        for i, (s, _, most) in enumerate(bounds)
        for c in range(1, 1 + min(most, sum(b[0] * b[2] for b in bounds[i + 1 :]) // s))
    )


@lru_cache(maxsize=4096)
def _meet(distance: int, one: Terms, other: Terms) -> bool:
    """Whether a sum of ``one`` is one of ``other`` plus ``distance``."""
    bounds: defaultdict[int, list[int]] = defaultdict(lambda: [0, 0])
    for s, n in one:
        bounds[s][1] += n - 1
    for s, n in other:
        bounds[s][0] -= n - 1
    return _reaches(distance, tuple(sorted(((s, a, b) for s, (a, b) in bounds.items() if s),
                                           reverse=True)))  # fmt: skip


def _reaches(target: int, bounds: tuple[tuple[int, int, int], ...]) -> bool:
    return next(_sums(target, bounds), None) is not None


def _sums(target: int, bounds: tuple[tuple[int, int, int], ...]) -> Iterator[tuple[int, ...]]:
    """How often each stride is taken, between its bounds, for sums that are ``target``."""
    steps = iter(range(_STEPS))
    rest = [(0, 0, 0)]
    for s, least, most in reversed(bounds):
        low, high, common = rest[-1]
        rest.append((low + s * least, high + s * most, gcd(common, s)))
    rest.reverse()

    def found(target: int, at: int) -> Iterator[tuple[int, ...]]:
        if at == len(bounds):
            yield from [()] if target == 0 else []
            return
        if next(steps, None) is None:
            raise InvalidFormat(
                f"strides of {', '.join(str(b[0]) for b in bounds)} bits: cannot tell whether "
                f"values share bits; give strides that are multiples of each other"
            )
        for c in _choices(target, bounds[at], rest[at + 1]):
            yield from ((c, *more) for more in found(target - c * bounds[at][0], at + 1))

    return found(target, 0)


def value_at(plane: Plane, bit: int) -> tuple[int, int, int] | None:
    """The indices of the value of which a plane has a bit there, perhaps padding; or None."""
    digits = sorted((d for d in plane.digits if d.size > 1), key=lambda d: -d.stride)
    bounds = [(d.stride, 0, d.size - 1) for d in digits]
    found = next(_sums(bit - plane.first_bit, (*bounds, (1, 0, plane.bits - 1))), None)
    if found is None:
        return None
    indices, values = [0, 0, 0], list(zip(digits, found, strict=False))
    for dim in range(3):
        own = [(d, v) for d, v in values if d.dim == dim]
        if all(unturned(d).is_plain for d, _ in own):
            indices[dim] = sum((v - d.add // d.step) % d.size * d.step for d, v in own)
            continue
        first = own[0][0]
        indices[dim], rest = divmod(sum(v * d.step for d, v in own) - first.add, first.mul)
        if rest:
            return None
    return indices[0], indices[1], indices[2]


def _choices(target: int, bound: tuple[int, int, int], rest: tuple[int, int, int]) -> Iterator[int]:
    """How often a stride may be taken, for what the strides behind it reach and divide."""
    stride, least, most = bound
    low, high, common = rest
    first, last = max(least, -((high - target) // stride)), min(most, (target - low) // stride)
    if not common:
        yield from range(first, last + 1)
        return
    shared = gcd(stride, common)
    if target % shared:
        return
    every = common // shared
    fits = target // shared * pow(stride // shared, -1, every) % every
    yield from range(first + (fits - first) % every, last + 1, every)


# --- indices that are not plain -------------------------------------------------------------------


def _fused(planes: Sequence[Plane]) -> tuple[list[Plane], list[Plane]]:
    """Planes as if of plain indices where they take the same bits, and those where no rule says so.

    An index with a number added to it has the same digits in another order, where it is the step's
    multiple. Streams ``3k``, ``3k+1``, ``3k+2`` of equal digits are one index of three times as
    many values.
    """
    turned = [replace(p, digits=tuple(map(unturned, p.digits))) for p in planes]
    plain = [p for p in turned if p.is_plain]
    streams: defaultdict[tuple[object, ...], list[Plane]] = defaultdict(list)
    for p in turned:
        if not p.is_plain:
            own = tuple((d.dim, d.step, d.size, d.stride, d.mul) for d in p.digits)
            streams[p.bits, p.first_bit, own].append(p)
    rest: list[Plane] = []
    for group in streams.values():
        (plain if _is_stream(group) else rest).extend(group[:1] if _is_stream(group) else group)
    return plain, rest


def unturned(digit: PlaneDigit) -> PlaneDigit:
    """Without what is added to an index, where it only changes the order of a digit's values."""
    turned = digit.mul == 1 and digit.add % digit.step == 0
    return replace(digit, add=0) if turned else digit


def _is_stream(group: Sequence[Plane]) -> bool:
    """Whether planes are all the bits of values along one dimension, one after the other."""
    turned = [[d for d in p.digits if not d.is_plain] for p in group]
    dims = {d.dim for own in turned for d in own}
    adds = [{d.add for d in own} for own in turned]
    muls = {d.mul for own in turned for d in own}
    if len(dims) != 1 or len(muls) != 1 or any(len(a) != 1 for a in adds):
        return False
    (dim,), (mul,) = dims, muls
    whole = sorted(min(a) for a in adds) == list(range(mul))
    chain = sorted((d.step, d.size) for d in group[0].digits if d.dim == dim)
    steps = [1]
    for _, size in chain:
        steps.append(steps[-1] * size)
    nests = len(chain) == len(turned[0]) and [s for s, _ in chain] == steps[:-1]
    return whole and nests and steps[-1] >= mul * group[0].padded[dim]


def _check_each(planes: Sequence[Plane]) -> None:
    """The same, bit by bit. Raises `InvalidFormat` for planes of too many bits too."""
    taken: dict[int, Plane] = {}
    names = ", ".join(sorted({p.name for p in planes}))
    if sum(p.bits * prod(p.padded) for p in planes) > _MOST_BITS:
        raise InvalidFormat(f"cannot tell whether values of {names} share bits: write their digits "
                            f"with plain indices, or all the streams of a field")  # fmt: skip
    for plane in planes:
        axes = dict(zip("enk", np.ogrid[tuple(slice(n) for n in plane.padded)], strict=True))
        first = plane.address((Var("e"), Var("n"), Var("k"))).evaluate(axes)
        where = np.broadcast_to(np.asarray(first), plane.padded).ravel()
        bits = np.add.outer(np.arange(plane.bits), where).ravel().tolist()
        other = next((taken[b] for b in bits if b in taken), None)
        if other is not None or len(set(bits)) < len(bits):
            raise _shared(other or plane, plane)
        taken |= dict.fromkeys(bits, plane)
