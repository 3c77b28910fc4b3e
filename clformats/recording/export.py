"""Exports: the files of a recording in a folder, or as one file, with the runner in C."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.resources import files as package_files
from pathlib import Path
from typing import TypeAlias

from ..errors import Error, InvalidArgument, Unsupported, shown
from ..problems.traits import DEFAULT, Traits
from ..reorders.planning import records_of
from ..reorders.profiles import traits_of
from ..runtime import Engine
from ..schedule import make_plan
from ..tensors.desc import MemoryDesc
from .binding import device_of
from .header import header
from .manifest import DATA, FORMAT, MANIFEST, PAGE, written
from .program import INPUT, OUTPUT, Buffer, Program, check_name
from .slots import image_is_not
from .steps import Move, Planned, Target, assembled

Named: TypeAlias = Engine | Traits
"""What a variant is planned for: an engine, or what a device that is not here is like."""
RUNNER = ("clformats.h", "clformats.c")
SUFFIX = ".clf"
_BLOCK = 512
"""Bytes of a block of a tar file."""


def exported_reorder(
    src: MemoryDesc,
    dst: MemoryDesc,
    place: Path,
    name: str | None = None,
    *,
    device: str | None = None,
    like: Traits | None = None,
) -> None:
    """Export one reorder, from ``src`` to ``dst``, without a call of it.

    For the device of a name, or the default one; or for what a device is ``like``, which needs no
    OpenCL. Raises as `Recording.export`.
    """
    engine = None if like else Engine(device)
    traits = like or (traits_of(engine) if engine else DEFAULT)
    plan = make_plan(src, dst, traits)
    for desc in (src, dst):
        if desc.format.image:
            raise Unsupported("RECORDING", f"{desc} is {image_is_not(desc)}")
    buffers = [
        Buffer(n, role, max(d.nbytes, d.span_nbytes), 1, str(d))
        for n, role, d in (("src", INPUT, src), ("dst", OUTPUT, dst))
    ]
    steps = [Move(plan, None, 0, 1, ())] if plan.body else []
    title = name_of(place, name)
    write(
        assembled(title, buffers, (), 0, steps, targets_of([like or engine or DEFAULT], None)),
        place,
    )


def name_of(place: Path, name: str | None) -> str:
    """The name that was given, or that of the folder."""
    if name is None:
        name = place.resolve().stem if place.suffix == SUFFIX else place.resolve().name
    return check_name(name, "name")


def targets_of(engines: Sequence[Named], own: Engine | None) -> list[Planned]:
    """What the variants of an export are planned for; the portable one comes last."""
    found: list[Planned] = []
    for given in engines:
        title = f"device{len(found)}"
        if isinstance(given, Traits):
            found.append((title, Target(given), None, "cpu" if given.is_cpu else "gpu"))
        elif isinstance(given, Engine):
            here = own is not None and device_of(given) == device_of(own)
            target = Target(traits_of(given), records_of(given), own=here)
            found.append((title, target, device_of(given), ""))
        else:
            raise InvalidArgument(f"engines: got {shown(given)}, expected Engine or Traits")
    return [*found, ("portable", Target(DEFAULT, portable=True), None, "")]


def write(program: Program, place: Path) -> None:
    """Write the files of a program. Raises `Error` where they cannot be written."""
    contents = written(program)
    for file in RUNNER:
        contents[file] = package_files(__package__).joinpath("runner").joinpath(file).read_bytes()
    contents[f"{program.name}.h"] = header(program).encode()
    try:
        if place.suffix == SUFFIX:
            _write_file(contents, place)
        else:
            _write_folder(contents, place)
    except OSError as error:
        raise Error(f"{place} cannot be written: {error.strerror or error}") from error


def _write_folder(contents: Mapping[str, bytes], folder: Path) -> None:
    """The manifest goes first and comes last: what stops in between leaves no export."""
    manifest = folder / MANIFEST
    if folder.is_dir() and any(folder.iterdir()):
        for name in _names_in(manifest, folder):
            with suppress(OSError):
                (folder / name).unlink()
        manifest.unlink()
    (folder / "kernels").mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        if name != MANIFEST:
            (folder / name).write_bytes(content)
    manifest.write_bytes(contents[MANIFEST])


def _names_in(manifest: Path, folder: Path) -> list[str]:
    """The kernels of the export that is there. Raises `Error` where there is none."""
    try:
        found = json.loads(manifest.read_bytes())
        if found["format"] == FORMAT:
            names = [str(f["file"]) for f in found["files"]]
            return [n for n in names if n.startswith("kernels/") and ".." not in n]
    except (OSError, ValueError, KeyError, TypeError):
        pass
    raise Error(f"{folder} has files that are no export: name another folder, or empty it")


def _write_file(contents: Mapping[str, bytes], place: Path) -> None:
    """A tar file without compression, in which the data begins at a multiple of a page."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        note = b"A recording of clformats: README, data.bin at byte 4096, then the other files.\n"
        _add(tar, "README", note.ljust(PAGE - 2 * _BLOCK, b"\n"))
        _add(tar, DATA, contents[DATA])
        for name, content in contents.items():
            if name != DATA:
                _add(tar, name, content)
    new = place.with_name(f".{place.name}.new")
    new.write_bytes(made.getvalue())
    new.replace(place)


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), 0o644
    tar.addfile(entry, io.BytesIO(content))
