"""Index source of quantised tensors: a GEMV written once, run in four layouts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import clformats as cf
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
kernel void every(global const uchar *w, global float *one, global float *eight, global float *in)
{
    const uint n = get_global_id(0), k = get_global_id(1) * 8;
    for (uint j = 0; j < 8; j++)
        one[n * W_COLUMNS + k + j] = W_VALUE(w, n, k + j);
    vstore8(W_VALUES8(w, n, k), 0, eight + n * W_COLUMNS + k);
#ifdef W_GROUP_SIZE
    vstore8(W_VALUES8_IN(w, n, k, W_GROUP(w, n, k)), 0, in + n * W_COLUMNS + k);
#else
    vstore8(W_VALUES8(w, n, k), 0, in + n * W_COLUMNS + k);
#endif
}
"""


@pytest.mark.parametrize(
    ("name", "layout"),
    [("q4_0", "gguf"), ("q4_0", "transposed"), ("u4g128", "gptq"), ("u4g128", "awq_gemm")],
)
def test_one_gemv_in_four_layouts(stream: cf.Stream, name: str, layout: str) -> None:
    desc = described((64, 256), name, layout)
    codes = random_codes(desc, 1)
    scales = "d" if name == "q4_0" else "s"
    rng = np.random.default_rng(0)
    some = (rng.random(codes[scales].shape) * 0.1).astype(np.float16)
    codes[scales] = some.view(np.uint16)
    raw = from_codes(codes, desc)
    weights = cf.Memory(desc, stream.engine)
    with weights.map("w") as flat:
        flat[:] = raw
    x = cf.from_numpy(rng.standard_normal(256).astype(np.float32), stream.engine)
    y = cf.from_numpy(np.zeros(64, np.float32), stream.engine)
    kernel = stream.engine.kernel(cf.index_source(desc, "W") + GEMV, "gemv")
    stream.run(kernel, (64,), None, weights, x, y, reads=[weights, x])
    expected = cf.unpack(raw, desc).astype(np.float64) @ x.numpy()
    assert np.allclose(y.numpy(), expected, rtol=1e-4, atol=1e-3)


def check(stream: cf.Stream, name: str, layout: str) -> None:
    desc: Any = described((64, 512), name, layout)
    raw = random_bytes(desc, 2)
    weights = cf.from_numpy(raw, stream.engine)
    out = [cf.from_numpy(np.zeros(desc.dims, np.float32), stream.engine) for _ in range(3)]
    kernel = stream.engine.kernel(cf.index_source(desc, "W") + EVERY, "every")
    stream.run(kernel, (64, 64), None, weights, *out, reads=[weights])
    expected: NDArray[np.float32] = cf.unpack(raw, desc)
    for way, found in zip(("VALUE", "VALUES8", "VALUES8_IN"), out, strict=True):
        assert same(found.numpy(), expected), way


@pytest.mark.parametrize(
    ("name", "layout"),
    [("q4_K", "gguf"), ("u3g32", "gptq"), ("iq3_xxs", "gguf"), ("nvfp4_times", "swizzled"),
     ("mxfp4", "gguf"), ("mx_f6_e2m3", "plain")],  # fields called e, as experts are
)  # fmt: skip
def test_every_value_by_every_function(stream: cf.Stream, name: str, layout: str) -> None:
    check(stream, name, layout)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "layout"), ALL)
def test_every_layout_by_every_function(stream: cf.Stream, name: str, layout: str) -> None:
    check(stream, name, layout)


def test_two_sources_go_into_one_program(engine: cf.Engine) -> None:
    one = cf.index_source("q4_0:gguf:8x64", "A")
    two = cf.index_source("iq4_nl:flat:8x64", "B")
    body = "kernel void f(global const uchar *w, global float *y)\n"
    body += "{ *y = A_VALUE(w, 0, 1) + B_VALUE(w, 0, 1); }"
    engine.kernel(one + two + body, "f")


def test_arguments_that_sizes_of_formats_need_are_refused() -> None:
    with pytest.raises(cf.InvalidArgument, match="sizes"):
        cf.index_source("q4_0:gguf:8x64", "A", sizes="macros")
