"""The arguments of users' kernels, and advice where they are wrong."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import DeviceError, InvalidArgument
from ..opencl import error_name, opencl
from .engine import SOURCE
from .scalar import TYPES

if TYPE_CHECKING:
    import pyopencl

_NUMBERS = {"float": "f32", "double": "f64", "int": "s32", "uint": "u32", "long": "s64",
            "ulong": "u64"}  # fmt: skip
"""The types of OpenCL C that numbers are declared as, most often."""

FITTING = "_clformats_fitting"
"""The attribute of a kernel with the types of the arguments that last fitted its source, and the
positions of its numbers and of the others; None where `pyopencl.Kernel.set_args` must set them.
"""
DECLARED = "_clformats_declared"
"""The attribute of a kernel with what `_declared` found, so that its source is read once."""

_PLAIN = (np.generic, np.ndarray)
_ARGUMENTS = r"\b{}\s*\(([^()]*)\)\s*\{{"
"""A kernel of a name with its arguments, as a regular expression."""
_AT_ONCE = "_set_arg_buf_multi"
"""What pyopencl itself sets numbers by where it was told their types: 0.1 us."""


def set_arguments(kernel: pyopencl.Kernel, given: Sequence[Any], args: Sequence[Any]) -> None:
    """Give a kernel its arguments, `order.LOCK` held: ``given``, made of the caller's ``args``.

    Raises `InvalidArgument` for another number of arguments, an image for a pointer, or an integer
    for a float, and `DeviceError`, which names the wrong one.
    """
    cl, types = opencl(), [*map(type, given)]
    fitting = getattr(kernel, FITTING, None)
    if fitting is None or fitting[0] != types:
        _check_images(kernel, given)
        _check_numbers(kernel, given)
        fitting = types, _places(kernel, given)
        setattr(kernel, FITTING, fitting)
    try:
        if not _at_once(kernel, given, fitting[1]):
            kernel.set_args(*given)
    except cl.Error as error:
        name = error_name(error)
        advice = _advice(kernel, str(error), args)
        text = f"the arguments of {kernel.function_name}: {name} ({error}){advice}"
        raise DeviceError(text, name=name) from error
    except TypeError as error:
        raise InvalidArgument(
            f"{kernel.function_name} takes {kernel.num_args} arguments, got {len(args)} ({error})"
        ) from error


def _check_images(kernel: pyopencl.Kernel, given: Sequence[Any]) -> None:
    """Refuse a buffer for an image and the reverse: some drivers take both, and crash."""
    kind, found = opencl().Image, getattr(kernel, DECLARED, None)
    if found is None:
        found = _declared(kernel)
        setattr(kernel, DECLARED, found)
    for k, is_image, declared in found:
        if k < len(given) and isinstance(given[k], kind) is not is_image:
            wanted, format_ = ("an image", "nh|Cw|4c") if is_image else ("a buffer", "nhCw4c")
            raise InvalidArgument(
                f"argument {k + 1} of {kernel.function_name}: the kernel has {declared!r}, "
                f"expected {wanted}, got {type(given[k]).__name__}: give memory of a format such "
                f"as {format_}"
            )


def _check_numbers(kernel: pyopencl.Kernel, given: Sequence[Any]) -> None:
    """Refuse an integer for a float and the reverse: drivers take the bits where sizes agree."""
    for k, value in enumerate(given):
        kind = value.dtype.kind if isinstance(value, _PLAIN) else ""
        if kind in ("i", "u", "f") and (found := _number_type(kernel, k + 1)):
            wanted, declared = found
            if (kind == "f") is not issubclass(wanted, np.floating):
                raise InvalidArgument(
                    f"argument {k + 1} of {kernel.function_name}: the kernel has {declared!r}, got "
                    f"{value.dtype}: give np.{wanted.__name__}({value!s})"
                )


def _number_type(kernel: pyopencl.Kernel, number: int) -> tuple[type[np.number[Any]], str] | None:
    """The type of an argument that is declared as a number, and how; None where it is not clear."""
    declared = declaration(getattr(kernel, SOURCE, ""), kernel.function_name, number)
    found = re.fullmatch(r"(?:const )?(\w+) \w+", declared)
    name = found and _NUMBERS.get(found[1])
    return (TYPES[name], declared) if name else None


def _declared(kernel: pyopencl.Kernel) -> list[tuple[int, bool, str]]:
    """The place of each argument that is clearly an image, or a pointer, and how it is declared."""
    source: str | None = getattr(kernel, SOURCE, None)
    if source is None:
        return []
    name = kernel.function_name
    if len(re.findall(_ARGUMENTS.format(re.escape(name)), source)) != 1:
        return []  # two under conditions, say
    texts = [declaration(source, name, k + 1) for k in range(kernel.num_args)]
    if not all(texts) or declaration(source, name, len(texts) + 1):
        return []  # some come from a macro
    images = [re.search(r"\bimage\w*_t\b", text) is not None for text in texts]
    return [(k, images[k], text) for k, text in enumerate(texts) if images[k] != ("*" in text)]


def _places(kernel: pyopencl.Kernel, given: Sequence[Any]) -> tuple[list[int], list[int]] | None:
    """Where numpy's numbers stand, and all others; None where pyopencl must see what there is.

    So it must of kernels that `Engine.kernel` did not make: it may have been told their types.
    """
    numbers = [k for k, value in enumerate(given) if isinstance(value, _PLAIN)]
    others = [k for k in range(len(given)) if k not in numbers]
    plain = any(isinstance(given[k], int | float | complex) for k in others)
    known = hasattr(kernel, SOURCE) and hasattr(kernel, _AT_ONCE)
    if plain or not known or kernel.num_args != len(given):
        return None
    return numbers, others


def _at_once(kernel: Any, given: Sequence[Any], places: tuple[list[int], list[int]] | None) -> bool:
    """Set the arguments quickly; False where `set_args` must, which also tells what is wrong.

    ``set_arg`` tries all other kinds of arguments before numbers, by exceptions: 5 us for each.
    """
    if places is None:
        return False
    numbers, others = places
    try:
        if numbers:
            getattr(kernel, _AT_ONCE)(tuple([x for k in numbers for x in (k, given[k])]))
        for k in others:
            kernel.set_arg(k, given[k])
    except opencl().Error:
        return False
    return True


def check_no_pointer(number: int, given: Any) -> None:
    """Refuse an array as large as a pointer: drivers would take its elements for an address."""
    if isinstance(given, np.ndarray) and given.ndim and given.nbytes == np.intp(0).nbytes:
        raise InvalidArgument(
            f"argument {number} is an array of numpy's: put it on the device by cf.from_numpy; a "
            f"vector of numbers is made by pyopencl.cltypes, such as make_float2(1, 2)"
        )


def _advice(kernel: pyopencl.Kernel, text: str, args: Sequence[Any]) -> str:
    """What was given, and what to give instead, where an error of OpenCL's names an argument."""
    found = re.search(r"arg#(\d+) \(1-based\)", text)
    if found is None or not 1 <= int(found[1]) <= len(args):
        return ""
    k, given = int(found[1]), args[int(found[1]) - 1]
    if isinstance(given, np.ndarray) and given.ndim:
        return f"; argument {k} is an array of numpy's: put it on the device by cf.from_numpy"
    kind = str(given.dtype) if isinstance(given, np.generic) else type(given).__name__
    told = f"; argument {k} is of type {kind}"
    if not isinstance(given, int | float | np.number):
        return f"{told}: give buffers as Memory or pyopencl's"
    declared = declaration(getattr(kernel, SOURCE, ""), kernel.function_name, k)
    wanted, _ = _number_type(kernel, k) or (np.float32, "")
    told += f", the kernel has {declared!r}" * bool(declared)
    return f"{told}: give np.{wanted.__name__}({given!s})"


def declaration(source: str, name: str, number: int) -> str:
    """Argument ``number``, counted from 1, of a kernel as its source declares it; empty if unclear.

    >>> declaration("kernel void f(global int *p, const float by) {}", "f", 2)
    'const float by'
    """
    found = re.search(_ARGUMENTS.format(re.escape(name)), source)
    parts = found[1].split(",") if found else []
    return " ".join(parts[number - 1].split()) if number <= len(parts) else ""
