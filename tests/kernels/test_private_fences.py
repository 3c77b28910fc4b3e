"""Boxes that kernels collect in private memory have room for all that is put there.

Nothing protects private memory, so the kernels are given arrays with canaries on both sides, which
they look at when they are done: where one was touched, they say so in the canary in front of the
destination.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

import clformats as cf
from tests.device_support import check_reorder

D = cf.MemoryDesc
SPARE = 64
"""Vectors of canary on each side: more than a third of the boxes that have too little."""
ARRAY = re.compile(r"uint16 (stage|kept)\[(\d+)\];")


def with_canaries(source: str) -> str:
    """The kernel with so many vectors of canary around each array."""
    arrays = ARRAY.findall(source)
    if not arrays:
        return source
    checks = ""
    for name, size in arrays:
        count, every = int(size), int(size) + 2 * SPARE
        source = source.replace(
            f"uint16 {name}[{size}];",
            f"uint16 {name}_room[{every}];\n"
            f"    for (int i = 0; i < {every}; ++i) {name}_room[i] = 0x5A5A5A5A;\n"
            f"    uint16 *const {name} = {name}_room + {SPARE};",
        )
        checks += (
            f"    for (int i = 0; i < {2 * SPARE}; ++i) {{\n"
            f"        const int at = i < {SPARE} ? i : i + {count};\n"
            f"        if (any({name}_room[at].s01234567 != 0x5A5A5A5A) ||"
            f" any({name}_room[at].s89abcdef != 0x5A5A5A5A)) *(__global uchar *)all_of_dst = 0;\n"
            f"    }}\n"
        )
    body, brace = source.rstrip()[:-1], "}\n"
    at = body.index("{", body.index("__kernel")) + 1
    return f"{body[:at]}\n    __global void *const all_of_dst = dst;\n{body[at:]}{checks}{brace}"


class Fenced:
    """A stream of an engine whose tensors count as large, and whose kernels have canaries.

    ``arrays`` are as many as they have had; each has ``share`` of the size that it would have.
    """

    def __init__(self, stream: cf.Stream, monkeypatch: pytest.MonkeyPatch, share: int = 1) -> None:
        self.engine = cf.Engine(device=stream.engine.device)
        self.engine.traits = replace(self.engine.traits, streamed_bytes=0, vector_bytes=64)
        self.stream, self.arrays, self.share = cf.Stream(self.engine), 0, share
        self.build = self.engine.shared_kernel
        monkeypatch.setattr(self.engine, "shared_kernel", self.built)

    def built(self, source: str, *rest: Any) -> Any:
        """The kernel with canaries."""
        self.arrays += len(ARRAY.findall(source))
        return self.build(with_canaries(ARRAY.sub(self.cut, source)), *rest)

    def cut(self, found: re.Match[str]) -> str:
        """The declaration of a smaller array."""
        return f"uint16 {found[1]}[{int(found[2]) // self.share}];"


GATHERED = [
    ("u8:b_fs_yx_fsv32", "u8:byxf", [(2, 40, 5, 61), (1, 80, 37, 9), (3, 96, 7, 9)]),
    ("f32:b_fs_yx_fsv16", "s8:byxf", [(2, 40, 5, 67), (1, 20, 31, 9), (1, 255, 11, 13)]),
    ("f32:b_fs_yx_fsv32", "f32:byxf", [(2, 40, 5, 61), (1, 72, 9, 37), (1, 500, 9, 9)]),
    ("f16:b_fs_yx_fsv16", "f16:byxf", [(2, 40, 5, 61), (1, 36, 31, 19), (1, 1000, 7, 9)]),
]  # fmt: skip
COLLECTED = [
    ("u8:b_fs_yx_fsv16", "u8:bfyx", [(1, 20, 15, 19), (1, 16, 83, 61), (2, 40, 23, 29)]),
    ("u8:bfyx", "u8:byxf", [(1, 250, 5, 7), (2, 67, 13, 11), (1, 300, 9, 13)]),
    ("u8:byxf", "u8:bfyx", [(1, 100, 37, 39), (1, 67, 31, 37), (1, 130, 29, 31)]),
    ("f32:b_fs_yx_fsv32", "s8:bfyx", [(1, 40, 25, 27), (2, 33, 31, 33)]),
    ("f32:byxf", "f32:bfyx", [(1, 33, 17, 23), (1, 100, 37, 39)]),
]  # fmt: skip


@pytest.mark.parametrize(("src", "dst", "shapes"), [*GATHERED, *COLLECTED])
def test_boxes_have_room(
    src: str,
    dst: str,
    shapes: list[tuple[int, ...]],
    stream: cf.Stream,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fenced = Fenced(stream, monkeypatch)
    for dims in shapes:
        for front in (1, 3, 64):
            pair = D(dims, *src.split(":")), D(dims, *dst.split(":"))
            check_reorder(*pair, fenced.stream, front=front)
    assert fenced.arrays


def test_an_array_that_is_too_small_is_noticed(
    stream: cf.Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The canaries see an array of a third of the size."""
    fenced = Fenced(stream, monkeypatch, share=3)
    src, dst, shapes = GATHERED[0]
    pair = D(shapes[1], *src.split(":")), D(shapes[1], *dst.split(":"))
    with pytest.raises(AssertionError, match="bytes differ"):
        check_reorder(*pair, fenced.stream, front=1)
