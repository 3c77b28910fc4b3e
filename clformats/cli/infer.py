"""`clformats infer`: the digits of another program's packing, from files that it packed."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidArgument, InvalidDescriptor
from ..quantised.inference import PROBES, infer_pairs
from .arguments import add_json, number, print_json

PACKED = ".packed.npy"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `infer` to the command line."""
    parser = subparsers.add_parser(
        "infer",
        help="the digits of a packing, from files it packed",
        description="Find how a packing program orders values. First write random tensors with "
        "--write; pack each file probe00.npy by the program in question to probe00.packed.npy, of "
        "any element type; then give the folder. Pairs of files of your own will do, values and "
        "packed in turn. Exit status 1, with the reason, where the packing is no list of digits.",
        epilog="example:  clformats infer probes --write 128x256 --bits 4\n"
        "          clformats infer probes --bits 4 --letters nk",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("files", metavar="PATH", nargs="+", help="a folder of probes, or pairs")
    parser.add_argument("--bits", required=True, help="the bits of a value")
    parser.add_argument("--letters", default="abcdefgh", help="what dimensions are called: nk")
    parser.add_argument("--write", metavar="SHAPE", help="write probes of this shape to PATH")
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write probes, or print what was found."""
    bits = number(args.bits, "--bits", 1, 31)
    if args.write is not None:
        return _written(Path(args.files[0]), args.write, bits)
    pairs = [(_loaded(values), _loaded(packed)) for values, packed in _pairs(args.files)]
    if pairs[0][0].dtype.kind not in "iu":
        raise InvalidDescriptor(f"got values of {pairs[0][0].dtype}, expected integers")
    found = infer_pairs(pairs, args.letters[: pairs[0][0].ndim], bits)
    if args.json:
        return print_json({"layout": found.layout(), "digits": found.text, "bias": found.bias})
    print(found.layout())
    return 0


def _written(folder: Path, shape: str, bits: int) -> int:
    try:
        sizes = tuple(int(n) for n in shape.replace(",", "x").split("x"))
    except ValueError:
        raise InvalidArgument(f"--write: got {shape!r}, expected sizes such as 128x256") from None
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    for k in range(PROBES):
        values = rng.integers(0, 1 << bits, sizes, np.int64)
        np.save(folder / f"probe{k:02}.npy", values.astype(np.uint8 if bits <= 8 else np.int32))
    print(f"{PROBES} files in {folder}: pack each probe00.npy to probe00{PACKED}")
    return 0


def _pairs(files: list[str]) -> list[tuple[Path, Path]]:
    paths = [Path(f) for f in files]
    if len(paths) == 1 and paths[0].is_dir():
        packed = sorted(paths[0].glob(f"*{PACKED}"))
        paths = [p for f in packed for p in (f.with_name(f.name.replace(PACKED, ".npy")), f)]
    if len(paths) < 2 or len(paths) % 2:
        raise InvalidArgument(
            f"got {len(paths)} files, expected pairs: values, packed, or a folder with files "
            f"*{PACKED}"
        )
    return list(zip(paths[::2], paths[1::2], strict=True))


def _loaded(path: Path) -> NDArray[Any]:
    try:
        found: NDArray[Any] = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InvalidDescriptor(f"cannot read {path}: {error}") from None
    return found
