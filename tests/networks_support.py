"""Random small networks, the cheapest plan of one by trying everything, and the example's networks.

The price of a network is told here again, without the solver's code: trees of reorders are found by
Dijkstra's algorithm over sets of formats.
"""

from __future__ import annotations

import heapq
import importlib.util
import random
from collections.abc import Callable
from itertools import product
from math import inf, isfinite
from pathlib import Path
from typing import Any

import clformats as cf

EXAMPLE = Path(__file__).parent.parent / "examples" / "plan_network.py"
SPEC = importlib.util.spec_from_file_location("plan_network", EXAMPLE)
assert SPEC is not None
assert SPEC.loader is not None
example: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(example)

FORMATS = ("nchw", "nhwc", "nChw16c", "my_own")
Prices = Callable[[str, str, str], float]


def random_network(seed: int) -> tuple[cf.Network, Prices]:
    """A network of 3 to 8 nodes with shared readers, in-place nodes, borders, several outputs."""
    rng = random.Random(seed)  # noqa: S311  # a test
    formats = FORMATS[: rng.randint(2, 4)]
    net = cf.Network()
    values = [net.value("in0", (1, 16, 5, 7))]
    if rng.random() < 0.3:
        values.append(net.value("in1", (1, 16, 5, 7)))
    for k in range(rng.randint(3, 8)):
        _add_node(net, rng, values, formats, k)
    for value in net.inputs:
        if rng.random() < 0.6:
            net.fix(value, rng.choice(formats))
    for value in net.outputs:
        if rng.random() < 0.5:
            net.fix(value, rng.choice(formats))
    if rng.random() < 0.3:
        net.output(rng.choice(values))
    table = {
        (v, a, b): inf if rng.random() < 0.08 else rng.random() * 2
        for v in net.values
        for a in formats
        for b in formats
    }
    return net, lambda v, a, b: table[v, a, b]


def _add_node(
    net: cf.Network, rng: random.Random, values: list[cf.Value], formats: tuple[str, ...], k: int
) -> None:
    read = [rng.choice(values[-3:]) for _ in range(rng.randint(1, 2))]
    kind = rng.choice(["Conv", "Conv", "Relu", "Concat", "Identity"])
    if kind == "Concat" and len(read) == 2:
        dims: tuple[int, ...] = (1, sum(v.dims[1] for v in read), 5, 7)
        if dims[1] > 64:
            kind, dims = "Conv", (1, 16, 5, 7)
    else:
        dims = read[0].dims if kind in ("Relu", "Identity") else (1, 16, 5, 7)
        if kind == "Concat":
            dims = read[0].dims
    out = [net.value(f"v{k}", dims)]
    if kind == "Conv" and rng.random() < 0.2:
        out.append(net.value(f"w{k}", (1, 16, 5, 7)))
    choices = []
    for _ in range(rng.randint(1, 3)):
        ins = tuple(rng.choice((*formats, None)) for _ in read)
        outs = tuple(rng.choice(formats) for _ in out)
        choices.append(cf.Choice(ins, outs, rng.random() * 3))
    if kind != "Conv":
        name = rng.choice(formats)
        ins = (name,) * len(read) if kind == "Concat" else (name,) + (None,) * (len(read) - 1)
        views = dict.fromkeys(range(len(read) if kind == "Concat" else 1), 0)
        choices.append(cf.Choice(ins, (name,), rng.random() * 0.2, views=views))
    net.node(f"n{k}", read, out, kind, choices, axis=1)
    values += out


def tree_price(price: Callable[[str, str], float], root: str, wanted: set[str],
               formats: tuple[str, ...]) -> float:  # fmt: skip
    """The least cost of making all wanted formats from one: Dijkstra over sets of formats."""
    start = frozenset({root})
    best = {start: 0.0}
    heap: list[tuple[float, int, frozenset[str]]] = [(0.0, 0, start)]
    count = 0
    while heap:
        cost, _, have = heapq.heappop(heap)
        if wanted <= have:
            return cost
        if cost > best[have]:
            continue
        for a, b in product(have, formats):
            if b in have:
                continue
            more, total = have | {b}, cost + price(a, b)
            if isfinite(total) and total < best.get(more, inf):
                best[more] = total
                count += 1
                heapq.heappush(heap, (total, count, more))
    return inf


def legal_views(net: cf.Network) -> dict[tuple[str, int], bool]:
    """Whether the view of each choice that has one is legal by itself, told from the rules."""
    readers: dict[str, int] = {}
    for node in net.nodes.values():
        for v in node.inputs:
            readers[v.name] = readers.get(v.name, 0) + 1
    outputs = {v.name for v in net.outputs}
    lonely: dict[str, bool] = {v.name: False for v in net.inputs}
    result = {}
    for node in net.nodes.values():
        for k, choice in enumerate(node.choices):
            if choice.views:
                result[node.name, k] = _legal(net, node, choice, outputs, lonely)
        shares = {i for c in node.choices for i in c.views}
        for v in node.outputs:
            alone = readers.get(v.name, 0) == 1 and v.name not in outputs
            mixed = shares and node.op == "Identity"
            lonely[v.name] = alone and not mixed and all(
                lonely[node.inputs[i].name] for i in shares
            )  # fmt: skip
    return result


def _legal(net: cf.Network, node: cf.Node, choice: cf.Choice, outputs: set[str],
           lonely: dict[str, bool]) -> bool:  # fmt: skip
    if node.op == "Identity":
        return True
    if node.op == "Relu":
        return lonely[node.inputs[0].name]
    names = [v.name for v in node.inputs]
    at = 0
    for value in node.inputs:
        if net.producer(value) is None or names.count(value.name) > 1 or value.name in outputs:
            return False
        if choice.outs[0] == "my_own":
            return False  # nobody knows where its parts are
        if choice.outs[0] == "nChw16c" and (at % 16 or value.dims[1] % 16):
            return False
        at += value.dims[1]
    return True


def cheapest(net: cf.Network, price: Prices) -> float:
    """The least cost of all assignments, each tried."""
    options = _options(net)
    known = {name: _available(net, name, options) for name in net.values}
    return min(
        (_price(net, price, dict(zip(net.nodes, taken, strict=True)), known)
         for taken in product(*options.values())),
        default=inf,
    )  # fmt: skip


def _options(net: cf.Network) -> dict[str, list[cf.Choice]]:
    """The legal choices of each node."""
    legal = legal_views(net)
    outputs = {v.name for v in net.outputs}
    options = {}
    for node in net.nodes.values():
        inside = {
            k: net.fixed[v.name]
            for k, v in enumerate(node.outputs)
            if v.name in net.fixed and v.name not in outputs
        }
        options[node.name] = [
            c
            for k, c in enumerate(node.choices)
            if legal.get((node.name, k), True) and all(c.outs[o] == f for o, f in inside.items())
        ]
    return options


def _price(
    net: cf.Network, price: Prices, taken: dict[str, cf.Choice], known: dict[str, tuple[str, ...]]
) -> float:
    total = 0.0
    for choice in taken.values():
        assert isinstance(choice.cost, float)
        total += choice.cost
    for name in net.values:
        total += _value_price(net, price, taken, name, known[name])
    return total


def _value_price(
    net: cf.Network,
    price: Prices,
    taken: dict[str, cf.Choice],
    name: str,
    formats: tuple[str, ...],
) -> float:
    """What the reorders of a value cost; infinity where two views exclude each other."""
    wanted: set[str] = set()
    parts: list[str] = []
    shaped: list[str] = []
    for node in net.nodes.values():
        for i, v in enumerate(node.inputs):
            asked = taken[node.name].ins[i]
            if v.name != name or asked is None:
                continue
            wanted.add(asked)
            if i in taken[node.name].views and node.op != "Relu":
                (parts if node.op == "Concat" else shaped).append(asked)
    maker = net.producer(name)
    if maker is None:
        roots = [net.fixed[name]] if name in net.fixed else list(formats)
    else:
        roots = [taken[maker.name].outs[[v.name for v in maker.outputs].index(name)]]
        if name in net.fixed and name in {v.name for v in net.outputs}:
            wanted.add(net.fixed[name])
        if maker.op == "Identity" and taken[maker.name].views:
            shaped.append(roots[0])
    if len(set(parts)) < len(parts) or set(shaped) & set(parts):
        return inf
    if not wanted:
        return 0.0
    return min(tree_price(lambda a, b: price(name, a, b), r, wanted, formats) for r in roots)


def _available(net: cf.Network, name: str, options: dict[str, list[cf.Choice]]) -> tuple[str, ...]:
    """The formats that occur for a value in legal choices: chains go through these."""
    found: set[str | None] = {net.fixed.get(name)}
    for node in net.nodes.values():
        for c in options[node.name]:
            found |= {f for v, f in zip(node.inputs, c.ins, strict=True) if v.name == name}
            found |= {f for v, f in zip(node.outputs, c.outs, strict=True) if v.name == name}
    return tuple(f for f in FORMATS if f in found)
