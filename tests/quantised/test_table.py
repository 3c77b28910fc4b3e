"""Every type and layout of the table: values, places, and the way there and back."""

from __future__ import annotations

import pickle
from functools import partial
from math import prod
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import clformats as cf
from clformats.formats.expr import Var
from clformats.quantised import QuantisedDesc, type_names, types
from clformats.quantised.host import from_codes, moved
from tests.quantised import packers

gguf = pytest.importorskip("gguf")

GGUF = ["q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q2_K", "q3_K", "q4_K", "q5_K", "q6_K", "iq4_nl",
        "iq4_xs", "tq2_0", "mxfp4", "nvfp4", "iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s",
        "iq1_s", "iq1_m"]  # fmt: skip
OTHERS = ["q1_0", "q2_0", "q8_1", "q8_K", "u2g64", "u3g32", "u4g128", "u8g32", "u4gk", "s4g128",
          "s4gk", "s8g64", "u4sg32", "mlc_q4f16", "bnb_nf4", "bnb_fp4", "mx_f4_e2m1", "mx_f6_e2m3",
          "mx_f6_e3m2", "mx_f8_e4m3", "mx_f8_e5m2", "mx_s8", "nvfp4_times",
          "nvfp4_divided"]  # fmt: skip
ALL = [(t, layout) for t in (*GGUF, *OTHERS) for layout in cf.layouts(t)]


def described(dims: tuple[int, ...], name: object, layout: str = "gguf") -> QuantisedDesc:
    """What MemoryDesc makes of a quantised type."""
    desc: object = cf.MemoryDesc(dims, name, layout)
    assert isinstance(desc, QuantisedDesc)
    return desc


def random_codes(desc: QuantisedDesc, seed: int = 0) -> dict[str, NDArray[Any]]:
    """Unsigned codes of every field."""
    rng = np.random.default_rng(seed)
    return {
        n: rng.integers(0, 1 << f.bits, f.extents, np.uint64).astype(f"u{f.dtype.nbytes}")
        for n, f in desc.fields.items()
    }


def random_bytes(desc: QuantisedDesc, seed: int = 0) -> NDArray[np.uint8]:
    """Bytes whose padding is zero."""
    return from_codes(random_codes(desc, seed), desc)


def same(a: NDArray[Any], b: NDArray[Any]) -> bool:
    """Equal bits; every NaN is like every other."""
    nan = np.isnan(a) & np.isnan(b)
    return bool(((a.view(np.uint32) == b.view(np.uint32)) | nan).all())


@pytest.mark.parametrize("name", GGUF)
def test_values_are_those_of_gguf(name: str) -> None:
    desc = described((5, 1024), name, "gguf")
    kind = gguf.GGMLQuantizationType[name.upper()]
    for seed in range(3):
        raw = np.random.default_rng(seed).integers(0, 256, desc.nbytes, np.uint8)
        raw[: desc.nbytes // 5] = (0, 255, 0x7F, 0x80)[seed]
        with np.errstate(all="ignore"):
            expected = gguf.quants.dequantize(raw.reshape(5, -1), kind)
        assert same(cf.unpack(raw, desc), expected)


def test_values_of_types_that_gguf_does_not_decode() -> None:
    """Formula by formula, from the bytes of one record."""
    rng = np.random.default_rng(1)
    for name, size, nbytes in (("q1_0", 128, 18), ("q2_0", 64, 18), ("q8_1", 32, 36)):
        raw = rng.integers(0, 256, nbytes, np.uint8)
        d = raw[:2].view(np.float16).astype(np.float32)[0]
        if name == "q1_0":
            bits = np.unpackbits(raw[2:], bitorder="little")
            expected = np.where(bits, d, -d)
        elif name == "q2_0":
            expected = d * ((raw[2:, None] >> np.array([0, 2, 4, 6]) & 3).ravel() - np.float32(1))
        else:
            expected = d * raw[4:].view(np.int8).astype(np.float32)
        found = cf.unpack(raw, described((1, size), name, "gguf"))[0]
        assert same(found, expected.astype(np.float32)), name
    raw = rng.integers(0, 256, 292, np.uint8)
    found = cf.unpack(raw, described((1, 256), "q8_K", "gguf"))[0]
    assert same(found, raw[:4].view(np.float32) * raw[4:260].view(np.int8).astype(np.float32))


@pytest.mark.parametrize(("name", "layout"), ALL)
def test_every_value_has_bits_of_its_own(name: str, layout: str) -> None:
    """Law 1, over every bit of every plane; and that numpy's places are `offset`'s (law 2)."""
    desc = described((128, 256), name, layout)
    taken = np.zeros(8 * desc.nbytes, np.uint8)
    for field in desc.fields.values():
        assert sum(p.bits for p in field.planes) == field.dtype.bits
        for plane in field.planes:
            axes = np.ogrid[tuple(slice(0, s) for s in field.extents)]
            where = plane.address((Var("e"), Var("n"), Var("k")))
            at = where.evaluate(dict(zip("enk", axes, strict=True)))
            for b in range(plane.bits):
                taken[np.broadcast_to(np.asarray(at) + b, field.extents)] += 1
    assert taken.max() == 1
    assert taken.sum() == sum(prod(f.extents) * f.dtype.bits for f in desc.fields.values())


@pytest.mark.parametrize(("name", "layout"), ALL)
def test_there_and_back(name: str, layout: str) -> None:
    """Laws 3, 5 and 10: fields, text, and moves to another layout of the type."""
    desc = described((128, 512), name, layout)
    assert cf.MemoryDesc.parse(str(desc)) == desc
    assert pickle.loads(pickle.dumps(desc)) == desc  # noqa: S301  # our own bytes
    assert hash(pickle.loads(pickle.dumps(desc))) == hash(desc)  # noqa: S301  # our own bytes
    raw = random_bytes(desc)
    fields = {n: cf.unpack(raw, desc, field=n) for n in desc.fields}
    assert np.array_equal(cf.pack(fields, desc), raw)
    plain = desc.with_layout("plain")
    assert np.array_equal(moved(moved(raw, desc, plain), plain, desc), raw)
    assert same(cf.unpack(moved(raw, desc, plain), plain), cf.unpack(raw, desc))
    assert np.array_equal(desc.join(desc.split(raw))[: desc.nbytes], raw)


@pytest.mark.parametrize(("name", "layout"), ALL)
def test_offset_is_where_the_bits_are(name: str, layout: str) -> None:
    """Of one element, by hand."""
    desc = described((128, 256), name, layout)
    raw = random_bytes(desc, 7)
    bits = np.unpackbits(raw, bitorder="little")
    for field in desc.fields.values():
        at, shift, code = (77, 201), 0, 0
        for plane in field.planes:
            first = desc.offset(*at, plane=plane.name)
            part = bits[first : first + plane.bits]
            code |= int(part @ (1 << np.arange(plane.bits, dtype=np.int64))) << shift
            shift += plane.bits
        rows, columns = (g or n for g, n in zip(field.group, desc.dims, strict=True))
        own = cf.unpack(raw, desc, field=field.name)[at[0] // rows, at[1] // columns]
        expected = int(own.view(f"u{own.itemsize}")) & ((1 << field.bits) - 1)
        assert (code - field.bias) & ((1 << field.bits) - 1) == expected


CHECKPOINTS = [
    ("u4g128", "gptq", {"q": packers.gptq, "z": packers.gptq_zeros, "s": np.transpose}),
    ("u2g128", "gptq", {"q": lambda q: packers.gptq(q, 2), "z": lambda z: packers.gptq_zeros(z, 2),
                        "s": np.transpose}),
    ("u8g128", "gptq", {"q": lambda q: packers.gptq(q, 8), "z": lambda z: packers.gptq_zeros(z, 8),
                        "s": np.transpose}),
    ("u4g64", "awq_gemm", {"q": packers.awq, "z": packers.awq, "s": np.transpose}),
    ("u4g128", "awq_gemv", {"q": packers.awq_gemv}),
    ("u4sg128", "awq_gemv_fast", {"q": packers.awq_gemv_fast}),
    ("u3g32", "gptq", {"q": packers.gptq3}),
    ("mx_f8_e4m3", "swizzled", {"e": packers.swizzled}),
    ("nvfp4_times", "swizzled", {"d": packers.swizzled}),
    *((f"s{b}g32", "compressed", {"q": partial(packers.offset_in_bits, bits=b)})
      for b in range(2, 9)),
    ("s4g64", "marlin", {"q": lambda q: packers.marlin((q + 8) & 15), "s": packers.marlin_scales}),
    ("mx_f4_e2m1", "gpt_oss", {"q": lambda q: q[:, ::2] | q[:, 1::2] << 4, "e": np.asarray}),
    ("bnb_nf4", "bitsandbytes", {"q": lambda q: q[:, ::2] << 4 | q[:, 1::2]}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "layout", "rules"), CHECKPOINTS)
def test_checkpoints_are_packed_as_their_rules_say(name: str, layout: str, rules: object) -> None:
    assert isinstance(rules, dict)
    desc = described((192, 256), name, layout)
    codes = {n: c[0] for n, c in random_codes(desc, 3).items()}
    parts = desc.split(from_codes(codes, desc))
    for field, rule in rules.items():
        expected = np.ascontiguousarray(rule(codes[field])).reshape(-1).view(np.uint8)
        assert np.array_equal(parts[field][: expected.size], expected), field
        assert not parts[field][expected.size :].any()


SIMPLE = (("q4_0", 18, 2), ("iq4_nl", 18, 2), ("mxfp4", 17, 1), ("q8_0", 34, 2))
REPACKED = [(n, r, b, bytes_, at) for n, bytes_, at in SIMPLE for r, b in ((4, 4), (4, 8), (8, 8))
            if f"repack_{r}x{b}" in cf.layouts(n)]  # fmt: skip


@pytest.mark.parametrize(("name", "rows", "piece", "nbytes", "at"), REPACKED)
def test_rows_are_repacked_as_ggml_does(
    name: str, rows: int, piece: int, nbytes: int, at: int
) -> None:
    src = described((16, 96), name, "gguf")
    raw = np.random.default_rng(2).integers(0, 256, src.nbytes, np.uint8)
    records = raw.reshape(16, 3, nbytes)
    flip = 0x88 if name == "q4_0" else 0
    heads = packers.repacked(records[:, :, :at], rows, at)
    quants = packers.repacked(records[:, :, at:] ^ flip, rows, piece)
    expected = np.concatenate([heads, quants], -1).ravel()
    assert np.array_equal(moved(raw, src, src.with_layout(f"repack_{rows}x{piece}")), expected)


@pytest.mark.parametrize(("name", "piece"), [("q4_K", 4), ("q4_K", 8), ("q5_K", 4), ("q5_K", 8)])
def test_rows_of_k_quants_are_repacked_as_ggml_does(name: str, piece: int) -> None:
    src = described((16, 512), name, "gguf")
    raw = np.random.default_rng(2).integers(0, 256, src.nbytes, np.uint8)
    records = raw.reshape(16, 2, -1)
    sc, mn = (cf.unpack(raw, src, field=f).reshape(2, 8, 2, 8) for f in ("sc", "mn"))
    turned = [a.transpose(0, 2, 3, 1) for a in (sc, mn)]  # eight rows, record, sub-block, row
    scales = packers.six_bits(*turned).reshape(2, 2, -1)
    heads = packers.repacked(records[:, :, :4], 8, 2)
    parts = [packers.repacked(records[:, :, 16:48], 8, piece)] if name == "q5_K" else []
    parts += [packers.repacked(records[:, :, -128:], 8, piece)]
    expected = np.concatenate([heads, scales, *parts], -1).ravel()
    assert np.array_equal(moved(raw, src, src.with_layout(f"repack_8x{piece}")), expected)


@pytest.mark.parametrize("piece", [4, 8])
def test_rows_of_q6_k_are_repacked_as_ggml_does(piece: int) -> None:
    src = described((16, 512), "q6_K", "gguf")
    records = np.random.default_rng(2).integers(0, 256, (16, 2, 210), np.uint8)
    cuts = ((208, 210, 2), (192, 208, 1), (0, 128, piece), (128, 192, piece))
    parts = [packers.repacked(records[:, :, a:b], 8, size) for a, b, size in cuts]
    expected = np.concatenate(parts, -1).ravel()
    dst = src.with_layout(f"repack_8x{piece}")
    assert np.array_equal(moved(records.ravel(), src, dst), expected)


def test_rows_of_q2_k_are_repacked_as_ggml_does() -> None:
    """A scale byte of row r and sub-block s is number 16 * (s / 2) + 2 * r + s % 2."""
    src = described((16, 512), "q2_K", "gguf")
    records = np.random.default_rng(2).integers(0, 256, (16, 2, 84), np.uint8)
    parts = [packers.repacked(records[:, :, a:b], 8, size)
             for a, b, size in ((80, 82, 2), (82, 84, 2), (0, 16, 2), (16, 80, 8))]  # fmt: skip
    expected = np.concatenate(parts, -1).ravel()
    assert np.array_equal(moved(records.ravel(), src, src.with_layout("repack_8x8")), expected)


OPENVINO = {
    "openvino_osv32_isv2": (32, 2), "openvino_osv64_isv2": (64, 2), "openvino_osv16": (16, 2),
    "openvino_osv32": (32, 1), "openvino_osv64": (64, 1),
}  # fmt: skip


@pytest.mark.parametrize("layout", OPENVINO)
def test_weights_of_openvino(layout: str) -> None:
    """Two values share a byte: neighbours along the input, or outputs 16 apart."""
    osv, pair = OPENVINO[layout]
    q = np.random.default_rng(0).integers(0, 16, (128, 64), np.uint8)
    desc = described((128, 64), "u4g32", layout)
    zeros = {"s": np.zeros((128, 2), np.float16), "z": np.zeros((128, 2), np.uint8)}
    found = desc.split(cf.pack({"q": q, **zeros}, desc))["q"]
    if pair == 2:
        bytes_ = (q[:, ::2] | q[:, 1::2] << 4).reshape(128 // osv, osv, 32)
        expected = bytes_.transpose(0, 2, 1).ravel()
    else:
        lanes = q.reshape(128 // osv, osv // 32, 2, 16, 64)
        expected = (lanes[:, :, 0] | lanes[:, :, 1] << 4).transpose(0, 3, 1, 2).ravel()
    assert np.array_equal(found, expected)


def test_experts_stand_in_front() -> None:
    """Records follow each other; planes have experts outermost."""
    src = described((3, 8, 64), "q4_0", "gguf")
    raw = np.random.default_rng(0).integers(0, 256, src.nbytes, np.uint8)
    one = described((8, 64), "q4_0", "gguf")
    parts = raw.reshape(3, -1)
    values = np.stack([cf.unpack(p, one) for p in parts])
    assert same(cf.unpack(raw, src), values)
    for layout in ("flat", "trans4", "repack_8x8"):
        own = [one.with_layout(layout).split(moved(p, one, one.with_layout(layout))) for p in parts]
        dst = src.with_layout(layout)
        found = dst.split(moved(raw, src, dst))
        for name, data in found.items():
            assert np.array_equal(data, np.concatenate([o[name] for o in own]))
    assert src.fields["d"].dims == (3, 8, 2)
    assert src.offset(2, 7, 63, plane="q") == 8 * (18 * (16 * 2 + 15) + 2) + 8 * 15 + 4


def test_a_type_and_a_layout_of_ones_own() -> None:
    mine = cf.QuantisedType(
        "mine",
        {"q": ("u4", (1, 1)), "d": ("f16", (1, 32)), "b": ("f32", (16, 0))},
        "d * (q - 8) + b",
    )
    desc = described((20, 70), mine, "q=k/8 n k%8; d=g n; b=r")
    rng = np.random.default_rng(0)
    q = rng.integers(0, 16, (20, 70))
    d, b = rng.standard_normal((20, 3)).astype(np.float16), rng.standard_normal((2, 1), np.float32)
    raw = cf.pack({"q": q, "d": d, "b": b}, desc)
    wide = np.repeat(d.astype(np.float32), 32, 1)[:, :70]
    expected = wide * (q.astype(np.float32) - 8) + np.repeat(b, 16, 0)[:20]
    assert same(cf.unpack(raw, desc), expected)
    assert cf.MemoryDesc.parse(str(desc)) == desc
    assert np.array_equal(cf.unpack(raw, desc, field="q"), q)


@pytest.mark.parametrize("text", ["q=2 n k + 2 n k; d=n g", "q=2 k/4 n k%4 + 1 n k + 1 n k; d=g n"])
def test_planes_with_the_same_digits_have_names_and_buffers_of_their_own(text: str) -> None:
    desc = described((5, 64), "q4_0", text)
    names = [f"q{end}" for end in ("", "h", "2")[: text.count("+") + 1]]
    assert [b.first for b in desc.buffers] == [*names, "d"] == list(desc.planes)
    raw = random_bytes(desc, 1)
    assert (desc.join(desc.split(raw)) == raw).all()


@pytest.mark.parametrize("name", ["float", "half", "static", "image2d_t", "q-1", "Q"])
def test_fields_have_names_that_kernels_take(name: str) -> None:
    with pytest.raises(cf.InvalidDescriptor, match="no keywords of OpenCL C"):
        cf.QuantisedType("mine", {"q": ("u4", (1, 1)), name: ("f16", (1, 32))}, "q")


def test_a_field_has_not_the_name_of_another_ones_plane() -> None:
    fields = {"q": ("u6", (1, 1)), "qh": ("u2", (1, 32))}
    mine = cf.QuantisedType("mine", fields, "q + qh")
    with pytest.raises(cf.InvalidFormat, match="called qh, too"):
        described((5, 64), mine, "q=4 n k + 2 n k; qh=n g")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{n k/32 * 18; d=@0; q=@8 k/16%2:4 k%16:8}", "another value's"),
        ("{n k/32 * 18; d=@0; q=@16 k/16%2:4 k%16:4}", "another value's"),
        ("{n k/32 * 18; d=@0; q=@16 k/16%2:0 k%16:8}", "another value's"),
        ("{n k/32 * 17; d=@0; q=@16 k/16%2:4 k%16:8}", "q needs 18 bytes of a record of 17"),
        ("{n k/32 * 18; d=@128; q=@0 k/16%2:144 k%16:4}", "q needs 26 bytes of a record of 18"),
        ("d=n g; q=n:256 k:3", "q has bits that are another value's"),
        ("d=n g; q=n:0 k:4", "q has bits that are another value's"),
        ("d=n:8 g:16; q=n k", "d has bits that are another value's"),
        ("{d=@0 n:32 g:16; q=@8 n:256 k:4}", "q has bits that are another value's, of d"),
        ("d=n g; q=n (3k)%32", "cannot tell|another value's"),
        ("d=n g; q=n:4096 (1k)/2:4096 k%2:4", "another value's"),
    ],
)
def test_no_values_share_bits(text: str, why: str) -> None:
    with pytest.raises(cf.InvalidFormat, match=why):
        described((8, 64), "q4_0", text)


def test_no_type_has_the_name_of_an_element_type() -> None:
    assert not set(cf.DTYPES) & {*GGUF, *OTHERS, *type_names()}


def test_a_name_that_is_no_quantised_type_is_looked_up_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Descriptors ask for every name of a type: it took them 0.35 ms."""
    assert types.find("f32") is None
    monkeypatch.setattr(types, "_matched", lambda *_: pytest.fail("looked up again"))
    assert cf.MemoryDesc((2, 3), "f32", "ab").dtype.name == "f32"
