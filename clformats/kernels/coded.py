"""Numbers from the codes of a coded type (f8, f6, f4, tables), and back, in OpenCL C.

OpenCL has no such types, so kernels take them apart bit by bit: ``templates/coded.mako``. A code
lies in the low bits of a byte of its own, a ``uchar``; the bits above it are 0. How codes share the
bytes of memory is not known here.
"""

from __future__ import annotations

from functools import lru_cache

from ..templates import filled
from ..tensors.dtypes import DType


@lru_cache(maxsize=256)
def decode(dtype: DType, width: int = 1) -> str:
    """The function ``floatN from_NAME_N(ucharN code)``, of ``width`` lanes (N is 1 for one).

    ``dtype`` is any row that `DType.is_coded`, by the numbers of its float or by its table of
    values. Exact. One program may have several widths: the table is declared once.
    """
    return filled("coded", what="decode", dtype=dtype, width=width)


@lru_cache(maxsize=256)
def encode(dtype: DType, width: int = 1) -> str:
    """The function ``ucharN to_NAME_N(floatN x)``, the inverse of `decode`.

    It rounds by the rules of `clformats.tensors.codes`, to the bit.
    """
    return filled("coded", what="encode", dtype=dtype, width=width)


def literal(value: float) -> str:
    """A finite f32 as a constant of OpenCL C."""
    return f"{float(value)!r}f"
