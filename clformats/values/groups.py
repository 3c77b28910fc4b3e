"""Values that neighbours share: one for each group of elements along the dimensions.

Quantised weights have a scale, and perhaps a zero point, for each 32 or 128 elements along a row.
A *group* says how many elements along each logical dimension share a value: ``(1, 32)``, in two
dimensions. 1 is a value for each index, None one for the whole dimension. The last group of a
dimension may be short, so there are ceil(n / group) values along it. oneDNN's mask and groups say
the same: its groups are those of the last two dimensions; what its mask leaves out is None here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidAttr, shown

Group = tuple[int | None, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Grouped:
    """Values for groups of elements: ``cf.Grouped(scales, (1, 32))``.

    ``values`` is an array of one number for each group, of shape ``(n, ceil(k / 32))`` or flat in
    row-major order; as an operand of a `clformats.Map` it is a descriptor with such dims. ``group``
    has one entry for each logical dimension, see `clformats.values.groups`. Raises `InvalidAttr`::

        >>> import numpy as np, clformats as cf
        >>> attr = cf.Attr(src_scale=cf.Grouped([[0.5, 2], [1, 4]], (1, 3)))
        >>> attr.apply(np.ones((2, 5), np.int8), "s8", "f32").tolist()
        [[0.5, 0.5, 0.5, 2.0, 2.0], [1.0, 1.0, 1.0, 4.0, 4.0]]
    """

    values: Any
    group: Group

    def __post_init__(self) -> None:
        """Check the group."""
        object.__setattr__(self, "group", checked(self.group))


def checked(group: object) -> Group:
    """A group as a tuple of ints, or of None. Raises `InvalidAttr`."""
    fits = isinstance(group, tuple | list) and group != ()
    if not fits or not all(
        n is None or (isinstance(n, int | np.integer) and not isinstance(n, bool) and n > 0)
        for n in group  # type: ignore[attr-defined]
    ):
        raise InvalidAttr(
            f"got the group {shown(group)}, expected how many elements share a value along each "
            f"logical dimension, such as (1, 32); None for all along a dimension"
        )
    return tuple(None if n is None else int(n) for n in group)  # type: ignore[attr-defined]


def grouping(group: Group) -> str:
    """A group in words."""
    return f"groups of {'x'.join('all' if n is None else str(n) for n in group)}"


def counts(dims: Sequence[int], group: Group) -> tuple[int, ...]:
    """The number of groups along each dimension."""
    return tuple(1 if g is None else -(-n // g) for n, g in zip(dims, group, strict=True))


def spread(values: NDArray[Any], dims: Sequence[int], group: Group) -> NDArray[Any]:
    """Values of shape `counts` for each index along each dimension that has groups.

    The result has size 1 along dimensions without, so that it broadcasts against the tensor.
    """
    for d, (n, g) in enumerate(zip(dims, group, strict=True)):
        if g is not None and g > 1:
            values = np.take(values, np.arange(n) // g, axis=d)
    return values


def group_of(dims: Sequence[int], numbers: Sequence[int]) -> Group | None:
    """The group with which a tensor of ``dims`` has so many groups along each dimension.

    Several lengths may give as many groups. Taken is the power of two, of which there is one at the
    most; else the length that divides the dimension. None where there is neither::

        >>> group_of((64, 96), (64, 3)), group_of((64, 100), (1, 4)), group_of((60,), (6,))
        ((1, 32), (None, 32), (10,))
    """
    if len(dims) != len(numbers):
        return None
    found: list[int | None] = []
    for n, count in zip(dims, numbers, strict=True):
        if count == n:
            found.append(1)
        elif count == 1:
            found.append(None)
        elif 0 < count < n:
            least = -(-n // count)
            power = 1 << (least - 1).bit_length()
            length = power if -(-n // power) == count else least
            if n % count and length != power:
                return None
            found.append(length)
        else:
            return None
    return tuple(found)
