"""The elements of SVG files: pictures are rectangles and text, written without a library."""

from __future__ import annotations

from html import escape

MONO = "DejaVu Sans Mono, Menlo, Consolas, monospace"
SANS = "DejaVu Sans, Helvetica, Arial, sans-serif"
INK, SOFT = "#1f2933", "#6b7785"


def document(width: float, height: float, font: str, size: int, *parts: str) -> str:
    """The text of a file: elements on white paper."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" font-family="{font}" font-size="{size}">'
    )
    paper = '<rect width="100%" height="100%" fill="#ffffff"/>'
    return "\n".join([head, paper, *parts, "</svg>\n"])


def text_at(x: float, y: float, content: str, **style: object) -> str:
    """A text element; style names are written with ``_`` for ``-``."""
    return f'<text x="{x:.1f}" y="{y:.1f}"{_attributes(style)}>{escape(content)}</text>'


def rect_at(x: float, y: float, width: float, height: float, fill: str, **style: object) -> str:
    """A rectangle, styled alike."""
    return (f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
            f'fill="{fill}"{_attributes(style)}/>')  # fmt: skip


def _attributes(style: dict[str, object]) -> str:
    return "".join(f' {k.replace("_", "-")}="{v}"' for k, v in style.items())
