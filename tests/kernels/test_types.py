"""Every pair of element types: values that are hard to convert, and each code of the small ones."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest

import clformats as cf
from clformats.kernels import render
from clformats.kernels.types import conversion
from clformats.tensors.nibbles import refusal
from clformats.timing import timed
from tests.device_support import check_bytes, check_reorder, expected, guarded, memory_of, moved
from tests.support import DTYPES, dirty_pack, random_values

pytestmark = pytest.mark.sampled(32)

D = cf.MemoryDesc
FLOAT8 = ("f8_e4m3", "f8_e5m2")
ALL_TYPES = (*DTYPES, "f64", *FLOAT8, "s4", "u4")

SPECIAL = [0.0, -0.0, 0.5, 1.5, -2.5, 127.5, -128.5, 254.5, 255.5, 65519.99, 65520.0, 1e10, -1e10,
           2147483520.0, 2147483648.0, -2147483904.0, 1e-40, 2.0**-24, 2.0**-25, 3e38, np.inf,
           -np.inf, 16777217.0, 1.00390625, 1.01171875, 300.0, -300.0]  # fmt: skip
# And what only f64 holds: between two f32, beyond them, and where rounding twice goes wrong.
SPECIAL_F64 = [*SPECIAL, 2147483647.0, 2147483646.5, 2147483647.5, -2147483648.5, 16777219.0,
               1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-24 + 2.0**-52,
               0.5 + 2.0**-50, 2.5 - 2.0**-50, 65520 - 2.0**-30, 3.5e38, -1e300, 1e-300,
               2.0**-150, 2.0**-1074, 2.0**-25 + 2.0**-60, 127.5 - 2.0**-40,
               254.5 + 2.0**-40]  # fmt: skip


# A run, a tile with an edge, and rows with an edge; the second sizes leave a rest everywhere.
LAYOUTS = [("abc", "abc"), ("abc", "aBc16b"), ("acb", "aBc16b")]
SIZES = [(3, 19, 18), (2, 33, 31)]


def needs_fp64(src: str, dst: str, stream: cf.Stream) -> None:
    if "f64" in (src, dst) and src != dst and not stream.engine.traits.has_fp64:
        pytest.skip("the device has no double precision")


def special(src: str, dims: tuple[int, ...]) -> Any:
    """The special values as the type ``src``."""
    kind = cf.tensors.dtypes.as_dtype("f64" if src == "f64" else "f32")
    values = np.resize(np.array(SPECIAL_F64 if src == "f64" else SPECIAL, kind.numpy), dims)
    if src == "f8_e4m3":  # has no infinities but NaN, and what is in a NaN is the device's
        values = np.where(np.abs(values) <= 448, values, 1)
    return cf.tensors.dtypes.convert(values, kind, cf.tensors.dtypes.as_dtype(src))


@pytest.mark.parametrize(("src", "dst"), list(product(ALL_TYPES, ALL_TYPES)))
def test_every_pair_of_types_on_special_values(src: str, dst: str, stream: cf.Stream) -> None:
    """The loads and stores of all widths; in front of the tensor an odd number of bytes."""
    needs_fp64(src, dst, stream)
    for k, (a, b) in enumerate(LAYOUTS):
        dims = SIZES[0 if refusal(D(SIZES[k % 2], dst, b)) else k % 2]
        front = 2 if dst in ("s4", "u4") else 3
        check_reorder(
            D(dims, src, a), D(dims, dst, b), stream, array=special(src, dims), front=front
        )


@pytest.mark.parametrize("dst", ["s8", "u8", "s32", "f16", "bf16", *FLOAT8, "s4", "u4"])
@pytest.mark.parametrize("src", ["f32", "f16", "bf16", *FLOAT8])
def test_nan(src: str, dst: str, stream: cf.Stream) -> None:
    """NaN becomes 0 in integers and stays NaN in floats, vector and tail alike."""
    desc = D((38,), src)
    source = memory_of(np.full(38, np.nan, desc.dtype.numpy), desc, stream.engine)
    target = cf.reorder(source, dtype=dst, stream=stream)
    got = cf.to_numpy(target, stream=stream)
    if target.desc.dtype.is_float:
        assert np.isnan(got.astype(np.float32)).all()
    else:
        assert not got.any()


def same_on_host_and_device(values: Any, src: str, dst: str, stream: cf.Stream) -> None:
    """By the widest vectors and, in a rest of one element each, one by one."""
    a = cf.tensors.dtypes.as_dtype(src)
    if not stream.engine.traits.is_cpu and "f16" in (src, dst):
        # What else is in a NaN is the device's: NVIDIA's conversions of f16 know one NaN.
        nan = np.isnan(values.view(a.numpy).astype(np.float32))
        values = np.where(nan, 0, values).astype(values.dtype)
    for dims in ((values.size,), (values.size, 1)):
        desc = D(dims, src) if len(dims) == 1 else D(dims, src, strides=(2, 1))
        check_reorder(desc, D(dims, dst), stream, array=values.view(a.numpy).reshape(dims))


@pytest.mark.parametrize("pair", [("f32", "f16"), ("f16", "f32")])
def test_older_compilers_do_not_meet_their_unknown_type(
    pair: tuple[str, str], engine: cf.Engine
) -> None:
    """Clang has `_Float16` for x86 from version 15 on; PoCL 1.8 of Ubuntu 22.04 has version 13."""
    src, dst = (D((4096,), dtype) for dtype in pair)
    made = render(cf.make_plan(src, dst, engine.traits))
    assert made
    older = "#undef __clang_major__\n#define __clang_major__ 14\n#define _Float16 unknown\n"
    assert engine.kernel(older + made.source, made.KERNEL).function_name == made.KERNEL


def _waited(reorder: cf.Reorder, stream: cf.Stream, src: cf.Memory, dst: cf.Memory) -> None:
    reorder(stream, src, dst).wait()


@pytest.mark.slow
@pytest.mark.parametrize("src", ["s8", "u4"])
def test_small_integers_become_halves_in_vectors(src: str, stream: cf.Stream) -> None:
    """LLVM joined two conversions into one that it does element by element, ten times as slow."""
    memory = cf.Memory(D((2048, 2048), src), stream.engine)
    best = {}
    for dst in ("f16", "f32"):
        to = cf.Memory(D((2048, 2048), dst), stream.engine)
        reorder = cf.Reorder(memory.desc, to.desc, stream.engine, wait=True)
        best[dst] = min(timed(partial(_waited, reorder, stream, memory, to)) for _ in range(20))
    assert best["f16"] < 2 * best["f32"]


@pytest.mark.parametrize("dst", ALL_TYPES)
@pytest.mark.parametrize("src", [*FLOAT8, "s8", "u8"])
def test_every_byte_to_every_type(src: str, dst: str, stream: cf.Stream) -> None:
    needs_fp64(src, dst, stream)
    same_on_host_and_device(np.arange(256, dtype=np.uint8), src, dst, stream)


@pytest.mark.parametrize("dst", [*FLOAT8, "s8", "u8"])
@pytest.mark.parametrize("src", ["f16", "bf16"])
def test_every_value_of_16_bits_to_bytes(src: str, dst: str, stream: cf.Stream) -> None:
    same_on_host_and_device(np.arange(1 << 16, dtype=np.uint16), src, dst, stream)


@pytest.mark.parametrize("src", ["f32", "f64"])
@pytest.mark.parametrize("dst", [*FLOAT8, "s4", "u4"])
def test_where_rounding_turns(src: str, dst: str, stream: cf.Stream) -> None:
    """Every value of the small type, every halfway point, and what lies next to each."""
    needs_fp64(src, dst, stream)
    small, wide = cf.tensors.dtypes.as_dtype(dst), cf.tensors.dtypes.as_dtype(src).numpy.type
    codes = (
        np.arange(256, dtype=np.uint8).view(small.numpy) if small.is_float else np.arange(-20, 20)
    )
    known = codes.astype(np.float32)
    known = np.sort(known[np.isfinite(known)])
    points = np.concatenate([known, (known[1:] + known[:-1]) / 2, known * 2, known / 8])
    points = np.append(points, [np.inf, -np.inf, 3e38, -1e-40]).astype(wide)
    nexts = [np.nextafter(points, wide(to)) for to in (np.inf, -np.inf)]
    with np.errstate(over="ignore"):
        far = [points * wide(1 + 2.0**-k) for k in (10, 16, 22, 30)]
    values = np.concatenate([points, *nexts, *far])
    same_on_host_and_device(values[: values.size // 2 * 2], src, dst, stream)


def test_eight_bit_floats_by_hand(stream: cf.Stream) -> None:
    """Numbers that do not come from the host's own conversion: the rule where it may be doubted."""
    cases = {
        "f8_e4m3": {1.0: 0x38, -0.0: 0x80, 448.0: 0x7E, 464.0: 0x7E, 464.0001: 0x7F, np.inf: 0x7F,
                    -np.inf: 0xFF, 1.0625: 0x38, 1.1875: 0x3A, 2.0**-9: 1, 2.0**-10: 0,
                    3 * 2.0**-10: 2, 2.0**-10 + 2.0**-30: 1, 2.0**-6: 8},
        "f8_e5m2": {1.0: 0x3C, -0.0: 0x80, 57344.0: 0x7B, 61439.0: 0x7B, 61440.0: 0x7C,
                    -np.inf: 0xFC, 1.125: 0x3C, 1.375: 0x3E, 2.0**-16: 1, 2.0**-17: 0,
                    3 * 2.0**-17: 2, 2.0**-17 + 2.0**-35: 1, 2.0**-14: 4},
    }  # fmt: skip
    for dtype, table in cases.items():
        source = cf.from_numpy(np.array(list(table), np.float32), stream.engine)
        with cf.reorder(source, dtype=dtype, stream=stream).map("r") as codes:
            assert codes.view(np.uint8).tolist() == list(table.values())


def test_f64_is_rounded_to_f32_first(stream: cf.Stream) -> None:
    """As ml_dtypes does: halfway between two values after that, whatever was below."""
    needs_fp64("f64", "f8_e4m3", stream)
    source = cf.from_numpy(np.array([1.0625 + 2.0**-40, 1.0625 + 2.0**-22]), stream.engine)
    with cf.reorder(source, dtype="f8_e4m3", stream=stream).map("r") as codes:
        assert codes.view(np.uint8).tolist() == [0x38, 0x39]


@pytest.mark.parametrize("front", [0, 1, 2, 5])
@pytest.mark.parametrize("src", ["s4", "u4", "f16"])
@pytest.mark.parametrize("dst", ["s4", "u4", "f32"])
def test_halves_of_bytes_in_all_nestings(src: str, dst: str, front: int, stream: cf.Stream) -> None:
    """Runs long and short, rows, transpositions, padding and gaps; a source from any half byte."""
    pads = ((0, 0), (2, 4), (1, 1))
    pairs = [
        (D((2, 4099, 2), src), D((2, 4099, 2), dst)),
        (D((3, 18, 7), src, "acb"), D((3, 18, 7), dst, "aBc16b")),
        (D((3, 32, 7), src, "acb"), D((3, 32, 7), dst, "aBc16b")),
        (D((6, 5, 4), src), D((6, 5, 4), dst, "cba")),
        (D((6, 5, 4), src, padding=pads), D((6, 5, 4), dst, "ABc2b8a")),
        (D((6, 5, 4), src), D((6, 5, 4), dst, padding=pads)),
        (D((6, 5, 4), src, strides=(31, 5, 1)), D((6, 5, 4), dst, strides=(26, 4, 1))),
        (D((6, 16, 9), src, strides=(0, 1, 16)), D((6, 16, 9), dst, "acb")),
    ]
    rng = np.random.default_rng(front)
    for a, b in pairs:
        array = random_values(rng, a.dims, src)
        if 0 in a.strides:
            array = np.broadcast_to(array[:1], a.dims)
        source, target = moved(a, front), moved(b, front & ~1 if dst != "f32" else front)
        memory = memory_of(dirty_pack(rng, array, source), source, stream.engine)
        to = guarded(target, stream.engine)
        reorder = cf.Reorder(source, target, stream.engine)
        reorder(stream, memory, to).wait()
        check_bytes(to, expected(array, source, target), reorder.plan)


@pytest.mark.parametrize("attr", [None, cf.Attr(src_zero_point=([0.5, 1.5], 1))])
@pytest.mark.parametrize("src", ["f32", "s4"])
def test_runs_that_end_amid_a_byte(src: str, attr: cf.Attr | None, stream: cf.Stream) -> None:
    """Two rows of 17 elements: the byte between them is of both."""
    source = D((2, 17), src, strides=(18, 1))
    reorder = check_reorder(source, D((2, 17), "u4"), stream, attr=attr)
    assert reorder.plan.family == ("scheduled" if stream.engine.traits.is_cpu else "generic")


@pytest.mark.parametrize("dtype", ["s4", "u4"])
def test_halves_of_bytes_between_numpy_and_a_device(dtype: str, stream: cf.Stream) -> None:
    """Arrays of logical shape have one element each, memory has the bytes; odd sizes too."""
    a = random_values(np.random.default_rng(5), (3, 5), dtype)
    memory = cf.from_numpy(a, stream.engine)
    assert memory.desc == D((3, 5), dtype)
    with memory.map("r") as flat:
        assert (flat == cf.pack(a, memory.desc)).all()
        assert flat.dtype == np.uint8
        assert flat.size == 8
    assert (cf.to_numpy(memory) == a).all()
    wide = cf.reorder(memory, "ba", dtype="f32", stream=stream)
    assert (cf.to_numpy(wide, stream=stream) == a.astype(np.float32)).all()
    again = cf.reorder(wide, "ab", dtype=dtype, stream=stream)
    assert (cf.to_numpy(again, stream=stream) == a).all()
    weights = np.random.default_rng(6).integers(0, 8, (70, 6)).astype(np.float32)
    blocked = cf.reorder(
        cf.from_numpy(weights, stream.engine), "os_is_yx_osv32_isv2", dtype=dtype, stream=stream
    )
    back = cf.reorder(blocked, dtype="f16", stream=stream)
    assert back.desc == D((70, 6), "f16", "os_is_yx_osv32_isv2")
    assert (cf.to_numpy(back, stream=stream) == weights).all()


@pytest.mark.usefixtures("plans_for_cpus")
def test_a_run_of_another_length_compiles_nothing(stream: cf.Stream) -> None:
    """A few kernels for all lengths of a run."""
    built = []
    for n in (2, 30, 4096, 4098, 20002):
        for a, b in ((D((n,), "f32"), D((n,), "s4")), (D((n + 1,), "s4"), D((n + 1,), "f16"))):
            check_reorder(a, b, stream)
        built.append(stream.engine.programs_built)
    assert len(set(built[2:])) == 1


SMALL_PAIRS = [("s4", "f16"), ("u4", "f32"), ("f32", "s4"), ("s8", "u4"), ("s4", "s4"),
               ("u4", "s4"), ("s4", "f64"), ("s4", "f8_e4m3"), ("f8_e4m3", "f16"),
               ("f32", "f8_e5m2"), ("f8_e5m2", "f8_e5m2"), ("f64", "f8_e4m3")]  # fmt: skip


@pytest.mark.parametrize(("src", "dst"), SMALL_PAIRS)
def test_attributes_of_small_types(src: str, dst: str, stream: cf.Stream) -> None:
    """Quantised weights: scales for each channel, in runs, in tiles, byte by byte, and a sum."""
    needs_fp64(src, dst, stream)
    dims = (2, 19, 5, 18)
    scales = np.linspace(0.25, 3, 19)
    attrs = [
        cf.Attr(src_scale=0.5, dst_scale=0.3, src_zero_point=2, dst_zero_point=3, beta=0.7),
        cf.Attr(src_scale=(scales, 2), src_zero_point=(np.arange(19) % 5, 2)),
        cf.Attr(src_scale=(scales, 2), beta=1, expression="max(x, 0.f) * 0.5f + 1"),
        cf.Attr(dst_scale=(np.linspace(0.5, 2, 18), 8)),
    ]
    for attr in attrs:
        check_reorder(D(dims, src), D(dims, dst), stream, attr=attr, front=2)
    for attr in attrs[::2]:
        check_reorder(D(dims, src), D(dims, dst, "b_fs_yx_fsv16"), stream, attr=attr, front=2)
    check_reorder(D((2, 6, 5, 9), src), D((2, 6, 5, 9), dst, "byxf"), stream, attr=attrs[0])


def test_scaled_runs_stay_runs(stream: cf.Stream) -> None:
    """The common case: weights of four bits with a scale for each row."""
    attr = cf.Attr(src_scale=(np.linspace(0.1, 2, 6), 1))
    is_cpu = stream.engine.traits.is_cpu
    for src, dst, given in (("s4", "f16", attr), ("f32", "u4", cf.Attr(beta=1))):
        reorder = check_reorder(D((6, 50), src), D((6, 50), dst), stream, attr=given)
        assert not is_cpu or reorder.plan.family == "scheduled"


@pytest.mark.parametrize("types", [("s4", "f32", "f16"), ("f16", "s4", "u4"), (*FLOAT8, "s4")])
def test_maps_over_small_types(types: tuple[str, str, str], stream: cf.Stream) -> None:
    """Whichever of the tensors it is that has half bytes."""
    dims, f32 = (3, 18, 4), cf.tensors.dtypes.as_dtype("f32")
    x, y, z = map(cf.tensors.dtypes.as_dtype, types)
    rng = np.random.default_rng(1)
    values = [rng.integers(0, 7, dims).astype(np.float32) for _ in range(2)]
    a, b = (
        cf.from_numpy(cf.tensors.dtypes.convert(v, f32, t), stream.engine, format=fmt)
        for v, t, fmt in zip(values, (x, y), ("abc", "acb"), strict=True)
    )
    for fmt in ("abc", "aBc16b"):
        out = cf.Memory(D(dims, z, fmt), stream.engine)
        made = cf.Map("z = x * 0.5f + y", x=a.desc, y=b.desc, z=out.desc, engine=stream.engine)
        made(stream, x=a, y=b, z=out).wait()
        want = cf.tensors.dtypes.convert(values[0] * np.float32(0.5) + values[1], f32, z)
        assert (cf.to_numpy(out) == want).all()


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("src", "loaded"),
    [
        ("f16", "(float2)(vload_half(0, p), vload_half(0, q))"),
        ("u8", "convert_float2((uchar2)(*p, *q))"),
    ],
)
def test_single_elements_are_converted_together(src: str, loaded: str) -> None:
    types = (cf.tensors.dtypes.as_dtype(name) for name in (src, "f32"))
    assert conversion(*types).at_once.load_pieces(["p", "q"], 1) == loaded
