"""One case: who takes part, checked for the right result first, then raced."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

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
    """The contestants that take part, and why the others do not."""

    slots: list[Slot] = field(default_factory=list)
    notes: dict[str, str] = field(default_factory=dict)
    onednn: str = ""


def contest(case: Case, engine: cf.Engine, settings: Settings, *, sweep: bool = False) -> Record:
    """Run a case. What goes wrong with ours stands in the record's ``error``.

    ``sweep``: on a GPU every family that takes the case, and the tuner's space, run as well.
    """
    src, dst = case.descriptors()
    blank = Record(case.name, case.group, str(src), str(dst))
    try:
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
    entries = Entries()
    memories = arena.memories(arena.src, arena.dst)

    def ours() -> object:
        return reorder(arena.stream, *memories)

    arena.check_device(ours)
    moves = {OURS: ours, AGAIN: ours, COPY: copy.kernel(arena), COMMAND: copy.command(arena)}
    for name, other in _otherwise(arena).items():
        moves[name] = partial(other, arena.stream, *memories)
        arena.check_device(moves[name])
    if arena.moved < MB:
        moves[EMPTY] = partial(copy.empty(arena, arena.stream), arena.buffers)
    for name, enqueue in moves.items():
        entries.slots.append(Slot(name, waiting(arena.stream, enqueue)))
    _peers(entries, arena)
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


def _peers(entries: Entries, arena: Arena) -> None:
    _peer(entries, arena, "oneDNN", lambda: _onednn(entries, arena), pads=True)
    _peer(entries, arena, "torch", lambda: torch_.move(arena))
    _peer(entries, arena, "numpy", lambda: numpy_.move(arena))


def _onednn(entries: Entries, arena: Arena) -> Callable[[], None]:
    run, entries.onednn = libdnnl.move(arena)
    return run


def _peer(
    entries: Entries,
    arena: Arena,
    name: str,
    prepare: Callable[[], Callable[[], None]],
    *,
    pads: bool = False,
) -> None:
    """Let a peer take part if it can do the case and its result is right."""
    try:
        _comparable(arena)
        run = prepare()
        if arena.on_host:
            arena.check_host(run, pads=pads)
    except (NotComparableError, WrongResultError) as reason:
        entries.notes[name] = str(reason)
        return
    entries.slots.append(Slot(name, run))
