"""Quantised tensors on a device: memory, moves and values equal the host's, bit for bit."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
from numpy.typing import NDArray

import clformats as cf
from clformats.doctor.drivers import PORTABLE
from clformats.programs import compiler
from clformats.quantised import QuantisedDesc
from clformats.quantised.host import from_codes, moved
from clformats.quantised.lanes import Tile
from clformats.recoding.decoding import decoding
from clformats.recoding.kernel import GROUP, Grid, Kernel
from clformats.recoding.mapped import decoding_by_map
from clformats.recoding.moving import moving
from clformats.recoding.quantising import quantising
from clformats.recoding.repacking import repacking
from clformats.recoding.together import QUOTIENT
from clformats.timing import timed
from tests.device_support import check_bytes, guarded, holding
from tests.quantised.test_table import ALL, described, random_bytes, random_codes, same
from tests.quantised_fuzz import as_found, some_codes

FEW = ["q4_0", "q5_1", "q4_K", "q6_K", "mxfp4", "u4g128", "s4g128", "mx_f8_e4m3", "iq4_nl"]
STRADDLING = ["iq2_xxs", "iq3_xxs", "iq1_s", "iq1_m"]
"""Types with codes in parts of bytes that differ from one eight columns to the next."""
LAYOUTS = {"q4_0": "transposed", "q4_K": "gguf", "q6_K": "transposed", "u4g128": "awq_gemm",
           "s4g128": "marlin", "mx_f8_e4m3": "swizzled", "q5_1": "trans4",
           "mxfp4": "gguf", "iq4_nl": "flat"}  # fmt: skip


def run(
    stream: cf.Stream, src: Any, dst: Any, raw: NDArray[np.uint8]
) -> tuple[Any, NDArray[np.uint8]]:
    """A reorder between descriptors, into memory full of poison: the reorder, and the bytes."""
    memory = cf.Memory(src, stream.engine)
    with memory.map("w") as flat:
        flat[:] = raw
    out = cf.Memory(dst, stream.engine)
    with out.map("w") as flat:
        flat.view(np.uint8)[:] = 0xA5
    reorder = cf.Reorder(src, dst, stream.engine)
    reorder(stream, memory, out).wait()
    with out.map("r") as flat:
        return reorder, flat.view(np.uint8).copy()


def check_decodes(stream: cf.Stream, src: QuantisedDesc, dst: cf.MemoryDesc, family: str) -> None:
    raw = random_bytes(src, 3)
    reorder, found = run(stream, src, dst, raw)
    if stream.engine.traits.is_cpu:
        assert reorder.plan.family == family, reorder.plan
    assert reorder.plan.family.startswith(family.split(maxsplit=1)[0]), reorder.plan
    with np.errstate(all="ignore"):
        expected = cf.pack(cf.unpack(raw, src).astype(dst.dtype.numpy), dst)
    values = found.view(dst.dtype.numpy).astype(np.float32)
    with np.errstate(all="ignore"):
        assert same(values, expected.astype(np.float32))


PER_TENSOR = cf.QuantisedType("per_tensor", {"q": ("u8", (1, 1)), "d": ("f32", (0, 0))}, "d * q")
FAT = cf.QuantisedType(
    "fat", dict.fromkeys("qrs", ("f32", (1, 1))) | {"d": ("f32", (1, 8))}, "d * q + r + s"
)


@pytest.mark.parametrize(
    ("src", "dst"),
    [
        # No vector ends where a row of these ends, of all rows together.
        (described((6, 3), PER_TENSOR, "plain"), cf.MemoryDesc((6, 3), "f16")),
        (described((1, 5), PER_TENSOR, "plain"), cf.MemoryDesc((1, 5), "f32")),
        # On the host, into a part of a larger tensor.
        (described((5, 103), "q4_K", "plain"),
         cf.MemoryDesc((9, 120), "f32").submemory((5, 103), (2, 7))),
        (described((5, 103), "q4_K", "plain"),
         cf.MemoryDesc((9, 120), "u4", "ba").submemory((5, 103), (2, 6))),
    ],
    ids=str,
)  # fmt: skip
def test_neighbours_of_what_is_decoded_stay(
    as_gpu: cf.Stream, src: QuantisedDesc, dst: cf.MemoryDesc
) -> None:
    codes = random_codes(src, 4)
    for name in codes.keys() - {"q"}:
        codes[name] = np.ones(src.fields[name].extents, src.fields[name].dtype.numpy).view(
            codes[name].dtype
        )
    raw = from_codes(codes, src)
    memory, out = cf.Memory(src, as_gpu.engine), guarded(dst, as_gpu.engine)
    with memory.map("w") as flat:
        flat[:] = raw
    cf.Reorder(src, dst, as_gpu.engine)(as_gpu, memory, out).wait()
    check_bytes(out, holding(cf.unpack(raw, src), dst))


def test_what_exceeds_local_memory_does_not_go_through_it(as_gpu: cf.Stream) -> None:
    traits = replace(as_gpu.engine.traits, local_bytes=16 << 10)
    found = decoding(described((4, 4096), FAT, "plain"), cf.MemoryDesc((4, 4096), "f16"), traits)
    assert "local memory" not in found.what


@pytest.mark.parametrize(("apart", "through"), [(66, False), (68, True)])
def test_vectors_are_stored_where_rows_begin_at_multiples_of_them(
    as_gpu: cf.Stream, apart: int, through: bool
) -> None:
    dst = cf.MemoryDesc((4, 64), "f32", strides=(apart, 1))
    found = decoding(described((4, 64), "q4_0", "gguf"), dst, as_gpu.engine.traits)
    assert ("local memory" in found.what) == through


@pytest.mark.parametrize("name", FEW)
@pytest.mark.sampled(3)
def test_values_are_the_hosts(stream: cf.Stream, name: str) -> None:
    src = described((32, 256), name, LAYOUTS[name])
    check_decodes(stream, src, cf.MemoryDesc(src.dims, "f32", "ab"), "decodes")


@pytest.mark.sampled(8)
@pytest.mark.parametrize("dims", [(24, 1280), (1, 256), (3, 2, 512)], ids=str)
@pytest.mark.parametrize(("name", "layout"), ALL)
def test_records_go_through_local_memory(
    as_gpu: cf.Stream, name: str, layout: str, dims: tuple[int, ...]
) -> None:
    """As for GPUs: rows, also short ones, and a last group that has less; others as elsewhere."""
    try:
        src = described(dims, name, layout)
    except cf.InvalidDescriptor:
        pytest.skip("no tensor of these dims has the layout")
    dst = cf.MemoryDesc(dims, ("f32", "f16")[len(name) % 2])
    family = "decodes"
    try:
        found = decoding(src, dst, as_gpu.engine.traits)
        through = layout in ("gguf", "flat") and name not in STRADDLING
        assert "local memory" in found.what or not through, found.what
    except cf.Unsupported:
        family = "decodes" if decoding_by_map(src, dst) else "host"
    check_decodes(as_gpu, src, dst, family)


MAPPED = [
    ("u4g128", "plain", "f16:ba"), ("u4g128", "plain", "f16:BA16b16a"),
    ("u4g128", "plain", "bf16:ab"), ("s4g128", "plain", "f32:BA16b16a"),
    ("u4g128", "awq_gemm", "f16:ab"), ("u4g128", "awq_gemm", "bf16:ba"),
    ("u4g128", "gptq", "f16:ab"), ("u8g32", "gptq", "f16:ba"),  # zero points minus one
    ("s4g128", "marlin", "f16:ab"), ("s4g128", "compressed", "f16:ba"),  # codes plus 8
    ("u8gk", "plain", "f16:ba"), ("q4_0", "gguf", "f16:ba"), ("q4_0", "transposed", "f16:ab"),
    ("mx_f8_e4m3", "swizzled", "f16:ab"), ("mx_f6_e2m3", "plain", "f16:ba"),
    ("nvfp4_times", "swizzled", "f16:ba"), ("nvfp4_divided", "plain", "bf16:ba"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "layout", "to"), MAPPED)
def test_planes_are_decoded_as_a_map(as_gpu: cf.Stream, name: str, layout: str, to: str) -> None:
    """As for GPUs: the codes are moved as a plain reorder moves them, and computed with."""
    for dims in ((128, 512), (384, 256)):
        src, dst = described(dims, name, layout), cf.MemoryDesc(dims, *to.split(":"))
        reorder, found = run(as_gpu, src, dst, raw := random_bytes(src, 7))
        assert reorder.plan.family == "decodes"
        assert "local memory" not in str(reorder.plan)
        assert "in_q" in str(reorder.plan)
        values = cf.tensors.dtypes.convert(cf.unpack(raw, src), "f32", dst.dtype)
        expected = cf.pack(values, dst)
        wide = (cf.tensors.dtypes.convert(x.view(expected.dtype), dst.dtype, "f32")
                for x in (found, expected))  # fmt: skip
        assert same(*wide)


@pytest.mark.parametrize("layout", ["awq_gemm", "gptq"])
@pytest.mark.parametrize("to", ["ab", "ba"])
def test_vectors_of_short_loops_have_operands(as_gpu: cf.Stream, layout: str, to: str) -> None:
    """Eight rows in a word of AWQ's are two loops; a vector of both has scales of its own."""
    src, dst = described((256, 1024), "u4g128", layout), cf.MemoryDesc((256, 1024), "f16", to)
    found = decoding_by_map(src, dst)
    assert found
    traits = replace(as_gpu.engine.traits, begin_bytes=64, compute_units=2)
    schedule = str(cf.make_plan(found[0], dst, traits, computation=found[1]).body)
    loaded, *stored = re.findall(r"of (\d+)(?: (\d+))?", schedule)[0]
    assert int(loaded) >= 8
    assert int(stored[0] or loaded) == 8
    check_decodes(as_gpu, src, dst, "decodes")


def test_maps_over_planes_have_experts_padding_and_regions(as_gpu: cf.Stream) -> None:
    for dims, text in (((3, 8, 256), "abc"), ((2, 40, 384), "acb"), ((40, 24 * 128), "BA16b16a")):
        src = described(dims, "u4g128", "gptq")
        raw = from_codes(some_codes(np.random.default_rng(8), src), src)
        whole = cf.MemoryDesc([n + 16 for n in dims], "f16", text)
        for dst in (cf.MemoryDesc(dims, "f16", text), whole.submemory(dims, [16] * len(dims))):
            memory, out = cf.Memory(src, as_gpu.engine), guarded(dst, as_gpu.engine)
            with memory.map("w") as flat:
                flat[:] = raw
            reorder = cf.Reorder(src, dst, as_gpu.engine)
            assert "in_z" in str(reorder.plan)
            reorder(as_gpu, memory, out).wait()
            with np.errstate(all="ignore"):
                check_bytes(out, holding(cf.unpack(raw, src).astype(np.float16), dst))


@pytest.mark.parametrize("name", ["q4_K", "q6_K"])
def test_records_that_are_no_map_go_by_rows(as_gpu: cf.Stream, name: str) -> None:
    src, dst = described((64, 512), name, "gguf"), cf.MemoryDesc((64, 512), "f16", "ba")
    check_decodes(as_gpu, src, dst, "decodes twice")
    reorder = cf.Reorder(src, dst, as_gpu.engine)
    assert "then a reorder f16:ab:64x512 -> f16:ba:64x512" in str(reorder.plan)


def test_codes_of_rows_and_columns_that_share_a_byte(stream: cf.Stream) -> None:
    """Codes lie at other bits in each column, and in each row a bit further on."""
    fields = {"q": ("u1", (1, 1)), "d": ("f16", (1, 4))}
    kind = cf.QuantisedType("two_rows_in_bytes", fields, "d * q")
    layout = "{k/4 n/2 * 6; q=@0 n%2:1 k%4:2; d=@16 n%2:16}"
    for dims in ((6, 32), (10, 64)):
        numbers = cf.MemoryDesc(dims, "f32")
        check_decodes(stream, described(dims, kind, layout), numbers, "decodes")


def test_planes_of_one_field_have_names_of_their_own(streaming: cf.Stream) -> None:
    """Word 20 of the plane q is not word 0 of the plane q2."""
    fields = {"q": ("u3", (1, 1)), "d": ("f16", (1, 16))}
    kind = cf.QuantisedType("three_planes", fields, "d * q")
    layout = "{k/16 n * 8; q=1@0 k/2%8:1 k%2:8 + 1@16 k%16:1 + 1@32 k%16:1; d=@48}"
    src = described((16, 32), kind, layout)
    check_decodes(streaming, src, cf.MemoryDesc((16, 32), "f32"), "decodes")
    alike = described((16, 32), kind, "q=1 n k + 1 n k + 1 n k; d=n g")
    check_decodes(streaming, alike, cf.MemoryDesc((16, 32), "f32"), "decodes")


def test_memory_that_begins_anywhere_has_no_words(as_gpu: cf.Stream) -> None:
    src = described((8, 256), "q4_0", "gguf")
    for begin, wanted in ((64, True), (16, True), (8, False), (1, False)):
        traits = replace(as_gpu.engine.traits, begin_bytes=begin)
        found = decoding(src, cf.MemoryDesc(src.dims, "f16"), traits)
        assert ("local memory" in found.what) == wanted, found.what
        assert found.alignment <= begin


def test_a_new_size_of_records_compiles_nothing(as_gpu: cf.Stream) -> None:
    """Law 7: rows that follow each other are one, whose length is an argument."""
    sizes = (8, 256), (24, 1280), (1, 4096)
    made = [decoding(described(dims, "q6_K", "gguf"), cf.MemoryDesc(dims, "f16"),
                     as_gpu.engine.traits) for dims in sizes]  # fmt: skip
    assert len({k.source for k in made}) == 1


def skip_where_compilers_take_minutes(stream: cf.Stream) -> None:
    if "rusticl" in stream.engine.device.platform.name:
        pytest.skip("llvmpipe compiles kernels that decode hundreds of values for minutes each")


@pytest.mark.parametrize(("name", "fmt"), [("iq2_s", "ba"), ("iq3_xxs", "BA16b16a")])
def test_columns_of_a_codebooks_entry_have_values_of_their_own(
    stream: cf.Stream, name: str, fmt: str
) -> None:
    """Along rows each vector has another column of eight, or four, that share a code."""
    skip_where_compilers_take_minutes(stream)
    src = described((32, 256), name, "gguf")
    check_decodes(stream, src, cf.MemoryDesc(src.dims, "f16", fmt), "decodes")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "layout"), ALL)
@pytest.mark.parametrize(("dtype", "fmt"), [("f32", "ab"), ("f16", "ba"), ("f16", "BA16b16a")])
def test_values_of_every_layout(
    stream: cf.Stream, name: str, layout: str, dtype: str, fmt: str
) -> None:
    src = described((64, 512), name, layout)
    dst = cf.MemoryDesc(src.dims, dtype, fmt)
    family = "host"
    for to, name_of in ((cf.MemoryDesc(src.dims, "f32"), "decodes twice"), (dst, "decodes")):
        with suppress(cf.Unsupported):
            decoding(src, to)
            family = name_of
    check_decodes(stream, src, dst, family)


@pytest.mark.usefixtures("plans_for_cpus")
@pytest.mark.parametrize(("dtype", "fmt", "rows"), [("f16", "ba", 128), ("f16", "BA16b16a", 16),
                                                    ("f32", "ba", 64)])  # fmt: skip
@pytest.mark.parametrize(("name", "layout"), [("u4g128", "plain"), ("s4g128", "plain"),
                                              ("q8_0", "gguf")])  # fmt: skip
def test_values_of_large_tensors(
    streaming: cf.Stream, name: str, layout: str, dtype: str, fmt: str, rows: int
) -> None:
    """As for large ones: lines pass the caches, in runs of 256 bytes or as the layout has them."""
    skip_where_compilers_take_minutes(streaming)
    src, engine = described((256, 512), name, layout), streaming.engine
    dst = cf.MemoryDesc(src.dims, dtype, fmt)
    check_decodes(streaming, src, dst, "decodes")
    found = decoding(src, dst, engine.traits)
    assert found.what.startswith(f"a work-item decodes {rows} x"), found.what


@pytest.mark.parametrize(
    ("dims", "fmt", "dtype", "family"),
    [
        ((7, 96), "ab", "f32", "decodes"),
        ((3, 5, 64), "abc", "f16", "decodes"),
        ((17, 96), "BA16b16a", "f16", "decodes twice"),
        ((16, 64), "ba", "bf16", "decodes twice"),
    ],
)
def test_odd_sizes_experts_and_other_types(
    stream: cf.Stream, dims: tuple[int, ...], fmt: str, dtype: str, family: str
) -> None:
    src = described(dims, "q4_0", "gguf")
    check_decodes(stream, src, cf.MemoryDesc(dims, dtype, fmt), family)


def check_moves(stream: cf.Stream, src: QuantisedDesc, dst: QuantisedDesc) -> str:
    raw = random_bytes(src, 5)
    reorder, found = run(stream, src, dst, raw)
    expected = moved(raw, src, dst)
    for b in dst.buffers:  # what lies between buffers belongs to nobody
        part = slice(b.start, b.start + b.nbytes)
        assert np.array_equal(found[part], expected[part]), (reorder.plan, b)
    return str(reorder.plan.family)


@pytest.mark.parametrize(
    ("name", "one", "other"),
    [
        ("q4_0", "gguf", "transposed"),
        ("q4_0", "repack_8x8", "gguf"),
        ("q5_0", "gguf", "flat"),
        ("u4g32", "gptq", "awq_gemm"),
        ("u4g32", "awq_gemm", "plain"),
        ("mx_f4_e2m1", "gpt_oss", "swizzled"),
        ("q4_K", "flat", "gguf"),  # bytes that fields share
        ("q5_0", "plain", "trans4"),  # codes that lie in two bytes
    ],
)
@pytest.mark.sampled(3)
def test_bits_are_moved(stream: cf.Stream, name: str, one: str, other: str) -> None:
    src = described((128, 256), name, one)
    assert check_moves(stream, src, src.with_layout(other)) == "moves"


def test_planes_that_tiles_cut_are_not_asked_for(streaming: cf.Stream) -> None:
    """Lines are asked for in the tile of all turns, which cuts the digits of ``e``."""
    layout = "q=n/2%8 n/16 k/1 n%2; e=n%16 g/18 g%3 n/16%16 n/256 g/6%3 g/3%2"
    check_decodes(
        streaming, described((16, 128), "mxfp4", layout), cf.MemoryDesc((16, 128), "f32"), "decodes"
    )


@pytest.mark.parametrize("codes", ["u32", "s32"])
def test_codes_that_fill_a_word_have_their_values(stream: cf.Stream, codes: str) -> None:
    fields = {"q": (codes, (1, 1)), "d": ("f32", (1, 32))}
    src = QuantisedDesc((8, 64), cf.QuantisedType(f"of_{codes}", fields, "q * d"))
    check_decodes(stream, src, cf.MemoryDesc((8, 64), "f32"), "decodes")


def test_codes_that_lie_in_five_bytes_are_moved(stream: cf.Stream) -> None:
    """27 bits of each scale from bit 6 of a byte on, where the third of four rows has them."""
    layout = ("k/64 n/4 * 145; q=@0 k/8%8:4 k%8:32 n%4:256; "
              "s=27@1024 n%4:27 + 5@1136 n%2:5 n/2%2:10")  # fmt: skip
    src, dst = (described((8, 512), "bnb_nf4", text) for text in ("{" + layout + "}", "plain"))
    raw = from_codes(some_codes(np.random.default_rng(1), src), src)
    _, found = run(stream, src, dst, raw)
    assert np.array_equal(found, moved(raw, src, dst))


@pytest.mark.usefixtures("plans_for_cpus")
@pytest.mark.parametrize("dims", [(128, 256), (96, 352)], ids=str)
@pytest.mark.parametrize("layouts", [("gguf", "transposed"), ("gguf", "trans4")], ids=str)
@pytest.mark.parametrize("name", ["q4_0", "q8_0", "q5_1", "mxfp4"])
@pytest.mark.sampled(3)
def test_records_are_moved_in_words(
    streaming: cf.Stream, name: str, layouts: tuple[str, str], dims: tuple[int, int]
) -> None:
    """By one kernel where that is fast, whose lines pass the caches; else plane by plane."""
    if not {*layouts} <= {*cf.layouts(name)}:
        pytest.skip("the type has no such layout")
    one, other = (described(dims, name, layout) for layout in layouts)
    assert check_moves(streaming, one, other) == "moves"
    assert check_moves(streaming, other, one) == "moves"
    if name == "q4_0":
        for src, dst in ((one, other), (other, one)):
            (kernel,) = moving(src, dst, streaming.engine.traits)
            assert isinstance(kernel, Kernel)
            assert kernel.what.endswith("in words")


@pytest.mark.sampled(6)
@pytest.mark.parametrize("dims", [(24, 1280), (3, 256), (2, 4, 512)], ids=str)
@pytest.mark.parametrize("name", ["q4_0", "q4_1", "q5_0", "q8_0", "q6_K", "mxfp4", "q1_0"])
def test_whole_records_are_moved_by_groups(
    as_gpu: cf.Stream, name: str, dims: tuple[int, ...]
) -> None:
    records = described(dims, name, "gguf")
    for other in ("flat", "plain"):
        planes = records.with_layout(other)
        for one, two in ((records, planes), (planes, records)):
            assert "local memory" in repacking(one, two, as_gpu.engine.traits).what
            assert check_moves(as_gpu, one, two) == "moves"


@pytest.mark.parametrize("group", [512, 1024])
def test_records_longer_than_groups_are_wide(as_gpu: cf.Stream, group: int) -> None:
    """Bytes at the end of a run that fill no word: as many as work-items at most, or others go."""
    records = f"{{n k/{group} * {group + 4}; d=@0; q=@32 k%{group}:8}}"
    fields = {"q": ("u8", (1, 1)), "d": ("f32", (1, group))}
    kind = cf.QuantisedType(f"long{group}", fields, "d * q", layouts={"records": records})
    one = described((1, 3 * group), kind, "records")
    other = one.with_layout("plain")
    for src, dst in ((one, other), (other, one)):
        assert check_moves(as_gpu, src, dst) == "moves"


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("one", "other"),
    [("openvino_osv16", "compressed"), ("openvino_osv64", "gptq_v2"), ("awq_gemm", "plain")],
)  # fmt: skip
def test_words_of_short_loops_trade_elements(as_gpu: cf.Stream, one: str, other: str) -> None:
    """Loops of 3 and 5 steps, which vectors do not divide, lie before those that trade."""
    for dims in ((24, 1280), (40, 384), (64, 512)):
        try:
            src = described(dims, "u4g128", one)
            dst = src.with_layout(other)
        except cf.InvalidDescriptor:
            continue
        assert check_moves(as_gpu, src, dst) == "moves"


@pytest.mark.parametrize(
    ("name", "one", "other", "added"),
    [
        ("u4g128", "gptq", "awq_gemm", "z + 1"),
        ("u8g32", "gptq", "plain", "z + 1"),
        ("s4g128", "plain", "marlin", "q + 8"),
        ("s8g128", "q=n k; s=n g", "q+128=k n; s=n g", "q + 128"),
        ("u4g128", "q+3=k n; s=n g; z=n g", "q+9=n k; s=n g; z=n g", "q + 6"),
    ],
)
def test_planes_whose_codes_are_stored_with_a_number_added_move(
    as_gpu: cf.Stream, name: str, one: str, other: str, added: str
) -> None:
    src, dst = (described((128, 512), name, layout) for layout in (one, other))
    assert check_moves(as_gpu, src, dst) == check_moves(as_gpu, dst, src) == "moves"
    plan = str(cf.Reorder(src, dst, as_gpu.engine).plan)
    assert f"{added}: " in plan
    assert "a work-item moves" not in plan


@pytest.mark.slow
@pytest.mark.parametrize(("name", "layout"), ALL)
def test_bits_of_every_layout_are_moved(stream: cf.Stream, name: str, layout: str) -> None:
    src = described((128, 512), name, layout)
    for other in dict.fromkeys(("plain", next(iter(reversed(cf.layouts(name)))))):
        for one, two in ((src, src.with_layout(other)), (src.with_layout(other), src)):
            try:
                moving(one, two)
                family = "moves"
            except cf.Unsupported:
                family = "host"
            assert check_moves(stream, one, two) == family


def hard(dims: tuple[int, int], dtype: str) -> NDArray[Any]:
    """Values of many magnitudes, ties, zeros, infinities, NaN, neighbours of powers of two."""
    rng = np.random.default_rng(1)
    powers = np.exp2(rng.integers(-12, 12, (dims[0], 1))).astype(np.float32)
    x = rng.standard_normal(dims).astype(np.float32) * powers
    x[0], x[1, ::7], x[2, 3] = 0, np.inf, np.nan
    x[3] = 1e-40 if dtype == "f32" else 6e-8
    x[4] = rng.integers(-8, 8, dims[1]) / 2
    x[5] = np.nextafter(np.exp2(rng.integers(-12, 12, dims[1])).astype(np.float32), np.float32(0))
    x[6] = -np.abs(x[6])
    x[7] = np.where(rng.random(dims[1]) < 0.9, np.float32(0), np.abs(x[7]))
    x[7, rng.random(dims[1]) < 0.5] *= -0.0
    return x.astype(np.float16 if dtype == "f16" else np.float32)


def check_quantises(stream: cf.Stream, x: NDArray[Any], dst: QuantisedDesc) -> str:
    src = cf.MemoryDesc(x.shape, f"f{8 * x.itemsize}")
    reorder, found = run(stream, src, dst, cf.pack(x, src))
    expected = as_found(cf.pack(x, dst), found, dst, exact=False)
    for b in dst.buffers:
        part = slice(b.start, b.start + b.nbytes)
        assert np.array_equal(found[part], expected[part]), (reorder.plan, b)
    return str(reorder.plan.family)


@pytest.mark.slow
def test_codes_alone_become_halves_in_vectors(stream: cf.Stream) -> None:
    """LLVM joined two conversions into one that it does element by element, 20 times as slow."""
    kind = cf.QuantisedType("bare", {"q": ("s8", (1, 1))}, "q")
    memory = cf.Memory(cf.MemoryDesc((2048, 2048), kind, "plain"), stream.engine)

    def seconds(dtype: str) -> float:
        to = cf.Memory(cf.MemoryDesc((2048, 2048), dtype), stream.engine)
        reorder = cf.Reorder(memory.desc, to.desc, stream.engine)
        return min(timed(lambda: reorder(stream, memory, to).wait()) for _ in range(20))

    assert seconds("f16") < 2 * seconds("f32")


QUANTISED = ["q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q2_0", "tq2_0", "mxfp4", "nvfp4", "u4g128",
             "u8g64", "s4g32", "s8g128", "u3g32", "mx_f4_e2m1", "mx_f6_e2m3", "mx_f6_e3m2",
             "mx_f8_e4m3", "mx_f8_e5m2"]  # fmt: skip


@pytest.mark.parametrize("dtype", ["f32", "f16"])
@pytest.mark.parametrize("name", QUANTISED)
@pytest.mark.sampled(6)
def test_numbers_are_quantised_as_on_the_host(stream: cf.Stream, name: str, dtype: str) -> None:
    x = hard((16, 512), dtype)
    for layout in two_layouts(name):
        assert check_quantises(stream, x, described(x.shape, name, layout)) == "quantises"


def two_layouts(name: str) -> set[str]:
    """The usual one, and the layout that is last in its table."""
    return {usual(name), list(cf.layouts(name))[-1]}


def usual(name: str) -> str:
    """Records, where the type has them."""
    return "gguf" if "gguf" in cf.layouts(name) else "plain"


@pytest.mark.parametrize("dtype", ["f32", "f16"])
@pytest.mark.parametrize("name", QUANTISED)
@pytest.mark.sampled(6)
def test_groups_quantise_as_the_host(as_gpu: cf.Stream, name: str, dtype: str) -> None:
    """As for GPUs: the last group has less than others, also where rows are apart."""
    for layout in two_layouts(name):
        for x in (hard((17, 1280), dtype), hard((8, 256), dtype).reshape(2, 4, 256)):
            try:
                dst = described(x.shape, name, layout)
            except cf.InvalidDescriptor:
                continue
            assert check_quantises(as_gpu, x, dst) == "quantises"


@pytest.mark.parametrize("dtype", ["f16", "f32"])
@pytest.mark.parametrize(
    "name", ["u4g128", "u4g32", "u4g128_bf16", "s4g128", "u8g64", "s8g128", "u2g64", "q2_0"]
)
def test_work_items_quantise_blocks_together(as_gpu: cf.Stream, name: str, dtype: str) -> None:
    """As for GPUs: 32 values each; the last group has less, also where rows are apart."""
    for dims in ((17, 1280), (9, 768), (2, 4, 256)):
        dst = described(dims, name, "gguf" if name == "q2_0" else "plain")
        x = hard((prod(dims[:-1]), dims[-1]), dtype).reshape(dims)
        assert check_quantises(as_gpu, x, dst) == "quantises"
        src = cf.MemoryDesc(dims, dtype)
        assert "32 each" in str(cf.Reorder(src, dst, as_gpu.engine).plan)


def test_quotients_by_an_inverse_are_rounded_correctly(stream: cf.Stream) -> None:
    """Where they are no smaller than what rounds to 0, and their divisor is below the bound."""
    text = """
    kernel void quotients(global const float16 *x, global const float *t, global float16 *out)
    {
        const uint i = get_global_id(0);
        out[i] = quotient(x[i], t[i], 1.0f / t[i]);
    }
    """
    rng = np.random.default_rng(5)
    t = np.exp2(rng.uniform(-20, 118, 20_000)).astype(np.float32)
    t[:2000] = np.nextafter(np.exp2(rng.integers(-20, 118, 2000)), 0, dtype=np.float32)
    x = (t[:, None] * np.exp2(rng.uniform(-2, 6, (t.size, 16)))).astype(np.float32)
    x[::2] = (t[::2, None] * (rng.integers(0, 256, (t.size // 2, 16)) + 0.5)).astype(np.float32)
    x = np.nextafter(x, np.float32(np.inf) * rng.choice((-1, 1), x.shape), dtype=np.float32)
    given = [cf.from_numpy(a, stream.engine) for a in (x, t, np.zeros_like(x))]
    kernel = stream.engine.kernel(QUOTIENT + text, "quotients")
    stream.run(kernel, (t.size,), None, *given, reads=given[:2])
    assert (given[2].numpy() == x / t[:, None]).all()


@pytest.mark.parametrize(
    ("name", "layout"), [("q4_0", "transposed"), ("u4g128", "awq_gemm"), ("s4g128", "marlin")]
)
def test_what_groups_do_not_store_they_leave_to_a_move(
    as_gpu: cf.Stream, name: str, layout: str
) -> None:
    dst = described((64, 512), name, layout)
    assert check_quantises(as_gpu, hard((64, 512), "f16"), dst) == "quantises"
    plan = str(cf.Reorder(cf.MemoryDesc(dst.dims, "f16"), dst, as_gpu.engine).plan)
    assert "local memory" in plan
    assert f"then to {dst}" in plan


@pytest.mark.parametrize(("layout", "through"), [("gguf", True), ("flat", True), ("trans4", False)])
def test_groups_store_records_and_planes_by_words(
    as_gpu: cf.Stream, layout: str, through: bool
) -> None:
    dims, traits = (8, 256), as_gpu.engine.traits
    src, dst = cf.MemoryDesc(dims, "f16"), described(dims, "q4_0", layout)
    assert ("local memory" in quantising(src, dst, traits).what) == through
    with pytest.raises(cf.Unsupported):
        quantising(src, dst, replace(traits, has_ieee_f32=False))


@pytest.mark.parametrize("name", ["mxfp4", "nvfp4", "mx_f4_e2m1", "q4_0", "q8_0", "q4_1", "u4g128"])
def test_halves_near_and_at_ties_are_quantised_as_on_the_host(stream: cf.Stream, name: str) -> None:
    """All mantissas of f16 under maxima of many kinds, in blocks that are finite."""
    rng = np.random.default_rng(5)
    powers = np.exp2(rng.integers(-6, 1, (64, 2048)) + rng.integers(-3, 4, (64, 1)))
    x = (rng.integers(-2048, 2049, (64, 2048)) / 1024 * powers).astype(np.float16)
    x[:, ::64] = np.float16(1.5) * powers[:, :1]
    assert check_quantises(stream, x, described(x.shape, name, usual(name))) == "quantises"


@pytest.mark.parametrize("name", ["mxfp4", "nvfp4", "mx_f4_e2m1", "u4g128"])
def test_every_half_is_quantised_under_every_exponent(stream: cf.Stream, name: str) -> None:
    """A row for each exponent of a block's maximum: it, and all halves down to a 256th."""
    rows = []
    for exponent in range(31):
        own = np.arange(max(0, exponent - 8) << 10, (exponent + 1) << 10)
        signed = np.resize([own, own | 0x8000], 19840)
        rows.append(np.insert(signed.reshape(-1, 31), 0, (exponent << 10) + 1023, axis=1).ravel())
    x = np.array(rows, np.uint16).view(np.float16)
    assert check_quantises(stream, x, described(x.shape, name, usual(name))) == "quantises"


def test_numbers_are_quantised_by_opencl_c_alone(
    engine: cf.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiler, "options", lambda _: (PORTABLE,))
    stream, x = cf.Stream(cf.Engine(device=engine.device)), hard((16, 512), "f32")
    assert check_quantises(stream, x, described(x.shape, "q5_1", "gguf")) == "quantises"


def test_what_no_kernel_quantises_goes_by_the_host(stream: cf.Stream) -> None:
    x = np.random.default_rng(0).standard_normal((8, 64)).astype(np.float32)
    for name in ("nvfp4_times", "u4gk"):
        assert check_quantises(stream, x, described(x.shape, name, "plain")) == "host"
    src, dst = (described(x.shape, name, "gguf") for name in ("q4_0", "q8_0"))
    raw = cf.pack(x, src)
    reorder, found = run(stream, src, dst, raw)
    assert "decodes q4_0" in str(reorder.plan)
    assert np.array_equal(found, cf.pack(cf.unpack(raw, src), dst))
    with pytest.raises(cf.Unsupported) as error:
        cf.Reorder(cf.MemoryDesc(x.shape, "f32"), "iq4_nl:gguf:8x64", stream.engine)
    assert error.value.code == "QUANTISE"


def test_codes_are_stored_with_what_a_layout_adds(stream: cf.Stream) -> None:
    x = np.random.default_rng(1).standard_normal((8, 64)).astype(np.float32)
    for name, layout in (
        ("q4_0", "repack_4x4"),
        ("q4_0", "repack_8x8"),
        ("q8_0", "q+7=n k; d=n g"),
    ):
        assert check_quantises(stream, x, described(x.shape, name, layout)) == "quantises"


GAPS = "{k/32 n * 20; e=@0; q=@16 k%32:4}"


@pytest.mark.parametrize(
    ("name", "layout", "dims"),
    [
        ("mx_f4_e2m1", GAPS, (3, 64)),  # a byte in each record, and two behind it
        ("u4g128", "awq_gemv", (24, 1280)),  # rows of scales and zero points are longer
        ("u4gk", "plain", (3, 256)),  # half a byte behind the last zero point
    ],
)
def test_padding_of_what_is_quantised_is_zero(
    stream: cf.Stream, name: str, layout: str, dims: tuple[int, int]
) -> None:
    """Law 4."""
    x = np.random.default_rng(1).standard_normal(dims).astype(np.float32)
    check_quantises(stream, x, described(dims, name, layout))


@pytest.mark.parametrize(("name", "layout"), [("q8_0", "flat"), ("tq2_0", "plain")])
def test_columns_that_fill_no_records_are_quantised(
    stream: cf.Stream, name: str, layout: str
) -> None:
    """Planes may have any; the table's records, in which a kernel would write them, have not."""
    x = np.random.default_rng(1).standard_normal((5, 77)).astype(np.float32)
    assert check_quantises(stream, x, described(x.shape, name, layout)) == "host"


def test_memory_of_a_quantised_tensor(engine: cf.Engine) -> None:
    desc = described((4, 64), "q4_0", "gguf")
    x = np.random.default_rng(0).standard_normal(desc.dims).astype(np.float32)
    memory = cf.from_numpy(x, engine, desc=desc)
    assert np.array_equal(cf.to_numpy(memory), cf.unpack(cf.pack(x, desc), desc))
    fields = {n: cf.unpack(cf.pack(x, desc), desc, field=n) for n in desc.fields}
    again = cf.from_numpy(fields, engine, desc=str(desc))
    assert np.array_equal(again.numpy(), memory.numpy())
    assert str(again) == "Memory('q4_0:gguf:4x64')"
    with pytest.raises(cf.Unsupported, match="share parameters"):
        memory.submemory((2, 64), (0, 0))
    with pytest.raises(cf.Unsupported, match="share parameters"):
        memory.clear_padding()


def test_one_program_serves_every_size(engine: cf.Engine) -> None:
    sources = set()
    for dims in ((64, 256), (128, 512), (192, 1024)):
        src = described(dims, "q4_0", "gguf")
        numbers = cf.MemoryDesc(dims, "f16", "ab")
        both = [cf.Reorder(src, dst, engine) for dst in (src.with_layout("flat"), numbers)]
        sources.add(tuple(reorder.source for reorder in both))
    assert len(sources) == 1


@pytest.mark.parametrize("size", [(18, 4224), (43, 7), (16, 4096), (1, 97), (67, 5)])
def test_work_items_of_a_group_are_neighbours_in_memory(size: tuple[int, int]) -> None:
    """Two of 18 tiles in each of 16 rows, as a group, took three times as long."""
    first, second, _ = Grid(Tile(1, 256), (1, *size[::-1])).group((*size, 1))
    assert size[0] % first == size[1] % second == 0
    assert second == 1 or first == size[0]
    assert first * second <= GROUP
    assert size[0] > GROUP or first == size[0]


def test_memory_that_begins_anywhere(stream: cf.Stream) -> None:
    """Stores that pass the cache need whole lines: elsewhere another kernel runs."""
    dims, start = (1024, 8192), 2
    src = described(dims, "q8_0", "gguf")
    dst = cf.MemoryDesc(dims, "f16", "ab")
    raw, flat = random_bytes(src, 3), np.zeros(dst.nbytes + 128, np.uint8)
    at = -flat.ctypes.data % 64 + start
    own = flat[at : at + dst.nbytes]
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
    out = cf.Memory(dst, stream.engine, buffer=cl.Buffer(stream.engine.context, flags, hostbuf=own))
    reorder = cf.Reorder(src, dst, stream.engine)
    memory = cf.Memory(src, stream.engine)
    with memory.map("w") as bytes_:
        bytes_[:] = raw
    reorder(stream, memory, out).wait()
    with np.errstate(all="ignore"):
        expected = cf.unpack(raw, src).astype(np.float16)
    assert same(out.numpy().astype(np.float32), expected.astype(np.float32))


def test_pyopencls_objects_are_taken_as_by_other_reorders(stream: cf.Stream) -> None:
    import pyopencl.array

    src = described((8, 64), "q4_0")
    memory = cf.from_numpy(np.arange(512, dtype=np.float32).reshape(8, 64), stream.engine, desc=src)
    out = pyopencl.array.zeros(stream.queue, (8, 64), np.float32)
    cf.Reorder(src, "f32:ab:8x64", stream.engine)(stream.queue, memory.buffer, out)
    assert (out.get() == memory.numpy()).all()


def test_a_type_alone_has_its_usual_layout(engine: cf.Engine) -> None:
    memory = cf.from_numpy(np.ones((8, 64), np.float32), engine, format="ba")
    records = cf.reorder(memory, dtype="q4_0")
    assert str(records.desc) == "q4_0:gguf:8x64"
    assert str(cf.reorder(records, dtype="f16").desc) == "f16:ab:8x64"
    assert str(cf.reorder(cf.reorder(records, "plain"), dtype="q8_0").desc) == "q8_0:plain:8x64"


@pytest.mark.parametrize("begin", [0, 3])
def test_host_memory_is_used_in_place_or_refused(begin: int, engine: cf.Engine) -> None:
    align = engine.device.mem_base_addr_align // 8
    room = np.zeros(2 * align + 288, np.uint8)
    at = -room.ctypes.data % align + begin
    host = cf.HostMemory("q4_0:gguf:8x64", room[at : at + 288])
    try:
        memory = cf.from_host(host, engine)
    except cf.DeviceError as error:
        if "in place: copy them" in str(error):  # not everywhere
            pytest.skip(str(error))
        assert begin
        assert "must begin where its buffer does" in str(error)  # noqa: PT017
        return
    assert (memory.numpy() == 0).all()


def test_a_layout_to_be_chosen_is_refused(engine: cf.Engine) -> None:
    with pytest.raises(cf.InvalidDescriptor, match="f32:any:8x64"):
        cf.Reorder("q4_0:gguf:8x64", cf.MemoryDesc((8, 64), "f32", "any"), engine)


@pytest.mark.parametrize("to", ["f16:ab:8x64", "q4_0:flat:8x64", "q4_0:gguf:8x64"])
def test_reorders_in_place_are_refused(to: str, stream: cf.Stream) -> None:
    """The source in the destination's buffer, as a whole and in buffers of its own."""
    dst, src = cf.Memory(to, stream.engine), described((8, 64), "q4_0", "gguf")
    records = cf.Memory(src, stream.engine, buffer=dst.buffer)
    with pytest.raises(cf.InvalidDescriptor, match="cannot work in place"):
        cf.Reorder(src, dst.desc, stream.engine)(stream, records, dst)
    src = described((8, 64), "q4_0", "flat")
    scales = cf.Memory("u8:a:32", stream.engine)
    planes = cf.Memory(src, stream.engine, buffers={"d": scales, "q": dst.buffer})
    with pytest.raises(cf.InvalidDescriptor, match="cannot work in place"):
        cf.Reorder(src, dst.desc, stream.engine)(stream, planes, dst)


def test_short_calls_with_quantised_tensors(engine: cf.Engine) -> None:
    values = np.random.default_rng(0).standard_normal((8, 64)).astype(np.float32)
    records = cf.from_numpy(values, engine, desc=described((8, 64), "q4_0"))
    planes = cf.reorder(records, "transposed")
    assert str(planes.desc) == "q4_0:transposed:8x64"
    assert (planes.numpy() == records.numpy()).all()
    decoded = np.zeros((8, 64), np.float32)
    cf.transfer(records, decoded)
    assert (decoded == records.numpy()).all()


@pytest.mark.parametrize("to", ["q4_0:transposed:8x64", "f16:BA8a8b:8x64", "q4_0:gguf:8x64"])
def test_tensors_are_transferred_from_and_to_the_host(to: str, engine: cf.Engine) -> None:
    """A file's bytes, mapped, to a device in another layout; and back."""
    src = described((8, 64), "q4_0", "gguf")
    x = np.random.default_rng(3).standard_normal((8, 64)).astype(np.float32)
    raw = cf.pack(x, src)
    dst = cf.Memory(to, engine)
    told: list[tuple[int, int]] = []
    cf.transfer(cf.HostMemory(src, raw), dst, progress=lambda *n: told.append(n))
    assert told == [(0, 288 + dst.desc.nbytes), (288 + dst.desc.nbytes,) * 2]
    expected = cf.unpack(raw, src)
    assert np.array_equal(dst.numpy(), expected.astype(dst.desc.dtype.numpy))
    there = cf.HostMemory(to)
    cf.transfer(cf.HostMemory(src, raw), there, engine=engine)
    assert np.array_equal(there.numpy(), dst.numpy())
    if not to.startswith("f16"):
        back = cf.HostMemory(src)
        cf.transfer(dst, back)
        assert np.array_equal(back.array, raw)


def test_bytes_that_are_given_as_values_are_told(engine: cf.Engine) -> None:
    desc = described((8, 64), "q4_0", "gguf")
    with pytest.raises(cf.InvalidDescriptor, match="these are its bytes"):
        cf.from_numpy(np.zeros(desc.nbytes, np.uint8), engine, desc=desc)


def test_transfers_of_quantised_tensors_take_no_attributes(engine: cf.Engine) -> None:
    src, dst = cf.HostMemory(described((8, 64), "q4_0", "gguf")), cf.Memory("f32:ab:8x64", engine)
    with pytest.raises(cf.InvalidAttr, match="attributes"):
        cf.transfer(src, dst, attr=cf.Attr(src_scale=2.0))
    with pytest.raises(cf.InvalidArgument, match="one piece"):
        cf.transfer(src, dst, piece_nbytes=99)
    with pytest.raises(cf.InvalidDescriptor, match="equal dims"):
        cf.transfer(src, cf.Memory("f32:ab:8x32", engine))


@pytest.mark.parametrize("is_decoded", [True, False], ids=["decodes", "quantises"])
def test_older_compilers_do_not_meet_halves_in_vectors(is_decoded: bool, engine: cf.Engine) -> None:
    """Clang has `_Float16` for x86 from version 15 on."""
    records, numbers = described((32, 256), "q4_0"), cf.MemoryDesc((32, 256), "f16")
    made = decoding(records, numbers) if is_decoded else quantising(numbers, records, engine.traits)
    older = "#undef __clang_major__\n#define __clang_major__ 14\n#define _Float16 unknown\n"
    assert engine.kernel(older + made.source, made.name).function_name == made.name
