"""Lines joined from several registers: that each has its elements, and which plans do it."""

from __future__ import annotations

import pytest

import clformats as cf
from clformats.schedule import make_plan
from clformats.schedule.choices import RULES, Choices
from clformats.schedule.join import LEAST_BYTES, MOST_STEPS, MOST_VECTORS, Join, groups
from clformats.schedule.lanes import Bit
from clformats.schedule.tile import TilePlan
from clformats.schedule.traits import Traits
from clformats.schedule.walk import Reads


def _plan(dims: tuple[int, ...], types: str, choices: Choices = RULES, **traits: int) -> TilePlan:
    src, dst = (cf.MemoryDesc(dims, *text.split(":")) for text in types.split())
    given = Traits(**{"streamed_bytes": 0, **traits})  # type: ignore[arg-type]
    body = make_plan(src, dst, given, choices=choices).body
    assert isinstance(body, TilePlan)
    return body


def _far(plan: TilePlan, side: str, bits: tuple[Bit, ...], number: int) -> int:
    """How far the bits of a number move on a side."""
    strides = [getattr(n, side).value for n in plan.nodes]
    return sum(strides[b.node] << b.place for j, b in enumerate(bits) if number >> j & 1)


def _check(plan: TilePlan) -> Join:
    """Every store has the elements of its place, by what the loops say of both sides alone."""
    join = plan.join
    assert join
    node = plan.nodes[join.node]
    values: list[list[int | None]] = []
    for step, register in join.loads:
        begin = node.src.value * step + _far(plan, "src", plan.registers, register)
        lanes = range(plan.lanes)
        at = [begin + _far(plan, "src", plan.load, lane) for lane in lanes]
        assert at == [begin + lane for lane in lanes]
        to = node.dst.value * step + _far(plan, "dst", plan.registers, register)
        values.append([to + _far(plan, "dst", plan.load, lane) for lane in lanes])
    for a, b, pattern in join.mixes:
        both = values[a] + values[b]
        values.append([both[lane] for lane in pattern])
    written: list[int | None] = []
    for value, row, place in join.stores:
        begin = _far(plan, "dst", plan.store_registers, row) + place
        assert values[value] == [begin + lane for lane in range(plan.lanes)]
        written += values[value]
    assert len({*written}) == len(written) == plan.elements
    return join


CASES = [
    ((1280, 320, 3, 3), "f32:os_is_yx_osv16_isv4 f32:oiyx", 36, 4),
    ((1280, 320, 3, 3), "f32:os_is_yx_osv16_isv16 f32:oiyx", 9, 1),
    ((768, 768, 3, 3), "f32:OIhw8i8o f32:oiyx", 72, 8),
    ((768, 768, 3, 3), "f16:OIhw8i8o f16:oiyx", 144, 8),
    ((768, 768, 3, 3), "f32:OIhw16i16o4i bf16:oiyx", 144, 4),
    ((768, 768, 3, 3), "f16:OIhw8i16o2i f16:oiyx", 144, 8),
    ((768, 768, 3, 3), "s8:os_is_yx_osv16_isv4 s8:oiyx", 144, 4),
    ((768, 768, 3, 3), "f16:os_is_yx_osv16_isv16 f32:oiyx", 9, 1),
    ((768, 768, 3, 3), "u8:os_is_yx_osv32_isv32 u8:oiyx", 36, 1),
    ((768, 768, 1, 3), "f32:os_is_yx_osv16_isv4 f32:oiyx", 12, 4),
    ((768, 768, 5, 5), "f32:ohwi f32:oiyx", 25, 1),
    ((768, 768, 7, 7), "f32:os_is_yx_osv16_isv16 f32:oiyx", 49, 1),
    ((64, 1280, 7, 7), "f16:b_fs_yx_fsv16 f16:bfyx", 98, 1),
    ((999, 512, 5, 5), "f32:b_fs_yx_fsv16 f32:bfyx", 25, 1),
    ((16, 12, 112, 112), "f32:bfyx f32:byxf", 12, 1),
    ((16, 20, 112, 112), "f16:bfyx f16:byxf", 20, 1),
    ((16, 6, 112, 112), "f64:bfyx f64:byxf", 6, 1),
]


@pytest.mark.parametrize(("dims", "types", "vectors", "rows"), CASES)
def test_lines_are_joined(dims: tuple[int, ...], types: str, vectors: int, rows: int) -> None:
    plan = _plan(dims, types)
    join = _check(plan)
    assert len(join.loads) == plan.register_count == vectors
    assert 1 << len(plan.store_registers) == rows
    assert plan.nontemporal
    assert plan.positions(join.node).value == 1
    assert len(join.mixes) < 6 * vectors


SIZES = [n for n in range(3, MOST_STEPS) if n & (n - 1)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_lines_of_every_length_of_the_short_loop(size: int, lanes: int) -> None:
    """All that there are, for blocks of 4 and of 16, also where the whole tile is one run."""
    choices = Choices(lanes=lanes)
    for types in ("f32:os_is_yx_osv16_isv4 f32:oiyx", "bf16:os_is_yx_osv16_isv16 bf16:oiyx"):
        plan = _plan((32, 64, 1, size), types, choices)
        if plan.join:
            _check(plan)
        assert plan.join or size << len(plan.registers) > 30


@pytest.mark.parametrize("size", [*SIZES, MOST_STEPS])
def test_groups_of_steps_are_powers_of_two_one_behind_the_other(size: int) -> None:
    for most in (2, 3, 4):
        steps = [
            step for first, bits in groups(size, most) for step in range(first, first + 2**bits)
        ]
        assert steps == [*range(size)]
        assert all(bits <= most for _, bits in groups(size, most))


@pytest.mark.parametrize(
    ("dims", "types"),
    [
        ((1280, 330, 3, 3), "f32:os_is_yx_osv16_isv4 f32:oiyx"),  # inputs are padded
        ((1270, 320, 3, 3), "f32:os_is_yx_osv16_isv4 f32:oiyx"),  # outputs are padded
        ((1280, 320, 4, 4), "f32:os_is_yx_osv16_isv4 f32:oiyx"),  # 16 positions fill vectors
        ((1280, 320, 9, 9), "f32:os_is_yx_osv16_isv4 f32:oiyx"),  # 81 positions
        ((1280, 320, 3, 3), "f32:os_is_yx_isv16_osv16 f32:oiyx"),  # a run of the destination
        ((1280, 320, 3, 3), "f32:hwio f32:oiyx"),
        ((64, 1280, 7, 7), "f32:byxf f32:bfyx"),  # 49 rows that are read far apart
        ((16, 50, 112, 112), "f32:bfyx f32:byxf"),
        ((16, 29, 112, 112), "u8:bfyx u8:byxf"),  # 29 rows, 4 vectors of each
        ((64, 1280, 7, 7), "f32:b_fs_yx_fsv8 f32:bfyx"),  # two positions in a vector
        ((16, 48, 112, 112), "f32:bfyx f32:byxf"),  # 16 channels are a line
        ((16, 3, 112, 112), "f32:bfyx f32:byxf"),  # a comb
    ],
)
def test_lines_are_not_joined(dims: tuple[int, ...], types: str) -> None:
    assert _plan(dims, types).join is None


def test_vectors_are_joined_where_lines_cannot_be() -> None:
    """What the cache holds, and rows that start anywhere, are stored by ordinary vectors."""
    dims, types = (1280, 320, 3, 3), "f32:os_is_yx_osv16_isv4 f32:oiyx"
    for plan in (
        _plan(dims, types, streamed_bytes=1 << 40),
        _plan(dims, types, begin_bytes=4),
        _plan((1280, 100, 3, 3), types),  # 25 blocks of inputs: the last tile overlaps
        _plan((1280, 372, 3, 3), types),
    ):
        _check(plan)
        assert not plan.nontemporal
    assert _plan((1280, 372, 3, 3), types).positions(2).value == 24
    # Vectors of 16 of 25 positions are whole already, and so are lines that are carried.
    assert _plan((9, 512, 5, 5), "f32:b_fs_yx_fsv16 f32:bfyx", streamed_bytes=1 << 40).join is None
    assert _plan((16, 20, 131, 133), "f32:bfyx f32:byxf").walk.carries


def test_a_tile_that_lies_in_one_piece_is_read_in_its_order() -> None:
    """So are several that do together; what they read in turn is asked for before."""
    for dims, types, inner in (
        ((768, 768, 3, 3), "f32:OIhw8i8o f32:oiyx", False),
        ((768, 768, 3, 3), "f32:OIhw16i16o4i f32:oiyx", True),  # 4 tiles, of 36 KB
        ((768, 768, 3, 3), "f32:os_is_yx_osv16_isv16 f32:oiyx", True),
        ((768, 768, 3, 3), "f32:ohwi f32:oiyx", True),
    ):
        plan = _plan(dims, types)
        assert plan.walk.reads is Reads.PIECES
        assert plan.walk.ahead == 1
        assert (plan.walk.inner is not None) == inner


def test_vectors_of_a_tile_are_limited_and_not_too_short() -> None:
    dims = (64, 64, 5, 5)
    assert _plan(dims, "f32:OIhw8i8o f32:oiyx").join is None  # 200 vectors
    assert 25 * 8 > MOST_VECTORS >= 9 * 16
    types = "s8:os_is_yx_osv16_isv4 s8:oiyx"
    assert _plan((64, 64, 3, 3), types, Choices(lanes=4)).join is None
    assert LEAST_BYTES > 4
