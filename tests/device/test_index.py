"""Law 2 on a device: the index source of every listed format equals `offsets()`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import clformats as cf
from tests.support import dtype_for, hurting_dims

# One function for each structure and set of letters; one kernel for a group of them.
FORMATS = list({(f.structure, f.letters): f for f in cf.formats()}.values())
GROUP = 80
GROUPS = range(0, len(FORMATS), GROUP)


def _case(number: int, prefix: str, desc: cf.MemoryDesc) -> str:
    """The branch of the kernel that computes element i of a descriptor."""
    rest, indices = "i", []
    for n in reversed(desc.dims):
        indices.append(f"{rest} % {n}")
        rest = f"({rest} / {n})"
    return f"    case {number}: out[i] = {prefix}_INDEX({', '.join(reversed(indices))}); break;"


def _program(sources: list[str], cases: list[str]) -> str:
    return "\n".join([
        *sources,
        "__kernel void offsets(int which, __global long *out)",
        "{",
        "    const int i = get_global_id(0);",
        "    switch (which) {",
        *cases,
        "    }",
        "}",
    ])  # fmt: skip


def _compare(engine: cf.Engine, sources: list[str], descs: list[cf.MemoryDesc]) -> None:
    import pyopencl as cl

    cases = [_case(k, f"T{k}", desc) for k, desc in enumerate(descs)]
    kernel = engine.kernel(_program(sources, cases), "offsets")
    most = max(desc.nelems for desc in descs)
    out = np.empty(most, np.int64)
    buffer = cl.Buffer(engine.context, cl.mem_flags.READ_WRITE, out.nbytes)
    for k, desc in enumerate(descs):
        kernel(engine.queue, (desc.nelems,), (1,), np.int32(k), buffer)
        cl.enqueue_copy(engine.queue, out, buffer)
        want = desc.offsets().ravel()
        assert (out[: want.size] == want).all(), f"{desc}\n{sources[k]}"


def _with_sizes(descs: list[cf.MemoryDesc]) -> list[str]:
    """The source of each format alone, and the sizes that a user would define before."""
    sources = []
    for k, desc in enumerate(descs):
        sizes = zip(desc.format.letters, desc.dims, strict=True)
        defines = [f"#define T{k}_SIZE_{c.upper()} {n}" for c, n in sizes]
        sources.append("\n".join([*defines, cf.index_source(desc.format, f"T{k}")]))
    return sources


def _descs(start: int) -> Iterator[cf.MemoryDesc]:
    for fmt in FORMATS[start : start + GROUP]:
        yield cf.MemoryDesc(hurting_dims(fmt), dtype_for(fmt), fmt)


@pytest.mark.parametrize("start", GROUPS)
def test_of_descriptors(start: int, engine: cf.Engine) -> None:
    descs = list(_descs(start))
    _compare(engine, [cf.index_source(d, f"T{k}") for k, d in enumerate(descs)], descs)


@pytest.mark.parametrize("start", GROUPS)
def test_of_formats_with_sizes_from_the_user(start: int, engine: cf.Engine) -> None:
    descs = list(_descs(start))
    _compare(engine, _with_sizes(descs), descs)


def test_with_padding_and_strides(engine: cf.Engine) -> None:
    dims, pads = (2, 5, 3, 4), ((1, 0), (3, 2), (0, 1), (2, 2))
    descs = [
        cf.MemoryDesc(dims, "f32", "bfyx", padding=pads),
        cf.MemoryDesc(dims, "f32", "b_fs_yx_fsv16", padding=pads),
        cf.MemoryDesc(dims, "f32", strides=(100, 1, 33, 7)),
        cf.MemoryDesc(dims, "f32", strides=(0, 1, 33, 7)),
    ]
    _compare(engine, [cf.index_source(d, f"T{k}") for k, d in enumerate(descs)], descs)


def test_of_elements_that_share_bytes(engine: cf.Engine) -> None:
    """The offsets count nibbles and bits; with 4 bits some names mean another order."""
    descs = [
        *(cf.MemoryDesc((70, 5, 1, 1), "u4", f"os_iyx_osv{n}") for n in (16, 32, 64)),
        cf.MemoryDesc((70, 5), "s4", "os_is_yx_osv32_isv2"),
        cf.MemoryDesc((70, 5), "s4", "os_is_yx_osv64_isv2"),
        cf.MemoryDesc((2, 37, 3, 5), "u1", "b_fs_yx_32fp"),
        cf.MemoryDesc((35, 37, 3, 2), "u1", "os_is_yx_osv32_isv32p"),
    ]
    _compare(engine, [cf.index_source(d, f"T{k}") for k, d in enumerate(descs)], descs)
    _compare(engine, _with_sizes(descs), descs)


@pytest.mark.parametrize("x", [1, 4, 5])
def test_of_the_two_orders_of_odd_columns(x: int, engine: cf.Engine) -> None:
    names = [f"{g}iy_xs_os_xsv2_osv{n}__ao32" for g in ("", "g") for n in (8, 16)]
    descs = [cf.MemoryDesc((2, 40, 3, 2, x)[n[0] != "g" :], "f32", n) for n in names]
    _compare(engine, [cf.index_source(d, f"T{k}") for k, d in enumerate(descs)], descs)
    _compare(engine, _with_sizes(descs), descs)


def test_large_tensors_count_in_long() -> None:
    assert "long T_INDEX(long a, long b)" in cf.index_source(
        cf.MemoryDesc((2**20, 2**12), "u8"), "T"
    )


def test_a_format_alone_counts_as_asked() -> None:
    assert "int T_INDEX(int b," in cf.index_source("bfyx", "T")
    assert "long T_INDEX(long b," in cf.index_source("bfyx", "T", wide=True)
    with pytest.raises(cf.InvalidDescriptor, match="known at execution"):
        cf.index_source(cf.MemoryDesc((cf.RUNTIME_DIM, 3), "f32"))


def test_what_is_no_identifier_is_refused() -> None:
    for prefix in ("", "1A", "A-B", "A;", "A B"):
        with pytest.raises(cf.InvalidFormat, match="C identifier"):
            cf.index_source("bfyx", prefix)
    with pytest.raises(cf.InvalidFormat, match="no layout"):
        cf.index_source("any")
    with pytest.raises(cf.InvalidDescriptor, match="no layout"):
        cf.index_source(cf.MemoryDesc((2, 3), "f32", "any"))
