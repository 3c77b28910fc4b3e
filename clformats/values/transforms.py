"""Reorders that transform the values: to a Winograd format and, where that is defined, back.

A Winograd format holds transformed values, so its descriptors have the dims of the transformed
tensor: 3 x 3 weights become 4 x 4 ones. `winograd` makes that descriptor from the one of the
weights or the data, and a reorder between the two transforms. A reorder between descriptors of the
same dims moves values as they are, whatever the formats.

Transforms compute in f32, each step rounded, in the order of `clformats.formats.winograd`. Source
values are first converted to f32, results finally to the destination's type.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidDescriptor, Unsupported, expect
from ..formats.digits import RUNTIME
from ..formats.format import Format
from ..formats.winograd import BACK, FORWARD, S8_SCALE, Matrix, Transform, method
from ..tensors.desc import MemoryDesc
from ..tensors.dtypes import as_array, as_dtype, convert
from ..tensors.geometry import int_tuple, relaid
from ..tensors.given import as_desc
from .attr import Attr

Floats = NDArray[np.float32]
_F32 = as_dtype("f32")
_Y, _X = 2, 3
FILTER = 3
"""The most taps of a filter along either axis."""


@dataclass(frozen=True, slots=True)
class Step:
    """A transform between two descriptors.

    ``lower``: the source's padding before y and x, which windows of data cover as zeros. ``scale``
    multiplies each result before it is converted to the destination's type.
    """

    transform: Transform
    lower: tuple[int, int]
    scale: float

    def __str__(self) -> str:
        return self.transform.name + (f", times {self.scale:g}" if self.scale != 1 else "")


def winograd(
    desc: MemoryDesc | str,
    format: str | Format,  # the field's word for it
    dtype: object = None,
    *,
    padded: Sequence[int] | None = None,
) -> MemoryDesc:
    """The descriptor of the tensor that ``desc`` is transformed to, or back to, in ``format``.

    ``winograd(weights, "winograd_2x3_s1_weights")`` is for weights of dims (o, i, 3, 3), in any
    format. ``winograd(data, "winograd_2x3_s1_data")`` is for data (b, f, y, x), whose clDNN padding
    is that of the convolution: windows of 4 columns begin every 2 columns of the padded tensor. If
    ``desc`` is the transformed tensor, ``format`` is that of the weights or of the outputs.

    ``dtype`` is by default that of ``desc``. ``padded`` gives the least (output, input) channels of
    the memory, DNNL's ``oc`` and ``ic``; the additional ones are zero.

    Raises `InvalidDescriptor` for dims that cannot be transformed, and `Unsupported` (code
    NO_INVERSE) where nothing is defined to come back.
    """
    desc = as_desc(desc, "desc")
    expect(format, str | Format, "format")
    fmt = Format(format)
    transform = _transform(desc, fmt)
    result = MemoryDesc(_dims(desc, transform), desc.dtype if dtype is None else dtype, fmt)
    if padded is None:
        return result
    channels = int_tuple("padded", padded)
    if len(channels) != _Y:
        raise InvalidDescriptor(f"padded: got {channels}, expected (output, input) channels")
    least = (*channels, *result.dims[_Y:])
    extents = [max(pair) for pair in zip(least, result.dims, strict=True)]
    whole = fmt.structure.padded(extents)
    return MemoryDesc.of(relaid(result.geometry, padded=whole), result.dtype)


def joins_winograd(a: str | Format, b: str | Format) -> bool:
    """Whether one of the two is a Winograd format and the other is not."""
    return bool(method(str(a))) != bool(method(str(b)))


def between(src: MemoryDesc, dst: MemoryDesc, *, wanted: bool | None = None) -> Step | None:
    """The transform that a reorder from ``src`` to ``dst`` is; None where it moves values.

    ``wanted`` True asks for a transform, False for a move; by default the dims tell: equal ones say
    move. Raises `InvalidDescriptor` (codes TRANSFORM_DIMS, and MOVE_OR_TRANSFORM where the dims are
    equal and fit a transform as well) and `Unsupported` (code NO_INVERSE).
    """
    if wanted is False or not (wanted or joins_winograd(src.format, dst.format)):
        return None
    if wanted is None and src.dims == dst.dims:
        forward = FORWARD.get(method(dst.format.name))
        if forward is None or _fitting(src, forward) != dst.dims:
            return None
        raise InvalidDescriptor(
            f"{src} -> {dst} can mean a move of values that are transformed already, and a "
            f"transform: say transform=False or transform=True",
            code="MOVE_OR_TRANSFORM",
        )
    transform = _transform(src, dst.format)
    expected = _dims(src, transform)
    # The last window of outputs may have one too many.
    odd = (*expected[:_X], expected[_X] - 1) if transform.step and not transform.overlaps else ()
    if dst.dims not in (expected, odd):
        raise InvalidDescriptor(
            f"{transform.name} of {src} has dims {expected}, got the destination {dst}: take "
            f"cf.winograd(source, {dst.format.name!r})",
            code="TRANSFORM_DIMS",
        )
    lower = src.padded_offsets[_Y:] if transform.overlaps else (0, 0)
    scale = S8_SCALE.get(method(dst.format.name), 1.0) if dst.dtype.name == "s8" else 1.0
    return Step(transform, (lower[0], lower[1]), float(np.float32(scale)))


def _transform(src: MemoryDesc, dst: Format) -> Transform:
    """The transform between the two formats, to or from the one of Winograd's.

    Raises `InvalidDescriptor` and `Unsupported`.
    """
    known, target = method(src.format.name), method(dst.name)
    if not joins_winograd(src.format, dst) or dst.ndims != src.ndims:
        raise InvalidDescriptor(
            f"a transform leads from (o, i, y, x) or (b, f, y, x) to a Winograd format or back, "
            f"got {src} and {dst}",
            code="TRANSFORM_DIMS",
        )
    if target:
        return FORWARD[target]
    if known not in BACK or (known in S8_SCALE and src.dtype.name == "s8"):
        raise Unsupported(
            "NO_INVERSE",
            f"{src} cannot be transformed back: its values were rounded. Keep the original tensor",
        )
    return BACK[known]


def _dims(src: MemoryDesc, transform: Transform) -> tuple[int, ...]:
    """The dims of the result; raises `InvalidDescriptor` where the source does not fit."""
    dims = _fitting(src, transform)
    if dims is None:
        raise InvalidDescriptor(
            f"{transform.name} does not fit {src}: {_wanted(transform)}", code="TRANSFORM_DIMS"
        )
    return dims


def _fitting(src: MemoryDesc, transform: Transform) -> tuple[int, ...] | None:
    """The dims of the result; None where the source does not fit."""
    sizes = {"y": src.dims[_Y], "x": src.dims[_X]}
    if RUNTIME in sizes.values():
        raise InvalidDescriptor(f"{src} has y or x known at execution only: give them first")
    if transform.overlaps:
        sizes = {"y": sizes["y"] + sum(src.padding[_Y]), "x": sizes["x"] + sum(src.padding[_X])}
    along, inner, step = sizes.pop(transform.src_axis), transform.inner, transform.step
    (across,) = sizes.values()
    if step is None:
        # A filter that is wider across is transformed already.
        count, fits = 1, along == inner.taps and (across <= FILTER or transform.outer is not None)
    elif transform.overlaps:
        count, fits = -(-(along - inner.taps + step) // step), along > inner.taps - step
    else:
        count, fits = along // step, along % step == 0
    if transform.outer:
        fits = fits and across == transform.outer.taps
        across = len(transform.outer.rows)
    if not fits and 0 not in src.dims:
        return None
    along = max(count, 0) * len(inner.rows)
    tail = (across, along) if transform.dst_axis == "x" else (along, across)
    return (*src.dims[:_Y], *tail)


def _wanted(transform: Transform) -> str:
    inner, axis = transform.inner, transform.src_axis
    if transform.overlaps:
        return f"{axis} with its padding must be 3 or more"
    if transform.step:
        return f"{axis} must be a multiple of {transform.step}"
    other = "x" if axis == "y" else "y"
    both = f"be {transform.outer.taps}" if transform.outer else f"at most {FILTER}"
    return f"{axis} must be {inner.taps} and {other} {both}"


# --- the values -----------------------------------------------------------------------------------


def transform(
    array: Any,
    src: MemoryDesc | str,
    dst: MemoryDesc | str,
    *,
    transform: bool | None = None,
) -> NDArray[Any]:
    """What a reorder from ``src`` to ``dst`` makes of the logical values ``array``, in numpy.

    ``array`` is of shape ``src.dims`` and type ``src.dtype``; the result is of shape ``dst.dims``
    and type ``dst.dtype``. Where the reorder moves values, they are converted only, and multiplied
    by the ``scale_adjust`` of the destination's `Extra`. A kernel gives the same bits, NaN payloads
    apart. Raises as `between`.
    """
    src, dst = as_desc(src, "src"), as_desc(dst, "dst")
    expect(transform, bool | None, "transform")
    array = as_array(array)
    if array.shape != src.dims or array.dtype != src.dtype.numpy:
        raise InvalidDescriptor(
            f"got an array of {array.dtype} and shape {array.shape}, expected {src.dtype} and "
            f"{src.dims}, the dims of {src}"
        )
    step = between(src, dst, wanted=transform)
    if step is None:
        adjust = dst.extra.scale_adjust if dst.extra else 1.0
        attr = Attr() if adjust == 1 else Attr(src_scale=adjust)
        return attr.apply(array, src.dtype, dst.dtype)
    values = convert(array, src.dtype, _F32)
    if step.transform.overlaps:
        values = np.pad(values, ((0, 0), (0, 0), *src.padding[_Y:]))
    with np.errstate(all="ignore"):
        result = _transformed(values, step.transform)[..., : dst.dims[_X]]
        if step.scale != 1:
            result = result * np.float32(step.scale)
    return convert(result, _F32, dst.dtype)


def _transformed(values: Floats, t: Transform) -> Floats:
    """The last two axes, y and x, transformed."""
    turned = values if t.src_axis == "x" else values.swapaxes(-1, -2)
    windows = _windows(turned, t)
    result = _apply(t.inner, windows)
    result = result.reshape(*turned.shape[:-1], -1)
    if t.outer:
        rows = [result[..., k, :] for k in range(t.outer.taps)]
        result = np.moveaxis(_apply(t.outer, rows), -1, -2)
    return result if t.dst_axis == "x" else result.swapaxes(-1, -2)


def _windows(values: Floats, t: Transform) -> list[Floats]:
    """For each tap the values that it has in all windows along the last axis."""
    taps, step = t.inner.taps, t.step or t.inner.taps
    count = max(-(-(values.shape[-1] - taps + step) // step), 0)
    missing = max((count - 1) * step + taps - values.shape[-1], 0)
    whole = np.pad(values, (*((0, 0),) * (values.ndim - 1), (0, missing)))
    return [whole[..., k : k + (count - 1) * step + 1 : step] for k in range(taps)]


def _apply(matrix: Matrix, taps: Sequence[Floats]) -> Floats:
    """Every row times the taps; rows become the last axis."""
    return np.stack([matrix.apply(k, taps, np.float32) for k in range(len(matrix.rows))], axis=-1)
