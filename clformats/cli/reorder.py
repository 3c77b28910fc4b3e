"""`clformats reorder`: the tensor in a file to another format and element type, on a device.

The files are mapped, not read: a tensor may be larger than the memory of host and device.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import Error, InvalidDescriptor
from ..files.destination import destination
from ..files.npy import mapped
from ..formats import Format
from ..formats.registry import takes_rank
from ..host.axes import in_order
from ..host.memory import HostMemory
from ..host.packing import storage_size
from ..tensors.desc import MemoryDesc
from ..tensors.dtypes import as_dtype
from ..values.transforms import joins_winograd, winograd
from .arguments import add_json, add_output, named_format, print_json, sizes

UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
HINT = "pip install tqdm for a progress bar"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `reorder` to the command line."""
    parser = subparsers.add_parser(
        "reorder",
        help="a tensor in a file to another format, on a device",
        description="Reorder the tensor in IN.npy on an OpenCL device and write its physical "
        "elements, padding zero, to OUT.npy; the descriptor is printed. In IN.npy the axes of a "
        "plain format (bfyx, byxf) stand in the format's order; of any other the file holds the "
        "physical elements, and --shape or a printed descriptor tells the sizes. Both files are "
        "mapped, and what does not fit on the device goes there in pieces. To a Winograd format "
        "values are transformed, and from one transformed back. OUT.npy is there only when it is "
        "complete.",
        epilog="example:  clformats reorder in.npy --from bfyx --to b_fs_yx_fsv16 --dtype f16 "
        "-o out.npy",
    )
    parser.add_argument("file", metavar="IN.npy", help="the tensor")
    parser.add_argument(
        "--from", dest="source", required=True, metavar="FORMAT",
        help="how IN.npy lies: a format, or a printed descriptor (f16:b_fs_yx_fsv16:2x17x5x4)",
    )  # fmt: skip
    parser.add_argument("--to", required=True, metavar="FORMAT", help="the format of OUT.npy")
    parser.add_argument("--shape", help="sizes in logical order, where IN.npy has no axes for them")
    parser.add_argument(
        "--axes", help="what the axes of IN.npy are, such as hwc for a photograph (as from_numpy)"
    )
    parser.add_argument("--dtype", help="the element type of OUT.npy (default: that of IN.npy)")
    parser.add_argument("--device", metavar="NAME", help="part of a device's or platform's name")
    parser.add_argument(
        "--piece", metavar="SIZE", help="the most bytes of a piece, such as 64M (default: chosen)"
    )
    add_output(parser, text="the file to write, OUT.npy", required=True)
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Move the file and print what it has become."""
    from ..runtime import Engine
    from ..transfers.route import transfer

    if not args.output.endswith(".npy"):
        raise Error(f"got -o {args.output}: what is written is a .npy file, name it so")
    piece = None if args.piece is None else number_of_bytes(args.piece)
    src = source(mapped(Path(args.file)), args.source, args.shape, args.axes)
    to = _destination(src.desc, named_format(args.to, src.desc.dims, None), args.dtype)
    engine = Engine(args.device)
    with _written(args, to) as target, _bar() as progress:
        transfer(src, target, engine=engine, piece_nbytes=piece, progress=progress)
    if args.json:
        return print_json({"output": args.output, "desc": str(to), "nbytes": to.nbytes})
    print(f"{to}  {to.nbytes} bytes in {args.output}")
    return 0


def _destination(src: MemoryDesc, fmt: Format, dtype: str | None) -> MemoryDesc:
    """What ``src`` becomes: as `clformats.reorder`, transformed to a Winograd format and back."""
    if joins_winograd(src.format, fmt):
        return winograd(src, fmt, dtype)
    to = MemoryDesc(src.dims, dtype or src.dtype, fmt)
    to.require_layout()
    return to


def number_of_bytes(text: str) -> int:
    """``"64M"`` as bytes; K, M and G count 1024."""
    found = re.fullmatch(r"(\d{1,15})([kmg]?)(i?b)?", text.strip().lower())
    if not found or not int(found[1]):
        raise InvalidDescriptor(f"got --piece {text!r}, expected a size such as 64M, 1G or 500000")
    return int(found[1]) * UNITS[found[2]]


# --- files ----------------------------------------------------------------------------------------


def source(
    array: NDArray[Any], text: str, shape: str | None, axes: str | None = None
) -> HostMemory:
    """The tensor in a file, as the command line says that it lies.

    Raises `InvalidDescriptor` where file and words do not fit together.
    """
    if axes is not None:
        if ":" in text or shape is not None:
            raise InvalidDescriptor(
                "--axes and the array tell the sizes: give --from a format alone"
            )
        return HostMemory.of(in_order(array, axes, named_format(text, None, None)))
    if ":" in text:
        if shape is not None:
            raise InvalidDescriptor(f"{text} already has sizes: leave out --shape")
        return _physical(array, MemoryDesc.parse(text))
    dims = None if shape is None else sizes(shape)
    if dims is not None:
        return _physical(
            array, MemoryDesc(dims, as_dtype(array.dtype), named_format(text, dims, None))
        )
    fmt = Format(text, array.ndim if takes_rank(text) else None)
    _check_tells_sizes(array, fmt)
    order = [digit.dims[0] for digit in fmt.digits]
    return HostMemory.of(array.transpose([order.index(d) for d in range(array.ndim)]))


def _check_tells_sizes(array: NDArray[Any], fmt: Format) -> None:
    """Raise `InvalidDescriptor` unless the axes of a file are the sizes of a plain format."""
    if fmt.layout is None:
        raise InvalidDescriptor(f"{fmt} does not say how the file lies: name a format, as bfyx")
    if not _is_plain(fmt):
        raise InvalidDescriptor(
            f"{fmt} is no plain format, so the file does not have the sizes: add --shape with "
            f"{fmt.ndims} numbers, for {', '.join(fmt.dims)}"
        )
    if array.ndim != fmt.ndims:
        raise InvalidDescriptor(
            f"{str(fmt)!r} has {fmt.ndims} dimensions, the file has shape {array.shape}: add "
            f"--shape with {fmt.ndims} numbers, for {', '.join(fmt.dims)}, or --axes"
        )
    if array.dtype.kind == "V":
        shown = "x".join(map(str, array.shape))
        raise InvalidDescriptor(
            f"the file does not name the type of its {array.dtype.itemsize}-byte elements: give "
            f"the whole descriptor, sizes in logical order, such as --from bf16:{fmt}:{shown}"
        )
    if not array.dtype.isnative:
        raise InvalidDescriptor(
            f"the file has elements of {array.dtype.str}, in the other byte order: save it again "
            f"by np.save(file, array.astype(array.dtype.newbyteorder('=')))"
        )


def _is_plain(fmt: Format) -> bool:
    return fmt.layout is not None and all(
        digit.size is None and len(digit.dims) == 1 and not digit.flip for digit in fmt.digits
    ) and fmt.layout.tail is None and set(fmt.layout.align) <= {1}  # fmt: skip


def _physical(array: NDArray[Any], desc: MemoryDesc) -> HostMemory:
    """The file's elements as the physical elements of a descriptor."""
    desc.require_layout()
    item = desc.dtype.storage.itemsize
    if not array.flags.c_contiguous or array.itemsize != item or array.size != storage_size(desc):
        raise InvalidDescriptor(
            f"the file has {array.size} elements of {array.itemsize} bytes in shape {array.shape}"
            f"{'' if array.flags.c_contiguous else ' in Fortran order'}, {desc} has "
            f"{storage_size(desc)} of {item}"
        )
    return HostMemory(desc, array.reshape(-1).view(f"u{item}"))


@contextmanager
def _written(args: argparse.Namespace, desc: MemoryDesc) -> Iterator[HostMemory]:
    """A file for the elements of a descriptor, put in its place only when all went well."""
    shape: tuple[int, ...] = (storage_size(desc),)
    if _is_plain(desc.format):
        shape = tuple(desc.dims[digit.dims[0]] for digit in desc.format.digits)
    with destination(Path(args.output), [Path(args.file)], companions=(), force=args.force) as path:
        mapped = np.lib.format.open_memmap(path, "w+", desc.dtype.storage, shape)
        with path.open("r+b") as file:  # else a full disk shows only as a fatal signal
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
        item = desc.dtype.storage.itemsize
        yield HostMemory(desc, mapped.reshape(-1).view(f"u{item}"))
        mapped.flush()


# --- progress -------------------------------------------------------------------------------------


@contextmanager
def _bar() -> Iterator[Callable[[int, int], None]]:
    """What `transfer` reports to: a bar on a terminal; without tqdm, one line at the end."""
    try:
        from tqdm import tqdm
    except ImportError:
        with _line() as report:
            yield report
        return
    # tqdm shows nothing where standard error is no terminal.
    with tqdm(
        unit="B", unit_scale=True, desc="read and written", disable=None, file=sys.stderr
    ) as bar:

        def report(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield report


@contextmanager
def _line() -> Iterator[Callable[[int, int], None]]:
    moved = 0
    start = monotonic()

    def report(done: int, _total: int) -> None:
        nonlocal moved
        moved = done

    yield report
    seconds = monotonic() - start
    print(f"reorder: {moved / 1e6:.1f} MB in {seconds:.2f} s ({HINT})", file=sys.stderr)
