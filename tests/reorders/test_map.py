"""Element-wise expressions over tensors of any formats equal numpy, padding zero."""

from __future__ import annotations

import random
import re
from typing import Any

import numpy as np
import pytest

import clformats as cf
from tests.device_support import check_bytes, fill, guarded, holding, memory_of
from tests.strategies import BY_RANK
from tests.support import DTYPES, dirty_pack, random_values
from tests.tiers import tiered

D = cf.MemoryDesc
DIMS = (2, 17, 5, 33)
EARLY = re.compile(r"const \w+ v0 = (.*\? )?(masked_\d+\()?computed_\d+\(")
"""What is computed as it is loaded."""


def check(text: str, stream: cf.Stream, seed: int = 0, **descs: Any) -> cf.Map:
    """Run a map with garbage in all paddings and compare every byte; the result is ``z``."""
    rng = np.random.default_rng(seed)
    engine = stream.engine
    arrays = {n: random_values(rng, d.dims, d.dtype.name) for n, d in descs.items()}
    memories = {
        n: memory_of(dirty_pack(rng, arrays[n], d), d, engine) for n, d in descs.items() if n != "z"
    }
    memories["z"] = guarded(descs["z"], engine)
    fill(memories["z"], arrays["z"])
    mapped = cf.Map(text, engine, **descs)
    mapped(stream, **memories).wait()
    dtype = "f64" if any(d.dtype.name == "f64" for d in descs.values()) else "f32"
    real = cf.tensors.dtypes.as_dtype(dtype)
    env = {n: cf.tensors.dtypes.convert(a, descs[n].dtype, real) for n, a in arrays.items()}
    formula = cf.values.formula.parse(text.split("=", 1)[1], tuple(descs))
    values = np.broadcast_to(formula.evaluate(env, real.numpy), descs["z"].dims)
    want = holding(cf.tensors.dtypes.convert(values, real, descs["z"].dtype), descs["z"])
    check_bytes(memories["z"], want, mapped.plan)
    return mapped


def test_three_formats(stream: cf.Stream) -> None:
    for x, y, z in [
        ("bfyx", "b_fs_yx_fsv16", "byxf"),
        ("bfyx", "bfyx", "bfyx"),
        ("bfyx", "byxf", "b_fs_yx_fsv32"),
        ("b_fs_yx_fsv16", "b_fs_yx_fsv16", "b_fs_yx_fsv16"),
        ("fyxb", "bs_fs_yx_bsv16_fsv16", "b_fs_yx_fsv4"),
    ]:
        check("z = x + 2 * y", stream, x=D(DIMS, "f32", x), y=D(DIMS, "f16", y),
              z=D(DIMS, "f32", z))  # fmt: skip


@pytest.mark.usefixtures("plans_for_cpus")
@pytest.mark.parametrize(("x", "y", "z", "first"), [
    ("bfyx", "bfyx", "b_fs_yx_fsv16", True),
    ("bfyx", "bfyx", "byxf", True),
    ("b_fs_yx_fsv16", "b_fs_yx_fsv16", "bfyx", True),
    ("bfyx", "byxf", "b_fs_yx_fsv16", False),
    ("bfyx", "b_fs_yx_fsv16", "b_fs_yx_fsv16", False),
])  # fmt: skip
def test_what_is_read_alike_is_computed_before_it_is_moved(
    x: str, y: str, z: str, *, first: bool, stream: cf.Stream
) -> None:
    """Elsewhere each lane would be loaded by itself. Padding stays 0, of which ``z`` would be 1."""
    for dims in ((2, 32, 8, 16), (2, 17, 5, 33), (1, 3, 17, 19), (17, 48, 7, 7)):
        for types in (("f32", "f32", "f32"), ("s8", "s8", "s8"), ("u8", "f16", "bf16")):
            formats = zip("xyz", types, (x, y, z), strict=True)
            descs: dict[str, Any] = {n: D(dims, t, f) for n, t, f in formats}
            found = check("z = x + y + 1", stream, **descs)
            early = EARLY.search(found.source)
            assert first or not early
            assert early or not first or min(dims) < 4


@pytest.mark.usefixtures("plans_for_cpus")
def test_values_that_lanes_of_stores_share_are_loaded_once(stream: cf.Stream) -> None:
    """Four inputs of four outputs have four scales: loads, which overlap, would compute more."""
    dims = (64, 64, 3, 3)
    found = check("z = x * y", stream, x=D(dims, "s8", "oiyx"), y=D((64, 1, 1, 1), "f32", "oiyx"),
                  z=D(dims, "s8", "OIhw4i16o4i"))  # fmt: skip
    assert not EARLY.search(found.source)


@pytest.mark.usefixtures("plans_for_cpus")
def test_repeated_values_are_computed_for_each_element(stream: cf.Stream) -> None:
    """The source is read once for all rows, its neighbour for each."""
    for dims in ((4, 32, 8, 16), (3, 17, 5, 33)):
        once = (1, *dims[1:])
        check("z = x + y", stream, x=D(once, "f32", "bfyx"), y=D(dims, "f32", "bfyx"),
              z=D(dims, "f32", "b_fs_yx_fsv16"))  # fmt: skip


@pytest.mark.parametrize("seed", tiered(range(12), range(5)))
def test_random_formats(seed: int, stream: cf.Stream) -> None:
    rng = random.Random(seed)  # noqa: S311  # formats, not secrets
    dims = tuple(rng.sample([1, 2, 3, 5, 15, 16, 17], 4))
    descs = {n: D(dims, rng.choice((*DTYPES, "f64")), rng.choice(BY_RANK[4])) for n in "xyz"}
    text = rng.choice(["z = x - y", "z = x > y ? x : y + 1", "z = z + x * y", "z = fabs(x) + y"])
    check(text, stream, seed, **descs)


def test_what_opencl_leaves_open_is_the_same_everywhere(stream: cf.Stream) -> None:
    """A driver may fuse ``mad``, and ``step`` of NaN is 0 on Intel's runtime."""
    text = "z = mad(x, y, z) + step((x - x) / (y - y), 1)"
    check(text, stream, x=D(DIMS, "f32", "bfyx"), y=D(DIMS, "f32", "byxf"), z=D(DIMS, "f32"))


def test_padding_stays_zero(stream: cf.Stream) -> None:
    pads = ((0, 1), (1, 2), (2, 1), (0, 3))
    for name in ("bfyx", "b_fs_yx_fsv16"):
        check("z = x + y + 1", stream, x=D(DIMS, "f32", "byxf"), y=D(DIMS, "s8", "bfyx"),
              z=D(DIMS, "f32", name, padding=pads))  # fmt: skip


def test_dimensions_of_size_one_are_repeated(stream: cf.Stream) -> None:
    """A bias for each feature, in several formats; and neither side has all dims."""
    for name in ("bfyx", "byxf", "b_fs_yx_fsv16"):
        check("z = max(x + b, 0.f)", stream, x=D(DIMS, "f32", "bfyx"),
              b=D((1, 17, 1, 1), "f32", name), z=D(DIMS, "f32", "b_fs_yx_fsv16"))  # fmt: skip
        check("z = x * y", stream, x=D((2, 1, 5, 1), "f32", name, padding=((1, 1),) * 4),
              y=D((1, 17, 1, 33), "f32", name), z=D(DIMS, "f32", "byxf"))  # fmt: skip


def test_names_may_be_words_of_the_language(stream: cf.Stream) -> None:
    """Variables are the user's: neither OpenCL C nor the kernel may take them for theirs."""
    d = D((3, 5), "f32")
    names = ["float", "src", "max", "r0", "old", "x0", "at"]
    rng = np.random.default_rng(0)
    arrays = [random_values(rng, d.dims, "f32") for _ in names]
    memories = {n: cf.from_numpy(a, stream.engine) for n, a in zip(names, arrays, strict=True)}
    result = cf.Memory(d, stream.engine)
    descs: dict[str, Any] = dict.fromkeys([*names, "dst"], d)
    mapped = cf.Map(f"dst = {' + '.join(names)}", stream.engine, **descs)
    mapped(stream, dst=result, **memories).wait()
    want = arrays[0]
    for array in arrays[1:]:
        want = want + array
    np.testing.assert_array_equal(cf.to_numpy(result), want)


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("x + y", cf.InvalidExpression, "expected an assignment"),
        ("z == x", cf.InvalidExpression, "expected an assignment"),
        ("w = x + y", cf.InvalidExpression, "descriptor, w="),
        ("z = x", cf.InvalidExpression, "does not use y"),
        ("z = x + y + w", cf.InvalidExpression, "unknown variable 'w'"),
        ("z = x; y", cf.InvalidExpression, "cannot read"),
        ("z = printf(x, y)", cf.InvalidExpression, "'printf'"),
        (3, cf.InvalidExpression, "expected an assignment"),
    ],
)  # fmt: skip
def test_bad_texts(text: Any, error: type[Exception], said: str, engine: cf.Engine) -> None:
    d = D((2, 3), "f32")
    with pytest.raises(error, match=said):
        cf.Map(text, engine, x=d, y=d, z=d)


def test_bad_tensors(stream: cf.Stream) -> None:
    engine, d = stream.engine, D((2, 3), "f32")
    with pytest.raises(cf.InvalidDescriptor, match="x does not fit the result"):
        cf.Map("z = x + y", engine, x=D((3, 2), "f32"), y=d, z=d)
    with pytest.raises(cf.InvalidExpression, match="no tensor but its own"):
        cf.Map("z = z + 1", engine, z=d)
    with pytest.raises(cf.InvalidDescriptor, match="make a map for each shape"):
        cf.Map("z = x + y", engine, x=d, y=d, z=D((cf.RUNTIME_DIM, 3), "f32"))
    with pytest.raises(cf.InvalidExpression, match="rename the tensor"):
        cf.Map("z = stream + 1", engine, stream=d, z=d)
    mapped = cf.Map("z = x + y", engine, x=d, y=d, z=d)
    m, n = cf.Memory(d, engine), cf.Memory(d, engine)
    with pytest.raises(cf.InvalidDescriptor, match="got memories for x, z"):
        mapped(stream, x=m, z=n)
    with pytest.raises(cf.InvalidDescriptor, match="the y is f32:ab:2x4"):
        mapped(stream, x=m, y=cf.Memory(D((2, 4), "f32"), engine), z=n)
    with pytest.raises(cf.InvalidDescriptor, match="share bytes"):
        mapped(stream, x=m, y=n, z=n)
    mapped(stream, x=m, y=m, z=n).wait()
    with m.map("r"), pytest.raises(cf.MappedError):
        mapped(stream, x=m, y=m, z=n)
