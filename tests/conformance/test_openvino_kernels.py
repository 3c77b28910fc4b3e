"""ClDNN's own kernels compile against our constants and index macros instead of Intel's, and run.

The sources are read from the installed wheel of openvino when the test runs; none of them is kept
here. Beside what a kernel asks about its tensors it wants two things more: what every kernel of
clDNN's takes from Intel's common header (`PLUMBING`), and numbers of its own operation (`KERNELS`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import clformats as cf
from tests import openvino_support as openvino

pytestmark = pytest.mark.skipif(bool(openvino.unavailable()), reason=openvino.unavailable())

PLUMBING = """
#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define KERNEL(name) __kernel void name
#define FUNC(name) _##name
#define FUNC_CALL(name) _##name
#define MAKE_VECTOR_TYPE(type, n) CAT(type, n)
#define unroll_for for
#define REQD_SUB_GROUP_SIZE(n)
#define HAS_FUSED_OPS 0
#define HAS_FUSED_OPS_DECLS 0
#define ACTIVATION(value, parameters) (value)
#define ACTIVATION_TYPED(type, value, parameters) (value)
#define ACTIVATION_PARAMS
#define ACTIVATION_PARAMS_TYPED
#define ACCUMULATOR_TYPE float
#define ACCUMULATOR_VAL_ONE 1.f
#define TO_ACCUMULATOR_TYPE(value) convert_float(value)
#define UNIT_TYPE float
"""


def _ones(*names: str) -> dict[str, str]:
    return dict.fromkeys(names, "1")


def _of(what: str, of: str) -> dict[str, str]:
    return _ones(*(f"{what}_{c}" for c in of.split()))


FILTERS = _ones("INPUT0_IFM_NUM", "INPUT0_OFM_PITCH", "INPUT0_IFM_PITCH", "OUTPUT_OFM_NUM")
SPATIAL = "FEATURE X Y Z W"
SLICES = (
    {"START_BUFFER": "", "STEP_BUFFER": "", "AXES_BUFFER": "", "SLICE_SCATTER_VEC_SIZE": "1"}
    | {f"{what}_VAL{k}": str(k) for what in ("START", "AXES") for k in range(4)}
    | _of("STEP", "VAL0 VAL1 VAL2 VAL3")
    | _ones("AXES_BUFFER_SIZE")
)
VECTORS = {
    "DECODE_INPUT0_COMPUTE_VECTOR_TYPE(v, n)": "(v)",
    "TO_OUTPUT_VECTOR_TYPE(v, n)": "(v)",
}
ELEMENTWISE = VECTORS | {
    "INPUTS_DECLS": "const __global INPUT0_TYPE *input0, const __global INPUT1_TYPE *input1,",
    "VLOAD_DECLS": "const float8 a = vload8(global_id, input0), b = vload8(global_id, input1);",
    "DO_ELTWISE": "res = a + b;",
}
GLU = _ones("GLU_STRIDE", "SWISH_BETA", "UP_ADD_VAL")

# Kernels that move data or work element by element, and what they want beside their tensors.
KERNELS: dict[str, dict[str, str]] = {
    "activation": VECTORS
    | {"NUM_COLS_WI": "4", "ACTIVATION_KERNEL(v, p)": "fmax(v, 0.f)"}
    | {"ACTIVATION_PARAMS_KERNEL": ""},
    "batch_to_space_ref": _of("BLOCK_SHAPE", SPATIAL) | _of("CROPS_BEGIN", SPATIAL),
    "beam_table_update": {},
    "bucketize_ref": {},
    "concatenation_gpu_ref": _ones("CONCAT_X"),
    "convert_color_ref": {},
    "depth_to_space_ref": {"BLOCK_SIZE": "2"},
    "eltwise_fs_b_yx_fsv32": ELEMENTWISE,
    "eltwise_gpu_vload8": ELEMENTWISE,
    "embedding_bag_ref": {},
    "extract_image_patches_ref": _of("SIZE", "COLS ROWS")
    | _of("STRIDE", "COLS ROWS")
    | _of("RATES", "COLS ROWS"),
    "eye_ref": {"DIAGONAL": "0"},
    "gather_2d_ref": {},
    "gather_elements_ref": {
        "LOAD_AND_HANDLE_NEGATIVE_INDICES": "const int axis = indices[out_idx]",
        "DATA_INDEX_ORDER": "b,axis,y,x",
    },
    "gather_tree_gpu_ref": {},
    "one_hot_ref": _of("ONE_HOT", "AXIS LIMIT")
    | _ones("ON_VALUE", "OFF_VALUE", "INDICES_NORMALIZE_MODE"),
    "permute_ref": {"IN_IDX": "INPUT0_GET_INDEX(b, f, y, x)"}
    | {"OUT_IDX": "OUTPUT_GET_INDEX(b, f, y, x)"},
    "permute_xy_swap": _ones("WG_DIM", "TILE_SIZE", "ELEMS_PER_DIM"),
    "range_ref": {},
    "reorder_data_fsv": {"IN_FSV": "16", "OUT_FSV": "32"}
    | _ones("IN_FEATURE_SLICE_NUM", "OUT_FEATURE_SLICE_NUM"),
    "reorder_from_winograd_2x3_s1": {},
    "reorder_to_winograd_2x3_s1": _of("INPUT0_OFFSET", "SIZE_X SIZE_Y"),
    "reorder_weights_winograd_2x3_s1": FILTERS,
    "reorder_weights_winograd_6x3_s1": FILTERS,
    "reorg_yolo_ref": {"STRIDE": "2"},
    "reshape_ref": {},
    "reverse_ref": {},
    "reverse_sequence_ref": {"BATCH_AXIS": "0", "SEQ_AXIS": "1"},
    "roll_ref": {
        "SHIFT_BATCH_NUM": "1", "SHIFT_FEATURE_NUM": "3", "SHIFT_SIZE_Y": "0", "SHIFT_SIZE_X": "2"
    },
    "scatter_nd_update_copy": {},
    "scatter_nd_update_opt": _of("INDICES", "RANK LAST_DIM"),
    "scatter_nd_update_ref": _of("INDICES", "RANK LAST_DIM")
    | _ones("INPUT0_BLOCK_ND", "INPUT1_BLOCK_ND", "INPUT2_BLOCK_ND"),
    "select": {
        "INPUTS_DECLS": "const __global INPUT0_TYPE *input0, const __global INPUT1_TYPE *input1, "
        "const __global INPUT2_TYPE *input2,",
        "MASK": "convert_int(INPUT_0)",
    },
    "shuffle_channels_ref": {"AXIS": "1", "GROUP_SIZE": "8", "GROUPS_NUMBER": "2"},
    "slice_scatter_opt": SLICES,
    "slice_scatter_ref": SLICES,
    "space_to_batch_ref": _of("BLOCK_SHAPE", SPATIAL) | _of("PADS_BEGIN", SPATIAL),
    "space_to_depth_ref": {"BLOCK_SIZE": "2"},
    "sparse_fill_empty_rows_ref": {},
    "swiglu_gpu_opt": GLU | _ones("LWS0", "LWS1", "LWS2"),
    "swiglu_gpu_ref": GLU | _of("GWS", "YX FEATURE BATCH"),
    "tile_ref": {},
}  # fmt: skip
WANTED = 30


def _source(name: str, descs: dict[str, cf.MemoryDesc]) -> str:
    defines = [f"#define {key} {value}" for key, value in KERNELS[name].items()]
    return "\n".join([PLUMBING, *defines, cf.jit_constants(descs), openvino.kernels()[name]])


def _here() -> list[str]:
    return (
        [name for name in KERNELS if name in openvino.kernels()]
        if not openvino.unavailable()
        else []
    )


def test_the_wheel_has_enough_of_them() -> None:
    assert len(_here()) >= WANTED


FORMATS = [("bfyx", "bfyx"), ("b_fs_yx_fsv16", "b_fs_yx_fsv16")]


@pytest.mark.parametrize(("src", "dst"), FORMATS)
def test_they_compile(src: str, dst: str, engine: cf.Engine) -> None:
    import pyopencl as cl

    dims = (2, 16, 6, 8)
    inputs = {f"INPUT{k}": cf.MemoryDesc(dims, "f32", src) for k in range(4)}
    outputs = {f"OUTPUT{k or ''}": cf.MemoryDesc(dims, "f32", dst) for k in range(3)}
    failed = {}
    for name in _here():
        program = cl.Program(engine.context, _source(name, inputs | outputs))
        try:
            program.build(["-cl-opt-disable"], devices=[engine.device])
        except cl.RuntimeError as error:
            failed[name] = str(error)[-600:]
    assert not failed
    assert len(_here()) - len(failed) >= WANTED


def _run(
    name: str, src: cf.MemoryDesc, dst: cf.MemoryDesc, engine: cf.Engine, threads: tuple[int, ...]
) -> tuple[Any, Any]:
    """The values before and after a kernel that makes one tensor of another."""
    array = np.random.default_rng(0).random(src.dims, np.float32)
    source, target = cf.Memory(src, engine), cf.Memory(dst, engine)
    with source.map("w") as flat:
        flat[:] = cf.pack(array, src)
    kernel = engine.kernel(_source(name, {"INPUT0": src, "OUTPUT": dst}), name)
    arguments: list[Any] = [source.buffer, target.buffer]
    kernel(engine.queue, threads, None, *arguments)
    engine.queue.finish()
    return array, cf.to_numpy(target)


PADDED = ((0, 0), (0, 0), (1, 2), (3, 0))
PAIRS = [
    ("bfyx", None, "byxf", None),
    ("b_fs_yx_fsv16", None, "bfyx", PADDED),
    ("bfyx", PADDED, "bs_fs_yx_bsv16_fsv16", None),
    ("byxf", None, "b_fs_yx_fsv4", PADDED),
    ("fs_b_yx_fsv32", None, "yxfb", None),
]


@pytest.mark.parametrize(("src", "before", "dst", "after"), PAIRS)
def test_they_move_what_they_should(
    src: str, before: Any, dst: str, after: Any, engine: cf.Engine
) -> None:
    dims = (2, 19, 5, 7)
    source = cf.MemoryDesc(dims, "f32", src, padding=before)
    target = cf.MemoryDesc(dims, "f32", dst, padding=after)
    if not {"permute_ref", "roll_ref"} <= set(_here()):
        pytest.skip("this wheel of openvino keeps permute_ref or roll_ref otherwise")
    array, got = _run("permute_ref", source, target, engine, (7, 5, 38))
    assert (got == array).all()
    array, got = _run("roll_ref", source, target, engine, (7, 5, 38))
    assert (got == np.roll(array, (1, 3, 2), (0, 1, 3))).all()
