"""The figures of the site: drawn from descriptors, and from measured results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import kernel
import numpy as np
from numpy.typing import NDArray
from PIL import Image
from shapes import SHADES, box, svg

import clformats as cf
from bench.picture import COLOURS, line, picture, sign, text
from bench.report import Report, summaries

ROOT = Path(__file__).parents[2]
# ---- speed --------------------------------------------------------------------------------------

PEERS = ("torch", "oneDNN", "numpy")


def newest(part: str) -> Path:
    """The latest results of a kind of device; those of kernels that are gone do not count."""
    found = (ROOT / "bench/results").glob(f"*{part}*.json")
    return max(f for f in found if not f.stem.endswith("-before"))


def speed(part: str) -> str:
    """A bar for each group of cases: our share of a plain copy, the others as marks."""
    report = Report.read(newest(part))
    groups = [s for s in summaries(report.records) if s.share]
    left, right, row, top, full = 200, 520, 24, 70, 1.1

    def at(share: float) -> float:
        return left + (right - left) * share / full

    def parts() -> Iterator[str]:
        where = f"{report.machine.get('device')}, {report.date[:10]}"
        yield text(10, 22, "Share of the speed of a plain copy", "title")
        yield text(10, 40, where, "small")
        yield box(310, 14, 22, 10, COLOURS["bar"])
        yield text(338, 23, "clformats")
        seen = [p for p in PEERS if any(s.ratios.get(p) for s in groups)]
        for k, peer in enumerate(seen):
            yield sign(peer, 320 + 80 * k, 40)
            yield text(330 + 80 * k, 44, peer)
        for tenth in (0, 2, 4, 6, 8, 10):
            x = at(tenth / 10)
            yield line(x, top - 8, x, top + row * len(groups), COLOURS["grid"])
            words = "copy" if tenth == 10 else f"{tenth * 10} %"
            yield text(x, top + row * len(groups) + 16, words, "small", "middle")
        for k, summary in enumerate(groups):
            y = top + row * k
            yield text(left - 10, y + 13, f"{summary.group.name} ({summary.count})", "", "end")
            share = summary.share or 0.0
            yield box(left, y + 2, at(min(share, full)) - left, row - 10, COLOURS["bar"])
            for peer in seen:
                ratio = summary.ratios.get(peer)
                if ratio and share / ratio < full:
                    yield sign(peer, at(share / ratio), y + 9)

    return svg(right + 20, top + row * len(groups) + 30, parts())


# ---- the photograph -----------------------------------------------------------------------------

TINTS = {0: (1.0, 0.25, 0.25), 1: (0.2, 0.8, 0.3), 2: (0.3, 0.45, 1.0)}
CELLS = 35


def photo() -> str:
    """The first elements of a photograph in memory, in three formats: red, green, blue, padding."""
    pixels = np.asarray(Image.open(ROOT / "docs/photo.jpg"))
    middle = pixels[120:, 120:]
    rows = [
        ("bfyx", "plane by plane"),
        ("byxf", "pixel by pixel"),
        ("b_fs_yx_fsv16", "16 channels together"),
    ]

    def parts() -> Iterator[str]:
        for k, (format, words) in enumerate(rows):
            y = 26 + 58 * k
            yield text(10, y - 6, format, "mono")
            yield text(150, y - 6, words, "small")
            desc = cf.MemoryDesc((1, 3, *middle.shape[:2]), "u8", format)
            for offset in range(CELLS):
                yield _cell(desc.coords(offset), middle, 10 + 14 * offset, y)
        yield text(10, 26 + 58 * 3 - 4, "hatched: padding, always zero", "small")

    hatch = (
        '<defs><pattern id="pad" width="6" height="6" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)"><rect width="6" height="6" fill="#f2f2f2"/>'
        '<rect width="2" height="6" fill="#c8c8c8"/></pattern></defs>'
    )
    return svg(20 + 14 * CELLS, 200, parts()).replace("</style>", f"</style>{hatch}")


def _cell(at: tuple[int, ...] | None, pixels: NDArray[np.uint8], x: float, y: float) -> str:
    if at is None:
        return box(x, y, 12, 26, "url(#pad)")
    _, channel, row, column = at
    value = 80 + 0.7 * float(pixels[row, column, channel])
    red, green, blue = (int(min(255, value * t)) for t in TINTS[channel])
    return box(x, y, 12, 26, f"#{red:02x}{green:02x}{blue:02x}")


# ---- a tile -------------------------------------------------------------------------------------


def tile() -> str:
    """A tile of 4 channels and 4 columns: the same 16 elements in both memories."""
    dims, step, gap = (1, 8, 1, 12), 24, 120
    sides = [
        ("source, bfyx: a row is a channel", "bfyx", (8, 12), (1, 3)),
        ("destination, byxf: a row is a pixel", "byxf", (12, 8), (3, 1)),
    ]

    def parts() -> Iterator[str]:
        x = 10.0
        for title, format, (rows, columns), _ in sides:
            yield text(x, 20, title, "title")
            desc = cf.MemoryDesc(dims, "f32", format)
            for offset in range(rows * columns):
                at = desc.coords(offset) or ()
                inside = at[1] < 4 and at[3] < 4
                row, column = divmod(offset, columns)
                fill = SHADES[at[1]] if inside else "#f4f4f4"
                yield box(x + column * step, 34 + row * step, step - 2, step - 2, fill, "#ccc")
                if inside:
                    label = f"{at[1]},{at[3]}"
                    left, top = x + column * step, 34 + row * step
                    yield text(left + 11, top + 15, label, "cell", "middle")
            if format == "bfyx":
                middle = x + columns * step + gap / 2
                for k, words in enumerate(("4 loads", "shuffles", "4 stores")):
                    yield text(middle, 60 + 22 * k, words, "", "middle")
                yield line(middle - 40, 122, middle + 34, 122, "#222", 2)
                tip = f"{middle + 34},116 {middle + 44},122 {middle + 34},128"
                yield f'<polygon points="{tip}" fill="#222"/>'
            x += columns * step + gap
        yield text(10, 34 + 12 * step + 16, "The numbers are channel,column.", "small")

    return svg(10 + 12 * step + gap + 8 * step + 80, 34 + 12 * step + 26, parts())


# ---- drawings of descriptors --------------------------------------------------------------------


def _drawn(desc: cf.MemoryDesc, boxes: int = 2) -> Callable[[], str]:
    return lambda: str(cf.draw(desc, boxes=boxes)._repr_svg_())


FIGURES: dict[str, Callable[[], str]] = {
    "speed-gpu.svg": lambda: speed("nvidia"),
    "speed-cpu.svg": lambda: speed("pocl"),
    "cases-gpu.svg": lambda: picture(Report.read(newest("nvidia"))),
    "cases-cpu.svg": lambda: picture(Report.read(newest("pocl"))),
    "photo.svg": photo,
    "tile.svg": tile,
    "kernel.svg": kernel.figure,
    "digits.svg": _drawn(cf.MemoryDesc((2, 17, 5, 4), "f32", "b_fs_yx_fsv16"), 2),
    "blocks.svg": _drawn(cf.MemoryDesc((1, 18, 1, 2), "f32", "b_fs_yx_fsv16")),
    "weights.svg": _drawn(cf.MemoryDesc((20, 20, 1, 1), "s8", "OIhw4i16o4i"), 1),
    "padded.svg": _drawn(
        cf.MemoryDesc((1, 2, 3, 4), "f32", "bfyx", padding=((0, 0), (0, 0), (1, 1), (1, 1)))
    ),
}
"""Each name under docs/figures, and how it is drawn."""
