"""`Kernels`: what a backend can do, as rules that give each node its choices.

Rules are functions in Python, `same` and `view` for the operations between, or a table of timings
in CSV or JSON (`clformats.networks.tables`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ..errors import InvalidNetwork, shown
from ..formats import Format
from . import tables
from .choice import Choice
from .cost import Cost, as_cost
from .graph import Network, Node, Value, checked_choices
from .named import FormatName, listed, named, path_of, plain
from .views import kind_of, refusal, surroundings

Rule = Callable[[Node], Iterable[Choice]]
CostRule = Callable[[Node, str], "Cost | float"]


class Kernels:
    """A table of what a backend can do.

    >>> kernels = Kernels()
    >>> kernels.same("Relu", "MaxPool", formats=["nchw", "nhwc"], cost=1e-5)
    >>> kernels.view("Concat", formats=["nchw", "nhwc"])
    >>> @kernels.of("Conv")
    ... def conv(node):
    ...     yield Choice(("nchw", None, None)[: len(node.inputs)], ("nchw",), 1e-3)

    ``plain`` gives an operation that no rule knows plain formats, so that it never keeps a network
    from being planned; without it such a node is refused.
    """

    def __init__(self, *, plain: bool = False) -> None:
        self.plain = plain
        self._rules: dict[str, list[Rule]] = {}
        self._named: dict[str, list[Choice]] = {}
        self._views: dict[str, tuple[FormatName, ...]] = {}
        self._checks: list[Callable[[Network], str]] = []

    @classmethod
    def load(cls, path: str | Path) -> Kernels:
        """A table in CSV or JSON, or a Python file that defines ``kernels``."""
        file = path_of(path)
        if file.suffix == ".py":
            found = tables.from_python(file)
            if not isinstance(found, Kernels):
                raise InvalidNetwork(
                    f"{file} defines no `kernels`, a cf.Kernels: got {shown(found)}"
                )
            return found
        result = cls(plain=True)
        for row in tables.rows(file):
            result.check(row.unused)
            if row.node:
                result.node(row.node, [row.choice])
            else:
                result.of(row.op)(row.choices)
        return result

    # --- rules ------------------------------------------------------------------------------------

    def of(self, *ops: str) -> Callable[[Rule], Rule]:
        """Decorator: a function of a `Node` that gives its choices."""

        def add(rule: Rule) -> Rule:
            for op in ops:
                self._rules.setdefault(op, []).append(rule)
            return rule

        return add

    def check(self, rule: Callable[[Network], str]) -> None:
        """Add a function that says what `apply` should note of a network; "" for nothing."""
        self._checks.append(rule)

    def node(self, name: str, choices: Iterable[Choice]) -> None:
        """Choices of one node, by name."""
        self._named.setdefault(name, []).extend(choices)

    def same(
        self,
        *ops: str,
        formats: Sequence[str | Format],
        cost: CostRule | Cost | float | None = None,
        kernel: Any = None,
    ) -> None:
        """Operations that read and write one format, whichever of these; constants in any.

        Values of another rank than the format's are plain. ``cost`` is in seconds, or a function of
        node and format.
        """
        names = [named(f, "same") for f in listed(formats, "formats")]
        fixed = cost if cost is None or callable(cost) else as_cost(cost, "cost")

        def rule(node: Node) -> Iterator[Choice]:
            for name in names:
                if not name.fits(node.outputs[0].rank):
                    continue
                ins = [None if v.is_constant else _ranked(name, v) for v in node.inputs]
                outs = [_ranked(name, v) for v in node.outputs]
                seconds = fixed(node, name) if callable(fixed) else fixed
                yield Choice(ins, outs, seconds, kernel)

        self.of(*ops)(rule)

    def view(self, *ops: str, formats: Sequence[str | Format]) -> None:
        """Operations that need no work where memory can be shared: ``Concat``, ``Reshape``, ...

        A choice that shares memory costs nothing. It is there in each format that allows it; rules
        beside this one (`same`, say) tell what a copy costs.
        """
        for op in ops:
            self._views[op] = tuple(named(f, "view") for f in listed(formats, "formats"))

    # --- use --------------------------------------------------------------------------------------

    def choices(self, node: Node) -> list[Choice]:
        """The choices of a node, those that share memory included. Raises `InvalidNetwork`."""
        found = [*node.choices, *self._named.get(node.name, [])]
        for rule in self._rules.get(node.op, []):
            found += list(rule(node) or ())
        found += self._shared(node)
        if not found and self.plain:
            found = [plain_choice(node)]
        return list(checked_choices(node, found))

    def apply(self, network: Network) -> Network:
        """The network, its nodes with these choices; views only where they are legal."""
        every = {n.name: tuple(self.choices(n)) for n in network.nodes.values()}
        result = network.with_checked(every)
        around = surroundings(result)
        kept: dict[str, tuple[Choice, ...]] = {}
        for node in result.nodes.values():
            legal = tuple(c for c in node.choices if not refusal(result, node, c, around))
            kept[node.name] = legal or (plain_choice(node),) * self.plain
            if not kept[node.name]:
                raise InvalidNetwork(
                    f"{node} has no choice: no rule of these kernels is for {node.op!r} with its "
                    f"formats and ranks; add one, or Kernels(plain=True)"
                )
        result = result.with_checked(kept)
        result.notes = (*network.notes, *filter(None, (check(network) for check in self._checks)))
        return result

    def _shared(self, node: Node) -> Iterator[Choice]:
        formats = self._views.get(node.op, ())
        kind = kind_of(node.op)
        for name in formats:
            for target in formats if kind == "alias" and node.op != "Split" else (name,):
                source, result = node.inputs[0], node.outputs[0]
                if not (name.fits(source.rank) and target.fits(result.rank)):
                    continue
                ins = [name if k == 0 or kind == "part" else None for k in range(len(node.inputs))]
                outs = [target] * len(node.outputs)
                views: dict[int, int | tuple[int, ...]] = {0: 0}
                if kind == "part":
                    views = dict.fromkeys(range(len(ins)), 0)
                elif len(outs) > 1:
                    views = {0: tuple(range(len(outs)))}
                yield Choice(ins, outs, 0.0, "view", views=views)


UNKNOWN = "not known: the same in every plan"
"""Where the cost of `plain_choice` comes from."""


def plain_choice(node: Node) -> Choice:
    """Everything plain, at no cost that a decision could hang on."""
    ins = [None if v.is_constant or not v.rank else plain(v.rank) for v in node.inputs]
    return Choice(ins, [plain(v.rank) for v in node.outputs], Cost(0.0, source=UNKNOWN), "plain")


def _ranked(name: FormatName, value: Value) -> FormatName:
    return name if name.fits(value.rank) else plain(value.rank)
