"""One case: who takes part, checked for the right result first, then raced."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import cycle, repeat

import numpy as np

import clformats as cf
from clformats.reorders.profiles import traits_of
from clformats.spaces.space import spaces
from clformats.timing import Settings, Slot, race

from . import rotation
from .arena import Arena, NotComparableError, WrongResultError
from .cases import MB, Case
from .peers import copy, cuda, libdnnl, numpy_, torch_
from .report import AGAIN, BAKED, COMMAND, COPY, CUPY, EMPTY, OURS, TUNED, Record


@dataclass
class Entries:
    """The contestants that take part, and why the others do not.

    ``turn``: the numbers of the places that all of them go round in together.
    """

    turn: Iterator[int] = field(default_factory=lambda: repeat(0))
    slots: list[Slot] = field(default_factory=list)
    notes: dict[str, str] = field(default_factory=dict)
    onednn: str = ""

    def in_turn(self, runs: Sequence[Callable[[], object]]) -> Callable[[], object]:
        """Each call runs the one of the next place, whoever ran at the place before."""

        def run() -> object:
            return runs[next(self.turn)]()

        return run


def contest(
    case: Case, engine: cf.Engine, settings: Settings, *, sweep: bool = False, tune: int = 0
) -> Record:
    """Run a case. What goes wrong with ours stands in the record's ``error``.

    ``sweep``: on a GPU every family that takes the case, and the tuner's space, run as well.
    ``tune``: the seconds for which it is tuned before; what is found is recorded.
    """
    src, dst = case.descriptors()
    blank = Record(case.name, case.group, str(src), str(dst))
    try:
        if tune and not case.shared:
            cf.tune(src, dst, engine, time_limit=tune)
        reorder = cf.Reorder(src, dst, engine, tuned=False, wait=True, attr=case.attr())
    except cf.Error as error:
        return replace(blank, error=str(error))
    arena = Arena(case, engine)
    record = replace(
        blank,
        moved=arena.moved,
        copied=arena.copied,
        family=reorder.plan.family,
        plan=str(reorder.plan),
    )
    rng = np.random.default_rng()
    try:
        if not arena.on_host:
            entries, batches = on_device(arena, reorder, sweep=sweep)
            times = rotation.race(batches, settings, rng)
        else:
            entries = enter(arena, reorder)
            times = race(entries.slots, settings, rng)
    except (cf.Error, WrongResultError) as error:
        return replace(record, error=str(error))
    return replace(record, times=times, notes=entries.notes, onednn=entries.onednn)


def enter(arena: Arena, reorder: cf.Reorder) -> Entries:
    """Everyone who can do the case, after a look at the result of each."""
    places = arena.turns()
    entries = Entries(cycle(range(len(places))))
    for name, move in {OURS: reorder, AGAIN: reorder, **_otherwise(arena)}.items():
        runs = [partial(move, a.stream, *a.memories(a.src, a.dst)) for a in places]
        arena.check_device(runs[0])
        entries.slots.append(Slot(name, waiting(arena.stream, entries.in_turn(runs))))
    for name, make in ((COPY, copy.kernel), (COMMAND, copy.command)):
        copies = entries.in_turn([make(a) for a in places])
        entries.slots.append(Slot(name, waiting(arena.stream, copies)))
    if arena.moved < MB:
        nothing = partial(copy.empty(arena, arena.stream), arena.buffers)
        entries.slots.append(Slot(EMPTY, waiting(arena.stream, nothing)))
    _peers(entries, places)
    return entries


def _otherwise(arena: Arena) -> dict[str, cf.Reorder]:
    """The same reorder with its sizes as constants, and as the tuner recorded it if it did."""
    pair = arena.src, arena.dst, arena.engine
    if arena.case.shared:
        return {}
    found = {
        BAKED: cf.Reorder(*pair, tuned=cf.Choices(baked=True)),
        TUNED: cf.Reorder(*pair, wait=True),
    }
    if not found[TUNED].plan.record:
        del found[TUNED]
    return found


def waiting(stream: cf.Stream, enqueue: Callable[[], object], batch: int = 1) -> Callable[[], None]:
    """Enqueue so often, then wait."""

    def run() -> None:
        for _ in range(batch):
            enqueue()
        stream.wait()

    return run


def on_device(
    arena: Arena, reorder: cf.Reorder, *, sweep: bool
) -> tuple[Entries, dict[str, rotation.Batch]]:
    """Everyone who can do the case on a device that is no CPU, after a look at each result."""
    import pyopencl as cl

    stream, pairs = arena.stream, rotation.buffers(arena.stream, arena.buffers)
    own = {OURS: reorder, AGAIN: reorder, **_otherwise(arena), **(_swept(arena) if sweep else {})}
    batches: dict[str, rotation.Batch] = {}
    for name, move in own.items():
        memories = arena.memories(arena.src, arena.dst)
        arena.check_device(partial(move, arena.stream, *memories))
        batches[name] = rotation.ours(move, stream, pairs)
    batches[COPY] = rotation.ours(copy.reorder(arena), stream, pairs)
    batches[COMMAND] = rotation.opencl_batch(
        lambda pair: cl.enqueue_copy(stream.queue, pair[1], pair[0], byte_count=arena.copied),
        pairs,
    )
    if arena.moved < MB:
        batches[EMPTY] = rotation.opencl_batch(copy.empty(arena, stream), pairs)
    entries = Entries()
    for name, prepare in (("torch", cuda.torch_batch), (CUPY, cuda.cupy_batch)):
        try:
            _comparable(arena)
            batches[name] = prepare(arena)
        except (NotComparableError, WrongResultError) as reason:
            entries.notes[name] = str(reason)
    return entries, batches


def _comparable(arena: Arena) -> None:
    """Raise `NotComparableError` for what no peer can be asked."""
    if arena.src.dtype.is_packed or arena.dst.dtype.is_packed or arena.case.shared:
        raise NotComparableError("elements share bytes, or groups of them a scale")


def _swept(arena: Arena) -> dict[str, cf.Reorder]:
    """The case in other families, and in its own with every choice that the tuner has."""
    src, dst, engine = arena.src, arena.dst, arena.engine
    found: dict[str, cf.Reorder] = {}
    places = spaces(src, dst, traits_of(engine))
    for place in places[1:]:
        name = place.family
        found[f"family {name}"] = cf.Reorder(src, dst, engine, family=name, tuned=False)
    for place in places[:1]:
        for value in place.values[1:]:
            wish = place.choices(value)
            found[f"choice {wish}"] = cf.Reorder(src, dst, engine, tuned=wish)
    return found


def _peers(entries: Entries, places: list[Arena]) -> None:
    _peer(entries, places, "oneDNN", partial(_onednn, entries), pads=True)
    _peer(entries, places, "torch", torch_.move)
    _peer(entries, places, "numpy", numpy_.move)


def _onednn(entries: Entries, arena: Arena) -> Callable[[], None]:
    run, entries.onednn = libdnnl.move(arena)
    return run


def _peer(
    entries: Entries,
    places: list[Arena],
    name: str,
    prepare: Callable[[Arena], Callable[[], object]],
    *,
    pads: bool = False,
) -> None:
    """Let a peer take part if it can do the case and its result is right."""
    try:
        _comparable(places[0])
        runs = [prepare(arena) for arena in places]
        if places[0].on_host:
            places[0].check_host(runs[0], pads=pads)
    except (NotComparableError, WrongResultError) as reason:
        entries.notes[name] = str(reason)
        return
    entries.slots.append(Slot(name, entries.in_turn(runs)))
