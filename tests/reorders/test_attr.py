"""Reorders with attributes equal the formula on the host, to the byte, in every family."""

from __future__ import annotations

import os
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import clformats as cf
from clformats.tensors.dtypes import convert
from clformats.values.formula import FUNCTIONS
from tests.device_support import check_reorder, guarded, memory_of
from tests.strategies import attributed_pairs
from tests.support import DTYPES, random_values
from tests.tiers import crossed

pytestmark = pytest.mark.sampled(6)

D = cf.MemoryDesc
EXAMPLES = int(os.environ.get("CLFORMATS_TEST_EXAMPLES", "12"))
ALL_TYPES = (*DTYPES, "f64")
FULL: dict[str, Any] = {
    "src_scale": 0.5,
    "dst_scale": 0.3,
    "src_zero_point": 2,
    "dst_zero_point": 3,
    "beta": 0.7,
}
DIMS = (2, 17, 5, 33)


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(case=attributed_pairs(), seed=st.integers(0, 2**31), front=st.sampled_from([0, 7, 64]))
def test_anything_to_anything(
    case: tuple[D, D, cf.Attr], seed: int, front: int, stream: cf.Stream
) -> None:
    src, dst, attr = case
    check_reorder(src, dst, stream, seed=seed, front=front, attr=attr)


@pytest.mark.parametrize("scale", [1.0, 2.0**13 + 1, 2.0**14, 2.0**14 + 1, 1e6, 3e30])
def test_scales_of_any_size(scale: float, stream: cf.Stream) -> None:
    """What is near zero is rounded by fewer steps; -128 times 2**14 is the furthest of these."""
    for target, values in (("s8", (-scale, 3)), ("u8", (scale, 0)), ("s4", (scale, -2))):
        attr = cf.Attr(src_scale=([values[0], 0.5, 1.5], 2), dst_zero_point=values[1])
        for fmt in ("byxf", "b_fs_yx_fsv16"):
            check_reorder(
                D((3, 3, 8, 33), "s8", "bfyx"), D((3, 3, 8, 33), target, fmt), stream, attr=attr
            )


@pytest.mark.parametrize(
    "attr",
    [
        {"src_zero_point": 128},
        {"dst_zero_point": ([-3, 7, 100], 2)},
        {"beta": 1},
        {"expression": "x > 5 && x != 9 ? -x * 2 : clamp(x + 1, -7.f, min(3 + x, 100.f))"},
        {"expression": "(x > 3) + (x ? x : 4) - fmin(3, 4 + x)", "beta": -3},
    ],
)
@pytest.mark.parametrize(("src", "dst"), [("s8", "u8"), ("u8", "s8"), ("s4", "s8"), ("u8", "u4")])
def test_whole_numbers_are_computed_as_such(
    src: str, dst: str, attr: dict[str, Any], stream: cf.Stream
) -> None:
    for fmt in ("byxf", "b_fs_yx_fsv16", "bfyx"):
        a, b, given = D((3, 3, 8, 34), src, "bfyx"), D((3, 3, 8, 34), dst, fmt), cf.Attr(**attr)
        assert "convert_short" in cf.Reorder(a, b, stream.engine, attr=given).source
        check_reorder(a, b, stream, attr=given)


def test_halves_begin_anywhere(stream: cf.Stream) -> None:
    """Also where of a vector a part alone is needed: pocl 3.1 reads that as if it were aligned."""
    dims = (3, 15, 33, 7)
    src, dst = (D(dims, t, "ABcd8b16a2b") for t in ("f16", "s8"))
    scales = {"src_scale": (np.linspace(0.5, 2, 15), 2), "dst_scale": (np.linspace(0.5, 2, 3), 1)}
    attr = cf.Attr(**scales, expression="x > 3 ? x : 7 - x")
    for front in (0, 7):
        check_reorder(src, dst, stream, front=front, attr=attr)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("src", "dst"), crossed(ALL_TYPES))
def test_every_pair_of_types(src: str, dst: str, stream: cf.Stream) -> None:
    """One after another: contiguous, transposed with tails, and without common digits."""
    scales = np.linspace(0.25, 3, 17)
    one_for_all, for_channels = cf.Attr(**FULL), cf.Attr(src_scale=(scales, 2), beta=1)
    targets = ("bfyx", one_for_all), ("b_fs_yx_fsv16", for_channels), ("byxf", one_for_all)
    for target, attr in targets:
        check_reorder(D(DIMS, src, "bfyx"), D(DIMS, dst, target), stream, attr=attr)


@pytest.mark.parametrize(
    ("family", "target"),
    [("scheduled", "bfyx"), ("scheduled", "byxf"), ("scheduled", "b_fs_yx_fsv16"),
     ("generic", "b_fs_yx_fsv16")],
)  # fmt: skip
@pytest.mark.parametrize("mask", [0, 1, 2, 3, 5, 8, 10, 15])
def test_every_family_takes_every_mask(
    family: str, target: str, mask: int, stream: cf.Stream
) -> None:
    rng = np.random.default_rng(mask)
    sizes = [n for d, n in enumerate(DIMS) if mask >> d & 1]
    attr = cf.Attr(
        src_zero_point=(rng.integers(-9, 9, sizes), mask),
        dst_scale=(rng.uniform(0.5, 2, sizes), mask),
        beta=(rng.uniform(0.5, 2, sizes), mask),
        expression="fabs(x) + 1",
    )
    src, dst = D(DIMS, "u8", "bfyx"), D(DIMS, "f16", target)
    check_reorder(src, dst, stream, family=family, attr=attr)


@pytest.mark.parametrize(
    "target", ["b_fs_yx_fsv16", "b_fs_yx_fsv32", "bfyx", "fs_b_yx_fsv32", "byxf"]
)
@pytest.mark.parametrize("dtype", ["f16", "f32", "s8"])
def test_input_preparation(target: str, dtype: str, stream: cf.Stream) -> None:
    """clDNN's: a mean for each feature, and a factor, from byxf u8 to a blocked tensor."""
    dims = (2, 3, 13, 19)
    attr = cf.Attr(src_zero_point=([123.68, 116.78, 103.94], 2), src_scale=([0.3, 0.4, 0.5], 2))
    reorder = check_reorder(D(dims, "u8", "byxf"), D(dims, dtype, target), stream, attr=attr)
    assert not stream.engine.traits.is_cpu or reorder.plan.family == "scheduled"


def test_padding_is_zero_whatever_the_formula_makes_of_zero(stream: cf.Stream) -> None:
    pads = ((0, 1), (1, 2), (2, 1), (0, 3))
    attr = cf.Attr(expression="x + 1", dst_zero_point=5)
    for target in ("bfyx", "b_fs_yx_fsv16", "os_i_osv16", "bs_fs_yx_bsv16_fsv16"):
        if cf.Format(target).ndims == 4:
            check_reorder(D(DIMS, "f32", "byxf"), D(DIMS, "s8", target, padding=pads), stream,
                          attr=attr)  # fmt: skip


def test_hard_values_leave_their_neighbours_alone(stream: cf.Stream) -> None:
    """Vectors of some of PoCL's functions are wrong in other lanes beside such a value."""
    hard = [0.5, 1e-3, 1e-8, 3e38, 2, 3, 1e-44, 7, 0, -0.0, np.inf, np.nan]
    has_f64 = "cl_khr_fp64" in stream.engine.device.extensions
    cases = {"f32": ("sin", "cos", "tan", "exp"), "f64": ("pow", "sin") if has_f64 else ()}
    for dtype, functions in cases.items():
        values = np.random.default_rng(0).choice(
            np.array(hard, f"f{int(dtype[1:]) // 8}"), (64, 72)
        )
        src, dst = D(values.shape, dtype, "ab"), D(values.shape, dtype, "ba")
        ordinary = (values > 1e-37) & (values < 1e37)
        memory, source = cf.Memory(dst, stream.engine), cf.from_numpy(values, stream.engine)
        for name in functions:
            count, function = FUNCTIONS[name]
            attr = cf.Attr(expression=f"{name}(x{', 2.f' * (count - 1)})")
            cf.Reorder(src, dst, stream.engine, attr=attr)(stream, source, memory)
            with np.errstate(all="ignore"):
                wanted = function(values, *[values.dtype.type(2)] * (count - 1))
            found = cf.to_numpy(memory)[ordinary]
            assert np.allclose(found, wanted[ordinary], rtol=2e-6, atol=0), name


@pytest.mark.parametrize("dtype", ALL_TYPES)
def test_an_expression_may_be_constant(dtype: str, stream: cf.Stream) -> None:
    """Padding stays zero; a number for all lanes is a vector too."""
    for target in ("bfyx", "b_fs_yx_fsv16"):
        attr = cf.Attr(expression="3 / 2")
        check_reorder(D(DIMS, "f32", "bfyx"), D(DIMS, dtype, target), stream, attr=attr)


def test_no_element_is_summed_twice(stream: cf.Stream) -> None:
    """The last tile of a loop may overlap the one before; not where the old values are read."""
    for dims in ((1, 1, 5, 33), (3, 17, 1, 31), (1, 65, 3, 3)):
        for source, target in (("bfyx", "bfyx"), ("byxf", "bfyx"), ("bfyx", "byxf")):
            for dtype in ("f32", "s8"):
                check_reorder(D(dims, "f32", source), D(dims, dtype, target), stream,
                              attr=cf.Attr(beta=1))  # fmt: skip


@pytest.mark.usefixtures("plans_for_cpus")
@pytest.mark.parametrize("dst", ["u8", "f16", "s32"])
def test_one_lane_at_an_edge(dst: str, stream: cf.Stream) -> None:
    a, b = D((117, 69), "f16", "aB72b"), D((117, 69), dst, "aB5b")
    attr = cf.Attr(src_zero_point=(np.arange(117) % 7, 1), beta=0.5)
    choices = cf.Choices(schedule="tile b2 of 1 | a*14 a b c | ahead 0 | ordinary")
    assert "tile b2 of 1" in str(check_reorder(a, b, stream, attr=attr, choices=choices).plan)


@pytest.mark.usefixtures("plans_for_cpus")
@pytest.mark.parametrize(
    ("src", "dst", "tile"),
    [
        ("u8:oyxi:32x61x3x3", "s8:os_is_yx_osv16_isv4:32x61x3x3", "b8 c2 d16 e4 of 16 | a* c b"),
        ("f32:bfyx:3x17x9x9", "f16:b_fs_yx_fsv16:3x17x9x9", "c16 d16 of 16 | a* b c"),
        ("f16:bfyx:2x3x9x9", "u4:b_fs_yx_fsv16:2x3x9x9", "b16 c16 of 16 | a* b"),
        ("bf16:goiyx:65x1x1x5x5", "s8:gs_oiyx_gsv32:65x1x1x5x5", "b8 c32 of 16 | a* b"),
        ("s8:bs_fs_yx_bsv16_fsv16:23x17x3x3", "s8:yxfb:23x17x3x3", "c16 d4 e16 of 16 | b* d a"),
    ],
)
def test_old_values_are_read_as_vectors(src: str, dst: str, tile: str, stream: cf.Stream) -> None:
    """Also at edges, where a vector may have lanes that have no place, and beside padding."""
    a, b, schedule = D.parse(src), D.parse(dst), f"tile {tile} | ahead 0 | ordinary"
    attr, choices = cf.Attr(beta=0.5), cf.Choices(schedule=schedule)
    found = check_reorder(a, b, stream, attr=attr, choices=choices)
    assert schedule in str(found.plan)
    assert not re.search(r" p\d+ = \(float16\)\(.*,", found.source)


def test_values_at_execution(stream: cf.Stream) -> None:
    """Numbers and memory objects; each call its own, whatever still runs."""
    engine = stream.engine
    src, dst = D(DIMS, "s8", "bfyx"), D(DIMS, "f32", "b_fs_yx_fsv16")
    attr = cf.Attr(src_scale=cf.at_execution(2), dst_zero_point=cf.at_execution())
    rng = np.random.default_rng(3)
    array = random_values(rng, DIMS, "s8")
    source = memory_of(cf.pack(array, src), src, engine)
    reorder = cf.Reorder(src, dst, engine, attr=attr)
    targets = [cf.Memory(dst, engine) for _ in range(5)]
    calls: list[dict[str, Any]] = [
        {"src_scale": rng.uniform(1, 2, 17), "dst_zero_point": k} for k in range(5)
    ]
    for target, values in zip(targets, calls, strict=True):
        reorder(stream, source, target, **values)
    for target, values in zip(targets, calls, strict=True):
        want = attr.apply(array, "s8", "f32", **values)
        np.testing.assert_array_equal(cf.to_numpy(target), want)
    scales = cf.from_numpy(calls[0]["src_scale"].astype(np.float32), engine)
    reorder(stream, source, targets[1], src_scale=scales, dst_zero_point=0).wait()
    np.testing.assert_array_equal(cf.to_numpy(targets[1]), cf.to_numpy(targets[0]))


@pytest.mark.parametrize(("src", "dst"), [("s8", "s8"), ("u8", "s8"), ("s8", "u8"), ("s8", "u4")])
def test_factors_at_execution_may_be_any(src: str, dst: str, stream: cf.Stream) -> None:
    """Every byte times any number; in memory there may also be what is no number."""
    far = [3e38, 1e6, 257, 256, 255.5, 100, 1e-3, 1e-40, 0, np.inf, np.nan]
    scales = np.array([*far, *(-f for f in far)], np.float32)
    dims = (1, scales.size, 16, 16)
    array = np.broadcast_to(np.arange(256).reshape(1, 1, 16, 16) - 128 * (src == "s8"), dims)
    array, a, engine = array.astype(f"{'i' if src == 's8' else 'u'}1"), D(dims, src), stream.engine
    source, given = cf.from_numpy(array, engine), cf.from_numpy(scales, engine)
    for fmt, point in (("byxf", 0), ("b_fs_yx_fsv16", -128), ("bfyx", 7)):
        attr = cf.Attr(src_scale=cf.at_execution(2), src_zero_point=point)
        reorder = cf.Reorder(a, D(dims, dst, fmt), engine, attr=attr)
        assert "clamp(src_scale" in reorder.source
        target = cf.Memory(reorder.dst, engine)
        reorder(stream, source, target, src_scale=given).wait()
        terms = {"src_zero_point": np.array(point), "src_scale": scales.reshape(1, -1, 1, 1)}
        want = convert(attr.formula.evaluate({**terms, "x": array}), "f32", dst)
        np.testing.assert_array_equal(cf.to_numpy(target), want)
    for scale in far[:4]:
        one = cf.Attr(src_scale=cf.at_execution())
        check_reorder(a, D(dims, dst, "byxf"), stream, array=array, attr=one, src_scale=scale)


def test_bad_values_leave_the_destination_alone(stream: cf.Stream) -> None:
    engine = stream.engine
    src, dst = D(DIMS, "s8", "bfyx"), D(DIMS, "f32", "byxf")
    source, target = cf.Memory(src, engine), guarded(dst, engine)
    attr = cf.Attr(src_scale=cf.at_execution(2), beta=cf.at_execution())
    reorder = cf.Reorder(src, dst, engine, attr=attr)
    short = cf.from_numpy(np.ones(16, np.float32), engine)
    wide = cf.from_numpy(np.ones(17), engine)
    bad: list[tuple[dict[str, Any], str]] = [
        ({}, "src_scale is to be given"),
        ({"src_scale": np.ones(17)}, "beta is to be given"),
        ({"src_scale": np.ones(16), "beta": 1}, "got 16 values"),
        ({"src_scale": short, "beta": 1}, "expected 17 values of f32"),
        ({"src_scale": wide, "beta": 1}, "expected 17 values of f32"),
        ({"src_scale": np.ones(17), "beta": short}, "one number"),
        ({"src_scale": np.ones(17), "beta": "x"}, "expected numbers"),
        ({"src_scale": np.ones(17), "beta": 1, "dst_scale": 1}, "got dst_scale"),
    ]
    for given_, said in bad:
        with pytest.raises(cf.InvalidAttr, match=said):
            reorder(stream, source, target, **given_)
    for attr, said in [
        (cf.Attr(src_scale=([1, 2], 2)), "got 2 values"),
        (cf.Attr(src_scale=([], 2)), "got 0 values"),
        (cf.Attr(src_scale=([1, 2], 16)), "beyond the 4"),
    ]:
        with pytest.raises(cf.InvalidAttr, match=said):
            cf.Reorder(src, dst, engine, attr=attr)
    stream.wait()
    with target.map("r") as a:
        assert (a.view(np.uint8) == 0xA5).all()


def test_no_elements_have_no_values(stream: cf.Stream) -> None:
    src, dst = D((0, 3), "f32"), D((0, 3), "s8", "ba")
    check_reorder(src, dst, stream, attr=cf.Attr(src_scale=([], 3), beta=2))
    later = cf.Attr(src_scale=cf.at_execution(1), dst_scale=cf.at_execution(2))
    check_reorder(src, dst, stream, attr=later, src_scale=[], dst_scale=[1, 2, 3])


def test_one_program_for_all_shapes_and_values(engine: cf.Engine) -> None:
    """Of one tile: which one costs the least is another question."""
    tuned = cf.Choices(schedule="tile d16 of 16 | a* c b | ahead 0 | ordinary")
    counts = set()
    for dims in ((2, 17, 5, 33), (3, 19, 7, 35), (2, 31, 9, 41)):
        src, dst = D(dims, "u8", "byxf"), D(dims, "f16", "b_fs_yx_fsv16")
        values = np.linspace(1, 2, dims[1])
        attr = cf.Attr(src_scale=(values, 2), dst_zero_point=dims[0])
        cf.Reorder(src, dst, engine, attr=attr, tuned=tuned)
        counts.add(engine.programs_built)
    assert len(counts) == 1


def test_the_plan_tells_what_is_computed(engine: cf.Engine) -> None:
    src, dst = D(DIMS, "u8", "byxf"), D(DIMS, "f16", "b_fs_yx_fsv16")
    reorder = cf.Reorder(src, dst, engine, attr=cf.Attr(src_scale=(np.ones(17), 2)))
    assert "compute x * src_scale with src_scale = f32:" in str(reorder.plan)
    assert not engine.traits.is_cpu or reorder.plan.family == "scheduled"


def test_runtime_dims(stream: cf.Stream) -> None:
    """Sizes and values both at execution."""
    free = cf.RUNTIME_DIM
    attr = cf.Attr(src_scale=cf.at_execution(2), beta=2)
    reorder = cf.Reorder(
        D((free, free, 5, free), "f32", "bfyx"), D((free, free, 5, free), "s8", "byxf"),
        stream.engine, attr=attr,
    )  # fmt: skip
    rng = np.random.default_rng(0)
    for dims in ((2, 17, 5, 33), (1, 3, 5, 7)):
        array, old = random_values(rng, dims, "f32"), random_values(rng, dims, "s8")
        source = cf.from_numpy(array, stream.engine)
        target = cf.from_numpy(old, stream.engine, format="byxf")
        values = rng.uniform(0.1, 1, dims[1])
        reorder(stream, source, target, src_scale=values).wait()
        want = attr.apply(array, "f32", "s8", old, src_scale=values)
        np.testing.assert_array_equal(cf.to_numpy(target), want)
