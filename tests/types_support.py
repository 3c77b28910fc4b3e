"""Every row of the table of element types, and rows that no table has: those of one's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from clformats.tensors import dtypes
from clformats.tensors.rows import ROWS, DType, Float

NF4 = (-1.0, -0.6961928, -0.52507305, -0.3949175, -0.28444138, -0.18477343, -0.09105003, 0.0,
       0.0795803, 0.1609302, 0.2461123, 0.33791524, 0.44070983, 0.562617, 0.72295684,
       1.0)  # fmt: skip
OWN = (
    DType("f6_own", 6, "float", np.dtype(np.float32), Float(4, 1, 7, 0x1E, 0x1F)),
    DType("f7_own", 7, "float", np.dtype(np.float32), Float(3, 3, 3, None, 0x3F)),
    DType("nf4", 4, "float", np.dtype(np.float32), None, NF4),
    DType(
        "t3_own", 3, "float", np.dtype(np.float32), None, (5.0, -1.0, 0.5, 0.5, 0.0, -2.0, 96, 3)
    ),
    DType("s5_own", 5, "signed", np.dtype(np.int8)),
)
"""Floats with and without an infinity, tables, of which one is not sorted and has equal values."""
EVERY = (*ROWS, *OWN)
PACKED = tuple(row for row in EVERY if row.is_packed)

each_type = pytest.mark.parametrize("row", EVERY, ids=str)


@contextmanager
def known(row: DType) -> Iterator[None]:
    """While this lasts the row is one of the table's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(dtypes.BY_NAME, row.name, row)
        yield
