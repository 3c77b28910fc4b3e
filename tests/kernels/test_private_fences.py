"""Line buffers, and runs that are collected, have room for all that is put there.

Nothing protects private memory, so the kernels are given buffers with canaries on both sides, which
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

pytestmark = pytest.mark.usefixtures("plans_for_cpus")

D = cf.MemoryDesc
SPARE = 16384
"""Bytes of canary on each side."""
HELD = re.compile(
    r"    (\w+) held\[\d+\] __attribute__\(\(aligned\(4096\)\)\);\n    Rows waits\[(\d+)\]"
)
ROWS = re.compile(r"#define ROWS\(n\) [^\n]+\n")
STAGE = re.compile(r"    (\w+) stage\[([^]]+)\] __attribute__\(\(aligned\(4096\)\)\);\n")
BEGIN = re.compile(r"    Rows waits[^\n]+\n|#define stage [^\n]+\n")
EACH = "    for (int g = 0; g <= GROUPS; ++g) {{\n{}    }}\n"
FILL = f"    for (int i = 0; i < {SPARE}; ++i) buffer.front[i] = buffer.behind[i] = 0x5A;\n"
LOOK = (
    f"    for (int i = 0; i < {SPARE}; ++i) {{\n"
    "        if (buffer.front[i] != 0x5A || buffer.behind[i] != 0x5A) *(__global uchar *)all = 0;\n"
    "    }\n"
)
BETWEEN = "((uchar *)(held + ROWS(g)) - SPARE)[i]"
"""A canary in front of the rows of tile ``g``, and behind those of the one before."""


def with_canaries(source: str, room: str) -> str:
    """The kernel with canaries around its stage, or around the rows of each tile.

    ``room``: the elements of the last row of a tile; empty for as many as the kernel gives it.
    """
    source = STAGE.sub(
        rf"    struct {{ uchar front[{SPARE}] __attribute__((aligned(64)));\n"
        rf"    \1 stage[\2] __attribute__((aligned(64)));\n"
        rf"    uchar behind[{SPARE}]; }} buffer;\n#define stage buffer.stage\n",
        source,
    )
    fill, look = FILL, LOOK
    if held := HELD.search(source):
        kind, groups = held.groups()
        count = source.split("int r = 0; r < ")[1].split(";")[0]
        apart = f"(ROW({count} - 1) + {room or 'ROOM'} + SPARE / (int)sizeof({kind}))"
        source = ROWS.sub(
            f"#define SPARE {SPARE}\n#define GROUPS {groups}\n"
            f"#define ROWS(n) ((n) * {apart} + SPARE / (int)sizeof({kind}))\n",
            source,
        )
        source = HELD.sub(
            r"    \1 held[ROWS(GROUPS)] __attribute__((aligned(64)));\n    Rows waits[\2]", source
        )
        loop = "        for (int i = 0; i < SPARE; ++i) "
        fill = EACH.format(f"{loop}{BETWEEN} = 0x5A;\n")
        look = EACH.format(f"{loop}if ({BETWEEN} != 0x5A) *(__global uchar *)all = 0;\n")
    begin = BEGIN.search(source)
    assert begin
    body, brace = source.rstrip()[:-1], "}\n"
    at = begin.end()
    declared = "    __global void *const all = dst;\n"
    return f"{body[:at]}{declared}{fill}{body[at:]}{look}{brace}"


class Fenced:
    """A stream of an engine whose tensors count as large, and whose kernels have canaries.

    ``buffers`` are as many as they have had; ``room``: see `with_canaries`.
    """

    def __init__(self, stream: cf.Stream, monkeypatch: pytest.MonkeyPatch, room: str = "") -> None:
        if "rusticl" in stream.engine.device.platform.name:
            pytest.skip("llvmpipe compiles private arrays with canaries for minutes")
        self.engine = cf.Engine(device=stream.engine.device)
        self.engine.traits = replace(self.engine.traits, streamed_bytes=0, vector_bytes=64)
        self.stream, self.buffers, self.room = cf.Stream(self.engine), 0, room
        self.build = self.engine.shared_kernel
        monkeypatch.setattr(self.engine, "shared_kernel", self.built)

    def built(self, source: str, *rest: Any) -> Any:
        """The kernel with canaries."""
        found = HELD.search(source) or STAGE.search(source)
        self.buffers += found is not None
        return self.build(with_canaries(source, self.room) if found else source, *rest)


CASES = [
    ("f32:b_fs_yx_fsv16", "f32:bfyx", (2, 40, 23, 29),
     "tile c16 d16 of 16 | a* b* d*14 d", "lines"),
    ("f16:b_fs_yx_fsv16", "f16:bfyx", (2, 40, 23, 29),
     "tile c16 d32 of 16 | a* b* d*14 d", "lines"),
    ("u8:b_fs_yx_fsv16", "u8:bfyx", (1, 16, 83, 61), "tile a16 b64 of 16 | b*20 b", "lines"),
    ("f32:bfyx", "f32:byxf", (2, 67, 13, 11), "tile b16 c16 of 16 | a* b c", "lines"),
    ("f32:byxf", "f32:bfyx", (1, 33, 17, 23), "tile a16 b16 of 16 | a* b", "lines"),
    ("u8:byxf", "u8:bfyx", (1, 100, 37, 39), "tile a16 b64 of 16 | a* b", "lines"),
    # Rows of any length: parts that overlap, and with other tiles between.
    ("u8:bfyx", "u8:byxf", (2, 171, 9, 23), "tile b8 c64 of 16 | a* b:3 c b", "lines"),
    ("u8:bfyx", "u8:byxf", (3, 71, 9, 23), "tile a2 b3 c71 of 8 | a b", "lines"),
    ("u8:bfyx", "f32:yxfb", (17, 37, 5, 7), "tile a16 c17 of 16 | b a", "lines"),
    ("u8:bfyx", "f32:yxfb", (17, 37, 5, 7), "tile a8 c16 of 8 | a:2 b c a", "lines"),
    ("f16:bfyx", "f16:yxfb", (51, 13, 5, 7), "tile a8 b3 c51 of 8 | a:2 b a", "lines"),
    ("f32:bfyx", "f64:yxfb", (3, 37, 5, 7), "tile a8 b5 c3 of 8 | a:4 b a", "lines"),
    ("f32:ioyx", "f16:oiyx", (32, 73, 7, 1), "tile a2 b2 c7 of 16 | b a", "staged 2"),
    ("f32:oiyx", "bf16:os_is_yx_isv16_osv16", (16, 96, 3, 3),
     "tile b9 c4 d16 of 16 | a c", "staged 2"),
    # As long as a stage, where the run begins at a line.
    ("f32:ioyx", "f16:oiyx", (32, 64, 8, 1), "tile a2 b2 c8 of 16 | b a", "staged 2"),
]  # fmt: skip


@pytest.mark.parametrize(("src", "dst", "dims", "text", "store"), CASES)
def test_buffers_have_room(
    src: str, dst: str, dims: tuple[int, ...], text: str, store: str, stream: cf.Stream,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    fenced = Fenced(stream, monkeypatch)
    pair = D(dims, *src.split(":")), D(dims, *dst.split(":"))
    choices = cf.Choices(schedule=f"{text} | ahead 4 | {store}")
    for front in (1, 3, 64):
        check_reorder(*pair, fenced.stream, front=front, choices=choices)
    assert fenced.buffers


def test_a_buffer_that_is_too_small_is_noticed(
    stream: cf.Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The canaries see rows without a place for the line that is not full."""
    fenced = Fenced(stream, monkeypatch, room="WIDTH")
    src, dst, dims, text, _ = CASES[2]
    pair = D(dims, *src.split(":")), D(dims, *dst.split(":"))
    choices = cf.Choices(schedule=f"{text} | ahead 4 | lines")
    with pytest.raises(AssertionError, match="bytes differ"):
        check_reorder(*pair, fenced.stream, front=1, choices=choices)
