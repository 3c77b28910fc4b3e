"""What figures are made of: a page, boxes, colours."""

from __future__ import annotations

from collections.abc import Iterator

STYLE = """<style>
text { font-family: 'DejaVu Sans', Verdana, sans-serif; font-size: 13px; fill: #222 }
.title { font-weight: bold }
.small { font-size: 11px; fill: #555 }
.cell { font-size: 11px }
.mono { font-family: 'DejaVu Sans Mono', Menlo, Consolas, monospace; font-size: 12px }
</style>"""

SHADES = ("#7aa7f0", "#93d67b", "#f6dc63", "#f6a15e")
"""Light enough for dark text, and told apart in grey as well as in colour."""


def svg(width: float, height: float, parts: Iterator[str]) -> str:
    """A figure on white paper, so that it reads the same on a dark page."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}">\n{STYLE}\n'
        f'<rect width="{width}" height="{height}" fill="#fff"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def box(x: float, y: float, width: float, height: float, fill: str, stroke: str = "none") -> str:
    """A rectangle."""
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{fill}" '
        f'stroke="{stroke}"/>'
    )
