"""Tuning parameters: decisions of a plan that a record of the tuner, or you, may override.

A choice is a wish. If a problem cannot have it (tiles of 16 steps in a loop of 12), the plan takes
the nearest possible value, or that of the rules; the result is always right.
`clformats.spaces.space` lists the choices that make a difference for a problem.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from ..errors import InvalidArgument, shown
from .schedule import EXAMPLE, Schedule

if TYPE_CHECKING:
    from typing import Any

LOCAL_SIZES = range(1, (1 << 16) + 1)
"""The work-items that a work-group may have."""
_EXPECTED = {
    "family": (str, "a name"),
    "schedule": (str, f"a line such as {EXAMPLE!r}"),
    "local_size": (int, f"a number of 1 to {LOCAL_SIZES[-1]}"),
    "baked": (bool, "True or False"),
}


@dataclass(frozen=True, slots=True)
class Choices:
    """Tuning parameters of a reorder. None leaves a decision to the rules.

    ``family``: the family of kernels.
    ``schedule``: how tiles are moved, in one line, see `clformats.schedule.schedule`.
    ``local_size``: work-items in a work-group, where no ``schedule`` says it. ``baked``: sizes,
    strides and offsets are constants of the kernel instead of its arguments.

    Raises `InvalidArgument` for a value of a wrong type or out of range.
    """

    family: str | None = None
    schedule: str | None = None
    local_size: int | None = None
    baked: bool | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None:
                _check(field.name, value)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Choices:
        """From names and values, as a record has them. Raises `InvalidArgument`."""
        known = {field.name for field in fields(cls)}
        if unknown := sorted(set(values) - known):
            raise InvalidArgument(
                f"got choices {', '.join(map(repr, unknown))}, expected some of "
                f"{', '.join(sorted(known))}"
            )
        return cls(**values)

    def chosen(self) -> dict[str, Any]:
        """The choices that are not None."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value is not None}

    def only(self, names: Container[str]) -> Choices:
        """Only the choices of these names; the others are left to the rules."""
        return Choices(**{k: value for k, value in self.chosen().items() if k in names})

    def __str__(self) -> str:
        texts = [
            name if value is True else f"no {name}" if value is False else f"{name} {value}"
            for name, value in self.chosen().items()
        ]
        return ", ".join(texts).replace("_", " ") or "by the rules"

    def __repr__(self) -> str:
        return f"Choices({', '.join(f'{k}={v!r}' for k, v in self.chosen().items())})"


RULES = Choices()
"""All decisions are left to the rules."""


def _check(name: str, value: Any) -> None:
    kind, expected = _EXPECTED[name]
    fits = isinstance(value, kind) and isinstance(value, bool) == (kind is bool)
    if not fits or (kind is int and value not in LOCAL_SIZES):
        raise InvalidArgument(f"choice {name}: got {shown(value)}, expected {expected}")
    if name == "schedule":
        Schedule.parse(value)
