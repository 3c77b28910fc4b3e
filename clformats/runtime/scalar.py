"""`Scalar`: a number that a command takes by its name, given when a recording runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InvalidArgument, shown

TYPES: dict[str, type[np.number[Any]]] = {
    "f32": np.float32, "f64": np.float64, "s32": np.int32, "u32": np.uint32, "s64": np.int64,
    "u64": np.uint64,
}  # fmt: skip
"""The types of scalars: what kernels take by value, and C gives as a double."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number of type ``dtype`` that is given by ``name`` when a recording runs."""

    name: str
    dtype: str

    def as_bytes(self, value: Any) -> bytes:
        """The value as a kernel takes it. Raises `InvalidArgument` where the type cannot hold it.

        Numbers are rounded to the nearest of a float type; those beyond it are refused, as are
        fractions and numbers beyond an integer type.
        """
        kind = TYPES[self.dtype]
        wrong = isinstance(value, bool) or not isinstance(value, int | float | np.number)
        if wrong or isinstance(value, complex | np.complexfloating):
            raise InvalidArgument(f"{self.name}: got {shown(value)}, expected a number")
        if issubclass(kind, np.integer):
            limits = np.iinfo(kind)
            # numpy rounds limits to the value's own type; Python's integers compare as they are.
            whole = int(value) if isinstance(value, int) or np.isfinite(value) else None
            if whole is None or whole != value or not limits.min <= whole <= limits.max:
                raise InvalidArgument(
                    f"{self.name}: got {value!r}, expected a whole number from {limits.min} to "
                    f"{limits.max}, as {self.dtype} holds"
                )
            return bytes(kind(whole).tobytes())
        with np.errstate(over="ignore"):
            try:
                found = kind(np.float64(value))
            except OverflowError:  # of an int
                found = kind(np.float64(np.inf))
        if np.isinf(found) and (isinstance(value, int) or not np.isinf(value)):
            raise InvalidArgument(f"{self.name}: got {value!r}, which is beyond {self.dtype}")
        return bytes(found.tobytes())
