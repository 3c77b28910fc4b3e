"""`draw`: a tensor as it lies in memory, for terminals, files and notebooks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..errors import Error, InvalidDescriptor, expect_int
from ..tensors.desc import MemoryDesc
from ..tensors.given import as_desc
from .drawing import Picture, picture, terminal
from .svg import svg


class Drawing:
    """A picture of a tensor: ``str`` gives it in characters, notebooks show it in colours.

    Made by `draw`. ``save(file)`` writes it as SVG.
    """

    def __init__(self, desc: MemoryDesc, drawn: Picture) -> None:
        self.desc = desc
        self._drawn = drawn

    def __str__(self) -> str:
        return "\n".join(terminal(self._drawn))

    def __repr__(self) -> str:
        return f"Drawing({str(self.desc)!r})"

    def _repr_svg_(self) -> str:
        return svg(self._drawn)

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write the picture as SVG. Raises `Error` where the file cannot be written."""
        try:
            Path(file).write_text(svg(self._drawn), encoding="utf-8")
        except OSError as error:
            raise Error(f"cannot write {file}: {error.strerror}") from error


def draw(desc: MemoryDesc | str, *, boxes: int = 4, values: Any = None) -> Drawing:
    """A picture of a tensor in the order of memory, of its first ``boxes`` boxes.

    ``desc`` may be its text; ``values`` are the elements as `clformats.pack` lays them out, which
    then stand in the cells. Raises `InvalidDescriptor` where there is no layout or a size is open.

    >>> print(repr(draw("f32:b_fs_yx_fsv16:2x17x5x4")))
    Drawing('f32:b_fs_yx_fsv16:2x17x5x4')
    """
    desc = as_desc(desc, "desc")
    desc.require_layout()
    if desc.has_runtime:
        raise InvalidDescriptor(f"{desc} has sizes known at execution only: give the dims")
    if expect_int(boxes, "boxes") < 1:
        raise InvalidDescriptor(f"got boxes={boxes}, expected at least 1")
    return Drawing(desc, picture(desc, boxes=boxes, values=values))
