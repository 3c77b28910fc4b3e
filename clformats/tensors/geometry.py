"""The geometry of a tensor: dims, format, and the size and stride of each digit.

A `Geometry` is a descriptor without its element type. It is made and checked by one of three
functions: by format (dense, possibly with clDNN's padding), by strides, or by oneDNN's blocking
numbers, which the operations on descriptors need.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod

from ..errors import InvalidDescriptor, Unsupported, expect
from ..formats.digits import MAX_NDIMS, RUNTIME, Digit, Layout, Placed, place, round_up
from ..formats.format import Format
from ..formats.names import ABSTRACT
from ..formats.registry import takes_rank
from ..formats.sums import Extra

_MOST_BITS = 8 * (2**63 - 1)
Padding = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Geometry:
    """Where elements lie, in elements; see `clformats.tensors.desc.MemoryDesc` for the fields."""

    dims: tuple[int, ...]
    format: Format
    placed: tuple[Placed, ...]
    padded_dims: tuple[int, ...]
    padding: Padding
    offset0: int = 0
    extra: Extra | None = None


def by_format(
    dims: Iterable[int],
    name: str | Format | None = None,
    padding: Iterable[tuple[int, int]] | None = None,
) -> Geometry:
    """A dense geometry in a format; row-major without one."""
    if str(name) == "undef":
        dims = ()  # oneDNN's rule: the empty descriptor, whatever else was given
    dims = check_dims(dims)
    fmt = _format_for(dims, name)
    pads = _check_padding(padding, fmt, len(dims))
    if fmt.layout is None:
        if fmt.kind == "any" and RUNTIME in dims:
            raise InvalidDescriptor(f"format any with unknown dims {dims}: give the dims")
        return Geometry(dims, fmt, (), dims, pads)
    padded = fmt.layout.padded(extents(dims, pads))
    return Geometry(dims, fmt, place(fmt.layout, padded), padded, pads)


def with_extra(g: Geometry, extra: Extra) -> Geometry:
    """Int8 weights followed by sums. Raises `InvalidDescriptor` where that is impossible."""
    expect(extra, Extra, "extra")
    whole = extra.mask >> len(g.dims) or not 0 < extra.mask < (1 << len(g.dims)) - 1
    if isinstance(extra.mask, bool) or whole:
        raise InvalidDescriptor(
            f"the mask of sums behind weights of dims {g.dims} is {extra.mask!r}: expected the "
            f"bits of the output channels, 1, or 3 with groups; the others are summed over",
            code="EXTRA",
        )
    if not (extra.s8s8 or extra.asymmetric or extra.scale_adjust != 1):
        raise InvalidDescriptor(f"{extra} asks for nothing: leave it out", code="EXTRA")
    if not 2.0**-126 <= extra.scale_adjust < 2.0**127:
        raise InvalidDescriptor(
            f"got scale_adjust {extra.scale_adjust!r}, expected a factor above 0 that f32 can hold",
            code="EXTRA",
        )
    plain = g.format.kind == "blocked" and g.format.structure.is_tag
    if not plain or g.offset0 or any(map(any, g.padding)):
        raise InvalidDescriptor(
            f"sums follow weights in whole tensors of oneDNN's formats, without clDNN's padding, "
            f"got {g.format}",
            code="EXTRA",
        )
    return replace(g, extra=extra)


def extents(dims: Sequence[int], padding: Padding) -> list[int]:
    """The dims with their lower and upper padding."""
    return [n if n == RUNTIME else sum(pad) + n for n, pad in zip(dims, padding, strict=True)]


def by_strides(dims: Iterable[int], strides: Iterable[int]) -> Geometry:
    """A plain geometry with one stride for each dimension, legal by oneDNN's rule."""
    dims, strides = check_dims(dims), int_tuple("strides", strides)
    if len(strides) != len(dims):
        raise InvalidDescriptor(
            f"got {len(strides)} strides {strides} for {len(dims)} dims {dims}: expected one each"
        )
    if 0 not in dims and RUNTIME not in (*dims, *strides):
        check_overlap(dims, strides)
    return by_blocking(dims, dims, strides)


def by_blocking(
    dims: Sequence[int],
    padded: Sequence[int],
    strides: Sequence[int],
    blocks: Sequence[tuple[int, int]] = (),
    offset0: int = 0,
) -> Geometry:
    """From oneDNN's numbers: padded dims, outer strides, and the blocks as (size, dimension)."""
    if not dims:
        return Geometry((), Format("undef"), (), (), ())
    ndims = len(dims)
    step = [1] * ndims
    inner: list[Digit] = []
    for size, d in reversed(blocks):
        inner.insert(0, Digit(d, size, step[d]))
        step[d] *= size
    counts = [-(-n // s) for n, s in zip(padded, step, strict=True)]
    layout = Layout(ndims, (*(Digit(d, None, step[d]) for d in _order(counts, strides)), *inner))
    dense = {p.digit: p for p in place(layout, padded)}
    placed = tuple(
        dense[digit] if digit.size is not None else _placed(digit, dense[digit].size, strides)
        for digit in layout.digits
    )
    pads = ((0, 0),) * ndims
    return Geometry(tuple(dims), Format.from_layout(layout), placed, tuple(padded), pads, offset0)


def blocks_of(g: Geometry) -> tuple[tuple[int, int], ...]:
    """The blocks as (size, dimension), outermost first. Only oneDNN's blocked formats have them.

    Raises `Unsupported` (code NOT_A_TAG) for others, and where blocks have strides of their own.
    """
    if g.format.layout is None or not g.format.layout.is_tag:
        raise Unsupported(
            "NOT_A_TAG",
            f"{g.format} is no blocked format in oneDNN's sense: its blocks cannot be listed; "
            f"the digits of a descriptor are in .placed",
        )
    blocks = [p for p in g.placed if p.digit.size is not None]
    for k, p in enumerate(blocks):
        dense = prod(inner.size for inner in blocks[k + 1 :])
        if p.size > 1 and p.stride != dense:
            raise Unsupported(
                "NOT_A_TAG",
                f"the blocks of {g.format} have gaps, which oneDNN's notation cannot say: a block "
                f"of {p.size} has the stride {p.stride}, not {dense}; see .placed",
            )
    return tuple((p.size, p.digit.dims[0]) for p in blocks)


def strides_of(g: Geometry) -> tuple[int, ...]:
    """Per logical dimension the stride of its outermost digit, in elements."""
    result = [0] * len(g.dims)
    for p in g.placed:
        if p.digit.size is None:
            for d in p.digit.dims:
                result[d] = p.stride
    return tuple(result)


def _placed(digit: Digit, size: int, strides: Sequence[int]) -> Placed:
    stride = strides[digit.dims[0]]
    return Placed(digit, size, stride, fixed_stride=stride == 1)


def _order(counts: Sequence[int], strides: Sequence[int]) -> list[int]:
    """The dimensions by falling stride, then by falling size, as oneDNN's log orders them.

    With unknown strides they keep the logical order.
    """

    def rank(d: int) -> tuple[int, int, int]:
        if strides[d] == RUNTIME:
            return -(2**200), counts[d] == 1, d
        return -strides[d], -counts[d], d

    return sorted(range(len(counts)), key=rank)


def relaid(
    g: Geometry,
    padded: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    offset: Sequence[int] = (0,),
) -> Geometry:
    """The same format with other numbers, as a submemory has them.

    ``strides`` has one number for each digit; of a format in oneDNN's notation it may have one for
    each dimension. ``offset`` is a sequence of one number.
    """
    layout = g.format.structure
    padded = tuple(g.padded_dims if padded is None else padded)
    counts = {len(layout.digits), *([len(g.dims)] if layout.is_tag else [])}
    if strides is not None and layout.tail:
        raise InvalidDescriptor(f"{g.format} has two orders: its strides cannot be given")
    if (
        len(padded) != len(g.dims) or len(offset) != 1
        or (strides is not None and len(strides) not in counts)
    ):  # fmt: skip
        raise InvalidDescriptor(
            f"{g.format} with dims {g.dims} takes {len(g.dims)} padded dims, "
            f"{' or '.join(map(str, sorted(counts)))} strides and one offset, got padded={padded}, "
            f"strides={strides}, offset={offset}"
        )
    least = extents(g.dims, g.padding)
    if offset[0] < 0 or any(p < n for p, n in zip(padded, least, strict=True)):
        raise InvalidDescriptor(
            f"padded dims {padded} must hold {tuple(least)} and the offset {offset[0]} be 0 or more"
        )
    placed = place(layout, padded)
    if strides is not None:
        dense, placed = (
            placed,
            tuple(
                p if stride is None else Placed(p.digit, p.size, stride, fixed_stride=stride == 1)
                for p, stride in zip(placed, _per_digit(layout, strides), strict=True)
            ),
        )
        _check_rows(g.format, placed, dense)
    unknown = RUNTIME in (*g.dims, *(p.stride for p in placed))
    if 0 not in g.dims and not unknown:
        check_overlap([p.size for p in placed], [p.stride for p in placed])
    return Geometry(g.dims, g.format, placed, padded, g.padding, offset[0], g.extra)


def _check_rows(fmt: Format, placed: Sequence[Placed], dense: Sequence[Placed]) -> None:
    """Raise unless the rows of an image are dense, and evenly apart by whole pixels."""
    if fmt.image is None or placed == dense or not all(p.size for p in placed):
        return
    if RUNTIME in (n for p in (*placed, *dense) for n in (p.size, p.stride)):
        raise InvalidDescriptor(f"got strides for {fmt}, an image: expected sizes that are known")
    rows, pixel = sum(fmt.image[:-2]), sum(fmt.image[:-1])
    row, component = (prod(p.size for p in dense[k:]) for k in (rows, pixel))
    # The last row digit of several steps tells how far rows are apart.
    told = [p.stride * row // d.stride for p, d in zip(placed[:rows], dense, strict=False)
            if p.size > 1][-1:]  # fmt: skip
    pitch = round_up(max([row, *told]), component)
    expected = [p.stride // row * pitch if k < rows else p.stride for k, p in enumerate(dense)]
    if any(p.size > 1 and p.stride != n for p, n in zip(placed, expected, strict=True)):
        got = "x".join(str(p.stride) for p in placed)
        raise InvalidDescriptor(
            f"got strides {got} for the digits of {fmt}, an image: expected dense rows that are "
            f"evenly apart, by whole pixels, such as {'x'.join(map(str, expected))}"
        )


def strided(g: Geometry, strides: Iterable[int]) -> Geometry:
    """The same with other strides of the open digits, one for each dimension; of a fused index one.

    A block lies as densely as what is inside of it allows. Raises `InvalidDescriptor`.
    """
    given = int_tuple("strides", strides)
    layout = g.format.layout
    if layout is None or len(given) != len(g.dims):
        raise InvalidDescriptor(
            f"got strides={given} for {g.format} with dims {g.dims}: expected a format with digits "
            f"and one stride for each dimension"
        )
    if layout.is_tag and not layout.inner:
        return relaid(g, strides=given)
    result: list[int] = []
    inside = 1
    for p in reversed(g.placed):
        dims = p.digit.dims
        if p.digit.size is None and len({given[d] for d in dims}) > 1:
            raise InvalidDescriptor(
                f"got strides={given}: dimensions {dims} of {g.format} are one index, expected the "
                f"same stride for each of them"
            )
        stride = given[dims[0]] if p.digit.size is None else inside
        result.append(stride)
        inside = RUNTIME if RUNTIME in (stride, p.size) else max(inside, stride * max(p.size, 1))
    return relaid(g, strides=result[::-1])


def as_buffer(g: Geometry) -> Geometry:
    """The geometry of the same bytes without the axes of an image."""
    if g.format.image is None:
        return g
    parsed = replace(g.format.parsed, image=None, kind="blocked")
    return replace(g, format=Format.of(parsed))


def _per_digit(layout: Layout, strides: Sequence[int]) -> list[int | None]:
    """One stride for each digit, outermost first; None for blocks that are dense."""
    if not layout.is_tag or len(strides) != layout.ndims:
        return list(strides)
    return [strides[d.dims[0]] if d.size is None else None for d in layout.digits]


def int_tuple(what: str, values: Iterable[int]) -> tuple[int, ...]:
    """The values as a tuple of ints. Raises `InvalidDescriptor`."""
    try:
        given = tuple(values)
        result = tuple(map(operator.index, given))
    except TypeError:
        raise InvalidDescriptor(f"{what} must be a sequence of ints, got {values!r}") from None
    if any(isinstance(n, bool) for n in given):
        raise InvalidDescriptor(f"{what} must be a sequence of ints, got {given!r}")
    return result


def check_size(g: Geometry, bits: int) -> None:
    """Raise `InvalidDescriptor` where offsets of bytes, or the number of elements, pass 63 bits.

    For callers that need memory: descriptors count with Python's ints. A size of 0 counts as 1, as
    numpy has it for the shapes of arrays.
    """
    if RUNTIME in g.dims or any(RUNTIME in (p.size, p.stride) for p in g.placed):
        return
    most = max((p.size * p.stride for p in g.placed), default=0)
    if max(prod(n or 1 for n in g.padded_dims), g.offset0 + most) * bits > _MOST_BITS:
        raise InvalidDescriptor(
            f"dims {g.dims} in {g.format} take 2**63 bytes or more: no memory can hold them"
        )


def check_dims(dims: Iterable[int]) -> tuple[int, ...]:
    """The dims as a tuple; refuses more than 12, and negative ones other than `RUNTIME`."""
    result = int_tuple("dims", dims)
    if len(result) > MAX_NDIMS:
        raise InvalidDescriptor(
            f"got {len(result)} dims, at most {MAX_NDIMS} are possible: merge some of them"
        )
    for d, n in enumerate(result):
        if n < 0 and n != RUNTIME:
            raise InvalidDescriptor(f"dimension {d} is {n} in dims {result}: expected 0 or more")
        if n >= 2**63:
            raise InvalidDescriptor(f"dimension {d} is {n}: expected less than 2**63")
    return result


def _format_for(dims: tuple[int, ...], name: str | Format | None) -> Format:
    if not dims:
        return Format("undef")
    if name is None:
        name = ABSTRACT[: len(dims)]
    fmt = Format(name, ndims=len(dims) if takes_rank(str(name)) else None)
    if fmt.layout is not None and fmt.ndims != len(dims):
        raise InvalidDescriptor(
            f"got {len(dims)} dims {dims}, but {fmt} has {fmt.ndims}: "
            f"expected ({', '.join(fmt.dims)}) in this order"
        )
    return fmt


def _check_padding(padding: Iterable[tuple[int, int]] | None, fmt: Format, ndims: int) -> Padding:
    if padding is None:
        return ((0, 0),) * ndims
    try:
        pads = tuple(int_tuple("padding", pair) for pair in padding)
    except TypeError:
        raise InvalidDescriptor(f"padding must be pairs of ints, got {padding!r}") from None
    if len(pads) != ndims or any(len(p) != 2 or min(p) < 0 for p in pads):
        raise InvalidDescriptor(
            f"padding must be {ndims} pairs (lower, upper) of 0 or more, one for each of "
            f"({', '.join(fmt.dims)}), got {pads}"
        )
    layout = fmt.layout
    fused = layout and any(len(d.dims) > 1 or d.flip for d in layout.digits)
    whole = layout and not (fused or layout.tail or fmt.image)
    if any(map(any, pads)) and not whole:
        raise InvalidDescriptor(f"{fmt} cannot have padding: expected a format of whole dimensions")
    return tuple((p[0], p[1]) for p in pads)


def check_overlap(dims: Sequence[int], strides: Sequence[int]) -> None:
    """Raise unless each stride exceeds the span of the next smaller one, as oneDNN has it."""
    least = 1
    for stride, d in sorted(zip(strides, range(len(dims)), strict=True)):
        if stride == 0 or dims[d] == 1:
            continue
        if stride < least:
            why = "negative" if stride < 0 else "dimensions overlap or interleave"
            raise InvalidDescriptor(
                f"strides {tuple(strides)} of dims {tuple(dims)}: {why}; stride {stride} of "
                f"dimension {d} must be 0 or at least {least}"
            )
        least = stride * dims[d]
