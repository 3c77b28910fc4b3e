"""`Choice`: one way to run a node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import InvalidNetwork, expect
from ..formats import Format
from .cost import Cost
from .named import ANY, FormatName, listed, named

Views = Mapping[int, int | tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to run a node.

    ``ins`` has a format for each input, None for one that is read in any format; ``outs`` has one
    for each output. A format is a name or a `clformats.Format`; a name that clformats does not know
    is a format too. ``cost`` is in seconds, a number or a `Cost`; None where it is to be measured.
    ``kernel`` is the author's own handle, handed back in the plan; ``workspace`` is in bytes.
    ``views`` names the inputs that share memory with an output: ``{0: 0}`` says that input 0 lies
    in output 0, as the parts of a concatenation do, or that output 0 lies in input 0, as the
    result of a reshape does; see `clformats.networks.views`.

    >>> Choice(("nchw", None), ("nChw16c",), cost=1e-4).outs
    ('nChw16c',)
    """

    ins: tuple[FormatName | None, ...]
    outs: tuple[FormatName, ...]
    cost: Cost | float | None = None
    kernel: Any = None
    workspace: int = 0
    views: Views = field(default_factory=dict)

    def __init__(  # a record with many fields
        self,
        ins: Iterable[Format | str | None],
        outs: Iterable[Format | str],
        cost: Cost | float | None = None,
        kernel: Any = None,
        workspace: int = 0,
        views: Views | None = None,
    ) -> None:
        given = [listed(ins, "ins"), listed(outs, "outs")]
        names = [tuple(None if n in ANY else named(n, "a choice") for n in g) for g in given]
        if None in names[1]:
            raise InvalidNetwork(f"a choice writes concrete formats, got outs={given[1]!r}")
        set_ = object.__setattr__
        set_(self, "ins", names[0])
        set_(self, "outs", names[1])
        set_(self, "cost", cost)
        set_(self, "kernel", kernel)
        set_(self, "workspace", workspace)
        set_(self, "views", _checked_views(views))

    def __str__(self) -> str:
        sides = (" ".join(n or "*" for n in names) for names in (self.ins, self.outs))
        return " -> ".join(sides) + " in place" * bool(self.views)

    @property
    def shared(self) -> Iterator[tuple[int, int]]:
        """The pairs of an input and an output that share memory."""
        for i, outs in self.views.items():
            for o in (outs,) if isinstance(outs, int) else outs:
                yield i, o


def _checked_views(views: Views | None) -> dict[int, int | tuple[int, ...]]:
    expect(views, Mapping | None, "views")
    found: dict[int, int | tuple[int, ...]] = {}
    for i, o in (views or {}).items():
        numbers = (i, *listed(o, "views")) if isinstance(o, tuple | list) else (i, o)
        if any(not isinstance(n, int) for n in numbers):
            raise InvalidNetwork(f"views: got {views!r}, expected numbers of inputs and outputs")
        found[i] = o
    return found
