"""One case: who takes part, checked for the right result first, then raced."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

import clformats as cf

from .arena import Arena, NotComparableError, WrongResultError
from .cases import MB, Case
from .measure import Settings, Slot, race
from .peers import copy, libdnnl, numpy_, torch_
from .report import AGAIN, BAKED, COMMAND, COPY, EMPTY, OURS, TUNED, Record

BATCH = 16
"""On a GPU large cases run so often before a wait, else its latency is part of every time."""


@dataclass
class Entries:
    """The contestants that take part, and why the others do not."""

    slots: list[Slot] = field(default_factory=list)
    notes: dict[str, str] = field(default_factory=dict)
    onednn: str = ""


def contest(case: Case, engine: cf.Engine, settings: Settings) -> Record:
    """Run a case. What goes wrong with ours stands in the record's ``error``."""
    src, dst = case.descriptors()
    blank = Record(case.name, case.group, str(src), str(dst))
    try:
        reorder = cf.Reorder(src, dst, engine, tuned=False)
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
    try:
        entries = enter(arena, reorder)
    except (cf.Error, WrongResultError) as error:
        return replace(record, error=str(error))
    times = race(entries.slots, settings, np.random.default_rng())
    return replace(record, times=times, notes=entries.notes, onednn=entries.onednn)


def enter(arena: Arena, reorder: cf.Reorder) -> Entries:
    """Everyone who can do the case, after a look at the result of each."""
    entries = Entries()
    memories = arena.memories(arena.src, arena.dst)

    def ours() -> object:
        return reorder(arena.stream, *memories)

    batch = BATCH if arena.moved >= 18 * MB and not arena.on_host else 1
    arena.check_device(ours)
    moves = {OURS: ours, AGAIN: ours, COPY: copy.kernel(arena), COMMAND: copy.command(arena)}
    for name, other in _otherwise(arena).items():
        moves[name] = partial(other, arena.stream, *memories)
        arena.check_device(moves[name])
    if arena.moved < MB:
        moves[EMPTY] = copy.empty(arena)
    for name, enqueue in moves.items():
        entries.slots.append(Slot(name, waiting(arena.stream, enqueue, batch), batch))
    _peers(entries, arena)
    return entries


def _otherwise(arena: Arena) -> dict[str, cf.Reorder]:
    """The same reorder with its sizes as constants, and as the tuner recorded it if it did."""
    pair = arena.src, arena.dst, arena.engine
    found = {BAKED: cf.Reorder(*pair, tuned=cf.Choices(baked=True)), TUNED: cf.Reorder(*pair)}
    if not found[TUNED].plan.record:
        del found[TUNED]
    return found


def waiting(stream: cf.Stream, enqueue: Callable[[], object], batch: int) -> Callable[[], None]:
    """Enqueue so often, then wait."""
    if batch == 1:

        def once() -> None:
            enqueue()
            stream.wait()

        return once

    def often() -> None:
        for _ in range(batch):
            enqueue()
        stream.wait()

    return often


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
        run = prepare()
        if arena.on_host:
            arena.check_host(run, pads=pads)
    except (NotComparableError, WrongResultError) as reason:
        entries.notes[name] = str(reason)
        return
    entries.slots.append(Slot(name, run))
