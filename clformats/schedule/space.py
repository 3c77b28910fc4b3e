"""The search space of a reorder: the tuning parameters and their legal combinations, as data.

A family's table has the values of each parameter. Which of them make a difference depends on the
problem: a loop of 12 steps has no vector of 16. So a configuration is *legal* if the plan made with
it has exactly these values; any other would be the same kernel under a second name. The plan by the
rules is one of the legal configurations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

from ..tensors.desc import MemoryDesc
from .choices import Choices, either
from .copy import CopyPlan
from .generic import GenericPlan
from .local import LocalPlan
from .plan import Body, Plan, make_plan
from .plan import families as families_on
from .profile import profile_of
from .scheduled import ScheduledPlan
from .search import ranked
from .traits import Traits

Config = Mapping[str, Any]
"""Names of parameters and their values."""

TABLES: Mapping[type[Body], Mapping[str, tuple[Any, ...]]] = {
    CopyPlan: {
        "run_bytes": tuple(1 << n for n in range(12, 21)),
        "nontemporal": (False, True),
    },
    LocalPlan: {"local_size": (32, 64, 128, 256)},
    GenericPlan: {"local_size": (1, 8, 16, 32, 64, 128, 256)},
}
"""The parameters of each family, by the type of its plans, with all values worth a try."""

SCHEDULES = 24
"""How many schedules of a problem are worth a try: those that are estimated to cost the least."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """A condition on configurations, in words and as a predicate."""

    text: str
    holds: Callable[[Config], bool]


@dataclass(frozen=True)
class Space:
    """The search space of moving ``src`` to ``dst`` in one family.

    Every configuration reads and writes ``nbytes``. ``default`` is the configuration of the rules.
    """

    src: MemoryDesc
    dst: MemoryDesc
    traits: Traits
    family: str
    table: Mapping[str, tuple[Any, ...]]
    constraints: tuple[Constraint, ...]
    default: Config
    nbytes: int

    def plan(self, config: Config, *, baked: bool | None = None) -> Plan:
        """The plan of a configuration."""
        choices = Choices(**config, baked=baked)
        return make_plan(self.src, self.dst, self.traits, self.family, choices=choices)

    def choices(self, config: Config) -> Choices:
        """The fewest choices that lead to a configuration.

        Values that the rules give anyway are left to them, so that the choices suit other shapes.
        """
        left = dict(config)
        for name in config:
            fewer = {k: v for k, v in left.items() if k != name}
            if outcome(self.plan(fewer), self.table) == config:
                left = fewer
        by_rules = make_plan(self.src, self.dst, self.traits).family == self.family
        return Choices(**left, family=None if by_rules else self.family)

    def is_legal(self, config: Config) -> bool:
        """Whether the plan made with the configuration has its values."""
        return tuple(config[name] for name in self.table) in self._legal

    @cached_property
    def _legal(self) -> frozenset[tuple[Any, ...]]:
        found = {tuple(self.default.values())}
        for first in _configs(self.table):
            got = outcome(self.plan(first), self.table)
            # A group's size divides the number of work-items, or is another one.
            same = got.get("local_size") == first.get("local_size")
            if same and all(c.holds(got) for c in self.constraints):
                found.add(tuple(got.values()))
        return frozenset(found)

    @property
    def configurations(self) -> Iterator[Config]:
        """Every legal configuration, in a fixed order."""
        for values in sorted(self._legal):
            yield dict(zip(self.table, values, strict=True))

    @property
    def parameters(self) -> dict[str, list[Any]]:
        """The values that each parameter takes in some legal configuration."""
        columns = zip(*self._legal, strict=True)
        return {k: sorted(set(column)) for k, column in zip(self.table, columns, strict=True)}

    def __len__(self) -> int:
        return len(self._legal)

    def __str__(self) -> str:
        lines = [f"{self.family}: {len(self)} configurations, each moves {self.nbytes} bytes"]
        lines += [f"  {k:<12}{', '.join(map(str, v))}" for k, v in self.parameters.items()]
        lines += [f"  where       {c.text}" for c in self.constraints]
        return "\n".join(lines)


def _configs(table: Mapping[str, tuple[Any, ...]]) -> Iterator[Config]:
    """Every combination of values."""
    return (dict(zip(table, values, strict=True)) for values in product(*table.values()))


def outcome(plan: Plan, names: Iterable[str]) -> dict[str, Any]:
    """The values of a plan, named as in `Choices`."""
    body, groups = plan.body, plan.choices.local_size
    has: dict[str, Any] = {}
    if isinstance(body, CopyPlan):
        has = {"run_bytes": body.run_bytes, "nontemporal": body.nontemporal}
    elif isinstance(body, LocalPlan):
        has = {"local_size": body.group}
    elif isinstance(body, GenericPlan):
        has = {"local_size": either(groups, body.group)}
    elif isinstance(body, ScheduledPlan):
        has = {"schedule": str(body.schedule)}
    return {name: has[name] for name in names}


def space(
    src: MemoryDesc, dst: MemoryDesc, traits: Traits, family: str | None = None
) -> Space | None:
    """The search space of a reorder, in the family of the rules or in another one.

    None if there is nothing to choose: nothing is moved, or the family has no parameters.
    Raises `InvalidDescriptor`, and `Unsupported` if the family does not take the reorder.
    """
    plan = make_plan(src, dst, traits, family)
    table = TABLES.get(type(plan.body))  # type: ignore[arg-type]
    if isinstance(plan.body, ScheduledPlan):
        found = ranked(plan.body.problem, profile_of(traits))[:SCHEDULES]
        table = {"schedule": tuple(map(str, found))}
    if table is None:
        return None
    default = outcome(plan, table)
    return Space(src, dst, traits, plan.family, table, (), default, plan.problem.nbytes)


def families(src: MemoryDesc, dst: MemoryDesc, traits: Traits) -> list[str]:
    """The families with parameters that take a reorder; generic only if no other one does.

    The first is the one that the rules choose. Raises `InvalidDescriptor` and `Unsupported` for an
    impossible reorder.
    """
    plan = make_plan(src, dst, traits)
    rejected = {name for name, _ in plan.rejected}
    others = [
        f.name for f in families_on(traits)
        if f.name not in (plan.family, "generic", *rejected)
        and not f.refusal_on(plan.problem, traits)
    ]  # fmt: skip
    names = [plan.family, *others] if plan.body else []
    return [name for name in names if space(src, dst, traits, name)]
