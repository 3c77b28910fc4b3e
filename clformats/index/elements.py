"""What clDNN's kernels ask about element types: ``INPUT0_TYPE``, ``TO_INPUT0_TYPE(v)``, ..."""

from __future__ import annotations

from collections.abc import Iterator

from ..tensors.dtypes import DType

_WORDS = {1: "uint"}
"""What elements of so many bits lie in, where it is not as many bytes as one of them needs."""
_LIMITS = {"float": "FLT", "half": "HALF", "double": "DBL", "char": "CHAR", "uchar": "UCHAR",
           "ushort": "USHRT", "int": "INT", "uint": "UINT", "long": "LONG"}  # fmt: skip
_ONES = {"float": ("1.0f", "0.0f"), "half": ("1.0h", "0.0h"), "double": ("1.0", "0.0")}


def element_constants(name: str, dtype: DType) -> Iterator[tuple[str, str]]:
    """Name and value of each macro about the elements of a tensor.

    bf16 and 8-bit floats, for which OpenCL C has no type, are integers with their bits. Elements
    that share a byte or a word have its type, and a fraction of its size.
    """
    kind = _WORDS.get(dtype.bits, dtype.opencl)
    is_float = kind in _ONES
    one, zero = _ONES.get(kind, (f"({kind}) 1", f"({kind}) 0"))
    unsigned = kind.startswith("u")
    yield f"{name}_TYPE", kind
    yield f"{name}_TYPE_SIZE", f"{dtype.bits / 8}f" if dtype.is_packed else str(dtype.nbytes)
    yield f"{name}_IS_FP", str(int(is_float))
    yield f"{name}_VAL_MAX", f"{_LIMITS[kind]}_MAX"
    least = f"-{name}_VAL_MAX" if is_float else "0" if unsigned else f"{_LIMITS[kind]}_MIN"
    yield f"{name}_VAL_MIN", least
    yield f"{name}_VAL_ONE", one
    yield f"{name}_VAL_ZERO", zero
    yield f"TO_{name}_TYPE(v)", f"convert_{kind}(v)"
    yield f"TO_{name}_TYPE_SAT(v)", f"convert_{kind}(v)" if is_float else f"convert_{kind}_sat(v)"
    yield f"AS_{name}_TYPE(v)", f"as_{kind}(v)"
    # What kernels compute in, and how they come to it: here it is always the type itself.
    yield f"{name}_COMPUTE_TYPE", kind
    yield f"TO_{name}_COMPUTE_TYPE(v)", f"convert_{kind}(v)"
    yield f"DECODE_{name}_COMPUTE_TYPE(v)", "(v)"
    yield f"{name}_MAX_FUNC", "fmax" if is_float else "max"
    yield f"{name}_MIN_FUNC", "fmin" if is_float else "min"
    yield f"{name}_ABS_FUNC", "fabs" if is_float else "abs"
