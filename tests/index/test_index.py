"""Law 2 on a device: the index source of every format equals `offsets()`, and its inverse too.

All coordinates and all places in memory, in each form of the source. What the compiler makes of it
when it optimises is for `tests/slow/test_index.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
import pytest

import clformats as cf
from clformats.formats import registry
from tests.index_support import (
    EXTRA,
    FORMS,
    PADDING,
    Case,
    Runner,
    by_arguments,
    by_macros,
    by_shape_info,
    hurting,
    one_for_each_structure,
    padded_data,
    static,
)
from tests.tiers import tiered

FORMATS = one_for_each_structure(cf.formats())
CLDNN = one_for_each_structure(f for f in cf.formats() if f.name in registry.listed("cldnn"))
GROUP = 61
QUICKLY_BUILT = ["-cl-opt-disable"]


def _check(engine: cf.Engine, cases: Sequence[Case]) -> None:
    Runner(engine, cases, QUICKLY_BUILT).check()


def _in_every_form(engine: cf.Engine, descs: list[cf.MemoryDesc]) -> None:
    for form in FORMS.values():
        _check(engine, [form(desc, k) for k, desc in enumerate(descs)])


@pytest.mark.sampled(4)
@pytest.mark.parametrize("start", range(0, len(FORMATS), GROUP))
def test_every_format(start: int, engine: cf.Engine) -> None:
    descs = [hurting(fmt) for fmt in FORMATS[start : start + GROUP]]
    _check(engine, [static(desc, k) for k, desc in enumerate(descs)])


@pytest.mark.sampled(4)
@pytest.mark.parametrize("start", range(0, len(CLDNN), GROUP))
@pytest.mark.parametrize("form", [by_arguments, by_shape_info], ids=lambda f: f.__name__)
def test_every_format_of_cldnn_with_unknown_sizes(
    form: Callable[..., Case], start: int, engine: cf.Engine
) -> None:
    """The others have no other kinds of digits; the slow tier has them all."""
    descs = [hurting(fmt) for fmt in CLDNN[start : start + GROUP]]
    _check(engine, [form(desc, k) for k, desc in enumerate(descs)])


@pytest.mark.parametrize("form", tiered([*FORMS], ["static", "by_shape_info"]))
def test_every_padded_data_format(form: str, engine: cf.Engine) -> None:
    _check(engine, [FORMS[form](desc, k) for k, desc in enumerate(padded_data())])


def test_strides_submemory_and_gaps(engine: cf.Engine) -> None:
    dims = (2, 5, 3, 4)
    blocked = cf.MemoryDesc((40, 70, 6, 4), "f32", "ABcd32a32b")
    descs = [
        cf.MemoryDesc(dims, "f32", strides=(100, 1, 33, 7)),
        cf.MemoryDesc(dims, "f32", strides=(200, 2, 66, 14)),
        cf.MemoryDesc((1, 1, 1), "f32", strides=(5, 5, 5)),
        blocked.submemory((32, 32, 3, 2), (0, 32, 2, 1)),
        blocked.submemory((5, 7, 3, 2), (0, 32, 2, 1)),
        cf.MemoryDesc.parse("f32:aBcd16b:2x17x5x4:strides=900x400x70x17"),
    ]
    _check(engine, [static(d, k) for k, d in enumerate(descs)])


def test_repeated_dimensions(engine: cf.Engine) -> None:
    """Several elements lie at one place: the inverse answers the first."""
    _check(engine, [static(cf.MemoryDesc((2, 5, 3, 4), "f32", strides=(0, 1, 33, 7)), 0)])


def test_of_elements_that_share_bytes(engine: cf.Engine) -> None:
    """The offsets count nibbles and bits; with 4 bits some names mean another order."""
    _in_every_form(
        engine,
        [
            *(cf.MemoryDesc((70, 5, 1, 1), "u4", f"os_iyx_osv{n}") for n in (16, 32, 64)),
            cf.MemoryDesc((70, 5), "s4", "os_is_yx_osv32_isv2"),
            cf.MemoryDesc((70, 5), "s4", "os_is_yx_osv64_isv2"),
            cf.MemoryDesc((2, 37, 3, 5), "u1", "b_fs_yx_32fp"),
            cf.MemoryDesc((35, 37, 3, 2), "u1", "os_is_yx_osv32_isv32p"),
        ],
    )


def test_of_the_two_orders_of_odd_columns(engine: cf.Engine) -> None:
    names = [f"{g}iy_xs_os_xsv2_osv{n}__ao32" for g in ("", "g") for n in (8, 16)]
    dims = [(2, 40, 3, 2, x) for x in (1, 4, 5)]
    _in_every_form(engine, [cf.MemoryDesc(d[n[0] != "g" :], "f32", n) for n in names for d in dims])


@pytest.mark.parametrize("form", FORMS)
def test_in_64_bits(form: str, engine: cf.Engine) -> None:
    names = ["bfyx", "b_fs_yx_fsv16", "byxf_af32", "oiyx", "os_iyx_osv16_rotate_180", "aBcd24b"]
    descs = [cf.MemoryDesc((2, 17, 5, 3), "f32", n) for n in names]
    descs += [cf.MemoryDesc((2, 17, 5, 3), "f32", n, padding=PADDING[:4]) for n in names[:2]]
    _check(engine, [FORMS[form](desc, k, wide=True) for k, desc in enumerate(descs)])


def test_places_beyond_32_bits(engine: cf.Engine) -> None:
    """Sizes of a tensor that no machine holds; the products of its pitches must be 64 bits wide."""
    desc = cf.MemoryDesc((70_000, 17, 300, 200), "u8", "b_fs_yx_fsv16")
    elements = [(0, 0, 0, 0), (69_999, 16, 299, 199), (34_567, 3, 1, 2)]
    for form in FORMS.values():
        options = {} if form is static else {"wide": True}
        case = form(desc, 0, **options)
        coordinates = ", ".join(f"numbers[{EXTRA + d} + 4 * element]" for d in range(4))
        runner = Runner(engine, [case], body=f"out[element] = T0_INDEX({coordinates});")
        got = runner.run(0, 0, len(elements), extra=[n for e in elements for n in e])
        assert [int(n) for n in got] == [desc.offset(*e) for e in elements]


def test_sizes_that_are_partly_known(engine: cf.Engine) -> None:
    for name in ("bfyx", "b_fs_yx_fsv16", "bs_fs_yx_bsv16_fsv32"):
        whole = cf.MemoryDesc((3, 17, 5, 4), "f32", name)
        desc = cf.MemoryDesc((3, cf.RUNTIME_DIM, 5, cf.RUNTIME_DIM), "f32", name)
        source = cf.index_source(desc, "T0", sizes="arguments")
        assert "T0_PARAMETERS const uint T0_SIZE_F, const uint T0_SIZE_X\n" in source
        _check(engine, [Case(whole, "T0", source, (("T0_SIZE_F", 17), ("T0_SIZE_X", 4)))])
        source = cf.index_source(desc, "T0", sizes="shape_info")
        _check(engine, [Case(whole, "T0", source, (), (0, 17, 0, 0, 0, 0, 0, 4))])


def test_real_kernel_arguments(engine: cf.Engine) -> None:
    """Two tensors, sizes of both in the parameters of the kernel and passed to a function."""
    import pyopencl as cl

    src, dst = cf.MemoryDesc((2, 17, 3, 5), "f32", "b_fs_yx_fsv16"), cf.MemoryDesc(
        (2, 17, 3, 5), "f32", "byxf")  # fmt: skip
    text = "\n".join([
        cf.index_source(src.format, "SRC", sizes="arguments"),
        cf.index_source(dst.format, "DST", sizes="arguments"),
        "static float read(__global const float *src, SRC_PARAMETERS,",
        "                  uint b, uint f, uint y, uint x)",
        "{ return src[SRC_INDEX(b, f, y, x)]; }",
        "__kernel void copy(__global const float *src, __global float *dst,",
        "                   SRC_PARAMETERS, DST_PARAMETERS)",
        "{",
        "    uint b, f, y, x;",
        "    if (DST_COORDS(get_global_id(0), &b, &f, &y, &x))",
        "        dst[get_global_id(0)] = read(src, SRC_ARGUMENTS, b, f, y, x);",
        "}",
    ])  # fmt: skip
    array = np.random.default_rng(0).random(src.dims, np.float32)
    source = cf.from_numpy(array, engine, format="b_fs_yx_fsv16")
    target = cf.Memory(dst, engine)
    sizes = [np.uint32(n) for n in (*src.dims, *dst.dims)]
    assert isinstance(target.buffer, cl.Buffer)
    kernel = engine.kernel(text, "copy")
    kernel(engine.queue, (dst.nelems,), None, source.buffer, target.buffer, *sizes)
    engine.queue.finish()
    assert (cf.to_numpy(target) == array).all()


def test_large_tensors_count_in_long() -> None:
    assert "ulong T_INDEX(ulong a, ulong b)" in cf.index_source(
        cf.MemoryDesc((2**20, 2**12), "u8"), "T"
    )


@pytest.mark.parametrize("dtype", ["u4", "u8", "f32"])
def test_offsets_are_long_from_the_first_that_needs_it(dtype: str) -> None:
    """They count elements, whatever their width."""
    for count, kind in ((2**31 - 2, "uint"), (2**31, "ulong")):
        assert f"{kind} T_INDEX(" in cf.index_source(cf.MemoryDesc((count,), dtype), "T")


def test_known_sizes_may_be_too_many_for_32_bits_by_themselves(engine: cf.Engine) -> None:
    """Then the others need not be known."""
    dims = (3, 70_000, 40_000)
    partly = cf.MemoryDesc((cf.RUNTIME_DIM, *dims[1:]), "u8", "abc")
    source = cf.index_source(partly, "T0", sizes="arguments")
    case = Case(cf.MemoryDesc(dims, "u8", "abc"), "T0", source, (("T0_SIZE_A", 3),))
    runner = Runner(engine, [case], body="out[element] = T0_INDEX(2, 69999, numbers[0]);")
    assert runner.run(0, 0, 1)[0] == case.desc.offset(2, 69_999, 3)


def test_what_is_asked_for_and_what_is_not() -> None:
    assert "uint T_INDEX(uint b," in cf.index_source("bfyx", "T")
    assert "ulong T_INDEX(ulong b," in cf.index_source("bfyx", "T", wide=True)
    assert "LOAD" not in cf.index_source("b_fs_yx_fsv16")
    desc = cf.MemoryDesc((2, 17, 5, 4), "f32", "b_fs_yx_fsv16")
    assert "LOAD_F16" in cf.index_source(desc)
    assert "LOAD" not in cf.index_source(desc, vector="")
    assert "LOAD_X4" in cf.index_source(desc, vector="x4")


@pytest.mark.parametrize(
    ("target", "options", "said"),
    [
        ("bfyx", {"prefix": ""}, "C identifier"),
        ("bfyx", {"prefix": "1A"}, "C identifier"),
        ("bfyx", {"prefix": "A-B"}, "C identifier"),
        ("bfyx", {"prefix": "A;"}, "C identifier"),
        ("bfyx", {"prefix": "A\n"}, "C identifier"),
        ("SRC", {"prefix": cf.MemoryDesc((2, 3), "f32")}, "prefix: got MemoryDesc"),
        ("any", {}, "no layout"),
        (cf.MemoryDesc((2, 3), "f32", "any"), {}, "no layout"),
        (cf.MemoryDesc((cf.RUNTIME_DIM, 3), "f32"), {}, "say where they come from"),
        (cf.MemoryDesc((2, 3), "f32", strides=(cf.RUNTIME_DIM, 1)), {"sizes": "arguments"},
         "dense tensors only"),
        ("bfyx", {"sizes": "args"}, "expected macros, arguments, shape_info"),
        (cf.MemoryDesc((2, 3), "f32"), {"sizes": "arguments"}, "every size of .* is known"),
        ("bfyx", {"padded": "q"}, "bfyx has b, f, y, x, got 'q'"),
        (cf.MemoryDesc((2, 3), "f32"), {"padded": "a"}, "has its own padding"),
        ("bfyx", {"shape_info_at": -1}, "expected 0 or more"),
        (cf.MemoryDesc((2**20, 2**12), "u8"), {"wide": False}, "more than 32 bits can count"),
        ("bfyx", {"vector": "f16"}, "give a descriptor with an element type"),
        (cf.MemoryDesc((2, 3), "u4"), {"vector": "b2"}, "for elements of u4"),
        (cf.MemoryDesc((2, 3), "f32"), {"vector": "b3"}, "a width of 2, 4, 8 or 16, such as b16"),
        (cf.MemoryDesc((2, 3), "f32"), {"vector": "f2"}, "one of a, b and a width"),
        (cf.MemoryDesc((2, 3), "f32"), {"vector": "a8b4"}, "at most 16 lanes together"),
        (cf.MemoryDesc((2, 3), "f32"), {"vector": "a4a4"}, "such as a4b4"),
        (cf.MemoryDesc((2, 3), "f32"), {"vector": "b2 half"}, "half is for f16"),
    ],
)  # fmt: skip
def test_refusals(target: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(cf.Error, match=said):
        cf.index_source(target, **options)


# --- vectors --------------------------------------------------------------------------------------

VECTORS = [
    ("f32:b_fs_yx_fsv16:2x17x3x5", None),
    ("f32:b_fs_yx_fsv16:2x32x3x5", None),
    ("f32:b_fs_yx_fsv32:2x37x3x5", None),
    ("f32:b_fs_yx_fsv16:2x17x3x5", "f4"),
    ("f32:b_fs_yx_fsv4:2x17x3x5", "f16"),
    ("f32:b_fs_yx_fsv16:2x17x3x5:pad=0+0x3+2x1+0x0+0", None),
    ("f32:b_fs_yx_fsv16:2x17x3x5:pad=0+0x16+2x1+0x0+0", None),
    ("f16:b_fs_yx_fsv16:2x19x3x5", None),
    ("s8:b_fs_yx_fsv4:2x19x3x5", None),
    ("u8:bs_fs_yx_bsv16_fsv32:2x19x3x5", None),
    ("bf16:aBcd8b:2x19x3x5", None),
    ("s32:aBcd24b:2x19x3x5", None),
    ("f64:aBcd8b:2x19x3x5", None),
    ("f32:bfyx:2x17x3x5", "f8"),
    ("f16:bfyx:2x17x3x5", "x4"),
    ("f32:bfyx:2x17x3x8", "x4"),
    ("f32:byxf:2x17x3x5", "f8"),
    ("f32:abcdefghijkl:2x1x2x1x2x1x2x1x2x1x5x2", "k4"),
    ("f16:byxf:2x17x3x5", "f16"),
    ("u8:byxf:2x16x3x5", "f16"),
    ("f32:os_is_yx_isv16_osv16:19x17x1x3", None),
    ("f32:os_is_yx_osa4_isa8_osv8_isv4_swizzled_by_4:35x33x1x3", "o4"),
    ("f32:abcd:2x17x3x5:strides=1000x40x12x2", "d4"),
    ("f32:aBcd16b:2x5x3x5:padded=2x5x3x5:strides=2000x240x80x16", None),
]  # fmt: skip


BLOCKS = [
    ("f32:OIhw4i4o:19x17x1x3", "i4o4"),
    ("f16:OIhw4o4i:19x18x1x3", "o4i4"),
    ("f16:OIhw4o4i:16x32x1x3", "o4i4"),
    ("s8:OIhw4o4i:19x18x3x1", "i4o4"),
    ("u8:OIhw16i16o4i:33x65x1x2", "o2i4"),
    ("f32:oihw:19x17x3x3", "o4i4"),
    ("f32:oihw:19x17x3x4", "i2h2w4"),
    ("f32:OIhw16i16o:19x17x1x3:padded=19x17x1x3:strides=10000x2000x256x256", "i2o8"),
]


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("text", "wanted"), [*VECTORS, *BLOCKS])
@pytest.mark.parametrize("wide", [False, True])
def test_vectors(text: str, wanted: str | None, wide: bool, engine: cf.Engine) -> None:
    """Load every vector and store it again elsewhere: the elements, and zeros behind their tail."""
    desc = cf.MemoryDesc.parse(text)
    if desc.dtype.name == "f64" and not engine.traits.has_fp64:
        pytest.skip("the device has no fp64")
    source = cf.index_source(desc, "T", vector=wanted, wide=wide)
    array, got = check_vectors(desc, source, engine)
    blocked = f"{desc.format}" == "b_fs_yx_fsv16" and wanted is None and "pad" not in text
    if blocked or (wanted, text[4:11]) == ("o4i4", "OIhw4o4"):
        assert (cf.pack(array, desc) == got).all()  # the padding became zero


@pytest.mark.parametrize("wanted", ["o4i4", "o16"])
def test_lanes_of_half(wanted: str, engine: cf.Engine) -> None:
    """The same text with another type: devices with cl_khr_fp16 are rare among processors."""
    desc = cf.MemoryDesc.parse("f16:OIhw4o4i:19x18x1x3")
    source = cf.index_source(desc, "T", vector=f"{wanted} half")
    assert "#pragma OPENCL EXTENSION cl_khr_fp16 : enable" in source
    assert "half16 T_LOAD" in source
    assert "short16 beyond" in source or wanted == "o16"
    assert "vload_half" not in source
    assert "vstore_half" not in source
    text = source.replace("half", "float").replace("short16", "int16")
    check_vectors(cf.MemoryDesc.parse(f"f32:{text_of(desc)}"), text, engine)


def text_of(desc: cf.MemoryDesc) -> str:
    return str(desc).partition(":")[2]


def test_a_block_is_one_load() -> None:
    desc = cf.MemoryDesc.parse("f16:OIhw4o4i:16x32x1x3")
    assert "return vload_half16(0, src + T_INDEX(o, i, h, w));" in cf.index_source(
        desc, "T", vector="o4i4"
    )


def check_vectors(desc: cf.MemoryDesc, source: str, engine: cf.Engine) -> tuple[Any, Any]:
    """The loads and stores of ``T`` in a source, over every vector; what was stored, and where."""
    import pyopencl as cl

    name = next(w.split("(")[0] for w in source.split() if w.startswith("T_LOAD_"))
    letters = desc.format.letters
    parts = [(letters.index(c.lower()), int(n)) for c, n in re.findall("([A-Z])([0-9]+)", name[7:])]
    widths = [dict(parts).get(d, 1) for d in range(desc.ndims)]
    width = prod(widths)
    counts = [-(-n // w) for n, w in zip(desc.dims, widths, strict=True)]
    rest, indices = "n", []
    for n, w in reversed([*zip(counts, widths, strict=True)]):
        indices.append(f"{rest} % {n} * {w}")
        rest = f"({rest} / {n})"
    memory = desc.dtype.opencl
    lane = memory.replace("half", "float")
    kernel = engine.kernel("\n".join([
        source,
        f"__kernel void run(__global const {memory} *src, __global {memory} *dst,",
        f"                  __global {lane} *lanes)",
        "{",
        "    const uint n = get_global_id(0);",
        *(f"    const uint {c} = {i};" for c, i in zip(letters, reversed(indices), strict=True)),
        f"    const {lane}{width} v = {name}(src, {', '.join(letters)});",
        f"    vstore{width}(v, n, lanes);",
        f"    {name.replace('LOAD', 'STORE')}(v, dst, {', '.join(letters)});",
        "}",
    ]), "run")  # fmt: skip
    rng = np.random.default_rng(0)
    array = rng.integers(1, 100, desc.dims).astype(desc.dtype.numpy)
    src = cf.Memory(desc, engine)
    garbage = np.full(cf.host.packing.flat_size(desc), 77, desc.dtype.numpy)
    garbage[desc.offsets()] = array
    with src.map("w") as mapped:
        mapped[:] = garbage
    # Lanes beyond the tensor are stored too, and must not be what the memory holds there.
    dst = cf.Memory(desc, engine)
    with dst.map("w") as mapped:
        mapped[:] = np.full(cf.host.packing.flat_size(desc), 55, desc.dtype.numpy)
    threads = prod(counts)
    raw = {"f16": np.float32, "bf16": np.uint16}.get(desc.dtype.name, desc.dtype.numpy)
    lanes = np.empty((threads, width), raw)
    out = cl.Buffer(engine.context, cl.mem_flags.WRITE_ONLY, lanes.nbytes)
    kernel(engine.queue, (threads,), None, src.buffer, dst.buffer, out)
    cl.enqueue_copy(engine.queue, lanes, out)

    pads = [(0, c * w - n) for n, c, w in zip(desc.dims, counts, widths, strict=True)]
    split = [n for c, w in zip(counts, widths, strict=True) for n in (c, w)]
    inside = [2 * d + 1 for d, _ in parts]
    axes = [k for k in range(2 * desc.ndims) if k not in inside]
    want = np.pad(array, pads).reshape(split).transpose(*axes, *inside).reshape(threads, width)
    assert (lanes == (want.view(np.uint16) if desc.dtype.name == "bf16" else want)).all()
    with dst.map("r") as mapped:
        got = np.array(mapped)
    assert (got[desc.offsets()] == array).all()
    others = np.ones(got.size, bool)
    others[desc.offsets()] = False
    assert set(got[others].astype(np.float32)) <= {0, 55}
    return array, got


def test_vectors_with_sizes_from_arguments(engine: cf.Engine) -> None:
    desc = cf.MemoryDesc((2, cf.RUNTIME_DIM, 3, cf.RUNTIME_DIM), "f32", "b_fs_yx_fsv16")
    text = (
        cf.index_source(desc, "SRC", sizes="arguments")
        + """
        __kernel void run(__global const float *src, __global float *dst, SRC_PARAMETERS)
        { SRC_STORE_F16(SRC_LOAD_F16(src, 0, 16, 0, 1) * 2, dst, 0, 16, 0, 1); }
    """
    )
    whole = cf.MemoryDesc((2, 19, 3, 5), "f32", "b_fs_yx_fsv16")
    src = cf.from_numpy(np.full(whole.dims, 3, np.float32), engine, format="b_fs_yx_fsv16")
    dst = cf.Memory(whole, engine)
    kernel = engine.kernel(text, "run")
    kernel(engine.queue, (1,), None, src.buffer, dst.buffer, np.uint32(19), np.uint32(5))
    engine.queue.finish()
    got = cf.to_numpy(dst)
    assert got.sum() == 3 * 2 * 3
    assert (got[0, 16:, 0, 1] == 6).all()


def test_by_macros_is_the_default_of_a_format(engine: cf.Engine) -> None:
    cases = [by_macros(hurting(fmt), k) for k, fmt in enumerate(FORMATS[::20])]
    _check(engine, cases)
