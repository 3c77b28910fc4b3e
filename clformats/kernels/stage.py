"""Boxes that are collected in private memory: the texts for a walk with a stage.

See `clformats.schedule.staging`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..formats.expr import Expr, Var
from ..schedule.staging import STAGE_BYTES
from ..schedule.tile import TilePlan
from ..schedule.traits import LINE_BYTES
from ..schedule.walk import Stage
from .source import Arguments


@dataclass(frozen=True, slots=True)
class Along:
    """Where a tile is along the rows: the variable, and where it would start without an overlap."""

    name: str
    start: str


@dataclass(frozen=True, slots=True)
class Staging:
    """What ``tile.mako`` needs to collect boxes.

    The stage has so many ``lines``, the first ``front`` of them for what a tile that overlaps has
    of the box before. A tile starts at ``row`` and ``along``, which is ``to`` from
    where element 0 of row 0 would lie. Of the box, ``first`` and ``last`` are the positions of the
    rows' loop, ``at`` is its variable, and ``end`` is where it ends along the rows; a tile has
    ``height`` rows. Rows are ``pitch`` elements apart in the stage, ``stride`` in the destination;
    ``linked`` says that each begins where the one before has ended.
    """

    lines: int
    front: int
    row: str
    along: Along
    to: str
    at: str
    first: str
    last: str
    height: int
    end: str
    pitch: str
    stride: str
    linked: bool


def staging_of(
    plan: TilePlan,
    arguments: Arguments,
    sizes: Sequence[Expr],
    dst: Sequence[Expr],
    positions: Sequence[str],
) -> Staging | None:
    """The texts, if any; ``positions``: how many tiles follow each other along each loop."""
    path = plan.walk
    stage = path.stage
    if stage is None:
        return None
    arguments.values["held"] = stage.held
    if stage.pitch:
        arguments.values["pitch"] = stage.pitch
    row, along, steps = stage.row, stage.along, plan.steps_along(stage.along)
    front = -(-steps * plan.problem.dtypes[1].nbytes // LINE_BYTES)
    # Others that rows begin and end in.
    lines = front + STAGE_BYTES[stage.nbytes > STAGE_BYTES[0]] // LINE_BYTES + 3
    pitch = strides_in(stage, dst)[row]
    rows_first = path.middle == row
    first, last = ("begins", "ends") if rows_first else ("0", positions[row])
    end = str(sizes[along]) if rows_first else f"min(ends * {steps}, (idx)({sizes[along]}))"
    return Staging(
        lines=lines, front=front, row=f"x{row}",
        along=Along(f"x{along}", str(Var(f"at{along}") * steps)),
        to=str(Var(f"x{row}") * pitch + Var(f"x{along}")),
        at=f"at{row}", first=first, last=last, height=plan.steps_along(row), end=end,
        pitch=str(pitch), stride=str(dst[row]), linked=not stage.pitch,
    )  # fmt: skip


def strides_in(stage: Stage, dst: Sequence[Expr]) -> list[Expr]:
    """The strides of the loops in the stage, where those in the destination are ``dst``."""
    return [
        Var("pitch") if k == stage.row and stage.pitch else stride for k, stride in enumerate(dst)
    ]
