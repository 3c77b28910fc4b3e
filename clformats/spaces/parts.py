"""A schedule taken apart into parameters that strategies can search.

A line of text is one value of one parameter: a strategy that follows neighbours or correlations
(Bayesian optimisation, annealing, genetic ones) has nothing to follow. Here each question of a
schedule is a parameter of its own; `line` puts the answers together, or says why they do not fit.

>>> from clformats import MemoryDesc
>>> from clformats.schedule import Traits, make_plan
>>> dims = 8, 64, 56, 57
>>> plan = make_plan(MemoryDesc(dims, "f32", "bfyx"), MemoryDesc(dims, "f32", "byxf"))
>>> parts = ScheduleParts(plan.body.problem, Traits())
>>> [*parts.parameters]
['tile_a', 'tile_b', 'tile_c', 'lanes', 'order', 'block', 'items', 'ahead', 'store']
>>> parts.line(dict(zip(parts.parameters, (1, 16, 16, 16, "a b c", 0, 8, 4, "ordinary"))))
'tile b16 c16 of 16 | a* b c | ahead 4 | ordinary'
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import permutations
from typing import Any

from ..errors import InvalidArgument
from ..problems.problem import Problem
from ..problems.thresholds import BLOCKS, GROUP_SIZES, ITEMS, SHORT, VECTOR_BYTES
from ..problems.traits import Traits
from ..schedule.body import Body
from ..schedule.local import GroupPlan, fitted
from ..schedule.nest import is_legal_extent, ordered, why_illegal
from ..schedule.schedule import ALL, LETTERS, STAGED, STORES, VECTORS, Loop, Schedule, Store, Tile
from ..schedule.scheduled import ScheduledPlan
from ..schedule.search import in_blocks, wanted_items
from ..schedule.stores import legal

Config = Mapping[str, Any]
"""Names of parameters and their values."""
LANES = (16, 8, 4)
STEPS = (1, 4, 8, 16, 64)
"""Steps of a loop in a tile, beside all steps of a short one. Strategies list the whole
product of all parameters before they begin: these make 10^5 of it, more values minutes.
"""
AHEADS = (0, 2, 8, 32)
"""Prefetch distances in tiles."""
FREE = 4
"""Loops of which all orders are tried; of more the orders of both sides."""
LOCAL_SIZE = "local_size"


@dataclass(frozen=True)
class ScheduleParts:
    """The parameters of a problem's schedules.

    ``tile_a``, ``tile_b`` ...: steps of each loop in a tile; ``lanes`` of a vector; ``order``: the
    loops over tiles, the outermost first; ``block``: tiles of a block of the last loop but one, 0
    for none; ``items``: about how many work-items; ``ahead``: the prefetch distance in tiles;
    ``store``: how vectors reach memory.
    """

    problem: Problem
    traits: Traits

    @cached_property
    def parameters(self) -> dict[str, list[Any]]:
        """The parameters, each with its values."""
        p, nodes = self.problem, self.problem.nodes
        units = self.traits.compute_units
        steps = {
            f"tile_{LETTERS[k]}": _steps(n.size.value, partial(is_legal_extent, p, k))
            for k, n in enumerate(nodes)
        }
        return {
            **steps,
            "lanes": [*LANES],
            "order": _orders(p, range(len(nodes))),
            "block": [0, BLOCKS[-1]],
            "items": sorted({units, ITEMS * units, wanted_items(p, self.traits)}),
            "ahead": [*AHEADS],
            "store": [*STORES],
        }

    def line(self, config: Config) -> str:
        """The schedule as text. Raises `InvalidArgument`."""
        p = self.problem
        nodes = p.nodes
        tile = Tile.of([config[f"tile_{LETTERS[k]}"] for k in range(len(nodes))], config["lanes"])
        order = [LETTERS.index(letter) for letter in config["order"].split()]
        nest = ordered(p, tile, order, config["items"])
        if config["block"]:
            found = in_blocks(p, tile, nest, (config["block"],))
            if not found:
                raise InvalidArgument(f"no blocks of {config['block']} tiles fit into {nest}")
            nest = found[0]
        plain = Schedule(tile, nest, config["ahead"])
        if why := why_illegal(p, plain):
            raise InvalidArgument(why)
        possible = legal(p, tile, nest, self.traits.begin_bytes)
        stores = {STAGED if s.staged else str(s): s for s in possible}
        if config["store"] not in stores:
            raise InvalidArgument(f"got store {config['store']!r}, expected {', '.join(stores)}")
        return str(Schedule(tile, nest, plain.ahead, stores[config["store"]]))


def _orders(p: Problem, axes: Sequence[int]) -> list[str]:
    """Orders of some of a problem's loops, the destination's first."""
    by_source = sorted(axes, key=lambda k: -p.nodes[k].src.value)
    found = permutations(axes) if len(axes) <= FREE else (axes, by_source)
    return [*dict.fromkeys(" ".join(LETTERS[k] for k in order) for order in found)]


def _steps(size: int, is_legal: Callable[[int], bool]) -> list[int]:
    """The steps that are legal, and all of a short loop."""
    found = {n for n in STEPS if n <= size} | ({size} if size <= SHORT else set())
    return [n for n in sorted(found) if is_legal(n)] or [1]


@dataclass(frozen=True)
class GroupParts:
    """The parameters of the schedules of work-groups.

    ``tile_a``, ``tile_b`` ...: steps of each loop in a tile, 0 for all; ``lanes`` and ``stored``:
    elements of vectors; ``local``: neighbours in a word of local memory, 0 without it; ``dense``:
    whether it has no gaps; ``local_size``: work-items of a group; ``order``: the loops that the
    groups' numbers count.
    """

    plan: GroupPlan
    traits: Traits

    @cached_property
    def parameters(self) -> dict[str, list[Any]]:
        """The parameters, each with its values."""
        p, one = self.plan.problem, self.plan.schedule
        lanes, stored = ([n for n in VECTORS if n * t.nbytes <= VECTOR_BYTES] for t in p.dtypes)
        steps = {
            f"tile_{LETTERS[k]}": list(dict.fromkeys(
                [one.tile.steps(k), ALL, *_steps(n.size.value, bool)]
            ))
            for k, n in enumerate(p.nodes)
        }  # fmt: skip
        return {
            **steps,
            "lanes": lanes,
            "stored": stored,
            "local": [*VECTORS] if one.store.local else [0],
            "dense": [False, True] if one.store.local else [False],
            LOCAL_SIZE: [g for g in GROUP_SIZES if g <= self.traits.group_size],
            "order": _orders(p, sorted(loop.axis for loop in one.nest)),
        }

    def line(self, config: Config) -> str:
        """The schedule as text. Raises `InvalidArgument`."""
        p = self.plan.problem
        steps = [config[f"tile_{LETTERS[k]}"] for k in range(len(p.nodes))]
        nest = (Loop(LETTERS.index(letter), spread=True) for letter in config["order"].split())
        wish = Schedule(
            Tile.of(steps, config["lanes"], config["stored"]), tuple(nest),
            store=Store(local=config["local"], dense=config["dense"]), group=config[LOCAL_SIZE],
        )  # fmt: skip
        found = fitted(p, wish, self.traits)
        if found is None or found.schedule != wish:
            raise InvalidArgument(f"got the schedule {wish}, the nearest legal one is {found}")
        return str(wish)


Parts = ScheduleParts | GroupParts


def parts_of(body: Body, traits: Traits) -> Parts | None:
    """The questions of a plan's schedule; None where it has none."""
    if isinstance(body, ScheduledPlan):
        return ScheduleParts(body.problem, traits)
    return GroupParts(body, traits) if isinstance(body, GroupPlan) else None
