"""Plans with their kernels, by a user's wishes and the tuner's records; each is made once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ..kernels import launch
from ..kernels.source import Launch
from ..runtime import Engine
from ..schedule import Plan, Traits, make_plan
from ..schedule.choices import RULES, Choices
from ..schedule.computation import Computation
from ..tensors.desc import MemoryDesc
from ..tuning.records import Device, Lookup, lookup
from .recorded import planned_by_record


@dataclass(frozen=True, slots=True)
class Wish:
    """The user's wishes for a plan: a family, a transform, choices, or the tuner's records."""

    family: str | None = None
    transform: bool | None = None
    choices: Choices | None = None
    records: Lookup | None = None


def records_of(engine: Engine) -> Lookup | None:
    """The tuner's records of a device, if there are any that apply."""
    return lookup(Device(*engine.names))


KEPT_PLANS = 512
"""How many plans are cached, so that preparing a reorder again neither plans nor renders."""


def planned(
    src: MemoryDesc,
    dst: MemoryDesc,
    traits: Traits,
    computation: Computation | None,
    wish: Wish,
) -> tuple[Plan, Launch | None]:
    """The plan and its kernel, made once."""
    # Equal descriptors may name their formats differently, and a plan prints the names.
    names = (src.format.name, dst.format.name)
    return _planned(src, dst, traits, computation, wish, names)


@lru_cache(maxsize=KEPT_PLANS)
def _planned(
    src: MemoryDesc,
    dst: MemoryDesc,
    traits: Traits,
    computation: Computation | None,
    wish: Wish,
    names: tuple[str, str],
) -> tuple[Plan, Launch | None]:
    del names
    if wish.records and not (wish.choices or wish.family or computation):
        found = planned_by_record(src, dst, traits, wish.records, transform=wish.transform)
        if found:
            return found
    plan = make_plan(
        src, dst, traits, wish.family, computation,
        transform=wish.transform, choices=wish.choices or RULES,
    )  # fmt: skip
    return plan, launch(plan)
