"""`Body`: how a family of kernels carries out a problem, and what every such answer tells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ..problems.problem import Problem
from ..problems.traits import Traits
from .choices import Choices
from .schedule import Schedule


class Body:
    """What plans, tuners and reorders ask of every family's plan; the answers of most stand here.

    ``problem``: the loops as the kernel has them, which may count words. ``instead``: why the body
    is another one than the choices ask for, "" where it is not. ``has_nest``: the kernel takes its
    loops as an argument, so that a tile of nothing can be launched, and the universal program
    executes the same loops. ``parameter``: the choice that a tuner searches, "" for none.
    """

    __slots__ = ()
    problem: Problem
    instead: str = ""
    has_nest: ClassVar[bool] = False
    parameter: ClassVar[str] = ""

    @property
    def alignment(self) -> tuple[int, int]:
        """At multiples of how many bytes source and destination must begin; 1: at any element."""
        return 1, 1

    @property
    def value(self) -> object:
        """What the body has of the parameter; None without one."""
        return None

    @property
    def program(self) -> tuple[object, ...]:
        """What decides the program beside the problem; first what compilers fail at most."""
        return ()

    def seconds(self, traits: Traits) -> float | None:
        """What a launch takes by the cost model; None where there is no model of the family."""
        del traits
        return None

    def others(self, traits: Traits) -> Iterator[Body]:
        """Bodies of this family for the same problem, this one among them, the best first."""
        del traits
        yield from ()

    def candidates(self, traits: Traits) -> Iterator[Body]:
        """The bodies of this family that are worth a measurement, this one and the best first."""
        del traits
        yield from ()

    def near(self, traits: Traits) -> Iterator[Body]:
        """Bodies that differ from this one in a thing or two, the best first."""
        del traits
        yield from ()

    def follows(self, choices: Choices) -> bool:
        """Whether it has the tile and the nest of the schedule that is chosen, if one is."""
        return choices.schedule is None


@dataclass(frozen=True, slots=True)
class ScheduleBody(Body):
    """A problem and its schedule, which is all that is a choice about its kernel."""

    parameter: ClassVar[str] = "schedule"
    problem: Problem
    schedule: Schedule
    instead: str = ""

    @property
    def value(self) -> str:
        """What it has of the parameter."""
        return str(self.schedule)

    def __str__(self) -> str:
        return str(self.schedule)
