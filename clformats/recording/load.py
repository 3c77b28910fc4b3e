"""`load`: an exported recording on an engine, in Python."""

from __future__ import annotations

import os
import re
import tarfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..errors import InvalidRecording, Unsupported, expect
from ..kernels.source import MOST_ARGUMENT_BYTES
from ..opencl import opencl
from ..runtime import Engine
from ..runtime.engine import default_engine
from .binding import device_of
from .manifest import Reader, read, requirements
from .program import Program, Variant
from .replay import Replay


def load(
    path: str | os.PathLike[str],
    engine: Engine | None = None,
    *,
    variant: str | None = None,
    inexact: bool = False,
) -> Replay:
    """An exported recording, from a folder or a file, ready to run on an engine.

    It is what `Recording.replay` gives, with no memory objects yet: the first call gives all of
    them. The first variant is taken that was planned for this device and driver, for this device,
    for its kind, or for all; ``variant`` asks for one by name. ``inexact`` lets it run where a
    device rounds divisions otherwise than that of the recording, so that bytes may differ. An
    export is code: load none from people whom you would not trust with a program. Raises
    `InvalidRecording` for an export that is
    damaged or newer, `Unsupported` (code RECORDING) where the device lacks what it needs.
    """
    expect(path, str | os.PathLike, "path")
    expect(engine, Engine | None, "engine")
    expect(variant, str | None, "variant")
    expect(inexact, bool, "inexact")
    engine = engine or default_engine()
    program = read_program(path)
    return Replay(program, chosen(program, engine, variant, inexact=inexact), engine, {})


def read_program(path: str | os.PathLike[str]) -> Program:
    """The program in a folder or a file. Raises `InvalidRecording`."""
    place = Path(path)
    if not place.exists():
        raise InvalidRecording(
            f"there is no {place}: expected a folder that Recording.export wrote, or a file *.clf"
        )
    return read(_reader_of_file(place) if place.is_file() else _reader_of_folder(place))


def _reader_of_folder(folder: Path) -> Reader:
    def reader(name: str) -> bytes:
        parts = Path(name).parts
        if ".." in parts or Path(name).is_absolute():
            raise InvalidRecording(f"{name} lies outside of the export")
        try:
            return (folder / name).read_bytes()
        except FileNotFoundError:
            raise InvalidRecording(f"{folder} has no {name}: expected an export, whole") from None
        except (OSError, ValueError) as error:
            raise InvalidRecording(f"{folder / name} cannot be read: {error}") from error

    return reader


def _reader_of_file(file: Path) -> Reader:
    try:
        with tarfile.open(file, "r:") as tar:
            found = {m.name: tar.extractfile(m) for m in tar.getmembers() if m.isreg()}
            contents = {name: part.read() for name, part in found.items() if part}
    except (OSError, tarfile.TarError, ValueError) as error:
        raise InvalidRecording(f"{file} cannot be read: {error}") from error

    def reader(name: str) -> bytes:
        if name not in contents:
            raise InvalidRecording(f"{file} has no {name}: export again")
        return contents[name]

    return reader


def chosen(program: Program, engine: Engine, name: str | None, *, inexact: bool) -> Variant:
    """The variant for a device: the one that was named, or the first that fits best.

    Raises `Unsupported` (code RECORDING) with the reason where there is none, `InvalidArgument` for
    a name that there is not.
    """
    here = device_of(engine)
    kind = "cpu" if engine.traits.is_cpu else "gpu"
    wanted = [program.variant(name)] if name is not None else [
        *(v for v in program.variants if v.tuned_for == here),
        *(v for v in program.variants if v.tuned_for and v.tuned_for != here
          and (v.tuned_for.device, v.tuned_for.platform) == (here.device, here.platform)),
        *(v for v in program.variants if v.like == kind),
        *(v for v in program.variants if not v.tuned_for and not v.like),
    ]  # fmt: skip
    reasons = []
    for variant in wanted:
        lack = lacks(program, variant, engine, inexact=inexact)
        if not lack:
            return variant
        reasons.append(f"{variant.name}: {lack}")
    why = "; ".join(reasons) or "no variant is for this device, and none is portable"
    raise Unsupported("RECORDING", f"{program.name} does not run on {engine.device.name}: {why}")


def lacks(program: Program, variant: Variant, engine: Engine, *, inexact: bool = False) -> str:
    """What a device lacks for a variant; empty where it has everything."""
    device, needs = engine.device, requirements(program, variant)
    there = f"{device.extensions} ".split()
    most = max(device.max_parameter_size, MOST_ARGUMENT_BYTES)
    is_own = variant.tuned_for == device_of(engine)
    found = [
        *(f"the extension {e}" for e in needs.extensions if e not in there),
        needs.opencl_c > version_of(device) and f"OpenCL C {needs.opencl_c / 100}",
        needs.work_group > device.max_work_group_size and f"work-groups of {needs.work_group}",
        needs.largest_buffer > device.max_mem_alloc_size
        and f"a buffer of {needs.largest_buffer} bytes",
        needs.parameter_bytes > most and not is_own
        and f"{needs.parameter_bytes} bytes of arguments for a kernel",
        needs.rounded_division and not (inexact or engine.rounds_divisions)
        and "correctly rounded divisions (inexact lets it run without)",
    ]  # fmt: skip
    return next((f"needs {lack}" for lack in found if lack), "")


def version_of(device: Any) -> int:
    """The newest OpenCL C that a device compiles: 120 is 1.2.

    Devices of OpenCL 3.0 name 1.2 where older ones name the newest, and have a list of all.
    """
    cl = opencl()
    named = re.match(r"OpenCL C (\d+)\.(\d+)", device.opencl_c_version)
    found = [(int(named[1]), int(named[2]))] if named else []
    with suppress(cl.Error, AttributeError):
        all_versions = device.get_info(cl.device_info.OPENCL_C_ALL_VERSIONS)
        found += [(v.version >> 22, v.version >> 12 & 0x3FF) for v in all_versions]
    return max((100 * major + 10 * minor for major, minor in found), default=0)
