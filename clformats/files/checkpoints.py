"""Quantised checkpoints in safetensors: which tensors are parts of one, as their configs say.

A linear layer is several tensors: ``X.qweight``, ``X.qzeros`` and ``X.scales`` of GPTQ and AWQ,
``X.weight_packed`` and ``X.weight_scale`` of compressed-tensors, ``X_blocks`` and ``X_scales`` of
gpt-oss. The configuration beside the file (``config.json``, or ``quantize_config.json``) says how
words are made: here it is a layout of a quantised type.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import Error, InvalidDescriptor, expect
from ..quantised import QuantisedDesc
from ..quantised.planes import Field
from ..quantised.types import find
from ..tensors.desc import MemoryDesc
from .common import reading, shown
from .safetensors import SafetensorsFile
from .stored import StoredTensor

CONFIGS = ("config.json", "quantize_config.json", "quant_config.json")


@dataclass(frozen=True, slots=True)
class Scheme:
    """How a method keeps a matrix: a layout, and for each field the end of a tensor's name.

    ``shapes`` are those in a file: letters for extents (n, k, e, g), and one number that follows.
    ``kind`` makes the name of the type of bits, group and suffix.
    """

    layout: str
    ends: Mapping[str, str]
    shapes: Mapping[str, tuple[str | int, ...]]
    kind: str

    @property
    def first(self) -> str:
        """The end of the name of the codes."""
        return self.ends["q"]


_WORDS = {"q": ".qweight", "z": ".qzeros", "s": ".scales"}
_COMPRESSED = {"q": ".weight_packed", "s": ".weight_scale"}
_BY_GROUP = {"z": ("g", -1), "s": ("g", -1)}
_BY_ROW = {"q": ("n", -1), "z": ("n", -1), "s": ("n", -1)}
SCHEMES = {
    "gptq": Scheme("gptq", _WORDS, {"q": (-1, "n"), **_BY_GROUP}, "u"),
    "gptq_v2": Scheme("gptq_v2", _WORDS, {"q": (-1, "n"), **_BY_GROUP}, "u"),
    "awq gemm": Scheme("awq_gemm", _WORDS, {"q": ("k", -1), **_BY_GROUP}, "u"),
    "awq gemv": Scheme("awq_gemv", _WORDS, _BY_ROW, "u"),
    "awq gemv_fast": Scheme(
        "awq_gemv_fast", {"q": ".qweight", "sz": ".qzeros", "s": ".scales"},
        {"q": (-1, "k"), "sz": (-1, "n"), "s": (-1, "n")}, "us",
    ),
    "pack-quantized": Scheme("compressed", _COMPRESSED, _BY_ROW, "s"),
    "pack-quantized with zero points": Scheme(
        "compressed", {**_COMPRESSED, "z": ".weight_zero_point"}, {**_BY_ROW, "z": (-1, "g")}, "u"
    ),
    "mxfp4": Scheme("gpt_oss", {"q": "_blocks", "e": "_scales"},
                    {"q": ("e", "n", "g", -1), "e": ("e", "n", -1)}, "mx_f4_e2m1"),
    "nvfp4-pack-quantized": Scheme(
        "compressed",
        {"q": ".weight_packed", "d": ".weight_scale", "t": ".weight_global_scale"},
        {"q": ("n", -1), "d": ("n", -1), "t": (-1,)}, "nvfp4_divided",
    ),
    "NVFP4": Scheme("modelopt", {"q": ".weight", "d": ".weight_scale", "t": ".weight_scale_2"},
                    {"q": ("n", -1), "d": ("n", -1), "t": ()}, "nvfp4_times"),
}  # fmt: skip


def read_safetensors(path: str | Path) -> dict[str, StoredTensor]:
    """The tensors of a .safetensors file, by name; those of a quantised matrix as one.

    GPTQ, AWQ, compressed-tensors (pack-quantized, nvfp4), gpt-oss's MXFP4 and ModelOpt's NVFP4 are
    told by ``config.json`` or ``quantize_config.json`` beside the file; what `pack_file` packed has
    its descriptor in the file. Everything is mapped, so that nothing is read before it is used.
    Raises `Error` for a file that is damaged.
    """
    expect(path, str | Path, "path")
    return read_tensors(SafetensorsFile(Path(path)))


def read_tensors(file: SafetensorsFile) -> dict[str, StoredTensor]:
    """As `read_safetensors`, of an open file."""
    found: dict[str, StoredTensor] = {}
    parts: set[str] = set()
    with reading(file.path.parent / CONFIGS[0], "configuration", AttributeError):
        schemes = list(_schemes(config_of(file.path)))
    for scheme, bits, size in schemes:
        for name in [n for n in file.tensors if n.endswith(scheme.first) and n not in parts]:
            prefix = name.removesuffix(scheme.first)
            own = {f: prefix + end for f, end in scheme.ends.items()}
            if not all(n in file.tensors for n in own.values()):
                continue
            made = _matrix(file, prefix, scheme, bits, size)
            found[made.name] = made
            parts |= set(own.values())
    for name, text in file.records.items():
        if name not in file.tensors:
            found[name] = stored_as(file, name, MemoryDesc.parse(text.partition(" from ")[0]))
            parts |= set(found[name].arrays)
    plain = {n: _plain(file, n) for n in file.tensors if n not in parts}
    return {**plain, **found}


def parts_of(name: str, desc: QuantisedDesc) -> list[tuple[str, str, tuple[int, ...]]] | None:
    """Names, types and shapes of the tensors that are a matrix in a checkpoint, buffer by buffer.

    None for a layout that no checkpoint has.
    """
    scheme = next((s for s in SCHEMES.values() if s.layout == desc.layout
                   and set(s.ends) == set(desc.fields)), None)  # fmt: skip
    if scheme is None:
        return None
    e, n, k = desc.extents
    found = []
    for b in desc.buffers:
        field = desc.fields[b.first]
        sizes = {"e": e, "n": n, "k": k, "g": desc.fields[_scale(desc)].extents[2]}
        code, nbytes = _stored_type(scheme, field)
        leading = [sizes[s] if isinstance(s, str) else s for s in scheme.shapes[field.name]]
        rest = b.nbytes // nbytes // prod(s for s in leading if s != -1)
        shape = tuple(rest if s == -1 else s for s in leading)
        found.append((name.removesuffix(".weight") + scheme.ends[field.name], code, shape))
    return found


def _scale(desc: QuantisedDesc) -> str:
    return next(n for n in ("s", "e", "d") if n in desc.fields)


def _stored_type(scheme: Scheme, field: Field) -> tuple[str, int]:
    """The element type in the file, and its bytes."""
    known = {"f16": ("F16", 2), "bf16": ("BF16", 2), "f32": ("F32", 4), "f8_e4m3": ("F8_E4M3", 1)}
    words = ("I16", 2) if scheme.layout == "awq_gemv_fast" else ("I32", 4)
    codes = ("U8", 1) if field.dtype.name in ("f4_e2m1", "f8_e8m0") else words
    return known.get(field.dtype.name, codes)


def stored_as(file: SafetensorsFile, name: str, desc: Any) -> StoredTensor:
    """A tensor whose descriptor is known: one array, or the parts that its layout has in files.

    Raises `Error` where they are missing, `InvalidDescriptor` where they do not fit.
    """
    known = parts_of(name, desc) if isinstance(desc, QuantisedDesc) else None
    names = [n for n, _, _ in known or ()] if name not in file.tensors else [name]
    if not names or any(n not in file.tensors for n in names):
        raise Error(f"{shown(str(file.path))} has no {shown(name)}, of which it says {desc}")
    own = {n: file.read(n) for n in names}
    if len(own) > 1:
        _check_sizes(desc, own)
    elif own[name].nbytes != desc.nbytes:
        raise Error(f"tensor {shown(name)} has {own[name].nbytes} bytes, {desc} {desc.nbytes}")
    return StoredTensor(name, "packed", desc.dims, desc, own)


def config_of(path: Path) -> dict[str, Any]:
    """What a configuration beside a file says of quantising; empty where there is none."""
    for name in CONFIGS:
        beside = path.parent / name
        if not beside.exists():
            continue
        with reading(beside, "configuration"):
            found = json.loads(beside.read_text(encoding="utf-8"))
            own = found.get(
                "quantization_config", found if "bits" in found or "w_bit" in found else None
            )
        if isinstance(own, dict):
            return own
    return {}


def _schemes(config: Mapping[str, Any]) -> Iterator[tuple[Scheme, int, int]]:
    """The schemes that a configuration speaks of, with bits and group; -1 is a whole row."""
    method = str(config.get("quant_method", "gptq" if "desc_act" in config else "")).lower()
    bits = int(config.get("bits") or config.get("w_bit") or 4)
    size = int(config.get("group_size") or config.get("q_group_size") or -1)
    if method == "gptq":
        version = str(config.get("checkpoint_format") or "gptq")
        if version in SCHEMES:
            yield SCHEMES[version], bits, size
    elif method == "awq":
        version = f"awq {config.get('version') or 'gemm'}".lower()
        if version in SCHEMES:
            yield SCHEMES[version], bits, size
    elif method == "mxfp4":
        yield SCHEMES["mxfp4"], 4, 32
    elif method == "modelopt" and "NVFP4" in str(config.get("quant_algo", "NVFP4")):
        yield SCHEMES["NVFP4"], 4, 16
    elif method == "compressed-tensors":
        yield from _compressed(config)


def _compressed(config: Mapping[str, Any]) -> Iterator[tuple[Scheme, int, int]]:
    for group in config.get("config_groups", {}).values():
        weights = group.get("weights") or {}
        named = str(group.get("format") or config.get("format"))
        if named == "pack-quantized" and not weights.get("symmetric", True):
            named += " with zero points"
        if named in SCHEMES:
            yield (
                SCHEMES[named],
                int(weights.get("num_bits") or 4),
                int(weights.get("group_size") or -1),
            )


def _matrix(
    file: SafetensorsFile, prefix: str, scheme: Scheme, bits: int, size: int
) -> StoredTensor:
    """One quantised matrix; without a descriptor, with the reason, where the parts do not fit."""
    arrays = {f: file.read(prefix + end) for f, end in scheme.ends.items()}
    name = prefix + (".weight" if scheme.first.startswith(".") else "")
    kind = f"{scheme.layout}, {bits} bits"
    dims: tuple[int, ...] = arrays["q"].shape
    try:
        dims = _dims(scheme, arrays, bits)
        if f"{prefix}.weight_shape" in file.tensors:
            dims = tuple(int(n) for n in file.read(f"{prefix}.weight_shape").ravel())
        desc = _desc(scheme, arrays, bits, size, dims)
        names = [b.first for b in desc.buffers]
        own = {prefix + scheme.ends[n]: arrays[n] for n in names}
        _check_sizes(desc, own)
        _check_shapes(desc, own)
        _check_order(file, prefix, dims[-1], size)
    except Error as error:
        named = {prefix + scheme.ends[f]: a for f, a in arrays.items()}
        return StoredTensor(name, kind, dims, None, named, str(error))
    return StoredTensor(name, kind, desc.dims, desc, own)


def _dims(scheme: Scheme, arrays: Mapping[str, NDArray[Any]], bits: int) -> tuple[int, ...]:
    """Rows (outputs) and columns (inputs) of a matrix, experts in front."""
    q = arrays["q"]
    if not q.size or bits < 1:
        raise InvalidDescriptor(f"got words of shape {q.shape}, of codes of {bits} bits")
    values = q.size * q.itemsize * 8 // bits
    if scheme.layout == "gpt_oss":
        return (*q.shape[:-2], q.shape[-2] * q.shape[-1] * 2)
    shape = scheme.shapes["q"]
    if len(q.shape) != 2:
        raise InvalidDescriptor(f"got words of shape {q.shape}, expected a matrix")
    k, n = (q.shape[shape.index(x)] if x in shape else 0 for x in ("k", "n"))
    return (n or values // k, k or values // n)


def _desc(
    scheme: Scheme, arrays: Mapping[str, NDArray[Any]], bits: int, size: int, dims: tuple[int, ...]
) -> QuantisedDesc:
    """The descriptor. Raises `InvalidDescriptor` where the library has no such type."""
    scale = arrays.get("s")
    name = scheme.kind
    if scale is not None:
        type_name = str(scale.dtype)
        suffix = {"float16": "", "bfloat16": "_bf16"}.get(type_name)
        if suffix is None:
            raise InvalidDescriptor(f"scales are {type_name}, expected float16 or bfloat16")
        name = f"{scheme.kind[0]}{bits}{scheme.kind[1:]}g{'k' if size == -1 else size}{suffix}"
    kind = find(name)
    if kind is None or scheme.layout not in kind.layouts:
        raise InvalidDescriptor(f"there is no layout {scheme.layout} of a type {name} here")
    return QuantisedDesc(dims, kind, scheme.layout)


def _check_order(file: SafetensorsFile, prefix: str, columns: int, size: int) -> None:
    """Raise `InvalidDescriptor` where a table (act-order) names the group of each column."""
    name = f"{prefix}.g_idx"
    if name not in file.tensors:
        return
    found = file.read(name)
    group = columns if size == -1 else size
    if not np.array_equal(found, np.arange(columns) // group):
        raise InvalidDescriptor("g_idx (act-order) names the group of each column: a table, which "
                                "no digits say")  # fmt: skip


def _check_sizes(desc: QuantisedDesc, arrays: Mapping[str, NDArray[Any]]) -> None:
    for b, (end, array) in zip(desc.buffers, arrays.items(), strict=True):
        if array.nbytes != b.nbytes:
            raise InvalidDescriptor(f"{end} has {array.nbytes} bytes, {desc} needs {b.nbytes}")


def _check_shapes(desc: QuantisedDesc, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Raise `InvalidDescriptor` where an array is of another shape than the layout makes it."""
    for (end, array), (_, _, shape) in zip(arrays.items(), parts_of("", desc) or (), strict=True):
        if array.shape != shape and array.size > 1:
            raise InvalidDescriptor(f"{end} is of shape {array.shape}, expected {shape} in {desc}")


def _plain(file: SafetensorsFile, name: str) -> StoredTensor:
    tensor = file.tensors[name]
    kind, shape = tensor.type_name, tensor.shape
    if name in file.records:
        return stored_as(file, name, MemoryDesc.parse(file.records[name].partition(" from ")[0]))
    if tensor.dtype is None or not shape:
        note = "one value" if tensor.dtype else f"no element type {kind} here"
        return StoredTensor(name, kind, shape, None, {name: file.raw(name)}, note)
    own = file.read(name).reshape(-1)
    return StoredTensor(name, kind, shape, MemoryDesc(shape, tensor.dtype), {name: own})
