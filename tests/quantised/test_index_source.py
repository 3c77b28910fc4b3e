"""Index source of quantised tensors: functions that decode on load, whatever the layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import clformats as cf
from clformats.index.sizes import any_size, expr_of
from clformats.quantised import QuantisedDesc
from clformats.quantised.host import from_codes
from tests.quantised.test_table import ALL, described, random_bytes, random_codes, same

GEMV = """
kernel void gemv(global const uchar *w, global const float *x, global float *y)
{
    const uint n = get_global_id(0);
    float sum = 0;
    for (uint k = 0; k < W_COLUMNS; k += 8) {
        const float8 a = W_VALUES8(w, n, k), b = vload8(0, x + k);
        sum += dot(a.lo, b.lo) + dot(a.hi, b.hi);
    }
    y[n] = sum;
}
"""
EVERY = """
kernel void every(MEMORY, global float *values, global uint *codes SIZES)
{
    BEGIN
    const uint n = get_global_id(0), k = get_global_id(1) * 16;
    const uint at = n * W_COLUMNS + k, all = W_ROWS * W_COLUMNS;
    CALLS
}
"""
WAYS = [f"{what}{of}" for of in ("", "_IN") for what in ("VALUE", "VALUES4", "VALUES8", "VALUES16")]
WAYS += ["CODE", "CODES4", "CODES8", "CODES16"]


def calls(source: str) -> str:
    """Statements that call every function which a source has, each for 16 columns."""
    texts = []
    for number, way in enumerate(WAYS):
        if f" W_{way}(" in source:
            width = int(way.removesuffix("_IN")[6 if way.startswith("V") else 5 :] or 1)
            given = "w, n, k + j" + ", W_GROUP(w, n, k + j)" * way.endswith("_IN")
            lanes = width if width > 1 else ""
            out, kind = ("values", "float") if number < 8 else ("codes", "uint")
            store = f"vstore{width}({{}}, 0, &{{}})" if lanes else "{1} = {0}"
            call = store.format(f"convert_{kind}{lanes}(W_{way}({given}))",
                                f"{out}[{number % 8} * all + at + j]")  # fmt: skip
            texts.append(f"for (uint j = 0; j < 16; j += {width}) {call};")
    return "\n    ".join(texts)


def product(stream: cf.Stream, weights: cf.Memory, x: NDArray[np.float32]) -> NDArray[np.float32]:
    """What `GEMV` makes of weights and a vector."""
    rows = weights.desc.dims[0]
    y, vector = (cf.from_numpy(a, stream.engine) for a in (np.zeros(rows, np.float32), x))
    kernel = stream.engine.kernel(cf.index_source(weights.desc, "W") + GEMV, "gemv")
    stream.run(kernel, (rows,), None, weights, vector, y, reads=[weights, vector])
    return y.numpy()


@pytest.mark.parametrize(
    ("name", "layout"),
    [("q4_0", "gguf"), ("q4_0", "transposed"), ("u4g128", "gptq"), ("u4g128", "awq_gemm")],
)
def test_one_gemv_in_four_layouts(stream: cf.Stream, name: str, layout: str) -> None:
    desc = described((64, 256), name, layout)
    codes = random_codes(desc, 1)
    rng = np.random.default_rng(0)
    for scale in {"d", "s"} & codes.keys():
        some = (rng.random(codes[scale].shape) * 0.1).astype(np.float16)
        codes[scale] = some.view(np.uint16)
    raw = from_codes(codes, desc)
    weights = cf.Memory(desc, stream.engine)
    with weights.map("w") as flat:
        flat[:] = raw
    x = rng.standard_normal(256).astype(np.float32)
    expected = cf.unpack(raw, desc).astype(np.float64) @ x
    assert np.allclose(product(stream, weights, x), expected, rtol=1e-4, atol=1e-3)


def check(
    stream: cf.Stream, desc: Any, form: str | None = None, of: Any = None, *, apart: bool = False
) -> list[str]:
    """Call every function that the source of a tensor has; their names. ``of``: of another size."""
    raw = random_bytes(desc, 2)
    source = cf.index_source(of or desc, "W", sizes=form, buffers=apart)
    parts = desc.split(raw) if apart else {"": raw}
    members = ", ".join(f".{name} = w_{name}" for name in parts)
    text = EVERY.replace("CALLS", calls(source))
    text = text.replace("BEGIN", f"const W_buffers w = {{{members}}};" if apart else "")
    names = [f"w_{name}" if apart else "w" for name in parts]
    text = text.replace("MEMORY", ", ".join(f"global const uchar *{name}" for name in names))
    text = text.replace("SIZES", ", W_PARAMETERS" if form == "arguments" else "")
    sizes = dict(zip(("W_EXPERTS", "W_ROWS", "W_COLUMNS")[-desc.ndims :], desc.dims, strict=True))
    if form == "macros":
        source = "".join(f"#define {n} {size}\n" for n, size in sizes.items()) + source
    given = [np.uint32(n) for n in sizes.values()] if form == "arguments" else []
    memory = [cf.from_numpy(part, stream.engine) for part in parts.values()]
    values = cf.from_numpy(np.full((8, *desc.dims), 7e7, np.float32), stream.engine)
    codes = cf.from_numpy(np.full((4, *desc.dims), 7 << 20, np.int32), stream.engine)
    kernel = stream.engine.kernel(source + text, "every")
    grid = (desc.dims[0], desc.dims[1] // 16)
    stream.run(kernel, grid, None, *memory, values, codes, *given, reads=memory)
    field = next((f for f in desc.fields.values() if f.group == (1, 1)), None)
    wanted: Any = cf.unpack(raw, desc)
    known: Any = None
    if field:
        whole = cf.unpack(raw, desc, field=field.name)
        known = whole.astype(np.int64) & ((1 << field.bits) - 1)
    found = [way for way in WAYS if f" W_{way}(" in source]
    for way in found:
        at = WAYS.index(way)
        right = same(values.numpy()[at], wanted) if at < 8 else None
        assert right or np.array_equal(codes.numpy()[at - 8], known), (way, str(desc))
    assert set(WAYS[:4]) <= set(found), found
    return found


@pytest.mark.parametrize(
    ("name", "layout"),
    [("q4_K", "gguf"), ("u3g32", "gptq"), ("iq3_xxs", "gguf"), ("nvfp4_times", "swizzled"),
     ("mxfp4", "gguf"), ("mx_f6_e2m3", "plain")],  # fields called e, as experts are
)  # fmt: skip
def test_every_value_by_every_function(stream: cf.Stream, name: str, layout: str) -> None:
    found = check(stream, described((64, 512), name, layout))
    assert name.startswith("iq") or found == WAYS


@pytest.mark.parametrize(
    ("name", "layout", "least"),
    [("q4_0", "gguf", (1, 32)), ("q4_K", "transposed", (2, 256)), ("u4g128", "awq_gemm", (8, 128)),
     ("u3g32", "gptq", (8, 32)), ("bnb_nf4", "bitsandbytes", (1, 64))],
)  # fmt: skip
def test_one_source_serves_all_sizes(
    stream: cf.Stream, name: str, layout: str, least: tuple[int, int]
) -> None:
    """As arguments and as macros, fields together and apart: the same functions."""
    of = described(least, name, layout)
    for factors, form, apart in (((5, 2), "arguments", False), ((24, 4), "macros", True)):
        dims = (least[0] * factors[0], least[1] * factors[1])
        assert check(stream, described(dims, name, layout), form, of, apart=apart)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "layout"), ALL)
def test_every_layout_by_every_function(stream: cf.Stream, name: str, layout: str) -> None:
    desc = described((64, 512), name, layout)
    check(stream, desc)
    check(stream, desc, apart=True)
    check(stream, described((192, 1024), name, layout), "arguments", desc)
    check(stream, described((192, 1024), name, layout), "macros", desc, apart=True)


def test_experts_stand_in_front(stream: cf.Stream) -> None:
    text = "kernel void f(global const uchar *w, global float *y W)\n{ const uint e = "
    text += "get_global_id(0), n = get_global_id(1); y[e * 8 + n] = W_VALUES4(w, e, n, 60).w; }"
    desc = described((3, 8, 64), "q4_0", "trans4")
    raw = random_bytes(desc)
    weights = cf.from_numpy(raw, stream.engine)
    for sizes in (None, "arguments"):
        source = cf.index_source("q4_0:trans4:1x8x32" if sizes else desc, "W", sizes=sizes)
        y = cf.Memory(cf.MemoryDesc((3, 8), "f32"), stream.engine)
        own = text.replace("*y W", "*y, W_PARAMETERS" if sizes else "*y")
        kernel = stream.engine.kernel(source + own, "f")
        given = [np.uint32(n) for n in desc.dims] if sizes else []
        stream.run(kernel, (3, 8), None, weights, y, *given, reads=[weights])
        assert same(y.numpy(), cf.unpack(raw, desc)[:, :, 63].copy())


def test_two_sources_go_into_one_program(engine: cf.Engine) -> None:
    one = cf.index_source("q4_0:gguf:8x64", "A")
    two = cf.index_source("iq4_nl:flat:8x64", "B")
    body = "kernel void f(global const uchar *w, global float *y)\n"
    body += "{ *y = A_VALUE(w, 0, 1) + B_VALUE(w, 0, 1); }"
    engine.kernel(one + two + body, "f")


def test_what_the_source_does_not_take_is_refused() -> None:
    for others, why in (
        ({"sizes": "shape_info"}, "expected None or arguments, macros"),
        ({"vector": "f16"}, "functions for 1, 4, 8 and 16"),
        ({"padded": "k"}, "leave it out"),
        ({"sizes": 3}, "sizes"),
    ):
        with pytest.raises(cf.InvalidArgument, match=why):
            cf.index_source("q4_0:gguf:8x64", "A", **others)
    with pytest.raises(cf.InvalidArgument, match="has elements"):
        cf.index_source("q4_0:gguf:0x64", "A", sizes="arguments")
    with pytest.raises(cf.InvalidArgument, match="quantised"):
        cf.index_source("f32:ab:8x64", "A", buffers=True)


def numbers(desc: QuantisedDesc) -> list[int]:
    """Every number of a layout."""
    found = [n for b in desc.buffers for n in (b.start, b.nbytes)]
    for plane in desc.planes.values():
        found += [plane.first_bit, *(n for d in plane.digits for n in (d.size, d.stride))]
    return found


@pytest.mark.parametrize(("name", "layout"), ALL)
@pytest.mark.sampled(4)
def test_numbers_follow_from_sizes(name: str, layout: str) -> None:
    """As the expressions of a source have them, so other descriptors do, of any sizes."""
    records = described((64, 512), name, layout)
    of = any_size(records, "W")
    for dims in ((64, 512), (192, 512), (64, 1536), (128, 2048)):
        known = {"(ulong)W_ROWS": dims[0], "(ulong)W_COLUMNS": dims[1]}
        other = described(dims, name, layout)
        assert [expr_of(n).evaluate(known) for n in numbers(of)] == numbers(other), dims
