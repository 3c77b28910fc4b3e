"""Winograd transforms in numpy: the convolution identity, the order of rounding, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import clformats as cf
from clformats.formats.winograd import BACK, F23_DATA, F23_OUTPUTS, FORWARD, Matrix, method
from clformats.problems.computation import from_attr
from tests.support import random_values

D = cf.MemoryDesc
CLDNN = ("winograd_2x3_s1_weights", "winograd_2x3_s1_fused_weights",
         "winograd_6x3_s1_fused_weights")  # fmt: skip
DNNL = ("wino_wei_aaOIoi", "wino_wei_aaOio", "wino_wei_aaOBiOo_16i4O16o",
        "wino_wei_OBaaIBOIio_4O2I16i16o")  # fmt: skip
DATA = "winograd_2x3_s1_data"


def to(array: Any, src: D, name: str, dtype: str | None = None) -> tuple[Any, D]:
    """The transformed array and its descriptor."""
    dst = cf.winograd(src, name, dtype)
    return cf.transform(array, src, dst), dst


def whole_numbers(dims: tuple[int, ...], seed: int, step: int = 1) -> Any:
    return np.random.default_rng(seed).integers(-9, 9, dims).astype(np.float32) * step


def convolution(data: Any, weights: Any) -> Any:
    """Of padded data, stride 1."""
    windows = np.lib.stride_tricks.sliding_window_view(data, weights.shape[2:], (2, 3))
    return np.einsum("bfyxhw,ofhw->boyx", windows, weights)


# --- the purpose ----------------------------------------------------------------------------------


@pytest.mark.parametrize("x", [1, 2, 5, 8])
@pytest.mark.parametrize("pad", [((1, 1), (1, 1)), ((0, 2), (2, 1))])
def test_products_of_transformed_values_are_a_convolution(x: int, pad: Any) -> None:
    """F(2,3) along x as clDNN runs it: transform both, multiply, add up, transform the outputs."""
    padding = ((0, 0), (0, 0), *pad)
    src = D((2, 3, 5, x), "f32", "bfyx", padding=padding)
    taps = D((7, 3, 3, 3), "f32", "oiyx")
    data, weights = whole_numbers(src.dims, 1), whole_numbers(taps.dims, 2, step=2)
    d, products = to(data, src, DATA)
    w, _ = to(weights, taps, "winograd_2x3_s1_weights")
    rows = products.dims[2] - 2
    m = sum(
        np.einsum("bfyx,ofx->boyx", d[:, :, r : r + rows], np.tile(w[:, :, r], d.shape[3] // 4))
        for r in range(3)
    )
    want = convolution(np.pad(data, padding), weights)
    assert m.shape[3] == -(-want.shape[3] // 2) * 4
    done = D(m.shape, "f32", DATA)
    out = cf.transform(m, done, D(want.shape, "f32", "bfyx"))
    assert (out == want).all()
    assert cf.winograd(done, "bfyx").dims == (*want.shape[:3], m.shape[3] // 2)


@pytest.mark.parametrize("name", [*CLDNN, *DNNL])
def test_each_weights_matrix_belongs_to_a_convolution(name: str) -> None:
    """Toom-Cook: with outputs from powers of the points there is a B that makes it F(m, 3)."""
    g = np.array(_f32_rows(FORWARD[method(name)].inner))
    alpha = len(g)
    points = [row[1] / row[0] for row in g[1:-1]]
    m = alpha - 2
    outputs = np.array([[k == 0, *(p**k for p in points), k == m - 1] for k in range(m)], float)
    system = np.einsum("kj,jt->ktj", outputs, g).reshape(-1, alpha)
    wanted = np.array(
        [[n == k + t for n in range(alpha)] for k in range(m) for t in range(3)], float
    )
    b, *_ = np.linalg.lstsq(system, wanted, rcond=None)
    assert np.abs(system @ b - wanted).max() < 2e-6
    if alpha == 4:
        signs = np.array([1, 1, 1, -1])[:, None]  # the last row, and the outputs of it, are negated
        assert np.abs(b - signs * F23_DATA.rows).max() < 1e-12
        assert (np.array(F23_OUTPUTS.rows) == outputs * signs.T).all()


def _f32_rows(matrix: Matrix) -> list[list[float]]:
    scales = matrix.scales or (1.0,) * len(matrix.rows)
    return [
        [float(np.float32(c)) * s for c in row]
        for row, s in zip(matrix.rows, scales, strict=True)
    ]  # fmt: skip


# --- the values -----------------------------------------------------------------------------------


def test_known_answers_of_cldnn() -> None:
    weights = D((1, 1, 3, 3), "f32", "oiyx")
    w = np.array([[[[2, 4, 8], [1, 0, 0], [0, 0, 3]]]], np.float32)
    assert to(w, weights, CLDNN[0])[0].tolist() == [[
        [[2, 7, 3, 8], [1, 0.5, 0.5, 0], [0, 1.5, 1.5, 3]],
    ]]  # fmt: skip
    assert to(w, weights, CLDNN[1])[0].tolist() == [[
        [[2, 1.5, 0.5, 0], [4, 2, 2, 0], [8, 5.5, 5.5, 3]],
    ]]  # fmt: skip
    six = to(w, weights, CLDNN[2])[0][0, 0]
    f = np.float32
    assert six.shape == (3, 8)
    assert six[0].tolist() == [
        2,
        f(-20 / 90) * f(2) - f(20 / 90) * f(1),
        f(-20 / 90) * f(2) + f(20 / 90) * f(1),
        f(1 / 90) * f(2) + f(2 / 90) * f(1),
        f(1 / 90) * f(2) - f(2 / 90) * f(1),
        f(64 / 90) * f(2) + f(32 / 90) * f(1),
        f(64 / 90) * f(2) - f(32 / 90) * f(1),
        0,
    ]
    data = D((1, 1, 1, 6), "f32", "bfyx")
    d, desc = to(np.array([[[[1, 2, 3, 4, 5, 7]]]], np.float32), data, DATA)
    assert d.tolist() == [[[[-2, 5, 1, -2, -2, 9, 1, -3]]]]
    assert desc.dims == (1, 1, 1, 8)


@pytest.mark.parametrize("name", DNNL)
def test_two_dimensions_are_rounded_step_by_step_along_w_then_h(name: str) -> None:
    """DNNL's order, written out as loops over scalars; to the bit, signs of zero included."""
    matrix = np.array(FORWARD[method(name)].inner.rows, np.float32)
    src = D((3, 2, 3, 3), "f32", "oihw")
    array = random_values(np.random.default_rng(5), src.dims, "f32")
    array[0, 0], array[1, 1, 0] = -0.0, np.float32(1e-40)
    got, dst = to(array, src, name)
    assert dst.dims == (3, 2, len(matrix), len(matrix))
    for o, i, u, v in np.ndindex(dst.dims):
        total = np.float32(0)
        for h in range(3):
            row = np.float32(0)
            for w in range(3):
                row += array[o, i, h, w] * matrix[v, w]
            total += matrix[u, h] * row
        assert got[o, i, u, v].tobytes() == total.tobytes(), (o, i, u, v)


def test_int8_values_are_scaled_before_they_are_rounded() -> None:
    src = D((2, 3, 3, 3), "s8", "oihw")
    array = random_values(np.random.default_rng(1), src.dims, "s8")
    real, _ = to(array, src, DNNL[0], "f32")
    got, dst = to(array, src, DNNL[0], "s8")
    assert got.dtype == np.int8
    assert (got == np.clip(np.rint(real * np.float32(4 / 9)), -128, 127)).all()
    other, _ = to(array, src, DNNL[1], "s8")
    assert (other == np.clip(np.rint(real), -128, 127)).all()
    assert dst.sums
    assert D(dst.dims, "u8", dst.format).sums == ()


@pytest.mark.parametrize("name", [DATA, *CLDNN, *DNNL])
def test_what_comes_back(name: str) -> None:
    """Of F(2,3) the weights, exactly where no sum was rounded; of the others nothing."""
    if name == DATA:
        src = D((2, 3, 5, 9), "f32", "bfyx")
        assert cf.winograd(cf.winograd(src, DATA), "byxf").dims == (2, 3, 5, 8)
        return
    src = D((5, 4, 3, 3), "f32", "hwio")
    array = whole_numbers(src.dims, 3)
    got, dst = to(array, src, name)
    if method(name) not in BACK:
        with pytest.raises(cf.Unsupported, match="NO_INVERSE"):
            cf.winograd(dst, "oihw")
        return
    assert cf.winograd(dst, "oihw") == D(src.dims, "f32", "oihw")
    assert (cf.transform(got, dst, src) == array).all()


def test_quantised_weights_do_not_come_back() -> None:
    dst = cf.winograd(D((5, 4, 3, 3), "f32", "oihw"), DNNL[0], "s8")
    with pytest.raises(cf.Unsupported, match="NO_INVERSE"):
        cf.make_plan(dst, D((5, 4, 3, 3), "f32", "oihw"))


@pytest.mark.parametrize("pair", [("f16", "f16"), ("bf16", "f32"), ("f64", "s8"), ("u8", "f16")])
def test_other_types_pass_through_f32(pair: tuple[str, str]) -> None:
    src = D((3, 2, 3, 3), pair[0], "oihw")
    array = random_values(np.random.default_rng(9), src.dims, pair[0])
    floats = cf.tensors.dtypes.convert(array, src.dtype, cf.tensors.dtypes.as_dtype("f32"))
    want, mid = to(floats, D(src.dims, "f32", "oihw"), CLDNN[1])
    got, dst = to(array, src, CLDNN[1], pair[1])
    assert got.tobytes() == cf.tensors.dtypes.convert(want, mid.dtype, dst.dtype).tobytes()


# --- sums behind the elements ---------------------------------------------------------------------


@pytest.mark.parametrize("channels", [(27, 29), (1, 1), (17, 3)])
def test_sums_follow_int8_weights(channels: tuple[int, int]) -> None:
    """Law 3 for the whole buffer, against loops; missing channels count as zero."""
    src = D((*channels, 3, 3), "f32", "oihw")
    dst = cf.winograd(src, "wino_wei_aaOIoi", "s8", padded=(32, 32))
    assert (dst.nbytes, dst.padded_dims) == (16 * 32 * 32 + 16 * 32 * 4, (32, 32, 4, 4))
    array = random_values(np.random.default_rng(2), src.dims, "f32") / 4
    q = cf.transform(array, src, dst)
    flat = cf.pack(q, dst)
    assert (cf.unpack(flat, dst) == q).all()
    sums = flat[16384:].view(np.int32).reshape(4, 4, 32)
    for u, v, o in np.ndindex(sums.shape):
        real = o < channels[0] and (u, v) != (1, 1)
        assert sums[u, v, o] == (-128 * int(q[o, :, u, v].astype(int).sum()) if real else 0)


def test_sums_follow_packed_recurrent_weights() -> None:
    desc = D((2, 1, 5, 3, 17), "s8", "ldigo_p")
    array = random_values(np.random.default_rng(2), desc.dims, "s8")
    flat = cf.pack(array, desc)
    assert desc.nbytes == 2 * 3 * 32 * 5 + 4 * 2 * 3 * 17
    sums = flat[2 * 3 * 32 * 5 :].view(np.float32).reshape(2, 1, 3, 17)
    assert (sums == array.sum(2, dtype=np.int64)).all()
    assert (cf.unpack(flat, desc) == array).all()
    assert D(desc.dims, "s8", "ldgoi_p").sums == ()
    assert D(desc.dims, "f32", "ldigo_p").sums == ()


# --- names and fields -----------------------------------------------------------------------------


def test_sizes_are_part_of_the_name() -> None:
    assert cf.Format("wino_wei_aaOIoi") == cf.Format("wino_wei_aaOIoi_16o4i")
    assert cf.Format("wino_wei_aaOIoi") != cf.Format("wino_wei_aaOIoi_16o8i")
    assert cf.Format("wino_wei_aaOBiOo_16i1O16o") == cf.Format("wino_wei_aaOio")
    desc = D((27, 29, 6, 6), "f32", "wino_wei_OBaaIBOIio_4O2I16i16o")
    assert desc.padded_dims == (64, 32, 6, 6)
    at = ((((0 * 6 + 5) * 6 + 4) * 1 + 0) * 4 + 1) * 2 + 1
    assert desc.offset(26, 28, 5, 4) == (at * 16 + 12) * 16 + 10
    padded = cf.winograd(D((27, 29, 3, 3), "f32", "oihw"), DNNL[3], padded=(128, 32))
    assert D.parse(str(padded)) == padded != desc
    for wrong, told in [
        ("wino_wei_aaOBiOo", "wino_wei_aaOBiOo_16i4O16o"),
        ("wino_wei_aaOIoi_4i16o", "in this order"),
        ("wino_wei_aaOio_16i16o16o", "in this order"),
        ("wino_wei_aaOIoi_16o0i", "in this order"),
        ("wino_wei_abc", "expected wino_wei_ and one of"),
    ]:
        with pytest.raises(cf.InvalidFormat, match=told):
            cf.Format(wrong)


@pytest.mark.parametrize("dtype", ["f32", "s8"])
@pytest.mark.parametrize("name", DNNL)
def test_fields_of_dnnl_say_the_descriptor(name: str, dtype: str) -> None:
    desc = cf.winograd(D((27, 29, 3, 3), "f32", "oihw"), name, dtype, padded=(128, 64))
    fields = cf.WinogradDesc.of(desc)
    assert (fields.oc, fields.ic, fields.r, fields.alpha) == (128, 64, 3, desc.dims[2])
    assert fields.wino_format == method(name)
    assert fields.size == desc.nbytes
    assert fields.memory_desc((27, 29), dtype) == desc
    assert fields.adj_scale == (4 / 9 if (name, dtype) == (DNNL[0], "s8") else 1)
    with pytest.raises(cf.InvalidDescriptor, match="alpha"):
        cf.WinogradDesc.of(D((27, 29, 5, 5), "f32", name)).memory_desc((27, 29), "f32")


def test_fields_of_dnnl_that_do_not_fit() -> None:
    fields = cf.WinogradDesc("wino_wei_aaOio", 4, 24, 32, 16, 16, 1, 1, 1.0, 24 * 32 * 64)
    with pytest.raises(cf.InvalidDescriptor, match="whole blocks"):
        fields.memory_desc((20, 20), "f32")
    with pytest.raises(cf.InvalidDescriptor, match="none of DNNL's Winograd formats"):
        cf.WinogradDesc.of(D((1, 1, 3, 4), "f32", CLDNN[0]))


@pytest.mark.parametrize("parts", [(3,), (2, 1), (1, 1, 1)])
@pytest.mark.parametrize("name", ["ldigo_p", "ldgoi_p"])
def test_parts_of_packed_recurrent_weights_are_contiguous(
    name: str, parts: tuple[int, ...]
) -> None:
    desc = D((2, 2, 5, 3, 17), "f32", name)
    packed = cf.RnnPackedDesc(desc, parts, n=8, ldb=64)
    assert (packed.n_parts, packed.pack_part) == (len(parts), (True,) * len(parts))
    assert packed.offset_compensation == 2 * 2 * sum(packed.part_pack_size) == packed.size
    first = np.cumsum([0, *parts])
    for layer, direction, part in np.ndindex(2, 2, len(parts)):
        offsets = desc.offsets()[layer, direction, :, first[part] : first[part + 1]] * 4
        begin = packed.part_offset(layer, direction, part)
        assert offsets.min() >= begin
        assert offsets.max() < begin + packed.part_pack_size[part]
    with pytest.raises(IndexError):
        packed.part_offset(2, 0, 0)


def test_packed_recurrent_weights_that_cannot_be() -> None:
    desc = D((1, 1, 5, 3, 17), "s8", "ldigo_p")
    assert cf.RnnPackedDesc(desc).offset_compensation == desc.nbytes - 4 * 3 * 17
    assert cf.RnnPackedDesc(desc).ldb == 5
    for wrong in ({"parts": (2, 2)}, {"parts": (3, 0)}, {"n": 0}, {"ldb": 4}):
        with pytest.raises(cf.InvalidDescriptor, match="parts of 1 or more gates"):
            cf.RnnPackedDesc(desc, **wrong)
    with pytest.raises(cf.InvalidDescriptor, match="expected ldigo_p"):
        cf.RnnPackedDesc(D((1, 1, 5, 3, 17), "s8", "ldigo"))
    with pytest.raises(cf.Unsupported, match="NOT_BLOCKED"):
        desc.submemory((1, 1, 5, 1, 17), (0, 0, 0, 0, 0))


# --- which it is, and what is refused -------------------------------------------------------------


def test_four_columns_are_ambiguous() -> None:
    src = D((1, 2, 3, 4), "f32", "bfyx")
    dst = cf.winograd(src, DATA)
    assert dst.dims == src.dims
    with pytest.raises(cf.InvalidDescriptor, match="MOVE_OR_TRANSFORM"):
        cf.make_plan(src, dst)
    assert cf.make_plan(src, dst, transform=True).family == "winograd"
    assert cf.make_plan(src, dst, transform=False).family != "winograd"
    array = np.arange(24, dtype=np.float32).reshape(src.dims)
    assert (cf.transform(array, src, dst, transform=False) == array).all()
    assert (cf.transform(array, src, dst, transform=True)[0, 0, 0] == [-2, 3, 1, -2]).all()
    assert cf.make_plan(dst, src).family != "winograd"
    for x in (1, 2, 3, 5):
        d = D((1, 2, 3, x), "f32", "bfyx")
        assert cf.make_plan(d, D(d.dims, "f32", DATA)).family != "winograd"


@pytest.mark.parametrize(
    ("src", "dst", "told"),
    [
        ("f32:oiyx:5x4x3x3", "f32:winograd_2x3_s1_weights:5x4x4x3", r"has dims \(5, 4, 3, 4\)"),
        ("f32:oiyx:5x4x3x3", "f32:wino_wei_aaOio:5x4x6x6", r"has dims \(5, 4, 4, 4\)"),
        ("f32:oiyx:5x4x3x5", "f32:wino_wei_aaOio:5x4x4x4", "x must be 3 and y be 3"),
        ("f32:oiyx:1x4x3x5", "f32:wino_wei_aaOio:1x4x4x4", "x must be 3 and y be 3"),
        ("f32:oiyx:5x4x5x3", "f32:winograd_6x3_s1_fused_weights:5x4x3x8", "y must be 3 and x at"),
        ("f32:oiyx:5x4x3x8", "f32:winograd_6x3_s1_fused_weights:5x4x8x8", "y must be 3 and x at"),
        ("f32:bfyx:5x4x3x2", "f32:winograd_2x3_s1_data:5x4x3x4", "must be 3 or more"),
        ("f32:winograd_2x3_s1_data:5x4x3x6", "f32:bfyx:5x4x3x3", "a multiple of 4"),
        ("f32:winograd_2x3_s1_data:5x4x3x8", "f32:bfyx:5x4x3x2", r"has dims \(5, 4, 3, 4\)"),
        ("f32:goiyx:1x5x4x3x3", "f32:wino_wei_aaOio:5x4x4x4", "a transform leads from"),
    ],
)
def test_dims_that_do_not_fit(src: str, dst: str, told: str) -> None:
    with pytest.raises(cf.InvalidDescriptor, match=told) as info:
        cf.make_plan(D.parse(src), D.parse(dst))
    assert info.value.code == "TRANSFORM_DIMS"


def test_transforms_that_are_none() -> None:
    plain, wino = D((5, 4, 3, 3), "f32", "oiyx"), D((5, 4, 4, 4), "f32", DNNL[1])
    for a, b in ((plain, plain), (wino, wino)):
        with pytest.raises(cf.InvalidDescriptor, match="TRANSFORM_DIMS"):
            cf.make_plan(a, b, transform=True)
    with pytest.raises(cf.InvalidDescriptor, match="keeps the logical dims"):
        cf.make_plan(plain, wino, transform=False)
    with pytest.raises(cf.InvalidDescriptor, match="TRANSFORM_DIMS"):
        cf.winograd(plain, "hwio")
    with pytest.raises(cf.InvalidDescriptor, match="execution only"):
        cf.winograd(D((5, 4, cf.RUNTIME_DIM, 3), "f32", "oiyx"), DNNL[1])
    with pytest.raises(cf.InvalidDescriptor, match="got an array of float64"):
        cf.transform(np.zeros(plain.dims), plain, wino)
    image = D(plain.dims, "f32", "image_2d_weights_c1_b_fyx")
    with pytest.raises(cf.Unsupported, match="IMAGE"):
        cf.make_plan(image, cf.winograd(image, CLDNN[0]))


def test_families_tell_what_they_do() -> None:
    plain = D((5, 4, 3, 3), "f32", "oiyx")
    plan = cf.make_plan(plain, cf.winograd(plain, DNNL[0], "s8"))
    assert plan.family == "winograd"
    assert "F(2,3) along x and y, times 0.444444: " in str(plan)
    assert "sums    16 work-items read the elements again, in 64 lanes" in str(plan)
    assert dict(plan.rejected)["generic"] == "the values are transformed"


def test_sizes_of_zero_transform_to_nothing() -> None:
    src = D((0, 4, 3, 3), "f32", "oiyx")
    dst = cf.winograd(src, DNNL[0], "s8")
    assert (dst.dims, dst.nbytes) == ((0, 4, 4, 4), 0)
    assert cf.make_plan(src, dst).family == "none"
    assert cf.pack(np.zeros(dst.dims, np.int8), dst).size == 0
    assert D((5, 0, 4, 4), "s8", DNNL[0]).sums_nbytes == 0
    assert D((5, cf.RUNTIME_DIM, 4, 4), "s8", DNNL[0]).nbytes == cf.tensors.desc.RUNTIME_SIZE


def test_attributes_are_refused_where_values_are_transformed() -> None:
    plain = D((5, 4, 3, 3), "f32", "oihw")
    for src, dst in [(plain, cf.winograd(plain, DNNL[1]))]:
        computation = from_attr(cf.Attr(src_scale=2.0), src, dst)
        with pytest.raises(cf.Unsupported, match="ATTR_TRANSFORM"):
            cf.make_plan(src, dst, computation=computation)
