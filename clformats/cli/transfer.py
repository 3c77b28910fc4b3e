"""The common parts of `clformats pack` and `clformats unpack`: arguments, device and output."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import Error
from ..files import Options, Summary, Tensor, Watch
from ..files.common import shown
from ..host import packing as host
from ..tensors.desc import MemoryDesc
from ..tensors.dtypes import DType
from .arguments import add_json, add_output, print_json

if TYPE_CHECKING:
    from ..runtime import Engine

FILES = "a .npy, .safetensors or .onnx file"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add IN, -o, --dtype, --match, --device and --force."""
    parser.add_argument("source", metavar="IN", help=FILES)
    add_output(parser, text="the file to write, OUT", required=True)
    parser.add_argument("--dtype", help="convert to this element type: f16, bf16, s8, ...")
    parser.add_argument("--match", metavar="REGEX", help="only tensors in whose name this is found")
    parser.add_argument(
        "--device", metavar="NAME", help="reorder on this OpenCL device instead of in numpy"
    )
    add_json(parser)


def carry_out(
    args: argparse.Namespace, verb: str, job: Callable[[Options], Summary]
) -> int:  # fmt: skip
    """Do the job, report on it, and return the exit status."""
    watch = ProgressLine(verb, quiet=args.json)
    try:
        mover = host if args.device is None else DevicePacking(args.device)
        summary = job(Options(args.dtype, args.match, args.force, mover, watch))
    finally:
        watch.close()
    notes = list(watch.notes())
    if args.json:
        return print_json({
            "output": args.output, verb: watch.descs, "untouched": summary.untouched, "notes": notes
        })  # fmt: skip
    print(
        f"wrote {shown(args.output)}: {len(summary.done)} {verb}, {len(summary.untouched)} "
        f"untouched; read back, all equal"
    )
    print("".join(f"{note}\n" for note in notes), end="")
    return 0


def refuse_for_quantised(args: argparse.Namespace, *names: str) -> None:
    """Raise `Error` for options that say nothing of quantised tensors."""
    given = [n for n in names if getattr(args, n) is not None]
    if given:
        told = ", ".join("--" + {"order": "from", "raw_type": "as"}.get(n, n) for n in given)
        raise Error(f"{told}: quantised tensors keep their values and order of axes: leave it out")


class ProgressLine(Watch):
    """One line for each tensor, as soon as it is done; on a terminal a bar too, if tqdm is there.

    The lines are progress enough for a log, and where tqdm is not installed.
    """

    def __init__(self, verb: str, *, quiet: bool = False) -> None:
        self._verb, self._quiet = verb, quiet
        self.descs: dict[str, str] = {}
        self._rounded: list[str] = []
        self._saturated: list[str] = []
        self._bar: Any = None

    def planned(self, nbytes: int) -> None:
        """Begin the bar: every byte is moved once and checked once."""
        try:
            bar = import_module("tqdm").tqdm
        except ImportError:
            return
        self._bar = bar(total=2 * nbytes, unit="B", unit_scale=True, leave=False, disable=None)

    def moved(self, tensor: Tensor, before: MemoryDesc, after: MemoryDesc) -> None:
        """Tell how a tensor lay, and how it lies now."""
        self._line(f"{self._verb:9}  {shown(tensor.name)}  {before} -> {after}")
        self.descs[tensor.name] = str(after)
        if before.dtype.is_float and not after.dtype.is_float:
            self._rounded.append(f"{shown(tensor.name)} to {after.dtype}")
        self._advance(tensor.nbytes)

    def saturated(self, tensor: Tensor, count: int, dtype: DType) -> None:
        """Keep it for the notes."""
        self._saturated.append(f"{count} of {shown(tensor.name)}, which became {dtype}")

    def checked(self, tensor: Tensor) -> None:
        """Move the bar on."""
        self._advance(tensor.nbytes)

    def untouched(self, tensor: Tensor, reason: str) -> None:
        """Tell why a tensor was left as it is."""
        self._line(f"untouched  {shown(tensor.name)}  {tensor}: {reason}")

    def notes(self) -> Iterator[str]:
        """What a user should know of the result, though all went well."""
        if self._rounded:
            yield (
                f"note: {len(self._rounded)} of {len(self.descs)} tensors ({self._rounded[0]}"
                f"{', ...' * (len(self._rounded) > 1)}) had fractions, which were rounded to whole "
                f"numbers without a scale: quantize weights before you pack them"
            )

        if self._saturated:
            more = f", and of {len(self._saturated) - 1} other tensors" * (len(self._saturated) > 1)
            yield (
                f"note: elements beyond their new type became its least or largest value, or an "
                f"infinity: {self._saturated[0]}{more}"
            )

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.close()

    def _advance(self, nbytes: int) -> None:
        if self._bar is not None:
            self._bar.update(nbytes)

    def _line(self, text: str) -> None:
        if self._quiet:
            return
        if self._bar is None:
            print(text, flush=True)
        else:
            self._bar.write(text)


class DevicePacking:
    """Packs and unpacks by a reorder on an OpenCL device."""

    def __init__(self, name: str) -> None:
        from ..runtime import Engine

        self._engine: Engine = Engine(name)

    def pack(self, array: Any, desc: MemoryDesc) -> NDArray[Any]:
        """As `clformats.pack`."""
        plain = MemoryDesc(array.shape, array.dtype)
        return self._moved(np.ascontiguousarray(array).reshape(-1), plain, desc)

    def unpack(self, flat: Any, desc: MemoryDesc) -> NDArray[Any]:
        """As `clformats.unpack`."""
        return self._moved(flat, desc, MemoryDesc(desc.dims, desc.dtype)).reshape(desc.dims)

    def _moved(self, flat: NDArray[Any], src: MemoryDesc, dst: MemoryDesc) -> NDArray[Any]:
        from ..reorders.reorder import reorder
        from ..runtime import Memory

        memory = Memory(src, self._engine)
        with memory.map("w") as elements:
            elements[:] = flat
        with reorder(memory, dst.format, dtype=dst.dtype).map("r") as elements:
            return np.array(elements)
