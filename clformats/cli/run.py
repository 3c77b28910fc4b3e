"""`clformats run`: an exported recording, tried on a device."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import Error, InvalidArgument
from ..files.destination import destination
from ..tensors.desc import MemoryDesc
from ..timing import timed

if TYPE_CHECKING:
    from ..runtime import Engine, Memory

ROUNDS = 20


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `run` to the command line."""
    parser = subparsers.add_parser(
        "run",
        help="try an exported recording",
        description="Run an export on a device: with arrays in .npy files, or random ones, of the "
        "logical shape. Prints the variant, and how long a run takes.",
        epilog="example:  clformats run net --set photo=photo.npy gain=2 --save packed=packed.npy",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", metavar="FOLDER", help="a folder, or a file *.clf")
    parser.add_argument("--device", metavar="NAME", help="a text in the name of device or platform")
    parser.add_argument("--variant", help="the variant (default: the first that fits best)")
    parser.add_argument(
        "--set", nargs="+", default=[], metavar="NAME=VALUE", help="an input's .npy, or a number"
    )
    parser.add_argument(
        "--save", nargs="+", default=[], metavar="NAME=FILE", help="an output, to a .npy file"
    )
    parser.add_argument("--force", action="store_true", help="replace files that exist")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Load, run, print."""
    from ..recording.load import load
    from ..runtime import Engine, Stream

    engine = Engine(args.device)
    replay = load(args.folder, engine, variant=args.variant)
    given, saved = _pairs(args.set, "--set"), _pairs(args.save, "--save")
    unknown = [n for n in given if n not in (*replay.inputs, *replay.scalars)]
    unknown += [n for n in saved if n not in replay.outputs]
    if unknown:
        raise InvalidArgument(f"{args.folder} has no {', '.join(unknown)} to set or save")
    named: dict[str, Any] = {
        name: _memory(desc, given.get(name), engine) for name, desc in replay.inputs.items()
    }
    named |= {name: _empty(desc, engine) for name, desc in replay.outputs.items()}
    named |= {name: _number(name, given.get(name, "1")) for name in replay.scalars}
    stream = Stream(engine)
    replay(stream, **named).wait()

    def again() -> None:
        for _ in range(ROUNDS):
            replay(stream)
        stream.wait()

    seconds = timed(again) / ROUNDS
    for name, file in saved.items():
        held = BytesIO()  # by its name numpy would add .npy to a file's
        np.save(held, named[name].numpy())
        with destination(Path(file), [], companions=(), force=args.force) as place:
            place.write_bytes(held.getvalue())
    tuned = "planned for this device" if replay.is_tuned else "not planned for this device"
    print(f"{engine.device.name.strip()}: variant {replay.variant.name}, {tuned}")
    print(f"{len(replay.variant.commands)} commands, {seconds * 1e6:.1f} us a run")
    return 0


def _pairs(words: Sequence[str], option: str) -> dict[str, str]:
    found = dict(word.partition("=")[::2] for word in words)
    if wrong := [w for w in words if "=" not in w]:
        raise InvalidArgument(f"{option}: got {wrong[0]!r}, expected NAME=VALUE")
    return found


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidArgument(f"{name}: got {text!r}, expected a number") from None


def _empty(desc: MemoryDesc, engine: Engine) -> Memory:
    from ..runtime import Memory

    return Memory(desc, engine)


def _memory(desc: Any, file: str | None, engine: Engine) -> Memory:
    """Memory with the array of a file, or with random numbers; zeros where these have no rule."""
    from ..transfers.calls import from_numpy

    if file is None:
        if not isinstance(desc, MemoryDesc):
            return _empty(desc, engine)
        values: Any = np.random.default_rng(0).integers(0, 2, desc.dims, np.uint8)
    else:
        try:
            values = np.load(Path(file), allow_pickle=False)
        except (OSError, ValueError) as error:
            raise Error(f"{file} cannot be read: {error}") from error
    if values.shape != desc.dims:
        raise InvalidArgument(f"{file}: got the shape {values.shape}, expected {desc.dims}")
    return from_numpy(values, engine, desc=desc)
