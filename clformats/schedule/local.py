"""The families for GPUs: each work-group moves a tile, consecutive work-items touch neighbours.

A GPU joins the accesses of the work-items that run in step (32 or 64 of them) into as few memory
transactions as they touch lines. So consecutive work-items have consecutive elements, and a tile is
a part of each of the innermost loops, wide enough that its runs fill transactions on both sides.

Where the order of the loops is one on both sides, each work-item stores what it has loaded (family
``rows``). Where it is not, a tile is loaded in the order of the source, kept in local memory, and
stored in the order of the destination (family ``local``): coalesced and by vectors on both sides. A
work-item loads runs of the source, takes words of some elements from as many rows out of local
memory, and stores runs of the destination. Loops that the tile does not divide have a condition at
their end: what is not there is loaded from the tensor's first element instead, without a branch, so
that the loads of a work-item need not wait for each other.

On CPUs this way has 0.08 of the speed of tiles in registers (measured on pocl) and is never chosen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from math import prod

from ..problems import thresholds
from ..problems.arithmetic import alignment, power_of_two
from ..problems.problem import Problem
from ..problems.traits import Traits
from ..problems.words import on_groups, refusal_of_loops
from .banks import bank_cycles, dense
from .body import ScheduleBody
from .choices import Choices
from .grouped import GroupLayout, GroupTile, lay_out_group, moving_bytes, order_of
from .runs import common
from .schedule import VECTORS, Loop, Schedule, Store, Tile

LONGEST_VECTORS = thresholds.VECTOR_BYTES, thresholds.VECTOR_BYTES
"""As many elements of both sides as there can be in a vector."""


@dataclass(frozen=True, slots=True)
class GroupPlan(ScheduleBody):
    """A tile for each work-group; the number of a group counts the loops of the schedule's nest."""

    @property
    def layout(self) -> GroupLayout:
        """How a work-group moves its tile."""
        return lay_out_group(self.problem, self.schedule)

    def candidates(self, traits: Traits) -> Iterator[GroupPlan]:
        """Tiles with other runs, those like the rules' first; then changes of one thing.

        Where nothing goes through local memory, the tiles of other groups.
        """
        yield self
        if self.schedule.store.local:
            yield from islice(self._fitted(_other_tiles(self), traits), thresholds.TILES_TRIED)
            yield from islice(self.near(traits), thresholds.CHANGES_TRIED)
        else:
            p = self.problem
            yield from (
                _rows_by_rules(p, _grouped(traits, n)) for n in (*thresholds.GROUP_SIZES, 32)
            )

    def near(self, traits: Traits) -> Iterator[GroupPlan]:
        """The same tile by other vectors, words, gaps, groups or orders: first what differs least.

        What they are worth depends on the memory, its banks and the compiler.
        """
        if self.schedule.store.local:
            yield from self._fitted(_changes(self.problem, self.schedule, traits), traits)

    def _fitted(self, wishes: Iterable[Schedule], traits: Traits) -> Iterator[GroupPlan]:
        """The plans nearest to schedules, each once, but not this one."""
        known = {self.schedule}
        for wish in wishes:
            found = fitted(self.problem, wish, traits)
            if found and found.schedule not in known:
                known.add(found.schedule)
                yield found

    def follows(self, choices: Choices) -> bool:
        """Whether it is by the schedule that is chosen, as nearly as it can be."""
        return choices.schedule is None or not self.instead

    @property
    def alignment(self) -> tuple[int, int]:
        """At multiples of how many bytes source and destination must begin."""
        p = self.problem
        source, target = (
            alignment([n], t.bits) or 1 if p.word or n > 1 else 1
            for t, n in zip(p.dtypes, self.schedule.tile.widths, strict=True)
        )
        return source, target


def refusal(p: Problem) -> str:
    """Why the local family does not take the problem; empty if it does."""
    if reason := refusal_of_loops(p):
        return reason
    p = on_groups(p, local=True)
    nodes = p.nodes
    if p.exchanges:
        return ""
    if p.is_split:
        nbytes = GroupTile(p).elements * moving_bytes(p)
        most = thresholds.LARGEST_TILE_BYTES
        return f"blocks of both sides have {nbytes} bytes in common" if nbytes > most else ""
    if order_of(nodes, "src") == order_of(nodes, "dst"):
        return "source and destination have their loops in the same order"
    run = common(p, Tile(tuple(n.size.value for n in nodes), 1))
    nbytes = run * min(t.bits for t in p.dtypes) // 8
    if nbytes >= thresholds.SECTOR_BYTES:
        return f"both sides share runs of {nbytes} bytes, which need no local memory"
    return ""


def refusal_of_rows(p: Problem) -> str:
    """Why work-items of GPUs do not store what they have loaded; empty if they do."""
    if reason := refusal_of_loops(p):
        return reason
    return next((t.why for t in p.tables), "") if on_groups(p, local=False).is_split else ""


def needs(p: Problem, traits: Traits, *, through: bool = True) -> str:
    """What the device lacks for tiles ``through`` local memory, or without it; empty if nothing."""
    if through and traits.local_bytes < 2 * thresholds.TILE_BYTES:
        return "local memory of the device lies in main memory, or is very small"
    if not p.dst.dtype.is_packed or _stores_units(_ruled(p, traits, None, through=through)):
        return ""
    return "a byte of the destination holds elements of rows that no tile covers together"


def _stores_units(plan: GroupPlan) -> bool:
    """Whether all that is stored at once are whole units of elements that share bytes."""
    return plan.schedule.tile.widths[1] % plan.problem.dtypes[1].unit == 0


def plan(p: Problem, traits: Traits, choices: Choices, *, through: bool = True) -> GroupPlan:
    """The plan ``through`` local memory, or without it in the order of the destination.

    By the schedule that is chosen, as near as the problem can have it, else by the rules.
    """
    found = _ruled(p, traits, choices.local_size, through=through)
    if choices.schedule is None:
        return found
    wish = Schedule.parse(choices.schedule)
    if (wish.store.local > 0) == through and (nearest := fitted(found.problem, wish, traits)):
        return nearest
    why = f"the schedule {wish} does not fit: expected one such as {found}"
    return replace(found, instead=why)


def _ruled(p: Problem, traits: Traits, size: int | None, *, through: bool) -> GroupPlan:
    """The plan by the rules, for groups of a size."""
    p = on_groups(p, traits.begin_bytes, local=through)
    return (_by_rules if through else _rows_by_rules)(p, _grouped(traits, size))


def _grouped(traits: Traits, wanted: int | None) -> Traits:
    """The traits with a work-group of another size: a power of two that the device has."""
    size = min(wanted or traits.group_size, traits.group_size)
    return replace(traits, group_size=power_of_two(size))


def fitted(p: Problem, wish: Schedule, traits: Traits) -> GroupPlan | None:
    """The plan that is nearest to a schedule; None where the problem or GPUs have none like it."""
    nodes, traits = p.nodes, _grouped(traits, wish.group)
    order = [loop.axis for loop in wish.nest]
    local = wish.store.local > 0
    if max(len(wish.tile.extents) - 1, *order, 0) >= len(nodes):
        return None
    if not (local or wish.store.is_ordinary):
        return None
    tile, most = GroupTile(p, wish.tile), thresholds.MOST_STEPS * traits.group_size
    if local:
        room = traits.local_bytes - _shared_bytes(p)
        most = min(room * 8 // 9 // moving_bytes(p), most)
    first = [order_of(nodes, side)[0] for side in ("src", "dst")] if local else []
    if not tile.fit(most, first):
        return None
    found = _made(tile, wish.tile.widths, wish.store, traits, order)
    return found if _stores_units(found) else None


def _shared_bytes(p: Problem) -> int:
    """Local memory for values that elements of a tile share, at the most."""
    c = p.computation
    return len(c.operands) * thresholds.MOST_SHARED * c.real.nbytes if c else 0


def _made(
    tile: GroupTile, wanted: tuple[int, int], store: Store, traits: Traits,
    order: Sequence[int] = (),
) -> GroupPlan:  # fmt: skip
    """A tile moved by vectors of ``wanted`` elements, or as many as there can be."""
    p, nodes, longest = tile.p, tile.nodes, min(thresholds.VECTOR_BYTES, traits.begin_bytes)
    most = [min(n, longest * 8 // t.bits) for n, t in zip(wanted, p.dtypes, strict=True)]
    most[0] = min(most[0], max(1, thresholds.MOST_HELD >> len(p.exchanges)))
    widths = (_widths if store.local else _row_widths)(tile, most)
    axes = dict.fromkeys((*order, *range(len(nodes))))
    nest = tuple(
        Loop(k, spread=True) for k in axes if k not in tile.whole and nodes[k].size.value > 1
    )
    if store.local:
        store = replace(store, local=_word(tile, widths[1], store.local))
    group = traits.group_size
    if p.exchanges:  # as many work-items as have words that trade elements
        units = tile.elements // widths[0] >> len(p.exchanges)
        group = min(group, power_of_two(max(thresholds.IN_STEP, units)))
    found = Schedule(tile.tile(*widths), nest, 0, store, group)
    if store.local:
        lies = lay_out_group(p, found)
        is_dense = lies.banks == dense(lies.sizes, lies.read, tuple(n.split for n in nodes))
        found = replace(found, store=replace(store, dense=is_dense))
    return GroupPlan(p, found)


def _by_rules(p: Problem, traits: Traits) -> GroupPlan:
    moving, longest = moving_bytes(p), min(thresholds.VECTOR_BYTES, traits.begin_bytes)
    most = [longest * 8 // t.bits for t in p.dtypes]
    tile = _tile_by_rules(p, thresholds.TILE_BYTES, traits)
    loaded = _widths(tile, most)[0]
    if loaded == 1 or (
        tile.is_loose("src", loaded) and loaded * p.dtypes[0].nbytes <= thresholds.BANK_BYTES
    ):
        tile = _tile_by_rules(p, thresholds.SINGLE_TILE_BYTES, traits)
    together = prod(tile.sizes[k] for k in tile.below) * p.dtypes[1].nbytes
    word = max(1, thresholds.BANK_BYTES // moving) if together >= thresholds.GPU_LINE_BYTES else 1
    if p.computation and p.dtypes[0].is_packed:
        stored = _widths(tile, most)[1]
        word = max(1, min(thresholds.MOST_TALL, prod(tile.sizes) // (stored * traits.group_size)))
    return _served(tile, word, traits)


def _served(tile: GroupTile, word: int, traits: Traits) -> GroupPlan:
    """The plan with the widest vectors for which local memory keeps pace with memory.

    Where nothing is soon enough, what the banks serve soonest.
    """
    tried: list[GroupPlan] = []
    for found in _narrower(tile, word, traits):
        if tile.p.exchanges or _turns(found) <= thresholds.MOST_TURNS:
            return found
        tried.append(found)
    return min(tried, key=_turns)


def _narrower(tile: GroupTile, word: int, traits: Traits) -> Iterator[GroupPlan]:
    """A tile by the widest vectors; those that read longer words, and that store narrower ones."""
    widest = _made(tile, LONGEST_VECTORS, Store(local=word), traits)
    yield widest
    stored = widest.schedule.tile.widths[1]
    if tile.is_loose("dst", stored):  # it is stored by single elements otherwise
        return
    others = [(LONGEST_VECTORS, word << n) for n in (1, 2)]
    others += [((LONGEST_VECTORS[0], stored >> n), word) for n in (1, 2) if stored >> n]
    made = (_made(tile, widths, Store(local=n), traits) for widths, n in others)
    yield from filter(_stores_units, made)


def _turns(plan: GroupPlan) -> float:
    """Turns of the banks for what memory moves in one; 0 without local memory."""
    p, layout = plan.problem, plan.layout
    if (banks := layout.banks) is None:
        return 0.0
    turns = sum(bank_cycles(banks, one, moving_bytes(p)) for one in (layout.read, layout.write))
    return turns * thresholds.MOVED_A_TURN / sum(t.bits / 8 for t in p.dtypes)


def _tile_by_rules(p: Problem, most: int, traits: Traits) -> GroupTile:
    """As large as is good, ``most`` bytes, if there are enough for the device; else smaller."""
    moving = moving_bytes(p)
    most = int(most * thresholds.LARGER_TILES) if p.is_split else most
    large = _tile_of_runs(p, thresholds.GROUP_RUN_BYTES, thresholds.RUN_ELEMENTS, most // moving)
    short = min(map(large.run, ("src", "dst"))) * moving < thresholds.GPU_LINE_BYTES
    if p.exchanges and short and traits.local_bytes >= 3 * most:
        # Words that trade elements lie far apart, and leave less of a tile for runs.
        most *= 2
        large = _tile_of_runs(
            p, thresholds.GROUP_RUN_BYTES, thresholds.RUN_ELEMENTS, most // moving
        )
    enough = large.count() >= traits.compute_units * thresholds.GROUPS_PER_UNIT
    if large.elements * moving <= most and enough:
        return large
    least = (thresholds.SMALL_TILE_BYTES << bool(p.exchanges)) // max(t.nbytes for t in p.dtypes)
    return _tile_of_runs(p, thresholds.SMALL_RUN_BYTES, thresholds.SMALL_RUN_ELEMENTS, least)


def _tile_of_runs(p: Problem, run: int, limits: tuple[int, int], goal: int) -> GroupTile:
    least, most = limits
    runs = [min(most, max(least, run // t.nbytes)) for t in p.dtypes]
    if run == thresholds.GROUP_RUN_BYTES and runs[0] * runs[1] > goal:
        runs[0] = max(least, goal // runs[1])
    while p.exchanges and runs[0] * runs[1] << len(p.exchanges) > goal:
        runs[runs[0] < runs[1]] //= 2
    return _taken(p, runs, goal)


def _taken(p: Problem, runs: Sequence[int], goal: int) -> GroupTile:
    """The tile with such runs on both sides, of ``goal`` elements."""
    tile = GroupTile(p)
    for side, wanted in zip(("src", "dst"), runs, strict=True):
        tile.take(side, wanted)
    if p.is_split:
        tile.shrink(thresholds.LARGEST_TILE_BYTES // moving_bytes(p))
    order = [k for side in ("src", "dst") for k in order_of(tile.nodes, side)]
    if p.computation:  # first along what shares the values of operands
        order.sort(key=lambda k: any(not n.fixed or n.value for n in tile.nodes[k].operands))
    tile.fill(order, goal)
    return tile


def _rows_by_rules(p: Problem, traits: Traits) -> GroupPlan:
    nodes, longest = p.nodes, min(thresholds.VECTOR_BYTES, traits.begin_bytes)
    vector = max(1, min(LONGEST_VECTORS[0], *(longest * 8 // t.bits for t in p.dtypes)))
    total, each = prod(n.size.value for n in nodes), thresholds.VECTORS_EACH
    enough = traits.compute_units * thresholds.GROUPS_PER_UNIT * traits.group_size * vector
    while each > 1 and total < enough * each:
        each //= 2
    goal = traits.group_size * vector * each
    tile = GroupTile(p)
    tile.take("dst", goal)
    tile.fill(order_of(nodes, "dst"), goal)
    return _made(tile, LONGEST_VECTORS, Store(), traits)


def _widths(tile: GroupTile, most: Sequence[int]) -> tuple[int, int]:
    """The widest vectors of both sides, of ``most`` elements."""
    loaded, stored = max(1, most[0]), not tile.p.computation
    found = tile.width("src", tile.reads(loaded), loaded)
    while found < loaded or not tile.trades_in(loaded):
        loaded = found if found < loaded else loaded // 2
        found = tile.width("src", tile.reads(loaded), loaded)
    width = tile.width("dst", tile.order("dst"), most[1], stored=stored)
    if loaded == 1:
        loaded = tile.loose("src", most[0])
    if width * tile.p.dtypes[1].bits < 8 * thresholds.BANK_BYTES:
        width = max(width, tile.loose("dst", most[1]))
    return loaded, width


def _row_widths(tile: GroupTile, most: Sequence[int]) -> tuple[int, int]:
    """The same where what is loaded is stored: of one width, or loaded in pieces, or one by one."""
    (src, dst), inner, moves = most, tile.order("dst"), not tile.p.computation
    width = min(tile.width(side, inner, min(src, dst), stored=side == "dst" and moves)
                for side in ("src", "dst"))  # fmt: skip
    stored = tile.width("dst", inner, dst, stored=True)
    if tile.p.word or tile.p.computation or not inner or tile.sizes[inner[0]] % stored:
        return width, width
    if stored > width == src:
        return width, stored
    return (1, stored) if stored > 2 * width or width % tile.p.dtypes[1].unit else (width, width)


def _word(tile: GroupTile, stored: int, wanted: int) -> int:
    """How many steps of the source's nearest loop are taken of local memory as one word."""
    below = () if tile.traded or tile.is_loose("dst", stored) else tile.below
    word = power_of_two(max(1, min(wanted, thresholds.VECTOR_BYTES // moving_bytes(tile.p))))
    if not below or prod(tile.sizes[k] for k in below) % stored:
        return 1
    while tile.sizes[tile.order("src")[0]] % word:
        word //= 2
    return word


def _other_tiles(plan: GroupPlan) -> Iterator[Schedule]:
    """Schedules with other runs on both sides and of other sizes, the most usual first."""
    p, schedule = plan.problem, plan.schedule
    for size, *runs in sorted(
        product(thresholds.TILE_SIZES, thresholds.RUNS, thresholds.RUNS), key=_unusual
    ):
        elements = [max(1, run // t.nbytes) for run, t in zip(runs, p.dtypes, strict=True)]
        tile = _taken(p, elements, size // min(t.nbytes for t in p.dtypes))
        yield replace(schedule, tile=tile.tile(*LONGEST_VECTORS))


def _unusual(values: tuple[int, ...]) -> int:
    """How far a tile and its runs are from what is usual."""
    size, *runs = values
    return thresholds.TILE_SIZES.index(size) + sum(map(thresholds.RUNS.index, runs))


def _changes(p: Problem, one: Schedule, traits: Traits) -> list[Schedule]:
    """The schedules with the same tile, those that differ in one thing first."""
    loops = {loop.axis: loop for loop in one.nest}
    by_source = [loops[k] for k in reversed(order_of(p.nodes, "src")) if k in loops]
    nests = dict.fromkeys((one.nest, tuple(loops[k] for k in sorted(loops)), tuple(by_source)))
    lanes, stored = ([thresholds.VECTOR_BYTES // t.nbytes >> n for n in range(3)] for t in p.dtypes)
    groups = [n for n in thresholds.GROUP_SIZES if n <= traits.group_size]
    mine = (one.store.local, *one.tile.widths, one.store.dense, one.group, one.nest)
    every = sorted(
        product(VECTORS, lanes, stored, (False, True), groups, nests),
        key=lambda other: sum(a != b for a, b in zip(mine, other, strict=True)),
    )
    return [
        replace(one, tile=Tile.of(one.tile.extents, load, store), nest=nest, group=group,
                store=Store(local=word, dense=dense))
        for word, load, store, dense, group, nest in every if load and store
    ]  # fmt: skip
