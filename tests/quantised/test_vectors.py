"""Words that kernels load codes in: none reaches beyond the codes of its tile."""

from __future__ import annotations

import pytest

import clformats as cf
from clformats.quantised.lanes import KINDS, NotInTilesError, Symbols, Tile, placed_planes
from clformats.recoding.vectors import Words
from tests.quantised.test_table import described

TILES = (Tile(1, 32), Tile(16, 4), Tile(16, 32))


@pytest.mark.parametrize("name", ["q4_0", "q6_K", "mxfp4"])
def test_no_word_reaches_beyond_the_codes(name: str) -> None:
    seen = 0
    for layout in cf.layouts(name):
        src = described((64, 256), name, layout)
        try:
            planes = placed_planes(src, Symbols("s"))
        except NotInTilesError:
            continue
        for plane in planes.values():
            for tile in TILES:
                cells = [(r, c) for r in range(tile.rows) for c in range(tile.columns)]
                rows = [tuple(cells[k : k + 16]) for k in range(0, len(cells), 16)]
                for bits in KINDS:
                    try:
                        words = Words(plane, tile, bits, rows)
                        places = [plane.place(tile, *cell) for cell in cells]
                    except NotInTilesError:
                        continue
                    last: dict[object, int] = {}
                    for at in places:
                        end = (at.bits + plane.bits - 1) // 8
                        last[at.symbols] = max(last.get(at.symbols, 0), end)
                    for run in words.runs:
                        for symbols, first in run:
                            nbytes = words.short.get((symbols, first), bits // 8)
                            assert first + nbytes - 1 <= last[symbols], (layout, plane.name, tile)
                            seen += 1
    assert seen
