"""A planned network as a picture: nodes coloured by format, reorders as red pills on their edges.

Layers follow the longest way from the inputs, top to bottom, in columns of `ROWS` layers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean

from ..pictures.elements import INK, SANS, SOFT, document, rect_at, text_at
from .decision import Decision, PlannedReorder
from .named import FormatName, Key

_RED, _EDGE = "#c92a2a", "#9aa5b1"
_FILLS = ("#7aa7f0", "#93d67b", "#f6dc63", "#67cfd3", "#f6a15e", "#b78ceb", "#ee7f9d", "#c9d3dd")
_OTHER = "#e4e9ef"
_WIDTH, _HEIGHT, _STEP, _GAP, _MARGIN, _HEAD = 148, 34, 72, 14, 28, 128
ROWS = 14
_INPUT = "input "


@dataclass(frozen=True, slots=True)
class _Card:
    """A node, or an input of the network: where it is and what it says."""

    name: str
    op: str
    fmt: FormatName
    view: bool
    x: float
    y: float
    column: int


def svg(plan: Decision) -> str:
    """The picture as the text of an SVG file."""
    boxes = _placed(plan)
    colours = _colours(plan)
    width = max([720.0, *(b.x + _WIDTH + _MARGIN for b in boxes.values())])
    height = max(b.y for b in boxes.values()) + _HEIGHT + 2 * _MARGIN
    cards = (part for box in boxes.values() for part in _box(plan, box, colours))
    parts = (*_header(plan, colours), *_edges(plan, boxes), *cards)
    return document(width, height, SANS, 11, *parts)


# --- where things are -----------------------------------------------------------------------------


def _placed(plan: Decision) -> dict[str, _Card]:
    """A box for each node and each input; inputs have the names of their values."""
    parents: dict[str, list[str]] = {}
    for source, name, _ in _links(plan):
        parents.setdefault(name, []).append(source)
    layers = {_INPUT + v.name: 0 for v in plan.network.inputs}
    for node in plan.built.order:
        layers[node.name] = 1 + max((layers[p] for p in parents.get(node.name, [])), default=-1)
    rows: dict[int, list[str]] = {}
    for name, layer in layers.items():
        rows.setdefault(layer, []).append(name)
    places: dict[str, float] = {}
    for layer in sorted(rows):
        rows[layer].sort(key=lambda n: fmean([places[p] for p in parents.get(n, [])] or [0.0]))
        count = len(rows[layer])
        for k, name in enumerate(rows[layer]):
            places[name] = k - (count - 1) / 2
    columns = -(-(max(rows) + 1) // ROWS)
    left, starts = float(_MARGIN), []
    for column in range(columns):
        widest = max(len(rows.get(r, [])) for r in range(column * ROWS, (column + 1) * ROWS))
        starts.append(left + (widest - 1) / 2 * (_WIDTH + _GAP))
        left += widest * (_WIDTH + _GAP) + 3 * _GAP
    result = {}
    for name, layer in layers.items():
        column, row = divmod(layer, ROWS)
        x = starts[column] + places[name] * (_WIDTH + _GAP)
        result[name] = _described(plan, name, x, _HEAD + row * _STEP, column)
    return result


def _described(plan: Decision, name: str, x: float, y: float, column: int) -> _Card:
    node = plan.network.nodes.get(name)
    if name.startswith(_INPUT) or node is None:
        value = plan.network.values[name.removeprefix(_INPUT)]
        return _Card(value.name, "input", plan.formats[value.name], False, x, y, column)  # noqa: FBT003
    choice = plan.choices[name]
    activation = node.attributes.get("activation", "")
    op = node.op + f" + {activation}" * bool(activation)
    return _Card(name, op, choice.outs[0], bool(choice.views), x, y, column)


def _links(plan: Decision) -> Iterator[tuple[str, str, list[PlannedReorder]]]:
    """The edges: from which box to which node, and the reorders of the value between them."""
    for node in plan.built.order:
        for value in dict.fromkeys(v for v in node.inputs if not v.is_constant):
            maker = plan.network.producer(value)
            source = _INPUT + value.name if maker is None else maker.name
            moves = [r for r in plan.reorders if r.value == value.name and node.name in r.readers]
            yield source, node.name, moves


# --- what is drawn --------------------------------------------------------------------------------


def _colours(plan: Decision) -> Mapping[Key, tuple[str, str, int]]:
    """For each format, the most frequent first: its name, colour, and the number of nodes."""
    formats = [plan.choices[node.name].outs[0] for node in plan.built.order]
    names = {f.key: f for f in reversed(formats)}
    ranked = Counter(f.key for f in formats).most_common()
    fills = (*_FILLS, *[_OTHER] * len(ranked))
    return {k: (names[k], fill, n) for (k, n), fill in zip(ranked, fills, strict=False)}


def _fill(box: _Card, colours: Mapping[Key, tuple[str, str, int]]) -> str:
    return colours[box.fmt.key][1] if box.fmt.key in colours else _OTHER


def _header(plan: Decision, colours: Mapping[Key, tuple[str, str, int]]) -> Iterator[str]:
    proof = "the least there is" if plan.exact else f"at most {100 * plan.gap:.2g} % above it"
    count = len(plan.reorders)
    title = f"{len(plan.choices)} nodes, {plan.seconds * 1e3:.4g} ms: {proof}"
    yield text_at(_MARGIN, 32, title, font_size=17, font_weight="bold", fill=INK)
    x = float(_MARGIN)
    for name, fill, nodes in colours.values():
        yield rect_at(x, 46, 16, 16, fill, rx=3)
        label = f"{name} ({nodes})"
        yield text_at(x + 22, 58, label, fill=INK)
        x += 36 + 7.0 * len(label)
    label = f"{count} reorder{'s' * (count != 1)}, {plan.reorder_seconds * 1e3:.3g} ms"
    yield rect_at(_MARGIN, 70, 16, 16, _RED, rx=8)
    yield text_at(_MARGIN + 22, 82, f"{label}; dashed: in place, no work", fill=INK)


def _box(plan: Decision, box: _Card, colours: Mapping[Key, tuple[str, str, int]]) -> Iterator[str]:
    style: dict[str, object] = {"stroke_width": 1.2 if box.view else 0.6}
    style |= {"stroke_dasharray": "4 3"} if box.view else {}
    yield rect_at(box.x, box.y, _WIDTH, _HEIGHT, _fill(box, colours), rx=6, stroke=INK, **style)
    middle = box.x + _WIDTH / 2
    yield text_at(middle, box.y + 14, _cut(box.name), text_anchor="middle", fill=INK,
                font_weight="bold")  # fmt: skip
    seconds = "" if box.op == "input" else f", {_time(plan.cost(box.name).seconds)}"
    yield text_at(middle, box.y + 27, _cut(f"{box.op}{seconds}"), text_anchor="middle", fill=INK,
                font_size=10)  # fmt: skip


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} us"


def _cut(text: str) -> str:
    return text if len(text) <= 23 else f"{text[:22]}…"


def _edges(plan: Decision, boxes: Mapping[str, _Card]) -> Iterator[str]:
    pills: list[str] = []
    left, come = Counter[str](), Counter[str]()
    for source, name, moves in _links(plan):
        a, b = boxes[source], boxes[name]
        yield _curve(a, b, left[source], come[name], moved=bool(moves))
        away = a.column != b.column
        left[source] += away
        come[name] += away
        for k, move in enumerate(moves):
            pills += _pill(b, f"{move.src} → {move.dst}", k)
    for reorder in plan.reorders:
        if "(output)" in reorder.readers:
            maker = plan.network.producer(reorder.value)
            if maker is not None:
                pills += _pill(boxes[maker.name], f"{reorder.src} → {reorder.dst}", 0, below=True)
    yield from pills


def _curve(a: _Card, b: _Card, k: int, j: int, *, moved: bool) -> str:
    """An edge: the k-th that goes on in another column from ``a``, the j-th that comes to ``b``."""
    x1, y1, x2, y2 = a.x + _WIDTH / 2, a.y + _HEIGHT, b.x + _WIDTH / 2, b.y
    colour, width = (_RED, 1.6) if moved else (_EDGE, 1.1)
    bend = (y2 - y1) / 2
    if a.column != b.column:
        # Two short ends with names: a line right across the picture tells less.
        line = f'<path d="M{x1:.1f},{y1:.1f} v10 M{x2:.1f},{y2 - 10:.1f} v10" stroke="{colour}"/>'
        out = text_at(x1, y1 + 21 + 11 * k, f"to {_cut(b.name)}", text_anchor="middle", fill=SOFT)
        above = y2 - 27 - 11 * j
        into = text_at(x2, above, f"from {_cut(a.name)}", text_anchor="middle", fill=SOFT)
        return line + out + into
    sway = 0.0 if b.y - a.y <= _STEP or abs(x1 - x2) > _WIDTH / 2 else _WIDTH * 0.62
    path = (
        f"M{x1:.1f},{y1:.1f} C{x1 + sway:.1f},{y1 + bend:.1f} "
        f"{x2 + sway:.1f},{y2 - bend:.1f} {x2:.1f},{y2:.1f}"
    )
    return f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{width}"/>'


def _pill(box: _Card, text: str, k: int, *, below: bool = False) -> list[str]:
    width = 6.0 * len(text) + 14
    x = box.x + _WIDTH / 2 - width / 2
    y = box.y + _HEIGHT + 5 if below else box.y - 22 - 17 * k
    return [
        rect_at(x, y, width, 16, _RED, rx=8),
        text_at(x + width / 2, y + 12, text, text_anchor="middle", fill="#ffffff", font_size=10),
    ]


# --- Graphviz -------------------------------------------------------------------------------------


def dot(plan: Decision) -> str:
    """The plan as a graph in Graphviz' language."""
    colours = _colours(plan)
    lines = [
        "digraph plan {",
        '  node [shape=box, style="rounded,filled", fontname="DejaVu Sans"];',
    ]
    for name, box in _placed(plan).items():
        fill = _fill(box, colours)
        label = f"{box.name}\\n{box.op}\\n{box.fmt}"
        style = ', style="rounded,filled,dashed"' * box.view
        lines.append(f'  {_quoted(name)} [label={_quoted(label)}, fillcolor="{fill}"{style}];')
    for source, name, moves in _links(plan):
        label = ", ".join(f"{r.src} -> {r.dst}" for r in moves)
        style = f' [label={_quoted(label)}, color="{_RED}", fontcolor="{_RED}"]' * bool(moves)
        lines.append(f"  {_quoted(source)} -> {_quoted(name)}{style};")
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    escaped = text.replace('"', '\\"')
    return f'"{escaped}"'
