"""The arguments of users' kernels and their sizes, and advice where they are wrong."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import DeviceError, InvalidArgument, shown
from ..opencl import error_name, opencl
from .engine import SOURCE
from .tracked import Tracked

if TYPE_CHECKING:
    import pyopencl

_NUMBERS = ("float", "double", "int", "uint", "long", "ulong")
"""The types of OpenCL C that numbers are declared as, most often."""

FITTING = "_clformats_fitting"
"""The attribute of a kernel with the types of the arguments that last fitted its source, and the
positions of its numbers and of the others; None where `pyopencl.Kernel.set_args` must set them.
"""
DECLARED = "_clformats_declared"
"""The attribute of a kernel with its `declarations`, so that its source is read once."""

_PLAIN = (np.generic, np.ndarray)
_SEQUENCES = (tuple, list)
MOST_SIZES = 3
"""Of work-items, as every OpenCL device takes them."""
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
        _check_declared(kernel, given)
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


def _check_declared(kernel: pyopencl.Kernel, given: Sequence[Any]) -> None:
    """Refuse what drivers take, and should not.

    A buffer for an image and the reverse: some crash. An integer for a float and the reverse: they
    take the bits where sizes agree.
    """
    for k, (text, value) in enumerate(zip(_declared(kernel), given, strict=False), 1):
        where = f"argument {k} of {kernel.function_name}: the kernel has {text!r}"
        is_image = re.search(r"\bimage\w*_t\b", text) is not None
        if is_image != ("*" in text) and isinstance(value, opencl().Image) is not is_image:
            wanted, format_ = ("an image", "nh|Cw|4c") if is_image else ("a buffer", "nhCw4c")
            raise InvalidArgument(
                f"{where}, expected {wanted}, got {type(value).__name__}: give memory of a format "
                f"such as {format_}"
            )
        kind = value.dtype.kind if isinstance(value, _PLAIN) else ""
        number = _number_type(text) if kind in ("i", "u", "f") else None
        if number and (kind == "f") is not issubclass(number, np.floating):
            raise InvalidArgument(
                f"{where}, got {value.dtype}: give np.{number.__name__}({value!s})"
            )


def _number_type(declared: str) -> type[np.number[Any]] | None:
    """The type of an argument that is declared as a number; None where it is not clear."""
    from pyopencl import cltypes

    found = re.fullmatch(r"(?:const )?(\w+) \w+", declared)
    return getattr(cltypes, found[1]) if found and found[1] in _NUMBERS else None


def _declared(kernel: pyopencl.Kernel) -> list[str]:
    """How each argument is declared; empty where that is not clear, as where a macro has some."""
    found: list[str] | None = getattr(kernel, DECLARED, None)
    if found is None:
        found = declarations(getattr(kernel, SOURCE, ""), kernel.function_name)
        if found and (not all(found) or len(found) != kernel.num_args):
            found = []
        setattr(kernel, DECLARED, found)
    return found


def declarations(source: str, name: str) -> list[str]:
    """The arguments of a kernel as its source declares them; empty where it has two, or none.

    >>> declarations("kernel void f(global int *p, const  float by) {}", "f")
    ['global int *p', 'const float by']
    """
    found = re.findall(rf"\b{re.escape(name)}\s*\(([^()]*)\)\s*\{{", source)
    return [" ".join(part.split()) for part in found[0].split(",")] if len(found) == 1 else []


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
    declared = dict(enumerate(_declared(kernel), 1)).get(k, "")
    wanted = _number_type(declared) or np.float32
    told += f", the kernel has {declared!r}" * bool(declared)
    return f"{told}: give np.{wanted.__name__}({given!s})"


def check_reads(args: Sequence[Any], reads: Sequence[Any]) -> None:
    """Raise `InvalidArgument` unless what is read is memory among the arguments."""
    if not isinstance(reads, _SEQUENCES) and (
        isinstance(reads, Tracked) or not isinstance(reads, Collection)
    ):
        raise InvalidArgument(f"reads: got {shown(reads)}, expected a list of memory: [memory]")
    for memory in reads:
        for a in args:
            if memory is a:
                break
        else:
            raise InvalidArgument(f"reads: {memory!r} is none of the kernel's arguments")


def check_run_sizes(global_size: object, local_size: object) -> None:
    """Raise `InvalidArgument` unless they are one to three integers; for the second also None."""
    items = _sizes("global_size", global_size, 0)
    group = items if local_size is None else _sizes("local_size", local_size, 1)
    if len(group) != len(items):
        raise InvalidArgument(
            f"local_size: got {local_size}, expected as many sizes as global_size {global_size} has"
        )


def _sizes(name: str, sizes: object, least: int) -> Sequence[Any]:
    if (
        isinstance(sizes, _SEQUENCES)
        and 1 <= len(sizes) <= MOST_SIZES
        and all(_is_count(n, least) for n in sizes)
    ):
        return sizes
    got = shown(sizes) if not isinstance(sizes, tuple) else sizes
    raise InvalidArgument(
        f"{name}: got {got}, expected a tuple of integers such as (1024,): one to three, from "
        f"{least} on"
    )


def _is_count(size: object, least: int) -> bool:
    return (type(size) is int or isinstance(size, np.integer)) and bool(size >= least)
