"""The jobs: pack the tensors of a file, and restore them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import Error, InvalidDescriptor, InvalidFormat, pattern
from ..formats import Format
from ..host import packing as host
from ..tensors.desc import MemoryDesc
from ..tensors.dtypes import DTYPES, DType, as_dtype, convert
from .common import Change, Container, Mover, Options, Record, Tensor, about, axes_of, shown
from .kinds import open_file
from .run import JobStep, Summary, run

_REASONS_TOLD = 3


def pack_file(
    source: str | Path,
    target: str | Path,
    to: str | Format,
    *,
    order: str | Format | None = None,
    raw_type: object = None,
    options: Options | None = None,
) -> Summary:  # fmt: skip
    """Write ``target``: the tensors of ``source``, those that fit packed in the format ``to``.

    A tensor fits if it has the rank of the plain format ``order``, which names its axes (default:
    the logical order of ``to``), an element type of `clformats.DTYPES`, and a name that `Options`
    picks. Every other tensor stays as it is. ``raw_type`` is for `open_file`. ``target`` appears
    when all of it has been written and read back. Raises `Error` where nothing fits, the file
    cannot be read or the target cannot be written, and `Mismatch` where it reads back differently.
    """
    fmt = _blocked(to)
    plain = _default_order(fmt) if order is None else Format(order)
    axes = axes_of(plain)
    if plain.ndims != fmt.ndims:
        raise InvalidFormat(
            f"{plain} has {plain.ndims} dimensions ({', '.join(plain.dims)}), {fmt} has "
            f"{fmt.ndims} ({', '.join(fmt.dims)}): expected two formats of one rank"
        )
    options = options or Options()
    wanted = None if options.dtype is None else as_dtype(options.dtype)
    file = open_file(source, raw_type)
    reasons = _reasons(file, options.match, lambda t: _unfit(file, t, plain))

    def step(tensor: Tensor) -> JobStep:
        dims = tuple(tensor.shape[axes.index(d)] for d in range(plain.ndims))
        src = MemoryDesc(dims, tensor.dtype, plain)
        record = Record(MemoryDesc(dims, wanted or src.dtype, fmt), src)
        return _packing(file, tensor, record, options)

    steps, untouched = _planned(file, reasons, step)
    return run(file, Path(target), steps, untouched, options)


def unpack_file(
    source: str | Path,
    target: str | Path,
    *,
    desc: str | MemoryDesc | None = None,
    options: Options | None = None,
) -> Summary:  # fmt: skip
    """Write ``target``: the tensors of ``source``, the packed ones restored.

    They get back the shape, the order of axes and the element type that they had, or
    ``Options.dtype``; to the byte, unless pack converted them. ``desc`` is the descriptor of the
    elements in a ``.npy`` file that pack has not written. Raises as `pack_file` does.
    """
    given = _given(desc, Path(source))
    options = options or Options()
    wanted = None if options.dtype is None else as_dtype(options.dtype)
    is_raw = given is not None and given.packed.dtype.storage.isbuiltin != 1
    file = open_file(source, given.packed.dtype if given and is_raw else None)
    if given is not None and file.records:
        raise Error(f"{shown(str(source))} has its own descriptor: leave out --desc")
    reasons = _reasons(
        file, options.match, lambda t: None if given or t.name in file.records else "not packed"
    )

    def step(tensor: Tensor) -> JobStep:
        record = given or Record.parse(file.records[tensor.name])
        return _unpacking(file, tensor, record, wanted or record.source.dtype, options.mover)

    steps, untouched = _planned(file, reasons, step)
    return run(file, Path(target), steps, untouched, options)


# --- what is to be done ---------------------------------------------------------------------------


def _blocked(to: str | Format) -> Format:
    fmt = Format(to)
    if fmt.layout is None or fmt.kind == "wino":
        raise InvalidFormat(
            f"cannot pack into {fmt}: "
            + ("its values are transformed, not moved" if fmt.layout else "it has no layout")
        )
    return fmt


def _default_order(fmt: Format) -> Format:
    """The plain format whose axes lie in the logical order of ``fmt``."""
    try:
        return Format(fmt.letters)
    except InvalidFormat:
        return MemoryDesc((1,) * fmt.ndims, "f32").format


def _given(desc: str | MemoryDesc | None, source: Path) -> Record | None:
    if desc is None:
        return None
    if source.suffix != ".npy":
        raise Error(f"{shown(str(source))} has its own descriptors: --desc is for .npy files only")
    packed = MemoryDesc.parse(desc) if isinstance(desc, str) else desc
    packed.require_layout()
    return Record(packed, MemoryDesc(packed.dims, packed.dtype))


def _reasons(
    file: Container, match: str | None, unfit: Callable[[Tensor], str | None]
) -> dict[str, str | None]:
    """For each tensor None, or why it is left out. Raises `Error` where all are."""
    if match is not None and file.path.suffix == ".npy":
        raise Error(f"--match selects by name, {shown(str(file.path))} has a tensor without one")
    fits = pattern(match)
    reasons = {
        name: unfit(tensor) if fits.search(name) else "not matched"
        for name, tensor in file.tensors.items()
    }
    if all(reasons.values()):
        told = [f"{shown(n)} ({file.tensors[n]}): {why}" for n, why in reasons.items()]
        more = f"; and {len(told) - _REASONS_TOLD} more" if len(told) > _REASONS_TOLD else ""
        raise Error(
            f"nothing to do in {shown(str(file.path))}: "
            + ("; ".join(told[:_REASONS_TOLD]) or "it has no tensors") + more
        )  # fmt: skip
    return reasons


def _planned(
    file: Container, reasons: Mapping[str, str | None], step: Callable[[Tensor], JobStep]
) -> tuple[dict[str, JobStep], dict[str, str]]:
    """The steps, and the tensors that none is for. Raises `Error` that names the tensor."""
    steps = {}
    for name in (name for name, why in reasons.items() if why is None):
        with about(file.path, name):
            steps[name] = step(file.tensors[name])
    return steps, {name: why for name, why in reasons.items() if why is not None}


def _unfit(file: Container, tensor: Tensor, plain: Format) -> str | None:
    """Why a tensor cannot be packed, or None."""
    if tensor.name in file.records:
        return f"packed already, as {shown(file.records[tensor.name])}: unpack it first"
    if len(tensor.shape) != plain.ndims:
        return f"rank {len(tensor.shape)}, {plain} has {plain.ndims} ({', '.join(plain.dims)})"
    if tensor.dtype is None and re.fullmatch(r"\|?V\d+", tensor.type_name):
        return f"{_raw_types(tensor)}numpy saves types that it lacks as raw bytes"
    if tensor.dtype is None:
        return f"elements of type {tensor.type_name} are not taken from {file.path.suffix} files"
    return None


def _raw_types(tensor: Tensor) -> str:
    """The types that elements may have where only their size is known."""
    size = np.dtype(tensor.type_name).itemsize
    known = [d for d in map(as_dtype, DTYPES) if d.numpy.isbuiltin != 1]
    fitting = [f"--as {d}" for d in known if d.numpy.itemsize == size]
    return f"say what they are by {' or '.join(fitting)}: " if fitting else ""


def _packing(file: Container, tensor: Tensor, record: Record, options: Options) -> JobStep:
    axes, packed = axes_of(record.source.format), record.packed
    logical = np.argsort(axes)

    def made() -> NDArray[Any]:
        array = file.read(tensor.name)
        _check_no_words(array, packed.dtype)
        if lost := _beyond(array, packed.dtype):
            options.watch.saturated(tensor, lost, packed.dtype)
        return options.mover.pack(array.transpose(logical), packed)

    def expected() -> NDArray[Any]:
        array = file.read(tensor.name).transpose(logical)
        return convert(array, record.source.dtype, packed.dtype)

    def found(result: Container) -> NDArray[Any]:
        return host.unpack(
            result.read(tensor.name), Record.parse(result.records.get(tensor.name, "")).packed
        )

    stored = as_dtype(packed.dtype.storage)
    change = Change(stored, (host.storage_size(packed),), record, made)
    return JobStep(tensor, record.source, packed, change, expected, found)


def _beyond(array: NDArray[Any], dtype: DType) -> int:
    """How many finite elements lie beyond the least or the largest value of a type."""
    own = as_dtype(array.dtype)
    least, most = (-dtype.largest, dtype.largest) if dtype.is_float else dtype.limits
    if own == dtype or (not own.is_float and own.limits[0] >= least and own.limits[1] <= most):
        return 0
    with np.errstate(invalid="ignore"):  # numpy warns of signalling NaNs
        values = array.astype(np.float64 if own.is_float else np.int64)
    return int(((values < least) | (values > most))[np.isfinite(values)].sum())


def _check_no_words(array: NDArray[Any], dtype: DType) -> None:
    """Raise `InvalidDescriptor` for words of 32 bits as elements of a few bits: all would saturate.

    Checkpoints of GPTQ and AWQ keep eight codes of 4 bits in a word.
    """
    if array.dtype != np.int32 or dtype.is_float or dtype.bits > 4 or not array.size:
        return
    least, most = dtype.limits
    outside = _beyond(array, dtype)
    if 2 * outside > array.size:
        raise InvalidDescriptor(
            f"{outside} of {array.size} integers of 32 bits are beyond {dtype}, {least} to {most}: "
            f"they look like words of several codes. With config.json beside the file name a "
            f"layout, such as --to awq_gemm; else describe them as a quantised tensor, such as "
            f"cf.MemoryDesc((n, k), 'u4g128', 'gptq'), whose join() takes such words"
        )


def _unpacking(
    file: Container, tensor: Tensor, record: Record, dtype: DType, mover: Mover
) -> JobStep:
    packed = record.packed
    stored, size = as_dtype(packed.dtype.storage), host.storage_size(packed)
    if tensor.dtype != stored or tensor.shape != (size,):
        raise InvalidDescriptor(f"the tensor is {tensor}, {packed} needs {stored} {size}")
    if dtype.name not in file.types:
        raise Error(f"a {file.path.suffix} file cannot have elements of type {dtype}")
    axes = axes_of(record.source.format)

    def restored(by: Mover) -> NDArray[Any]:
        array = by.unpack(file.read(tensor.name), packed).transpose(axes)
        return convert(array, packed.dtype, dtype)

    shape = tuple(packed.dims[d] for d in axes)
    change = Change(dtype, shape, None, lambda: restored(mover))
    after = MemoryDesc(packed.dims, dtype, record.source.format)
    return JobStep(
        tensor, packed, after, change, lambda: restored(host), lambda r: r.read(tensor.name)
    )
