"""Model files: quantised checkpoints told by their configs, repacked, and written as they were."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import clformats as cf
from clformats import cli
from clformats.files import Options, pack_quantised, unpack_quantised
from clformats.files.checkpoints import read_safetensors
from clformats.files.repack import filled_by_worker
from clformats.quantised.host import move_into
from tests.files_support import finish_gguf
from tests.quantised import packers
from tests.quantised.test_table import described, random_bytes, same

safetensors = pytest.importorskip("safetensors.numpy")
deserialize = pytest.importorskip("safetensors").deserialize
N, K = 64, 256
Arrays = dict[str, NDArray[Any]]
RNG = np.random.default_rng(5)


def saved(folder: Path, arrays: Arrays, config: object, name: str = "config.json") -> Path:
    """A checkpoint with its configuration."""
    path = folder / "model.safetensors"
    contiguous = {n: np.array(a, order="C") for n, a in arrays.items()}
    safetensors.save_file(contiguous, path, {"format": "pt"})
    (folder / name).write_text(json.dumps(config))
    return path


def integers(bits: int, groups: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Codes, zero points and scales of a matrix."""
    q = RNG.integers(0, 1 << bits, (N, K)).astype(np.uint8)
    z = RNG.integers(0, 1 << bits, (N, groups)).astype(np.uint8)
    return q, z, RNG.random((N, groups)).astype(np.float16)


def decoded(q: NDArray[Any], z: NDArray[Any] | int, s: NDArray[Any]) -> NDArray[np.float32]:
    """``s * (q - z)`` in f32, as a checkpoint's own program has it."""
    width = K // s.shape[1]
    zero = np.repeat(z, width, 1).astype(np.int32) if isinstance(z, np.ndarray) else z
    codes = (q.astype(np.int32) - zero).astype(np.float32)
    return np.repeat(s.astype(np.float32), width, 1) * codes


def gptq(bits: int, version: str = "gptq") -> tuple[Arrays, object, NDArray[np.float32]]:
    q, z, s = integers(bits, 2)
    stored = z if version == "gptq_v2" else (z - 1) & ((1 << bits) - 1)
    arrays = {
        "a.qweight": packers.gptq(q, bits).view(np.int32),
        "a.qzeros": packers.gptq_zeros((stored + 1) & ((1 << bits) - 1), bits).view(np.int32),
        "a.scales": s.T,
        "a.g_idx": (np.arange(K) // 128).astype(np.int32),
    }
    config = {"quant_method": "gptq", "bits": bits, "group_size": 128, "desc_act": False,
              "checkpoint_format": version}  # fmt: skip
    return arrays, {"quantization_config": config}, decoded(q, z, s)


def awq_gemm() -> tuple[Arrays, object, NDArray[np.float32]]:
    q, z, s = integers(4, 2)
    arrays = {"a.qweight": packers.awq(q).view(np.int32), "a.qzeros": packers.awq(z).view(np.int32),
              "a.scales": s.T}  # fmt: skip
    config = {"quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemm"}
    return arrays, {"quantization_config": config}, decoded(q, z, s)


def compressed() -> tuple[Arrays, object, NDArray[np.float32]]:
    q, _, s = integers(4, 2)
    signed = q.astype(np.int8) - 8
    words = packers.offset_in_bits(signed.astype(np.uint8) & 15, 4)
    arrays = {"a.weight_packed": words.view(np.uint8).view(np.int32).reshape(N, -1),
              "a.weight_scale": s.astype(ml_dtypes.bfloat16),
              "a.weight_shape": np.array([N, K])}  # fmt: skip
    weights = {"num_bits": 4, "group_size": 128, "symmetric": True, "type": "int"}
    config = {"quant_method": "compressed-tensors", "format": "pack-quantized",
              "config_groups": {"group_0": {"weights": weights}}}  # fmt: skip
    return arrays, {"quantization_config": config}, decoded(q, 8, s.astype(ml_dtypes.bfloat16))


def gptq_of_3_bits() -> tuple[Arrays, object, NDArray[np.float32]]:
    q, z, s = integers(3, 2)
    zeros = np.ascontiguousarray((z.T.astype(np.int64) - 1) & 7).astype(np.uint8)
    arrays = {"a.qweight": packers.gptq3(q).view(np.int32),
              "a.qzeros": packers.gptq3(zeros).T.view(np.int32), "a.scales": s.T}  # fmt: skip
    config = {"quant_method": "gptq", "bits": 3, "group_size": 128}
    return arrays, {"quantization_config": config}, decoded(q, z, s)


def awq_gemv(version: str) -> tuple[Arrays, object, NDArray[np.float32]]:
    """Zero points and scales of a row are filled up to words of eight; quant_config's names."""
    q, z, s = integers(4, 2)
    room = ((0, 0), (0, 6))
    config = {"zero_point": True, "q_group_size": 128, "w_bit": 4, "version": version}
    if version == "gemv":
        arrays = {"a.qweight": packers.awq_gemv(q).view(np.int32),
                  "a.qzeros": packers.awq_gemv(np.pad(z, room)).view(np.int32),
                  "a.scales": np.pad(s, room)}  # fmt: skip
        return arrays, config, decoded(q, z, s)
    scaled = (-(s.astype(np.float32) * z)).astype(np.float16)
    arrays = {"a.qweight": packers.awq_gemv_fast(q).view(np.int16),
              "a.qzeros": np.pad(scaled, room).T, "a.scales": np.pad(s, room).T}  # fmt: skip
    values = decoded(q, 0, s) + np.repeat(scaled.astype(np.float32), 128, 1)
    return arrays, config, values


def marlin(size: int) -> tuple[Arrays, object, NDArray[np.float32]]:
    q, _, s = integers(4, 2 if size == 128 else 1)
    if size == 128:
        scales = packers.marlin_scales(s)
    else:
        order = [2 * i + j for i in range(4) for j in (0, 1, 8, 9, 16, 17, 24, 25)]
        scales = s.T.reshape(-1, 32)[:, order].reshape(1, N)
    arrays = {"a.B": packers.marlin(q).view(np.int32), "a.s": scales,
              "a.workspace": np.zeros(16, np.int32)}  # fmt: skip
    config = {"quant_method": "gptq", "bits": 4, "group_size": size, "is_marlin_format": True}
    return arrays, {"quantization_config": config}, decoded(q, 8, s)


def asymmetric(bits: int) -> tuple[Arrays, object, NDArray[np.float32]]:
    """compressed-tensors with zero points, which are packed along the rows."""
    q, z, s = integers(bits, 2)
    per = 32 // bits
    arrays = {
        "a.weight_packed": packers.in_bits(q, bits).view(np.int32).reshape(N, -1),
        "a.weight_zero_point": packers.words([z[j::per] for j in range(per)], bits).view(np.int32),
        "a.weight_scale": s, "a.weight_shape": np.array([N, K]),
        "a.weight_g_idx": (np.arange(K) // 128).astype(np.int32),
    }  # fmt: skip
    weights = {"num_bits": bits, "group_size": 128, "symmetric": False, "type": "int"}
    config = {"quant_method": "compressed-tensors", "format": "pack-quantized",
              "config_groups": {"group_0": {"weights": weights}}}  # fmt: skip
    return arrays, {"quantization_config": config}, decoded(q, z, s)


def nvfp4(maker: str) -> tuple[Arrays, object, NDArray[np.float32]]:
    """ModelOpt's scale of the tensor multiplies, that of compressed-tensors divides."""
    q = RNG.integers(0, 16, (N, K), np.uint8)
    d = RNG.integers(1, 120, (N, K // 16), np.uint8).view(ml_dtypes.float8_e4m3fn)
    t = np.float32(0.0123 if maker == "modelopt" else 81.3)
    packed = q[:, ::2] | q[:, 1::2] << 4
    scaled = q.view(ml_dtypes.float4_e2m1fn).astype(np.float32) * np.repeat(
        d.astype(np.float32), 16, 1
    )
    if maker == "modelopt":
        arrays = {"a.weight": packed, "a.weight_scale": d, "a.weight_scale_2": np.array(t)}
        config = {"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 16}
        return arrays, {"quantization_config": config}, scaled * t
    arrays = {"a.weight_packed": packed, "a.weight_scale": d,
              "a.weight_global_scale": np.array([t])}  # fmt: skip
    weights = {"num_bits": 4, "group_size": 16, "symmetric": True, "type": "float"}
    config = {"quant_method": "compressed-tensors",
              "config_groups": {"group_0": {"weights": weights,
                                            "format": "nvfp4-pack-quantized"}}}  # fmt: skip
    return arrays, {"quantization_config": config}, scaled / t


def bitsandbytes(codes: str) -> tuple[Arrays, object, NDArray[np.float32]]:
    """The first of two codes in the high half of a byte; the shape in a tensor of JSON."""
    q = RNG.integers(0, 16, (N, K), np.uint8)
    absmax = RNG.random(N * K // 64).astype(np.float32)
    own: Any = cf.MemoryDesc((1, 64), f"bnb_{codes}").dtype
    table = own.fields["q"].dtype.table
    state = {"quant_type": codes, "blocksize": 64, "dtype": "float16", "shape": [N, K]}
    flat = q.reshape(-1)
    arrays = {
        "a.weight": (flat[::2] << 4 | flat[1::2])[:, None], "a.weight.absmax": absmax,
        "a.weight.quant_map": table,
        f"a.weight.quant_state.bitsandbytes__{codes}": np.frombuffer(
            json.dumps(state).encode(), np.uint8),
    }  # fmt: skip
    config = {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": codes}
    values = table[flat].reshape(-1, 64) * absmax[:, None]
    return arrays, {"quantization_config": config}, values.reshape(N, K)


CHECKPOINTS: dict[str, tuple[Callable[[], Any], str]] = {
    "gptq": (lambda: gptq(4), "u4g128:gptq:64x256"),
    "gptq of 8 bits": (lambda: gptq(8), "u8g128:gptq:64x256"),
    "gptq of 3 bits": (gptq_of_3_bits, "u3g128:gptq:64x256"),
    "gptq_v2": (lambda: gptq(4, "gptq_v2"), "u4g128:gptq_v2:64x256"),
    "marlin": (lambda: marlin(128), "s4g128:marlin:64x256"),
    "marlin by rows": (lambda: marlin(-1), "s4gk:marlin:64x256"),
    "awq": (awq_gemm, "u4g128:awq_gemm:64x256"),
    "awq gemv": (lambda: awq_gemv("gemv"), "u4g128:awq_gemv:64x256"),
    "awq gemv_fast": (lambda: awq_gemv("gemv_fast"), "u4sg128:awq_gemv_fast:64x256"),
    "compressed": (compressed, "s4g128_bf16:compressed:64x256"),
    "asymmetric": (lambda: asymmetric(4), "u4g128:compressed:64x256"),
    "asymmetric of 8 bits": (lambda: asymmetric(8), "u8g128:compressed:64x256"),
    "nvfp4": (lambda: nvfp4("compressed"), "nvfp4_divided:compressed:64x256"),
    "modelopt": (lambda: nvfp4("modelopt"), "nvfp4_times:modelopt:64x256"),
    "nf4": (lambda: bitsandbytes("nf4"), "bnb_nf4:bitsandbytes:64x256"),
    "fp4": (lambda: bitsandbytes("fp4"), "bnb_fp4:bitsandbytes:64x256"),
}


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_checkpoints_are_told_by_their_configs(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made, text = CHECKPOINTS[name]
    arrays, config, values = made()
    path = saved(tmp_path, {**arrays, "norm.weight": np.ones(5, np.float32)}, config)
    tensors = read_safetensors(path)
    assert str(tensors["a.weight"].desc) == text
    assert same(tensors["a.weight"].numpy(), values)
    assert tensors["norm.weight"].numpy().tolist() == [1] * 5
    assert cli.main(["inspect", str(path)]) == 0
    assert text in capsys.readouterr().out


EXACT = [("gptq", "awq_gemm"), ("awq", "gptq"), ("gptq", "gptq_v2"), ("gptq", "plain"),
         ("compressed", "u4g128_bf16:awq_gemm"), ("gptq of 3 bits", "plain"), ("marlin", "plain"),
         ("marlin by rows", "u4gk:awq_gemm"), ("awq gemv", "gptq"), ("awq gemv_fast", "plain"),
         ("asymmetric", "awq_gemm"), ("nvfp4", "swizzled"), ("modelopt", "plain"),
         ("nf4", "plain")]  # fmt: skip


@pytest.mark.parametrize(("name", "to"), EXACT)
def test_checkpoints_become_each_other_and_come_back(name: str, to: str, tmp_path: Path) -> None:
    """The same values, and at the end the same arrays."""
    arrays, config, values = CHECKPOINTS[name][0]()
    path = saved(tmp_path, arrays, config)
    other = tmp_path / "other.safetensors"
    done = pack_quantised(path, other, to).done
    assert str(done["a.weight"]).endswith(f"{to.rpartition(':')[2]}:64x256")
    (tmp_path / "config.json").unlink()
    assert same(read_safetensors(other)["a.weight"].numpy(), values)
    if "awq_gemm" in to:
        found = safetensors.load_file(other)
        assert found["a.qweight"].shape == (K, N // 8)
        assert found["a.qzeros"].shape == (len(found["a.scales"]), N // 8)
    unpack_quantised(other, tmp_path / "back.safetensors")
    before, back = (dict(deserialize((tmp_path / f"{n}.safetensors").read_bytes()))
                    for n in ("model", "back"))  # fmt: skip
    assert back == before  # types, shapes and bytes


def test_a_config_that_does_not_fit_is_told(tmp_path: Path) -> None:
    arrays, _, _ = gptq(4)
    path = saved(tmp_path, arrays, awq_gemm()[1])
    tensor = read_safetensors(path)["a.weight"]
    assert tensor.desc is None
    assert "expected" in tensor.note or "needs" in tensor.note


def test_what_a_config_names_and_nothing_here_knows_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arrays, _, _ = gptq(4)
    for config, why in (({"quant_method": "hqq"}, "says hqq, which"),
                        ({"quant_method": "awq", "version": "ipex"}, "says awq ipex,"),
                        ({"quant_method": "gptq", "checkpoint_format": "x"}, "says gptq x,"),
                        ({"quant_method": "bitsandbytes", "load_in_8bit": True},
                         "bitsandbytes 8 bits"),
                        ({"quant_algo": "FP8"}, "modelopt FP8")):  # fmt: skip
        path = saved(tmp_path, arrays, {"quantization_config": config})
        assert why in read_safetensors(path)["a.qweight"].note
        assert cli.main(["inspect", str(path)]) == 0
        assert capsys.readouterr().out.count(why) == 1
        with pytest.raises(cf.Error, match="not known here"):
            pack_quantised(path, tmp_path / "x.safetensors", "plain")


def test_scales_that_are_quantised_themselves_are_left_alone(tmp_path: Path) -> None:
    arrays, config, _ = bitsandbytes("nf4")
    arrays["a.weight.nested_absmax"] = np.ones(4, np.float32)
    assert "double quant" in read_safetensors(saved(tmp_path, arrays, config))["a.weight"].note
    arrays, config, _ = bitsandbytes("nf4")
    arrays["a.weight.quant_map"] = arrays["a.weight.quant_map"] * 2
    assert "table" in read_safetensors(saved(tmp_path, arrays, config))["a.weight"].note


def test_modelopts_own_configuration_is_read(tmp_path: Path) -> None:
    arrays, _, values = nvfp4("modelopt")
    config = {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "NVFP4"}}
    path = saved(tmp_path, arrays, config, "hf_quant_config.json")
    assert same(read_safetensors(path)["a.weight"].numpy(), values)


JUNK: list[Any] = [None, -1, 0, 3, 64, 1e9, "x", [], {}, [1], {"a": 1}, 2**70, "gptq", "awq",
                   "compressed-tensors", "mxfp4", "modelopt", "gemv", "gemv_fast", "bitsandbytes",
                   "nf4", "marlin", "NVFP4"]  # fmt: skip


def spoiled(config: Any, rng: random.Random) -> Any:
    """A configuration in which something is missing, or other than it should be."""
    if not isinstance(config, dict) or not config:
        return rng.choice(JUNK)
    key, fate = rng.choice(list(config)), rng.random()
    if fate < 0.2:
        return {k: v for k, v in config.items() if k != key}
    return {**config, key: rng.choice(JUNK) if fate < 0.6 else spoiled(config[key], rng)}


@pytest.mark.slow
def test_spoiled_checkpoints_are_read_or_refused(tmp_path: Path) -> None:
    """Configurations, arrays and packed files with faults: an `Error`, and nothing else."""
    rng = random.Random(0)  # noqa: S311  # faults need no secrecy
    out, back = tmp_path / "out.safetensors", tmp_path / "back.safetensors"
    for _ in range(400):
        arrays, config, _ = CHECKPOINTS[rng.choice(list(CHECKPOINTS))][0]()
        name = rng.choice(list(arrays))
        if rng.random() < 0.4:
            a = np.atleast_1d(arrays[name])
            arrays[name] = rng.choice([a[:-1], a[:0], a[None], a.reshape(-1), a.astype(np.int8)])
        for _ in range(rng.randrange(3)):
            config = spoiled(config, rng)
        for path in (out, back):
            path.unlink(missing_ok=True)
        with contextlib.suppress(cf.Error):
            pack_quantised(saved(tmp_path, arrays, config), out, rng.choice(["awq_gemm", "plain"]))
            damaged = bytearray(out.read_bytes())
            damaged[rng.randrange(1200)] = rng.randrange(256)
            out.write_bytes(damaged)
            unpack_quantised(out, back)


def test_what_is_no_path_is_refused() -> None:
    with pytest.raises(cf.InvalidArgument, match="path: got 5"):
        cf.read_safetensors(5)  # type: ignore[arg-type]


def test_what_a_table_orders_is_left_alone(tmp_path: Path) -> None:
    arrays, config, _ = gptq(4)
    arrays["a.g_idx"] = RNG.permutation(arrays["a.g_idx"])
    path = saved(tmp_path, arrays, config)
    tensor = read_safetensors(path)["a.weight"]
    assert tensor.desc is None
    assert "act-order" in tensor.note
    with pytest.raises(cf.Error, match="act-order"):
        pack_quantised(path, tmp_path / "x.safetensors", "awq_gemm")


def test_rows_that_fill_no_words_are_left_as_they_are(tmp_path: Path) -> None:
    """GPTQ has the zero points of eight rows in a word; the other tensors are packed."""
    path = tmp_path / "model.gguf"
    writer = pytest.importorskip("gguf").GGUFWriter(path, "llama")
    for rows in (16, 12):
        raw = random_bytes(described((rows, 64), "q4_0", "gguf"), 3).reshape(rows, -1)
        writer.add_tensor(f"of{rows}", raw, raw_dtype=2)
    finish_gguf(writer)
    done = pack_quantised(path, tmp_path / "out.safetensors", "u4g32:gptq")
    assert [*done.done] == ["of16"]
    assert "does not fill words of 32 bits" in done.untouched["of12"]


def test_bad_expressions_for_names_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arrays, config, _ = gptq(4)
    path, out = saved(tmp_path, arrays, config), tmp_path / "out.safetensors"
    assert cli.main(["pack", str(path), "--to", "plain", "--match", "[", "-o", str(out)]) == 1
    assert "--match '[' is no regular expression" in capsys.readouterr().err


def test_a_tensor_of_too_many_dims_has_no_descriptor(tmp_path: Path) -> None:
    path = tmp_path / "deep.safetensors"
    shape = (1,) * 13 + (16,)
    safetensors.save_file({"deep": np.zeros(shape, np.float32), "x": np.ones(16, np.int8)}, path)
    tensors = read_safetensors(path)
    assert tensors["deep"].desc is None
    assert "at most 12" in tensors["deep"].note
    assert tensors["x"].numpy().tolist() == [1] * 16


def test_a_record_that_is_none_is_told_with_its_tensor(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    safetensors.save_file({"b": np.zeros(16, np.float32)}, path, {"clformats:b": "garbage"})
    with pytest.raises(cf.Error, match=r"m\.safetensors, tensor b: cannot read .*garbage"):
        read_safetensors(path)


def test_experts_of_gpt_oss(tmp_path: Path) -> None:
    """Blocks of 32 columns, two codes in a byte; and their way to a .gguf's type."""
    e, n, k = 3, 8, 64
    codes = RNG.integers(0, 16, (e, n, k), np.uint8)
    scales = RNG.integers(100, 140, (e, n, k // 32), np.uint8)
    blocks = (codes[..., ::2] | codes[..., 1::2] << 4).reshape(e, n, k // 32, 16)
    path = saved(tmp_path, {"up_blocks": blocks, "up_scales": scales},
                 {"quantization_config": {"quant_method": "mxfp4"}})  # fmt: skip
    tensor = read_safetensors(path)["up"]
    assert str(tensor.desc) == "mx_f4_e2m1:gpt_oss:3x8x64"
    table = codes.astype(np.uint8).view(ml_dtypes.float4_e2m1fn).astype(np.float32)
    power = np.ldexp(np.float32(1), scales.astype(np.int32) - 127)
    assert np.array_equal(tensor.numpy(), table * np.repeat(power, 32, -1))
    pack_quantised(path, tmp_path / "ggml.safetensors", "mxfp4:gguf")
    found = read_safetensors(tmp_path / "ggml.safetensors")["up"]
    assert str(found.desc) == "mxfp4:gguf:3x8x64"
    assert np.array_equal(found.numpy(), tensor.numpy())
    unpack_quantised(tmp_path / "ggml.safetensors", tmp_path / "back.safetensors")
    back = safetensors.load_file(tmp_path / "back.safetensors")
    assert np.array_equal(back["up_blocks"], blocks)
    assert np.array_equal(back["up_scales"], scales)


def moved_to(raw: NDArray[np.uint8], src: Any, dst: Any) -> NDArray[np.uint8]:
    """The bytes of an equal type."""
    out = np.zeros(dst.nbytes, np.uint8)
    move_into(out, raw, src, dst)
    return out


@pytest.mark.parametrize(
    ("name", "layout", "why"),
    [
        ("u4g32", "gptq", ""),
        ("s4g32", "compressed", ""),
        ("q8_0", "gguf", ""),
        ("u4g16", "awq_gemm", "scales stand for 32 columns and 16"),
        ("q4_1", "gguf", r"q4_1 is d \* q \+ m, not scale"),
        ("u3g32", "gptq", "codes from 0 to 15 do not fit"),
        ("u4g32_bf16", "gptq", "scales are f16 and bf16"),
    ],
)
def test_types_become_each_other_only_with_equal_values(name: str, layout: str, why: str) -> None:
    src, dst = described((16, 64), "q4_0", "gguf"), described((16, 64), name, layout)
    raw = random_bytes(src, 2)
    if why:
        with pytest.raises(cf.Unsupported, match=why):
            moved_to(raw, src, dst)
        return
    found = moved_to(raw, src, dst)
    assert same(cf.unpack(found, dst), cf.unpack(raw, src))
    assert np.array_equal(moved_to(found, dst, src), raw)


def test_zero_points_must_be_one_where_the_type_has_one() -> None:
    src, dst = described((16, 64), "u4g32", "plain"), described((16, 64), "q4_0", "gguf")
    with pytest.raises(cf.Unsupported, match="zero points, not one"):
        moved_to(random_bytes(src, 1), src, dst)


def test_workers_of_dask_pack_the_tensors_of_a_checkpoint(tmp_path: Path) -> None:
    """The same file as without them; a worker that does not see the files says so."""
    distributed = pytest.importorskip("distributed", reason="pip install 'clformats[dask]'")
    arrays, config, _ = gptq(4)
    layers = {f"{layer}{n}": a for layer in ("", "b", "c") for n, a in arrays.items()}
    path = saved(tmp_path, layers, config)
    here, there = tmp_path / "here.safetensors", tmp_path / "there.safetensors"
    pack_quantised(path, here, "awq_gemm", Options(match="^[ab]"))
    with distributed.Client(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None
    ) as client:
        done = pack_quantised(path, there, "awq_gemm", Options(match="^[ab]"), client=client).done
    assert list(done) == ["a.weight", "ba.weight"]
    assert here.read_bytes() == there.read_bytes()
    with pytest.raises(cf.Error, match=r"does not see .*none\.gguf"):
        filled_by_worker(str(tmp_path / "none.gguf"), str(here), "a", "a", "flat", 0)
