"""Where a result goes: written in a folder of its own beside its place, and moved there at the end.

Until the move nothing is at the place, or what was there before. The folder lies in the same file
system, so that moving a file is one atomic step.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import Error
from .common import shown


@contextmanager
def destination(
    path: Path, inputs: Sequence[Path], *, companions: Sequence[str], force: bool
) -> Iterator[Path]:
    """A path to write to; what was written there moves to ``path`` when the block ends well.

    ``companions`` are the suffixes of files that may be written beside it. Raises `Error` where
    something is there already, or has appeared by then, and not ``force``, and always where it is
    one of ``inputs``. What ``force`` replaces keeps its mode and, where the user may set it, its
    owner.
    """
    try:
        place = path.resolve()  # a link stays a link: the file that it points to is replaced
        for target in (place, *(_beside(place, suffix) for suffix in companions)):
            _check(target, inputs, force=force)
        folder = Path(tempfile.mkdtemp(prefix=".clformats-", dir=place.parent))
    except OSError as error:
        raise Error(f"cannot write {shown(str(path))}: {error.strerror}") from error
    try:
        written = folder / place.name
        yield written
        _move(folder, place, force=force)
    except OSError as error:
        raise Error(f"cannot write {shown(str(path))}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _beside(place: Path, suffix: str) -> Path:
    return place.with_name(place.name + suffix)


def _check(target: Path, inputs: Sequence[Path], *, force: bool) -> None:
    name = shown(str(target))
    if not target.exists():
        return
    if not target.is_file():
        raise Error(f"cannot write {name}: it is there and is no regular file")
    if any(target.samefile(file) for file in inputs if file.exists()):
        raise Error(f"{name} is the input itself, which is never overwritten: name another file")
    if not force:
        raise Error(f"{name} exists: give --force to replace it")


def _move(folder: Path, place: Path, *, force: bool) -> None:
    """Move what was written, the main file last: it names its companions."""
    companions = [file for file in folder.iterdir() if file.name != place.name]
    for file in (*companions, folder / place.name):
        with file.open("rb+") as stream:
            os.fsync(stream.fileno())
    if not force:
        _add([*companions, folder / place.name], place.parent)
        return
    for file in (*companions, folder / place.name):
        _take_after(place.parent / file.name, file)
    if any((place.parent / file.name).exists() for file in companions):
        # Never an old main file with new companions, not even after a crash.
        place.unlink(missing_ok=True)
    for file in companions:
        file.replace(place.parent / file.name)
    (folder / place.name).replace(place)


def _add(files: Sequence[Path], there: Path) -> None:
    """Move files to a folder that has none of these names, all or none. Raises `Error`."""
    added: list[Path] = []
    try:
        for file in files:
            _place(file, there / file.name)
            added.append(there / file.name)
    except BaseException as error:
        for file in added:
            file.unlink(missing_ok=True)
        if isinstance(error, FileExistsError):
            raise Error(
                f"{shown(str(there / file.name))} has appeared meanwhile: give --force to "
                f"replace it"
            ) from error
        raise


def _place(file: Path, target: Path) -> None:
    """Move a file. Raises FileExistsError where there is one, however late it came."""
    try:
        target.hardlink_to(file)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        with target.open("xb"):
            pass
        file.replace(target)


def _take_after(old: Path, new: Path) -> None:
    """Give a file the mode and, as far as the user may, the owner of the one that it replaces."""
    if not old.exists():
        return
    found = old.stat()
    with suppress(PermissionError):
        os.chown(new, found.st_uid, found.st_gid)
    new.chmod(stat.S_IMODE(found.st_mode) & 0o777)
