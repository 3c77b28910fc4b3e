"""`draw`: a tensor as it lies in memory, for terminals, files and notebooks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..errors import Error, InvalidDescriptor, expect_int
from ..formats import Format
from ..tensors.desc import MemoryDesc
from ..tensors.described import Described, is_described
from ..tensors.given import as_any_desc, as_target, default_dtype
from .drawing import Picture, picture, terminal
from .quantised import QuantisedDrawing
from .svg import Svg, svg

WIDEST = (16, 8, 4)
"""How many cells a row may have: fewer where the terminal is narrow."""


class Drawing(Svg):
    """A picture of a tensor: ``str`` gives it in characters, notebooks show it in colours.

    Made by `draw`. ``save(file)`` writes it as SVG.
    """

    def __init__(self, desc: MemoryDesc, boxes: int, values: Any) -> None:
        self.desc = desc
        self._boxes = boxes
        # Values are read now: they may be of a mapping that ends.
        self._pictures = {} if values is None else {n: self._made(n, values) for n in WIDEST}

    def _made(self, widest: int, values: Any = None) -> Picture:
        return picture(self.desc, boxes=self._boxes, widest=widest, values=values)

    def _drawn(self, widest: int = WIDEST[0]) -> Picture:
        return self._pictures.get(widest) or self._made(widest)

    def text(self, width: int = 80) -> str:
        """The picture in characters; long rows are cut in the middle to fit in ``width``."""
        lines: list[str] = []
        for widest in WIDEST:
            lines = list(terminal(self._drawn(widest), width))
            if max(map(len, lines[3:]), default=0) <= width:
                break
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"Drawing({str(self.desc)!r})"

    @property
    def svg(self) -> str:
        """The picture as the text of an SVG file."""
        return svg(self._drawn())


def draw(
    what: MemoryDesc | Described | Format | str,
    shape: Iterable[int] | None = None,
    *,
    dtype: object = None,
    boxes: int = 4,
    values: Any = None,
) -> Drawing | QuantisedDrawing:
    """A picture of a tensor in the order of memory, of at most ``boxes`` boxes.

    ``what`` is a descriptor or a format, or the text of one. ``shape`` gives a format sizes;
    without it a small tensor is drawn, of two blocks along each dimension that has blocks.
    ``values`` are the elements as `clformats.pack` lays them out, which then stand in the cells.
    A quantised tensor is drawn bit by bit: of each buffer the first record, or the first bytes.
    Raises `InvalidDescriptor` where there is no layout or a size is open.

    >>> draw("f32:b_fs_yx_fsv16:2x17x5x4")
    Drawing('f32:b_fs_yx_fsv16:2x17x5x4')
    >>> draw("b_fs_yx_fsv16")
    Drawing('f32:b_fs_yx_fsv16:1x18x1x4')
    """
    if expect_int(boxes, "boxes") < 1:
        raise InvalidDescriptor(f"got boxes={boxes}, expected at least 1")
    if is_described(what) and shape is dtype is values is None:
        return QuantisedDrawing(as_any_desc(what, "what"), boxes)
    fmt, desc = as_target(what, shape, dtype)
    if desc is None:
        wanted = default_dtype(fmt) if dtype is None else dtype
        desc = MemoryDesc(example_dims(fmt), wanted, fmt)
    desc.require_layout()
    if desc.has_runtime:
        raise InvalidDescriptor(f"{desc} has sizes known at execution only: give the dims")
    return Drawing(desc, boxes, values)


def example_dims(fmt: Format) -> tuple[int, ...]:
    """Sizes that show what a format does: blocks are begun twice; a row where there is one block.

    Raises `InvalidFormat` where there is no layout.
    """
    blocks = fmt.structure.blocks
    plain = (2, 3, *(2,) * fmt.ndims)[: fmt.ndims] if max(blocks) == 1 else (1,) * fmt.ndims
    sizes = [b + min(b - 1, 2) if b > 1 else n for b, n in zip(blocks, plain, strict=True)]
    if blocks[-1] == 1 and sum(b > 1 for b in blocks) < 2:
        sizes[-1] = 4
    return tuple(sizes)


# --- in notebooks ---------------------------------------------------------------------------------


def _in_notebooks(what: Format | MemoryDesc) -> str | None:
    """The picture; None, by which notebooks show the text, for what has none."""
    try:
        return draw(what).svg
    except Error:
        return None


# Set from here: formats and tensors know nothing of pictures, since imports run downwards.
for _shown in (Format, MemoryDesc):
    setattr(_shown, "_repr_svg_", _in_notebooks)  # noqa: B010  # mypy knows no such attribute
