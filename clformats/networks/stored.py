"""A plan as JSON, and back: what production reads, without tables of kernels and without a solver.

The text has the network (values, nodes, what is fixed), the choice of each node, each reorder, and
what they cost. Reading it makes a network in which each node has that one choice and only the
plan's reorders exist; its plan is therefore the plan that was written.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ..errors import Error, InvalidNetwork, expect, shown
from .build import FunctionPricing
from .choice import Choice, Views
from .cost import Cost
from .decision import Decision, Plan
from .graph import Network, Node
from .memory import steps_of
from .named import Key, named

VERSION = 2
"""1 had no network, so that nothing could be read back."""


def to_json(plan: Decision) -> str:
    """The plan: network, formats, choices with costs and where these come from, reorders."""
    network = plan.network
    content = {
        "version": VERSION,
        "seconds": plan.seconds,
        "bound": plan.bound,
        "exact": plan.exact,
        "formats": dict(plan.formats),
        "values": {
            v.name: {"dims": v.dims, "dtype": v.dtype.name, "constant": v.is_constant}
            for v in network.values.values()
        },
        "fixed": dict(network.fixed),
        "outputs": [v.name for v in network.outputs],
        "nodes": {name: _node(plan, node) for name, node in network.nodes.items()},
        "reorders": [r._asdict() | asdict(plan.cost(r)) for r in plan.reorders],
        "pack": [p._asdict() for p in plan.pack],
        "order": [
            s.name if isinstance(s, Node) else f"reorder {s.value}: {s.src} -> {s.dst}"
            for s in steps_of(plan)
        ],
    }
    return json.dumps(content, indent=1, default=_plain)


def _node(plan: Decision, node: Node) -> dict[str, Any]:
    choice = plan.choices[node.name]
    return {
        "op": node.op,
        "inputs": [v.name for v in node.inputs],
        "outputs": [v.name for v in node.outputs],
        "attributes": dict(node.attributes),
        "ins": list(choice.ins),
        "outs": list(choice.outs),
        "kernel": choice.kernel,
        "workspace": choice.workspace,
        "in_place": {str(i): o for i, o in choice.views.items()},
        **asdict(plan.cost(node.name)),
    }


def _plain(value: object) -> object:
    """What JSON has no word for: arrays as lists, numbers of numpy, everything else as text."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def from_json(
    kind: type[Plan],
    text: str,
    *,
    kernels: Mapping[str, Any] | None = None,
    constants: Mapping[str, Any] | None = None,
) -> Plan:
    """The plan of a text that `to_json` wrote, see `FormatPlan.from_json`."""
    expect(text, str, "text")
    expect(kernels, Mapping | None, "kernels")
    expect(constants, Mapping | None, "constants")
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidNetwork(f"the plan is no JSON: {error}") from None
    version = content.get("version") if isinstance(content, dict) else None
    if version != VERSION:
        raise InvalidNetwork(
            f"the plan is of version {shown(version)}, this library reads {VERSION}: write it anew "
            f"with FormatPlan.to_json"
        )
    try:
        network = _network(content, kernels or {}, constants or {})
        prices = _prices(content, network)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        if isinstance(error, Error):
            raise
        raise InvalidNetwork(f"the plan is damaged: {type(error).__name__}: {error}") from None

    def price(value: str, src: str, dst: str) -> Cost:
        return prices.get((value, named(src).key, named(dst).key), Cost(math.inf))

    # Chains go through some of them.
    between = [named(name) for name in sorted({r["dst"] for r in content["reorders"]})]
    plan = kind.cheapest(network, FunctionPricing(price), between)
    if dict(plan.formats) != content.get("formats"):
        raise InvalidNetwork(
            f"the plan contradicts itself: its choices and reorders give the formats "
            f"{shown(dict(plan.formats))}, it says {shown(content.get('formats'))}"
        )
    return plan


def _network(
    content: Mapping[str, Any], handles: Mapping[str, Any], arrays: Mapping[str, Any]
) -> Network:
    """The network of a text, each node with its one choice, each border fixed."""
    network = Network()
    for name, v in content["values"].items():
        constant = arrays.get(name, name) if v["constant"] else None
        network.value(name, v["dims"], v["dtype"], constant=constant)
    for name, n in content["nodes"].items():
        node = network.node(name, n["inputs"], n["outputs"], n["op"], [_choice(n, name, handles)])
        node.attributes.update(n["attributes"])  # type: ignore[attr-defined]  # a dict of our own
    for name, format in content["fixed"].items():
        network.fix(name, format)
    for name in content["outputs"]:
        network.output(name)
    for value in network.inputs:
        network.fix(value, content["formats"][value.name])
    if unknown := sorted({*handles} - {*network.nodes}) + sorted({*arrays} - {*network.values}):
        raise InvalidNetwork(f"the plan has no {unknown[0]!r}: kernels are given by the names of "
                             f"nodes, constants by those of values")  # fmt: skip
    return network


def _choice(n: Mapping[str, Any], name: str, handles: Mapping[str, Any]) -> Choice:
    views: Views = {int(i): o if isinstance(o, int) else tuple(o) for i, o in n["in_place"].items()}
    kernel = handles.get(name, n["kernel"])
    return Choice(n["ins"], n["outs"], _cost(n), kernel, n["workspace"], views)


def _cost(n: Mapping[str, Any]) -> Cost:
    return Cost(n["seconds"], n["low"], n["high"], n["source"])


def _prices(content: Mapping[str, Any], network: Network) -> dict[tuple[str, Key, Key], Cost]:
    """What each reorder of the plan costs, by its value and formats."""
    found: dict[tuple[str, Key, Key], Cost] = {}
    for r in content["reorders"]:
        rank = network.values[r["value"]].rank
        key = r["value"], *(named(r[k]).of_rank(rank).key for k in ("src", "dst"))
        found[key] = _cost(r)
    return found
