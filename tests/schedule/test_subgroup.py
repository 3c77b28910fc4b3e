"""Plans for sub-groups, without a device: who gets one, and that the exchanges transpose."""

from __future__ import annotations

from math import prod

import pytest

import clformats as cf
from clformats.kernels import launch
from clformats.schedule import Traits
from clformats.schedule.computation import from_attr
from clformats.schedule.subgroup import LANES, READ_BYTES, WRITE_BYTES, Access, Bit, SubgroupPlan
from tests.support import BUFFERS, hurting_dims

D = cf.MemoryDesc
ALL = (1, 2, 4, 8)
GPU = Traits(is_cpu=False, subgroup_bytes=ALL)
OTHER_GPU = Traits(is_cpu=False)


def pair(src: str, dst: str, dims: str) -> tuple[D, D]:
    a, b = (":".join([*t.split(":")[:2], dims, *t.split(":")[2:]]) for t in (src, dst))
    return D.parse(a), D.parse(b)


def planned(src: D, dst: D) -> SubgroupPlan | None:
    plan = cf.make_plan(src, dst, GPU)
    if "register" in dict(plan.rejected).get("subgroup", ""):  # bytes: by name alone
        plan = cf.make_plan(src, dst, GPU, family="subgroup")
    body = plan.body
    return body if isinstance(body, SubgroupPlan) else None


def place(bits: tuple[Bit, ...], number: int) -> dict[Bit, int]:
    """The bits of a number by the tile's bits that they are."""
    return {bit: number >> j & 1 for j, bit in enumerate(bits)}


def element(access: Access, lane: int, register: int) -> frozenset[Bit]:
    """Which element of the tile is there: those of its bits that are 1."""
    bits = place(access.lanes, lane) | place(access.registers, register)
    return frozenset(bit for bit, value in bits.items() if value)


def exchanged(plan: SubgroupPlan) -> list[list[frozenset[Bit]]]:
    """The elements by register and lane behind the exchanges: what the kernel does, on lists."""
    registers = range(1 << len(plan.read.registers))
    regs = [[element(plan.read, lane, r) for lane in range(LANES)] for r in registers]
    for e in plan.exchanges:
        for a in registers:
            b, bit = a | 1 << e.register, 1 << e.lane
            if a != b:
                given = [regs[a if lane & bit else b][lane] for lane in range(LANES)]
                for lane in range(LANES):
                    regs[a if lane & bit else b][lane] = given[lane ^ bit]
    sources = list(range(LANES))
    if plan.order:
        sources = [sum((lane >> j & 1) << k for j, k in enumerate(plan.order)) for lane in sources]
    return [[row[lane] for lane in sources] for row in regs]


def row(plan: SubgroupPlan, access: Access, side: str, register: int) -> int:
    """Where the row of a register starts, from the tile's first element."""
    return sum(
        (getattr(plan.nodes[bit.node], side).value << bit.place) * value
        for bit, value in place(access.registers, register).items()
    )


TYPES = ("u8 u8", "f16 f16", "f32 f32", "f64 f64", "f32 s8", "u8 f32")


@pytest.mark.parametrize("turn", range(len(TYPES)))
def test_every_format_is_transposed_and_its_rows_fit_blocks(turn: int) -> None:
    """Lanes are contiguous, rows of a block follow each other, and all start where they may."""
    taken, dtypes = 0, TYPES[turn]
    for fmt in list(dict.fromkeys(BUFFERS))[turn :: len(TYPES)]:
        dims = tuple(16 * n for n in hurting_dims(fmt))
        a, b = dtypes.split()
        for src, dst in ((D(dims, a), D(dims, b, fmt)), (D(dims, a, fmt), D(dims, b))):
            plan = planned(src, dst)
            if plan is None:
                continue
            taken += 1
            rows = range(1 << len(plan.write.registers))
            want = [[element(plan.write, lane, r) for lane in range(LANES)] for r in rows]
            assert exchanged(plan) == want, plan
            check_access(plan, plan.read, "src", READ_BYTES)
            check_access(plan, plan.write, "dst", WRITE_BYTES)
    assert taken > 100


def check_access(plan: SubgroupPlan, access: Access, side: str, least: int) -> None:
    item = getattr(plan.problem, side).dtype.nbytes
    strides = [getattr(n, side).value for n in plan.nodes]
    assert [strides[b.node] << b.place for b in access.lanes] == [1, 2, 4, 8]
    assert [row(plan, access, side, 1 << j) for j in access.block] == [
        LANES << j for j in range(len(access.block))
    ]
    moves = [s << b for s, b, n in zip(strides, plan.bits, plan.nodes, strict=True)
             if n.size.value > 1 << b]  # fmt: skip
    moves += [row(plan, access, side, r) for r in range(1 << len(access.registers))]
    assert not any(n * item % least for n in (getattr(plan.problem, f"{side}0"), *moves)), plan


@pytest.mark.parametrize(
    ("src", "dst", "dims", "read", "written"),
    [
        ("f32:bfyx", "f32:b_fs_yx_fsv16", "2x35x5x8", 1, 8),
        ("f32:b_fs_yx_fsv16", "f32:bfyx", "2x35x5x8", 8, 1),
        ("u8:bfyx", "u8:b_fs_yx_fsv32", "2x35x8x8", 2, 8),
        ("f16:b_fs_yx_fsv16", "f16:bfyx", "2x35x8x8", 8, 2),
        ("f32:bfyx", "f32:bs_fs_yx_bsv16_fsv16", "17x19x4x4", 8, 1),
        ("u8:oiyx", "u8:os_is_yx_isv16_osv16", "17x19x8x8", 2, 2),
    ],
)
def test_rows_of_a_block(src: str, dst: str, dims: str, read: int, written: int) -> None:
    """Where tiles follow each other on a side, several rows are one access."""
    plan = planned(*pair(src, dst, dims))
    assert plan is not None
    assert (1 << len(plan.read.block), 1 << len(plan.write.block)) == (read, written)


@pytest.mark.parametrize(
    ("src", "dst", "dims", "why"),
    [
        ("f32:byxf", "f32:b_fs_yx_fsv16", "2x35x5x8", "same run of 16"),
        ("f32:bfyx", "f32:byxf", "2x15x5x8", "destination has no contiguous run"),
        ("f32:bfyx", "f32:b_fs_yx_fsv16", "2x35x3x5", "source has no contiguous run"),
        ("u8:bfyx", "u8:b_fs_yx_fsv16", "2x35x5x7", "source start at multiples of 4"),
        ("f32:b_fs_yx_fsv16", "f32:bfyx", "2x35x5x7", "destination start at multiples of 16"),
        ("s4:bfyx", "s8:b_fs_yx_fsv16", "2x35x5x8", "four bits"),
        ("s32:aBcd24b", "s32:aBcd16b", "2x40x4x4", "split at 16"),
        ("f32:bfyx", "f32:b_fs_yx_fsv16:pad=0+0x0+0x0+0x1+0", "2x32x5x24", ""),
        ("f32:bfyx:pad=0+0x0+0x0+0x0+1", "f32:b_fs_yx_fsv16", "2x32x5x8", "source has no"),
    ],
)
def test_refusals(src: str, dst: str, dims: str, why: str) -> None:
    src_desc, dst_desc = pair(src, dst, dims)
    if not why:
        assert planned(src_desc, dst_desc) is not None
        return
    with pytest.raises(cf.Unsupported, match=why):
        cf.make_plan(src_desc, dst_desc, GPU, "subgroup")
    assert planned(src_desc, dst_desc) is None


def test_what_the_device_lacks_is_said() -> None:
    src, dst = pair("f32:bfyx", "f32:b_fs_yx_fsv16", "2x35x5x8")
    for traits in (Traits(), OTHER_GPU):
        with pytest.raises(cf.Unsupported, match="device has no sub-groups"):
            cf.make_plan(src, dst, traits, "subgroup")
    without = Traits(is_cpu=False, subgroup_bytes=(2, 4))
    bytes_pair = pair("f16:bfyx", "u8:b_fs_yx_fsv16", "2x35x5x8")
    assert "no blocks of elements of 1 byte" in str(cf.make_plan(*bytes_pair, without))
    assert cf.make_plan(*bytes_pair, GPU, "subgroup").family == "subgroup"


def test_attributes_go_elsewhere() -> None:
    src, dst = pair("f32:bfyx", "f32:b_fs_yx_fsv16", "2x35x5x8")
    computation = from_attr(cf.Attr(src_scale=2.0), src, dst)
    plan = cf.make_plan(src, dst, GPU, None, computation)
    assert plan.family == "local"
    assert dict(plan.rejected)["subgroup"] == "values are computed on the way"


def test_only_gpus_with_blocks_take_it_by_themselves() -> None:
    src, dst = pair("f32:bfyx", "f32:b_fs_yx_fsv16", "2x35x5x8")
    assert cf.make_plan(src, dst, GPU).family == "subgroup"
    assert cf.make_plan(src, dst, OTHER_GPU).family == "local"
    assert "subgroup" not in str(cf.make_plan(src, dst, OTHER_GPU))
    cpu = Traits(subgroup_bytes=ALL)
    assert cf.make_plan(src, dst, cpu).family == "scheduled"
    assert cf.make_plan(src, dst, cpu, "subgroup").family == "subgroup"
    with pytest.raises(cf.Unsupported, match=r"expected one of .*subgroup"):
        cf.make_plan(src, dst, family="nonsense")


def test_a_shape_of_the_same_structure_has_the_same_kernel() -> None:
    """Law 7, for shapes whose rows are aligned."""
    sources = set()
    for dims in ("2x35x5x8", "3x99x12x10", "5x51x20x4", "7x67x32x32"):
        launched = launch(
            cf.make_plan(*pair("f32:bfyx", "s8:b_fs_yx_fsv16", dims), GPU, "subgroup")
        )
        assert launched is not None
        assert launched.local_size == LANES
        sources.add(launched.source)
    assert len(sources) == 1
    # Where the buffers start is known at execution alone; elements of 4 bytes are aligned.
    assert "(uintptr_t)dst & 15" in sources.pop()
    read = launch(cf.make_plan(*pair("u8:bfyx", "u8:b_fs_yx_fsv16", "2x35x5x8"), GPU, "subgroup"))
    assert read is not None
    assert "(uintptr_t)src & 3" in read.source


def test_tiles_cover_all_loops() -> None:
    plan = planned(*pair("u8:bfyx", "f32:b_fs_yx_fsv8", "3x35x4x9"))
    assert plan is not None
    covered = [plan.positions(k).value << b for k, b in enumerate(plan.bits)]
    assert all(c >= n.size.value for c, n in zip(covered, plan.nodes, strict=True))
    assert plan.tiles == prod(plan.positions(k).value for k in range(len(plan.nodes)))


def test_bytes_are_left_to_local_memory() -> None:
    """Intel's compiler spills where each byte of a tile is a register; by name it is had."""
    src, dst = D((2, 64, 32, 32), "u8", "bfyx"), D((2, 64, 32, 32), "u8", "byxf")
    plan = cf.make_plan(src, dst, GPU)
    assert plan.family == "local"
    assert "register" in dict(plan.rejected)["subgroup"]
    assert cf.make_plan(src, dst, GPU, family="subgroup").family == "subgroup"


@pytest.mark.parametrize("before", [0, 16])
def test_nothing_is_read_for_the_padding_before(before: int) -> None:
    """There may be no memory in front of the source; zeros are written all the same."""
    src = D.parse("f32:bfyx:2x32x5x32")
    dst = D.parse(f"f32:b_fs_yx_fsv16:2x32x5x32:pad=0+0x{before}+16x0+0x0+0")
    kernel = launch(cf.make_plan(src, dst, GPU, family="subgroup"))
    assert kernel is not None
    lines = [line for line in kernel.source.splitlines() if line.lstrip().startswith("if (")]
    reads = [line for line in lines if "LOADED(src[" in line]
    assert len(reads) == 16
    assert all((">= lo0" in line) == (before > 0) for line in reads)
    assert not any(">= lo0" in line for line in lines if "dst[" in line)
