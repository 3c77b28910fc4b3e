"""The picture: a bar for each case, its share of the plain copy, with the peers as marks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from xml.sax.saxutils import escape

from .cases import GROUPS
from .report import OURS, PEERS, Record, Report
from .table import FOOTNOTES, mark, number

WIDTH, LEFT, RIGHT, SPEED, RATIO = 980, 220, 790, 862, 945
TOP, ROW, GAP = 96, 17, 28
FULL = 1.25
"""The share at the right end of the axis; what is more is cut there."""

COLOURS = {"bar": "#4c86b8", "goal": "#1d3f5e", "oneDNN": "#d9702b", "torch": "#8a3fa0",
           "numpy": "#333333", "copy": "#222222", "grid": "#dddddd"}  # fmt: skip

STYLE = """\
text { font-family: 'DejaVu Sans', Verdana, sans-serif; font-size: 11px; fill: #222 }
.title { font-size: 17px; font-weight: bold }
.group { font-size: 12px; font-weight: bold }
.small { font-size: 10px; fill: #555 }
.mono { font-family: 'DejaVu Sans Mono', Menlo, Consolas, monospace; font-size: 10.5px }"""


def picture(report: Report) -> str:
    """The report as SVG."""
    records = [r for r in report.records if r.share]
    count = len(list(groupby(records, key=lambda r: r.group)))
    bottom = TOP + count * GAP + len(records) * ROW
    height = bottom + 40 + 15 * len(FOOTNOTES)
    parts = [*_head(report), *_axis(bottom), *_groups(records), *_foot(bottom + 44)]
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}">\n<style>\n{STYLE}\n</style>\n'
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>\n{body}\n</svg>\n'
    )


def _x(share: float) -> float:
    return round(LEFT + (RIGHT - LEFT) * min(share, FULL) / FULL, 1)


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    """A line of text."""
    named = f' class="{kind}"' if kind else ""
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}"{named}>{escape(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, colour: str, width: float = 1) -> str:
    """A straight line."""
    return (
        f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{colour}" stroke-width="{width}"/>'
    )


def _head(report: Report) -> Iterator[str]:
    yield text(20, 30, "Reorders as a share of a plain copy of as many bytes", "title")
    platform = report.machine.get("platform", "").split(",")[0]
    where = (
        f"{report.machine.get('device', '?')} on {platform}, driver {report.machine.get('driver')}"
    )
    yield text(20, 50, f"{where}, {report.date[:10]}", "small")
    y, x = 70, 20
    yield f'<rect x="{x}" y="{y - 9}" width="26" height="10" fill="{COLOURS["bar"]}"/>'
    yield text(x + 32, y, "clformats (line: quartiles)")
    yield line(220, y - 10, 220, y + 2, COLOURS["goal"], 2)
    yield text(227, y, "goal")
    for k, peer in enumerate(PEERS):
        yield sign(peer, 290 + 90 * k, y - 4)
        yield text(299 + 90 * k, y, peer)


def _foot(y: float) -> Iterator[str]:
    for k, (token, words) in enumerate(FOOTNOTES.items()):
        yield text(LEFT, y + 15 * k, f"{token}  {words}", "small")


def _axis(bottom: float) -> Iterator[str]:
    for tenth in range(0, 13, 2):
        x, whole = _x(tenth / 10), tenth == 10
        colour = COLOURS["copy"] if whole else COLOURS["grid"]
        yield line(x, TOP, x, bottom + 6, colour)
        yield text(x, bottom + 20, "copy" if whole else f"{tenth * 10}%", "small", "middle")
    yield text(SPEED, TOP + 4, "GB/s", "mono", "end")
    yield text(RATIO, TOP + 4, "x oneDNN", "mono", "end")


def _groups(records: list[Record]) -> Iterator[str]:
    y = TOP
    for name, members in groupby(records, key=lambda r: r.group):
        y += GAP
        yield text(20, y - 5, name, "group")
        for record in members:
            yield from _bar(record, y)
            y += ROW


def _bar(record: Record, y: float) -> Iterator[str]:
    share, middle = record.share or 0.0, y + ROW / 2
    yield text(LEFT - 8, y + 12, record.name, "mono", "end")
    yield (
        f'<rect x="{LEFT}" y="{y + 2.5}" width="{round(_x(share) - LEFT, 1)}" '
        f'height="{ROW - 5}" fill="{COLOURS["bar"]}"/>'
    )
    yield from _whisker(record, share, middle)
    wanted = goal(record)
    if wanted:
        yield line(_x(wanted), y + 0.5, _x(wanted), y + ROW - 0.5, COLOURS["goal"], 2)
    yield from _peers(record, share, middle)
    yield text(SPEED, y + 12, number(record.speed()), "mono", "end")
    yield text(RATIO, y + 12, number(record.ratio("oneDNN")), "mono", "end")
    yield text(RATIO + 3, y + 12, mark(record), "mono")


def _peers(record: Record, share: float, y: float) -> Iterator[str]:
    """The peers' marks; arrowheads, side by side, for those beyond the axis."""
    outside = RIGHT
    for peer in reversed(PEERS):
        other = share / (record.ratio(peer) or 1e9)
        if other > FULL:
            corners = f"{outside},{y - 4} {outside + 6},{y} {outside},{y + 4}"
            yield f'<polygon points="{corners}" fill="{COLOURS[peer]}"/>'
            outside += 7
        elif peer in record.times:
            yield sign(peer, _x(other), y)


def _whisker(record: Record, share: float, y: float) -> Iterator[str]:
    times = record.times[OURS]
    ends = [_x(share * times.median / t) for t in (times.q3, times.q1)]
    yield line(ends[0], y, ends[1], y, "#ffffff", 3)
    yield line(ends[0], y, ends[1], y, COLOURS["copy"])


def goal(record: Record) -> float | None:
    """The share of the copy that the project wants of a case."""
    wanted = (g.share for g in GROUPS if g.share and g.takes(record.name, record.group, record.mb))
    return next(wanted, None)


def sign(peer: str, x: float, y: float) -> str:
    """The mark of a peer: a diamond, a ring, a cross."""
    colour = COLOURS[peer]
    if peer == "oneDNN":
        corners = f"{x - 5},{y} {x},{y - 5} {x + 5},{y} {x},{y + 5}"
        return f'<polygon points="{corners}" fill="{colour}" stroke="#ffffff"/>'
    if peer == "torch":
        return (
            f'<circle cx="{x}" cy="{y}" r="3.5" fill="#ffffff" stroke="{colour}" '
            f'stroke-width="1.8"/>'
        )
    cross = f"M{x - 3} {y - 3}l6 6m0 -6l-6 6"
    return "".join(
        f'<path d="{cross}" fill="none" stroke="{c}" stroke-width="{w}"/>'
        for c, w in (("#ffffff", 3.6), (colour, 1.8))
    )
