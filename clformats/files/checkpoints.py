"""Quantised checkpoints in safetensors: which tensors are parts of one matrix, and how they lie.

`schemes` has how methods keep matrices. What does not fit has no descriptor, and says why.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
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
from .common import about, reading, shown
from .safetensors import SafetensorsFile
from .schemes import CONFIGS, SCHEMES, Scheme, config_of, schemes_of
from .stored import StoredTensor


def read_safetensors(path: str | Path) -> dict[str, StoredTensor]:
    """The tensors of a .safetensors file, by name; those of a quantised matrix as one.

    GPTQ, AWQ, Marlin, compressed-tensors (pack-quantized, nvfp4), gpt-oss's MXFP4, ModelOpt's NVFP4
    and bitsandbytes' nf4 and fp4 are told by ``config.json``, ``quantize_config.json`` or
    ``hf_quant_config.json`` beside the file; what `pack_file` packed has its descriptor in the
    file. Everything is mapped, so that nothing is read before it is used.
    Raises `Error` for a file that is damaged.
    """
    expect(path, str | Path, "path")
    return read_tensors(SafetensorsFile(Path(path)))


def read_tensors(file: SafetensorsFile) -> dict[str, StoredTensor]:
    """As `read_safetensors`, of an open file."""
    found: dict[str, StoredTensor] = {}
    parts: set[str] = set()
    with reading(file.path.parent / CONFIGS[0], "configuration", AttributeError):
        try:
            schemes, note = list(schemes_of(config_of(file.path))), ""
        except InvalidDescriptor as error:
            schemes, note = [], str(error)
    for scheme, bits, size in schemes:
        for name in [n for n in file.tensors if n.endswith(scheme.first) and n not in parts]:
            prefix = name.removesuffix(scheme.first)
            own = {f: prefix + end for f, end in scheme.ends.items()}
            if not all(n in file.tensors for n in own.values()):
                continue
            made = _matrix(file, prefix, scheme, bits, size)
            found[made.name] = made
            parts |= set(own.values())
    for name in file.records:
        if name not in file.tensors:
            found[name] = _recorded(file, name)
            parts |= set(found[name].arrays)
    plain = {n: _plain(file, n, note) for n in file.tensors if n not in parts}
    return {**plain, **found}


def parts_of(name: str, desc: QuantisedDesc) -> list[tuple[str, str, tuple[int, ...]]] | None:
    """Names, types and shapes of the tensors that are a matrix in a checkpoint, buffer by buffer.

    None for a layout that no checkpoint has. Raises `InvalidDescriptor` for dims that none has.
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
        leading = [_extent(s, sizes) for s in scheme.shapes[field.name]]
        rest, left = divmod(b.nbytes, nbytes * prod(s for s in leading if s != -1))
        if left:
            raise InvalidDescriptor(
                f"{desc} does not fill words of {8 * nbytes} bits, which checkpoints have: "
                f"{field.name} has {b.nbytes} bytes"
            )
        shape = tuple(rest if s == -1 else s for s in leading)
        found.append((name.removesuffix(".weight") + scheme.ends[field.name], code, shape))
    return found


def _extent(described: str | int, sizes: Mapping[str, int]) -> int:
    """A letter's extent, ``k`` or a part of it, ``k/16``; a number is itself."""
    letter, _, by = str(described).partition("/")
    return sizes[letter] // int(by or 1) if isinstance(described, str) else described


def _scale(desc: QuantisedDesc) -> str:
    return next(n for n in ("s", "e", "d") if n in desc.fields)


def _stored_type(scheme: Scheme, field: Field) -> tuple[str, int]:
    """The element type in the file, and its bytes."""
    known = {"f16": ("F16", 2), "bf16": ("BF16", 2), "f32": ("F32", 4), "f8_e4m3": ("F8_E4M3", 1)}
    words = ("I16", 2) if scheme.layout == "awq_gemv_fast" else ("I32", 4)
    whole = field.dtype.kind in ("unsigned", "signed")
    codes = words if whole else ("U8", 1)
    return known.get(field.dtype.name, codes)


def stored_as(file: SafetensorsFile, name: str, desc: Any) -> StoredTensor:
    """A tensor whose descriptor is known: one array, or the parts that its layout has in files.

    Raises `Error` where they are missing, `InvalidDescriptor` where they do not fit.
    """
    known = parts_of(name, desc) if isinstance(desc, QuantisedDesc) else None
    names = [n for n, _, _ in known or ()]
    if not names or any(n not in file.tensors for n in names):
        names = [name]
    if name not in file.tensors and names == [name]:
        raise Error(f"the record says {desc}, but there is no such tensor")
    own = {n: file.read(n) for n in names}
    if len(own) > 1:
        _check_sizes(desc, own)
    elif own[name].nbytes != desc.nbytes:
        raise Error(f"it has {own[name].nbytes} bytes, {desc} {desc.nbytes}")
    return StoredTensor(name, "packed", desc.dims, desc, own)


def _matrix(
    file: SafetensorsFile, prefix: str, scheme: Scheme, bits: int, size: int
) -> StoredTensor:
    """One quantised matrix; without a descriptor, with the reason, where the parts do not fit."""
    arrays = {f: file.read(prefix + end) for f, end in scheme.ends.items()}
    name = prefix + (".weight" if scheme.first.startswith(".") else "")
    kind = f"{scheme.layout}, {bits} bits"
    dims: tuple[int, ...] = arrays["q"].shape
    try:
        dims = _told(file, prefix, scheme) or _dims(scheme, arrays, bits)
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
    if len(q.shape) != 2:
        raise InvalidDescriptor(f"got words of shape {q.shape}, expected a matrix")
    known = {letter: size for field, shape in scheme.shapes.items()
             for letter, size in zip(shape, arrays[field].shape, strict=False)}  # fmt: skip
    k, n = (known.get(letter, 0) for letter in "kn")
    if not (k or n):
        raise InvalidDescriptor(f"got words of shape {q.shape}, and no scales that say its rows")
    return (n or values // k, k or values // n)


def _told(file: SafetensorsFile, prefix: str, scheme: Scheme) -> tuple[int, ...]:
    """The dims of a matrix, where the file says them: compressed-tensors, bitsandbytes."""
    if scheme.layout == "bitsandbytes":
        return _of_bitsandbytes(file, f"{prefix}.weight", scheme)
    name = f"{prefix}.weight_shape"
    return tuple(int(n) for n in file.read(name).ravel()) if name in file.tensors else ()


def _of_bitsandbytes(file: SafetensorsFile, name: str, scheme: Scheme) -> tuple[int, ...]:
    """The dims in ``quant_state``. Raises `InvalidDescriptor` for nested scales, other tables."""
    codes = scheme.kind.removeprefix("bnb_")
    state = f"{name}.quant_state.bitsandbytes__{codes}"
    if state not in file.tensors:
        raise InvalidDescriptor(f"there is no {shown(state)}, which says the shape")
    with reading(file.path, "quant_state", AttributeError, TypeError):
        told = json.loads(file.raw(state).tobytes())
        dims = tuple(int(n) for n in told["shape"])
        size, nested = int(told["blocksize"]), told.get("nested_blocksize")
    if nested or f"{name}.nested_absmax" in file.tensors:
        raise InvalidDescriptor("absmax is quantised itself (double quantisation): write the "
                                "checkpoint with bnb_4bit_use_double_quant=False")  # fmt: skip
    table = find(scheme.kind).fields["q"].dtype.table  # type: ignore[union-attr]  # it is one
    stored = file.read(f"{name}.quant_map") if f"{name}.quant_map" in file.tensors else table
    if size != 64 or not np.allclose(stored, table, atol=1e-6):
        raise InvalidDescriptor(f"got blocks of {size} and another table of values, expected 64 "
                                f"and bitsandbytes' {codes}")  # fmt: skip
    return dims


def _desc(
    scheme: Scheme, arrays: Mapping[str, NDArray[Any]], bits: int, size: int, dims: tuple[int, ...]
) -> QuantisedDesc:
    """The descriptor. Raises `InvalidDescriptor` where the library has no such type."""
    name = scheme.kind.format(B=bits, G="k" if size == -1 else size)
    if name != scheme.kind:
        type_name = str(arrays["s"].dtype)
        suffix = {"float16": "", "bfloat16": "_bf16"}.get(type_name)
        if suffix is None:
            raise InvalidDescriptor(f"scales are {type_name}, expected float16 or bfloat16")
        name += suffix
    kind = find(name)
    if kind is None or scheme.layout not in kind.layouts:
        raise InvalidDescriptor(f"there is no layout {scheme.layout} of a type {name} here")
    return QuantisedDesc(dims, kind, scheme.layout)


def _check_order(file: SafetensorsFile, prefix: str, columns: int, size: int) -> None:
    """Raise `InvalidDescriptor` where a table (act-order) names the group of each column."""
    group = columns if size == -1 else size
    for name in (f"{prefix}.g_idx", f"{prefix}.weight_g_idx"):
        found = file.read(name) if name in file.tensors else None
        if found is not None and not np.array_equal(found, np.arange(columns) // group):
            raise InvalidDescriptor("g_idx (act-order) names the group of each column: a table, "
                                    "which no digits say")  # fmt: skip


def _check_sizes(desc: QuantisedDesc, arrays: Mapping[str, NDArray[Any]]) -> None:
    for b, (end, array) in zip(desc.buffers, arrays.items(), strict=True):
        if array.nbytes != b.nbytes:
            raise InvalidDescriptor(f"{end} has {array.nbytes} bytes, {desc} needs {b.nbytes}")


def _check_shapes(desc: QuantisedDesc, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Raise `InvalidDescriptor` where an array is of another shape than the layout makes it."""
    for (end, array), (_, _, shape) in zip(arrays.items(), parts_of("", desc) or (), strict=True):
        if array.shape != shape and array.size > 1:
            raise InvalidDescriptor(f"{end} is of shape {array.shape}, expected {shape} in {desc}")


def _plain(file: SafetensorsFile, name: str, note: str) -> StoredTensor:
    """A tensor by itself; of integers, which words are, ``note`` says why it is no matrix."""
    tensor = file.tensors[name]
    kind, shape = tensor.type_name, tensor.shape
    if name in file.records:
        return _recorded(file, name)
    try:
        desc = MemoryDesc(shape, tensor.dtype or "u8")
    except Error as error:
        return StoredTensor(name, kind, shape, None, {name: file.raw(name)}, str(error))
    if tensor.dtype is None or not shape:
        note = "one value" if tensor.dtype else f"no element type {kind} here"
        return StoredTensor(name, kind, shape, None, {name: file.raw(name)}, note)
    own = file.read(name).reshape(-1)
    note = "" if tensor.dtype.kind == "float" else note
    return StoredTensor(name, kind, shape, desc, {name: own}, note)


def _recorded(file: SafetensorsFile, name: str) -> StoredTensor:
    """A packed tensor. Raises `Error` that names it, where its record is none or does not fit."""
    with about(file.path, name):
        return stored_as(file, name, MemoryDesc.parse(file.records[name].partition(" from ")[0]))
