"""`jit_constants`: what clDNN's kernels are told of their tensors, compiled and run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import clformats as cf
from clformats.index.names import coordinates_of, formats_of_cldnn, layout_of, letters_of
from clformats.tensors.rows import ROWS
from tests.index_support import PADDING, Case, Runner, hurting

GROUP = 60
FORMATS = list({layout_of(f): f for f in formats_of_cldnn()}.values())


def _case(desc: cf.MemoryDesc, name: str) -> Case:
    """The tensor's own index macros under the names that `Runner` calls."""
    letters = letters_of(desc.format)
    arguments = ", ".join(letters)
    given = ", ".join(c if c in letters else "0" for c in coordinates_of(letters))
    return Case(desc, name, "\n".join([
        f"#define {name}_INDEX({arguments}) {name}_GET_INDEX({given})",
        f"#define {name}_INDEX_SAFE({arguments}) {name}_GET_INDEX_SAFE({given})",
        f"#define {name}_COORDS(...) false",
    ]))  # fmt: skip


def _check(engine: cf.Engine, descs: list[cf.MemoryDesc]) -> None:
    named = {f"T{k}": desc for k, desc in enumerate(descs)}
    first, *rest = (_case(desc, name) for name, desc in named.items())
    first = Case(first.desc, first.prefix, f"{cf.jit_constants(named)}\n{first.source}")
    cases = [first, *rest]
    runner = Runner(engine, cases, ["-cl-opt-disable"])
    for k, desc in enumerate(descs):
        for safe in (0, 1):
            got = runner.run(safe, k, desc.nelems)
            assert (got == desc.offsets().ravel()).all(), f"{desc}, {'safe' * safe}"


@pytest.mark.parametrize("start", range(0, len(FORMATS), GROUP))
def test_every_format_of_cldnn(start: int, engine: cf.Engine) -> None:
    _check(engine, [hurting(fmt) for fmt in FORMATS[start : start + GROUP]])


def test_padding_strides_and_onednn_names(engine: cf.Engine) -> None:
    dims = (2, 5, 3, 4)
    names = ["bfyx", "byxf", "b_fs_yx_fsv16", "bs_fs_yx_bsv16_fsv32", "fs_b_yx_fsv32", "nChw8c"]
    descs = [cf.MemoryDesc(dims, "f32", name, padding=PADDING[:4]) for name in names]
    descs += [
        cf.MemoryDesc(dims, "s8", strides=(100, 1, 33, 7)),
        cf.MemoryDesc((2, 17, 5), "f32", "nwc"),
        cf.MemoryDesc((17, 3, 5), "f32", "Oiw16o"),
        cf.MemoryDesc((2, 17, 3, 5), "f32", "aBcd24b"),
        cf.MemoryDesc((17, 19), "s8", "OI8i16o2i"),
    ]
    _check(engine, descs)


def test_one_element_and_one_feature_vector_are_broadcast(engine: cf.Engine) -> None:
    """ClDNN's kernels read them with the coordinates of another tensor."""
    descs = {
        "ONE": cf.MemoryDesc((1, 1, 1, 1), "f32", "bfyx", padding=((0, 0), (0, 0), (2, 1), (3, 1))),
        "BLOCK": cf.MemoryDesc((1, 1, 1, 1), "f32", "b_fs_yx_fsv16"),
        "BIAS": cf.MemoryDesc((1, 17, 1, 1), "f32", "bfyx"),
        "BLOCKED_BIAS": cf.MemoryDesc((1, 17, 1, 1), "f32", "b_fs_yx_fsv16"),
    }
    calls = [f"{name}_GET_INDEX{safe}(3, 18, 5, 6)" for name in descs for safe in ("", "_SAFE")]
    got = _numbers(engine, cf.jit_constants(descs), calls)
    one = descs["ONE"].offset(0, 0, 0, 0)
    assert got == [one, one, 0, 0, 18, 1, 18, 1]


def _numbers(
    engine: cf.Engine, source: str, expressions: list[str], shape_info: tuple[int, ...] = (0,)
) -> list[int]:
    import pyopencl as cl

    text = "\n".join([
        source,
        "__kernel void run(OPTIONAL_SHAPE_INFO_ARG __global long *out)",
        "{",
        *(f"    out[{k}] = {e};" for k, e in enumerate(expressions)),
        "}",
    ])  # fmt: skip
    kernel = engine.kernel(text, "run")
    out = np.empty(len(expressions), np.int64)
    result = cl.Buffer(engine.context, cl.mem_flags.WRITE_ONLY, out.nbytes)
    flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
    info = cl.Buffer(engine.context, flags, hostbuf=np.array(shape_info, np.int32))
    arguments: list[Any] = [result] if len(shape_info) == 1 else [info, result]
    kernel(engine.queue, (1,), None, *arguments)
    cl.enqueue_copy(engine.queue, out, result)
    return [int(n) for n in out]


def test_numbers_of_a_padded_tensor(engine: cf.Engine) -> None:
    pads = ((1, 2), (3, 1), (2, 0), (0, 1))
    source = cf.jit_constants({"IN": cf.MemoryDesc((2, 5, 3, 4), "f32", "bfyx", padding=pads)})
    wanted = {
        "IN_SIZE_X": 4, "IN_SIZE_Y": 3, "IN_SIZE_Z": 1, "IN_SIZE_V": 1,
        "IN_FEATURE_NUM": 5, "IN_BATCH_NUM": 2,
        "IN_PAD_BEFORE_SIZE_Y": 2, "IN_PAD_AFTER_SIZE_X": 1, "IN_PAD_BEFORE_FEATURE_NUM": 3,
        "IN_PAD_AFTER_BATCH_NUM": 2, "IN_PAD_BEFORE_SIZE_W": 0,
        "IN_X_PITCH": 1, "IN_Y_PITCH": 5, "IN_FEATURE_PITCH": 25, "IN_BATCH_PITCH": 225,
        "IN_OFFSET": 225 + 3 * 25 + 2 * 5, "IN_VIEW_OFFSET": 0, "IN_LENGTH": 120, "IN_DIMS": 4,
        "IN_SIMPLE": 1, "IN_GROUPED": 0, "IN_LAYOUT_BFYX": 1, "IN_TYPE_SIZE": 4, "IN_IS_FP": 1,
        "IN_SIZES[0]": 4, "IN_SIZES[2]": 5, "IN_PITCHES[3]": 225, "IN_PAD_BEFORE[1]": 2,
        "IN_PAD_AFTER[3]": 2, "IN_GET_INDEX_RAW(1, 2, 3, 1)": 310 + 1 + 10 + 75 + 225,
        "TO_IN_TYPE(3)": 3, "(IN_VAL_MAX > 1e38f)": 1, "(int)IN_MAX_FUNC(2.f, 3.f)": 3,
        "sizeof(IN_TYPE)": 4, "IS_DYNAMIC": 0,
    }  # fmt: skip
    assert _numbers(engine, source, list(wanted)) == list(wanted.values())


@pytest.mark.parametrize(
    ("dtype", "least", "most", "size"),
    [("s8", -128, 127, 1), ("u8", 0, 255, 1), ("s32", -(2**31), 2**31 - 1, 4)],
)
def test_element_types(dtype: str, least: int, most: int, size: int, engine: cf.Engine) -> None:
    source = cf.jit_constants({"IN": cf.MemoryDesc((2, 3), dtype, "bf")})
    wanted = ["IN_VAL_MIN", "IN_VAL_MAX", "sizeof(IN_TYPE)", "IN_IS_FP", "TO_IN_TYPE_SAT(1e20f)",
              "IN_VAL_ONE + IN_VAL_ZERO", "IN_MIN_FUNC(TO_IN_TYPE(2), TO_IN_TYPE(3))"]  # fmt: skip
    assert _numbers(engine, source, wanted) == [least, most, size, 0, most, 1, 2]


def test_weights_pitches_count_whole_blocks() -> None:
    """What clDNN's host code tells its kernels; two families begin with the whole block."""

    def pitches(fmt: str, dims: tuple[int, ...]) -> list[int]:
        text = cf.jit_constants({"W": cf.MemoryDesc(dims, "f32", fmt)})
        lines = dict(line.split()[1:3] for line in text.splitlines() if "_PITCH " in line)
        return [int(lines[f"W_{c}_PITCH"]) for c in ("X", "Y", "IFM", "OFM")]

    assert pitches("oiyx", (19, 17, 3, 5)) == [1, 5, 15, 15 * 17]
    assert pitches("os_is_yx_isv16_osv16", (19, 17, 3, 5)) == [1, 5, 15, 15 * 32]
    assert pitches("os_is_yx_isa8_osv8_isv4", (19, 17, 3, 5)) == [256, 1280, 3840, 3840 * 32]
    assert pitches("os_is_yx_isa8_osv16_isv4", (19, 17, 3, 5)) == [512, 2560, 7680, 7680 * 32]
    assert pitches("i_yxs_os_yxsv2_osv16", (19, 17, 3, 5))[2] == 32 * 16


def test_shape_info(engine: cf.Engine) -> None:
    """Eight numbers for each tensor with unknown sizes, in the order of the tensors."""
    unknown = cf.RUNTIME_DIM
    source = cf.jit_constants({
        "INPUT0": cf.MemoryDesc((unknown, 17, unknown, unknown), "f32", "b_fs_yx_fsv16"),
        "INPUT1": cf.MemoryDesc((2, 17, 5, 4), "f32", "bfyx"),
        "OUTPUT": cf.MemoryDesc((unknown, unknown, 5, 6, unknown), "f32", "bfzyx",
                                padding=((0, 0), (1, 0), (0, 0), (2, 1), (1, 1))),
    })  # fmt: skip
    src = cf.MemoryDesc((3, 17, 5, 4), "f32", "b_fs_yx_fsv16")
    dst = cf.MemoryDesc((3, 7, 5, 6, 9), "f32", "bfzyx",
                        padding=((0, 0), (1, 0), (0, 0), (2, 1), (1, 1)))  # fmt: skip
    info = (3, 99, 1, 1, 1, 1, 5, 4, 3, 7, 1, 1, 1, 99, 99, 9)
    wanted = {
        "INPUT0_GET_INDEX(2, 16, 4, 3)": src.offset(2, 16, 4, 3),
        "INPUT0_GET_INDEX_SAFE(5, 33, 9, 7)": src.offset(2, 16, 4, 3),
        "INPUT1_SIZE_X": 4,
        "OUTPUT_GET_INDEX(1, 5, 3, 2, 8)": dst.offset(1, 5, 3, 2, 8),
        "OUTPUT_FEATURE_NUM": 7,
        "OUTPUT_LENGTH": 3 * 7 * 5 * 6 * 9,
        "INPUT0_BATCH_NUM + INPUT0_SIZE_X": 7,
    }
    assert _numbers(engine, source, list(wanted), info) == list(wanted.values())


@pytest.mark.parametrize("name", ["bfyx", "byxf", "b_fs_yx_fsv16", "bs_fs_yx_bsv16_fsv32"])
def test_padding_from_shape_info(name: str, engine: cf.Engine) -> None:
    """Pairs behind the eight sizes, in the order of the dimensions; sizes may be known."""
    src = cf.MemoryDesc((3, 17, 5, 4), "f32", name, padding=((0, 0), (3, 1), (1, 2), (2, 0)))
    unknown = cf.MemoryDesc((3, cf.RUNTIME_DIM, 5, 4), "f32", name, padding=((0, 0),) * 4)
    dst = cf.MemoryDesc((3, 17, 5, 4), "f32", name, padding=((1, 0), (0, 0), (0, 0), (0, 1)))
    known = cf.MemoryDesc((3, 17, 5, 4), "f32", name, padding=((1, 0), (0, 0), (0, 0), (9, 9)))
    padded = {"INPUT0": "fyx", "OUTPUT": "x"}
    source = cf.jit_constants({"INPUT0": unknown, "OUTPUT": known}, padded=padded)
    info = (3, 17, 1, 1, 1, 1, 5, 4, 3, 1, 1, 2, 2, 0, 99, 99, 1, 1, 1, 1, 99, 99, 0, 1)
    wanted = {
        f"{t}_GET_INDEX({i[0]}, {i[1]}, {i[2]}, {i[3]})": desc.offset(*i)
        for t, desc in (("INPUT0", src), ("OUTPUT", dst))
        for i in ((0, 0, 0, 0), (2, 16, 4, 3), (1, 14, 2, 1))
    }
    wanted |= {"INPUT0_PAD_BEFORE_SIZE_Y": 1, "OUTPUT_PAD_AFTER_SIZE_X": 1}
    assert _numbers(engine, source, list(wanted), info) == list(wanted.values())


@pytest.mark.parametrize(
    ("desc", "said"),
    [
        (cf.MemoryDesc((2, 3), "f32", "any"), "expected a format of buffers"),
        (cf.MemoryDesc((16, 3, 2, 2), "f32", "image_2d_weights_c1_b_fyx"), "a format of buffers"),
        (cf.MemoryDesc((2**20, 2**12), "u8"), "beyond the 32 bits"),
        (cf.MemoryDesc((cf.RUNTIME_DIM, 2**20, 2**12), "u8", "bfx"), "beyond the 32 bits"),
        (cf.MemoryDesc((cf.RUNTIME_DIM, 3), "f32", "oi"), "knows weights before execution"),
        (cf.MemoryDesc((2, 40, 3, 4), "f32", "aBcd16b").submemory((2, 16, 3, 4), (0, 16, 0, 0)),
         "strides of plain formats only"),
        (cf.MemoryDesc((2,) * 9, "f32"), "no tensors of 9 dimensions"),
    ],
)  # fmt: skip
def test_refusals(desc: cf.MemoryDesc, said: str) -> None:
    with pytest.raises(cf.Error, match=said):
        cf.jit_constants({"IN": desc})


def test_wrong_arguments() -> None:
    desc = cf.MemoryDesc((2, 3), "f32")
    with pytest.raises(cf.InvalidFormat, match="C identifier"):
        cf.jit_constants({"1": desc})
    with pytest.raises(cf.InvalidArgument, match="or 'all'"):
        cf.jit_constants({"IN": desc}, "bfyx")
    with pytest.raises(cf.InvalidArgument, match="tensors"):
        cf.jit_constants(desc)  # type: ignore[arg-type]
    with pytest.raises(cf.InvalidArgument, match="has b, f, got 'q'"):
        cf.jit_constants({"IN": cf.MemoryDesc((2, 3), "f32", "bf")}, padded={"IN": "q"})
    with pytest.raises(cf.InvalidArgument, match="'OUT' are no tensors here"):
        cf.jit_constants({"IN": desc}, padded={"OUT": "b"})
    assert "GET_FILTER_OS_IYX_OSV8_INDEX(" in cf.jit_constants({}, ["os_iyx_osv8"])


def test_every_row_of_the_table_has_its_constants() -> None:
    for row in ROWS:
        constants = cf.jit_constants({"IN": cf.MemoryDesc((2, 3), row, "bf")})
        assert constants
