"""Other plans for a reorder whose kernel ends the compiler, and what a kernel is tried with.

What they write is the same, as of any two plans of one problem.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..host.packing import storage_size
from ..kernels import launch
from ..kernels.source import Launch
from ..runtime.guard import FirstLaunch
from ..runtime.outcomes import CompilerDied
from ..schedule import Plan, Traits
from ..schedule.profile import profile_of
from ..schedule.scheduled import ScheduledPlan
from ..schedule.search import ranked
from ..tensors.desc import MemoryDesc
from ..values.attr import OLD

TILES = 4
"""So many other tiles are tried: each that fails as well takes some seconds."""
LAST = "generic"
"""The family that is tried last: its kernels are the plainest."""
LARGEST = 1 << 30
"""The largest buffer, in bytes, that a kernel is tried with."""


def others(plan: Plan, traits: Traits) -> Iterator[tuple[Plan, Launch]]:
    """Plans for the same memory objects by other kernels, the best first."""
    if isinstance(plan.body, ScheduledPlan):
        yield from _with_other_tiles(plan, plan.body, traits)
    if plan.family != LAST and (last := plan.by_family(LAST, traits)) is not None:
        made = launch(last)
        if made is not None:
            yield last, made


def _with_other_tiles(
    plan: Plan, body: ScheduledPlan, traits: Traits
) -> Iterator[tuple[Plan, Launch]]:
    tiles = {body.schedule.tile}
    for schedule in ranked(body.problem, profile_of(traits)):
        if schedule.tile in tiles:
            continue
        tiles.add(schedule.tile)
        other = replace(plan, body=replace(body, schedule=schedule), record="")
        made = launch(other) if _begins_anywhere(other, plan) else None
        if made is not None:
            yield other, made
        if len(tiles) > TILES:
            return


def _begins_anywhere(other: Plan, plan: Plan) -> bool:
    """Whether a plan takes all memory that another takes: calls have checked for that one."""
    return all(a <= b for a, b in zip(other.alignment, plan.alignment, strict=True))


def instead(plan: Plan, family: str, deaths: list[CompilerDied]) -> Plan:
    """The plan that is carried out, with what ended the compiler before among its reasons."""
    why = tuple((family, str(death.outcome)) for death in deaths)
    return replace(plan, rejected=(*plan.rejected, *why))


def trial(plan: Plan, made: Launch) -> FirstLaunch | None:
    """One work-group of a kernel: it stays inside memory of the sizes that it is made for.

    None where it would take too much of it, and of images.
    """
    src, dst = plan.problem.src, plan.problem.dst
    if src.format.image or dst.format.image:
        return None
    index, buffers = np.int64 if made.wide else np.int32, [_nbytes(src), _nbytes(dst)]
    arguments = [a if isinstance(a, bytes) else index(a).tobytes() for a in made.arguments]
    computation, others = plan.problem.computation, list[int | bytes]()
    if computation is not None:
        others += [_nbytes(o.desc) for o in computation.operands if o.name != OLD]
        others += [bytes(computation.real.nbytes)] * len(computation.scalars)
    if max(size for size in (*buffers, *others) if isinstance(size, int)) > LARGEST:
        return None
    return FirstLaunch(Launch.KERNEL, made.local_size, (*buffers, *arguments, *others))


def trial_of_sums(plan: Plan, made: Launch) -> FirstLaunch | None:
    """The same for the kernel that follows, which has the destination on both sides."""
    dst = plan.problem.dst
    return trial(replace(plan, problem=replace(plan.problem, src=dst, computation=None)), made)


def _nbytes(desc: MemoryDesc) -> int:
    return max(64, storage_size(desc) * desc.dtype.storage.itemsize)
