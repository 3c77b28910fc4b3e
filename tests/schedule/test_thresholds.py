"""The table of thresholds, and how a measured one reaches plans."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

import clformats as cf
from clformats.problems import thresholds
from clformats.problems.traits import Traits

MB = 1 << 20
TABLE = Path(thresholds.__file__)
SOURCES = re.compile(r"\b(Measured|Fitted|Published|Chosen)\b")
NUMBERS = re.compile(r"[\d(][\d, .*<()-]*")
ELSEWHERE = {
    "ALL",
    "STEPS",
    "LANES",
    "STREAMS",
    "AHEADS",
    "FREE",
    "VECTORS",
    "WORDS",
    "LOOPS",
    "MOST_COMPARED",
    "SMALL",
}
"""Names of the rooms that stand for a notation or a mark: none decides between kernels."""


@pytest.mark.parametrize(
    ("name", "number"),
    [("compute_units", 0), ("group_size", -1), ("vector_bytes", 0), ("begin_bytes", 0),
     ("begin_bytes", 24)],
)  # fmt: skip
def test_numbers_that_no_device_has_are_refused(name: str, number: int) -> None:
    with pytest.raises(cf.InvalidArgument, match=f"{name}={number}"):
        Traits(**{name: number})  # type: ignore[arg-type]


def test_every_number_of_the_table_tells_its_source() -> None:
    body = ast.parse(TABLE.read_text()).body
    for node, after in pairwise(body):
        if isinstance(node, ast.Assign):
            said = after.value if isinstance(after, ast.Expr) else None
            text = said.value if isinstance(said, ast.Constant) else ""
            assert SOURCES.search(str(text)), ast.unparse(node)


def test_no_other_module_of_the_rooms_names_a_number() -> None:
    files = [*TABLE.parent.glob("*.py"), *(TABLE.parents[1] / "schedule").glob("*.py")]
    found = {
        ast.unparse(node.targets[0])
        for file in files if file != TABLE for node in ast.parse(file.read_text()).body
        if isinstance(node, ast.Assign) and NUMBERS.fullmatch(ast.unparse(node.value))
    }  # fmt: skip
    assert not {name for name in found if name.lstrip("_") not in ELSEWHERE}


def test_every_family_streams_from_where_it_was_measured() -> None:
    small = cf.MemoryDesc((3, MB), "f32", "ab")
    stores = [
        "stream" in str(cf.make_plan(small, small, Traits(streamed_bytes=n * MB)).body)
        for n in (23, 24, 25)
    ]
    assert stores == [True, True, False]


def test_plans_are_told_apart_by_what_was_measured() -> None:
    """A schedule is kept for a problem and a device: none is taken for that of another one."""
    src = cf.MemoryDesc((4, 64, 56, 56), "f32", "bfyx")
    dst = cf.MemoryDesc(src.dims, "f32", "byxf")
    base = Traits()
    first = str(cf.make_plan(src, dst, base).body)
    other = str(cf.make_plan(src, dst, replace(base, streamed_bytes=4 * MB)).body)
    assert ("stream" in first, "stream" in other) == (False, True)
    assert str(cf.make_plan(src, dst, base).body) == first
