"""Quantising: the bytes of ggml where it has the type, else the rules as they are written."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import clformats as cf
from clformats.quantised.rules import MX_MODES, quantised, ue4m3
from clformats.quantised.types import type_named

gguf = pytest.importorskip("gguf")
Floats = NDArray[np.float32]


def hard(shape: tuple[int, int], scale: float = 1.0, seed: int = 0) -> Floats:
    """Random values, zeros, powers of two, ties, and neighbours of powers of two."""
    rng = np.random.default_rng(seed)
    x = (rng.standard_normal(shape) * scale).astype(np.float32)
    x[0], x[1] = 0, np.exp2(rng.integers(-20, 20, shape[1]))
    x[2] = np.round(x[2] * 8) / 8 + 0  # where all are zeros, without -0
    x[3] = np.nextafter(np.exp2(rng.integers(-40, 40, shape[1])).astype(np.float32), np.float32(0))
    x[4] = -np.abs(x[4])
    x[5, ::3], x[6, 1::2] = -0.0, 0
    return x


@pytest.mark.parametrize("name", ["q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "tq2_0", "mxfp4"])
@pytest.mark.parametrize("scale", [1, 1e-5, 1e-30, 1e30])
def test_bytes_are_those_of_gguf(name: str, scale: float) -> None:
    x = hard((40, 512), scale)
    with np.errstate(all="ignore"):
        expected = gguf.quants.quantize(x, gguf.GGMLQuantizationType[name.upper()]).ravel()
    assert np.array_equal(cf.pack(x, cf.MemoryDesc(x.shape, name, "gguf")), expected)


@pytest.mark.parametrize("name", ["q4_0", "q5_0"])
def test_blocks_of_zeros_are_those_of_gguf(name: str) -> None:
    """The sign of d follows from the first zero; in ggml's C it is -0 always."""
    x = np.zeros((4, 32), np.float32)
    x[1], x[2, 0], x[3, 1:] = -0.0, -0.0, -0.0
    expected = gguf.quants.quantize(x, gguf.GGMLQuantizationType[name.upper()]).ravel()
    assert np.array_equal(cf.pack(x, cf.MemoryDesc(x.shape, name, "gguf")), expected)


@pytest.mark.parametrize("name", ["q4_1", "q5_1"])
def test_the_first_of_both_zeros_is_the_least(name: str) -> None:
    """As in ggml's loop, ``if (v < min) min = v``, and in Python's ``min``."""
    rng = np.random.default_rng(0)
    x = np.where(rng.random((24, 32)) < 0.1, np.float32(1), np.float32(0))
    x[rng.random(x.shape) < 0.3] *= np.float32(-0.0)
    x[:2] = np.abs(x[:2]) * 0
    x[0, 1:], x[1, 0] = -0.0, -0.0
    expected = [np.signbit(min(row)) for row in x.tolist()]
    desc = cf.MemoryDesc(x.shape, name)
    raw = cf.pack(x, desc)
    assert np.array_equal(np.signbit(cf.unpack(raw, desc, field="m"))[:, 0], expected)
    assert 2 <= sum(expected) < 22
    assert not np.signbit(cf.unpack(raw, desc, field="d")).any()


def test_mxfp4_takes_the_first_of_equals() -> None:
    x = np.zeros((1, 32), np.float32)
    x[0, :6] = 4, 0.75, 1.75, 3.5, -0.25, -0.2
    codes = cf.pack(x, cf.MemoryDesc(x.shape, "mxfp4", "plain"))
    found = cf.unpack(codes, cf.MemoryDesc(x.shape, "mxfp4", "plain"))
    assert found[0, :6].tolist() == [4, 0.5, 1.5, 3, 0, 0]
    assert not np.signbit(found[0, 4:]).any()


def test_unsigned_e4m3_is_ggmls() -> None:
    """Halves up; and 448 from 248 on, where ggml's code has no other."""
    table = type_named("nvfp4").fields["d"].dtype.table[:127] * 2
    x = np.concatenate([np.linspace(-1, 470, 4001), table, (table[1:] + table[:-1]) / 2])
    x = x.astype(np.float32)
    assert np.array_equal(ue4m3(x), gguf.quants.NVFP4.fp32_to_ue4m3(x))


def scales_of_mx(
    x: Floats, mode: str, largest: float, highest: int, mantissa: int
) -> NDArray[np.int64]:
    """One block after the other, in Python's exact numbers."""
    result = []
    for block in x.reshape(-1, 32):
        amax = float(np.abs(block).max())
        if mode == "rceil":
            ratio = float(np.float32(amax) / np.float32(largest))
            power = -127 if ratio == 0 else int(np.ceil(np.log2(ratio)))
            result.append(min(max(power + 127, 0), 254))
            continue
        fraction, power = np.frexp(amax) if amax else (0.5, -127)
        power -= 1
        if mode == "ceil" and fraction > 0.5:
            power += 1
        if mode == "even" and fraction * 2 >= 2 - 2.0 ** -(mantissa + 1):
            power += 1
        result.append(min(max(power - highest, -127), 128) + 127)
    return np.array(result)


@pytest.mark.parametrize("mode", MX_MODES)
@pytest.mark.parametrize(
    ("name", "own", "largest", "highest", "mantissa"),
    [
        ("f4_e2m1", ml_dtypes.float4_e2m1fn, 6, 2, 1),
        ("f6_e2m3", ml_dtypes.float6_e2m3fn, 7.5, 2, 3),
        ("f6_e3m2", ml_dtypes.float6_e3m2fn, 28, 4, 2),
        ("f8_e4m3", ml_dtypes.float8_e4m3fn, 448, 8, 3),
        ("f8_e5m2", ml_dtypes.float8_e5m2, 57344, 15, 2),
    ],
)
def test_mx_types_by_the_written_rules(
    mode: str, name: str, own: type, largest: float, highest: int, mantissa: int
) -> None:
    x = hard((16, 256), 3.0)
    found = quantised(type_named(f"mx_{name}"), x[None], mode)
    codes = scales_of_mx(x, mode, largest, highest, mantissa)
    assert np.array_equal(found["e"].ravel(), codes)
    power = np.exp2(codes.astype(np.float64) - 127).repeat(32).reshape(x.shape)
    scaled: NDArray[Any] = np.clip(x / power, -largest, largest).astype(np.float32).astype(own)
    expected = np.where(power == 2.0**-127, 0, scaled.view(np.uint8))
    mask = power > 2.0**-127
    assert np.array_equal(found["q"][0][mask], expected[mask])


@pytest.mark.parametrize("name", ["nvfp4_times", "nvfp4_divided"])
def test_nvfp4_with_a_scale_of_the_tensor(name: str) -> None:
    x = hard((16, 256), 3.0)
    desc = cf.MemoryDesc(x.shape, name)
    raw = cf.pack(x, desc)
    tensor = np.float32(np.abs(x).max()) / np.float32(448 * 6)
    stored = cf.unpack(raw, desc, field="t").item()
    assert stored == (tensor if name == "nvfp4_times" else np.float32(448 * 6) / np.abs(x).max())
    amax = np.abs(x).reshape(16, 16, 16).max(-1)
    scale = np.clip(amax / np.float32(6) / tensor, np.float32(2**-6), np.float32(448))
    if name == "nvfp4_times":
        expected = scale.astype(np.float32).astype(ml_dtypes.float8_e4m3fn).view(np.uint8)
        assert np.array_equal(cf.unpack(raw, desc, field="d"), expected)
    error = np.abs(cf.unpack(raw, desc) - x).reshape(16, 16, 16).max(-1)
    assert (error <= amax * 0.2 + tensor * 2**-6 * 3).all()


@pytest.mark.parametrize("name", ["u4g128", "u8g32", "u3g32", "u4gk", "s4g64", "s8gk"])
def test_grouped_integers_are_near(name: str) -> None:
    """Within half a step, where a step is the scale before it became f16."""
    x = hard((24, 256), 3.0)[7:]
    desc: Any = cf.MemoryDesc(x.shape, name)
    raw = cf.pack(x, desc)
    steps = np.repeat(
        cf.unpack(raw, desc, field="s").astype(np.float32), 256 // desc.fields["s"].dims[1], 1
    )
    top = np.abs(x).max() * 2.0**-10
    assert (np.abs(cf.unpack(raw, desc) - x) <= steps * 0.51 + top).all()


@pytest.mark.parametrize("name", ["q4_K", "iq2_xs", "q8_1", "mlc_q4f16", "bnb_nf4"])
def test_types_without_a_rule_say_so(name: str) -> None:
    with pytest.raises(cf.Unsupported, match="search") as error:
        cf.pack(np.zeros((2, 256), np.float32), cf.MemoryDesc((2, 256), name))
    assert error.value.code == "QUANTISE"


def test_nan_and_infinity_have_codes() -> None:
    x = hard((8, 256))
    x[0, 5], x[1, 7], x[2, 9] = np.nan, np.inf, -np.inf
    for name in ("q4_0", "q8_0", "q4_1", "mxfp4", "nvfp4", "mx_f8_e4m3", "nvfp4_times", "u4g128"):
        desc = cf.MemoryDesc(x.shape, name)
        cf.unpack(cf.pack(x, desc), desc)


def test_a_short_last_group_counts_what_it_has() -> None:
    x = np.full((3, 40), 5, np.float32)
    x[:, 32:] = 1
    mine = cf.MemoryDesc((3, 40), "s4g32")
    assert cf.unpack(cf.pack(x, mine), mine, field="s").shape == (3, 2)
    assert np.allclose(cf.unpack(cf.pack(x, mine), mine), x, rtol=1e-3)
