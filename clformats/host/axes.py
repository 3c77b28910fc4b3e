"""Arrays whose axes stand in another order than a tensor's dimensions: photographs, mostly.

``axes="yxf"`` or ``"hwc"`` says what the axes of an array are, outermost first, by the letters of
clDNN's or oneDNN's names. A dimension that is not named has size 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from numpy.typing import NDArray

from ..errors import InvalidArgument, InvalidDescriptor, InvalidFormat, expect, shown
from ..formats import Format
from ..formats.registry import takes_rank

_ONEDNN = str.maketrans("bfzyx", "ncdhw")
_DATA = ("nc", "ncw", "nchw", "ncdhw")
_WEIGHTS = ("oi", "oiw", "oihw", "oidhw", "goi", "goiw", "goihw", "goidhw")
_LEAST_SIDE = 32
_PIXELS = (1, 2, 3, 4)


def in_order(
    array: NDArray[Any], axes: str | Sequence[str] | None, format: Any
) -> NDArray[Any]:  # the field's word
    """A view of ``array`` with the dimensions of the tensor in their logical order.

    Without ``axes`` the array as it is, refused where it looks like images with channels last and
    ``format`` keeps channels last: then the two orders differ and nothing would show it. Raises
    `InvalidDescriptor`.
    """
    if isinstance(axes, tuple | list) and all(isinstance(a, str) for a in axes):
        axes = "".join(axes)
    if isinstance(axes, tuple | list):
        raise InvalidArgument(
            f"axes: got {shown(axes)}, expected letters of the array's axes, outermost first, such "
            f"as 'nhwc': numbers do not say which of two orders they count"
        )
    expect(axes, str | None, "axes")
    assert axes is None or isinstance(axes, str)  # noqa: S101  # as expect has found
    if axes is None:
        _check_is_no_photograph(array, format)
        _check_rank(array, format)
        return array
    given, order = _letters(axes, format)
    if len(set(given)) != len(given) or len(given) != array.ndim:
        raise InvalidDescriptor(
            f"got axes={axes!r} for an array of shape {array.shape}, expected {array.ndim} "
            f"different letters, such as 'yxf' or 'hwc' for a photograph"
        )
    order = order or _logical(given, axes, format)
    view: NDArray[Any] = array.transpose([given.index(c) for c in order if c in given])
    missing = tuple(k for k, c in enumerate(order) if c not in given)
    for k in missing:
        view = view[(slice(None),) * k + (None,)]
    return view


def _letters(axes: str, format: Any) -> tuple[str, str]:  # the field's word for it
    """What the axes are called, and the format's dimensions if it has all of these letters.

    Else oneDNN's letters. A format's own come first: the w of bfwzyx is not oneDNN's, which is x.
    """
    given = axes.lower()
    if format is not None and not takes_rank(str(format)):
        own = "".join(Format(format).dims)
        if set(given) <= set(own):
            return given, own
    return given.translate(_ONEDNN), ""


def _logical(given: str, axes: str, format: Any) -> str:  # the field's word for it
    """The letters of the tensor's dimensions in logical order."""
    ranks = _WEIGHTS if set(given) & set("oi") else _DATA
    fits = [order for order in ranks if set(given) <= set(order)]
    if format is not None:
        wanted = Format(format, None if fits == [] else _rank_of_meta(format, fits[0]))
        own = "".join(wanted.dims).translate(_ONEDNN)
        if set(given) <= set(own):
            return own
        fits = [order for order in fits if len(order) == wanted.ndims and wanted.role == "generic"]
    if not fits:
        raise InvalidDescriptor(
            f"got axes={axes!r} for {format or 'a tensor'}: expected letters of b f z y x or n c d "
            f"h w, of weights g o i z y x or g o i d h w, that the format has"
        )
    # A photograph is a tensor of four dimensions.
    return next((o for o in fits if len(o) > 3), fits[0]) if format is None else fits[0]


def _rank_of_meta(format: Any, order: str) -> int | None:  # the field's word for it
    return len(order) if takes_rank(str(format)) else None


def _check_is_no_photograph(array: NDArray[Any], format: Any) -> None:  # the field's word for it
    if array.ndim != 4 or format is None or array.shape[3] not in _PIXELS:
        return
    if min(array.shape[1:3]) < _LEAST_SIDE or not _keeps_channels_last(format):
        return
    n, h, w, c = array.shape
    raise InvalidDescriptor(
        f"got an array of shape {array.shape} for {format}: sizes are taken in logical order, as "
        f"{n} images of {h} channels, {w} by {c}. If its axes are images, height, width and "
        f"channels say axes='nhwc'; if not, axes='nchw'"
    )


def _check_rank(array: NDArray[Any], format: Any) -> None:  # the field's word for it
    """Refuse an array with too few axes, such as one image without a batch."""
    if format is None or not array.ndim or takes_rank(str(format)):
        return
    fmt = Format(format)
    if fmt.layout is None or fmt.role == "generic" or array.ndim >= fmt.ndims:
        return
    letters = fmt.dims[-array.ndim :]
    raise InvalidDescriptor(
        f"got {array.ndim} dims {array.shape}, but {fmt} has {fmt.ndims}: expected "
        f"({', '.join(fmt.dims)}) in this order. If the axes of the array are "
        f"{', '.join(letters)}, say axes={''.join(letters)!r}: what is not named has size 1"
    )


def _keeps_channels_last(format: Any) -> bool:  # the field's word for it
    with suppress(InvalidFormat):  # what is wrong is told where the format is used
        return Format(format, 4).onednn == "acdb"
    return False
