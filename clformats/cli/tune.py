"""`clformats tune`: search for faster kernels and record them; and what becomes of the records."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import Error, InvalidDescriptor
from ..formats.registry import without_bits
from ..records import DeviceNames, TuningRecord, folder, path_of, read, wanted_folder
from ..records.kernels import KernelRecord
from ..records.record import OLD
from ..tensors.desc import MemoryDesc
from ..tensors.dtypes import DType, as_dtype
from ..timing import Times
from .arguments import add_output, dask_client, named_format, sizes, write_text

if TYPE_CHECKING:
    from ..runtime import Engine
    from ..tuning.outcome import Outcome

INTERRUPTED = 130
ACTIONS = {
    "show": ("shape", "dtype", "device", "all"),
    "export": ("shape", "dtype", "device", "t4", "force"),
    "merge": (),
    "revalidate": ("device", "all"),
    "clear": ("device",),
}
"""The actions on records, and the options that each supports."""
SEARCH = ("source", "to", "shape", "dtype", "device", "time_limit", "dask")
TIME_LIMIT = "60"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `tune` to the command line."""
    parser = subparsers.add_parser(
        "tune",
        help="search for faster kernels for a reorder, and record them",
        description="Search for kernels that reorder SRC to DST faster than those "
        "chosen by rules, and record them. Every reorder of these formats and similar sizes then "
        "uses the record. Each kernel is checked before it is timed. Or: `tune show` lists the "
        "records, and those that are ignored; `tune export -o FILE` writes them for other tools; "
        "both select records by --shape, --dtype and --device. `tune merge PATH...` adds those of "
        "other machines; `tune revalidate` measures again those of another driver or other "
        "kernels; `tune clear` deletes them, with --device those of one device. The records are in "
        "the folder that CLFORMATS_TUNED names, else in the user's data folder; =off switches "
        "them off.",
        epilog="example:  clformats tune bfyx b_fs_yx_fsv16 --shape 8,64,56,56 --dtype f32,f16; "
        "clformats tune f32:bfyx:8x64x56x56 f32:byxf:8x64x56x56 --time-limit 30; "
        "clformats tune show",
    )
    parser.add_argument(
        "words", nargs="*", metavar="SRC DST | show | export | merge | revalidate | clear",
        help="two formats, or two printed descriptors (f32:nchw:2x17x5x7); or an action on the "
        "records, and for `merge` the files or folders",
    )  # fmt: skip
    parser.add_argument("--from", dest="source", metavar="FORMAT", help="SRC by name")
    parser.add_argument("--to", metavar="FORMAT", help="DST by name")
    parser.add_argument(
        "--shape", action="append", default=[],
        help="sizes in logical order; give it several times for several reorders",
    )  # fmt: skip
    _add_search(parser)
    add_output(parser, "--t4", dest="t4", text="where `export` writes (- for the terminal)")
    parser.add_argument(
        "--all",
        action="store_true",
        help="`revalidate`: records in use too; `show`: the times too",
    )
    parser.set_defaults(run=run)


def _add_search(parser: argparse.ArgumentParser) -> None:
    """Add what a search is asked with."""
    parser.add_argument("--dtype", help="the element type, or SRC's and DST's: f32,f16")
    parser.add_argument("--device", metavar="NAME", help="part of a device's or platform's name")
    parser.add_argument(
        "--time-limit", metavar="SECONDS",
        help=f"for each reorder (default: {TIME_LIMIT}); only a kernel that is being compiled or "
        "measured when the time is up is finished",
    )  # fmt: skip
    parser.add_argument(
        "--dask", metavar="ADDRESS", help="search on the workers of this Dask scheduler"
    )


def run(args: argparse.Namespace) -> int:
    """Do what the first word says."""
    from ..timing import pin_threads

    action = args.words[0] if args.words else ""
    _check_options(args, action)
    pin_threads()
    if action in ACTIONS:
        if action != "merge" and len(args.words) > 1:
            raise Error(f"tune {action} takes no further words, got {' '.join(args.words[1:])}")
        actions = {"show": show, "export": export, "merge": merge, "revalidate": revalidate,
                   "clear": clear}  # fmt: skip
        return actions[action](args)
    try:
        return search(args)
    except KeyboardInterrupt:
        print("interrupted; what was found before is recorded", file=sys.stderr)
        return INTERRUPTED


def _check_options(args: argparse.Namespace, action: str) -> None:
    """Raise `Error` for options that the action does not support."""
    supported = ACTIONS.get(action, SEARCH)
    named = {name for names in (SEARCH, *ACTIONS.values()) for name in names}
    given = [name for name in sorted(named - {*supported}) if getattr(args, name)]
    if given:
        what = f"tune {action}" if action in ACTIONS else "a search"
        texts = [", ".join(map(_option, names)) for names in (given, supported)]
        raise Error(f"{what} does not take {texts[0]}; its options are: {texts[1] or 'none'}")


def _option(name: str) -> str:
    return "--from" if name == "source" else f"--{name}".replace("_", "-")


# --- searching ------------------------------------------------------------------------------------


def search(args: argparse.Namespace) -> int:
    """Tune every reorder that is asked for."""
    pairs = pairs_of(args)
    seconds = seconds_of(args.time_limit or TIME_LIMIT)
    from ..tuning.run import tune

    with _progress() as watch:
        if args.dask is None:
            tune(pairs, None, args.device, time_limit=seconds, watch=watch)
            return 0
        with dask_client(args.dask) as client:
            tune(pairs, None, args.device, time_limit=seconds, watch=watch, client=client)
    return 0


def pairs_of(args: argparse.Namespace) -> list[tuple[MemoryDesc, MemoryDesc]]:
    """The reorders that the command line names. Raises `InvalidDescriptor`."""
    words = [*args.words, *(w for w in (args.source, args.to) if w is not None)]
    if len(words) != 2 or bool(args.source) != bool(args.to):
        raise InvalidDescriptor(
            f"got {' '.join(words)!r}, expected two formats, SRC and DST, or one of "
            f"{', '.join(ACTIONS)}"
        )
    types = _types(args.dtype or "f32")
    whole = [":" in without_bits(word) for word in words]
    if all(whole):
        if args.shape or args.dtype:
            raise InvalidDescriptor("SRC and DST already have sizes: leave out --shape and --dtype")
        src, dst = map(MemoryDesc.parse, words)
        return [(src, dst)]
    if any(whole):
        raise InvalidDescriptor("give two formats, or two printed descriptors, not one of each")
    if not args.shape:
        raise InvalidDescriptor("the formats need sizes: add --shape 8,64,56,56")
    pairs = []
    for shape in args.shape:
        dims = sizes(shape)
        src, dst = (
            MemoryDesc(dims, dtype, named_format(word, dims, None))
            for dtype, word in zip(types, words, strict=True)
        )
        pairs.append((src, dst))
    return pairs


def _types(text: str) -> tuple[DType, DType]:
    """SRC's and DST's element types, or one for both. Raises `InvalidDescriptor`."""
    types = text.split(",")
    if len(types) > 2:
        raise InvalidDescriptor(f"got --dtype {text}, expected one type or two: f32,f16")
    return as_dtype(types[0]), as_dtype(types[-1])


def seconds_of(text: str) -> float:
    """A time limit. Raises `Error`."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 1 <= seconds <= 1e6:
        raise Error(f"got --time-limit {text}, expected seconds, from 1 on")
    return seconds


@contextmanager
def _progress() -> Iterator[Callable[[Outcome | None], None]]:
    """Each outcome as a line; on a terminal a count of the kernels that were tried."""
    try:
        from tqdm import tqdm
    except ImportError:
        yield lambda outcome: print(outcome, flush=True) if outcome else None
        return
    with tqdm(unit=" kernels", desc="tune", leave=False, disable=None, file=sys.stderr) as bar:

        def watch(outcome: Outcome | None) -> None:
            if outcome is None:
                bar.update()
            else:
                bar.clear()
                print(outcome, flush=True)

        yield watch


# --- records --------------------------------------------------------------------------------------


def show(args: argparse.Namespace) -> int:
    """List every file with its records, and what in it does not count."""
    wanted = _wanted(args)
    engine = _engine(args)
    here = path_of(DeviceNames(*engine.names), wanted_folder()) if engine else None
    shown = False
    for file in _files():
        records, rejected = read(file)
        if wanted:
            records = [r for r in records if wanted(r)]
            if not records:
                continue
        shown = True
        print(file)
        for record in records:
            reason = _staleness(record, engine) if engine and file == here else ""
            print(f"  {record}{f'; not used: {reason}' * bool(reason)}")
            if args.all:
                print(f"    {record.device.name}, {record.device.driver}, kernels {record.kernels}")
                print(f"    rules    {_times(record.default)}")
                print(f"    choices  {_times(record.tuned)}")
        old = sum(line.reason == OLD for line in rejected)
        if old and not wanted:
            print(f"  not used: {old} {OLD}")
        for line in [] if args.shape or args.dtype else rejected:
            if line.reason != OLD:
                print(f"  not used: line {line.line}, {line.reason}")
    if not shown:
        which = "such records" if wanted else "records"
        print(f"no {which} in {folder()}: clformats tune SRC DST --shape ... makes some")
    return 0


def _wanted(args: argparse.Namespace) -> Callable[[TuningRecord], bool] | None:
    """Whether a record is of the sizes, element types and devices asked for; None for all."""
    shapes = {sizes(shape) for shape in args.shape}
    types = _types(args.dtype) if args.dtype else None
    name = (args.device or "").lower()
    if not (shapes or types or name):
        return None

    def wanted(record: TuningRecord) -> bool:
        if name not in " ".join(record.device).lower():
            return False
        if not (shapes or types):
            return True
        try:
            src, dst = MemoryDesc.parse(record.src), MemoryDesc.parse(record.dst)
        except Error:  # a format that only another version knows
            return False
        return (not shapes or src.dims in shapes) and types in (None, (src.dtype, dst.dtype))

    return wanted


def _files() -> list[Path]:
    return sorted(wanted_folder().glob("*.jsonl"))


def _engine(args: argparse.Namespace) -> Engine | None:
    """The device that is there now, to tell which records do not count on it; None for none."""
    from ..runtime import Engine

    try:
        return Engine(args.device)
    except Error:
        return None


def _staleness(record: TuningRecord, engine: Engine) -> str:
    from ..reorders.planning import staleness
    from ..reorders.profiles import traits_of

    return staleness(record, DeviceNames(*engine.names), traits_of(engine))


def _times(times: tuple[float, ...]) -> str:
    """The median and the quartiles of times in seconds."""
    found = Times.of(times)
    low, middle, high = (f"{1e6 * t:.4g}" for t in (found.q1, found.median, found.q3))
    return f"{middle} us ({low} to {high}, {_count(found.count, 'run')})"


def export(args: argparse.Namespace) -> int:
    """Write records in the T4 format."""
    from ..tuning.exchange import t4

    if args.t4 is None:
        raise Error("say where to: clformats tune export -o FILE, or -o - for the terminal")
    wanted = _wanted(args)
    found = [record for file in _files() for record in read(file)[0]]
    records = [record for record in found if wanted is None or wanted(record)]
    write_text(args.t4, json.dumps(t4(records), indent=1) + "\n", force=args.force)
    return 0


def merge(args: argparse.Namespace) -> int:
    """Add the records of other files, and say which of them will be used here."""
    from ..tuning.exchange import merge as merged

    if len(args.words) < 2:
        raise Error("say which files: clformats tune merge FILE...")
    found = merged(map(Path, args.words[1:]))
    for file, line in found.rejected:
        print(f"{file}: line {line.line} is left out, {line.reason}", file=sys.stderr)
    if found.rejected and not found.added and not found.known:
        raise Error("nothing was added: none of the lines is a record")
    print(f"{_count(len(found.added), 'record')} added in {folder()}{_known(found.known)}")
    for reason, count in _unused(found.added).items():
        print(f"  {count} not used here: {reason}")
    return 0


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _known(number: int) -> str:
    return f"; {number} left out: the same or a newer one is there" if number else ""


def _unused(records: Sequence[TuningRecord | KernelRecord]) -> Counter[str]:
    """Why how many of the records do not count on any device that is visible now."""
    from ..runtime import devices
    from ..runtime.engine import names_of

    here = [DeviceNames(*names_of(device)) for device in devices()]
    found = [{record.device.staleness(device) for device in here} for record in records]
    return Counter(
        "of another driver: `clformats tune revalidate` measures them anew"
        if "of another driver" in reasons
        else "of a device that is not here"
        for reasons in found
        if "" not in reasons
    )


def revalidate(args: argparse.Namespace) -> int:
    """Measure old records again."""
    from ..runtime import Engine
    from ..tuning.revalidate import revalidate as measured_again

    def watch(old: TuningRecord, new: TuningRecord | None) -> None:
        print(new or f"{old.src} -> {old.dst}: {old.choices} is not faster any more", flush=True)

    try:
        held, count = measured_again(Engine(args.device), everything=args.all, watch=watch)
    except KeyboardInterrupt:
        print("interrupted; what was measured before is recorded", file=sys.stderr)
        return INTERRUPTED
    if not count:
        print("no record is of another driver or other kernels; --all measures those in use too")
        return 0
    print(f"{held} of {count} records hold")
    return 0


def clear(args: argparse.Namespace) -> int:
    """Delete the records of all devices, or of those that --device names."""
    name, deleted = (args.device or "").lower(), 0
    for file in _files():
        records, _ = read(file)
        if not all(name in " ".join(record.device).lower() for record in records):
            continue
        try:
            file.unlink()
        except OSError as error:
            raise Error(f"cannot delete {file}: {error.strerror}") from error
        deleted += len(records)
    print(f"{deleted} records deleted in {folder()}")
    return 0
