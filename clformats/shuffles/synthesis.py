"""One synthesiser of shuffles for every tile: all it needs is where elements lie on both sides.

What stores need of loads falls into parts that share no vector. A part is a butterfly network
(`clformats.shuffles.butterfly`) where bits do, else it is routed (`clformats.shuffles.route`).
Parts of the same structure, of which a large tile has many, are made once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from ..errors import InvalidArgument
from .assembly import ANY_LANE, NOUGHT, Made, Mix, Vector, routed
from .butterfly import completed, needed, transposed
from .emission import in_order
from .program import ZERO, Shuffle, ShuffleProgram
from .sets import connected, mask_of

Lanes = tuple[int | None, ...]
LEFT = -2
"""The value of a store that is still to be made."""


def synthesise(
    loads: Sequence[Lanes], stores: Sequence[Lanes], *, nbytes: int, together: int = 1
) -> ShuffleProgram:
    """The program that makes the ``stores`` of a tile from its ``loads``.

    Vectors are tuples of element numbers, one for each lane. None is anything in a load and a zero
    in a store. An element may be in several loads, and in several stores. Vectors may be of several
    lengths: the program has the lanes of the longest, and shorter ones lie in the lowest lanes.
    ``nbytes`` of an element; ``together``: how many stores, one after the other, share a cache
    line. Raises `InvalidArgument` where a store wants what no load has.

    >>> program = synthesise([(0, 1), (2, 3)], [(0, 2), (1, 3)], nbytes=4)
    >>> print(program)
    2x2 1: 0&1:0.2 0&1:1.3 > 2 3
    >>> program.run([(0, 1), (2, 3)])
    [[0, 2], [1, 3]]
    """
    lanes = max(map(len, (*loads, *stores)), default=0)
    number: dict[int | None, int] = {}
    for e in (e for load in loads for e in load if e is not None):
        number.setdefault(e, len(number))
    missing = {e for store in stores for e in store if e is not None and e not in number}
    if missing:
        raise InvalidArgument(
            f"got stores of the elements {sorted(missing)[:4]} that no load has: "
            f"load every element that is stored"
        )
    have, want = ({**number, None: what} for what in (ANY_LANE, NOUGHT))
    return _synthesised(
        tuple((*(have[e] for e in v), *[ANY_LANE] * (lanes - len(v))) for v in loads),
        tuple((*(want[e] for e in v), *[ANY_LANE] * (lanes - len(v))) for v in stores),
        lanes, nbytes, together,
    )  # fmt: skip


@lru_cache(maxsize=1024)
def _synthesised(
    loads: tuple[Vector, ...], stores: tuple[Vector, ...], lanes: int, nbytes: int, together: int
) -> ShuffleProgram:
    """The program for elements that are numbered in the order of the loads."""
    holders: dict[tuple[int, int], list[int]] = {}
    for k, load in enumerate(loads):
        for place in enumerate(load):
            holders.setdefault(place, []).append(k)
    once = [*dict.fromkeys(stores)]
    outputs = [_ready(store, loads, holders) for store in once]
    homes = _homes(loads, [s for s, value in zip(once, outputs, strict=True) if value == LEFT])
    mixes: list[Mix] = []
    for part in _parts(once, outputs, homes):
        _add(part, loads, once, homes, nbytes, mixes, outputs)
    ops = tuple(Shuffle(*mix) for mix in mixes)
    value = dict(zip(once, outputs, strict=True))
    return in_order(
        ShuffleProgram(lanes, len(loads), ops, tuple(value[s] for s in stores), together)
    )


def _ready(
    store: Vector, loads: Sequence[Vector], holders: Mapping[tuple[int, int], Sequence[int]]
) -> int:
    """The value that a store is without any shuffle; `LEFT` where there is none.

    ``holders`` are the loads that have an element in a lane, by (lane, element).
    """
    wanted = [(lane, e) for lane, e in enumerate(store) if e != ANY_LANE]
    if all(e == NOUGHT for _, e in wanted):
        return ZERO
    likely = holders.get(wanted[0], ())
    return next((k for k in likely if all(loads[k][lane] == e for lane, e in wanted)), LEFT)


def _homes(loads: Sequence[Vector], stores: Iterable[Vector]) -> dict[int, int]:
    """The load that each element of the stores is taken from: first those that have most."""
    left = {e for store in stores for e in store if e >= 0}
    rest = {k: left.intersection(load) for k, load in enumerate(loads)}
    homes: dict[int, int] = {}
    while left:
        best = max(rest, key=lambda k: len(rest[k]))
        taken = rest.pop(best)
        homes.update(dict.fromkeys(taken, best))
        left -= taken
        rest = {k: mine - taken for k, mine in rest.items()}
    return homes


def _parts(
    stores: Sequence[Vector], outputs: Sequence[int], homes: dict[int, int]
) -> list[list[int]]:
    """The stores that are to be made, in parts that share no load."""
    left = [k for k, value in enumerate(outputs) if value == LEFT]
    loads = (mask_of(homes[e] for e in stores[k] if e >= 0) for k in left)
    return [sorted(left[n] for n in group) for group in connected(loads)]


def _add(
    part: Sequence[int], loads: Sequence[Vector], stores: Sequence[Vector], homes: dict[int, int],
    nbytes: int, mixes: list[Mix], outputs: list[int],
) -> None:  # fmt: skip
    """Add the shuffles of one part, and the values of its stores."""
    used = sorted({homes[e] for k in part for e in stores[k] if e >= 0})
    number = {ANY_LANE: ANY_LANE, NOUGHT: NOUGHT}
    rows = [[e if homes.get(e) == k else ANY_LANE for e in loads[k]] for k in used]
    for e in (e for row in rows for e in row):
        number.setdefault(e, len(number) - 2)
    more, values = _part(
        tuple(tuple(number[e] for e in row) for row in rows),
        tuple(tuple(number[e] for e in stores[k]) for k in part),
        nbytes,
    )
    first = len(loads) + len(mixes) - len(used)
    name = {ZERO: ZERO} | dict(enumerate(used))
    name |= {n: first + n for n in range(len(used), len(used) + len(more))}
    mixes += [(name[a], name[b], pattern) for a, b, pattern in more]
    for k, value in zip(part, values, strict=True):
        outputs[k] = name[value]


@lru_cache(maxsize=1024)
def _part(loads: tuple[Vector, ...], stores: tuple[Vector, ...], nbytes: int) -> Made:
    """The shuffles of one part: a network where bits do and it has no more of them."""
    lanes = len(stores[0])
    near = min((16 // nbytes).bit_length(), lanes.bit_length()) - 1
    whole = completed(loads, stores)
    network = transposed(*whole, near) if whole else None
    if network and len(stores) == len(loads):
        return network
    part, other = network and needed(network, len(loads), len(stores)), routed(loads, stores)
    return part if part and len(part[0]) <= len(other[0]) else other
